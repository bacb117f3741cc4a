// SPDX-License-Identifier: Apache-2.0
/* Chapter "Module Management": the linker. The daemon links: what a program hands in is collected,
 * and what it gets in place of a cubin is a container of the inputs (session/link_image.h), which
 * every function that takes an image accepts. cuLinkComplete() has the daemon link it once on the
 * current device, so that an error is reported where CUDA reports it. Loading the container
 * afterwards finds the work done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/link_image.h"
#include "frontend/facade.h"
#include "frontend/module/jit.h"
#include "frontend/module/link_inputs.h"
#include "frontend/module/module.h"

enum { INPUT_NVVM = 5 }; /* the last of CUjitInputType */

struct link {
    struct ws_slot slot;
    struct ws_link_inputs inputs;
    void *image;
    uint64_t bytes;
    struct ws_jit jit;
};
static struct ws_slab links = WS_SLAB(struct link);

WS_DRV_API(cuLinkCreate_v2, (unsigned n, const int *options, void **values, struct link **ret))
{
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    struct link *l = ws_slab_new(&links);
    if (!l)
        return CUDA_OUT_OF_MEMORY;
    int code = ws_jit_read(&l->jit, n, options, values);
    if (code)
        ws_slab_free(&links, l);
    else
        *ret = l;
    return code;
}
WS_DRV_ALIAS(cuLinkCreate, cuLinkCreate_v2)

static int add(struct link *l, int type, const void *data, uint64_t bytes, const char *name)
{
    if (l->image) /* complete */
        return CUDA_INVALID_VALUE;
    if (type < 0 || type > INPUT_NVVM)
        return CUDA_INVALID_VALUE;
    if (type == INPUT_NVVM) {
        ws_session_unsupported("linking of NVVM code");
        return CUDA_NOT_SUPPORTED;
    }
    int code = ws_link_inputs_add(&l->inputs, data, bytes, name);
    if (code == CUDA_INVALID_IMAGE)
        ws_mod_report(&l->jit, code, "an input is damaged, or holds no device code");
    return code;
}

WS_DRV_API(cuLinkAddData_v2, (struct link * l, int type, const void *data, size_t bytes,
                              const char *name, unsigned n, const int *options, void **values))
{
    if (!ws_slab_has(&links, l))
        return CUDA_INVALID_HANDLE;
    if (!data || !bytes || (n && (!options || !values)))
        return CUDA_INVALID_VALUE;
    return add(l, type, data, bytes, name);
}
WS_DRV_ALIAS(cuLinkAddData, cuLinkAddData_v2)

WS_DRV_API(cuLinkAddFile_v2, (struct link * l, int type, const char *path, unsigned n,
                              const int *options, void **values))
{
    char *data;
    uint64_t bytes;
    if (!ws_slab_has(&links, l))
        return CUDA_INVALID_HANDLE;
    if (!path || (n && (!options || !values)))
        return CUDA_INVALID_VALUE;
    int code = ws_image_read_file(path, &data, &bytes);
    if (code)
        return code;
    code = add(l, type, data, bytes, path);
    free(data);
    return code;
}
WS_DRV_ALIAS(cuLinkAddFile, cuLinkAddFile_v2)

/* Links on the current device, for what is wrong to be found. */
static int try_out(const struct link *l, int device)
{
    uint64_t start_ns = ws_clock_ns();
    char *text = NULL;
    struct ws_mod *m;
    int code = ws_mod_load(device, l->image, l->bytes, NULL, &m, &text);
    ws_jit_wall_time(&l->jit, (double)(ws_clock_ns() - start_ns) / 1e6);
    ws_mod_report(&l->jit, code, text);
    free(text);
    return code ? code : ws_mod_unload(m);
}

WS_DRV_API(cuLinkComplete, (struct link * l, void **image, size_t *bytes))
{
    WS_DRV_ENTER(c);
    if (!ws_slab_has(&links, l))
        return CUDA_INVALID_HANDLE;
    if (!image || !l->inputs.n)
        return CUDA_INVALID_VALUE;
    if (!l->image) {
        if (ws_link_image_make(l->inputs.v, l->inputs.n, WS_LINK_IMAGE_STRICT, l->jit.max_regs,
                               &l->image, &l->bytes))
            return CUDA_OUT_OF_MEMORY;
        int code = try_out(l, c->device);
        if (code) {
            free(l->image);
            l->image = NULL;
            return code;
        }
    }
    *image = l->image;
    if (bytes)
        *bytes = l->bytes;
    return CUDA_OK;
}

WS_DRV_API(cuLinkDestroy, (struct link * l))
{
    if (!ws_slab_has(&links, l))
        return CUDA_INVALID_HANDLE;
    ws_link_inputs_deinit(&l->inputs);
    free(l->image);
    ws_slab_free(&links, l);
    return CUDA_OK;
}

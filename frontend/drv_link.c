// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API: the linker of "Module Management". Linking proper (symbols across inputs) is not done; what most programs do
 * with it is: hand in one PTX text or image and load what comes out. So the output is the one input. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/facade.h"
#include "frontend/jit.h"
#include "frontend/module.h"

enum { INPUT_CUBIN = 0, INPUT_PTX = 1, INPUT_FATBIN = 2 };

struct link {
    struct ws_slot slot;
    char *image; /* the one input, with a zero after it */
    size_t bytes;
    unsigned n_inputs;
    struct ws_jit jit;
};
static struct ws_slab links = WS_SLAB(struct link);

WS_DRV_API(cuLinkCreate_v2, (unsigned n, const int *options, void **values, struct link **ret))
{
    WS_DRV_ENTER(c);
    (void)c;
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

/* @data: malloc'ed, taken. */
static int add(struct link *l, int type, char *data, size_t bytes)
{
    int code = CUDA_OK;
    if (type != INPUT_PTX && type != INPUT_CUBIN && type != INPUT_FATBIN) {
        ws_session_unsupported("linking of objects, libraries and NVVM code");
        code = CUDA_NOT_SUPPORTED;
    } else if (l->n_inputs) {
        ws_session_unsupported("linking of several inputs");
        code = CUDA_NOT_SUPPORTED;
    }
    if (code) {
        free(data);
        return code;
    }
    l->image = data;
    l->bytes = bytes;
    l->n_inputs = 1;
    return CUDA_OK;
}

WS_DRV_API(cuLinkAddData_v2, (struct link * l, int type, const void *data, size_t bytes,
                              const char *name, unsigned n, const int *options, void **values))
{
    if (!ws_slab_has(&links, l))
        return CUDA_INVALID_HANDLE;
    if (!data || !bytes)
        return CUDA_INVALID_VALUE;
    char *copy = ws_alloc(bytes + 1);
    if (!copy)
        return CUDA_OUT_OF_MEMORY;
    memcpy(copy, data, bytes);
    return add(l, type, copy, bytes);
}
WS_DRV_ALIAS(cuLinkAddData, cuLinkAddData_v2)

WS_DRV_API(cuLinkAddFile_v2, (struct link * l, int type, const char *path, unsigned n,
                              const int *options, void **values))
{
    char *data;
    uint64_t bytes;
    if (!ws_slab_has(&links, l))
        return CUDA_INVALID_HANDLE;
    if (!path)
        return CUDA_INVALID_VALUE;
    int code = ws_image_read_file(path, &data, &bytes);
    return code ? code : add(l, type, data, bytes);
}
WS_DRV_ALIAS(cuLinkAddFile, cuLinkAddFile_v2)

WS_DRV_API(cuLinkComplete, (struct link * l, void **image, size_t *bytes))
{
    if (!ws_slab_has(&links, l))
        return CUDA_INVALID_HANDLE;
    if (!image || !l->n_inputs)
        return CUDA_INVALID_VALUE;
    ws_jit_report(&l->jit, NULL);
    *image = l->image;
    if (bytes)
        *bytes = l->bytes;
    return CUDA_OK;
}

WS_DRV_API(cuLinkDestroy, (struct link * l))
{
    if (!ws_slab_has(&links, l))
        return CUDA_INVALID_HANDLE;
    free(l->image);
    ws_slab_free(&links, l);
    return CUDA_OK;
}

// SPDX-License-Identifier: Apache-2.0
/* Chapter "Module Management": modules. The linker is in link.c. */
#include <stdlib.h>

#include "frontend/facade.h"
#include "frontend/module/jit.h"
#include "frontend/module/module.h"
#include "frontend/module/registry.h"

static int load(struct ws_mod **ret, const void *image, uint64_t bytes, const char *name,
                const struct ws_jit *j)
{
    char *text = NULL;
    WS_DRV_ENTER(c);
    if (!ret || !image)
        return CUDA_INVALID_VALUE;
    int code = ws_mod_load(c->device, image, bytes, name, ret, &text);
    ws_mod_report(j, code, text);
    free(text);
    if (!code)
        ws_ctx_own(c, WS_OWNED_MODULE, (uintptr_t)*ret);
    return code;
}

WS_DRV_API(cuModuleLoadData, (struct ws_mod * *ret, const void *image))
{
    struct ws_jit none = {0};
    return load(ret, image, 0, NULL, &none);
}

WS_DRV_API(cuModuleLoadDataEx,
           (struct ws_mod * *ret, const void *image, unsigned n, const int *options, void **values))
{
    struct ws_jit j;
    int code = ws_jit_read(&j, n, options, values);
    return code ? code : load(ret, image, 0, NULL, &j);
}

WS_DRV_API(cuModuleLoadFatBinary, (struct ws_mod * *ret, const void *image))
{
    return cuModuleLoadData(ret, image);
}

WS_DRV_API(cuModuleLoad, (struct ws_mod * *ret, const char *path))
{
    struct ws_jit none = {0};
    char *data;
    uint64_t bytes;
    WS_DRV_ENTER(c);
    if (!ret || !path)
        return CUDA_INVALID_VALUE;
    int code = ws_image_read_file(path, &data, &bytes);
    if (code)
        return code;
    code = load(ret, data, bytes, path, &none);
    free(data);
    return code;
}

WS_DRV_API(cuModuleUnload, (struct ws_mod * m))
{
    WS_DRV_ENTER(c);
    if (!ws_mod_valid(m) || m->library)
        return CUDA_INVALID_HANDLE;
    ws_ctx_disown(WS_OWNED_MODULE, (uintptr_t)m);
    return ws_mod_unload(m);
}

WS_DRV_API(cuModuleGetFunction, (struct ws_fn * *ret, struct ws_mod *m, const char *name))
{
    WS_DRV_ENTER(c);
    if (!ret || !name)
        return CUDA_INVALID_VALUE;
    return ws_mod_valid(m) ? ws_mod_fn(m, name, ret) : CUDA_INVALID_HANDLE;
}

WS_DRV_API(cuModuleGetGlobal_v2,
           (uint64_t * address, size_t *bytes, struct ws_mod *m, const char *name))
{
    uint64_t a, n;
    WS_DRV_ENTER(c);
    if (!name)
        return CUDA_INVALID_VALUE;
    if (!ws_mod_valid(m))
        return CUDA_INVALID_HANDLE;
    ws_err e = ws_session_module_variable(m->module, name, &a, &n);
    if (e)
        return ws_drv_error(e);
    if (address)
        *address = a;
    if (bytes)
        *bytes = n;
    return CUDA_OK;
}

WS_DRV_API(cuModuleGetLoadingMode, (int *ret))
{
    enum { EAGER = 1, LAZY = 2 };
    int code = ws_drv_check_init();
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = ws_registry_eager() ? EAGER : LAZY;
    return CUDA_OK;
}

WS_DRV_API(cuModuleGetFunctionCount, (unsigned *ret, struct ws_mod *m))
{
    int code = ws_drv_check_init();
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    if (!ws_mod_valid(m))
        return CUDA_INVALID_HANDLE;
    *ret = (unsigned)ws_mod_n_fns(m);
    return CUDA_OK;
}

WS_DRV_API(cuModuleEnumerateFunctions, (struct ws_fn * *ret, unsigned n, struct ws_mod *m))
{
    int code = ws_drv_check_init();
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    if (!ws_mod_valid(m))
        return CUDA_INVALID_HANDLE;
    for (unsigned i = 0; i < n && !code; i++)
        code = ws_mod_fn_at(m, i, &ret[i]);
    return code == CUDA_NOT_FOUND ? CUDA_OK : code;
}

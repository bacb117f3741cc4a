// SPDX-License-Identifier: Apache-2.0
/* Chapter "Library Management": a library's module, and kernels. */
#include <stdlib.h>

#include "frontend/facade.h"
#include "frontend/module/jit.h"
#include "frontend/module/module.h"

/* The device that a call without a context works on. */
static int some_device(void)
{
    const struct ws_cuda_context *c = ws_ctx_current();
    return c && ws_ctx_valid(c) ? c->device : 0;
}

/* Body of a function about a library: returns unless it is one. */
#define CHECK_LIBRARY(l)                                                                           \
    do {                                                                                           \
        int code_ = ws_drv_check_init();                                                           \
        if (code_)                                                                                 \
            return code_;                                                                          \
        if (!ws_library_valid(l))                                                                  \
            return CUDA_INVALID_HANDLE;                                                            \
    } while (0)
#define CHECK_KERNEL(k)                                                                            \
    do {                                                                                           \
        int code_ = ws_drv_check_init();                                                           \
        if (code_)                                                                                 \
            return code_;                                                                          \
        if (!ws_kernel_valid(k))                                                                   \
            return CUDA_INVALID_HANDLE;                                                            \
    } while (0)

WS_DRV_API(cuLibraryGetModule, (struct ws_mod * *ret, struct ws_library *l))
{
    WS_DRV_ENTER(c);
    CHECK_LIBRARY(l);
    return ret ? ws_library_load(l, c->device, ret, NULL) : CUDA_INVALID_VALUE;
}

/* ---- kernels ---- */

WS_DRV_API(cuKernelGetFunction, (struct ws_fn * *ret, struct ws_kernel *k))
{
    WS_DRV_ENTER(c);
    CHECK_KERNEL(k);
    return ret ? ws_kernel_fn(k, c->device, ret) : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuKernelGetName, (const char **ret, struct ws_kernel *k))
{
    CHECK_KERNEL(k);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = k->name;
    return CUDA_OK;
}

WS_DRV_API(cuKernelGetLibrary, (struct ws_library * *ret, struct ws_kernel *k))
{
    CHECK_KERNEL(k);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = k->library;
    return CUDA_OK;
}

/* A kernel on a device by number. Return: a CUDA code. */
static int kernel_on(struct ws_kernel *k, int device, struct ws_fn **ret)
{
    CHECK_KERNEL(k);
    return ws_session_device(device) ? ws_kernel_fn(k, device, ret) : CUDA_INVALID_DEVICE;
}

WS_DRV_API(cuKernelGetAttribute, (int *ret, int attribute, struct ws_kernel *k, int device))
{
    struct ws_fn *f;
    int code = kernel_on(k, device, &f);
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    return ws_fn_attribute(f, attribute, ret);
}

WS_DRV_API(cuKernelSetAttribute, (int attribute, int value, struct ws_kernel *k, int device))
{
    struct ws_fn *f;
    int code = kernel_on(k, device, &f);
    return code ? code : ws_fn_set_attribute(f, attribute, value);
}

WS_DRV_API(cuKernelSetCacheConfig, (struct ws_kernel * k, int config, int device))
{
    struct ws_fn *f;
    int code = kernel_on(k, device, &f);
    if (code || config < 0 || config > WS_CUDA_CACHE_CONFIG_LAST)
        return code ? code : CUDA_INVALID_VALUE;
    f->cache_config = config;
    return CUDA_OK;
}

WS_DRV_API(cuKernelGetParamInfo, (struct ws_kernel * k, size_t i, size_t *offset, size_t *bytes))
{
    struct ws_fn *f;
    int code = kernel_on(k, some_device(), &f);
    return code ? code : ws_fn_param(f, i, offset, bytes);
}

WS_DRV_API(cuKernelGetParamCount, (struct ws_kernel * k, size_t *n))
{
    struct ws_fn *f;
    int code = kernel_on(k, some_device(), &f);
    return code ? code : ws_fn_n_params(f, n);
}

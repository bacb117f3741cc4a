// SPDX-License-Identifier: Apache-2.0
/* Chapters "Initialization", "Error Handling" and "Driver Entry Point Access". */
#include "frontend/interpose/entrypoints.h"
#include "frontend/facade.h"

WS_DRV_API(cuInit, (unsigned flags))
{
    return flags ? CUDA_INVALID_VALUE : ws_facade_open();
}

WS_DRV_API(cuGetErrorName, (int code, const char **ret))
{
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = ws_drv_error_name(code);
    return *ret ? CUDA_OK : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuGetErrorString, (int code, const char **ret))
{
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = ws_drv_error_name(code) ? ws_cuda_error_text(code) : NULL;
    return *ret ? CUDA_OK : CUDA_INVALID_VALUE;
}

enum {
    FLAG_LEGACY_STREAM = 1,
    FLAG_PER_THREAD_STREAM = 2,
    FOUND = 0,
    SYMBOL_NOT_FOUND = 1,
    VERSION_NOT_SUFFICIENT = 2
};

WS_DRV_API(cuGetProcAddress_v2,
           (const char *name, void **ret, int version, uint64_t flags, int *ret_status))
{
    bool known;
    if (!name || !ret || flags > (FLAG_LEGACY_STREAM | FLAG_PER_THREAD_STREAM))
        return CUDA_INVALID_VALUE;
    *ret = ws_entrypoint_driver(name, version, flags & FLAG_PER_THREAD_STREAM, &known);
    if (ret_status)
        *ret_status = *ret ? FOUND : known ? VERSION_NOT_SUFFICIENT : SYMBOL_NOT_FOUND;
    return *ret ? CUDA_OK : CUDA_NOT_FOUND;
}

WS_DRV_API(cuGetProcAddress, (const char *name, void **ret, int version, uint64_t flags))
{
    return cuGetProcAddress_v2(name, ret, version, flags, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API: "Stream Ordered Memory Allocator": with the default pools (pool.c). */
#include "frontend/facade.h"
#include "frontend/pool.h"

WS_DRV_STREAM_API(cuMemAllocAsync, _ptsz, (uint64_t * ret, size_t bytes, void *stream),
                  (ret, bytes, stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    return ws_pool_alloc(c, c->device, bytes, id, true, ret);
}

WS_DRV_STREAM_API(cuMemAllocFromPoolAsync, _ptsz,
                  (uint64_t * ret, size_t bytes, void *pool, void *stream),
                  (ret, bytes, pool, stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    int device = ws_pool_device(pool);
    return device < 0 ? CUDA_INVALID_VALUE : ws_pool_alloc(c, device, bytes, id, true, ret);
}

WS_DRV_STREAM_API(cuMemFreeAsync, _ptsz, (uint64_t address, void *stream), (address, stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    return ws_pool_free(address, id);
}

WS_DRV_API(cuDeviceGetDefaultMemPool, (void **pool, int device))
{
    int code = ws_drv_check_init();
    return code ? code : ws_pool_of_device(device, pool);
}
WS_DRV_ALIAS(cuDeviceGetMemPool, cuDeviceGetDefaultMemPool)

WS_DRV_API(cuDeviceSetMemPool, (int device, void *pool))
{
    int code = ws_drv_check_init();
    if (!code && !ws_session_device(device))
        code = CUDA_INVALID_DEVICE;
    return code ? code : ws_pool_device(pool) == device ? CUDA_OK : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuMemPoolTrimTo, (void *pool, size_t keep_bytes))
{
    int code = ws_drv_check_init();
    return code ? code : ws_pool_device(pool) < 0 ? CUDA_INVALID_VALUE : CUDA_OK;
}

WS_DRV_API(cuMemPoolSetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_drv_check_init();
    return code ? code : ws_pool_set(pool, attribute, value);
}

WS_DRV_API(cuMemPoolGetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_drv_check_init();
    return code ? code : ws_pool_get(pool, attribute, value);
}

// SPDX-License-Identifier: Apache-2.0
/* Chapter "Stream Ordered Memory Allocator": with the default pools (pool.c). */
#include "frontend/facade.h"
#include "frontend/pool.h"

static int alloc(void **p, size_t bytes, int device, uint64_t stream)
{
    uint64_t address;
    if (!p)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = ws_pool_alloc(ws_ctx_current(), device, bytes, stream, true, &address);
    if (!code)
        *p = (void *)(uintptr_t)address;
    return ws_rt_record(code);
}

WS_RT_STREAM_API(cudaMallocAsync, _ptsz, (void **p, size_t bytes, void *stream), (p, bytes, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return alloc(p, bytes, device, id);
}

WS_RT_STREAM_API(cudaMallocFromPoolAsync, _ptsz, (void **p, size_t bytes, void *pool, void *stream),
                 (p, bytes, pool, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int of = ws_pool_device(pool);
    return of < 0 ? ws_rt_record(CUDA_INVALID_VALUE) : alloc(p, bytes, of, id);
}

WS_RT_STREAM_API(cudaFreeAsync, _ptsz, (void *p, void *stream), (p, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(ws_pool_free((uintptr_t)p, id));
}

WS_RT_API(cudaDeviceGetDefaultMemPool, (void **pool, int device))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : ws_pool_of_device(device, pool));
}
WS_RT_API(cudaDeviceGetMemPool, (void **pool, int device))
{
    return cudaDeviceGetDefaultMemPool(pool, device);
}

WS_RT_API(cudaDeviceSetMemPool, (int device, void *pool))
{
    int code = ws_facade_open();
    if (!code && !ws_session_device(device))
        code = CUDA_INVALID_DEVICE;
    if (!code && ws_pool_device(pool) != device)
        code = CUDA_INVALID_VALUE;
    return ws_rt_record(code);
}

WS_RT_API(cudaMemPoolTrimTo, (void *pool, size_t keep_bytes))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : ws_pool_device(pool) < 0 ? CUDA_INVALID_VALUE : CUDA_OK);
}

WS_RT_API(cudaMemPoolSetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : ws_pool_set(pool, attribute, value));
}

WS_RT_API(cudaMemPoolGetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : ws_pool_get(pool, attribute, value));
}

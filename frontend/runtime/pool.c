// SPDX-License-Identifier: Apache-2.0
/* Chapter "Stream Ordered Memory Allocator": see pool.c. */
#include "frontend/facade.h"
#include "frontend/memory/pool.h"

static int alloc(void **p, size_t bytes, void *pool, int device, uint64_t stream)
{
    uint64_t address;
    if (!p)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = ws_pool_alloc(pool, device, bytes, stream, true, &address);
    if (!code)
        *p = (void *)(uintptr_t)address;
    return ws_rt_record(code);
}

WS_RT_STREAM_API(cudaMallocAsync, _ptsz, (void **p, size_t bytes, void *stream), (p, bytes, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return alloc(p, bytes, NULL, device, id);
}

WS_RT_STREAM_API(cudaMallocFromPoolAsync, _ptsz, (void **p, size_t bytes, void *pool, void *stream),
                 (p, bytes, pool, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return pool ? alloc(p, bytes, pool, device, id) : ws_rt_record(CUDA_INVALID_VALUE);
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
    return ws_rt_record(code ? code : (ws_pool_default(device, pool)));
}

WS_RT_API(cudaDeviceGetMemPool, (void **pool, int device))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_current(device, pool)));
}

WS_RT_API(cudaDeviceSetMemPool, (int device, void *pool))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_set_current(device, pool)));
}

WS_RT_API(cudaMemGetDefaultMemPool, (void **pool, struct cuda_mem_location *l, int type))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_at(l, type, false, pool, NULL)));
}

WS_RT_API(cudaMemGetMemPool, (void **pool, struct cuda_mem_location *l, int type))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_at(l, type, true, pool, NULL)));
}

WS_RT_API(cudaMemSetMemPool, (struct cuda_mem_location * l, int type, void *pool))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code
                             : (pool ? ws_pool_at(l, type, true, NULL, pool) : CUDA_INVALID_VALUE));
}

WS_RT_API(cudaMemPoolCreate, (void **pool, const struct cuda_mem_pool_props *props))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_create(pool, props)));
}

WS_RT_API(cudaMemPoolDestroy, (void *pool))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_destroy(pool)));
}

WS_RT_API(cudaMemPoolTrimTo, (void *pool, size_t keep_bytes))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_trim(pool, keep_bytes)));
}

WS_RT_API(cudaMemPoolSetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_set(pool, attribute, value)));
}

WS_RT_API(cudaMemPoolGetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_get(pool, attribute, value)));
}

WS_RT_API(cudaMemPoolSetAccess, (void *pool, const struct cuda_mem_access_desc *d, size_t n))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_set_access(pool, d, n)));
}

WS_RT_API(cudaMemPoolGetAccess, (int *flags, void *pool, struct cuda_mem_location *l))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_get_access(pool, l, flags)));
}

WS_RT_API(cudaMemPoolExportToShareableHandle, (void *ret, void *pool, int type, unsigned flags))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_export(pool, type, flags, ret)));
}

WS_RT_API(cudaMemPoolImportFromShareableHandle,
          (void **pool, void *handle, int type, unsigned flags))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_import(pool, (int)(intptr_t)handle, type, flags)));
}

WS_RT_API(cudaMemPoolExportPointer, (struct cuda_ipc_handle * ret, void *p))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_export_pointer(ret, (uintptr_t)p)));
}

WS_RT_API(cudaMemPoolImportPointer, (void **ret, void *pool, struct cuda_ipc_handle *h))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : (ws_pool_import_pointer(pool, h, (uint64_t *)(void *)ret)));
}

// SPDX-License-Identifier: Apache-2.0
/* Chapter "Stream Ordered Memory Allocator": what the calls do stands in memory/pool.c. */
#include "frontend/facade.h"
#include "frontend/memory/pool.h"

WS_BOTH_STREAM_API(cudaMallocAsync, cuMemAllocAsync, _ptsz,
                   (uint64_t * ret, size_t bytes, void *stream), (ret, bytes, stream))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return ws_pool_alloc(NULL, c->device, bytes, id, ret);
}

WS_BOTH_STREAM_API(cudaMallocFromPoolAsync, cuMemAllocFromPoolAsync, _ptsz,
                   (uint64_t * ret, size_t bytes, void *pool, void *stream),
                   (ret, bytes, pool, stream))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return pool ? ws_pool_alloc(pool, c->device, bytes, id, ret) : CUDA_INVALID_VALUE;
}

WS_BOTH_STREAM_API(cudaFreeAsync, cuMemFreeAsync, _ptsz, (uint64_t address, void *stream),
                   (address, stream))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return ws_pool_free(address, id);
}

WS_BOTH_API(cudaDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (void **pool, int device),
            (pool, device))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_default(device, pool);
}

WS_BOTH_API(cudaDeviceGetMemPool, cuDeviceGetMemPool, (void **pool, int device), (pool, device))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_current(device, pool);
}

WS_BOTH_API(cudaDeviceSetMemPool, cuDeviceSetMemPool, (int device, void *pool), (device, pool))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_set_current(device, pool);
}

WS_BOTH_API(cudaMemGetDefaultMemPool, cuMemGetDefaultMemPool,
            (void **pool, struct cuda_mem_location *l, int type), (pool, l, type))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_at(l, type, false, pool, NULL);
}

WS_BOTH_API(cudaMemGetMemPool, cuMemGetMemPool,
            (void **pool, struct cuda_mem_location *l, int type), (pool, l, type))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_at(l, type, true, pool, NULL);
}

WS_BOTH_API(cudaMemSetMemPool, cuMemSetMemPool,
            (struct cuda_mem_location * l, int type, void *pool), (l, type, pool))
{
    int code = ws_api_open(api);
    if (code || !pool)
        return code ? code : CUDA_INVALID_VALUE;
    return ws_pool_at(l, type, true, NULL, pool);
}

WS_BOTH_API(cudaMemPoolCreate, cuMemPoolCreate,
            (void **pool, const struct cuda_mem_pool_props *props), (pool, props))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_create(pool, props);
}

WS_BOTH_API(cudaMemPoolDestroy, cuMemPoolDestroy, (void *pool), (pool))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_destroy(pool);
}

WS_BOTH_API(cudaMemPoolTrimTo, cuMemPoolTrimTo, (void *pool, size_t keep_bytes), (pool, keep_bytes))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_trim(pool, keep_bytes);
}

WS_BOTH_API(cudaMemPoolSetAttribute, cuMemPoolSetAttribute,
            (void *pool, int attribute, void *value), (pool, attribute, value))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_set(pool, attribute, value);
}

WS_BOTH_API(cudaMemPoolGetAttribute, cuMemPoolGetAttribute,
            (void *pool, int attribute, void *value), (pool, attribute, value))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_get(pool, attribute, value);
}

WS_BOTH_API(cudaMemPoolSetAccess, cuMemPoolSetAccess,
            (void *pool, const struct cuda_mem_access_desc *d, size_t n), (pool, d, n))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_set_access(pool, d, n);
}

WS_BOTH_API(cudaMemPoolGetAccess, cuMemPoolGetAccess,
            (int *flags, void *pool, struct cuda_mem_location *l), (flags, pool, l))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_get_access(pool, l, flags);
}

/* The runtime's flags have 32 bits, the driver's 64. */
static unsigned long long flags_of(enum ws_api api, unsigned long long flags)
{
    return api == WS_RUNTIME ? (unsigned)flags : flags;
}

WS_BOTH_API(cudaMemPoolExportToShareableHandle, cuMemPoolExportToShareableHandle,
            (void *ret, void *pool, int type, unsigned long long flags), (ret, pool, type, flags))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_export(pool, type, flags_of(api, flags), ret);
}

WS_BOTH_API(cudaMemPoolImportFromShareableHandle, cuMemPoolImportFromShareableHandle,
            (void **pool, void *handle, int type, unsigned long long flags),
            (pool, handle, type, flags))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_import(pool, (int)(intptr_t)handle, type, flags_of(api, flags));
}

WS_BOTH_API(cudaMemPoolExportPointer, cuMemPoolExportPointer,
            (struct cuda_ipc_handle * ret, uint64_t p), (ret, p))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_export_pointer(ret, p);
}

WS_BOTH_API(cudaMemPoolImportPointer, cuMemPoolImportPointer,
            (uint64_t * ret, void *pool, struct cuda_ipc_handle *h), (ret, pool, h))
{
    int code = ws_api_open(api);
    return code ? code : ws_pool_import_pointer(pool, h, ret);
}

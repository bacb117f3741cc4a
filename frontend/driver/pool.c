// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API: "Stream Ordered Memory Allocator": see pool.c. */
#include "frontend/facade.h"
#include "frontend/memory/pool.h"

WS_DRV_STREAM_API(cuMemAllocAsync, _ptsz, (uint64_t * ret, size_t bytes, void *stream),
                  (ret, bytes, stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    return ws_pool_alloc(NULL, c->device, bytes, id, true, ret);
}

WS_DRV_STREAM_API(cuMemAllocFromPoolAsync, _ptsz,
                  (uint64_t * ret, size_t bytes, void *pool, void *stream),
                  (ret, bytes, pool, stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    return pool ? ws_pool_alloc(pool, c->device, bytes, id, true, ret) : CUDA_INVALID_VALUE;
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
    return code ? code : (ws_pool_default(device, pool));
}

WS_DRV_API(cuDeviceGetMemPool, (void **pool, int device))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_current(device, pool));
}

WS_DRV_API(cuDeviceSetMemPool, (int device, void *pool))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_set_current(device, pool));
}

WS_DRV_API(cuMemGetDefaultMemPool, (void **pool, struct cuda_mem_location *l, int type))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_at(l, type, false, pool, NULL));
}

WS_DRV_API(cuMemGetMemPool, (void **pool, struct cuda_mem_location *l, int type))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_at(l, type, true, pool, NULL));
}

WS_DRV_API(cuMemSetMemPool, (struct cuda_mem_location * l, int type, void *pool))
{
    int code = ws_drv_check_init();
    return code ? code : (pool ? ws_pool_at(l, type, true, NULL, pool) : CUDA_INVALID_VALUE);
}

WS_DRV_API(cuMemPoolCreate, (void **pool, const struct cuda_mem_pool_props *props))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_create(pool, props));
}

WS_DRV_API(cuMemPoolDestroy, (void *pool))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_destroy(pool));
}

WS_DRV_API(cuMemPoolTrimTo, (void *pool, size_t keep_bytes))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_trim(pool, keep_bytes));
}

WS_DRV_API(cuMemPoolSetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_set(pool, attribute, value));
}

WS_DRV_API(cuMemPoolGetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_get(pool, attribute, value));
}

WS_DRV_API(cuMemPoolSetAccess, (void *pool, const struct cuda_mem_access_desc *d, size_t n))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_set_access(pool, d, n));
}

WS_DRV_API(cuMemPoolGetAccess, (int *flags, void *pool, struct cuda_mem_location *l))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_get_access(pool, l, flags));
}

WS_DRV_API(cuMemPoolExportToShareableHandle,
           (void *ret, void *pool, int type, unsigned long long flags))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_export(pool, type, flags, ret));
}

WS_DRV_API(cuMemPoolImportFromShareableHandle,
           (void **pool, void *handle, int type, unsigned long long flags))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_import(pool, (int)(intptr_t)handle, type, flags));
}

WS_DRV_API(cuMemPoolExportPointer, (struct cuda_ipc_handle * ret, uint64_t p))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_export_pointer(ret, p));
}

WS_DRV_API(cuMemPoolImportPointer, (uint64_t * ret, void *pool, struct cuda_ipc_handle *h))
{
    int code = ws_drv_check_init();
    return code ? code : (ws_pool_import_pointer(pool, h, ret));
}

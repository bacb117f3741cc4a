// SPDX-License-Identifier: Apache-2.0
/* Chapter "Stream Ordered Memory Allocator". Allocating at once is allowed: memory may be there before the stream gets to it.
 * Freeing must wait for the stream, and the session's free waits for all of the client's work on the device. So each device
 * has its one default pool, which keeps nothing; other pools are not done. */
#include "frontend/facade.h"

struct pool { uint64_t attributes[4]; _Atomic uint64_t used_bytes, used_high_bytes; };
static struct pool pools[WS_MAX_DEVICES];

enum { /* attributes of pools */
    REUSE_FOLLOW_EVENT_DEPENDENCIES = 1,
    REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3,
    RELEASE_THRESHOLD = 4,
    RESERVED_CURRENT = 5,
    RESERVED_HIGH = 6,
    USED_CURRENT = 7,
    USED_HIGH = 8,
};

static int pool_device(const void *pool)
{
    size_t at = (uintptr_t)pool - (uintptr_t)pools;
    return at < sizeof pools && at % sizeof pools[0] == 0 && ws_session_device((int)(at / sizeof pools[0])) ? (int)(at / sizeof pools[0]) : -1;
}

static int alloc(void **p, size_t bytes, int device, uint64_t stream)
{
    uint64_t address;
    int stream_device;
    if (!p)
        return ws_rt_record(CUDA_INVALID_VALUE);
    ws_err r = ws_session_stream_info(stream, &stream_device, NULL, NULL);
    if (r)
        return WS_RT_DONE(r);
    if (!bytes) {
        *p = NULL;
        return CUDA_OK;
    }
    r = ws_session_mem_alloc(device, bytes, &address);
    if (r)
        return WS_RT_DONE(r);
    ws_ctx_own(ws_ctx_current(), WS_OWNED_MEMORY, address);
    uint64_t used = atomic_fetch_add(&pools[device].used_bytes, bytes) + bytes;
    uint64_t high = pools[device].used_high_bytes;
    while (used > high && !atomic_compare_exchange_weak(&pools[device].used_high_bytes, &high, used))
        ;
    *p = (void *)(uintptr_t)address;
    return CUDA_OK;
}

WS_RT_STREAM_API(cudaMallocAsync, _ptsz, (void **p, size_t bytes, void *stream), (p, bytes, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return alloc(p, bytes, device, id);
}

WS_RT_STREAM_API(cudaMallocFromPoolAsync, _ptsz, (void **p, size_t bytes, void *pool, void *stream), (p, bytes, pool, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int of = pool_device(pool);
    return of < 0 ? ws_rt_record(CUDA_INVALID_VALUE) : alloc(p, bytes, of, id);
}

WS_RT_STREAM_API(cudaFreeAsync, _ptsz, (void *p, void *stream), (p, stream))
{
    struct ws_mem_info m;
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    ws_err r = ws_session_stream_info(id, NULL, NULL, NULL);
    if (r || !p)
        return WS_RT_DONE(r);
    ws_session_mem_find((uintptr_t)p, &m);
    ws_ctx_disown(WS_OWNED_MEMORY, (uintptr_t)p);
    r = ws_session_mem_free((uintptr_t)p);
    if (!r && m.kind == WS_MEM_DEVICE) {
        uint64_t used = pools[m.device].used_bytes; /* memory of cudaMalloc may be freed here too: never below 0 */
        while (!atomic_compare_exchange_weak(&pools[m.device].used_bytes, &used, used > m.bytes ? used - m.bytes : 0))
            ;
    }
    return WS_RT_DONE(r);
}

static int default_pool(void **pool, int device)
{
    int code = ws_facade_open();
    if (!code && !ws_session_device(device))
        code = CUDA_INVALID_DEVICE;
    if (!code && !pool)
        code = CUDA_INVALID_VALUE;
    if (!code)
        *pool = &pools[device];
    return ws_rt_record(code);
}
WS_RT_API(cudaDeviceGetDefaultMemPool, (void **pool, int device))
{
    return default_pool(pool, device);
}
WS_RT_API(cudaDeviceGetMemPool, (void **pool, int device))
{
    return default_pool(pool, device);
}

WS_RT_API(cudaDeviceSetMemPool, (int device, void *pool))
{
    int code = ws_facade_open();
    if (!code && !ws_session_device(device))
        code = CUDA_INVALID_DEVICE;
    if (!code && pool_device(pool) != device)
        code = CUDA_INVALID_VALUE;
    return ws_rt_record(code);
}

WS_RT_API(cudaMemPoolTrimTo, (void *pool, size_t keep_bytes))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : pool_device(pool) < 0 ? CUDA_INVALID_VALUE : CUDA_OK);
}

WS_RT_API(cudaMemPoolSetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_facade_open();
    int d = code ? -1 : pool_device(pool);
    if (!code && (d < 0 || !value))
        code = CUDA_INVALID_VALUE;
    if (code)
        return ws_rt_record(code);
    if (attribute >= REUSE_FOLLOW_EVENT_DEPENDENCIES && attribute <= REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        pools[d].attributes[attribute - 1] = *(int *)value != 0;
    else if (attribute == RELEASE_THRESHOLD)
        pools[d].attributes[attribute - 1] = *(uint64_t *)value;
    else if (attribute == USED_HIGH && !*(uint64_t *)value) /* only 0 may be set: starts anew */
        pools[d].used_high_bytes = pools[d].used_bytes;
    else if (attribute != RESERVED_HIGH || *(uint64_t *)value)
        code = CUDA_INVALID_VALUE;
    return ws_rt_record(code);
}

WS_RT_API(cudaMemPoolGetAttribute, (void *pool, int attribute, void *value))
{
    int code = ws_facade_open();
    int d = code ? -1 : pool_device(pool);
    if (!code && (d < 0 || !value || attribute < REUSE_FOLLOW_EVENT_DEPENDENCIES || attribute > USED_HIGH))
        code = CUDA_INVALID_VALUE;
    if (code)
        return ws_rt_record(code);
    if (attribute <= REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        *(int *)value = (int)pools[d].attributes[attribute - 1];
    else if (attribute == RELEASE_THRESHOLD)
        *(uint64_t *)value = pools[d].attributes[attribute - 1];
    else
        *(uint64_t *)value = attribute == RESERVED_CURRENT || attribute == USED_CURRENT ? pools[d].used_bytes : pools[d].used_high_bytes;
    return CUDA_OK;
}

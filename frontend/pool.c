// SPDX-License-Identifier: Apache-2.0
/* Stream-ordered allocation. Allocating at once is allowed: memory may be there before the stream gets to it. Freeing must wait
 * for the stream, and the session's free waits for all of the client's work on the device. So each device has its one default
 * pool, which keeps nothing back; other pools are not done. */
#include "frontend/pool.h"

#include "frontend/errors.h"
#include "frontend/work.h"

struct pool {
    _Atomic uint64_t attributes[4], used_bytes, high_bytes;
};
static struct pool pools[WS_MAX_DEVICES];

enum { /* attributes */
       REUSE_FIRST = 1,
       REUSE_LAST = 3,
       RELEASE_THRESHOLD = 4,
       RESERVED_CURRENT = 5,
       RESERVED_HIGH = 6,
       USED_CURRENT = 7,
       USED_HIGH = 8,
};

int ws_pool_of_device(int device, void **ret)
{
    if (!ws_session_device(device))
        return CUDA_INVALID_DEVICE;
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = &pools[device];
    return CUDA_OK;
}

int ws_pool_device(const void *pool)
{
    size_t at = (uintptr_t)pool - (uintptr_t)pools;
    if (at >= sizeof pools || at % sizeof pools[0] ||
        !ws_session_device((int)(at / sizeof pools[0])))
        return -1;
    return (int)(at / sizeof pools[0]);
}

int ws_pool_alloc(struct ws_ctx *c, int device, uint64_t bytes, uint64_t stream, bool zero_ok,
                  uint64_t *ret_address)
{
    ws_err r = ws_session_stream_info(stream, NULL, NULL, NULL);
    if (r)
        return ws_drv_error(r);
    if (!ret_address || (!bytes && !zero_ok))
        return CUDA_INVALID_VALUE;
    *ret_address = 0;
    if (!bytes)
        return CUDA_OK;
    if (ws_work_capturing(stream)) {
        struct ws_work w = {
            .kind = WS_WORK_ALLOC,
            .memory = {.bytes = bytes, .device = device, .ret_address = ret_address}};
        return ws_drv_error(ws_work_put(stream, &w, true));
    }
    r = ws_session_mem_alloc(device, bytes, ret_address);
    if (r)
        return ws_drv_error(r);
    ws_ctx_own(c, WS_OWNED_MEMORY, *ret_address);
    struct pool *p = &pools[device];
    uint64_t used = atomic_fetch_add(&p->used_bytes, bytes) + bytes, high = p->high_bytes;
    while (used > high && !atomic_compare_exchange_weak(&p->high_bytes, &high, used))
        ;
    return CUDA_OK;
}

int ws_pool_free(uint64_t address, uint64_t stream)
{
    struct ws_mem_info m;
    ws_err r = ws_session_stream_info(stream, NULL, NULL, NULL);
    if (r || !address)
        return ws_drv_error(r);
    if (ws_work_capturing(stream)) {
        struct ws_work w = {.kind = WS_WORK_FREE, .memory = {.address = address}};
        return ws_drv_error(ws_work_put(stream, &w, true));
    }
    int code = ws_block_free_outside(address);
    if (code >= 0)
        return code;
    ws_session_mem_find(address, &m);
    ws_ctx_disown(WS_OWNED_MEMORY, address);
    r = ws_session_mem_free(address);
    if (!r &&
        m.kind == WS_MEM_DEVICE) { /* memory of cudaMalloc may be freed here too: never below 0 */
        _Atomic uint64_t *used_bytes = &pools[m.device].used_bytes;
        uint64_t used = *used_bytes;
        while (
            !atomic_compare_exchange_weak(used_bytes, &used, used > m.bytes ? used - m.bytes : 0))
            ;
    }
    return ws_drv_error(r);
}

int ws_pool_set(void *pool, int attribute, const void *value)
{
    int d = ws_pool_device(pool);
    if (d < 0 || !value)
        return CUDA_INVALID_VALUE;
    if (attribute >= REUSE_FIRST && attribute <= REUSE_LAST)
        pools[d].attributes[attribute - 1] = *(const int *)value != 0;
    else if (attribute == RELEASE_THRESHOLD)
        pools[d].attributes[attribute - 1] = *(const uint64_t *)value;
    else if ((attribute == USED_HIGH || attribute == RESERVED_HIGH) &&
             !*(const uint64_t *)value) /* only 0: start anew */
        pools[d].high_bytes = pools[d].used_bytes;
    else
        return CUDA_INVALID_VALUE;
    return CUDA_OK;
}

int ws_pool_get(void *pool, int attribute, void *ret)
{
    int d = ws_pool_device(pool);
    if (d < 0 || !ret || attribute < REUSE_FIRST || attribute > USED_HIGH)
        return CUDA_INVALID_VALUE;
    if (attribute <= REUSE_LAST)
        *(int *)ret = (int)pools[d].attributes[attribute - 1];
    else if (attribute == RELEASE_THRESHOLD)
        *(uint64_t *)ret = pools[d].attributes[attribute - 1];
    else
        *(uint64_t *)ret = attribute == RESERVED_CURRENT || attribute == USED_CURRENT
                               ? pools[d].used_bytes
                               : pools[d].high_bytes;
    return CUDA_OK;
}

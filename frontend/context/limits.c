// SPDX-License-Identifier: Apache-2.0
/* Limits of a context. The sizes of the printf buffer, of the device's heap and of the stack go to
 * the daemon. That of the stack has an effect on real GPUs only: a software device gives each
 * thread what its kernel needs. The other limits concern kernels that start kernels, and caches of
 * real hardware: they are hints, kept as CUDA keeps them. Source: CUDA Runtime API,
 * cudaDeviceSetLimit. */
#include "frontend/context/limits.h"

#include "frontend/context/attributes.h"
#include "frontend/errors.h"

enum {
    STACK,
    PRINTF_FIFO,
    MALLOC_HEAP,
    SYNC_DEPTH,
    PENDING_LAUNCHES,
    L2_FETCH,
    PERSISTING_L2,
    SHMEM_SIZE, /* of CUDA in graphics contexts, which are not done */
    STACK_MAX = 512 * 1024 - 1024,
    L2_FETCH_MAX = 128,
    CC_SYNC_DEPTH_GONE = 9
};

const uint64_t ws_limits_default[WS_CTX_LIMITS] = {
    [STACK] = 1024,      [PRINTF_FIFO] = 1 << 20,   [MALLOC_HEAP] = 8 << 20,
    [SYNC_DEPTH] = 2,    [PENDING_LAUNCHES] = 2048, [L2_FETCH] = 64,
    [PERSISTING_L2] = 0, [SHMEM_SIZE] = 0};

static uint64_t persisting_l2(const Ws__Device *d)
{
    enum { MAX_PERSISTING_L2 = 108 };
    int v = 0;
    return d && ws_device_attribute(d, MAX_PERSISTING_L2, &v) ? (uint64_t)v : 0;
}

static bool known(const struct ws_cuda_context *c, int limit)
{
    const Ws__Device *d = ws_session_device(c->device);
    if (limit == SYNC_DEPTH && d && d->cc_major >= CC_SYNC_DEPTH_GONE)
        return false;
    return limit >= STACK && limit < SHMEM_SIZE;
}

int ws_ctx_set_limit(struct ws_cuda_context *c, int limit, uint64_t value)
{
    const Ws__Device *d = ws_session_device(c->device);
    ws_err r = WS__ERROR__OK;
    if (!known(c, limit))
        return CUDA_UNSUPPORTED_LIMIT;
    switch (limit) {
    case STACK:
        if (value > STACK_MAX)
            return CUDA_INVALID_VALUE;
        value = WS_ALIGN_UP(value, UINT64_C(16));
        r = ws_session_set_limit(c->device, WS_LIMIT_STACK, value);
        break;
    case PRINTF_FIFO:
        r = ws_session_set_limit(c->device, WS_LIMIT_PRINTF_FIFO, value);
        break;
    case MALLOC_HEAP:
        if (d && value > d->memory_bytes)
            return CUDA_OUT_OF_MEMORY;
        r = ws_session_set_limit(c->device, WS_LIMIT_MALLOC_HEAP, value);
        break;
    case L2_FETCH:
        if (value > L2_FETCH_MAX)
            return CUDA_INVALID_VALUE;
        break;
    case PERSISTING_L2: /* at most what may be set aside */
        value = WS_MIN(value, persisting_l2(d));
        break;
    default:
        break;
    }
    if (!r)
        c->limits[limit] = value;
    return ws_drv_error(r);
}

void ws_ctx_reset_limits(struct ws_cuda_context *c)
{
    for (int i = STACK; i < SHMEM_SIZE; i++) {
        if (c->limits[i] == ws_limits_default[i])
            continue;
        if (i == PRINTF_FIFO || i == MALLOC_HEAP) /* what the daemon keeps too */
            (void)ws_session_set_limit(
                c->device, i == PRINTF_FIFO ? WS_LIMIT_PRINTF_FIFO : WS_LIMIT_MALLOC_HEAP,
                ws_limits_default[i]);
        c->limits[i] = ws_limits_default[i];
    }
}

int ws_ctx_get_limit(const struct ws_cuda_context *c, int limit, uint64_t *ret)
{
    if (!ret)
        return CUDA_INVALID_VALUE;
    if (!known(c, limit))
        return CUDA_UNSUPPORTED_LIMIT;
    *ret = c->limits[limit];
    return CUDA_OK;
}

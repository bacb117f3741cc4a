// SPDX-License-Identifier: Apache-2.0
/* The device's own memory: what operations need besides their client's memory.
 *
 * To make or to release memory, the driver may wait until all kernels that run have ended. A kernel
 * may in turn wait for an operation that is just being started. So memory is not made or released
 * where operations are started. When the device is opened, the stock makes one slab of pinned host
 * memory and one of GPU memory; operations take stretches of them and give them back, without a
 * call of the driver. A slab is released when the device is closed.
 *
 * If the stock has no stretch of the size, first the queues that are idle give back what they took
 * (run.c). If that does not help, a thread that may block makes another slab. Only then a kernel
 * could wait for an operation that waits for that kernel. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/cuda/cuda_private.h"

enum { UNIT_BYTES = 4096, SPARE_BYTES = 16 << 20 };

struct ws_cuda_slab {
    struct ws_cuda_slab *next;
    uint64_t at;
    uint32_t n_units;
    bool taken[]; /* [n_units] */
};

static uint32_t units_of(uint64_t bytes)
{
    return (uint32_t)((bytes + UNIT_BYTES - 1) / UNIT_BYTES);
}

/* The first of @n free units in a row. Return: false: there are none. */
static bool find(const struct ws_cuda_slab *s, uint32_t n, uint32_t *ret)
{
    uint32_t row = 0;
    for (uint32_t k = 0; k < s->n_units; k++) {
        row = s->taken[k] ? 0 : row + 1;
        if (row == n) {
            *ret = k + 1 - n;
            return true;
        }
    }
    return false;
}

uint64_t ws_cuda_stock_take(struct ws_cuda *d, enum ws_cuda_stock kind, uint64_t bytes)
{
    uint32_t n = units_of(bytes), first;
    uint64_t at = 0;
    pthread_mutex_lock(&d->stock_lock);
    for (struct ws_cuda_slab *s = d->stock[kind]; s && !at; s = s->next)
        if (find(s, n, &first)) {
            memset(s->taken + first, true, n * sizeof(*s->taken));
            at = s->at + (uint64_t)first * UNIT_BYTES;
        }
    pthread_mutex_unlock(&d->stock_lock);
    return at;
}

void ws_cuda_stock_give(struct ws_cuda *d, enum ws_cuda_stock kind, uint64_t at, uint64_t bytes)
{
    if (!at)
        return;
    pthread_mutex_lock(&d->stock_lock);
    for (struct ws_cuda_slab *s = d->stock[kind]; s; s = s->next)
        if (at >= s->at && at - s->at < (uint64_t)s->n_units * UNIT_BYTES)
            memset(s->taken + (at - s->at) / UNIT_BYTES, false,
                   units_of(bytes) * sizeof(*s->taken));
    pthread_mutex_unlock(&d->stock_lock);
}

ws_cu_result ws_cuda_stock_grow(struct ws_cuda *d, enum ws_cuda_stock kind, uint64_t bytes)
{
    uint32_t n = units_of(bytes);
    struct ws_cuda_slab *s = ws_alloc(sizeof(*s) + n * sizeof(*s->taken));
    void *p = NULL;
    if (!s)
        return WS_CU_OUT_OF_MEMORY;
    s->n_units = n;
    bytes = (uint64_t)n * UNIT_BYTES;
    ws_cu_result r;
    if (kind == WS_CUDA_STOCK_PINNED) {
        r = d->cu.cuMemHostAlloc(&p, bytes, WS_CU_MEMHOSTALLOC_DEVICEMAP);
        s->at = (uintptr_t)p;
    } else {
        ws_cu_ptr va = 0;
        r = d->cu.cuMemAlloc(&va, bytes);
        s->at = va;
    }
    if (r != WS_CU_SUCCESS) {
        free(s);
        return r;
    }
    pthread_mutex_lock(&d->stock_lock);
    s->next = d->stock[kind];
    d->stock[kind] = s;
    pthread_mutex_unlock(&d->stock_lock);
    return WS_CU_SUCCESS;
}

ws_cu_result ws_cuda_stock_open(struct ws_cuda *d, uint32_t n_queues)
{
    uint64_t device = n_queues * (uint64_t)(WS_CUDA_TABLE_BYTES + WS_CUDA_CONTROL_ROOM);
    uint64_t pinned = device + n_queues * (uint64_t)WS_CUDA_BOUNCE_BYTES + WS_CUDA_ZEROS_BYTES;
    ws_cu_result r = ws_cuda_stock_grow(d, WS_CUDA_STOCK_PINNED, pinned + SPARE_BYTES);
    if (r == WS_CU_SUCCESS)
        r = ws_cuda_stock_grow(d, WS_CUDA_STOCK_DEVICE, device + SPARE_BYTES);
    if (r != WS_CU_SUCCESS)
        return r;
    void *zeros =
        (void *)(uintptr_t)ws_cuda_stock_take(d, WS_CUDA_STOCK_PINNED, WS_CUDA_ZEROS_BYTES);
    memset(zeros, 0, WS_CUDA_ZEROS_BYTES);
    d->zeros = zeros;
    return WS_CU_SUCCESS;
}

void ws_cuda_stock_close(struct ws_cuda *d)
{
    for (int kind = 0; kind < _WS_CUDA_STOCKS; kind++)
        for (struct ws_cuda_slab *s; (s = d->stock[kind]);) {
            d->stock[kind] = s->next;
            if (kind == WS_CUDA_STOCK_PINNED)
                (void)d->cu.cuMemFreeHost((void *)(uintptr_t)s->at);
            else
                (void)d->cu.cuMemFree(s->at);
            free(s);
        }
    pthread_mutex_destroy(&d->stock_lock);
}

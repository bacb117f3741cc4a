// SPDX-License-Identifier: Apache-2.0
/* Isolation of clients that share a context: kernels check their addresses (ptx/passes/fence.c)
 * against the ranges of their space.
 *
 * Each queue has a table of ranges in the GPU's memory, and remembers which version of which space
 * the table holds. So a client that launches again and again without new allocations pays only for
 * the kernel's own checks. A kernel uses the ranges as they were when it was started: memory that
 * is freed meanwhile stays until the kernel has ended (device/space.h).
 *
 * An access outside the ranges is noted in pinned memory of the host. That memory is written only
 * at a fault, and read when the kernel has ended, so nothing has to be copied for it. */
#include <string.h>

#include "base/alloc.h"
#include "device/cuda/cuda_private.h"
#include "ptx/passes/sampler.h"

static uint64_t table_bytes(uint32_t n)
{
    return sizeof(struct ws_ptx_ranges) +
           n * (uint64_t)sizeof(((struct ws_ptx_ranges *)0)->range[0]);
}

void ws_cuda_fence_free(struct ws_cuda *d, struct ws_cuda_queue *q)
{
    ws_cuda_stock_give(d, WS_CUDA_STOCK_PINNED, (uintptr_t)q->ranges, q->table_bytes);
    ws_cuda_stock_give(d, WS_CUDA_STOCK_DEVICE, q->ranges_va, q->table_bytes);
    q->ranges = NULL;
    q->ranges_va = 0;
    q->table_bytes = 0;
    q->cap_ranges = 0;
    q->ranges_space = 0;
}

/* Room for @n ranges. Nothing runs on the queue. Return: false: the stock has none. */
static bool make_room(struct ws_cuda *d, struct ws_cuda_queue *q, uint32_t n, bool may_block)
{
    uint64_t bytes = WS_MAX(q->table_bytes, (uint64_t)WS_CUDA_TABLE_BYTES);
    if (n <= q->cap_ranges)
        return true;
    while (bytes < table_bytes(n))
        bytes *= 2;
    ws_cuda_fence_free(d, q);
    q->table_bytes = bytes;
    q->ranges = (void *)(uintptr_t)ws_cuda_stock_find(d, WS_CUDA_STOCK_PINNED, bytes, may_block);
    if (q->ranges)
        q->ranges_va = ws_cuda_stock_find(d, WS_CUDA_STOCK_DEVICE, bytes, may_block);
    if (!q->ranges_va) {
        ws_cuda_fence_free(d, q);
        return false;
    }
    q->cap_ranges = (uint32_t)((bytes - table_bytes(0)) / (table_bytes(1) - table_bytes(0)));
    return true;
}

static bool is_stale(const struct ws_cuda_queue *q, const struct ws_space *s)
{
    return q->ranges_space != ws_space_id(s) || q->ranges_version != ws_space_version(s);
}

enum ws_cuda_start ws_cuda_fence_prepare(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block)
{
    enum { BOX = 1, MORE = 8 }; /* that another thread may map meanwhile */
    struct ws_space *s = r->op->space;
    if (d->options.unfenced || r->op->launch.instance->module->ptx->fenced ||
        !is_stale(r->queue, s))
        return WS_CUDA_STARTED;
    uint32_t n = BOX + MORE + ws_space_ranges(s, UINT32_C(1) << d->base.index, NULL, 0, NULL);
    if (make_room(d, r->queue, n, may_block))
        return WS_CUDA_STARTED;
    if (!may_block)
        return WS_CUDA_BLOCKS;
    ws_check_fail(r->op, WS_DEV_E_NO_MEMORY, "no memory for the table of %u ranges", n);
    return WS_CUDA_DONE;
}

static ws_cu_result set_table(struct ws_cuda *d, struct ws_cuda_queue *q, struct ws_space *s,
                              uint64_t box)
{
    uint32_t who = UINT32_C(1) << d->base.index, n = 0;
    _Static_assert(sizeof(q->ranges->range[0]) == sizeof(uint64_t[2]), "{address, bytes}");
    uint32_t own = box ? 1 : 0; /* the box is the first range */
    q->ranges_space = 0;
    n = own + ws_space_ranges(s, who, (uint64_t(*)[2])(void *)&q->ranges->range[own],
                              q->cap_ranges - own, &q->ranges_version);
    if (n > q->cap_ranges) /* more were mapped since ws_cuda_fence_prepare() */
        return WS_CU_NOT_READY;
    if (box)
        q->ranges->range[0] = (typeof(q->ranges->range[0])){(uintptr_t)q->box, box};
    q->ranges_box = box;
    q->ranges->n = n;
    q->largest = n > own ? own : 0;
    for (uint32_t k = own + 1; k < n; k++)
        if (q->ranges->range[k].bytes > q->ranges->range[q->largest].bytes)
            q->largest = k;
    ws_cu_result r = WS_CUDA_NOTED(
        d, ws_cuda_carry(d, q->stream, q->ranges_va, (uintptr_t)q->ranges, table_bytes(n)));
    if (r == WS_CU_SUCCESS)
        q->ranges_space = ws_space_id(s);
    return r;
}

ws_cu_result ws_cuda_fence(struct ws_cuda *d, struct ws_cuda_run *r, struct ws_ptx_fence *ret)
{
    struct ws_cuda_queue *q = r->queue;
    struct ws_space *s = r->op->space;
    ws_cu_result e = WS_CU_SUCCESS;
    if (is_stale(q, s) || q->ranges_box != r->box_bytes)
        e = set_table(d, q, s, r->box_bytes);
    if (e != WS_CU_SUCCESS)
        return e;
    uint64_t low = 0, bytes = 0;
    if (q->ranges->n) {
        low = q->ranges->range[q->largest].low;
        bytes = q->ranges->range[q->largest].bytes;
    }
    memset(q->fault, 0, sizeof(*q->fault));
    r->fenced = true;
    *ret = (struct ws_ptx_fence){.low = low,
                                 .limit = bytes > WS_FENCE_SLACK ? bytes - WS_FENCE_SLACK : 0,
                                 .ranges = q->ranges_va,
                                 .fault = (uintptr_t)q->fault};
    return WS_CU_SUCCESS;
}

/* What is wrong with a texture or a surface, by the number in the address that was noted. */
static const char *const sample_faults[_WS_SAMPLE_FAULT_N] = {
    [WS_SAMPLE_NO_HANDLE] = "no such texture or surface handle",
    [WS_SAMPLE_NO_TEXTURE] = "handle is of no texture",
    [WS_SAMPLE_NO_SURFACE] = "handle is of no surface",
    [WS_SAMPLE_DAMAGED] = "texture or surface header: shape, format, channels or number of levels",
    [WS_SAMPLE_SHAPE] = "texture or surface has another shape than the instruction",
    [WS_SAMPLE_TOO_WIDE] = "access is wider than the surface",
    [WS_SAMPLE_OUTSIDE] = "outside of the surface",
    [WS_SAMPLE_MISALIGNED] = "coordinate of a surface, or texels: misaligned",
};

bool ws_cuda_fence_hit(struct ws_cuda_run *r)
{
    const struct ws_cuda_queue *q = r->queue;
    if (!r->fenced || !__atomic_load_n(&q->fault->happened, __ATOMIC_ACQUIRE))
        return false;
    const char *kernel = r->op->launch.instance->module->info.kernels[r->op->launch.kernel].name;
    uint64_t va = q->fault->va, texture = (va - WS_SAMPLE_FAULT) / 8;
    if (va >= WS_SAMPLE_FAULT && texture < _WS_SAMPLE_FAULT_N)
        ws_check_fail(
            r->op, texture == WS_SAMPLE_MISALIGNED ? WS_DEV_E_MISALIGNED : WS_DEV_E_ILLEGAL_ADDRESS,
            "%s: %s", kernel, sample_faults[texture]);
    else
        ws_check_fail(r->op, WS_DEV_E_ILLEGAL_ADDRESS,
                      "%s: access to 0x%llx, which is not the client's", kernel,
                      (unsigned long long)va);
    return true;
}

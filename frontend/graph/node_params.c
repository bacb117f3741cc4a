// SPDX-License-Identifier: Apache-2.0
/* From what a node does to what a program asks about it: the opposite of content.c, one function
 * for each kind of node. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/graph/params.h"
#include "frontend/module/module.h"
#include "frontend/module/registry.h"

static bool is_a(struct ws_node *n, enum ws_node_type type, const void *ret)
{
    return ws_node_valid(n) && n->type == type && ret;
}

int ws_node_kernel_rt(struct ws_node *n, struct cuda_kernel_node *ret)
{
    if (!is_a(n, WS_NODE_KERNEL, ret))
        return CUDA_INVALID_VALUE;
    const struct ws_launch *l = &n->work.launch.l;
    const struct ws_fn *f = n->work.launch.fn;
    const void *named = n->function ? n->function : ws_registry_host(f->kernel);
    *ret = (struct cuda_kernel_node){
        .func = (void *)(named ? named : f),
        .gridDim = {l->grid[0], l->grid[1], l->grid[2]},
        .blockDim = {l->block[0], l->block[1], l->block[2]},
        .sharedMemBytes = l->shared_bytes,
        .kernelParams = n->param_ptrs,
    };
    return CUDA_OK;
}

int ws_node_kernel_drv(struct ws_node *n, struct cu_kernel_node *ret, bool has_kern)
{
    if (!is_a(n, WS_NODE_KERNEL, ret))
        return CUDA_INVALID_VALUE;
    const struct ws_launch *l = &n->work.launch.l;
    struct cu_kernel_node k = {
        .func = n->work.launch.fn,
        .gridDimX = l->grid[0],
        .gridDimY = l->grid[1],
        .gridDimZ = l->grid[2],
        .blockDimX = l->block[0],
        .blockDimY = l->block[1],
        .blockDimZ = l->block[2],
        .sharedMemBytes = l->shared_bytes,
        .kernelParams = n->param_ptrs,
        .ctx = n->ctx,
    };
    memcpy(ret, &k, has_kern ? sizeof(k) : offsetof(struct cu_kernel_node, kern));
    return CUDA_OK;
}

/* Where the program gave no such words: the same copy, from its first byte on. */
int ws_node_memcpy_rt(struct ws_node *n, struct cuda_memcpy_3d_parms *ret)
{
    static const int kinds[] = {[WS_COPY_AUTO] = WS_CUDA_COPY_DEFAULT,
                                [WS_COPY_H2H] = WS_CUDA_COPY_H2H,
                                [WS_COPY_H2D] = WS_CUDA_COPY_H2D,
                                [WS_COPY_D2H] = WS_CUDA_COPY_D2H,
                                [WS_COPY_D2D] = WS_CUDA_COPY_D2D};
    if (!is_a(n, WS_NODE_MEMCPY, ret))
        return CUDA_INVALID_VALUE;
    if (n->raw_kind == WS_RAW_RT) {
        *ret = n->raw.rt;
        return CUDA_OK;
    }
    const struct ws_copy_side *d = &n->work.copy.dst, *s = &n->work.copy.src;
    const struct ws_copy_box *b = &n->work.copy.box;
    *ret = (struct cuda_memcpy_3d_parms){
        .srcPtr = {(void *)(uintptr_t)s->address, s->pitch_bytes, b->width_bytes,
                   s->pitch_bytes ? s->slice_bytes / s->pitch_bytes : b->height},
        .dstPtr = {(void *)(uintptr_t)d->address, d->pitch_bytes, b->width_bytes,
                   d->pitch_bytes ? d->slice_bytes / d->pitch_bytes : b->height},
        .extent = {b->width_bytes, b->height, b->depth},
        .kind = kinds[n->work.copy.dir],
    };
    return CUDA_OK;
}

int ws_node_memcpy_drv(struct ws_node *n, struct cu_memcpy_3d *ret)
{
    if (!is_a(n, WS_NODE_MEMCPY, ret))
        return CUDA_INVALID_VALUE;
    if (n->raw_kind == WS_RAW_DRV) {
        *ret = n->raw.drv;
        return CUDA_OK;
    }
    const struct ws_copy_side *d = &n->work.copy.dst, *s = &n->work.copy.src;
    const struct ws_copy_box *b = &n->work.copy.box;
    *ret = (struct cu_memcpy_3d){
        .srcMemoryType = WS_CU_MEMORY_UNIFIED,
        .srcDevice = s->address,
        .srcPitch = s->pitch_bytes,
        .srcHeight = s->pitch_bytes ? s->slice_bytes / s->pitch_bytes : b->height,
        .dstMemoryType = WS_CU_MEMORY_UNIFIED,
        .dstDevice = d->address,
        .dstPitch = d->pitch_bytes,
        .dstHeight = d->pitch_bytes ? d->slice_bytes / d->pitch_bytes : b->height,
        .WidthInBytes = b->width_bytes,
        .Height = b->height,
        .Depth = b->depth,
    };
    return CUDA_OK;
}

int ws_node_memset(struct ws_node *n, struct cuda_memset_node *ret)
{
    if (!is_a(n, WS_NODE_MEMSET, ret))
        return CUDA_INVALID_VALUE;
    uint32_t element = n->work.fill.value_bytes;
    *ret = (struct cuda_memset_node){
        .dst = n->work.fill.dst.address,
        .pitch = n->work.fill.dst.pitch_bytes,
        .value = n->work.fill.value,
        .elementSize = element,
        .width = n->work.fill.box.width_bytes / element,
        .height = n->work.fill.box.height,
    };
    return CUDA_OK;
}

int ws_node_host(struct ws_node *n, struct cuda_host_node *ret)
{
    if (!is_a(n, WS_NODE_HOST, ret))
        return CUDA_INVALID_VALUE;
    *ret = (struct cuda_host_node){n->work.host.fn, n->work.host.data};
    return CUDA_OK;
}

int ws_node_event(struct ws_node *n, enum ws_node_type type, void **ret)
{
    if (!is_a(n, type, ret))
        return CUDA_INVALID_VALUE;
    *ret = (void *)(uintptr_t)n->work.event.event;
    return CUDA_OK;
}

int ws_node_alloc(struct ws_node *n, struct cuda_alloc_node *ret)
{
    enum { PINNED = 1, LOCATION_DEVICE = 1 };
    if (!is_a(n, WS_NODE_MEM_ALLOC, ret))
        return CUDA_INVALID_VALUE;
    *ret = (struct cuda_alloc_node){
        .poolProps = {.allocType = PINNED, .location = {LOCATION_DEVICE, n->work.memory.device}},
        .bytesize = n->work.memory.bytes,
        .dptr = n->work.memory.address,
    };
    return CUDA_OK;
}

int ws_node_child(struct ws_node *n, struct ws_graph **ret)
{
    if (!is_a(n, WS_NODE_GRAPH, ret))
        return CUDA_INVALID_VALUE;
    *ret = n->child;
    return CUDA_OK;
}

static unsigned operation_of(const struct ws_value_op *o)
{
    switch (o->bytes) {
    case sizeof(uint32_t):
        return o->is_wait ? WS_CU_OP_WAIT_32 : WS_CU_OP_WRITE_32;
    case sizeof(uint64_t):
        return o->is_wait ? WS_CU_OP_WAIT_64 : WS_CU_OP_WRITE_64;
    default:
        return WS_CU_OP_BARRIER;
    }
}

int ws_node_batch(struct ws_node *n, struct cu_batch_node *ret)
{
    if (!is_a(n, WS_NODE_BATCH_MEM_OP, ret))
        return CUDA_INVALID_VALUE;
    size_t count = n->work.values.n;
    union cu_batch_op *p = ws_alloc_array(count + 1, sizeof(*p));
    if (!p)
        return CUDA_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const struct ws_value_op *o = &n->ops[i];
        p[i].operation = operation_of(o);
        p[i].value.address = o->address;
        p[i].value.value = o->value;
        p[i].value.flags = o->flags;
    }
    free(n->raw_ops);
    n->raw_ops = p;
    *ret = (struct cu_batch_node){.ctx = n->ctx, .count = (unsigned)count, .paramArray = p};
    return CUDA_OK;
}

int ws_node_copy_attributes(struct ws_node *dst, const struct ws_node *src)
{
    if (!ws_node_valid(dst) || !ws_node_valid(src) || dst->type != WS_NODE_KERNEL ||
        src->type != WS_NODE_KERNEL)
        return CUDA_INVALID_VALUE;
    for (unsigned i = 0; i < src->n_attributes; i++) {
        int code = ws_node_set_attribute(dst, src->attributes[i].id, &src->attributes[i].val);
        if (code)
            return code;
    }
    return CUDA_OK;
}

int ws_node_free_address(struct ws_node *n, uint64_t *ret)
{
    if (!is_a(n, WS_NODE_MEM_FREE, ret))
        return CUDA_INVALID_VALUE;
    *ret = n->work.memory.address;
    return CUDA_OK;
}

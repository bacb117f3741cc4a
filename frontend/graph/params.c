// SPDX-License-Identifier: Apache-2.0
/* CUDA's many ways to say what a node does become one struct, and back. Each kind of node has a function that reads its
 * parameters; adding a node, changing one and changing one in an exec are then the same for all kinds. */
#include "frontend/graph/params.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/module/module.h"
#include "frontend/module/registry.h"

static int code_of(const struct ws_content *c, ws_err e)
{
    return c->runtime ? ws_rt_error(e) : ws_drv_error(e);
}

/* ---- kernels ---- */

static int kernel(struct ws_content *c, struct ws_fn *f, struct ws_launch_request *r, void **extra)
{
    ws_err e = ws_launch_set_args(r, r->args, extra);
    if (e)
        return code_of(c, e);
    c->type = WS_NODE_KERNEL;
    c->work.kind = WS_WORK_LAUNCH;
    c->work.launch.fn = f;
    return code_of(c, ws_fn_prepare(f, r, &c->work.launch.l));
}

int ws_content_kernel_rt(struct ws_content *c, const struct cuda_kernel_node *p)
{
    struct ws_fn *f;
    if (!p)
        return CUDA_INVALID_VALUE;
    struct ws_launch_request r = {.grid = {p->gridDim.x, p->gridDim.y, p->gridDim.z},
                                  .block = {p->blockDim.x, p->blockDim.y, p->blockDim.z},
                                  .shared_bytes = p->sharedMemBytes,
                                  .args = p->kernelParams};
    int code = ws_registry_fn(p->func, c->device, &f);
    c->function = p->func;
    return code ? code : kernel(c, f, &r, p->extra);
}

int ws_content_kernel_drv(struct ws_content *c, const struct cu_kernel_node *p, bool has_kern)
{
    if (!p || (has_kern && p->ctx && !ws_ctx_valid(p->ctx)))
        return CUDA_INVALID_VALUE;
    struct ws_launch_request r = {.grid = {p->gridDimX, p->gridDimY, p->gridDimZ},
                                  .block = {p->blockDimX, p->blockDimY, p->blockDimZ},
                                  .shared_bytes = p->sharedMemBytes,
                                  .args = p->kernelParams};
    struct ws_fn *f = p->func;
    struct ws_kernel *k = has_kern && !p->func ? p->kern : p->func;
    int device = has_kern && p->ctx ? ((struct ws_ctx *)p->ctx)->device : c->device;
    int code = CUDA_OK;
    if (!ws_fn_valid(f))
        code = ws_kernel_valid(k) ? ws_kernel_fn(k, device, &f) : CUDA_INVALID_VALUE;
    c->ctx = has_kern ? p->ctx : NULL;
    return code ? code : kernel(c, f, &r, p->extra);
}

/* ---- copies and fills ---- */

enum { KIND_H2H, KIND_H2D, KIND_D2H, KIND_D2D, KIND_DEFAULT };
static const enum ws_copy_dir dirs[] = {WS_COPY_H2H, WS_COPY_H2D, WS_COPY_D2H, WS_COPY_D2D,
                                        WS_COPY_AUTO};

static void set_copy(struct ws_content *c, const struct ws_copy_side *dst,
                     const struct ws_copy_side *src, const struct ws_copy_box *box,
                     enum ws_copy_dir dir)
{
    c->type = WS_NODE_MEMCPY;
    c->work.kind = WS_WORK_COPY;
    c->work.copy.dst = *dst;
    c->work.copy.src = *src;
    c->work.copy.box = *box;
    c->work.copy.dir = dir;
}

int ws_content_memcpy_rt(struct ws_content *c, const struct cuda_memcpy_3d_parms *p)
{
    struct ws_copy_side dst, src;
    struct ws_copy_box box;
    enum ws_copy_dir dir;
    if (!p)
        return CUDA_INVALID_VALUE;
    int code = ws_rt_memcpy_sides(p, &dst, &src, &box, &dir);
    if (code)
        return code;
    set_copy(c, &dst, &src, &box, dir);
    c->raw.rt = *p;
    c->raw_kind = WS_RAW_RT;
    return CUDA_OK;
}

int ws_content_memcpy_drv(struct ws_content *c, const struct cu_memcpy_3d *p)
{
    struct ws_copy_side dst, src;
    struct ws_copy_box box;
    enum ws_copy_dir dir;
    if (!p)
        return CUDA_INVALID_VALUE;
    int code = ws_drv_memcpy_sides(p, &dst, &src, &box, &dir);
    if (code)
        return code;
    set_copy(c, &dst, &src, &box, dir);
    c->raw.drv = *p;
    c->raw_kind = WS_RAW_DRV;
    return CUDA_OK;
}

int ws_content_memcpy_1d(struct ws_content *c, void *dst, const void *src, size_t bytes, int kind)
{
    if (kind < KIND_H2H || kind > KIND_DEFAULT)
        return CUDA_INVALID_DIRECTION;
    if (!dst || !src || !bytes)
        return CUDA_INVALID_VALUE;
    set_copy(c, &(struct ws_copy_side){(uintptr_t)dst, bytes, bytes},
             &(struct ws_copy_side){(uintptr_t)src, bytes, bytes},
             &(struct ws_copy_box){bytes, 1, 1}, dirs[kind]);
    return CUDA_OK;
}

int ws_content_symbol(struct ws_content *c, const void *symbol, void *other, size_t bytes,
                      size_t offset, int kind, bool to_symbol)
{
    uint64_t address, room;
    if (kind != KIND_DEFAULT && kind != KIND_D2D && kind != (to_symbol ? KIND_H2D : KIND_D2H))
        return CUDA_INVALID_DIRECTION;
    int code = ws_registry_variable(symbol, c->device, &address, &room);
    if (code)
        return code;
    if (offset > room || bytes > room - offset)
        return CUDA_INVALID_VALUE;
    void *at = (void *)(uintptr_t)(address + offset);
    return ws_content_memcpy_1d(c, to_symbol ? at : other, to_symbol ? other : at, bytes, kind);
}

int ws_content_memset(struct ws_content *c, const struct cuda_memset_node *p)
{
    size_t width;
    if (!p || !p->dst || !p->width || !p->height ||
        (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4) ||
        __builtin_mul_overflow(p->width, (size_t)p->elementSize, &width) ||
        p->dst % p->elementSize || (p->height > 1 && p->pitch < width))
        return CUDA_INVALID_VALUE;
    c->type = WS_NODE_MEMSET;
    c->work.kind = WS_WORK_FILL;
    c->work.fill.dst = (struct ws_copy_side){p->dst, p->height > 1 ? p->pitch : width, 0};
    c->work.fill.value = p->value;
    c->work.fill.value_bytes = p->elementSize;
    c->work.fill.box = (struct ws_copy_box){width, p->height, 1};
    return CUDA_OK;
}

/* ---- the others ---- */

int ws_content_host(struct ws_content *c, const struct cuda_host_node *p)
{
    if (!p || !p->fn)
        return CUDA_INVALID_VALUE;
    c->type = WS_NODE_HOST;
    c->work.kind = WS_WORK_HOST;
    c->work.host.fn = p->fn;
    c->work.host.data = p->userData;
    return CUDA_OK;
}

int ws_content_event(struct ws_content *c, enum ws_node_type type, void *event)
{
    c->type = type;
    c->work.kind = type == WS_NODE_EVENT_RECORD ? WS_WORK_RECORD : WS_WORK_WAIT;
    c->work.event.event = (uintptr_t)event;
    return ws_session_event_device((uintptr_t)event) < 0 ? CUDA_INVALID_VALUE : CUDA_OK;
}

static bool has_type(const struct ws_graph *g, enum ws_node_type type)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i]->type == type)
            return true;
    return false;
}

int ws_content_child(struct ws_content *c, struct ws_graph *child, int ownership)
{
    enum { CLONE, MOVE };
    if (!ws_graph_valid(child) || ownership < CLONE || ownership > MOVE ||
        (ownership == MOVE && (child->owner || child->n_execs)))
        return CUDA_INVALID_VALUE;
    if ((child->has_memory && ownership != MOVE) || has_type(child, WS_NODE_CONDITIONAL))
        return CUDA_NOT_SUPPORTED;
    c->type = WS_NODE_GRAPH;
    c->work.kind = WS_WORK_CHILD;
    c->child = child;
    c->move = ownership == MOVE;
    return CUDA_OK;
}

int ws_content_alloc(struct ws_content *c, struct cuda_alloc_node *p)
{
    enum { PINNED = 1, LOCATION_DEVICE = 1 };
    if (!p || !p->bytesize || p->poolProps.allocType != PINNED ||
        p->poolProps.location.type != LOCATION_DEVICE || p->poolProps.handleTypes ||
        (p->accessDescCount && !p->accessDescs))
        return CUDA_INVALID_VALUE;
    if (!ws_session_device(p->poolProps.location.id))
        return CUDA_INVALID_VALUE;
    c->type = WS_NODE_MEM_ALLOC;
    c->work.kind = WS_WORK_ALLOC;
    c->work.memory.bytes = p->bytesize;
    c->work.memory.device = p->poolProps.location.id;
    c->alloc = p;
    return CUDA_OK;
}

int ws_content_free(struct ws_content *c, uint64_t address)
{
    c->type = WS_NODE_MEM_FREE;
    c->work.kind = WS_WORK_FREE;
    c->work.memory.address = address;
    return ws_block_find(address) ? CUDA_OK : CUDA_INVALID_VALUE;
}

enum { /* CUstreamBatchMemOpType */
       OP_WAIT_32 = 1,
       OP_WRITE_32 = 2,
       OP_FLUSH = 3,
       OP_WAIT_64 = 4,
       OP_WRITE_64 = 5,
       OP_BARRIER = 6
};
enum { WAIT_COMPARE = 3, WAIT_FLUSH = 1 << 30, WRITE_NO_BARRIER = 1 };

int ws_batch_ops(const union cu_batch_op *p, unsigned n, struct ws_value_op **ret)
{
    enum { OPS_MAX = 256 };
    if (!p || !n || n > OPS_MAX)
        return CUDA_INVALID_VALUE;
    struct ws_value_op *ops = ws_alloc_array(n, sizeof(*ops));
    if (!ops)
        return CUDA_OUT_OF_MEMORY;
    int code = CUDA_OK;
    for (unsigned i = 0; !code && i < n; i++) {
        bool wait = p[i].operation == OP_WAIT_32 || p[i].operation == OP_WAIT_64;
        bool narrow = p[i].operation == OP_WAIT_32 || p[i].operation == OP_WRITE_32;
        if (p[i].operation == OP_FLUSH || p[i].operation == OP_BARRIER)
            continue; /* nothing is kept back that would have to be flushed */
        if (p[i].operation < OP_WAIT_32 || p[i].operation > OP_WRITE_64 ||
            (wait ? p[i].value.flags & ~(unsigned)(WAIT_COMPARE | WAIT_FLUSH)
                  : p[i].value.flags & ~(unsigned)WRITE_NO_BARRIER))
            code = CUDA_INVALID_VALUE;
        ops[i] = (struct ws_value_op){
            .address = p[i].value.address,
            .value = narrow ? (uint32_t)p[i].value.value : p[i].value.value,
            .flags = wait ? p[i].value.flags & WAIT_COMPARE : 0,
            .bytes = narrow ? sizeof(uint32_t) : sizeof(uint64_t),
            .is_wait = wait,
        };
        if (ops[i].address % ops[i].bytes)
            code = CUDA_INVALID_VALUE;
    }
    if (code)
        free(ops);
    else
        *ret = ops;
    return code;
}

int ws_content_batch(struct ws_content *c, const struct cu_batch_node *p)
{
    if (!p || p->flags)
        return CUDA_INVALID_VALUE;
    int code = ws_batch_ops(p->paramArray, p->count, &c->ops);
    c->type = WS_NODE_BATCH_MEM_OP;
    c->work.kind = WS_WORK_VALUES;
    c->work.values.ops = c->ops;
    c->work.values.n = p->count;
    c->ctx = p->ctx;
    return code;
}

static int content_condition(struct ws_content *c, struct cuda_conditional_node *p)
{
    bool size_ok = p->type == WS_COND_IF       ? p->size == 1 || p->size == 2
                   : p->type == WS_COND_WHILE  ? p->size == 1
                   : p->type == WS_COND_SWITCH ? p->size > 0 && p->size <= UINT16_MAX
                                               : false;
    if (!size_ok || !ws_handle_valid(p->handle))
        return CUDA_INVALID_VALUE;
    c->type = WS_NODE_CONDITIONAL;
    c->condition = p;
    return CUDA_OK;
}

int ws_content_any(struct ws_content *c, struct cuda_node_params *p)
{
    if (!p)
        return CUDA_INVALID_VALUE;
    switch (p->type) {
    case WS_NODE_KERNEL:
        return c->runtime ? ws_content_kernel_rt(c, &p->rt_kernel)
                          : ws_content_kernel_drv(c, &p->drv_kernel, true);
    case WS_NODE_MEMCPY:
        return c->runtime ? ws_content_memcpy_rt(c, &p->rt_memcpy.copyParams)
                          : ws_content_memcpy_drv(c, &p->drv_memcpy.copyParams);
    case WS_NODE_MEMSET:
        return ws_content_memset(c, &p->memset);
    case WS_NODE_HOST:
        return ws_content_host(c, &p->host);
    case WS_NODE_GRAPH:
        return ws_content_child(c, p->graph.graph, p->graph.ownership);
    case WS_NODE_EMPTY:
        c->type = WS_NODE_EMPTY;
        return CUDA_OK;
    case WS_NODE_WAIT_EVENT:
    case WS_NODE_EVENT_RECORD:
        return ws_content_event(c, p->type, p->event);
    case WS_NODE_MEM_ALLOC:
        return ws_content_alloc(c, &p->alloc);
    case WS_NODE_MEM_FREE:
        return ws_content_free(c, p->free_dptr);
    case WS_NODE_BATCH_MEM_OP:
        return c->runtime ? CUDA_INVALID_VALUE : ws_content_batch(c, &p->memop);
    case WS_NODE_CONDITIONAL:
        return content_condition(c, &p->conditional);
    case WS_NODE_SEMAPHORE_SIGNAL:
    case WS_NODE_SEMAPHORE_WAIT:
        ws_session_unsupported("external semaphore graph nodes");
        return CUDA_NOT_SUPPORTED;
    default:
        return CUDA_INVALID_VALUE;
    }
}

/* ---- adding and changing ---- */

static int apply_memory(struct ws_node *n, struct ws_content *c)
{
    if (c->type == WS_NODE_MEM_ALLOC) {
        int code = ws_node_set_alloc(n, c->work.memory.device, c->work.memory.bytes);
        if (code)
            return code;
        c->alloc->dptr = n->work.memory.address;
    } else {
        n->block = ws_block_ref(ws_block_find(c->work.memory.address));
        n->work = c->work;
    }
    n->graph->has_memory = true;
    for (struct ws_node *o = n->graph->owner; o; o = o->graph->owner)
        o->graph->has_memory = true;
    return CUDA_OK;
}

static int apply_condition(struct ws_node *n, struct ws_content *c)
{
    struct cuda_conditional_node *p = c->condition;
    struct ws_handle *h = NULL;
    for (size_t i = 0; i < n->graph->n_handles && !h; i++)
        h = n->graph->handles[i].handle == p->handle ? &n->graph->handles[i] : NULL;
    if (!h || h->used)
        return CUDA_INVALID_VALUE;
    int code = ws_node_set_condition(n, p->handle, p->type, p->size);
    if (code)
        return code;
    h->used = true;
    p->phGraph_out = (void **)n->cond.bodies;
    return CUDA_OK;
}

static int apply(struct ws_node *n, struct ws_content *c)
{
    n->function = c->function;
    n->ctx = c->ctx;
    memcpy(&n->raw, &c->raw, sizeof(n->raw));
    n->raw_kind = c->raw_kind;
    switch (c->type) {
    case WS_NODE_GRAPH:
        n->work.kind = WS_WORK_CHILD;
        return ws_node_set_child(n, c->child, c->move);
    case WS_NODE_CONDITIONAL:
        return apply_condition(n, c);
    case WS_NODE_MEM_ALLOC:
    case WS_NODE_MEM_FREE:
        return apply_memory(n, c);
    default:
        return code_of(c, ws_node_set_work(n, &c->work));
    }
}

int ws_content_add(struct ws_content *c, struct ws_graph *g, struct ws_node *const *deps,
                   const struct cuda_edge_data *data, size_t n_deps, struct ws_node **ret)
{
    struct ws_node *n;
    int code = ret && ws_graph_valid(g) && c->child != g ? CUDA_OK : CUDA_INVALID_VALUE;
    if (!code)
        code = ws_graph_add(g, c->type, deps, data, n_deps, &n);
    if (!code && (code = apply(n, c)))
        ws_node_free(n);
    else if (!code)
        *ret = n;
    free(c->ops);
    return code;
}

static bool can_set(const struct ws_content *c, const struct ws_node *n)
{
    return n->type == c->type && c->type != WS_NODE_MEM_ALLOC && c->type != WS_NODE_MEM_FREE &&
           c->type != WS_NODE_CONDITIONAL && c->type != WS_NODE_GRAPH;
}

int ws_content_set(struct ws_content *c, struct ws_node *n)
{
    int code =
        ws_node_valid(n) && !n->graph->of_exec && can_set(c, n) ? apply(n, c) : CUDA_INVALID_VALUE;
    free(c->ops);
    return code;
}

int ws_content_set_exec(struct ws_content *c, struct ws_exec *e, struct ws_node *n)
{
    struct ws_node *mine = ws_exec_valid(e) && ws_node_valid(n) ? ws_exec_node(e, n) : NULL;
    int code = mine && mine->type == c->type ? CUDA_OK : CUDA_INVALID_VALUE;
    if (!code && c->type == WS_NODE_GRAPH) {
        code = ws_exec_set_child(e, n, c->child);
    } else if (!code) {
        pthread_mutex_lock(&e->launching);
        code = can_set(c, mine) ? apply(mine, c) : CUDA_INVALID_VALUE;
        pthread_mutex_unlock(&e->launching);
    }
    free(c->ops);
    return code;
}

/* ---- back ---- */

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
    static const int kinds[] = {[WS_COPY_AUTO] = KIND_DEFAULT,
                                [WS_COPY_H2H] = KIND_H2H,
                                [WS_COPY_H2D] = KIND_H2D,
                                [WS_COPY_D2H] = KIND_D2H,
                                [WS_COPY_D2D] = KIND_D2D};
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
        p[i].operation = o->bytes == sizeof(uint32_t)   ? o->is_wait ? OP_WAIT_32 : OP_WRITE_32
                         : o->bytes == sizeof(uint64_t) ? o->is_wait ? OP_WAIT_64 : OP_WRITE_64
                                                        : OP_BARRIER;
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

/* ---- lists ---- */

struct list {
    size_t room, n;
};

/* Return: true if entry number l->n is to be written. */
static bool list_next(struct list *l)
{
    return l->n++ < l->room;
}

/* @asked: the program gave room; else it asks how many there are. */
static void list_end(const struct list *l, bool asked, size_t *n)
{
    *n = asked ? WS_MIN(l->n, l->room) : l->n;
}

static void zero_rest(struct ws_node **v, const struct list *l)
{
    for (size_t i = l->n; v && i < l->room; i++)
        v[i] = NULL;
}

int ws_graph_list(struct ws_graph *g, enum ws_list_kind kind, struct ws_node **ret, size_t *n)
{
    if (!ws_graph_valid(g) || !n)
        return CUDA_INVALID_VALUE;
    struct list l = {.room = ret ? *n : 0};
    for (size_t i = 0; i < g->n_nodes; i++)
        if ((kind == WS_LIST_NODES || !g->nodes[i]->n_in) && list_next(&l))
            ret[l.n - 1] = g->nodes[i];
    zero_rest(ret, &l);
    list_end(&l, ret != NULL, n);
    return CUDA_OK;
}

/* CUDA_ERROR_LOSSY_QUERY: edges carry data that the caller has no room for. */
enum { LOSSY_QUERY = 402 };

static bool has_data(const struct ws_edge *e)
{
    static const struct cuda_edge_data none;
    return memcmp(&e->data, &none, sizeof(none)) != 0;
}

int ws_graph_edges(struct ws_graph *g, struct ws_node **from, struct ws_node **to,
                   struct cuda_edge_data *data, size_t *n)
{
    bool asked = from || to || data, lossy = false;
    if (!ws_graph_valid(g) || !n || (asked && (!from || !to)))
        return CUDA_INVALID_VALUE;
    struct list l = {.room = asked ? *n : 0};
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i]->n_in; k++) {
            const struct ws_edge *e = &g->nodes[i]->in[k];
            lossy |= has_data(e) && asked && !data;
            if (!list_next(&l))
                continue;
            from[l.n - 1] = e->from;
            to[l.n - 1] = g->nodes[i];
            if (data)
                data[l.n - 1] = e->data;
        }
    if (lossy)
        return LOSSY_QUERY;
    zero_rest(from, &l);
    zero_rest(to, &l);
    list_end(&l, asked, n);
    return CUDA_OK;
}

static const struct ws_edge *edge(const struct ws_node *from, const struct ws_node *to)
{
    size_t i = 0;
    while (to->in[i].from != from)
        i++;
    return &to->in[i];
}

int ws_node_neighbours(struct ws_node *n, bool dependents, struct ws_node **ret,
                       struct cuda_edge_data *data, size_t *n_ret)
{
    bool lossy = false;
    if (!ws_node_valid(n) || !n_ret || (data && !ret))
        return CUDA_INVALID_VALUE;
    struct list l = {.room = ret ? *n_ret : 0};
    for (size_t i = 0; i < (dependents ? n->n_out : n->n_in); i++) {
        const struct ws_edge *e = dependents ? edge(n, n->out[i]) : &n->in[i];
        lossy |= has_data(e) && ret && !data;
        if (!list_next(&l))
            continue;
        ret[l.n - 1] = dependents ? n->out[i] : e->from;
        if (data)
            data[l.n - 1] = e->data;
    }
    if (lossy)
        return LOSSY_QUERY;
    zero_rest(ret, &l);
    list_end(&l, ret != NULL, n_ret);
    return CUDA_OK;
}

int ws_graph_find_in_clone(struct ws_node *n, struct ws_graph *clone, struct ws_node **ret)
{
    if (!ret || !ws_node_valid(n) || !ws_graph_valid(clone))
        return CUDA_INVALID_VALUE;
    for (size_t i = 0; i < clone->n_nodes; i++)
        if (clone->nodes[i]->origin == n->id) {
            *ret = clone->nodes[i];
            return CUDA_OK;
        }
    return CUDA_INVALID_VALUE;
}

/* ---- execs ---- */

int ws_graph_instantiate(struct ws_exec **ret, struct ws_graph *g, int device, uint64_t flags,
                         struct cuda_instantiate_params *p)
{
    enum ws_instantiate_result result;
    struct ws_node *bad;
    if (!ret || !ws_graph_valid(g))
        return CUDA_INVALID_VALUE;
    int code = ws_exec_new(g, device, flags, ret, &result, &bad);
    if (p) {
        p->result_out = (int)result;
        p->errNode_out = bad;
    }
    return code;
}

int ws_exec_update_checked(struct ws_exec *e, struct ws_graph *g, struct cuda_update_result *ret)
{
    struct cuda_update_result unused;
    if (!ws_exec_valid(e) || !ws_graph_valid(g))
        return CUDA_INVALID_VALUE;
    return ws_exec_update(e, g, ret ? ret : &unused);
}

// SPDX-License-Identifier: Apache-2.0
/* From what a program writes about a node to what the node does: CUDA's many parameter structs
 * become one, struct ws_content. Each kind of node has a function that reads its parameters. Adding
 * a node, changing one and changing one in an exec are then the same for all kinds. The way back is
 * in node_params.c. */
#include "frontend/memory/copy_params.h"
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
    int device = has_kern && p->ctx ? ((struct ws_cuda_context *)p->ctx)->device : c->device;
    int code = CUDA_OK;
    if (!ws_fn_valid(f))
        code = ws_kernel_valid(k) ? ws_kernel_fn(k, device, &f) : CUDA_INVALID_VALUE;
    c->ctx = has_kern ? p->ctx : NULL;
    return code ? code : kernel(c, f, &r, p->extra);
}

/* ---- copies and fills ---- */

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
    int code = ws_copy_sides_rt(p, &dst, &src, &box, &dir);
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
    int code = ws_copy_sides_drv(p, &dst, &src, &box, &dir);
    if (code)
        return code;
    set_copy(c, &dst, &src, &box, dir);
    c->raw.drv = *p;
    c->raw_kind = WS_RAW_DRV;
    return CUDA_OK;
}

int ws_content_memcpy_1d(struct ws_content *c, void *dst, const void *src, size_t bytes, int kind)
{
    enum ws_copy_dir dir;
    int code = ws_copy_direction(kind, &dir);
    if (code)
        return code;
    if (!dst || !src || !bytes)
        return CUDA_INVALID_VALUE;
    set_copy(c, &(struct ws_copy_side){(uintptr_t)dst, bytes, bytes},
             &(struct ws_copy_side){(uintptr_t)src, bytes, bytes},
             &(struct ws_copy_box){bytes, 1, 1}, dir);
    return CUDA_OK;
}

int ws_content_symbol(struct ws_content *c, const void *symbol, void *other, size_t bytes,
                      size_t offset, int kind, bool to_symbol)
{
    uint64_t address, room;
    if (kind != WS_CUDA_COPY_DEFAULT && kind != WS_CUDA_COPY_D2D &&
        kind != (to_symbol ? WS_CUDA_COPY_H2D : WS_CUDA_COPY_D2H))
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
        bool wait = p[i].operation == WS_CU_OP_WAIT_32 || p[i].operation == WS_CU_OP_WAIT_64;
        bool narrow = p[i].operation == WS_CU_OP_WAIT_32 || p[i].operation == WS_CU_OP_WRITE_32;
        if (p[i].operation == WS_CU_OP_FLUSH || p[i].operation == WS_CU_OP_BARRIER)
            continue; /* nothing is kept back that would have to be flushed */
        if (p[i].operation < WS_CU_OP_WAIT_32 || p[i].operation > WS_CU_OP_WRITE_64 ||
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

/* How many bodies a conditional node may have: an if has one for each answer, or for "yes" only. */
static bool bodies_ok(const struct cuda_conditional_node *p)
{
    switch (p->type) {
    case WS_COND_IF:
        return p->size == 1 || p->size == 2;
    case WS_COND_WHILE:
        return p->size == 1;
    case WS_COND_SWITCH:
        return p->size > 0 && p->size <= UINT16_MAX;
    default:
        return false;
    }
}

static int content_condition(struct ws_content *c, struct cuda_conditional_node *p)
{
    if (!bodies_ok(p) || !ws_handle_valid(p->handle))
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
    struct ws_graph_handle *h = NULL;
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

// SPDX-License-Identifier: Apache-2.0
/* What a node does: its work with all that it points to, child graphs, bodies of conditional nodes,
 * attributes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/graph/graph.h"
#include "frontend/module/module.h"

/* ---- work ---- */

/* Packs the arguments as the kernel's parameter layout says. @ret_ptrs: where each lies. */
static ws_err pack(const struct ws_launch *l, uint8_t **ret, void ***ret_ptrs)
{
    const Ws__Kernel *k = ws_function_info(l->function);
    uint8_t *p = ws_alloc(k->param_bytes + 1);
    void **ptrs = ws_alloc_array(k->n_param_offsets + 1, sizeof(*ptrs));
    ws_err r = p && ptrs ? WS__ERROR__OK : WS__ERROR__OUT_OF_MEMORY;
    if (!r && l->packed) {
        if (l->packed_bytes < k->param_bytes)
            r = WS__ERROR__INVALID_VALUE;
        else
            memcpy(p, l->packed, k->param_bytes);
    } else if (!r && k->param_bytes && !l->args) {
        r = WS__ERROR__INVALID_VALUE;
    }
    for (size_t i = 0; !r && i < k->n_param_offsets; i++) {
        ptrs[i] = p + k->param_offsets[i];
        if (l->packed)
            continue;
        if (l->args[i])
            memcpy(ptrs[i], l->args[i], k->param_sizes[i]);
        else
            r = WS__ERROR__INVALID_VALUE;
    }
    if (r) {
        free(p);
        free(ptrs);
        return r;
    }
    *ret = p;
    *ret_ptrs = ptrs;
    return WS__ERROR__OK;
}

static ws_err set_launch(struct ws_node *n, const struct ws_stream_work *w)
{
    uint8_t *params;
    void **ptrs;
    ws_err r = ws_session_launch_check(&w->launch.l);
    if (!r)
        r = pack(&w->launch.l, &params, &ptrs);
    if (r)
        return r;
    free(n->params);
    free(n->param_ptrs);
    n->params = params;
    n->param_ptrs = ptrs;
    n->work = *w;
    n->work.launch.l.args = NULL;
    n->work.launch.l.packed = params;
    n->work.launch.l.packed_bytes = ws_function_info(w->launch.l.function)->param_bytes;
    return WS__ERROR__OK;
}

ws_err ws_node_set_work(struct ws_node *n, const struct ws_stream_work *w)
{
    struct ws_value_op *ops;
    switch (w->kind) {
    case WS_WORK_LAUNCH:
        return set_launch(n, w);
    case WS_WORK_VALUES:
        ops = ws_alloc_array(w->values.n + 1, sizeof(*ops));
        if (!ops)
            return WS__ERROR__OUT_OF_MEMORY;
        if (w->values.n)
            memcpy(ops, w->values.ops, w->values.n * sizeof(*ops));
        free(n->ops);
        n->ops = ops;
        n->work = *w;
        n->work.values.ops = ops;
        return WS__ERROR__OK;
    default:
        n->work = *w;
        return WS__ERROR__OK;
    }
}

int ws_node_set_child(struct ws_node *n, struct ws_graph *child, bool move)
{
    struct ws_graph *g = child;
    int code = move ? CUDA_OK : ws_graph_clone(child, &g);
    if (code)
        return code;
    ws_graph_free(n->child);
    n->child = g;
    g->owner = n;
    n->graph->has_memory |= g->has_memory;
    return CUDA_OK;
}

/* The last node of @g that allocates or frees @b; @n aside. */
static struct ws_node *last_use(const struct ws_graph *g, const struct ws_node *n,
                                const struct ws_graph_block *b)
{
    for (size_t i = g->n_nodes; i > 0; i--)
        if (g->nodes[i - 1]->block == b && g->nodes[i - 1] != n)
            return g->nodes[i - 1];
    return NULL;
}

int ws_node_set_alloc(struct ws_node *n, int device, uint64_t bytes)
{
    const struct ws_graph *g = n->graph;
    struct ws_graph_block *b = NULL;
    for (size_t i = 0; i < g->n_nodes && !b; i++) {
        struct ws_node *f = g->nodes[i];
        if (f->type == WS_NODE_MEM_FREE && f->block && ws_block_fits(f->block, device, bytes) &&
            last_use(g, n, f->block) == f && ws_graph_before(g, &f, 1, &n, 1))
            b = ws_block_ref(f->block);
    }
    int code = b ? CUDA_OK : ws_block_new(device, bytes, &b);
    if (code)
        return code;
    n->block = b;
    n->work.kind = WS_WORK_ALLOC;
    n->work.memory.address = ws_block_address(b);
    n->work.memory.bytes = bytes;
    n->work.memory.device = device;
    return CUDA_OK;
}

int ws_node_set_condition(struct ws_node *n, uint64_t handle, int type, unsigned size)
{
    struct ws_graph **bodies = ws_alloc_array(size, sizeof(*bodies));
    if (!bodies)
        return CUDA_OUT_OF_MEMORY;
    n->cond = (struct ws_condition){handle, type, size, bodies};
    n->work.kind = WS_WORK_CONDITIONAL;
    for (unsigned i = 0; i < size; i++) {
        if (!(bodies[i] = ws_graph_new()))
            return CUDA_OUT_OF_MEMORY;
        bodies[i]->owner = n;
    }
    return CUDA_OK;
}

/* ---- copies ---- */

static int copy_condition(struct ws_node *to, const struct ws_node *from)
{
    const struct ws_condition *c = &from->cond;
    struct ws_graph **bodies = ws_alloc_array(c->size, sizeof(*bodies));
    if (!bodies)
        return CUDA_OUT_OF_MEMORY;
    to->cond = (struct ws_condition){c->handle, c->type, c->size, bodies};
    to->work.kind = WS_WORK_CONDITIONAL;
    for (unsigned i = 0; i < c->size; i++) {
        int code = ws_graph_clone(c->bodies[i], &bodies[i]);
        if (code)
            return code;
        bodies[i]->owner = to;
    }
    return CUDA_OK;
}

static int copy_attributes(struct ws_node *to, const struct ws_node *from)
{
    for (unsigned i = 0; i < from->n_attributes; i++) {
        int code = ws_node_set_attribute(to, from->attributes[i].id, &from->attributes[i].val);
        if (code)
            return code;
    }
    return CUDA_OK;
}

int ws_node_copy_content(struct ws_node *to, const struct ws_node *from)
{
    to->function = from->function;
    to->raw = from->raw;
    to->raw_kind = from->raw_kind;
    to->ctx = from->ctx;
    if (from->block != to->block) {
        ws_block_unref(to->block);
        to->block = from->block ? ws_block_ref(from->block) : NULL;
    }
    int code = copy_attributes(to, from);
    if (code)
        return code;
    switch (from->type) {
    case WS_NODE_GRAPH:
        to->work.kind = WS_WORK_CHILD;
        return ws_node_set_child(to, from->child, false);
    case WS_NODE_CONDITIONAL:
        return copy_condition(to, from);
    default:
        return ws_drv_error(ws_node_set_work(to, &from->work));
    }
}

/* ---- attributes of kernels ---- */

enum { COOPERATIVE = 2, PRIORITY = 8 };

int ws_node_set_attribute(struct ws_node *n, int id, const union cuda_launch_attribute_value *v)
{
    struct cuda_launch_attribute a = {.id = id, .val = *v}, *mine = NULL;
    struct ws_launch *l = &n->work.launch.l;
    struct ws_launch_means means = {.cooperative = l->flags & 1};
    memcpy(means.cluster, l->cluster, sizeof(means.cluster));
    int code = ws_launch_attributes(&a, 1, &means);
    if (code)
        return code;
    for (unsigned i = 0; i < n->n_attributes && !mine; i++)
        mine = n->attributes[i].id == id ? &n->attributes[i] : NULL;
    if (!mine) {
        struct cuda_launch_attribute *p =
            realloc(n->attributes, (n->n_attributes + 1) * sizeof(*p));
        if (!p)
            return CUDA_OUT_OF_MEMORY;
        n->attributes = p;
        mine = &p[n->n_attributes++];
    }
    *mine = a;
    l->flags = means.cooperative;
    memcpy(l->cluster, means.cluster, sizeof(l->cluster));
    return CUDA_OK;
}

int ws_node_get_attribute(const struct ws_node *n, int id, union cuda_launch_attribute_value *ret)
{
    const struct ws_launch *l = &n->work.launch.l;
    struct cuda_launch_attribute a = {.id = id};
    struct ws_launch_means unused;
    for (unsigned i = 0; i < n->n_attributes; i++)
        if (n->attributes[i].id == id) {
            *ret = n->attributes[i].val;
            return CUDA_OK;
        }
    int code =
        id == WS_CUDA_ATTR_DEVICE_UPDATABLE_NODE ? CUDA_OK : ws_launch_attributes(&a, 1, &unused);
    if (code)
        return code;
    memset(ret, 0, sizeof(*ret));
    if (id == COOPERATIVE)
        ret->cooperative = l->flags & 1;
    if (id == WS_CUDA_ATTR_CLUSTER_DIMENSION)
        ret->cluster = (struct cuda_dim3){l->cluster[0], l->cluster[1], l->cluster[2]};
    return CUDA_OK;
}

/* ---- conditional handles ---- */

int ws_graph_handle_new(struct ws_graph *g, uint32_t value, unsigned flags, uint64_t *ret)
{
    enum { ASSIGN_DEFAULT = 1 };
    uint64_t handle;
    if (!ret || flags & ~(unsigned)ASSIGN_DEFAULT)
        return CUDA_INVALID_VALUE;
    if (ws_grow((void **)&g->handles, &g->cap_handles, g->n_handles + 1, sizeof(*g->handles)))
        return CUDA_OUT_OF_MEMORY;
    int code = ws_handle_new(&handle);
    if (code)
        return code;
    g->handles[g->n_handles++] = (struct ws_graph_handle){
        .handle = handle, .value = value, .assign = flags & ASSIGN_DEFAULT};
    *ret = handle;
    return CUDA_OK;
}

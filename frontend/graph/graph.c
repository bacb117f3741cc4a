// SPDX-License-Identifier: Apache-2.0
/* Graphs: nodes in the order in which they were made, each with its edges from other nodes in the
 * order given. An edge is kept at its end (with its data) and, without data, at its start. Nodes
 * and graphs lie in slabs, so that any pointer of the program can be checked. Invariants: both ends
 * of an edge are in the same graph; n->in holds a node once; nodes[n->index] == n. */
#include "frontend/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static struct ws_slab graphs = WS_SLAB(struct ws_graph), nodes = WS_SLAB(struct ws_node);
static _Atomic uint64_t next_id = 1;
static _Atomic uint32_t next_mark = 1;

bool ws_graph_valid(const void *g)
{
    return g && ws_slab_has(&graphs, g);
}
bool ws_node_valid(const void *n)
{
    return n && ws_slab_has(&nodes, n);
}

struct ws_graph *ws_graph_new(void)
{
    struct ws_graph *g = ws_slab_new(&graphs);
    if (g)
        g->id = next_id++;
    return g;
}

static void node_clear(struct ws_node *n)
{
    for (unsigned i = 0; n->cond.bodies && i < n->cond.size; i++)
        ws_graph_free(n->cond.bodies[i]);
    free(n->cond.bodies);
    ws_graph_free(n->child);
    ws_block_unref(n->block);
    free(n->params);
    free(n->param_ptrs);
    free(n->ops);
    free(n->raw_ops);
    free(n->attributes);
    free(n->in);
    free(n->out);
    ws_slab_free(&nodes, n);
}

void ws_graph_free(struct ws_graph *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n_nodes; i++)
        node_clear(g->nodes[i]);
    for (size_t i = 0; i < g->n_handles; i++)
        ws_handle_unref(g->handles[i].handle);
    for (size_t i = 0; i < g->n_users; i++)
        ws_user_object_release(g->users[i].object, g->users[i].count);
    free(g->nodes);
    free(g->handles);
    free(g->users);
    ws_slab_free(&graphs, g);
}

/* ---- edges ---- */

static struct ws_edge *edge_of(const struct ws_node *from, const struct ws_node *to)
{
    for (size_t i = 0; i < to->n_in; i++)
        if (to->in[i].from == from)
            return &to->in[i];
    return NULL;
}

static int edge_add(struct ws_node *from, struct ws_node *to, const struct cuda_edge_data *data)
{
    if (ws_grow((void **)&to->in, &to->cap_in, to->n_in + 1, sizeof(*to->in)) ||
        ws_grow((void **)&from->out, &from->cap_out, from->n_out + 1, sizeof(*from->out)))
        return CUDA_OUT_OF_MEMORY;
    to->in[to->n_in++] = (struct ws_edge){from, data ? *data : (struct cuda_edge_data){0}};
    from->out[from->n_out++] = to;
    return CUDA_OK;
}

static void edge_remove(struct ws_node *from, struct ws_node *to)
{
    size_t i = (size_t)(edge_of(from, to) - to->in);
    memmove(to->in + i, to->in + i + 1, (--to->n_in - i) * sizeof(*to->in));
    for (i = 0; from->out[i] != to; i++)
        ;
    memmove(from->out + i, from->out + i + 1, (--from->n_out - i) * sizeof(*from->out));
}

/* Only kernels have other ports than 0, and only programmatic edges leave from those. */
static bool data_ok(const struct ws_node *from, const struct cuda_edge_data *d)
{
    enum { PORT_MAX = 2, TYPE_PROGRAMMATIC = 1 };
    static const uint8_t zero[sizeof(d->reserved)];
    if (!d)
        return true;
    if (memcmp(d->reserved, zero, sizeof(zero)) || d->to_port || d->type > TYPE_PROGRAMMATIC)
        return false;
    return from->type == WS_NODE_KERNEL ? d->from_port <= PORT_MAX : !d->from_port && !d->type;
}

int ws_graph_add_edges(struct ws_graph *g, struct ws_node *const *from, struct ws_node *const *to,
                       const struct cuda_edge_data *data, size_t n)
{
    if (n && (!from || !to))
        return CUDA_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        if (!ws_node_valid(from[i]) || !ws_node_valid(to[i]) || from[i]->graph != g ||
            to[i]->graph != g || from[i] == to[i] || edge_of(from[i], to[i]) ||
            !data_ok(from[i], data ? &data[i] : NULL))
            return CUDA_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (edge_of(from[i], to[i])) /* twice in the same call */
            return CUDA_INVALID_VALUE;
        int code = edge_add(from[i], to[i], data ? &data[i] : NULL);
        if (code)
            return code;
    }
    return CUDA_OK;
}

int ws_graph_remove_edges(struct ws_graph *g, struct ws_node *const *from,
                          struct ws_node *const *to, const struct cuda_edge_data *data, size_t n)
{
    if (n && (!from || !to))
        return CUDA_INVALID_VALUE;
    if (n && g->has_memory)
        return CUDA_NOT_SUPPORTED;
    for (size_t i = 0; i < n; i++) {
        if (!ws_node_valid(from[i]) || !ws_node_valid(to[i]) || from[i]->graph != g)
            return CUDA_INVALID_VALUE;
        const struct ws_edge *e = edge_of(from[i], to[i]);
        if (!e || (data && memcmp(&e->data, &data[i], sizeof(*data))))
            return CUDA_INVALID_VALUE;
    }
    for (size_t i = 0; i < n; i++)
        if (edge_of(from[i], to[i]))
            edge_remove(from[i], to[i]);
    return CUDA_OK;
}

/* ---- nodes ---- */

int ws_graph_add(struct ws_graph *g, enum ws_node_type type, struct ws_node *const *deps,
                 const struct cuda_edge_data *data, size_t n_deps, struct ws_node **ret)
{
    if (n_deps && !deps)
        return CUDA_INVALID_VALUE;
    for (size_t i = 0; i < n_deps; i++) {
        if (!ws_node_valid(deps[i]) || deps[i]->graph != g ||
            !data_ok(deps[i], data ? &data[i] : NULL))
            return CUDA_INVALID_VALUE;
        for (size_t k = 0; k < i; k++)
            if (deps[k] == deps[i])
                return CUDA_INVALID_VALUE;
    }
    struct ws_node *n = ws_slab_new(&nodes);
    if (!n || ws_grow((void **)&g->nodes, &g->cap_nodes, g->n_nodes + 1, sizeof(*g->nodes))) {
        if (n)
            ws_slab_free(&nodes, n);
        return CUDA_OUT_OF_MEMORY;
    }
    n->graph = g;
    n->id = next_id++;
    n->type = type;
    n->index = g->n_nodes;
    g->nodes[g->n_nodes++] = n;
    for (size_t i = 0; i < n_deps; i++)
        if (edge_add(deps[i], n, data ? &data[i] : NULL)) {
            ws_node_free(n);
            return CUDA_OUT_OF_MEMORY;
        }
    *ret = n;
    return CUDA_OK;
}

void ws_node_free(struct ws_node *n)
{
    struct ws_graph *g = n->graph;
    while (n->n_in)
        edge_remove(n->in[n->n_in - 1].from, n);
    while (n->n_out)
        edge_remove(n, n->out[n->n_out - 1]);
    memmove(g->nodes + n->index, g->nodes + n->index + 1,
            (--g->n_nodes - n->index) * sizeof(*g->nodes));
    for (size_t i = n->index; i < g->n_nodes; i++)
        g->nodes[i]->index = i;
    node_clear(n);
}

int ws_node_destroy(struct ws_node *n)
{
    if (n->graph->has_memory || n->graph->of_exec)
        return CUDA_NOT_SUPPORTED;
    ws_node_free(n);
    return CUDA_OK;
}

bool ws_graph_order(const struct ws_graph *g, struct ws_node **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        g->nodes[i]->mark = (uint32_t)g->nodes[i]->n_in; /* edges not yet passed */
        if (!g->nodes[i]->n_in)
            ret[n++] = g->nodes[i];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < ret[i]->n_out; k++)
            if (!--ret[i]->out[k]->mark)
                ret[n++] = ret[i]->out[k];
    return n == g->n_nodes;
}

bool ws_graph_before(const struct ws_graph *g, struct ws_node *const *first, size_t n_first,
                     struct ws_node *const *then, size_t n_then)
{
    struct ws_node **stack = ws_alloc_array(g->n_nodes + 1, sizeof(*stack));
    uint32_t mark = next_mark++ | UINT32_C(1) << 31; /* no count of edges */
    size_t n = 0;
    bool all = stack != NULL;
    for (size_t i = 0; all && i < n_then; i++)
        if (then[i]->mark != mark) {
            then[i]->mark = mark;
            stack[n++] = then[i];
        }
    while (n) {
        const struct ws_node *t = stack[--n];
        for (size_t i = 0; i < t->n_in; i++)
            if (t->in[i].from->mark != mark) {
                t->in[i].from->mark = mark;
                stack[n++] = t->in[i].from;
            }
    }
    for (size_t i = 0; all && i < n_first; i++)
        all = first[i]->mark == mark;
    free(stack);
    return all;
}

/* ---- copies ---- */

static int clone_into(const struct ws_graph *g, struct ws_graph *to)
{
    to->origin = g->id;
    to->has_memory = g->has_memory;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct ws_node *from = g->nodes[i];
        struct ws_node *n;
        int code = ws_graph_add(to, from->type, NULL, NULL, 0, &n);
        if (code)
            return code;
        n->origin = from->id;
        n->disabled = from->disabled;
        if ((code = ws_node_copy_content(n, from)))
            return code;
    }
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i]->n_in; k++) {
            const struct ws_edge *e = &g->nodes[i]->in[k];
            int code = edge_add(to->nodes[e->from->index], to->nodes[i], &e->data);
            if (code)
                return code;
        }
    return CUDA_OK;
}

int ws_graph_clone(const struct ws_graph *g, struct ws_graph **ret)
{
    struct ws_graph *to = ws_graph_new();
    if (!to)
        return CUDA_OUT_OF_MEMORY;
    int code = clone_into(g, to);
    if (!code &&
        ws_grow((void **)&to->handles, &to->cap_handles, g->n_handles + 1, sizeof(*to->handles)))
        code = CUDA_OUT_OF_MEMORY;
    for (size_t i = 0; !code && i < g->n_handles; i++) {
        to->handles[to->n_handles++] = g->handles[i];
        ws_handle_ref(g->handles[i].handle);
    }
    for (size_t i = 0; !code && i < g->n_users; i++) {
        ws_user_object_retain(g->users[i].object, g->users[i].count);
        code = ws_graph_retain_user(to, g->users[i].object, g->users[i].count, 1);
    }
    if (code) {
        ws_graph_free(to);
        return code;
    }
    *ret = to;
    return CUDA_OK;
}

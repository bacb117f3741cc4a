// SPDX-License-Identifier: Apache-2.0
/* The lists that a program may ask for: nodes, roots, edges, neighbours. All answer in one way: the
 * program gives room for some entries, or none to ask how many there are; room that is not needed
 * is zeroed. */
#include <string.h>

#include "frontend/graph/params.h"

struct asked_list {
    size_t room, n;
};

/* Return: true if entry number l->n is to be written. */
static bool list_next(struct asked_list *l)
{
    return l->n++ < l->room;
}

/* @asked: the program gave room; else it asks how many there are. */
static void list_end(const struct asked_list *l, bool asked, size_t *n)
{
    *n = asked ? WS_MIN(l->n, l->room) : l->n;
}

static void zero_rest(struct ws_node **v, const struct asked_list *l)
{
    for (size_t i = l->n; v && i < l->room; i++)
        v[i] = NULL;
}

int ws_graph_list(struct ws_graph *g, enum ws_list_kind kind, struct ws_node **ret, size_t *n)
{
    if (!ws_graph_valid(g) || !n)
        return CUDA_INVALID_VALUE;
    struct asked_list l = {.room = ret ? *n : 0};
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
    struct asked_list l = {.room = asked ? *n : 0};
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
    struct asked_list l = {.room = ret ? *n_ret : 0};
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

// SPDX-License-Identifier: Apache-2.0
/* From a graph to what is launched.
 *
 * A plan is the graph as streams and events: steps in an order that respects the edges, child
 * graphs opened into their parent's, each on a branch (a stream of the exec's own; branch 0 is the
 * stream that the graph is launched into). A step goes on the branch of something that it waits for
 * if that branch ends there, else on one that ends before it in the graph anyway, else on a new
 * one. Each step carries a clock: for each branch, how far that branch is known to be done when the
 * step is. So a wait is left out when something else waited for implies it, and a graph that is a
 * chain needs no event at all.
 *
 * Bodies of conditional nodes have plans of their own, which the host starts when the node is
 * reached (launch.c).
 *
 * Invariants: waits name steps with lower indices, on other branches; positions on a branch count
 * from 1 in the order of the steps. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/graph/graph.h"
#include "frontend/graph/params.h"
#include "frontend/module/module.h"

enum { MAX_BRANCHES = 32, SMALL_FAN = 64 };
#define NO_STEP UINT32_MAX

/* ---- steps ---- */

struct builder {
    struct ws_plan *plan;
    struct preds {
        uint32_t *v;
        uint32_t n;
        size_t cap;
    } * preds; /* of each step */
    size_t cap_preds, cap_steps;
    uint32_t (*clocks)[MAX_BRANCHES];
    uint32_t n_on_branch[MAX_BRANCHES], tail[MAX_BRANCHES];
};

static int step_new(struct builder *b, struct ws_node *node, uint32_t *ret)
{
    struct ws_plan *p = b->plan;
    if (ws_grow((void **)&p->steps, &b->cap_steps, p->n_steps + 1, sizeof(*p->steps)) ||
        ws_grow((void **)&b->preds, &b->cap_preds, p->n_steps + 1, sizeof(*b->preds)))
        return CUDA_OUT_OF_MEMORY;
    memset(&p->steps[p->n_steps], 0, sizeof(*p->steps));
    memset(&b->preds[p->n_steps], 0, sizeof(*b->preds));
    p->steps[p->n_steps].node = node;
    *ret = p->n_steps++;
    return CUDA_OK;
}

static int step_after(struct builder *b, uint32_t step, uint32_t before)
{
    struct preds *p = &b->preds[step];
    if (ws_grow((void **)&p->v, &p->cap, p->n + 1, sizeof(*p->v)))
        return CUDA_OUT_OF_MEMORY;
    p->v[p->n++] = before;
    return CUDA_OK;
}

static int open_bodies(struct ws_graph_step *s, int device)
{
    const struct ws_condition *c = &s->node->cond;
    s->bodies = ws_alloc_array(c->size, sizeof(struct ws_plan *));
    if (!s->bodies)
        return CUDA_OUT_OF_MEMORY;
    s->n_bodies = c->size;
    for (unsigned i = 0; i < c->size; i++) {
        int code = ws_plan_new(c->bodies[i], device, &s->bodies[i]);
        if (code)
            return code;
    }
    return CUDA_OK;
}

/* Steps of @g after step @entry (NO_STEP: none). @ret_exit: NULL, or gets a step after all of them.
 * Recursion is as deep as graphs are nested. */
static int open_graph(struct builder *b, const struct ws_graph *g, uint32_t entry,
                      uint32_t *ret_exit)
{
    struct ws_node **order = ws_alloc_array(g->n_nodes + 1, sizeof(*order));
    int code = !order                      ? CUDA_OUT_OF_MEMORY
               : !ws_graph_order(g, order) ? CUDA_INVALID_VALUE
                                           : CUDA_OK;
    for (size_t i = 0; !code && i < g->n_nodes; i++) {
        struct ws_node *n = order[i];
        bool nested = n->type == WS_NODE_GRAPH;
        uint32_t s = NO_STEP;
        code = step_new(b, nested ? NULL : n, &s);
        for (size_t k = 0; !code && k < n->n_in; k++)
            code = step_after(b, s, n->in[k].from->step);
        if (!code && !n->n_in && entry != NO_STEP)
            code = step_after(b, s, entry);
        if (!code && nested)
            code = open_graph(b, n->child, s, &s);
        if (!code && n->type == WS_NODE_CONDITIONAL)
            code = open_bodies(&b->plan->steps[s], b->plan->device);
        n->step = s;
    }
    if (!code && ret_exit)
        code = step_new(b, NULL, ret_exit);
    for (size_t i = 0; !code && ret_exit && i < g->n_nodes; i++)
        if (!g->nodes[i]->n_out)
            code = step_after(b, *ret_exit, g->nodes[i]->step);
    if (!code && ret_exit && !g->n_nodes)
        code = step_after(b, *ret_exit, entry);
    free(order);
    return code;
}

/* ---- branches ---- */

static int step_device(const struct ws_graph_step *s)
{
    const struct ws_stream_work *w = s->node ? &s->node->work : NULL;
    if (w && w->kind == WS_WORK_LAUNCH)
        return ws_function_device(w->launch.l.function);
    return w && w->kind == WS_WORK_RECORD ? ws_session_event_device(w->event.event) : -1;
}

static bool branch_fits(const struct ws_plan *p, uint32_t branch, int device)
{
    return device < 0 || p->branches[branch].device == device;
}

/* Return: MAX_BRANCHES if none will do. */
static uint32_t choose_branch(const struct builder *b, const struct preds *preds,
                              const uint32_t *clock, int device)
{
    struct ws_plan *p = b->plan;
    uint32_t best = MAX_BRANCHES;
    for (uint32_t i = 0; i < preds->n; i++) {
        const struct ws_graph_step *t = &p->steps[preds->v[i]];
        if (b->n_on_branch[t->branch] == t->position && branch_fits(p, t->branch, device))
            return t->branch;
    }
    for (uint32_t l = 0; l < p->n_branches; l++)
        if (clock[l] == b->n_on_branch[l] && branch_fits(p, l, device))
            return l;
    if (p->n_branches < MAX_BRANCHES) {
        p->branches[p->n_branches].device = device < 0 ? p->device : device;
        return p->n_branches++;
    }
    for (uint32_t l = 0; l < p->n_branches; l++)
        if (branch_fits(p, l, device) &&
            (best == MAX_BRANCHES || b->n_on_branch[l] < b->n_on_branch[best]))
            best = l;
    return best;
}

static void merge(uint32_t *clock, const uint32_t *other)
{
    for (int l = 0; l < MAX_BRANCHES; l++)
        clock[l] = WS_MAX(clock[l], other[l]);
}

/* True if something else in @preds implies the wait for preds->v[i]. */
static bool implied(const struct builder *b, const struct preds *preds, uint32_t i)
{
    const struct ws_graph_step *t = &b->plan->steps[preds->v[i]];
    for (uint32_t k = 0; preds->n <= SMALL_FAN && k < preds->n; k++)
        if (k != i && b->clocks[preds->v[k]][t->branch] >= t->position &&
            preds->v[k] != preds->v[i])
            return true;
    return false;
}

static int place(struct builder *b, uint32_t step)
{
    struct ws_plan *p = b->plan;
    struct ws_graph_step *s = &p->steps[step];
    const struct preds *preds = &b->preds[step];
    uint32_t *clock = b->clocks[step];
    for (uint32_t i = 0; i < preds->n; i++)
        merge(clock, b->clocks[preds->v[i]]);
    uint32_t l = choose_branch(b, preds, clock, step_device(s));
    if (l == MAX_BRANCHES)
        return CUDA_NOT_SUPPORTED; /* more devices than branches */
    static const uint32_t nothing[MAX_BRANCHES];
    const uint32_t *known = b->n_on_branch[l] ? b->clocks[b->tail[l]] : nothing;
    size_t cap = 0;
    for (uint32_t i = 0; i < preds->n; i++) {
        struct ws_graph_step *t = &p->steps[preds->v[i]];
        if (t->branch == l || known[t->branch] >= t->position || implied(b, preds, i))
            continue;
        if (ws_grow((void **)&s->waits, &cap, s->n_waits + 1, sizeof(*s->waits)))
            return CUDA_OUT_OF_MEMORY;
        s->waits[s->n_waits++] = preds->v[i];
        t->signals = true;
    }
    merge(clock, known);
    s->first = !b->n_on_branch[l] && !s->n_waits;
    s->branch = l;
    s->position = ++b->n_on_branch[l];
    b->tail[l] = step;
    clock[l] = s->position;
    return CUDA_OK;
}

static void find_last(struct builder *b)
{
    struct ws_plan *p = b->plan;
    for (uint32_t l = 0; l < p->n_branches; l++) {
        bool last = true;
        for (uint32_t k = 0; last && k < p->n_branches; k++)
            last = k == l || b->clocks[b->tail[k]][l] < b->n_on_branch[l];
        p->steps[b->tail[l]].last = last;
    }
}

int ws_plan_new(struct ws_graph *g, int device, struct ws_plan **ret)
{
    struct builder b = {.plan = ws_alloc(sizeof(struct ws_plan))};
    if (!b.plan)
        return CUDA_OUT_OF_MEMORY;
    b.plan->device = device;
    b.plan->branches = ws_alloc_array(MAX_BRANCHES, sizeof(*b.plan->branches));
    int code = b.plan->branches ? open_graph(&b, g, NO_STEP, NULL) : CUDA_OUT_OF_MEMORY;
    if (!code && !(b.clocks = ws_alloc_array(b.plan->n_steps + 1, sizeof(*b.clocks))))
        code = CUDA_OUT_OF_MEMORY;
    for (uint32_t i = 0; !code && i < b.plan->n_steps; i++)
        code = place(&b, i);
    if (!code)
        find_last(&b);
    for (uint32_t i = 0; b.preds && i < b.plan->n_steps; i++)
        free(b.preds[i].v);
    free(b.preds);
    free(b.clocks);
    if (code)
        ws_plan_free(b.plan);
    else
        *ret = b.plan;
    return code;
}

void ws_plan_free(struct ws_plan *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        struct ws_graph_step *s = &p->steps[i];
        for (unsigned k = 0; s->bodies && k < s->n_bodies; k++)
            ws_plan_free(s->bodies[k]);
        if (s->event)
            (void)ws_session_event_destroy(s->event);
        free(s->bodies);
        free(s->waits);
    }
    for (uint32_t i = 0; i < p->n_branches; i++)
        if (p->branches[i].stream)
            (void)ws_session_stream_destroy(p->branches[i].stream);
    if (p->start)
        (void)ws_session_event_destroy(p->start);
    free(p->steps);
    free(p->branches);
    free(p);
}

/* ---- execs ---- */

static struct ws_slab execs = WS_SLAB(struct ws_exec);
static pthread_mutex_t dead_lock = PTHREAD_MUTEX_INITIALIZER;
/* Given up by host tasks, which must not wait for the device as freeing does. */
static struct ws_exec *dead;

bool ws_exec_valid(const void *e)
{
    return e && ws_slab_has(&execs, e);
}

static void exec_free(struct ws_exec *e)
{
    if (ws_graph_valid(e->source) && e->graph && e->source->id == e->graph->origin)
        e->source->n_execs--;
    ws_plan_free(e->plan);
    ws_graph_free(e->graph);
    if (e->done)
        (void)ws_session_event_destroy(e->done);
    free(e->by_origin);
    free(e->handles);
    pthread_mutex_destroy(&e->launching);
    ws_slab_free(&execs, e);
}

static void bury(void)
{
    pthread_mutex_lock(&dead_lock);
    struct ws_exec *e = dead, *next;
    dead = NULL;
    pthread_mutex_unlock(&dead_lock);
    for (; e; e = next) {
        next = e->next;
        exec_free(e);
    }
}

void ws_exec_unref(struct ws_exec *e)
{
    if (atomic_fetch_sub(&e->n_refs, 1) != 1)
        return;
    pthread_mutex_lock(&dead_lock);
    e->next = dead;
    dead = e;
    pthread_mutex_unlock(&dead_lock);
}

int ws_exec_destroy(struct ws_exec *e)
{
    ws_exec_unref(e);
    bury();
    return CUDA_OK;
}

static int compare_origin(const void *a, const void *b)
{
    const struct ws_node *x = *(struct ws_node *const *)a, *y = *(struct ws_node *const *)b;
    return (x->origin > y->origin) - (x->origin < y->origin);
}

/* Notes all nodes and handles of @g, at all depths. */
static int note_all(struct ws_exec *e, struct ws_graph *g)
{
    int code = CUDA_OK;
    g->of_exec = true;
    for (size_t i = 0; i < g->n_handles; i++) {
        if (!g->handles[i].assign)
            continue;
        if (ws_grow((void **)&e->handles, &e->cap_handles, e->n_handles + 1, sizeof(*e->handles)))
            return CUDA_OUT_OF_MEMORY;
        e->handles[e->n_handles++] = g->handles[i];
    }
    for (size_t i = 0; !code && i < g->n_nodes; i++) {
        struct ws_node *n = g->nodes[i];
        if (ws_grow((void **)&e->by_origin, &e->cap_by_origin, e->n_by_origin + 1,
                    sizeof(*e->by_origin)))
            return CUDA_OUT_OF_MEMORY;
        e->by_origin[e->n_by_origin++] = n;
        if (n->child)
            code = note_all(e, n->child);
        for (unsigned k = 0; !code && k < n->cond.size; k++)
            code = note_all(e, n->cond.bodies[k]);
    }
    return code;
}

struct ws_node *ws_exec_node(const struct ws_exec *e, const struct ws_node *n)
{
    struct ws_node key = {.origin = n->id}, *p = &key;
    struct ws_node **found =
        bsearch(&p, e->by_origin, e->n_by_origin, sizeof(*e->by_origin), compare_origin);
    return found ? *found : NULL;
}

static int check_instantiation(const struct ws_graph *g, uint64_t flags,
                               enum ws_instantiate_result *ret)
{
    enum { KNOWN = WS_GRAPH_AUTO_FREE | WS_GRAPH_UPLOAD | WS_GRAPH_NODE_PRIORITY };
    if (flags & WS_GRAPH_DEVICE_LAUNCH) {
        ws_session_unsupported("graphs launched from device code (DeviceLaunch)");
        *ret = WS_INSTANTIATE_NOT_SUPPORTED;
        return CUDA_NOT_SUPPORTED;
    }
    if (flags & ~(uint64_t)KNOWN)
        return CUDA_INVALID_VALUE;
    if (g->has_memory && g->n_execs) /* "only one instantiation may exist at any point in time" */
        return CUDA_NOT_SUPPORTED;
    for (size_t i = 0; i < g->n_handles; i++)
        if (!g->handles[i].used) {
            *ret = WS_INSTANTIATE_HANDLE_UNUSED;
            return CUDA_INVALID_VALUE;
        }
    return CUDA_OK;
}

int ws_exec_new(struct ws_graph *g, int device, uint64_t flags, struct ws_exec **ret,
                enum ws_instantiate_result *ret_result, struct ws_node **ret_node)
{
    bury();
    *ret_node = NULL;
    *ret_result = WS_INSTANTIATE_ERROR;
    int code = check_instantiation(g, flags, ret_result);
    if (code)
        return code;
    struct ws_node **order = ws_alloc_array(g->n_nodes + 1, sizeof(*order));
    if (!order)
        return CUDA_OUT_OF_MEMORY;
    bool ordered = ws_graph_order(g, order);
    free(order);
    if (!ordered) {
        for (size_t i = 0; i < g->n_nodes && !*ret_node; i++)
            *ret_node = g->nodes[i]->mark ? g->nodes[i] : NULL;
        *ret_result = WS_INSTANTIATE_INVALID_STRUCTURE;
        return CUDA_INVALID_VALUE;
    }
    struct ws_exec *e = ws_slab_new(&execs);
    if (!e)
        return CUDA_OUT_OF_MEMORY;
    pthread_mutex_init(&e->launching, NULL);
    e->n_refs = 1;
    e->flags = flags;
    e->device = device;
    e->last_stream = 0;
    code = ws_graph_clone(g, &e->graph);
    if (!code)
        code = note_all(e, e->graph);
    if (!code)
        code = ws_plan_new(e->graph, device, &e->plan);
    if (code) {
        exec_free(e);
        return code;
    }
    qsort(e->by_origin, e->n_by_origin, sizeof(*e->by_origin), compare_origin);
    e->source = g;
    g->n_execs++;
    *ret = e;
    *ret_result = WS_INSTANTIATE_SUCCESS;
    return CUDA_OK;
}

int ws_exec_set_enabled(struct ws_exec *e, struct ws_node *n, bool enabled)
{
    struct ws_node *mine = ws_exec_node(e, n);
    if (!mine ||
        (n->type != WS_NODE_KERNEL && n->type != WS_NODE_MEMCPY && n->type != WS_NODE_MEMSET))
        return CUDA_INVALID_VALUE;
    mine->disabled = !enabled;
    return CUDA_OK;
}

/* ---- update ---- */

static int differs(struct cuda_update_result *r, enum ws_update_result why,
                   const struct ws_node *node, const struct ws_node *from)
{
    r->result = why;
    r->errorNode = (void *)node;
    r->errorFromNode = (void *)from;
    return CUDA_GRAPH_UPDATE_FAILURE;
}

static enum ws_mem_kind memory_kind(uint64_t address, int *ret_device)
{
    struct ws_mem_info m;
    ws_session_mem_find(address, &m);
    *ret_device = m.kind == WS_MEM_NONE || m.kind == WS_MEM_PINNED ? -1 : m.device;
    return m.kind;
}

static bool same_memory(uint64_t a, uint64_t b)
{
    int x, y;
    memory_kind(a, &x);
    memory_kind(b, &y);
    return x == y;
}

static bool parameters_fit(const struct ws_node *a, const struct ws_node *b)
{
    const struct ws_stream_work *x = &a->work, *y = &b->work;
    switch (a->type) {
    case WS_NODE_KERNEL:
        return ws_function_device(x->launch.l.function) == ws_function_device(y->launch.l.function);
    case WS_NODE_MEMCPY:
        return same_memory(x->copy.dst.address, y->copy.dst.address) &&
               same_memory(x->copy.src.address, y->copy.src.address) &&
               (x->copy.box.depth > 1) == (y->copy.box.depth > 1);
    case WS_NODE_MEMSET:
        return same_memory(x->fill.dst.address, y->fill.dst.address);
    case WS_NODE_MEM_ALLOC:
    case WS_NODE_MEM_FREE:
        return a->block == b->block;
    case WS_NODE_CONDITIONAL:
        return a->cond.handle == b->cond.handle;
    default:
        return true;
    }
}

static int compare_graphs(const struct ws_graph *a, const struct ws_graph *b,
                          struct cuda_update_result *r)
{
    int code = CUDA_OK;
    if (a->n_nodes != b->n_nodes)
        return differs(r, WS_UPDATE_TOPOLOGY_CHANGED, NULL, NULL);
    for (size_t i = 0; !code && i < a->n_nodes; i++) {
        const struct ws_node *x = a->nodes[i], *y = b->nodes[i];
        if (x->type != y->type)
            return differs(r, WS_UPDATE_NODE_TYPE_CHANGED, y, NULL);
        if (x->n_in != y->n_in)
            return differs(r, WS_UPDATE_TOPOLOGY_CHANGED, y, NULL);
        for (size_t k = 0; k < x->n_in; k++)
            if (x->in[k].from->index != y->in[k].from->index)
                return differs(r, WS_UPDATE_TOPOLOGY_CHANGED, y, y->in[k].from);
        if (x->type == WS_NODE_CONDITIONAL &&
            (x->cond.size != y->cond.size || x->cond.type != y->cond.type))
            return differs(r, WS_UPDATE_PARAMETERS_CHANGED, y, NULL);
        if (!parameters_fit(x, y))
            return differs(r,
                           x->type == WS_NODE_KERNEL ? WS_UPDATE_UNSUPPORTED_FUNCTION_CHANGE
                                                     : WS_UPDATE_PARAMETERS_CHANGED,
                           y, NULL);
        if (x->child)
            code = compare_graphs(x->child, y->child, r);
        for (unsigned k = 0; !code && k < x->cond.size; k++)
            code = compare_graphs(x->cond.bodies[k], y->cond.bodies[k], r);
    }
    return code;
}

/* Of the same shape. */
static int copy_graph(struct ws_graph *to, const struct ws_graph *from)
{
    int code = CUDA_OK;
    for (size_t i = 0; !code && i < to->n_nodes; i++) {
        struct ws_node *x = to->nodes[i];
        const struct ws_node *y = from->nodes[i];
        if (x->child)
            code = copy_graph(x->child, y->child);
        else if (x->type == WS_NODE_CONDITIONAL)
            for (unsigned k = 0; !code && k < x->cond.size; k++)
                code = copy_graph(x->cond.bodies[k], y->cond.bodies[k]);
        else
            code = ws_node_copy_content(x, y);
    }
    return code;
}

int ws_exec_update(struct ws_exec *e, const struct ws_graph *g, struct cuda_update_result *ret)
{
    *ret = (struct cuda_update_result){0};
    pthread_mutex_lock(&e->launching);
    int code = compare_graphs(e->graph, g, ret);
    if (!code && (code = copy_graph(e->graph, g)))
        ret->result = WS_UPDATE_ERROR;
    pthread_mutex_unlock(&e->launching);
    return code;
}

int ws_exec_set_child(struct ws_exec *e, struct ws_node *n, struct ws_graph *child)
{
    struct cuda_update_result unused;
    struct ws_node *mine = ws_exec_node(e, n);
    if (!mine || mine->type != WS_NODE_GRAPH || compare_graphs(mine->child, child, &unused))
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&e->launching);
    int code = copy_graph(mine->child, child);
    pthread_mutex_unlock(&e->launching);
    return code;
}

/* ---- with CUDA's answers ---- */

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

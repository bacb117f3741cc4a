// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/calls.c - who calls whom: of the module, found once, and of one kernel.
 *
 * A call through a register may come to every function whose address is taken. In the graph it goes
 * to one node of its own, number n_funcs, which goes to all of them; so the graph is no larger than
 * the text. Functions that may come back to each other are one group: Tarjan, "Depth-First Search
 * and Linear Graph Algorithms" (1972), with a stack of its own, since modules may nest calls
 * deeply. */
#include <string.h>

#include "base/budget.h"
#include "device/soft/decode/priv.h"

/* ---- of the module ---- */
static void note_taken(struct ws_callgraph *g, const struct ws_ptx_operand *o)
{
    for (unsigned k = 0; k < o->n; k++)
        note_taken(g, &o->v[k]);
    if (o->kind == WS_OPD_SYM && o->sym >= 0 && WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_FUNC)
        g->taken[WS_PTX_SYM_INDEX(o->sym)] = 1;
}

static void note_all_taken(struct ws_callgraph *g, const struct ws_ptx_module *m)
{
    for (uint32_t f = 0; f < m->n_funcs; f++)
        for (uint32_t k = 0; k < m->funcs[f].n_insns; k++) {
            const struct ws_ptx_insn *i = &m->funcs[f].insns[k];
            for (unsigned n = 0; n < i->n_operands; n++)
                note_taken(g, &i->operands[n]);
        }
    for (uint32_t v = 0; v < m->n_vars; v++)
        for (uint32_t k = 0; k < m->vars[v].n_init_syms; k++)
            if (WS_PTX_SYM_KIND(m->vars[v].init_syms[k].sym) == WS_PTX_SYM_FUNC)
                g->taken[WS_PTX_SYM_INDEX(m->vars[v].init_syms[k].sym)] = 1;
}

static void number_targets(struct ws_callgraph *g, const struct ws_ptx_module *m)
{
    for (uint32_t f = 0; f < m->n_funcs; f++)
        if (g->taken[f] && !m->funcs[f].is_decl && !m->funcs[f].is_entry) {
            g->target_no[f] = g->n_targets;
            g->targets[g->n_targets++] = f;
        }
    for (uint32_t f = 0; f < m->n_funcs; f++)
        if (!g->taken[f] || m->funcs[f].is_decl || m->funcs[f].is_entry)
            g->target_no[f] = g->n_targets; /* of none */
}

/* Gathers what @func calls by name, each once, in @list; @stamps tells what is in it. Return: how
 * many. */
static uint32_t find_callees(const struct ws_ptx_module *m, struct ws_callgraph *g, uint32_t func,
                             uint32_t *list, uint32_t *stamps)
{
    const struct ws_ptx_func *f = &m->funcs[func];
    uint32_t n = 0;
    for (uint32_t k = 0; k < f->n_insns && ws_budget_spend(1); k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        if (i->op != WS_OP_CALL || !i->call)
            continue;
        if (i->call->callee.kind != WS_OPD_SYM) {
            g->indirect[func] = 1;
            continue;
        }
        uint32_t callee = g->alias_of[WS_PTX_SYM_INDEX(i->call->callee.sym)];
        if (m->funcs[callee].is_decl || stamps[callee] == func + 1)
            continue;
        stamps[callee] = func + 1;
        list[n++] = callee;
    }
    return n;
}

static bool find_all_callees(const struct ws_ptx_module *m, struct ws_callgraph *g,
                             struct ws_arena *a, struct ws_arena *tmp)
{
    uint32_t *list = ws_arena_array(tmp, m->n_funcs + (size_t)1, sizeof(*list)),
             *stamps = ws_arena_array(tmp, m->n_funcs + (size_t)1, sizeof(*stamps));
    if (!list || !stamps)
        return false;
    for (uint32_t f = 0; f < m->n_funcs; f++) {
        uint32_t n = find_callees(m, g, f, list, stamps);
        if (!n)
            continue;
        g->callees[f] = ws_arena_array(a, n, sizeof(*list));
        if (!g->callees[f])
            return false;
        memcpy(g->callees[f], list, n * sizeof(*list));
        g->n_callees[f] = n;
    }
    return true;
}

/* The k-th node that @node goes to. Return: false: there are no more. */
static bool goes_to(const struct ws_callgraph *g, uint32_t node, uint32_t k, uint32_t *ret)
{
    bool is_func = node < g->n_funcs;
    uint32_t n = is_func ? g->n_callees[node] : g->n_targets;
    if (k < n)
        *ret = (is_func ? g->callees[node] : g->targets)[k];
    else if (is_func && k == n && g->indirect[node])
        *ret = g->n_funcs;
    else
        return false;
    return true;
}

struct grouping {
    struct ws_callgraph *g;
    uint32_t *number, *low; /* 0: not seen */
    uint32_t *open, n_open; /* seen, and without a group */
    uint32_t *path, *next, n_path, n_seen, n_groups;
};

static void enter(struct grouping *t, uint32_t node)
{
    t->number[node] = t->low[node] = ++t->n_seen;
    t->open[t->n_open++] = node;
    t->path[t->n_path++] = node;
}

/* All that @node goes to has been seen. */
static void leave(struct grouping *t, uint32_t node)
{
    if (--t->n_path)
        t->low[t->path[t->n_path - 1]] = WS_MIN(t->low[t->path[t->n_path - 1]], t->low[node]);
    if (t->low[node] != t->number[node])
        return;
    uint32_t member, size = 0;
    t->n_groups++;
    do {
        member = t->open[--t->n_open];
        t->g->group[member] = t->n_groups;
        t->g->recursive[member] |= size++ > 0 || member != node;
    } while (member != node);
    t->g->recursive[node] |= size > 1;
}

static void group_from(struct grouping *t, uint32_t first)
{
    for (enter(t, first); t->n_path;) {
        uint32_t node = t->path[t->n_path - 1], to;
        if (!goes_to(t->g, node, t->next[node]++, &to)) {
            leave(t, node);
            continue;
        }
        if (!t->number[to])
            enter(t, to);
        else if (!t->g->group[to]) /* still open */
            t->low[node] = WS_MIN(t->low[node], t->number[to]);
        if (to == node)
            t->g->recursive[node] = 1;
    }
}

static bool find_groups(struct ws_callgraph *g, struct ws_arena *tmp)
{
    size_t n = g->n_funcs + (size_t)1;
    struct grouping t = {.g = g};
    t.number = ws_arena_array(tmp, n, sizeof(*t.number));
    t.low = ws_arena_array(tmp, n, sizeof(*t.low));
    t.open = ws_arena_array(tmp, n, sizeof(*t.open));
    t.path = ws_arena_array(tmp, n, sizeof(*t.path));
    t.next = ws_arena_array(tmp, n, sizeof(*t.next));
    if (!t.number || !t.low || !t.open || !t.path || !t.next)
        return false;
    for (uint32_t f = 0; f < g->n_funcs; f++)
        if (!t.number[f])
            group_from(&t, f);
    return true;
}

const struct ws_callgraph *ws_dec_callgraph_new(const struct ws_ptx_module *m, struct ws_arena *a)
{
    size_t n = m->n_funcs + (size_t)1;
    struct ws_arena tmp = WS_ARENA_NULL;
    struct ws_callgraph *g = ws_arena_alloc(a, sizeof(*g));
    if (!g)
        return NULL;
    g->n_funcs = m->n_funcs;
    g->taken = ws_arena_array(a, n, 1);
    g->indirect = ws_arena_array(a, n, 1);
    g->recursive = ws_arena_array(a, n, 1);
    g->alias_of = ws_arena_array(a, n, sizeof(*g->alias_of));
    g->group = ws_arena_array(a, n, sizeof(*g->group));
    g->targets = ws_arena_array(a, n, sizeof(*g->targets));
    g->target_no = ws_arena_array(a, n, sizeof(*g->target_no));
    g->callees = ws_arena_array(a, n, sizeof(*g->callees));
    g->n_callees = ws_arena_array(a, n, sizeof(*g->n_callees));
    bool ok = g->taken && g->indirect && g->recursive && g->alias_of && g->group && g->targets &&
              g->target_no && g->callees && g->n_callees;
    if (ok) {
        for (uint32_t f = 0; f < m->n_funcs; f++)
            g->alias_of[f] = f;
        for (uint32_t k = m->n_aliases; k-- > 0;) /* the first counts */
            g->alias_of[m->aliases[k].alias] = (uint32_t)m->aliases[k].aliasee;
        note_all_taken(g, m);
        number_targets(g, m);
        ok = find_all_callees(m, g, a, &tmp) && find_groups(g, &tmp);
    }
    ws_arena_deinit(&tmp);
    return ok ? g : NULL;
}

/* ---- of one kernel ---- */
static int by_index(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void find(struct ws_dec *d, uint32_t node)
{
    d->funcs[node] = (struct ws_dfunc){.f = node < d->m->n_funcs ? &d->m->funcs[node] : NULL,
                                       .index = node,
                                       .image = d->image,
                                       .thunk_seg = WS_NO_SEG,
                                       .recursive = d->graph->recursive[node]};
    d->path[d->n_path++] = node;
}

void ws_dec_reach(struct ws_dec *d, uint32_t func)
{
    const struct ws_callgraph *g = d->graph;
    d->n_path = d->n_reached = 0;
    for (find(d, func); d->n_path;) {
        d->oom |= !ws_budget_spend(1);
        uint32_t node = d->path[d->n_path - 1], to;
        if (!goes_to(g, node, d->funcs[node].next_callee++, &to))
            d->below[d->n_reached++] = d->path[--d->n_path];
        else if (d->funcs[to].image != d->image)
            find(d, to);
    }
    memcpy(d->reached, d->below, d->n_reached * sizeof(*d->reached));
    qsort(d->reached, d->n_reached, sizeof(*d->reached), by_index);
    d->has_indirect = d->funcs[g->n_funcs].image == d->image;
    if (d->has_indirect) /* the last one is no function */
        d->n_reached--;
}

/* A thunk needs room for the arguments that it passes on. */
static uint64_t own_local_bytes(const struct ws_dfunc *df, bool has_thunk)
{
    uint64_t thunk = 16 * ((uint64_t)df->f->n_params + df->f->n_rets) + df->frame_bytes;
    return df->frame_bytes + (has_thunk ? thunk : 0);
}

void ws_dec_measure_calls(struct ws_dec *d)
{
    uint32_t n = d->n_reached + d->has_indirect;
    for (uint32_t k = 0; k < n; k++) { /* what is called stands before who calls it */
        struct ws_dfunc *df = &d->funcs[d->below[k]];
        bool is_func = df->f != NULL;
        uint64_t depth = 0, local = 0;
        uint32_t to;
        for (uint32_t c = 0; goes_to(d->graph, df->index, c, &to); c++) {
            depth = WS_MAX(depth, (to < d->m->n_funcs) + (uint64_t)d->funcs[to].depth);
            local = WS_MAX(local, d->funcs[to].local_bytes);
        }
        if (is_func)
            local += own_local_bytes(df, ws_dec_has_thunk(d, df));
        df->depth = (uint32_t)depth;
        df->local_bytes = WS_MIN(local, UINT64_C(1) << 28);
    }
}

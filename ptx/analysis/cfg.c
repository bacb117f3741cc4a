// SPDX-License-Identifier: Apache-2.0
/* ptx/analysis/cfg.c - basic blocks and immediate post-dominators of a function.
 *
 * Post-dominators are dominators of the reversed graph, found as in Lengauer and Tarjan, "A Fast
 * Algorithm for Finding Dominators in a Flowgraph" (1979), the simple version: O(edges * log
 * blocks) whatever the graph, so that no client's kernel can keep the daemon busy. The root is a
 * virtual exit, number n_blocks, which follows every block that ends the thread. Blocks that never
 * reach it (endless loops) get -1: lanes that part inside them meet at the exit.
 *
 * A block's successors are two at most but for brx.idx, whose targets all count for the
 * post-dominators; succ[] names the first two. */
#include "ptx/ptx.h"

#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

static uint32_t target(const struct ws_ptx_func *f, const struct ws_ptx_operand *o)
{
    return f->labels[o->label].insn;
}

static uint32_t block_at(const struct ws_ptx_cfg *c, const struct ws_ptx_func *f, uint32_t insn)
{
    return insn < f->n_insns ? c->block_of[insn] : c->n_blocks;
}

/* Marks the first instruction of each block, numbers the blocks. */
static int find_blocks(struct ws_ptx_cfg *c, const struct ws_ptx_func *f, struct ws_arena *a)
{
    c->block_of = ws_arena_array(a, WS_MAX(f->n_insns, 1u), sizeof(*c->block_of));
    uint8_t *first = ws_alloc_array((size_t)f->n_insns + 1, 1);
    if (!c->block_of || !first) {
        free(first);
        return ws_raise(-ENOMEM);
    }
    first[0] = 1;
    for (uint32_t k = 0; k < f->n_labels; k++)
        first[f->labels[k].insn] = 1;
    for (uint32_t k = 0; k < f->n_insns; k++)
        if (ws_ptx_does(&f->insns[k], WS_DOES_END_BLOCK))
            first[k + 1] = 1;
    c->n_blocks = 0;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        c->n_blocks += first[k];
        c->block_of[k] = c->n_blocks - 1;
    }
    free(first);
    c->blocks = ws_arena_array(a, WS_MAX(c->n_blocks, 1u), sizeof(*c->blocks));
    if (!c->blocks)
        return ws_raise(-ENOMEM);
    for (uint32_t k = f->n_insns; k-- > 0;) {
        c->blocks[c->block_of[k]].first = k;
        c->blocks[c->block_of[k]].n++;
    }
    return 0;
}

/* Successors of block b into @to (NULL: only count); the virtual exit is n_blocks. */
static uint32_t successors(const struct ws_ptx_cfg *c, const struct ws_ptx_func *f, uint32_t b,
                           uint32_t *to)
{
    uint32_t last = c->blocks[b].first + c->blocks[b].n - 1, n = 0;
    const struct ws_ptx_insn *i = &f->insns[last];
    bool falls = !ws_ptx_does(i, WS_DOES_END_BLOCK) || i->guard >= 0;
    if (falls) {
        if (to)
            to[n] = block_at(c, f, last + 1);
        n++;
    }
    if (i->op == WS_OP_BRA) {
        if (to)
            to[n] = block_at(c, f, target(f, &i->operands[0]));
        n++;
    } else if (i->op == WS_OP_BRX_IDX) {
        for (uint32_t k = 0; k < i->operands[1].n; k++, n++)
            if (to)
                to[n] = block_at(c, f, target(f, &i->operands[1].v[k]));
    } else if (ws_ptx_does(i, WS_DOES_END_BLOCK)) {
        if (to)
            to[n] = c->n_blocks;
        n++;
    }
    return n;
}

int ws_ptx_edges_build(struct ws_ptx_edges *ret, const struct ws_ptx_cfg *c,
                       const struct ws_ptx_func *f, struct ws_arena *a)
{
    uint32_t n = c->n_blocks;
    struct ws_ptx_edges e;
    e.succ_at = ws_arena_array(a, (size_t)n + 1, sizeof(*e.succ_at));
    e.pred_at = ws_arena_array(a, (size_t)n + 3, sizeof(*e.pred_at));
    if (!e.succ_at || !e.pred_at)
        return ws_raise(-ENOMEM);
    for (uint32_t b = 0; b < n; b++)
        e.succ_at[b + 1] = e.succ_at[b] + successors(c, f, b, NULL);
    e.succ = ws_arena_array(a, (size_t)e.succ_at[n] + 1, sizeof(*e.succ));
    e.pred = ws_arena_array(a, (size_t)e.succ_at[n] + 1, sizeof(*e.pred));
    if (!e.succ || !e.pred)
        return ws_raise(-ENOMEM);
    for (uint32_t b = 0; b < n; b++)
        successors(c, f, b, e.succ + e.succ_at[b]);
    for (uint32_t k = 0; k < e.succ_at[n]; k++)
        e.pred_at[e.succ[k] + 2]++;
    for (uint32_t b = 0; b <= n; b++)
        e.pred_at[b + 2] += e.pred_at[b + 1];
    for (uint32_t b = 0; b < n; b++) /* pred_at[b + 1] moves from the start of b's to their end */
        for (uint32_t k = e.succ_at[b]; k < e.succ_at[b + 1]; k++)
            e.pred[e.pred_at[e.succ[k] + 1]++] = b;
    *ret = e;
    return 0;
}

/* The first two successors, for those who do without brx.idx. */
static void name_successors(struct ws_ptx_cfg *c, const struct ws_ptx_edges *e)
{
    for (uint32_t b = 0; b < c->n_blocks; b++)
        for (uint32_t k = 0; k < 2; k++) {
            bool is = e->succ_at[b] + k < e->succ_at[b + 1];
            uint32_t to = is ? e->succ[e->succ_at[b] + k] : c->n_blocks;
            c->blocks[b].succ[k] = to == c->n_blocks ? -1 : (int32_t)to;
        }
}

/* What the algorithm keeps per block; all numbers are depth-first numbers but vertex[]. */
struct lt {
    uint32_t n; /* blocks; the exit is block n */
    uint32_t n_reached;
    uint32_t *vertex; /* number -> block */
    int32_t *number;  /* block -> number, or -1: never reaches the exit */
    uint32_t *parent, *semi, *label, *dom, *stack;
    int32_t *ancestor, *bucket, *bucket_next;
};

/* Numbers the blocks depth first from the exit backwards. @next: [n + 1], of the function's own. */
static void number_blocks(struct lt *t, const struct ws_ptx_edges *e, uint32_t *next)
{
    uint32_t top = 0;
    for (uint32_t b = 0; b <= t->n; b++) {
        t->number[b] = -1;
        next[b] = e->pred_at[b];
    }
    t->number[t->n] = 0;
    t->vertex[0] = t->n;
    t->n_reached = 1;
    for (t->stack[top++] = t->n; top;) {
        uint32_t b = t->stack[top - 1];
        if (next[b] == e->pred_at[b + 1]) {
            top--;
            continue;
        }
        uint32_t q = e->pred[next[b]++];
        if (t->number[q] < 0) {
            t->parent[t->n_reached] = (uint32_t)t->number[b];
            t->vertex[t->n_reached] = q;
            t->number[q] = (int32_t)t->n_reached++;
            t->stack[top++] = q;
        }
    }
}

/* The block with the least semidominator on the way from v up to its tree's root, shortening that
 * way. */
static uint32_t eval(struct lt *t, uint32_t v)
{
    uint32_t top = 0;
    if (t->ancestor[v] < 0)
        return v;
    for (uint32_t u = v; t->ancestor[t->ancestor[u]] >= 0; u = (uint32_t)t->ancestor[u])
        t->stack[top++] = u;
    while (top) {
        uint32_t u = t->stack[--top], a = (uint32_t)t->ancestor[u];
        if (t->semi[t->label[a]] < t->semi[t->label[u]])
            t->label[u] = t->label[a];
        t->ancestor[u] = t->ancestor[a];
    }
    return t->label[v];
}

static void dominators(struct lt *t, const struct ws_ptx_edges *e)
{
    for (uint32_t i = 0; i < t->n_reached; i++) {
        t->semi[i] = t->label[i] = i;
        t->ancestor[i] = t->bucket[i] = -1;
    }
    for (uint32_t w = t->n_reached - 1; w > 0; w--) {
        uint32_t b = t->vertex[w], parent = t->parent[w];
        for (uint32_t k = e->succ_at[b]; k < e->succ_at[b + 1]; k++)
            if (t->number[e->succ[k]] >= 0) {
                uint32_t u = eval(t, (uint32_t)t->number[e->succ[k]]);
                t->semi[w] = WS_MIN(t->semi[w], t->semi[u]);
            }
        t->bucket_next[w] = t->bucket[t->semi[w]];
        t->bucket[t->semi[w]] = (int32_t)w;
        t->ancestor[w] = (int32_t)parent;
        for (int32_t v = t->bucket[parent]; v >= 0; v = t->bucket_next[v]) {
            uint32_t u = eval(t, (uint32_t)v);
            t->dom[v] = t->semi[u] < t->semi[v] ? u : parent;
        }
        t->bucket[parent] = -1;
    }
    for (uint32_t w = 1; w < t->n_reached; w++)
        if (t->dom[w] != t->semi[w])
            t->dom[w] = t->dom[t->dom[w]];
}

static int post_dominators(struct ws_ptx_cfg *c, const struct ws_ptx_edges *e)
{
    struct ws_arena a = WS_ARENA_NULL;
    struct lt t = {.n = c->n_blocks};
    size_t n = (size_t)c->n_blocks + 1;
    t.vertex = ws_arena_array(&a, n, sizeof(uint32_t));
    t.number = ws_arena_array(&a, n, sizeof(int32_t));
    t.parent = ws_arena_array(&a, n, sizeof(uint32_t));
    t.semi = ws_arena_array(&a, n, sizeof(uint32_t));
    t.label = ws_arena_array(&a, n, sizeof(uint32_t));
    t.dom = ws_arena_array(&a, n, sizeof(uint32_t));
    t.stack = ws_arena_array(&a, n, sizeof(uint32_t));
    t.ancestor = ws_arena_array(&a, n, sizeof(int32_t));
    t.bucket = ws_arena_array(&a, n, sizeof(int32_t));
    t.bucket_next = ws_arena_array(&a, n, sizeof(int32_t));
    bool ok = t.vertex && t.number && t.parent && t.semi && t.label && t.dom && t.stack &&
              t.ancestor && t.bucket && t.bucket_next;
    if (ok) {
        number_blocks(&t, e, t.label); /* dominators() sets labels anew */
        dominators(&t, e);
        for (uint32_t b = 0; b < c->n_blocks; b++) {
            uint32_t d = t.number[b] > 0 ? t.vertex[t.dom[t.number[b]]] : c->n_blocks;
            c->blocks[b].ipdom = d == c->n_blocks ? -1 : (int32_t)d;
        }
    }
    ws_arena_deinit(&a);
    return ok ? 0 : ws_raise(-ENOMEM);
}

int ws_ptx_cfg_build(struct ws_ptx_cfg *ret, const struct ws_ptx_func *f, struct ws_arena *a)
{
    struct ws_arena tmp = WS_ARENA_NULL;
    struct ws_ptx_cfg c = {0};
    struct ws_ptx_edges e;
    int r = find_blocks(&c, f, a);
    if (!r)
        r = ws_ptx_edges_build(&e, &c, f, &tmp);
    if (!r) {
        name_successors(&c, &e);
        r = post_dominators(&c, &e);
    }
    ws_arena_deinit(&tmp);
    if (!r)
        *ret = c;
    return r;
}

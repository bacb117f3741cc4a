// SPDX-License-Identifier: Apache-2.0
/* ptx/analysis/wait.c - whether a kernel may wait for another block.
 *
 * A kernel waits if it has a loop that ends only when memory has a value that another block writes.
 * A kernel that waits must not be stopped at a block boundary or dealt out in pieces, because the
 * block that writes the value may not have begun. Where this analysis does not know, or would take
 * too long, it says that the kernel waits.
 *
 * The question is asked for each branch q and each of its ways. Take that way out of the flow
 * graph. The blocks on cycles through q that are left are the set T: a thread may stay in T as long
 * as q does not take that way. A value is *polled* if it comes from memory that other blocks may
 * write, read within T, or is computed from such a value, or if a branch on such a value decides
 * it. The thread waits at q if q branches on a polled value and nothing else must end T. What must
 * end T (wait_ends.c):
 *
 *   - a counter that is compared with a bound;
 *   - a compare-and-swap whose success ends T, if it cannot fail for ever: it expects what was read
 *     before (then it fails only where another thread has succeeded), or its address changes from
 *     trip to trip (a table with open addressing), or it expects 0 and stores something else (a
 *     lock: the thread that has the lock runs, and releases it). An exchange that takes a lock
 *     likewise;
 *   - a value taken from a growing counter (atom.add of a positive constant) that reaches a bound.
 *
 * Such an end ends only those ways round the loop that pass its branch and all instructions that
 * change what the branch tests. Any other way avoids one of these blocks. So for each of these
 * blocks, T without it is examined in the same way, until nothing is left. This finds every set of
 * blocks in which a thread may go round for ever and that waits at q, whatever the shape of the
 * loops: a set within T that has all these blocks ends, and any other set lies in T without one of
 * them. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/analysis/wait.h"
#include "ptx/passes/edit.h"

static const uint64_t budget_start = 20000000; /* instructions and blocks looked at */

/* ---- the flow graph ---- */
/* One T within another. */
/* Marks what is reached from @from, or reaches it, within @in, by at least one step and without the
 * edges @from…@without. */
static void spread(struct ws_wait *w, const bool *in, uint32_t from, uint32_t without, bool forth,
                   bool *ret)
{
    const uint32_t *at = forth ? w->edges.succ_at : w->edges.pred_at,
                   *to = forth ? w->edges.succ : w->edges.pred;
    uint32_t n = 0;
    memset(ret, 0, ((size_t)w->cfg->n_blocks + 1) * sizeof(*ret));
    for (w->stack[n++] = from; n;) {
        uint32_t b = w->stack[--n];
        for (uint32_t k = at[b]; k < at[b + 1]; k++) {
            bool left_out = forth ? b == from && to[k] == without : to[k] == from && b == without;
            if (to[k] == w->cfg->n_blocks || left_out || !in[to[k]] || ret[to[k]])
                continue;
            ret[to[k]] = true;
            w->stack[n++] = to[k];
        }
    }
}

/* T: the blocks of @in on cycles through @q that don't go from it to @without. Return: whether
 * there are any. */
static bool around(struct ws_wait *w, const bool *in, uint32_t q, uint32_t without, bool *ret)
{
    spread(w, in, q, without, true, w->forth);
    if (!w->forth[q])
        return false;
    spread(w, in, q, without, false, w->back);
    for (uint32_t b = 0; b < w->cfg->n_blocks; b++)
        ret[b] = w->forth[b] && w->back[b];
    return true;
}

/* ---- what instructions write ---- */

/* Whether the operand reads a register that is marked in @is. */
static bool any_reg(const struct ws_ptx_operand *o, const bool *is)
{
    if ((o->kind == WS_OPD_REG || o->kind == WS_OPD_ADDR) && o->reg >= 0 && is[o->reg])
        return true;
    for (uint16_t k = 0; k < o->n; k++)
        if (any_reg(&o->v[k], is))
            return true;
    return false;
}

static bool mark_regs(const struct ws_ptx_operand *o, bool *is)
{
    bool changed = false;
    if (o->kind == WS_OPD_REG && o->reg >= 0 && !is[o->reg])
        changed = is[o->reg] = true;
    for (uint16_t k = 0; k < o->n; k++)
        changed |= mark_regs(&o->v[k], is);
    return changed;
}

/* Adds instruction @k to those that write the operand's registers; or, @fill false, counts it. */
static void add_def(struct ws_wait *w, const struct ws_ptx_operand *o, uint32_t k, bool fill)
{
    if (o->kind == WS_OPD_REG && o->reg >= 0) {
        if (fill)
            w->defs[w->def_at[o->reg + 1]++] = k;
        else
            w->def_at[o->reg + 2]++;
    }
    for (uint16_t n = 0; n < o->n; n++)
        add_def(w, &o->v[n], k, fill);
}

static void add_defs(struct ws_wait *w, bool fill)
{
    for (uint32_t k = 0; k < w->f->n_insns; k++) {
        const struct ws_ptx_insn *i = &w->f->insns[k];
        if (ws_ptx_writes_first(i))
            add_def(w, &i->operands[0], k, fill);
        for (uint32_t n = 0; i->call && n < i->call->n_rets; n++)
            add_def(w, &i->call->rets[n], k, fill);
    }
}

static int find_defs(struct ws_wait *w)
{
    uint32_t n = w->f->n_regs;
    w->def_at = ws_arena_array(w->a, (size_t)n + 3, sizeof(*w->def_at));
    if (!w->def_at)
        return ws_raise(-ENOMEM);
    add_defs(w, false);
    for (uint32_t r = 0; r <= n; r++)
        w->def_at[r + 2] += w->def_at[r + 1];
    w->defs = ws_arena_array(w->a, (size_t)w->def_at[n + 1] + 1, sizeof(*w->defs));
    if (!w->defs)
        return ws_raise(-ENOMEM);
    add_defs(w, true);
    return 0;
}

/* ---- what depends on memory that others write ---- */

static bool others_write(const struct ws_ptx_insn *i)
{
    return (i->space == WS_SP_GLOBAL || i->space == WS_SP_GENERIC) && !(i->flags & WS_F_NC);
}

static bool is_load(const struct ws_ptx_insn *i)
{
    return ws_ptx_does(i, WS_DOES_LOAD);
}

/* An atomic that returns what was there before. */
static bool fetches(const struct ws_ptx_insn *i)
{
    return ws_ptx_does(i, WS_DOES_UPDATE) && ws_ptx_writes_first(i);
}

static bool is_fence(const struct ws_ptx_insn *i)
{
    return ws_ptx_ops[i->op].effect == WS_EFFECT_FENCE;
}

static bool is_write(const struct ws_ptx_insn *i)
{
    return (ws_ptx_does(i, WS_DOES_STORE) && others_write(i)) ||
           (ws_ptx_does(i, WS_DOES_UPDATE) && i->space != WS_SP_SHARED);
}

/* What the functions a call may come to do, all together. */
static struct ws_wait_does call_does(const struct ws_wait *w, const struct ws_ptx_insn *i)
{
    struct ws_wait_does d = {false, false, false, false};
    bool direct = i->call->callee.kind == WS_OPD_SYM;
    uint32_t first = direct ? (uint32_t)WS_PTX_SYM_INDEX(i->call->callee.sym) : 0,
             end = direct ? first + 1 : w->m->n_funcs;
    for (uint32_t k = first; k < end; k++)
        if (direct || w->reached[k]) {
            d.polls |= w->does[k].polls;
            d.loads |= w->does[k].loads;
            d.writes |= w->does[k].writes;
            d.fences |= w->does[k].fences;
        }
    return d;
}

/* Whether the instruction itself brings such a value. */
static bool polls(struct ws_wait *w, const struct ws_ptx_insn *i)
{
    struct ws_wait_level none = {.n_ends = 0};
    if (is_load(i) && others_write(i))
        return ws_wait_is_fresh(i) ||
               (w->fences && ws_wait_walk(w, &none, &i->operands[1], false) != WS_WAIT_MOVES) ||
               (!w->writes && ws_wait_walk(w, &none, &i->operands[1], false) == WS_WAIT_FIXED);
    if (fetches(i))
        return i->space != WS_SP_SHARED;
    if (i->op == WS_OP_CALL) {
        struct ws_wait_does d = call_does(w, i);
        return d.polls || (d.loads && (w->fences || !w->writes));
    }
    /* surfaces and what else reads */
    return w->fences && ws_ptx_ops[i->op].effect == WS_EFFECT_READ && !is_load(i);
}

/* Memory that this block wrote such values to. */
static bool reads_polled(const struct ws_wait *w, const struct ws_ptx_insn *i)
{
    if (ws_ptx_ops[i->op].effect != WS_EFFECT_READ && !fetches(i))
        return false;
    if (i->space == WS_SP_PARAM)
        return w->params_polled && i->n_operands > 1 &&
               (!w->f->is_entry || i->operands[1].sym < 0 ||
                WS_PTX_SYM_KIND(i->operands[1].sym) != WS_PTX_SYM_LOCALVAR ||
                (uint32_t)WS_PTX_SYM_INDEX(i->operands[1].sym) >= w->f->n_params);
    if (i->space == WS_SP_SHARED || i->space == WS_SP_LOCAL)
        return w->near_polled;
    return others_write(i) && (w->far_polled || (w->near_polled && i->space == WS_SP_GENERIC));
}

/* Return: whether there are more than before. */
static bool mark_insn(struct ws_wait *w, const struct ws_ptx_insn *i, bool depends)
{
    bool first = ws_ptx_writes_first(i), is = depends || (i->guard >= 0 && w->polled[i->guard]);
    for (uint8_t k = first; k < i->n_operands && !is; k++)
        is = any_reg(&i->operands[k], w->polled);
    for (uint32_t k = 0; i->call && k < i->call->n_args && !is; k++)
        is = any_reg(&i->call->args[k], w->polled);
    bool given = is; /* not only gets it */
    is = is || polls(w, i) || reads_polled(w, i) ||
         (w->carry_polled && ws_ptx_does(i, WS_DOES_CARRY_IN));
    if (!is)
        return false;
    bool changed = first && mark_regs(&i->operands[0], w->polled);
    for (uint32_t k = 0; i->call && k < i->call->n_rets; k++)
        changed |= mark_regs(&i->call->rets[k], w->polled);
    bool *memory = NULL;
    if (i->op == WS_OP_CALL)
        memory = &w->params_polled;
    else if (!given)
        memory = NULL;
    else if (i->op == WS_OP_ST && i->space == WS_SP_PARAM)
        memory = &w->params_polled;
    else if (ws_ptx_ops[i->op].effect == WS_EFFECT_WRITE ||
             ws_ptx_ops[i->op].effect == WS_EFFECT_ATOMIC)
        memory = i->space == WS_SP_GLOBAL ? &w->far_polled : &w->near_polled;
    else if (i->flags & WS_F_CC)
        memory = &w->carry_polled;
    if (memory) {
        changed |= !*memory;
        *memory = true;
    }
    return changed;
}

/* Numbers the blocks of T that reach @q, from there backwards, each after those that it was found
 * from (postorder). */
static uint32_t number_back(struct ws_wait *w)
{
    uint32_t n = 0, top = 0, n_blocks = w->cfg->n_blocks;
    uint32_t *next = (uint32_t *)w->ipdom; /* later overwritten */
    for (uint32_t b = 0; b < n_blocks; b++) {
        w->number[b] = -1;
        next[b] = w->edges.pred_at[b];
    }
    w->number[w->q] = 0;
    for (w->stack[top++] = w->q; top;) {
        uint32_t b = w->stack[top - 1];
        if (next[b] == w->edges.pred_at[b + 1]) {
            w->order[n] = (int32_t)b;
            w->number[b] = (int32_t)n++;
            top--;
            continue;
        }
        uint32_t p = w->edges.pred[next[b]++];
        if (w->in[p] && w->number[p] < 0) {
            w->number[p] = 0;
            w->stack[top++] = p;
        }
    }
    return n;
}

/* Immediate post-dominators within T, whose end is @q (Cooper, Harvey, Kennedy, "A Simple, Fast
 * Dominance Algorithm"). */
static void post_dominators(struct ws_wait *w)
{
    uint32_t n = number_back(w);
    for (uint32_t b = 0; b < w->cfg->n_blocks; b++)
        w->ipdom[b] = -1;
    w->ipdom[w->q] = (int32_t)w->q;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t at = n - 1; at-- > 0;) { /* the last is q */
            uint32_t b = (uint32_t)w->order[at];
            int32_t d = -1;
            for (uint32_t k = w->edges.succ_at[b]; k < w->edges.succ_at[b + 1]; k++) {
                uint32_t s = w->edges.succ[k];
                if (s == w->cfg->n_blocks || !w->in[s] || w->ipdom[s] < 0)
                    continue;
                int32_t x = (int32_t)s, y = d;
                while (y >= 0 && x != y && ws_wait_spend(w, 1))
                    if (w->number[x] < w->number[y])
                        x = w->ipdom[x];
                    else
                        y = w->ipdom[y];
                d = x;
            }
            changed |= w->ipdom[b] != d;
            w->ipdom[b] = d;
        }
        if (!ws_wait_spend(w, n))
            return;
    }
}

/* Marks the blocks between the branch of block @b and where its ways in T meet. w->back is false,
 * and is again after. */
static bool mark_ways(struct ws_wait *w, uint32_t b)
{
    uint32_t until = (uint32_t)w->ipdom[b], n_in = 0, n = 0;
    bool changed = false;
    for (uint32_t k = w->edges.succ_at[b]; k < w->edges.succ_at[b + 1]; k++)
        n_in += w->edges.succ[k] < w->cfg->n_blocks && w->in[w->edges.succ[k]];
    if (n_in < 2 || b == w->q)
        return false;
    uint32_t from = b;
    for (uint32_t at = 0;; from = w->stack[at++]) {
        for (uint32_t k = w->edges.succ_at[from]; k < w->edges.succ_at[from + 1]; k++) {
            uint32_t s = w->edges.succ[k];
            if (s == w->cfg->n_blocks || !w->in[s] || s == until || s == w->q || w->back[s])
                continue;
            changed |= !w->depends[s];
            w->back[s] = w->depends[s] = true;
            w->stack[n++] = s;
        }
        if (at == n)
            break;
    }
    for (uint32_t k = 0; k < n; k++)
        w->back[w->stack[k]] = false;
    ws_wait_spend(w, n);
    return changed;
}

static bool branches_on_polled(const struct ws_wait *w, uint32_t b)
{
    const struct ws_ptx_insn *i = ws_wait_last_of(w, b);
    return ws_ptx_does(i, WS_DOES_END_BLOCK) &&
           ((i->guard >= 0 && w->polled[i->guard]) ||
            (i->op == WS_OP_BRX_IDX && any_reg(&i->operands[0], w->polled)));
}

/* Finds what depends on such values in T. */
static void mark_polled(struct ws_wait *w)
{
    const struct ws_ptx_cfg *cfg = w->cfg;
    uint64_t n = w->f->n_regs;
    memset(w->polled, 0, (size_t)w->f->n_regs * sizeof(*w->polled));
    memset(w->depends, 0, (size_t)cfg->n_blocks * sizeof(*w->depends));
    w->near_polled = w->far_polled = w->carry_polled = w->params_polled = false;
    w->fences = w->writes = false;
    for (uint32_t b = 0; b < cfg->n_blocks; b++)
        for (uint32_t k = 0; w->in[b] && k < cfg->blocks[b].n; k++, n++) {
            const struct ws_ptx_insn *i = &w->f->insns[cfg->blocks[b].first + k];
            struct ws_wait_does d = {false, false, false, false};
            if (i->op == WS_OP_CALL)
                d = call_does(w, i);
            w->fences |= is_fence(i) || d.fences;
            w->writes |= is_write(i) || d.writes;
        }
    post_dominators(w);
    memset(w->back, 0, ((size_t)cfg->n_blocks + 1) * sizeof(*w->back));
    for (bool changed = true; changed && ws_wait_spend(w, n + cfg->n_blocks);) {
        changed = false;
        for (uint32_t b = 0; b < cfg->n_blocks; b++) {
            if (!w->in[b])
                continue;
            for (uint32_t k = 0; k < cfg->blocks[b].n; k++)
                changed |= mark_insn(w, &w->f->insns[cfg->blocks[b].first + k], w->depends[b]);
            if (branches_on_polled(w, b))
                changed |= mark_ways(w, b);
        }
    }
}

/* Whether a thread may stay for ever in the blocks @in because block @q never goes to @without,
 * which polled memory decides. */
static bool waits_at(struct ws_wait *w, const bool *in, uint32_t q, uint32_t without, int depth)
{
    struct ws_wait_level *l = &w->levels[depth];
    if (depth == WS_WAIT_DEPTH_MAX || !ws_wait_spend(w, w->cfg->n_blocks))
        return true;
    if (!around(w, in, q, without, l->in))
        return false;
    w->in = l->in;
    w->q = q;
    mark_polled(w);
    if (!w->budget)
        return true;
    if (!branches_on_polled(w, q))
        return false;
    bool found = false;
    for (uint32_t b = 0; b < w->cfg->n_blocks && !found; b++)
        found = l->in[b] && ws_wait_branch_ends(w, l, b, q, without);
    if (!found)
        return true;
    for (uint32_t k = 0; k < l->n_ends; k++) {
        uint32_t b = l->ends[k];
        if (b == q)
            continue;
        l->in[b] = false;
        bool waits = waits_at(w, l->in, q, without, depth + 1);
        l->in[b] = true;
        if (waits)
            return true;
    }
    return false;
}

/* ---- functions ---- */
static void find_does(struct ws_wait *w, struct ws_wait_does *does)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = 0; k < w->m->n_funcs; k++) {
            const struct ws_ptx_func *f = &w->m->funcs[k];
            struct ws_wait_does d = does[k];
            if (w->reached[k] && !ws_budget_spend(f->n_insns))
                return;
            /* the check of accesses (ptx/passes/fence.c) reads what no client writes; printf and
             * malloc (ptx/passes/devlib.c) never wait for others */
            bool ours = f->fence == WS_PTX_FENCE_HELPER || f->lib;
            for (uint32_t n = 0; w->reached[k] && !ours && n < f->n_insns; n++) {
                const struct ws_ptx_insn *i = &f->insns[n];
                struct ws_wait_does c = {false, false, false, false};
                if (i->op == WS_OP_CALL)
                    c = call_does(w, i);
                bool load = is_load(i) && others_write(i);
                d.loads |= load || c.loads;
                d.polls |= (load && ws_wait_is_fresh(i)) || c.polls ||
                           (fetches(i) && i->space != WS_SP_SHARED);
                d.writes |= is_write(i) || c.writes;
                d.fences |= is_fence(i) || c.fences;
            }
            d.polls |= d.loads && d.fences;
            changed |= memcmp(&d, &does[k], sizeof(d)) != 0;
            does[k] = d;
        }
    }
}

/* Whether anything in it can poll at all: most kernels are done with that. */
static bool may_poll(const struct ws_wait *w)
{
    for (uint32_t k = 0; k < w->f->n_insns; k++) {
        const struct ws_ptx_insn *i = &w->f->insns[k];
        if ((is_load(i) && others_write(i)) || (fetches(i) && i->space != WS_SP_SHARED) ||
            i->op == WS_OP_CALL || is_fence(i))
            return true;
    }
    return false;
}

static int prepare(struct ws_wait *w)
{
    uint32_t n = w->cfg->n_blocks;
    int r = ws_ptx_edges_build(&w->edges, w->cfg, w->f, w->a);
    if (!r)
        r = find_defs(w);
    if (r)
        return r;
    w->polled = ws_arena_array(w->a, (size_t)w->f->n_regs + 1, sizeof(*w->polled));
    w->depends = ws_arena_array(w->a, (size_t)n + 1, sizeof(*w->depends));
    w->stack = ws_arena_array(w->a, (size_t)n + 2, sizeof(*w->stack));
    w->forth = ws_arena_array(w->a, (size_t)n + 1, sizeof(*w->forth));
    w->back = ws_arena_array(w->a, (size_t)n + 1, sizeof(*w->back));
    w->order = ws_arena_array(w->a, (size_t)n + 1, sizeof(*w->order));
    w->number = ws_arena_array(w->a, (size_t)n + 1, sizeof(*w->number));
    w->ipdom = ws_arena_array(w->a, (size_t)n + 1, sizeof(*w->ipdom));
    bool ok = w->polled && w->depends && w->stack && w->forth && w->back && w->order && w->number &&
              w->ipdom;
    for (int k = 0; k <= WS_WAIT_DEPTH_MAX; k++) {
        w->levels[k].in = ws_arena_array(w->a, (size_t)n + 1, sizeof(bool));
        ok = ok && w->levels[k].in;
    }
    return ok ? 0 : ws_raise(-ENOMEM);
}

int ws_ptx_waits(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                 const struct ws_ptx_cfg *cfg, const bool *reached, struct ws_arena *a,
                 const struct ws_ptx_insn **ret_where)
{
    struct ws_wait w = {
        .m = m, .f = f, .cfg = cfg, .reached = reached, .a = a, .budget = budget_start};
    struct ws_wait_does *does = ws_arena_array(a, (size_t)m->n_funcs + 1, sizeof(*does));
    bool *all = ws_arena_array(a, (size_t)cfg->n_blocks + 1, sizeof(*all));
    if (!does || !all)
        return ws_raise(-ENOMEM);
    w.does = does;
    *ret_where = NULL;
    if (!may_poll(&w))
        return 0;
    find_does(&w, does);
    int r = prepare(&w);
    for (uint32_t b = 0; b < cfg->n_blocks; b++)
        all[b] = true;
    for (uint32_t b = 0; !r && b < cfg->n_blocks; b++) {
        uint32_t n = w.edges.succ_at[b + 1] - w.edges.succ_at[b];
        for (uint32_t k = 0; n > 1 && k < n; k++)
            if (waits_at(&w, all, b, w.edges.succ[w.edges.succ_at[b] + k], 0)) {
                *ret_where = ws_wait_last_of(&w, b);
                return 0;
            }
    }
    return r;
}

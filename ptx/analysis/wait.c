// SPDX-License-Identifier: Apache-2.0
/* Whether a kernel waits for other blocks: a loop that ends only when memory has a value which
 * another block is to write. That block may be one that hasn't begun, and must then be resident at
 * once with this one.
 *
 * Loops are looked at from the branches that would end them. For a branch q and one of its ways,
 * let T be the strongly connected part of the flow graph around q without that way: where a thread
 * may stay as long as q doesn't go there. The thread waits if q depends, by data or control, on a
 * value that comes from memory within T ("polled"), and nothing else must end T. What must end it:
 *
 *   a counter compared with a bound; a compare-and-swap whose success ends it, where what is
 *   expected is what was read before (it fails only where another thread has succeeded), where the
 *   address changes from trip to trip (a table with open addressing), or where 0 is expected and
 *   something else is put there (a lock: who has taken it runs, and gives it back); an exchange
 *   that takes a lock likewise; a value taken from a growing counter (atom.add of a positive
 *   constant) that reaches a bound.
 *
 * Such an end is an end only of those ways round the loop that pass both its branch and all that
 * moves what the branch tests. The others avoid one of these blocks: so for each of them, T without
 * it is looked at in the same way. Each set of blocks in which a thread may go round for ever and
 * that waits at q is thus found, whatever the loops' shape: a set that lies within T and has all
 * these blocks ends, and any other one lies in T without one of them.
 *
 * Where it isn't known, or would take too long to find out, the kernel waits. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/edit.h"

enum { DEPTH_MAX = 8, WALK_MAX = 24, ENDS_MAX = 24 };
static const uint64_t budget_start = 20000000; /* instructions and blocks looked at */

enum moves { OTHER, FIXED, MOVES }; /* what a register does from trip to trip round T */

struct func_does {
    bool polls, loads, writes, fences;
};

/* One T within another. */
struct level {
    bool *in;                        /* [n_blocks] */
    uint32_t ends[ENDS_MAX], n_ends; /* blocks that must be passed for T to end */
    bool too_many;
};

struct wait {
    const struct ws_ptx_module *m;
    const struct ws_ptx_func *f;
    const struct ws_ptx_cfg *cfg;
    const struct func_does *does; /* of each function that may be called; NULL of others */
    const bool *reached;
    struct ws_arena *a;
    uint64_t budget;
    /* edges of the flow graph, both ways; n_blocks is the end */
    uint32_t *succ_at, *succ, *pred_at, *pred;
    uint32_t *def_at, *defs; /* instructions that write each register */
    /* about the T that is looked at */
    const bool *in;
    uint32_t q;
    bool fences, writes;
    bool *polled;  /* [n_regs] */
    bool *depends; /* [n_blocks]: whether a thread comes there is decided by such a value */
    bool near_polled, far_polled, carry_polled,
        params_polled; /* memory holds such values: shared and local; global */
    uint32_t *stack;
    bool *forth, *back; /* [n_blocks + 1] */
    int32_t *order, *number, *ipdom;
    struct level levels[DEPTH_MAX + 1];
    /* of a walk along definitions */
    int32_t path[WALK_MAX];
    bool path_changes[WALK_MAX];
    uint32_t n_path;
};

/* ---- the flow graph ---- */
static bool spend(struct wait *w, uint64_t n)
{
    if (w->budget < n) {
        w->budget = 0;
        return false;
    }
    w->budget -= n;
    return true;
}

static const struct ws_ptx_insn *last_of(const struct wait *w, uint32_t b)
{
    const struct ws_ptx_block *block = &w->cfg->blocks[b];
    return &w->f->insns[block->first + block->n - 1];
}

static uint32_t block_at(const struct wait *w, uint32_t insn)
{
    return insn < w->f->n_insns ? w->cfg->block_of[insn] : w->cfg->n_blocks;
}

/* First where it goes if the guard is false, then where it goes if it is true. @to: may be NULL */
static uint32_t ways(const struct wait *w, uint32_t b, uint32_t *to)
{
    const struct ws_ptx_insn *i = last_of(w, b);
    uint32_t n = 0;
    const struct ws_ptx_block *block = &w->cfg->blocks[b];
    if (!ws_ptx_does(i, WS_DOES_END_BLOCK) || i->guard >= 0) {
        if (to)
            to[n] = block_at(w, block->first + block->n);
        n++;
    }
    if (i->op == WS_OP_BRX_IDX) {
        for (uint16_t k = 0; k < i->operands[1].n; k++, n++)
            if (to)
                to[n] = block_at(w, w->f->labels[i->operands[1].v[k].label].insn);
    } else if (ws_ptx_does(i, WS_DOES_END_BLOCK)) {
        if (to)
            to[n] = i->op == WS_OP_BRA ? block_at(w, w->f->labels[i->operands[0].label].insn)
                                       : w->cfg->n_blocks;
        n++;
    }
    return n;
}

static int make_graph(struct wait *w)
{
    uint32_t n = w->cfg->n_blocks;
    w->succ_at = ws_arena_array(w->a, (size_t)n + 2, sizeof(*w->succ_at));
    w->pred_at = ws_arena_array(w->a, (size_t)n + 3, sizeof(*w->pred_at));
    if (!w->succ_at || !w->pred_at)
        return ws_raise(-ENOMEM);
    for (uint32_t b = 0; b < n; b++)
        w->succ_at[b + 1] = w->succ_at[b] + ways(w, b, NULL);
    w->succ = ws_arena_array(w->a, (size_t)w->succ_at[n] + 1, sizeof(*w->succ));
    w->pred = ws_arena_array(w->a, (size_t)w->succ_at[n] + 1, sizeof(*w->pred));
    if (!w->succ || !w->pred)
        return ws_raise(-ENOMEM);
    for (uint32_t b = 0; b < n; b++)
        ways(w, b, w->succ + w->succ_at[b]);
    for (uint32_t k = 0; k < w->succ_at[n]; k++)
        w->pred_at[w->succ[k] + 2]++;
    for (uint32_t b = 0; b <= n; b++)
        w->pred_at[b + 2] += w->pred_at[b + 1];
    for (uint32_t b = 0; b < n; b++) /* at[b + 1] becomes the end of b's */
        for (uint32_t k = w->succ_at[b]; k < w->succ_at[b + 1]; k++)
            w->pred[w->pred_at[w->succ[k] + 1]++] = b;
    return 0;
}

/* Marks what is reached from @from, or reaches it, within @in, by at least one step and without the
 * edges @from…@without. */
static void spread(struct wait *w, const bool *in, uint32_t from, uint32_t without, bool forth,
                   bool *ret)
{
    const uint32_t *at = forth ? w->succ_at : w->pred_at, *to = forth ? w->succ : w->pred;
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
static bool around(struct wait *w, const bool *in, uint32_t q, uint32_t without, bool *ret)
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

/* Calls @each for each register in the operand. */
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
static void add_def(struct wait *w, const struct ws_ptx_operand *o, uint32_t k, bool fill)
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

static void add_defs(struct wait *w, bool fill)
{
    for (uint32_t k = 0; k < w->f->n_insns; k++) {
        const struct ws_ptx_insn *i = &w->f->insns[k];
        if (ws_ptx_writes_first(i))
            add_def(w, &i->operands[0], k, fill);
        for (uint32_t n = 0; i->call && n < i->call->n_rets; n++)
            add_def(w, &i->call->rets[n], k, fill);
    }
}

static int find_defs(struct wait *w)
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

/* The only instruction in T that writes the register, unless it does so under a condition, or not
 * all of it. */
static const struct ws_ptx_insn *only_def(struct wait *w, int32_t reg, uint32_t *ret_block)
{
    const struct ws_ptx_insn *found = NULL;
    for (uint32_t k = w->def_at[reg]; k < w->def_at[reg + 1]; k++) {
        uint32_t b = w->cfg->block_of[w->defs[k]];
        spend(w, 1);
        if (!w->in[b])
            continue;
        const struct ws_ptx_insn *i = &w->f->insns[w->defs[k]];
        if (found || i->guard >= 0 || !i->n_operands || i->operands[0].kind != WS_OPD_REG ||
            i->operands[0].part)
            return NULL;
        found = i;
        *ret_block = b;
    }
    return found;
}

/* ---- from trip to trip ---- */
static void must_pass(struct level *l, uint32_t b)
{
    for (uint32_t k = 0; k < l->n_ends; k++)
        if (l->ends[k] == b)
            return;
    if (l->n_ends == ENDS_MAX)
        l->too_many = true;
    else
        l->ends[l->n_ends++] = b;
}

static enum moves walk(struct wait *w, struct level *l, int32_t reg, bool strict);

static enum moves walk_operand(struct wait *w, struct level *l, const struct ws_ptx_operand *o,
                               bool strict)
{
    switch (o->kind) {
    case WS_OPD_IMM:
    case WS_OPD_SYM:
        return FIXED;
    case WS_OPD_SREG:
        return ws_ptx_sreg_is_clock((enum ws_ptx_sreg)o->sreg) ? OTHER : FIXED;
    case WS_OPD_REG:
        return o->part ? OTHER : walk(w, l, o->reg, strict);
    case WS_OPD_ADDR:
        return o->n ? OTHER : o->reg < 0 ? FIXED : walk(w, l, o->reg, strict);
    default:
        return OTHER;
    }
}

static enum moves walk_def(struct wait *w, struct level *l, const struct ws_ptx_insn *i,
                           bool strict)
{
    if (i->guard >= 0 || !i->n_operands || i->operands[0].kind != WS_OPD_REG || i->operands[0].part)
        return OTHER;
    bool constant = i->op == WS_OP_LD && (i->space == WS_SP_CONST || i->space == WS_SP_PARAM);
    if ((ws_ptx_ops[i->op].effect != WS_EFFECT_ALU && !constant) || (i->flags & WS_F_CC))
        return OTHER;
    uint32_t moving = 0;
    for (uint8_t k = 1; k < i->n_operands; k++) {
        enum moves of = walk_operand(w, l, &i->operands[k], strict);
        if (of == OTHER)
            return OTHER;
        moving += of == MOVES;
    }
    if (!moving)
        return FIXED;
    if (constant || (strict && (moving > 1 || !ws_ptx_does(i, WS_DOES_ORDER))))
        return OTHER;
    return MOVES;
}

/* What the register does from trip to trip, as far as its definitions in T tell; @l gets the blocks
 * they are in. @strict: MOVES only where it goes one way; else any change. */
static enum moves walk(struct wait *w, struct level *l, int32_t reg, bool strict)
{
    for (uint32_t k = w->n_path; k-- > 0;)
        if (w->path[k] == reg) { /* it depends on itself; copies alone change nothing */
            for (; k < w->n_path; k++)
                if (w->path_changes[k])
                    return MOVES;
            return OTHER;
        }
    uint32_t n = 0, n_moving = 0;
    for (uint32_t k = w->def_at[reg]; k < w->def_at[reg + 1]; k++) {
        uint32_t b = w->cfg->block_of[w->defs[k]];
        if (!spend(w, 1))
            return OTHER;
        if (!w->in[b])
            continue;
        if (w->n_path == WALK_MAX)
            return OTHER;
        const struct ws_ptx_insn *i = &w->f->insns[w->defs[k]];
        must_pass(l, b);
        w->path[w->n_path] = reg;
        w->path_changes[w->n_path++] = !ws_ptx_does(i, WS_DOES_COPY);
        enum moves of = walk_def(w, l, i, strict);
        w->n_path--;
        if (of == OTHER)
            return OTHER;
        n++;
        n_moving += of == MOVES;
    }
    if (!n)
        return FIXED;
    return n_moving == n ? MOVES : n == 1 ? FIXED : OTHER;
}

/* Loads that don't trust the SM's own cache, since others may have written. */
static bool is_fresh(const struct ws_ptx_insn *i)
{
    const char *name = i->cache ? ws_ptx_cache_names[i->cache - 1] : "";
    return i->sem >= WS_SEM_RELAXED || !strcmp(name, "cg") || !strcmp(name, "cv");
}

/* A bound: the same on each trip, or what a plain load finds. */
static bool is_bound(struct wait *w, struct level *l, const struct ws_ptx_operand *o)
{
    if (walk_operand(w, l, o, false) == FIXED)
        return true;
    uint32_t b = 0;
    const struct ws_ptx_insn *i = o->kind == WS_OPD_REG ? only_def(w, o->reg, &b) : NULL;
    return i && i->op == WS_OP_LD && !is_fresh(i) && !w->depends[b];
}

/* ---- what must end a loop ---- */
/* An integer that is known: written there, or all that its register ever holds. */
static bool known(const struct wait *w, const struct ws_ptx_operand *o, int64_t *ret)
{
    for (int hops = 0; o->kind == WS_OPD_REG && !o->part && hops < 4; hops++) {
        if (w->def_at[o->reg + 1] - w->def_at[o->reg] != 1)
            return false;
        const struct ws_ptx_insn *i = &w->f->insns[w->defs[w->def_at[o->reg]]];
        if (i->op != WS_OP_MOV || i->guard >= 0 || i->operands[0].kind != WS_OPD_REG ||
            i->operands[0].part)
            return false;
        o = &i->operands[1];
    }
    *ret = o->imm;
    return o->kind == WS_OPD_IMM && o->imm_kind == WS_IMM_INT;
}

static bool is_zero(const struct wait *w, const struct ws_ptx_operand *o)
{
    int64_t v;
    return known(w, o, &v) && v == 0;
}

static bool is_other_than_zero(const struct wait *w, const struct ws_ptx_operand *o)
{
    int64_t v;
    return known(w, o, &v) && v != 0;
}

static bool is_positive(const struct wait *w, const struct ws_ptx_operand *o)
{
    int64_t v;
    return known(w, o, &v) && v > 0 && v <= INT32_MAX;
}

static bool same_value(struct wait *w, const struct ws_ptx_operand *a,
                       const struct ws_ptx_operand *b)
{
    int64_t x, y;
    if (known(w, a, &x) && known(w, b, &y))
        return x == y;
    if (a->kind != WS_OPD_REG || b->kind != WS_OPD_REG || a->part || b->part)
        return false;
    if (a->reg == b->reg)
        return true;
    for (int s = 0; s < 2; s++) { /* one is the other's copy */
        uint32_t block;
        const struct ws_ptx_insn *i = only_def(w, (s ? a : b)->reg, &block);
        if (i && i->op == WS_OP_MOV && i->operands[1].kind == WS_OPD_REG && !i->operands[1].part &&
            i->operands[1].reg == (s ? b : a)->reg)
            return true;
    }
    return false;
}

static bool same_place(const struct ws_ptx_operand *a, const struct ws_ptx_operand *b)
{
    return a->kind == WS_OPD_ADDR && b->kind == WS_OPD_ADDR && !a->n && !b->n && a->reg == b->reg &&
           a->sym == b->sym && a->imm == b->imm;
}

/* Whether @o is what was read at @place before: by the same instruction on the last trip, or loaded
 * on this one. */
static bool was_read(struct wait *w, struct level *l, const struct ws_ptx_operand *o,
                     const struct ws_ptx_insn *swap)
{
    for (int hops = 0; o->kind == WS_OPD_REG && !o->part && hops < 8; hops++) {
        uint32_t b;
        const struct ws_ptx_insn *i = only_def(w, o->reg, &b);
        if (!i)
            return false;
        must_pass(l, b);
        if (i == swap)
            return true;
        if (i->op == WS_OP_LD)
            return same_place(&i->operands[1], &swap->operands[1]);
        if (i->op != WS_OP_MOV)
            return false;
        o = &i->operands[1];
    }
    return false;
}

/* Whether staying in T means that this atomic, which gave @got, has not found @wanted there; which
 * can't go on for ever. */
static bool atom_ends(struct wait *w, struct level *l, const struct ws_ptx_operand *got,
                      const struct ws_ptx_operand *wanted)
{
    uint32_t b = 0;
    const struct ws_ptx_insn *i =
        got->kind == WS_OPD_REG && !got->part ? only_def(w, got->reg, &b) : NULL;
    if (!i || i->op != WS_OP_ATOM || i->vec > 1 || i->n_operands < 3)
        return false;
    must_pass(l, b);
    if (i->sub == WS_SUB_EXCH)
        return is_zero(w, wanted) && is_other_than_zero(w, &i->operands[2]);
    if (i->sub != WS_SUB_CAS || i->n_operands < 4 || !same_value(w, wanted, &i->operands[2]))
        return false;
    if (is_zero(w, wanted)) /* what a lock is taken with may be the thread's number */
        return i->operands[3].kind == WS_OPD_REG ? !is_zero(w, &i->operands[3])
                                                 : is_other_than_zero(w, &i->operands[3]);
    return was_read(w, l, &i->operands[2], i) ||
           walk_operand(w, l, &i->operands[1], false) == MOVES;
}

/* Whether T changes memory in no other way than by counting up, as far as atomics go. */
static bool only_counts_up(const struct wait *w)
{
    for (uint32_t b = 0; b < w->cfg->n_blocks; b++)
        for (uint32_t k = 0; w->in[b] && k < w->cfg->blocks[b].n; k++) {
            const struct ws_ptx_insn *i = &w->f->insns[w->cfg->blocks[b].first + k];
            if (!ws_ptx_does(i, WS_DOES_UPDATE))
                continue;
            const struct ws_ptx_operand *by = &i->operands[i->op == WS_OP_ATOM ? 2 : 1];
            if (i->space != WS_SP_SHARED && (i->sub != WS_SUB_ADD || !is_positive(w, by)))
                return false;
        }
    return true;
}

/* What the only store to @place in T puts there, or NULL. */
static const struct ws_ptx_operand *only_stored(struct wait *w, struct level *l,
                                                const struct ws_ptx_operand *place)
{
    const struct ws_ptx_operand *found = NULL;
    if (place->kind != WS_OPD_ADDR || place->reg >= 0 || place->sym < 0)
        return NULL;
    for (uint32_t b = 0; b < w->cfg->n_blocks; b++)
        for (uint32_t k = 0; w->in[b] && k < w->cfg->blocks[b].n; k++) {
            const struct ws_ptx_insn *i = &w->f->insns[w->cfg->blocks[b].first + k];
            if (i->op != WS_OP_ST || i->vec > 1 || !same_place(&i->operands[0], place))
                continue;
            if (found)
                return NULL;
            found = &i->operands[1];
            must_pass(l, b);
        }
    return found;
}

/* Whether @o comes from a counter that T itself moves up, by what keeps its order. */
static bool counts_up(struct wait *w, struct level *l, const struct ws_ptx_operand *o)
{
    for (int hops = 0; o->kind == WS_OPD_REG && !o->part && hops < 8; hops++) {
        uint32_t b;
        const struct ws_ptx_insn *i = only_def(w, o->reg, &b);
        if (!i)
            return false;
        must_pass(l, b);
        if (i->op == WS_OP_ATOM)
            return i->sub == WS_SUB_ADD && i->vec <= 1 && is_positive(w, &i->operands[2]) &&
                   only_counts_up(w);
        if (i->op == WS_OP_LD && i->space == WS_SP_SHARED) { /* what one thread took for all */
            o = only_stored(w, l, &i->operands[1]);
            if (!o)
                return false;
            continue;
        }
        bool add = i->op == WS_OP_ADD && walk_operand(w, l, &i->operands[2], false) == FIXED;
        if (i->op != WS_OP_MOV && i->op != WS_OP_CVT && !add)
            return false;
        o = &i->operands[1];
    }
    return false;
}

static enum ws_ptx_cmp opposite(enum ws_ptx_cmp c)
{
    static const uint8_t of[] = {
        [WS_CMP_EQ] = WS_CMP_NE, [WS_CMP_NE] = WS_CMP_EQ, [WS_CMP_LT] = WS_CMP_GE,
        [WS_CMP_LE] = WS_CMP_GT, [WS_CMP_GT] = WS_CMP_LE, [WS_CMP_GE] = WS_CMP_LT,
        [WS_CMP_LO] = WS_CMP_HS, [WS_CMP_LS] = WS_CMP_HI, [WS_CMP_HI] = WS_CMP_LS,
        [WS_CMP_HS] = WS_CMP_LO};
    return c < WS_ARRAY_SIZE(of) ? (enum ws_ptx_cmp)of[c] : WS_CMP_NONE;
}

/* A comparison that must hold for the thread to stay, and can't for ever. */
static bool compare_ends(struct wait *w, struct level *l, const struct ws_ptx_insn *i, bool holds)
{
    enum ws_ptx_cmp stay = holds ? (enum ws_ptx_cmp)i->cmp : opposite((enum ws_ptx_cmp)i->cmp);
    const struct ws_ptx_operand *o = &i->operands[1];
    for (int s = 0; s < 2; s++) {
        const struct ws_ptx_operand *x = &o[s], *y = &o[1 - s];
        if (stay != WS_CMP_NONE && walk_operand(w, l, x, true) == MOVES && is_bound(w, l, y))
            return true;
        if (stay == WS_CMP_NE && atom_ends(w, l, x, y))
            return true;
    }
    bool below = stay == WS_CMP_LT || stay == WS_CMP_LE || stay == WS_CMP_LO || stay == WS_CMP_LS;
    bool above = stay == WS_CMP_GT || stay == WS_CMP_GE || stay == WS_CMP_HI || stay == WS_CMP_HS;
    return (below && counts_up(w, l, &o[0]) && is_bound(w, l, &o[1])) ||
           (above && counts_up(w, l, &o[1]) && is_bound(w, l, &o[0]));
}

/* The same for a predicate that must be @is: one part of a conjunction is enough. */
static bool pred_ends(struct wait *w, struct level *l, const struct ws_ptx_operand *pred, bool is,
                      int depth)
{
    uint32_t b;
    if (pred->kind != WS_OPD_REG || depth > 8)
        return false;
    is ^= (bool)pred->neg;
    const struct ws_ptx_insn *i = only_def(w, pred->reg, &b);
    if (!i)
        return false;
    must_pass(l, b);
    enum ws_ptx_sub all = is ? WS_SUB_AND : WS_SUB_OR;
    if (i->op == WS_OP_SETP && i->n_operands == 3)
        return compare_ends(w, l, i, is);
    if (i->op == WS_OP_SETP && i->n_operands == 4)
        return i->sub == all &&
               (pred_ends(w, l, &i->operands[3], is, depth + 1) || compare_ends(w, l, i, is));
    if (i->op == WS_OP_NOT)
        return pred_ends(w, l, &i->operands[1], !is, depth + 1);
    if (i->op == (is ? WS_OP_AND : WS_OP_OR))
        return pred_ends(w, l, &i->operands[1], is, depth + 1) ||
               pred_ends(w, l, &i->operands[2], is, depth + 1);
    return false;
}

/* Whether the branch at the end of block @b must take the thread out of T. @l gets the blocks that
 * must be passed for it. */
static bool branch_ends(struct wait *w, struct level *l, uint32_t b, uint32_t q, uint32_t without)
{
    const struct ws_ptx_insn *i = last_of(w, b);
    const uint32_t *to = w->succ + w->succ_at[b];
    if (i->guard < 0 || i->op == WS_OP_BRX_IDX || w->succ_at[b + 1] - w->succ_at[b] != 2)
        return false;
    bool stays[2];
    for (int s = 0; s < 2; s++)
        stays[s] = to[s] < w->cfg->n_blocks && w->in[to[s]] && !(b == q && to[s] == without);
    if (stays[0] == stays[1])
        return false;
    l->n_ends = 0;
    l->too_many = false;
    must_pass(l, b);
    struct ws_ptx_operand guard = ws_opd_reg(i->guard);
    guard.neg = i->guard_neg;
    return pred_ends(w, l, &guard, stays[1], 0) && !l->too_many;
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
static struct func_does call_does(const struct wait *w, const struct ws_ptx_insn *i)
{
    struct func_does d = {false, false, false, false};
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
static bool polls(struct wait *w, const struct ws_ptx_insn *i)
{
    struct level none = {.n_ends = 0};
    if (is_load(i) && others_write(i))
        return is_fresh(i) ||
               (w->fences && walk_operand(w, &none, &i->operands[1], false) != MOVES) ||
               (!w->writes && walk_operand(w, &none, &i->operands[1], false) == FIXED);
    if (fetches(i))
        return i->space != WS_SP_SHARED;
    if (i->op == WS_OP_CALL) {
        struct func_does d = call_does(w, i);
        return d.polls || (d.loads && (w->fences || !w->writes));
    }
    /* surfaces and what else reads */
    return w->fences && ws_ptx_ops[i->op].effect == WS_EFFECT_READ && !is_load(i);
}

/* Memory that this block wrote such values to. */
static bool reads_polled(const struct wait *w, const struct ws_ptx_insn *i)
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
static bool mark_insn(struct wait *w, const struct ws_ptx_insn *i, bool depends)
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
static uint32_t number_back(struct wait *w)
{
    uint32_t n = 0, top = 0, n_blocks = w->cfg->n_blocks;
    uint32_t *next = (uint32_t *)w->ipdom; /* later overwritten */
    for (uint32_t b = 0; b < n_blocks; b++) {
        w->number[b] = -1;
        next[b] = w->pred_at[b];
    }
    w->number[w->q] = 0;
    for (w->stack[top++] = w->q; top;) {
        uint32_t b = w->stack[top - 1];
        if (next[b] == w->pred_at[b + 1]) {
            w->order[n] = (int32_t)b;
            w->number[b] = (int32_t)n++;
            top--;
            continue;
        }
        uint32_t p = w->pred[next[b]++];
        if (w->in[p] && w->number[p] < 0) {
            w->number[p] = 0;
            w->stack[top++] = p;
        }
    }
    return n;
}

/* Immediate post-dominators within T, whose end is @q (Cooper, Harvey, Kennedy, "A Simple, Fast
 * Dominance Algorithm"). */
static void post_dominators(struct wait *w)
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
            for (uint32_t k = w->succ_at[b]; k < w->succ_at[b + 1]; k++) {
                uint32_t s = w->succ[k];
                if (s == w->cfg->n_blocks || !w->in[s] || w->ipdom[s] < 0)
                    continue;
                int32_t x = (int32_t)s, y = d;
                while (y >= 0 && x != y && spend(w, 1))
                    if (w->number[x] < w->number[y])
                        x = w->ipdom[x];
                    else
                        y = w->ipdom[y];
                d = x;
            }
            changed |= w->ipdom[b] != d;
            w->ipdom[b] = d;
        }
        if (!spend(w, n))
            return;
    }
}

/* Marks the blocks between the branch of block @b and where its ways in T meet. w->back is false,
 * and is again after. */
static bool mark_ways(struct wait *w, uint32_t b)
{
    uint32_t until = (uint32_t)w->ipdom[b], n_in = 0, n = 0;
    bool changed = false;
    for (uint32_t k = w->succ_at[b]; k < w->succ_at[b + 1]; k++)
        n_in += w->succ[k] < w->cfg->n_blocks && w->in[w->succ[k]];
    if (n_in < 2 || b == w->q)
        return false;
    uint32_t from = b;
    for (uint32_t at = 0;; from = w->stack[at++]) {
        for (uint32_t k = w->succ_at[from]; k < w->succ_at[from + 1]; k++) {
            uint32_t s = w->succ[k];
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
    spend(w, n);
    return changed;
}

static bool branches_on_polled(const struct wait *w, uint32_t b)
{
    const struct ws_ptx_insn *i = last_of(w, b);
    return ws_ptx_does(i, WS_DOES_END_BLOCK) &&
           ((i->guard >= 0 && w->polled[i->guard]) ||
            (i->op == WS_OP_BRX_IDX && any_reg(&i->operands[0], w->polled)));
}

/* Finds what depends on such values in T. */
static void mark_polled(struct wait *w)
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
            struct func_does d = {false, false, false, false};
            if (i->op == WS_OP_CALL)
                d = call_does(w, i);
            w->fences |= is_fence(i) || d.fences;
            w->writes |= is_write(i) || d.writes;
        }
    post_dominators(w);
    memset(w->back, 0, ((size_t)cfg->n_blocks + 1) * sizeof(*w->back));
    for (bool changed = true; changed && spend(w, n + cfg->n_blocks);) {
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
static bool waits_at(struct wait *w, const bool *in, uint32_t q, uint32_t without, int depth)
{
    struct level *l = &w->levels[depth];
    if (depth == DEPTH_MAX || !spend(w, w->cfg->n_blocks))
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
        found = l->in[b] && branch_ends(w, l, b, q, without);
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
static void find_does(struct wait *w, struct func_does *does)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t k = 0; k < w->m->n_funcs; k++) {
            const struct ws_ptx_func *f = &w->m->funcs[k];
            struct func_does d = does[k];
            /* the check of accesses (ptx/passes/fence.c) reads what no client writes; printf and
             * malloc (ptx/passes/devlib.c) wait for nobody */
            bool ours = f->fence == WS_PTX_FENCE_HELPER || f->lib;
            for (uint32_t n = 0; w->reached[k] && !ours && n < f->n_insns; n++) {
                const struct ws_ptx_insn *i = &f->insns[n];
                struct func_does c = {false, false, false, false};
                if (i->op == WS_OP_CALL)
                    c = call_does(w, i);
                bool load = is_load(i) && others_write(i);
                d.loads |= load || c.loads;
                d.polls |=
                    (load && is_fresh(i)) || c.polls || (fetches(i) && i->space != WS_SP_SHARED);
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
static bool may_poll(const struct wait *w)
{
    for (uint32_t k = 0; k < w->f->n_insns; k++) {
        const struct ws_ptx_insn *i = &w->f->insns[k];
        if ((is_load(i) && others_write(i)) || (fetches(i) && i->space != WS_SP_SHARED) ||
            i->op == WS_OP_CALL || is_fence(i))
            return true;
    }
    return false;
}

static int prepare(struct wait *w)
{
    uint32_t n = w->cfg->n_blocks;
    int r = make_graph(w);
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
    for (int k = 0; k <= DEPTH_MAX; k++) {
        w->levels[k].in = ws_arena_array(w->a, (size_t)n + 1, sizeof(bool));
        ok = ok && w->levels[k].in;
    }
    return ok ? 0 : ws_raise(-ENOMEM);
}

int ws_ptx_waits(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                 const struct ws_ptx_cfg *cfg, const bool *reached, struct ws_arena *a,
                 const struct ws_ptx_insn **ret_where)
{
    struct wait w = {
        .m = m, .f = f, .cfg = cfg, .reached = reached, .a = a, .budget = budget_start};
    struct func_does *does = ws_arena_array(a, (size_t)m->n_funcs + 1, sizeof(*does));
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
        uint32_t n = w.succ_at[b + 1] - w.succ_at[b];
        for (uint32_t k = 0; n > 1 && k < n; k++)
            if (waits_at(&w, all, b, w.succ[w.succ_at[b] + k], 0)) {
                *ret_where = last_of(&w, b);
                return 0;
            }
    }
    return r;
}

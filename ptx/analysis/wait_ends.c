// SPDX-License-Identifier: Apache-2.0
/* ptx/analysis/wait_ends.c - what must end a loop: see the head of wait.c.
 *
 * Registers are followed along their definitions within the set T, and each block on the way is
 * noted: only ways round the loop that pass all of these blocks are sure to end. */
#include <string.h>

#include "base/alloc.h"
#include "ptx/analysis/wait.h"
#include "ptx/passes/edit.h"

/* The only instruction in T that writes the register, unless it does so under a condition, or not
 * all of it. */
static const struct ws_ptx_insn *only_def(struct ws_wait *w, int32_t reg, uint32_t *ret_block)
{
    const struct ws_ptx_insn *found = NULL;
    for (uint32_t k = w->def_at[reg]; k < w->def_at[reg + 1]; k++) {
        uint32_t b = w->cfg->block_of[w->defs[k]];
        ws_wait_spend(w, 1);
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
static void must_pass(struct ws_wait_level *l, uint32_t b)
{
    for (uint32_t k = 0; k < l->n_ends; k++)
        if (l->ends[k] == b)
            return;
    if (l->n_ends == WS_WAIT_ENDS_MAX)
        l->too_many = true;
    else
        l->ends[l->n_ends++] = b;
}

static enum ws_wait_moves walk(struct ws_wait *w, struct ws_wait_level *l, int32_t reg,
                               bool strict);

enum ws_wait_moves ws_wait_walk(struct ws_wait *w, struct ws_wait_level *l,
                                const struct ws_ptx_operand *o, bool strict)
{
    switch (o->kind) {
    case WS_OPD_IMM:
    case WS_OPD_SYM:
        return WS_WAIT_FIXED;
    case WS_OPD_SREG:
        return ws_ptx_sreg_is_clock((enum ws_ptx_sreg)o->sreg) ? WS_WAIT_OTHER : WS_WAIT_FIXED;
    case WS_OPD_REG:
        return o->part ? WS_WAIT_OTHER : walk(w, l, o->reg, strict);
    case WS_OPD_ADDR:
        return o->n ? WS_WAIT_OTHER : o->reg < 0 ? WS_WAIT_FIXED : walk(w, l, o->reg, strict);
    default:
        return WS_WAIT_OTHER;
    }
}

static enum ws_wait_moves walk_def(struct ws_wait *w, struct ws_wait_level *l,
                                   const struct ws_ptx_insn *i, bool strict)
{
    if (i->guard >= 0 || !i->n_operands || i->operands[0].kind != WS_OPD_REG || i->operands[0].part)
        return WS_WAIT_OTHER;
    bool constant = i->op == WS_OP_LD && (i->space == WS_SP_CONST || i->space == WS_SP_PARAM);
    if ((ws_ptx_ops[i->op].effect != WS_EFFECT_ALU && !constant) || (i->flags & WS_F_CC))
        return WS_WAIT_OTHER;
    uint32_t moving = 0;
    for (uint8_t k = 1; k < i->n_operands; k++) {
        enum ws_wait_moves of = ws_wait_walk(w, l, &i->operands[k], strict);
        if (of == WS_WAIT_OTHER)
            return WS_WAIT_OTHER;
        moving += of == WS_WAIT_MOVES;
    }
    if (!moving)
        return WS_WAIT_FIXED;
    if (constant || (strict && (moving > 1 || !ws_ptx_does(i, WS_DOES_ORDER))))
        return WS_WAIT_OTHER;
    return WS_WAIT_MOVES;
}

/* What the register does from trip to trip, as far as its definitions in T tell; @l gets the blocks
 * they are in. @strict: WS_WAIT_MOVES only where it goes one way; else any change. */
static enum ws_wait_moves walk(struct ws_wait *w, struct ws_wait_level *l, int32_t reg, bool strict)
{
    for (uint32_t k = w->n_path; k-- > 0;)
        if (w->path[k] == reg) { /* it depends on itself; copies alone change nothing */
            for (; k < w->n_path; k++)
                if (w->path_changes[k])
                    return WS_WAIT_MOVES;
            return WS_WAIT_OTHER;
        }
    uint32_t n = 0, n_moving = 0;
    for (uint32_t k = w->def_at[reg]; k < w->def_at[reg + 1]; k++) {
        uint32_t b = w->cfg->block_of[w->defs[k]];
        if (!ws_wait_spend(w, 1))
            return WS_WAIT_OTHER;
        if (!w->in[b])
            continue;
        if (w->n_path == WS_WAIT_WALK_MAX)
            return WS_WAIT_OTHER;
        const struct ws_ptx_insn *i = &w->f->insns[w->defs[k]];
        must_pass(l, b);
        w->path[w->n_path] = reg;
        w->path_changes[w->n_path++] = !ws_ptx_does(i, WS_DOES_COPY);
        enum ws_wait_moves of = walk_def(w, l, i, strict);
        w->n_path--;
        if (of == WS_WAIT_OTHER)
            return WS_WAIT_OTHER;
        n++;
        n_moving += of == WS_WAIT_MOVES;
    }
    if (!n)
        return WS_WAIT_FIXED;
    return n_moving == n ? WS_WAIT_MOVES : n == 1 ? WS_WAIT_FIXED : WS_WAIT_OTHER;
}

/* Loads that don't trust the SM's own cache, since others may have written. */
bool ws_wait_is_fresh(const struct ws_ptx_insn *i)
{
    const char *name = i->cache ? ws_ptx_cache_names[i->cache - 1] : "";
    return i->sem >= WS_SEM_RELAXED || !strcmp(name, "cg") || !strcmp(name, "cv");
}

/* A bound: the same on each trip, or what a plain load finds. */
static bool is_bound(struct ws_wait *w, struct ws_wait_level *l, const struct ws_ptx_operand *o)
{
    if (ws_wait_walk(w, l, o, false) == WS_WAIT_FIXED)
        return true;
    uint32_t b = 0;
    const struct ws_ptx_insn *i = o->kind == WS_OPD_REG ? only_def(w, o->reg, &b) : NULL;
    return i && i->op == WS_OP_LD && !ws_wait_is_fresh(i) && !w->depends[b];
}

/* ---- what must end a loop ---- */
/* An integer that is known: written there, or all that its register ever holds. */
static bool known(const struct ws_wait *w, const struct ws_ptx_operand *o, int64_t *ret)
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

static bool is_zero(const struct ws_wait *w, const struct ws_ptx_operand *o)
{
    int64_t v;
    return known(w, o, &v) && v == 0;
}

static bool is_other_than_zero(const struct ws_wait *w, const struct ws_ptx_operand *o)
{
    int64_t v;
    return known(w, o, &v) && v != 0;
}

static bool is_positive(const struct ws_wait *w, const struct ws_ptx_operand *o)
{
    int64_t v;
    return known(w, o, &v) && v > 0 && v <= INT32_MAX;
}

static bool same_value(struct ws_wait *w, const struct ws_ptx_operand *a,
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

/* Whether @o is what was read before at the place that @swap writes: by @swap itself on the last
 * trip, or by a load on this one. */
static bool was_read(struct ws_wait *w, struct ws_wait_level *l, const struct ws_ptx_operand *o,
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
static bool atom_ends(struct ws_wait *w, struct ws_wait_level *l, const struct ws_ptx_operand *got,
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
           ws_wait_walk(w, l, &i->operands[1], false) == WS_WAIT_MOVES;
}

/* Whether T changes memory in no other way than by counting up, as far as atomics go. */
static bool only_counts_up(const struct ws_wait *w)
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
static const struct ws_ptx_operand *only_stored(struct ws_wait *w, struct ws_wait_level *l,
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
static bool counts_up(struct ws_wait *w, struct ws_wait_level *l, const struct ws_ptx_operand *o)
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
        bool add =
            i->op == WS_OP_ADD && ws_wait_walk(w, l, &i->operands[2], false) == WS_WAIT_FIXED;
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
static bool compare_ends(struct ws_wait *w, struct ws_wait_level *l, const struct ws_ptx_insn *i,
                         bool holds)
{
    enum ws_ptx_cmp stay = holds ? (enum ws_ptx_cmp)i->cmp : opposite((enum ws_ptx_cmp)i->cmp);
    const struct ws_ptx_operand *o = &i->operands[1];
    for (int s = 0; s < 2; s++) {
        const struct ws_ptx_operand *x = &o[s], *y = &o[1 - s];
        if (stay != WS_CMP_NONE && ws_wait_walk(w, l, x, true) == WS_WAIT_MOVES &&
            is_bound(w, l, y))
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
static bool pred_ends(struct ws_wait *w, struct ws_wait_level *l, const struct ws_ptx_operand *pred,
                      bool is, int depth)
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
bool ws_wait_branch_ends(struct ws_wait *w, struct ws_wait_level *l, uint32_t b, uint32_t q,
                         uint32_t without)
{
    const struct ws_ptx_insn *i = ws_wait_last_of(w, b);
    const uint32_t *to = w->edges.succ + w->edges.succ_at[b];
    if (i->guard < 0 || i->op == WS_OP_BRX_IDX ||
        w->edges.succ_at[b + 1] - w->edges.succ_at[b] != 2)
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

// SPDX-License-Identifier: Apache-2.0
/* Which registers may hold different values in threads of one block ("divergent" registers).
 *
 * A register is divergent if one of its definitions is. A definition is divergent
 *   - if its instruction reads something that differs between threads (%tid, the lane, a clock), or
 *     memory other than parameters and constants;
 *   - if it exchanges values between lanes, or is an atomic or a call;
 *   - if it reads a divergent register, or its guard is divergent;
 *   - if only some threads may execute it: it stands between a branch on a divergent predicate and
 *     the point where the ways of that branch meet again (the immediate post-dominator of its
 *     block). Then the value seen there depends on the way taken.
 *
 * This is a least fixed point. Each round marks at least one register or block, a round takes
 * linear time, and in practice there are few rounds. */
#include <stdlib.h>
#include "base/alloc.h"
#include "base/budget.h"
#include "base/error.h"
#include "ptx/passes/pass.h"

static bool sreg_differs(enum ws_ptx_sreg s)
{
    switch (s) {
    case WS_SR_TID:
    case WS_SR_LANEID:
    case WS_SR_WARPID:
    case WS_SR_LANEMASK_EQ:
    case WS_SR_LANEMASK_LE:
    case WS_SR_LANEMASK_LT:
    case WS_SR_LANEMASK_GE:
    case WS_SR_LANEMASK_GT:
        return true;
    default:
        return ws_ptx_sreg_is_clock(s);
    }
}

static bool operand_differs(const struct ws_ptx_operand *o, const bool *divergent)
{
    if (o->kind == WS_OPD_SREG)
        return sreg_differs((enum ws_ptx_sreg)o->sreg);
    if ((o->kind == WS_OPD_REG || o->kind == WS_OPD_ADDR) && o->reg >= 0 && divergent[o->reg])
        return true;
    for (uint16_t k = 0; k < o->n; k++)
        if (operand_differs(&o->v[k], divergent))
            return true;
    return false;
}

/* Whether what @i writes may differ between threads, given where it stands. */
static bool result_differs(const struct ws_ptx_insn *i, const bool *divergent)
{
    switch (ws_ptx_ops[i->op].effect) {
    case WS_EFFECT_READ:
        if (i->space != WS_SP_PARAM && i->space != WS_SP_CONST)
            return true;
        break;
    case WS_EFFECT_NONE:
    case WS_EFFECT_ALU:
        break;
    case WS_EFFECT_BARRIER: /* bar.red gives all threads the same */
        return false;
    default:
        return true;
    }
    if (i->op == WS_OP_LD && i->space == WS_SP_PARAM && i->operands[1].sym < 0)
        return true; /* not of this entry's own parameters: of a call */
    for (uint8_t k = 0; k < i->n_operands; k++)
        if (operand_differs(&i->operands[k], divergent))
            return true;
    return i->guard >= 0 && divergent[i->guard];
}

static bool mark(const struct ws_ptx_operand *o, bool *divergent)
{
    bool changed = false;
    if (o->kind == WS_OPD_REG && o->reg >= 0 && !divergent[o->reg])
        changed = divergent[o->reg] = true;
    for (uint16_t k = 0; k < o->n; k++)
        changed |= mark(&o->v[k], divergent);
    return changed;
}

/* Registers that @i writes: its first operand, unless that is an address or it writes none; a
 * call's results. */
static bool mark_results(const struct ws_ptx_insn *i, bool *divergent)
{
    bool changed = false;
    if (i->call)
        for (uint32_t k = 0; k < i->call->n_rets; k++)
            changed |= mark(&i->call->rets[k], divergent);
    if (ws_ptx_writes_first(i))
        changed |= mark(&i->operands[0], divergent);
    return changed;
}

/* Marks the blocks that can be reached from @from without passing @until. @stack: [n_blocks].
 * Return: whether any was new. */
static bool mark_blocks(const struct ws_ptx_cfg *cfg, int32_t from, int32_t until, bool *partial,
                        int32_t *stack)
{
    bool changed = false;
    uint32_t n = 0;
    if (from >= 0 && from != until && !partial[from]) {
        partial[from] = changed = true;
        stack[n++] = from;
    }
    while (n) {
        const struct ws_ptx_block *b = &cfg->blocks[stack[--n]];
        for (int k = 0; k < 2; k++)
            if (b->succ[k] >= 0 && b->succ[k] != until && !partial[b->succ[k]]) {
                partial[b->succ[k]] = true;
                stack[n++] = b->succ[k];
            }
    }
    return changed;
}

int ws_ptx_divergent_regs(const struct ws_ptx_func *f, const struct ws_ptx_cfg *cfg,
                          struct ws_arena *a, bool **ret)
{
    bool *divergent = ws_arena_array(a, (size_t)f->n_regs + 1, sizeof(*divergent));
    bool *partial = ws_alloc_array((size_t)cfg->n_blocks + 1, sizeof(*partial));
    int32_t *stack = ws_alloc_array((size_t)cfg->n_blocks + 1, sizeof(*stack));
    if (!divergent || !partial || !stack) {
        free(partial);
        free(stack);
        return ws_raise(-ENOMEM);
    }
    for (bool changed = true; changed && ws_budget_spend(f->n_insns);) {
        changed = false;
        for (uint32_t b = 0; b < cfg->n_blocks; b++) {
            const struct ws_ptx_block *block = &cfg->blocks[b];
            for (uint32_t k = block->first; k < block->first + block->n; k++) {
                const struct ws_ptx_insn *i = &f->insns[k];
                if (partial[b] || result_differs(i, divergent))
                    changed |= mark_results(i, divergent);
                bool way = i->op == WS_OP_BRX_IDX ? operand_differs(&i->operands[0], divergent)
                                                  : i->guard >= 0 && divergent[i->guard];
                if (!way || k + 1 != block->first + block->n)
                    continue;
                /* A way that ends the thread is a way too: what follows it is then partial until
                 * the threads are gone. */
                if (i->op == WS_OP_BRX_IDX) /* targets beyond two: all of them, by the labels */
                    for (uint16_t t = 0; t < i->operands[1].n; t++) {
                        uint32_t at = f->labels[i->operands[1].v[t].label].insn;
                        if (at < f->n_insns)
                            changed |= mark_blocks(cfg, (int32_t)cfg->block_of[at], block->ipdom,
                                                   partial, stack);
                    }
                for (int s = 0; s < 2; s++)
                    changed |= mark_blocks(cfg, block->succ[s], block->ipdom, partial, stack);
            }
        }
    }
    free(partial);
    free(stack);
    *ret = divergent;
    return 0;
}

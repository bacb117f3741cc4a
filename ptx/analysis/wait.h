/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/analysis/wait.h - what the two halves of the search for waiting loops share: wait.c finds the
 * loops and what depends on polled memory, wait_ends.c finds what must end a loop. The head of
 * wait.c explains the words. Private to these two files. */
#ifndef WS_PTX_ANALYSIS_WAIT_H
#define WS_PTX_ANALYSIS_WAIT_H

#include "base/budget.h"
#include "ptx/analysis/cfg.h"
#include "ptx/ptx.h"

enum { WS_WAIT_DEPTH_MAX = 8, WS_WAIT_WALK_MAX = 24, WS_WAIT_ENDS_MAX = 24 };

/* What a register does from one trip round the loop to the next. */
enum ws_wait_moves {
    WS_WAIT_OTHER, /* not known */
    WS_WAIT_FIXED, /* stays the same */
    WS_WAIT_MOVES, /* changes */
};

/* What a function does, itself or through those that it calls. */
struct ws_wait_does {
    bool polls, loads, writes, fences;
};

/* One set T within another. */
struct ws_wait_level {
    bool *in;                                /* [n_blocks] */
    uint32_t ends[WS_WAIT_ENDS_MAX], n_ends; /* blocks that must be passed for T to end */
    bool too_many;
};

struct ws_wait {
    const struct ws_ptx_module *m;
    const struct ws_ptx_func *f;
    const struct ws_ptx_cfg *cfg;
    const struct ws_wait_does *does; /* of each function that may be called; NULL of others */
    const bool *reached;
    struct ws_arena *a;
    uint64_t budget;
    struct ws_ptx_edges edges;
    uint32_t *def_at, *defs; /* instructions that write each register */
    /* About the set T that is looked at. */
    const bool *in;
    uint32_t q;
    bool fences, writes;
    bool *polled;  /* [n_regs] */
    bool *depends; /* [n_blocks]: whether a thread comes there is decided by such a value */
    /* Memory and state that hold such values: shared and local memory, global memory, the carry
     * flag, parameters of calls. */
    bool near_polled, far_polled, carry_polled, params_polled;
    uint32_t *stack;
    bool *forth, *back; /* [n_blocks + 1] */
    int32_t *order, *number, *ipdom;
    struct ws_wait_level levels[WS_WAIT_DEPTH_MAX + 1];
    /* Of a walk along definitions. */
    int32_t path[WS_WAIT_WALK_MAX];
    bool path_changes[WS_WAIT_WALK_MAX];
    uint32_t n_path;
};

/* Takes @n steps from the budget. Return: false: it is used up, and the kernel counts as one that
 * waits. */
static inline bool ws_wait_spend(struct ws_wait *w, uint64_t n)
{
    if (w->budget < n || !ws_budget_spend(n)) {
        w->budget = 0;
        return false;
    }
    w->budget -= n;
    return true;
}

/* The last instruction of block @b. */
static inline const struct ws_ptx_insn *ws_wait_last_of(const struct ws_wait *w, uint32_t b)
{
    const struct ws_ptx_block *block = &w->cfg->blocks[b];
    return &w->f->insns[block->first + block->n - 1];
}

/* ---- wait_ends.c ---- */
/* What the operand does from trip to trip round T. @l: gets the blocks that must be passed for it.
 * @strict: MOVES only where it keeps growing or keeps falling; else on any change. */
enum ws_wait_moves ws_wait_walk(struct ws_wait *w, struct ws_wait_level *l,
                                const struct ws_ptx_operand *o, bool strict);
/* Whether a load sees what other SMs have written. */
bool ws_wait_is_fresh(const struct ws_ptx_insn *i);
/* Whether the branch at the end of block @b must take the thread out of T, in which block @q does
 * not go to @without. @l: gets the blocks that must be passed for it. */
bool ws_wait_branch_ends(struct ws_wait *w, struct ws_wait_level *l, uint32_t b, uint32_t q,
                         uint32_t without);

#endif

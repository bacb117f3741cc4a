// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/blocks.c - from one warp or block to the next without leaving compiled code.
 *
 * Where a block has several warps, the interpreter is asked whether the next one just begins
 * (ws_exec_end_warp()). For a block of one warp that is too much: what the scheduler of the warps
 * (../exec/turns.c) and the start of a block (../exec/block.c) do costs more than its own work. So
 * where it ends, all lanes together and in its first turn, and the next block differs from it only
 * by its place along x (ws_blockrun.n_alike), the code does what is left to do: it adds what was
 * counted to the block's work, and writes down which block runs. All else is as a block that starts
 * wants it: the round and the warp are as in any first turn that has just begun. Where anything is
 * otherwise the block ends as all others do. */
#include "device/soft/jit/emit.h"

#include <stddef.h>

#define L           ws_llvm
#define CTX(member) offsetof(struct ws_core_ctx, member)
#define RUN(member) offsetof(struct ws_blockrun, member)
#define ASK(member) offsetof(struct ws_block_ask, member)

struct next {
    struct ws_jit_emit *e;
    llvm_value b; /* the block's address */
};

static llvm_value of_run(struct next *x, llvm_type t, size_t offset)
{
    return ws_jit_load(x->e, t, ws_jit_plus(x->e, x->b, offset), 4);
}

static void set_run(struct next *x, llvm_value v, size_t offset)
{
    ws_jit_store(x->e, v, ws_jit_plus(x->e, x->b, offset), 4);
}

/* Adds to a number of the block. Return: what it is now. */
static llvm_value add_run(struct next *x, llvm_type t, size_t offset, int64_t by)
{
    llvm_value v = L.BuildAdd(x->e->b, of_run(x, t, offset), ws_jit_int(x->e, t, (uint64_t)by), "");
    set_run(x, v, offset);
    return v;
}

/* All bits that must be zero, or the block does not end in the simple way. In a first turn strong
 * loads and what is taken from the budget for them count as spinning, too. */
static llvm_value rests(struct next *x)
{
    struct ws_jit_emit *e = x->e;
    llvm_value stop = ws_jit_plus(e, of_run(x, e->i64, RUN(g)), offsetof(struct ws_grid, stop));
    llvm_value words[] = {ws_jit_field(e, e->i32, CTX(spin)), of_run(x, e->i32, RUN(bars_used)),
                          of_run(x, e->i32, RUN(start_error)), ws_jit_load(e, e->i32, stop, 4)};
    llvm_value any = of_run(x, e->i64, RUN(n_insns));
    any = L.BuildOr(e->b, any, of_run(x, e->i64, RUN(n_clock_reads)), "");
    for (size_t k = 0; k < WS_ARRAY_SIZE(words); k++)
        any = L.BuildOr(e->b, any, L.BuildZExt(e->b, words[k], e->i64, ""), "");
    return any;
}

/* What says where the block is. */
static void set_places(struct next *x, llvm_value at)
{
    struct ws_jit_emit *e = x->e;
    const struct ws_jit_plan *p = e->p;
    llvm_value filled = of_run(x, e->i64, RUN(filled));
    uint32_t n = 0;
    for (uint32_t k = 0; k < p->img->n_fills; k++) {
        const struct ws_fill *f = &p->img->fills[k];
        if (!ws_exec_is_blocks_own(f))
            continue;
        bool moves =
            (f->sreg == WS_SR_CTAID || f->sreg == WS_SR_CLUSTERID) && (f->dim == 0 || f->dim > 2);
        if (moves)
            ws_jit_store(e, at, ws_jit_plus(e, filled, n * sizeof(uint32_t)), 4);
        n++;
        uint32_t row = p->row_at[f->off / 64];
        if (moves && row)
            ws_jit_put(e, ws_jit_filled(e, f, at), e->scalars[row - 1]);
    }
}

static void begin_alike(struct ws_jit_emit *e, llvm_block entry)
{
    struct next x = {e, ws_jit_field(e, e->i64, CTX(b))};
    llvm_block may = ws_jit_block(e), begin = ws_jit_block(e), no = ws_jit_block(e);
    llvm_value none = ws_jit_int(e, e->i64, 0);
    L.BuildCondBr(
        e->b,
        L.BuildICmp(e->b, LLVM_NE, of_run(&x, e->i32, RUN(n_alike)), ws_jit_int(e, e->i32, 0), ""),
        may, no);
    ws_jit_begin(e, may);
    llvm_value turn = of_run(&x, e->i64, RUN(quantum_start));
    llvm_value ran = L.BuildSub(e->b, turn, ws_jit_get(e, e->i64, e->budget), "");
    llvm_value left = L.BuildSub(e->b, of_run(&x, e->i64, RUN(asks_left)), ran, "");
    llvm_value ok = L.BuildAnd(e->b, L.BuildICmp(e->b, LLVM_EQ, rests(&x), none, ""),
                               L.BuildICmp(e->b, LLVM_SGE, left, none, ""), "");
    L.BuildCondBr(e->b, ok, begin, no);
    ws_jit_begin(e, begin);
    ws_jit_add_counts(e, ws_jit_field(e, e->i64, CTX(work)));
    ws_jit_clear_counts(e);
    llvm_value ask = of_run(&x, e->i64, RUN(ask));
    ws_jit_store(e, ws_jit_int(e, e->i32, WS_STEP_DONE), ws_jit_plus(e, ask, ASK(step)), 4);
    ask = ws_jit_plus(e, ask, sizeof(struct ws_block_ask));
    set_run(&x, ask, RUN(ask));
    set_run(&x, left, RUN(asks_left));
    set_run(&x, ws_jit_load(e, e->i32, ws_jit_plus(e, ask, ASK(smid)), 4), RUN(smid));
    set_run(&x, ws_jit_load(e, e->i32, ws_jit_plus(e, ask, ASK(slot)), 4), RUN(slot));
    ws_jit_set_field(e, ws_jit_load(e, e->i64, ws_jit_plus(e, ask, ASK(work)), 8), CTX(work));
    (void)add_run(&x, e->i32, RUN(n_asks), -1);
    (void)add_run(&x, e->i32, RUN(n_alike), -1);
    (void)add_run(&x, e->i64, RUN(linear), 1);
    set_places(&x, add_run(&x, e->i32, RUN(ctaid), 1));
    set_run(&x, turn, RUN(round.before));
    set_run(&x, ws_jit_int(e, e->i32, 0), RUN(round.spent));
    set_run(&x, ws_jit_int(e, e->i32, 0), RUN(round.favour));
    ws_jit_put(e, ws_jit_int(e, e->i32, 0), e->patterns);
    ws_jit_put(e, turn, e->budget);
    L.BuildBr(e->b, entry);
    ws_jit_begin(e, no);
}

/* The answer of ws_exec_end_warp() was not zero. */
static void begin_warp(struct ws_jit_emit *e, llvm_value answer, llvm_block entry)
{
    llvm_block same = ws_jit_block(e), other = ws_jit_block(e);
    llvm_value none = ws_jit_int(e, e->i64, 0);
    ws_jit_put(e, answer, e->budget);
    ws_jit_put(e, ws_jit_field(e, e->i64, CTX(regs)), e->regs);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_SGT, answer, none, ""), same, other);
    ws_jit_begin(e, other);
    ws_jit_add_counts(e, ws_jit_field(e, e->i64, CTX(work_before)));
    ws_jit_clear_counts(e);
    ws_jit_put(e, ws_jit_int(e, e->i32, 0), e->patterns);
    ws_jit_put(e, L.BuildSub(e->b, none, answer, ""), e->budget);
    ws_jit_fetch_fills(e, WS_JIT_BLOCKS);
    L.BuildBr(e->b, same);
    ws_jit_begin(e, same);
    ws_jit_fetch_fills(e, WS_JIT_WARPS);
    L.BuildBr(e->b, entry);
}

/* Whether a warp begins with nothing but what is filled. */
static bool begins_empty(const struct ws_jit_plan *p)
{
    const uint64_t *live = p->live[p->img->entry - p->img->segs];
    for (uint32_t r = 0; r < p->n_rows; r++)
        if (ws_jit_has(live, r) && !p->rows[r].fill)
            return false;
    return true;
}

void ws_jit_go_on(struct ws_jit_emit *e, llvm_block entry)
{
    if (e->p->n_warps == 1) {
        begin_alike(e, entry);
        return;
    }
    if (!begins_empty(e->p))
        return;
    llvm_block yes = ws_jit_block(e), no = ws_jit_block(e);
    llvm_value args[] = {e->c, ws_jit_get(e, e->i64, e->budget)};
    llvm_value answer = ws_jit_call(e, (void (*)(void))ws_exec_end_warp, args, 2);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_NE, answer, ws_jit_int(e, e->i64, 0), ""), yes, no);
    ws_jit_begin(e, yes);
    begin_warp(e, answer, entry);
    ws_jit_begin(e, no);
}

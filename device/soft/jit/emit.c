// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/emit.c - segments, branches, entries and exits of the function.
 *
 * Where the whole version is entered, what is live comes from the warp's register file; where it
 * is left, what was written goes back. The other versions have it there (rows.c). What has no code
 * is done by the interpreter's handler: the rows that it reads are written to the register file
 * before, and those that it writes are read afterwards. */
#include "device/soft/jit/emit.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "device/soft/jit/shape.h"

#define L ws_llvm
/* What segments add up to, in a vector: the first numbers of struct ws_exec_work, in order. */
enum { LANES = 32, TALLY = 16 };
enum { UOP_STEPS = 256 }; /* of the budget: some 50 us */
#define TALLY_OF(member) (offsetof(struct ws_exec_work, member) / sizeof(uint64_t))
_Static_assert(TALLY_OF(n_warp_insns) == 0 && TALLY_OF(n_unit_ops) + _WS_UNIT_N == 13,
               "as emit_flush() adds them");
#define CTX(member) offsetof(struct ws_core_ctx, member)

/* ---- leaving ---- */
/* Writes back what was written and is live. */
static void give_back(struct ws_jit_emit *e, const uint64_t *live, const uint64_t *dirty)
{
    for (uint32_t r = 0; r < e->p->n_rows; r++)
        if (ws_jit_has(live, r) && ws_jit_has(dirty, r))
            ws_jit_give(e, r);
}

static void leave(struct ws_jit_emit *e, enum ws_stop why, const struct ws_uop *u,
                  const struct ws_seg *enter)
{
    ws_jit_set_field(e, ws_jit_int(e, e->i32, why), CTX(stop));
    ws_jit_set_field(e, ws_jit_address(e, u), CTX(u));
    ws_jit_set_field(e, ws_jit_address(e, enter), CTX(enter));
    L.BuildBr(e->b, e->next[e->v]);
}

static llvm_block at(struct ws_jit_emit *e, enum ws_jit_version v, uint32_t k)
{
    if (!e->at[k][v])
        e->at[k][v] = ws_jit_block(e);
    return e->at[k][v];
}

static llvm_block go(struct ws_jit_emit *e, enum ws_jit_version v, const struct ws_seg *seg)
{
    llvm_block *b = &e->go[seg - e->p->img->segs][v];
    if (!*b)
        *b = ws_jit_block(e);
    return *b;
}

/* The rest is done in the masked version; rows @live are read there. */
static void to_masked(struct ws_jit_emit *e, const uint64_t *live, llvm_block to)
{
    give_back(e, live, e->dirty);
    ws_jit_set_active(e, ws_jit_field(e, e->i32, CTX(active)));
    ws_jit_put(e, ws_jit_field(e, e->i64, CTX(limit)), e->limit);
    L.BuildBr(e->b, to);
}

void ws_jit_unless(struct ws_jit_emit *e, llvm_value bad)
{
    llvm_block yes = ws_jit_block(e), no = ws_jit_block(e);
    L.BuildCondBr(e->b, bad, yes, no);
    ws_jit_begin(e, yes);
    ws_jit_live_at(e->p, e->k, e->set);
    to_masked(e, e->set, at(e, WS_JIT_MASKED, e->k));
    ws_jit_begin(e, no);
}

/* ---- handlers ---- */
static void sync_out(struct ws_jit_emit *e)
{
    ws_jit_set_field(e, ws_jit_get(e, e->i64, e->budget), CTX(budget));
    ws_jit_set_field(e, ws_jit_get(e, e->i32, e->patterns), CTX(n_patterns));
}

static void sync_in(struct ws_jit_emit *e)
{
    ws_jit_put(e, ws_jit_field(e, e->i64, CTX(budget)), e->budget);
    ws_jit_put(e, ws_jit_field(e, e->i32, CTX(n_patterns)), e->patterns);
}

void ws_jit_call_spending(struct ws_jit_emit *e, void (*f)(void), llvm_value *args, unsigned n)
{
    sync_out(e);
    ws_jit_call(e, f, args, n);
    sync_in(e);
}

/* Makes the rows that the micro-op reads those of the register file, and those that it writes, too,
 * with @written. */
static void give_touched(struct ws_jit_emit *e, bool written)
{
    const struct ws_jit_op *op = &e->p->ops[e->k];
    for (uint32_t n = 0; n < op->n_touches; n++)
        if (!op->touch[n].write || written)
            ws_jit_give(e, op->touch[n].row);
}

/* Takes the rows that the micro-op has written from the register file. */
static void fetch_written(struct ws_jit_emit *e)
{
    const struct ws_jit_op *op = &e->p->ops[e->k];
    for (uint32_t n = 0; n < op->n_touches; n++)
        if (op->touch[n].write)
            ws_jit_fetch(e, op->touch[n].row);
}

/* Return: whether the handler gave a micro-op to go on with. */
static llvm_value call_handler(struct ws_jit_emit *e)
{
    bool whole = e->v == WS_JIT_WHOLE && ws_jit_unguarded(e->p, ws_jit_uop(e));
    give_touched(e, !whole);
    sync_out(e);
    llvm_value args[] = {e->c, ws_jit_address(e, ws_jit_uop(e))};
    llvm_value r = ws_jit_call(e, (void (*)(void))ws_jit_handler, args, 2);
    sync_in(e);
    return L.BuildICmp(e->b, LLVM_NE, r, ws_jit_int(e, e->i64, 0), "");
}

void ws_jit_call_handler(struct ws_jit_emit *e)
{
    llvm_block on = ws_jit_block(e), off = ws_jit_block(e);
    L.BuildCondBr(e->b, call_handler(e), on, off);
    ws_jit_begin(e, off);
    if (ws_jit_waits(e->p, e->k)) {
        ws_jit_live_at(e->p, e->k, e->set);
        give_back(e, e->set, e->dirty);
    }
    L.BuildBr(e->b, e->next[e->v]);
    ws_jit_begin(e, on);
    fetch_written(e);
    if (!ws_jit_waits(e->p, e->k))
        return;
    /* some of the lanes may have to wait */
    llvm_value now = ws_jit_field(e, e->i32, CTX(active));
    if (e->v != WS_JIT_WHOLE) {
        ws_jit_set_active(e, now);
        ws_jit_put(e, ws_jit_field(e, e->i64, CTX(limit)), e->limit);
        return;
    }
    llvm_block all = ws_jit_block(e), some = ws_jit_block(e);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, now, ws_jit_active(e), ""), all, some);
    ws_jit_begin(e, some);
    ws_jit_live_at(e->p, e->k + 1, e->set);
    to_masked(e, e->set, at(e, WS_JIT_MASKED, e->k + 1));
    ws_jit_begin(e, all);
}

/* ---- control ---- */
#define WARP(member)  offsetof(struct ws_warp, member)
#define SPLIT(member) offsetof(struct ws_split, member)

static llvm_value split_field(struct ws_jit_emit *e, llvm_value split, llvm_type t, size_t offset)
{
    return ws_jit_load(e, t, ws_jit_plus(e, split, offset), 1);
}

static void set_split_field(struct ws_jit_emit *e, llvm_value split, llvm_value v, size_t offset)
{
    ws_jit_store(e, v, ws_jit_plus(e, split, offset), 1);
}

/* As ws_exec_split(): without a call, rows stay in registers. There are some lanes. */
static void split(struct ws_jit_emit *e, llvm_value lanes, const struct ws_seg *seg)
{
    llvm_value w = ws_jit_field(e, e->i64, CTX(w)), depth = ws_jit_field(e, e->i32, CTX(depth));
    llvm_value n = ws_jit_load(e, e->i32, ws_jit_plus(e, w, WARP(n_splits)), 4);
    llvm_value at = L.BuildMul(e->b, L.BuildZExt(e->b, n, e->i64, ""),
                               ws_jit_int(e, e->i64, sizeof(struct ws_split)), "");
    at = L.BuildAdd(e->b, ws_jit_plus(e, w, WARP(splits)), at, "");
    llvm_value none = ws_jit_int(e, e->i64, 0);
    for (size_t k = 0; k < sizeof(struct ws_split); k += 8)
        set_split_field(e, at, none, k);
    set_split_field(e, at, ws_jit_address(e, seg->first), SPLIT(u));
    set_split_field(e, at, ws_jit_address(e, seg), SPLIT(enter));
    set_split_field(e, at, lanes, SPLIT(mask));
    set_split_field(e, at, depth, SPLIT(depth));
    set_split_field(e, at, ws_jit_load(e, e->i32, ws_jit_plus(e, w, WARP(stamp)), 4),
                    SPLIT(last_run));
    ws_jit_store(e, L.BuildAdd(e->b, n, ws_jit_int(e, e->i32, 1), ""),
                 ws_jit_plus(e, w, WARP(n_splits)), 4);
    llvm_value limit = ws_jit_field(e, e->i64, CTX(limit)), first = ws_jit_address(e, seg->first);
    llvm_value lower = L.BuildICmp(e->b, LLVM_ULT, first, limit, "");
    ws_jit_set_field(e, L.BuildSelect(e->b, lower, first, limit, ""), CTX(limit));
}

/* Goes to the whole version of the segment if all rows have the shapes that it counts on, else to
 * the masked one. */
static void try_whole(struct ws_jit_emit *e, uint32_t s)
{
    const struct ws_jit_plan *p = e->p;
    llvm_value differ = ws_jit_int(e, e->i32, 0), full = ws_jit_int(e, e->i32, p->full);
    llvm_block yes = ws_jit_block(e);
    for (uint32_t r = 0; r < p->n_rows; r++) {
        const struct ws_jit_row *row = ws_jit_row_at(e, r);
        if (!ws_jit_has(p->live[s], r) || row->fill)
            continue;
        llvm_value is = ws_jit_read_row(e, r), v = is;
        if (row->width == 0 && row->shape == WS_SHAPE_KNOWN) { /* none or all */
            v = ws_jit_spread_word(e, is);
            differ = L.BuildOr(e->b, differ,
                               L.BuildAnd(e->b, L.BuildXor(e->b, is, v, ""), full, ""), "");
            v = p->full != ~0u ? v : is;
        } else if (row->shape == WS_SHAPE_KNOWN) {
            v = L.BuildExtractElement(e->b, is, ws_jit_int(e, e->i32, 0), "");
            llvm_value want =
                L.BuildAdd(e->b, ws_jit_splat(e, v, LANES),
                           ws_jit_constants(e, ws_jit_row_type(e, r), row->apart, LANES), "");
            is = L.BuildBitCast(e->b, L.BuildICmp(e->b, LLVM_NE, is, want, ""), e->i32, "");
            differ = L.BuildOr(e->b, differ, L.BuildAnd(e->b, is, full, ""), "");
        }
        ws_jit_put(e, v,
                   row->width == 0 || row->shape == WS_SHAPE_KNOWN ? e->scalars[r] : e->vectors[r]);
    }
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, differ, ws_jit_int(e, e->i32, 0), ""), yes,
                  go(e, WS_JIT_MASKED, &p->img->segs[s]));
    ws_jit_begin(e, yes);
    L.BuildBr(e->b, go(e, WS_JIT_WHOLE, &p->img->segs[s]));
}

/* Code that leads to segment @s and is emitted at its first use, as part of version @v. @made: by
 * segment, where it stands. */
static llvm_block way_to(struct ws_jit_emit *e, llvm_block *made, uint32_t s, enum ws_jit_version v,
                         void (*emit)(struct ws_jit_emit *e, uint32_t s))
{
    llvm_block here = L.GetInsertBlock(e->b);
    enum ws_jit_version before = e->v;
    if (!made[s]) {
        made[s] = ws_jit_block(e);
        ws_jit_begin(e, made[s]);
        e->v = v;
        emit(e, s);
        e->v = before;
        ws_jit_begin(e, here);
    }
    return made[s];
}

static void go_whole_or(struct ws_jit_emit *e, llvm_value lanes, uint32_t s, llvm_block parted)
{
    llvm_value all = L.BuildICmp(e->b, LLVM_EQ, lanes, ws_jit_int(e, e->i32, e->p->full), "");
    L.BuildCondBr(e->b, all, way_to(e, e->whole, s, WS_JIT_MASKED, try_whole), parted);
}

/* ---- the narrow version ---- */
/* The active lanes are of one group: which one. */
static void begin_group(struct ws_jit_emit *e)
{
    llvm_value active = ws_jit_get(e, e->i32, e->active);
    ws_jit_put(e, ws_jit_group_of(e, active), e->group);
    ws_jit_set_active(e, active);
}

/* Takes the active lanes, which are of one group, to the segment. */
static void enter_narrow(struct ws_jit_emit *e, uint32_t s)
{
    begin_group(e);
    L.BuildBr(e->b, go(e, WS_JIT_NARROW, &e->p->img->segs[s]));
}

/* Whether lanes are all of the group that begins at @group. */
static llvm_value are_of(struct ws_jit_emit *e, llvm_value lanes, llvm_value group)
{
    llvm_value all = ws_jit_int(e, e->i32, (1u << WS_JIT_GROUP) - 1);
    llvm_value others = L.BuildNot(e->b, L.BuildShl(e->b, all, group, ""), "");
    return L.BuildICmp(e->b, LLVM_EQ, L.BuildAnd(e->b, lanes, others, ""), ws_jit_int(e, e->i32, 0),
                       "");
}

/* ---- the lone version ---- */
static void begin_lane(struct ws_jit_emit *e)
{
    llvm_value lane = ws_jit_lowest_of(e, ws_jit_get(e, e->i32, e->active));
    ws_jit_put(e, L.BuildZExt(e->b, lane, e->i64, ""), e->lane);
}

/* Rows @live come from the register file. */
static void fetch(struct ws_jit_emit *e, const uint64_t *live)
{
    for (uint32_t r = 0; r < e->p->n_rows; r++)
        if (ws_jit_has(live, r) && !e->p->rows[r].fill)
            ws_jit_fetch(e, r);
}

/* Takes the active lane to the segment. */
static void enter_lone(struct ws_jit_emit *e, uint32_t s)
{
    begin_lane(e);
    fetch(e, e->p->live[s]);
    L.BuildBr(e->b, go(e, WS_JIT_LONE, &e->p->img->segs[s]));
}

/* Goes to the segment if that is one lane alone, and on here if not. */
static void go_if_lone(struct ws_jit_emit *e, llvm_value lanes, uint32_t s)
{
    llvm_block one = ws_jit_block(e), more = ws_jit_block(e);
    llvm_value rest = L.BuildSub(e->b, lanes, ws_jit_int(e, e->i32, 1), "");
    rest = L.BuildAnd(e->b, lanes, rest, "");
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, rest, ws_jit_int(e, e->i32, 0), ""), one, more);
    ws_jit_begin(e, one);
    ws_jit_put(e, lanes, e->active);
    L.BuildBr(e->b, way_to(e, e->lone, s, WS_JIT_LONE, enter_lone));
    ws_jit_begin(e, more);
}

/* What is live is in the register file, and lanes have parted: these go to a segment. */
static void go_parted(struct ws_jit_emit *e, llvm_value lanes, const struct ws_seg *seg)
{
    if (e->has_lone)
        go_if_lone(e, lanes, (uint32_t)(seg - e->p->img->segs));
    if (e->v != WS_JIT_NARROW && e->has_narrow) {
        llvm_block few = ws_jit_block(e), many = ws_jit_block(e);
        L.BuildCondBr(e->b, are_of(e, lanes, ws_jit_group_of(e, lanes)), few, many);
        ws_jit_begin(e, few);
        ws_jit_put(e, lanes, e->active);
        L.BuildBr(e->b, way_to(e, e->narrow, (uint32_t)(seg - e->p->img->segs), WS_JIT_NARROW,
                               enter_narrow));
        ws_jit_begin(e, many);
    }
    ws_jit_set_active(e, lanes);
    L.BuildBr(e->b, go(e, e->v == WS_JIT_NARROW ? e->v : WS_JIT_MASKED, seg));
}

/* The active lanes of the narrow version have met others: goes to @in if these are of its group,
 * too. */
static void widen(struct ws_jit_emit *e, llvm_value lanes, uint32_t s, llvm_block in)
{
    llvm_block few = ws_jit_block(e), many = ws_jit_block(e), part = ws_jit_block(e);
    L.BuildCondBr(e->b, are_of(e, lanes, ws_jit_get(e, e->i32, e->group)), few, many);
    ws_jit_begin(e, few);
    ws_jit_set_active(e, lanes);
    go_whole_or(e, lanes, s, in);
    ws_jit_begin(e, many);
    e->v = WS_JIT_MASKED;
    ws_jit_set_active(e, lanes);
    go_whole_or(e, lanes, s, part);
    ws_jit_begin(e, part);
    L.BuildBr(e->b, go(e, WS_JIT_MASKED, &e->p->img->segs[s]));
    e->v = WS_JIT_NARROW;
}

/* The lone lane has met others. */
static void join(struct ws_jit_emit *e, llvm_value lanes, uint32_t s)
{
    llvm_block parted = ws_jit_block(e);
    give_back(e, e->p->live[s], e->p->dirty[s]);
    e->v = WS_JIT_MASKED;
    ws_jit_set_active(e, lanes);
    go_whole_or(e, lanes, s, parted);
    ws_jit_begin(e, parted);
    go_parted(e, lanes, &e->p->img->segs[s]);
    e->v = WS_JIT_LONE;
}

/* The other lanes of the warp may stand where the segment begins: if they do, and are one split,
 * they come along. Goes to @in with them, and to @out if it is otherwise. */
static void meet(struct ws_jit_emit *e, uint32_t s, llvm_block in, llvm_block out)
{
    const struct ws_seg *seg = &e->p->img->segs[s];
    llvm_value w = ws_jit_field(e, e->i64, CTX(w)), at = ws_jit_plus(e, w, WARP(splits));
    llvm_value depth = ws_jit_field(e, e->i32, CTX(depth));
    const struct {
        llvm_value is, want;
    } all[] = {
        {ws_jit_load(e, e->i32, ws_jit_plus(e, w, WARP(n_splits)), 4), ws_jit_int(e, e->i32, 1)},
        {split_field(e, at, e->i64, SPLIT(u)), ws_jit_address(e, seg->first)},
        {split_field(e, at, e->i64, SPLIT(enter)), ws_jit_address(e, seg)},
        {split_field(e, at, e->i32, SPLIT(depth)), depth},
        {split_field(e, at, e->i8, SPLIT(state)), ws_jit_int(e, e->i8, WS_SPLIT_RUN)},
        {split_field(e, at, e->i8, SPLIT(granted)), ws_jit_int(e, e->i8, 0)},
    };
    llvm_value ok = NULL;
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        llvm_value same = L.BuildICmp(e->b, LLVM_EQ, all[k].is, all[k].want, "");
        ok = ok ? L.BuildAnd(e->b, ok, same, "") : same;
    }
    llvm_block met = ws_jit_block(e);
    L.BuildCondBr(e->b, ok, met, out);
    ws_jit_begin(e, met);
    llvm_value lanes =
        L.BuildOr(e->b, ws_jit_active(e), split_field(e, at, e->i32, SPLIT(mask)), "");
    llvm_value no_limit = ws_jit_int(e, e->i64, ~UINT64_C(0));
    ws_jit_set_field(e, lanes, CTX(active));
    ws_jit_put(e, no_limit, e->limit);
    ws_jit_set_field(e, no_limit, CTX(limit));
    ws_jit_store(e, ws_jit_int(e, e->i32, 0), ws_jit_plus(e, w, WARP(n_splits)), 4);
    if (e->v == WS_JIT_LONE) {
        join(e, lanes, s);
        return;
    }
    if (e->v == WS_JIT_NARROW) {
        widen(e, lanes, s, in);
        return;
    }
    ws_jit_set_active(e, lanes);
    go_whole_or(e, lanes, s, in);
}

/* Lanes t go to one segment, the rest to another: the lower goes on. */
static void diverge(struct ws_jit_emit *e, llvm_value t)
{
    const struct ws_seg *to = ws_jit_uop(e)->to, *fall = ws_jit_uop(e)->fall;
    bool lower = to->first < fall->first;
    llvm_value rest = L.BuildAnd(e->b, ws_jit_active(e), L.BuildNot(e->b, t, ""), "");
    split(e, lower ? rest : t, lower ? fall : to);
    ws_jit_set_field(e, lower ? t : rest, CTX(active));
    ws_jit_live_behind(e->p, e->k, e->set);
    give_back(e, e->set, e->dirty);
    ws_jit_put(e, ws_jit_field(e, e->i64, CTX(limit)), e->limit);
    go_parted(e, lower ? t : rest, lower ? to : fall);
}

static void emit_bra(struct ws_jit_emit *e)
{
    const struct ws_uop *u = ws_jit_uop(e);
    if (u->to == u->fall || ws_jit_unguarded(e->p, u)) {
        L.BuildBr(e->b, go(e, e->v, u->to));
        return;
    }
    llvm_value t = ws_jit_mask(e), none = ws_jit_int(e, e->i32, 0);
    if (e->v == WS_JIT_LONE ||
        (e->v == WS_JIT_WHOLE && ws_jit_uniform(ws_jit_row_at(e, ws_jit_row_of(e->p, u->guard))))) {
        L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_NE, t, none, ""), go(e, e->v, u->to),
                      go(e, e->v, u->fall));
        return;
    }
    llvm_block some = ws_jit_block(e), both = ws_jit_block(e);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, t, ws_jit_active(e), ""), go(e, e->v, u->to),
                  some);
    ws_jit_begin(e, some);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, t, none, ""), go(e, e->v, u->fall), both);
    ws_jit_begin(e, both);
    diverge(e, t);
}

static void emit_exit(struct ws_jit_emit *e)
{
    const struct ws_uop *u = ws_jit_uop(e);
    bool all = ws_jit_unguarded(e->p, u);
    if (all && e->v == WS_JIT_WHOLE)
        ws_jit_go_on(e, go(e, WS_JIT_WHOLE, e->p->img->entry));
    if (all) {
        llvm_value args[] = {e->c, L.BuildZExt(e->b, ws_jit_active(e), e->i64, "")};
        ws_jit_call(e, (void (*)(void))ws_exec_exit, args, 2);
        ws_jit_set_field(e, ws_jit_int(e, e->i32, 0), CTX(active));
        leave(e, WS_STOP_EXIT, u, NULL);
        return;
    }
    llvm_block on = ws_jit_block(e), off = ws_jit_block(e);
    L.BuildCondBr(e->b, call_handler(e), on, off);
    ws_jit_begin(e, off);
    give_back(e, e->p->live[u->fall - e->p->img->segs], e->dirty);
    L.BuildBr(e->b, e->next[e->v]);
    ws_jit_begin(e, on);
    uint32_t next = (uint32_t)(u->fall->first - e->p->img->uops);
    if (e->v != WS_JIT_WHOLE) {
        ws_jit_set_active(e, ws_jit_field(e, e->i32, CTX(active)));
        L.BuildBr(e->b, at(e, e->v, next));
        return;
    }
    llvm_block some = ws_jit_block(e);
    llvm_value now = ws_jit_field(e, e->i32, CTX(active));
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, now, ws_jit_active(e), ""), at(e, e->v, next),
                  some);
    ws_jit_begin(e, some);
    to_masked(e, e->p->live[u->fall - e->p->img->segs], at(e, WS_JIT_MASKED, next));
}

/* Lanes are in splits of their own now. */
static void scatter(struct ws_jit_emit *e)
{
    ws_jit_live_behind(e->p, e->k, e->set);
    give_back(e, e->set, e->dirty);
    L.BuildBr(e->b, e->next[WS_JIT_MASKED]);
}

static void emit_call(struct ws_jit_emit *e)
{
    const struct ws_uop *u = ws_jit_uop(e);
    llvm_value args[] = {e->c, ws_jit_address(e, u)};
    llvm_block off = ws_jit_block(e);
    give_touched(e, false);
    llvm_value r = ws_jit_call(e, (void (*)(void))ws_jit_call_function, args, 2);
    fetch_written(e);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_NE, r, ws_jit_int(e, e->i64, 0), ""),
                  go(e, e->v, u->to), off);
    ws_jit_begin(e, off);
    scatter(e);
}

/* To the segment of which @r is the number, plus one. */
static void go_to_number(struct ws_jit_emit *e, enum ws_jit_version v, llvm_value r)
{
    const struct ws_jit_plan *p = e->p;
    llvm_block here = L.GetInsertBlock(e->b), none = ws_jit_block(e);
    ws_jit_begin(e, none);
    L.BuildUnreachable(e->b);
    ws_jit_begin(e, here);
    llvm_value choose = L.BuildSwitch(e->b, r, none, p->n_returns);
    for (uint32_t n = 0; n < p->n_returns; n++)
        L.AddCase(choose, ws_jit_int(e, e->i64, (uint64_t)(p->returns[n] - p->img->segs) + 1),
                  go(e, v, p->returns[n]));
}

static void emit_ret(struct ws_jit_emit *e)
{
    const struct ws_uop *u = ws_jit_uop(e);
    llvm_value m = ws_jit_mask(e), none = ws_jit_int(e, e->i64, 0);
    if (!ws_jit_unguarded(e->p, u)) {
        llvm_block some = ws_jit_block(e);
        L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, m, ws_jit_int(e, e->i32, 0), ""),
                      go(e, e->v, u->fall), some);
        ws_jit_begin(e, some);
    }
    llvm_block off = ws_jit_block(e), on = ws_jit_block(e);
    llvm_value args[] = {e->c, ws_jit_address(e, u), L.BuildZExt(e->b, m, e->i64, "")};
    give_touched(e, false);
    llvm_value r = ws_jit_call(e, (void (*)(void))ws_jit_return, args, 3);
    fetch_written(e);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_NE, r, none, ""), on, off);
    ws_jit_begin(e, off);
    scatter(e);
    ws_jit_begin(e, on); /* no other lanes are about */
    if (e->v != WS_JIT_WHOLE)
        ws_jit_set_active(e, ws_jit_field(e, e->i32, CTX(active)));
    go_to_number(e, e->v, r);
}

static void emit_brx(struct ws_jit_emit *e)
{
    llvm_value args[] = {e->c, ws_jit_address(e, ws_jit_uop(e))};
    give_touched(e, false);
    ws_jit_call(e, (void (*)(void))ws_jit_handler, args, 2);
    scatter(e);
}

/* Goes to the place that was written down, or leaves the function. */
static void go_to_entry(struct ws_jit_emit *e)
{
    llvm_value entry = ws_jit_get(e, e->i32, e->entry);
    llvm_value back = L.BuildICmp(e->b, LLVM_SLE, entry, ws_jit_int(e, e->i32, 0), "");
    L.BuildCondBr(e->b, back, e->leave, e->dispatch);
}

/* Waiting by the short way, if that does. */
static void pass_barrier(struct ws_jit_emit *e, const struct ws_uop *u)
{
    if (e->v != WS_JIT_WHOLE || e->p->full != ~0u || u->x != WS_X_PLAIN || u->b)
        return;
    llvm_block passed = ws_jit_block(e), no = ws_jit_block(e);
    sync_out(e);
    llvm_value args[] = {e->c, ws_jit_address(e, u), ws_jit_get(e, e->i64, e->budget)};
    llvm_value way = ws_jit_call(e, (void (*)(void))ws_jit_wait, args, 3);
    llvm_value choose = L.BuildSwitch(e->b, way, passed, 2);
    L.AddCase(choose, ws_jit_int(e, e->i64, WS_BAR_LONG), no);
    L.AddCase(choose, ws_jit_int(e, e->i64, WS_BAR_OPEN), at(e, e->v, e->k + 1));
    ws_jit_begin(e, passed);
    way = L.BuildSub(e->b, way, ws_jit_int(e, e->i64, WS_BAR_PASSED), "");
    ws_jit_put(e, L.BuildTrunc(e->b, way, e->i32, ""), e->entry);
    go_to_entry(e);
    ws_jit_begin(e, no);
}

/* The core is left here, and entered again behind the micro-op. */
static void emit_stop(struct ws_jit_emit *e, enum ws_stop why, const struct ws_uop *u)
{
    ws_jit_live_at(e->p, e->k + 1, e->set);
    for (uint32_t n = 0; n < e->p->ops[e->k].n_touches; n++)
        ws_jit_add(e->set, e->p->ops[e->k].touch[n].row);
    give_back(e, e->set, e->dirty);
    give_touched(e, false);
    if (why == WS_STOP_BAR)
        pass_barrier(e, u);
    leave(e, why, u, NULL);
    ws_jit_begin(e, at(e, e->v, e->k + 1));
}

static void emit_go(struct ws_jit_emit *e, uint32_t s)
{
    const struct ws_seg *seg = &e->p->img->segs[s];
    llvm_block in = ws_jit_block(e), out = ws_jit_block(e);
    llvm_value left = ws_jit_get(e, e->i64, e->budget);
    int64_t least = seg->is_quiet ? -WS_OVERRUN : 0; /* as ws_exec_turn_ends() has it */
    llvm_value stop = L.BuildICmp(e->b, LLVM_SLE, left, ws_jit_int(e, e->i64, (uint64_t)least), "");
    if (e->v != WS_JIT_WHOLE) {
        llvm_block more = ws_jit_block(e), others = ws_jit_block(e);
        L.BuildCondBr(e->b, stop, out, more);
        ws_jit_begin(e, more);
        llvm_value limit = ws_jit_get(e, e->i64, e->limit);
        L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_UGE, ws_jit_address(e, seg->first), limit, ""),
                      others, in);
        ws_jit_begin(e, others);
        meet(e, s, in, out);
    } else {
        L.BuildCondBr(e->b, stop, out, in);
    }
    ws_jit_begin(e, out);
    give_back(e, e->p->live[s], e->p->dirty[s]);
    leave(e, WS_STOP_RESCHED, seg->first, seg);
    ws_jit_begin(e, in);
    ws_jit_put(e, L.BuildSub(e->b, left, ws_jit_int(e, e->i64, seg->n_insns), ""), e->budget);
    int64_t once[TALLY] = {0}, each[TALLY] = {0};
    int64_t lanes = e->v == WS_JIT_WHOLE ? e->p->lanes : 1;
    for (int k = 0; k < _WS_WORK_N; k++)
        once[TALLY_OF(n_warp_insns) + k] = seg->cls[k];
    once[TALLY_OF(n_machine_insns)] = seg->cls[WS_SEG_MACHINE];
    bool known = e->v == WS_JIT_WHOLE || e->v == WS_JIT_LONE;
    int64_t *by = known ? once : each;
    for (int k = 0; k < _WS_UNIT_N; k++)
        by[TALLY_OF(n_unit_ops) + k] = seg->unit[k] * lanes;
    by[TALLY_OF(n_thread_insns)] = seg->n_insns * lanes;
    llvm_type t = L.VectorType(e->i32, TALLY);
    llvm_value sum =
        L.BuildAdd(e->b, ws_jit_get(e, t, e->tally), ws_jit_constants(e, e->i32, once, TALLY), "");
    llvm_value now; /* lives as long as what is made of it */
    if (!known) {
        llvm_value count = L.GetNamedFunction(e->mod, "llvm.ctpop.i32");
        llvm_type ft = L.FunctionType(e->i32, &e->i32, 1, 0);
        now = ws_jit_active(e);
        if (!count)
            count = L.AddFunction(e->mod, "llvm.ctpop.i32", ft);
        llvm_value n = ws_jit_splat(e, L.BuildCall2(e->b, ft, count, &now, 1, ""), TALLY);
        sum = L.BuildAdd(e->b, sum,
                         L.BuildMul(e->b, n, ws_jit_constants(e, e->i32, each, TALLY), ""), "");
    }
    ws_jit_put(e, sum, e->tally);
    L.BuildBr(e->b, at(e, e->v, (uint32_t)(seg->first - e->p->img->uops)));
}

/* ---- segments ---- */
/* Behind the last micro-op of a segment only what is live is read, and by that micro-op what it is
 * about, unless it is a branch, which knows its guard. */
static void end_rows(struct ws_jit_emit *e)
{
    const struct ws_jit_op *op = &e->p->ops[e->k];
    ws_jit_live_behind(e->p, e->k, e->set);
    for (uint32_t n = 0; n < op->n_touches && op->h != WS_H_bra; n++)
        ws_jit_add(e->set, op->touch[n].row);
    ws_jit_forget_rows(e, e->set);
}

static void emit_one(struct ws_jit_emit *e)
{
    switch (e->p->ops[e->k].h) {
    case WS_H_bra:
        emit_bra(e);
        break;
    case WS_H_goto_:
        L.BuildBr(e->b, go(e, e->v, ws_jit_uop(e)->to));
        break;
    case WS_H_exit_:
        emit_exit(e);
        break;
    case WS_H_call:
        emit_call(e);
        break;
    case WS_H_ret:
        emit_ret(e);
        break;
    case WS_H_brx:
        emit_brx(e);
        break;
    case WS_H_bar:
        emit_stop(e, WS_STOP_BAR, ws_jit_uop(e));
        break;
    case WS_H_nanosleep:
        emit_stop(e, WS_STOP_YIELD, ws_jit_uop(e) + 1);
        break;
    case WS_H_nop:
        break;
    default:
        if (!ws_jit_emit_op(e) && !ws_jit_emit_memory(e) && !ws_jit_emit_warp(e))
            ws_jit_call_handler(e);
    }
}

static void emit_from(struct ws_jit_emit *e, uint32_t s)
{
    const struct ws_jit_plan *p = e->p;
    uint32_t first = (uint32_t)(p->img->segs[s].first - p->img->uops), end = ws_jit_seg_end(p, s);
    memcpy(e->dirty, p->dirty[s], p->n_words * sizeof(*e->dirty));
    for (e->k = first; e->k < end && ws_budget_spend(UOP_STEPS); e->k++) {
        llvm_block here = e->at[e->k][e->v];
        if (here && L.GetInsertBlock(e->b) != here) {
            L.BuildBr(e->b, here);
            if (L.GetBasicBlockTerminator(here))
                return;
            ws_jit_begin(e, here);
        }
        for (uint32_t n = 0; n < p->ops[e->k].n_touches; n++)
            if (p->ops[e->k].touch[n].write)
                ws_jit_add(e->dirty, p->ops[e->k].touch[n].row);
        if (e->k + 1 == end && e->v != WS_JIT_WHOLE)
            end_rows(e);
        emit_one(e);
    }
}

static bool is_missing(llvm_block b)
{
    return b && !L.GetBasicBlockTerminator(b);
}

/* Emits what something goes to. Return: whether there was anything. */
static bool emit_missing(struct ws_jit_emit *e, uint32_t s)
{
    const struct ws_exec_image *img = e->p->img;
    uint32_t first = (uint32_t)(img->segs[s].first - img->uops);
    bool enter = is_missing(e->go[s][e->v]);
    if (enter) {
        ws_jit_begin(e, e->go[s][e->v]);
        emit_go(e, s);
    }
    bool body = first < img->n_uops && is_missing(e->at[first][e->v]);
    if (body) {
        ws_jit_begin(e, e->at[first][e->v]);
        emit_from(e, s);
    }
    return enter || body;
}

/* Segments of one version may only be gone to from another one. */
static void emit_segments(struct ws_jit_emit *e)
{
    bool more = true;
    while (more && ws_budget_spend(0)) {
        more = false;
        for (int v = 0; v < _WS_JIT_VERSIONS; v++) {
            e->v = v;
            for (uint32_t s = 0; s < e->p->img->n_segs; s++)
                more |= emit_missing(e, s);
        }
    }
}

/* ---- entries, and the end ---- */
bool ws_jit_enters(const struct ws_jit_plan *p, uint32_t k, enum ws_jit_version v)
{
    for (uint32_t s = 0; s < p->img->n_segs; s++)
        if (p->img->segs[s].first == &p->img->uops[k])
            return true;
    uint16_t h = p->ops[k].h, before = k ? p->ops[k - 1].h : (uint16_t)WS_H_nop;
    if (before == WS_H_bar || before == WS_H_nanosleep)
        return true;
    return v != WS_JIT_WHOLE && ws_jit_waits(p, k) && h != WS_H_bar && h != WS_H_nanosleep;
}

/* The segment that begins at micro-op @k; that many: none does. */
static uint32_t segment_at(const struct ws_jit_plan *p, uint32_t k)
{
    uint32_t s = 0;
    while (s < p->img->n_segs && p->img->segs[s].first != &p->img->uops[k])
        s++;
    return s;
}

/* Into the segment that begins at micro-op @k if there is one to be entered, else to the micro-op
 * itself. */
static void emit_way_in(struct ws_jit_emit *e, uint32_t k)
{
    uint32_t s = segment_at(e->p, k);
    if (s == e->p->img->n_segs) {
        L.BuildBr(e->b, at(e, e->v, k));
        return;
    }
    llvm_value enter = ws_jit_field(e, e->i64, CTX(enter)), none = ws_jit_int(e, e->i64, 0);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_NE, enter, none, ""),
                  go(e, e->v, &e->p->img->segs[s]), at(e, e->v, k));
}

static void emit_entry(struct ws_jit_emit *e, llvm_value choose, uint32_t k, enum ws_jit_version v)
{
    const struct ws_jit_plan *p = e->p;
    llvm_block b = ws_jit_block(e);
    e->v = v;
    L.AddCase(choose, ws_jit_int(e, e->i32, ws_jit_entry(k, v)), b);
    ws_jit_begin(e, b);
    ws_jit_live_at(p, k, e->set);
    if (v == WS_JIT_MASKED)
        ws_jit_set_active(e, ws_jit_field(e, e->i32, CTX(active)));
    if (v == WS_JIT_NARROW) {
        ws_jit_put(e, ws_jit_field(e, e->i32, CTX(active)), e->active);
        begin_group(e);
    }
    if (v == WS_JIT_LONE) {
        ws_jit_set_active(e, ws_jit_field(e, e->i32, CTX(active)));
        begin_lane(e);
    }
    fetch(e, e->set);
    emit_way_in(e, k);
}

static void emit_entries(struct ws_jit_emit *e)
{
    const struct ws_jit_plan *p = e->p;
    llvm_block here = L.GetInsertBlock(e->b), none = ws_jit_block(e);
    ws_jit_begin(e, none);
    L.BuildUnreachable(e->b);
    ws_jit_begin(e, here);
    llvm_value choose =
        L.BuildSwitch(e->b, ws_jit_get(e, e->i32, e->entry), none, p->img->n_segs * 3);
    for (uint32_t k = 0; k < p->img->n_uops; k++)
        for (int v = 0; v < _WS_JIT_VERSIONS; v++)
            if (ws_jit_enters(p, k, v) && (v != WS_JIT_NARROW || e->has_narrow) &&
                (v != WS_JIT_LONE || e->has_lone))
                emit_entry(e, choose, k, v);
}

static void add_to(struct ws_jit_emit *e, llvm_value base, size_t offset, llvm_value v, llvm_type t)
{
    llvm_value to = ws_jit_plus(e, base, offset);
    ws_jit_store(e, L.BuildAdd(e->b, ws_jit_load(e, t, to, 4), v, ""), to, 4);
}

/* Adds the numbers of the tally from one on to those of the work. Only these are read and written:
 * a vector that reaches over what was just written by parts would wait for that. */
static void add_tally(struct ws_jit_emit *e, llvm_value work, unsigned from, unsigned n)
{
    llvm_value tally = ws_jit_get(e, L.VectorType(e->i32, TALLY), e->tally);
    llvm_type t = L.VectorType(e->i64, n);
    int64_t k[TALLY];
    for (unsigned i = 0; i < n; i++)
        k[i] = from + i;
    tally = L.BuildShuffleVector(e->b, tally, L.GetUndef(L.TypeOf(tally)),
                                 ws_jit_constants(e, e->i32, k, n), "");
    add_to(e, work, from * sizeof(uint64_t), L.BuildZExt(e->b, tally, t, ""), t);
}

/* Adds what was counted to @work. */
void ws_jit_add_counts(struct ws_jit_emit *e, llvm_value work)
{
    static const size_t counts[_WS_JIT_COUNTS] = {
#define AT(n, member) [n] = offsetof(struct ws_exec_work, member)
        AT(WS_JIT_SHARED_ACCESSES, n_shared_accesses),
        AT(WS_JIT_SHARED_LOADS, n_shared_loads),
        AT(WS_JIT_SHARED_TRANSACTIONS, n_shared_transactions),
        AT(WS_JIT_GLOBAL_LOADS, n_global_loads),
        AT(WS_JIT_GLOBAL_STORES, n_global_stores),
        AT(WS_JIT_LOAD_SECTORS, n_load_sectors),
        AT(WS_JIT_STORE_SECTORS, n_store_sectors),
        AT(WS_JIT_ATOMICS, n_atomics),
        AT(WS_JIT_ATOMIC_SECTORS, n_atomic_sectors),
#undef AT
    };
    add_tally(e, work, 0, 8);
    add_tally(e, work, 8, 4);
    add_tally(e, work, 12, 1);
    for (int k = 0; k < _WS_JIT_COUNTS; k++)
        if (e->counted[k])
            add_to(e, work, counts[k], ws_jit_get(e, e->i64, e->count[k]), e->i64);
}

void ws_jit_clear_counts(struct ws_jit_emit *e)
{
    ws_jit_put(e, L.ConstNull(L.VectorType(e->i32, TALLY)), e->tally);
    for (int k = 0; k < _WS_JIT_COUNTS; k++)
        ws_jit_put(e, ws_jit_int(e, e->i64, 0), e->count[k]);
}

/* The core was left: continues with what comes next, which may be another warp's. */
static void emit_next(struct ws_jit_emit *e, enum ws_jit_version v)
{
    ws_jit_begin(e, e->next[v]);
    sync_out(e);
    llvm_value args[] = {e->c, ws_jit_int(e, e->i64, v == WS_JIT_WHOLE)};
    llvm_value entry = ws_jit_call(e, (void (*)(void))ws_jit_next, args, 2);
    ws_jit_put(e, L.BuildTrunc(e->b, entry, e->i32, ""), e->entry);
    go_to_entry(e);
}

static void emit_leave(struct ws_jit_emit *e)
{
    ws_jit_begin(e, e->leave);
    ws_jit_add_counts(e, ws_jit_field(e, e->i64, CTX(work_before)));
    L.BuildRet(e->b, ws_jit_get(e, e->i32, e->entry));
}

/* ---- the function ---- */
static void emit_variables(struct ws_jit_emit *e)
{
    const struct ws_jit_plan *p = e->p;
    for (uint32_t r = 0; r < p->n_rows; r++) {
        llvm_type t = ws_jit_row_type(e, r);
        e->scalars[r] = L.BuildAlloca(e->b, t, "");
        if (p->rows[r].width)
            e->vectors[r] = L.BuildAlloca(e->b, L.VectorType(t, LANES), "");
    }
    e->regs = L.BuildAlloca(e->b, e->i64, "");
    e->entry = L.BuildAlloca(e->b, e->i32, "");
    e->active = L.BuildAlloca(e->b, e->i32, "");
    e->lanes = L.BuildAlloca(e->b, L.VectorType(e->i32, LANES), "");
    e->few_lanes = L.BuildAlloca(e->b, L.VectorType(e->i32, WS_JIT_GROUP), "");
    e->group = L.BuildAlloca(e->b, e->i32, "");
    e->lane = L.BuildAlloca(e->b, e->i64, "");
    e->budget = L.BuildAlloca(e->b, e->i64, "");
    e->limit = L.BuildAlloca(e->b, e->i64, "");
    e->places = L.BuildAlloca(e->b, L.VectorType(e->i64, LANES), "");
    L.SetAlignment(e->places, 64);
    e->patterns = L.BuildAlloca(e->b, e->i32, "");
    e->tally = L.BuildAlloca(e->b, L.VectorType(e->i32, TALLY), "");
    for (int k = 0; k < _WS_JIT_COUNTS; k++)
        e->count[k] = L.BuildAlloca(e->b, e->i64, "");
}

static void emit_prologue(struct ws_jit_emit *e)
{
    emit_variables(e);
    e->c = L.GetParam(e->fn, 0);
    ws_jit_put(e, L.GetParam(e->fn, 1), e->entry);
    ws_jit_put(e, ws_jit_field(e, e->i64, CTX(regs)), e->regs);
    ws_jit_clear_counts(e);
    ws_jit_fetch_fills(e, WS_JIT_GRIDS);
    ws_jit_fetch_fills(e, WS_JIT_BLOCKS);
}

/* Where a split of a warp is taken up. */
static void emit_dispatch(struct ws_jit_emit *e)
{
    ws_jit_begin(e, e->dispatch);
    ws_jit_put(e, ws_jit_field(e, e->i64, CTX(regs)), e->regs);
    ws_jit_put(e, ws_jit_field(e, e->i64, CTX(limit)), e->limit);
    sync_in(e);
    ws_jit_fetch_fills(e, WS_JIT_WARPS);
    emit_entries(e);
}

static int make_tables(struct ws_jit_emit *e)
{
    const struct ws_jit_plan *p = e->p;
    e->scalars = calloc(p->n_rows + (size_t)1, sizeof(*e->scalars));
    e->vectors = calloc(p->n_rows + (size_t)1, sizeof(*e->vectors));
    e->held = calloc(p->n_rows + (size_t)1, sizeof(*e->held));
    e->kept = calloc(p->n_rows + (size_t)1, sizeof(*e->kept));
    e->at = calloc(p->img->n_uops + (size_t)1, sizeof(*e->at));
    e->go = calloc(p->img->n_segs + (size_t)1, sizeof(*e->go));
    e->whole = calloc(p->img->n_segs + (size_t)1, sizeof(*e->whole));
    e->narrow = calloc(p->img->n_segs + (size_t)1, sizeof(*e->narrow));
    e->lone = calloc(p->img->n_segs + (size_t)1, sizeof(*e->lone));
    e->dirty = calloc(p->n_words + (size_t)1, sizeof(*e->dirty));
    e->set = calloc(p->n_words + (size_t)1, sizeof(*e->set));
    return e->scalars && e->vectors && e->held && e->kept && e->at && e->go && e->whole &&
                   e->narrow && e->lone && e->dirty && e->set
               ? 0
               : ws_raise(-ENOMEM);
}

int ws_jit_emit(struct ws_jit_emit *e, const struct ws_jit_plan *p)
{
    e->p = p;
    int r = make_tables(e);
    if (r == 0) {
        llvm_type params[] = {e->i64, e->i32};
        e->fn = L.AddFunction(e->mod, "run", L.FunctionType(e->i32, params, 2, 0));
        ws_jit_begin(e, ws_jit_block(e));
        emit_prologue(e);
        e->dispatch = ws_jit_block(e);
        e->leave = ws_jit_block(e);
        L.BuildBr(e->b, e->dispatch);
        for (int v = 0; v < _WS_JIT_VERSIONS; v++)
            e->next[v] = ws_jit_block(e);
        emit_dispatch(e);
        emit_segments(e);
        for (int v = 0; v < _WS_JIT_VERSIONS; v++)
            emit_next(e, v);
        emit_leave(e);
    }
    free(e->scalars);
    free(e->vectors);
    free(e->held);
    free(e->kept);
    free(e->at);
    free(e->go);
    free(e->whole);
    free(e->narrow);
    free(e->lone);
    free(e->dirty);
    free(e->set);
    return r;
}

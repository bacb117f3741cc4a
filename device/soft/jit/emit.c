// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/emit.c - segments, branches, entries and exits of the function.
 *
 * Rows are kept in variables that LLVM turns into registers. Where the function is entered, what is
 * live comes from the warp's register file; where it is left, what was written goes back. What has
 * no code here is done by the interpreter's handler: the rows that it reads are written to the
 * register file before, and those that it writes are read afterwards. */
#include "device/soft/jit/emit.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/soft/jit/shape.h"

#define L ws_llvm
enum { LANES = 32, TALLY = 16 /* lanes: cls, unit, thread instructions */ };
#define CTX(member) offsetof(struct ws_core_ctx, member)

/* ---- values ---- */
llvm_value ws_jit_int(struct ws_jit_emit *e, llvm_type t, uint64_t v)
{
    (void)e;
    return L.ConstInt(t, v, 1);
}

llvm_type ws_jit_int_type(struct ws_jit_emit *e, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return e->i8;
    case 2:
        return e->i16;
    case 8:
        return e->i64;
    default:
        return e->i32;
    }
}

llvm_type ws_jit_lanes(llvm_type t, unsigned n)
{
    return n == 1 ? t : L.VectorType(t, n);
}

llvm_value ws_jit_constants(struct ws_jit_emit *e, llvm_type t, const int64_t *v, unsigned n)
{
    llvm_value k[4 * LANES];
    (void)e;
    for (unsigned i = 0; i < n; i++)
        k[i] = L.ConstInt(t, (uint64_t)v[i], 1);
    return L.ConstVector(k, n);
}

llvm_value ws_jit_splat(struct ws_jit_emit *e, llvm_value scalar, unsigned n)
{
    llvm_type t = L.VectorType(L.TypeOf(scalar), n);
    llvm_value one =
        L.BuildInsertElement(e->b, L.GetUndef(t), scalar, ws_jit_int(e, e->i32, 0), "");
    return L.BuildShuffleVector(e->b, one, L.GetUndef(t), L.ConstNull(L.VectorType(e->i32, n)), "");
}

llvm_value ws_jit_load(struct ws_jit_emit *e, llvm_type t, llvm_value address, unsigned align)
{
    llvm_value v =
        L.BuildLoad2(e->b, t, L.BuildIntToPtr(e->b, address, L.PointerType(t, 0), ""), "");
    L.SetAlignment(v, align);
    return v;
}

void ws_jit_store(struct ws_jit_emit *e, llvm_value v, llvm_value address, unsigned align)
{
    llvm_type p = L.PointerType(L.TypeOf(v), 0);
    L.SetAlignment(L.BuildStore(e->b, v, L.BuildIntToPtr(e->b, address, p, "")), align);
}

static llvm_value plus(struct ws_jit_emit *e, llvm_value base, size_t offset)
{
    return L.BuildAdd(e->b, base, ws_jit_int(e, e->i64, offset), "");
}

llvm_value ws_jit_field(struct ws_jit_emit *e, llvm_type t, size_t offset)
{
    return ws_jit_load(e, t, plus(e, e->c, offset), 4);
}

static void set_field(struct ws_jit_emit *e, llvm_value v, size_t offset)
{
    ws_jit_store(e, v, plus(e, e->c, offset), 4);
}

llvm_block ws_jit_block(struct ws_jit_emit *e)
{
    return L.AppendBasicBlockInContext(e->cx, e->fn, "");
}

void ws_jit_begin(struct ws_jit_emit *e, llvm_block at)
{
    L.PositionBuilderAtEnd(e->b, at);
}

static llvm_value get(struct ws_jit_emit *e, llvm_type t, llvm_value variable)
{
    return L.BuildLoad2(e->b, t, variable, "");
}

static void put(struct ws_jit_emit *e, llvm_value v, llvm_value variable)
{
    L.BuildStore(e->b, v, variable);
}

static llvm_value address(struct ws_jit_emit *e, const void *p)
{
    return ws_jit_int(e, e->i64, (uint64_t)(uintptr_t)p);
}

llvm_value ws_jit_call(struct ws_jit_emit *e, void (*f)(void), llvm_value *args, unsigned n)
{
    llvm_type types[6];
    for (unsigned k = 0; k < n; k++)
        types[k] = e->i64;
    llvm_type t = L.FunctionType(e->i64, types, n, 0);
    llvm_value to =
        L.BuildIntToPtr(e->b, address(e, (const void *)(uintptr_t)f), L.PointerType(t, 0), "");
    return L.BuildCall2(e->b, t, to, args, n, "");
}

/* ---- rows ---- */
static const struct ws_jit_row *row_at(const struct ws_jit_emit *e, uint32_t row)
{
    return &e->p->rows[row];
}

bool ws_jit_is_scalar(const struct ws_jit_emit *e, uint32_t row)
{
    const struct ws_jit_row *r = row_at(e, row);
    return r->width && r->shape == WS_SHAPE_KNOWN && (e->v == WS_JIT_WHOLE || r->fill);
}

static llvm_type row_type(struct ws_jit_emit *e, uint32_t row)
{
    return ws_jit_int_type(e, row_at(e, row)->width);
}

llvm_value ws_jit_scalar(struct ws_jit_emit *e, uint32_t row)
{
    uint64_t k;
    if (ws_jit_const(e->p, row, &k))
        return ws_jit_int(e, row_type(e, row), k);
    return get(e, row_type(e, row), e->scalars[row]);
}

llvm_value ws_jit_word(struct ws_jit_emit *e, uint32_t row)
{
    uint64_t k;
    if (ws_jit_const(e->p, row, &k))
        return ws_jit_int(e, e->i32, k);
    return get(e, e->i32, e->scalars[row]);
}

llvm_value ws_jit_vector(struct ws_jit_emit *e, uint32_t row)
{
    const struct ws_jit_row *r = row_at(e, row);
    llvm_type t = row_type(e, row);
    if (!ws_jit_is_scalar(e, row))
        return get(e, L.VectorType(t, LANES), e->vectors[row]);
    llvm_value v = ws_jit_splat(e, ws_jit_scalar(e, row), LANES);
    return ws_jit_uniform(r) ? v : L.BuildAdd(e->b, v, ws_jit_constants(e, t, r->apart, LANES), "");
}

static llvm_value row_address(struct ws_jit_emit *e, uint32_t row)
{
    return plus(e, get(e, e->i64, e->regs), row_at(e, row)->off);
}

/* A word of which all lanes have the same bit: those that do not exist get it, too. */
static llvm_value spread_word(struct ws_jit_emit *e, llvm_value w)
{
    llvm_value bit = L.BuildAnd(e->b, w, ws_jit_int(e, e->i32, 1), "");
    return L.BuildSub(e->b, ws_jit_int(e, e->i32, 0), bit, "");
}

static llvm_value load_word(struct ws_jit_emit *e, uint32_t row)
{
    llvm_value w = ws_jit_load(e, e->i32, row_address(e, row), 64);
    bool spread = e->v == WS_JIT_WHOLE && e->p->full != ~0u && ws_jit_uniform(row_at(e, row));
    return spread ? spread_word(e, w) : w;
}

/* From the register file, and to it. */
static void fetch(struct ws_jit_emit *e, uint32_t row)
{
    if (row_at(e, row)->width == 0)
        put(e, load_word(e, row), e->scalars[row]);
    else if (ws_jit_is_scalar(e, row))
        put(e, ws_jit_load(e, row_type(e, row), row_address(e, row), 64), e->scalars[row]);
    else
        put(e, ws_jit_load(e, L.VectorType(row_type(e, row), LANES), row_address(e, row), 32),
            e->vectors[row]);
}

static void give(struct ws_jit_emit *e, uint32_t row)
{
    if (row_at(e, row)->fill)
        return;
    if (row_at(e, row)->width == 0)
        ws_jit_store(e, ws_jit_word(e, row), row_address(e, row), 64);
    else
        ws_jit_store(e, ws_jit_vector(e, row), row_address(e, row), 32);
}

/* ---- masks ---- */
static const struct ws_uop *uop(const struct ws_jit_emit *e)
{
    return &e->p->img->uops[e->k];
}

static llvm_value guard(struct ws_jit_emit *e)
{
    llvm_value g = ws_jit_word(e, ws_jit_row_of(e->p, uop(e)->guard));
    return uop(e)->gneg ? L.BuildNot(e->b, g, "") : g;
}

static llvm_value active(struct ws_jit_emit *e)
{
    return e->v == WS_JIT_WHOLE ? ws_jit_int(e, e->i32, e->p->full) : get(e, e->i32, e->active);
}

static llvm_value mask_of(struct ws_jit_emit *e)
{
    if (ws_jit_unguarded(e->p, uop(e)))
        return active(e);
    return L.BuildAnd(e->b, active(e), guard(e), "");
}

/* Which lanes are active. Without registers for masks it takes several instructions to make a
 * vector of a word, so that is done here and not for each operation. */
static void set_active(struct ws_jit_emit *e, llvm_value word)
{
    put(e, word, e->active);
    if (e->has_mask_registers)
        return;
    llvm_value bits = L.BuildBitCast(e->b, word, L.VectorType(e->i1, LANES), "");
    put(e, L.BuildSExt(e->b, bits, L.VectorType(e->i32, LANES), ""), e->lanes);
}

/* The lanes in which the micro-op takes effect, one bit each. */
static llvm_value lanes_of(struct ws_jit_emit *e)
{
    llvm_type t = L.VectorType(e->i32, LANES);
    if (e->v == WS_JIT_MASKED && !e->has_mask_registers && ws_jit_unguarded(e->p, uop(e)))
        return L.BuildICmp(e->b, LLVM_SLT, get(e, t, e->lanes), L.ConstNull(t), "");
    return L.BuildBitCast(e->b, mask_of(e), L.VectorType(e->i1, LANES), "");
}

void ws_jit_set(struct ws_jit_emit *e, uint32_t row, llvm_value v)
{
    bool plain = ws_jit_unguarded(e->p, uop(e));
    if (ws_jit_is_scalar(e, row)) {
        if (!plain) {
            llvm_value yes = L.BuildICmp(e->b, LLVM_NE, guard(e), ws_jit_int(e, e->i32, 0), "");
            v = L.BuildSelect(e->b, yes, v, ws_jit_scalar(e, row), "");
        }
        put(e, v, e->scalars[row]);
        return;
    }
    if (!(plain && (e->v == WS_JIT_WHOLE || uop(e)->all == ~0u)))
        v = L.BuildSelect(e->b, lanes_of(e), v, ws_jit_vector(e, row), "");
    put(e, v, e->vectors[row]);
}

void ws_jit_set_word(struct ws_jit_emit *e, uint32_t row, llvm_value v)
{
    if (!(ws_jit_unguarded(e->p, uop(e)) && e->v == WS_JIT_WHOLE)) {
        /* With all lanes, bits of lanes that do not exist are set as the others are. */
        llvm_value m = e->v == WS_JIT_WHOLE ? guard(e) : mask_of(e), old = ws_jit_word(e, row);
        v = L.BuildOr(e->b, L.BuildAnd(e->b, v, m, ""),
                      L.BuildAnd(e->b, old, L.BuildNot(e->b, m, ""), ""), "");
    }
    put(e, v, e->scalars[row]);
}

void ws_jit_bump(struct ws_jit_emit *e, enum ws_jit_count n, llvm_value by)
{
    put(e, L.BuildAdd(e->b, get(e, e->i64, e->count[n]), by, ""), e->count[n]);
}

/* ---- leaving ---- */
/* Writes back what was written and is live: in the masked version, for any lane that may stand
 * anywhere. */
static void give_back(struct ws_jit_emit *e, const uint64_t *live, const uint64_t *dirty)
{
    const uint64_t *keep = e->v == WS_JIT_WHOLE ? live : e->p->ever_live;
    for (uint32_t r = 0; r < e->p->n_rows; r++)
        if (ws_jit_has(keep, r) && ws_jit_has(dirty, r))
            give(e, r);
}

static void leave(struct ws_jit_emit *e, enum ws_stop why, const struct ws_uop *u,
                  const struct ws_seg *enter)
{
    set_field(e, ws_jit_int(e, e->i32, why), CTX(stop));
    set_field(e, address(e, u), CTX(u));
    set_field(e, address(e, enter), CTX(enter));
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

/* The rest is done in the masked version: all rows become vectors. */
static void to_vectors(struct ws_jit_emit *e)
{
    if (e->v == WS_JIT_MASKED)
        return;
    for (uint32_t r = 0; r < e->p->n_rows; r++)
        if (!row_at(e, r)->fill && ws_jit_is_scalar(e, r))
            put(e, ws_jit_vector(e, r), e->vectors[r]);
}

static void to_masked(struct ws_jit_emit *e, llvm_block to)
{
    to_vectors(e);
    set_active(e, ws_jit_field(e, e->i32, CTX(active)));
    put(e, ws_jit_field(e, e->i64, CTX(limit)), e->limit);
    L.BuildBr(e->b, to);
}

void ws_jit_unless(struct ws_jit_emit *e, llvm_value bad)
{
    llvm_block yes = ws_jit_block(e), no = ws_jit_block(e);
    L.BuildCondBr(e->b, bad, yes, no);
    ws_jit_begin(e, yes);
    to_masked(e, at(e, WS_JIT_MASKED, e->k));
    ws_jit_begin(e, no);
}

/* ---- handlers ---- */
static void sync_out(struct ws_jit_emit *e)
{
    set_field(e, get(e, e->i64, e->budget), CTX(budget));
    set_field(e, get(e, e->i32, e->patterns), CTX(n_patterns));
}

static void sync_in(struct ws_jit_emit *e)
{
    put(e, ws_jit_field(e, e->i64, CTX(budget)), e->budget);
    put(e, ws_jit_field(e, e->i32, CTX(n_patterns)), e->patterns);
}

void ws_jit_call_spending(struct ws_jit_emit *e, void (*f)(void), llvm_value *args, unsigned n)
{
    sync_out(e);
    ws_jit_call(e, f, args, n);
    sync_in(e);
}

/* Return: whether the handler gave a micro-op to go on with. */
static llvm_value call_handler(struct ws_jit_emit *e)
{
    const struct ws_jit_op *op = &e->p->ops[e->k];
    bool whole = e->v == WS_JIT_WHOLE && ws_jit_unguarded(e->p, uop(e));
    for (uint32_t n = 0; n < op->n_touches; n++)
        if (!op->touch[n].write || !whole)
            give(e, op->touch[n].row);
    sync_out(e);
    llvm_value args[] = {e->c, address(e, uop(e))};
    llvm_value r = ws_jit_call(e, (void (*)(void))ws_jit_handler, args, 2);
    sync_in(e);
    return L.BuildICmp(e->b, LLVM_NE, r, ws_jit_int(e, e->i64, 0), "");
}

void ws_jit_call_handler(struct ws_jit_emit *e)
{
    const struct ws_jit_op *op = &e->p->ops[e->k];
    llvm_block on = ws_jit_block(e), off = ws_jit_block(e);
    L.BuildCondBr(e->b, call_handler(e), on, off);
    ws_jit_begin(e, off);
    if (ws_jit_waits(e->p, e->k)) {
        ws_jit_live_at(e->p, e->k, e->set);
        give_back(e, e->set, e->dirty);
    }
    L.BuildBr(e->b, e->next[e->v]);
    ws_jit_begin(e, on);
    for (uint32_t n = 0; n < op->n_touches; n++)
        if (op->touch[n].write)
            fetch(e, op->touch[n].row);
    if (!ws_jit_waits(e->p, e->k))
        return;
    /* some of the lanes may have to wait */
    llvm_value now = ws_jit_field(e, e->i32, CTX(active));
    if (e->v == WS_JIT_MASKED) {
        set_active(e, now);
        put(e, ws_jit_field(e, e->i64, CTX(limit)), e->limit);
        return;
    }
    llvm_block all = ws_jit_block(e), some = ws_jit_block(e);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, now, active(e), ""), all, some);
    ws_jit_begin(e, some);
    to_masked(e, at(e, WS_JIT_MASKED, e->k + 1));
    ws_jit_begin(e, all);
}

/* ---- control ---- */
#define WARP(member)  offsetof(struct ws_warp, member)
#define SPLIT(member) offsetof(struct ws_split, member)

static llvm_value split_field(struct ws_jit_emit *e, llvm_value split, llvm_type t, size_t offset)
{
    return ws_jit_load(e, t, plus(e, split, offset), 1);
}

static void set_split_field(struct ws_jit_emit *e, llvm_value split, llvm_value v, size_t offset)
{
    ws_jit_store(e, v, plus(e, split, offset), 1);
}

/* As ws_exec_split(): without a call, rows stay in registers. There are some lanes. */
static void split(struct ws_jit_emit *e, llvm_value lanes, const struct ws_seg *seg)
{
    llvm_value w = ws_jit_field(e, e->i64, CTX(w)), depth = ws_jit_field(e, e->i32, CTX(depth));
    llvm_value n = ws_jit_load(e, e->i32, plus(e, w, WARP(n_splits)), 4);
    llvm_value at = L.BuildMul(e->b, L.BuildZExt(e->b, n, e->i64, ""),
                               ws_jit_int(e, e->i64, sizeof(struct ws_split)), "");
    at = L.BuildAdd(e->b, plus(e, w, WARP(splits)), at, "");
    llvm_value none = ws_jit_int(e, e->i64, 0);
    for (size_t k = 0; k < sizeof(struct ws_split); k += 8)
        set_split_field(e, at, none, k);
    set_split_field(e, at, address(e, seg->first), SPLIT(u));
    set_split_field(e, at, address(e, seg), SPLIT(enter));
    set_split_field(e, at, lanes, SPLIT(mask));
    set_split_field(e, at, depth, SPLIT(depth));
    set_split_field(e, at, ws_jit_load(e, e->i32, plus(e, w, WARP(stamp)), 4), SPLIT(last_run));
    ws_jit_store(e, L.BuildAdd(e->b, n, ws_jit_int(e, e->i32, 1), ""), plus(e, w, WARP(n_splits)),
                 4);
    llvm_value limit = ws_jit_field(e, e->i64, CTX(limit)), first = address(e, seg->first);
    llvm_value lower = L.BuildICmp(e->b, LLVM_ULT, first, limit, "");
    set_field(e, L.BuildSelect(e->b, lower, first, limit, ""), CTX(limit));
}

/* Goes to the whole version of the segment if all rows have the shapes that it counts on, else to
 * @other. */
static void try_whole(struct ws_jit_emit *e, uint32_t s, llvm_block other)
{
    const struct ws_jit_plan *p = e->p;
    llvm_value differ = ws_jit_int(e, e->i32, 0);
    llvm_block yes = ws_jit_block(e);
    for (uint32_t r = 0; r < p->n_rows; r++) {
        const struct ws_jit_row *row = row_at(e, r);
        if (!ws_jit_has(p->live[s], r) || row->fill || row->shape != WS_SHAPE_KNOWN)
            continue;
        if (row->width == 0) { /* none or all */
            llvm_value w = ws_jit_word(e, r), first = spread_word(e, w);
            w = L.BuildXor(e->b, w, first, "");
            differ = L.BuildOr(e->b, differ,
                               L.BuildAnd(e->b, w, ws_jit_int(e, e->i32, p->full), ""), "");
            if (p->full != ~0u)
                put(e, first, e->scalars[r]);
            continue;
        }
        llvm_value v = ws_jit_vector(e, r);
        llvm_value first = L.BuildExtractElement(e->b, v, ws_jit_int(e, e->i32, 0), "");
        llvm_value want = L.BuildAdd(e->b, ws_jit_splat(e, first, LANES),
                                     ws_jit_constants(e, row_type(e, r), row->apart, LANES), "");
        put(e, first, e->scalars[r]);
        v = L.BuildBitCast(e->b, L.BuildICmp(e->b, LLVM_NE, v, want, ""), e->i32, "");
        v = L.BuildAnd(e->b, v, ws_jit_int(e, e->i32, p->full), "");
        differ = L.BuildOr(e->b, differ, v, "");
    }
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, differ, ws_jit_int(e, e->i32, 0), ""), yes,
                  other);
    ws_jit_begin(e, yes);
    L.BuildBr(e->b, go(e, WS_JIT_WHOLE, &p->img->segs[s]));
}

/* The other lanes of the warp may stand where the segment begins: if they do, and are one split,
 * they come along. Goes to @in with them, and to @out if it is otherwise. */
static void meet(struct ws_jit_emit *e, uint32_t s, llvm_block in, llvm_block out)
{
    const struct ws_seg *seg = &e->p->img->segs[s];
    llvm_value w = ws_jit_field(e, e->i64, CTX(w)), at = plus(e, w, WARP(splits));
    llvm_value depth = ws_jit_field(e, e->i32, CTX(depth));
    const struct {
        llvm_value is, want;
    } all[] = {
        {ws_jit_load(e, e->i32, plus(e, w, WARP(n_splits)), 4), ws_jit_int(e, e->i32, 1)},
        {split_field(e, at, e->i64, SPLIT(u)), address(e, seg->first)},
        {split_field(e, at, e->i64, SPLIT(enter)), address(e, seg)},
        {split_field(e, at, e->i32, SPLIT(depth)), depth},
        {split_field(e, at, e->i8, SPLIT(state)), ws_jit_int(e, e->i8, WS_SPLIT_RUN)},
        {split_field(e, at, e->i8, SPLIT(granted)), ws_jit_int(e, e->i8, 0)},
    };
    llvm_value ok = NULL;
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        llvm_value same = L.BuildICmp(e->b, LLVM_EQ, all[k].is, all[k].want, "");
        ok = ok ? L.BuildAnd(e->b, ok, same, "") : same;
    }
    llvm_block met = ws_jit_block(e), whole = ws_jit_block(e);
    L.BuildCondBr(e->b, ok, met, out);
    ws_jit_begin(e, met);
    llvm_value lanes = L.BuildOr(e->b, active(e), split_field(e, at, e->i32, SPLIT(mask)), "");
    llvm_value no_limit = ws_jit_int(e, e->i64, ~UINT64_C(0));
    set_active(e, lanes);
    set_field(e, lanes, CTX(active));
    put(e, no_limit, e->limit);
    set_field(e, no_limit, CTX(limit));
    ws_jit_store(e, ws_jit_int(e, e->i32, 0), plus(e, w, WARP(n_splits)), 4);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, lanes, ws_jit_int(e, e->i32, e->p->full), ""),
                  whole, in);
    ws_jit_begin(e, whole);
    try_whole(e, s, in);
}

/* Lanes t go to one segment, the rest to another: the lower goes on. */
static void diverge(struct ws_jit_emit *e, llvm_value t)
{
    const struct ws_seg *to = uop(e)->to, *fall = uop(e)->fall;
    bool lower = to->first < fall->first;
    llvm_value rest = L.BuildAnd(e->b, active(e), L.BuildNot(e->b, t, ""), "");
    split(e, lower ? rest : t, lower ? fall : to);
    set_field(e, lower ? t : rest, CTX(active));
    to_masked(e, go(e, WS_JIT_MASKED, lower ? to : fall));
}

static void emit_bra(struct ws_jit_emit *e)
{
    const struct ws_uop *u = uop(e);
    if (u->to == u->fall || ws_jit_unguarded(e->p, u)) {
        L.BuildBr(e->b, go(e, e->v, u->to));
        return;
    }
    llvm_value t = mask_of(e), none = ws_jit_int(e, e->i32, 0);
    if (e->v == WS_JIT_WHOLE && ws_jit_uniform(row_at(e, ws_jit_row_of(e->p, u->guard)))) {
        L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_NE, t, none, ""), go(e, e->v, u->to),
                      go(e, e->v, u->fall));
        return;
    }
    llvm_block some = ws_jit_block(e), both = ws_jit_block(e);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, t, active(e), ""), go(e, e->v, u->to), some);
    ws_jit_begin(e, some);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, t, none, ""), go(e, e->v, u->fall), both);
    ws_jit_begin(e, both);
    diverge(e, t);
}

static void emit_exit(struct ws_jit_emit *e)
{
    const struct ws_uop *u = uop(e);
    bool all = ws_jit_unguarded(e->p, u);
    if (all) {
        llvm_value args[] = {e->c, L.BuildZExt(e->b, active(e), e->i64, "")};
        ws_jit_call(e, (void (*)(void))ws_exec_exit, args, 2);
        set_field(e, ws_jit_int(e, e->i32, 0), CTX(active));
        memset(e->set, 0, e->p->n_words * sizeof(*e->set));
        give_back(e, e->set, e->dirty);
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
    if (e->v == WS_JIT_MASKED) {
        set_active(e, ws_jit_field(e, e->i32, CTX(active)));
        L.BuildBr(e->b, at(e, e->v, next));
        return;
    }
    llvm_block some = ws_jit_block(e);
    llvm_value now = ws_jit_field(e, e->i32, CTX(active));
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_EQ, now, active(e), ""), at(e, e->v, next), some);
    ws_jit_begin(e, some);
    to_masked(e, at(e, WS_JIT_MASKED, next));
}

/* The core is left here, and entered again behind the micro-op. */
static void emit_stop(struct ws_jit_emit *e, enum ws_stop why, const struct ws_uop *u)
{
    ws_jit_live_at(e->p, e->k + 1, e->set);
    for (uint32_t n = 0; n < e->p->ops[e->k].n_touches; n++)
        ws_jit_add(e->set, e->p->ops[e->k].touch[n].row);
    give_back(e, e->set, e->dirty);
    leave(e, why, u, NULL);
    ws_jit_begin(e, at(e, e->v, e->k + 1));
}

static void emit_go(struct ws_jit_emit *e, uint32_t s)
{
    const struct ws_seg *seg = &e->p->img->segs[s];
    llvm_block in = ws_jit_block(e), out = ws_jit_block(e);
    llvm_value left = get(e, e->i64, e->budget);
    llvm_value stop = L.BuildICmp(e->b, LLVM_SLE, left, ws_jit_int(e, e->i64, 0), "");
    if (e->v == WS_JIT_MASKED) {
        llvm_block more = ws_jit_block(e), others = ws_jit_block(e);
        L.BuildCondBr(e->b, stop, out, more);
        ws_jit_begin(e, more);
        llvm_value limit = get(e, e->i64, e->limit);
        L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_UGE, address(e, seg->first), limit, ""), others,
                      in);
        ws_jit_begin(e, others);
        meet(e, s, in, out);
    } else {
        L.BuildCondBr(e->b, stop, out, in);
    }
    ws_jit_begin(e, out);
    give_back(e, e->p->live[s], e->p->dirty[s]);
    leave(e, WS_STOP_RESCHED, seg->first, seg);
    ws_jit_begin(e, in);
    put(e, L.BuildSub(e->b, left, ws_jit_int(e, e->i64, seg->n_insns), ""), e->budget);
    int64_t once[TALLY] = {0}, each[TALLY] = {0};
    int64_t lanes = e->v == WS_JIT_WHOLE ? e->p->lanes : 1;
    for (int k = 0; k < 8; k++)
        once[k] = seg->cls[k];
    int64_t *by = e->v == WS_JIT_WHOLE ? once : each;
    for (int k = 0; k < 4; k++)
        by[8 + k] = seg->unit[k] * lanes;
    by[12] = seg->n_insns * lanes;
    llvm_type t = L.VectorType(e->i32, TALLY);
    llvm_value sum =
        L.BuildAdd(e->b, get(e, t, e->tally), ws_jit_constants(e, e->i32, once, TALLY), "");
    llvm_value now; /* lives as long as what is made of it */
    if (e->v == WS_JIT_MASKED) {
        llvm_value count = L.GetNamedFunction(e->mod, "llvm.ctpop.i32");
        llvm_type ft = L.FunctionType(e->i32, &e->i32, 1, 0);
        now = active(e);
        if (!count)
            count = L.AddFunction(e->mod, "llvm.ctpop.i32", ft);
        llvm_value n = ws_jit_splat(e, L.BuildCall2(e->b, ft, count, &now, 1, ""), TALLY);
        sum = L.BuildAdd(e->b, sum,
                         L.BuildMul(e->b, n, ws_jit_constants(e, e->i32, each, TALLY), ""), "");
    }
    put(e, sum, e->tally);
    L.BuildBr(e->b, at(e, e->v, (uint32_t)(seg->first - e->p->img->uops)));
}

/* ---- segments ---- */
static void emit_one(struct ws_jit_emit *e)
{
    switch (e->p->ops[e->k].h) {
    case WS_H_bra:
        emit_bra(e);
        break;
    case WS_H_goto_:
        L.BuildBr(e->b, go(e, e->v, uop(e)->to));
        break;
    case WS_H_exit_:
        emit_exit(e);
        break;
    case WS_H_bar:
        emit_stop(e, WS_STOP_BAR, uop(e));
        break;
    case WS_H_nanosleep:
        emit_stop(e, WS_STOP_YIELD, uop(e) + 1);
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
    for (e->k = first; e->k < end; e->k++) {
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

static void emit_version(struct ws_jit_emit *e, enum ws_jit_version v)
{
    bool more = true;
    e->v = v;
    while (more) {
        more = false;
        for (uint32_t s = 0; s < e->p->img->n_segs; s++)
            more |= emit_missing(e, s);
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
    return v == WS_JIT_MASKED && ws_jit_waits(p, k) && h != WS_H_bar && h != WS_H_nanosleep;
}

/* Into the segment that begins at micro-op @k if there is one to be entered, else to the micro-op
 * itself. */
static void emit_way_in(struct ws_jit_emit *e, uint32_t k)
{
    const struct ws_exec_image *img = e->p->img;
    uint32_t s = 0;
    while (s < img->n_segs && img->segs[s].first != &img->uops[k])
        s++;
    if (s == img->n_segs) {
        L.BuildBr(e->b, at(e, e->v, k));
        return;
    }
    llvm_value enter = ws_jit_field(e, e->i64, CTX(enter)), none = ws_jit_int(e, e->i64, 0);
    L.BuildCondBr(e->b, L.BuildICmp(e->b, LLVM_NE, enter, none, ""), go(e, e->v, &img->segs[s]),
                  at(e, e->v, k));
}

static void emit_entry(struct ws_jit_emit *e, llvm_value choose, uint32_t k, enum ws_jit_version v)
{
    const struct ws_jit_plan *p = e->p;
    llvm_block b = ws_jit_block(e);
    e->v = v;
    L.AddCase(choose, ws_jit_int(e, e->i32, ws_jit_entry(k, v)), b);
    ws_jit_begin(e, b);
    ws_jit_live_at(p, k, e->set);
    const uint64_t *need = v == WS_JIT_WHOLE ? e->set : p->ever_live;
    if (v == WS_JIT_MASKED)
        set_active(e, ws_jit_field(e, e->i32, CTX(active)));
    for (uint32_t r = 0; r < p->n_rows; r++)
        if (ws_jit_has(need, r) && !p->rows[r].fill)
            fetch(e, r);
    emit_way_in(e, k);
}

static void emit_entries(struct ws_jit_emit *e)
{
    const struct ws_jit_plan *p = e->p;
    llvm_block here = L.GetInsertBlock(e->b), none = ws_jit_block(e);
    ws_jit_begin(e, none);
    L.BuildUnreachable(e->b);
    ws_jit_begin(e, here);
    llvm_value choose = L.BuildSwitch(e->b, get(e, e->i32, e->entry), none, p->img->n_segs * 2);
    for (uint32_t k = 0; k < p->img->n_uops; k++)
        for (int v = 0; v < _WS_JIT_VERSIONS; v++)
            if (ws_jit_enters(p, k, v))
                emit_entry(e, choose, k, v);
}

static void add_to(struct ws_jit_emit *e, llvm_value base, size_t offset, llvm_value v, llvm_type t)
{
    llvm_value to = plus(e, base, offset);
    ws_jit_store(e, L.BuildAdd(e->b, ws_jit_load(e, t, to, 4), v, ""), to, 4);
}

static llvm_value some_of(struct ws_jit_emit *e, llvm_value v, unsigned from, unsigned n)
{
    int64_t k[LANES];
    for (unsigned i = 0; i < n; i++)
        k[i] = from + i;
    return L.BuildShuffleVector(e->b, v, L.GetUndef(L.VectorType(e->i32, TALLY)),
                                ws_jit_constants(e, e->i32, k, n), "");
}

/* The core was left: continues with what comes next, which may be another warp's. */
static void emit_next(struct ws_jit_emit *e, enum ws_jit_version v, llvm_block dispatch,
                      llvm_block flush)
{
    ws_jit_begin(e, e->next[v]);
    sync_out(e);
    llvm_value args[] = {e->c, ws_jit_int(e, e->i64, v == WS_JIT_WHOLE)};
    llvm_value entry = ws_jit_call(e, (void (*)(void))ws_jit_next, args, 2);
    entry = L.BuildTrunc(e->b, entry, e->i32, "");
    put(e, entry, e->entry);
    llvm_value back = L.BuildICmp(e->b, LLVM_SLE, entry, ws_jit_int(e, e->i32, 0), "");
    L.BuildCondBr(e->b, back, flush, dispatch);
}

static void emit_flush(struct ws_jit_emit *e, llvm_block flush)
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
#undef AT
    };
    ws_jit_begin(e, flush);
    llvm_value tally = get(e, L.VectorType(e->i32, TALLY), e->tally);
    add_to(e, e->c, CTX(cls), some_of(e, tally, 0, 8), L.VectorType(e->i32, 8));
    add_to(e, e->c, CTX(unit), some_of(e, tally, 8, 4), L.VectorType(e->i32, 4));
    llvm_value n = L.BuildExtractElement(e->b, tally, ws_jit_int(e, e->i32, 12), "");
    add_to(e, e->c, CTX(n_thread_insns), L.BuildZExt(e->b, n, e->i64, ""), e->i64);
    llvm_value work = ws_jit_field(e, e->i64, CTX(work));
    for (int k = 0; k < _WS_JIT_COUNTS; k++)
        add_to(e, work, counts[k], get(e, e->i64, e->count[k]), e->i64);
    L.BuildRet(e->b, get(e, e->i32, e->entry));
}

/* ---- the function ---- */
static void emit_variables(struct ws_jit_emit *e)
{
    const struct ws_jit_plan *p = e->p;
    for (uint32_t r = 0; r < p->n_rows; r++) {
        llvm_type t = row_type(e, r);
        e->scalars[r] = L.BuildAlloca(e->b, t, "");
        if (p->rows[r].width)
            e->vectors[r] = L.BuildAlloca(e->b, L.VectorType(t, LANES), "");
    }
    e->regs = L.BuildAlloca(e->b, e->i64, "");
    e->entry = L.BuildAlloca(e->b, e->i32, "");
    e->active = L.BuildAlloca(e->b, e->i32, "");
    e->lanes = L.BuildAlloca(e->b, L.VectorType(e->i32, LANES), "");
    e->budget = L.BuildAlloca(e->b, e->i64, "");
    e->limit = L.BuildAlloca(e->b, e->i64, "");
    e->patterns = L.BuildAlloca(e->b, e->i32, "");
    e->tally = L.BuildAlloca(e->b, L.VectorType(e->i32, TALLY), "");
    for (int k = 0; k < _WS_JIT_COUNTS; k++)
        e->count[k] = L.BuildAlloca(e->b, e->i64, "");
}

/* Whether the warps of a block have their own. */
static bool is_warps_own(const struct ws_fill *f)
{
    return f->kind == WS_FILL_SREG && (f->sreg == WS_SR_TID || f->sreg == WS_SR_WARPID);
}

static void fetch_fills(struct ws_jit_emit *e, bool warps_own)
{
    const struct ws_jit_plan *p = e->p;
    e->v = WS_JIT_MASKED; /* fills are the same in both versions */
    for (uint32_t r = 0; r < p->n_rows; r++) {
        const struct ws_fill *f = p->rows[r].fill;
        if (f && f->kind != WS_FILL_CONST && is_warps_own(f) == warps_own)
            fetch(e, r);
    }
}

static void emit_prologue(struct ws_jit_emit *e)
{
    emit_variables(e);
    e->c = L.GetParam(e->fn, 0);
    put(e, L.GetParam(e->fn, 1), e->entry);
    put(e, ws_jit_field(e, e->i64, CTX(regs)), e->regs);
    put(e, L.ConstNull(L.VectorType(e->i32, TALLY)), e->tally);
    for (int k = 0; k < _WS_JIT_COUNTS; k++)
        put(e, ws_jit_int(e, e->i64, 0), e->count[k]);
    fetch_fills(e, false);
}

/* Where a split of a warp is taken up. */
static void emit_dispatch(struct ws_jit_emit *e, llvm_block dispatch)
{
    ws_jit_begin(e, dispatch);
    put(e, ws_jit_field(e, e->i64, CTX(regs)), e->regs);
    put(e, ws_jit_field(e, e->i64, CTX(limit)), e->limit);
    sync_in(e);
    fetch_fills(e, true);
    emit_entries(e);
}

static int make_tables(struct ws_jit_emit *e)
{
    const struct ws_jit_plan *p = e->p;
    e->scalars = calloc(p->n_rows + (size_t)1, sizeof(*e->scalars));
    e->vectors = calloc(p->n_rows + (size_t)1, sizeof(*e->vectors));
    e->at = calloc(p->img->n_uops + (size_t)1, sizeof(*e->at));
    e->go = calloc(p->img->n_segs + (size_t)1, sizeof(*e->go));
    e->dirty = calloc(p->n_words + (size_t)1, sizeof(*e->dirty));
    e->set = calloc(p->n_words + (size_t)1, sizeof(*e->set));
    return e->scalars && e->vectors && e->at && e->go && e->dirty && e->set ? 0 : ws_raise(-ENOMEM);
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
        llvm_block dispatch = ws_jit_block(e), flush = ws_jit_block(e);
        L.BuildBr(e->b, dispatch);
        for (int v = 0; v < _WS_JIT_VERSIONS; v++)
            e->next[v] = ws_jit_block(e);
        emit_dispatch(e, dispatch);
        emit_version(e, WS_JIT_WHOLE);
        emit_version(e, WS_JIT_MASKED);
        emit_version(e, WS_JIT_WHOLE); /* segments that only the masked one goes to */
        for (int v = 0; v < _WS_JIT_VERSIONS; v++)
            emit_next(e, v, dispatch, flush);
        emit_flush(e, flush);
    }
    free(e->scalars);
    free(e->vectors);
    free(e->at);
    free(e->go);
    free(e->dirty);
    free(e->set);
    return r;
}

// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/rows.c - values, and where those of rows are kept.
 *
 * In the whole version rows are kept in variables that LLVM turns into registers. In the others
 * they stay in the register file: no processor has registers for all lanes of many rows,
 * lanes part and meet often, and LLVM would take long to find places for them. There a value that
 * was read or written is known until the block of LLVM ends, and what nobody reads behind that is
 * not stored. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "device/soft/jit/emit.h"
#include "device/soft/jit/link.h"
#include "device/soft/jit/shape.h"

#define L ws_llvm
enum { LANES = 32 };
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

llvm_value ws_jit_store(struct ws_jit_emit *e, llvm_value v, llvm_value address, unsigned align)
{
    llvm_type p = L.PointerType(L.TypeOf(v), 0);
    llvm_value store = L.BuildStore(e->b, v, L.BuildIntToPtr(e->b, address, p, ""));
    L.SetAlignment(store, align);
    return store;
}

llvm_value ws_jit_plus(struct ws_jit_emit *e, llvm_value base, size_t offset)
{
    return L.BuildAdd(e->b, base, ws_jit_int(e, e->i64, offset), "");
}

llvm_value ws_jit_field(struct ws_jit_emit *e, llvm_type t, size_t offset)
{
    return ws_jit_load(e, t, ws_jit_plus(e, e->c, offset), 4);
}

void ws_jit_set_field(struct ws_jit_emit *e, llvm_value v, size_t offset)
{
    ws_jit_store(e, v, ws_jit_plus(e, e->c, offset), 4);
}

llvm_block ws_jit_block(struct ws_jit_emit *e)
{
    return L.AppendBasicBlockInContext(e->cx, e->fn, "");
}

void ws_jit_begin(struct ws_jit_emit *e, llvm_block at)
{
    L.PositionBuilderAtEnd(e->b, at);
}

llvm_value ws_jit_get(struct ws_jit_emit *e, llvm_type t, llvm_value variable)
{
    return L.BuildLoad2(e->b, t, variable, "");
}

void ws_jit_put(struct ws_jit_emit *e, llvm_value v, llvm_value variable)
{
    L.BuildStore(e->b, v, variable);
}

/* A place whose address is another one in each process. */
static llvm_value named(struct ws_jit_emit *e, char kind, size_t number)
{
    char name[24];
    snprintf(name, sizeof(name), "%c%zu", kind, number);
    llvm_value v = L.GetNamedGlobal(e->mod, name);
    return L.ConstPtrToInt(v ? v : L.AddGlobal(e->mod, e->i8, name), e->i64);
}

llvm_value ws_jit_address_of_uop(struct ws_jit_emit *e, const struct ws_uop *u)
{
    return named(e, 'u', (size_t)(u - e->p->img->uops));
}

llvm_value ws_jit_address_of_seg(struct ws_jit_emit *e, const struct ws_seg *seg)
{
    return seg ? named(e, 's', (size_t)(seg - e->p->img->segs)) : ws_jit_int(e, e->i64, 0);
}

llvm_value ws_jit_call(struct ws_jit_emit *e, void (*f)(void), llvm_value *args, unsigned n)
{
    llvm_type types[6];
    for (unsigned k = 0; k < n; k++)
        types[k] = e->i64;
    llvm_type t = L.FunctionType(e->i64, types, n, 0);
    const char *name = ws_jit_name_of(e->isa, f);
    assert(name);
    memset(e->kept, 0, e->p->n_rows * sizeof(*e->kept)); /* what is called may read all rows */
    llvm_value to = L.GetNamedFunction(e->mod, name);
    return L.BuildCall2(e->b, t, to ? to : L.AddFunction(e->mod, name, t), args, n, "");
}

unsigned ws_jit_n_lanes(const struct ws_jit_emit *e)
{
    return e->v == WS_JIT_NARROW ? WS_JIT_GROUP : e->v == WS_JIT_LONE ? 1 : LANES;
}

llvm_value ws_jit_bits(struct ws_jit_emit *e, llvm_value word)
{
    if (e->v == WS_JIT_NARROW)
        word = L.BuildTrunc(e->b, L.BuildLShr(e->b, word, ws_jit_get(e, e->i32, e->group), ""),
                            e->i8, "");
    return L.BuildBitCast(e->b, word, L.VectorType(e->i1, ws_jit_n_lanes(e)), "");
}

llvm_value ws_jit_lowest_of(struct ws_jit_emit *e, llvm_value word)
{
    llvm_type types[] = {e->i32, e->i1}, t = L.FunctionType(e->i32, types, 2, 0);
    llvm_value f = L.GetNamedFunction(e->mod, "llvm.cttz.i32");
    llvm_value args[] = {word, ws_jit_int(e, e->i1, 0)};
    if (!f)
        f = L.AddFunction(e->mod, "llvm.cttz.i32", t);
    return L.BuildCall2(e->b, t, f, args, 2, "");
}

llvm_value ws_jit_group_of(struct ws_jit_emit *e, llvm_value word)
{
    return L.BuildAnd(e->b, ws_jit_lowest_of(e, word), ws_jit_int(e, e->i32, LANES - WS_JIT_GROUP),
                      "");
}

/* ---- rows ---- */
const struct ws_jit_row *ws_jit_row_at(const struct ws_jit_emit *e, uint32_t row)
{
    return &e->p->rows[row];
}

bool ws_jit_is_scalar(const struct ws_jit_emit *e, uint32_t row)
{
    const struct ws_jit_row *r = ws_jit_row_at(e, row);
    if (e->v == WS_JIT_LONE)
        return r->width != 0;
    return r->width && r->shape == WS_SHAPE_KNOWN && (e->v == WS_JIT_WHOLE || r->fill);
}

llvm_type ws_jit_row_type(struct ws_jit_emit *e, uint32_t row)
{
    return ws_jit_int_type(e, ws_jit_row_at(e, row)->width);
}

static llvm_value row_address(struct ws_jit_emit *e, uint32_t row)
{
    const struct ws_jit_row *r = ws_jit_row_at(e, row);
    llvm_value at = ws_jit_plus(e, ws_jit_get(e, e->i64, e->regs), r->off), lane;
    if ((e->v != WS_JIT_NARROW && e->v != WS_JIT_LONE) || r->width == 0)
        return at;
    lane = e->v == WS_JIT_LONE ? ws_jit_get(e, e->i64, e->lane)
                               : L.BuildZExt(e->b, ws_jit_get(e, e->i32, e->group), e->i64, "");
    return L.BuildAdd(e->b, at, L.BuildMul(e->b, lane, ws_jit_int(e, e->i64, r->width), ""), "");
}

/* Whether the lone version reads it in the register file: the others have it of lane 0, or of all
 * lanes. */
static bool is_lanes_own(const struct ws_jit_row *r)
{
    return r->fill && !ws_jit_uniform(r);
}

static llvm_value load_lane(struct ws_jit_emit *e, uint32_t row)
{
    return ws_jit_load(e, ws_jit_row_type(e, row), row_address(e, row),
                       ws_jit_row_at(e, row)->width);
}

llvm_value ws_jit_scalar(struct ws_jit_emit *e, uint32_t row)
{
    uint64_t k;
    if (ws_jit_const(e->p, row, &k))
        return ws_jit_int(e, ws_jit_row_type(e, row), k);
    if (e->v == WS_JIT_LONE && is_lanes_own(ws_jit_row_at(e, row)))
        return load_lane(e, row);
    return ws_jit_get(e, ws_jit_row_type(e, row), e->scalars[row]);
}

/* In the lone version: a word in which all lanes have the bit that its lane has. */
static llvm_value lane_word(struct ws_jit_emit *e, llvm_value w)
{
    llvm_value lane = L.BuildTrunc(e->b, ws_jit_get(e, e->i64, e->lane), e->i32, "");
    return ws_jit_spread_word(e, L.BuildLShr(e->b, w, lane, ""));
}

/* The row's type in the register file: of a word, or of the lanes of this version. */
static llvm_type kept_type(struct ws_jit_emit *e, uint32_t row)
{
    llvm_type t = ws_jit_row_type(e, row);
    return ws_jit_row_at(e, row)->width ? L.VectorType(t, ws_jit_n_lanes(e)) : t;
}

static unsigned alignment(const struct ws_jit_emit *e, uint32_t row)
{
    unsigned width = ws_jit_row_at(e, row)->width;
    return width ? WS_MIN(width * WS_JIT_GROUP, 32u) : 4;
}

/* Whether the row stays in the register file. */
static bool stays(const struct ws_jit_emit *e, uint32_t row)
{
    return e->v == WS_JIT_NARROW || (e->v == WS_JIT_MASKED && !ws_jit_row_at(e, row)->fill);
}

static void hold(struct ws_jit_emit *e, uint32_t row, llvm_value v)
{
    llvm_block here = L.GetInsertBlock(e->b);
    if (e->held_in != here) {
        memset(e->held, 0, e->p->n_rows * sizeof(*e->held));
        memset(e->kept, 0, e->p->n_rows * sizeof(*e->kept));
    }
    e->held_in = here;
    e->held[row] = v;
}

/* Nobody will read what was stored to the row, unless that was needed already. */
static void unstore(struct ws_jit_emit *e, uint32_t row)
{
    if (e->held_in == L.GetInsertBlock(e->b) && e->kept[row])
        L.InstructionEraseFromParent(e->kept[row]);
    e->kept[row] = NULL;
}

void ws_jit_forget_rows(struct ws_jit_emit *e, const uint64_t *live)
{
    for (uint32_t r = 0; r < e->p->n_rows; r++)
        if (!ws_jit_has(live, r))
            unstore(e, r);
}

/* The value of a row that stays in the register file. */
llvm_value ws_jit_read_row(struct ws_jit_emit *e, uint32_t row)
{
    if (e->held_in == L.GetInsertBlock(e->b) && e->held[row])
        return e->held[row];
    llvm_value v = ws_jit_load(e, kept_type(e, row), row_address(e, row), alignment(e, row));
    hold(e, row, v);
    return v;
}

static void write_row(struct ws_jit_emit *e, uint32_t row, llvm_value v)
{
    unstore(e, row);
    llvm_value store = ws_jit_store(e, v, row_address(e, row), alignment(e, row));
    hold(e, row, v);
    e->kept[row] = store;
}

llvm_value ws_jit_word(struct ws_jit_emit *e, uint32_t row)
{
    uint64_t k;
    if (ws_jit_const(e->p, row, &k) && e->v != WS_JIT_LONE)
        return ws_jit_int(e, e->i32, k);
    if (ws_jit_const(e->p, row, &k))
        return k == 0 || (uint32_t)k == ~0u ? ws_jit_int(e, e->i32, k)
                                            : lane_word(e, ws_jit_int(e, e->i32, k));
    if (e->v == WS_JIT_LONE && ws_jit_row_at(e, row)->fill)
        return lane_word(e, ws_jit_get(e, e->i32, e->scalars[row]));
    return stays(e, row) ? ws_jit_read_row(e, row) : ws_jit_get(e, e->i32, e->scalars[row]);
}

llvm_value ws_jit_vector(struct ws_jit_emit *e, uint32_t row)
{
    const struct ws_jit_row *r = ws_jit_row_at(e, row);
    llvm_type t = ws_jit_row_type(e, row);
    uint64_t k;
    if (stays(e, row) && ws_jit_const(e->p, row, &k))
        return ws_jit_splat(e, ws_jit_int(e, t, k), ws_jit_n_lanes(e));
    if (stays(e, row) && !(r->fill && ws_jit_uniform(r)))
        return ws_jit_read_row(e, row);
    if (!ws_jit_is_scalar(e, row))
        return ws_jit_get(e, L.VectorType(t, LANES), e->vectors[row]);
    llvm_value v = ws_jit_splat(e, ws_jit_scalar(e, row), ws_jit_n_lanes(e));
    return ws_jit_uniform(r) ? v : L.BuildAdd(e->b, v, ws_jit_constants(e, t, r->apart, LANES), "");
}

/* A word of which all lanes have the same bit: those that do not exist get it, too. */
llvm_value ws_jit_spread_word(struct ws_jit_emit *e, llvm_value w)
{
    llvm_value bit = L.BuildAnd(e->b, w, ws_jit_int(e, e->i32, 1), "");
    return L.BuildSub(e->b, ws_jit_int(e, e->i32, 0), bit, "");
}

static llvm_value load_word(struct ws_jit_emit *e, uint32_t row)
{
    llvm_value w = ws_jit_load(e, e->i32, row_address(e, row), 64);
    if (e->v == WS_JIT_LONE)
        return lane_word(e, w);
    bool spread =
        e->v == WS_JIT_WHOLE && e->p->full != ~0u && ws_jit_uniform(ws_jit_row_at(e, row));
    return spread ? ws_jit_spread_word(e, w) : w;
}

/* From the register file, and to it. */
void ws_jit_fetch(struct ws_jit_emit *e, uint32_t row)
{
    if (stays(e, row))
        return;
    if (ws_jit_row_at(e, row)->width == 0)
        ws_jit_put(e, load_word(e, row), e->scalars[row]);
    else if (e->v == WS_JIT_LONE)
        ws_jit_put(e, load_lane(e, row), e->scalars[row]);
    else if (ws_jit_is_scalar(e, row))
        ws_jit_put(e, ws_jit_load(e, ws_jit_row_type(e, row), row_address(e, row), 64),
                   e->scalars[row]);
    else
        ws_jit_put(
            e,
            ws_jit_load(e, L.VectorType(ws_jit_row_type(e, row), LANES), row_address(e, row), 32),
            e->vectors[row]);
}

/* Of a whole warp that has fewer than 32 lanes, these, so that LLVM leaves out the others. */
static llvm_value those_that_exist(struct ws_jit_emit *e, llvm_value v)
{
    int64_t lanes[LANES];
    if (e->v != WS_JIT_WHOLE || !e->p->lanes || e->p->lanes == LANES)
        return v;
    for (unsigned i = 0; i < e->p->lanes; i++)
        lanes[i] = i;
    return L.BuildShuffleVector(e->b, v, v, ws_jit_constants(e, e->i32, lanes, e->p->lanes), "");
}

/* What the lone lane has, to the register file. */
static void give_lane(struct ws_jit_emit *e, uint32_t row)
{
    llvm_value at = row_address(e, row), lane;
    unsigned width = ws_jit_row_at(e, row)->width;
    if (width) {
        ws_jit_store(e, ws_jit_scalar(e, row), at, width);
        return;
    }
    lane = L.BuildTrunc(e->b, ws_jit_get(e, e->i64, e->lane), e->i32, "");
    lane = L.BuildShl(e->b, ws_jit_int(e, e->i32, 1), lane, "");
    llvm_value old =
        L.BuildAnd(e->b, ws_jit_load(e, e->i32, at, 64), L.BuildNot(e->b, lane, ""), "");
    llvm_value own = L.BuildAnd(e->b, ws_jit_word(e, row), lane, "");
    ws_jit_store(e, L.BuildOr(e->b, old, own, ""), at, 64);
}

void ws_jit_give(struct ws_jit_emit *e, uint32_t row)
{
    const struct ws_fill *f = ws_jit_row_at(e, row)->fill;
    if (f && ws_exec_is_blocks_own(f)) /* nobody has written it there */
        ws_jit_store(e, ws_jit_splat(e, ws_jit_scalar(e, row), LANES),
                     ws_jit_plus(e, ws_jit_get(e, e->i64, e->regs), f->off), 32);
    if (f || stays(e, row))
        return;
    if (e->v == WS_JIT_LONE)
        give_lane(e, row);
    else if (ws_jit_row_at(e, row)->width == 0)
        ws_jit_store(e, ws_jit_word(e, row), row_address(e, row), 64);
    else
        ws_jit_store(e, those_that_exist(e, ws_jit_vector(e, row)), row_address(e, row), 32);
}

static enum ws_jit_whose whose_is(const struct ws_fill *f)
{
    bool is_warps = f->kind == WS_FILL_SREG && (f->sreg == WS_SR_TID || f->sreg == WS_SR_WARPID);
    return is_warps ? WS_JIT_WARPS : ws_exec_is_blocks_own(f) ? WS_JIT_BLOCKS : WS_JIT_GRIDS;
}

llvm_value ws_jit_filled(struct ws_jit_emit *e, const struct ws_fill *f, llvm_value v)
{
    llvm_type t = ws_jit_int_type(e, f->width);
    return f->width == 4  ? v
           : f->width < 4 ? L.BuildTrunc(e->b, v, t, "")
                          : L.BuildZExt(e->b, v, t, "");
}

/* What the row of the block is. */
static llvm_value look_up(struct ws_jit_emit *e, const struct ws_fill *f)
{
    uint32_t n = 0;
    for (const struct ws_fill *other = e->p->img->fills; other < f; other++)
        n += ws_exec_is_blocks_own(other);
    llvm_value at =
        ws_jit_plus(e, ws_jit_field(e, e->i64, CTX(b)), offsetof(struct ws_blockrun, filled));
    at = ws_jit_plus(e, ws_jit_load(e, e->i64, at, 8), n * sizeof(uint32_t));
    return ws_jit_filled(e, f, ws_jit_load(e, e->i32, at, 4));
}

void ws_jit_fetch_fills(struct ws_jit_emit *e, enum ws_jit_whose whose)
{
    const struct ws_jit_plan *p = e->p;
    enum ws_jit_version before = e->v;
    e->v = WS_JIT_MASKED; /* it has fills as the whole version has them */
    for (uint32_t r = 0; r < p->n_rows; r++) {
        const struct ws_fill *f = p->rows[r].fill;
        if (!f || f->kind == WS_FILL_CONST || whose_is(f) != whose)
            continue;
        if (whose == WS_JIT_BLOCKS)
            ws_jit_put(e, look_up(e, f), e->scalars[r]);
        else
            ws_jit_fetch(e, r);
    }
    e->v = before;
}

/* ---- masks ---- */
const struct ws_uop *ws_jit_uop(const struct ws_jit_emit *e)
{
    return &e->p->img->uops[e->k];
}

static llvm_value guard(struct ws_jit_emit *e)
{
    llvm_value g = ws_jit_word(e, ws_jit_row_of(e->p, ws_jit_uop(e)->guard));
    return ws_jit_uop(e)->gneg ? L.BuildNot(e->b, g, "") : g;
}

llvm_value ws_jit_active(struct ws_jit_emit *e)
{
    return e->v == WS_JIT_WHOLE ? ws_jit_int(e, e->i32, e->p->full)
                                : ws_jit_get(e, e->i32, e->active);
}

llvm_value ws_jit_mask(struct ws_jit_emit *e)
{
    if (ws_jit_unguarded(e->p, ws_jit_uop(e)))
        return ws_jit_active(e);
    return L.BuildAnd(e->b, ws_jit_active(e), guard(e), "");
}

/* Which lanes are active. Without registers for masks it takes several instructions to make a
 * vector of a word, so that is done here and not for each operation. */
void ws_jit_set_active(struct ws_jit_emit *e, llvm_value word)
{
    ws_jit_put(e, word, e->active);
    if (e->has_mask_registers || e->v == WS_JIT_LONE)
        return;
    llvm_type t = L.VectorType(e->i32, ws_jit_n_lanes(e));
    ws_jit_put(e, L.BuildSExt(e->b, ws_jit_bits(e, word), t, ""),
               e->v == WS_JIT_NARROW ? e->few_lanes : e->lanes);
}

/* The lanes in which the micro-op takes effect, one bit each. */
static llvm_value lanes_of(struct ws_jit_emit *e)
{
    llvm_type t = L.VectorType(e->i32, ws_jit_n_lanes(e));
    llvm_value kept = e->v == WS_JIT_NARROW ? e->few_lanes : e->lanes;
    if (e->v != WS_JIT_WHOLE && !e->has_mask_registers && ws_jit_unguarded(e->p, ws_jit_uop(e)))
        return L.BuildICmp(e->b, LLVM_SLT, ws_jit_get(e, t, kept), L.ConstNull(t), "");
    return ws_jit_bits(e, ws_jit_mask(e));
}

void ws_jit_set(struct ws_jit_emit *e, uint32_t row, llvm_value v)
{
    bool plain = ws_jit_unguarded(e->p, ws_jit_uop(e));
    if (ws_jit_is_scalar(e, row)) {
        if (!plain) {
            llvm_value yes = L.BuildICmp(e->b, LLVM_NE, guard(e), ws_jit_int(e, e->i32, 0), "");
            v = L.BuildSelect(e->b, yes, v, ws_jit_scalar(e, row), "");
        }
        ws_jit_put(e, v, e->scalars[row]);
        return;
    }
    if (!(plain && (e->v == WS_JIT_WHOLE || ws_jit_uop(e)->all == ~0u)))
        v = L.BuildSelect(e->b, lanes_of(e), v, ws_jit_vector(e, row), "");
    if (stays(e, row))
        write_row(e, row, v);
    else
        ws_jit_put(e, v, e->vectors[row]);
}

void ws_jit_set_word(struct ws_jit_emit *e, uint32_t row, llvm_value v)
{
    /* With all lanes, bits of lanes that do not exist are set as the others are. */
    bool all = e->v == WS_JIT_WHOLE || e->v == WS_JIT_LONE;
    if (!(ws_jit_unguarded(e->p, ws_jit_uop(e)) && all)) {
        llvm_value m = all ? guard(e) : ws_jit_mask(e), old = ws_jit_word(e, row);
        v = L.BuildOr(e->b, L.BuildAnd(e->b, v, m, ""),
                      L.BuildAnd(e->b, old, L.BuildNot(e->b, m, ""), ""), "");
    }
    if (stays(e, row))
        write_row(e, row, v);
    else
        ws_jit_put(e, v, e->scalars[row]);
}

void ws_jit_bump(struct ws_jit_emit *e, enum ws_jit_count n, llvm_value by)
{
    e->counted[n] = true;
    ws_jit_put(e, L.BuildAdd(e->b, ws_jit_get(e, e->i64, e->count[n]), by, ""), e->count[n]);
}

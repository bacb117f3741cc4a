// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/atoms.c - atomics of a whole warp.
 *
 * What all lanes do to one place is put together and done once. On several places each lane does
 * its own, one after the other: in the block's shared memory without locking it, which no other
 * thread of the host touches. Of minima and maxima in global memory most leave the places as they
 * are, so it is looked which do not. */
#include <stddef.h>

#include "device/soft/decode/priv.h"
#include "device/soft/exec/reuse.h"
#include "device/soft/jit/mem.h"
#include "device/soft/jit/shape.h"

#define L ws_llvm
enum { LANES = 32, SEQ_CST = 7, SECTOR_BITS = 5 };
#define CTX(member) offsetof(struct ws_core_ctx, member)

/* ---- all lanes on one place ---- */
static const struct ws_jit_atomic *find_atomic(uint32_t op, uint32_t type)
{
    static const struct ws_jit_atomic add = {LLVM_RMW_ADD, 0, 0},
                                      and = {LLVM_RMW_AND, 0, UINT64_MAX}, or = {LLVM_RMW_OR, 0, 0},
                                      min = {LLVM_RMW_UMIN, LLVM_ULT, UINT64_MAX},
                                      max = {LLVM_RMW_UMAX, LLVM_UGT, 0},
                                      min_32 = {LLVM_RMW_MIN, LLVM_SLT, INT32_MAX},
                                      max_32 = {LLVM_RMW_MAX, LLVM_SGT, UINT32_C(1) << 31},
                                      min_64 = {LLVM_RMW_MIN, LLVM_SLT, INT64_MAX},
                                      max_64 = {LLVM_RMW_MAX, LLVM_SGT, UINT64_C(1) << 63};
    bool s32 = type == WS_T_S32, s64 = type == WS_T_S64;
    if (!s32 && !s64 && type != WS_T_U32 && type != WS_T_U64 && type != WS_T_B32 &&
        type != WS_T_B64)
        return NULL;
    switch (op) {
    case WS_SUB_ADD:
        return &add;
    case WS_SUB_AND:
        return &and;
    case WS_SUB_OR:
        return & or ;
    case WS_SUB_MIN:
        return s32 ? &min_32 : s64 ? &min_64 : &min;
    case WS_SUB_MAX:
        return s32 ? &max_32 : s64 ? &max_64 : &max;
    default:
        return NULL;
    }
}

static llvm_value join_two(struct ws_jit_access *a, llvm_value x, llvm_value y)
{
    switch (a->atomic->rmw) {
    case LLVM_RMW_ADD:
        return L.BuildAdd(a->b, x, y, "");
    case LLVM_RMW_AND:
        return L.BuildAnd(a->b, x, y, "");
    case LLVM_RMW_OR:
        return L.BuildOr(a->b, x, y, "");
    default:
        return L.BuildSelect(a->b, L.BuildICmp(a->b, a->atomic->how, x, y, ""), x, y, "");
    }
}

/* What all lanes do together. */
static llvm_value join_all(struct ws_jit_access *a, llvm_value v)
{
    for (unsigned n = a->lanes / 2; n; n /= 2) {
        int64_t low[LANES], high[LANES];
        for (unsigned i = 0; i < n; i++) {
            low[i] = i;
            high[i] = n + i;
        }
        v = join_two(
            a, L.BuildShuffleVector(a->b, v, v, ws_jit_constants(a->e, a->e->i32, low, n), ""),
            L.BuildShuffleVector(a->b, v, v, ws_jit_constants(a->e, a->e->i32, high, n), ""));
    }
    return L.BuildExtractElement(a->b, v, ws_jit_int(a->e, a->e->i32, 0), "");
}

/* Of each lane: what those before it do together. */
static llvm_value join_before(struct ws_jit_access *a, llvm_value v)
{
    llvm_value none = ws_jit_int(a->e, ws_jit_int_type(a->e, a->bytes), a->atomic->id);
    none = ws_jit_splat(a->e, none, LANES);
    for (unsigned n = 0; n < LANES; n += WS_MAX(n, 1)) { /* first by one lane, then 1, 2, 4… */
        int64_t from[LANES];
        unsigned by = WS_MAX(n, 1);
        for (unsigned i = 0; i < LANES; i++)
            from[i] = i < by ? LANES : i - by;
        llvm_value x =
            L.BuildShuffleVector(a->b, v, none, ws_jit_constants(a->e, a->e->i32, from, LANES), "");
        v = n ? join_two(a, v, x) : x;
    }
    return v;
}

void ws_jit_perform_atomic(struct ws_jit_access *a, llvm_value host)
{
    llvm_type t = ws_jit_int_type(a->e, a->bytes);
    llvm_value v = ws_jit_vector(a->e, a->data);
    llvm_value at = L.BuildIntToPtr(a->b, host, L.PointerType(t, 0), "");
    llvm_value old = L.BuildAtomicRMW(a->b, a->atomic->rmw, at, join_all(a, v), SEQ_CST, 0);
    if (a->u->d < 0)
        return;
    v = join_two(a, ws_jit_splat(a->e, old, LANES), join_before(a, v));
    ws_jit_set(a->e, ws_jit_row_of(a->e->p, (uint32_t)a->u->d), v);
}

static void add_place(struct ws_jit_access *a, llvm_value address)
{
    llvm_value work = ws_jit_field(a->e, a->e->i64, CTX(work));
    llvm_value to = ws_jit_plus(a->e, work, offsetof(struct ws_exec_work, atomic_places));
    llvm_value bit = L.BuildMul(a->b, L.BuildLShr(a->b, address, ws_jit_i64(a, 9), ""),
                                ws_jit_i64(a, ws_reuse_hash(1)), "");
    bit = L.BuildShl(a->b, ws_jit_i64(a, 1), L.BuildAnd(a->b, bit, ws_jit_i64(a, 63), ""), "");
    ws_jit_store(a->e, L.BuildOr(a->b, ws_jit_load(a->e, a->e->i64, to, 8), bit, ""), to, 8);
}

/* As count_atomic() of ../exec/atom.inc. */
void ws_jit_count_atomic(struct ws_jit_access *a, llvm_value address)
{
    ws_jit_bump(a->e, WS_JIT_ATOMICS, ws_jit_i64(a, 1));
    if (a->shared)
        return;
    ws_jit_bump(a->e, WS_JIT_ATOMIC_SECTORS, ws_jit_i64(a, 1));
    add_place(a, address);
}

bool ws_jit_is_atomic(struct ws_jit_access *a, uint16_t h)
{
    uint32_t space = a->u->x & WS_X_SPACE_MASK, row = ws_jit_row_of(a->e->p, (uint32_t)a->u->a);
    if (h != WS_H_atom_32 && h != WS_H_atom_64)
        return false;
    a->bytes = h == WS_H_atom_32 ? 4 : 8;
    a->store = true;
    a->shared = space == WS_SP_SHARED;
    a->atomic = find_atomic(a->u->mx & 0xff, a->u->mx >> 8);
    a->one_place = ws_jit_is_scalar(a->e, row) && ws_jit_uniform(&a->e->p->rows[row]);
    return a->atomic && (a->u->x & WS_X_A32 ? a->shared : space == WS_SP_GLOBAL);
}

/* ---- several places ---- */
static llvm_value lane_of(struct ws_jit_access *a, llvm_value v, unsigned i)
{
    return L.BuildExtractElement(a->b, v, ws_jit_int(a->e, a->e->i32, i), "");
}

static void set_old(struct ws_jit_access *a, llvm_value old)
{
    if (a->u->d >= 0)
        ws_jit_set(a->e, ws_jit_row_of(a->e->p, (uint32_t)a->u->d), old);
}

/* Addresses: the row and what is added to it. */
static llvm_value places_of(struct ws_jit_access *a, llvm_type t)
{
    llvm_value by = ws_jit_int(a->e, t, (uint64_t)a->u->imm);
    return L.BuildAdd(a->b, ws_jit_vector(a->e, a->address), ws_jit_splat(a->e, by, LANES), "");
}

/* As count_atomic() of ../exec/atom.inc: by the first and the last lane's place. */
static void count_places(struct ws_jit_access *a, llvm_value va)
{
    llvm_value first = lane_of(a, va, 0), last = lane_of(a, va, LANES - 1);
    llvm_value up = L.BuildSub(a->b, last, first, ""), down = L.BuildSub(a->b, first, last, "");
    llvm_value n = L.BuildSelect(a->b, L.BuildICmp(a->b, LLVM_UGT, last, first, ""), up, down, "");
    n = L.BuildLShr(a->b, n, ws_jit_i64(a, SECTOR_BITS), "");
    llvm_value few = L.BuildICmp(a->b, LLVM_ULT, n, ws_jit_i64(a, LANES), "");
    n = L.BuildAdd(a->b, n, ws_jit_i64(a, 1), "");
    ws_jit_bump(a->e, WS_JIT_ATOMICS, ws_jit_i64(a, 1));
    ws_jit_bump(a->e, WS_JIT_ATOMIC_SECTORS, L.BuildSelect(a->b, few, n, ws_jit_i64(a, LANES), ""));
    add_place(a, first);
    add_place(a, last);
    ws_jit_count_places(a, va);
}

/* Lets a function do those that change something. */
static void improve(struct ws_jit_access *a, llvm_value host)
{
    struct ws_jit_emit *e = a->e;
    llvm_type t = ws_jit_int_type(e, a->bytes);
    llvm_value old = L.GetUndef(L.VectorType(t, LANES)), v = ws_jit_vector(e, a->data);
    for (unsigned i = 0; i < LANES; i++)
        old = L.BuildInsertElement(a->b, old, ws_jit_load(e, t, lane_of(a, host, i), a->bytes),
                                   ws_jit_int(e, e->i32, i), "");
    llvm_value better = L.BuildICmp(a->b, a->atomic->how, v, old, "");
    better = L.BuildBitCast(a->b, better, e->i32, "");
    llvm_block some = ws_jit_block(e), none = ws_jit_block(e);
    L.BuildCondBr(a->b, L.BuildICmp(a->b, LLVM_NE, better, ws_jit_int(e, e->i32, 0), ""), some,
                  none);
    ws_jit_begin(e, some);
    llvm_value places = L.BuildPtrToInt(a->b, e->places, e->i64, "");
    llvm_value values = ws_jit_plus(e, ws_jit_get(e, e->i64, e->regs), (uint32_t)a->u->b);
    ws_jit_give(e, a->data);
    ws_jit_store(e, host, places, 64);
    bool is_signed = a->atomic->how == LLVM_SLT || a->atomic->how == LLVM_SGT;
    bool most = a->atomic->how == LLVM_UGT || a->atomic->how == LLVM_SGT;
    llvm_value args[] = {places, values, L.BuildZExt(a->b, better, e->i64, ""),
                         ws_jit_i64(a, a->bytes | (unsigned)is_signed << 8 | (unsigned)most << 9)};
    ws_jit_call(e, (void (*)(void))ws_jit_improve, args, 4);
    L.BuildBr(a->b, none);
    ws_jit_begin(e, none);
}

static void lock_each(struct ws_jit_access *a, llvm_value host)
{
    struct ws_jit_emit *e = a->e;
    llvm_type t = ws_jit_int_type(e, a->bytes), p = L.PointerType(t, 0);
    llvm_value old = L.GetUndef(L.VectorType(t, LANES)), v = ws_jit_vector(e, a->data);
    for (unsigned i = 0; i < LANES; i++) {
        llvm_value at = L.BuildIntToPtr(a->b, lane_of(a, host, i), p, "");
        llvm_value was = L.BuildAtomicRMW(a->b, a->atomic->rmw, at, lane_of(a, v, i), SEQ_CST, 0);
        old = L.BuildInsertElement(a->b, old, was, ws_jit_int(e, e->i32, i), "");
    }
    set_old(a, old);
}

/* All lanes on one place are done at once by the handler. */
static bool emit_in_global(struct ws_jit_access *a)
{
    struct ws_jit_emit *e = a->e;
    llvm_value bias, va = places_of(a, e->i64), ok = ws_jit_check_lanes(a, va, &bias);
    llvm_value same = L.BuildICmp(a->b, LLVM_EQ, va, ws_jit_splat(e, lane_of(a, va, 0), LANES), "");
    same = L.BuildBitCast(a->b, same, e->i32, "");
    same = L.BuildICmp(a->b, LLVM_NE, same, ws_jit_int(e, e->i32, UINT32_MAX), "");
    llvm_block fast = ws_jit_block(e), other = ws_jit_block(e), join = ws_jit_block(e);
    L.BuildCondBr(a->b, L.BuildAnd(a->b, ok, same, ""), fast, other);
    ws_jit_slow(a, other, join);
    ws_jit_begin(e, fast);
    llvm_value host = L.BuildAdd(a->b, va, ws_jit_splat(e, bias, LANES), "");
    if (a->atomic->how)
        improve(a, host);
    else
        lock_each(a, host);
    count_places(a, va);
    L.BuildBr(a->b, join);
    ws_jit_begin(e, join);
    return true;
}

static void perform_each(struct ws_jit_access *a, llvm_value off)
{
    struct ws_jit_emit *e = a->e;
    llvm_type t = ws_jit_int_type(e, a->bytes);
    llvm_value old = L.GetUndef(L.VectorType(t, LANES)), v = ws_jit_vector(e, a->data);
    llvm_value shared = ws_jit_field(e, e->i64, CTX(shared));
    for (unsigned i = 0; i < LANES; i++) {
        llvm_value at = L.BuildZExt(a->b, lane_of(a, off, i), e->i64, ""), was;
        at = L.BuildAdd(a->b, shared, at, "");
        was = ws_jit_load(e, t, at, a->bytes);
        ws_jit_store(e, join_two(a, lane_of(a, v, i), was), at, a->bytes);
        old = L.BuildInsertElement(a->b, old, was, ws_jit_int(e, e->i32, i), "");
    }
    set_old(a, old);
}

static bool emit_in_shared(struct ws_jit_access *a)
{
    struct ws_jit_emit *e = a->e;
    llvm_value off = places_of(a, e->i32), size = ws_jit_field(e, e->i64, CTX(shared_bytes));
    llvm_value room = L.BuildSub(a->b, size, ws_jit_i64(a, a->bytes), "");
    llvm_value fits = L.BuildICmp(a->b, LLVM_ULT, room, ws_jit_i64(a, INT32_MAX), "");
    llvm_value ok = ws_jit_lanes_fit(a, off, off, L.BuildTrunc(a->b, room, e->i32, ""));
    llvm_block fast = ws_jit_block(e), other = ws_jit_block(e), join = ws_jit_block(e);
    L.BuildCondBr(a->b, L.BuildAnd(a->b, fits, ok, ""), fast, other);
    ws_jit_slow(a, other, join);
    ws_jit_begin(e, fast);
    perform_each(a, off);
    ws_jit_bump(e, WS_JIT_ATOMICS, ws_jit_i64(a, 1));
    if (!(a->u->x & WS_X_NOCOUNT)) {
        llvm_value places = L.BuildPtrToInt(a->b, e->places, e->i64, "");
        ws_jit_bump(e, WS_JIT_SHARED_ACCESSES, ws_jit_i64(a, 1));
        ws_jit_store(e, off, places, 64);
        llvm_value args[] = {e->c, places, ws_jit_i64(a, a->bytes)};
        ws_jit_call_spending(e, (void (*)(void))e->isa->count_banks, args, 3);
    }
    L.BuildBr(a->b, join);
    ws_jit_begin(e, join);
    return true;
}

/* Whether anything reads what was at the places: compilers give results to atomics of which nobody
 * wants one. */
static bool is_old_wanted(const struct ws_jit_access *a)
{
    const struct ws_jit_emit *e = a->e;
    if (a->u->d < 0)
        return false;
    ws_jit_live_at(e->p, e->k + 1, e->set);
    return ws_jit_has(e->set, ws_jit_row_of(e->p, (uint32_t)a->u->d));
}

/* What x86 does not do in one instruction, or with a result, is left to the handler. */
bool ws_jit_emit_places(struct ws_jit_access *a)
{
    if (a->lanes < LANES)
        return false;
    if (a->shared)
        return emit_in_shared(a);
    return (!is_old_wanted(a) || a->atomic->rmw == LLVM_RMW_ADD) && emit_in_global(a);
}

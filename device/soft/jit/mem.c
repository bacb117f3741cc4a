// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/mem.c - loads and stores of a whole warp or of one lane alone, and atomics of all
 * lanes on one place.
 *
 * An address of known shape is checked once for all lanes, and the access made by whole
 * vectors. An address of global memory that has none is compared with consecutive ones at run time.
 * All else (an address outside of the mapping that was used last, misaligned, read-only, or
 * anything that is to be a fault) goes to the interpreter's handler, which says what it is. What is
 * counted is what the handlers count (../exec/mem.inc). */
#include "device/soft/decode/priv.h"
#include "device/soft/exec/reuse.h"
#include "device/soft/jit/mem.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/jit/shape.h"

#define L ws_llvm
enum {
    LANES = 32,
    SHARED_ALL = 256, /* as in mem.inc */
    SHARED_EVERY = 7,
    SECTOR_BYTES = 32,
    LINE_BYTES = 128,
};
#define CTX(member) offsetof(struct ws_core_ctx, member)

/* ---- which access it is ---- */
/* One of those that are rare in themselves, but for volatile ones. */
static bool is_general_access(struct ws_jit_access *a, uint16_t h)
{
    uint32_t x = a->u->x, space = x & WS_X_SPACE_MASK;
    a->bytes = x >> WS_X_SIZE_SHIFT & 15;
    a->store = h == WS_H_st_x;
    a->general = true;
    a->shared = space == WS_SP_SHARED;
    a->local = space == WS_SP_LOCAL && !(x & WS_X_STRONG);
    return (h == WS_H_ld_x || h == WS_H_st_x) && (x >> WS_X_VEC_SHIFT & 7) == 1 &&
           (a->bytes == 1 || a->bytes == 2 || a->bytes == 4 || a->bytes == 8) &&
           !(x & (WS_X_ACQUIRE | WS_X_RELEASE | WS_X_SC)) &&
           (a->local || (x & WS_X_A32 ? a->shared : space == WS_SP_GLOBAL));
}

static bool is_access(struct ws_jit_access *a, uint16_t h)
{
    switch (h) {
#define X(n)                                                                                       \
    case WS_H_ld_g_##n:                                                                            \
    case WS_H_st_g_##n:                                                                            \
    case WS_H_ld_s_##n:                                                                            \
    case WS_H_st_s_##n:                                                                            \
        a->bytes = n / 8;                                                                          \
        a->store = h == WS_H_st_g_##n || h == WS_H_st_s_##n;                                       \
        a->shared = h == WS_H_ld_s_##n || h == WS_H_st_s_##n;                                      \
        return true;
        X(8)
        X(16)
        X(32)
        X(64)
#undef X
    default:
        return is_general_access(a, h);
    }
}

static bool group_fits(const struct ws_jit_access *a, unsigned from, unsigned n, int64_t step)
{
    for (unsigned i = 1; i < n; i++)
        if (a->apart[from + i] - a->apart[from] != (int64_t)i * step)
            return false;
    return true;
}

static unsigned find_group(const struct ws_jit_access *a)
{
    for (unsigned n = a->lanes; n >= 4; n /= 2) {
        bool fits = true;
        for (unsigned from = 0; from < a->lanes; from += n)
            fits &= group_fits(a, from, n, a->bytes) || (!a->store && group_fits(a, from, n, 0));
        if (fits)
            return n;
    }
    return 0;
}

static void set_shape(struct ws_jit_access *a, const int64_t *apart)
{
    memcpy(a->apart, apart, sizeof(a->apart));
    a->low = a->high = 0;
    a->even = true;
    for (unsigned i = 0; i < a->lanes; i++) {
        a->low = WS_MIN(a->low, apart[i]);
        a->high = WS_MAX(a->high, apart[i]);
        a->even &= apart[i] % a->bytes == 0;
    }
    a->group = a->even ? find_group(a) : 0;
}

/* Of an address of known shape; a lone lane's is as if all lanes had it, which is how the handlers
 * count such an access. */
static void known_shape(struct ws_jit_access *a)
{
    static const int64_t same[LANES];
    set_shape(a, a->e->v == WS_JIT_LONE ? same : a->e->p->rows[a->address].apart);
}

static void consecutive(struct ws_jit_access *a)
{
    int64_t apart[LANES];
    for (unsigned i = 0; i < LANES; i++)
        apart[i] = (int64_t)(i * a->bytes);
    set_shape(a, apart);
}

/* ---- the access itself ---- */
static llvm_value concatenate(struct ws_jit_access *a, llvm_value *part, unsigned n, unsigned lanes)
{
    for (; n > 1; n /= 2, lanes *= 2)
        for (unsigned k = 0; k < n / 2; k++) {
            int64_t all[2 * LANES];
            for (unsigned i = 0; i < 2 * lanes; i++)
                all[i] = i;
            part[k] = L.BuildShuffleVector(a->b, part[2 * k], part[2 * k + 1],
                                           ws_jit_constants(a->e, a->e->i32, all, 2 * lanes), "");
        }
    return part[0];
}

/* Of the lanes that do not exist it does not matter what they get, but it must be something. */
static llvm_value all_lanes(struct ws_jit_access *a, llvm_value v)
{
    int64_t lanes[LANES];
    if (!a->lanes || a->lanes == LANES)
        return v;
    for (unsigned i = 0; i < LANES; i++)
        lanes[i] = i % a->lanes;
    return L.BuildShuffleVector(a->b, v, v, ws_jit_constants(a->e, a->e->i32, lanes, LANES), "");
}

/* Lane by lane. */
static llvm_value load_each(struct ws_jit_access *a, llvm_value host)
{
    llvm_type t = ws_jit_int_type(a->e, a->bytes);
    llvm_value v = L.GetUndef(L.VectorType(t, LANES));
    for (unsigned i = 0; i < a->lanes; i++) {
        llvm_value at = L.BuildAdd(a->b, host, ws_jit_i64(a, (uint64_t)a->apart[i]), "");
        v = L.BuildInsertElement(a->b, v, ws_jit_load(a->e, t, at, a->bytes),
                                 ws_jit_int(a->e, a->e->i32, i), "");
    }
    return all_lanes(a, v);
}

static void store_each(struct ws_jit_access *a, llvm_value host)
{
    llvm_value v = ws_jit_vector(a->e, a->data);
    for (unsigned i = 0; i < a->lanes; i++) {
        llvm_value lane = L.BuildExtractElement(a->b, v, ws_jit_int(a->e, a->e->i32, i), "");
        ws_jit_store(a->e, lane, L.BuildAdd(a->b, host, ws_jit_i64(a, (uint64_t)a->apart[i]), ""),
                     a->bytes);
    }
}

static llvm_value load(struct ws_jit_access *a, llvm_value host)
{
    llvm_type t = ws_jit_int_type(a->e, a->bytes);
    llvm_value part[LANES];
    unsigned n = a->lanes / a->group;
    assert(n > 0);
    for (unsigned k = 0; k < n; k++) {
        unsigned from = k * a->group;
        llvm_value at = L.BuildAdd(a->b, host, ws_jit_i64(a, (uint64_t)a->apart[from]), "");
        if (group_fits(a, from, a->group, a->bytes))
            part[k] = ws_jit_load(a->e, L.VectorType(t, a->group), at, a->bytes);
        else
            part[k] = ws_jit_splat(a->e, ws_jit_load(a->e, t, at, a->bytes), a->group);
    }
    return all_lanes(a, concatenate(a, part, n, a->group));
}

static void store(struct ws_jit_access *a, llvm_value host)
{
    llvm_value v = ws_jit_vector(a->e, a->data);
    for (unsigned from = 0; from < a->lanes; from += a->group) {
        int64_t lanes[LANES];
        for (unsigned i = 0; i < a->group; i++)
            lanes[i] = from + i;
        llvm_value part =
            L.BuildShuffleVector(a->b, v, L.GetUndef(L.TypeOf(v)),
                                 ws_jit_constants(a->e, a->e->i32, lanes, a->group), "");
        ws_jit_store(a->e, part,
                     L.BuildAdd(a->b, host, ws_jit_i64(a, (uint64_t)a->apart[from]), ""), a->bytes);
    }
}

/* ---- the access, by its kind ---- */
static void perform(struct ws_jit_access *a, llvm_value host)
{
    if (a->atomic) {
        ws_jit_perform_atomic(a, host);
        return;
    }
    if (!a->store && a->u->x & WS_X_STRONG) {
        llvm_value args[] = {a->e->c, host};
        ws_jit_call_spending(a->e, (void (*)(void))ws_jit_look, args, 2);
    }
    if (a->store && a->e->v == WS_JIT_LONE) {
        ws_jit_store(a->e, ws_jit_scalar(a->e, a->data), host, a->bytes);
    } else if (a->store && a->group) {
        store(a, host);
    } else if (a->store) {
        store_each(a, host);
    } else if (ws_jit_is_scalar(a->e, a->data)) {
        llvm_type t = ws_jit_int_type(a->e, a->bytes);
        ws_jit_set(a->e, a->data, ws_jit_load(a->e, t, host, a->bytes));
    } else {
        ws_jit_set(a->e, a->data, a->group ? load(a, host) : load_each(a, host));
    }
}

void ws_jit_slow(struct ws_jit_access *a, llvm_block at, llvm_block join)
{
    ws_jit_begin(a->e, at);
    ws_jit_call_handler(a->e);
    L.BuildBr(a->b, join);
}

/* ---- shared memory ---- */
/* As count_transactions() in exec/mem.inc, for which lanes that the block does not have repeat
 * another one's address. */
static unsigned transactions(const struct ws_jit_access *a)
{
    unsigned group = a->bytes <= 4 ? LANES : 128 / a->bytes, words = (a->bytes + 3) / 4, sum = 0;
    for (unsigned from = 0; from < LANES; from += group) {
        int64_t seen[LANES * 2];
        unsigned n = 0, most = 0, in_bank[32] = {0};
        for (unsigned i = from; i < from + group; i++)
            for (unsigned w = 0; w < words; w++) {
                int64_t word = a->apart[i < a->lanes ? i : 0] / 4 + w - a->low / 4;
                unsigned at = 0;
                while (at < n && seen[at] != word)
                    at++;
                if (at < n)
                    continue;
                seen[n++] = word;
                in_bank[word % 32]++;
                most = WS_MAX(most, in_bank[word % 32]);
            }
        sum += most;
    }
    return sum;
}

/* Patterns other than consecutive ones are counted as count_shared() does: of many, one in
 * SHARED_EVERY stands for the others. */
static void count_pattern(struct ws_jit_access *a)
{
    struct ws_jit_emit *e = a->e;
    llvm_value one = ws_jit_int(e, e->i32, 1);
    llvm_value n = L.BuildAdd(a->b, L.BuildLoad2(a->b, e->i32, e->patterns, ""), one, "");
    L.BuildStore(a->b, n, e->patterns);
    llvm_value few = L.BuildICmp(a->b, LLVM_ULE, n, ws_jit_int(e, e->i32, SHARED_ALL), "");
    llvm_value rest = L.BuildURem(a->b, n, ws_jit_int(e, e->i32, SHARED_EVERY), "");
    llvm_value it = L.BuildICmp(a->b, LLVM_EQ, rest, ws_jit_int(e, e->i32, 0), "");
    uint64_t t = transactions(a);
    llvm_value some =
        L.BuildSelect(a->b, it, ws_jit_i64(a, SHARED_EVERY * t), ws_jit_i64(a, 0), "");
    ws_jit_bump(e, WS_JIT_SHARED_TRANSACTIONS,
                L.BuildSelect(a->b, few, ws_jit_i64(a, t), some, ""));
}

static void count_shared(struct ws_jit_access *a)
{
    ws_jit_bump(a->e, WS_JIT_SHARED_ACCESSES, ws_jit_i64(a, 1));
    if (!a->store)
        ws_jit_bump(a->e, WS_JIT_SHARED_LOADS, ws_jit_i64(a, 1));
    if (a->lanes == LANES && !a->general && group_fits(a, 0, LANES, a->bytes))
        ws_jit_bump(a->e, WS_JIT_SHARED_TRANSACTIONS, ws_jit_i64(a, (a->bytes + 3) / 4));
    else
        count_pattern(a);
}

static bool emit_shared(struct ws_jit_access *a)
{
    struct ws_jit_emit *e = a->e;
    if (!ws_jit_is_scalar(e, a->address))
        return false;
    known_shape(a);
    if (!a->even || (a->bytes < 4 && a->group < a->lanes))
        return false;
    llvm_block fast = ws_jit_block(e), other = ws_jit_block(e), join = ws_jit_block(e);
    llvm_value first = L.BuildAdd(a->b, ws_jit_scalar(e, a->address),
                                  ws_jit_int(e, e->i32, (uint32_t)a->u->imm), "");
    first = L.BuildZExt(a->b, first, e->i64, "");
    llvm_value end = L.BuildAdd(a->b, first, ws_jit_i64(a, (uint64_t)a->high + a->bytes), "");
    llvm_value size = ws_jit_field(e, e->i64, CTX(shared_bytes));
    llvm_value bad = L.BuildICmp(a->b, LLVM_UGT, end, size, "");
    llvm_value before = L.BuildICmp(a->b, LLVM_ULT, first, ws_jit_i64(a, (uint64_t)-a->low), "");
    llvm_value odd = L.BuildAnd(a->b, first, ws_jit_i64(a, a->bytes - 1), "");
    bad = L.BuildOr(a->b, bad, before, "");
    bad = L.BuildOr(a->b, bad, L.BuildICmp(a->b, LLVM_NE, odd, ws_jit_i64(a, 0), ""), "");
    L.BuildCondBr(a->b, bad, other, fast);
    ws_jit_slow(a, other, join);
    ws_jit_begin(e, fast);
    if (a->atomic)
        ws_jit_count_atomic(a, first);
    else
        count_shared(a);
    perform(a, L.BuildAdd(a->b, ws_jit_field(e, e->i64, CTX(shared)), first, ""));
    L.BuildBr(a->b, join);
    ws_jit_begin(e, join);
    return true;
}

/* ---- global memory ---- */
static int by_value(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return a < b ? -1 : a > b;
}

/* Whether the lanes touch all sectors from the lowest one to the highest: then sectors and lines
 * follow from where these are. So it is where each address is at most a sector behind another. */
static bool is_gapless(const struct ws_jit_access *a)
{
    int64_t sorted[LANES];
    memcpy(sorted, a->apart, sizeof(sorted));
    qsort(sorted, a->lanes, sizeof(sorted[0]), by_value);
    for (unsigned i = 1; i < a->lanes; i++)
        if (sorted[i] - sorted[i - 1] > SECTOR_BYTES)
            return false;
    return true;
}

/* Whether the line of the address is of the sample that is recorded. */
static llvm_value is_recorded(struct ws_jit_access *a, llvm_value address)
{
    struct ws_jit_emit *e = a->e;
    llvm_value line =
        L.BuildTrunc(a->b, L.BuildLShr(a->b, address, ws_jit_i64(a, 7), ""), e->i32, "");
    line = L.BuildMul(a->b, line, ws_jit_int(e, e->i32, 0x9e3779b1u), "");
    return L.BuildICmp(a->b, LLVM_ULT, line, ws_jit_field(e, e->i32, CTX(record_below)), "");
}

/* Where @any (i1) is true, lets @f record the lines of the sample that the access touches. */
static void note_if(struct ws_jit_access *a, llvm_value any, void (*f)(void), llvm_value first,
                    llvm_value last)
{
    struct ws_jit_emit *e = a->e;
    llvm_block yes = ws_jit_block(e), on = ws_jit_block(e);
    L.BuildCondBr(a->b, any, yes, on);
    ws_jit_begin(e, yes);
    llvm_value args[] = {e->c, first, last, ws_jit_i64(a, a->store)};
    ws_jit_call(e, f, args, 4);
    L.BuildBr(a->b, on);
    ws_jit_begin(e, on);
}

static void note(struct ws_jit_access *a, llvm_value first, llvm_value last)
{
    struct ws_jit_emit *e = a->e;
    llvm_value below = ws_jit_field(e, e->i32, CTX(record_below));
    llvm_value any = L.BuildICmp(a->b, LLVM_NE, below, ws_jit_int(e, e->i32, 0), "");
    if (a->high - a->low < LINE_BYTES) /* two lines at most: look before the call */
        any = L.BuildOr(a->b, is_recorded(a, first), is_recorded(a, last), "");
    note_if(a, any, (void (*)(void))ws_jit_note, first, last);
}

/* @first: the lowest address. */
static void count_global(struct ws_jit_access *a, llvm_value first)
{
    struct ws_jit_emit *e = a->e;
    if (a->atomic)
        ws_jit_count_atomic(a, first);
    if (a->u->x & WS_X_NOCOUNT)
        return;
    llvm_value last =
        L.BuildAdd(a->b, first, ws_jit_i64(a, (uint64_t)(a->high - a->low) + a->bytes - 1), "");
    llvm_value n = L.BuildSub(a->b, L.BuildLShr(a->b, last, ws_jit_i64(a, 5), ""),
                              L.BuildLShr(a->b, first, ws_jit_i64(a, 5), ""), "");
    ws_jit_bump(e, a->store ? WS_JIT_GLOBAL_STORES : WS_JIT_GLOBAL_LOADS, ws_jit_i64(a, 1));
    ws_jit_bump(e, a->store ? WS_JIT_STORE_SECTORS : WS_JIT_LOAD_SECTORS,
                L.BuildAdd(a->b, n, ws_jit_i64(a, 1), ""));
    note(a, first, last);
}

/* Whether an access of so many bytes from @first on is one that may be made; *ret_host: where. */
static llvm_value check_map(struct ws_jit_access *a, llvm_value first, uint64_t extent,
                            llvm_value *ret_host)
{
    struct ws_jit_emit *e = a->e;
    size_t map = CTX(maps) + a->u->map * sizeof(struct ws_mapping);
    llvm_value off =
        L.BuildSub(a->b, first, ws_jit_field(e, e->i64, map + offsetof(struct ws_mapping, va)), "");
    llvm_value bytes = ws_jit_field(e, e->i64, map + offsetof(struct ws_mapping, bytes));
    llvm_value room = L.BuildSub(a->b, bytes, off, "");
    llvm_value ok = L.BuildICmp(a->b, LLVM_ULT, off, bytes, "");
    llvm_value fits = L.BuildICmp(a->b, LLVM_UGE, room, ws_jit_i64(a, extent), "");
    llvm_value odd = L.BuildAnd(a->b, first, ws_jit_i64(a, a->bytes - 1), "");
    ok = L.BuildAnd(a->b, ok, fits, "");
    ok = L.BuildAnd(a->b, ok, L.BuildICmp(a->b, LLVM_EQ, odd, ws_jit_i64(a, 0), ""), "");
    if (a->store) {
        llvm_value flags = ws_jit_field(e, e->i32, map + offsetof(struct ws_mapping, flags));
        llvm_value only = L.BuildAnd(a->b, flags, ws_jit_int(e, e->i32, WS_MAP_READONLY), "");
        ok = L.BuildAnd(a->b, ok, L.BuildICmp(a->b, LLVM_EQ, only, ws_jit_int(e, e->i32, 0), ""),
                        "");
    }
    llvm_value host = ws_jit_field(e, e->i64, map + offsetof(struct ws_mapping, host));
    *ret_host = L.BuildAdd(a->b, host, off, "");
    return ok;
}

/* All bits that any lane has. */
static llvm_value any_lane(struct ws_jit_access *a, llvm_value v)
{
    for (unsigned n = LANES / 2; n; n /= 2) {
        int64_t low[LANES], high[LANES];
        for (unsigned i = 0; i < n; i++) {
            low[i] = i;
            high[i] = n + i;
        }
        v = L.BuildOr(
            a->b, L.BuildShuffleVector(a->b, v, v, ws_jit_constants(a->e, a->e->i32, low, n), ""),
            L.BuildShuffleVector(a->b, v, v, ws_jit_constants(a->e, a->e->i32, high, n), ""), "");
    }
    return L.BuildExtractElement(a->b, v, ws_jit_int(a->e, a->e->i32, 0), "");
}

llvm_value ws_jit_lanes_fit(struct ws_jit_access *a, llvm_value va, llvm_value off, llvm_value room)
{
    llvm_type t = L.TypeOf(room);
    llvm_value zero = ws_jit_int(a->e, t, 0), out, odd;
    room = ws_jit_splat(a->e, room, LANES);
    out = any_lane(a, L.BuildOr(a->b, off, L.BuildSub(a->b, room, off, ""), ""));
    odd = L.BuildAnd(a->b, any_lane(a, va), ws_jit_int(a->e, t, a->bytes - 1), "");
    return L.BuildAnd(a->b, L.BuildICmp(a->b, LLVM_SGE, out, zero, ""),
                      L.BuildICmp(a->b, LLVM_EQ, odd, zero, ""), "");
}

llvm_value ws_jit_check_lanes(struct ws_jit_access *a, llvm_value va, llvm_value *ret_bias)
{
    struct ws_jit_emit *e = a->e;
    size_t map = CTX(maps) + a->u->map * sizeof(struct ws_mapping);
    llvm_value from = ws_jit_field(e, e->i64, map + offsetof(struct ws_mapping, va));
    llvm_value room = ws_jit_field(e, e->i64, map + offsetof(struct ws_mapping, bytes));
    llvm_value host = ws_jit_field(e, e->i64, map + offsetof(struct ws_mapping, host));
    llvm_value off = L.BuildSub(a->b, va, ws_jit_splat(e, from, LANES), "");
    room = L.BuildSub(a->b, room, ws_jit_i64(a, a->bytes), "");
    llvm_value ok = ws_jit_lanes_fit(a, va, off, room);
    if (a->store) {
        llvm_value flags = ws_jit_field(e, e->i32, map + offsetof(struct ws_mapping, flags));
        flags = L.BuildAnd(a->b, flags, ws_jit_int(e, e->i32, WS_MAP_READONLY), "");
        flags = L.BuildICmp(a->b, LLVM_EQ, flags, ws_jit_int(e, e->i32, 0), "");
        ok = L.BuildAnd(a->b, ok, flags, "");
    }
    *ret_bias = L.BuildSub(a->b, host, from, "");
    return ok;
}

/* Lane by lane, where a vector of addresses says. */
static void access_lanes(struct ws_jit_access *a, llvm_value host)
{
    struct ws_jit_emit *e = a->e;
    llvm_type t = ws_jit_int_type(e, a->bytes);
    llvm_value data = a->store ? ws_jit_vector(e, a->data) : L.GetUndef(L.VectorType(t, LANES));
    for (unsigned i = 0; i < LANES; i++) {
        llvm_value k = ws_jit_int(e, e->i32, i), to = L.BuildExtractElement(a->b, host, k, "");
        if (a->store)
            ws_jit_store(e, L.BuildExtractElement(a->b, data, k, ""), to, a->bytes);
        else
            data = L.BuildInsertElement(a->b, data, ws_jit_load(e, t, to, a->bytes), k, "");
    }
    if (!a->store)
        ws_jit_set(e, a->data, data);
}

void ws_jit_count_places(struct ws_jit_access *a, llvm_value va)
{
    struct ws_jit_emit *e = a->e;
    if (a->u->x & WS_X_NOCOUNT)
        return;
    L.SetAlignment(L.BuildStore(a->b, va, e->places), 64);
    llvm_value args[] = {e->c, ws_jit_address(e, a->u),
                         L.BuildPtrToInt(a->b, e->places, e->i64, ""), ws_jit_i64(a, a->store)};
    ws_jit_call(e, (void (*)(void))e->isa->count_lanes, args, 4);
}

/* Lanes anywhere in one mapping. The access comes before what is counted of it, so that the
 * processor waits for memory while it counts. */
static void emit_scattered(struct ws_jit_access *a, llvm_block at, llvm_block join)
{
    struct ws_jit_emit *e = a->e;
    llvm_block fast = ws_jit_block(e), other = ws_jit_block(e);
    llvm_value bias;
    ws_jit_begin(e, at);
    llvm_value va = ws_jit_vector(e, a->address);
    va = L.BuildAdd(a->b, va, ws_jit_splat(e, ws_jit_i64(a, (uint64_t)a->u->imm), LANES), "");
    L.BuildCondBr(a->b, ws_jit_check_lanes(a, va, &bias), fast, other);
    ws_jit_slow(a, other, join);
    ws_jit_begin(e, fast);
    access_lanes(a, L.BuildAdd(a->b, va, ws_jit_splat(e, bias, LANES), ""));
    ws_jit_count_places(a, va);
    L.BuildBr(a->b, join);
}

/* A load in which the lanes of each half of the warp may have the same address, as in blocks that
 * are 16 threads wide, where each row of threads reads one place. */
static void emit_halves(struct ws_jit_access *a, llvm_block at, llvm_block join)
{
    struct ws_jit_emit *e = a->e;
    llvm_block fast = ws_jit_block(e), other = ws_jit_block(e);
    llvm_value v, all, ok, half[2], host[2], lane[2];
    llvm_type t = ws_jit_int_type(e, a->bytes);
    int64_t of[LANES];
    for (int i = 0; i < LANES; i++)
        of[i] = i / 16 * 16;
    ws_jit_begin(e, at);
    v = ws_jit_vector(e, a->address);
    all = L.BuildShuffleVector(a->b, v, v, ws_jit_constants(e, e->i32, of, LANES), "");
    ok = L.BuildBitCast(a->b, L.BuildICmp(a->b, LLVM_EQ, v, all, ""), e->i32, "");
    ok = L.BuildICmp(a->b, LLVM_EQ, ok, ws_jit_int(e, e->i32, UINT32_MAX), "");
    for (unsigned k = 0; k < 2; k++) {
        half[k] = L.BuildExtractElement(a->b, v, ws_jit_int(e, e->i32, 16 * k), "");
        half[k] = L.BuildAdd(a->b, half[k], ws_jit_i64(a, (uint64_t)a->u->imm), "");
        ok = L.BuildAnd(a->b, ok, check_map(a, half[k], a->bytes, &host[k]), "");
    }
    L.BuildCondBr(a->b, ok, fast, other);
    emit_scattered(a, other, join);
    ws_jit_begin(e, fast);
    if (!(a->u->x & WS_X_NOCOUNT)) {
        llvm_value apart = L.BuildXor(a->b, half[0], half[1], "");
        llvm_value two = L.BuildICmp(a->b, LLVM_UGT, apart, ws_jit_i64(a, 31), "");
        ws_jit_bump(e, WS_JIT_GLOBAL_LOADS, ws_jit_i64(a, 1));
        ws_jit_bump(e, WS_JIT_LOAD_SECTORS,
                    L.BuildAdd(a->b, L.BuildZExt(a->b, two, e->i64, ""), ws_jit_i64(a, 1), ""));
        note_if(a, L.BuildOr(a->b, is_recorded(a, half[0]), is_recorded(a, half[1]), ""),
                (void (*)(void))ws_jit_note_two, half[0], half[1]);
    }
    for (unsigned k = 0; k < 2; k++)
        lane[k] = ws_jit_splat(e, ws_jit_load(e, t, host[k], a->bytes), 16);
    ws_jit_set(e, a->data, concatenate(a, lane, 2, 16));
    L.BuildBr(a->b, join);
}

/* Whether all lanes can be accessed one by one here. */
static bool may_scatter(const struct ws_jit_access *a)
{
    return a->lanes == LANES && !a->general && !a->atomic;
}

static bool emit_global(struct ws_jit_access *a)
{
    struct ws_jit_emit *e = a->e;
    llvm_value first, together = NULL;
    bool known = ws_jit_is_scalar(e, a->address);
    if (known) {
        known_shape(a);
        first = ws_jit_scalar(e, a->address);
        if ((!a->even || !is_gapless(a)) && may_scatter(a)) {
            llvm_block join = ws_jit_block(e);
            emit_scattered(a, L.GetInsertBlock(a->b), join);
            ws_jit_begin(e, join);
            return true;
        }
        if (!a->even || !is_gapless(a))
            return false;
    } else {
        consecutive(a);
        llvm_value v = ws_jit_vector(e, a->address);
        first = L.BuildExtractElement(a->b, v, ws_jit_int(e, e->i32, 0), "");
        llvm_value want = L.BuildAdd(a->b, ws_jit_splat(e, first, LANES),
                                     ws_jit_constants(e, e->i64, a->apart, LANES), "");
        llvm_value same = L.BuildICmp(a->b, LLVM_EQ, v, want, "");
        same = L.BuildBitCast(a->b, same, e->i32, "");
        if (a->lanes < LANES)
            same = L.BuildAnd(a->b, same, ws_jit_int(e, e->i32, e->p->full), "");
        together = L.BuildICmp(a->b, LLVM_EQ, same, ws_jit_int(e, e->i32, e->p->full), "");
    }
    llvm_block fast = ws_jit_block(e), other = ws_jit_block(e), join = ws_jit_block(e);
    llvm_value host;
    first = L.BuildAdd(a->b, first, ws_jit_i64(a, (uint64_t)(a->u->imm + a->low)), "");
    llvm_value ok = check_map(a, first, (uint64_t)(a->high - a->low) + a->bytes, &host);
    host = L.BuildSub(a->b, host, ws_jit_i64(a, (uint64_t)a->low), ""); /* lane 0's */
    ok = together ? L.BuildAnd(a->b, ok, together, "") : ok;
    L.BuildCondBr(a->b, ok, fast, other);
    if (together && !a->store && may_scatter(a))
        emit_halves(a, other, join);
    else if (together && may_scatter(a))
        emit_scattered(a, other, join);
    else
        ws_jit_slow(a, other, join);
    ws_jit_begin(e, fast);
    count_global(a, first);
    perform(a, host);
    L.BuildBr(a->b, join);
    ws_jit_begin(e, join);
    return true;
}

/* ---- local memory ---- */
/* Lanes anywhere in their own memory, by addresses without its window. */
static bool emit_local(struct ws_jit_access *a)
{
    struct ws_jit_emit *e = a->e;
    uint64_t each = WS_ALIGN_UP((uint64_t)e->p->img->local_bytes, UINT64_C(16)), imm;
    bool narrow = a->u->x & WS_X_A32;
    int64_t from[LANES];
    if (a->lanes < LANES || each < a->bytes)
        return false;
    imm = narrow ? (uint32_t)a->u->imm : (uint64_t)a->u->imm;
    llvm_value va = ws_jit_vector(e, a->address);
    va = L.BuildAdd(a->b, va, ws_jit_splat(e, ws_jit_int(e, narrow ? e->i32 : e->i64, imm), LANES),
                    "");
    if (narrow)
        va = L.BuildZExt(a->b, va, L.VectorType(e->i64, LANES), "");
    llvm_value stride = ws_jit_field(e, e->i64, CTX(local_stride));
    llvm_value ok = ws_jit_lanes_fit(a, va, va, ws_jit_i64(a, each - a->bytes));
    ok = L.BuildAnd(a->b, ok, L.BuildICmp(a->b, LLVM_EQ, stride, ws_jit_i64(a, each), ""), "");
    llvm_block fast = ws_jit_block(e), other = ws_jit_block(e), join = ws_jit_block(e);
    L.BuildCondBr(a->b, ok, fast, other);
    ws_jit_slow(a, other, join);
    ws_jit_begin(e, fast);
    for (unsigned i = 0; i < LANES; i++)
        from[i] = (int64_t)(i * each);
    llvm_value host = ws_jit_splat(e, ws_jit_field(e, e->i64, CTX(local)), LANES);
    host = L.BuildAdd(a->b, host, ws_jit_constants(e, e->i64, from, LANES), "");
    access_lanes(a, L.BuildAdd(a->b, host, va, ""));
    if (!(a->u->x & WS_X_NOCOUNT)) {
        ws_jit_bump(e, a->store ? WS_JIT_GLOBAL_STORES : WS_JIT_GLOBAL_LOADS, ws_jit_i64(a, 1));
        ws_jit_bump(e, a->store ? WS_JIT_STORE_SECTORS : WS_JIT_LOAD_SECTORS,
                    ws_jit_i64(a, LANES * a->bytes / SECTOR_BYTES));
    }
    L.BuildBr(a->b, join);
    ws_jit_begin(e, join);
    return true;
}

/* ---- parameters ---- */
static void emit_parameter(struct ws_jit_access *a)
{
    struct ws_jit_emit *e = a->e;
    unsigned bytes = a->u->x >> WS_X_SIZE_SHIFT & 15;
    uint32_t row = ws_jit_row_of(e->p, (uint32_t)a->u->d);
    llvm_value at = L.BuildAdd(a->b, ws_jit_field(e, e->i64, CTX(params)),
                               ws_jit_i64(a, (uint64_t)a->u->imm), "");
    llvm_value v = ws_jit_load(e, ws_jit_int_type(e, bytes), at, 1);
    ws_jit_set(e, row, ws_jit_is_scalar(e, row) ? v : ws_jit_splat(e, v, ws_jit_n_lanes(e)));
}

bool ws_jit_emit_memory(struct ws_jit_emit *e)
{
    struct ws_jit_access a = {.e = e, .b = e->b, .u = &e->p->img->uops[e->k], .lanes = e->p->lanes};
    uint16_t h = e->p->ops[e->k].h;
    if (h == WS_H_ld_p) {
        emit_parameter(&a);
        return true;
    }
    if ((e->v != WS_JIT_WHOLE && e->v != WS_JIT_LONE) || !ws_jit_unguarded(e->p, a.u))
        return false;
    bool atomic = e->v == WS_JIT_WHOLE && ws_jit_is_atomic(&a, h);
    if (!atomic && (!is_access(&a, h) || (e->v == WS_JIT_LONE && a.general)))
        return false;
    a.lanes = e->v == WS_JIT_LONE ? LANES : a.lanes;
    a.address = ws_jit_row_of(e->p, (uint32_t)a.u->a);
    a.data = ws_jit_row_of(e->p, (uint32_t)(atomic ? a.u->b : a.u->d));
    if (a.local)
        return emit_local(&a);
    if (atomic && !a.one_place)
        return ws_jit_emit_places(&a);
    return a.shared ? emit_shared(&a) : emit_global(&a);
}

// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/ops.c - arithmetic, comparisons and selections as code of LLVM.
 *
 * An operation is emitted for 32 or 8 lanes or, where its result has a known shape, for lane 0
 * alone. Values must have the bits that the handlers of ../exec/ops.inc give. Floating point is
 * emitted for the usual rounding only; what is rarer is left to the handler. */
#include "device/soft/jit/emit.h"

#include <stdio.h>

#include "device/soft/jit/shape.h"

#define L ws_llvm
enum { MX_DEFAULT = 0x1f80 };

struct op {
    struct ws_jit_emit *e;
    llvm_builder b;
    uint16_t h;
    unsigned n;             /* lanes */
    llvm_value a, bb, c, x; /* operands: a, b, c and e of the micro-op */
};

/* ---- small parts ---- */
static llvm_type wide(struct op *o, unsigned bytes)
{
    return ws_jit_lanes(ws_jit_int_type(o->e, bytes), o->n);
}

static llvm_value k(struct op *o, unsigned bytes, uint64_t v)
{
    llvm_value c = ws_jit_int(o->e, ws_jit_int_type(o->e, bytes), v);
    return o->n == 1 ? c : ws_jit_splat(o->e, c, o->n);
}

static llvm_value to_float(struct op *o, llvm_value v)
{
    return L.BuildBitCast(o->b, v, ws_jit_lanes(o->e->f32, o->n), "");
}

static llvm_value to_double(struct op *o, llvm_value v)
{
    return L.BuildBitCast(o->b, v, ws_jit_lanes(o->e->f64, o->n), "");
}

static llvm_value intrinsic(struct op *o, const char *name, const char *type, llvm_type t,
                            llvm_value *args, unsigned n_args, unsigned n_typed)
{
    char full[64];
    llvm_type types[3];
    for (unsigned i = 0; i < n_args; i++)
        types[i] = i < n_typed ? t : L.TypeOf(args[i]);
    if (o->n == 1)
        snprintf(full, sizeof(full), "llvm.%s.%s", name, type);
    else
        snprintf(full, sizeof(full), "llvm.%s.v%u%s", name, o->n, type);
    llvm_type ft = L.FunctionType(t, types, n_args, 0);
    llvm_value f = L.GetNamedFunction(o->e->mod, full);
    if (!f)
        f = L.AddFunction(o->e->mod, full, ft);
    return L.BuildCall2(o->b, ft, f, args, n_args, "");
}

/* A float's result: every NaN becomes the one that PTX names. */
static llvm_value canonical(struct op *o, llvm_value f)
{
    llvm_value nan = L.BuildFCmp(o->b, LLVM_UNO, f, f, "");
    return L.BuildSelect(o->b, nan, k(o, 4, 0x7fffffff), L.BuildBitCast(o->b, f, wide(o, 4), ""),
                         "");
}

static llvm_value pick(struct op *o, llvm_value yes, llvm_value a, llvm_value b)
{
    return L.BuildSelect(o->b, yes, a, b, "");
}

/* Amounts are of 32 bits whatever is shifted. */
static llvm_value shift(struct op *o, unsigned bytes, bool left, bool is_signed)
{
    llvm_value n = o->bb, most = k(o, 4, 8 * bytes - 1);
    llvm_value far = L.BuildICmp(o->b, LLVM_UGT, n, most, "");
    llvm_value by = is_signed ? pick(o, far, most, n) : L.BuildAnd(o->b, n, most, "");
    if (bytes == 8)
        by = L.BuildZExt(o->b, by, wide(o, 8), "");
    else if (bytes == 2)
        by = L.BuildTrunc(o->b, by, wide(o, 2), "");
    if (is_signed)
        return L.BuildAShr(o->b, o->a, by, "");
    llvm_value v = left ? L.BuildShl(o->b, o->a, by, "") : L.BuildLShr(o->b, o->a, by, "");
    return pick(o, far, k(o, bytes, 0), v);
}

static llvm_value compare_pick(struct op *o, int how)
{
    return pick(o, L.BuildICmp(o->b, how, o->a, o->bb, ""), o->a, o->bb);
}

/* The product of a and b in twice their width. */
static llvm_value product(struct op *o, unsigned bytes, bool is_signed)
{
    llvm_type t = wide(o, 2 * bytes);
    llvm_value x = is_signed ? L.BuildSExt(o->b, o->a, t, "") : L.BuildZExt(o->b, o->a, t, "");
    llvm_value y = is_signed ? L.BuildSExt(o->b, o->bb, t, "") : L.BuildZExt(o->b, o->bb, t, "");
    return L.BuildMul(o->b, x, y, "");
}

static llvm_value high(struct op *o, bool is_signed)
{
    llvm_value v = L.BuildLShr(o->b, product(o, 4, is_signed), k(o, 8, 32), "");
    return L.BuildTrunc(o->b, v, wide(o, 4), "");
}

/* Of b:a shifted by c; to the left: the high word. */
static llvm_value funnel(struct op *o, bool left, bool wraps)
{
    llvm_type t = wide(o, 8);
    llvm_value both =
        L.BuildOr(o->b, L.BuildShl(o->b, L.BuildZExt(o->b, o->bb, t, ""), k(o, 8, 32), ""),
                  L.BuildZExt(o->b, o->a, t, ""), "");
    llvm_value by =
        wraps ? L.BuildAnd(o->b, o->c, k(o, 4, 31), "")
              : pick(o, L.BuildICmp(o->b, LLVM_UGT, o->c, k(o, 4, 32), ""), k(o, 4, 32), o->c);
    by = L.BuildZExt(o->b, by, t, "");
    if (left)
        both = L.BuildLShr(o->b, L.BuildShl(o->b, both, by, ""), k(o, 8, 32), "");
    else
        both = L.BuildLShr(o->b, both, by, "");
    return L.BuildTrunc(o->b, both, wide(o, 4), "");
}

/* By doubles, as the handlers do: the quotient of 32-bit integers is exact when it is cut off. One
 * lane has an instruction, of 64 bits, because the least integer over -1 is not one of 32. By zero:
 * all ones, and the remainder is what was to be divided. */
static llvm_value quotient(struct op *o, bool is_signed)
{
    llvm_builder b = o->b;
    llvm_value zero = L.BuildICmp(b, LLVM_EQ, o->bb, k(o, 4, 0), "");
    llvm_value by = pick(o, zero, k(o, 4, 1), o->bb), q;
    if (o->n == 1) {
        llvm_type t = o->e->i64;
        q = is_signed ? L.BuildSDiv(b, L.BuildSExt(b, o->a, t, ""), L.BuildSExt(b, by, t, ""), "")
                      : L.BuildUDiv(b, L.BuildZExt(b, o->a, t, ""), L.BuildZExt(b, by, t, ""), "");
        return L.BuildTrunc(b, q, wide(o, 4), "");
    }
    llvm_type t = ws_jit_lanes(o->e->f64, o->n);
    if (is_signed)
        return L.BuildFPToSI(
            b, L.BuildFDiv(b, L.BuildSIToFP(b, o->a, t, ""), L.BuildSIToFP(b, by, t, ""), ""),
            wide(o, 4), "");
    q = L.BuildFDiv(b, L.BuildUIToFP(b, o->a, t, ""), L.BuildUIToFP(b, by, t, ""), "");
    return L.BuildFPToUI(b, q, wide(o, 4), "");
}

static llvm_value divided(struct op *o, bool is_signed)
{
    llvm_value zero = L.BuildICmp(o->b, LLVM_EQ, o->bb, k(o, 4, 0), "");
    return pick(o, zero, k(o, 4, UINT32_MAX), quotient(o, is_signed));
}

static llvm_value remainder_of(struct op *o, bool is_signed)
{
    return L.BuildSub(o->b, o->a, L.BuildMul(o->b, o->bb, quotient(o, is_signed), ""), "");
}

/* Bytes of a and b where a constant says which; its nibbles with the fourth bit ask for signs, and
 * are left to the handler. */
static llvm_value permute(struct op *o)
{
    uint64_t which;
    int64_t from[4 * 32];
    const struct ws_jit_plan *p = o->e->p;
    if (!ws_jit_const(p, ws_jit_row_of(p, (uint32_t)ws_jit_uop(o->e)->c), &which) || which & 0x8888)
        return NULL;
    for (unsigned i = 0; i < 4 * o->n; i++) {
        unsigned byte = (unsigned)(which >> (4 * (i % 4))) & 7;
        from[i] = (int64_t)(byte & 4 ? 4 * o->n : 0) + i / 4 * 4 + (byte & 3);
    }
    llvm_type t = L.VectorType(o->e->i8, 4 * o->n);
    llvm_value a = L.BuildBitCast(o->b, o->a, t, ""), b = L.BuildBitCast(o->b, o->bb, t, "");
    a = L.BuildShuffleVector(o->b, a, b, ws_jit_constants(o->e, o->e->i32, from, 4 * o->n), "");
    return L.BuildBitCast(o->b, a, wide(o, 4), "");
}

static llvm_value table(struct op *o, uint32_t bits)
{
    llvm_value in[3] = {o->a, o->bb, o->c}, r = k(o, 4, 0);
    for (unsigned row = 0; row < 8; row++) {
        llvm_value t = NULL;
        for (unsigned j = 0; j < 3 && bits >> row & 1; j++) {
            llvm_value v = row >> (2 - j) & 1 ? in[j] : L.BuildNot(o->b, in[j], "");
            t = t ? L.BuildAnd(o->b, t, v, "") : v;
        }
        r = t ? L.BuildOr(o->b, r, t, "") : r;
    }
    return r;
}

/* ---- integers ---- */
#define WIDTHS(X) X(16, 2) X(32, 4) X(64, 8)
/* Byte @n of each lane. */
static llvm_value byte_of(struct op *o, llvm_value v, unsigned n, bool is_signed)
{
    v = L.BuildShl(o->b, v, k(o, 4, 24 - 8 * n), "");
    return is_signed ? L.BuildAShr(o->b, v, k(o, 4, 24), "")
                     : L.BuildLShr(o->b, v, k(o, 4, 24), "");
}

/* The products of four bytes, added up (dp4a). */
static llvm_value sum_of_bytes(struct op *o, bool a_signed, bool b_signed)
{
    llvm_value sum = o->c;
    for (unsigned n = 0; n < 4; n++)
        sum = L.BuildAdd(
            o->b, sum,
            L.BuildMul(o->b, byte_of(o, o->a, n, a_signed), byte_of(o, o->bb, n, b_signed), ""),
            "");
    return sum;
}

static llvm_value integer(struct op *o)
{
    llvm_builder b = o->b;
    switch (o->h) {
#define X(n, bytes)                                                                                \
    case WS_H_add_##n:                                                                             \
        return L.BuildAdd(b, o->a, o->bb, "");                                                     \
    case WS_H_sub_##n:                                                                             \
        return L.BuildSub(b, o->a, o->bb, "");                                                     \
    case WS_H_mul_lo_##n:                                                                          \
        return L.BuildMul(b, o->a, o->bb, "");                                                     \
    case WS_H_mad_lo_##n:                                                                          \
        return L.BuildAdd(b, L.BuildMul(b, o->a, o->bb, ""), o->c, "");                            \
    case WS_H_neg_##n:                                                                             \
        return L.BuildSub(b, k(o, bytes, 0), o->a, "");                                            \
    case WS_H_abs_##n:                                                                             \
        return pick(o, L.BuildICmp(b, LLVM_SLT, o->a, k(o, bytes, 0), ""),                         \
                    L.BuildSub(b, k(o, bytes, 0), o->a, ""), o->a);                                \
    case WS_H_and_##n:                                                                             \
        return L.BuildAnd(b, o->a, o->bb, "");                                                     \
    case WS_H_or_##n:                                                                              \
        return L.BuildOr(b, o->a, o->bb, "");                                                      \
    case WS_H_xor_##n:                                                                             \
        return L.BuildXor(b, o->a, o->bb, "");                                                     \
    case WS_H_not_##n:                                                                             \
        return L.BuildNot(b, o->a, "");                                                            \
    case WS_H_cnot_##n:                                                                            \
        return L.BuildZExt(b, L.BuildICmp(b, LLVM_EQ, o->a, k(o, bytes, 0), ""), wide(o, bytes),   \
                           "");                                                                    \
    case WS_H_mov_##n:                                                                             \
        return o->a;                                                                               \
    case WS_H_shl_##n:                                                                             \
        return shift(o, bytes, true, false);                                                       \
    case WS_H_shr_u##n:                                                                            \
        return shift(o, bytes, false, false);                                                      \
    case WS_H_shr_s##n:                                                                            \
        return shift(o, bytes, false, true);                                                       \
    case WS_H_min_u##n:                                                                            \
        return compare_pick(o, LLVM_ULT);                                                          \
    case WS_H_max_u##n:                                                                            \
        return compare_pick(o, LLVM_UGT);                                                          \
    case WS_H_min_s##n:                                                                            \
        return compare_pick(o, LLVM_SLT);                                                          \
    case WS_H_max_s##n:                                                                            \
        return compare_pick(o, LLVM_SGT);
        WIDTHS(X)
#undef X
    case WS_H_dp4a_uu:
        return sum_of_bytes(o, false, false);
    case WS_H_dp4a_us:
        return sum_of_bytes(o, false, true);
    case WS_H_dp4a_su:
        return sum_of_bytes(o, true, false);
    case WS_H_dp4a_ss:
        return sum_of_bytes(o, true, true);
    case WS_H_mul_hi_u32:
        return high(o, false);
    case WS_H_mul_hi_s32:
        return high(o, true);
    case WS_H_mul_wide_u16:
        return product(o, 2, false);
    case WS_H_mul_wide_s16:
        return product(o, 2, true);
    case WS_H_mul_wide_u32:
        return product(o, 4, false);
    case WS_H_mul_wide_s32:
        return product(o, 4, true);
    case WS_H_mad_wide_u32:
        return L.BuildAdd(b, product(o, 4, false), o->c, "");
    case WS_H_mad_wide_s32:
        return L.BuildAdd(b, product(o, 4, true), o->c, "");
    case WS_H_div_u32:
        return divided(o, false);
    case WS_H_div_s32:
        return divided(o, true);
    case WS_H_rem_u32:
        return remainder_of(o, false);
    case WS_H_rem_s32:
        return remainder_of(o, true);
    case WS_H_prmt:
        return permute(o);
    case WS_H_shf_l_clamp:
        return funnel(o, true, false);
    case WS_H_shf_l_wrap:
        return funnel(o, true, true);
    case WS_H_shf_r_clamp:
        return funnel(o, false, false);
    case WS_H_shf_r_wrap:
        return funnel(o, false, true);
    case WS_H_lop3:
        return table(o, ws_jit_uop(o->e)->x);
    case WS_H_popc_32:
        return intrinsic(o, "ctpop", "i32", wide(o, 4), &o->a, 1, 1);
    case WS_H_brev_32:
        return intrinsic(o, "bitreverse", "i32", wide(o, 4), &o->a, 1, 1);
    case WS_H_clz_32: {
        llvm_value args[] = {o->a, ws_jit_int(o->e, o->e->i1, 0)};
        return intrinsic(o, "ctlz", "i32", wide(o, 4), args, 2, 1);
    }
    case WS_H_bfind_u32: { /* 31 - clz; of 0: all ones */
        llvm_value args[] = {o->a, ws_jit_int(o->e, o->e->i1, 0)};
        return L.BuildSub(b, k(o, 4, 31), intrinsic(o, "ctlz", "i32", wide(o, 4), args, 2, 1), "");
    }
    case WS_H_bfind_amt_u32: { /* clz; of 0: all ones */
        llvm_value args[] = {o->a, ws_jit_int(o->e, o->e->i1, 0)};
        llvm_value zero = L.BuildICmp(b, LLVM_EQ, o->a, k(o, 4, 0), "");
        return pick(o, zero, k(o, 4, UINT32_MAX),
                    intrinsic(o, "ctlz", "i32", wide(o, 4), args, 2, 1));
    }
    default:
        return NULL;
    }
}

/* ---- conversions, and moves between widths ---- */
static llvm_value resize(struct op *o, unsigned from, bool is_signed, unsigned to)
{
    if (from == to)
        return o->a;
    if (to < from)
        return L.BuildTrunc(o->b, o->a, wide(o, to), "");
    return is_signed ? L.BuildSExt(o->b, o->a, wide(o, to), "")
                     : L.BuildZExt(o->b, o->a, wide(o, to), "");
}

/* a below b, of so many bytes each. */
static llvm_value packed(struct op *o, unsigned bytes)
{
    llvm_type t = wide(o, 2 * bytes);
    llvm_value high = L.BuildZExt(o->b, o->bb, t, "");
    high = L.BuildShl(o->b, high, k(o, 2 * bytes, 8 * bytes), "");
    return L.BuildOr(o->b, L.BuildZExt(o->b, o->a, t, ""), high, "");
}

static llvm_value conversion(struct op *o)
{
    llvm_builder b = o->b;
    switch (o->h) {
#define X(n, bytes)                                                                                \
    case WS_H_cvt_##n##_u8:                                                                        \
        return resize(o, 1, false, bytes);                                                         \
    case WS_H_cvt_##n##_s8:                                                                        \
        return resize(o, 1, true, bytes);                                                          \
    case WS_H_cvt_##n##_u16:                                                                       \
        return resize(o, 2, false, bytes);                                                         \
    case WS_H_cvt_##n##_s16:                                                                       \
        return resize(o, 2, true, bytes);                                                          \
    case WS_H_cvt_##n##_u32:                                                                       \
        return resize(o, 4, false, bytes);                                                         \
    case WS_H_cvt_##n##_s32:                                                                       \
        return resize(o, 4, true, bytes);                                                          \
    case WS_H_cvt_##n##_u64:                                                                       \
        return resize(o, 8, false, bytes);
        X(8, 1)
        WIDTHS(X)
#undef X
    case WS_H_pack2_8:
        return packed(o, 1);
    case WS_H_pack2_16:
        return packed(o, 2);
    case WS_H_pack2_32:
        return packed(o, 4);
    case WS_H_unlo_8:
        return L.BuildTrunc(b, o->a, wide(o, 1), "");
    case WS_H_unlo_16:
        return L.BuildTrunc(b, o->a, wide(o, 2), "");
    case WS_H_unlo_32:
        return L.BuildTrunc(b, o->a, wide(o, 4), "");
    case WS_H_unhi_8:
        return L.BuildTrunc(b, L.BuildLShr(b, o->a, k(o, 2, 8), ""), wide(o, 1), "");
    case WS_H_unhi_16:
        return L.BuildTrunc(b, L.BuildLShr(b, o->a, k(o, 4, 16), ""), wide(o, 2), "");
    case WS_H_unhi_32:
        return L.BuildTrunc(b, L.BuildLShr(b, o->a, k(o, 8, 32), ""), wide(o, 4), "");
    case WS_H_cvta_to:
        return L.BuildAnd(b, o->a, k(o, 8, 0x00ffffffffffffffu), "");
    default:
        return NULL;
    }
}

/* ---- floating point ---- */
static llvm_value float_op(struct op *o)
{
    llvm_builder b = o->b;
    llvm_type t = ws_jit_lanes(o->e->f32, o->n);
    switch (o->h) {
    case WS_H_abs_f32:
        return L.BuildAnd(b, o->a, k(o, 4, 0x7fffffff), "");
    case WS_H_neg_f32:
        return L.BuildXor(b, o->a, k(o, 4, 0x80000000u), "");
    case WS_H_abs_f64:
        return L.BuildAnd(b, o->a, k(o, 8, 0x7fffffffffffffff), "");
    case WS_H_neg_f64:
        return L.BuildXor(b, o->a, k(o, 8, UINT64_C(1) << 63), "");
    default:
        break;
    }
    if (ws_jit_uop(o->e)->mx != MX_DEFAULT)
        return NULL;
    switch (o->h) {
    case WS_H_add_f32:
        return canonical(o, L.BuildFAdd(b, to_float(o, o->a), to_float(o, o->bb), ""));
    case WS_H_sub_f32:
        return canonical(o, L.BuildFSub(b, to_float(o, o->a), to_float(o, o->bb), ""));
    case WS_H_mul_f32:
        return canonical(o, L.BuildFMul(b, to_float(o, o->a), to_float(o, o->bb), ""));
    case WS_H_div_f32:
        return canonical(o, L.BuildFDiv(b, to_float(o, o->a), to_float(o, o->bb), ""));
    case WS_H_fma_f32:
        if (!o->e->has_fma)
            return NULL;
        return canonical(
            o, intrinsic(o, "fma", "f32", t,
                         (llvm_value[]){to_float(o, o->a), to_float(o, o->bb), to_float(o, o->c)},
                         3, 3));
    case WS_H_sqrt_f32:
        return canonical(o,
                         intrinsic(o, "sqrt", "f32", t, (llvm_value[]){to_float(o, o->a)}, 1, 1));
    case WS_H_cvt_f32_f64:
        return canonical(o, L.BuildFPTrunc(b, to_double(o, o->a), t, ""));
    case WS_H_rcp_f32:
        return canonical(o,
                         L.BuildFDiv(b, to_float(o, k(o, 4, 0x3f800000)), to_float(o, o->a), ""));
    case WS_H_cvt_f32_s32:
        return L.BuildBitCast(b, L.BuildSIToFP(b, o->a, t, ""), wide(o, 4), "");
    case WS_H_cvt_f32_u32:
        return L.BuildBitCast(b, L.BuildUIToFP(b, o->a, t, ""), wide(o, 4), "");
    default:
        return NULL;
    }
}

/* A result that is NaN has the bits of one of the operands, and which one is the compiler's choice:
 * all NaNs are left to the handler. */
static llvm_value double_op(struct op *o)
{
    llvm_builder b = o->b;
    llvm_type t = ws_jit_lanes(o->e->f64, o->n);
    if (ws_jit_uop(o->e)->mx != MX_DEFAULT)
        return NULL;
    switch (o->h) {
    case WS_H_add_f64:
        return L.BuildFAdd(b, to_double(o, o->a), to_double(o, o->bb), "");
    case WS_H_sub_f64:
        return L.BuildFSub(b, to_double(o, o->a), to_double(o, o->bb), "");
    case WS_H_mul_f64:
        return L.BuildFMul(b, to_double(o, o->a), to_double(o, o->bb), "");
    case WS_H_div_f64:
        return L.BuildFDiv(b, to_double(o, o->a), to_double(o, o->bb), "");
    case WS_H_rcp_f64:
        return L.BuildFDiv(b, to_double(o, k(o, 8, UINT64_C(0x3ff) << 52)), to_double(o, o->a), "");
    case WS_H_fma_f64:
        if (!o->e->has_fma)
            return NULL;
        return intrinsic(
            o, "fma", "f64", t,
            (llvm_value[]){to_double(o, o->a), to_double(o, o->bb), to_double(o, o->c)}, 3, 3);
    case WS_H_sqrt_f64:
        return intrinsic(o, "sqrt", "f64", t, (llvm_value[]){to_double(o, o->a)}, 1, 1);
    case WS_H_cvt_f64_f32:
        return L.BuildFPExt(b, to_float(o, o->a), t, "");
    case WS_H_cvt_f64_s32:
        return L.BuildSIToFP(b, o->a, t, "");
    case WS_H_cvt_f64_u32:
        return L.BuildUIToFP(b, o->a, t, "");
    default:
        return NULL;
    }
}

/* Lanes' answers as a word. */
static llvm_value word_of(struct op *o, llvm_value yes)
{
    struct ws_jit_emit *e = o->e;
    if (o->n == 1)
        return L.BuildSExt(o->b, yes, e->i32, "");
    if (e->v != WS_JIT_NARROW)
        return L.BuildBitCast(o->b, yes, e->i32, "");
    yes = L.BuildZExt(o->b, L.BuildBitCast(o->b, yes, e->i8, ""), e->i32, "");
    return L.BuildShl(o->b, yes, ws_jit_get(e, e->i32, e->group), "");
}

/* Gives the row its value, or leaves it to the handler where @hard (i1) is true. */
static void set_unless(struct op *o, llvm_value hard, uint32_t row, llvm_value v)
{
    struct ws_jit_emit *e = o->e;
    llvm_block some = ws_jit_block(e), none = ws_jit_block(e), join = ws_jit_block(e);
    L.BuildCondBr(o->b, hard, some, none);
    ws_jit_begin(e, some);
    ws_jit_call_handler(e);
    L.BuildBr(o->b, join);
    ws_jit_begin(e, none);
    ws_jit_set(e, row, v);
    L.BuildBr(o->b, join);
    ws_jit_begin(e, join);
}

static void set_unless_nan(struct op *o, uint32_t row, llvm_value v)
{
    llvm_value nan = L.BuildFCmp(o->b, LLVM_UNO, v, v, "");
    nan = L.BuildICmp(o->b, LLVM_NE, word_of(o, nan), ws_jit_int(o->e, o->e->i32, 0), "");
    set_unless(o, nan, row, L.BuildBitCast(o->b, v, wide(o, 8), ""));
}

/* ---- fused multiply-add of floats without an instruction for it ---- */
/* Whether any of @n integers of 32 bits is not zero. */
static llvm_value any_of(struct op *o, llvm_value v, unsigned n)
{
    struct ws_jit_emit *e = o->e;
    while (n /= 2) {
        int64_t low[32], high[32];
        for (unsigned i = 0; i < n; i++) {
            low[i] = i;
            high[i] = n + i;
        }
        v = L.BuildOr(
            o->b, L.BuildShuffleVector(o->b, v, v, ws_jit_constants(e, e->i32, low, n), ""),
            L.BuildShuffleVector(o->b, v, v, ws_jit_constants(e, e->i32, high, n), ""), "");
    }
    v = L.BuildExtractElement(o->b, v, ws_jit_int(e, e->i32, 0), "");
    return L.BuildICmp(o->b, LLVM_NE, v, ws_jit_int(e, e->i32, 0), "");
}

/* Whether any of the doubles may be halfway between two floats. Of a normal float's size those are
 * whose bits that a float has not are a one and zeros; smaller ones may all be. Halves are
 * compared, because SSE2 compares no integers of 64 bits: the lower one for equality, the upper one
 * by size. */
static llvm_value any_halfway(struct op *o, llvm_value s)
{
    struct ws_jit_emit *e = o->e;
    int64_t bits[64], half[64], least[64];
    unsigned n = 2 * o->n;
    for (unsigned i = 0; i < n; i += 2) {
        bits[i] = 0x1fffffff;
        half[i] = 0x10000000;
        least[i] = 0;
        bits[i + 1] = 0x7fffffff;
        half[i + 1] = -1;
        least[i + 1] = 0x38100000; /* the least normal float */
    }
    llvm_type t = L.VectorType(e->i32, n);
    llvm_value v =
        L.BuildAnd(o->b, L.BuildBitCast(o->b, s, t, ""), ws_jit_constants(e, e->i32, bits, n), "");
    llvm_value is = L.BuildICmp(o->b, LLVM_EQ, v, ws_jit_constants(e, e->i32, half, n), "");
    llvm_value small = L.BuildICmp(o->b, LLVM_SLT, v, ws_jit_constants(e, e->i32, least, n), "");
    v = L.BuildOr(o->b, L.BuildSExt(o->b, is, t, ""), L.BuildSExt(o->b, small, t, ""), "");
    return any_of(o, v, n);
}

/* The product of two floats is exact as a double, and the sum is one that was rounded. Rounded once
 * more, to a float, it is what the exact sum would be rounded to, unless it is halfway between two
 * floats: any other double has the exact sum on the same side of all that are. */
static bool multiply_add(struct op *o, uint32_t row)
{
    llvm_builder b = o->b;
    llvm_type t = ws_jit_lanes(o->e->f64, o->n);
    if (o->h != WS_H_fma_f32 || o->e->has_fma || ws_jit_uop(o->e)->mx != MX_DEFAULT)
        return false;
    llvm_value x = L.BuildFPExt(b, to_float(o, o->a), t, "");
    llvm_value y = L.BuildFPExt(b, to_float(o, o->bb), t, "");
    llvm_value z = L.BuildFPExt(b, to_float(o, o->c), t, "");
    llvm_value s = L.BuildFAdd(b, L.BuildFMul(b, x, y, ""), z, "");
    llvm_value r = L.BuildFPTrunc(b, s, ws_jit_lanes(o->e->f32, o->n), "");
    set_unless(o, any_halfway(o, s), row, canonical(o, r));
    return true;
}

/* ---- predicates ---- */
static llvm_value real(struct op *o, int how, bool is_double)
{
    llvm_value x = is_double ? to_double(o, o->a) : to_float(o, o->a);
    llvm_value y = is_double ? to_double(o, o->bb) : to_float(o, o->bb);
    return word_of(o, L.BuildFCmp(o->b, how, x, y, ""));
}

static llvm_value comparison(struct op *o)
{
    bool usual = ws_jit_uop(o->e)->mx == MX_DEFAULT;
    switch (o->h) {
#define X(n, bytes)                                                                                \
    case WS_H_eq_##n:                                                                              \
        return word_of(o, L.BuildICmp(o->b, LLVM_EQ, o->a, o->bb, ""));                            \
    case WS_H_lt_u##n:                                                                             \
        return word_of(o, L.BuildICmp(o->b, LLVM_ULT, o->a, o->bb, ""));                           \
    case WS_H_lt_s##n:                                                                             \
        return word_of(o, L.BuildICmp(o->b, LLVM_SLT, o->a, o->bb, ""));
        WIDTHS(X)
#undef X
#define X(name, how)                                                                               \
    case WS_H_##name##_f32:                                                                        \
        return usual ? real(o, how, false) : NULL;                                                 \
    case WS_H_##name##_f64:                                                                        \
        return usual ? real(o, how, true) : NULL;
        X(eq, LLVM_OEQ)
        X(ne, LLVM_ONE)
        X(lt, LLVM_OLT)
        X(le, LLVM_OLE)
        X(num, LLVM_ORD)
#undef X
    default:
        return NULL;
    }
}

static llvm_value source_word(struct ws_jit_emit *e, int32_t off, bool inverted)
{
    llvm_value w = ws_jit_word(e, ws_jit_row_of(e->p, (uint32_t)off));
    return inverted ? L.BuildNot(e->b, w, "") : w;
}

/* Operations on words. */
static bool emit_words(struct ws_jit_emit *e, uint16_t h)
{
    const struct ws_uop *u = ws_jit_uop(e);
    if (h != WS_H_p_and && h != WS_H_p_or && h != WS_H_p_xor && h != WS_H_p_mov)
        return false;
    llvm_value a = source_word(e, u->a, u->x & 1);
    llvm_value b = h == WS_H_p_mov ? NULL : source_word(e, u->b, u->x >> 1 & 1);
    llvm_value r = a;
    if (h == WS_H_p_and)
        r = L.BuildAnd(e->b, a, b, "");
    else if (h == WS_H_p_or)
        r = L.BuildOr(e->b, a, b, "");
    else if (h == WS_H_p_xor)
        r = L.BuildXor(e->b, a, b, "");
    ws_jit_set_word(e, ws_jit_row_of(e->p, (uint32_t)u->d), r);
    return true;
}

/* ---- one micro-op ---- */
static bool is_select(uint16_t h)
{
    return h == WS_H_selp_16 || h == WS_H_selp_32 || h == WS_H_selp_64;
}

static void selection(struct op *o)
{
    const struct ws_uop *u = ws_jit_uop(o->e);
    llvm_value p = source_word(o->e, u->c, u->x != 0);
    llvm_value yes = o->n == 1 ? L.BuildICmp(o->b, LLVM_NE, p, ws_jit_int(o->e, o->e->i32, 0), "")
                               : ws_jit_bits(o->e, p);
    ws_jit_set(o->e, ws_jit_row_of(o->e->p, (uint32_t)u->d), pick(o, yes, o->a, o->bb));
}

static llvm_value operand(struct op *o, uint32_t row)
{
    return o->n == 1 ? ws_jit_scalar(o->e, row) : ws_jit_vector(o->e, row);
}

static void fetch_operands(struct op *o)
{
    const struct ws_jit_op *op = &o->e->p->ops[o->e->k];
    llvm_value *const to[] = {NULL, &o->a, &o->bb, &o->c, &o->x}; /* the first is the guard */
    for (uint32_t n = 1; n < op->n_touches && n < 5; n++)
        if (!op->touch[n].write && o->e->p->rows[op->touch[n].row].width)
            *to[n] = operand(o, op->touch[n].row);
}

/* A widening of lanes whose values may wrap: those that do are left to the masked version. */
static void check_wrap(struct ws_jit_emit *e)
{
    uint32_t row;
    bool is_signed;
    if (e->v != WS_JIT_WHOLE || !ws_jit_may_wrap(e->p, e->k, &row, &is_signed))
        return;
    int64_t low = 0, high = 0, least = is_signed ? INT32_MIN : 0;
    int64_t most = is_signed ? INT32_MAX : UINT32_MAX;
    for (int i = 0; i < 32; i++) {
        low = WS_MIN(low, e->p->rows[row].apart[i]);
        high = WS_MAX(high, e->p->rows[row].apart[i]);
    }
    llvm_value s = ws_jit_scalar(e, row);
    s = is_signed ? L.BuildSExt(e->b, s, e->i64, "") : L.BuildZExt(e->b, s, e->i64, "");
    llvm_value bad = L.BuildOr(
        e->b, L.BuildICmp(e->b, LLVM_SLT, s, ws_jit_int(e, e->i64, (uint64_t)(least - low)), ""),
        L.BuildICmp(e->b, LLVM_SGT, s, ws_jit_int(e, e->i64, (uint64_t)(most - high)), ""), "");
    ws_jit_unless(e, bad);
}

bool ws_jit_emit_op(struct ws_jit_emit *e)
{
    const struct ws_jit_op *op = &e->p->ops[e->k];
    const struct ws_uop *u = ws_jit_uop(e);
    if (emit_words(e, op->h))
        return true;
    if (op->h > WS_H_lop3 || op->h == WS_H_lane)
        if (op->h != WS_H_cvta_to)
            return false;
    if (op->n_touches < 2 || !op->touch[op->n_touches - 1].write)
        return false;
    uint32_t d = op->touch[op->n_touches - 1].row;
    bool scalar = e->p->rows[d].width    ? ws_jit_is_scalar(e, d)
                  : e->v == WS_JIT_WHOLE ? ws_jit_uniform(&e->p->rows[d])
                                         : e->v == WS_JIT_LONE;
    struct op o = {.e = e, .b = e->b, .h = op->h, .n = scalar ? 1 : ws_jit_n_lanes(e)};
    if (scalar)
        check_wrap(e);
    fetch_operands(&o);
    if (is_select(op->h)) {
        selection(&o);
        return true;
    }
    llvm_value r = e->p->rows[d].width ? NULL : comparison(&o);
    if (r) {
        ws_jit_set_word(e, d, u->x ? L.BuildNot(e->b, r, "") : r);
        return true;
    }
    if (e->p->rows[d].width == 0)
        return false;
    if (multiply_add(&o, d))
        return true;
    r = double_op(&o);
    if (r) {
        set_unless_nan(&o, d, r);
        return true;
    }
    r = integer(&o);
    r = r ? r : conversion(&o);
    r = r ? r : float_op(&o);
    if (r)
        ws_jit_set(e, d, r);
    return r != NULL;
}

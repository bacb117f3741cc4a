// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/half.c - half, packed and mixed-precision arithmetic (PTX ISA 9.7.3 to 9.7.5).
 *
 * The plain forms that compilers emit have vector handlers; those with .ftz, .sat, .relu, .NaN or
 * .xorsign.abs, and the approximations, go through ws_lane_half(). Mixed precision widens the
 * halves first, which is exact. f32x2 is taken apart, computed as two floats and put together
 * again. */
#include "device/soft/decode/util.h"

#include <string.h>

static unsigned log2_bytes(uint32_t bytes)
{
    switch (bytes) {
    case 2:
        return 1;
    case 4:
        return 2;
    default:
        return bytes >= 8 ? 3 : 0;
    }
}

struct ws_uop *ws_dec_lane(struct ws_dec *d, ws_lane_fn fn, uint32_t x, uint32_t dst,
                           uint32_t dst_width, unsigned n, const uint32_t *src,
                           const uint32_t *src_widths)
{
    struct ws_uop *u = ws_dec_emit3(d, WS_H_lane, dst, n > 0 ? src[0] : dst,
                                    n > 1 ? src[1]
                                    : n   ? src[0]
                                          : dst);
    unsigned w[3] = {0};
    u->c = n > 2 ? (int32_t)src[2] : u->a;
    for (unsigned k = 0; k < n && k < 3; k++)
        w[k] = log2_bytes(src_widths[k]);
    u->mx = WS_LANE_W(log2_bytes(dst_width), w[0], w[1], w[2]);
    u->x = x;
    u->imm = (int64_t)(uintptr_t)fn;
    return u;
}

struct ws_uop *ws_dec_lane_n(struct ws_dec *d, insn i, ws_lane_fn fn, uint32_t x, type td,
                             unsigned n, const type *ts)
{
    uint32_t s[3] = {0}, w[3] = {0};
    bool finish;
    if (i->n_operands < n + 1) {
        no_such(d, i);
        return ws_dec_emit(d, WS_H_nop);
    }
    for (unsigned k = 0; k < n; k++) {
        s[k] = ws_dec_src(d, &i->operands[k + 1], ts[k]);
        w[k] = ws_dec_width(ts[k]);
    }
    uint32_t dst = ws_dec_dst(d, &i->operands[0], td, &finish);
    struct ws_uop *u = ws_dec_lane(d, fn, x, dst, ws_dec_width(td), n, s, w);
    if (finish)
        ws_dec_finish(d, &i->operands[0], td, dst);
    return u;
}

/* ---- halves ---- */
static bool is_bf(type t)
{
    return t == WS_T_BF16 || t == WS_T_BF16X2;
}

static uint32_t half_flags(insn i)
{
    type t = i->types[0];
    uint32_t x = 0;
    if (is_bf(t))
        x |= WS_HALF_BF16;
    if (t == WS_T_F16X2 || t == WS_T_BF16X2)
        x |= WS_HALF_X2;
    if (i->flags & WS_F_FTZ)
        x |= WS_HALF_FTZ;
    if (i->flags & WS_F_SAT)
        x |= WS_HALF_SAT;
    if (i->flags & WS_F_RELU)
        x |= WS_HALF_RELU;
    if (i->flags & WS_F_NAN)
        x |= WS_HALF_NAN;
    if (i->flags & WS_F_XORSIGN_ABS)
        x |= WS_HALF_XORSIGN;
    return x;
}

/* The handlers of the four types, in the order f16, f16x2, bf16, bf16x2. */
#define HALF(name)                                                                                 \
    {                                                                                              \
        WS_H_##name##_f16, WS_H_##name##_f16x2, WS_H_##name##_bf16, WS_H_##name##_bf16x2           \
    }
static const struct half_row {
    uint16_t op;
    uint8_t lane, n;
    uint16_t h[4]; /* 0: no handler of its own */
} half_rows[] = {
    {WS_OP_ADD, WS_HALF_ADD, 2, HALF(hadd)},
    {WS_OP_SUB, WS_HALF_SUB, 2, HALF(hsub)},
    {WS_OP_MUL, WS_HALF_MUL, 2, HALF(hmul)},
    {WS_OP_FMA, WS_HALF_FMA, 3, HALF(hfma)},
    {WS_OP_MIN, WS_HALF_MIN, 2, HALF(hmin)},
    {WS_OP_MAX, WS_HALF_MAX, 2, HALF(hmax)},
    {WS_OP_ABS, WS_HALF_FLUSH, 1, {WS_H_abs_f16, WS_H_abs_f16x2, WS_H_abs_f16, WS_H_abs_f16x2}},
    {WS_OP_NEG, WS_HALF_FLUSH, 1, {WS_H_neg_f16, WS_H_neg_f16x2, WS_H_neg_f16, WS_H_neg_f16x2}},
    {WS_OP_EX2, WS_HALF_EX2, 1, {0}},
    {WS_OP_TANH, WS_HALF_TANH, 1, {0}},
};

static bool half(struct ws_dec *d, insn i, const struct half_row *r)
{
    type t = i->types[0], ts[3] = {t, t, t};
    uint32_t x = half_flags(i);
    unsigned k = (is_bf(t) ? 2 : 0) + (x & WS_HALF_X2 ? 1 : 0);
    bool plain = !(x & ~(uint32_t)(WS_HALF_BF16 | WS_HALF_X2));
    if (i->n_types != 1 || i->n_operands != r->n + 1 || i->ext ||
        (i->rnd != WS_RND_NONE && i->rnd != WS_RND_RN))
        return no_such(d, i);
    if (i->op == WS_OP_ABS || i->op == WS_OP_NEG) {
        int32_t row = op1(d, i, r->h[k], t, t)->d;
        if (x & WS_HALF_FTZ)
            ws_dec_lane(d, ws_lane_half, x | WS_HALF_FLUSH, (uint32_t)row, ws_dec_width(t), 1,
                        (const uint32_t[]){(uint32_t)row}, (const uint32_t[]){ws_dec_width(t)});
        return true;
    }
    if (plain && r->h[k])
        op_n(d, i, r->h[k], t, r->n, ts);
    else
        ws_dec_lane_n(d, i, ws_lane_half, x | r->lane, t, r->n, ts);
    return true;
}

/* ---- f32 from a half and f32: the half is widened ---- */
static bool mixed(struct ws_dec *d, insn i)
{
    type t = i->types[1];
    bool fma = i->op == WS_OP_FMA, finish;
    unsigned n = fma ? 3 : 2;
    uint32_t s[3];
    if ((t != WS_T_F16 && t != WS_T_BF16) || i->n_operands != n + 1 || i->ext ||
        (i->flags & (WS_F_FTZ | WS_F_RELU)) ||
        (i->op != WS_OP_ADD && i->op != WS_OP_SUB && i->op != WS_OP_FMA))
        return no_such(d, i);
    for (unsigned k = 0; k < n; k++) {
        bool is_f32 = k == n - 1;
        s[k] = ws_dec_src(d, &i->operands[k + 1], is_f32 ? WS_T_F32 : t);
        if (is_f32)
            continue;
        uint32_t row = ws_dec_temp(d, 4);
        ws_dec_emit3(d, t == WS_T_F16 ? WS_H_cvt_f32_f16 : WS_H_cvt_f32_bf16, row, s[k], 0);
        s[k] = row;
    }
    uint32_t dst = ws_dec_dst(d, &i->operands[0], WS_T_F32, &finish);
    enum ws_handler h = i->op == WS_OP_SUB ? WS_H_sub_f32 : WS_H_add_f32;
    if (fma)
        h = i->rnd > WS_RND_RN ? WS_H_fmam_f32 : WS_H_fma_f32;
    struct ws_uop *u = ws_dec_emit3(d, h, dst, s[0], s[1]);
    u->c = fma ? (int32_t)s[2] : 0;
    u->mx = mxcsr(i, true);
    if (i->flags & WS_F_SAT)
        post(d, WS_H_sat_f32, (int32_t)dst);
    return true;
}

/* ---- two floats ---- */
static bool f32x2(struct ws_dec *d, insn i)
{
    bool fma = i->op == WS_OP_FMA, finish;
    unsigned n = fma ? 3 : 2;
    uint32_t part[2], s[3][2];
    enum ws_handler h;
    switch (i->op) {
    case WS_OP_ADD:
        h = WS_H_add_f32;
        break;
    case WS_OP_SUB:
        h = WS_H_sub_f32;
        break;
    case WS_OP_MUL:
        h = WS_H_mul_f32;
        break;
    case WS_OP_FMA:
        h = i->rnd > WS_RND_RN ? WS_H_fmam_f32 : WS_H_fma_f32;
        break;
    default:
        return no_such(d, i);
    }
    if (i->n_types != 1 || i->n_operands != n + 1 || i->ext || (i->flags & ~(uint32_t)WS_F_FTZ))
        return no_such(d, i);
    for (unsigned k = 0; k < n; k++) {
        uint32_t row = ws_dec_src(d, &i->operands[k + 1], WS_T_B64);
        for (unsigned l = 0; l < 2; l++) {
            s[k][l] = ws_dec_temp(d, 4);
            ws_dec_emit3(d, l ? WS_H_unhi_32 : WS_H_unlo_32, s[k][l], row, 0);
        }
    }
    for (unsigned l = 0; l < 2; l++) {
        part[l] = ws_dec_temp(d, 4);
        struct ws_uop *u = ws_dec_emit3(d, h, part[l], s[0][l], s[1][l]);
        u->c = fma ? (int32_t)s[2][l] : 0;
        u->mx = mxcsr(i, true);
    }
    uint32_t dst = ws_dec_dst(d, &i->operands[0], WS_T_B64, &finish);
    ws_dec_emit3(d, WS_H_pack2_32, dst, part[0], part[1]);
    return true;
}

bool ws_dec_half(struct ws_dec *d, insn i)
{
    if (i->n_types == 0 || i->op == WS_OP_CVT)
        return false;
    if (i->types[0] == WS_T_F32X2) {
        f32x2(d, i);
        return true;
    }
    for (size_t k = 0; k < WS_ARRAY_SIZE(half_rows); k++) {
        if (half_rows[k].op != i->op)
            continue;
        if (is_half(i->types[0])) {
            half(d, i, &half_rows[k]);
            return true;
        }
        if (i->n_types == 2 && i->types[0] == WS_T_F32) {
            mixed(d, i);
            return true;
        }
    }
    return false;
}

// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/cvt.c - moves and conversions (PTX ISA 9.7.9).
 *
 * Conversions between integers, floats and doubles, and the common ones from and to halves, have
 * vector handlers, mostly in two steps that are exact but for the last. All others are one rounding
 * in ws_lane_cvt(). What is said in a modifier that nobody here knows is refused. */
#include <string.h>

#include "device/soft/decode/util.h"

/* ---- moves ---- */
/* Joins n parts of each bytes to a row of n * each, 8 at most; @to: where to, or 0: a temporary
 * row. */
static uint32_t join(struct ws_dec *d, uint32_t to, const uint32_t *parts, unsigned n,
                     unsigned each)
{
    unsigned bytes = n * each;
    if (n == 1)
        return to ? ws_dec_mov(d, bytes, to, parts[0]) : parts[0];
    uint32_t lo = join(d, 0, parts, n / 2, each), hi = join(d, 0, parts + n / 2, n / 2, each);
    if (!to)
        to = ws_dec_temp(d, bytes);
    ws_dec_emit3(d,
                 bytes == 2   ? WS_H_pack2_8
                 : bytes == 4 ? WS_H_pack2_16
                              : WS_H_pack2_32,
                 to, lo, hi);
    return to;
}

/* Takes row apart. @to: n rows, each 0: not wanted. */
static void part(struct ws_dec *d, uint32_t row, const uint32_t *to, unsigned n, unsigned each)
{
    unsigned bytes = n * each;
    if (n == 1) {
        if (to[0])
            ws_dec_mov(d, bytes, to[0], row);
        return;
    }
    for (unsigned k = 0; k < 2; k++) {
        uint32_t half = n == 2 ? to[k] : ws_dec_temp(d, bytes / 2);
        static const uint16_t halves[][2] = {{WS_H_unlo_8, WS_H_unhi_8}, /* by bytes: 2, 4, 8 */
                                             {WS_H_unlo_16, WS_H_unhi_16},
                                             {WS_H_unlo_32, WS_H_unhi_32}};
        enum ws_handler h = halves[WS_MIN(bytes / 4, 2u)][k];
        if (!half)
            continue;
        ws_dec_emit3(d, h, half, row, 0);
        if (n > 2)
            part(d, half, to + k * n / 2, n / 2, each);
    }
}

static bool parts_ok(unsigned bytes, unsigned n)
{
    unsigned each = n ? bytes / n : 0;
    return (n == 2 || n == 4) && each * n == bytes && each <= 8;
}

static void mov_pack(struct ws_dec *d, insn i, type t)
{
    const struct ws_ptx_operand *dst = &i->operands[0], *v = &i->operands[1];
    unsigned bytes = ws_ptx_type_bytes(t), n = v->n, each = n ? bytes / n : 0;
    bool finish;
    uint32_t s[4], to;
    if (!parts_ok(bytes, n)) {
        no_such(d, i);
        return;
    }
    for (unsigned k = 0; k < n; k++)
        s[k] = ws_dec_src(d, &v->v[k], ws_ptx_bits_type(each));
    if (bytes == 16) {
        to = ws_dec_dst128(d, dst);
        join(d, to, s, n / 2, each);
        join(d, to + WS_DEC_HIGH_HALF, s + n / 2, n / 2, each);
        return;
    }
    to = ws_dec_dst(d, dst, t, &finish);
    join(d, to, s, n, each);
    if (finish)
        ws_dec_finish(d, dst, t, to);
}

static void mov_unpack(struct ws_dec *d, insn i, type t)
{
    const struct ws_ptx_operand *v = &i->operands[0];
    unsigned bytes = ws_ptx_type_bytes(t), n = v->n, each = n ? bytes / n : 0;
    uint32_t to[4] = {0};
    bool finish[4] = {false};
    if (!parts_ok(bytes, n)) {
        no_such(d, i);
        return;
    }
    /* registers of the parts are narrower than the source, so none of them is it; a wider one is
     * written last */
    for (unsigned k = 0; k < n; k++)
        if (v->v[k].kind != WS_OPD_SINK)
            to[k] = ws_dec_dst(d, &v->v[k], ws_ptx_bits_type(each), &finish[k]);
    if (bytes == 16) {
        uint32_t from = ws_dec_src128(d, &i->operands[1]);
        part(d, from, to, n / 2, each);
        part(d, from + WS_DEC_HIGH_HALF, to + n / 2, n / 2, each);
    } else {
        part(d, ws_dec_src(d, &i->operands[1], t), to, n, each);
    }
    for (unsigned k = 0; k < n; k++)
        if (finish[k])
            ws_dec_finish(d, &v->v[k], ws_ptx_bits_type(each), to[k]);
}

/* A vector register to another; they may be one and the same in another order. */
static void mov_elements(struct ws_dec *d, insn i, type t)
{
    const struct ws_ptx_operand *to = &i->operands[0], *from = &i->operands[1];
    uint32_t w = ws_dec_width(t), keep[4];
    bool finish;
    if (to->n != from->n || to->n > 4 || w == 0 || w > 8 || i->vec != to->n) {
        no_such(d, i);
        return;
    }
    for (unsigned k = 0; k < to->n; k++)
        keep[k] = ws_dec_mov(d, w, ws_dec_temp(d, w), ws_dec_src(d, &from->v[k], t));
    for (unsigned k = 0; k < to->n; k++) {
        uint32_t dst = ws_dec_dst(d, &to->v[k], t, &finish);
        ws_dec_mov(d, w, dst, keep[k]);
        if (finish)
            ws_dec_finish(d, &to->v[k], t, dst);
    }
}

void ws_dec_mov_insn(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (i->n_operands >= 2 && i->operands[0].kind == WS_OPD_VEC &&
        i->operands[1].kind == WS_OPD_VEC) {
        mov_elements(d, i, t);
    } else if (i->n_operands < 2 || i->vec > 1) {
        no_such(d, i);
    } else if (t == WS_T_PRED) {
        bool neg;
        uint32_t a = ws_dec_pred(d, &i->operands[1], &neg);
        ws_dec_emit3(d, WS_H_p_mov, ws_dec_pred_dst(d, &i->operands[0]), a, 0)->x = neg;
    } else if (i->operands[1].kind == WS_OPD_VEC) {
        mov_pack(d, i, t);
    } else if (i->operands[0].kind == WS_OPD_VEC) {
        mov_unpack(d, i, t);
    } else if (t == WS_T_B128) {
        uint32_t a = ws_dec_src128(d, &i->operands[1]), to = ws_dec_dst128(d, &i->operands[0]);
        ws_dec_mov(d, 8, to, a);
        ws_dec_mov(d, 8, to + WS_DEC_HIGH_HALF, a + WS_DEC_HIGH_HALF);
    } else {
        op1(d, i, W3(mov)[wi(t)], t, t);
    }
}

/* ---- conversion ---- */
static bool is_int(type t)
{
    return (t >= WS_T_B8 && t <= WS_T_S64 && t != WS_T_B128);
}

/* Row of 8-byte lanes limited to what type t holds; source type s says how the row is signed. */
static void clamp_to(struct ws_dec *d, uint32_t row, type t, type s)
{
    unsigned bitsn = 8 * ws_ptx_type_bytes(t);
    uint64_t max = is_signed(t)  ? (UINT64_C(1) << (bitsn - 1)) - 1
                   : bitsn == 64 ? ~UINT64_C(0)
                                 : (UINT64_C(1) << bitsn) - 1;
    if (!is_signed(s)) {
        ws_dec_emit3(d, WS_H_clamp_u64, row, row, row)->c = (int32_t)ws_dec_const(d, 8, max);
        return;
    }
    uint64_t min = is_signed(t) ? 0 - max - 1 : 0;
    if (max > INT64_MAX)
        max = INT64_MAX;
    ws_dec_emit3(d, WS_H_clamp_s64, row, row, ws_dec_const(d, 8, min))->c =
        (int32_t)ws_dec_const(d, 8, max);
}

static void store_result(struct ws_dec *d, insn i, type t, uint32_t row, uint32_t row_width)
{
    /* row: lanes of row_width whose low part is a value of type t */
    bool finish;
    uint32_t w = ws_dec_width(t), dst;
    if (row_width == w && i->operands[0].kind == WS_OPD_REG) {
        dst = ws_dec_dst(d, &i->operands[0], t, &finish);
        if (finish)
            ws_dec_finish(d, &i->operands[0], t, row);
        else
            ws_dec_mov(d, w, dst, row);
        return;
    }
    dst = ws_dec_dst(d, &i->operands[0], t, &finish);
    ws_dec_emit3(d, ws_dec_cvt_int(w, ws_ptx_uint_type(row_width)), dst, row, 0);
    if (finish)
        ws_dec_finish(d, &i->operands[0], t, dst);
}

static void cvt_int_int(struct ws_dec *d, insn i, type td, type ts)
{
    uint32_t src = ws_dec_src(d, &i->operands[1], ts);
    bool finish;
    if (i->flags & WS_F_SAT) {
        uint32_t t = ws_dec_temp(d, 8);
        ws_dec_emit3(d, ws_dec_cvt_int(8, ts), t, src, 0);
        clamp_to(d, t, td, ts);
        store_result(d, i, td, t, 8);
        return;
    }
    uint32_t w = ws_dec_width(td), dst = ws_dec_dst(d, &i->operands[0], td, &finish);
    ws_dec_emit3(d, ws_dec_cvt_int(w, ts), dst, src, 0);
    if (finish)
        ws_dec_finish(d, &i->operands[0], td, dst);
}

/* Source as f32 or f64 row; *ts changes where a half became f32. */
static uint32_t float_src(struct ws_dec *d, insn i, const struct ws_ptx_operand *o, type *ts)
{
    uint32_t src = ws_dec_src(d, o, *ts), t;
    switch (*ts) {
    case WS_T_F16:
    case WS_T_BF16:
        t = ws_dec_temp(d, 4);
        ws_dec_emit3(d, *ts == WS_T_F16 ? WS_H_cvt_f32_f16 : WS_H_cvt_f32_bf16, t, src, 0);
        *ts = WS_T_F32;
        return t;
    case WS_T_F32:
        if (!(i->flags & WS_F_FTZ))
            return src;
        t = ws_dec_temp(d, 4);
        ws_dec_emit3(d, WS_H_flush_f32, t, src, 0);
        return t;
    default:
        return src;
    }
}

static void cvt_float_int(struct ws_dec *d, insn i, type td, type ts)
{
    uint32_t src = float_src(d, i, &i->operands[1], &ts);
    bool f64 = ts == WS_T_F64, finish;
    if (i->rnd != WS_RND_RZI && i->rnd != WS_RND_NONE && i->rnd != WS_RND_RZ) {
        uint32_t t = ws_dec_temp(d, f64 ? 8 : 4);
        ws_dec_emit3(d, f64 ? WS_H_rint_f64 : WS_H_rint_f32, t, src, 0)->mx =
            mxcsr(i, true) & ~0x8040u;
        src = t;
    }
    if (ws_ptx_type_bytes(td) < 4) {
        uint32_t t = ws_dec_temp(d, 8), n = f64 ? 0 : ws_dec_temp(d, 4);
        if (f64) {
            ws_dec_lane(d, ws_lane_f64_to_narrow,
                        8 * ws_ptx_type_bytes(td) | (is_signed(td) ? 0x100 : 0), t, 8, 1,
                        (const uint32_t[]){src}, (const uint32_t[]){8});
        } else { /* what 32 bits do not hold, fewer do not either */
            ws_dec_emit3(d, WS_H_cvt_s32_f32, n, src, 0);
            ws_dec_emit3(d, WS_H_cvt_64_s32, t, n, 0);
            clamp_to(d, t, td, WS_T_S64);
        }
        store_result(d, i, td, t, 8);
        return;
    }
    bool s = is_signed(td), w = ws_ptx_type_bytes(td) == 8;
    static const uint16_t to_int[2][2][2] = {
        /* from f64, to 64 bits, signed */
        {{WS_H_cvt_u32_f32, WS_H_cvt_s32_f32}, {WS_H_cvt_u64_f32, WS_H_cvt_s64_f32}},
        {{WS_H_cvt_u32_f64, WS_H_cvt_s32_f64}, {WS_H_cvt_u64_f64, WS_H_cvt_s64_f64}}};
    enum ws_handler h = to_int[f64][w][s];
    uint32_t dst = ws_dec_dst(d, &i->operands[0], td, &finish);
    ws_dec_emit3(d, h, dst, src, 0);
    if (finish)
        ws_dec_finish(d, &i->operands[0], td, dst);
}

static void cvt_to_float(struct ws_dec *d, insn i, type td, type ts)
{
    uint32_t src, t;
    bool finish;
    if (is_int(ts)) {
        src = ws_dec_src(d, &i->operands[1], ts);
        if (ws_ptx_type_bytes(ts) < 4) {
            t = ws_dec_temp(d, 4);
            ws_dec_emit3(d, ws_dec_cvt_int(4, ts), t, src, 0);
            src = t;
            ts = is_signed(ts) ? WS_T_S32 : WS_T_U32;
        }
    } else {
        src = float_src(d, i, &i->operands[1], &ts);
    }
    bool s = is_signed(ts), w = ws_ptx_type_bytes(ts) == 8,
         half = td == WS_T_F16 || td == WS_T_BF16;
    type mid =
        td == WS_T_F64 || (half && is_int(ts)) ? WS_T_F64 : WS_T_F32; /* what is computed first */
    if (half && ts == WS_T_F64)
        mid = WS_T_F64;
    uint32_t dst = ws_dec_dst(d, &i->operands[0], td, &finish),
             row = half ? ws_dec_temp(d, mid == WS_T_F64 ? 8 : 4) : dst;
    struct ws_uop *u;
    static const uint16_t of_int[2][2][2] = {
        /* to f64, from 64 bits, signed */
        {{WS_H_cvt_f32_u32, WS_H_cvt_f32_s32}, {WS_H_cvt_f32_u64, WS_H_cvt_f32_s64}},
        {{WS_H_cvt_f64_u32, WS_H_cvt_f64_s32}, {WS_H_cvt_f64_u64, WS_H_cvt_f64_s64}}};
    static const uint16_t to_bf16[2] = {WS_H_cvt_bf16_f32, WS_H_cvt_rz_bf16_f32}; /* toward zero */
    static const uint16_t to_f16[2][2] = {/* from f64, toward zero */
                                          {WS_H_cvt_f16_f32, WS_H_cvt_rz_f16_f32},
                                          {WS_H_cvt_f16_f64, WS_H_cvt_rz_f16_f64}};
    if (is_int(ts))
        u = ws_dec_emit3(d, of_int[mid == WS_T_F64][w][s], row, src, 0);
    else if (ts == mid && i->rnd >= WS_RND_RNI)
        u = ws_dec_emit3(d, ts == WS_T_F64 ? WS_H_rint_f64 : WS_H_rint_f32, row, src, 0);
    else if (ts == mid)
        u = ws_dec_emit3(d, ts == WS_T_F64 ? WS_H_mov_64 : WS_H_mov_32, row, src, 0);
    else
        u = ws_dec_emit3(d, mid == WS_T_F64 ? WS_H_cvt_f64_f32 : WS_H_cvt_f32_f64, row, src, 0);
    u->mx = mxcsr(i, !half);
    if (i->rnd >= WS_RND_RNI)
        u->mx &= ~0x8040u; /* the result is integral; float_src() flushed the source */
    if ((i->flags & WS_F_RELU) && mid == WS_T_F32)
        post(d, WS_H_relu_f32, (int32_t)row);
    if (half) {
        bool rz = i->rnd == WS_RND_RZ;
        ws_dec_emit3(d, td == WS_T_BF16 ? to_bf16[rz] : to_f16[mid == WS_T_F64][rz], dst, row, 0);
    } else if (i->flags & WS_F_SAT) {
        post(d, td == WS_T_F64 ? WS_H_sat_f64 : WS_H_sat_f32, (int32_t)dst);
    }
    if (finish)
        ws_dec_finish(d, &i->operands[0],
                      half             ? WS_T_U16
                      : td == WS_T_F64 ? WS_T_U64
                                       : WS_T_U32,
                      dst);
}

/* ---- one rounding in ws_lane_cvt() ---- */
static const struct {
    uint8_t t, fmt;
    bool pair;
} formats[] = {
    {WS_T_F16, WS_FMT_F16, false},      {WS_T_BF16, WS_FMT_BF16, false},
    {WS_T_TF32, WS_FMT_TF32, false},    {WS_T_F32, WS_FMT_F32, false},
    {WS_T_F64, WS_FMT_F64, false},      {WS_T_F16X2, WS_FMT_F16, true},
    {WS_T_BF16X2, WS_FMT_BF16, true},   {WS_T_E4M3X2, WS_FMT_E4M3, true},
    {WS_T_E5M2X2, WS_FMT_E5M2, true},   {WS_T_E2M3X2, WS_FMT_E2M3, true},
    {WS_T_E3M2X2, WS_FMT_E3M2, true},   {WS_T_E2M1X2, WS_FMT_E2M1, true},
    {WS_T_UE8M0X2, WS_FMT_UE8M0, true},
};

static int format_of(type t, bool *ret_pair)
{
    for (size_t k = 0; k < WS_ARRAY_SIZE(formats); k++)
        if (formats[k].t == t) {
            *ret_pair = formats[k].pair;
            return formats[k].fmt;
        }
    return -1;
}

/* The type of the register that holds a value of type t. */
static type carrier(type t)
{
    switch (t) {
    case WS_T_TF32:
        return WS_T_B32;
    case WS_T_E2M1X2:
        return WS_T_B8;
    case WS_T_E4M3X2:
    case WS_T_E5M2X2:
    case WS_T_E2M3X2:
    case WS_T_E3M2X2:
    case WS_T_UE8M0X2:
        return WS_T_B16;
    default:
        return t;
    }
}

static uint32_t cvt_flags(insn i, bool satfinite)
{
    uint32_t x = satfinite ? WS_CVT_SATFINITE : 0;
    if (i->flags & WS_F_SAT)
        x |= WS_CVT_SAT;
    if (i->flags & WS_F_RELU)
        x |= WS_CVT_RELU;
    if (i->flags & WS_F_FTZ)
        x |= WS_CVT_FTZ;
    if (i->rnd >= WS_RND_RNI)
        x |= WS_CVT_INTEGRAL;
    return x | (uint32_t)i->rnd << WS_CVT_RND_SHIFT;
}

static void cvt_lane(struct ws_dec *d, insn i, type td, type ts, bool satfinite)
{
    bool pair_d = false, pair_s = false, finish;
    int fd = format_of(td, &pair_d), fs = format_of(ts, &pair_s);
    uint32_t x = cvt_flags(i, satfinite), s[2], w[2];
    unsigned n = i->n_operands - 1u;
    if (is_int(ts))
        fs = is_signed(ts) ? WS_FMT_S64 : WS_FMT_U64;
    if (fd < 0 || fs < 0 || n != (pair_d && !pair_s ? 2u : 1u) || (pair_s && !pair_d)) {
        no_such(d, i);
        return;
    }
    x |= (uint32_t)fd << WS_CVT_DST_SHIFT | (uint32_t)fs << WS_CVT_SRC_SHIFT |
         (pair_d ? WS_CVT_PAIR : 0) | (pair_s ? WS_CVT_PAIR_SRC : 0);
    for (unsigned k = 0; k < n; k++) {
        s[k] = ws_dec_src(d, &i->operands[k + 1], carrier(ts));
        w[k] = ws_dec_width(carrier(ts));
        if (!is_int(ts))
            continue;
        uint32_t wide = ws_dec_temp(d, 8);
        ws_dec_emit3(d, ws_dec_cvt_int(8, ts), wide, s[k], 0);
        s[k] = wide;
        w[k] = 8;
    }
    td = carrier(td);
    uint32_t dst = ws_dec_dst(d, &i->operands[0], td, &finish);
    ws_dec_lane(d, ws_lane_cvt, x, dst, ws_dec_width(td), n, s, w);
    if (finish) /* bits: a narrow float in a wider register is extended by zeros */
        ws_dec_finish(d, &i->operands[0], ws_ptx_bits_type(ws_dec_width(td)), dst);
}

/* Conversions that have vector handlers and are common. */
static bool has_handlers(insn i, type td, type ts)
{
    bool half = td == WS_T_F16 || td == WS_T_BF16;
    if (is_half(ts) && td == ts)
        return false;
    if (td == WS_T_F32 || td == WS_T_F64) /* bf16's subnormals are those of f32 */
        return !(i->flags & WS_F_RELU) && !(ts == WS_T_BF16 && (i->flags & WS_F_FTZ));
    if (!half || ts == WS_T_BF16 || (i->rnd != WS_RND_RN && i->rnd != WS_RND_RZ) ||
        (i->flags & (WS_F_SAT | WS_F_FTZ)))
        return false;
    return td == WS_T_F16 ? ts != WS_T_F16 : ts == WS_T_F32;
}

void ws_dec_cvt(struct ws_dec *d, insn i)
{
    type td = i->types[0], ts = i->n_types > 1 ? i->types[1] : td;
    bool satfinite = i->ext && strcmp(i->ext, ".satfinite") == 0,
         fs = ts == WS_T_F16 || ts == WS_T_BF16 || ts == WS_T_F32 || ts == WS_T_F64;
    if (i->n_operands < 2 || (i->ext && !satfinite)) {
        no_such(d, i);
    } else if ((td == WS_T_F16X2 || td == WS_T_BF16X2) && ts == WS_T_F32 && i->n_operands == 3 &&
               i->rnd == WS_RND_RN && !i->flags && !satfinite) {
        op2(d, i, td == WS_T_F16X2 ? WS_H_cvt_f16x2_f32 : WS_H_cvt_bf16x2_f32, WS_T_B32, WS_T_F32,
            WS_T_F32);
    } else if (td == WS_T_TF32 && ts == WS_T_F32 && i->rnd == WS_RND_RNA && i->n_operands == 2 &&
               !i->flags && !satfinite) {
        op1(d, i, WS_H_cvt_tf32_f32, WS_T_B32, WS_T_F32);
    } else if (is_int(td) && is_int(ts) && i->n_operands == 2) {
        cvt_int_int(d, i, td, ts);
    } else if (is_int(td) && fs && i->n_operands == 2) {
        cvt_float_int(d, i, td, ts);
    } else if ((fs || is_int(ts)) && i->n_operands == 2 && !satfinite && has_handlers(i, td, ts)) {
        cvt_to_float(d, i, td, ts);
    } else {
        cvt_lane(d, i, td, ts, satfinite);
    }
}

/* cvt.pack: saturated to a narrow integer, one beside the other, above them what is left of c.
 * Types below a byte are words that the table of types does not have. */
void ws_dec_cvt_pack(struct ws_dec *d, insn i)
{
    static const struct {
        const char *word;
        uint32_t x;
    } small[] = {{".u4", 4}, {".s4", 4 | 0x100}, {".u2", 2}, {".s2", 2 | 0x100}};
    uint32_t x = 0;
    unsigned k = 0;
    if (i->ext) {
        for (size_t n = 0; n < WS_ARRAY_SIZE(small); n++)
            if (strcmp(i->ext, small[n].word) == 0)
                x = small[n].x;
    } else {
        x = 8 * ws_ptx_type_bytes(i->types[0]) | (is_signed(i->types[0]) ? 0x100 : 0);
        k = 1;
    }
    bool three = (x & 0xff) <= 8;
    if (!x || (x & 0xff) > 16 || i->n_types != k + 1 + three || i->types[k] != WS_T_S32 ||
        (three && i->types[k + 1] != WS_T_B32) || i->n_operands != 3 + three ||
        !(i->flags & WS_F_SAT)) {
        no_such(d, i);
        return;
    }
    ws_dec_lane_n(d, i, ws_lane_pack, x | (three ? 0x200 : 0), WS_T_B32, three ? 3 : 2,
                  (const type[]){WS_T_B32, WS_T_B32, WS_T_B32});
}

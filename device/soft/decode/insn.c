// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/insn.c - one PTX instruction to micro-ops: arithmetic, conversion, memory,
 * synchronisation.
 *
 * The column "decode" of ptx/opcodes.def names the function here that decodes an opcode. A new
 * micro-op is a row in ../exec/ops.inc, or a handler in ../exec/core.inc and a line in
 * ../exec/list.inc. Rare operations are built from several micro-ops; only common ones have a
 * handler of their own. */
#include <string.h>

#include "device/soft/decode/util.h"

bool ws_dec_no_such(struct ws_dec *d, insn i)
{
    char text[160];
    ws_ptx_insn_text(d->m, d->df->f, i, text, sizeof(text));
    ws_dec_unsupported(d, "opcode %s is not supported in this form: %s", ws_ptx_op_name(i->op),
                       text);
    return false;
}

enum ws_work_class ws_dec_class(insn i)
{
    switch (ws_ptx_insn_mix(i)) {
    case WS_MIX_FP16:
        return WS_WORK_HALF;
    case WS_MIX_FP32:
        return WS_WORK_FP32;
    case WS_MIX_FP64:
        return WS_WORK_FP64;
    case WS_MIX_SFU:
        return WS_WORK_SFU;
    case WS_MIX_LDST:
    case WS_MIX_ATOM:
    case WS_MIX_TEX:
    case WS_MIX_SHUFFLE:
        return WS_WORK_LDST;
    case WS_MIX_SYNC:
    case WS_MIX_CTRL:
        return WS_WORK_CTRL;
    case WS_MIX_TENSOR:
        return WS_WORK_HALF;
    default:
        return WS_WORK_INT;
    }
}

static type widened(type t)
{
    switch (t) {
    case WS_T_U16:
        return WS_T_U32;
    case WS_T_S16:
        return WS_T_S32;
    case WS_T_U32:
        return WS_T_U64;
    default:
        return WS_T_S64;
    }
}

/* ---- floating arithmetic ---- */
static void float_op(struct ws_dec *d, insn i, enum ws_handler h32, enum ws_handler h64, unsigned n)
{
    type t = i->types[0], ts[3] = {t, t, t};
    if ((t != WS_T_F32 && t != WS_T_F64) || i->n_types > 1 || i->ext || (i->flags & WS_F_RELU)) {
        no_such(d, i);
        return;
    }
    struct ws_uop *u = op_n(d, i, t == WS_T_F32 ? h32 : h64, t, n, ts);
    u->mx = mxcsr(i, true);
    int32_t row = u->d;
    if (i->flags & WS_F_SAT)
        post(d, t == WS_T_F32 ? WS_H_sat_f32 : WS_H_sat_f64, row);
}

static void add_sub(struct ws_dec *d, insn i, bool sub)
{
    type t = i->types[0];
    if (t == WS_T_F32 || t == WS_T_F64) {
        float_op(d, i, sub ? WS_H_sub_f32 : WS_H_add_f32, sub ? WS_H_sub_f64 : WS_H_add_f64, 2);
    } else if (i->flags & WS_F_CC || i->op == WS_OP_ADDC || i->op == WS_OP_SUBC) {
        static const uint16_t carry[2][2] = {/* subtract, 64 bits */
                                             {WS_H_addc_32, WS_H_addc_64},
                                             {WS_H_subc_32, WS_H_subc_64}};
        if (!d->cf)
            d->cf = ws_dec_row_alloc(d, 0);
        struct ws_uop *u = op2(d, i, carry[sub][wi(t) != 1], t, t, t);
        u->c = u->a; /* not read */
        u->e = (int32_t)d->cf;
        u->x =
            ((i->op == WS_OP_ADDC || i->op == WS_OP_SUBC) ? 1 : 0) | (i->flags & WS_F_CC ? 2 : 0);
    } else if (t == WS_T_U16X2 || t == WS_T_S16X2) {
        if (sub)
            no_such(d, i);
        else
            op2(d, i, WS_H_add_x2, t, t, t);
    } else if (i->flags & WS_F_SAT) {
        op2(d, i, sub ? WS_H_sub_sat_s32 : WS_H_add_sat_s32, t, t, t);
    } else {
        op2(d, i, sub ? W3(sub)[wi(t)] : W3(add)[wi(t)], t, t, t);
    }
}

static void decode_add(struct ws_dec *d, insn i)
{
    add_sub(d, i, false);
}

static void decode_sub(struct ws_dec *d, insn i)
{
    add_sub(d, i, true);
}

static void decode_mul(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (t == WS_T_F32 || t == WS_T_F64) {
        float_op(d, i, WS_H_mul_f32, WS_H_mul_f64, 2);
    } else if (i->sub == WS_SUB_WIDE) {
        static const uint16_t h[] = {WS_H_mul_wide_u16, WS_H_mul_wide_u32, 0,
                                     WS_H_mul_wide_s16, WS_H_mul_wide_s32, 0};
        uint16_t k = h[wi(t) + (is_signed(t) ? 3 : 0)];
        if (k)
            op2(d, i, k, widened(t), t, t);
        else
            no_such(d, i);
    } else if (i->sub == WS_SUB_HI) {
        op2(d, i, is_signed(t) ? V3(mul_hi_s)[wi(t)] : V3(mul_hi_u)[wi(t)], t, t, t);
    } else {
        op2(d, i, W3(mul_lo)[wi(t)], t, t, t);
    }
}

static void decode_fma(struct ws_dec *d, insn i)
{
    /* with directed rounding, the emulation of fma in double would round twice */
    float_op(d, i, i->rnd > WS_RND_RN ? WS_H_fmam_f32 : WS_H_fma_f32, WS_H_fma_f64, 3);
}

static void decode_mad(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (t == WS_T_F32 || t == WS_T_F64) {
        decode_fma(d, i);
        return;
    }
    if (i->op == WS_OP_MADC || (i->flags & WS_F_CC)) {
        if (!d->cf)
            d->cf = ws_dec_row_alloc(d, 0);
        struct ws_uop *u = op3(d, i, wi(t) == 1 ? WS_H_madc_32 : WS_H_madc_64, t, t, t, t);
        u->e = (int32_t)d->cf;
        u->x = (i->op == WS_OP_MADC ? 1 : 0) | (i->flags & WS_F_CC ? 2 : 0) |
               (i->sub != WS_SUB_HI ? 0
                : is_signed(t)      ? 8
                                    : 4);
        return;
    }
    if (i->sub == WS_SUB_WIDE) {
        static const uint16_t h[] = {WS_H_mad_wide_u16, WS_H_mad_wide_u32, 0,
                                     WS_H_mad_wide_s16, WS_H_mad_wide_s32, 0};
        uint16_t k = h[wi(t) + (is_signed(t) ? 3 : 0)];
        if (k)
            op3(d, i, k, widened(t), t, t, widened(t));
        else
            no_such(d, i);
        return;
    }
    if (i->sub == WS_SUB_HI) {
        if (i->n_operands < 4) {
            no_such(d, i);
            return;
        }
        uint32_t a = ws_dec_src(d, &i->operands[1], t), b = ws_dec_src(d, &i->operands[2], t),
                 c = ws_dec_src(d, &i->operands[3], t);
        uint32_t hi = ws_dec_temp(d, ws_dec_width(t));
        bool finish;
        ws_dec_emit3(d, is_signed(t) ? V3(mul_hi_s)[wi(t)] : V3(mul_hi_u)[wi(t)], hi, a, b);
        uint32_t dst = ws_dec_dst(d, &i->operands[0], t, &finish);
        ws_dec_emit3(d, i->flags & WS_F_SAT ? WS_H_add_sat_s32 : (enum ws_handler)W3(add)[wi(t)],
                     dst, hi, c);
        if (finish)
            ws_dec_finish(d, &i->operands[0], t, dst);
        return;
    }
    op3(d, i, W3(mad_lo)[wi(t)], t, t, t, t);
}

static void decode_mul24(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    static const uint16_t of[2][2] = {/* the high half, signed */
                                      {WS_H_mul24_lo_u32, WS_H_mul24_lo_s32},
                                      {WS_H_mul24_hi_u32, WS_H_mul24_hi_s32}};
    enum ws_handler h = of[i->sub == WS_SUB_HI][is_signed(t)];
    if (i->op == WS_OP_MUL24) {
        op2(d, i, h, t, t, t);
        return;
    }
    if (i->n_operands < 4) {
        no_such(d, i);
        return;
    }
    uint32_t a = ws_dec_src(d, &i->operands[1], t), b = ws_dec_src(d, &i->operands[2], t),
             c = ws_dec_src(d, &i->operands[3], t), p = ws_dec_temp(d, 4);
    bool finish;
    ws_dec_emit3(d, h, p, a, b);
    uint32_t dst = ws_dec_dst(d, &i->operands[0], t, &finish);
    ws_dec_emit3(d, i->flags & WS_F_SAT ? WS_H_add_sat_s32 : WS_H_add_32, dst, p, c);
    if (finish)
        ws_dec_finish(d, &i->operands[0], t, dst);
}

static void decode_div_rem(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (t == WS_T_F32 || t == WS_T_F64)
        float_op(d, i, i->flags & WS_F_APPROX ? WS_H_div_approx_f32 : WS_H_div_f32, WS_H_div_f64,
                 2);
    else if (i->op == WS_OP_DIV)
        op2(d, i, is_signed(t) ? V3(div_s)[wi(t)] : V3(div_u)[wi(t)], t, t, t);
    else
        op2(d, i, is_signed(t) ? V3(rem_s)[wi(t)] : V3(rem_u)[wi(t)], t, t, t);
}

static void abs_neg(struct ws_dec *d, insn i, bool neg)
{
    type t = i->types[0];
    struct ws_uop *u;
    switch (t) {
    case WS_T_F32:
        u = op1(d, i, neg ? WS_H_neg_f32 : WS_H_abs_f32, t, t);
        break;
    case WS_T_F64:
        u = op1(d, i, neg ? WS_H_neg_f64 : WS_H_abs_f64, t, t);
        break;
    case WS_T_S16:
    case WS_T_S32:
    case WS_T_S64:
        u = op1(d, i, neg ? W3(neg)[wi(t)] : W3(abs)[wi(t)], t, t);
        break;
    default:
        no_such(d, i);
        return;
    }
    if ((i->flags & WS_F_FTZ) && t == WS_T_F32)
        post(d, WS_H_flush_f32, u->d);
}

static void decode_abs(struct ws_dec *d, insn i)
{
    abs_neg(d, i, false);
}

static void decode_neg(struct ws_dec *d, insn i)
{
    abs_neg(d, i, true);
}

/* Floats: two or three operands; .abs of them first; .xorsign.abs: the sign of a product. */
static void min_max_f32(struct ws_dec *d, insn i, bool max)
{
    bool nan = i->flags & WS_F_NAN, xorsign = i->flags & WS_F_XORSIGN_ABS,
         abs = xorsign || (i->ext && strcmp(i->ext, ".abs") == 0), finish;
    static const uint16_t of[2][2] = {/* max, NaN where an operand is NaN */
                                      {WS_H_min_f32, WS_H_min_nan_f32},
                                      {WS_H_max_f32, WS_H_max_nan_f32}};
    enum ws_handler h = of[max][nan];
    unsigned n = i->n_operands - 1u;
    uint32_t s[3], a[3], row;
    if (n < 2 || n > 3 || (n == 3 && xorsign) || (i->ext && !abs) || (i->flags & WS_F_RELU)) {
        no_such(d, i);
        return;
    }
    for (unsigned k = 0; k < n; k++) {
        s[k] = a[k] = ws_dec_src(d, &i->operands[k + 1], WS_T_F32);
        if (!abs)
            continue;
        a[k] = ws_dec_temp(d, 4);
        ws_dec_emit3(d, WS_H_abs_f32, a[k], s[k], 0);
    }
    uint32_t dst = ws_dec_dst(d, &i->operands[0], WS_T_F32, &finish);
    row = xorsign || n == 3 ? ws_dec_temp(d, 4) : dst;
    ws_dec_emit3(d, h, row, a[0], a[1]);
    if (n == 3)
        ws_dec_emit3(d, h, dst, row, a[2]);
    if (i->flags & WS_F_FTZ)
        post(d, WS_H_flush_f32, (int32_t)(n == 3 ? dst : row));
    if (xorsign) {
        struct ws_uop *u = ws_dec_emit3(d, WS_H_xorsign_f32, dst, row, s[0]);
        u->c = (int32_t)s[1];
    }
}

static enum ws_handler min_max_handler(type t, bool max)
{
    switch (t) {
    case WS_T_F64:
        return max ? WS_H_max_f64 : WS_H_min_f64;
    case WS_T_U16X2:
        return max ? WS_H_max_u16x2 : WS_H_min_u16x2;
    case WS_T_S16X2:
        return max ? WS_H_max_s16x2 : WS_H_min_s16x2;
    default:
        if (is_signed(t))
            return (max ? V3(max_s) : V3(min_s))[wi(t)];
        return (max ? V3(max_u) : V3(min_u))[wi(t)];
    }
}

static void min_max(struct ws_dec *d, insn i, bool max)
{
    type t = i->types[0];
    if (t == WS_T_F32) {
        min_max_f32(d, i, max);
        return;
    }
    if (i->n_operands > 3 || i->ext || (i->flags & ~(uint32_t)WS_F_RELU) ||
        ((i->flags & WS_F_RELU) && t != WS_T_S32 && t != WS_T_S16X2)) {
        no_such(d, i);
        return;
    }
    int32_t row = op2(d, i, min_max_handler(t, max), t, t, t)->d;
    if (i->flags & WS_F_RELU)
        ws_dec_emit3(d, t == WS_T_S32 ? WS_H_max_s32 : WS_H_max_s16x2, (uint32_t)row, (uint32_t)row,
                     ws_dec_const(d, 4, 0));
}

static void decode_min(struct ws_dec *d, insn i)
{
    min_max(d, i, false);
}

static void decode_max(struct ws_dec *d, insn i)
{
    min_max(d, i, true);
}

static void decode_sfu(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    bool f64 = t == WS_T_F64;
    if (t != WS_T_F32 &&
        !(f64 && (i->op == WS_OP_RCP || i->op == WS_OP_SQRT || i->op == WS_OP_RSQRT))) {
        no_such(d, i);
        return;
    }
    static const struct {
        uint16_t op, h32, h64;
    } table[] = {
        {WS_OP_RCP, WS_H_rcp_f32, WS_H_rcp_f64},
        {WS_OP_SQRT, WS_H_sqrt_f32, WS_H_sqrt_f64},
        {WS_OP_RSQRT, WS_H_rsqrt_f32, WS_H_rsqrt_f64},
        {WS_OP_SIN, WS_H_sin_f32, 0},
        {WS_OP_COS, WS_H_cos_f32, 0},
        {WS_OP_LG2, WS_H_lg2_f32, 0},
        {WS_OP_EX2, WS_H_ex2_f32, 0},
        {WS_OP_TANH, WS_H_tanh_f32, 0},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(table); k++) {
        if (table[k].op != i->op)
            continue;
        if (f64 && (i->flags & WS_F_APPROX) && (i->flags & WS_F_FTZ)) {
            ws_dec_lane_n(d, i, ws_lane_approx_f64, i->op == WS_OP_RSQRT, t, 1, &t);
            return;
        }
        struct ws_uop *u = op1(d, i, f64 ? table[k].h64 : table[k].h32, t, t);
        u->mx = mxcsr(i, true);
    }
}

static void decode_logic(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (t == WS_T_PRED) {
        bool na = false, nb = false;
        uint32_t a = ws_dec_pred(d, &i->operands[1], &na);
        if (i->op == WS_OP_NOT) {
            ws_dec_emit3(d, WS_H_p_mov, ws_dec_pred_dst(d, &i->operands[0]), a, 0)->x = !na;
            return;
        }
        uint32_t b = ws_dec_pred(d, &i->operands[2], &nb);
        ws_dec_emit3(d,
                     i->op == WS_OP_AND  ? WS_H_p_and
                     : i->op == WS_OP_OR ? WS_H_p_or
                                         : WS_H_p_xor,
                     ws_dec_pred_dst(d, &i->operands[0]), a, b)
            ->x = (uint32_t)na | (uint32_t)nb << 1;
        return;
    }
    switch (i->op) {
    case WS_OP_AND:
        op2(d, i, W3(and)[wi(t)], t, t, t);
        break;
    case WS_OP_OR:
        op2(d, i, W3(or)[wi(t)], t, t, t);
        break;
    case WS_OP_XOR:
        op2(d, i, W3(xor)[wi(t)], t, t, t);
        break;
    case WS_OP_NOT:
        op1(d, i, W3(not )[wi(t)], t, t);
        break;
    default:
        op1(d, i, W3(cnot)[wi(t)], t, t);
        break;
    }
}

static void decode_shift(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (i->op == WS_OP_SHL)
        op2(d, i, W3(shl)[wi(t)], t, t, WS_T_U32);
    else
        op2(d, i, is_signed(t) ? V3(shr_s)[wi(t)] : V3(shr_u)[wi(t)], t, t, WS_T_U32);
}

static const uint16_t bfind[2][2][2] = {
    /* .shiftamt, 64 bits, signed */
    {{WS_H_bfind_u32, WS_H_bfind_s32}, {WS_H_bfind_u64, WS_H_bfind_s64}},
    {{WS_H_bfind_amt_u32, WS_H_bfind_amt_s32}, {WS_H_bfind_amt_u64, WS_H_bfind_amt_s64}}};
static const uint16_t bfe[2][2] = {/* 64 bits, signed */
                                   {WS_H_bfe_u32, WS_H_bfe_s32},
                                   {WS_H_bfe_u64, WS_H_bfe_s64}};
static const uint16_t shf[2][2] = {/* left, .wrap */
                                   {WS_H_shf_r_clamp, WS_H_shf_r_wrap},
                                   {WS_H_shf_l_clamp, WS_H_shf_l_wrap}};
static const uint16_t dp4a[2][2] = {/* the first operand signed, the second signed */
                                    {WS_H_dp4a_uu, WS_H_dp4a_us},
                                    {WS_H_dp4a_su, WS_H_dp4a_ss}};

static void decode_bits(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    bool w = wi(t) == 2, s = is_signed(t), amt = i->flags & WS_F_SHIFTAMT;
    switch (i->op) {
    case WS_OP_POPC:
        op1(d, i, w ? WS_H_popc_64 : WS_H_popc_32, WS_T_U32, t);
        break;
    case WS_OP_CLZ:
        op1(d, i, w ? WS_H_clz_64 : WS_H_clz_32, WS_T_U32, t);
        break;
    case WS_OP_BREV:
        op1(d, i, w ? WS_H_brev_64 : WS_H_brev_32, t, t);
        break;
    case WS_OP_BFIND:
        op1(d, i, bfind[amt][w][s], WS_T_U32, t);
        break;
    case WS_OP_BFE:
        op3(d, i, bfe[w][s], t, t, WS_T_U32, WS_T_U32);
        break;
    case WS_OP_BFI:
        op_n(d, i, w ? WS_H_bfi_64 : WS_H_bfi_32, t, 4, (const type[]){t, t, WS_T_U32, WS_T_U32});
        break;
    case WS_OP_BMSK:
        op2(d, i, i->flags & WS_F_WRAP ? WS_H_bmsk_wrap : WS_H_bmsk_clamp, t, WS_T_U32, WS_T_U32);
        break;
    case WS_OP_SZEXT:
        if (i->flags & WS_F_WRAP)
            op2(d, i, s ? WS_H_szext_wrap_s32 : WS_H_szext_wrap_u32, t, t, WS_T_U32);
        else
            op2(d, i, s ? WS_H_szext_clamp_s32 : WS_H_szext_clamp_u32, t, t, WS_T_U32);
        break;
    case WS_OP_SHF: {
        bool wrap = i->flags & WS_F_WRAP;
        op3(d, i, shf[i->sub == WS_SUB_L][wrap], t, t, t, WS_T_U32);
        break;
    }
    case WS_OP_PRMT: {
        static const uint16_t of_mode[_WS_SUB_N] = {
            [WS_SUB_NONE] = WS_H_prmt,      [WS_SUB_F4E] = WS_H_prmt_f4e,
            [WS_SUB_B4E] = WS_H_prmt_b4e,   [WS_SUB_RC8] = WS_H_prmt_rc8,
            [WS_SUB_ECL] = WS_H_prmt_ecl,   [WS_SUB_ECR] = WS_H_prmt_ecr,
            [WS_SUB_RC16] = WS_H_prmt_rc16,
        };
        op3(d, i, of_mode[i->sub], t, t, t, WS_T_U32);
        break;
    }
    case WS_OP_DP4A: {
        bool sa = is_signed(t), sb = is_signed(i->types[1]);
        op3(d, i, dp4a[sa][sb], WS_T_U32, WS_T_U32, WS_T_U32, WS_T_U32);
        break;
    }
    case WS_OP_DP2A:
        ws_dec_lane_n(d, i, ws_lane_dp2a,
                      (s ? 1u : 0) | (is_signed(i->types[1]) ? 2u : 0) |
                          (i->sub == WS_SUB_HI ? 4u : 0),
                      WS_T_U32, 3, (const type[]){WS_T_U32, WS_T_U32, WS_T_U32});
        break;
    case WS_OP_FNS:
        ws_dec_lane_n(d, i, ws_lane_fns, 0, WS_T_U32, 3,
                      (const type[]){WS_T_U32, WS_T_U32, WS_T_U32});
        break;
    case WS_OP_SAD:
        op3(d, i, s ? V3(sad_s)[wi(t)] : V3(sad_u)[wi(t)], t, t, t, t);
        break;
    default:
        no_such(d, i);
        break;
    }
}

/* ---- warp and block ---- */
static void split_pair(const struct ws_ptx_operand *o, const struct ws_ptx_operand **d,
                       const struct ws_ptx_operand **p)
{
    *d = o;
    *p = NULL;
    if (o->kind == WS_OPD_PAIR) {
        *d = &o->v[0];
        *p = &o->v[1];
    }
}

static void decode_warp(struct ws_dec *d, insn i)
{
    const struct ws_ptx_operand *o = i->operands, *to, *pair;
    bool finish, neg = false, sync = i->flags & WS_F_SYNC, wide_or_signed;
    type t = i->n_types ? i->types[0] : WS_T_B32;
    uint32_t dst, row;
    static const struct ws_ptx_operand nowhere = {.kind = WS_OPD_SINK};
    struct ws_uop *u;
    switch (i->op) {
    case WS_OP_SHFL: {
        split_pair(&o[0], &to, &pair);
        if (i->n_operands < (sync ? 5u : 4u)) {
            no_such(d, i);
            return;
        }
        uint32_t a = ws_dec_src(d, &o[1], t), b = ws_dec_src(d, &o[2], WS_T_U32),
                 c = ws_dec_src(d, &o[3], WS_T_U32);
        row = sync ? ws_dec_src(d, &o[4], WS_T_U32) : 0;
        dst = ws_dec_dst(d, to, t, &finish);
        u = ws_dec_emit3(d, WS_H_shfl, dst, a, b);
        u->c = (int32_t)c;
        u->e = (int32_t)row;
        u->x = i->sub;
        u->imm = ws_dec_pred_dst(d, pair ? pair : &nowhere);
        return;
    }
    case WS_OP_VOTE: {
        uint32_t p = ws_dec_pred(d, &o[1], &neg);
        row = sync && i->n_operands > 2 ? ws_dec_src(d, &o[2], WS_T_U32) : 0;
        dst = i->sub == WS_SUB_BALLOT ? ws_dec_dst(d, &o[0], WS_T_B32, &finish)
                                      : ws_dec_pred_dst(d, &o[0]);
        u = ws_dec_emit3(d, WS_H_vote, dst, p, 0);
        u->e = (int32_t)row;
        u->x = i->sub | (uint32_t)neg << 8;
        return;
    }
    case WS_OP_MATCH:
    case WS_OP_REDUX:
        split_pair(&o[0], &to, &pair);
        if (i->n_operands < 3 || (i->op == WS_OP_REDUX && (t == WS_T_F32 || i->ext))) {
            no_such(d, i);
            return;
        }
        row = ws_dec_src(d, &o[2], WS_T_U32);
        {
            uint32_t a = ws_dec_src(d, &o[1], t);
            dst = ws_dec_dst(d, to, WS_T_B32, &finish);
            u = ws_dec_emit3(d, i->op == WS_OP_MATCH ? WS_H_match : WS_H_redux, dst, a, 0);
        }
        u->e = (int32_t)row;
        wide_or_signed = i->op == WS_OP_MATCH ? ws_ptx_type_bytes(t) == 8 : is_signed(t);
        u->x = i->sub | (wide_or_signed ? 0x100 : 0);
        u->imm = ws_dec_pred_dst(d, pair ? pair : &nowhere);
        return;
    case WS_OP_ELECT:
        split_pair(&o[0], &to, &pair);
        row = ws_dec_src(d, &o[1], WS_T_U32);
        dst = ws_dec_dst(d, to, WS_T_B32, &finish);
        u = ws_dec_emit3(d, WS_H_elect, dst, 0, 0);
        u->e = (int32_t)row;
        u->imm = ws_dec_pred_dst(d, pair ? pair : &nowhere);
        return;
    case WS_OP_ACTIVEMASK:
        dst = ws_dec_dst(d, &o[0], WS_T_B32, &finish);
        ws_dec_emit3(d, WS_H_activemask, dst, 0, 0);
        return;
    default: /* bar.warp.sync */
        row = ws_dec_src(d, &o[0], WS_T_U32);
        ws_dec_emit(d, WS_H_bar_warp)->e = (int32_t)row;
        return;
    }
}

/* bar: a barrier number row, b thread count row or 0; x: WS_SUB of red, or NONE, | 1 << 8 arrive, |
 * 1 << 9 d is a predicate, | 1 << 10 c inverted, | WS_X_PLAIN; c: predicate word of red; d:
 * destination */
static void decode_bar(struct ws_dec *d, insn i)
{
    const struct ws_ptx_operand *o = i->operands;
    bool red = i->op == WS_OP_BAR_RED || i->op == WS_OP_BARRIER_RED,
         arrive = i->op == WS_OP_BAR_ARRIVE || i->op == WS_OP_BARRIER_ARRIVE, neg = false,
         finish = false;
    unsigned at = red ? 1 : 0, n = i->n_operands - (red ? 2 : 0);
    if (i->n_operands < (red ? 2u : 1u) || n > 2 || (arrive && n != 2)) {
        no_such(d, i);
        return;
    }
    uint32_t id = n > 0 ? ws_dec_src(d, &o[at], WS_T_U32) : ws_dec_const(d, 4, 0),
             count = n > 1 ? ws_dec_src(d, &o[at + 1], WS_T_U32) : 0, p = 0, dst = 0, x = 0;
    if (red) {
        bool pred = i->sub != WS_SUB_POPC;
        p = ws_dec_pred(d, &o[i->n_operands - 1], &neg);
        dst = pred ? ws_dec_pred_dst(d, &o[0]) : ws_dec_dst(d, &o[0], WS_T_U32, &finish);
        x = i->sub | (pred ? 1u << 9 : 0) | (neg ? 1u << 10 : 0);
    }
    struct ws_uop *u = ws_dec_emit3(d, WS_H_bar, dst, id, count);
    u->c = (int32_t)p;
    bool plain = n == 0 || o[at].kind == WS_OPD_IMM;
    u->x = x | (arrive ? 1u << 8 : 0) | (plain ? (unsigned)WS_X_PLAIN : 0);
}

/* ---- the stack (9.7.18) ---- */
/* It grows from the end of a thread's local memory down to the frames of the functions that run. */
static void decode_stack(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    bool finish, alloc = i->op == WS_OP_ALLOCA;
    uint32_t sp = ws_dec_sp_row(d);
    int64_t align = alloc && i->n_operands > 2 ? i->operands[2].imm : 16;
    if (align <= 0 || align > 1 << 20 || (align & (align - 1))) {
        no_such(d, i);
        return;
    }
    if (i->op == WS_OP_STACKRESTORE) {
        uint32_t a = ws_dec_src(d, &i->operands[0], t), wide = ws_dec_temp(d, 8);
        ws_dec_emit3(d, ws_dec_cvt_int(8, t), wide, a, 0);
        ws_dec_emit3(d, WS_H_stack_set, 0, wide, sp);
        return;
    }
    uint32_t dst = ws_dec_dst(d, &i->operands[0], t, &finish);
    if (alloc) {
        uint32_t a = ws_dec_src(d, &i->operands[1], t), wide = ws_dec_temp(d, 8);
        ws_dec_emit3(d, ws_dec_cvt_int(8, ws_ptx_type_bytes(t) == 4 ? WS_T_U32 : WS_T_U64), wide, a,
                     0);
        struct ws_uop *u = ws_dec_emit3(d, WS_H_stack_take, 0, wide, sp);
        u->c = (int32_t)d->df->frame_bytes;
        u->imm = align;
    }
    ws_dec_emit3(d, ws_dec_cvt_int(ws_dec_width(t), WS_T_U32), dst, sp, 0);
    if (finish)
        ws_dec_finish(d, &i->operands[0], t, dst);
}

/* ---- what is too short for a group of its own ---- */
static void decode_testp(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    uint32_t a = ws_dec_src(d, &i->operands[1], t), p = ws_dec_pred_dst(d, &i->operands[0]);
    ws_dec_emit3(d, t == WS_T_F32 ? WS_H_testp_f32 : WS_H_testp_f64, p, a, 0)->x = i->sub;
}

static void decode_copysign(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    op2(d, i, t == WS_T_F32 ? WS_H_copysign_f32 : WS_H_copysign_f64, t, t, t);
}

static void decode_isspacep(struct ws_dec *d, insn i)
{
    uint32_t a = ws_dec_src(d, &i->operands[1], WS_T_U64);
    ws_dec_emit3(d, WS_H_isspacep, ws_dec_pred_dst(d, &i->operands[0]), a, 0)->x =
        i->space | (i->flags & WS_F_SP_CLUSTER ? (unsigned)WS_X_CLUSTER : 0);
}

/* The software GPU's caches keep no policies: any value does. */
static void decode_policy(struct ws_dec *d, insn i)
{
    bool finish;
    ws_dec_mov(d, 8, ws_dec_dst(d, &i->operands[0], WS_T_B64, &finish), ws_dec_const(d, 8, 0));
}

static void decode_nothing(struct ws_dec *d, insn i)
{
    (void)i;
    ws_dec_emit(d, WS_H_nop);
}

static void decode_fence(struct ws_dec *d, insn i)
{
    (void)i;
    ws_dec_emit(d, WS_H_membar);
}

static void decode_trap(struct ws_dec *d, insn i)
{
    (void)i;
    ws_dec_emit(d, WS_H_trap);
}

static void decode_brkpt(struct ws_dec *d, insn i)
{
    (void)i;
    ws_dec_emit(d, WS_H_brkpt);
}

static void decode_nanosleep(struct ws_dec *d, insn i)
{
    (void)i;
    ws_dec_emit(d, WS_H_nanosleep);
}

static void decode_none(struct ws_dec *d, insn i)
{
    no_such(d, i);
}

/* ---- the function that decodes an opcode: the column "decode" of opcodes.def ---- */
#define decode_setp     ws_dec_setp
#define decode_set      ws_dec_set
#define decode_selp     ws_dec_selp
#define decode_slct     ws_dec_slct
#define decode_lop3     ws_dec_lop3
#define decode_mov      ws_dec_mov_insn
#define decode_cvt      ws_dec_cvt
#define decode_cvt_pack ws_dec_cvt_pack
#define decode_cvta     ws_dec_cvta
#define decode_load     ws_dec_load
#define decode_store    ws_dec_store
#define decode_atom     ws_dec_atom
#define decode_red      ws_dec_red
#define decode_texture  ws_dec_tex
#define decode_matrix   ws_dec_matrix
#define decode_async    ws_dec_async
#define decode_video    ws_dec_video
#define decode_flow     decode_none /* flow.c decodes these before it comes here */

static void (*const decoders[_WS_OP_N])(struct ws_dec *d, insn i) = {
#define WS_OP(id, name, mods, subs, sig, min, max, t0, t1, effect, mix, does, decode, meaning)     \
    [WS_OP_##id] = decode_##decode,
#include "ptx/opcodes.def"
#undef WS_OP
};

/* Types that only conversions, matrix instructions and half.c know. */
static bool is_rare(type t)
{
    return t >= WS_T_F32X2 || (t >= WS_T_TEXREF && t <= WS_T_SURFREF);
}

void ws_dec_insn(struct ws_dec *d, insn i)
{
    bool as_text = ws_ptx_ops[i->op].mods[0] == 'W'; /* the decoder reads the modifiers itself */
    if (!as_text && ws_dec_half(d, i))
        return;
    for (unsigned k = 0; k < i->n_types; k++)
        if (!as_text && i->op != WS_OP_CVT && is_rare(i->types[k])) {
            no_such(d, i);
            return;
        }
    decoders[i->op](d, i);
}

// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode_insn.c - one PTX instruction to micro-ops: arithmetic, conversion, memory, synchronisation.
 *
 * To add an opcode: a row in exec_ops.inc (or a handler in exec_core.inc and a line in exec_list.inc), and a case here. What is
 * rare is built from several micro-ops; only what is common has a handler of its own. */
#include <string.h>

#include "device/soft/decode_priv.h"

typedef const struct ws_ptx_insn *insn;
typedef enum ws_ptx_type type;

/* Handlers of one operation by width of type (see wi()); SU3 by sign, too. */
#define W3(name) ((const uint16_t[]){WS_H_##name##_16, WS_H_##name##_32, WS_H_##name##_64})
#define V3(name) ((const uint16_t[]){WS_H_##name##16, WS_H_##name##32, WS_H_##name##64})

static bool is_signed(type t)
{
    return t == WS_T_S8 || t == WS_T_S16 || t == WS_T_S32 || t == WS_T_S64;
}

static unsigned wi(type t)
{
    unsigned b = ws_ptx_type_bytes(t);
    return b == 2 ? 0 : b == 4 ? 1 : 2;
}

static uint32_t mxcsr(insn i, bool honour_rnd)
{
    uint32_t mx = 0x1f80;
    if (honour_rnd)
        switch (i->rnd) {
        case WS_RND_RM:
        case WS_RND_RMI:
            mx |= 1 << 13;
            break;
        case WS_RND_RP:
        case WS_RND_RPI:
            mx |= 2 << 13;
            break;
        case WS_RND_RZ:
        case WS_RND_RZI:
            mx |= 3 << 13;
            break;
        default:
            break;
        }
    return i->flags & WS_F_FTZ ? mx | 0x8040 : mx;
}

bool ws_dec_no_such(struct ws_dec *d, insn i)
{
    char text[160];
    ws_ptx_insn_text(d->m, d->df->f, i, text, sizeof text);
    ws_dec_unsupported(d, "opcode %s is not supported in this form: %s", ws_ptx_op_name(i->op),
                       text);
    return false;
}
#define no_such ws_dec_no_such

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

/* d = h(sources of type t…), to a destination of type td */
static struct ws_uop *op_n(struct ws_dec *d, insn i, enum ws_handler h, type td, unsigned n,
                           const type *ts)
{
    uint32_t s[4] = {0};
    bool finish;
    if (i->n_operands < n + 1) {
        no_such(d, i);
        return ws_dec_emit(d, WS_H_nop);
    }
    for (unsigned k = 0; k < n; k++)
        s[k] = ws_dec_src(d, &i->operands[k + 1], ts[k]);
    uint32_t dst = ws_dec_dst(d, &i->operands[0], td, &finish);
    struct ws_uop *u = ws_dec_emit3(d, h, dst, s[0], s[1]);
    u->c = (int32_t)s[2];
    u->e = (int32_t)s[3];
    if (finish) {
        size_t at = d->n_uops - 1;
        ws_dec_finish(d, &i->operands[0], td, dst);
        if (!d->oom)
            u = &d->uops[at];
    }
    return u;
}

static struct ws_uop *op1(struct ws_dec *d, insn i, enum ws_handler h, type td, type ta)
{
    return op_n(d, i, h, td, 1, &ta);
}

static struct ws_uop *op2(struct ws_dec *d, insn i, enum ws_handler h, type td, type ta, type tb)
{
    return op_n(d, i, h, td, 2, (const type[]){ta, tb});
}

static struct ws_uop *op3(struct ws_dec *d, insn i, enum ws_handler h, type td, type ta, type tb,
                          type tc)
{
    return op_n(d, i, h, td, 3, (const type[]){ta, tb, tc});
}

static void post(struct ws_dec *d, enum ws_handler h, int32_t row)
{
    ws_dec_emit3(d, h, (uint32_t)row, (uint32_t)row, 0);
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

static bool is_half(type t)
{
    return t == WS_T_F16 || t == WS_T_F16X2 || t == WS_T_BF16 || t == WS_T_BF16X2;
}

#define HALF(name)                                                                                 \
    (t == WS_T_F16     ? WS_H_##name##_f16                                                         \
     : t == WS_T_F16X2 ? WS_H_##name##_f16x2                                                       \
     : t == WS_T_BF16  ? WS_H_##name##_bf16                                                        \
                       : WS_H_##name##_bf16x2)

/* ---- floating arithmetic ---- */
static void float_op(struct ws_dec *d, insn i, enum ws_handler h32, enum ws_handler h64, unsigned n)
{
    type t = i->types[0], ts[3] = {t, t, t};
    if ((t != WS_T_F32 && t != WS_T_F64) || i->n_types > 1) {
        no_such(d, i);
        return;
    }
    struct ws_uop *u = op_n(d, i, t == WS_T_F32 ? h32 : h64, t, n, ts);
    u->mx = mxcsr(i, true);
    int32_t row = u->d;
    if (i->flags & WS_F_RELU)
        post(d, WS_H_relu_f32, row);
    if (i->flags & WS_F_SAT)
        post(d, t == WS_T_F32 ? WS_H_sat_f32 : WS_H_sat_f64, row);
}

/* Half arithmetic. sat and relu go through min and max with constants. */
static void half_op(struct ws_dec *d, insn i, enum ws_handler h, unsigned n)
{
    type t = i->types[0], ts[3] = {t, t, t};
    if ((i->flags & (WS_F_FTZ | WS_F_SAT | WS_F_RELU | WS_F_NAN | WS_F_XORSIGN_ABS)) ||
        i->n_types > 1) {
        no_such(d, i);
        return;
    }
    op_n(d, i, h, t, n, ts);
}

static void add_sub(struct ws_dec *d, insn i, bool sub)
{
    type t = i->types[0];
    if (is_half(t)) {
        half_op(d, i, sub ? HALF(hsub) : HALF(hadd), 2);
    } else if (t == WS_T_F32 || t == WS_T_F64) {
        float_op(d, i, sub ? WS_H_sub_f32 : WS_H_add_f32, sub ? WS_H_sub_f64 : WS_H_add_f64, 2);
    } else if (i->flags & WS_F_CC || i->op == WS_OP_ADDC || i->op == WS_OP_SUBC) {
        enum ws_handler h = sub ? (wi(t) == 1 ? WS_H_subc_32 : WS_H_subc_64)
                                : (wi(t) == 1 ? WS_H_addc_32 : WS_H_addc_64);
        if (!d->cf)
            d->cf = ws_dec_row_alloc(d, 0);
        struct ws_uop *u = op2(d, i, h, t, t, t);
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

static void mul(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (is_half(t)) {
        half_op(d, i, HALF(hmul), 2);
    } else if (t == WS_T_F32 || t == WS_T_F64) {
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
static void fma_op(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (is_half(t))
        half_op(d, i, HALF(hfma), 3);
    else /* with directed rounding, the emulation of fma in double would round twice */
        float_op(d, i, i->rnd > WS_RND_RN ? WS_H_fmam_f32 : WS_H_fma_f32, WS_H_fma_f64, 3);
}

static void mad(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (t == WS_T_F32 || t == WS_T_F64) {
        fma_op(d, i);
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

static void mul24(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    enum ws_handler h = i->sub == WS_SUB_HI
                            ? (is_signed(t) ? WS_H_mul24_hi_s32 : WS_H_mul24_hi_u32)
                            : (is_signed(t) ? WS_H_mul24_lo_s32 : WS_H_mul24_lo_u32);
    if (i->op == WS_OP_MUL24) {
        op2(d, i, h, t, t, t);
        return;
    }
    if (i->n_operands < 4 || (i->flags & WS_F_SAT)) {
        no_such(d, i);
        return;
    }
    uint32_t a = ws_dec_src(d, &i->operands[1], t), b = ws_dec_src(d, &i->operands[2], t),
             c = ws_dec_src(d, &i->operands[3], t), p = ws_dec_temp(d, 4);
    bool finish;
    ws_dec_emit3(d, h, p, a, b);
    uint32_t dst = ws_dec_dst(d, &i->operands[0], t, &finish);
    ws_dec_emit3(d, WS_H_add_32, dst, p, c);
    if (finish)
        ws_dec_finish(d, &i->operands[0], t, dst);
}

static void div_rem(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (t == WS_T_F32 || t == WS_T_F64)
        float_op(d, i, WS_H_div_f32, WS_H_div_f64, 2);
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
    case WS_T_F16:
    case WS_T_BF16:
        u = op1(d, i, neg ? WS_H_neg_f16 : WS_H_abs_f16, t, t);
        break;
    case WS_T_F16X2:
    case WS_T_BF16X2:
        u = op1(d, i, neg ? WS_H_neg_f16x2 : WS_H_abs_f16x2, t, t);
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

static void min_max(struct ws_dec *d, insn i, bool max)
{
    type t = i->types[0];
    if (i->n_operands > 3 || (i->flags & (WS_F_XORSIGN_ABS | WS_F_RELU))) {
        no_such(d, i);
    } else if (is_half(t)) {
        half_op(d, i, max ? HALF(hmax) : HALF(hmin), 2);
    } else if (t == WS_T_F32) {
        bool nan = i->flags & WS_F_NAN;
        int32_t row = op2(d, i,
                          max ? (nan ? WS_H_max_nan_f32 : WS_H_max_f32)
                              : (nan ? WS_H_min_nan_f32 : WS_H_min_f32),
                          t, t, t)
                          ->d;
        if (i->flags & WS_F_FTZ)
            post(d, WS_H_flush_f32, row);
    } else if (t == WS_T_F64) {
        op2(d, i, max ? WS_H_max_f64 : WS_H_min_f64, t, t, t);
    } else if (t == WS_T_U16X2) {
        op2(d, i, max ? WS_H_max_u16x2 : WS_H_min_u16x2, t, t, t);
    } else if (t == WS_T_S16X2) {
        op2(d, i, max ? WS_H_max_s16x2 : WS_H_min_s16x2, t, t, t);
    } else {
        op2(d, i,
            max ? (is_signed(t) ? V3(max_s)[wi(t)] : V3(max_u)[wi(t)])
                : (is_signed(t) ? V3(min_s)[wi(t)] : V3(min_u)[wi(t)]),
            t, t, t);
    }
}

static void sfu(struct ws_dec *d, insn i)
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
        if (f64 && (i->flags & WS_F_APPROX) &&
            (i->flags & WS_F_FTZ)) { /* sees and gives high halves only */
            uint32_t a = ws_dec_temp(d, 8), s = ws_dec_src(d, &i->operands[1], t);
            bool finish;
            ws_dec_emit3(d, WS_H_hi_only_64, a, s, 0);
            ws_dec_emit3(d, WS_H_flush_f64, a, a, 0);
            uint32_t dst = ws_dec_dst(d, &i->operands[0], t, &finish);
            ws_dec_emit3(d, table[k].h64, dst, a, 0)->mx = 0x1f80 | 0x8040;
            ws_dec_emit3(d, WS_H_hi_only_64, dst, dst, 0);
            return;
        }
        struct ws_uop *u = op1(d, i, f64 ? table[k].h64 : table[k].h32, t, t);
        u->mx = mxcsr(i, true);
    }
}

/* ---- comparison and selection ---- */
/* The comparison cmp of a and b, in type t, to predicate word p. */
static bool compare(struct ws_dec *d, insn i, type t, uint8_t cmp, uint32_t p, uint32_t a,
                    uint32_t b)
{
    bool f = t == WS_T_F32 || t == WS_T_F64, swap = false;
    uint32_t inv = 0;
    enum ws_handler h;
#define FH(name) (t == WS_T_F32 ? WS_H_##name##_f32 : WS_H_##name##_f64)
    if (f) {
        switch (cmp) {
        case WS_CMP_EQ:
            h = FH(eq);
            break;
        case WS_CMP_NE:
            h = FH(ne);
            break;
        case WS_CMP_LT:
            h = FH(lt);
            break;
        case WS_CMP_LE:
            h = FH(le);
            break;
        case WS_CMP_GT:
            h = FH(lt);
            swap = true;
            break;
        case WS_CMP_GE:
            h = FH(le);
            swap = true;
            break;
        case WS_CMP_EQU:
            h = FH(ne);
            inv = ~0u;
            break;
        case WS_CMP_NEU:
            h = FH(eq);
            inv = ~0u;
            break;
        case WS_CMP_LTU:
            h = FH(le);
            swap = true;
            inv = ~0u;
            break; /* not b <= a */
        case WS_CMP_LEU:
            h = FH(lt);
            swap = true;
            inv = ~0u;
            break;
        case WS_CMP_GTU:
            h = FH(le);
            inv = ~0u;
            break;
        case WS_CMP_GEU:
            h = FH(lt);
            inv = ~0u;
            break;
        case WS_CMP_NUM:
            h = FH(num);
            break;
        case WS_CMP_NAN:
            h = FH(num);
            inv = ~0u;
            break;
        default:
            return no_such(d, i);
        }
    } else {
        bool s = is_signed(t) && cmp != WS_CMP_LO && cmp != WS_CMP_LS && cmp != WS_CMP_HI &&
                 cmp != WS_CMP_HS;
        const uint16_t *lt = s ? V3(lt_s) : V3(lt_u);
        switch (cmp) {
        case WS_CMP_EQ:
            h = W3(eq)[wi(t)];
            break;
        case WS_CMP_NE:
            h = W3(eq)[wi(t)];
            inv = ~0u;
            break;
        case WS_CMP_LT:
        case WS_CMP_LO:
            h = lt[wi(t)];
            break;
        case WS_CMP_GE:
        case WS_CMP_HS:
            h = lt[wi(t)];
            inv = ~0u;
            break;
        case WS_CMP_GT:
        case WS_CMP_HI:
            h = lt[wi(t)];
            swap = true;
            break;
        case WS_CMP_LE:
        case WS_CMP_LS:
            h = lt[wi(t)];
            swap = true;
            inv = ~0u;
            break;
        default:
            return no_such(d, i);
        }
    }
    struct ws_uop *u = ws_dec_emit3(d, h, p, swap ? b : a, swap ? a : b);
    u->x = inv;
    u->mx = mxcsr(i, false);
    return true;
}

/* dst = (p or its negation) op (c or its negation) */
static void combine(struct ws_dec *d, insn i, uint32_t dst, uint32_t p, bool p_neg,
                    const struct ws_ptx_operand *c)
{
    bool neg = false;
    if (!c || i->sub == WS_SUB_NONE) {
        ws_dec_emit3(d, WS_H_p_mov, dst, p, 0)->x = p_neg;
        return;
    }
    uint32_t cw = ws_dec_pred(d, c, &neg);
    enum ws_handler h = i->sub == WS_SUB_AND  ? WS_H_p_and
                        : i->sub == WS_SUB_OR ? WS_H_p_or
                                              : WS_H_p_xor;
    ws_dec_emit3(d, h, dst, p, cw)->x = (uint32_t)p_neg | (uint32_t)neg << 1;
}

/* Half operands are compared as floats. */
static uint32_t compare_src(struct ws_dec *d, const struct ws_ptx_operand *o, type t, type *ret_t)
{
    uint32_t row = ws_dec_src(d, o, t);
    if (t != WS_T_F16 && t != WS_T_BF16)
        return row;
    uint32_t f = ws_dec_temp(d, 4);
    ws_dec_emit3(d, t == WS_T_F16 ? WS_H_cvt_f32_f16 : WS_H_cvt_f32_bf16, f, row, 0);
    *ret_t = WS_T_F32;
    return f;
}

static void setp(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    const struct ws_ptx_operand *o = i->operands, *p = &o[0], *q = NULL,
                                *c = i->n_operands > 3 ? &o[3] : NULL;
    if (i->n_operands < 3 || t == WS_T_F16X2 || t == WS_T_BF16X2) {
        no_such(d, i);
        return;
    }
    if (p->kind == WS_OPD_PAIR) {
        q = &p->v[1];
        p = &p->v[0];
    }
    uint32_t a = compare_src(d, &o[1], t, &t);
    t = i->types[0];
    uint32_t b = compare_src(d, &o[2], t, &t);
    bool direct = !q && i->sub == WS_SUB_NONE;
    uint32_t word = direct ? ws_dec_pred_dst(d, p) : ws_dec_temp(d, 0);
    if (!compare(d, i, t, i->cmp, word, a, b) || direct)
        return;
    if (!q) {
        combine(d, i, ws_dec_pred_dst(d, p), word, false, c);
        return;
    }
    uint32_t first = ws_dec_temp(d, 0); /* p may be the same register as c */
    combine(d, i, first, word, false, c);
    combine(d, i, ws_dec_pred_dst(d, q), word, true, c);
    ws_dec_emit3(d, WS_H_p_mov, ws_dec_pred_dst(d, p), first, 0);
}

static void set(struct ws_dec *d, insn i)
{
    type td = i->types[0], t = i->types[1];
    if (i->n_operands < 3 || is_half(td) || t == WS_T_F16X2 || t == WS_T_BF16X2) {
        no_such(d, i);
        return;
    }
    uint32_t a = compare_src(d, &i->operands[1], i->types[1], &t),
             b = compare_src(d, &i->operands[2], i->types[1], &t), p = ws_dec_temp(d, 0);
    if (!compare(d, i, t, i->cmp, p, a, b))
        return;
    combine(d, i, p, p, false, i->n_operands > 3 ? &i->operands[3] : NULL);
    uint32_t w = ws_dec_width(td),
             one = ws_dec_const(d, w, td == WS_T_F32 ? 0x3f800000 : ~UINT64_C(0));
    bool finish;
    uint32_t dst = ws_dec_dst(d, &i->operands[0], td, &finish);
    ws_dec_emit3(d, W3(selp)[wi(td)], dst, one, ws_dec_const(d, w, 0))->c = (int32_t)p;
    if (finish)
        ws_dec_finish(d, &i->operands[0], td, dst);
}

static void selp(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    bool neg = false;
    if (i->n_operands < 4) {
        no_such(d, i);
        return;
    }
    uint32_t p = ws_dec_pred(d, &i->operands[3], &neg);
    struct ws_uop *u = op2(d, i, W3(selp)[wi(t)], t, t, t);
    u->c = (int32_t)p;
    u->x = neg ? ~0u : 0;
}

static void slct(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (wi(t) == 0 || i->n_types < 2) {
        no_such(d, i);
        return;
    }
    op3(d, i, wi(t) == 1 ? WS_H_slct_32 : WS_H_slct_64, t, t, t, i->types[1])->x =
        i->types[1] == WS_T_F32;
}

static void logic(struct ws_dec *d, insn i)
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

static void shift(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (i->op == WS_OP_SHL)
        op2(d, i, W3(shl)[wi(t)], t, t, WS_T_U32);
    else
        op2(d, i, is_signed(t) ? V3(shr_s)[wi(t)] : V3(shr_u)[wi(t)], t, t, WS_T_U32);
}

static void bits(struct ws_dec *d, insn i)
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
        op1(d, i,
            amt ? (w ? (s ? WS_H_bfind_amt_s64 : WS_H_bfind_amt_u64)
                     : (s ? WS_H_bfind_amt_s32 : WS_H_bfind_amt_u32))
                : (w ? (s ? WS_H_bfind_s64 : WS_H_bfind_u64)
                     : (s ? WS_H_bfind_s32 : WS_H_bfind_u32)),
            WS_T_U32, t);
        break;
    case WS_OP_BFE:
        op3(d, i, w ? (s ? WS_H_bfe_s64 : WS_H_bfe_u64) : (s ? WS_H_bfe_s32 : WS_H_bfe_u32), t, t,
            WS_T_U32, WS_T_U32);
        break;
    case WS_OP_BFI:
        op_n(d, i, w ? WS_H_bfi_64 : WS_H_bfi_32, t, 4, (const type[]){t, t, WS_T_U32, WS_T_U32});
        break;
    case WS_OP_BMSK:
        op2(d, i, i->flags & WS_F_WRAP ? WS_H_bmsk_wrap : WS_H_bmsk_clamp, t, WS_T_U32, WS_T_U32);
        break;
    case WS_OP_SZEXT:
        if (i->flags & WS_F_WRAP)
            no_such(d, i);
        else
            op2(d, i, s ? WS_H_szext_clamp_s32 : WS_H_szext_clamp_u32, t, t, WS_T_U32);
        break;
    case WS_OP_SHF: {
        bool wrap = i->flags & WS_F_WRAP;
        op3(d, i,
            i->sub == WS_SUB_L ? (wrap ? WS_H_shf_l_wrap : WS_H_shf_l_clamp)
                               : (wrap ? WS_H_shf_r_wrap : WS_H_shf_r_clamp),
            t, t, t, WS_T_U32);
        break;
    }
    case WS_OP_PRMT: {
        enum ws_handler h = i->sub == WS_SUB_F4E    ? WS_H_prmt_f4e
                            : i->sub == WS_SUB_B4E  ? WS_H_prmt_b4e
                            : i->sub == WS_SUB_RC8  ? WS_H_prmt_rc8
                            : i->sub == WS_SUB_ECL  ? WS_H_prmt_ecl
                            : i->sub == WS_SUB_ECR  ? WS_H_prmt_ecr
                            : i->sub == WS_SUB_RC16 ? WS_H_prmt_rc16
                                                    : WS_H_prmt;
        op3(d, i, h, t, t, t, WS_T_U32);
        break;
    }
    case WS_OP_DP4A: {
        bool sa = is_signed(t), sb = is_signed(i->types[1]);
        op3(d, i, sa ? (sb ? WS_H_dp4a_ss : WS_H_dp4a_su) : (sb ? WS_H_dp4a_us : WS_H_dp4a_uu),
            WS_T_U32, WS_T_U32, WS_T_U32, WS_T_U32);
        break;
    }
    case WS_OP_LOP3:
        if (i->n_operands < 5 || i->operands[4].kind != WS_OPD_IMM || i->sub != WS_SUB_NONE) {
            no_such(d, i);
            break;
        }
        op3(d, i, WS_H_lop3, t, t, t, t)->x = (uint32_t)i->operands[4].imm & 0xff;
        break;
    case WS_OP_SAD:
        op3(d, i, s ? V3(sad_s)[wi(t)] : V3(sad_u)[wi(t)], t, t, t, t);
        break;
    default:
        no_such(d, i);
        break;
    }
}

/* ---- moves ---- */
static void mov_pack(struct ws_dec *d, insn i, type t)
{
    const struct ws_ptx_operand *dst = &i->operands[0], *v = &i->operands[1];
    unsigned bytes = ws_ptx_type_bytes(t), each = v->n ? bytes / v->n : 0;
    bool finish;
    if (bytes > 8 || (v->n != 2 && v->n != 4) || (each != 2 && each != 4)) {
        no_such(d, i);
        return;
    }
    uint32_t s[4], lo, hi;
    for (unsigned k = 0; k < v->n; k++)
        s[k] = ws_dec_src(d, &v->v[k], each == 2 ? WS_T_B16 : WS_T_B32);
    uint32_t to = ws_dec_dst(d, dst, t, &finish);
    if (v->n == 2) {
        ws_dec_emit3(d, each == 2 ? WS_H_pack2_16 : WS_H_pack2_32, to, s[0], s[1]);
    } else {
        lo = ws_dec_temp(d, 4);
        hi = ws_dec_temp(d, 4);
        ws_dec_emit3(d, WS_H_pack2_16, lo, s[0], s[1]);
        ws_dec_emit3(d, WS_H_pack2_16, hi, s[2], s[3]);
        ws_dec_emit3(d, WS_H_pack2_32, to, lo, hi);
    }
    if (finish)
        ws_dec_finish(d, dst, t, to);
}

static void unpack_to(struct ws_dec *d, const struct ws_ptx_operand *o, enum ws_handler h, type t,
                      uint32_t from)
{
    bool finish;
    if (o->kind == WS_OPD_SINK)
        return;
    uint32_t dst = ws_dec_dst(d, o, t, &finish);
    ws_dec_emit3(d, h, dst, from, 0);
    if (finish)
        ws_dec_finish(d, o, t, dst);
}

static void mov_unpack(struct ws_dec *d, insn i, type t)
{
    const struct ws_ptx_operand *v = &i->operands[0];
    unsigned bytes = ws_ptx_type_bytes(t), each = v->n ? bytes / v->n : 0;
    if (bytes > 8 || (v->n != 2 && v->n != 4) || (each != 2 && each != 4)) {
        no_such(d, i);
        return;
    }
    uint32_t from = ws_dec_src(d, &i->operands[1], t), tmp = ws_dec_temp(d, bytes);
    ws_dec_mov(d, bytes, tmp, from); /* the source may be one of the destinations */
    if (v->n == 2) {
        unpack_to(d, &v->v[0], each == 2 ? WS_H_unlo_16 : WS_H_unlo_32,
                  each == 2 ? WS_T_B16 : WS_T_B32, tmp);
        unpack_to(d, &v->v[1], each == 2 ? WS_H_unhi_16 : WS_H_unhi_32,
                  each == 2 ? WS_T_B16 : WS_T_B32, tmp);
        return;
    }
    uint32_t half[2] = {ws_dec_temp(d, 4), ws_dec_temp(d, 4)};
    ws_dec_emit3(d, WS_H_unlo_32, half[0], tmp, 0);
    ws_dec_emit3(d, WS_H_unhi_32, half[1], tmp, 0);
    for (unsigned k = 0; k < 4; k++)
        unpack_to(d, &v->v[k], k & 1 ? WS_H_unhi_16 : WS_H_unlo_16, WS_T_B16, half[k / 2]);
}

static void mov(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (i->n_operands < 2 || i->vec > 1) {
        no_such(d, i);
    } else if (t == WS_T_PRED) {
        bool neg;
        uint32_t a = ws_dec_pred(d, &i->operands[1], &neg);
        ws_dec_emit3(d, WS_H_p_mov, ws_dec_pred_dst(d, &i->operands[0]), a, 0)->x = neg;
    } else if (i->operands[1].kind == WS_OPD_VEC) {
        mov_pack(d, i, t);
    } else if (i->operands[0].kind == WS_OPD_VEC) {
        mov_unpack(d, i, t);
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
    ws_dec_emit3(d,
                 ws_dec_cvt_int(w, row_width == 1   ? WS_T_U8
                                   : row_width == 2 ? WS_T_U16
                                   : row_width == 4 ? WS_T_U32
                                                    : WS_T_U64),
                 dst, row, 0);
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
        uint32_t t = ws_dec_temp(d, 8);
        ws_dec_emit3(d, f64 ? WS_H_cvt_s64_f64 : WS_H_cvt_s64_f32, t, src, 0);
        clamp_to(d, t, td, WS_T_S64);
        store_result(d, i, td, t, 8);
        return;
    }
    bool s = is_signed(td), w = ws_ptx_type_bytes(td) == 8;
    enum ws_handler h = f64 ? (w ? (s ? WS_H_cvt_s64_f64 : WS_H_cvt_u64_f64)
                                 : (s ? WS_H_cvt_s32_f64 : WS_H_cvt_u32_f64))
                            : (w ? (s ? WS_H_cvt_s64_f32 : WS_H_cvt_u64_f32)
                                 : (s ? WS_H_cvt_s32_f32 : WS_H_cvt_u32_f32));
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
    if ((td == WS_T_BF16 && mid == WS_T_F64) || (half && i->rnd > WS_RND_RZ) ||
        (half && (i->flags & WS_F_SAT))) {
        no_such(d, i);
        return;
    }
    uint32_t dst = ws_dec_dst(d, &i->operands[0], td, &finish),
             row = half ? ws_dec_temp(d, mid == WS_T_F64 ? 8 : 4) : dst;
    struct ws_uop *u;
    if (is_int(ts))
        u = ws_dec_emit3(d,
                         mid == WS_T_F64 ? (w ? (s ? WS_H_cvt_f64_s64 : WS_H_cvt_f64_u64)
                                              : (s ? WS_H_cvt_f64_s32 : WS_H_cvt_f64_u32))
                                         : (w ? (s ? WS_H_cvt_f32_s64 : WS_H_cvt_f32_u64)
                                              : (s ? WS_H_cvt_f32_s32 : WS_H_cvt_f32_u32)),
                         row, src, 0);
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
        enum ws_handler h = td == WS_T_BF16   ? (rz ? WS_H_cvt_rz_bf16_f32 : WS_H_cvt_bf16_f32)
                            : mid == WS_T_F64 ? (rz ? WS_H_cvt_rz_f16_f64 : WS_H_cvt_f16_f64)
                                              : (rz ? WS_H_cvt_rz_f16_f32 : WS_H_cvt_f16_f32);
        ws_dec_emit3(d, h, dst, row, 0);
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

static void cvt(struct ws_dec *d, insn i)
{
    type td = i->types[0], ts = i->n_types > 1 ? i->types[1] : td;
    bool fs = ts == WS_T_F16 || ts == WS_T_BF16 || ts == WS_T_F32 || ts == WS_T_F64;
    if ((td == WS_T_F16X2 || td == WS_T_BF16X2) && ts == WS_T_F32 && i->n_operands == 3 &&
        i->rnd == WS_RND_RN && !(i->flags & WS_F_SAT)) {
        uint32_t a = float_src(d, i, &i->operands[1], &ts),
                 b = float_src(d, i, &i->operands[2], &ts);
        bool finish;
        if (i->flags & WS_F_RELU) {
            uint32_t ra = ws_dec_temp(d, 4), rb = ws_dec_temp(d, 4);
            ws_dec_emit3(d, WS_H_relu_f32, ra, a, 0);
            ws_dec_emit3(d, WS_H_relu_f32, rb, b, 0);
            a = ra;
            b = rb;
        }
        ws_dec_emit3(d, td == WS_T_F16X2 ? WS_H_cvt_f16x2_f32 : WS_H_cvt_bf16x2_f32,
                     ws_dec_dst(d, &i->operands[0], WS_T_B32, &finish), a, b);
    } else if (td == WS_T_TF32 && ts == WS_T_F32 && i->rnd == WS_RND_RNA) {
        op1(d, i, WS_H_cvt_tf32_f32, WS_T_B32, WS_T_F32);
    } else if (i->n_operands != 2) {
        no_such(d, i);
    } else if (is_int(td) && is_int(ts)) {
        cvt_int_int(d, i, td, ts);
    } else if (is_int(td) && fs) {
        cvt_float_int(d, i, td, ts);
    } else if ((td == WS_T_F16 || td == WS_T_BF16 || td == WS_T_F32 || td == WS_T_F64) &&
               (fs || is_int(ts))) {
        cvt_to_float(d, i, td, ts);
    } else {
        no_such(d, i);
    }
}

/* ---- memory ---- */
struct address {
    uint32_t row;
    int64_t imm;
    bool a32;
    struct ws_store *store;
    const struct ws_ptx_var *var;
};

static bool address(struct ws_dec *d, insn i, const struct ws_ptx_operand *o, struct address *ret)
{
    *ret = (struct address){.imm = o->imm};
    if (o->kind != WS_OPD_ADDR || o->n)
        return no_such(d, i);
    if (o->reg >= 0) {
        struct ws_ptx_operand r = {.kind = WS_OPD_REG, .reg = o->reg, .sym = -1};
        ret->a32 = ws_ptx_type_bytes(d->df->f->regs[o->reg].type) == 4;
        ret->row = ws_dec_src(d, &r, ret->a32 ? WS_T_U32 : WS_T_U64);
        return true;
    }
    if (o->sym < 0) {
        ret->row = ws_dec_const(d, 8, 0);
        return true;
    }
    if (WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_FUNC)
        return no_such(d, i);
    ret->var = ws_dec_symvar(d, o->sym, &ret->store);
    switch (ret->var->space) {
    case WS_SP_SHARED: {
        uint32_t off = ws_dec_shared_off(d, o->sym);
        ret->a32 = true;
        ret->row = off == ~0u ? ws_dec_dyn_row(d, 4) : ws_dec_const(d, 4, 0);
        ret->imm += off == ~0u ? 0 : off;
        return true;
    }
    case WS_SP_GLOBAL:
    case WS_SP_CONST:
        ret->row = ws_dec_var_row(d, 8, (uint32_t)WS_PTX_SYM_INDEX(o->sym), 0);
        return true;
    default:
        break;
    }
    if (ret->store->kind == WS_STORE_LOCAL) {
        ret->row = d->img->fp_off;
        ret->imm += ret->store->off;
        ret->a32 = true;
    }
    return true;
}

static uint32_t memory_flags(insn i, uint32_t space)
{
    uint32_t x = space;
    if (space == WS_SP_CONST || space == WS_SP_PARAM)
        x |= WS_X_NOCOUNT;
    if (i->sem != WS_SEM_NONE && i->sem != WS_SEM_WEAK)
        x |= WS_X_STRONG;
    if (i->sem == WS_SEM_ACQUIRE || i->sem == WS_SEM_ACQ_REL || i->sem == WS_SEM_SC)
        x |= WS_X_ACQUIRE;
    if (i->sem == WS_SEM_RELEASE || i->sem == WS_SEM_ACQ_REL || i->sem == WS_SEM_SC)
        x |= WS_X_RELEASE;
    if (i->sem == WS_SEM_SC)
        x |= WS_X_SC;
    return x;
}

static enum ws_handler memory_handler(bool load, uint32_t x, unsigned size, unsigned n)
{
    uint32_t space = x & WS_X_SPACE_MASK;
    bool g = !(x & WS_X_A32) &&
             (space == WS_SP_GLOBAL || space == WS_SP_CONST || space == WS_SP_GENERIC),
         s = (x & WS_X_A32) && space == WS_SP_SHARED;
    if (!(x & WS_X_STRONG) && (g || s)) {
#define LS(name)                                                                                   \
    (load ? (g ? WS_H_ld_g_##name : WS_H_ld_s_##name) : (g ? WS_H_st_g_##name : WS_H_st_s_##name))
        switch (n * 16 + size) {
        case 16 + 1:
            return LS(8);
        case 16 + 2:
            return LS(16);
        case 16 + 4:
            return LS(32);
        case 16 + 8:
            return LS(64);
        case 32 + 4:
            return LS(32v2);
        case 64 + 4:
            return LS(32v4);
        case 32 + 8:
            return LS(64v2);
        default:
            break;
        }
#undef LS
    }
    return load ? WS_H_ld_x : WS_H_st_x;
}

/* A scalar parameter that lives in a row. */
static bool param_row(struct ws_dec *d, insn i, const struct address *a,
                      const struct ws_ptx_operand *value, bool load)
{
    type t = i->types[0];
    bool finish;
    if (!a->store || a->store->kind != WS_STORE_ROW)
        return false;
    if (load) {
        uint32_t dst = ws_dec_dst(d, value, t, &finish);
        ws_dec_mov(d, ws_dec_width(t), dst, a->store->off);
        if (finish)
            ws_dec_finish(d, value, t, dst);
    } else {
        ws_dec_mov(d, ws_dec_width(t), a->store->off, ws_dec_src(d, value, t));
    }
    return true;
}

static void ld_st(struct ws_dec *d, insn i, bool load)
{
    const struct ws_ptx_operand *value = &i->operands[load ? 0 : 1], *v = value;
    type t = i->types[0];
    unsigned n = i->vec > 1 ? i->vec : 1, size = ws_ptx_type_bytes(t);
    struct address a;
    uint32_t rows[4] = {0}, space = i->space;
    bool finish[4] = {false};
    if (i->n_operands < 2 || n > 4 || size > 8 || n * size > 16 ||
        !address(d, i, &i->operands[load ? 1 : 0], &a)) {
        if (i->n_operands < 2 || n > 4 || size > 8 || n * size > 16)
            no_such(d, i);
        return;
    }
    if (n > 1) {
        if (value->kind != WS_OPD_VEC || value->n != n) {
            no_such(d, i);
            return;
        }
        v = value->v;
    }
    if (n == 1 && param_row(d, i, &a, v, load))
        return;
    if (a.var && a.store->kind == WS_STORE_LOCAL)
        space = WS_SP_LOCAL;
    if (a.var && space == WS_SP_GENERIC && a.var->space != WS_SP_PARAM)
        space = a.var->space; /* [variable] without a space */
    for (unsigned k = 0; k < n; k++)
        rows[k] = load ? ws_dec_dst(d, &v[k], t, &finish[k]) : ws_dec_src(d, &v[k], t);
    if (a.store && a.store->kind == WS_STORE_KPARAM) {
        uint64_t off = a.store->off + (uint64_t)a.imm;
        if (!load || off > d->df->f->param_bytes || d->df->f->param_bytes - off < n * size ||
            off % size) {
            no_such(d, i);
            return;
        }
        for (unsigned k = 0; k < n; k++) {
            struct ws_uop *u = ws_dec_emit3(d, WS_H_ld_p, rows[k], 0, 0);
            u->imm = (int64_t)(off + k * size);
            u->x = size << WS_X_SIZE_SHIFT;
        }
    } else {
        uint32_t x = memory_flags(i, space) | (a.a32 ? WS_X_A32 : 0) | size << WS_X_SIZE_SHIFT |
                     n << WS_X_VEC_SHIFT;
        struct ws_uop *u =
            ws_dec_emit3(d, memory_handler(load, x, size, n), rows[0], a.row, rows[1]);
        u->c = (int32_t)rows[2];
        u->e = (int32_t)rows[3];
        u->imm = a.imm;
        u->x = x;
    }
    for (unsigned k = 0; load && k < n; k++)
        if (finish[k])
            ws_dec_finish(d, &v[k], t, rows[k]);
}

static void atom(struct ws_dec *d, insn i, bool red)
{
    type t = i->types[0];
    unsigned size = ws_ptx_type_bytes(t), at = red ? 0 : 1;
    struct address a;
    bool finish = false, f = t == WS_T_F32 || t == WS_T_F64 || is_half(t);
    bool has_c = i->sub == WS_SUB_CAS;
    if (i->vec > 1 || size > 8 || i->n_operands < at + 2 + has_c ||
        (f && i->sub != WS_SUB_ADD && i->sub != WS_SUB_EXCH) ||
        (size == 2 && i->sub != WS_SUB_CAS && !f)) {
        no_such(d, i);
        return;
    }
    if (!address(d, i, &i->operands[at], &a))
        return;
    if (f && i->sub == WS_SUB_EXCH)
        t = size == 4 ? WS_T_B32 : size == 8 ? WS_T_B64 : WS_T_B16;
    uint32_t b = ws_dec_src(d, &i->operands[at + 1], t),
             c = has_c ? ws_dec_src(d, &i->operands[at + 2], t) : b, dst = 0;
    if (!red)
        dst = ws_dec_dst(d, &i->operands[0], t, &finish);
    uint32_t space = i->space;
    if (a.var && space == WS_SP_GENERIC)
        space = a.var->space;
    struct ws_uop *u = ws_dec_emit3(d,
                                    size == 2   ? WS_H_atom_16
                                    : size == 4 ? WS_H_atom_32
                                                : WS_H_atom_64,
                                    dst, a.row, b);
    u->c = (int32_t)c;
    if (red)
        u->d = -1;
    u->imm = a.imm;
    u->x = space | (a.a32 ? WS_X_A32 : 0) | WS_X_NOCOUNT | size << WS_X_SIZE_SHIFT |
           1u << WS_X_VEC_SHIFT;
    u->mx = i->sub | (uint32_t)t << 8;
    if (finish)
        ws_dec_finish(d, &i->operands[0], t, dst);
}

/* Copies that complete at once: waiting for them has nothing to wait for. */
static void cp_async(struct ws_dec *d, insn i)
{
    struct address to, from;
    uint32_t rows[4];
    if (i->n_operands != 3 || i->operands[2].kind != WS_OPD_IMM ||
        (i->operands[2].imm != 4 && i->operands[2].imm != 8 && i->operands[2].imm != 16)) {
        no_such(d, i);
        return;
    }
    if (!address(d, i, &i->operands[0], &to) || !address(d, i, &i->operands[1], &from))
        return;
    unsigned n = (unsigned)i->operands[2].imm / 4;
    for (unsigned k = 0; k < 4; k++)
        rows[k] = ws_dec_temp(d, 4);
    for (unsigned k = 0; k < 2; k++) {
        const struct address *a = k ? &to : &from;
        struct ws_uop *u = ws_dec_emit3(d, k ? WS_H_st_x : WS_H_ld_x, rows[0], a->row, rows[1]);
        u->c = (int32_t)rows[2];
        u->e = (int32_t)rows[3];
        u->imm = a->imm;
        u->x = (k ? WS_SP_SHARED : WS_SP_GLOBAL) | (a->a32 ? WS_X_A32 : 0) | 4u << WS_X_SIZE_SHIFT |
               n << WS_X_VEC_SHIFT;
    }
}

static void cvta(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    bool finish, narrow = ws_ptx_type_bytes(t) == 4, to = i->sub == WS_SUB_TO;
    if (i->n_operands < 2) {
        no_such(d, i);
        return;
    }
    uint32_t src = ws_dec_src(d, &i->operands[1], t);
    uint32_t dst = ws_dec_dst(d, &i->operands[0], t, &finish);
    if (i->space == WS_SP_GLOBAL || i->space == WS_SP_CONST || i->space == WS_SP_GENERIC)
        ws_dec_mov(d, ws_dec_width(t), dst, src);
    else if (narrow)
        no_such(d, i);
    else if (to)
        ws_dec_emit3(d, WS_H_cvta_to, dst, src, 0);
    else
        ws_dec_emit3(d, WS_H_cvta, dst, src, 0)->x = i->space;
    if (finish)
        ws_dec_finish(d, &i->operands[0], t, dst);
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

static void warp_op(struct ws_dec *d, insn i)
{
    const struct ws_ptx_operand *o = i->operands, *to, *pair;
    bool finish, neg = false, sync = i->flags & WS_F_SYNC;
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
        u->x = i->sub | (i->op == WS_OP_MATCH ? (ws_ptx_type_bytes(t) == 8 ? 0x100 : 0)
                         : is_signed(t)       ? 0x100
                                              : 0);
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

/* bar: a barrier number row, b thread count row or 0; x: WS_SUB of red, or NONE, | 1 << 8 arrive, | 1 << 9 d is a predicate,
 * | 1 << 10 c inverted; c: predicate word of red; d: destination */
static void bar(struct ws_dec *d, insn i)
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
    u->x = x | (arrive ? 1u << 8 : 0);
}

void ws_dec_insn(struct ws_dec *d, insn i)
{
    if (ws_dec_tex(d, i) || ws_dec_video(d, i))
        return;
    for (unsigned k = 0; k < i->n_types; k++)
        if (i->types[k] >= WS_T_F32X2 ||
            (i->types[k] >= WS_T_TEXREF && i->types[k] <= WS_T_SURFREF)) {
            no_such(d, i);
            return;
        }
    switch (i->op) {
    case WS_OP_ADD:
    case WS_OP_ADDC:
        add_sub(d, i, false);
        break;
    case WS_OP_SUB:
    case WS_OP_SUBC:
        add_sub(d, i, true);
        break;
    case WS_OP_MUL:
        mul(d, i);
        break;
    case WS_OP_MAD:
    case WS_OP_MADC:
        mad(d, i);
        break;
    case WS_OP_FMA:
        fma_op(d, i);
        break;
    case WS_OP_MUL24:
    case WS_OP_MAD24:
        mul24(d, i);
        break;
    case WS_OP_DIV:
    case WS_OP_REM:
        div_rem(d, i);
        break;
    case WS_OP_ABS:
        abs_neg(d, i, false);
        break;
    case WS_OP_NEG:
        abs_neg(d, i, true);
        break;
    case WS_OP_MIN:
        min_max(d, i, false);
        break;
    case WS_OP_MAX:
        min_max(d, i, true);
        break;
    case WS_OP_RCP:
    case WS_OP_SQRT:
    case WS_OP_RSQRT:
    case WS_OP_SIN:
    case WS_OP_COS:
    case WS_OP_LG2:
    case WS_OP_EX2:
    case WS_OP_TANH:
        sfu(d, i);
        break;
    case WS_OP_POPC:
    case WS_OP_CLZ:
    case WS_OP_BREV:
    case WS_OP_BFIND:
    case WS_OP_BFE:
    case WS_OP_BFI:
    case WS_OP_BMSK:
    case WS_OP_SZEXT:
    case WS_OP_SHF:
    case WS_OP_PRMT:
    case WS_OP_DP4A:
    case WS_OP_LOP3:
    case WS_OP_SAD:
        bits(d, i);
        break;
    case WS_OP_TESTP: {
        uint32_t a = ws_dec_src(d, &i->operands[1], i->types[0]);
        ws_dec_emit3(d, i->types[0] == WS_T_F32 ? WS_H_testp_f32 : WS_H_testp_f64,
                     ws_dec_pred_dst(d, &i->operands[0]), a, 0)
            ->x = i->sub;
        break;
    }
    case WS_OP_COPYSIGN:
        op2(d, i, i->types[0] == WS_T_F32 ? WS_H_copysign_f32 : WS_H_copysign_f64, i->types[0],
            i->types[0], i->types[0]);
        break;
    case WS_OP_SETP:
        setp(d, i);
        break;
    case WS_OP_SET:
        set(d, i);
        break;
    case WS_OP_SELP:
        selp(d, i);
        break;
    case WS_OP_SLCT:
        slct(d, i);
        break;
    case WS_OP_AND:
    case WS_OP_OR:
    case WS_OP_XOR:
    case WS_OP_NOT:
    case WS_OP_CNOT:
        logic(d, i);
        break;
    case WS_OP_SHL:
    case WS_OP_SHR:
        shift(d, i);
        break;
    case WS_OP_MOV:
        mov(d, i);
        break;
    case WS_OP_CVT:
        cvt(d, i);
        break;
    case WS_OP_CVTA:
        cvta(d, i);
        break;
    case WS_OP_ISSPACEP: {
        uint32_t a = ws_dec_src(d, &i->operands[1], WS_T_U64);
        ws_dec_emit3(d, WS_H_isspacep, ws_dec_pred_dst(d, &i->operands[0]), a, 0)->x = i->space;
        break;
    }
    case WS_OP_LD:
    case WS_OP_LDU:
        ld_st(d, i, true);
        break;
    case WS_OP_ST:
        ld_st(d, i, false);
        break;
    case WS_OP_CP_ASYNC:
        cp_async(d, i);
        break;
    case WS_OP_CP_ASYNC_COMMIT_GROUP:
    case WS_OP_CP_ASYNC_WAIT_GROUP:
    case WS_OP_CP_ASYNC_WAIT_ALL:
        ws_dec_emit(d, WS_H_nop);
        break;
    case WS_OP_ATOM:
        atom(d, i, false);
        break;
    case WS_OP_RED:
        atom(d, i, true);
        break;
    case WS_OP_PREFETCH:
    case WS_OP_PREFETCHU:
    case WS_OP_APPLYPRIORITY:
    case WS_OP_PMEVENT:
    case WS_OP_GRIDDEPCONTROL:
        ws_dec_emit(d, WS_H_nop);
        break;
    case WS_OP_MEMBAR:
    case WS_OP_MEMBAR_PROXY:
    case WS_OP_FENCE:
    case WS_OP_FENCE_PROXY:
        ws_dec_emit(d, WS_H_membar);
        break;
    case WS_OP_SHFL:
    case WS_OP_VOTE:
    case WS_OP_MATCH:
    case WS_OP_REDUX:
    case WS_OP_ELECT:
    case WS_OP_ACTIVEMASK:
    case WS_OP_BAR_WARP_SYNC:
        warp_op(d, i);
        break;
    case WS_OP_BAR_SYNC:
    case WS_OP_BAR_ARRIVE:
    case WS_OP_BAR_RED:
    case WS_OP_BARRIER_SYNC:
    case WS_OP_BARRIER_ARRIVE:
    case WS_OP_BARRIER_RED:
        bar(d, i);
        break;
    case WS_OP_TRAP:
        ws_dec_emit(d, WS_H_trap);
        break;
    case WS_OP_BRKPT:
        ws_dec_emit(d, WS_H_brkpt);
        break;
    case WS_OP_NANOSLEEP:
        ws_dec_emit(d, WS_H_nanosleep);
        break;
    default:
        no_such(d, i);
        break;
    }
}

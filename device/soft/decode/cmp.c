// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/cmp.c - comparison and selection (PTX ISA 9.7.6, 9.7.7), and lop3, which can
 * end in a predicate.
 *
 * A comparison gives a predicate word; halves are compared as floats, packed ones each by itself.
 * set makes numbers of the predicates afterwards. */
#include "device/soft/decode/util.h"

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

/* A source of a comparison, halves as floats; lane 1: the upper one of two. *ret_t: the type to
 * compare in. */
static uint32_t compare_src(struct ws_dec *d, insn i, const struct ws_ptx_operand *o, type t,
                            unsigned lane, type *ret_t)
{
    uint32_t row = ws_dec_src(d, o, t), f;
    *ret_t = t;
    if (!is_half(t))
        return row;
    if (t == WS_T_F16X2 || t == WS_T_BF16X2) {
        uint32_t part = ws_dec_temp(d, 2);
        ws_dec_emit3(d, lane ? WS_H_unhi_16 : WS_H_unlo_16, part, row, 0);
        row = part;
    }
    bool bf = t == WS_T_BF16 || t == WS_T_BF16X2;
    if (i->flags & WS_F_FTZ) { /* a subnormal half is a normal float */
        uint32_t flushed = ws_dec_temp(d, 2);
        ws_dec_lane(d, ws_lane_half, WS_HALF_FLUSH | (bf ? WS_HALF_BF16 : 0), flushed, 2, 1,
                    (const uint32_t[]){row}, (const uint32_t[]){2});
        row = flushed;
    }
    f = ws_dec_temp(d, 4);
    ws_dec_emit3(d, bf ? WS_H_cvt_f32_bf16 : WS_H_cvt_f32_f16, f, row, 0);
    *ret_t = WS_T_F32;
    return f;
}

/* The comparison of operands 1 and 2, of type t, to a new predicate word. Return: false: refused.
 */
static bool compare_operands(struct ws_dec *d, insn i, type t, unsigned lane, uint32_t word)
{
    type tc;
    uint32_t a = compare_src(d, i, &i->operands[1], t, lane, &tc),
             b = compare_src(d, i, &i->operands[2], t, lane, &tc);
    return compare(d, i, tc, i->cmp, word, a, b);
}

void ws_dec_setp(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    const struct ws_ptx_operand *o = i->operands, *p = &o[0], *q = NULL,
                                *c = i->n_operands > 3 ? &o[3] : NULL;
    bool packed = t == WS_T_F16X2 || t == WS_T_BF16X2;
    if (i->n_operands < 3 || i->n_types != 1) {
        no_such(d, i);
        return;
    }
    if (p->kind == WS_OPD_PAIR) {
        q = &p->v[1];
        p = &p->v[0];
    }
    bool direct = !q && i->sub == WS_SUB_NONE;
    uint32_t word = direct ? ws_dec_pred_dst(d, p) : ws_dec_temp(d, 0);
    if (!compare_operands(d, i, t, 0, word) || direct)
        return;
    if (!q) {
        combine(d, i, ws_dec_pred_dst(d, p), word, false, c);
        return;
    }
    uint32_t first = ws_dec_temp(d, 0), second = word; /* p may be the same register as c */
    if (packed) {
        second = ws_dec_temp(d, 0);
        if (!compare_operands(d, i, t, 1, second))
            return;
    }
    combine(d, i, first, word, false, c);
    combine(d, i, ws_dec_pred_dst(d, q), second, !packed, c);
    ws_dec_emit3(d, WS_H_p_mov, ws_dec_pred_dst(d, p), first, 0);
}

/* The value that stands for true in type t. */
static uint64_t truth(type t)
{
    switch (t) {
    case WS_T_F32:
        return 0x3f800000;
    case WS_T_F16:
    case WS_T_F16X2:
        return 0x3c00;
    case WS_T_BF16:
    case WS_T_BF16X2:
        return 0x3f80;
    default:
        return ~UINT64_C(0);
    }
}

void ws_dec_set(struct ws_dec *d, insn i)
{
    type td = i->types[0], t = i->n_types > 1 ? i->types[1] : td;
    bool packed = t == WS_T_F16X2 || t == WS_T_BF16X2, finish;
    if (i->n_operands < 3 || (is_half(td) && (ws_ptx_type_bytes(td) == 4) != packed)) {
        no_such(d, i);
        return;
    }
    uint32_t w = packed ? 2 : ws_dec_width(td), part[2];
    for (unsigned k = 0; k < (packed ? 2u : 1u); k++) {
        uint32_t p = ws_dec_temp(d, 0);
        if (!compare_operands(d, i, t, k, p))
            return;
        combine(d, i, p, p, false, i->n_operands > 3 ? &i->operands[3] : NULL);
        part[k] = ws_dec_temp(d, w);
        ws_dec_emit3(d, w == 2 ? WS_H_selp_16 : WS_H_selp_32, part[k],
                     ws_dec_const(d, w, truth(td)), ws_dec_const(d, w, 0))
            ->c = (int32_t)p;
    }
    uint32_t dst = ws_dec_dst(d, &i->operands[0], td, &finish);
    if (packed)
        ws_dec_emit3(d, WS_H_pack2_16, dst, part[0], part[1]);
    else
        ws_dec_mov(d, w, dst, part[0]);
    if (finish)
        ws_dec_finish(d, &i->operands[0], td, dst);
}

void ws_dec_selp(struct ws_dec *d, insn i)
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

void ws_dec_slct(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    if (i->n_types < 2 || i->n_operands < 4) {
        no_such(d, i);
        return;
    }
    /* .ftz: a negative subnormal is -0, which counts as not negative */
    uint32_t c = ws_dec_src(d, &i->operands[3], i->types[1]);
    if (i->types[1] == WS_T_F32 && (i->flags & WS_F_FTZ)) {
        uint32_t flushed = ws_dec_temp(d, 4);
        ws_dec_emit3(d, WS_H_flush_f32, flushed, c, 0);
        c = flushed;
    }
    struct ws_uop *u = op2(d, i, W3(slct)[wi(t)], t, t, t);
    u->c = (int32_t)c;
    u->x = i->types[1] == WS_T_F32;
}

/* d[|p] = table of a, b, c; p = (d != 0) BoolOp q */
void ws_dec_lop3(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    const struct ws_ptx_operand *o = i->operands, *to = &o[0], *p = NULL;
    bool finish;
    if (to->kind == WS_OPD_PAIR) {
        p = &to->v[1];
        to = &to->v[0];
    }
    if (i->n_operands < 5 || o[4].kind != WS_OPD_IMM || (p != NULL) != (i->sub != WS_SUB_NONE) ||
        (p && i->n_operands < 6)) {
        no_such(d, i);
        return;
    }
    uint32_t a = ws_dec_src(d, &o[1], t), b = ws_dec_src(d, &o[2], t), c = ws_dec_src(d, &o[3], t),
             dst = ws_dec_dst(d, to, t, &finish);
    struct ws_uop *u = ws_dec_emit3(d, WS_H_lop3, dst, a, b);
    u->c = (int32_t)c;
    u->x = (uint32_t)o[4].imm & 0xff;
    if (!p)
        return;
    uint32_t word = ws_dec_temp(d, 0);
    ws_dec_emit3(d, WS_H_eq_32, word, dst, ws_dec_const(d, 4, 0))->x = ~0u;
    combine(d, i, ws_dec_pred_dst(d, p), word, false, &o[5]);
}

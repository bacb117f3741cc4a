// SPDX-License-Identifier: Apache-2.0
/* ptx/text/expr.c - constant expressions (PTX ISA 4.5.4) and immediates.
 *
 * Integers are 64 bits, unsigned where an operand is (written with U or above the signed range), as
 * in C. Floating-point constants only stand alone: with a sign, PTX allows no arithmetic on them.
 * Recursion is bounded by a depth argument. */
#include "ptx/ptx_private.h"

#include <math.h>
#include <string.h>

enum { MAX_EXPR_DEPTH = 64 };

struct expr_value {
    int64_t v;
    bool is_unsigned;
};

static const struct {
    uint8_t kind, level;
} ops[] = {
    {WS_TOK_OROR, 1}, {WS_TOK_ANDAND, 2}, {'|', 3}, {'^', 4},       {'&', 5},       {WS_TOK_EQ, 6},
    {WS_TOK_NE, 6},   {'<', 7},           {'>', 7}, {WS_TOK_LE, 7}, {WS_TOK_GE, 7}, {WS_TOK_SHL, 8},
    {WS_TOK_SHR, 8},  {'+', 9},           {'-', 9}, {'*', 10},      {'/', 10},      {'%', 10},
};

static bool ternary(struct ws_parser *p, struct expr_value *ret, int depth);

static bool unary(struct ws_parser *p, struct expr_value *ret, int depth)
{
    struct ws_tok t = p->t;
    if (depth > MAX_EXPR_DEPTH)
        return ws_parse_unsupported(p, &t, "an expression nests more than %d deep", MAX_EXPR_DEPTH);
    switch (t.kind) {
    case '-':
    case '+':
    case '!':
    case '~':
        ws_parse_next(p);
        if (!unary(p, ret, depth + 1))
            return false;
        if (t.kind == '-')
            ret->v = (int64_t)(0 - (uint64_t)ret->v);
        else if (t.kind == '!')
            *ret = (struct expr_value){!ret->v, false};
        else if (t.kind == '~')
            ret->v = ~ret->v;
        return true;
    case '(':
        ws_parse_next(p);
        if (ws_parse_is_dot(p, "s64") || ws_parse_is_dot(p, "u64")) {
            bool u = ws_parse_is_dot(p, "u64");
            ws_parse_next(p);
            if (!ws_parse_expect(p, ')', "')' after the type") || !unary(p, ret, depth + 1))
                return false;
            ret->is_unsigned = u;
            return true;
        }
        return ternary(p, ret, depth + 1) && ws_parse_expect(p, ')', "')'");
    case WS_TOK_NUM:
        if (t.imm_kind != WS_IMM_INT)
            return ws_parse_fail(p, &t, "floating-point constants cannot be part of an expression");
        *ret = (struct expr_value){t.value, t.big || (t.len && (t.s[t.len - 1] | 0x20) == 'u')};
        ws_parse_next(p);
        return true;
    case WS_TOK_NAME:
        if (t.len == 7 && !memcmp(t.s, "WARP_SZ", 7)) {
            *ret = (struct expr_value){32, false};
            ws_parse_next(p);
            return true;
        }
        /* fall through */
    default:
        return ws_parse_fail(p, &t, "expected a constant");
    }
}

static bool divide(struct ws_parser *p, const struct ws_tok *at, int kind, struct expr_value a,
                   struct expr_value b, bool u, int64_t *ret)
{
    if (!b.v)
        return ws_parse_fail(p, at, "division by zero");
    if (u)
        *ret =
            (int64_t)(kind == '/' ? (uint64_t)a.v / (uint64_t)b.v : (uint64_t)a.v % (uint64_t)b.v);
    else if (b.v == -1) /* INT64_MIN / -1 would trap */
        *ret = kind == '/' ? (int64_t)(0 - (uint64_t)a.v) : 0;
    else
        *ret = kind == '/' ? a.v / b.v : a.v % b.v;
    return true;
}

static bool combine(struct ws_parser *p, const struct ws_tok *op, struct expr_value *a,
                    struct expr_value b)
{
    bool u = a->is_unsigned || b.is_unsigned;
    uint64_t x = a->v, y = b.v;
    unsigned shift = y & 63;
    bool less = u ? x < y : a->v < b.v, more = u ? x > y : a->v > b.v;
    int64_t v = 0;
    switch (op->kind) {
    case WS_TOK_OROR:
        v = x || y;
        break;
    case WS_TOK_ANDAND:
        v = x && y;
        break;
    case '|':
        v = x | y;
        break;
    case '^':
        v = x ^ y;
        break;
    case '&':
        v = x & y;
        break;
    case WS_TOK_EQ:
        v = x == y;
        break;
    case WS_TOK_NE:
        v = x != y;
        break;
    case '<':
        v = less;
        break;
    case '>':
        v = more;
        break;
    case WS_TOK_LE:
        v = !more;
        break;
    case WS_TOK_GE:
        v = !less;
        break;
    case WS_TOK_SHL:
        v = y > 63 ? 0 : x << shift;
        break;
    case WS_TOK_SHR:
        v = a->is_unsigned ? (y > 63 ? 0 : x >> shift) : a->v >> (y > 63 ? 63 : shift);
        break;
    case '+':
        v = x + y;
        break;
    case '-':
        v = x - y;
        break;
    case '*':
        v = x * y;
        break;
    default:
        if (!divide(p, op, op->kind, *a, b, u, &v))
            return false;
    }
    bool boolean =
        op->kind == '<' || op->kind == '>' || (op->kind >= WS_TOK_ANDAND && op->kind <= WS_TOK_GE);
    *a = (struct expr_value){v, u && !boolean};
    return true;
}

static bool binary(struct ws_parser *p, struct expr_value *ret, int min_level, int depth)
{
    if (!unary(p, ret, depth + 1))
        return false;
    for (;;) {
        struct ws_tok op = p->t;
        int level = 0;
        for (size_t i = 0; i < WS_ARRAY_SIZE(ops); i++)
            if (ops[i].kind == op.kind)
                level = ops[i].level;
        if (level < min_level || !level)
            return true;
        struct expr_value b;
        ws_parse_next(p);
        if (!binary(p, &b, level + 1, depth + 1) || !combine(p, &op, ret, b))
            return false;
    }
}

static bool ternary(struct ws_parser *p, struct expr_value *ret, int depth)
{
    struct expr_value c, a, b;
    if (!binary(p, &c, 1, depth + 1))
        return false;
    *ret = c;
    if (!ws_parse_accept(p, '?'))
        return true;
    if (!ternary(p, &a, depth + 1) || !ws_parse_expect(p, ':', "':'") || !ternary(p, &b, depth + 1))
        return false;
    *ret = c.v ? a : b;
    return true;
}

bool ws_expr_parse(struct ws_parser *p, struct ws_ptx_operand *ret)
{
    struct ws_tok sign = p->t;
    bool neg = false;
    *ret = (struct ws_ptx_operand){.kind = WS_OPD_IMM, .reg = -1, .sym = -1, .label = -1};
    if (sign.kind == '-' || sign.kind == '+') {
        /* Look past the sign for a float: "-1.5". The lexer is cheap to rewind. */
        struct ws_lex saved = p->lex;
        const char *prev_end = p->prev_end;
        ws_parse_next(p);
        neg = sign.kind == '-';
        if (p->t.kind != WS_TOK_NUM || p->t.imm_kind == WS_IMM_INT) {
            saved.c_locale = p->lex.c_locale;
            p->lex = saved;
            p->t = sign;
            p->prev_end = prev_end;
            neg = false;
        }
    }
    if (p->t.kind == WS_TOK_NUM && p->t.imm_kind != WS_IMM_INT) {
        ret->imm_kind = p->t.imm_kind;
        ret->imm = p->t.value;
        if (neg)
            ret->imm ^= p->t.imm_kind == WS_IMM_F32 ? INT64_C(0x80000000) : INT64_MIN;
        ws_parse_next(p);
        return true;
    }
    struct expr_value v;
    if (!ternary(p, &v, 0))
        return false;
    ret->imm = v.v;
    return true;
}

bool ws_parse_int(struct ws_parser *p, int64_t *ret, const char *what)
{
    struct ws_ptx_operand o;
    struct ws_tok t = p->t;
    if (!ws_expr_parse(p, &o))
        return false;
    if (o.imm_kind != WS_IMM_INT)
        return ws_parse_fail(p, &t, "%s must be an integer", what);
    *ret = o.imm;
    return true;
}

static double imm_double(const struct ws_ptx_operand *o)
{
    double d;
    float f;
    uint32_t u = (uint32_t)o->imm;
    switch (o->imm_kind) {
    case WS_IMM_F64:
        memcpy(&d, &o->imm, sizeof(d));
        return d;
    case WS_IMM_F32:
        memcpy(&f, &u, sizeof(f));
        return f;
    default:
        return (double)o->imm;
    }
}

static uint64_t float_bits(double d)
{
    float f = (float)d;
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

/* Rounds to a binary format of 16 bits, to nearest even. @man: bits of the fraction. */
static uint64_t half_bits(double d, int exp_bits, int man)
{
    int bias = (1 << (exp_bits - 1)) - 1, e;
    uint64_t sign = signbit(d) ? 0x8000 : 0, inf = (uint64_t)((1 << exp_bits) - 1) << man;
    if (isnan(d))
        return 0x7fff;
    if (isinf(d))
        return sign | inf;
    double m = frexp(fabs(d), &e); /* m in [0.5, 1) */
    e = WS_MAX(e - 1, 1 - bias);   /* below it: subnormal */
    if (m == 0.0)
        return sign;
    /* Adding 2^52 leaves no bits for a fraction: rounds to nearest even. */
    volatile double big = 0x1p52 + ldexp(fabs(d), man - e);
    double units = big - 0x1p52;
    /* units is in [2^man, 2^(man+1)] for a normal number, less for a subnormal; a carry moves into
     * the exponent. */
    uint64_t v = (uint64_t)units + ((uint64_t)(e + bias - 1) << man);
    return sign | WS_MIN(v, inf);
}

/* A double that lies outside int64 saturates: C leaves that undefined. */
static uint64_t int_bits(double d)
{
    if (!(d > -9.3e18))
        return isnan(d) ? 0 : (uint64_t)INT64_MIN;
    if (d >= 18446744073709551616.0)
        return UINT64_MAX;
    return d >= 9223372036854775808.0   ? (uint64_t)d
           : d < -9223372036854775808.0 ? (uint64_t)INT64_MIN
                                        : (uint64_t)(int64_t)d;
}

uint64_t ws_ptx_imm_as(const struct ws_ptx_operand *o, enum ws_ptx_type t)
{
    double d = imm_double(o);
    uint64_t v = o->imm;
    unsigned bytes = ws_ptx_type_bytes(t);
    switch (t) {
    case WS_T_F64:
        memcpy(&v, &d, sizeof(v));
        return v;
    case WS_T_F32:
        return o->imm_kind == WS_IMM_F32 ? (uint32_t)v
                                         : float_bits(d); /* keeps the payload of a NaN */
    case WS_T_F16:
        return half_bits(d, 5, 10);
    case WS_T_BF16:
        return half_bits(d, 8, 7);
    case WS_T_PRED:
        return o->imm_kind == WS_IMM_INT ? v != 0 : d != 0;
    case WS_T_F16X2:
    case WS_T_BF16X2:
    case WS_T_TF32:
    case WS_T_F32X2:
    case WS_T_B8:
    case WS_T_B16:
    case WS_T_B32:
    case WS_T_B64:
        /* Bits: a constant of the same width as it is, another one converted. */
        if (o->imm_kind == WS_IMM_F32 && bytes == 8)
            memcpy(&v, &d, sizeof(v));
        else if (o->imm_kind == WS_IMM_F64 && bytes == 4)
            v = float_bits(d);
        break;
    default:
        if (o->imm_kind != WS_IMM_INT)
            v = int_bits(d);
    }
    return bytes >= 8 || !bytes ? v : v & ((UINT64_C(1) << 8 * bytes) - 1);
}

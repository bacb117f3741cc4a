// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/shape.c - rows whose lanes differ by constants.
 *
 * One shape is assumed for all that is ever written to a row, whatever the order; where two writers
 * disagree the row has none. What this says holds while all 32 lanes run together, from an entry at
 * which it holds (jit.c asks). */
#include "device/soft/jit/shape.h"

#include <string.h>

#include "base/budget.h"

enum { LANES = 32 };

bool ws_jit_uniform(const struct ws_jit_row *r)
{
    static const int64_t none[LANES];
    return r->shape == WS_SHAPE_KNOWN && memcmp(r->apart, none, sizeof(none)) == 0;
}

bool ws_jit_const(const struct ws_jit_plan *p, uint32_t row, uint64_t *ret)
{
    const struct ws_jit_row *r = &p->rows[row];
    const struct ws_fill *f = r->fill ? r->fill : r->copied;
    if (!f || f->kind != WS_FILL_CONST)
        return false;
    *ret = f->value;
    return true;
}

static int64_t wrap(int64_t v, uint8_t width)
{
    switch (width) {
    case 1:
        return (int8_t)v;
    case 2:
        return (int16_t)v;
    case 4:
        return (int32_t)v;
    default:
        return v;
    }
}

/* ---- special registers ---- */
static uint32_t thread_part(const struct ws_jit_plan *p, uint32_t dim, uint32_t t)
{
    const uint32_t *n = p->block;
    return dim == 0 ? t % n[0] : dim == 1 ? t / n[0] % n[1] : t / n[0] / n[1];
}

/* The same in every warp? */
static bool thread_shape(struct ws_jit_plan *p, struct ws_jit_row *r)
{
    uint32_t dim = r->fill->dim > 2 ? 0 : r->fill->dim;
    uint32_t warps = (p->block[0] * p->block[1] * p->block[2] + LANES - 1) / LANES;
    for (uint32_t t = 0; t < warps * LANES; t++) {
        int64_t d = (int64_t)thread_part(p, dim, t) - thread_part(p, dim, t / LANES * LANES);
        if (t < LANES)
            r->apart[t] = d;
        else if (r->apart[t % LANES] != d)
            return false;
    }
    return true;
}

static void fill_shape(struct ws_jit_plan *p, struct ws_jit_row *r)
{
    const struct ws_fill *f = r->fill;
    r->shape = WS_SHAPE_KNOWN;
    if (f->kind != WS_FILL_SREG)
        return;
    if (f->sreg == WS_SR_LANEID)
        for (int i = 0; i < LANES; i++)
            r->apart[i] = i;
    else if (f->sreg == WS_SR_TID ? !thread_shape(p, r)
                                  : f->sreg >= WS_SR_LANEMASK_EQ && f->sreg <= WS_SR_LANEMASK_GT)
        r->shape = WS_SHAPE_ANY;
    if (r->width == 0 && f->kind != WS_FILL_CONST)
        r->shape = WS_SHAPE_ANY;
}

/* ---- micro-ops ---- */
struct operands {
    const struct ws_jit_row *a, *b, *c;
    uint64_t ka, kb; /* constants */
    bool has_ka, has_kb;
};

static bool operands(const struct ws_jit_plan *p, const struct ws_uop *u, unsigned n,
                     struct operands *ret)
{
    const struct ws_jit_row *r[3] = {NULL};
    const int32_t off[3] = {u->a, u->b, u->c};
    for (unsigned k = 0; k < n; k++) {
        r[k] = &p->rows[ws_jit_row_of(p, (uint32_t)off[k])];
        if (r[k]->shape != WS_SHAPE_KNOWN)
            return false;
    }
    *ret = (struct operands){r[0], r[1], r[2], 0, 0, false, false};
    ret->has_ka = ws_jit_const(p, ws_jit_row_of(p, (uint32_t)u->a), &ret->ka);
    if (n > 1)
        ret->has_kb = ws_jit_const(p, ws_jit_row_of(p, (uint32_t)u->b), &ret->kb);
    return true;
}

/* a * b + c, of which one factor must be a constant unless both are uniform. */
static bool product(const struct operands *o, int64_t *apart)
{
    bool plain = ws_jit_uniform(o->a) && ws_jit_uniform(o->b);
    if (!plain && !o->has_ka && !o->has_kb)
        return false;
    for (int i = 0; i < LANES; i++)
        apart[i] = (plain       ? 0
                    : o->has_kb ? (int64_t)((uint64_t)o->a->apart[i] * o->kb)
                                : (int64_t)((uint64_t)o->b->apart[i] * o->ka)) +
                   (o->c ? o->c->apart[i] : 0);
    return true;
}

static bool wide_product(const struct operands *o, bool is_signed, int64_t *apart)
{
    struct operands x = *o;
    if (!ws_jit_uniform(o->b) || (!ws_jit_uniform(o->a) && !o->has_kb))
        return false;
    x.has_ka = false;
    x.kb = is_signed ? (uint64_t)(int64_t)(int32_t)o->kb : o->kb;
    return product(&x, apart);
}

/* Return: whether the result's shape follows; apart: what it is. */
static bool linear(const struct ws_jit_plan *p, const struct ws_uop *u, uint16_t h, int64_t *apart)
{
    struct operands o;
    switch (h) {
    case WS_H_mov_16:
    case WS_H_mov_32:
    case WS_H_mov_64:
    case WS_H_cvt_16_u32:
    case WS_H_cvt_16_s32:
    case WS_H_cvt_32_u64:
    case WS_H_cvt_16_u64:
    case WS_H_cvt_64_u32:
    case WS_H_cvt_64_s32:
        if (!operands(p, u, 1, &o))
            return false;
        memcpy(apart, o.a->apart, sizeof(o.a->apart));
        return true;
    case WS_H_add_16:
    case WS_H_add_32:
    case WS_H_add_64:
    case WS_H_sub_16:
    case WS_H_sub_32:
    case WS_H_sub_64: {
        bool minus = h == WS_H_sub_16 || h == WS_H_sub_32 || h == WS_H_sub_64;
        if (!operands(p, u, 2, &o))
            return false;
        for (int i = 0; i < LANES; i++)
            apart[i] = o.a->apart[i] + (minus ? -o.b->apart[i] : o.b->apart[i]);
        return true;
    }
    case WS_H_shl_32:
    case WS_H_shl_64:
        if (!operands(p, u, 2, &o) || !o.has_kb || (uint32_t)o.kb >= 8u * o.a->width)
            return false;
        for (int i = 0; i < LANES; i++)
            apart[i] = (int64_t)((uint64_t)o.a->apart[i] << (uint32_t)o.kb);
        return true;
    case WS_H_mul_lo_32:
    case WS_H_mul_lo_64:
        return operands(p, u, 2, &o) && product(&o, apart);
    case WS_H_mad_lo_32:
    case WS_H_mad_lo_64:
        return operands(p, u, 3, &o) && product(&o, apart);
    case WS_H_mul_wide_u32:
    case WS_H_mul_wide_s32:
        return operands(p, u, 2, &o) && wide_product(&o, h == WS_H_mul_wide_s32, apart);
    case WS_H_mad_wide_u32:
    case WS_H_mad_wide_s32:
        return operands(p, u, 3, &o) && wide_product(&o, h == WS_H_mad_wide_s32, apart);
    default:
        return false;
    }
}

bool ws_jit_may_wrap(const struct ws_jit_plan *p, uint32_t k, uint32_t *ret_row, bool *is_signed)
{
    const struct ws_uop *u = &p->img->uops[k];
    switch (p->ops[k].h) {
    case WS_H_cvt_64_s32:
    case WS_H_mul_wide_s32:
    case WS_H_mad_wide_s32:
        *is_signed = true;
        break;
    case WS_H_cvt_64_u32:
    case WS_H_mul_wide_u32:
    case WS_H_mad_wide_u32:
        *is_signed = false;
        break;
    default:
        return false;
    }
    *ret_row = ws_jit_row_of(p, (uint32_t)u->a);
    return !ws_jit_uniform(&p->rows[*ret_row]);
}

bool ws_jit_is_even_vote(const struct ws_jit_plan *p, uint32_t k)
{
    const struct ws_uop *u = &p->img->uops[k];
    uint64_t names;
    return p->ops[k].h == WS_H_vote && ws_jit_unguarded(p, u) &&
           (!u->e || ws_jit_const(p, ws_jit_row_of(p, (uint32_t)u->e), &names));
}

bool ws_jit_may_part(const struct ws_jit_plan *p)
{
    for (uint32_t k = 0; k < p->img->n_uops; k++)
        if (p->ops[k].h == WS_H_bra &&
            !ws_jit_uniform(&p->rows[ws_jit_row_of(p, p->img->uops[k].guard)]))
            return true;
    return false;
}

/* Whether the handler's result for a lane follows from that lane's operands alone. */
static bool is_pure(const struct ws_jit_plan *p, uint32_t k)
{
    uint16_t h = p->ops[k].h;
    switch (h) {
    case WS_H_isspacep:
    case WS_H_lop3:
    case WS_H_p_and:
    case WS_H_p_or:
    case WS_H_p_xor:
    case WS_H_p_mov:
    case WS_H_p_set:
    case WS_H_ld_p:
    case WS_H_ld_g_8:
    case WS_H_ld_g_16:
    case WS_H_ld_g_32:
    case WS_H_ld_g_64:
    case WS_H_ld_s_8:
    case WS_H_ld_s_16:
    case WS_H_ld_s_32:
    case WS_H_ld_s_64:
    case WS_H_cvta:
    case WS_H_cvta_to:
    case WS_H_lea_local:
        return true;
    default:
        return h < WS_H_lane; /* those of ops.inc, and selp */
    }
}

static bool sources_uniform(const struct ws_jit_plan *p, const struct ws_jit_op *op)
{
    for (uint32_t n = 0; n < op->n_touches; n++)
        if (!op->touch[n].write && !ws_jit_uniform(&p->rows[op->touch[n].row]))
            return false;
    return true;
}

static bool sources_seen(const struct ws_jit_plan *p, const struct ws_jit_op *op)
{
    for (uint32_t n = 0; n < op->n_touches; n++)
        if (!op->touch[n].write && p->rows[op->touch[n].row].shape == WS_SHAPE_NONE)
            return false;
    return true;
}

/* Return: whether anything became known. */
static bool see(struct ws_jit_plan *p, uint32_t k)
{
    const struct ws_jit_op *op = &p->ops[k];
    const struct ws_uop *u = &p->img->uops[k];
    int64_t apart[LANES] = {0};
    bool changed = false;
    if (!sources_seen(p, op))
        return false;
    bool even = ws_jit_unguarded(p, u) || ws_jit_uniform(&p->rows[ws_jit_row_of(p, u->guard)]);
    bool known = even && ((is_pure(p, k) && sources_uniform(p, op)) || ws_jit_is_even_vote(p, k) ||
                          linear(p, u, op->h, apart));
    for (uint32_t n = 0; n < op->n_touches; n++) {
        if (!op->touch[n].write)
            continue;
        struct ws_jit_row *r = &p->rows[op->touch[n].row];
        enum ws_jit_shape before = r->shape;
        for (int i = 0; i < LANES; i++)
            apart[i] = wrap(apart[i], r->width);
        if (before == WS_SHAPE_ANY)
            continue;
        if (!known || (before == WS_SHAPE_KNOWN && memcmp(apart, r->apart, sizeof(apart)) != 0))
            r->shape = WS_SHAPE_ANY;
        else
            r->shape = WS_SHAPE_KNOWN;
        memcpy(r->apart, apart, sizeof(apart));
        changed |= r->shape != before;
    }
    return changed;
}

void ws_jit_find_shapes(struct ws_jit_plan *p)
{
    bool changed = true;
    for (uint32_t r = 0; r < p->n_rows; r++)
        if (p->rows[r].fill)
            fill_shape(p, &p->rows[r]);
        else if (!p->rows[r].written)
            p->rows[r].shape = WS_SHAPE_ANY;
    while (changed && ws_budget_spend(p->img->n_uops)) {
        changed = false;
        for (uint32_t k = 0; k < p->img->n_uops; k++)
            changed |= see(p, k);
        /* What nothing known reaches; others may be written from it. */
        for (uint32_t r = 0; !changed && r < p->n_rows; r++)
            if (p->rows[r].shape == WS_SHAPE_NONE) {
                p->rows[r].shape = WS_SHAPE_ANY;
                changed = true;
            }
    }
}

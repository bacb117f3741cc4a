// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/operand.c - rows of the register file, and the operands that live in them.
 *
 * Rows are made when something first asks for them: registers, temporaries, constants, special
 * registers, addresses of variables. Where an instruction reads a narrower type than its register
 * has, or writes one, a conversion to or from a temporary row stands beside it. */
#include <string.h>

#include "base/hash.h"
#include "device/soft/decode/priv.h"

/* ---- rows ---- */
uint32_t ws_dec_row_alloc(struct ws_dec *d, uint32_t width)
{
    uint32_t off = d->top;
    d->top += WS_MAX(64u, 32 * width);
    if (d->top > 1u << 24) {
        if (!d->unsupported)
            ws_dec_unsupported(d, "kernel with too many registers");
        d->top = 1024;
    }
    return off;
}

uint32_t ws_dec_temp(struct ws_dec *d, uint32_t width)
{
    uint32_t k = d->temps_used[width];
    if (k >= WS_ARRAY_SIZE(d->temps[0]))
        return ws_dec_row_alloc(d, width);
    if (k >= d->n_temps[width]) {
        d->temps[width][k] = ws_dec_row_alloc(d, width);
        d->n_temps[width] = k + 1;
    }
    d->temps_used[width] = k + 1;
    return d->temps[width][k];
}

/* Chains of fills with the same hash; 0 ends one, entry k + 1 is fill k. */
static uint32_t *fill_chain(struct ws_dec *d, const struct ws_fill *f)
{
    const uint64_t key[2] = {f->value, (uint64_t)f->var << 32 | (uint32_t)f->sreg << 24 |
                                           (uint32_t)f->dim << 16 | (uint32_t)f->width << 8 |
                                           f->kind};
    return &d->fill_heads[ws_hash(key, sizeof(key)) % WS_ARRAY_SIZE(d->fill_heads)];
}

static uint32_t fill(struct ws_dec *d, struct ws_fill want)
{
    uint32_t *head = fill_chain(d, &want);
    for (uint32_t k = *head; k; k = d->fill_next[k - 1]) {
        const struct ws_fill *f = &d->fills[k - 1];
        if (f->kind == want.kind && f->width == want.width && f->sreg == want.sreg &&
            f->dim == want.dim && f->var == want.var && f->value == want.value)
            return f->off;
    }
    if (d->oom || WS_DEC_GROW(d, fills, cap_fills, d->n_fills + 1) ||
        WS_DEC_GROW(d, fill_next, cap_fill_next, d->n_fills + 1)) {
        d->oom = true;
        return 64;
    }
    want.off = ws_dec_row_alloc(d, want.width);
    d->fill_next[d->n_fills] = *head;
    d->fills[d->n_fills++] = want;
    *head = d->n_fills;
    return want.off;
}

/* @width 0: a predicate word. */
uint32_t ws_dec_const(struct ws_dec *d, uint32_t width, uint64_t value)
{
    if (width && width < 8)
        value &= (UINT64_C(1) << (8 * width)) - 1;
    return fill(d,
                (struct ws_fill){.kind = WS_FILL_CONST, .width = (uint8_t)width, .value = value});
}

uint32_t ws_dec_var_row(struct ws_dec *d, uint32_t width, uint32_t var, uint64_t addend)
{
    if (d->m->vars[var].link == WS_LINK_EXTERN) {
        d->unresolved = true;
        ws_dec_unsupported(d, "unresolved external variable %s", d->m->vars[var].name);
    }
    return fill(d, (struct ws_fill){
                       .kind = WS_FILL_VAR, .width = (uint8_t)width, .var = var, .value = addend});
}

/* The value is patched when the static part is known; var marks the row. */
uint32_t ws_dec_dyn_row(struct ws_dec *d, uint32_t width)
{
    return fill(d, (struct ws_fill){.kind = WS_FILL_CONST, .width = (uint8_t)width, .var = 1});
}

static uint32_t place_shared(struct ws_dec *d, const struct ws_ptx_var *v, struct ws_var_store *s)
{
    if (v->size_bytes == 0)
        return ~0u;
    if (s->placed != d->image) {
        uint64_t align = WS_MAX(v->align, 1u),
                 off = WS_ALIGN_UP((uint64_t)d->img->shared_bytes, align);
        if (off + v->size_bytes > 1u << 30) {
            ws_dec_unsupported(d, "shared memory of more than 1 GiB");
            return 0;
        }
        s->off = (uint32_t)off;
        s->placed = d->image;
        d->img->shared_bytes = (uint32_t)(off + v->size_bytes);
    }
    return s->off;
}

const struct ws_ptx_var *ws_dec_symvar(struct ws_dec *d, int32_t sym,
                                       struct ws_var_store **ret_store)
{
    uint32_t k = (uint32_t)WS_PTX_SYM_INDEX(sym);
    if (WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_LOCALVAR) {
        *ret_store = &d->df->vars[k];
        return ws_ptx_localvar(d->df->f, k);
    }
    *ret_store = &d->gvars[k];
    return &d->m->vars[k];
}

uint32_t ws_dec_shared_off(struct ws_dec *d, int32_t sym)
{
    struct ws_var_store *s;
    const struct ws_ptx_var *v = ws_dec_symvar(d, sym, &s);
    return place_shared(d, v, s);
}

/* ---- operands ---- */
static unsigned log2_width(uint32_t width)
{
    switch (width) {
    case 1:
        return 0;
    case 2:
        return 1;
    case 4:
        return 2;
    default:
        return 3;
    }
}

enum ws_handler ws_dec_cvt_int(uint32_t width, enum ws_ptx_type from)
{
    static const uint16_t table[4][7] = {
#define ROW_(n)                                                                                    \
    {WS_H_cvt_##n##_u8,  WS_H_cvt_##n##_s8,  WS_H_cvt_##n##_u16, WS_H_cvt_##n##_s16,               \
     WS_H_cvt_##n##_u32, WS_H_cvt_##n##_s32, WS_H_cvt_##n##_u64}
        ROW_(8), ROW_(16), ROW_(32), ROW_(64)
#undef ROW_
    };
    unsigned t;
    switch (from) {
    case WS_T_S8:
        t = 1;
        break;
    case WS_T_S16:
        t = 3;
        break;
    case WS_T_S32:
        t = 5;
        break;
    default:
        switch (ws_ptx_type_bytes(from)) {
        case 1:
            t = 0;
            break;
        case 2:
            t = 2;
            break;
        case 4:
            t = 4;
            break;
        default:
            t = 6;
            break;
        }
    }
    return (enum ws_handler)table[log2_width(width)][t];
}

uint32_t ws_dec_mov(struct ws_dec *d, uint32_t width, uint32_t dst, uint32_t src)
{
    enum ws_handler h;
    switch (width) {
    case 0:
        h = WS_H_p_mov;
        break;
    case 1:
        h = WS_H_cvt_8_u8;
        break;
    case 2:
        h = WS_H_mov_16;
        break;
    case 4:
        h = WS_H_mov_32;
        break;
    default:
        h = WS_H_mov_64;
        break;
    }
    ws_dec_emit3(d, h, dst, src, 0);
    return dst;
}

/* Which element of a vector register a suffix names (5.4.2, 6.4.3); -1: none of @n. */
static int element(const char *part, unsigned n)
{
    static const char names[] = "xyzwrgba";
    const char *at = part && part[0] == '.' && part[1] && !part[2] ? strchr(names, part[1]) : NULL;
    unsigned k = at ? (unsigned)(at - names) % 4 : n;
    return k < n ? (int)k : -1;
}

static bool reg_ok(struct ws_dec *d, const struct ws_ptx_operand *o)
{
    if (o->reg < 0 || (uint32_t)o->reg >= d->df->f->n_regs)
        ws_dec_unsupported(d, "%s: operand is no register", ws_ptx_op_name(d->in->op));
    else if (d->df->f->regs[o->reg].vec > 1 ? element(o->part, d->df->f->regs[o->reg].vec) < 0
                                            : o->part != NULL)
        ws_dec_unsupported(d, "%s: part of a register", ws_ptx_op_name(d->in->op));
    else
        return true;
    return false;
}

static uint32_t reg_row(const struct ws_dec *d, const struct ws_ptx_operand *o)
{
    const struct ws_ptx_reg *r = &d->df->f->regs[o->reg];
    uint32_t row = d->df->rows[o->reg];
    return r->vec > 1
               ? row + (uint32_t)element(o->part, r->vec) * ws_dec_row_bytes(ws_dec_reg_width(r))
               : row;
}

/* A whole vector register stands for the list of its elements. NULL: no memory. */
static const struct ws_ptx_operand *spell_out(struct ws_dec *d, const struct ws_ptx_operand *o)
{
    static const char *const parts[] = {".x", ".y", ".z", ".w"};
    unsigned n = d->df->f->regs[o->reg].vec;
    struct ws_ptx_operand *list = ws_arena_array(&d->tmp, 1, sizeof(*list)),
                          *v = ws_arena_array(&d->tmp, n, sizeof(*v));
    if (!list || !v)
        return NULL;
    for (unsigned k = 0; k < n; k++) {
        v[k] = *o;
        v[k].part = parts[k];
    }
    *list = (struct ws_ptx_operand){
        .kind = WS_OPD_VEC, .n = (uint16_t)n, .v = v, .reg = -1, .sym = -1, .label = -1};
    return list;
}

static bool is_whole_vector(const struct ws_dec *d, const struct ws_ptx_operand *o)
{
    return o->kind == WS_OPD_REG && !o->part && o->reg >= 0 &&
           (uint32_t)o->reg < d->df->f->n_regs && d->df->f->regs[o->reg].vec > 1 &&
           d->df->f->regs[o->reg].vec <= 4;
}

const struct ws_ptx_insn *ws_dec_spell_out(struct ws_dec *d, const struct ws_ptx_insn *i)
{
    struct ws_ptx_insn *copy = NULL;
    for (unsigned k = 0; k < i->n_operands; k++) {
        if (!is_whole_vector(d, &i->operands[k]))
            continue;
        if (!copy) {
            copy = ws_arena_alloc(&d->tmp, sizeof(*copy));
            struct ws_ptx_operand *o = ws_arena_array(&d->tmp, i->n_operands, sizeof(*o));
            if (!copy || !o) {
                d->oom = true;
                return i;
            }
            memcpy(o, i->operands, i->n_operands * sizeof(*o));
            *copy = *i;
            copy->operands = o;
        }
        const struct ws_ptx_operand *list = spell_out(d, &i->operands[k]);
        if (!list) {
            d->oom = true;
            return i;
        }
        copy->operands[k] = *list;
    }
    return copy ? copy : i;
}

static uint32_t src_sreg(struct ws_dec *d, const struct ws_ptx_operand *o, uint32_t width)
{
    uint32_t t, a = 0, native = 4;
    enum ws_handler h = WS_H_nop;
    switch (o->sreg) {
    case WS_SR_CLOCK:
        h = WS_H_clock;
        break;
    case WS_SR_CLOCK_HI:
        h = WS_H_clock_hi;
        break;
    case WS_SR_CLOCK64:
        h = WS_H_clock64;
        native = 8;
        break;
    case WS_SR_GLOBALTIMER:
        h = WS_H_globaltimer;
        native = 8;
        break;
    case WS_SR_GLOBALTIMER_LO:
    case WS_SR_GLOBALTIMER_HI:
        t = ws_dec_temp(d, 8);
        ws_dec_emit3(d, WS_H_globaltimer, t, 0, 0);
        h = o->sreg == WS_SR_GLOBALTIMER_LO ? WS_H_unlo_32 : WS_H_unhi_32;
        a = t;
        break;
    case WS_SR_PM: /* nothing is being monitored */
        return ws_dec_const(d, width ? width : 4, 0);
    default:
        if (o->sreg_dim > 2 && o->sreg != WS_SR_ENVREG && o->sreg != WS_SR_RESERVED_SMEM_OFFSET)
            ws_dec_unsupported(d, "special register %s as a vector", ws_ptx_sreg_name(o->sreg));
        d->img->uses_reserved_shared |= o->sreg == WS_SR_RESERVED_SMEM_OFFSET;
        return fill(d, (struct ws_fill){.kind = WS_FILL_SREG,
                                        .width = (uint8_t)(width ? width : 4),
                                        .sreg = o->sreg,
                                        .dim = o->sreg_dim});
    }
    t = ws_dec_temp(d, native);
    ws_dec_emit3(d, h, t, a, 0);
    if (native == width)
        return t;
    uint32_t t2 = ws_dec_temp(d, width);
    ws_dec_emit3(d, ws_dec_cvt_int(width, ws_ptx_uint_type(native)), t2, t, 0);
    return t2;
}

/* The name of a texture, sampler or surface reference stands for the handle that its variable holds
 * (base/texture.h). */
static uint32_t src_handle(struct ws_dec *d, const struct ws_ptx_operand *o,
                           const struct ws_ptx_var *v, const struct ws_var_store *s, uint32_t width)
{
    bool global = v->space == WS_SP_GLOBAL && WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_VAR;
    if (width != 8 || o->imm || (!global && s->kind != WS_STORE_KPARAM)) {
        ws_dec_unsupported(d, "address of %s", v->name);
        return 64;
    }
    uint32_t t = ws_dec_temp(d, 8);
    uint32_t at = global ? ws_dec_var_row(d, 8, (uint32_t)WS_PTX_SYM_INDEX(o->sym), 0) : 0;
    struct ws_uop *u = ws_dec_emit3(d, global ? WS_H_ld_x : WS_H_ld_p, t, at, 0);
    u->imm = global ? 0 : (int64_t)s->off;
    u->x = (global ? WS_SP_GLOBAL : WS_SP_PARAM) | WS_X_NOCOUNT | 8u << WS_X_SIZE_SHIFT |
           1u << WS_X_VEC_SHIFT;
    return t;
}

static uint32_t src_sym(struct ws_dec *d, const struct ws_ptx_operand *o, uint32_t width)
{
    if (WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_FUNC)
        return ws_dec_const(d, width,
                            ws_exec_func_va((uint32_t)WS_PTX_SYM_INDEX(o->sym)) + (uint64_t)o->imm);
    struct ws_var_store *s;
    const struct ws_ptx_var *v = ws_dec_symvar(d, o->sym, &s);
    if (v->type >= WS_T_TEXREF && v->type <= WS_T_SURFREF)
        return src_handle(d, o, v, s, width);
    switch (v->space) {
    case WS_SP_GLOBAL:
    case WS_SP_CONST:
        return ws_dec_var_row(d, width, (uint32_t)WS_PTX_SYM_INDEX(o->sym), (uint64_t)o->imm);
    case WS_SP_SHARED: {
        uint32_t off = ws_dec_shared_off(d, o->sym);
        if (off != ~0u)
            return ws_dec_const(d, width, off + (uint64_t)o->imm);
        uint32_t row = ws_dec_dyn_row(d, width);
        if (o->imm == 0)
            return row;
        uint32_t t = ws_dec_temp(d, width);
        ws_dec_emit3(d, width == 4 ? WS_H_add_32 : WS_H_add_64, t, row,
                     ws_dec_const(d, width, (uint64_t)o->imm));
        return t;
    }
    default:
        break;
    }
    if (s->kind == WS_STORE_KPARAM)
        return ws_dec_const(d, width, s->off + (uint64_t)o->imm);
    if (s->kind == WS_STORE_LOCAL) {
        uint32_t t = ws_dec_temp(d, 8);
        struct ws_uop *u = ws_dec_emit3(d, WS_H_lea_local, t, d->img->fp_off, 0);
        u->imm = s->off + o->imm;
        u->x = v->space == WS_SP_PARAM; /* its address says that it is local memory */
        if (width == 8)
            return t;
        uint32_t t2 = ws_dec_temp(d, width);
        ws_dec_emit3(d, ws_dec_cvt_int(width, WS_T_U64), t2, t, 0);
        return t2;
    }
    ws_dec_unsupported(d, "address of %s", v->name);
    return 64;
}

static bool width_ok(struct ws_dec *d, uint32_t width)
{
    if (width <= 8)
        return true;
    ws_dec_unsupported(d, "%s: 128-bit operand", ws_ptx_op_name(d->in->op));
    return false;
}

uint32_t ws_dec_src(struct ws_dec *d, const struct ws_ptx_operand *o, enum ws_ptx_type t)
{
    uint32_t width = ws_dec_width(t), off;
    if (!width_ok(d, width))
        return 64;
    switch (o->kind) {
    case WS_OPD_REG: {
        if (!reg_ok(d, o))
            return 64;
        uint32_t w = ws_dec_reg_width(&d->df->f->regs[o->reg]);
        off = reg_row(d, o);
        if (w == width || width == 0)
            return off;
        if (w == 0) { /* a predicate where a number is wanted */
            ws_dec_unsupported(d, "%s: predicate operand", ws_ptx_op_name(d->in->op));
            return 64;
        }
        if (w > 8) {
            ws_dec_unsupported(d, "%s: 128-bit operand", ws_ptx_op_name(d->in->op));
            return 64;
        }
        uint32_t tmp = ws_dec_temp(d, width);
        ws_dec_emit3(d, ws_dec_cvt_int(width, ws_ptx_uint_type(w)), tmp, off, 0);
        return tmp;
    }
    case WS_OPD_IMM:
        return ws_dec_const(d, width, ws_ptx_imm_as(o, t));
    case WS_OPD_SREG:
        return src_sreg(d, o, width);
    case WS_OPD_SYM:
        return src_sym(d, o, width);
    case WS_OPD_SINK:
        return ws_dec_const(d, width, 0);
    default:
        ws_dec_unsupported(d, "%s: form of operand", ws_ptx_op_name(d->in->op));
        return 64;
    }
}

static uint32_t sink(struct ws_dec *d, uint32_t width)
{
    if (!d->sink[width])
        d->sink[width] = ws_dec_row_alloc(d, width);
    return d->sink[width];
}

uint32_t ws_dec_dst(struct ws_dec *d, const struct ws_ptx_operand *o, enum ws_ptx_type t,
                    bool *ret_finish)
{
    uint32_t width = ws_dec_width(t);
    *ret_finish = false;
    if (!width_ok(d, width))
        return 64;
    if (o->kind == WS_OPD_SINK)
        return sink(d, width);
    if (o->kind != WS_OPD_REG) {
        ws_dec_unsupported(d, "%s: form of destination", ws_ptx_op_name(d->in->op));
        return 64;
    }
    if (!reg_ok(d, o))
        return 64;
    uint32_t w = ws_dec_reg_width(&d->df->f->regs[o->reg]);
    if (w == width)
        return reg_row(d, o);
    if (w == 0 || width == 0 || w > 8) {
        ws_dec_unsupported(d, "%s: %s destination", ws_ptx_op_name(d->in->op),
                           w > 8 ? "128-bit" : "predicate");
        return 64;
    }
    *ret_finish = true;
    return ws_dec_temp(d, width);
}

void ws_dec_finish(struct ws_dec *d, const struct ws_ptx_operand *o, enum ws_ptx_type t,
                   uint32_t row)
{
    uint32_t w = ws_dec_reg_width(&d->df->f->regs[o->reg]);
    ws_dec_emit3(d, ws_dec_cvt_int(w, t), reg_row(d, o), row, 0);
}

static uint32_t reg128(struct ws_dec *d, const struct ws_ptx_operand *o)
{
    if (o->kind == WS_OPD_REG && reg_ok(d, o)) {
        if (ws_dec_reg_width(&d->df->f->regs[o->reg]) == 16)
            return reg_row(d, o);
        ws_dec_unsupported(d, "%s: operand is no 128-bit register", ws_ptx_op_name(d->in->op));
    } else if (o->kind != WS_OPD_REG) {
        ws_dec_unsupported(d, "%s: form of operand", ws_ptx_op_name(d->in->op));
    }
    return 64;
}

uint32_t ws_dec_src128(struct ws_dec *d, const struct ws_ptx_operand *o)
{
    return reg128(d, o);
}

uint32_t ws_dec_dst128(struct ws_dec *d, const struct ws_ptx_operand *o)
{
    if (o->kind != WS_OPD_SINK)
        return reg128(d, o);
    if (!d->sink128)
        d->sink128 = ws_dec_row_alloc(d, 16);
    return d->sink128;
}

uint32_t ws_dec_pred(struct ws_dec *d, const struct ws_ptx_operand *o, bool *ret_neg)
{
    *ret_neg = o->neg;
    if (o->kind == WS_OPD_IMM)
        return o->imm ? d->img->ones_off : ws_dec_const(d, 0, 0);
    if (o->kind == WS_OPD_REG && reg_ok(d, o) && ws_dec_reg_width(&d->df->f->regs[o->reg]) == 0)
        return reg_row(d, o);
    if (o->kind == WS_OPD_SREG && o->sreg == WS_SR_IS_EXPLICIT_CLUSTER) {
        uint32_t p = ws_dec_temp(d, 0);
        ws_dec_emit3(d, WS_H_p_set, p, src_sreg(d, o, 4), 0);
        return p;
    }
    ws_dec_unsupported(d, "%s: operand is no predicate", ws_ptx_op_name(d->in->op));
    return 64;
}

uint32_t ws_dec_pred_dst(struct ws_dec *d, const struct ws_ptx_operand *o)
{
    bool neg;
    if (o->kind == WS_OPD_SINK)
        return sink(d, 0);
    return ws_dec_pred(d, o, &neg);
}

uint32_t ws_dec_sp_row(struct ws_dec *d)
{
    if (!d->img->sp_off)
        d->img->sp_off = ws_dec_row_alloc(d, 4);
    return d->img->sp_off;
}

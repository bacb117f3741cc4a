// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/decode.c - from a PTX module to images, one for each kernel.
 *
 * An image holds the kernel and every function it can reach, so that all rows of its register file
 * have fixed offsets. In the file stand, from the start: an unused row (offset 0 means "none"), the
 * word of ones (guard of the unguarded), frame pointers, then rows as they are asked for: registers
 * and scalar parameters of each function, temporaries, constants, special registers. A register's
 * lanes are as wide as its type (8-bit ones: 16 bits); where an instruction reads a narrower type
 * than the register has, or writes one, a conversion to or from a temporary row stands beside it.
 * Invariants: (1) micro-ops refer to segments by number until finish_image() turns numbers into
 * pointers; (2) a segment's counts are those of its PTX instructions, whatever micro-ops they
 * became; (3) what can't be decoded is named with its line and the kernel has no image. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device/soft/decode/priv.h"

#define GROW(d, array, cap, want)                                                                  \
    (ws_grow((void **)&(d)->array, &(d)->cap, (want), sizeof *(d)->array) != 0)

void ws_dec_unsupported(struct ws_dec *d, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    d->unsupported = true;
    if (d->code->audit) {
        const struct ws_audit *a = d->code->audit;
        const struct ws_ptx_func *entry = &d->m->funcs[d->img->func];
        a->each(a->arg, entry, d->df ? d->df->f : entry, d->in, text);
        return;
    }
    if (!d->reason[0])
        snprintf(d->reason, sizeof(d->reason), "PTX line %u: %.220s", d->in ? d->in->line : 0,
                 text);
    for (size_t k = 0; d->diags && k < d->diags->n; k++)
        if (d->in && d->diags->v[k].line == d->in->line && strcmp(d->diags->v[k].text, text) == 0)
            return; /* the same line through another kernel's image */
    ws_diags_add(d->diags, NULL, d->in ? d->in->line : 0, d->in ? d->in->col : 0, "%s", text);
}

struct ws_uop *ws_dec_emit(struct ws_dec *d, enum ws_handler h)
{
    static _Thread_local struct ws_uop scratch; /* what is written after running out of memory */
    if (d->oom || GROW(d, uops, cap_uops, d->n_uops + 1) || GROW(d, ctl, cap_ctl, d->n_uops + 1)) {
        d->oom = true;
        scratch = (struct ws_uop){0};
        return &scratch;
    }
    struct ws_uop *u = &d->uops[d->n_uops];
    *u = (struct ws_uop){.fn = d->code->isa->handlers[h],
                         .guard = d->guard,
                         .gneg = d->gneg,
                         .mx = 0x1f80,
                         .src = d->n_srcs - 1,
                         .all = d->all};
    d->ctl[d->n_uops++] = 0;
    return u;
}

struct ws_uop *ws_dec_emit3(struct ws_dec *d, enum ws_handler h, uint32_t dst, uint32_t a,
                            uint32_t b)
{
    struct ws_uop *u = ws_dec_emit(d, h);
    u->d = (int32_t)dst;
    u->a = (int32_t)a;
    u->b = (int32_t)b;
    return u;
}

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
    uint64_t h = (f->value ^ (uint64_t)f->var << 40 ^ (uint64_t)f->sreg << 32 ^
                  (uint64_t)f->dim << 24 ^ (uint64_t)f->width << 16 ^ f->kind) *
                 0x9e3779b97f4a7c15u;
    return &d->fill_heads[h >> 54];
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
    if (d->oom || GROW(d, fills, cap_fills, d->n_fills + 1) ||
        GROW(d, fill_next, cap_fill_next, d->n_fills + 1)) {
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
    if (!s->placed) {
        uint64_t align = WS_MAX(v->align, 1u),
                 off = WS_ALIGN_UP((uint64_t)d->img->shared_bytes, align);
        if (off + v->size_bytes > 1u << 30) {
            ws_dec_unsupported(d, "shared memory of more than 1 GiB");
            return 0;
        }
        s->off = (uint32_t)off;
        s->placed = true;
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
enum ws_handler ws_dec_cvt_int(uint32_t width, enum ws_ptx_type from)
{
    static const uint16_t table[4][7] = {
#define ROW_(n)                                                                                    \
    {WS_H_cvt_##n##_u8,  WS_H_cvt_##n##_s8,  WS_H_cvt_##n##_u16, WS_H_cvt_##n##_s16,               \
     WS_H_cvt_##n##_u32, WS_H_cvt_##n##_s32, WS_H_cvt_##n##_u64}
        ROW_(8), ROW_(16), ROW_(32), ROW_(64)
#undef ROW_
    };
    unsigned w = width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : 3, t;
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
    return (enum ws_handler)table[w][t];
}

static uint32_t reg_width(const struct ws_ptx_reg *r)
{
    uint32_t w = ws_dec_width(r->type);
    return w == 1 ? 2 : w;
}

uint32_t ws_dec_mov(struct ws_dec *d, uint32_t width, uint32_t dst, uint32_t src)
{
    if (width == 1)
        ws_dec_emit3(d, WS_H_cvt_8_u8, dst, src, 0);
    else
        ws_dec_emit3(d,
                     width == 0   ? WS_H_p_mov
                     : width == 2 ? WS_H_mov_16
                     : width == 4 ? WS_H_mov_32
                                  : WS_H_mov_64,
                     dst, src, 0);
    return dst;
}

static enum ws_ptx_type uint_of(uint32_t width)
{
    return width == 1 ? WS_T_U8 : width == 2 ? WS_T_U16 : width == 4 ? WS_T_U32 : WS_T_U64;
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

/* A vector register is as many rows as it has elements, one behind the other. */
static uint32_t row_bytes(uint32_t width)
{
    return WS_MAX(64u, 32 * width);
}

static uint32_t reg_row(const struct ws_dec *d, const struct ws_ptx_operand *o)
{
    const struct ws_ptx_reg *r = &d->df->f->regs[o->reg];
    uint32_t row = d->df->rows[o->reg];
    return r->vec > 1 ? row + (uint32_t)element(o->part, r->vec) * row_bytes(reg_width(r)) : row;
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
    ws_dec_emit3(d, ws_dec_cvt_int(width, uint_of(native)), t2, t, 0);
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
        uint32_t w = reg_width(&d->df->f->regs[o->reg]);
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
        ws_dec_emit3(d, ws_dec_cvt_int(width, uint_of(w)), tmp, off, 0);
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
    uint32_t w = reg_width(&d->df->f->regs[o->reg]);
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
    uint32_t w = reg_width(&d->df->f->regs[o->reg]);
    ws_dec_emit3(d, ws_dec_cvt_int(w, t), reg_row(d, o), row, 0);
}

static uint32_t reg128(struct ws_dec *d, const struct ws_ptx_operand *o)
{
    if (o->kind == WS_OPD_REG && reg_ok(d, o)) {
        if (reg_width(&d->df->f->regs[o->reg]) == 16)
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
    if (o->kind == WS_OPD_REG && reg_ok(d, o) && reg_width(&d->df->f->regs[o->reg]) == 0)
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

/* ---- storage of variables ---- */
static void scan_param_use(const struct ws_ptx_operand *o, const struct ws_ptx_insn *i,
                           uint32_t n_vars, const struct ws_ptx_func *f, uint8_t *in_memory)
{
    for (unsigned k = 0; k < o->n; k++)
        scan_param_use(&o->v[k], i, n_vars, f, in_memory);
    if ((o->kind != WS_OPD_SYM && o->kind != WS_OPD_ADDR) || o->sym < 0 ||
        WS_PTX_SYM_KIND(o->sym) != WS_PTX_SYM_LOCALVAR)
        return;
    uint32_t k = (uint32_t)WS_PTX_SYM_INDEX(o->sym);
    if (k >= n_vars)
        return;
    const struct ws_ptx_var *v = ws_ptx_localvar(f, k);
    bool whole = o->kind == WS_OPD_ADDR && o->reg < 0 && o->imm == 0 &&
                 (i->op == WS_OP_LD || i->op == WS_OP_ST) && i->vec <= 1 && i->n_types &&
                 ws_ptx_type_bytes(i->types[0]) == v->size_bytes;
    if (!whole)
        in_memory[k] = 1;
}

static void place_vars(struct ws_dec *d, struct ws_dfunc *df)
{
    const struct ws_ptx_func *f = df->f;
    df->n_vars = f->n_params + f->n_rets + f->n_vars;
    df->vars = ws_arena_array(&d->tmp, df->n_vars + 1, sizeof(*df->vars));
    uint8_t *in_memory = ws_arena_array(&d->tmp, df->n_vars + 1, 1);
    if (!df->vars || !in_memory) {
        d->oom = true;
        return;
    }
    for (uint32_t k = 0; k < f->n_insns; k++)
        for (unsigned n = 0; n < f->insns[k].n_operands; n++)
            scan_param_use(&f->insns[k].operands[n], &f->insns[k], df->n_vars, f, in_memory);
    for (uint32_t k = 0; k < df->n_vars; k++) {
        const struct ws_ptx_var *v = ws_ptx_localvar(f, k);
        struct ws_var_store *s = &df->vars[k];
        if (v->space == WS_SP_SHARED) {
            s->kind = WS_STORE_SHARED;
        } else if (v->space == WS_SP_REG) {
            s->kind = WS_STORE_ROW;
            if (v->reg >= 0) {
                s->off = df->rows[v->reg];
                s->width = (uint8_t)reg_width(&f->regs[v->reg]);
            }
        } else if (f->is_entry && k < f->n_params) {
            s->kind = WS_STORE_KPARAM;
            s->off = (uint32_t)v->param_offset;
        } else if (v->space == WS_SP_PARAM && !v->is_array && v->vec <= 1 && v->size_bytes &&
                   v->size_bytes <= 8 && !in_memory[k]) {
            s->kind = WS_STORE_ROW;
            s->width = (uint8_t)v->size_bytes;
            s->off = ws_dec_row_alloc(d, s->width);
        } else if (v->space == WS_SP_PARAM || v->space == WS_SP_LOCAL) {
            uint64_t off = WS_ALIGN_UP((uint64_t)df->frame_bytes, (uint64_t)WS_MAX(v->align, 1u));
            if (off + v->size_bytes > 1u << 28) {
                ws_dec_unsupported(d, "%s: more than 256 MiB of local memory", f->name);
                return;
            }
            s->kind = WS_STORE_LOCAL;
            s->off = (uint32_t)off;
            df->frame_bytes = (uint32_t)(off + v->size_bytes);
        }
    }
    df->frame_bytes = WS_ALIGN_UP(df->frame_bytes, 16u);
}

static void save_row(struct ws_dec *d, struct ws_dfunc *df, uint32_t row, uint32_t width)
{
    if (d->oom || GROW(d, saves, cap_saves, d->n_saves + 2)) {
        d->oom = true;
        return;
    }
    d->saves[d->n_saves++] = row;
    d->saves[d->n_saves++] = width;
    df->n_saves++;
}

static bool has_alloca(const struct ws_ptx_func *f)
{
    for (uint32_t k = 0; k < f->n_insns; k++)
        if (f->insns[k].op == WS_OP_ALLOCA || f->insns[k].op == WS_OP_STACKRESTORE)
            return true;
    return false;
}

static void place_function(struct ws_dec *d, struct ws_dfunc *df)
{
    const struct ws_ptx_func *f = df->f;
    df->rows = ws_arena_array(&d->tmp, f->n_regs + 1, sizeof(*df->rows));
    if (!df->rows) {
        d->oom = true;
        return;
    }
    for (uint32_t k = 0; k < f->n_regs; k++) {
        uint32_t w = reg_width(&f->regs[k]);
        df->rows[k] = ws_dec_row_alloc(d, w);
        for (unsigned n = 1; n < f->regs[k].vec; n++)
            ws_dec_row_alloc(d, w);
    }
    place_vars(d, df);
    if (!df->f->is_entry && has_alloca(f)) /* what it takes, it gives back when it returns */
        df->kept_sp = ws_dec_row_alloc(d, 4);
    if (!df->recursive || d->oom)
        return;
    /* what a call that may come back to this function must save */
    df->save_first = d->n_saves;
    for (uint32_t k = 0; k < f->n_regs; k++) {
        uint32_t w = reg_width(&f->regs[k]);
        for (unsigned n = 0; n < WS_MAX(f->regs[k].vec, 1u); n++)
            save_row(d, df, df->rows[k] + n * row_bytes(w), w);
    }
    for (uint32_t k = 0; k < df->n_vars; k++)
        if (df->vars[k].kind == WS_STORE_ROW)
            save_row(d, df, df->vars[k].off, df->vars[k].width);
    if (df->kept_sp)
        save_row(d, df, df->kept_sp, 4);
    if (d->oom)
        return;
    uint32_t bytes = 0;
    for (uint32_t k = 0; k < df->n_saves; k++) {
        uint32_t w = d->saves[df->save_first + 2 * k + 1];
        bytes += w ? 32 * WS_MAX(w, 2u) : 64;
    }
    d->img->save_bytes = WS_MAX(d->img->save_bytes, bytes);
}

/* ---- one image ---- */
/* Depth of calls and local memory below each function of a call graph without cycles. */
static void measure_calls(struct ws_dec *d)
{
    bool changed = true;
    for (uint32_t pass = 0; changed && pass < 4096;
         pass++) { /* a longer chain overflows the stack when run */
        changed = false;
        for (uint32_t k = d->m->n_funcs; k-- > 0;) {
            struct ws_dfunc *df = &d->funcs[k];
            uint64_t depth = 0, local = 0;
            for (uint32_t n = 0; df->reached && n < df->n_callees; n++) {
                depth = WS_MAX(depth, 1u + d->funcs[df->callees[n]].depth);
                local = WS_MAX(local, d->funcs[df->callees[n]].local_bytes);
            }
            local = WS_MIN(
                local + df->frame_bytes +
                    (df->taken ? 16 * (df->f->n_params + df->f->n_rets) + df->frame_bytes : 0),
                UINT64_C(1) << 28);
            changed |= depth != df->depth || local != df->local_bytes;
            df->depth = (uint32_t)depth;
            df->local_bytes = local;
        }
    }
}

static int finish_image(struct ws_dec *d)
{
    struct ws_exec_image *img = d->img;
    struct ws_arena *a = &d->code->arena;
    /* micro-ops want whole cache lines */
    uint8_t *raw = ws_arena_alloc(a, (size_t)(d->n_uops + 1) * sizeof(*img->uops) + 64);
    img->segs = ws_arena_array(a, d->n_segs + 1, sizeof(*img->segs));
    img->fills = ws_arena_array(a, d->n_fills + 1, sizeof(*img->fills));
    img->srcs = ws_arena_array(a, d->n_srcs + 1, sizeof(*img->srcs));
    img->save_rows = ws_arena_array(a, d->n_saves + 1, sizeof(*img->save_rows));
    img->brx_seg = ws_arena_array(a, d->n_brx + 1, sizeof(*img->brx_seg));
    img->func_entry = ws_arena_array(a, d->m->n_funcs + 1, sizeof(*img->func_entry));
    if (!raw || !img->segs || !img->fills || !img->srcs || !img->save_rows || !img->brx_seg ||
        !img->func_entry)
        return ws_raise(-ENOMEM);
    img->uops = (struct ws_uop *)(void *)(raw + (-(uintptr_t)raw & 63));
    memcpy(img->uops, d->uops, d->n_uops * sizeof(*img->uops));
    memcpy(img->fills, d->fills, d->n_fills * sizeof(*img->fills));
    memcpy(img->srcs, d->srcs, d->n_srcs * sizeof(*img->srcs));
    if (d->n_saves)
        memcpy(img->save_rows, d->saves, d->n_saves * sizeof(*img->save_rows));
    img->n_uops = d->n_uops;
    img->n_segs = d->n_segs;
    img->n_fills = d->n_fills;
    img->n_srcs = d->n_srcs;
    img->regs_bytes = WS_ALIGN_UP(d->top, 64u);
    for (uint32_t k = 0; k < d->n_segs; k++) {
        img->segs[k].first = &img->uops[d->seg_first[k]];
        img->segs[k].n_insns = d->seg_insns[k];
        memcpy(img->segs[k].cls, d->seg_cls[k], sizeof(img->segs[k].cls));
    }
    for (uint32_t k = 0; k < d->n_brx; k++)
        img->brx_seg[k] = &img->segs[d->brx[k]];
    for (uint32_t k = 0; k < d->n_uops; k++) {
        struct ws_uop *u = &img->uops[k];
        if (d->ctl[k] & 1)
            u->to = &img->segs[u->imm];
        if (d->ctl[k] & 4)
            u->imm = (int64_t)(uintptr_t)(img->brx_seg + u->imm);
        if (d->ctl[k] & 2)
            u->fall = &img->segs[(uintptr_t)u->fall];
    }
    uint32_t dyn = WS_ALIGN_UP(img->shared_bytes, 16u);
    for (uint32_t k = 0; k < img->n_fills; k++)
        if (img->fills[k].kind == WS_FILL_CONST && img->fills[k].var == 1)
            img->fills[k].value = dyn;
    img->n_func_entry = d->m->n_funcs;
    for (uint32_t k = 0; k < d->m->n_funcs; k++)
        if (d->funcs[k].reached && d->funcs[k].thunk_seg != WS_NO_SEG)
            img->func_entry[k] = &img->segs[d->funcs[k].thunk_seg];
    img->entry = &img->segs[d->funcs[img->func].entry_seg];
    return 0;
}

static void decode_all(struct ws_dec *d, uint32_t func)
{
    ws_dec_callgraph(d, func);
    for (uint32_t k = 0; k < d->m->n_funcs && !d->oom; k++)
        if (d->funcs[k].reached)
            place_function(d, &d->funcs[k]);
    for (uint32_t k = 0; k < d->m->n_funcs && !d->oom; k++) {
        d->funcs[k].thunk_seg = WS_NO_SEG;
        if (d->funcs[k].reached)
            d->funcs[k].entry_seg = ws_dec_new_seg(d);
    }
    for (uint32_t k = 0; k < d->m->n_funcs && !d->oom; k++) {
        struct ws_dfunc *df = &d->funcs[k];
        if (!df->reached)
            continue;
        d->df = df;
        ws_dec_function(d, df);
        if (df->taken && !df->f->is_entry)
            ws_dec_thunk(d, df);
        d->img->recursive |= df->recursive;
    }
    if (!d->oom && !d->unsupported) {
        const struct ws_dfunc *df = &d->funcs[func];
        d->img->frame_bytes = df->frame_bytes;
        if (!d->img->recursive) {
            measure_calls(d);
            d->img->depth_max = df->depth * 2 + 2; /* a thunk adds a level */
            d->img->local_bytes = (uint32_t)df->local_bytes;
        } else {
            d->img->local_bytes = df->frame_bytes;
        }
    }
}

/* A block is a cluster here; a kernel that was compiled for larger ones counts on its neighbours'
 * shared memory. */
static void check_cluster(struct ws_dec *d, const struct ws_ptx_func *f)
{
    const uint32_t *n = f->reqnctapercluster;
    uint64_t blocks = (uint64_t)WS_MAX(n[0], 1u) * WS_MAX(n[1], 1u) * WS_MAX(n[2], 1u);
    if (blocks > 1)
        ws_dec_unsupported(d, "thread block clusters of %llu blocks (.reqnctapercluster)",
                           (unsigned long long)blocks);
}

int ws_dec_image(struct ws_code *code, uint32_t func, struct ws_diags *diags,
                 struct ws_exec_image **ret, char reason[256])
{
    struct ws_dec d = {.m = code->m, .code = code, .diags = diags, .tmp = WS_ARENA_NULL};
    int r = 0;
    d.img = ws_arena_alloc(&code->arena, sizeof(*d.img));
    d.gvars = ws_arena_array(&d.tmp, d.m->n_vars + 1, sizeof(*d.gvars));
    d.funcs = ws_arena_array(&d.tmp, d.m->n_funcs + 1, sizeof(*d.funcs));
    if (!d.img || !d.gvars || !d.funcs) {
        r = ws_raise(-ENOMEM);
        goto out;
    }
    d.img->func = func;
    for (uint32_t k = 0; k < d.m->n_funcs; k++)
        d.funcs[k] = (struct ws_dfunc){.f = &d.m->funcs[k], .index = k};
    d.top = 64;
    d.img->ones_off = ws_dec_row_alloc(&d, 0);
    if (GROW(&d, fills, cap_fills, 1) || GROW(&d, fill_next, cap_fill_next, 1)) {
        r = ws_raise(-ENOMEM);
        goto out;
    }
    d.fills[d.n_fills++] = (struct ws_fill){
        .kind = WS_FILL_CONST, .width = 0, .off = d.img->ones_off, .value = 0xffffffff};
    d.img->fp_off = ws_dec_row_alloc(&d, 4);
    d.guard = d.img->ones_off;
    check_cluster(&d, &d.m->funcs[func]);
    decode_all(&d, func);
    d.img->uses_heap = d.uses_heap;
    if (d.oom)
        r = ws_raise(-ENOMEM);
    else if (d.unsupported)
        r = d.unresolved ? WS_PTX_E_NOTFOUND : WS_PTX_E_UNSUPPORTED;
    else
        r = finish_image(&d);
    if (r == 0)
        *ret = d.img;
    memcpy(reason, d.reason, sizeof(d.reason));
out:
    free(d.uops);
    free(d.ctl);
    free(d.seg_first);
    free(d.seg_insns);
    free(d.seg_cls);
    free(d.fills);
    free(d.fill_next);
    free(d.srcs);
    free(d.saves);
    free(d.brx);
    ws_arena_deinit(&d.tmp);
    return r;
}

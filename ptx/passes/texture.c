// SPDX-License-Identifier: Apache-2.0
/* Texture and surface instructions become calls of functions that compute the same with plain
 * loads and stores (sampler.cu). This is for devices on which textures are headers in the client's
 * memory, unknown to the hardware. The result is PTX like any other: the fence checks its
 * accesses, and such kernels can be stopped, resumed and fused.
 *
 * A variable of type .texref, .samplerref or .surfref becomes eight bytes of memory; its name
 * becomes the handle that is read from there. Functions keep their numbers. A function with an
 * instruction that cannot be replaced stays as it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/texture.h"
#include "ptx/analysis/reach.h"
#include "ptx/passes/edit.h"
#include "ptx/passes/pass.h"
#include "ptx/passes/texop.h"

#define R(r) ws_opd_reg(r)
#define I(v) ws_opd_imm(v)

/* ---- the functions ---- */
static const struct {
    const char *name, *text;
} samplers[] = {
#define SAMPLER(name, text) {#name, text},
#include "ptx/passes/sampler.inc"
#undef SAMPLER
};
/* In the order of the rows, which is that of sampler.cu. */
enum sampler { SRGB, TEX, TLD4, GRADIENTS, SURFACE, SUST_P, SURED, QUERY, _SAMPLER_N };
_Static_assert(WS_ARRAY_SIZE(samplers) == _SAMPLER_N, "a function has no number");
_Static_assert((int)_SAMPLER_N <= (int)WS_TEXTURE_FUNCS, "pass.h says how many");

struct texture {
    struct ws_ptx_edit e;
    struct ws_ptx_module *m;
    int32_t func[_SAMPLER_N]; /* index of each function in the module, or -1 */
    int32_t result; /* sym of the variable that tex and tld4 leave their values in; -1: none yet */
    bool refused;
};

static bool is_ref_type(unsigned type)
{
    return type == WS_T_TEXREF || type == WS_T_SAMPLERREF || type == WS_T_SURFREF;
}

/* What @m's instructions want. */
static void wants(const struct ws_ptx_module *m, bool want[_SAMPLER_N], bool *ret_any)
{
    for (uint32_t f = 0; f < m->n_funcs; f++)
        for (uint32_t k = 0; k < m->funcs[f].n_insns; k++) {
            const struct ws_ptx_insn *i = &m->funcs[f].insns[k];
            if (!ws_ptx_is_texop((enum ws_ptx_op)i->op))
                continue;
            *ret_any = true;
            want[SRGB] |= i->op == WS_OP_TEX || i->op == WS_OP_TLD4;
            want[TEX] |= i->op == WS_OP_TEX;
            want[GRADIENTS] |= i->op == WS_OP_TEX && i->ext && !strncmp(i->ext, ".grad", 5);
            want[TLD4] |= i->op == WS_OP_TLD4;
            want[SURFACE] |= i->op == WS_OP_SULD || i->op == WS_OP_SUST;
            want[SUST_P] |= i->op == WS_OP_SUST;
            want[SURED] |= i->op == WS_OP_SURED;
            want[QUERY] |= i->op == WS_OP_TXQ || i->op == WS_OP_SUQ;
        }
}

/* "ws$tex", or one that nothing in the module has. */
static const char *free_name(struct ws_ptx_module *m, const char *name)
{
    char text[40];
    int n = snprintf(text, sizeof(text), "ws$%s", name + 3);
    for (unsigned k = 0; ws_ptx_find_func(m, text); k++)
        n = snprintf(text, sizeof(text), "ws$%s_%u", name + 3, k);
    return ws_arena_strndup(&m->arena, text, (size_t)n);
}

/* @from's functions move behind those of @m; among each other they call by number. */
static int take(struct ws_ptx_module *m, struct ws_ptx_module *from, const bool want[_SAMPLER_N],
                int32_t ret[_SAMPLER_N])
{
    struct ws_ptx_func *funcs =
        ws_arena_array(&m->arena, (size_t)m->n_funcs + from->n_funcs, sizeof(*funcs));
    uint32_t n = m->n_funcs, base = m->n_funcs;
    if (!funcs)
        return ws_raise(-ENOMEM);
    memcpy(funcs, m->funcs, m->n_funcs * sizeof(*funcs));
    for (uint32_t k = 0; k < _SAMPLER_N; k++) {
        if (!want[k])
            continue;
        struct ws_ptx_func *f = &funcs[n];
        *f = from->funcs[n - base];
        if (!(f->name = free_name(m, samplers[k].name)))
            return ws_raise(-ENOMEM);
        for (uint32_t i = 0; i < f->n_insns; i++) {
            struct ws_ptx_call *c = NULL;
            if (!f->insns[i].call)
                continue;
            if (!(c = ws_arena_array(&m->arena, 1, sizeof(*c))))
                return ws_raise(-ENOMEM);
            *c = *f->insns[i].call;
            c->callee.sym = (int32_t)(WS_PTX_SYM_FUNC | (base + WS_PTX_SYM_INDEX(c->callee.sym)));
            f->insns[i].call = c;
        }
        ret[k] = (int32_t)n++;
    }
    m->funcs = funcs;
    m->n_funcs = n;
    ws_arena_take(&m->arena, &from->arena);
    return 0;
}

static int add_samplers(struct ws_ptx_module *m, const bool want[_SAMPLER_N],
                        int32_t ret[_SAMPLER_N])
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct ws_ptx_module *parsed = NULL;
    if (!f)
        return ws_raise(-ENOMEM);
    fputs(".version 6.0\n.target sm_50\n.address_size 64\n", f);
    for (uint32_t k = 0; k < _SAMPLER_N; k++) {
        ret[k] = -1;
        if (want[k])
            fputs(samplers[k].text, f);
    }
    int r = fclose(f) ? ws_raise(-ENOMEM) : ws_ptx_parse(&parsed, text, len, NULL, NULL);
    if (!r)
        r = take(m, parsed, want, ret);
    free(text);
    ws_ptx_module_free(parsed);
    return r < 0 ? ws_forward(r) : r ? ws_raise(-EINVAL) : 0;
}

/* ---- operands ---- */
static unsigned reg_bytes(const struct texture *t, const struct ws_ptx_operand *o)
{
    const struct ws_ptx_reg *r = &t->e.f.regs[o->reg];
    return o->part || r->vec > 1 || r->type == WS_T_PRED
               ? 0
               : ws_ptx_type_bytes((enum ws_ptx_type)r->type);
}

/* A register of 32 bits with what @o says as a value of @type; NULL: 0. */
static int32_t value(struct texture *t, const struct ws_ptx_operand *o, unsigned type)
{
    struct ws_ptx_edit *e = &t->e;
    int32_t r = ws_ptx_edit_reg(e, WS_T_B32);
    if (e->failed)
        return r;
    unsigned bytes = o && o->kind == WS_OPD_REG ? reg_bytes(t, o) : 0;
    if (!o)
        WS_EDIT(e, MOV, B32, R(r), I(0));
    else if (o->kind == WS_OPD_IMM)
        WS_EDIT(e, MOV, B32, R(r), I((int64_t)ws_ptx_imm_as(o, (enum ws_ptx_type)type)));
    else if (o->kind == WS_OPD_SREG)
        WS_EDIT(e, MOV, U32, R(r), *o);
    else if (bytes == 4)
        WS_EDIT(e, MOV, B32, R(r), *o);
    else if (bytes == 8) {
        struct ws_ptx_insn *i = WS_EDIT(e, CVT, U32, R(r), *o);
        i->types[i->n_types++] = WS_T_U64;
    } else
        t->refused = true;
    return r;
}

/* What variable of type .texref and the like a sym names, or NULL. */
static const struct ws_ptx_var *ref_of(const struct texture *t, int32_t sym)
{
    const struct ws_ptx_var *v = NULL;
    if (sym >= 0 && WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_VAR)
        v = &t->m->vars[WS_PTX_SYM_INDEX(sym)];
    else if (sym >= 0 && WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_LOCALVAR)
        v = ws_ptx_localvar(t->e.old, (uint32_t)WS_PTX_SYM_INDEX(sym));
    return v && is_ref_type(v->type) ? v : NULL;
}

/* A register with the handle that the variable @sym holds. */
static int32_t load_ref(struct texture *t, int32_t sym)
{
    int32_t r = ws_ptx_edit_reg(&t->e, WS_T_B64);
    const struct ws_ptx_var *v = ref_of(t, sym);
    struct ws_ptx_operand o[] = {R(r), ws_opd_at_sym(sym, 0)};
    bool global = v && v->space == WS_SP_GLOBAL && WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_VAR;
    t->refused |=
        !v || !(global || (v->space == WS_SP_PARAM && t->e.old->is_entry)) || v->size_bytes != 8;
    ws_ptx_edit_add(&t->e, WS_OP_LD, WS_T_B64, 2, o)->space = global ? WS_SP_GLOBAL : WS_SP_PARAM;
    return r;
}

/* A register of 64 bits with a handle; NULL: 0. */
static int32_t handle(struct texture *t, const struct ws_ptx_operand *o)
{
    if (o && o->reg < 0 && o->sym >= 0)
        return load_ref(t, o->sym);
    int32_t r = ws_ptx_edit_reg(&t->e, WS_T_B64);
    if (!o) {
        WS_EDIT(&t->e, MOV, B64, R(r), I(0));
    } else {
        t->refused |= reg_bytes(t, o) != 8;
        WS_EDIT(&t->e, MOV, B64, R(r), R(o->reg));
    }
    return r;
}

static struct ws_ptx_operand result_at(struct texture *t, unsigned k)
{
    return ws_opd_at_sym(t->result, 4 * (int64_t)k);
}

/* A destination gets the 32 bits of @reg. */
static void put(struct texture *t, const struct ws_ptx_operand *to, int32_t reg)
{
    if (to->kind == WS_OPD_SINK || t->e.failed)
        return;
    unsigned bytes = to->kind == WS_OPD_REG ? reg_bytes(t, to) : 0;
    if (bytes == 4) {
        WS_EDIT(&t->e, MOV, B32, *to, R(reg));
    } else if (bytes == 8) {
        struct ws_ptx_insn *i = WS_EDIT(&t->e, CVT, U64, *to, R(reg));
        i->types[i->n_types++] = WS_T_U32;
    } else {
        t->refused = true;
    }
}

/* Half precision of element @k of the result. */
static int32_t half(struct texture *t, unsigned k)
{
    struct ws_ptx_edit *e = &t->e;
    int32_t full = ws_ptx_edit_reg(e, WS_T_F32), h = ws_ptx_edit_reg(e, WS_T_B16);
    struct ws_ptx_operand o[] = {R(full), result_at(t, k)};
    ws_ptx_edit_add(e, WS_OP_LD, WS_T_F32, 2, o)->space = WS_SP_PARAM;
    struct ws_ptx_insn *i = WS_EDIT(e, CVT, F16, R(h), R(full));
    i->types[i->n_types++] = WS_T_F32;
    i->rnd = WS_RND_RN;
    return h;
}

static void put_texels(struct texture *t, const struct ws_ptx_texop *p)
{
    struct ws_ptx_edit *e = &t->e;
    for (unsigned k = 0; k < p->n; k++) {
        const struct ws_ptx_operand *to = p->d[k];
        int32_t r = ws_ptx_edit_reg(e, WS_T_B32);
        if (to->kind == WS_OPD_SINK || e->failed)
            continue;
        if (p->dtype == WS_T_F16) {
            t->refused |= to->kind != WS_OPD_REG || reg_bytes(t, to) != 2;
            WS_EDIT(e, MOV, B16, *to, R(half(t, k)));
        } else if (p->dtype == WS_T_F16X2) {
            struct ws_ptx_operand *v = ws_arena_array(&t->m->arena, 2, sizeof(*v));
            if (!v) {
                e->failed = true;
                return;
            }
            v[0] = R(half(t, 2 * k));
            v[1] = R(half(t, 2 * k + 1));
            WS_EDIT(e, MOV, B32, R(r),
                    {.kind = WS_OPD_VEC, .reg = -1, .sym = -1, .label = -1, .n = 2, .v = v});
            put(t, to, r);
        } else {
            struct ws_ptx_operand o[] = {R(r), result_at(t, k)};
            ws_ptx_edit_add(e, WS_OP_LD, WS_T_B32, 2, o)->space = WS_SP_PARAM;
            put(t, to, r);
        }
    }
    if (p->pred) { /* whether all texels are there: always */
        int32_t zero = value(t, NULL, WS_T_B32);
        WS_EDIT(e, SETP, U32, *p->pred, R(zero), R(zero))->cmp = WS_CMP_EQ;
    }
}

/* ---- instructions ---- */
enum { ARGS_MAX = 12 };
struct texture_args {
    uint32_t n;
    struct ws_ptx_operand v[ARGS_MAX];
};
static void arg(struct texture_args *a, int32_t reg)
{
    a->v[a->n++] = R(reg);
}
static void arg_imm(struct texture *t, struct texture_args *a, uint32_t v)
{
    int32_t r = ws_ptx_edit_reg(&t->e, WS_T_B32);
    WS_EDIT(&t->e, MOV, B32, R(r), I(v));
    arg(a, r);
}
static void arg_coords(struct texture *t, struct texture_args *a, const struct ws_ptx_texop *p)
{
    for (int k = 0; k < 3; k++)
        arg(a, value(t, p->coord[k], p->ctype));
}
static void call(struct texture *t, enum sampler which, struct ws_ptx_operand *ret,
                 const struct texture_args *a)
{
    ws_ptx_edit_call(&t->e, (uint32_t)t->func[which], ret != NULL, ret, a->n, a->v);
}

static uint32_t sample_word(const struct ws_ptx_texop *p)
{
    return WS_SAMPLE_GEOM * p->geom + (p->ctype == WS_T_S32 ? WS_SAMPLE_INTS : 0) +
           (p->lod == WS_LOD_BASE ? WS_SAMPLE_BASE : 0) + WS_SAMPLE_COMP * p->comp;
}

static int32_t gradients(struct texture *t, const struct ws_ptx_texop *p,
                         const struct texture_args *texel)
{
    struct texture_args a = *texel; /* handle, sampler, word, three coordinates */
    struct ws_ptx_operand lod = R(ws_ptx_edit_reg(&t->e, WS_T_B32));
    for (int k = 0; k < 3; k++)
        arg(&a, value(t, p->gx[k], WS_T_F32));
    for (int k = 0; k < 3; k++)
        arg(&a, value(t, p->gy[k], WS_T_F32));
    call(t, GRADIENTS, &lod, &a);
    return lod.reg;
}

static void fetch(struct texture *t, enum sampler which, const struct ws_ptx_texop *p)
{
    struct texture_args a = {0};
    if (t->result < 0)
        t->result = ws_ptx_edit_result(&t->e, 16, 16);
    arg(&a, handle(t, p->handle));
    arg(&a, handle(t, p->sampler));
    arg_imm(t, &a, sample_word(p));
    arg_coords(t, &a, p);
    int32_t lod = p->lod == WS_LOD_GRAD ? gradients(t, p, &a) : value(t, p->level, p->ctype);
    arg(&a, value(t, p->layer, WS_T_U32));
    arg(&a, lod);
    struct ws_ptx_operand ret = ws_opd_sym(t->result);
    call(t, which, &ret, &a);
    put_texels(t, p);
}

/* Handle, word, coordinates and layer: what all functions for surfaces begin with. */
static void surface_args(struct texture *t, const struct ws_ptx_texop *p, uint32_t word,
                         struct texture_args *a)
{
    arg(a, handle(t, p->handle));
    arg_imm(t, a,
            WS_SAMPLE_GEOM * p->geom + WS_SAMPLE_MODE * p->mode +
                (p->formatted ? WS_SAMPLE_TEXELS : 0) + word);
    arg_coords(t, a, p);
    arg(a, value(t, p->layer, WS_T_U32));
}

static void suld_sust(struct texture *t, const struct ws_ptx_texop *p, bool store)
{
    struct ws_ptx_edit *e = &t->e;
    struct texture_args a = {0};
    struct ws_ptx_operand at = R(ws_ptx_edit_reg(e, WS_T_B64));
    int32_t there = -1;
    surface_args(t, p, WS_SAMPLE_SIZE * p->size + WS_SAMPLE_BYTES * p->size * p->n, &a);
    call(t, SURFACE, &at, &a);
    if (p->mode == WS_SURF_ZERO)
        there = ws_ptx_edit_compare(e, WS_CMP_NE, WS_T_U64, at, I(0));
    for (unsigned k = 0; k < p->n; k++) {
        const struct ws_ptx_operand *o = p->d[k];
        if (o->kind == WS_OPD_SINK || e->failed)
            continue;
        unsigned bytes = o->kind == WS_OPD_REG ? reg_bytes(t, o) : store ? 8 : 0;
        if (bytes < p->size || (o->kind != WS_OPD_REG && o->kind != WS_OPD_IMM)) {
            t->refused = true;
            return;
        }
        struct ws_ptx_operand mem = ws_opd_at(at.reg, (int64_t)k * p->size);
        struct ws_ptx_operand io[] = {store ? mem : *o, store ? *o : mem};
        if (there >= 0 && !store)
            ws_ptx_edit_add(e, WS_OP_MOV, ws_ptx_bits_type(bytes), 2,
                            (struct ws_ptx_operand[]){*o, I(0)});
        struct ws_ptx_insn *i =
            ws_ptx_edit_add(e, store ? WS_OP_ST : WS_OP_LD, ws_ptx_bits_type(p->size), 2, io);
        i->space = WS_SP_GLOBAL;
        if (there >= 0)
            ws_ptx_edit_guard(i, there, false);
    }
}

static void sust_p(struct texture *t, const struct ws_ptx_texop *p)
{
    struct texture_args a = {0};
    surface_args(t, p, WS_SAMPLE_N * p->n, &a);
    for (unsigned k = 0; k < 4; k++)
        arg(&a, value(t, p->d[k], p->dtype));
    call(t, SUST_P, NULL, &a);
}

/* The operation of a sured as WS_SAMPLE_OP counts them. */
static uint32_t sample_op(enum ws_ptx_sub op)
{
    switch (op) {
    case WS_SUB_ADD:
        return 0;
    case WS_SUB_MIN:
        return 1;
    case WS_SUB_MAX:
        return 2;
    case WS_SUB_AND:
        return 3;
    default:
        return 4;
    }
}

static void sured(struct texture *t, const struct ws_ptx_texop *p)
{
    struct ws_ptx_edit *e = &t->e;
    struct texture_args a = {0};
    uint32_t op = sample_op((enum ws_ptx_sub)p->op);
    bool is_signed = p->dtype == WS_T_S32 || p->dtype == WS_T_S64;
    surface_args(t, p,
                 (WS_SAMPLE_SIZE + WS_SAMPLE_BYTES) * p->size + WS_SAMPLE_OP * op +
                     (is_signed ? WS_SAMPLE_SIGNED : 0),
                 &a);
    int32_t wide = ws_ptx_edit_reg(e, WS_T_B64);
    if (p->size == 4) {
        struct ws_ptx_insn *i = WS_EDIT(e, CVT, U64, R(wide), R(value(t, p->d[0], p->dtype)));
        i->types[i->n_types++] = WS_T_U32;
    } else {
        bool known = p->d[0]->kind == WS_OPD_IMM ||
                     (p->d[0]->kind == WS_OPD_REG && !e->failed && reg_bytes(t, p->d[0]) == 8);
        t->refused |= !known;
        WS_EDIT(e, MOV, B64, R(wide), *p->d[0]);
    }
    arg(&a, wide);
    call(t, SURED, NULL, &a);
}

static void query(struct texture *t, const struct ws_ptx_texop *p, uint32_t magic)
{
    struct texture_args a = {0};
    struct ws_ptx_operand ret = R(ws_ptx_edit_reg(&t->e, WS_T_B32));
    arg(&a, handle(t, p->handle));
    arg_imm(t, &a, magic);
    arg_imm(t, &a, p->query);
    arg(&a, value(t, p->level, WS_T_U32));
    call(t, QUERY, &ret, &a);
    put(t, p->d[0], ret.reg);
}

static void replace(struct texture *t, const struct ws_ptx_insn *i)
{
    struct ws_ptx_texop p;
    int32_t over = -1;
    if (!ws_ptx_texop_read(&p, i) || i->op == WS_OP_ISTYPEP) {
        t->refused = true;
        return;
    }
    if (i->guard >= 0) {
        over = ws_ptx_edit_label(&t->e);
        ws_ptx_edit_branch_if(&t->e, i->guard, !i->guard_neg, over);
    }
    switch (i->op) {
    case WS_OP_TEX:
        fetch(t, TEX, &p);
        break;
    case WS_OP_TLD4:
        fetch(t, TLD4, &p);
        break;
    case WS_OP_SULD:
        suld_sust(t, &p, false);
        break;
    case WS_OP_SUST:
        p.formatted ? sust_p(t, &p) : suld_sust(t, &p, true);
        break;
    case WS_OP_SURED:
        sured(t, &p);
        break;
    default:
        query(t, &p, i->op == WS_OP_TXQ ? WS_TEXTURE_MAGIC : WS_SURFACE_MAGIC);
        break;
    }
    if (over >= 0)
        ws_ptx_edit_place(&t->e, over);
}

/* ---- functions ---- */
/* Names of references in @o become registers that hold the handle. */
static void read_refs(struct texture *t, struct ws_ptx_operand *o, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (o[k].kind == WS_OPD_SYM && ref_of(t, o[k].sym)) {
            t->refused |= o[k].imm != 0;
            o[k] = R(load_ref(t, o[k].sym));
        }
        if (o[k].n && o[k].v)
            read_refs(t, o[k].v, o[k].n);
    }
}

static bool names_ref(const struct texture *t, const struct ws_ptx_operand *o, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (((o[k].kind == WS_OPD_SYM || o[k].kind == WS_OPD_ADDR) && ref_of(t, o[k].sym)) ||
            (o[k].n && o[k].v && names_ref(t, o[k].v, o[k].n)))
            return true;
    return false;
}

static void write_all(struct texture *t)
{
    const struct ws_ptx_func *f = t->e.old;
    for (uint32_t n = 0; n < f->n_insns; n++) {
        const struct ws_ptx_insn *i = &f->insns[n];
        ws_ptx_edit_skip(&t->e, n);
        if (ws_ptx_is_texop((enum ws_ptx_op)i->op))
            replace(t, i);
        else if (names_ref(t, i->operands, i->n_operands)) {
            /* the handles are read before the instruction: its own operands are changed, not the
             * old function's */
            struct ws_ptx_insn copy = *ws_ptx_edit_copy_only(&t->e, n);
            if (t->e.failed)
                return;
            t->e.f.n_insns--;
            read_refs(t, copy.operands, copy.n_operands);
            struct ws_ptx_insn *to =
                ws_ptx_edit_add(&t->e, (enum ws_ptx_op)i->op, WS_T_NONE, 0, NULL);
            *to = copy;
        } else {
            t->refused |= i->call && names_ref(t, i->call->args, i->call->n_args);
            (void)ws_ptx_edit_copy_only(&t->e, n);
        }
    }
    ws_ptx_edit_old_end(&t->e);
}

static bool has_work(const struct texture *t, const struct ws_ptx_func *f)
{
    struct texture as = *t;
    as.e.old = f;
    for (uint32_t n = 0; n < f->n_insns; n++) {
        const struct ws_ptx_insn *i = &f->insns[n];
        if (ws_ptx_is_texop((enum ws_ptx_op)i->op) || names_ref(&as, i->operands, i->n_operands) ||
            (i->call && names_ref(&as, i->call->args, i->call->n_args)))
            return true;
    }
    return false;
}

/* Function @func gets the body that was made of it. */
static int texture_one(struct texture *t, uint32_t func)
{
    struct ws_ptx_module *m = t->m;
    uint32_t made;
    ws_ptx_edit_begin(&t->e, m, func, "$tex", 0);
    t->result = -1;
    t->refused = false;
    if (!t->e.failed)
        write_all(t);
    int r = ws_ptx_edit_end(&t->e, &made);
    if (r)
        return ws_forward(r);
    const char *name = m->funcs[func].name;
    if (!t->refused) {
        m->funcs[func] = m->funcs[made];
        m->funcs[func].name = name;
        for (uint32_t k = 0; k < m->funcs[func].n_params; k++)
            if (is_ref_type(m->funcs[func].params[k].type))
                m->funcs[func].params[k].type = WS_T_B64;
    }
    m->n_funcs--;
    return 0;
}

static bool is_sampler(const struct texture *t, uint32_t func)
{
    for (unsigned s = 0; s < _SAMPLER_N; s++)
        if (t->func[s] == (int32_t)func)
            return true;
    return false;
}

/* What is put in takes about a hundred registers where the compiler may have them. Kernels that say
 * nothing of their blocks' size must go on being launched with blocks of any size: they say the
 * largest one, for which the compiler keeps to as many as there are. */
static int bound_registers(struct texture *t)
{
    struct ws_ptx_module *m = t->m;
    struct ws_ptx_reach reach;
    int r = ws_ptx_reach_init(&reach, m);
    for (uint32_t f = 0; !r && f < m->n_funcs; f++) {
        struct ws_ptx_func *k = &m->funcs[f];
        bool any = false;
        if (!k->is_entry || k->maxntid[0] || k->reqntid[0] || k->maxnreg)
            continue;
        ws_ptx_reach_find(&reach, k);
        for (uint32_t i = 0; i < reach.n; i++)
            any |= is_sampler(t, reach.found[i]);
        for (unsigned d = 0; d < 3 && any; d++)
            k->maxntid[d] = d ? 1 : 1024;
    }
    ws_ptx_reach_deinit(&reach);
    return r;
}

int ws_ptx_texture(struct ws_ptx_module *m)
{
    bool want[_SAMPLER_N] = {false}, any = false;
    struct texture t = {.m = m};
    uint32_t n = m->n_funcs;
    wants(m, want, &any);
    int r = any ? add_samplers(m, want, t.func) : 0;
    for (uint32_t f = 0; f < n && !r; f++)
        if (has_work(&t, &m->funcs[f]))
            r = texture_one(&t, f);
    if (any && !r)
        r = bound_registers(&t);
    for (uint32_t v = 0; v < m->n_vars && !r; v++)
        if (is_ref_type(m->vars[v].type))
            m->vars[v].type = WS_T_B64;
    return r ? ws_forward(r) : 0;
}

// SPDX-License-Identifier: Apache-2.0
/* The arrays of the function being made grow by malloc and move to the module's arena at the end.
 * Nothing of the old functions is changed: operands, with what they point to, are copied, and
 * renumbered: registers, labels and variables of each old function begin where those of the one
 * before it end, and local variables stand behind all parameters in the numbering of
 * WS_PTX_SYM_LOCALVAR. */
#include "ptx/passes/edit.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/pass.h"

enum { UNPLACED = UINT32_MAX >> 1 };

static void *in_arena(struct ws_ptx_edit *e, size_t n, size_t size, const void *from)
{
    void *p = ws_arena_array(&e->m->arena, WS_MAX(n, (size_t)1), size);
    if (!p)
        e->failed = true;
    else if (n)
        memcpy(p, from, n * size);
    return p;
}

static char *name(struct ws_ptx_edit *e, const char *a, const char *b)
{
    size_t n = strlen(a);
    char *s = ws_arena_alloc(&e->m->arena, n + strlen(b) + 1);
    if (!s) {
        e->failed = true;
        return NULL;
    }
    strcpy(s, a);
    strcpy(s + n, b);
    return s;
}

/* "%ws_3" */
static const char *own_name(struct ws_ptx_edit *e, const char *first)
{
    char number[12], prefix[40];
    snprintf(number, sizeof(number), "%u", e->n_own++);
    snprintf(prefix, sizeof(prefix), "%s%s", first, e->prefix);
    return name(e, prefix, number);
}

static bool begins_a_name(const struct ws_ptx_func *f, const char *prefix)
{
    size_t n = strlen(prefix);
    for (uint32_t k = 0; k < f->n_regs; k++)
        if (!strncmp(f->regs[k].name + 1, prefix, n))
            return true;
    for (uint32_t k = 0; k < f->n_labels; k++)
        if (strstr(f->labels[k].name, prefix))
            return true;
    for (uint32_t k = 0; k < f->n_vars; k++)
        if (strstr(f->vars[k].name, prefix))
            return true;
    for (uint32_t k = 0; k < f->n_params; k++)
        if (strstr(f->params[k].name, prefix))
            return true;
    return false;
}

/* A malloc'ed copy of @n elements with room for more. */
static void *take(struct ws_ptx_edit *e, const void *from, size_t n, size_t size, size_t *ret_cap)
{
    void *p = NULL;
    *ret_cap = 0;
    if (ws_grow(&p, ret_cap, n + 16, size) < 0) {
        e->failed = true;
        return NULL;
    }
    if (n && from)
        memcpy(p, from, n * size);
    return p;
}

/* "k2_name", keeping the % of a register in front. */
static const char *source_name(struct ws_ptx_edit *e, uint32_t k, const char *old)
{
    char first[20];
    if (e->n_sources == 1)
        return old;
    snprintf(first, sizeof(first), "%sk%u_", *old == '%' ? "%" : "", k);
    return name(e, first, *old == '%' ? old + 1 : old);
}

static void index_labels(struct ws_ptx_edit *e, struct ws_ptx_source *from)
{
    const struct ws_ptx_func *f = from->f;
    from->labels_at = ws_alloc_array((size_t)f->n_insns + 1, sizeof(*from->labels_at));
    from->next_label = ws_alloc_array((size_t)f->n_labels + 1, sizeof(*from->next_label));
    if (!from->labels_at || !from->next_label) {
        e->failed = true;
        return;
    }
    for (uint32_t k = 0; k < f->n_labels; k++) {
        from->next_label[k] = from->labels_at[f->labels[k].insn];
        from->labels_at[f->labels[k].insn] = k + 1;
    }
}

/* An array of bytes. */
static struct ws_ptx_var bytes_var(struct ws_ptx_edit *e, const char *first,
                                   enum ws_ptx_space space, uint64_t bytes, uint32_t align)
{
    uint64_t *dims = in_arena(e, 1, sizeof(*dims), &bytes);
    return (struct ws_ptx_var){.name = own_name(e, first),
                               .space = (uint8_t)space,
                               .type = WS_T_B8,
                               .is_array = true,
                               .align = align,
                               .size_bytes = bytes,
                               .n_elems = bytes,
                               .n_dims = 1,
                               .dims = dims,
                               .reg = -1};
}

/* What source @k brings along, under names of its own. */
static void take_declarations(struct ws_ptx_edit *e, uint32_t k, struct ws_ptx_var *params)
{
    struct ws_ptx_source *from = &e->sources[k];
    const struct ws_ptx_func *old = from->f;
    struct ws_ptx_func *f = &e->f;
    for (uint32_t i = 0; i < old->n_regs; i++) {
        f->regs[from->regs + i] = old->regs[i];
        f->regs[from->regs + i].name = source_name(e, k, old->regs[i].name);
    }
    for (uint32_t i = 0; i < old->n_labels; i++)
        f->labels[from->labels + i] =
            (struct ws_ptx_label){.name = source_name(e, k, old->labels[i].name), .insn = UNPLACED};
    for (uint32_t i = 0; i < old->n_vars; i++)
        if (from->vars[i] >= 0) {
            f->vars[from->vars[i]] = old->vars[i];
            f->vars[from->vars[i]].name = source_name(e, k, old->vars[i].name);
        }
    for (uint32_t i = 0; i < old->n_protos; i++) {
        f->protos[from->protos + i] = old->protos[i];
        f->protos[from->protos + i].name = source_name(e, k, old->protos[i].name);
    }
    if (from->param_pad) {
        params[from->params - 1] = bytes_var(e, "pad_", WS_SP_PARAM, from->param_pad, 1);
        params[from->params - 1].param_offset = from->param_offset - from->param_pad;
    }
    for (uint32_t i = 0; i < old->n_params; i++) {
        params[from->params + i] = old->params[i];
        params[from->params + i].name = source_name(e, k, old->params[i].name);
        params[from->params + i].param_offset += from->param_offset;
    }
}

/* Where each source's things begin, and how many there are in all. */
static void count_declarations(struct ws_ptx_edit *e, const uint32_t *funcs, bool drop_shared)
{
    struct ws_ptx_func *f = &e->f;
    for (uint32_t k = 0; k < e->n_sources; k++) {
        const struct ws_ptx_func *old = &e->m->funcs[funcs[k]];
        struct ws_ptx_source *from = &e->sources[k];
        uint64_t pad = k && old->n_params ? -f->param_bytes % 16 : 0;
        *from = (struct ws_ptx_source){
            .f = old,
            .regs = f->n_regs,
            .labels = f->n_labels,
            .params = f->n_params + (pad > 0),
            .protos = f->n_protos,
            .param_offset = f->param_bytes + pad,
            .param_pad = pad,
            .vars = ws_alloc_array((size_t)old->n_vars + 1, sizeof(*from->vars))};
        e->failed |= !from->vars;
        for (uint32_t i = 0; from->vars && i < old->n_vars; i++) {
            bool drop =
                drop_shared && old->vars[i].space == WS_SP_SHARED && old->vars[i].size_bytes;
            from->vars[i] = drop ? -1 : (int32_t)f->n_vars++;
        }
        f->n_regs += old->n_regs;
        f->n_labels += old->n_labels;
        f->n_params = from->params + old->n_params;
        f->n_protos += old->n_protos;
        f->param_bytes = from->param_offset + (old->n_params ? old->param_bytes : 0);
        while (begins_a_name(old, e->prefix) && strlen(e->prefix) + 2 < sizeof(e->prefix))
            strcat(e->prefix, "_");
        index_labels(e, &e->sources[k]);
    }
}

void ws_ptx_edit_begin_all(struct ws_ptx_edit *e, struct ws_ptx_module *m, const uint32_t *funcs,
                           uint32_t n, const char *fused_name, uint64_t ctl_bytes, bool drop_shared)
{
    *e = (struct ws_ptx_edit){.m = m, .n_sources = n};
    e->f = (struct ws_ptx_func){.is_entry = true, .link = WS_LINK_VISIBLE, .name = fused_name};
    strcpy(e->prefix, "ws_");
    e->sources = ws_alloc_array(n, sizeof(*e->sources));
    if (!e->sources) {
        e->failed = true;
        return;
    }
    count_declarations(e, funcs, drop_shared);
    struct ws_ptx_func *f = &e->f;
    f->insns = take(e, NULL, 0, sizeof(*f->insns), &e->cap_insns);
    f->labels = take(e, NULL, f->n_labels, sizeof(*f->labels), &e->cap_labels);
    f->regs = take(e, NULL, f->n_regs, sizeof(*f->regs), &e->cap_regs);
    f->vars = take(e, NULL, f->n_vars, sizeof(*f->vars), &e->cap_vars);
    f->protos = ws_arena_array(&m->arena, (size_t)f->n_protos + 1, sizeof(*f->protos));
    f->params =
        ws_arena_array(&m->arena, (size_t)f->n_params + 1 + WS_EDIT_PARAMS_MAX, sizeof(*f->params));
    e->failed |= !f->protos || !f->params;
    for (uint32_t k = 0; k < n && !e->failed; k++)
        take_declarations(e, k, f->params);
    if (!e->failed && ctl_bytes) {
        uint64_t offset = WS_ALIGN_UP(f->param_bytes, 8);
        f->params[f->n_params] = bytes_var(e, "ctl_", WS_SP_PARAM, ctl_bytes, 8);
        f->params[f->n_params++].param_offset = offset;
        f->param_bytes = offset + ctl_bytes;
    }
    ws_ptx_edit_select(e, 0);
}

void ws_ptx_edit_select(struct ws_ptx_edit *e, uint32_t k)
{
    if (e->sources) {
        e->from = &e->sources[k];
        e->old = e->from->f;
    }
}

void ws_ptx_edit_begin(struct ws_ptx_edit *e, struct ws_ptx_module *m, uint32_t func,
                       const char *suffix, uint64_t ctl_bytes)
{
    const struct ws_ptx_func *old = &m->funcs[func];
    ws_ptx_edit_begin_all(e, m, &func, 1, NULL, ctl_bytes, false);
    struct ws_ptx_func made = e->f;
    e->f = *old; /* launch bounds and the like */
    e->f.insns = made.insns;
    e->f.n_insns = 0;
    e->f.labels = made.labels;
    e->f.regs = made.regs;
    e->f.vars = made.vars;
    e->f.params = made.params;
    e->f.n_params = made.n_params;
    e->f.param_bytes = made.param_bytes;
    e->f.protos = made.protos;
    e->f.name = name(e, old->name, suffix);
    e->old = old;
}

static void relabel(struct ws_ptx_operand *o, size_t n, const uint32_t *to)
{
    for (size_t k = 0; k < n; k++) {
        if (o[k].kind == WS_OPD_LABEL)
            o[k].label = (int32_t)to[o[k].label];
        if (o[k].n && o[k].v)
            relabel(o[k].v, o[k].n, to);
    }
}

/* Labels by place, as the parser numbers them; instructions follow. */
static void sort_labels(struct ws_ptx_edit *e)
{
    struct ws_ptx_func *f = &e->f;
    uint32_t *at = ws_alloc_array((size_t)f->n_insns + 2, sizeof(*at));
    uint32_t *to = ws_alloc_array((size_t)f->n_labels + 1, sizeof(*to));
    struct ws_ptx_label *sorted = ws_alloc_array((size_t)f->n_labels + 1, sizeof(*sorted));
    if (!at || !to || !sorted) {
        e->failed = true;
        free(sorted);
    } else {
        for (uint32_t k = 0; k < f->n_labels; k++)
            at[f->labels[k].insn + 1]++;
        for (uint32_t k = 0; k <= f->n_insns; k++)
            at[k + 1] += at[k];
        for (uint32_t k = 0; k < f->n_labels; k++) {
            to[k] = at[f->labels[k].insn]++;
            sorted[to[k]] = f->labels[k];
        }
        for (uint32_t k = 0; k < f->n_insns; k++)
            relabel(f->insns[k].operands, f->insns[k].n_operands, to);
        free(f->labels);
        f->labels = sorted;
    }
    free(at);
    free(to);
}

/* The new function's name gets a $ more as long as something of the module has it: programs may
 * have kernels k and k$fence. */
static void free_name(struct ws_ptx_edit *e)
{
    bool taken = e->f.name;
    while (taken && !e->failed) {
        taken = ws_ptx_find_func(e->m, e->f.name);
        for (uint32_t k = 0; k < e->m->n_vars && !taken; k++)
            taken = !strcmp(e->m->vars[k].name, e->f.name);
        if (taken)
            e->f.name = name(e, e->f.name, "$");
    }
}

int ws_ptx_edit_end(struct ws_ptx_edit *e, uint32_t *ret_func)
{
    struct ws_ptx_func *f = &e->f;
    free_name(e);
    if (!e->failed)
        sort_labels(e);
    struct ws_ptx_insn *insns = f->insns;
    struct ws_ptx_label *labels = f->labels;
    struct ws_ptx_reg *regs = f->regs;
    struct ws_ptx_var *vars = f->vars;
    if (!e->failed) {
        f->insns = in_arena(e, f->n_insns, sizeof(*insns), insns);
        f->labels = in_arena(e, f->n_labels, sizeof(*labels), labels);
        f->regs = in_arena(e, f->n_regs, sizeof(*regs), regs);
        f->vars = in_arena(e, f->n_vars, sizeof(*vars), vars);
    }
    free(insns);
    free(labels);
    free(regs);
    free(vars);
    for (uint32_t k = 0; e->sources && k < e->n_sources; k++) {
        free(e->sources[k].labels_at);
        free(e->sources[k].next_label);
        free(e->sources[k].vars);
    }
    free(e->sources);
    e->sources = NULL;
    struct ws_ptx_func *funcs =
        ws_arena_array(&e->m->arena, (size_t)e->m->n_funcs + 1, sizeof(*funcs));
    if (e->failed || !funcs)
        return ws_raise(-ENOMEM);
    memcpy(funcs, e->m->funcs, e->m->n_funcs * sizeof(*funcs));
    funcs[e->m->n_funcs] = *f;
    e->m->funcs = funcs;
    *ret_func = e->m->n_funcs++;
    return 0;
}

int32_t ws_ptx_edit_reg(struct ws_ptx_edit *e, enum ws_ptx_type type)
{
    void *v = e->f.regs;
    if (e->failed || ws_grow(&v, &e->cap_regs, (size_t)e->f.n_regs + 1, sizeof(*e->f.regs)) < 0) {
        e->failed = true;
        return 0;
    }
    e->f.regs = v;
    e->f.regs[e->f.n_regs] = (struct ws_ptx_reg){.name = own_name(e, "%"), .type = (uint8_t)type};
    return (int32_t)e->f.n_regs++;
}

int32_t ws_ptx_edit_label(struct ws_ptx_edit *e)
{
    void *v = e->f.labels;
    if (e->failed ||
        ws_grow(&v, &e->cap_labels, (size_t)e->f.n_labels + 1, sizeof(*e->f.labels)) < 0) {
        e->failed = true;
        return 0;
    }
    e->f.labels = v;
    e->f.labels[e->f.n_labels] = (struct ws_ptx_label){.name = own_name(e, "$"), .insn = UNPLACED};
    return (int32_t)e->f.n_labels++;
}

void ws_ptx_edit_place(struct ws_ptx_edit *e, int32_t label)
{
    if (!e->failed)
        e->f.labels[label].insn = e->f.n_insns;
}

static int32_t add_var(struct ws_ptx_edit *e, const char *first, enum ws_ptx_space space,
                       uint64_t bytes, uint32_t align)
{
    void *v = e->f.vars;
    if (e->failed || ws_grow(&v, &e->cap_vars, (size_t)e->f.n_vars + 1, sizeof(*e->f.vars)) < 0) {
        e->failed = true;
        return -1;
    }
    e->f.vars = v;
    e->f.vars[e->f.n_vars] = bytes_var(e, first, space, bytes, align);
    return (int32_t)(WS_PTX_SYM_LOCALVAR | (e->f.n_params + e->f.n_rets + e->f.n_vars++));
}

int32_t ws_ptx_edit_shared(struct ws_ptx_edit *e, uint64_t bytes, uint32_t align)
{
    return add_var(e, "shared_", WS_SP_SHARED, bytes, align);
}

int32_t ws_ptx_edit_result(struct ws_ptx_edit *e, uint64_t bytes, uint32_t align)
{
    return add_var(e, "result_", WS_SP_PARAM, bytes, align);
}

int32_t ws_ptx_edit_ctl(const struct ws_ptx_edit *e)
{
    return (int32_t)(WS_PTX_SYM_LOCALVAR | (e->f.n_params - 1));
}

int32_t ws_ptx_edit_param(struct ws_ptx_edit *e, enum ws_ptx_type type)
{
    int32_t reg = ws_ptx_edit_reg(e, type);
    if (e->failed)
        return reg;
    e->f.params[e->f.n_params++] = (struct ws_ptx_var){.name = e->f.regs[reg].name,
                                                       .space = WS_SP_REG,
                                                       .type = (uint8_t)type,
                                                       .align = ws_ptx_type_bytes(type),
                                                       .size_bytes = ws_ptx_type_bytes(type),
                                                       .n_elems = 1,
                                                       .reg = reg};
    return reg;
}

static struct ws_ptx_insn *next_insn(struct ws_ptx_edit *e)
{
    void *v = e->f.insns;
    if (e->failed ||
        ws_grow(&v, &e->cap_insns, (size_t)e->f.n_insns + 1, sizeof(*e->f.insns)) < 0) {
        e->failed = true;
        return &e->lost;
    }
    e->f.insns = v;
    return &e->f.insns[e->f.n_insns++];
}

struct ws_ptx_insn *ws_ptx_edit_add(struct ws_ptx_edit *e, enum ws_ptx_op op, enum ws_ptx_type type,
                                    uint8_t n_operands, const struct ws_ptx_operand *operands)
{
    struct ws_ptx_insn *i = next_insn(e);
    *i = (struct ws_ptx_insn){.op = (uint16_t)op,
                              .n_types = type != WS_T_NONE,
                              .types = {(uint8_t)type},
                              .guard = -1,
                              .n_operands = n_operands};
    i->operands = in_arena(e, n_operands, sizeof(*operands), operands);
    return i;
}

void ws_ptx_edit_guard(struct ws_ptx_insn *i, int32_t pred, bool negated)
{
    i->guard = pred;
    i->guard_neg = negated;
}

/* From the numbering of the old function to that of the new one. */
static void renumber(const struct ws_ptx_edit *e, struct ws_ptx_operand *o)
{
    const struct ws_ptx_source *from = e->from;
    if (o->reg >= 0 && (o->kind == WS_OPD_REG || o->kind == WS_OPD_ADDR))
        o->reg += (int32_t)from->regs;
    if (o->kind == WS_OPD_LABEL)
        o->label += (int32_t)from->labels;
    if (o->sym < 0 || WS_PTX_SYM_KIND(o->sym) != WS_PTX_SYM_LOCALVAR)
        return;
    int64_t i = WS_PTX_SYM_INDEX(o->sym);
    int64_t own = i - e->old->n_params - e->old->n_rets; /* variable of the body */
    if (i < e->old->n_params)
        i += from->params;
    else if (own < 0) /* result: of a function, which is never one of several */
        i += (int64_t)e->f.n_params - e->old->n_params;
    else if (from->vars[own] >= 0)
        i = (int64_t)e->f.n_params + e->f.n_rets + from->vars[own];
    else
        return; /* left out */
    o->sym = (int32_t)(WS_PTX_SYM_LOCALVAR | i);
}

static struct ws_ptx_operand *copy_operands(struct ws_ptx_edit *e,
                                            const struct ws_ptx_operand *from, size_t n)
{
    struct ws_ptx_operand *to = in_arena(e, n, sizeof(*to), from);
    for (size_t k = 0; to && k < n; k++) {
        renumber(e, &to[k]);
        if (to[k].n && to[k].v)
            to[k].v = copy_operands(e, to[k].v, to[k].n);
    }
    return to;
}

void ws_ptx_edit_skip(struct ws_ptx_edit *e, uint32_t index)
{
    const struct ws_ptx_source *from = e->from;
    for (uint32_t k = e->failed ? 0 : from->labels_at[index]; k; k = from->next_label[k - 1])
        e->f.labels[from->labels + k - 1].insn = e->f.n_insns;
}

void ws_ptx_edit_call(struct ws_ptx_edit *e, uint32_t func, uint32_t n_rets,
                      const struct ws_ptx_operand *rets, uint32_t n_args,
                      const struct ws_ptx_operand *args)
{
    struct ws_ptx_insn *i = ws_ptx_edit_add(e, WS_OP_CALL, WS_T_NONE, 0, NULL);
    struct ws_ptx_call call = {.callee = ws_opd_sym((int32_t)(func | WS_PTX_SYM_FUNC)),
                               .proto = -1,
                               .n_rets = n_rets,
                               .n_args = n_args,
                               .rets = in_arena(e, n_rets, sizeof(*rets), rets),
                               .args = in_arena(e, n_args, sizeof(*args), args)};
    i->call = in_arena(e, 1, sizeof(call), &call);
}

struct ws_ptx_insn *ws_ptx_edit_copy_only(struct ws_ptx_edit *e, uint32_t index)
{
    const struct ws_ptx_insn *from = &e->old->insns[index];
    struct ws_ptx_insn *i = next_insn(e);
    *i = *from;
    i->operands = NULL; /* the old one's are not the caller's to change */
    if (e->failed)
        return i;
    if (i->guard >= 0)
        i->guard += (int32_t)e->from->regs;
    i->operands = copy_operands(e, from->operands, from->n_operands);
    if (from->call) {
        struct ws_ptx_call *c = in_arena(e, 1, sizeof(*c), from->call);
        if (c) {
            c->rets = copy_operands(e, c->rets, c->n_rets);
            c->args = copy_operands(e, c->args, c->n_args);
            renumber(e, &c->callee);
            if (c->proto >= 0)
                c->proto += (int32_t)e->from->protos;
        }
        i->call = c;
    }
    return i;
}

void ws_ptx_edit_old_end(struct ws_ptx_edit *e)
{
    ws_ptx_edit_skip(e, e->old->n_insns);
}

/* ---- what passes have in common ---- */
int32_t ws_ptx_edit_load(struct ws_ptx_edit *e, enum ws_ptx_type type, size_t field)
{
    int32_t r = ws_ptx_edit_reg(e, type);
    struct ws_ptx_operand o[] = {ws_opd_reg(r), ws_opd_at_sym(ws_ptx_edit_ctl(e), (int64_t)field)};
    ws_ptx_edit_add(e, WS_OP_LD, type, 2, o)->space = WS_SP_PARAM;
    return r;
}

int32_t ws_ptx_edit_compare(struct ws_ptx_edit *e, enum ws_ptx_cmp cmp, enum ws_ptx_type type,
                            struct ws_ptx_operand a, struct ws_ptx_operand b)
{
    int32_t p = ws_ptx_edit_reg(e, WS_T_PRED);
    struct ws_ptx_operand o[] = {ws_opd_reg(p), a, b};
    ws_ptx_edit_add(e, WS_OP_SETP, type, 3, o)->cmp = (uint8_t)cmp;
    return p;
}

void ws_ptx_edit_branch_if(struct ws_ptx_edit *e, int32_t pred, bool negated, int32_t label)
{
    ws_ptx_edit_guard(WS_EDIT(e, BRA, NONE, ws_opd_label(label)), pred, negated);
}

void ws_ptx_edit_load2(struct ws_ptx_edit *e, enum ws_ptx_type type, size_t field, int32_t ret[2])
{
    struct ws_ptx_operand *v = ws_arena_array(&e->m->arena, 2, sizeof(*v));
    if (!v) {
        e->failed = true;
        ret[0] = ret[1] = 0;
        return;
    }
    for (int k = 0; k < 2; k++)
        v[k] = ws_opd_reg(ret[k] = ws_ptx_edit_reg(e, type));
    struct ws_ptx_operand o[] = {
        {.kind = WS_OPD_VEC, .reg = -1, .sym = -1, .label = -1, .n = 2, .v = v},
        ws_opd_at_sym(ws_ptx_edit_ctl(e), (int64_t)field)};
    struct ws_ptx_insn *i = ws_ptx_edit_add(e, WS_OP_LD, type, 2, o);
    i->space = WS_SP_PARAM;
    i->vec = 2;
}

/* @from = @rest + n[@d] * the returned; the rest only if it is a register. */
static int32_t divide(struct ws_ptx_edit *e, int32_t from, size_t shape, size_t d, int32_t rest)
{
    int32_t times = ws_ptx_edit_reg(e, WS_T_U32), by[2];
    ws_ptx_edit_load2(e, WS_T_U32, shape + offsetof(struct ws_ptx_shape, by) + 8 * d, by);
    WS_EDIT(e, SHL, B32, ws_opd_reg(times), ws_opd_reg(from), ws_opd_imm(1));
    WS_EDIT(e, MUL, U32, ws_opd_reg(times), ws_opd_reg(times), ws_opd_reg(by[0]))->sub = WS_SUB_HI;
    WS_EDIT(e, SHR, U32, ws_opd_reg(times), ws_opd_reg(times), ws_opd_reg(by[1]));
    if (rest >= 0) {
        int32_t before = ws_ptx_edit_reg(e, WS_T_U32),
                n = ws_ptx_edit_load(e, WS_T_U32, shape + offsetof(struct ws_ptx_shape, n) + 4 * d);
        WS_EDIT(e, MUL, U32, ws_opd_reg(before), ws_opd_reg(times), ws_opd_reg(n))->sub = WS_SUB_LO;
        WS_EDIT(e, SUB, U32, ws_opd_reg(rest), ws_opd_reg(from), ws_opd_reg(before));
    }
    return times;
}

static void move(struct ws_ptx_edit *e, int32_t to, int32_t from)
{
    if (to != from)
        WS_EDIT(e, MOV, U32, ws_opd_reg(to), ws_opd_reg(from));
}

void ws_ptx_edit_split(struct ws_ptx_edit *e, int32_t number, size_t shape, const bool reads[3],
                       const int32_t ret[3])
{
    if (!reads[1] && !reads[2]) {
        if (!reads[0])
            return;
        /* In a grid of several rows, x is the number less whole rows; nearly all who read x alone
         * have one row. */
        int32_t one = ws_ptx_edit_label(e),
                n = ws_ptx_edit_load(e, WS_T_U32, shape + offsetof(struct ws_ptx_shape, n));
        move(e, ret[0], number);
        int32_t small =
            ws_ptx_edit_compare(e, WS_CMP_LT, WS_T_U32, ws_opd_reg(number), ws_opd_reg(n));
        ws_ptx_edit_branch_if(e, small, false, one);
        WS_EDIT(e, REM, U32, ws_opd_reg(ret[0]), ws_opd_reg(number), ws_opd_reg(n));
        ws_ptx_edit_place(e, one);
        return;
    }
    int32_t row = divide(e, number, shape, 0, reads[0] ? ret[0] : -1);
    if (!reads[2]) {
        /* Rows past the first slice's: seldom, as above. */
        int32_t one = ws_ptx_edit_label(e),
                n = ws_ptx_edit_load(e, WS_T_U32, shape + offsetof(struct ws_ptx_shape, n) + 4);
        move(e, ret[1], row);
        int32_t small = ws_ptx_edit_compare(e, WS_CMP_LT, WS_T_U32, ws_opd_reg(row), ws_opd_reg(n));
        ws_ptx_edit_branch_if(e, small, false, one);
        WS_EDIT(e, REM, U32, ws_opd_reg(ret[1]), ws_opd_reg(row), ws_opd_reg(n));
        ws_ptx_edit_place(e, one);
        return;
    }
    move(e, ret[2], divide(e, row, shape, 1, reads[1] ? ret[1] : -1));
}

void ws_ptx_edit_read(struct ws_ptx_insn *i, uint8_t n, int32_t reg)
{
    i->operands[n] = ws_opd_reg(reg);
    if (i->op == WS_OP_MOV && ws_ptx_type_bytes((enum ws_ptx_type)i->types[0]) == 2) {
        i->op = WS_OP_CVT; /* mov.u16 of older PTX */
        i->n_types = 2;
        i->types[0] = WS_T_U16;
        i->types[1] = WS_T_U32;
    }
}

int ws_ptx_refuse(char *text, size_t text_bytes, uint32_t line, const char *fmt, ...)
{
    int n = line ? snprintf(text, text_bytes, "line %u: ", line) : 0;
    va_list ap;
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < text_bytes)
        vsnprintf(text + n, text_bytes - (size_t)n, fmt, ap);
    va_end(ap);
    return WS_PTX_E_UNSUPPORTED;
}

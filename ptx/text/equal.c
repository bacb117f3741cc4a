// SPDX-License-Identifier: Apache-2.0
/* ptx/text/equal.c - whether two modules are the same IR, but for lines and columns. Compares by
 * value and by name; pointers never matter. Add a line here for each field that ptx.h gains. */
#include "ptx/ptx.h"

#include <string.h>

static bool str(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static bool operands(const struct ws_ptx_operand *a, uint32_t na, const struct ws_ptx_operand *b,
                     uint32_t nb)
{
    if (na != nb)
        return false;
    for (uint32_t k = 0; k < na; k++, a++, b++)
        if (a->kind != b->kind || a->neg != b->neg || a->imm_kind != b->imm_kind ||
            a->sreg != b->sreg || a->sreg_dim != b->sreg_dim || a->reg != b->reg ||
            a->sym != b->sym || a->label != b->label || a->imm != b->imm ||
            !str(a->part, b->part) || !operands(a->v, a->n, b->v, b->n))
            return false;
    return true;
}

static bool calls(const struct ws_ptx_call *a, const struct ws_ptx_call *b)
{
    if (!a || !b)
        return a == b;
    return operands(&a->callee, 1, &b->callee, 1) && a->proto == b->proto &&
           operands(a->rets, a->n_rets, b->rets, b->n_rets) &&
           operands(a->args, a->n_args, b->args, b->n_args);
}

static bool insns(const struct ws_ptx_insn *a, const struct ws_ptx_insn *b)
{
    return a->op == b->op && a->n_types == b->n_types &&
           !memcmp(a->types, b->types, sizeof(a->types)) && a->rnd == b->rnd && a->cmp == b->cmp &&
           a->sub == b->sub && a->space == b->space && a->space2 == b->space2 && a->sem == b->sem &&
           a->scope == b->scope && a->vec == b->vec && a->cache == b->cache &&
           a->flags == b->flags && a->guard == b->guard && a->guard_neg == b->guard_neg &&
           str(a->ext, b->ext) && str(a->pragma, b->pragma) && calls(a->call, b->call) &&
           operands(a->operands, a->n_operands, b->operands, b->n_operands);
}

static bool inits(const struct ws_ptx_var *a, const struct ws_ptx_var *b)
{
    if (a->init_bytes != b->init_bytes || a->n_init_syms != b->n_init_syms ||
        (a->init_bytes && memcmp(a->init, b->init, a->init_bytes)))
        return false;
    for (uint32_t k = 0; k < a->n_init_syms; k++) {
        const struct ws_ptx_init_sym *x = &a->init_syms[k], *y = &b->init_syms[k];
        if (x->offset != y->offset || x->sym != y->sym || x->addend != y->addend ||
            x->bytes != y->bytes || x->generic != y->generic || x->masked != y->masked ||
            x->shift != y->shift)
            return false;
    }
    return true;
}

static bool vars(const struct ws_ptx_var *a, uint32_t na, const struct ws_ptx_var *b, uint32_t nb)
{
    if (na != nb)
        return false;
    for (uint32_t k = 0; k < na; k++, a++, b++)
        if (!str(a->name, b->name) || a->space != b->space || a->type != b->type ||
            a->link != b->link || a->vec != b->vec || a->is_array != b->is_array ||
            a->managed != b->managed || a->ptr_attr != b->ptr_attr ||
            a->ptr_space != b->ptr_space || a->ptr_align != b->ptr_align || a->align != b->align ||
            a->size_bytes != b->size_bytes || a->n_elems != b->n_elems || a->n_dims != b->n_dims ||
            (a->n_dims && memcmp(a->dims, b->dims, a->n_dims * sizeof(*a->dims))) ||
            a->param_offset != b->param_offset || a->reg != b->reg || !inits(a, b))
            return false;
    return true;
}

static bool protos(const struct ws_ptx_func *a, const struct ws_ptx_func *b)
{
    if (a->n_protos != b->n_protos)
        return false;
    for (uint32_t k = 0; k < a->n_protos; k++) {
        const struct ws_ptx_proto *x = &a->protos[k], *y = &b->protos[k];
        if (!str(x->name, y->name) || x->noreturn != y->noreturn || x->n_targets != y->n_targets ||
            (x->n_targets && memcmp(x->targets, y->targets, x->n_targets * sizeof(*x->targets))) ||
            !vars(x->rets, x->n_rets, y->rets, y->n_rets) ||
            !vars(x->params, x->n_params, y->params, y->n_params))
            return false;
    }
    return true;
}

static bool heads(const struct ws_ptx_func *a, const struct ws_ptx_func *b)
{
    return str(a->name, b->name) && a->is_entry == b->is_entry && a->is_decl == b->is_decl &&
           a->noreturn == b->noreturn && a->link == b->link && a->param_bytes == b->param_bytes &&
           !memcmp(a->maxntid, b->maxntid, sizeof(a->maxntid)) &&
           !memcmp(a->reqntid, b->reqntid, sizeof(a->reqntid)) &&
           !memcmp(a->reqnctapercluster, b->reqnctapercluster, sizeof(a->reqnctapercluster)) &&
           a->minnctapersm == b->minnctapersm && a->maxnctapersm == b->maxnctapersm &&
           a->maxnreg == b->maxnreg && a->maxclusterrank == b->maxclusterrank &&
           a->explicitcluster == b->explicitcluster &&
           a->blocksareclusters == b->blocksareclusters &&
           vars(a->params, a->n_params, b->params, b->n_params) &&
           vars(a->rets, a->n_rets, b->rets, b->n_rets);
}

static bool funcs(const struct ws_ptx_func *a, const struct ws_ptx_func *b)
{
    if (!heads(a, b) || !vars(a->vars, a->n_vars, b->vars, b->n_vars) || !protos(a, b) ||
        a->n_regs != b->n_regs || a->n_insns != b->n_insns || a->n_labels != b->n_labels)
        return false;
    for (uint32_t k = 0; k < a->n_regs; k++)
        if (!str(a->regs[k].name, b->regs[k].name) || a->regs[k].type != b->regs[k].type ||
            a->regs[k].vec != b->regs[k].vec)
            return false;
    for (uint32_t k = 0; k < a->n_labels; k++)
        if (!str(a->labels[k].name, b->labels[k].name) || a->labels[k].insn != b->labels[k].insn)
            return false;
    for (uint32_t k = 0; k < a->n_insns; k++)
        if (!insns(&a->insns[k], &b->insns[k]))
            return false;
    return true;
}

bool ws_ptx_module_equal(const struct ws_ptx_module *a, const struct ws_ptx_module *b)
{
    if (a->version != b->version || a->sm != b->sm || !str(a->target, b->target) ||
        a->map_f64_to_f32 != b->map_f64_to_f32 ||
        a->texmode_independent != b->texmode_independent || a->address_size != b->address_size ||
        a->n_funcs != b->n_funcs || a->n_aliases != b->n_aliases ||
        !vars(a->vars, a->n_vars, b->vars, b->n_vars))
        return false;
    for (uint32_t k = 0; k < a->n_funcs; k++)
        if (!funcs(&a->funcs[k], &b->funcs[k]))
            return false;
    for (uint32_t k = 0; k < a->n_aliases; k++)
        if (a->aliases[k].alias != b->aliases[k].alias ||
            a->aliases[k].aliasee != b->aliases[k].aliasee)
            return false;
    return true;
}

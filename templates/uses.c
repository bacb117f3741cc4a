// SPDX-License-Identifier: Apache-2.0
/* What a kernel refers to, and modules that hold no more than that. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "templates/template_private.h"

/* ---- finding ---- */
struct finder {
    const struct ws_ptx_module *m;
    struct ws_template_uses *u;
    bool more; /* a function was found that has not been looked at */
};

static void note(struct finder *f, int32_t sym)
{
    uint32_t k = (uint32_t)WS_PTX_SYM_INDEX(sym);
    if (sym < 0)
        return;
    if (WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_FUNC && !f->u->funcs[k])
        f->u->funcs[k] = f->more = true;
    else if (WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_VAR)
        f->u->vars[k] = true;
}

static void note_operands(struct finder *f, const struct ws_ptx_operand *v, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const struct ws_ptx_operand *o = &v[k];
        if (o->kind == WS_OPD_SYM || o->kind == WS_OPD_ADDR)
            note(f, o->sym);
        note_operands(f, o->v, o->n);
    }
}

static void note_func(struct finder *f, const struct ws_ptx_func *func)
{
    for (uint32_t k = 0; k < func->n_insns; k++) {
        const struct ws_ptx_insn *i = &func->insns[k];
        note_operands(f, i->operands, i->n_operands);
        if (!i->call)
            continue;
        note_operands(f, &i->call->callee, 1);
        note_operands(f, i->call->rets, i->call->n_rets);
        note_operands(f, i->call->args, i->call->n_args);
    }
    for (uint32_t k = 0; k < func->n_protos; k++)
        for (uint32_t j = 0; j < func->protos[k].n_targets; j++)
            note(f, func->protos[k].targets[j] | WS_PTX_SYM_FUNC);
}

int ws_template_find_uses(struct ws_template_uses *ret, const struct ws_ptx_module *m,
                          uint32_t func)
{
    struct ws_template_uses u = {ws_alloc_array((size_t)m->n_funcs + 1, sizeof(bool)),
                                 ws_alloc_array((size_t)m->n_vars + 1, sizeof(bool))};
    bool *seen = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(bool));
    if (!u.funcs || !u.vars || !seen) {
        ws_template_uses_deinit(&u);
        free(seen);
        return ws_raise(-ENOMEM);
    }
    struct finder f = {m, &u, true};
    u.funcs[func] = true;
    while (f.more) {
        f.more = false;
        for (uint32_t k = 0; k < m->n_funcs; k++)
            if (u.funcs[k] && !seen[k]) {
                seen[k] = true;
                note_func(&f, &m->funcs[k]);
            }
    }
    free(seen);
    *ret = u;
    return 0;
}

void ws_template_uses_deinit(struct ws_template_uses *u)
{
    free(u->funcs);
    free(u->vars);
    *u = (struct ws_template_uses){0};
}

/* ---- pruning ---- */
struct pruner {
    int32_t *funcs, *vars; /* new numbers */
};

static int32_t renumber(const struct pruner *p, int32_t sym)
{
    uint32_t k = (uint32_t)WS_PTX_SYM_INDEX(sym);
    if (sym < 0 || WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_LOCALVAR)
        return sym;
    return WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_FUNC ? p->funcs[k] | WS_PTX_SYM_FUNC : p->vars[k];
}

static void renumber_operands(const struct pruner *p, struct ws_ptx_operand *v, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        if (v[k].kind == WS_OPD_SYM || v[k].kind == WS_OPD_ADDR)
            v[k].sym = renumber(p, v[k].sym);
        renumber_operands(p, v[k].v, v[k].n);
    }
}

static void renumber_func(const struct pruner *p, struct ws_ptx_func *f)
{
    for (uint32_t k = 0; k < f->n_insns; k++) {
        struct ws_ptx_insn *i = &f->insns[k];
        renumber_operands(p, i->operands, i->n_operands);
        if (!i->call)
            continue;
        struct ws_ptx_call *c = (struct ws_ptx_call *)i->call; /* the module is ours to change */
        renumber_operands(p, &c->callee, 1);
        renumber_operands(p, (struct ws_ptx_operand *)c->rets, c->n_rets);
        renumber_operands(p, (struct ws_ptx_operand *)c->args, c->n_args);
    }
    for (uint32_t k = 0; k < f->n_protos; k++)
        for (uint32_t j = 0; j < f->protos[k].n_targets; j++)
            f->protos[k].targets[j] = p->funcs[f->protos[k].targets[j]];
}

static int32_t *number(const bool *used, uint32_t n, struct ws_arena *a)
{
    int32_t *v = ws_arena_array(a, (size_t)n + 1, sizeof(*v)), next = 0;
    for (uint32_t k = 0; v && k < n; k++)
        v[k] = used[k] ? next++ : -1;
    return v;
}

int ws_template_prune(struct ws_ptx_module *m, uint32_t func, uint32_t *ret_func)
{
    struct ws_template_uses u;
    int r = ws_template_find_uses(&u, m, func);
    if (r)
        return ws_forward(r);
    struct ws_arena tmp = WS_ARENA_NULL;
    struct pruner p = {number(u.funcs, m->n_funcs, &tmp), number(u.vars, m->n_vars, &tmp)};
    if (p.funcs && p.vars) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < m->n_funcs; k++)
            if (u.funcs[k]) {
                renumber_func(&p, &m->funcs[k]);
                m->funcs[n++] = m->funcs[k];
            }
        m->n_funcs = n;
        n = 0;
        for (uint32_t k = 0; k < m->n_vars; k++)
            if (u.vars[k])
                m->vars[n++] = m->vars[k];
        m->n_vars = n;
        m->n_aliases = 0; /* kernels that come to one are refused */
        *ret_func = (uint32_t)p.funcs[func];
    } else {
        r = ws_raise(-ENOMEM);
    }
    ws_arena_deinit(&tmp);
    ws_template_uses_deinit(&u);
    return r;
}

/* ---- copying ---- */

/* Unused functions keep their place but lose their bodies, so that numbers stay; then through the
 * printed text, which is a copy of all that an instruction may point to. */
static bool lay_out(struct ws_ptx_module *c, const struct ws_ptx_module *m,
                    const struct ws_template_uses *u, const char *prefix, struct ws_arena *a)
{
    char name[4096];
    c->funcs = ws_arena_array(a, (size_t)m->n_funcs + 1, sizeof(*c->funcs));
    c->vars = ws_arena_array(a, (size_t)m->n_vars + 1, sizeof(*c->vars));
    bool ok = c->funcs && c->vars;
    for (uint32_t k = 0; ok && k < m->n_vars; k++) {
        struct ws_ptx_var *v = &c->vars[k];
        *v = m->vars[k];
        int n = snprintf(name, sizeof(name), "%s%s", prefix, v->name);
        ok = n < (int)sizeof(name) && (v->name = ws_arena_strndup(a, name, (size_t)n));
        if (v->link != WS_LINK_EXTERN)
            v->link = WS_LINK_NONE;
        v->init = NULL;
        v->init_bytes = v->n_init_syms = 0;
    }
    for (uint32_t k = 0; ok && k < m->n_funcs; k++) {
        struct ws_ptx_func *f = &c->funcs[k];
        *f = m->funcs[k];
        if (!u->funcs[k])
            f->n_insns = f->n_labels = f->n_vars = f->n_regs = f->n_protos = 0;
        if (f->is_decl && ws_ptx_is_system_func(f->name))
            continue; /* one for all */
        int n = snprintf(name, sizeof(name), "%s%s", prefix, f->name);
        ok = n < (int)sizeof(name) && (f->name = ws_arena_strndup(a, name, (size_t)n));
        if (!f->is_decl)
            f->link = WS_LINK_NONE;
    }
    return ok;
}

/* Messages name the lines of the client's own text. */
static void keep_lines(struct ws_ptx_module *to, const struct ws_ptx_module *from)
{
    for (uint32_t k = 0; k < WS_MIN(to->n_funcs, from->n_funcs); k++)
        for (uint32_t i = 0; i < WS_MIN(to->funcs[k].n_insns, from->funcs[k].n_insns); i++)
            to->funcs[k].insns[i].line = from->funcs[k].insns[i].line;
}

int ws_template_copy(struct ws_ptx_module **ret, const struct ws_ptx_module *m, uint32_t func,
                     const char *prefix)
{
    struct ws_template_uses u;
    struct ws_arena a = WS_ARENA_NULL;
    struct ws_ptx_module c = *m, *copy = NULL;
    char *text = NULL;
    size_t len = 0;
    int r = ws_template_find_uses(&u, m, func);
    if (r)
        return ws_forward(r);
    FILE *file = lay_out(&c, m, &u, prefix, &a) ? open_memstream(&text, &len) : NULL;
    c.n_aliases = 0;
    if (file) {
        r = ws_ptx_print(&c, file);
        if (fclose(file))
            r = -EIO;
    }
    if (!file || r)
        r = ws_raise(-ENOMEM); /* a stream in memory fails for nothing else */
    else
        r = ws_ptx_parse(&copy, text, len, "copy", NULL);
    if (!r) {
        keep_lines(copy, &c);
        *ret = copy;
    }
    free(text);
    ws_arena_deinit(&a);
    ws_template_uses_deinit(&u);
    return r > 0 ? ws_fold(r) : r;
}

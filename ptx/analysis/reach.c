// SPDX-License-Identifier: Apache-2.0
/* Where a kernel may come to: functions, instructions, its end. */
#include "ptx/analysis/reach.h"
#include "ptx/passes/edit.h"

#include <stdlib.h>
#include "base/alloc.h"
#include "base/budget.h"
#include "base/error.h"

/* Whether a pass has added it: nothing has its address. */
static bool is_added(const struct ws_ptx_func *f)
{
    return f->lib || f->lib_of || f->fence;
}

int ws_ptx_reach_init(struct ws_ptx_reach *r, const struct ws_ptx_module *m)
{
    *r = (struct ws_ptx_reach){.m = m, .search = 1};
    r->found = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*r->found));
    r->seen = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*r->seen));
    if (r->found && r->seen)
        return 0;
    ws_ptx_reach_deinit(r);
    return ws_raise(-ENOMEM);
}

void ws_ptx_reach_deinit(struct ws_ptx_reach *r)
{
    free(r->found);
    free(r->seen);
    *r = (struct ws_ptx_reach){0};
}

static void add(struct ws_ptx_reach *r, uint32_t func)
{
    if (r->m->funcs[func].is_entry || r->seen[func] == r->search)
        return;
    r->seen[func] = r->search;
    r->found[r->n++] = func;
}

static void add_calls(struct ws_ptx_reach *r, const struct ws_ptx_func *f)
{
    for (uint32_t k = 0; k < f->n_insns && ws_budget_spend(1); k++) {
        const struct ws_ptx_call *call = f->insns[k].call;
        if (call && call->callee.kind == WS_OPD_SYM) {
            add(r, (uint32_t)WS_PTX_SYM_INDEX(call->callee.sym));
        } else if (call && !r->all) { /* through a register */
            r->all = true;
            for (uint32_t i = 0; i < r->m->n_funcs; i++)
                if (!is_added(&r->m->funcs[i]))
                    add(r, i);
        }
    }
}

void ws_ptx_reach_add(struct ws_ptx_reach *r, const struct ws_ptx_func *f)
{
    uint32_t k = r->n;
    for (add_calls(r, f); k < r->n && ws_budget_spend(1); k++)
        add_calls(r, &r->m->funcs[r->found[k]]);
}

void ws_ptx_reach_find(struct ws_ptx_reach *r, const struct ws_ptx_func *f)
{
    r->n = 0;
    r->all = false;
    r->search++;
    ws_ptx_reach_add(r, f);
}

int ws_ptx_mark_reached(const struct ws_ptx_module *m, const struct ws_ptx_func *f, bool *reached)
{
    struct ws_ptx_reach r;
    int e = ws_ptx_reach_init(&r, m);
    if (e)
        return ws_forward(e);
    ws_ptx_reach_find(&r, f);
    for (uint32_t k = 0; k < r.n; k++)
        reached[r.found[k]] = true;
    ws_ptx_reach_deinit(&r);
    return 0;
}

static bool names_function(const struct ws_ptx_operand *o)
{
    bool named = o->kind == WS_OPD_SYM && o->sym >= 0 && WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_FUNC;
    for (uint16_t k = 0; k < o->n && !named; k++)
        named = names_function(&o->v[k]);
    return named;
}

static uint8_t addresses_in(const struct ws_ptx_func *f)
{
    uint8_t does = 0;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        if (i->call && !names_function(&i->call->callee))
            does |= WS_PTX_CALLS_ADDRESSES;
        for (uint8_t n = 0; n < i->n_operands; n++)
            does |= names_function(&i->operands[n]) ? WS_PTX_TAKES_ADDRESSES : 0;
    }
    return does;
}

int ws_ptx_function_addresses(const struct ws_ptx_module *m, uint8_t *ret)
{
    struct ws_ptx_reach r;
    int e = ws_ptx_reach_init(&r, m);
    if (e)
        return ws_forward(e);
    for (uint32_t f = 0; f < m->n_funcs; f++) {
        if (!m->funcs[f].is_entry || m->funcs[f].is_decl)
            continue;
        *ret = addresses_in(&m->funcs[f]);
        ws_ptx_reach_find(&r, &m->funcs[f]);
        for (uint32_t n = 0; n < r.n; n++)
            *ret |= addresses_in(&m->funcs[r.found[n]]);
        ret++;
    }
    ws_ptx_reach_deinit(&r);
    return 0;
}

static bool reads_tid_yz(const struct ws_ptx_operand *o)
{
    if (o->kind == WS_OPD_SREG && o->sreg == WS_SR_TID && o->sreg_dim)
        return true;
    for (uint16_t k = 0; k < o->n; k++)
        if (reads_tid_yz(&o->v[k]))
            return true;
    return false;
}

static bool func_any(const struct ws_ptx_func *f, bool (*is)(const struct ws_ptx_insn *i, int arg),
                     int arg)
{
    for (uint32_t i = 0; i < f->n_insns; i++)
        if (is(&f->insns[i], arg))
            return true;
    return false;
}

/* Whether an instruction for which @is is true is in the kernel or in a function that it may call.
 */
static int any_insn(const struct ws_ptx_module *m, uint32_t func,
                    bool (*is)(const struct ws_ptx_insn *i, int arg), int arg, bool *ret)
{
    struct ws_ptx_reach r;
    int e = ws_ptx_reach_init(&r, m);
    if (e)
        return ws_forward(e);
    ws_ptx_reach_find(&r, &m->funcs[func]);
    *ret = func_any(&m->funcs[func], is, arg);
    for (uint32_t k = 0; k < r.n && !*ret; k++)
        *ret = func_any(&m->funcs[r.found[k]], is, arg);
    ws_ptx_reach_deinit(&r);
    return 0;
}

static bool insn_reads_tid_yz(const struct ws_ptx_insn *i, int arg)
{
    (void)arg;
    for (uint8_t n = 0; n < i->n_operands; n++)
        if (reads_tid_yz(&i->operands[n]))
            return true;
    return false;
}

int ws_ptx_reads_tid_yz(const struct ws_ptx_module *m, uint32_t func, bool *ret)
{
    return ws_forward(any_insn(m, func, insn_reads_tid_yz, 0, ret));
}

static bool insn_is(const struct ws_ptx_insn *i, int op)
{
    return i->op == op;
}

int ws_ptx_has_op(const struct ws_ptx_module *m, uint32_t func, enum ws_ptx_op op, bool *ret)
{
    return ws_forward(any_insn(m, func, insn_is, (int)op, ret));
}

bool ws_ptx_falls_off(const struct ws_ptx_func *f)
{
    const struct ws_ptx_insn *last = f->n_insns ? &f->insns[f->n_insns - 1] : NULL;
    for (uint32_t k = 0; k < f->n_labels; k++)
        if (f->labels[k].insn == f->n_insns)
            return true;
    return !last || last->guard >= 0 ||
           (!ws_ptx_does(last, WS_DOES_LEAVE) && last->op != WS_OP_BRA);
}

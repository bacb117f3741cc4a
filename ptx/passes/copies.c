// SPDX-License-Identifier: Apache-2.0
/* A pass that changes a kernel and the functions that it calls leaves the originals as they are,
 * because other kernels call them too. So it copies each function that it must change, and calls
 * among the copies go to copies. Functions that have such a copy from an earlier kernel are not
 * copied again. The kernel's own copy is the last, after all that it calls. When memory runs out,
 * the module is as it was: nobody has seen the copies, and the arena owns them. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/edit.h"

bool ws_ptx_calls_any(const struct ws_ptx_func *f, const bool *funcs)
{
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_call *c = f->insns[k].call;
        if (c && c->callee.kind == WS_OPD_SYM && funcs[WS_PTX_SYM_INDEX(c->callee.sym)])
            return true;
    }
    return false;
}

/* Who calls whom by name, from the called one's side: the callers of function f are
 * by[at[f]] to by[at[f + 1] - 1]. */
struct callers {
    uint32_t *at, *by;
};

/* @fill false: counts them in at[f + 2]; true: writes them, which moves at[f + 1] from the start of
 * f's to their end. */
static void note_callers(const struct ws_ptx_module *m, const bool *among, struct callers *c,
                         bool fill)
{
    for (uint32_t f = 0; f < m->n_funcs; f++)
        for (uint32_t k = 0; among[f] && k < m->funcs[f].n_insns; k++) {
            const struct ws_ptx_call *call = m->funcs[f].insns[k].call;
            if (!call || call->callee.kind != WS_OPD_SYM)
                continue;
            uint32_t callee = (uint32_t)WS_PTX_SYM_INDEX(call->callee.sym);
            if (fill)
                c->by[c->at[callee + 1]++] = f;
            else
                c->at[callee + 2]++;
        }
}

static int find_callers(const struct ws_ptx_module *m, const bool *among, struct callers *ret)
{
    uint32_t n = m->n_funcs;
    *ret = (struct callers){.at = ws_alloc_array((size_t)n + 3, sizeof(*ret->at))};
    if (!ret->at)
        return ws_raise(-ENOMEM);
    note_callers(m, among, ret, false);
    for (uint32_t f = 0; f <= n; f++)
        ret->at[f + 2] += ret->at[f + 1];
    ret->by = ws_alloc_array((size_t)ret->at[n + 1] + 1, sizeof(*ret->by));
    if (!ret->by)
        return ws_raise(-ENOMEM);
    note_callers(m, among, ret, true);
    return 0;
}

int ws_ptx_mark_callers(const struct ws_ptx_module *m, const bool *among, bool *io)
{
    struct callers c;
    uint32_t *todo = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*todo)), n = 0;
    int r = find_callers(m, among, &c);
    if (!r && !todo)
        r = ws_raise(-ENOMEM);
    for (uint32_t f = 0; !r && f < m->n_funcs; f++)
        if (io[f])
            todo[n++] = f;
    while (!r && n) {
        uint32_t f = todo[--n];
        for (uint32_t k = c.at[f]; k < c.at[f + 1]; k++)
            if (!io[c.by[k]]) {
                io[c.by[k]] = true;
                todo[n++] = c.by[k];
            }
    }
    free(todo);
    free(c.at);
    free(c.by);
    return r;
}

int64_t ws_ptx_copy_of_callee(const struct ws_ptx_copies *c, const struct ws_ptx_insn *i)
{
    if (!i->call || i->call->callee.kind != WS_OPD_SYM)
        return -1;
    uint32_t callee = (uint32_t)WS_PTX_SYM_INDEX(i->call->callee.sym);
    return c->needs[callee] ? (int64_t)c->clone[callee] : -1;
}

void ws_ptx_edit_redirect(struct ws_ptx_edit *e, struct ws_ptx_insn *i, uint32_t func,
                          uint32_t n_more, const struct ws_ptx_operand *more)
{
    struct ws_ptx_call *c = ws_arena_array(&e->m->arena, 1, sizeof(*c));
    struct ws_ptx_operand *args =
        i->call ? ws_arena_array(&e->m->arena, (size_t)i->call->n_args + n_more, sizeof(*args))
                : NULL; /* no call: memory is out, and this is e->lost */
    if (!c || !args) {
        e->failed = true;
        return;
    }
    *c = *i->call;
    for (uint32_t k = 0; k < c->n_args; k++)
        args[k] = c->args[k];
    for (uint32_t k = 0; k < n_more; k++)
        args[c->n_args++] = more[k];
    c->args = args;
    c->callee = ws_opd_sym((int32_t)(func | WS_PTX_SYM_FUNC));
    i->call = c;
}

/* The copy of function @func that is there already, or -1. */
static int64_t find_copy(const struct ws_ptx_module *m, const struct ws_ptx_copier *by,
                         uint32_t func)
{
    for (uint32_t k = 0; k < m->n_funcs; k++)
        if (by->is_copy(&m->funcs[k], func))
            return k;
    return -1;
}

static int copy_all(struct ws_ptx_module *m, uint32_t func, const struct ws_ptx_copier *by,
                    struct ws_ptx_copies *c, uint32_t *ret_func)
{
    uint32_t n = m->n_funcs, next = n;
    for (uint32_t k = 0; k < n; k++) {
        int64_t copy = c->needs[k] ? find_copy(m, by, k) : -1;
        if (c->needs[k])
            c->clone[k] = copy >= 0 ? (uint32_t)copy : next++;
    }
    for (uint32_t k = 0; k < n; k++) {
        int r = c->needs[k] && c->clone[k] >= n ? by->write(m, k, c, ret_func) : 0;
        if (r)
            return ws_forward(r);
    }
    return ws_forward(by->write(m, func, c, ret_func));
}

int ws_ptx_copy_kernel(struct ws_ptx_module *m, uint32_t func, const struct ws_ptx_copier *by,
                       uint32_t helper, uint32_t *ret_func)
{
    struct ws_ptx_func *before = m->funcs;
    uint32_t n = m->n_funcs;
    struct ws_ptx_copies c = {.helper = helper,
                              .needs = ws_alloc_array((size_t)n + 1, sizeof(*c.needs)),
                              .clone = ws_alloc_array((size_t)n + 1, sizeof(*c.clone))};
    int r = c.needs && c.clone ? by->needs(m, func, c.needs) : ws_raise(-ENOMEM);
    if (!r) {
        c.needs[func] = false; /* no function calls a kernel */
        r = copy_all(m, func, by, &c, ret_func);
    }
    if (r) {
        m->funcs = before;
        m->n_funcs = n;
    }
    free(c.needs);
    free(c.clone);
    return ws_forward(r);
}

// SPDX-License-Identifier: Apache-2.0
/* Which functions a kernel may come to. */
#include "ptx/edit.h"

#include <stdlib.h>
#include "base/alloc.h"
#include "base/error.h"

/* Marks what @f calls, directly; all functions where it calls through a register. Return: whether any was new. */
static bool mark_calls(const struct ws_ptx_module *m, const struct ws_ptx_func *f, bool *reached)
{
    bool changed = false;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_call *call = f->insns[k].call;
        if (!call)
            continue;
        bool direct = call->callee.kind == WS_OPD_SYM;
        for (uint32_t i = 0; i < m->n_funcs; i++)
            if (!m->funcs[i].is_entry && !reached[i] &&
                (!direct || i == (uint32_t)WS_PTX_SYM_INDEX(call->callee.sym)))
                changed = reached[i] = true;
    }
    return changed;
}

void ws_ptx_mark_reached(const struct ws_ptx_module *m, const struct ws_ptx_func *f, bool *reached)
{
    bool changed = mark_calls(m, f, reached);
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < m->n_funcs; i++)
            if (reached[i])
                changed |= mark_calls(m, &m->funcs[i], reached);
    }
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

int ws_ptx_reads_tid_yz(const struct ws_ptx_module *m, uint32_t func, bool *ret)
{
    bool *reached = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*reached)), reads = false;
    if (!reached)
        return ws_raise(-ENOMEM);
    ws_ptx_mark_reached(m, &m->funcs[func], reached);
    reached[func] = true;
    for (uint32_t k = 0; k < m->n_funcs && !reads; k++)
        for (uint32_t i = 0; reached[k] && i < m->funcs[k].n_insns && !reads; i++)
            for (uint8_t n = 0; n < m->funcs[k].insns[i].n_operands; n++)
                reads |= reads_tid_yz(&m->funcs[k].insns[i].operands[n]);
    free(reached);
    *ret = reads;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Which functions a kernel may come to. */
#include "ptx/edit.h"

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

// SPDX-License-Identifier: Apache-2.0
/* Where a kernel may come to: functions, instructions, its end. */
#include "ptx/passes/edit.h"

#include <stdlib.h>
#include "base/alloc.h"
#include "base/error.h"

/* Whether a pass has added it: nothing has its address. */
static bool is_added(const struct ws_ptx_func *f)
{
    return f->lib || f->lib_of || f->fence;
}

/* Marks what @f calls, directly; all functions where it calls through a register. Return: whether
 * any was new. */
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
                (direct ? i == (uint32_t)WS_PTX_SYM_INDEX(call->callee.sym)
                        : !is_added(&m->funcs[i])))
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

/* Whether an instruction for which @is is true is in the kernel or in a function that it may call.
 */
static int any_insn(const struct ws_ptx_module *m, uint32_t func,
                    bool (*is)(const struct ws_ptx_insn *i, int arg), int arg, bool *ret)
{
    bool *reached = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*reached)), found = false;
    if (!reached)
        return ws_raise(-ENOMEM);
    ws_ptx_mark_reached(m, &m->funcs[func], reached);
    reached[func] = true;
    for (uint32_t k = 0; k < m->n_funcs && !found; k++)
        for (uint32_t i = 0; reached[k] && i < m->funcs[k].n_insns && !found; i++)
            found = is(&m->funcs[k].insns[i], arg);
    free(reached);
    *ret = found;
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

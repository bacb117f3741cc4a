// SPDX-License-Identifier: Apache-2.0
/* Block and thread numbers to which a pass gives values of its own.
 *
 * A value that does not change while the kernel runs is a field of the pass's parameter: each mov
 * of the special register becomes an ld.param. The pass computes the other values into registers,
 * and each mov of the special register becomes a mov of such a register. Where a mov is the only
 * definition of its register, the pass computes the value into that register and leaves the mov
 * out. Compilers emit one mov for each special register that they use, so a kernel rewritten like
 * this has hardly more to do than before. The register then has its value earlier than before,
 * which makes no difference: before its only definition it had no value. */
#include <stdlib.h>

#include "base/alloc.h"
#include "ptx/passes/edit.h"

static const enum ws_ptx_sreg sregs[_WS_OWN_N] = {
    [WS_OWN_CTAID] = WS_SR_CTAID,
    [WS_OWN_NCTAID] = WS_SR_NCTAID,
    [WS_OWN_TID] = WS_SR_TID,
    [WS_OWN_NTID] = WS_SR_NTID,
};

int ws_ptx_own_of(const struct ws_ptx_operand *o)
{
    for (int k = 0; k < _WS_OWN_N && o->kind == WS_OPD_SREG; k++)
        if (o->sreg == sregs[k])
            return k;
    return -1;
}

static void count(const struct ws_ptx_operand *o, uint8_t *writes)
{
    if (o->kind == WS_OPD_REG && o->reg >= 0 && writes[o->reg] < 2)
        writes[o->reg]++;
    for (uint16_t k = 0; k < o->n; k++)
        count(&o->v[k], writes);
}

/* How many instructions write each register, up to 2. */
static void count_writes(const struct ws_ptx_func *f, uint8_t *writes)
{
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        if (i->n_operands)
            count(&i->operands[0], writes);
        for (uint32_t r = 0; i->call && r < i->call->n_rets; r++)
            count(&i->call->rets[r], writes);
    }
}

/* "mov.u32 %r, %tid.x", always carried out. */
static bool only_copies(const struct ws_ptx_func *f, const struct ws_ptx_insn *i)
{
    const struct ws_ptx_operand *o = i->operands;
    return i->op == WS_OP_MOV && i->guard < 0 && i->n_operands == 2 && o[0].kind == WS_OPD_REG &&
           !o[0].part && f->regs[o[0].reg].vec <= 1 &&
           ws_ptx_type_bytes((enum ws_ptx_type)i->types[0]) == 4;
}

void ws_ptx_own_find(struct ws_ptx_own *own, struct ws_ptx_edit *e)
{
    const struct ws_ptx_func *f = e->old;
    *own = (struct ws_ptx_own){.f = f};
    for (int k = 0; k < _WS_OWN_N; k++)
        for (int d = 0; d < 3; d++)
            own->of[k][d].reg = own->of[k][d].copies_to = -1;
    uint8_t *writes = ws_alloc_array((size_t)f->n_regs + 1, sizeof(*writes));
    if (!writes) {
        e->failed = true;
        return;
    }
    count_writes(f, writes);
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        for (uint8_t n = 0; n < i->n_operands; n++) {
            int which = ws_ptx_own_of(&i->operands[n]);
            if (which < 0 || i->operands[n].sreg_dim > 2)
                continue;
            struct ws_ptx_own_value *v = &own->of[which][i->operands[n].sreg_dim];
            v->read = true;
            if (v->copies_to < 0 && only_copies(f, i) && writes[i->operands[0].reg] == 1) {
                v->copies_to = i->operands[0].reg;
                v->copied_at = k;
            }
        }
    }
    free(writes);
}

int32_t ws_ptx_own_reg(struct ws_ptx_own *own, struct ws_ptx_edit *e, enum ws_ptx_own_which which,
                       unsigned dim)
{
    struct ws_ptx_own_value *v = &own->of[which][dim];
    if (v->reg < 0)
        v->reg =
            v->copies_to >= 0 ? ws_ptx_edit_old_reg(e, v->copies_to) : ws_ptx_edit_reg(e, WS_T_U32);
    return v->reg;
}

void ws_ptx_own_load(struct ws_ptx_own *own, enum ws_ptx_own_which which, size_t field)
{
    for (unsigned d = 0; d < 3; d++) {
        own->of[which][d].is_field = true;
        own->of[which][d].field = field + d * sizeof(uint32_t);
    }
}

bool ws_ptx_own_reads(const struct ws_ptx_own *own, enum ws_ptx_own_which which)
{
    return own->of[which][0].read || own->of[which][1].read || own->of[which][2].read;
}

/* The mov becomes an ld.param. */
static void load_instead(const struct ws_ptx_edit *e, struct ws_ptx_insn *i,
                         const struct ws_ptx_own_value *v)
{
    i->op = WS_OP_LD;
    i->space = WS_SP_PARAM;
    i->operands[1] = ws_opd_at_sym(ws_ptx_edit_ctl(e), (int64_t)v->field);
}

struct ws_ptx_insn *ws_ptx_own_copy(struct ws_ptx_own *own, struct ws_ptx_edit *e, uint32_t index)
{
    const struct ws_ptx_insn *old = &own->f->insns[index];
    int32_t regs[WS_PTX_MAX_OPERANDS];
    struct ws_ptx_own_value *mov = NULL;
    ws_ptx_edit_skip(e, index);
    for (uint8_t n = 0; n < old->n_operands; n++) {
        int which = ws_ptx_own_of(&old->operands[n]);
        regs[n] = -1;
        if (which < 0 || old->operands[n].sreg_dim > 2)
            continue;
        struct ws_ptx_own_value *v = &own->of[which][old->operands[n].sreg_dim];
        if (v->is_field && old->op == WS_OP_MOV &&
            ws_ptx_type_bytes((enum ws_ptx_type)old->types[0]) == 4)
            mov = v;
        else if (v->is_field)
            regs[n] = ws_ptx_edit_load(e, WS_T_U32, v->field);
        else if (v->reg >= 0 && v->copies_to >= 0 && v->copied_at == index)
            return NULL;
        else
            regs[n] = v->reg;
    }
    struct ws_ptx_insn *i = ws_ptx_edit_copy_only(e, index);
    for (uint8_t n = 0; n < old->n_operands && i->operands; n++)
        if (regs[n] >= 0)
            ws_ptx_edit_read(i, n, regs[n]);
    if (mov && i->operands)
        load_instead(e, i, mov);
    return i;
}

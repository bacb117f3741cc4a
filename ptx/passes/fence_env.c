// SPDX-License-Identifier: Apache-2.0
/* Accesses to the launch's own page, which a fence lets pass. A grid that synchronises has a few
 * words of the driver's, whose address is in %envreg1 (upper half) and %envreg2 (lower half); they
 * are in no range of the client's. So an access passes unchecked where its register holds nothing
 * else: the two halves put together, and at most PAGE bytes added once. Each register on the way
 * has one definition, so that nothing else can come into it. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/edit.h"
#include "ptx/passes/fence.h"

enum { PAGE = 256 };
enum part { NOTHING, UPPER, LOWER, UPPER_SHIFTED, WHOLE, INSIDE };

struct env {
    const struct ws_ptx_func *f;
    int32_t *def;  /* [n_regs]: instruction + 1; 0: none; -1: several */
    uint8_t *part; /* [n_regs] */
};

static void defines(struct env *e, const struct ws_ptx_operand *o, int32_t insn)
{
    if (o->kind == WS_OPD_REG && o->reg >= 0)
        e->def[o->reg] = e->def[o->reg] ? -1 : insn + 1;
    for (uint16_t k = 0; k < o->n; k++)
        defines(e, &o->v[k], insn);
}

static enum part part_of(const struct env *e, const struct ws_ptx_operand *o)
{
    return o->kind == WS_OPD_REG && o->reg >= 0 ? (enum part)e->part[o->reg] : NOTHING;
}

static bool is_imm(const struct ws_ptx_operand *o, int64_t v)
{
    return o->kind == WS_OPD_IMM && o->imm_kind == WS_IMM_INT && o->imm == v;
}

static enum part moved(const struct env *e, const struct ws_ptx_operand *o)
{
    if (o->kind == WS_OPD_SREG && o->sreg == WS_SR_ENVREG)
        return o->sreg_dim == 1 ? UPPER : o->sreg_dim == 2 ? LOWER : NOTHING;
    if (o->n == 2 && part_of(e, &o->v[0]) == LOWER && part_of(e, &o->v[1]) == UPPER)
        return WHOLE;
    return o->n ? NOTHING : part_of(e, o);
}

/* What an instruction's result is. */
static enum part result(const struct env *e, const struct ws_ptx_insn *i)
{
    const struct ws_ptx_operand *o = i->operands;
    enum part a = i->n_operands > 1 ? part_of(e, &o[1]) : NOTHING,
              b = i->n_operands > 2 ? part_of(e, &o[2]) : NOTHING;
    uint64_t bytes = ws_ptx_type_bytes((enum ws_ptx_type)i->types[0]);
    switch (i->op) {
    case WS_OP_MOV:
        return moved(e, &o[1]);
    case WS_OP_CVT: /* from 32 bits without a sign */
        return (a == UPPER || a == LOWER) && bytes == 8 && i->n_types > 1 &&
                       (i->types[1] == WS_T_U32 || i->types[1] == WS_T_B32)
                   ? a
                   : NOTHING;
    case WS_OP_SHL:
        return a == UPPER && bytes == 8 && is_imm(&o[2], 32) ? UPPER_SHIFTED : NOTHING;
    case WS_OP_OR:
        return (a == UPPER_SHIFTED && b == LOWER) || (a == LOWER && b == UPPER_SHIFTED) ? WHOLE
                                                                                        : NOTHING;
    case WS_OP_BFI:
        return a == UPPER && b == LOWER && bytes == 8 && i->n_operands == 5 && is_imm(&o[3], 32) &&
                       is_imm(&o[4], 32)
                   ? WHOLE
                   : NOTHING;
    case WS_OP_ADD:
        return a == WHOLE && bytes == 8 && o[2].kind == WS_OPD_IMM && o[2].imm >= 0 &&
                       o[2].imm < PAGE
                   ? INSIDE
                   : NOTHING;
    default:
        return NOTHING;
    }
}

int ws_fence_env(const struct ws_ptx_func *f, bool *ret)
{
    struct env e = {.f = f,
                    .def = ws_alloc_array((size_t)f->n_regs + 1, sizeof(*e.def)),
                    .part = ws_alloc_array((size_t)f->n_regs + 1, sizeof(*e.part))};
    bool any = false;
    int r = e.def && e.part ? 0 : ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < f->n_insns && !r; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        if (ws_ptx_writes_first(i))
            defines(&e, &i->operands[0], (int32_t)k);
        for (uint32_t c = 0; i->call && c < i->call->n_rets; c++)
            defines(&e, &i->call->rets[c], (int32_t)k);
        any |= i->op == WS_OP_MOV && i->n_operands > 1 && i->operands[1].kind == WS_OPD_SREG &&
               i->operands[1].sreg == WS_SR_ENVREG;
    }
    /* Parts only come to be, each from others: as many rounds as there are steps from halves to
     * INSIDE. */
    for (int round = 0; any && !r && round < 6; round++)
        for (uint32_t k = 0; k < f->n_insns; k++) {
            const struct ws_ptx_insn *i = &f->insns[k];
            if (i->n_operands < 2 || i->guard >= 0 || i->operands[0].kind != WS_OPD_REG ||
                i->operands[0].reg < 0 || e.def[i->operands[0].reg] != (int32_t)k + 1)
                continue;
            e.part[i->operands[0].reg] = (uint8_t)result(&e, i);
        }
    for (uint32_t k = 0; k < f->n_regs && !r; k++)
        ret[k] = e.part[k] == WHOLE || e.part[k] == INSIDE;
    free(e.def);
    free(e.part);
    return r;
}

bool ws_fence_env_access(const bool *env, const struct ws_fence_access *a)
{
    return env[a->reg] && a->offset >= 0 && a->offset < PAGE && a->bytes <= 16;
}

// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/dead.c - which results may be written for idle lanes too.
 *
 * A diverged warp must keep the registers of lanes that are elsewhere, so its micro-ops merge
 * their results with the old values. That costs about a quarter of the speed, mostly for nothing:
 * compilers emit many registers that are written and read within one straight run of instructions.
 * A lane that comes to such a run begins at its start and writes these registers again, so their
 * old values do not matter.
 * A run is a sequence of instructions between which a split never stops. It ends where a segment
 * ends, and before and after every instruction that may leave the core (barriers, warp-wide
 * operations that wait for lanes, calls, nanosleep), because another split may pass through the
 * same run meanwhile.
 * Invariant: a register is dead outside its run if all its occurrences are in one run, the first
 * one is an unguarded result, and that instruction does not read the register. */
#include <string.h>

#include "device/soft/decode/priv.h"

enum { NOWHERE = 0, LIVE = 0xffffffffu }; /* else: run + 1 */

/* Only what is known to run through, so that what is added to the interpreter later is on the safe
 * side. */
static bool may_stop(const struct ws_ptx_insn *i)
{
    switch ((enum ws_ptx_effect)ws_ptx_ops[i->op].effect) {
    case WS_EFFECT_ALU:
    case WS_EFFECT_READ:
    case WS_EFFECT_WRITE:
    case WS_EFFECT_ATOMIC:
    case WS_EFFECT_FENCE:
        return false;
    default:
        return true;
    }
}

struct liveness_scan {
    const struct ws_ptx_func *f;
    uint32_t *home; /* by register */
    uint32_t run;
};

static void seen(struct liveness_scan *s, int32_t reg)
{
    if (reg >= 0 && (uint32_t)reg < s->f->n_regs && s->home[reg] != s->run)
        s->home[reg] = LIVE; /* also one that is read before it was written here */
}

static void see(struct liveness_scan *s, const struct ws_ptx_operand *o)
{
    seen(s, o->reg);
    for (unsigned k = 0; k < o->n; k++)
        see(s, &o->v[k]);
}

/* A register's first occurrence is a result. */
static void born(struct liveness_scan *s, const struct ws_ptx_operand *o)
{
    if (o->kind == WS_OPD_REG && o->reg >= 0 && (uint32_t)o->reg < s->f->n_regs &&
        s->home[o->reg] == NOWHERE)
        s->home[o->reg] = s->run;
    for (unsigned k = 0; o->kind == WS_OPD_VEC && k < o->n; k++)
        born(s, &o->v[k]);
}

static bool is_result(const struct ws_ptx_insn *i)
{
    return i->n_operands > 0 &&
           (i->operands[0].kind == WS_OPD_REG || i->operands[0].kind == WS_OPD_VEC);
}

static bool all_dead(const struct liveness_scan *s, const struct ws_ptx_operand *o)
{
    if (o->kind == WS_OPD_SINK)
        return true;
    if (o->kind == WS_OPD_REG)
        return o->reg >= 0 && (uint32_t)o->reg < s->f->n_regs && s->home[o->reg] != LIVE;
    for (unsigned k = 0; k < o->n; k++)
        if (!all_dead(s, &o->v[k]))
            return false;
    return o->kind == WS_OPD_VEC;
}

const uint8_t *ws_dec_find_dead(struct ws_dec *d, const struct ws_ptx_func *f,
                                const uint8_t *leader)
{
    struct liveness_scan s = {
        .f = f, .home = ws_arena_array(&d->tmp, f->n_regs + 1, sizeof(*s.home)), .run = 1};
    uint8_t *whole = ws_arena_array(&d->tmp, f->n_insns + 1, 1);
    if (!s.home || !whole) {
        d->oom = true;
        return NULL;
    }
    for (uint32_t k = 0; k < f->n_params + f->n_rets + f->n_vars; k++) {
        const struct ws_ptx_var *v = ws_ptx_localvar(f, k);
        if (v->reg >= 0 && (uint32_t)v->reg < f->n_regs) /* the caller's */
            s.home[v->reg] = LIVE;
    }
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        bool result = is_result(i) && i->guard < 0, stops = may_stop(i);
        s.run += leader[k] || stops;
        if (i->guard >= 0)
            seen(&s, i->guard);
        for (unsigned n = result; n < i->n_operands; n++)
            see(&s, &i->operands[n]);
        for (uint32_t n = 0; i->call && n < i->call->n_args; n++)
            see(&s, &i->call->args[n]);
        for (uint32_t n = 0; i->call && n < i->call->n_rets; n++)
            see(&s, &i->call->rets[n]);
        if (i->call)
            see(&s, &i->call->callee);
        if (result) {
            born(&s, &i->operands[0]);
            see(&s, &i->operands[0]);
        }
        s.run += stops;
    }
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        whole[k] = is_result(i) && i->guard < 0 && !may_stop(i) && all_dead(&s, &i->operands[0]);
    }
    return whole;
}

// SPDX-License-Identifier: Apache-2.0
/* The rewriting itself: a prologue that gives the block its number, then the old body in which %ctaid and %nctaid are registers.
 *
 * ticket: thread 0 looks at the SM mask and the flag, takes a ticket and makes a block's numbers of it; a slot in shared memory and a
 * barrier give them to the other threads; a ticket past the end ends the block. A block that saw the flag takes none, so min(ticket, total) is the number of blocks
 * done once the grid has ended: nothing else needs saving. Tickets grow, so no block waits for one that wasn't begun.
 *
 * persistent: the same at the head of a loop, to which ret and exit go. Two slots are used in turn: with one, a fast thread 0 could
 * overwrite the number before a slow warp has read it. The barrier at the head also keeps the next block's use of shared memory
 * behind this one's.
 *
 * Block numbers are given in the order in which hardware deals blocks, x fastest. Divisions only for the dimensions that the
 * kernel reads. */
#include <stddef.h>

#include "base/error.h"
#include "ptx/edit.h"
#include "ptx/pass.h"

#define R(r) ws_opd_reg(r)
#define I(v) ws_opd_imm(v)

struct rewrite {
    struct ws_ptx_edit e;
    enum ws_ptx_rewrite kind;
    bool reads_id[3], reads_n[3]; /* %ctaid.x…, %nctaid.x… */
    int32_t id[3], n[3];          /* registers for them */
    int32_t head, out;            /* labels */
    int32_t slot, parity;         /* sym, register */
    int32_t first;                /* register: the slot's first word */
    bool flat;                    /* blocks are one-dimensional */
};

uint64_t ws_ptx_ctl_offset(const struct ws_ptx_func *f)
{
    return WS_ALIGN_UP(f->param_bytes, 8);
}

/* A number that only thread 0 of the block has as 0. Who never looks at %tid.y and .z is rewritten for one-dimensional blocks only. */
static int32_t thread_number_bits(struct rewrite *w)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t all = ws_ptx_edit_reg(e, WS_T_U32);
    WS_EDIT(e, MOV, U32, R(all), ws_opd_sreg(WS_SR_TID, 0));
    for (uint8_t d = 1; d < 3 && !w->flat; d++) {
        int32_t t = ws_ptx_edit_reg(e, WS_T_U32);
        WS_EDIT(e, MOV, U32, R(t), ws_opd_sreg(WS_SR_TID, d));
        WS_EDIT(e, OR, B32, R(all), R(all), R(t));
    }
    return all;
}

/* Goes to @out unless this SM is in the mask, or there is none. */
static void check_sm(struct ws_ptx_edit *e, int32_t out)
{
    int32_t any = ws_ptx_edit_label(e),
            mask = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_ctl, mask));
    ws_ptx_edit_branch_if(e, ws_ptx_edit_compare(e, WS_CMP_EQ, WS_T_U64, R(mask), I(0)), false,
                          any);
    int32_t sm = ws_ptx_edit_reg(e, WS_T_U32), word = ws_ptx_edit_reg(e, WS_T_U32),
            at = ws_ptx_edit_reg(e, WS_T_U64);
    WS_EDIT(e, MOV, U32, R(sm), ws_opd_sreg(WS_SR_SMID, 0));
    WS_EDIT(e, SHR, U32, R(word), R(sm), I(5));
    WS_EDIT(e, MUL, U32, R(at), R(word), I(4))->sub = WS_SUB_WIDE;
    WS_EDIT(e, ADD, S64, R(at), R(at), R(mask));
    struct ws_ptx_insn *i = WS_EDIT(e, LD, U32, R(word), ws_opd_at(at, 0));
    i->space = WS_SP_GLOBAL;
    i->sem = WS_SEM_VOLATILE;
    WS_EDIT(e, AND, B32, R(sm), R(sm), I(31));
    WS_EDIT(e, SHR, U32, R(word), R(word), R(sm));
    WS_EDIT(e, AND, B32, R(word), R(word), I(1));
    ws_ptx_edit_branch_if(e, ws_ptx_edit_compare(e, WS_CMP_EQ, WS_T_U32, R(word), I(0)), false,
                          out);
    ws_ptx_edit_place(e, any);
}

/* What the slot holds of a block, as an operand: %ctaid.x (or, where nobody reads that, the number), y, z; x is -1 for no block. */
static struct ws_ptx_operand slot_words(struct rewrite *w, struct ws_ptx_operand *elements)
{
    static const uint8_t words[] = {1, 2, 4, 4}; /* by whether y, whether z is read */
    uint8_t n = words[w->reads_id[1] + 2 * w->reads_id[2]];
    for (uint8_t k = 0; k < n; k++)
        elements[k] = R(k == 0                    ? w->first
                        : k < 3 && w->reads_id[k] ? w->id[k]
                                                  : ws_ptx_edit_reg(&w->e, WS_T_U32));
    if (n == 1)
        return elements[0];
    return (struct ws_ptx_operand){
        .kind = WS_OPD_VEC, .reg = -1, .sym = -1, .label = -1, .n = n, .v = elements};
}

/* ld or st of the slot. */
static void access_slot(struct rewrite *w, enum ws_ptx_op op, struct ws_ptx_operand slot)
{
    struct ws_ptx_operand *elements = ws_arena_array(&w->e.m->arena, 4, sizeof(*elements));
    if (!elements) {
        w->e.failed = true;
        return;
    }
    struct ws_ptx_operand words = slot_words(w, elements);
    struct ws_ptx_operand o[] = {op == WS_OP_LD ? words : slot, op == WS_OP_LD ? slot : words};
    struct ws_ptx_insn *i = ws_ptx_edit_add(&w->e, op, WS_T_U32, 2, o);
    i->space = WS_SP_SHARED;
    i->vec = words.kind == WS_OPD_VEC ? (uint8_t)words.n : 0;
}

/* Thread 0 puts the next block, or that there is none, into the slot. */
static void take_ticket(struct rewrite *w, struct ws_ptx_operand slot)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t others = ws_ptx_edit_label(e), none = ws_ptx_edit_label(e);
    ws_ptx_edit_branch_if(
        e, ws_ptx_edit_compare(e, WS_CMP_NE, WS_T_U32, R(thread_number_bits(w)), I(0)), false,
        others);
    WS_EDIT(e, MOV, U32, R(w->first), I(-1));
    check_sm(e, none);
    int32_t flag = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_ctl, flag)),
            up = ws_ptx_edit_reg(e, WS_T_U32);
    struct ws_ptx_insn *i = WS_EDIT(e, LD, U32, R(up), ws_opd_at(flag, 0));
    i->space = WS_SP_GLOBAL;
    i->sem = WS_SEM_VOLATILE;
    ws_ptx_edit_branch_if(e, ws_ptx_edit_compare(e, WS_CMP_NE, WS_T_U32, R(up), I(0)), false, none);
    int32_t ticket = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_ctl, ticket)),
            total = ws_ptx_edit_load(e, WS_T_U32, offsetof(struct ws_ptx_ctl, total)),
            t = ws_ptx_edit_reg(e, WS_T_U32);
    i = WS_EDIT(e, ATOM, U32, R(t), ws_opd_at(ticket, 0), I(1));
    i->space = WS_SP_GLOBAL;
    i->sub = WS_SUB_ADD;
    ws_ptx_edit_branch_if(e, ws_ptx_edit_compare(e, WS_CMP_GE, WS_T_U32, R(t), R(total)), false,
                          none);
    ws_ptx_edit_split(e, t, offsetof(struct ws_ptx_ctl, grid), w->reads_id, w->id);
    if (!w->reads_id[0])
        WS_EDIT(e, MOV, U32, R(w->first), R(t));
    ws_ptx_edit_place(e, none);
    access_slot(w, WS_OP_ST, slot);
    ws_ptx_edit_place(e, others);
}

/* Gives the block its number, or ends it where there is none for it. */
static void get_number(struct rewrite *w)
{
    struct ws_ptx_edit *e = &w->e;
    for (int d = 0; d < 3; d++)
        if (w->reads_id[d])
            w->id[d] = ws_ptx_edit_reg(e, WS_T_U32);
    if (w->kind == WS_REWRITE_SLICE) {
        int32_t number = ws_ptx_edit_reg(e, WS_T_U32),
                offset = ws_ptx_edit_load(e, WS_T_U32, offsetof(struct ws_ptx_ctl, offset));
        WS_EDIT(e, MOV, U32, R(number), ws_opd_sreg(WS_SR_CTAID, 0));
        WS_EDIT(e, ADD, U32, R(number), R(number), R(offset));
        ws_ptx_edit_split(e, number, offsetof(struct ws_ptx_ctl, grid), w->reads_id, w->id);
        return;
    }
    bool loop = w->kind == WS_REWRITE_PERSISTENT;
    int64_t bytes = w->reads_id[1] || w->reads_id[2] ? 16 : 4;
    w->first = w->reads_id[0] ? w->id[0] : ws_ptx_edit_reg(e, WS_T_U32);
    w->slot = ws_ptx_edit_shared(e, (uint64_t)bytes * (loop ? 2 : 1), (uint32_t)bytes * 2);
    if (loop) {
        w->parity = ws_ptx_edit_reg(e, WS_T_U32);
        WS_EDIT(e, MOV, U32, R(w->parity), ws_opd_sym(w->slot));
        ws_ptx_edit_place(e, w->head);
    }
    struct ws_ptx_operand slot = loop ? ws_opd_at(w->parity, 0) : ws_opd_at_sym(w->slot, 0);
    take_ticket(w, slot);
    WS_EDIT(e, BARRIER_SYNC, NONE, I(0));
    access_slot(w, WS_OP_LD, slot);
    if (loop) /* the two slots lie at a multiple of both: their addresses differ in one bit */
        WS_EDIT(e, XOR, B32, R(w->parity), R(w->parity), I(bytes));
    int32_t none = ws_ptx_edit_compare(e, WS_CMP_LT, WS_T_S32, R(w->first), I(0));
    if (loop)
        ws_ptx_edit_branch_if(e, none, false, w->out);
    else
        ws_ptx_edit_guard(ws_ptx_edit_add(e, WS_OP_RET, WS_T_NONE, 0, NULL), none, false);
}

static void find_reads(struct rewrite *w, const struct ws_ptx_func *f)
{
    for (uint32_t k = 0; k < f->n_insns; k++)
        for (uint8_t n = 0; n < f->insns[k].n_operands; n++) {
            const struct ws_ptx_operand *o = &f->insns[k].operands[n];
            if (o->kind == WS_OPD_SREG && o->sreg == WS_SR_CTAID)
                w->reads_id[o->sreg_dim] = true;
            if (o->kind == WS_OPD_SREG && o->sreg == WS_SR_NCTAID)
                w->reads_n[o->sreg_dim] = true;
        }
}

/* The old body, with registers for the special registers, and the loop's head for its ends. */
static void copy_body(struct rewrite *w, const struct ws_ptx_func *f)
{
    struct ws_ptx_edit *e = &w->e;
    bool loop = w->kind == WS_REWRITE_PERSISTENT, falls_off = true;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *old = &f->insns[k];
        bool ends = old->op == WS_OP_RET || old->op == WS_OP_EXIT;
        falls_off = !(ends && old->guard < 0) && !(old->op == WS_OP_BRA && old->guard < 0);
        if (loop && ends) {
            ws_ptx_edit_skip(e, k);
            struct ws_ptx_insn *i = WS_EDIT(e, BRA, NONE, ws_opd_label(w->head));
            i->guard = old->guard;
            i->guard_neg = old->guard_neg;
            continue;
        }
        struct ws_ptx_insn *i = ws_ptx_edit_copy(e, k);
        for (uint8_t n = 0; n < old->n_operands && i->operands; n++) {
            const struct ws_ptx_operand *o = &old->operands[n];
            if (o->kind == WS_OPD_SREG && o->sreg == WS_SR_CTAID)
                ws_ptx_edit_read(i, n, w->id[o->sreg_dim]);
            if (o->kind == WS_OPD_SREG && o->sreg == WS_SR_NCTAID)
                ws_ptx_edit_read(i, n, w->n[o->sreg_dim]);
        }
    }
    ws_ptx_edit_old_end(e);
    if (loop) {
        if (falls_off)
            WS_EDIT(e, BRA, NONE, ws_opd_label(w->head));
        ws_ptx_edit_place(e, w->out);
        ws_ptx_edit_add(e, WS_OP_RET, WS_T_NONE, 0, NULL);
    }
}

int ws_ptx_rewrite(struct ws_ptx_module *m, uint32_t func, enum ws_ptx_rewrite kind,
                   uint32_t *ret_func)
{
    static const char *const suffix[_WS_REWRITE_N] = {"", "$slice", "$ticket", "$persistent"};
    struct rewrite w = {.kind = kind};
    const struct ws_ptx_func *f = &m->funcs[func];
    bool shaped;
    int r = ws_ptx_reads_tid_yz(m, func, &shaped);
    if (r)
        return ws_forward(r);
    w.flat = !shaped;
    find_reads(&w, f);
    ws_ptx_edit_begin(&w.e, m, func, suffix[kind], sizeof(struct ws_ptx_ctl));
    if (kind == WS_REWRITE_PERSISTENT) {
        w.head = ws_ptx_edit_label(&w.e);
        w.out = ws_ptx_edit_label(&w.e);
    }
    /* What does not change from block to block stands before the loop. */
    for (uint8_t d = 0; d < 3; d++)
        if (w.reads_n[d])
            w.n[d] =
                ws_ptx_edit_load(&w.e, WS_T_U32, offsetof(struct ws_ptx_ctl, grid) + 4 * (size_t)d);
    get_number(&w);
    copy_body(&w, f);
    return ws_forward(ws_ptx_edit_end(&w.e, ret_func));
}

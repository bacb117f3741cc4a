// SPDX-License-Identifier: Apache-2.0
/* Several kernels, one launch.
 *
 * The new kernel finds which member its block is of, from the block's number and the shares of a round of dealing: number / round says
 * which round, the rest falls into one member's part of it. Interleaving matters: blocks begin in the order of their numbers, and members
 * dealt one behind the other would run one behind the other. Then it goes to that member's body, in which %ctaid, %nctaid, %tid and
 * %ntid are registers: the block is one-dimensional, so a member that reads %tid.y or .z gets them from the thread's number by its own
 * block's shape; lanes stay as they were, since warps are made of consecutive numbers in either case.
 *
 * Static shared memory of all members is one array, each member's variables being places in it: a block is of one member. That of the
 * module (not of a kernel) stays as it is. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/edit.h"
#include "ptx/pass.h"

#define R(r) ws_opd_reg(r)
#define I(v) ws_opd_imm(v)

enum { PARAM_BYTES_MAX = 4352 };
enum { CTAID, NCTAID, TID, NTID, _N_OWN };
static const enum ws_ptx_sreg own_sregs[_N_OWN] = {WS_SR_CTAID, WS_SR_NCTAID, WS_SR_TID,
                                                   WS_SR_NTID};

struct fuse {
    struct ws_ptx_edit e;
    uint32_t n;
    int32_t shared; /* sym of the array; -1: none */
    uint64_t shared_bytes;
    uint32_t shared_align;
    int32_t number, thread; /* of the block in its member; of the thread in its block */
    /* of the member in hand */
    uint32_t member;
    bool reads[_N_OWN][3];
    int32_t reg[_N_OWN][3];
};

static int own_sreg(const struct ws_ptx_operand *o)
{
    for (int k = 0; k < _N_OWN && o->kind == WS_OPD_SREG; k++)
        if (o->sreg == own_sregs[k])
            return k;
    return -1;
}

/* ---- whether it may be a member ---- */
static int insn_refused(const struct ws_ptx_insn *i, bool in_entry, char *text, size_t text_bytes)
{
    for (uint8_t k = 0; k < i->n_operands; k++) {
        const struct ws_ptx_operand *o = &i->operands[k];
        if (o->kind != WS_OPD_SREG)
            continue;
        if (o->sreg == WS_SR_WARPID || o->sreg == WS_SR_NWARPID)
            return ws_ptx_refuse(text, text_bytes, i->line, "%s is another one in a fused block",
                                 ws_ptx_sreg_name((enum ws_ptx_sreg)o->sreg));
        if (own_sreg(o) < 0)
            continue;
        if (!in_entry)
            return ws_ptx_refuse(text, text_bytes, i->line, "a function reads %s",
                                 ws_ptx_sreg_name((enum ws_ptx_sreg)o->sreg));
        if ((i->op != WS_OP_MOV && i->op != WS_OP_CVT) || i->vec > 1 || o->sreg_dim > 2)
            return ws_ptx_refuse(text, text_bytes, i->line, "%s is read by %s",
                                 ws_ptx_sreg_name((enum ws_ptx_sreg)o->sreg),
                                 ws_ptx_op_name((enum ws_ptx_op)i->op));
    }
    return 0;
}

int ws_ptx_fuse_refused(const struct ws_ptx_module *m, uint32_t func, char *ret_text,
                        size_t text_bytes)
{
    const struct ws_ptx_func *f = &m->funcs[func];
    bool flat;
    /* What forbids any renumbering of blocks, and the loops that wait for other blocks: of other members they would wait too. */
    int r = ws_ptx_rewrite_refused(m, func, WS_REWRITE_SLICE, &flat, ret_text, text_bytes);
    for (uint32_t k = 0; !r && k < f->n_insns; k++)
        r = insn_refused(&f->insns[k], true, ret_text, text_bytes);
    bool *reached = r ? NULL : ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*reached));
    if (!r && !reached)
        return ws_raise(-ENOMEM);
    if (!r)
        ws_ptx_mark_reached(m, f, reached);
    for (uint32_t k = 0; !r && k < m->n_funcs; k++)
        for (uint32_t i = 0; !r && reached[k] && i < m->funcs[k].n_insns; i++)
            r = insn_refused(&m->funcs[k].insns[i], false, ret_text, text_bytes);
    free(reached);
    return r;
}

/* ---- dealing ---- */
uint32_t ws_ptx_fuse_deal(struct ws_ptx_fuse *f, uint32_t n_members)
{
    uint32_t least = UINT32_MAX;
    uint64_t rounds = 0;
    for (uint32_t k = 0; k < n_members; k++)
        if (f->member[k].total)
            least = WS_MIN(least, f->member[k].total);
    f->round = 0;
    for (uint32_t k = 0; k < n_members; k++) {
        struct ws_ptx_fuse_member *w = &f->member[k];
        /* To the nearest whole multiple of the smallest; rounds go on until the slowest is through. */
        w->share = w->total ? (uint32_t)(((uint64_t)w->total + least / 2) / least) : 0;
        f->round += w->share;
        if (w->share)
            rounds = WS_MAX(rounds, (w->total + (uint64_t)w->share - 1) / w->share);
    }
    return rounds * f->round <= INT32_MAX ? (uint32_t)(rounds * f->round) : 0;
}

/* ---- writing ---- */
static size_t of_member(uint32_t k, size_t field)
{
    return offsetof(struct ws_ptx_fuse, member) + k * sizeof(struct ws_ptx_fuse_member) + field;
}
#define MEMBER(k, field) of_member((k), offsetof(struct ws_ptx_fuse_member, field))

/* Which member the block is of: goes to its label with w->number set, or ends the block. */
static void write_dealing(struct fuse *w, const int32_t *labels)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t block = ws_ptx_edit_reg(e, WS_T_U32), rounds = ws_ptx_edit_reg(e, WS_T_U32),
            rest = ws_ptx_edit_reg(e, WS_T_U32),
            round = ws_ptx_edit_load(e, WS_T_U32, offsetof(struct ws_ptx_fuse, round));
    WS_EDIT(e, MOV, U32, R(w->thread), ws_opd_sreg(WS_SR_TID, 0));
    WS_EDIT(e, MOV, U32, R(block), ws_opd_sreg(WS_SR_CTAID, 0));
    WS_EDIT(e, DIV, U32, R(rounds), R(block), R(round));
    WS_EDIT(e, MUL, U32, R(rest), R(rounds), R(round))->sub = WS_SUB_LO;
    WS_EDIT(e, SUB, U32, R(rest), R(block), R(rest));
    for (uint32_t k = 0; k < w->n; k++) {
        int32_t share = ws_ptx_edit_load(e, WS_T_U32, MEMBER(k, share)),
                next = ws_ptx_edit_label(e);
        ws_ptx_edit_branch_if(e, ws_ptx_edit_compare(e, WS_CMP_GE, WS_T_U32, R(rest), R(share)),
                              false, next);
        WS_EDIT(e, MAD, U32, R(w->number), R(rounds), R(share), R(rest))->sub = WS_SUB_LO;
        WS_EDIT(e, BRA, NONE, ws_opd_label(labels[k]))->flags = WS_F_UNI;
        ws_ptx_edit_place(e, next);
        WS_EDIT(e, SUB, U32, R(rest), R(rest), R(share));
    }
    ws_ptx_edit_add(e, WS_OP_EXIT, WS_T_NONE, 0, NULL);
}

static void find_reads(struct fuse *w)
{
    memset(w->reads, 0, sizeof(w->reads));
    for (uint32_t k = 0; k < w->e.old->n_insns; k++)
        for (uint8_t n = 0; n < w->e.old->insns[k].n_operands; n++) {
            const struct ws_ptx_operand *o = &w->e.old->insns[k].operands[n];
            int which = own_sreg(o);
            if (which >= 0)
                w->reads[which][o->sreg_dim] = true;
        }
}

static void exit_if(struct ws_ptx_edit *e, int32_t pred)
{
    ws_ptx_edit_guard(ws_ptx_edit_add(e, WS_OP_EXIT, WS_T_NONE, 0, NULL), pred, false);
}

/* Registers for what @which is read of. */
static void own_regs(struct fuse *w, int which)
{
    for (int d = 0; d < 3; d++)
        if (w->reads[which][d])
            w->reg[which][d] = ws_ptx_edit_reg(&w->e, WS_T_U32);
}

/* Ends what isn't of the member, and gives it its numbers. */
static void write_numbers(struct fuse *w)
{
    struct ws_ptx_edit *e = &w->e;
    uint32_t k = w->member;
    int32_t threads = ws_ptx_edit_reg(e, WS_T_U32),
            total = ws_ptx_edit_load(e, WS_T_U32, MEMBER(k, total));
    exit_if(e, ws_ptx_edit_compare(e, WS_CMP_GE, WS_T_U32, R(w->number), R(total)));
    for (size_t d = 0; d < 3; d++) {
        w->reg[NCTAID][d] = ws_ptx_edit_load(e, WS_T_U32, MEMBER(k, grid) + 4 * d);
        w->reg[NTID][d] = ws_ptx_edit_load(e, WS_T_U32, MEMBER(k, block) + 4 * d);
    }
    WS_EDIT(e, MUL, U32, R(threads), R(w->reg[NTID][0]), R(w->reg[NTID][1]))->sub = WS_SUB_LO;
    WS_EDIT(e, MUL, U32, R(threads), R(threads), R(w->reg[NTID][2]))->sub = WS_SUB_LO;
    exit_if(e, ws_ptx_edit_compare(e, WS_CMP_GE, WS_T_U32, R(w->thread), R(threads)));
    own_regs(w, CTAID);
    own_regs(w, TID);
    ws_ptx_edit_split(e, w->number, MEMBER(k, grid), w->reads[CTAID], w->reg[CTAID]);
    ws_ptx_edit_split(e, w->thread, MEMBER(k, block), w->reads[TID], w->reg[TID]);
}

/* A place in the array for each static shared variable of the member in hand: its offset, by the number of the local variable. */
static uint64_t *place_shared(struct fuse *w)
{
    const struct ws_ptx_func *f = w->e.old;
    uint64_t *at = ws_alloc_array((size_t)f->n_vars + 1, sizeof(*at)), end = 0;
    for (uint32_t k = 0; at && k < f->n_vars; k++) {
        if (f->vars[k].space != WS_SP_SHARED || !f->vars[k].size_bytes)
            continue;
        end = WS_ALIGN_UP(end, (uint64_t)WS_MAX(f->vars[k].align, 1u));
        at[k] = end;
        end += f->vars[k].size_bytes;
        w->shared_align = WS_MAX(w->shared_align, f->vars[k].align);
    }
    w->shared_bytes = WS_MAX(w->shared_bytes, end);
    w->e.failed |= !at;
    return at;
}

/* An operand of a copy: @was in the old function. */
static void adapt(struct fuse *w, const struct ws_ptx_operand *was, struct ws_ptx_operand *o,
                  const uint64_t *places)
{
    const struct ws_ptx_func *f = w->e.old;
    if (was->sym >= 0 && WS_PTX_SYM_KIND(was->sym) == WS_PTX_SYM_LOCALVAR && w->shared >= 0) {
        uint32_t i = (uint32_t)WS_PTX_SYM_INDEX(was->sym);
        if (i >= f->n_params && f->vars[i - f->n_params].space == WS_SP_SHARED &&
            f->vars[i - f->n_params].size_bytes) {
            o->sym = w->shared;
            o->imm += (int64_t)places[i - f->n_params];
        }
    }
    for (uint16_t k = 0; k < was->n && o->v; k++)
        adapt(w, &was->v[k], &o->v[k], places);
}

static void write_member(struct fuse *w, const uint64_t *places)
{
    struct ws_ptx_edit *e = &w->e;
    const struct ws_ptx_func *f = e->old;
    find_reads(w);
    write_numbers(w);
    for (uint32_t k = 0; k < f->n_insns && !e->failed; k++) {
        struct ws_ptx_insn *i = ws_ptx_edit_copy(e, k);
        for (uint8_t n = 0; n < i->n_operands && i->operands; n++) {
            const struct ws_ptx_operand *was = &f->insns[k].operands[n];
            adapt(w, was, &i->operands[n], places);
            if (own_sreg(was) >= 0)
                ws_ptx_edit_read(i, n, w->reg[own_sreg(was)][was->sreg_dim]);
        }
    }
    ws_ptx_edit_old_end(e);
    ws_ptx_edit_add(e, WS_OP_EXIT, WS_T_NONE, 0, NULL);
}

int ws_ptx_fuse(struct ws_ptx_module *m, const uint32_t *funcs, uint32_t n, const char *name,
                uint32_t *ret_func, uint64_t *ret_param)
{
    struct fuse w = {.n = n, .shared = -1, .shared_align = 1};
    uint64_t *places[WS_FUSE_MAX] = {NULL};
    int32_t labels[WS_FUSE_MAX];
    char *copy = ws_arena_strndup(&m->arena, name, strlen(name));
    if (!copy)
        return ws_raise(-ENOMEM);
    struct ws_ptx_edit *e = &w.e;
    uint64_t bytes = sizeof(struct ws_ptx_fuse) + n * sizeof(struct ws_ptx_fuse_member);
    ws_ptx_edit_begin_all(e, m, funcs, n, copy, bytes, true);
    bool too_many = !e->failed && e->f.param_bytes > PARAM_BYTES_MAX;
    for (uint32_t k = 0; k < n && !e->failed; k++) {
        ws_ptx_edit_select(e, k);
        places[k] = place_shared(&w);
        labels[k] = ws_ptx_edit_label(e);
        ret_param[k] = e->from->param_offset;
    }
    w.number = ws_ptx_edit_reg(e, WS_T_U32);
    w.thread = ws_ptx_edit_reg(e, WS_T_U32);
    if (!e->failed && w.shared_bytes)
        w.shared = ws_ptx_edit_shared(e, w.shared_bytes, w.shared_align);
    if (!e->failed)
        write_dealing(&w, labels);
    for (uint32_t k = 0; k < n && !e->failed; k++) {
        w.member = k;
        ws_ptx_edit_select(e, k);
        ws_ptx_edit_place(e, labels[k]);
        write_member(&w, places[k]);
    }
    for (uint32_t k = 0; k < n; k++)
        free(places[k]);
    e->failed |= too_many;
    int r = ws_ptx_edit_end(e, ret_func);
    if (r && too_many)
        return WS_PTX_E_UNSUPPORTED;
    return ws_forward(r);
}

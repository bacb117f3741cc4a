// SPDX-License-Identifier: Apache-2.0
/* Makes one kernel of several.
 *
 * The grid of the launch has two dimensions: x is the place in a round of dealing, y is the round.
 * The kernel finds by binary search which member its block belongs to, and goes to that member's
 * body, in which registers and parameters stand in for %ctaid, %nctaid, %tid and %ntid. Members
 * are interleaved, because blocks begin in the order of their numbers, x fastest: members that
 * were dealt one behind the other would also run one behind the other.
 *
 * Where the members' blocks may differ in shape, the block is one-dimensional. Threads beyond the
 * member's block end at once, and a member that reads %tid.y or %tid.z gets them computed from the
 * thread's number. Lanes stay as they were, since warps consist of consecutive numbers in either
 * case. Where all blocks have one shape, none of this is needed.
 *
 * The static shared memory of all members is one array, in which each member's variables have
 * their places, because a block belongs to one member. The module's own shared memory stays as it
 * is. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/edit.h"
#include "ptx/passes/pass.h"

#define R(r) ws_opd_reg(r)
#define I(v) ws_opd_imm(v)

enum { PARAM_BYTES_MAX = 4352 };

struct fuse {
    struct ws_ptx_edit e;
    uint32_t n;
    bool same_block; /* the members' blocks have one shape */
    int32_t shared;  /* sym of the array; -1: none */
    uint64_t shared_bytes;
    uint32_t shared_align;
    int32_t place, round, thread; /* registers: of the block, of the thread */
    struct ws_ptx_own own[WS_FUSE_MAX];
    uint64_t *vars_at[WS_FUSE_MAX]; /* of each member's shared variables in the array */
};

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
        if (ws_ptx_own_of(o) < 0)
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
    /* What forbids any renumbering of blocks, and the loops that wait for other blocks: of other
     * members they would wait too. */
    int r = ws_ptx_rewrite_refused(m, func, WS_REWRITE_SLICE, &flat, ret_text, text_bytes);
    for (uint32_t k = 0; !r && k < f->n_insns; k++)
        r = insn_refused(&f->insns[k], true, ret_text, text_bytes);
    bool *reached = r ? NULL : ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*reached));
    if (!r && !reached)
        return ws_raise(-ENOMEM);
    if (!r)
        r = ws_ptx_mark_reached(m, f, reached);
    for (uint32_t k = 0; !r && k < m->n_funcs; k++)
        for (uint32_t i = 0; !r && reached[k] && i < m->funcs[k].n_insns; i++)
            r = insn_refused(&m->funcs[k].insns[i], false, ret_text, text_bytes);
    free(reached);
    return r;
}

/* ---- writing ---- */
static size_t of_member(uint32_t k, size_t field)
{
    return offsetof(struct ws_ptx_fuse, member) + k * sizeof(struct ws_ptx_fuse_member) + field;
}
#define MEMBER(k, field) of_member((k), offsetof(struct ws_ptx_fuse_member, field))

/* Ends the block past the member's last one, and the threads that its blocks don't have. */
static void end_others(struct fuse *w, uint32_t k, int32_t number)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t p;
    if (w->same_block) {
        int32_t total = ws_ptx_edit_load(e, WS_T_U32, MEMBER(k, total));
        p = ws_ptx_edit_compare(e, WS_CMP_GE, WS_T_U32, R(number), R(total));
    } else {
        int32_t most[2];
        ws_ptx_edit_load2(e, WS_T_U32, MEMBER(k, total), most);
        p = ws_ptx_edit_compare(e, WS_CMP_GE, WS_T_U32, R(number), R(most[0]));
        struct ws_ptx_insn *i = WS_EDIT(e, SETP, U32, R(p), R(w->thread), R(most[1]), R(p));
        i->cmp = WS_CMP_GE;
        i->sub = WS_SUB_OR;
    }
    ws_ptx_edit_guard(ws_ptx_edit_add(e, WS_OP_EXIT, WS_T_NONE, 0, NULL), p, false);
}

/* Values for what is read of @which: parts of @number, by the shape in the parameters. */
static void write_split(struct fuse *w, struct ws_ptx_own *own, enum ws_ptx_own_which which,
                        int32_t number, size_t shape)
{
    bool reads[3];
    int32_t regs[3];
    for (unsigned d = 0; d < 3; d++) {
        reads[d] = own->of[which][d].read;
        regs[d] = reads[d] ? ws_ptx_own_reg(own, &w->e, which, d) : -1;
    }
    ws_ptx_edit_split(&w->e, number, shape, reads, regs);
}

static bool reads_x_alone(const struct ws_ptx_own *own, enum ws_ptx_own_which which)
{
    return own->of[which][0].read && !own->of[which][1].read && !own->of[which][2].read;
}

/* Gives member @k's threads their numbers, or ends them. */
static void write_numbers(struct fuse *w, uint32_t k, struct ws_ptx_own *own)
{
    struct ws_ptx_edit *e = &w->e;
    bool flat = reads_x_alone(own, WS_OWN_CTAID);
    int32_t number = flat ? ws_ptx_own_reg(own, e, WS_OWN_CTAID, 0) : ws_ptx_edit_reg(e, WS_T_U32),
            place = w->place, dealt[2];
    ws_ptx_edit_load2(e, WS_T_U32, MEMBER(k, share), dealt);
    if (k) {
        place = ws_ptx_edit_reg(e, WS_T_U32);
        WS_EDIT(e, SUB, U32, R(place), R(w->place), R(dealt[1]));
    }
    WS_EDIT(e, MAD, U32, R(number), R(w->round), R(dealt[0]), R(place))->sub = WS_SUB_LO;
    end_others(w, k, number);
    if (!flat)
        write_split(w, own, WS_OWN_CTAID, number, MEMBER(k, grid));
    ws_ptx_own_load(own, WS_OWN_NCTAID, MEMBER(k, grid.n));
    if (w->same_block)
        return;
    ws_ptx_own_load(own, WS_OWN_NTID, MEMBER(k, block.n));
    if (!reads_x_alone(own, WS_OWN_TID)) /* else it is what it was */
        write_split(w, own, WS_OWN_TID, w->thread, MEMBER(k, block));
}

/* A place in the array for each static shared variable of the member in hand: its offset, by the
 * number of the local variable. */
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

/* Names of shared variables of the function in hand become places in the array: @was is the operand
 * in the old function. */
static void adapt(const struct fuse *w, const struct ws_ptx_operand *was, struct ws_ptx_operand *o,
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

static void write_member(struct fuse *w, uint32_t k)
{
    struct ws_ptx_edit *e = &w->e;
    struct ws_ptx_own *own = &w->own[k];
    ws_ptx_edit_select(e, k);
    ws_ptx_own_find(own, e);
    write_numbers(w, k, own);
    for (uint32_t n = 0; n < e->old->n_insns && !e->failed; n++) {
        const struct ws_ptx_insn *old = &e->old->insns[n];
        struct ws_ptx_insn *i = ws_ptx_own_copy(own, e, n);
        for (uint8_t o = 0; i && i->operands && o < i->n_operands; o++)
            adapt(w, &old->operands[o], &i->operands[o], w->vars_at[k]);
    }
    ws_ptx_edit_old_end(e);
    if (ws_ptx_falls_off(e->old)) /* not into the next member */
        ws_ptx_edit_add(e, WS_OP_EXIT, WS_T_NONE, 0, NULL);
}

/* Members @from…@to, of one of which the block is. The deeper, the fewer: at most five comparisons
 * for 32. */
static void write_members(struct fuse *w, uint32_t from, uint32_t to)
{
    struct ws_ptx_edit *e = &w->e;
    if (to - from == 1) {
        write_member(w, from);
        return;
    }
    uint32_t middle = (from + to) / 2;
    int32_t upper = ws_ptx_edit_label(e),
            first = ws_ptx_edit_load(e, WS_T_U32, MEMBER(middle, first));
    ws_ptx_edit_branch_if(e, ws_ptx_edit_compare(e, WS_CMP_GE, WS_T_U32, R(w->place), R(first)),
                          false, upper);
    write_members(w, from, middle);
    ws_ptx_edit_place(e, upper);
    write_members(w, middle, to);
}

static int32_t read_sreg(struct ws_ptx_edit *e, enum ws_ptx_sreg s, uint8_t d)
{
    int32_t r = ws_ptx_edit_reg(e, WS_T_U32);
    WS_EDIT(e, MOV, U32, R(r), ws_opd_sreg(s, d));
    return r;
}

static void write_all(struct fuse *w)
{
    struct ws_ptx_edit *e = &w->e;
    for (uint32_t k = 0; k < w->n && !e->failed; k++) {
        ws_ptx_edit_select(e, k);
        w->vars_at[k] = place_shared(w);
    }
    if (e->failed)
        return;
    if (w->shared_bytes)
        w->shared = ws_ptx_edit_shared(e, w->shared_bytes, w->shared_align);
    w->place = read_sreg(e, WS_SR_CTAID, 0);
    w->round = read_sreg(e, WS_SR_CTAID, 1);
    w->thread = w->same_block ? -1 : read_sreg(e, WS_SR_TID, 0);
    write_members(w, 0, w->n);
}

/* Launch bounds that hold for all: none where one member has none. */
static void join_bounds(struct fuse *w)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < w->n; k++) {
        const struct ws_ptx_func *f = w->e.sources[k].f;
        const uint32_t *b = f->reqntid[0] ? f->reqntid : f->maxntid;
        if (!b[0])
            return;
        most = WS_MAX(most, (uint64_t)b[0] * WS_MAX(b[1], 1u) * WS_MAX(b[2], 1u));
    }
    w->e.f.maxntid[0] = (uint32_t)WS_MIN(most, UINT64_C(1024));
    w->e.f.maxntid[1] = w->e.f.maxntid[2] = 1;
}

static void describe(const struct fuse *w, struct ws_ptx_fused *ret)
{
    const struct ws_ptx_func *f = &w->e.f;
    *ret = (struct ws_ptx_fused){.n = w->n,
                                 .same_block = w->same_block,
                                 .param_bytes = f->param_bytes,
                                 .header = f->params[f->n_params - 1].param_offset,
                                 .shared_bytes = w->shared_bytes};
    for (uint32_t k = 0; k < w->n; k++) {
        const struct ws_ptx_source *from = &w->e.sources[k];
        ret->member[k].param = from->param_offset;
        ret->member[k].param_bytes = from->f->n_params ? from->f->param_bytes : 0;
        ret->member[k].flat_grid = reads_x_alone(&w->own[k], WS_OWN_CTAID);
        ret->member[k].flat_block = !w->same_block && reads_x_alone(&w->own[k], WS_OWN_TID);
    }
}

int ws_ptx_fuse_make(struct ws_ptx_module *m, const uint32_t *funcs, uint32_t n, bool same_block,
                     const char *name, struct ws_ptx_fused *ret)
{
    struct fuse w = {.n = n, .same_block = same_block, .shared = -1, .shared_align = 1};
    struct ws_ptx_fused made = {0};
    char *copy = ws_arena_strndup(&m->arena, name, strlen(name));
    if (!copy)
        return ws_raise(-ENOMEM);
    struct ws_ptx_edit *e = &w.e;
    uint64_t bytes = sizeof(struct ws_ptx_fuse) + n * sizeof(struct ws_ptx_fuse_member);
    ws_ptx_edit_begin_all(e, m, funcs, n, copy, bytes, true);
    bool too_many = !e->failed && e->f.param_bytes > PARAM_BYTES_MAX;
    if (!e->failed) {
        join_bounds(&w);
        write_all(&w);
        describe(&w, &made);
    }
    for (uint32_t k = 0; k < n; k++)
        free(w.vars_at[k]);
    e->failed |= too_many;
    int r = ws_ptx_edit_end(e, &made.func);
    if (r && too_many)
        return WS_PTX_E_UNSUPPORTED;
    if (!r)
        *ret = made;
    return ws_forward(r);
}

int ws_ptx_fuse(struct ws_ptx_module *m, const uint32_t *funcs, uint32_t n, const char *name,
                uint32_t *ret_func, uint64_t *ret_param)
{
    struct ws_ptx_fused made = {0};
    int r = ws_ptx_fuse_make(m, funcs, n, false, name, &made);
    if (r)
        return ws_forward(r);
    *ret_func = made.func;
    for (uint32_t k = 0; k < n; k++)
        ret_param[k] = made.member[k].param;
    return 0;
}

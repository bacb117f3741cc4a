// SPDX-License-Identifier: Apache-2.0
/* Writes the rewritten kernels: a prologue that gives the block its number, then the old body, in
 * which registers and parameters stand in for %ctaid and %nctaid.
 *
 * ticket: thread 0 looks at the SM mask and at the flag, takes a ticket, computes the block's
 * numbers from it and writes them to a slot in shared memory. All threads meet at a barrier, where
 * thread 0 also votes whether there is a block, and read the slot. A ticket past the end ends the
 * block. A block that saw the flag takes no ticket. So when the grid has ended, min(ticket, total)
 * is the number of blocks that were executed, and nothing else has to be saved. Tickets only grow,
 * so no block waits for one that has not begun.
 *
 * persistent: the same at the head of a loop; ret and exit go there. Two slots are used in turn,
 * because with one, a fast thread 0 could overwrite the number before a slow warp has read it. The
 * barrier at the head also keeps the next block's accesses to shared memory behind this block's.
 * If thread 0 has ended early (a fence ends a thread that leaves its client's memory), nobody
 * votes for a next block, and the rest of the block ends too.
 *
 * The other threads execute four instructions more in all (is this thread 0, branch, barrier,
 * end), or five for each block in the loop. Blocks get their numbers in the order in which
 * hardware deals them, x fastest. Only the dimensions that the kernel reads cost a division. */
#include <stddef.h>

#include "base/error.h"
#include "ptx/passes/edit.h"
#include "ptx/passes/pass.h"

#define R(r) ws_opd_reg(r)
#define I(v) ws_opd_imm(v)

struct rewrite {
    struct ws_ptx_edit e;
    struct ws_ptx_own own;
    enum ws_ptx_rewrite kind;
    bool reads[3];       /* %ctaid.x… */
    int32_t id[3];       /* registers for them */
    int32_t head, out;   /* labels */
    int32_t go;          /* predicate: I am thread 0, and there is a block */
    int32_t slot, place; /* sym; persistent: register, its address */
    bool flat;           /* blocks are one-dimensional */
    bool copies;         /* asynchronously, into shared memory */
};

uint64_t ws_ptx_ctl_offset(const struct ws_ptx_func *f)
{
    return WS_ALIGN_UP(f->param_bytes, 8);
}

static size_t shape(size_t field)
{
    return offsetof(struct ws_ptx_ctl, grid) + field;
}

static void get_tid(struct rewrite *w, unsigned d)
{
    int32_t r = ws_ptx_own_reg(&w->own, &w->e, WS_OWN_TID, d);
    WS_EDIT(&w->e, MOV, U32, R(r), ws_opd_sreg(WS_SR_TID, (uint8_t)d));
}

/* w->go: whether this is thread 0. Who never looks at %tid.y and .z is rewritten for
 * one-dimensional blocks only. */
static void find_first(struct rewrite *w)
{
    struct ws_ptx_edit *e = &w->e;
    for (unsigned d = 0; d < (w->flat ? 1 : 3); d++)
        get_tid(w, d);
    int32_t x = w->own.of[WS_OWN_TID][0].reg, y = w->own.of[WS_OWN_TID][1].reg,
            z = w->own.of[WS_OWN_TID][2].reg;
    if (!w->flat) {
        int32_t all = ws_ptx_edit_reg(e, WS_T_B32);
        WS_EDIT(e, OR, B32, R(all), R(x), R(y));
        WS_EDIT(e, OR, B32, R(all), R(all), R(z));
        x = all;
    }
    w->go = ws_ptx_edit_compare(e, WS_CMP_EQ, WS_T_U32, R(x), I(0));
}

static int32_t load_word(struct ws_ptx_edit *e, int32_t address)
{
    int32_t r = ws_ptx_edit_reg(e, WS_T_U32);
    struct ws_ptx_insn *i = WS_EDIT(e, LD, U32, R(r), ws_opd_at(address, 0));
    i->space = WS_SP_GLOBAL;
    i->sem = WS_SEM_VOLATILE;
    return r;
}

/* Goes to @no, w->go being false, unless @a @cmp @b. */
static void go_on_if(struct rewrite *w, enum ws_ptx_cmp cmp, struct ws_ptx_operand a,
                     struct ws_ptx_operand b, int32_t no)
{
    WS_EDIT(&w->e, SETP, U32, R(w->go), a, b)->cmp = (uint8_t)cmp;
    ws_ptx_edit_branch_if(&w->e, w->go, true, no);
}

/* Unless this SM is in the mask, or there is none. */
static void check_sm(struct rewrite *w, int32_t no)
{
    struct ws_ptx_edit *e = &w->e;
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
    word = load_word(e, at);
    WS_EDIT(e, AND, B32, R(sm), R(sm), I(31));
    WS_EDIT(e, SHR, U32, R(word), R(word), R(sm));
    WS_EDIT(e, AND, B32, R(word), R(word), I(1));
    go_on_if(w, WS_CMP_NE, R(word), I(0), no);
    ws_ptx_edit_place(e, any);
}

static uint32_t slot_words(const struct rewrite *w)
{
    static const uint8_t words[] = {0, 1, 2, 4};
    return words[w->reads[0] + w->reads[1] + w->reads[2]];
}

/* ld or st of the slot: the numbers that are read. */
static void access_slot(struct rewrite *w, enum ws_ptx_op op)
{
    uint32_t n = slot_words(w), k = 0;
    struct ws_ptx_operand *v = ws_arena_array(&w->e.m->arena, 4, sizeof(*v));
    if (!v || !n) {
        w->e.failed |= !v;
        return;
    }
    for (int d = 0; d < 3; d++)
        if (w->reads[d])
            v[k++] = R(w->id[d]);
    for (; k < n; k++)
        v[k] = R(op == WS_OP_ST ? w->id[0] : ws_ptx_edit_reg(&w->e, WS_T_U32));
    struct ws_ptx_operand words =
        n == 1
            ? v[0]
            : (struct ws_ptx_operand){
                  .kind = WS_OPD_VEC, .reg = -1, .sym = -1, .label = -1, .n = (uint16_t)n, .v = v};
    struct ws_ptx_operand slot =
        w->kind == WS_REWRITE_PERSISTENT ? ws_opd_at(w->place, 0) : ws_opd_at_sym(w->slot, 0);
    struct ws_ptx_operand o[] = {op == WS_OP_LD ? words : slot, op == WS_OP_LD ? slot : words};
    struct ws_ptx_insn *i = ws_ptx_edit_add(&w->e, op, WS_T_U32, 2, o);
    i->space = WS_SP_SHARED;
    i->vec = n > 1 ? (uint8_t)n : 0;
}

/* Thread 0 puts the next block into the slot; w->go: it did. */
static void take_ticket(struct rewrite *w)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t no = ws_ptx_edit_label(e);
    ws_ptx_edit_branch_if(e, w->go, true, no);
    check_sm(w, no);
    int32_t flag = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_ctl, flag));
    go_on_if(w, WS_CMP_EQ, R(load_word(e, flag)), I(0), no);
    int32_t ticket = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_ctl, ticket)),
            total = ws_ptx_edit_load(e, WS_T_U32, shape(offsetof(struct ws_ptx_shape, total))),
            t = ws_ptx_edit_reg(e, WS_T_U32);
    struct ws_ptx_insn *i = WS_EDIT(e, ATOM, U32, R(t), ws_opd_at(ticket, 0), I(1));
    i->space = WS_SP_GLOBAL;
    i->sub = WS_SUB_ADD;
    go_on_if(w, WS_CMP_LT, R(t), R(total), no);
    ws_ptx_edit_split(e, t, shape(0), w->reads, w->id);
    access_slot(w, WS_OP_ST);
    ws_ptx_edit_place(e, no);
}

/* All wait for each other and learn whether there is a block. In the loop threads come from several
 * places, so that they may not be together; PTX before 6.0 has one kind of barrier only. */
static int32_t vote(struct rewrite *w)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t block = ws_ptx_edit_reg(e, WS_T_PRED);
    struct ws_ptx_operand o[] = {R(block), I(0), R(w->go)};
    bool together = w->kind == WS_REWRITE_TICKET || e->m->version < 60;
    ws_ptx_edit_add(e, together ? WS_OP_BAR_RED : WS_OP_BARRIER_RED, WS_T_PRED, 3, o)->sub =
        WS_SUB_OR;
    return block;
}

static void get_ticket(struct rewrite *w)
{
    struct ws_ptx_edit *e = &w->e;
    uint32_t bytes = 4 * slot_words(w);
    bool loop = w->kind == WS_REWRITE_PERSISTENT;
    if (bytes)
        w->slot = ws_ptx_edit_shared(e, bytes * (loop ? 2 : 1), bytes * (loop ? 2 : 1));
    find_first(w);
    if (loop && bytes) {
        w->place = ws_ptx_edit_reg(e, WS_T_U32);
        WS_EDIT(e, MOV, U32, R(w->place), ws_opd_sym(w->slot));
    }
    if (loop)
        ws_ptx_edit_place(e, w->head);
    if (loop &&
        w->copies) /* of this block, which must not come while the next one uses the memory */
        ws_ptx_edit_add(e, WS_OP_CP_ASYNC_WAIT_ALL, WS_T_NONE, 0, NULL);
    take_ticket(w);
    int32_t block = vote(w);
    if (loop)
        ws_ptx_edit_branch_if(e, block, true, w->out);
    else
        ws_ptx_edit_guard(ws_ptx_edit_add(e, WS_OP_RET, WS_T_NONE, 0, NULL), block, true);
    access_slot(w, WS_OP_LD);
    if (loop &&
        bytes) /* the two slots lie at a multiple of both: their addresses differ in one bit */
        WS_EDIT(e, XOR, B32, R(w->place), R(w->place), I(bytes));
}

static void get_slice(struct rewrite *w)
{
    struct ws_ptx_edit *e = &w->e;
    if (!ws_ptx_own_reads(&w->own, WS_OWN_CTAID))
        return;
    int32_t number = w->reads[0] && !w->reads[1] && !w->reads[2] ? w->id[0]
                                                                 : ws_ptx_edit_reg(e, WS_T_U32),
            offset = ws_ptx_edit_load(e, WS_T_U32, offsetof(struct ws_ptx_ctl, offset));
    WS_EDIT(e, MOV, U32, R(number), ws_opd_sreg(WS_SR_CTAID, 0));
    WS_EDIT(e, ADD, U32, R(number), R(number), R(offset));
    ws_ptx_edit_split(e, number, shape(0), w->reads, w->id);
}

/* The old body, with the loop's head for its ends. */
static void copy_body(struct rewrite *w, const struct ws_ptx_func *f)
{
    struct ws_ptx_edit *e = &w->e;
    bool loop = w->kind == WS_REWRITE_PERSISTENT;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *old = &f->insns[k];
        bool ends = ws_ptx_does(old, WS_DOES_LEAVE);
        if (loop && ends) {
            ws_ptx_edit_skip(e, k);
            struct ws_ptx_insn *i = WS_EDIT(e, BRA, NONE, ws_opd_label(w->head));
            i->guard = old->guard < 0 ? -1 : ws_ptx_edit_old_reg(e, old->guard);
            i->guard_neg = old->guard_neg;
            continue;
        }
        ws_ptx_own_copy(&w->own, e, k);
    }
    ws_ptx_edit_old_end(e);
    if (loop) {
        if (ws_ptx_falls_off(f))
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
    if (!r && kind == WS_REWRITE_PERSISTENT)
        r = ws_ptx_has_op(m, func, WS_OP_CP_ASYNC, &w.copies);
    if (r)
        return ws_forward(r);
    w.flat = !shaped;
    ws_ptx_edit_begin(&w.e, m, func, suffix[kind], sizeof(struct ws_ptx_ctl));
    ws_ptx_own_find(&w.own, &w.e);
    ws_ptx_own_load(&w.own, WS_OWN_NCTAID, shape(offsetof(struct ws_ptx_shape, n)));
    if (kind == WS_REWRITE_PERSISTENT) {
        w.head = ws_ptx_edit_label(&w.e);
        w.out = ws_ptx_edit_label(&w.e);
    }
    for (unsigned d = 0; d < 3; d++) {
        w.reads[d] = w.own.of[WS_OWN_CTAID][d].read;
        w.id[d] = w.reads[d] ? ws_ptx_own_reg(&w.own, &w.e, WS_OWN_CTAID, d) : -1;
    }
    if (kind == WS_REWRITE_SLICE)
        get_slice(&w);
    else
        get_ticket(&w);
    copy_body(&w, f);
    return ws_forward(ws_ptx_edit_end(&w.e, ret_func));
}

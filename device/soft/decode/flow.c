// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/flow.c - control flow: the order of blocks, branches, calls.
 *
 * Diverged lanes of a warp are run lowest micro-op first, so where lanes meet again is decided by
 * the order in which blocks are laid out: every block must come before those that all its paths
 * lead through. A reverse post-order of the control-flow graph gives that; where the graph leaves a
 * choice, the block that stands later in the text is laid out later, which puts a loop's exit
 * behind its body in what compilers emit. (Idea: Diamos et al., "SIMD re-convergence at thread
 * frontiers", MICRO 2011.) A wrong choice costs speed, never results: see the splits in exec.c.
 *
 * Calls: scalar parameters are rows of the callee, written by the caller; arrays lie in the
 * callee's frame of local memory. An indirect call writes to slots that are the same for all
 * functions and goes to the function's thunk, which moves them on. */
#include <string.h>

#include "base/budget.h"
#include "device/soft/decode/priv.h"

/* ---- segments ---- */
uint32_t ws_dec_new_seg(struct ws_dec *d)
{
    if (d->oom || WS_DEC_GROW(d, seg_first, cap_seg_first, d->n_segs + 1) ||
        WS_DEC_GROW(d, seg_insns, cap_seg_insns, d->n_segs + 1) ||
        WS_DEC_GROW(d, seg_cls, cap_seg_cls, d->n_segs + 1) ||
        WS_DEC_GROW(d, seg_unit, cap_seg_unit, d->n_segs + 1) ||
        WS_DEC_GROW(d, seg_loud, cap_seg_loud, d->n_segs + 1)) {
        d->oom = true;
        return 0;
    }
    d->seg_insns[d->n_segs] = 0;
    memset(d->seg_cls[d->n_segs], 0, sizeof(d->seg_cls[0]));
    memset(d->seg_unit[d->n_segs], 0, sizeof(d->seg_unit[0]));
    d->seg_loud[d->n_segs] = false;
    return d->n_segs++;
}

static void begin_seg(struct ws_dec *d, uint32_t seg)
{
    d->seg = seg;
    if (!d->oom)
        d->seg_first[seg] = d->n_uops;
}

static void count_insn(struct ws_dec *d, const struct ws_ptx_insn *i)
{
    if (d->oom)
        return;
    struct ws_machine m = ws_dec_machine(i, d->code->hardware_cc);
    d->seg_insns[d->seg]++;
    d->seg_cls[d->seg][ws_dec_class(i)]++;
    d->seg_cls[d->seg][WS_SEG_MACHINE] += m.n_insns;
    for (int k = 0; k < _WS_UNIT_N; k++)
        d->seg_unit[d->seg][k] += m.unit[k];
}

static struct ws_uop *control(struct ws_dec *d, enum ws_handler h, uint32_t to, uint32_t fall)
{
    struct ws_uop *u = ws_dec_emit(d, h);
    if (d->oom)
        return u;
    if (to != WS_NO_SEG) {
        u->imm = to;
        d->ctl[d->n_uops - 1] |= 1;
    }
    if (fall != WS_NO_SEG) {
        u->fall = (const struct ws_seg *)(uintptr_t)fall;
        d->ctl[d->n_uops - 1] |= 2;
    }
    return u;
}

static void set_guard(struct ws_dec *d, const struct ws_ptx_insn *i)
{
    d->guard = d->img->ones_off;
    d->gneg = 0;
    if (i && i->guard >= 0) {
        d->guard = d->df->rows[i->guard];
        d->gneg = i->guard_neg ? 0xffffffff : 0;
    }
}

static void go_to(struct ws_dec *d, uint32_t seg)
{
    uint32_t guard = d->guard, gneg = d->gneg;
    set_guard(d, NULL);
    control(d, WS_H_goto_, seg, WS_NO_SEG);
    d->guard = guard;
    d->gneg = gneg;
}

static void begin_insn(struct ws_dec *d, uint32_t insn)
{
    if (d->oom || WS_DEC_GROW(d, srcs, cap_srcs, d->n_srcs + 1)) {
        d->oom = true;
        return;
    }
    d->srcs[d->n_srcs++] = (struct ws_srcref){.func = d->df->index, .insn = insn};
    memset(d->temps_used, 0, sizeof(d->temps_used));
}

/* ---- arguments ---- */
/* Where a value is: a row, or local memory at an offset from the frame pointer. */
struct value_place {
    uint8_t kind, width;
    uint32_t off, bytes;
};

static void copy_place(struct ws_dec *d, struct value_place to, struct value_place from)
{
    if (to.kind == WS_STORE_ROW && from.kind == WS_STORE_ROW) {
        if (to.width == from.width)
            ws_dec_mov(d, to.width, to.off, from.off);
        else if (to.width && from.width)
            ws_dec_emit3(d, ws_dec_cvt_int(to.width, ws_ptx_uint_type(from.width)), to.off,
                         from.off, 0);
        else
            ws_dec_unsupported(d, "call: predicate argument for a number");
        return;
    }
    if (to.kind == WS_STORE_LOCAL && from.kind == WS_STORE_LOCAL) {
        struct ws_uop *u = ws_dec_emit(d, WS_H_copy_local);
        u->d = (int32_t)to.off;
        u->imm = from.off;
        u->b = (int32_t)WS_MIN(to.bytes, from.bytes);
        return;
    }
    const struct value_place *row = to.kind == WS_STORE_ROW ? &to : &from,
                             *mem = to.kind == WS_STORE_ROW ? &from : &to;
    struct ws_uop *u =
        ws_dec_emit3(d, row == &to ? WS_H_ld_x : WS_H_st_x, row->off, d->img->fp_off, 0);
    u->imm = mem->off;
    u->x = WS_SP_LOCAL | WS_X_A32 | WS_X_NOCOUNT | (uint32_t)row->width << WS_X_SIZE_SHIFT |
           1u << WS_X_VEC_SHIFT;
}

static struct value_place store_place(const struct ws_var_store *s, const struct ws_ptx_var *v,
                                      uint32_t frame)
{
    return (struct value_place){.kind = s->kind,
                                .width = s->width,
                                .off = s->off + (s->kind == WS_STORE_LOCAL ? frame : 0),
                                .bytes = (uint32_t)v->size_bytes};
}

/* Of an argument or result as the caller wrote it; width: of the register or immediate that the
 * other side wants. */
static struct value_place arg_place(struct ws_dec *d, const struct ws_ptx_operand *o,
                                    uint32_t width, bool dest)
{
    if (o->kind == WS_OPD_SYM && o->sym >= 0 && WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_LOCALVAR) {
        struct ws_var_store *s;
        const struct ws_ptx_var *v = ws_dec_symvar(d, o->sym, &s);
        if (s->kind == WS_STORE_ROW || (s->kind == WS_STORE_LOCAL && v->space == WS_SP_PARAM))
            return store_place(s, v, 0);
    }
    struct value_place p = {.kind = WS_STORE_ROW, .width = (uint8_t)width};
    bool finish, neg;
    enum ws_ptx_type t = width ? ws_ptx_bits_type(width) : WS_T_PRED;
    if (width == 0)
        p.off = dest ? ws_dec_pred_dst(d, o) : ws_dec_pred(d, o, &neg);
    else if (dest) {
        p.off = ws_dec_dst(d, o, t, &finish);
        if (finish)
            ws_dec_unsupported(d, "call: result of another size than its register");
    } else {
        if (o->kind == WS_OPD_IMM && o->imm_kind == WS_IMM_F64)
            t = width == 4 ? WS_T_F32 : WS_T_F64;
        p.off = ws_dec_src(d, o, t);
    }
    return p;
}

static bool in_slot(const struct ws_ptx_var *v)
{
    return v->space == WS_SP_REG || (!v->is_array && v->vec <= 1 && v->size_bytes <= 8);
}

/* Places of parameters and results of an indirect call, as both sides work them out from the
 * declarations. */
static struct value_place slot_place(struct ws_dec *d, const struct ws_ptx_var *vars, uint32_t n,
                                     uint32_t k, uint32_t *frame, bool ret)
{
    uint32_t off = *frame;
    for (uint32_t j = 0; j < n; j++) {
        if (in_slot(&vars[j]))
            continue;
        if (j == k) {
            struct value_place p = {
                .kind = WS_STORE_LOCAL, .off = off, .bytes = (uint32_t)vars[j].size_bytes};
            return p;
        }
        off += (uint32_t)WS_ALIGN_UP(vars[j].size_bytes, 16u);
    }
    if (k >= n) {
        *frame = off;
        return (struct value_place){0};
    }
    uint32_t *row = ret ? &d->ret_slot : &d->slots[WS_MIN(k, WS_ARRAY_SIZE(d->slots) - 1)];
    if (!ret && k >= WS_ARRAY_SIZE(d->slots))
        ws_dec_unsupported(d, "indirect call with more than %zu arguments",
                           WS_ARRAY_SIZE(d->slots));
    if (!*row)
        *row = ws_dec_row_alloc(d, 8);
    return (struct value_place){.kind = WS_STORE_ROW,
                                .width = (uint8_t)(vars[k].type == WS_T_PRED ? 0
                                                   : vars[k].size_bytes
                                                       ? vars[k].size_bytes
                                                       : ws_ptx_type_bytes(vars[k].type)),
                                .off = *row};
}

static void emit_call(struct ws_dec *d, uint32_t to, uint32_t frame, uint32_t callee_frame)
{
    uint32_t cont = ws_dec_new_seg(d);
    struct ws_uop *u = control(d, WS_H_call, to, cont);
    u->e = (int32_t)frame;
    u->x = callee_frame;
    begin_seg(d, cont);
}

static void call_direct(struct ws_dec *d, const struct ws_ptx_insn *i, struct ws_dfunc *callee)
{
    struct ws_dfunc *df = d->df;
    const struct ws_ptx_call *c = i->call;
    const struct ws_ptx_func *f = callee->f;
    /* may come back to this function: its rows are at stake */
    bool again = d->graph->group[callee->index] == d->graph->group[df->index];
    if (f->is_entry) {
        ws_dec_unsupported(d, "call of kernel %s", f->name);
        return;
    }
    if (c->n_args != f->n_params || c->n_rets != f->n_rets) {
        ws_dec_unsupported(d, "call of %s with %u arguments and %u results; it has %u and %u",
                           f->name, c->n_args, c->n_rets, f->n_params, f->n_rets);
        return;
    }
    if (again) {
        struct ws_uop *u = ws_dec_emit(d, WS_H_save);
        u->a = (int32_t)df->save_first;
        u->b = (int32_t)df->n_saves;
    }
    for (uint32_t k = 0; k < c->n_args; k++) {
        const struct ws_ptx_var *v = ws_ptx_localvar(f, k);
        struct value_place to = store_place(&callee->vars[k], v, df->frame_bytes);
        copy_place(d, to, arg_place(d, &c->args[k], to.kind == WS_STORE_ROW ? to.width : 8, false));
    }
    emit_call(d, callee->entry_seg, df->frame_bytes, callee->frame_bytes);
    struct value_place temp[8];
    if (c->n_rets > WS_ARRAY_SIZE(temp)) {
        ws_dec_unsupported(d, "call with %u results", c->n_rets);
        return;
    }
    for (uint32_t k = 0; k < c->n_rets; k++) {
        temp[k] = store_place(&callee->vars[f->n_params + k], ws_ptx_localvar(f, f->n_params + k),
                              df->frame_bytes);
        if (again && temp[k].kind == WS_STORE_ROW) {
            struct value_place t = temp[k];
            t.off = ws_dec_row_alloc(d, t.width);
            copy_place(d, t, temp[k]);
            temp[k] = t;
        }
    }
    if (again) {
        struct ws_uop *u = ws_dec_emit(d, WS_H_restore);
        u->a = (int32_t)df->save_first;
        u->b = (int32_t)df->n_saves;
    }
    for (uint32_t k = 0; k < c->n_rets; k++)
        if (c->rets[k].kind != WS_OPD_SINK)
            copy_place(
                d,
                arg_place(d, &c->rets[k], temp[k].kind == WS_STORE_ROW ? temp[k].width : 8, true),
                temp[k]);
}

static void call_indirect(struct ws_dec *d, const struct ws_ptx_insn *i)
{
    struct ws_dfunc *df = d->df;
    const struct ws_ptx_call *c = i->call;
    if (c->proto < 0 || (uint32_t)c->proto >= df->f->n_protos ||
        df->f->protos[c->proto].n_targets) {
        ws_dec_unsupported(d, "indirect call without .callprototype");
        return;
    }
    const struct ws_ptx_proto *p = &df->f->protos[c->proto];
    if (c->n_args != p->n_params || c->n_rets != p->n_rets || p->n_rets > 1) {
        ws_dec_unsupported(d, "indirect call that does not fit its prototype %s", p->name);
        return;
    }
    bool again = df->recursive;
    if (again) {
        struct ws_uop *u = ws_dec_emit(d, WS_H_save);
        u->a = (int32_t)df->save_first;
        u->b = (int32_t)df->n_saves;
    }
    uint32_t frame = df->frame_bytes;
    for (uint32_t k = 0; k < c->n_args; k++) {
        struct value_place to = slot_place(d, p->params, p->n_params, k, &frame, false);
        copy_place(d, to, arg_place(d, &c->args[k], to.kind == WS_STORE_ROW ? to.width : 8, false));
    }
    slot_place(d, p->params, p->n_params, p->n_params, &frame, false); /* past the arguments */
    uint32_t target = ws_dec_src(d, &c->callee, WS_T_U64), own = ws_dec_new_seg(d),
             cont = ws_dec_new_seg(d);
    uint32_t keep = ws_dec_row_alloc(d, 8); /* lanes with other targets come to the call again */
    ws_dec_mov(d, 8, keep, target);
    go_to(d, own);
    begin_seg(d, own);
    struct ws_uop *u = control(d, WS_H_call_ind, WS_NO_SEG, own);
    u->a = (int32_t)keep;
    u->e = (int32_t)df->frame_bytes;
    u->imm = cont;
    if (!d->oom)
        d->ctl[d->n_uops - 1] |= 1;
    begin_seg(d, cont);
    struct value_place ret = {0}, t = {0};
    if (c->n_rets) {
        ret = slot_place(d, p->rets, p->n_rets, 0, &frame, true);
        t = ret;
        if (again && ret.kind == WS_STORE_ROW) {
            t.off = ws_dec_row_alloc(d, 8);
            copy_place(d, t, ret);
        }
    }
    if (again) {
        u = ws_dec_emit(d, WS_H_restore);
        u->a = (int32_t)df->save_first;
        u->b = (int32_t)df->n_saves;
    }
    if (c->n_rets && c->rets[0].kind != WS_OPD_SINK)
        copy_place(d, arg_place(d, &c->rets[0], t.kind == WS_STORE_ROW ? t.width : 8, true), t);
}

void ws_dec_thunk(struct ws_dec *d, struct ws_dfunc *df)
{
    const struct ws_ptx_func *f = df->f;
    d->in = NULL;
    set_guard(d, NULL);
    begin_insn(d, 0);
    df->thunk_seg = ws_dec_new_seg(d);
    begin_seg(d, df->thunk_seg);
    uint32_t args = 0, frame;
    slot_place(d, f->params, f->n_params, f->n_params, &args, false);
    frame = args;
    slot_place(d, f->rets, f->n_rets, f->n_rets, &frame, true);
    for (uint32_t k = 0; k < f->n_params; k++) {
        uint32_t zero = 0;
        copy_place(d, store_place(&df->vars[k], &f->params[k], frame),
                   slot_place(d, f->params, f->n_params, k, &zero, false));
    }
    emit_call(d, df->entry_seg, frame, df->frame_bytes);
    for (uint32_t k = 0; k < f->n_rets; k++) {
        uint32_t at = args;
        copy_place(d, slot_place(d, f->rets, f->n_rets, k, &at, true),
                   store_place(&df->vars[f->n_params + k], &f->rets[k], frame));
    }
    control(d, WS_H_ret, WS_NO_SEG, WS_NO_SEG);
}

uint32_t ws_dec_arg(struct ws_dec *d, const struct ws_ptx_operand *o, uint32_t width)
{
    struct value_place p = arg_place(d, o, width, false),
                       t = {.kind = WS_STORE_ROW, .width = (uint8_t)width};
    if (p.kind == WS_STORE_ROW && p.width == width)
        return p.off;
    t.off = ws_dec_temp(d, width);
    copy_place(d, t, p);
    return t.off;
}

uint32_t ws_dec_arg_word(struct ws_dec *d, const struct ws_ptx_operand *o, unsigned k)
{
    struct value_place p = arg_place(d, o, 8, false),
                       t = {.kind = WS_STORE_ROW, .width = 4, .off = ws_dec_temp(d, 4)};
    if (p.kind != WS_STORE_LOCAL || p.bytes < 4 * (k + 1)) {
        ws_dec_unsupported(d, "call: an argument that is no structure");
        return t.off;
    }
    p.off += 4 * k;
    copy_place(d, t, p);
    return t.off;
}

void ws_dec_result(struct ws_dec *d, const struct ws_ptx_operand *o, uint32_t width, uint32_t row)
{
    if (o->kind != WS_OPD_SINK)
        copy_place(d, arg_place(d, o, width, true),
                   (struct value_place){.kind = WS_STORE_ROW, .width = (uint8_t)width, .off = row});
}

static bool call_known(struct ws_dec *d, const struct ws_ptx_insn *i, const char *name)
{
    const struct ws_ptx_call *c = i->call;
    struct ws_uop *u;
    if (strcmp(name, "__assertfail") == 0 && c->n_args == 5) {
        /* (const char *message, const char *file, unsigned line, const char *function, size_t) */
        uint32_t message = ws_dec_arg(d, &c->args[0], 8), file = ws_dec_arg(d, &c->args[1], 8),
                 line = ws_dec_arg(d, &c->args[2], 4), function = ws_dec_arg(d, &c->args[3], 8);
        u = ws_dec_emit3(d, WS_H_assertfail, function, message, file);
        u->c = (int32_t)line;
        d->prints = true;
        return true;
    }
    if (strcmp(name, "vprintf") == 0 &&
        c->n_args == 2) { /* int (const char *format, void *arguments) */
        uint32_t format = ws_dec_arg(d, &c->args[0], 8), args = ws_dec_arg(d, &c->args[1], 8);
        uint32_t ret = ws_dec_temp(d, 4);
        ws_dec_emit3(d, WS_H_vprintf, ret, format, args);
        d->prints = true;
        if (c->n_rets == 1)
            ws_dec_result(d, &c->rets[0], 4, ret);
        return true;
    }
    if (strcmp(name, "malloc") == 0 && c->n_args == 1 && c->n_rets == 1) { /* void *(size_t) */
        uint32_t bytes = ws_dec_arg(d, &c->args[0], 8);
        uint32_t ret = ws_dec_temp(d, 8);
        ws_dec_emit3(d, WS_H_heap_take, ret, bytes, 0);
        d->uses_heap = true;
        ws_dec_result(d, &c->rets[0], 8, ret);
        return true;
    }
    if (strcmp(name, "free") == 0 && c->n_args == 1) { /* void (void *) */
        ws_dec_emit3(d, WS_H_heap_give, 0, ws_dec_arg(d, &c->args[0], 8), 0);
        d->uses_heap = true;
        return true;
    }
    if (strcmp(name, "cudaGraphSetConditional") == 0 &&
        c->n_args == 2) { /* (handle, unsigned value): the handle is a word's address */
        uint32_t handle = ws_dec_arg(d, &c->args[0], 8), value = ws_dec_arg(d, &c->args[1], 4);
        u = ws_dec_emit3(d, WS_H_st_x, value, handle, 0);
        u->x = WS_SP_GLOBAL | 4u << WS_X_SIZE_SHIFT | 1u << WS_X_VEC_SHIFT;
        return true;
    }
    return ws_dec_start(d, c, name);
}

static void decode_call(struct ws_dec *d, const struct ws_ptx_insn *i)
{
    if (!i->call) {
        ws_dec_unsupported(d, "call without a target");
        return;
    }
    if (i->call->callee.kind != WS_OPD_SYM) {
        call_indirect(d, i);
        return;
    }
    uint32_t callee = d->graph->alias_of[WS_PTX_SYM_INDEX(i->call->callee.sym)];
    if (d->m->funcs[callee].is_decl) {
        const char *name = d->m->funcs[callee].name;
        if (call_known(d, i, name))
            return;
        d->unresolved |= !ws_ptx_is_system_func(name);
        ws_dec_unsupported(
            d, ws_ptx_is_system_func(name) ? "call of %s" : "unresolved external function %s",
            name);
        return;
    }
    call_direct(d, i, &d->funcs[callee]);
}

/* ---- blocks ---- */
struct blocks {
    uint32_t n, *first, *end, *seg, *order, n_order;
    uint32_t *of;         /* [n_insns + 1] */
    const uint8_t *whole; /* [n_insns]: see ws_dec_find_dead() */
};

static bool ends_block(const struct ws_ptx_insn *i)
{
    return ws_ptx_does(i, WS_DOES_END_BLOCK) && (i->op != WS_OP_TRAP || i->guard < 0);
}

static bool find_blocks(struct ws_dec *d, const struct ws_ptx_func *f, struct blocks *b)
{
    uint8_t *leader = ws_arena_array(&d->tmp, f->n_insns + 1, 1);
    b->of = ws_arena_array(&d->tmp, f->n_insns + 1, sizeof(*b->of));
    if (!leader || !b->of)
        return false;
    leader[0] = 1;
    for (uint32_t k = 0; k < f->n_labels; k++)
        if (f->labels[k].insn <= f->n_insns)
            leader[f->labels[k].insn] = 1;
    for (uint32_t k = 0; k < f->n_insns; k++)
        if (ends_block(&f->insns[k]))
            leader[k + 1] = 1;
    leader[f->n_insns] = 1; /* the end is a block of its own: an implicit ret */
    b->whole = ws_dec_find_dead(d, f, leader);
    if (!b->whole)
        return false;
    for (uint32_t k = 0; k <= f->n_insns; k++)
        b->n += leader[k];
    b->first = ws_arena_array(&d->tmp, b->n, sizeof(*b->first));
    b->end = ws_arena_array(&d->tmp, b->n, sizeof(*b->end));
    b->seg = ws_arena_array(&d->tmp, b->n, sizeof(*b->seg));
    b->order = ws_arena_array(&d->tmp, b->n, sizeof(*b->order));
    if (!b->first || !b->end || !b->seg || !b->order)
        return false;
    uint32_t n = 0;
    for (uint32_t k = 0; k <= f->n_insns; k++) {
        if (leader[k])
            b->first[n++] = k;
        b->of[k] = n - 1;
        b->end[n - 1] = WS_MIN(k + 1, f->n_insns);
    }
    return true;
}

/* k-th successor of a block in the text order of their blocks, highest first; -1: no more. Slow
 * path only for brx. */
static int64_t successor(const struct ws_ptx_func *f, const struct blocks *b, uint32_t block,
                         uint32_t k)
{
    uint32_t end = b->end[block];
    if (b->first[block] >= f->n_insns)
        return -1;
    const struct ws_ptx_insn *i = &f->insns[end - 1];
    int64_t next = b->of[end];
    bool falls = !ends_block(i) || i->guard >= 0;
    if (i->op == WS_OP_BRA) {
        int64_t to = b->of[f->labels[i->operands[0].label].insn];
        if (!falls)
            return k == 0 ? to : -1;
        return k == 0 ? WS_MAX(to, next) : k == 1 ? WS_MIN(to, next) : -1;
    }
    if (i->op == WS_OP_BRX_IDX) {
        const struct ws_ptx_operand *l = &i->operands[1];
        if (k < l->n)
            return b->of[f->labels[l->v[k].label].insn];
        return k == l->n ? next : -1;
    }
    return falls && k == 0 ? next : -1;
}

static bool order_blocks(struct ws_dec *d, const struct ws_ptx_func *f, struct blocks *b)
{
    uint32_t *stack = ws_arena_array(&d->tmp, b->n, sizeof(*stack)),
             *next = ws_arena_array(&d->tmp, b->n, sizeof(*next)), n = 0;
    uint8_t *seen = ws_arena_array(&d->tmp, b->n, 1);
    if (!stack || !next || !seen)
        return false;
    uint32_t at = b->n;
    stack[n++] = 0;
    seen[0] = 1;
    while (n) {
        uint32_t block = stack[n - 1];
        int64_t s = successor(f, b, block, next[block]++);
        if (s < 0) {
            b->order[--at] = block;
            n--;
        } else if (!seen[s]) {
            seen[s] = 1;
            stack[n++] = (uint32_t)s;
        }
    }
    b->n_order = b->n - at;
    memmove(b->order, b->order + at, b->n_order * sizeof(*b->order));
    return true;
}

/* Ops that all lanes of the split take or leave: guarded ones are branched around. */
static bool wants_branch_around(const struct ws_ptx_insn *i)
{
    return i->guard >= 0 &&
           (i->op == WS_OP_CALL || ws_ptx_does(i, WS_DOES_SYNC_BLOCK | WS_DOES_ARRIVE));
}

static void decode_brx(struct ws_dec *d, const struct ws_ptx_func *f, const struct blocks *b,
                       const struct ws_ptx_insn *i, uint32_t fall)
{
    const struct ws_ptx_operand *l = &i->operands[1];
    uint32_t row = ws_dec_src(d, &i->operands[0], WS_T_U32);
    struct ws_uop *u = control(d, WS_H_brx, WS_NO_SEG, fall);
    if (d->oom || WS_DEC_GROW(d, brx, cap_brx, d->n_brx + l->n)) {
        d->oom = true;
        return;
    }
    u->a = (int32_t)row;
    u->b = l->n;
    u->imm = d->n_brx;
    d->ctl[d->n_uops - 1] |= 4;
    for (unsigned k = 0; k < l->n; k++)
        d->brx[d->n_brx++] = b->seg[b->of[f->labels[l->v[k].label].insn]];
}

static void give_back_stack(struct ws_dec *d)
{
    if (d->df->kept_sp)
        ws_dec_mov(d, 4, ws_dec_sp_row(d), d->df->kept_sp);
}

static void decode_insn(struct ws_dec *d, const struct ws_ptx_func *f, const struct blocks *b,
                        uint32_t k, uint32_t fall)
{
    const struct ws_ptx_insn *i = &f->insns[k];
    d->oom |= !ws_budget_spend(1);
    d->in = i;
    begin_insn(d, k);
    count_insn(d, i);
    set_guard(d, i);
    switch (i->op) {
    case WS_OP_BRA:
        control(d, i->guard >= 0 ? WS_H_bra : WS_H_goto_,
                b->seg[b->of[f->labels[i->operands[0].label].insn]], fall);
        return;
    case WS_OP_BRX_IDX:
        decode_brx(d, f, b, i, fall);
        return;
    case WS_OP_RET:
        give_back_stack(d);
        control(d, f->is_entry ? WS_H_exit_ : WS_H_ret, WS_NO_SEG, fall);
        return;
    case WS_OP_EXIT:
        control(d, WS_H_exit_, WS_NO_SEG, fall);
        return;
    default:
        break;
    }
    uint32_t after = WS_NO_SEG;
    if (wants_branch_around(i)) {
        uint32_t body = ws_dec_new_seg(d);
        after = ws_dec_new_seg(d);
        control(d, WS_H_bra, body, after);
        set_guard(d, NULL);
        begin_seg(d, body);
    }
    d->all = b->whole[k] ? 0xffffffff : 0;
    if (i->op == WS_OP_CALL)
        decode_call(d, i);
    else
        ws_dec_insn(d, ws_dec_spell_out(d, i));
    d->all = 0;
    if (after != WS_NO_SEG) {
        go_to(d, after);
        begin_seg(d, after);
    }
}

void ws_dec_function(struct ws_dec *d, struct ws_dfunc *df)
{
    const struct ws_ptx_func *f = df->f;
    struct blocks b = {0};
    if (!find_blocks(d, f, &b) || !order_blocks(d, f, &b)) {
        d->oom = true;
        return;
    }
    for (uint32_t k = 0; k < b.n; k++)
        b.seg[k] = k == 0 && !df->kept_sp ? df->entry_seg : ws_dec_new_seg(d);
    if (df->kept_sp) { /* before the first block, which may be a loop's head */
        d->in = NULL;
        set_guard(d, NULL);
        begin_insn(d, 0);
        begin_seg(d, df->entry_seg);
        ws_dec_mov(d, 4, df->kept_sp, ws_dec_sp_row(d));
        go_to(d, b.seg[0]);
    }
    for (uint32_t n = 0; n < b.n_order && !d->oom; n++) {
        uint32_t block = b.order[n];
        begin_seg(d, b.seg[block]);
        if (b.first[block] >= f->n_insns) { /* off the end */
            d->in = NULL;
            set_guard(d, NULL);
            begin_insn(d, f->n_insns ? f->n_insns - 1 : 0);
            give_back_stack(d);
            control(d, f->is_entry ? WS_H_exit_ : WS_H_ret, WS_NO_SEG, WS_NO_SEG);
            continue;
        }
        uint32_t end = b.end[block], fall = b.seg[b.of[end]];
        for (uint32_t k = b.first[block]; k < end && !d->oom; k++)
            decode_insn(d, f, &b, k, fall);
        if (!ends_block(&f->insns[end - 1]))
            go_to(d, fall);
    }
    d->in = NULL;
}

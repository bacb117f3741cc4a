// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/decode.c - from a PTX module to images, one for each kernel.
 *
 * An image holds the kernel and every function it can reach, so that all rows of its register file
 * have fixed offsets. In the file stand, from the start: an unused row (offset 0 means "none"), the
 * word of ones (guard of the unguarded), frame pointers, then rows as they are asked for: registers
 * and scalar parameters of each function, temporaries, constants, special registers. A register's
 * lanes are as wide as its type (8-bit ones: 16 bits); where an instruction reads a narrower type
 * than the register has, or writes one, a conversion to or from a temporary row stands beside it.
 * Invariants: (1) micro-ops refer to segments by number until finish_image() turns numbers into
 * pointers; (2) a segment's counts are those of its PTX instructions, whatever micro-ops they
 * became; (3) what can't be decoded is named with its line and the kernel has no image. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device/soft/decode/priv.h"

void ws_dec_unsupported(struct ws_dec *d, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    d->unsupported = true;
    if (d->code->audit) {
        const struct ws_audit *a = d->code->audit;
        const struct ws_ptx_func *entry = &d->m->funcs[d->img->func];
        a->each(a->arg, entry, d->df ? d->df->f : entry, d->in, text);
        return;
    }
    if (!d->reason[0])
        snprintf(d->reason, sizeof(d->reason), "PTX line %u: %.220s", d->in ? d->in->line : 0,
                 text);
    for (size_t k = 0; d->diags && k < d->diags->n; k++)
        if (d->in && d->diags->v[k].line == d->in->line && strcmp(d->diags->v[k].text, text) == 0)
            return; /* the same line through another kernel's image */
    ws_diags_add(d->diags, NULL, d->in ? d->in->line : 0, d->in ? d->in->col : 0, "%s", text);
}

/* Whether the operation only computes, or goes somewhere: nothing outside of the warp changes, or
 * is looked at. */
static bool is_quiet(enum ws_handler h)
{
    switch (h) {
    case WS_H_lane:
        return false;
    case WS_H_ld_p:
    case WS_H_cvta:
    case WS_H_cvta_to:
    case WS_H_lea_local:
    case WS_H_bra:
    case WS_H_goto_:
    case WS_H_nop:
        return true;
    default:
        return h < WS_H_ld_g_8; /* those of ops.inc, and the like */
    }
}

struct ws_uop *ws_dec_emit(struct ws_dec *d, enum ws_handler h)
{
    static _Thread_local struct ws_uop scratch; /* what is written after running out of memory */
    if (d->oom || WS_DEC_GROW(d, uops, cap_uops, d->n_uops + 1) ||
        WS_DEC_GROW(d, ctl, cap_ctl, d->n_uops + 1)) {
        d->oom = true;
        scratch = (struct ws_uop){0};
        return &scratch;
    }
    struct ws_uop *u = &d->uops[d->n_uops];
    *u = (struct ws_uop){.fn = d->code->isa->handlers[h],
                         .guard = d->guard,
                         .gneg = d->gneg,
                         .mx = 0x1f80,
                         .src = d->n_srcs - 1,
                         .all = d->all};
    if (h >= WS_H_ld_g_8 && h <= WS_H_atom_128)
        u->map = d->n_maps++ % WS_N_MAPS; /* neighbours in the code get places of their own */
    d->ctl[d->n_uops++] = 0;
    d->seg_loud[d->seg] |= !is_quiet(h);
    return u;
}

struct ws_uop *ws_dec_emit3(struct ws_dec *d, enum ws_handler h, uint32_t dst, uint32_t a,
                            uint32_t b)
{
    struct ws_uop *u = ws_dec_emit(d, h);
    u->d = (int32_t)dst;
    u->a = (int32_t)a;
    u->b = (int32_t)b;
    return u;
}

/* ---- storage of variables ---- */
static void scan_param_use(const struct ws_ptx_operand *o, const struct ws_ptx_insn *i,
                           uint32_t n_vars, const struct ws_ptx_func *f, uint8_t *in_memory)
{
    for (unsigned k = 0; k < o->n; k++)
        scan_param_use(&o->v[k], i, n_vars, f, in_memory);
    if ((o->kind != WS_OPD_SYM && o->kind != WS_OPD_ADDR) || o->sym < 0 ||
        WS_PTX_SYM_KIND(o->sym) != WS_PTX_SYM_LOCALVAR)
        return;
    uint32_t k = (uint32_t)WS_PTX_SYM_INDEX(o->sym);
    if (k >= n_vars)
        return;
    const struct ws_ptx_var *v = ws_ptx_localvar(f, k);
    bool whole = o->kind == WS_OPD_ADDR && o->reg < 0 && o->imm == 0 &&
                 (i->op == WS_OP_LD || i->op == WS_OP_ST) && i->vec <= 1 && i->n_types &&
                 ws_ptx_type_bytes(i->types[0]) == v->size_bytes;
    if (!whole)
        in_memory[k] = 1;
}

static void place_vars(struct ws_dec *d, struct ws_dfunc *df)
{
    const struct ws_ptx_func *f = df->f;
    df->n_vars = f->n_params + f->n_rets + f->n_vars;
    df->vars = ws_arena_array(&d->tmp, df->n_vars + 1, sizeof(*df->vars));
    uint8_t *in_memory = ws_arena_array(&d->tmp, df->n_vars + 1, 1);
    if (!df->vars || !in_memory) {
        d->oom = true;
        return;
    }
    for (uint32_t k = 0; k < f->n_insns; k++)
        for (unsigned n = 0; n < f->insns[k].n_operands; n++)
            scan_param_use(&f->insns[k].operands[n], &f->insns[k], df->n_vars, f, in_memory);
    for (uint32_t k = 0; k < df->n_vars; k++) {
        const struct ws_ptx_var *v = ws_ptx_localvar(f, k);
        struct ws_var_store *s = &df->vars[k];
        if (v->space == WS_SP_SHARED) {
            s->kind = WS_STORE_SHARED;
        } else if (v->space == WS_SP_REG) {
            s->kind = WS_STORE_ROW;
            if (v->reg >= 0) {
                s->off = df->rows[v->reg];
                s->width = (uint8_t)ws_dec_reg_width(&f->regs[v->reg]);
            }
        } else if (f->is_entry && k < f->n_params) {
            s->kind = WS_STORE_KPARAM;
            s->off = (uint32_t)v->param_offset;
        } else if (v->space == WS_SP_PARAM && !v->is_array && v->vec <= 1 && v->size_bytes &&
                   v->size_bytes <= 8 && !in_memory[k]) {
            s->kind = WS_STORE_ROW;
            s->width = (uint8_t)v->size_bytes;
            s->off = ws_dec_row_alloc(d, s->width);
        } else if (v->space == WS_SP_PARAM || v->space == WS_SP_LOCAL) {
            uint64_t off = WS_ALIGN_UP((uint64_t)df->frame_bytes, (uint64_t)WS_MAX(v->align, 1u));
            if (off + v->size_bytes > 1u << 28) {
                ws_dec_unsupported(d, "%s: more than 256 MiB of local memory", f->name);
                return;
            }
            s->kind = WS_STORE_LOCAL;
            s->off = (uint32_t)off;
            df->frame_bytes = (uint32_t)(off + v->size_bytes);
        }
    }
    df->frame_bytes = WS_ALIGN_UP(df->frame_bytes, 16u);
}

static void save_row(struct ws_dec *d, struct ws_dfunc *df, uint32_t row, uint32_t width)
{
    if (d->oom || WS_DEC_GROW(d, saves, cap_saves, d->n_saves + 2)) {
        d->oom = true;
        return;
    }
    d->saves[d->n_saves++] = row;
    d->saves[d->n_saves++] = width;
    df->n_saves++;
}

static bool has_alloca(const struct ws_ptx_func *f)
{
    for (uint32_t k = 0; k < f->n_insns; k++)
        if (f->insns[k].op == WS_OP_ALLOCA || f->insns[k].op == WS_OP_STACKRESTORE)
            return true;
    return false;
}

static void place_function(struct ws_dec *d, struct ws_dfunc *df)
{
    const struct ws_ptx_func *f = df->f;
    df->rows = ws_arena_array(&d->tmp, f->n_regs + 1, sizeof(*df->rows));
    if (!df->rows) {
        d->oom = true;
        return;
    }
    for (uint32_t k = 0; k < f->n_regs; k++) {
        uint32_t w = ws_dec_reg_width(&f->regs[k]);
        df->rows[k] = ws_dec_row_alloc(d, w);
        for (unsigned n = 1; n < f->regs[k].vec; n++)
            ws_dec_row_alloc(d, w);
    }
    place_vars(d, df);
    if (!df->f->is_entry && has_alloca(f)) /* what it takes, it gives back when it returns */
        df->kept_sp = ws_dec_row_alloc(d, 4);
    if (!df->recursive || d->oom)
        return;
    /* what a call that may come back to this function must save */
    df->save_first = d->n_saves;
    for (uint32_t k = 0; k < f->n_regs; k++) {
        uint32_t w = ws_dec_reg_width(&f->regs[k]);
        for (unsigned n = 0; n < WS_MAX(f->regs[k].vec, 1u); n++)
            save_row(d, df, df->rows[k] + n * ws_dec_row_bytes(w), w);
    }
    for (uint32_t k = 0; k < df->n_vars; k++)
        if (df->vars[k].kind == WS_STORE_ROW)
            save_row(d, df, df->vars[k].off, df->vars[k].width);
    if (df->kept_sp)
        save_row(d, df, df->kept_sp, 4);
    if (d->oom)
        return;
    uint32_t bytes = 0;
    for (uint32_t k = 0; k < df->n_saves; k++) {
        uint32_t w = d->saves[df->save_first + 2 * k + 1];
        bytes += w ? 32 * WS_MAX(w, 2u) : 64;
    }
    d->img->save_bytes = WS_MAX(d->img->save_bytes, bytes);
}

/* ---- one image ---- */
static int finish_image(struct ws_dec *d)
{
    struct ws_exec_image *img = d->img;
    struct ws_arena *a = &d->code->arena;
    /* micro-ops want whole cache lines */
    uint8_t *raw = ws_arena_alloc(a, (size_t)(d->n_uops + 1) * sizeof(*img->uops) + 64);
    img->segs = ws_arena_array(a, d->n_segs + 1, sizeof(*img->segs));
    img->fills = ws_arena_array(a, d->n_fills + 1, sizeof(*img->fills));
    img->srcs = ws_arena_array(a, d->n_srcs + 1, sizeof(*img->srcs));
    img->save_rows = ws_arena_array(a, d->n_saves + 1, sizeof(*img->save_rows));
    img->brx_seg = ws_arena_array(a, d->n_brx + 1, sizeof(*img->brx_seg));
    if (d->has_indirect)
        img->func_entry =
            ws_arena_array(a, d->graph->n_targets + (size_t)1, sizeof(*img->func_entry));
    if (!raw || !img->segs || !img->fills || !img->srcs || !img->save_rows || !img->brx_seg ||
        (d->has_indirect && !img->func_entry))
        return ws_raise(-ENOMEM);
    img->uops = (struct ws_uop *)(void *)(raw + (-(uintptr_t)raw & 63));
    memcpy(img->uops, d->uops, d->n_uops * sizeof(*img->uops));
    memcpy(img->fills, d->fills, d->n_fills * sizeof(*img->fills));
    memcpy(img->srcs, d->srcs, d->n_srcs * sizeof(*img->srcs));
    if (d->n_saves)
        memcpy(img->save_rows, d->saves, d->n_saves * sizeof(*img->save_rows));
    img->n_uops = d->n_uops;
    img->n_segs = d->n_segs;
    img->n_fills = d->n_fills;
    img->n_srcs = d->n_srcs;
    img->regs_bytes = WS_ALIGN_UP(d->top, 64u);
    for (uint32_t k = 0; k < d->n_segs; k++) {
        img->segs[k].first = &img->uops[d->seg_first[k]];
        img->segs[k].n_insns = d->seg_insns[k];
        memcpy(img->segs[k].cls, d->seg_cls[k], sizeof(img->segs[k].cls));
        memcpy(img->segs[k].unit, d->seg_unit[k], sizeof(img->segs[k].unit));
        img->segs[k].is_quiet = !d->seg_loud[k];
    }
    for (uint32_t k = 0; k < d->n_brx; k++)
        img->brx_seg[k] = &img->segs[d->brx[k]];
    for (uint32_t k = 0; k < d->n_uops; k++) {
        struct ws_uop *u = &img->uops[k];
        if (d->ctl[k] & 1)
            u->to = &img->segs[u->imm];
        if (d->ctl[k] & 4)
            u->imm = (int64_t)(uintptr_t)(img->brx_seg + u->imm);
        if (d->ctl[k] & 2)
            u->fall = &img->segs[(uintptr_t)u->fall];
    }
    uint32_t dyn = WS_ALIGN_UP(img->shared_bytes, 16u);
    for (uint32_t k = 0; k < img->n_fills; k++)
        if (img->fills[k].kind == WS_FILL_CONST && img->fills[k].var == 1)
            img->fills[k].value = dyn;
    for (uint32_t k = 0; k < d->n_reached; k++) {
        const struct ws_dfunc *df = &d->funcs[d->reached[k]];
        if (df->thunk_seg != WS_NO_SEG)
            img->func_entry[d->graph->target_no[df->index]] = &img->segs[df->thunk_seg];
    }
    img->n_funcs = d->has_indirect ? d->m->n_funcs : 0;
    img->target_no = d->graph->target_no;
    img->entry = &img->segs[d->funcs[img->func].entry_seg];
    return 0;
}

static void decode_all(struct ws_dec *d, uint32_t func)
{
    ws_dec_reach(d, func);
    for (uint32_t k = 0; k < d->n_reached && !d->oom; k++)
        place_function(d, &d->funcs[d->reached[k]]);
    for (uint32_t k = 0; k < d->n_reached && !d->oom; k++)
        d->funcs[d->reached[k]].entry_seg = ws_dec_new_seg(d);
    for (uint32_t k = 0; k < d->n_reached && !d->oom; k++) {
        struct ws_dfunc *df = &d->funcs[d->reached[k]];
        d->df = df;
        ws_dec_function(d, df);
        if (ws_dec_has_thunk(d, df))
            ws_dec_thunk(d, df);
        d->img->recursive |= df->recursive;
    }
    if (!d->oom && !d->unsupported) {
        const struct ws_dfunc *df = &d->funcs[func];
        d->img->frame_bytes = df->frame_bytes;
        if (!d->img->recursive) {
            ws_dec_measure_calls(d);
            d->img->depth_max = df->depth * 2 + 2; /* a thunk adds a level */
            d->img->local_bytes = (uint32_t)df->local_bytes;
        } else {
            d->img->local_bytes = df->frame_bytes;
        }
    }
}

int ws_dec_new(struct ws_dec **ret, struct ws_code *code, struct ws_diags *diags)
{
    const struct ws_ptx_module *m = code->m;
    struct ws_dec *d = ws_alloc(sizeof(*d));
    if (!d)
        return ws_raise(-ENOMEM);
    d->m = m;
    d->code = code;
    d->diags = diags;
    d->graph = ws_dec_callgraph_new(m, &code->arena);
    d->gvars = ws_arena_array(&d->keep, m->n_vars + (size_t)1, sizeof(*d->gvars));
    d->funcs = ws_arena_array(&d->keep, m->n_funcs + (size_t)1, sizeof(*d->funcs));
    d->path = ws_arena_array(&d->keep, m->n_funcs + (size_t)1, sizeof(*d->path));
    d->reached = ws_arena_array(&d->keep, m->n_funcs + (size_t)1, sizeof(*d->reached));
    d->below = ws_arena_array(&d->keep, m->n_funcs + (size_t)1, sizeof(*d->below));
    if (!d->graph || !d->gvars || !d->funcs || !d->path || !d->reached || !d->below) {
        ws_dec_free(d);
        return ws_raise(-ENOMEM);
    }
    *ret = d;
    return 0;
}

struct ws_dec *ws_dec_free(struct ws_dec *d)
{
    if (!d)
        return NULL;
    free(d->uops);
    free(d->ctl);
    free(d->seg_first);
    free(d->seg_insns);
    free(d->seg_cls);
    free(d->seg_unit);
    free(d->seg_loud);
    free(d->fills);
    free(d->fill_next);
    free(d->srcs);
    free(d->saves);
    free(d->brx);
    ws_arena_deinit(&d->tmp);
    ws_arena_deinit(&d->keep);
    free(d);
    return NULL;
}

static bool begin_image(struct ws_dec *d, uint32_t func)
{
    memset(&d->img, 0, sizeof(*d) - offsetof(struct ws_dec, img));
    d->image++;
    d->img = ws_arena_alloc(&d->code->arena, sizeof(*d->img));
    if (!d->img || WS_DEC_GROW(d, fills, cap_fills, 1) ||
        WS_DEC_GROW(d, fill_next, cap_fill_next, 1))
        return false;
    d->img->func = func;
    d->top = 64;
    d->img->ones_off = ws_dec_row_alloc(d, 0);
    d->fill_next[0] = 0;
    d->fills[d->n_fills++] = (struct ws_fill){
        .kind = WS_FILL_CONST, .width = 0, .off = d->img->ones_off, .value = 0xffffffff};
    d->img->fp_off = ws_dec_row_alloc(d, 4);
    d->guard = d->img->ones_off;
    return true;
}

int ws_dec_image(struct ws_dec *d, uint32_t func, struct ws_exec_image **ret, char reason[256])
{
    int r = 0;
    if (begin_image(d, func)) {
        if (d->m->funcs[func].blocksareclusters)
            ws_dec_unsupported(d, "grids that are counted in clusters (.blocksareclusters)");
        decode_all(d, func);
        d->img->uses_heap = d->uses_heap;
        d->img->prints = d->prints;
        d->img->starts = d->starts;
    } else {
        d->oom = true;
    }
    if (d->oom)
        r = ws_raise(-ENOMEM);
    else if (d->unsupported)
        r = d->unresolved ? WS_PTX_E_NOTFOUND : WS_PTX_E_UNSUPPORTED;
    else
        r = finish_image(d);
    if (r == 0)
        *ret = d->img;
    memcpy(reason, d->reason, sizeof(d->reason));
    ws_arena_reset(&d->tmp);
    return r;
}

// SPDX-License-Identifier: Apache-2.0
/* Calls of functions that CUDA's device code uses without defining them (printf, malloc, …) go to
 * wattshare's own functions in ptx/passes/devlib_text.c.
 *
 * The kernel and the functions that lead to such calls are copied (copies.c). The kernel has the
 * address of struct ws_ptx_lib as a parameter; the functions get that address, the block's number
 * and the thread's number as arguments. Only the kernel itself reads %ctaid and %tid, right where
 * it calls, because later passes give blocks other numbers and replace these registers in kernels
 * only. A path that is never taken costs a kernel nothing.
 *
 * A trap or brkpt stays where it is, behind a call that does not return. So whatever is known
 * about the kernel's control flow remains true. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/devlib.h"
#include "ptx/passes/devlib_private.h"
#include "ptx/analysis/reach.h"
#include "ptx/passes/edit.h"
#include "ptx/passes/pass.h"

#define R(r) ws_opd_reg(r)
#define I(v) ws_opd_imm(v)

enum { PARAM_BYTES_MAX = 4352, N_OWN = 3 };

static const struct system {
    const char *name;
    uint8_t n_rets, n_args;
    uint8_t ret_bytes, arg_bytes[5];
    uint8_t func, use;
} systems[] = {
    {"vprintf", 1, 2, 4, {8, 8}, WS_LIB_F_VPRINTF, WS_LIB_PRINTS},
    {"__assertfail", 0, 5, 0, {8, 8, 4, 8, 8}, WS_LIB_F_ASSERTFAIL, WS_LIB_STOPS},
    {"malloc", 1, 1, 8, {8}, WS_LIB_F_MALLOC, WS_LIB_HEAP},
    {"free", 0, 1, 0, {8}, WS_LIB_F_FREE, WS_LIB_HEAP},
};

/* The one that a function without a body stands for, if it takes and gives what that does. */
static const struct system *system_of(const struct ws_ptx_module *m, uint32_t func)
{
    const struct ws_ptx_func *f = func < m->n_funcs ? &m->funcs[func] : NULL;
    if (!f || !f->is_decl || f->is_entry)
        return NULL;
    for (uint32_t k = 0; k < m->n_aliases; k++)
        if (m->aliases[k].alias == (int32_t)func)
            return NULL;
    for (size_t k = 0; k < WS_ARRAY_SIZE(systems); k++) {
        const struct system *s = &systems[k];
        bool same = !strcmp(f->name, s->name) && f->n_params == s->n_args && f->n_rets == s->n_rets;
        for (uint32_t p = 0; same && p < s->n_args; p++)
            same = f->params[p].size_bytes == s->arg_bytes[p];
        if (same && (!s->n_rets || f->rets[0].size_bytes == s->ret_bytes))
            return s;
    }
    return NULL;
}

static const struct system *calls_system(const struct ws_ptx_module *m, const struct ws_ptx_insn *i)
{
    return i->call && i->call->callee.kind == WS_OPD_SYM
               ? system_of(m, (uint32_t)WS_PTX_SYM_INDEX(i->call->callee.sym))
               : NULL;
}

static bool traps(const struct ws_ptx_insn *i)
{
    return i->op == WS_OP_TRAP || i->op == WS_OP_BRKPT;
}

static uint32_t func_uses(const struct ws_ptx_module *m, const struct ws_ptx_func *f)
{
    uint32_t uses = 0;
    for (uint32_t k = 0; k < f->n_insns && !f->lib; k++) {
        const struct system *s = calls_system(m, &f->insns[k]);
        uses |= s ? s->use : traps(&f->insns[k]) ? (uint32_t)WS_LIB_STOPS : 0;
    }
    return uses;
}

/* Marks the functions that what @func may come to needs, itself among them. @needs: [m->n_funcs],
 * false. */
static int find_needs(const struct ws_ptx_module *m, uint32_t func, bool *needs, uint32_t *ret_uses)
{
    bool *reached = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*reached));
    if (!reached)
        return ws_raise(-ENOMEM);
    *ret_uses = 0;
    int r = ws_ptx_mark_reached(m, &m->funcs[func], reached);
    reached[func] = true;
    for (uint32_t k = 0; k < m->n_funcs; k++) {
        uint32_t uses = reached[k] ? func_uses(m, &m->funcs[k]) : 0;
        needs[k] = uses != 0;
        *ret_uses |= uses;
    }
    if (!r)
        r = ws_ptx_mark_callers(m, reached, needs);
    free(reached);
    return r;
}

int ws_ptx_lib_uses(const struct ws_ptx_module *m, uint32_t func, uint32_t *ret)
{
    bool *needs = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*needs));
    int r = needs ? find_needs(m, func, needs, ret) : ws_raise(-ENOMEM);
    free(needs);
    return ws_forward(r);
}

int ws_ptx_lib_refused(const struct ws_ptx_module *m, uint32_t func, char *ret_text,
                       size_t text_bytes)
{
    const struct ws_ptx_func *f = &m->funcs[func];
    uint32_t uses;
    *ret_text = 0;
    if (!f->is_entry || f->is_decl)
        return ws_ptx_refuse(ret_text, text_bytes, f->line, "no kernel");
    if (m->address_size != 64)
        return ws_ptx_refuse(ret_text, text_bytes, 0, "addresses of 32 bits");
    if (WS_ALIGN_UP(f->param_bytes, 8) + sizeof(uint64_t) + sizeof(struct ws_ptx_fence) +
            sizeof(struct ws_ptx_ctl) >
        PARAM_BYTES_MAX)
        return ws_ptx_refuse(ret_text, text_bytes, f->line,
                             "%llu bytes of parameters leave no room for more",
                             (unsigned long long)f->param_bytes);
    bool *needs = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*needs));
    bool *reached = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*reached)), any = false;
    int r = needs && reached ? find_needs(m, func, needs, &uses) : ws_raise(-ENOMEM);
    for (uint32_t k = 0; !r && k < m->n_funcs; k++)
        any |= needs[k] && !m->funcs[k].is_entry;
    if (!r && any) {
        r = ws_ptx_mark_reached(m, f, reached);
        reached[func] = true;
    }
    for (uint32_t k = 0; !r && any && k < m->n_funcs; k++)
        for (uint32_t i = 0; !r && reached[k] && i < m->funcs[k].n_insns; i++) {
            const struct ws_ptx_insn *n = &m->funcs[k].insns[i];
            if (n->call && n->call->callee.kind != WS_OPD_SYM)
                r = ws_ptx_refuse(ret_text, text_bytes, n->line,
                                  "a call through a register, of functions that print, stop or use "
                                  "the heap");
        }
    free(needs);
    free(reached);
    return r;
}

int ws_ptx_lib_reached(const struct ws_ptx_module *m, const uint32_t *funcs, uint32_t n, bool *io)
{
    struct ws_ptx_reach r;
    int e = ws_ptx_reach_init(&r, m);
    if (e)
        return ws_forward(e);
    for (uint32_t k = 0; k < n; k++) {
        ws_ptx_reach_add(&r, &m->funcs[funcs[k]]);
        io[funcs[k]] = true;
    }
    for (uint32_t k = 0; k < r.n; k++)
        io[r.found[k]] = true;
    ws_ptx_reach_deinit(&r);
    return 0;
}

/* ---- the functions ---- */

/* A name that nothing in the module has, in its arena; NULL: no memory. */
static const char *free_name(struct ws_ptx_module *m, const char *base)
{
    char name[64];
    int n = snprintf(name, sizeof(name), "%s", base);
    for (unsigned k = 1; ws_ptx_find_func(m, name); k++)
        n = snprintf(name, sizeof(name), "%s_%u", base, k);
    return ws_arena_strndup(&m->arena, name, (size_t)n);
}

static int move_calls(struct ws_ptx_module *m, struct ws_ptx_func *f, uint32_t base)
{
    for (uint32_t k = 0; k < f->n_insns; k++) {
        if (!f->insns[k].call)
            continue;
        struct ws_ptx_call *c = ws_arena_array(&m->arena, 1, sizeof(*c));
        if (!c)
            return ws_raise(-ENOMEM);
        *c = *f->insns[k].call;
        c->callee.sym =
            (int32_t)((base + (uint32_t)WS_PTX_SYM_INDEX(c->callee.sym)) | WS_PTX_SYM_FUNC);
        f->insns[k].call = c;
    }
    return 0;
}

/* Index of the first of them in @m, to which they are added if they aren't there. */
static int find_library(struct ws_ptx_module *m, uint32_t *ret)
{
    for (uint32_t k = 0; k < m->n_funcs; k++)
        if (m->funcs[k].lib) {
            *ret = k;
            return 0;
        }
    struct ws_ptx_module *lib = NULL;
    int r = ws_ptx_parse(&lib, ws_devlib_text, strlen(ws_devlib_text), NULL, NULL);
    if (r)
        return r < 0 ? ws_forward(r) : ws_fold(r);
    uint32_t base = m->n_funcs;
    struct ws_ptx_func *funcs =
        ws_arena_array(&m->arena, (size_t)base + _WS_LIB_F_N, sizeof(*funcs));
    r = funcs ? 0 : ws_raise(-ENOMEM);
    if (!r)
        memcpy(funcs, m->funcs, base * sizeof(*funcs));
    for (uint32_t k = 0; !r && k < _WS_LIB_F_N; k++) {
        struct ws_ptx_func *f = &funcs[base + k];
        *f = lib->funcs[k];
        f->lib = true;
        f->name = free_name(m, f->name);
        r = f->name ? move_calls(m, f, base) : ws_raise(-ENOMEM);
    }
    ws_arena_take(&m->arena, &lib->arena);
    ws_ptx_module_free(lib);
    if (r)
        return r;
    m->funcs = funcs;
    m->n_funcs += _WS_LIB_F_N;
    *ret = base;
    return 0;
}

/* ---- copies ---- */

struct lib {
    struct ws_ptx_edit e;
    const struct ws_ptx_copies *copies; /* helper: the first of the library's functions */
    bool is_entry;
    int32_t own[N_OWN]; /* registers of a function: the library's address, block, thread */
};

static int32_t index_of(struct ws_ptx_edit *e, enum ws_ptx_sreg which, unsigned d)
{
    int32_t r = ws_ptx_edit_reg(e, WS_T_U32);
    WS_EDIT(e, MOV, U32, R(r), ws_opd_sreg(which, (uint8_t)d));
    return r;
}

/* What every one of the functions gets; in a kernel it is put together where it is needed. */
static void own_values(struct lib *w, struct ws_ptx_operand *ret)
{
    struct ws_ptx_edit *e = &w->e;
    if (w->is_entry) {
        int32_t block = ws_ptx_edit_reg(e, WS_T_U64), at = ws_ptx_edit_reg(e, WS_T_U64),
                thread = ws_ptx_edit_reg(e, WS_T_U32);
        w->own[0] = ws_ptx_edit_load(e, WS_T_U64, 0);
        WS_EDIT(e, MOV, U64, R(block), I(0));
        WS_EDIT(e, MOV, U32, R(thread), I(0));
        for (unsigned d = 3; d-- > 0;) {
            static const uint8_t bits[] = {32, 16, 16};
            WS_EDIT(e, MUL, U32, R(at), R(index_of(e, WS_SR_CTAID, d)), I(1))->sub = WS_SUB_WIDE;
            WS_EDIT(e, SHL, B64, R(block), R(block), I(bits[d]));
            WS_EDIT(e, OR, B64, R(block), R(block), R(at));
            WS_EDIT(e, SHL, B32, R(thread), R(thread), I(10));
            WS_EDIT(e, OR, B32, R(thread), R(thread), R(index_of(e, WS_SR_TID, d)));
        }
        w->own[1] = block;
        w->own[2] = thread;
    }
    for (int k = 0; k < N_OWN; k++)
        ret[k] = R(w->own[k]);
}

static void write_stop(struct lib *w, const struct ws_ptx_insn *old)
{
    struct ws_ptx_edit *e = &w->e;
    struct ws_ptx_operand args[2 + N_OWN];
    int32_t kind = ws_ptx_edit_reg(e, WS_T_U32), va = ws_ptx_edit_reg(e, WS_T_U64);
    int32_t over = old->guard >= 0 ? ws_ptx_edit_label(e) : -1;
    if (old->guard >= 0)
        ws_ptx_edit_branch_if(e, ws_ptx_edit_old_reg(e, old->guard), !old->guard_neg, over);
    WS_EDIT(e, MOV, U32, R(kind), I(WS_LIB_TRAP));
    WS_EDIT(e, MOV, U64, R(va), I(0));
    args[0] = R(kind);
    args[1] = R(va);
    own_values(w, &args[2]);
    ws_ptx_edit_call(e, w->copies->helper + WS_LIB_F_STOP, 0, NULL, 2 + N_OWN, args);
    if (over >= 0)
        ws_ptx_edit_place(e, over);
}

static void write_all(struct lib *w, const struct ws_ptx_func *f)
{
    struct ws_ptx_edit *e = &w->e;
    struct ws_ptx_operand more[N_OWN];
    static const enum ws_ptx_type types[N_OWN] = {WS_T_B64, WS_T_B64, WS_T_B32};
    w->is_entry = f->is_entry;
    for (int k = 0; k < N_OWN && !f->is_entry; k++)
        w->own[k] = ws_ptx_edit_param(e, types[k]);
    for (uint32_t n = 0; n < f->n_insns; n++) {
        const struct ws_ptx_insn *old = &f->insns[n];
        const struct system *s = calls_system(e->m, old);
        int64_t to =
            s ? (int64_t)w->copies->helper + s->func : ws_ptx_copy_of_callee(w->copies, old);
        ws_ptx_edit_skip(e, n);
        if (traps(old))
            write_stop(w, old);
        if (to >= 0)
            own_values(w, more);
        struct ws_ptx_insn *i = ws_ptx_edit_copy_only(e, n);
        if (to >= 0)
            ws_ptx_edit_redirect(e, i, (uint32_t)to, N_OWN, more);
    }
    ws_ptx_edit_old_end(e);
}

static int needs_copy(const struct ws_ptx_module *m, uint32_t func, bool *needs)
{
    uint32_t uses;
    return find_needs(m, func, needs, &uses);
}

static bool is_copy(const struct ws_ptx_func *f, uint32_t func)
{
    return f->lib_of == func + 1 && !f->fence;
}

static int write_copy(struct ws_ptx_module *m, uint32_t func, const struct ws_ptx_copies *c,
                      uint32_t *ret)
{
    struct lib w = {.copies = c};
    bool is_entry = m->funcs[func].is_entry;
    ws_ptx_edit_begin(&w.e, m, func, "$lib", is_entry ? sizeof(uint64_t) : 0);
    if (!w.e.failed) {
        w.e.f.link = is_entry ? w.e.f.link : WS_LINK_NONE;
        w.e.f.lib_of = func + 1;
        write_all(&w, &m->funcs[func]);
    }
    return ws_ptx_edit_end(&w.e, ret);
}

int ws_ptx_lib(struct ws_ptx_module *m, uint32_t func, uint32_t *ret_func)
{
    static const struct ws_ptx_copier copier = {needs_copy, is_copy, write_copy};
    uint32_t base = 0;
    int r = find_library(m, &base);
    return ws_forward(r ? r : ws_ptx_copy_kernel(m, func, &copier, base, ret_func));
}

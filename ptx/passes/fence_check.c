// SPDX-License-Identifier: Apache-2.0
/* Finds the accesses that a fence must check, and refuses kernels with accesses that it cannot
 * check.
 *
 * Checked are loads, stores, atomics, reductions, copies, and loads and stores of matrices, if
 * their address is in a register; in the kernel and in the functions that it calls. Shared, local,
 * parameter and constant memory belong to a block, a thread or a module, and the hardware limits
 * them. (An address beyond a block's shared or a thread's local memory is a fault of the device,
 * which no fence prevents.) A device with texture hardware limits textures and surfaces; for other
 * devices, texture.c has made loads and stores of these instructions before. Prefetches change
 * nothing and never fault. All other accesses are refused by name: bulk copies, tensor maps,
 * multicast and cluster memory, asynchronous stores, discard. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/edit.h"
#include "ptx/passes/fence.h"
#include "ptx/passes/pass.h"

enum { PARAM_BYTES_MAX = 4352 };

static const struct ws_ptx_operand *address_of(const struct ws_ptx_insn *i, uint64_t *ret_bytes)
{
    unsigned n = WS_MAX(i->vec, 1);
    if (i->op == WS_OP_CP_ASYNC) {
        *ret_bytes = (uint64_t)i->operands[2].imm;
        return &i->operands[1];
    }
    if (!ws_ptx_does(i, WS_DOES_LOAD | WS_DOES_STORE | WS_DOES_UPDATE))
        return NULL;
    *ret_bytes = (uint64_t)n * ws_ptx_type_bytes((enum ws_ptx_type)i->types[0]);
    return &i->operands[ws_ptx_writes_first(i)]; /* behind a destination */
}

/* Sets lines, length and bits from ".load.a.sync.aligned.row.m16n16k16.global.f16". */
static bool matrix_extent(const char *ext, struct ws_fence_access *a)
{
    static const struct {
        const char *word;
        uint32_t bits;
    } types[] = {{".b1", 1},   {".s4", 4},    {".u4", 4},    {".s8", 8},
                 {".u8", 8},   {".f16", 16},  {".bf16", 16}, {".s32", 32},
                 {".f32", 32}, {".tf32", 32}, {".f64", 64}};
    unsigned m, n, k;
    const char *shape = strstr(ext, ".m"), *type = strrchr(ext, '.');
    char which = !strncmp(ext, ".load.", 6) ? ext[6] : 'd';
    bool row = strstr(ext, ".row") != NULL;
    if (!shape || !type || sscanf(shape, ".m%3un%3uk%3u", &m, &n, &k) != 3 ||
        (!row && !strstr(ext, ".col")))
        return false;
    uint32_t down = which == 'b' ? k : m, across = which == 'a' ? k : n;
    a->lines = row ? down : across;
    a->length = row ? across : down;
    for (size_t t = 0; t < WS_ARRAY_SIZE(types); t++)
        if (!strcmp(type, types[t].word))
            a->bits = types[t].bits;
    return a->bits && a->lines && a->lines <= 256 && a->length && a->length <= 256;
}

static enum ws_fence_kind classify_wmma(const struct ws_ptx_insn *i, struct ws_fence_access *ret)
{
    const char *ext = i->ext ? i->ext : "";
    bool load = !strncmp(ext, ".load.", 6);
    if (!strncmp(ext, ".mma.", 5) || strstr(ext, ".shared"))
        return WS_FENCE_NONE;
    if ((!load && strncmp(ext, ".store.", 7) != 0) || i->n_operands < 2)
        return WS_FENCE_REFUSED;
    const struct ws_ptx_operand *o = &i->operands[load];
    *ret = (struct ws_fence_access){.reg = o->reg,
                                    .sym = -1,
                                    .offset = o->imm,
                                    .generic = !strstr(ext, ".global"),
                                    .stride = i->n_operands > 2 ? &i->operands[2] : NULL};
    if (o->kind != WS_OPD_ADDR || o->n || o->reg < 0 || !matrix_extent(ext, ret))
        return WS_FENCE_REFUSED;
    if (ret->stride && ret->stride->kind != WS_OPD_REG && ret->stride->kind != WS_OPD_IMM)
        return WS_FENCE_REFUSED;
    return WS_FENCE_MATRIX;
}

static enum ws_fence_kind classify_other(const struct ws_ptx_insn *i)
{
    switch (ws_ptx_ops[i->op].effect) {
    case WS_EFFECT_READ:
    case WS_EFFECT_WRITE:
    case WS_EFFECT_ATOMIC:
        if (ws_ptx_ops[i->op].mix == WS_MIX_TEX)
            return WS_FENCE_NONE;
        return i->space == WS_SP_SHARED ? WS_FENCE_NONE : WS_FENCE_REFUSED;
    case WS_EFFECT_MATRIX:
        return ws_ptx_does(i, WS_DOES_HIDE) ? WS_FENCE_REFUSED : WS_FENCE_NONE;
    default:
        return WS_FENCE_NONE;
    }
}

enum ws_fence_kind ws_fence_classify(const struct ws_ptx_insn *i, struct ws_fence_access *ret)
{
    uint64_t bytes = 0;
    const struct ws_ptx_operand *o = address_of(i, &bytes);
    uint8_t space = i->op == WS_OP_CP_ASYNC ? i->space2 : i->space;
    if (i->op == WS_OP_WMMA)
        return classify_wmma(i, ret);
    if (!o)
        return classify_other(i);
    if (space != WS_SP_GLOBAL && space != WS_SP_GENERIC)
        return WS_FENCE_NONE;
    if (o->kind != WS_OPD_ADDR || o->n)
        return WS_FENCE_REFUSED;
    *ret = (struct ws_fence_access){.reg = o->reg,
                                    .sym = o->reg < 0 ? o->sym : -1,
                                    .offset = o->imm,
                                    .bytes = bytes,
                                    .generic = space == WS_SP_GENERIC};
    return WS_FENCE_ACCESS;
}

/* Whether the access stays inside the variable it names. */
static bool inside_variable(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                            const struct ws_fence_access *a)
{
    const struct ws_ptx_var *v = NULL;
    if (a->sym >= 0 && WS_PTX_SYM_KIND(a->sym) == WS_PTX_SYM_VAR)
        v = &m->vars[WS_PTX_SYM_INDEX(a->sym)];
    else if (a->sym >= 0 && WS_PTX_SYM_KIND(a->sym) == WS_PTX_SYM_LOCALVAR)
        v = ws_ptx_localvar(f, (uint32_t)WS_PTX_SYM_INDEX(a->sym));
    return v && a->offset >= 0 && (uint64_t)a->offset <= v->size_bytes &&
           a->bytes <= v->size_bytes - (uint64_t)a->offset;
}

/* ---- functions ---- */
static bool has_checks(const struct ws_ptx_func *f)
{
    struct ws_fence_access a;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        enum ws_fence_kind what = ws_fence_classify(&f->insns[k], &a);
        if (what == WS_FENCE_MATRIX || (what == WS_FENCE_ACCESS && a.reg >= 0))
            return true;
    }
    return false;
}

int ws_fence_needs(const struct ws_ptx_module *m, uint32_t func, bool *needs)
{
    bool *reached = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*reached));
    if (!reached)
        return ws_raise(-ENOMEM);
    int r = ws_ptx_mark_reached(m, &m->funcs[func], reached);
    for (uint32_t k = 0; k < m->n_funcs; k++) {
        reached[k] &= !m->funcs[k].fence;
        needs[k] = reached[k] && has_checks(&m->funcs[k]);
    }
    if (!r)
        r = ws_ptx_mark_callers(m, reached, needs);
    free(reached);
    return r;
}

/* ---- refusals ---- */
/* A function that is called gets what the checks need as arguments, which a call through a register
 * can't pass: who is called that way takes what its type says. */
static int calls_refused(const struct ws_ptx_func *f, bool any_needs, char *text, size_t text_bytes)
{
    for (uint32_t k = 0; k < f->n_insns; k++)
        if (f->insns[k].call && f->insns[k].call->callee.kind != WS_OPD_SYM && any_needs)
            return ws_ptx_refuse(text, text_bytes, f->insns[k].line,
                                 "a call through a register, of functions with accesses");
    return 0;
}

static int func_refused(const struct ws_ptx_module *m, const struct ws_ptx_func *f, char *text,
                        size_t text_bytes)
{
    if (f->is_decl && !ws_ptx_is_system_func(f->name))
        return ws_ptx_refuse(text, text_bytes, f->line, "calls %s, which isn't known", f->name);
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        struct ws_fence_access a;
        enum ws_fence_kind what = ws_fence_classify(i, &a);
        if (what == WS_FENCE_REFUSED)
            return ws_ptx_refuse(text, text_bytes, i->line, "%s: an access that can't be checked",
                                 ws_ptx_op_name((enum ws_ptx_op)i->op));
        if ((what == WS_FENCE_ACCESS || what == WS_FENCE_MATRIX) && a.reg >= 0 &&
            ws_ptx_type_bytes(f->regs[a.reg].type) != 8)
            return ws_ptx_refuse(text, text_bytes, i->line, "%s: an address that has not 64 bits",
                                 ws_ptx_op_name((enum ws_ptx_op)i->op));
        if (what == WS_FENCE_ACCESS && a.reg < 0 && !inside_variable(m, f, &a))
            return ws_ptx_refuse(text, text_bytes, i->line,
                                 "an access beside the variable it names");
    }
    return 0;
}

int ws_ptx_fence_refused(const struct ws_ptx_module *m, uint32_t func, char *ret_text,
                         size_t text_bytes)
{
    const struct ws_ptx_func *f = &m->funcs[func];
    *ret_text = 0;
    if (!f->is_entry || f->is_decl)
        return ws_ptx_refuse(ret_text, text_bytes, f->line, "no kernel");
    if (m->code)
        return ws_ptx_refuse(ret_text, text_bytes, 0, "machine code");
    if (WS_ALIGN_UP(f->param_bytes, 8) + sizeof(struct ws_ptx_fence) + sizeof(struct ws_ptx_ctl) >
        PARAM_BYTES_MAX)
        return ws_ptx_refuse(ret_text, text_bytes, f->line,
                             "%llu bytes of parameters leave no room for more",
                             (unsigned long long)f->param_bytes);
    if (m->address_size != 64)
        return ws_ptx_refuse(ret_text, text_bytes, 0, "addresses of 32 bits");
    bool *reached = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*reached)),
         *needs = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*needs)), any_needs = false;
    int r = reached && needs ? ws_fence_needs(m, func, needs) : ws_raise(-ENOMEM);
    if (!r) {
        r = ws_ptx_mark_reached(m, f, reached);
        reached[func] = true;
    }
    for (uint32_t k = 0; k < m->n_funcs && !r; k++)
        any_needs |= needs[k];
    for (uint32_t k = 0; k < m->n_funcs && !r; k++)
        if (reached[k])
            r = calls_refused(&m->funcs[k], any_needs, ret_text, text_bytes);
    for (uint32_t k = 0; k < m->n_funcs && !r; k++)
        if (reached[k] && !m->funcs[k].fence)
            r = func_refused(m, &m->funcs[k], ret_text, text_bytes);
    free(reached);
    free(needs);
    return r;
}

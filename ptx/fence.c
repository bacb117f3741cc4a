// SPDX-License-Identifier: Apache-2.0
/* Checks before accesses.
 *
 * The fast check is three instructions: distance of the register from the client's largest range, compared with that range's length
 * less a slack of WS_FENCE_SLACK, and a branch that isn't taken. It passes any access at [reg + 0 … reg + slack). What it doesn't pass
 * goes to a slow path at the function's end, which calls ws$fence: shared and local windows, then all ranges, to the byte; from
 * there back, or the thread notes the fault and ends.
 *
 * Accesses of a basic block through the same register, not written between them, or through registers that differ from it by
 * constants, are one group, checked before the first of them for the bytes from the lowest to the highest. That moves checks
 * forward, past other accesses: a kernel that would go outside ends a little earlier, and it is wrong either way. Guarded accesses are
 * checked under their guard, each by itself. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/edit.h"
#include "ptx/pass.h"

#define R(r) ws_opd_reg(r)
#define I(v) ws_opd_imm(v)

/* The slow check, as the PTX that it is: whether [a, a + n) is the client's. */
static const char helper_text[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
                                  ".func (.reg .b32 good) ws$fence(.reg .b64 a, .reg .b64 n, .reg "
                                  ".b32 generic, .reg .b64 ranges)\n{\n"
                                  ".reg .pred %p<8>;\n.reg .b32 %r<4>;\n.reg .b64 %rd<6>;\n"
                                  "mov.u32 good, 1;\n"
                                  "setp.eq.u32 %p1, generic, 0;\n"
                                  "@%p1 bra GLOBAL;\n"
                                  "isspacep.shared %p2, a;\n"
                                  "@%p2 bra OUT;\n"
                                  "isspacep.local %p3, a;\n"
                                  "@%p3 bra OUT;\n"
                                  "GLOBAL:\n"
                                  "ld.global.u32 %r1, [ranges];\n"
                                  "NEXT:\n"
                                  "setp.eq.u32 %p4, %r1, 0;\n"
                                  "@%p4 bra BAD;\n"
                                  "ld.global.u64 %rd1, [ranges+8];\n"
                                  "ld.global.u64 %rd2, [ranges+16];\n"
                                  "add.u64 ranges, ranges, 16;\n"
                                  "sub.u32 %r1, %r1, 1;\n"
                                  "sub.u64 %rd3, a, %rd1;\n"
                                  "setp.lt.u64 %p5, %rd2, n;\n" /* shorter than the access */
                                  "@%p5 bra NEXT;\n"
                                  "sub.u64 %rd4, %rd2, n;\n"
                                  "setp.gt.u64 %p6, %rd3, %rd4;\n"
                                  "@%p6 bra NEXT;\n"
                                  "OUT:\n"
                                  "ret;\n"
                                  "BAD:\n"
                                  "mov.u32 good, 0;\n"
                                  "ret;\n"
                                  "}\n";

/* An access that needs a check. */
struct access {
    int32_t reg; /* of the address; -1: none, that is, an absolute or a variable's address */
    int32_t sym; /* variable, or -1 */
    int64_t offset;
    uint64_t bytes;
    bool generic;
};

/* A check to be put before an instruction. */
struct group {
    uint32_t first; /* instruction */
    int32_t reg;
    int64_t low, high; /* bytes from reg: [low, high) */
    bool generic;
    int32_t next; /* of the same instruction: index, or -1 */
};

/* What is known of a register inside one basic block: it is root + offset, where root had its version then. */
struct known {
    uint32_t version; /* counts writes */
    uint32_t block;   /* in which the rest was learnt; + 1 */
    int32_t root;
    uint32_t root_version;
    int64_t offset;
    int32_t group; /* of accesses through it as a root, at group_version */
    uint32_t group_block, group_version;
};

struct fence {
    struct ws_ptx_edit e;
    const struct ws_ptx_func *f;
    struct group *groups;
    size_t n_groups, cap_groups;
    int32_t *at;        /* [n_insns]: first group before it, or -1 */
    struct known *regs; /* [n_regs] */
    int32_t low, limit; /* registers */
    struct slow {
        int32_t label, back;
        int32_t base; /* register that holds the address */
        int64_t low;
        uint64_t bytes;
        bool generic;
    } * slow;
    size_t n_slow, cap_slow;
};

enum { ACCESS_NONE, ACCESS_CHECKED, ACCESS_REFUSED };

static const struct ws_ptx_operand *address_of(const struct ws_ptx_insn *i, uint64_t *ret_bytes)
{
    unsigned n = WS_MAX(i->vec, 1);
    switch (i->op) {
    case WS_OP_LD:
    case WS_OP_LDU:
    case WS_OP_ATOM:
        *ret_bytes = (uint64_t)n * ws_ptx_type_bytes((enum ws_ptx_type)i->types[0]);
        return &i->operands[1];
    case WS_OP_ST:
    case WS_OP_RED:
        *ret_bytes = (uint64_t)n * ws_ptx_type_bytes((enum ws_ptx_type)i->types[0]);
        return &i->operands[0];
    case WS_OP_CP_ASYNC:
        *ret_bytes = (uint64_t)i->operands[2].imm;
        return &i->operands[1];
    default:
        return NULL;
    }
}

/* What @i is to the fence. */
static int classify(const struct ws_ptx_insn *i, struct access *ret)
{
    uint64_t bytes = 0;
    const struct ws_ptx_operand *o = address_of(i, &bytes);
    uint8_t space = i->op == WS_OP_CP_ASYNC ? i->space2 : i->space;
    if (!o) {
        switch (ws_ptx_ops[i->op].side) {
        case WS_SIDE_READ:
        case WS_SIDE_WRITE:
        case WS_SIDE_ATOMIC:
            if (ws_ptx_ops[i->op].mix == WS_MIX_TEX && i->op != WS_OP_TENSORMAP)
                return ACCESS_NONE; /* bounded by the texture */
            return i->space == WS_SP_SHARED ? ACCESS_NONE : ACCESS_REFUSED;
        case WS_SIDE_MATRIX:
            if (i->op == WS_OP_WMMA)
                return i->ext && (strstr(i->ext, ".mma") || strstr(i->ext, ".shared"))
                           ? ACCESS_NONE
                           : ACCESS_REFUSED;
            return i->op == WS_OP_WGMMA || i->op == WS_OP_TCGEN05 ? ACCESS_REFUSED : ACCESS_NONE;
        default:
            return ACCESS_NONE;
        }
    }
    if (space != WS_SP_GLOBAL && space != WS_SP_GENERIC)
        return ACCESS_NONE;
    if (o->kind != WS_OPD_ADDR || o->n)
        return ACCESS_REFUSED;
    *ret = (struct access){.reg = o->reg,
                           .sym = o->reg < 0 ? o->sym : -1,
                           .offset = o->imm,
                           .bytes = bytes,
                           .generic = space == WS_SP_GENERIC};
    return ACCESS_CHECKED;
}

/* Whether the access stays inside the variable it names. */
static bool inside_variable(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                            const struct access *a)
{
    const struct ws_ptx_var *v = NULL;
    if (a->sym >= 0 && WS_PTX_SYM_KIND(a->sym) == WS_PTX_SYM_VAR)
        v = &m->vars[WS_PTX_SYM_INDEX(a->sym)];
    else if (a->sym >= 0 && WS_PTX_SYM_KIND(a->sym) == WS_PTX_SYM_LOCALVAR)
        v = ws_ptx_localvar(f, (uint32_t)WS_PTX_SYM_INDEX(a->sym));
    return v && a->offset >= 0 && (uint64_t)a->offset <= v->size_bytes &&
           a->bytes <= v->size_bytes - (uint64_t)a->offset;
}

/* Functions are called as they are, so they must make no access that would need a check. The system's don't go by the client's
 * pointers. */
static int function_refused(const struct ws_ptx_module *m, const struct ws_ptx_func *f, char *text,
                            size_t text_bytes)
{
    struct access a;
    if (f->is_decl && !ws_ptx_is_system_func(f->name))
        return ws_ptx_refuse(text, text_bytes, f->line, "calls %s, which isn't known", f->name);
    for (uint32_t k = 0; k < f->n_insns; k++) {
        int what = classify(&f->insns[k], &a);
        if (what == ACCESS_REFUSED ||
            (what == ACCESS_CHECKED && !(a.reg < 0 && inside_variable(m, f, &a))))
            return ws_ptx_refuse(text, text_bytes, f->insns[k].line,
                                 "a function has accesses, which aren't checked");
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
    if (WS_ALIGN_UP(f->param_bytes, 8) + sizeof(struct ws_ptx_fence) + sizeof(struct ws_ptx_ctl) >
        4352)
        return ws_ptx_refuse(ret_text, text_bytes, f->line,
                             "%llu bytes of parameters leave no room for more",
                             (unsigned long long)f->param_bytes);
    if (m->address_size != 64)
        return ws_ptx_refuse(ret_text, text_bytes, 0, "addresses of 32 bits");
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        struct access a;
        int what = classify(i, &a);
        if (what == ACCESS_REFUSED)
            return ws_ptx_refuse(ret_text, text_bytes, i->line,
                                 "%s: an access that can't be checked",
                                 ws_ptx_op_name((enum ws_ptx_op)i->op));
        if (what == ACCESS_CHECKED && a.reg < 0 && !inside_variable(m, f, &a))
            return ws_ptx_refuse(ret_text, text_bytes, i->line,
                                 "an access beside the variable it names");
    }
    bool *reached = ws_alloc_array((size_t)m->n_funcs + 1, sizeof(*reached));
    if (!reached)
        return ws_raise(-ENOMEM);
    ws_ptx_mark_reached(m, f, reached);
    int r = 0;
    for (uint32_t k = 0; k < m->n_funcs && !r; k++)
        if (reached[k])
            r = function_refused(m, &m->funcs[k], ret_text, text_bytes);
    free(reached);
    return r;
}

/* ---- which checks, where ---- */
static void wrote(struct fence *w, const struct ws_ptx_operand *o)
{
    if (o->kind == WS_OPD_REG && o->reg >= 0)
        w->regs[o->reg].version++;
    for (uint16_t k = 0; k < o->n; k++)
        wrote(w, &o->v[k]);
}

/* The register and offset that @reg stands for in this block. */
static void root_of(const struct fence *w, int32_t reg, uint32_t block, int32_t *ret_root,
                    int64_t *ret_offset)
{
    const struct known *k = &w->regs[reg];
    *ret_root = reg;
    *ret_offset = 0;
    if (k->block == block && w->regs[k->root].version == k->root_version) {
        *ret_root = k->root;
        *ret_offset = k->offset;
    }
}

/* Learns from add.s64 %a, %b, constant. Called before the write is counted. */
static void learn(struct fence *w, const struct ws_ptx_insn *i, uint32_t block)
{
    const struct ws_ptx_operand *o = i->operands;
    if (i->op != WS_OP_ADD || i->guard >= 0 ||
        ws_ptx_type_bytes((enum ws_ptx_type)i->types[0]) != 8 || i->n_operands != 3 ||
        o[0].kind != WS_OPD_REG || o[1].kind != WS_OPD_REG || o[2].kind != WS_OPD_IMM ||
        o[0].reg == o[1].reg || llabs(o[2].imm) > INT32_MAX)
        return;
    int32_t root;
    int64_t offset;
    root_of(w, o[1].reg, block, &root, &offset);
    struct known *k = &w->regs[o[0].reg];
    if (root == o[0].reg || llabs(offset) > INT32_MAX)
        return;
    k->block = block;
    k->root = root;
    k->root_version = w->regs[root].version;
    k->offset = offset + o[2].imm;
}

static struct group *new_group(struct fence *w, uint32_t insn, const struct access *a,
                               int64_t offset, int32_t reg)
{
    void *v = w->groups;
    if (ws_grow(&v, &w->cap_groups, w->n_groups + 1, sizeof(*w->groups)) < 0) {
        w->e.failed = true;
        return NULL;
    }
    w->groups = v;
    struct group *g = &w->groups[w->n_groups];
    *g = (struct group){.first = insn,
                        .reg = reg,
                        .low = offset,
                        .high = offset + (int64_t)a->bytes,
                        .generic = a->generic,
                        .next = w->at[insn]};
    w->at[insn] = (int32_t)w->n_groups++;
    return g;
}

/* Whether @a, at root + @offset, can be checked with group @g: close enough for one fast check. */
static bool joins(const struct group *g, const struct access *a, int64_t offset)
{
    int64_t low = WS_MIN(g->low, offset), high = WS_MAX(g->high, offset + (int64_t)a->bytes);
    return g->generic == a->generic && high - low <= WS_FENCE_SLACK;
}

static void plan_access(struct fence *w, uint32_t insn, uint32_t block, const struct access *a)
{
    int32_t root = a->reg;
    int64_t offset = 0;
    if (w->f->insns[insn].guard < 0)
        root_of(w, a->reg, block, &root, &offset);
    offset += a->offset;
    struct known *k = &w->regs[root];
    if (w->f->insns[insn].guard < 0 && k->group_block == block && k->group_version == k->version &&
        joins(&w->groups[k->group], a, offset)) {
        struct group *g = &w->groups[k->group];
        g->low = WS_MIN(g->low, offset);
        g->high = WS_MAX(g->high, offset + (int64_t)a->bytes);
        return;
    }
    if (!new_group(w, insn, a, offset, root) || w->f->insns[insn].guard >= 0)
        return;
    k->group = (int32_t)w->n_groups - 1;
    k->group_block = block;
    k->group_version = k->version;
}

static void plan(struct fence *w, const struct ws_ptx_cfg *cfg)
{
    for (uint32_t n = 0; n < w->f->n_insns && !w->e.failed; n++) {
        const struct ws_ptx_insn *i = &w->f->insns[n];
        uint32_t block = cfg->block_of[n] + 1;
        struct access a;
        if (classify(i, &a) == ACCESS_CHECKED && a.reg >= 0)
            plan_access(w, n, block, &a);
        if (i->n_operands && ws_ptx_ops[i->op].side != WS_SIDE_WRITE &&
            ws_ptx_ops[i->op].side != WS_SIDE_CONTROL) {
            learn(w, i, block);
            wrote(w, &i->operands[0]);
        }
        if (i->call)
            for (uint32_t k = 0; k < i->call->n_rets; k++)
                wrote(w, &i->call->rets[k]);
    }
}

/* ---- writing ---- */
/* Before an access, under its guard. */
static void write_check(struct fence *w, const struct group *g, int32_t guard, bool guard_neg)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t base = g->reg, apart = ws_ptx_edit_reg(e, WS_T_U64), p = ws_ptx_edit_reg(e, WS_T_PRED);
    /* The fast check is for [base, base + slack): another base where the group isn't in it. */
    bool moved = g->low < 0 || g->high > WS_FENCE_SLACK;
    if (moved) {
        base = ws_ptx_edit_reg(e, WS_T_U64);
        WS_EDIT(e, ADD, S64, R(base), R(g->reg), I(g->low));
    }
    WS_EDIT(e, SUB, S64, R(apart), R(base), R(w->low));
    struct ws_ptx_insn *i = WS_EDIT(e, SETP, U64, R(p), R(apart), R(w->limit));
    i->cmp = WS_CMP_GE;
    void *v = w->slow;
    if (ws_grow(&v, &w->cap_slow, w->n_slow + 1, sizeof(*w->slow)) < 0) {
        e->failed = true;
        return;
    }
    w->slow = v;
    struct slow *s = &w->slow[w->n_slow++];
    *s = (struct slow){.label = ws_ptx_edit_label(e),
                       .back = ws_ptx_edit_label(e),
                       .base = base,
                       .low = moved ? 0 : g->low,
                       .bytes = (uint64_t)(g->high - g->low),
                       .generic = g->generic};
    if (guard >= 0) { /* only who makes the access is asked */
        int32_t both = ws_ptx_edit_reg(e, WS_T_PRED), on = guard;
        if (guard_neg) {
            on = ws_ptx_edit_reg(e, WS_T_PRED);
            WS_EDIT(e, NOT, PRED, R(on), R(guard));
        }
        WS_EDIT(e, AND, PRED, R(both), R(p), R(on));
        p = both;
    }
    ws_ptx_edit_guard(WS_EDIT(e, BRA, NONE, ws_opd_label(s->label)), p, false);
    ws_ptx_edit_place(e, s->back);
}

static void write_slow(struct fence *w, const struct slow *s, uint32_t helper, int32_t end)
{
    struct ws_ptx_edit *e = &w->e;
    ws_ptx_edit_place(e, s->label);
    int32_t a = s->base, good = ws_ptx_edit_reg(e, WS_T_B32), p = ws_ptx_edit_reg(e, WS_T_PRED);
    if (s->low) {
        a = ws_ptx_edit_reg(e, WS_T_U64);
        WS_EDIT(e, ADD, S64, R(a), R(s->base), I(s->low));
    }
    int32_t n = ws_ptx_edit_reg(e, WS_T_U64), generic = ws_ptx_edit_reg(e, WS_T_U32);
    WS_EDIT(e, MOV, U64, R(n), I((int64_t)s->bytes));
    WS_EDIT(e, MOV, U32, R(generic), I(s->generic));
    int32_t ranges = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_fence, ranges));
    ws_ptx_edit_call(e, helper, 1, (struct ws_ptx_operand[]){R(good)}, 4,
                     (struct ws_ptx_operand[]){R(a), R(n), R(generic), R(ranges)});
    WS_EDIT(e, SETP, U32, R(p), R(good), I(0))->cmp = WS_CMP_NE;
    ws_ptx_edit_guard(WS_EDIT(e, BRA, NONE, ws_opd_label(s->back)), p, false);
    /* The first that goes outside leaves its address; the rest end, and what they would have done is lost. */
    int32_t fault = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_fence, fault)),
            old = ws_ptx_edit_reg(e, WS_T_B64);
    struct ws_ptx_insn *i = WS_EDIT(e, ATOM, B64, R(old), ws_opd_at(fault, 0), I(0), I(1));
    i->space = WS_SP_GLOBAL;
    i->sub = WS_SUB_CAS;
    WS_EDIT(e, SETP, U64, R(p), R(old), I(0))->cmp = WS_CMP_NE;
    ws_ptx_edit_guard(WS_EDIT(e, BRA, NONE, ws_opd_label(end)), p, false);
    WS_EDIT(e, ST, U64, ws_opd_at(fault, 8), R(a))->space = WS_SP_GLOBAL;
    WS_EDIT(e, BRA, NONE, ws_opd_label(end));
}

/* Index of ws$fence in @m, which is added if it isn't there. */
static int find_helper(struct ws_ptx_module *m, uint32_t *ret)
{
    for (uint32_t k = 0; k < m->n_funcs; k++)
        if (!strcmp(m->funcs[k].name, "ws$fence")) {
            *ret = k;
            return 0;
        }
    struct ws_ptx_module *helper = NULL;
    int r = ws_ptx_parse(&helper, helper_text, strlen(helper_text), NULL, NULL);
    if (r)
        return r < 0 ? ws_forward(r) : ws_fold(r);
    struct ws_ptx_func *funcs = ws_arena_array(&m->arena, (size_t)m->n_funcs + 1, sizeof(*funcs));
    if (funcs) {
        /* It refers to nothing of its module, so it can move as it is; before the kernels in the text, after them in number. */
        memcpy(funcs, m->funcs, m->n_funcs * sizeof(*funcs));
        funcs[m->n_funcs] = helper->funcs[0];
        m->funcs = funcs;
        *ret = m->n_funcs++;
        ws_arena_take(&m->arena, &helper->arena);
    }
    ws_ptx_module_free(helper);
    return funcs ? 0 : ws_raise(-ENOMEM);
}

static void write_all(struct fence *w, uint32_t helper)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t end = ws_ptx_edit_label(e);
    w->low = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_fence, low));
    w->limit = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_fence, limit));
    for (uint32_t n = 0; n < w->f->n_insns; n++) {
        const struct ws_ptx_insn *old = &w->f->insns[n];
        if (w->at[n] >= 0) /* labels before the instruction are before its checks */
            ws_ptx_edit_skip(e, n);
        for (int32_t g = w->at[n]; g >= 0; g = w->groups[g].next)
            write_check(w, &w->groups[g], old->guard, old->guard_neg);
        if (w->at[n] >= 0)
            ws_ptx_edit_copy_only(e, n);
        else
            ws_ptx_edit_copy(e, n);
    }
    ws_ptx_edit_old_end(e);
    ws_ptx_edit_add(e, WS_OP_EXIT, WS_T_NONE, 0, NULL);
    for (size_t k = 0; k < w->n_slow; k++)
        write_slow(w, &w->slow[k], helper, end);
    ws_ptx_edit_place(e, end);
    ws_ptx_edit_add(e, WS_OP_EXIT, WS_T_NONE, 0, NULL);
}

int ws_ptx_fence(struct ws_ptx_module *m, uint32_t func, uint32_t *ret_func)
{
    struct fence w = {0};
    struct ws_arena a = WS_ARENA_NULL;
    struct ws_ptx_cfg cfg;
    uint32_t helper = 0;
    int r = find_helper(m, &helper);
    if (r)
        return ws_forward(r);
    w.f = &m->funcs[func];
    r = ws_ptx_cfg_build(&cfg, w.f, &a);
    if (!r) {
        ws_ptx_edit_begin(&w.e, m, func, "$fence", sizeof(struct ws_ptx_fence));
        w.at = ws_alloc_array((size_t)w.f->n_insns + 1, sizeof(*w.at));
        w.regs = ws_alloc_array((size_t)w.f->n_regs + 1, sizeof(*w.regs));
        w.e.failed |= !w.at || !w.regs;
        if (!w.e.failed) {
            memset(w.at, 0xff, w.f->n_insns * sizeof(*w.at));
            plan(&w, &cfg);
        }
        if (!w.e.failed)
            write_all(&w, helper);
        r = ws_ptx_edit_end(&w.e, ret_func);
    }
    free(w.groups);
    free(w.at);
    free(w.regs);
    free(w.slow);
    ws_arena_deinit(&a);
    return r ? ws_forward(r) : 0;
}

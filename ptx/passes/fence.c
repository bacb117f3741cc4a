// SPDX-License-Identifier: Apache-2.0
/* Writes the checks of a fenced kernel: before each access to memory, it makes sure that the
 * access stays in the client's own ranges.
 *
 * The fast check has three instructions. It takes the distance of the register from the start of
 * the client's largest range, compares it with that range's length less WS_FENCE_SLACK, and
 * branches if it is not less. So it passes any access at [reg + 0 … reg + slack). Every other
 * access goes to a slow path at the end of the function: the windows of shared and local memory
 * pass there, and ws$fence looks at all ranges, to the byte. Either it returns, or the thread
 * notes the fault and ends there, inside ws$fence. So the kernel has no way to its end that it did
 * not have before, and what ptx/passes/rewrite_check.c found out about it is true of the fenced
 * kernel too.
 *
 * Accesses of a basic block through the same register, if nothing writes it between them, are one
 * group; so are accesses through registers that differ from it by a constant. A group is checked
 * once, before its first access, for the bytes from the lowest to the highest. This moves checks
 * before other accesses: a kernel that would access memory outside ends a little earlier, which is
 * wrong either way. Guarded accesses are checked one by one, under their guard. Matrices are
 * checked from their first to their last byte; the distance between their lines may be known only
 * when the kernel runs.
 *
 * Functions with accesses are copied (copies.c). The copies have four parameters more: what the
 * kernel has in struct ws_ptx_fence. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "ptx/passes/edit.h"
#include "ptx/passes/fence.h"
#include "ptx/passes/pass.h"

#define R(r) ws_opd_reg(r)
#define I(v) ws_opd_imm(v)

/* The slow check, as the PTX that it is: comes back if [a, a + n) is the client's. The first that
 * goes outside leaves its address; the rest end, and what they would have done is lost. %s: a check
 * for parameters where the PTX has it. */
static const char helper_text[] =
    ".version %s\n.target sm_70\n.address_size 64\n"
    ".func %s(.reg .b64 a, .reg .b64 n, .reg .b32 generic, .reg .b64 ranges, .reg .b64 fault)\n{\n"
    ".reg .pred %%p<10>;\n.reg .b32 %%r<4>;\n.reg .b64 %%rd<6>;\n"
    "setp.eq.u32 %%p1, generic, 0;\n"
    "@%%p1 bra GLOBAL;\n"
    "add.u64 %%rd3, a, n;\n"
    "sub.u64 %%rd3, %%rd3, 1;\n"
    "isspacep.const %%p8, a;\n"
    "@%%p8 isspacep.const %%p8, %%rd3;\n" /* the last byte too */
    "@%%p8 bra OUT;\n"
    "%s"
    "GLOBAL:\n"
    "ld.global.u32 %%r1, [ranges];\n"
    "NEXT:\n"
    "setp.eq.u32 %%p4, %%r1, 0;\n"
    "@%%p4 bra BAD;\n"
    "ld.global.u64 %%rd1, [ranges+8];\n"
    "ld.global.u64 %%rd2, [ranges+16];\n"
    "add.u64 ranges, ranges, 16;\n"
    "sub.u32 %%r1, %%r1, 1;\n"
    "sub.u64 %%rd3, a, %%rd1;\n"
    "setp.lt.u64 %%p5, %%rd2, n;\n" /* shorter than the access */
    "@%%p5 bra NEXT;\n"
    "sub.u64 %%rd4, %%rd2, n;\n"
    "setp.gt.u64 %%p6, %%rd3, %%rd4;\n"
    "@%%p6 bra NEXT;\n"
    "OUT:\n"
    "ret;\n"
    "BAD:\n"
    "atom.global.cas.b64 %%rd5, [fault], 0, 1;\n"
    "setp.ne.u64 %%p7, %%rd5, 0;\n"
    "@!%%p7 st.global.u64 [fault+8], a;\n"
    "exit;\n"
    "}\n";
static const char param_window[] = "isspacep.param %p9, a;\n"
                                   "@%p9 isspacep.param %p9, %rd3;\n@%p9 bra OUT;\n";

/* A check to be put before an instruction. */
struct group {
    uint32_t first; /* instruction */
    int32_t reg;
    int64_t low, high; /* bytes from reg: [low, high) */
    bool generic;
    const struct ws_fence_access *matrix; /* then that is all of it */
    int32_t next;                         /* of the same instruction: index, or -1 */
};

/* What is known of a register inside one basic block: it is root + offset, where root had its
 * version then. */
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
    int32_t *at;                        /* [n_insns]: first group before it, or -1 */
    struct known *regs;                 /* [n_regs] */
    bool *env;                          /* [n_regs]: ws_fence_env() */
    const struct ws_ptx_copies *copies; /* helper: the slow check */
    bool calls;                         /* functions that are copied */
    int32_t low, limit, ranges, fault;  /* registers; -1: loaded where they are needed */
    struct slow {
        int32_t label, back;
        int32_t base; /* register that holds the address */
        int64_t low;
        uint64_t bytes;
        int32_t extent; /* or a register with the bytes; -1 */
        bool generic;
    } * slow;
    size_t n_slow, cap_slow;
};

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

static struct group *new_group(struct fence *w, uint32_t insn, const struct ws_fence_access *a,
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
static bool joins(const struct group *g, const struct ws_fence_access *a, int64_t offset)
{
    int64_t low = WS_MIN(g->low, offset), high = WS_MAX(g->high, offset + (int64_t)a->bytes);
    return g->generic == a->generic && high - low <= WS_FENCE_SLACK;
}

static void plan_access(struct fence *w, uint32_t insn, uint32_t block,
                        const struct ws_fence_access *a)
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

static void plan_matrix(struct fence *w, uint32_t insn, const struct ws_fence_access *a)
{
    struct ws_fence_access *kept = ws_arena_array(&w->e.m->arena, 1, sizeof(*kept));
    struct group *g = kept ? new_group(w, insn, a, a->offset, a->reg) : NULL;
    w->e.failed |= !kept;
    if (!g)
        return;
    *kept = *a;
    g->matrix = kept;
}

static void plan(struct fence *w, const struct ws_ptx_cfg *cfg)
{
    for (uint32_t n = 0; n < w->f->n_insns && !w->e.failed; n++) {
        const struct ws_ptx_insn *i = &w->f->insns[n];
        uint32_t block = cfg->block_of[n] + 1;
        struct ws_fence_access a;
        enum ws_fence_kind what = ws_fence_classify(i, &a);
        if (what == WS_FENCE_ACCESS && a.reg >= 0 && !ws_fence_env_access(w->env, &a))
            plan_access(w, n, block, &a);
        if (what == WS_FENCE_MATRIX)
            plan_matrix(w, n, &a);
        if (ws_ptx_writes_first(i)) {
            learn(w, i, block);
            wrote(w, &i->operands[0]);
        }
        if (i->call)
            for (uint32_t k = 0; k < i->call->n_rets; k++)
                wrote(w, &i->call->rets[k]);
    }
}

/* ---- writing ---- */
static struct slow *new_slow(struct fence *w)
{
    void *v = w->slow;
    if (ws_grow(&v, &w->cap_slow, w->n_slow + 1, sizeof(*w->slow)) < 0) {
        w->e.failed = true;
        return NULL;
    }
    w->slow = v;
    struct slow *s = &w->slow[w->n_slow++];
    *s = (struct slow){
        .label = ws_ptx_edit_label(&w->e), .back = ws_ptx_edit_label(&w->e), .extent = -1};
    return s;
}

/* Goes to the slow path if @a is at or above @b, or @p; only under the guard of @old, if it has
 * one: only who makes the access is asked. */
static void leave_if(struct fence *w, const struct slow *s, int32_t a, int32_t b,
                     const struct ws_ptx_insn *old)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t p = ws_ptx_edit_reg(e, WS_T_PRED);
    struct ws_ptx_operand o[] = {R(p), R(a), R(b), R(0)};
    if (old->guard >= 0) {
        o[3] = R(ws_ptx_edit_old_reg(e, old->guard));
        o[3].neg = old->guard_neg;
    }
    struct ws_ptx_insn *i = ws_ptx_edit_add(e, WS_OP_SETP, WS_T_U64, old->guard >= 0 ? 4 : 3, o);
    i->cmp = WS_CMP_GE;
    i->sub = old->guard >= 0 ? WS_SUB_AND : WS_SUB_NONE;
    ws_ptx_edit_branch_if(e, p, false, s->label);
}

/* A register with the bytes from the first to behind the last of a matrix: below 2^44. */
static int32_t matrix_bytes(struct fence *w, const struct ws_fence_access *a)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t n = ws_ptx_edit_reg(e, WS_T_U64), stride = ws_ptx_edit_reg(e, WS_T_U32);
    if (!a->stride || a->stride->kind == WS_OPD_IMM)
        WS_EDIT(e, MOV, U32, R(stride), I(a->stride ? a->stride->imm : (int64_t)a->length));
    else
        WS_EDIT(e, MOV, U32, R(stride), R(ws_ptx_edit_old_reg(e, a->stride->reg)));
    WS_EDIT(e, MUL, U32, R(n), R(stride), I(a->lines - 1))->sub = WS_SUB_WIDE;
    WS_EDIT(e, ADD, S64, R(n), R(n), I(a->length));
    if (a->bits >= 8)
        WS_EDIT(e, MUL, U64, R(n), R(n), I(a->bits / 8))->sub = WS_SUB_LO;
    else { /* elements smaller than a byte: the bytes that they are in */
        WS_EDIT(e, ADD, S64, R(n), R(n), I(8 / a->bits - 1));
        WS_EDIT(e, SHR, U64, R(n), R(n), I(a->bits == 4 ? 1 : 3));
    }
    return n;
}

static void write_matrix_check(struct fence *w, const struct group *g,
                               const struct ws_ptx_insn *old)
{
    struct ws_ptx_edit *e = &w->e;
    struct slow *s = new_slow(w);
    int32_t n = matrix_bytes(w, g->matrix), apart = ws_ptx_edit_reg(e, WS_T_U64),
            end = ws_ptx_edit_reg(e, WS_T_U64), base = ws_ptx_edit_reg(e, WS_T_U64);
    if (!s)
        return;
    WS_EDIT(e, ADD, S64, R(base), R(ws_ptx_edit_old_reg(e, g->reg)), I(g->low));
    s->base = base;
    s->extent = n;
    s->generic = g->generic;
    WS_EDIT(e, SUB, S64, R(apart), R(base), R(w->low));
    leave_if(w, s, apart, w->limit, old);
    WS_EDIT(e, ADD, S64, R(end), R(apart), R(n)); /* of two numbers below 2^63 */
    leave_if(w, s, end, w->limit, old);
    ws_ptx_edit_place(e, s->back);
}

/* Before an access, under its guard. */
static void write_check(struct fence *w, const struct group *g, const struct ws_ptx_insn *old)
{
    struct ws_ptx_edit *e = &w->e;
    if (g->matrix) {
        write_matrix_check(w, g, old);
        return;
    }
    struct slow *s = new_slow(w);
    int32_t base = ws_ptx_edit_old_reg(e, g->reg), apart = ws_ptx_edit_reg(e, WS_T_U64);
    if (!s)
        return;
    /* The fast check is for [base, base + slack): another base where the group isn't in it. */
    bool moved = g->low < 0 || g->high > WS_FENCE_SLACK;
    if (moved) {
        int32_t at = ws_ptx_edit_reg(e, WS_T_U64);
        WS_EDIT(e, ADD, S64, R(at), R(base), I(g->low));
        base = at;
    }
    s->base = base;
    s->low = moved ? 0 : g->low;
    s->bytes = (uint64_t)(g->high - g->low);
    s->generic = g->generic;
    WS_EDIT(e, SUB, S64, R(apart), R(base), R(w->low));
    leave_if(w, s, apart, w->limit, old);
    ws_ptx_edit_place(e, s->back);
}

static int32_t value(struct fence *w, int32_t reg, size_t field)
{
    return reg >= 0 ? reg : ws_ptx_edit_load(&w->e, WS_T_U64, field);
}

/* Goes back if the access is to shared or local memory, its last byte as its first: windows side by
 * side with global memory would let a long one reach over. One of up to 16 bytes is aligned, so
 * that it can't. */
static void pass_windows(struct fence *w, const struct slow *s, int32_t a, int32_t n)
{
    struct ws_ptx_edit *e = &w->e;
    int32_t last = -1;
    if (s->extent >= 0 || s->bytes > 16) {
        last = ws_ptx_edit_reg(e, WS_T_U64);
        WS_EDIT(e, ADD, S64, R(last), R(a), R(n));
        WS_EDIT(e, ADD, S64, R(last), R(last), I(-1));
    }
    for (int k = 0; k < 2; k++) {
        uint8_t space = k ? WS_SP_LOCAL : WS_SP_SHARED;
        int32_t inside = ws_ptx_edit_reg(e, WS_T_PRED);
        WS_EDIT(e, ISSPACEP, NONE, R(inside), R(a))->space = space;
        if (last >= 0) {
            struct ws_ptx_insn *i = WS_EDIT(e, ISSPACEP, NONE, R(inside), R(last));
            i->space = space;
            ws_ptx_edit_guard(i, inside, false);
        }
        ws_ptx_edit_branch_if(e, inside, false, s->back);
    }
}

static void write_slow(struct fence *w, const struct slow *s)
{
    struct ws_ptx_edit *e = &w->e;
    ws_ptx_edit_place(e, s->label);
    int32_t a = s->base, n = s->extent, generic = ws_ptx_edit_reg(e, WS_T_U32);
    if (s->low) {
        a = ws_ptx_edit_reg(e, WS_T_U64);
        WS_EDIT(e, ADD, S64, R(a), R(s->base), I(s->low));
    }
    if (n < 0) {
        n = ws_ptx_edit_reg(e, WS_T_U64);
        WS_EDIT(e, MOV, U64, R(n), I((int64_t)s->bytes));
    }
    if (s->generic)
        pass_windows(w, s, a, n);
    WS_EDIT(e, MOV, U32, R(generic), I(s->generic));
    int32_t ranges = value(w, w->ranges, offsetof(struct ws_ptx_fence, ranges)),
            fault = value(w, w->fault, offsetof(struct ws_ptx_fence, fault));
    ws_ptx_edit_call(e, w->copies->helper, 0, NULL, 5,
                     (struct ws_ptx_operand[]){R(a), R(n), R(generic), R(ranges), R(fault)});
    WS_EDIT(e, BRA, NONE, ws_opd_label(s->back))->flags = WS_F_UNI;
}

/* ---- functions ---- */
/* A name for function @base that nothing in the module has. */
static int free_name(const struct ws_ptx_module *m, const char *base, char *ret, size_t size)
{
    for (unsigned k = 0; k < 100; k++) {
        int n = snprintf(ret, size, k ? "%s_%u" : "%s", base, k);
        if (n < 0 || (size_t)n >= size)
            break;
        if (!ws_ptx_find_func(m, ret))
            return 0;
    }
    return ws_raise(-ENOMEM);
}

/* Index of the slow check in @m, which is added if it isn't there. Only what this pass made is
 * trusted, whatever it is called. */
static int find_helper(struct ws_ptx_module *m, uint32_t *ret)
{
    char name[32], text[2000];
    for (uint32_t k = 0; k < m->n_funcs; k++)
        if (m->funcs[k].fence == WS_PTX_FENCE_HELPER) {
            *ret = k;
            return 0;
        }
    bool params = m->version >= 77 && m->sm >= 70;
    int r = free_name(m, "ws$fence", name, sizeof(name));
    if (r)
        return ws_forward(r);
    snprintf(text, sizeof(text), helper_text, params ? "7.7" : "6.0", name,
             params ? param_window : "");
    struct ws_ptx_module *helper = NULL;
    r = ws_ptx_parse(&helper, text, strlen(text), NULL, NULL);
    if (r)
        return r < 0 ? ws_forward(r) : ws_fold(r);
    struct ws_ptx_func *funcs = ws_arena_array(&m->arena, (size_t)m->n_funcs + 1, sizeof(*funcs));
    if (funcs) {
        /* It refers to nothing of its module, so it can move as it is; before the kernels in the
         * text, after them in number. */
        memcpy(funcs, m->funcs, m->n_funcs * sizeof(*funcs));
        funcs[m->n_funcs] = helper->funcs[0];
        funcs[m->n_funcs].fence = WS_PTX_FENCE_HELPER;
        m->funcs = funcs;
        *ret = m->n_funcs++;
        ws_arena_take(&m->arena, &helper->arena);
    }
    ws_ptx_module_free(helper);
    return funcs ? 0 : ws_raise(-ENOMEM);
}

/* The call just copied goes to the function's fenced copy, with what that wants. */
static void redirect_call(struct fence *w, const struct ws_ptx_insn *old, struct ws_ptx_insn *i)
{
    const struct ws_ptx_operand own[] = {R(w->low), R(w->limit), R(w->ranges), R(w->fault)};
    int64_t to = ws_ptx_copy_of_callee(w->copies, old);
    if (to >= 0)
        ws_ptx_edit_redirect(&w->e, i, (uint32_t)to, WS_ARRAY_SIZE(own), own);
}

/* What the checks of the function in hand go by. */
static void write_values(struct fence *w)
{
    struct ws_ptx_edit *e = &w->e;
    w->ranges = w->fault = -1;
    if (!w->f->is_entry) {
        w->low = ws_ptx_edit_param(e, WS_T_B64);
        w->limit = ws_ptx_edit_param(e, WS_T_B64);
        w->ranges = ws_ptx_edit_param(e, WS_T_B64);
        w->fault = ws_ptx_edit_param(e, WS_T_B64);
        return;
    }
    w->low = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_fence, low));
    w->limit = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_fence, limit));
    if (!w->calls)
        return;
    w->ranges = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_fence, ranges));
    w->fault = ws_ptx_edit_load(e, WS_T_U64, offsetof(struct ws_ptx_fence, fault));
}

static void write_all(struct fence *w)
{
    struct ws_ptx_edit *e = &w->e;
    write_values(w);
    for (uint32_t n = 0; n < w->f->n_insns; n++) {
        const struct ws_ptx_insn *old = &w->f->insns[n];
        ws_ptx_edit_skip(e, n); /* labels before the instruction are before its checks */
        for (int32_t g = w->at[n]; g >= 0; g = w->groups[g].next)
            write_check(w, &w->groups[g], old);
        redirect_call(w, old, ws_ptx_edit_copy_only(e, n));
    }
    ws_ptx_edit_old_end(e);
    if (ws_ptx_falls_off(w->f)) /* not into the slow paths */
        ws_ptx_edit_add(e, w->f->is_entry ? WS_OP_EXIT : WS_OP_RET, WS_T_NONE, 0, NULL);
    for (size_t k = 0; k < w->n_slow; k++)
        write_slow(w, &w->slow[k]);
}

static bool is_copy(const struct ws_ptx_func *f, uint32_t func)
{
    return f->fence == (int32_t)func + 1;
}

static int write_copy(struct ws_ptx_module *m, uint32_t func, const struct ws_ptx_copies *c,
                      uint32_t *ret_func)
{
    struct fence fence = {.copies = c}, *w = &fence;
    struct ws_arena a = WS_ARENA_NULL;
    struct ws_ptx_cfg cfg;
    w->f = &m->funcs[func];
    int r = ws_ptx_cfg_build(&cfg, w->f, &a);
    w->calls |= ws_ptx_calls_any(w->f, c->needs);
    if (!r)
        ws_ptx_edit_begin(&w->e, m, func, "$fence",
                          w->f->is_entry ? sizeof(struct ws_ptx_fence) : 0);
    if (!r && !w->f->is_entry) {
        w->e.f.link = WS_LINK_NONE;
        w->e.f.fence = (int32_t)func + 1;
    }
    if (!r) {
        w->at = ws_alloc_array((size_t)w->f->n_insns + 1, sizeof(*w->at));
        w->regs = ws_alloc_array((size_t)w->f->n_regs + 1, sizeof(*w->regs));
        w->env = ws_alloc_array((size_t)w->f->n_regs + 1, sizeof(*w->env));
        w->e.failed |= !w->at || !w->regs || !w->env || ws_fence_env(w->f, w->env);
        if (!w->e.failed) {
            memset(w->at, 0xff, w->f->n_insns * sizeof(*w->at));
            plan(w, &cfg);
        }
        if (!w->e.failed)
            write_all(w);
        r = ws_ptx_edit_end(&w->e, ret_func);
    }
    free(w->groups);
    free(w->at);
    free(w->regs);
    free(w->env);
    free(w->slow);
    ws_arena_deinit(&a);
    return r ? ws_forward(r) : 0;
}

int ws_ptx_fence(struct ws_ptx_module *m, uint32_t func, uint32_t *ret_func)
{
    static const struct ws_ptx_copier copier = {ws_fence_needs, is_copy, write_copy};
    uint32_t helper = 0;
    int r = find_helper(m, &helper);
    return ws_forward(r ? r : ws_ptx_copy_kernel(m, func, &copier, helper, ret_func));
}

// SPDX-License-Identifier: Apache-2.0
/* One launch for many instances of the same kernel (the leader mode of section VI of the paper, on
 * the daemon's side). Instances of one kernel with the same grid and block shape run as one grid
 * that is so many times as deep, with the code of one of them. The block's z divided by the grid's
 * own depth is its instance. What differs between instances (parameters, the fence, where
 * variables are) stands in a record for each of them.
 *
 * The fenced kernel is changed in place. Instructions in front of it compute the record's address
 * and load the addresses of variables. Behind these, each instruction remains one instruction: an
 * ld.param becomes an ld.global from the record, a variable becomes a register. Compared with
 * fused copies of the kernel, there is one copy to make, however many instances there are, and no
 * choice among members; in return, loads of parameters become loads from memory. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/launch_check.h"
#include "templates/template_private.h"

enum { TABLE, DEPTH, _N_PARAMS }; /* of the new kernel */
static const uint32_t depth_at = 8;

struct leader {
    struct ws_ptx_module *m;
    struct ws_ptx_func *f;
    struct ws_ptx_var *old_params;
    uint32_t n_old_params;
    struct ws_ptx_insn *front;
    uint32_t n_front, cap_front;
    int32_t record, z, depth; /* registers */
    int32_t *var_reg;         /* [m->n_vars]: holds its address; -1: not used */
    bool oom;
};

static struct ws_ptx_operand reg(int32_t r)
{
    return (struct ws_ptx_operand){.kind = WS_OPD_REG, .reg = r, .sym = -1, .label = -1};
}
static struct ws_ptx_operand at(int32_t r, int64_t offset)
{
    return (struct ws_ptx_operand){
        .kind = WS_OPD_ADDR, .reg = r, .sym = -1, .label = -1, .imm = offset};
}
static struct ws_ptx_operand param(uint32_t k)
{
    return (struct ws_ptx_operand){
        .kind = WS_OPD_ADDR, .reg = -1, .sym = (int32_t)(k | WS_PTX_SYM_LOCALVAR), .label = -1};
}
static struct ws_ptx_operand imm(int64_t v)
{
    return (struct ws_ptx_operand){.kind = WS_OPD_IMM, .reg = -1, .sym = -1, .label = -1, .imm = v};
}

/* The registers' array has room for all that are added. */
static int32_t new_reg(struct leader *l, enum ws_ptx_type type)
{
    char name[32];
    snprintf(name, sizeof(name), "%%ws_lead%u", l->f->n_regs);
    l->f->regs[l->f->n_regs] = (struct ws_ptx_reg){
        .name = ws_arena_strndup(&l->m->arena, name, strlen(name)), .type = (uint8_t)type};
    l->oom |= !l->f->regs[l->f->n_regs].name;
    return (int32_t)l->f->n_regs++;
}

static struct ws_ptx_insn *front(struct leader *l, enum ws_ptx_op op, enum ws_ptx_type type,
                                 uint8_t n, const struct ws_ptx_operand *operands)
{
    struct ws_ptx_insn *i = &l->front[l->n_front++];
    *i = (struct ws_ptx_insn){.op = (uint16_t)op, .n_types = 1, .guard = -1, .n_operands = n};
    i->types[0] = (uint8_t)type;
    i->operands = ws_arena_array(&l->m->arena, n, sizeof(*operands));
    l->oom |= !i->operands;
    if (i->operands)
        memcpy(i->operands, operands, n * sizeof(*operands));
    return i;
}
#define FRONT(l, op, type, ...)                                                                    \
    front((l), WS_OP_##op, WS_T_##type,                                                            \
          sizeof((struct ws_ptx_operand[]){__VA_ARGS__}) / sizeof(struct ws_ptx_operand),          \
          (struct ws_ptx_operand[]){__VA_ARGS__})

static int32_t load(struct leader *l, enum ws_ptx_type type, enum ws_ptx_space space,
                    struct ws_ptx_operand from)
{
    int32_t r = new_reg(l, type);
    struct ws_ptx_insn *i = front(l, WS_OP_LD, type, 2, (struct ws_ptx_operand[]){reg(r), from});
    i->space = (uint8_t)space;
    return r;
}

/* ---- what stands in front ---- */

static void find_record(struct leader *l, uint64_t record_bytes)
{
    struct ws_ptx_operand ctaid_z = {
        .kind = WS_OPD_SREG, .reg = -1, .sym = -1, .label = -1, .sreg = WS_SR_CTAID, .sreg_dim = 2};
    int32_t all = new_reg(l, WS_T_U32), instance = new_reg(l, WS_T_U32),
            table = load(l, WS_T_U64, WS_SP_PARAM, param(TABLE));
    l->depth = load(l, WS_T_U32, WS_SP_PARAM, param(DEPTH));
    l->z = new_reg(l, WS_T_U32);
    l->record = new_reg(l, WS_T_U64);
    FRONT(l, MOV, U32, reg(all), ctaid_z);
    FRONT(l, DIV, U32, reg(instance), reg(all), reg(l->depth));
    FRONT(l, MUL, U32, reg(l->z), reg(instance), reg(l->depth))->sub = WS_SUB_LO;
    FRONT(l, SUB, U32, reg(l->z), reg(all), reg(l->z));
    FRONT(l, MAD, U32, reg(l->record), reg(instance), imm((int64_t)record_bytes), reg(table))->sub =
        WS_SUB_WIDE;
}

/* ---- the body ---- */

static bool is_sreg(const struct ws_ptx_operand *o, enum ws_ptx_sreg s)
{
    return o->kind == WS_OPD_SREG && o->sreg == s && o->sreg_dim == 2;
}

static void adapt(struct leader *l, struct ws_ptx_operand *o)
{
    if (is_sreg(o, WS_SR_CTAID))
        *o = reg(l->z);
    else if (is_sreg(o, WS_SR_NCTAID))
        *o = reg(l->depth);
    uint32_t k = (uint32_t)WS_PTX_SYM_INDEX(o->sym);
    bool names = (o->kind == WS_OPD_SYM || o->kind == WS_OPD_ADDR) && o->sym >= 0;
    if (names && WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_LOCALVAR) {
        if (k >= l->n_old_params)
            o->sym = (int32_t)((k - l->n_old_params + _N_PARAMS) | WS_PTX_SYM_LOCALVAR);
        else /* a parameter, and loaded: nothing else was let in */
            *o = at(l->record, (int64_t)l->old_params[k].param_offset + o->imm);
    } else if (names && WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_VAR && l->var_reg[k] >= 0) {
        o->reg = l->var_reg[k];
        o->sym = -1;
    }
    for (uint16_t n = 0; n < o->n; n++)
        adapt(l, &o->v[n]);
}

static void adapt_insn(struct leader *l, struct ws_ptx_insn *i)
{
    if (i->op == WS_OP_LD && i->space == WS_SP_PARAM &&
        WS_PTX_SYM_KIND(i->operands[1].sym) == WS_PTX_SYM_LOCALVAR &&
        (uint32_t)WS_PTX_SYM_INDEX(i->operands[1].sym) < l->n_old_params)
        i->space = WS_SP_GLOBAL;
    for (uint8_t n = 0; n < i->n_operands; n++)
        adapt(l, &i->operands[n]);
    if (i->call)
        for (uint32_t n = 0; n < i->call->n_args + i->call->n_rets; n++)
            adapt(l, (struct ws_ptx_operand *)(n < i->call->n_args
                                                   ? &i->call->args[n]
                                                   : &i->call->rets[n - i->call->n_args]));
    /* mov %rd, var (+ 8): an address was a constant, and is a register now */
    struct ws_ptx_operand *o = i->n_operands > 1 ? &i->operands[1] : NULL;
    if (i->op == WS_OP_MOV && o && o->kind == WS_OPD_SYM && o->sym < 0 && o->reg >= 0) {
        struct ws_ptx_operand sum[] = {i->operands[0], reg(o->reg), imm(o->imm)};
        struct ws_ptx_operand *v = ws_arena_array(&l->m->arena, 3, sizeof(*v));
        if (!v) {
            l->oom = true;
            return;
        }
        memcpy(v, sum, sizeof(sum));
        i->op = WS_OP_ADD;
        i->types[0] = WS_T_S64;
        i->operands = v;
        i->n_operands = 3;
    }
}

/* Variables by a name in a place that takes no register: in a call, or as an operand of something
 * else than mov. */
static bool only_simple_uses(const struct ws_ptx_func *f)
{
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        for (uint8_t n = 0; n < i->n_operands; n++) {
            const struct ws_ptx_operand *o = &i->operands[n];
            if (o->kind == WS_OPD_SYM && WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_VAR &&
                (i->op != WS_OP_MOV || n != 1))
                return false;
        }
        for (uint32_t n = 0; i->call && n < i->call->n_args; n++)
            if (i->call->args[n].kind == WS_OPD_SYM &&
                WS_PTX_SYM_KIND(i->call->args[n].sym) == WS_PTX_SYM_VAR)
                return false;
    }
    return true;
}

/* A variable in memory; shared ones stay what they are. */
static bool has_address(const struct ws_ptx_var *v)
{
    return (v->space == WS_SP_GLOBAL || v->space == WS_SP_CONST) && v->size_bytes;
}

static bool functions_use_vars(const struct ws_ptx_module *m, uint32_t func)
{
    for (uint32_t k = 0; k < m->n_funcs; k++) {
        const struct ws_ptx_func *f = &m->funcs[k];
        for (uint32_t n = 0; k != func && n < f->n_insns; n++)
            for (uint8_t o = 0; o < f->insns[n].n_operands; o++) {
                const struct ws_ptx_operand *p = &f->insns[n].operands[o];
                if ((p->kind == WS_OPD_SYM || p->kind == WS_OPD_ADDR) && p->sym >= 0 &&
                    WS_PTX_SYM_KIND(p->sym) == WS_PTX_SYM_VAR &&
                    has_address(&m->vars[WS_PTX_SYM_INDEX(p->sym)]))
                    return true;
            }
    }
    return false;
}

/* Two parameters for those that there were. */
static void set_params(struct leader *l)
{
    static const struct {
        const char *name;
        enum ws_ptx_type type;
        uint32_t bytes, offset;
    } row[_N_PARAMS] = {{"ws_table", WS_T_U64, 8, 0}, {"ws_depth", WS_T_U32, 4, depth_at}};
    struct ws_ptx_var *v = ws_arena_array(&l->m->arena, _N_PARAMS, sizeof(*v));
    l->old_params = l->f->params;
    l->n_old_params = l->f->n_params;
    l->oom |= !v;
    if (!v)
        return;
    for (int k = 0; k < _N_PARAMS; k++)
        v[k] = (struct ws_ptx_var){.name = row[k].name,
                                   .space = WS_SP_PARAM,
                                   .type = (uint8_t)row[k].type,
                                   .align = row[k].bytes,
                                   .size_bytes = row[k].bytes,
                                   .n_elems = 1,
                                   .param_offset = row[k].offset,
                                   .reg = -1};
    l->f->params = v;
    l->f->n_params = _N_PARAMS;
    l->f->param_bytes = depth_at + 4;
}

/* Changes the fenced kernel. */
static int lead(struct ws_template *t, uint32_t func, uint64_t param_bytes)
{
    struct leader l = {.m = t->ptx, .f = &t->ptx->funcs[func]};
    struct ws_ptx_func *f = l.f;
    uint32_t room = t->ptx->n_vars + 16;
    l.var_reg = ws_arena_array(&l.m->arena, (size_t)t->ptx->n_vars + 1, sizeof(int32_t));
    l.front = ws_arena_array(&l.m->arena, (size_t)room + f->n_insns, sizeof(*l.front));
    struct ws_ptx_reg *regs = ws_arena_array(&l.m->arena, (size_t)room + f->n_regs, sizeof(*regs));
    if (!l.var_reg || !l.front || !regs)
        return ws_raise(-ENOMEM);
    if (f->n_regs)
        memcpy(regs, f->regs, f->n_regs * sizeof(*regs));
    f->regs = regs;
    t->vars_at = WS_ALIGN_UP(param_bytes, 8);
    t->record_bytes = WS_ALIGN_UP(t->vars_at + 8 * (uint64_t)t->ptx->n_vars, 16);
    set_params(&l);
    find_record(&l, t->record_bytes);
    for (uint32_t k = 0; k < t->ptx->n_vars; k++)
        l.var_reg[k] = has_address(&t->ptx->vars[k])
                           ? load(&l, WS_T_U64, WS_SP_GLOBAL,
                                  at(l.record, (int64_t)(t->vars_at + 8 * (uint64_t)k)))
                           : -1;
    for (uint32_t k = 0; k < f->n_insns && !l.oom; k++)
        adapt_insn(&l, &f->insns[k]);
    if (l.oom)
        return ws_raise(-ENOMEM);
    memcpy(l.front + l.n_front, f->insns, f->n_insns * sizeof(*f->insns));
    for (uint32_t k = 0; k < f->n_labels; k++)
        f->labels[k].insn += l.n_front;
    f->insns = l.front;
    f->n_insns += l.n_front;
    f->name = "ws$lead";
    return 0;
}

static int make(struct ws_template *t, const struct ws_template_kernel *k, bool plain, char *why,
                size_t bytes)
{
    const struct ws_ptx_func *own = &k->m->funcs[k->func];
    uint32_t fenced, func;
    int r = ws_template_copy(&t->ptx, k->m, k->func, "m0$");
    if (r)
        return ws_forward(r);
    int32_t f = ws_template_find_func(t->ptx, 0, own->name);
    if (f < 0)
        return ws_raise(-EIO);
    /* Its variables are at addresses that it loads, which ld.const takes none of on a GPU. Where
     * the kernel computes addresses in them, the fence checks these. */
    ws_template_plain_constants(t->ptx);
    if (plain && (r = ws_ptx_texture(t->ptx)))
        return ws_forward(r);
    r = ws_ptx_fence_refused(t->ptx, (uint32_t)f, why, bytes);
    if (!r)
        r = ws_ptx_fence(t->ptx, (uint32_t)f, &fenced);
    if (!r)
        r = ws_template_prune(t->ptx, fenced, &func);
    if (r)
        return r < 0 ? ws_forward(r) : r;
    struct ws_ptx_func *made = &t->ptx->funcs[func];
    t->fused.func = func;
    t->fused.n = 1;
    t->ptx->fenced = true;
    t->fused.param_bytes = depth_at + 4;
    t->member[0].own_bytes = own->param_bytes;
    t->member[0].fence = made->params[made->n_params - 1].param_offset;
    if (!only_simple_uses(made) || functions_use_vars(t->ptx, func)) {
        snprintf(why, bytes, "uses of its variables that can't be one instance's");
        return WS_PTX_E_UNSUPPORTED;
    }
    r = lead(t, func, made->param_bytes);
    return r ? ws_forward(r) : ws_template_place_vars(t, k, 1);
}

int ws_template_make_leader(struct ws_template **ret, const struct ws_template_kernel *kernel,
                            bool plain, char *ret_why, size_t why_bytes)
{
    int r = ws_template_refused(kernel->m, kernel->func, ret_why, why_bytes);
    if (r)
        return r < 0 ? ws_forward(r) : r;
    struct ws_template *t = ws_alloc(sizeof(*t));
    if (!t)
        return ws_raise(-ENOMEM);
    t->leader = true;
    r = make(t, kernel, plain, ret_why, why_bytes);
    if (r) {
        ws_template_free(t);
        return r < 0 ? ws_forward(r) : r;
    }
    *ret = t;
    return 0;
}

int ws_template_lead(const struct ws_template *t, const struct ws_template_work *work,
                     const uint64_t *const *var_va, uint32_t n, uint8_t *table, uint64_t table_va,
                     uint8_t *params, struct ws_ptx_fuse_launch *ret)
{
    uint64_t depth = work[0].grid[2];
    struct ws_ptx_shape one;
    if (!n || depth * n > WS_GRID_YZ_MAX || !ws_ptx_shape_set(&one, work[0].grid) ||
        (uint64_t)one.total * n > INT32_MAX)
        return WS_PTX_E_UNSUPPORTED;
    for (uint32_t k = 0; k < n; k++) {
        const struct ws_template_work *w = &work[k];
        uint8_t *record = table + k * t->record_bytes;
        if (memcmp(w->grid, work[0].grid, sizeof(w->grid)) ||
            memcmp(w->block, work[0].block, sizeof(w->block)))
            return WS_PTX_E_UNSUPPORTED;
        ret->shared_bytes = WS_MAX(k ? ret->shared_bytes : 0, w->shared_bytes);
        if (t->member[0].own_bytes)
            memcpy(record, w->params, t->member[0].own_bytes);
        memcpy(record + t->member[0].fence, &w->fence, sizeof(w->fence));
        for (uint32_t v = 0; v < t->member[0].n_vars; v++)
            if (t->member[0].var[v] >= 0)
                memcpy(record + t->vars_at + 8 * (size_t)t->member[0].var[v], &var_va[k][v], 8);
    }
    memcpy(ret->grid, work[0].grid, sizeof(ret->grid));
    memcpy(ret->block, work[0].block, sizeof(ret->block));
    ret->grid[2] = (uint32_t)(depth * n);
    memcpy(params, &table_va, 8);
    memcpy(params + depth_at, &work[0].grid[2], 4);
    return 0;
}

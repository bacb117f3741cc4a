// SPDX-License-Identifier: Apache-2.0
/* Places the variables of a module at addresses that the daemon chooses. The driver would choose
 * its own, different on each GPU; but a client's variables are memory of the client, at addresses
 * that it was told. So code is compiled for these addresses: where it names a variable, it gets a
 * register that holds the address, and the variable's declaration is removed. Constant memory
 * becomes global memory, since it has no addresses of its own any more.
 *
 * Only the driver knows the addresses of functions. The module gets a table of them as a variable.
 * The table is read after loading, and its addresses fill initial values that name functions
 * (tables of virtual functions). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/cuda/cuda_private.h"
#include "ptx/passes/texop.h"

static bool in_memory(const struct ws_ptx_var *v)
{
    return (v->space == WS_SP_GLOBAL || v->space == WS_SP_CONST) && v->size_bytes;
}

static bool names(const struct ws_ptx_module *m, int32_t sym)
{
    return sym >= 0 && WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_VAR &&
           in_memory(&m->vars[WS_PTX_SYM_INDEX(sym)]);
}

/* Calls @each for every operand of @o[n], including operands inside operands, until it returns
 * false. */
static bool operands(struct ws_ptx_operand *o, uint32_t n,
                     bool (*each)(void *arg, struct ws_ptx_operand *o), void *arg)
{
    for (uint32_t k = 0; k < n; k++)
        if (!each(arg, &o[k]) || (o[k].v && !operands(o[k].v, o[k].n, each, arg)))
            return false;
    return true;
}

static bool names_none(void *arg, struct ws_ptx_operand *o)
{
    return !((o->kind == WS_OPD_SYM || o->kind == WS_OPD_ADDR) && names(arg, o->sym));
}

bool ws_cuda_names_vars(const struct ws_ptx_module *m)
{
    for (uint32_t f = 0; f < m->n_funcs; f++)
        for (uint32_t k = 0; k < m->funcs[f].n_insns; k++) {
            const struct ws_ptx_insn *i = &m->funcs[f].insns[k];
            if (!operands(i->operands, i->n_operands, names_none, (void *)m))
                return true;
        }
    return false;
}

/* A register that this file has added, and the number that it holds. */
struct baked_reg {
    uint64_t value;
    int32_t reg;
};
struct bake {
    struct ws_ptx_module *m;
    struct ws_ptx_func *f;
    const uint64_t *var_va;
    struct baked_reg *made; /* in this function */
    size_t n_made, cap_made;
    struct ws_ptx_reg *regs;
    size_t n_regs, cap_regs;
    bool is_mov, failed;
    char prefix; /* of our registers' names: no other name begins with it */
};

static char free_prefix(const struct ws_ptx_func *f)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    size_t c = 0;
    for (uint32_t k = 0; c + 2 < sizeof(letters) && k < f->n_regs;) {
        const char p[] = {'%', 'w', 's', letters[c], 0};
        bool taken = !strncmp(f->regs[k].name, p, 4);
        k = taken ? 0 : k + 1;
        c += taken;
    }
    return letters[c];
}

/* A register that holds @value from the function's beginning. */
static int32_t holds(struct bake *b, uint64_t value)
{
    char name[24];
    for (size_t k = 0; k < b->n_made; k++)
        if (b->made[k].value == value)
            return b->made[k].reg;
    if (ws_grow((void **)&b->made, &b->cap_made, b->n_made + 1, sizeof(*b->made)) ||
        ws_grow((void **)&b->regs, &b->cap_regs, b->n_regs + 1, sizeof(*b->regs))) {
        b->failed = true;
        return 0;
    }
    int n = snprintf(name, sizeof(name), "%%ws%c%zu", b->prefix, b->n_made);
    char *copy = ws_arena_strndup(&b->m->arena, name, (size_t)n);
    b->failed |= !copy;
    b->regs[b->n_regs] = (struct ws_ptx_reg){.name = copy, .type = WS_T_B64};
    b->made[b->n_made].value = value;
    b->made[b->n_made].reg = (int32_t)b->n_regs;
    b->n_made++;
    return (int32_t)b->n_regs++;
}

static bool bake_operand(void *arg, struct ws_ptx_operand *o)
{
    struct bake *b = arg;
    if ((o->kind != WS_OPD_SYM && o->kind != WS_OPD_ADDR) || !names(b->m, o->sym))
        return true;
    uint64_t va = b->var_va[WS_PTX_SYM_INDEX(o->sym)];
    if (o->kind == WS_OPD_ADDR) {
        o->reg = holds(b, va);
    } else if (b->is_mov) {
        o->kind = WS_OPD_IMM;
        o->imm_kind = WS_IMM_INT;
        o->imm = (int64_t)(va + (uint64_t)o->imm);
    } else {
        o->kind = WS_OPD_REG;
        o->reg = holds(b, va + (uint64_t)o->imm);
    }
    o->sym = -1;
    return !b->failed;
}

/* Puts "mov.u64 register, value" at the function's beginning. */
static int prologue(struct bake *b)
{
    struct ws_ptx_func *f = b->f;
    size_t n = b->n_made;
    struct ws_ptx_insn *insns = ws_arena_array(&b->m->arena, f->n_insns + n, sizeof(*insns));
    struct ws_ptx_operand *o = ws_arena_array(&b->m->arena, 2 * n + 1, sizeof(*o));
    struct ws_ptx_reg *regs = ws_arena_array(&b->m->arena, b->n_regs + 1, sizeof(*regs));
    if (!insns || !o || !regs)
        return ws_raise(-ENOMEM);
    for (size_t k = 0; k < n; k++) {
        o[2 * k] = (struct ws_ptx_operand){
            .kind = WS_OPD_REG, .reg = b->made[k].reg, .sym = -1, .label = -1};
        o[2 * k + 1] = (struct ws_ptx_operand){.kind = WS_OPD_IMM,
                                               .reg = -1,
                                               .sym = -1,
                                               .label = -1,
                                               .imm = (int64_t)b->made[k].value};
        insns[k] = (struct ws_ptx_insn){.op = WS_OP_MOV,
                                        .n_types = 1,
                                        .types = {WS_T_U64},
                                        .guard = -1,
                                        .n_operands = 2,
                                        .operands = &o[2 * k]};
    }
    if (f->n_insns)
        memcpy(insns + n, f->insns, f->n_insns * sizeof(*insns));
    if (b->n_regs)
        memcpy(regs, b->regs, b->n_regs * sizeof(*regs));
    f->insns = insns;
    f->n_insns += (uint32_t)n;
    f->regs = regs;
    f->n_regs = (uint32_t)b->n_regs;
    for (uint32_t k = 0; k < f->n_labels; k++)
        f->labels[k].insn += (uint32_t)n;
    return 0;
}

static int bake_func(struct bake *b, struct ws_ptx_func *f)
{
    b->f = f;
    b->n_made = 0;
    b->n_regs = 0;
    b->prefix = free_prefix(f);
    if (ws_grow((void **)&b->regs, &b->cap_regs, f->n_regs + 1, sizeof(*b->regs)))
        return ws_raise(-ENOMEM);
    if (f->n_regs)
        memcpy(b->regs, f->regs, f->n_regs * sizeof(*b->regs));
    b->n_regs = f->n_regs;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        struct ws_ptx_insn *i = &f->insns[k];
        b->is_mov = i->op == WS_OP_MOV;
        (void)operands(i->operands, i->n_operands, bake_operand, b);
        if (i->space == WS_SP_CONST && i->op != WS_OP_ISSPACEP)
            i->space = WS_SP_GLOBAL;
    }
    if (b->failed)
        return ws_raise(-ENOMEM);
    return b->n_made ? prologue(b) : 0;
}

static bool renumber(void *arg, struct ws_ptx_operand *o)
{
    const uint32_t *to = arg;
    if ((o->kind == WS_OPD_SYM || o->kind == WS_OPD_ADDR) && o->sym >= 0 &&
        WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_VAR)
        o->sym = (int32_t)(WS_PTX_SYM_VAR | to[WS_PTX_SYM_INDEX(o->sym)]);
    return true;
}

static int drop_vars(struct ws_ptx_module *m)
{
    uint32_t *to = ws_alloc_array(m->n_vars + (size_t)1, sizeof(*to)), n = 0;
    if (!to)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < m->n_vars; k++) {
        to[k] = n;
        if (!in_memory(&m->vars[k]) || !strcmp(m->vars[k].name, WS_CUDA_FUNCTION_TABLE))
            m->vars[n++] = m->vars[k];
    }
    for (uint32_t f = 0; f < m->n_funcs; f++)
        for (uint32_t k = 0; k < m->funcs[f].n_insns; k++)
            (void)operands(m->funcs[f].insns[k].operands, m->funcs[f].insns[k].n_operands, renumber,
                           to);
    m->n_vars = n;
    free(to);
    return 0;
}

int ws_cuda_bake(struct ws_ptx_module *m, const uint64_t *var_va)
{
    struct bake b = {.m = m, .var_va = var_va};
    int r = 0;
    for (uint32_t f = 0; !r && f < m->n_funcs; f++)
        r = bake_func(&b, &m->funcs[f]);
    free(b.made);
    free(b.regs);
    return r ? r : drop_vars(m);
}

/* ---- addresses of functions ---- */

int ws_cuda_add_function_table(struct ws_ptx_module *m, uint32_t *ret_n)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < m->n_vars; v++)
        for (uint32_t k = 0; k < m->vars[v].n_init_syms; k++)
            n += WS_PTX_SYM_KIND(m->vars[v].init_syms[k].sym) == WS_PTX_SYM_FUNC;
    *ret_n = n;
    if (!n)
        return 0;
    struct ws_ptx_var *vars = ws_arena_array(&m->arena, m->n_vars + (size_t)1, sizeof(*vars));
    struct ws_ptx_init_sym *syms = ws_arena_array(&m->arena, n, sizeof(*syms));
    uint64_t *dims = ws_arena_array(&m->arena, 1, sizeof(*dims));
    uint8_t *init = ws_arena_alloc(&m->arena, n * sizeof(uint64_t));
    if (!vars || !syms || !dims || !init)
        return ws_raise(-ENOMEM);
    memcpy(vars, m->vars, m->n_vars * sizeof(*vars));
    n = 0;
    for (uint32_t v = 0; v < m->n_vars; v++)
        for (uint32_t k = 0; k < m->vars[v].n_init_syms; k++)
            if (WS_PTX_SYM_KIND(m->vars[v].init_syms[k].sym) == WS_PTX_SYM_FUNC) {
                syms[n] = (struct ws_ptx_init_sym){.offset = n * sizeof(uint64_t),
                                                   .sym = m->vars[v].init_syms[k].sym,
                                                   .bytes = sizeof(uint64_t)};
                n++;
            }
    dims[0] = n;
    vars[m->n_vars] = (struct ws_ptx_var){.name = WS_CUDA_FUNCTION_TABLE,
                                          .space = WS_SP_GLOBAL,
                                          .type = WS_T_U64,
                                          .link = WS_LINK_VISIBLE,
                                          .is_array = true,
                                          .align = 8,
                                          .size_bytes = n * sizeof(uint64_t),
                                          .n_elems = n,
                                          .n_dims = 1,
                                          .dims = dims,
                                          .init = init,
                                          .init_bytes = n * sizeof(uint64_t),
                                          .n_init_syms = n,
                                          .init_syms = syms,
                                          .reg = -1};
    m->vars = vars;
    m->n_vars++;
    return 0;
}

/* ---- what cannot be linked ---- */

/* Functions that the driver itself defines for kernels. */
static bool driver_has(const char *name)
{
    static const char *const known[] = {"vprintf", "malloc", "free", "__assertfail"};
    for (size_t k = 0; k < WS_ARRAY_SIZE(known); k++)
        if (!strcmp(name, known[k]))
            return true;
    return false;
}

static bool has_body(const struct ws_ptx_module *m, uint32_t f)
{
    for (uint32_t k = 0; k < m->n_aliases; k++)
        if (m->aliases[k].alias == (int32_t)f)
            return true;
    return !m->funcs[f].is_decl;
}

/* A texture or surface instruction that no pass has replaced; its operands may be references that
 * are not there any more. */
static const char *lacks_texture(struct ws_ptx_module *m, const struct ws_ptx_insn *i,
                                 bool *ret_empty)
{
    char text[200];
    *ret_empty = true;
    int n = snprintf(text, sizeof(text), "line %u: %s%s is not supported on real GPUs", i->line,
                     ws_ptx_op_name((enum ws_ptx_op)i->op), i->ext ? i->ext : "");
    const char *copy = ws_arena_strndup(&m->arena, text, WS_MIN((size_t)n, sizeof(text) - 1));
    return copy ? copy : "a texture instruction is not supported on real GPUs";
}

/* Why @f itself cannot run, or NULL; *ret_empty: it cannot be linked either. */
static const char *lacks(struct ws_ptx_module *m, const struct ws_ptx_func *f, bool *ret_empty)
{
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        if (ws_ptx_is_texop((enum ws_ptx_op)i->op))
            return lacks_texture(m, i, ret_empty);
        if (i->op != WS_OP_CALL || i->call->callee.sym < 0)
            continue;
        uint32_t to = (uint32_t)WS_PTX_SYM_INDEX(i->call->callee.sym);
        if (to < m->n_funcs && !has_body(m, to) && !driver_has(m->funcs[to].name)) {
            char text[256];
            *ret_empty = true;
            bool starts = ws_ptx_device_runtime(m->funcs[to].name);
            int n = snprintf(text, sizeof(text),
                             starts ? "call of %s: only on software GPUs can kernels start kernels"
                                    : "unresolved external function %s",
                             m->funcs[to].name);
            const char *copy =
                ws_arena_strndup(&m->arena, text, (size_t)WS_MIN(n, (int)sizeof(text) - 1));
            return copy ? copy : "unresolved external function";
        }
    }
    return NULL;
}

int ws_cuda_prune(struct ws_ptx_module *m, const char **why)
{
    for (uint32_t f = 0; f < m->n_funcs; f++) {
        bool empty = false;
        why[f] = lacks(m, &m->funcs[f], &empty);
        if (empty)
            m->funcs[f].n_insns = m->funcs[f].n_labels = 0;
    }
    /* A function that calls such a function cannot run either, but can be linked. */
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t f = 0; f < m->n_funcs; f++)
            for (uint32_t k = 0; !why[f] && k < m->funcs[f].n_insns; k++) {
                const struct ws_ptx_insn *i = &m->funcs[f].insns[k];
                if (i->op != WS_OP_CALL || i->call->callee.sym < 0)
                    continue;
                uint32_t to = (uint32_t)WS_PTX_SYM_INDEX(i->call->callee.sym);
                if (to < m->n_funcs && why[to]) {
                    why[f] = why[to];
                    changed = true;
                }
            }
    }
    return 0;
}

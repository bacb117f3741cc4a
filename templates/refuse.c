// SPDX-License-Identifier: Apache-2.0
/* Which kernels may share a launch with kernels of other clients.
 *
 * A fence checks accesses through global and generic addresses, and the parts of a launch keep a
 * fault to one client. Whatever else could let a kernel reach another client is refused here:
 *   1. calls through registers: a forged number could be another member's function, which is fenced
 *      to that member's memory;
 *   2. addresses of functions: they are other numbers in the fused module than in the client's own;
 *   3. addresses of parameters: other members' parameters stand behind a member's own;
 *   4. the question whether an address is constant, since constants may become global variables
 *      (leader.c);
 *   5. malloc() and free(), because a joint space has no heap, and launches from the device. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "templates/template_private.h"

WS_PRINTF(4, 5)
static int refuse(char *why, size_t bytes, uint32_t line, const char *fmt, ...)
{
    char text[200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (line)
        snprintf(why, bytes, "line %u: %s", line, text);
    else
        snprintf(why, bytes, "%s", text);
    return WS_PTX_E_UNSUPPORTED;
}

static bool is_param(const struct ws_ptx_func *f, int32_t sym)
{
    return f->is_entry && sym >= 0 && WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_LOCALVAR &&
           (uint32_t)WS_PTX_SYM_INDEX(sym) < f->n_params;
}

static bool is_func(int32_t sym)
{
    return sym >= 0 && WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_FUNC;
}

/* For an operand outside the arguments of calls, where a parameter's name stands for its value. */
static int operand_refused(const struct ws_ptx_func *f, const struct ws_ptx_operand *o,
                           uint32_t line, char *why, size_t bytes)
{
    if (o->kind == WS_OPD_SYM && is_func(o->sym))
        return refuse(why, bytes, line, "the address of a function");
    if (o->kind == WS_OPD_SYM && is_param(f, o->sym))
        return refuse(why, bytes, line, "the address of a parameter");
    for (uint16_t k = 0; k < o->n; k++) {
        int r = operand_refused(f, &o->v[k], line, why, bytes);
        if (r)
            return r;
    }
    return 0;
}

/* An access to the parameters must stay inside the one that it names. */
static int access_refused(const struct ws_ptx_func *f, const struct ws_ptx_insn *i, char *why,
                          size_t bytes)
{
    if ((i->op != WS_OP_LD && i->op != WS_OP_ST) || i->space != WS_SP_PARAM)
        return 0;
    const struct ws_ptx_operand *o = &i->operands[i->op == WS_OP_LD ? 1 : 0];
    uint64_t n = (uint64_t)WS_MAX(i->vec, 1) * ws_ptx_type_bytes((enum ws_ptx_type)i->types[0]);
    if (o->reg >= 0 || o->sym < 0)
        return refuse(why, bytes, i->line, "a parameter by its address");
    if (!is_param(f, o->sym))
        return 0;
    const struct ws_ptx_var *v = &f->params[WS_PTX_SYM_INDEX(o->sym)];
    if (o->imm < 0 || (uint64_t)o->imm > v->size_bytes || n > v->size_bytes - (uint64_t)o->imm)
        return refuse(why, bytes, i->line, "an access beside the parameter it names");
    return 0;
}

static int func_refused(const struct ws_ptx_module *m, const struct ws_ptx_func *f, char *why,
                        size_t bytes)
{
    if (f->is_decl) {
        if (!strcmp(f->name, "vprintf") || !strcmp(f->name, "__assertfail"))
            return 0;
        return refuse(why, bytes, 0, "calls %.100s", f->name);
    }
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        if (i->op == WS_OP_ISSPACEP && i->space == WS_SP_CONST)
            return refuse(why, bytes, i->line, "isspacep.const");
        if (i->call && i->call->callee.kind != WS_OPD_SYM)
            return refuse(why, bytes, i->line, "a call through a register");
        int r = access_refused(f, i, why, bytes);
        for (uint8_t n = 0; !r && n < i->n_operands; n++)
            r = operand_refused(f, &i->operands[n], i->line, why, bytes);
        if (r)
            return r;
    }
    return 0;
}

int ws_template_refused(const struct ws_ptx_module *m, uint32_t func, char *ret_why,
                        size_t why_bytes)
{
    struct ws_template_uses u;
    int r = ws_ptx_fence_refused(m, func, ret_why, why_bytes);
    if (!r)
        r = ws_ptx_fuse_refused(m, func, ret_why, why_bytes);
    if (r)
        return r < 0 ? ws_forward(r) : r;
    r = ws_template_find_uses(&u, m, func);
    if (r)
        return ws_forward(r);
    for (uint32_t k = 0; !r && k < m->n_funcs; k++)
        if (u.funcs[k])
            r = func_refused(m, &m->funcs[k], ret_why, why_bytes);
    ws_template_uses_deinit(&u);
    return r;
}

// SPDX-License-Identifier: Apache-2.0
/* ptx/text/validate.c - every instruction against its row of opcodes.def.
 *
 * Types: an operand must have the width of the type its place names; float and integer do not mix,
 * .bN goes with both (PTX ISA 9.2). Loads, stores and conversions take wider registers (9.4.1).
 * Rows with '*' (textures, matrices, bulk copies) are checked for what every operand must be:
 * registers, symbols and labels that exist.
 *
 * The parser makes indices that are in range; passes may not, so those are checked first. */
#include "ptx/ptx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/budget.h"
#include "base/error.h"
#include "ptx/ptx_private.h"

struct checker {
    const struct ws_ptx_module *m;
    const struct ws_ptx_func *f;
    const struct ws_ptx_insn *i;
    const char *file;
    struct ws_diags *diags;
    size_t n_errors;
};

static bool fail(struct checker *c, const char *fmt, ...) WS_PRINTF(2, 3);

static bool fail(struct checker *c, const char *fmt, ...)
{
    char what[400], insn[200];
    va_list ap;
    c->n_errors++;
    if (!c->diags)
        return false;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    ws_ptx_insn_text(c->m, c->f, c->i, insn, sizeof(insn));
    ws_diags_add(c->diags, c->file, c->i->line, c->i->col, "%s, in '%s'", what, insn);
    return false;
}

/* ---- indices ---- */

static bool sym_exists(const struct checker *c, int32_t sym)
{
    uint32_t k = WS_PTX_SYM_INDEX(sym);
    switch (WS_PTX_SYM_KIND(sym)) {
    case WS_PTX_SYM_VAR:
        return k < c->m->n_vars;
    case WS_PTX_SYM_FUNC:
        return k < c->m->n_funcs;
    case WS_PTX_SYM_LOCALVAR:
        return ws_ptx_localvar(c->f, k) != NULL;
    default:
        return false;
    }
}

static bool exists(struct checker *c, const struct ws_ptx_operand *o)
{
    bool reg = o->reg >= 0 && (uint32_t)o->reg < c->f->n_regs;
    switch (o->kind) {
    case WS_OPD_REG:
        if (!reg)
            return fail(c, "register %d does not exist", o->reg);
        break;
    case WS_OPD_ADDR:
        if (o->reg >= 0 ? !reg : o->sym >= 0 && !sym_exists(c, o->sym))
            return fail(c, "the address' base does not exist");
        break;
    case WS_OPD_SYM:
        if (o->sym < 0 || !sym_exists(c, o->sym))
            return fail(c, "the symbol does not exist");
        break;
    case WS_OPD_LABEL:
        if (o->label < 0 || (uint32_t)o->label >= c->f->n_labels ||
            c->f->labels[o->label].insn > c->f->n_insns)
            return fail(c, "the label does not exist");
        break;
    }
    for (unsigned k = 0; k < o->n; k++)
        if (!exists(c, &o->v[k]))
            return false;
    return true;
}

/* ---- operands ---- */

enum type_kind { K_BITS, K_INT, K_FLOAT, K_PRED, K_OTHER };

static enum type_kind kind_of(enum ws_ptx_type t)
{
    switch (t) {
    case WS_T_B8:
    case WS_T_B16:
    case WS_T_B32:
    case WS_T_B64:
    case WS_T_B128:
        return K_BITS;
    case WS_T_F16:
    case WS_T_F16X2:
    case WS_T_BF16:
    case WS_T_BF16X2:
    case WS_T_TF32:
    case WS_T_F32:
    case WS_T_F64:
    case WS_T_F32X2:
        return K_FLOAT;
    case WS_T_PRED:
        return K_PRED;
    case WS_T_NONE:
    case WS_T_TEXREF:
    case WS_T_SAMPLERREF:
    case WS_T_SURFREF:
        return K_OTHER;
    default:
        /* cvt's small formats live in .bN registers */
        return t >= WS_T_E4M3 ? K_BITS : K_INT;
    }
}

/* One word of a signature, with the instruction's types put in. */
struct signature_slot {
    bool dest, addr, label, labels, integer, rest, any;
    bool wider, vec, pair, neg, sym, optional;
    enum ws_ptx_type type;
};

static enum ws_ptx_type twice(enum ws_ptx_type t)
{
    switch (t) {
    case WS_T_U16:
        return WS_T_U32;
    case WS_T_S16:
        return WS_T_S32;
    case WS_T_U32:
        return WS_T_U64;
    case WS_T_S32:
        return WS_T_S64;
    default:
        return WS_T_NONE;
    }
}

static enum ws_ptx_type slot_type(const struct ws_ptx_insn *i, char c)
{
    switch (c) {
    case '0':
    case '1':
    case '2':
        /* mixed precision (add.f32.bf16) and cvt.pack name fewer types than places */
        return c - '0' < i->n_types ? i->types[c - '0'] : i->types[i->n_types ? i->n_types - 1 : 0];
    case 'w':
        return i->sub == WS_SUB_WIDE ? twice(i->types[0]) : i->types[0];
    case 'p':
        return WS_T_PRED;
    case 'u':
        return WS_T_B32;
    case 'U':
        return WS_T_B64;
    case 'h':
        return WS_T_B16;
    default:
        return WS_T_NONE;
    }
}

/* Reads the word at *s and moves behind it. */
static bool next_slot(const struct ws_ptx_insn *i, const char **s, struct signature_slot *ret)
{
    const char *p = *s;
    bool absent = false;
    *ret = (struct signature_slot){0};
    while (*p == ' ')
        p++;
    if (!*p)
        return false;
    switch (*p++) {
    case 'a':
        ret->addr = true;
        break;
    case 'l':
        ret->label = true;
        break;
    case 'L':
        ret->labels = true;
        break;
    case 'i':
        ret->integer = true;
        break;
    case '*':
        ret->rest = true;
        break;
    case 'd':
        ret->dest = true; /* fall through */
    default:
        ret->any = *p == 'x';
        ret->type = slot_type(i, *p++);
    }
    for (; *p && *p != ' '; p++)
        switch (*p) {
        case '+':
            ret->wider = true;
            break;
        case 'v':
            ret->vec = true;
            break;
        case '|':
            ret->pair = true;
            break;
        case '!':
            ret->neg = true;
            break;
        case 'y':
            ret->sym = true;
            break;
        case '?':
            ret->optional = true;
            break;
        case 'c':
            absent = i->sub != WS_SUB_CAS;
            break;
        }
    *s = p;
    return absent ? next_slot(i, s, ret) : true;
}

static bool reg_fits(struct checker *c, const struct ws_ptx_operand *o,
                     const struct signature_slot *s, unsigned place)
{
    enum ws_ptx_type have = c->f->regs[o->reg].type, want = s->type;
    enum type_kind kh = kind_of(have), kw = kind_of(want);
    unsigned bh = ws_ptx_type_bytes(have), bw = ws_ptx_type_bytes(want);
    /* a part of a vector register or of a video operand has no declared type of its own */
    if (o->part || s->any)
        return true;
    bool ok = kh == kw || (kh == K_BITS && kw != K_PRED) || (kw == K_BITS && kh != K_PRED);
    if (kw == K_FLOAT && kh == K_FLOAT && bh == bw)
        ok = have == want;
    ok = ok && (s->wider ? bh >= bw : bh == bw);
    if (ok)
        return true;
    return fail(c, "operand %u, '%s', is .%s; expected .%s%s", place, c->f->regs[o->reg].name,
                ws_ptx_type_name(have), ws_ptx_type_name(want),
                s->wider ? " or a wider integer" : "");
}

static bool one(struct checker *c, const struct ws_ptx_operand *o, const struct signature_slot *s,
                unsigned place);

/* The register of a vector type, and mov's packing: types of the elements follow from the whole. */
static bool vector(struct checker *c, const struct ws_ptx_operand *o,
                   const struct signature_slot *s, unsigned place)
{
    static const enum ws_ptx_type bits[] = {
        [1] = WS_T_B8, [2] = WS_T_B16, [4] = WS_T_B32, [8] = WS_T_B64};
    struct signature_slot e = *s;
    unsigned vec = c->i->vec;
    if (!s->vec)
        return fail(c, "operand %u must not be a vector", place);
    e.vec = e.sym = false;
    if (c->i->op == WS_OP_MOV && vec <= 1) {
        unsigned bytes = ws_ptx_type_bytes(s->type);
        if (o->n != 2 && o->n != 4 && o->n != 8)
            return fail(c, "operand %u has %u elements; mov packs 2 or 4", place, o->n);
        if (!bytes || bytes % o->n || bytes / o->n > 8 || kind_of(s->type) != K_BITS)
            return fail(c, ".%s cannot be split into %u parts", ws_ptx_type_name(s->type), o->n);
        e.type = bits[bytes / o->n];
    } else if (o->n != vec) {
        return fail(c, "operand %u has %u elements, but the instruction says %s%.0u", place, o->n,
                    vec ? ".v" : "no vector", vec);
    }
    for (unsigned k = 0; k < o->n; k++)
        if (!one(c, &o->v[k], &e, place))
            return false;
    return true;
}

static bool one(struct checker *c, const struct ws_ptx_operand *o, const struct signature_slot *s,
                unsigned place)
{
    if (s->addr)
        return o->kind == WS_OPD_ADDR ||
               fail(c, "operand %u must be an address in brackets", place);
    if (s->label)
        return o->kind == WS_OPD_LABEL || fail(c, "operand %u must be a label", place);
    if (s->labels)
        return o->kind == WS_OPD_VEC || fail(c, "operand %u must be a list of labels", place);
    if (s->integer)
        return (o->kind == WS_OPD_IMM && o->imm_kind == WS_IMM_INT) ||
               fail(c, "operand %u must be an integer constant", place);
    if (o->neg && !s->neg)
        return fail(c, "operand %u cannot be negated", place);
    switch (o->kind) {
    case WS_OPD_REG:
        return reg_fits(c, o, s, place);
    case WS_OPD_SINK:
        return s->dest || s->vec || fail(c, "operand %u: '_' can only be a destination", place);
    case WS_OPD_VEC:
        return vector(c, o, s, place);
    case WS_OPD_PAIR: {
        struct signature_slot p = {.dest = true, .type = WS_T_PRED};
        if (!s->pair)
            return fail(c, "operand %u must not be a pair", place);
        return one(c, &o->v[0], s, place) && one(c, &o->v[1], &p, place);
    }
    case WS_OPD_IMM:
    case WS_OPD_SREG:
        if (s->dest)
            return fail(c, "operand %u is a destination and must be a register", place);
        if (o->kind == WS_OPD_IMM && o->imm_kind != WS_IMM_INT && kind_of(s->type) == K_INT)
            return fail(c, "operand %u is a floating-point constant; expected an integer", place);
        return true;
    case WS_OPD_SYM:
        return (s->sym && !s->dest) ||
               fail(c, "operand %u: the address of a variable must go through mov", place);
    default:
        return fail(c, "operand %u must be a register or a constant", place);
    }
}

static bool check_operands(struct checker *c)
{
    const char *sig = ws_ptx_ops[c->i->op].sig;
    const struct ws_ptx_insn *i = c->i;
    struct signature_slot s;
    unsigned k = 0;
    for (unsigned j = 0; j < i->n_operands; j++)
        if (!exists(c, &i->operands[j]))
            return false;
    if (*sig == 'C')
        return true;
    /* An optional place is taken only if operands are left over for it: bar.red has one before its
     * last. */
    unsigned required = 0;
    for (const char *p = sig; next_slot(i, &p, &s) && !s.rest;)
        required += !s.optional;
    while (next_slot(i, &sig, &s)) {
        if (s.rest)
            return true;
        if (s.optional && i->n_operands - k <= required)
            continue;
        if (k >= i->n_operands)
            return fail(c, "%u operands are too few", i->n_operands);
        if (!one(c, &i->operands[k], &s, k + 1))
            return false;
        k++;
        required -= !s.optional;
    }
    return k == i->n_operands || fail(c, "%u operands are too many; expected %u", i->n_operands, k);
}

/* ---- modifiers ---- */

static bool needs_sub(const struct ws_ptx_insn *i)
{
    const char *mods = ws_ptx_ops[i->op].mods;
    if (!strchr(mods, 'M'))
        return false;
    return (i->op != WS_OP_MUL && i->op != WS_OP_MAD) || kind_of(i->types[0]) != K_FLOAT;
}

static bool bad_type(struct checker *c, enum ws_ptx_type have, uint64_t want)
{
    char list[200] = "";
    size_t n = 0;
    for (int t = WS_T_B8; t < _WS_T_N && n < sizeof(list) - 12; t++)
        if (want >> t & 1)
            n += snprintf(list + n, sizeof(list) - n, " .%s", ws_ptx_type_name(t));
    return fail(c, "'%s' does not work on .%s, only on%s", ws_ptx_op_name(c->i->op),
                ws_ptx_type_name(have), list);
}

static bool check_mods(struct checker *c)
{
    const struct ws_ptx_insn *i = c->i;
    const struct ws_ptx_op_info *info = &ws_ptx_ops[i->op];
    if (info->mods[0] == 'W')
        return true;
    if (i->n_types < info->min_types)
        return fail(c, "'%s' needs %u type%s, not %u", info->name, info->min_types,
                    info->min_types > 1 ? "s" : "", i->n_types);
    if (i->n_types > info->max_types)
        return fail(c, "'%s' takes %u type%s, not %u", info->name, info->max_types,
                    info->max_types == 1 ? "" : "s", i->n_types);
    for (unsigned k = 0; k < i->n_types; k++)
        if (!((k ? info->t1 : info->t0) >> i->types[k] & 1))
            return bad_type(c, i->types[k], k ? info->t1 : info->t0);
    if (strchr(info->mods, 'c') && !i->cmp)
        return fail(c, "'%s' needs a comparison (.eq, .lt, …)", info->name);
    if (needs_sub(i) && !i->sub)
        return fail(c, "'%s' needs to be told which kind (%s)", info->name,
                    info->subs >> WS_SUB_LO & 1    ? ".lo, .hi"
                    : info->subs >> WS_SUB_ADD & 1 ? ".add, .min, …"
                                                   : "see PTX ISA 9.7");
    if (i->sub == WS_SUB_WIDE && (twice(i->types[0]) == WS_T_NONE || i->op == WS_OP_MADC))
        return fail(c, ".wide does not work on .%s", ws_ptx_type_name(i->types[0]));
    return true;
}

static bool check_call(struct checker *c)
{
    const struct ws_ptx_call *call = c->i->call;
    if (!call)
        return fail(c, "the call has no callee");
    if (!exists(c, &call->callee))
        return false;
    for (uint32_t k = 0; k < call->n_rets + call->n_args; k++) {
        const struct ws_ptx_operand *o =
            k < call->n_rets ? &call->rets[k] : &call->args[k - call->n_rets];
        if (!exists(c, o))
            return false;
        bool constant = o->kind == WS_OPD_IMM && k >= call->n_rets;
        if (o->kind != WS_OPD_REG && o->kind != WS_OPD_SYM && o->kind != WS_OPD_SINK && !constant)
            return fail(c, "what is passed must be a register, a .param variable or a constant");
    }
    if (call->callee.kind == WS_OPD_REG) {
        if (call->proto < 0 || (uint32_t)call->proto >= c->f->n_protos)
            return fail(c, "a call through a register needs the name of a .callprototype or "
                           ".calltargets behind its arguments");
        const struct ws_ptx_proto *p = &c->f->protos[call->proto];
        if (!p->n_targets && (p->n_params != call->n_args || p->n_rets != call->n_rets))
            return fail(c, "%u results and %u arguments, but '%s' says %u and %u", call->n_rets,
                        call->n_args, p->name, p->n_rets, p->n_params);
        return true;
    }
    if (WS_PTX_SYM_KIND(call->callee.sym) != WS_PTX_SYM_FUNC)
        return fail(c, "what is called is no function");
    const struct ws_ptx_func *f = &c->m->funcs[WS_PTX_SYM_INDEX(call->callee.sym)];
    if (f->n_params != call->n_args || f->n_rets != call->n_rets)
        return fail(c, "%u results and %u arguments, but '%s' has %u and %u", call->n_rets,
                    call->n_args, f->name, f->n_rets, f->n_params);
    return true;
}

static void check_insn(struct checker *c)
{
    const struct ws_ptx_insn *i = c->i;
    if (i->op >= _WS_OP_N) {
        fail(c, "opcode %u does not exist", i->op);
        return;
    }
    if (i->guard >= 0 &&
        ((uint32_t)i->guard >= c->f->n_regs || c->f->regs[i->guard].type != WS_T_PRED)) {
        fail(c, "the guard is not a predicate register");
        return;
    }
    if (check_mods(c) && check_operands(c) && i->op == WS_OP_CALL)
        check_call(c);
}

static void check_labels(struct checker *c)
{
    static const struct ws_ptx_insn none = {.op = WS_OP_RET, .guard = -1};
    c->i = &none;
    for (uint32_t k = 0; k < c->f->n_labels; k++)
        if (c->f->labels[k].insn > c->f->n_insns ||
            (k && c->f->labels[k].insn < c->f->labels[k - 1].insn))
            fail(c, "label '%s' stands outside the function or out of order", c->f->labels[k].name);
}

int ws_ptx_validate(const struct ws_ptx_module *m, const char *file, struct ws_diags *diags)
{
    struct checker c = {.m = m, .file = file, .diags = diags};
    for (uint32_t k = 0; k < m->n_funcs && c.n_errors < WS_PTX_MAX_ERRORS; k++) {
        c.f = &m->funcs[k];
        check_labels(&c);
        for (uint32_t j = 0; j < c.f->n_insns && c.n_errors < WS_PTX_MAX_ERRORS; j++) {
            if (!ws_budget_spend(1))
                return ws_raise(-ENOMEM);
            c.i = &c.f->insns[j];
            check_insn(&c);
        }
    }
    return c.n_errors ? WS_PTX_E_SYNTAX : 0;
}

// SPDX-License-Identifier: Apache-2.0
/* ptx/text/body.c - a function's body: blocks, labels, instructions, operands (PTX ISA 4.3, 6, 9.1
 * to 9.3).
 *
 * Operands are read by their own form, not by the opcode; only labels, the list of brx.idx and
 * call's parts depend on it. Whether they suit the opcode is the validator's question. After an
 * error in a statement the parser goes on behind the next ';', so that one run reports several. */
#include "ptx/ptx_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"

static const struct ws_ptx_operand no_operand = {.reg = -1, .sym = -1, .label = -1};

static bool operand(struct ws_parser *p, struct ws_ptx_operand *o, int depth);

/* ".x" of a vector register, ".b0" or ".h1" of a video operand, right behind a register. */
static bool part(struct ws_parser *p, struct ws_ptx_operand *o)
{
    if (p->t.kind != WS_TOK_DOT || p->t.s != p->prev_end)
        return true;
    o->part = ws_arena_strndup(&p->m->arena, p->t.s, p->t.len);
    if (!o->part)
        return ws_parse_oom(p);
    ws_parse_next(p);
    return true;
}

static bool sreg(struct ws_parser *p, struct ws_ptx_operand *o, const struct ws_tok *at)
{
    if (!ws_sreg_from_word(at->s, at->len, o)) {
        if (at->s[0] == '%')
            return ws_parse_fail(
                p, at, "'%.*s' is neither a declared register nor a special register we know",
                (int)WS_MIN(at->len, 80u), at->s);
        return ws_parse_fail(p, at, "'%.*s' is not declared", (int)WS_MIN(at->len, 80u), at->s);
    }
    switch (o->sreg) {
    case WS_SR_TID:
    case WS_SR_NTID:
    case WS_SR_CTAID:
    case WS_SR_NCTAID:
    case WS_SR_CLUSTERID:
    case WS_SR_NCLUSTERID:
    case WS_SR_CLUSTER_CTAID:
    case WS_SR_CLUSTER_NCTAID:
        o->sreg_dim = 3;
        if (p->t.kind == WS_TOK_DOT && p->t.s == p->prev_end && p->t.len == 2 &&
            strchr("xyz", p->t.s[1])) {
            o->sreg_dim = p->t.s[1] - 'x';
            ws_parse_next(p);
        } else if (p->t.kind == WS_TOK_DOT && p->t.s == p->prev_end) {
            return ws_parse_fail(p, &p->t, "%.*s has .x, .y and .z, not '%.*s'", (int)at->len,
                                 at->s, (int)WS_MIN(p->t.len, 40u), p->t.s);
        }
    }
    return true;
}

static bool offset(struct ws_parser *p, struct ws_ptx_operand *o)
{
    if (p->t.kind != '+' && p->t.kind != '-')
        return true;
    return ws_parse_int(p, &o->imm, "an offset");
}

/* A name in an operand's place; @o gets kind REG, SREG or SYM. */
static bool named(struct ws_parser *p, struct ws_ptx_operand *o)
{
    struct ws_tok at = p->t;
    struct ws_name *n = ws_name_intern(p, at.s, at.len);
    struct ws_binding *b = n ? ws_scope_lookup(p, n) : NULL;
    if (p->oom)
        return false;
    ws_parse_next(p);
    if (!b)
        return sreg(p, o, &at);
    switch (b->kind) {
    case WS_BIND_REG:
        o->kind = WS_OPD_REG;
        o->reg = b->index;
        return part(p, o);
    case WS_BIND_VAR:
        o->sym = b->index | WS_PTX_SYM_VAR;
        break;
    case WS_BIND_LOCALVAR:
        o->sym = b->index | WS_PTX_SYM_LOCALVAR;
        break;
    case WS_BIND_FUNC:
        o->sym = b->index | WS_PTX_SYM_FUNC;
        break;
    default:
        return ws_parse_fail(p, &at, "'%s' cannot be an operand", n->text);
    }
    o->kind = WS_OPD_SYM;
    return true;
}

static bool copy_elements(struct ws_parser *p, struct ws_ptx_operand *o,
                          const struct ws_ptx_operand *v, size_t n)
{
    o->n = (uint16_t)n;
    o->v = ws_arena_array(&p->m->arena, n, sizeof(*v));
    if (!o->v)
        return ws_parse_oom(p);
    memcpy(o->v, v, n * sizeof(*v));
    return true;
}

static bool elements(struct ws_parser *p, struct ws_ptx_operand *o, int end, const char *what,
                     int depth)
{
    struct ws_ptx_operand *v = NULL;
    size_t n = 0, cap = 0;
    bool ok = true;
    do {
        if (n == WS_PTX_MAX_VEC)
            ok = ws_parse_unsupported(p, &p->t, "more than %d elements", WS_PTX_MAX_VEC);
        else if (ws_grow((void **)&v, &cap, n + 1, sizeof(*v)))
            ok = ws_parse_oom(p);
        else
            ok = operand(p, &v[n], depth + 1);
        n += ok;
    } while (ok && ws_parse_accept(p, ','));
    ok = ok && ws_parse_expect(p, end, what) && copy_elements(p, o, v, n);
    free(v);
    return ok;
}

static bool address(struct ws_parser *p, struct ws_ptx_operand *o, int depth)
{
    struct ws_tok at;
    ws_parse_next(p); /* [ */
    at = p->t;
    if (p->t.kind == WS_TOK_NAME && !(at.len == 7 && !memcmp(at.s, "WARP_SZ", 7))) {
        if (!named(p, o))
            return false;
        if (o->kind == WS_OPD_SREG)
            return ws_parse_fail(p, &at, "a special register cannot be an address");
        if (!offset(p, o))
            return false;
    } else if (!ws_parse_int(p, &o->imm, "an address")) {
        return false;
    }
    o->kind = WS_OPD_ADDR;
    if (ws_parse_accept(p, ','))
        return elements(p, o, ']', "']' after the address", depth);
    return ws_parse_expect(p, ']', "'+', ',' or ']' in the address");
}

/* d|p */
static bool pair(struct ws_parser *p, struct ws_ptx_operand *o)
{
    struct ws_ptx_operand v[2] = {*o, no_operand};
    struct ws_tok at;
    ws_parse_next(p); /* | */
    at = p->t;
    if (at.kind == WS_TOK_NAME && at.len == 1 && *at.s == '_') {
        v[1].kind = WS_OPD_SINK;
        ws_parse_next(p);
    } else if (at.kind != WS_TOK_NAME) {
        return ws_parse_fail(p, &at, "expected a predicate register after '|'");
    } else if (!named(p, &v[1])) {
        return false;
    }
    if (v[1].kind != WS_OPD_REG && v[1].kind != WS_OPD_SINK)
        return ws_parse_fail(p, &at, "expected a predicate register after '|'");
    *o = no_operand;
    o->kind = WS_OPD_PAIR;
    return copy_elements(p, o, v, 2);
}

static bool operand(struct ws_parser *p, struct ws_ptx_operand *o, int depth)
{
    struct ws_tok at = p->t;
    *o = no_operand;
    if (depth > 4)
        return ws_parse_fail(p, &at, "operands nest too deep");
    switch (at.kind) {
    case '{':
        ws_parse_next(p);
        o->kind = WS_OPD_VEC;
        return elements(p, o, '}', "',' or '}' in the vector", depth) &&
               (p->t.kind != '|' || depth > 0 || pair(p, o));
    case '[':
        return address(p, o, depth);
    case '!':
    case '-': { /* a predicate; a number of vmad */
        struct ws_lex saved = p->lex;
        const char *prev_end = p->prev_end;
        ws_parse_next(p);
        if (p->t.kind != WS_TOK_NAME) { /* !0, -1, as a constant expression */
            saved.c_locale = p->lex.c_locale;
            p->lex = saved;
            p->t = at;
            p->prev_end = prev_end;
            return ws_expr_parse(p, o);
        }
        bool number = at.kind == '-';
        at = p->t;
        o->neg = 1;
        if (!named(p, o))
            return false;
        return (o->kind == WS_OPD_REG && (p->regs[o->reg].type == WS_T_PRED) != number) ||
               ws_parse_fail(p, &at, "'%c' must stand before a %s register", number ? '-' : '!',
                             number ? "number's" : "predicate");
    }
    case WS_TOK_NAME:
        if (at.len == 1 && *at.s == '_') {
            o->kind = WS_OPD_SINK;
            ws_parse_next(p);
        } else if (at.len == 7 && !memcmp(at.s, "WARP_SZ", 7)) {
            ws_parse_next(p);
            if (p->t.kind == ',' || p->t.kind == ';' || p->t.kind == '}') {
                o->kind = WS_OPD_SREG;
                o->sreg = WS_SR_WARPSZ;
            } else {
                return ws_parse_unsupported(
                    p, &p->t, "an expression that starts with WARP_SZ; put the constant first");
            }
        } else if (!named(p, o)) {
            return false;
        }
        if (o->kind == WS_OPD_SYM)
            return offset(p, o);
        if (p->t.kind == '|' && (o->kind == WS_OPD_REG || o->kind == WS_OPD_SINK))
            return pair(p, o);
        return true;
    default:
        return ws_expr_parse(p, o);
    }
}

static bool label_operand(struct ws_parser *p, struct ws_ptx_operand *o)
{
    struct ws_name *n;
    *o = no_operand;
    if (p->t.kind != WS_TOK_NAME)
        return ws_parse_fail(p, &p->t, "expected a label");
    if (!(n = ws_name_intern(p, p->t.s, p->t.len)))
        return false;
    o->kind = WS_OPD_LABEL;
    o->label = ws_label_ref(p, n, &p->t);
    ws_parse_next(p);
    return !p->oom;
}

/* The name of a .branchtargets list. */
static bool label_list(struct ws_parser *p, struct ws_ptx_operand *o)
{
    struct ws_name *n = p->t.kind == WS_TOK_NAME ? ws_name_find(p, p->t.s, p->t.len) : NULL;
    struct ws_binding *b = n ? ws_scope_lookup(p, n) : NULL;
    if (!b || b->kind != WS_BIND_TARGETS)
        return ws_parse_fail(p, &p->t,
                             "expected the name of a .branchtargets list that stands above");
    *o = p->targets[b->index];
    /* A copy of its own, because each operand's labels are numbered in place at the end of the
     * function. */
    ws_parse_next(p);
    return copy_elements(p, o, o->v, o->n);
}

static bool call_list(struct ws_parser *p, const struct ws_ptx_operand **ret, uint32_t *ret_n)
{
    struct ws_ptx_operand o = no_operand;
    ws_parse_next(p); /* ( */
    if (ws_parse_accept(p, ')'))
        return true;
    if (!elements(p, &o, ')', "',' or ')' in the call", 3))
        return false;
    *ret = o.v;
    *ret_n = o.n;
    return true;
}

static bool call_proto(struct ws_parser *p, struct ws_ptx_call *c)
{
    struct ws_name *n = p->t.kind == WS_TOK_NAME ? ws_name_find(p, p->t.s, p->t.len) : NULL;
    struct ws_binding *b = n ? ws_scope_lookup(p, n) : NULL;
    if (!b || b->kind != WS_BIND_PROTO)
        return ws_parse_fail(
            p, &p->t, "expected the name of a .callprototype or .calltargets that stands above");
    c->proto = b->index;
    ws_parse_next(p);
    return true;
}

/* call (ret), f, (args), prototype: all but f optional */
static bool call(struct ws_parser *p, struct ws_ptx_insn *i)
{
    struct ws_ptx_call *c = ws_arena_alloc(&p->m->arena, sizeof(*c));
    if (!c)
        return ws_parse_oom(p);
    i->call = c;
    c->proto = -1;
    if (p->t.kind == '(' &&
        (!call_list(p, &c->rets, &c->n_rets) || !ws_parse_expect(p, ',', "',' after the results")))
        return false;
    struct ws_tok at = p->t;
    c->callee = no_operand;
    if (at.kind != WS_TOK_NAME)
        return ws_parse_fail(p, &at, "expected a function");
    if (!named(p, &c->callee))
        return false;
    bool direct = c->callee.kind == WS_OPD_SYM && WS_PTX_SYM_KIND(c->callee.sym) == WS_PTX_SYM_FUNC;
    if (!direct && c->callee.kind != WS_OPD_REG)
        return ws_parse_fail(p, &at, "expected a function or a register that holds its address");
    if (!ws_parse_accept(p, ','))
        return true;
    if (p->t.kind == '(') {
        if (!call_list(p, &c->args, &c->n_args))
            return false;
        if (!ws_parse_accept(p, ','))
            return true;
    }
    return call_proto(p, c);
}

static bool accesses_memory(const struct ws_ptx_insn *i)
{
    return i->op == WS_OP_LD || i->op == WS_OP_LDU || i->op == WS_OP_ST || i->op == WS_OP_ATOM ||
           i->op == WS_OP_RED;
}

/* A vector of one element, {%r1}, which Triton and others write: the element. */
static void unwrap(struct ws_ptx_operand *o)
{
    if (o->kind == WS_OPD_VEC && o->n == 1)
        *o = o->v[0];
}

static bool operands(struct ws_parser *p, struct ws_ptx_insn *i)
{
    struct ws_ptx_operand v[WS_PTX_MAX_OPERANDS];
    const char *sig = ws_ptx_ops[i->op].sig;
    unsigned n = 0;
    if (p->t.kind == ';')
        return true;
    if (*sig == 'C')
        return call(p, i);
    do {
        bool ok;
        if (n == WS_PTX_MAX_OPERANDS)
            return ws_parse_fail(p, &p->t, "more than %d operands", WS_PTX_MAX_OPERANDS);
        if (i->op == WS_OP_BRA)
            ok = label_operand(p, &v[n]);
        else if (i->op == WS_OP_BRX_IDX && n == 1)
            ok = label_list(p, &v[n]);
        else
            ok = operand(p, &v[n], 0);
        if (!ok)
            return false;
        n++;
    } while (ws_parse_accept(p, ','));
    for (unsigned k = 0; k < n && accesses_memory(i) && !i->vec; k++)
        unwrap(&v[k]);
    i->n_operands = n;
    i->operands = ws_arena_array(&p->m->arena, n, sizeof(*v));
    if (!i->operands)
        return ws_parse_oom(p);
    memcpy(i->operands, v, n * sizeof(*v));
    return true;
}

static bool guard(struct ws_parser *p, struct ws_ptx_insn *i)
{
    struct ws_ptx_operand o = no_operand;
    struct ws_tok at;
    ws_parse_next(p); /* @ */
    i->guard_neg = ws_parse_accept(p, '!');
    at = p->t;
    if (at.kind != WS_TOK_NAME)
        return ws_parse_fail(p, &at, "expected a predicate register after '@'");
    if (!named(p, &o))
        return false;
    if (o.kind != WS_OPD_REG || p->regs[o.reg].type != WS_T_PRED)
        return ws_parse_fail(p, &at, "the guard '%.*s' is not a predicate register",
                             (int)WS_MIN(at.len, 80u), at.s);
    i->guard = o.reg;
    return true;
}

/* From the opcode's NAME token on. The lexer stands right behind it. */
static bool instruction(struct ws_parser *p, int32_t guard_reg, uint8_t guard_neg)
{
    char buf[256];
    struct ws_tok at;
    ws_lex_opcode(&p->lex, &p->t, buf, sizeof(buf));
    at = p->t;
    const struct ws_ptx_insn *base = ws_mods_decode(p, &at);
    if (!base)
        return false;
    ws_parse_next(p);
    struct ws_ptx_insn i = *base;
    i.guard = guard_reg;
    i.guard_neg = guard_neg;
    i.line = at.line;
    i.col = at.col;
    i.src_file = p->src_file;
    i.src_line = p->src_line;
    i.pragma = p->pragma;
    p->pragma = NULL;
    if (!operands(p, &i) || !ws_parse_expect(p, ';', "',' or ';' after an operand"))
        return false;
    if (ws_grow((void **)&p->insns, &p->insns_cap, p->n_insns + 1, sizeof(i)))
        return ws_parse_oom(p);
    p->insns[p->n_insns++] = i;
    return true;
}

static bool branchtargets(struct ws_parser *p, struct ws_name *n, const struct ws_tok *at)
{
    struct ws_ptx_operand *v = NULL, o = no_operand;
    size_t count = 0, cap = 0;
    bool ok = true;
    ws_parse_next(p); /* .branchtargets */
    do {
        if (count == UINT16_MAX)
            ok = ws_parse_unsupported(p, &p->t, "more than %d labels in a list", UINT16_MAX);
        else if (ws_grow((void **)&v, &cap, count + 1, sizeof(*v)))
            ok = ws_parse_oom(p);
        else
            ok = label_operand(p, &v[count]);
        count += ok;
    } while (ok && ws_parse_accept(p, ','));
    o.kind = WS_OPD_VEC;
    ok =
        ok && ws_parse_expect(p, ';', "',' or ';' after a label") && copy_elements(p, &o, v, count);
    free(v);
    if (!ok || !ws_scope_bind(p, n, WS_BIND_TARGETS, (int32_t)p->n_targets, at))
        return false;
    if (ws_grow((void **)&p->targets, &p->targets_cap, p->n_targets + 1, sizeof(o)))
        return ws_parse_oom(p);
    p->targets[p->n_targets++] = o;
    return true;
}

/* "name :" was read; p->t is what follows. */
static bool labelled(struct ws_parser *p, struct ws_name *n, const struct ws_tok *at)
{
    if (ws_parse_is_dot(p, "branchtargets"))
        return branchtargets(p, n, at);
    if (ws_parse_is_dot(p, "callprototype"))
        return ws_parse_callprototype(p, n, at);
    if (ws_parse_is_dot(p, "calltargets"))
        return ws_parse_calltargets(p, n, at);
    return ws_label_define(p, n, at);
}

/* Kept with the next instruction, as text; two in a row become one list. */
static bool pragma(struct ws_parser *p)
{
    struct ws_tok at;
    ws_parse_next(p);
    at = p->t;
    do {
        if (p->t.kind != WS_TOK_STR)
            return ws_parse_fail(p, &p->t, "expected a string after .pragma");
        size_t n = p->pragma ? strlen(p->pragma) + 2 : 0;
        if (n + p->t.len > 500)
            return ws_parse_unsupported(p, &at, "pragmas with more than 500 characters");
        char *s = ws_arena_alloc(&p->m->arena, n + p->t.len + 3);
        if (!s)
            return ws_parse_oom(p);
        sprintf(s, "%s%s\"%.*s\"", n ? p->pragma : "", n ? ", " : "", (int)p->t.len, p->t.s);
        p->pragma = s;
        ws_parse_next(p);
    } while (ws_parse_accept(p, ','));
    return ws_parse_expect(p, ';', "';' after the pragma");
}

static bool statement(struct ws_parser *p)
{
    struct ws_ptx_insn g = {.guard = -1};
    bool found;
    if (p->t.kind == WS_TOK_NAME) {
        struct ws_tok at = p->t;
        const char *s = p->lex.cur;
        while (s < p->lex.end && (*s == ' ' || *s == '\t'))
            s++;
        if (s < p->lex.end && *s == ':') {
            struct ws_name *n = ws_name_intern(p, at.s, at.len);
            ws_parse_next(p);
            ws_parse_next(p);
            return n && labelled(p, n, &at);
        }
        return instruction(p, -1, 0);
    }
    if (p->t.kind == '@') {
        if (!guard(p, &g))
            return false;
        if (p->t.kind != WS_TOK_NAME)
            return ws_parse_fail(p, &p->t, "expected an instruction after the guard");
        return instruction(p, g.guard, g.guard_neg);
    }
    if (p->t.kind == ';') {
        ws_parse_next(p);
        return true;
    }
    if (ws_parse_is_dot(p, "reg"))
        return ws_decl_regs(p);
    if (ws_decl_is_space(p))
        return ws_decl_vars(p, WS_LINK_NONE);
    if (ws_parse_is_dot(p, "extern")) { /* nvcc puts ".extern .shared" into functions, too */
        ws_parse_next(p);
        if (ws_decl_is_space(p))
            return ws_decl_vars(p, WS_LINK_EXTERN);
    }
    if (ws_parse_is_dot(p, "pragma"))
        return pragma(p);
    if (!ws_parse_debug(p, &found))
        return false;
    return found || ws_parse_fail(p, &p->t, "expected an instruction, a label or a declaration");
}

/* Blocks are followed by a loop, not by recursion. */
static bool blocks(struct ws_parser *p)
{
    unsigned outer = p->depth;
    while (!p->stop) {
        if (p->t.kind == '{') {
            if (!ws_scope_enter(p))
                return false;
            ws_parse_next(p);
        } else if (p->t.kind == '}') {
            bool last = p->depth == outer + 1;
            ws_parse_next(p);
            if (!ws_scope_leave(p))
                return false;
            if (last)
                return true;
        } else if (p->t.kind == WS_TOK_END) {
            return ws_parse_fail(p, &p->t, "the text ends inside a function; expected '}'");
        } else if (!statement(p) && !p->stop) {
            ws_parse_skip_statement(p);
        }
    }
    return false;
}

static int32_t final_label(struct ws_parser *p, int32_t id)
{
    int32_t root = id;
    while (p->label_ids[root].same_as >= 0)
        root = p->label_ids[root].same_as;
    while (p->label_ids[id].same_as >= 0) { /* shorten the way for the next one */
        int32_t next = p->label_ids[id].same_as;
        p->label_ids[id].same_as = root;
        id = next;
    }
    return p->label_ids[root].final;
}

static void number_labels(struct ws_parser *p)
{
    for (size_t k = 0; k < p->n_insns; k++) {
        struct ws_ptx_insn *i = &p->insns[k];
        if (i->op == WS_OP_BRA && i->n_operands) {
            i->operands[0].label = final_label(p, i->operands[0].label);
        } else if (i->op == WS_OP_BRX_IDX && i->n_operands == 2) {
            for (unsigned j = 0; j < i->operands[1].n; j++)
                i->operands[1].v[j].label = final_label(p, i->operands[1].v[j].label);
        }
    }
}

static bool collect_labels(struct ws_parser *p, struct ws_ptx_func *f)
{
    f->n_labels = (uint32_t)p->n_labels;
    if (!f->n_labels)
        return true;
    f->labels = ws_arena_array(&p->m->arena, f->n_labels, sizeof(*f->labels));
    if (!f->labels)
        return ws_parse_oom(p);
    struct ws_name **names = ws_alloc_array(f->n_labels, sizeof(*names));
    if (!names)
        return ws_parse_oom(p);
    for (size_t k = 0; k < p->n_label_ids; k++) {
        struct ws_label_id *id = &p->label_ids[k];
        if (id->final >= 0) {
            names[id->final] = id->name;
            f->labels[id->final].insn = id->insn;
        }
    }
    bool ok = true;
    /* The first of a name keeps it, also against names made up for others. */
    for (uint32_t k = 0; k < f->n_labels; k++)
        if (names[k]->label_stamp != p->stamp) {
            names[k]->label_stamp = p->stamp;
            f->labels[k].name = names[k]->text;
        }
    for (uint32_t k = 0; ok && k < f->n_labels; k++) {
        struct ws_name *n;
        char buf[300];
        if (f->labels[k].name)
            continue;
        do {
            int len = snprintf(buf, sizeof(buf), "%.*s$%u", (int)WS_MIN(names[k]->len, 256u),
                               names[k]->text, ++names[k]->suffix);
            n = ws_name_intern(p, buf, len);
        } while (n && n->label_stamp == p->stamp);
        ok = n != NULL;
        if (n) {
            n->label_stamp = p->stamp;
            f->labels[k].name = n->text;
        }
    }
    free(names);
    return ok;
}

bool ws_body_parse(struct ws_parser *p)
{
    p->pragma = NULL;
    p->src_file = NULL;
    p->n_insns = p->n_lvars = p->n_label_ids = p->n_labels = p->n_protos = p->n_targets = 0;
    size_t errors = p->n_errors + p->n_unsupported;
    /* The parameters' scope is left by the caller, which also reports labels that are defined
     * nowhere. */
    if (!blocks(p))
        return false;
    if (errors != p->n_errors + p->n_unsupported)
        return true; /* reported; go on with the next function */
    struct ws_ptx_func *f = &p->funcs[p->func];
    f->is_decl = false;
    number_labels(p);
    if (!collect_labels(p, f))
        return false;
    f->n_insns = (uint32_t)p->n_insns;
    f->insns = ws_parse_keep(p, p->insns, p->n_insns, sizeof(*p->insns));
    f->n_regs = (uint32_t)p->n_regs;
    f->regs = ws_parse_keep(p, p->regs, p->n_regs, sizeof(*p->regs));
    f->n_vars = (uint32_t)p->n_lvars;
    f->vars = ws_parse_keep(p, p->lvars, p->n_lvars, sizeof(*p->lvars));
    f->n_protos = (uint32_t)p->n_protos;
    f->protos = ws_parse_keep(p, p->protos, p->n_protos, sizeof(*p->protos));
    return !p->oom;
}

// SPDX-License-Identifier: Apache-2.0
/* ptx/text/decl.c - declarations: variables, parameters, registers (PTX ISA 5.1 to 5.4). */
#include "ptx/ptx_private.h"

#include <string.h>
#include "base/alloc.h"

enum { MAX_DIMS = 16 };
#define MAX_VAR_BYTES (UINT64_C(1) << 40)

static const struct {
    const char *word;
    uint8_t space;
} spaces[] = {
    {"global", WS_SP_GLOBAL}, {"const", WS_SP_CONST}, {"shared", WS_SP_SHARED},
    {"local", WS_SP_LOCAL},   {"param", WS_SP_PARAM}, {"tex", WS_SP_GLOBAL},
};

static uint8_t space_of(const struct ws_parser *p)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(spaces); i++)
        if (ws_parse_is_dot(p, spaces[i].word))
            return spaces[i].space;
    return WS_SP_GENERIC;
}

bool ws_decl_is_space(const struct ws_parser *p)
{
    return space_of(p) != WS_SP_GENERIC;
}

static bool alignment(struct ws_parser *p, uint32_t *ret)
{
    struct ws_tok t = p->t;
    int64_t v;
    if (!ws_parse_int(p, &v, "an alignment"))
        return false;
    if (v < 1 || v > 1 << 20 || v & (v - 1))
        return ws_parse_fail(p, &t, "an alignment must be a power of two, not %lld", (long long)v);
    *ret = (uint32_t)v;
    return true;
}

/* .attribute(.managed, .unified(…)): only .managed means something to us. */
static bool attribute(struct ws_parser *p, struct ws_ptx_var *v)
{
    int depth = 0;
    if (p->t.kind != '(')
        return ws_parse_fail(p, &p->t, "expected '(' after .attribute");
    do {
        if (p->t.kind == '(')
            depth++;
        else if (p->t.kind == ')')
            depth--;
        else if (ws_parse_is_dot(p, "managed"))
            v->managed = true;
        else if (p->t.kind == WS_TOK_END || p->t.kind == ';')
            return ws_parse_fail(p, &p->t, "expected ')' after the attributes");
        ws_parse_next(p);
    } while (depth);
    return true;
}

/* .ptr .global .align 16, after a parameter's type */
static bool ptr_attribute(struct ws_parser *p, struct ws_ptx_var *v)
{
    v->ptr_attr = true;
    v->ptr_space = space_of(p);
    if (v->ptr_space)
        ws_parse_next(p);
    if (!ws_parse_is_dot(p, "align"))
        return true;
    ws_parse_next(p);
    return alignment(p, &v->ptr_align);
}

/* What stands between the space and the name, in any order. */
static bool qualifiers(struct ws_parser *p, struct ws_ptx_var *v)
{
    while (p->t.kind == WS_TOK_DOT) {
        struct ws_tok t = p->t;
        uint8_t type;
        if (ws_parse_is_dot(p, "align")) {
            ws_parse_next(p);
            if (!alignment(p, &v->align))
                return false;
            continue;
        }
        if (ws_parse_is_dot(p, "ptr")) {
            ws_parse_next(p);
            if (!ptr_attribute(p, v))
                return false;
            continue;
        }
        ws_parse_next(p);
        if (t.len == 10 && !memcmp(t.s, ".attribute", 10)) {
            if (!attribute(p, v))
                return false;
        } else if (t.len == 3 && t.s[1] == 'v' &&
                   (t.s[2] == '2' || t.s[2] == '4' || t.s[2] == '8')) {
            v->vec = t.s[2] - '0';
        } else if (ws_type_from_word(t.s + 1, t.len - 1, &type)) {
            if (v->type)
                return ws_parse_fail(p, &t, "a second type '%.*s'", (int)t.len, t.s);
            v->type = type;
        } else {
            return ws_parse_fail(p, &t, "expected a type, .align or .v2, not '%.*s'",
                                 (int)WS_MIN(t.len, 60u), t.s);
        }
    }
    if (!v->type)
        return ws_parse_fail(p, &p->t, "expected a type (.b8, .u32, .f32, …)");
    return true;
}

static bool dimensions(struct ws_parser *p, struct ws_ptx_var *v)
{
    uint64_t dims[MAX_DIMS], n = WS_MAX(v->vec, 1);
    bool open = false;
    while (p->t.kind == '[') {
        struct ws_tok t = p->t;
        int64_t d = 0;
        ws_parse_next(p);
        if (v->n_dims == MAX_DIMS)
            return ws_parse_unsupported(p, &t, "an array with more than %d dimensions", MAX_DIMS);
        if (p->t.kind == ']') {
            if (v->n_dims)
                return ws_parse_fail(p, &t, "only the first dimension may be left open");
            open = true;
        } else {
            t = p->t;
            if (!ws_parse_int(p, &d, "an array's dimension"))
                return false;
            if (d < 0 || (uint64_t)d > MAX_VAR_BYTES)
                return ws_parse_fail(p, &t, "an array's dimension of %lld", (long long)d);
            open |= !d && !v->n_dims; /* x[0] of an .extern is x[] */
            if (!d && v->n_dims)
                return ws_parse_fail(p, &t, "an array's dimension of 0");
        }
        if (!ws_parse_expect(p, ']', "']'"))
            return false;
        if (d && __builtin_mul_overflow(n, (uint64_t)d, &n))
            n = UINT64_MAX;
        dims[v->n_dims++] = (uint64_t)d;
    }
    unsigned bytes = ws_ptx_type_bytes(v->type);
    if (n > MAX_VAR_BYTES / WS_MAX(bytes, 1u))
        return ws_parse_fail(p, &p->t, "'%s' is larger than 1 TiB", v->name);
    v->is_array = v->n_dims > 0;
    if (v->n_dims) {
        uint64_t *d = ws_arena_array(&p->m->arena, v->n_dims, sizeof(*d));
        if (!d)
            return ws_parse_oom(p);
        memcpy(d, dims, v->n_dims * sizeof(*d));
        v->dims = d;
    }
    v->n_elems = open ? 0 : n;
    v->size_bytes = v->n_elems * bytes;
    if (!v->align)
        v->align = bytes * WS_MAX(v->vec, 1);
    return true;
}

static bool is_open(const struct ws_ptx_var *v)
{
    return v->is_array && !v->dims[0];
}

static struct ws_name *name(struct ws_parser *p, struct ws_tok *ret_at, const char *what)
{
    *ret_at = p->t;
    if (p->t.kind != WS_TOK_NAME) {
        ws_parse_fail(p, &p->t, "expected %s", what);
        return NULL;
    }
    struct ws_name *n = ws_name_intern(p, p->t.s, p->t.len);
    ws_parse_next(p);
    return n;
}

/* Module scope: a first declaration, or the definition of what was .extern so far. */
static bool add_module_var(struct ws_parser *p, struct ws_name *n, const struct ws_ptx_var *v,
                           const struct ws_tok *at)
{
    struct ws_binding *b = n->bind;
    if (p->depth == 0 && b && b->kind == WS_BIND_VAR) {
        struct ws_ptx_var *old = &p->vars[b->index];
        if (old->space != v->space || old->type != v->type)
            return ws_parse_fail(p, at, "'%s' was declared with another type or space in line %u",
                                 n->text, old->line);
        if (old->link != WS_LINK_EXTERN && v->link != WS_LINK_EXTERN)
            return ws_parse_fail(p, at, "'%s' is declared twice", n->text);
        if (old->link == WS_LINK_EXTERN)
            *old = *v;
        return true;
    }
    if (!ws_scope_bind(p, n, WS_BIND_VAR, (int32_t)p->n_vars, at))
        return false;
    if (ws_grow((void **)&p->vars, &p->vars_cap, p->n_vars + 1, sizeof(*p->vars)))
        return ws_parse_oom(p);
    p->vars[p->n_vars++] = *v;
    return true;
}

static bool add_local_var(struct ws_parser *p, struct ws_name *n, struct ws_ptx_var *v,
                          const struct ws_tok *at)
{
    struct ws_ptx_func *f = &p->funcs[p->func];
    if (v->space == WS_SP_GLOBAL || v->space == WS_SP_CONST)
        return ws_parse_unsupported(
            p, at, "'%s': .global and .const variables inside a function; declare it outside",
            n->text);
    v->name = ws_scope_unique(p, n);
    if (!v->name ||
        !ws_scope_bind(p, n, WS_BIND_LOCALVAR, (int32_t)(f->n_params + f->n_rets + p->n_lvars), at))
        return false;
    if (ws_grow((void **)&p->lvars, &p->lvars_cap, p->n_lvars + 1, sizeof(*p->lvars)))
        return ws_parse_oom(p);
    p->lvars[p->n_lvars++] = *v;
    return true;
}

static bool check_open(struct ws_parser *p, const struct ws_ptx_var *v, const struct ws_tok *at)
{
    if (!is_open(v) || v->link == WS_LINK_EXTERN || v->size_bytes)
        return true;
    return ws_parse_fail(
        p, at, "the size of '%s' is not known: give a dimension, initial values, or .extern",
        v->name);
}

bool ws_decl_vars(struct ws_parser *p, uint8_t link)
{
    struct ws_ptx_var base = {.space = space_of(p), .link = link, .reg = -1};
    bool tex = ws_parse_is_dot(p, "tex");
    if (base.space == WS_SP_PARAM && p->depth == 0)
        return ws_parse_fail(p, &p->t, ".param variables belong inside a function");
    ws_parse_next(p);
    if (!qualifiers(p, &base))
        return false;
    if (tex)
        base.type = WS_T_TEXREF;
    if (base.type == WS_T_PRED)
        return ws_parse_fail(p, &p->t, "only registers can be predicates");
    do {
        struct ws_ptx_var v = base;
        struct ws_tok at;
        struct ws_name *n = name(p, &at, "the name of a variable");
        if (!n)
            return false;
        v.name = n->text;
        v.line = at.line;
        if (p->t.kind == '<')
            return ws_parse_unsupported(
                p, &p->t, "parameterised names of variables; only registers may have them");
        if (!dimensions(p, &v))
            return false;
        if (p->t.kind == '=') {
            if (v.space != WS_SP_GLOBAL && v.space != WS_SP_CONST)
                return ws_parse_fail(p, &p->t,
                                     "only .global and .const variables have initial values");
            /* texture and surface references list named fields; nothing here reads them */
            if (v.type == WS_T_TEXREF || v.type == WS_T_SAMPLERREF || v.type == WS_T_SURFREF)
                return ws_parse_unsupported(
                    p, &p->t, "initial values of a texture, sampler or surface reference");
            if (!ws_init_parse(p, &v))
                return false;
        }
        if (!check_open(p, &v, &at) ||
            !(p->depth ? add_local_var(p, n, &v, &at) : add_module_var(p, n, &v, &at)))
            return false;
    } while (ws_parse_accept(p, ','));
    return ws_parse_expect(p, ';', "';' after the declaration");
}

static bool one_param(struct ws_parser *p, bool bind, struct ws_ptx_var *v, int32_t index)
{
    struct ws_tok at;
    struct ws_name *n;
    *v = (struct ws_ptx_var){.reg = -1};
    if (ws_parse_is_dot(p, "param"))
        v->space = WS_SP_PARAM;
    else if (ws_parse_is_dot(p, "reg"))
        v->space = WS_SP_REG;
    else
        return ws_parse_fail(p, &p->t, "expected .param or .reg");
    ws_parse_next(p);
    if (!qualifiers(p, v) || !(n = name(p, &at, "the name of a parameter")))
        return false;
    v->name = n->text;
    v->line = at.line;
    if (v->space == WS_SP_PARAM && v->type == WS_T_PRED)
        return ws_parse_fail(p, &at, "only registers can be predicates");
    if (!dimensions(p, v))
        return false;
    if (!bind || (n->len == 1 && n->text[0] == '_'))
        return true;
    n->used_stamp = v->space == WS_SP_REG ? 0 : p->stamp;
    struct ws_binding *b = ws_scope_bind(p, n, WS_BIND_LOCALVAR, index, &at);
    if (b && v->space == WS_SP_REG) {
        b->kind = WS_BIND_REG;
        b->index = v->reg = ws_scope_new_reg(p, n, v->type, v->vec);
        b->type = v->type;
    }
    return b && !p->oom;
}

bool ws_decl_params(struct ws_parser *p, bool bind, struct ws_ptx_var **ret, uint32_t *ret_n)
{
    struct ws_ptx_var *v = NULL;
    size_t n = 0, cap = 0;
    bool ok = true;
    ws_parse_next(p); /* ( */
    if (p->t.kind != ')')
        do {
            if (ws_grow((void **)&v, &cap, n + 1, sizeof(*v)))
                ok = ws_parse_oom(p);
            else
                ok = one_param(p, bind, &v[n], (int32_t)n);
            n += ok;
        } while (ok && ws_parse_accept(p, ','));
    ok = ok && ws_parse_expect(p, ')', "',' or ')' after a parameter");
    if (ok && n) {
        *ret = ws_arena_array(&p->m->arena, n, sizeof(*v));
        if (*ret)
            memcpy(*ret, v, n * sizeof(*v));
        else
            ok = ws_parse_oom(p);
        *ret_n = (uint32_t)n;
    }
    free(v);
    return ok;
}

bool ws_decl_regs(struct ws_parser *p)
{
    struct ws_ptx_var v = {.reg = -1};
    if (p->depth == 0)
        return ws_parse_unsupported(p, &p->t, "registers outside functions");
    ws_parse_next(p);
    if (!qualifiers(p, &v))
        return false;
    do {
        struct ws_tok at;
        struct ws_name *n = name(p, &at, "the name of a register");
        int64_t count;
        if (!n)
            return false;
        if (ws_parse_accept(p, '<')) {
            if (p->t.kind != WS_TOK_NUM || p->t.imm_kind != WS_IMM_INT)
                return ws_parse_fail(p, &p->t, "expected the number of registers");
            count = p->t.value;
            if (count < 0 || count > INT32_MAX)
                return ws_parse_fail(p, &p->t, "%lld registers", (long long)count);
            ws_parse_next(p);
            if (!ws_parse_expect(p, '>', "'>'") ||
                (count && !ws_scope_bind_range(p, n, (uint32_t)count, v.type, v.vec, &at)))
                return false;
        } else {
            struct ws_binding *b = ws_scope_bind(p, n, WS_BIND_LAZYREG, -1, &at);
            if (!b)
                return false;
            b->type = v.type;
            b->vec = v.vec;
        }
    } while (ws_parse_accept(p, ','));
    return ws_parse_expect(p, ';', "';' after the registers");
}

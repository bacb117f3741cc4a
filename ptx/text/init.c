// SPDX-License-Identifier: Apache-2.0
/* ptx/text/init.c - initialisers of .global and .const variables (PTX ISA 5.4.4).
 *
 * "{1, {2, 3}, sym+4, generic(sym), 0xFF00(sym)}" becomes bytes and a list of the addresses among
 * them. Braces may leave elements out, so a short text can reach far into a large array:
 * p->init_budget bounds what all initialisers of a module take to a multiple of the text's length.
 */
#include "ptx/ptx_private.h"

#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"

struct init {
    struct ws_ptx_var *v;
    unsigned elem_bytes;
    uint32_t n_levels;   /* dimensions, and one more for a vector */
    uint64_t stride[18]; /* elements that one index of the level spans */
    uint64_t n_max; /* elements the variable has; UINT64_MAX while the first dimension is open */
    uint8_t *bytes;
    size_t n_bytes, cap;
    struct ws_ptx_init_sym *syms;
    size_t n_syms, syms_cap;
    uint64_t end; /* elements reached */
};

static bool reserve(struct ws_parser *p, struct init *in, uint64_t elem, const struct ws_tok *at)
{
    if (elem >= in->n_max)
        return ws_parse_fail(p, at, "more initial values than '%s' has elements", in->v->name);
    uint64_t end = (elem + 1) * in->elem_bytes;
    in->end = WS_MAX(in->end, elem + 1);
    if (end <= in->n_bytes)
        return true;
    if (end - in->n_bytes > p->init_budget)
        return ws_parse_unsupported(p, at, "the initial values of '%s' leave out too much",
                                    in->v->name);
    p->init_budget -= end - in->n_bytes;
    if (ws_grow((void **)&in->bytes, &in->cap, end, 1))
        return ws_parse_oom(p);
    in->n_bytes = end;
    return true;
}

/* name, name+8, generic(name), generic(name)+8 */
static bool address(struct ws_parser *p, struct ws_ptx_init_sym *s)
{
    struct ws_tok t = p->t;
    struct ws_name *n;
    if (t.kind != WS_TOK_NAME)
        return ws_parse_fail(p, &t, "expected the name of a variable or function");
    if (t.len == 7 && !memcmp(t.s, "generic", 7)) {
        ws_parse_next(p);
        s->generic = true;
        if (!ws_parse_expect(p, '(', "'(' after generic"))
            return false;
        t = p->t;
        if (t.kind != WS_TOK_NAME)
            return ws_parse_fail(p, &t, "expected the name of a variable");
    }
    if (!(n = ws_name_intern(p, t.s, t.len)))
        return false;
    struct ws_binding *b = ws_scope_lookup(p, n);
    if (!b)
        return p->oom ? false : ws_parse_fail(p, &t, "'%s' is not declared", n->text);
    if (b->kind != WS_BIND_VAR && b->kind != WS_BIND_FUNC)
        return ws_parse_fail(p, &t, "'%s' has no address that an initial value could hold",
                             n->text);
    s->sym = b->index | (b->kind == WS_BIND_FUNC ? WS_PTX_SYM_FUNC : WS_PTX_SYM_VAR);
    ws_parse_next(p);
    if (s->generic && !ws_parse_expect(p, ')', "')'"))
        return false;
    if (p->t.kind == '+' || p->t.kind == '-')
        return ws_parse_int(p, &s->addend, "what is added to an address");
    return true;
}

static bool add_sym(struct ws_parser *p, struct init *in, const struct ws_ptx_init_sym *s)
{
    if (ws_grow((void **)&in->syms, &in->syms_cap, in->n_syms + 1, sizeof(*in->syms)))
        return ws_parse_oom(p);
    in->syms[in->n_syms++] = *s;
    return true;
}

static bool mask(struct ws_parser *p, const struct ws_tok *at, struct init *in, uint64_t m,
                 struct ws_ptx_init_sym *s)
{
    if (in->elem_bytes != 1)
        return ws_parse_fail(p, at, "a masked address needs an array of bytes");
    for (s->shift = 0; s->shift < 64 && m != UINT64_C(0xff) << s->shift; s->shift += 8)
        ;
    if (s->shift >= 64)
        return ws_parse_fail(p, at,
                             "the mask of an address must be 0xFF shifted by a multiple of 8");
    s->masked = true;
    return ws_parse_expect(p, '(', "'('") && address(p, s) && ws_parse_expect(p, ')', "')'");
}

static bool scalar(struct ws_parser *p, struct init *in, uint64_t elem)
{
    struct ws_tok t = p->t;
    struct ws_ptx_init_sym s = {.offset = elem * in->elem_bytes, .bytes = in->elem_bytes};
    struct ws_ptx_operand o;
    if (!reserve(p, in, elem, &t))
        return false;
    if (t.kind == WS_TOK_NAME && !(t.len == 7 && !memcmp(t.s, "WARP_SZ", 7))) {
        if (in->elem_bytes < 4)
            return ws_parse_fail(p, &t, "an address does not fit an element of %u bytes",
                                 in->elem_bytes);
        return address(p, &s) && add_sym(p, in, &s);
    }
    if (!ws_expr_parse(p, &o))
        return false;
    if (p->t.kind == '(' && o.imm_kind == WS_IMM_INT)
        return mask(p, &t, in, o.imm, &s) && add_sym(p, in, &s);
    uint64_t v = ws_ptx_imm_as(&o, in->v->type);
    memcpy(in->bytes + s.offset, &v, WS_MIN(in->elem_bytes, 8u)); /* little-endian, as the device */
    return true;
}

/* The list in braces of one level; @base: its first element. */
static bool list(struct ws_parser *p, struct init *in, uint32_t level, uint64_t base)
{
    uint64_t at = base;
    ws_parse_next(p); /* { */
    if (ws_parse_accept(p, '}'))
        return true;
    do {
        if (p->t.kind == '{') {
            uint64_t s = in->stride[level];
            if (level + 1 >= in->n_levels)
                return ws_parse_fail(p, &p->t, "more braces than '%s' has dimensions", in->v->name);
            at = base + (at - base + s - 1) / s * s;
            if (!list(p, in, level + 1, at))
                return false;
            at += s;
        } else if (!scalar(p, in, at++)) {
            return false;
        }
    } while (ws_parse_accept(p, ','));
    return ws_parse_expect(p, '}', "',' or '}' in the list of initial values");
}

static bool parse(struct ws_parser *p, struct init *in)
{
    struct ws_ptx_var *v = in->v;
    bool vec = v->vec > 1, open = v->n_dims && !v->dims[0];
    in->elem_bytes = ws_ptx_type_bytes(v->type);
    in->n_levels = v->n_dims + vec;
    uint64_t s = vec ? v->vec : 1;
    if (vec)
        in->stride[v->n_dims] = 1;
    for (uint32_t i = v->n_dims; i-- > 0;) {
        in->stride[i] = s;
        s *= v->dims[i] ? v->dims[i] : 1;
    }
    in->n_max = open ? UINT64_MAX / 32 : s;
    if (p->t.kind == '{') {
        if (!in->n_levels)
            return ws_parse_fail(
                p, &p->t, "'%s' is not an array, but its initial value is in braces", v->name);
        if (!list(p, in, 0, 0))
            return false;
    } else if (v->is_array) {
        return ws_parse_fail(p, &p->t, "expected '{' before the initial values of an array");
    } else if (!scalar(p, in, 0)) {
        return false;
    }
    if (open) {
        uint64_t *dims = ws_arena_array(&p->m->arena, v->n_dims, sizeof(*dims));
        if (!dims)
            return ws_parse_oom(p);
        memcpy(dims, v->dims, v->n_dims * sizeof(*dims));
        dims[0] = (in->end + in->stride[0] - 1) / in->stride[0];
        v->dims = dims;
        v->n_elems = dims[0] * in->stride[0];
        v->size_bytes = v->n_elems * in->elem_bytes;
    }
    /* Trailing zeros need no bytes. An address keeps its place. */
    size_t n = in->n_bytes;
    while (n && !in->bytes[n - 1])
        n--;
    v->init_bytes = n;
    v->n_init_syms = in->n_syms;
    uint8_t *init = n ? ws_arena_alloc(&p->m->arena, n) : NULL;
    struct ws_ptx_init_sym *syms =
        in->n_syms ? ws_arena_array(&p->m->arena, in->n_syms, sizeof(*syms)) : NULL;
    if ((n && !init) || (in->n_syms && !syms))
        return ws_parse_oom(p);
    if (n)
        memcpy(init, in->bytes, n);
    if (syms)
        memcpy(syms, in->syms, in->n_syms * sizeof(*syms));
    v->init = init;
    v->init_syms = syms;
    return true;
}

bool ws_init_parse(struct ws_parser *p, struct ws_ptx_var *v)
{
    struct init in = {.v = v};
    ws_parse_next(p); /* = */
    bool ok = parse(p, &in);
    free(in.bytes);
    free(in.syms);
    return ok;
}

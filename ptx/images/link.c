// SPDX-License-Identifier: Apache-2.0
/* ptx/images/link.c - several modules made into one.
 *
 * The parts' contents are moved, not copied: the result takes over their arenas, and what refers to
 * a variable or function by number (ws_ptx_operand.sym and its kin) is renumbered in place. So a
 * part is of no use after linking, and linking costs one pass over the instructions.
 *
 * 1. Every symbol of every part that others may see (.visible, .weak, .common, .extern, and
 * declarations) is looked up by name.
 *    The strongest definition wins: .visible over .weak over .common (the larger of two) over a
 *    mere declaration. Two .visible ones are an error; the second of two .weak ones is dropped, as
 *    C++ templates want it.
 * 2. The others are their part's own. Those whose name is taken get another ("$str" becomes
 * "$str$1"): the first keeps its name,
 *    because the program may know it.
 * 3. Numbers are given out in the order of the text, part after part; variables whose initial value
 * holds addresses come last,
 *    so that the printed module names nothing before it is declared (but for variables that point
 *    at each other across parts).
 * Debug information is not in the IR, so nothing is to be done about it. Source: PTX ISA 9.0,
 * "Linking Directives". */
#include "ptx/ptx.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/hash.h"

enum strength { REFERENCE, COMMON, WEAK, STRONG };

/* A name that parts share. */
struct global {
    const char *name;
    struct global *next; /* of the same hash */
    bool is_func;
    enum strength strength;
    uint32_t part, index; /* of what stands for it */
    int32_t out;
    unsigned suffix; /* last one tried for a local symbol of this name */
};

struct linked_part {
    struct ws_ptx_module *m;
    const char *name;
    struct global **var_of, **func_of; /* NULL: local */
    bool *aliased;                     /* [n_funcs]: another function is its body */
    int32_t *var_out, *func_out;       /* numbers in the result; -1: dropped */
};

struct linker {
    struct linked_part *parts;
    size_t n_parts;
    unsigned flags;
    struct ws_diags *diags;
    struct ws_arena tmp;
    struct global **names; /* hash table; also of locals, to keep names apart */
    size_t names_mask, n_errors, n_unresolved;
    struct ws_ptx_module *out;
    bool oom;
};

/* ---- names ---- */

static size_t hash(const char *s)
{
    return ws_hash(s, strlen(s));
}

static struct global *find(struct linker *l, const char *name)
{
    (void)ws_budget_spend(1);
    struct global *g = l->names[hash(name) & l->names_mask];
    while (g && strcmp(g->name, name) != 0)
        g = g->next;
    return g;
}

static struct global *add_name(struct linker *l, const char *name)
{
    struct global *g = ws_arena_alloc(&l->tmp, sizeof(*g));
    if (!g) {
        l->oom = true;
        return NULL;
    }
    struct global **head = &l->names[hash(name) & l->names_mask];
    g->name = name;
    g->out = -1;
    g->next = *head;
    *head = g;
    return g;
}

static const char *part_name(const struct linker *l, uint32_t part)
{
    return l->parts[part].name ? l->parts[part].name : "input";
}

static void fail(struct linker *l, uint32_t part, uint32_t line, const char *fmt, ...)
    WS_PRINTF(4, 5);
static void fail(struct linker *l, uint32_t part, uint32_t line, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    l->n_errors++;
    ws_diags_add(l->diags, part_name(l, part), line, 0, "%s", text);
}

/* ---- what a symbol is ---- */

static enum strength strength_of(uint8_t link)
{
    return link == WS_LINK_WEAK ? WEAK : link == WS_LINK_COMMON ? COMMON : STRONG;
}

static bool func_is_local(const struct ws_ptx_func *f)
{
    return f->link == WS_LINK_NONE && !f->is_decl;
}

static uint32_t line_of(const struct linker *l, const struct global *g)
{
    const struct ws_ptx_module *m = l->parts[g->part].m;
    return g->is_func ? m->funcs[g->index].line : m->vars[g->index].line;
}

static bool same_params(const struct ws_ptx_var *a, uint32_t na, const struct ws_ptx_var *b,
                        uint32_t nb)
{
    if (na != nb)
        return false;
    for (uint32_t k = 0; k < na; k++)
        if (ws_ptx_type_bytes(a[k].type) != ws_ptx_type_bytes(b[k].type) ||
            a[k].n_elems != b[k].n_elems)
            return false;
    return true;
}

/* Return: NULL, or in what the two differ. A declaration may leave the size of an array open. */
static const char *var_conflict(const struct ws_ptx_var *a, const struct ws_ptx_var *b, bool common)
{
    if (a->space != b->space)
        return "another state space";
    bool open = (a->link == WS_LINK_EXTERN && !a->size_bytes) ||
                (b->link == WS_LINK_EXTERN && !b->size_bytes);
    if (open || common)
        return NULL;
    if (a->size_bytes != b->size_bytes)
        return "another size";
    return ws_ptx_type_bytes(a->type) != ws_ptx_type_bytes(b->type) && !a->is_array && !b->is_array
               ? "another type"
               : NULL;
}

static const char *func_conflict(const struct ws_ptx_func *a, const struct ws_ptx_func *b)
{
    if (a->is_entry != b->is_entry)
        return "as a kernel here and as a function there";
    if (!same_params(a->params, a->n_params, b->params, b->n_params) ||
        !same_params(a->rets, a->n_rets, b->rets, b->n_rets))
        return "other parameters";
    return NULL;
}

/* Makes @part's symbol known under its name. Return: what stands for the name, or NULL (out of
 * memory). */
static struct global *merge(struct linker *l, uint32_t part, uint32_t index, bool is_func,
                            const char *name, enum strength strength)
{
    struct global *g = find(l, name);
    struct ws_ptx_module *m = l->parts[part].m;
    if (!g) {
        g = add_name(l, name);
        if (g) {
            g->is_func = is_func;
            g->strength = strength;
            g->part = part;
            g->index = index;
        }
        return g;
    }
    struct ws_ptx_module *was = l->parts[g->part].m;
    uint32_t line = is_func ? m->funcs[index].line : m->vars[index].line;
    const char *what = NULL;
    if (g->is_func != is_func)
        what = is_func ? "as a function here and as a variable there"
                       : "as a variable here and as a function there";
    else if (is_func)
        what = func_conflict(&was->funcs[g->index], &m->funcs[index]);
    else
        what = var_conflict(&was->vars[g->index], &m->vars[index],
                            strength == COMMON && g->strength == COMMON);
    if (what) {
        fail(l, part, line, "'%s' is declared with %s in %s:%u", name, what, part_name(l, g->part),
             line_of(l, g));
        return g;
    }
    if (strength == STRONG && g->strength == STRONG) {
        fail(l, part, line, "'%s' is defined twice (first in %s:%u)", name, part_name(l, g->part),
             line_of(l, g));
        return g;
    }
    bool larger = strength == COMMON && g->strength == COMMON &&
                  m->vars[index].size_bytes > was->vars[g->index].size_bytes;
    if (strength > g->strength || larger) {
        uint32_t align = is_func ? 0 : was->vars[g->index].align;
        g->strength = strength;
        g->part = part;
        g->index = index;
        if (!is_func)
            m->vars[index].align = WS_MAX(m->vars[index].align, align);
    } else if (!is_func) {
        was->vars[g->index].align = WS_MAX(was->vars[g->index].align, m->vars[index].align);
    }
    return g;
}

static void collect(struct linker *l, uint32_t part)
{
    struct linked_part *p = &l->parts[part];
    struct ws_ptx_module *m = p->m;
    p->var_of = ws_arena_array(&l->tmp, m->n_vars + 1, sizeof(*p->var_of));
    p->func_of = ws_arena_array(&l->tmp, m->n_funcs + 1, sizeof(*p->func_of));
    p->var_out = ws_arena_array(&l->tmp, m->n_vars + 1, sizeof(*p->var_out));
    p->func_out = ws_arena_array(&l->tmp, m->n_funcs + 1, sizeof(*p->func_out));
    p->aliased = ws_arena_array(&l->tmp, m->n_funcs + 1, sizeof(*p->aliased));
    if (!p->var_of || !p->func_of || !p->var_out || !p->func_out || !p->aliased) {
        l->oom = true;
        return;
    }
    for (uint32_t k = 0; k < m->n_aliases; k++)
        p->aliased[m->aliases[k].alias] = true;
    for (uint32_t k = 0; k < m->n_vars && !l->oom; k++) {
        const struct ws_ptx_var *v = &m->vars[k];
        if (v->link != WS_LINK_NONE)
            p->var_of[k] = merge(l, part, k, false, v->name,
                                 v->link == WS_LINK_EXTERN ? REFERENCE : strength_of(v->link));
    }
    for (uint32_t k = 0; k < m->n_funcs && !l->oom; k++) {
        const struct ws_ptx_func *f = &m->funcs[k];
        if (!func_is_local(f))
            p->func_of[k] = merge(l, part, k, true, f->name,
                                  f->is_decl && !p->aliased[k] ? REFERENCE : strength_of(f->link));
    }
}

/* ---- numbers ---- */

static bool points_somewhere(const struct ws_ptx_var *v)
{
    return v->n_init_syms != 0;
}

/* A name that nothing else has, for a local symbol whose own is taken. */
static const char *own_name(struct linker *l, const char *name)
{
    char buf[1024];
    size_t len = WS_MIN(strlen(name), sizeof(buf) - 16);
    struct global *taken = find(l, name);
    if (!taken) {
        add_name(l, name);
        return name;
    }
    for (;;) {
        int n = snprintf(buf, sizeof(buf), "%.*s$%u", (int)len, name, ++taken->suffix);
        if (find(l, buf))
            continue;
        const char *own = ws_arena_strndup(&l->out->arena, buf, (size_t)n);
        if (!own)
            l->oom = true;
        else
            add_name(l, own);
        return own;
    }
}

static bool stands_for(const struct global *g, uint32_t part, uint32_t index)
{
    return g->part == part && g->index == index;
}

/* Moves a part's variables to the result, those that point somewhere or the others. */
static void take_vars(struct linker *l, uint32_t part, bool pointing)
{
    struct linked_part *p = &l->parts[part];
    for (uint32_t k = 0; k < p->m->n_vars && !l->oom; k++) {
        struct ws_ptx_var *v = &p->m->vars[k];
        struct global *g = p->var_of[k];
        if (points_somewhere(v) != pointing || (g && !stands_for(g, part, k)))
            continue;
        if (!g && !(v->name = own_name(l, v->name)))
            return;
        int32_t out = (int32_t)l->out->n_vars++;
        l->out->vars[out] = *v;
        p->var_out[k] = out;
        if (g)
            g->out = out;
    }
}

static void take_funcs(struct linker *l, uint32_t part)
{
    struct linked_part *p = &l->parts[part];
    for (uint32_t k = 0; k < p->m->n_funcs && !l->oom; k++) {
        struct ws_ptx_func *f = &p->m->funcs[k];
        struct global *g = p->func_of[k];
        if (g && !stands_for(g, part, k))
            continue;
        f->fence = WS_MIN(f->fence, 0); /* copies are of functions that have other numbers now */
        if (!g && !(f->name = own_name(l, f->name)))
            return;
        int32_t out = (int32_t)l->out->n_funcs++;
        l->out->funcs[out] = *f;
        p->func_out[k] = out;
        if (g)
            g->out = out;
    }
}

/* What stands elsewhere gets the number it has there. */
static void number_rest(struct linked_part *p)
{
    for (uint32_t k = 0; k < p->m->n_vars; k++)
        if (p->var_of[k])
            p->var_out[k] = p->var_of[k]->out;
    for (uint32_t k = 0; k < p->m->n_funcs; k++)
        if (p->func_of[k])
            p->func_out[k] = p->func_of[k]->out;
}

static int32_t renumber(const struct linked_part *p, int32_t sym)
{
    uint32_t k = (uint32_t)WS_PTX_SYM_INDEX(sym);
    if (sym < 0 || WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_LOCALVAR)
        return sym;
    return WS_PTX_SYM_KIND(sym) == WS_PTX_SYM_FUNC ? p->func_out[k] | WS_PTX_SYM_FUNC
                                                   : p->var_out[k];
}

static void renumber_operands(const struct linked_part *p, struct ws_ptx_operand *v, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        v[k].sym = renumber(p, v[k].sym);
        if (v[k].n)
            renumber_operands(p, v[k].v, v[k].n);
    }
}

static void renumber_func(const struct linked_part *p, struct ws_ptx_func *f)
{
    for (uint32_t k = 0; k < f->n_insns && ws_budget_spend(1); k++) {
        struct ws_ptx_insn *i = &f->insns[k];
        renumber_operands(p, i->operands, i->n_operands);
        if (!i->call)
            continue;
        struct ws_ptx_call *c = (struct ws_ptx_call *)i->call; /* the part is ours to change */
        renumber_operands(p, &c->callee, 1);
        renumber_operands(p, (struct ws_ptx_operand *)c->rets, c->n_rets);
        renumber_operands(p, (struct ws_ptx_operand *)c->args, c->n_args);
    }
    for (uint32_t k = 0; k < f->n_protos; k++)
        for (uint32_t j = 0; j < f->protos[k].n_targets; j++)
            f->protos[k].targets[j] = p->func_out[f->protos[k].targets[j]];
}

static void renumber_all(struct linker *l)
{
    struct ws_ptx_module *out = l->out;
    for (size_t n = 0; n < l->n_parts; n++) {
        struct linked_part *p = &l->parts[n];
        for (uint32_t k = 0; k < p->m->n_funcs; k++)
            if (!p->func_of[k] || stands_for(p->func_of[k], (uint32_t)n, k))
                renumber_func(p, &p->m->funcs[k]);
        for (uint32_t k = 0; k < p->m->n_vars; k++) {
            const struct ws_ptx_var *v = &p->m->vars[k];
            if (p->var_of[k] && !stands_for(p->var_of[k], (uint32_t)n, k))
                continue;
            struct ws_ptx_init_sym *s = (struct ws_ptx_init_sym *)v->init_syms;
            for (uint32_t j = 0; j < v->n_init_syms; j++)
                s[j].sym = renumber(p, s[j].sym);
        }
        for (uint32_t k = 0; k < p->m->n_aliases; k++) {
            uint32_t alias = (uint32_t)p->m->aliases[k].alias;
            if (!p->func_of[alias] || stands_for(p->func_of[alias], (uint32_t)n, alias))
                out->aliases[out->n_aliases++] = (struct ws_ptx_alias){
                    p->func_out[alias], p->func_out[p->m->aliases[k].aliasee]};
        }
    }
}

/* ---- what stays unresolved ---- */

/* The device runtime's functions. nvcc before 12.0 calls them by these names behind "cuda", which
 * programs may begin names of their own with (CUDA Programming Guide, "CUDA Dynamic Parallelism,
 * API Reference", and cuda_device_runtime_api.h). */
static const char *const runtime_names[] = {"DeviceGetAttribute",
                                            "DeviceGetCacheConfig",
                                            "DeviceGetLimit",
                                            "DeviceGetSharedMemConfig",
                                            "DeviceSynchronize",
                                            "EventCreateWithFlags",
                                            "EventDestroy",
                                            "EventRecord",
                                            "EventRecordWithFlags",
                                            "Free",
                                            "FuncGetAttributes",
                                            "GetDevice",
                                            "GetDeviceCount",
                                            "GetErrorName",
                                            "GetErrorString",
                                            "GetLastError",
                                            "GetParameterBuffer",
                                            "GetParameterBufferV2",
                                            "LaunchDevice",
                                            "LaunchDeviceV2",
                                            "Malloc",
                                            "Memcpy2DAsync",
                                            "Memcpy3DAsync",
                                            "MemcpyAsync",
                                            "Memset2DAsync",
                                            "Memset3DAsync",
                                            "MemsetAsync",
                                            "OccupancyMaxActiveBlocksPerMultiprocessor",
                                            "OccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                                            "PeekAtLastError",
                                            "RuntimeGetVersion",
                                            "StreamCreateWithFlags",
                                            "StreamDestroy",
                                            "StreamWaitEvent"};

bool ws_ptx_is_device_runtime(const char *rest, const char *function)
{
    size_t n = strlen(function);
    return !strncmp(rest, function, n) && (!rest[n] || !strcmp(rest + n, "_ptsz"));
}

static bool is_runtime_name(const char *name)
{
    for (size_t k = 0; k < WS_ARRAY_SIZE(runtime_names); k++)
        if (ws_ptx_is_device_runtime(name, runtime_names[k]))
            return true;
    return false;
}

const char *ws_ptx_device_runtime(const char *name)
{
    static const char prefix[] = "__cudaCDP2", old[] = "cuda";
    if (!strncmp(name, prefix, sizeof(prefix) - 1))
        return name + sizeof(prefix) - 1;
    bool is_old = !strncmp(name, old, sizeof(old) - 1);
    return is_old && is_runtime_name(name + sizeof(old) - 1) ? name + sizeof(old) - 1 : NULL;
}

bool ws_ptx_is_system_func(const char *name)
{
    static const char *const names[] = {"vprintf", "malloc", "free", "__assertfail",
                                        "cudaGraphSetConditional"};
    for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++)
        if (!strcmp(name, names[k]))
            return true;
    return ws_ptx_device_runtime(name) || !strncmp(name, "__nv_", 5);
}

struct use {
    uint32_t part, line;
    bool found;
};

static void note_use(struct use *u, uint32_t part, uint32_t line)
{
    if (!u->found)
        *u = (struct use){part, line, true};
}

/* By number in the result. */
struct uses {
    struct use *vars, *funcs;
};

static void use_operands(const struct uses *u, const struct ws_ptx_operand *v, size_t n,
                         uint32_t part, uint32_t line)
{
    for (size_t k = 0; k < n; k++) {
        int32_t s = v[k].sym;
        bool named = v[k].kind == WS_OPD_SYM || v[k].kind == WS_OPD_ADDR;
        if (named && s >= 0 && WS_PTX_SYM_KIND(s) == WS_PTX_SYM_FUNC)
            note_use(&u->funcs[WS_PTX_SYM_INDEX(s)], part, line);
        else if (named && s >= 0 && WS_PTX_SYM_KIND(s) == WS_PTX_SYM_VAR)
            note_use(&u->vars[WS_PTX_SYM_INDEX(s)], part, line);
        if (v[k].n)
            use_operands(u, v[k].v, v[k].n, part, line);
    }
}

static void use_insns(const struct uses *u, const struct ws_ptx_func *f, uint32_t part)
{
    for (uint32_t k = 0; k < f->n_insns; k++) {
        const struct ws_ptx_insn *i = &f->insns[k];
        use_operands(u, i->operands, i->n_operands, part, i->line);
        if (i->call) {
            use_operands(u, &i->call->callee, 1, part, i->line);
            use_operands(u, i->call->args, i->call->n_args, part, i->line);
        }
    }
}

/* Names what is used and not defined. Runs before the symbols' parts are forgotten. */
static void check_resolved(struct linker *l)
{
    const struct ws_ptx_module *out = l->out;
    struct uses u = {ws_arena_array(&l->tmp, out->n_vars + 1, sizeof(*u.vars)),
                     ws_arena_array(&l->tmp, out->n_funcs + 1, sizeof(*u.funcs))};
    bool *aliased = ws_arena_array(&l->tmp, out->n_funcs + 1, sizeof(*aliased));
    if (!u.vars || !u.funcs || !aliased) {
        l->oom = true;
        return;
    }
    for (uint32_t k = 0; k < out->n_aliases; k++)
        aliased[out->aliases[k].alias] = true;
    for (uint32_t n = 0; n < l->n_parts; n++) {
        const struct linked_part *p = &l->parts[n];
        for (uint32_t k = 0; k < p->m->n_funcs; k++)
            if (!p->func_of[k] || stands_for(p->func_of[k], n, k))
                use_insns(&u, &p->m->funcs[k], n);
        for (uint32_t k = 0; k < p->m->n_vars; k++) {
            const struct ws_ptx_var *v = &p->m->vars[k];
            for (uint32_t j = 0; j < v->n_init_syms; j++) {
                struct ws_ptx_operand o = {.kind = WS_OPD_SYM, .sym = v->init_syms[j].sym};
                if (!p->var_of[k] || stands_for(p->var_of[k], n, k))
                    use_operands(&u, &o, 1, n, v->line);
            }
        }
    }
    for (uint32_t k = 0; k < out->n_funcs; k++) {
        const struct ws_ptx_func *f = &out->funcs[k];
        if (f->is_decl && !aliased[k] && u.funcs[k].found && !ws_ptx_is_system_func(f->name)) {
            l->n_unresolved++;
            ws_diags_add(l->diags, part_name(l, u.funcs[k].part), u.funcs[k].line, 0,
                         "unresolved external function '%s', first used here", f->name);
        }
    }
    for (uint32_t k = 0; k < out->n_vars; k++) {
        const struct ws_ptx_var *v = &out->vars[k];
        bool dynamic = v->space == WS_SP_SHARED && !v->size_bytes;
        if (v->link == WS_LINK_EXTERN && !dynamic && u.vars[k].found) {
            l->n_unresolved++;
            ws_diags_add(l->diags, part_name(l, u.vars[k].part), u.vars[k].line, 0,
                         "unresolved external variable '%s', first used here", v->name);
        }
    }
}

/* ---- the whole ---- */

static void head(struct linker *l)
{
    struct ws_ptx_module *out = l->out;
    for (uint32_t n = 0; n < l->n_parts; n++) {
        const struct ws_ptx_module *m = l->parts[n].m;
        if (!n || m->sm > out->sm) {
            out->sm = m->sm;
            out->target = m->target;
        }
        if (n && m->address_size != out->address_size)
            fail(l, n, 0, "has addresses of %u bits, and %s of %u", m->address_size,
                 part_name(l, 0), out->address_size);
        out->version = WS_MAX(out->version, m->version);
        out->address_size = n ? out->address_size : m->address_size;
        out->map_f64_to_f32 |= m->map_f64_to_f32;
        out->texmode_independent |= m->texmode_independent;
        out->debug |= m->debug;
    }
}

static int link_parts(struct linker *l)
{
    size_t n_vars = 0, n_funcs = 0, n_aliases = 0;
    for (size_t n = 0; n < l->n_parts; n++) {
        n_vars += l->parts[n].m->n_vars;
        n_funcs += l->parts[n].m->n_funcs;
        n_aliases += l->parts[n].m->n_aliases;
    }
    if (n_vars + n_funcs > WS_PTX_SYM_INDEX(UINT32_MAX)) {
        fail(l, 0, 0, "more than %u symbols", WS_PTX_SYM_INDEX(UINT32_MAX));
        return WS_PTX_E_SYNTAX;
    }
    size_t size = 64;
    while (size < 2 * (n_vars + n_funcs))
        size *= 2;
    struct ws_arena *a = &l->out->arena;
    l->names_mask = size - 1;
    l->names = ws_arena_array(&l->tmp, size, sizeof(*l->names));
    l->out->vars = ws_arena_array(a, n_vars + 1, sizeof(*l->out->vars));
    l->out->funcs = ws_arena_array(a, n_funcs + 1, sizeof(*l->out->funcs));
    l->out->aliases = ws_arena_array(a, n_aliases + 1, sizeof(*l->out->aliases));
    if (!l->names || !l->out->vars || !l->out->funcs || !l->out->aliases)
        return -ENOMEM;
    head(l);
    for (uint32_t n = 0; n < l->n_parts && !l->oom; n++)
        collect(l, n);
    if (l->n_errors)
        return WS_PTX_E_SYNTAX;
    for (int pointing = 0; pointing < 2; pointing++)
        for (uint32_t n = 0; n < l->n_parts && !l->oom; n++)
            take_vars(l, n, pointing);
    for (uint32_t n = 0; n < l->n_parts && !l->oom; n++)
        take_funcs(l, n);
    if (l->oom)
        return -ENOMEM;
    for (size_t n = 0; n < l->n_parts; n++)
        number_rest(&l->parts[n]);
    renumber_all(l);
    check_resolved(l);
    if (l->oom)
        return -ENOMEM;
    return l->n_unresolved && l->flags & WS_PTX_LINK_STRICT ? WS_PTX_E_NOTFOUND : 0;
}

int ws_ptx_link(struct ws_ptx_module **ret, const struct ws_ptx_link_part *parts, size_t n,
                unsigned flags, struct ws_diags *diags)
{
    struct linker l = {.n_parts = n, .flags = flags, .diags = diags, .tmp = WS_ARENA_NULL};
    int r = -ENOMEM;
    l.parts = ws_arena_array(&l.tmp, n + 1, sizeof(*l.parts));
    l.out = ws_alloc(sizeof(*l.out));
    if (l.parts && l.out) {
        for (size_t k = 0; k < n; k++) {
            l.parts[k].m = parts[k].m;
            l.parts[k].name = parts[k].name;
        }
        r = n ? link_parts(&l) : WS_PTX_E_SYNTAX;
        if (!n)
            ws_diags_add(diags, NULL, 0, 0, "nothing to link");
    }
    for (size_t k = 0; k < n; k++) {
        if (!r)
            ws_arena_take(&l.out->arena, &parts[k].m->arena);
        ws_ptx_module_free(parts[k].m);
    }
    ws_arena_deinit(&l.tmp);
    if (r) {
        ws_ptx_module_free(l.out);
        return r < 0 ? ws_raise(r) : r;
    }
    *ret = l.out;
    return 0;
}

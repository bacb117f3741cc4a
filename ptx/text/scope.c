// SPDX-License-Identifier: Apache-2.0
/* ptx/text/scope.c - names and what they mean.
 *
 * Every different word is interned once; a name carries the stack of its bindings, so a lookup
 * costs one hash probe however deep the blocks nest. A scope is the list of the bindings made in
 * it, undone when it is left.
 *
 * 1. Registers are made when they are first used: ".reg .b32 %r<1000000>" costs nothing, and
 * numbering follows use. 2. The IR has one list of registers, variables and labels per function,
 * PTX has nested blocks that may reuse a name.
 *    ws_scope_unique() gives a declaration another name ("x$1") if its own is taken in this
 *    function, or means something of the module that the function refers to. Printing puts all
 *    declarations at the top of the body; parsed again, nothing is left to rename.
 * 3. A label may be used before it stands. A scope that uses a name makes a temporary id; when it
 * is left, an id that
 *    found no definition joins that of the enclosing scope. Each id knows the id it joined, so
 *    nothing is searched. */
#include "ptx/ptx_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"

static uint32_t hash_text(const char *s, size_t len)
{
    return (uint32_t)ws_hash(s, len);
}

static struct ws_name *find(struct ws_parser *p, const char *s, size_t len, uint32_t h)
{
    for (struct ws_name *n = p->names[h & (p->names_cap - 1)]; n; n = n->next)
        if (n->hash == h && n->len == len && !memcmp(n->text, s, len))
            return n;
    return NULL;
}

struct ws_name *ws_name_find(struct ws_parser *p, const char *s, size_t len)
{
    return find(p, s, len, hash_text(s, len));
}

static bool rehash(struct ws_parser *p, size_t cap)
{
    struct ws_name **v = ws_alloc_array(cap, sizeof(*v));
    if (!v)
        return ws_parse_oom(p);
    for (size_t i = 0; i < p->names_cap; i++)
        for (struct ws_name *n = p->names[i], *next; n; n = next) {
            next = n->next;
            n->next = v[n->hash & (cap - 1)];
            v[n->hash & (cap - 1)] = n;
        }
    free(p->names);
    p->names = v;
    p->names_cap = cap;
    return true;
}

struct ws_name *ws_name_intern(struct ws_parser *p, const char *s, size_t len)
{
    uint32_t h = hash_text(s, len);
    struct ws_name *n = find(p, s, len, h);
    if (n)
        return n;
    if (p->n_names >= p->names_cap && !rehash(p, p->names_cap * 2))
        return NULL;
    /* In the module's arena, because the IR keeps the text. */
    n = ws_arena_alloc(&p->m->arena, sizeof(*n) + len + 1);
    if (!n) {
        ws_parse_oom(p);
        return NULL;
    }
    n->hash = h;
    n->len = len;
    memcpy(n->text, s, len);
    n->next = p->names[h & (p->names_cap - 1)];
    p->names[h & (p->names_cap - 1)] = n;
    p->n_names++;
    return n;
}

int ws_names_init(struct ws_parser *p)
{
    static const struct {
        const char *name;
        uint16_t op;
    } ops[] = {
#define WS_OP(id, name, ...)  {name, WS_OP_##id},
#define WS_OP_ALIAS(name, id) {name, WS_OP_##id},
#include "ptx/opcodes.def"
#undef WS_OP
#undef WS_OP_ALIAS
    };
    if (!rehash(p, 1024))
        return -ENOMEM;
    for (size_t i = 0; i < WS_ARRAY_SIZE(ops); i++) {
        struct ws_name *n = ws_name_intern(p, ops[i].name, strlen(ops[i].name));
        if (!n)
            return -ENOMEM;
        n->op1 = ops[i].op + 1;
    }
    return 0;
}

bool ws_scope_enter(struct ws_parser *p)
{
    p->stop |= p->depth + 1 >= WS_PTX_MAX_DEPTH; /* where it would go on is not clear */
    if (p->stop)
        return ws_parse_unsupported(p, &p->t, "blocks nest more than %d deep",
                                    WS_PTX_MAX_DEPTH - 2);
    p->depth++;
    p->scopes[p->depth].binds = NULL;
    p->scopes[p->depth].labels = NULL;
    return true;
}

/* Gives the labels of the scope that is being left their place, or to the enclosing scope. */
static void leave_labels(struct ws_parser *p)
{
    for (struct ws_label_use *u = p->scopes[p->depth].labels, *next; u; u = next) {
        next = u->scope_next;
        struct ws_name *n = u->name;
        struct ws_label_use *outer = u->outer;
        n->label = outer;
        if (u->defined)
            continue;
        if (p->depth == 1 && p->n_errors + p->n_unsupported) {
            continue; /* it may be missing because of an earlier error */
        } else if (p->depth == 1) {
            struct ws_tok at = {.line = u->line, .col = u->col};
            ws_parse_fail(p, &at, "label '%s' is not defined in this function", n->text);
        } else if (outer && outer->depth + 1u == p->depth) {
            p->label_ids[u->id].same_as = outer->id;
        } else {
            u->depth = p->depth - 1;
            u->scope_next = p->scopes[u->depth].labels;
            p->scopes[u->depth].labels = u;
            n->label = u;
        }
    }
}

bool ws_scope_leave(struct ws_parser *p)
{
    for (struct ws_binding *b = p->scopes[p->depth].binds; b; b = b->scope_next) {
        if (b->kind == WS_BIND_LAZYREG && b->count)
            b->name->range = b->outer;
        else
            b->name->bind = b->outer;
    }
    leave_labels(p);
    p->depth--;
    p->range_depth = WS_MIN(p->range_depth, p->depth);
    return !p->oom;
}

static struct ws_binding *push(struct ws_parser *p, struct ws_name *n, unsigned depth, bool range)
{
    struct ws_binding *b = ws_arena_alloc(&p->scratch, sizeof(*b));
    if (!b) {
        ws_parse_oom(p);
        return NULL;
    }
    struct ws_binding **top = range ? &n->range : &n->bind;
    b->name = n;
    b->depth = depth;
    b->index = -1;
    b->outer = *top;
    *top = b;
    b->scope_next = p->scopes[depth].binds;
    p->scopes[depth].binds = b;
    return b;
}

struct ws_binding *ws_scope_bind(struct ws_parser *p, struct ws_name *n, enum ws_bind_kind kind,
                                 int32_t index, const struct ws_tok *at)
{
    if (n->bind && n->bind->depth == p->depth) {
        ws_parse_fail(p, at, "'%s' is declared twice in the same block", n->text);
        return NULL;
    }
    struct ws_binding *b = push(p, n, p->depth, false);
    if (b) {
        b->kind = kind;
        b->index = index;
    }
    return b;
}

bool ws_scope_bind_module(struct ws_parser *p, struct ws_name *n, enum ws_bind_kind kind,
                          int32_t index)
{
    struct ws_binding **at = &n->bind;
    struct ws_binding *b = ws_arena_alloc(&p->scratch, sizeof(*b));
    if (!b)
        return ws_parse_oom(p);
    while (*at && (*at)->depth > 0)
        at = &(*at)->outer;
    *b = (struct ws_binding){
        .kind = kind, .index = index, .name = n, .outer = *at, .scope_next = p->scopes[0].binds};
    *at = b;
    p->scopes[0].binds = b;
    return true;
}

bool ws_scope_bind_range(struct ws_parser *p, struct ws_name *prefix, uint32_t count, uint8_t type,
                         uint8_t vec, const struct ws_tok *at)
{
    if (prefix->range && prefix->range->depth == p->depth)
        return ws_parse_fail(p, at, "'%s<n>' is declared twice in the same block", prefix->text);
    struct ws_binding *b = push(p, prefix, p->depth, true);
    if (!b)
        return false;
    b->kind = WS_BIND_LAZYREG;
    b->type = type;
    b->vec = vec;
    b->count = count;
    p->range_depth = p->depth;
    return true;
}

const char *ws_scope_unique(struct ws_parser *p, struct ws_name *n)
{
    struct ws_name *use = n;
    struct ws_binding *module = n->bind;
    while (module && module->depth > 0)
        module = module->outer;
    /* Depth 2 is the outermost block of a body. Declared there, a name hides the module's from its
     * declaration to the end, as it does when printed; declared deeper, it would hide it from more
     * once moved to the top. */
    if (n->used_stamp == p->stamp || (module && (p->depth > 2 || module->ref_stamp == p->stamp))) {
        char buf[300];
        size_t len = WS_MIN(n->len, (size_t)256);
        do {
            int k = snprintf(buf, sizeof(buf), "%.*s$%u", (int)len, n->text, ++n->suffix);
            use = ws_name_intern(p, buf, k);
            if (!use)
                return NULL;
        } while (use->used_stamp == p->stamp || use->bind);
    }
    use->used_stamp = p->stamp;
    return use->text;
}

int32_t ws_scope_new_reg(struct ws_parser *p, struct ws_name *n, uint8_t type, uint8_t vec)
{
    const char *text = ws_scope_unique(p, n);
    if (!text)
        return -1;
    if (ws_grow((void **)&p->regs, &p->regs_cap, p->n_regs + 1, sizeof(*p->regs))) {
        ws_parse_oom(p);
        return -1;
    }
    p->regs[p->n_regs] = (struct ws_ptx_reg){.name = text, .type = type, .vec = vec};
    return (int32_t)p->n_regs++;
}

/* The deepest range below @above that has a register of this name: "%r12" is number 12 of %r<100>,
 * or 2 of %r1<5>. */
static struct ws_binding *find_range(struct ws_parser *p, struct ws_name *n, int above)
{
    struct ws_binding *best = NULL;
    uint64_t value = 0, place = 1;
    for (uint32_t i = n->len; i > 1 && n->len - i < 10; i--) {
        char c = n->text[i - 1];
        if (c < '0' || c > '9')
            break;
        value += place * (c - '0');
        place *= 10;
        if (c == '0' && n->len - i > 0)
            continue; /* no leading zeros */
        struct ws_name *prefix = ws_name_find(p, n->text, i - 1);
        struct ws_binding *r = prefix ? prefix->range : NULL;
        while (r && value >= r->count) /* an enclosing block's may have more */
            r = r->outer;
        if (r && (int)r->depth > above && (!best || r->depth > best->depth))
            best = r;
    }
    return best;
}

struct ws_binding *ws_scope_lookup(struct ws_parser *p, struct ws_name *n)
{
    struct ws_binding *b = n->bind;
    if (!b || b->depth < p->range_depth) {
        struct ws_binding *r = find_range(p, n, b ? b->depth : -1);
        if (r) {
            b = push(p, n, r->depth, false);
            if (!b)
                return NULL;
            b->kind = WS_BIND_LAZYREG;
            b->type = r->type;
            b->vec = r->vec;
        }
    }
    if (!b)
        return NULL;
    if (b->kind == WS_BIND_LAZYREG) {
        b->index = ws_scope_new_reg(p, n, b->type, b->vec);
        b->kind = WS_BIND_REG;
        if (b->index < 0)
            return NULL;
    }
    if (!b->depth)
        b->ref_stamp = p->stamp;
    return b;
}

static struct ws_label_use *label_use(struct ws_parser *p, struct ws_name *n,
                                      const struct ws_tok *at)
{
    struct ws_label_use *u = n->label;
    if (u && u->depth == p->depth)
        return u;
    u = ws_arena_alloc(&p->scratch, sizeof(*u));
    if (!u || ws_grow((void **)&p->label_ids, &p->label_ids_cap, p->n_label_ids + 1,
                      sizeof(*p->label_ids))) {
        ws_parse_oom(p);
        return NULL;
    }
    u->name = n;
    u->depth = p->depth;
    u->line = at->line;
    u->col = at->col;
    u->id = (int32_t)p->n_label_ids++;
    p->label_ids[u->id] = (struct ws_label_id){.same_as = -1, .final = -1, .name = n};
    u->outer = n->label;
    n->label = u;
    u->scope_next = p->scopes[p->depth].labels;
    p->scopes[p->depth].labels = u;
    return u;
}

int32_t ws_label_ref(struct ws_parser *p, struct ws_name *n, const struct ws_tok *at)
{
    struct ws_label_use *u = label_use(p, n, at);
    return u ? u->id : -1;
}

bool ws_label_define(struct ws_parser *p, struct ws_name *n, const struct ws_tok *at)
{
    struct ws_label_use *u = label_use(p, n, at);
    if (!u)
        return false;
    if (u->defined)
        return ws_parse_fail(p, at, "label '%s' stands twice in the same block", n->text);
    u->defined = true;
    p->label_ids[u->id].insn = (uint32_t)p->n_insns;
    p->label_ids[u->id].final =
        (int32_t)p->n_labels++; /* func->labels is in the order of the text */
    return true;
}

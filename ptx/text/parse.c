// SPDX-License-Identifier: Apache-2.0
/* ptx/text/parse.c - a PTX module (PTX ISA 11): header, variables, functions, debug directives.
 *
 * Recursive descent with one token of look-ahead. Every function that can fail returns false after
 * it has reported why (ws_parse_fail() and its kin); the caller either gives up too or skips to the
 * next statement. */
#include "ptx/ptx_private.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/budget.h"
#include "base/error.h"

static bool report(struct ws_parser *p, const struct ws_tok *t, const char *fmt, va_list ap)
{
    char text[512];
    vsnprintf(text, sizeof(text), fmt, ap);
    ws_diags_add(p->diags, p->file, t->line, t->col, "%s", text);
    if (p->n_errors + p->n_unsupported >= WS_PTX_MAX_ERRORS)
        p->stop = true;
    return false;
}

bool ws_parse_fail(struct ws_parser *p, const struct ws_tok *t, const char *fmt, ...)
{
    va_list ap;
    p->n_errors++;
    /* What the lexer could not read is the true reason, whatever was expected in its place. */
    if (t->kind == WS_TOK_BAD) {
        ws_diags_add(p->diags, p->file, t->line, t->col, "%.*s", (int)t->len, t->s);
        p->stop |= p->n_errors >= WS_PTX_MAX_ERRORS;
        return false;
    }
    va_start(ap, fmt);
    report(p, t, fmt, ap);
    va_end(ap);
    return false;
}

bool ws_parse_unsupported(struct ws_parser *p, const struct ws_tok *t, const char *fmt, ...)
{
    va_list ap;
    char buf[400];
    struct ws_tok at = *t;
    at.kind = WS_TOK_NAME;
    p->n_unsupported++;
    snprintf(buf, sizeof(buf), "not supported: %s", fmt);
    va_start(ap, fmt);
    report(p, &at, buf, ap);
    va_end(ap);
    return false;
}

bool ws_parse_oom(struct ws_parser *p)
{
    p->oom = p->stop = true;
    return false;
}

void ws_parse_next(struct ws_parser *p)
{
    if (WS_UNLIKELY(!ws_budget_spend(1))) {
        ws_parse_oom(p);
        p->lex.cur = p->lex.end;
    }
    p->prev_end = p->lex.cur;
    ws_lex_next(&p->lex, &p->t);
}

bool ws_parse_accept(struct ws_parser *p, int kind)
{
    if (p->t.kind != kind)
        return false;
    ws_parse_next(p);
    return true;
}

bool ws_parse_expect(struct ws_parser *p, int kind, const char *what)
{
    if (ws_parse_accept(p, kind))
        return true;
    if (p->t.kind == WS_TOK_END)
        return ws_parse_fail(p, &p->t, "the text ends; expected %s", what);
    return ws_parse_fail(p, &p->t, "expected %s, not '%.*s'", what, (int)WS_MIN(p->t.len, 40u),
                         p->t.s);
}

bool ws_parse_is_dot(const struct ws_parser *p, const char *word)
{
    size_t n = strlen(word);
    return p->t.kind == WS_TOK_DOT && p->t.len == n + 1 && !memcmp(p->t.s + 1, word, n);
}

void ws_parse_skip_statement(struct ws_parser *p)
{
    while (p->t.kind != ';' && p->t.kind != '}' && p->t.kind != WS_TOK_END)
        ws_parse_next(p);
    if (p->t.kind == ';')
        ws_parse_next(p);
}

/* ---- debug directives (11.5): .loc says which line of the program's source the instructions that
 * follow it were made from, .file which name the number of a file stands for. They are kept, so
 * that a message can name that line; the rest is dropped. ---- */

/* Compilers number files from 1. Greater numbers are read, but not remembered. */
enum { MAX_FILE = 4096 };

/* What stands in the list of a directive: its first two numbers, its first string. */
struct words {
    uint32_t n, number[2];
    struct ws_tok string; /* len 0: none */
};

static void note_word(struct words *w, const struct ws_tok *t)
{
    if (t->kind == WS_TOK_STR && !w->string.len)
        w->string = *t;
    if (t->kind != WS_TOK_NUM || w->n == WS_ARRAY_SIZE(w->number))
        return;
    uint32_t v = 0;
    for (uint32_t k = 0; k < t->len && t->s[k] >= '0' && t->s[k] <= '9' && v < UINT32_MAX / 16; k++)
        v = v * 10 + (uint32_t)(t->s[k] - '0');
    w->number[w->n++] = v;
}

/* Numbers, names and strings separated by commas, as .file, .loc and .pragma take them. .loc has no
 * ';'. */
static bool list(struct ws_parser *p, struct words *w)
{
    do {
        if (p->t.kind != WS_TOK_NUM && p->t.kind != WS_TOK_NAME && p->t.kind != WS_TOK_STR)
            return ws_parse_fail(p, &p->t, "expected a number, a name or a string");
        do {
            note_word(w, &p->t);
            ws_parse_next(p);
        } while (p->t.kind == WS_TOK_NUM || p->t.kind == WS_TOK_STR || p->t.kind == '+' ||
                 p->t.kind == '-');
        /* "function_name $L__info_string0 + 4" and "inlined_at 1 2 3" are two words in one place */
        if (p->t.kind == WS_TOK_NAME && p->t.s[0] == '$') {
            const char *s = p->lex.cur;
            while (s < p->lex.end && (*s == ' ' || *s == '\t'))
                s++;
            if (s < p->lex.end && *s != ':')
                while (ws_parse_next(p), p->t.kind == '+' || p->t.kind == WS_TOK_NUM)
                    ;
        }
    } while (ws_parse_accept(p, ','));
    return true;
}

static bool skip_section(struct ws_parser *p)
{
    while (p->t.kind != '{')
        if (p->t.kind == WS_TOK_END || p->t.kind == ';' || p->t.kind == '}')
            return ws_parse_fail(p, &p->t, "expected '{' after .section");
        else
            ws_parse_next(p);
    while (p->t.kind != '}' && p->t.kind != WS_TOK_END)
        ws_parse_next(p);
    return ws_parse_expect(p, '}', "'}' after the section");
}

/* The file of that number. Its name comes by .file, which compilers write behind all kernels.
 * NULL: the number is too great, or no memory. */
static struct ws_ptx_file *file_of(struct ws_parser *p, uint32_t number)
{
    if (!number || number > MAX_FILE)
        return NULL;
    if (number > p->n_files) {
        if (ws_grow((void **)&p->files, &p->files_cap, number, sizeof(struct ws_ptx_file *)))
            return NULL;
        memset(p->files + p->n_files, 0, (number - p->n_files) * sizeof(*p->files));
        p->n_files = number;
    }
    struct ws_ptx_file **f = &p->files[number - 1];
    if (!*f && (*f = ws_arena_alloc(&p->m->arena, sizeof(**f))))
        (*f)->name = NULL;
    return *f;
}

bool ws_parse_debug(struct ws_parser *p, bool *ret_found)
{
    bool loc = ws_parse_is_dot(p, "loc"), file = ws_parse_is_dot(p, "file"),
         section = ws_parse_is_dot(p, "section"), pragma = ws_parse_is_dot(p, "pragma");
    struct words w = {.n = 0};
    *ret_found = loc || file || section || pragma;
    if (!*ret_found)
        return true;
    ws_parse_next(p);
    if (section)
        return skip_section(p);
    if (!list(p, &w))
        return false;
    if (pragma)
        return ws_parse_expect(p, ';', "';' after the pragma");
    struct ws_ptx_file *f = w.n ? file_of(p, w.number[0]) : NULL;
    if (loc) {
        p->src_file = f;
        p->src_line = w.n > 1 ? w.number[1] : 0;
    } else if (f && w.string.len && !f->name) {
        f->name = ws_arena_strndup(&p->m->arena, w.string.s, w.string.len);
    }
    return true;
}

/* ---- header ---- */

static bool version(struct ws_parser *p)
{
    struct ws_tok t = p->t;
    const char *s = t.s, *end = t.s + t.len;
    unsigned v[2] = {0, 0};
    if (t.kind != WS_TOK_NUM)
        return ws_parse_fail(p, &t, "expected a version like 8.0");
    for (int k = 0; k < 2; k++) {
        for (; s < end && *s >= '0' && *s <= '9'; s++)
            v[k] = WS_MIN(v[k] * 10 + (*s - '0'), 10000u);
        if (!k && (s >= end || *s++ != '.'))
            return ws_parse_fail(p, &t, "expected a version like 8.0");
    }
    if (s != end || v[1] > 9)
        return ws_parse_fail(p, &t, "expected a version like 8.0");
    if (v[0] < 1 || v[0] > 99)
        return ws_parse_unsupported(p, &t, "PTX version %u.%u", v[0], v[1]);
    p->m->version = v[0] * 10 + v[1];
    ws_parse_next(p);
    return true;
}

static bool target(struct ws_parser *p)
{
    bool first = true;
    do {
        struct ws_tok t = p->t;
        struct ws_name *n;
        if (t.kind != WS_TOK_NAME)
            return ws_parse_fail(p, &t, "expected a target like sm_75");
        if (!(n = ws_name_intern(p, t.s, t.len)))
            return false;
        if (first) {
            unsigned sm = 0;
            const char *s = n->text + 3;
            for (; !strncmp(n->text, "sm_", 3) && *s >= '0' && *s <= '9' && sm < 1000; s++)
                sm = sm * 10 + (*s - '0');
            if (!sm || sm >= 1000 || (*s && s[1]))
                return ws_parse_fail(p, &t, "expected a target like sm_75, not '%.60s'", n->text);
            p->m->sm = sm;
            p->m->target = n->text;
        } else if (!strcmp(n->text, "map_f64_to_f32")) {
            p->m->map_f64_to_f32 = true;
        } else if (!strcmp(n->text, "debug")) {
            p->m->debug = true;
        } else if (!strcmp(n->text, "texmode_independent")) {
            p->m->texmode_independent = true;
        } else if (strcmp(n->text, "texmode_unified") && strncmp(n->text, "sm_", 3)) {
            return ws_parse_fail(p, &t, "unknown target option '%.60s'", n->text);
        }
        first = false;
        ws_parse_next(p);
    } while (ws_parse_accept(p, ','));
    return true;
}

static bool address_size(struct ws_parser *p)
{
    struct ws_tok t = p->t;
    int64_t v;
    if (!ws_parse_int(p, &v, ".address_size"))
        return false;
    if (v != 32 && v != 64)
        return ws_parse_fail(p, &t, ".address_size is 32 or 64, not %lld", (long long)v);
    p->m->address_size = (uint8_t)v;
    return true;
}

/* ---- functions ---- */

static bool directive_ints(struct ws_parser *p, uint32_t *v, unsigned max)
{
    for (unsigned k = 0; k < max; k++) {
        struct ws_tok t = p->t;
        int64_t n;
        if (!ws_parse_int(p, &n, "a performance directive's number"))
            return false;
        if (n < 0 || n > UINT32_MAX)
            return ws_parse_fail(p, &t, "%lld is out of range", (long long)n);
        v[k] = (uint32_t)n;
        if (k + 1 < max && !ws_parse_accept(p, ',')) {
            for (unsigned j = k + 1; j < max; j++)
                v[j] = 1;
            break;
        }
    }
    return true;
}

/* .maxntid and the like, between the parameters and the body. */
static bool performance(struct ws_parser *p, struct ws_ptx_func *f)
{
    while (p->t.kind == WS_TOK_DOT) {
        const struct {
            const char *word;
            uint32_t *v;
            unsigned max;
        } ints[] = {
            {"maxntid", f->maxntid, 3},
            {"reqntid", f->reqntid, 3},
            {"minnctapersm", &f->minnctapersm, 1},
            {"maxnctapersm", &f->maxnctapersm, 1},
            {"maxnreg", &f->maxnreg, 1},
            {"reqnctapercluster", f->reqnctapercluster, 3},
            {"maxclusterrank", &f->maxclusterrank, 1},
            {"abi_preserve", &(uint32_t){0}, 1},
            {"abi_preserve_control", &(uint32_t){0}, 1},
        };
        const struct {
            const char *word;
            bool *v;
        } flags[] = {
            {"noreturn", &f->noreturn},
            {"explicitcluster", &f->explicitcluster},
            {"blocksareclusters", &f->blocksareclusters},
            {"unique", &(bool){false}},
        };
        bool found = false, ok = true;
        for (size_t k = 0; !found && k < WS_ARRAY_SIZE(ints); k++)
            if (ws_parse_is_dot(p, ints[k].word)) {
                found = true;
                ws_parse_next(p);
                ok = directive_ints(p, ints[k].v, ints[k].max);
            }
        for (size_t k = 0; !found && k < WS_ARRAY_SIZE(flags); k++)
            if (ws_parse_is_dot(p, flags[k].word)) {
                found = *flags[k].v = true;
                ws_parse_next(p);
            }
        if (!found)
            ok = ws_parse_debug(p, &found);
        if (ok && !found)
            return ws_parse_unsupported(p, &p->t, "directive '%.*s' of a function",
                                        (int)WS_MIN(p->t.len, 60u), p->t.s);
        if (!ok)
            return false;
    }
    return true;
}

static void layout_params(struct ws_ptx_func *f)
{
    uint64_t at = 0;
    for (uint32_t k = 0; k < f->n_params; k++) {
        struct ws_ptx_var *v = &f->params[k];
        if (v->space != WS_SP_PARAM)
            continue;
        at = WS_ALIGN_UP(at, (uint64_t)WS_MAX(v->align, 1u));
        v->param_offset = at;
        at += v->size_bytes;
    }
    f->param_bytes = at;
}

static bool same_list(const struct ws_ptx_var *a, uint32_t na, const struct ws_ptx_var *b,
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

/* The function of this name: a new one, or one that was declared before. */
static bool place(struct ws_parser *p, struct ws_name *n, const struct ws_tok *at, bool entry,
                  bool *ret_new)
{
    struct ws_binding *b = n->bind;
    while (b && b->depth > 0) /* a result may have the function's name */
        b = b->outer;
    *ret_new = !b;
    if (b) {
        if (b->kind != WS_BIND_FUNC || p->funcs[b->index].is_entry != entry)
            return ws_parse_fail(p, at, "'%s' is declared as something else, too", n->text);
        p->func = b->index;
        return true;
    }
    if (!ws_scope_bind_module(p, n, WS_BIND_FUNC, (int32_t)p->n_funcs))
        return false;
    if (ws_grow((void **)&p->funcs, &p->funcs_cap, p->n_funcs + 1, sizeof(*p->funcs)))
        return ws_parse_oom(p);
    p->func = (int32_t)p->n_funcs++;
    p->funcs[p->func] =
        (struct ws_ptx_func){.name = n->text, .is_entry = entry, .is_decl = true, .line = at->line};
    return true;
}

/* Result names come before parameters in the text, after them in the numbering (ws_ptx_localvar()).
 */
static void renumber_results(struct ws_parser *p, const struct ws_ptx_func *h)
{
    for (uint32_t k = 0; k < h->n_rets; k++) {
        struct ws_name *n = ws_name_find(p, h->rets[k].name, strlen(h->rets[k].name));
        if (n && n->bind && n->bind->depth == p->depth && n->bind->kind == WS_BIND_LOCALVAR)
            n->bind->index = (int32_t)(h->n_params + k);
    }
}

/* From the results' '(' or the name on, up to the directives, into @h; p->func is set. */
static bool function_head(struct ws_parser *p, struct ws_ptx_func *h, struct ws_tok *ret_at,
                          bool *ret_new)
{
    if (p->t.kind == '(') {
        if (h->is_entry)
            return ws_parse_fail(p, &p->t, "an .entry returns nothing");
        if (!ws_decl_params(p, true, &h->rets, &h->n_rets))
            return false;
    }
    *ret_at = p->t;
    if (p->t.kind != WS_TOK_NAME)
        return ws_parse_fail(p, &p->t, "expected the function's name");
    struct ws_name *n = ws_name_intern(p, p->t.s, p->t.len);
    if (!n)
        return false;
    ws_parse_next(p);
    if (!place(p, n, ret_at, h->is_entry, ret_new))
        return false;
    if (p->t.kind == '(' && !ws_decl_params(p, true, &h->params, &h->n_params))
        return false;
    renumber_results(p, h);
    return true;
}

/* After a declaration there are no registers for .reg parameters to be. */
static void forget_param_regs(struct ws_ptx_func *f)
{
    for (uint32_t k = 0; k < f->n_params; k++)
        f->params[k].reg = -1;
    for (uint32_t k = 0; k < f->n_rets; k++)
        f->rets[k].reg = -1;
}

/* To ';' or '}'. The parameters' scope is entered by the caller. */
static bool function_rest(struct ws_parser *p, bool entry, uint8_t link)
{
    struct ws_ptx_func h = {.is_entry = entry};
    struct ws_tok at;
    bool fresh = false;
    if (!function_head(p, &h, &at, &fresh))
        return false;
    struct ws_ptx_func *f = &p->funcs[p->func];
    if (!fresh && (!same_list(f->params, f->n_params, h.params, h.n_params) ||
                   !same_list(f->rets, f->n_rets, h.rets, h.n_rets)))
        return ws_parse_fail(p, &at, "'%s' was declared with other parameters in line %u", f->name,
                             f->line);
    if (!f->is_decl) { /* another declaration behind the definition adds nothing */
        if (!performance(p, &h))
            return false;
        if (p->t.kind == '{')
            return ws_parse_fail(p, &at, "'%s' is defined twice (first in line %u)", f->name,
                                 f->line);
        return ws_parse_expect(p, ';', "';'");
    }
    f->params = h.params;
    f->n_params = h.n_params;
    f->rets = h.rets;
    f->n_rets = h.n_rets;
    f->line = at.line;
    layout_params(f);
    if (!performance(p, f))
        return false;
    if (fresh || (link != WS_LINK_NONE && link != WS_LINK_EXTERN))
        f->link = link;
    if (p->t.kind == '{') {
        if (f->link == WS_LINK_EXTERN)
            f->link = WS_LINK_VISIBLE; /* others may still mean it by its name */
        return ws_body_parse(p);
    }
    forget_param_regs(f);
    return ws_parse_expect(p, ';', "'{' or ';' after the function's head");
}

static bool function(struct ws_parser *p, uint8_t link)
{
    bool entry = ws_parse_is_dot(p, "entry");
    ws_parse_next(p);
    if (ws_parse_is_dot(p, "attribute")) /* .attribute(.unified(…)) of a .func */
        for (ws_parse_next(p); p->t.kind != WS_TOK_NAME && p->t.kind != WS_TOK_END &&
                               p->t.kind != ';' && p->t.kind != '{';)
            ws_parse_next(p);
    p->stamp++;
    p->n_regs = 0;
    if (!ws_scope_enter(p))
        return false;
    bool ok = function_rest(p, entry, link);
    while (p->depth > 0) /* after an error, the body's blocks are still open */
        ws_scope_leave(p);
    return ok && !p->oom;
}

bool ws_parse_callprototype(struct ws_parser *p, struct ws_name *name, const struct ws_tok *at)
{
    struct ws_ptx_proto pr = {.name = name->text};
    struct ws_ptx_func f = {0};
    ws_parse_next(p);
    if (p->t.kind == '(' && !ws_decl_params(p, false, &pr.rets, &pr.n_rets))
        return false;
    if (!ws_parse_expect(p, WS_TOK_NAME, "'_'"))
        return false;
    if (p->t.kind == '(' && !ws_decl_params(p, false, &pr.params, &pr.n_params))
        return false;
    if (!performance(p, &f) || !ws_parse_expect(p, ';', "';' after the prototype"))
        return false;
    pr.noreturn = f.noreturn;
    pr.name = ws_scope_unique(p, name);
    if (!pr.name || !ws_scope_bind(p, name, WS_BIND_PROTO, (int32_t)p->n_protos, at))
        return false;
    if (ws_grow((void **)&p->protos, &p->protos_cap, p->n_protos + 1, sizeof(pr)))
        return ws_parse_oom(p);
    p->protos[p->n_protos++] = pr;
    return true;
}

bool ws_parse_calltargets(struct ws_parser *p, struct ws_name *name, const struct ws_tok *at)
{
    int32_t *v = NULL;
    size_t n = 0, cap = 0;
    bool ok = true;
    ws_parse_next(p);
    do {
        struct ws_name *t = p->t.kind == WS_TOK_NAME ? ws_name_find(p, p->t.s, p->t.len) : NULL;
        struct ws_binding *b = t ? ws_scope_lookup(p, t) : NULL;
        if (!b || b->kind != WS_BIND_FUNC)
            ok = ws_parse_fail(p, &p->t, "expected a function that is declared above");
        else if (ws_grow((void **)&v, &cap, n + 1, sizeof(*v)))
            ok = ws_parse_oom(p);
        else
            v[n++] = b->index;
        if (ok)
            ws_parse_next(p);
    } while (ok && ws_parse_accept(p, ','));
    struct ws_ptx_proto pr = {.n_targets = (uint32_t)n};
    if (ok && !(pr.targets = ws_arena_array(&p->m->arena, n, sizeof(*v))))
        ok = ws_parse_oom(p);
    if (ok && n)
        memcpy(pr.targets, v, n * sizeof(*v));
    free(v);
    if (!ok || !ws_parse_expect(p, ';', "',' or ';' after a function"))
        return false;
    pr.name = ws_scope_unique(p, name);
    if (!pr.name || !ws_scope_bind(p, name, WS_BIND_PROTO, (int32_t)p->n_protos, at))
        return false;
    if (ws_grow((void **)&p->protos, &p->protos_cap, p->n_protos + 1, sizeof(pr)))
        return ws_parse_oom(p);
    p->protos[p->n_protos++] = pr;
    return true;
}

static bool alias(struct ws_parser *p)
{
    int32_t v[2];
    for (int k = 0; k < 2; k++) {
        struct ws_name *n = p->t.kind == WS_TOK_NAME ? ws_name_find(p, p->t.s, p->t.len) : NULL;
        if (!n || !n->bind || n->bind->kind != WS_BIND_FUNC)
            return ws_parse_fail(p, &p->t, "expected a function that is declared above");
        v[k] = n->bind->index;
        ws_parse_next(p);
        if (!ws_parse_expect(p, k ? ';' : ',', k ? "';'" : "','"))
            return false;
    }
    if (ws_grow((void **)&p->aliases, &p->aliases_cap, p->n_aliases + 1, sizeof(*p->aliases)))
        return ws_parse_oom(p);
    p->aliases[p->n_aliases++] = (struct ws_ptx_alias){v[0], v[1]};
    return true;
}

static uint8_t linkage(struct ws_parser *p)
{
    static const struct {
        const char *word;
        uint8_t link;
    } links[] = {{"visible", WS_LINK_VISIBLE},
                 {"extern", WS_LINK_EXTERN},
                 {"weak", WS_LINK_WEAK},
                 {"common", WS_LINK_COMMON}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(links); k++)
        if (ws_parse_is_dot(p, links[k].word)) {
            ws_parse_next(p);
            return links[k].link;
        }
    return WS_LINK_NONE;
}

static bool module_statement(struct ws_parser *p)
{
    bool found;
    if (!p->m->version) {
        if (!ws_parse_is_dot(p, "version"))
            return ws_parse_fail(p, &p->t, "a PTX module starts with .version");
        ws_parse_next(p);
        return version(p);
    }
    if (ws_parse_is_dot(p, "target")) {
        ws_parse_next(p);
        return target(p);
    }
    if (ws_parse_is_dot(p, "address_size")) {
        ws_parse_next(p);
        return address_size(p);
    }
    if (ws_parse_is_dot(p, "version")) /* concatenated modules repeat it; the first counts */
        return ws_parse_fail(p, &p->t, "a second .version");
    if (ws_parse_is_dot(p, "alias")) {
        ws_parse_next(p);
        return alias(p);
    }
    if (p->t.kind == ';') {
        ws_parse_next(p);
        return true;
    }
    if (!ws_parse_debug(p, &found))
        return false;
    if (found)
        return true;
    uint8_t link = linkage(p);
    if (ws_parse_is_dot(p, "entry") || ws_parse_is_dot(p, "func"))
        return function(p, link);
    if (ws_decl_is_space(p))
        return ws_decl_vars(p, link);
    if (ws_parse_is_dot(p, "reg"))
        return ws_decl_regs(p);
    return ws_parse_fail(p, &p->t, "expected a directive (.entry, .func, .global, …)");
}

/* After an error outside functions: behind the next ';', or to what starts a declaration; both
 * outside braces. */
static void skip_to_module_level(struct ws_parser *p)
{
    static const char *const starts[] = {"entry",  "func",   "visible", "weak",  "extern",
                                         "common", "global", "const",   "shared"};
    int depth = 0;
    for (bool first = true; p->t.kind != WS_TOK_END; ws_parse_next(p), first = false) {
        if (p->t.kind == '{') {
            depth++;
        } else if (p->t.kind == '}') {
            depth -= depth > 0;
        } else if (depth == 0) {
            for (size_t k = 0; !first && k < WS_ARRAY_SIZE(starts); k++)
                if (ws_parse_is_dot(p, starts[k]))
                    return;
            if (ws_parse_accept(p, ';'))
                return;
        }
    }
}

void *ws_parse_keep(struct ws_parser *p, const void *v, size_t n, size_t size)
{
    void *k = ws_arena_array(&p->m->arena, n, size);
    if (!k)
        ws_parse_oom(p);
    else if (n)
        memcpy(k, v, n * size);
    return k;
}

static void parse_module(struct ws_parser *p)
{
    struct ws_ptx_module *m = p->m;
    m->address_size = 32; /* what PTX means if it is not said */
    ws_parse_next(p);
    while (!p->stop && p->t.kind != WS_TOK_END)
        if (!module_statement(p) && !p->stop) {
            if (!m->version) /* not PTX at all: one error says it */
                return;
            skip_to_module_level(p);
        }
    if (!m->version && !p->n_errors)
        ws_parse_fail(p, &p->t, "the text is empty; a PTX module starts with .version");
    if (!m->target && !p->n_errors && !p->stop)
        ws_parse_fail(p, &p->t, "there is no .target");
    m->vars = ws_parse_keep(p, p->vars, p->n_vars, sizeof(*p->vars));
    m->n_vars = (uint32_t)p->n_vars;
    m->funcs = ws_parse_keep(p, p->funcs, p->n_funcs, sizeof(*p->funcs));
    m->n_funcs = (uint32_t)p->n_funcs;
    m->aliases = ws_parse_keep(p, p->aliases, p->n_aliases, sizeof(*p->aliases));
    m->n_aliases = (uint32_t)p->n_aliases;
}

static void parser_deinit(struct ws_parser *p)
{
    ws_lex_deinit(&p->lex);
    free(p->names);
    free(p->vars);
    free(p->funcs);
    free(p->aliases);
    free(p->insns);
    free(p->regs);
    free(p->lvars);
    free(p->label_ids);
    free(p->protos);
    free(p->targets);
    free(p->files);
    ws_arena_deinit(&p->scratch);
}

int ws_ptx_parse(struct ws_ptx_module **ret_m, const char *text, size_t len, const char *file,
                 struct ws_diags *diags)
{
    if (len > UINT32_MAX / 2) { /* line, column and token lengths are 32 bits */
        ws_diags_add(diags, file, 0, 0, "not supported: %zu bytes of PTX; the limit is 2 GiB", len);
        return WS_PTX_E_UNSUPPORTED;
    }
    struct ws_parser *p = ws_alloc(sizeof(*p));
    struct ws_ptx_module *m = ws_alloc(sizeof(*m));
    int r = -ENOMEM;
    if (p && m) {
        p->m = m;
        p->file = file;
        p->diags = diags;
        p->init_budget = 16 * len + 4096;
        ws_lex_init(&p->lex, text, len);
        r = ws_names_init(p);
        if (!r)
            parse_module(p);
        if (p->oom)
            r = -ENOMEM;
        else if (p->n_errors)
            r = WS_PTX_E_SYNTAX;
        else if (p->n_unsupported)
            r = WS_PTX_E_UNSUPPORTED;
    }
    if (p)
        parser_deinit(p);
    free(p);
    if (!r)
        r = ws_ptx_validate(m, file, diags);
    if (r) {
        ws_ptx_module_free(m);
        return r < 0 ? ws_raise(r) : r;
    }
    *ret_m = m;
    return 0;
}

struct ws_ptx_module *ws_ptx_module_free(struct ws_ptx_module *m)
{
    if (m)
        ws_arena_deinit(&m->arena);
    free(m);
    return NULL;
}

const struct ws_ptx_func *ws_ptx_find_func(const struct ws_ptx_module *m, const char *name)
{
    for (uint32_t k = 0; k < m->n_funcs; k++)
        if (!strcmp(m->funcs[k].name, name))
            return &m->funcs[k];
    return NULL;
}

const struct ws_ptx_var *ws_ptx_localvar(const struct ws_ptx_func *f, uint32_t index)
{
    if (index < f->n_params)
        return &f->params[index];
    index -= f->n_params;
    if (index < f->n_rets)
        return &f->rets[index];
    index -= f->n_rets;
    return index < f->n_vars ? &f->vars[index] : NULL;
}

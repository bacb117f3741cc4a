// SPDX-License-Identifier: Apache-2.0
/* The manifest is checked completely when it is read: the files are PTX, the kernels exist, have
 * the parameters that the line names and may be members of a fused launch, and no kernel is named
 * twice. So the use of a replacement cannot fail because of the manifest. */
#include "templates/manifest.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "templates/template.h"

enum { LINE_MAX_BYTES = 8192, PTX_MAX_BYTES = 16 << 20 };

struct manifest_file {
    struct manifest_file *next;
    char *name;
    struct ws_ptx_module *m; /* NULL: wrong, and said so */
};

struct ws_template_manifest {
    struct ws_template_replacement *v;
    size_t n, cap;
    struct manifest_file *files;
    struct ws_arena arena;
};

struct manifest_reader {
    struct ws_template_manifest *t;
    const char *dir, *path;
    uint32_t line;
    struct ws_diags *diags;
    bool wrong, oom;
};

WS_PRINTF(2, 3)
static void complain(struct manifest_reader *r, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ws_diags_add(r->diags, r->path, r->line, 0, "%s", text);
    r->wrong = true;
}

/* ---- signatures ---- */

static void type_text(const struct ws_ptx_var *p, char *buf, size_t size)
{
    enum ws_ptx_type t = (enum ws_ptx_type)p->type;
    bool floating = t == WS_T_F16 || t == WS_T_F32 || t == WS_T_F64;
    int n = snprintf(buf, size, "%c%u", floating ? 'f' : 'b', 8 * ws_ptx_type_bytes(t));
    if (p->is_array)
        snprintf(buf + n, size - (size_t)n, "[%llu]", (unsigned long long)p->n_elems);
}

/* "b64,b32,f32,b8[16]" */
static void signature(const struct ws_ptx_func *f, char *buf, size_t size)
{
    size_t n = 0;
    *buf = 0;
    for (uint32_t k = 0; k < f->n_params && n + 64 < size; k++) {
        if (k)
            buf[n++] = ',';
        type_text(&f->params[k], buf + n, size - n);
        n += strlen(buf + n);
    }
}

/* The same of what somebody wrote: u64 and s64 are b64. */
static void normalise(const char *from, char *to, size_t size)
{
    size_t n = 0;
    for (; *from && n + 1 < size; from++)
        if (!isspace((unsigned char)*from))
            to[n++] = (*from == 'u' || *from == 's') ? 'b' : *from;
    to[n] = 0;
}

/* ---- files ---- */

static int read_all(const char *path, char **ret, size_t *ret_n)
{
    FILE *f;
    int r = ws_file_open(&f, path, PTX_MAX_BYTES, NULL);
    if (r)
        return r;
    *ret = malloc(PTX_MAX_BYTES);
    if (*ret)
        *ret_n = fread(*ret, 1, PTX_MAX_BYTES, f);
    fclose(f);
    return *ret ? 0 : -ENOMEM;
}

static struct manifest_file *file_of(struct manifest_reader *r, const char *name)
{
    for (struct manifest_file *f = r->t->files; f; f = f->next)
        if (!strcmp(f->name, name))
            return f;
    struct manifest_file *f = ws_arena_alloc(&r->t->arena, sizeof(*f));
    char path[4096];
    size_t n = 0;
    if (!f || !(f->name = ws_arena_strndup(&r->t->arena, name, strlen(name)))) {
        r->oom = true;
        return NULL;
    }
    f->next = r->t->files;
    r->t->files = f;
    if (strchr(name, '/') || snprintf(path, sizeof(path), "%s/%s", r->dir, name) >= 4096) {
        complain(r, "%.200s: a file of this directory, without a path, is wanted", name);
        return f;
    }
    char *text;
    int e = read_all(path, &text, &n);
    if (e) {
        complain(r, "%.300s can't be read: %s", path, ws_file_why(e));
        return f;
    }
    if (ws_ptx_parse(&f->m, text, n, path, r->diags))
        complain(r, "%.300s is not PTX that can be used", path);
    free(text);
    return f;
}

/* Variables of its own: values that are there, and that no instance changes. */
static void check_vars(struct manifest_reader *r, const struct ws_ptx_module *m)
{
    for (uint32_t k = 0; k < m->n_vars; k++)
        if (m->vars[k].space == WS_SP_CONST && m->vars[k].n_init_syms)
            complain(r, "constant %.100s holds addresses; they would not be the same for all",
                     m->vars[k].name);
}

/* ---- lines ---- */

static bool hex(const char *s, uint8_t *to)
{
    for (int k = 0; k < 32; k++) {
        unsigned v;
        if (!isxdigit((unsigned char)s[2 * k]) || !isxdigit((unsigned char)s[2 * k + 1]) ||
            sscanf(s + 2 * k, "%2x", &v) != 1)
            return false;
        to[k] = (uint8_t)v;
    }
    return !s[64];
}

static bool same(const struct ws_template_replacement *a, const struct ws_template_replacement *b)
{
    return !strcmp(a->kernel, b->kernel) && !strcmp(a->params, b->params) &&
           a->by_image == b->by_image &&
           (!a->by_image || !memcmp(a->sha256, b->sha256, sizeof(a->sha256)));
}

static void add(struct manifest_reader *r, const struct ws_template_replacement *x)
{
    struct ws_template_manifest *t = r->t;
    for (size_t k = 0; k < t->n; k++)
        if (same(&t->v[k], x)) {
            complain(r, "%.100s(%.100s) is replaced already", x->kernel, x->params);
            return;
        }
    void *v = t->v;
    if (ws_grow(&v, &t->cap, t->n + 1, sizeof(*t->v)) < 0) {
        r->oom = true;
        return;
    }
    t->v = v;
    t->v[t->n++] = *x;
}

/* @entry of the file is what the line says. */
static void check_entry(struct manifest_reader *r, struct ws_template_replacement *x,
                        const char *file, const char *entry)
{
    char takes[2048], why[256] = "";
    const struct manifest_file *f = file_of(r, file);
    if (!f || !f->m)
        return;
    const struct ws_ptx_func *k = ws_ptx_find_func(f->m, entry);
    if (!k || !k->is_entry || k->is_decl) {
        complain(r, "%.100s has no kernel %.100s", file, entry);
        return;
    }
    signature(k, takes, sizeof(takes));
    x->m = f->m;
    x->func = (uint32_t)(k - f->m->funcs);
    if (strcmp(takes, x->params) != 0) {
        complain(r, "%.100s takes (%.100s), the kernel that it is for (%.100s)", entry, takes,
                 x->params);
        return;
    }
    int e = ws_template_refused(f->m, x->func, why, sizeof(why));
    if (e < 0)
        r->oom = true;
    else if (e)
        complain(r, "%.100s can't be in a fused launch: %.200s", entry, why);
    check_vars(r, f->m);
    if (!e)
        add(r, x);
}

static void read_line(struct manifest_reader *r, char *line)
{
    char *save = NULL, params[2048], *word[5];
    int n = 0;
    line[strcspn(line, "#\r\n")] = 0;
    for (char *p = strtok_r(line, " \t", &save); p && n < 5; p = strtok_r(NULL, " \t", &save))
        word[n++] = p;
    if (!n)
        return;
    struct ws_template_replacement x = {.by_image = n == 4};
    char *open = strchr(word[0], '('), *close = open ? strrchr(open, ')') : NULL;
    if (n < 3 || n > 4 || !open || !close || close[1] || open == word[0]) {
        complain(r,
                 "KERNEL(TYPES) [sha256:DIGITS] FILE.ptx ENTRY is wanted, with no blanks in TYPES");
        return;
    }
    if (n == 4 && (strncmp(word[1], "sha256:", 7) != 0 || !hex(word[1] + 7, x.sha256))) {
        complain(r, "%.80s: sha256: and 64 hexadecimal digits are wanted", word[1]);
        return;
    }
    *open = *close = 0;
    normalise(open + 1, params, sizeof(params));
    x.kernel = ws_arena_strndup(&r->t->arena, word[0], strlen(word[0]));
    x.params = ws_arena_strndup(&r->t->arena, params, strlen(params));
    if (!x.kernel || !x.params) {
        r->oom = true;
        return;
    }
    check_entry(r, &x, word[n - 2], word[n - 1]);
}

int ws_template_manifest_read(struct ws_template_manifest **ret, const char *dir,
                              struct ws_diags *diags)
{
    char path[4096], line[LINE_MAX_BYTES];
    struct manifest_reader r = {.dir = dir, .path = path, .diags = diags};
    r.t = ws_alloc(sizeof(*r.t));
    if (!r.t)
        return ws_raise(-ENOMEM);
    snprintf(path, sizeof(path), "%s/manifest", dir);
    FILE *f = NULL;
    int e = ws_file_open(&f, path, WS_FILE_TEXT_BYTES, NULL);
    if (e)
        complain(&r, "can't be read: %s", ws_file_why(e));
    while (f && !r.oom && fgets(line, sizeof(line), f)) {
        r.line++;
        if (!strchr(line, '\n') && strlen(line) + 1 == sizeof(line)) {
            complain(&r, "a line of more than %d bytes", LINE_MAX_BYTES);
            break;
        }
        read_line(&r, line);
    }
    if (f)
        fclose(f);
    if (r.oom || r.wrong) {
        ws_template_manifest_free(r.t);
        return r.oom ? ws_raise(-ENOMEM) : WS_PTX_E_SYNTAX;
    }
    *ret = r.t;
    return 0;
}

struct ws_template_manifest *ws_template_manifest_free(struct ws_template_manifest *t)
{
    if (!t)
        return NULL;
    for (struct manifest_file *f = t->files; f; f = f->next)
        ws_ptx_module_free(f->m);
    free(t->v);
    ws_arena_deinit(&t->arena);
    free(t);
    return NULL;
}

const struct ws_template_replacement *
ws_template_manifest_find(const struct ws_template_manifest *t, const struct ws_ptx_module *m,
                          uint32_t func, const uint8_t *sha256)
{
    const struct ws_template_replacement *found = NULL;
    char params[2048];
    if (!t)
        return NULL;
    signature(&m->funcs[func], params, sizeof(params));
    for (size_t k = 0; k < t->n; k++) {
        const struct ws_template_replacement *x = &t->v[k];
        if (strcmp(x->kernel, m->funcs[func].name) != 0 || strcmp(x->params, params) != 0)
            continue;
        if (x->by_image && !memcmp(x->sha256, sha256, sizeof(x->sha256)))
            return x;
        if (!x->by_image)
            found = x;
    }
    return found;
}

size_t ws_template_manifest_n(const struct ws_template_manifest *t)
{
    return t ? t->n : 0;
}

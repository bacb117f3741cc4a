// SPDX-License-Identifier: Apache-2.0
/* models/store_csv.c - profiles as CSV.
 *
 * One line for each profile and SM count (one with empty fields at the end where no count is
 * known), with the profile's own fields repeated, so that a spreadsheet or a script can read it
 * without joining anything. Numbers are printed with 17 digits, which read back to the same double;
 * fields are quoted where they must be (RFC 4180). The first field of each line is the version of
 * the format. What is unknown is an empty field.
 *
 * Reading collects a profile's lines, which may stand anywhere in the file, and puts it into the
 * store when all were read: a bad line then costs its own profile and no other. */
#include "models/store_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

#define HASH_NONFATAL_OOM 1 /* out of memory: the entry is not in the table, which hh.tbl tells */
#include "base/table.h"

enum { CSV_VERSION = 1, MAX_FIELDS = 128 };

/* ---- writing ---- */

static void put_text(FILE *f, const char *s)
{
    if (!s[strcspn(s, ",\"\r\n")] && *s != ' ') {
        fputs(s, f);
        return;
    }
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"')
            fputc('"', f);
        fputc(*s, f);
    }
    fputc('"', f);
}

static void put_columns(FILE *f, const struct ws_column *c, const void *of, uint32_t has)
{
    for (; c->name; c++) {
        fputc(',', f);
        if (!of || (c->part && !(has & c->part)))
            continue;
        const void *at = (const char *)of + c->offset;
        switch (c->type) {
        case WS_COL_TEXT:
            put_text(f, at);
            break;
        case WS_COL_U32:
            fprintf(f, "%" PRIu32, *(const uint32_t *)at);
            break;
        case WS_COL_U64:
            fprintf(f, "%" PRIu64, *(const uint64_t *)at);
            break;
        case WS_COL_DOUBLE:
            fprintf(f, "%.17g", *(const double *)at);
            break;
        }
    }
}

static int put_profile(void *arg, const struct ws_profile *p)
{
    FILE *f = arg;
    for (uint32_t i = 0; i < WS_MAX(p->n_points, 1u); i++) {
        fprintf(f, "%d", CSV_VERSION);
        put_columns(f, ws_profile_columns, p, p->has);
        put_columns(f, ws_point_columns, i < p->n_points ? &p->points[i] : NULL, 0);
        fputc('\n', f);
    }
    return ferror(f) ? ws_raise(-EIO) : 0;
}

int ws_store_export(struct ws_store *s, FILE *f)
{
    fputs("version", f);
    for (const struct ws_column *c = ws_profile_columns; c->name; c++)
        fprintf(f, ",%s", c->name);
    for (const struct ws_column *c = ws_point_columns; c->name; c++)
        fprintf(f, ",%s", c->name);
    fputc('\n', f);
    int r = ws_store_each(s, put_profile, f);
    if (!r && (fflush(f) || ferror(f)))
        r = ws_raise(-EIO);
    return r;
}

/* ---- reading ---- */

struct pending { /* a profile being put together */
    struct ws_profile p;
    bool bad;
    UT_hash_handle hh; /* by p.key, whose unused bytes are zero */
};
struct import {
    const char *name;
    uint32_t line;
    struct ws_diags *diags;
    char *fields[MAX_FIELDS];
    uint32_t n_fields;
    struct pending *pending; /* in the order of the file */
    uint64_t n_bad_lines;
};

/* Splits a line in place. Return: false (reported): too many fields, or a quote where none may
 * be. */
static bool split(struct import *x, char *line)
{
    x->n_fields = 0;
    char *p = line;
    for (;;) {
        if (x->n_fields == MAX_FIELDS) {
            ws_diags_add(x->diags, x->name, x->line, MAX_FIELDS, "too many fields");
            return false;
        }
        char *out = x->fields[x->n_fields++] = p;
        if (*p == '"') {
            for (p++; *p && (*p != '"' || p[1] == '"'); p++) {
                p += *p == '"';
                *out++ = *p;
            }
            if (*p != '"' || (p[1] && p[1] != ',')) {
                ws_diags_add(
                    x->diags, x->name, x->line, x->n_fields,
                    "a quoted field must end with a quote before a comma or the line's end");
                return false;
            }
            p++;
        } else {
            for (; *p && *p != ','; p++) {
                if (*p == '"') {
                    ws_diags_add(x->diags, x->name, x->line, x->n_fields,
                                 "a quote inside a field that doesn't begin with one");
                    return false;
                }
                out++;
            }
        }
        bool more = *p == ',';
        *out = 0;
        if (!more)
            return true;
        p++;
    }
}

static int check_head(struct import *x)
{
    uint32_t i = 1;
    bool same = !strcmp(x->fields[0], "version");
    for (const struct ws_column *c = ws_profile_columns; c->name; c++, i++)
        same = same && i < x->n_fields && !strcmp(x->fields[i], c->name);
    for (const struct ws_column *c = ws_point_columns; c->name; c++, i++)
        same = same && i < x->n_fields && !strcmp(x->fields[i], c->name);
    /* A later version may well have other columns; the next line tells. */
    if (same && i == x->n_fields)
        return 0;
    return WS_STORE_E_FORMAT;
}

static bool read_field(struct import *x, uint32_t at, const struct ws_column *c, void *of)
{
    const char *s = x->fields[at];
    void *to = (char *)of + c->offset;
    char *end = NULL;
    errno = 0;
    if (c->type == WS_COL_TEXT) {
        if (strlen(s) < c->bytes) {
            strcpy(to, s);
            return true;
        }
        ws_diags_add(x->diags, x->name, x->line, at + 1, "%s is longer than %zu bytes", c->name,
                     c->bytes - 1);
        return false;
    }
    double v;
    uint64_t u = 0;
    if (c->type == WS_COL_DOUBLE) {
        v = strtod(s, &end);
        *(double *)to = v;
    } else {
        u = strtoull(s, &end, 10);
        v = (double)u;
        if (*s == '-' || *s == '+')
            end = (char *)s;
        if (c->type == WS_COL_U64)
            *(uint64_t *)to = u;
        else
            *(uint32_t *)to = (uint32_t)WS_MIN(u, UINT32_MAX);
    }
    /* Numbers too small for a double read as the nearest there is; that is as near as one gets. */
    if (end == s || *end || strchr(" \t\n\v\f\r", *s) || !(v >= c->min && v <= c->max)) {
        ws_diags_add(x->diags, x->name, x->line, at + 1,
                     "%s is '%s'; it must be a %snumber from %g to %g", c->name, s,
                     c->type == WS_COL_DOUBLE ? "" : "whole ", c->min, c->max);
        return false;
    }
    return true;
}

static bool read_profile_fields(struct import *x, struct ws_profile *p)
{
    bool ok = true;
    uint32_t missing = 0, at = 1;
    const char *empty[32] = {0};
    for (const struct ws_column *c = ws_profile_columns; c->name; c++, at++) {
        bool is_empty = !*x->fields[at];
        if (!is_empty || c->type == WS_COL_TEXT) {
            ok = read_field(x, at, c, p) && ok;
            p->has |= c->part;
        } else if (c->part) {
            missing |= c->part;
            empty[__builtin_ctz(c->part)] = c->name;
        } /* statistics: none yet */
    }
    for (uint32_t part = missing & p->has; part; part &= part - 1) {
        ws_diags_add(x->diags, x->name, x->line, 0,
                     "%s is empty, but others of its group are not; give all or none",
                     empty[__builtin_ctz(part)]);
        ok = false;
    }
    return ok;
}

static bool read_point_fields(struct import *x, uint32_t at, struct ws_profile_point *q,
                              bool *ret_any)
{
    bool ok = true, any = false;
    uint32_t first = at;
    for (const struct ws_column *c = ws_point_columns; c->name; c++, at++)
        any |= *x->fields[at] != 0;
    *ret_any = any;
    at = first;
    for (const struct ws_column *c = ws_point_columns; c->name && any; c++, at++)
        ok = read_field(x, at, c, q) && ok;
    return ok;
}

static bool same_profile(const struct ws_profile *a, const struct ws_profile *b,
                         const char **ret_column)
{
    for (const struct ws_column *c = ws_profile_columns; c->name; c++) {
        const char *x = (const char *)a + c->offset, *y = (const char *)b + c->offset;
        *ret_column = c->name;
        if (c->part && (a->has ^ b->has) & c->part)
            return false;
        bool same =
            c->type == WS_COL_TEXT
                ? !strcmp(x, y)
                : !memcmp(x, y, c->type == WS_COL_U32 ? sizeof(uint32_t) : sizeof(uint64_t));
        if (!same)
            return false;
    }
    return true;
}

/* What is there of the profile with this key, new if nothing is (and then *ret_new); NULL: out of
 * memory. */
static struct pending *pending_of(struct import *x, const struct ws_profile_key *key, bool *ret_new)
{
    struct pending *to = NULL;
    HASH_FIND(hh, x->pending, key, sizeof(*key), to);
    *ret_new = !to;
    if (to)
        return to;
    to = ws_alloc(sizeof(*to));
    if (!to)
        return NULL;
    to->p.key = *key;
    HASH_ADD(hh, x->pending, p.key, sizeof(*key), to);
    if (!to->hh.tbl) {
        free(to);
        return NULL;
    }
    return to;
}

static int take_line(struct import *x, const struct ws_profile *p, const struct ws_profile_point *q,
                     bool any_point, bool ok)
{
    bool is_new;
    struct pending *to = pending_of(x, &p->key, &is_new);
    if (!to)
        return ws_raise(-ENOMEM);
    if (!ok) {
        to->bad = true;
        return 0;
    }
    const char *column = NULL;
    if (is_new) {
        to->p = *p;
    } else if (!to->bad && !same_profile(&to->p, p, &column)) {
        ws_diags_add(x->diags, x->name, x->line, 0,
                     "%s differs from that of an earlier line of the same profile", column);
        to->bad = true;
        x->n_bad_lines++;
        return 0;
    } else if (!any_point || ws_profile_at(&to->p, q->n_sms)) {
        ws_diags_add(x->diags, x->name, x->line, 0,
                     any_point ? "n_sms %u stands there twice for this profile"
                               : "this profile stands there twice",
                     q->n_sms);
        to->bad = true;
        x->n_bad_lines++;
        return 0;
    }
    int r = any_point ? ws_profile_put_point(&to->p, q) : 0;
    return r ? ws_forward(r) : 0;
}

static int read_line(struct import *x, char *line)
{
    uint32_t n_profile = 0, n_all = 1;
    for (const struct ws_column *c = ws_profile_columns; c->name; c++)
        n_profile++;
    for (const struct ws_column *c = ws_point_columns; c->name; c++)
        n_all++;
    n_all += n_profile;
    bool ok = split(x, line);
    if (ok && strcmp(x->fields[0], "1")) {
        char *end;
        long version = strtol(x->fields[0], &end, 10);
        if (*x->fields[0] && !*end && version > CSV_VERSION) {
            ws_diags_add(x->diags, x->name, x->line, 1,
                         "version %ld, of a newer wattshare; this one reads version %d", version,
                         CSV_VERSION);
            return WS_STORE_E_NEWER;
        }
        ws_diags_add(x->diags, x->name, x->line, 1, "version is '%s'; it must be %d", x->fields[0],
                     CSV_VERSION);
        ok = false;
    }
    if (ok && x->n_fields != n_all) {
        ws_diags_add(x->diags, x->name, x->line, 0, "%u fields where there must be %u", x->n_fields,
                     n_all);
        ok = false;
    }
    if (!ok) { /* whose line it is can't be told */
        x->n_bad_lines++;
        return 0;
    }
    struct ws_profile p = WS_PROFILE_NULL;
    struct ws_profile_point q = {0};
    bool any = false;
    ok = read_profile_fields(x, &p);
    ok = read_point_fields(x, 1 + n_profile, &q, &any) && ok;
    if (ok) {
        struct ws_profile_point one = q;
        struct ws_profile probe = p;
        probe.points = any ? &one : NULL;
        probe.n_points = any;
        ok = !ws_profile_check(&probe, x->name, x->line, x->diags);
    }
    x->n_bad_lines += !ok;
    return take_line(x, &p, &q, any, ok);
}

static int read_all(struct import *x, FILE *f)
{
    char *text = NULL;
    size_t cap = 0;
    int r = 0, head = 1;
    ssize_t len;
    while (!r && (errno = 0, len = getline(&text, &cap, f)) > 0) {
        x->line++;
        char *line = text;
        if (x->line == 1 && len >= 3 && !memcmp(line, "\xef\xbb\xbf", 3)) {
            line += 3; /* spreadsheets like to begin with a byte order mark */
            len -= 3;
        }
        while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
            line[--len] = 0;
        if (strlen(line) != (size_t)len) {
            ws_diags_add(x->diags, x->name, x->line, 0, "a zero byte: this is not text");
            r = WS_STORE_E_FORMAT;
        } else if (x->line == 1) {
            head = split(x, line) ? check_head(x) : WS_STORE_E_FORMAT;
        } else if (*line && head) {
            /* Not our head: say whether it is a newer one's. */
            r = split(x, line) && strtol(x->fields[0], NULL, 10) > CSV_VERSION ? read_line(x, line)
                                                                               : head;
            break;
        } else if (*line) {
            r = read_line(x, line);
        }
    }
    if (!r && errno)
        r = ws_raise(-errno);
    if (head && (!r || r == WS_STORE_E_FORMAT)) {
        ws_diags_add(x->diags, x->name, 1, 0,
                     "the first line must name the columns, as `wattshare profiles export` writes "
                     "them (version,hash,gpu,shape,…)");
        r = WS_STORE_E_FORMAT;
    }
    free(text);
    return r;
}

static int put_all(struct ws_store *s, struct import *x, struct ws_store_import *ret)
{
    int r = ws_store_begin(s);
    if (r)
        return r;
    for (struct pending *i = x->pending; i && !r; i = i->hh.next)
        if (!i->bad) {
            r = ws_store_put(s, &i->p);
            ret->n_profiles++;
            ret->n_points += i->p.n_points;
        }
    int e = ws_store_commit(s, !r);
    return r ? r : e;
}

int ws_store_import(struct ws_store *s, FILE *f, const char *name, struct ws_store_import *ret,
                    struct ws_diags *diags)
{
    struct import x = {.name = name, .diags = diags};
    *ret = (struct ws_store_import){0};
    int r = read_all(&x, f);
    if (!r)
        r = put_all(s, &x, ret);
    ret->n_bad_lines = x.n_bad_lines;
    struct pending *i, *next;
    HASH_ITER (hh, x.pending, i, next) {
        HASH_DEL(x.pending, i);
        ws_profile_deinit(&i->p);
        free(i);
    }
    return r < 0 ? ws_forward(r) : r;
}

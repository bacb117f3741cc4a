// SPDX-License-Identifier: Apache-2.0
/* Reads JSON lines. json-c parses them, and this file says where something is wrong. What json-c
 * reads as an integer or as a double counts as a number; the getters check whether it is whole. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/sets/jsonl.h"

enum { MAX_DEPTH = 24 };

void ws_jsonl_init(struct ws_jsonl *r, FILE *f, const char *file)
{
    *r = (struct ws_jsonl){.f = f, .file = file};
}

void ws_jsonl_deinit(struct ws_jsonl *r)
{
    free(r->text);
    r->text = NULL;
}

void ws_json_line_deinit(struct ws_json_line *l)
{
    json_object_put(l->root);
    ws_diags_deinit(&l->diags);
    l->root = NULL;
}

bool ws_json_line_report(const struct ws_json_line *l, FILE *f, const char *program)
{
    for (size_t i = 0; i < l->diags.n; i++)
        fprintf(f, "%s: %s:%u: %s\n", program, l->file, l->number, l->diags.v[i].text);
    return !l->bad;
}

void ws_json_bad(struct ws_json_line *l, const char *path, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    ws_diags_add(&l->diags, l->file, l->number, 0, "%s%s%s", path, *path ? ": " : "", text);
    l->bad = true;
}

/* @text is one JSON object and nothing after it. */
static int parse(struct ws_json_line *l, const char *text, size_t n)
{
    struct json_tokener *tok = json_tokener_new_ex(MAX_DEPTH);
    if (!tok)
        return ws_raise(-ENOMEM);
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_ALLOW_TRAILING_CHARS);
    l->root = json_tokener_parse_ex(tok, text, n > INT32_MAX ? -1 : (int)n);
    enum json_tokener_error e = json_tokener_get_error(tok);
    size_t end = json_tokener_get_parse_end(tok);
    json_tokener_free(tok);
    if (e != json_tokener_success)
        ws_json_bad(l, "", "column %zu: not JSON: %s", end + 1,
                    e == json_tokener_continue ? "it ends too early" : json_tokener_error_desc(e));
    else if (strspn(text + end, " \t\r\n") != n - end)
        ws_json_bad(l, "", "column %zu: text after the object; expected one object a line",
                    end + 1);
    else if (!json_object_is_type(l->root, json_type_object))
        ws_json_bad(l, "", "expected a JSON object {…}");
    else
        return 0;
    json_object_put(l->root);
    l->root = NULL;
    return 0;
}

int ws_jsonl_next(struct ws_jsonl *r, struct ws_json_line *ret)
{
    for (;;) {
        ssize_t n = getline(&r->text, &r->cap, r->f);
        if (n < 0)
            return ferror(r->f) ? ws_raise(-EIO) : WS_JSONL_END;
        r->number++;
        if (strspn(r->text, " \t\r\n") == (size_t)n)
            continue;
        *ret = (struct ws_json_line){.file = r->file, .number = r->number};
        if (strlen(r->text) != (size_t)n) {
            ws_json_bad(ret, "", "column %zu: a zero byte", strlen(r->text) + 1);
            return 0;
        }
        return parse(ret, r->text, (size_t)n);
    }
}

int ws_json_file(const char *path, struct ws_json_line *ret)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return ws_raise(-errno);
    char *text = NULL;
    size_t cap = 0;
    ssize_t n = getdelim(&text, &cap, 0, f);
    int r = ferror(f) ? ws_raise(-EIO) : 0;
    fclose(f);
    *ret = (struct ws_json_line){.file = path, .number = 1};
    if (!r && n <= 0)
        ws_json_bad(ret, "", "the file is empty");
    else if (!r)
        r = parse(ret, text, strlen(text));
    free(text);
    return r;
}

struct ws_json_at ws_json_root(struct ws_json_line *l)
{
    return (struct ws_json_at){.line = l, .o = l->root};
}

static struct ws_json_at below(const struct ws_json_at *at, struct json_object *o, const char *key)
{
    struct ws_json_at r = {.line = at->line, .o = o};
    snprintf(r.path, sizeof(r.path), "%.60s%s%.30s", at->path, *at->path ? "." : "", key);
    return r;
}

bool ws_json_has(const struct ws_json_at *at, const char *key)
{
    struct json_object *o = NULL;
    return json_object_is_type(at->o, json_type_object) &&
           json_object_object_get_ex(at->o, key, &o) && o;
}

struct ws_json_at ws_json_get(const struct ws_json_at *at, const char *key, bool optional)
{
    struct json_object *o = NULL;
    if (!at->o)
        return below(at, NULL, key);
    if (!json_object_is_type(at->o, json_type_object))
        ws_json_bad(at->line, at->path, "expected an object {…}");
    else if (!json_object_object_get_ex(at->o, key, &o) || !o) {
        if (!optional) {
            struct ws_json_at r = below(at, NULL, key);
            ws_json_bad(at->line, r.path, "missing");
        }
    }
    return below(at, o, key);
}

struct ws_json_at ws_json_item(const struct ws_json_at *at, size_t i)
{
    struct ws_json_at r = {.line = at->line};
    if (json_object_is_type(at->o, json_type_array))
        r.o = json_object_array_get_idx(at->o, i);
    snprintf(r.path, sizeof(r.path), "%.80s[%zu]", at->path, i);
    return r;
}

size_t ws_json_length(const struct ws_json_at *at, size_t max)
{
    if (!at->o)
        return 0;
    if (!json_object_is_type(at->o, json_type_array)) {
        ws_json_bad(at->line, at->path, "expected an array […]");
        return 0;
    }
    size_t n = json_object_array_length(at->o);
    if (n > max) {
        ws_json_bad(at->line, at->path, "%zu elements; expected at most %zu", n, max);
        return 0;
    }
    return n;
}

/* The number in @at, or NAN with a message. */
static double number_of(const struct ws_json_at *at)
{
    if (json_object_is_type(at->o, json_type_double) || json_object_is_type(at->o, json_type_int)) {
        double v = json_object_get_double(at->o);
        if (isfinite(v))
            return v;
    }
    ws_json_bad(at->line, at->path, "%.40s is not a number",
                at->o ? json_object_to_json_string(at->o) : "null");
    return NAN;
}

double ws_json_value(const struct ws_json_at *at, double min, double max)
{
    double v = number_of(at);
    if (isnan(v))
        return min;
    if (v >= min && v <= max)
        return v;
    if (v < 0 && min >= 0)
        ws_json_bad(at->line, at->path, "%g is negative", v);
    else
        ws_json_bad(at->line, at->path, "%g is out of range; expected %g to %g", v, min, max);
    return min;
}

double ws_json_number(const struct ws_json_at *at, const char *key, double min, double max,
                      double fallback)
{
    struct ws_json_at v = ws_json_get(at, key, !isnan(fallback));
    if (!v.o)
        return isnan(fallback) ? min : fallback;
    return ws_json_value(&v, min, max);
}

int64_t ws_json_scaled_value(const struct ws_json_at *at, int64_t scale, int64_t max)
{
    double v = number_of(at);
    if (isnan(v))
        return 0;
    double units = v * (double)scale;
    if (v < 0)
        ws_json_bad(at->line, at->path, "%g is negative", v);
    else if (units > (double)max)
        ws_json_bad(at->line, at->path, "%g is too large; expected at most %g", v,
                    (double)max / (double)scale);
    else if (fabs(units - nearbyint(units)) > 1e-6 * WS_MAX(1.0, units * 1e-9))
        ws_json_bad(at->line, at->path, "%.10g is finer than 1/%lld", v, (long long)scale);
    else
        return llrint(units);
    return 0;
}

int64_t ws_json_scaled(const struct ws_json_at *at, const char *key, int64_t scale, int64_t max,
                       bool required, int64_t fallback)
{
    struct ws_json_at v = ws_json_get(at, key, !required);
    return v.o ? ws_json_scaled_value(&v, scale, max) : fallback;
}

int64_t ws_json_integer_value(const struct ws_json_at *at, int64_t min, int64_t max)
{
    double v = number_of(at);
    if (isnan(v))
        return min;
    if (v != nearbyint(v) || fabs(v) > 9e15)
        ws_json_bad(at->line, at->path, "%.10g is not a whole number", v);
    else if (v < (double)min || v > (double)max)
        ws_json_bad(at->line, at->path, "%.10g is out of range; expected %lld to %lld", v,
                    (long long)min, (long long)max);
    else
        return (int64_t)v;
    return min;
}

int64_t ws_json_integer(const struct ws_json_at *at, const char *key, int64_t min, int64_t max,
                        bool required, int64_t fallback)
{
    struct ws_json_at v = ws_json_get(at, key, !required);
    return v.o ? ws_json_integer_value(&v, min, max) : fallback;
}

const char *ws_json_string(const struct ws_json_at *at, const char *key, bool required)
{
    struct ws_json_at v = ws_json_get(at, key, !required);
    if (!v.o)
        return NULL;
    if (json_object_is_type(v.o, json_type_string))
        return json_object_get_string(v.o);
    ws_json_bad(v.line, v.path, "expected a string");
    return NULL;
}

bool ws_json_bool(const struct ws_json_at *at, const char *key, bool required, bool fallback)
{
    struct ws_json_at v = ws_json_get(at, key, !required);
    if (!v.o)
        return fallback;
    if (json_object_is_type(v.o, json_type_boolean))
        return json_object_get_boolean(v.o);
    ws_json_bad(v.line, v.path, "expected true or false");
    return fallback;
}

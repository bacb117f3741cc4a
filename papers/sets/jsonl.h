// SPDX-License-Identifier: Apache-2.0
/* papers/sets/jsonl.h - reads task sets and reference data as JSON, one object a line. Errors
 * name the file, the line and the field, and say what would be right. A bad line does not keep
 * the others from being read.
 *
 * Values are json-c's (json_object). The getters below check type and range: a getter that finds
 * its field wrong adds an entry to the line's diags, marks the line as bad, and returns the
 * fallback. So a caller reads all fields of a line and then looks once at ws_json_line.bad.
 * Threads: one for each reader; a ws_json_line may be handed to another thread. Errors:
 * base/error.h. */
#ifndef WS_PAPERS_SETS_JSONL_H
#define WS_PAPERS_SETS_JSONL_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include "base/diag.h"
#include "base/macros.h"

/* One line, parsed. */
struct ws_json_line {
    const char *file;         /* borrowed from the caller of ws_jsonl_open() */
    uint32_t number;          /* 1-based */
    struct json_object *root; /* owned; an object */
    struct ws_diags diags;    /* what was wrong with it */
    bool bad;
};

struct ws_jsonl {
    FILE *f;          /* borrowed */
    const char *file; /* its name in messages; borrowed */
    uint32_t number;
    char *text;
    size_t cap;
};

enum { _WS_JSONL_OK, WS_JSONL_END };
/* @f stays the caller's to close. @file: the name in messages, as the user knows it ("standard
 * input" for "-"). */
void ws_jsonl_init(struct ws_jsonl *r, FILE *f, const char *file);
/**
 * ws_jsonl_next() - read one line
 * @ret: deinit with ws_json_line_deinit(), also where it is bad; empty lines are skipped. A line
 * that isn't one JSON object is returned with bad set, root NULL and a message with the column.
 * Return: 0, WS_JSONL_END, or negative (-ENOMEM, -EIO).
 */
WS_MUST_CHECK int ws_jsonl_next(struct ws_jsonl *r, struct ws_json_line *ret);
void ws_jsonl_deinit(struct ws_jsonl *r);
void ws_json_line_deinit(struct ws_json_line *l);
/* Prints what was wrong with @l to @f, "PROGRAM: file:line: text" each. Return: whether the line
 * is good. */
bool ws_json_line_report(const struct ws_json_line *l, FILE *f, const char *program);
/* A whole file that is one JSON value (an object). @ret as above, number 1. Return: 0 or
 * negative (-errno of opening). */
WS_MUST_CHECK int ws_json_file(const char *path, struct ws_json_line *ret);

/* Marks the line bad. @path: "tasks[3].T". */
void ws_json_bad(struct ws_json_line *l, const char *path, const char *fmt, ...) WS_PRINTF(3, 4);

/* A place in a line: an object, and the path to it as a user would write it. The getters start
 * from it. */
struct ws_json_at {
    struct ws_json_line *line;
    /* NULL: nothing there; getters then return fallbacks, silently if the parent was reported */
    struct json_object *o;
    char path[96];
};
struct ws_json_at ws_json_root(struct ws_json_line *l);
/* The value at @key, of any type; an error if it is missing, unless @optional. */
struct ws_json_at ws_json_get(const struct ws_json_at *at, const char *key, bool optional);
/* Element @i of an array. */
struct ws_json_at ws_json_item(const struct ws_json_at *at, size_t i);
bool ws_json_has(const struct ws_json_at *at, const char *key);
/* The length of the array at @at; an error and 0 if it is no array or longer than @max. */
size_t ws_json_length(const struct ws_json_at *at, size_t max);

/* The number at @key, in [@min, @max] (NAN, infinities and other types are refused). @fallback
 * also says whether it may be missing: NAN means it must be there. */
double ws_json_number(const struct ws_json_at *at, const char *key, double min, double max,
                      double fallback);
/* The same of an element itself, e.g. of ws_json_item(). */
double ws_json_value(const struct ws_json_at *at, double min, double max);
/* Whole numbers; 12.0 counts as 12, 12.5 is refused. @required: a missing one is reported and
 * @fallback returned. */
int64_t ws_json_integer(const struct ws_json_at *at, const char *key, int64_t min, int64_t max,
                        bool required, int64_t fallback);
int64_t ws_json_integer_value(const struct ws_json_at *at, int64_t min, int64_t max);
/* A decimal number as a multiple of 1/@scale (10000 for ms with 4 decimals), rounded to the
 * nearest; refused if it is more than 1e-6 of a unit off, negative, or above @max units. */
int64_t ws_json_scaled(const struct ws_json_at *at, const char *key, int64_t scale, int64_t max,
                       bool required, int64_t fallback);
int64_t ws_json_scaled_value(const struct ws_json_at *at, int64_t scale, int64_t max);
/* The string at @key, borrowed from the line; NULL if it is missing (an error if @required). */
const char *ws_json_string(const struct ws_json_at *at, const char *key, bool required);
bool ws_json_bool(const struct ws_json_at *at, const char *key, bool required, bool fallback);

#endif

// SPDX-License-Identifier: Apache-2.0
/* tests/reference/check.h - reference files recomputed with the library. A kind of file is
 * recognised by its fields, never by its name. Its checker recomputes each result and compares with
 * the tolerance that the file's README states. There is one file for each folder of the references
 * (tests/reference/check_NAME.c), and rows in tests/reference/kinds.def. Threads: none. */
#ifndef WS_TESTS_REFERENCE_CHECK_H
#define WS_TESTS_REFERENCE_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "papers/sets/jsonl.h"

struct ws_check {
    const char *path;
    const char *folder; /* of the file: other files of the same set stand there */
    uint64_t n_equal, n_within, n_different;
    uint64_t n_shown; /* differences printed so far */
    uint64_t n_lines; /* records read */
    bool failed;      /* could not be checked: said on standard error */
};

struct ws_check_kind {
    const char *name; /* "gcaps task sets" */
    /* @head: the first line of the file (of a CSV: the names of columns); @first: the file's first
     * JSON value (its first line, or the whole file where that is one value); its root is NULL
     * where the file isn't JSON. */
    bool (*match)(const char *head, struct ws_json_line *first);
    void (*check)(struct ws_check *c);
};

/* Text for "where" in a buffer that is used again from the fourth call on. */
const char *ws_check_where(const char *fmt, ...) WS_PRINTF(1, 2);
/* Whether the file's first value is an object with all of @keys (NULL-terminated). For match(). */
bool ws_check_has(struct ws_json_line *first, const char *const *keys);
/* Any finite number, which must be there. */
double ws_check_value(const struct ws_json_at *at, const char *key);

/* One value each; @where: "line 12 results.gcaps_busy.R[3]". A difference is printed (the first few
 * of a file) and counted. */
void ws_check_integer(struct ws_check *c, const char *where, int64_t ours, int64_t reference);
void ws_check_text(struct ws_check *c, const char *where, const char *ours, const char *reference);
void ws_check_bool(struct ws_check *c, const char *where, bool ours, bool reference);
/* Equal bit for bit; else within where |ours - reference| ≤ max(@absolute,
 * @relative · |reference|). */
void ws_check_number(struct ws_check *c, const char *where, double ours, double reference,
                     double relative, double absolute);
/* The file can't be checked (unreadable, not of the form its fields promised). */
void ws_check_fail(struct ws_check *c, const char *fmt, ...) WS_PRINTF(2, 3);
/* Reads @c->path line by line; a bad line fails the check. @work: one call for each line. */
void ws_check_lines(struct ws_check *c,
                    void (*work)(struct ws_check *c, struct ws_json_line *l, void *arg), void *arg);

#endif

// SPDX-License-Identifier: Apache-2.0
/* base/diag.h - what is wrong with somebody's input: bad PTX, fatbin or configuration is data,
 * not an error. Each entry says where (file:line:col) and what, and what would be right.
 * Threads: none. */
#ifndef WS_BASE_DIAG_H
#define WS_BASE_DIAG_H

#include <stdio.h>
#include "base/macros.h"

struct ws_diag {
    char *file;         /* may be NULL */
    uint32_t line, col; /* 1-based; 0: not applicable */
    char *text;
};

struct ws_diags {
    struct ws_diag *v;
    size_t n, cap;
    size_t n_dropped; /* beyond WS_DIAGS_MAX, or out of memory */
};
#define WS_DIAGS_NULL ((struct ws_diags){0})
enum { WS_DIAGS_MAX = 64 };

/* Adds an entry; strings are copied. @d may be NULL (nothing happens). */
void ws_diags_add(struct ws_diags *d, const char *file, uint32_t line, uint32_t col,
                  const char *fmt, ...) WS_PRINTF(5, 6);
/* How many entries were added, kept or not; 0 without @d. */
static inline size_t ws_diags_count(const struct ws_diags *d)
{
    return d ? d->n + d->n_dropped : 0;
}
/* "file:line:col: text\n" for each entry, as malloc'ed text; never NULL unless out of memory.
 * Caller frees. */
WS_MUST_CHECK char *ws_diags_text(const struct ws_diags *d);
void ws_diags_deinit(struct ws_diags *d);

#endif

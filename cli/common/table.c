// SPDX-License-Identifier: Apache-2.0
/* The cells are in one array, row after row; the first row are the heads. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/common/table.h"

/* Owns @text from now on; NULL means that memory was missing. */
static void push(struct ws_table *t, char *text)
{
    void *v = t->cells;
    if (!text || ws_grow(&v, &t->cap, t->n + 1, sizeof(*t->cells)) < 0) {
        t->failed = -ENOMEM;
        free(text);
        return;
    }
    t->cells = v;
    t->cells[t->n++] = text;
}

void ws_table_init(struct ws_table *t, const char *const *heads)
{
    *t = WS_TABLE_NULL;
    for (; *heads; heads++) {
        push(t, ws_strdup(*heads));
        t->n_columns++;
    }
}

void ws_table_add(struct ws_table *t, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    push(t, text);
}

void ws_table_end_row(struct ws_table *t)
{
    while (!t->failed && t->n % t->n_columns)
        push(t, ws_strdup(""));
}

/* Characters, not bytes: UTF-8's continuation bytes take no place. */
static size_t width_of(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += (*s & 0xc0) != 0x80;
    return n;
}

static bool is_number(const char *s)
{
    char *end;
    strtod(s, &end);
    return !*s || !strcmp(s, "-") || !strcmp(s, "–") ||
           (end != s && strspn(end, "% ×") == strlen(end));
}

int ws_table_print(const struct ws_table *t, FILE *f)
{
    if (t->failed)
        return t->failed;
    size_t n_rows = t->n_columns ? t->n / t->n_columns : 0;
    for (size_t row = 0; row < n_rows; row++) {
        for (size_t col = 0; col < t->n_columns; col++) {
            size_t width = 0;
            bool right = true;
            for (size_t i = 0; i < n_rows; i++) {
                const char *cell = t->cells[i * t->n_columns + col];
                width = WS_MAX(width, width_of(cell));
                right = right && (!i || is_number(cell));
            }
            const char *cell = t->cells[row * t->n_columns + col];
            int pad = (int)(width - width_of(cell));
            bool last = col + 1 == t->n_columns;
            fprintf(f, "%*s%s%*s%s", right ? pad : 0, "", cell, right || last ? 0 : pad, "",
                    last ? "\n" : "  ");
        }
    }
    return 0;
}

void ws_table_deinit(struct ws_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = WS_TABLE_NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* Reads CSV a line at a time; cells point into the line. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/sets/csv.h"

/* Cuts @text into cells, in place, and removes quotes. Return: how many, or max + 1. */
static int split(char *text, char **cells, int max)
{
    int n = 0;
    for (char *s = text;; s++) {
        if (n == max)
            return max + 1;
        char *out = s;
        cells[n++] = s;
        bool quoted = *s == '"';
        if (quoted) {
            cells[n - 1] = ++s;
            for (out = s; *s && !(*s == '"' && s[1] != '"'); s++) {
                s += *s == '"';
                *out++ = *s;
            }
            s += *s == '"';
        }
        while (*s && *s != ',')
            *out++ = *s++;
        bool last = !*s;
        *out = 0;
        if (last)
            return n;
    }
}

static int read_line(struct ws_csv *c)
{
    for (;;) {
        ssize_t n = getline(&c->text, &c->cap, c->f);
        if (n < 0)
            return ferror(c->f) ? ws_raise(-EIO) : WS_CSV_END;
        c->number++;
        c->text[strcspn(c->text, "\r\n")] = 0;
        if (*c->text)
            return 0;
    }
}

int ws_csv_open(struct ws_csv *c, FILE *f, const char *file, struct ws_diags *diags)
{
    *c = (struct ws_csv){.f = f, .file = file};
    int r = read_line(c);
    if (r == WS_CSV_END) {
        ws_diags_add(diags, file, 1, 0,
                     "the first line, with the names of the columns, is missing");
        return WS_CSV_E_ROW;
    }
    if (r)
        return ws_forward(r);
    static const char bom[] = "\xef\xbb\xbf"; /* as spreadsheets write it */
    c->head = c->text;
    c->text = NULL;
    c->cap = 0;
    size_t skip = strncmp(c->head, bom, strlen(bom)) ? 0 : strlen(bom);
    c->n_columns = split(c->head + skip, c->names, WS_CSV_COLUMNS_MAX);
    if (c->n_columns <= WS_CSV_COLUMNS_MAX)
        return 0;
    ws_diags_add(diags, file, c->number, 0, "more than %d columns", WS_CSV_COLUMNS_MAX);
    c->n_columns = 0;
    return WS_CSV_E_ROW;
}

int ws_csv_next(struct ws_csv *c, struct ws_diags *diags)
{
    int r = read_line(c);
    if (r)
        return r;
    int n = split(c->text, c->cells, WS_CSV_COLUMNS_MAX);
    if (n == c->n_columns)
        return 0;
    ws_diags_add(diags, c->file, c->number, 0, "%d cells, but the first line names %d columns", n,
                 c->n_columns);
    return WS_CSV_E_ROW;
}

void ws_csv_deinit(struct ws_csv *c)
{
    free(c->text);
    free(c->head);
    c->text = c->head = NULL;
}

int ws_csv_column(const struct ws_csv *c, const char *const *names)
{
    for (; *names; names++)
        for (int i = 0; i < c->n_columns; i++)
            if (!strcmp(c->names[i], *names))
                return i;
    return -1;
}

double ws_csv_number(const struct ws_csv *c, int column, double min, double max,
                     struct ws_diags *diags)
{
    const char *s = c->cells[column];
    char *end;
    double v = strtod(s, &end);
    if (end == s || *end || isnan(v))
        ws_diags_add(diags, c->file, c->number, 0, "%s: \"%.40s\" is not a number",
                     c->names[column], s);
    else if (v < min || v > max)
        ws_diags_add(diags, c->file, c->number, 0, "%s: %g is out of range; expected %g to %g",
                     c->names[column], v, min, max);
    else
        return v;
    return NAN;
}

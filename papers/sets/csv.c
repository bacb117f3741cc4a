// SPDX-License-Identifier: Apache-2.0
/* Reads CSV a line at a time; cells point into the line. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/sets/csv.h"

/* Takes the quotes off the text that begins at @s, in place. Return: where the text after the
 * closing quote is; NULL: there is none. */
static char *unquote(char *s, char **ret_end)
{
    char *out = s;
    for (; *s && !(*s == '"' && s[1] != '"'); s++) {
        s += *s == '"';
        *out++ = *s;
    }
    *ret_end = out;
    return *s ? s + 1 : NULL;
}

static bool is_blank(const struct ws_csv *c, char letter)
{
    return letter == ' ' || (letter == '\t' && c->separator != '\t');
}

enum { UNCLOSED = -1 };
#define UNCLOSED_TEXT "a quote (\") is not closed in this line"
/* Cuts @text into cells, in place, and removes quotes and the blanks around cells. Return: how
 * many, the most there may be + 1, or UNCLOSED: a quote is. */
static int split(const struct ws_csv *c, char *text, char *cells[WS_CSV_COLUMNS_MAX])
{
    int n = 0;
    for (char *s = text;; s++) {
        if (n == WS_CSV_COLUMNS_MAX)
            return n + 1;
        while (is_blank(c, *s))
            s++;
        char *out = s, *quoted_end = NULL;
        cells[n++] = s;
        if (*s == '"') {
            cells[n - 1] = ++s;
            s = unquote(s, &out);
            if (!s)
                return UNCLOSED;
            quoted_end = out;
        }
        while (*s && *s != c->separator)
            *out++ = *s++;
        bool last = !*s;
        while (out > (quoted_end ? quoted_end : cells[n - 1]) && is_blank(c, out[-1]))
            out--;
        *out = 0;
        if (last)
            return n;
    }
}

/* What is between the names: a comma, or in a line without one a semicolon or a tab. */
static char separator_of(const char *head)
{
    static const char separators[] = ",;\t";
    for (const char *s = separators; *s; s++)
        if (strchr(head, *s))
            return *s;
    return ',';
}

static int read_line(struct ws_csv *c)
{
    for (;;) {
        ssize_t n = getline(&c->text, &c->cap, c->f);
        if (n < 0)
            return ferror(c->f) ? ws_raise(-EIO) : WS_CSV_END;
        c->number++;
        while (n && strchr("\r\n", c->text[n - 1]))
            c->text[--n] = 0;
        if (*c->text)
            return 0;
    }
}

/* What makes the text another kind than this reads; NULL: nothing. */
static const char *other_text(const char *text)
{
    if (!strncmp(text, "\xff\xfe", 2) || !strncmp(text, "\xfe\xff", 2))
        return "the text is UTF-16; expected UTF-8";
    return strchr(text, '\r') ? "lines end with CR alone; expected LF or CRLF" : NULL;
}

static bool are_names_good(const struct ws_csv *c, struct ws_diags *diags)
{
    int n = c->n_columns;
    bool good = n >= 0 && n <= WS_CSV_COLUMNS_MAX;
    if (n == UNCLOSED)
        ws_diags_add(diags, c->file, c->number, 0, UNCLOSED_TEXT);
    else if (!good)
        ws_diags_add(diags, c->file, c->number, 0, "more than %d columns", WS_CSV_COLUMNS_MAX);
    for (int i = 1; good && i < n; i++)
        for (int k = 0; good && k < i; k++)
            if (*c->names[i] && !strcmp(c->names[i], c->names[k])) {
                ws_diags_add(diags, c->file, c->number, 0, "two columns have the name %s",
                             c->names[i]);
                good = false;
            }
    return good;
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
    const char *other = other_text(c->text);
    if (other) {
        ws_diags_add(diags, file, 1, 0, "%s", other);
        return WS_CSV_E_ROW;
    }
    static const char bom[] = "\xef\xbb\xbf"; /* as spreadsheets write it */
    c->head = c->text;
    c->text = NULL;
    c->cap = 0;
    size_t skip = strncmp(c->head, bom, strlen(bom)) ? 0 : strlen(bom);
    c->separator = separator_of(c->head + skip);
    c->n_columns = split(c, c->head + skip, c->names);
    if (are_names_good(c, diags))
        return 0;
    c->n_columns = 0;
    return WS_CSV_E_ROW;
}

int ws_csv_next(struct ws_csv *c, struct ws_diags *diags)
{
    int r = read_line(c);
    if (r)
        return r;
    int n = split(c, c->text, c->cells);
    if (n == c->n_columns)
        return 0;
    if (n == UNCLOSED)
        ws_diags_add(diags, c->file, c->number, 0, UNCLOSED_TEXT);
    else
        ws_diags_add(diags, c->file, c->number, 0, "%d cells, but the first line names %d columns",
                     n, c->n_columns);
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
    static int (*const same[])(const char *, const char *) = {strcmp, strcasecmp};
    for (size_t way = 0; way < WS_ARRAY_SIZE(same); way++)
        for (const char *const *name = names; *name; name++)
            for (int i = 0; i < c->n_columns; i++)
                if (!same[way](c->names[i], *name))
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

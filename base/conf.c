// SPDX-License-Identifier: Apache-2.0
/* The file is read as libconfuse's lexer does: strings in either quotation marks, where \ takes the
 * next character along; comments from # or // to the end of the line and between slash-asterisk and
 * asterisk-slash; # and // within a bare word are part of it. */
#include "base/conf.h"

#include <ctype.h>
#include <string.h>

enum { DEEPEST = 64 };

struct conf_reader {
    FILE *f;
    uint32_t line;
    int next; /* looked at, not taken */
};

static int take(struct conf_reader *r)
{
    int c = r->next;
    r->line += c == '\n';
    r->next = c == EOF ? EOF : getc(r->f);
    return c;
}

/* Return: false: the file ended first. */
static bool skip_string(struct conf_reader *r, int quote)
{
    for (int c; (c = take(r)) != EOF;) {
        if (c == quote)
            return true;
        if (c == '\\')
            (void)take(r);
    }
    return false;
}

static bool skip_comment(struct conf_reader *r)
{
    for (int c, before = 0; (c = take(r)) != EOF; before = c)
        if (before == '*' && c == '/')
            return true;
    return false;
}

static void skip_line(struct conf_reader *r)
{
    while (r->next != '\n' && r->next != EOF)
        (void)take(r);
}

bool ws_conf_closed(FILE *f, const char *path, struct ws_diags *diags)
{
    struct conf_reader r = {f, 1, getc(f)};
    uint32_t opened[DEEPEST], n = 0, since;
    const char *open = NULL;
    bool in_word = false;
    while (!open && r.next != EOF) {
        since = r.line;
        int c = take(&r);
        if ((c == '"' || c == '\'') && !skip_string(&r, c))
            open = "the string that begins here does not end";
        else if (!in_word && c == '/' && r.next == '*') {
            (void)take(&r);
            if (!skip_comment(&r))
                open = "the comment that begins here does not end";
        } else if (!in_word && (c == '#' || (c == '/' && r.next == '/')))
            skip_line(&r);
        else if (c == '{' && n < DEEPEST)
            opened[n++] = since;
        else if (c == '}' && n)
            n--;
        in_word = !isspace(c) && !strchr("\"'={}()+,", c);
    }
    if (!open && n) {
        since = opened[n - 1];
        open = "the { of this line has no }";
    }
    if (open)
        ws_diags_add(diags, path, since, 0, "%s", open);
    rewind(f);
    return !open;
}

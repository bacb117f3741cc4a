// SPDX-License-Identifier: Apache-2.0
#include "base/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include "base/alloc.h"

void ws_diags_add(struct ws_diags *d, const char *file, uint32_t line, uint32_t col,
                  const char *fmt, ...)
{
    va_list ap;
    char *text = NULL;
    if (!d)
        return;
    if (d->n >= WS_DIAGS_MAX || ws_grow((void **)&d->v, &d->cap, d->n + 1, sizeof(*d->v))) {
        d->n_dropped++;
        return;
    }
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        text = NULL;
    va_end(ap);
    d->v[d->n++] = (struct ws_diag){file ? ws_strdup(file) : NULL, line, col, text};
}

char *ws_diags_text(const struct ws_diags *d)
{
    char *buf = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&buf, &size);
    if (!f)
        return NULL;
    for (size_t i = 0; i < d->n; i++) {
        const struct ws_diag *e = &d->v[i];
        if (e->file)
            fprintf(f, "%s:", e->file);
        if (e->line)
            fprintf(f, "%u:", e->line);
        if (e->line && e->col)
            fprintf(f, "%u:", e->col);
        fprintf(f, "%s%s\n", e->file || e->line ? " " : "", e->text ? e->text : "out of memory");
    }
    if (d->n_dropped)
        fprintf(f, "(%zu more)\n", d->n_dropped);
    fclose(f);
    return buf;
}

void ws_diags_deinit(struct ws_diags *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->v[i].file);
        free(d->v[i].text);
    }
    free(d->v);
    *d = WS_DIAGS_NULL;
}

// SPDX-License-Identifier: Apache-2.0
#include "backend/client/ledger.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct ws_ledger_row {
    char *name;
    uint64_t count;
};

static char *clean_name(const char *name)
{
    size_t n = strnlen(name, WS_LEDGER_NAME_MAX);
    char *copy = ws_alloc(n + 1);
    for (size_t i = 0; copy && i < n; i++)
        copy[i] = (char)(isprint((unsigned char)name[i]) ? name[i] : '?');
    return copy;
}

void ws_ledger_add(struct ws_ledger *l, size_t max_rows, const char *name, uint64_t count)
{
    char *clean = clean_name(name);
    for (size_t i = 0; clean && i < l->n; i++)
        if (!strcmp(l->rows[i].name, clean)) {
            l->rows[i].count += count;
            free(clean);
            return;
        }
    if (!clean || l->n >= max_rows ||
        ws_grow((void **)&l->rows, &l->cap, l->n + 1, sizeof(*l->rows))) {
        free(clean);
        l->n_others += count;
        return;
    }
    l->rows[l->n++] = (struct ws_ledger_row){clean, count};
}

uint64_t ws_ledger_total(const struct ws_ledger *l)
{
    uint64_t n = l->n_others;
    for (size_t i = 0; i < l->n; i++)
        n += l->rows[i].count;
    return n;
}

void ws_ledger_deinit(struct ws_ledger *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->rows[i].name);
    free(l->rows);
    *l = (struct ws_ledger){0};
}

void ws_ledger_message(const struct ws_ledger *l, struct ws_arena *a, Ws__NotSupported ***ret,
                       size_t *ret_n)
{
    size_t n = l->n + (l->n_others != 0);
    Ws__NotSupported **v = n ? ws_arena_array(a, n, sizeof(*v)) : NULL,
                     *all = v ? ws_arena_array(a, n, sizeof(*all)) : NULL;
    *ret = NULL;
    *ret_n = 0;
    if (!all)
        return;
    for (size_t i = 0; i < n; i++) {
        ws__not_supported__init(&all[i]);
        all[i].name = i < l->n ? l->rows[i].name : (char *)"others";
        all[i].count = i < l->n ? l->rows[i].count : l->n_others;
        v[i] = &all[i];
    }
    *ret = v;
    *ret_n = n;
}

// SPDX-License-Identifier: Apache-2.0
/* Collects what was found in a program, as a set of uses, and prints it. */
#include "config.h"

#include "cli/coverage/coverage.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const char *const kind_words[_WS_COVER_N] = {"entry point", "opcode", "image"};
static const char *const kind_plurals[_WS_COVER_N] = {"entry points", "opcodes", "images"};

static uint64_t hash(const struct ws_cover_item *i)
{
    uint64_t h = 0xcbf29ce484222325u + (uint64_t)i->kind * 2 + i->possible;
    for (const char *p = i->name; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    for (const char *p = i->place ? i->place : ""; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return h ^ h >> 29;
}

static bool same(const struct ws_cover_item *a, const struct ws_cover_item *b)
{
    return a->kind == b->kind && a->possible == b->possible && !strcmp(a->name, b->name) &&
           !strcmp(a->place ? a->place : "", b->place ? b->place : "");
}

static int grow_index(struct ws_cover *c)
{
    size_t size = c->index_size ? 2 * c->index_size : 256;
    uint32_t *index = ws_alloc_array(size, sizeof(*index));
    if (!index)
        return -1;
    for (size_t k = 0; k < c->n_items; k++) {
        size_t at = hash(&c->items[k]) & (size - 1);
        while (index[at])
            at = (at + 1) & (size - 1);
        index[at] = (uint32_t)k + 1;
    }
    free(c->index);
    c->index = index;
    c->index_size = size;
    return 0;
}

/* Where in the index @item is, or is to be put. */
static size_t place_of(const struct ws_cover *c, const struct ws_cover_item *item)
{
    size_t at = hash(item) & (c->index_size - 1);
    while (c->index[at] && !same(&c->items[c->index[at] - 1], item))
        at = (at + 1) & (c->index_size - 1);
    return at;
}

bool ws_cover_again(struct ws_cover *c, enum ws_cover_kind kind, const char *name)
{
    if (!c->index_size)
        return false;
    uint32_t number =
        c->index[place_of(c, &(struct ws_cover_item){.kind = kind, .name = (char *)name})];
    if (number)
        c->items[number - 1].n++;
    return number;
}

void ws_cover_add(struct ws_cover *c, const struct ws_cover_item *item)
{
    if (c->oom || ((c->n_items + 1) * 2 > c->index_size && grow_index(c))) {
        c->oom = true;
        return;
    }
    size_t at = place_of(c, item);
    if (c->index[at]) {
        c->items[c->index[at] - 1].n++;
        return;
    }
    struct ws_cover_item i = *item;
    i.name = ws_strdup(item->name);
    i.object = ws_strdup(item->object);
    i.place = item->place ? ws_strdup(item->place) : NULL;
    i.n = 1;
    if (!i.name || !i.object || (item->place && !i.place) ||
        ws_grow((void **)&c->items, &c->cap_items, c->n_items + 1, sizeof(*c->items))) {
        free(i.name);
        free(i.object);
        free(i.place);
        c->oom = true;
        return;
    }
    c->items[c->n_items++] = i;
    c->index[at] = (uint32_t)c->n_items;
}

void ws_cover_deinit(struct ws_cover *c)
{
    ws_cover_rewrites_deinit(c);
    ws_cover_ptxas_deinit(c);
    for (size_t k = 0; k < c->n_items; k++) {
        free(c->items[k].name);
        free(c->items[k].object);
        free(c->items[k].place);
    }
    free(c->items);
    free(c->index);
    *c = (struct ws_cover){0};
}

size_t ws_cover_count(const struct ws_cover *c, enum ws_cover_kind kind, enum ws_ledger_state s)
{
    size_t n = 0;
    for (size_t k = 0; k < c->n_items; k++)
        n += c->items[k].kind == kind && c->items[k].state == s;
    return n;
}

static int compare(const void *va, const void *vb)
{
    const struct ws_cover_item *a = va, *b = vb;
    if (a->state != b->state)
        return (int)b->state - (int)a->state;
    if (a->kind != b->kind)
        return (int)a->kind - (int)b->kind;
    int r = strcmp(a->name, b->name);
    return r ? r : strcmp(a->place ? a->place : "", b->place ? b->place : "");
}

void ws_cover_sort(struct ws_cover *c)
{
    if (c->n_items)
        qsort(c->items, c->n_items, sizeof(*c->items), compare);
    free(c->index); /* it counted places */
    c->index = NULL;
    c->index_size = 0;
}

/* Names come from files: they must not steer a terminal. */
static void put(const char *text, FILE *out)
{
    for (; *text; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

void ws_cover_print(const struct ws_cover *c, bool all, FILE *out)
{
    size_t missing = 0;
    put(c->program, out);
    fprintf(out, ": %u kernel%s in %u image%s\n", c->n_kernels, c->n_kernels == 1 ? "" : "s",
            c->n_images, c->n_images == 1 ? "" : "s");
    for (int k = 0; k < _WS_COVER_N; k++) {
        size_t n[_WS_LEDGER_N], sum = 0;
        for (int s = 0; s < _WS_LEDGER_N; s++)
            sum += n[s] = ws_cover_count(c, k, s);
        missing += n[WS_LEDGER_MISSING];
        if (sum)
            fprintf(out, "  %-12s %4zu done, %zu approximate, %zu missing\n", kind_plurals[k],
                    n[WS_LEDGER_DONE], n[WS_LEDGER_APPROXIMATE], n[WS_LEDGER_MISSING]);
    }
    for (size_t k = 0; k < c->n_items; k++) {
        const struct ws_cover_item *i = &c->items[k];
        if (i->state == WS_LEDGER_DONE && !all)
            continue;
        fprintf(out, "  %s %s ", ws_ledger_words[i->state], kind_words[i->kind]);
        put(i->name, out);
        if (i->group)
            fprintf(out, " (%s%s)", i->group,
                    i->possible ? "; possible: only its name is there" : "");
        if (i->place) {
            fputs(": ", out);
            put(i->place, out);
        }
        if (i->note)
            fprintf(out, ": %s", i->note);
        if (strcmp(i->object, c->program)) {
            fputs(", in ", out);
            put(i->object, out);
        }
        fputc('\n', out);
    }
    fprintf(out, missing ? "  %zu missing\n" : "  nothing is missing\n", missing);
    ws_cover_rewrites_print(c, out);
}

static void add_string(struct json_object *o, const char *key, const char *v)
{
    char *clean = ws_strdup(v);
    for (unsigned char *p = (unsigned char *)clean; p && *p; p++)
        if (*p < 0x20 || *p >= 0x7f)
            *p = '?';
    json_object_object_add(o, key, json_object_new_string(clean ? clean : ""));
    free(clean);
}

static struct json_object *item_json(const struct ws_cover_item *i)
{
    struct json_object *o = json_object_new_object();
    add_string(o, "kind", kind_words[i->kind]);
    add_string(o, "state", ws_ledger_words[i->state]);
    add_string(o, "name", i->name);
    json_object_object_add(o, "possible", json_object_new_boolean(i->possible));
    json_object_object_add(o, "n", json_object_new_int64(i->n));
    add_string(o, "object", i->object);
    if (i->group)
        add_string(o, "chapter", i->group);
    if (i->place)
        add_string(o, "place", i->place);
    if (i->note)
        add_string(o, "note", i->note);
    return o;
}

struct json_object *ws_cover_json(const struct ws_cover *c)
{
    struct json_object *o = json_object_new_object(), *items = json_object_new_array();
    add_string(o, "program", c->program);
    json_object_object_add(o, "kernels", json_object_new_int64(c->n_kernels));
    json_object_object_add(o, "images", json_object_new_int64(c->n_images));
    for (int s = 0; s < _WS_LEDGER_N; s++) {
        size_t n = 0;
        for (int k = 0; k < _WS_COVER_N; k++)
            n += ws_cover_count(c, k, s);
        json_object_object_add(o, ws_ledger_words[s], json_object_new_int64((int64_t)n));
    }
    for (size_t k = 0; k < c->n_items; k++)
        json_object_array_add(items, item_json(&c->items[k]));
    json_object_object_add(o, "items", items);
    if (c->want_rewrites)
        json_object_object_add(o, "rewrites", ws_cover_rewrites_json(c));
    if (c->want_ptxas)
        json_object_object_add(o, "ptxas", ws_cover_ptxas_json(c));
    return o;
}

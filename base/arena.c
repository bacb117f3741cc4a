// SPDX-License-Identifier: Apache-2.0
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/budget.h"

enum { CHUNK_MIN_BYTES = 16 * 1024 };

struct ws_arena_chunk {
    struct ws_arena_chunk *next;
    size_t cap;
    _Alignas(16) char data[];
};

void *ws_arena_alloc(struct ws_arena *a, size_t size)
{
    if (size > SIZE_MAX / 4)
        return NULL;
    size = WS_ALIGN_UP(size ? size : 1, 16);
    if (a->limit_bytes && a->total_bytes + size > a->limit_bytes)
        return NULL;
    if (!a->chunks || a->used + size > a->cap) {
        size_t cap =
            WS_MAX((size_t)CHUNK_MIN_BYTES, WS_MAX(size, WS_MIN(a->cap * 2, (size_t)1 << 20)));
        if (!ws_budget_charge(cap))
            return NULL;
        struct ws_arena_chunk *c = ws_alloc(sizeof(*c) + cap);
        if (!c) {
            ws_budget_give_back(cap);
            return NULL;
        }
        c->next = a->chunks;
        c->cap = cap;
        a->chunks = c;
        a->used = 0;
        a->cap = cap;
    }
    void *p = a->chunks->data + a->used;
    a->used += size;
    a->total_bytes += size;
    return p;
}

void *ws_arena_array(struct ws_arena *a, size_t n, size_t size)
{
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : ws_arena_alloc(a, bytes);
}

char *ws_arena_strndup(struct ws_arena *a, const char *s, size_t n)
{
    char *t = ws_arena_alloc(a, n + 1);
    if (t)
        memcpy(t, s, n);
    return t;
}

static void free_chunks(struct ws_arena_chunk *c)
{
    while (c) {
        struct ws_arena_chunk *next = c->next;
        ws_budget_give_back(c->cap);
        free(c);
        c = next;
    }
}

void ws_arena_reset(struct ws_arena *a)
{
    if (a->chunks) {
        free_chunks(a->chunks->next);
        a->chunks->next = NULL;
        memset(a->chunks->data, 0, a->used);
        (void)ws_budget_count(a->used / 64);
    }
    a->used = 0;
    a->total_bytes = 0;
}

void ws_arena_deinit(struct ws_arena *a)
{
    free_chunks(a->chunks);
    *a = WS_ARENA_NULL;
}

void ws_arena_take(struct ws_arena *a, struct ws_arena *from)
{
    struct ws_arena_chunk **last = &a->chunks;
    if (!a->chunks) { /* its newest chunk is ours to fill */
        a->used = from->used;
        a->cap = from->cap;
    }
    while (*last)
        last = &(*last)->next;
    *last = from->chunks;
    a->total_bytes += from->total_bytes;
    *from = WS_ARENA_NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* base/arena.h - many small allocations freed together (one arena per PTX module, per request).
 * What arenas hold counts in the thread's budget (base/budget.h). Threads: none. */
#ifndef WS_BASE_ARENA_H
#define WS_BASE_ARENA_H

#include "base/macros.h"

struct ws_arena_chunk;
struct ws_arena {
    struct ws_arena_chunk *chunks;
    size_t used, cap;   /* of the newest chunk, bytes */
    size_t total_bytes; /* handed out since init */
    size_t limit_bytes; /* 0: none; past it, ws_arena_alloc() returns NULL */
};
#define WS_ARENA_NULL ((struct ws_arena){0})

/* Zeroed memory, 16-byte aligned, or NULL. Lives until ws_arena_deinit(). */
WS_MUST_CHECK void *ws_arena_alloc(struct ws_arena *a, size_t size);
WS_MUST_CHECK void *ws_arena_array(struct ws_arena *a, size_t n, size_t size);
/* Copies n bytes and adds a NUL. */
WS_MUST_CHECK char *ws_arena_strndup(struct ws_arena *a, const char *s, size_t n);
/* Forgets all, keeps the newest chunk for reuse. */
void ws_arena_reset(struct ws_arena *a);
void ws_arena_deinit(struct ws_arena *a);
/* What @from has handed out belongs to @a from now on; @from is empty. */
void ws_arena_take(struct ws_arena *a, struct ws_arena *from);

#endif

// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/fused_arena.h - host memory that merged launches see besides the clients'
 * own: where each client's memory is, places for faults, and constants of templates. There is
 * one mapping for all launches, at addresses that no client is given, in a space of the daemon's
 * own. Real GPUs reach it as well, since it is mapped once for all. Threads: the loop's. */
#ifndef WS_BACKEND_SCHEDULING_FUSED_ARENA_H
#define WS_BACKEND_SCHEDULING_FUSED_ARENA_H

#include "backend/backend.h"

struct ws_fused_arena;
/* The space that it is mapped in; of all instances of merged kernels. Made when first asked for.
 * NULL: it can't be had, which is logged. */
struct ws_space *ws_fused_arena_space(struct ws_server *s);
/* Zeroed memory in it. @ret: here; *ret_va: for kernels. Return: 0 or -ENOMEM (it is full). */
WS_MUST_CHECK int ws_fused_arena_take(struct ws_server *s, uint64_t bytes, uint8_t **ret,
                                      uint64_t *ret_va);
void ws_fused_arena_give(struct ws_server *s, uint8_t *p, uint64_t bytes); /* NULL ok */
/* Nothing is in flight. */
void ws_fused_arena_free(struct ws_server *s);

#endif

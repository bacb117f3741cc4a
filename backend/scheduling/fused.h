// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/fused.h - merged launches: one launch that runs several clients' kernels
 * (templates/template.h).
 *
 * Each client is told what it would have been told had its kernel run alone: its own error, text
 * and number of instructions, and its share of the launch's energy. The shares sum to the
 * launch's energy exactly. Begin and end are those of the launch. A client whose kernel reaches
 * outside of its memory, faults, or exceeds a limit, fails alone, and so does one that is
 * dropped: the others' kernels run to their end, and its memory stays until then. On a device
 * that can't tell the parts apart (ws_launch_parts), a fault concerns all members, as in CUDA
 * for contexts that share a GPU. Threads: the loop's. */
#ifndef WS_BACKEND_SCHEDULING_FUSED_H
#define WS_BACKEND_SCHEDULING_FUSED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/sm_set.h"

struct ws_gpu;
struct ws_command;
struct ws_server;

enum { WS_FUSED_E_REFUSED = 1 };
struct ws_fused;
struct ws_fused_arena;
struct ws_fused_cache;
/**
 * ws_fused_start() - launch them together
 * @sms: where it may run; NULL or n == 0: everywhere
 * @members: [@n] launches at the heads of their streams, which the dispatcher has held, all of
 *   @gpu; one client may have several there. If 0 is returned, they have left their streams and
 *   come back by ws_fused_ended(); otherwise nothing has happened to them
 * @n: 1…WS_FUSE_MAX
 * @ret_why: on WS_FUSED_E_REFUSED, why they can't go together
 *
 * Return: 0; WS_FUSED_E_REFUSED: start them one by one; -EAGAIN: a loader thread is making their
 * template; -ENOMEM.
 */
int ws_fused_start(struct ws_server *s, struct ws_gpu *gpu, const struct ws_sm_set *sms,
                   struct ws_command *const *members, uint32_t n, char *ret_why, size_t why_bytes);
/* The device is done with @f, which is freed. @ret: [WS_FUSE_MAX], the members, whose operations
 * say how they ended.
 * Return: how many. */
uint32_t ws_fused_ended(struct ws_fused *f, struct ws_command **ret);

struct ws_op *ws_fused_op(struct ws_fused *f); /* the operation that the device has */

/* The templates that were made. */
int ws_fused_cache_new(struct ws_server *s);   /* 0, -ENOMEM */
void ws_fused_cache_free(struct ws_server *s); /* before the loader's images; nothing is running */

struct ws_fused_counts {
    uint64_t n_launches, n_members, n_refused, n_waited; /* n_waited: -EAGAIN */
    uint32_t n_templates, n_refusals;                    /* kept now */
    uint64_t make_ns;                                    /* host time, of all templates made */
};
void ws_fused_counts(const struct ws_server *s, struct ws_fused_counts *ret);

struct ws_server_fused {
    struct ws_fused_cache *cache;
    struct ws_fused_arena *arena; /* NULL: nothing was merged yet */
    struct ws_fused_counts counts;
    uint32_t n_running; /* merged launches that a device has */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/sender.h - who sends messages: a client, or all those together who are no clients
 * (yet). What of his is not handled yet waits here, and how much of the loop's time he has used of
 * late says who is served first (process/messages.h). Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_SENDER_H
#define WS_BACKEND_CLIENT_SENDER_H

#include <stdbool.h>
#include "base/list.h"

struct ws_client;

/* Time of the loop that was used. It halves with each period of 2^WS_LOOP_USE_SHIFT ns (67 ms)
 * that passes, so that what was used long ago does not count. */
enum { WS_LOOP_USE_SHIFT = 26 };
struct ws_loop_use {
    uint64_t ns;     /* at the period's beginning, and what was used in it */
    uint64_t period; /* of the clock */
};
static inline uint64_t ws_loop_use_now(const struct ws_loop_use *u, uint64_t now_ns)
{
    uint64_t passed = (now_ns >> WS_LOOP_USE_SHIFT) - u->period;
    return passed < 64 ? u->ns >> passed : 0;
}
static inline void ws_loop_use_add(struct ws_loop_use *u, uint64_t now_ns, uint64_t ns)
{
    u->ns = ws_loop_use_now(u, now_ns) + ns;
    u->period = now_ns >> WS_LOOP_USE_SHIFT;
}

struct ws_sender {
    struct ws_client *client; /* NULL: those who are no clients */
    struct ws_list waiting;   /* in server->messages.waiting while something is not handled */
    struct ws_list held;      /* messages that are not handled to the end; oldest first */
    struct ws_loop_use use;
    uint64_t turn, turn_ns; /* what was used in turn number @turn, for messages as they came */
};
static inline void ws_sender_init(struct ws_sender *v, struct ws_client *c)
{
    *v = (struct ws_sender){.client = c};
    ws_list_init(&v->waiting);
    ws_list_init(&v->held);
}
static inline bool ws_sender_waits(const struct ws_sender *v)
{
    return !ws_list_empty(&v->waiting);
}

#define WS_SLICE_UNLIMITED (UINT64_MAX / 4) /* every message is handled at once */
struct ws_server_messages {
    struct ws_list waiting;     /* senders of whose messages something is not handled */
    struct ws_sender strangers; /* who are no clients */
    uint64_t slice_ns;          /* what one sender may use at a time */
    uint64_t now_ns;            /* when the last piece of work ended; 0: not known */
    uint64_t turn, turn_ns;     /* what all have used in this turn, for messages as they came */
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/sender.h - who sends messages: a client, or all those together who are no clients
 * (yet). What of his is not handled yet waits here, and how much of the loop's time he has used of
 * late says who is served first (process/messages.h). Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_SENDER_H
#define WS_BACKEND_CLIENT_SENDER_H

#include <stdbool.h>
#include "backend/accounts/recent.h"
#include "base/list.h"

struct ws_client;

struct ws_sender {
    struct ws_client *client; /* NULL: those who are no clients */
    struct ws_list waiting;   /* in server->messages.waiting while something is not handled */
    struct ws_list held;      /* messages that are not handled to the end; oldest first */
    struct ws_recent use;
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

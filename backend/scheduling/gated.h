/* SPDX-License-Identifier: Apache-2.0 */
/* backend/scheduling/gated.h - clients with a driver of their own: their jobs, which run
 * elsewhere. Threads: the loop. */
#ifndef WS_BACKEND_SCHEDULING_GATED_H
#define WS_BACKEND_SCHEDULING_GATED_H

#include <stdbool.h>
#include "protocol/protocol.h"

struct ws_client;
struct ws_context;
struct ws_server;

struct ws_server_gated {
    uint32_t n, n_leases; /* gated clients; their jobs with a lease that runs */
    bool told;            /* what they know of the policy: there is one */
};

Ws__Error ws_gated_begin(struct ws_client *c, const Ws__GateBegin *m);
Ws__Error ws_gated_end(struct ws_client *c, const Ws__GateEnd *m);
/* The dispatcher has started the job of @x: the client is told that it may go. */
void ws_gated_go(struct ws_context *x);
void ws_gated_forget(struct ws_client *c); /* it is being dropped */
/* Tells of policies that come or go, and ends leases. Return: ms until the next lease ends; -1:
 * none runs. */
int ws_gated_turn(struct ws_server *s);
Ws__ClientStatus__Gate ws_gated_state(const struct ws_client *c);

#endif

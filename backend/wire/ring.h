/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/ring.h - the daemon's ends of the clients' rings (protocol/ring.h), for small
 * messages of local clients. Threads: the loop. */
#ifndef WS_BACKEND_WIRE_RING_H
#define WS_BACKEND_WIRE_RING_H

#include "backend/client/client.h"

struct ws_client_ring;

Ws__Error ws_client_ring_new(struct ws_client *c, int *ret_fd);
Ws__Error ws_client_ring_doorbell(struct ws_client *c, int *ret_fd); /* from here on it is open */
void ws_client_ring_close(struct ws_client *c);
void ws_client_ring_free(struct ws_client *c);
/* Return: false: send it through ZeroMQ, and then say so with passed_by(). */
bool ws_client_ring_send(struct ws_client *c, const void *data, size_t n);
void ws_client_ring_passed_by(struct ws_client *c);

/* The next message that is due, in server->handoff.ring_message. Ends the client if it can't be
 * read.
 * Return: bytes; 0: none is due. */
size_t ws_client_ring_next(struct ws_client *c);
/* A message that came through ZeroMQ was handled: those behind it in the ring are due. */
void ws_client_ring_other_came(struct ws_client *c);
/* The doorbell rang. */
void ws_client_ring_signalled(struct ws_client_ring *l);
/* The next client whose doorbell rang; NULL: none. *ret_there: its end of the doorbell is still
 * open; if not, this one is not listened to any more. */
struct ws_client *ws_server_next_rung(struct ws_server *s, bool *ret_there);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/out.h - what leaves the daemon: the clients' replies and notices, and answers to
 * peers that are no clients. Threads: the loop. */
#ifndef WS_BACKEND_WIRE_OUT_H
#define WS_BACKEND_WIRE_OUT_H

#include "backend/client/client.h"

/* Sends what is for clients for which much has come together. Between pieces of work: what waits
 * for one client stays small. Return: there was any. */
bool ws_server_flush_full(struct ws_server *s);
void ws_server_flush(struct ws_server *s); /* all clients that something is to be told */
/* Sends one message. Return: 0, -ENOMEM, or as ws_transport.send. */
int ws_server_send(struct ws_server *s, const struct ws_peer *to, const Ws__ServerMessage *m);

#endif

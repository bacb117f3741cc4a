/* SPDX-License-Identifier: Apache-2.0 */
/* backend/process/clients.h - clients come and go. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_CLIENTS_H
#define WS_BACKEND_PROCESS_CLIENTS_H

#include "backend/client/client.h"

void ws_client_hello(struct ws_server *s, const struct ws_message *msg, const Ws__Hello *h);
/* Takes the clients that were dropped (ws_client_drop()) out of every part: of each, what is
 * queued is freed, what runs is cancelled, its peer is told. Then starts what may start, and so
 * on until nothing of either is left. */
void ws_clients_settle(struct ws_server *s);
/* Frees those that no device works for any more, for @ns or a little longer. Return: whether there
 * is more to free. */
bool ws_clients_reap(struct ws_server *s, uint64_t ns);
/* A message of a peer that is no client: it is told so once, and leaves no other trace. */
void ws_peer_refuse(struct ws_server *s, const struct ws_peer *peer, const char *text);

#endif

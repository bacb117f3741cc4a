// SPDX-License-Identifier: Apache-2.0
/* backend/process/server.h - the daemon without its sockets: messages go in, messages come out
 * through a table of functions. The door (wire/door.h) feeds it; tests and the fuzz target feed it
 * directly.
 *
 * One turn: ws_server_handle() for each message at hand, then ws_server_turn(). Threads: one,
 * the loop's; devices hand over finished work themselves. */
#ifndef WS_BACKEND_PROCESS_SERVER_H
#define WS_BACKEND_PROCESS_SERVER_H

#include <stdbool.h>
#include "backend/client/transport.h"
#include "backend/process/config.h"

struct ws_accounts;
struct ws_closer;
struct ws_server;

/* @devices: borrowed, open until ws_server_free(); @config: borrowed. Return: 0, -ENOMEM,
 *   -EMFILE and the like. */
WS_MUST_CHECK int ws_server_new(struct ws_server **ret, const struct ws_config *config,
                                struct ws_device **devices, uint32_t n_devices,
                                const struct ws_transport *transport);
/* Cancels and forgets all clients, waiting until the devices have let go of their work. NULL ok. */
struct ws_server *ws_server_free(struct ws_server *s);

struct ws_accounts *ws_server_accounts(struct ws_server *s);
/* @c: what its clients send is closed there; borrowed. Before the handoff socket. */
void ws_server_use_closer(struct ws_server *s, struct ws_closer *c);
/* Whether a client speaks from there. */
bool ws_server_knows(struct ws_server *s, const struct ws_peer *peer);
/* Handles a message, but for a slice of time at most (process/messages.h). What is left is
 * continued in later turns; of what must be kept until then, references are taken. */
void ws_server_handle(struct ws_server *s, const struct ws_message *m);
/* Whether to read what @peer sends. If not, something that it has sent is not handled yet, or it
 * has had its time for now: to be asked again in the next turn. What is handed over nevertheless
 * is held. Who is no client may be NULL: they are all alike. */
bool ws_server_wants(struct ws_server *s, const struct ws_peer *peer);
/* Takes finished work, lets streams go on, sends what is to be sent, frees what is dead. Return:
 * ms after which to turn again even if nothing happens, or -1. */
int ws_server_turn(struct ws_server *s);
/* Readable when a device has finished work. */
int ws_server_wake_fd(const struct ws_server *s);
/* Readable when a step of a batch scheduler has ended; -1: there was none yet. */
int ws_server_steps_fd(const struct ws_server *s);
void ws_server_steps_turn(struct ws_server *s);
/* The connection is gone and all its messages were handled: the client that spoke there, if one
 * did, is dropped once what lies in its ring is handled. Return: one did. */
bool ws_server_disconnected(struct ws_server *s, const struct ws_peer *peer);

/* Serves the handoff socket (wire/handoff.h) and the rings of clients whose doorbell rang. */
void ws_server_handoff_turn(struct ws_server *s);

/* The configuration names another policy, or other options. */
void ws_server_policy_changed(struct ws_server *s);
void ws_server_drain(struct ws_server *s);      /* no new clients */
bool ws_server_idle(const struct ws_server *s); /* no command under way and nothing to send */
uint32_t ws_server_n_clients(const struct ws_server *s);
bool ws_server_had_client(const struct ws_server *s);
/* Tells every client that the daemon goes down. */
void ws_server_say_goodbye(struct ws_server *s);

#endif

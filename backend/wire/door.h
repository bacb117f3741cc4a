/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/door.h - where clients' connections come in: the listeners, the connections that
 * were accepted there, and whose account each is on. Threads: the loop.
 *
 * A connection is charged to its user before a byte of it is read (over tcp to its address, until
 * its key says whose it is), and so are the bytes of it that wait in the daemon. The daemon speaks
 * ZeroMQ's wire protocol itself (wire/zmtp.h). */
#ifndef WS_BACKEND_WIRE_DOOR_H
#define WS_BACKEND_WIRE_DOOR_H

#include "backend/accounts/account.h"
#include "backend/client/transport.h"
#include "backend/config/access.h"

struct ws_door;
struct ws_door_ops {
    void *arg;
    void (*message)(void *arg, const struct ws_message *m);
    /* Whether a client speaks there, that is, whether it has said hello. */
    bool (*known)(void *arg, const struct ws_peer *p);
    /* Whether its next message may be handed over. @p: NULL: one of whoever is no client, who are
     * all alike. */
    bool (*wants)(void *arg, const struct ws_peer *p);
    /* The connection is gone, and all its messages have been handed over. */
    void (*ended)(void *arg, const struct ws_peer *p);
};
struct ws_door_options {
    struct ws_door_ops ops;
    struct ws_accounts *accounts;   /* borrowed */
    struct ws_closer *closer;       /* borrowed; NULL: nothing that comes is closed by threads */
    const struct ws_access *access; /* borrowed; asked at each connection over tcp */
    const char *curve_secret;       /* "": nothing comes over tcp */
    size_t max_message_bytes;
    uint32_t heartbeat_s; /* how often a connection over tcp is asked whether it is there */
};

/* Return: 0 or negative errno. */
WS_MUST_CHECK int ws_door_new(struct ws_door **ret, const struct ws_door_options *o);
/* Tells connections what waits for them, for at most half a second, and closes all. NULL ok;
 * returns NULL. */
struct ws_door *ws_door_free(struct ws_door *d);
/* Takes connections from a listening stream socket, non-blocking; @fd is taken. @local: it is a
 * Unix socket. */
WS_MUST_CHECK int ws_door_listen(struct ws_door *d, int fd, bool local);

/* Readable when ws_door_turn() has work. */
int ws_door_fd(const struct ws_door *d);
/* Accepts, and reads and hands over messages, each connection's in turn and as much as a turn may
 * take. */
void ws_door_turn(struct ws_door *d);
/* ms after which a turn is due even if nothing comes, or -1. */
int ws_door_timeout_ms(const struct ws_door *d);
uint32_t ws_door_n_connections(const struct ws_door *d);

/* The functions of struct ws_transport. */
int ws_door_send(struct ws_door *d, const struct ws_peer *to, const void *data, size_t n);
void ws_door_info(struct ws_door *d, const struct ws_message *m, struct ws_peer_info *ret);
bool ws_door_hung_up(struct ws_door *d, const struct ws_peer *p);

#endif

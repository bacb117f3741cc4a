/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/handoff.h - the handoff socket, through which descriptors are passed. Threads:
 * the loop. */
#ifndef WS_BACKEND_WIRE_HANDOFF_H
#define WS_BACKEND_WIRE_HANDOFF_H

#include "backend/client/client.h"
#include "backend/client/object.h"
#include "backend/wire/accept.h"
#include "protocol/ring.h"

struct ws_client_ring;
struct ws_handoff_conn;

struct ws_client_wire {
    uint8_t token[WS_TOKEN_BYTES]; /* proves to the handoff socket who it is */
    struct ws_handoff_conn *handoff;
    bool had_handoff;
    struct ws_client_ring *ring; /* NULL: it has not asked for one */
    uint64_t next_seq;           /* of its next command */
    bool seq_known;
};
struct ws_server_handoff {
    struct ws_list conns, unbound; /* of clients; of those that have not named one yet */
    struct ws_accept accept;
    int epoll_fd; /* what the loop polls; -1: there is no handoff socket */
    int conns_fd; /* in it: of all connections */
    enum ws_handoff_source conns_source;
    bool passed; /* the listener is the service manager's: its file is not ours to remove */
    char path[108];
    struct ws_list rung; /* rings that were signalled */
    uint8_t ring_message[WS_RING_MESSAGE_BYTES];
};

/* Listens at @path with @mode; ws_server_handoff_fd() is readable when ws_server_handoff_turn()
 * (process/server.h) has work. */
WS_MUST_CHECK int ws_server_handoff_listen(struct ws_server *s, const char *path, uint32_t mode);
/* The same on a listener that was passed, whose file is left alone; @fd is taken. */
WS_MUST_CHECK int ws_server_handoff_adopt(struct ws_server *s, const char *path, int fd);
int ws_server_handoff_fd(const struct ws_server *s);
/* ms after which a turn is due even if it is not readable, or -1. */
int ws_server_handoff_timeout_ms(const struct ws_server *s);

void ws_handoff_close(struct ws_server *s, struct ws_handoff_conn *k);
void ws_handoff_end(struct ws_server *s);
/* Serves what is due on the connections; rings that were signalled are only noted (wire/ring.h). */
void ws_handoff_turn(struct ws_server *s);

#endif

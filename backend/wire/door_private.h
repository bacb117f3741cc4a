/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/door_private.h - what a door and its connections know of each other. */
#ifndef WS_BACKEND_WIRE_DOOR_PRIVATE_H
#define WS_BACKEND_WIRE_DOOR_PRIVATE_H

#include "backend/wire/accept.h"
#include "backend/wire/curve.h"
#include "backend/wire/door.h"
#include "base/list.h"

struct ws_connection;

enum { WS_DOOR_LISTENERS_MAX = 16, WS_DOOR_READ_BYTES = 64 << 10 };
enum ws_door_source { WS_DOOR_LISTENER, WS_DOOR_CONNECTION };

struct ws_door_listener {
    enum ws_door_source source; /* first: what an event points at */
    struct ws_accept accept;
};
struct ws_door {
    struct ws_door_options options;
    struct ws_curve_server keys;
    int epoll_fd;
    struct ws_door_listener listeners[WS_DOOR_LISTENERS_MAX];
    unsigned n_listeners;
    struct ws_list all;            /* oldest first */
    struct ws_list ready;          /* of clients */
    struct ws_list ready_new;      /* of those that have not said hello: ws_door_guests */
    struct ws_door_guests *guests; /* by account */
    uint64_t turn;                 /* how many there were */
    struct ws_connection *by_peer, *last;
    uint64_t last_id;
    uint32_t n;
    uint64_t look_ns;                  /* when they are looked through next; 0: never */
    uint8_t bytes[WS_DOOR_READ_BYTES]; /* what was read last, of any connection */
};

/* Whether a client speaks there. */
bool ws_door_known(const struct ws_connection *k);
/* Puts a connection over tcp on the account of the user whose key that is. Return: false: it is
 * nobody's, or the user may have no more connections. */
bool ws_door_admit(struct ws_connection *k, const uint8_t key[WS_CURVE_KEY_BYTES]);
/* From now on ws_connection_flush() is called when there is room again, or not any more. */
void ws_door_await_writable(struct ws_connection *k, bool await);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/connection.h - one connection by which messages come: its descriptor, its protocol
 * (wire/zmtp.h), and what of it waits in the daemon, which is on the account of a user or an
 * address. For wire/door.c, which has them all. Threads: the loop. */
#ifndef WS_BACKEND_WIRE_CONNECTION_H
#define WS_BACKEND_WIRE_CONNECTION_H

#include "backend/accounts/account.h"
#include "backend/wire/door_private.h"
#include "backend/wire/zmtp.h"
#include "base/list.h"
#include "base/table.h"

struct ws_connection {
    enum ws_door_source source; /* first: what an event points at */
    struct ws_door *door;
    struct ws_peer peer;
    int fd;
    bool local, has_uid;
    uint32_t uid, pid; /* pid 0: unknown */
    struct ws_account *account;
    struct ws_door_guests *guests; /* door: of the account */
    uint64_t turn;                 /* door: in which it was served last as a stranger */
    char address[64];              /* over tcp: for the log */
    uint64_t since_ns;             /* when it came */
    uint64_t heard_ns;             /* when bytes came last */
    uint64_t asked_ns;             /* when it was asked last whether it is there */
    uint64_t no_room_ns; /* since when its account has no room for what it sends; 0: it has */
    size_t no_room_bytes;
    uint64_t end_ns; /* it is closed then, if what it is still told is not sent before; 0: no */
    bool hung_up;    /* the other end is closed; bytes may be left */
    bool readable;   /* bytes may have come */
    bool more;       /* of what has come something is not handled yet */
    bool awaits_writable; /* the door hears when the other end has fetched something */
    bool broken;          /* nothing can be sent any more */
    struct ws_zmtp zmtp;
    struct ws_curve curve; /* over tcp */
    uint8_t *left;         /* bytes that came and were not taken yet; charged */
    size_t n_left, at_left;
    uint8_t *queue; /* bytes that did not fit the socket; charged */
    size_t n_queue, at_queue;
    struct ws_list node;  /* door: all, oldest first */
    struct ws_list ready; /* door or guests: those that have something to be read */
    UT_hash_handle hh;    /* by peer */
};

enum ws_connection_result {
    WS_CONNECTION_EMPTY, /* nothing is left to be read */
    WS_CONNECTION_MORE,  /* something is left, for another turn */
    WS_CONNECTION_SHUT,  /* it is to be closed, because of what came */
    WS_CONNECTION_END    /* the other end has closed it */
};

/* Reads and handles what there is, up to a bound. */
enum ws_connection_result ws_connection_serve(struct ws_connection *k);
/* Gives up what came and is not handled. What comes from now on is thrown away. */
void ws_connection_stop_reading(struct ws_connection *k);
/* Sends what waits, as far as it goes. Return: nothing is left. */
bool ws_connection_flush(struct ws_connection *k);
/* As ws_transport.send. */
WS_MUST_CHECK int ws_connection_send(struct ws_connection *k, const void *data, size_t n);

/* @fd: taken, also on an error; @account: a reference that is taken, and that the connection was
 * charged to. Return: NULL: no memory. */
struct ws_connection *ws_connection_new(struct ws_door *d, int fd, struct ws_account *account,
                                        bool local);
void ws_connection_free(struct ws_connection *k);

#endif

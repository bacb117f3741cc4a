/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/accept.h - taking connections from a listener, each on the account of the user who
 * connects (over tcp, of his address) from the start. Whoever takes them says who can leave room
 * when there is none. Threads: the loop. */
#ifndef WS_BACKEND_WIRE_ACCEPT_H
#define WS_BACKEND_WIRE_ACCEPT_H

#include <sys/socket.h>
#include "backend/accounts/account.h"
#include "backend/wire/closer.h"

struct ws_newly_accepted {
    int fd;                     /* non-blocking and close-on-exec; taken by enter() */
    struct ws_account *account; /* a reference, charged with the connection; taken by enter() */
    struct ucred cred;          /* of a Unix socket; pid 0: unknown */
    struct sockaddr_storage from;
    socklen_t n_from;
};
struct ws_accept_ops {
    void *arg;
    struct ws_accounts *accounts;
    struct ws_closer *closer; /* NULL: what is refused is closed at once */
    void (*enter)(void *arg, const struct ws_newly_accepted *n);
    /* Closes a connection that has not said hello: the oldest of @a, or (NULL) of whoever has the
     * most connections. Return: false: there is none. */
    bool (*make_room)(void *arg, const struct ws_account *a);
};
struct ws_accept {
    struct ws_accept_ops ops;
    int fd;
    bool local;        /* a Unix socket */
    bool more;         /* connections may wait there: set by the owner, whose epoll tells of them */
    int reserve_fd;    /* given up to close a connection when no descriptor is left; -1: none */
    uint64_t again_ns; /* not before; 0: at once */
};

/* @fd: a listener, non-blocking, taken. */
void ws_accept_init(struct ws_accept *l, int fd, bool local, const struct ws_accept_ops *ops);
void ws_accept_deinit(struct ws_accept *l); /* closes it */
/* Accepts some of what waits. */
void ws_accept_turn(struct ws_accept *l);
/* ms after which a turn is due though nobody tells, or -1. */
int ws_accept_timeout_ms(const struct ws_accept *l);

/* Charges @a with a connection; if it may have no more, one of it leaves room. @a: NULL, or a
 * reference that is taken on success and given back otherwise. Return: charged. */
WS_MUST_CHECK bool ws_accept_charge(const struct ws_accept_ops *ops, struct ws_account *a);
/* For make_room(@a), which looks at connections that may go, the oldest first: whether one of @has
 * is to go rather than those before it. *most: 0 before the first. */
bool ws_accept_lets_go(const struct ws_account *a, const struct ws_account *has, uint64_t *most);
/* Whether something may be logged of connections, which anybody can provoke: once a second. */
bool ws_accept_may_say(void);
void ws_accept_say_refused(const struct ws_account *a, enum ws_resource r, uint64_t n);

#endif

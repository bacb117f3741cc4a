/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/closer.h - closes what strangers have sent. The close() of a descriptor can wait for
 * as long as its sender pleases: a file of a file system that the sender serves (FUSE), a socket
 * with SO_LINGER, or a socket in whose queue one of these lies. So threads close them, one for each
 * user who has sent such things, and what is not closed yet stays charged to that user. What honest
 * clients send is closed at once, without a thread. Threads: the loop. */
#ifndef WS_BACKEND_WIRE_CLOSER_H
#define WS_BACKEND_WIRE_CLOSER_H

#include "backend/accounts/account.h"
#include "base/packet.h"

struct ws_closer;

/* @wake_fd: an eventfd, written when something has been closed. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_closer_new(struct ws_closer **ret, int wake_fd);
/* Waits a little for what is still being closed; the rest is left to the end of the process. NULL
 * ok; returns NULL. */
struct ws_closer *ws_closer_free(struct ws_closer *c);
/* Releases what has been closed since. */
void ws_closer_turn(struct ws_closer *c);

/* In the functions below, with @c NULL everything is closed at once. @a: borrowed. */
/* Whether descriptors of one more packet of this user may be taken. */
bool ws_closer_has_room(const struct ws_closer *c, const struct ws_account *a);
/* Closes descriptors that came from a client of @a. */
void ws_closer_drop(struct ws_closer *c, const struct ws_packet_fds *fds, struct ws_account *a);
/* Closes a local socket, in which something may lie unread. It is charged to @a as one of @r, which
 * is released when it is closed. */
void ws_closer_end(struct ws_closer *c, int fd, struct ws_account *a, enum ws_resource r);

#endif

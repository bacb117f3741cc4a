// SPDX-License-Identifier: Apache-2.0
/* base/packet.h - packets with descriptors between processes of one machine (SOCK_SEQPACKET), and
 * memory that they share.
 * Threads: any. Errors: negative errno. */
#ifndef WS_BASE_PACKET_H
#define WS_BASE_PACKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "base/macros.h"

/* Sends one packet with at most one descriptor (@pass_fd: borrowed, -1: none). @flags: as for
 * sendmsg(), MSG_NOSIGNAL is added. */
WS_MUST_CHECK int ws_packet_send(int fd, const void *packet, size_t n, int pass_fd, int flags);
/* Receives one packet. @ret_fd: the first descriptor that came with it (the caller closes it), or
 * -1; further descriptors are closed, and with @ret_fd == NULL the first one is too. @flags: as for
 * recvmsg(), MSG_CMSG_CLOEXEC is added.
 * Return: bytes of the packet, 0 at the end of the connection, -EMSGSIZE (packet longer than @n),
 * or negative errno. */
WS_MUST_CHECK ssize_t ws_packet_recv(int fd, void *packet, size_t n, int *ret_fd, int flags);

/* What strangers send may be a socket whose last close() waits for as long as they please
 * (SO_LINGER). These functions close without waiting for that, so a loop can use them. */
void ws_packet_drop_fd(int fd); /* closes a descriptor that was received */
/* Whether others may send descriptors to @fd, a local socket, or to what it accepts. All sockets
 * let them; kernels before Linux 6.16 know nothing else. */
void ws_packet_let_fds_in(int fd, bool on);
/* recv() for a local socket that has been told to let no descriptors in. If any come nevertheless,
 * they are closed. */
ssize_t ws_packet_recv_bytes(int fd, void *p, size_t n, int flags);
/* Takes what lies unread in @fd, a local socket that is to be closed, and closes the descriptors in
 * it. */
void ws_packet_discard(int fd);

/* Shared memory of exactly @bytes, zeroed, sealed against shrinking and growing.
 * Return: descriptor. */
WS_MUST_CHECK int ws_packet_memfd(const char *name, uint64_t bytes);
/* For the end that receives one: true if it is at least @bytes long and can't shrink. */
bool ws_packet_memfd_ok(int fd, uint64_t bytes);

/* Futexes in shared memory. ws_futex_wait() returns on a wake, on a changed word, on a signal or
 * after @timeout_ns (0: no limit). */
void ws_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void ws_futex_wake_all(_Atomic uint32_t *word);

#endif

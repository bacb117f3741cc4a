// SPDX-License-Identifier: Apache-2.0
/* protocol/side.h - the side socket and the shared segments it passes: what both ends need. Sockets are SOCK_SEQPACKET, paths
 * are file names. Threads: any. Errors: negative errno. */
#ifndef WS_PROTOCOL_SIDE_H
#define WS_PROTOCOL_SIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include "base/macros.h"

/* The side socket's path for an ipc:// endpoint: its path with ".side" behind. Return: 0; -EINVAL (no ipc:// endpoint of a
 * file), -ENAMETOOLONG (more than a Unix socket address or @size holds). */
WS_MUST_CHECK int ws_side_path(const char *endpoint, char *buf, size_t size);

/* A new, non-blocking, close-on-exec listener at @path with file mode @mode; replaces a file that is there. Return: descriptor. */
WS_MUST_CHECK int ws_side_listen(const char *path, mode_t mode);
/* Return: a blocking, close-on-exec descriptor. */
WS_MUST_CHECK int ws_side_connect(const char *path);

/* One packet with at most one descriptor (@pass_fd: borrowed, -1: none). @flags: as for sendmsg(), MSG_NOSIGNAL is added. */
WS_MUST_CHECK int ws_side_send(int fd, const void *packet, size_t n, int pass_fd, int flags);
/* @ret_fd: the descriptor that came with it (caller closes), or -1; NULL: any is closed.
 * Return: bytes of the packet, 0 at the end of the connection, -EMSGSIZE (packet longer than @n), or negative errno. */
WS_MUST_CHECK ssize_t ws_side_recv(int fd, void *packet, size_t n, int *ret_fd, int flags);

/* Shared memory of exactly @bytes, zeroed, sealed against shrinking and growing. Return: descriptor. */
WS_MUST_CHECK int ws_side_memfd(const char *name, uint64_t bytes);
/* For the end that receives one: true if it is at least @bytes long and can't shrink. */
bool ws_side_memfd_ok(int fd, uint64_t bytes);

/* Futexes in shared memory. Wait: returns on a wake, on a changed word, on a signal or after @timeout_ns (0: none). */
void ws_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void ws_futex_wake_all(_Atomic uint32_t *word);

#endif

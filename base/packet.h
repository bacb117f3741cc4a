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

/* ---- what strangers send ---- */

/* All descriptors that came with a packet; the caller closes them. */
enum { WS_PACKET_MAX_FDS = 253 };
struct ws_packet_fds {
    unsigned n;
    int v[WS_PACKET_MAX_FDS];
};
/* As ws_packet_recv(), but no descriptor is closed, whatever is returned. */
WS_MUST_CHECK ssize_t ws_packet_recv_all(int fd, void *packet, size_t n, struct ws_packet_fds *ret,
                                         int flags);
/* Whether it is an end of a pipe without a name, and the pipe's inode. It asks no file system. */
bool ws_packet_is_pipe(int fd, ino_t *ret);
/* Closes a descriptor that was received. A socket of another kind than AF_UNIX does not linger. */
void ws_packet_drop_fd(int fd);
/* Whether others may send descriptors to @fd, a local socket, or to what it accepts. All sockets
 * let them; kernels before Linux 6.16 know nothing else. */
void ws_packet_let_fds_in(int fd, bool on);
/* recv() for a local socket that has been told to let no descriptors in. @ret: those that come
 * nevertheless, on older kernels; NULL: the other end is trusted. */
ssize_t ws_packet_recv_bytes(int fd, void *p, size_t n, int flags, struct ws_packet_fds *ret);
/* Lets nothing more come in on @fd, a local socket. Return: whether anything lies unread there, so
 * that close() might close descriptors. */
bool ws_packet_unread(int fd);
/* Takes what lies unread in @fd, a local socket that is to be closed, and closes the descriptors in
 * it. It waits as long as that takes. */
void ws_packet_discard(int fd);

/* Shared memory of exactly @bytes, zeroed, sealed against shrinking and growing.
 * Return: descriptor. */
WS_MUST_CHECK int ws_packet_memfd(const char *name, uint64_t bytes);
/* The same for memory that the other end maps, too, before ws_packet_memfd_seal_holes(). */
WS_MUST_CHECK int ws_packet_memfd_for_two(const char *name, uint64_t bytes);
/* From now on nobody can punch holes into the memory (fallocate(2), madvise(2)), map it for writing
 * or write to it by its descriptor; those who have mapped it go on writing. Who reads a page of a
 * hole that is being made waits in the kernel until the whole hole is there. Return: false: the
 * memory takes no more seals. Linux before 5.1 has no such seal: true. */
WS_MUST_CHECK bool ws_packet_memfd_seal_holes(int fd);
/* For the end that receives one: true if it is at least @bytes long and can't shrink. */
bool ws_packet_memfd_ok(int fd, uint64_t bytes);

/* Futexes in shared memory. ws_futex_wait() returns on a wake, on a changed word, on a signal or
 * after @timeout_ns (0: no limit). */
void ws_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void ws_futex_wake_all(_Atomic uint32_t *word);

#endif

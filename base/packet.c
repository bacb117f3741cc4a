// SPDX-License-Identifier: Apache-2.0
#include "base/packet.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"

static int close_with(int fd, int r)
{
    close(fd);
    return ws_raise(r);
}

/* No packet of ours carries so many descriptors. A stranger's packet may: all descriptors beyond
 * the first are closed, so that none is kept by mistake. The kernel would close those that find no
 * room here, and might wait for that, so there is room for as many as it lets through
 * (SCM_MAX_FD). */
enum { MAX_RECEIVED_FDS = 253 };

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* Buffers for one control message, aligned as it must be. CMSG_SPACE() rounds up: on 64-bit systems
 * the one for a single descriptor has room for two. */
union send_control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};
union receive_control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(MAX_RECEIVED_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

int ws_packet_send(int fd, const void *packet, size_t n, int pass_fd, int flags)
{
    union send_control control;
    struct iovec iov = {(void *)packet, n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (pass_fd >= 0) {
        memset(&control, 0, sizeof(control));
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &pass_fd, sizeof(pass_fd));
    }
    ssize_t sent;
    do {
        sent = sendmsg(fd, &m, flags | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? ws_raise(-errno) : 0;
}

void ws_packet_drop_fd(int fd)
{
    const struct linger abort_at_once = {.l_onoff = 1};
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    if (!setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_at_once, sizeof(abort_at_once)))
        /* Its sender may set SO_LINGER again, but then there is nothing left to wait for. */
        (void)connect(fd, &nobody, sizeof(nobody));
    close(fd);
}

/* The first descriptor that came with the packet, or -1. The others are closed. */
static int take_first_fd(struct msghdr *m)
{
    int first = -1, fd;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; CMSG_LEN(at + sizeof(fd)) <= h->cmsg_len; at += sizeof(fd)) {
            memcpy(&fd, CMSG_DATA(h) + at, sizeof(fd));
            if (first < 0)
                first = fd;
            else
                ws_packet_drop_fd(fd);
        }
    }
    return first;
}

ssize_t ws_packet_recv(int fd, void *packet, size_t n, int *ret_fd, int flags)
{
    union receive_control control;
    struct iovec iov = {packet, n};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t got;
    do {
        got = recvmsg(fd, &m, flags | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    int passed = take_first_fd(&m);
    bool cut = m.msg_flags & MSG_TRUNC;
    if (passed >= 0 && (cut || !ret_fd)) {
        ws_packet_drop_fd(passed);
        passed = -1;
    }
    if (ret_fd)
        *ret_fd = passed;
    return cut ? -EMSGSIZE : got;
}

static atomic_bool kernel_refuses; /* it knows SO_PASSRIGHTS */

void ws_packet_let_fds_in(int fd, bool on)
{
    int value = on;
    if (!setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value)))
        atomic_store_explicit(&kernel_refuses, true, memory_order_relaxed);
}

/* recvmsg() that closes what descriptors come. @ret_more: there may be more to receive: there was a
 * packet, if only one without bytes, or an error that tells how the other end was closed. */
static ssize_t recv_and_drop(int fd, void *p, size_t n, int flags, bool *ret_more)
{
    union receive_control control;
    struct iovec iov = {p, n};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t got = recvmsg(fd, &m, flags | MSG_CMSG_CLOEXEC);
    *ret_more = got > 0 || (!got && m.msg_controllen) || (got < 0 && errno == ECONNRESET);
    int passed = got >= 0 ? take_first_fd(&m) : -1;
    if (passed >= 0)
        ws_packet_drop_fd(passed);
    return got;
}

ssize_t ws_packet_recv_bytes(int fd, void *p, size_t n, int flags)
{
    bool more;
    return atomic_load_explicit(&kernel_refuses, memory_order_relaxed)
               ? recv(fd, p, n, flags)
               : recv_and_drop(fd, p, n, flags, &more);
}

void ws_packet_discard(int fd)
{
    char bytes[4096];
    int type = 0, on = 1;
    socklen_t size = sizeof(type);
    bool more;
    /* Credentials come with each packet then, so one without bytes is not taken for the end. At the
     * end of a stream they would come too. */
    if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET)
        (void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
    shutdown(fd, SHUT_RD); /* from now on nothing comes */
    do
        (void)recv_and_drop(fd, bytes, sizeof(bytes), MSG_DONTWAIT, &more);
    while (more);
}

int ws_packet_memfd(const char *name, uint64_t bytes)
{
    if (!bytes || bytes > INT64_MAX)
        return ws_raise(-EINVAL);
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return ws_raise(-errno);
    if (ftruncate(fd, (off_t)bytes) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return close_with(fd, -errno);
    return fd;
}

bool ws_packet_memfd_ok(int fd, uint64_t bytes)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstat(fd, &st) &&
           (uint64_t)st.st_size >= bytes;
}

void ws_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec ts = {timeout_ns / WS_NS_PER_S, timeout_ns % WS_NS_PER_S};
    syscall(SYS_futex, word, FUTEX_WAIT, expected, timeout_ns ? &ts : NULL, NULL, 0);
}

void ws_futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// SPDX-License-Identifier: Apache-2.0
#include "base/packet.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdio.h>
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
_Static_assert(WS_PACKET_MAX_FDS == 253, "SCM_MAX_FD");

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
    char bytes[CMSG_SPACE(WS_PACKET_MAX_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
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

static void take_fds(struct msghdr *m, struct ws_packet_fds *ret)
{
    ret->n = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        n = WS_MIN(n, (size_t)WS_PACKET_MAX_FDS - ret->n);
        memcpy(ret->v + ret->n, CMSG_DATA(h), n * sizeof(int));
        ret->n += (unsigned)n;
    }
}

/* recvmsg(). @ret_flags: what it says of the packet; @ret_more: whether anything but bytes came. */
static ssize_t receive(int fd, void *p, size_t n, struct ws_packet_fds *ret, int flags,
                       int *ret_flags, bool *ret_more)
{
    union receive_control control;
    struct iovec iov = {p, n};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t got;
    do {
        got = recvmsg(fd, &m, flags | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    ret->n = 0;
    if (got >= 0)
        take_fds(&m, ret);
    *ret_flags = got < 0 ? 0 : m.msg_flags;
    *ret_more = got >= 0 && m.msg_controllen;
    return got;
}

ssize_t ws_packet_recv_all(int fd, void *packet, size_t n, struct ws_packet_fds *ret, int flags)
{
    int said;
    bool more;
    ssize_t got = receive(fd, packet, n, ret, flags, &said, &more);
    return got < 0 ? -errno : said & MSG_TRUNC ? -EMSGSIZE : got;
}

ssize_t ws_packet_recv(int fd, void *packet, size_t n, int *ret_fd, int flags)
{
    struct ws_packet_fds fds;
    ssize_t got = ws_packet_recv_all(fd, packet, n, &fds, flags);
    unsigned kept = ret_fd && got >= 0 && fds.n;
    if (ret_fd)
        *ret_fd = kept ? fds.v[0] : -1;
    for (unsigned i = kept; i < fds.n; i++)
        ws_packet_drop_fd(fds.v[i]);
    return got;
}

bool ws_packet_is_pipe(int fd, ino_t *ret)
{
    char link[32], text[64];
    unsigned long inode;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    bool is = sscanf(text, "pipe:[%lu]", &inode) == 1; /* the names of files begin with a slash */
    *ret = is ? inode : 0;
    return is;
}

static atomic_bool kernel_refuses; /* it knows SO_PASSRIGHTS */

void ws_packet_let_fds_in(int fd, bool on)
{
    int value = on;
    if (!setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value)))
        atomic_store_explicit(&kernel_refuses, true, memory_order_relaxed);
}

ssize_t ws_packet_recv_bytes(int fd, void *p, size_t n, int flags, struct ws_packet_fds *ret)
{
    int said;
    bool more;
    if (ret)
        ret->n = 0;
    return !ret || atomic_load_explicit(&kernel_refuses, memory_order_relaxed)
               ? recv(fd, p, n, flags)
               : receive(fd, p, n, ret, flags, &said, &more);
}

/* From now on nothing comes in, and what there is can be told from the end. */
static void shut(int fd)
{
    int type = 0, on = 1;
    socklen_t size = sizeof(type);
    /* Credentials come with each packet then, so one without bytes is not taken for the end. At the
     * end of a stream they would come too. */
    if (!getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) && type == SOCK_SEQPACKET)
        (void)setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
    shutdown(fd, SHUT_RD);
}

bool ws_packet_unread(int fd)
{
    char byte;
    struct iovec iov = {&byte, sizeof(byte)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred))]; /* no room for a descriptor */
    } control;
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    shut(fd);
    ssize_t got = recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT);
    return got > 0 || (!got && (m.msg_controllen || m.msg_flags & MSG_CTRUNC)) ||
           (got < 0 && errno == ECONNRESET);
}

void ws_packet_discard(int fd)
{
    char bytes[4096];
    struct ws_packet_fds fds;
    int said;
    bool more;
    ssize_t got;
    shut(fd);
    do {
        got = receive(fd, bytes, sizeof(bytes), &fds, MSG_DONTWAIT, &said, &more);
        more = got > 0 || (!got && more) || (got < 0 && errno == ECONNRESET);
        for (unsigned i = 0; i < fds.n; i++)
            ws_packet_drop_fd(fds.v[i]);
    } while (more); /* an error tells how the other end was closed */
}

static int memfd_with(const char *name, uint64_t bytes, int seals)
{
    if (!bytes || bytes > INT64_MAX)
        return ws_raise(-EINVAL);
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return ws_raise(-errno);
    if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, seals))
        return close_with(fd, -errno);
    return fd;
}

int ws_packet_memfd(const char *name, uint64_t bytes)
{
    return memfd_with(name, bytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

int ws_packet_memfd_for_two(const char *name, uint64_t bytes)
{
    return memfd_with(name, bytes, F_SEAL_SHRINK | F_SEAL_GROW);
}

bool ws_packet_memfd_seal_holes(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals >= 0 && seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
        return true;
    return !fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) || errno == EINVAL;
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

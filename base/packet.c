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
 * the first are closed, so that none is kept by mistake. The kernel closes those that find no room
 * here. */
enum { MAX_RECEIVED_FDS = 8 };

/* Buffers for one control message, aligned as it must be. CMSG_SPACE() rounds up: on 64-bit systems
 * the one for a single descriptor has room for two. */
union send_control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};
union receive_control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(MAX_RECEIVED_FDS * sizeof(int))];
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
                close(fd);
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
        close(passed);
        passed = -1;
    }
    if (ret_fd)
        *ret_fd = passed;
    return cut ? -EMSGSIZE : got;
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

// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/handoff.h"

enum { MAX_FDS = 8, FILE_BYTES = 1 << 16 };

void side_init(struct side *s)
{
    *s = (struct side){.fd = -1, .exported = -1, .ring = {.doorbell = -1}};
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void unmap_staging(struct side *s)
{
    if (s->staging)
        munmap(s->staging, s->staging_bytes);
    s->staging = NULL;
}

void side_end(struct side *s)
{
    close_fd(&s->fd);
    close_fd(&s->exported);
    ws_ring_end(&s->ring);
    unmap_staging(s);
    side_init(s);
}

void side_connect(struct side *s, const char *path)
{
    close_fd(&s->fd);
    s->fd = ws_handoff_connect(path);
}

/* Memory as the daemon takes it from a client. */
static int memory_file(void)
{
    static int fd = -1;
    if (fd < 0 && (fd = ws_packet_memfd("fuzz", FILE_BYTES)) < 0)
        abort();
    return fd;
}

void side_send(struct side *s, const void *p, size_t n, unsigned n_fds)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec iov = {(void *)p, n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    n_fds = WS_MIN(n_fds, (unsigned)MAX_FDS);
    if (n_fds) {
        int fds[MAX_FDS];
        for (unsigned i = 0; i < n_fds; i++)
            fds[i] = memory_file();
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){CMSG_LEN(n_fds * sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    if (s->fd >= 0)
        (void)!sendmsg(s->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void side_ask(struct side *s, const struct ws_handoff_request *q)
{
    int fd = q->kind == WS_HANDOFF_IMPORT   ? s->exported
             : q->kind == WS_HANDOFF_SHARED ? memory_file()
                                            : -1;
    if (s->fd >= 0)
        (void)!ws_packet_send(s->fd, q, sizeof(*q), fd, MSG_DONTWAIT);
}

/* Return: false: the descriptor is not kept. */
static bool keep(struct side *s, uint32_t kind, const struct ws_handoff_reply *a, int fd)
{
    switch (kind) {
    case WS_HANDOFF_RING:
        if (!s->ring.memory)
            (void)!ws_ring_map(&s->ring, fd, true);
        return false;
    case WS_HANDOFF_DOORBELL:
        close_fd(&s->ring.doorbell);
        s->ring.doorbell = fd;
        return true;
    case WS_HANDOFF_EXPORT:
        close_fd(&s->exported);
        s->exported = fd;
        return true;
    case WS_HANDOFF_STAGING:
        unmap_staging(s);
        s->staging_bytes = a->data_offset;
        s->staging = mmap(NULL, s->staging_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (s->staging == MAP_FAILED)
            s->staging = NULL;
        return false;
    default:
        return false;
    }
}

void side_answers(struct side *s, uint32_t kind)
{
    struct ws_handoff_reply a;
    int fd;
    while (s->fd >= 0) {
        fd = -1;
        ssize_t n = ws_packet_recv(s->fd, &a, sizeof(a), &fd, MSG_DONTWAIT);
        if (fd >= 0 && (n != sizeof(a) || !keep(s, kind, &a, fd)))
            close(fd);
        if (n <= 0 && n != -EMSGSIZE)
            return;
    }
}

// SPDX-License-Identifier: Apache-2.0
/* ZeroMQ's protocol needs little here: all that a client says is known beforehand and is sent at
 * once, and of what comes back the first message that is no command of ZeroMQ itself is an answer.
 * A daemon's messages have one frame. */
#include "protocol/ask.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

enum { MAJOR = 3, COMMAND_MAX = 1024, LAST_MS = 100, CONNECT_S = 2 };
enum { FRAME_MORE = 1, FRAME_LONG = 2, FRAME_COMMAND = 4 };

/* clang-format off */
const uint8_t ws_ask_introduction[WS_ASK_INTRODUCTION_BYTES] = {
    0xff, [8] = 1, [9] = 0x7f, MAJOR, 1, 'N', 'U', 'L', 'L',
    [WS_ASK_GREETING_BYTES] = FRAME_COMMAND, WS_ASK_READY_BYTES - 2,
    5, 'R', 'E', 'A', 'D', 'Y',
    11, 'S', 'o', 'c', 'k', 'e', 't', '-', 'T', 'y', 'p', 'e', 0, 0, 0, 6, 'D', 'E', 'A', 'L', 'E', 'R',
    8, 'I', 'd', 'e', 'n', 't', 'i', 't', 'y', 0, 0, 0, 0,
};
/* clang-format on */

/* ---- the connection ---- */

static int connect_to(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (n >= sizeof(a.sun_path))
        return -ENAMETOOLONG;
    memcpy(a.sun_path, path, n);
    if (*path == '@') /* ZeroMQ's way to write a name that is no file */
        a.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (*path != '@'));
    /* Else it waits for ever where nobody accepts. */
    struct timeval most = {.tv_sec = CONNECT_S};
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, bytes)) {
        int e = errno;
        close(fd);
        return -e;
    }
    return fd < 0 ? -errno : fd;
}

int ws_asker_open(struct ws_asker *a, const char *endpoint)
{
    *a = WS_ASKER_NULL;
    if (strncmp(endpoint, "ipc://", 6))
        return -EAFNOSUPPORT;
    int fd = connect_to(endpoint + 6);
    if (fd < 0)
        return fd;
    a->fd = fd;
    return 0;
}

void ws_asker_close(struct ws_asker *a)
{
    if (a->fd >= 0)
        close(a->fd);
    *a = WS_ASKER_NULL;
}

/* ---- bytes ---- */

struct deadline {
    uint64_t end_ns;
    bool last;
};

/* Return: 0: it may go on; -ETIMEDOUT. If this process was stopped until the time was over, what it
 * waits for is about to come: hence a last look. */
static int wait_for(int fd, short events, struct deadline *d)
{
    struct pollfd p = {.fd = fd, .events = events};
    if (ws_clock_ns() >= d->end_ns) {
        if (d->last)
            return -ETIMEDOUT;
        d->last = true;
        d->end_ns = ws_clock_ns() + LAST_MS * WS_NS_PER_MS;
    }
    (void)poll(&p, 1, ws_timeout_until(d->end_ns));
    return 0;
}

static int receive(const struct ws_asker *a, void *buf, size_t n, struct deadline *d)
{
    for (size_t got = 0; got < n;) {
        ssize_t k = recv(a->fd, (char *)buf + got, n - got, MSG_DONTWAIT);
        if (k > 0) {
            got += (size_t)k;
        } else if (k == 0) {
            return -ECONNRESET;
        } else if (errno == EAGAIN || errno == EINTR) {
            int r = wait_for(a->fd, POLLIN, d);
            if (r)
                return r;
        } else {
            return -errno;
        }
    }
    return 0;
}

static int send_all(const struct ws_asker *a, const uint8_t *p, size_t n, struct deadline *d)
{
    while (n) {
        ssize_t k = send(a->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        int r = k >= 0                              ? 0
                : errno == EAGAIN || errno == EINTR ? wait_for(a->fd, POLLOUT, d)
                                                    : -errno;
        if (r)
            return r;
        p += k > 0 ? k : 0;
        n -= k > 0 ? (size_t)k : 0;
    }
    return 0;
}

/* ---- frames ---- */

static int send_question(struct ws_asker *a, const Ws__ClientMessage *question, struct deadline *d)
{
    size_t n = ws__client_message__get_packed_size(question), at = 0;
    uint8_t *all = malloc(WS_ASK_INTRODUCTION_BYTES + 9 + n);
    if (!all)
        return -ENOMEM;
    if (!a->greeted) {
        memcpy(all, ws_ask_introduction, WS_ASK_INTRODUCTION_BYTES);
        at = WS_ASK_INTRODUCTION_BYTES;
    }
    all[at++] = n < 256 ? 0 : FRAME_LONG;
    for (int i = n < 256 ? 0 : 7; i >= 0; i--)
        all[at++] = (uint8_t)((uint64_t)n >> 8 * i);
    ws__client_message__pack(question, all + at);
    int r = send_all(a, all, at + n, d);
    free(all);
    return r;
}

static int receive_greeting(struct ws_asker *a, struct deadline *d)
{
    uint8_t g[WS_ASK_GREETING_BYTES];
    int r = a->greeted ? 0 : receive(a, g, sizeof(g), d);
    if (!r && !a->greeted && (g[0] != 0xff || !(g[9] & 1) || g[10] < MAJOR))
        r = -EPROTO;
    a->greeted = !r;
    return r;
}

/* The head of the next frame. */
static int receive_head(const struct ws_asker *a, uint8_t *ret_flags, uint64_t *ret_bytes,
                        struct deadline *d)
{
    uint8_t head[2] = {0}, rest[7];
    int r = receive(a, head, sizeof(head), d);
    *ret_flags = head[0];
    *ret_bytes = head[1];
    if (!r && head[0] & FRAME_LONG) {
        r = receive(a, rest, sizeof(rest), d);
        for (size_t i = 0; !r && i < sizeof(rest); i++)
            *ret_bytes = *ret_bytes << 8 | rest[i];
    }
    if (!r && head[0] & ~(FRAME_MORE | FRAME_LONG | FRAME_COMMAND))
        r = -EPROTO;
    return r;
}

/* The next message; commands are skipped. @ret_body: freed by the caller. */
static int receive_message(struct ws_asker *a, struct deadline *d, uint8_t **ret_body,
                           uint64_t *ret_bytes)
{
    uint8_t flags, command[COMMAND_MAX];
    int r = receive_greeting(a, d);
    while (!r && !(r = receive_head(a, &flags, ret_bytes, d)) && flags & FRAME_COMMAND)
        r = *ret_bytes > sizeof(command) ? -EPROTO : receive(a, command, *ret_bytes, d);
    if (!r && (flags & FRAME_MORE || *ret_bytes > WS_ASK_ANSWER_BYTES))
        r = -EMSGSIZE;
    uint8_t *body = r ? NULL : malloc(*ret_bytes + 1);
    if (!r)
        r = body ? receive(a, body, *ret_bytes, d) : -ENOMEM;
    if (r)
        free(body);
    else
        *ret_body = body;
    return r;
}

/* ---- messages ---- */

struct budget {
    size_t left;
    bool spent;
};

static void *take(void *arg, size_t n)
{
    struct budget *b = arg;
    if (n > b->left) {
        b->spent = true;
        return NULL;
    }
    b->left -= n;
    return malloc(n);
}

/* What was taken for a while is not given back to the budget: it bounds time, too. */
static void give(void *arg, void *p)
{
    (void)arg;
    free(p);
}

int ws_ask_unpack(const void *data, size_t n, Ws__ServerMessage **ret)
{
    struct budget b = {.left = WS_ASK_MEMORY_BYTES};
    ProtobufCAllocator bounded = {take, give, &b};
    Ws__ServerMessage *m = ws__server_message__unpack(&bounded, n, data);
    if (!m)
        return b.spent ? -EMSGSIZE : -EPROTO;
    *ret = m;
    return 0;
}

int ws_asker_ask(struct ws_asker *a, const Ws__ClientMessage *question,
                 bool (*accept)(const Ws__ServerMessage *m), uint64_t end_ns,
                 Ws__ServerMessage **ret)
{
    struct deadline d = {.end_ns = end_ns};
    int r = send_question(a, question, &d);
    while (!r) {
        Ws__ServerMessage *m = NULL;
        uint8_t *body = NULL;
        uint64_t n;
        r = receive_message(a, &d, &body, &n);
        if (!r)
            r = ws_ask_unpack(body, n, &m);
        free(body);
        if (m && accept(m)) {
            *ret = m;
            return 0;
        }
        if (m)
            ws__server_message__free_unpacked(m, NULL);
        if (!r && ws_clock_ns() >= d.end_ns)
            r = -ETIMEDOUT;
    }
    return r;
}

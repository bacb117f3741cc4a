// SPDX-License-Identifier: Apache-2.0
/* A status request without libzmq, which costs a monitor milliseconds at each start and may be
 * missing in a container. ZeroMQ's protocol needs little here: all that a client says is known
 * beforehand and is sent at once (greeting, introduction, request), and of what comes back the
 * first message that is no command of ZeroMQ itself is the answer. A connection serves one
 * question, so nothing has to survive a fork(). */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "frontend/nvml/nvml.h"

enum { GREETING_BYTES = 64, TIMEOUT_MS = 2000, REQUEST_MAX = 64, REPLY_MAX = 64 << 20 };
enum { FRAME_LONG = 2, FRAME_COMMAND = 4 };

static const uint8_t greeting[GREETING_BYTES] = {0xff, [8] = 1, [9] = 0x7f, 3,  1,
                                                 'N',  'U',     'L',        'L'};
/* A command frame: READY, as a DEALER without an identity. */
static const uint8_t introduction[] =
    "\4\51\5READY\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0"; /* and the 0 at its end */

struct ask {
    int fd;
    uint64_t end_ns;
};

/* Exactly @n bytes. Return: 0, -ETIMEDOUT, or -EPROTO where the other end closed before. */
static int receive(const struct ask *a, void *buf, size_t n)
{
    for (size_t got = 0; got < n;) {
        uint64_t now_ns = ws_clock_ns();
        struct pollfd p = {.fd = a->fd, .events = POLLIN};
        if (now_ns >= a->end_ns)
            return -ETIMEDOUT;
        if (poll(&p, 1, (int)((a->end_ns - now_ns) / WS_NS_PER_MS) + 1) <= 0)
            continue;
        ssize_t k = recv(a->fd, (char *)buf + got, n - got, MSG_DONTWAIT);
        if (k > 0)
            got += (size_t)k;
        else if (k == 0 || (errno != EAGAIN && errno != EINTR))
            return -EPROTO;
    }
    return 0;
}

/* The head of the next frame. */
static int receive_head(const struct ask *a, uint8_t *ret_flags, uint64_t *ret_bytes)
{
    uint8_t head[2] = {0}, rest[7];
    int r = receive(a, head, sizeof(head));
    *ret_flags = head[0];
    *ret_bytes = head[1];
    if (r || !(head[0] & FRAME_LONG))
        return r;
    r = receive(a, rest, sizeof(rest));
    for (size_t i = 0; !r && i < sizeof(rest); i++)
        *ret_bytes = *ret_bytes << 8 | rest[i];
    return r;
}

static int receive_answer(const struct ask *a, Ws__ServerMessage **ret)
{
    uint8_t waste[GREETING_BYTES], flags = FRAME_COMMAND, *body = NULL;
    uint64_t bytes = 0;
    int r = receive(a, waste, sizeof(waste));
    while (!r && flags & FRAME_COMMAND) {
        r = receive_head(a, &flags, &bytes);
        if (!r && bytes > REPLY_MAX)
            r = -EPROTO;
        free(body);
        body = r ? NULL : malloc(bytes + 1);
        if (!r)
            r = body ? receive(a, body, bytes) : -ENOMEM;
    }
    Ws__ServerMessage *m = r ? NULL : ws__server_message__unpack(NULL, bytes, body);
    free(body);
    if (r)
        return r;
    if (!m || !m->status || m->status->version != WS_PROTOCOL_VERSION) {
        if (m)
            ws__server_message__free_unpacked(m, NULL);
        return -EPROTONOSUPPORT;
    }
    *ret = m;
    return 0;
}

static int send_question(const struct ask *a)
{
    uint8_t all[GREETING_BYTES + sizeof(introduction) + 2 + REQUEST_MAX];
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest status = WS__STATUS_REQUEST__INIT;
    size_t at = GREETING_BYTES + sizeof(introduction);
    status.version = WS_PROTOCOL_VERSION;
    m.status = &status;
    memcpy(all, greeting, GREETING_BYTES);
    memcpy(all + GREETING_BYTES, introduction, sizeof(introduction));
    size_t n = ws__client_message__pack(&m, all + at + 2);
    all[at] = 0;
    all[at + 1] = (uint8_t)n;
    return send(a->fd, all, at + 2 + n, MSG_NOSIGNAL) == (ssize_t)(at + 2 + n) ? 0 : -errno;
}

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
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, bytes)) {
        int e = errno;
        close(fd);
        return -e;
    }
    return fd < 0 ? -errno : fd;
}

int ws_nvml_ask(const char *endpoint, Ws__ServerMessage **ret)
{
    if (strncmp(endpoint, "ipc://", 6))
        return -EAFNOSUPPORT;
    struct ask a = {.fd = connect_to(endpoint + 6),
                    .end_ns = ws_clock_ns() + TIMEOUT_MS * WS_NS_PER_MS};
    if (a.fd < 0)
        return a.fd;
    int r = send_question(&a);
    if (!r)
        r = receive_answer(&a, ret);
    close(a.fd);
    return r;
}

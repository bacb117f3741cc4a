// SPDX-License-Identifier: Apache-2.0
/* All that a client says until it has an answer is known beforehand, and is sent at once: greeting,
 * introduction, one request. The daemon's own greeting and introduction are not looked at; what
 * comes behind them is the answer. */
#include "backend/process/probe.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "protocol/ask.h"

enum { REQUEST_MAX = 64 };

static void open_next(struct ws_probe *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    p->asked = false;
    p->n_came = 0;
}

void ws_probe_init(struct ws_probe *p, const char *path)
{
    *p = (struct ws_probe){.path = path, .fd = -1};
    if (path)
        open_next(p);
}

void ws_probe_deinit(struct ws_probe *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

/* Return: its length. */
static size_t request(uint8_t *frame)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest status = WS__STATUS_REQUEST__INIT;
    m.status = &status;
    size_t n = ws__client_message__pack(&m, frame + 2);
    frame[0] = 0;
    frame[1] = (uint8_t)n;
    return 2 + n;
}

int ws_probe_ask(struct ws_probe *p)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    uint8_t all[WS_ASK_INTRODUCTION_BYTES + REQUEST_MAX];
    if (p->asked)
        return 0;
    if (p->fd < 0)
        open_next(p);
    if (strlen(p->path) >= sizeof(a.sun_path))
        return -ENAMETOOLONG;
    memcpy(a.sun_path, p->path, strlen(p->path));
    memcpy(all, ws_ask_introduction, WS_ASK_INTRODUCTION_BYTES);
    size_t n = WS_ASK_INTRODUCTION_BYTES;
    n += request(all + n);
    if (connect(p->fd, (struct sockaddr *)&a, sizeof(a)) ||
        send(p->fd, all, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n) {
        int r = -errno;
        if (r != -EAGAIN) /* not just a queue that is full */
            open_next(p);
        return r;
    }
    p->asked = true;
    return 0;
}

int ws_probe_fd(const struct ws_probe *p)
{
    return p->asked ? p->fd : -1;
}

bool ws_probe_answered(struct ws_probe *p)
{
    uint8_t waste[4096];
    ssize_t n = p->asked ? recv(p->fd, waste, sizeof(waste), MSG_DONTWAIT) : -1;
    if (!p->asked || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return false;
    p->n_came += n > 0 ? (size_t)n : 0;
    if (n > 0 && p->n_came <= WS_ASK_INTRODUCTION_BYTES)
        return false;
    open_next(p);
    return true;
}

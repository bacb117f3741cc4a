// SPDX-License-Identifier: Apache-2.0
/* Asking wattshare-clocks for a GPU's clocks. The connection is made when clocks are first set, and
 * again some time after it was lost; meanwhile the GPU has its own clocks. */
#include "device/cuda/clocks.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "device/cuda/cuda.h"

#define RETRY_NS UINT64_C(5000000000)
enum { ANSWER_S = 2 }; /* how long an answer may take */

struct ws_clocks {
    struct sockaddr_un address;
    uint8_t uuid[16];
    uint32_t gpu, core_mhz, memory_mhz;
    int fd; /* -1: not connected */
    uint64_t retry_ns;
    char text[160];
};

int ws_clocks_manage(struct ws_device *d, const char *socket)
{
    struct ws_clocks *c = ws_alloc(sizeof(*c));
    if (!c)
        return ws_raise(-ENOMEM);
    *c = (struct ws_clocks){.address = {.sun_family = AF_UNIX},
                            .gpu = d->index,
                            .core_mhz = d->spec.core_mhz,
                            .memory_mhz = d->spec.memory_mhz,
                            .fd = -1};
    if (strlen(socket) >= sizeof(c->address.sun_path) || !ws_device_cuda_uuid(d, c->uuid)) {
        free(c);
        return ws_raise(-EINVAL);
    }
    strcpy(c->address.sun_path, socket);
    snprintf(c->text, sizeof(c->text), "by wattshare-clocks, when a policy wants it");
    ws_clocks_close(d->clocks);
    d->clocks = c;
    return 0;
}

struct ws_clocks *ws_clocks_close(struct ws_clocks *c)
{
    if (c && c->fd >= 0)
        close(c->fd);
    free(c);
    return NULL;
}

const char *ws_clocks_text(const struct ws_clocks *c)
{
    return c->text;
}

static void say(struct ws_clocks *c, const char *text)
{
    if (strcmp(c->text, text))
        ws_log(WS_WARN, "clocks: gpu=%u %s", c->gpu, text);
    snprintf(c->text, sizeof(c->text), "%s", text);
}

/* Closes the connection, after which wattshare-clocks restores the GPU's own clocks. */
static void lose(struct ws_clocks *c, const char *what, int e)
{
    char text[160];
    snprintf(text, sizeof(text), "%s %s: %s", c->address.sun_path, what, strerror(e));
    say(c, text);
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->retry_ns = ws_clock_ns() + RETRY_NS;
}

static bool reach(struct ws_clocks *c)
{
    struct timeval patience = {.tv_sec = ANSWER_S};
    if (c->fd >= 0)
        return true;
    if (ws_clock_ns() < c->retry_ns)
        return false;
    c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
        setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
        connect(c->fd, (const struct sockaddr *)&c->address, sizeof(c->address))) {
        lose(c, "cannot be reached", errno);
        return false;
    }
    return true;
}

static bool ask(struct ws_clocks *c, const struct ws_clocks_ask *q, struct ws_clocks_answer *a)
{
    if (send(c->fd, q, sizeof(*q), MSG_NOSIGNAL) != (ssize_t)sizeof(*q)) {
        lose(c, "took no message", errno);
        return false;
    }
    ssize_t n = recv(c->fd, a, sizeof(*a), 0);
    if (n != (ssize_t)sizeof(*a) || a->version != WS_CLOCKS_VERSION) {
        int e = n ? EPROTO : ECONNRESET;
        lose(c, "gave no answer", n < 0 ? errno : e);
        return false;
    }
    a->text[sizeof(a->text) - 1] = 0;
    return true;
}

static bool is_default(double x)
{
    return fabs(x - 1) < 1e-9;
}

static uint32_t mhz(uint32_t base, double factor)
{
    return (uint32_t)WS_MAX(lround(base * factor), 1);
}

int ws_clocks_set(struct ws_clocks *c, const struct ws_device_clocks *want,
                  struct ws_device_clocks *ret)
{
    struct ws_clocks_ask q = {.version = WS_CLOCKS_VERSION};
    struct ws_clocks_answer a = {0};
    if (want->core > 10 || want->memory > 10)
        return ws_raise(-EINVAL);
    if (!is_default(want->core))
        q.core_mhz = mhz(c->core_mhz, want->core);
    if (!is_default(want->memory))
        q.memory_mhz = mhz(c->memory_mhz, want->memory);
    memcpy(q.uuid, c->uuid, sizeof(q.uuid));
    *ret = (struct ws_device_clocks){1, 1, 1};
    if (!reach(c) || !ask(c, &q, &a))
        return 0;
    if (a.error) {
        say(c, a.text);
        return a.error == -EINVAL ? ws_raise(-EINVAL) : -ENOTSUP;
    }
    snprintf(c->text, sizeof(c->text), "set by wattshare-clocks");
    if (a.core_mhz)
        *ret = (struct ws_device_clocks){want->volt, (double)a.core_mhz / c->core_mhz, 1};
    if (a.memory_mhz)
        ret->memory = (double)a.memory_mhz / c->memory_mhz;
    return 0;
}

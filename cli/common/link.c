// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/common/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "protocol/curve.h"

enum { LAST_MS = 100 };

struct ws_cli_link {
    void *ctx, *socket;
};

/* Connecting to a Unix socket fails at once if nobody listens, while ZeroMQ would keep trying. */
static int probe_ipc(const char *endpoint)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strncmp(endpoint, "ipc://", 6) || strlen(endpoint + 6) >= sizeof(a.sun_path) ||
        endpoint[6] != '/')
        return 0;
    strcpy(a.sun_path, endpoint + 6);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

/* Only who has a key may come over the network. */
static int set_keys(void *socket, const char *endpoint)
{
    struct ws_curve_client k;
    char text[512];
    if (strncmp(endpoint, "tcp://", 6))
        return 0;
    const char *wrong = ws_curve_client(&k, text, sizeof(text));
    if (wrong) {
        ws_cli_error("%s", wrong);
        return -EPERM;
    }
    int r =
        zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, k.server, WS_CURVE_TEXT_BYTES) ||
                zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, k.own.public_key,
                               WS_CURVE_TEXT_BYTES) ||
                zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, k.own.secret_key, WS_CURVE_TEXT_BYTES)
            ? -errno
            : 0;
    explicit_bzero(&k, sizeof(k));
    return r;
}

int ws_cli_link_open(struct ws_cli_link **ret, const char *endpoint)
{
    int linger = 0, r = probe_ipc(endpoint);
    if (r)
        return r;
    struct ws_cli_link *l = ws_alloc(sizeof(*l));
    if (!l)
        return -ENOMEM;
    l->ctx = zmq_ctx_new();
    l->socket = l->ctx ? zmq_socket(l->ctx, ZMQ_DEALER) : NULL;
    r = l->socket ? set_keys(l->socket, endpoint) : -ENOMEM;
    if (!r) {
        zmq_setsockopt(l->socket, ZMQ_LINGER, &linger, sizeof(linger));
        r = zmq_connect(l->socket, endpoint) ? -errno : 0;
    }
    if (r) {
        ws_cli_link_close(l);
        return r;
    }
    *ret = l;
    return 0;
}

void ws_cli_link_close(struct ws_cli_link *l)
{
    if (!l)
        return;
    if (l->socket)
        zmq_close(l->socket);
    if (l->ctx)
        zmq_ctx_term(l->ctx);
    free(l);
}

static int send_question(struct ws_cli_link *l, const Ws__ClientMessage *question)
{
    size_t n = ws__client_message__get_packed_size(question);
    uint8_t *buf = ws_alloc(n + 1);
    if (!buf)
        return -ENOMEM;
    ws__client_message__pack(question, buf);
    int r = zmq_send(l->socket, buf, n, 0) < 0 ? -errno : 0;
    free(buf);
    return r;
}

int ws_cli_link_ask(struct ws_cli_link *l, const Ws__ClientMessage *question,
                    bool (*accept)(const Ws__ServerMessage *m), int timeout_ms,
                    Ws__ServerMessage **ret)
{
    uint64_t end_ns = ws_clock_ns() + (uint64_t)timeout_ms * WS_NS_PER_MS;
    int r = send_question(l, question);
    /* If this process was stopped until the time was over, the answer is there, and libzmq's thread
     * is about to read it. */
    for (bool last = false; !r && !last;) {
        uint64_t now_ns = ws_clock_ns();
        zmq_pollitem_t item = {.socket = l->socket, .events = ZMQ_POLLIN};
        last = now_ns >= end_ns;
        long left_ms = last ? LAST_MS : (long)((end_ns - now_ns) / WS_NS_PER_MS) + 1;
        int n = zmq_poll(&item, 1, left_ms);
        if (n == 0)
            return -ETIMEDOUT;
        last = last && n > 0; /* else a signal came */
        zmq_msg_t msg;
        zmq_msg_init(&msg);
        if (zmq_msg_recv(&msg, l->socket, ZMQ_DONTWAIT) >= 0) {
            Ws__ServerMessage *m =
                ws__server_message__unpack(NULL, zmq_msg_size(&msg), zmq_msg_data(&msg));
            zmq_msg_close(&msg);
            if (!m)
                return -EPROTO;
            if (accept(m)) {
                *ret = m;
                return 0;
            }
            ws__server_message__free_unpacked(m, NULL);
        } else {
            zmq_msg_close(&msg);
            r = errno == EAGAIN || errno == EINTR ? 0 : -errno;
        }
    }
    return r ? r : -ETIMEDOUT;
}

static bool is_status(const Ws__ServerMessage *m)
{
    return m->status != NULL;
}

int ws_cli_link_status(struct ws_cli_link *l, int timeout_ms, Ws__ServerMessage **ret)
{
    Ws__ClientMessage q = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest s = WS__STATUS_REQUEST__INIT;
    Ws__ServerMessage *m;
    s.version = WS_PROTOCOL_VERSION;
    q.status = &s;
    int r = ws_cli_link_ask(l, &q, is_status, timeout_ms, &m);
    if (!r && m->status->version != WS_PROTOCOL_VERSION) {
        ws__server_message__free_unpacked(m, NULL);
        return -EPROTONOSUPPORT;
    }
    if (!r)
        *ret = m;
    return r;
}

// SPDX-License-Identifier: Apache-2.0
/* A daemon of this machine is asked over protocol/ask.h. Over tcp libzmq speaks, because of its
 * encryption: there the other end has proved by its key that it is the daemon that was meant. */
#include "config.h"

#include "cli/common/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "protocol/ask.h"
#include "protocol/curve.h"

enum { LAST_MS = 100, AGAIN_MS = 20, WAITING_ANSWERS = 4 };

struct ws_cli_link {
    char *endpoint;
    struct ws_asker asker; /* of this machine */
    void *ctx, *socket;    /* over tcp; NULL: of this machine */
};

/* ---- over tcp ---- */

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

static int set_limits(void *socket)
{
    const int64_t bytes = WS_ASK_ANSWER_BYTES;
    const int linger = 0, waiting = WAITING_ANSWERS;
    return zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger)) ||
                   zmq_setsockopt(socket, ZMQ_RCVHWM, &waiting, sizeof(waiting)) ||
                   zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &bytes, sizeof(bytes))
               ? -errno
               : 0;
}

static int open_zmq(struct ws_cli_link *l)
{
    l->ctx = zmq_ctx_new();
    l->socket = l->ctx ? zmq_socket(l->ctx, ZMQ_DEALER) : NULL;
    int r = l->socket ? set_keys(l->socket, l->endpoint) : -ENOMEM;
    if (!r)
        r = set_limits(l->socket);
    if (!r)
        r = zmq_connect(l->socket, l->endpoint) ? -errno : 0;
    return r;
}

static int send_zmq(struct ws_cli_link *l, const Ws__ClientMessage *question)
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

/* The next message, if it is there. Return: 0 with *ret NULL: none is. */
static int receive_zmq(struct ws_cli_link *l, Ws__ServerMessage **ret)
{
    zmq_msg_t msg;
    zmq_msg_init(&msg);
    *ret = NULL;
    int r = 0;
    if (zmq_msg_recv(&msg, l->socket, ZMQ_DONTWAIT) < 0)
        r = errno == EAGAIN || errno == EINTR ? 0 : -errno;
    else if (zmq_msg_more(&msg))
        r = -EMSGSIZE;
    else
        r = ws_ask_unpack(zmq_msg_data(&msg), zmq_msg_size(&msg), ret);
    zmq_msg_close(&msg);
    return r;
}

static int ask_zmq(struct ws_cli_link *l, const Ws__ClientMessage *question,
                   bool (*accept)(const Ws__ServerMessage *m), uint64_t end_ns,
                   Ws__ServerMessage **ret)
{
    int r = send_zmq(l, question);
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
        Ws__ServerMessage *m;
        r = receive_zmq(l, &m);
        if (m && accept(m)) {
            *ret = m;
            return 0;
        }
        if (m)
            ws__server_message__free_unpacked(m, NULL);
    }
    return r ? r : -ETIMEDOUT;
}

/* ---- on this machine ---- */

/* Whether it helps to ask again: the daemon is being restarted, or had no room. */
static bool may_come_back(int r)
{
    return r == -ECONNRESET || r == -EPIPE || r == -ECONNREFUSED || r == -ENOENT || r == -EAGAIN;
}

static int ask_again(struct ws_cli_link *l, const Ws__ClientMessage *question,
                     bool (*accept)(const Ws__ServerMessage *m), uint64_t end_ns,
                     Ws__ServerMessage **ret)
{
    const struct timespec pause = {.tv_nsec = AGAIN_MS * WS_NS_PER_MS};
    int r = ws_asker_ask(&l->asker, question, accept, end_ns, ret);
    while (may_come_back(r) && ws_clock_ns() < end_ns) {
        nanosleep(&pause, NULL);
        ws_asker_close(&l->asker);
        r = ws_asker_open(&l->asker, l->endpoint);
        if (!r)
            r = ws_asker_ask(&l->asker, question, accept, end_ns, ret);
    }
    return r;
}

/* ---- the link ---- */

int ws_cli_link_open(struct ws_cli_link **ret, const char *endpoint)
{
    struct ws_cli_link *l = ws_alloc(sizeof(*l));
    if (!l)
        return -ENOMEM;
    l->asker = WS_ASKER_NULL;
    l->endpoint = ws_strdup(endpoint);
    int r = l->endpoint ? ws_asker_open(&l->asker, endpoint) : -ENOMEM;
    if (r == -EAFNOSUPPORT)
        r = open_zmq(l);
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
    ws_asker_close(&l->asker);
    if (l->socket)
        zmq_close(l->socket);
    if (l->ctx)
        zmq_ctx_term(l->ctx);
    free(l->endpoint);
    free(l);
}

static void clean_string(char *p)
{
    for (; *p; p++)
        if (((unsigned char)*p < 0x20 && *p != '\n') || *p == 0x7f)
            *p = '?';
}

/* What a daemon says is printed, and must not steer the terminal. */
static void clean(ProtobufCMessage *m)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        bool list = f->label == PROTOBUF_C_LABEL_REPEATED;
        void *at = (char *)m + f->offset, **v = list ? *(void ***)at : at;
        size_t n = list ? *(size_t *)((char *)m + f->quantifier_offset) : 1;
        for (size_t k = 0; k < n; k++)
            if (f->type == PROTOBUF_C_TYPE_STRING)
                clean_string(v[k]);
            else if (f->type == PROTOBUF_C_TYPE_MESSAGE && v[k])
                clean(v[k]);
    }
}

int ws_cli_link_ask(struct ws_cli_link *l, const Ws__ClientMessage *question,
                    bool (*accept)(const Ws__ServerMessage *m), int timeout_ms,
                    Ws__ServerMessage **ret)
{
    uint64_t end_ns = ws_clock_ns() + (uint64_t)timeout_ms * WS_NS_PER_MS;
    int r = (l->socket ? ask_zmq : ask_again)(l, question, accept, end_ns, ret);
    if (!r)
        clean(&(*ret)->base);
    return r;
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
    if (r)
        return r;
    if (m->status->version != WS_PROTOCOL_VERSION)
        r = -EPROTONOSUPPORT;
    else if (m->status->n_gpus > WS_MAX_DEVICES)
        r = -EPROTO;
    if (r)
        ws__server_message__free_unpacked(m, NULL);
    else
        *ret = m;
    return r;
}

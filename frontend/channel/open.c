// SPDX-License-Identifier: Apache-2.0
/* The beginning and the end of a channel: the handshake, the goodbye, and what a forked child does
 * with what it inherited. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "frontend/channel/private.h"
#include "protocol/curve.h"

#define CURE                                                                                       \
    "start it with `wattshared`, run the program under `wattshare run --private`, or "             \
    "set " WS_ENV_SOCKET
enum {
    MAX_ENV_BYTES = 4096,
    LINGER_MS = 200,
    HEARTBEAT_MS = 1000,
    HEARTBEAT_TIMEOUT_MS = 3000,
    LEAVE_MS = 200
};

/* ZeroMQ would try again for ever; a missing or dead socket file is known at once. Return: NULL, or
 * what is wrong. */
static const char *probe_ipc(const char *endpoint)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *path = endpoint + strlen("ipc://");
    if (strncmp(endpoint, "ipc://", 6) != 0 || *path == '@')
        return NULL;
    if (strlen(path) >= sizeof(a.sun_path))
        return "the path of the socket is too long";
    strcpy(a.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    int r = connect(fd, (struct sockaddr *)&a, sizeof(a));
    int e = errno;
    close(fd);
    if (r == 0 || e == EAGAIN || e == EINTR)
        return NULL;
    switch (e) {
    case ENOENT:
        return "no such socket: the daemon is not running";
    case ECONNREFUSED:
        return "nobody listens on the socket: the daemon is not running";
    case EACCES:
        return "no permission to use the socket";
    default:
        return strerrordesc_np(e);
    }
}

static int set_int(struct ws_channel *c, int option, int v)
{
    return c->zmq->setsockopt(c->sock, option, &v, sizeof(v));
}

/* Only who has a key may come over the network, and only to the daemon that was meant. */
static int set_curve(struct ws_channel *c)
{
    struct ws_curve_client k;
    char text[512];
    const char *wrong = ws_curve_client(&k, text, sizeof(text));
    if (wrong) {
        ws_log(WS_ERROR, "channel: %s", wrong);
        return -EPERM;
    }
    int r = c->zmq->setsockopt(c->sock, ZMQ_CURVE_SERVERKEY, k.server, WS_CURVE_TEXT_BYTES) ||
                    c->zmq->setsockopt(c->sock, ZMQ_CURVE_PUBLICKEY, k.own.public_key,
                                       WS_CURVE_TEXT_BYTES) ||
                    c->zmq->setsockopt(c->sock, ZMQ_CURVE_SECRETKEY, k.own.secret_key,
                                       WS_CURVE_TEXT_BYTES)
                ? -errno
                : 0;
    explicit_bzero(&k, sizeof(k));
    return r;
}

static int zmq_open(struct ws_channel *c)
{
    bool tcp = !strncmp(c->endpoint, "tcp://", 6);
    sigset_t all, old;
    c->ctx = c->zmq->ctx_new();
    if (!c->ctx)
        return -errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* ZeroMQ's threads inherit the mask */
    c->sock = c->zmq->socket(c->ctx, ZMQ_DEALER);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!c->sock)
        return -errno;
    /* No high-water marks: the window of the protocol limits what is under way. */
    set_int(c, ZMQ_SNDHWM, 0);
    set_int(c, ZMQ_RCVHWM, 0);
    set_int(c, ZMQ_LINGER, 0);
    if (tcp) {
        int r = set_curve(c);
        if (r)
            return r;
        set_int(c, ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS);
        set_int(c, ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS);
        static _Atomic unsigned serial;
        char name[64];
        snprintf(name, sizeof(name), "inproc://wattshare-monitor-%u", serial++);
        if (c->zmq->socket_monitor(c->sock, name, ZMQ_EVENT_DISCONNECTED) == 0 &&
            (c->monitor = c->zmq->socket(c->ctx, ZMQ_PAIR)) &&
            c->zmq->connect(c->monitor, name) == 0) {
            size_t n = sizeof(c->monitor_fd);
            c->zmq->getsockopt(c->monitor, ZMQ_FD, &c->monitor_fd, &n);
        }
    }
    if (c->zmq->connect(c->sock, c->endpoint) < 0)
        return -errno;
    size_t n = sizeof(c->zmq_fd);
    return c->zmq->getsockopt(c->sock, ZMQ_FD, &c->zmq_fd, &n) < 0 ? -errno : 0;
}

bool ws_channel_peer_gone(struct ws_channel *c)
{
    if (c->handoff_fd >= 0) {
        struct pollfd p = {.fd = c->handoff_fd, .events = POLLRDHUP};
        if (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)))
            return true;
    }
    if (c->monitor) { /* it was asked for one event only: anything there is a disconnection */
        zmq_msg_t m;
        c->zmq->msg_init(&m);
        bool gone = c->zmq->msg_recv(&m, c->monitor, ZMQ_DONTWAIT) >= 0;
        c->zmq->msg_close(&m);
        return gone;
    }
    return false;
}

static int send_message(struct ws_channel *c, const Ws__ClientMessage *m)
{
    size_t n = ws__client_message__get_packed_size(m);
    uint8_t *buf = ws_alloc(n + 1);
    if (!buf)
        return -ENOMEM;
    ws__client_message__pack(m, buf);
    int r = c->zmq->send(c->sock, buf, n, ZMQ_DONTWAIT) < 0 ? -errno : 0;
    free(buf);
    return r;
}

/* The first message that arrives until @deadline_ns, or NULL. */
static Ws__ServerMessage *first_message(struct ws_channel *c, uint64_t deadline_ns)
{
    for (;;) {
        zmq_msg_t m;
        c->zmq->msg_init(&m);
        if (c->zmq->msg_recv(&m, c->sock, ZMQ_DONTWAIT) >= 0) {
            Ws__ServerMessage *s =
                ws__server_message__unpack(NULL, c->zmq->msg_size(&m), c->zmq->msg_data(&m));
            c->zmq->msg_close(&m);
            return s;
        }
        uint64_t now = ws_clock_ns();
        if (now >= deadline_ns || (errno != EAGAIN && errno != EINTR))
            return NULL;
        struct pollfd p = {.fd = c->zmq_fd, .events = POLLIN};
        poll(&p, 1, (int)((deadline_ns - now) / WS_NS_PER_MS) + 1);
    }
}

static int check_hello(struct ws_channel *c)
{
    const Ws__HelloReply *h = c->hello_message ? c->hello_message->hello : NULL;
    if (!h) {
        ws_log(WS_ERROR, "channel: what answers at %s does not speak wattshare's protocol",
               c->endpoint);
        return WS__ERROR__DISCONNECTED;
    }
    if (h->error == WS__ERROR__VERSION_MISMATCH || h->version != WS_PROTOCOL_VERSION) {
        ws_log(
            WS_ERROR,
            "channel: the daemon at %s speaks version %u of the protocol, this library version %u; "
            "install the same version of both",
            c->endpoint, h->version, WS_PROTOCOL_VERSION);
        return WS__ERROR__VERSION_MISMATCH;
    }
    if (h->error != WS__ERROR__OK) {
        const char *what = h->error == WS__ERROR__DRAINING ? "is going down"
                           : h->error == WS__ERROR__DENIED ? "denies access"
                                                           : "refuses";
        ws_log(WS_ERROR, "channel: the daemon at %s %s%s%s", c->endpoint, what,
               h->text[0] ? ": " : "", h->text);
        return h->error;
    }
    c->hello = h;
    const Ws__Limits *l = h->limits;
    c->limits = (struct ws_channel_limits){
        .message_bytes = l && l->max_message_bytes >= 4096 ? l->max_message_bytes : 64 * 1024,
        .commands = l && l->max_commands ? l->max_commands : 64,
        .outstanding = l && l->max_outstanding ? l->max_outstanding : 256,
    };
    return WS__ERROR__OK;
}

/* The variables of @names that are set, as "NAME=VALUE". Return: how many; strings and list are
 * malloc'ed. */
static size_t env_for(char *const *names, size_t n, char **ret)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        const char *v = getenv(names[i]);
        if (v && strlen(v) <= MAX_ENV_BYTES && asprintf(&ret[found], "%s=%s", names[i], v) >= 0)
            found++;
    }
    return found;
}

static int hello_once(struct ws_channel *c, const Ws__Hello *hello, uint64_t deadline_ns)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    m.hello = (Ws__Hello *)hello;
    return send_message(c, &m) || !(c->hello_message = first_message(c, deadline_ns)) ? -ETIMEDOUT
                                                                                      : 0;
}

/* Once more with what the daemon tells tasks by, if it asks for that. */
static int say_hello(struct ws_channel *c, const Ws__Hello *hello, uint64_t deadline_ns)
{
    int r = hello_once(c, hello, deadline_ns);
    const Ws__HelloReply *a = r ? NULL : c->hello_message->hello;
    if (!a || !a->n_env_wanted)
        return r;
    Ws__ServerMessage *asked = c->hello_message;
    Ws__Hello again = *hello;
    again.env_told = true;
    again.env = ws_alloc_array(a->n_env_wanted, sizeof(*again.env));
    if (again.env)
        again.n_env = env_for(a->env_wanted, a->n_env_wanted, again.env);
    c->hello_message = NULL;
    r = hello_once(c, &again, deadline_ns);
    for (size_t i = 0; i < again.n_env; i++)
        free(again.env[i]);
    free(again.env);
    ws__server_message__free_unpacked(asked, NULL);
    return r;
}

static int open_all(struct ws_channel *c, const Ws__Hello *hello, int timeout_ms)
{
    const char *why;
    uint64_t deadline_ns = ws_clock_ns() + (uint64_t)timeout_ms * WS_NS_PER_MS;
    if (!(c->zmq = ws_zmq_load(&why))) {
        ws_log(WS_ERROR, "channel: can't load libzmq (%s): install the package libzmq5", why);
        return WS__ERROR__DISCONNECTED;
    }
    if ((why = probe_ipc(c->endpoint))) {
        ws_log(WS_ERROR, "channel: no daemon at %s: %s; " CURE, c->endpoint, why);
        return WS__ERROR__DISCONNECTED;
    }
    c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = c->wake_fd < 0 ? -errno : zmq_open(c);
    if (r) {
        ws_log(WS_ERROR,
               "channel: can't connect to %s: %s; is " WS_ENV_SOCKET
               " an endpoint like " WS_DEFAULT_SOCKET "?",
               c->endpoint, c->zmq->strerror(-r));
        return WS__ERROR__DISCONNECTED;
    }
    r = say_hello(c, hello, deadline_ns);
    if (r) {
        ws_log(WS_ERROR, "channel: no answer from %s within %d ms; " CURE, c->endpoint, timeout_ms);
        return WS__ERROR__DISCONNECTED;
    }
    r = check_hello(c);
    if (!r && hello->local && c->hello->handoff_socket[0])
        r = ws_channel_handoff_open(c);
    if (!r)
        ws_channel_ring_open(c);
    return r;
}

int ws_channel_open(struct ws_channel **ret, const char *endpoint, const Ws__Hello *hello,
                    int timeout_ms)
{
    struct ws_channel *c = ws_alloc(sizeof(*c));
    if (!c)
        return WS__ERROR__INTERNAL;
    snprintf(c->endpoint, sizeof(c->endpoint), "%s", endpoint);
    c->loss = "every CUDA call fails from here on";
    c->zmq_fd = c->monitor_fd = c->wake_fd = c->handoff_fd = c->ring.doorbell = -1;
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->handoff_lock, NULL);
    pthread_cond_init(&c->flusher_cond, NULL);
    ws_list_init(&c->waiters);
    int r = open_all(c, hello, timeout_ms);
    if (r) {
        ws_channel_close(c, false);
        return r;
    }
    *ret = c;
    return WS__ERROR__OK;
}

void ws_channel_close(struct ws_channel *c, bool say_goodbye)
{
    if (!c)
        return;
    bool leak = false;
    if (c->sock) {
        ws_channel_flush(c);
        pthread_mutex_lock(&c->lock);
        if (say_goodbye && !c->dead) {
            Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
            m.goodbye = true;
            send_message(c, &m);
            set_int(c, ZMQ_LINGER, LINGER_MS);
        }
        c->dead = true; /* silently: nobody is to blame */
        c->flusher_stop = true;
        pthread_cond_signal(&c->flusher_cond);
        uint64_t deadline_ns = ws_clock_ns() + LEAVE_MS * WS_NS_PER_MS;
        while (!ws_list_empty(&c->waiters) && ws_clock_ns() < deadline_ns) {
            ws_channel_wake_all(c);
            pthread_mutex_unlock(&c->lock);
            poll(NULL, 0, 1);
            pthread_mutex_lock(&c->lock);
        }
        leak = !ws_list_empty(&c->waiters);
        pthread_mutex_unlock(&c->lock);
    }
    if (c->flusher_started)
        pthread_join(c->flusher, NULL);
    if (leak)
        return; /* a thread sits in a call and may still touch it; the process ends anyway */
    if (c->monitor)
        c->zmq->close(c->monitor);
    if (c->sock)
        c->zmq->close(c->sock);
    if (c->ctx)
        c->zmq->ctx_term(c->ctx);
    if (c->handoff_fd >= 0)
        close(c->handoff_fd);
    c->sock = NULL;
    if (say_goodbye)
        return; /* at exit: threads that still run may yet call, and find the channel dead */
    if (c->wake_fd >= 0)
        close(c->wake_fd);
    ws_ring_end(&c->ring);
    if (c->hello_message)
        ws__server_message__free_unpacked(c->hello_message, NULL);
    free(c->batch);
    free(c->gates);
    pthread_cond_destroy(&c->flusher_cond);
    pthread_mutex_destroy(&c->handoff_lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void ws_channel_abandon(struct ws_channel *c)
{
    /* The open handoff socket is this client's life in the eyes of the daemon: a child must not
     * prolong it. The rest is close-on-exec and harmless; no lock may be taken, no memory freed
     * here. */
    if (c->handoff_fd >= 0)
        close(c->handoff_fd);
    if (c->wake_fd >= 0)
        close(c->wake_fd);
    if (c->ring.doorbell >= 0)
        close(c->ring.doorbell);
}

// SPDX-License-Identifier: Apache-2.0
/* One thread, one poll over: a ROUTER for each endpoint and its monitor (which tells of lost
 * connections), the handoff socket (in one epoll descriptor), the eventfd of finished work, and
 * signals. A turn takes all messages that are there, up to a bound, so that replies of many
 * commands leave together and nothing starves.
 *
 * A connection's loss is matched to its client by the descriptor number that ZeroMQ tells with
 * each message and with the monitor's event. The monitor is read after a message from an unknown
 * peer came in and before it is handled: the end of the old connection that had the same number
 * was told before that number was free, so it is there by then. (Reading monitors before
 * receiving is too early: both connections may change hands in between, and the new client would
 * be ended.)
 *
 * A monitor may tell of a connection's end before we have received its last messages. They are in
 * the ROUTER's queue by then: ZeroMQ puts what it has read of a connection there before it reads
 * on and finds the end. So that client is dropped when the ROUTER was found empty after that.
 *
 * ZeroMQ's descriptors tell of changes only, and any call on a socket may take the change in.
 * Hence, before we sleep, each ROUTER is asked whether it has messages; a monitor is only ever
 * read, until it is empty, and needs no asking. (zmq_poll() does more of the same, and two
 * system calls more: a fifth of a synchronising call.) */
#include "backend/wire/handoff.h"
#include "backend/process/loop.h"

#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "backend/process/activation.h"
#include "backend/process/metrics.h"
#include "backend/process/notify.h"
#include "backend/process/paths.h"
#include "backend/wire/peer.h"
#include "backend/process/server.h"
#include "backend/process/zap.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "protocol/handoff.h"

enum { MESSAGES_PER_TURN = 256, SEND_HWM = 32, RECV_HWM = 64, BACKLOG = 1024, LINGER_MS = 500 };
enum {
    POLL_WAKE,
    POLL_SIGNAL,
    POLL_SIDE,
    POLL_ZAP,
    POLL_METRICS,
    POLL_FIRST_SOCKET
}; /* then each endpoint's monitor and router */

struct endpoint {
    const char *name;
    const char *path; /* of ipc://; NULL: tcp */
    int passed;       /* the service manager's listener; -1: none */
    int lock;         /* -1: none */
    void *router, *monitor;
};

struct loop {
    const struct ws_config *config;
    struct ws_server *server;
    void *zmq;
    struct endpoint endpoints[WS_CONFIG_MAX_LIST];
    unsigned n_endpoints;
    void *zap; /* NULL: nothing comes over tcp */
    struct ws_activation activation;
    struct ws_metrics *metrics; /* NULL: off */
    int signal_fd;
    uint64_t watchdog_ns, watchdog_next_ns; /* 0: nobody watches */
    bool draining, stop;
    uint64_t drain_until_ns;
    struct ws_frame frames[WS_MAX_FRAMES];
    zmq_msg_t first; /* what frames[0] points into, while a message is handled */
};

/* ---- transport ---- */

static int transport_send(void *arg, const struct ws_peer *to, const void *data, size_t n)
{
    struct loop *l = arg;
    void *router = l->endpoints[to->socket].router;
    if (zmq_send(router, to->id, to->n, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return errno == EAGAIN ? -EAGAIN : -EHOSTUNREACH;
    return zmq_send(router, data, n, ZMQ_DONTWAIT) < 0 ? -EHOSTUNREACH : 0;
}

static void transport_info(void *arg, const struct ws_message *m, struct ws_peer_info *ret)
{
    struct loop *l = arg;
    unsigned uid, gid, pid;
    int at = -1;
    const char *address = zmq_msg_gets(&l->first, "Peer-Address");
    const char *user = zmq_msg_gets(&l->first, WS_ZAP_USER);
    ret->srcfd = zmq_msg_get(&l->first, ZMQ_SRCFD);
    ret->ipc = l->endpoints[m->peer->socket].path != NULL;
    if (ret->ipc && address && sscanf(address, "%*[^:]:%u:%u:%u%n", &uid, &gid, &pid, &at) == 3 &&
        at > 0) {
        ret->has_uid = true;
        ret->uid = uid;
        ret->pid = pid;
    }
    ret->gone = ws_peer_gone(ret->srcfd, ret->pid);
    if (!ret->ipc && user && sscanf(user, "%u", &ret->uid) == 1)
        ret->has_uid = true;
}

/* ---- sockets ---- */

static int option_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value)) ? -errno : 0;
}

static int set_options(struct loop *l, struct endpoint *e)
{
    int64_t max = l->config->limits.max_message_bytes;
    int ms = (int)l->config->heartbeat_s * 1000;
    int r = zmq_setsockopt(e->router, ZMQ_MAXMSGSIZE, &max, sizeof(max)) ? -errno : 0;
    r = r ? r : option_int(e->router, ZMQ_ROUTER_MANDATORY, 1);
    r = r ? r : option_int(e->router, ZMQ_SNDHWM, SEND_HWM);
    r = r ? r : option_int(e->router, ZMQ_RCVHWM, RECV_HWM);
    r = r ? r : option_int(e->router, ZMQ_BACKLOG, BACKLOG);
    r = r ? r : option_int(e->router, ZMQ_LINGER, LINGER_MS);
    if (!e->path) { /* a stopped local client is alive; a silent remote one may not be */
        r = r ? r : option_int(e->router, ZMQ_HEARTBEAT_IVL, ms);
        r = r ? r : option_int(e->router, ZMQ_HEARTBEAT_TIMEOUT, 3 * ms);
        r = r ? r : option_int(e->router, ZMQ_IPV6, 1);
        r = r ? r : ws_zap_guard(e->router, &l->config->curve);
    }
    return r;
}

static int give_to_group(const char *path, const char *group)
{
    struct group *g = getgrnam(group);
    if (!g) {
        ws_log(WS_ERROR,
               "loop: socket_group \"%s\" does not exist; make it (groupadd --system %s) or name "
               "another",
               group, group);
        return WS_LOOP_E_REFUSED;
    }
    if (!chown(path, (uid_t)-1, g->gr_gid))
        return 0;
    ws_log(WS_ERROR, "loop: cannot give %s to group %s: %s", path, group, strerror(errno));
    return WS_LOOP_E_REFUSED;
}

static int claim(struct endpoint *e)
{
    int r = ws_path_claim(e->path, &e->lock);
    if (!r)
        return 0;
    if (r == WS_PATH_E_SERVED)
        ws_log(WS_ERROR,
               "loop: another daemon serves %s already; stop it, or give this one another --socket",
               e->name);
    else if (r == -EEXIST)
        ws_log(WS_ERROR,
               "loop: %s is there and is no socket; remove it, or choose another --socket",
               e->path);
    else
        ws_log(WS_ERROR, "loop: cannot use %s: %s (its directory must be writable for this user)",
               e->name, strerror(-r));
    return WS_LOOP_E_REFUSED;
}

static int open_endpoint(struct loop *l, unsigned i)
{
    struct endpoint *e = &l->endpoints[i];
    const struct ws_config *c = l->config;
    char monitor[64];
    e->name = c->endpoints[i];
    e->lock = e->passed = -1;
    l->n_endpoints = i + 1;
    if (!strncmp(e->name, "ipc://", 6)) {
        e->path = e->name + 6;
        e->passed = ws_activation_take(&l->activation, SOCK_STREAM, e->path);
        int r = e->passed < 0 ? claim(e) : 0;
        if (r)
            return r;
    } else if (!l->zap && !(l->zap = ws_zap_open(l->zmq))) {
        return ws_raise(-errno);
    }
    e->router = zmq_socket(l->zmq, ZMQ_ROUTER);
    e->monitor = zmq_socket(l->zmq, ZMQ_PAIR);
    if (!e->router || !e->monitor)
        return ws_raise(-errno);
    int r = set_options(l, e);
    if (!r && e->passed >= 0)
        r = option_int(e->router, ZMQ_USE_FD, e->passed);
    if (r)
        return ws_raise(r);
    snprintf(monitor, sizeof(monitor), "inproc://monitor-%u", i);
    if (zmq_socket_monitor(e->router, monitor, ZMQ_EVENT_DISCONNECTED) ||
        zmq_connect(e->monitor, monitor))
        return ws_raise(-errno);
    mode_t old = umask(~c->socket_mode & 0777);
    r = zmq_bind(e->router, e->name) ? -errno : 0;
    umask(old);
    if (r) {
        ws_log(WS_ERROR, "loop: cannot listen at %s: %s", e->name, zmq_strerror(-r));
        return WS_LOOP_E_REFUSED;
    }
    return e->path && c->socket_group && e->passed < 0 ? give_to_group(e->path, c->socket_group)
                                                       : 0;
}

/* One handoff socket serves the clients of all ipc endpoints. */
static int open_side(struct loop *l)
{
    char path[PATH_MAX];
    for (unsigned i = 0; i < l->n_endpoints; i++) {
        if (!l->endpoints[i].path)
            continue;
        int r = ws_handoff_path(l->endpoints[i].name, path, sizeof(path));
        int passed = r ? -1 : ws_activation_take(&l->activation, SOCK_SEQPACKET, path);
        if (passed >= 0)
            return ws_server_handoff_adopt(l->server, path, passed);
        if (!r)
            r = ws_server_handoff_listen(l->server, path, l->config->socket_mode);
        if (r) {
            ws_log(WS_ERROR, "loop: cannot listen at %s: %s", path, strerror(-r));
            return WS_LOOP_E_REFUSED;
        }
        return l->config->socket_group ? give_to_group(path, l->config->socket_group) : 0;
    }
    return 0;
}

static void close_endpoints(struct loop *l)
{
    for (unsigned i = 0; i < l->n_endpoints; i++) {
        struct endpoint *e = &l->endpoints[i];
        if (e->router)
            zmq_socket_monitor(e->router, NULL, 0);
        if (e->monitor)
            zmq_close(e->monitor);
        if (e->router)
            zmq_close(e->router);
        if (e->lock >= 0)
            ws_path_release(e->path, e->lock);
    }
    if (l->zap)
        zmq_close(l->zap);
}

/* ---- what comes in ---- */

/* Events of two frames: number and value; address. */
static void read_monitor(struct loop *l, unsigned i)
{
    uint8_t event[6];
    char address[256];
    uint16_t number;
    int32_t fd;
    while (zmq_recv(l->endpoints[i].monitor, event, sizeof(event), ZMQ_DONTWAIT) == sizeof(event)) {
        (void)!zmq_recv(l->endpoints[i].monitor, address, sizeof(address), 0);
        memcpy(&number, event, sizeof(number));
        memcpy(&fd, event + 2, sizeof(fd));
        if (number == ZMQ_EVENT_DISCONNECTED)
            ws_server_disconnected(l->server, (uint8_t)i, fd);
    }
}

/* A frame after the first, which may be large: its bytes can be kept without copying them. */
struct held_frame {
    struct ws_buffer buffer;
    zmq_msg_t msg;
};

static void held_frame_end(struct ws_buffer *b)
{
    struct held_frame *h = WS_CONTAINER_OF(b, struct held_frame, buffer);
    zmq_msg_close(&h->msg);
    free(h);
}

/* Return: false: out of memory. */
static bool hold(struct ws_frame *f, zmq_msg_t *msg)
{
    struct held_frame *h = ws_alloc(sizeof(*h));
    if (!h)
        return false;
    h->buffer = (struct ws_buffer){.n_refs = 1, .end = held_frame_end};
    zmq_msg_init(&h->msg);
    zmq_msg_move(&h->msg, msg);
    *f = (struct ws_frame){zmq_msg_data(&h->msg), zmq_msg_size(&h->msg), &h->buffer};
    return true;
}

/* All frames of a message. */
static void receive_frames(struct loop *l, void *router, struct ws_message *m)
{
    uint64_t bytes = 0;
    bool more = true;
    while (more) {
        zmq_msg_t part;
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, router, 0) < 0) {
            /* all parts of a message are there at once; only a signal can intervene */
            zmq_msg_close(&part);
            if (errno == EINTR)
                continue;
            break;
        }
        struct ws_frame *f = m->n_frames < WS_MAX_FRAMES ? &l->frames[m->n_frames] : NULL;
        bytes += zmq_msg_size(&part);
        more = zmq_msg_more(&part);
        if (!m->n_frames) {
            zmq_msg_move(&l->first, &part);
            *f = (struct ws_frame){zmq_msg_data(&l->first), zmq_msg_size(&l->first), NULL};
            m->n_frames = 1;
        } else if (f && hold(f, &part)) {
            m->n_frames++;
        } else {
            m->oversized = true;
        }
        zmq_msg_close(&part);
    }
    m->oversized |= bytes > l->config->limits.max_message_bytes;
}

/* One message. Return: false: none there. */
static bool receive(struct loop *l, unsigned i)
{
    void *router = l->endpoints[i].router;
    struct ws_peer peer;
    int n = zmq_recv(router, peer.id, sizeof(peer.id), ZMQ_DONTWAIT);
    if (n < 0)
        return errno == EINTR;
    peer.socket = (uint8_t)i;
    peer.n = (uint8_t)WS_MIN(n, (int)sizeof(peer.id));
    struct ws_message m = {.peer = &peer, .frames = l->frames};
    zmq_msg_init(&l->first);
    receive_frames(l, router, &m);
    if (!ws_server_knows(
            l->server,
            &peer)) /* its descriptor may have been another's, whose end is on the monitor by now */
        read_monitor(l, i);
    ws_server_handle(l->server, &m);
    for (unsigned k = 0; k < m.n_frames; k++)
        ws_buffer_unref(l->frames[k].buffer);
    zmq_msg_close(&l->first);
    return true;
}

static void drain(struct loop *l, uint32_t signal)
{
    if (l->draining) {
        ws_log(WS_INFO, "loop: second signal, ending at once");
        l->stop = true;
        return;
    }
    ws_log(WS_INFO, "loop: draining signal=%u clients=%u timeout_s=%u", signal,
           ws_server_n_clients(l->server), l->config->drain_timeout_s);
    ws_notify("STOPPING=1\nSTATUS=Draining");
    l->draining = true;
    l->drain_until_ns = ws_clock_ns() + l->config->drain_timeout_s * WS_NS_PER_S;
    ws_server_drain(l->server);
}

static void on_signal(struct loop *l, const struct ws_loop_options *o)
{
    struct signalfd_siginfo si;
    while (read(l->signal_fd, &si, sizeof(si)) == sizeof(si)) {
        if (si.ssi_signo != SIGHUP) {
            drain(l, si.ssi_signo);
        } else if (o->reload) {
            ws_notify_reloading();
            if (o->reload(o->reload_arg))
                ws_server_policy_changed(l->server);
            ws_notify("READY=1");
        }
    }
}

static void drain_wake(const struct loop *l)
{
    uint64_t n;
    ssize_t ignored = read(ws_server_wake_fd(l->server), &n, sizeof(n));
    (void)ignored;
}

/* ---- the loop ---- */

/* ms from now; 0 if it is past. */
static int ms_until(uint64_t at_ns)
{
    int64_t left = (int64_t)(at_ns - ws_clock_ns());
    return (int)WS_MIN(
        WS_MAX((left + (int64_t)WS_NS_PER_MS - 1) / (int64_t)WS_NS_PER_MS, (int64_t)0),
        INT64_C(3600000));
}

static int sooner(int a_ms, int b_ms) /* -1: never */
{
    return a_ms < 0 ? b_ms : b_ms < 0 ? a_ms : WS_MIN(a_ms, b_ms);
}

static int poll_timeout(const struct loop *l, int server_ms)
{
    int ms = server_ms;
    if (l->draining)
        ms = sooner(ms, WS_MIN(ms_until(l->drain_until_ns), 100));
    if (l->watchdog_ns)
        ms = sooner(ms, ms_until(l->watchdog_next_ns));
    return ms;
}

static void feed_watchdog(struct loop *l)
{
    uint64_t now = l->watchdog_ns ? ws_clock_ns() : 0;
    if (!l->watchdog_ns || now < l->watchdog_next_ns)
        return;
    ws_notify("WATCHDOG=1");
    l->watchdog_next_ns = now + l->watchdog_ns;
}

static bool finished(struct loop *l, const struct ws_loop_options *o)
{
    if (l->draining && (ws_server_idle(l->server) || ws_clock_ns() >= l->drain_until_ns))
        l->stop = true;
    if (o->exit_when_idle && ws_server_had_client(l->server) && !ws_server_n_clients(l->server))
        l->stop = true;
    return l->stop;
}

static int descriptor_of(void *socket)
{
    int fd = -1;
    size_t n = sizeof(fd);
    return zmq_getsockopt(socket, ZMQ_FD, &fd, &n) ? -1 : fd;
}

static bool has_messages(void *router)
{
    int events = 0;
    size_t n = sizeof(events);
    return !zmq_getsockopt(router, ZMQ_EVENTS, &events, &n) && (events & ZMQ_POLLIN);
}

static void receive_all(struct loop *l)
{
    for (unsigned i = 0; i < l->n_endpoints; i++) {
        int k = 0;
        while (k < MESSAGES_PER_TURN && receive(l, i))
            k++;
        if (k < MESSAGES_PER_TURN)
            ws_server_emptied(l->server, (uint8_t)i);
    }
}

static int serve(struct loop *l, const struct ws_loop_options *o)
{
    struct pollfd p[POLL_FIRST_SOCKET + 2 * WS_CONFIG_MAX_LIST] = {
        [POLL_WAKE] = {.fd = ws_server_wake_fd(l->server), .events = POLLIN},
        [POLL_SIGNAL] = {.fd = l->signal_fd, .events = POLLIN},
        [POLL_SIDE] = {.fd = ws_server_handoff_fd(l->server), .events = POLLIN}, /* -1 is ignored */
    };
    unsigned n = POLL_FIRST_SOCKET;
    p[POLL_ZAP] = (struct pollfd){.fd = l->zap ? descriptor_of(l->zap) : -1, .events = POLLIN};
    p[POLL_METRICS] = (struct pollfd){.fd = ws_metrics_fd(l->metrics), .events = POLLIN};
    for (unsigned i = 0; i < l->n_endpoints; i++) {
        p[n++] = (struct pollfd){.fd = descriptor_of(l->endpoints[i].monitor), .events = POLLIN};
        p[n++] = (struct pollfd){.fd = descriptor_of(l->endpoints[i].router), .events = POLLIN};
    }
    while (!finished(l, o)) {
        int timeout = poll_timeout(l, ws_server_turn(l->server));
        if (finished(l, o))
            break;
        for (unsigned i = 0; timeout && i < l->n_endpoints; i++)
            if (has_messages(l->endpoints[i].router))
                timeout = 0;
        if (l->zap && has_messages(l->zap))
            timeout = 0;
        if (poll(p, n, timeout) < 0) {
            if (errno == EINTR)
                continue;
            return ws_raise(-errno);
        }
        feed_watchdog(l);
        if (p[POLL_WAKE].revents)
            drain_wake(l);
        if (p[POLL_SIGNAL].revents)
            on_signal(l, o);
        if (l->zap)
            ws_zap_answer(l->zap, &l->config->access);
        for (unsigned i = 0; i < l->n_endpoints; i++)
            if (p[POLL_FIRST_SOCKET + 2 * i].revents)
                read_monitor(l, i);
        receive_all(l);
        if (p[POLL_SIDE].revents)
            ws_server_handoff_turn(l->server);
        if (p[POLL_METRICS].revents)
            ws_metrics_turn(l->metrics, l->server);
    }
    return 0;
}

static void tell_ready(const struct ws_loop_options *o)
{
    if (o->ready_fd >= 0) {
        ssize_t ignored = write(o->ready_fd, "1", 1);
        (void)ignored; /* who asked is gone */
        close(o->ready_fd);
    }
    ws_notify("READY=1\nSTATUS=Serving");
}

/* All sockets there are. */
static int open_all(struct loop *l)
{
    int r = 0;
    for (unsigned i = 0; !r && l->config->endpoints[i]; i++)
        r = open_endpoint(l, i);
    if (!r)
        r = open_side(l);
    if (ws_activation_end(&l->activation) && !r)
        r = WS_LOOP_E_REFUSED;
    if (!r && l->config->metrics) {
        r = ws_metrics_open(&l->metrics, l->config->metrics);
        if (r)
            ws_log(WS_ERROR, "loop: cannot listen at %s for metrics: %s", l->config->metrics,
                   strerror(-r));
        r = r ? WS_LOOP_E_REFUSED : 0;
    }
    return r;
}

int ws_loop_run(const struct ws_config *config, struct ws_device **devices, uint32_t n_devices,
                const struct ws_loop_options *o)
{
    struct loop *l = calloc(1, sizeof(*l));
    sigset_t set;
    int r = 0;
    if (!l)
        return ws_raise(-ENOMEM);
    l->config = config;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    l->zmq = zmq_ctx_new();
    struct ws_transport transport = {l, transport_send, transport_info};
    if (l->signal_fd < 0 || !l->zmq)
        r = ws_raise(-errno);
    if (!r)
        zmq_ctx_set(l->zmq, ZMQ_MAX_SOCKETS, 16384);
    if (!r)
        r = ws_server_new(&l->server, config, devices, n_devices, &transport);
    ws_activation_read(&l->activation);
    if (!r)
        r = open_all(l);
    if (!r) {
        l->watchdog_ns = ws_notify_watchdog_ns();
        tell_ready(o);
        ws_log(WS_INFO, "loop: serving endpoint=%s gpus=%u", config->endpoints[0], n_devices);
        r = serve(l, o);
        ws_server_say_goodbye(l->server);
    }
    ws_server_free(l->server);
    ws_metrics_close(l->metrics);
    close_endpoints(l);
    if (l->zmq)
        zmq_ctx_term(l->zmq);
    if (l->signal_fd >= 0)
        close(l->signal_fd);
    free(l);
    return r;
}

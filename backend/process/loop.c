// SPDX-License-Identifier: Apache-2.0
/* One thread, one poll over: the door (all connections of clients, in one epoll descriptor), the
 * handoff socket (in another), the eventfd of finished work, and signals. A turn takes what is
 * there, up to a bound, so that replies of many commands leave together and nothing starves. */
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
#include <unistd.h>

#include "backend/process/activation.h"
#include "backend/process/endpoint.h"
#include "backend/process/metrics.h"
#include "backend/process/notify.h"
#include "backend/process/paths.h"
#include "backend/process/probe.h"
#include "backend/process/server.h"
#include "backend/wire/closer.h"
#include "backend/wire/door.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "protocol/handoff.h"

enum { POLL_WAKE, POLL_SIGNAL, POLL_SIDE, POLL_METRICS, POLL_DOOR, POLL_PROBE, POLL_STEPS, N_POLL };
#define PROBE_RETRY_NS (100 * WS_NS_PER_MS)

struct endpoint {
    const char *name;
    const char *path; /* of ipc://; NULL: tcp */
    int lock;         /* -1: none; the listener was passed by the service manager */
};

struct loop {
    const struct ws_config *config;
    struct ws_server *server;
    struct ws_closer *closer;
    struct ws_door *door;
    struct endpoint endpoints[WS_CONFIG_MAX_LIST];
    unsigned n_endpoints;
    struct ws_activation activation;
    struct ws_metrics *metrics; /* NULL: off */
    int signal_fd;
    uint64_t watchdog_ns, watchdog_next_ns; /* 0: nobody watches */
    struct ws_probe probe;                  /* of the first ipc endpoint */
    bool draining, stop;
    uint64_t drain_until_ns;
};

/* ---- between the server and the door ---- */

static int transport_send(void *arg, const struct ws_peer *to, const void *data, size_t n)
{
    struct loop *l = arg;
    return ws_door_send(l->door, to, data, n);
}

static void transport_info(void *arg, const struct ws_message *m, struct ws_peer_info *ret)
{
    struct loop *l = arg;
    ws_door_info(l->door, m, ret);
}

static bool transport_hung_up(void *arg, const struct ws_peer *p)
{
    struct loop *l = arg;
    return ws_door_hung_up(l->door, p);
}

static void door_message(void *arg, const struct ws_message *m)
{
    struct loop *l = arg;
    ws_server_handle(l->server, m);
}

static bool door_known(void *arg, const struct ws_peer *p)
{
    struct loop *l = arg;
    return ws_server_knows(l->server, p);
}

static bool door_wants(void *arg, const struct ws_peer *p)
{
    struct loop *l = arg;
    return ws_server_wants(l->server, p);
}

static void door_ended(void *arg, const struct ws_peer *p)
{
    struct loop *l = arg;
    ws_server_disconnected(l->server, p);
}

static int open_door(struct loop *l)
{
    const struct ws_config *c = l->config;
    struct ws_door_options o = {
        .ops = {l, door_message, door_known, door_wants, door_ended},
        .accounts = ws_server_accounts(l->server),
        .access = &c->access,
        .curve_secret = c->curve.secret_key,
        .max_message_bytes = c->limits.max_message_bytes,
        .heartbeat_s = c->heartbeat_s,
    };
    int r = ws_closer_new(&l->closer, ws_server_wake_fd(l->server));
    o.closer = l->closer;
    ws_server_use_closer(l->server, l->closer);
    return r ? ws_forward(r) : ws_door_new(&l->door, &o);
}

/* ---- sockets ---- */

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

static int cannot_listen(const struct endpoint *e, const char *why)
{
    ws_log(WS_ERROR, "loop: cannot listen at %s: %s", e->name, why);
    return WS_LOOP_E_REFUSED;
}

static int open_ipc(struct loop *l, struct endpoint *e)
{
    const struct ws_config *c = l->config;
    int fd = ws_activation_take(&l->activation, SOCK_STREAM, e->path);
    if (fd >= 0)
        return ws_door_listen(l->door, fd, true);
    int r = claim(e);
    if (r)
        return r;
    fd = ws_unix_listen(e->path, SOCK_STREAM, c->socket_mode);
    if (fd < 0)
        return cannot_listen(e, strerror(-fd));
    r = ws_door_listen(l->door, fd, true);
    return !r && c->socket_group ? give_to_group(e->path, c->socket_group) : r;
}

static int open_tcp(struct loop *l, struct endpoint *e)
{
    const char *why;
    int fd = ws_endpoint_listen_tcp(e->name + strlen("tcp://"), &why);
    if (fd < 0)
        return cannot_listen(e, why ? why : strerror(-fd));
    return ws_door_listen(l->door, fd, false);
}

static int open_endpoint(struct loop *l, unsigned i)
{
    struct endpoint *e = &l->endpoints[i];
    bool ipc = !strncmp(l->config->endpoints[i], "ipc://", strlen("ipc://"));
    e->name = l->config->endpoints[i];
    e->path = ipc ? e->name + strlen("ipc://") : NULL;
    e->lock = -1;
    l->n_endpoints = i + 1;
    return ipc ? open_ipc(l, e) : open_tcp(l, e);
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

static void release_endpoints(struct loop *l)
{
    for (unsigned i = 0; i < l->n_endpoints; i++)
        if (l->endpoints[i].lock >= 0)
            ws_path_release(l->endpoints[i].path, l->endpoints[i].lock);
}

/* ---- what comes in ---- */

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

static int poll_timeout(const struct loop *l, int server_ms)
{
    int ms = server_ms;
    if (l->draining)
        ms = ws_timeout_sooner(ms, WS_MIN(ws_timeout_until(l->drain_until_ns), 100));
    if (l->watchdog_ns)
        ms = ws_timeout_sooner(ms, ws_timeout_until(l->watchdog_next_ns));
    return ms;
}

static void feed_watchdog(struct loop *l, uint64_t now)
{
    ws_notify("WATCHDOG=1");
    l->watchdog_next_ns = now + l->watchdog_ns;
}

/* The watchdog is fed when a request of our own was answered. Where there is no ipc endpoint, it is
 * fed because the loop turns. */
static void watch(struct loop *l)
{
    uint64_t now = l->watchdog_ns ? ws_clock_ns() : 0;
    if (!l->watchdog_ns)
        return;
    if (ws_probe_answered(&l->probe))
        feed_watchdog(l, now);
    else if (now >= l->watchdog_next_ns && !l->probe.path)
        feed_watchdog(l, now);
    else if (now >= l->watchdog_next_ns) /* waits for the answer, or tries again */
        l->watchdog_next_ns = now + (ws_probe_ask(&l->probe) ? PROBE_RETRY_NS : l->watchdog_ns);
}

static void open_probe(struct loop *l)
{
    const char *path = NULL;
    for (unsigned i = l->n_endpoints; i--;)
        path = l->endpoints[i].path ? l->endpoints[i].path : path;
    l->watchdog_ns = ws_notify_watchdog_ns();
    ws_probe_init(&l->probe, l->watchdog_ns ? path : NULL);
}

static bool finished(struct loop *l, const struct ws_loop_options *o)
{
    if (l->draining && (ws_server_idle(l->server) || ws_clock_ns() >= l->drain_until_ns))
        l->stop = true;
    if (o->exit_when_idle && ws_server_had_client(l->server) && !ws_server_n_clients(l->server))
        l->stop = true;
    return l->stop;
}

static int serve(struct loop *l, const struct ws_loop_options *o)
{
    struct pollfd p[N_POLL] = {
        [POLL_WAKE] = {.fd = ws_server_wake_fd(l->server), .events = POLLIN},
        [POLL_SIGNAL] = {.fd = l->signal_fd, .events = POLLIN},
        [POLL_SIDE] = {.fd = ws_server_handoff_fd(l->server), .events = POLLIN}, /* -1 is ignored */
        [POLL_METRICS] = {.events = POLLIN},
        [POLL_DOOR] = {.fd = ws_door_fd(l->door), .events = POLLIN},
    };
    while (!finished(l, o)) {
        int timeout = poll_timeout(l, ws_server_turn(l->server));
        if (finished(l, o))
            break;
        int door_ms = ws_door_timeout_ms(l->door),
            side_ms = ws_server_handoff_timeout_ms(l->server),
            metrics_ms = ws_metrics_timeout_ms(l->metrics);
        p[POLL_METRICS].fd = ws_metrics_fd(l->metrics);
        p[POLL_PROBE] = (struct pollfd){.fd = ws_probe_fd(&l->probe), .events = POLLIN};
        p[POLL_STEPS] = (struct pollfd){.fd = ws_server_steps_fd(l->server), .events = POLLIN};
        int n = poll(p, N_POLL,
                     ws_timeout_sooner(ws_timeout_sooner(timeout, metrics_ms),
                                       ws_timeout_sooner(door_ms, side_ms)));
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return ws_raise(-errno);
        }
        if (p[POLL_WAKE].revents) {
            drain_wake(l);
            ws_closer_turn(l->closer);
        }
        if (p[POLL_SIGNAL].revents)
            on_signal(l, o);
        if (p[POLL_DOOR].revents || !door_ms || !n)
            ws_door_turn(l->door);
        if (p[POLL_SIDE].revents || !side_ms)
            ws_server_handoff_turn(l->server);
        if (p[POLL_STEPS].revents)
            ws_server_steps_turn(l->server);
        if (p[POLL_METRICS].revents || (!metrics_ms && p[POLL_METRICS].fd >= 0))
            ws_metrics_turn(l->metrics, l->server);
        watch(l);
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
        r = ws_metrics_open(&l->metrics, l->server, l->config->metrics);
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
    struct ws_transport transport = {l, transport_send, transport_info, transport_hung_up};
    if (l->signal_fd < 0)
        r = ws_raise(-errno);
    if (!r)
        r = ws_server_new(&l->server, config, devices, n_devices, &transport);
    if (!r)
        r = open_door(l);
    ws_activation_read(&l->activation);
    if (!r)
        r = open_all(l);
    if (!r) {
        open_probe(l);
        tell_ready(o);
        ws_log(WS_INFO, "loop: serving endpoint=%s gpus=%u", config->endpoints[0], n_devices);
        r = serve(l, o);
        ws_server_say_goodbye(l->server);
        ws_probe_deinit(&l->probe);
    }
    ws_metrics_close(l->metrics);
    ws_server_free(l->server);
    release_endpoints(l);
    ws_door_free(l->door);
    ws_closer_free(l->closer);
    if (l->signal_fd >= 0)
        close(l->signal_fd);
    free(l);
    return r;
}

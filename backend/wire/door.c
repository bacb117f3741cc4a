// SPDX-License-Identifier: Apache-2.0
/* All descriptors are in one epoll descriptor, which tells of changes only (EPOLLET): a connection
 * that may have something to be read stands in a queue of ours until it is read empty. So whoever
 * is not to be read for a while just stays there, and nobody is told of it twice.
 *
 * There are two such queues. Clients are served first, each for a bounded time in its turn.
 * Whoever has not said hello yet shares a small part of the turn with all others of the kind,
 * since anybody can come in any number. Of them one connection of each account is served in turn,
 * so that it does not help to have many.
 *
 * A connection that has not said hello is the first to go: when its account may have no more
 * connections the oldest of those that it has leaves room, and when the process has no descriptor
 * left the oldest one of whoever has the most connections. If nobody can go, the new one is closed
 * at once (wire/accept.c). */
#include "backend/wire/door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/wire/connection.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/macros.h"

enum { EVENTS = 128, LINGER_MS = 500, NO_ROOM_RETRY_MS = 5 };
#define CLIENTS_NS      (500 * WS_NS_PER_US) /* of a turn, for clients */
#define STRANGERS_NS    (250 * WS_NS_PER_US) /* …and for those who have not said hello */
#define LOOK_NS         WS_NS_PER_S
#define INTRODUCTION_NS (5 * WS_NS_PER_S)  /* as long may the handshake take */
#define SILENT_NS       (60 * WS_NS_PER_S) /* …and silence without a hello */
#define NO_ROOM_NS      (10 * WS_NS_PER_S)
#define CLOSE_OUT_NS    WS_NS_PER_S

/* ---- who is there ---- */

static struct ws_connection *find(struct ws_door *d, const struct ws_peer *p)
{
    struct ws_connection *k = d->last;
    if (k && k->peer.id == p->id)
        return k;
    HASH_FIND(hh, d->by_peer, &p->id, sizeof(p->id), k);
    if (k)
        d->last = k;
    return k;
}

bool ws_door_known(const struct ws_connection *k)
{
    return k->door->options.ops.known(k->door->options.ops.arg, &k->peer);
}

/* The connections of an account, and those of them that have not said hello and can be read. */
struct ws_door_guests {
    const struct ws_account *account; /* each connection has a reference */
    unsigned n;
    struct ws_list ready;
    struct ws_list node; /* door: ready_new */
    UT_hash_handle hh;
};

/* Return: NULL: no memory. */
static struct ws_door_guests *join_guests(struct ws_door *d, const struct ws_account *a)
{
    struct ws_door_guests *g;
    HASH_FIND_PTR(d->guests, &a, g);
    if (!g) {
        g = ws_alloc(sizeof(*g));
        if (!g)
            return NULL;
        g->account = a;
        ws_list_init(&g->ready);
        ws_list_init(&g->node);
        HASH_ADD_PTR(d->guests, account, g);
    }
    g->n++;
    return g;
}

static void leave_guests(struct ws_door *d, struct ws_door_guests *g)
{
    if (!g || --g->n)
        return;
    HASH_DEL(d->guests, g);
    ws_list_remove(&g->node);
    free(g);
}

/* It can be read, in its turn. */
static void get_ready(struct ws_connection *k)
{
    struct ws_door *d = k->door;
    if (!ws_list_empty(&k->ready))
        return;
    if (ws_door_known(k)) {
        ws_list_append(&d->ready, &k->ready);
        return;
    }
    ws_list_append(&k->guests->ready, &k->ready);
    if (ws_list_empty(&k->guests->node))
        ws_list_append(&d->ready_new, &k->guests->node);
}

/* Nobody finds it any more. */
static void forget(struct ws_connection *k)
{
    struct ws_door *d = k->door;
    if (d->last == k)
        d->last = NULL;
    HASH_DEL(d->by_peer, k);
}

static void free_connection(struct ws_connection *k)
{
    struct ws_door *d = k->door;
    struct ws_door_guests *g = k->guests;
    d->n--;
    ws_connection_free(k);
    leave_guests(d, g);
}

/* Its messages have all been handed over. */
static void end(struct ws_connection *k)
{
    if (!k->end_ns) {
        forget(k);
        k->door->options.ops.ended(k->door->options.ops.arg, &k->peer);
    }
    free_connection(k);
}

static void look_within(struct ws_door *d, uint64_t ns)
{
    uint64_t at = ws_clock_ns() + ns;
    if (!d->look_ns || at < d->look_ns)
        d->look_ns = at;
}

/* Ends it, but leaves it the time to fetch what it was told last. */
static void close_out(struct ws_connection *k)
{
    forget(k);
    k->door->options.ops.ended(k->door->options.ops.arg, &k->peer);
    k->end_ns = ws_clock_ns() + CLOSE_OUT_NS;
    ws_connection_stop_reading(k);
    if (ws_connection_flush(k))
        shutdown(k->fd, SHUT_WR);
    look_within(k->door, CLOSE_OUT_NS);
    if (k->hung_up)
        free_connection(k);
}

/* ---- coming in ---- */

/* Who may go for a new one: the oldest without a hello, of @a, or (NULL) of whoever has the most
 * connections. NULL: nobody. */
static struct ws_connection *oldest_stranger(struct ws_door *d, const struct ws_account *a)
{
    struct ws_connection *found = NULL;
    uint64_t most = 0;
    ws_list_for_each (n, &d->all) {
        struct ws_connection *k = ws_list_entry(n, struct ws_connection, node);
        if ((!k->end_ns && ws_door_known(k)) || !ws_accept_lets_go(a, k->account, &most))
            continue;
        found = k;
        if (a)
            break;
    }
    return found;
}

static bool make_room(void *arg, const struct ws_account *a)
{
    struct ws_connection *k = oldest_stranger(arg, a);
    if (k)
        end(k);
    return k != NULL;
}

static void name_address(struct ws_connection *k, const struct sockaddr_storage *from)
{
    char text[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *in = (const struct sockaddr_in *)from;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
    bool six = from->ss_family == AF_INET6;
    inet_ntop(from->ss_family, six ? (const void *)&in6->sin6_addr : (const void *)&in->sin_addr,
              text, sizeof(text));
    snprintf(k->address, sizeof(k->address), "%s", text);
}

static void enter(void *arg, const struct ws_newly_accepted *n)
{
    struct ws_door *d = arg;
    int on = 1;
    bool local = n->from.ss_family == AF_UNIX;
    struct ws_connection *k = ws_connection_new(d, n->fd, n->account, local);
    if (!k)
        return;
    k->source = WS_DOOR_CONNECTION;
    k->peer.id = ++d->last_id;
    if (local) {
        k->has_uid = n->cred.uid != WS_ACCOUNT_NO_UID;
        k->uid = n->cred.uid;
        k->pid = (uint32_t)n->cred.pid;
    } else {
        name_address(k, &n->from);
        (void)setsockopt(n->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = k};
    ws_list_append(&d->all, &k->node);
    HASH_ADD(hh, d->by_peer, peer.id, sizeof(k->peer.id), k);
    d->n++;
    k->guests = join_guests(d, k->account);
    if (!k->guests || epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, n->fd, &e)) {
        end(k);
        return;
    }
    look_within(d, LOOK_NS);
    (void)ws_connection_flush(k);
}

static struct ws_accept_ops accept_ops(struct ws_door *d)
{
    return (struct ws_accept_ops){d, d->options.accounts, d->options.closer, enter, make_room};
}

bool ws_door_admit(struct ws_connection *k, const uint8_t key[WS_CURVE_KEY_BYTES])
{
    struct ws_door *d = k->door;
    struct ws_accept_ops ops = accept_ops(d);
    const struct ws_allowed *w = ws_access_allows(d->options.access, key);
    size_t waits = k->n_left + k->n_queue;
    if (!w) {
        char text[WS_CURVE_TEXT_BYTES];
        ws_curve_encode(text, key);
        if (ws_accept_may_say())
            ws_log(WS_WARN, "door: refused address=%s key=%s: not in curve_clients", k->address,
                   text);
        return false;
    }
    struct ws_account *a = ws_account_of_user(d->options.accounts, w->uid);
    if (!ws_accept_charge(&ops, a))
        return false;
    struct ws_door_guests *g = join_guests(d, a);
    if (!g || ws_account_charge(a, WS_RESOURCE_QUEUED_BYTES, waits)) {
        if (g)
            ws_accept_say_refused(a, WS_RESOURCE_QUEUED_BYTES, waits);
        leave_guests(d, g);
        ws_account_release(a, WS_RESOURCE_CONNECTIONS, 1);
        ws_account_unref(a);
        return false;
    }
    ws_account_release(k->account, WS_RESOURCE_QUEUED_BYTES, waits);
    ws_account_release(k->account, WS_RESOURCE_CONNECTIONS, 1);
    leave_guests(d, k->guests);
    ws_account_unref(k->account);
    k->account = a;
    k->guests = g;
    k->has_uid = true;
    k->uid = w->uid;
    return true;
}

/* ---- the turn ---- */

static void on_event(const struct epoll_event *e)
{
    enum ws_door_source *source = e->data.ptr;
    if (*source == WS_DOOR_LISTENER) {
        WS_CONTAINER_OF(source, struct ws_door_listener, source)->accept.more = true;
        return;
    }
    struct ws_connection *k = WS_CONTAINER_OF(source, struct ws_connection, source);
    k->hung_up |= (e->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (e->events & EPOLLOUT && ws_connection_flush(k) && k->end_ns)
        shutdown(k->fd, SHUT_WR);
    if (e->events & ~(uint32_t)EPOLLOUT) {
        k->readable = true;
        get_ready(k);
    }
}

static void take_events(struct ws_door *d)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(d->epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < n; i++)
        on_event(&events[i]);
}

static void serve(struct ws_connection *k)
{
    switch (ws_connection_serve(k)) {
    case WS_CONNECTION_MORE:
        get_ready(k);
        break;
    case WS_CONNECTION_SHUT:
        close_out(k);
        break;
    case WS_CONNECTION_END:
        end(k);
        break;
    default:
        break;
    }
}

/* Each client once, as far as the time goes; the first in any case. */
static void serve_clients(struct ws_list *ready, uint64_t ns)
{
    uint64_t until = ws_clock_ns() + ns;
    struct ws_list now, *n;
    if (ws_list_empty(ready))
        return;
    ws_list_init(&now);
    while ((n = ws_list_pop(ready)))
        ws_list_append(&now, n);
    do {
        n = ws_list_pop(&now);
        serve(ws_list_entry(n, struct ws_connection, ready));
    } while (!ws_list_empty(&now) && ws_clock_ns() < until);
    while ((n = ws_list_pop(ready))) /* behind those that had no turn yet */
        ws_list_append(&now, n);
    while ((n = ws_list_pop(&now)))
        ws_list_append(ready, n);
}

/* Each stranger once, as far as the time goes, the accounts in turn. */
static void serve_strangers(struct ws_door *d, uint64_t ns)
{
    uint64_t until = ws_clock_ns() + ns;
    struct ws_list served, *n; /* accounts of which each has had its turn */
    ws_list_init(&served);
    d->turn++;
    while ((n = ws_list_pop(&d->ready_new))) {
        struct ws_door_guests *g = ws_list_entry(n, struct ws_door_guests, node);
        if (ws_list_empty(&g->ready))
            continue;
        struct ws_connection *k = ws_list_entry(g->ready.next, struct ws_connection, ready);
        if (k->turn == d->turn) {
            ws_list_append(&served, &g->node);
            continue;
        }
        ws_list_remove(&k->ready);
        if (!ws_list_empty(&g->ready))
            ws_list_append(&d->ready_new, &g->node);
        k->turn = d->turn;
        serve(k);
        if (ws_clock_ns() >= until)
            break;
    }
    while ((n = ws_list_pop(&served)))
        ws_list_append(&d->ready_new, n);
}

/* Whether the other end of a connection over tcp is silent for too long; it is asked in time. */
static bool is_silent(struct ws_connection *k, uint64_t now)
{
    uint64_t beat = k->door->options.heartbeat_s * WS_NS_PER_S;
    if (now - k->heard_ns >= 3 * beat)
        return true;
    if (now - k->heard_ns >= beat && now - k->asked_ns >= beat) {
        k->asked_ns = now;
        ws_zmtp_ping(&k->zmtp);
        (void)ws_connection_flush(k);
    }
    return false;
}

/* Why a connection is to be closed now; NULL: it may stay. */
static const char *overdue(struct ws_connection *k, uint64_t now, bool known)
{
    if (k->end_ns)
        return now >= k->end_ns ? "" : NULL;
    if (k->zmtp.stage != WS_ZMTP_OPEN)
        return now - k->since_ns >= INTRODUCTION_NS ? "it does not introduce itself" : NULL;
    if (!known && now - k->heard_ns >= SILENT_NS)
        return "it says nothing";
    if (k->no_room_ns && now - k->no_room_ns >= NO_ROOM_NS) {
        ws_accept_say_refused(k->account, WS_RESOURCE_QUEUED_BYTES, k->no_room_bytes);
        return "there is no room for its messages";
    }
    return !k->local && is_silent(k, now) ? "it does not answer any more" : NULL;
}

/* Looks through all connections, about once a second while that may lead to anything. */
static void look_through(struct ws_door *d)
{
    uint64_t now = ws_clock_ns();
    if (!d->look_ns || now < d->look_ns)
        return;
    d->look_ns = 0;
    ws_list_for_each_safe (n, &d->all) {
        struct ws_connection *k = ws_list_entry(n, struct ws_connection, node);
        bool known = ws_door_known(k);
        const char *why = overdue(k, now, known);
        if (why) {
            if (*why && ws_accept_may_say())
                ws_log(WS_INFO, "door: closed %s: %s", ws_account_name(k->account), why);
            end(k);
        } else if (!known || !k->local || k->no_room_ns || k->end_ns) {
            d->look_ns = now + LOOK_NS;
        }
    }
}

void ws_door_turn(struct ws_door *d)
{
    take_events(d);
    serve_clients(&d->ready, CLIENTS_NS);
    serve_strangers(d, STRANGERS_NS);
    for (unsigned i = 0; i < d->n_listeners; i++)
        ws_accept_turn(&d->listeners[i].accept);
    look_through(d);
}

/* Whether a client can be read now. *ret_waits: one waits for room. */
static bool client_wanted(const struct ws_door *d, bool *ret_waits)
{
    ws_list_for_each (n, &d->ready) {
        const struct ws_connection *k = ws_list_entry(n, struct ws_connection, ready);
        if (k->no_room_ns)
            *ret_waits = true;
        else if (k->end_ns || d->options.ops.wants(d->options.ops.arg, &k->peer))
            return true;
    }
    return false;
}

/* The same of strangers. There may be very many, so of each account only the first one is asked,
 * which changes with each turn. */
static bool stranger_wanted(const struct ws_door *d, bool *ret_waits)
{
    bool wants = d->options.ops.wants(d->options.ops.arg, NULL);
    ws_list_for_each (n, &d->ready_new) {
        const struct ws_list *ready = &ws_list_entry(n, struct ws_door_guests, node)->ready;
        if (ws_list_empty(ready))
            continue;
        const struct ws_connection *k = ws_list_entry(ready->next, struct ws_connection, ready);
        if (k->no_room_ns)
            *ret_waits = true;
        else if (k->end_ns || wants)
            return true;
    }
    return false;
}

int ws_door_timeout_ms(const struct ws_door *d)
{
    bool waits = false;
    if (client_wanted(d, &waits) || stranger_wanted(d, &waits))
        return 0;
    int ms = ws_timeout_sooner(d->look_ns ? ws_timeout_until(d->look_ns) : -1,
                               waits ? NO_ROOM_RETRY_MS : -1);
    for (unsigned i = 0; i < d->n_listeners; i++)
        ms = ws_timeout_sooner(ms, ws_accept_timeout_ms(&d->listeners[i].accept));
    return ms;
}

/* ---- the transport ---- */

void ws_door_await_writable(struct ws_connection *k, bool await)
{
    struct epoll_event e = {
        .events = EPOLLIN | EPOLLRDHUP | EPOLLET | (await ? (uint32_t)EPOLLOUT : 0), .data.ptr = k};
    if (k->awaits_writable == await)
        return;
    if (epoll_ctl(k->door->epoll_fd, EPOLL_CTL_MOD, k->fd, &e))
        k->broken = true;
    else
        k->awaits_writable = await;
}

int ws_door_send(struct ws_door *d, const struct ws_peer *to, const void *data, size_t n)
{
    struct ws_connection *k = find(d, to);
    return k ? ws_connection_send(k, data, n) : -EHOSTUNREACH;
}

void ws_door_info(struct ws_door *d, const struct ws_message *m, struct ws_peer_info *ret)
{
    const struct ws_connection *k = find(d, m->peer);
    *ret = (struct ws_peer_info){.fd = -1};
    if (!k)
        return;
    ret->fd = k->fd;
    ret->ipc = k->local;
    ret->has_uid = k->has_uid;
    ret->uid = k->uid;
    ret->pid = k->pid;
}

bool ws_door_hung_up(struct ws_door *d, const struct ws_peer *p)
{
    const struct ws_connection *k = find(d, p);
    return !k || k->hung_up;
}

/* ---- life ---- */

int ws_door_new(struct ws_door **ret, const struct ws_door_options *o)
{
    struct ws_door *d = ws_alloc(sizeof(*d));
    if (!d)
        return ws_raise(-ENOMEM);
    d->options = *o;
    ws_list_init(&d->all);
    ws_list_init(&d->ready);
    ws_list_init(&d->ready_new);
    d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int r = d->epoll_fd < 0 ? -errno : ws_curve_init();
    if (!r && o->curve_secret[0])
        r = ws_curve_server_init(&d->keys, o->curve_secret);
    if (r) {
        ws_door_free(d);
        return ws_raise(r);
    }
    *ret = d;
    return 0;
}

int ws_door_listen(struct ws_door *d, int fd, bool local)
{
    struct ws_door_listener *l = &d->listeners[d->n_listeners];
    struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = l};
    if (d->n_listeners == WS_DOOR_LISTENERS_MAX) {
        close(fd);
        return ws_raise(-ENOSPC);
    }
    struct ws_accept_ops ops = accept_ops(d);
    l->source = WS_DOOR_LISTENER;
    ws_accept_init(&l->accept, fd, local, &ops);
    d->n_listeners++;
    return epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? ws_raise(-errno) : 0;
}

/* Return: something is left for somebody. */
static bool flush_all(struct ws_door *d)
{
    bool any = false;
    ws_list_for_each (n, &d->all)
        any |= !ws_connection_flush(ws_list_entry(n, struct ws_connection, node));
    return any;
}

struct ws_door *ws_door_free(struct ws_door *d)
{
    if (!d)
        return NULL;
    uint64_t until = ws_clock_ns() + LINGER_MS * WS_NS_PER_MS;
    struct epoll_event events[EVENTS];
    while (flush_all(d) && ws_clock_ns() < until)
        (void)epoll_wait(d->epoll_fd, events, EVENTS, 10);
    while (!ws_list_empty(&d->all)) {
        struct ws_connection *k = ws_list_entry(d->all.next, struct ws_connection, node);
        if (!k->end_ns)
            forget(k);
        free_connection(k);
    }
    for (unsigned i = 0; i < d->n_listeners; i++)
        ws_accept_deinit(&d->listeners[i].accept);
    if (d->epoll_fd >= 0)
        close(d->epoll_fd);
    ws_curve_server_deinit(&d->keys);
    free(d);
    return NULL;
}

int ws_door_fd(const struct ws_door *d)
{
    return d->epoll_fd;
}

uint32_t ws_door_n_connections(const struct ws_door *d)
{
    return d->n;
}

// SPDX-License-Identifier: Apache-2.0
/* The handoff socket. Each local client holds one connection to it, on which it asks for
 * segments and other descriptors; when the connection ends, the client leaves. The loop polls one
 * epoll descriptor, in which are the listener, rings, exports, and another epoll descriptor with
 * the connections. So what rings is always heard, while requests are served for a slice of time in
 * each turn, a few of each connection in turn. Each connection is on the account of its user from
 * the start, and so is the time that its requests take. One that has not named its client after a
 * while is closed, and leaves room before that when its user may have no more connections or no
 * descriptor is left. So is one whose answer does not fit its socket buffer, because its client
 * does not read. */
#include "backend/backend.h"
#include "backend/wire/handoff.h"
#include "backend/client/object.h"
#include "backend/client/segment.h"
#include "backend/wire/ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "backend/wire/closer.h"
#include "protocol/handoff.h"

#define UNBOUND_MAX_NS (5 * WS_NS_PER_S)
enum { EVENTS = 64, CONNS_AT_A_TIME = 8, REQUESTS_AT_A_TIME = 4 };

struct ws_handoff_conn {
    int fd;
    struct ws_account *account; /* charged with it */
    struct ws_client *client;   /* NULL: no hello yet */
    uint64_t since_ns;
    struct ws_list node; /* server->handoff.conns, or .unbound: oldest first */
};

static void enter(void *arg, const struct ws_newly_accepted *n);
static bool make_room(void *arg, const struct ws_account *a);

/* @fd: taken */
static int handoff_begin(struct ws_server *s, const char *path, int fd)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL},
                       conns = {.events = EPOLLIN, .data.ptr = &s->handoff.conns_source};
    s->handoff.conns_source = WS_HANDOFF_SOURCE_CONNS;
    ws_accept_init(&s->handoff.accept, fd, true,
                   &(struct ws_accept_ops){s, s->accounts, s->closer, enter, make_room});
    snprintf(s->handoff.path, sizeof(s->handoff.path), "%s", path);
    s->handoff.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    s->handoff.conns_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->handoff.epoll_fd < 0 || s->handoff.conns_fd < 0 ||
        epoll_ctl(s->handoff.epoll_fd, EPOLL_CTL_ADD, fd, &e) ||
        epoll_ctl(s->handoff.epoll_fd, EPOLL_CTL_ADD, s->handoff.conns_fd, &conns))
        return ws_raise(-errno);
    return 0;
}

int ws_server_handoff_listen(struct ws_server *s, const char *path, uint32_t mode)
{
    if (strlen(path) >= sizeof(s->handoff.path))
        return ws_raise(-ENAMETOOLONG);
    int fd = ws_handoff_listen(path, mode);
    return fd < 0 ? ws_forward(fd) : handoff_begin(s, path, fd);
}

int ws_server_handoff_adopt(struct ws_server *s, const char *path, int fd)
{
    s->handoff.passed = true;
    return handoff_begin(s, path, fd);
}

int ws_server_handoff_fd(const struct ws_server *s)
{
    return s->handoff.epoll_fd;
}

int ws_server_handoff_timeout_ms(const struct ws_server *s)
{
    return ws_accept_timeout_ms(&s->handoff.accept);
}

void ws_handoff_close(struct ws_server *s, struct ws_handoff_conn *k)
{
    if (k->client)
        k->client->wire.handoff = NULL;
    ws_list_remove(&k->node);
    epoll_ctl(s->handoff.conns_fd, EPOLL_CTL_DEL, k->fd, NULL);
    ws_closer_end(s->closer, k->fd, k->account, WS_RESOURCE_CONNECTIONS);
    ws_account_unref(k->account);
    free(k);
}

static void close_all(struct ws_server *s, struct ws_list *list)
{
    while (!ws_list_empty(list))
        ws_handoff_close(s, ws_list_entry(list->next, struct ws_handoff_conn, node));
}

void ws_handoff_end(struct ws_server *s)
{
    close_all(s, &s->handoff.conns);
    close_all(s, &s->handoff.unbound);
    if (s->handoff.accept.fd >= 0 && !s->handoff.passed)
        unlink(s->handoff.path);
    ws_accept_deinit(&s->handoff.accept);
    if (s->handoff.epoll_fd >= 0)
        close(s->handoff.epoll_fd);
    if (s->handoff.conns_fd >= 0)
        close(s->handoff.conns_fd);
    s->handoff.epoll_fd = s->handoff.conns_fd = -1;
}

/* Closes who has not said hello in time. */
static void prune(struct ws_server *s)
{
    uint64_t now = ws_clock_ns();
    ws_list_for_each_safe (n, &s->handoff.unbound) {
        struct ws_handoff_conn *k = ws_list_entry(n, struct ws_handoff_conn, node);
        if (now - k->since_ns < UNBOUND_MAX_NS)
            return;
        ws_handoff_close(s, k);
    }
}

static bool make_room(void *arg, const struct ws_account *a)
{
    struct ws_server *s = arg;
    struct ws_handoff_conn *found = NULL;
    uint64_t most = 0;
    ws_list_for_each (n, &s->handoff.unbound) {
        struct ws_handoff_conn *k = ws_list_entry(n, struct ws_handoff_conn, node);
        if (!ws_accept_lets_go(a, k->account, &most))
            continue;
        found = k;
        if (a)
            break;
    }
    if (found)
        ws_handoff_close(s, found);
    return found != NULL;
}

static void enter(void *arg, const struct ws_newly_accepted *n)
{
    struct ws_server *s = arg;
    struct ws_handoff_conn *k = ws_alloc(sizeof(*k));
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = k};
    if (!k || epoll_ctl(s->handoff.conns_fd, EPOLL_CTL_ADD, n->fd, &e)) {
        close(n->fd);
        ws_account_release(n->account, WS_RESOURCE_CONNECTIONS, 1);
        ws_account_unref(n->account);
        free(k);
        return;
    }
    k->fd = n->fd;
    k->account = n->account;
    k->since_ns = ws_clock_ns();
    ws_list_append(&s->handoff.unbound, &k->node);
}

static bool same_token(const uint8_t *a, const uint8_t *b)
{
    uint8_t d = 0;
    for (int i = 0; i < WS_TOKEN_BYTES; i++)
        d |= a[i] ^ b[i];
    return !d;
}

static Ws__Error bind_client(struct ws_server *s, struct ws_handoff_conn *k,
                             const struct ws_handoff_request *q)
{
    if (k->client)
        return WS__ERROR__INVALID_VALUE;
    ws_list_for_each (n, &s->clients.all) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        if (c->who.local && !c->wire.had_handoff && same_token(c->wire.token, q->token)) {
            c->wire.handoff = k;
            c->wire.had_handoff = true;
            k->client = c;
            ws_list_remove(&k->node);
            ws_list_append(&s->handoff.conns, &k->node);
            ws_packet_let_fds_in(k->fd, true);
            return WS__ERROR__OK;
        }
    }
    return WS__ERROR__DENIED;
}

static Ws__Error make_segment(struct ws_client *c, const struct ws_handoff_request *q, int came,
                              struct ws_handoff_reply *a, int *ret_fd)
{
    struct ws_segment *g;
    bool shared = q->kind == WS_HANDOFF_SHARED;
    Ws__Error e = shared ? ws_segment_share(c, q, came, &g) : ws_segment_new(c, q, &g);
    if (e)
        return e;
    a->segment = g->id;
    a->data_offset = (uint64_t)(g->data - g->map);
    a->bytes = g->bytes;
    if (shared)
        return WS__ERROR__OK;
    *ret_fd = fcntl(g->fd, F_DUPFD_CLOEXEC, 0); /* ours stays until the segment is settled */
    if (*ret_fd >= 0)
        return WS__ERROR__OK;
    ws_segment_release(g, c);
    return WS__ERROR__OUT_OF_MEMORY;
}

static Ws__Error free_segment(struct ws_client *c, const struct ws_handoff_request *q)
{
    struct ws_segment *g = ws_segment_find(c, q->segment);
    if (!g)
        return WS__ERROR__INVALID_HANDLE;
    ws_segment_release(g, c);
    return WS__ERROR__OK;
}

/* Return: false: the connection is of no use any more. */
static bool answer(struct ws_server *s, struct ws_handoff_conn *k,
                   const struct ws_handoff_request *q, int came)
{
    struct ws_handoff_reply a = {0};
    int fd = -1;
    if (q->kind == WS_HANDOFF_HELLO)
        a.error = bind_client(s, k, q);
    else if (!k->client || !same_token(k->client->wire.token, q->token))
        a.error = WS__ERROR__DENIED;
    else if (q->kind == WS_HANDOFF_STAGING || q->kind == WS_HANDOFF_PINNED ||
             q->kind == WS_HANDOFF_SHARED)
        a.error = make_segment(k->client, q, came, &a, &fd);
    else if (q->kind == WS_HANDOFF_FREE)
        a.error = free_segment(k->client, q);
    else if (q->kind == WS_HANDOFF_RING)
        a.error = ws_client_ring_new(k->client, &fd);
    else if (q->kind == WS_HANDOFF_DOORBELL)
        a.error = ws_client_ring_doorbell(k->client, &fd);
    else if (q->kind == WS_HANDOFF_EXPORT)
        a.error = ws_export_new(k->client, q->bytes, &fd);
    else if (q->kind == WS_HANDOFF_IMPORT)
        a.error = ws_export_import(k->client, came, q->bytes, &a);
    else
        a.error = WS__ERROR__INVALID_VALUE;
    int r = ws_packet_send(k->fd, &a, sizeof(a), fd, MSG_DONTWAIT);
    if (fd >= 0)
        close(fd);
    return !r && a.error != WS__ERROR__DENIED;
}

/* Return: false: end of the connection, or it speaks another language. */
static bool serve(struct ws_server *s, struct ws_handoff_conn *k)
{
    struct ws_handoff_request q;
    for (int i = 0; i < REQUESTS_AT_A_TIME; i++) { /* the rest stays readable */
        struct ws_packet_fds came;
        if (!ws_closer_has_room(s->closer, k->account))
            return false;
        ssize_t n = ws_packet_recv_all(k->fd, &q, sizeof(q), &came, MSG_DONTWAIT);
        if (n == -EAGAIN || n == -EWOULDBLOCK)
            return true;
        bool good = n == sizeof(q) && answer(s, k, &q, came.n ? came.v[0] : -1);
        ws_closer_drop(s->closer, &came, k->account);
        if (!good)
            return false;
    }
    return true;
}

/* Serves a connection that has something to say. */
static void visit(struct ws_server *s, struct ws_handoff_conn *k)
{
    if ((k->client && k->client->dropped) || serve(s, k))
        return;
    if (k->client)
        ws_client_leave(k->client, "end of its handoff connection");
    ws_handoff_close(s, k);
}

/* Those that are not reached come first the next time. */
static void serve_conns(struct ws_server *s)
{
    struct epoll_event events[CONNS_AT_A_TIME];
    uint64_t now = ws_clock_ns(), until = now + s->messages.slice_ns;
    int n;
    do {
        n = epoll_wait(s->handoff.conns_fd, events, CONNS_AT_A_TIME, 0);
        for (int i = 0; i < n; i++) {
            struct ws_handoff_conn *k = events[i].data.ptr;
            struct ws_account *a = ws_account_ref(k->account);
            uint64_t before = now;
            visit(s, k);
            now = ws_clock_ns();
            ws_account_add_time(a, WS_ACCOUNT_LOOP, now - before, now);
            ws_account_unref(a);
        }
    } while (n == CONNS_AT_A_TIME && now < until);
}

void ws_handoff_turn(struct ws_server *s)
{
    struct epoll_event events[EVENTS];
    if (s->handoff.epoll_fd < 0)
        return;
    int n = epoll_wait(s->handoff.epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        void *p = events[i].data.ptr;
        if (!p)
            s->handoff.accept.more = true;
        else if (*(enum ws_handoff_source *)p == WS_HANDOFF_SOURCE_EXPORT)
            ws_export_closed(p);
        else if (*(enum ws_handoff_source *)p == WS_HANDOFF_SOURCE_RING)
            ws_client_ring_signalled(p);
        else
            serve_conns(s);
    }
    prune(s);
    ws_accept_turn(&s->handoff.accept);
}

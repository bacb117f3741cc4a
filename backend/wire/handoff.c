// SPDX-License-Identifier: Apache-2.0
/* The handoff socket. Each local client holds one connection to it, on which it asks for
 * segments and other descriptors; when the connection ends, the client leaves. All descriptors
 * are in one epoll descriptor, which the loop polls. A connection that has not named its client
 * after a while is closed, and so is one whose answer does not fit its socket buffer, because its
 * client does not read. */
#include "backend/backend.h"
#include "backend/wire/handoff.h"
#include "backend/client/object.h"
#include "backend/client/segment.h"
#include "backend/wire/ring.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "protocol/handoff.h"

#define UNBOUND_MAX_NS (5 * WS_NS_PER_S)
enum { UNBOUND_MAX = 256, EVENTS = 64 };

struct ws_handoff_conn {
    enum ws_handoff_source source;
    int fd;
    struct ws_client *client; /* NULL: no hello yet */
    uint64_t since_ns;
    struct ws_list node; /* server->handoff.conns: oldest first */
};

/* @fd: taken */
static int handoff_begin(struct ws_server *s, const char *path, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    s->handoff.fd = fd;
    snprintf(s->handoff.path, sizeof(s->handoff.path), "%s", path);
    s->handoff.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->handoff.epoll_fd < 0)
        return ws_raise(-errno);
    return epoll_ctl(s->handoff.epoll_fd, EPOLL_CTL_ADD, s->handoff.fd, &e) ? ws_raise(-errno) : 0;
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

void ws_handoff_close(struct ws_server *s, struct ws_handoff_conn *k)
{
    if (k->client)
        k->client->wire.handoff = NULL;
    ws_list_remove(&k->node);
    close(k->fd);
    free(k);
}

void ws_handoff_end(struct ws_server *s)
{
    while (!ws_list_empty(&s->handoff.conns))
        ws_handoff_close(s, ws_list_entry(s->handoff.conns.next, struct ws_handoff_conn, node));
    if (s->handoff.fd >= 0) {
        close(s->handoff.fd);
        if (!s->handoff.passed)
            unlink(s->handoff.path);
    }
    if (s->handoff.epoll_fd >= 0)
        close(s->handoff.epoll_fd);
    s->handoff.fd = s->handoff.epoll_fd = -1;
}

/* Closes who has not said hello in time; with @make_room, the oldest of them in any case.
 * Return: one was closed. */
static bool prune(struct ws_server *s, bool make_room)
{
    uint64_t now = ws_clock_ns();
    bool any = false;
    ws_list_for_each_safe (n, &s->handoff.conns) {
        struct ws_handoff_conn *k = ws_list_entry(n, struct ws_handoff_conn, node);
        if (k->client || (now - k->since_ns < UNBOUND_MAX_NS && !make_room))
            continue;
        ws_handoff_close(s, k);
        make_room = false;
        any = true;
    }
    return any;
}

static uint32_t n_unbound(struct ws_server *s)
{
    uint32_t n = 0;
    ws_list_for_each (it, &s->handoff.conns)
        n += !ws_list_entry(it, struct ws_handoff_conn, node)->client;
    return n;
}

static void accept_all(struct ws_server *s)
{
    for (;;) {
        int fd = accept4(s->handoff.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE) && prune(s, true))
            continue;
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE) {
                ws_log(WS_ERROR, "side: no descriptor left for a new client; raise the limit of "
                                 "open files (ulimit -n)");
                usleep(10000); /* the listener stays readable; do not spin on it */
            }
            return;
        }
        prune(s, n_unbound(s) >= UNBOUND_MAX);
        struct ws_handoff_conn *k = ws_alloc(sizeof(*k));
        struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = k};
        if (!k || epoll_ctl(s->handoff.epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
            close(fd);
            free(k);
            continue;
        }
        k->source = WS_HANDOFF_SOURCE_CONN;
        k->fd = fd;
        k->since_ns = ws_clock_ns();
        ws_list_append(&s->handoff.conns, &k->node);
    }
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
            return WS__ERROR__OK;
        }
    }
    return WS__ERROR__DENIED;
}

static Ws__Error make_segment(struct ws_client *c, const struct ws_handoff_request *q,
                              struct ws_handoff_reply *a, int *ret_fd)
{
    struct ws_segment *g;
    Ws__Error e = ws_segment_new(c, q, &g);
    if (e)
        return e;
    a->segment = g->id;
    a->data_offset = (uint64_t)(g->data - g->map);
    a->bytes = g->bytes;
    *ret_fd = g->fd;
    g->fd = -1; /* our mapping keeps it */
    return WS__ERROR__OK;
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
    else if (q->kind == WS_HANDOFF_STAGING || q->kind == WS_HANDOFF_PINNED)
        a.error = make_segment(k->client, q, &a, &fd);
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
    for (;;) {
        int came = -1;
        ssize_t n = ws_packet_recv(k->fd, &q, sizeof(q), &came, MSG_DONTWAIT);
        if (n == -EAGAIN || n == -EWOULDBLOCK)
            return true;
        bool good = n == sizeof(q) && answer(s, k, &q, came);
        if (came >= 0)
            close(came);
        if (!good)
            return false;
    }
}

void ws_handoff_turn(struct ws_server *s)
{
    struct epoll_event events[EVENTS];
    if (s->handoff.epoll_fd < 0)
        return;
    int n = epoll_wait(s->handoff.epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < n; i++) {
        struct ws_handoff_conn *k =
            events[i].data.ptr; /* or an export: both begin with their source */
        if (!k) {
            /* may close connections that are not bound: their events of this round are void */
            accept_all(s);
            break;
        }
        if (k->source == WS_HANDOFF_SOURCE_EXPORT) {
            ws_export_closed(events[i].data.ptr);
            continue;
        }
        if (k->source == WS_HANDOFF_SOURCE_RING) {
            ws_client_ring_signalled(events[i].data.ptr);
            continue;
        }
        if ((k->client && k->client->dropped) || serve(s, k))
            continue;
        if (k->client)
            ws_client_leave(k->client, "end of its handoff connection");
        ws_handoff_close(s, k);
    }
}

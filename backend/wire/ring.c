// SPDX-License-Identifier: Apache-2.0
/* The daemon's end of a client's ring (protocol/ring.h). The client asks for the memory, maps
 * it, and asks for its doorbell: from then on the ring is open. Its messages are handled like
 * those from ZeroMQ, from a copy of ours. Doorbells sit in the epoll descriptor of the handoff
 * socket; the rings that were signalled in a turn are collected first and looked at when all its
 * events are through. A ring is closed when its client is dropped and freed with it. */
#include "backend/wire/ring.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/client/object.h"
#include "backend/client/user.h"
#include "base/alloc.h"
#include "backend/wire/closer.h"
#include "protocol/ring.h"
#include "protocol/handoff.h"

struct ws_client_ring {
    enum ws_handoff_source source; /* first: what an event of the epoll descriptor points at */
    struct ws_client *client;
    struct ws_ring end;
    bool open;
    struct ws_list rung; /* server->handoff.rung */
};

/* A ring takes a mapping, its doorbell a descriptor. */
static Ws__Error ring_charge(struct ws_client *c)
{
    Ws__Error e = ws_client_charge(c, WS_RESOURCE_MAPPINGS, 1);
    if (e)
        return e;
    e = ws_client_charge(c, WS_RESOURCE_DESCRIPTORS, 1);
    if (e)
        ws_client_release(c, WS_RESOURCE_MAPPINGS, 1);
    return e;
}

static void ring_release(struct ws_client *c)
{
    ws_client_release(c, WS_RESOURCE_MAPPINGS, 1);
    ws_client_release(c, WS_RESOURCE_DESCRIPTORS, 1);
}

Ws__Error ws_client_ring_new(struct ws_client *c, int *ret_fd)
{
    if (c->wire.ring)
        return WS__ERROR__INVALID_VALUE;
    Ws__Error e = ring_charge(c);
    if (e)
        return e;
    int fd = ws_packet_memfd("wattshare-ring", sizeof(struct ws_ring_memory));
    struct ws_client_ring *l = fd < 0 ? NULL : ws_alloc(sizeof(*l));
    if (!l || ws_ring_map(&l->end, fd, false)) {
        ring_release(c);
        free(l);
        if (fd >= 0)
            close(fd);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    l->source = WS_HANDOFF_SOURCE_RING;
    l->client = c;
    ws_list_init(&l->rung);
    c->wire.ring = l;
    *ret_fd = fd;
    return WS__ERROR__OK;
}

Ws__Error ws_client_ring_doorbell(struct ws_client *c, int *ret_fd)
{
    struct ws_client_ring *l = c->wire.ring;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = l};
    int pair[2];
    if (!l || l->open)
        return WS__ERROR__INVALID_VALUE;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return WS__ERROR__OUT_OF_MEMORY;
    ws_packet_let_fds_in(pair[0], false);
    if (epoll_ctl(c->server->handoff.epoll_fd, EPOLL_CTL_ADD, pair[0], &event)) {
        close(pair[0]);
        close(pair[1]);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    l->end.doorbell = pair[0];
    l->open = true;
    *ret_fd = pair[1];
    return WS__ERROR__OK;
}

void ws_client_ring_close(struct ws_client *c)
{
    struct ws_client_ring *l = c->wire.ring;
    if (!l)
        return;
    l->open = false;
    ws_list_remove(&l->rung);
    if (l->end.doorbell >= 0) {
        epoll_ctl(c->server->handoff.epoll_fd, EPOLL_CTL_DEL, l->end.doorbell, NULL);
        ws_account_take_over(c->who.account, WS_RESOURCE_DESCRIPTORS, 1); /* until it is closed */
        ws_closer_end(c->server->closer, l->end.doorbell, c->who.account, WS_RESOURCE_DESCRIPTORS);
    }
    l->end.doorbell = -1;
    ws_ring_end(&l->end);
}

void ws_client_ring_free(struct ws_client *c)
{
    ws_client_ring_close(c);
    if (c->wire.ring)
        ring_release(c);
    free(c->wire.ring);
    c->wire.ring = NULL;
}

bool ws_client_ring_send(struct ws_client *c, const void *data, size_t n)
{
    struct ws_client_ring *l = c->wire.ring;
    if (!l || !l->open || !ws_ring_put(&l->end, data, n))
        return false;
    if (atomic_load(&l->end.memory->client_waits))
        ws_ring_signal(&l->end);
    return true;
}

void ws_client_ring_passed_by(struct ws_client *c)
{
    if (c->wire.ring && c->wire.ring->open)
        c->wire.ring->end.n_sent++;
}

void ws_client_ring_signalled(struct ws_client_ring *l)
{
    if (l->open && ws_list_empty(&l->rung))
        ws_list_append(&l->client->server->handoff.rung, &l->rung);
}

size_t ws_client_ring_next(struct ws_client *c)
{
    struct ws_client_ring *l = c->wire.ring;
    if (!l || !l->open)
        return 0;
    ssize_t n = ws_ring_take(&l->end, c->server->handoff.ring_message);
    if (n >= 0)
        return (size_t)n;
    if (n != -EAGAIN)
        ws_client_drop(c, WS__ERROR__MALFORMED, "what lies in its ring can't be read");
    return 0;
}

void ws_client_ring_other_came(struct ws_client *c)
{
    if (c->wire.ring && c->wire.ring->open)
        c->wire.ring->end.n_received++;
}

struct ws_client *ws_server_next_rung(struct ws_server *s, bool *ret_there)
{
    struct ws_list *n = ws_list_pop(&s->handoff.rung);
    if (!n)
        return NULL;
    struct ws_client_ring *l = ws_list_entry(n, struct ws_client_ring, rung);
    struct ws_packet_fds came;
    *ret_there = ws_ring_hear(&l->end, &came);
    ws_closer_drop(s->closer, &came, l->client->who.account);
    if (!*ret_there) /* it would be readable from now on */
        epoll_ctl(s->handoff.epoll_fd, EPOLL_CTL_DEL, l->end.doorbell, NULL);
    return l->client;
}

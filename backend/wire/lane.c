// SPDX-License-Identifier: Apache-2.0
/* The daemon's end of a client's lane (protocol/lane.h). The client asks for the memory, maps it, and asks for its bell: from
 * then on the lane is open. Its messages are handled like those from ZeroMQ, from a copy of ours. Bells sit in the epoll
 * descriptor of the side sockets; those that rang in a turn are collected first and looked after when all its events are
 * through, since what comes in a lane may end its client, and with that the side connection another event points at.
 * A lane is closed when its client is dropped and freed with it. */
#include "backend/backend.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "protocol/lane.h"
#include "protocol/side.h"

struct ws_client_lane {
    enum ws_side_source source; /* first: what the side socket's events point at */
    struct ws_client *client;
    struct ws_lane end;
    bool open;
    struct ws_list rung; /* server->rung */
};

Ws__Error ws_client_lane_new(struct ws_client *c, int *ret_fd)
{
    if (c->lane)
        return WS__ERROR__INVALID_VALUE;
    int fd = ws_packet_memfd("wattshare-lane", sizeof(struct ws_lane_memory));
    struct ws_client_lane *l = fd < 0 ? NULL : ws_alloc(sizeof *l);
    if (!l || ws_lane_map(&l->end, fd, false)) {
        free(l);
        if (fd >= 0)
            close(fd);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    l->source = WS_SIDE_SOURCE_LANE;
    l->client = c;
    ws_list_init(&l->rung);
    c->lane = l;
    *ret_fd = fd;
    return WS__ERROR__OK;
}

Ws__Error ws_client_lane_bell(struct ws_client *c, int *ret_fd)
{
    struct ws_client_lane *l = c->lane;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = l};
    int pair[2];
    if (!l || l->open)
        return WS__ERROR__INVALID_VALUE;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return WS__ERROR__OUT_OF_MEMORY;
    if (epoll_ctl(c->server->epoll_fd, EPOLL_CTL_ADD, pair[0], &event)) {
        close(pair[0]);
        close(pair[1]);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    l->end.bell = pair[0];
    l->open = true;
    *ret_fd = pair[1];
    return WS__ERROR__OK;
}

void ws_client_lane_close(struct ws_client *c)
{
    if (!c->lane)
        return;
    c->lane->open = false;
    ws_list_remove(&c->lane->rung);
    ws_lane_end(&c->lane->end);
}

void ws_client_lane_free(struct ws_client *c)
{
    ws_client_lane_close(c);
    free(c->lane);
    c->lane = NULL;
}

bool ws_client_lane_send(struct ws_client *c, const void *data, size_t n)
{
    struct ws_client_lane *l = c->lane;
    if (!l || !l->open || !ws_lane_put(&l->end, data, n))
        return false;
    if (atomic_load(&l->end.memory->client_waits))
        ws_lane_ring(&l->end);
    return true;
}

void ws_client_lane_passed_by(struct ws_client *c)
{
    if (c->lane && c->lane->open)
        c->lane->end.n_sent++;
}

void ws_client_lane_take(struct ws_client *c, bool passed_by)
{
    struct ws_client_lane *l = c->lane;
    struct ws_server *s = c->server;
    if (!l || !l->open)
        return;
    l->end.n_received += passed_by;
    for (unsigned i = 0; i < WS_LANE_SLOTS && !c->dropped; i++) {
        ssize_t n = ws_lane_take(&l->end, s->lane_message);
        if (n == -EAGAIN)
            return;
        if (n < 0) {
            ws_client_drop(c, WS__ERROR__MALFORMED, "what lies in its lane can't be read");
            return;
        }
        zmq_msg_t frame;
        zmq_msg_init_data(&frame, s->lane_message, (size_t)n, NULL, NULL);
        struct ws_message m = {.peer = &c->peer,
                               .frames = &frame,
                               .n_frames = 1,
                               .oversized = (size_t)n > s->config->limits.max_message_bytes};
        ws_server_handle_next(s, &m);
        zmq_msg_close(&frame);
    }
}

void ws_client_lane_rang(struct ws_client_lane *l)
{
    if (l->open && ws_list_empty(&l->rung))
        ws_list_append(&l->client->server->rung, &l->rung);
}

void ws_server_take_lanes(struct ws_server *s)
{
    struct ws_list *n;
    while ((n = ws_list_pop(&s->rung))) {
        struct ws_client_lane *l = ws_list_entry(n, struct ws_client_lane, rung);
        bool there = ws_lane_hear(&l->end);
        ws_client_lane_take(l->client, false);
        if (!there)
            ws_client_drop(l->client, WS__ERROR__OK, "end of its lane");
    }
}

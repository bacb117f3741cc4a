// SPDX-License-Identifier: Apache-2.0
/* frontend/channel/private.h - what channel.c (batch, replies), open.c (handshake), ring.c (ring)
 * and segment.c (handoff socket, shared memory) share. */
#ifndef WS_FRONTEND_CHANNEL_PRIVATE_H
#define WS_FRONTEND_CHANNEL_PRIVATE_H

#include <pthread.h>
#include "base/list.h"
#include "frontend/channel/channel.h"
#include "frontend/channel/zmq_load.h"
#include "protocol/ring.h"

struct ws_channel {
    /* constant after open */
    const struct ws_zmq *zmq;
    void *ctx, *sock, *monitor; /* monitor: tells of a lost connection; tcp only */
    int zmq_fd, monitor_fd, wake_fd;
    Ws__ServerMessage *hello_message;
    const Ws__HelloReply *hello;
    struct ws_channel_limits {
        uint32_t message_bytes, commands, outstanding;
    } limits;
    char endpoint[256];
    const char *loss; /* what the end of the daemon means here */

    pthread_mutex_t lock; /* for all below, and for every use of the ZeroMQ sockets */
    uint8_t *batch; /* one ClientMessage in the making: its fields are appended as commands come */
    size_t batch_bytes, batch_cap;
    uint32_t batch_commands;
    uint64_t n_posted, n_retired; /* commands; the sequence number of the n-th is n, from 1 */
    uint64_t n_async;             /* of the posted, those that nobody waits for */
    struct ws_list waiters;       /* struct reply_waiter, waiting for a reply or for the window */
    struct reply_waiter *leader;  /* the one that polls the sockets for all */
    bool leader_polls;
    struct ws_ring ring; /* this end of the ring; or none */
    uint64_t *gates;     /* reached, oldest first from first_gate on */
    size_t first_gate, n_gates, cap_gates;
    _Atomic bool dead;
    _Atomic int async_error;

    pthread_t flusher;
    pthread_cond_t flusher_cond;
    bool flusher_started, flusher_asleep, flusher_stop;

    pthread_mutex_t handoff_lock; /* one request at a time on the handoff socket */
    int handoff_fd;               /* -1 when remote; constant after open */
};

/* Lets every waiter look again. Lock held. */
void ws_channel_wake_all(struct ws_channel *c);
/* Opens the handoff socket and proves who we are. 0 or Ws__Error, said on the log. */
int ws_channel_handoff_open(struct ws_channel *c);
/* Sends one request on the handoff socket, with this client's token. @ret_fd: the descriptor that
 * came along, or -1. Return: 0 with the daemon's answer in *ret, or -errno. */
int ws_channel_handoff_request(struct ws_channel *c, struct ws_handoff_request *q,
                               struct ws_handoff_reply *ret, int *ret_fd);
/* Opens the ring if both sides want it; without one everything goes through ZeroMQ. */
void ws_channel_ring_open(struct ws_channel *c);
/* Takes what is due there. Lock held. */
void ws_channel_ring_take(struct ws_channel *c);
/* A ServerMessage has come. Lock held. */
void ws_channel_take_message(struct ws_channel *c, const void *data, size_t n);
/* True if the daemon's end of the handoff socket or the tcp connection is gone. Lock held. */
bool ws_channel_peer_gone(struct ws_channel *c);

#endif

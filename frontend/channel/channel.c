// SPDX-License-Identifier: Apache-2.0
/* The batch, and waiting for replies.
 *
 * Batch. A ClientMessage is a protobuf message, and the encoding of a repeated field is simply one
 * (tag, length, bytes) after another: so the batch is the message itself, to which each command is
 * appended, and sending it is one zmq_send(). The batch goes out when it holds BATCH_COMMANDS or
 * BATCH_BYTES, at every call that waits, and, so that asynchronous work starts while the program
 * does other things, by the flusher: a thread that looks every FLUSH_NS while commands keep coming
 * and sleeps otherwise. The first command after a quiet time goes out at once and wakes it, so the
 * hot path tests one flag.
 *
 * Waiting. ZeroMQ sockets are not for two threads at once, so every use is under the lock, and a
 * thread must not block in zmq_recv() with it. One waiter, the leader, polls ZeroMQ's descriptor
 * without the lock; the others wait on their conditions. That descriptor is edge-triggered and any
 * ZeroMQ call may eat the edge; hence the invariant: whoever called ZeroMQ drains the socket before
 * giving up the lock. When this completes the leader's reply, the leader is woken through wake_fd.
 * A leader that is done hands over to the next waiter.
 *
 * Death. The handoff socket's end of file (local), the loss of the connection (tcp, by heartbeats)
 * or a Notice that we were dropped make the channel dead: waiters return DISCONNECTED, and so does
 * everything after. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "frontend/channel/private.h"

enum {
    BATCH_COMMANDS = 256,
    BATCH_BYTES = 48 * 1024,
    FLUSH_NS = 100 * 1000,
    FLUSH_QUIET_TICKS = 3,
    POLL_MS = 1000,
    RESERVE_PART = 8
};
enum { TAG_FIRST_SEQ = 0x10, TAG_COMMANDS = 0x1a, TAG_LAUNCH = 0x0a };

#define SEQ_GATE UINT64_MAX

struct reply_waiter {
    struct ws_list link;
    pthread_cond_t cond;
    uint64_t seq; /* of the command; 0: waits for room in the window; SEQ_GATE: for a gate */
    bool done;
    Ws__Reply *reply;
};

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)v | 0x80;
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

static uint8_t *put_field(uint8_t *p, uint8_t tag, uint64_t v)
{
    if (v) {
        *p++ = tag;
        p = put_varint(p, v);
    }
    return p;
}

/* A varint of three bytes whatever its value: lets a length be written after what it measures. */
static void put_length3(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)(v | 0x80);
    p[1] = (uint8_t)(v >> 7 | 0x80);
    p[2] = (uint8_t)(v >> 14);
}
enum { LENGTH3_MAX = (1 << 21) - 1 };

/* ---- arrivals ---- */

static void wake_waiter(struct ws_channel *c, struct reply_waiter *w)
{
    if (w != c->leader) {
        pthread_cond_signal(&w->cond);
    } else if (c->leader_polls) {
        uint64_t one = 1;
        ssize_t ignored = write(c->wake_fd, &one, sizeof(one));
        (void)ignored;
    }
}

void ws_channel_wake_all(struct ws_channel *c)
{
    ws_list_for_each (it, &c->waiters)
        wake_waiter(c, ws_list_entry(it, struct reply_waiter, link));
}

/* Marks the channel lost, says why once, wakes all. Lock held. */
static void die(struct ws_channel *c, const char *why)
{
    if (c->dead)
        return;
    c->dead = true;
    ws_log(WS_ERROR, "channel: lost the daemon at %s: %s; %s", c->endpoint, why, c->loss);
    ws_channel_wake_all(c);
    pthread_cond_signal(&c->flusher_cond);
}

static __thread bool uses_reserve;

void ws_channel_use_reserve(void)
{
    uses_reserve = true;
}

static bool window_open(const struct ws_channel *c)
{
    uint32_t all = c->limits.outstanding;
    return c->n_posted - c->n_retired < (uses_reserve ? all : all - all / RESERVE_PART);
}

static void take_reply(struct ws_channel *c, Ws__Reply **reply)
{
    ws_list_for_each (it, &c->waiters) {
        struct reply_waiter *w = ws_list_entry(it, struct reply_waiter, link);
        if (w->seq == (*reply)->seq && !w->done) {
            w->reply = *reply;
            *reply = NULL;
            w->done = true;
            wake_waiter(c, w);
            return;
        }
    }
}

static void take_gates(struct ws_channel *c, const Ws__Notice *n)
{
    if (!n->n_reached)
        return;
    if (c->first_gate == c->n_gates)
        c->first_gate = c->n_gates = 0;
    if (ws_grow((void **)&c->gates, &c->cap_gates, c->n_gates + n->n_reached, sizeof(*c->gates))) {
        die(c, "out of memory");
        return;
    }
    memcpy(c->gates + c->n_gates, n->reached, n->n_reached * sizeof(*c->gates));
    c->n_gates += n->n_reached;
    ws_list_for_each (it, &c->waiters) {
        struct reply_waiter *w = ws_list_entry(it, struct reply_waiter, link);
        if (w->seq == SEQ_GATE && !w->done) {
            w->done = true;
            wake_waiter(c, w);
        }
    }
}

static void take_notice(struct ws_channel *c, const Ws__Notice *n)
{
    if (n->retired > c->n_retired && n->retired <= c->n_posted) {
        c->n_retired = n->retired;
        ws_list_for_each (it, &c->waiters) {
            struct reply_waiter *w = ws_list_entry(it, struct reply_waiter, link);
            if (!w->seq && !w->done) {
                w->done = true;
                wake_waiter(c, w);
            }
        }
    }
    if (n->dropped) {
        die(c, n->text && n->text[0] ? n->text : "it dropped this client");
    } else if (n->error != WS__ERROR__OK && n->error < WS__ERROR__VERSION_MISMATCH) {
        bool sticky = n->error >= WS__ERROR__ILLEGAL_ADDRESS;
        int old = c->async_error;
        if (old < WS__ERROR__ILLEGAL_ADDRESS && (sticky || old == WS__ERROR__OK))
            c->async_error = n->error;
        if (n->text && n->text[0])
            ws_log(WS_WARN, "session: %s", n->text);
    }
    take_gates(c, n); /* after the error: who runs behind a gate wants to know of it */
}

void ws_channel_take_message(struct ws_channel *c, const void *data, size_t n)
{
    Ws__ServerMessage *s = n ? ws__server_message__unpack(NULL, n, data) : NULL;
    if (!s) {
        die(c, "it sent what is no message of this protocol");
    } else {
        for (size_t i = 0; i < s->n_replies; i++)
            take_reply(c, &s->replies[i]);
        if (s->notice)
            take_notice(c, s->notice);
    }
    ws__server_message__free_unpacked(s, NULL);
}

/* Takes what has arrived. Lock held. */
static void drain(struct ws_channel *c)
{
    for (;;) {
        zmq_msg_t m;
        c->zmq->msg_init(&m);
        int r = c->zmq->msg_recv(&m, c->sock, ZMQ_DONTWAIT);
        if (r < 0 && errno == EINTR)
            continue;
        ws_channel_ring_take(c); /* what was sent before the message that has come */
        if (r < 0)
            return;
        int more = 0;
        size_t n = sizeof(more);
        c->zmq->getsockopt(c->sock, ZMQ_RCVMORE, &more, &n);
        ws_channel_take_message(c, c->zmq->msg_data(&m), more ? 0 : c->zmq->msg_size(&m));
        c->ring.n_received++;
        c->zmq->msg_close(&m);
    }
}

/* ---- waiting ---- */

/* Polls for all waiters until something came. Lock held; given up meanwhile. */
static void lead(struct ws_channel *c, struct reply_waiter *w)
{
    ws_ring_wait(&c->ring, true);
    drain(c);
    if (w->done || c->dead) {
        ws_ring_wait(&c->ring, false);
        return;
    }
    struct pollfd p[] = {
        {.fd = c->zmq_fd, .events = POLLIN},        {.fd = c->wake_fd, .events = POLLIN},
        {.fd = c->handoff_fd, .events = POLLRDHUP}, {.fd = c->monitor_fd, .events = POLLIN},
        {.fd = c->ring.doorbell, .events = POLLIN},
    };
    c->leader_polls = true;
    pthread_mutex_unlock(&c->lock);
    int n = poll(p, WS_ARRAY_SIZE(p), POLL_MS);
    pthread_mutex_lock(&c->lock);
    c->leader_polls = false;
    ws_ring_wait(&c->ring, false);
    bool gone = n == 0 || p[2].revents || p[3].revents;
    if (n > 0 && p[4].revents)
        gone |= !ws_ring_hear(&c->ring, NULL);
    if (n > 0 && p[1].revents) {
        uint64_t v;
        ssize_t ignored = read(c->wake_fd, &v, sizeof(v));
        (void)ignored;
    }
    drain(c);
    if (n >= 0 && gone && !c->dead && ws_channel_peer_gone(c)) {
        drain(c); /* what it said before */
        die(c, "the connection is gone");
    }
}

/* Before the command is sent: its reply may come as soon as that is done. Lock held. */
static void wait_begin(struct ws_channel *c, struct reply_waiter *w)
{
    pthread_cond_init(&w->cond, NULL);
    ws_list_append(&c->waiters, &w->link);
}

/* Until w->done or the channel is dead. Lock held. */
static void wait_end(struct ws_channel *c, struct reply_waiter *w)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
                           &cancel); /* a cancelled leader would leave the others without one */
    while (!w->done && !c->dead) {
        if (c->leader) {
            pthread_cond_wait(&w->cond, &c->lock);
        } else {
            c->leader = w;
            lead(c, w);
            c->leader = NULL;
        }
    }
    ws_list_remove(&w->link);
    if (!c->leader && !ws_list_empty(&c->waiters))
        pthread_cond_signal(&ws_list_entry(c->waiters.next, struct reply_waiter, link)->cond);
    pthread_cond_destroy(&w->cond);
    pthread_setcancelstate(cancel, NULL);
}

/* ---- sending ---- */

static int flush(struct ws_channel *c)
{
    if (c->dead)
        return WS__ERROR__DISCONNECTED;
    if (c->batch_commands) {
        int r = 0;
        if (ws_ring_put(&c->ring, c->batch, c->batch_bytes)) {
            ws_ring_signal(&c->ring);
        } else {
            do
                r = c->zmq->send(c->sock, c->batch, c->batch_bytes, ZMQ_DONTWAIT);
            while (r < 0 && errno == EINTR);
            c->ring.n_sent++;
        }
        c->batch_commands = 0;
        c->batch_bytes = 0;
        if (r < 0)
            die(c, c->zmq->strerror(errno));
        drain(c);
    }
    return c->dead ? WS__ERROR__DISCONNECTED : WS__ERROR__OK;
}

static void *flusher_main(void *arg)
{
    struct ws_channel *c = arg;
    uint64_t seen = 0;
    int quiet = 0;
    prctl(PR_SET_NAME, "ws-flush");
    prctl(PR_SET_TIMERSLACK, 1000ul); /* ns */
    pthread_mutex_lock(&c->lock);
    while (!c->flusher_stop && !c->dead) {
        if (c->n_async != seen) {
            quiet = 0;
            seen = c->n_async;
        } else if (c->batch_commands) {
            flush(c);
            quiet = 0;
        } else if (++quiet >= FLUSH_QUIET_TICKS) {
            c->flusher_asleep = true;
            while (c->flusher_asleep && !c->flusher_stop && !c->dead)
                pthread_cond_wait(&c->flusher_cond, &c->lock);
            quiet = 0;
            continue;
        }
        pthread_mutex_unlock(&c->lock);
        nanosleep(&(struct timespec){.tv_nsec = FLUSH_NS}, NULL);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void flusher_start(struct ws_channel *c)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* the program's signals are not for our thread */
    c->flusher_started = pthread_create(&c->flusher, NULL, flusher_main, c) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    c->flusher_asleep = !c->flusher_started; /* without it every command goes at once */
}

/* Room for a command of @bytes. On return the batch is open and has room; or an error. Lock held,
 * perhaps given up meanwhile. */
static int make_room(struct ws_channel *c, size_t bytes)
{
    if (WS_UNLIKELY(bytes + 32 > c->limits.message_bytes))
        return WS__ERROR__LIMIT_EXCEEDED;
    while (WS_UNLIKELY(!window_open(c))) {
        if (flush(c))
            return WS__ERROR__DISCONNECTED;
        if (window_open(c))
            break;
        struct reply_waiter w = {0};
        wait_begin(c, &w);
        wait_end(c, &w);
        if (c->dead)
            return WS__ERROR__DISCONNECTED;
    }
    size_t want = c->batch_bytes + bytes + 32;
    if (WS_UNLIKELY(c->batch_commands &&
                    (want > c->limits.message_bytes || want > BATCH_BYTES + 32 ||
                     c->batch_commands >= WS_MIN(c->limits.commands, (uint32_t)BATCH_COMMANDS)))) {
        if (flush(c))
            return WS__ERROR__DISCONNECTED;
        want = bytes + 32;
    }
    if (WS_UNLIKELY(want > c->batch_cap) && ws_grow((void **)&c->batch, &c->batch_cap, want, 1))
        return WS__ERROR__INTERNAL;
    if (!c->batch_commands) {
        c->batch[0] = TAG_FIRST_SEQ;
        c->batch_bytes = put_varint(c->batch + 1, c->n_posted + 1) - c->batch;
    }
    return c->dead ? WS__ERROR__DISCONNECTED : WS__ERROR__OK;
}

static void count_command(struct ws_channel *c, size_t batch_bytes)
{
    c->batch_bytes = batch_bytes;
    c->batch_commands++;
    c->n_posted++;
}

static int append(struct ws_channel *c, const Ws__Command *cmd)
{
    size_t n = ws__command__get_packed_size(cmd);
    int r = make_room(c, n);
    if (r)
        return r;
    uint8_t *p = c->batch + c->batch_bytes;
    *p++ = TAG_COMMANDS;
    p = put_varint(p, n);
    p += ws__command__pack(cmd, p);
    count_command(c, p - c->batch);
    return WS__ERROR__OK;
}

/* After an asynchronous command: see to it that it goes out. */
static void nudge(struct ws_channel *c)
{
    c->n_async++;
    if (WS_UNLIKELY(c->batch_commands >= BATCH_COMMANDS || c->batch_bytes >= BATCH_BYTES)) {
        flush(c);
    } else if (WS_UNLIKELY(c->flusher_asleep)) {
        flush(c);
        if (c->flusher_started) {
            c->flusher_asleep = false;
            pthread_cond_signal(&c->flusher_cond);
        }
    } else if (WS_UNLIKELY(!c->flusher_started)) {
        flush(c);
        flusher_start(c);
    }
}

int ws_channel_post(struct ws_channel *c, const Ws__Command *cmd)
{
    pthread_mutex_lock(&c->lock);
    int r = append(c, cmd);
    if (!r)
        nudge(c);
    pthread_mutex_unlock(&c->lock);
    return r;
}

int ws_channel_post_launch(struct ws_channel *c, const Ws__Launch *l)
{
    enum { FIELDS_MAX = 13 * 11 + 8 }; /* thirteen numbers, the head of params */
    size_t max = FIELDS_MAX + l->params.len + 8;
    if (max > LENGTH3_MAX)
        return WS__ERROR__LIMIT_EXCEEDED;
    pthread_mutex_lock(&c->lock);
    int r = make_room(c, max);
    if (!r) {
        uint8_t *command = c->batch + c->batch_bytes, *launch = command + 4, *p = launch + 4;
        command[0] = TAG_COMMANDS;
        launch[0] = TAG_LAUNCH;
        p = put_field(p, 0x08, l->stream);
        p = put_field(p, 0x10, l->function);
        p = put_field(p, 0x18, l->grid_x);
        p = put_field(p, 0x20, l->grid_y);
        p = put_field(p, 0x28, l->grid_z);
        p = put_field(p, 0x30, l->block_x);
        p = put_field(p, 0x38, l->block_y);
        p = put_field(p, 0x40, l->block_z);
        p = put_field(p, 0x48, l->shared_bytes);
        p = put_field(p, 0x50, l->flags);
        if (l->params.len) {
            *p++ = 0x5a;
            p = put_varint(p, l->params.len);
            memcpy(p, l->params.data, l->params.len);
            p += l->params.len;
        }
        p = put_field(p, 0x60, l->cluster_x);
        p = put_field(p, 0x68, l->cluster_y);
        p = put_field(p, 0x70, l->cluster_z);
        put_length3(launch + 1, p - launch - 4);
        put_length3(command + 1, p - command - 4);
        count_command(c, p - c->batch);
        nudge(c);
    }
    pthread_mutex_unlock(&c->lock);
    return r;
}

int ws_channel_call(struct ws_channel *c, const Ws__Command *cmd, Ws__Reply **ret_reply)
{
    struct reply_waiter w = {0};
    pthread_mutex_lock(&c->lock);
    int r = append(c, cmd);
    if (!r) {
        w.seq = c->n_posted;
        wait_begin(c, &w);
        r = flush(c);
        wait_end(c, &w);
    }
    if (w.reply && w.reply->error == c->async_error && c->async_error < WS__ERROR__ILLEGAL_ADDRESS)
        c->async_error = WS__ERROR__OK; /* told by this reply */
    pthread_mutex_unlock(&c->lock);
    if (!w.reply)
        return r ? r : WS__ERROR__DISCONNECTED;
    r = w.reply->error;
    if (ret_reply)
        *ret_reply = w.reply;
    else
        ws_channel_reply_free(w.reply);
    return r;
}

int ws_channel_next_gate(struct ws_channel *c, uint64_t *ret_gate)
{
    pthread_mutex_lock(&c->lock);
    if (c->first_gate == c->n_gates && !c->dead) {
        struct reply_waiter w = {.seq = SEQ_GATE};
        wait_begin(c, &w);
        wait_end(c, &w);
    }
    bool found = c->first_gate < c->n_gates;
    if (found)
        *ret_gate = c->gates[c->first_gate++];
    pthread_mutex_unlock(&c->lock);
    return found ? WS__ERROR__OK : WS__ERROR__DISCONNECTED;
}

void ws_channel_reply_free(Ws__Reply *r)
{
    if (r)
        ws__reply__free_unpacked(r, NULL);
}

void ws_channel_set_loss(struct ws_channel *c, const char *text)
{
    c->loss = text;
}

int ws_channel_flush(struct ws_channel *c)
{
    pthread_mutex_lock(&c->lock);
    int r = flush(c);
    pthread_mutex_unlock(&c->lock);
    return r;
}

int ws_channel_post_bulk(struct ws_channel *c, Ws__Command *cmd, const void *data, size_t bytes)
{
    pthread_mutex_lock(&c->lock);
    int r = flush(c);
    if (cmd->copy)
        cmd->copy->frame = 1;
    if (!r && bytes + 256 > c->limits.message_bytes)
        r = WS__ERROR__LIMIT_EXCEEDED;
    if (!r)
        r = append(c, cmd);
    if (!r) {
        int sent = c->zmq->send(c->sock, c->batch, c->batch_bytes, ZMQ_DONTWAIT | ZMQ_SNDMORE);
        if (sent >= 0)
            sent = c->zmq->send(c->sock, data, bytes, ZMQ_DONTWAIT);
        c->ring.n_sent++;
        c->batch_commands = 0;
        c->batch_bytes = 0;
        if (sent < 0)
            die(c, c->zmq->strerror(errno));
        drain(c);
        r = c->dead ? WS__ERROR__DISCONNECTED : WS__ERROR__OK;
    }
    pthread_mutex_unlock(&c->lock);
    return r;
}

int ws_channel_async_error(struct ws_channel *c, bool take)
{
    return take ? atomic_exchange(&c->async_error, WS__ERROR__OK) : c->async_error;
}

bool ws_channel_alive(struct ws_channel *c)
{
    pthread_mutex_lock(&c->lock);
    if (!c->dead) {
        drain(c);
        if (!c->dead && ws_channel_peer_gone(c))
            die(c, "the connection is gone");
    }
    bool alive = !c->dead;
    pthread_mutex_unlock(&c->lock);
    return alive;
}

const Ws__HelloReply *ws_channel_hello(const struct ws_channel *c)
{
    return c->hello;
}

// SPDX-License-Identifier: Apache-2.0
/* Bytes are read to memory that all connections share, and messages are handled where they lie
 * there. Only what cannot be handled yet is kept, and counted: the frames of a message whose end
 * has not come, and what follows a message that the server is still busy with. Room for a whole
 * read is charged before it, so nothing is read that could not be kept.
 *
 * In the other direction the socket's own buffer holds what the other end has not fetched. A
 * message that fits in part is accepted and its rest is queued; the next one is refused until the
 * rest is gone. */
#include "backend/wire/connection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "backend/wire/closer.h"
#include "protocol/protocol.h"

/* A connection may be read for so long in one turn. */
#define ROUND_NS (250 * WS_NS_PER_US)
enum {
    DISCARDS_PER_TURN = 4,
    DIRECT_MIN = 4096, /* as much of a frame must be missing for it to be read straight there */
    DIRECT_MAX = 1 << 20,
    STRANGER_MAX_BYTES = 64 << 10 /* of a message of one who has not said hello */
};

/* ---- memory for what is to come ---- */

struct charged {
    struct ws_buffer base;
    struct ws_account *account;
    size_t n;
    _Alignas(16) uint8_t bytes[];
};

static void charged_end(struct ws_buffer *b)
{
    struct charged *c = WS_CONTAINER_OF(b, struct charged, base);
    ws_account_release(c->account, WS_RESOURCE_QUEUED_BYTES, c->n);
    ws_account_unref(c->account);
    free(c);
}

static struct ws_buffer *buffer(void *arg, size_t n, uint8_t **ret_data)
{
    struct ws_connection *k = arg;
    if (ws_account_charge(k->account, WS_RESOURCE_QUEUED_BYTES, n))
        return NULL;
    struct charged *c = malloc(sizeof(*c) + n);
    if (!c) {
        ws_account_release(k->account, WS_RESOURCE_QUEUED_BYTES, n);
        return NULL;
    }
    c->base = (struct ws_buffer){.n_refs = 1, .end = charged_end};
    c->account = ws_account_ref(k->account);
    c->n = n;
    *ret_data = c->bytes;
    return &c->base;
}

static size_t max_bytes(void *arg)
{
    const struct ws_connection *k = arg;
    size_t max = k->door->options.max_message_bytes;
    max = k->local ? max : WS_MIN(max, (size_t)WS_FAR_MESSAGE_BYTES);
    return ws_door_known(k) ? max : WS_MIN(max, (size_t)STRANGER_MAX_BYTES);
}

static bool allows(void *arg, const uint8_t key[WS_CURVE_KEY_BYTES])
{
    return ws_door_admit(arg, key);
}

/* ---- in ---- */

static void log_wrong(const struct ws_connection *k)
{
    if (k->zmtp.refused || !ws_accept_may_say())
        return;
    if (k->local)
        ws_log(WS_INFO, "door: closed uid=%u pid=%u: %s", k->uid, k->pid, k->zmtp.why);
    else
        ws_log(WS_INFO, "door: closed address=%s: %s", k->address, k->zmtp.why);
}

static void hand_over(struct ws_connection *k, bool oversized)
{
    struct ws_message m;
    ws_zmtp_message(&k->zmtp, &m);
    m.peer = &k->peer;
    m.oversized = oversized;
    k->door->options.ops.message(k->door->options.ops.arg, &m);
    ws_zmtp_forget(&k->zmtp);
}

static bool wanted(const struct ws_connection *k)
{
    return k->door->options.ops.wants(k->door->options.ops.arg, &k->peer);
}

/* The account has no room for @n bytes: perhaps later. */
static enum ws_connection_result no_room(struct ws_connection *k, size_t n)
{
    if (!k->no_room_ns)
        k->no_room_ns = ws_clock_ns();
    k->no_room_bytes = n;
    return WS_CONNECTION_MORE;
}

/* Hands over the messages in @p, until @until_ns. Return: EMPTY: all bytes are taken. */
static enum ws_connection_result take(struct ws_connection *k, uint8_t **p, size_t *n,
                                      uint64_t until_ns)
{
    for (;;) {
        if (!wanted(k))
            return WS_CONNECTION_MORE;
        switch (ws_zmtp_take(&k->zmtp, p, n)) {
        case WS_ZMTP_MORE:
            return WS_CONNECTION_EMPTY;
        case WS_ZMTP_MESSAGE:
            hand_over(k, false);
            if (ws_clock_ns() >= until_ns)
                return WS_CONNECTION_MORE;
            break;
        case WS_ZMTP_NO_ROOM:
            return no_room(k, k->zmtp.body_bytes);
        case WS_ZMTP_TOO_LARGE:
            hand_over(k, true);
            return WS_CONNECTION_SHUT;
        default:
            log_wrong(k);
            return WS_CONNECTION_SHUT;
        }
    }
}

static void drop_left(struct ws_connection *k)
{
    ws_account_release(k->account, WS_RESOURCE_QUEUED_BYTES, k->n_left);
    free(k->left);
    k->left = NULL;
    k->n_left = k->at_left = 0;
}

/* What was kept of earlier reads. */
static enum ws_connection_result take_left(struct ws_connection *k, uint64_t until_ns)
{
    uint8_t *p = k->left ? k->left + k->at_left : k->door->bytes;
    size_t n = k->n_left - k->at_left;
    enum ws_connection_result r = take(k, &p, &n, until_ns);
    k->at_left = k->n_left - n;
    if (!n)
        drop_left(k);
    return r;
}

/* Keeps @n bytes, which are charged already. */
static bool keep(struct ws_connection *k, const uint8_t *p, size_t n)
{
    k->left = malloc(n);
    if (!k->left)
        return false;
    memcpy(k->left, p, n);
    k->n_left = n;
    k->at_left = 0;
    return true;
}

/* Reads to @p. Return: bytes, 0: nothing is there now, -1: the end. */
static ssize_t read_to(struct ws_connection *k, uint8_t *p, size_t size)
{
    struct ws_closer *closer = k->door->options.closer;
    struct ws_packet_fds came = {.n = 0};
    if (k->local && !ws_closer_has_room(closer, k->account))
        return -1;
    ssize_t n = k->local ? ws_packet_recv_bytes(k->fd, p, size, MSG_DONTWAIT, &came)
                         : recv(k->fd, p, size, MSG_DONTWAIT);
    int error = errno;
    ws_closer_drop(closer, &came, k->account);
    errno = error;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        k->readable = errno == EINTR;
        return 0;
    }
    if (n <= 0)
        return -1;
    k->heard_ns = ws_clock_ns();
    if ((size_t)n < size && !k->hung_up)
        k->readable = false; /* the door hears when more comes */
    return n;
}

static enum ws_connection_result read_on(struct ws_connection *k, uint64_t until_ns)
{
    size_t room;
    uint8_t *direct = ws_zmtp_room(&k->zmtp, &room), *p = k->door->bytes;
    if (room >= DIRECT_MIN) {
        ssize_t n = read_to(k, direct, WS_MIN(room, (size_t)DIRECT_MAX));
        if (n <= 0)
            return n ? WS_CONNECTION_END : WS_CONNECTION_EMPTY;
        ws_zmtp_put(&k->zmtp, (size_t)n);
        size_t none = 0;
        return take(k, &p, &none, until_ns);
    }
    if (ws_account_charge(k->account, WS_RESOURCE_QUEUED_BYTES, WS_DOOR_READ_BYTES))
        return no_room(k, WS_DOOR_READ_BYTES);
    k->no_room_ns = 0;
    struct ws_account *charged = ws_account_ref(k->account); /* the key may bring another */
    ssize_t came = read_to(k, p, WS_DOOR_READ_BYTES);
    size_t n = came > 0 ? (size_t)came : 0;
    enum ws_connection_result r = came < 0 ? WS_CONNECTION_END
                                  : came   ? take(k, &p, &n, until_ns)
                                           : WS_CONNECTION_EMPTY;
    ws_account_release(charged, WS_RESOURCE_QUEUED_BYTES, WS_DOOR_READ_BYTES);
    ws_account_unref(charged);
    if (n && (r == WS_CONNECTION_MORE || r == WS_CONNECTION_EMPTY) &&
        (ws_account_charge(k->account, WS_RESOURCE_QUEUED_BYTES, n) || !keep(k, p, n)))
        return WS_CONNECTION_END;
    return r;
}

void ws_connection_stop_reading(struct ws_connection *k)
{
    ws_zmtp_deinit(&k->zmtp);
    drop_left(k);
}

/* Whoever is told why it is closed out can fetch that before the end. */
static enum ws_connection_result discard(struct ws_connection *k)
{
    for (int i = 0; i < DISCARDS_PER_TURN && k->readable; i++) {
        if (read_to(k, k->door->bytes, WS_DOOR_READ_BYTES) < 0)
            return WS_CONNECTION_END;
    }
    return k->readable ? WS_CONNECTION_MORE : WS_CONNECTION_EMPTY;
}

enum ws_connection_result ws_connection_serve(struct ws_connection *k)
{
    uint64_t until_ns = ws_clock_ns() + ROUND_NS;
    enum ws_connection_result r = WS_CONNECTION_EMPTY;
    if (k->end_ns)
        return discard(k);
    if (!wanted(k))
        return WS_CONNECTION_MORE;
    if (k->more)
        r = take_left(k, until_ns);
    while (r == WS_CONNECTION_EMPTY && k->readable) {
        r = read_on(k, until_ns);
        if (r == WS_CONNECTION_EMPTY && k->readable && ws_clock_ns() >= until_ns)
            r = WS_CONNECTION_MORE;
    }
    if (k->zmtp.n_out && !k->n_queue && r != WS_CONNECTION_END)
        (void)ws_connection_flush(k);
    k->more = r == WS_CONNECTION_MORE;
    return r;
}

/* ---- out ---- */

/* Return: bytes sent; 0: no room; -1: broken. */
static ssize_t write_some(struct ws_connection *k, struct iovec *v, size_t n)
{
    struct msghdr m = {.msg_iov = v, .msg_iovlen = n};
    ssize_t sent;
    do
        sent = sendmsg(k->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN)
        return 0;
    k->broken = true;
    return -1;
}

static void drop_queue(struct ws_connection *k)
{
    ws_account_release(k->account, WS_RESOURCE_QUEUED_BYTES, k->n_queue);
    free(k->queue);
    k->queue = NULL;
    k->n_queue = k->at_queue = 0;
}

static void flush_queue(struct ws_connection *k)
{
    struct iovec v = {k->queue + k->at_queue, k->n_queue - k->at_queue};
    ssize_t n = write_some(k, &v, 1);
    if (n > 0)
        k->at_queue += (size_t)n;
    if (n < 0 || k->at_queue == k->n_queue)
        drop_queue(k);
}

/* What the protocol has to say by itself; never in the middle of a message. */
static void flush_out(struct ws_connection *k)
{
    struct ws_zmtp *z = &k->zmtp;
    struct iovec v = {z->out, z->n_out};
    ssize_t n = write_some(k, &v, 1);
    if (n > 0) {
        z->n_out -= (size_t)n;
        memmove(z->out, z->out + n, z->n_out);
    }
}

bool ws_connection_flush(struct ws_connection *k)
{
    if (k->n_queue && !k->broken)
        flush_queue(k);
    if (!k->n_queue && k->zmtp.n_out && !k->broken)
        flush_out(k);
    bool done = k->broken || (!k->n_queue && !k->zmtp.n_out);
    ws_door_await_writable(k, !done);
    return done;
}

/* Queues the last @n of the bytes in @v. What is charged for them stays charged. */
static int queue_rest(struct ws_connection *k, const struct iovec *v, size_t n_v, size_t sent,
                      size_t n)
{
    k->queue = malloc(n);
    if (!k->queue) {
        k->broken = true;
        return -EHOSTUNREACH;
    }
    k->n_queue = n;
    k->at_queue = 0;
    uint8_t *to = k->queue;
    for (size_t i = 0; i < n_v; i++) {
        size_t skip = WS_MIN(sent, v[i].iov_len);
        memcpy(to, (const uint8_t *)v[i].iov_base + skip, v[i].iov_len - skip);
        to += v[i].iov_len - skip;
        sent -= skip;
    }
    ws_door_await_writable(k, true);
    return 0;
}

/* Sends what is charged already; what was sent is released. @must: none of it may be refused. */
static int send_charged(struct ws_connection *k, struct iovec *v, size_t n_v, size_t n, bool must)
{
    ssize_t sent = write_some(k, v, n_v);
    int r = sent < 0 ? -EHOSTUNREACH : 0;
    if (!sent && !must) {
        ws_door_await_writable(k, true);
        r = -EAGAIN;
    }
    if (!r && (size_t)sent < n)
        r = queue_rest(k, v, n_v, (size_t)sent, n - (size_t)sent);
    ws_account_release(k->account, WS_RESOURCE_QUEUED_BYTES, r ? n : (size_t)sent);
    return r;
}

int ws_connection_send(struct ws_connection *k, const void *data, size_t n)
{
    uint8_t head[WS_ZMTP_HEAD_MAX], *sealed;
    size_t wire = ws_zmtp_wire_bytes(&k->zmtp, n);
    if (k->broken || k->end_ns || k->zmtp.stage != WS_ZMTP_OPEN)
        return -EHOSTUNREACH;
    if ((k->n_queue || k->zmtp.n_out) && !ws_connection_flush(k))
        return -EAGAIN;
    if (ws_account_charge(k->account, WS_RESOURCE_QUEUED_BYTES, wire))
        return -EAGAIN;
    if (!k->zmtp.curve) {
        struct iovec v[] = {{head, ws_zmtp_frame_head(head, n)}, {(void *)data, n}};
        return send_charged(k, v, WS_ARRAY_SIZE(v), wire, false);
    }
    sealed = malloc(wire);
    if (!sealed) {
        ws_account_release(k->account, WS_RESOURCE_QUEUED_BYTES, wire);
        return -EAGAIN;
    }
    ws_zmtp_write(&k->zmtp, data, n, sealed);
    struct iovec v = {sealed, wire};
    int r = send_charged(k, &v, 1, wire, true); /* it has its number already */
    free(sealed);
    return r;
}

/* ---- life ---- */

struct ws_connection *ws_connection_new(struct ws_door *d, int fd, struct ws_account *account,
                                        bool local)
{
    struct ws_connection *k = ws_alloc(sizeof(*k));
    if (!k) {
        close(fd);
        ws_account_release(account, WS_RESOURCE_CONNECTIONS, 1);
        ws_account_unref(account);
        return NULL;
    }
    k->door = d;
    k->fd = fd;
    k->local = local;
    k->account = account;
    k->since_ns = k->heard_ns = k->asked_ns = ws_clock_ns();
    k->curve.server = &d->keys;
    ws_list_init(&k->node);
    ws_list_init(&k->ready);
    ws_zmtp_init(&k->zmtp, &(struct ws_zmtp_owner){k, buffer, max_bytes, allows},
                 local ? NULL : &k->curve);
    return k;
}

void ws_connection_free(struct ws_connection *k)
{
    ws_zmtp_deinit(&k->zmtp);
    ws_curve_deinit(&k->curve);
    drop_left(k);
    drop_queue(k);
    ws_list_remove(&k->node);
    ws_list_remove(&k->ready);
    epoll_ctl(k->door->epoll_fd, EPOLL_CTL_DEL, k->fd, NULL);
    if (k->local) {
        ws_closer_end(k->door->options.closer, k->fd, k->account, WS_RESOURCE_CONNECTIONS);
    } else {
        close(k->fd);
        ws_account_release(k->account, WS_RESOURCE_CONNECTIONS, 1);
    }
    ws_account_unref(k->account);
    free(k);
}

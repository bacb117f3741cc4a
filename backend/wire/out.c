// SPDX-License-Identifier: Apache-2.0
/* What leaves the daemon. Replies have come together in client->out.bytes (client/reply.c) and
 * leave as one message per client and turn, with the count of retired commands behind them. If
 * they are very many, they are several messages, of which one goes in a turn: copying and
 * encrypting takes time. What the peer does not fetch waits in its socket's buffer, then as the
 * rest of one message in its connection (wire/connection.c), which server->out.full keeps small,
 * and then in client->out; too much of it, or too long, and the client is dropped. */
#include "backend/wire/out.h"

#include "backend/backend.h"
#include "backend/client/reply.h"
#include "backend/wire/ring.h"
#include "base/alloc.h"
#include "base/clock.h"

enum { TAG_NOTICE = 3 << 3 | 2, KEEP_BYTES = 16384 };
#define STUCK_MAX_NS (10 * WS_NS_PER_S)

static uint64_t outstanding(const struct ws_client *c)
{
    return c->stats.n_commands - c->stats.n_retired;
}

/* Retirement is worth a message when the client may wait for it: nothing is left, or a good part
 * of its window is free. */
static bool notice_due(const struct ws_client *c)
{
    uint64_t untold = c->stats.n_retired - c->out.n_retired_told;
    return c->out.notice_error || c->out.n_reached ||
           (untold && (!outstanding(c) || untold >= c->limits.max_outstanding / 8));
}

static void append_notice(struct ws_client *c)
{
    Ws__Notice n = WS__NOTICE__INIT;
    n.retired = c->stats.n_retired;
    n.error = c->out.notice_error;
    n.text = c->out.notice_text;
    n.device = c->out.notice_device;
    n.reached = c->out.reached;
    n.n_reached = c->out.n_reached;
    ws_client_out_append(c, TAG_NOTICE, &n.base);
    c->out.n_reached = 0;
    c->out.n_retired_told = c->stats.n_retired;
    c->out.notice_error = WS__ERROR__OK;
    c->out.notice_text[0] = 0;
}

static void unstick(struct ws_client *c)
{
    if (c->out.stuck_since_ns)
        c->server->out.n_congested--;
    c->out.stuck_since_ns = 0;
}

/* Return: whether more waits than may, and the client is dropped. */
static bool too_much(struct ws_client *c, const char *why)
{
    size_t n = ws_client_out_bytes(c);
    bool stuck = c->out.stuck_since_ns && ws_clock_ns() - c->out.stuck_since_ns > STUCK_MAX_NS;
    if (n <= c->limits.max_unread_bytes && !stuck)
        return false;
    ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED, "%s: %zu bytes of replies wait", why, n);
    return true;
}

/* The other end takes nothing now. Return: the client is dropped. */
static bool stuck(struct ws_client *c)
{
    if (!c->out.stuck_since_ns) {
        c->out.stuck_since_ns = ws_clock_ns();
        c->server->out.n_congested++;
    }
    return too_much(c, "does not read");
}

/* Return: 0 or what the transport says. */
static int send_bytes(struct ws_client *c, const uint8_t *p, size_t n)
{
    struct ws_server *s = c->server;
    if (ws_client_ring_send(c, p, n))
        return 0;
    int r = s->transport.send(s->transport.arg, &c->peer, p, n);
    if (!r)
        ws_client_ring_passed_by(c);
    return r;
}

/* Sends the first message. Return: as send_bytes(). */
static int send_first(struct ws_client *c)
{
    if (ws_list_empty(&c->out.messages)) {
        int r = send_bytes(c, c->out.bytes, c->out.n);
        if (!r)
            c->out.n = 0;
        return r;
    }
    const struct ws_out_message *m =
        ws_list_entry(c->out.messages.next, struct ws_out_message, node);
    int r = send_bytes(c, m->bytes, m->n);
    if (!r) {
        ws_client_out_pop(c);
        c->out.turn = c->server->messages.turn;
    }
    return r;
}

/* Sends what there is for the client, which may be dropped on return. Return: false: some
 * is left. */
static bool flush(struct ws_client *c)
{
    struct ws_server *s = c->server;
    if (c->dropped)
        return true;
    if (c->out.stuck_since_ns == 0 &&
        (notice_due(c) || (c->out.n && c->stats.n_retired != c->out.n_retired_told)))
        append_notice(c);
    while (ws_client_out_bytes(c) && !c->dropped) {
        if (c->out.turn == s->messages.turn) { /* the next one goes in the next turn */
            s->out.more = true;
            return too_much(c, "asks for more than it can be sent");
        }
        int r = send_first(c);
        if (r == -EAGAIN)
            return stuck(c);
        unstick(c);
        if (r) {
            ws_client_out_free(c); /* nobody reads it */
            ws_client_leave(c, "peer gone");
        } else if (!ws_client_out_bytes(c) && c->out.n_reached) {
            append_notice(c); /* came up while it was stuck: who waits for these asks nothing */
        }
    }
    if (c->out.cap > KEEP_BYTES && !c->out.n)
        ws_client_out_free(c);
    return true;
}

bool ws_server_flush_full(struct ws_server *s)
{
    struct ws_list *n;
    bool any = false;
    while ((n = ws_list_pop(&s->out.full))) {
        flush(ws_list_entry(n, struct ws_client, out.full));
        any = true;
    }
    return any;
}

void ws_server_flush(struct ws_server *s)
{
    struct ws_list later, *n;
    ws_list_init(&later);
    s->out.more = false;
    while ((n = ws_list_pop(&s->out.dirty))) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, out.dirty);
        if (!flush(c))
            ws_list_append(&later, n);
    }
    while ((n = ws_list_pop(&later)))
        ws_list_append(&s->out.dirty, n);
}

int ws_server_send(struct ws_server *s, const struct ws_peer *to, const Ws__ServerMessage *m)
{
    size_t n = ws__server_message__get_packed_size(m);
    uint8_t *p = malloc(n ? n : 1);
    if (!p)
        return -ENOMEM;
    ws__server_message__pack(m, p);
    int r = s->transport.send(s->transport.arg, to, p, n);
    free(p);
    return r;
}

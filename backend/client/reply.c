// SPDX-License-Identifier: Apache-2.0
#include "backend/client/reply.h"

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/client/user.h"
#include "base/alloc.h"

enum { TAG_REPLIES = 2 << 3 | 2, HEAD_BYTES = 11, FULL_BYTES = 256 << 10 };

static size_t put_varint(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

/* Room that came with what is to be sent. Answers to somebody who fetches them leave at once or in
 * the next turns, so nobody is refused that room; answers that wait are bounded. Return: false: it
 * may not have that, and is dropped. */
static bool charge_room(struct ws_client *c)
{
    size_t n = c->out.cap - c->out.charged_bytes;
    if (!c->out.stuck_since_ns) {
        ws_account_take_over(c->who.account, WS_RESOURCE_QUEUED_BYTES, n);
    } else if (ws_client_charge(c, WS_RESOURCE_QUEUED_BYTES, n)) {
        ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED,
                       "its answers wait, and its user may have no more bytes that wait");
        return false;
    }
    c->out.charged_bytes += n;
    return true;
}

size_t ws_client_out_bytes(const struct ws_client *c)
{
    return c->out.n_messages + c->out.n;
}

static void free_open(struct ws_client *c)
{
    ws_client_release(c, WS_RESOURCE_QUEUED_BYTES, c->out.charged_bytes);
    free(c->out.bytes);
    c->out.bytes = NULL;
    c->out.n = c->out.cap = c->out.charged_bytes = 0;
}

void ws_client_out_pop(struct ws_client *c)
{
    struct ws_list *n = ws_list_pop(&c->out.messages);
    struct ws_out_message *m = ws_list_entry(n, struct ws_out_message, node);
    c->out.n_messages -= m->n;
    ws_client_release(c, WS_RESOURCE_QUEUED_BYTES, m->charged_bytes);
    free(m->bytes);
    free(m);
}

void ws_client_out_free(struct ws_client *c)
{
    while (!ws_list_empty(&c->out.messages))
        ws_client_out_pop(c);
    free_open(c);
}

/* What waits becomes a message of its own if it would be a long one with @n bytes more. Return:
 * false: there is no memory, and the client is dropped. */
static bool close_message(struct ws_client *c, size_t n)
{
    if (WS_LIKELY(!c->out.n || c->out.n + n <= FULL_BYTES))
        return true;
    struct ws_out_message *m = ws_alloc(sizeof(*m));
    if (!m) {
        ws_client_drop_no_memory(c);
        return false;
    }
    m->bytes = c->out.bytes;
    m->n = c->out.n;
    m->charged_bytes = c->out.charged_bytes;
    ws_list_append(&c->out.messages, &m->node);
    c->out.n_messages += m->n;
    c->out.bytes = NULL;
    c->out.n = c->out.cap = c->out.charged_bytes = 0;
    return true;
}

/* Tag and length, then the message. Return: how many bytes. */
static size_t put_message(uint8_t *to, uint8_t tag, const ProtobufCMessage *m, size_t n)
{
    uint8_t *begin = to;
    *to++ = tag;
    to += put_varint(to, n);
    to += protobuf_c_message_pack(m, to);
    return (size_t)(to - begin);
}

/* Return: false: there is no room for @n bytes more, and the client is dropped. */
static bool make_room(struct ws_client *c, size_t n)
{
    if (!close_message(c, n))
        return false;
    size_t cap = c->out.cap;
    if (ws_grow_bytes(&c->out.bytes, &c->out.cap, c->out.n + n)) {
        ws_client_drop_no_memory(c);
        return false;
    }
    return WS_LIKELY(c->out.cap == cap) || charge_room(c);
}

/* There are @n bytes more. */
static void appended(struct ws_client *c, size_t n)
{
    c->out.n += n;
    if (WS_UNLIKELY(ws_client_out_bytes(c) > FULL_BYTES) && ws_list_empty(&c->out.full) &&
        !c->out.stuck_since_ns)
        ws_list_append(&c->server->out.full, &c->out.full);
}

void ws_client_out_append(struct ws_client *c, uint8_t tag, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    if (make_room(c, HEAD_BYTES + n))
        appended(c, put_message(c->out.bytes + c->out.n, tag, m, n));
}

/* Whoever gets an answer has waited for it, which may end its job: the dispatcher looks at it
 * before it decides anything else. */
static void waits(struct ws_client *c)
{
    if (ws_list_empty(&c->jobs.waiting))
        ws_list_append(&c->server->queues.waiting, &c->jobs.waiting);
}

void ws_client_reply(struct ws_client *c, const Ws__Reply *r)
{
    if (c->dropped)
        return;
    if (WS_UNLIKELY(c->jobs.n_open))
        waits(c);
    ws_client_out_append(c, TAG_REPLIES, &r->base);
    ws_client_touch(c);
}

uint8_t *ws_reply_pack(const Ws__Reply *r, size_t *ret_n)
{
    size_t n = ws__reply__get_packed_size(r);
    uint8_t *p = malloc(HEAD_BYTES + n);
    if (p)
        *ret_n = put_message(p, TAG_REPLIES, &r->base, n);
    return p;
}

void ws_client_reply_packed(struct ws_client *c, uint8_t **io_bytes, size_t n)
{
    if (c->dropped)
        return;
    if (WS_UNLIKELY(c->jobs.n_open))
        waits(c);
    if (!close_message(c, n))
        return;
    if (!c->out.n) { /* it need not be copied */
        free_open(c);
        c->out.bytes = *io_bytes;
        c->out.cap = n;
        *io_bytes = NULL;
        if (!charge_room(c))
            return;
    } else {
        if (!make_room(c, n))
            return;
        memcpy(c->out.bytes + c->out.n, *io_bytes, n);
    }
    appended(c, n);
    ws_client_touch(c);
}

void ws_client_reply_error(struct ws_client *c, uint64_t seq, Ws__Error e, const char *text)
{
    Ws__Reply r = WS__REPLY__INIT;
    r.seq = seq;
    r.error = e;
    if (e)
        r.text = (char *)text;
    ws_client_reply(c, &r);
}

int ws_client_tell_reached(struct ws_client *c, uint64_t id)
{
    void *v = c->out.reached;
    if (ws_grow(&v, &c->out.cap_reached, c->out.n_reached + 1, sizeof(*c->out.reached)))
        return ws_raise(-ENOMEM);
    c->out.reached = v;
    c->out.reached[c->out.n_reached++] = id;
    ws_client_touch(c);
    return 0;
}

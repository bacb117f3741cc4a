// SPDX-License-Identifier: Apache-2.0
#include "backend/client/reply.h"

#include "backend/backend.h"
#include "base/alloc.h"

enum { TAG_REPLIES = 2 << 3 | 2 };

static size_t put_varint(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

void ws_client_out_append(struct ws_client *c, uint8_t tag, const ProtobufCMessage *m)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    if (ws_grow((void **)&c->out.bytes, &c->out.cap, c->out.n + n + 11, 1)) {
        ws_client_drop_no_memory(c);
        return;
    }
    c->out.bytes[c->out.n++] = tag;
    c->out.n += put_varint(c->out.bytes + c->out.n, n);
    c->out.n += protobuf_c_message_pack(m, c->out.bytes + c->out.n);
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

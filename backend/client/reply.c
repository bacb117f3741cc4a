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
    if (ws_grow((void **)&c->out, &c->cap_out, c->n_out + n + 11, 1)) {
        ws_client_drop_no_memory(c);
        return;
    }
    c->out[c->n_out++] = tag;
    c->n_out += put_varint(c->out + c->n_out, n);
    c->n_out += protobuf_c_message_pack(m, c->out + c->n_out);
}

/* Whoever gets an answer has waited for it, which may end its job: the dispatcher looks at it before it decides anything else. */
static void waits(struct ws_client *c)
{
    if (ws_list_empty(&c->waiting))
        ws_list_append(&c->server->waiting, &c->waiting);
}

void ws_client_reply(struct ws_client *c, const Ws__Reply *r)
{
    if (c->dropped)
        return;
    if (WS_UNLIKELY(c->n_gpu_jobs))
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
    void *v = c->reached;
    if (ws_grow(&v, &c->cap_reached, c->n_reached + 1, sizeof *c->reached))
        return ws_raise(-ENOMEM);
    c->reached = v;
    c->reached[c->n_reached++] = id;
    ws_client_touch(c);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* Finding clients, cutting them off, and their errors. Nothing here knows of streams or sockets. */
#include "backend/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* When the handoff connection or the doorbell ends, the client's process has ended or is about to:
 * it gives ZeroMQ 200 ms for its last messages before that. If it was killed, the connection by
 * which they come ends too, and the client is dropped as soon as they are handled. */
#define LEAVE_MAX_NS (1000 * WS_NS_PER_MS)

struct ws_client *ws_client_find(struct ws_server *s, const struct ws_peer *peer)
{
    struct ws_client *c = s->clients.last;
    if (c && c->peer.id == peer->id)
        return c;
    HASH_FIND(hh, s->clients.by_peer, &peer->id, sizeof(peer->id), c);
    if (c)
        s->clients.last = c;
    return c;
}

void ws_client_drop(struct ws_client *c, Ws__Error error, const char *fmt, ...)
{
    struct ws_server *s = c->server;
    va_list ap;
    if (c->dropped)
        return;
    c->dropped = true;
    c->errors.drop = error;
    va_start(ap, fmt);
    vsnprintf(c->errors.drop_text, sizeof(c->errors.drop_text), fmt, ap);
    va_end(ap);
    if (error && !c->errors.sticky) {
        c->errors.async = error;
        memcpy(c->errors.text, c->errors.drop_text, sizeof(c->errors.text));
    }
    HASH_DEL(s->clients.by_peer, c);
    if (s->clients.last == c)
        s->clients.last = NULL;
    s->clients.n--;
    ws_list_remove(&c->out.dirty);
    ws_list_remove(&c->leaving.node);
    ws_list_remove(&c->node);
    ws_list_append(&s->clients.dropped, &c->node);
}

void ws_client_leave(struct ws_client *c, const char *why)
{
    if (c->dropped || !ws_list_empty(&c->leaving.node))
        return;
    ws_list_append(&c->server->clients.leaving, &c->leaving.node);
    c->leaving.why = why;
    c->leaving.until_ns = ws_clock_ns() + LEAVE_MAX_NS;
}

Ws__Error ws_client_drop_no_memory(struct ws_client *c)
{
    ws_client_drop(c, WS__ERROR__INTERNAL, "the daemon is out of memory");
    return WS__ERROR__INTERNAL;
}

void ws_client_async_error(struct ws_client *c, struct ws_context *x, Ws__Error e, const char *fmt,
                           ...)
{
    char text[sizeof(c->errors.text)];
    va_list ap;
    if (c->errors.sticky || c->dropped)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (!c->out.notice_error || ws_error_is_sticky(e)) {
        c->out.notice_error = e;
        memcpy(c->out.notice_text, text, sizeof(text));
        c->out.notice_device = x ? x->index : 0;
    }
    ws_client_touch(c);
    if (ws_error_is_sticky(e)) {
        c->errors.sticky = e;
        c->errors.sticky_context = x;
        memcpy(c->errors.text, text, sizeof(text));
        ws_log(WS_INFO, "client: context lost client=%u error=%d: %s", c->id, e, text);
        for (uint32_t i = 0; c->n_in_flight && i < c->n_contexts; i++)
            ws_device_cancel(c->contexts[i].gpu->device, c->memory.space);
    } else if (!c->errors.async) {
        c->errors.async = e;
        memcpy(c->errors.text, text, sizeof(text));
    }
}

Ws__Error ws_client_take_error(struct ws_client *c)
{
    Ws__Error e = c->errors.async;
    if (c->errors.sticky)
        return c->errors.sticky;
    c->errors.async = WS__ERROR__OK;
    return e;
}

void ws_client_touch(struct ws_client *c)
{
    if (ws_list_empty(&c->out.dirty) && !c->dropped)
        ws_list_append(&c->server->out.dirty, &c->out.dirty);
}

void ws_client_retire(struct ws_client *c, uint64_t n)
{
    c->stats.n_retired += n;
    ws_client_touch(c);
}

void ws_client_runs(struct ws_client *c)
{
    if (ws_list_empty(&c->streams.runs))
        ws_account_queue(&c->server->queues.ready, c->who.account, &c->streams.runs);
}

void ws_client_landed(struct ws_client *c)
{
    struct ws_list *last = c->joins.quiescing.prev;
    c->n_in_flight--;
    if (c->n_in_flight || c->dropped || last == &c->joins.quiescing)
        return;
    ws_list_remove(last); /* it looks again */
    ws_list_append(&c->joins.reached, last);
    ws_client_runs(c);
}

// SPDX-License-Identifier: Apache-2.0
/* Finding clients, cutting them off, and their errors. Nothing here knows of streams or sockets. */
#include "backend/backend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t ws_peer_key_bytes(const struct ws_peer *p)
{
    return offsetof(struct ws_peer, id) + p->n;
}

struct ws_client *ws_client_find(struct ws_server *s, const struct ws_peer *peer)
{
    struct ws_client *c = s->last_client;
    if (c && !memcmp(&c->peer, peer, ws_peer_key_bytes(peer)))
        return c;
    HASH_FIND(hh, s->by_peer, peer, ws_peer_key_bytes(peer), c);
    if (c)
        s->last_client = c;
    return c;
}

void ws_client_drop(struct ws_client *c, Ws__Error error, const char *fmt, ...)
{
    struct ws_server *s = c->server;
    va_list ap;
    if (c->dropped)
        return;
    c->dropped = true;
    c->drop_error = error;
    va_start(ap, fmt);
    vsnprintf(c->drop_text, sizeof c->drop_text, fmt, ap);
    va_end(ap);
    if (error && !c->sticky) {
        c->async_error = error;
        memcpy(c->error_text, c->drop_text, sizeof c->error_text);
    }
    HASH_DEL(s->by_peer, c);
    if (s->last_client == c)
        s->last_client = NULL;
    s->n_clients--;
    ws_list_remove(&c->dirty);
    ws_list_remove(&c->node);
    ws_list_append(&s->dropped, &c->node);
}

Ws__Error ws_client_drop_no_memory(struct ws_client *c)
{
    ws_client_drop(c, WS__ERROR__INTERNAL, "the daemon is out of memory");
    return WS__ERROR__INTERNAL;
}

void ws_client_async_error(struct ws_client *c, struct ws_context *x, Ws__Error e, const char *fmt,
                           ...)
{
    char text[sizeof c->error_text];
    va_list ap;
    if (c->sticky || c->dropped)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!c->notice_error || ws_error_is_sticky(e)) {
        c->notice_error = e;
        memcpy(c->notice_text, text, sizeof text);
        c->notice_device = x ? x->index : 0;
    }
    ws_client_touch(c);
    if (ws_error_is_sticky(e)) {
        c->sticky = e;
        c->sticky_context = x;
        memcpy(c->error_text, text, sizeof text);
        ws_log(WS_INFO, "client: context lost client=%u error=%d: %s", c->id, e, text);
        for (uint32_t i = 0; c->n_in_flight && i < c->n_contexts; i++)
            ws_device_cancel(c->contexts[i].gpu->device, c->space);
    } else if (!c->async_error) {
        c->async_error = e;
        memcpy(c->error_text, text, sizeof text);
    }
}

Ws__Error ws_client_take_error(struct ws_client *c)
{
    Ws__Error e = c->async_error;
    if (c->sticky)
        return c->sticky;
    c->async_error = WS__ERROR__OK;
    return e;
}

void ws_client_touch(struct ws_client *c)
{
    if (ws_list_empty(&c->dirty) && !c->dropped)
        ws_list_append(&c->server->dirty, &c->dirty);
}

void ws_client_retire(struct ws_client *c, uint64_t n)
{
    c->stats.n_retired += n;
    ws_client_touch(c);
}

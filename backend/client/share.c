// SPDX-License-Identifier: Apache-2.0
/* What clients of one daemon share by handles, which they pass to each other as they like:
 * allocations and events. A handle is random, so having it is the right to use it. */
#include "backend/backend.h"
#include "backend/client/memory.h"
#include "backend/client/event.h"

#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"

/* The allocation that holds @va. */
static struct ws_allocation *allocation_at(struct ws_client *c, uint64_t va)
{
    struct ws_mapping m;
    struct ws_allocation *a =
        ws_space_find(c->memory.space, va, 1, &m) ? ws_memory_find(c, m.va) : NULL;
    return a && !a->internal && !a->freeing ? a : NULL;
}

static Ws__Error memory_export(struct ws_client *c, uint64_t va, Ws__Reply *ret)
{
    struct ws_allocation *a = allocation_at(c, va);
    if (!a)
        return WS__ERROR__INVALID_VALUE;
    if (!ws_object_share(c->server, a->ref.object))
        return WS__ERROR__INTERNAL;
    ret->data = (ProtobufCBinaryData){WS_SHARE_BYTES, a->ref.object->handle};
    ret->value = a->va;
    ret->value2 = a->bytes;
    return WS__ERROR__OK;
}

static Ws__Error memory_import(struct ws_client *c, const Ws__Share *m, Ws__Reply *ret)
{
    struct ws_object *o = ws_object_find(c->server, m->handle);
    struct ws_allocation *a;
    uint32_t all = 0;
    if (!o)
        return WS__ERROR__INVALID_HANDLE;
    struct ws_context *x = ws_object_context(c, o);
    if (!x)
        return WS__ERROR__INVALID_DEVICE;
    /* Clients are spread over the GPUs, so one's device 0 is another's device 1: whichever uses
     * it, it is meant. */
    for (uint32_t i = 0; i < c->n_contexts; i++)
        all |= UINT32_C(1) << c->contexts[i].gpu->device->index;
    Ws__Error e = ws_memory_import(x, o, all, &a);
    if (e)
        return e;
    ret->value = a->va;
    ret->value2 = a->bytes;
    ret->device = x->index;
    return WS__ERROR__OK;
}

static Ws__Error event_export(struct ws_client *c, uint64_t id, Ws__Reply *ret)
{
    struct ws_event *e;
    Ws__Error err = ws_event_get(c, id, &e);
    if (err)
        return err;
    struct ws_event_state *t = e->state;
    if (!t->is_shared) {
        if (getrandom(t->handle, sizeof(t->handle), 0) != sizeof(t->handle))
            return WS__ERROR__INTERNAL;
        ws_event_share(c->server, t);
    }
    ret->data = (ProtobufCBinaryData){WS_SHARE_BYTES, t->handle};
    return WS__ERROR__OK;
}

static Ws__Error event_import(struct ws_client *c, const Ws__Share *m)
{
    struct ws_event_state *t = NULL;
    if (m->handle.len == WS_SHARE_BYTES)
        HASH_FIND(hh, c->server->shared_events, m->handle.data, WS_SHARE_BYTES, t);
    return t ? ws_event_import(c, m->event, t) : WS__ERROR__INVALID_HANDLE;
}

Ws__Error ws_share(struct ws_client *c, const Ws__Share *m, Ws__Reply *ret)
{
    switch (m->what) {
    case WS__SHARE__WHAT__MEMORY_EXPORT:
        return memory_export(c, m->address, ret);
    case WS__SHARE__WHAT__MEMORY_IMPORT:
        return memory_import(c, m, ret);
    case WS__SHARE__WHAT__EVENT_EXPORT:
        return event_export(c, m->event, ret);
    case WS__SHARE__WHAT__EVENT_IMPORT:
        return event_import(c, m);
    default:
        return WS__ERROR__INVALID_VALUE;
    }
}

Ws__Error ws_peer_access(struct ws_client *c, const Ws__PeerAccess *m)
{
    if (m->device >= c->n_contexts || m->peer >= c->n_contexts || m->device == m->peer)
        return WS__ERROR__INVALID_DEVICE;
    uint32_t bit = UINT32_C(1) << m->peer, *peers = &c->contexts[m->device].peers;
    *peers = m->on ? *peers | bit : *peers & ~bit;
    return WS__ERROR__OK;
}

bool ws_peers_forget(struct ws_context *x)
{
    struct ws_client *c = x->client;
    uint32_t bit = UINT32_C(1) << x->index, any = x->peers;
    x->peers = 0;
    for (uint32_t i = 0; i < c->n_contexts; i++) {
        any |= c->contexts[i].peers & bit;
        c->contexts[i].peers &= ~bit;
    }
    return any;
}

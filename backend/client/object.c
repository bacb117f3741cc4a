// SPDX-License-Identifier: Apache-2.0
/* Physical memory as the daemon's clients share it. An object exists while something refers to
 * it: an allocation, a handle or a mapping of any client, or a descriptor that stands for it
 * (export.c). It is charged to one client, whose reference is the first of the list: to the one
 * that made it and, when that client gives up its last reference, to the next client that has one.
 * References that a client takes while it is charged come to the front of the list, so that nothing
 * has to be searched, however many references others have. So memory in use is always on
 * somebody's account, and nobody pays for what he has given up. Being charged in this way may
 * exceed a quota: only making memory is refused. */
#include "backend/backend.h"
#include "backend/client/object.h"
#include "backend/client/step.h"
#include "backend/client/user.h"

#include <string.h>
#include <sys/random.h>

#include "base/alloc.h"

/* Memory to which only descriptors refer stays with the user of its last client. */
static void charge_user(struct ws_object *o, struct ws_account *a)
{
    if (o->account)
        ws_account_release(o->account, WS_RESOURCE_DEVICE_BYTES, o->bytes);
    ws_account_unref(o->account);
    o->account = a ? ws_account_ref(a) : NULL;
    if (a)
        ws_account_take_over(a, WS_RESOURCE_DEVICE_BYTES, o->bytes);
}

static void charge(struct ws_object *o, struct ws_client *c)
{
    if (o->charged)
        o->charged->stats.memory_bytes -= o->bytes;
    o->charged = c;
    if (!c)
        return;
    charge_user(o, c->who.account);
    c->stats.memory_bytes += o->bytes;
    c->stats.peak_memory_bytes = WS_MAX(c->stats.peak_memory_bytes, c->stats.memory_bytes);
}

uint64_t ws_memory_quota(const struct ws_client *c)
{
    return c->work.memory_bytes ? c->work.memory_bytes
                                : c->server->config->limits.memory_quota_bytes;
}

uint64_t ws_memory_left(const struct ws_client *c)
{
    uint64_t quota = ws_memory_quota(c), used = c->stats.memory_bytes,
             left = !quota         ? UINT64_MAX
                    : quota > used ? quota - used
                                   : 0,
             allotted = c->step ? c->step->batch->may.memory_bytes : 0;
    if (!allotted)
        return left;
    used = ws_step_memory_used(c);
    return WS_MIN(left, allotted > used ? allotted - used : 0);
}

static void tell_step_refused(struct ws_client *c, uint64_t bytes)
{
    char text[48];
    ws_log(WS_WARN,
           "memory: refused client=%u pid=%u step=%s bytes=%llu left=%llu: more than the memory "
           "that was allotted to its batch job",
           c->id, c->who.pid, ws_step_text(c->step, text, sizeof(text)), (unsigned long long)bytes,
           (unsigned long long)ws_memory_left(c));
}

Ws__Error ws_memory_take(struct ws_client *c, uint64_t bytes)
{
    uint64_t quota = ws_memory_quota(c);
    if (bytes > ws_memory_left(c)) {
        bool tell = ws_client_may_tell(c, _WS_RESOURCE_N),
             of_step = !quota || bytes <= quota - WS_MIN(c->stats.memory_bytes, quota);
        if (tell && of_step)
            tell_step_refused(c, bytes);
        else if (tell)
            ws_log(WS_WARN,
                   "memory: refused client=%u pid=%u task=%s bytes=%llu used=%llu: more than its "
                   "memory_quota_bytes = %llu",
                   c->id, c->who.pid, c->work.name, (unsigned long long)bytes,
                   (unsigned long long)c->stats.memory_bytes, (unsigned long long)quota);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    return ws_client_charge(c, WS_RESOURCE_DEVICE_BYTES, bytes);
}

Ws__Error ws_object_new(struct ws_context *x, uint64_t bytes, struct ws_object_ref *ret)
{
    struct ws_client *c = x->client;
    if (bytes > x->gpu->device->spec.memory_bytes || ws_memory_take(c, bytes))
        return WS__ERROR__OUT_OF_MEMORY;
    struct ws_object *o = ws_alloc(sizeof(*o));
    if (!o || ws_device_memory_new(x->gpu->device, bytes, &o->memory)) {
        ws_client_release(c, WS_RESOURCE_DEVICE_BYTES, bytes);
        free(o);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    o->account = ws_account_ref(c->who.account);
    o->gpu = x->gpu;
    o->bytes = bytes;
    ws_list_init(&o->refs);
    ws_list_init(&o->exports);
    charge(o, c);
    c->stats.used_gpus |= 1u << x->gpu->device->index;
    ws_object_ref_take(ret, o, c);
    return WS__ERROR__OK;
}

void ws_object_ref_take(struct ws_object_ref *h, struct ws_object *o, struct ws_client *c)
{
    h->object = o;
    h->client = c;
    ws_list_append(c == o->charged ? o->refs.next : &o->refs, &h->node);
    if (!o->charged)
        charge(o, c);
}

void ws_object_settle(struct ws_object *o)
{
    if (ws_list_empty(&o->refs) && ws_list_empty(&o->exports)) {
        charge(o, NULL);
        charge_user(o, NULL);
        if (o->is_shared) {
            struct ws_server *s = o->gpu->server;
            HASH_DEL(s->memory.shared, o);
        }
        ws_memory_unref(o->memory);
        free(o);
        return;
    }
    struct ws_client *first = ws_list_empty(&o->refs)
                                  ? NULL
                                  : ws_list_entry(o->refs.next, struct ws_object_ref, node)->client;
    if (first != o->charged)
        charge(o, first);
}

void ws_object_ref_drop(struct ws_object_ref *h)
{
    struct ws_object *o = h->object;
    if (!o)
        return;
    h->object = NULL;
    ws_list_remove(&h->node);
    ws_object_settle(o);
}

bool ws_object_share(struct ws_server *s, struct ws_object *o)
{
    if (o->is_shared)
        return true;
    if (getrandom(o->handle, sizeof(o->handle), 0) != sizeof(o->handle))
        return false;
    o->is_shared = true;
    HASH_ADD(hh, s->memory.shared, handle, sizeof(o->handle), o);
    return true;
}

struct ws_object *ws_object_find(struct ws_server *s, ProtobufCBinaryData handle)
{
    struct ws_object *o = NULL;
    if (handle.len == WS_SHARE_BYTES)
        HASH_FIND(hh, s->memory.shared, handle.data, WS_SHARE_BYTES, o);
    return o;
}

struct ws_context *ws_object_context(struct ws_client *c, const struct ws_object *o)
{
    for (uint32_t i = 0; i < c->n_contexts; i++)
        if (c->contexts[i].gpu == o->gpu)
            return &c->contexts[i];
    for (uint32_t i = 0; i < c->n_contexts; i++) /* it was moved away from there */
        if (c->contexts[i].home == o->gpu)
            return &c->contexts[i];
    return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* Allocations: an object and its one mapping. The GPU that an allocation was made on may use it.
 * Other GPUs of the client may use it as far as the client has enabled peer access; an
 * allocation with access of its own (memory pools) says itself which GPUs may. Copies go between
 * all GPUs anyway. */
#include "backend/backend.h"
#include "backend/client/user.h"
#include "backend/client/memory.h"
#include "backend/client/vmm.h"

#include "base/alloc.h"

static void access_of(const struct ws_allocation *a, uint32_t *ret_readers, uint32_t *ret_writers)
{
    struct ws_client *c = a->context->client;
    uint32_t own = UINT32_C(1) << a->context->gpu->device->index, peers = 0;
    for (uint32_t i = 0; !a->own_access && i < c->n_contexts; i++)
        if (c->contexts[i].peers >> a->context->index & 1)
            peers |= UINT32_C(1) << c->contexts[i].gpu->device->index;
    *ret_readers = own | peers | a->more_readers;
    *ret_writers = own | peers | a->more_writers;
}

static void set_access(struct ws_allocation *a)
{
    struct ws_client *c = a->context->client;
    uint32_t readers, writers;
    access_of(a, &readers, &writers);
    if (ws_space_set_access(c->memory.space, a->va, readers, writers))
        ws_log(WS_ERROR, "memory: access not set client=%u va=0x%llx", c->id,
               (unsigned long long)a->va);
}

Ws__Error ws_memory_access(struct ws_allocation *a, const Ws__MemAccess *m)
{
    uint32_t bit = UINT32_C(1) << a->context->client->contexts[m->device].gpu->device->index;
    if (!a->own_access || a->freeing || m->bytes > a->bytes ||
        (a->context->index == m->device && !m->write))
        return WS__ERROR__INVALID_VALUE;
    a->more_readers = m->read ? a->more_readers | bit : a->more_readers & ~bit;
    a->more_writers = m->write ? a->more_writers | bit : a->more_writers & ~bit;
    set_access(a);
    return WS__ERROR__OK;
}

/* Addresses for a->ref's object; @again: it has others. */
static int choose_va(struct ws_allocation *a, bool again)
{
    uint64_t granule = WS_DEVICE_PAGE_BYTES, offset = 0;
    if (again)
        ws_memory_place(a->ref.object->memory, &granule, &offset);
    a->raw_bytes = again ? WS_ALIGN_UP(offset + a->bytes, granule) : a->bytes;
    int r = granule > WS_DEVICE_PAGE_BYTES
                ? ws_va_alloc_at(&a->context->va, a->raw_bytes, granule, &a->raw_va)
                : ws_va_alloc(&a->context->va, a->raw_bytes, &a->raw_va);
    a->va = a->raw_va + offset;
    return r;
}

/* Memory that has its place in a granule with others keeps it for as long as anybody has it:
 * then nothing else can come there. */
static void give_va(struct ws_allocation *a)
{
    const struct ws_object *o = a->ref.object;
    uint64_t granule, offset;
    ws_memory_place(o->memory, &granule, &offset);
    bool last =
        o->refs.next == &a->ref.node && o->refs.prev == &a->ref.node && ws_list_empty(&o->exports);
    if (last || granule == WS_DEVICE_PAGE_BYTES || a->raw_bytes % granule == 0)
        ws_va_free(&a->context->va, a->raw_va, a->raw_bytes);
}

/* NULL: no memory, or its user may have no more. */
static struct ws_allocation *allocation_new(struct ws_client *c)
{
    if (ws_client_object(c))
        return NULL;
    struct ws_allocation *a = ws_alloc(sizeof(*a));
    if (!a)
        ws_client_object_gone(c);
    return a;
}

static void allocation_free(struct ws_client *c, struct ws_allocation *a)
{
    ws_client_object_gone(c);
    free(a);
}

/* Kernels may use the whole pages that an allocation has; where they are checked, what was asked
 * for. */
static uint64_t mapped_bytes(const struct ws_allocation *a, uint64_t asked)
{
    return a->context->client->server->config->check && asked && !a->internal ? asked : a->bytes;
}

/* Finds an address for a->ref's object. @asked: the bytes that the client wants of it; 0: all. On
 * an error nothing is left of it. */
static Ws__Error place(struct ws_allocation *a, uint64_t asked, bool again)
{
    struct ws_client *c = a->context->client;
    uint32_t readers, writers;
    a->bytes = a->ref.object->bytes;
    access_of(a, &readers, &writers);
    if (!choose_va(a, again)) {
        if (!ws_space_map_memory(c->memory.space, a->va, mapped_bytes(a, asked),
                                 a->ref.object->memory, 0, readers, writers)) {
            HASH_ADD(hh, c->memory.allocations, va, sizeof(a->va), a);
            return WS__ERROR__OK;
        }
        ws_va_free(&a->context->va, a->raw_va, a->raw_bytes);
    }
    ws_object_ref_drop(&a->ref);
    allocation_free(c, a);
    return WS__ERROR__OUT_OF_MEMORY;
}

Ws__Error ws_memory_alloc(struct ws_context *x, uint64_t bytes, unsigned flags,
                          struct ws_allocation **ret)
{
    if (!bytes)
        return WS__ERROR__INVALID_VALUE;
    if (bytes > x->gpu->device->spec.memory_bytes)
        return WS__ERROR__OUT_OF_MEMORY;
    struct ws_allocation *a = allocation_new(x->client);
    if (!a)
        return WS__ERROR__OUT_OF_MEMORY;
    a->context = x;
    a->internal = flags & WS_MEMORY_INTERNAL;
    a->own_access = flags & WS_MEMORY_OWN_ACCESS;
    Ws__Error e = ws_object_new(x, WS_ALIGN_UP(bytes, WS_DEVICE_PAGE_BYTES), &a->ref);
    if (e) {
        allocation_free(x->client, a);
        return e;
    }
    e = place(a, bytes, false);
    if (!e)
        *ret = a;
    return e;
}

Ws__Error ws_memory_import(struct ws_context *x, struct ws_object *o, uint32_t more,
                           struct ws_allocation **ret)
{
    struct ws_allocation *a = allocation_new(x->client);
    if (!a)
        return WS__ERROR__OUT_OF_MEMORY;
    a->context = x;
    a->more_readers = a->more_writers = more;
    ws_object_ref_take(&a->ref, o, x->client);
    Ws__Error e = place(a, 0, true);
    if (!e)
        *ret = a;
    return e;
}

struct ws_allocation *ws_memory_find(struct ws_client *c, uint64_t va)
{
    struct ws_allocation *a;
    HASH_FIND(hh, c->memory.allocations, &va, sizeof(va), a);
    return a;
}

void ws_memory_walk_begin(struct ws_client *c)
{
    c->memory.walk = c->memory.allocations;
}

struct ws_allocation *ws_memory_walk_next(struct ws_client *c)
{
    struct ws_allocation *a = c->memory.walk;
    c->memory.walk = a ? a->hh.next : NULL;
    return a;
}

bool ws_memory_walk_access(struct ws_client *c, const struct ws_context *x, uint64_t until_ns)
{
    struct ws_allocation *a;
    unsigned n = 0;
    while ((a = ws_memory_walk_next(c))) {
        if (!x || a->context == x)
            set_access(a);
        if (ws_chore_stops(&n, until_ns))
            return false;
    }
    return true;
}

void ws_memory_free(struct ws_allocation *a)
{
    struct ws_client *c = a->context->client;
    if (c->memory.walk == a)
        (void)ws_memory_walk_next(c);
    int r = ws_space_unmap(c->memory.space, a->va);
    if (r)
        ws_log(WS_ERROR, "memory: unmap failed client=%u va=0x%llx r=%d", c->id,
               (unsigned long long)a->va, r);
    give_va(a);
    HASH_DEL(c->memory.allocations, a);
    ws_object_ref_drop(&a->ref);
    allocation_free(c, a);
}

void ws_memory_info(struct ws_context *x, uint64_t *ret_free, uint64_t *ret_total)
{
    struct ws_client *c = x->client;
    struct ws_device_telemetry t;
    uint64_t quota = ws_memory_quota(c);
    if (c->step && c->step->batch->may.memory_bytes)
        quota = quota ? WS_MIN(quota, c->step->batch->may.memory_bytes)
                      : c->step->batch->may.memory_bytes;
    ws_device_telemetry(x->gpu->device, &t);
    *ret_total = x->gpu->device->spec.memory_bytes;
    *ret_free = *ret_total > t.memory_used_bytes ? *ret_total - t.memory_used_bytes : 0;
    if (quota)
        *ret_total = WS_MIN(*ret_total, quota);
    *ret_free = WS_MIN(*ret_free, ws_memory_left(c));
    *ret_free = WS_MIN(*ret_free, ws_user_memory_left(c));
}

/* ---- the heap of device code ---- */

/* The device makes it when a kernel runs that uses it, and again after a reset. So it is charged
 * before, for good, and with as much as it may become. */
static Ws__Error charge_heap(struct ws_client *c, uint64_t bytes)
{
    struct ws_client_memory *m = &c->memory;
    if (bytes <= m->heap_charged)
        return WS__ERROR__OK;
    Ws__Error e = ws_memory_take(c, bytes - m->heap_charged);
    if (e)
        return e;
    c->stats.memory_bytes += bytes - m->heap_charged;
    c->stats.peak_memory_bytes = WS_MAX(c->stats.peak_memory_bytes, c->stats.memory_bytes);
    m->heap_charged = bytes;
    return WS__ERROR__OK;
}

Ws__Error ws_memory_set_heap(struct ws_client *c, uint64_t bytes)
{
    if (bytes > WS_MAX_RESERVED_BYTES)
        return WS__ERROR__OUT_OF_MEMORY;
    uint64_t whole = WS_ALIGN_UP(bytes, (uint64_t)WS_DEVICE_PAGE_BYTES);
    if (c->memory.heap_charged && charge_heap(c, whole))
        return WS__ERROR__OUT_OF_MEMORY;
    return ws_space_set_heap_bytes(c->memory.space, bytes) ? WS__ERROR__INVALID_VALUE
                                                           : WS__ERROR__OK;
}

Ws__Error ws_memory_place_heap(struct ws_context *x)
{
    struct ws_client *c = x->client;
    uint64_t va, bytes, unused;
    Ws__Error e = charge_heap(c, ws_space_heap_bytes(c->memory.space));
    if (e)
        return e;
    if (c->memory.heap.bytes || !x->gpu->device->ops->map)
        return WS__ERROR__OK;
    if (ws_space_place_heap(c->memory.space, 0, &bytes)) /* it is there, in a place that will do */
        return WS__ERROR__OK;
    if (ws_va_alloc(&c->memory.va, bytes, &va))
        return WS__ERROR__OUT_OF_MEMORY;
    if (ws_space_place_heap(c->memory.space, va, &unused)) {
        ws_va_free(&c->memory.va, va, bytes);
        return WS__ERROR__OK;
    }
    c->memory.heap = (struct ws_va_extent){va, bytes};
    return WS__ERROR__OK;
}

void ws_memory_drop_heap(struct ws_context *x)
{
    struct ws_client *c = x->client;
    uint64_t bytes;
    ws_space_drop_heap(c->memory.space, x->gpu->device);
    if (!c->memory.heap.bytes || ws_space_place_heap(c->memory.space, 0, &bytes))
        return; /* none, or in another GPU's memory */
    ws_va_free(&c->memory.va, c->memory.heap.va, c->memory.heap.bytes);
    c->memory.heap = (struct ws_va_extent){0, 0};
}

/* ---- what device code prints ---- */

static Ws__Error charge_printed(struct ws_client *c, uint64_t whole)
{
    uint64_t *charged = &c->memory.printed_charged;
    if (whole <= *charged)
        return WS__ERROR__OK;
    Ws__Error e = ws_client_charge(c, WS_RESOURCE_HOST_BYTES, whole - *charged);
    *charged = e ? *charged : whole;
    return e;
}

Ws__Error ws_memory_place_printed(struct ws_client *c)
{
    return charge_printed(c, ws_output_most(&c->output));
}

Ws__Error ws_memory_set_printed(struct ws_client *c, uint64_t bytes)
{
    uint64_t *charged = &c->memory.printed_charged;
    if (bytes > WS_OUTPUT_MAX_BYTES || charge_printed(c, bytes * WS_OUTPUT_ROOM))
        return WS__ERROR__OUT_OF_MEMORY;
    ws_output_limit(&c->output, bytes);
    uint64_t most = ws_output_most(&c->output);
    if (most < *charged) {
        ws_client_release(c, WS_RESOURCE_HOST_BYTES, *charged - most);
        *charged = most;
    }
    ws_space_set_print_bytes(c->memory.space, bytes);
    return WS__ERROR__OK;
}

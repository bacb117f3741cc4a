// SPDX-License-Identifier: Apache-2.0
/* Virtual memory management: reservations of addresses, and objects mapped into them. What is
 * mapped and not yet accessible to anybody is known here only; with the first access it enters
 * the client's space, which is what kernels and copies see.
 *
 * A range that a command names is a run of whole mappings, one behind the other, inside one
 * reservation. */
#include "backend/backend.h"
#include "backend/client/vmm.h"
#include "backend/client/memory.h"
#include "backend/client/user.h"

#include <string.h>

#include "base/alloc.h"

/* ---- handles ---- */

struct ws_handle *ws_handle_find(struct ws_client *c, uint64_t id)
{
    struct ws_handle *h;
    HASH_FIND(hh, c->memory.handles, &id, sizeof(id), h);
    return h;
}

static struct ws_handle *handle_new(struct ws_client *c, uint64_t id)
{
    if (ws_client_object(c))
        return NULL;
    struct ws_handle *h = ws_alloc(sizeof(*h));
    if (!h) {
        ws_client_object_gone(c);
        return NULL;
    }
    h->id = id;
    HASH_ADD(hh, c->memory.handles, id, sizeof(h->id), h);
    return h;
}

static void handle_free(struct ws_client *c, struct ws_handle *h)
{
    HASH_DEL(c->memory.handles, h);
    ws_object_ref_drop(&h->ref);
    ws_client_object_gone(c);
    free(h);
}

Ws__Error ws_handle_create(struct ws_client *c, const Ws__MemCreate *m)
{
    if (m->device >= c->n_contexts)
        return WS__ERROR__INVALID_DEVICE;
    if (ws_handle_find(c, m->object))
        return WS__ERROR__INVALID_HANDLE;
    if (!m->bytes || m->bytes % WS_MEM_GRANULE_BYTES)
        return WS__ERROR__INVALID_VALUE;
    struct ws_handle *h = handle_new(c, m->object);
    if (!h)
        return WS__ERROR__OUT_OF_MEMORY;
    Ws__Error e = ws_object_new(&c->contexts[m->device], m->bytes, &h->ref);
    if (e)
        handle_free(c, h);
    return e;
}

Ws__Error ws_handle_add(struct ws_client *c, uint64_t id, struct ws_object *o)
{
    if (ws_handle_find(c, id))
        return WS__ERROR__INVALID_HANDLE;
    struct ws_handle *h = handle_new(c, id);
    if (!h)
        return WS__ERROR__OUT_OF_MEMORY;
    ws_object_ref_take(&h->ref, o, c);
    return WS__ERROR__OK;
}

Ws__Error ws_handle_release(struct ws_client *c, uint64_t id)
{
    struct ws_handle *h = ws_handle_find(c, id);
    if (!h)
        return WS__ERROR__INVALID_HANDLE;
    handle_free(c, h);
    return WS__ERROR__OK;
}

/* ---- reservations ---- */

static bool reserve_wanted(struct ws_client *c, const Ws__VaReserve *m, uint64_t align,
                           struct ws_reservation *r)
{
    r->va = r->raw_va = m->wanted;
    return m->wanted && m->wanted % align == 0 &&
           !ws_va_alloc_fixed(&c->memory.va, m->wanted, m->bytes, &r->raw_bytes);
}

static bool reserve_anywhere(struct ws_client *c, uint64_t raw_bytes, uint64_t align,
                             struct ws_reservation *r)
{
    if (ws_va_alloc(&c->memory.va, raw_bytes, &r->raw_va))
        return false;
    r->va = WS_ALIGN_UP(r->raw_va, align);
    r->raw_bytes = raw_bytes + WS_VA_GAP_BYTES;
    return true;
}

Ws__Error ws_va_reserve(struct ws_client *c, const Ws__VaReserve *m, uint64_t *ret_va)
{
    uint64_t align = WS_MAX(m->alignment, WS_MEM_GRANULE_BYTES), raw_bytes;
    if (!m->bytes || m->bytes % WS_MEM_GRANULE_BYTES || align & (align - 1))
        return WS__ERROR__INVALID_VALUE;
    if (__builtin_add_overflow(m->bytes, align, &raw_bytes) || raw_bytes > WS_MAX_RESERVED_BYTES ||
        c->memory.reserved_bytes > WS_MAX_RESERVED_BYTES - raw_bytes ||
        HASH_COUNT(c->memory.reservations) >= WS_MAX_RESERVATIONS)
        return WS__ERROR__OUT_OF_MEMORY;
    struct ws_reservation *r = ws_alloc(sizeof(*r));
    if (!r || (!reserve_wanted(c, m, align, r) && !reserve_anywhere(c, raw_bytes, align, r))) {
        free(r);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    r->bytes = m->bytes;
    c->memory.reserved_bytes += r->raw_bytes;
    HASH_ADD(hh, c->memory.reservations, va, sizeof(r->va), r);
    *ret_va = r->va;
    return WS__ERROR__OK;
}

Ws__Error ws_va_unreserve(struct ws_client *c, uint64_t va)
{
    struct ws_reservation *r;
    HASH_FIND(hh, c->memory.reservations, &va, sizeof(va), r);
    if (!r || r->n)
        return WS__ERROR__INVALID_VALUE;
    ws_va_give(&c->memory.va, r->raw_va, r->raw_bytes);
    c->memory.reserved_bytes -= r->raw_bytes;
    HASH_DEL(c->memory.reservations, r);
    free(r->v);
    free(r);
    return WS__ERROR__OK;
}

static struct ws_reservation *reservation_of(struct ws_client *c, uint64_t va, uint64_t bytes)
{
    struct ws_reservation *r, *next;
    HASH_ITER (hh, c->memory.reservations, r, next)
        if (va - r->va < r->bytes && bytes <= r->bytes - (va - r->va))
            return r;
    return NULL;
}

/* Index of the first mapping at or above @va. */
static size_t lower(const struct ws_reservation *r, uint64_t va)
{
    size_t lo = 0, n = r->n;
    while (n) {
        size_t half = n / 2;
        if (r->v[lo + half]->va < va) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

/* ---- mappings ---- */

Ws__Error ws_vmm_map(struct ws_client *c, const Ws__MemMap *m)
{
    struct ws_handle *h = ws_handle_find(c, m->object);
    if (!h)
        return WS__ERROR__INVALID_HANDLE;
    struct ws_object *o = h->ref.object;
    if (!m->bytes || (m->address | m->bytes | m->offset) % WS_MEM_GRANULE_BYTES ||
        m->offset > o->bytes || m->bytes > o->bytes - m->offset)
        return WS__ERROR__INVALID_VALUE;
    struct ws_reservation *r = reservation_of(c, m->address, m->bytes);
    if (!r)
        return WS__ERROR__INVALID_VALUE;
    size_t i = lower(r, m->address);
    if ((i < r->n && r->v[i]->va - m->address < m->bytes) ||
        (i && m->address - r->v[i - 1]->va < r->v[i - 1]->bytes))
        return WS__ERROR__INVALID_VALUE;
    if (ws_client_object(c))
        return WS__ERROR__OUT_OF_MEMORY;
    struct ws_vmapping *v = ws_alloc(sizeof(*v));
    if (!v || ws_grow((void **)&r->v, &r->cap, r->n + 1, sizeof(*r->v))) {
        ws_client_object_gone(c);
        free(v);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    v->va = m->address;
    v->bytes = m->bytes;
    v->offset = m->offset;
    ws_object_ref_take(&v->ref, o, c);
    memmove(r->v + i + 1, r->v + i, (r->n - i) * sizeof(*r->v));
    r->v[i] = v;
    r->n++;
    return WS__ERROR__OK;
}

/* The run of mappings that is just [va, va + bytes): *ret_from, and how many in *ret_n. */
static struct ws_reservation *run(struct ws_client *c, uint64_t va, uint64_t bytes,
                                  size_t *ret_from, size_t *ret_n)
{
    struct ws_reservation *r = bytes ? reservation_of(c, va, bytes) : NULL;
    if (!r)
        return NULL;
    size_t i = *ret_from = lower(r, va);
    for (; i < r->n && bytes; i++) {
        const struct ws_vmapping *v = r->v[i];
        if (v->va != va || v->bytes > bytes || v->unmapping)
            return NULL;
        va += v->bytes;
        bytes -= v->bytes;
    }
    *ret_n = i - *ret_from;
    return bytes ? NULL : r;
}

Ws__Error ws_vmm_unmap_begin(struct ws_client *c, uint64_t va, uint64_t bytes)
{
    size_t from, n;
    struct ws_reservation *r = run(c, va, bytes, &from, &n);
    if (!r)
        return WS__ERROR__INVALID_VALUE;
    for (size_t i = from; i < from + n; i++)
        r->v[i]->unmapping = true;
    return WS__ERROR__OK;
}

static void leave_space(struct ws_client *c, const struct ws_vmapping *v)
{
    if (v->readers && ws_space_unmap(c->memory.space, v->va))
        ws_log(WS_ERROR, "vmm: unmap failed client=%u va=0x%llx", c->id, (unsigned long long)v->va);
}

/* Takes mappings away, from all that @r has, for which @gone says so. */
static void remove_if(struct ws_client *c, struct ws_reservation *r,
                      bool (*gone)(const struct ws_vmapping *v, const void *arg), const void *arg)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct ws_vmapping *v = r->v[i];
        if (!gone(v, arg)) {
            r->v[n++] = v;
            continue;
        }
        leave_space(c, v);
        ws_object_ref_drop(&v->ref);
        ws_client_object_gone(c);
        free(v);
    }
    r->n = n;
}

static bool in_range(const struct ws_vmapping *v, const void *arg)
{
    const struct ws_va_extent *e = arg;
    return v->unmapping && v->va - e->va < e->bytes;
}

void ws_vmm_unmap(struct ws_client *c, uint64_t va, uint64_t bytes)
{
    struct ws_va_extent e = {va, bytes};
    struct ws_reservation *r = reservation_of(c, va, bytes); /* a reset may have been faster */
    if (r)
        remove_if(c, r, in_range, &e);
}

/* ---- access ---- */

static Ws__Error mapping_access(struct ws_client *c, struct ws_vmapping *v, uint32_t readers,
                                uint32_t writers)
{
    int r = 0;
    if (!v->readers && readers)
        r = ws_space_map_memory(c->memory.space, v->va, v->bytes, v->ref.object->memory, v->offset,
                                readers, writers);
    else if (v->readers && !readers)
        r = ws_space_unmap(c->memory.space, v->va);
    else if (v->readers)
        r = ws_space_set_access(c->memory.space, v->va, readers, writers);
    if (r)
        return r == -ENOMEM ? WS__ERROR__OUT_OF_MEMORY : WS__ERROR__INTERNAL;
    v->readers = readers;
    v->writers = writers;
    return WS__ERROR__OK;
}

static uint32_t change(uint32_t mask, uint32_t bit, bool on)
{
    return on ? mask | bit : mask & ~bit;
}

Ws__Error ws_vmm_access(struct ws_client *c, const Ws__MemAccess *m)
{
    if (m->device >= c->n_contexts)
        return WS__ERROR__INVALID_DEVICE;
    if (m->write && !m->read)
        return WS__ERROR__INVALID_VALUE;
    uint32_t bit = UINT32_C(1) << c->contexts[m->device].gpu->device->index;
    struct ws_allocation *a = ws_memory_find(c, m->address);
    if (a) {
        if (!a->own_access || a->freeing || m->bytes > a->bytes ||
            (a->context->index == m->device && !m->write))
            return WS__ERROR__INVALID_VALUE;
        a->more_readers = change(a->more_readers, bit, m->read);
        a->more_writers = change(a->more_writers, bit, m->write);
        ws_memory_set_access(a);
        return WS__ERROR__OK;
    }
    size_t from, n;
    struct ws_reservation *r = run(c, m->address, m->bytes, &from, &n);
    if (!r)
        return WS__ERROR__INVALID_VALUE;
    Ws__Error e = WS__ERROR__OK;
    for (size_t i = from; !e && i < from + n; i++)
        e = mapping_access(c, r->v[i], change(r->v[i]->readers, bit, m->read),
                           change(r->v[i]->writers, bit, m->write));
    return e;
}

/* ---- ends ---- */

static bool leaves_gpu(const struct ws_vmapping *v, const void *gpu)
{
    return v->unmapping && v->ref.object->gpu == gpu;
}

/* The addresses stay reserved: they are of no device. */
void ws_vmm_reset_end(struct ws_context *x)
{
    struct ws_reservation *r, *next;
    HASH_ITER (hh, x->client->memory.reservations, r, next)
        remove_if(x->client, r, leaves_gpu, x->gpu);
}

void ws_vmm_reset_begin(struct ws_context *x)
{
    struct ws_client *c = x->client;
    struct ws_reservation *r, *next;
    struct ws_handle *h, *next_handle;
    HASH_ITER (hh, c->memory.reservations, r, next)
        for (size_t i = 0; i < r->n; i++)
            r->v[i]->unmapping |= r->v[i]->ref.object->gpu == x->gpu;
    HASH_ITER (hh, c->memory.handles, h, next_handle)
        if (h->ref.object->gpu == x->gpu)
            handle_free(c, h);
}

bool ws_vmm_free_one(struct ws_client *c)
{
    struct ws_reservation *r = c->memory.reservations;
    if (r && r->n) {
        struct ws_vmapping *m = r->v[--r->n];
        ws_object_ref_drop(&m->ref);
        free(m);
    } else if (r) {
        HASH_DEL(c->memory.reservations, r);
        free(r->v);
        free(r);
    } else if (c->memory.handles) {
        handle_free(c, c->memory.handles);
    } else {
        return false;
    }
    return true;
}

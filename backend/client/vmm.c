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
#include "base/clock.h"

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

/* Index of the first reservation above @va. */
static size_t reservation_above(const struct ws_client *c, uint64_t va)
{
    const struct ws_reservations *t = &c->memory.reservations;
    size_t lo = 0, n = t->n;
    while (n) {
        size_t half = n / 2;
        if (t->v[lo + half]->va <= va) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

static void reservation_free(struct ws_client *c, size_t i)
{
    struct ws_reservations *t = &c->memory.reservations;
    struct ws_reservation *r = t->v[i];
    memmove(t->v + i, t->v + i + 1, (t->n - i - 1) * sizeof(struct ws_reservation *));
    t->n--;
    c->memory.reserved_bytes -= r->raw_bytes;
    ws_va_give(&c->memory.va, r->raw_va, r->raw_bytes);
    ws_client_object_gone(c);
    free(r->v);
    free(r);
}

Ws__Error ws_va_reserve(struct ws_client *c, const Ws__VaReserve *m, uint64_t *ret_va)
{
    struct ws_reservations *t = &c->memory.reservations;
    uint64_t align = WS_MAX(m->alignment, WS_MEM_GRANULE_BYTES), raw_bytes;
    if (!m->bytes || m->bytes % WS_MEM_GRANULE_BYTES || align & (align - 1))
        return WS__ERROR__INVALID_VALUE;
    if (__builtin_add_overflow(m->bytes, align, &raw_bytes) || raw_bytes > WS_MAX_RESERVED_BYTES ||
        c->memory.reserved_bytes > WS_MAX_RESERVED_BYTES - raw_bytes ||
        t->n >= WS_MAX_RESERVATIONS || ws_client_object(c))
        return WS__ERROR__OUT_OF_MEMORY;
    struct ws_reservation *r = ws_alloc(sizeof(*r));
    if (!r || ws_grow((void **)&t->v, &t->cap, t->n + 1, sizeof(struct ws_reservation *)) ||
        (!reserve_wanted(c, m, align, r) && !reserve_anywhere(c, raw_bytes, align, r))) {
        ws_client_object_gone(c);
        free(r);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    r->bytes = m->bytes;
    c->memory.reserved_bytes += r->raw_bytes;
    size_t i = reservation_above(c, r->va);
    memmove(t->v + i + 1, t->v + i, (t->n - i) * sizeof(struct ws_reservation *));
    t->v[i] = r;
    t->n++;
    *ret_va = r->va;
    return WS__ERROR__OK;
}

static bool any_has(const struct ws_list *clients, uint64_t va, uint64_t bytes)
{
    ws_list_for_each (it, clients)
        if (ws_va_has(&ws_list_entry(it, struct ws_client, node)->memory.va, va, bytes))
            return true;
    return false;
}

bool ws_va_goes(const struct ws_server *s, uint64_t va, uint64_t bytes)
{
    ws_list_for_each (it, &s->clients.leaving)
        if (ws_va_has(&ws_list_entry(it, struct ws_client, leaving.node)->memory.va, va, bytes))
            return true;
    return any_has(&s->clients.dropped, va, bytes) || any_has(&s->clients.dying, va, bytes);
}

Ws__Error ws_va_unreserve(struct ws_client *c, uint64_t va)
{
    size_t i = reservation_above(c, va);
    const struct ws_reservation *r = i ? c->memory.reservations.v[i - 1] : NULL;
    if (!r || r->va != va || r->n)
        return WS__ERROR__INVALID_VALUE;
    reservation_free(c, i - 1);
    return WS__ERROR__OK;
}

static struct ws_reservation *reservation_of(struct ws_client *c, uint64_t va, uint64_t bytes)
{
    size_t i = reservation_above(c, va);
    struct ws_reservation *r = i ? c->memory.reservations.v[i - 1] : NULL;
    return r && va - r->va < r->bytes && bytes <= r->bytes - (va - r->va) ? r : NULL;
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

/* Walks the range from range->at on, until @until_ns; what it meets is a run of whole mappings as
 * long as *ret_error is OK. Return: whether it has come to the end, or to an error. */
static bool walk(struct ws_client *c, struct ws_vmm_range *range, uint64_t until_ns,
                 Ws__Error (*each)(struct ws_client *c, struct ws_vmapping *v, const void *arg),
                 const void *arg, Ws__Error *ret_error)
{
    struct ws_reservation *r = range->bytes ? reservation_of(c, range->va, range->bytes) : NULL;
    unsigned n = 0;
    *ret_error = r ? WS__ERROR__OK : WS__ERROR__INVALID_VALUE;
    for (size_t i = r ? lower(r, range->at) : 0; !*ret_error; i++) {
        uint64_t left = range->bytes - (range->at - range->va);
        if (!left)
            return true;
        struct ws_vmapping *v = i < r->n ? r->v[i] : NULL;
        if (!v || v->va != range->at || v->bytes > left) {
            *ret_error = WS__ERROR__INVALID_VALUE;
            return true;
        }
        *ret_error = each(c, v, arg);
        range->at += v->bytes;
        if (ws_chore_stops(&n, until_ns) && !*ret_error)
            return false;
    }
    return true;
}

static Ws__Error stays(struct ws_client *c, struct ws_vmapping *v, const void *arg)
{
    (void)c;
    (void)arg;
    return v->unmapping ? WS__ERROR__INVALID_VALUE : WS__ERROR__OK;
}

bool ws_vmm_check(struct ws_client *c, struct ws_vmm_range *range, uint64_t until_ns,
                  Ws__Error *ret_error)
{
    return walk(c, range, until_ns, stays, NULL, ret_error);
}

static Ws__Error unmap_later(struct ws_client *c, struct ws_vmapping *v, const void *arg)
{
    (void)c;
    (void)arg;
    v->unmapping = true;
    return WS__ERROR__OK;
}

bool ws_vmm_unmap_begin(struct ws_client *c, struct ws_vmm_range *range, uint64_t until_ns)
{
    Ws__Error e;
    return walk(c, range, until_ns, unmap_later, NULL, &e);
}

static void leave_space(struct ws_client *c, const struct ws_vmapping *v)
{
    if (v->readers && ws_space_unmap(c->memory.space, v->va))
        ws_log(WS_ERROR, "vmm: unmap failed client=%u va=0x%llx", c->id, (unsigned long long)v->va);
}

/* Takes mappings out of @r, from the @i'th on, as long as @goes says that they go; but no more than
 * REMOVE_MOST, for the rest moves up. Return: how many. */
static size_t remove_some(struct ws_client *c, struct ws_reservation *r, size_t i,
                          bool (*goes)(const struct ws_vmapping *v, const void *arg),
                          const void *arg)
{
    enum { REMOVE_MOST = 64 };
    size_t k = i;
    for (; k < r->n && k - i < REMOVE_MOST && goes(r->v[k], arg); k++) {
        struct ws_vmapping *v = r->v[k];
        leave_space(c, v);
        ws_object_ref_drop(&v->ref);
        ws_client_object_gone(c);
        free(v);
    }
    if (k > i)
        memmove(r->v + i, r->v + k, (r->n - k) * sizeof(*r->v));
    r->n -= k - i;
    return k - i;
}

static bool in_range(const struct ws_vmapping *v, const void *arg)
{
    const struct ws_vmm_range *e = arg;
    return v->unmapping && v->va - e->va < e->bytes;
}

bool ws_vmm_unmap(struct ws_client *c, const struct ws_vmm_range *range, uint64_t until_ns)
{
    /* A reset may have been faster. */
    struct ws_reservation *r = reservation_of(c, range->va, range->bytes);
    while (r && remove_some(c, r, lower(r, range->va), in_range, range))
        if (ws_clock_ns() >= until_ns)
            return false;
    return true;
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

struct access {
    uint32_t bit;
    bool read, write;
};

static Ws__Error set_access(struct ws_client *c, struct ws_vmapping *v, const void *arg)
{
    const struct access *a = arg;
    return mapping_access(c, v, change(v->readers, a->bit, a->read),
                          change(v->writers, a->bit, a->write));
}

bool ws_vmm_access(struct ws_client *c, struct ws_vmm_range *range, uint32_t bit, bool read,
                   bool write, uint64_t until_ns, Ws__Error *ret_error)
{
    return walk(c, range, until_ns, set_access, &(struct access){bit, read, write}, ret_error);
}

/* ---- ends ---- */

static bool leaves_gpu(const struct ws_vmapping *v, const void *gpu)
{
    return v->unmapping && v->ref.object->gpu == gpu;
}

/* The next mapping of any reservation that is not looked at. NULL: there is no more. */
static struct ws_vmapping *next_mapping(const struct ws_client *c, struct ws_vmm_place *at)
{
    const struct ws_reservations *t = &c->memory.reservations;
    while (at->reservation < t->n && at->mapping >= t->v[at->reservation]->n)
        *at = (struct ws_vmm_place){.reservation = at->reservation + 1};
    return at->reservation < t->n ? t->v[at->reservation]->v[at->mapping] : NULL;
}

bool ws_vmm_reset_begin(struct ws_context *x, struct ws_vmm_place *at)
{
    struct ws_client *c = x->client;
    struct ws_vmapping *v = next_mapping(c, at);
    if (v) {
        at->mapping++;
        v->unmapping |= v->ref.object->gpu == x->gpu;
        return true;
    }
    if (!at->in_handles)
        at->handle = c->memory.handles;
    at->in_handles = true;
    struct ws_handle *h = at->handle;
    if (!h)
        return false;
    at->handle = h->hh.next;
    if (h->ref.object->gpu == x->gpu)
        handle_free(c, h);
    return true;
}

/* The addresses stay reserved: they are of no device. */
bool ws_vmm_reset_end(struct ws_context *x, struct ws_vmm_place *at)
{
    struct ws_client *c = x->client;
    if (!next_mapping(c, at))
        return false;
    struct ws_reservation *r = c->memory.reservations.v[at->reservation];
    if (!remove_some(c, r, at->mapping, leaves_gpu, x->gpu))
        at->mapping++;
    return true;
}

bool ws_vmm_free_one(struct ws_client *c)
{
    const struct ws_reservations *t = &c->memory.reservations;
    struct ws_reservation *r = t->n ? t->v[t->n - 1] : NULL;
    if (r && r->n) {
        struct ws_vmapping *m = r->v[--r->n];
        ws_object_ref_drop(&m->ref);
        free(m);
    } else if (r) {
        reservation_free(c, t->n - 1);
    } else if (c->memory.handles) {
        handle_free(c, c->memory.handles);
    } else {
        return false;
    }
    return true;
}

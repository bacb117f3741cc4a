// SPDX-License-Identifier: Apache-2.0
/* The address space of one client.
 *
 * Mappings lie in a table sorted by address (space_table.h). Device threads search it while the
 * daemon's loop changes it, so a sequence counter guards the table: the writer makes it odd,
 * changes the table in place and makes it even again; a reader that saw an odd or a changed counter
 * searches again. What readers may look at is not freed before the space is; slots (the fields of a
 * mapping) are used again. All fields that readers see are atomics, which on x86 are plain loads
 * and stores.
 *
 * The memory behind a mapping must outlive readers that still hold its host address. Operations
 * enter the space before their work and leave it afterwards. Unmapped memory waits in the limbo of
 * the current epoch e. Users are counted for the epochs e and e - 1 only. When no user of e - 1 is
 * left, the epoch advances, which frees the limbo of e - 1:
 *   1. a user of epoch u can only see what was unmapped in epochs >= u;
 *   2. the limbo of e is freed when users[e] == users[e - 1] == 0.
 *
 * A joint space has an empty table. What is not found there is looked for in its members, so
 * ordinary spaces pay nothing. If two members come to hold the same address later, the older
 * mapping counts: the launch was checked against it when it began, and continues to see its own
 * memory. */
#include "device/space.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/heap.h"
#include "device/payer.h"
#include "device/space_table.h"

/* Outside the addresses that any host or device allocation can have, and that a real GPU has: for
 * software ones. */
#define HEAP_VA (UINT64_C(0x7e) << 48)
/* Before each block, nobody's: NVIDIA's heap has its own books there, so nvcc's code for new[] of
 * some classes, which writes its count before the block, meets neither a fault nor a neighbour. */
#define HEAP_BEFORE_BYTES   16
#define HEAP_TO_WIPE        UINT32_MAX /* of heap_use: nobody uses it */
#define HEAP_WIPING         (UINT32_MAX - 1)
#define HEAP_DEFAULT_BYTES  (UINT64_C(8) << 20)
#define PRINT_DEFAULT_BYTES (UINT64_C(1) << 20)

/* atomics: read by any thread; the rest: under lock. */
struct space_slot {
    _Atomic uint64_t va, bytes;
    _Atomic(uint8_t *) host;
    _Atomic uint32_t readers, writers;
    _Atomic(struct ws_device *) device;
    _Atomic uint64_t serial; /* of the mapping: later ones have larger ones, in all spaces */
    ws_space_release_fn *release;
    void *release_arg;
    struct space_slot *next; /* free or in limbo */
    uint8_t *limbo_host;
    uint64_t limbo_bytes;
};

enum { SLOTS_PER_CHUNK = 32 };
struct chunk {
    struct chunk *next;
    struct space_slot v[SLOTS_PER_CHUNK];
};

struct ws_space {
    uint64_t id;
    _Atomic uint32_t seq;        /* odd while a writer works; written under lock */
    struct ws_space_table table; /* of struct space_slot; changed under lock */
    _Atomic uint64_t device_bytes;
    pthread_mutex_t lock; /* writers, epochs, limbo */
    struct chunk *chunks;
    struct space_slot *free_slots;
    unsigned epoch;
    uint64_t users[2]; /* [epoch & 1] */
    struct space_slot *limbo[2];
    pthread_mutex_t print_lock;
    void (*print)(void *arg, enum ws_output to, const char *text, size_t n);
    void *print_arg;
    pthread_mutex_t heap_lock; /* for opening and dropping it */
    uint64_t heap_bytes, heap_va;
    _Atomic uint64_t print_bytes, stack_bytes, margin, started_bytes;
    _Atomic uint32_t heap_use;    /* launches that use it, or: */
    struct ws_heap *_Atomic heap; /* NULL: not open */
    struct ws_device *heap_device;
    struct ws_payer *payer;    /* reference; NULL: nobody */
    struct ws_space **members; /* of a joint space, distinct; else NULL */
    uint32_t n_members;
};

#define LOAD(p)     atomic_load_explicit(&(p), memory_order_acquire)
#define STORE(p, x) atomic_store_explicit(&(p), (x), memory_order_release)

static const struct ws_host_hook *_Atomic host_hook;

int ws_space_new(struct ws_space **ret)
{
    struct ws_space *s = ws_alloc(sizeof(*s));
    if (!s || ws_space_table_init(&s->table)) {
        free(s);
        return ws_raise(-ENOMEM);
    }
    static _Atomic uint64_t n_spaces;
    s->id = ++n_spaces;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->print_lock, NULL);
    pthread_mutex_init(&s->heap_lock, NULL);
    s->heap_bytes = HEAP_DEFAULT_BYTES;
    s->heap_va = HEAP_VA;
    STORE(s->print_bytes, PRINT_DEFAULT_BYTES);
    *ret = s;
    return 0;
}

#define for_each_slot(x, t)                                                                        \
    for (struct ws_space_place at_ = {0}, *once_ = &at_; once_; once_ = NULL)                      \
        for (struct space_slot * x; (x = ws_space_table_next((t), &at_));)

static void release_all(struct ws_space *s, struct space_slot *list)
{
    for (struct space_slot *x = list; x; x = x->next)
        if (x->release)
            x->release(x->release_arg, x->limbo_host, x->limbo_bytes);
    if (!list)
        return;
    pthread_mutex_lock(&s->lock);
    while (list) {
        struct space_slot *next = list->next;
        list->next = s->free_slots;
        s->free_slots = list;
        list = next;
    }
    pthread_mutex_unlock(&s->lock);
}

struct ws_space *ws_space_free(struct ws_space *s)
{
    if (!s)
        return NULL;
    for_each_slot(x, &s->table)
    {
        if (x->release)
            x->release(x->release_arg, x->host, x->bytes);
    }
    for (int e = 0; e < 2; e++)
        for (struct space_slot *x = s->limbo[e]; x; x = x->next)
            if (x->release)
                x->release(x->release_arg, x->limbo_host, x->limbo_bytes);
    const struct ws_host_hook *hook = LOAD(host_hook);
    if (hook && hook->gone)
        hook->gone(s);
    ws_space_table_deinit(&s->table);
    while (s->chunks) {
        struct chunk *next = s->chunks->next;
        free(s->chunks);
        s->chunks = next;
    }
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->print_lock);
    pthread_mutex_destroy(&s->heap_lock);
    ws_heap_free(s->heap);
    free(s->members);
    ws_payer_unref(s->payer);
    free(s);
    return NULL;
}

/* The mapping of the space's own table that holds @va, as it was at one moment. */
static inline bool lookup_own(const struct ws_space *s, uint64_t va, struct ws_mapping *ret,
                              uint64_t *ret_serial)
{
    for (unsigned tries = 0;; tries++) {
        uint32_t seq = LOAD(s->seq);
        if (seq & 1) {
            if (tries > 100)
                sched_yield();
            continue;
        }
        const struct space_slot *x = ws_space_table_below(&s->table, va);
        bool found = false;
        if (x) {
            ret->va = LOAD(x->va);
            ret->bytes = LOAD(x->bytes);
            ret->host = LOAD(x->host);
            ret->readers = LOAD(x->readers);
            ret->writers = LOAD(x->writers);
            ret->flags = ret->writers ? 0 : WS_MAP_READONLY;
            ret->device = LOAD(x->device);
            if (ret_serial)
                *ret_serial = LOAD(x->serial);
            found = va >= ret->va && va - ret->va < ret->bytes;
        }
        if (LOAD(s->seq) == seq)
            return found;
    }
}

/* Of the members that hold @va, the one whose mapping is the oldest. */
static bool lookup_members(const struct ws_space *s, uint64_t va, struct ws_mapping *ret)
{
    uint64_t oldest = UINT64_MAX;
    for (uint32_t k = 0; k < s->n_members; k++) {
        struct ws_mapping m;
        uint64_t serial = 0;
        if (lookup_own(s->members[k], va, &m, &serial) && serial < oldest) {
            oldest = serial;
            *ret = m;
        }
    }
    return oldest != UINT64_MAX;
}

static bool lookup(const struct ws_space *s, uint64_t va, struct ws_mapping *ret)
{
    return lookup_own(s, va, ret, NULL) || (WS_UNLIKELY(s->members) && lookup_members(s, va, ret));
}

bool ws_space_find(const struct ws_space *s, uint64_t va, uint64_t bytes, struct ws_mapping *ret)
{
    struct ws_mapping m;
    if (!lookup(s, va, &m) || bytes > m.bytes - (va - m.va))
        return false;
    *ret = m;
    return true;
}

bool ws_space_find_as(const struct ws_space *s, uint32_t who, uint64_t va, uint64_t bytes,
                      struct ws_mapping *ret)
{
    if (!ws_space_find(s, va, bytes, ret) || !(ret->readers & who))
        return false;
    if (!(ret->writers & who))
        ret->flags |= WS_MAP_READONLY;
    return true;
}

/* The nearest mapping of the table on either side of @va, as it was at one moment; no bytes: there
 * is none. */
static void neighbours(const struct ws_space *s, uint64_t va, struct ws_mapping ret[2])
{
    uint32_t seq;
    do {
        ret[0] = ret[1] = (struct ws_mapping){0};
        seq = LOAD(s->seq);
        if (seq & 1) {
            sched_yield();
            continue;
        }
        for (uint32_t k = 0; k < 2; k++) {
            const struct space_slot *x =
                k ? ws_space_table_above(&s->table, va) : ws_space_table_below(&s->table, va);
            if (!x)
                continue;
            ret[k].va = LOAD(x->va);
            ret[k].bytes = LOAD(x->bytes);
            ret[k].readers = LOAD(x->readers);
        }
    } while (seq & 1 || LOAD(s->seq) != seq);
}

bool ws_space_meets(const struct ws_space *s, uint64_t va, uint64_t bytes)
{
    struct ws_mapping m[2];
    neighbours(s, va, m);
    return (m[0].bytes && va - m[0].va < m[0].bytes) || (m[1].bytes && m[1].va - va < bytes);
}

bool ws_space_find_near(const struct ws_space *s, uint32_t who, uint64_t va,
                        struct ws_space_near *ret)
{
    struct ws_mapping m[2];
    neighbours(s, va, m);
    uint64_t after = va - m[0].va - m[0].bytes, before = m[1].va - va;
    bool has_first = m[0].bytes && m[0].readers & who, has_next = m[1].bytes && m[1].readers & who;
    if ((m[0].bytes && va - m[0].va < m[0].bytes) || !(has_first || has_next))
        return false;
    bool behind = has_first && (!has_next || after <= before);
    *ret = (struct ws_space_near){m[!behind], behind ? after : before, behind};
    return true;
}

bool ws_space_covers(const struct ws_space *s, uint64_t va, uint64_t bytes, bool write)
{
    struct ws_mapping m;
    for (unsigned k = 0; k < WS_SPACE_COVERS_MOST; k++) {
        if (!lookup(s, va, &m) || !m.readers || (write && !m.writers))
            return false;
        uint64_t n = m.bytes - (va - m.va);
        if (bytes <= n)
            return true;
        va += n;
        bytes -= n;
    }
    return lookup(s, va + bytes - 1, &m) && m.readers && (!write || m.writers);
}

bool ws_space_resolve(const struct ws_space *s, uint64_t va, uint8_t **ret_host,
                      uint64_t *ret_bytes, uint32_t *ret_flags, struct ws_device **ret_device)
{
    struct ws_mapping m;
    if (!lookup(s, va, &m) || !m.readers)
        return false;
    *ret_host = m.host + (va - m.va);
    *ret_bytes = m.bytes - (va - m.va);
    *ret_flags = m.flags;
    *ret_device = m.device;
    return true;
}

uint32_t ws_space_ranges(struct ws_space *s, uint32_t who, uint64_t (*ret)[2], uint32_t max,
                         uint32_t *ret_version)
{
    uint64_t low = 0, end = 0;
    uint32_t n = 0;
    pthread_mutex_lock(&s->lock); /* no writer works */
    struct ws_space_place at = {0};
    for (bool more = true; more;) {
        const struct space_slot *x = ws_space_table_next(&s->table, &at);
        more = x != NULL;
        if (x && !(LOAD(x->readers) & who))
            continue;
        uint64_t va = x ? LOAD(x->va) : 0, bytes = x ? LOAD(x->bytes) : 0;
        if (x && end > low && va == end) {
            end += bytes;
            continue;
        }
        if (end > low && n < max) {
            ret[n][0] = low;
            ret[n][1] = end - low;
        }
        n += end > low;
        low = va;
        end = va + bytes;
    }
    if (ret_version)
        *ret_version = LOAD(s->seq);
    pthread_mutex_unlock(&s->lock);
    return n;
}

uint32_t ws_space_version(const struct ws_space *s)
{
    return LOAD(s->seq);
}

static struct space_slot *slot_get(struct ws_space *s)
{
    if (!s->free_slots) {
        struct chunk *c = ws_alloc(sizeof(*c));
        if (!c)
            return NULL;
        c->next = s->chunks;
        s->chunks = c;
        for (int i = SLOTS_PER_CHUNK - 1; i >= 0; i--) {
            c->v[i].next = s->free_slots;
            s->free_slots = &c->v[i];
        }
    }
    struct space_slot *x = s->free_slots;
    s->free_slots = x->next;
    return x;
}

static void write_begin(struct ws_space *s)
{
    atomic_store_explicit(&s->seq, atomic_load_explicit(&s->seq, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void write_end(struct ws_space *s)
{
    STORE(s->seq, atomic_load_explicit(&s->seq, memory_order_relaxed) + 1);
}

static int map_locked(struct ws_space *s, const struct ws_mapping *m, ws_space_release_fn *release,
                      void *arg)
{
    uint64_t va = m->va, bytes = m->bytes;
    const struct space_slot *before = ws_space_table_below(&s->table, va),
                            *after = ws_space_table_above(&s->table, va);
    if ((before && va - before->va < before->bytes) || (after && after->va - va < bytes))
        return -EEXIST;
    struct space_slot *x = slot_get(s);
    if (!x)
        return ws_raise(-ENOMEM);
    struct ws_space_room room;
    int r = ws_space_table_room(&s->table, va, &room);
    if (r) {
        x->next = s->free_slots;
        s->free_slots = x;
        return ws_forward(r);
    }
    x->release = release;
    x->release_arg = arg;
    static _Atomic uint64_t n_mappings;
    uint64_t serial = atomic_fetch_add_explicit(&n_mappings, 1, memory_order_relaxed);
    write_begin(s);
    STORE(x->serial, serial);
    STORE(x->va, va);
    STORE(x->bytes, bytes);
    STORE(x->host, m->host);
    STORE(x->readers, m->readers);
    STORE(x->writers, m->writers);
    STORE(x->device, m->device);
    ws_space_table_insert(&s->table, &room, va, x);
    write_end(s);
    if (m->device)
        s->device_bytes += bytes;
    return 0;
}

int ws_space_map(struct ws_space *s, const struct ws_mapping *m, ws_space_release_fn *release,
                 void *arg)
{
    if (!m->bytes || m->va + m->bytes < m->va || !m->host || s->members)
        return ws_raise(-EINVAL);
    pthread_mutex_lock(&s->lock);
    int r = map_locked(s, m, release, arg);
    pthread_mutex_unlock(&s->lock);
    return r;
}

/* ---- host memory that a real GPU must be told of ---- */

void ws_space_set_host_hook(const struct ws_host_hook *h)
{
    STORE(host_hook, h);
}

struct host_place {
    const struct ws_host_hook *hook;
    struct ws_space *space;
    uint64_t va;
};

static void host_unmapped(void *arg, uint8_t *host, uint64_t bytes)
{
    struct host_place *p = arg;
    p->hook->unmap(p->space, p->va, bytes);
    free(p);
}

static int map_host(struct ws_space *s, uint64_t va, uint64_t bytes, void *host, bool soon)
{
    const struct ws_host_hook *hook = LOAD(host_hook);
    struct ws_mapping m = {
        .va = va, .bytes = bytes, .host = host, .readers = WS_ACCESS_ALL, .writers = WS_ACCESS_ALL};
    if (!hook)
        return ws_space_map(s, &m, NULL, NULL);
    struct host_place *p = ws_alloc(sizeof(*p));
    if (!p)
        return ws_raise(-ENOMEM);
    *p = (struct host_place){hook, s, va};
    int r = hook->map(s, va, bytes, host, soon);
    if (!r) {
        r = ws_space_map(s, &m, host_unmapped, p);
        if (r)
            hook->unmap(s, va, bytes);
    }
    if (r)
        free(p);
    return r;
}

int ws_space_map_host(struct ws_space *s, uint64_t va, uint64_t bytes, void *host)
{
    return map_host(s, va, bytes, host, false);
}

int ws_space_map_host_soon(struct ws_space *s, uint64_t va, uint64_t bytes, void *host)
{
    return map_host(s, va, bytes, host, true);
}

/* The slot of the mapping that starts at @va. Lock held. */
static struct space_slot *slot_at(struct ws_space *s, uint64_t va)
{
    struct space_slot *x = ws_space_table_below(&s->table, va);
    return x && x->va == va ? x : NULL;
}

int ws_space_set_access(struct ws_space *s, uint64_t va, uint32_t readers, uint32_t writers)
{
    pthread_mutex_lock(&s->lock);
    struct space_slot *x = slot_at(s, va);
    struct ws_device *d = x ? x->device : NULL;
    if (x) {
        readers &= d ? ws_device_peers(d) : WS_ACCESS_ALL;
        writers &= d ? ws_device_peers(d) : WS_ACCESS_ALL;
        write_begin(s);
        STORE(x->readers, readers);
        STORE(x->writers, writers);
        write_end(s);
        if (d && d->ops->set_access)
            d->ops->set_access(d, s, va, x->bytes, readers, writers);
    }
    pthread_mutex_unlock(&s->lock);
    return x ? 0 : -ENOENT;
}

/* Moves the epoch on as far as its users let it. Lock held. Return: slots whose memory nobody sees
 * any more. */
static struct space_slot *advance(struct ws_space *s)
{
    struct space_slot *out = NULL;
    for (int i = 0; i < 2; i++) {
        unsigned now = s->epoch & 1, before = now ^ 1;
        if (s->users[before] || (!s->limbo[now] && !s->limbo[before]))
            break;
        struct space_slot *x = s->limbo[before];
        s->limbo[before] = NULL;
        while (x) {
            struct space_slot *next = x->next;
            x->next = out;
            out = x;
            x = next;
        }
        s->epoch++;
    }
    return out;
}

/* Of a joint space: one bit for each member, its epoch's lowest, which is all that leaving asks
 * for. */
static unsigned enter_members(struct ws_space *s)
{
    unsigned bits = 0;
    for (uint32_t k = 0; k < s->n_members; k++)
        bits |= (ws_space_enter(s->members[k]) & 1) << k;
    return bits;
}

unsigned ws_space_enter(struct ws_space *s)
{
    if (WS_UNLIKELY(s->members))
        return enter_members(s);
    pthread_mutex_lock(&s->lock);
    unsigned e = s->epoch;
    s->users[e & 1]++;
    pthread_mutex_unlock(&s->lock);
    return e;
}

void ws_space_leave(struct ws_space *s, unsigned epoch)
{
    if (WS_UNLIKELY(s->members)) {
        for (uint32_t k = 0; k < s->n_members; k++)
            ws_space_leave(s->members[k], epoch >> k & 1);
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->users[epoch & 1]--;
    struct space_slot *gone = advance(s);
    pthread_mutex_unlock(&s->lock);
    release_all(s, gone);
}

int ws_space_unmap(struct ws_space *s, uint64_t va)
{
    pthread_mutex_lock(&s->lock);
    struct space_slot *x = slot_at(s, va);
    if (!x) {
        pthread_mutex_unlock(&s->lock);
        return -ENOENT;
    }
    x->limbo_host = x->host;
    x->limbo_bytes = x->bytes;
    if (x->device)
        s->device_bytes -= x->bytes;
    write_begin(s);
    ws_space_table_remove(&s->table, va);
    STORE(x->bytes, 0);
    write_end(s);
    x->next = s->limbo[s->epoch & 1];
    s->limbo[s->epoch & 1] = x;
    struct space_slot *gone = advance(s);
    pthread_mutex_unlock(&s->lock);
    release_all(s, gone);
    return 0;
}

bool ws_space_unmap_last(struct ws_space *s)
{
    pthread_mutex_lock(&s->lock);
    const struct space_slot *last = ws_space_table_below(&s->table, UINT64_MAX);
    uint64_t va = last ? last->va : 0;
    pthread_mutex_unlock(&s->lock);
    return va && !ws_space_unmap(s, va);
}

uint64_t ws_space_id(const struct ws_space *s)
{
    return s->id;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

uint64_t ws_space_digest(struct ws_space *s, uint64_t low, uint64_t high)
{
    uint64_t sum = 0;
    pthread_mutex_lock(&s->lock);
    for_each_slot(x, &s->table)
    {
        uint64_t va = LOAD(x->va), bytes = LOAD(x->bytes);
        const uint8_t *p = LOAD(x->host);
        for (uint64_t at = 0; va >= low && va < high && at < bytes; at += 8) {
            uint64_t word = 0;
            memcpy(&word, p + at, WS_MIN(bytes - at, 8u));
            if (word)
                sum += mix(mix(va + at) ^ word);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return sum;
}

uint64_t ws_space_device_bytes(const struct ws_space *s)
{
    uint64_t bytes = LOAD(s->device_bytes);
    for (uint32_t k = 0; k < s->n_members; k++)
        bytes += LOAD(s->members[k]->device_bytes);
    return bytes;
}

void ws_space_set_print(struct ws_space *s,
                        void (*print)(void *arg, enum ws_output to, const char *text, size_t n),
                        void *arg)
{
    pthread_mutex_lock(&s->print_lock);
    s->print = print;
    s->print_arg = arg;
    pthread_mutex_unlock(&s->print_lock);
}

void ws_space_print(const struct ws_space *cs, enum ws_output to, const char *text, size_t n)
{
    struct ws_space *s = (struct ws_space *)cs; /* the lock is not part of what const promises */
    pthread_mutex_lock(&s->print_lock);
    if (s->print)
        s->print(s->print_arg, to, text, n);
    pthread_mutex_unlock(&s->print_lock);
}

/* ---- joint spaces ---- */

/* Whether @a and @b hold an address both. Their locks are held. */
static bool overlap(const struct ws_space *a, const struct ws_space *b)
{
    struct ws_space_place i = {0}, k = {0};
    const struct space_slot *p = ws_space_table_next(&a->table, &i),
                            *q = ws_space_table_next(&b->table, &k);
    while (p && q) {
        if (p->va < q->va ? q->va - p->va < p->bytes : p->va - q->va < q->bytes)
            return true;
        if (p->va < q->va)
            p = ws_space_table_next(&a->table, &i);
        else
            q = ws_space_table_next(&b->table, &k);
    }
    return false;
}

static bool any_overlap(struct ws_space *const *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < i; k++)
            if (overlap(v[i], v[k]))
                return true;
    return false;
}

/* By id, each once. Return: whether it wasn't there. */
static bool add_sorted(struct ws_space **v, uint32_t n, struct ws_space *s)
{
    uint32_t k = 0;
    while (k < n && v[k]->id < s->id)
        k++;
    if (k < n && v[k] == s)
        return false;
    memmove(&v[k + 1], &v[k], (n - k) * sizeof(struct ws_space *));
    v[k] = s;
    return true;
}

int ws_space_join(struct ws_space **ret, struct ws_space *const *members, uint32_t n)
{
    if (!n || n > WS_SPACE_JOIN_MAX)
        return ws_raise(-EINVAL);
    struct ws_space *s, **v = ws_alloc_array(n, sizeof(*v));
    uint32_t n_distinct = 0;
    if (!v)
        return ws_raise(-ENOMEM);
    for (uint32_t i = 0; i < n; i++) {
        if (!members[i] || members[i]->members) {
            free(v);
            return ws_raise(-EINVAL);
        }
        n_distinct += add_sorted(v, n_distinct, members[i]);
    }
    int r = ws_space_new(&s);
    if (r) {
        free(v);
        return ws_forward(r);
    }
    /* In the order of their ids: nobody else holds two of these locks. */
    for (uint32_t k = 0; k < n_distinct; k++)
        pthread_mutex_lock(&v[k]->lock);
    bool collide = any_overlap(v, n_distinct);
    for (uint32_t k = n_distinct; k-- > 0;)
        pthread_mutex_unlock(&v[k]->lock);
    s->members = v;
    s->n_members = n_distinct;
    if (collide) {
        ws_space_free(s);
        return -EEXIST;
    }
    *ret = s;
    return 0;
}

void ws_space_set_print_bytes(struct ws_space *s, uint64_t bytes)
{
    STORE(s->print_bytes, bytes);
}

uint64_t ws_space_print_bytes(const struct ws_space *s)
{
    return LOAD(s->print_bytes);
}

void ws_space_set_stack_bytes(struct ws_space *s, uint64_t bytes)
{
    STORE(s->stack_bytes, bytes);
}

uint64_t ws_space_stack_bytes(const struct ws_space *s)
{
    return LOAD(s->stack_bytes);
}

void ws_space_set_margin(struct ws_space *s, uint64_t bytes)
{
    STORE(s->margin, bytes);
}

uint64_t ws_space_margin(const struct ws_space *s)
{
    return LOAD(s->margin);
}

void ws_space_set_payer(struct ws_space *s, struct ws_payer *p)
{
    s->payer = ws_payer_ref(p);
}

struct ws_payer *ws_space_payer(const struct ws_space *s)
{
    return s->payer;
}

/* ---- the heap of device code ---- */

int ws_space_set_heap_bytes(struct ws_space *s, uint64_t bytes)
{
    pthread_mutex_lock(&s->heap_lock);
    bool open = s->heap != NULL || s->heap_va != HEAP_VA;
    if (!open)
        s->heap_bytes = WS_ALIGN_UP(WS_MAX(bytes, UINT64_C(1)), (uint64_t)WS_DEVICE_PAGE_BYTES);
    pthread_mutex_unlock(&s->heap_lock);
    return open ? -EBUSY : 0;
}

uint64_t ws_space_heap_bytes(struct ws_space *s)
{
    pthread_mutex_lock(&s->heap_lock);
    uint64_t bytes = s->heap_bytes;
    pthread_mutex_unlock(&s->heap_lock);
    return bytes;
}

int ws_space_place_heap(struct ws_space *s, uint64_t va, uint64_t *ret_bytes)
{
    pthread_mutex_lock(&s->heap_lock);
    bool open = s->heap != NULL;
    if (!open)
        s->heap_va = va ? va : HEAP_VA;
    *ret_bytes = s->heap_bytes;
    pthread_mutex_unlock(&s->heap_lock);
    return open ? -EBUSY : 0;
}

int ws_space_open_heap(struct ws_space *s, struct ws_device *d)
{
    struct ws_heap *h;
    if (LOAD(s->heap))
        return 0;
    if (s->members)
        return ws_raise(-EINVAL);
    pthread_mutex_lock(&s->heap_lock);
    int r = 0;
    if (!s->heap && !(r = ws_heap_new(&h, s->heap_bytes))) {
        r = ws_device_mem_alloc(d, s, s->heap_va, s->heap_bytes);
        if (r)
            ws_heap_free(h);
        else
            STORE(s->heap, h);
        s->heap_device = d;
    }
    pthread_mutex_unlock(&s->heap_lock);
    return r;
}

int ws_space_tell_heap(struct ws_space *s, uint64_t va, uint64_t bytes)
{
    struct ws_heap *h;
    int r = 0;
    pthread_mutex_lock(&s->heap_lock);
    if ((!s->heap || s->heap_bytes != bytes) && !(r = ws_heap_new(&h, bytes))) {
        ws_heap_free(s->heap);
        STORE(s->heap, h);
    }
    if (!r) {
        s->heap_va = va;
        s->heap_bytes = bytes;
    }
    pthread_mutex_unlock(&s->heap_lock);
    return r;
}

void ws_space_drop_heap(struct ws_space *s, const struct ws_device *d)
{
    pthread_mutex_lock(&s->heap_lock);
    struct ws_heap *h = s->heap;
    if (h && (!d || d == s->heap_device) && !ws_space_unmap(s, s->heap_va)) {
        STORE(s->heap, NULL);
        STORE(s->heap_use, 0);
        ws_heap_free(h);
    }
    pthread_mutex_unlock(&s->heap_lock);
}

bool ws_space_heap(const struct ws_space *s, uint64_t *ret_va, uint64_t *ret_bytes)
{
    if (!LOAD(s->heap))
        return false;
    *ret_va = s->heap_va;
    *ret_bytes = s->heap_bytes;
    return true;
}

enum ws_heap_turn ws_space_heap_begin(struct ws_space *s, bool may_wipe)
{
    uint32_t v = LOAD(s->heap_use);
    for (;;) {
        if (v == HEAP_WIPING || (v == HEAP_TO_WIPE && !may_wipe))
            return WS_HEAP_WAIT;
        uint32_t next = v == HEAP_TO_WIPE ? HEAP_WIPING : v + 1;
        if (atomic_compare_exchange_weak(&s->heap_use, &v, next))
            return next == HEAP_WIPING ? WS_HEAP_WIPE : WS_HEAP_GO;
    }
}

void ws_space_heap_wiped(struct ws_space *s)
{
    STORE(s->heap_use, 1);
}

void ws_space_heap_end(struct ws_space *s, bool wipe)
{
    uint32_t v = LOAD(s->heap_use), next;
    do
        next = v == 1 && wipe ? HEAP_TO_WIPE : v - 1;
    while (!atomic_compare_exchange_weak(&s->heap_use, &v, next));
}

uint64_t ws_space_heap_take(const struct ws_space *s, uint64_t bytes)
{
    struct ws_heap *h = LOAD(s->heap);
    uint64_t offset;
    return h && bytes <= UINT64_MAX - HEAP_BEFORE_BYTES &&
                   ws_heap_take(h, bytes + HEAP_BEFORE_BYTES, &offset)
               ? s->heap_va + offset + HEAP_BEFORE_BYTES
               : 0;
}

bool ws_space_heap_give(const struct ws_space *s, uint64_t va)
{
    struct ws_heap *h = LOAD(s->heap);
    return h && va >= s->heap_va + HEAP_BEFORE_BYTES &&
           ws_heap_give(h, va - s->heap_va - HEAP_BEFORE_BYTES);
}

bool ws_space_started_take(struct ws_space *s, uint64_t bytes, uint64_t max_bytes)
{
    uint64_t v = LOAD(s->started_bytes);
    do {
        if (v > max_bytes || max_bytes - v < bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&s->started_bytes, &v, v + bytes));
    return true;
}

void ws_space_started_give(struct ws_space *s, uint64_t bytes)
{
    atomic_fetch_sub(&s->started_bytes, bytes);
}

// SPDX-License-Identifier: Apache-2.0
/* Host memory behind device memory.
 *
 * Small blocks (up to 128 KiB) come from slabs of 1 MiB in power-of-two classes, so thousands of
 * small allocations cost neither a system call nor a page each. Large blocks are mappings of their
 * own, backed when first touched and without a reservation, because a GPU of the catalog may have
 * more memory than the host. Freed large blocks of up to 32 MiB wait in a small cache: faulting 16
 * MiB in again would cost more than the copy that needs it.
 *
 * No client sees another client's data. A fresh mapping is zero. A small block from a free list is
 * cleared when it is handed out. Clearing a large block would hold up whoever allocates, who may be
 * the daemon's loop; so a thread, the sweeper, clears what waits in the cache, and only cleared
 * blocks are handed out from there. The sweeper also unmaps what the cache has no room for: giving
 * back many touched pages takes long as well. It does so in pieces, so that others who map
 * memory meanwhile do not wait for the whole. What waits to be unmapped is bounded: whoever frees
 * more than the sweeper gives back unmaps it himself. */
#include "device/soft/mem.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/error.h"

enum { N_CLASSES = 9, N_CACHED = 16 };
#define SLAB_BYTES             (UINT64_C(1) << 20)
#define SMALL_MAX_BYTES        ((uint64_t)WS_DEVICE_PAGE_BYTES << (N_CLASSES - 1))
#define CACHED_BLOCK_MAX_BYTES (UINT64_C(32) << 20)
#define CACHE_MAX_BYTES        (UINT64_C(64) << 20)
#define HUGE_BYTES             (UINT64_C(2) << 20)
#define SWEEP_PIECE_BYTES      (UINT64_C(4) << 20)
#define DEAD_MAX_BYTES         (UINT64_C(256) << 20)
#define PAGE_BYTES             UINT64_C(4096)

struct free_block {
    struct free_block *next;
};
struct slab {
    struct slab *next;
    uint8_t *base;
};
struct cached {
    uint8_t *host;
    uint64_t bytes; /* of the mapping */
    bool clean;
};
struct dead { /* a mapping that nobody needs any more */
    struct dead *next;
    uint8_t *host;
    uint64_t bytes;
};

/* All under lock. */
struct ws_mem {
    pthread_mutex_t lock;
    uint64_t limit_bytes, used_bytes;
    uint64_t n_refs; /* the owner's, and one for each allocation */
    struct slab *slabs;
    uint8_t *fresh[N_CLASSES]; /* never used part of the newest slab of the class */
    uint64_t fresh_bytes[N_CLASSES];
    struct free_block *free[N_CLASSES];
    struct cached cache[N_CACHED]; /* oldest first */
    unsigned n_cached;
    uint64_t cached_bytes; /* the one that is being cleared counts */
    bool clearing;         /* the sweeper clears a block, which is not in the cache meanwhile */
    struct dead *dead;
    uint64_t dead_bytes; /* the one that is being unmapped counts */
    pthread_t sweeper;
    bool has_sweeper, stop;
    pthread_cond_t work; /* for the sweeper */
};

int ws_mem_new(struct ws_mem **ret, uint64_t limit_bytes)
{
    struct ws_mem *m = ws_alloc(sizeof(*m));
    if (!m)
        return ws_raise(-ENOMEM);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->work, NULL);
    m->limit_bytes = limit_bytes;
    m->n_refs = 1;
    *ret = m;
    return 0;
}

/* ---- the sweeper ---- */

/* Pages first, a piece at a time: that needs no exclusive right to the process's mappings. */
static void unmap_in_pieces(uint8_t *host, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += SWEEP_PIECE_BYTES)
        (void)madvise(host + at, WS_MIN(bytes - at, SWEEP_PIECE_BYTES), MADV_DONTNEED);
    munmap(host, bytes);
}

static void cache_remove(struct ws_mem *m, unsigned i)
{
    memmove(&m->cache[i], &m->cache[i + 1], (--m->n_cached - i) * sizeof(m->cache[0]));
}

/* Whether most pages of a block are there. Where they are not, clearing would make them. */
static bool is_touched(const struct cached *c)
{
    unsigned char there[CACHED_BLOCK_MAX_BYTES / PAGE_BYTES];
    uint64_t n = c->bytes / PAGE_BYTES, found = 0;
    if (mincore(c->host, c->bytes, there))
        return true;
    for (uint64_t i = 0; i < n; i++)
        found += there[i] & 1;
    return found > n / 2;
}

static void clear(const struct cached *c)
{
    if (is_touched(c))
        memset(c->host, 0, c->bytes);
    else
        ws_mem_clear(c->host, c->bytes, true);
}

/* Clears the newest block that is not clean: it is the most likely to be wanted. Lock held, but
 * not meanwhile. Return: false: all are clean. */
static bool clear_one(struct ws_mem *m)
{
    unsigned i = m->n_cached;
    while (i && m->cache[i - 1].clean)
        i--;
    if (!i)
        return false;
    struct cached c = m->cache[i - 1];
    cache_remove(m, i - 1);
    m->clearing = true;
    pthread_mutex_unlock(&m->lock);
    clear(&c);
    pthread_mutex_lock(&m->lock);
    c.clean = true;
    m->clearing = false;
    m->cache[m->n_cached++] = c; /* its place was kept */
    return true;
}

static bool unmap_one(struct ws_mem *m)
{
    struct dead *d = m->dead;
    if (!d)
        return false;
    m->dead = d->next;
    pthread_mutex_unlock(&m->lock);
    unmap_in_pieces(d->host, d->bytes);
    pthread_mutex_lock(&m->lock);
    m->dead_bytes -= d->bytes;
    free(d);
    return true;
}

static void *sweep(void *arg)
{
    struct ws_mem *m = arg;
    pthread_mutex_lock(&m->lock);
    while (!m->stop)
        if (!unmap_one(m) && !clear_one(m))
            pthread_cond_wait(&m->work, &m->lock);
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

/* There is work for the sweeper. Lock held. Return: false: there is no sweeper. */
static bool wake_sweeper(struct ws_mem *m)
{
    if (!m->has_sweeper)
        m->has_sweeper = !pthread_create(&m->sweeper, NULL, sweep, m);
    if (m->has_sweeper)
        pthread_cond_signal(&m->work);
    return m->has_sweeper;
}

/* Lock held. */
static void unmap_later(struct ws_mem *m, uint8_t *host, uint64_t bytes)
{
    bool full = m->dead && m->dead_bytes + bytes > DEAD_MAX_BYTES;
    struct dead *d = full ? NULL : ws_alloc(sizeof(*d));
    if (!d || !wake_sweeper(m)) {
        free(d);
        munmap(host, bytes);
        return;
    }
    *d = (struct dead){m->dead, host, bytes};
    m->dead_bytes += bytes;
    m->dead = d;
}

/* ---- life ---- */

static void mem_free(struct ws_mem *m)
{
    if (m->has_sweeper) {
        pthread_mutex_lock(&m->lock);
        m->stop = true;
        pthread_cond_signal(&m->work);
        pthread_mutex_unlock(&m->lock);
        pthread_join(m->sweeper, NULL);
    }
    while (m->dead) {
        struct dead *next = m->dead->next;
        munmap(m->dead->host, m->dead->bytes);
        free(m->dead);
        m->dead = next;
    }
    while (m->slabs) {
        struct slab *next = m->slabs->next;
        munmap(m->slabs->base, SLAB_BYTES);
        free(m->slabs);
        m->slabs = next;
    }
    for (unsigned i = 0; i < m->n_cached; i++)
        munmap(m->cache[i].host, m->cache[i].bytes);
    pthread_cond_destroy(&m->work);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static void unref_and_unlock(struct ws_mem *m)
{
    bool last = !--m->n_refs;
    pthread_mutex_unlock(&m->lock);
    if (last)
        mem_free(m);
}

struct ws_mem *ws_mem_unref(struct ws_mem *m)
{
    if (m) {
        pthread_mutex_lock(&m->lock);
        unref_and_unlock(m);
    }
    return NULL;
}

static uint8_t *map(uint64_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (bytes >= 2 * HUGE_BYTES)
        (void)madvise(p, bytes,
                      MADV_HUGEPAGE); /* advice: without huge pages it is slower, not wrong */
    return p;
}

static unsigned class_of(uint64_t bytes)
{
    unsigned c = 0;
    while (((uint64_t)WS_DEVICE_PAGE_BYTES << c) < bytes)
        c++;
    return c;
}

static bool slab_add(struct ws_mem *m, unsigned c)
{
    struct slab *s = ws_alloc(sizeof(*s));
    if (s)
        s->base = map(SLAB_BYTES);
    if (!s || !s->base) {
        free(s);
        return false;
    }
    s->next = m->slabs;
    m->slabs = s;
    m->fresh[c] = s->base;
    m->fresh_bytes[c] = SLAB_BYTES;
    return true;
}

/* Lock held. *ret_dirty: to be cleared. */
static uint8_t *small_alloc(struct ws_mem *m, unsigned c, bool *ret_dirty)
{
    uint64_t size = (uint64_t)WS_DEVICE_PAGE_BYTES << c;
    struct free_block *b = m->free[c];
    *ret_dirty = b != NULL;
    if (b) {
        m->free[c] = b->next;
        return (uint8_t *)b;
    }
    if (m->fresh_bytes[c] < size && !slab_add(m, c))
        return NULL;
    uint8_t *p = m->fresh[c];
    m->fresh[c] += size;
    m->fresh_bytes[c] -= size;
    return p;
}

/* A clean block of exactly @bytes (rounded to pages: mappings are unmapped by that size). Lock
 * held. */
static uint8_t *cache_take(struct ws_mem *m, uint64_t bytes)
{
    for (unsigned i = m->n_cached; i-- > 0;)
        if (m->cache[i].clean && m->cache[i].bytes == bytes) {
            uint8_t *p = m->cache[i].host;
            m->cached_bytes -= bytes;
            cache_remove(m, i);
            return p;
        }
    return NULL;
}

/* Lock held. */
static void large_release(struct ws_mem *m, uint8_t *host, uint64_t bytes)
{
    unsigned n = N_CACHED - m->clearing;
    if (bytes > CACHED_BLOCK_MAX_BYTES) {
        unmap_later(m, host, bytes);
        return;
    }
    while (m->n_cached && (m->n_cached >= n || m->cached_bytes + bytes > CACHE_MAX_BYTES)) {
        struct cached oldest = m->cache[0];
        m->cached_bytes -= oldest.bytes;
        cache_remove(m, 0);
        unmap_later(m, oldest.host, oldest.bytes);
    }
    if (!wake_sweeper(m)) {
        munmap(host, bytes);
        return;
    }
    m->cache[m->n_cached++] = (struct cached){host, bytes, false};
    m->cached_bytes += bytes;
}

int ws_mem_alloc(struct ws_mem *m, uint64_t bytes, uint8_t **ret)
{
    pthread_mutex_lock(&m->lock);
    if (bytes > m->limit_bytes - m->used_bytes) {
        pthread_mutex_unlock(&m->lock);
        return WS_DEV_E_NO_MEMORY;
    }
    bool dirty = false;
    uint8_t *p;
    if (bytes <= SMALL_MAX_BYTES) {
        p = small_alloc(m, class_of(bytes), &dirty);
    } else {
        uint64_t pages_bytes = WS_ALIGN_UP(bytes, PAGE_BYTES);
        p = cache_take(m, pages_bytes);
        if (!p)
            p = map(pages_bytes);
    }
    if (p) {
        m->used_bytes += bytes;
        m->n_refs++;
    }
    pthread_mutex_unlock(&m->lock);
    if (!p)
        return ws_raise(-ENOMEM);
    if (dirty)
        memset(p, 0, bytes);
    *ret = p;
    return 0;
}

void ws_mem_release(void *mem, uint8_t *host, uint64_t bytes)
{
    struct ws_mem *m = mem;
    pthread_mutex_lock(&m->lock);
    m->used_bytes -= bytes;
    if (bytes <= SMALL_MAX_BYTES) {
        unsigned c = class_of(bytes);
        struct free_block *b = (struct free_block *)host;
        b->next = m->free[c];
        m->free[c] = b;
    } else {
        large_release(m, host, WS_ALIGN_UP(bytes, PAGE_BYTES));
    }
    unref_and_unlock(m);
}

void ws_mem_clear(uint8_t *p, uint64_t bytes, bool private)
{
    uint8_t *first = (uint8_t *)WS_ALIGN_UP((uintptr_t)p, PAGE_BYTES);
    uint8_t *last = (uint8_t *)((uintptr_t)(p + bytes) & ~(uintptr_t)(PAGE_BYTES - 1));
    if (bytes < SMALL_MAX_BYTES ||
        madvise(first, (size_t)(last - first), private ? MADV_DONTNEED : MADV_REMOVE)) {
        memset(p, 0, bytes);
        return;
    }
    memset(p, 0, (size_t)(first - p));
    memset(last, 0, (size_t)(p + bytes - last));
}

uint64_t ws_mem_used_bytes(struct ws_mem *m)
{
    pthread_mutex_lock(&m->lock);
    uint64_t n = m->used_bytes;
    pthread_mutex_unlock(&m->lock);
    return n;
}

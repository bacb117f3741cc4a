// SPDX-License-Identifier: Apache-2.0
/* Host memory behind device memory.
 *
 * Small blocks (up to 128 KiB) come from slabs of 1 MiB in power-of-two classes, so thousands of
 * small allocations cost neither a system call nor a page each. Large blocks are mappings of their
 * own, backed when first touched and without a reservation, because a GPU of the catalog may have
 * more memory than the host. Freed large blocks of up to 32 MiB wait in a small cache: faulting 16
 * MiB in again would cost more than the copy that needs it.
 *
 * A block from a free list or from the cache is cleared before it is handed out, so that no client
 * sees another client's data. */
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
    uint64_t cached_bytes;
};

int ws_mem_new(struct ws_mem **ret, uint64_t limit_bytes)
{
    struct ws_mem *m = ws_alloc(sizeof(*m));
    if (!m)
        return ws_raise(-ENOMEM);
    pthread_mutex_init(&m->lock, NULL);
    m->limit_bytes = limit_bytes;
    m->n_refs = 1;
    *ret = m;
    return 0;
}

static void mem_free(struct ws_mem *m)
{
    while (m->slabs) {
        struct slab *next = m->slabs->next;
        munmap(m->slabs->base, SLAB_BYTES);
        free(m->slabs);
        m->slabs = next;
    }
    for (unsigned i = 0; i < m->n_cached; i++)
        munmap(m->cache[i].host, m->cache[i].bytes);
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

static void cache_remove(struct ws_mem *m, unsigned i)
{
    m->cached_bytes -= m->cache[i].bytes;
    memmove(&m->cache[i], &m->cache[i + 1], (--m->n_cached - i) * sizeof(m->cache[0]));
}

/* A block of exactly @bytes (rounded to pages: mappings are unmapped by that size). Lock held. */
static uint8_t *cache_take(struct ws_mem *m, uint64_t bytes)
{
    for (unsigned i = m->n_cached; i-- > 0;)
        if (m->cache[i].bytes == bytes) {
            uint8_t *p = m->cache[i].host;
            cache_remove(m, i);
            return p;
        }
    return NULL;
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
        dirty = p != NULL;
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
    struct cached evicted[N_CACHED];
    unsigned n_evicted = 0;
    uint64_t pages_bytes = WS_ALIGN_UP(bytes, PAGE_BYTES);
    pthread_mutex_lock(&m->lock);
    m->used_bytes -= bytes;
    if (bytes <= SMALL_MAX_BYTES) {
        unsigned c = class_of(bytes);
        struct free_block *b = (struct free_block *)host;
        b->next = m->free[c];
        m->free[c] = b;
    } else if (pages_bytes > CACHED_BLOCK_MAX_BYTES) {
        evicted[n_evicted++] = (struct cached){host, pages_bytes};
    } else {
        while (m->n_cached == N_CACHED || m->cached_bytes + pages_bytes > CACHE_MAX_BYTES) {
            evicted[n_evicted++] = m->cache[0];
            cache_remove(m, 0);
        }
        m->cache[m->n_cached++] = (struct cached){host, pages_bytes};
        m->cached_bytes += pages_bytes;
    }
    unref_and_unlock(m);
    for (unsigned i = 0; i < n_evicted; i++)
        munmap(evicted[i].host, evicted[i].bytes);
}

uint64_t ws_mem_used_bytes(struct ws_mem *m)
{
    pthread_mutex_lock(&m->lock);
    uint64_t n = m->used_bytes;
    pthread_mutex_unlock(&m->lock);
    return n;
}

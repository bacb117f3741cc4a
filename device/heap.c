// SPDX-License-Identifier: Apache-2.0
/* Segregated fit with immediate coalescing.
 *
 * The heap is an array of granules, cut into blocks without gaps. A block's size stands at its
 * first and at its last granule (below), with a bit for "taken" at the first; so both neighbours of
 * a block are found at once, and only the first granule of a taken block is one that may be given
 * back. Free blocks are in lists by size: exact ones up to 64 granules, above that four to each
 * doubling. A request takes the first block of the first non-empty list whose blocks are all large
 * enough, or else searches the list its own size falls into. Everything is in arrays beside the
 * memory, touched as far as the heap was used.
 *
 * Invariants: no two neighbouring blocks are free; a block is in the list of its size exactly when
 * it is free. */
#include "device/heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"

enum { EXACT = 64, PER_DOUBLING = 4, N_LISTS = EXACT + 4 * 27, NONE = UINT32_MAX };
#define TAKEN (UINT32_C(1) << 31)

struct granule {
    uint32_t head; /* first of a block: granules in it, and TAKEN */
    uint32_t tail; /* last of a block: granules in it */
};
/* Of a free block. */
struct links {
    uint32_t next, prev;
};
struct ws_heap {
    pthread_mutex_t lock;
    uint32_t n;
    struct granule *g; /* [n + 1]: one that is taken stands behind the last */
    struct links *links;
    uint32_t first[N_LISTS];
    uint64_t some[(N_LISTS + 63) / 64]; /* bit: that list is not empty */
};

/* The list for blocks of @n granules. */
static unsigned list_of(uint32_t n)
{
    if (n < EXACT)
        return n;
    unsigned log2 = 31 - (unsigned)__builtin_clz(n); /* >= 6 */
    return EXACT + (log2 - 6) * PER_DOUBLING + ((n >> (log2 - 2)) & (PER_DOUBLING - 1));
}

static void insert(struct ws_heap *h, uint32_t at, uint32_t n)
{
    unsigned l = list_of(n);
    h->g[at].head = n;
    h->g[at + n - 1].tail = n;
    h->links[at] = (struct links){h->first[l], NONE};
    if (h->first[l] != NONE)
        h->links[h->first[l]].prev = at;
    h->first[l] = at;
    h->some[l / 64] |= UINT64_C(1) << (l % 64);
}

static void detach(struct ws_heap *h, uint32_t at)
{
    struct links k = h->links[at];
    unsigned l = list_of(h->g[at].head);
    if (k.prev != NONE)
        h->links[k.prev].next = k.next;
    else if ((h->first[l] = k.next) == NONE)
        h->some[l / 64] &= ~(UINT64_C(1) << (l % 64));
    if (k.next != NONE)
        h->links[k.next].prev = k.prev;
}

int ws_heap_new(struct ws_heap **ret, uint64_t bytes)
{
    uint64_t n = bytes / WS_HEAP_GRANULE_BYTES;
    if (!n || bytes > UINT64_C(64) << 30 || n >= TAKEN)
        return ws_raise(-EINVAL);
    struct ws_heap *h = ws_alloc(sizeof(*h));
    if (h) {
        h->n = (uint32_t)n;
        h->g = calloc(n + 1, sizeof(h->g[0])); /* large: mapped, and touched lazily */
        h->links = calloc(n, sizeof(h->links[0]));
    }
    if (!h || !h->g || !h->links) {
        if (h) {
            free(h->g);
            free(h->links);
        }
        free(h);
        return ws_raise(-ENOMEM);
    }
    pthread_mutex_init(&h->lock, NULL);
    for (unsigned l = 0; l < N_LISTS; l++)
        h->first[l] = NONE;
    h->g[n].head = 1 | TAKEN;
    insert(h, 0, h->n);
    *ret = h;
    return 0;
}

struct ws_heap *ws_heap_free(struct ws_heap *h)
{
    if (h) {
        pthread_mutex_destroy(&h->lock);
        free(h->g);
        free(h->links);
        free(h);
    }
    return NULL;
}

/* The first list from @l on that is not empty, or N_LISTS. */
static unsigned list_from(const struct ws_heap *h, unsigned l)
{
    for (; l < N_LISTS; l = (l / 64 + 1) * 64) {
        uint64_t some = h->some[l / 64] >> (l % 64);
        if (some)
            return l + (unsigned)__builtin_ctzll(some);
    }
    return N_LISTS;
}

/* A free block of at least @n granules, or NONE. */
static uint32_t find(const struct ws_heap *h, uint32_t n)
{
    unsigned own = list_of(n);
    unsigned l = list_from(h, own + (n >= EXACT));
    if (l < N_LISTS)
        return h->first[l];
    for (uint32_t at = h->first[own]; at != NONE; at = h->links[at].next)
        if (h->g[at].head >= n)
            return at;
    return NONE;
}

bool ws_heap_take(struct ws_heap *h, uint64_t bytes, uint64_t *ret_offset)
{
    uint64_t wanted = bytes ? (bytes - 1) / WS_HEAP_GRANULE_BYTES + 1 : 1;
    if (wanted > h->n)
        return false;
    uint32_t n = (uint32_t)wanted;
    pthread_mutex_lock(&h->lock);
    uint32_t at = find(h, n);
    if (at != NONE) {
        uint32_t has = h->g[at].head;
        detach(h, at);
        if (has > n)
            insert(h, at + n, has - n);
        h->g[at].head = n | TAKEN;
        h->g[at + n - 1].tail = n;
        *ret_offset = (uint64_t)at * WS_HEAP_GRANULE_BYTES;
    }
    pthread_mutex_unlock(&h->lock);
    return at != NONE;
}

/* Merging wipes the heads that are no block's first any more, so a head is zero wherever no block
 * starts. */
bool ws_heap_give(struct ws_heap *h, uint64_t offset)
{
    uint64_t wanted = offset / WS_HEAP_GRANULE_BYTES;
    if (offset % WS_HEAP_GRANULE_BYTES || wanted >= h->n)
        return false;
    uint32_t at = (uint32_t)wanted;
    pthread_mutex_lock(&h->lock);
    bool ok = h->g[at].head & TAKEN;
    if (ok) {
        uint32_t n = h->g[at].head & ~TAKEN;
        uint32_t behind = at + n;
        h->g[at].head = 0;
        if (!(h->g[behind].head & TAKEN)) {
            uint32_t more = h->g[behind].head;
            detach(h, behind);
            h->g[behind].head = 0;
            n += more;
        }
        if (at && !(h->g[at - h->g[at - 1].tail].head & TAKEN)) {
            uint32_t less = h->g[at - 1].tail;
            at -= less;
            detach(h, at);
            n += less;
        }
        insert(h, at, n);
    }
    pthread_mutex_unlock(&h->lock);
    return ok;
}

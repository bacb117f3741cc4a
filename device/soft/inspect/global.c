// SPDX-License-Identifier: Apache-2.0
/* Global memory: reads of what nobody has written.
 *
 * Memory that a device gives to a client is a region of which no byte is written. Copies, fills,
 * the values of variables, and what kernels store write bytes of it. A region has a bit for each
 * byte, by pages that are made when they are needed: a page that was never written, and one that
 * was written whole, need no bits. Memory that is in no region, such as pinned memory, counts as
 * written. Regions are found by the host's addresses, which all who share memory have in common.
 *
 * A read is told if nothing that it reads was written. Structures have gaps between their members
 * that are copied with them, so that a read which finds a part written is ordinary. */
#include "device/soft/inspect/private.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { PAGE_BYTES = 4096, WORDS = PAGE_BYTES / 64 };
struct written_page {
    uint64_t written[WORDS]; /* a bit for each byte */
    uint32_t n;              /* of them set */
};
static struct written_page whole; /* stands for pages of which all is written */

struct inspect_region {
    uint8_t *host;
    uint64_t bytes;
    struct written_page **pages; /* NULL: nothing of it is written */
};
static struct inspect_region *regions; /* by address; this and below: under the lock */
static size_t n_regions, cap_regions;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The first region that ends behind @host. Lock held. */
static size_t find(const uint8_t *host)
{
    size_t lo = 0, hi = n_regions;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (regions[mid].host + regions[mid].bytes <= host)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void region_free(struct inspect_region *r)
{
    for (uint64_t k = 0; k < (r->bytes + PAGE_BYTES - 1) / PAGE_BYTES; k++)
        if (r->pages[k] != &whole)
            free(r->pages[k]);
    free(r->pages);
}

void ws_inspect_memory_new(uint8_t *host, uint64_t bytes)
{
    struct inspect_region r = {.host = host, .bytes = bytes};
    r.pages = ws_alloc_array((bytes + PAGE_BYTES - 1) / PAGE_BYTES, sizeof(*r.pages));
    pthread_mutex_lock(&lock);
    if (r.pages && !ws_grow((void **)&regions, &cap_regions, n_regions + 1, sizeof(*regions))) {
        size_t at = find(host);
        memmove(regions + at + 1, regions + at, (n_regions - at) * sizeof(*regions));
        regions[at] = r;
        n_regions++;
    } else {
        free(r.pages); /* it counts as written */
    }
    pthread_mutex_unlock(&lock);
}

void ws_inspect_memory_free(uint8_t *host)
{
    pthread_mutex_lock(&lock);
    size_t at = find(host);
    if (at < n_regions && regions[at].host == host) {
        region_free(&regions[at]);
        memmove(regions + at, regions + at + 1, (n_regions - at - 1) * sizeof(*regions));
        n_regions--;
    }
    pthread_mutex_unlock(&lock);
}

/* The bits of the bytes [from, to) of a word. */
static uint64_t bits(uint64_t from, uint64_t to)
{
    uint64_t up = to - from == 64 ? UINT64_MAX : (UINT64_C(1) << (to - from)) - 1;
    return up << from;
}

/* Bytes [from, to) of a page. */
static void page_write(struct written_page **at, uint64_t from, uint64_t to)
{
    struct written_page *p = *at;
    if (p == &whole)
        return;
    if (!p && to - from < PAGE_BYTES)
        p = *at = ws_alloc(sizeof(*p));
    if (!p) { /* all of it is written, or there is no memory to know better */
        *at = &whole;
        return;
    }
    for (uint64_t b = from; b < to; b = WS_MIN((b | 63) + 1, to)) {
        uint64_t *w = &p->written[b / 64],
                 more = bits(b % 64, WS_MIN(to - (b & ~UINT64_C(63)), 64u));
        p->n += (uint32_t)__builtin_popcountll(more & ~*w);
        *w |= more;
    }
    if (p->n == PAGE_BYTES) {
        free(p);
        *at = &whole;
    }
}

/* How many of the bytes [from, to) of a page are not written. */
static uint64_t page_unwritten(const struct written_page *p, uint64_t from, uint64_t to)
{
    uint64_t n = 0;
    if (p == &whole || !p)
        return p ? 0 : to - from;
    for (uint64_t b = from; b < to; b = WS_MIN((b | 63) + 1, to)) {
        uint64_t asked = bits(b % 64, WS_MIN(to - (b & ~UINT64_C(63)), 64u));
        n += (uint64_t)__builtin_popcountll(asked & ~p->written[b / 64]);
    }
    return n;
}

/* Writes the bytes that are in regions, or looks at them. Return: how many of those that were
 * looked at are not written. */
static uint64_t walk(const uint8_t *host, uint64_t bytes, bool write)
{
    uint64_t unwritten = 0;
    const uint8_t *end = host + bytes;
    pthread_mutex_lock(&lock);
    for (size_t at = find(host); at < n_regions && regions[at].host < end; at++) {
        struct inspect_region *r = &regions[at];
        uint64_t from = host > r->host ? (uint64_t)(host - r->host) : 0;
        uint64_t to = WS_MIN((uint64_t)(end - r->host), r->bytes);
        while (from < to) {
            uint64_t page = from / PAGE_BYTES, base = page * PAGE_BYTES;
            uint64_t stop = WS_MIN(to, base + PAGE_BYTES);
            if (write)
                page_write(&r->pages[page], from - base, stop - base);
            else
                unwritten += page_unwritten(r->pages[page], from - base, stop - base);
            from = stop;
        }
    }
    pthread_mutex_unlock(&lock);
    return unwritten;
}

void ws_inspect_memory_written(const uint8_t *host, uint64_t bytes)
{
    (void)walk(host, bytes, true);
}

void ws_inspect_global(const struct ws_inspect_access *a)
{
    char did[48], headline[96];
    ws_inspect_race(a);
    if (!ws_inspect_has(a->who.c->b->g->inspect, WS_INSPECT_UNWRITTEN))
        return;
    if (a->does & WS_INSPECT_READS && walk(a->host, a->bytes, false) == a->bytes) {
        ws_inspect_access_words(&a->who, did, sizeof(did));
        snprintf(headline, sizeof(headline), "%s that nobody has written", did);
        ws_inspect_tell(&a->who, headline, NULL, "", a->at, "");
    }
    if (a->does & WS_INSPECT_WRITES)
        (void)walk(a->host, a->bytes, true);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* device/space_table.h - a table sorted by address, for device/space.c. Its entries lie in pages,
 * so that a change moves those of one page, and now and then a page, however many there are.
 * Threads: one writer, and readers that may see a change half done: they get an entry that is or
 * was in the table, or none, and have to find out by themselves whether it counts (space.c). What
 * readers may look at is not freed before the end of the table. */
#ifndef WS_DEVICE_SPACE_TABLE_H
#define WS_DEVICE_SPACE_TABLE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/macros.h"

struct ws_space_entry { /* of a page, or a page: then @va is its first one's */
    _Atomic uint64_t va;
    _Atomic(void *) to;
};

enum { WS_SPACE_PAGE_ENTRIES = 126 };
struct ws_space_page { /* never empty while it is in the table */
    _Atomic uint32_t n;
    struct ws_space_page *next; /* free */
    struct ws_space_entry v[WS_SPACE_PAGE_ENTRIES];
};

struct ws_space_pages {
    struct ws_space_pages *older; /* half as large */
    uint32_t cap;
    _Atomic uint32_t n;
    struct ws_space_entry v[];
};

struct ws_space_table {
    _Atomic(struct ws_space_pages *) pages;
    struct ws_space_page *free_pages;
};

WS_MUST_CHECK int ws_space_table_init(struct ws_space_table *t); /* 0 or -ENOMEM */
void ws_space_table_deinit(struct ws_space_table *t);

/* Index of the first of @n entries whose address is above @va. */
static inline uint32_t ws_space_upper_bound(const struct ws_space_entry *v, uint32_t n, uint64_t va)
{
    uint32_t lo = 0;
    while (n) {
        uint32_t half = n / 2;
        if (atomic_load_explicit(&v[lo + half].va, memory_order_acquire) <= va) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

/* The last entry at or below @va. NULL: there is none. Any thread. */
static inline void *ws_space_table_below(const struct ws_space_table *t, uint64_t va)
{
    const struct ws_space_pages *pages = atomic_load_explicit(&t->pages, memory_order_acquire);
    uint32_t n = atomic_load_explicit(&pages->n, memory_order_acquire),
             i = ws_space_upper_bound(pages->v, n, va);
    if (!i)
        return NULL;
    const struct ws_space_page *p = atomic_load_explicit(&pages->v[i - 1].to, memory_order_acquire);
    uint32_t k = ws_space_upper_bound(p->v, atomic_load_explicit(&p->n, memory_order_acquire), va);
    return k ? atomic_load_explicit(&p->v[k - 1].to, memory_order_acquire) : NULL;
}

/* The first entry above @va. NULL: there is none. Any thread. */
void *ws_space_table_above(const struct ws_space_table *t, uint64_t va);

/* The rest is for the writer alone. */
struct ws_space_place { /* in the table; at first all 0 */
    uint32_t page, entry;
};
/* The entry at @at, which then goes on. NULL: that was the last. */
void *ws_space_table_next(const struct ws_space_table *t, struct ws_space_place *at);

struct ws_space_room {            /* for one more entry */
    struct ws_space_pages *pages; /* readers may not see it yet */
    struct ws_space_page *page;   /* NULL: there is room in the page that is there */
    struct ws_space_place at;
};
/* Makes room for an entry at @va, at which there is none. Readers see nothing of it. Return: 0 or
 * -ENOMEM. */
WS_MUST_CHECK int ws_space_table_room(struct ws_space_table *t, uint64_t va,
                                      struct ws_space_room *ret);
void ws_space_table_insert(struct ws_space_table *t, const struct ws_space_room *room, uint64_t va,
                           void *to);
/* @va: of an entry. */
void ws_space_table_remove(struct ws_space_table *t, uint64_t va);

#endif

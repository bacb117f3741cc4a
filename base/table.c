// SPDX-License-Identifier: Apache-2.0
#include "base/table.h"

#include <limits.h>
#include <stdlib.h>

static void bucket_remove(UT_hash_bucket *b, UT_hash_handle *h)
{
    if (h->hh_prev)
        h->hh_prev->hh_next = h->hh_next;
    else
        b->hh_head = h->hh_next;
    if (h->hh_next)
        h->hh_next->hh_prev = h->hh_prev;
    b->count--;
}

static void bucket_add(UT_hash_bucket *b, UT_hash_handle *h)
{
    h->hh_prev = NULL;
    h->hh_next = b->hh_head;
    if (b->hh_head)
        b->hh_head->hh_prev = h;
    b->hh_head = h;
    b->count++;
}

/* The array has room for a power of two of buckets, as it has when uthash makes it. */
void ws_table_grow(UT_hash_table *t)
{
    unsigned n = t->num_buckets, power = 1u << (31 - __builtin_clz(n));
    if (n == power) {
        UT_hash_bucket *v =
            n > UINT_MAX / 2 ? NULL : realloc(t->buckets, 2 * (size_t)n * sizeof(*v));
        if (!v)
            return;
        t->buckets = v;
        t->log2_num_buckets = (unsigned)__builtin_ctz(2 * n);
    }
    UT_hash_bucket *from = &t->buckets[n - power], *to = &t->buckets[n];
    *to = (UT_hash_bucket){0};
    t->num_buckets = n + 1;
    for (UT_hash_handle *h = from->hh_head, *next; h; h = next) {
        next = h->hh_next;
        if (ws_table_bucket(h->hashv, n + 1) != n)
            continue;
        bucket_remove(from, h);
        bucket_add(to, h);
    }
}

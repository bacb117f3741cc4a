/* SPDX-License-Identifier: Apache-2.0 */
/* base/table.h - uthash, whose tables grow by one bucket at a time. Everybody includes this instead
 * of <uthash.h>: files that share a table must agree on where its buckets are.
 *
 * uthash itself doubles a table at once, which takes milliseconds when it has 100,000 entries, and
 * its hash is known to everybody, so that a client can choose keys which are all in one bucket.
 * Here an insertion splits one bucket at most, in order, whichever was inserted into (Litwin,
 * "Linear hashing: a new tool for file and table addressing", 1980), and the hash is base/hash.h's.
 * The array of buckets is enlarged with realloc(), which moves pages and does not copy them where
 * the array is as large as a mapping of its own (mallopt(3), M_MMAP_THRESHOLD). Threads: as uthash,
 * none. */
#ifndef WS_BASE_TABLE_H
#define WS_BASE_TABLE_H

#include <string.h>
#include <uthash.h>

#include "base/hash.h"

/* Entries for each bucket, on average, above which a table grows. */
enum { WS_TABLE_LOAD = 2 };

/* Adds a bucket, and moves what belongs into it. Without memory the table stays as it is. */
void ws_table_grow(UT_hash_table *t);

/* The bucket, of @n >= 2, for hash value @h: the low bits of @h that number up to twice as many
 * buckets as the largest power of two below @n or, if there is no such bucket yet, one bit less. */
static inline unsigned ws_table_bucket(unsigned h, unsigned n)
{
    unsigned mask = ~0u >> __builtin_clz(n - 1), b = h & mask;
    return b < n ? b : b & (mask >> 1);
}

static inline unsigned ws_table_hash(const void *key, size_t bytes)
{
    uint64_t word;
    if (bytes != sizeof(word))
        return (unsigned)ws_hash(key, bytes);
    memcpy(&word, key, sizeof(word));
    return ws_hash_word(word);
}

#undef HASH_FUNCTION
#define HASH_FUNCTION(key, bytes, value) ((value) = ws_table_hash((key), (bytes)))
#undef HASH_TO_BKT
#define HASH_TO_BKT(value, n_buckets, bucket) ((bucket) = ws_table_bucket((value), (n_buckets)))
/* uthash asks this after each insertion into a bucket that has at least so many entries. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 1U
#undef HASH_EXPAND_BUCKETS
#define HASH_EXPAND_BUCKETS(hh, table, no_memory)                                                  \
    do {                                                                                           \
        if ((table)->num_items / WS_TABLE_LOAD > (table)->num_buckets)                             \
            ws_table_grow(table);                                                                  \
    } while (0)

#endif

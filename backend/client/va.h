// SPDX-License-Identifier: Apache-2.0
/* backend/client/va.h - who uses which addresses. A pool deals out a range in granules; each client
 * allocates inside its own granules and gives them back when it ends. No memory is touched here,
 * only numbers. Threads: daemon loop only. */
#ifndef WS_BACKEND_CLIENT_VA_H
#define WS_BACKEND_CLIENT_VA_H

#include <stdbool.h>
#include "backend/accounts/account.h"
#include "base/macros.h"

/* Of device addresses, and of addresses of pinned host memory, of which a client needs less. */
#define WS_VA_GRANULE_BYTES      (UINT64_C(16) << 30)
#define WS_HOST_VA_GRANULE_BYTES (UINT64_C(1) << 30)
#define WS_VA_GAP_BYTES                                                                            \
    UINT64_C(65536) /* never mapped, between any two allocations: an overrun is seen */
/* A client with more granules than that gets no more of them for addresses that it asks for: each
 * may take a granule that it then hardly uses. */
#define WS_VA_FIXED_MAX_BYTES (UINT64_C(4) << 40)
enum { WS_VA_ALIGN_BYTES = 512 };
/* Allocations from here on begin where NVIDIA's driver lets them begin, at its large pages: some
 * programs rely on that. */
enum { WS_VA_BIG_BYTES = 1 << 20, WS_VA_BIG_ALIGN_BYTES = 2 << 20 };

struct ws_client;

struct ws_va_pool {
    uint64_t first, granule;
    uint8_t *taken; /* [n] */
    uint32_t n, hint;
    enum ws_resource resource; /* that granules are charged as */
};
/* Deals out [@first, @last) in granules of @granule bytes. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_va_pool_init(struct ws_va_pool *p, uint64_t first, uint64_t last,
                                  uint64_t granule, enum ws_resource resource);
void ws_va_pool_deinit(struct ws_va_pool *p);

struct ws_va_extent {
    uint64_t va, bytes;
};
struct ws_va { /* of one client */
    struct ws_va_pool *pool;
    struct ws_client *client; /* whose user is charged with the granules; NULL: nobody */
    /* sorted by address, never adjacent unless in different granule runs */
    struct ws_va_extent *free;
    size_t n_free, cap_free, hint;
    struct ws_va_extent *runs; /* of granules */
    size_t n_runs, cap_runs;
};
void ws_va_init(struct ws_va *v, struct ws_va_pool *pool, struct ws_client *c);
void ws_va_deinit(struct ws_va *v);
/* @bytes: rounded up to WS_VA_ALIGN_BYTES. Addresses just freed are given out again as late as
 *   possible.
 * Return: 0, -ENOMEM (also when the range is used up, or the user's share of it), -EINVAL (0 or
 *   absurd). */
WS_MUST_CHECK int ws_va_alloc(struct ws_va *v, uint64_t bytes, uint64_t *ret_va);
/* The same, at a multiple of @align, a power of two not below WS_VA_ALIGN_BYTES. */
WS_MUST_CHECK int ws_va_alloc_at(struct ws_va *v, uint64_t bytes, uint64_t align, uint64_t *ret_va);
/* Exactly [@va, @va + @bytes), with a gap behind it where the granules that it lies in have room
 * for one. What it takes comes from granules of this client or from free ones.
 * @ret_taken: the bytes that ws_va_give() wants back
 * Return: 0, -ENOMEM (also when somebody has one of the addresses), -EINVAL (not aligned, absurd,
 * or not in the range). */
WS_MUST_CHECK int ws_va_alloc_fixed(struct ws_va *v, uint64_t va, uint64_t bytes,
                                    uint64_t *ret_taken);
/* Whether one of [@va, @va + @bytes) is in a granule of @v. */
bool ws_va_has(const struct ws_va *v, uint64_t va, uint64_t bytes);
/* Takes as many granules once more as @v has, in the same runs: for each address of @v there is
 * one in @ret. @ret: fresh; on an error nothing of it is left. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_va_mirror(const struct ws_va *v, struct ws_va *ret);
/* @va's address in @mirror; 0: it has come to @v since. */
uint64_t ws_va_mirrored(const struct ws_va *v, const struct ws_va *mirror, uint64_t va);
/* @va, @bytes: as allocated. Never fails: if the list of free extents can't grow, the addresses
 *   stay unused until the end. */
void ws_va_free(struct ws_va *v, uint64_t va, uint64_t bytes);
/* The same for what ws_va_alloc_fixed() took: no gap is added. */
void ws_va_give(struct ws_va *v, uint64_t va, uint64_t taken);

#endif

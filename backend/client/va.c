// SPDX-License-Identifier: Apache-2.0
/* Next fit over a sorted list of free extents. Each allocation takes its bytes and a gap behind
 * them; the first extent of a run of granules starts one gap in. Next fit (not first fit) so
 * that a stale pointer meets an unmapped address for long. */
#include "backend/client/va.h"

#include <string.h>

#include "backend/accounts/account.h"
#include "backend/client/user.h"
#include "base/alloc.h"
#include "base/error.h"

int ws_va_pool_init(struct ws_va_pool *p, uint64_t first, uint64_t last, uint64_t granule,
                    enum ws_resource resource)
{
    *p = (struct ws_va_pool){.first = first,
                             .granule = granule,
                             .n = (uint32_t)((last - first) / granule),
                             .resource = resource};
    p->taken = ws_alloc_array(p->n, 1);
    return p->taken ? 0 : ws_raise(-ENOMEM);
}

void ws_va_pool_deinit(struct ws_va_pool *p)
{
    free(p->taken);
    *p = (struct ws_va_pool){0};
}

/* First of @want free granules in a row in [from, to), or @to. */
static uint32_t pool_search(const struct ws_va_pool *p, uint32_t from, uint32_t to, uint32_t want)
{
    uint32_t run = 0;
    for (uint32_t i = from; i < to; i++) {
        run = p->taken[i] ? 0 : run + 1;
        if (run == want)
            return i + 1 - want;
    }
    return to;
}

/* Takes free granules on the client's account. Return: false: it may not have more. */
static bool pool_mark(const struct ws_va *v, uint32_t at, uint32_t want)
{
    struct ws_va_pool *p = v->pool;
    if (v->client && ws_client_charge(v->client, p->resource, want * p->granule))
        return false;
    memset(p->taken + at, 1, want);
    return true;
}

static int pool_take(const struct ws_va *v, uint32_t want, struct ws_va_extent *ret)
{
    struct ws_va_pool *p = v->pool;
    uint32_t at = pool_search(p, p->hint, p->n, want);
    if (at == p->n)
        at = pool_search(p, 0, p->n, want);
    if (at == p->n || !pool_mark(v, at, want))
        return ws_raise(-ENOMEM);
    p->hint = at + want;
    *ret = (struct ws_va_extent){p->first + at * p->granule, want * p->granule};
    return 0;
}

static void pool_give(const struct ws_va *v, const struct ws_va_extent *e)
{
    struct ws_va_pool *p = v->pool;
    if (v->client)
        ws_client_release(v->client, p->resource, e->bytes);
    memset(p->taken + (e->va - p->first) / p->granule, 0, e->bytes / p->granule);
}

void ws_va_init(struct ws_va *v, struct ws_va_pool *pool, struct ws_client *c)
{
    *v = (struct ws_va){.pool = pool, .client = c};
}

void ws_va_deinit(struct ws_va *v)
{
    for (size_t i = 0; i < v->n_runs; i++)
        pool_give(v, &v->runs[i]);
    free(v->free);
    free(v->runs);
    ws_va_init(v, v->pool, v->client);
}

/* Index of the first free extent at or above @va. */
static size_t lower_bound(const struct ws_va *v, uint64_t va)
{
    size_t lo = 0, n = v->n_free;
    while (n) {
        size_t half = n / 2;
        if (v->free[lo + half].va < va) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

static bool in_one_run(const struct ws_va *v, uint64_t a, uint64_t b)
{
    for (size_t i = 0; i < v->n_runs; i++)
        if (a >= v->runs[i].va && a - v->runs[i].va < v->runs[i].bytes)
            return b - v->runs[i].va < v->runs[i].bytes;
    return false;
}

/* Puts an extent back, joined with its neighbours of the same run. */
static int insert(struct ws_va *v, uint64_t va, uint64_t bytes)
{
    size_t i = lower_bound(v, va);
    bool joins_before =
        i && v->free[i - 1].va + v->free[i - 1].bytes == va && in_one_run(v, v->free[i - 1].va, va);
    bool joins_after =
        i < v->n_free && va + bytes == v->free[i].va && in_one_run(v, va, v->free[i].va);
    if (joins_before && joins_after) {
        v->free[i - 1].bytes += bytes + v->free[i].bytes;
        memmove(v->free + i, v->free + i + 1, (v->n_free - i - 1) * sizeof(*v->free));
        v->n_free--;
    } else if (joins_before) {
        v->free[i - 1].bytes += bytes;
    } else if (joins_after) {
        v->free[i].va = va;
        v->free[i].bytes += bytes;
    } else {
        int r = ws_grow((void **)&v->free, &v->cap_free, v->n_free + 1, sizeof(*v->free));
        if (r)
            return ws_forward(r);
        memmove(v->free + i + 1, v->free + i, (v->n_free - i) * sizeof(*v->free));
        v->free[i] = (struct ws_va_extent){va, bytes};
        v->n_free++;
    }
    return 0;
}

static int grow(struct ws_va *v, uint64_t need, uint64_t align)
{
    struct ws_va_extent run;
    uint64_t granule = v->pool->granule,
             want = (need + align + WS_VA_GAP_BYTES + granule - 1) / granule;
    int r = ws_grow((void **)&v->runs, &v->cap_runs, v->n_runs + 1, sizeof(*v->runs));
    if (!r)
        r = want > v->pool->n ? ws_raise(-ENOMEM) : pool_take(v, (uint32_t)want, &run);
    if (r)
        return ws_forward(r);
    v->runs[v->n_runs++] = run;
    r = insert(v, run.va + WS_VA_GAP_BYTES, run.bytes - WS_VA_GAP_BYTES);
    if (r) {
        v->n_runs--;
        pool_give(v, &run);
        return ws_forward(r);
    }
    v->hint = lower_bound(v, run.va);
    return 0;
}

/* Cuts [skip, skip + need) out of extent @i. What is before stays an extent, and so does what is
 * behind. */
static bool cut(struct ws_va *v, size_t i, uint64_t skip, uint64_t need)
{
    if (skip && ws_grow((void **)&v->free, &v->cap_free, v->n_free + 1, sizeof(*v->free)))
        return false;
    struct ws_va_extent *e = &v->free[i];
    struct ws_va_extent behind = {e->va + skip + need, e->bytes - skip - need};
    e->bytes = skip;
    if (!skip && behind.bytes) {
        *e = behind;
    } else if (skip && behind.bytes) {
        memmove(e + 2, e + 1, (v->n_free - i - 1) * sizeof(*e));
        e[1] = behind;
        v->n_free++;
    } else if (!skip) {
        memmove(e, e + 1, (v->n_free - i - 1) * sizeof(*e));
        v->n_free--;
    }
    v->hint = skip ? i + 1 : i;
    return true;
}

static bool take(struct ws_va *v, uint64_t need, uint64_t align, uint64_t *ret_va)
{
    for (size_t k = 0; k < v->n_free; k++) {
        size_t i = (v->hint + k) % v->n_free;
        const struct ws_va_extent *e = &v->free[i];
        uint64_t va = WS_ALIGN_UP(e->va, align), skip = va - e->va;
        if (e->bytes < skip || e->bytes - skip < need)
            continue;
        *ret_va = va;
        return cut(v, i, skip, need);
    }
    return false;
}

int ws_va_alloc(struct ws_va *v, uint64_t bytes, uint64_t *ret_va)
{
    return ws_va_alloc_at(
        v, bytes, bytes >= WS_VA_BIG_BYTES ? WS_VA_BIG_ALIGN_BYTES : WS_VA_ALIGN_BYTES, ret_va);
}

int ws_va_alloc_at(struct ws_va *v, uint64_t bytes, uint64_t align, uint64_t *ret_va)
{
    if (!bytes || bytes > v->pool->n * v->pool->granule)
        return -EINVAL;
    uint64_t need = WS_ALIGN_UP(bytes, WS_VA_ALIGN_BYTES) + WS_VA_GAP_BYTES;
    if (take(v, need, align, ret_va))
        return 0;
    int r = grow(v, need, align);
    if (r)
        return ws_forward(r);
    return take(v, need, align, ret_va) ? 0 : ws_raise(-ENOMEM);
}

static uint64_t run_bytes(const struct ws_va *v)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < v->n_runs; i++)
        bytes += v->runs[i].bytes;
    return bytes;
}

/* Takes granules [@first, @first + @n) of the pool, all of which are free. */
static int grow_at(struct ws_va *v, uint32_t first, uint32_t n)
{
    struct ws_va_pool *p = v->pool;
    struct ws_va_extent run = {p->first + first * p->granule, n * p->granule};
    int r = ws_grow((void **)&v->runs, &v->cap_runs, v->n_runs + 1, sizeof(*v->runs));
    if (!r && !pool_mark(v, first, n))
        r = -ENOMEM;
    if (r)
        return ws_forward(r);
    r = insert(v, run.va, run.bytes);
    if (r) {
        pool_give(v, &run);
        return ws_forward(r);
    }
    v->runs[v->n_runs++] = run;
    return 0;
}

int ws_va_alloc_fixed(struct ws_va *v, uint64_t va, uint64_t bytes, uint64_t *ret_taken)
{
    const struct ws_va_pool *p = v->pool;
    uint64_t end = p->first + p->n * p->granule;
    if (!bytes || (va | bytes) % WS_VA_ALIGN_BYTES || va < p->first || va >= end ||
        bytes > end - va)
        return -EINVAL;
    uint32_t first = (uint32_t)((va - p->first) / p->granule);
    uint32_t last = (uint32_t)((va + bytes - 1 - p->first) / p->granule);
    uint32_t n = last - first + 1;
    if (pool_search(p, first, last + 1, n) == first &&
        run_bytes(v) + n * p->granule <= WS_VA_FIXED_MAX_BYTES) {
        int r = grow_at(v, first, n);
        if (r)
            return ws_forward(r);
    }
    size_t i = lower_bound(v, va + 1); /* the extent before is the only one that can hold it */
    if (!i || va - v->free[i - 1].va > v->free[i - 1].bytes)
        return -ENOMEM;
    uint64_t skip = va - v->free[i - 1].va, room = v->free[i - 1].bytes - skip;
    bool to_the_end = room == bytes && va + bytes == p->first + (last + 1) * p->granule;
    *ret_taken = to_the_end ? bytes : bytes + WS_VA_GAP_BYTES;
    return room >= *ret_taken && cut(v, i - 1, skip, *ret_taken) ? 0 : -ENOMEM;
}

bool ws_va_has(const struct ws_va *v, uint64_t va, uint64_t bytes)
{
    for (size_t i = 0; i < v->n_runs; i++)
        if (va < v->runs[i].va ? v->runs[i].va - va < bytes : va - v->runs[i].va < v->runs[i].bytes)
            return true;
    return false;
}

int ws_va_mirror(const struct ws_va *v, struct ws_va *ret)
{
    ws_va_init(ret, v->pool, v->client);
    int r = ws_grow((void **)&ret->runs, &ret->cap_runs, v->n_runs, sizeof(*ret->runs));
    for (size_t i = 0; !r && i < v->n_runs; i++) {
        r = pool_take(v, (uint32_t)(v->runs[i].bytes / v->pool->granule), &ret->runs[i]);
        ret->n_runs += !r;
    }
    if (r)
        ws_va_deinit(ret);
    return r ? ws_forward(r) : 0;
}

uint64_t ws_va_mirrored(const struct ws_va *v, const struct ws_va *mirror, uint64_t va)
{
    for (size_t i = 0; i < mirror->n_runs; i++)
        if (va - v->runs[i].va < v->runs[i].bytes)
            return mirror->runs[i].va + (va - v->runs[i].va);
    return 0;
}

void ws_va_free(struct ws_va *v, uint64_t va, uint64_t bytes)
{
    ws_va_give(v, va, WS_ALIGN_UP(bytes, WS_VA_ALIGN_BYTES) + WS_VA_GAP_BYTES);
}

void ws_va_give(struct ws_va *v, uint64_t va, uint64_t taken)
{
    int r = insert(v, va, taken);
    (void)r; /* as the contract says */
}

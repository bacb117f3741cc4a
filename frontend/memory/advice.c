// SPDX-License-Identifier: Apache-2.0
/* Advice is kept as ranges, sorted by address, whose bytes all have the same advice. A byte that no
 * range covers was never advised about. A call divides ranges at the ends of its own range, and
 * fills the gaps inside it. */
#include "frontend/memory/advice.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/errors.h"
#include "frontend/memory/hostmem.h"

enum { /* advice */
       SET_READ_MOSTLY = 1,
       UNSET_READ_MOSTLY,
       SET_PREFERRED_LOCATION,
       UNSET_PREFERRED_LOCATION,
       SET_ACCESSED_BY,
       UNSET_ACCESSED_BY
};
enum { /* attributes */
       READ_MOSTLY = 1,
       PREFERRED_LOCATION,
       ACCESSED_BY,
       LAST_PREFETCH,
       PREFERRED_TYPE,
       PREFERRED_ID,
       PREFETCH_TYPE,
       PREFETCH_ID
};
enum { CPU_DEVICE_ID = -1, NO_DEVICE_ID = -2 };
struct advised_range {
    uint64_t from, to;
    bool read_mostly;
    struct cuda_mem_location preferred, prefetched; /* type NONE: never */
    uint64_t accessed_by;                           /* devices; bit 63: the host */
};
#define HOST_BIT (UINT64_C(1) << 63)
static struct advised_range *runs;
static size_t n_runs, cap_runs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Index of the first run that ends above @address. */
static size_t first_above(uint64_t address)
{
    size_t lo = 0, n = n_runs;
    while (n) {
        size_t half = n / 2;
        if (runs[lo + half].to <= address) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

static bool insert(size_t i, const struct advised_range *r)
{
    if (ws_grow((void **)&runs, &cap_runs, n_runs + 1, sizeof(*runs)))
        return false;
    memmove(runs + i + 1, runs + i, (n_runs - i) * sizeof(*runs));
    runs[i] = *r;
    n_runs++;
    return true;
}

static bool cut(uint64_t at)
{
    size_t i = first_above(at);
    if (i == n_runs || runs[i].from >= at)
        return true;
    struct advised_range tail = runs[i];
    tail.from = at;
    if (!insert(i + 1, &tail))
        return false;
    runs[i].to = at;
    return true;
}

/* Makes runs for all of [from, to), with ends there. Return: index of the first; n_runs: no
 * memory. */
static size_t cover(uint64_t from, uint64_t to)
{
    if (!cut(from) || !cut(to))
        return n_runs;
    for (size_t i = first_above(from); from < to; i++) {
        uint64_t end = i < n_runs ? WS_MIN(runs[i].from, to) : to;
        struct advised_range fresh = {.from = from, .to = end};
        if (from < end && !insert(i, &fresh))
            return n_runs;
        from = runs[i].to;
    }
    return 0;
}

static int check_range(uint64_t address, uint64_t bytes)
{
    struct ws_hostmem m;
    ws_hostmem_find(address, &m);
    return m.kind == WS_HOSTMEM_MANAGED && bytes && bytes <= m.bytes - (address - m.base)
               ? CUDA_OK
               : CUDA_INVALID_VALUE;
}

static int check_location(const struct cuda_mem_location *l, bool device_only)
{
    switch (l->type) {
    case WS_CUDA_LOCATION_DEVICE:
        return ws_session_device(l->id) ? CUDA_OK : CUDA_INVALID_DEVICE;
    case WS_CUDA_LOCATION_HOST:
        return CUDA_OK;
    case WS_CUDA_LOCATION_HOST_NUMA:
    case WS_CUDA_LOCATION_HOST_NUMA_CURRENT:
        return device_only ? CUDA_INVALID_VALUE : CUDA_OK;
    default:
        return CUDA_INVALID_VALUE;
    }
}

static void advise(struct advised_range *r, int advice, const struct cuda_mem_location *l)
{
    uint64_t who = l->type == WS_CUDA_LOCATION_DEVICE ? UINT64_C(1) << l->id : HOST_BIT;
    switch (advice) {
    case SET_READ_MOSTLY:
    case UNSET_READ_MOSTLY:
        r->read_mostly = advice == SET_READ_MOSTLY;
        break;
    case SET_PREFERRED_LOCATION:
        r->preferred = *l;
        break;
    case UNSET_PREFERRED_LOCATION:
        r->preferred.type = WS_CUDA_LOCATION_NONE;
        break;
    case SET_ACCESSED_BY:
        r->accessed_by |= who;
        break;
    default:
        r->accessed_by &= ~who;
    }
}

int ws_advice_set(uint64_t address, uint64_t bytes, int advice, const struct cuda_mem_location *l)
{
    bool placed = advice == SET_PREFERRED_LOCATION || advice >= SET_ACCESSED_BY;
    if (advice < SET_READ_MOSTLY || advice > UNSET_ACCESSED_BY)
        return CUDA_INVALID_VALUE;
    int code = check_range(address, bytes);
    if (!code && placed)
        code = check_location(l, advice >= SET_ACCESSED_BY);
    if (code)
        return code;
    pthread_mutex_lock(&lock);
    if (cover(address, address + bytes))
        code = CUDA_OUT_OF_MEMORY;
    for (size_t i = first_above(address); !code && i < n_runs && runs[i].from < address + bytes;
         i++)
        advise(&runs[i], advice, l);
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_advice_prefetch(uint64_t address, uint64_t bytes, const struct cuda_mem_location *l)
{
    int code = check_range(address, bytes);
    if (!code)
        code = check_location(l, false);
    if (code)
        return code;
    pthread_mutex_lock(&lock);
    if (cover(address, address + bytes))
        code = CUDA_OUT_OF_MEMORY;
    for (size_t i = first_above(address); !code && i < n_runs && runs[i].from < address + bytes;
         i++)
        runs[i].prefetched = *l;
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_advice_discard(uint64_t address, uint64_t bytes)
{
    return check_range(address, bytes);
}

void ws_advice_forget(uint64_t address, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    size_t i = first_above(address), j = i;
    while (j < n_runs && runs[j].from < address + bytes) /* runs never reach beyond their memory */
        j++;
    if (j > i)
        memmove(runs + i, runs + j, (n_runs - j) * sizeof(*runs));
    n_runs -= j - i;
    pthread_mutex_unlock(&lock);
}

static bool same_place(const struct cuda_mem_location *a, const struct cuda_mem_location *b)
{
    return a->type == b->type && (a->type != WS_CUDA_LOCATION_DEVICE || a->id == b->id);
}

/* What the whole range has in common. Lock held. */
static struct advised_range common(uint64_t from, uint64_t to)
{
    struct advised_range all = {.from = from, .to = to};
    bool any = false;
    for (size_t i = first_above(from); from < to; i++) {
        struct advised_range none = {.from = from, .to = to};
        bool gap = i == n_runs || runs[i].from > from;
        const struct advised_range *r = gap ? &none : &runs[i];
        if (!any)
            all = *r;
        any = true;
        all.read_mostly &= r->read_mostly;
        all.accessed_by &= r->accessed_by;
        if (!same_place(&all.preferred, &r->preferred))
            all.preferred.type = WS_CUDA_LOCATION_NONE;
        if (!same_place(&all.prefetched, &r->prefetched))
            all.prefetched.type = WS_CUDA_LOCATION_NONE;
        if (gap && i < n_runs && runs[i].from < to) {
            from = runs[i].from;
            i--;
        } else {
            from = r->to;
        }
    }
    return all;
}

static int device_id(const struct cuda_mem_location *l)
{
    return l->type == WS_CUDA_LOCATION_NONE     ? NO_DEVICE_ID
           : l->type == WS_CUDA_LOCATION_DEVICE ? l->id
                                                : CPU_DEVICE_ID;
}

static void put_accessed_by(int *ret, size_t n, uint64_t who)
{
    size_t k = 0;
    for (int d = 0; d < WS_MAX_DEVICES && k < n; d++)
        if (who >> d & 1)
            ret[k++] = d;
    if (who & HOST_BIT && k < n)
        ret[k++] = CPU_DEVICE_ID;
    while (k < n)
        ret[k++] = NO_DEVICE_ID;
}

int ws_advice_get(void *ret, size_t ret_bytes, int attribute, uint64_t address, uint64_t bytes)
{
    int *value = ret;
    bool list = attribute == ACCESSED_BY;
    if (!ret || attribute < READ_MOSTLY || attribute > PREFETCH_ID ||
        (list ? !ret_bytes || ret_bytes % sizeof(*value) : ret_bytes != sizeof(*value)))
        return CUDA_INVALID_VALUE;
    int code = check_range(address, bytes);
    if (code)
        return code;
    pthread_mutex_lock(&lock);
    struct advised_range r = common(address, address + bytes);
    pthread_mutex_unlock(&lock);
    switch (attribute) {
    case READ_MOSTLY:
        *value = r.read_mostly;
        break;
    case PREFERRED_LOCATION:
        *value = device_id(&r.preferred);
        break;
    case ACCESSED_BY:
        put_accessed_by(value, ret_bytes / sizeof(*value), r.accessed_by);
        break;
    case LAST_PREFETCH:
        *value = device_id(&r.prefetched);
        break;
    case PREFERRED_TYPE:
        *value = r.preferred.type;
        break;
    case PREFERRED_ID:
        *value = r.preferred.id;
        break;
    case PREFETCH_TYPE:
        *value = r.prefetched.type;
        break;
    default:
        *value = r.prefetched.id;
    }
    return CUDA_OK;
}

int ws_advice_batch(const struct ws_advice_batch *b, uint64_t stream)
{
    bool legacy = stream < WS_STREAM_FIRST;
    if (ws_session_stream_info(stream, NULL, NULL, NULL))
        return CUDA_INVALID_HANDLE;
    if (legacy || !b->n || !b->addresses || !b->sizes || b->n_locations > b->n ||
        (!b->discard && !b->n_locations) || (b->n_locations && (!b->l || !b->first || b->first[0])))
        return CUDA_INVALID_VALUE;
    for (size_t k = 1; k < b->n_locations; k++)
        if (b->first[k] <= b->first[k - 1] || b->first[k] >= b->n)
            return CUDA_INVALID_VALUE;
    int code = CUDA_OK;
    for (size_t i = 0, k = 0; !code && i < b->n; i++) {
        while (k + 1 < b->n_locations && b->first[k + 1] <= i)
            k++;
        code = b->n_locations ? ws_advice_prefetch(b->addresses[i], b->sizes[i], &b->l[k])
                              : ws_advice_discard(b->addresses[i], b->sizes[i]);
    }
    return code;
}

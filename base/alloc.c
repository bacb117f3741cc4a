// SPDX-License-Identifier: Apache-2.0
#include "base/alloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/budget.h"

static _Atomic uint64_t fail_after;

void ws_alloc_fail_after(uint64_t n)
{
    atomic_store(&fail_after, n);
}

static int must_fail(void)
{
    return WS_UNLIKELY(atomic_load_explicit(&fail_after, memory_order_relaxed)) &&
           atomic_fetch_sub(&fail_after, 1) == 1;
}

void *ws_alloc(size_t size)
{
    return ws_alloc_array(1, size);
}

void *ws_alloc_array(size_t n, size_t size)
{
    size_t bytes;
    if (must_fail() || __builtin_mul_overflow(n, size, &bytes) || !ws_budget_count(bytes / 64))
        return NULL;
    return calloc(n ? n : 1, size ? size : 1);
}

/* What is new is as realloc() has it. */
static int grow(void **p, size_t *n_cap, size_t cap, size_t size)
{
    size_t bytes;
    if (must_fail() || __builtin_mul_overflow(cap, size, &bytes) ||
        !ws_budget_charge(bytes - *n_cap * size))
        return -ENOMEM;
    void *q = realloc(*p, bytes);
    if (!q) {
        ws_budget_give_back(bytes - *n_cap * size);
        return -ENOMEM;
    }
    *p = q;
    *n_cap = cap;
    return 0;
}

int ws_grow(void **p, size_t *n_cap, size_t want, size_t size)
{
    size_t had = *n_cap, cap = had ? had : 8;
    if (want <= had)
        return 0;
    while (cap < want)
        if (__builtin_mul_overflow(cap, (size_t)2, &cap))
            return -ENOMEM;
    if (grow(p, n_cap, cap, size))
        return -ENOMEM;
    memset((char *)*p + had * size, 0, (cap - had) * size);
    return 0;
}

int ws_grow_bytes(uint8_t **p, size_t *n_cap, size_t want)
{
    enum { DOUBLED_MAX = 1 << 20 };
    void *v = *p;
    if (want <= *n_cap)
        return 0;
    int r = grow(&v, n_cap, WS_MAX(want, WS_MIN(*n_cap * 2, (size_t)DOUBLED_MAX)), 1);
    *p = v;
    return r;
}

char *ws_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *t = ws_alloc(n);
    return t ? memcpy(t, s, n) : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts n = 2^size 32-bit numbers. */
#ifndef WS_TESTS_CUDA_SORT_H
#define WS_TESTS_CUDA_SORT_H
#include "work.h"
#define WORK "sort"
enum { SORT_SIZE = 18, SORT_MAX = 26, SORT_BLOCK = 256, SORT_TILE = 2 * SORT_BLOCK };

static inline void sort_fill(uint32_t *v, long n)
{
    for (long i = 0; i < n; i++)
        v[i] = (uint32_t)work_random((uint64_t)i / 3 * 7); /* with equal ones */
}

static int sort_compare(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return (x > y) - (x < y);
}

/* Equal to the CPU's sorted copy: sorted, and a permutation of the input. */
static inline int sort_check(const uint32_t *v, const uint32_t *want, long n)
{
    for (long i = 0; i < n; i++)
        if (v[i] != want[i])
            return work_fail(WORK, "v[%ld] is %u, not %u", i, v[i], want[i]);
    return 0;
}
#endif

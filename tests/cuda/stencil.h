/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a five-point stencil on a grid of size × size 32-bit whole numbers (modulo 2^32); the
 * border is kept. */
#ifndef WS_TESTS_CUDA_STENCIL_H
#define WS_TESTS_CUDA_STENCIL_H
#include "work.h"
#define WORK "stencil"
enum { STENCIL_SIZE = 1024, STENCIL_MAX = 8192, STENCIL_X = 32, STENCIL_Y = 8, STENCIL_STEPS = 20 };

static inline void stencil_fill(uint32_t *v, long n)
{
    for (long i = 0; i < n * n; i++)
        v[i] = (uint32_t)work_random((uint64_t)i);
}

/* The answer is left in @a or @b; returns which. */
static inline uint32_t *stencil_cpu(uint32_t *a, uint32_t *b, long n)
{
    for (int step = 0; step < STENCIL_STEPS; step++) {
        memcpy(b, a, sizeof(*a) * (size_t)(n * n));
        for (long y = 1; y < n - 1; y++)
            for (long x = 1; x < n - 1; x++) {
                const uint32_t *p = a + y * n + x;
                b[y * n + x] = 3 * p[0] + p[1] + p[-1] + (p[n] ^ p[-n]);
            }
        uint32_t *t = a;
        a = b;
        b = t;
    }
    return a;
}

static inline int stencil_check(const uint32_t *v, const uint32_t *want, long n)
{
    for (long i = 0; i < n * n; i++)
        if (v[i] != want[i])
            return work_fail(WORK, "v[%ld][%ld] is %u, not %u", i / n, i % n, v[i], want[i]);
    return 0;
}
#endif

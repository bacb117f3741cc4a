/* SPDX-License-Identifier: Apache-2.0 */
/* Pi from counting random points in the unit circle; size × 2^20 points. Only whole numbers are
 * used, so GPU and CPU agree exactly. */
#ifndef WS_TESTS_CUDA_MONTECARLO_H
#define WS_TESTS_CUDA_MONTECARLO_H
#include <math.h>
#include "work.h"
#define WORK "montecarlo"
enum {
    MC_SIZE_MI = 64,
    MC_MAX_MI = 4096,
    MC_BLOCK = 256,
    MC_GRID = 128,
    MC_THREADS = MC_BLOCK * MC_GRID
};

#ifdef __CUDACC__
#define MC_BOTH __host__ __device__
#else
#define MC_BOTH
#endif

/* One thread's points: a generator of its own (xorshift32, Marsaglia 2003), 15-bit coordinates. */
static inline MC_BOTH uint32_t mc_count(uint32_t thread, uint32_t points)
{
    uint32_t x = thread * 2654435761u + 1, inside = 0;
    if (!x)
        x = 1;
    for (uint32_t i = 0; i < points; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        uint32_t a = x & 0x7fff, b = x >> 17;
        inside += a * a + b * b < 0x8000u * 0x8000u;
    }
    return inside;
}

static inline uint64_t mc_cpu(uint32_t points_per_thread)
{
    uint64_t sum = 0;
    for (uint32_t t = 0; t < MC_THREADS; t++)
        sum += mc_count(t, points_per_thread);
    return sum;
}

static inline int mc_check(uint64_t count, uint64_t want, uint64_t points)
{
    double pi = 4.0 * (double)count / (double)points;
    if (count != want)
        return work_fail(WORK, "%llu points in the circle, not %llu", (unsigned long long)count,
                         (unsigned long long)want);
    if (fabs(pi - 3.14159265358979) > 0.01)
        return work_fail(WORK, "pi is %g", pi);
    return 0;
}
#endif

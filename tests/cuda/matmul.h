/* SPDX-License-Identifier: Apache-2.0 */
/* C = A × B, n × n. The elements are small whole numbers, so that sums are exact in any order. */
#ifndef WS_TESTS_CUDA_MATMUL_H
#define WS_TESTS_CUDA_MATMUL_H
#include "work.h"
#define WORK "matmul"
enum { MATMUL_TILE = 16, MATMUL_SIZE = 512, MATMUL_MAX = 4096 };

static inline void matmul_fill(float *a, float *b, int n)
{
    for (long i = 0; i < (long)n * n; i++) {
        uint64_t r = work_random((uint64_t)i);
        a[i] = (float)((int)(r & 15) - 8);
        b[i] = (float)((int)(r >> 8 & 15) - 8);
    }
}

static inline void matmul_cpu(const float *a, const float *b, float *c, int n)
{
    memset(c, 0, sizeof(*c) * (size_t)n * (size_t)n);
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
}

static inline int matmul_check(const float *c, const float *want, int n)
{
    for (long i = 0; i < (long)n * n; i++)
        if (c[i] != want[i])
            return work_fail(WORK, "c[%ld][%ld] is %g, not %g", i / n, i % n, c[i], want[i]);
    return 0;
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* How often each byte occurs; size × 1 KiB of data, in pieces. */
#ifndef WS_TESTS_CUDA_HISTOGRAM_H
#define WS_TESTS_CUDA_HISTOGRAM_H
#include "work.h"
#define WORK "histogram"
enum {
    HIST_SIZE_KIB = 8192,
    HIST_MAX_KIB = 1 << 19,
    HIST_BLOCK = 256,
    HIST_GRID = 32,
    HIST_PIECES = 4,
    HIST_BINS = 256
};

static inline void hist_fill(uint8_t *v, long n)
{
    for (long i = 0; i < n; i++) {
        uint64_t r = work_random((uint64_t)i);
        v[i] = (uint8_t)(r & r >> 8); /* uneven, so that bins get crowded */
    }
}

static inline void hist_cpu(const uint8_t *v, long n, uint32_t bins[HIST_BINS])
{
    memset(bins, 0, sizeof(uint32_t) * HIST_BINS);
    for (long i = 0; i < n; i++)
        bins[v[i]]++;
}

static inline int hist_check(const uint32_t *bins, const uint32_t *want)
{
    for (int i = 0; i < HIST_BINS; i++)
        if (bins[i] != want[i])
            return work_fail(WORK, "byte %d: %u times, not %u", i, bins[i], want[i]);
    return 0;
}
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of the live experiments and their programs both know: sizes, and the small
 * functions that are whole-number arithmetic on either side. */
#ifndef WS_BENCH_LIVE_H
#define WS_BENCH_LIVE_H

#include <stdint.h>

enum {
    LIVE_THREADS = 256,
    LIVE_TEXT_BYTES = 2048, /* of a block */
    LIVE_RING = 1024,
    LIVE_UNROLL = 32 /* lengths of live_steps are multiples */
};
#define LIVE_RATE       0.02f
#define LIVE_VOLATILITY 0.30f

#ifdef __CUDACC__
#define LIVE_BOTH static __host__ __device__ inline
#else
#define LIVE_BOTH static inline
#endif

struct live_aes {
    uint32_t te[4][256], sbox[256], key[44];
};

LIVE_BOTH uint32_t live_mix(uint32_t round)
{
    uint32_t x = (round + 1) * 0x9e3779b9u;
    return x ^ x >> 15;
}

/* Four letters of a to d. */
LIVE_BOTH uint32_t live_word(uint32_t round)
{
    uint32_t x = live_mix(round);
    return 0x61616161u + (x & 0x03030303u);
}

LIVE_BOTH float live_years(uint32_t round)
{
    return 0.25f + 0.25f * (float)(round & 15);
}

LIVE_BOTH uint32_t live_points(uint32_t x, uint32_t n)
{
    uint32_t inside = 0;
    for (; n; n--) { /* xorshift32 (Marsaglia 2003) */
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        uint32_t a = x & 0x7fff, b = x >> 17;
        inside += a * a + b * b < 0x8000u * 0x8000u;
    }
    return inside;
}
#endif

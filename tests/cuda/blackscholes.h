/* SPDX-License-Identifier: Apache-2.0 */
/* Prices of European options (Black, Scholes 1973); n options of size × 1024. */
#ifndef WS_TESTS_CUDA_BLACKSCHOLES_H
#define WS_TESTS_CUDA_BLACKSCHOLES_H
#include <math.h>
#include "work.h"
#define WORK "blackscholes"
enum { BS_SIZE_KI = 1024, BS_MAX_KI = 1 << 15, BS_BLOCK = 128 };
#define BS_RATE       0.02
#define BS_VOLATILITY 0.30

static inline void bs_fill(float *price, float *strike, float *years, long n)
{
    for (long i = 0; i < n; i++) {
        uint64_t r = work_random((uint64_t)i);
        price[i] = 5.0f + (float)(r & 0xffff) * (25.0f / 65536);
        strike[i] = 1.0f + (float)(r >> 16 & 0xffff) * (99.0f / 65536);
        years[i] = 0.25f + (float)(r >> 32 & 0xffff) * (9.75f / 65536);
    }
}

/* Compares with the closed form in double precision, the normal distribution from erfc. */
static inline int bs_check(const float *price, const float *strike, const float *years,
                           const float *call, const float *put, long n)
{
    for (long i = 0; i < n; i++) {
        double s = price[i], x = strike[i], t = years[i], v = BS_VOLATILITY * sqrt(t);
        double d1 = (log(s / x) + (BS_RATE + 0.5 * BS_VOLATILITY * BS_VOLATILITY) * t) / v,
               d2 = d1 - v;
        double discounted = x * exp(-BS_RATE * t), root = sqrt(0.5);
        double want_call = s * 0.5 * erfc(-d1 * root) - discounted * 0.5 * erfc(-d2 * root);
        double want_put = discounted * 0.5 * erfc(d2 * root) - s * 0.5 * erfc(d1 * root);
        double limit = 2e-5 * (s + x); /* 32-bit arithmetic and a five-term polynomial */
        if (!(fabs(call[i] - want_call) < limit) || !(fabs(put[i] - want_put) < limit))
            return work_fail(WORK, "option %ld: call %g put %g, not %g and %g", i, call[i], put[i],
                             want_call, want_put);
    }
    return 0;
}
#endif

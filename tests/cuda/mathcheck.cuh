/* SPDX-License-Identifier: Apache-2.0 */
/* What mathf.cu and mathd.cu share: a grid of arguments that are spread over a range evenly and by
 * magnitude, and the distance from the true value in units of the last place. */
#ifndef WS_TESTS_CUDA_MATHCHECK_CUH
#define WS_TESTS_CUDA_MATHCHECK_CUH

#include <float.h>
#include <math.h>
#include "work.cuh"

/* Argument k of n in [lo, hi]: half of them evenly, half with the same number to each power of two. */
template <typename T> static T math_argument(uint32_t k, uint32_t n, double lo, double hi, uint32_t salt)
{
    double u = (double)(work_random(k * 7 + salt) >> 11) * 0x1p-53, v;
    if (k < 2)
        return (T)(k ? hi : lo);
    if (k % 2) {
        v = lo / 2 + (hi / 2 - lo / 2) * u;
        v *= 2;
    } else {
        double small = lo > 0 ? lo : 1e-6 * (hi < 1 ? hi : 1), top = fabs(lo) > fabs(hi) ? fabs(lo) : fabs(hi);
        v = small * exp(log(top / small) * u);
        if (lo < 0 && work_random(k) & 1)
            v = -v;
    }
    (void)n;
    return (T)(v < lo ? lo : v > hi ? hi : v);
}

template <typename T> static double math_ulps(T got, long double want);
template <> double math_ulps<float>(float got, long double want)
{
    if (want != want || got != got)
        return want != want && got != got ? 0 : 1e30;
    float w = (float)want;
    if (got == w)
        return isinf(w) ? 0 : (double)fabsl((long double)got - want) /* below half, if it is the nearest */ * 0;
    if (isinf(got) || isinf(w))
        return isinf(got) && isinf(w) ? 1e30 : (fabsf(isinf(got) ? w : got) == FLT_MAX ? 1 : 1e30);
    int e;
    frexpf(fabsf(w) < FLT_MIN ? FLT_MIN : w, &e);
    return (double)(fabsl((long double)got - want) / ldexpl(1, e - 24));
}
template <> double math_ulps<double>(double got, long double want)
{
    if (want != want || got != got)
        return want != want && got != got ? 0 : 1e30;
    double w = (double)want;
    if (got == w)
        return 0;
    if (isinf(got) || isinf(w))
        return isinf(got) && isinf(w) ? 1e30 : (fabs(isinf(got) ? w : got) == DBL_MAX ? 1 : 1e30);
    int e;
    frexp(fabs(w) < DBL_MIN ? DBL_MIN : w, &e);
    return (double)(fabsl((long double)got - want) / ldexpl(1, e - 53));
}

#endif

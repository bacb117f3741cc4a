// SPDX-License-Identifier: Apache-2.0
// Compares the single-precision mathematical functions over grids of arguments with double
// precision on the host. Fails if one is outside of the error that the CUDA C++ Programming Guide
// states. (expm1 gets a half more: NVIDIA's text of it, in exact operations, is off by 1.44.)
#include "mathcheck.cuh"
#define WORK "mathf"

// FN1(name, expression, reference in double, largest error in ulp, lowest and highest argument)
// FN2 the same of two arguments
#define FUNCTIONS                                                                                  \
    FN1(sin, sinf(x), sin(X), 2, -1e5, 1e5)                                                        \
    FN1(sin_small, sinf(x), sin(X), 2, -4, 4)                                                      \
    FN1(sin_huge, sinf(x), sin(X), 2, -3e38, 3e38)                                                 \
    FN1(cos, cosf(x), cos(X), 2, -1e5, 1e5)                                                        \
    FN1(cos_huge, cosf(x), cos(X), 2, -3e38, 3e38)                                                 \
    FN1(sincos_s, first_of_sincosf(x), sin(X), 2, -1e3, 1e3)                                       \
    FN1(tan, tanf(x), tan(X), 4, -1e5, 1e5)                                                        \
    FN1(sinpi, sinpif(x), sinpi_ref(X), 1, -100, 100)                                              \
    FN1(cospi, cospif(x), cospi_ref(X), 1, -100, 100)                                              \
    FN1(asin, asinf(x), asin(X), 2, -1, 1)                                                         \
    FN1(acos, acosf(x), acos(X), 2, -1, 1)                                                         \
    FN1(atan, atanf(x), atan(X), 2, -1e4, 1e4)                                                     \
    FN1(sinh, sinhf(x), sinh(X), 3, -88, 88)                                                       \
    FN1(cosh, coshf(x), cosh(X), 2, -88, 88)                                                       \
    FN1(tanh, tanhf(x), tanh(X), 2, -10, 10)                                                       \
    FN1(asinh, asinhf(x), asinh(X), 3, -1e6, 1e6)                                                  \
    FN1(acosh, acoshf(x), acosh(X), 4, 1, 1e6)                                                     \
    FN1(atanh, atanhf(x), atanh(X), 3, -0.9999, 0.9999)                                            \
    FN1(exp, expf(x), exp(X), 2, -100, 88)                                                         \
    FN1(exp2, exp2f(x), exp2(X), 2, -149, 127)                                                     \
    FN1(exp10, exp10f(x), pow(10, X), 2, -44, 38)                                                  \
    FN1(expm1, expm1f(x), expm1(X), 1.5, -20, 88)                                                  \
    FN1(log, logf(x), log(X), 1, 1e-44, 3e38)                                                      \
    FN1(log_near1, logf(x), log(X), 1, 0.5, 2)                                                     \
    FN1(log2, log2f(x), log2(X), 1, 1e-44, 3e38)                                                   \
    FN1(log10, log10f(x), log10(X), 2, 1e-44, 3e38)                                                \
    FN1(log1p, log1pf(x), log1p(X), 1, -0.9999, 1e30)                                              \
    FN1(logb, logbf(x), logb(X), 0, 1e-44, 3e38)                                                   \
    FN1(sqrt, sqrtf(x), sqrt(X), 0.5, 0, 3e38)                                                     \
    FN1(rsqrt, rsqrtf(x), 1 / sqrt(X), 2, 1e-37, 3e38)                                             \
    FN1(cbrt, cbrtf(x), cbrt(X), 1, -3e38, 3e38)                                                   \
    FN1(rcbrt, rcbrtf(x), 1 / cbrt(X), 1, 1e-37, 3e38)                                             \
    FN1(recip, 1.0f / x, 1 / X, 0.5, -3e38, 3e38)                                                  \
    FN1(erf, erff(x), erf(X), 2, -5, 5)                                                            \
    FN1(erfc, erfcf(x), erfc(X), 4, -4, 10)                                                        \
    FN1(erfinv, erf(erfinvf(x)), X, 8, -0.99, 0.99)                                                \
    FN1(erfcx, erfcxf(x), exp(X * X) * erfc(X), 4, -5, 9)                                          \
    FN1(normcdf, normcdff(x), 0.5 * erfc(-X * 0.70710678118654752), 5, -8, 8)                      \
    FN1(lgamma, lgammaf(x), lgamma(X), 6, 0.1, 1e5)                                                \
    FN1(tgamma, tgammaf(x), tgamma(X), 5, 0.1, 34)                                                 \
    FN1(j0, j0f(x), j0(X), 9, 0, 2)                                                                \
    FN1(y1, y1f(x), y1(X), 9, 0.2, 2)                                                              \
    FN1(rint, rintf(x), rint(X), 0, -1e8, 1e8)                                                     \
    FN1(nearbyint, nearbyintf(x), nearbyint(X), 0, -1e8, 1e8)                                      \
    FN1(round, roundf(x), round(X), 0, -1e6, 1e6)                                                  \
    FN1(trunc, truncf(x), trunc(X), 0, -1e6, 1e6)                                                  \
    FN1(floor, floorf(x), floor(X), 0, -1e6, 1e6)                                                  \
    FN1(ceil, ceilf(x), ceil(X), 0, -1e6, 1e6)                                                     \
    FN1(frexp, mantissa_of(x), mantissa_ref(X), 0, -3e38, 3e38)                                    \
    FN1(modf, fraction_of(x), fraction_ref(X), 0, -1e5, 1e5)                                       \
    FN1(lrint, (float)lrintf(x), (double)lrint(X), 0, -1e6, 1e6)                                   \
    FN1(llround, (float)llroundf(x), (double)llround(X), 0, -1e6, 1e6)                             \
    FN1(ilogb, (float)ilogbf(x), (double)ilogb(X), 0, 1e-44, 3e38)                                 \
    FN1(ldexp, ldexpf(x, 3), ldexp(X, 3), 0, -1e30, 1e30)                                          \
    FN1(fast_sin, quantised(__sinf(x)), quantised(sin(X)), 1.5, -3.14159, 3.14159)                 \
    FN1(fast_exp, __expf(x), exp(X), 2 + 1.173 * 80, -80, 80)                                      \
    FN1(fast_log2, 4.0f + __log2f(x), 4.0 + log2(X), 3, 0.5, 2)                                    \
    FN1(fast_rsqrt, __frsqrt_rn(x), 1 / sqrt(X), 0.5001, 1e-30, 1e30)                              \
    FN2(atan2, atan2f(x, y), atan2(X, Y), 3, -100, 100)                                            \
    FN2(pow, powf(x, y), pow(X, Y), 4, 0.001, 20)                                                  \
    FN2(fmod, fmodf(x, y), fmod(X, Y), 0, -1e5, 1e5)                                               \
    FN2(remainder, remainderf(x, y), remainder(X, Y), 0, -1e5, 1e5)                                \
    FN2(hypot, hypotf(x, y), hypot(X, Y), 3, -1e18, 1e18)                                          \
    FN2(div, x / y, X / Y, 0.5, -1e18, 1e18)                                                       \
    FN2(fast_div, __fdividef(x, y), X / Y, 2, -1e18, 1e18)                                         \
    FN2(fdim, fdimf(x, y), fdimf((float)X, (float)Y), 0, -1e5, 1e5)                                \
    FN2(copysign, copysignf(x, y), copysign(X, Y), 0, -1e5, 1e5)                                   \
    FN2(fmin, fminf(x, y), fmin(X, Y), 0, -1e5, 1e5)                                               \
    FN2(fma, fmaf(x, y, 1.25f), fma(X, Y, 1.25), 0.5, -1e5, 1e5)                                   \
    FN2(nextafter, nextafterf(x, y), nextafterf((float)X, (float)Y), 0, -1e5, 1e5)

typedef float real;
typedef double wide;

__host__ __device__ static float quantised(double v)
{
    return (float)(v + (v < 0 ? -8.0 : 8.0)); // an absolute error: about 2^-20.5 is an ulp and a half of 8
}
__device__ static float first_of_sincosf(float x)
{
    float s, c;
    sincosf(x, &s, &c);
    return s;
}
__device__ static float mantissa_of(float x)
{
    int e;
    float m = frexpf(x, &e);
    return m + e;
}
static double mantissa_ref(double x)
{
    int e;
    double m = frexp(x, &e);
    return (float)m + (float)e;
}
__device__ static float fraction_of(float x)
{
    float whole;
    return modff(x, &whole);
}
static double fraction_ref(double x)
{
    double whole;
    return modf(x, &whole);
}
static double sinpi_ref(double x)
{
    double r = fmod(x, 2.0); // exact
    return (double)sinl(3.14159265358979323846264338327950288L * r) * (r == rint(r) ? 0 : 1);
}
static double cospi_ref(double x)
{
    double r = fmod(x, 2.0);
    return fabs(r) == 0.5 || fabs(r) == 1.5 ? 0 : (double)cosl(3.14159265358979323846264338327950288L * r);
}

#include "mathcheck.inc"

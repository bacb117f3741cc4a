// SPDX-License-Identifier: Apache-2.0
// Compares the double-precision mathematical functions with extended precision on the host. Fails
// if one is outside of the error that the CUDA C++ Programming Guide states.
#include "mathcheck.cuh"
#define WORK "mathd"

#define FUNCTIONS                                                                                  \
    FN1(sin, sin(x), sinl(X), 2, -1e5, 1e5)                                                        \
    FN1(sin_huge, sin(x), sinl(X), 2, -1e300, 1e300)                                               \
    FN1(cos, cos(x), cosl(X), 2, -1e5, 1e5)                                                        \
    FN1(cos_huge, cos(x), cosl(X), 2, -1e300, 1e300)                                               \
    FN1(sincos_c, second_of_sincos(x), cosl(X), 2, -1e3, 1e3)                                      \
    FN1(tan, tan(x), tanl(X), 2, -1e5, 1e5)                                                        \
    FN1(asin, asin(x), asinl(X), 2, -1, 1)                                                         \
    FN1(acos, acos(x), acosl(X), 2, -1, 1)                                                         \
    FN1(atan, atan(x), atanl(X), 2, -1e4, 1e4)                                                     \
    FN1(sinh, sinh(x), sinhl(X), 2, -700, 700)                                                     \
    FN1(cosh, cosh(x), coshl(X), 2, -700, 700)                                                     \
    FN1(tanh, tanh(x), tanhl(X), 2, -20, 20)                                                       \
    FN1(asinh, asinh(x), asinhl(X), 3, -1e6, 1e6)                                                  \
    FN1(acosh, acosh(x), acoshl(X), 3, 1, 1e6)                                                     \
    FN1(atanh, atanh(x), atanhl(X), 2, -0.9999, 0.9999)                                            \
    FN1(exp, exp(x), expl(X), 1.5, -740, 709)                                                      \
    FN1(exp2, exp2(x), exp2l(X), 1.5, -1070, 1023)                                                 \
    FN1(exp10, exp10(x), powl(10, X), 1.5, -320, 308)                                              \
    FN1(expm1, expm1(x), expm1l(X), 1.5, -30, 709)                                                 \
    FN1(log, log(x), logl(X), 1, 1e-320, 1e308)                                                    \
    FN1(log_near1, log(x), logl(X), 1, 0.5, 2)                                                     \
    FN1(log2, log2(x), log2l(X), 1, 1e-320, 1e308)                                              \
    FN1(log10, log10(x), log10l(X), 1.5, 1e-320, 1e308)                                            \
    FN1(log1p, log1p(x), log1pl(X), 1, -0.9999, 1e300)                                             \
    FN1(sqrt, sqrt(x), sqrt((double)X), 0, 0, 1e308)                                                      \
    FN1(rsqrt, rsqrt(x), 1 / sqrtl(X), 1, 1e-300, 1e308)                                           \
    FN1(cbrt, cbrt(x), cbrtl(X), 1, -1e308, 1e308)                                                 \
    FN1(rcbrt, rcbrt(x), 1 / cbrtl(X), 1, 1e-300, 1e308)                                           \
    FN1(recip, 1.0 / x, 1 / (double)X, 0, -1e300, 1e300)                                                   \
    FN1(erf, erf(x), erfl(X), 2, -5, 5)                                                            \
    FN1(erfc, erfc(x), erfcl(X), 5, -5, 26)                                                        \
    FN1(erfinv, erf(erfinv(x)), X, 8, -0.99, 0.99)                                                 \
    FN1(erfcx, erfcx(x), expl(X * X) * erfcl(X), 5, -5, 10)                                        \
    FN1(normcdf, normcdf(x), 0.5L * erfcl(-X * 0.707106781186547524400844362104849L), 5, -30, 8)   \
    FN1(lgamma, lgamma(x), lgammal(X), 4, 0.1, 1e5)                                                \
    FN1(tgamma, tgamma(x), tgammal(X), 10, 0.1, 170)                                               \
    FN1(j0, j0(x), j0l(X), 7, 0, 2)                                                                \
    FN1(y0, y0(x), y0l(X), 7, 1.2, 3)                                                              \
    FN1(rint, rint(x), rintl(X), 0, -1e17, 1e17)                                                   \
    FN1(round, round(x), roundl(X), 0, -1e6, 1e6)                                                  \
    FN1(trunc, trunc(x), truncl(X), 0, -1e6, 1e6)                                                  \
    FN1(floor, floor(x), floorl(X), 0, -1e6, 1e6)                                                  \
    FN1(ceil, ceil(x), ceill(X), 0, -1e6, 1e6)                                                     \
    FN1(logb, logb(x), logbl(X), 0, 1e-320, 1e308)                                                 \
    FN1(ldexp, ldexp(x, -5), ldexpl(X, -5), 0, -1e300, 1e300)                                      \
    FN1(llrint, (double)llrint(x), (long double)llrintl(X), 0, -1e15, 1e15)                        \
    FN1(to_float, (double)(float)x, (long double)(float)(double)X, 0, -1e50, 1e50)                 \
    FN1(to_float_up, (double)__double2float_ru(x), to_float_ref(X, FE_UPWARD), 0, -1e50, 1e50)     \
    FN2(atan2, atan2(x, y), atan2l(X, Y), 2, -100, 100)                                            \
    FN2(pow, pow(x, y), powl(X, Y), 2, 0.001, 80)                                                  \
    FN2(fmod, fmod(x, y), fmodl(X, Y), 0, -1e5, 1e5)                                               \
    FN2(remainder, remainder(x, y), remainderl(X, Y), 0, -1e5, 1e5)                                \
    FN2(hypot, hypot(x, y), hypotl(X, Y), 2, -1e150, 1e150)                                        \
    FN2(rhypot, rhypot(x, y), 1 / hypotl(X, Y), 1, -1e100, 1e100)                                  \
    FN2(norm3, norm3d(x, y, 2.0), sqrtl(X *X + Y * Y + 4), 2, -1e100, 1e100)                       \
    FN2(div, x / y, (double)X / (double)Y, 0, -1e150, 1e150)                                       \
    FN2(mul, x *y, (double)X *(double)Y, 0, -1e150, 1e150)                                         \
    FN2(fma, fma(x, y, 1.25), (long double)fma((double)X, (double)Y, 1.25), 0, -1e5, 1e5)          \
    FN2(add_down, __dadd_rd(x, y), rounded(FE_DOWNWARD, (double)X, (double)Y, '+'), 0, -1e5, 1e5)  \
    FN2(mul_up, __dmul_ru(x, y), rounded(FE_UPWARD, (double)X, (double)Y, '*'), 0, -1e5, 1e5)      \
    FN2(div_zero, __ddiv_rz(x, y), rounded(FE_TOWARDZERO, (double)X, (double)Y, '/'), 0, -1e5, 1e5) \
    FN2(fdim, fdim(x, y), (long double)fdim((double)X, (double)Y), 0, -1e5, 1e5)                   \
    FN2(fmax, fmax(x, y), (long double)fmax((double)X, (double)Y), 0, -1e5, 1e5)

#include <fenv.h>

typedef double real;
typedef long double wide;

__device__ static double second_of_sincos(double x)
{
    double s, c;
    sincos(x, &s, &c);
    return c;
}
static double to_float_ref(double x, int mode)
{
    volatile double v = x;
    fesetround(mode);
    volatile float r = (float)v;
    fesetround(FE_TONEAREST);
    return r;
}
static double rounded(int mode, double x, double y, char op)
{
    volatile double a = x, b = y, r;
    fesetround(mode);
    r = op == '+' ? a + b : op == '*' ? a * b : a / b;
    fesetround(FE_TONEAREST);
    return r;
}

#include "mathcheck.inc"

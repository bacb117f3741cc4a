// SPDX-License-Identifier: Apache-2.0
// Compares every function of __half, __half2, __nv_bfloat16, __nv_bfloat162 and the eight-bit
// formats with the same one computed in wider precision on the host and rounded once, or with the
// host's side of NVIDIA's headers, for all halves and for pairs of edge values. Fails if a bit
// differs where the function is exact.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math.h>
#include "work.cuh"
#define WORK "halves"

typedef unsigned short u16;

// The two formats by name, so that each row of TESTS serves both.
struct f16 {
    typedef __half one;
    typedef __half2 two;
    static const int bits = 11, least = -14;
    static double value(u16 v)
    {
        __half_raw r;
        r.x = v;
        return (double)__half2float(__half(r));
    }
    __host__ __device__ static one make(u16 v) { return __ushort_as_half(v); }
    __host__ __device__ static u16 raw(one v) { return __half_as_ushort(v); }
    static const u16 inf = 0x7c00;
};
struct bf16 {
    typedef __nv_bfloat16 one;
    typedef __nv_bfloat162 two;
    static const int bits = 8, least = -126;
    static double value(u16 v)
    {
        unsigned w = (unsigned)v << 16;
        float f;
        memcpy(&f, &w, 4);
        return f;
    }
    __host__ __device__ static one make(u16 v) { return __ushort_as_bfloat16(v); }
    __host__ __device__ static u16 raw(one v) { return __bfloat16_as_ushort(v); }
    static const u16 inf = 0x7f80;
};

// The nearest value of a format: slow and obvious.
template <typename F> static u16 nearest(long double x)
{
    if (x != x)
        return 0x7fff;
    u16 sign = signbit(x) ? 0x8000 : 0;
    long double m = fabsl(x);
    if (isinf(m))
        return sign | F::inf;
    int e;
    frexpl(m, &e);
    if (e < F::least + 1)
        e = F::least + 1;
    long double ulp = ldexpl(1, e - F::bits), q = rintl(m / ulp); // exact but for rintl, to even
    m = q * ulp;
    u16 lo = 0, hi = F::inf;
    if (m > F::value(F::inf - 1))
        return sign | F::inf;
    while (lo < hi) {
        u16 mid = (u16)((lo + hi) / 2);
        if (F::value(mid) < m)
            lo = mid + 1;
        else
            hi = mid;
    }
    return sign | lo;
}
// name, on the device from x, y, z, on the host from X, Y, Z (exact in long double), slack in ulp
#define TESTS                                                                                      \
    T(add, __hadd(x, y), X + Y, 0)                                                                 \
    T(sub, __hsub(x, y), X - Y, 0)                                                                 \
    T(mul, __hmul(x, y), X *Y, 0)                                                                  \
    T(div, __hdiv(x, y), X / Y, 1)                                                                 \
    T(fma, __hfma(x, y, z), fma_odd<F>(X, Y, Z), 0)                                                \
    T(fma_relu, __hfma_relu(x, y, z), relu_l(fma_odd<F>(X, Y, Z)), 0)                              \
    T(fma_sat, __hfma_sat(x, y, z), sat_l(fma_odd<F>(X, Y, Z)), 0)                                 \
    T(add_sat, __hadd_sat(x, y), sat_l(X + Y), 0)                                                  \
    T(mul_sat, __hmul_sat(x, y), sat_l(X *Y), 0)                                                   \
    T(neg, __hneg(x), -X, 0)                                                                       \
    T(abs, __habs(x), fabsl(X), 0)                                                                 \
    T(min, __hmin(x, y), fminl_z(X, Y), 0)                                                         \
    T(max, __hmax(x, y), -fminl_z(-X, -Y), 0)                                                      \
    T(min_nan, __hmin_nan(x, y), X != X || Y != Y ? NAN : fminl_z(X, Y), 0)                        \
    T(sqrt, hsqrt(x), sqrtl(X), 1)                                                                 \
    T(rsqrt, hrsqrt(x), 1 / sqrtl(X), 1)                                                           \
    T(rcp, hrcp(x), 1 / X, 1)                                                                      \
    T(exp, hexp(x), expl(X), 2)                                                                    \
    T(exp2, hexp2(x), exp2l(X), 2)                                                                 \
    T(exp10, hexp10(x), powl(10, X), 2)                                                            \
    T(log, hlog(x), logl(X), 2)                                                                    \
    T(log2, hlog2(x), log2l(X), 2)                                                                 \
    T(sin, hsin(x), sinl(X), 2)                                                                    \
    T(cos, hcos(x), cosl(X), 2)                                                                    \
    T(floor, hfloor(x), floorl(X), 0)                                                              \
    T(ceil, hceil(x), ceill(X), 0)                                                                 \
    T(rint, hrint(x), rintl(X), 0)                                                                 \
    T(trunc, htrunc(x), truncl(X), 0)

template <typename F> static long double fma_odd(long double x, long double y, long double z)
{
    // the product has at most 22 bits, so it is exact; the sum is rounded to odd by hand
    long double p = x * y, s = p + z, b = s - p, err = (p - (s - b)) + (z - b);
    if (err != 0 && s - s == 0) {
        long double toward = err > 0 ? INFINITY : -INFINITY;
        unsigned long long m;
        memcpy(&m, &s, 8);
        if (!(m & 1))
            s = nextafterl(s, toward);
    }
    return s;
}
static long double relu_l(long double v)
{
    return v != v ? v : v > 0 ? v : 0;
}
static long double sat_l(long double v)
{
    return v > 0 ? (v < 1 ? v : 1) : 0;
}
static long double fminl_z(long double a, long double b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}

#define T(name, dev, host, slack)                                                                  \
    template <typename F> __global__ void one_##name(const u16 *v, u16 *d, uint32_t n)             \
    {                                                                                              \
        uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;                                        \
        if (i >= n)                                                                                \
            return;                                                                                \
        typename F::one x = F::make(v[i]), y = F::make(v[n + i]), z = F::make(v[2 * n + i]);       \
        (void)y;                                                                                   \
        (void)z;                                                                                   \
        d[i] = F::raw(dev);                                                                        \
    }                                                                                              \
    template <typename F> static long double ref_##name(long double X, long double Y, long double Z) \
    {                                                                                              \
        (void)Y;                                                                                   \
        (void)Z;                                                                                   \
        return host;                                                                               \
    }
TESTS
#undef T

template <typename F> __global__ void pairs(const u16 *v, u16 *d, unsigned *m, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * i + 1 >= n)
        return;
    typename F::two x(F::make(v[2 * i]), F::make(v[2 * i + 1])), y(F::make(v[n + 2 * i]), F::make(v[n + 2 * i + 1])),
        z(F::make(v[2 * n + 2 * i]), F::make(v[2 * n + 2 * i + 1]));
    typename F::two r[8] = {__hadd2(x, y), __hsub2(x, y), __hmul2(x, y), __hfma2(x, y, z), __hmin2(x, y), __hmax2(x, y),
                            __hfma2_relu(x, y, z), __habs2(x)};
    for (int k = 0; k < 8; k++) {
        d[(size_t)k * n + 2 * i] = F::raw(r[k].x);
        d[(size_t)k * n + 2 * i + 1] = F::raw(r[k].y);
    }
    m[i] = (__heq2_mask(x, y) & 0x00010001) | (__hltu2_mask(x, y) & 0x00020002) | (__hgeu2_mask(x, y) & 0x00040004) |
           (__hne2_mask(x, y) & 0x00080008) | (__hbeq2(x, x) ? 0x10 : 0) | (__hble2(x, y) ? 0x20 : 0) |
           (__hisnan(x.x) ? 0x40 : 0) | (__hgt(x.x, y.y) ? 0x80 : 0) | (__hneu(x.x, y.y) ? 0x100 : 0);
}

template <typename F> static int check_pairs(const char *name, const u16 *h, const u16 *d_v, uint32_t n)
{
    u16 *d, *hr = (u16 *)work_alloc(8 * n * 2);
    unsigned *m, *hm = (unsigned *)work_alloc(n * 2);
    CHECK(cudaMalloc(&d, 8 * n * 2));
    CHECK(cudaMalloc(&m, n * 2));
    pairs<F><<<(n / 2 + 127) / 128, 128>>>(d_v, d, m, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(hr, d, 8 * n * 2, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(hm, m, n * 2, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < n; i++) {
        long double x = F::value(h[i]), y = F::value(h[n + i]), z = F::value(h[2 * n + i]);
        long double want[8] = {x + y, x - y, x * y, fma_odd<F>(x, y, z), fminl_z(x, y), -fminl_z(-x, -y),
                               relu_l(fma_odd<F>(x, y, z)), fabsl(x)};
        for (int k = 0; k < 8; k++) {
            u16 w = nearest<F>(want[k]), g = hr[(size_t)k * n + i];
            if (g != w && !(want[k] != want[k] && (g & 0x7fff) > F::inf))
                return work_fail(WORK, "%s: packed operation %d of %04x %04x %04x = %04x, not %04x", name, k, h[i],
                                 h[n + i], h[2 * n + i], g, w);
        }
        if (i % 2 == 0)
            continue;
        long double a[2] = {F::value(h[i - 1]), x}, b[2] = {F::value(h[n + i - 1]), y};
        unsigned w = 0;
        for (int k = 0; k < 2; k++)
            w |= ((a[k] == b[k] ? 1u : 0) | (!(a[k] >= b[k]) ? 2u : 0) | (!(a[k] < b[k]) ? 4u : 0) |
                  (a[k] < b[k] || a[k] > b[k] ? 8u : 0))
                 << (16 * k);
        w |= (a[0] == a[0] && a[1] == a[1] ? 0x10 : 0) | (a[0] <= b[0] && a[1] <= b[1] ? 0x20 : 0) |
             (a[0] != a[0] ? 0x40 : 0) | (a[0] > b[1] ? 0x80 : 0) | (a[0] != b[1] ? 0x100 : 0);
        if (hm[i / 2] != w)
            return work_fail(WORK, "%s: comparisons of %04x %04x and %04x %04x = %x, not %x", name, h[i - 1], h[i],
                             h[n + i - 1], h[n + i], hm[i / 2], w);
    }
    CHECK(cudaFree(d));
    CHECK(cudaFree(m));
    free(hr);
    free(hm);
    return 0;
}

template <typename F> static int check(const char *name, uint32_t n)
{
    static const struct {
        const char *name;
        void (*kernel)(const u16 *, u16 *, uint32_t);
        long double (*ref)(long double, long double, long double);
        int slack;
    } tests[] = {
#define T(name, dev, host, slack) {#name, one_##name<F>, ref_##name<F>, slack},
        TESTS
    };
    static const u16 edges[] = {0,      0x8000, 1,      0x8001, 0x3ff,  0x400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
                                0x3c00, 0xbc00, 0x3555, 0x7f,   0x80,   0x7f7f, 0x7f80, 0xff80, 0x3f80, 0xbf80, 0x3fc0};
    u16 *h = (u16 *)work_alloc(4 * n * 2), *d;
    int bad = 0;
    CHECK(cudaMalloc(&d, 4 * n * 2));
    for (uint32_t k = 0; k < n; k++) { // every bit pattern once, with a partner that is random, near, or special
        uint64_t r = work_random(k);
        h[k] = (u16)k;
        h[n + k] = r & 1 ? (u16)(r >> 8) : r & 2 ? edges[(r >> 8) % 22] : (u16)(k + (r >> 8) % 2049 - 1024);
        h[2 * n + k] = r & 4 ? (u16)(r >> 24) : r & 8 ? edges[(r >> 24) % 22] : (u16)(h[n + k] ^ 0x8000);
    }
    CHECK(cudaMemcpy(d, h, 3 * n * 2, cudaMemcpyHostToDevice));
    for (const auto &t : tests) {
        t.kernel<<<(n + 127) / 128, 128>>>(d, d + 3 * n, n);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(h + 3 * n, d + 3 * n, n * 2, cudaMemcpyDeviceToHost));
        for (uint32_t k = 0; k < n; k++) {
            long double want = t.ref(F::value(h[k]), F::value(h[n + k]), F::value(h[2 * n + k]));
            u16 w = nearest<F>(want), g = h[3 * n + k];
            if (g == w || (want != want && (g & 0x7fff) > F::inf) || abs((short)(g - w)) <= t.slack)
                continue;
            printf("%s %s(%04x, %04x, %04x) = %04x, not %04x\n", name, t.name, h[k], h[n + k], h[2 * n + k], g, w);
            bad++;
            break;
        }
    }
    bad += check_pairs<F>(name, h, d, n);
    CHECK(cudaFree(d));
    free(h);
    return bad;
}

// Conversions: what the device does and what the same headers do on the host.
__host__ __device__ static void convert(float f, double d, long long l, unsigned *r)
{
    r[0] = __half_as_ushort(__float2half_rn(f));
    r[1] = __half_as_ushort(__float2half_rz(f));
    r[2] = __half_as_ushort(__float2half_rd(f));
    r[3] = __half_as_ushort(__float2half_ru(f));
    r[4] = __half_as_ushort(__double2half(d));
    r[5] = __half_as_ushort(__ll2half_rn(l));
    r[6] = __half_as_ushort(__int2half_ru((int)l));
    r[7] = __half_as_ushort(__uint2half_rd((unsigned)l));
    r[8] = (unsigned)__half2uint_rz(__float2half(f));
    r[9] = (unsigned)__half2ushort_rz(__float2half(f));
    r[10] = (unsigned)__half2short_rz(__float2half(f)) & 0xffff;
    r[11] = __bfloat16_as_ushort(__float2bfloat16_rn(f));
    r[12] = __bfloat16_as_ushort(__float2bfloat16_rz(f));
    r[13] = __bfloat16_as_ushort(__float2bfloat16_rd(f));
    r[14] = __bfloat16_as_ushort(__float2bfloat16_ru(f));
    r[15] = __bfloat16_as_ushort(__double2bfloat16(d));
    r[16] = __bfloat16_as_ushort(__int2bfloat16_rn((int)l));
    r[17] = __bfloat16_as_ushort(__ull2bfloat16_rn((unsigned long long)l));
    r[18] = (unsigned)__bfloat162int_rz(__float2bfloat16(f));
    r[19] = __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3);
    r[20] = __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E5M2);
    r[21] = __nv_cvt_float_to_fp8(f, __NV_NOSAT, __NV_E4M3);
    r[22] = __nv_cvt_double_to_fp8(d, __NV_SATFINITE, __NV_E5M2);
    __half_raw h = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)l, __NV_E4M3);
    r[23] = h.x;
    h = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)l, __NV_E5M2);
    r[24] = h.x;
    float2 f2 = __half22float2(__floats2half2_rn(f, (float)d));
    r[25] = __half_as_ushort(__float2half(f2.x)) | (unsigned)__half_as_ushort(__float2half(f2.y)) << 16;
    r[26] = (unsigned)(unsigned char)__half2uchar_rz(__float2half(f));
    r[27] = __half_as_ushort(__short2half_rn((short)l));
}
enum { N_CONVERSIONS = 28 };
__global__ void convert_all(const float *f, const double *d, const long long *l, unsigned *r, uint32_t n)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        convert(f[i], d[i], l[i], r + (size_t)i * N_CONVERSIONS);
}
static bool nan_bits(int k, unsigned v)
{
    return k < 8 ? (v & 0x7fff) > 0x7c00 : k >= 11 && k < 18 && (v & 0x7fff) > 0x7f80;
}
static int check_conversions(uint32_t n)
{
    float *f;
    double *d;
    long long *l;
    unsigned *r, want[N_CONVERSIONS];
    CHECK(cudaMallocManaged(&f, n * sizeof *f));
    CHECK(cudaMallocManaged(&d, n * sizeof *d));
    CHECK(cudaMallocManaged(&l, n * sizeof *l));
    CHECK(cudaMallocManaged(&r, n * sizeof want));
    for (uint32_t k = 0; k < n; k++) {
        uint64_t a = work_random(3 * k), b = work_random(3 * k + 1);
        f[k] = (float)ldexp((double)(int64_t)a, -63 + (int)(b % 60) - 40 + 12);
        if (k % 16 == 3) // ties and their neighbours
            f[k] = nextafterf((float)ldexp((double)(2 * (a >> 52) + 1), (int)(b % 30) - 26), b & 64 ? 1e9f : 0);
        if (k % 16 == 4)
            f[k] = (float)ldexp((double)(2 * (a >> 52) + 1), (int)(b % 30) - 26);
        d[k] = k % 8 ? (double)f[k] * (1 + ldexp((double)(a & 3), -40)) : ldexp((double)(int64_t)a, -60 + (int)(b % 80) - 40);
        l[k] = (long long)a >> (b % 64);
    }
    f[0] = NAN;
    f[1] = INFINITY;
    f[2] = -INFINITY;
    f[5] = -0.0f;
    f[6] = 65519.996f;
    f[7] = 65520.0f;
    convert_all<<<(n + 127) / 128, 128>>>(f, d, l, r, n);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    for (uint32_t k = 0; k < n; k++) {
        convert(f[k], d[k], l[k], want);
        for (int c = 0; c < N_CONVERSIONS; c++) {
            unsigned g = r[(size_t)k * N_CONVERSIONS + c];
            if (g != want[c] && !(nan_bits(c, g) && nan_bits(c, want[c])))
                return work_fail(WORK, "conversion %d of %a, %a, %lld = %x, not %x", c, f[k], d[k], l[k], g, want[c]);
        }
    }
    CHECK(cudaFree(f));
    CHECK(cudaFree(d));
    CHECK(cudaFree(l));
    CHECK(cudaFree(r));
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t n = (uint32_t)work_arg(argc, argv, 1, 65536, 65536) & ~1u;
    int bad = check<f16>("half", n) + check<bf16>("bfloat16", n) + check_conversions(n / 2);
    return bad ? work_fail(WORK, "%d of them", bad) : work_pass(WORK);
}

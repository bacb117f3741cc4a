// SPDX-License-Identifier: Apache-2.0
// Uses integer intrinsics of single and of packed values, 128-bit integers, bit casts, and the
// conversions between integers and floats with every direction of rounding. Fails if a result
// differs from the host's.
#include <fenv.h>
#include <math.h>
#include "work.cuh"
#define WORK "intmath"

typedef unsigned long long u64;
typedef long long s64;
typedef __int128 s128;
typedef unsigned __int128 u128;

struct in {
    unsigned a, b, c;
    int s, t;
    u64 x, y;
    float f;
    double d;
};

static unsigned ref_brev(unsigned v)
{
    unsigned r = 0;
    for (int k = 0; k < 32; k++)
        r |= (v >> k & 1) << (31 - k);
    return r;
}
static u64 ref_brevll(u64 v)
{
    return (u64)ref_brev((unsigned)v) << 32 | ref_brev((unsigned)(v >> 32));
}
static unsigned ref_perm(unsigned x, unsigned y, unsigned s)
{
    unsigned r = 0;
    for (int k = 0; k < 4; k++) {
        unsigned n = s >> (4 * k) & 7;
        r |= ((n < 4 ? x >> (8 * n) : y >> (8 * (n - 4))) & 255) << (8 * k);
    }
    return r;
}
// f of each byte (n = 8) or half (n = 16), put together
template <typename F> static unsigned each(unsigned n, unsigned a, unsigned b, F f)
{
    unsigned r = 0, m = (1u << n) - 1;
    for (unsigned k = 0; k < 32; k += n)
        r |= (f(a >> k & m, b >> k & m) & m) << k;
    return r;
}
static int sx(unsigned v, unsigned n)
{
    return (int)(v << (32 - n)) >> (32 - n);
}
static int clampi(int v, int lo, int hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}
static long double integral(long double v, int mode)
{
    return mode == FE_DOWNWARD ? floorl(v) : mode == FE_UPWARD ? ceill(v) : mode == FE_TOWARDZERO ? truncl(v) : rintl(v);
}
template <typename T> static s64 to_int(T v, int mode, int bits)
{
    if (v != v)
        return bits == 64 || sizeof v == 8 ? -(s64)((u64)1 << (bits - 2)) * 2 : 0;
    long double r = integral(v, mode);
    long double top = ldexpl(1, bits - 1);
    return r >= top ? (s64)((u64)-1 >> (65 - bits)) : r < -top ? -(s64)((u64)1 << (bits - 2)) * 2 : (s64)r;
}
template <typename T> static u64 to_uint(T v, int mode, int bits)
{
    if (v != v)
        return bits == 64 || sizeof v == 8 ? (u64)1 << (bits - 1) : 0;
    long double r = integral(v, mode);
    return r >= ldexpl(1, bits) ? (u64)-1 >> (64 - bits) : r < 0 ? 0 : (u64)r;
}
template <typename T, typename F> static T from_int(F v, int mode)
{
    volatile F w = v;
    fesetround(mode);
    volatile T r = (T)w;
    fesetround(FE_TONEAREST);
    return r;
}
static unsigned bits_of(float f)
{
    unsigned v;
    memcpy(&v, &f, 4);
    return v;
}
static u64 bits_of(double f)
{
    u64 v;
    memcpy(&v, &f, 8);
    return v;
}
static int dot4(unsigned a, unsigned b, int c, bool sa, bool sb)
{
    for (int k = 0; k < 32; k += 8)
        c += (sa ? sx(a >> k & 255, 8) : (int)(a >> k & 255)) * (sb ? sx(b >> k & 255, 8) : (int)(b >> k & 255));
    return c;
}
static int dot2(unsigned a, unsigned b, int c, bool s, bool hi)
{
    for (int k = 0; k < 2; k++) {
        unsigned h = a >> (16 * k) & 0xffff, v = b >> (8 * k + (hi ? 16 : 0)) & 255;
        c += s ? sx(h, 16) * sx(v, 8) : (int)(h * v);
    }
    return c;
}

// name, on the device, on the host
#define TESTS                                                                                      \
    T(clz, __clz((int)i.a), i.a ? __builtin_clz(i.a) : 32)                                         \
    T(clzll, __clzll((s64)i.x), i.x ? __builtin_clzll(i.x) : 64)                                   \
    T(ffs, __ffs((int)i.a), __builtin_ffs((int)i.a))                                               \
    T(ffsll, __ffsll((s64)i.x), __builtin_ffsll((s64)i.x))                                         \
    T(popc, __popc(i.a), __builtin_popcount(i.a))                                                  \
    T(popcll, __popcll(i.x), __builtin_popcountll(i.x))                                            \
    T(brev, __brev(i.a), ref_brev(i.a))                                                            \
    T(brevll, __brevll(i.x), ref_brevll(i.x))                                                      \
    T(perm, __byte_perm(i.a, i.b, i.c), ref_perm(i.a, i.b, i.c))                                   \
    T(fns, __fns(i.a, i.b & 31, i.s % 5), fns_ref(i.a, i.b & 31, i.s % 5))                         \
    T(shf_l, __funnelshift_l(i.a, i.b, i.c), (unsigned)((((u64)i.b << 32 | i.a) << (i.c & 31)) >> 32)) \
    T(shf_lc, __funnelshift_lc(i.a, i.b, i.c), i.c >= 32 ? i.a : (unsigned)((((u64)i.b << 32 | i.a) << i.c) >> 32)) \
    T(shf_r, __funnelshift_r(i.a, i.b, i.c), (unsigned)(((u64)i.b << 32 | i.a) >> (i.c & 31)))     \
    T(shf_rc, __funnelshift_rc(i.a, i.b, i.c), i.c >= 32 ? i.b : (unsigned)(((u64)i.b << 32 | i.a) >> i.c)) \
    T(mulhi, __mulhi(i.s, i.t), (int)((s64)i.s * i.t >> 32))                                       \
    T(umulhi, __umulhi(i.a, i.b), (unsigned)((u64)i.a * i.b >> 32))                                \
    T(mul64hi, __mul64hi((s64)i.x, (s64)i.y), (s64)((s128)(s64)i.x * (s64)i.y >> 64))              \
    T(umul64hi, __umul64hi(i.x, i.y), (u64)((u128)i.x * i.y >> 64))                                \
    T(mul24, __mul24(i.s, i.t), (int)(unsigned)((s64)sx(i.s & 0xffffff, 24) * sx(i.t & 0xffffff, 24))) \
    T(umul24, __umul24(i.a, i.b), (unsigned)((u64)(i.a & 0xffffff) * (i.b & 0xffffff)))            \
    T(sad, __sad(i.s, i.t, i.a), (unsigned)((i.s > i.t ? (s64)i.s - i.t : (s64)i.t - i.s)) + i.a)  \
    T(usad, __usad(i.a, i.b, i.c), (i.a > i.b ? i.a - i.b : i.b - i.a) + i.c)                      \
    T(hadd, __hadd(i.s, i.t), (int)(((s64)i.s + i.t) >> 1))                                        \
    T(rhadd, __rhadd(i.s, i.t), (int)(((s64)i.s + i.t + 1) >> 1))                                  \
    T(uhadd, __uhadd(i.a, i.b), (unsigned)(((u64)i.a + i.b) >> 1))                                 \
    T(dp4a_s, __dp4a((int)i.a, (int)i.b, i.s), dot4(i.a, i.b, i.s, true, true))                    \
    T(dp4a_u, __dp4a(i.a, i.b, i.c), (unsigned)dot4(i.a, i.b, (int)i.c, false, false))             \
    T(dp2a_lo_s, __dp2a_lo((int)i.a, (int)i.b, i.s), dot2(i.a, i.b, i.s, true, false))             \
    T(dp2a_hi_u, __dp2a_hi(i.a, i.b, i.c), (unsigned)dot2(i.a, i.b, (int)i.c, false, true))        \
    T(vadd4, __vadd4(i.a, i.b), each(8, i.a, i.b, [](unsigned a, unsigned b) { return a + b; }))   \
    T(vsub2, __vsub2(i.a, i.b), each(16, i.a, i.b, [](unsigned a, unsigned b) { return a - b; }))  \
    T(vaddss4, __vaddss4(i.a, i.b),                                                                \
      each(8, i.a, i.b, [](unsigned a, unsigned b) { return (unsigned)clampi(sx(a, 8) + sx(b, 8), -128, 127); })) \
    T(vaddus2, __vaddus2(i.a, i.b),                                                                \
      each(16, i.a, i.b, [](unsigned a, unsigned b) { return (unsigned)clampi((int)(a + b), 0, 65535); })) \
    T(vabs4, __vabs4(i.a), each(8, i.a, 0, [](unsigned a, unsigned) { return (unsigned)abs(sx(a, 8)); })) \
    T(vabsdiffu4, __vabsdiffu4(i.a, i.b),                                                          \
      each(8, i.a, i.b, [](unsigned a, unsigned b) { return a > b ? a - b : b - a; }))             \
    T(vavgu4, __vavgu4(i.a, i.b), each(8, i.a, i.b, [](unsigned a, unsigned b) { return (a + b + 1) >> 1; })) \
    T(vhaddu2, __vhaddu2(i.a, i.b), each(16, i.a, i.b, [](unsigned a, unsigned b) { return (a + b) >> 1; })) \
    T(vmaxs2, __vmaxs2(i.a, i.b),                                                                  \
      each(16, i.a, i.b, [](unsigned a, unsigned b) { return sx(a, 16) > sx(b, 16) ? a : b; }))    \
    T(vminu4, __vminu4(i.a, i.b), each(8, i.a, i.b, [](unsigned a, unsigned b) { return a < b ? a : b; })) \
    T(vcmpgts4, __vcmpgts4(i.a, i.b),                                                              \
      each(8, i.a, i.b, [](unsigned a, unsigned b) { return sx(a, 8) > sx(b, 8) ? 255u : 0u; }))   \
    T(vcmpeq2, __vcmpeq2(i.a, i.b ^ (i.a & 0xffff)),                                               \
      each(16, i.a, i.b ^ (i.a & 0xffff), [](unsigned a, unsigned b) { return a == b ? 65535u : 0u; })) \
    T(vseteq4, __vseteq4(i.a, i.b), each(8, i.a, i.b, [](unsigned a, unsigned b) { return a == b ? 1u : 0u; })) \
    T(vsads4, __vsads4(i.a, i.b), sum_of_bytes(each(8, i.a, i.b, [](unsigned a, unsigned b) {      \
          return (unsigned)abs(sx(a, 8) - sx(b, 8));                                               \
      })))                                                                                         \
    T(vimax3, __vimax3_s32(i.s, i.t, (int)i.a), i.s > i.t ? (i.s > (int)i.a ? i.s : (int)i.a) : (i.t > (int)i.a ? i.t : (int)i.a)) \
    T(viaddmin_relu, __viaddmin_s32_relu(i.s >> 1, i.t >> 1, (int)i.a),                            \
      clampi((i.s >> 1) + (i.t >> 1) < (int)i.a ? (i.s >> 1) + (i.t >> 1) : (int)i.a, 0, INT32_MAX)) \
    T(vimin_s16x2_relu, __vimin_s16x2_relu(i.a, i.b), each(16, i.a, i.b, [](unsigned a, unsigned b) { \
          return (unsigned)clampi(sx(a, 16) < sx(b, 16) ? sx(a, 16) : sx(b, 16), 0, 32767);        \
      }))                                                                                          \
    T(div_s, i.t ? i.s / i.t : 0, i.t ? i.s / i.t : 0)                                             \
    T(rem_u, i.b ? i.a % i.b : 0, i.b ? i.a % i.b : 0)                                             \
    T(div_s64, (s64)i.y ? (s64)(i.x >> 1) / (s64)i.y : 0, (s64)i.y ? (s64)(i.x >> 1) / (s64)i.y : 0) \
    T(rem_u64, i.y ? i.x % i.y : 0, i.y ? i.x % i.y : 0)                                           \
    T(add128, hi_lo((u128)i.x * 3 + ((u128)i.y << 64)), hi_lo((u128)i.x * 3 + ((u128)i.y << 64)))  \
    T(mul128, hi_lo((u128)i.x * i.y * (i.a | 1)), hi_lo((u128)i.x * i.y * (i.a | 1)))              \
    T(shift128, hi_lo(((s128)((u128)i.x << 64 | i.y)) >> (i.a & 127)), hi_lo(((s128)((u128)i.x << 64 | i.y)) >> (i.a & 127))) \
    T(shl128, hi_lo(((u128)i.x << 64 | i.y) << (i.a & 127)), hi_lo(((u128)i.x << 64 | i.y) << (i.a & 127))) \
    T(div128, hi_lo(((u128)i.x << 64 | i.y) / (((u128)(i.a & 7) << 64 | i.x) | 1)),                \
      hi_lo(((u128)i.x << 64 | i.y) / (((u128)(i.a & 7) << 64 | i.x) | 1)))                        \
    T(rem128, hi_lo((u64)((s128)((u128)i.x << 64 | i.y) % (s128)((u128)i.y | 1))),                 \
      hi_lo((u64)((s128)((u128)i.x << 64 | i.y) % (s128)((u128)i.y | 1))))                         \
    T(cmp128, (s128)((u128)i.x << 64 | i.y) < (s128)((u128)i.y << 64 | i.x), (s128)((u128)i.x << 64 | i.y) < (s128)((u128)i.y << 64 | i.x)) \
    T(f2i_rn, __float2int_rn(i.f), to_int(i.f, FE_TONEAREST, 32))                                  \
    T(f2i_rd, __float2int_rd(i.f), to_int(i.f, FE_DOWNWARD, 32))                                   \
    T(f2i_ru, __float2int_ru(i.f), to_int(i.f, FE_UPWARD, 32))                                     \
    T(f2i_rz, __float2int_rz(i.f), to_int(i.f, FE_TOWARDZERO, 32))                                 \
    T(f2u_rn, __float2uint_rn(i.f), to_uint(i.f, FE_TONEAREST, 32))                                \
    T(f2ll_rd, __float2ll_rd(i.f), to_int(i.f, FE_DOWNWARD, 64))                                   \
    T(f2ull_ru, __float2ull_ru(i.f), to_uint(i.f, FE_UPWARD, 64))                                  \
    T(d2i_rn, __double2int_rn(i.d), to_int(i.d, FE_TONEAREST, 32))                                 \
    T(d2u_ru, __double2uint_ru(i.d), to_uint(i.d, FE_UPWARD, 32))                                  \
    T(d2ll_rz, __double2ll_rz(i.d), to_int(i.d, FE_TOWARDZERO, 64))                                \
    T(d2ull_rn, __double2ull_rn(i.d), to_uint(i.d, FE_TONEAREST, 64))                              \
    T(i2f_rn, bits(__int2float_rn(i.s)), bits_of(from_int<float>(i.s, FE_TONEAREST)))              \
    T(i2f_rd, bits(__int2float_rd(i.s)), bits_of(from_int<float>(i.s, FE_DOWNWARD)))               \
    T(u2f_ru, bits(__uint2float_ru(i.a)), bits_of(from_int<float>(i.a, FE_UPWARD)))                \
    T(ll2f_rz, bits(__ll2float_rz((s64)i.x)), bits_of(from_int<float>((s64)i.x, FE_TOWARDZERO)))   \
    T(ull2f_rn, bits(__ull2float_rn(i.x)), bits_of(from_int<float>(i.x, FE_TONEAREST)))            \
    T(ll2d_rd, bits(__ll2double_rd((s64)i.x)), bits_of(from_int<double>((s64)i.x, FE_DOWNWARD)))   \
    T(ull2d_ru, bits(__ull2double_ru(i.x)), bits_of(from_int<double>((long double)i.x, FE_UPWARD))) \
    T(hiloint, bits(__hiloint2double((int)i.a, (int)i.b)), (u64)i.a << 32 | i.b)                   \
    T(d2hiint, __double2hiint(__longlong_as_double((s64)i.x)), (int)(i.x >> 32))                   \
    T(saturate, bits(__saturatef(i.f)), bits_of(i.f != i.f || i.f <= 0 ? 0.0f : i.f > 1 ? 1.0f : i.f)) \
    T(fadd_rd, bits(__fadd_rd(i.f, 0.1f)), bits_of(op(FE_DOWNWARD, i.f, 0.1f, '+')))               \
    T(fmul_ru, bits(__fmul_ru(i.f, 0.1f)), bits_of(op(FE_UPWARD, i.f, 0.1f, '*')))                 \
    T(fdiv_rz, bits(__fdiv_rz(i.f, 0.7f)), bits_of(op(FE_TOWARDZERO, i.f, 0.7f, '/')))             \
    T(fsqrt_rd, bits(__fsqrt_rd(fabsf(i.f))), bits_of(op(FE_DOWNWARD, fabsf(i.f), 0, 's')))        \
    T(frcp_ru, bits(__frcp_ru(i.f)), bits_of(op(FE_UPWARD, 1.0f, i.f, '/')))                       \
    T(ffma_rd, bits(__fmaf_rd(i.f, 0.3f, 1.1f)), bits_of(op(FE_DOWNWARD, i.f, 0.3f, 'f')))

static float op(int mode, float x, float y, char what)
{
    volatile float a = x, b = y, r;
    fesetround(mode);
    r = what == '+' ? a + b : what == '*' ? a * b : what == '/' ? a / b : what == 's' ? sqrtf(a) : fmaf(a, b, 1.1f);
    fesetround(FE_TONEAREST);
    return r != r ? NAN : r;
}
static unsigned fns_ref(unsigned mask, unsigned base, int offset)
{
    if (offset == 0)
        return mask >> base & 1 ? base : ~0u;
    int left = abs(offset);
    for (int p = (int)base; p >= 0 && p < 32; p += offset > 0 ? 1 : -1)
        if (mask >> p & 1 && --left == 0)
            return (unsigned)p;
    return ~0u;
}
static unsigned sum_of_bytes(unsigned v)
{
    return (v & 255) + (v >> 8 & 255) + (v >> 16 & 255) + (v >> 24);
}
__host__ __device__ static u64 hi_lo(u128 v)
{
    return (u64)(v >> 64) * 0x9e3779b97f4a7c15u ^ (u64)v;
}
__device__ static unsigned bits(float f)
{
    return __float_as_uint(f);
}
__device__ static u64 bits(double f)
{
    return (u64)__double_as_longlong(f);
}

#define T(name, dev, host)                                                                         \
    __global__ void k_##name(const in *v, u64 *d, uint32_t n)                                      \
    {                                                                                              \
        uint32_t k = blockIdx.x * blockDim.x + threadIdx.x;                                        \
        if (k >= n)                                                                                \
            return;                                                                                \
        in i = v[k];                                                                               \
        d[k] = (u64)(dev);                                                                         \
    }                                                                                              \
    static u64 r_##name(const in &i) { return (u64)(host); }
TESTS
#undef T
static const struct {
    const char *name;
    void (*kernel)(const in *, u64 *, uint32_t);
    u64 (*ref)(const in &);
} tests[] = {
#define T(name, dev, host) {#name, k_##name, r_##name},
    TESTS
};

static uint64_t mixed(uint32_t k) // small, large, negative and random numbers
{
    uint64_t r = work_random(k);
    static const uint64_t edges[] = {0, 1, 2, 31, 32, 33, 0x7fffffff, 0x80000000, 0xffffffff, 0x7fffffffffffffff,
                                     0x8000000000000000, ~0ull};
    switch (r >> 61) {
    case 0:
        return edges[r % 12];
    case 1:
        return r & 0xff;
    case 2:
        return 0 - (r & 0xff);
    default:
        return r >> (r & 31);
    }
}

int main(int argc, char **argv)
{
    uint32_t n = (uint32_t)work_arg(argc, argv, 1, 8192, 1 << 24), bad = 0;
    in *h = (in *)work_alloc(n * sizeof *h), *d;
    u64 *hr = (u64 *)work_alloc(n * sizeof *hr), *dr;
    for (uint32_t k = 0; k < n; k++) {
        static const float odd[] = {0.0f, -0.0f, 0.5f, 1.5f, 2.5f, -0.5f, INFINITY, -INFINITY, NAN, 1e-40f, 2147483648.0f};
        in &i = h[k];
        i.a = (unsigned)mixed(9 * k);
        i.b = (unsigned)mixed(9 * k + 1);
        i.c = (unsigned)mixed(9 * k + 2);
        i.s = (int)mixed(9 * k + 3);
        i.t = (int)mixed(9 * k + 4);
        if (i.s == INT32_MIN && i.t == -1)
            i.t = 1;
        i.x = mixed(9 * k + 5);
        i.y = mixed(9 * k + 6);
        uint64_t r = work_random(9 * k + 7);
        i.f = r % 8 == 0 ? odd[r % 11] : (float)((double)(int64_t)r * ldexp(1, -(int)(r % 70)));
        i.d = r % 8 == 1 ? odd[r % 11] : (double)(int64_t)(r * 7) * ldexp(1, -(int)(r % 70));
    }
    CHECK(cudaMalloc(&d, n * sizeof *d));
    CHECK(cudaMalloc(&dr, n * sizeof *dr));
    CHECK(cudaMemcpy(d, h, n * sizeof *d, cudaMemcpyHostToDevice));
    for (const auto &t : tests) {
        t.kernel<<<(n + 127) / 128, 128>>>(d, dr, n);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(hr, dr, n * sizeof *hr, cudaMemcpyDeviceToHost));
        for (uint32_t k = 0; k < n; k++) {
            u64 want = t.ref(h[k]);
            bool nan = want == 0x7fc00000 && (hr[k] & 0x7fffffff) > 0x7f800000;
            if (hr[k] != want && !nan) {
                printf("%s(a=%x b=%x c=%x s=%d t=%d x=%llx y=%llx f=%a d=%a) = %llx, not %llx\n", t.name, h[k].a, h[k].b,
                       h[k].c, h[k].s, h[k].t, h[k].x, h[k].y, h[k].f, h[k].d, hr[k], want);
                bad++;
                break;
            }
        }
    }
    CHECK(cudaFree(d));
    CHECK(cudaFree(dr));
    free(h);
    free(hr);
    return bad ? work_fail(WORK, "%u of them", bad) : work_pass(WORK);
}

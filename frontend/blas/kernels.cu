// SPDX-License-Identifier: Apache-2.0
/* The kernels of this folder (kernels.h). Compiled once, by tools/blas.py, to the PTX in kernels.inc;
 * nothing here is built with the project.
 *
 * Both factors of a product are first put into tiles, whatever their types and the order of their elements. So the loop that takes the time
 * has no conditions and no addresses of its own. A tile of the result is computed by 8 warps. Lanes go along rows, and each warp has columns
 * of its own, so that of the two factors one is a vector and the other the same for all lanes. */
#include <cuda_fp16.h>

#include "frontend/blas/kernels.h"

typedef long long s64;
typedef unsigned long long u64;

/* ---- numbers ---- */
template <class R> struct complex {
    R x, y;
};
typedef complex<float> c32;
typedef complex<double> c64;
struct bf16 {
    unsigned short bits;
};

__device__ __forceinline__ float widen(float v) { return v; }
__device__ __forceinline__ double widen(double v) { return v; }
__device__ __forceinline__ c32 widen(c32 v) { return v; }
__device__ __forceinline__ c64 widen(c64 v) { return v; }
__device__ __forceinline__ float widen(__half v) { return __half2float(v); }
__device__ __forceinline__ float widen(bf16 v) { return __uint_as_float((unsigned)v.bits << 16); }
__device__ __forceinline__ int widen(signed char v) { return v; }

__device__ __forceinline__ unsigned short to_bf16(float v)
{
    unsigned u = __float_as_uint(v);
    return v != v ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}
/* Eight bits with @m bits of mantissa, a bias of @b; E4M3 has no infinity, and one pattern for NaN. */
__device__ __forceinline__ float from_fp8(unsigned u, int m, int b)
{
    unsigned e = (u & 0x7f) >> m, f = u & ((1u << m) - 1);
    float v = e ? __uint_as_float((e + 127 - b) << 23 | f << (23 - m)) : (float)f * __uint_as_float((unsigned)(128 - b - m) << 23);
    if (m == 3 ? (u & 0x7f) == 0x7f : e == 31 && f)
        v = __uint_as_float(0x7fffffff);
    else if (m == 2 && e == 31)
        v = __uint_as_float(0x7f800000);
    return u & 0x80 ? -v : v;
}
/* To the nearest, ties to even; what is too large becomes the largest number. */
__device__ __forceinline__ unsigned to_fp8(float v, int m, int b)
{
    float most = m == 3 ? 448.0f : 57344.0f, a = fminf(fabsf(v), most);
    unsigned sign = __float_as_uint(v) >> 24 & 0x80, u;
    if (v != v)
        return sign | 0x7f;
    if (a < __uint_as_float((unsigned)(128 - b) << 23)) { /* a subnormal one, or the least normal */
        u = (unsigned)__float2int_rn(a * __uint_as_float((unsigned)(126 + b + m) << 23));
    } else {
        u = __float_as_uint(a);
        u = (u + (1u << (22 - m)) - 1 + (u >> (23 - m) & 1)) >> (23 - m);
        u -= (unsigned)(127 - b) << m;
    }
    return sign | u;
}

__device__ __forceinline__ float zero(float) { return 0; }
__device__ __forceinline__ double zero(double) { return 0; }
__device__ __forceinline__ int zero(int) { return 0; }
template <class R> __device__ __forceinline__ complex<R> zero(complex<R>) { return {0, 0}; }

__device__ __forceinline__ float mad(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double mad(double a, double b, double c) { return fma(a, b, c); }
__device__ __forceinline__ int mad(int a, int b, int c) { return a * b + c; }
template <class R> __device__ __forceinline__ complex<R> mad(complex<R> a, complex<R> b, complex<R> c)
{
    return {mad(-a.y, b.y, mad(a.x, b.x, c.x)), mad(a.y, b.x, mad(a.x, b.y, c.y))};
}
template <class T> __device__ __forceinline__ T times(T a, T b) { return mad(a, b, zero(a)); }
__device__ __forceinline__ float conj_if(float v, unsigned) { return v; }
__device__ __forceinline__ double conj_if(double v, unsigned) { return v; }
__device__ __forceinline__ int conj_if(int v, unsigned) { return v; }
template <class R> __device__ __forceinline__ complex<R> conj_if(complex<R> v, unsigned yes) { return {v.x, yes ? -v.y : v.y}; }
template <class T> __device__ __forceinline__ T real_only(T v) { return v; }
template <class R> __device__ __forceinline__ complex<R> real_only(complex<R> v) { return {v.x, 0}; }
__device__ __forceinline__ float minus(float a, float b) { return a - b; }
__device__ __forceinline__ double minus(double a, double b) { return a - b; }
template <class R> __device__ __forceinline__ complex<R> minus(complex<R> a, complex<R> b) { return {a.x - b.x, a.y - b.y}; }
__device__ __forceinline__ float over(float a, float b) { return a / b; }
__device__ __forceinline__ double over(double a, double b) { return a / b; }
/* R. L. Smith's way, which neither overflows nor loses the smaller part. */
template <class R> __device__ __forceinline__ complex<R> over(complex<R> a, complex<R> b)
{
    bool wide = fabs(b.x) >= fabs(b.y);
    R p = wide ? b.x : b.y, q = wide ? b.y : b.x, r = q / p, d = mad(q, r, p);
    return wide ? complex<R>{mad(a.y, r, a.x) / d, mad(-a.x, r, a.y) / d} : complex<R>{mad(a.x, r, a.y) / d, mad(a.y, r, -a.x) / d};
}

__device__ __forceinline__ void make(float &v, double re, double) { v = (float)re; }
__device__ __forceinline__ void make(double &v, double re, double) { v = re; }
__device__ __forceinline__ void make(int &v, double re, double) { v = (int)re; }
template <class R> __device__ __forceinline__ void make(complex<R> &v, double re, double im) { v = {(R)re, (R)im}; }
template <class T> __device__ __forceinline__ T fetched(const ws_blas_scalar &s, T) { return *(const T *)s.at; }
template <class R> __device__ __forceinline__ complex<R> fetched(const ws_blas_scalar &s, complex<R>)
{
    const R *at = (const R *)s.at;
    return {at[0], s.real ? 0 : s.conj ? -at[1] : at[1]};
}
template <class T> __device__ __forceinline__ T scalar(const ws_blas_scalar &s)
{
    T v;
    make(v, s.re, s.im);
    return s.at ? fetched(s, v) : v;
}
__device__ __forceinline__ bool is_zero(float v) { return v == 0; }
__device__ __forceinline__ bool is_zero(double v) { return v == 0; }
__device__ __forceinline__ bool is_zero(int v) { return v == 0; }
template <class R> __device__ __forceinline__ bool is_zero(complex<R> v) { return v.x == 0 && v.y == 0; }

template <class E> __device__ __forceinline__ E *place(const ws_blas_matrix &x, s64 batch)
{
    return (x.listed ? ((E *const *)x.at)[batch] : (E *)x.at + batch * x.batch) + x.first;
}
__device__ __forceinline__ unsigned char *place_of(const ws_blas_matrix &x, s64 batch, int bytes)
{
    return (x.listed ? ((unsigned char *const *)x.at)[batch] : (unsigned char *)x.at + batch * x.batch * bytes) + x.first * bytes;
}

/* Elements whose type is known when the kernel runs. */
__device__ __forceinline__ int bytes_of(unsigned type) { return type == WS_BLAS_F32 ? 4 : type <= WS_BLAS_C64 ? 8 : type <= WS_BLAS_BF16 ? 2 : 1; }
__device__ __forceinline__ void get(const unsigned char *at, s64 k, unsigned type, float &v)
{
    if (type == WS_BLAS_F32)
        v = ((const float *)at)[k];
    else if (type == WS_BLAS_F16)
        v = widen(((const __half *)at)[k]);
    else if (type == WS_BLAS_BF16)
        v = widen(((const bf16 *)at)[k]);
    else
        v = type == WS_BLAS_E4M3 ? from_fp8(at[k], 3, 7) : from_fp8(at[k], 2, 15);
}
__device__ __forceinline__ void set(unsigned char *at, s64 k, unsigned type, float v)
{
    if (type == WS_BLAS_F32)
        ((float *)at)[k] = v;
    else if (type == WS_BLAS_F16)
        ((__half *)at)[k] = __float2half_rn(v);
    else if (type == WS_BLAS_BF16)
        ((bf16 *)at)[k].bits = to_bf16(v);
    else
        at[k] = type == WS_BLAS_E4M3 ? to_fp8(v, 3, 7) : to_fp8(v, 2, 15);
}
__device__ __forceinline__ void get(const unsigned char *at, s64 k, unsigned type, int &v) { v = type == WS_BLAS_S8 ? ((const signed char *)at)[k] : ((const int *)at)[k]; }
template <class T> __device__ __forceinline__ void get(const unsigned char *at, s64 k, unsigned, T &v) { v = ((const T *)at)[k]; }
template <class T> __device__ __forceinline__ void set(unsigned char *at, s64 k, unsigned, T v) { ((T *)at)[k] = v; }
template <class T> __device__ __forceinline__ int size_of(unsigned, T) { return sizeof(T); }
__device__ __forceinline__ int size_of(unsigned type, float) { return bytes_of(type); }
__device__ __forceinline__ int size_of(unsigned type, int) { return type == WS_BLAS_S8 ? 1 : 4; }

/* ---- products ---- */
namespace of
{
__device__ __forceinline__ float bent(float v, unsigned bend)
{
    if (bend == WS_BLAS_RELU)
        return fmaxf(v, 0.0f);
    if (bend == WS_BLAS_GELU) /* by the hyperbolic tangent */
        return 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    return v;
}
template <class T> __device__ __forceinline__ T bent(T v, unsigned) { return v; }
__device__ __forceinline__ float scaled(float v, u64 at) { return at ? v * *(const float *)at : v; }
template <class T> __device__ __forceinline__ T scaled(T v, u64) { return v; }

template <class T> __device__ __forceinline__ void finish(const ws_blas_finish &p)
{
    s64 at = blockIdx.x * 256ll + threadIdx.y * 32 + threadIdx.x, i = at % p.m, j = at / p.m, batch = blockIdx.z;
    if (j >= p.n || (p.part == WS_BLAS_LOWER && i < j) || (p.part == WS_BLAS_UPPER && i > j))
        return;
    T beta = scalar<T>(p.beta), old, bias;
    T v = times(scalar<T>(p.alpha), place<T>(p.sums, batch)[i * p.sums.row + j * p.sums.col]);
    if (!is_zero(beta)) {
        get(place_of(p.c, batch, size_of(p.c_type, v)), i * p.c.row + j * p.c.col, p.c_type, old);
        v = mad(beta, old, v);
    }
    if (p.has_bias) {
        get(place_of(p.bias, batch, size_of(p.bias_type, v)), i * p.bias.row + j * p.bias.col, p.bias_type, bias);
        make(beta, 1, 0);
        v = mad(bias, beta, v);
    }
    v = scaled(bent(v, p.bend), p.d_scale);
    if (p.real_diagonal && i == j)
        v = real_only(v);
    set(place_of(p.d, batch, size_of(p.d_type, v)), i * p.d.row + j * p.d.col, p.d_type, v);
}

template <class T, int TILE> __device__ __forceinline__ void tile(const ws_blas_tile &p)
{
    s64 at = blockIdx.x * 256ll + threadIdx.y * 32 + threadIdx.x, k = at / TILE % p.k, i = at / TILE / p.k * TILE + at % TILE;
    s64 all = (p.n + TILE - 1) / TILE * TILE * p.k;
    if (at >= all)
        return;
    T v;
    make(v, 0, 0);
    if (i < p.n)
        get(place_of(p.from, blockIdx.z, size_of(p.type, v)), i * p.from.row + k * p.from.col, p.type, v);
    ((T *)p.to)[blockIdx.z * all + at] = scaled(conj_if(v, p.from.conj), p.scale);
}

template <class T, int TILE> __device__ __forceinline__ void product(const ws_blas_product &p)
{
    enum { ROWS = TILE / 32, COLS = TILE / 8 };
    unsigned n_rows = (unsigned)((p.m + TILE - 1) / TILE), n_cols = (unsigned)((p.n + TILE - 1) / TILE);
    unsigned r = blockIdx.x % n_rows, c = blockIdx.x / n_rows;
    const T *a = (const T *)p.a + (s64)(blockIdx.z * n_rows + r) * p.k * TILE + threadIdx.x;
    const T *b = (const T *)p.b + (s64)(blockIdx.z * n_cols + c) * p.k * TILE + threadIdx.y * COLS;
    T sum[COLS][ROWS];
#pragma unroll
    for (int e = 0; e < COLS * ROWS; e++)
        make(sum[e / ROWS][e % ROWS], 0, 0);
#pragma unroll 1
    for (s64 k = p.k; k > 0; k--, a += TILE, b += TILE) {
        T x[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
            x[i] = a[i * 32];
#pragma unroll
        for (int j = 0; j < COLS; j++) {
            T y = b[j];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
                sum[j][i] = mad(x[i], y, sum[j][i]);
        }
    }
    /* Through shared memory, so that the code that writes stands once. */
    __shared__ T sums[COLS * ROWS][256];
    int thread = threadIdx.y * 32 + threadIdx.x;
#pragma unroll
    for (int e = 0; e < COLS * ROWS; e++)
        sums[e][thread] = sum[e / ROWS][e % ROWS];
    T *d = place<T>(p.d, blockIdx.z), alpha = scalar<T>(p.alpha);
    s64 i0 = (s64)r * TILE + threadIdx.x, j0 = (s64)c * TILE + threadIdx.y * COLS;
#pragma unroll 1
    for (int e = 0; e < COLS * ROWS; e++) {
        s64 i = i0 + e % ROWS * 32, j = j0 + e / ROWS;
        if ((i < p.m) & (j < p.n)) /* without a branch between */
            d[i * p.d.row + j * p.d.col] = times(alpha, sums[e][thread]);
    }
}

template <class E, class T> __device__ __forceinline__ void thin(const ws_blas_thin &p)
{
    s64 at = blockIdx.x * 256ll + threadIdx.y * 32 + threadIdx.x, i = at % p.m, j = at / p.m;
    if (j >= p.n)
        return;
    const E *a = place<E>(p.a, blockIdx.z) + i * p.a.row, *b = place<E>(p.b, blockIdx.z) + j * p.b.col;
    T sum;
    make(sum, 0, 0);
#pragma unroll 1
    for (s64 k = 0; k < p.k; k++)
        sum = mad(conj_if(widen(a[k * p.a.col]), p.a.conj), conj_if(widen(b[k * p.b.row]), p.b.conj), sum);
    place<T>(p.d, blockIdx.z)[i * p.d.row + j * p.d.col] = times(scalar<T>(p.alpha), sum);
}

/* ---- what is not a product ---- */
template <class T> __device__ __forceinline__ void pack(const ws_blas_pack &p)
{
    s64 at = blockIdx.x * 256ll + threadIdx.y * 32 + threadIdx.x, i = at % p.rows, j = at / p.rows;
    if (j >= p.cols)
        return;
    bool other = (p.part == WS_BLAS_LOWER && i < j) || (p.part == WS_BLAS_UPPER && i > j), turns = other && p.shape != WS_BLAS_TRIANGLE;
    T v;
    make(v, 0, 0);
    if (!other || turns)
        v = place<T>(p.from, blockIdx.z)[(turns ? j : i) * p.from.row + (turns ? i : j) * p.from.col];
    v = conj_if(v, (p.shape == WS_BLAS_HERMITIAN && other) != p.from.conj);
    if (p.shape == WS_BLAS_HERMITIAN && i == j)
        v = real_only(v);
    if (p.unit && i == j)
        make(v, 1, 0);
    ((T *)p.to)[at] = v;
}

template <class T> __device__ __forceinline__ void solve(const ws_blas_solve &p)
{
    s64 column = blockIdx.x * 256ll + threadIdx.y * 32 + threadIdx.x;
    if (column >= p.columns)
        return;
    const T *a = place<T>(p.a, blockIdx.z);
    T *b = place<T>(p.b, blockIdx.z) + column * p.b.col, alpha = scalar<T>(p.alpha);
    for (s64 r = 0; r < p.n; r++, a += p.a.row) {
        T v = times(alpha, b[r * p.b.row]);
#pragma unroll 1
        for (s64 c = 0; c < r; c++)
            v = minus(v, times(conj_if(a[c * p.a.col], p.a.conj), b[c * p.b.row]));
        b[r * p.b.row] = p.unit ? v : over(v, conj_if(a[r * p.a.col], p.a.conj));
    }
}

template <class T> __device__ __forceinline__ void blend(const ws_blas_blend &p)
{
    s64 at = blockIdx.x * 256ll + threadIdx.y * 32 + threadIdx.x, i = at % p.rows, j = at / p.rows;
    if (j >= p.cols)
        return;
    T alpha = scalar<T>(p.alpha), beta = scalar<T>(p.beta), a = zero(alpha), b = a;
    if (!is_zero(alpha))
        a = conj_if(place<const T>(p.a, 0)[i * p.a.row + j * p.a.col], p.a.conj);
    if (!is_zero(beta))
        b = conj_if(place<const T>(p.b, 0)[i * p.b.row + j * p.b.col], p.b.conj);
    place<T>(p.d, 0)[i * p.d.row + j * p.d.col] = p.multiply ? times(a, b) : mad(alpha, a, times(beta, b));
}

/* ---- vectors ---- */
__device__ __forceinline__ void narrow(float v, float &to) { to = v; }
__device__ __forceinline__ void narrow(double v, double &to) { to = v; }
__device__ __forceinline__ void narrow(float v, __half &to) { to = __float2half_rn(v); }
__device__ __forceinline__ void narrow(float v, bf16 &to) { to.bits = to_bf16(v); }
template <class R> __device__ __forceinline__ void narrow(complex<R> v, complex<R> &to) { to = v; }

/* A thread's elements: f(x, y). */
template <class E, class F> __device__ __forceinline__ void each(const ws_blas_vector &p, F f)
{
    for (s64 k = blockIdx.x * 256ll + threadIdx.x; k < p.n; k += gridDim.x * 256ll)
        f((E *)p.x + k * p.x_step, (E *)p.y + k * p.y_step);
}
template <class E, class T> __device__ __forceinline__ void axpy(const ws_blas_vector &p)
{
    T alpha = scalar<T>(p.alpha);
    each<E>(p, [=](E *x, E *y) { narrow(mad(alpha, widen(*x), widen(*y)), *y); });
}
template <class E, class T> __device__ __forceinline__ void scale(const ws_blas_vector &p)
{
    T alpha = scalar<T>(p.alpha);
    each<E>(p, [=](E *x, E *) { narrow(times(alpha, widen(*x)), *x); });
}
template <class E, class T> __device__ __forceinline__ void copy(const ws_blas_vector &p)
{
    each<E>(p, [](E *x, E *y) { *y = *x; });
}
template <class E, class T> __device__ __forceinline__ void exchange(const ws_blas_vector &p)
{
    each<E>(p, [](E *x, E *y) {
        E v = *x;
        *x = *y;
        *y = v;
    });
}
template <class E, class T> __device__ __forceinline__ void rotate(const ws_blas_vector &p)
{
    T cosine = scalar<T>(p.alpha), sine = scalar<T>(p.s);
    each<E>(p, [=](E *x, E *y) {
        T v = widen(*x), w = widen(*y);
        narrow(mad(sine, w, times(cosine, v)), *x);
        narrow(minus(times(cosine, w), times(conj_if(sine, 1), v)), *y);
    });
}

__device__ __forceinline__ double size(float v) { return fabs((double)v); }
__device__ __forceinline__ double size(double v) { return fabs(v); }
template <class R> __device__ __forceinline__ double size(complex<R> v) { return fabs((double)v.x) + fabs((double)v.y); }
__device__ __forceinline__ double largest(float v) { return fabs((double)v); }
__device__ __forceinline__ double largest(double v) { return fabs(v); }
template <class R> __device__ __forceinline__ double largest(complex<R> v) { return fmax(fabs((double)v.x), fabs((double)v.y)); }
__device__ __forceinline__ double square(float v, double by) { return ((double)v / by) * ((double)v / by); }
__device__ __forceinline__ double square(double v, double by) { return (v / by) * (v / by); }
template <class R> __device__ __forceinline__ double square(complex<R> v, double by) { return square((double)v.x, by) + square((double)v.y, by); }
__device__ __forceinline__ void give(u64 at, double v, float) { *(float *)at = (float)v; }
__device__ __forceinline__ void give(u64 at, double v, double) { *(double *)at = v; }
template <class R> __device__ __forceinline__ void give(u64 at, double v, complex<R>) { *(R *)at = (R)v; }

/* What all threads of the block have, in thread 0: the sum, or the greatest. */
template <class V, class F> __device__ __forceinline__ V meet(V *all, V mine, F f)
{
    all[threadIdx.x] = mine;
    for (int half = 128; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            all[threadIdx.x] = f(all[threadIdx.x], all[threadIdx.x + half]);
    }
    __syncthreads();
    V v = all[0];
    __syncthreads();
    return v;
}
struct best {
    double size;
    s64 at;
};

template <class E, class T> __device__ __forceinline__ void dot(const ws_blas_reduce &p)
{
    __shared__ T all[256];
    const E *x = (const E *)p.x + threadIdx.x * p.x_step, *y = (const E *)p.y + threadIdx.x * p.y_step;
    T sum, one;
    make(sum, 0, 0);
    make(one, 1, 0);
    for (s64 k = threadIdx.x; k < p.n; k += 256, x += 256 * p.x_step, y += 256 * p.y_step)
        sum = mad(conj_if(widen(*x), p.conj), widen(*y), sum);
    sum = meet(all, sum, [=](T a, T b) { return mad(one, a, b); });
    if (!threadIdx.x)
        set((unsigned char *)p.result, 0, p.result_type, sum);
}
template <class E, class T> __device__ __forceinline__ void length(const ws_blas_reduce &p)
{
    __shared__ double all[256];
    const E *x = (const E *)p.x;
    double most = 0, sum = 0;
    /* By the largest, so that no square is too large or too small. */
    for (s64 k = threadIdx.x; k < p.n; k += 256)
        most = fmax(most, largest(widen(x[k * p.x_step])));
    most = meet(all, most, [](double a, double b) { return fmax(a, b); });
    most = most > 0 && most < 1e308 * 10 ? most : 1;
    for (s64 k = threadIdx.x; k < p.n; k += 256)
        sum += square(widen(x[k * p.x_step]), most);
    sum = meet(all, sum, [](double a, double b) { return a + b; });
    if (!threadIdx.x)
        give(p.result, most * sqrt(sum), widen(E()));
}
template <class E, class T> __device__ __forceinline__ void sum(const ws_blas_reduce &p)
{
    __shared__ double all[256];
    const E *x = (const E *)p.x;
    double sum = 0;
    for (s64 k = threadIdx.x; k < p.n; k += 256)
        sum += size(widen(x[k * p.x_step]));
    sum = meet(all, sum, [](double a, double b) { return a + b; });
    if (!threadIdx.x)
        give(p.result, sum, widen(E()));
}
/* Where the greatest element is, or the least; of equal ones, the first. */
template <class E, class T> __device__ __forceinline__ void at(const ws_blas_reduce &p)
{
    __shared__ best all[256];
    const E *x = (const E *)p.x;
    double sign = p.least ? -1 : 1;
    best mine = {0, 0};
    for (s64 k = threadIdx.x; k < p.n; k += 256) {
        double v = sign * size(widen(x[k * p.x_step]));
        if (!mine.at || v > mine.size)
            mine = {v, k + 1};
    }
    mine = meet(all, mine, [](best a, best b) {
        bool second = b.at && (!a.at || b.size > a.size || (b.size == a.size && b.at < a.at));
        return second ? b : a;
    });
    if (!threadIdx.x && p.wide)
        *(s64 *)p.result = mine.at;
    else if (!threadIdx.x)
        *(int *)p.result = (int)mine.at;
}
} /* namespace of */

#define KERNEL(name, params, ...)                                                                                                          \
    extern "C" __global__ void name(const params p) { of::name<__VA_ARGS__>(p); }
#define VECTORS(E, T)                                                                                                                      \
    KERNEL(axpy, ws_blas_vector, E, T)                                                                                                     \
    KERNEL(scale, ws_blas_vector, E, T)                                                                                                    \
    KERNEL(copy, ws_blas_vector, E, T)                                                                                                     \
    KERNEL(exchange, ws_blas_vector, E, T)                                                                                                 \
    KERNEL(rotate, ws_blas_vector, E, T)                                                                                                   \
    KERNEL(dot, ws_blas_reduce, E, T)                                                                                                      \
    KERNEL(length, ws_blas_reduce, E, T)                                                                                                     \
    KERNEL(sum, ws_blas_reduce, E, T)                                                                                                      \
    KERNEL(at, ws_blas_reduce, E, T)
#define PRODUCTS(T, size)                                                                                                                   \
    KERNEL(tile, ws_blas_tile, T, size)                                                                                                    \
    KERNEL(product, ws_blas_product, T, size)                                                                                              \
    KERNEL(finish, ws_blas_finish, T)
#define MATRICES(T)                                                                                                                        \
    KERNEL(pack, ws_blas_pack, T)                                                                                                          \
    KERNEL(solve, ws_blas_solve, T)                                                                                                        \
    KERNEL(blend, ws_blas_blend, T)
#define THIN(E, T) KERNEL(thin, ws_blas_thin, E, T)
/* One module for each type, so that a program loads what it needs. */
#if defined(OF_F32)
PRODUCTS(float, WS_BLAS_TILE)
THIN(float, float)
MATRICES(float)
VECTORS(float, float)
#elif defined(OF_F64)
PRODUCTS(double, WS_BLAS_TILE)
THIN(double, double)
MATRICES(double)
VECTORS(double, double)
#elif defined(OF_C32)
PRODUCTS(c32, WS_BLAS_TILE_COMPLEX)
THIN(c32, c32)
MATRICES(c32)
VECTORS(c32, c32)
#elif defined(OF_C64)
PRODUCTS(c64, WS_BLAS_TILE_COMPLEX)
THIN(c64, c64)
MATRICES(c64)
VECTORS(c64, c64)
#elif defined(OF_F16)
THIN(__half, float)
VECTORS(__half, float)
#elif defined(OF_BF16)
THIN(bf16, float)
VECTORS(bf16, float)
#elif defined(OF_S8)
THIN(signed char, int)
#elif defined(OF_S32)
PRODUCTS(int, WS_BLAS_TILE)
#endif

// SPDX-License-Identifier: Apache-2.0
// Kernels of tests/unit/exec/test_nvcc.c. regenerate.sh compiles this file in several ways.
#include <stdint.h>
#define ENTRY extern "C" __global__ void

ENTRY reduce_shuffle(const int *in, int *out, int n)
{
    __shared__ int part[32];
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    for (int d = 16; d; d >>= 1)
        sum += __shfl_down_sync(0xffffffff, sum, d);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
        for (int d = 16; d; d >>= 1)
            sum += __shfl_xor_sync(0xffffffff, sum, d);
        if (threadIdx.x == 0)
            atomicAdd(out, sum);
    }
}

ENTRY bitonic(unsigned *data) // one block sorts 512 keys
{
    __shared__ unsigned s[512];
    unsigned t = threadIdx.x;
    s[t] = data[t];
    s[t + 256] = data[t + 256];
    for (unsigned k = 2; k <= 512; k <<= 1)
        for (unsigned j = k >> 1; j; j >>= 1) {
            __syncthreads();
            unsigned i = 2 * t - (t & (j - 1)), p = i + j;
            bool up = !(i & k);
            if ((s[i] > s[p]) == up) {
                unsigned x = s[i];
                s[i] = s[p];
                s[p] = x;
            }
        }
    __syncthreads();
    data[t] = s[t];
    data[t + 256] = s[t + 256];
}

ENTRY histogram(const unsigned char *in, unsigned *out, int n)
{
    __shared__ unsigned h[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        h[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&h[in[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&out[i], h[i]);
}

__constant__ unsigned char sbox[256] = {
#define R4(x) (x) & 255, ((x) * 7 + 3) & 255, ((x) * 31 + 5) & 255, ((x) ^ 0x5a) & 255
#define R16(x) R4(x), R4((x) + 4), R4((x) + 8), R4((x) + 12)
#define R64(x) R16(x), R16((x) + 16), R16((x) + 32), R16((x) + 48)
    R64(0), R64(64), R64(128), R64(192)};
ENTRY tables(unsigned *data, const unsigned *keys, int rounds)
{
    __shared__ unsigned t[256];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = data[i];
    for (int k = threadIdx.x; k < 256; k += blockDim.x)
        t[k] = sbox[k] * 0x01010101u ^ k << 24;
    __syncthreads();
    for (int r = 0; r < rounds; r++)
        x = t[x & 255] ^ __funnelshift_l(t[x >> 8 & 255], t[x >> 8 & 255], 8) ^ __byte_perm(t[x >> 16 & 255], 0, 0x1032) ^ sbox[x >> 24] ^ keys[r];
    data[i] = x;
}

__device__ float cnd(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float c = 0.39894228f * expf(-0.5f * d * d) * (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - c : c;
}
ENTRY black_scholes(float *call, const float *price, const float *strike, const float *years, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float s = price[i], x = strike[i], t = years[i], r = 0.02f, v = 0.30f, q = sqrtf(t);
    float d1 = (logf(s / x) + (r + 0.5f * v * v) * t) / (v * q), d2 = d1 - v * q;
    call[i] = s * cnd(d1) - x * expf(-r * t) * cnd(d2);
}

ENTRY monte_carlo(unsigned long long *hits, unsigned steps)
{
    unsigned x = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u + 1, n = 0;
    for (unsigned k = 0; k < steps; k++) {
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        float a = (x >> 8) * (1.0f / 16777216.0f);
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        float b = (x >> 8) * (1.0f / 16777216.0f);
        n += a * a + b * b < 1.0f;
    }
    atomicAdd(hits, (unsigned long long)n);
}

ENTRY doubles(double *out, const double *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = sqrt(in[i] * in[i] + 1.0) / (1.0 + fabs(in[i])) + exp(-in[i] * in[i]) + sin(in[i]) * log(2.0 + in[i] * in[i]) + pow(fabs(in[i]), 0.3);
}

__device__ __noinline__ int gcd_loop(int a, int b)
{
    while (b) {
        int t = a % b;
        a = b;
        b = t;
    }
    return a;
}
struct pair { int64_t a; int b, c; };
__device__ __noinline__ pair combine(pair p, int k)
{
    pair q = {p.a + gcd_loop(p.b, p.c) * (int64_t)k, p.c, p.b};
    return q;
}
__device__ __noinline__ int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
typedef int (*op_t)(int, int);
__device__ int op_add(int a, int b) { return a + b; }
__device__ int op_mul(int a, int b) { return a * b; }
__device__ int op_max(int a, int b) { return a > b ? a : b; }
__device__ op_t ops[3] = {op_add, op_mul, op_max};
ENTRY calls(int64_t *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    pair p = {i, i * 6 + 12, i * 4 + 8};
    p = combine(combine(p, 3), 5);
    out[i] = p.a * 1000003 + p.b * 17 + p.c + ackermann(2, i % 4) + ops[i % 3](i, 7);
}

ENTRY local_array(int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, a[32];
    for (int k = 0; k < 32; k++)
        a[k] = (i * 31 + k * k * 7) % 101;
    for (int k = 1; k < 32; k++) { // insertion sort
        int v = a[k], j = k - 1;
        for (; j >= 0 && a[j] > v; j--)
            a[j + 1] = a[j];
        a[j + 1] = v;
    }
    if (i < n)
        out[i] = a[i % 32] * 1000 + a[31];
}

ENTRY maths(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = in[i];
    out[i] = sinf(x) + cosf(x * 3) + expf(-x) + log1pf(fabsf(x)) + powf(fabsf(x) + 0.1f, 1.7f) + atanf(x) + tanhf(x) + rsqrtf(x * x + 1) + cbrtf(x) + floorf(x) + roundf(x) + fmodf(x, 1.3f) + erff(x);
}

ENTRY integers(uint64_t *out, const uint64_t *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uint64_t x = in[i], y = in[n - 1 - i] | 1;
    unsigned a = (unsigned)x, b = (unsigned)y;
    out[i] = x / y + x % y + (uint64_t)((int64_t)x / (int64_t)(y | 3)) + __umul64hi(x, y) + __popcll(x) + __clzll(x) + __brev(a) + __ffs((int)b) + a / b + a % b + (int)a / (int)(b | 2) + __mulhi((int)a, (int)b) + __usad(a, b, 5) + (uint8_t)x * (int8_t)y + (short)x / (short)(y | 1);
}

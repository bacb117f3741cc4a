// SPDX-License-Identifier: Apache-2.0
// Source of bench_interp.ptx: nvcc -ptx -arch=compute_75 -O3
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void matmul_naive(const float *a, const float *b, float *c, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float s = 0;
    for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x];
    c[y * n + x] = s;
}
extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[16][16], tb[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
    float s = 0;
    for (int t = 0; t < n; t += 16) {
        ta[ty][tx] = a[y * n + t + tx];
        tb[ty][tx] = b[(t + ty) * n + x];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) s += ta[ty][k] * tb[k][tx];
        __syncthreads();
    }
    c[y * n + x] = s;
}
extern "C" __global__ void alu(unsigned *out, int n)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = x ^ 0x9e3779b9u;
    float f = x;
    for (int i = 0; i < n; i++) {
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        y = y * 1664525u + 1013904223u;
        f = f * 0.999f + 1.0f;
        y += x;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = y + (unsigned)f;
}
extern "C" __global__ void saxpy(float *y, const float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void gather(float *out, const int *index, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < 8; k++) { s += in[index[(i + k * 4096) & (n - 1)]]; }
    out[i] = s;
}
extern "C" __global__ void divergent(unsigned *out, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i * 2654435761u, steps = 0;
    for (int k = 0; k < n; k++) {
        if (x & 1) { x = x * 3 + 1; steps += 3; if (x & 2) { x ^= x >> 3; steps++; } }
        else { x = x >> 1; steps ^= x; }
        x += i;
    }
    out[i] = steps;
}
extern "C" __global__ void collatz(unsigned *out, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, steps = 0;
    for (int r = 0; r < n; r++) {
        unsigned x = i * 7 + r + 1;
        while (x != 1) {
            if (x & 1) { for (unsigned k = x & 7; k; k--) steps += k * x; x = 3 * x + 1; }
            else { x >>= __ffs(x) - 1; steps ^= x; }
            steps++;
        }
    }
    out[i] = steps;
}
extern "C" __global__ void texture(float *out, cudaTextureObject_t t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i & 1023, y = i >> 10;
    float u = 0.8125f * x - 0.25f * y, v = 0.25f * x + 0.8125f * y, s = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) s += tex2D<float>(t, u + k, v + 0.5f * k);
    out[i] = s;
}

// ---- diverged lanes: the first k of each warp take the long arm; with both, the others take another one of the same length
extern "C" __global__ void one_arm(unsigned *out, int k, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
    if ((int)(i & 31) < k)
        for (int s = 0; s < n; s++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; x = x * 1664525u + 1013904223u; x ^= x >> 11; x += i; }
    out[i] = x;
}
extern "C" __global__ void two_arms(unsigned *out, int k, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
    if ((int)(i & 31) < k)
        for (int s = 0; s < n; s++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; x = x * 1664525u + 1013904223u; x ^= x >> 11; x += i; }
    else
        for (int s = 0; s < n; s++) { x ^= x << 7; x ^= x >> 9; x ^= x << 8; x = x * 22695477u + 12345u; x ^= x >> 15; x -= i; }
    out[i] = x;
}
// ---- memory
extern "C" __global__ void scatter(unsigned *out, const unsigned *in, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[(i * 2654435761u) & (n - 1)] = in[i]; // neighbours are far apart
}
extern "C" __global__ void strided(float *out, const float *in, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[x * height + y] = in[y * width + x];
}
extern "C" __global__ void generic_ptr(float *const *rows, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float *out = rows[0]; const float *x = rows[1], *y = rows[2];
    if (i < n) out[i] = x[i] * y[i] + x[n - 1 - i];
}
extern "C" __global__ void bytes(unsigned char *out, const unsigned char *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (77 * in[3 * i] + 150 * in[3 * i + 1] + 29 * in[3 * i + 2]) >> 8;
}
extern "C" __global__ void local_array(unsigned *out, const unsigned *in, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, t[16], s = 0;
    for (int k = 0; k < 16; k++) t[k] = in[i] * (k + 1);
    for (int k = 0; k < n; k++) { unsigned j = (s + k + i) & 15; s += t[j] ^ k; t[(j * 5 + k) & 15] = s; }
    out[i] = s;
}
// ---- atomics
extern "C" __global__ void histogram(unsigned *bins, const unsigned *in, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i] >> 22], 1u);
}
extern "C" __global__ void histogram_shared(unsigned *bins, const unsigned *in, int n)
{
    __shared__ unsigned h[1024];
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) h[k] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&h[in[i] >> 22], 1u);
    __syncthreads();
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) atomicAdd(&bins[k], h[k]);
}
extern "C" __global__ void one_address(unsigned *out, const unsigned *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out, in[i]);
}
extern "C" __global__ void float_atomics(float *out, const unsigned *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&out[in[i] >> 20], (float)(in[i] & 7));
}
extern "C" __global__ void atomic_max(unsigned *out, const unsigned *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax(&out[in[i] & 4095], in[i]);
}
// ---- arithmetic that is not 32-bit
extern "C" __global__ void doubles(float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = i * 1e-5, y = 0.5, z = 1;
    for (int k = 0; k < n; k++) { y = y * x + 0.25; z = z * 0.999 + y; x = x - z * 1e-6; }
    out[i] = (float)(z + 1 / (1 + y * y) + sqrt(z));
}
extern "C" __global__ void divisions(unsigned *out, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i + 12345u, s = 0;
    for (int k = 1; k <= n; k++) { unsigned d = (i & 1023) + k; s += x / d + x % (d + 7); x = x * 1664525u + 1013904223u; s ^= (unsigned)((int)x / (int)(d + 1)); }
    out[i] = s;
}
extern "C" __global__ void longs(unsigned *out, int n)
{
    unsigned long long x = blockIdx.x * blockDim.x + threadIdx.x + 1ull;
    for (int k = 0; k < n; k++) { x ^= x >> 33; x *= 0xff51afd7ed558ccdull; x ^= x >> 33; x = (x << 13 | x >> 51) + k; }
    out[blockIdx.x * blockDim.x + threadIdx.x] = (unsigned)(x >> 32);
}
extern "C" __global__ void intrinsics(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], s = 0;
    for (int k = 0; k < n; k++) { s += __sinf(x) * __expf(-x) + rsqrtf(1 + x * x) + __logf(2 + x); x += 0.01f; }
    out[i] = s / n;
}
extern "C" __global__ void accurate(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = in[i], s = 0;
    for (int k = 0; k < n; k++) { s += sinf(x) * expf(-x) + sqrtf(1 + x * x) + logf(2 + x); x += 0.01f; }
    out[i] = s / n;
}
// ---- warps and blocks
extern "C" __global__ void reduction(unsigned *out, const unsigned *in)
{
    __shared__ unsigned part[32];
    unsigned v = in[blockIdx.x * blockDim.x + threadIdx.x];
    for (int k = 16; k; k >>= 1) v += __shfl_down_sync(~0u, v, k);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
        for (int k = 16; k; k >>= 1) v += __shfl_down_sync(~0u, v, k);
        if (threadIdx.x == 0) out[blockIdx.x] = v;
    }
}
extern "C" __global__ void tree(unsigned *out, const unsigned *in)
{
    __shared__ unsigned s[256];
    unsigned t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (unsigned k = 128; k > 32; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); }
    if (t < 32) {
        volatile unsigned *v = s;
        v[t] += v[t + 32]; __syncwarp(); v[t] += v[t + 16]; __syncwarp(); v[t] += v[t + 8]; __syncwarp();
        v[t] += v[t + 4]; __syncwarp(); v[t] += v[t + 2]; __syncwarp(); v[t] += v[t + 1];
    }
    if (t == 0) out[blockIdx.x] = s[0];
}
extern "C" __global__ void ballots(unsigned *out, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i * 2654435761u, s = 0;
    for (int k = 0; k < n; k++) {
        s += __popc(__ballot_sync(~0u, x & 1)) + (__any_sync(~0u, (x & 255) == 0) ? 3 : 0);
        x = x * 1664525u + 1013904223u;
        x ^= x >> 16;
    }
    out[i] = s;
}
__device__ __noinline__ unsigned f_mix(unsigned x, unsigned k) { return (x ^ x >> 15) * 2246822519u + k; }
__device__ __noinline__ unsigned f_rot(unsigned x, unsigned k) { return (x << 7 | x >> 25) ^ k; }
extern "C" __global__ void calls(unsigned *out, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
    for (int k = 0; k < n; k++) { x = f_mix(x, k); x = f_rot(x, i); }
    out[i] = x;
}
extern "C" __global__ void calls_indirect(unsigned *out, int n)
{
    unsigned (*const f[2])(unsigned, unsigned) = {f_mix, f_rot};
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i;
    for (int k = 0; k < n; k++) x = f[(k + (i >> 5)) & 1](x, k);
    out[i] = x;
}
extern "C" __global__ void tiny(float *out, const float *in)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x] + 1;
}
/* A warp for each tile of 16 x 16, by tensor cores. */
extern "C" __global__ void matmul_tensor(const half *a, const half *b, float *c, int n)
{
    int row = blockIdx.y * 16, col = (blockIdx.x * 4 + threadIdx.x / 32) * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> s;
    wmma::fill_fragment(s, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> x;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> y;
        wmma::load_matrix_sync(x, a + row * n + k, n);
        wmma::load_matrix_sync(y, b + k * n + col, n);
        wmma::mma_sync(s, x, y, s);
    }
    wmma::store_matrix_sync(c + row * n + col, s, n, wmma::mem_row_major);
}

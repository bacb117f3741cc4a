// SPDX-License-Identifier: Apache-2.0
// Computes a separable filter (constant memory, a tile with its halo in shared memory, unrolled
// templates), the transposition of a matrix in several ways, and a 3-D stencil that keeps its
// column in registers. Fails if a result differs from the CPU's.
#include <math.h>
#include <vector>
#include "work.cuh"
#define WORK "convolve"

enum { RADIUS = 8, TILE = 32, ROWS = 8 };
__constant__ float taps[2 * RADIUS + 1];

template <bool DOWN> __global__ void filter(float *out, const float *in, int w, int h)
{
    __shared__ float s[TILE + 2 * RADIUS][TILE + 2 * RADIUS + 1];
    int x0 = blockIdx.x * TILE, y0 = blockIdx.y * TILE;
    for (int y = threadIdx.y; y < TILE + 2 * RADIUS; y += blockDim.y)
        for (int x = threadIdx.x; x < TILE + 2 * RADIUS; x += blockDim.x) {
            int gx = x0 + x - RADIUS, gy = y0 + y - RADIUS;
            s[y][x] = gx >= 0 && gx < w && gy >= 0 && gy < h ? in[gy * w + gx] : 0.0f;
        }
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += blockDim.y) {
        int gx = x0 + threadIdx.x, gy = y0 + y;
        float sum = 0;
#pragma unroll
        for (int k = -RADIUS; k <= RADIUS; k++)
            sum += taps[RADIUS - k] *
                   (DOWN ? s[y + RADIUS + k][threadIdx.x + RADIUS] : s[y + RADIUS][threadIdx.x + RADIUS + k]);
        if (gx < w && gy < h)
            out[gy * w + gx] = sum;
    }
}

__global__ void transpose_plain(float *out, const float *in, int w, int h)
{
    int x = blockIdx.x * TILE + threadIdx.x;
    for (int y = blockIdx.y * TILE + threadIdx.y, k = 0; k < TILE; k += ROWS, y += ROWS)
        if (x < w && y < h)
            out[x * h + y] = in[y * w + x];
}

template <int PAD> __global__ void transpose_tile(float *out, const float *in, int w, int h)
{
    __shared__ float s[TILE][TILE + PAD];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += ROWS)
        if (x < w && y + k < h)
            s[threadIdx.y + k][threadIdx.x] = in[(y + k) * w + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += ROWS)
        if (x < h && y + k < w)
            out[(y + k) * h + x] = s[threadIdx.x][threadIdx.y + k];
}

template <int R> __global__ void stencil3d(float *out, const float *in, int n, float centre, float side)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float column[2 * R + 1];
    if (x < R || y < R || x >= n - R || y >= n - R)
        return;
    for (int k = 0; k < 2 * R; k++)
        column[k + 1] = in[(k * n + y) * n + x];
    for (int z = R; z < n - R; z++) {
#pragma unroll
        for (int k = 0; k < 2 * R; k++)
            column[k] = column[k + 1];
        column[2 * R] = in[((z + R) * n + y) * n + x];
        float v = centre * column[R];
#pragma unroll
        for (int k = 1; k <= R; k++)
            v += side * (column[R - k] + column[R + k] + in[(z * n + y) * n + x - k] + in[(z * n + y) * n + x + k] +
                         in[(z * n + y - k) * n + x] + in[(z * n + y + k) * n + x]);
        out[(z * n + y) * n + x] = v;
    }
}

static int differ(const char *what, const std::vector<float> &got, const std::vector<float> &want)
{
    for (size_t i = 0; i < want.size(); i++)
        if (!(fabsf(got[i] - want[i]) <= 2e-5f * (1 + fabsf(want[i]))))
            return work_fail(WORK, "%s: [%zu] is %g, not %g", what, i, got[i], want[i]);
    return 0;
}

int main()
{
    const int w = 150, h = 90, n = 40, count = n * n * n;
    float c[2 * RADIUS + 1], *a, *b, *t;
    std::vector<float> in(count), want(w * h), across(w * h), got(w * h);
    for (int i = 0; i < count; i++)
        in[i] = (float)(work_random(i) & 255) / 64;
    for (int k = 0; k <= 2 * RADIUS; k++)
        c[k] = (float)(work_random(k + 7) & 31) / 256;
    CHECK(cudaMalloc(&a, count * sizeof(float)));
    CHECK(cudaMalloc(&b, count * sizeof(float)));
    CHECK(cudaMalloc(&t, count * sizeof(float)));
    CHECK(cudaMemcpyToSymbol(taps, c, sizeof c));
    CHECK(cudaMemcpy(a, in.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    dim3 grid((w + TILE - 1) / TILE, (h + TILE - 1) / TILE), block(TILE, ROWS);
    filter<false><<<grid, block>>>(t, a, w, h);
    filter<true><<<grid, block>>>(b, t, w, h);
    CHECK(cudaMemcpy(got.data(), b, w * h * sizeof(float), cudaMemcpyDeviceToHost));
    for (int pass = 0; pass < 2; pass++) {
        const std::vector<float> &from = pass ? across : in;
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++) {
                double sum = 0;
                for (int k = -RADIUS; k <= RADIUS; k++) {
                    int gx = pass ? x : x + k, gy = pass ? y + k : y;
                    if (gx >= 0 && gx < w && gy >= 0 && gy < h)
                        sum += (double)c[RADIUS - k] * from[gy * w + gx];
                }
                (pass ? want : across)[y * w + x] = (float)sum;
            }
    }
    if (differ("filter", got, want))
        return 1;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            want[x * h + y] = in[y * w + x];
    for (int k = 0; k < 3; k++) {
        CHECK(cudaMemset(b, 0, w * h * sizeof(float)));
        void (*kernel)(float *, const float *, int, int) =
            k == 0 ? transpose_plain : k == 1 ? transpose_tile<0> : transpose_tile<1>;
        kernel<<<grid, block>>>(b, a, w, h);
        CHECK(cudaMemcpy(got.data(), b, w * h * sizeof(float), cudaMemcpyDeviceToHost));
        if (differ("transpose", got, want))
            return 1;
    }
    std::vector<float> cube(in), wanted(in);
    CHECK(cudaMemcpy(b, a, count * sizeof(float), cudaMemcpyDeviceToDevice));
    stencil3d<3><<<dim3(2, 5), dim3(32, 8)>>>(b, a, n, 0.5f, 0.03f);
    CHECK(cudaMemcpy(cube.data(), b, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (int z = 3; z < n - 3; z++)
        for (int y = 3; y < n - 3; y++)
            for (int x = 3; x < n - 3; x++) {
                double v = 0.5 * in[(z * n + y) * n + x];
                for (int k = 1; k <= 3; k++)
                    v += 0.03 * ((double)in[((z - k) * n + y) * n + x] + in[((z + k) * n + y) * n + x] +
                                 in[(z * n + y) * n + x - k] + in[(z * n + y) * n + x + k] +
                                 in[(z * n + y - k) * n + x] + in[(z * n + y + k) * n + x]);
                wanted[(z * n + y) * n + x] = (float)v;
            }
    if (differ("stencil", cube, wanted))
        return 1;
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(t));
    return work_pass(WORK);
}

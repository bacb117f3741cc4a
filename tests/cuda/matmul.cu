// SPDX-License-Identifier: Apache-2.0
// Multiplies matrices in tiles: shared memory, barriers, synchronous copies, timing by events.
// Fails if an element differs from the CPU's; the sums are exact.
#include "matmul.h"
#include "work.cuh"

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[MATMUL_TILE][MATMUL_TILE], tb[MATMUL_TILE][MATMUL_TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * MATMUL_TILE + y, col = blockIdx.x * MATMUL_TILE + x;
    float sum = 0;
    for (int t = 0; t < n; t += MATMUL_TILE) {
        ta[y][x] = row < n && t + x < n ? a[row * n + t + x] : 0;
        tb[y][x] = col < n && t + y < n ? b[(t + y) * n + col] : 0;
        __syncthreads();
        for (int k = 0; k < MATMUL_TILE; k++)
            sum += ta[y][k] * tb[k][x];
        __syncthreads();
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, MATMUL_SIZE, MATMUL_MAX);
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    size_t bytes = sizeof(float) * n * n;
    float *a = (float *)work_alloc(bytes), *b = (float *)work_alloc(bytes),
          *c = (float *)work_alloc(bytes);
    float *want = (float *)work_alloc(bytes), *da, *db, *dc, ms;
    cudaEvent_t start, end;
    matmul_fill(a, b, n);
    matmul_cpu(a, b, want, n);
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaMalloc(&da, bytes));
    CHECK(cudaMalloc(&db, bytes));
    CHECK(cudaMalloc(&dc, bytes));
    for (long it = 0; it < iterations; it++) {
        dim3 block(MATMUL_TILE, MATMUL_TILE),
            grid((n + MATMUL_TILE - 1) / MATMUL_TILE, (n + MATMUL_TILE - 1) / MATMUL_TILE);
        CHECK(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice));
        CHECK(cudaMemset(dc, 0xff, bytes));
        CHECK(cudaEventRecord(start));
        matmul<<<grid, block>>>(da, db, dc, n);
        CHECK_LAUNCH();
        CHECK(cudaEventRecord(end));
        CHECK(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
        CHECK(cudaEventElapsedTime(&ms, start, end));
        if (!(ms > 0))
            return work_fail(WORK, "the kernel took %g ms by its events", ms);
        if (matmul_check(c, want, n))
            return 1;
    }
    CHECK(cudaFree(da));
    CHECK(cudaFree(db));
    CHECK(cudaFree(dc));
    return work_pass(WORK);
}

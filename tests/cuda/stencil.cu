// SPDX-License-Identifier: Apache-2.0
// Computes a stencil: the grid's halves are computed in two streams that wait for each other by
// events at each step. Fails if an element differs from the CPU's.
#include "stencil.h"
#include "work.cuh"

extern "C" __global__ void stencil(const uint32_t *in, uint32_t *out, int n, int first_row,
                                   int last_row)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x,
        y = first_row + blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= last_row)
        return;
    const uint32_t *p = in + y * n + x;
    bool border = x == 0 || y == 0 || x == n - 1 || y == n - 1;
    out[y * n + x] = border ? p[0] : 3 * p[0] + p[1] + p[-1] + (p[n] ^ p[-n]);
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, STENCIL_SIZE, STENCIL_MAX), half = n / 2;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    size_t bytes = sizeof(uint32_t) * n * n;
    uint32_t *v = (uint32_t *)work_alloc(bytes), *other = (uint32_t *)work_alloc(bytes), *out,
             *d[2], *want;
    cudaStream_t s[2];
    cudaEvent_t done[2];
    CHECK(cudaMallocHost(&out, bytes));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaStreamCreate(&s[i]));
        CHECK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
        CHECK(cudaMalloc(&d[i], bytes));
    }
    for (long it = 0; it < iterations; it++) {
        stencil_fill(v, n);
        CHECK(cudaMemcpy(d[0], v, bytes, cudaMemcpyHostToDevice));
        for (int step = 0; step < STENCIL_STEPS; step++) {
            for (int i = 0; i < 2; i++) {
                int first = i ? half : 0, last = i ? n : half;
                dim3 block(STENCIL_X, STENCIL_Y);
                dim3 grid((n + STENCIL_X - 1) / STENCIL_X,
                          (last - first + STENCIL_Y - 1) / STENCIL_Y);
                if (grid.y)
                    stencil<<<grid, block, 0, s[i]>>>(d[step & 1], d[~step & 1], n, first, last);
                CHECK_LAUNCH();
                CHECK(cudaEventRecord(done[i], s[i]));
            }
            CHECK(cudaStreamWaitEvent(s[0], done[1], 0));
            CHECK(cudaStreamWaitEvent(s[1], done[0], 0));
        }
        CHECK(cudaMemcpyAsync(out, d[STENCIL_STEPS & 1], bytes, cudaMemcpyDeviceToHost, s[0]));
        want = stencil_cpu(v, other, n);
        CHECK(cudaStreamSynchronize(s[0]));
        if (cudaStreamQuery(s[1]) != cudaSuccess || cudaEventQuery(done[1]) != cudaSuccess)
            return work_fail(WORK,
                             "the second stream is not done after the first, which waited for it");
        if (stencil_check(out, want, n))
            return 1;
    }
    for (int i = 0; i < 2; i++) {
        CHECK(cudaStreamDestroy(s[i]));
        CHECK(cudaEventDestroy(done[i]));
        CHECK(cudaFree(d[i]));
    }
    CHECK(cudaFreeHost(out));
    return work_pass(WORK);
}

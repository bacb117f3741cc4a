// SPDX-License-Identifier: Apache-2.0
// Computes a histogram by atomics on shared memory, with pinned memory and asynchronous copies in
// two streams that take the pieces in turns. Fails if a count differs from the CPU's.
#include "histogram.h"
#include "work.cuh"

extern "C" __global__ void histogram(const uint32_t *v, uint32_t n, uint32_t *bins)
{
    __shared__ uint32_t s[HIST_BINS];
    s[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        uint32_t w = v[i];
        atomicAdd(&s[w & 255], 1);
        atomicAdd(&s[w >> 8 & 255], 1);
        atomicAdd(&s[w >> 16 & 255], 1);
        atomicAdd(&s[w >> 24], 1);
    }
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}

int main(int argc, char **argv)
{
    long n = work_arg(argc, argv, 1, HIST_SIZE_KIB, HIST_MAX_KIB) * 1024, piece = n / HIST_PIECES;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    uint8_t *v, *d;
    uint32_t *bins, *d_bins, want[HIST_BINS];
    cudaStream_t s[2];
    CHECK(cudaMallocHost(&v, n));
    CHECK(cudaHostAlloc(&bins, sizeof want, cudaHostAllocDefault));
    CHECK(cudaMalloc(&d, n));
    CHECK(cudaMalloc(&d_bins, sizeof want));
    for (int i = 0; i < 2; i++)
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
    hist_fill(v, n);
    hist_cpu(v, n, want);
    for (long it = 0; it < iterations; it++) {
        CHECK(cudaMemsetAsync(d_bins, 0, sizeof want, s[0]));
        CHECK(cudaStreamSynchronize(s[0]));
        for (int p = 0; p < HIST_PIECES; p++) {
            CHECK(cudaMemcpyAsync(d + p * piece, v + p * piece, piece, cudaMemcpyHostToDevice,
                                  s[p & 1]));
            histogram<<<HIST_GRID, HIST_BLOCK, 0, s[p & 1]>>>((const uint32_t *)(d + p * piece),
                                                              (uint32_t)(piece / 4), d_bins);
            CHECK_LAUNCH();
        }
        CHECK(cudaStreamSynchronize(s[0]));
        CHECK(cudaStreamSynchronize(s[1]));
        CHECK(cudaMemcpyAsync(bins, d_bins, sizeof want, cudaMemcpyDeviceToHost, s[1]));
        CHECK(cudaStreamSynchronize(s[1]));
        if (hist_check(bins, want))
            return 1;
    }
    for (int i = 0; i < 2; i++)
        CHECK(cudaStreamDestroy(s[i]));
    CHECK(cudaFree(d));
    CHECK(cudaFree(d_bins));
    CHECK(cudaFreeHost(v));
    CHECK(cudaFreeHost(bins));
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Estimates pi by random points: long integer loops, a tree sum in dynamic shared memory, 64-bit
// atomics. Fails if the count differs from the CPU's.
#include "montecarlo.h"
#include "work.cuh"

extern "C" __global__ void montecarlo(uint32_t points, unsigned long long *total)
{
    extern __shared__ uint32_t sums[];
    uint32_t t = threadIdx.x;
    sums[t] = mc_count(blockIdx.x * blockDim.x + t, points);
    for (uint32_t s = blockDim.x / 2; s; s >>= 1) {
        __syncthreads();
        if (t < s)
            sums[t] += sums[t + s];
    }
    if (t == 0)
        atomicAdd(total, (unsigned long long)sums[0]);
}

int main(int argc, char **argv)
{
    uint64_t points = (uint64_t)work_arg(argc, argv, 1, MC_SIZE_MI, MC_MAX_MI) << 20;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    uint32_t each = (uint32_t)(points / MC_THREADS);
    uint64_t want = mc_cpu(each);
    unsigned long long count, *d;
    CHECK(cudaMalloc(&d, sizeof *d));
    for (long it = 0; it < iterations; it++) {
        CHECK(cudaMemset(d, 0, sizeof *d));
        montecarlo<<<MC_GRID, MC_BLOCK, MC_BLOCK * sizeof(uint32_t)>>>(each, d);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(&count, d, sizeof count, cudaMemcpyDeviceToHost));
        if (mc_check(count, want, points))
            return 1;
    }
    CHECK(cudaFree(d));
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Computes the sum, the largest and the number of odd elements: shuffles, votes, templates (mangled
// names), occupancy. Fails if one differs from the CPU's.
#include "work.cuh"
#define WORK "reduce"

struct result {
    unsigned long long sum;
    unsigned int largest, n_odd;
};

template <int BLOCK> __global__ void reduce(const uint32_t *v, uint32_t n, result *r)
{
    __shared__ unsigned long long sums[BLOCK / 32];
    __shared__ unsigned int largests[BLOCK / 32], odds[BLOCK / 32];
    unsigned long long sum = 0;
    unsigned int largest = 0, n_odd = 0, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    uint32_t stride = gridDim.x * BLOCK, rounds = (n + stride - 1) / stride;
    for (uint32_t k = 0, i = blockIdx.x * BLOCK + threadIdx.x; k < rounds; k++, i += stride) {
        uint32_t x = i < n ? v[i] : 0;
        sum += x;
        largest = max(largest, x);
        n_odd += __popc(__ballot_sync(~0u, x & 1));
    }
    for (int d = 16; d; d >>= 1) {
        sum += __shfl_down_sync(~0u, sum, d);
        largest = max(largest, __shfl_xor_sync(~0u, largest, d));
    }
    if (lane == 0) {
        sums[warp] = sum;
        largests[warp] = largest;
        odds[warp] = n_odd;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < BLOCK / 32; w++) {
            sum += sums[w];
            largest = max(largest, largests[w]);
            n_odd += odds[w];
        }
        atomicAdd(&r->sum, sum);
        atomicMax(&r->largest, largest);
        atomicAdd(&r->n_odd, n_odd);
    }
}

template <int BLOCK> static int run(const uint32_t *d, uint32_t n, const result &want)
{
    result r = {}, *d_r;
    int blocks;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reduce<BLOCK>, BLOCK, 0));
    if (blocks < 1)
        return work_fail(WORK, "%d blocks of %d threads fit an SM", blocks, BLOCK);
    CHECK(cudaMalloc(&d_r, sizeof r));
    CHECK(cudaMemcpy(d_r, &r, sizeof r, cudaMemcpyHostToDevice));
    reduce<BLOCK><<<blocks * 8, BLOCK>>>(d, n, d_r);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(&r, d_r, sizeof r, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d_r));
    if (r.sum != want.sum || r.largest != want.largest || r.n_odd != want.n_odd)
        return work_fail(WORK, "blocks of %d: sum %llu largest %u odd %u, not %llu %u %u", BLOCK,
                         r.sum, r.largest, r.n_odd, want.sum, want.largest, want.n_odd);
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t n = (uint32_t)work_arg(argc, argv, 1, 2048, 1 << 18) * 1024 - 17;
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    uint32_t *v = (uint32_t *)work_alloc(4 * (size_t)n), *d;
    result want = {};
    for (uint32_t i = 0; i < n; i++) {
        v[i] = (uint32_t)work_random(i);
        want.sum += v[i];
        want.largest = v[i] > want.largest ? v[i] : want.largest;
        want.n_odd += v[i] & 1;
    }
    CHECK(cudaMalloc(&d, 4 * (size_t)n));
    for (long it = 0; it < iterations; it++) {
        CHECK(cudaMemcpy(d, v, 4 * (size_t)n, cudaMemcpyHostToDevice));
        if (run<64>(d, n, want) || run<256>(d, n, want) || run<1024>(d, n, want))
            return 1;
    }
    CHECK(cudaFree(d));
    return work_pass(WORK);
}

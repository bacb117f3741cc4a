// SPDX-License-Identifier: Apache-2.0
// Sorts with a bitonic network: small strides in shared memory, large ones in global memory, many
// launches in a row. Fails if the result is not the CPU's.
#include "sort.h"
#include "work.cuh"

extern "C" {
static __device__ void order(uint32_t &a, uint32_t &b, bool up)
{
    if ((a > b) == up) {
        uint32_t t = a;
        a = b;
        b = t;
    }
}

// Sorts each tile, alternately up and down.
__global__ void sort_tiles(uint32_t *v)
{
    __shared__ uint32_t s[SORT_TILE];
    unsigned t = threadIdx.x, base = blockIdx.x * SORT_TILE;
    s[t] = v[base + t];
    s[t + SORT_BLOCK] = v[base + t + SORT_BLOCK];
    for (unsigned size = 2; size <= SORT_TILE; size <<= 1)
        for (unsigned stride = size / 2; stride; stride >>= 1) {
            unsigned i = 2 * t - (t & (stride - 1));
            __syncthreads();
            order(s[i], s[i + stride], ((base + i) & size) == 0);
        }
    __syncthreads();
    v[base + t] = s[t];
    v[base + t + SORT_BLOCK] = s[t + SORT_BLOCK];
}

// One step of a merge, stride >= SORT_TILE.
__global__ void sort_step(uint32_t *v, unsigned size, unsigned stride)
{
    unsigned t = blockIdx.x * blockDim.x + threadIdx.x, i = 2 * t - (t & (stride - 1));
    order(v[i], v[i + stride], (i & size) == 0);
}

// The rest of a merge, stride < SORT_TILE.
__global__ void sort_merge(uint32_t *v, unsigned size)
{
    __shared__ uint32_t s[SORT_TILE];
    unsigned t = threadIdx.x, base = blockIdx.x * SORT_TILE;
    s[t] = v[base + t];
    s[t + SORT_BLOCK] = v[base + t + SORT_BLOCK];
    for (unsigned stride = SORT_TILE / 2; stride; stride >>= 1) {
        unsigned i = 2 * t - (t & (stride - 1));
        __syncthreads();
        order(s[i], s[i + stride], (base & size) == 0);
    }
    __syncthreads();
    v[base + t] = s[t];
    v[base + t + SORT_BLOCK] = s[t + SORT_BLOCK];
}
}

int main(int argc, char **argv)
{
    long size = work_arg(argc, argv, 1, SORT_SIZE, SORT_MAX), n = 1l << (size < 10 ? 10 : size);
    long iterations = work_arg(argc, argv, 2, 1, 1000000);
    size_t bytes = sizeof(uint32_t) * n;
    uint32_t *v = (uint32_t *)work_alloc(bytes), *want = (uint32_t *)work_alloc(bytes),
             *out = (uint32_t *)work_alloc(bytes), *d;
    unsigned tiles = n / SORT_TILE;
    sort_fill(v, n);
    memcpy(want, v, bytes);
    qsort(want, n, sizeof *want, sort_compare);
    CHECK(cudaMalloc(&d, bytes));
    for (long it = 0; it < iterations; it++) {
        CHECK(cudaMemcpy(d, v, bytes, cudaMemcpyHostToDevice));
        sort_tiles<<<tiles, SORT_BLOCK>>>(d);
        for (unsigned s = 2 * SORT_TILE; s <= n; s <<= 1) {
            for (unsigned stride = s / 2; stride >= SORT_TILE; stride >>= 1)
                sort_step<<<tiles, SORT_BLOCK>>>(d, s, stride);
            sort_merge<<<tiles, SORT_BLOCK>>>(d, s);
        }
        CHECK_LAUNCH();
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(out, d, bytes, cudaMemcpyDeviceToHost));
        if (sort_check(out, want, n))
            return 1;
    }
    CHECK(cudaFree(d));
    return work_pass(WORK);
}

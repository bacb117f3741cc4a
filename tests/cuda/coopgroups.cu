// SPDX-License-Identifier: Apache-2.0
/* Uses cooperative groups: a reduction over the whole grid with grid.sync(), tiles, scans, groups
 * by label and of the lanes that are together; a lock that the lanes of one warp fight for; the
 * last block that notices that it is the last. Fails if a result is wrong, and hangs if lanes or
 * blocks do not make progress. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cstdio>

namespace cg = cooperative_groups;
enum { N = 50000, THREADS = 256, TILES = 64 };

__global__ void sum_grid(const int *in, long long *parts, int n)
{
    cg::grid_group grid = cg::this_grid();
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    __shared__ long long sums[32];
    long long v = 0;
    for (unsigned long long i = grid.thread_rank(); i < (unsigned long long)n; i += grid.size())
        v += in[i];
    v = cg::reduce(tile, v, cg::plus<long long>());
    if (tile.thread_rank() == 0)
        sums[tile.meta_group_rank()] = v;
    cg::sync(block);
    if (tile.meta_group_rank() == 0) {
        v = tile.thread_rank() < tile.meta_group_size() ? sums[tile.thread_rank()] : 0;
        v = cg::reduce(tile, v, cg::plus<long long>());
        if (tile.thread_rank() == 0)
            parts[blockIdx.x] = v;
    }
    grid.sync();
    for (unsigned half = gridDim.x;
         half > 1;) { /* a tree of blocks, a barrier of the grid at each level */
        unsigned next = (half + 1) / 2;
        if (grid.thread_rank() < half - next)
            parts[grid.thread_rank()] += parts[grid.thread_rank() + next];
        grid.sync();
        half = next;
    }
}

__global__ void groups(int *scan4, int *labelled, int *together)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<4> four = cg::tiled_partition<4>(block);
    int i = threadIdx.x;
    scan4[i] = cg::exclusive_scan(four, i);
    scan4[i] +=
        1000 * four.shfl(i, 3) + 100000 * four.any(i % 4 == 2) + 200000 * four.all(i % 4 < 3);
    cg::coalesced_group here = cg::coalesced_threads();
    cg::coalesced_group same = cg::labeled_partition(here, i % 5);
    labelled[i] = cg::reduce(same, i, cg::plus<int>()) * 64 + (int)same.thread_rank();
    together[i] = -1;
    if (i % 3 == 1) {
        cg::coalesced_group few = cg::coalesced_threads();
        together[i] = (int)(few.size() * 100 + few.thread_rank());
        few.sync();
        together[i] += 10000 * few.shfl(i, 0);
    }
}

__device__ int lock_word, counted;
__global__ void locked(int *counter)
{
    bool done = false;
    while (!done)
        if (atomicCAS(&lock_word, 0, 1) == 0) {
            *(volatile int *)counter = *(volatile int *)counter + 1;
            __threadfence();
            atomicExch(&lock_word, 0);
            done = true;
        }
}

__device__ unsigned n_done;
__global__ void last_block(const int *in, long long *parts, long long *total, int n)
{
    __shared__ long long sum;
    __shared__ bool last;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    long long v = 0;
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n;
         i += (int)(gridDim.x * blockDim.x))
        v += in[i];
    atomicAdd((unsigned long long *)&sum, (unsigned long long)v);
    __syncthreads();
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&n_done, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        long long s = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            s += ((volatile long long *)parts)[b];
        *total = s;
        n_done = 0;
    }
}

#define MUST(x)                                                                                    \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL coopgroups: %s: %s\n", #x, cudaGetErrorString(e_));                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int wrong(const char *what, int i, long long got, long long want)
{
    if (got != want)
        printf("FAIL coopgroups: %s %d is %lld, not %lld\n", what, i, got, want);
    return got != want;
}

int main()
{
    int *in, *out, n = N, per_sm, device, cooperative;
    long long *parts, want = 0;
    cudaDeviceProp prop;
    MUST(cudaGetDevice(&device));
    MUST(cudaGetDeviceProperties(&prop, device));
    MUST(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
    if (!cooperative) {
        printf("FAIL coopgroups: the device has no cooperative launch\n");
        return 1;
    }
    MUST(cudaMallocManaged(&in, N * sizeof *in));
    MUST(cudaMallocManaged(&out, 4 * THREADS * sizeof *out));
    MUST(cudaMallocManaged(&parts, 4096 * sizeof *parts));
    for (int i = 0; i < N; i++)
        want += in[i] = i % 1000 - 300;
    MUST(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, sum_grid, THREADS, 0));
    int blocks = per_sm * prop.multiProcessorCount;
    void *args[] = {&in, &parts, &n};
    if (cudaLaunchCooperativeKernel((void *)sum_grid, blocks + 1, THREADS, args) !=
        cudaErrorCooperativeLaunchTooLarge) {
        printf("FAIL coopgroups: a grid that does not fit was taken\n");
        return 1;
    }
    (void)cudaGetLastError();
    blocks = blocks < 37 ? blocks : 37;
    MUST(cudaLaunchCooperativeKernel((void *)sum_grid, blocks, THREADS, args));
    MUST(cudaDeviceSynchronize());
    if (wrong("sum", 0, parts[0], want))
        return 1;

    groups<<<1, 32>>>(out, out + 32, out + 64);
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < 32; i++) {
        int scan = 0, label = 0, rank = 0;
        for (int k = i / 4 * 4; k < i; k++)
            scan += k;
        for (int k = i % 5; k < 32; k += 5) {
            label += k;
            rank += k < i;
        }
        int few = i % 3 == 1 ? 11 * 100 + i / 3 + 10000 : -1;
        if (wrong("scan", i, out[i], scan + 1000 * (i | 3) + 100000) ||
            wrong("label", i, out[32 + i], label * 64 + rank) ||
            wrong("together", i, out[64 + i], few))
            return 1;
    }
    out[0] = 0;
    locked<<<4, 64>>>(out);
    MUST(cudaDeviceSynchronize());
    if (wrong("count under a lock", 0, out[0], 256))
        return 1;
    for (int round = 0; round < 2; round++) {
        parts[2000] = -1;
        last_block<<<29, THREADS>>>(in, parts, parts + 2000, N);
        MUST(cudaDeviceSynchronize());
        if (wrong("sum by the last block", round, parts[2000], want))
            return 1;
    }
    printf("PASS coopgroups\n");
    return 0;
}

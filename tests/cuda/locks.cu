// SPDX-License-Identifier: Apache-2.0
// Waits as programs do that were not written for warps: a lock that each lane takes by itself, in
// functions that are not inlined (as with -G), lists under one lock for each bucket, and a barrier
// of the grid made of flags that are read with ld.cg. Fails if a result is wrong, and hangs if a
// lane or a block makes no progress.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL locks: line %d: %s\n", __LINE__, cudaGetErrorString(e_));                 \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define MUST(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("FAIL locks: line %d: %s\n", __LINE__, #what);                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct lock {
    int taken;
    __device__ __noinline__ int swap(int from, int to) { return atomicCAS(&taken, from, to); }
    __device__ __noinline__ void take()
    {
        while (swap(0, 1) != 0)
            ;
        __threadfence();
    }
    __device__ __noinline__ void give()
    {
        __threadfence();
        atomicExch(&taken, 0);
    }
};

__global__ void count(lock *l, int *n)
{
    l->take();
    *n = *n + 1;
    l->give();
}

struct item {
    int key;
    item *next;
};

__global__ void chain(lock *locks, item **heads, item *items, int n, int n_heads)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int at = i * 31 % n_heads;
    items[i].key = i;
    for (int lane = 0; lane < 32; lane++)
        if (threadIdx.x % 32 == lane) { // one lane at a time
            locks[at].take();
            items[i].next = heads[at];
            heads[at] = &items[i];
            locks[at].give();
        }
}

__device__ unsigned load_cg(const unsigned *p)
{
    unsigned v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

// Each block sees in round k what all wrote in round k - 1.
__global__ void rounds(unsigned *flags, int *values, int n_rounds, int *n_wrong)
{
    for (int k = 1; k <= n_rounds; k++) {
        if (threadIdx.x == 0)
            values[blockIdx.x] = k;
        __threadfence();
        __syncthreads();
        if (blockIdx.x == 0) {
            for (unsigned b = threadIdx.x + 1; b < gridDim.x; b += blockDim.x)
                while (load_cg(&flags[b]) != 2 * k - 1)
                    __threadfence_block();
            __syncthreads();
            for (unsigned b = threadIdx.x + 1; b < gridDim.x; b += blockDim.x)
                atomicExch(&flags[b], 2 * k);
        } else if (threadIdx.x == 0) {
            atomicExch(&flags[blockIdx.x], 2 * k - 1);
            while (load_cg(&flags[blockIdx.x]) != 2 * k)
                __threadfence_block();
        }
        __syncthreads();
        if (threadIdx.x == 0 && ((volatile int *)values)[(blockIdx.x + k) % gridDim.x] < k)
            atomicAdd(n_wrong, 1);
    }
}

int main(int argc, char **argv)
{
    int blocks = argc > 1 ? atoi(argv[1]) : 8, n_rounds = argc > 2 ? atoi(argv[2]) : 10;
    blocks = blocks > 32 ? 32 : blocks < 2 ? 2 : blocks;
    n_rounds = n_rounds > 50 ? 50 : n_rounds;
    lock *l;
    int *n;
    CHECK(cudaMallocManaged(&l, 101 * sizeof *l));
    CHECK(cudaMallocManaged(&n, 2 * sizeof *n));
    CHECK(cudaMemset(l, 0, 101 * sizeof *l));
    CHECK(cudaMemset(n, 0, 2 * sizeof *n));
    count<<<blocks, 64>>>(l, n);
    CHECK(cudaDeviceSynchronize());
    MUST(*n == blocks * 64);

    int n_items = blocks * 512;
    item **heads, *items;
    CHECK(cudaMallocManaged(&heads, 101 * sizeof *heads));
    CHECK(cudaMallocManaged(&items, n_items * sizeof *items));
    CHECK(cudaMemset(heads, 0, 101 * sizeof *heads));
    chain<<<blocks * 2, 256>>>(l, heads, items, n_items, 101);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> seen(n_items);
    for (int k = 0; k < 101; k++)
        for (item *i = heads[k]; i; i = i->next) {
            MUST(i->key * 31 % 101 == k);
            seen[i->key]++;
        }
    for (int k = 0; k < n_items; k++)
        MUST(seen[k] == 1);

    unsigned *flags;
    int *values, per_sm, sms;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, rounds, 64, 0));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    int grid = per_sm * sms; // as many as are there at once
    CHECK(cudaMalloc(&flags, grid * sizeof *flags));
    CHECK(cudaMalloc(&values, grid * sizeof *values));
    CHECK(cudaMemset(flags, 0, grid * sizeof *flags));
    CHECK(cudaMemset(values, 0, grid * sizeof *values));
    n[1] = 0;
    rounds<<<grid, 64>>>(flags, values, n_rounds, &n[1]);
    CHECK(cudaDeviceSynchronize());
    MUST(n[1] == 0);
    printf("PASS locks\n");
    return 0;
}

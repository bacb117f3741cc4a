// SPDX-License-Identifier: Apache-2.0
// Uses the forward progress that sm_70 and later promise: lanes of a warp that wait for one
// another, and blocks that do. Each kernel hangs on a machine that runs one side of a branch to its
// end before the other.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL progress: %s: %s\n", #call, cudaGetErrorString(e_));                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

// A spin lock that the lanes of a warp fight for; the critical section is not atomic.
__global__ void lock_spin(int *lock, volatile int *counter, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        *counter = *counter + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

// The lock is taken on one side of a branch and the wait is on the other.
__global__ void producer_lane(volatile int *slot, int *out)
{
    int lane = threadIdx.x & 31;
    if (lane == 31) {
        __threadfence();
        slot[0] = 7;
    } else {
        while (slot[0] == 0) {
        }
        out[threadIdx.x] = slot[0] + lane;
    }
}

// The same with the branches the other way about.
__global__ void consumer_first(volatile int *slot, int *out)
{
    int lane = threadIdx.x & 31;
    if (lane != 0) {
        while (slot[0] == 0) {
        }
        out[threadIdx.x] = slot[0] + lane;
    } else {
        __threadfence();
        slot[0] = 9;
    }
}

// A token goes round the lanes of all warps, backwards.
__global__ void token_ring(volatile int *turn, int *order)
{
    int me = blockDim.x - 1 - threadIdx.x;
    while (*turn != me) {
    }
    order[me] = threadIdx.x;
    __threadfence();
    *turn = me + 1;
}

// Decoupled look-back: each block waits for the one before it, taking its number by an atomic.
__global__ void look_back(int *ticket, volatile int *flag, volatile int *prefix, const int *in,
                          int *out)
{
    __shared__ int id, before;
    if (threadIdx.x == 0)
        id = atomicAdd(ticket, 1);
    __syncthreads();
    int v = in[id * blockDim.x + threadIdx.x], total = v;
    for (int d = 16; d > 0; d >>= 1)
        total += __shfl_xor_sync(0xffffffff, total, d);
    if (threadIdx.x == 0) {
        before = 0;
        if (id > 0) {
            while (flag[id - 1] == 0) {
            }
            __threadfence();
            before = prefix[id - 1];
        }
        prefix[id] = before + total;
        __threadfence();
        flag[id] = 1;
    }
    __syncthreads();
    int s = v;
    for (int d = 1; d < 32; d <<= 1) {
        int u = __shfl_up_sync(0xffffffff, s, d);
        if (threadIdx.x >= d)
            s += u;
    }
    out[id * blockDim.x + threadIdx.x] = before + s;
}

// A barrier over the grid made of an atomic counter; all blocks are resident together.
__global__ void grid_barrier(unsigned *count, int *cells, int rounds)
{
    for (int r = 1; r <= rounds; r++) {
        if (threadIdx.x == 0)
            cells[blockIdx.x * 2 + (r & 1)] =
                cells[(blockIdx.x + 1) % gridDim.x * 2 + (~r & 1)] + 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(count, 1);
            while (atomicAdd(count, 0) < (unsigned)r * gridDim.x) {
            }
            __threadfence();
        }
        __syncthreads();
    }
}

// A warp of lanes that each count a different number of times, with a function call in the loop.
__device__ __noinline__ int collatz(int n, int *depth)
{
    ++*depth;
    return n % 2 ? 3 * n + 1 : n / 2;
}
__global__ void uneven(int *out)
{
    int n = blockIdx.x * blockDim.x + threadIdx.x + 1, depth = 0;
    while (n != 1)
        n = collatz(n, &depth);
    out[blockIdx.x * blockDim.x + threadIdx.x] = depth;
}

static void fail(const char *why)
{
    printf("FAIL progress: %s\n", why);
    exit(1);
}

int main()
{
    int *d, *e;
    CHECK(cudaMalloc(&d, 1 << 16));
    CHECK(cudaMalloc(&e, 1 << 16));
    std::vector<int> h(1 << 14);
    auto zero = [&] {
        CHECK(cudaMemset(d, 0, 1 << 16));
        CHECK(cudaMemset(e, 0, 1 << 16));
    };
    auto get = [&](int *p) {
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(h.data(), p, 1 << 16, cudaMemcpyDeviceToHost));
    };

    zero();
    lock_spin<<<4, 96>>>(d, d + 32, 3);
    get(d);
    if (h[32] != 4 * 96 * 3)
        fail("spin lock");
    zero();
    producer_lane<<<1, 32>>>(d, e);
    get(e);
    for (int i = 0; i < 31; i++)
        if (h[i] != 7 + i)
            fail("producer lane");
    zero();
    consumer_first<<<1, 64>>>(d, e);
    get(e);
    for (int i = 0; i < 64; i++)
        if (i % 32 && h[i] != 9 + i % 32)
            fail("consumer first");
    zero();
    token_ring<<<1, 128>>>(d, e);
    get(e);
    for (int i = 0; i < 128; i++)
        if (h[i] != 127 - i)
            fail("token ring");
    zero();
    int *in, *out;
    const int n = 32 * 400;
    CHECK(cudaMalloc(&in, n * 4));
    CHECK(cudaMalloc(&out, n * 4));
    for (int i = 0; i < n; i++)
        h[i] = i % 97 - 11;
    std::vector<int> want(h);
    CHECK(cudaMemcpy(in, h.data(), n * 4, cudaMemcpyHostToDevice));
    look_back<<<400, 32>>>(d, d + 64, d + 1024, in, out);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(h.data(), out, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0, s = 0; i < n; i++)
        if (h[i] != (s += want[i]))
            fail("look-back");
    zero();
    grid_barrier<<<24, 64>>>((unsigned *)d, e, 25);
    get(e);
    for (int i = 0; i < 24; i++)
        if (h[i * 2 + 1] != 25)
            fail("grid barrier");
    zero();
    uneven<<<4, 64>>>(d);
    get(d);
    for (int i = 0; i < 256; i++) {
        int steps = 0;
        for (int k = i + 1; k != 1; k = k % 2 ? 3 * k + 1 : k / 2)
            steps++;
        if (h[i] != steps)
            fail("uneven loops");
    }
    printf("PASS progress\n");
    return 0;
}

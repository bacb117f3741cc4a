// SPDX-License-Identifier: Apache-2.0
// Lets blocks work on the same memory without waiting for each other: sums of doubles by
// compare-and-swap, a table with linear probing, lists pushed to by compare-and-swap, a reduction
// whose last block adds up what the others left, work taken from a counter. Some kernels have names
// that wattshare itself gives to what it makes of others. Fails if a result differs from the CPU's.
#include <vector>
#include "work.cuh"
#define WORK "lockfree"

__device__ double add(double *a, double v)
{
    unsigned long long *p = (unsigned long long *)a, old = *p, seen;
    do {
        seen = old;
        old = atomicCAS(p, seen, (unsigned long long)__double_as_longlong(v + __longlong_as_double((long long)seen)));
    } while (seen != old);
    return __longlong_as_double((long long)old);
}

__global__ void sums(double *bins, int n_bins, const int *in, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        add(&bins[in[i] % n_bins], in[i]);
}

struct entry {
    unsigned key, value;
};
enum { EMPTY = 0xffffffffu };

__global__ void insert(entry *table, unsigned size, const int *keys, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned key = (unsigned)keys[i], at = key * 2654435761u & (size - 1);
    for (;;) {
        unsigned was = atomicCAS(&table[at].key, (unsigned)EMPTY, key);
        if (was == EMPTY || was == key) {
            atomicAdd(&table[at].value, 1u);
            return;
        }
        at = (at + 1) & (size - 1);
    }
}

__global__ void push(int *heads, int n_heads, int *next, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int *head = &heads[i % n_heads], old = *head, seen;
    do {
        seen = old;
        next[i] = seen;
        __threadfence();
        old = atomicCAS(head, seen, i);
    } while (old != seen);
}

__global__ void last_adds(const int *in, int n, long long *parts, unsigned *n_done, long long *sum)
{
    __shared__ long long mine;
    __shared__ bool last;
    if (!threadIdx.x)
        mine = 0;
    __syncthreads();
    long long own = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        own += in[i];
    atomicAdd((unsigned long long *)&mine, (unsigned long long)own);
    __syncthreads();
    if (!threadIdx.x) {
        ((volatile long long *)parts)[blockIdx.x] = mine;
        __threadfence();
        last = atomicInc(n_done, gridDim.x) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && !threadIdx.x) {
        long long all = 0;
        for (unsigned b = 0; b < gridDim.x; b++)
            all += ((volatile long long *)parts)[b];
        *sum = all;
        *n_done = 0;
    }
}

__global__ void take(int *next, int n, int *out)
{
    __shared__ int mine;
    for (;;) {
        if (!threadIdx.x)
            mine = atomicAdd(next, 1);
        __syncthreads();
        int at = mine;
        __syncthreads();
        if (at >= n)
            break;
        out[at * blockDim.x + threadIdx.x] += at;
    }
}

// What wattshare makes of `named` has these names, where it can.
extern "C" {
#define NAMED(name, v)                                                                             \
    __global__ void name(int *out)                                                                 \
    {                                                                                              \
        out[blockIdx.x * blockDim.x + threadIdx.x] += (v) * (int)(blockIdx.x + 1);                 \
    }
NAMED(named, 1)
NAMED(named$slice, 20)
NAMED(named$ticket, 300)
NAMED(named$persistent, 4000)
NAMED(named$fence, 50000)
NAMED(named$fuse, 600000)
NAMED(named$fence$persistent, 7000000)
}

int main(int argc, char **argv)
{
    const int n = 1 << 14, n_bins = 7, n_heads = 13, blocks = 24, threads = 128;
    unsigned size = 1 << 13;
    std::vector<int> in(n);
    std::vector<double> want_bins(n_bins, 0), bins(n_bins);
    std::vector<unsigned> want_keys(2003, 0);
    long long want_sum = 0, sum;
    for (int i = 0; i < n; i++) {
        in[i] = (int)((i * 2654435761u >> 7) % 2003);
        want_bins[in[i] % n_bins] += in[i];
        want_keys[in[i]]++;
        want_sum += in[i];
    }
    int *d_in, *d_heads, *d_next, *d_counter, *d_out;
    double *d_bins;
    entry *d_table;
    long long *d_parts;
    unsigned *d_done;
    CHECK(cudaMalloc(&d_in, n * sizeof *d_in));
    CHECK(cudaMemcpy(d_in, in.data(), n * sizeof *d_in, cudaMemcpyHostToDevice));

    CHECK(cudaMalloc(&d_bins, n_bins * sizeof *d_bins));
    CHECK(cudaMemset(d_bins, 0, n_bins * sizeof *d_bins));
    sums<<<blocks, threads>>>(d_bins, n_bins, d_in, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(bins.data(), d_bins, n_bins * sizeof *d_bins, cudaMemcpyDeviceToHost));
    for (int b = 0; b < n_bins; b++) // whole numbers: the order doesn't show
        if (bins[b] != want_bins[b])
            return work_fail(WORK, "bin %d is %g, not %g", b, bins[b], want_bins[b]);

    std::vector<entry> table(size);
    CHECK(cudaMalloc(&d_table, size * sizeof *d_table));
    for (auto &e : table)
        e = {(unsigned)EMPTY, 0};
    CHECK(cudaMemcpy(d_table, table.data(), size * sizeof *d_table, cudaMemcpyHostToDevice));
    insert<<<n / threads, threads>>>(d_table, size, d_in, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(table.data(), d_table, size * sizeof *d_table, cudaMemcpyDeviceToHost));
    for (auto &e : table)
        if (e.key != EMPTY) {
            if (e.key >= want_keys.size() || want_keys[e.key] != e.value)
                return work_fail(WORK, "key %u: %u of it", e.key, e.value);
            want_keys[e.key] = 0;
        }
    for (unsigned k = 0; k < want_keys.size(); k++)
        if (want_keys[k])
            return work_fail(WORK, "key %u isn't there", k);

    std::vector<int> heads(n_heads, -1), next(n), seen(n, 0);
    CHECK(cudaMalloc(&d_heads, n_heads * sizeof *d_heads));
    CHECK(cudaMalloc(&d_next, n * sizeof *d_next));
    CHECK(cudaMemset(d_heads, 0xff, n_heads * sizeof *d_heads));
    push<<<n / threads, threads>>>(d_heads, n_heads, d_next, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(heads.data(), d_heads, n_heads * sizeof *d_heads, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(next.data(), d_next, n * sizeof *d_next, cudaMemcpyDeviceToHost));
    for (int h = 0; h < n_heads; h++)
        for (int i = heads[h]; i >= 0; i = next[i])
            if (i >= n || i % n_heads != h || seen[i]++)
                return work_fail(WORK, "%d in list %d", i, h);
    for (int i = 0; i < n; i++)
        if (!seen[i])
            return work_fail(WORK, "%d isn't in a list", i);

    CHECK(cudaMalloc(&d_parts, (blocks + 1) * sizeof *d_parts));
    CHECK(cudaMalloc(&d_done, sizeof *d_done));
    CHECK(cudaMemset(d_done, 0, sizeof *d_done));
    for (int round = 0; round < 2; round++) {
        last_adds<<<blocks, threads>>>(d_in, n, d_parts, d_done, d_parts + blocks);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(&sum, d_parts + blocks, sizeof sum, cudaMemcpyDeviceToHost));
        if (sum != want_sum)
            return work_fail(WORK, "the last block has %lld, not %lld", sum, want_sum);
    }

    const int pieces = 57;
    std::vector<int> out(pieces * threads);
    CHECK(cudaMalloc(&d_counter, sizeof *d_counter));
    CHECK(cudaMalloc(&d_out, out.size() * sizeof *d_out));
    CHECK(cudaMemset(d_counter, 0, sizeof *d_counter));
    CHECK(cudaMemset(d_out, 0, out.size() * sizeof *d_out));
    take<<<blocks, threads>>>(d_counter, pieces, d_out);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof *d_out, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < out.size(); i++)
        if (out[i] != (int)(i / threads))
            return work_fail(WORK, "piece %zu was done as %d", i / threads, out[i]);

    CHECK(cudaMemset(d_out, 0, out.size() * sizeof *d_out));
    named<<<pieces, threads>>>(d_out);
    named$slice<<<pieces, threads>>>(d_out);
    named$ticket<<<pieces, threads>>>(d_out);
    named$persistent<<<pieces, threads>>>(d_out);
    named$fence<<<pieces, threads>>>(d_out);
    named$fuse<<<pieces, threads>>>(d_out);
    named$fence$persistent<<<pieces, threads>>>(d_out);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof *d_out, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < out.size(); i++)
        if (out[i] != 7654321 * (int)(i / threads + 1))
            return work_fail(WORK, "by seven kernels: %d", out[i]);
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Sorts with networks in shared memory and across blocks, with a merge sort whose ranks come from
// binary searches, and with a radix sort by ballots and histograms; keys with values. Fails if a
// result differs from std::stable_sort's.
#include <algorithm>
#include <vector>
#include "work.cuh"
#define WORK "sorting"

typedef unsigned u32;
enum { SHARE = 512 };

__device__ __forceinline__ void order(u32 &ka, u32 &va, u32 &kb, u32 &vb, bool up)
{
    if ((ka > kb) == up) {
        u32 k = ka, v = va;
        ka = kb;
        va = vb;
        kb = k;
        vb = v;
    }
}

__global__ void bitonic_shared(u32 *keys, u32 *values, u32 n)
{
    __shared__ u32 k[SHARE], v[SHARE];
    u32 base = blockIdx.x * SHARE, t = threadIdx.x;
    for (u32 i = t; i < SHARE; i += blockDim.x) {
        k[i] = keys[base + i];
        v[i] = values[base + i];
    }
    for (u32 size = 2; size <= SHARE; size *= 2)
        for (u32 stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            u32 p = 2 * t - (t & (stride - 1));
            order(k[p], v[p], k[p + stride], v[p + stride], ((base + p) & size) == 0);
        }
    __syncthreads();
    for (u32 i = t; i < SHARE; i += blockDim.x) {
        keys[base + i] = k[i];
        values[base + i] = v[i];
    }
}

__global__ void bitonic_step(u32 *keys, u32 *values, u32 size, u32 stride)
{
    u32 t = blockIdx.x * blockDim.x + threadIdx.x, p = 2 * t - (t & (stride - 1));
    order(keys[p], values[p], keys[p + stride], values[p + stride], (p & size) == 0);
}

template <bool UPPER> __device__ u32 rank(const u32 *keys, u32 n, u32 key)
{
    u32 lo = 0, hi = n;
    while (lo < hi) {
        u32 mid = (lo + hi) / 2;
        if (UPPER ? keys[mid] <= key : keys[mid] < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

__global__ void merge(u32 *ko, u32 *vo, const u32 *ki, const u32 *vi, u32 n, u32 width)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    u32 pair = i / (2 * width) * 2 * width, middle = min(pair + width, n), end = min(pair + 2 * width, n), to;
    if (i < middle)
        to = i + rank<false>(ki + middle, end - middle, ki[i]);
    else
        to = pair + (i - middle) + rank<true>(ki + pair, middle - pair, ki[i]);
    ko[to] = ki[i];
    vo[to] = vi[i];
}

// One bit: where it is 0 first. Stable: ranks by ballots in the warp, then over warps and blocks.
__global__ void count_zeros(const u32 *keys, u32 *zeros, u32 n, int bit)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    int zero = i < n && !(keys[i] >> bit & 1);
    int all = __syncthreads_count(zero);
    if (threadIdx.x == 0)
        zeros[blockIdx.x] = all;
}

__global__ void split(u32 *ko, u32 *vo, const u32 *ki, const u32 *vi, const u32 *before, u32 total, u32 n, int bit)
{
    __shared__ u32 warps[32];
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 mask = __ballot_sync(0xffffffff, i < n && !(ki[i] >> bit & 1)), below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    if (lane == 0)
        warps[warp] = __popc(mask);
    __syncthreads();
    u32 zeros = before[blockIdx.x] + __popc(mask & below);
    for (u32 w = 0; w < warp; w++)
        zeros += warps[w];
    if (i >= n)
        return;
    u32 to = mask >> lane & 1 ? zeros : total + i - zeros;
    ko[to] = ki[i];
    vo[to] = vi[i];
}

static int check(const char *what, u32 *dk, u32 *dv, const std::vector<u32> &keys, size_t n, bool stable)
{
    std::vector<u32> k(n), v(n), index(n);
    CHECK(cudaMemcpy(k.data(), dk, 4 * n, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(v.data(), dv, 4 * n, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < n; i++)
        index[i] = i;
    std::stable_sort(index.begin(), index.end(), [&](u32 a, u32 b) { return keys[a] < keys[b]; });
    std::vector<bool> seen(n);
    for (size_t i = 0; i < n; i++) {
        if (k[i] != keys[index[i]] || v[i] >= n || seen[v[i]] || keys[v[i]] != k[i] || (stable && v[i] != index[i]))
            return work_fail(WORK, "%s: [%zu] is %u, %u", what, i, k[i], v[i]);
        seen[v[i]] = true;
    }
    return 0;
}

int main()
{
    const u32 n = 4096, odd = 3001;
    std::vector<u32> keys(n), values(n);
    u32 *k[2], *v[2], *sums;
    for (u32 i = 0; i < n; i++) {
        keys[i] = work_random(i) & 0xfff;
        values[i] = i;
    }
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&k[i], 4 * n));
        CHECK(cudaMalloc(&v[i], 4 * n));
    }
    CHECK(cudaMalloc(&sums, 4 * 64));
    auto reset = [&] {
        CHECK(cudaMemcpy(k[0], keys.data(), 4 * n, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(v[0], values.data(), 4 * n, cudaMemcpyHostToDevice));
    };
    reset();
    bitonic_shared<<<n / SHARE, SHARE / 2>>>(k[0], v[0], n);
    for (u32 size = 2 * SHARE; size <= n; size *= 2)
        for (u32 stride = size / 2; stride > 0; stride /= 2)
            bitonic_step<<<n / 512, 256>>>(k[0], v[0], size, stride);
    CHECK_LAUNCH();
    if (check("network", k[0], v[0], keys, n, false))
        return 1;
    reset();
    int at = 0;
    for (u32 width = 1; width < odd; width *= 2, at ^= 1)
        merge<<<(odd + 127) / 128, 128>>>(k[!at], v[!at], k[at], v[at], odd, width);
    CHECK_LAUNCH();
    if (check("merge", k[at], v[at], keys, odd, true))
        return 1;
    reset();
    at = 0;
    for (int bit = 0; bit < 12; bit++, at ^= 1) {
        u32 blocks = (odd + 255) / 256, count[64], total = 0;
        count_zeros<<<blocks, 256>>>(k[at], sums, odd, bit);
        CHECK(cudaMemcpy(count, sums, 4 * blocks, cudaMemcpyDeviceToHost));
        for (u32 b = 0; b < blocks; b++) {
            u32 c = count[b];
            count[b] = total;
            total += c;
        }
        CHECK(cudaMemcpy(sums, count, 4 * blocks, cudaMemcpyHostToDevice));
        split<<<blocks, 256>>>(k[!at], v[!at], k[at], v[at], sums, total, odd, bit);
    }
    CHECK_LAUNCH();
    if (check("radix", k[at], v[at], keys, odd, true))
        return 1;
    for (int i = 0; i < 2; i++) {
        CHECK(cudaFree(k[i]));
        CHECK(cudaFree(v[i]));
    }
    CHECK(cudaFree(sums));
    return work_pass(WORK);
}

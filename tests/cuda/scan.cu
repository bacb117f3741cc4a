// SPDX-License-Identifier: Apache-2.0
// Computes exclusive prefix sums of any length: blocks scan 512 elements each in dynamic shared
// memory, and the blocks' sums are scanned by the same kernel, recursively, and added. A scan of
// warps by shuffles must give the same. Fails if a sum differs from the CPU's.
#include <vector>
#include "work.cuh"
#define WORK "scan"

enum { HALF = 256, SPAN = 2 * HALF };

__global__ void scan_block(const unsigned *in, unsigned *out, unsigned *sums, int n)
{
    extern __shared__ unsigned s[];
    int t = threadIdx.x, base = blockIdx.x * SPAN, step = 1;
    s[t] = base + t < n ? in[base + t] : 0;
    s[t + HALF] = base + t + HALF < n ? in[base + t + HALF] : 0;
    for (int d = HALF; d > 0; d >>= 1, step *= 2) {
        __syncthreads();
        if (t < d)
            s[step * (2 * t + 2) - 1] += s[step * (2 * t + 1) - 1];
    }
    if (t == 0) {
        sums[blockIdx.x] = s[SPAN - 1];
        s[SPAN - 1] = 0;
    }
    for (int d = 1; d <= HALF; d *= 2) {
        step >>= 1;
        __syncthreads();
        if (t < d) {
            unsigned left = s[step * (2 * t + 1) - 1];
            s[step * (2 * t + 1) - 1] = s[step * (2 * t + 2) - 1];
            s[step * (2 * t + 2) - 1] += left;
        }
    }
    __syncthreads();
    if (base + t < n)
        out[base + t] = s[t];
    if (base + t + HALF < n)
        out[base + t + HALF] = s[t + HALF];
}

__global__ void add_sums(unsigned *out, const unsigned *sums, int n)
{
    int i = blockIdx.x * SPAN + threadIdx.x;
    for (int k = 0; k < 2; k++, i += HALF)
        if (i < n)
            out[i] += sums[blockIdx.x];
}

// Inclusive scan within 1024 elements, a warp at a time.
__global__ void scan_warps(const unsigned *in, unsigned *out)
{
    __shared__ unsigned totals[32];
    unsigned v = in[threadIdx.x], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int d = 1; d < 32; d *= 2) {
        unsigned left = __shfl_up_sync(0xffffffff, v, d);
        if (lane >= d)
            v += left;
    }
    if (lane == 31)
        totals[warp] = v;
    __syncthreads();
    if (warp == 0) {
        unsigned t = totals[lane];
        for (int d = 1; d < 32; d *= 2) {
            unsigned left = __shfl_up_sync(0xffffffff, t, d);
            if (lane >= d)
                t += left;
        }
        totals[lane] = t;
    }
    __syncthreads();
    out[threadIdx.x] = v + (warp ? totals[warp - 1] : 0);
}

static void scan(const unsigned *in, unsigned *out, int n)
{
    int blocks = (n + SPAN - 1) / SPAN;
    unsigned *sums, *scanned;
    CHECK(cudaMalloc(&sums, blocks * sizeof *sums));
    CHECK(cudaMalloc(&scanned, blocks * sizeof *scanned));
    scan_block<<<blocks, HALF, SPAN * sizeof(unsigned)>>>(in, out, sums, n);
    CHECK_LAUNCH();
    if (blocks > 1) {
        scan(sums, scanned, blocks);
        add_sums<<<blocks, HALF>>>(out, scanned, n);
        CHECK_LAUNCH();
    }
    CHECK(cudaFree(sums));
    CHECK(cudaFree(scanned));
}

int main()
{
    static const int sizes[] = {1, 511, 512, 513, 5000, 300001};
    for (int n : sizes) {
        std::vector<unsigned> in(n), out(n);
        unsigned *din, *dout, sum = 0;
        for (int i = 0; i < n; i++)
            in[i] = work_random(i) % 1000;
        CHECK(cudaMalloc(&din, n * sizeof(unsigned)));
        CHECK(cudaMalloc(&dout, n * sizeof(unsigned)));
        CHECK(cudaMemcpy(din, in.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
        scan(din, dout, n);
        CHECK(cudaMemcpy(out.data(), dout, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; sum += in[i++])
            if (out[i] != sum)
                return work_fail(WORK, "%d elements: [%d] is %u, not %u", n, i, out[i], sum);
        if (n >= 1024) {
            scan_warps<<<1, 1024>>>(din, dout);
            CHECK(cudaMemcpy(out.data(), dout, 4096, cudaMemcpyDeviceToHost));
            sum = 0;
            for (int i = 0; i < 1024; i++)
                if (out[i] != (sum += in[i]))
                    return work_fail(WORK, "by warps: [%d] is %u, not %u", i, out[i], sum);
        }
        CHECK(cudaFree(din));
        CHECK(cudaFree(dout));
    }
    return work_pass(WORK);
}

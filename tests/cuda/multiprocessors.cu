// SPDX-License-Identifier: Apache-2.0
// Makes its grids by the number of multiprocessors, as persistent and cooperative kernels do. Each
// block of a grid of that size, times what fits on one multiprocessor, must be resident at once, or
// grid.sync() never ends. Fails if more SMs are used than were announced.
#include <cooperative_groups.h>
#include "work.cuh"
#define WORK "multiprocessors"
namespace cg = cooperative_groups;

__global__ void persistent(const int *in, long long *sums, int n, unsigned *seen)
{
    unsigned sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    if (!threadIdx.x)
        atomicOr(&seen[sm / 32], 1u << (sm % 32));
    long long sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    atomicAdd((unsigned long long *)sums, (unsigned long long)sum);
}

__global__ void prefix(int *v, int n) // doubling steps, a grid-wide barrier between them
{
    cg::grid_group grid = cg::this_grid();
    int i = (int)grid.thread_rank();
    for (int step = 1; step < n; step *= 2) {
        int add = i >= step && i < n ? v[i - step] : 0;
        grid.sync();
        if (i < n)
            v[i] += add;
        grid.sync();
    }
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 64, 1 << 12) * 256, sms, device, per_sm, cooperative;
    cudaDeviceProp prop;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaGetDeviceProperties(&prop, device));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    CHECK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device));
    if (sms < 1 || sms != prop.multiProcessorCount)
        return work_fail(WORK, "%d multiprocessors, or %d", sms, prop.multiProcessorCount);
    int *in = (int *)work_alloc(sizeof *in * n), *d_in;
    long long *d_sum, sum, want = 0;
    unsigned *d_seen, seen[8], used = 0;
    for (int i = 0; i < n; i++)
        want += in[i] = i * 7 % 1001 - 500;
    CHECK(cudaMalloc(&d_in, sizeof *in * n));
    CHECK(cudaMalloc(&d_sum, sizeof sum));
    CHECK(cudaMalloc(&d_seen, sizeof seen));
    CHECK(cudaMemcpy(d_in, in, sizeof *in * n, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_sum, 0, sizeof sum));
    CHECK(cudaMemset(d_seen, 0, sizeof seen));
    persistent<<<4 * sms, 128>>>(d_in, d_sum, n, d_seen);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(&sum, d_sum, sizeof sum, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(seen, d_seen, sizeof seen, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 8; i++)
        used += (unsigned)__builtin_popcount(seen[i]);
    if (sum != want || used < 1 || used > (unsigned)sms)
        return work_fail(WORK, "sum %lld, not %lld, on %u of %d multiprocessors", sum, want, used, sms);
    if (cooperative) {
        CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, prefix, 64, 0));
        int blocks = sms * per_sm < 64 ? sms * per_sm : 64, m = blocks * 64;
        int *v = (int *)work_alloc(sizeof *v * m), *d_v;
        for (int i = 0; i < m; i++)
            v[i] = i % 13 - 6;
        CHECK(cudaMalloc(&d_v, sizeof *v * m));
        CHECK(cudaMemcpy(d_v, v, sizeof *v * m, cudaMemcpyHostToDevice));
        void *args[] = {&d_v, &m};
        CHECK(cudaLaunchCooperativeKernel((const void *)prefix, dim3(blocks), dim3(64), args, 0, 0));
        int *got = (int *)work_alloc(sizeof *got * m), running = 0;
        CHECK(cudaMemcpy(got, d_v, sizeof *got * m, cudaMemcpyDeviceToHost));
        for (int i = 0; i < m; i++)
            if (got[i] != (running += v[i]))
                return work_fail(WORK, "prefix %d: %d, not %d", i, got[i], running);
        void *more[] = {&d_v, &m};
        if (cudaLaunchCooperativeKernel((const void *)prefix, dim3(sms * per_sm + 1), dim3(64), more, 0,
                                        0) != cudaErrorCooperativeLaunchTooLarge)
            return work_fail(WORK, "a cooperative grid of more blocks than fit is not refused");
        (void)cudaGetLastError();
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaFree(d_v));
        free(v);
        free(got);
    }
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_sum));
    CHECK(cudaFree(d_seen));
    free(in);
    return work_pass(WORK);
}

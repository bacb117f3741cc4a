// SPDX-License-Identifier: Apache-2.0
// Launches kernels as tuned programs do: as many blocks as the GPU holds at once (occupancy times
// multiprocessors), each working until everything is done. One kernel is bound by arithmetic, one
// by memory, one by barriers, one by atomics. Fails if a result is wrong or if the times that
// events measure do not grow with the work.
#include <math.h>
#include <vector>
#include "work.cuh"
#define WORK "fillgpu"

__global__ void compute(float *v, int n, int steps)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float x = v[i];
        for (int k = 0; k < steps; k++)
            x = fmaf(x, 0.999f, 0.001f);
        v[i] = x;
    }
}

__global__ void gather(const float *a, const int *at, float *out, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = a[at[i]] + a[i];
}

template <int BLOCK> __global__ void sums(const int *v, int n, unsigned long long *total)
{
    __shared__ int s[BLOCK];
    int mine = 0;
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
        mine += v[i];
    s[threadIdx.x] = mine;
    __syncthreads();
    for (int half = BLOCK / 2; half; half /= 2) {
        if (threadIdx.x < half)
            s[threadIdx.x] += s[threadIdx.x + half];
        __syncthreads();
    }
    if (!threadIdx.x)
        atomicAdd(total, (unsigned long long)s[0]);
}

__global__ void count(const int *v, int n, int *bins)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[v[i] & 63], 1);
}

template <typename K> static int full(K kernel, int block)
{
    int device, sms, per_sm;
    CHECK(cudaGetDevice(&device));
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, block, 0));
    if (sms < 1 || per_sm < 1) {
        work_fail(WORK, "%d SMs, %d blocks on each", sms, per_sm);
        exit(1);
    }
    return sms * per_sm;
}

static float timed(void (*launch)(void *), void *arg)
{
    cudaEvent_t a, b;
    float ms;
    CHECK(cudaEventCreate(&a));
    CHECK(cudaEventCreate(&b));
    CHECK(cudaEventRecord(a));
    launch(arg);
    CHECK_LAUNCH();
    CHECK(cudaEventRecord(b));
    CHECK(cudaEventSynchronize(b));
    CHECK(cudaEventElapsedTime(&ms, a, b));
    CHECK(cudaEventDestroy(a));
    CHECK(cudaEventDestroy(b));
    return ms;
}

struct steps {
    float *v;
    int n, steps;
};
static void launch_compute(void *arg)
{
    steps *s = (steps *)arg;
    compute<<<full(compute, 128), 128>>>(s->v, s->n, s->steps);
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 20000, 1 << 22);
    std::vector<float> a(n), got(n);
    std::vector<int> v(n), at(n);
    for (int i = 0; i < n; i++) {
        a[i] = (float)(i % 1000) / 500;
        v[i] = (int)((unsigned)i * 2654435761u >> 20);
        at[i] = (int)((long long)i * 7919 % n);
    }
    float *d_a, *d_out;
    int *d_v, *d_at, *d_bins;
    unsigned long long *d_total, total, sum = 0;
    CHECK(cudaMalloc(&d_a, n * sizeof(float)));
    CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    CHECK(cudaMalloc(&d_v, n * sizeof(int)));
    CHECK(cudaMalloc(&d_at, n * sizeof(int)));
    CHECK(cudaMalloc(&d_bins, 64 * sizeof(int)));
    CHECK(cudaMalloc(&d_total, sizeof total));
    CHECK(cudaMemcpy(d_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_v, v.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_at, at.data(), n * sizeof(int), cudaMemcpyHostToDevice));

    gather<<<full(gather, 256), 256>>>(d_a, d_at, d_out, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (got[i] != a[at[i]] + a[i])
            return work_fail(WORK, "gather: element %d is %g", i, got[i]);

    CHECK(cudaMemset(d_total, 0, sizeof total));
    CHECK(cudaMemset(d_bins, 0, 64 * sizeof(int)));
    sums<256><<<full(sums<256>, 256), 256>>>(d_v, n, d_total);
    count<<<full(count, 192), 192>>>(d_v, n, d_bins);
    CHECK_LAUNCH();
    int bins[64], want[64] = {0};
    CHECK(cudaMemcpy(&total, d_total, sizeof total, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(bins, d_bins, sizeof bins, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        sum += v[i];
        want[v[i] & 63]++;
    }
    if (total != sum)
        return work_fail(WORK, "sum %llu, not %llu", total, sum);
    for (int i = 0; i < 64; i++)
        if (bins[i] != want[i])
            return work_fail(WORK, "bin %d has %d, not %d", i, bins[i], want[i]);

    steps few = {d_a, n, 40}, many = {d_a, n, 400};
    float t_few = timed(launch_compute, &few), t_many = timed(launch_compute, &many);
    CHECK(cudaMemcpy(got.data(), d_a, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        float x = a[i];
        for (int k = 0; k < 440; k++)
            x = fmaf(x, 0.999f, 0.001f);
        if (got[i] != x)
            return work_fail(WORK, "compute: element %d is %.9g, not %.9g", i, got[i], x);
    }
    if (!(t_few > 0 && t_many > t_few))
        return work_fail(WORK, "40 steps took %g ms, 400 %g ms", t_few, t_many);
    CHECK(cudaFree(d_a));
    CHECK(cudaFree(d_out));
    CHECK(cudaFree(d_v));
    CHECK(cudaFree(d_at));
    CHECK(cudaFree(d_bins));
    CHECK(cudaFree(d_total));
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Uses relocatable device code from two files (nvcc -rdc=true): functions, function pointers,
// constants and variables across files, static things of equal names, templates that both files
// instantiate, dynamic shared memory. Fails if a result is wrong.
#include "rdc.cuh"
#include "work.cuh"
#define WORK "rdc"

static __device__ int secret = 11;
__constant__ float scale[4] = {1, 2, 3, 4};

__global__ void run(const float *x, float *y, int n)
{
    extern __shared__ float tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n) {
        float v = mix(tile[threadIdx.x], i);
        y[i] = ops[i % 3](v) + total + (float)pairs[i & 1].b;
    }
}

static __global__ void own(float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += secret;
}

static float expected(float x, int i, const float *factors, int sum)
{
    float v = x * factors[i & 3] + 22;
    v = i % 3 == 0 ? 2 * v : i % 3 == 1 ? v + 3 : -v;
    return v + sum + (i & 1 ? 0.25f : 0.5f) + 11 + 22;
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 8, 4096) * 1024;
    long iterations = work_arg(argc, argv, 2, 1, 1000);
    size_t bytes = n * sizeof(float), size;
    float *x = (float *)work_alloc(bytes), *y = (float *)work_alloc(bytes), *dx, *dy;
    float factors[4] = {1, 2, 3, 4};
    void *address;
    CHECK(cudaMalloc(&dx, bytes));
    CHECK(cudaMalloc(&dy, bytes));
    CHECK(cudaGetSymbolSize(&size, pairs));
    CHECK(cudaGetSymbolAddress(&address, total));
    if (size != sizeof(pair) * 2)
        return work_fail(WORK, "pairs has %zu bytes", size);
    for (long k = 0; k < iterations; k++) {
        int sum = 5 + (int)k;
        for (int i = 0; i < n; i++)
            x[i] = (float)(work_random(i + k) % 1000);
        for (int i = 0; k && i < 4; i++)
            factors[i] = (float)(i + k);
        CHECK(cudaMemcpyToSymbol(scale, factors, sizeof factors));
        CHECK(cudaMemcpy(address, &sum, sizeof sum, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(dx, x, bytes, cudaMemcpyHostToDevice));
        run<<<(n + 127) / 128, 128, 128 * sizeof(float)>>>(dx, dy, n);
        own<<<(n + 127) / 128, 128>>>(dy, n);
        if (part_run(dx, dy, n))
            return work_fail(WORK, "the second file's launches");
        CHECK(cudaMemcpy(y, dy, bytes, cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++)
            if (y[i] != expected(x[i], i, factors, sum))
                return work_fail(WORK, "y[%d] is %g, not %g", i, y[i],
                                 expected(x[i], i, factors, sum));
        CHECK(cudaMemcpy(y, dx, bytes, cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++)
            if (y[i] != 8)
                return work_fail(WORK, "the template made %g, not 8", y[i]);
    }
    int mine = 0;
    CHECK(cudaMemcpyFromSymbol(&mine, secret, sizeof mine));
    if (mine != 11 || part_private_value() != 22)
        return work_fail(WORK, "static variables are %d and %d, not 11 and 22", mine,
                         part_private_value());
    cudaFuncAttributes a;
    CHECK(cudaFuncGetAttributes(&a, run));
    CHECK(cudaFree(dx));
    CHECK(cudaFree(dy));
    free(x);
    free(y);
    return work_pass(WORK);
}

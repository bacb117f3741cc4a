// SPDX-License-Identifier: Apache-2.0
// Computes y = a x + y with a in a symbol: copies and addresses of symbols, initialised variables,
// attributes, copies from device to device, an explicit cudaLaunchKernel(). Fails if a result is
// wrong or if a wrong call does not give its error.
#include "work.cuh"
#define WORK "saxpy"

__constant__ float factor = 3.0f;
__device__ int calls = 40;
__device__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};

__global__ void saxpy(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = factor * x[i] + y[i] + table[i & 3];
    if (i == 0)
        calls++;
}

static int wrong_calls(void)
{
    void *p;
    int n;
    if (cudaMemcpy(NULL, &n, sizeof n, cudaMemcpyHostToDevice) != cudaErrorInvalidValue)
        return work_fail(WORK, "a copy to NULL is not refused");
    if (cudaMalloc(&p, (size_t)1 << 60) != cudaErrorMemoryAllocation)
        return work_fail(WORK, "2^60 bytes are not refused");
    saxpy<<<1, 4096>>>(NULL, NULL, 0);
    if (cudaPeekAtLastError() != cudaErrorInvalidConfiguration ||
        cudaGetLastError() != cudaErrorInvalidConfiguration)
        return work_fail(WORK, "a block of 4096 threads is not refused");
    if (cudaGetLastError() != cudaSuccess)
        return work_fail(WORK, "cudaGetLastError did not clear the error");
    if (cudaSetDevice(99) != cudaErrorInvalidDevice)
        return work_fail(WORK, "device 99 is not refused");
    (void)cudaGetLastError();
    return 0;
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 1024, 1 << 17) * 1024, devices, device;
    long iterations = work_arg(argc, argv, 2, 1, 100000);
    size_t bytes = sizeof(float) * n, size;
    float *x = (float *)work_alloc(bytes), *y = (float *)work_alloc(bytes),
          *out = (float *)work_alloc(bytes), *dx, *dy, *dz;
    cudaFuncAttributes attributes;
    cudaDeviceProp prop;
    void *address;
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaGetDevice(&device));
    CHECK(cudaGetDeviceProperties(&prop, device));
    if (devices < 1 || device != 0 || prop.warpSize != 32 || prop.multiProcessorCount < 1 ||
        !prop.name[0])
        return work_fail(WORK, "%d devices, device %d '%s', warps of %d, %d SMs", devices, device,
                         prop.name, prop.warpSize, prop.multiProcessorCount);
    CHECK(cudaFuncGetAttributes(&attributes, saxpy));
    if (attributes.maxThreadsPerBlock < 256 || attributes.ptxVersion < 50)
        return work_fail(WORK, "at most %d threads a block, PTX %d", attributes.maxThreadsPerBlock,
                         attributes.ptxVersion);
    CHECK(cudaGetSymbolAddress(&address, table));
    CHECK(cudaGetSymbolSize(&size, table));
    if (!address || size != sizeof table)
        return work_fail(WORK, "table: %zu bytes at %p", size, address);
    if (wrong_calls())
        return 1;
    for (int i = 0; i < n; i++) {
        x[i] = (float)(work_random(i) & 1023);
        y[i] = (float)(work_random(n + i) & 1023);
    }
    CHECK(cudaMalloc(&dx, bytes));
    CHECK(cudaMalloc(&dy, bytes));
    CHECK(cudaMalloc(&dz, bytes));
    for (long it = 0; it < iterations; it++) {
        float a = it ? (float)(it % 100) : 3.0f, first = 7.0f,
              t[4]; /* the first time the initial values stand */
        int count;
        if (it) {
            CHECK(cudaMemcpyToSymbol(factor, &a, sizeof a));
            CHECK(cudaMemcpyToSymbol(table, &first, sizeof first, 0, cudaMemcpyHostToDevice));
        }
        CHECK(cudaMemcpyFromSymbol(t, table, sizeof t));
        if (t[0] != (it ? 7.0f : 1.0f) || t[3] != 4.0f)
            return work_fail(WORK, "table is %g … %g", t[0], t[3]);
        CHECK(cudaMemcpy(dx, x, bytes, cudaMemcpyDefault));
        CHECK(cudaMemcpy(dz, y, bytes, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(dy, dz, bytes, cudaMemcpyDeviceToDevice));
        void *args[] = {&dx, &dy, &n};
        CHECK(cudaLaunchKernel((const void *)saxpy, dim3((n + 255) / 256), dim3(256), args, 0, 0));
        CHECK(cudaMemcpy(out, dy, bytes, cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++)
            if (out[i] != a * x[i] + y[i] + t[i & 3])
                return work_fail(WORK, "y[%d] is %g, not %g", i, out[i],
                                 a * x[i] + y[i] + t[i & 3]);
        CHECK(cudaMemcpyFromSymbol(&count, calls, sizeof count));
        if (count != 41 + it)
            return work_fail(WORK, "%d calls, not %ld", count, 41 + it);
    }
    CHECK(cudaFree(dx));
    CHECK(cudaFree(dy));
    CHECK(cudaFree(dz));
    return work_pass(WORK);
}

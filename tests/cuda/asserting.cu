// SPDX-License-Identifier: Apache-2.0
// Uses assert() in a kernel. Fails if cudaErrorAssert does not follow, or does not stay until the
// device is reset. The caller checks the message on standard error.
#undef NDEBUG
#include <cassert>
#include "work.cuh"
#define WORK "asserting"
__global__ void testKernel(int n)
{
    int gtid = blockIdx.x * blockDim.x + threadIdx.x;
    assert(gtid < n);
}
__global__ void store(int *x) { *x = 5; }
int main(void)
{
    int *x, v = 0;
    testKernel<<<2, 32>>>(64);
    CHECK(cudaDeviceSynchronize());
    testKernel<<<2, 32>>>(60);
    cudaError_t e = cudaDeviceSynchronize();
    if (e != cudaErrorAssert)
        return work_fail(WORK, "the failed assertion gave %d", e);
    if (cudaGetLastError() != cudaErrorAssert || cudaMalloc(&x, 4) != cudaErrorAssert ||
        cudaGetLastError() != cudaErrorAssert)
        return work_fail(WORK, "the error is not sticky");
    CHECK(cudaDeviceReset());
    CHECK(cudaMalloc(&x, 4));
    store<<<1, 1>>>(x);
    CHECK(cudaMemcpy(&v, x, 4, cudaMemcpyDeviceToHost));
    return v == 5 ? work_pass(WORK) : work_fail(WORK, "after the reset");
}

// SPDX-License-Identifier: Apache-2.0
// assert() in a kernel: the message on stderr, cudaErrorAssert from then on, until the device is reset.
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

// SPDX-License-Identifier: Apache-2.0
// A program one of whose kernels starts kernels. Fails if that kernel is not refused by name, or if
// the other one does not work. With an argument it launches that kernel and does not ask for the
// error.
#include "work.cuh"
#define WORK "cdp"
__global__ void child(int *x) { x[threadIdx.x] = threadIdx.x; }
__global__ void parent(int *x) { child<<<1, 32>>>(x); }
int main(int argc, char **)
{
    int *x, host[32];
    CHECK(cudaMalloc(&x, sizeof host));
    child<<<1, 32>>>(x);
    CHECK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++)
        if (host[i] != i)
            return work_fail(WORK, "x[%d] is %d", i, host[i]);
    parent<<<1, 1>>>(x);
    if (argc > 1)
        return work_pass(WORK);
    cudaError_t e = cudaGetLastError();
    if (e != cudaErrorNotSupported)
        return work_fail(WORK, "the kernel that starts kernels gave %d %s", e, cudaGetErrorName(e));
    child<<<1, 32>>>(x);
    CHECK(cudaDeviceSynchronize());
    return work_pass(WORK);
}

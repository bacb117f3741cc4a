// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include "fault.h"
#include "work.cuh"

extern "C" __global__ void fault(int what, uint32_t *v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] = i;
    if (i != n / 2)
        return;
    switch (what) {
    case 1:
        v[(size_t)1 << 40] = 1;
        break;
    case 2:
        *(volatile uint32_t *)((char *)v + 1) = 1;
        break;
    case 3:
        __trap();
        break;
    case 4:
        assert(v[i] != (uint32_t)i);
        break;
    case 5:
        while (*(volatile uint32_t *)v != 0xffffffffu)
            ;
        break;
    case 6:
        *(volatile uint32_t *)0 = 1;
        break;
    case 7:
        v[n] = 1;
        break;
    }
}

int main(int argc, char **argv)
{
    int what = fault_find(argc > 1 ? argv[1] : "none"),
        n = 128 * 8; // 4096 bytes: no slack after it
    uint32_t *v, *host = (uint32_t *)work_alloc(4 * n);
    CHECK(cudaMalloc(&v, 4 * n));
    fault<<<n / 128, 128>>>(what, v, n);
    cudaError_t e = cudaGetLastError(); // may know of the fault already
    if (e == cudaSuccess || e == faults[what].error)
        e = cudaDeviceSynchronize();
    if (e != faults[what].error)
        return work_fail(WORK, "%s gave %d %s, not %d", faults[what].name, (int)e,
                         cudaGetErrorName(e), faults[what].error);
    e = cudaMemcpy(host, v, 4 * n, cudaMemcpyDeviceToHost);
    if (e != faults[what].error)
        return work_fail(WORK, "after %s a copy gave %d %s", faults[what].name, (int)e,
                         cudaGetErrorName(e));
    for (int i = 0; i < n && !what; i++)
        if (host[i] != (uint32_t)i)
            return work_fail(WORK, "v[%d] is %u", i, host[i]);
    return work_pass(WORK);
}

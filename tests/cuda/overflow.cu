// SPDX-License-Identifier: Apache-2.0
// Prints more with printf() than the buffer holds. The caller fails if the newest lines are not
// kept. Arguments: size of the buffer in KiB, number of lines.
#include "work.cuh"
#define WORK "overflow"
__global__ void many(int n)
{
    for (int i = 0; i < n; i++)
        printf("line %07d\n", i);
}
int main(int argc, char **argv)
{
    size_t size, want = (size_t)work_arg(argc, argv, 1, 1024, 1 << 20) * 1024;
    int n = (int)work_arg(argc, argv, 2, 1000, 100000000);
    CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, want));
    CHECK(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
    if (size < want)
        return work_fail(WORK, "asked for %zu bytes, got %zu", want, size);
    many<<<1, 1>>>(n);
    CHECK(cudaDeviceSynchronize());
    return work_pass(WORK);
}

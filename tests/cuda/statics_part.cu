// SPDX-License-Identifier: Apache-2.0
// The second file of statics.cu, with the same names.
#include "work.cuh"
#define WORK "statics"
static __device__ int value = 2;
static __constant__ float factor = 20;
static __global__ void kernel(float *out) { *out = value * factor; }
float second(cudaStream_t s, int set)
{
    float *d, out = 0;
    CHECK(cudaMalloc(&d, sizeof *d));
    if (set)
        CHECK(cudaMemcpyToSymbolAsync(value, &set, sizeof set, 0, cudaMemcpyHostToDevice, s));
    kernel<<<1, 1, 0, s>>>(d);
    CHECK(cudaMemcpyAsync(&out, d, sizeof out, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaFree(d));
    return out;
}
void *second_address(void)
{
    void *p;
    CHECK(cudaGetSymbolAddress(&p, value));
    return p;
}

// SPDX-License-Identifier: Apache-2.0
// The second file of rdc.cu: device functions and variables that the first one calls and reads, and
// kernels of its own.
#include "rdc.cuh"
#include "work.cuh"
#define WORK "rdc"

static __device__ int secret = 22; // the first file has one too
__device__ int total = 5;
__device__ pair pairs[2] = {{1, 0.5}, {2, 0.25}};
static __device__ float twice(float x) { return 2 * x; }
static __device__ float plus_three(float x) { return x + 3; }
__device__ float negate(float x) { return -x; }
__device__ op_t ops[3] = {twice, plus_three, negate};

__device__ float mix(float x, int i) { return x * scale[i & 3] + secret; }

static __global__ void own(float *y, int n) // so has the first file
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += secret;
}

static __global__ void tell(int *to) { *to = secret; }

int part_run(float *dx, float *dy, int n)
{
    own<<<(n + 127) / 128, 128>>>(dy, n);
    fill<float><<<(n + 127) / 128, 128>>>(dx, 7.0f, n);
    return cudaGetLastError();
}

int part_private_value(void)
{
    int *d, v = 0;
    CHECK(cudaMalloc(&d, sizeof v));
    tell<<<1, 1>>>(d);
    CHECK(cudaMemcpy(&v, d, sizeof v, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
    int host = -1;
    CHECK(cudaMemcpyFromSymbol(&host, secret, sizeof host));
    return host == v ? v : -1;
}

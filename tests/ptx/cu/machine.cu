// SPDX-License-Identifier: Apache-2.0
// For tests/unit/ptx/test_cubin: what a cubin says of its kernels and variables.
struct Mixed {
    char a;
    double d;
    int x[5];
};
struct Big {
    char bytes[5000];
};
__device__ int counter;
__device__ float table[4] = {1, 2, 3, 4};
__constant__ float factors[8];
__constant__ int seven = 7;
extern __shared__ int dynamic[];

extern "C" __global__ void __launch_bounds__(128) mixed(float *p, int n, Mixed s, char c)
{
    __shared__ float mine[32];
    mine[threadIdx.x % 32] = p[threadIdx.x];
    __syncthreads();
    p[0] = mine[3] + factors[n & 7] + seven + s.d + c + table[n & 3];
    atomicAdd(&counter, 1);
}
extern "C" __global__ void nothing()
{
}
extern "C" __global__ void big(Big b, int *out)
{
    out[threadIdx.x] = b.bytes[threadIdx.x];
}
extern "C" __global__ void takes(int *q)
{
    q[1] = malloc(3) != 0;
    dynamic[threadIdx.x] = q[0];
    __syncthreads();
    q[threadIdx.x] = dynamic[0];
}

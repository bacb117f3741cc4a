// SPDX-License-Identifier: Apache-2.0
// What the two files of rdc share: declarations only. The definitions are in one of the files.
#pragma once
typedef float (*op_t)(float);
struct pair {
    int a;
    double b;
};
extern __constant__ float scale[4];
extern __device__ int total;
extern __device__ op_t ops[3];
extern __device__ pair pairs[2];
__device__ float mix(float x, int i);
template <class T> __device__ T counted(T x)
{
    static __device__ int times; // one in the program, though both files have it
    atomicAdd(&times, 1);
    return x + 1;
}
template <class T> __global__ void fill(T *to, T value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = counted(value);
}
int part_run(float *dx, float *dy, int n);
int part_private_value(void);

// SPDX-License-Identifier: Apache-2.0
/* The second translation unit: a kernel of the same name as the first's, with code of its own. */
#include <cuda_runtime.h>

template <typename T> static __global__ void scale(T *v, T by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] = v[i] * by + 2;
}

int other_scale(int *v, int by, int n)
{
    scale<int><<<2, 32>>>(v, by, n);
    return cudaGetLastError();
}

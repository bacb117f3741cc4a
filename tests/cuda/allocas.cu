// SPDX-License-Identifier: Apache-2.0
// Uses alloca() in device code: sizes that differ from lane to lane, in loops, in functions that
// call others and themselves, given back on return; and one that asks for more than there is. Fails
// if such memory overlaps or changes, or if the excess is not an error.
#include <cstdio>
#include <cstring>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(e)                                                                                   \
    do {                                                                                           \
        cudaError_t r_ = (e);                                                                      \
        if (r_ != cudaSuccess) {                                                                   \
            printf("FAIL allocas: %s: %s\n", #e, cudaGetErrorString(r_));                          \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

// Sorts n numbers made from k and adds them up weighted by their places.
__host__ __device__ static int weigh(int *p, int n, int k)
{
    int s = 0;
    for (int i = 0; i < n; i++)
        p[i] = (i * 7919 + k * 31) % 101;
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && p[j - 1] > p[j]; j--) {
            int t = p[j];
            p[j] = p[j - 1];
            p[j - 1] = t;
        }
    for (int i = 0; i < n; i++)
        s += (i + 1) * p[i];
    return s;
}
__device__ __noinline__ int sorted(int n, int k)
{
    return weigh((int *)alloca(n * sizeof(int)), n, k);
}
// Each level keeps a block of its own while the next ones run.
__device__ __noinline__ int nested(int depth, int k)
{
    unsigned char *mine = (unsigned char *)alloca(depth + 1);
    for (int i = 0; i <= depth; i++)
        mine[i] = (unsigned char)(depth * 16 + i + k);
    int below = depth > 0 ? nested(depth - 1, k + 1) : 0;
    for (int i = 0; i <= depth; i++)
        below = below * 3 + mine[i];
    return below;
}
static int nested_c(int depth, int k)
{
    int below = depth > 0 ? nested_c(depth - 1, k + 1) : 0;
    for (int i = 0; i <= depth; i++)
        below = below * 3 + (unsigned char)(depth * 16 + i + k);
    return below;
}
__global__ void work(int *out, int rounds)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x, s = 0;
    short *q = (short *)alloca((t % 9 + 1) * sizeof(short));
    for (int i = 0; i <= t % 9; i++)
        q[i] = (short)(t - i);
    for (int r = 0; r < rounds; r++) // what a call took is there again for the next
        s += sorted(t % 13 + r % 5 + 1, r);
    if (t & 1)
        s += nested(t % 6, t);
    for (int i = 0; i <= t % 9; i++)
        s = s * 5 + q[i];
    out[t] = s;
}
__global__ void greedy(int *out, size_t n)
{
    volatile char *p = (volatile char *)alloca(n);
    p[n / 2] = 1;
    *out = p[n / 2];
}

int main(int argc, char **argv)
{
    const int n = 300, rounds = 200;
    int *d, h[n], s[32];
    CHECK(cudaMalloc(&d, sizeof h));
    work<<<3, 100>>>(d, rounds);
    CHECK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
    for (int t = 0; t < n; t++) {
        unsigned want = 0;
        for (int r = 0; r < rounds; r++)
            want += (unsigned)weigh(s, t % 13 + r % 5 + 1, r);
        if (t & 1)
            want += (unsigned)nested_c(t % 6, t);
        for (int i = 0; i <= t % 9; i++)
            want = want * 5 + (unsigned)(short)(t - i);
        if (h[t] != (int)want) {
            printf("FAIL allocas: thread %d: %d, should be %d\n", t, h[t], (int)want);
            return 1;
        }
    }
    if (argc > 1 && !strcmp(argv[1], "fault")) { /* more than there is */
        greedy<<<1, 1>>>(d, (size_t)1 << 40);
        if (cudaDeviceSynchronize() == cudaSuccess) {
            printf("FAIL allocas: a terabyte of stack\n");
            return 1;
        }
    }
    printf("PASS allocas\n");
    return 0;
}

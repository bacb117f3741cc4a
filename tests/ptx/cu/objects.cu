// SPDX-License-Identifier: Apache-2.0
// Virtual functions, recursion, calls across files, switches, structures by value: for what the compiler emits.
#include <cstdio>
struct B {
    __device__ virtual int f(int) = 0;
    __device__ virtual ~B()
    {
    }
    int z;
};
struct C : B {
    __device__ int f(int x) override
    {
        return x + z;
    }
};
struct D : B {
    __device__ int f(int x) override
    {
        return x * z;
    }
};
__device__ int rec(int n)
{
    return n < 2 ? n : rec(n - 1) + rec(n - 2);
}
extern __device__ int other(int, double, char);
extern __device__ float ext[4];
__device__ __noinline__ double big(double4 a, int3 b, char c)
{
    return a.x * b.y + c;
}
__device__ int sw(int n)
{
    switch (n) {
    case 0:
        return 7;
    case 1:
        return 99;
    case 2:
        return -5;
    case 3:
        return 8;
    case 4:
        return 1000;
    case 5:
        return n * n;
    case 6:
        return 1 << n;
    case 7:
        return 12;
    case 9:
        return rec(n);
    }
    return 1;
}
struct S {
    char c;
    double d;
    short s[3];
};
__global__ void __launch_bounds__(128, 2) k(int *p, S s, B **b, int n)
{
    C c;
    c.z = n;
    D d;
    d.z = 3;
    B *x = n & 1 ? (B *)&c : (B *)&d;
    p[0] = x->f(4) + b[0]->f(5);
    p[1] = rec(n);
    p[2] = other(n, s.d, s.c) + ext[n];
    p[3] = big(make_double4(1, 2, 3, n), make_int3(1, 2, n), s.c) + s.s[n];
    p[4] = sw(n);
    *b = new C;
    delete b[1];
    __shared__ S ss[3];
    ss[threadIdx.x] = s;
    __syncthreads();
    p[5] = ss[n].s[1];
    static __device__ int st = 9;
    p[6] = st++;
    printf("%d\n", n);
    const char *str[] = {"a", "bb", "ccc"};
    p[7] = str[n % 3][0];
}
template <int N> __global__ void un(float *a)
{
    __shared__ float t[N][N + 1];
#pragma unroll
    for (int i = 0; i < N; i++)
        t[threadIdx.x][i] = a[i * N + threadIdx.x];
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < N; i++)
        a[i] += t[i][threadIdx.x];
}
template __global__ void un<16>(float *);
template __global__ void un<32>(float *);

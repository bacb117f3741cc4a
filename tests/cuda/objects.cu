// SPDX-License-Identifier: Apache-2.0
// Uses C++ on the device: virtual functions of objects made there, function pointers in a table,
// recursion, functors, templates with dynamic shared memory of several types, unions, and 3-D
// launch shapes. Fails if a result differs from the host's.
#include <vector>
#include "work.cuh"
#define WORK "objects"

struct shape {
    __device__ virtual float area() const = 0;
    __device__ virtual ~shape() {}
};
struct square : shape {
    float side;
    __device__ square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct rectangle : square {
    float other;
    __device__ rectangle(float a, float b) : square(a), other(b) {}
    __device__ float area() const override { return side * other; }
};

__global__ void make(shape **shapes, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        shapes[i] = i % 2 ? (shape *)new square((float)i) : new rectangle((float)i, 3.0f);
}
__global__ void measure(shape **shapes, float *areas, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        areas[i] = shapes[i]->area();
        delete shapes[i];
    }
}

typedef int (*operation)(int, int);
__device__ int add(int a, int b) { return a + b; }
__device__ int subtract(int a, int b) { return a - b; }
__device__ int power(int a, int b) { return b ? a * power(a, b - 1) : 1; }
__device__ operation table[] = {add, subtract, power};
__global__ void apply(const int *which, int *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = table[which[i]](i % 7, i % 5);
}

__device__ unsigned ackermann(unsigned m, unsigned n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
__global__ void recurse(unsigned *out)
{
    out[threadIdx.x] = ackermann(threadIdx.x / 4, threadIdx.x % 4);
}

struct times {
    float factor;
    __device__ float operator()(int i) const { return factor * i; }
};
template <typename F> __global__ void each(F f, float *out, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = f(i);
}

template <typename T> struct shared_of {
    __device__ operator T *()
    {
        extern __shared__ int bytes[];
        return (T *)bytes;
    }
};
template <typename T> __global__ void reverse(T *data, int n)
{
    T *s = shared_of<T>();
    s[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = s[n - 1 - threadIdx.x];
}

__global__ void places(uint4 *out)
{
    unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[b * blockDim.x * blockDim.y * blockDim.z + t] = make_uint4(b, t, blockIdx.z, threadIdx.y);
}

template <typename T> static int test_reverse(const char *name)
{
    const int n = 100;
    T in[n], out[n], *d;
    for (int i = 0; i < n; i++)
        in[i] = (T)(i * 3 % 101);
    CHECK(cudaMalloc(&d, sizeof in));
    CHECK(cudaMemcpy(d, in, sizeof in, cudaMemcpyHostToDevice));
    reverse<T><<<1, n, sizeof in>>>(d, n);
    CHECK(cudaMemcpy(out, d, sizeof in, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
    for (int i = 0; i < n; i++)
        if (out[i] != in[n - 1 - i])
            return work_fail(WORK, "reversed %s: [%d]", name, i);
    return 0;
}

int main()
{
    const int n = 300;
    shape **shapes;
    float *areas, a[n];
    CHECK(cudaMalloc(&shapes, n * sizeof *shapes));
    CHECK(cudaMalloc(&areas, sizeof a));
    make<<<3, 128>>>(shapes, n);
    measure<<<3, 128>>>(shapes, areas, n);
    CHECK(cudaMemcpy(a, areas, sizeof a, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (a[i] != (i % 2 ? (float)i * i : i * 3.0f))
            return work_fail(WORK, "area %d is %g", i, a[i]);
    std::vector<int> which(n), got(n);
    int *dw, *dout;
    for (int i = 0; i < n; i++)
        which[i] = work_random(i) % 3;
    CHECK(cudaMalloc(&dw, n * 4));
    CHECK(cudaMalloc(&dout, n * 4));
    CHECK(cudaMemcpy(dw, which.data(), n * 4, cudaMemcpyHostToDevice));
    apply<<<3, 128>>>(dw, dout, n);
    CHECK(cudaMemcpy(got.data(), dout, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        int p = 1, x = i % 7, y = i % 5;
        for (int k = 0; k < y; k++)
            p *= x;
        if (got[i] != (which[i] == 0 ? x + y : which[i] == 1 ? x - y : p))
            return work_fail(WORK, "operation %d of %d gives %d", which[i], i, got[i]);
    }
    unsigned *du, u[12];
    CHECK(cudaMalloc(&du, sizeof u));
    recurse<<<1, 12>>>(du);
    CHECK(cudaMemcpy(u, du, sizeof u, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < 12; i++)
        if (u[i] != (i / 4 == 0 ? i + 1 : i / 4 == 1 ? i % 4 + 2 : 2 * (i % 4) + 3))
            return work_fail(WORK, "ackermann(%u, %u) is %u", i / 4, i % 4, u[i]);
    float factor = 2.5f;
    each<<<1, 64>>>(times{factor}, areas, n);
    CHECK(cudaMemcpy(a, areas, sizeof a, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (a[i] != 2.5f * i)
            return work_fail(WORK, "functor of %d gives %g", i, a[i]);
    if (test_reverse<char>("char") || test_reverse<short>("short") || test_reverse<float>("float") || test_reverse<double>("double"))
        return 1;
    const dim3 grid(3, 2, 4), block(5, 4, 3);
    const unsigned threads = 60, all = 24 * threads;
    uint4 *dp;
    std::vector<uint4> p(all);
    CHECK(cudaMalloc(&dp, all * sizeof *dp));
    places<<<grid, block>>>(dp);
    CHECK(cudaMemcpy(p.data(), dp, all * sizeof *dp, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < all; i++)
        if (p[i].x != i / threads || p[i].y != i % threads || p[i].z != i / threads / 6 || p[i].w != i % threads / 5 % 4)
            return work_fail(WORK, "thread %u is at %u %u %u %u", i, p[i].x, p[i].y, p[i].z, p[i].w);
    for (void *q : {(void *)shapes, (void *)areas, (void *)dw, (void *)dout, (void *)du, (void *)dp})
        CHECK(cudaFree(q));
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Built as machine code without PTX, for the GPUs of tests/cuda.mk: kernels, variables of all kinds
// by their symbols, attributes. Fails if a result is wrong.
#include "work.cuh"
#define WORK "sassonly"
enum { N = 4096, BLOCK = 128, BLOCKS = N / BLOCK };
struct mixed {
    char a;
    double d;
    int x[5];
};
__device__ unsigned calls;
__device__ int table[4] = {10, 20, 30, 40};
__constant__ int factor = 3;
static __device__ char bytes[1000];

__global__ void __launch_bounds__(256) step(int *p, mixed m, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (!threadIdx.x)
        atomicAdd(&calls, 1);
    if (i < n)
        p[i] += factor * table[i % 4] + m.x[i % 5] + (int)m.d + m.a;
}
__global__ void reverse(int *p)
{
    extern __shared__ int shared[];
    shared[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}
__global__ void fill(char with) { bytes[threadIdx.x] = with + (char)threadIdx.x; }

static int check_steps(int *d, const mixed &m, const int *now, int by, int rounds)
{
    static int v[N], got[N];
    unsigned n = 0, zero = 0;
    for (int i = 0; i < N; i++)
        v[i] = i * 7;
    CHECK(cudaMemcpy(d, v, sizeof v, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(calls, &zero, sizeof zero));
    for (int r = 0; r < rounds; r++)
        step<<<BLOCKS, BLOCK>>>(d, m, N - 5);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(got, d, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++) {
        int want = v[i] + (i < N - 5 ? rounds * (by * now[i % 4] + m.x[i % 5] + (int)m.d + m.a) : 0);
        if (got[i] != want)
            return work_fail(WORK, "element %d is %d, not %d", i, got[i], want);
    }
    CHECK(cudaMemcpyFromSymbol(&n, calls, sizeof n));
    return n == (unsigned)rounds * BLOCKS ? 0 : work_fail(WORK, "%u blocks counted, not %d", n, rounds * BLOCKS);
}

int main(int argc, char **argv)
{
    static const int old[4] = {10, 20, 30, 40}, fresh[4] = {-1, 2, 5, 1000};
    static char back[1000];
    mixed m = {5, 2.5, {1, 2, 3, 4, 5}};
    int rounds = argc > 2 ? atoi(argv[2]) : 2, five = 5, *d, v[BLOCK];
    void *p;
    size_t size;
    CHECK(cudaMalloc(&d, N * sizeof *d));
    int r = check_steps(d, m, old, 3, rounds);
    if (r)
        return r;
    CHECK(cudaGetSymbolAddress(&p, table));
    CHECK(cudaGetSymbolSize(&size, table));
    if (size != sizeof fresh)
        return work_fail(WORK, "a symbol of %zu bytes, not 16", size);
    CHECK(cudaMemcpy(p, fresh, sizeof fresh, cudaMemcpyHostToDevice)); /* by its address */
    CHECK(cudaMemcpyToSymbol(factor, &five, sizeof five));
    r = check_steps(d, m, fresh, 5, rounds);
    if (r)
        return r;
    for (int i = 0; i < BLOCK; i++)
        v[i] = i;
    CHECK(cudaMemcpy(d, v, sizeof v, cudaMemcpyHostToDevice));
    reverse<<<1, BLOCK, sizeof v>>>(d);
    CHECK(cudaMemcpy(v, d, sizeof v, cudaMemcpyDeviceToHost));
    for (int i = 0; i < BLOCK; i++)
        if (v[i] != BLOCK - 1 - i)
            return work_fail(WORK, "reversed: %d at %d", v[i], i);
    fill<<<1, 1000>>>(3);
    CHECK(cudaMemcpyFromSymbol(back, bytes, sizeof back));
    for (int i = 0; i < 1000; i++)
        if (back[i] != (char)(3 + i))
            return work_fail(WORK, "byte %d is %d", i, back[i]);
    cudaFuncAttributes a;
    CHECK(cudaFuncGetAttributes(&a, step));
    if (a.maxThreadsPerBlock != 256 || a.numRegs < 1 || a.numRegs > 255 || a.binaryVersion < 50)
        return work_fail(WORK, "attributes: %d threads, %d registers, sm_%d", a.maxThreadsPerBlock, a.numRegs,
                         a.binaryVersion);
    step<<<1, 512>>>(d, m, N); /* more than it was compiled for */
    cudaError_t e = cudaGetLastError();
    if (e != cudaErrorInvalidValue && e != cudaErrorLaunchOutOfResources)
        return work_fail(WORK, "512 threads of at most 256 gave %d", e);
    CHECK(cudaFree(d));
    return work_pass(WORK);
}

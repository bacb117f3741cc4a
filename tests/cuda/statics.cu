// SPDX-License-Identifier: Apache-2.0
// Two files with static variables and kernels of equal names, built as whole-program code. Fails if
// one file gets the other one's.
#include "work.cuh"
#define WORK "statics"
static __device__ int value = 1;
static __constant__ float factor = 10;
static __device__ char bytes[1000];
static __global__ void kernel(float *out) { *out = value * factor; }
float second(cudaStream_t s, int set);
void *second_address(void);

static float first(void)
{
    float *d, out = 0;
    CHECK(cudaMalloc(&d, sizeof *d));
    kernel<<<1, 1>>>(d);
    CHECK(cudaMemcpy(&out, d, sizeof out, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d));
    return out;
}

int main(int argc, char **argv)
{
    cudaStream_t s;
    size_t size;
    void *p;
    float half = 0.5f;
    char text[1000], back[1000];
    CHECK(cudaStreamCreate(&s));
    if (first() != 10 || second(s, 0) != 40)
        return work_fail(WORK, "initial values are mixed up");
    if (second(s, 7) != 140 || first() != 10)
        return work_fail(WORK, "a symbol copy went to the wrong file's variable");
    CHECK(cudaMemcpyToSymbol(factor, &half, sizeof half));
    if (first() != 0.5f || second(s, 0) != 140)
        return work_fail(WORK, "a constant was changed in the wrong file");
    CHECK(cudaGetSymbolAddress(&p, value));
    CHECK(cudaGetSymbolSize(&size, bytes));
    if (p == second_address() || size != 1000)
        return work_fail(WORK, "addresses or size");
    for (int i = 0; i < 1000; i++)
        text[i] = (char)(i * 7);
    CHECK(cudaMemcpyToSymbolAsync(bytes, text, 600, 0, cudaMemcpyHostToDevice, s));
    CHECK(cudaMemcpyToSymbolAsync(bytes, text + 600, 400, 600, cudaMemcpyHostToDevice, s));
    CHECK(cudaMemcpyFromSymbolAsync(back, bytes, 1000, 0, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    if (memcmp(text, back, 1000))
        return work_fail(WORK, "bytes came back changed");
    if (cudaMemcpyToSymbol(bytes, text, 600, 600) != cudaErrorInvalidValue)
        return work_fail(WORK, "a copy past the end of a symbol is not refused");
    if (cudaGetSymbolAddress(&p, text) != cudaErrorInvalidSymbol)
        return work_fail(WORK, "a host variable passes for a symbol");
    (void)cudaGetLastError();
    CHECK(cudaStreamDestroy(s));
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Uses printf() in kernels. The program's own lines and the kernels' must come in CUDA's order: a
// kernel's lines at the next synchronising call. The caller compares the output with printing.out.
#include "work.cuh"
#define WORK "printing"

__global__ void hello(int value)
{
    printf("[%d, %d]:\t\tValue is:%d\n", blockIdx.y * gridDim.x + blockIdx.x,
           threadIdx.z * blockDim.x * blockDim.y + threadIdx.y * blockDim.x + threadIdx.x, value);
}
__global__ void formats(const char *device_text)
{
    int n = printf("%d %5.2f|%-6s|%c|%llx|%08u|%+d|%e|%%|%s\n", -3, 2.718281828, "text", 'z',
                   0x123456789abcull, 42u, 7, 1.5e10, device_text);
    printf("returned %d\n", n);
    printf("no newline,");
    printf(" then one\n");
}
__global__ void quiet(int *x) { *x = 1; }
__global__ void many(int n)
{
    for (int i = 0; i < n; i++)
        printf("line %d\n", i);
}

static void CUDART_CB told(cudaStream_t s, cudaError_t e, void *data)
{
    printf("callback %s\n", (const char *)data);
}

int main(void)
{
    char *text;
    int *x, v;
    size_t size;
    CHECK(cudaMalloc(&text, 16));
    CHECK(cudaMalloc(&x, 4));
    CHECK(cudaMemcpy(text, "on the device", 14, cudaMemcpyHostToDevice));
    hello<<<1, 1>>>(10);
    printf("host 1\n");
    CHECK(cudaDeviceSynchronize());
    formats<<<1, 1>>>(text);
    quiet<<<1, 1>>>(x);
    printf("host 2\n");
    CHECK(cudaMemcpy(&v, x, 4, cudaMemcpyDeviceToHost));
    printf("host 3\n");
    cudaStream_t s;
    cudaEvent_t e;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaEventCreate(&e));
    hello<<<1, 2, 0, s>>>(11); /* of two blocks, either could print first */
    CHECK(cudaStreamSynchronize(s));
    printf("host 4\n");
    hello<<<1, 1, 0, s>>>(12);
    CHECK(cudaEventRecord(e, s));
    CHECK(cudaEventSynchronize(e));
    printf("host 5\n");
    hello<<<1, 1, 0, s>>>(13);
    CHECK(cudaStreamAddCallback(s, told, (void *)"after 13", 0));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4 << 20));
    CHECK(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
    if (size < 4 << 20)
        return work_fail(WORK, "asked for 4 MiB, got %zu bytes", size);
    many<<<1, 1>>>(3);
    CHECK(cudaDeviceReset());
    printf("host 6\n");
    CHECK(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
    if (size != 1 << 20)
        return work_fail(WORK, "the buffer has %zu bytes", size);
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
/* Uses malloc() and free() in kernels: lists that survive launches, blocks that share an array, a
 * heap that runs out. Fails if such memory is lost or shared by mistake, or if malloc() does not
 * return NULL when the heap is used up. */
#include <cstdio>

struct node {
    unsigned value;
    node *next;
};
__device__ node *lists[16];

__global__ void push(unsigned base)
{
    unsigned v = base + blockIdx.x * blockDim.x + threadIdx.x;
    node *n = (node *)malloc(sizeof *n);
    if (!n)
        return;
    n->value = v;
    unsigned long long *head = (unsigned long long *)&lists[v % 16], old = *head, seen;
    do {
        seen = old;
        n->next = (node *)seen;
        __threadfence();
        old = atomicCAS(head, seen, (unsigned long long)n);
    } while (old != seen);
}

__global__ void drain(unsigned long long *sums)
{
    unsigned long long sum = 0;
    for (node *n = lists[threadIdx.x]; n;) {
        node *next = n->next;
        sum += n->value;
        free(n);
        n = next;
    }
    lists[threadIdx.x] = NULL;
    sums[threadIdx.x] = sum;
}

__global__ void shared_array(int *out)
{
    __shared__ int *array;
    if (threadIdx.x == 0)
        array = (int *)malloc(blockDim.x * sizeof(int));
    __syncthreads();
    if (!array)
        return;
    array[threadIdx.x] = (int)(blockIdx.x * 1000 + threadIdx.x);
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = array[blockDim.x - 1 - threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
        free(array);
}

__global__ void exhaust(int *n_got)
{
    char *kept[64];
    int n = 0;
    while (n < 64 && (kept[n] = (char *)malloc(1 << 20)))
        n++;
    *n_got = n;
    while (n)
        free(kept[--n]);
    free(NULL);
}

#define MUST(x)                                                                                    \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL deviceheap: %s: %s\n", #x, cudaGetErrorString(e_));                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

int main()
{
    unsigned long long sums[16], want[16], *d_sums;
    int got[1024], *d_got;
    size_t limit;
    MUST(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
    MUST(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    if (limit < (16 << 20)) {
        printf("FAIL deviceheap: the limit is %zu\n", limit);
        return 1;
    }
    MUST(cudaMalloc(&d_sums, sizeof sums));
    MUST(cudaMalloc(&d_got, sizeof got));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 16; i++)
            want[i] = 0;
        for (unsigned v = 0; v < 4 * 2048; v++)
            want[v % 16] += v;
        for (unsigned part = 0; part < 4; part++)
            push<<<16, 128>>>(part * 2048);
        drain<<<1, 16>>>(d_sums);
        MUST(cudaMemcpy(sums, d_sums, sizeof sums, cudaMemcpyDeviceToHost));
        for (int i = 0; i < 16; i++)
            if (sums[i] != want[i]) {
                printf("FAIL deviceheap: list %d adds up to %llu, not %llu\n", i, sums[i], want[i]);
                return 1;
            }
    }
    shared_array<<<8, 128>>>(d_got);
    MUST(cudaMemcpy(got, d_got, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 1024; i++)
        if (got[i] != i / 128 * 1000 + 127 - i % 128) {
            printf("FAIL deviceheap: element %d is %d\n", i, got[i]);
            return 1;
        }
    exhaust<<<1, 1>>>(d_got);
    MUST(cudaMemcpy(got, d_got, sizeof(int), cudaMemcpyDeviceToHost));
    if (got[0] < 12 || got[0] > 16) {
        printf("FAIL deviceheap: %d MiB of 16 could be had\n", got[0]);
        return 1;
    }
    printf("PASS deviceheap\n");
    return 0;
}

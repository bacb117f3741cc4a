// SPDX-License-Identifier: Apache-2.0
/* A kernel that takes a given time by looking at the clock, as samples that show concurrency do.
 * Fails if a block does not see time pass. */
#include <cstdio>
#include <cstdlib>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL spinclock: %s: %s\n", #x, cudaGetErrorString(e_));                        \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

__global__ void wait_cycles(long long *seen, long long cycles)
{
    long long start = clock64(), now;
    do
        now = clock64();
    while (now - start < cycles);
    seen[blockIdx.x] = now - start;
}

__device__ unsigned long long globaltimer()
{
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

__global__ void timers(unsigned long long *t)
{
    t[2 * threadIdx.x] = globaltimer();
    t[2 * threadIdx.x + 1] = globaltimer();
}

int main()
{
    enum { STREAMS = 4 };
    cudaStream_t s[STREAMS];
    long long *seen[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        CHECK(cudaStreamCreate(&s[i]));
        CHECK(cudaMallocManaged(&seen[i], 8 * sizeof **seen));
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < STREAMS; i++) {
            wait_cycles<<<8, 32, 0, s[i]>>>(seen[i], 20000 * (i + 1));
            CHECK(cudaGetLastError());
        }
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < STREAMS; i++)
            for (int b = 0; b < 8; b++)
                if (seen[i][b] < 20000 * (i + 1)) {
                    printf("FAIL spinclock: block %d of stream %d waited %lld cycles\n", b, i,
                           seen[i][b]);
                    return 1;
                }
    }
    unsigned long long *t, last = 0;
    CHECK(cudaMallocManaged(&t, 64 * sizeof *t));
    for (int round = 0; round < 5;
         round++) { /* launches one after another: later ones see later times */
        timers<<<1, 32>>>(t);
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < 32; i++)
            if (t[2 * i] > t[2 * i + 1] || t[2 * i] < last) {
                printf("FAIL spinclock: globaltimer of thread %d: %llu, %llu; before: %llu\n", i,
                       t[2 * i], t[2 * i + 1], last);
                return 1;
            }
        last = t[0];
    }
    puts("PASS spinclock");
    return 0;
}

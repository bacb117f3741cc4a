// SPDX-License-Identifier: Apache-2.0
/* Uses events as programs time kernels with them. Fails if a time is negative, if times along a
 * stream do not add up, if more work does not take longer, or if an event lies before it was
 * recorded. */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <vector>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL eventtimes: %s: %s\n", #x, cudaGetErrorString(e_));                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

__global__ void iterate(float *v, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = v[i];
    for (int r = 0; r < rounds; r++)
        x = x * 0.5f + 1.0f;
    v[i] = x;
}

/* Holds the stream until all of a run is there, so that the time it takes to send work does not show
 * between the events. */
static std::atomic<bool> go;
static void CUDART_CB wait_for_go(void *)
{
    while (!go)
        usleep(100);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1 << 14;
    if (n < 1024)
        n = 1024;
    float *v;
    CHECK(cudaMalloc(&v, n * sizeof *v));
    CHECK(cudaMemset(v, 0, n * sizeof *v));
    enum { STEPS = 5, RUNS = 5 };
    cudaEvent_t at[STEPS + 1];
    for (int i = 0; i <= STEPS; i++)
        CHECK(cudaEventCreate(&at[i]));
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    float best[STEPS];
    int n_rounds = 0;
    for (int run = 0; run < RUNS; run++) {
        CHECK(cudaDeviceSynchronize());
        go = false;
        CHECK(cudaLaunchHostFunc(s, wait_for_go, NULL));
        CHECK(cudaEventRecord(at[0], s));
        for (int i = 0, rounds = 128; i < STEPS; i++, rounds *= 4) {
            iterate<<<(n + 127) / 128, 128, 0, s>>>(v, n, rounds);
            CHECK(cudaGetLastError());
            CHECK(cudaEventRecord(at[i + 1], s));
            n_rounds += rounds;
        }
        if (cudaEventQuery(at[STEPS]) != cudaErrorNotReady) {
            puts("FAIL eventtimes: the stream does not wait for its host function");
            return 1;
        }
        go = true;
        CHECK(cudaEventSynchronize(at[STEPS]));
        float sum = 0, all;
        for (int i = 0; i < STEPS; i++) {
            float ms;
            CHECK(cudaEventQuery(at[i]));
            CHECK(cudaEventElapsedTime(&ms, at[i], at[i + 1]));
            if (!(ms > 0)) {
                printf("FAIL eventtimes: step %d took %g ms\n", i, ms);
                return 1;
            }
            best[i] = run && best[i] < ms ? best[i] : ms;
            sum += ms;
        }
        CHECK(cudaEventElapsedTime(&all, at[0], at[STEPS]));
        if (!(all > 0.99f * sum && all < 1.01f * sum)) {
            printf("FAIL eventtimes: all %g ms, the steps together %g ms\n", all, sum);
            return 1;
        }
    }
    /* Not the first: it begins when the device has taken the kernel up. */
    if (!(best[STEPS - 1] > 1.2f * best[STEPS - 2] && best[STEPS - 1] > best[1])) {
        printf("FAIL eventtimes: %g ms, %g ms for 16 times, %g ms for 64 times the work\n", best[1],
               best[STEPS - 2], best[STEPS - 1]);
        return 1;
    }
    std::vector<float> host(n);
    CHECK(cudaMemcpy(host.data(), v, n * sizeof *v, cudaMemcpyDeviceToHost));
    float want = 0;
    for (int r = 0; r < n_rounds; r++)
        want = want * 0.5f + 1.0f;
    for (int i = 0; i < n; i++)
        if (host[i] != want) {
            printf("FAIL eventtimes: v[%d] = %g, not %g\n", i, host[i], want);
            return 1;
        }
    puts("PASS eventtimes");
    return 0;
}

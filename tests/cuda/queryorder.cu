// SPDX-License-Identifier: Apache-2.0
/* Looks at work in flight from the host. Fails if an event that has happened does not stay so, if
 * it happens before everything that comes before it in its stream and what that waited for, or if
 * results are not there once it has happened. */
#include <cstdio>
#include <cstdlib>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL queryorder: %s: %s\n", #x, cudaGetErrorString(e_));                       \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

__global__ void add(int *v, int n, int x, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int y = v[i];
    for (int r = 0; r < rounds; r++)
        y += x;
    v[i] = y;
}

int main(int argc, char **argv)
{
    enum { N = 4096, STREAMS = 3, STEPS = 6 };
    cudaStream_t s[STREAMS];
    cudaEvent_t e[STREAMS][STEPS];
    int *v[STREAMS], *host;
    CHECK(cudaHostAlloc(&host, STREAMS * N * sizeof *host, cudaHostAllocDefault));
    for (int i = 0; i < STREAMS; i++) {
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
        CHECK(cudaMalloc(&v[i], N * sizeof **v));
        CHECK(cudaMemsetAsync(v[i], 0, N * sizeof **v, s[i]));
        for (int k = 0; k < STEPS; k++)
            CHECK(cudaEventCreate(&e[i][k]));
    }
    for (int k = 0; k < STEPS; k++)
        for (int i = 0; i < STREAMS; i++) {
            if (k && i) /* each step waits for the step before of the stream before */
                CHECK(cudaStreamWaitEvent(s[i], e[i - 1][k - 1], 0));
            add<<<N / 128, 128, 0, s[i]>>>(v[i], N, k + 1, 50 * (i + 1));
            CHECK(cudaGetLastError());
            CHECK(cudaEventRecord(e[i][k], s[i]));
        }
    for (int i = 0; i < STREAMS; i++)
        CHECK(cudaMemcpyAsync(host + i * N, v[i], N * sizeof *host, cudaMemcpyDeviceToHost, s[i]));
    bool seen[STREAMS][STEPS] = {};
    for (int left = STREAMS * STEPS; left;)
        for (int i = 0; i < STREAMS; i++)
            for (int k = 0; k < STEPS; k++) {
                cudaError_t r = cudaEventQuery(e[i][k]);
                if (r != cudaSuccess && r != cudaErrorNotReady)
                    CHECK(r);
                if (seen[i][k] && r != cudaSuccess) {
                    printf("FAIL queryorder: event %d of stream %d is not ready again\n", k, i);
                    return 1;
                }
                if (r != cudaSuccess || seen[i][k])
                    continue;
                seen[i][k] = true;
                left--;
                if ((k && cudaEventQuery(e[i][k - 1]) != cudaSuccess) ||
                    (k && i && cudaEventQuery(e[i - 1][k - 1]) != cudaSuccess)) {
                    printf("FAIL queryorder: event %d of stream %d before what it waited for\n", k,
                           i);
                    return 1;
                }
            }
    for (int i = 0; i < STREAMS; i++) {
        CHECK(cudaStreamSynchronize(s[i]));
        CHECK(cudaStreamQuery(s[i]));
        int want = 50 * (i + 1) * (STEPS * (STEPS + 1) / 2);
        for (int j = 0; j < N; j++)
            if (host[i * N + j] != want) {
                printf("FAIL queryorder: v[%d] of stream %d is %d, not %d\n", j, i, host[i * N + j],
                       want);
                return 1;
            }
    }
    for (int k = 1; k < STEPS; k++)
        for (int i = 1; i < STREAMS; i++) { /* and in device time */
            float ms;
            CHECK(cudaEventElapsedTime(&ms, e[i - 1][k - 1], e[i][k]));
            if (!(ms > 0)) {
                printf("FAIL queryorder: step %d of stream %d ended %g ms after what it waited "
                       "for\n",
                       k, i, ms);
                return 1;
            }
        }
    puts("PASS queryorder");
    return 0;
}

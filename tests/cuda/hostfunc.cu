// SPDX-License-Identifier: Apache-2.0
// Uses host functions and callbacks. Fails if one does not run in stream order, if it runs on the
// caller's thread (it may wait for what the caller does afterwards), if later work of the stream
// does not wait for it, if other streams do wait, or if it may call CUDA.
#include <pthread.h>
#include <unistd.h>
#include <atomic>
#include "work.cuh"
#define WORK "hostfunc"
#define FAIL(...) return work_fail(WORK, __VA_ARGS__)

__global__ void set(int *v, int value)
{
    *v = value;
}
__global__ void copy(int *to, const int *from)
{
    *to = *from;
}

static pthread_t caller;
static std::atomic<int> go, order, bad;

static void CUDART_CB waits(void *data)
{
    while (!go)
        usleep(100);
    *(int *)data = 42; // pinned: the stream's next kernel reads it
}
static void CUDART_CB first(void *)
{
    int zero = 0;
    if (!order.compare_exchange_strong(zero, 1) || pthread_equal(pthread_self(), caller))
        bad = 1;
}
static void CUDART_CB second(cudaStream_t stream, cudaError_t status, void *data)
{
    int one = 1;
    if (!order.compare_exchange_strong(one, 2) || status != cudaSuccess ||
        stream != *(cudaStream_t *)data)
        bad = 2;
    void *p;
    if (cudaMalloc(&p, 16) != cudaErrorNotPermitted ||
        cudaStreamSynchronize(stream) != cudaErrorNotPermitted)
        bad = 3;
}
static void CUDART_CB count(void *data)
{
    ++*(std::atomic<int> *)data;
}

static int blocks_only_its_stream(cudaStream_t a, cudaStream_t b)
{
    int *p, *d, host = 0;
    CHECK(cudaMallocHost(&p, 2 * sizeof(int)));
    CHECK(cudaMalloc(&d, sizeof(int)));
    p[0] = p[1] = 0;
    go = 0;
    CHECK(cudaLaunchHostFunc(a, waits, &p[0]));
    copy<<<1, 1, 0, a>>>(&p[1], &p[0]); // behind the function
    set<<<1, 1, 0, b>>>(d, 7);          // beside it
    CHECK_LAUNCH();
    CHECK(cudaStreamSynchronize(b));
    CHECK(cudaMemcpyAsync(&host, d, sizeof host, cudaMemcpyDeviceToHost, b));
    CHECK(cudaStreamSynchronize(b));
    if (host != 7)
        FAIL("the other stream: %d", host);
    if (cudaStreamQuery(a) != cudaErrorNotReady)
        FAIL("the stream with the function is done");
    if (cudaPeekAtLastError() != cudaSuccess)
        FAIL("that the stream is not done is remembered as an error");
    if (((volatile int *)p)[1])
        FAIL("the kernel behind the function ran");
    go = 1; // had the function run in this thread, we would never have come here
    CHECK(cudaStreamSynchronize(a));
    if (p[1] != 42)
        FAIL("the kernel behind the function read %d", p[1]);
    CHECK(cudaFree(d));
    CHECK(cudaFreeHost(p));
    return 0;
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 64, 4096);
    long iterations = work_arg(argc, argv, 2, 2, 1000);
    cudaStream_t a, b, s[8];
    cudaEvent_t e;
    caller = pthread_self();
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&e));
    for (long it = 0; it < iterations; it++) {
        order = 0;
        CHECK(cudaLaunchHostFunc(a, first, NULL));
        CHECK(cudaStreamAddCallback(a, second, &a, 0));
        CHECK(cudaEventRecord(e, a));
        CHECK(cudaEventSynchronize(e)); // an event behind them is not done before them
        if (bad || order != 2)
            FAIL("bad %d, order %d", (int)bad, (int)order);
        if (blocks_only_its_stream(a, b))
            return 1;
    }
    if (cudaStreamAddCallback(a, second, &a, 1) != cudaErrorInvalidValue ||
        cudaLaunchHostFunc(a, NULL, NULL) != cudaErrorInvalidValue)
        FAIL("wrong calls are not refused");
    (void)cudaGetLastError();
    // many, on many streams, and on the legacy stream, which waits for all
    static std::atomic<int> counted[9];
    for (int i = 0; i < 8; i++)
        CHECK(cudaStreamCreate(&s[i]));
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 8; i++)
            CHECK(cudaLaunchHostFunc(s[i], count, &counted[i]));
    CHECK(cudaLaunchHostFunc(0, count, &counted[8]));
    CHECK(cudaStreamSynchronize(0));
    for (int i = 0; i < 8; i++)
        if (counted[i] != n)
            FAIL("stream %d: %d of %d functions", i, (int)counted[i], n);
    if (counted[8] != 1)
        FAIL("the legacy stream's function ran %d times", (int)counted[8]);
    for (int i = 0; i < 8; i++)
        CHECK(cudaStreamDestroy(s[i]));
    return work_pass(WORK);
}

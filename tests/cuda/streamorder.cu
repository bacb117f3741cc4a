// SPDX-License-Identifier: Apache-2.0
// Tests what streams and events promise, each promise against its opposite. A kernel that waits for
// a flag of the host holds a stream; the program sees from outside what else runs meanwhile. It
// fails if something runs that may not, or does not run that may.
#include <pthread.h>
#include "work.cuh"
#define WORK "streamorder"
#define FAIL(...) return work_fail(WORK, __VA_ARGS__)

// Until *go: but not for ever, so that a wrong implementation fails instead of hanging.
__global__ void hold(volatile int *go, int *gave_up)
{
    for (long i = 0; i < 200000000; i++)
        if (*go)
            return;
    *gave_up = 1;
}
__global__ void bump(int *v)
{
    ++*v;
}

static volatile int *go; // pinned
static int *gave_up, *counter;

static int held(cudaStream_t s)
{
    *go = 0;
    (void)cudaGetLastError(); // "not ready" is remembered too
    hold<<<1, 1, 0, s>>>((volatile int *)go, gave_up);
    CHECK_LAUNCH();
    return 0;
}

#define READY(what) (cudaStreamQuery(what) == cudaSuccess)

static int events(cudaStream_t a, cudaStream_t b)
{
    cudaEvent_t e, f, never;
    float ms;
    CHECK(cudaEventCreate(&e));
    CHECK(cudaEventCreateWithFlags(&f, cudaEventDisableTiming | cudaEventBlockingSync));
    CHECK(cudaEventCreate(&never));
    // an event that was never recorded holds nothing
    CHECK(cudaStreamWaitEvent(b, never, 0));
    CHECK(cudaEventSynchronize(never));
    CHECK(cudaStreamSynchronize(b));
    // recorded behind the held kernel: not ready; waiting for it holds the other stream
    held(a);
    CHECK(cudaEventRecord(e, a));
    CHECK(cudaStreamWaitEvent(b, e, 0));
    *counter = 0;
    bump<<<1, 1, 0, b>>>(counter);
    if (cudaEventQuery(e) != cudaErrorNotReady || cudaStreamQuery(b) != cudaErrorNotReady)
        FAIL("an event behind a running kernel is ready");
    if (cudaEventElapsedTime(&ms, e, e) != cudaErrorNotReady)
        FAIL("elapsed time of an event that is not ready");
    // recording it again elsewhere changes nothing for who waits already
    CHECK(cudaEventRecord(e, 0)); // legacy: a is non-blocking, so this is done at once
    CHECK(cudaEventSynchronize(e));
    (void)cudaGetLastError();
    if (READY(b) || *(volatile int *)counter)
        FAIL("recording again let go who waited for the first record");
    *go = 1;
    CHECK(cudaStreamSynchronize(b));
    if (*(volatile int *)counter != 1)
        FAIL("counter %d", *counter);
    // elapsed time in the documented wrong cases
    CHECK(cudaEventRecord(e, a));
    CHECK(cudaEventRecord(f, a));
    CHECK(cudaStreamSynchronize(a));
    if (cudaEventElapsedTime(&ms, e, never) != cudaErrorInvalidResourceHandle)
        FAIL("elapsed time to an event that was never recorded");
    if (cudaEventElapsedTime(&ms, e, f) != cudaErrorInvalidResourceHandle)
        FAIL("elapsed time to an event without timing");
    if (cudaEventElapsedTime(NULL, e, e) != cudaErrorInvalidValue)
        FAIL("elapsed time to nowhere");
    CHECK(cudaEventElapsedTime(&ms, e, e));
    if (ms != 0)
        FAIL("from an event to itself: %f ms", ms);
    if (cudaEventRecordWithFlags(e, a, 7) != cudaErrorInvalidValue ||
        cudaEventCreateWithFlags(&e, 99) != cudaErrorInvalidValue ||
        cudaEventCreateWithFlags(&e, cudaEventInterprocess) != cudaErrorInvalidValue)
        FAIL("wrong flags are not refused");
    (void)cudaGetLastError();
    CHECK(cudaEventDestroy(e));
    if (cudaEventQuery(e) != cudaErrorInvalidResourceHandle)
        FAIL("a destroyed event answers");
    (void)cudaGetLastError();
    CHECK(cudaEventDestroy(f));
    CHECK(cudaEventDestroy(never));
    return 0;
}

static int legacy(cudaStream_t blocking, cudaStream_t non_blocking)
{
    // the legacy stream waits for blocking streams, and holds them
    held(blocking);
    *counter = 0;
    bump<<<1, 1>>>(counter);
    bump<<<1, 1, 0, non_blocking>>>(counter + 1);
    CHECK(cudaStreamSynchronize(non_blocking));
    if (READY(0) || *(volatile int *)counter)
        FAIL("the legacy stream did not wait for a blocking one");
    *go = 1;
    CHECK(cudaStreamSynchronize(0));
    if (*(volatile int *)counter != 1)
        FAIL("the legacy stream's kernel did not run");
    held(0);
    bump<<<1, 1, 0, blocking>>>(counter);
    bump<<<1, 1, 0, non_blocking>>>(counter + 1);
    bump<<<1, 1, 0, cudaStreamPerThread>>>(counter + 2);
    CHECK(cudaStreamSynchronize(non_blocking));
    if (READY(blocking) || *(volatile int *)counter != 1)
        FAIL("a blocking stream did not wait for the legacy one");
    if (READY(cudaStreamPerThread))
        FAIL("the per-thread stream did not wait for the legacy one");
    *go = 1;
    CHECK(cudaDeviceSynchronize());
    // a non-blocking stream is not waited for
    held(non_blocking);
    bump<<<1, 1>>>(counter);
    CHECK(cudaStreamSynchronize(0));
    if (*(volatile int *)counter != 3 || READY(non_blocking))
        FAIL("counter %d: the legacy stream and a non-blocking one", *counter);
    *go = 1;
    CHECK(cudaDeviceSynchronize());
    (void)cudaGetLastError();
    return 0;
}

static int attributes()
{
    cudaStream_t s, t;
    unsigned flags;
    int priority, least, greatest;
    unsigned long long id, other;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, greatest - 10));
    CHECK(cudaStreamGetPriority(s, &priority));
    CHECK(cudaStreamGetFlags(s, &flags));
    if (priority != greatest || flags != cudaStreamNonBlocking || least != 0 || greatest >= 0)
        FAIL("priority %d of %d…%d, flags %u", priority, least, greatest, flags);
    CHECK(cudaStreamCreate(&t));
    CHECK(cudaStreamGetId(s, &id));
    CHECK(cudaStreamGetId(t, &other));
    if (id == other)
        FAIL("two streams with one id");
    CHECK(cudaStreamCopyAttributes(t, s));
    CHECK(cudaStreamDestroy(s));
    if (cudaStreamQuery(s) != cudaErrorInvalidResourceHandle ||
        cudaStreamSynchronize(s) != cudaErrorInvalidResourceHandle ||
        cudaStreamDestroy(0) != cudaErrorInvalidResourceHandle)
        FAIL("streams that are none");
    (void)cudaGetLastError();
    CHECK(cudaStreamDestroy(t));
    return 0;
}

// Each thread its own default stream: one holds its, the others' work passes.
static void *thread(void *arg)
{
    int *mine = (int *)arg;
    for (int i = 0; i < 50; i++)
        bump<<<1, 1, 0, cudaStreamPerThread>>>(mine);
    return cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess ? NULL : (void *)1;
}

static int per_thread()
{
    enum { THREADS = 6 };
    pthread_t t[THREADS];
    void *r;
    held(cudaStreamPerThread); // of the main thread
    for (int i = 0; i < THREADS; i++)
        counter[i] = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, thread, counter + i);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], &r);
        if (r || ((volatile int *)counter)[i] != 50)
            FAIL("thread %d: %d", i, counter[i]);
    }
    if (READY(cudaStreamPerThread))
        FAIL("the main thread's stream is done");
    (void)cudaGetLastError();
    *go = 1;
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    return 0;
}

int main(int argc, char **argv)
{
    long iterations = work_arg(argc, argv, 2, 1, 10000);
    cudaStream_t blocking, a, b;
    CHECK(cudaMallocHost((void **)&go, sizeof(int)));
    CHECK(cudaMallocHost(&counter, 16 * sizeof(int)));
    CHECK(cudaMallocHost(&gave_up, sizeof(int)));
    *gave_up = 0;
    CHECK(cudaStreamCreate(&blocking));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    for (long it = 0; it < iterations; it++)
        if (events(a, b) || legacy(blocking, a) || attributes() || per_thread())
            return 1;
    CHECK(cudaDeviceSynchronize());
    if (*gave_up)
        FAIL("a held kernel was not let go in time");
    return work_pass(WORK);
}

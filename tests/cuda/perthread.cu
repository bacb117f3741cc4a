// SPDX-License-Identifier: Apache-2.0
// Compiled with -default-stream per-thread, so that stream 0 is the calling thread's own. Threads
// work on theirs side by side, also with graphs and host functions. Fails if a result is wrong or
// if one thread that is held up holds up another.
#include <pthread.h>
#include "work.cuh"
#define WORK "perthread"
#define FAIL(...) return work_fail(WORK, __VA_ARGS__)

// Until *go: but not for ever, so that a wrong implementation fails instead of hanging.
__global__ void hold(volatile int *go, int *gave_up)
{
    for (long i = 0; i < 200000000; i++)
        if (*go)
            return;
    *gave_up = 1;
}
__global__ void add(int *v, int by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] += by;
}

enum { THREADS = 5 };
static int n;
struct work {
    pthread_t thread;
    int by, host_calls, failed;
};

static void CUDART_CB note(void *data)
{
    ++*(int *)data;
}

static int one(struct work *w)
{
    size_t bytes = n * sizeof(int);
    int *d, *h = (int *)work_alloc(bytes);
    cudaEvent_t e;
    cudaGraph_t g;
    cudaGraphExec_t x;
    cudaStream_t s;
    CHECK(cudaMalloc(&d, bytes));
    CHECK(cudaEventCreate(&e));
    for (int i = 0; i < n; i++)
        h[i] = i;
    CHECK(cudaMemcpy(d, h, bytes, cudaMemcpyHostToDevice));
    add<<<(n + 127) / 128, 128>>>(d, w->by, n);
    CHECK_LAUNCH();
    CHECK(cudaLaunchHostFunc(0, note, &w->host_calls));
    CHECK(cudaEventRecord(e, 0));
    CHECK(cudaEventSynchronize(e));
    if (w->host_calls != 1)
        FAIL("%d host calls", w->host_calls);
    // a capture of another stream, launched into stream 0
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    add<<<(n + 127) / 128, 128, 0, s>>>(d, 1, n);
    add<<<(n + 127) / 128, 128, 0, s>>>(d, 1, n);
    CHECK(cudaStreamEndCapture(s, &g));
    // and of stream 0 itself, which can be captured where it is a thread's own
    cudaGraph_t g0;
    CHECK(cudaStreamBeginCapture(0, cudaStreamCaptureModeThreadLocal));
    add<<<(n + 127) / 128, 128>>>(d, 3, n);
    CHECK(cudaStreamEndCapture(0, &g0));
    cudaGraphExec_t x0;
    CHECK(cudaGraphInstantiate(&x0, g0, 0));
    CHECK(cudaGraphInstantiate(&x, g, 0));
    for (int i = 0; i < 5; i++) {
        CHECK(cudaGraphLaunch(x, 0));
        CHECK(cudaGraphLaunch(x0, 0));
    }
    CHECK(cudaMemcpyAsync(h, d, bytes, cudaMemcpyDeviceToHost, 0));
    CHECK(cudaStreamSynchronize(0));
    for (int i = 0; i < n; i++)
        if (h[i] != i + w->by + 25)
            FAIL("thread %d: [%d] = %d", w->by, i, h[i]);
    CHECK(cudaMemset(d, 1, bytes));
    CHECK(cudaMemcpy(h, d, bytes, cudaMemcpyDeviceToHost));
    if (h[n - 1] != 0x01010101)
        FAIL("thread %d: %x", w->by, h[n - 1]);
    CHECK(cudaGraphExecDestroy(x));
    CHECK(cudaGraphExecDestroy(x0));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaGraphDestroy(g0));
    CHECK(cudaStreamDestroy(s));
    CHECK(cudaEventDestroy(e));
    free(h);
    return 0;
}

static void *run(void *arg)
{
    struct work *w = (struct work *)arg;
    w->failed = one(w);
    return NULL;
}

int main(int argc, char **argv)
{
    n = (int)work_arg(argc, argv, 1, 16, 4096) * 256;
    long iterations = work_arg(argc, argv, 2, 2, 10000);
    int *p; // pinned: go, gave up
    CHECK(cudaMallocHost(&p, 2 * sizeof(int)));
    for (long it = 0; it < iterations; it++) {
        struct work w[THREADS] = {};
        p[0] = p[1] = 0;
        hold<<<1, 1>>>(p, p + 1); // in the main thread's stream 0
        CHECK_LAUNCH();
        for (int i = 0; i < THREADS; i++) {
            w[i].by = i + 1;
            pthread_create(&w[i].thread, NULL, run, &w[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(w[i].thread, NULL);
            if (w[i].failed)
                return 1;
        }
        if (cudaStreamQuery(0) != cudaErrorNotReady)
            FAIL("the main thread's stream 0 is done");
        (void)cudaGetLastError();
        ((volatile int *)p)[0] = 1;
        CHECK(cudaStreamSynchronize(0));
        if (p[1])
            FAIL("the held kernel gave up: a thread waited for another's stream");
    }
    return work_pass(WORK);
}

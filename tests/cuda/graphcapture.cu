// SPDX-License-Identifier: Apache-2.0
// Captures a stream's work: fork and join by events over three streams, copies from and to pageable
// memory, a host function between them, repeated launches, and an exec that is updated from a
// second capture. Fails if a launch gives wrong results or if what capturing forbids is allowed.
#include "work.cuh"
#define WORK "graphcapture"

__global__ void scale(float *v, float by, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] *= by;
}
__global__ void add(float *to, const float *a, const float *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = a[i] + b[i];
}

static int n, host_calls;
static float *in, *out, *da, *db, *dc;
static cudaStream_t s[3];
static cudaEvent_t forked, joined[2];

static void CUDART_CB note(void *data)
{
    ++*(int *)data;
}

// out = 2 in + by in + by
static void work(float by)
{
    size_t bytes = n * sizeof(float);
    int blocks = (n + 255) / 256;
    CHECK(cudaMemcpyAsync(da, in, bytes, cudaMemcpyHostToDevice, s[0]));
    CHECK(cudaMemcpyAsync(db, da, bytes, cudaMemcpyDeviceToDevice, s[0]));
    CHECK(cudaEventRecord(forked, s[0]));
    CHECK(cudaStreamWaitEvent(s[1], forked, 0));
    CHECK(cudaStreamWaitEvent(s[2], forked, 0));
    scale<<<blocks, 256, 0, s[1]>>>(da, 2, n);
    scale<<<blocks, 256, 0, s[2]>>>(db, by, n);
    CHECK(cudaEventRecord(joined[0], s[1]));
    CHECK(cudaEventRecord(joined[1], s[2]));
    CHECK(cudaStreamWaitEvent(s[0], joined[0], 0));
    CHECK(cudaStreamWaitEvent(s[0], joined[1], 0));
    add<<<blocks, 256, 0, s[0]>>>(dc, da, db, n);
    CHECK(cudaMemcpyAsync(out, dc, bytes, cudaMemcpyDeviceToHost, s[0]));
    CHECK(cudaLaunchHostFunc(s[0], note, &host_calls));
    CHECK_LAUNCH();
}

static cudaGraph_t capture(float by)
{
    cudaGraph_t g;
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeGlobal));
    work(by);
    CHECK(cudaStreamIsCapturing(s[2], &status));
    if (status != cudaStreamCaptureStatusActive)
        exit(work_fail(WORK, "the forked stream is not capturing"));
    CHECK(cudaStreamEndCapture(s[0], &g));
    CHECK(cudaStreamIsCapturing(s[2], &status));
    if (status != cudaStreamCaptureStatusNone)
        exit(work_fail(WORK, "the forked stream still captures"));
    return g;
}

static int right(float by, int calls)
{
    for (int i = 0; i < n; i++)
        if (out[i] != 2 * in[i] + by * in[i])
            return work_fail(WORK, "out[%d] = %f, not %f", i, out[i], 2 * in[i] + by * in[i]);
    if (host_calls != calls)
        return work_fail(WORK, "%d host calls, not %d", host_calls, calls);
    return 0;
}

#define WANT(code, call)                                                                           \
    do {                                                                                           \
        cudaError_t got = (call);                                                                  \
        if (got != (code))                                                                         \
            return work_fail(WORK, "line %d: %s gave %s", __LINE__, #call, cudaGetErrorName(got)); \
        (void)cudaGetLastError();                                                                  \
    } while (0)

static int forbidden()
{
    cudaGraph_t g = (cudaGraph_t)1;
    cudaStream_t blocking;
    cudaEvent_t outside;
    void *p;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CHECK(cudaStreamCreate(&blocking));
    CHECK(cudaEventCreate(&outside));
    CHECK(cudaEventRecord(outside, s[1]));
    WANT(cudaErrorIllegalState, cudaStreamEndCapture(s[0], &g));
    WANT(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
    // synchronising what is captured
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeRelaxed));
    WANT(cudaErrorIllegalState, cudaStreamBeginCapture(s[0], cudaStreamCaptureModeRelaxed));
    CHECK(cudaMalloc(&p, 64)); // allowed in relaxed mode
    CHECK(cudaFree(p));
    WANT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(s[0]));
    WANT(cudaErrorStreamCaptureInvalidated, cudaMemsetAsync(da, 0, 4, s[0]));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s[0], &g));
    if (g)
        return work_fail(WORK, "an invalidated capture gave a graph");
    // calls that may synchronise
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeGlobal));
    WANT(cudaErrorStreamCaptureUnsupported, cudaMalloc(&p, 64));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s[0], &g));
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeGlobal));
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK(cudaMalloc(&p, 64));
    CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
    CHECK(cudaStreamEndCapture(s[0], &g));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaFree(p));
    // a fork that is not joined
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeRelaxed));
    CHECK(cudaEventRecord(forked, s[0]));
    CHECK(cudaStreamWaitEvent(s[1], forked, 0));
    CHECK(cudaMemsetAsync(da, 0, 4, s[1]));
    WANT(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(s[1], &g));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s[0], &g));
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeRelaxed));
    CHECK(cudaEventRecord(forked, s[0]));
    CHECK(cudaStreamWaitEvent(s[1], forked, 0));
    CHECK(cudaMemsetAsync(da, 0, 4, s[1]));
    WANT(cudaErrorCapturedEvent, cudaEventQuery(forked));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s[0], &g));
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeRelaxed));
    CHECK(cudaEventRecord(forked, s[0]));
    CHECK(cudaStreamWaitEvent(s[1], forked, 0));
    CHECK(cudaMemsetAsync(da, 0, 4, s[1]));
    WANT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(s[0], &g));
    WANT(cudaErrorCapturedEvent, cudaStreamWaitEvent(s[1], forked, 0)); // its capture is over
    // an event from outside; two captures mixed
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeRelaxed));
    WANT(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(s[0], outside, 0));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s[0], &g));
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeRelaxed));
    CHECK(cudaStreamBeginCapture(s[1], cudaStreamCaptureModeRelaxed));
    CHECK(cudaEventRecord(forked, s[0]));
    WANT(cudaErrorStreamCaptureMerge, cudaStreamWaitEvent(s[1], forked, 0));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s[1], &g));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s[0], &g));
    // the legacy stream beside a capture on a blocking stream
    CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    WANT(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(da, 0, 4, 0));
    WANT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(blocking, &g));
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeRelaxed)); // non-blocking: no matter
    CHECK(cudaMemsetAsync(da, 0, 4, 0));
    CHECK(cudaStreamEndCapture(s[0], &g));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaStreamDestroy(blocking));
    CHECK(cudaEventDestroy(outside));
    return 0;
}

int main(int argc, char **argv)
{
    n = (int)work_arg(argc, argv, 1, 64, 1 << 14) * 1024;
    long iterations = work_arg(argc, argv, 2, 3, 100000);
    size_t bytes = n * sizeof(float), count = 0;
    in = (float *)work_alloc(bytes);
    out = (float *)work_alloc(bytes);
    CHECK(cudaMalloc(&da, bytes));
    CHECK(cudaMalloc(&db, bytes));
    CHECK(cudaMalloc(&dc, bytes));
    for (int i = 0; i < 3; i++)
        CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    for (int i = 0; i < 2; i++)
        CHECK(cudaEventCreateWithFlags(&joined[i], cudaEventDisableTiming));
    memset(out, 0, bytes);
    for (int i = 0; i < n; i++)
        in[i] = (float)(work_random(i) & 1023);
    cudaGraph_t g = capture(3), h = capture(5);
    cudaGraphExec_t e;
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphGetNodes(g, NULL, &count));
    if (count != 7)
        return work_fail(WORK, "%zu nodes, not 7", count);
    if (host_calls || out[1])
        return work_fail(WORK, "capturing did the work");
    CHECK(cudaGraphInstantiate(&e, g, 0));
    for (long it = 0; it < iterations; it++) {
        host_calls = 0;
        in[it % n] = (float)(it + 7); // read when the graph runs
        for (int k = 0; k < 3; k++)
            CHECK(cudaGraphLaunch(e, s[k]));
        CHECK(cudaStreamSynchronize(s[2]));
        if (right(it ? 5 : 3, 3))
            return 1;
        if (!it)
            CHECK(cudaGraphExecUpdate(e, h, &info));
    }
    // another topology is refused, and the exec is as it was
    cudaGraph_t other;
    CHECK(cudaStreamBeginCapture(s[0], cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(da, 0, bytes, s[0]));
    CHECK(cudaStreamEndCapture(s[0], &other));
    WANT(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(e, other, &info));
    if (info.result != cudaGraphExecUpdateErrorTopologyChanged)
        return work_fail(WORK, "update said %d", (int)info.result);
    host_calls = 0;
    CHECK(cudaGraphLaunch(e, s[0]));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaGraphDestroy(h));
    CHECK(cudaGraphExecDestroy(e)); // while it runs
    CHECK(cudaStreamSynchronize(s[0]));
    if (right(iterations > 1 || 1 ? 5 : 3, 1) || forbidden())
        return 1;
    CHECK(cudaDeviceSynchronize());
    return work_pass(WORK);
}

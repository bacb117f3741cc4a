// SPDX-License-Identifier: Apache-2.0
// Uses memory that belongs to graphs: alloc and free nodes made by hand and by a capture, memory
// that outlives its launch and is freed by another graph or by the stream, and automatic freeing at
// relaunch. Fails if such memory is wrong or if what may not be done to such graphs is allowed.
#include "work.cuh"
#define WORK "graphmemory"
#define FAIL(...) return work_fail(WORK, __VA_ARGS__)
#define WANT(code, call)                                                                           \
    do {                                                                                           \
        cudaError_t got = (call);                                                                  \
        if (got != (code))                                                                         \
            FAIL("line %d: %s gave %s", __LINE__, #call, cudaGetErrorName(got));                   \
        (void)cudaGetLastError();                                                                  \
    } while (0)

__global__ void iota(int *v, int n, int from)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] = from + i;
}
__global__ void sum(const int *a, const int *b, int *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = a[i] + b[i];
}

static int n;
static cudaStream_t s;

static int used(size_t *ret)
{
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, ret));
    return 0;
}

// What was freed before is used again.
static int reused()
{
    cudaGraph_t g;
    cudaGraphNode_t a, b, c, f;
    cudaMemAllocNodeParams p = {}, q, r;
    CHECK(cudaGraphCreate(&g, 0));
    p.poolProps.allocType = cudaMemAllocationTypePinned;
    p.poolProps.location.type = cudaMemLocationTypeDevice;
    p.bytesize = 4096;
    q = r = p;
    CHECK(cudaGraphAddMemAllocNode(&a, g, NULL, 0, &p));
    CHECK(cudaGraphAddMemFreeNode(&f, g, &a, 1, p.dptr));
    CHECK(cudaGraphAddMemAllocNode(&b, g, NULL, 0, &q)); // beside it
    CHECK(cudaGraphAddMemAllocNode(&c, g, &f, 1, &r));   // behind it
    if (q.dptr == p.dptr || r.dptr != p.dptr)
        FAIL("%p freed; beside it %p, behind it %p", p.dptr, q.dptr, r.dptr);
    CHECK(cudaGraphAddMemAllocNode(&c, g, &f, 1, &r));
    if (r.dptr == p.dptr)
        FAIL("the same memory twice");
    CHECK(cudaGraphDestroy(g));
    return 0;
}

static int captured(int *out, int *host)
{
    int *a, *b;
    cudaGraph_t g;
    cudaGraphExec_t e, second;
    size_t bytes = n * sizeof(int), now;
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(cudaMallocAsync((void **)&a, bytes, s));
    CHECK(cudaMallocAsync((void **)&b, bytes, s));
    iota<<<(n + 127) / 128, 128, 0, s>>>(a, n, 5);
    iota<<<(n + 127) / 128, 128, 0, s>>>(b, n, 100);
    sum<<<(n + 127) / 128, 128, 0, s>>>(a, b, out, n);
    CHECK(cudaFreeAsync(a, s));
    CHECK(cudaFreeAsync(b, s));
    CHECK(cudaStreamEndCapture(s, &g));
    CHECK(cudaGraphInstantiate(&e, g, 0));
    WANT(cudaErrorNotSupported, cudaGraphInstantiate(&second, g, 0));
    WANT(cudaErrorNotSupported, cudaGraphClone(&g, g));
    for (int i = 0; i < 3; i++) {
        CHECK(cudaMemsetAsync(out, 0, bytes, s));
        CHECK(cudaGraphLaunch(e, s));
        CHECK(cudaMemcpyAsync(host, out, bytes, cudaMemcpyDeviceToHost, s));
        CHECK(cudaStreamSynchronize(s));
        for (int k = 0; k < n; k++)
            if (host[k] != 105 + 2 * k)
                FAIL("captured: [%d] = %d", k, host[k]);
    }
    used(&now);
    if (now)
        FAIL("%zu bytes are still used", now);
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    return 0;
}

// Allocated in one graph, freed in another, or outside.
static int outlives(int *host)
{
    cudaGraph_t make, drop;
    cudaGraphNode_t alloc, kernel, copy, release;
    cudaGraphExec_t m, d;
    size_t bytes = n * sizeof(int), now;
    cudaMemAllocNodeParams p = {};
    CHECK(cudaGraphCreate(&make, 0));
    p.poolProps.allocType = cudaMemAllocationTypePinned;
    p.poolProps.location.type = cudaMemLocationTypeDevice;
    p.poolProps.location.id = 0;
    p.bytesize = bytes;
    CHECK(cudaGraphAddMemAllocNode(&alloc, make, NULL, 0, &p));
    int *v = (int *)p.dptr, from = 9;
    if (!v)
        FAIL("no address");
    void *args[] = {&v, &n, &from};
    cudaKernelNodeParams kp = {};
    kp.func = (void *)iota;
    kp.gridDim = dim3((n + 127) / 128);
    kp.blockDim = dim3(128);
    kp.kernelParams = args;
    CHECK(cudaGraphAddKernelNode(&kernel, make, &alloc, 1, &kp));
    WANT(cudaErrorNotSupported, cudaGraphDestroyNode(kernel));
    WANT(cudaErrorNotSupported, cudaGraphRemoveDependencies(make, &alloc, &kernel, NULL, 1));
    CHECK(cudaGraphCreate(&drop, 0));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, drop, NULL, 0, host, v, bytes, cudaMemcpyDeviceToHost));
    CHECK(cudaGraphAddMemFreeNode(&release, drop, &copy, 1, v));
    WANT(cudaErrorInvalidValue, cudaGraphAddMemFreeNode(&release, drop, &copy, 1, host));
    CHECK(cudaGraphInstantiate(&m, make, 0));
    CHECK(cudaGraphInstantiate(&d, drop, 0));
    for (int i = 0; i < 2; i++) {
        memset(host, 0, bytes);
        CHECK(cudaGraphLaunch(m, s));
        WANT(cudaErrorInvalidValue, cudaGraphLaunch(m, s)); // it is not freed yet
        CHECK(cudaGraphLaunch(d, s));
        CHECK(cudaStreamSynchronize(s));
        for (int k = 0; k < n; k++)
            if (host[k] != 9 + k)
                FAIL("outlives: [%d] = %d", k, host[k]);
    }
    CHECK(cudaGraphLaunch(m, s));
    used(&now);
    if (now < bytes)
        FAIL("%zu bytes used, not %zu", now, bytes);
    CHECK(cudaFreeAsync(v, s));
    CHECK(cudaGraphLaunch(m, s));
    CHECK(cudaGraphExecDestroy(m));
    CHECK(cudaGraphExecDestroy(d));
    CHECK(cudaGraphInstantiate(&m, make, cudaGraphInstantiateFlagAutoFreeOnLaunch));
    CHECK(cudaGraphLaunch(m, s));
    CHECK(cudaGraphLaunch(m, s)); // frees by itself what the last one left
    CHECK(cudaGraphExecDestroy(m));
    CHECK(cudaGraphDestroy(make));
    CHECK(cudaGraphDestroy(drop));
    CHECK(cudaMemcpy(host, v, bytes, cudaMemcpyDeviceToHost)); // still allocated
    if (host[n - 1] != 9 + n - 1)
        FAIL("memory did not outlive its graph");
    CHECK(cudaFree(v));
    WANT(cudaErrorInvalidValue, cudaFree(v));
    used(&now);
    if (now)
        FAIL("%zu bytes are still used at the end", now);
    size_t high, zero = 0;
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &high));
    if (high < bytes)
        FAIL("high mark %zu", high);
    CHECK(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
    CHECK(cudaDeviceGraphMemTrim(0));
    CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &now));
    if (now)
        FAIL("%zu bytes are still reserved", now);
    return 0;
}

int main(int argc, char **argv)
{
    n = (int)work_arg(argc, argv, 1, 16, 1 << 14) * 1024;
    long iterations = work_arg(argc, argv, 2, 1, 10000);
    int *out, *host = (int *)work_alloc(n * sizeof(int));
    CHECK(cudaMalloc((void **)&out, n * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (long it = 0; it < iterations; it++)
        if (reused() || captured(out, host) || outlives(host))
            return 1;
    return work_pass(WORK);
}

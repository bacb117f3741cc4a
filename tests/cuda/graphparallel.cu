// SPDX-License-Identifier: Apache-2.0
// Tests where a graph begins and ends. Fails if a branch starts before the stream's earlier work
// has ended, if branches do not run beside each other, if the stream goes on before all of them
// have ended, if an exec overlaps itself, or if the legacy stream does not order a graph as it
// orders a kernel.
#include "work.cuh"
#define WORK "graphparallel"
#define FAIL(...) return work_fail(WORK, __VA_ARGS__)

// Until *go: but not for ever, so that a wrong implementation fails instead of hanging.
__global__ void hold(volatile int *go, int *gave_up)
{
    for (long i = 0; i < 200000000; i++)
        if (*go)
            return;
    *gave_up = 1;
}
__global__ void set(volatile int *v, int value)
{
    *v = value;
}
__global__ void bump(int *v)
{
    ++*v;
}
__global__ void all_set(const volatile int *v, int n, int *ret)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    *ret = sum;
}
__global__ void slow_bump(int *v) // two at once would lose one
{
    int old = *(volatile int *)v;
    for (volatile int i = 0; i < 20000; i++)
        ;
    *(volatile int *)v = old + 1;
}

enum { BRANCHES = 6 };
static int *p; // pinned: go, gave_up, sum, count, inner, then one of each branch
enum { GO, GAVE_UP, SUM, COUNT, INNER, FIRST = 8, N = FIRST + BRANCHES };

static cudaGraphNode_t kernel(cudaGraph_t g, cudaGraphNode_t after, void *f, void **args)
{
    cudaKernelNodeParams k = {};
    cudaGraphNode_t n;
    k.func = f;
    k.gridDim = k.blockDim = dim3(1);
    k.kernelParams = args;
    CHECK(cudaGraphAddKernelNode(&n, g, after ? &after : NULL, after ? 1 : 0, &k));
    return n;
}

static int begins_and_ends(cudaStream_t s, cudaStream_t other)
{
    cudaGraph_t g;
    cudaGraphExec_t e;
    int one = 1;
    CHECK(cudaGraphCreate(&g, 0));
    for (int i = 0; i < BRANCHES; i++) { // branches of unlike length, without a common root or end
        int *mine = p + FIRST + i, *count = p + COUNT;
        void *args[] = {&mine, &one}, *slow_args[] = {&count};
        cudaGraphNode_t n = NULL;
        for (int k = 0; k < i; k++)
            if (i == 3)
                n = kernel(g, n, (void *)slow_bump, slow_args);
        kernel(g, n, (void *)set, args);
    }
    CHECK(cudaGraphInstantiate(&e, g, 0));
    memset(p, 0, N * sizeof(int));
    hold<<<1, 1, 0, s>>>(p + GO, p + GAVE_UP);
    CHECK(cudaGraphLaunch(e, s));
    all_set<<<1, 1, 0, s>>>(p + FIRST, BRANCHES, p + SUM);
    CHECK_LAUNCH();
    bump<<<1, 1, 0, other>>>(p + INNER); // beside it all
    CHECK(cudaStreamSynchronize(other));
    for (int i = 0; i < BRANCHES; i++)
        if (((volatile int *)p)[FIRST + i])
            FAIL("branch %d did not wait for what the stream had before", i);
    if (cudaStreamQuery(s) != cudaErrorNotReady)
        FAIL("the stream is done");
    (void)cudaGetLastError();
    ((volatile int *)p)[GO] = 1;
    CHECK(cudaStreamSynchronize(s));
    if (p[SUM] != BRANCHES || p[COUNT] != 3)
        FAIL("behind the graph %d of %d branches were done", p[SUM], BRANCHES);
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    return 0;
}

// One branch waits for what the other writes.
static int beside_each_other(cudaStream_t s)
{
    cudaGraph_t g;
    cudaGraphExec_t e;
    int *go = p + GO, *gave_up = p + GAVE_UP, *count = p + COUNT, one = 1;
    void *hold_args[] = {&go, &gave_up}, *set_args[] = {&go, &one}, *bump_args[] = {&count};
    CHECK(cudaGraphCreate(&g, 0));
    cudaGraphNode_t root = kernel(g, NULL, (void *)bump, bump_args);
    cudaGraphNode_t a = kernel(g, root, (void *)hold, hold_args);
    cudaGraphNode_t b = kernel(g, root, (void *)set, set_args);
    cudaGraphNode_t last = kernel(g, a, (void *)bump, bump_args);
    CHECK(cudaGraphAddDependencies(g, &b, &last, NULL, 1));
    CHECK(cudaGraphInstantiate(&e, g, 0));
    memset(p, 0, N * sizeof(int));
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaStreamSynchronize(s));
    if (p[GAVE_UP] || p[COUNT] != 2)
        FAIL("branches of a graph do not run beside each other");
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    return 0;
}

static int not_into_itself(cudaStream_t s, cudaStream_t t)
{
    cudaGraph_t g;
    cudaGraphExec_t e;
    int *count = p + COUNT;
    void *args[] = {&count};
    CHECK(cudaGraphCreate(&g, 0));
    cudaGraphNode_t n = kernel(g, NULL, (void *)slow_bump, args);
    kernel(g, n, (void *)slow_bump, args);
    CHECK(cudaGraphInstantiate(&e, g, 0));
    memset(p, 0, N * sizeof(int));
    for (int i = 0; i < 10; i++)
        CHECK(cudaGraphLaunch(e, i & 1 ? s : t));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaStreamSynchronize(t));
    if (p[COUNT] != 20)
        FAIL("%d of 20 kernels counted: launches of an exec overlap", p[COUNT]);
    // in the legacy stream: behind a blocking stream, and before what it does next
    cudaStream_t blocking;
    CHECK(cudaStreamCreate(&blocking));
    memset(p, 0, N * sizeof(int));
    hold<<<1, 1, 0, blocking>>>(p + GO, p + GAVE_UP);
    CHECK(cudaGraphLaunch(e, 0));
    all_set<<<1, 1, 0, blocking>>>(p + COUNT, 1, p + SUM);
    if (cudaStreamQuery(0) != cudaErrorNotReady || ((volatile int *)p)[COUNT])
        FAIL("a graph in the legacy stream did not wait for a blocking stream");
    (void)cudaGetLastError();
    ((volatile int *)p)[GO] = 1;
    CHECK(cudaStreamSynchronize(blocking));
    if (p[SUM] != 2)
        FAIL("a blocking stream did not wait for a graph in the legacy stream: %d", p[SUM]);
    CHECK(cudaStreamDestroy(blocking));
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    return 0;
}

static void CUDART_CB write_it(void *data)
{
    *(int *)data = 4711;
}

// Copies of pageable memory happen when the graph gets there: they read what a host node wrote, and launching waits for nothing.
static int copies_in_their_turn(cudaStream_t s)
{
    cudaGraph_t g;
    cudaGraphExec_t e;
    cudaGraphNode_t host, up, last;
    int *d, *in = (int *)work_alloc(sizeof(int)), *out = (int *)work_alloc(sizeof(int));
    CHECK(cudaMalloc(&d, sizeof(int)));
    *in = *out = 0;
    cudaHostNodeParams hp = {write_it, in};
    void *args[] = {&d};
    CHECK(cudaGraphCreate(&g, 0));
    CHECK(cudaGraphAddHostNode(&host, g, NULL, 0, &hp));
    CHECK(cudaGraphAddMemcpyNode1D(&up, g, &host, 1, d, in, sizeof(int), cudaMemcpyHostToDevice));
    cudaGraphNode_t k = kernel(g, up, (void *)bump, args);
    CHECK(cudaGraphAddMemcpyNode1D(&last, g, &k, 1, out, d, sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaGraphInstantiate(&e, g, 0));
    memset(p, 0, N * sizeof(int));
    hold<<<1, 1, 0, s>>>(p + GO, p + GAVE_UP);
    CHECK(cudaGraphLaunch(e, s));
    if (*(volatile int *)in || *(volatile int *)out || ((volatile int *)p)[GAVE_UP])
        FAIL("launching waited, or the graph did not");
    ((volatile int *)p)[GO] = 1;
    CHECK(cudaStreamSynchronize(s));
    if (*out != 4712)
        FAIL("copied %d", *out);
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaFree(d));
    free(in);
    free(out);
    return 0;
}

// Events that a capture takes as nodes: recorded and waited for when the graph runs, from outside too.
static int external_events(cudaStream_t s, cudaStream_t t)
{
    cudaGraph_t g;
    cudaGraphExec_t e;
    cudaEvent_t gate, done;
    size_t count = 0;
    CHECK(cudaEventCreateWithFlags(&gate, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    memset(p, 0, N * sizeof(int));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    bump<<<1, 1, 0, s>>>(p + COUNT);
    CHECK(cudaEventRecordWithFlags(done, s, cudaEventRecordExternal));
    CHECK(cudaStreamWaitEvent(s, gate, cudaEventWaitExternal));
    bump<<<1, 1, 0, s>>>(p + INNER);
    CHECK(cudaStreamEndCapture(s, &g));
    CHECK(cudaGraphGetNodes(g, NULL, &count));
    if (count != 4)
        FAIL("%zu nodes, not 4", count);
    CHECK(cudaGraphInstantiate(&e, g, 0));
    hold<<<1, 1, 0, t>>>(p + GO, p + GAVE_UP);
    CHECK(cudaEventRecord(gate, t)); // what the graph will wait for
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaEventSynchronize(done)); // recorded by the graph
    if (((volatile int *)p)[COUNT] != 1 || ((volatile int *)p)[INNER])
        FAIL("external events: %d, %d", p[COUNT], p[INNER]);
    ((volatile int *)p)[GO] = 1;
    CHECK(cudaStreamSynchronize(s));
    if (p[INNER] != 1)
        FAIL("the graph did not go on");
    if (cudaEventRecordWithFlags(done, s, cudaEventRecordExternal) != cudaErrorInvalidValue ||
        cudaStreamWaitEvent(s, gate, cudaEventWaitExternal) != cudaErrorInvalidValue)
        FAIL("external flags outside of a capture");
    (void)cudaGetLastError();
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaEventDestroy(gate));
    CHECK(cudaEventDestroy(done));
    CHECK(cudaStreamSynchronize(t));
    return 0;
}

int main(int argc, char **argv)
{
    long iterations = work_arg(argc, argv, 2, 1, 10000);
    cudaStream_t s, t;
    CHECK(cudaMallocHost(&p, N * sizeof(int)));
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    for (long it = 0; it < iterations; it++)
        if (begins_and_ends(s, t) || beside_each_other(s) || not_into_itself(s, t) ||
            copies_in_their_turn(s) || external_events(s, t))
            return 1;
    if (p[GAVE_UP])
        FAIL("a held kernel was not let go in time");
    return work_pass(WORK);
}

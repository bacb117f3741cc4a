// SPDX-License-Identifier: Apache-2.0
// Uses conditional nodes: WHILE around a kernel that counts down, IF with both branches, SWITCH,
// one inside another, launched repeatedly without the host looking. Fails if a body runs too often,
// too seldom or in the wrong case.
#include "work.cuh"
#define WORK "graphcond"
#define FAIL(...) return work_fail(WORK, __VA_ARGS__)

__global__ void countdown(cudaGraphConditionalHandle h, int *left, int *ran)
{
    ++*ran;
    cudaGraphSetConditional(h, --*left > 0);
}
__global__ void choose(cudaGraphConditionalHandle h, const int *value)
{
    if (threadIdx.x == 3)
        cudaGraphSetConditional(h, *value);
}
__global__ void put(int *to, int value)
{
    *to = value;
}

static cudaGraphNode_t kernel(cudaGraph_t g, cudaGraphNode_t after, void *f, int threads, void **args)
{
    cudaGraphNodeParams p = {};
    cudaGraphNode_t n;
    p.type = cudaGraphNodeTypeKernel;
    p.kernel.func = f;
    p.kernel.gridDim = dim3(1);
    p.kernel.blockDim = dim3(threads);
    p.kernel.kernelParams = args;
    CHECK(cudaGraphAddNode(&n, g, after ? &after : NULL, NULL, after ? 1 : 0, &p));
    return n;
}

static cudaGraphNode_t conditional(cudaGraph_t g, cudaGraphNode_t after, cudaGraphConditionalHandle h,
                                   cudaGraphConditionalNodeType type, unsigned size, cudaGraph_t *bodies)
{
    cudaGraphNodeParams p = {};
    cudaGraphNode_t n;
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = h;
    p.conditional.type = type;
    p.conditional.size = size;
    CHECK(cudaGraphAddNode(&n, g, after ? &after : NULL, NULL, after ? 1 : 0, &p));
    for (unsigned i = 0; i < size; i++)
        bodies[i] = p.conditional.phGraph_out[i];
    return n;
}

// A loop put into a capture: the node by hand, its body captured on another stream meanwhile.
static int captured(cudaStream_t s, int *left, int *ran, int *after, int turns)
{
    cudaGraph_t g, got;
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t *deps;
    size_t n;
    cudaGraphConditionalHandle h;
    cudaGraphNode_t node;
    cudaStream_t t;
    cudaGraphExec_t e;
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    put<<<1, 1, 0, s>>>(left, turns);
    CHECK(cudaStreamGetCaptureInfo(s, &status, NULL, &got, &deps, NULL, &n));
    CHECK(cudaGraphConditionalHandleCreate(&h, got, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams p = {};
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = h;
    p.conditional.type = cudaGraphCondTypeWhile;
    p.conditional.size = 1;
    CHECK(cudaGraphAddNode(&node, got, deps, NULL, n, &p));
    CHECK(cudaStreamUpdateCaptureDependencies(s, &node, NULL, 1, cudaStreamSetCaptureDependencies));
    CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    CHECK(cudaStreamBeginCaptureToGraph(t, p.conditional.phGraph_out[0], NULL, NULL, 0,
                                        cudaStreamCaptureModeGlobal));
    countdown<<<1, 1, 0, t>>>(h, left, ran);
    CHECK(cudaStreamEndCapture(t, NULL)); /* the graph was given, so nobody need be told of it */
    put<<<1, 1, 0, s>>>(after, 9);
    CHECK(cudaStreamEndCapture(s, &g));
    if (g != got)
        FAIL("another graph");
    CHECK(cudaGraphInstantiate(&e, g, 0));
    *ran = *after = 0;
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaStreamSynchronize(s));
    if (*ran != turns || *left || *after != 9)
        FAIL("captured: ran %d, left %d, after %d", *ran, *left, *after);
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaStreamDestroy(t));
    (void)cudaGetLastError();
    return 0;
}

int main(int argc, char **argv)
{
    int turns = (int)work_arg(argc, argv, 1, 8, 10000);
    long iterations = work_arg(argc, argv, 2, 2, 10000);
    int *v; // pinned: left, ran, chosen, result, after
    enum { LEFT, RAN, CHOSEN, RESULT, AFTER, BRANCH, N };
    CHECK(cudaMallocHost(&v, N * sizeof(int)));
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    cudaGraph_t g, body, cases[3], branches[2];
    cudaGraphConditionalHandle loop, which, inner, unused;
    CHECK(cudaGraphCreate(&g, 0));
    CHECK(cudaGraphConditionalHandleCreate(&loop, g, 1, cudaGraphCondAssignDefault));
    CHECK(cudaGraphConditionalHandleCreate(&which, g, 0, 0));
    // while: ++ran, --left
    cudaGraphNode_t while_node = conditional(g, NULL, loop, cudaGraphCondTypeWhile, 1, &body);
    int *left = v + LEFT, *ran = v + RAN, *chosen = v + CHOSEN, *result = v + RESULT, *after = v + AFTER,
        *branch = v + BRANCH;
    void *count_args[] = {&loop, &left, &ran};
    cudaGraphNode_t count = kernel(body, NULL, (void *)countdown, 1, count_args);
    // in the loop: if (left) branch = 1 else branch = 2
    CHECK(cudaGraphConditionalHandleCreate(&inner, body, 0, 0));
    void *inner_args[] = {&inner, &left};
    cudaGraphNode_t ask = kernel(body, count, (void *)choose, 32, inner_args);
    conditional(body, ask, inner, cudaGraphCondTypeIf, 2, branches);
    int one = 1, two = 2;
    void *one_args[] = {&branch, &one}, *two_args[] = {&branch, &two};
    kernel(branches[0], NULL, (void *)put, 1, one_args);
    kernel(branches[1], NULL, (void *)put, 1, two_args);
    // then: switch (chosen)
    void *choose_args[] = {&which, &chosen};
    cudaGraphNode_t chooser = kernel(g, while_node, (void *)choose, 32, choose_args);
    cudaGraphNode_t switch_node = conditional(g, chooser, which, cudaGraphCondTypeSwitch, 3, cases);
    for (int i = 0; i < 3; i++) {
        int value = 100 + i;
        void *put_args[] = {&result, &value};
        kernel(cases[i], NULL, (void *)put, 1, put_args);
    }
    int done = 5;
    void *after_args[] = {&after, &done};
    kernel(g, switch_node, (void *)put, 1, after_args);

    cudaGraphExec_t e;
    CHECK(cudaGraphInstantiate(&e, g, 0));
    CHECK(cudaGraphDestroy(g));
    for (long it = 0; it < iterations * 4; it++) {
        memset(v, 0, N * sizeof(int));
        v[LEFT] = turns;
        v[CHOSEN] = (int)(it % 4);
        CHECK(cudaGraphLaunch(e, s));
        CHECK(cudaStreamSynchronize(s));
        int want = it % 4 < 3 ? 100 + (int)(it % 4) : 0;
        if (v[LEFT] || v[RAN] != turns || v[BRANCH] != 2 || v[RESULT] != want || v[AFTER] != 5)
            FAIL("launch %ld: left %d, ran %d, branch %d, result %d (not %d), after %d", it, v[LEFT],
                 v[RAN], v[BRANCH], v[RESULT], want, v[AFTER]);
    }
    // two launches, one behind the other, without waiting in between: the loop's value is set anew for each
    v[LEFT] = turns;
    v[RAN] = 0;
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaGraphLaunch(e, s)); // left is 0: one turn
    CHECK(cudaStreamSynchronize(s));
    if (v[RAN] != turns + 1)
        FAIL("two launches ran %d turns", v[RAN]);
    CHECK(cudaGraphExecDestroy(e));
    cudaStream_t capturing;
    CHECK(cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking));
    if (captured(capturing, left, ran, after, turns))
        return 1;
    // wrong: a handle of another graph, used twice, not used, a size that can't be
    cudaGraph_t h, other;
    cudaGraphNode_t n;
    cudaGraphNodeParams p = {};
    CHECK(cudaGraphCreate(&h, 0));
    CHECK(cudaGraphCreate(&other, 0));
    CHECK(cudaGraphConditionalHandleCreate(&unused, h, 0, 0));
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = unused;
    p.conditional.type = cudaGraphCondTypeWhile;
    p.conditional.size = 2;
    if (cudaGraphAddNode(&n, h, NULL, NULL, 0, &p) != cudaErrorInvalidValue)
        FAIL("a loop with two bodies");
    p.conditional.size = 1;
    if (cudaGraphAddNode(&n, other, NULL, NULL, 0, &p) != cudaErrorInvalidValue)
        FAIL("a handle of another graph");
    cudaGraphInstantiateParams ip = {};
    if (cudaGraphInstantiateWithParams(&e, h, &ip) == cudaSuccess ||
        ip.result_out != cudaGraphInstantiateConditionalHandleUnused)
        FAIL("a handle that nothing uses");
    CHECK(cudaGraphAddNode(&n, h, NULL, NULL, 0, &p));
    if (cudaGraphAddNode(&n, h, NULL, NULL, 0, &p) != cudaErrorInvalidValue)
        FAIL("a handle used twice");
    (void)cudaGetLastError();
    CHECK(cudaGraphDestroy(h));
    CHECK(cudaGraphDestroy(other));
    return work_pass(WORK);
}

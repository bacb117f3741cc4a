// SPDX-License-Identifier: Apache-2.0
// Builds a graph by hand with every kind of node, and reads and changes its parameters in the graph
// and in the exec; clones, edges, enabled and disabled nodes, user objects, attributes. Fails if
// what is read differs from what was set, if a launch gives wrong results, or if a wrong call is
// accepted.
#include "work.cuh"
#define WORK "graphnodes"

__device__ int symbol[4];

__global__ void fill(int *v, int value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] += value + symbol[i & 3];
}
__global__ void twice(int *v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] *= 2;
}

#define FAIL(...) return work_fail(WORK, __VA_ARGS__)
#define WANT(code, call)                                                                           \
    do {                                                                                           \
        cudaError_t got = (call);                                                                  \
        if (got != (code))                                                                         \
            FAIL("line %d: %s gave %s", __LINE__, #call, cudaGetErrorName(got));                   \
        (void)cudaGetLastError();                                                                  \
    } while (0)

static int seen, destroyed;
static int *host_out;
static void CUDART_CB look(void *data)
{
    seen = host_out[0] + *(int *)data;
}
static void CUDART_CB destroy(void *data)
{
    destroyed += *(int *)data;
}

enum { N = 1024, ROW = 32 };

int main(int argc, char **argv)
{
    long iterations = work_arg(argc, argv, 2, 2, 10000);
    int *d, *box, values[4] = {10, 20, 30, 40}, add = 5, more = 7, n = N, extra = 1000;
    int *pinned;
    cudaGraph_t g, child, clone, got_graph;
    cudaGraphNode_t set, set2d, to_symbol, kernel, twice_node, inner, out_node, host, record, wait,
        empty, box_node, found;
    cudaGraphExec_t e;
    cudaEvent_t event;
    cudaStream_t stream, second;
    CHECK(cudaMalloc(&d, N * sizeof(int)));
    CHECK(cudaMalloc(&box, 64 * ROW * sizeof(int)));
    CHECK(cudaMallocHost(&pinned, 64 * ROW * sizeof(int)));
    CHECK(cudaEventCreate(&event));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamCreate(&second));
    host_out = (int *)work_alloc(N * sizeof(int));

    CHECK(cudaGraphCreate(&g, 0));
    WANT(cudaErrorInvalidValue, cudaGraphCreate(&child, 1));
    // values -> symbol; d = 1s; box = bytes
    CHECK(cudaGraphAddMemcpyNodeToSymbol(&to_symbol, g, NULL, 0, symbol, values, sizeof values, 0,
                                         cudaMemcpyHostToDevice));
    cudaMemsetParams fill_params = {};
    fill_params.dst = d;
    fill_params.value = 1;
    fill_params.elementSize = 4;
    fill_params.width = N;
    fill_params.height = 1;
    CHECK(cudaGraphAddMemsetNode(&set, g, NULL, 0, &fill_params));
    cudaMemsetParams box_params = {};
    box_params.dst = box;
    box_params.pitch = 64 * sizeof(int);
    box_params.value = 0xab;
    box_params.elementSize = 2;
    box_params.width = 2 * ROW;
    box_params.height = ROW;
    CHECK(cudaGraphAddMemsetNode(&set2d, g, NULL, 0, &box_params));
    // kernel: d[i] += add + symbol[i & 3]
    cudaKernelNodeParams kp = {};
    void *args[] = {&d, &add, &n};
    kp.func = (void *)fill;
    kp.gridDim = dim3(N / 128);
    kp.blockDim = dim3(128);
    kp.kernelParams = args;
    cudaGraphNode_t deps[] = {to_symbol, set};
    CHECK(cudaGraphAddKernelNode(&kernel, g, deps, 2, &kp));
    add = 99; // the node has its own copy
    // child graph: twice, then d -> host
    CHECK(cudaGraphCreate(&child, 0));
    void *twice_args[] = {&d, &n};
    cudaKernelNodeParams tp = kp;
    tp.func = (void *)twice;
    tp.kernelParams = twice_args;
    CHECK(cudaGraphAddKernelNode(&twice_node, child, NULL, 0, &tp));
    CHECK(cudaGraphAddMemcpyNode1D(&out_node, child, &twice_node, 1, host_out, d, N * sizeof(int),
                                   cudaMemcpyDeviceToHost));
    CHECK(cudaGraphAddChildGraphNode(&inner, g, &kernel, 1, child));
    // host function behind it; an event recorded and waited for; an empty node that joins
    cudaHostNodeParams hp = {look, &extra};
    CHECK(cudaGraphAddHostNode(&host, g, &inner, 1, &hp));
    CHECK(cudaGraphAddEventRecordNode(&record, g, &kernel, 1, event));
    CHECK(cudaGraphAddEventWaitNode(&wait, g, &record, 1, event));
    // a box of the pitched memory to pinned memory
    cudaMemcpy3DParms cp = {};
    cp.srcPtr = make_cudaPitchedPtr(box, 64 * sizeof(int), 64 * sizeof(int), ROW);
    cp.dstPtr = make_cudaPitchedPtr(pinned, 64 * sizeof(int), 64 * sizeof(int), ROW);
    cp.extent = make_cudaExtent(ROW * sizeof(int), ROW, 1);
    cp.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaGraphAddMemcpyNode(&box_node, g, &set2d, 1, &cp));
    cudaGraphNode_t ends[] = {host, wait};
    CHECK(cudaGraphAddEmptyNode(&empty, g, ends, 2));
    CHECK(cudaGraphAddDependencies(g, &box_node, &empty, NULL, 1));

    // what is known of it
    size_t count = 0;
    cudaGraphNodeType type;
    CHECK(cudaGraphGetNodes(g, NULL, &count));
    if (count != 10)
        FAIL("%zu nodes", count);
    CHECK(cudaGraphGetRootNodes(g, NULL, &count));
    if (count != 3)
        FAIL("%zu roots", count);
    CHECK(cudaGraphGetEdges(g, NULL, NULL, NULL, &count));
    if (count != 10)
        FAIL("%zu edges", count);
    cudaGraphNode_t list[4] = {};
    count = 4;
    CHECK(cudaGraphNodeGetDependencies(empty, list, NULL, &count));
    if (count != 3 || list[0] != host || list[1] != wait || list[2] != box_node || list[3])
        FAIL("dependencies of the last node");
    count = 4;
    CHECK(cudaGraphNodeGetDependentNodes(kernel, list, NULL, &count));
    if (count != 2)
        FAIL("%zu depend on the kernel", count);
    CHECK(cudaGraphNodeGetType(wait, &type));
    if (type != cudaGraphNodeTypeWaitEvent)
        FAIL("type %d", (int)type);
    cudaKernelNodeParams got = {};
    CHECK(cudaGraphKernelNodeGetParams(kernel, &got));
    if (got.func != (void *)fill || got.gridDim.x != N / 128 || *(int *)got.kernelParams[1] != 5)
        FAIL("parameters of the kernel");
    CHECK(cudaGraphChildGraphNodeGetGraph(inner, &got_graph));
    if (got_graph == child)
        FAIL("a child graph is a copy");
    WANT(cudaErrorInvalidValue, cudaGraphDestroy(got_graph));
    CHECK(cudaGraphNodeFindInClone(&found, twice_node, got_graph));
    CHECK(cudaGraphNodeGetType(found, &type));
    if (type != cudaGraphNodeTypeKernel)
        FAIL("found another node in the child");
    cudaMemcpy3DParms got_copy;
    CHECK(cudaGraphMemcpyNodeGetParams(box_node, &got_copy));
    if (got_copy.dstPtr.ptr != pinned || got_copy.extent.height != ROW)
        FAIL("parameters of the copy");
    cudaKernelNodeAttrValue value = {};
    value.priority = -1;
    CHECK(cudaGraphKernelNodeSetAttribute(kernel, cudaLaunchAttributePriority, &value));
    value.priority = 0;
    CHECK(cudaGraphKernelNodeCopyAttributes(twice_node, kernel));
    CHECK(cudaGraphKernelNodeGetAttribute(twice_node, cudaLaunchAttributePriority, &value));
    if (value.priority != -1)
        FAIL("priority %d", value.priority);

    // wrong calls
    WANT(cudaErrorInvalidValue, cudaGraphAddDependencies(g, &box_node, &empty, NULL, 1)); // twice
    WANT(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&found, child, &kernel, 1)); // of another graph
    WANT(cudaErrorInvalidValue, cudaGraphMemsetNodeSetParams(kernel, &fill_params));
    WANT(cudaErrorInvalidValue, cudaGraphHostNodeGetParams((cudaGraphNode_t)8, &hp));
    WANT(cudaErrorInvalidValue, cudaGraphInstantiate(&e, (cudaGraph_t)16, 0));
    CHECK(cudaGraphAddDependencies(g, &empty, &set, NULL, 1)); // a cycle
    WANT(cudaErrorInvalidValue, cudaGraphInstantiate(&e, g, 0));
    CHECK(cudaGraphRemoveDependencies(g, &empty, &set, NULL, 1));
    kp.blockDim = dim3(4096);
    WANT(cudaErrorInvalidConfiguration, cudaGraphKernelNodeSetParams(kernel, &kp));
    kp.blockDim = dim3(128);

    cudaUserObject_t object;
    int one = 1;
    CHECK(cudaUserObjectCreate(&object, &one, destroy, 1, cudaUserObjectNoDestructorSync));
    CHECK(cudaGraphRetainUserObject(g, object, 1, cudaGraphUserObjectMove));
    CHECK(cudaGraphClone(&clone, g));
    CHECK(cudaGraphInstantiate(&e, g, 0));
    CHECK(cudaGraphDestroy(child));
    for (long it = 0; it < iterations; it++) {
        memset(host_out, 0, N * sizeof(int));
        memset(pinned, 0, 64 * ROW * sizeof(int));
        seen = 0;
        CHECK(cudaGraphLaunch(e, stream));
        CHECK(cudaStreamSynchronize(stream));
        for (int i = 0; i < N; i++)
            if (host_out[i] != 2 * (1 + 5 + values[i & 3]))
                FAIL("out[%d] = %d", i, host_out[i]);
        for (int y = 0; y < ROW; y++)
            for (int x = 0; x < 64; x++)
                if (pinned[64 * y + x] != (x < ROW ? 0x00ab00ab : 0))
                    FAIL("box[%d][%d] = %x", y, x, pinned[64 * y + x]);
        if (seen != host_out[0] + extra)
            FAIL("the host function saw %d", seen);
        CHECK(cudaEventQuery(event));
    }
    // changes in the exec: other argument, other copy, a node switched off
    args[1] = &more;
    CHECK(cudaGraphExecKernelNodeSetParams(e, kernel, &kp));
    fill_params.value = 3;
    CHECK(cudaGraphExecMemsetNodeSetParams(e, set, &fill_params));
    CHECK(cudaGraphNodeSetEnabled(e, to_symbol, 0));
    values[0] = 77; // not copied any more
    int other = 2000;
    hp.userData = &other;
    CHECK(cudaGraphExecHostNodeSetParams(e, host, &hp));
    CHECK(cudaGraphLaunch(e, stream));
    CHECK(cudaStreamSynchronize(stream));
    if (host_out[0] != 2 * (3 + 7 + 10) || seen != host_out[0] + 2000)
        FAIL("after changes: out[0] = %d, seen %d", host_out[0], seen);
    unsigned on;
    CHECK(cudaGraphNodeGetEnabled(e, to_symbol, &on));
    if (on)
        FAIL("the node is on");
    WANT(cudaErrorInvalidValue, cudaGraphNodeSetEnabled(e, host, 0));
    // the clone is the graph as it was; two execs of it, on two streams
    cudaGraphExec_t f;
    CHECK(cudaGraphInstantiateWithFlags(&f, clone, 0));
    CHECK(cudaGraphLaunch(f, stream));
    CHECK(cudaGraphLaunch(f, second)); // waits for the first
    CHECK(cudaStreamSynchronize(second));
    if (host_out[0] != 2 * (1 + 5 + 77))
        FAIL("clone: out[0] = %d", host_out[0]);
    // the generic way to say it
    cudaGraphNodeParams np = {};
    np.type = cudaGraphNodeTypeMemset;
    np.memset.dst = d;
    np.memset.value = 4;
    np.memset.elementSize = 4;
    np.memset.width = N;
    np.memset.height = 1;
    cudaGraph_t h;
    CHECK(cudaGraphCreate(&h, 0));
    CHECK(cudaGraphAddNode(&found, h, NULL, NULL, 0, &np));
    np = {};
    np.type = cudaGraphNodeTypeKernel;
    np.kernel.func = (void *)twice;
    np.kernel.gridDim = dim3(N / 128);
    np.kernel.blockDim = dim3(128);
    np.kernel.kernelParams = twice_args;
    cudaGraphNode_t k;
    CHECK(cudaGraphAddNode(&k, h, &found, NULL, 1, &np));
    cudaGraphExec_t x;
    cudaGraphInstantiateParams ip = {};
    CHECK(cudaGraphInstantiateWithParams(&x, h, &ip));
    if (ip.result_out != cudaGraphInstantiateSuccess)
        FAIL("result %d", (int)ip.result_out);
    CHECK(cudaGraphUpload(x, stream));
    CHECK(cudaGraphLaunch(x, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(host_out, d, sizeof(int), cudaMemcpyDeviceToHost));
    if (host_out[0] != 8)
        FAIL("generic: %d", host_out[0]);
    CHECK(cudaGraphDestroyNode(k));
    CHECK(cudaGraphGetNodes(h, NULL, &count));
    if (count != 1)
        FAIL("%zu nodes left", count);
    ip.flags = cudaGraphInstantiateFlagDeviceLaunch;
    CHECK(cudaGraphDestroy(h));
    CHECK(cudaGraphExecDestroy(x));
    CHECK(cudaGraphExecDestroy(f));
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    if (destroyed)
        FAIL("the user object went with the first graph");
    CHECK(cudaGraphDestroy(clone));
    if (destroyed != 1)
        FAIL("the user object was destroyed %d times", destroyed);
    return work_pass(WORK);
}

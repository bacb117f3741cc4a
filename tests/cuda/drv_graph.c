// SPDX-License-Identifier: Apache-2.0
/* Uses graphs, capture and stream memory operations by the CUDA Driver API, in all the versions
 * that its functions have. Fails if a result is wrong or a wrong call is accepted. */
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

#include "drv.h"
#define WORK      "drv_graph"
#define FAIL(...) return work_fail(WORK, __VA_ARGS__)

typedef struct graph_st *CUgraph;
typedef struct node_st *CUgraphNode;
typedef struct exec_st *CUgraphExec;
struct kernel_params { /* CUDA_KERNEL_NODE_PARAMS_v2 */
    CUfunction func;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    void *kern, *ctx;
};
struct memset_params {
    CUdeviceptr dst;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};
struct memcpy_params { /* CUDA_MEMCPY3D_v2 */
    size_t src_x, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    CUdeviceptr src_device;
    void *src_array, *src_reserved;
    size_t src_pitch, src_height;
    size_t dst_x, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    CUdeviceptr dst_device;
    void *dst_array, *dst_reserved;
    size_t dst_pitch, dst_height;
    size_t width, height, depth;
};
struct host_params {
    void (*fn)(void *);
    void *data;
};
union batch_op {
    int operation;
    struct {
        int operation;
        CUdeviceptr address;
        uint64_t value;
        unsigned flags;
        CUdeviceptr alias;
    } value;
    uint64_t pad[6];
};
struct batch_params {
    void *ctx;
    unsigned count;
    union batch_op *ops;
    unsigned flags;
};
struct edge {
    unsigned char from_port, to_port, type, reserved[5];
};
struct update_info {
    int result;
    CUgraphNode node, from;
};
enum { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5, BARRIER = 6 };
enum { HOST = 1, DEVICE = 2 };

#define EXTRA_FUNCTIONS(F)                                                                         \
    F(cuStreamWaitValue32_v2, (CUstream, CUdeviceptr, uint32_t, unsigned))                         \
    F(cuStreamWaitValue64, (CUstream, CUdeviceptr, uint64_t, unsigned))                            \
    F(cuStreamWriteValue32, (CUstream, CUdeviceptr, uint32_t, unsigned))                           \
    F(cuStreamWriteValue64_v2, (CUstream, CUdeviceptr, uint64_t, unsigned))                        \
    F(cuStreamBatchMemOp_v2, (CUstream, unsigned, union batch_op *, unsigned))                     \
    F(cuStreamQuery, (CUstream))                                                                   \
    F(cuStreamBeginCapture_v2, (CUstream, int))                                                    \
    F(cuStreamEndCapture, (CUstream, CUgraph *))                                                   \
    F(cuStreamGetCaptureInfo, (CUstream, int *, uint64_t *))                                       \
    F(cuStreamGetCaptureInfo_v2,                                                                   \
      (CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, size_t *))                    \
    F(cuStreamGetCaptureInfo_v3, (CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **,    \
                                  const struct edge **, size_t *))                                 \
    F(cuStreamUpdateCaptureDependencies, (CUstream, CUgraphNode *, size_t, unsigned))              \
    F(cuStreamBeginCaptureToGraph,                                                                 \
      (CUstream, CUgraph, const CUgraphNode *, const struct edge *, size_t, int))                  \
    F(cuGraphCreate, (CUgraph *, unsigned))                                                        \
    F(cuGraphDestroy, (CUgraph))                                                                   \
    F(cuGraphAddKernelNode_v2,                                                                     \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const struct kernel_params *))         \
    F(cuGraphAddKernelNode,                                                                        \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const struct kernel_params *))         \
    F(cuGraphKernelNodeGetParams, (CUgraphNode, struct kernel_params *))                           \
    F(cuGraphAddMemsetNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,                  \
                             const struct memset_params *, CUcontext))                             \
    F(cuGraphAddMemcpyNode, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,                  \
                             const struct memcpy_params *, CUcontext))                             \
    F(cuGraphAddHostNode,                                                                          \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const struct host_params *))           \
    F(cuGraphAddBatchMemOpNode,                                                                    \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, const struct batch_params *))          \
    F(cuGraphBatchMemOpNodeGetParams, (CUgraphNode, struct batch_params *))                        \
    F(cuGraphExecBatchMemOpNodeSetParams, (CUgraphExec, CUgraphNode, const struct batch_params *)) \
    F(cuGraphAddDependencies, (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t))         \
    F(cuGraphAddDependencies_v2,                                                                   \
      (CUgraph, const CUgraphNode *, const CUgraphNode *, const struct edge *, size_t))            \
    F(cuGraphGetEdges, (CUgraph, CUgraphNode *, CUgraphNode *, size_t *))                          \
    F(cuGraphGetEdges_v2, (CUgraph, CUgraphNode *, CUgraphNode *, struct edge *, size_t *))        \
    F(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))                   \
    F(cuGraphInstantiate_v2, (CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t))              \
    F(cuGraphExecUpdate, (CUgraphExec, CUgraph, CUgraphNode *, int *))                             \
    F(cuGraphExecUpdate_v2, (CUgraphExec, CUgraph, struct update_info *))                          \
    F(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec, CUgraphNode, const struct kernel_params *)) \
    F(cuGraphExecDestroy, (CUgraphExec))                                                           \
    F(cuGraphLaunch, (CUgraphExec, CUstream))                                                      \
    F(cuGraphDebugDotPrint, (CUgraph, const char *, unsigned))
#define DECLARE(name, args) static int(*name) args;
EXTRA_FUNCTIONS(DECLARE)

static int load_extra(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
#define LOAD(name, args)                                                                           \
    *(void **)&(name) = lib ? dlsym(lib, #name) : NULL;                                            \
    if (!(name))                                                                                   \
        FAIL("no %s", #name);
    EXTRA_FUNCTIONS(LOAD)
    return 0;
}

#define OK(call) drv_check(call, #call, __FILE__, __LINE__)
#define WANT(code, call)                                                                           \
    do {                                                                                           \
        int got_ = (call);                                                                         \
        if (got_ != (code))                                                                        \
            FAIL("line %d: %s gave %d", __LINE__, #call, got_);                                    \
    } while (0)

static const char ptx[] = ".version 7.5\n.target sm_70\n.address_size 64\n"
                          ".visible .entry add(.param .u64 p, .param .u32 by)\n{\n"
                          ".reg .b64 %a;\n.reg .b32 %v, %b;\n"
                          "ld.param.u64 %a, [p];\nld.param.u32 %b, [by];\n"
                          "ld.global.u32 %v, [%a];\nadd.u32 %v, %v, %b;\nst.global.u32 [%a], %v;\n"
                          "ret;\n}\n";

/* ---- stream memory operations ---- */

static int memory_operations(CUstream a, CUstream b, CUfunction add)
{
    CUdeviceptr d;
    uint32_t *p, v = 0, one = 1;
    OK(drv.mem_alloc(&d, 64));
    OK(drv.mem_alloc_host((void **)&p, 64));
    memset(p, 0, 64);
    OK(drv.memset_d8(d, 0, 64));
    CUdeviceptr pinned = (uintptr_t)p;
    /* a waits for a word that the host writes */
    OK(cuStreamWaitValue32_v2(a, pinned, 5, 0));
    drv_launch(add, 1, 1, 0, a, &d, &one);
    WANT(600, cuStreamQuery(a));
    usleep(3000);
    WANT(600, cuStreamQuery(a));
    __atomic_store_n(p, 4, __ATOMIC_RELEASE);
    usleep(3000);
    WANT(600, cuStreamQuery(a));
    __atomic_store_n(p, 6, __ATOMIC_RELEASE); /* at least 5 */
    OK(drv.stream_synchronize(a));
    OK(drv.memcpy_dtoh(&v, d, 4));
    if (v != 1)
        FAIL("the kernel behind the wait: %u", v);
    /* a waits for b, through device memory, without an event */
    OK(cuStreamWaitValue64(a, d + 8, UINT64_C(0x123456789ab), 1));
    drv_launch(add, 1, 1, 0, a, &d, &one);
    drv_launch(add, 1, 1, 0, b, &d, &one);
    OK(cuStreamWriteValue64_v2(b, d + 8, UINT64_C(0x123456789ab), 0));
    OK(drv.stream_synchronize(a));
    OK(drv.stream_synchronize(b));
    OK(drv.memcpy_dtoh(&v, d, 4));
    if (v != 3)
        FAIL("two kernels in order: %u", v);
    /* a batch: write, wait for what was written, write again */
    union batch_op ops[4] = {0};
    ops[0].value = (__typeof__(ops[0].value)){WRITE_32, pinned + 8, 77, 0, 0};
    ops[1].value = (__typeof__(ops[0].value)){WAIT_32, pinned + 8, 77, 1, 0};
    ops[2].operation = BARRIER;
    ops[3].value = (__typeof__(ops[0].value)){WRITE_64, pinned + 16, UINT64_C(1) << 40, 0, 0};
    OK(cuStreamBatchMemOp_v2(a, 4, ops, 0));
    OK(drv.stream_synchronize(a));
    if (p[2] != 77 || p[4] || p[5] != 256)
        FAIL("batch: %u %u %u", p[2], p[4], p[5]);
    OK(cuStreamWriteValue32(a, d + 4, 9, 0));
    OK(drv.stream_synchronize(a));
    OK(drv.memcpy_dtoh(&v, d + 4, 4));
    if (v != 9)
        FAIL("written: %u", v);
    WANT(1, cuStreamWriteValue32(a, d + 2, 9, 0));
    WANT(1, cuStreamWaitValue32_v2(a, d, 9, 64));
    WANT(1, cuStreamWaitValue32_v2(a, 4096, 9, 0));
    ops[0].operation = 99;
    WANT(1, cuStreamBatchMemOp_v2(a, 1, ops, 0));
    OK(drv.mem_free_host(p));
    OK(drv.mem_free(d));
    return 0;
}

/* ---- graphs ---- */

static uint32_t host_saw;
static void look(void *data)
{
    host_saw = *(uint32_t *)data;
}

static int by_hand(CUcontext ctx, CUstream s, CUfunction add)
{
    CUdeviceptr d;
    uint32_t by = 5, out = 0, *word;
    CUgraph g;
    CUgraphExec e;
    CUgraphNode set, kernel, copy, host, batch, late, from[8], to[8];
    struct edge data[8];
    size_t n = 0;
    OK(drv.mem_alloc(&d, 64));
    OK(drv.mem_alloc_host((void **)&word, 64));
    *word = 0;
    OK(cuGraphCreate(&g, 0));
    struct memset_params ms = {.dst = d, .value = 100, .element = 4, .width = 4, .height = 1};
    OK(cuGraphAddMemsetNode(&set, g, NULL, 0, &ms, ctx));
    void *args[] = {&d, &by};
    struct kernel_params kp = {.func = add, .grid = {1, 1, 1}, .block = {1, 1, 1}, .params = args};
    OK(cuGraphAddKernelNode_v2(&kernel, g, &set, 1, &kp));
    struct memcpy_params mc = {.src_type = DEVICE,
                               .src_device = d,
                               .src_pitch = 4,
                               .src_height = 1,
                               .dst_type = HOST,
                               .dst_host = &out,
                               .dst_pitch = 4,
                               .dst_height = 1,
                               .width = 4,
                               .height = 1,
                               .depth = 1};
    OK(cuGraphAddMemcpyNode(&copy, g, &kernel, 1, &mc, ctx));
    struct host_params hp = {look, &out};
    OK(cuGraphAddHostNode(&host, g, &copy, 1, &hp));
    /* a word that the program writes holds one branch */
    union batch_op ops[1] = {0};
    ops[0].value = (__typeof__(ops[0].value)){WAIT_32, (uintptr_t)word, 1, 1, 0};
    struct batch_params bp = {.ctx = ctx, .count = 1, .ops = ops};
    OK(cuGraphAddBatchMemOpNode(&batch, g, NULL, 0, &bp));
    OK(cuGraphAddKernelNode(&late, g, &batch, 1, &kp)); /* v1: what lies behind is not read */
    OK(cuGraphAddDependencies(g, &host, &late, 1));
    struct edge programmatic = {.from_port = 1, .type = 1};
    WANT(1, cuGraphAddDependencies_v2(g, &set, &late, &programmatic, 1)); /* no kernel */
    OK(cuGraphAddDependencies_v2(g, &kernel, &late, &programmatic, 1));
    n = 8;
    WANT(402, cuGraphGetEdges(g, from, to, &n)); /* can't tell of such an edge */
    n = 8;
    OK(cuGraphGetEdges_v2(g, from, to, data, &n));
    if (n != 6)
        FAIL("%zu edges", n);
    struct kernel_params got = {.kern = (void *)3};
    OK(cuGraphKernelNodeGetParams(kernel, &got));
    if (got.func != add || *(uint32_t *)got.params[1] != 5 || got.kern != (void *)3)
        FAIL("parameters of the kernel");
    OK(cuGraphInstantiate_v2(&e, g, NULL, NULL, 0));
    for (uint32_t i = 1; i < 4; i++) {
        out = host_saw = 0;
        *word = 0;
        OK(cuGraphLaunch(e, s));
        usleep(2000);
        WANT(600, cuStreamQuery(s));
        __atomic_store_n(word, i, __ATOMIC_RELEASE);
        OK(drv.stream_synchronize(s));
        if (out != 105 || host_saw != 105)
            FAIL("launch %u: out %u, seen %u", i, out, host_saw);
        OK(drv.memcpy_dtoh(&out, d, 4));
        if (out != 110)
            FAIL("launch %u: %u at the end", i, out);
        ops[0].value.value = i + 1;
        OK(cuGraphExecBatchMemOpNodeSetParams(e, batch, &bp));
        OK(cuGraphBatchMemOpNodeGetParams(batch, &bp));
        if (bp.count != 1 || bp.ops[0].value.value != 1 || bp.ops[0].operation != WAIT_32)
            FAIL("the graph's node has changed with the exec's");
        bp.ops = ops;
    }
    OK(cuGraphDebugDotPrint(g, "/dev/null", 1));
    WANT(1, cuGraphDebugDotPrint(g, "/nowhere/x.dot", 1));
    OK(cuGraphDestroy(g));
    OK(cuGraphExecDestroy(e));
    WANT(1, cuGraphLaunch(e, s));
    OK(drv.mem_free_host(word));
    OK(drv.mem_free(d));
    return 0;
}

static int captured(CUstream s, CUfunction add)
{
    CUdeviceptr d;
    uint32_t by = 1, out = 0;
    CUgraph g, more, got;
    CUgraphExec e;
    CUgraphNode none = NULL;
    int status = 9, result;
    uint64_t id = 0, again = 0;
    const CUgraphNode *deps;
    const struct edge *data;
    size_t n;
    struct update_info info;
    OK(drv.mem_alloc(&d, 64));
    OK(cuStreamGetCaptureInfo(s, &status, &id));
    if (status)
        FAIL("captures before its time");
    OK(cuStreamBeginCapture_v2(s, 0));
    OK(drv.memset_d8_async(d, 0, 4, s));
    drv_launch(add, 1, 1, 0, s, &d, &by);
    OK(cuStreamGetCaptureInfo_v2(s, &status, &id, &got, &deps, &n));
    if (status != 1 || !id || n != 1)
        FAIL("status %d, %zu dependencies", status, n);
    CUgraphNode last = deps[0];
    OK(cuStreamUpdateCaptureDependencies(s, &none, 0, 1)); /* nothing: the next is a root */
    OK(cuStreamGetCaptureInfo_v3(s, &status, &again, NULL, &deps, &data, &n));
    if (n || again != id)
        FAIL("%zu dependencies after they were taken away", n);
    OK(cuStreamUpdateCaptureDependencies(s, &last, 1, 0));
    drv_launch(add, 1, 1, 0, s, &d, &by);
    OK(cuStreamEndCapture(s, &g));
    if (g != got)
        FAIL("another graph");
    /* the same again, added to a graph behind nothing, with another argument: for an update */
    OK(cuGraphCreate(&more, 0));
    OK(cuStreamBeginCaptureToGraph(s, more, NULL, NULL, 0, 0));
    OK(drv.memset_d8_async(d, 1, 4, s));
    by = 3;
    drv_launch(add, 1, 1, 0, s, &d, &by);
    drv_launch(add, 1, 1, 0, s, &d, &by);
    OK(cuStreamEndCapture(s, &got));
    if (got != more)
        FAIL("not the graph that was given");
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuGraphLaunch(e, s));
    OK(drv.stream_synchronize(s));
    OK(drv.memcpy_dtoh(&out, d, 4));
    if (out != 2)
        FAIL("captured: %u", out);
    OK(cuGraphExecUpdate_v2(e, more, &info));
    OK(cuGraphLaunch(e, s));
    OK(drv.stream_synchronize(s));
    OK(drv.memcpy_dtoh(&out, d, 4));
    if (out != 0x01010101 + 6)
        FAIL("updated: %x", out);
    OK(cuGraphExecUpdate(e, g, &none, &result));
    if (result)
        FAIL("result %d", result);
    OK(cuGraphLaunch(e, s));
    OK(drv.stream_synchronize(s));
    OK(drv.memcpy_dtoh(&out, d, 4));
    if (out != 2)
        FAIL("and back: %u", out);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(more));
    OK(drv.mem_free(d));
    return 0;
}

/* A stream that takes part in a capture is destroyed before the capture ends, with its work joined
 * to the origin's or not. A capture to a graph that the program has need not give it once more. */
static int side_streams(CUstream s, CUfunction add)
{
    CUdeviceptr d;
    CUevent forked, joined;
    CUstream side;
    CUgraph g;
    CUgraphExec e;
    uint32_t by = 1, out = 0;
    OK(drv.mem_alloc(&d, 64));
    OK(drv.event_create(&forked, 2));
    OK(drv.event_create(&joined, 2));
    for (int join = 0; join < 2; join++) {
        OK(cuGraphCreate(&g, 0));
        OK(cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, 0));
        OK(drv.stream_create(&side, CU_STREAM_NON_BLOCKING));
        OK(drv.memset_d8_async(d, 0, 4, s));
        OK(drv.event_record(forked, s));
        OK(drv.stream_wait_event(side, forked, 0));
        drv_launch(add, 1, 1, 0, side, &d, &by);
        OK(drv.event_record(joined, side));
        OK(drv.stream_destroy(side));
        if (join)
            OK(drv.stream_wait_event(s, joined, 0));
        drv_launch(add, 1, 1, 0, s, &d, &by);
        WANT(join ? 0 : 904, cuStreamEndCapture(s, NULL));
        if (join) {
            OK(cuGraphInstantiateWithFlags(&e, g, 0));
            OK(cuGraphLaunch(e, s));
            OK(drv.stream_synchronize(s));
            OK(drv.memcpy_dtoh(&out, d, 4));
            if (out != 2)
                FAIL("captured with a stream that was destroyed: %u", out);
            OK(cuGraphExecDestroy(e));
        }
        OK(cuGraphDestroy(g));
    }
    OK(cuStreamBeginCapture_v2(s, 0));
    WANT(1, cuStreamEndCapture(s, NULL)); /* nobody would have the graph */
    OK(cuStreamEndCapture(s, &g));
    OK(cuGraphDestroy(g));
    OK(drv.event_destroy(forked));
    OK(drv.event_destroy(joined));
    OK(drv.mem_free(d));
    return 0;
}

int main(int argc, char **argv)
{
    long iterations = work_arg(argc, argv, 2, 1, 10000);
    CUmodule m;
    CUstream a, b;
    CUcontext ctx;
    drv_begin();
    if (load_extra())
        return 1;
    DRV(ctx_retain(&ctx, 0));
    DRV(module_load_data_ex(&m, ptx, 0, NULL, NULL));
    CUfunction add = drv_function(m, "add");
    DRV(stream_create(&a, CU_STREAM_NON_BLOCKING));
    DRV(stream_create(&b, CU_STREAM_NON_BLOCKING));
    for (long it = 0; it < iterations; it++)
        if (memory_operations(a, b, add) || by_hand(ctx, a, add) || captured(b, add) ||
            side_streams(a, add))
            return 1;
    DRV(stream_destroy(a));
    DRV(stream_destroy(b));
    DRV(module_unload(m));
    DRV(ctx_release(0));
    drv_end();
    return work_pass(WORK);
}

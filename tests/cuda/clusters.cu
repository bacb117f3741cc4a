// SPDX-License-Identifier: Apache-2.0
/* Thread block clusters: a histogram whose bins are in the shared memory of all blocks of a
 * cluster, a scan by the cluster's barrier, tiles that one block loads for all by a multicast copy,
 * stores that tell another block's mbarrier; and what the runtime says of clusters. Fails if a
 * result differs from the CPU's. On a GPU without clusters a launch must be refused. */
#include <cooperative_groups.h>
#include "work.cuh"

#define WORK "clusters"
namespace cg = cooperative_groups;
enum { BINS = 1000, N = 40000, THREADS = 128, TILE = 256, TILES = 12 };

/* Each block of a cluster has as many bins as there are, by its number of blocks. */
__global__ void histogram(const int *in, int *out, int per_block)
{
    extern __shared__ int own[];
    cg::cluster_group cluster = cg::this_cluster();
    int rank = (int)cg::this_grid().thread_rank(), n = (int)cg::this_grid().size();
    for (int i = threadIdx.x; i < per_block; i += blockDim.x)
        own[i] = 0;
    cluster.sync();
    for (int i = rank; i < N; i += n) {
        int bin = in[i];
        atomicAdd(cluster.map_shared_rank(own, bin / per_block) + bin % per_block, 1);
    }
    cluster.sync();
    int first = (int)cluster.block_rank() * per_block;
    for (int i = threadIdx.x; i < per_block && first + i < BINS; i += blockDim.x)
        atomicAdd(&out[first + i], own[i]);
}

/* Each block's sum of those before it, by their shared memory. */
__global__ void __cluster_dims__(2, 2, 1) before(int *out)
{
    __shared__ int mine;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned x = blockIdx.x, y = blockIdx.y, rank = cluster.block_rank();
    if (threadIdx.x == 0)
        mine = (int)(y * gridDim.x + x + 1);
    auto token = cluster.barrier_arrive();
    bool wrong = cluster.num_blocks() != 4 || rank != x % 2 + 2 * (y % 2) ||
                 cluster.block_index().x != x % 2 || cluster.dim_blocks().y != 2;
    cluster.barrier_wait(std::move(token));
    if (threadIdx.x == 0) {
        int sum = 0;
        for (unsigned r = 0; r < rank; r++) {
            int *there = cluster.map_shared_rank(&mine, r);
            wrong |= cluster.query_shared_rank(there) != r;
            sum += *there;
        }
        out[y * gridDim.x + x] = wrong ? -1 : sum;
    }
    cluster.sync();
}

/* The first block copies each tile to all, which add up what they are given. */
__global__ void __cluster_dims__(4, 1, 1) tiles(const int *in, int *out)
{
    __shared__ alignas(128) int tile[TILE];
    __shared__ alignas(8) unsigned long long full;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned t = (unsigned)__cvta_generic_to_shared(tile),
             b = (unsigned)__cvta_generic_to_shared(&full);
    int sum = 0;
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;"
                     :
                     : "r"(b)
                     : "memory");
    cluster.sync();
    for (int k = 0; k < TILES; k++) {
        if (threadIdx.x == 0)
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         :
                         : "r"(b), "r"((int)sizeof(tile))
                         : "memory");
        if (threadIdx.x == 0 && cluster.block_rank() == 0)
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1], %2, [%3], %4;"
                         :
                         : "r"(t), "l"(in + k * TILE), "r"((int)sizeof(tile)), "r"(b),
                           "h"((short)15)
                         : "memory");
        asm volatile("{\n\t.reg .pred p;\n"
                     "WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n\t"
                     "@!p bra WAIT;\n\t}"
                     :
                     : "r"(b), "r"(k & 1)
                     : "memory");
        for (int i = threadIdx.x; i < TILE; i += blockDim.x)
            sum += tile[i] * (int)(cluster.block_rank() + 1);
        cluster.sync();
    }
    atomicAdd(&out[cluster.block_rank()], sum);
}

/* A word for each thread of the next block, which is told when all have come. */
__global__ void __cluster_dims__(8, 1, 1) ring(int *out)
{
    __shared__ alignas(16) int word[THREADS];
    __shared__ alignas(8) unsigned long long full;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned w = (unsigned)__cvta_generic_to_shared(&word[threadIdx.x]),
             b = (unsigned)__cvta_generic_to_shared(&full);
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;\n\t"
                     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :
                     : "r"(b), "r"((int)sizeof(word))
                     : "memory");
    cluster.sync();
    asm volatile("{\n\t.reg .b32 to, tell;\n\tmapa.shared::cluster.u32 to, %0, %2;\n\t"
                 "mapa.shared::cluster.u32 tell, %1, %2;\n\t"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.s32 [to], %3, "
                 "[tell];\n\t}"
                 :
                 : "r"(w), "r"(b), "r"((cluster.block_rank() + 1) % 8),
                   "r"((int)(cluster.block_rank() * 1000 + threadIdx.x))
                 : "memory");
    asm volatile("{\n\t.reg .pred p;\n"
                 "WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n\t"
                 "@!p bra WAIT;\n\t}"
                 :
                 : "r"(b)
                 : "memory");
    out[blockIdx.x * THREADS + threadIdx.x] = word[threadIdx.x];
    cluster.sync();
}

/* What a block leaves in global memory before the barrier the others find behind it. */
__global__ void __cluster_dims__(4, 1, 1) exchange(int *mid, int *out)
{
    cg::cluster_group cluster = cg::this_cluster();
    unsigned i = blockIdx.x * THREADS + threadIdx.x, first = blockIdx.x / 4 * 4;
    mid[i] = (int)i * 3;
    cluster.sync();
    out[i] = mid[(first + (cluster.block_rank() + 3) % 4) * THREADS + (THREADS - 1 - threadIdx.x)];
}

/* The blocks of its cluster; 0: nobody has said how many there are. */
__global__ void says_clusters(int *out)
{
    int is;
    asm("{\n\t.reg .pred p;\n\tmov.pred p, %%is_explicit_cluster;\n\tselp.s32 %0, 1, 0, p;\n\t}"
        : "=r"(is));
    out[blockIdx.x] = is ? (int)cg::this_cluster().num_blocks() : 0;
}

/* A kernel that knows nothing of clusters. */
__global__ void count(int *times) { atomicAdd(&times[blockIdx.x], 1); }

static cudaError_t launch_histogram(cudaStream_t s, const int *in, int *out, unsigned blocks,
                                    unsigned cluster)
{
    cudaLaunchAttribute a[2];
    cudaLaunchConfig_t c;
    int per_block = (int)((BINS + cluster - 1) / cluster);
    memset(&c, 0, sizeof c);
    memset(a, 0, sizeof a);
    a[0].id = cudaLaunchAttributeClusterDimension;
    a[0].val.clusterDim.x = cluster;
    a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1;
    a[1].id = cudaLaunchAttributeClusterSchedulingPolicyPreference;
    a[1].val.clusterSchedulingPolicyPreference = cudaClusterSchedulingPolicySpread;
    c.gridDim = blocks;
    c.blockDim = THREADS;
    c.dynamicSmemBytes = per_block * sizeof(int);
    c.stream = s;
    c.attrs = a;
    c.numAttrs = 2;
    return cudaLaunchKernelEx(&c, histogram, in, out, per_block);
}

static int check_histogram(const int *in, const int *out, int times, const char *how)
{
    static int want[BINS];
    memset(want, 0, sizeof want);
    for (int i = 0; i < N; i++)
        want[in[i]] += times;
    for (int i = 0; i < BINS; i++)
        if (out[i] != want[i])
            return work_fail(WORK, "%s: bin %d has %d, not %d", how, i, out[i], want[i]);
    return 0;
}

/* A captured launch is of clusters, too. */
static int in_a_graph(int *in, int *out)
{
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t e;
    size_t n = 1;
    cudaGraphNode_t node;
    cudaKernelNodeAttrValue v;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(launch_histogram(s, in, out, 16, 8));
    CHECK(cudaStreamEndCapture(s, &g));
    CHECK(cudaGraphGetNodes(g, &node, &n));
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &v));
    if (n != 1 || v.clusterDim.x != 8)
        return work_fail(WORK, "a captured launch has clusters of %u", v.clusterDim.x);
    v.clusterDim.x = 4;
    CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &v));
    memset(&v, 0, sizeof v);
    CHECK(cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &v));
    if (v.clusterDim.x != 4)
        return work_fail(WORK, "a node's clusters are of %u, not 4", v.clusterDim.x);
    v.clusterDim.x = 8;
    CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &v));
    CHECK(cudaGraphInstantiate(&e, g, 0));
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaStreamDestroy(s));
    return 0;
}

static int what_is_said(const int *in, int *out)
{
    cudaFuncAttributes f;
    cudaLaunchConfig_t c;
    int size, clusters, half;
    cudaLaunchAttribute a;
    if (launch_histogram(0, in, out, 10, 4) != cudaErrorInvalidClusterSize ||
        launch_histogram(0, in, out, 16, 16) != cudaErrorInvalidClusterSize)
        return work_fail(WORK, "a wrong cluster is not refused");
    (void)cudaGetLastError();
    tiles<<<6, THREADS>>>(in, out);
    if (cudaGetLastError() != cudaErrorInvalidClusterSize)
        return work_fail(WORK, "a grid of one cluster and a half is not refused");
    CHECK(cudaFuncGetAttributes(&f, before));
    if (f.requiredClusterWidth != 2 || f.requiredClusterHeight != 2 || f.requiredClusterDepth != 1)
        return work_fail(WORK, "clusters of %dx%dx%d", f.requiredClusterWidth,
                         f.requiredClusterHeight, f.requiredClusterDepth);
    memset(&c, 0, sizeof c);
    memset(&a, 0, sizeof a);
    c.gridDim = 64;
    c.blockDim = THREADS;
    c.attrs = &a;
    c.numAttrs = 1;
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = 8;
    a.val.clusterDim.y = a.val.clusterDim.z = 1;
    CHECK(cudaOccupancyMaxPotentialClusterSize(&size, histogram, &c));
    CHECK(cudaOccupancyMaxActiveClusters(&clusters, histogram, &c));
    if (size != 8 || clusters < 1)
        return work_fail(WORK, "%d clusters, of up to %d blocks", clusters, size);
    a.val.clusterDim.x = 4;
    CHECK(cudaOccupancyMaxActiveClusters(&half, histogram, &c));
    if (half / 2 != clusters)
        return work_fail(WORK, "%d clusters of 8 blocks, and %d of 4", clusters, half);
    if (cudaFuncSetAttribute(before, cudaFuncAttributeRequiredClusterWidth, 4) !=
        cudaErrorNotPermitted)
        return work_fail(WORK, "clusters of a kernel that was compiled for others");
    (void)cudaGetLastError();
    CHECK(cudaFuncSetAttribute(histogram, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    CHECK(cudaOccupancyMaxPotentialClusterSize(&size, histogram, &c));
    if (size != 16)
        return work_fail(WORK, "clusters of up to %d blocks, if not portable", size);
    return 0;
}

template <typename Kernel>
static cudaError_t launch_clusters(Kernel kernel, unsigned blocks, unsigned cluster, cudaStream_t s,
                                   int *out)
{
    cudaLaunchAttribute a;
    cudaLaunchConfig_t c;
    memset(&c, 0, sizeof c);
    memset(&a, 0, sizeof a);
    a.id = cudaLaunchAttributeClusterDimension;
    a.val.clusterDim.x = cluster;
    a.val.clusterDim.y = a.val.clusterDim.z = 1;
    c.gridDim = blocks;
    c.blockDim = 1;
    c.stream = s;
    c.attrs = &a;
    c.numAttrs = cluster != 0;
    return cudaLaunchKernelEx(&c, kernel, out);
}

/* Also where the launch is a graph's node, with clusters that are set afterwards. */
static int what_a_kernel_sees(int *out)
{
    cudaStream_t s;
    cudaGraph_t g;
    cudaGraphExec_t e;
    size_t n = 1;
    cudaGraphNode_t node;
    cudaKernelNodeAttrValue v;
    for (int blocks = 0; blocks < 3; blocks++) {
        CHECK(launch_clusters(says_clusters, 8, blocks, 0, out));
        CHECK(cudaDeviceSynchronize());
        if (out[7] != blocks)
            return work_fail(WORK, "a kernel sees clusters of %d, not %d", out[7], blocks);
    }
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    CHECK(launch_clusters(says_clusters, 8, 8, s, out));
    CHECK(cudaStreamEndCapture(s, &g));
    CHECK(cudaGraphGetNodes(g, &node, &n));
    memset(&v, 0, sizeof v);
    v.clusterDim.x = 4;
    v.clusterDim.y = v.clusterDim.z = 1;
    CHECK(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &v));
    CHECK(cudaGraphInstantiate(&e, g, 0));
    CHECK(cudaGraphLaunch(e, s));
    CHECK(cudaStreamSynchronize(s));
    if (out[7] != 4)
        return work_fail(WORK, "a node's kernel sees clusters of %d, not 4", out[7]);
    CHECK(cudaGraphExecDestroy(e));
    CHECK(cudaGraphDestroy(g));
    CHECK(cudaStreamDestroy(s));
    return 0;
}

/* Each block runs once, also where the daemon rewrites launches (tests/process/rewritten.sh). */
static int many_launches(int *out)
{
    enum { TIMES = 20, BLOCKS = 66 };
    CHECK(cudaMemset(out, 0, BLOCKS * sizeof *out));
    for (int i = 0; i < TIMES; i++)
        CHECK(launch_clusters(count, BLOCKS, 6, 0, out));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < BLOCKS; i++)
        if (out[i] != TIMES)
            return work_fail(WORK, "block %d ran %d times, not %d", i, out[i], TIMES);
    return 0;
}

int main()
{
    int *in, *out, *few, has = 0;
    CHECK(cudaDeviceGetAttribute(&has, cudaDevAttrClusterLaunch, 0));
    CHECK(cudaMallocManaged(&in, N * sizeof *in));
    CHECK(cudaMallocManaged(&out, N * sizeof *out));
    CHECK(cudaMallocManaged(&few, 100 * sizeof *few));
    for (int i = 0; i < N; i++)
        in[i] = (int)(work_random(i) % BINS);
    if (!has) {
        if (launch_histogram(0, in, out, 16, 8) == cudaSuccess)
            return work_fail(WORK, "a GPU without clusters launches them");
        (void)cudaGetLastError();
        return work_pass(WORK);
    }
    CHECK(cudaMemset(out, 0, N * sizeof *out));
    CHECK(launch_histogram(0, in, out, 24, 8));
    CHECK(cudaDeviceSynchronize());
    if (check_histogram(in, out, 1, "clusters of 8") || in_a_graph(in, out) ||
        check_histogram(in, out, 3, "a graph") || what_is_said(in, out) ||
        what_a_kernel_sees(few) || many_launches(few))
        return 1;
    CHECK(launch_histogram(0, in, out, 32, 16)); /* larger than portable */
    CHECK(cudaDeviceSynchronize());
    if (check_histogram(in, out, 4, "clusters of 16"))
        return 1;
    before<<<dim3(6, 4), 32>>>(out);
    CHECK(cudaDeviceSynchronize());
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 6; x++) {
            int sum = 0, x0 = x / 2 * 2, y0 = y / 2 * 2;
            for (int r = 0; r < x % 2 + 2 * (y % 2); r++)
                sum += (y0 + r / 2) * 6 + x0 + r % 2 + 1;
            if (out[y * 6 + x] != sum)
                return work_fail(WORK, "block %d,%d: %d, not %d", x, y, out[y * 6 + x], sum);
        }
    CHECK(cudaMemset(out, 0, 4 * sizeof *out));
    tiles<<<8, THREADS>>>(in, out);
    CHECK(cudaDeviceSynchronize());
    int sum = 0;
    for (int i = 0; i < TILE * TILES; i++)
        sum += in[i];
    for (int r = 0; r < 4; r++)
        if (out[r] != 2 * sum * (r + 1))
            return work_fail(WORK, "rank %d has %d, not %d", r, out[r], 2 * sum * (r + 1));
    ring<<<24, THREADS>>>(out);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 24 * THREADS; i++)
        if (out[i] != (i / THREADS + 7) % 8 * 1000 + i % THREADS)
            return work_fail(WORK, "thread %d of the ring has %d", i, out[i]);
    exchange<<<16, THREADS>>>(in, out);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 16 * THREADS; i++) {
        int b = i / THREADS / 4 * 4 + (i / THREADS + 3) % 4, t = THREADS - 1 - i % THREADS;
        if (out[i] != (b * THREADS + t) * 3)
            return work_fail(WORK, "thread %d has another block's %d", i, out[i]);
    }
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Uses cudaLaunchKernelEx() and its attributes, cooperative launches, dynamic shared memory beyond
// 48 KiB, and function attributes. Fails if a launch gives wrong results or if a launch that is
// impossible does not give its error.
#include <cooperative_groups.h>
#include "work.cuh"
#define WORK "launchattr"
namespace cg = cooperative_groups;

__global__ void add(int *x, int v, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += v;
}
__global__ void total(const int *x, int *partial, int *sum, int n)
{
    cg::grid_group g = cg::this_grid();
    int mine = 0;
    for (int i = (int)g.thread_rank(); i < n; i += (int)g.size())
        mine += x[i];
    atomicAdd(&partial[blockIdx.x], mine);
    g.sync();
    if (g.thread_rank() == 0)
        for (unsigned b = 0; b < gridDim.x; b++)
            *sum += partial[b];
}
__global__ void large(int *x, int n)
{
    extern __shared__ int s[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        s[i] = i;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = s[n - 1 - i];
}
__global__ void __launch_bounds__(64) small(int *x) { x[threadIdx.x] = 1; }

static int launch(int *x, cudaLaunchAttribute *a, int n_attributes)
{
    cudaLaunchConfig_t c;
    memset(&c, 0, sizeof c);
    c.gridDim = 4;
    c.blockDim = 64;
    c.attrs = a;
    c.numAttrs = n_attributes;
    cudaError_t e = cudaLaunchKernelEx(&c, add, x, 1, 256);
    cudaError_t last = cudaGetLastError();
    return e == last ? (int)e : -1;
}

/* Clusters begin with compute capability 9.0; GPUs before that refuse even the smallest. */
static int attributes(int *x, int clusters)
{
    cudaLaunchAttribute a[3];
    int host[256];
    memset(a, 0, sizeof a);
    CHECK(cudaMemset(x, 0, 1024));
    if (launch(x, NULL, 0))
        return work_fail(WORK, "no attribute");
    a[0].id = cudaLaunchAttributeCooperative;
    a[0].val.cooperative = 1;
    a[1].id = cudaLaunchAttributePriority;
    a[1].val.priority = -1;
    a[2].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    a[2].val.programmaticStreamSerializationAllowed = 1;
    for (int i = 0; i < 3; i++)
        if (launch(x, &a[i], 1))
            return work_fail(WORK, "attribute %d", a[i].id);
    a[0].id = cudaLaunchAttributeClusterDimension;
    a[0].val.clusterDim.x = a[0].val.clusterDim.y = a[0].val.clusterDim.z = 1;
    if (clusters && launch(x, a, 1))
        return work_fail(WORK, "a cluster of one block");
    a[0].val.clusterDim.x = 2;
    int e = launch(x, a, 1);
    if (e != (clusters ? 0 : cudaErrorInvalidClusterSize))
        return work_fail(WORK, "a cluster of two blocks gave %d", e);
    a[0].id = (cudaLaunchAttributeID)999;
    if (launch(x, a, 1) != cudaErrorInvalidValue)
        return work_fail(WORK, "attribute 999 is taken");
    CHECK(cudaMemcpy(host, x, 1024, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++)
        if (host[i] != 4 + 2 * clusters)
            return work_fail(WORK, "x[%d] is %d", i, host[i]);
    return 0;
}

static int cooperative(int *x, const cudaDeviceProp *p)
{
    int per_sm, n = 4096, sum = 0, want = 0, *partial, *dsum, *host = (int *)work_alloc(4 * 4096);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, total, 64, 0));
    int blocks = 8 < per_sm * p->multiProcessorCount ? 8 : per_sm * p->multiProcessorCount;
    CHECK(cudaMalloc(&partial, 4 * blocks));
    CHECK(cudaMalloc(&dsum, 4));
    CHECK(cudaMemset(partial, 0, 4 * blocks));
    CHECK(cudaMemset(dsum, 0, 4));
    for (int i = 0; i < n; i++)
        want += host[i] = (int)(work_random(i) % 100);
    CHECK(cudaMemcpy(x, host, 4 * n, cudaMemcpyHostToDevice));
    void *args[] = {&x, &partial, &dsum, &n};
    CHECK(cudaLaunchCooperativeKernel((void *)total, blocks, 64, args, 0, 0));
    CHECK(cudaMemcpy(&sum, dsum, 4, cudaMemcpyDeviceToHost));
    if (sum != want)
        return work_fail(WORK, "the grid's sum is %d, not %d", sum, want);
    if (cudaLaunchCooperativeKernel((void *)total, per_sm * p->multiProcessorCount + 1, 64, args, 0,
                                    0) != cudaErrorCooperativeLaunchTooLarge)
        return work_fail(WORK, "a cooperative launch that does not fit is taken");
    (void)cudaGetLastError();
    CHECK(cudaFree(partial));
    CHECK(cudaFree(dsum));
    free(host);
    return 0;
}

static int dynamic_shared(int *x, const cudaDeviceProp *p)
{
    int n = (int)p->sharedMemPerBlockOptin / 4, *host = (int *)work_alloc(4 * n);
    cudaFuncAttributes a;
    CHECK(cudaFuncGetAttributes(&a, large));
    if (a.maxDynamicSharedSizeBytes != 48 * 1024)
        return work_fail(WORK, "%d bytes of dynamic shared memory", a.maxDynamicSharedSizeBytes);
    if (p->sharedMemPerBlockOptin > 48 * 1024) {
        large<<<1, 128, 49 * 1024>>>(x, 16);
        if (cudaGetLastError() != cudaErrorInvalidValue)
            return work_fail(WORK, "49 KiB without opting in");
        CHECK(cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, 4 * n));
        large<<<1, 128, 4 * n>>>(x, n);
        CHECK(cudaGetLastError());
        CHECK(cudaMemcpy(host, x, 4 * n, cudaMemcpyDeviceToHost));
        for (int i = 0; i < n; i++)
            if (host[i] != n - 1 - i)
                return work_fail(WORK, "large: x[%d] is %d", i, host[i]);
    }
    if (cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, 4 * n + 4) !=
        cudaErrorInvalidValue)
        return work_fail(WORK, "more shared memory than the device has");
    (void)cudaGetLastError();
    CHECK(cudaFuncSetAttribute(large, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
    CHECK(cudaFuncSetCacheConfig(large, cudaFuncCachePreferShared));
    free(host);
    return 0;
}

static void *main_address(void) { return (void *)&launch; }

#define REFUSED(expression, want)                                                                  \
    do {                                                                                           \
        expression;                                                                                \
        cudaError_t got = cudaGetLastError();                                                      \
        if (got != want)                                                                           \
            return work_fail(WORK, "%s gave %d %s, not %s", #expression, got,                      \
                             cudaGetErrorName(got), #want);                                        \
    } while (0)

static int refusals(int *x)
{
    REFUSED((add<<<0, 32>>>(x, 1, 1)), cudaErrorInvalidConfiguration);
    REFUSED((add<<<1, 0>>>(x, 1, 1)), cudaErrorInvalidConfiguration);
    REFUSED((add<<<1, 1025>>>(x, 1, 1)), cudaErrorInvalidConfiguration);
    REFUSED((add<<<1, dim3(1, 1, 65)>>>(x, 1, 1)), cudaErrorInvalidConfiguration);
    REFUSED((add<<<dim3(1, 65536, 1), 1>>>(x, 1, 1)), cudaErrorInvalidConfiguration);
    REFUSED((small<<<1, 128>>>(x)), cudaErrorInvalidValue);
    void *args[] = {&x};
    REFUSED(cudaLaunchKernel((void *)main_address(), 1, 1, args, 0, 0),
            cudaErrorInvalidDeviceFunction);
    REFUSED(cudaLaunchKernel((void *)NULL, 1, 1, args, 0, 0), cudaErrorInvalidDeviceFunction);
    if (cudaPeekAtLastError() != cudaSuccess)
        return work_fail(WORK, "an error stays");
    small<<<1, 128>>>(x);
    if (cudaPeekAtLastError() != cudaErrorInvalidValue ||
        cudaPeekAtLastError() != cudaErrorInvalidValue)
        return work_fail(WORK, "cudaPeekAtLastError takes the error away");
    CHECK(cudaDeviceSynchronize()); /* the last error is not a call's own */
    if (cudaGetLastError() != cudaErrorInvalidValue || cudaGetLastError() != cudaSuccess)
        return work_fail(WORK, "cudaGetLastError");
    return 0;
}

int main(int argc, char **argv)
{
    cudaDeviceProp p;
    int *x;
    CHECK(cudaGetDeviceProperties(&p, 0));
    CHECK(cudaMalloc(&x, 256 * 1024));
    if (attributes(x, p.clusterLaunch) || cooperative(x, &p) || dynamic_shared(x, &p) ||
        refusals(x))
        return 1;
    CHECK(cudaFree(x));
    return work_pass(WORK);
}

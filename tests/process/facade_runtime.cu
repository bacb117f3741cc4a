// SPDX-License-Identifier: Apache-2.0
/* What the runtime façade promises, asked by a program as nvcc builds it. Prints one line per check that fails and the number of
 * checks; exit status 0 if none failed. Built by tests/facade.mk, static and shared, with the legacy and the per-thread default stream,
 * and with the launch code of older nvccs (facade_runtime2.cu is its second translation unit). */
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <thread>
#include <vector>

static int n_checks, n_failed;
#define CHECK(x)                                                                                   \
    do {                                                                                           \
        n_checks++;                                                                                \
        if (!(x)) {                                                                                \
            n_failed++;                                                                            \
            printf("%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #x, cudaGetErrorName(cudaPeekAtLastError())); \
        }                                                                                          \
    } while (0)
#define OK(x)                                                                                      \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        n_checks++;                                                                                \
        if (e_ != cudaSuccess) {                                                                   \
            n_failed++;                                                                            \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #x, cudaGetErrorName(e_));               \
            if (e_ >= cudaErrorIllegalAddress && e_ <= cudaErrorLaunchFailure)                     \
                _Exit(2); /* the context is lost: what follows would only fail too */              \
        }                                                                                          \
    } while (0)
#define IS(code, x)                                                                                \
    do {                                                                                           \
        cudaError_t e_ = (x);                                                                      \
        n_checks++;                                                                                \
        if (e_ != (code)) {                                                                        \
            n_failed++;                                                                            \
            printf("%s:%d: %s: %s, expected %s\n", __FILE__, __LINE__, #x, cudaGetErrorName(e_), cudaGetErrorName(code)); \
        }                                                                                          \
        cudaGetLastError();                                                                        \
    } while (0)

__constant__ int table[16];
__device__ int counter = 40;
__device__ int big[1000];

template <typename T> __global__ void scale(T *v, T by, int n) /* also instantiated in the other translation unit */
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        v[i] *= by;
}
int other_scale(int *v, int by, int n); /* facade_runtime2.cu */

__global__ void add_table(int *v)
{
    v[threadIdx.x] += table[threadIdx.x % 16];
    if (threadIdx.x == 0)
        atomicAdd(&counter, 1);
}

struct mixed { char a; double b; short c; };
__global__ void take(char c, mixed m, short s, double d, int *out, float f)
{
    out[0] = c;
    out[1] = m.a;
    out[2] = (int)m.b;
    out[3] = m.c;
    out[4] = s;
    out[5] = (int)d;
    out[6] = (int)f;
}

__global__ void dynamic(int *out, int n)
{
    extern __shared__ int s[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        s[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int i = 0; i < n; i++)
            sum += s[i];
        *out = sum;
    }
}

__global__ void grid_sum(int *v, int *out)
{
    cooperative_groups::grid_group g = cooperative_groups::this_grid();
    v[g.thread_rank()] = 1;
    g.sync();
    if (g.thread_rank() == 0) {
        int sum = 0;
        for (unsigned i = 0; i < g.size(); i++)
            sum += v[i];
        *out = sum;
    }
}

static void devices()
{
    int n = 0, v = 0, d = -1;
    OK(cudaGetDeviceCount(&n));
    CHECK(n > 0);
    OK(cudaGetDevice(&d));
    CHECK(d == 0);
    IS(cudaErrorInvalidDevice, cudaSetDevice(n));
    IS(cudaErrorInvalidDevice, cudaSetDevice(-1));
    OK(cudaSetDevice(0));
    cudaDeviceProp p;
    memset(&p, 0xff, sizeof p);
    OK(cudaGetDeviceProperties(&p, 0));
    OK(cudaDeviceGetAttribute(&v, cudaDevAttrMultiProcessorCount, 0));
    CHECK(v == p.multiProcessorCount && v > 0);
    OK(cudaDeviceGetAttribute(&v, cudaDevAttrMaxThreadsPerBlock, 0));
    CHECK(v == p.maxThreadsPerBlock && p.maxThreadsDim[0] == v);
    OK(cudaDeviceGetAttribute(&v, cudaDevAttrComputeCapabilityMajor, 0));
    CHECK(v == p.major && p.warpSize == 32 && p.totalGlobalMem > 0 && p.name[0]);
    IS(cudaErrorInvalidValue, cudaDeviceGetAttribute(&v, (cudaDeviceAttr)9999, 0));
    IS(cudaErrorInvalidDevice, cudaGetDeviceProperties(&p, n));
    OK(cudaDriverGetVersion(&v));
    CHECK(v >= 13000);
    char id[32];
    OK(cudaDeviceGetPCIBusId(id, sizeof id, 0));
    OK(cudaDeviceGetByPCIBusId(&d, id));
    CHECK(d == 0);
    int least = 1, greatest = 1;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(least >= greatest);
    OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4 << 20));
    size_t limit = 0;
    OK(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
    CHECK(limit >= 4 << 20);
    OK(cudaDeviceCanAccessPeer(&v, 0, 0));
    OK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
}

static void errors()
{
    cudaGetLastError();
    CHECK(cudaSetDevice(1000) == cudaErrorInvalidDevice);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
    CHECK(cudaGetLastError() == cudaSuccess);
    cudaSetDevice(1000);
    std::thread([] { CHECK(cudaGetLastError() == cudaSuccess); }).join(); /* the last error is the thread's */
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
    CHECK(!strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation"));
    CHECK(!strcmp(cudaGetErrorString(cudaSuccess), "no error"));
    CHECK(!strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument"));
    CHECK(!strcmp(cudaGetErrorString((cudaError_t)12345), "unrecognized error code"));
}

static void memory()
{
    const int n = 1 << 18;
    std::vector<int> a(n), b(n);
    int *d = nullptr, *e = nullptr;
    for (int i = 0; i < n; i++)
        a[i] = i * 7;
    OK(cudaMalloc(&d, n * 4));
    OK(cudaMalloc(&e, n * 4));
    OK(cudaMemcpy(d, a.data(), n * 4, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(e, d, n * 4, cudaMemcpyDeviceToDevice));
    OK(cudaMemcpy(b.data(), e, n * 4, cudaMemcpyDeviceToHost));
    CHECK(a == b);
    OK(cudaMemcpy(b.data(), a.data(), 100, cudaMemcpyHostToHost));
    OK(cudaMemcpy(b.data(), d, n * 4, cudaMemcpyDefault));
    CHECK(a == b);
    OK(cudaMemset(d, 0x5a, n * 4));
    OK(cudaMemcpy(b.data(), d, n * 4, cudaMemcpyDeviceToHost));
    CHECK(b[0] == 0x5a5a5a5a && b[n - 1] == 0x5a5a5a5a);
    IS(cudaErrorInvalidValue, cudaMemcpy(d, a.data(), n * 4 + 1, cudaMemcpyHostToDevice));
    IS(cudaErrorInvalidValue, cudaMemcpy(d, a.data(), 4, cudaMemcpyDeviceToHost));
    IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(d, a.data(), 4, (cudaMemcpyKind)17));
    IS(cudaErrorInvalidValue, cudaMemset(a.data(), 0, 4));
    OK(cudaMemcpy(d, a.data(), 0, cudaMemcpyHostToDevice));
    cudaPointerAttributes pa;
    OK(cudaPointerGetAttributes(&pa, d + 5));
    CHECK(pa.type == cudaMemoryTypeDevice && pa.device == 0 && pa.devicePointer == d + 5);
    OK(cudaPointerGetAttributes(&pa, a.data()));
    CHECK(pa.type == cudaMemoryTypeUnregistered);
    size_t f = 0, t = 0;
    OK(cudaMemGetInfo(&f, &t));
    CHECK(f > 0 && f < t);
    OK(cudaFree(d));
    IS(cudaErrorInvalidValue, cudaFree(d));
    IS(cudaErrorInvalidValue, cudaFree(e + 1));
    OK(cudaFree(e));
    OK(cudaFree(nullptr));
    void *none = &f;
    OK(cudaMalloc(&none, 0));
    CHECK(none == nullptr);
    IS(cudaErrorMemoryAllocation, cudaMalloc(&none, (size_t)1 << 45));
    IS(cudaErrorInvalidValue, cudaMalloc((void **)nullptr, 4));

    /* pitched: 2-D and 3-D */
    size_t pitch = 0;
    char *p = nullptr;
    const size_t w = 100, h = 37;
    std::vector<char> rows(w * h), back(w * h + 5 * h);
    for (size_t i = 0; i < rows.size(); i++)
        rows[i] = (char)(i * 3);
    OK(cudaMallocPitch(&p, &pitch, w, h));
    CHECK(pitch >= w && pitch % 32 == 0);
    OK(cudaMemset2D(p, pitch, 1, w, h));
    OK(cudaMemcpy2D(p, pitch, rows.data(), w, w, h, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(back.data(), w + 5, p, pitch, w, h, cudaMemcpyDeviceToHost));
    bool same = true;
    for (size_t y = 0; y < h; y++)
        same = same && !memcmp(&back[y * (w + 5)], &rows[y * w], w);
    CHECK(same);
    IS(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, w - 1, rows.data(), w, w, h, cudaMemcpyHostToDevice));
    /* the headers say: a pitch is not used where there is one row, but a copy's must be there */
    OK(cudaMemset2D(p, w - 1, 7, w, 1));
    OK(cudaMemset2DAsync(p + pitch, 0, 8, w, 1, 0));
    IS(cudaErrorInvalidValue, cudaMemset2D(p, w - 1, 9, w, 2));
    IS(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, w - 1, rows.data(), w, w, 1, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(back.data(), w, p, pitch, w, 3, cudaMemcpyDeviceToHost));
    CHECK(back[0] == 7 && back[w - 1] == 7 && back[w] == 8 && back[2 * w - 1] == 8 &&
          !memcmp(&back[2 * w], &rows[2 * w], w));
    OK(cudaFree(p));
    cudaPitchedPtr pp;
    OK(cudaMalloc3D(&pp, make_cudaExtent(20, 10, 5)));
    OK(cudaMemset3D(pp, 3, make_cudaExtent(20, 10, 5)));
    std::vector<char> cube(20 * 10 * 5);
    cudaMemcpy3DParms m = {};
    m.srcPtr = pp;
    m.dstPtr = make_cudaPitchedPtr(cube.data(), 20, 20, 10);
    m.extent = make_cudaExtent(20, 10, 5);
    m.kind = cudaMemcpyDeviceToHost;
    OK(cudaMemcpy3D(&m));
    same = true;
    for (char c : cube)
        same = same && c == 3;
    CHECK(same);
    OK(cudaFree(pp.ptr));
}

static void host_memory()
{
    int *h = nullptr, *d = nullptr, *m = nullptr, *x = nullptr;
    const int n = 4096;
    unsigned flags = 77;
    OK(cudaMallocHost(&h, n * 4));
    for (int i = 0; i < n; i++)
        h[i] = i;
    OK(cudaHostGetDevicePointer(&d, h, 0));
    scale<int><<<n / 256, 256>>>(d, 3, n);
    OK(cudaDeviceSynchronize());
    CHECK(h[1] == 3 && h[n - 1] == 3 * (n - 1));
    cudaPointerAttributes pa;
    OK(cudaPointerGetAttributes(&pa, h));
    CHECK(pa.type == cudaMemoryTypeHost && pa.hostPointer == h);
    IS(cudaErrorInvalidValue, cudaFree(h));
    OK(cudaFreeHost(h));
    IS(cudaErrorInvalidValue, cudaFreeHost(h));
    OK(cudaHostAlloc(&h, 100, cudaHostAllocPortable | cudaHostAllocMapped));
    OK(cudaHostGetFlags(&flags, h));
    CHECK(flags == (cudaHostAllocPortable | cudaHostAllocMapped));
    OK(cudaFreeHost(h));
    OK(cudaMallocManaged(&m, n * 4));
    for (int i = 0; i < n; i++)
        m[i] = 1;
    scale<int><<<n / 256, 256>>>(m, 5, n);
    OK(cudaDeviceSynchronize());
    CHECK(m[0] == 5 && m[n - 1] == 5);
    OK(cudaPointerGetAttributes(&pa, m));
    CHECK(pa.type == cudaMemoryTypeManaged);
    OK(cudaMemset(m, 0, n * 4));
    OK(cudaDeviceSynchronize());
    CHECK(m[7] == 0);
    OK(cudaFree(m));
    x = (int *)malloc(1 << 16);
    OK(cudaHostRegister(x, 1 << 16, cudaHostRegisterDefault));
    IS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(x, 4, 0));
    OK(cudaHostUnregister(x));
    IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(x));
    free(x);
    OK(cudaMallocAsync(&d, 1024, 0));
    OK(cudaMemsetAsync(d, 0, 1024, 0));
    OK(cudaFreeAsync(d, 0));
    cudaMemPool_t pool;
    uint64_t value = UINT64_MAX;
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    value = 0;
    OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
    CHECK(value == UINT64_MAX);
}

static void symbols()
{
    int v[16], c = 0, *d = nullptr, out[32] = {0};
    void *p = nullptr;
    size_t n = 0;
    for (int i = 0; i < 16; i++)
        v[i] = 100 + i;
    OK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
    CHECK(c == 40);
    OK(cudaMemcpyToSymbol(table, v, sizeof v));
    OK(cudaMalloc(&d, sizeof out));
    OK(cudaMemset(d, 0, sizeof out));
    add_table<<<1, 32>>>(d);
    OK(cudaGetLastError());
    OK(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
    CHECK(out[0] == 100 && out[15] == 115 && out[31] == 115);
    OK(cudaMemcpyFromSymbol(&c, counter, sizeof c));
    CHECK(c == 41);
    OK(cudaGetSymbolAddress(&p, big));
    OK(cudaGetSymbolSize(&n, big));
    CHECK(n == sizeof big && p);
    OK(cudaMemcpyToSymbolAsync(big, v, 8, 400, cudaMemcpyHostToDevice, 0));
    OK(cudaMemcpy(out, (char *)p + 400, 8, cudaMemcpyDeviceToHost));
    CHECK(out[0] == 100 && out[1] == 101);
    IS(cudaErrorInvalidValue, cudaMemcpyToSymbol(table, v, sizeof v, 4));
    IS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&p, n_checks));
    OK(cudaFree(d));
}

static void launches()
{
    int *d = nullptr, out[8] = {0};
    OK(cudaMalloc(&d, 4 * 4096));
    mixed m = {'x', 1234.5, -7};
    take<<<1, 1>>>('c', m, -3, 99.0, d, 5.5f);
    OK(cudaGetLastError());
    OK(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
    CHECK(out[0] == 'c' && out[1] == 'x' && out[2] == 1234 && out[3] == -7 && out[4] == -3 && out[5] == 99 && out[6] == 5);

    dynamic<<<1, 64, 40000>>>(d, 10000);
    OK(cudaGetLastError());
    OK(cudaMemcpy(out, d, 4, cudaMemcpyDeviceToHost));
    CHECK(out[0] == 49995000);
    dynamic<<<1, 64, 60000>>>(d, 15000); /* needs leave */
    IS(cudaErrorInvalidValue, cudaGetLastError());
    OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 60000));
    dynamic<<<1, 64, 60000>>>(d, 15000);
    OK(cudaGetLastError());
    OK(cudaMemcpy(out, d, 4, cudaMemcpyDeviceToHost));
    CHECK(out[0] == 112492500);

    take<<<1, 4096>>>('c', m, -3, 99.0, d, 5.5f);
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    IS(cudaErrorInvalidConfiguration, cudaGetLastError());
    take<<<0, 1>>>('c', m, -3, 99.0, d, 5.5f);
    IS(cudaErrorInvalidConfiguration, cudaGetLastError());
    IS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel((const void *)launches, dim3(1), dim3(1), nullptr, 0, 0));
    IS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, 0));
    OK(cudaDeviceSynchronize()); /* none of these was sticky */

    int by = 2, n = 64;
    std::vector<int> v(64, 21);
    OK(cudaMemcpy(d, v.data(), 256, cudaMemcpyHostToDevice));
    void *args[] = {&d, &by, &n};
    OK(cudaLaunchKernel((const void *)scale<int>, dim3(2), dim3(32), args, 0, 0));
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(2);
    config.blockDim = dim3(32);
    OK(cudaLaunchKernelEx(&config, scale<int>, d, 5, 64));
    cudaKernel_t kernel;
    cudaFunction_t function;
    OK(cudaGetKernel(&kernel, scale<int>));
    OK(cudaLaunchKernel((const void *)kernel, dim3(2), dim3(32), args, 0, 0));
    OK(cudaGetFuncBySymbol(&function, (const void *)scale<int>));
    OK(cudaMemcpy(v.data(), d, 256, cudaMemcpyDeviceToHost));
    CHECK(v[0] == 420 && v[63] == 420);
    CHECK(other_scale(d, 2, 64) == 0);
    OK(cudaMemcpy(v.data(), d, 256, cudaMemcpyDeviceToHost));
    CHECK(v[0] == 842 && v[63] == 842); /* doubled, and 2 added: the code of that unit */

    int blocks = 0, *sum = d + 2048;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, grid_sum, 128, 0));
    CHECK(blocks > 0);
    void *coop[] = {&d, &sum};
    OK(cudaLaunchCooperativeKernel((const void *)grid_sum, dim3(4), dim3(128), coop, 0, 0));
    OK(cudaMemcpy(out, sum, 4, cudaMemcpyDeviceToHost));
    CHECK(out[0] == 512);
    IS(cudaErrorCooperativeLaunchTooLarge, cudaLaunchCooperativeKernel((const void *)grid_sum, dim3(100000), dim3(128), coop, 0, 0));

    cudaFuncAttributes a;
    OK(cudaFuncGetAttributes(&a, dynamic));
    CHECK(a.maxThreadsPerBlock > 0 && a.numRegs > 0 && a.maxDynamicSharedSizeBytes == 60000 && a.sharedSizeBytes == 0);
    CHECK(a.ptxVersion * 10 == __CUDA_ARCH_LIST__); /* nvcc compiled for one architecture */
    OK(cudaFuncSetCacheConfig(dynamic, cudaFuncCachePreferL1));
    int grid = 0, block = 0;
    OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, scale<int>, 0, 0));
    CHECK(grid > 0 && block > 0);
    OK(cudaFree(d));
}

static void on_stream(cudaStream_t, cudaError_t status, void *data)
{
    *(int *)data += status == cudaSuccess;
}
static void on_host(void *data)
{
    *(int *)data += 10;
}

static void streams()
{
    const int n = 1 << 16;
    cudaStream_t s, t;
    cudaEvent_t e, f;
    int *d = nullptr, *h = nullptr, called = 0, priority = 7;
    unsigned flags = 7;
    float ms = -1;
    OK(cudaStreamCreate(&s));
    OK(cudaStreamCreateWithPriority(&t, cudaStreamNonBlocking, -1));
    OK(cudaStreamGetFlags(t, &flags));
    OK(cudaStreamGetPriority(t, &priority));
    CHECK(flags == cudaStreamNonBlocking && priority == -1);
    OK(cudaEventCreate(&e));
    OK(cudaEventCreateWithFlags(&f, cudaEventDisableTiming));
    IS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&f, 0x100));
    OK(cudaMalloc(&d, n * 4));
    OK(cudaMallocHost(&h, n * 4));
    for (int i = 0; i < n; i++)
        h[i] = 1;
    OK(cudaEventQuery(f)); /* never recorded: done */
    OK(cudaMemcpyAsync(d, h, n * 4, cudaMemcpyHostToDevice, s));
    OK(cudaEventRecord(e, s));
    scale<int><<<n / 256, 256, 0, s>>>(d, 2, n);
    OK(cudaEventRecord(f, s));
    OK(cudaStreamWaitEvent(t, f, 0));
    scale<int><<<n / 256, 256, 0, t>>>(d, 3, n);
    OK(cudaMemcpyAsync(h, d, n * 4, cudaMemcpyDeviceToHost, t));
    OK(cudaStreamAddCallback(t, on_stream, &called, 0));
    OK(cudaLaunchHostFunc(t, on_host, &called));
    OK(cudaStreamSynchronize(t));
    CHECK(called == 11);
    CHECK(h[0] == 6 && h[n - 1] == 6);
    OK(cudaStreamQuery(t));
    OK(cudaStreamQuery(s));
    IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, e, f)); /* f has no timing */
    OK(cudaEventDestroy(f));
    OK(cudaEventCreate(&f));
    scale<int><<<n / 256, 256, 0, s>>>(d, 2, n);
    OK(cudaEventRecord(f, s));
    OK(cudaEventSynchronize(f));
    OK(cudaEventElapsedTime(&ms, e, f));
    CHECK(ms > 0);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    OK(cudaStreamIsCapturing(s, &status));
    CHECK(status == cudaStreamCaptureStatusNone);
    OK(cudaEventDestroy(e));
    IS(cudaErrorInvalidResourceHandle, cudaEventRecord(e, s));
    OK(cudaStreamDestroy(s));
    IS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(s));
    scale<int><<<1, 1, 0, s>>>(d, 2, n);
    IS(cudaErrorInvalidResourceHandle, cudaGetLastError());
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    OK(cudaStreamSynchronize(cudaStreamLegacy));
    OK(cudaStreamSynchronize(0));
    IS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(0));
    OK(cudaStreamDestroy(t));
    OK(cudaFree(d));
    OK(cudaFreeHost(h));
}

static void threads()
{
    std::vector<std::thread> v;
    int bad[4] = {0};
    for (int i = 0; i < 4; i++)
        v.emplace_back([i, &bad] {
            const int n = 1000 + i;
            std::vector<int> h(n, i + 1);
            int *d;
            cudaStream_t s;
            bad[i] += cudaMalloc(&d, n * 4) != cudaSuccess;
            bad[i] += cudaStreamCreate(&s) != cudaSuccess;
            for (int k = 0; k < 20; k++) {
                bad[i] += cudaMemcpyAsync(d, h.data(), n * 4, cudaMemcpyHostToDevice, s) != cudaSuccess;
                scale<int><<<(n + 127) / 128, 128, 0, s>>>(d, 1, n);
                bad[i] += cudaMemcpyAsync(h.data(), d, n * 4, cudaMemcpyDeviceToHost, s) != cudaSuccess;
                bad[i] += cudaStreamSynchronize(s) != cudaSuccess;
                scale<int><<<(n + 127) / 128, 128, 0, cudaStreamPerThread>>>(d, 1, n);
            }
            bad[i] += cudaStreamSynchronize(cudaStreamPerThread) != cudaSuccess;
            for (int x : h)
                bad[i] += x != i + 1;
            bad[i] += cudaFree(d) != cudaSuccess;
        });
    for (auto &t : v)
        t.join();
    CHECK(bad[0] + bad[1] + bad[2] + bad[3] == 0);
}

static void two_devices()
{
    int n = 0, *a, *b, v = 0;
    OK(cudaGetDeviceCount(&n));
    if (n < 2)
        return;
    OK(cudaSetDevice(0));
    OK(cudaMalloc(&a, 4096));
    OK(cudaMemset(a, 7, 4096));
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&b, 4096));
    OK(cudaMemcpyPeer(b, 1, a, 0, 4096));
    OK(cudaMemcpy(&v, b + 100, 4, cudaMemcpyDeviceToHost));
    CHECK(v == 0x07070707);
    scale<int><<<1, 32>>>(b, 2, 32); /* the same code, loaded on this device */
    OK(cudaMemcpy(&v, b, 4, cudaMemcpyDeviceToHost));
    CHECK(v == 0x0e0e0e0e);
    int c = 0;
    OK(cudaMemcpyFromSymbol(&c, counter, 4)); /* each device has its own variables */
    CHECK(c == 40);
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaSetDevice(0));
}

static void unsupported()
{
    cudaExternalMemory_t m;
    cudaExternalMemoryHandleDesc d = {};
    IS(cudaErrorNotSupported, cudaImportExternalMemory(&m, &d));
}

static void reset()
{
    int *d, c = 0;
    OK(cudaMalloc(&d, 4096));
    OK(cudaDeviceReset());
    IS(cudaErrorInvalidValue, cudaFree(d));
    OK(cudaMemcpyFromSymbol(&c, counter, 4)); /* variables are new again */
    CHECK(c == 40);
    OK(cudaMalloc(&d, 4096));
    scale<int><<<1, 32>>>(d, 2, 32);
    OK(cudaDeviceSynchronize());
    OK(cudaFree(d));
}

int main()
{
    setvbuf(stdout, nullptr, _IONBF, 0);
    devices();
    errors();
    memory();
    host_memory();
    symbols();
    launches();
    streams();
    threads();
    two_devices();
    unsupported();
    reset();
    printf("checks=%d failed=%d\n", n_checks, n_failed);
    return n_failed ? 1 : 0;
}

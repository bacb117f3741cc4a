// SPDX-License-Identifier: Apache-2.0
/* Uses stream-ordered allocation: reuse without waiting and across streams, the release threshold,
 * pools of its own, peers' access, cudaFree() of such memory; memory that the program registers,
 * used by kernels where it is; peer access between two devices if there are two. Fails if memory is
 * reused too early, not at all, or has wrong contents. */
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define RT(call)                                                                                   \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            printf("FAIL memorypools: line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(e_));  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define EXPECT(call, want)                                                                         \
    do {                                                                                           \
        long e_ = (long)(call);                                                                    \
        if (e_ != (long)(want)) {                                                                  \
            printf("FAIL memorypools: line %d: %s: %ld, not %ld\n", __LINE__, #call, e_,           \
                   (long)(want));                                                                  \
            exit(1);                                                                               \
        }                                                                                          \
        (void)cudaGetLastError();                                                                  \
    } while (0)

__global__ void fill(int *p, int n, int v)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] = v + i;
}
__global__ void scale(int *to, const int *from, int n, int by)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        to[i] = from[i] * by;
}

static uint64_t attribute(cudaMemPool_t p, cudaMemPoolAttr a)
{
    uint64_t v;
    RT(cudaMemPoolGetAttribute(p, a, &v));
    return v;
}

static void pools()
{
    enum { N = 300000 };
    cudaMemPool_t pool, own;
    cudaStream_t s, t;
    int *a, *b, *c;
    RT(cudaDeviceGetDefaultMemPool(&pool, 0));
    RT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    RT(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    RT(cudaMallocAsync(&a, N * sizeof *a, s));
    EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent) >= N * sizeof *a, 1);
    fill<<<32, 128, 0, s>>>(a, N, 1);
    std::vector<int> h(N), g(N);
    RT(cudaMemcpyAsync(h.data(), a, N * sizeof *a, cudaMemcpyDeviceToHost, s));
    RT(cudaFreeAsync(a, s));
    RT(cudaMallocAsync(&b, N * sizeof *b, s)); /* the same memory, by the order of the stream */
    EXPECT(b == a, 1);
    fill<<<32, 128, 0, s>>>(b, N, 5);
    RT(cudaMemcpyAsync(g.data(), b, N * sizeof *b, cudaMemcpyDeviceToHost, s));
    RT(cudaFreeAsync(b, s));
    EXPECT(cudaFreeAsync(b, s), cudaErrorInvalidValue);
    RT(cudaMallocAsync(&c, N * sizeof *c, t)); /* another stream: only behind what uses it */
    fill<<<32, 128, 0, t>>>(c, N, 9);
    RT(cudaStreamSynchronize(s));
    for (int i = 0; i < N; i++)
        if (h[i] != 1 + i || g[i] != 5 + i) {
            printf("FAIL memorypools: element %d is %d, %d\n", i, h[i], g[i]);
            exit(1);
        }
    RT(cudaFree(c)); /* waits */
    RT(cudaDeviceSynchronize());
    EXPECT(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0); /* threshold 0 */
    EXPECT(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0);
    EXPECT(attribute(pool, cudaMemPoolAttrUsedMemHigh) >= N * sizeof *a, 1);

    uint64_t keep = UINT64_MAX;
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    RT(cudaMemPoolCreate(&own, &props));
    RT(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &keep));
    RT(cudaMallocFromPoolAsync(&a, 1 << 20, own, s));
    RT(cudaFreeAsync(a, s));
    RT(cudaStreamSynchronize(s));
    EXPECT(attribute(own, cudaMemPoolAttrReservedMemCurrent), 1 << 20);
    RT(cudaMemPoolTrimTo(own, 0));
    EXPECT(attribute(own, cudaMemPoolAttrReservedMemCurrent), 0);
    RT(cudaDeviceSetMemPool(0, own));
    RT(cudaMallocAsync(&a, 4096, s));
    EXPECT(attribute(own, cudaMemPoolAttrUsedMemCurrent), 4096);
    RT(cudaMemPoolDestroy(own)); /* its memory is still good */
    fill<<<1, 32, 0, s>>>(a, 1024, 0);
    RT(cudaFreeAsync(a, s));
    RT(cudaStreamSynchronize(s));
    EXPECT(cudaMemPoolTrimTo(own, 0), cudaErrorInvalidValue);
    EXPECT(cudaMemPoolDestroy(pool), cudaErrorInvalidValue);
    RT(cudaDeviceGetMemPool(&own, 0));
    EXPECT(own == pool, 1);
    RT(cudaStreamDestroy(s));
    RT(cudaStreamDestroy(t));
}

static void registered()
{
    enum { N = 100000 };
    int *h = (int *)malloc(3 * N * sizeof *h), *mine = h + N + 1, *d = NULL; /* in the midst of pages */
    for (int i = 0; i < 3 * N; i++)
        h[i] = i;
    RT(cudaHostRegister(mine, N * sizeof *mine, cudaHostRegisterMapped));
    EXPECT(cudaHostRegister(mine + 5, 64, 0), cudaErrorHostMemoryAlreadyRegistered);
    RT(cudaHostGetDevicePointer(&d, mine, 0));
    scale<<<16, 128>>>(d, d, N, 3);
    RT(cudaDeviceSynchronize());
    for (int i = 0; i < 3 * N; i++) {
        int want = i > N && i <= 2 * N ? 3 * i : i;
        if (h[i] != want) {
            printf("FAIL memorypools: registered element %d is %d\n", i, h[i]);
            exit(1);
        }
    }
    cudaPointerAttributes a;
    RT(cudaPointerGetAttributes(&a, mine));
    EXPECT(a.type, cudaMemoryTypeHost);
    EXPECT(a.devicePointer == d, 1);
    int *second = mine + N; /* shares a page with the first */
    RT(cudaHostRegister(second, 1000 * sizeof *second, cudaHostRegisterMapped));
    RT(cudaHostUnregister(mine));
    scale<<<16, 128>>>(second, second, 1000, 2);
    RT(cudaDeviceSynchronize());
    EXPECT(second[0], 2 * (2 * N + 1));
    EXPECT(mine[7], 3 * (N + 8));
    RT(cudaHostUnregister(second));
    EXPECT(cudaHostUnregister(second), cudaErrorHostMemoryNotRegistered);
    EXPECT(second[999], 2 * (2 * N + 1000));
    EXPECT(h[0] == 0 && h[3 * N - 1] == 3 * N - 1, 1);
    free(h);
}

static void peers(bool fault)
{
    enum { N = 10000 };
    int n, can = 0, *a, *b;
    RT(cudaGetDeviceCount(&n));
    EXPECT(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
    if (n < 2) {
        EXPECT(fault, false); /* it takes two */
        return;
    }
    RT(cudaDeviceCanAccessPeer(&can, 1, 0));
    EXPECT(can, 1);
    RT(cudaSetDevice(0));
    RT(cudaMalloc(&a, N * sizeof *a));
    fill<<<8, 128>>>(a, N, 0);
    RT(cudaDeviceSynchronize());
    RT(cudaSetDevice(1));
    EXPECT(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
    RT(cudaDeviceEnablePeerAccess(0, 0));
    EXPECT(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
    RT(cudaMalloc(&b, N * sizeof *b));
    scale<<<8, 128>>>(b, a, N, 2);
    std::vector<int> h(N);
    RT(cudaMemcpy(h.data(), b, N * sizeof *b, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        EXPECT(h[i], 2 * i);
    RT(cudaMemcpyPeer(a, 0, b, 1, N * sizeof *a));
    RT(cudaMemcpy(h.data(), a, N * sizeof *a, cudaMemcpyDefault));
    EXPECT(h[N - 1], 2 * (N - 1));
    RT(cudaDeviceDisablePeerAccess(0));
    if (fault) {
        scale<<<8, 128>>>(b, a, N, 2); /* no longer */
        EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    }
}

int main(int argc, char **argv)
{
    pools();
    registered();
    peers(argc > 1 && !strcmp(argv[1], "fault"));
    printf("PASS memorypools\n");
    return 0;
}

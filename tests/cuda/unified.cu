// SPDX-License-Identifier: Apache-2.0
/* Uses managed memory in turn by host and device, a list with pointers in it, advice and what is
 * reported of it, prefetches, batches of copies, and memory pinned and mapped. Fails if a value is
 * wrong or if an address is not said to be what it is. */
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define EXPECT(call, want)                                                                         \
    do {                                                                                           \
        long e_ = (long)(call);                                                                    \
        if (e_ != (long)(want)) {                                                                  \
            printf("FAIL unified: line %d: %s: %ld, not %ld\n", __LINE__, #call, e_,               \
                   (long)(want));                                                                  \
            exit(1);                                                                               \
        }                                                                                          \
        (void)cudaGetLastError();                                                                  \
    } while (0)
#define RT(call) EXPECT(call, cudaSuccess)

struct node {
    int value;
    node *next;
    char *name;
};
__global__ void walk(node *n, int *sum)
{
    for (; n; n = n->next) {
        *sum += n->value;
        n->value = -n->value;
        n->name[0] = 'd';
    }
}
__global__ void add(int *p, int n, int v)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        p[i] += v;
}

static void list()
{
    enum { N = 100 };
    node *first = NULL;
    int *sum;
    RT(cudaMallocManaged(&sum, sizeof *sum));
    *sum = 0;
    for (int i = 1; i <= N; i++) {
        node *n;
        RT(cudaMallocManaged(&n, sizeof *n));
        RT(cudaMallocManaged(&n->name, 16));
        n->name[0] = 'h';
        n->value = i;
        n->next = first;
        first = n;
    }
    walk<<<1, 1>>>(first, sum);
    RT(cudaDeviceSynchronize());
    EXPECT(*sum, N * (N + 1) / 2);
    for (node *n = first, *next; n; n = next) {
        next = n->next;
        EXPECT(n->value < 0 && n->name[0] == 'd', 1);
        RT(cudaFree(n->name));
        RT(cudaFree(n));
    }
    EXPECT(cudaMallocManaged(&sum, 0), cudaErrorInvalidValue);
}

static int attribute(const void *p, size_t n, cudaMemRangeAttribute a)
{
    int v = 99;
    RT(cudaMemRangeGetAttribute(&v, sizeof v, a, p, n));
    return v;
}

static void advice()
{
    const size_t page = 1 << 16, bytes = 64 * page;
    int *p, ids[3], device = 0;
    cudaMemLocation here = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0},
                    nowhere = {cudaMemLocationTypeDevice, 77};
    RT(cudaMallocManaged(&p, bytes));
    char *c = (char *)p;
    RT(cudaMemAdvise(p, bytes, cudaMemAdviseSetReadMostly, here));
    EXPECT(attribute(p, bytes, cudaMemRangeAttributeReadMostly), 1);
    RT(cudaMemAdvise(c + page, page, cudaMemAdviseUnsetReadMostly, here));
    EXPECT(attribute(p, bytes, cudaMemRangeAttributeReadMostly), 0);
    EXPECT(attribute(p, page, cudaMemRangeAttributeReadMostly), 1);
    EXPECT(attribute(c + 2 * page, page, cudaMemRangeAttributeReadMostly), 1);
    EXPECT(attribute(p, bytes, cudaMemRangeAttributePreferredLocation), cudaInvalidDeviceId);
    RT(cudaMemAdvise(p, bytes / 2, cudaMemAdviseSetPreferredLocation, here));
    RT(cudaMemAdvise(c + bytes / 2, bytes / 2, cudaMemAdviseSetPreferredLocation, host));
    EXPECT(attribute(p, bytes / 2, cudaMemRangeAttributePreferredLocation), 0);
    EXPECT(attribute(c + bytes / 2, page, cudaMemRangeAttributePreferredLocation), cudaCpuDeviceId);
    EXPECT(attribute(p, bytes, cudaMemRangeAttributePreferredLocation), cudaInvalidDeviceId);
    RT(cudaMemAdvise(p, bytes, cudaMemAdviseSetAccessedBy, here));
    RT(cudaMemRangeGetAttribute(ids, sizeof ids, cudaMemRangeAttributeAccessedBy, p, bytes));
    EXPECT(ids[0] == 0 && ids[1] == cudaInvalidDeviceId && ids[2] == cudaInvalidDeviceId, 1);
    EXPECT(attribute(p, bytes, cudaMemRangeAttributeLastPrefetchLocation), cudaInvalidDeviceId);
    RT(cudaMemPrefetchAsync(p, bytes, here, 0));
    EXPECT(attribute(p, bytes, cudaMemRangeAttributeLastPrefetchLocation), 0);
    for (size_t i = 0; i < bytes / sizeof *p; i++)
        p[i] = (int)i;
    add<<<32, 256>>>(p, (int)(bytes / sizeof *p), 5);
    RT(cudaMemPrefetchAsync(p, bytes, host, 0));
    RT(cudaDeviceSynchronize());
    for (size_t i = 0; i < bytes / sizeof *p; i++)
        EXPECT(p[i], i + 5);
    EXPECT(attribute(p, bytes, cudaMemRangeAttributeLastPrefetchLocation), cudaCpuDeviceId);
    EXPECT(cudaMemPrefetchAsync(p, bytes, nowhere, 0), cudaErrorInvalidDevice);
    EXPECT(cudaMemPrefetchAsync(p, bytes + 1, here, 0), cudaErrorInvalidValue);
    EXPECT(cudaMemAdvise(&device, 4, cudaMemAdviseSetReadMostly, here), cudaErrorInvalidValue);
    EXPECT(cudaMemRangeGetAttribute(ids, 8, cudaMemRangeAttributeReadMostly, p, page), cudaErrorInvalidValue);
    cudaPointerAttributes a;
    RT(cudaPointerGetAttributes(&a, c + 12));
    EXPECT(a.type, cudaMemoryTypeManaged);
    EXPECT(a.devicePointer == c + 12 && a.hostPointer == c + 12, 1);
    RT(cudaFree(p));
    EXPECT(cudaFree(p), cudaErrorInvalidValue);
    RT(cudaPointerGetAttributes(&a, c + 12));
    EXPECT(a.type, cudaMemoryTypeUnregistered);
}

static void batches()
{
    enum { N = 4096, COPIES = 10 };
    cudaStream_t s;
    std::vector<int> from(COPIES * N), to(COPIES * N);
    std::vector<void *> dst, back;
    std::vector<const void *> src;
    std::vector<size_t> sizes(COPIES, N * sizeof(int));
    size_t first[2] = {0, 6}, wrong[2] = {0, 0};
    cudaMemcpyAttributes at[2] = {};
    int *d;
    at[0].srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall;
    at[1].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    RT(cudaStreamCreate(&s));
    RT(cudaMalloc(&d, COPIES * N * sizeof *d));
    for (int i = 0; i < COPIES * N; i++)
        from[i] = 3 * i;
    for (int k = 0; k < COPIES; k++) {
        dst.push_back(d + (COPIES - 1 - k) * N);
        src.push_back(from.data() + k * N);
        back.push_back(to.data() + k * N);
    }
    RT(cudaMemcpyBatchAsync(dst.data(), src.data(), sizes.data(), COPIES, at, first, 2, s));
    add<<<32, 128, 0, s>>>(d, COPIES * N, 1);
    RT(cudaMemcpyBatchAsync(back.data(), (const void *const *)dst.data(), sizes.data(), COPIES, at + 1, first, 1, s));
    RT(cudaStreamSynchronize(s));
    for (int i = 0; i < COPIES * N; i++)
        EXPECT(to[i], 3 * i + 1);
    EXPECT(cudaMemcpyBatchAsync(dst.data(), src.data(), sizes.data(), COPIES, at, wrong, 2, s), cudaErrorInvalidValue);
    EXPECT(cudaMemcpyBatchAsync(dst.data(), src.data(), sizes.data(), COPIES, at, first, 2, 0), cudaErrorInvalidValue);
    cudaMemcpy3DBatchOp op = {};
    op.src.type = op.dst.type = cudaMemcpyOperandTypePointer;
    op.src.op.ptr.ptr = d;
    op.src.op.ptr.rowLength = 64 * sizeof(int);
    op.src.op.ptr.layerHeight = 8;
    op.dst.op.ptr.ptr = to.data();
    op.extent = make_cudaExtent(16 * sizeof(int), 4, 2);
    op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::vector<int> all(COPIES * N);
    RT(cudaMemcpy(all.data(), d, COPIES * N * sizeof *d, cudaMemcpyDeviceToHost));
    RT(cudaMemcpy3DBatchAsync(1, &op, 0, s));
    RT(cudaStreamSynchronize(s));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 16; x++)
                EXPECT(to[(z * 4 + y) * 16 + x], all[(z * 8 + y) * 64 + x]);
    RT(cudaFree(d));
    RT(cudaStreamDestroy(s));
}

static void mapped()
{
    enum { N = 5000 };
    int *h, *d;
    unsigned flags;
    RT(cudaHostAlloc(&h, N * sizeof *h, cudaHostAllocMapped | cudaHostAllocPortable));
    RT(cudaHostGetFlags(&flags, h));
    EXPECT(flags & (cudaHostAllocMapped | cudaHostAllocPortable), cudaHostAllocMapped | cudaHostAllocPortable);
    for (int i = 0; i < N; i++)
        h[i] = i;
    RT(cudaHostGetDevicePointer(&d, h, 0));
    add<<<8, 128>>>(d, N, 9);
    RT(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++)
        EXPECT(h[i], i + 9);
    EXPECT(cudaFree(h), cudaErrorInvalidValue);
    RT(cudaFreeHost(h));
    EXPECT(cudaFreeHost(h), cudaErrorInvalidValue);
}

/* What is free is what is free, whatever happens in between. */
static void limits()
{
    size_t before, after, total;
    void *p, *q;
    RT(cudaMemGetInfo(&before, &total));
    EXPECT(cudaMalloc(&p, total + 1), cudaErrorMemoryAllocation);
    RT(cudaMalloc(&p, 0));
    EXPECT(p == NULL, 1);
    RT(cudaFree(NULL));
    EXPECT(cudaFree((void *)0x1234), cudaErrorInvalidValue);
    RT(cudaMalloc(&p, 3 << 20));
    EXPECT((size_t)p % 256, 0);
    RT(cudaMemGetInfo(&after, &total));
    EXPECT(before - after, 3 << 20);
    EXPECT(cudaFree((char *)p + 512), cudaErrorInvalidValue);
    RT(cudaMallocAsync(&q, 1 << 20, 0));
    RT(cudaFreeAsync(q, 0));
    RT(cudaFree(p));
    EXPECT(cudaFree(p), cudaErrorInvalidValue);
    RT(cudaDeviceSynchronize());
    RT(cudaMemGetInfo(&after, &total));
    EXPECT(after, before);
}

int main()
{
    RT(cudaFree(0));
    list();
    advice();
    batches();
    mapped();
    limits();
    printf("PASS unified\n");
    return 0;
}

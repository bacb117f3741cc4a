// SPDX-License-Identifier: Apache-2.0
// Copies between host memory, linear device memory and CUDA arrays, in one, two and three
// dimensions, with odd pitches. Fails if a byte is wrong, or if a byte in the gaps has been
// touched.
#include <vector>
#include "work.cuh"
#define WORK "arraycopy"

typedef std::vector<unsigned char> bytes;

static bytes pattern(size_t n, unsigned seed)
{
    bytes v(n);
    for (size_t i = 0; i < n; i++)
        v[i] = (unsigned char)((i * 2654435761u + seed * 40503u) >> 9);
    return v;
}

static int wrong(const char *what)
{
    return work_fail(WORK, "%s", what);
}

// Host, pitch 1 -> array -> linear with pitch 2 -> another array -> host, pitch 3. ushort2 texels.
static int two_dimensions(size_t w, size_t h, bool pinned, cudaStream_t stream)
{
    const size_t row = w * 4, p1 = row + 3, p3 = row + 13;
    bytes src = pattern(p1 * h, (unsigned)(w + h)), dst(p3 * h, 0xa5), want = dst;
    cudaChannelFormatDesc d = cudaCreateChannelDesc<ushort2>();
    cudaArray_t a, b;
    void *linear, *host = NULL;
    size_t pitch;
    CHECK(cudaMallocArray(&a, &d, w, h));
    CHECK(cudaMallocArray(&b, &d, w + 5, h + 2));
    CHECK(cudaMallocPitch(&linear, &pitch, row, h));
    if (pinned) {
        CHECK(cudaMallocHost(&host, p1 * h));
        memcpy(host, src.data(), p1 * h);
    }
    CHECK(cudaMemcpy2DToArrayAsync(a, 0, 0, pinned ? host : src.data(), p1, row, h,
                                   cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpy2DFromArrayAsync(linear, pitch, a, 0, 0, row, h, cudaMemcpyDeviceToDevice,
                                     stream));
    CHECK(cudaMemcpy2DToArrayAsync(b, 12, 1, linear, pitch, row, h, cudaMemcpyDefault, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy2DArrayToArray(a, 0, 0, b, 12, 1, row, h));
    CHECK(cudaMemcpy2DFromArray(dst.data(), p3, a, 0, 0, row, h, cudaMemcpyDefault));
    for (size_t y = 0; y < h; y++)
        memcpy(&want[y * p3], &src[y * p1], row);
    if (dst != want)
        return wrong("2-D round trip");
    // a part of it
    if (w > 4 && h > 3) {
        CHECK(cudaMemcpy2DFromArray(&dst[1], 9, a, 8, 2, 8, 2, cudaMemcpyDeviceToHost));
        for (size_t y = 0; y < 2; y++)
            memcpy(&want[1 + y * 9], &src[(y + 2) * p1 + 8], 8);
        if (dst != want)
            return wrong("2-D part");
    }
    CHECK(cudaFreeArray(a));
    CHECK(cudaFreeArray(b));
    CHECK(cudaFree(linear));
    CHECK(cudaFreeHost(host));
    return 0;
}

// 3-D and layered arrays: host -> array -> pitched device memory -> array -> host, in the middle of larger ones.
static int three_dimensions(cudaExtent e, unsigned flags)
{
    const size_t texel = 8, row = e.width * texel, pitch = row + 7, slice_rows = e.height + 2;
    const size_t total = pitch * slice_rows * e.depth;
    bytes src = pattern(total, 77), dst(total, 0x5a), want = dst;
    cudaChannelFormatDesc d = cudaCreateChannelDesc<float2>();
    cudaExtent larger = make_cudaExtent(e.width + 3, e.height + 1, e.depth + 2);
    cudaPitchedPtr linear;
    cudaArray_t a, b;
    CHECK(cudaMalloc3DArray(&a, &d, e, flags));
    CHECK(cudaMalloc3DArray(&b, &d, larger, flags));
    CHECK(cudaMalloc3D(&linear, make_cudaExtent(row, e.height, e.depth)));
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(src.data(), pitch, e.width, slice_rows);
    p.dstArray = a;
    p.extent = e;
    p.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&p));
    cudaMemcpy3DParms q = {};
    q.srcArray = a;
    q.dstPtr = linear;
    q.extent = e;
    q.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3DAsync(&q, 0));
    cudaMemcpy3DParms r = {};
    r.srcPtr = linear;
    r.dstArray = b;
    r.dstPos = make_cudaPos(2, 1, 1);
    r.extent = e;
    r.kind = cudaMemcpyDefault;
    CHECK(cudaMemcpy3DAsync(&r, 0));
    CHECK(cudaMemset3D(linear, 0, make_cudaExtent(row, e.height, e.depth)));
    cudaMemcpy3DParms s = {};
    s.srcArray = b;
    s.srcPos = make_cudaPos(2, 1, 1);
    s.dstArray = a;
    s.extent = e;
    s.kind = cudaMemcpyDeviceToDevice;
    CHECK(cudaMemcpy3D(&s));
    cudaMemcpy3DParms t = {};
    t.srcArray = a;
    t.dstPtr = make_cudaPitchedPtr(dst.data(), pitch, e.width, slice_rows);
    t.extent = e;
    t.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&t));
    for (size_t z = 0; z < e.depth; z++)
        for (size_t y = 0; y < e.height; y++)
            memcpy(&want[(z * slice_rows + y) * pitch], &src[(z * slice_rows + y) * pitch], row);
    if (dst != want)
        return wrong("3-D round trip");
    s.dstPos = make_cudaPos(1, 0, 0); // now it leaves the array
    if (cudaMemcpy3D(&s) != cudaErrorInvalidValue)
        return wrong("a box that leaves the array is not refused");
    (void)cudaGetLastError();
    CHECK(cudaFreeArray(a));
    CHECK(cudaFreeArray(b));
    CHECK(cudaFree(linear.ptr));
    return 0;
}

static int runs_of_bytes()
{
    const size_t w = 33, h = 7;
    bytes src = pattern(w * h * 4, 5), dst(w * h * 4);
    cudaChannelFormatDesc d = cudaCreateChannelDesc<int>();
    cudaArray_t a, b, one;
    CHECK(cudaMallocArray(&a, &d, w, h));
    CHECK(cudaMallocArray(&b, &d, w, h));
    CHECK(cudaMallocArray(&one, &d, 100));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    CHECK(cudaMemcpyToArray(a, 0, 0, src.data(), src.size(), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyArrayToArray(b, 0, 0, a, 0, 0, src.size()));
    CHECK(cudaMemcpyFromArray(dst.data(), b, 0, 0, src.size(), cudaMemcpyDeviceToHost));
    if (dst != src)
        return wrong("cudaMemcpyToArray and back");
    CHECK(cudaMemcpyFromArray(dst.data(), b, 8, 3, 200, cudaMemcpyDeviceToHost)); // over a row's end
    if (memcmp(dst.data(), &src[3 * w * 4 + 8], 200))
        return wrong("cudaMemcpyFromArray from the middle");
    if (cudaMemcpyFromArray(dst.data(), b, 8, 6, w * 4, cudaMemcpyDeviceToHost) !=
        cudaErrorInvalidValue)
        return wrong("a run past the array's end is not refused");
    CHECK(cudaMemcpyToArray(one, 40, 0, src.data(), 360, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyFromArray(dst.data(), one, 40, 0, 360, cudaMemcpyDeviceToHost));
#pragma GCC diagnostic pop
    (void)cudaGetLastError();
    if (memcmp(dst.data(), src.data(), 360))
        return wrong("1-D array");
    CHECK(cudaFreeArray(a));
    CHECK(cudaFreeArray(b));
    CHECK(cudaFreeArray(one));
    return 0;
}

static int mipmaps()
{
    cudaChannelFormatDesc d = cudaCreateChannelDesc<uchar4>(), got;
    cudaMipmappedArray_t m;
    cudaExtent e;
    unsigned flags;
    CHECK(cudaMallocMipmappedArray(&m, &d, make_cudaExtent(40, 24, 0), 99)); // 6 is all there can be
    bytes levels[6];
    for (unsigned i = 0; i < 6; i++) {
        cudaArray_t a;
        size_t w = 40u >> i ? 40u >> i : 1, h = 24u >> i ? 24u >> i : 1;
        CHECK(cudaGetMipmappedArrayLevel(&a, m, i));
        CHECK(cudaArrayGetInfo(&got, &e, &flags, a));
        if (e.width != w || e.height != h || e.depth || flags || got.x != 8 || got.w != 8 ||
            got.f != cudaChannelFormatKindUnsigned)
            return wrong("a level's description");
        levels[i] = pattern(w * h * 4, i);
        CHECK(cudaMemcpy2DToArray(a, 0, 0, levels[i].data(), w * 4, w * 4, h,
                                  cudaMemcpyHostToDevice));
        if (cudaFreeArray(a) != cudaErrorInvalidValue)
            return wrong("a level can be freed by itself");
    }
    cudaArray_t none;
    if (cudaGetMipmappedArrayLevel(&none, m, 6) != cudaErrorInvalidValue)
        return wrong("there are more levels than there can be");
    (void)cudaGetLastError();
    for (unsigned i = 0; i < 6; i++) {
        cudaArray_t a;
        bytes back(levels[i].size());
        CHECK(cudaGetMipmappedArrayLevel(&a, m, i));
        size_t row = (40u >> i ? 40u >> i : 1) * 4;
        CHECK(cudaMemcpy2DFromArray(back.data(), row, a, 0, 0, row, back.size() / row,
                                    cudaMemcpyDeviceToHost));
        if (back != levels[i])
            return wrong("a level's content");
    }
    CHECK(cudaFreeMipmappedArray(m));
    return 0;
}

// The same copies as nodes of a graph: captured, and launched twice.
static int captured(cudaStream_t stream)
{
    const size_t w = 50, h = 20, row = w * 4;
    cudaChannelFormatDesc d = cudaCreateChannelDesc<int>();
    cudaArray_t a;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    unsigned char *src, *dst;
    CHECK(cudaMallocArray(&a, &d, w, h));
    CHECK(cudaMallocHost(&src, (row + 4) * h));
    CHECK(cudaMallocHost(&dst, (row + 8) * h));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpy2DToArrayAsync(a, 0, 0, src, row + 4, row, h, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpy2DFromArrayAsync(dst, row + 8, a, 0, 0, row, h, cudaMemcpyDeviceToHost,
                                     stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    for (unsigned k = 0; k < 2; k++) {
        bytes v = pattern((row + 4) * h, k + 9);
        memcpy(src, v.data(), v.size());
        memset(dst, 0, (row + 8) * h);
        CHECK(cudaGraphLaunch(exec, stream));
        CHECK(cudaStreamSynchronize(stream));
        for (size_t y = 0; y < h; y++)
            if (memcmp(dst + y * (row + 8), &v[y * (row + 4)], row))
                return wrong("copies of arrays in a graph");
    }
    cudaArray_t none;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    if (cudaMallocArray(&none, &d, w, h) != cudaErrorStreamCaptureUnsupported ||
        cudaStreamEndCapture(stream, &graph) != cudaErrorStreamCaptureInvalidated)
        return wrong("an array can be made during a capture");
    (void)cudaGetLastError();
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFreeHost(src));
    CHECK(cudaFreeHost(dst));
    return 0;
}

#define REFUSED(call, code)                                                                        \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != (code))                                                                          \
            return work_fail(WORK, "%s gave %s", #call, cudaGetErrorName(e_));                     \
        (void)cudaGetLastError();                                                                  \
    } while (0)

static int misuse()
{
    cudaChannelFormatDesc f = cudaCreateChannelDesc<float>(),
                          three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned),
                          mixed = cudaCreateChannelDesc(8, 16, 0, 0, cudaChannelFormatKindUnsigned);
    cudaArray_t a, none;
    float v[64] = {};
    REFUSED(cudaMallocArray(&none, &three, 8, 8), cudaErrorInvalidChannelDescriptor);
    REFUSED(cudaMallocArray(&none, &mixed, 8, 8), cudaErrorInvalidChannelDescriptor);
    REFUSED(cudaMallocArray(&none, &f, 0, 8), cudaErrorInvalidValue);
    REFUSED(cudaMallocArray(&none, &f, 1 << 20, 8), cudaErrorInvalidValue);
    REFUSED(cudaMallocArray(NULL, &f, 8, 8), cudaErrorInvalidValue);
    REFUSED(cudaMalloc3DArray(&none, &f, make_cudaExtent(8, 9, 6), cudaArrayCubemap),
            cudaErrorInvalidValue);
    REFUSED(cudaMalloc3DArray(&none, &f, make_cudaExtent(8, 8, 7),
                              cudaArrayCubemap | cudaArrayLayered),
            cudaErrorInvalidValue);
    REFUSED(cudaMalloc3DArray(&none, &f, make_cudaExtent(8, 8, 4000), cudaArrayLayered),
            cudaErrorInvalidValue);
    REFUSED(cudaMalloc3DArray(&none, &f, make_cudaExtent(8, 0, 8)), cudaErrorInvalidValue);
    CHECK(cudaMallocArray(&a, &f, 8, 8));
    REFUSED(cudaMemcpy2DToArray(a, 0, 0, v, 28, 32, 8, cudaMemcpyHostToDevice),
            cudaErrorInvalidPitchValue);
    REFUSED(cudaMemcpy2DToArray(a, 4, 0, v, 32, 32, 8, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
    REFUSED(cudaMemcpy2DToArray(a, 0, 1, v, 32, 32, 8, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue);
    REFUSED(cudaMemcpy2DToArray(a, 0, 0, v, 32, 32, 8, cudaMemcpyDeviceToHost),
            cudaErrorInvalidValue);
    REFUSED(cudaMemcpy2DToArray(a, 0, 0, v, 32, 32, 8, (cudaMemcpyKind)9),
            cudaErrorInvalidMemcpyDirection);
    CHECK(cudaFreeArray(a));
    REFUSED(cudaFreeArray(a), cudaErrorInvalidValue);
    REFUSED(cudaMemcpy2DToArray(a, 0, 0, v, 32, 32, 8, cudaMemcpyHostToDevice),
            cudaErrorInvalidResourceHandle);
    CHECK(cudaFreeArray(NULL));
    return 0;
}

int main(int argc, char **argv)
{
    size_t n = (size_t)work_arg(argc, argv, 1, 64, 2048);
    long iterations = work_arg(argc, argv, 2, 1, 1000);
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    int bad = runs_of_bytes() || mipmaps() || captured(stream) || misuse();
    for (long i = 0; i < iterations && !bad; i++)
        bad = two_dimensions(n, n / 2 + 1, i & 1, stream) || two_dimensions(1, 5, false, stream) ||
              two_dimensions(1001, 300, true, 0) ||
              three_dimensions(make_cudaExtent(n / 4 + 1, 13, 5), 0) ||
              three_dimensions(make_cudaExtent(5, 3, n / 8 + 1), 0) ||
              three_dimensions(make_cudaExtent(31, n / 4 + 2, 4), cudaArrayLayered);
    CHECK(cudaStreamDestroy(stream));
    return bad ? 1 : work_pass(WORK);
}

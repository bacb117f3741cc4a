// SPDX-License-Identifier: Apache-2.0
// Uses textures of linear memory (tex1Dfetch) as sparse and tree codes do, tables of texture
// objects in device memory and in constant memory, many objects at once, and what an object says of
// itself. Fails if a value is wrong or if a misuse that CUDA documents is accepted.
#include <vector>
#include "work.cuh"
#define WORK "texlinear"

__global__ void gather(cudaTextureObject_t t, const int *index, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex1Dfetch<float>(t, index[i]);
}
__global__ void widen(cudaTextureObject_t t, int4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uchar2 v = tex1Dfetch<uchar2>(t, i);
        out[i] = make_int4(v.x, v.y, v.x + v.y, i);
    }
}
__global__ void nodes(cudaTextureObject_t t, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { // a double in two words, as programs read them through textures
        int2 v = tex1Dfetch<int2>(t, i);
        out[i] = __hiloint2double(v.y, v.x);
    }
}
__constant__ cudaTextureObject_t table_c[8];
__global__ void bindless(const cudaTextureObject_t *table, float4 *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 a = tex2D<float4>(table[i % 8], (i / 8 % 16) + 0.5f, (i / 128) + 0.5f);
        float4 b = tex2D<float4>(table_c[(i + 3) % 8], 0.5f, 0.5f);
        out[i] = make_float4(a.x, a.y, b.z, b.w);
    }
}

static cudaResourceDesc linear(void *p, cudaChannelFormatDesc c, size_t bytes)
{
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = p;
    r.res.linear.desc = c;
    r.res.linear.sizeInBytes = bytes;
    return r;
}

static int fetches(int n)
{
    std::vector<float> v(n), out(n);
    std::vector<int> index(n);
    std::vector<uchar2> u(n);
    std::vector<int4> wide(n);
    std::vector<double> d(n), d_back(n);
    float *d_v, *d_out;
    int *d_index;
    uchar2 *d_u;
    int4 *d_wide;
    double *d_d, *d_e;
    cudaTextureDesc t = {};
    cudaTextureObject_t o;
    t.readMode = cudaReadModeElementType;
    for (int i = 0; i < n; i++) {
        v[i] = i * 0.125f;
        index[i] = (int)((unsigned)i * 2654435761u % (unsigned)(n + 20)) - 10; // some are outside
        u[i] = make_uchar2(i, i * 3);
        d[i] = 1.0 / (i + 1);
    }
    CHECK(cudaMalloc(&d_v, n * 4));
    CHECK(cudaMalloc(&d_out, n * 4));
    CHECK(cudaMalloc(&d_index, n * 4));
    CHECK(cudaMalloc(&d_u, n * 2));
    CHECK(cudaMalloc(&d_wide, n * 16));
    CHECK(cudaMalloc(&d_d, n * 8));
    CHECK(cudaMalloc(&d_e, n * 8));
    CHECK(cudaMemcpy(d_v, v.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_index, index.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_u, u.data(), n * 2, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_d, d.data(), n * 8, cudaMemcpyHostToDevice));
    cudaResourceDesc r = linear(d_v, cudaCreateChannelDesc<float>(), n * 4);
    CHECK(cudaCreateTextureObject(&o, &r, &t, NULL));
    gather<<<(n + 127) / 128, 128>>>(o, d_index, d_out, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (out[i] != (index[i] >= 0 && index[i] < n ? v[index[i]] : 0))
            return work_fail(WORK, "element %d is %g", index[i], out[i]);
    CHECK(cudaDestroyTextureObject(o));
    r = linear(d_u, cudaCreateChannelDesc<uchar2>(), n * 2);
    CHECK(cudaCreateTextureObject(&o, &r, &t, NULL));
    widen<<<(n + 127) / 128, 128>>>(o, d_wide, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(wide.data(), d_wide, n * 16, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (wide[i].x != u[i].x || wide[i].y != u[i].y || wide[i].z != u[i].x + u[i].y)
            return work_fail(WORK, "uchar2 %d", i);
    CHECK(cudaDestroyTextureObject(o));
    r = linear(d_d, cudaCreateChannelDesc<int2>(), n * 8);
    CHECK(cudaCreateTextureObject(&o, &r, &t, NULL));
    nodes<<<(n + 127) / 128, 128>>>(o, d_e, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(d_back.data(), d_e, n * 8, cudaMemcpyDeviceToHost));
    if (d_back != d)
        return work_fail(WORK, "doubles in two words");
    CHECK(cudaDestroyTextureObject(o));
    CHECK(cudaFree(d_v));
    CHECK(cudaFree(d_out));
    CHECK(cudaFree(d_index));
    CHECK(cudaFree(d_u));
    CHECK(cudaFree(d_wide));
    CHECK(cudaFree(d_d));
    CHECK(cudaFree(d_e));
    return 0;
}

static int tables()
{
    const int n = 8 * 16 * 4;
    cudaArray_t a[8];
    cudaTextureObject_t t[8], *d_t;
    std::vector<float4> v(64), out(n);
    float4 *d_out;
    cudaChannelFormatDesc c = cudaCreateChannelDesc<float4>();
    for (int k = 0; k < 8; k++) {
        cudaResourceDesc r = {};
        cudaTextureDesc d = {};
        for (int i = 0; i < 64; i++)
            v[i] = make_float4(k, i, k * 100 + i, -k);
        CHECK(cudaMallocArray(&a[k], &c, 16, 4));
        CHECK(cudaMemcpy2DToArray(a[k], 0, 0, v.data(), 256, 256, 4, cudaMemcpyHostToDevice));
        r.resType = cudaResourceTypeArray;
        r.res.array.array = a[k];
        CHECK(cudaCreateTextureObject(&t[k], &r, &d, NULL));
    }
    CHECK(cudaMalloc(&d_t, sizeof t));
    CHECK(cudaMalloc(&d_out, n * sizeof(float4)));
    CHECK(cudaMemcpy(d_t, t, sizeof t, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(table_c, t, sizeof t));
    bindless<<<(n + 63) / 64, 64>>>(d_t, d_out, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        int k = (i + 3) % 8;
        if (out[i].x != i % 8 || out[i].y != i / 8 || out[i].z != k * 100 || out[i].w != -k)
            return work_fail(WORK, "table at %d: %g %g %g %g", i, out[i].x, out[i].y, out[i].z,
                             out[i].w);
    }
    for (int k = 0; k < 8; k++) {
        CHECK(cudaDestroyTextureObject(t[k]));
        CHECK(cudaFreeArray(a[k]));
    }
    CHECK(cudaFree(d_t));
    CHECK(cudaFree(d_out));
    return 0;
}

static int many()
{
    enum { N = 700 };
    static cudaTextureObject_t t[N];
    float *p;
    cudaTextureDesc d = {};
    CHECK(cudaMalloc(&p, 4096));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            cudaResourceDesc r = linear(p, cudaCreateChannelDesc<float>(), 4 * (i + 1)), got;
            CHECK(cudaCreateTextureObject(&t[i], &r, &d, NULL));
            CHECK(cudaGetTextureObjectResourceDesc(&got, t[i]));
            if (got.res.linear.sizeInBytes != 4u * (i + 1) || got.res.linear.desc.x != 32)
                return work_fail(WORK, "object %d", i);
        }
        for (int i = 0; i < N; i++)
            CHECK(cudaDestroyTextureObject(t[i]));
    }
    CHECK(cudaFree(p));
    return 0;
}

// Each device has its own arrays and objects; copies may go between them.
static int devices()
{
    enum { N = 64 };
    int n, index[N];
    float v[N], out[N], *d_out;
    int *d_index;
    CHECK(cudaGetDeviceCount(&n));
    cudaArray_t a[2];
    cudaChannelFormatDesc c = cudaCreateChannelDesc<float>();
    cudaResourceDesc r = {};
    cudaTextureDesc t = {};
    cudaTextureObject_t o;
    r.resType = cudaResourceTypeArray;
    for (int i = 0; i < N; i++) {
        v[i] = i * 1.5f;
        index[i] = N - 1 - i;
    }
    for (int k = 0; k < 2 && k < n; k++) {
        CHECK(cudaSetDevice(k));
        CHECK(cudaMallocArray(&a[k], &c, N));
    }
    if (n > 1) {
        CHECK(cudaMemcpy2DToArray(a[0], 0, 0, v, sizeof v, sizeof v, 1, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy2DArrayToArray(a[1], 0, 0, a[0], 0, 0, sizeof v, 1));
        r.res.array.array = a[0]; // of another device than the current one
        if (cudaCreateTextureObject(&o, &r, &t, NULL) != cudaErrorInvalidValue)
            return work_fail(WORK, "another device's array is not refused");
        (void)cudaGetLastError();
        float *d_v;
        CHECK(cudaMalloc(&d_v, sizeof v));
        CHECK(cudaMalloc(&d_out, sizeof v));
        CHECK(cudaMalloc(&d_index, sizeof index));
        CHECK(cudaMemcpy(d_index, index, sizeof index, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy2DFromArray(d_v, sizeof v, a[1], 0, 0, sizeof v, 1,
                                    cudaMemcpyDeviceToDevice));
        r = linear(d_v, c, sizeof v);
        CHECK(cudaCreateTextureObject(&o, &r, &t, NULL));
        gather<<<1, N>>>(o, d_index, d_out, N);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(out, d_out, sizeof out, cudaMemcpyDeviceToHost));
        for (int i = 0; i < N; i++)
            if (out[i] != v[N - 1 - i])
                return work_fail(WORK, "on the second device %d is %g", i, out[i]);
        CHECK(cudaDestroyTextureObject(o));
        CHECK(cudaFree(d_v));
        CHECK(cudaFree(d_out));
        CHECK(cudaFree(d_index));
    }
    for (int k = 0; k < 2 && k < n; k++)
        CHECK(cudaFreeArray(a[k]));
    CHECK(cudaSetDevice(0));
    return 0;
}

#define REFUSED(call, code)                                                                        \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != (code))                                                                          \
            return work_fail(WORK, "%s:%d: %s gave %s", __FILE__, __LINE__, #call,                 \
                             cudaGetErrorName(e_));                                                \
        (void)cudaGetLastError();                                                                  \
    } while (0)

static int misuse()
{
    char *p;
    cudaArray_t a, f;
    cudaTextureObject_t t;
    cudaTextureDesc d = {}, got_d;
    cudaResourceDesc r, got_r;
    cudaResourceViewDesc view = {}, got_view;
    cudaDeviceProp prop;
    size_t most;
    cudaChannelFormatDesc c = cudaCreateChannelDesc<uchar4>(), cf = cudaCreateChannelDesc<float>();
    CHECK(cudaGetDeviceProperties(&prop, 0));
    CHECK(cudaMalloc(&p, 1 << 16));
    CHECK(cudaMallocArray(&a, &c, 8, 8));
    CHECK(cudaMallocArray(&f, &cf, 8, 8));
    r = linear(p + 4, cf, 64);
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidValue); // alignment
    r = linear(NULL, cf, 64);
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidValue);
    r = linear(p, cf, 0);
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidValue);
    r = linear(p, cf, 64);
    REFUSED(cudaCreateTextureObject(&t, &r, &d, &view), cudaErrorInvalidValue); // views: arrays
    REFUSED(cudaCreateTextureObject(NULL, &r, &d, NULL), cudaErrorInvalidValue);
    REFUSED(cudaCreateTextureObject(&t, NULL, &d, NULL), cudaErrorInvalidValue);
    REFUSED(cudaCreateTextureObject(&t, &r, NULL, NULL), cudaErrorInvalidValue);
    r.resType = (cudaResourceType)9;
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidValue);
    CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&most, &cf, 0));
    r = linear(p, cf, (most + 1) * 4);
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidValue);
    r = {};
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = p;
    r.res.pitch2D.desc = cf;
    r.res.pitch2D.width = 16;
    r.res.pitch2D.height = 16;
    r.res.pitch2D.pitchInBytes = 100; // no multiple of texturePitchAlignment
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidValue);
    r.res.pitch2D.pitchInBytes = prop.texturePitchAlignment; // less than a row
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidValue);
    r.res.pitch2D.pitchInBytes = 128;
    r.res.pitch2D.height = prop.maxTexture2DLinear[1] + 1;
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidValue);
    r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    d.filterMode = cudaFilterModeLinear; // of integers that stay integers
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidFilterSetting);
    d.readMode = cudaReadModeNormalizedFloat;
    d.normalizedCoords = 1;
    d.addressMode[1] = cudaAddressModeMirror;
    d.borderColor[2] = 0.5f;
    d.maxAnisotropy = 7;
    view.width = view.height = 8;
    view.format = cudaResViewFormatUnsignedInt1;
    REFUSED(cudaCreateTextureObject(&t, &r, &d, &view), cudaErrorInvalidFilterSetting);
    view.format = cudaResViewFormatUnsignedShort1; // another size
    REFUSED(cudaCreateTextureObject(&t, &r, &d, &view), cudaErrorInvalidValue);
    view.format = cudaResViewFormatSignedChar4;
    view.lastMipmapLevel = 1;
    REFUSED(cudaCreateTextureObject(&t, &r, &d, &view), cudaErrorInvalidValue);
    view.lastMipmapLevel = 0;
    CHECK(cudaCreateTextureObject(&t, &r, &d, &view));
    CHECK(cudaGetTextureObjectTextureDesc(&got_d, t));
    CHECK(cudaGetTextureObjectResourceDesc(&got_r, t));
    CHECK(cudaGetTextureObjectResourceViewDesc(&got_view, t));
    if (memcmp(&got_d, &d, sizeof d) || got_r.resType != cudaResourceTypeArray ||
        got_r.res.array.array != a || memcmp(&got_view, &view, sizeof view))
        return work_fail(WORK, "an object's descriptions are not what it was made from");
    CHECK(cudaDestroyTextureObject(t));
    REFUSED(cudaDestroyTextureObject(t), cudaErrorInvalidValue);
    REFUSED(cudaGetTextureObjectTextureDesc(&got_d, t), cudaErrorInvalidValue);
    CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
    REFUSED(cudaGetTextureObjectResourceViewDesc(&got_view, t), cudaErrorInvalidValue);
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(a));
    if (cudaCreateTextureObject(&t, &r, &d, NULL) == cudaSuccess)
        return work_fail(WORK, "an array that was freed is not refused");
    (void)cudaGetLastError();
    d = {};
    d.seamlessCubemap = 1; // of no cube
    r.res.array.array = f;
    REFUSED(cudaCreateTextureObject(&t, &r, &d, NULL), cudaErrorInvalidValue);
    CHECK(cudaFreeArray(f));
    CHECK(cudaFree(p));
    if (most < 1 << 27 || prop.maxTexture2D[0] < 65536 || prop.maxTexture3D[2] < 4096 ||
        prop.maxTexture2DLayered[2] < 2048 || prop.maxSurface2D[0] < 32768 ||
        prop.textureAlignment < 256)
        return work_fail(WORK, "the device's limits");
    return 0;
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 1, 1 << 12) * 1024;
    long iterations = work_arg(argc, argv, 2, 1, 1000);
    int bad = misuse();
    for (long i = 0; i < iterations && !bad; i++)
        bad = fetches(n) || tables() || many() || devices();
    return bad ? 1 : work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Lets kernels write arrays through surfaces and read them again, in one, two and three dimensions,
// layers and cube faces, with every way to treat what lies outside. Fails if a texture or a copy
// does not read what they wrote.
#include <vector>
#include "work.cuh"
#define WORK "surface"

__global__ void write_2d(cudaSurfaceObject_t s, const float *in, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h)
        surf2Dwrite(in[y * w + x], s, x * 4, y, cudaBoundaryModeTrap);
}
__global__ void transpose(cudaTextureObject_t t, float *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h)
        out[x * h + y] = tex2D<float>(t, (x + 0.5f) / w, (y + 0.5f) / h);
}
__global__ void twice(cudaSurfaceObject_t s, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h)
        surf2Dwrite(2 * surf2Dread<float>(s, x * 4, y), s, x * 4, y);
}
// Neighbours outside read as 0, or as the nearest inside.
__global__ void edges(cudaSurfaceObject_t s, float *zero, float *nearest, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x - 2, y = blockIdx.y * blockDim.y + threadIdx.y - 2;
    if (x >= w + 2 || y >= h + 2)
        return;
    int i = (y + 2) * (w + 4) + x + 2;
    zero[i] = surf2Dread<float>(s, x * 4, y, cudaBoundaryModeZero);
    nearest[i] = surf2Dread<float>(s, x * 4, y, cudaBoundaryModeClamp);
    if (x < 0) // written nowhere
        surf2Dwrite(-1.0f, s, x * 4, y, cudaBoundaryModeZero);
}
__global__ void write_3d(cudaSurfaceObject_t s, int w, int h, int d)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
    if (x < w)
        surf3Dwrite(make_uchar4(x, y, z, x ^ y ^ z), s, x * 4, y, z);
}
__global__ void write_layers(cudaSurfaceObject_t s, int w, int layer)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < w)
        surf2DLayeredwrite((short)(x * 100 + y * 10 + layer), s, x * 2, y, layer);
}
__global__ void write_1d(cudaSurfaceObject_t s, int w)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < w)
        surf1Dwrite(make_float4(x, x + 0.25f, x + 0.5f, -x), s, x * 16);
}
__global__ void write_faces(cudaSurfaceObject_t s, int w)
{
    int x = threadIdx.x, y = blockIdx.x, f = blockIdx.y;
    if (x < w)
        surfCubemapwrite(1000 * f + 10 * y + x, s, x * 4, y, f);
}

static int make(cudaArray_t *a, cudaSurfaceObject_t *s, const cudaChannelFormatDesc &c,
                cudaExtent e, unsigned flags)
{
    cudaResourceDesc r = {};
    CHECK(cudaMalloc3DArray(a, &c, e, flags | cudaArraySurfaceLoadStore));
    r.resType = cudaResourceTypeArray;
    r.res.array.array = *a;
    CHECK(cudaCreateSurfaceObject(s, &r));
    return 0;
}

static int planes(int w, int h)
{
    std::vector<float> in(w * h), out(w * h), zero((w + 4) * (h + 4)), nearest((w + 4) * (h + 4));
    cudaArray_t a;
    cudaSurfaceObject_t s;
    cudaTextureObject_t t;
    cudaResourceDesc r = {};
    cudaTextureDesc d = {};
    float *d_in, *d_out, *d_zero;
    dim3 grid((w + 15) / 16, (h + 15) / 16), block(16, 16), wide((w + 19) / 16, (h + 19) / 16);
    for (int i = 0; i < w * h; i++)
        in[i] = i * 0.5f;
    make(&a, &s, cudaCreateChannelDesc<float>(), make_cudaExtent(w, h, 0), 0);
    CHECK(cudaMalloc(&d_in, w * h * 4));
    CHECK(cudaMalloc(&d_out, (w + 4) * (h + 4) * 4));
    CHECK(cudaMalloc(&d_zero, (w + 4) * (h + 4) * 4));
    CHECK(cudaMemcpy(d_in, in.data(), w * h * 4, cudaMemcpyHostToDevice));
    write_2d<<<grid, block>>>(s, d_in, w, h);
    twice<<<grid, block>>>(s, w, h);
    CHECK_LAUNCH();
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    d.normalizedCoords = 1;
    CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
    transpose<<<grid, block>>>(t, d_out, w, h);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, w * h * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            if (out[x * h + y] != 2 * in[y * w + x])
                return work_fail(WORK, "through the texture (%d, %d): %g", x, y, out[x * h + y]);
    edges<<<wide, block>>>(s, d_zero, d_out, w, h);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(zero.data(), d_zero, zero.size() * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(nearest.data(), d_out, zero.size() * 4, cudaMemcpyDeviceToHost));
    for (int y = -2; y < h + 2; y++)
        for (int x = -2; x < w + 2; x++) {
            int i = (y + 2) * (w + 4) + x + 2, cx = x < 0 ? 0 : x >= w ? w - 1 : x,
                cy = y < 0 ? 0 : y >= h ? h - 1 : y;
            bool in_it = cx == x && cy == y;
            if (zero[i] != (in_it ? 2 * in[y * w + x] : 0) || nearest[i] != 2 * in[cy * w + cx])
                return work_fail(WORK, "(%d, %d) reads as %g, clamped as %g", x, y, zero[i],
                                 nearest[i]);
        }
    CHECK(cudaMemcpy2DFromArray(out.data(), w * 4, a, 0, 0, w * 4, h, cudaMemcpyDeviceToHost));
    for (int i = 0; i < w * h; i++)
        if (out[i] != 2 * in[i])
            return work_fail(WORK, "by copy %d: %g", i, out[i]);
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaDestroySurfaceObject(s));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    CHECK(cudaFree(d_zero));
    return 0;
}

static int others()
{
    const int w = 21, h = 9, d = 5;
    cudaArray_t a, b, c, e;
    cudaSurfaceObject_t sa, sb, sc, se;
    std::vector<uchar4> v(w * h * d);
    std::vector<short> l(w * h * d);
    std::vector<float4> one(w);
    std::vector<int> faces(16 * 16 * 6);
    make(&a, &sa, cudaCreateChannelDesc<uchar4>(), make_cudaExtent(w, h, d), 0);
    make(&b, &sb, cudaCreateChannelDesc<short>(), make_cudaExtent(w, h, d), cudaArrayLayered);
    make(&c, &sc, cudaCreateChannelDesc<float4>(), make_cudaExtent(w, 0, 0), 0);
    make(&e, &se, cudaCreateChannelDesc<int>(), make_cudaExtent(16, 16, 6), cudaArrayCubemap);
    write_3d<<<dim3(1, h, d), 32>>>(sa, w, h, d);
    for (int i = 0; i < d; i++)
        write_layers<<<dim3(1, h), 32>>>(sb, w, i);
    write_1d<<<1, 32>>>(sc, w);
    write_faces<<<dim3(16, 6), 16>>>(se, 16);
    CHECK_LAUNCH();
    cudaMemcpy3DParms p = {};
    p.kind = cudaMemcpyDeviceToHost;
    p.extent = make_cudaExtent(w, h, d);
    p.srcArray = a;
    p.dstPtr = make_cudaPitchedPtr(v.data(), w * 4, w, h);
    CHECK(cudaMemcpy3D(&p));
    p.srcArray = b;
    p.dstPtr = make_cudaPitchedPtr(l.data(), w * 2, w, h);
    CHECK(cudaMemcpy3D(&p));
    CHECK(cudaMemcpy2DFromArray(one.data(), w * 16, c, 0, 0, w * 16, 1, cudaMemcpyDeviceToHost));
    p.srcArray = e;
    p.extent = make_cudaExtent(16, 16, 6);
    p.dstPtr = make_cudaPitchedPtr(faces.data(), 64, 16, 16);
    CHECK(cudaMemcpy3D(&p));
    for (int z = 0; z < d; z++)
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++) {
                uchar4 u = v[(z * h + y) * w + x];
                if (u.x != x || u.y != y || u.z != z || u.w != (x ^ y ^ z))
                    return work_fail(WORK, "3-D surface at %d, %d, %d", x, y, z);
                if (l[(z * h + y) * w + x] != x * 100 + y * 10 + z)
                    return work_fail(WORK, "layered surface at %d, %d, %d", x, y, z);
            }
    for (int x = 0; x < w; x++)
        if (one[x].x != x || one[x].y != x + 0.25f || one[x].z != x + 0.5f || one[x].w != -x)
            return work_fail(WORK, "1-D surface at %d", x);
    for (int i = 0; i < 16 * 16 * 6; i++)
        if (faces[i] != i / 256 * 1000 + i / 16 % 16 * 10 + i % 16)
            return work_fail(WORK, "cubemap surface at %d", i);
    CHECK(cudaDestroySurfaceObject(sa));
    CHECK(cudaDestroySurfaceObject(sb));
    CHECK(cudaDestroySurfaceObject(sc));
    CHECK(cudaDestroySurfaceObject(se));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFreeArray(b));
    CHECK(cudaFreeArray(c));
    CHECK(cudaFreeArray(e));
    return 0;
}

static int misuse()
{
    cudaChannelFormatDesc c = cudaCreateChannelDesc<float>();
    cudaResourceDesc r = {}, got;
    cudaArray_t plain, a;
    cudaSurfaceObject_t s;
    CHECK(cudaMallocArray(&plain, &c, 8, 8));
    r.resType = cudaResourceTypeArray;
    r.res.array.array = plain;
    if (cudaCreateSurfaceObject(&s, &r) != cudaErrorInvalidValue)
        return work_fail(WORK, "an array without cudaArraySurfaceLoadStore is not refused");
    r.resType = cudaResourceTypeLinear;
    if (cudaCreateSurfaceObject(&s, &r) == cudaSuccess)
        return work_fail(WORK, "linear memory is not refused");
    if (cudaDestroySurfaceObject(12345) != cudaErrorInvalidValue)
        return work_fail(WORK, "a surface that is none is not refused");
    (void)cudaGetLastError();
    make(&a, &s, c, make_cudaExtent(8, 8, 0), 0);
    CHECK(cudaGetSurfaceObjectResourceDesc(&got, s));
    if (got.resType != cudaResourceTypeArray || got.res.array.array != a)
        return work_fail(WORK, "a surface's description");
    if (cudaDestroyTextureObject(s) != cudaErrorInvalidValue)
        return work_fail(WORK, "a surface can be destroyed as a texture");
    (void)cudaGetLastError();
    CHECK(cudaFreeArray(plain));
    CHECK(cudaDeviceReset());
    if (cudaDestroySurfaceObject(s) != cudaErrorInvalidValue)
        return work_fail(WORK, "a surface outlives cudaDeviceReset");
    if (cudaFreeArray(a) != cudaErrorInvalidValue)
        return work_fail(WORK, "an array outlives cudaDeviceReset");
    (void)cudaGetLastError();
    return 0;
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 48, 1024);
    long iterations = work_arg(argc, argv, 2, 1, 1000);
    int bad = 0;
    for (long i = 0; i < iterations && !bad; i++)
        bad = planes(n, n / 3 + 1) || planes(3, 5) || others();
    bad = bad || misuse() || planes(n, 7); // and everything works again
    return bad ? 1 : work_pass(WORK);
}

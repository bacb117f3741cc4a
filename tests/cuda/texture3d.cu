// SPDX-License-Identifier: Apache-2.0
// Uses textures with a third coordinate: volumes with a trilinear filter, layers, cubemaps, cubemap
// layers, mipmaps with explicit levels and between levels; and views that show a part of the layers
// and levels. Fails if a value differs from formulas on the CPU.
#include <cmath>
#include <vector>
#include "work.cuh"
#define WORK "texture3d"

__global__ void volume(cudaTextureObject_t t, float *out, const float4 *at, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex3D<float>(t, at[i].x, at[i].y, at[i].z);
}
__global__ void layered(cudaTextureObject_t t, float *out, int w, int h, int layer)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h)
        out[y * w + x] = -tex2DLayered<float>(t, (x + 0.5f) / w, (y + 0.5f) / h, layer) + layer;
}
__global__ void layered_1d(cudaTextureObject_t t, float *out, int w, int layer)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < w)
        out[x] = tex1DLayered<float>(t, x + 0.5f, layer);
}
// The six faces of a cube as a program would walk them.
__device__ float3 direction(int face, float u, float v)
{
    switch (face) {
    case 0:
        return make_float3(1, -v, -u);
    case 1:
        return make_float3(-1, -v, u);
    case 2:
        return make_float3(u, 1, v);
    case 3:
        return make_float3(u, -1, -v);
    case 4:
        return make_float3(u, -v, 1);
    default:
        return make_float3(-u, -v, -1);
    }
}
__global__ void cube(cudaTextureObject_t t, float *out, int w, int layer)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= w)
        return;
    for (int face = 0; face < 6; face++) {
        float3 d = direction(face, (x + 0.5f) / w * 2 - 1, (y + 0.5f) / w * 2 - 1);
        out[(face * w + y) * w + x] = layer < 0 ? texCubemap<float>(t, d.x, d.y, d.z)
                                                : texCubemapLayered<float>(t, d.x, d.y, d.z, layer);
    }
}
__global__ void mipmapped(cudaTextureObject_t t, float *out, const float4 *at, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2DLod<float>(t, at[i].x, at[i].y, at[i].z);
}

static std::vector<float> noise(size_t n, unsigned seed)
{
    std::vector<float> v(n);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)(((unsigned)i * 2654435761u + seed) >> 8 & 0xffff) / 65536.0f;
    return v;
}

static cudaResourceDesc of(cudaArray_t a)
{
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    return r;
}

static int fill(cudaArray_t a, std::vector<float> &v, size_t w, size_t h, size_t d)
{
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(v.data(), w * sizeof(float), w, h);
    p.dstArray = a;
    p.extent = make_cudaExtent(w, h, d);
    p.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&p));
    return 0;
}

static int clamp(int i, int n)
{
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static int volumes()
{
    const int w = 19, h = 11, d = 7, n = 3000;
    std::vector<float> v = noise((size_t)w * h * d, 1), out(n);
    std::vector<float4> at(n);
    cudaChannelFormatDesc c = cudaCreateChannelDesc<float>();
    cudaArray_t a;
    float4 *d_at;
    float *d_out;
    CHECK(cudaMalloc3DArray(&a, &c, make_cudaExtent(w, h, d)));
    fill(a, v, w, h, d);
    CHECK(cudaMalloc(&d_at, n * sizeof(float4)));
    CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    for (int i = 0; i < n; i++) {
        unsigned k = i * 2654435761u;
        at[i] = make_float4(-0.1f + 1.2f * (k >> 22) / 1024, -0.1f + 1.2f * (k >> 12 & 1023) / 1024,
                            -0.1f + 1.2f * (k >> 2 & 1023) / 1024, 0);
    }
    CHECK(cudaMemcpy(d_at, at.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
    cudaResourceDesc r = of(a);
    cudaTextureDesc t = {};
    cudaTextureObject_t o;
    t.normalizedCoords = 1;
    t.filterMode = cudaFilterModeLinear;
    for (int k = 0; k < 3; k++)
        t.addressMode[k] = cudaAddressModeClamp;
    CHECK(cudaCreateTextureObject(&o, &r, &t, NULL));
    volume<<<(n + 127) / 128, 128>>>(o, d_out, d_at, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) {
        double p[3] = {at[i].x * (double)w - 0.5, at[i].y * (double)h - 0.5,
                       at[i].z * (double)d - 0.5},
               want = 0;
        for (int corner = 0; corner < 8; corner++) {
            double weight = 1;
            int q[3];
            for (int k = 0; k < 3; k++) {
                double f = p[k] - std::floor(p[k]);
                weight *= corner >> k & 1 ? f : 1 - f;
                q[k] = (int)std::floor(p[k]) + (corner >> k & 1);
            }
            want += weight * v[((size_t)clamp(q[2], d) * h + clamp(q[1], h)) * w + clamp(q[0], w)];
        }
        if (!(std::fabs(out[i] - want) <= 4.0 / 256))
            return work_fail(WORK, "volume at (%g, %g, %g): %g, not %g", at[i].x, at[i].y, at[i].z,
                             out[i], want);
    }
    CHECK(cudaDestroyTextureObject(o));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFree(d_at));
    CHECK(cudaFree(d_out));
    return 0;
}

static int layers()
{
    const int w = 48, h = 20, n = 5;
    std::vector<float> v = noise((size_t)w * h * n, 2), out(w * h);
    cudaChannelFormatDesc c = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    cudaArray_t a, a1;
    cudaTextureObject_t o, o1, part;
    float *d_out;
    CHECK(cudaMalloc3DArray(&a, &c, make_cudaExtent(w, h, n), cudaArrayLayered));
    fill(a, v, w, h, n);
    CHECK(cudaMalloc3DArray(&a1, &c, make_cudaExtent(w * h, 0, n), cudaArrayLayered));
    fill(a1, v, w * h, 1, n);
    CHECK(cudaMalloc(&d_out, w * h * sizeof(float)));
    cudaResourceDesc r = of(a), r1 = of(a1);
    cudaTextureDesc t = {}, t1 = {};
    cudaResourceViewDesc view = {};
    t.normalizedCoords = 1;
    t.filterMode = cudaFilterModeLinear;
    t.addressMode[0] = t.addressMode[1] = cudaAddressModeWrap;
    view.width = w;
    view.height = h;
    view.depth = n;
    view.firstLayer = 2;
    view.lastLayer = 3;
    CHECK(cudaCreateTextureObject(&o, &r, &t, NULL));
    CHECK(cudaCreateTextureObject(&part, &r, &t, &view));
    CHECK(cudaCreateTextureObject(&o1, &r1, &t1, NULL));
    for (int layer = 0; layer < n; layer++) {
        layered<<<dim3((w + 7) / 8, (h + 7) / 8), dim3(8, 8)>>>(o, d_out, w, h, layer);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(out.data(), d_out, w * h * sizeof(float), cudaMemcpyDeviceToHost));
        for (int i = 0; i < w * h; i++) // at the middle of texels; coordinates round a little
            if (std::fabs(out[i] - (-v[layer * w * h + i] + layer)) > 2.0f / 256)
                return work_fail(WORK, "layer %d, texel %d: %g", layer, i, out[i]);
        layered_1d<<<(w * h + 63) / 64, 64>>>(o1, d_out, w * h, layer);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(out.data(), d_out, w * h * sizeof(float), cudaMemcpyDeviceToHost));
        if (memcmp(out.data(), &v[layer * w * h], w * h * sizeof(float)))
            return work_fail(WORK, "1-D layer %d", layer);
    }
    layered<<<dim3((w + 7) / 8, (h + 7) / 8), dim3(8, 8)>>>(part, d_out, w, h, 1);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, w * h * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < w * h; i++)
        if (std::fabs(out[i] - (-v[3 * w * h + i] + 1)) > 2.0f / 256)
            return work_fail(WORK, "layer 1 of the view, texel %d: %g", i, out[i]);
    CHECK(cudaDestroyTextureObject(o));
    CHECK(cudaDestroyTextureObject(o1));
    CHECK(cudaDestroyTextureObject(part));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFreeArray(a1));
    CHECK(cudaFree(d_out));
    return 0;
}

static int cubes()
{
    const int w = 16, n = 2;
    std::vector<float> v = noise((size_t)w * w * 6 * n, 3), out(w * w * 6);
    cudaChannelFormatDesc c = cudaCreateChannelDesc<float>();
    cudaArray_t a, b;
    cudaTextureObject_t o, ol;
    float *d_out;
    CHECK(cudaMalloc3DArray(&a, &c, make_cudaExtent(w, w, 6), cudaArrayCubemap));
    fill(a, v, w, w, 6);
    CHECK(cudaMalloc3DArray(&b, &c, make_cudaExtent(w, w, 6 * n),
                            cudaArrayCubemap | cudaArrayLayered));
    fill(b, v, w, w, 6 * n);
    CHECK(cudaMalloc(&d_out, out.size() * sizeof(float)));
    cudaResourceDesc r = of(a), rl = of(b);
    cudaTextureDesc t = {};
    t.normalizedCoords = 1;
    CHECK(cudaCreateTextureObject(&o, &r, &t, NULL));
    CHECK(cudaCreateTextureObject(&ol, &rl, &t, NULL));
    for (int layer = -1; layer < n; layer++) {
        cube<<<dim3(w / 8, w / 8), dim3(8, 8)>>>(layer < 0 ? o : ol, d_out, w, layer);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
        if (memcmp(out.data(), &v[(layer < 0 ? 0 : layer) * w * w * 6], out.size() * sizeof(float)))
            return work_fail(WORK, "cubemap, layer %d", layer);
    }
    CHECK(cudaDestroyTextureObject(o));
    CHECK(cudaDestroyTextureObject(ol));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFreeArray(b));
    CHECK(cudaFree(d_out));
    return 0;
}

static int mipmaps()
{
    const int w = 32, levels = 4, n = 400;
    cudaChannelFormatDesc c = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t m;
    std::vector<float4> at(n);
    std::vector<float> out(n);
    float4 *d_at;
    float *d_out;
    CHECK(cudaMallocMipmappedArray(&m, &c, make_cudaExtent(w, w, 0), levels));
    for (int i = 0; i < levels; i++) { // every level has one value: 0, 10, 20, 30
        cudaArray_t a;
        std::vector<float> v((w >> i) * (w >> i), 10.0f * i);
        CHECK(cudaGetMipmappedArrayLevel(&a, m, i));
        CHECK(cudaMemcpy2DToArray(a, 0, 0, v.data(), (w >> i) * 4, (w >> i) * 4, w >> i,
                                  cudaMemcpyHostToDevice));
    }
    for (int i = 0; i < n; i++)
        at[i] = make_float4(i / (float)n, 1 - i / (float)n, i * 4.0f / n - 0.3f, 0);
    CHECK(cudaMalloc(&d_at, n * sizeof(float4)));
    CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    CHECK(cudaMemcpy(d_at, at.data(), n * sizeof(float4), cudaMemcpyHostToDevice));
    for (int k = 0; k < 4; k++) {
        cudaResourceDesc r = {};
        cudaTextureDesc t = {};
        cudaResourceViewDesc view = {};
        cudaTextureObject_t o;
        r.resType = cudaResourceTypeMipmappedArray;
        r.res.mipmap.mipmap = m;
        t.normalizedCoords = 1;
        t.filterMode = cudaFilterModeLinear;
        t.mipmapFilterMode = k & 1 ? cudaFilterModeLinear : cudaFilterModePoint;
        t.addressMode[0] = t.addressMode[1] = cudaAddressModeWrap;
        t.maxMipmapLevelClamp = 2;
        view.width = view.height = w;
        view.firstMipmapLevel = 1;
        view.lastMipmapLevel = 3;
        CHECK(cudaCreateTextureObject(&o, &r, &t, k & 2 ? &view : NULL));
        mipmapped<<<(n + 63) / 64, 64>>>(o, d_out, d_at, n);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
        CHECK(cudaDestroyTextureObject(o));
        for (int i = 0; i < n; i++) {
            float l = at[i].z < 0 ? 0 : at[i].z > 2 ? 2 : at[i].z, first = k & 2 ? 10 : 0;
            float near = std::fabs(l - std::floor(l) - 0.5f);
            float want = first + 10 * (k & 1 ? l : std::floor(l + 0.5f));
            // between levels the weight has 8 bits; halfway the nearest is either
            if (std::fabs(out[i] - want) > (k & 1 ? 10.0f / 256 : near < 0.01f ? 10.0f : 0))
                return work_fail(WORK, "mipmap case %d, level %g: %g, not %g", k, at[i].z, out[i],
                                 want);
        }
    }
    cudaResourceDesc r = {};
    cudaTextureDesc t = {};
    cudaTextureObject_t o;
    r.resType = cudaResourceTypeMipmappedArray;
    r.res.mipmap.mipmap = m;
    if (cudaCreateTextureObject(&o, &r, &t, NULL) != cudaErrorInvalidValue)
        return work_fail(WORK, "a mipmap with texel coordinates is not refused");
    (void)cudaGetLastError();
    CHECK(cudaFreeMipmappedArray(m));
    CHECK(cudaFree(d_at));
    CHECK(cudaFree(d_out));
    return 0;
}

int main(int argc, char **argv)
{
    long iterations = work_arg(argc, argv, 2, 1, 1000);
    int bad = 0;
    for (long i = 0; i < iterations && !bad; i++)
        bad = volumes() || layers() || cubes() || mipmaps();
    return bad ? 1 : work_pass(WORK);
}

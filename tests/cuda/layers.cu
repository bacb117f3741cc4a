// SPDX-License-Identifier: Apache-2.0
// Uses textures of other shapes: layers, cube maps, three dimensions, linear memory, pitched
// memory, gathers, mipmap levels. Fails if a value differs from the CPU's.
#define WORK "layers"
#include <math.h>
#include "work.cuh"

enum { N = 32, LAYERS = 5 };

__global__ void layered(float *out, cudaTextureObject_t t, int layer)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[(layer * N + y) * N + x] =
        -tex2DLayered<float>(t, (x + 0.5f) / N, (y + 0.5f) / N, layer) + layer;
}
__global__ void cubemap(float *out, cudaTextureObject_t t, int face)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = (x + 0.5f) / N * 2 - 1, v = (y + 0.5f) / N * 2 - 1, cx, cy, cz;
    switch (face) {
    case 0:
        cx = 1, cy = -v, cz = -u;
        break;
    case 1:
        cx = -1, cy = -v, cz = u;
        break;
    case 2:
        cx = u, cy = 1, cz = v;
        break;
    case 3:
        cx = u, cy = -1, cz = -v;
        break;
    case 4:
        cx = u, cy = -v, cz = 1;
        break;
    default:
        cx = -u, cy = -v, cz = -1;
        break;
    }
    out[(face * N + y) * N + x] = texCubemap<float>(t, cx, cy, cz);
}
__global__ void volume(float *out, cudaTextureObject_t t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % N, y = i / N % N, z = i / N / N;
    out[i] = tex3D<float>(t, x + 0.75f, y + 0.5f, z + 1.0f);
}
__global__ void linear(int *out, cudaTextureObject_t t, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1Dfetch<int>(t, n - 1 - i) + 2 * tex1Dfetch<int>(t, n + i); // the second: outside
}
__global__ void pitched(uchar4 *out, float4 *as_floats, cudaTextureObject_t raw,
                        cudaTextureObject_t normal)
{
    int x = threadIdx.x, y = blockIdx.x;
    out[y * N + x] = tex2D<uchar4>(raw, x - 2, y + 1); // clamped
    as_floats[y * N + x] = tex2D<float4>(normal, x + 0.5f, y + 0.5f);
}
__global__ void gathers(float4 *out, cudaTextureObject_t t)
{
    out[threadIdx.y * N + threadIdx.x] =
        tex2Dgather<float4>(t, threadIdx.x + 1.0f, threadIdx.y + 1.0f);
}
__global__ void levels(float *out, cudaTextureObject_t t)
{
    out[threadIdx.x] = tex2DLod<float>(t, 0.5f, 0.5f, threadIdx.x * 0.25f);
}

static cudaTextureObject_t texture_of(cudaArray_t array, cudaTextureFilterMode filter,
                                      bool normalised)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc how = {};
    for (int k = 0; k < 3; k++)
        how.addressMode[k] = normalised ? cudaAddressModeWrap : cudaAddressModeClamp;
    how.filterMode = filter;
    how.normalizedCoords = normalised;
    cudaTextureObject_t t;
    CHECK(cudaCreateTextureObject(&t, &resource, &how, NULL));
    return t;
}
static cudaArray_t array_of(const float *data, int depth, unsigned flags)
{
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CHECK(cudaMalloc3DArray(&array, &channel, make_cudaExtent(N, N, depth), flags));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr((void *)data, N * sizeof(float), N, N);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(N, N, depth ? depth : 1);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    return array;
}
static int different(const char *what, const float *got, const float *want, int n, float tolerance)
{
    for (int i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= tolerance))
            return work_fail(WORK, "%s: element %d is %g, not %g", what, i, got[i], want[i]);
    return 0;
}

int main(void)
{
    const int count = N * N * N;
    float *data = (float *)work_alloc(count * sizeof(float)), *d,
          *got = (float *)work_alloc(count * sizeof(float)),
          *want = (float *)work_alloc(count * sizeof(float));
    dim3 block(8, 8), grid(N / 8, N / 8);
    CHECK(cudaMalloc(&d, count * sizeof(float)));
    for (int i = 0; i < count; i++)
        data[i] = (float)(work_random(i) % 4096) / 64;

    cudaArray_t array = array_of(data, LAYERS, cudaArrayLayered);
    cudaTextureObject_t t = texture_of(array, cudaFilterModeLinear, true);
    for (int k = 0; k < LAYERS; k++)
        layered<<<grid, block>>>(d, t, k);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got, d, N * N * LAYERS * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N * N * LAYERS; i++)
        want[i] = -data[i] + i / (N * N);
    if (different("layers", got, want, N * N * LAYERS, 1e-3f))
        return 1;
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(array));

    array = array_of(data, 6, cudaArrayCubemap);
    t = texture_of(array, cudaFilterModeLinear, true);
    for (int k = 0; k < 6; k++)
        cubemap<<<grid, block>>>(d, t, k);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got, d, N * N * 6 * sizeof(float), cudaMemcpyDeviceToHost));
    if (different("cube", got, data, N * N * 6, 1e-3f))
        return 1;
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(array));

    array = array_of(data, N, 0);
    t = texture_of(array, cudaFilterModeLinear, false);
    volume<<<count / 256, 256>>>(d, t);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got, d, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++) {
        int x = i % N, x1 = x + 1 < N ? x + 1 : x, y = i / N % N, z = i / N / N,
            z1 = z + 1 < N ? z + 1 : z;
#define AT(x, z) data[((z)*N + y) * N + (x)]
        want[i] = 0.75f * (0.5f * AT(x, z) + 0.5f * AT(x, z1)) +
                  0.25f * (0.5f * AT(x1, z) + 0.5f * AT(x1, z1));
    }
    if (different("volume", got, want, count, 1e-3f))
        return 1;
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(array));

    // linear memory: integers, and zero outside
    enum { LINEAR = 1000, USED = 768 };
    int *ints = (int *)work_alloc(LINEAR * sizeof(int)), *di,
        *gi = (int *)work_alloc(LINEAR * sizeof(int));
    for (int i = 0; i < LINEAR; i++)
        ints[i] = (int)work_random(i);
    CHECK(cudaMalloc(&di, LINEAR * sizeof(int)));
    CHECK(cudaMemcpy(di, ints, LINEAR * sizeof(int), cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = di;
    resource.res.linear.desc = cudaCreateChannelDesc<int>();
    resource.res.linear.sizeInBytes = USED * sizeof(int);
    cudaTextureDesc how = {};
    CHECK(cudaCreateTextureObject(&t, &resource, &how, NULL));
    linear<<<USED / 256, 256>>>((int *)d, t, USED);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(gi, d, USED * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < USED; i++)
        if (gi[i] != ints[USED - 1 - i])
            return work_fail(WORK, "linear memory: element %d is %d, not %d", i, gi[i],
                             ints[USED - 1 - i]);
    CHECK(cudaDestroyTextureObject(t));

    // pitched memory
    size_t pitch;
    uchar4 *dp, *pixels = (uchar4 *)work_alloc(N * N * 4), *gp = (uchar4 *)work_alloc(N * N * 4);
    for (int i = 0; i < N * N; i++) {
        unsigned v = (unsigned)work_random(i + 99);
        memcpy(&pixels[i], &v, 4);
    }
    CHECK(cudaMallocPitch(&dp, &pitch, N * 4, N));
    CHECK(cudaMemcpy2D(dp, pitch, pixels, N * 4, N * 4, N, cudaMemcpyHostToDevice));
    resource = cudaResourceDesc{};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = dp;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    resource.res.pitch2D.width = resource.res.pitch2D.height = N;
    resource.res.pitch2D.pitchInBytes = pitch;
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t normal;
    CHECK(cudaCreateTextureObject(&t, &resource, &how, NULL));
    how.readMode = cudaReadModeNormalizedFloat;
    how.filterMode = cudaFilterModeLinear;
    CHECK(cudaCreateTextureObject(&normal, &resource, &how, NULL));
    float4 *df;
    CHECK(cudaMalloc(&df, N * N * sizeof(float4)));
    pitched<<<N, N>>>((uchar4 *)d, df, t, normal);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(gp, d, N * N * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(got, df, N * N * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N * N; i++) {
        int x = i % N - 2, y = i / N + 1;
        uchar4 p = pixels[(y < N ? y : N - 1) * N + (x > 0 ? x : 0)];
        if (memcmp(&p, &gp[i], 4) != 0)
            return work_fail(WORK, "pitched memory: element %d", i);
        for (int k = 0; k < 4; k++)
            want[i * 4 + k] = ((unsigned char *)&pixels[i])[k] / 255.0f;
    }
    if (different("pitched memory as floats", got, want, N * N * 4, 1e-6f))
        return 1;
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaDestroyTextureObject(normal));

    // gathers: lower left, lower right, upper right, upper left
    array = array_of(data, 0, cudaArrayTextureGather);
    t = texture_of(array, cudaFilterModePoint, false);
    gathers<<<1, dim3(N, N)>>>(df, t);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got, df, N * N * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N * N; i++) {
        int x = i % N, y = i / N, x1 = x + 1 < N ? x + 1 : x, y1 = y + 1 < N ? y + 1 : y;
        float v[4] = {data[y1 * N + x], data[y1 * N + x1], data[y * N + x1], data[y * N + x]};
        memcpy(&want[i * 4], v, sizeof v);
    }
    if (different("gather", got, want, N * N * 4, 0))
        return 1;
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(array));

    // mipmap levels, each of one value
    cudaMipmappedArray_t mip;
    cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
    enum { LEVELS = 4 };
    CHECK(cudaMallocMipmappedArray(&mip, &channel, make_cudaExtent(N, N, 0), LEVELS));
    for (int k = 0; k < LEVELS; k++) {
        cudaArray_t level;
        for (int i = 0; i < N * N; i++)
            data[i] = 10.0f * k;
        CHECK(cudaGetMipmappedArrayLevel(&level, mip, k));
        CHECK(cudaMemcpy2DToArray(level, 0, 0, data, (N >> k) * sizeof(float),
                                  (N >> k) * sizeof(float), N >> k, cudaMemcpyHostToDevice));
    }
    resource = cudaResourceDesc{};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = mip;
    how = cudaTextureDesc{};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeWrap;
    how.filterMode = how.mipmapFilterMode = cudaFilterModeLinear;
    how.normalizedCoords = 1;
    how.maxMipmapLevelClamp = LEVELS - 1;
    CHECK(cudaCreateTextureObject(&t, &resource, &how, NULL));
    levels<<<1, 32>>>(d, t);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got, d, 32 * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++)
        want[i] = fminf(10 * 0.25f * i, 10.0f * (LEVELS - 1));
    if (different("mipmap levels", got, want, 32, 1e-3f))
        return 1;
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeMipmappedArray(mip));
    CHECK(cudaFree(d));
    CHECK(cudaFree(df));
    CHECK(cudaFree(di));
    CHECK(cudaFree(dp));
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Uses surfaces: a kernel writes an array that another one reads as a texture; layers, three
// dimensions, faces of a cube. Fails if a value is wrong, also outside of the surface.
#define WORK "surfaces"
#include "work.cuh"

enum { W = 48, H = 20, D = 3 };

__global__ void write_float(cudaSurfaceObject_t s)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < W && y < H)
        surf2Dwrite((float)(x * 100 + y), s, x * sizeof(float), y);
}
__global__ void read_as_texture(float *out, cudaTextureObject_t t)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < W && y < H)
        out[y * W + x] = tex2D<float>(t, x + 0.5f, y + 0.5f);
}
__global__ void shapes(cudaSurfaceObject_t layers, cudaSurfaceObject_t volume,
                       cudaSurfaceObject_t cube, int *errors)
{
    int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
    uchar4 p = make_uchar4(x, y, z, x ^ y);
    surf2DLayeredwrite(p, layers, x * 4, y, z);
    surf3Dwrite((short)(x + 32 * y + 1024 * z), volume, x * 2, y, z);
    if (y < W)
        surfCubemapwrite((unsigned char)(x + y + z), cube, x, y, z);
    __syncthreads();
    int other = W - 1 - x;
    uchar4 q = surf2DLayeredread<uchar4>(layers, other * 4, y, z);
    if (q.x != other || q.y != y || q.z != z || q.w != (other ^ y))
        atomicAdd(errors, 1);
    if (surf3Dread<short>(volume, other * 2, y, z) != (short)(other + 32 * y + 1024 * z))
        atomicAdd(errors, 1);
    if (surfCubemapread<unsigned char>(cube, other, y, z) != (unsigned char)(other + y + z))
        atomicAdd(errors, 1);
}
__global__ void outside(cudaSurfaceObject_t s, float *out)
{
    // .zero reads zero and does not write; .clamp reads and writes the nearest
    out[0] = surf2Dread<float>(s, -4, 3, cudaBoundaryModeZero);
    out[1] = surf2Dread<float>(s, W * 4, 3, cudaBoundaryModeClamp);
    out[2] = surf2Dread<float>(s, 8, H + 7, cudaBoundaryModeClamp);
    surf2Dwrite(-1.0f, s, 4 * W + 4, 5, cudaBoundaryModeZero);
    surf2Dwrite(-2.0f, s, -100, -100, cudaBoundaryModeClamp);
    out[3] = surf2Dread<float>(s, 0, 0);
    float2 two = surf2Dread<float2>(s, 8, 1);
    out[4] = two.x;
    out[5] = two.y;
}
__global__ void trap(cudaSurfaceObject_t s)
{
    surf2Dwrite(1.0f, s, 0, H);
}

static cudaSurfaceObject_t surface_of(cudaArray_t array)
{
    cudaResourceDesc resource = {};
    cudaSurfaceObject_t s;
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    CHECK(cudaCreateSurfaceObject(&s, &resource));
    return s;
}

int main(void)
{
    cudaChannelFormatDesc floats = cudaCreateChannelDesc<float>(),
                          pixels = cudaCreateChannelDesc<uchar4>(),
                          shorts = cudaCreateChannelDesc<short>(),
                          bytes = cudaCreateChannelDesc<unsigned char>();
    cudaArray_t plain, layers, volume, cube;
    float *d, got[W * H];
    int *errors, n_errors;
    CHECK(cudaMalloc(&d, sizeof got));
    CHECK(cudaMalloc(&errors, sizeof(int)));
    CHECK(cudaMemset(errors, 0, sizeof(int)));
    CHECK(cudaMallocArray(&plain, &floats, W, H, cudaArraySurfaceLoadStore));
    CHECK(cudaMalloc3DArray(&layers, &pixels, make_cudaExtent(W, H, D),
                            cudaArrayLayered | cudaArraySurfaceLoadStore));
    CHECK(cudaMalloc3DArray(&volume, &shorts, make_cudaExtent(W, H, D), cudaArraySurfaceLoadStore));
    CHECK(cudaMalloc3DArray(&cube, &bytes, make_cudaExtent(W, W, 6),
                            cudaArrayCubemap | cudaArraySurfaceLoadStore));
    cudaSurfaceObject_t s = surface_of(plain), sl = surface_of(layers), sv = surface_of(volume),
                        sc = surface_of(cube);
    dim3 block(16, 16), grid(W / 16, (H + 15) / 16);

    write_float<<<grid, block>>>(s);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = plain;
    cudaTextureDesc how = {};
    how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
    cudaTextureObject_t t;
    CHECK(cudaCreateTextureObject(&t, &resource, &how, NULL));
    read_as_texture<<<grid, block>>>(d, t);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got, d, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < W * H; i++)
        if (got[i] != (float)(i % W * 100 + i / W))
            return work_fail(WORK, "element %d is %g", i, got[i]);

    shapes<<<dim3(H, D), W>>>(sl, sv, sc, errors);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(&n_errors, errors, sizeof(int), cudaMemcpyDeviceToHost));
    if (n_errors)
        return work_fail(WORK, "%d elements of layers, volume or cube are wrong", n_errors);

    outside<<<1, 1>>>(s, d);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(got, d, 6 * sizeof(float), cudaMemcpyDeviceToHost));
    const float want[] = {0, (W - 1) * 100 + 3, 200 + H - 1, -2, 201, 301};
    for (int i = 0; i < 6; i++)
        if (got[i] != want[i])
            return work_fail(WORK, "outside: value %d is %g, not %g", i, got[i], want[i]);
    CHECK(cudaMemcpy2DFromArray(got, W * sizeof(float), plain, 0, 0, W * sizeof(float), H,
                                cudaMemcpyDeviceToHost));
    for (int i = 0; i < W * H; i++)
        if (got[i] != (i ? (float)(i % W * 100 + i / W) : -2))
            return work_fail(WORK, "copied back: element %d is %g", i, got[i]);

    CHECK(cudaDestroySurfaceObject(sl));
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(layers));
    CHECK(cudaFreeArray(volume));
    CHECK(cudaFreeArray(cube));
    // the default mode traps
    trap<<<1, 1>>>(s);
    cudaError_t e = cudaDeviceSynchronize();
    if (e == cudaSuccess)
        return work_fail(WORK, "a write outside was not noticed");
    return work_pass(WORK);
}

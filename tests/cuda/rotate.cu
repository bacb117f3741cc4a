// SPDX-License-Identifier: Apache-2.0
// Turns an image around its middle by linear filtering of a texture with normalised, wrapped
// coordinates: floats, and bytes that are read as floats. Fails if a pixel differs from the CPU's
// answer, which follows the CUDA C++ Programming Guide ("Linear Filtering").
#define WORK "rotate"
#include <math.h>
#include "work.cuh"

__global__ void turn(float *out, int n, float sine, float cosine, cudaTextureObject_t image)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n)
        return;
    float u = (x + 0.5f) / n - 0.5f, v = (y + 0.5f) / n - 0.5f;
    out[y * n + x] =
        tex2D<float>(image, u * cosine - v * sine + 0.5f, v * cosine + u * sine + 0.5f);
}

static int wrapped(int i, int n)
{
    return (i % n + n) % n;
}
static double cpu(const float *image, int n, double u, double v)
{
    double x = u * n - 0.5, y = v * n - 0.5, i = floor(x), j = floor(y), a = x - i, b = y - j;
    const float *r0 = image + wrapped((int)j, n) * n, *r1 = image + wrapped((int)j + 1, n) * n;
    int c0 = wrapped((int)i, n), c1 = wrapped((int)i + 1, n);
    return (1 - a) * (1 - b) * r0[c0] + a * (1 - b) * r0[c1] + (1 - a) * b * r1[c0] +
           a * b * r1[c1];
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 256, 2048);
    long iterations = work_arg(argc, argv, 2, 1, 100000);
    size_t bytes = sizeof(float) * n * n;
    float *image = (float *)work_alloc(bytes), *out = (float *)work_alloc(bytes), *d;
    unsigned char *pixels = (unsigned char *)work_alloc((size_t)n * n);
    CHECK(cudaMalloc(&d, bytes));
    for (int as_bytes = 0; as_bytes < 2; as_bytes++) {
        for (int i = 0; i < n * n; i++) {
            pixels[i] = (unsigned char)(work_random(i) & 255);
            image[i] = pixels[i] / 255.0f;
        }
        cudaChannelFormatDesc channel =
            as_bytes ? cudaCreateChannelDesc<unsigned char>() : cudaCreateChannelDesc<float>();
        cudaArray_t array;
        size_t row = as_bytes ? n : n * sizeof(float);
        CHECK(cudaMallocArray(&array, &channel, n, n));
        CHECK(cudaMemcpy2DToArray(array, 0, 0, as_bytes ? (void *)pixels : (void *)image, row, row,
                                  n, cudaMemcpyHostToDevice));
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array;
        cudaTextureDesc how = {};
        how.addressMode[0] = how.addressMode[1] = cudaAddressModeWrap;
        how.filterMode = cudaFilterModeLinear;
        how.readMode = as_bytes ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
        how.normalizedCoords = 1;
        cudaTextureObject_t texture;
        CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
        for (long it = 0; it < iterations; it++) {
            float angle = 0.5f + 0.3f * it, sine = sinf(angle), cosine = cosf(angle);
            dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
            turn<<<grid, block>>>(d, n, sine, cosine, texture);
            CHECK_LAUNCH();
            CHECK(cudaMemcpy(out, d, bytes, cudaMemcpyDeviceToHost));
            double worst = 0, sum = 0;
            for (int y = 0; y < n; y++)
                for (int x = 0; x < n; x++) {
                    double u = (x + 0.5) / n - 0.5, v = (y + 0.5) / n - 0.5,
                           want = cpu(image, n, u * cosine - v * sine + 0.5,
                                      v * cosine + u * sine + 0.5),
                           off = fabs(out[y * n + x] - want);
                    worst = fmax(worst, off);
                    sum += off;
                }
            // weights have 8 fraction bits: half a step in each direction, and the coordinates' rounding
            if (worst > 0.006 || sum / n / n > 0.001)
                return work_fail(WORK, "%s: off by %g at worst, %g on average",
                                 as_bytes ? "bytes" : "floats", worst, sum / n / n);
        }
        CHECK(cudaDestroyTextureObject(texture));
        CHECK(cudaFreeArray(array));
    }
    CHECK(cudaFree(d));
    return work_pass(WORK);
}

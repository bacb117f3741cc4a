// SPDX-License-Identifier: Apache-2.0
// Uses two-dimensional textures of arrays and of pitched memory: every address mode, point and
// linear filters, normalised and texel coordinates, element types and normalised floats. Fails if a
// value differs from the rules of the programming guide, which are written out here.
#include <cmath>
#include <vector>
#include "work.cuh"
#define WORK "texture2d"

enum { W = 37, H = 23 };

__global__ void read(cudaTextureObject_t t, float *out, const float2 *at, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2D<float>(t, at[i].x, at[i].y);
}
__global__ void read4(cudaTextureObject_t t, float4 *out, const float2 *at, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2D<float4>(t, at[i].x, at[i].y);
}
__global__ void read_int(cudaTextureObject_t t, int *out, const float2 *at, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2D<int>(t, at[i].x, at[i].y);
}
__global__ void gather(cudaTextureObject_t t, float4 *out, const float2 *at, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2Dgather<float4>(t, at[i].x, at[i].y, 0);
}
// As in many a program: shift an image by reading through a texture with wrapped coordinates.
__global__ void shift(float *out, size_t pitch, int w, int h, int sx, int sy, cudaTextureObject_t t)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h)
        out[y * pitch + x] = tex2D<float>(t, (x + sx) / (float)w, (y + sy) / (float)h);
}

static int place(int i, int n, int mode, bool *inside)
{
    *inside = true;
    switch (mode) {
    case cudaAddressModeWrap:
        return (i % n + n) % n;
    case cudaAddressModeMirror:
        i = (i % (2 * n) + 2 * n) % (2 * n);
        return i < n ? i : 2 * n - 1 - i;
    case cudaAddressModeBorder:
        *inside = i >= 0 && i < n;
        return *inside ? i : 0;
    default:
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    }
}

static float texel(const std::vector<float> &v, int x, int y, int mx, int my, float border)
{
    bool a, b;
    int px = place(x, W, mx, &a), py = place(y, H, my, &b);
    return a && b ? v[py * W + px] : border;
}

static float expected(const std::vector<float> &v, float x, float y, const cudaTextureDesc &d)
{
    int mx = d.addressMode[0], my = d.addressMode[1];
    double u = x, w = y;
    if (d.normalizedCoords) {
        u *= W;
        w *= H;
    }
    if (d.filterMode == cudaFilterModePoint)
        return texel(v, (int)std::floor(u), (int)std::floor(w), mx, my, d.borderColor[0]);
    double ub = u - 0.5, wb = w - 0.5, a = ub - std::floor(ub), b = wb - std::floor(wb);
    int i = (int)std::floor(ub), j = (int)std::floor(wb);
    return (float)((1 - a) * (1 - b) * texel(v, i, j, mx, my, d.borderColor[0]) +
                   a * (1 - b) * texel(v, i + 1, j, mx, my, d.borderColor[0]) +
                   (1 - a) * b * texel(v, i, j + 1, mx, my, d.borderColor[0]) +
                   a * b * texel(v, i + 1, j + 1, mx, my, d.borderColor[0]));
}

static int address_modes(const std::vector<float> &v, cudaResourceDesc &r, const char *what)
{
    const int n = 2000;
    std::vector<float2> at(n);
    std::vector<float> out(n);
    float2 *d_at;
    float *d_out;
    CHECK(cudaMalloc(&d_at, n * sizeof(float2)));
    CHECK(cudaMalloc(&d_out, n * sizeof(float)));
    for (int c = 0; c < 4 * 2 * 2; c++) {
        cudaTextureDesc d = {};
        cudaTextureObject_t t;
        d.addressMode[0] = (cudaTextureAddressMode)(c & 3);
        d.addressMode[1] = (cudaTextureAddressMode)((c + 1) & 3);
        d.filterMode = c & 4 ? cudaFilterModeLinear : cudaFilterModePoint;
        d.normalizedCoords = !!(c & 8);
        d.borderColor[0] = 0.25f;
        for (int i = 0; i < n; i++) {
            unsigned k = i * 2654435761u;
            float x = (float)((int)(k >> 12 & 0x3fff) - 0x1800) / 256.0f + 1.0f / 512,
                  y = (float)((int)(k >> 18 & 0x1fff) - 0x0c00) / 256.0f + 1.0f / 512;
            at[i] = d.normalizedCoords ? make_float2(x / W, y / H) : make_float2(x, y);
        }
        CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
        CHECK(cudaMemcpy(d_at, at.data(), n * sizeof(float2), cudaMemcpyHostToDevice));
        read<<<(n + 127) / 128, 128>>>(t, d_out, d_at, n);
        CHECK_LAUNCH();
        CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
        CHECK(cudaDestroyTextureObject(t));
        if (!d.normalizedCoords) // then these two are clamped
            for (int k = 0; k < 2; k++)
                if (d.addressMode[k] != cudaAddressModeBorder)
                    d.addressMode[k] = cudaAddressModeClamp;
        for (int i = 0; i < n; i++) {
            float want = expected(v, at[i].x, at[i].y, d);
            // weights have 8 bits; texels lie in [0, 1)
            if (!(std::fabs(out[i] - want) <= (c & 4 ? 2.5f / 256 : 0)))
                return work_fail(WORK, "%s, case %d: (%g, %g) is %g, not %g", what, c, at[i].x,
                                 at[i].y, out[i], want);
        }
    }
    CHECK(cudaFree(d_at));
    CHECK(cudaFree(d_out));
    return 0;
}

static int formats()
{
    const int n = W * H;
    std::vector<uchar4> v(n);
    std::vector<short> s(n);
    std::vector<float2> at(n);
    std::vector<float4> out(n);
    std::vector<int> ints(n);
    for (int i = 0; i < n; i++) {
        v[i] = make_uchar4(i * 7, i * 13, 255 - i, i % 2 ? 255 : 0);
        s[i] = (short)(i * 77 - 32768);
        at[i] = make_float2((float)(i % W), (float)(i / W));
    }
    cudaChannelFormatDesc c = cudaCreateChannelDesc<uchar4>(), c1 = cudaCreateChannelDesc<short>();
    cudaArray_t a, b;
    cudaTextureObject_t t;
    cudaResourceDesc r = {};
    cudaTextureDesc d = {};
    float2 *d_at;
    void *d_out;
    CHECK(cudaMalloc(&d_at, n * sizeof(float2)));
    CHECK(cudaMalloc(&d_out, n * sizeof(float4)));
    CHECK(cudaMemcpy(d_at, at.data(), n * sizeof(float2), cudaMemcpyHostToDevice));
    CHECK(cudaMallocArray(&a, &c, W, H, cudaArrayTextureGather));
    CHECK(cudaMemcpy2DToArray(a, 0, 0, v.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    CHECK(cudaMallocArray(&b, &c1, W, H));
    CHECK(cudaMemcpy2DToArray(b, 0, 0, s.data(), W * 2, W * 2, H, cudaMemcpyHostToDevice));
    r.resType = cudaResourceTypeArray;
    r.res.array.array = a;
    d.readMode = cudaReadModeNormalizedFloat;
    CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
    read4<<<(n + 63) / 64, 64>>>(t, (float4 *)d_out, d_at, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (std::fabs(out[i].x - v[i].x / 255.0f) > 1e-6f ||
            std::fabs(out[i].y - v[i].y / 255.0f) > 1e-6f ||
            std::fabs(out[i].z - v[i].z / 255.0f) > 1e-6f || out[i].w != (i % 2 ? 1.0f : 0.0f))
            return work_fail(WORK, "normalised uchar4 %d: %g %g %g %g", i, out[i].x, out[i].y,
                             out[i].z, out[i].w);
    gather<<<(n + 63) / 64, 64>>>(t, (float4 *)d_out, d_at, n); // at corners: four texels around
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float4), cudaMemcpyDeviceToHost));
    for (int y = 1; y < H; y++)
        for (int x = 1; x < W; x++) {
            float4 o = out[y * W + x];
            const float want[] = {v[y * W + x - 1].x / 255.0f, v[y * W + x].x / 255.0f,
                                  v[(y - 1) * W + x].x / 255.0f, v[(y - 1) * W + x - 1].x / 255.0f};
            if (std::fabs(o.x - want[0]) > 1e-6f || std::fabs(o.y - want[1]) > 1e-6f ||
                std::fabs(o.z - want[2]) > 1e-6f || std::fabs(o.w - want[3]) > 1e-6f)
                return work_fail(WORK, "gather at %d, %d", x, y);
        }
    CHECK(cudaDestroyTextureObject(t));
    r.res.array.array = b;
    d.readMode = cudaReadModeElementType;
    CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
    read_int<<<(n + 63) / 64, 64>>>(t, (int *)d_out, d_at, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(ints.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (ints[i] != s[i])
            return work_fail(WORK, "short %d: %d, not %d", i, ints[i], s[i]);
    CHECK(cudaDestroyTextureObject(t));
    // outside: the border's colour, which for integers is the bits of the float
    const int color = -12345;
    memcpy(&d.borderColor[0], &color, sizeof color);
    d.addressMode[0] = d.addressMode[1] = cudaAddressModeBorder;
    for (int i = 0; i < n; i++)
        at[i].x += 2;
    CHECK(cudaMemcpy(d_at, at.data(), n * sizeof(float2), cudaMemcpyHostToDevice));
    CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
    read_int<<<(n + 63) / 64, 64>>>(t, (int *)d_out, d_at, n);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(ints.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (ints[i] != (i % W + 2 < W ? s[i + 2] : color))
            return work_fail(WORK, "short with border %d: %d", i, ints[i]);
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFreeArray(b));
    CHECK(cudaFree(d_at));
    CHECK(cudaFree(d_out));
    return 0;
}

static int shifted(cudaResourceDesc &r, const std::vector<float> &v, const char *what)
{
    cudaTextureDesc d = {};
    cudaTextureObject_t t;
    float *out;
    size_t pitch;
    std::vector<float> got(W * H);
    d.normalizedCoords = 1;
    d.filterMode = cudaFilterModePoint;
    d.addressMode[0] = d.addressMode[1] = cudaAddressModeWrap;
    d.readMode = cudaReadModeElementType;
    CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
    CHECK(cudaMallocPitch(&out, &pitch, W * sizeof(float), H));
    CHECK(cudaMemset2D(out, pitch, 0, W * sizeof(float), H));
    shift<<<dim3((W + 15) / 16, (H + 15) / 16), dim3(16, 16)>>>(out, pitch / sizeof(float), W, H, 5,
                                                                9, t);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy2D(got.data(), W * sizeof(float), out, pitch, W * sizeof(float), H,
                       cudaMemcpyDeviceToHost));
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            // (x + 5) / W * W may round to just below the texel's edge: either neighbour is right
            float g = got[y * W + x];
            bool found = false;
            for (int dy = -1; dy <= 0; dy++)
                for (int dx = -1; dx <= 0; dx++)
                    found |= g == v[(y + 9 + dy + H) % H * W + (x + 5 + dx + W) % W];
            if (!found)
                return work_fail(WORK, "%s: shifted (%d, %d) is %g", what, x, y, g);
        }
    CHECK(cudaDestroyTextureObject(t));
    CHECK(cudaFree(out));
    return 0;
}

int main(int argc, char **argv)
{
    long iterations = work_arg(argc, argv, 2, 1, 1000);
    std::vector<float> v(W * H);
    cudaChannelFormatDesc c = cudaCreateChannelDesc<float>();
    cudaArray_t a;
    float *linear;
    size_t pitch;
    for (int i = 0; i < W * H; i++)
        v[i] = (float)((i * 2654435761u) >> 8 & 0xffff) / 65536.0f;
    CHECK(cudaMallocArray(&a, &c, W, H));
    CHECK(cudaMemcpy2DToArray(a, 0, 0, v.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    CHECK(cudaMallocPitch(&linear, &pitch, W * 4, H));
    CHECK(cudaMemcpy2D(linear, pitch, v.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    cudaResourceDesc of_array = {}, of_pitch = {};
    of_array.resType = cudaResourceTypeArray;
    of_array.res.array.array = a;
    of_pitch.resType = cudaResourceTypePitch2D;
    of_pitch.res.pitch2D.devPtr = linear;
    of_pitch.res.pitch2D.desc = c;
    of_pitch.res.pitch2D.width = W;
    of_pitch.res.pitch2D.height = H;
    of_pitch.res.pitch2D.pitchInBytes = pitch;
    int bad = 0;
    for (long i = 0; i < iterations && !bad; i++)
        bad = address_modes(v, of_array, "array") || address_modes(v, of_pitch, "pitched memory") ||
              shifted(of_array, v, "array") || shifted(of_pitch, v, "pitched memory") || formats();
    CHECK(cudaFreeArray(a));
    CHECK(cudaFree(linear));
    return bad ? 1 : work_pass(WORK);
}

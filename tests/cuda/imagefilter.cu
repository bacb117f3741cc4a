// SPDX-License-Identifier: Apache-2.0
// Filters images as graphics samples do, without the graphics: a bilateral filter that reads pixels
// and its weights through textures, an image turned around its middle, a volume filtered through a
// texture into a surface, slice after slice. Fails if a pixel is too far from the CPU's.
#include <cmath>
#include <vector>
#include "work.cuh"
#define WORK "imagefilter"

__constant__ float gauss[64];

__device__ float closeness(float4 a, float4 b, float d)
{
    float m = (b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y) + (b.z - a.z) * (b.z - a.z);
    return __expf(-m / (2 * d * d));
}
__device__ unsigned pack(float4 c)
{
    c.x = __saturatef(fabsf(c.x));
    c.y = __saturatef(fabsf(c.y));
    c.z = __saturatef(fabsf(c.z));
    c.w = __saturatef(fabsf(c.w));
    return (unsigned)(c.w * 255.0f) << 24 | (unsigned)(c.z * 255.0f) << 16 |
           (unsigned)(c.y * 255.0f) << 8 | (unsigned)(c.x * 255.0f);
}
__global__ void bilateral(unsigned *out, int w, int h, float d, int r, cudaTextureObject_t t)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h)
        return;
    float sum = 0;
    float4 all = make_float4(0, 0, 0, 0), middle = tex2D<float4>(t, x, y);
    for (int i = -r; i <= r; i++)
        for (int j = -r; j <= r; j++) {
            float4 c = tex2D<float4>(t, x + j, y + i);
            float f = gauss[i + r] * gauss[j + r] * closeness(c, middle, d);
            sum += f;
            all.x += f * c.x;
            all.y += f * c.y;
            all.z += f * c.z;
            all.w += f * c.w;
        }
    out[y * w + x] = pack(make_float4(all.x / sum, all.y / sum, all.z / sum, all.w / sum));
}

static float host_closeness(const float *a, const float *b, float d)
{
    float m = 0;
    for (int k = 0; k < 3; k++)
        m += (b[k] - a[k]) * (b[k] - a[k]);
    return std::exp(-m / (2 * d * d));
}

static int bilateral_filter(int w, int h)
{
    const int r = 3;
    const float d = 0.1f;
    std::vector<uchar4> in(w * h);
    std::vector<unsigned> out(w * h);
    float weights[64] = {};
    uchar4 *d_in;
    unsigned *d_out;
    size_t pitch;
    for (int i = 0; i < w * h; i++) {
        unsigned k = i * 2654435761u >> 16;
        in[i] = make_uchar4(100 + k % 40, (i % w) * 255 / w, k / 64 % 256, 255);
    }
    for (int i = 0; i < 2 * r + 1; i++)
        weights[i] = std::exp(-(float)((i - r) * (i - r)) / (2 * 2.0f * 2.0f));
    CHECK(cudaMemcpyToSymbol(gauss, weights, sizeof weights));
    CHECK(cudaMallocPitch(&d_in, &pitch, w * 4, h));
    CHECK(cudaMemcpy2D(d_in, pitch, in.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&d_out, w * h * 4));
    cudaResourceDesc res = {};
    cudaTextureDesc t = {};
    cudaTextureObject_t o;
    res.resType = cudaResourceTypePitch2D;
    res.res.pitch2D.devPtr = d_in;
    res.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    res.res.pitch2D.width = w;
    res.res.pitch2D.height = h;
    res.res.pitch2D.pitchInBytes = pitch;
    t.filterMode = cudaFilterModePoint;
    t.addressMode[0] = t.addressMode[1] = cudaAddressModeWrap; // texel coordinates: clamps
    t.readMode = cudaReadModeNormalizedFloat;
    CHECK(cudaCreateTextureObject(&o, &res, &t, NULL));
    bilateral<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(d_out, w, h, d, r, o);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, w * h * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            float sum = 0, all[4] = {}, m[4];
            const uchar4 c = in[y * w + x];
            const unsigned char mm[] = {c.x, c.y, c.z, c.w};
            for (int k = 0; k < 4; k++)
                m[k] = mm[k] / 255.0f;
            for (int i = -r; i <= r; i++)
                for (int j = -r; j <= r; j++) {
                    int sx = x + j < 0 ? 0 : x + j >= w ? w - 1 : x + j,
                        sy = y + i < 0 ? 0 : y + i >= h ? h - 1 : y + i;
                    const uchar4 s = in[sy * w + sx];
                    const float v[] = {s.x / 255.0f, s.y / 255.0f, s.z / 255.0f, s.w / 255.0f};
                    float f = weights[i + r] * weights[j + r] * host_closeness(v, m, d);
                    sum += f;
                    for (int k = 0; k < 4; k++)
                        all[k] += f * v[k];
                }
            for (int k = 0; k < 4; k++) {
                int want = (int)(all[k] / sum * 255.0f), got = (int)(out[y * w + x] >> 8 * k & 255);
                if (std::abs(want - got) > 1)
                    return work_fail(WORK, "bilateral (%d, %d) channel %d: %d, not %d", x, y, k, got,
                                     want);
            }
        }
    CHECK(cudaDestroyTextureObject(o));
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
    return 0;
}

__global__ void turn(float *out, int w, int h, float theta, cudaTextureObject_t t)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = (float)x - (float)w / 2, v = (float)y - (float)h / 2;
    float tu = (u * cosf(theta) - v * sinf(theta)) / w + 0.5f;
    float tv = (v * cosf(theta) + u * sinf(theta)) / h + 0.5f;
    out[y * w + x] = tex2D<float>(t, tu, tv);
}

static int turned(int n)
{
    const float theta = 0.5f;
    std::vector<float> in(n * n), out(n * n);
    cudaChannelFormatDesc c = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    cudaArray_t a;
    float *d_out;
    for (int i = 0; i < n * n; i++)
        in[i] = 0.5f + 0.5f * std::sin(i % n * 0.2f) * std::cos(i / n * 0.15f);
    CHECK(cudaMallocArray(&a, &c, n, n));
    CHECK(cudaMemcpy2DToArray(a, 0, 0, in.data(), n * 4, n * 4, n, cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&d_out, n * n * 4));
    cudaResourceDesc res = {};
    cudaTextureDesc t = {};
    cudaTextureObject_t o;
    res.resType = cudaResourceTypeArray;
    res.res.array.array = a;
    t.normalizedCoords = 1;
    t.filterMode = cudaFilterModeLinear;
    t.addressMode[0] = t.addressMode[1] = cudaAddressModeWrap;
    CHECK(cudaCreateTextureObject(&o, &res, &t, NULL));
    turn<<<dim3(n / 8, n / 8), dim3(8, 8)>>>(d_out, n, n, theta, o);
    CHECK_LAUNCH();
    CHECK(cudaMemcpy(out.data(), d_out, n * n * 4, cudaMemcpyDeviceToHost));
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) {
            double u = x - n / 2.0, v = y - n / 2.0;
            double px = u * std::cos(theta) - v * std::sin(theta) + 0.5 * n - 0.5,
                   py = v * std::cos(theta) + u * std::sin(theta) + 0.5 * n - 0.5, fx = std::floor(px),
                   fy = std::floor(py), a1 = px - fx, b1 = py - fy;
            int i = ((int)fx % n + n) % n, j = ((int)fy % n + n) % n, i1 = (i + 1) % n,
                j1 = (j + 1) % n;
            double want = (1 - a1) * (1 - b1) * in[j * n + i] + a1 * (1 - b1) * in[j * n + i1] +
                          (1 - a1) * b1 * in[j1 * n + i] + a1 * b1 * in[j1 * n + i1];
            if (std::fabs(want - out[y * n + x]) > 0.01)
                return work_fail(WORK, "turned (%d, %d): %g, not %g", x, y, out[y * n + x], want);
        }
    CHECK(cudaDestroyTextureObject(o));
    CHECK(cudaFreeArray(a));
    CHECK(cudaFree(d_out));
    return 0;
}

__global__ void smooth(cudaTextureObject_t in, cudaSurfaceObject_t out, int w, int h, int d)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
        z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= w || y >= h || z >= d)
        return;
    float s = 0;
    for (int k = -1; k <= 1; k++)
        s += tex3D<float>(in, x + 0.5f + k, y + 0.5f, z + 0.5f) +
             tex3D<float>(in, x + 0.5f, y + 0.5f + k, z + 0.5f) +
             tex3D<float>(in, x + 0.5f, y + 0.5f, z + 0.5f + k);
    surf3Dwrite((unsigned char)(s / 9 * 255 + 0.5f), out, x, y, z);
}

static int volume(int w, int h, int d)
{
    std::vector<unsigned char> v((size_t)w * h * d), want, got(v.size());
    cudaChannelFormatDesc c = cudaCreateChannelDesc<unsigned char>();
    cudaExtent e = make_cudaExtent(w, h, d);
    cudaArray_t a[2];
    cudaTextureObject_t t[2];
    cudaSurfaceObject_t s[2];
    for (size_t i = 0; i < v.size(); i++)
        v[i] = (unsigned char)(i * 2654435761u >> 20);
    for (int k = 0; k < 2; k++) {
        cudaResourceDesc r = {};
        cudaTextureDesc td = {};
        CHECK(cudaMalloc3DArray(&a[k], &c, e, cudaArraySurfaceLoadStore));
        r.resType = cudaResourceTypeArray;
        r.res.array.array = a[k];
        td.readMode = cudaReadModeNormalizedFloat;
        for (int i = 0; i < 3; i++)
            td.addressMode[i] = cudaAddressModeClamp;
        CHECK(cudaCreateTextureObject(&t[k], &r, &td, NULL));
        CHECK(cudaCreateSurfaceObject(&s[k], &r));
    }
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(v.data(), w, w, h);
    p.dstArray = a[0];
    p.extent = e;
    p.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&p));
    want = v;
    for (int k = 0; k < 4; k++) {
        smooth<<<dim3((w + 7) / 8, (h + 7) / 8, (d + 3) / 4), dim3(8, 8, 4)>>>(t[k % 2], s[1 - k % 2],
                                                                              w, h, d);
        CHECK_LAUNCH();
    }
    cudaMemcpy3DParms q = {};
    q.srcArray = a[0];
    q.dstPtr = make_cudaPitchedPtr(got.data(), w, w, h);
    q.extent = e;
    q.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&q));
    for (int k = 0; k < 4; k++) {
        std::vector<unsigned char> from = want;
        for (int z = 0; z < d; z++)
            for (int y = 0; y < h; y++)
                for (int x = 0; x < w; x++) {
                    float sum = 0;
                    for (int j = -1; j <= 1; j++) {
                        int xs = x + j < 0 ? 0 : x + j >= w ? w - 1 : x + j,
                            ys = y + j < 0 ? 0 : y + j >= h ? h - 1 : y + j,
                            zs = z + j < 0 ? 0 : z + j >= d ? d - 1 : z + j;
                        sum += from[(z * h + y) * w + xs] / 255.0f +
                               from[(z * h + ys) * w + x] / 255.0f +
                               from[(zs * h + y) * w + x] / 255.0f;
                    }
                    want[(z * h + y) * w + x] = (unsigned char)(sum / 9 * 255 + 0.5f);
                }
    }
    for (size_t i = 0; i < v.size(); i++)
        if (std::abs((int)want[i] - (int)got[i]) > 2) // a rounding in each of four rounds
            return work_fail(WORK, "volume at %zu: %d, not %d", i, got[i], want[i]);
    for (int k = 0; k < 2; k++) {
        CHECK(cudaDestroyTextureObject(t[k]));
        CHECK(cudaDestroySurfaceObject(s[k]));
        CHECK(cudaFreeArray(a[k]));
    }
    return 0;
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 64, 1024) & ~7;
    long iterations = work_arg(argc, argv, 2, 1, 1000);
    int bad = 0;
    for (long i = 0; i < iterations && !bad; i++)
        bad = bilateral_filter(n, n / 2 + 3) || turned(n < 16 ? 16 : n) || volume(n / 2 + 1, 17, 9);
    return bad ? 1 : work_pass(WORK);
}

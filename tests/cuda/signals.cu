// SPDX-License-Identifier: Apache-2.0
// Computes transforms: 8x8 discrete cosine (a thread for each coefficient, and a thread for each
// row), fast Walsh in shared memory and across blocks, a Haar wavelet, a radix-2 FFT. Fails if one
// differs from its definition.
#include <math.h>
#include <vector>
#include "work.cuh"
#define WORK "signals"

__constant__ float cosines[64];

__global__ void dct(float *out, const float *in, int w, bool inverse)
{
    __shared__ float a[8][8], b[8][8];
    int x = threadIdx.x, y = threadIdx.y, at = (blockIdx.y * 8 + y) * w + blockIdx.x * 8 + x;
    a[y][x] = in[at];
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++)
        sum += inverse ? cosines[k * 8 + y] * a[k][x] : cosines[y * 8 + k] * a[k][x];
    b[y][x] = sum;
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++)
        sum += inverse ? b[y][k] * cosines[k * 8 + x] : b[y][k] * cosines[x * 8 + k];
    out[at] = sum;
}

__global__ void walsh_shared(float *data, int log2n)
{
    extern __shared__ float s[];
    const int n = 1 << log2n;
    float *d = data + (size_t)blockIdx.x * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        s[i] = d[i];
    for (int stride = 1; stride < n; stride *= 2) {
        __syncthreads();
        for (int p = threadIdx.x; p < n / 2; p += blockDim.x) {
            int lo = p & (stride - 1), i = ((p - lo) << 1) + lo;
            float a = s[i], b = s[i + stride];
            s[i] = a + b;
            s[i + stride] = a - b;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        d[i] = s[i];
}

__global__ void walsh_step(float *d, int stride)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x, lo = p & (stride - 1), i = ((p - lo) << 1) + lo;
    float a = d[i], b = d[i + stride];
    d[i] = a + b;
    d[i + stride] = a - b;
}

__global__ void haar(const float *in, float *averages, float *details, int half)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < half) {
        float2 v = reinterpret_cast<const float2 *>(in)[i];
        averages[i] = (v.x + v.y) * 0.70710678f;
        details[i] = (v.x - v.y) * 0.70710678f;
    }
}

__global__ void fft_step(double2 *d, int n, int half)
{
    int p = blockIdx.x * blockDim.x + threadIdx.x, k = p % half, i = (p / half) * 2 * half + k;
    if (p >= n / 2)
        return;
    double s, c;
    sincospi(-(double)k / half, &s, &c);
    double2 a = d[i], b = d[i + half], t = make_double2(b.x * c - b.y * s, b.x * s + b.y * c);
    d[i] = make_double2(a.x + t.x, a.y + t.y);
    d[i + half] = make_double2(a.x - t.x, a.y - t.y);
}

__global__ void reverse_bits(double2 *out, const double2 *in, int bits)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[__brev(i) >> (32 - bits)] = in[i];
}

int main()
{
    const int w = 64, h = 40, log2n = 12, n = 1 << log2n;
    std::vector<float> in(n), out(n), want(n);
    float table[64], *a, *b;
    for (int i = 0; i < n; i++)
        in[i] = (float)(int)(work_random(i) % 255) - 127;
    for (int u = 0; u < 8; u++)
        for (int k = 0; k < 8; k++)
            table[u * 8 + k] = (float)((u ? 0.5 : sqrt(0.125)) * cos((2 * k + 1) * u * M_PI / 16));
    CHECK(cudaMalloc(&a, n * sizeof(double2)));
    CHECK(cudaMalloc(&b, n * sizeof(double2)));
    CHECK(cudaMemcpyToSymbol(cosines, table, sizeof table));
    CHECK(cudaMemcpy(a, in.data(), w * h * sizeof(float), cudaMemcpyHostToDevice));
    dct<<<dim3(w / 8, h / 8), dim3(8, 8)>>>(b, a, w, false);
    CHECK(cudaMemcpy(out.data(), b, w * h * sizeof(float), cudaMemcpyDeviceToHost));
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            double sum = 0;
            for (int j = 0; j < 8; j++)
                for (int i = 0; i < 8; i++)
                    sum += cos((2 * i + 1) * (x % 8) * M_PI / 16) * cos((2 * j + 1) * (y % 8) * M_PI / 16) *
                           in[(y / 8 * 8 + j) * w + x / 8 * 8 + i];
            sum *= (x % 8 ? 0.5 : sqrt(0.125)) * (y % 8 ? 0.5 : sqrt(0.125));
            if (!(fabs(out[y * w + x] - sum) < 2e-3))
                return work_fail(WORK, "cosine %d, %d is %g, not %g", x, y, out[y * w + x], sum);
        }
    dct<<<dim3(w / 8, h / 8), dim3(8, 8)>>>(a, b, w, true);
    CHECK(cudaMemcpy(out.data(), a, w * h * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < w * h; i++)
        if (!(fabsf(out[i] - in[i]) < 1e-3f))
            return work_fail(WORK, "back from cosines [%d] is %g, not %g", i, out[i], in[i]);

    want = in; // exact: integers below 2^24
    for (int stride = 1; stride < n; stride *= 2)
        for (int i = 0; i < n; i++)
            if (!(i & stride)) {
                float p = want[i], q = want[i + stride];
                want[i] = p + q;
                want[i + stride] = p - q;
            }
    CHECK(cudaMemcpy(a, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    walsh_shared<<<n >> 10, 256, 4096>>>(a, 10);
    for (int stride = 1024; stride < n; stride *= 2)
        walsh_step<<<n / 2 / 256, 256>>>(a, stride);
    CHECK(cudaMemcpy(out.data(), a, n * sizeof(float), cudaMemcpyDeviceToHost));
    if (out != want)
        return work_fail(WORK, "Walsh transforms differ");

    CHECK(cudaMemcpy(a, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    haar<<<n / 2 / 256, 256>>>(a, b, b + n / 2, n / 2);
    CHECK(cudaMemcpy(out.data(), b, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n / 2; i++)
        if (fabsf(out[i] - (in[2 * i] + in[2 * i + 1]) * 0.70710678f) > 1e-4f ||
            fabsf(out[n / 2 + i] - (in[2 * i] - in[2 * i + 1]) * 0.70710678f) > 1e-4f)
            return work_fail(WORK, "wavelet %d is %g, %g", i, out[i], out[n / 2 + i]);

    const int m = 512;
    std::vector<double2> z(m), f(m);
    for (int i = 0; i < m; i++)
        z[i] = make_double2(in[i], in[i + m]);
    CHECK(cudaMemcpy(b, z.data(), m * sizeof(double2), cudaMemcpyHostToDevice));
    reverse_bits<<<m / 128, 128>>>((double2 *)a, (double2 *)b, 9);
    for (int half = 1; half < m; half *= 2)
        fft_step<<<m / 2 / 64, 64>>>((double2 *)a, m, half);
    CHECK(cudaMemcpy(f.data(), a, m * sizeof(double2), cudaMemcpyDeviceToHost));
    for (int k = 0; k < m; k++) {
        double re = 0, im = 0;
        for (int i = 0; i < m; i++) {
            double c = cos(2 * M_PI * k * i / m), s = -sin(2 * M_PI * k * i / m);
            re += z[i].x * c - z[i].y * s;
            im += z[i].x * s + z[i].y * c;
        }
        if (!(fabs(f[k].x - re) < 1e-8 && fabs(f[k].y - im) < 1e-8))
            return work_fail(WORK, "frequency %d is %g %g, not %g %g", k, f[k].x, f[k].y, re, im);
    }
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// Computes heat in a chip (several steps a launch, with a halo in shared memory), a diffusion that
// smooths speckle (reduction, gradients with clamped neighbours given as index arrays), and a layer
// of a neural network with its backward step. Fails if a result differs from the CPU's.
#include <math.h>
#include <vector>
#include "work.cuh"
#define WORK "heat"

enum { BLOCK = 16 };
#define INSIDE(v, lo, hi) ((v) >= (lo) && (v) <= (hi))

__global__ void heat(int steps, const float *power, const float *from, float *to, int n, float rx, float ry, float rz, float step)
{
    __shared__ float now[BLOCK][BLOCK], watts[BLOCK][BLOCK], next[BLOCK][BLOCK];
    int tx = threadIdx.x, ty = threadIdx.y, small = BLOCK - 2 * steps;
    int x = blockIdx.x * small - steps + tx, y = blockIdx.y * small - steps + ty;
    bool inside = INSIDE(x, 0, n - 1) && INSIDE(y, 0, n - 1), mine = false;
    if (inside) {
        now[ty][tx] = from[y * n + x];
        watts[ty][tx] = power[y * n + x];
    }
    int l = x > 0 ? tx - 1 : tx, r = x < n - 1 ? tx + 1 : tx, u = y > 0 ? ty - 1 : ty, d = y < n - 1 ? ty + 1 : ty;
    __syncthreads();
    for (int i = 0; i < steps; i++) {
        mine = false;
        if (INSIDE(tx, i + 1, BLOCK - i - 2) && INSIDE(ty, i + 1, BLOCK - i - 2) && inside) {
            mine = true;
            next[ty][tx] = now[ty][tx] + step * (watts[ty][tx] + (now[d][tx] + now[u][tx] - 2 * now[ty][tx]) * ry +
                                                 (now[ty][r] + now[ty][l] - 2 * now[ty][tx]) * rx + (80.0f - now[ty][tx]) * rz);
        }
        __syncthreads();
        if (i == steps - 1)
            break;
        if (mine)
            now[ty][tx] = next[ty][tx];
        __syncthreads();
    }
    if (mine)
        to[y * n + x] = next[ty][tx];
}

__global__ void sums(const float *v, double *out, int n)
{
    __shared__ double a[256], b[256];
    int t = threadIdx.x;
    a[t] = b[t] = 0;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) {
        a[t] += v[i];
        b[t] += (double)v[i] * v[i];
    }
    for (int d = 128; d; d >>= 1) {
        __syncthreads();
        if (t < d) {
            a[t] += a[t + d];
            b[t] += b[t + d];
        }
    }
    if (t == 0) {
        atomicAdd(&out[0], a[0]);
        atomicAdd(&out[1], b[0]);
    }
}

__global__ void gradients(const float *v, const int *up, const int *down, const int *left, const int *right, float4 *g, float *c,
                          int w, int h, float q0)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % w, y = i / w;
    if (i >= w * h)
        return;
    float m = v[i];
    float4 k = make_float4(v[up[y] * w + x] - m, v[down[y] * w + x] - m, v[y * w + left[x]] - m, v[y * w + right[x]] - m);
    float g2 = (k.x * k.x + k.y * k.y + k.z * k.z + k.w * k.w) / (m * m), l = (k.x + k.y + k.z + k.w) / m;
    float num = 0.5f * g2 - 1.0f / 16 * (l * l), den = 1 + 0.25f * l, q = num / (den * den);
    g[i] = k;
    c[i] = __saturatef(1.0f / (1.0f + (q - q0) / (q0 * (1 + q0))));
}

__global__ void diffuse(float *v, const int *down, const int *right, const float4 *g, const float *c, int w, int h, float rate)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % w, y = i / w;
    if (i < w * h)
        v[i] += 0.25f * rate * (c[i] * (g[i].x + g[i].z) + c[down[y] * w + x] * g[i].y + c[y * w + right[x]] * g[i].w);
}

__global__ void forward(const float *input, const float *weights, float *partial, int in, int hidden)
{
    __shared__ float node[16], product[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, i = blockIdx.y * 16 + ty;
    if (tx == 0)
        node[ty] = input[i];
    __syncthreads();
    product[ty][tx] = weights[i * hidden + tx] * node[ty];
    for (int k = 1; k <= __log2f(16); k++) {
        int step = __powf(2, k);
        __syncthreads();
        if (ty % step == 0)
            product[ty][tx] += product[ty + step / 2][tx];
    }
    __syncthreads();
    if (ty == 0)
        partial[blockIdx.y * hidden + tx] = product[0][tx];
}

__global__ void adjust(const float *delta, const float *input, float *weights, float *old, int hidden)
{
    int i = blockIdx.y * 16 + threadIdx.y, k = i * hidden + threadIdx.x;
    weights[k] += 0.3f * delta[threadIdx.x] * input[i] + 0.3f * old[k];
    old[k] = 0.3f * delta[threadIdx.x] * input[i] + 0.3f * old[k];
}

static bool close(float got, double want, double tolerance)
{
    return fabs(got - want) <= tolerance * (1 + fabs(want));
}

static int test_heat()
{
    const int n = 100, steps = 3, all = 9;
    std::vector<float> power(n * n), t(n * n), got(n * n), next(n * n);
    for (int i = 0; i < n * n; i++) {
        power[i] = (work_random(i) & 255) / 512.f;
        t[i] = 320 + (work_random(i + n * n) & 15);
    }
    float *dp, *d[2];
    CHECK(cudaMalloc(&dp, n * n * 4));
    CHECK(cudaMalloc(&d[0], n * n * 4));
    CHECK(cudaMalloc(&d[1], n * n * 4));
    CHECK(cudaMemcpy(dp, power.data(), n * n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d[0], t.data(), n * n * 4, cudaMemcpyHostToDevice));
    int at = 0, grid = (n + BLOCK - 2 * steps - 1) / (BLOCK - 2 * steps);
    for (int i = 0; i < all; i += steps, at ^= 1)
        heat<<<dim3(grid, grid), dim3(BLOCK, BLOCK)>>>(steps, dp, d[at], d[!at], n, 0.2f, 0.3f, 0.01f, 0.5f);
    CHECK(cudaMemcpy(got.data(), d[at], n * n * 4, cudaMemcpyDeviceToHost));
    for (int s = 0; s < all; s++) {
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++) {
                double m = t[y * n + x], l = t[y * n + (x ? x - 1 : x)], r = t[y * n + (x < n - 1 ? x + 1 : x)],
                       u = t[(y ? y - 1 : y) * n + x], b = t[(y < n - 1 ? y + 1 : y) * n + x];
                next[y * n + x] = m + 0.5 * (power[y * n + x] + (b + u - 2 * m) * 0.3 + (r + l - 2 * m) * 0.2 + (80 - m) * 0.01);
            }
        t = next;
    }
    for (int i = 0; i < n * n; i++)
        if (!close(got[i], t[i], 1e-5))
            return work_fail(WORK, "temperature %d is %g, not %g", i, got[i], t[i]);
    CHECK(cudaFree(dp));
    CHECK(cudaFree(d[0]));
    CHECK(cudaFree(d[1]));
    return 0;
}

struct four {
    double x, y, z, w;
};

static int test_speckle()
{
    const int w = 70, h = 50, n = w * h;
    std::vector<float> v(n), got(n);
    std::vector<int> index(2 * (w + h)); // up, down, left, right
    std::vector<double> c(n);
    std::vector<four> g(n);
    for (int i = 0; i < n; i++)
        v[i] = 1 + (work_random(i) & 255) / 128.f;
    for (int y = 0; y < h; y++) {
        index[y] = y ? y - 1 : 0;
        index[h + y] = y < h - 1 ? y + 1 : y;
    }
    for (int x = 0; x < w; x++) {
        index[2 * h + x] = x ? x - 1 : 0;
        index[2 * h + w + x] = x < w - 1 ? x + 1 : x;
    }
    float *dv, *dc;
    float4 *dg;
    int *di;
    double *ds, s[2];
    CHECK(cudaMalloc(&dv, n * 4));
    CHECK(cudaMalloc(&dc, n * 4));
    CHECK(cudaMalloc(&dg, n * 16));
    CHECK(cudaMalloc(&di, index.size() * 4));
    CHECK(cudaMalloc(&ds, sizeof s));
    CHECK(cudaMemcpy(dv, v.data(), n * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(di, index.data(), index.size() * 4, cudaMemcpyHostToDevice));
    for (int step = 0; step < 3; step++) {
        CHECK(cudaMemset(ds, 0, sizeof s));
        sums<<<4, 256>>>(dv, ds, n);
        CHECK(cudaMemcpy(s, ds, sizeof s, cudaMemcpyDeviceToHost));
        double a = 0, b = 0;
        for (int i = 0; i < n; i++) {
            a += v[i];
            b += (double)v[i] * v[i];
        }
        if (fabs(a - s[0]) > 1e-4 * a || fabs(b - s[1]) > 1e-4 * b)
            return work_fail(WORK, "sums are %g %g, not %g %g", s[0], s[1], a, b);
        double mean = s[0] / n, q0 = (s[1] / n - mean * mean) / (mean * mean);
        gradients<<<(n + 255) / 256, 256>>>(dv, di, di + h, di + 2 * h, di + 2 * h + w, dg, dc, w, h, (float)q0);
        diffuse<<<(n + 255) / 256, 256>>>(dv, di + h, di + 2 * h + w, dg, dc, w, h, 0.5f);
        for (int i = 0; i < n; i++) {
            int x = i % w, y = i / w;
            double m = v[i];
            g[i] = four{v[index[y] * w + x] - m, v[index[h + y] * w + x] - m, v[y * w + index[2 * h + x]] - m,
                                v[y * w + index[2 * h + w + x]] - m};
            double g2 = (g[i].x * g[i].x + g[i].y * g[i].y + g[i].z * g[i].z + g[i].w * g[i].w) / (m * m);
            double l = (g[i].x + g[i].y + g[i].z + g[i].w) / m, den = 1 + 0.25 * l;
            double q = (0.5 * g2 - l * l / 16) / (den * den);
            c[i] = fmin(1, fmax(0, 1 / (1 + (q - q0) / (q0 * (1 + q0)))));
        }
        for (int i = 0; i < n; i++) {
            int x = i % w, y = i / w;
            v[i] += 0.125 * (c[i] * (g[i].x + g[i].z) + c[index[h + y] * w + x] * g[i].y + c[y * w + index[2 * h + w + x]] * g[i].w);
        }
    }
    CHECK(cudaMemcpy(got.data(), dv, n * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (!close(got[i], v[i], 1e-3))
            return work_fail(WORK, "pixel %d is %g, not %g", i, got[i], v[i]);
    CHECK(cudaFree(dv));
    CHECK(cudaFree(dc));
    CHECK(cudaFree(dg));
    CHECK(cudaFree(di));
    CHECK(cudaFree(ds));
    return 0;
}

static int test_layer()
{
    const int in = 256, hidden = 16, blocks = in / 16;
    std::vector<float> x(in), w(in * hidden), old(in * hidden), partial(blocks * hidden), delta(hidden), got(in * hidden);
    for (int i = 0; i < in; i++)
        x[i] = (work_random(i) & 255) / 256.f;
    for (int i = 0; i < in * hidden; i++) {
        w[i] = (work_random(i + in) & 255) / 256.f;
        old[i] = (work_random(i + 9 * in) & 255) / 1024.f;
    }
    float *dx, *dw, *dold, *dp, *dd;
    CHECK(cudaMalloc(&dx, in * 4));
    CHECK(cudaMalloc(&dw, in * hidden * 4));
    CHECK(cudaMalloc(&dold, in * hidden * 4));
    CHECK(cudaMalloc(&dp, blocks * hidden * 4));
    CHECK(cudaMalloc(&dd, hidden * 4));
    CHECK(cudaMemcpy(dx, x.data(), in * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dw, w.data(), in * hidden * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dold, old.data(), in * hidden * 4, cudaMemcpyHostToDevice));
    forward<<<dim3(1, blocks), dim3(16, 16)>>>(dx, dw, dp, in, hidden);
    CHECK(cudaMemcpy(partial.data(), dp, blocks * hidden * 4, cudaMemcpyDeviceToHost));
    for (int k = 0; k < hidden; k++) {
        double want = 0, sum = 0;
        for (int i = 0; i < in; i++)
            want += (double)x[i] * w[i * hidden + k];
        for (int b = 0; b < blocks; b++)
            sum += partial[b * hidden + k];
        if (!close((float)sum, want, 1e-5))
            return work_fail(WORK, "hidden node %d is %g, not %g", k, sum, want);
        delta[k] = (float)(1 / (1 + exp(-want)) - 0.5);
    }
    CHECK(cudaMemcpy(dd, delta.data(), hidden * 4, cudaMemcpyHostToDevice));
    adjust<<<dim3(1, blocks), dim3(16, 16)>>>(dd, dx, dw, dold, hidden);
    CHECK(cudaMemcpy(got.data(), dw, in * hidden * 4, cudaMemcpyDeviceToHost));
    for (int i = 0; i < in * hidden; i++)
        if (!close(got[i], w[i] + 0.3 * delta[i % hidden] * x[i / hidden] + 0.3 * old[i], 1e-5))
            return work_fail(WORK, "weight %d is %g", i, got[i]);
    CHECK(cudaFree(dx));
    CHECK(cudaFree(dw));
    CHECK(cudaFree(dold));
    CHECK(cudaFree(dp));
    CHECK(cudaFree(dd));
    return 0;
}

int main()
{
    return test_heat() || test_speckle() || test_layer() ? 1 : work_pass(WORK);
}

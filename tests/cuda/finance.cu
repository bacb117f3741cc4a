// SPDX-License-Identifier: Apache-2.0
// Computes quasi-random sequences (Sobol by direction numbers in constant memory, the inverse of
// the normal distribution), options by a binomial tree and by simulation with two streams, and
// scalar products. Fails if a result differs from the host's.
#include <math.h>
#include <vector>
#include "work.cuh"
#define WORK "finance"

enum { DIMENSIONS = 4 };
__constant__ unsigned directions[DIMENSIONS][32];

__global__ void sobol(float *out, int n)
{
    int dim = blockIdx.y;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned gray = i ^ (i >> 1), x = 0;
        for (int k = 0; k < __ffs(0) + 32; k++)
            if (gray >> k & 1)
                x ^= directions[dim][k];
        out[dim * n + i] = x * 2.3283064e-10f;
    }
}

__global__ void normal(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = normcdfinvf(fminf(fmaxf(x[i], 1e-6f), 1 - 1e-6f));
}

struct option {
    double s, x, t, r, v;
};

template <int STEPS> __global__ void binomial(const option *options, double *price)
{
    __shared__ double value[STEPS + 1];
    const option o = options[blockIdx.x];
    double dt = o.t / STEPS, u = exp(o.v * sqrt(dt)), d = 1 / u, df = exp(-o.r * dt), p = (exp(o.r * dt) - d) / (u - d);
    for (int i = threadIdx.x; i <= STEPS; i += blockDim.x)
        value[i] = fmax(o.s * pow(u, 2.0 * i - STEPS) - o.x, 0.0);
    for (int step = STEPS; step > 0; step--) {
        for (int base = 0; base < step; base += blockDim.x) {
            int i = base + threadIdx.x;
            double next = 0;
            __syncthreads();
            if (i < step)
                next = df * (p * value[i + 1] + (1 - p) * value[i]);
            __syncthreads();
            if (i < step)
                value[i] = next;
        }
    }
    __syncthreads();
    if (threadIdx.x == 0)
        price[blockIdx.x] = value[0];
}

__global__ void simulate(const option *options, const float *z, int paths, double2 *out)
{
    __shared__ double s1[128], s2[128];
    const option o = options[blockIdx.x];
    double sum = 0, squares = 0, drift = (o.r - 0.5 * o.v * o.v) * o.t, spread = o.v * sqrt(o.t);
    for (int i = threadIdx.x; i < paths; i += blockDim.x) {
        double gain = fmax(o.s * exp(drift + spread * z[i]) - o.x, 0.0);
        sum += gain;
        squares += gain * gain;
    }
    s1[threadIdx.x] = sum;
    s2[threadIdx.x] = squares;
    for (int d = blockDim.x / 2; d > 0; d /= 2) {
        __syncthreads();
        if (threadIdx.x < d) {
            s1[threadIdx.x] += s1[threadIdx.x + d];
            s2[threadIdx.x] += s2[threadIdx.x + d];
        }
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = make_double2(exp(-o.r * o.t) * s1[0] / paths, s2[0]);
}

static double black_scholes(const option &o)
{
    double d1 = (log(o.s / o.x) + (o.r + 0.5 * o.v * o.v) * o.t) / (o.v * sqrt(o.t)), d2 = d1 - o.v * sqrt(o.t);
    return o.s * 0.5 * erfc(-d1 * M_SQRT1_2) - o.x * exp(-o.r * o.t) * 0.5 * erfc(-d2 * M_SQRT1_2);
}

int main()
{
    const int n = 4096, n_options = 8;
    // primitive polynomials x, x + 1, x^2 + x + 1, x^3 + x + 1 and first numbers 1, 3, …
    static const int degree[] = {0, 1, 2, 3}, inner[] = {0, 0, 1, 1}, first[][3] = {{1}, {1}, {1, 3}, {1, 3, 1}};
    unsigned v[DIMENSIONS][32];
    for (int d = 0; d < DIMENSIONS; d++)
        for (int k = 0; k < 32; k++) {
            int s = degree[d];
            if (k < s || !s) {
                v[d][k] = (s ? first[d][k] : 1u) << (31 - k);
                continue;
            }
            v[d][k] = v[d][k - s] ^ (v[d][k - s] >> s);
            for (int j = 1; j < s; j++)
                if (inner[d] >> (s - 1 - j) & 1)
                    v[d][k] ^= v[d][k - j];
        }
    float *x;
    CHECK(cudaMemcpyToSymbol(directions, v, sizeof v));
    CHECK(cudaMalloc(&x, DIMENSIONS * n * sizeof(float)));
    sobol<<<dim3(8, DIMENSIONS), 64>>>(x, n);
    CHECK_LAUNCH();
    std::vector<float> q(DIMENSIONS * n), z(n);
    CHECK(cudaMemcpy(q.data(), x, q.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (int d = 0; d < DIMENSIONS; d++) {
        std::vector<int> cell(n);
        unsigned now = 0;
        for (int i = 0; i < n; i++) {
            if (i)
                now ^= v[d][__builtin_ctz(i)];
            if (fabs(q[d * n + i] - now / 4294967296.0) > 1e-7)
                return work_fail(WORK, "point %d of dimension %d is %g", i, d, q[d * n + i]);
            cell[(int)(now / 4294967296.0 * n)]++;
        }
        for (int i = 0; i < n; i++)
            if (cell[i] != 1)
                return work_fail(WORK, "dimension %d: %d points in cell %d", d, cell[i], i);
    }
    normal<<<n / 128, 128>>>(x, n);
    CHECK(cudaMemcpy(z.data(), x, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 1; i < n; i++)
        if (fabs(0.5 * erfc(-z[i] * M_SQRT1_2) - q[i]) > 2e-6)
            return work_fail(WORK, "normal %d of %g is %g", i, q[i], z[i]);
    std::vector<option> o(n_options);
    for (int i = 0; i < n_options; i++)
        o[i] = {90.0 + 3 * i, 100.0 - i, 0.5 + 0.25 * i, 0.03, 0.2 + 0.02 * i};
    option *d_o;
    double *prices, got[n_options];
    double2 *means, mean[n_options];
    cudaStream_t s[2];
    CHECK(cudaMalloc(&d_o, n_options * sizeof *d_o));
    CHECK(cudaMalloc(&prices, sizeof got));
    CHECK(cudaMalloc(&means, sizeof mean));
    CHECK(cudaStreamCreate(&s[0]));
    CHECK(cudaStreamCreateWithFlags(&s[1], cudaStreamNonBlocking));
    CHECK(cudaMemcpy(d_o, o.data(), n_options * sizeof *d_o, cudaMemcpyHostToDevice));
    binomial<256><<<n_options, 64, 0, s[0]>>>(d_o, prices);
    simulate<<<n_options, 128, 0, s[1]>>>(d_o, x, n, means);
    CHECK(cudaMemcpyAsync(got, prices, sizeof got, cudaMemcpyDeviceToHost, s[0]));
    CHECK(cudaMemcpyAsync(mean, means, sizeof mean, cudaMemcpyDeviceToHost, s[1]));
    CHECK(cudaStreamSynchronize(s[0]));
    CHECK(cudaStreamSynchronize(s[1]));
    for (int i = 0; i < n_options; i++) {
        double want = black_scholes(o[i]), exact = 0;
        for (int k = 0; k < n; k++)
            exact += fmax(o[i].s * exp((o[i].r - 0.5 * o[i].v * o[i].v) * o[i].t + o[i].v * sqrt(o[i].t) * z[k]) - o[i].x, 0.0);
        exact *= exp(-o[i].r * o[i].t) / n;
        if (fabs(got[i] - want) > 0.05 || fabs(mean[i].x - want) > 0.2 || fabs(mean[i].x - exact) > 1e-9 * exact)
            return work_fail(WORK, "option %d: %g by tree, %g by simulation (%g), not %g", i, got[i], mean[i].x, exact, want);
    }
    CHECK(cudaStreamDestroy(s[0]));
    CHECK(cudaStreamDestroy(s[1]));
    CHECK(cudaFree(x));
    CHECK(cudaFree(d_o));
    CHECK(cudaFree(prices));
    CHECK(cudaFree(means));
    return work_pass(WORK);
}

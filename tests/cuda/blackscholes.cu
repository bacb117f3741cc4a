// SPDX-License-Identifier: Apache-2.0
// Computes Black-Scholes prices: transcendental functions in 32 bits, a grid-stride loop,
// synchronous copies. Fails if a price is too far from the CPU's.
#include "blackscholes.h"
#include "work.cuh"

// Distribution function of the normal distribution (Abramowitz and Stegun, 26.2.17).
static __device__ float normal(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float p = k * (0.31938153f + k * (-0.356563782f +
                                      k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * expf(-0.5f * d * d) * p;
    return d > 0 ? 1.0f - tail : tail;
}

extern "C" __global__ void blackscholes(const float *price, const float *strike, const float *years,
                                        float *call, float *put, float rate, float volatility,
                                        int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float s = price[i], x = strike[i], t = years[i], v = volatility * sqrtf(t);
        float d1 = (logf(s / x) + (rate + 0.5f * volatility * volatility) * t) / v;
        float n1 = normal(d1), n2 = normal(d1 - v), discounted = x * expf(-rate * t);
        call[i] = s * n1 - discounted * n2;
        put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
    }
}

int main(int argc, char **argv)
{
    long n = work_arg(argc, argv, 1, BS_SIZE_KI, BS_MAX_KI) * 1024,
         iterations = work_arg(argc, argv, 2, 1, 1000000);
    size_t bytes = sizeof(float) * n;
    float *h[5], *d[5];
    for (int i = 0; i < 5; i++) {
        h[i] = (float *)work_alloc(bytes);
        CHECK(cudaMalloc(&d[i], bytes));
    }
    bs_fill(h[0], h[1], h[2], n);
    for (long it = 0; it < iterations; it++) {
        for (int i = 0; i < 3; i++)
            CHECK(cudaMemcpy(d[i], h[i], bytes, cudaMemcpyHostToDevice));
        blackscholes<<<480, BS_BLOCK>>>(d[0], d[1], d[2], d[3], d[4], BS_RATE, BS_VOLATILITY,
                                        (int)n);
        CHECK_LAUNCH();
        for (int i = 3; i < 5; i++)
            CHECK(cudaMemcpy(h[i], d[i], bytes, cudaMemcpyDeviceToHost));
        if (bs_check(h[0], h[1], h[2], h[3], h[4], n))
            return 1;
    }
    for (int i = 0; i < 5; i++)
        CHECK(cudaFree(d[i]));
    return work_pass(WORK);
}

// SPDX-License-Identifier: Apache-2.0
// The usual benchmark harness: it warms up, then takes the best and the mean of some runs by events
// on a stream of its own, of two variants of a transpose (plain, and through shared memory). Fails
// if a result is wrong or if times of the same launch contradict one another.
#include <vector>
#include "work.cuh"
#define WORK "warmup"

enum { TILE = 32, ROWS = 8, RUNS = 5 };

__global__ void plain(float *out, const float *in, int n)
{
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < n && y + j < n)
            out[x * n + y + j] = in[(y + j) * n + x];
}

__global__ void tiled(float *out, const float *in, int n)
{
    __shared__ float t[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < n && y + j < n)
            t[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (x < n && y + j < n)
            out[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}

typedef void kernel(float *, const float *, int);

static void measure(const char *name, kernel *k, float *out, const float *in, int n,
                    const std::vector<float> &h)
{
    cudaStream_t s;
    cudaEvent_t a[RUNS + 1], b[RUNS + 1];
    dim3 grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), block(TILE, ROWS);
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int i = 0; i <= RUNS; i++) {
        CHECK(cudaEventCreate(&a[i]));
        CHECK(cudaEventCreate(&b[i]));
    }
    CHECK(cudaMemsetAsync(out, 255, (size_t)n * n * sizeof(float), s));
    for (int i = 0; i <= RUNS; i++) { /* the first is the warm-up */
        CHECK(cudaEventRecord(a[i], s));
        k<<<grid, block, 0, s>>>(out, in, n);
        CHECK_LAUNCH();
        CHECK(cudaEventRecord(b[i], s));
    }
    CHECK(cudaStreamSynchronize(s));
    float best = 1e30f, worst = 0;
    for (int i = 1; i <= RUNS; i++) {
        float ms;
        CHECK(cudaEventElapsedTime(&ms, a[i], b[i]));
        best = ms < best ? ms : best;
        worst = ms > worst ? ms : worst;
    }
    if (!(best > 0) || worst > 50 * best) {
        work_fail(WORK, "%s: best %g ms, worst %g ms", name, best, worst);
        exit(1);
    }
    std::vector<float> got((size_t)n * n);
    CHECK(cudaMemcpyAsync(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++)
            if (got[(size_t)x * n + y] != h[(size_t)y * n + x]) {
                work_fail(WORK, "%s: (%d, %d) is wrong", name, x, y);
                exit(1);
            }
    for (int i = 0; i <= RUNS; i++) {
        CHECK(cudaEventDestroy(a[i]));
        CHECK(cudaEventDestroy(b[i]));
    }
    CHECK(cudaStreamDestroy(s));
}

int main(int argc, char **argv)
{
    int n = (int)work_arg(argc, argv, 1, 100, 4096);
    std::vector<float> h((size_t)n * n);
    float *in, *out;
    for (size_t i = 0; i < h.size(); i++)
        h[i] = (float)(i * 2654435761u % 100003);
    CHECK(cudaMalloc(&in, h.size() * sizeof(float)));
    CHECK(cudaMalloc(&out, h.size() * sizeof(float)));
    CHECK(cudaMemcpy(in, h.data(), h.size() * sizeof(float), cudaMemcpyHostToDevice));
    measure("plain", plain, out, in, n, h);
    measure("tiled", tiled, out, in, n, h);
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    return work_pass(WORK);
}

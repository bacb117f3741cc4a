// SPDX-License-Identifier: Apache-2.0
// Source of bench_interp.ptx: nvcc -ptx -arch=compute_75 -O3
extern "C" __global__ void matmul_naive(const float *a, const float *b, float *c, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float s = 0;
    for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x];
    c[y * n + x] = s;
}
extern "C" __global__ void matmul_tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[16][16], tb[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * 16 + tx, y = blockIdx.y * 16 + ty;
    float s = 0;
    for (int t = 0; t < n; t += 16) {
        ta[ty][tx] = a[y * n + t + tx];
        tb[ty][tx] = b[(t + ty) * n + x];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; k++) s += ta[ty][k] * tb[k][tx];
        __syncthreads();
    }
    c[y * n + x] = s;
}
extern "C" __global__ void alu(unsigned *out, int n)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = x ^ 0x9e3779b9u;
    float f = x;
    for (int i = 0; i < n; i++) {
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        y = y * 1664525u + 1013904223u;
        f = f * 0.999f + 1.0f;
        y += x;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = y + (unsigned)f;
}
extern "C" __global__ void saxpy(float *y, const float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void gather(float *out, const int *index, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s = 0;
    for (int k = 0; k < 8; k++) { s += in[index[(i + k * 4096) & (n - 1)]]; }
    out[i] = s;
}
extern "C" __global__ void divergent(unsigned *out, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = i * 2654435761u, steps = 0;
    for (int k = 0; k < n; k++) {
        if (x & 1) { x = x * 3 + 1; steps += 3; if (x & 2) { x ^= x >> 3; steps++; } }
        else { x = x >> 1; steps ^= x; }
        x += i;
    }
    out[i] = steps;
}
extern "C" __global__ void collatz(unsigned *out, int n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, steps = 0;
    for (int r = 0; r < n; r++) {
        unsigned x = i * 7 + r + 1;
        while (x != 1) {
            if (x & 1) { for (unsigned k = x & 7; k; k--) steps += k * x; x = 3 * x + 1; }
            else { x >>= __ffs(x) - 1; steps ^= x; }
            steps++;
        }
    }
    out[i] = steps;
}
extern "C" __global__ void texture(float *out, cudaTextureObject_t t)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = i & 1023, y = i >> 10;
    float u = 0.8125f * x - 0.25f * y, v = 0.25f * x + 0.8125f * y, s = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) s += tex2D<float>(t, u + k, v + 0.5f * k);
    out[i] = s;
}

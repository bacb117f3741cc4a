// SPDX-License-Identifier: Apache-2.0
// Kernels of public programs whose time and power others have measured on boards without counters:
// PolyBench/GPU and Rodinia on the RTX 3080 Ti, and the programs of sBEET-mg on the RTX 3070 and the T400. Algorithm,
// sizes and launch shapes are theirs, the code is ours. As there, a sum is kept in memory where the program has it
// there, since the compiler cannot know that it is not one of the operands.
#define X (blockIdx.x * blockDim.x + threadIdx.x)
#define Y (blockIdx.y * blockDim.y + threadIdx.y)

/* ---- PolyBench/GPU: one thread for an element, blocks of 32 x 8 ---- */

extern "C" __global__ void poly_convolve(const float *from, float *to, int n)
{
    int x = X, y = Y;
    if (x > 0 && x < n - 1 && y > 0 && y < n - 1)
        to[y * n + x] = 0.2f * from[(y - 1) * n + x - 1] - 0.3f * from[y * n + x - 1] + 0.4f * from[(y + 1) * n + x - 1] +
                        0.5f * from[(y - 1) * n + x] + 0.6f * from[y * n + x] + 0.7f * from[(y + 1) * n + x] -
                        0.8f * from[(y - 1) * n + x + 1] - 0.9f * from[y * n + x + 1] + 0.1f * from[(y + 1) * n + x + 1];
}
extern "C" __global__ void poly_product(const float *a, const float *b, float *c, int n)
{
    int x = X, y = Y;
    if (x < n && y < n)
        for (int k = 0; k < n; k++)
            c[y * n + x] += a[y * n + k] * b[k * n + x];
}
extern "C" __global__ void poly_gemm(const float *a, const float *b, float *c, int n, float alpha, float beta)
{
    int x = X, y = Y;
    if (x < n && y < n) {
        c[y * n + x] *= beta;
        for (int k = 0; k < n; k++)
            c[y * n + x] += alpha * a[y * n + k] * b[k * n + x];
    }
}
extern "C" __global__ void poly_rank_2k(const float *a, const float *b, float *c, int n, float alpha, float beta)
{
    int x = X, y = Y;
    if (x < n && y < n) {
        c[y * n + x] *= beta;
        for (int k = 0; k < n; k++)
            c[y * n + x] += alpha * a[y * n + k] * b[x * n + k] + alpha * b[y * n + k] * a[x * n + k];
    }
}
extern "C" __global__ void poly_rank_two(float *a, const float *u1, const float *v1, const float *u2, const float *v2, int n)
{
    int x = X, y = Y;
    if (x < n && y < n)
        a[y * n + x] += u1[y] * v1[x] + u2[y] * v2[x];
}

/* ---- one thread for a row or a column, blocks of 256 ---- */

extern "C" __global__ void poly_row(const float *a, const float *x, float *y, int n, float alpha)
{
    int i = X;
    if (i < n)
        for (int j = 0; j < n; j++)
            y[i] += alpha * a[i * n + j] * x[j];
}
extern "C" __global__ void poly_column(const float *a, const float *x, float *y, int n, float alpha)
{
    int i = X;
    if (i < n)
        for (int j = 0; j < n; j++)
            y[i] += alpha * a[j * n + i] * x[j];
}
extern "C" __global__ void poly_two_rows(const float *a, const float *b, const float *x, float *y, float *tmp, int n)
{
    int i = X;
    if (i < n) {
        for (int j = 0; j < n; j++) {
            tmp[i] += a[i * n + j] * x[j];
            y[i] += b[i * n + j] * x[j];
        }
        y[i] = 0.5f * tmp[i] + 0.25f * y[i];
    }
}
extern "C" __global__ void poly_mean(float *mean, const float *data, int n)
{
    int j = X + 1;
    if (j <= n) {
        mean[j] = 0;
        for (int i = 1; i <= n; i++)
            mean[j] += data[i * (n + 1) + j];
        mean[j] /= 3214212.01f;
    }
}
extern "C" __global__ void poly_deviation(const float *mean, float *deviation, const float *data, int n)
{
    int j = X + 1;
    if (j <= n) {
        deviation[j] = 0;
        for (int i = 1; i <= n; i++)
            deviation[j] += (data[i * (n + 1) + j] - mean[j]) * (data[i * (n + 1) + j] - mean[j]);
        deviation[j] = sqrtf(deviation[j] / 3214212.01f);
        if (deviation[j] <= 0.005f)
            deviation[j] = 1;
    }
}
/* The first pairs of each column only: @pairs of the n that there are at most. */
extern "C" __global__ void poly_correlation(float *to, const float *data, int n, int pairs)
{
    int j1 = X + 1;
    if (j1 < n)
        for (int j2 = j1 + 1; j2 <= n && j2 <= j1 + pairs; j2++) {
            to[j1 * (n + 1) + j2] = 0;
            for (int i = 1; i <= n; i++)
                to[j1 * (n + 1) + j2] += data[i * (n + 1) + j1] * data[i * (n + 1) + j2];
            to[j2 * (n + 1) + j1] = to[j1 * (n + 1) + j2];
        }
}

/* ---- Rodinia ---- */

__constant__ float centres[32 * 34];
extern "C" __global__ void nearest_centre(const float *features, int n_features, int n_points, int n_centres, int *to)
{
    unsigned i = X;
    if (i >= (unsigned)n_points)
        return;
    int best = -1;
    float least = 3.4e38f;
    for (int c = 0; c < n_centres; c++) {
        float sum = 0;
        for (int f = 0; f < n_features; f++) {
            float d = __ldg(features + i + f * n_points) - centres[c * n_features + f];
            sum += d * d;
        }
        if (sum < least) {
            least = sum;
            best = c;
        }
    }
    to[i] = best;
}
extern "C" __global__ void image_exp(float *image, int n)
{
    int i = X;
    if (i < n)
        image[i] = expf(image[i] / 255);
}
extern "C" __global__ void image_squares(const float *image, float *sums, float *squares, int n)
{
    int i = X;
    if (i < n) {
        sums[i] = image[i];
        squares[i] = image[i] * image[i];
    }
}
extern "C" __global__ void image_log(float *image, int n)
{
    int i = X;
    if (i < n)
        image[i] = logf(image[i]) * 255;
}

/* ---- sBEET-mg ---- */

/* Blocks of 16 x 16; n, k, m: C is m x n. */
extern "C" __global__ void tiled_product(const float *a, const float *b, float *c, int k, int n)
{
    __shared__ float ta[16][16], tb[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = Y, col = X;
    float sum = 0;
    for (int t = 0; t < k; t += 16) {
        ta[y][x] = a[row * k + t + x];
        tb[y][x] = b[(t + y) * n + col];
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += ta[y][i] * tb[i][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}
extern "C" __global__ void bins_in_memory(const unsigned *data, unsigned *bins, int n, int n_bins)
{
    for (int i = X; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i] % n_bins], 1);
}
struct node {
    int first, n;
};
extern "C" __global__ void bfs_visit(const node *nodes, const int *edges, char *mask, char *next, char *visited, int *cost, int n)
{
    int i = X;
    if (i < n && mask[i]) {
        mask[i] = 0;
        for (int e = nodes[i].first; e < nodes[i].first + nodes[i].n; e++)
            if (!visited[edges[e]]) {
                cost[edges[e]] = cost[i] + 1;
                next[edges[e]] = 1;
            }
    }
}
extern "C" __global__ void bfs_next(char *mask, char *next, char *visited, char *over, int n)
{
    int i = X;
    if (i < n && next[i]) {
        mask[i] = 1;
        visited[i] = 1;
        *over = 1;
        next[i] = 0;
    }
}

/* One block of 64 threads for 16 pixels: the colours on a line through their mean, and of @n_ways ways to round them
 * to four colours of it the one with the least error. */
extern "C" __global__ void four_colours(const unsigned *ways, const unsigned *image, uint2 *to, int n_ways)
{
    __shared__ float3 colour[16], sums[16];
    __shared__ float errors[64];
    __shared__ int best_of[64];
    int t = threadIdx.x, block = blockIdx.x;
    if (t < 16) {
        unsigned c = image[block * 16 + t];
        colour[t] = make_float3((c & 255) / 255.f, (c >> 8 & 255) / 255.f, (c >> 16 & 255) / 255.f);
        sums[t] = colour[t];
    }
    __syncthreads();
    float3 mean = make_float3(0, 0, 0);
    for (int i = 0; i < 16; i++)
        mean.x += sums[i].x, mean.y += sums[i].y, mean.z += sums[i].z;
    mean.x /= 16, mean.y /= 16, mean.z /= 16;
    float xx = 0, xy = 0, xz = 0, yy = 0, yz = 0, zz = 0;
    for (int i = 0; i < 16; i++) {
        float x = colour[i].x - mean.x, y = colour[i].y - mean.y, z = colour[i].z - mean.z;
        xx += x * x, xy += x * y, xz += x * z, yy += y * y, yz += y * z, zz += z * z;
    }
    float3 line = make_float3(1, 1, 1);
    for (int i = 0; i < 8; i++) {
        float x = line.x * xx + line.y * xy + line.z * xz, y = line.x * xy + line.y * yy + line.z * yz,
              z = line.x * xz + line.y * yz + line.z * zz, m = 1 / fmaxf(fmaxf(x, y), fmaxf(z, 1e-6f));
        line = make_float3(x * m, y * m, z * m);
    }
    float least = 3.4e38f;
    int best = 0;
    for (int w = t; w < n_ways; w += 64) {
        unsigned bits = ways[w];
        float a2 = 0, b2 = 0, ab = 0;
        float3 ax = make_float3(0, 0, 0), bx = make_float3(0, 0, 0);
        for (int i = 0; i < 16; i++) {
            unsigned two = bits >> 2 * i;
            float b = two & 1 ? 1.f : 0.f;
            if (two & 2)
                b = (1 + b) / 3;
            float a = 1 - b;
            a2 += a * a, b2 += b * b, ab += a * b;
            ax.x += a * colour[i].x, ax.y += a * colour[i].y, ax.z += a * colour[i].z;
            bx.x += b * colour[i].x, bx.y += b * colour[i].y, bx.z += b * colour[i].z;
        }
        float f = 1 / (a2 * b2 - ab * ab);
        float3 p = make_float3((ax.x * b2 - bx.x * ab) * f, (ax.y * b2 - bx.y * ab) * f, (ax.z * b2 - bx.z * ab) * f),
               q = make_float3((bx.x * a2 - ax.x * ab) * f, (bx.y * a2 - ax.y * ab) * f, (bx.z * a2 - ax.z * ab) * f);
        p = make_float3(rintf(31 * __saturatef(p.x)) / 31, rintf(63 * __saturatef(p.y)) / 63, rintf(31 * __saturatef(p.z)) / 31);
        q = make_float3(rintf(31 * __saturatef(q.x)) / 31, rintf(63 * __saturatef(q.y)) / 63, rintf(31 * __saturatef(q.z)) / 31);
        float ex = p.x * p.x * a2 + q.x * q.x * b2 + 2 * (p.x * q.x * ab - p.x * ax.x - q.x * bx.x),
              ey = p.y * p.y * a2 + q.y * q.y * b2 + 2 * (p.y * q.y * ab - p.y * ax.y - q.y * bx.y),
              ez = p.z * p.z * a2 + q.z * q.z * b2 + 2 * (p.z * q.z * ab - p.z * ax.z - q.z * bx.z), e = ex + ey + ez + line.x * 1e-9f;
        if (e < least) {
            least = e;
            best = (int)bits;
        }
    }
    errors[t] = least;
    best_of[t] = best;
    __syncthreads();
    for (int k = 32; k; k >>= 1) {
        if (t < k && errors[t + k] < errors[t]) {
            errors[t] = errors[t + k];
            best_of[t] = best_of[t + k];
        }
        __syncthreads();
    }
    if (!t)
        to[block] = make_uint2((unsigned)best_of[0], __float_as_uint(errors[0]));
}

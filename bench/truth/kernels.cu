// SPDX-License-Identifier: Apache-2.0
/* bench/truth/kernels.cu - kernels whose time and power others have measured (bench/bench_truth.c),
 * written anew: the algorithm, the sizes and the launch shape are those of the public programs, the
 * code is ours. `make truth-ptx` makes kernels.ptx of it. */

typedef unsigned int uint;

/* One sum for each thread. */
extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

/* Products of square matrices, 32 x 32 elements a block: from global memory, and by tiles. */
extern "C" __global__ void matrix_global(float *c, const float *a, const float *b, int n)
{
    int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

extern "C" __global__ void matrix_shared(float *c, const float *a, const float *b, int n)
{
    __shared__ float ta[32][32], tb[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 32 + y, col = blockIdx.x * 32 + x;
    float sum = 0;
    for (int at = 0; at < n; at += 32) {
        ta[y][x] = a[row * n + at + x];
        tb[y][x] = b[(at + y) * n + col];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 32; k++)
            sum += ta[y][k] * tb[k][x];
        __syncthreads();
    }
    c[row * n + col] = sum;
}

/* Quasi-random numbers: a dimension for each block row, points a power of two apart follow from
 * each other by two direction numbers. */
extern "C" __global__ void sobol(const uint *directions, float *out, uint n)
{
    __shared__ uint v[32];
    directions += 32 * blockIdx.y;
    out += (size_t)n * blockIdx.y;
    if (threadIdx.x < 32)
        v[threadIdx.x] = directions[threadIdx.x];
    __syncthreads();
    uint first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    uint gray = first ^ first >> 1, x = 0;
    for (uint k = 0; k < 32 && gray >> k; k++)
        x ^= -(gray >> k & 1) & v[k];
    out[first] = x * (1.0f / 4294967296.0f);
    uint log2_stride = __ffs(stride) - 1, jump = v[log2_stride - 1];
    for (uint i = first + stride; i < n; i += stride) {
        x ^= jump ^ v[__ffs(~(i - stride | stride - 1)) - 1];
        out[i] = x * (1.0f / 4294967296.0f);
    }
}

/* A layer of a neural network: a block weighs 16 inputs for 16 units and sums them up by halves. */
extern "C" __global__ void layer_forward(const float *input, float *weights, float *partial, int hidden)
{
    __shared__ float in[16], w[16][16];
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int at = (hidden + 1) * 16 * by + (hidden + 1) * ty + tx + 1 + (hidden + 1);
    if (tx == 0)
        in[ty] = input[16 * by + ty + 1];
    __syncthreads();
    w[ty][tx] = weights[at];
    __syncthreads();
    w[ty][tx] = w[ty][tx] * in[ty];
    __syncthreads();
    for (int i = 1; i <= __log2f(16); i++) {
        int step = __powf(2, i);
        if (ty % step == 0)
            w[ty][tx] = w[ty][tx] + w[ty + step / 2][tx];
        __syncthreads();
    }
    weights[at] = w[ty][tx];
    __syncthreads();
    if (tx == 0)
        partial[by * hidden + ty] = w[tx][ty];
}

extern "C" __global__ void adjust_weights(const float *delta, int hidden, const float *inputs, float *w,
                                          float *old)
{
    int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int at = (hidden + 1) * 16 * by + (hidden + 1) * ty + tx + 1 + (hidden + 1);
    int y = 16 * by + ty + 1, x = tx + 1;
    w[at] += 0.3 * delta[x] * inputs[y] + 0.3 * old[at];
    old[at] = 0.3 * delta[x] * inputs[y] + 0.3 * old[at]; /* loaded again: w may be the same */
    __syncthreads();
    if (ty == 0 && by == 0) {
        w[x] += 0.3 * delta[x] + 0.3 * old[x];
        old[x] = 0.3 * delta[x] + 0.3 * old[x];
    }
}

/* Rows of an image, each with the 17 values around it: blocks of 16 x 4 threads make 128 x 4. */
__constant__ float taps[17];
extern "C" __global__ void convolve_rows(float *to, const float *from, int width, int pitch)
{
    __shared__ float s[4][16 * 10];
    int x0 = (blockIdx.x * 8 - 1) * 16 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    from += y * pitch + x0;
    to += y * pitch + x0;
#pragma unroll
    for (int i = 1; i < 9; i++)
        s[threadIdx.y][threadIdx.x + i * 16] = from[i * 16];
    s[threadIdx.y][threadIdx.x] = x0 >= 0 ? from[0] : 0;
    s[threadIdx.y][threadIdx.x + 9 * 16] = width - x0 > 9 * 16 ? from[9 * 16] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 1; i < 9; i++) {
        float sum = 0;
#pragma unroll
        for (int j = -8; j <= 8; j++)
            sum += taps[8 - j] * s[threadIdx.y][threadIdx.x + i * 16 + j];
        to[i * 16] = sum;
    }
}

/* A radix-4 step of the Walsh transform. */
extern "C" __global__ void walsh_step(float *out, const float *in, int stride)
{
    const int at = blockIdx.x * blockDim.x + threadIdx.x, n = blockDim.x * gridDim.x * 4;
    in += blockIdx.y * n;
    out += blockIdx.y * n;
    int low = at & stride - 1;
    int i0 = (at - low << 2) + low, i1 = i0 + stride, i2 = i1 + stride, i3 = i2 + stride;
    float d0 = in[i0], d1 = in[i1], d2 = in[i2], d3 = in[i3], t = d0;
    d0 = d0 + d2;
    d2 = t - d2;
    t = d1;
    d1 = d1 + d3;
    d3 = t - d3;
    t = d0;
    out[i0] = d0 + d1;
    out[i1] = t - d1;
    t = d2;
    out[i2] = d2 + d3;
    out[i3] = t - d3;
}

/* Gaussian elimination, step t: 4 x 4 threads a block. */
extern "C" __global__ void eliminate(const float *m, float *a, float *b, int n, int t)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n - 1 - t || y >= n - t)
        return;
    a[n * (x + 1 + t) + y + t] -= m[n * (x + 1 + t) + t] * a[n * t + y + t];
    if (y == 0)
        b[x + 1 + t] -= m[n * (x + 1 + t) + y + t] * b[t];
}

/* Histogram of bytes: one of each warp in shared memory. A counter has the lane that wrote it in its
 * upper five bits: lanes that counted at once see who was last, and the others count again. */
static __device__ void count_byte(volatile uint *h, uint bin, uint lane)
{
    uint n;
    do {
        n = lane << 27 | (h[bin] & 0x7ffffff) + 1;
        h[bin] = n;
    } while (h[bin] != n);
}
extern "C" __global__ void histogram256(uint *partial, const uint *data, uint n)
{
    __shared__ uint h[6 * 256];
    volatile uint *mine = h + (threadIdx.x >> 5) * 256;
    uint lane = threadIdx.x & 31;
    for (int i = 0; i < 8; i++)
        h[threadIdx.x + i * 192] = 0;
    __syncthreads();
    for (uint i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        uint word = data[i];
        count_byte(mine, word & 255, lane);
        count_byte(mine, word >> 8 & 255, lane);
        count_byte(mine, word >> 16 & 255, lane);
        count_byte(mine, word >> 24, lane);
    }
    __syncthreads();
    for (uint bin = threadIdx.x; bin < 256; bin += 192) {
        uint sum = 0;
        for (int i = 0; i < 6; i++)
            sum += h[bin + i * 256] & 0x7ffffff;
        partial[blockIdx.x * 256 + bin] = sum;
    }
}

/* Distance of each record from a place. */
extern "C" __global__ void distances(const float2 *place, float *out, int n, float lat, float lng)
{
    int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
    if (i < n) {
        float2 p = place[i];
        out[i] = (float)sqrt((lat - p.x) * (lat - p.x) + (lng - p.y) * (lng - p.y));
    }
}

/* The cheapest path down a grid, several rows at a time. */
extern "C" __global__ void paths(int rows, const int *wall, const int *from, int *to, int cols, int start,
                                 int border)
{
    __shared__ int prev[256], result[256];
    int tx = threadIdx.x, small = 256 - rows * 2, x0 = small * blockIdx.x - border, x1 = x0 + 255;
    int x = x0 + tx, low = x0 < 0 ? -x0 : 0, high = x1 > cols - 1 ? 255 - (x1 - cols + 1) : 255;
    int west = max(tx - 1, low), east = min(tx + 1, high);
    bool valid = tx >= low && tx <= high, computed = false;
    if (x >= 0 && x < cols)
        prev[tx] = from[x];
    __syncthreads();
    for (int i = 0; i < rows; i++) {
        computed = false;
        if (tx >= i + 1 && tx <= 254 - i && valid) {
            computed = true;
            int best = min(min(prev[west], prev[tx]), prev[east]);
            result[tx] = best + wall[cols * (start + i) + x];
        }
        __syncthreads();
        if (i == rows - 1)
            break;
        if (computed)
            prev[tx] = result[tx];
        __syncthreads();
    }
    if (computed)
        to[x] = result[tx];
}

/* Scalar products of pairs of vectors: 1024 sums a block, added up by halves. */
extern "C" __global__ void scalar_products(float *out, const float *a, const float *b, int n_vectors,
                                           int n_elements)
{
    __shared__ float sums[1024];
    for (int vec = blockIdx.x; vec < n_vectors; vec += gridDim.x) {
        int base = n_elements * vec, end = base + n_elements;
        for (int i = threadIdx.x; i < 1024; i += blockDim.x) {
            float sum = 0;
            for (int pos = base + i; pos < end; pos += 1024)
                sum += a[pos] * b[pos];
            sums[i] = sum;
        }
        for (int stride = 512; stride > 0; stride >>= 1) {
            __syncthreads();
            for (int i = threadIdx.x; i < stride; i += blockDim.x)
                sums[i] += sums[stride + i];
        }
        __syncthreads();
        if (threadIdx.x == 0)
            out[vec] = sums[0];
    }
}

/* Prefix sums of 1024 numbers a block, and adding what came before. */
static __device__ uint scan_block(uint own, volatile uint *s)
{
    uint at = 2 * threadIdx.x - (threadIdx.x & 255);
    s[at] = 0;
    at += 256;
    s[at] = own;
    for (uint step = 1; step < 256; step <<= 1) {
        __syncthreads();
        uint t = s[at] + s[at - step];
        __syncthreads();
        s[at] = t;
    }
    return s[at];
}
extern "C" __global__ void scan_exclusive(uint4 *to, const uint4 *from)
{
    __shared__ uint s[512];
    uint i = blockIdx.x * blockDim.x + threadIdx.x;
    uint4 v = from[i];
    v.y += v.x;
    v.z += v.y;
    v.w += v.z;
    uint before = scan_block(v.w, s) - v.w;
    to[i] = make_uint4(before, before + v.x, before + v.y, before + v.z);
}
extern "C" __global__ void add_before(uint4 *data, const uint *before)
{
    __shared__ uint sum;
    uint i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        sum = before[blockIdx.x];
    __syncthreads();
    uint4 v = data[i];
    v.x += sum;
    v.y += sum;
    v.z += sum;
    v.w += sum;
    data[i] = v;
}

/* Bitonic sort of 1024 keys with values in shared memory; every other block the other way. */
static __device__ void put_in_order(uint &ka, uint &va, uint &kb, uint &vb, uint up)
{
    if ((ka > kb) == up) {
        uint t = ka;
        ka = kb;
        kb = t;
        t = va;
        va = vb;
        vb = t;
    }
}
extern "C" __global__ void sort_1024(uint *keys_to, uint *values_to, const uint *keys, const uint *values)
{
    __shared__ uint k[1024], v[1024];
    uint base = blockIdx.x * 1024 + threadIdx.x;
    k[threadIdx.x] = keys[base];
    v[threadIdx.x] = values[base];
    k[threadIdx.x + 512] = keys[base + 512];
    v[threadIdx.x + 512] = values[base + 512];
    for (uint size = 2; size < 1024; size <<= 1) {
        uint up = (threadIdx.x & size / 2) != 0;
        for (uint stride = size / 2; stride > 0; stride >>= 1) {
            __syncthreads();
            uint at = 2 * threadIdx.x - (threadIdx.x & stride - 1);
            put_in_order(k[at], v[at], k[at + stride], v[at + stride], up);
        }
    }
    uint up = blockIdx.x & 1;
    for (uint stride = 512; stride > 0; stride >>= 1) {
        __syncthreads();
        uint at = 2 * threadIdx.x - (threadIdx.x & stride - 1);
        put_in_order(k[at], v[at], k[at + stride], v[at + stride], up);
    }
    __syncthreads();
    keys_to[base] = k[threadIdx.x];
    values_to[base] = v[threadIdx.x];
    keys_to[base + 512] = k[threadIdx.x + 512];
    values_to[base + 512] = v[threadIdx.x + 512];
}

/* The first step of speckle reduction: derivatives and the coefficient of diffusion, 16 x 16. */
extern "C" __global__ void diffusion(float *e, float *w, float *n, float *s, const float *image, float *coefficient,
                                     int cols, int rows, float q0sqr)
{
    __shared__ float tile[16][16], north[16][16], south[16][16], east[16][16], west[16][16];
    int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
    int at = cols * 16 * by + 16 * bx + cols * ty + tx;
    int up = cols * 16 * by + 16 * bx + tx - cols, down = cols * 16 * by + 16 * bx + cols * 16 + tx;
    int left = cols * 16 * by + 16 * bx + cols * ty - 1, right = cols * 16 * by + 16 * bx + cols * ty + 16;
    north[ty][tx] = image[by == 0 ? 16 * bx + tx : up];
    south[ty][tx] = image[by == gridDim.y - 1 ? cols * 16 * (gridDim.y - 1) + 16 * bx + cols * 15 + tx : down];
    __syncthreads();
    west[ty][tx] = image[bx == 0 ? cols * 16 * by + cols * ty : left];
    east[ty][tx] = image[bx == gridDim.x - 1 ? cols * 16 * by + 16 * (gridDim.x - 1) + cols * ty + 15 : right];
    __syncthreads();
    tile[ty][tx] = image[at];
    __syncthreads();
    float here = tile[ty][tx];
    float dn = (ty == 0 ? north[ty][tx] : tile[ty - 1][tx]) - here;
    float ds = (ty == 15 ? south[ty][tx] : tile[ty + 1][tx]) - here;
    float dw = (tx == 0 ? west[ty][tx] : tile[ty][tx - 1]) - here;
    float de = (tx == 15 ? east[ty][tx] : tile[ty][tx + 1]) - here;
    float g2 = (dn * dn + ds * ds + dw * dw + de * de) / (here * here);
    float l = (dn + ds + dw + de) / here;
    float num = (0.5 * g2) - ((1.0 / 16.0) * (l * l)), den = 1 + (.25 * l);
    float qsqr = num / (den * den);
    den = (qsqr - q0sqr) / (q0sqr * (1 + q0sqr));
    float c = 1.0 / (1.0 + den);
    coefficient[at] = c < 0 ? 0 : c > 1 ? 1 : c;
    e[at] = de;
    w[at] = dw;
    s[at] = ds;
    n[at] = dn;
}

/* ---- programs that were looked at only when all above was done ---- */

extern "C" __global__ void saxpy(float *y, const float *x, int n, float a)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

/* Each pixel with the eight around it. */
__constant__ float taps3[9];
extern "C" __global__ void convolve_3x3(float *to, const float *from, int rows, int cols)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= cols || y >= rows)
        return;
    float sum = 0;
#pragma unroll
    for (int dy = -1; dy <= 1; dy++)
#pragma unroll
        for (int dx = -1; dx <= 1; dx++) {
            int u = x + dx, v = y + dy;
            if (u >= 0 && u < cols && v >= 0 && v < rows)
                sum += taps3[(dy + 1) * 3 + dx + 1] * from[v * cols + u];
        }
    to[y * cols + x] = sum;
}

/* A histogram of each block in shared memory, added to that of all. */
extern "C" __global__ void histogram_atomic(uint *bins, const int *data, int n)
{
    __shared__ uint own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n)
        atomicAdd(&own[data[i] & 255], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

/* All threads count in one place. */
extern "C" __global__ void hot_counter(uint *counter, int n, int times)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n)
        for (int k = 0; k < times; k++)
            atomicAdd(counter, 1);
}

/* A product of square matrices from global memory, 16 x 16 elements a block. */
extern "C" __global__ void matrix_16(float *c, const float *a, const float *b, int n)
{
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= n || col >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + col];
    c[row * n + col] = sum;
}

// SPDX-License-Identifier: Apache-2.0
// Kernels of bench_interp.cu in OpenCL C 1.2, under the same names, for pocl as a peer.
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define ID ((int)get_global_id(0))
kernel void matmul_naive(global const float *a, global const float *b, global float *c, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    float s = 0;
    for (int k = 0; k < n; k++) s += a[y * n + k] * b[k * n + x];
    c[y * n + x] = s;
}
kernel void matmul_tiled(global const float *a, global const float *b, global float *c, int n)
{
    local float ta[16][16], tb[16][16];
    int tx = get_local_id(0), ty = get_local_id(1), x = get_global_id(0), y = get_global_id(1);
    float s = 0;
    for (int t = 0; t < n; t += 16) {
        ta[ty][tx] = a[y * n + t + tx];
        tb[ty][tx] = b[(t + ty) * n + x];
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (int k = 0; k < 16; k++) s += ta[ty][k] * tb[k][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[y * n + x] = s;
}
kernel void alu(global uint *out, int n)
{
    uint x = ID, y = x ^ 0x9e3779b9u;
    float f = x;
    for (int i = 0; i < n; i++) {
        x ^= x << 13; x ^= x >> 17; x ^= x << 5;
        y = y * 1664525u + 1013904223u;
        f = f * 0.999f + 1.0f;
        y += x;
    }
    out[ID] = y + (uint)f;
}
kernel void saxpy(global float *y, global const float *x, float a, int n)
{
    int i = ID;
    if (i < n) y[i] = a * x[i] + y[i];
}
kernel void gather(global float *out, global const int *index, global const float *in, int n)
{
    int i = ID;
    float s = 0;
    for (int k = 0; k < 8; k++) s += in[index[(i + k * 4096) & (n - 1)]];
    out[i] = s;
}
kernel void divergent(global uint *out, int n)
{
    uint i = ID, x = i * 2654435761u, steps = 0;
    for (int k = 0; k < n; k++) {
        if (x & 1) { x = x * 3 + 1; steps += 3; if (x & 2) { x ^= x >> 3; steps++; } }
        else { x = x >> 1; steps ^= x; }
        x += i;
    }
    out[i] = steps;
}
kernel void collatz(global uint *out, int n)
{
    uint i = ID, steps = 0;
    for (int r = 0; r < n; r++) {
        uint x = i * 7 + r + 1;
        while (x != 1) {
            if (x & 1) { for (uint k = x & 7; k; k--) steps += k * x; x = 3 * x + 1; }
            else { x >>= 31 - clz(x & -x); steps ^= x; }
            steps++;
        }
    }
    out[i] = steps;
}
kernel void one_arm(global uint *out, int k, int n)
{
    uint i = ID, x = i;
    if ((int)(i & 31) < k)
        for (int s = 0; s < n; s++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; x = x * 1664525u + 1013904223u; x ^= x >> 11; x += i; }
    out[i] = x;
}
kernel void two_arms(global uint *out, int k, int n)
{
    uint i = ID, x = i;
    if ((int)(i & 31) < k)
        for (int s = 0; s < n; s++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; x = x * 1664525u + 1013904223u; x ^= x >> 11; x += i; }
    else
        for (int s = 0; s < n; s++) { x ^= x << 7; x ^= x >> 9; x ^= x << 8; x = x * 22695477u + 12345u; x ^= x >> 15; x -= i; }
    out[i] = x;
}
kernel void scatter(global uint *out, global const uint *in, int n)
{
    uint i = ID;
    out[(i * 2654435761u) & (n - 1)] = in[i];
}
kernel void strided(global float *out, global const float *in, int width, int height)
{
    int x = get_global_id(0), y = get_global_id(1);
    out[x * height + y] = in[y * width + x];
}
kernel void bytes(global uchar *out, global const uchar *in, int n)
{
    int i = ID;
    if (i < n) out[i] = (77 * in[3 * i] + 150 * in[3 * i + 1] + 29 * in[3 * i + 2]) >> 8;
}
kernel void local_array(global uint *out, global const uint *in, int n)
{
    uint i = ID, t[16], s = 0;
    for (int k = 0; k < 16; k++) t[k] = in[i] * (k + 1);
    for (int k = 0; k < n; k++) { uint j = (s + k + i) & 15; s += t[j] ^ k; t[(j * 5 + k) & 15] = s; }
    out[i] = s;
}
kernel void histogram(global uint *bins, global const uint *in, int n)
{
    for (int i = ID; i < n; i += get_global_size(0)) atomic_inc(&bins[in[i] >> 22]);
}
kernel void histogram_shared(global uint *bins, global const uint *in, int n)
{
    local uint h[1024];
    for (int k = get_local_id(0); k < 1024; k += get_local_size(0)) h[k] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = ID; i < n; i += get_global_size(0)) atomic_inc(&h[in[i] >> 22]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = get_local_id(0); k < 1024; k += get_local_size(0)) atomic_add(&bins[k], h[k]);
}
kernel void one_address(global uint *out, global const uint *in, int n)
{
    int i = ID;
    if (i < n) atomic_add(out, in[i]);
}
kernel void atomic_max_(global uint *out, global const uint *in, int n)
{
    int i = ID;
    if (i < n) atomic_max(&out[in[i] & 4095], in[i]);
}
kernel void doubles(global float *out, int n)
{
    int i = ID;
    double x = i * 1e-5, y = 0.5, z = 1;
    for (int k = 0; k < n; k++) { y = y * x + 0.25; z = z * 0.999 + y; x = x - z * 1e-6; }
    out[i] = (float)(z + 1 / (1 + y * y) + sqrt(z));
}
kernel void divisions(global uint *out, int n)
{
    uint i = ID, x = i + 12345u, s = 0;
    for (int k = 1; k <= n; k++) { uint d = (i & 1023) + k; s += x / d + x % (d + 7); x = x * 1664525u + 1013904223u; s ^= (uint)((int)x / (int)(d + 1)); }
    out[i] = s;
}
kernel void longs(global uint *out, int n)
{
    ulong x = (uint)ID + 1ul;
    for (int k = 0; k < n; k++) { x ^= x >> 33; x *= 0xff51afd7ed558ccdul; x ^= x >> 33; x = (x << 13 | x >> 51) + k; }
    out[ID] = (uint)(x >> 32);
}
kernel void accurate(global float *out, global const float *in, int n)
{
    int i = ID;
    float x = in[i], s = 0;
    for (int k = 0; k < n; k++) { s += sin(x) * exp(-x) + sqrt(1 + x * x) + log(2 + x); x += 0.01f; }
    out[i] = s / n;
}
kernel void tree(global uint *out, global const uint *in)
{
    local uint s[256];
    uint t = get_local_id(0);
    s[t] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 128; k; k >>= 1) { if (t < k) s[t] += s[t + k]; barrier(CLK_LOCAL_MEM_FENCE); }
    if (t == 0) out[get_group_id(0)] = s[0];
}
kernel void tiny(global float *out, global const float *in) { out[ID] = in[ID] + 1; }

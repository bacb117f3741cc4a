// SPDX-License-Identifier: Apache-2.0
/* The functions of bench_interp_c.h, compiled with the same flags as everything else, so vectorised
 * as far as the compiler does that at -O2. */
#include <math.h>

#include "bench/bench_interp_c.h"

void c_matmul(const float *x, const float *y, float *z, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float s = 0;
            for (int k = 0; k < n; k++)
                s += x[i * n + k] * y[k * n + j];
            z[i * n + j] = s;
        }
}
void c_alu(unsigned *out, int threads, int n)
{
    for (int t = 0; t < threads; t++) {
        unsigned x = (unsigned)t, y = x ^ 0x9e3779b9u;
        float f = (float)x;
        for (int i = 0; i < n; i++) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            y = y * 1664525u + 1013904223u;
            f = f * 0.999f + 1.0f;
            y += x;
        }
        out[t] = y + (unsigned)f;
    }
}
void c_saxpy(float *y, const float *x, float k, int n)
{
    for (int i = 0; i < n; i++)
        y[i] += k * x[i];
}
void c_gather(float *out, const int *index, const float *in, int n)
{
    for (int i = 0; i < n; i++) {
        float s = 0;
        for (int k = 0; k < 8; k++)
            s += in[index[(i + k * 4096) & (n - 1)]];
        out[i] = s;
    }
}
void c_divergent(unsigned *out, int threads, int n)
{
    for (unsigned i = 0; i < (unsigned)threads; i++) {
        unsigned x = i * 2654435761u, steps = 0;
        for (int k = 0; k < n; k++) {
            if (x & 1) {
                x = x * 3 + 1;
                steps += 3;
                if (x & 2) {
                    x ^= x >> 3;
                    steps++;
                }
            } else {
                x = x >> 1;
                steps ^= x;
            }
            x += i;
        }
        out[i] = steps;
    }
}

void c_collatz(unsigned *out, int threads, int n)
{
    for (unsigned i = 0; i < (unsigned)threads; i++) {
        unsigned steps = 0;
        for (int r = 0; r < n; r++) {
            unsigned x = i * 7 + (unsigned)r + 1;
            while (x != 1) {
                if (x & 1) {
                    for (unsigned k = x & 7; k; k--)
                        steps += k * x;
                    x = 3 * x + 1;
                } else {
                    x >>= __builtin_ctz(x);
                    steps ^= x;
                }
                steps++;
            }
        }
        out[i] = steps;
    }
}

/* Eight fetches along a line through a rotated image of 1024 x 1024, clamped, as the guide defines
 * them. */
static float c_texel(const float *t, int x, int y)
{
    x = x < 0 ? 0 : x > 1023 ? 1023 : x;
    y = y < 0 ? 0 : y > 1023 ? 1023 : y;
    return t[y * 1024 + x];
}
static float c_fetch(const float *t, float u, float v, int linear)
{
    if (!linear)
        return c_texel(t, (int)floorf(u), (int)floorf(v));
    int x = (int)floorf((u - 0.5f) * 256 + 0.5f), y = (int)floorf((v - 0.5f) * 256 + 0.5f);
    float fx = (float)(x & 255) / 256, fy = (float)(y & 255) / 256;
    x >>= 8;
    y >>= 8;
    float p = (1 - fx) * c_texel(t, x, y) + fx * c_texel(t, x + 1, y),
          q = (1 - fx) * c_texel(t, x, y + 1) + fx * c_texel(t, x + 1, y + 1);
    return (1 - fy) * p + fy * q;
}
void c_texture(float *out, const float *t, int linear, int n)
{
    for (int i = 0; i < n; i++) {
        float x = (float)(i & 1023), y = (float)(i >> 10), s = 0;
        float u = 0.8125f * x - 0.25f * y, v = 0.25f * x + 0.8125f * y;
        for (int k = 0; k < 8; k++)
            s += c_fetch(t, u + (float)k, v + 0.5f * (float)k, linear);
        out[i] = s;
    }
}

static unsigned arm(unsigned x, unsigned i, int n)
{
    for (int s = 0; s < n; s++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x = x * 1664525u + 1013904223u;
        x ^= x >> 11;
        x += i;
    }
    return x;
}
static unsigned other_arm(unsigned x, unsigned i, int n)
{
    for (int s = 0; s < n; s++) {
        x ^= x << 7;
        x ^= x >> 9;
        x ^= x << 8;
        x = x * 22695477u + 12345u;
        x ^= x >> 15;
        x -= i;
    }
    return x;
}
void c_arms(unsigned *out, int k, int n, int both, int threads)
{
    for (unsigned i = 0; i < (unsigned)threads; i++)
        out[i] = (int)(i & 31) < k ? arm(i, i, n) : both ? other_arm(i, i, n) : i;
}
void c_scatter(unsigned *out, const unsigned *in, int n)
{
    for (unsigned i = 0; i < (unsigned)n; i++)
        out[i * 2654435761u & (unsigned)(n - 1)] = in[i];
}
void c_strided(float *out, const float *in, int width, int height)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            out[x * height + y] = in[y * width + x];
}
void c_generic_ptr(float *out, const float *x, const float *y, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = x[i] * y[i] + x[n - 1 - i];
}
void c_bytes(unsigned char *out, const unsigned char *in, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = (unsigned char)((77 * in[3 * i] + 150 * in[3 * i + 1] + 29 * in[3 * i + 2]) >> 8);
}
void c_local_array(unsigned *out, const unsigned *in, int n, int threads)
{
    for (unsigned i = 0; i < (unsigned)threads; i++) {
        unsigned t[16], s = 0;
        for (unsigned k = 0; k < 16; k++)
            t[k] = in[i] * (k + 1);
        for (unsigned k = 0; k < (unsigned)n; k++) {
            unsigned j = (s + k + i) & 15;
            s += t[j] ^ k;
            t[(j * 5 + k) & 15] = s;
        }
        out[i] = s;
    }
}
void c_histogram(unsigned *bins, const unsigned *in, int n)
{
    for (int i = 0; i < n; i++)
        bins[in[i] >> 22]++;
}
void c_one_address(unsigned *out, const unsigned *in, int n)
{
    for (int i = 0; i < n; i++)
        out[0] += in[i];
}
void c_float_atomics(float *out, const unsigned *in, int n)
{
    for (int i = 0; i < n; i++)
        out[in[i] >> 20] += (float)(in[i] & 7);
}
void c_atomic_max(unsigned *out, const unsigned *in, int n)
{
    for (int i = 0; i < n; i++)
        if (out[in[i] & 4095] < in[i])
            out[in[i] & 4095] = in[i];
}
void c_doubles(float *out, int n, int threads)
{
    for (int i = 0; i < threads; i++) {
        double x = i * 1e-5, y = 0.5, z = 1;
        for (int k = 0; k < n; k++) {
            y = y * x + 0.25;
            z = z * 0.999 + y;
            x = x - z * 1e-6;
        }
        out[i] = (float)(z + 1 / (1 + y * y) + sqrt(z));
    }
}
void c_divisions(unsigned *out, int n, int threads)
{
    for (unsigned i = 0; i < (unsigned)threads; i++) {
        unsigned x = i + 12345u, s = 0;
        for (unsigned k = 1; k <= (unsigned)n; k++) {
            unsigned d = (i & 1023) + k;
            s += x / d + x % (d + 7);
            x = x * 1664525u + 1013904223u;
            s ^= (unsigned)((int)x / (int)(d + 1));
        }
        out[i] = s;
    }
}
void c_longs(unsigned *out, int n, int threads)
{
    for (int i = 0; i < threads; i++) {
        unsigned long long x = (unsigned long long)i + 1;
        for (int k = 0; k < n; k++) {
            x ^= x >> 33;
            x *= 0xff51afd7ed558ccdull;
            x ^= x >> 33;
            x = (x << 13 | x >> 51) + (unsigned long long)k;
        }
        out[i] = (unsigned)(x >> 32);
    }
}
void c_intrinsics(float *out, const float *in, int n, int threads)
{
    for (int i = 0; i < threads; i++) {
        float x = in[i], s = 0;
        for (int k = 0; k < n; k++) {
            s += sinf(x) * expf(-x) + 1 / sqrtf(1 + x * x) + logf(2 + x);
            x += 0.01f;
        }
        out[i] = s / (float)n;
    }
}
void c_special(float *out, const float *in, int n, int threads)
{
    for (int i = 0; i < threads; i++) {
        float x = in[i], s = 0;
        for (int k = 0; k < n; k++) {
            s += sinf(x) * expf(-x) + sqrtf(1 + x * x) + logf(2 + x);
            x += 0.01f;
        }
        out[i] = s / (float)n;
    }
}
void c_reduction(unsigned *out, const unsigned *in, int block, int n_blocks)
{
    for (int b = 0; b < n_blocks; b++) {
        unsigned s = 0;
        for (int k = 0; k < block; k++)
            s += in[b * block + k];
        out[b] = s;
    }
}
void c_ballots(unsigned *out, int n, int threads)
{
    for (unsigned w = 0; w < (unsigned)threads; w += 32) {
        unsigned x[32], s = 0;
        for (unsigned i = 0; i < 32; i++)
            x[i] = (w + i) * 2654435761u;
        for (int k = 0; k < n; k++) {
            unsigned any = 0;
            for (unsigned i = 0; i < 32; i++) {
                s += x[i] & 1;
                any |= (x[i] & 255) == 0;
                x[i] = x[i] * 1664525u + 1013904223u;
                x[i] ^= x[i] >> 16;
            }
            s += any ? 3 : 0;
        }
        for (unsigned i = 0; i < 32; i++)
            out[w + i] = s;
    }
}
static __attribute__((noinline)) unsigned f_mix(unsigned x, unsigned k)
{
    return (x ^ x >> 15) * 2246822519u + k;
}
static __attribute__((noinline)) unsigned f_rot(unsigned x, unsigned k)
{
    return (x << 7 | x >> 25) ^ k;
}
void c_calls(unsigned *out, int n, int indirect, int threads)
{
    static unsigned (*const volatile f[2])(unsigned, unsigned) = {f_mix, f_rot};
    for (unsigned i = 0; i < (unsigned)threads; i++) {
        unsigned x = i;
        for (unsigned k = 0; k < (unsigned)n; k++)
            x = indirect ? f[(k + (i >> 5)) & 1](x, k) : f_rot(f_mix(x, k), i);
        out[i] = x;
    }
}
void c_tiny(float *out, const float *in, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = in[i] + 1;
}

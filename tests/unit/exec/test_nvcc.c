// SPDX-License-Identifier: Apache-2.0
/* Kernels as nvcc compiles them (tests/ptx_run/kernels.cu, three ways) against the same work in
 * C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

enum { N = 2048 };
static const char *variant;
static uint32_t seed = 1;
static uint32_t next(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed ^ seed >> 15;
}

static int setup(void **state)
{
    struct fix *f = calloc(1, sizeof(*f));
    char path[512], *text;
    snprintf(path, sizeof(path), WS_SRCDIR "/tests/ptx_run/kernels.%s.ptx", variant);
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    fix_init(f);
    if (n)
        fix_must_load(f, text);
    free(text);
    *state = f;
    return n ? 0 : -1;
}
static void launch(struct fix *f, const char *kernel, unsigned grid, unsigned block,
                   const void *params)
{
    fix_run(f, &(struct launch){.kernel = kernel,
                                .grid = {grid},
                                .block = {block},
                                .params = params,
                                .co_resident = 3});
}

static void test_reduce(void **state)
{
    struct fix *f = *state;
    uint64_t in = fix_alloc(f, N * 4), out = fix_alloc(f, 4);
    int *v = fix_host(f, in), want = 0;
    for (int i = 0; i < N; i++)
        want += v[i] = (int)(next() % 1000) - 300;
    struct {
        uint64_t in, out;
        int n;
    } p = {in, out, N};
    launch(f, "reduce_shuffle", 3, 256, &p);
    assert_int_equal(*(int *)fix_host(f, out), want);
}

static int by_value(const void *a, const void *b)
{
    unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return x < y ? -1 : x > y;
}
static void test_bitonic(void **state)
{
    struct fix *f = *state;
    uint64_t data = fix_alloc(f, 2048);
    unsigned *v = fix_host(f, data), want[512];
    for (int i = 0; i < 512; i++)
        v[i] = next();
    memcpy(want, v, sizeof(want));
    qsort(want, 512, 4, by_value);
    launch(f, "bitonic", 1, 256, &data);
    assert_memory_equal(v, want, sizeof(want));
}

static void test_histogram(void **state)
{
    struct fix *f = *state;
    uint64_t in = fix_alloc(f, N), out = fix_alloc(f, 1024);
    uint8_t *v = fix_host(f, in);
    unsigned want[256] = {0};
    for (int i = 0; i < N; i++)
        want[v[i] = (uint8_t)(next() % 200)]++;
    struct {
        uint64_t in, out;
        int n;
    } p = {in, out, N};
    launch(f, "histogram", 4, 96, &p);
    assert_memory_equal(fix_host(f, out), want, sizeof(want));
}

static unsigned rotl8(unsigned v)
{
    return v << 8 | v >> 24;
}
static void test_tables(void **state)
{
    struct fix *f = *state;
    uint64_t data = fix_alloc(f, 1024), keys = fix_alloc(f, 40);
    unsigned *v = fix_host(f, data), *k = fix_host(f, keys), want[256], t[256];
    unsigned char sbox[256];
    for (unsigned i = 0; i < 256; i += 4) { /* as the initialiser of kernels.cu */
        sbox[i] = (unsigned char)i, sbox[i + 1] = (unsigned char)(i * 7 + 3),
        sbox[i + 2] = (unsigned char)(i * 31 + 5), sbox[i + 3] = (unsigned char)(i ^ 0x5a);
    }
    for (unsigned i = 0; i < 256; i++)
        t[i] = (sbox[i] * 0x01010101u) ^ i << 24;
    for (int i = 0; i < 10; i++)
        k[i] = next();
    for (int i = 0; i < 256; i++) {
        unsigned x = v[i] = next();
        for (int r = 0; r < 10; r++) {
            unsigned h = t[x >> 16 & 255];
            x = t[x & 255] ^ rotl8(t[x >> 8 & 255]) ^ (h >> 16 | h << 16) ^ sbox[x >> 24] ^ k[r];
        }
        want[i] = x;
    }
    struct {
        uint64_t data, keys;
        int rounds;
    } p = {data, keys, 10};
    launch(f, "tables", 2, 128, &p);
    assert_memory_equal(v, want, sizeof(want));
}

static double cnd(double d)
{
    double k = 1 / (1 + 0.2316419 * fabs(d));
    double c = 0.39894228 * exp(-0.5 * d * d) *
               (k * (0.31938153 + k * (-0.356563782 +
                                       k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))));
    return d > 0 ? 1 - c : c;
}
static void test_black_scholes(void **state)
{
    struct fix *f = *state;
    uint64_t b[4];
    float *v[4];
    for (int k = 0; k < 4; k++) {
        b[k] = fix_alloc(f, N * 4);
        v[k] = fix_host(f, b[k]);
    }
    for (int i = 0; i < N; i++) {
        v[1][i] = 5 + (float)(next() % 2500) / 100;
        v[2][i] = 1 + (float)(next() % 9900) / 100;
        v[3][i] = 0.25f + (float)(next() % 975) / 100;
    }
    struct {
        uint64_t b[4];
        int n;
    } p = {{b[0], b[1], b[2], b[3]}, N - 5};
    launch(f, "black_scholes", N / 128, 128, &p);
    for (int i = 0; i < N - 5; i++) {
        double s = v[1][i], x = v[2][i], t = v[3][i],
               d1 = (log(s / x) + (0.02 + 0.5 * 0.09) * t) / (0.3 * sqrt(t)),
               d2 = d1 - 0.3 * sqrt(t);
        assert_true(fabs(v[0][i] - (s * cnd(d1) - x * exp(-0.02 * t) * cnd(d2))) < 1e-4 * s);
    }
    assert_true(v[0][N - 1] == 0);
}

static void test_monte_carlo(void **state)
{
    struct fix *f = *state;
    uint64_t hits = fix_alloc(f, 8), want = 0;
    for (unsigned i = 0; i < 512; i++) {
        unsigned x = i * 2654435761u + 1;
        for (int k = 0; k < 50; k++) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            float a = (float)(x >> 8) * (1.0f / 16777216.0f);
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            float b = (float)(x >> 8) * (1.0f / 16777216.0f);
            want += fmaf(a, a, b * b) < 1.0f;
        }
    }
    struct {
        uint64_t hits;
        unsigned steps;
    } p = {hits, 50};
    launch(f, "monte_carlo", 4, 128, &p);
    uint64_t got = *(uint64_t *)fix_host(f, hits);
    assert_in_range(got, want - 2, want + 2); /* rounding at the circle */
}

static void test_doubles(void **state)
{
    struct fix *f = *state;
    uint64_t out = fix_alloc(f, N * 8), in = fix_alloc(f, N * 8);
    double *o = fix_host(f, out), *v = fix_host(f, in);
    for (int i = 0; i < N; i++)
        v[i] = (double)(int)next() / 3e8;
    struct {
        uint64_t out, in;
        int n;
    } p = {out, in, N};
    launch(f, "doubles", N / 64, 64, &p);
    for (int i = 0; i < N; i++) {
        double want = sqrt(v[i] * v[i] + 1) / (1 + fabs(v[i])) + exp(-v[i] * v[i]) +
                      sin(v[i]) * log(2 + v[i] * v[i]) + pow(fabs(v[i]), 0.3);
        assert_true(fabs(o[i] - want) <= 1e-13 * (1 + fabs(want)));
    }
}

static int gcd(int a, int b)
{
    return b ? gcd(b, a % b) : a;
}
static int ackermann(int m, int n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
static void test_calls(void **state)
{
    struct fix *f = *state;
    uint64_t out = fix_alloc(f, 100 * 8);
    struct {
        uint64_t out;
        int n;
    } p = {out, 100};
    launch(f, "calls", 2, 64, &p);
    for (int i = 0; i < 100; i++) {
        int b = i * 6 + 12, c = i * 4 + 8;
        int64_t a = i + (int64_t)gcd(b, c) * 3;
        a += (int64_t)gcd(c, b) * 5;
        int64_t want = a * 1000003 + b * 17 + c + ackermann(2, i % 4) +
                       (i % 3 == 0   ? i + 7
                        : i % 3 == 1 ? i * 7
                        : i > 7      ? i
                                     : 7);
        assert_int_equal(((int64_t *)fix_host(f, out))[i], want);
    }
}

static void test_local_array(void **state)
{
    struct fix *f = *state;
    uint64_t out = fix_alloc(f, 200 * 4);
    struct {
        uint64_t out;
        int n;
    } p = {out, 200};
    launch(f, "local_array", 2, 128, &p);
    for (int i = 0; i < 200; i++) {
        unsigned a[32];
        for (int k = 0; k < 32; k++)
            a[k] = (unsigned)(i * 31 + k * k * 7) % 101;
        qsort(a, 32, 4, by_value);
        assert_int_equal(((unsigned *)fix_host(f, out))[i], a[i % 32] * 1000 + a[31]);
    }
}

static void test_maths(void **state)
{
    struct fix *f = *state;
    uint64_t out = fix_alloc(f, N * 4), in = fix_alloc(f, N * 4);
    float *o = fix_host(f, out), *v = fix_host(f, in);
    for (int i = 0; i < N; i++)
        v[i] = (float)(int)next() / 5e8f;
    struct {
        uint64_t out, in;
        int n;
    } p = {out, in, N};
    launch(f, "maths", N / 64, 64, &p);
    for (int i = 0; i < N; i++) {
        double x = v[i], want = sin(x) + cos((float)(v[i] * 3)) + exp(-x) + log1p(fabs(x)) +
                                pow((float)(fabsf(v[i]) + 0.1f), 1.7) + atan(x) + tanh(x) +
                                1 / sqrt(x * x + 1) + cbrt(x) + floor(x) + round(x) +
                                fmod(x, 1.3f) + erf(x);
        assert_true(fabs(o[i] - want) <=
                    (strcmp(variant, "fast") == 0 ? 1e-4 : 1e-5) * (1 + fabs(want)));
    }
}

static void test_integers(void **state)
{
    struct fix *f = *state;
    uint64_t out = fix_alloc(f, N * 8), in = fix_alloc(f, N * 8);
    uint64_t *o = fix_host(f, out), *v = fix_host(f, in);
    for (int i = 0; i < N; i++)
        v[i] = ((uint64_t)next() << 32 | next()) >> next() % 60;
    struct {
        uint64_t out, in;
        int n;
    } p = {out, in, N};
    launch(f, "integers", N / 64, 64, &p);
    for (int i = 0; i < N; i++) {
        uint64_t x = v[i], y = v[N - 1 - i] | 1;
        unsigned a = (unsigned)x, b = (unsigned)y, rev = 0;
        for (int k = 0; k < 32; k++)
            rev |= (a >> k & 1) << (31 - k);
        uint64_t want =
            x / y + x % y + (uint64_t)((int64_t)x / (int64_t)(y | 3)) +
            (uint64_t)((unsigned __int128)x * y >> 64) + (unsigned)__builtin_popcountll(x) +
            (unsigned)(x ? __builtin_clzll(x) : 64) + rev + (unsigned)__builtin_ffs((int)b) +
            a / b + a % b + (uint64_t)((int)a / (int)(b | 2)) +
            (uint64_t)(int)((int64_t)(int)a * (int)b >> 32) + ((a > b ? a - b : b - a) + 5) +
            (uint64_t)(int)((uint8_t)x * (int8_t)y) + (uint64_t)(int)((short)x / (short)(y | 1));
        assert_int_equal(o[i], want);
    }
}

int main(void)
{
    static const char *const variants[] = {"o3", "debug", "fast"}, *const isas[] = {"sse2", "avx2",
                                                                                    "avx512"};
    int bad = 0;
    for (unsigned k = 0; k < WS_ARRAY_SIZE(variants); k++)
        for (unsigned v = 0; v < WS_ARRAY_SIZE(isas); v++) {
            char name[32];
            variant = variants[k];
            setenv("WS_SOFT_ISA", isas[v], 1);
            if (strcmp(ws_exec_isa(), isas[v]) != 0)
                continue; /* the processor lacks it */
            snprintf(name, sizeof(name), "%s, %s", variant, isas[v]);
#define T(test) cmocka_unit_test_setup_teardown(test, setup, fix_teardown)
            const struct CMUnitTest tests[] = {
                T(test_reduce),        T(test_bitonic),     T(test_histogram), T(test_tables),
                T(test_black_scholes), T(test_monte_carlo), T(test_doubles),   T(test_calls),
                T(test_local_array),   T(test_maths),       T(test_integers),
            };
            bad += cmocka_run_group_tests_name(name, tests, NULL, NULL);
        }
    return bad;
}

// SPDX-License-Identifier: Apache-2.0
/* bench_interp - thread-instructions per second of the interpreter, one host thread, beside the same work in C.
 * Usage: bench_interp [--json] [seconds of each [name]]. Median of 5 runs; each kernel's result is checked against the C function's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/texture.h"
#include "device/soft/exec.h"

__asm__(".section .rodata\n.globl bench_ptx\nbench_ptx:\n.incbin \"" WS_SRCDIR
        "/bench/bench_interp.ptx\"\n.byte 0\n.previous\n");
extern const char bench_ptx[];

enum { RUNS = 5, MAT = 256, VEC = 1 << 20, ALU_THREADS = 1 << 14, ALU_STEPS = 64, DIV_STEPS = 32 };

static struct ws_space *space;
static struct ws_code *code;
static float *a, *b, *c, *want;
static int *idx;
static double seconds = 0.1;

/* CPU time of this thread: what else the machine does, does not count. */
static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- the same work in C ---- */
#define NOINLINE __attribute__((noinline))
static NOINLINE void c_matmul(const float *x, const float *y, float *z, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float s = 0;
            for (int k = 0; k < n; k++)
                s += x[i * n + k] * y[k * n + j];
            z[i * n + j] = s;
        }
}
static NOINLINE void c_alu(unsigned *out, int threads, int n)
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
static NOINLINE void c_saxpy(float *y, const float *x, float k, int n)
{
    for (int i = 0; i < n; i++)
        y[i] += k * x[i];
}
static NOINLINE void c_gather(float *out, const int *index, const float *in, int n)
{
    for (int i = 0; i < n; i++) {
        float s = 0;
        for (int k = 0; k < 8; k++)
            s += in[index[(i + k * 4096) & (n - 1)]];
        out[i] = s;
    }
}
static NOINLINE void c_divergent(unsigned *out, int threads, int n)
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

static NOINLINE void c_collatz(unsigned *out, int threads, int n)
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

/* Eight fetches along a line through a rotated image of 1024 x 1024, clamped, as the guide defines them. */
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
static NOINLINE void c_texture(float *out, const float *t, int linear)
{
    for (int i = 0; i < VEC; i++) {
        float x = (float)(i & 1023), y = (float)(i >> 10), s = 0;
        float u = 0.8125f * x - 0.25f * y, v = 0.25f * x + 0.8125f * y;
        for (int k = 0; k < 8; k++)
            s += c_fetch(t, u + (float)k, v + 0.5f * (float)k, linear);
        out[i] = s;
    }
}

/* ---- benchmarks ---- */
struct bench {
    const char *name, *kernel;
    uint32_t grid[3], block[3];
    struct {
        uint64_t p[4];
    } params; /* as the kernel lays them out */
    void (*reference)(void);
    size_t result_bytes;
    bool floats;
};
static uint64_t va(const void *p)
{
    return (uint64_t)(uintptr_t)p & ((UINT64_C(1) << 47) - 1);
}
static void ref_matmul(void)
{
    c_matmul(a, b, want, MAT);
}
static void ref_alu(void)
{
    c_alu((unsigned *)want, ALU_THREADS, ALU_STEPS);
}
static void ref_saxpy(void)
{
    memset(want, 0, VEC * 4);
    c_saxpy(want, a, 2.0f, VEC);
}
static void ref_gather(void)
{
    c_gather(want, idx, a, VEC);
}
static void ref_collatz(void)
{
    c_collatz((unsigned *)want, ALU_THREADS, 1);
}
static void ref_divergent(void)
{
    c_divergent((unsigned *)want, ALU_THREADS, DIV_STEPS);
}
static void ref_point(void)
{
    c_texture(want, a, 0);
}
static void ref_linear(void)
{
    c_texture(want, a, 1);
}

static uint64_t launch(const struct bench *t)
{
    struct ws_grid g = {
        .code = code, .params = (const uint8_t *)&t->params, .space = space, .n_sms = 1, .sm = 75};
    struct ws_work w = {.n_thread_insns = 0};
    struct ws_blockrun *run;
    uint32_t n;
    const struct ws_kernel_info *k = ws_code_kernels(code, &n);
    while (g.kernel < n && strcmp(k[g.kernel].name, t->kernel) != 0)
        g.kernel++;
    memcpy(g.grid, t->grid, sizeof g.grid);
    memcpy(g.block, t->block, sizeof g.block);
    if (g.kernel == n || ws_blockrun_new(&run, &g) != 0)
        exit(2);
    for (uint64_t i = 0; i < (uint64_t)g.grid[0] * g.grid[1] * g.grid[2]; i++) {
        ws_blockrun_start(run, i, 0, 0);
        while (ws_blockrun_step(run, 1 << 16, &w) == WS_STEP_MORE)
            ;
    }
    ws_blockrun_free(run);
    if (g.stop) {
        fprintf(stderr, "bench_interp: %s\n", g.text);
        exit(2);
    }
    return w.n_thread_insns;
}

static int by_value(const void *x, const void *y)
{
    double d = *(const double *)x - *(const double *)y;
    return d < 0 ? -1 : d > 0;
}

/* C of a generic build multiplies and adds in two roundings, the GPU in one. */
static bool same(const struct bench *t)
{
    if (!t->floats)
        return memcmp(c, want, t->result_bytes) == 0;
    for (size_t k = 0; k < t->result_bytes / 4; k++)
        if (fabsf(c[k] - want[k]) > 1e-4f)
            return false;
    return true;
}

static int measure(const struct bench *t, bool json)
{
    double rate[RUNS], slow[RUNS];
    for (int r = 0; r < RUNS; r++) {
        uint64_t insns = 0, launches = 0, start = cpu_ns(), ns, c_start, c_runs = 0;
        do {
            memset(c, 0, VEC * 4);
            insns += launch(t);
            launches++;
            ns = cpu_ns() - start;
        } while ((double)ns < seconds * 1e9);
        c_start = cpu_ns();
        uint64_t c_ns;
        do {
            t->reference();
            c_runs++;
            c_ns = cpu_ns() - c_start;
        } while ((double)c_ns < seconds * 2e8);
        rate[r] = (double)insns / (double)ns * 1e3; /* million a second */
        slow[r] = (double)ns / (double)launches / ((double)c_ns / (double)c_runs);
    }
    bool ok = same(t);
    qsort(rate, RUNS, sizeof *rate, by_value);
    qsort(slow, RUNS, sizeof *slow, by_value);
    if (json)
        printf("{\"bench\":\"interp\",\"name\":\"%s\",\"isa\":\"%s\",\"mega_thread_insns_per_s\":%."
               "1f,\"times_c\":%.2f,\"correct\":%s}\n",
               t->name, ws_exec_isa(), rate[RUNS / 2], slow[RUNS / 2], ok ? "true" : "false");
    else
        printf("%-14s %-7s %8.0f M thread-insns/s   %6.2f x the time of C -O2 %s\n", t->name,
               ws_exec_isa(), rate[RUNS / 2], slow[RUNS / 2], ok ? "" : "WRONG RESULT");
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    if (argc > 1 + json)
        seconds = atof(argv[1 + json]);
    struct ws_ptx_module *m;
    struct ws_diags diags = WS_DIAGS_NULL;
    if (ws_ptx_parse(&m, bench_ptx, strlen(bench_ptx), "bench_interp.ptx", &diags) != 0 ||
        ws_code_new(&code, m, &diags) != 0 || ws_space_new(&space) != 0) {
        char *text = ws_diags_text(&diags);
        fputs(text ? text : "", stderr);
        return 2;
    }
    uint32_t n_kernels;
    const struct ws_kernel_info *infos = ws_code_kernels(code, &n_kernels);
    for (uint32_t k = 0; k < n_kernels; k++)
        if (infos[k].unsupported) {
            fprintf(stderr, "%s: %s\n", infos[k].name, infos[k].unsupported);
            return 2;
        }
    void **all[] = {(void **)&a, (void **)&b, (void **)&c, (void **)&want, (void **)&idx};
    for (size_t k = 0; k < WS_ARRAY_SIZE(all); k++) {
        *all[k] = aligned_alloc(4096, VEC * 4);
        if (!*all[k] || ws_space_map_host(space, va(*all[k]), VEC * 4, *all[k]) != 0)
            return 2;
    }
    unsigned seed = 1;
    for (int i = 0; i < VEC; i++) {
        seed = seed * 1664525u + 1013904223u;
        a[i] = (float)(int)(seed >> 16) / 65536.0f - 0.5f;
        b[i] = (float)(int)(seed >> 8 & 0xffff) / 65536.0f - 0.5f;
        idx[i] = (int)(seed >> 12);
    }
    struct ws_texture *textures = aligned_alloc(4096, 8192);
    if (!textures || ws_space_map_host(space, va(textures), 8192, textures) != 0)
        return 2;
    for (int k = 0; k < 2; k++)
        textures[k] = (struct ws_texture){
            .magic = WS_TEXTURE_MAGIC,
            .shape = WS_TEX_2D,
            .format = WS_TEX_F32,
            .n_channels = 1,
            .n_levels = 1,
            .address_mode = {WS_TEX_CLAMP, WS_TEX_CLAMP, WS_TEX_CLAMP},
            .flags = k ? WS_TEX_FILTER_LINEAR : 0,
            .level =
                {{.address = va(a), .row_bytes = 4096, .width = 1024, .height = 1024, .depth = 1}},
        };
    struct bench list[] = {
        {"matmul naive",
         "matmul_naive",
         {MAT / 16, MAT / 16, 1},
         {16, 16, 1},
         {{va(a), va(b), va(c), MAT}},
         ref_matmul,
         MAT * MAT * 4,
         true},
        {"matmul tiled",
         "matmul_tiled",
         {MAT / 16, MAT / 16, 1},
         {16, 16, 1},
         {{va(a), va(b), va(c), MAT}},
         ref_matmul,
         MAT * MAT * 4,
         true},
        {"alu",
         "alu",
         {ALU_THREADS / 256, 1, 1},
         {256, 1, 1},
         {{va(c), ALU_STEPS}},
         ref_alu,
         ALU_THREADS * 4,
         false},
        {"saxpy",
         "saxpy",
         {VEC / 256, 1, 1},
         {256, 1, 1},
         {{va(c), va(a), UINT64_C(0x40000000) | (uint64_t)VEC << 32}},
         ref_saxpy,
         VEC * 4,
         true},
        {"gather",
         "gather",
         {VEC / 256, 1, 1},
         {256, 1, 1},
         {{va(c), va(idx), va(a), VEC}},
         ref_gather,
         VEC * 4,
         true},
        {"divergent",
         "divergent",
         {ALU_THREADS / 256, 1, 1},
         {256, 1, 1},
         {{va(c), DIV_STEPS}},
         ref_divergent,
         ALU_THREADS * 4,
         false},
        {"collatz",
         "collatz",
         {ALU_THREADS / 256, 1, 1},
         {256, 1, 1},
         {{va(c), 1}},
         ref_collatz,
         ALU_THREADS * 4,
         false},
        {"texture point",
         "texture",
         {VEC / 256, 1, 1},
         {256, 1, 1},
         {{va(c), va(&textures[0])}},
         ref_point,
         VEC * 4,
         true},
        {"texture linear",
         "texture",
         {VEC / 256, 1, 1},
         {256, 1, 1},
         {{va(c), va(&textures[1])}},
         ref_linear,
         VEC * 4,
         true},
    };
    int bad = 0;
    for (size_t k = 0; k < WS_ARRAY_SIZE(list); k++)
        if (argc <= 2 + json || strcmp(argv[2 + json], list[k].name) == 0)
            bad |= measure(&list[k], json);
    ws_code_free(code);
    ws_ptx_module_free(m);
    return bad;
}

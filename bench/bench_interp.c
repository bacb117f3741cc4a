// SPDX-License-Identifier: Apache-2.0
/* Measures the interpreter: thread instructions per second of one host thread, beside the same work
 * in C. Each figure is the median of 5 runs, and each kernel's result is checked against the C
 * function's. Rows of diverged lanes also give their share of a reference row's warp instructions
 * per second: 100 % means that a warp with k active lanes costs as much as a full one, so that
 * nothing but the idle lanes is lost.
 *
 * With --pocl, the same kernels in OpenCL C are run by pocl on this thread in turns with them,
 * where pocl is installed; it checks no address and counts nothing.
 *
 * Which memory is touched is recorded, as it is for GPUs whose energy follows from that. With
 * --recording, each row is what this costs: the time of a kernel with it and without, in turns, the
 * shortest of each. What else is counted cannot be left out.
 *
 * Usage: bench_interp [--json | --recording | --pocl] [seconds of each [name]]. Each row first runs
 * for WS_BENCH_WARM seconds, 0 unless it is set, which are not measured. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/texture.h"
#include "bench/bench_interp_c.h"
#include "bench/opencl/peer.h"
#include "device/soft/exec/exec.h"
#include "device/soft/exec/reuse.h"

__asm__(".section .rodata\n.globl bench_ptx\nbench_ptx:\n.incbin \"" WS_SRCDIR
        "/bench/bench_interp.ptx\"\n.byte 0\n.previous\n");
extern const char bench_ptx[];

enum {
    RUNS = 5,
    MAT = 256,
    VEC = 1 << 20,
    ALU_THREADS = 1 << 14,
    ALU_STEPS = 64,
    DIV_STEPS = 32,
    ARM_STEPS = 64
};

static struct ws_space *space;
static struct ws_code *code;
static float *a, *b, *c, *want;
static int *idx;
static unsigned *raw;
static _Float16 *halves_a, *halves_b;
static float *halved_a, *halved_b; /* the same values */
static uint64_t *var_va;           /* the module's variables (tables of sinf()) */
static double seconds = 0.1;
static bool records = true; /* which memory is touched */
static bool by_pocl;
static double pocl_log_sum; /* of the rows' times over pocl's, which are n_pocl */
static int n_pocl;

/* CPU time of this thread: what else the machine does, does not count. */
static uint64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- benchmarks ---- */
enum how { EXACT, FLOATS /* rounded differently: C of a generic build does not fuse */ };
struct bench {
    const char *name, *kernel;
    uint32_t grid[2], block[2];
    struct {
        uint64_t p[4];
    } params; /* as the kernel lays them out */
    void (*reference)(void);
    size_t result_bytes;
    enum how how;
    const char *beside; /* the row whose warp instructions a second this one must keep up with */
};
static uint64_t va(const void *p)
{
    return (uint64_t)(uintptr_t)p & ((UINT64_C(1) << 47) - 1);
}
#define UINTS(p) ((unsigned *)(void *)(p))
#define REF(name, ...)                                                                             \
    static void ref_##name(void)                                                                   \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }

REF(matmul, c_matmul(a, b, want, MAT))
REF(tensor, c_matmul(halved_a, halved_b, want, MAT))
REF(alu, c_alu(UINTS(want), ALU_THREADS, ALU_STEPS))
REF(saxpy, memset(want, 0, VEC * 4); c_saxpy(want, a, 2.0f, VEC))
REF(gather, c_gather(want, idx, a, VEC))
REF(collatz, c_collatz(UINTS(want), ALU_THREADS, 1))
REF(divergent, c_divergent(UINTS(want), ALU_THREADS, DIV_STEPS))
REF(point, c_texture(want, a, 0, VEC))
REF(linear, c_texture(want, a, 1, VEC))
REF(arm32, c_arms(UINTS(want), 32, ARM_STEPS, 0, ALU_THREADS))
REF(arm16, c_arms(UINTS(want), 16, ARM_STEPS, 0, ALU_THREADS))
REF(arm8, c_arms(UINTS(want), 8, ARM_STEPS, 0, ALU_THREADS))
REF(arm1, c_arms(UINTS(want), 1, ARM_STEPS, 0, ALU_THREADS))
REF(both16, c_arms(UINTS(want), 16, ARM_STEPS, 1, ALU_THREADS))
REF(both31, c_arms(UINTS(want), 31, ARM_STEPS, 1, ALU_THREADS))
REF(scatter, c_scatter(UINTS(want), raw, VEC))
REF(strided, c_strided(want, a, 1024, VEC / 1024))
REF(generic, c_generic_ptr(want, a, b, VEC))
REF(bytes, c_bytes((uint8_t *)want, (const uint8_t *)raw, VEC))
REF(local_array, c_local_array(UINTS(want), raw, 64, ALU_THREADS))
REF(histogram, memset(want, 0, 4096); c_histogram(UINTS(want), raw, VEC))
REF(one_address, want[0] = 0; c_one_address(UINTS(want), raw, VEC))
REF(float_atomics, memset(want, 0, 16384); c_float_atomics(want, raw, VEC))
REF(atomic_max, memset(want, 0, 16384); c_atomic_max(UINTS(want), raw, VEC))
REF(doubles, c_doubles(want, 64, ALU_THREADS))
REF(divisions, c_divisions(UINTS(want), 64, ALU_THREADS))
REF(longs, c_longs(UINTS(want), 64, ALU_THREADS))
REF(special, c_special(want, a, 32, ALU_THREADS))
REF(intrinsics, c_intrinsics(want, a, 32, ALU_THREADS))
REF(reduction, c_reduction(UINTS(want), raw, 256, VEC / 256))
REF(ballots, c_ballots(UINTS(want), 64, ALU_THREADS))
REF(calls, c_calls(UINTS(want), 64, 0, ALU_THREADS))
REF(calls_indirect, c_calls(UINTS(want), 64, 1, ALU_THREADS))
REF(tiny, c_tiny(want, a, VEC))

struct total {
    uint64_t n_threads, n_warps; /* instructions of threads, of warps */
};
static void launch(const struct bench *t, struct total *total)
{
    struct ws_grid g = {.code = code,
                        .params = (const uint8_t *)&t->params,
                        .space = space,
                        .var_va = var_va,
                        .n_sms = 1,
                        .sm = 75};
    struct ws_exec_work w = {.n_thread_insns = 0};
    struct ws_blockrun *run;
    uint32_t n;
    const struct ws_kernel_info *k = ws_code_kernels(code, &n);
    while (g.kernel < n && strcmp(k[g.kernel].name, t->kernel) != 0)
        g.kernel++;
    for (int d = 0; d < 3; d++) {
        g.grid[d] = d < 2 ? t->grid[d] : 1;
        g.block[d] = d < 2 ? t->block[d] : 1;
    }
    static const struct ws_reuse_cache cache = {
        .l1_bytes = 65536, .l2_bytes = 1 << 22, .n_sms = 30, .blocks_per_sm = 8};
    if (records)
        g.reuse = ws_reuse_new(&cache, (uint64_t)g.grid[0] * g.grid[1]);
    if (g.kernel == n || (records && !g.reuse) || ws_blockrun_new(&run, &g) != 0)
        exit(2);
    enum { STEP_INSNS = 1 << 16, AT_ONCE = 32 };
    struct ws_block_ask asks[AT_ONCE];
    uint64_t n_blocks = (uint64_t)g.grid[0] * g.grid[1];
    for (uint64_t i = 0, begun; i < n_blocks && !g.stop; i += begun) {
        uint32_t n_asks = (uint32_t)WS_MIN(n_blocks - i, (uint64_t)AT_ONCE);
        for (uint32_t j = 0; j < n_asks; j++)
            asks[j] = (struct ws_block_ask){.linear = i + j, .work = &w};
        begun = ws_blockrun_run(run, asks, n_asks, STEP_INSNS, STEP_INSNS);
        enum ws_step step = asks[begun - 1].step;
        while (step == WS_STEP_MORE)
            step = ws_blockrun_step(run, STEP_INSNS, &w);
    }
    ws_blockrun_free(run);
    free(g.reuse);
    if (g.stop) {
        fprintf(stderr, "bench_interp: %s\n", g.text);
        exit(2);
    }
    total->n_threads += w.n_thread_insns;
    for (int d = 0; d < _WS_WORK_N; d++)
        total->n_warps += w.n_warp_insns[d];
}

static int by_value(const void *x, const void *y)
{
    double d = *(const double *)x - *(const double *)y;
    return d < 0 ? -1 : d > 0;
}
static double median(double *v)
{
    qsort(v, RUNS, sizeof(*v), by_value);
    return v[RUNS / 2];
}

static bool same(const struct bench *t)
{
    if (t->how == EXACT)
        return memcmp(c, want, t->result_bytes) == 0;
    for (size_t k = 0; k < t->result_bytes / 4; k++)
        if (!(fabsf(c[k] - want[k]) <= 1e-4f * (1 + fabsf(want[k]))))
            return false;
    return true;
}

/* A kernel's rates and how long it takes in C, both for at least the wanted time, once. */
static void once(const struct bench *t, double *ret_threads, double *ret_warps, double *ret_times_c)
{
    struct total total = {0};
    uint64_t launches = 0, start = cpu_ns(), ns, c_start, c_ns, c_runs = 0;
    do {
        memset(c, 0, t->result_bytes);
        launch(t, &total);
        launches++;
        ns = cpu_ns() - start;
    } while ((double)ns < seconds * 1e9);
    *ret_threads = (double)total.n_threads / (double)ns * 1e3; /* million a second */
    *ret_warps = (double)total.n_warps / (double)ns * 1e3;
    if (!ret_times_c)
        return;
    c_start = cpu_ns();
    do {
        t->reference();
        c_runs++;
        c_ns = cpu_ns() - c_start;
    } while ((double)c_ns < seconds * 2e8);
    *ret_times_c = (double)ns / (double)launches / ((double)c_ns / (double)c_runs);
}

/* CPU time of one launch, a mean over at least @wanted_s. */
static double launch_ns(const struct bench *t, double wanted_s)
{
    struct total total = {0};
    uint64_t launches = 0, start = cpu_ns(), ns;
    do {
        launch(t, &total);
        launches++;
        ns = cpu_ns() - start;
    } while ((double)ns < wanted_s * 1e9);
    return (double)ns / (double)launches;
}

/* CPU time of one launch by pocl; 0: it has no such kernel. */
static double once_pocl(const struct bench *t, double *ret_wrong)
{
    uint64_t runs = 0, start, ns;
    if (!cl_prepare(t->kernel, &t->params, t->grid, t->block) || !cl_launch())
        return 0;
    start = cpu_ns();
    do {
        memset(c, 0, t->result_bytes);
        if (!cl_launch())
            return 0;
        runs++;
        ns = cpu_ns() - start;
    } while ((double)ns < seconds * 2e8);
    *ret_wrong = !same(t);
    return (double)ns / (double)runs;
}

/* The row's time over pocl's, in turns. Return: 0: there is none. */
static double measure_pocl(const struct bench *t, bool *ret_wrong)
{
    double ratio[RUNS], wrong = 0;
    for (int r = 0; r < RUNS; r++) {
        double own, other = once_pocl(t, &wrong);
        if (other == 0)
            return 0;
        *ret_wrong |= wrong != 0;
        own = launch_ns(t, seconds / RUNS);
        ratio[r] = own / other;
    }
    return median(ratio);
}

static void warm_up(const struct bench *t)
{
    const char *s = getenv("WS_BENCH_WARM");
    struct total unused = {0};
    double ns = s ? atof(s) * 1e9 : 0;
    for (uint64_t start = cpu_ns(); (double)(cpu_ns() - start) < ns;)
        launch(t, &unused);
}

static int measure(const struct bench *t, const struct bench *beside, bool json)
{
    double rate[RUNS], slow[RUNS], share[RUNS], warps, unused, full;
    char pace[64] = "", beside_pocl[64] = "";
    warm_up(t);
    for (int r = 0; r < RUNS; r++) {
        if (beside) /* in turn with it, so that both see the same machine */
            once(beside, &unused, &full, NULL);
        once(t, &rate[r], &warps, &slow[r]);
        if (beside)
            share[r] = warps / full * 100;
    }
    bool ok = same(t), pocl_wrong = false;
    double pocl = by_pocl ? measure_pocl(t, &pocl_wrong) : 0;
    if (pocl > 0) {
        pocl_log_sum += log(pocl);
        n_pocl++;
        snprintf(beside_pocl, sizeof(beside_pocl), "   %6.2f x the time of pocl%s", pocl,
                 pocl_wrong ? ", whose result is WRONG" : "");
    }
    double m_rate = median(rate), m_slow = median(slow);
    if (beside)
        snprintf(pace, sizeof(pace),
                 json ? ",\"percent_of_full_warps\":%.1f" : "  %5.1f %% of the pace of \"%s\"",
                 median(share), beside->name);
    if (json)
        printf("{\"bench\":\"interp\",\"name\":\"%s\",\"isa\":\"%s\",\"mega_thread_insns_per_s\":%."
               "1f,\"times_c\":%.2f%s,\"correct\":%s}\n",
               t->name, ws_exec_isa(), m_rate, m_slow, pace, ok ? "true" : "false");
    else
        printf("%-16s %-7s %8.0f M thread-insns/s   %6.2f x the time of C -O2%s%s%s\n", t->name,
               ws_exec_isa(), m_rate, m_slow, beside_pocl, pace, ok ? "" : " WRONG RESULT");
    return ok ? 0 : 1;
}

/* Return: how much longer a launch takes with recording, as a share. */
static double measure_recording(const struct bench *t)
{
    enum { TURNS = 20 };
    double best[2] = {INFINITY, INFINITY};
    for (int turn = 0; turn < TURNS; turn++) {
        records = turn % 2;
        best[records] = fmin(best[records], launch_ns(t, seconds / TURNS));
    }
    records = true;
    double cost = best[1] / best[0] - 1;
    printf("%-16s recording costs %5.1f %%\n", t->name, 100 * cost);
    return cost;
}

static int place_variables(const struct ws_ptx_module *m)
{
    var_va = calloc(m->n_vars + 1, sizeof(*var_va));
    for (uint32_t k = 0; var_va && k < m->n_vars; k++) {
        const struct ws_ptx_var *v = &m->vars[k];
        if (v->space == WS_SP_SHARED)
            continue;
        uint8_t *host = aligned_alloc(4096, 4096);
        if (!host || v->size_bytes > 4096 || ws_space_map_host(space, va(host), 4096, host) != 0)
            return -1;
        memset(host, 0, 4096);
        if (v->init)
            memcpy(host, v->init, v->init_bytes);
        var_va[k] = va(host);
    }
    return var_va ? 0 : -1;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    bool recording = argc > 1 && strcmp(argv[1], "--recording") == 0;
    by_pocl = argc > 1 && strcmp(argv[1], "--pocl") == 0;
    int first = 1 + (json || recording || by_pocl), n_measured = 0;
    double log_sum = 0, worst = 0;
    if (argc > first)
        seconds = atof(argv[first]);
    struct ws_ptx_module *m;
    struct ws_diags diags = WS_DIAGS_NULL;
    if (ws_ptx_parse(&m, bench_ptx, strlen(bench_ptx), "bench_interp.ptx", &diags) != 0 ||
        ws_code_new(&code, m, 0, &diags) != 0 || ws_space_new(&space) != 0 ||
        place_variables(m) != 0) {
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
    void **all[] = {(void **)&a,        (void **)&b,       (void **)&c,        (void **)&want,
                    (void **)&idx,      (void **)&raw,     (void **)&halves_a, (void **)&halves_b,
                    (void **)&halved_a, (void **)&halved_b};
    for (size_t k = 0; k < WS_ARRAY_SIZE(all); k++) {
        *all[k] = aligned_alloc(4096, VEC * 4);
        if (!*all[k] || ws_space_map_host(space, va(*all[k]), VEC * 4, *all[k]) != 0)
            return 2;
    }
    void *const memory[] = {a, b, c, idx, raw};
    const char *lacks = by_pocl ? cl_open(memory, WS_ARRAY_SIZE(memory), VEC * 4) : NULL;
    if (lacks)
        fprintf(stderr, "bench_interp: %s: without it\n", lacks);
    by_pocl &= !lacks;
    unsigned seed = 1;
    for (int i = 0; i < VEC; i++) {
        seed = seed * 1664525u + 1013904223u;
        a[i] = (float)(int)(seed >> 16) / 65536.0f - 0.5f;
        b[i] = (float)(int)(seed >> 8 & 0xffff) / 65536.0f - 0.5f;
        idx[i] = (int)(seed >> 12);
        raw[i] = seed ^ seed << 15;
        halved_a[i] = halves_a[i] = (_Float16)a[i];
        halved_b[i] = halves_b[i] = (_Float16)b[i];
    }
    struct ws_texture *textures = aligned_alloc(4096, 8192);
    uint64_t *rows = aligned_alloc(4096, 4096);
    if (!textures || !rows || ws_space_map_host(space, va(rows), 4096, rows) != 0 ||
        ws_space_map_host(space, va(textures), 8192, textures) != 0)
        return 2;
    rows[0] = va(c);
    rows[1] = va(a);
    rows[2] = va(b);
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
    const struct bench list[] = {
        {"matmul naive",
         "matmul_naive",
         {MAT / 16, MAT / 16},
         {16, 16},
         {{va(a), va(b), va(c), MAT}},
         ref_matmul,
         MAT * MAT * 4,
         FLOATS,
         NULL},
        {"matmul tiled",
         "matmul_tiled",
         {MAT / 16, MAT / 16},
         {16, 16},
         {{va(a), va(b), va(c), MAT}},
         ref_matmul,
         MAT * MAT * 4,
         FLOATS,
         NULL},
        {"matmul tensor",
         "matmul_tensor",
         {MAT / 64, MAT / 16},
         {128, 1},
         {{va(halves_a), va(halves_b), va(c), MAT}},
         ref_tensor,
         MAT * MAT * 4,
         FLOATS,
         NULL},
        {"alu",
         "alu",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), ALU_STEPS}},
         ref_alu,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"saxpy",
         "saxpy",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(a), UINT64_C(0x40000000) | (uint64_t)VEC << 32}},
         ref_saxpy,
         VEC * 4,
         FLOATS,
         NULL},
        {"gather",
         "gather",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(idx), va(a), VEC}},
         ref_gather,
         VEC * 4,
         FLOATS,
         NULL},
        {"texture point",
         "texture",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(&textures[0])}},
         ref_point,
         VEC * 4,
         FLOATS,
         NULL},
        {"texture linear",
         "texture",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(&textures[1])}},
         ref_linear,
         VEC * 4,
         FLOATS,
         NULL},
        {"divergent",
         "divergent",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), DIV_STEPS}},
         ref_divergent,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"collatz",
         "collatz",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), 1}},
         ref_collatz,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"arm of 32",
         "one_arm",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), (uint64_t)32 | (uint64_t)ARM_STEPS << 32}},
         ref_arm32,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"arm of 16",
         "one_arm",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), (uint64_t)16 | (uint64_t)ARM_STEPS << 32}},
         ref_arm16,
         ALU_THREADS * 4,
         EXACT,
         "arm of 32"},
        {"arm of 8",
         "one_arm",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), (uint64_t)8 | (uint64_t)ARM_STEPS << 32}},
         ref_arm8,
         ALU_THREADS * 4,
         EXACT,
         "arm of 32"},
        {"arm of 1",
         "one_arm",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), (uint64_t)1 | (uint64_t)ARM_STEPS << 32}},
         ref_arm1,
         ALU_THREADS * 4,
         EXACT,
         "arm of 32"},
        {"arms 16 + 16",
         "two_arms",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), (uint64_t)16 | (uint64_t)ARM_STEPS << 32}},
         ref_both16,
         ALU_THREADS * 4,
         EXACT,
         "arm of 32"},
        {"arms 31 + 1",
         "two_arms",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), (uint64_t)31 | (uint64_t)ARM_STEPS << 32}},
         ref_both31,
         ALU_THREADS * 4,
         EXACT,
         "arm of 32"},
        {"scatter",
         "scatter",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(raw), VEC}},
         ref_scatter,
         VEC * 4,
         EXACT,
         NULL},
        {"strided",
         "strided",
         {1024 / 32, VEC / 1024 / 8},
         {32, 8},
         {{va(c), va(a), (uint64_t)1024 | (uint64_t)(VEC / 1024) << 32}},
         ref_strided,
         VEC * 4,
         EXACT,
         NULL},
        {"generic pointers",
         "generic_ptr",
         {VEC / 256, 1},
         {256, 1},
         {{va(rows), VEC}},
         ref_generic,
         VEC * 4,
         FLOATS,
         NULL},
        {"bytes",
         "bytes",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(raw), VEC}},
         ref_bytes,
         VEC,
         EXACT,
         NULL},
        {"local array",
         "local_array",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), va(raw), 64}},
         ref_local_array,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"histogram",
         "histogram",
         {64, 1},
         {256, 1},
         {{va(c), va(raw), VEC}},
         ref_histogram,
         4096,
         EXACT,
         NULL},
        {"histogram shared",
         "histogram_shared",
         {64, 1},
         {256, 1},
         {{va(c), va(raw), VEC}},
         ref_histogram,
         4096,
         EXACT,
         NULL},
        {"one address",
         "one_address",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(raw), VEC}},
         ref_one_address,
         4,
         EXACT,
         NULL},
        {"float atomics",
         "float_atomics",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(raw), VEC}},
         ref_float_atomics,
         16384,
         EXACT,
         NULL},
        {"atomic max",
         "atomic_max",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(raw), VEC}},
         ref_atomic_max,
         16384,
         EXACT,
         NULL},
        {"doubles",
         "doubles",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), 64}},
         ref_doubles,
         ALU_THREADS * 4,
         FLOATS,
         NULL},
        {"divisions",
         "divisions",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), 64}},
         ref_divisions,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"64-bit integers",
         "longs",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), 64}},
         ref_longs,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"intrinsics",
         "intrinsics",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), va(a), 32}},
         ref_intrinsics,
         ALU_THREADS * 4,
         FLOATS,
         NULL},
        {"accurate",
         "accurate",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), va(a), 32}},
         ref_special,
         ALU_THREADS * 4,
         FLOATS,
         NULL},
        {"shuffles",
         "reduction",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(raw)}},
         ref_reduction,
         VEC / 256 * 4,
         EXACT,
         NULL},
        {"tree in shared",
         "tree",
         {VEC / 256, 1},
         {256, 1},
         {{va(c), va(raw)}},
         ref_reduction,
         VEC / 256 * 4,
         EXACT,
         NULL},
        {"ballots",
         "ballots",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), 64}},
         ref_ballots,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"calls",
         "calls",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), 64}},
         ref_calls,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"indirect calls",
         "calls_indirect",
         {ALU_THREADS / 256, 1},
         {256, 1},
         {{va(c), 64}},
         ref_calls_indirect,
         ALU_THREADS * 4,
         EXACT,
         NULL},
        {"blocks of 32",
         "tiny",
         {VEC / 32, 1},
         {32, 1},
         {{va(c), va(a)}},
         ref_tiny,
         VEC * 4,
         EXACT,
         NULL},
        {"blocks of 8",
         "tiny",
         {VEC / 8, 1},
         {8, 1},
         {{va(c), va(a)}},
         ref_tiny,
         VEC * 4,
         EXACT,
         NULL},
    };
    int bad = 0;
    for (size_t k = 0; k < WS_ARRAY_SIZE(list); k++) {
        const struct bench *beside = NULL;
        for (size_t j = 0; j < WS_ARRAY_SIZE(list); j++)
            if (list[k].beside && strcmp(list[k].beside, list[j].name) == 0)
                beside = &list[j];
        if (argc > first + 1 && strcmp(argv[first + 1], list[k].name) != 0)
            continue;
        if (!recording) {
            bad |= measure(&list[k], beside, json);
            continue;
        }
        double cost = measure_recording(&list[k]);
        log_sum += log1p(cost);
        worst = fmax(worst, cost);
        n_measured++;
    }
    if (n_measured)
        printf("recording costs %.1f %% (geometric mean of %d kernels), %.1f %% at worst\n",
               100 * expm1(log_sum / n_measured), n_measured, 100 * worst);
    if (n_pocl)
        printf("geometric mean of %d kernels: %.2f x the time of pocl\n", n_pocl,
               exp(pocl_log_sum / n_pocl));
    ws_code_free(code);
    ws_ptx_module_free(m);
    return bad;
}

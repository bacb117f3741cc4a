// SPDX-License-Identifier: Apache-2.0
/* Measures what learning costs: the loop's part of a launch that has ended, a prediction on each
 * basis, and a module's kernels when they are loaded. Each row is the median of several rounds; the
 * last column compares with a row of the same run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/learn/learn.h"
#include "base/clock.h"
#include "base/log.h"
#include "device/device.h"

enum { ROUNDS = 7, SHAPES = 4000 };

static const struct ws_gpu_spec gpu = {.name = "rtx3070",
                                       .n_sms = 46,
                                       .max_threads_per_sm = 1536,
                                       .max_blocks_per_sm = 16,
                                       .regs_per_sm = 65536,
                                       .max_threads_per_block = 1024,
                                       .shared_bytes_per_sm = 102400,
                                       .core_mhz = 1725,
                                       .memory_bytes_per_s = 448000000000,
                                       .memory_latency_ns = 400,
                                       .schedulers_per_sm = 4,
                                       .fp32_lanes_per_sm = 128,
                                       .shared_bytes_per_block = 49152,
                                       .shared_bytes_per_block_optin = 101376,
                                       .memory_mhz = 7001,
                                       .memory_bus_bits = 256,
                                       .l2_bytes = 4 << 20,
                                       .memory_bytes = UINT64_C(8) << 30,
                                       .copy_bytes_per_s = 12000000000,
                                       .copy_latency_ns = 8000,
                                       .launch_overhead_ns = 3000,
                                       .cc_major = 8,
                                       .cc_minor = 6,
                                       .int_lanes_per_sm = 64,
                                       .fp64_lanes_per_sm = 2,
                                       .sfu_lanes_per_sm = 16,
                                       .product = "for the benchmark",
                                       .ldst_lanes_per_sm = 32,
                                       .static_mw = 60000,
                                       .idle_mw_per_sm = 100,
                                       .dynamic_mw_per_sm = 1500};

struct work {
    struct ws_learn *l;
    struct ws_learn_key key;
    struct ws_learn_run run;
    int n_sm;
    uint64_t sum;
};

static void stop(const char *what)
{
    fprintf(stderr, "bench_learn: %s\n", what);
    exit(1);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median time of one call in ns. */
static double time_of(void (*f)(struct work *w), struct work *w)
{
    double round[ROUNDS];
    enum { N = 20000 };
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t before = ws_clock_ns();
        for (int i = 0; i < N; i++)
            f(w);
        round[r] = (double)(ws_clock_ns() - before) / N;
    }
    qsort(round, ROUNDS, sizeof(*round), by_value);
    return round[ROUNDS / 2];
}

static void predict(struct work *w)
{
    struct ws_prediction p;
    if (ws_learn_predict(w->l, &w->key, &gpu, w->n_sm, &p))
        stop("no prediction");
    w->sum += p.time_ns;
}

static void ran(struct work *w)
{
    w->run.start_ns = w->run.end_ns + 1;
    w->run.end_ns = w->run.start_ns + 5000;
    ws_learn_ran(w->l, &w->key, &gpu, &w->run);
}

/* Many other shapes, so that the table isn't all in a cache. */
static void fill(struct work *w, const struct ws_learn_code *c)
{
    struct work other = *w;
    for (uint32_t i = 0; i < SHAPES; i++) {
        const struct ws_learn_kernel *k = ws_learn_code_kernel(c, i % c->n_kernels);
        if (!k || k == w->key.kernel)
            continue;
        other.key.kernel = k;
        other.key.grid[0] = 1 + i / c->n_kernels;
        ran(&other);
    }
    w->run = other.run;
}

static void row(const char *what, double ns, double base)
{
    printf("%-52s %10.0f ns %8.2f x\n", what, ns, ns / base);
}

static void bench(struct work *w, const struct ws_learn_code *c)
{
    w->n_sm = 46;
    double cold = time_of(predict, w);
    fill(w, c);
    w->run.sms = (struct ws_sm_set){0};
    double ns = time_of(ran, w);
    row("a launch that ended (in the daemon's loop)", ns, ns);
    row("prediction: measured", time_of(predict, w), ns);
    w->n_sm = 12;
    row("prediction: scaled from another number of SMs", time_of(predict, w), ns);
    w->key.grid[0]++;
    row("prediction: another shape of the kernel", time_of(predict, w), ns);
    row("prediction: cold", cold, ns);
}

static char *read_file(const char *path, size_t *ret_n)
{
    FILE *f = fopen(path, "r");
    char *text = f ? calloc(1, 1 << 24) : NULL;
    *ret_n = text ? fread(text, 1, (1 << 24) - 1, f) : 0;
    if (f)
        fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : SRCDIR "/tests/ptx_run/kernels.o3.ptx";
    struct ws_ptx_module *m = NULL;
    struct ws_learn_code *code = NULL;
    struct work w = {.key.grid = {100, 1, 1}, .key.block = {256, 1, 1}};
    size_t n;
    char *text = read_file(path, &n);
    struct ws_diags diags = WS_DIAGS_NULL;
    ws_log_set_level(WS_ERROR);
    uint64_t t0 = ws_clock_ns();
    if (!text || ws_ptx_parse(&m, text, n, path, &diags) || ws_learn_new(&w.l, NULL))
        stop("can't read the kernels");
    struct ws_device *d = NULL;
    struct ws_dmodule *dm = NULL;
    uint64_t t1 = ws_clock_ns();
    if (ws_device_open_soft(&d, &gpu, 0, &(struct ws_device_options){.n_workers = 1}, &diags))
        stop("no device");
    uint64_t t2 = ws_clock_ns();
    if (ws_device_module_load(d, m, &dm, &diags))
        stop("can't decode the kernels");
    uint64_t t3 = ws_clock_ns();
    const struct ws_dmodule_info *info = ws_dmodule_info(dm);
    if (ws_learn_code_new(&code, m, info, info->n_kernels))
        stop("out of memory");
    uint64_t t4 = ws_clock_ns();
    w.key.kernel = ws_learn_code_kernel(code, 0);
    w.run.counts = (struct ws_op_counts){100000, 8000, 32000, 0};
    if (!w.key.kernel)
        stop("no kernel");
    bench(&w, code);
    printf("%-52s %10.0f ns %8.2f x parsing and decoding it (%u kernels; once for each module)\n",
           "hashing and counting a kernel's code", (double)(t4 - t3) / info->n_kernels,
           (double)(t4 - t3) / (double)(t1 - t0 + t3 - t2), info->n_kernels);
    ws_learn_free(w.l);
    ws_learn_code_free(code);
    ws_device_module_unload(d, dm);
    ws_device_close(d);
    ws_ptx_module_free(m);
    ws_diags_deinit(&diags);
    free(text);
    return 0;
}

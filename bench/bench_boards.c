// SPDX-License-Identifier: Apache-2.0
/* Runs programs whose time and power others have measured without counters (bench/truth/boards.cu),
 * counts what they do on a software GPU, and prints a table of what was counted, measured and
 * predicted, as `wattshare fit` reads it:
 *
 *   bench_boards rtx3080ti FOLDER/rtx3080ti/auto-clocks.csv >rows.csv
 *   wattshare fit --gpu rtx3080ti --families FOLDER/split.csv rows.csv
 *
 * The columns model_time_s and model_power_w, which `fit` does not read, have what the software GPU
 * itself says of the launch on all SMs.
 *
 * Programs of the RTX 3080 Ti: those that take 45 us or more, since the times have some 5 us of
 * waiting in them. Left out are kernels whose arguments or data are not known (particlefilter,
 * myocyte, streamcluster, the sums of srad) and the first kernel of mvt, whose time is a third of
 * that of gemver's third, which does the same. Clocks were recorded for one kernel alone, which was
 * measured at 21 pairs of them; at automatic clocks it takes as long as at 1890 MHz, so that all
 * others are taken to have had these. The time of the correlation is left out: its threads have
 * different numbers of pairs.
 *
 * Programs of sBEET-mg: products, histogram and texture compression. The authors' kernels, whose
 * blocks stay on the SMs that they were given, take two to four times as long as ours; with
 * --own-pace their power is taken for that of our kernels at the pace of these. bfs is left out,
 * since its graph is not at hand.
 *
 * Usage: bench_boards [--catalog PATH] [--own-pace] GPU FILE
 *   --own-pace: time_s is what the software GPU takes, on fewer SMs as much longer.
 *   FILE has the columns app, time_s, power_w and, if known, kernel, core_mhz, mem_mhz, sms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/truth/run.h"
#include "device/catalog.h"
#include "papers/sets/csv.h"

struct board_program {
    struct truth_program program;
    const char *kernel; /* as the table calls it; NULL: the table has no such column */
    const char *text;   /* of the kernel; NULL: boards.ptx */
    bool no_time;
};
/* Square matrices of 4096 by a vector, a thread for each row or column. */
#define MATRIX_VECTOR(app, name, entry, alpha)                                                     \
    {                                                                                              \
        {app,        entry,                                                                        \
         {16, 1, 1}, {256, 1, 1},                                                                  \
         1,          {{64, SMALL_FLOATS}, {1, SMALL_FLOATS}, {1, ZERO}},                           \
         "pppif",    {4096, alpha}},                                                               \
            .kernel = (name)                                                                       \
    }
/* Products and the like of square matrices, blocks of 32 x 8. */
#define MATRICES(app, name, entry, n, mib, layout, ...)                                            \
    {                                                                                              \
        {app,                                                                                      \
         entry,                                                                                    \
         {(n) / 32, (n) / 8, 1},                                                                   \
         {32, 8, 1},                                                                               \
         1,                                                                                        \
         {{mib, SMALL_FLOATS}, {mib, SMALL_FLOATS}, {mib, ZERO}},                                  \
         layout,                                                                                   \
         {n, ##__VA_ARGS__}},                                                                      \
            .kernel = (name)                                                                       \
    }
/* Images of 2048 x 2048. */
#define IMAGE(name, entry, layout, ...)                                                            \
    {                                                                                              \
        {"srad_v1", entry, {8192, 1, 1}, {512, 1, 1}, 1, {__VA_ARGS__}, layout, {4194304}},        \
            .kernel = (name)                                                                       \
    }
/* A sum for each column of 2048. */
#define COLUMNS(name, entry, part, layout, pairs, ...)                                             \
    {"correlation", entry, {8, 1, 1}, {256, 1, 1}, part, {__VA_ARGS__}, layout, {2048, pairs}},    \
        .kernel = (name)
/* Products with tiles; a part of the rows. */
#define TILED(app, columns, part, mib)                                                             \
    {                                                                                              \
        {app,                                                                                      \
         "tiled_product",                                                                          \
         {(columns) / 16, 16, 1},                                                                  \
         {16, 16, 1},                                                                              \
         part,                                                                                     \
         {{mib, SMALL_FLOATS}, {mib, SMALL_FLOATS}, {16, ZERO}},                                   \
         "pppii",                                                                                  \
         {1024, columns}},                                                                         \
            .kernel = NULL                                                                         \
    }
static const struct board_program programs[] = {
    {{"2dconv",
      "poly_convolve",
      {128, 512, 1},
      {32, 8, 1},
      1,
      {{64, SMALL_FLOATS}, {64, ZERO}},
      "ppi",
      {4096}},
     .kernel = "convolution2D_kernel"},
    MATRICES("2mm", "mm2_kernel1", "poly_product", 1024, 4, "pppi"),
    MATRICES("2mm", "mm2_kernel2", "poly_product", 1024, 4, "pppi"),
    MATRICES("gemm", "gemm_kernel", "poly_gemm", 512, 1, "pppiff", 1, 1),
    MATRICES("syr2k", "syr2k_kernel", "poly_rank_2k", 1024, 4, "pppiff", 1, 1),
    MATRIX_VECTOR("atax", "atax_kernel1", "poly_row", 1),
    MATRIX_VECTOR("atax", "atax_kernel2", "poly_column", 1),
    MATRIX_VECTOR("gemver", "gemver_kernel2", "poly_column", 0.5),
    MATRIX_VECTOR("gemver", "gemver_kernel3", "poly_row", 0.5),
    MATRIX_VECTOR("mvt", "kernel2", "poly_column", 1),
    {{"gemver",
      "poly_rank_two",
      {128, 512, 1},
      {32, 8, 1},
      1,
      {{64, ZERO}, {1, SMALL_FLOATS}, {1, SMALL_FLOATS}, {1, SMALL_FLOATS}, {1, SMALL_FLOATS}},
      "pppppi",
      {4096}},
     .kernel = "gemver_kernel1"},
    {{"gesummv",
      "poly_two_rows",
      {16, 1, 1},
      {256, 1, 1},
      1,
      {{64, SMALL_FLOATS}, {64, SMALL_FLOATS}, {1, SMALL_FLOATS}, {1, ZERO}, {1, ZERO}},
      "pppppi",
      {4096}},
     .kernel = "gesummv_kernel"},
    /* 16 of the 1024 pairs that a column has on average */
    {COLUMNS("corr_kernel", "poly_correlation", 1 / 64.0, "ppii", 16, {17, ZERO},
             {17, SMALL_FLOATS}),
     .no_time = true},
    {COLUMNS("mean_kernel", "poly_mean", 1, "ppi", 0, {1, ZERO}, {17, SMALL_FLOATS})},
    {COLUMNS("std_kernel", "poly_deviation", 1, "pppi", 0, {1, ZERO}, {1, ZERO},
             {17, SMALL_FLOATS})},
    {{"kmeans",
      "nearest_centre",
      {3907, 1, 1},
      {256, 1, 1},
      1,
      {{130, SMALL_FLOATS}, {4, ZERO}},
      "piiip",
      {34, 1000000, 32}},
     .kernel = "kmeansPoint"},
    {{"nn",
      "distances",
      {39063, 1, 1},
      {256, 1, 1},
      1,
      {{77, SMALL_FLOATS}, {39, ZERO}},
      "ppiff",
      {10000000, 30, 90}},
     .kernel = "euclid",
     .text = "kernels.ptx"},
    IMAGE("extract", "image_exp", "pi", {16, SMALL_FLOATS}),
    IMAGE("prepare", "image_squares", "pppi", {16, SMALL_FLOATS}, {16, ZERO}, {16, ZERO}),
    IMAGE("compress", "image_log", "pi", {16, SMALL_FLOATS}),
    TILED("mmul", 2048, 1 / 8.0, 8), /* of 2048 x 1024 x 2048 */
    TILED("mmul2", 1024, 1 / 4.0, 4),
    {{"hist",
      "bins_in_memory",
      {184, 1, 1},
      {256, 1, 1},
      1,
      {{13, RANDOM}, {1, ZERO}},
      "ppii",
      {3200000, 4096}},
     .kernel = NULL},
    /* 512 x 512, a sixteenth of the blocks */
    {{"dxtc",
      "four_colours",
      {1024, 1, 1},
      {64, 1, 1},
      1 / 16.0,
      {{1, RANDOM}, {1, RANDOM}, {1, ZERO}},
      "pppi",
      {1020}},
     .kernel = NULL},
};

/* ---- one row ---- */

/* What ws_events adds up, told apart as nvprof does. A load that L1 has is no sector of L2; all
 * that is stored goes there. */
static void print_counters(const struct ws_events *e, double part, double active, double blocks,
                           double warps_per_sm)
{
    double times = 1 / part, loaded = e->l1_sectors;
    if (e->l2_share < 1 && e->l1_sectors > e->l2_sectors)
        loaded = fmin((e->l1_sectors - e->l2_sectors) / (1 - e->l2_share), e->l1_sectors);
    double stored = e->l1_sectors - loaded;
    double l2_read = fmax(e->l2_sectors - stored, 0);
    double dram_read = fmin(e->dram_share * l2_read, e->dram_sectors);
    printf("%g,%g,%g,%g,%g,%g,", e->warp_instructions * times, e->flow_instructions * times,
           e->int_ops * times, e->fp32_ops * times, e->fp64_ops * times, e->sfu_ops * times);
    printf("%g,%g,%g,%g,%g,", e->shared_transactions * times,
           e->shared_transactions / fmax(e->shared_requests, 1), loaded * times,
           loaded / fmax(e->load_requests, 1), stored * times);
    printf("0,%g,%g,%g,%g,", l2_read * times, (e->l2_sectors - l2_read) * times, dram_read * times,
           (e->dram_sectors - dram_read) * times);
    printf("%g,%g,%g,", blocks, active, warps_per_sm);
}

/* Of a row of the measurements; 0: it has none. */
struct measured {
    double time_s, power_w, sms, core_mhz, memory_mhz;
};
enum { AUTOMATIC_MHZ = 1890 }; /* of the RTX 3080 Ti */

static bool own_pace;

static void print_row(const struct truth_runner *r, const struct board_program *p,
                      const struct truth_result *got, const struct measured *m)
{
    const struct ws_gpu_spec *spec = &r->spec;
    const struct ws_events *e = &got->events;
    double blocks = e->blocks / p->program.part, sms = m->sms > 0 ? m->sms : spec->n_sms;
    double core = p->kernel ? AUTOMATIC_MHZ : spec->core_mhz;
    printf("%s,%s,%s,%g,%g,", spec->name, p->program.app, p->kernel ? p->kernel : "",
           m->core_mhz > 0 ? m->core_mhz : core,
           m->memory_mhz > 0 ? m->memory_mhz : spec->memory_mhz);
    if (!p->no_time)
        printf("%g", own_pace ? got->time_s * spec->n_sms / sms : m->time_s);
    printf(",%g,", m->power_w);
    print_counters(e, p->program.part, fmin(sms, blocks) / spec->n_sms, blocks,
                   e->warps_per_sm * 32 / spec->max_threads_per_sm);
    printf("%g,%g\n", got->time_s, got->power_w);
}

/* ---- the measurements ---- */

static const char *cell(const struct ws_csv *t, const char *name)
{
    const char *const names[] = {name, NULL};
    int column = ws_csv_column(t, names);
    return column < 0 ? "" : t->cells[column];
}

/* All rows of the program. It is run when there is one. */
static void print_rows(const char *path, const struct ws_gpu_spec *spec,
                       const struct board_program *p)
{
    struct truth_runner r;
    struct truth_result got = {.time_s = 0};
    struct ws_csv t;
    int end;
    FILE *f = fopen(path, "re");
    truth_must(!f, path);
    truth_must(ws_csv_open(&t, f, path, NULL), path);
    truth_open(&r, spec, p->text ? p->text : "boards.ptx");
    while (!(end = ws_csv_next(&t, NULL))) {
        if (strcmp(cell(&t, "app"), p->program.app) != 0 ||
            strcmp(cell(&t, "kernel"), p->kernel ? p->kernel : "") != 0)
            continue;
        struct measured m = {truth_number(&t, "time_s"), truth_number(&t, "power_w"),
                             truth_number(&t, "sms"), truth_number(&t, "core_mhz"),
                             truth_number(&t, "mem_mhz")};
        if (!(got.time_s > 0))
            got = truth_run(&r, &p->program);
        truth_must(!got.events.counted, "counting with an entry that has no fitted powers");
        print_row(&r, p, &got, &m);
    }
    truth_must(end == WS_CSV_END ? 0 : end, path);
    truth_close(&r);
    ws_csv_deinit(&t);
    fclose(f);
}

int main(int argc, char **argv)
{
    struct ws_catalog catalog = WS_CATALOG_NULL;
    struct ws_diags diags = WS_DIAGS_NULL;
    const char *path = WS_SRCDIR "/conf/gpu.d";
    if (argc > 2 && !strcmp(argv[1], "--catalog")) {
        path = argv[2];
        argv += 2;
        argc -= 2;
    }
    if (argc > 1 && !strcmp(argv[1], "--own-pace")) {
        own_pace = true;
        argv++;
        argc--;
    }
    if (argc != 3) {
        fprintf(stderr, "usage: bench_boards [--catalog PATH] [--own-pace] GPU FILE\n");
        return 2;
    }
    truth_must(ws_catalog_load(&catalog, path, &diags), path);
    const struct ws_gpu_spec *spec = ws_catalog_find(&catalog, argv[1]);
    truth_must(!spec, argv[1]);
    printf("gpu,app,kernel,core_mhz,mem_mhz,time_s,power_w,inst_executed,cf_executed,inst_integer,"
           "inst_fp_32,inst_fp_64,flop_count_sp_special,shared_load_transactions,"
           "shared_load_transactions_per_request,gld_transactions,gld_transactions_per_request,"
           "gst_transactions,shared_store_transactions,l2_read_transactions,l2_write_transactions,"
           "dram_read_transactions,"
           "dram_write_transactions,grid_blocks,sm_efficiency,achieved_occupancy,model_time_s,"
           "model_power_w\n");
    for (size_t i = 0; i < WS_ARRAY_SIZE(programs); i++)
        print_rows(argv[2], spec, &programs[i]);
    ws_catalog_deinit(&catalog);
    return 0;
}

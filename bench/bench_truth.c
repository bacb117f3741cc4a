// SPDX-License-Identifier: Apache-2.0
/* Runs programs whose time and power others have measured on real GPUs (bench/truth/kernels.cu) on
 * software GPUs, and compares time, mean power and energy of a launch with the measurements.
 *
 * Nothing but the kernel is given: what it does is counted by the interpreter, time and power
 * follow from the models in the catalog. Large grids are cut to a part that is still many times
 * what the GPU holds; time and energy are those of the part times what was left out ("part" says
 * so).
 *
 * The clocks are those of the catalog; where nothing was measured at these, those measured ones
 * that are the nearest to them, which are printed then.
 *
 * The programs of "titanv" were looked at only when all models were fitted and all others had been
 * run. It is the chip of the V100 with other clocks and less memory, and gets the V100's numbers;
 * times alone were measured there.
 *
 * Usage: bench_truth [--data FOLDER] [--catalog PATH] [GPU [program]]
 *   FOLDER has nvdvfs-nvprof/NAME.csv with the columns app, core_mhz, mem_mhz, time_s and power_w,
 *   and kpp/time.csv with gpu, app, n, rows and time_s; without it, only predictions are printed.
 *   PATH is a catalog, or one of its files (bench/truth.sh). */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/truth/run.h"
#include "device/catalog.h"
#include "models/event_power.h"
#include "papers/sets/csv.h"

/* ---- programs ---- */

static const struct truth_program programs[] = {
    /* 64 Mi elements, of which an eighth */
    {"vectorAdd",
     "vector_add",
     {32768, 1, 1},
     {256, 1, 1},
     1 / 8.0,
     {{32, SMALL_FLOATS}, {32, SMALL_FLOATS}, {32, ZERO}},
     "pppi",
     {8388608}},
    /* 2048 x 2048: 640 blocks of 4096 */
    {"matrixMulGlobal",
     "matrix_global",
     {64, 10, 1},
     {32, 32, 1},
     640 / 4096.0,
     {{16, ZERO}, {16, SMALL_FLOATS}, {16, SMALL_FLOATS}},
     "pppi",
     {2048}},
    {"matrixMulShared",
     "matrix_shared",
     {64, 10, 1},
     {32, 32, 1},
     640 / 4096.0,
     {{16, ZERO}, {16, SMALL_FLOATS}, {16, SMALL_FLOATS}},
     "pppi",
     {2048}},
    /* 1000 dimensions of 131072 points */
    {"SobolQRNG",
     "sobol",
     {1, 1000, 1},
     {64, 1, 1},
     1,
     {{1, RANDOM}, {501, ZERO}},
     "ppi",
     {131072}},
    {"backpropForward",
     "layer_forward",
     {1, 32768, 1},
     {16, 16, 1},
     1,
     {{3, SMALL_FLOATS}, {40, SMALL_FLOATS}, {3, ZERO}},
     "pppi",
     {16}},
    {"backpropBackward",
     "adjust_weights",
     {1, 32768, 1},
     {16, 16, 1},
     1,
     {{1, SMALL_FLOATS}, {3, SMALL_FLOATS}, {40, SMALL_FLOATS}, {40, SMALL_FLOATS}},
     "pippp",
     {16}},
    /* 10240 x 10240, of which an eighth */
    {"convolutionSeparable",
     "convolve_rows",
     {80, 320, 1},
     {16, 4, 1},
     1 / 8.0,
     {{64, ZERO}, {64, SMALL_FLOATS}},
     "ppii",
     {10240, 10240}},
    /* 2^28 values, of which 2^24; the strides of its steps are 4 to 2^26, this is one between */
    {"fastWalshTransform",
     "walsh_step",
     {16384, 1, 1},
     {256, 1, 1},
     1 / 16.0,
     {{64, ZERO}, {64, SMALL_FLOATS}},
     "ppi",
     {65536}},
    /* 8192 x 8192, a sixteenth of the rows; the step at which two thirds of the threads are at
     * work, as in the mean of the measured counters */
    {"gaussian",
     "eliminate",
     {128, 2048, 1},
     {4, 4, 1},
     1 / 16.0,
     {{256, SMALL_FLOATS}, {256, SMALL_FLOATS}, {1, SMALL_FLOATS}},
     "pppii",
     {8192, 2703}},
    /* 64 Mi words, of which an eighth; all blocks */
    {"histogram",
     "histogram256",
     {240, 1, 1},
     {192, 1, 1},
     1 / 8.0,
     {{1, ZERO}, {32, RANDOM}},
     "ppi",
     {8388608}},
    {"nn",
     "distances",
     {32768, 1, 1},
     {256, 1, 1},
     1,
     {{64, SMALL_FLOATS}, {32, ZERO}},
     "ppiff",
     {8388608, 30, 90}},
    /* 512000 columns, 100 rows at a time; a quarter of the blocks */
    {"pathfinder",
     "paths",
     {2286, 1, 1},
     {256, 1, 1},
     2286 / 9143.0,
     {{196, RANDOM}, {2, RANDOM}, {2, ZERO}},
     "ipppiii",
     {100, 512000, 0, 100}},
    /* 65536 vectors of 4096 elements, of which an eighth; all blocks */
    {"scalarProd",
     "scalar_products",
     {128, 1, 1},
     {256, 1, 1},
     1 / 8.0,
     {{1, ZERO}, {128, SMALL_FLOATS}, {128, SMALL_FLOATS}},
     "pppii",
     {8192, 4096}},
    /* 64 Mi numbers, of which a quarter */
    {"scanScanExclusiveShared",
     "scan_exclusive",
     {16384, 1, 1},
     {256, 1, 1},
     1 / 4.0,
     {{64, ZERO}, {64, RANDOM}},
     "pp",
     {0}},
    {"scanUniformUpdate",
     "add_before",
     {16384, 1, 1},
     {256, 1, 1},
     1 / 4.0,
     {{64, RANDOM}, {1, RANDOM}},
     "pp",
     {0}},
    /* 8 Mi keys, of which a quarter */
    {"sortingNetworks",
     "sort_1024",
     {2048, 1, 1},
     {512, 1, 1},
     1 / 4.0,
     {{8, ZERO}, {8, ZERO}, {8, RANDOM}, {8, RANDOM}},
     "pppp",
     {0}},
    /* 8192 x 4096, of which an eighth */
    {"srad",
     "diffusion",
     {256, 64, 1},
     {16, 16, 1},
     1 / 8.0,
     {{16, ZERO}, {16, ZERO}, {16, ZERO}, {16, ZERO}, {16, SMALL_FLOATS}, {16, ZERO}},
     "ppppppiif",
     {4096, 1024, 0.05}},
};

/* What is another size on the GTX 980: the data that was measured there is an eighth or so. */
static const struct smaller {
    const char *app;
    uint32_t grid[3];
    double part, numbers[5];
} smaller[] = {
    {"vectorAdd", {32768, 1, 1}, 1 / 2.0, {8388608}},
    {"matrixMulGlobal", {16, 16, 1}, 1, {512}},
    {"matrixMulShared", {16, 16, 1}, 1, {512}},
    {"SobolQRNG", {1, 1000, 1}, 1, {32768}},
    {"backpropForward", {1, 4096, 1}, 1, {16}},
    {"backpropBackward", {1, 4096, 1}, 1, {16}},
    {"convolutionSeparable", {24, 768, 1}, 1, {3072, 3072}},
    {"fastWalshTransform", {16384, 1, 1}, 1 / 2.0, {8192}},
    {"gaussian", {512, 512, 1}, 1, {2048, 676}},
    {"histogram", {240, 1, 1}, 1 / 2.0, {8388608}},
    {"nn", {4096, 1, 1}, 1, {1048576, 30, 90}},
    {"pathfinder", {2286, 1, 1}, 1, {100, 128000, 0, 100}},
    {"scalarProd", {128, 1, 1}, 1 / 2.0, {8192, 4096}},
    {"scanScanExclusiveShared", {16384, 1, 1}, 1, {0}},
    {"scanUniformUpdate", {16384, 1, 1}, 1, {0}},
    {"sortingNetworks", {2048, 1, 1}, 1, {0}},
    {"srad", {64, 64, 1}, 1, {1024, 1024, 0.05}},
};

/* The program as it was measured on the GPU. */
static struct truth_program sized(const struct truth_program *p, const char *gpu)
{
    struct truth_program ret = *p;
    for (size_t i = 0; i < WS_ARRAY_SIZE(smaller); i++)
        if (!strcmp(gpu, "gtx980") && !strcmp(smaller[i].app, p->app)) {
            memcpy(ret.grid, smaller[i].grid, sizeof(ret.grid));
            memcpy(ret.numbers, smaller[i].numbers, sizeof(ret.numbers));
            ret.part = smaller[i].part;
        }
    return ret;
}

/* Those of the TITAN V, and which size they were measured with: column n or rows. */
static const struct aside {
    double size;
    struct truth_program program;
} asides[] = {
    {8388608,
     {"vector_add",
      "vector_add",
      {32768, 1, 1},
      {256, 1, 1},
      1,
      {{32, SMALL_FLOATS}, {32, SMALL_FLOATS}, {32, ZERO}},
      "pppi",
      {8388608}}},
    {8388608,
     {"saxpy",
      "saxpy",
      {32768, 1, 1},
      {256, 1, 1},
      1,
      {{32, SMALL_FLOATS}, {32, SMALL_FLOATS}},
      "ppif",
      {8388608, 2}}},
    {3072,
     {"conv2d_3x3",
      "convolve_3x3",
      {192, 192, 1},
      {16, 16, 1},
      1,
      {{36, ZERO}, {36, SMALL_FLOATS}},
      "ppii",
      {3072, 3072}}},
    {8388608,
     {"histogram",
      "histogram_atomic",
      {32768, 1, 1},
      {256, 1, 1},
      1,
      {{1, ZERO}, {32, RANDOM}},
      "ppi",
      {8388608}}},
    {262144,
     {"atomic_hotspot",
      "hot_counter",
      {1024, 1, 1},
      {256, 1, 1},
      1,
      {{1, ZERO}},
      "pii",
      {262144, 50}}},
    /* a quarter of the rows */
    {1024,
     {"matmul_naive",
      "matrix_16",
      {64, 16, 1},
      {16, 16, 1},
      1 / 4.0,
      {{4, ZERO}, {4, SMALL_FLOATS}, {4, SMALL_FLOATS}},
      "pppi",
      {1024}}},
    {2048,
     {"matmul_tiled",
      "matrix_shared",
      {64, 16, 1},
      {32, 32, 1},
      1 / 4.0,
      {{16, ZERO}, {16, SMALL_FLOATS}, {16, SMALL_FLOATS}},
      "pppi",
      {2048}}},
};

/* ---- what was measured ---- */

struct measured {
    double time_s, power_w; /* 0: not known */
    struct ws_device_clocks clocks;
};
#define TITAN_V "titanv"

static bool is_of_titan(double size, const struct ws_csv *t)
{
    return !strcmp(t->cells[0], "TITANV") &&
           (truth_number(t, "n") == size || truth_number(t, "rows") == size);
}

/* The row's clocks as shares of the catalog's, with the voltage that goes with them. */
static struct ws_device_clocks clocks_of(const struct ws_gpu_spec *spec, const struct ws_csv *t)
{
    struct ws_device_clocks c = {.core = truth_number(t, "core_mhz") / spec->core_mhz,
                                 .memory = truth_number(t, "mem_mhz") / spec->memory_mhz};
    c.volt =
        ws_event_voltage(spec->voltage_knee_milli / 1e3, spec->voltage_slope_milli / 1e3, c.core);
    return c;
}

static double distance(const struct ws_device_clocks *c)
{
    return c->core > 0 && c->memory > 0 ? fabs(log(c->core)) + fabs(log(c->memory)) : INFINITY;
}

/* The measurement of @app: of this size; or, if that is 0, with the clocks nearest the
 * catalog's. */
static struct measured find(const char *data, const struct ws_gpu_spec *spec, const char *app,
                            double size)
{
    static const struct ws_device_clocks own = {1, 1, 1};
    struct measured m = {0, 0, own};
    struct ws_csv t;
    char path[512];
    int r;
    if (size > 0)
        snprintf(path, sizeof(path), "%s/kpp/time.csv", data);
    else
        snprintf(path, sizeof(path), "%s/nvdvfs-nvprof/%s.csv", data, spec->name);
    FILE *f = fopen(path, "re");
    if (!f) {
        perror(path);
        exit(2);
    }
    truth_must(ws_csv_open(&t, f, path, NULL), path);
    while (!(r = ws_csv_next(&t, NULL)))
        if (t.n_columns > 1 && !strcmp(t.cells[1], app)) {
            struct ws_device_clocks c = size > 0 ? own : clocks_of(spec, &t);
            if (size > 0 ? is_of_titan(size, &t)
                         : m.time_s <= 0 || distance(&c) < distance(&m.clocks))
                m = (struct measured){truth_number(&t, "time_s"), truth_number(&t, "power_w"), c};
        }
    truth_must(r == WS_CSV_END ? 0 : r, path);
    ws_csv_deinit(&t);
    fclose(f);
    return m;
}

/* ---- running ---- */

static double off(double predicted, double measured)
{
    return measured > 0 ? 100 * (predicted / measured - 1) : NAN;
}

struct errors {
    double sum[3], worst[3];
    unsigned n, n_scaled;
};

static void compare(struct truth_runner *r, const struct truth_program *p, double size,
                    const char *data, struct errors *errors)
{
    struct measured is =
        data ? find(data, &r->spec, p->app, size) : (struct measured){0, 0, {1, 1, 1}};
    if (data && is.time_s <= 0)
        return;
    if (memcmp(&r->clocks, &is.clocks, sizeof(is.clocks)) != 0) {
        truth_must(ws_device_set_clocks(r->device, &is.clocks, &r->clocks), "clocks");
        printf("%-10s at %.0f and %.0f MHz\n", r->spec.name, is.clocks.core * r->spec.core_mhz,
               is.clocks.memory * r->spec.memory_mhz);
    }
    struct truth_result got = truth_run(r, p);
    double e[3] = {off(got.time_s, is.time_s), off(got.power_w, is.power_w),
                   off(got.time_s * got.power_w, is.time_s * is.power_w)};
    printf("%-10s %-24s %6.1f %% %11.1f %9.1f %10.2f", r->spec.name, p->app, 100 * p->part,
           got.time_s * 1e6, got.power_w, got.time_s * got.power_w * 1e3);
    if (data)
        printf(" %11.1f %9.1f %+8.1f %+8.1f %+8.1f", is.time_s * 1e6, is.power_w, e[0], e[1], e[2]);
    printf("\n");
    fflush(stdout);
    for (int k = 0; k < 3 && !isnan(e[k]); k++) {
        errors->sum[k] += fabs(e[k]);
        errors->worst[k] = fmax(errors->worst[k], fabs(e[k]));
    }
    errors->n++;
    errors->n_scaled += p->part < 1;
}

static struct ws_gpu_spec spec_of(const struct ws_catalog *catalog, const char *name)
{
    bool titan = !strcmp(name, TITAN_V);
    const struct ws_gpu_spec *found = ws_catalog_find(catalog, titan ? "v100" : name);
    truth_must(!found, name);
    struct ws_gpu_spec spec = *found;
    if (titan) { /* NVIDIA's numbers */
        snprintf(spec.name, sizeof(spec.name), "%s", TITAN_V);
        spec.core_mhz = 1455;
        spec.memory_mhz = 850;
        spec.memory_bytes_per_s = UINT64_C(652800000000);
        spec.l2_bytes = 4608 << 10;
    }
    return spec;
}

static void run_gpu(const struct ws_catalog *catalog, const char *name, const char *app,
                    const char *data)
{
    struct truth_runner r;
    struct errors errors = {.n = 0};
    struct ws_gpu_spec spec = spec_of(catalog, name);
    truth_open(&r, &spec, "kernels.ptx");
    for (size_t i = 0; i < WS_ARRAY_SIZE(programs) && strcmp(name, TITAN_V) != 0; i++)
        if (!app || !strcmp(app, programs[i].app)) {
            struct truth_program p = sized(&programs[i], name);
            compare(&r, &p, 0, data, &errors);
        }
    for (size_t i = 0; i < WS_ARRAY_SIZE(asides) && !strcmp(name, TITAN_V); i++)
        if (!app || !strcmp(app, asides[i].program.app))
            compare(&r, &asides[i].program, asides[i].size, data, &errors);
    if (errors.n && errors.sum[0] > 0 && !(errors.sum[1] > 0))
        printf("%-10s %u programs, %u of them a part: mean error time %.1f %%; worst %.0f %%\n",
               name, errors.n, errors.n_scaled, errors.sum[0] / errors.n, errors.worst[0]);
    else if (errors.n && data)
        printf("%-10s %u programs, %u of them a part: mean error time %.1f %%, power %.1f %%, "
               "energy %.1f %%; worst %.0f, %.0f, %.0f %%\n",
               name, errors.n, errors.n_scaled, errors.sum[0] / errors.n, errors.sum[1] / errors.n,
               errors.sum[2] / errors.n, errors.worst[0], errors.worst[1], errors.worst[2]);
    truth_close(&r);
}

int main(int argc, char **argv)
{
    static const char *const gpus[] = {"v100", "p100", "gtx980", "gtx1080ti", TITAN_V};
    const char *data = NULL;
    struct ws_catalog catalog = WS_CATALOG_NULL;
    struct ws_diags diags = WS_DIAGS_NULL;
    const char *path = WS_SRCDIR "/conf/gpu.d";
    for (; argc > 2 && !strncmp(argv[1], "--", 2); argc -= 2, argv += 2) {
        if (!strcmp(argv[1], "--data"))
            data = argv[2];
        else if (!strcmp(argv[1], "--catalog"))
            path = argv[2];
        else
            truth_must(-EINVAL, argv[1]);
    }
    truth_must(ws_catalog_load(&catalog, path, &diags), path);
    printf("%-10s %-24s %8s %11s %9s %10s", "GPU", "program", "part", "time us", "power W",
           "energy mJ");
    if (data)
        printf(" %11s %9s %8s %8s %8s", "measured us", "W", "time %", "power %", "energy %");
    printf("\n");
    for (size_t i = 0; i < WS_ARRAY_SIZE(gpus); i++)
        if (argc < 2 || !strcmp(argv[1], gpus[i]))
            run_gpu(&catalog, gpus[i], argc > 2 ? argv[2] : NULL, data);
    ws_catalog_deinit(&catalog);
    return 0;
}

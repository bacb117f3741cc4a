// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/fit/measured.h"
#include "papers/sets/csv.h"

enum { THREADS = 32, SECTOR_BYTES = 32, QUAD = 4 };
#define BUFFER_NJ 0.15 /* AccelWattch's instruction buffers, for each instruction: an estimate */

/* ---- names ---- */

static int find_name(struct ws_measured_name **v, int *n, size_t *cap, const char *name)
{
    for (int i = *n; i--;) /* rows of an application usually follow each other */
        if (!strcmp((*v)[i].name, name))
            return i;
    void *p = *v;
    char *copy = strdup(name);
    if (!copy || ws_grow(&p, cap, (size_t)*n + 1, sizeof(**v)) < 0) {
        free(copy);
        return ws_raise(-ENOMEM);
    }
    *v = p;
    (*v)[*n] = (struct ws_measured_name){.name = copy, .family = -1};
    return (*n)++;
}

static int find_family(struct ws_measured_set *s, const char *name)
{
    return find_name(&s->families, &s->n_families, &s->families_cap, name);
}

static int find_app(struct ws_measured_set *s, const char *name)
{
    int app = find_name(&s->apps, &s->n_apps, &s->apps_cap, name);
    if (app < 0 || s->apps[app].family >= 0)
        return app;
    int family = find_family(s, name);
    if (family < 0)
        return family;
    s->apps[app].family = family;
    return app;
}

void ws_measured_deinit(struct ws_measured_set *s)
{
    for (int i = 0; i < s->n_apps; i++)
        free(s->apps[i].name);
    for (int i = 0; i < s->n_families; i++)
        free(s->families[i].name);
    for (int i = 0; i < s->n_inputs; i++)
        free(s->inputs[i].name);
    free(s->apps);
    free(s->families);
    free(s->inputs);
    free(s->v);
    free(s->gpu);
    *s = (struct ws_measured_set){0};
}

/* ---- columns ---- */

/* X(column, what stands for it where it was not measured): NAN: nothing does. What a ratio or a
 * share stands for is what most applications have. */
#define ALL_SMS        (-1) /* as many SMs are at work as there are blocks, at most all */
#define UNKNOWN_BLOCKS (-2) /* their number costs no time, and no SM is without one */
#define COUNTERS(X)                                                                                \
    X(inst_executed, NAN)                                                                          \
    X(cf_executed, 0)                                                                              \
    X(inst_integer, NAN)                                                                           \
    X(inst_fp_32, NAN)                                                                             \
    X(inst_fp_64, 0)                                                                               \
    X(flop_count_sp_special, 0)                                                                    \
    X(shared_load_transactions, 0)                                                                 \
    X(shared_store_transactions, 0)                                                                \
    X(shared_load_transactions_per_request, 1)                                                     \
    X(gld_transactions, NAN)                                                                       \
    X(gld_transactions_per_request, 4)                                                             \
    X(gst_transactions, NAN)                                                                       \
    X(l2_read_transactions, NAN)                                                                   \
    X(l2_write_transactions, NAN)                                                                  \
    X(dram_read_transactions, NAN)                                                                 \
    X(dram_write_transactions, NAN)                                                                \
    X(grid_blocks, UNKNOWN_BLOCKS)                                                                 \
    X(sm_efficiency, ALL_SMS)                                                                      \
    X(achieved_occupancy, 0.9)
#define ACTIVITY(X)                                                                                \
    X(sm_active, NAN)                                                                              \
    X(fp32_active, NAN)                                                                            \
    X(fp64_active, NAN)                                                                            \
    X(dram_active, NAN)
#define WATTS(X)                                                                                   \
    X(elapsed_cycles, NAN)                                                                         \
    X(idle_sms, NAN)                                                                               \
    X(aw_ibp, NAN)                                                                                 \
    X(SHRD_ACC, NAN)                                                                               \
    X(L1_RH, NAN)                                                                                  \
    X(L1_RM, NAN)                                                                                  \
    X(L1_WH, NAN)                                                                                  \
    X(L1_WM, NAN)                                                                                  \
    X(L2_RH, NAN)                                                                                  \
    X(L2_RM, NAN)                                                                                  \
    X(L2_WH, NAN)                                                                                  \
    X(L2_WM, NAN)                                                                                  \
    X(DRAM_Rd, NAN)                                                                                \
    X(DRAM_Wr, NAN)
#define NUMBER(name, missing)  C_##name,
#define TEXT(name, missing)    #name,
#define MISSING(name, missing) missing,
enum { COUNTERS(NUMBER) N_COUNTERS };
enum { ACTIVITY(NUMBER) N_ACTIVITY };
enum { WATTS(NUMBER) N_WATTS };
enum { COLUMNS_MAX = N_COUNTERS };

/* What nearly every kernel does is not taken for 0: where it was not counted, it is a share of what
 * was. These are round numbers between the medians of the applications on V100, P100, GTX 980 and
 * 1080 Ti; for DRAM, where some have far less, the geometric means. */
static const struct estimate {
    int counter, from;
    double share;
} estimates[] = {
    {C_inst_integer, C_inst_executed, 11},
    {C_inst_fp_32, C_inst_executed, 1.5},
    {C_gld_transactions, C_l2_read_transactions, 1.5},
    {C_gst_transactions, C_l2_write_transactions, 1},
    {C_l2_read_transactions, C_gld_transactions, 0.6},
    {C_l2_write_transactions, C_gst_transactions, 1},
    {C_dram_read_transactions, C_l2_read_transactions, 0.45},
    {C_dram_write_transactions, C_l2_write_transactions, 0.75},
};

/* Of the row's clocks and time, which are set; the values in the order of the columns. @texture:
 * what the texture units were asked for; 0: not known. */
typedef void events_fn(const double *v, double texture, const struct ws_event_gpu *gpu,
                       struct ws_measured_launch *ret);

static double share_of(double part, double whole)
{
    return whole > 0 ? fmin(1, part / whole) : 0;
}
static double requests(double transactions, double per_request)
{
    return transactions / fmax(per_request, 1);
}

/* Loads of global memory go through the texture units, too. What these were asked for beyond all
 * that is known otherwise is fetched from textures, four threads at a time; or from local memory,
 * which is taken to cost the same. */
static double texture_quads(const double *v, double texture)
{
    return fmax(0, texture - v[C_gld_transactions] - v[C_gst_transactions] -
                       v[C_shared_load_transactions] - v[C_shared_store_transactions]);
}

/* Where the blocks were not counted, SMs without work tell that there are few of them. */
static double blocks_of(const double *v, const struct ws_event_gpu *gpu)
{
    const double few = 0.5; /* of the SMs */
    bool is_few = v[C_sm_efficiency] != ALL_SMS && v[C_sm_efficiency] < few;
    if (v[C_grid_blocks] != UNKNOWN_BLOCKS)
        return v[C_grid_blocks];
    return is_few ? v[C_sm_efficiency] * gpu->n_sms : 0;
}

static void from_counters(const double *v, double texture, const struct ws_event_gpu *gpu,
                          struct ws_measured_launch *ret)
{
    double quads = texture_quads(v, texture), loaded = v[C_gld_transactions] + quads;
    ret->e = (struct ws_events){
        .warp_instructions = v[C_inst_executed],
        .flow_instructions = v[C_cf_executed],
        .int_ops = v[C_inst_integer],
        .fp32_ops = v[C_inst_fp_32],
        .fp64_ops = v[C_inst_fp_64],
        .sfu_ops = v[C_flop_count_sp_special],
        .shared_transactions = v[C_shared_load_transactions] + v[C_shared_store_transactions],
        .texture_quads = quads,
        .l1_sectors = loaded + v[C_gst_transactions],
        .l2_sectors = v[C_l2_read_transactions] + v[C_l2_write_transactions],
        .dram_sectors = v[C_dram_read_transactions] + v[C_dram_write_transactions],
        .load_requests = requests(v[C_gld_transactions], v[C_gld_transactions_per_request]) +
                         quads * QUAD / THREADS,
        .shared_requests =
            requests(v[C_shared_load_transactions], v[C_shared_load_transactions_per_request]),
        .l2_share = share_of(v[C_l2_read_transactions], fmax(loaded, 1)),
        .dram_share = share_of(v[C_dram_read_transactions], fmax(v[C_l2_read_transactions], 1)),
        .blocks = blocks_of(v, gpu),
        .active = v[C_sm_efficiency] != ALL_SMS        ? v[C_sm_efficiency]
                  : v[C_grid_blocks] == UNKNOWN_BLOCKS ? 1
                                                       : fmin(1, v[C_grid_blocks] / gpu->n_sms),
        .warps_per_sm = v[C_achieved_occupancy] * gpu->warps_per_sm,
        .counted = true};
}

/* What activity does not show: in each clock of an SM at work, round numbers between the medians of
 * 21 applications whose events were counted, which are alike on V100, P100, GTX 980 and 1080 Ti. */
#define UNSEEN_INSTRUCTIONS 1.0 /* of warps, beside those for floating-point operations */
#define UNSEEN_INT          9.0
#define UNSEEN_SHARED       0.1
#define UNSEEN_L1           0.27
#define UNSEEN_L2           0.2

/* The units that DCGM sees: a share of 1 is an operation by each lane in each clock. */
static void from_activity(const double *v, double texture, const struct ws_event_gpu *gpu,
                          struct ws_measured_launch *ret)
{
    double clocks = gpu->n_sms * ret->clocks.core_mhz * 1e6 * ret->rate_time_s,
           at_work = clocks * v[C_sm_active] * fmax(0, 1 - v[C_fp32_active] - v[C_fp64_active]);
    double bytes = gpu->memory_bytes_per_s * ret->clocks.memory_mhz / gpu->reference.memory_mhz *
                   ret->rate_time_s;
    double fp32 = v[C_fp32_active] * gpu->fp32_lanes * clocks;
    double fp64 = v[C_fp64_active] * gpu->fp64_lanes * clocks;
    double dram = v[C_dram_active] * bytes / SECTOR_BYTES;
    ret->e = (struct ws_events){.warp_instructions =
                                    (fp32 + fp64) / THREADS + UNSEEN_INSTRUCTIONS * at_work,
                                .int_ops = UNSEEN_INT * at_work,
                                .fp32_ops = fp32,
                                .fp64_ops = fp64,
                                .shared_transactions = UNSEEN_SHARED * at_work,
                                .l1_sectors = UNSEEN_L1 * at_work,
                                .l2_sectors = fmax(UNSEEN_L2 * at_work, dram),
                                .dram_sectors = dram,
                                .active = v[C_sm_active]};
}

static void from_watts(const double *v, double texture, const struct ws_event_gpu *gpu,
                       struct ws_measured_launch *ret)
{
    ret->rate_time_s = v[C_elapsed_cycles] / (ret->clocks.core_mhz * 1e6);
    double instructions = v[C_aw_ibp] * ret->rate_time_s / (BUFFER_NJ * 1e-9);
    ret->e = (struct ws_events){.warp_instructions = instructions,
                                .int_ops = instructions * THREADS,
                                .shared_transactions = v[C_SHRD_ACC],
                                .l1_sectors = v[C_L1_RH] + v[C_L1_RM] + v[C_L1_WH] + v[C_L1_WM],
                                .l2_sectors = v[C_L2_RH] + v[C_L2_RM] + v[C_L2_WH] + v[C_L2_WM],
                                .dram_sectors = v[C_DRAM_Rd] + v[C_DRAM_Wr],
                                .active = 1 - v[C_idle_sms] / gpu->n_sms};
}

static const struct data_source {
    const char *names[COLUMNS_MAX];
    double missing[COLUMNS_MAX];
    int n;
    events_fn *events;
    bool has_time; /* the time is not among the columns */
    bool is_rates; /* what happened in a time, however long */
    const struct estimate *estimates;
    size_t n_estimates;
} sources[] = {{{COUNTERS(TEXT)},
                {COUNTERS(MISSING)},
                N_COUNTERS,
                from_counters,
                .estimates = estimates,
                .n_estimates = WS_ARRAY_SIZE(estimates)},
               {{ACTIVITY(TEXT)}, {ACTIVITY(MISSING)}, N_ACTIVITY, from_activity, .is_rates = true},
               {{WATTS(TEXT)}, {WATTS(MISSING)}, N_WATTS, from_watts, .has_time = true}};

static const struct estimate *find_estimate(const struct data_source *s, int counter)
{
    for (size_t i = 0; i < s->n_estimates; i++)
        if (s->estimates[i].counter == counter)
            return &s->estimates[i];
    return NULL;
}

/* Columns of all sources, under the names that files have: the first of them that is there counts.
 * TEXTURES: nvprof's count of what the texture units were asked for, a file may lack it. ENERGY:
 * where there is no power. Quantities with a unit have it in their name, after a "_". */
enum { GPU, APP, INPUT, TEXTURES, CORE, MEMORY, TIME, POWER, ENERGY, N_COMMON };
enum { NAMES_MAX = 7, UNITS_MAX = 5, NAME_BYTES = 40 };
static const struct common_name {
    const char *names[NAMES_MAX];
    struct {
        const char *name;
        double is;
    } units[UNITS_MAX];
} common[N_COMMON] = {
    [GPU] = {{"gpu"}, {{0}}},
    [APP] = {{"app", "application", "benchmark", "program", "name", "kernel"}, {{0}}},
    [INPUT] = {{"input"}, {{0}}},
    [TEXTURES] = {{"tex_cache_transactions"}, {{0}}},
    [CORE] = {{"core", "core_clock", "sm_clock", "graphics_clock"},
              {{"mhz", 1}, {"ghz", 1e3}, {"khz", 1e-3}, {"hz", 1e-6}}},
    [MEMORY] = {{"mem", "memory", "mem_clock", "memory_clock"},
                {{"mhz", 1}, {"ghz", 1e3}, {"khz", 1e-3}, {"hz", 1e-6}}},
    [TIME] = {{"time", "duration", "runtime"},
              {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}},
    [POWER] = {{"power"}, {{"w", 1}, {"mw", 1e-3}, {"kw", 1e3}}},
    [ENERGY] = {{"energy"}, {{"j", 1}, {"mj", 1e-3}, {"uj", 1e-6}, {"kj", 1e3}}}};

struct measured_table {
    struct ws_csv csv;
    const struct data_source *source;
    int common[N_COMMON], at[COLUMNS_MAX];
    double unit[N_COMMON];
};

static int column(const struct ws_csv *t, const char *name)
{
    const char *const names[] = {name, NULL};
    return ws_csv_column(t, names);
}

/* The first of the quantity's names and units that there is a column of. */
static void find_common(struct measured_table *t, int what)
{
    const struct common_name *c = &common[what];
    char text[NAME_BYTES];
    t->common[what] = -1;
    t->unit[what] = 1;
    for (int i = 0; i < NAMES_MAX && c->names[i] && t->common[what] < 0; i++) {
        if (!c->units[0].name)
            t->common[what] = column(&t->csv, c->names[i]);
        for (int k = 0; k < UNITS_MAX && c->units[k].name && t->common[what] < 0; k++) {
            snprintf(text, sizeof(text), "%s_%s", c->names[i], c->units[k].name);
            t->common[what] = column(&t->csv, text);
            t->unit[what] = c->units[k].is;
        }
    }
}

/* Whether a quantity that was not found has a column that does not say its unit. */
static bool lacks_unit(const struct measured_table *t, int what, struct ws_diags *diags)
{
    const struct common_name *c = &common[what];
    if (t->common[what] >= 0 || !c->units[0].name)
        return false;
    for (int i = 0; i < NAMES_MAX && c->names[i]; i++) {
        if (column(&t->csv, c->names[i]) < 0)
            continue;
        char text[UNITS_MAX * NAME_BYTES] = "";
        for (int k = 0; k < UNITS_MAX && c->units[k].name; k++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s_%s", k ? ", " : "",
                     c->names[i], c->units[k].name);
        ws_diags_add(diags, t->csv.file, 1, 0,
                     "column %s does not say its unit; expected one of %s", c->names[i], text);
        return true;
    }
    return false;
}

/* Whether there is a column of the counter, a value to assume for it, or a column to estimate it
 * from. */
static bool can_be_known(const struct measured_table *t, int counter)
{
    const struct data_source *s = t->source;
    while (t->at[counter] < 0 && isnan(s->missing[counter])) {
        const struct estimate *e = find_estimate(s, counter);
        if (!e)
            return false;
        const struct estimate *back = find_estimate(s, e->from);
        if (t->at[e->from] < 0 && back && back->from == counter)
            return false; /* each would be estimated from the other */
        counter = e->from;
    }
    return true;
}

static void find_source(struct measured_table *t, struct ws_diags *diags)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(sources) && !t->source; i++)
        if (column(&t->csv, sources[i].names[0]) >= 0)
            t->source = &sources[i];
    if (!t->source)
        ws_diags_add(diags, t->csv.file, 1, 0,
                     "no counters: a column inst_executed, sm_active or elapsed_cycles is needed, "
                     "with those that belong to it");
    for (int i = 0; t->source && i < t->source->n; i++)
        t->at[i] = column(&t->csv, t->source->names[i]);
    for (int i = 0; t->source && i < t->source->n; i++)
        if (!can_be_known(t, i))
            ws_diags_add(diags, t->csv.file, 1, 0, "column %s is missing", t->source->names[i]);
}

static bool find_columns(struct measured_table *t, struct ws_diags *diags)
{
    size_t before = ws_diags_count(diags);
    bool unclear = false;
    for (int i = 0; i < N_COMMON; i++) {
        find_common(t, i);
        unclear |= lacks_unit(t, i, diags);
    }
    find_source(t, diags);
    if (t->common[APP] < 0)
        ws_diags_add(diags, t->csv.file, 1, 0,
                     "column app (or application, benchmark, program, name, kernel) is missing");
    if (!unclear && t->common[TIME] < 0 && t->common[POWER] < 0)
        ws_diags_add(diags, t->csv.file, 1, 0,
                     "there is no time (time_s, time_ms, time_us, time_ns) and no power (power_w, "
                     "power_mw)");
    return ws_diags_count(diags) == before;
}

/* What tables have in a cell of which nothing is known. */
static bool is_empty(const char *cell)
{
    static const char *const words[] = {"",     "-",    "na",         "n/a", "nan",
                                        "none", "null", "<overflow>", "auto"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(words); i++)
        if (!strcasecmp(cell, words[i]))
            return true;
    return false;
}

/* An empty cell, or a column that is not there, is @missing. */
static double number(const struct measured_table *t, int at, double missing, double min, double max,
                     struct ws_diags *diags)
{
    if (at < 0 || is_empty(t->csv.cells[at]))
        return missing;
    return ws_csv_number(&t->csv, at, min, max, diags);
}

/* A column of all sources, in its unit. */
static double quantity(const struct measured_table *t, int what, double min, double max,
                       struct ws_diags *diags)
{
    double unit = t->unit[what];
    return unit * number(t, t->common[what], NAN, min / unit, max / unit, diags);
}

/* A clock, near the GPU's: not in another unit. */
static double clock_mhz(const struct measured_table *t, int what, double is, bool *ret_said,
                        struct ws_diags *diags)
{
    enum { TIMES_LESS = 50, TIMES_MORE = 4 };
    double mhz = quantity(t, what, is / TIMES_LESS, is * TIMES_MORE, diags);
    *ret_said |= !isnan(mhz);
    return isnan(mhz) ? is : mhz;
}

static bool is_share(const char *name)
{
    static const char *const ends[] = {"_active", "_efficiency", "_occupancy"};
    size_t n = strlen(name);
    for (size_t i = 0; i < WS_ARRAY_SIZE(ends); i++)
        if (n > strlen(ends[i]) && !strcmp(name + n - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

/* 0 to 1, or 0 to 100 with a sign of percent, as nvprof prints it. */
static double share(const struct measured_table *t, int at, struct ws_diags *diags)
{
    char *cell = at < 0 ? NULL : t->csv.cells[at];
    size_t n = cell ? strlen(cell) : 0;
    bool is_percent = n && cell[n - 1] == '%';
    if (is_percent)
        cell[n - 1] = 0;
    double said = n ? strtod(cell, NULL) : 0;
    if (!is_percent && said > 1 && said <= 100) {
        ws_diags_add(diags, t->csv.file, t->csv.number, 0,
                     "%s: %g is out of range; expected 0 to 1, or %g%% with the sign",
                     t->csv.names[at], said, said);
        return NAN;
    }
    double v = number(t, at, NAN, 0, is_percent ? 100 : 1, diags);
    return is_percent ? v / 100 : v;
}

/* Whether the launch may have taken so little time: no scheduler issues more than two instructions
 * in a clock. */
static bool is_slow_enough(const struct measured_table *t, const struct ws_event_gpu *gpu,
                           const struct ws_measured_launch *l, struct ws_diags *diags)
{
    enum { ISSUED_MAX = 2 };
    double least_s = l->e.warp_instructions /
                     (ISSUED_MAX * gpu->schedulers * gpu->n_sms * l->clocks.core_mhz * 1e6);
    if (isnan(l->rate_time_s) || l->rate_time_s >= least_s)
        return true;
    ws_diags_add(diags, t->csv.file, t->csv.number, 0,
                 "%g s are too short for %.4g warp instructions: this GPU needs %.2g s",
                 l->rate_time_s, l->e.warp_instructions, least_s);
    return false;
}

/* Whether the row is of the GPU that is read; if none is named yet, that is the first row's.
 * Return: 1: it is; 0: of another one; -ENOMEM. */
static int is_of_gpu(struct ws_measured_set *s, const struct measured_table *t)
{
    const char *name = t->common[GPU] < 0 ? "" : t->csv.cells[t->common[GPU]];
    if (!*name)
        return 1;
    if (!s->gpu && !(s->gpu = strdup(name)))
        return ws_raise(-ENOMEM);
    return !strcmp(s->gpu, name);
}

/* Remembers that a value was assumed for a column, to be told. */
static void assume(struct ws_measured_set *s, const char *name, const char *value)
{
    size_t i = 0;
    while (i < s->n_assumed && s->assumed[i].column != name)
        i++;
    if (i == WS_ARRAY_SIZE(s->assumed))
        return;
    s->n_assumed += i == s->n_assumed;
    s->assumed[i].column = name;
    snprintf(s->assumed[i].value, sizeof(s->assumed[i].value), "%s", value);
    s->assumed[i].n++;
}

/* Puts what is assumed for counter @i, which was not measured, into @v. Return: whether there is
 * anything to assume. */
static bool fill(struct ws_measured_set *s, const struct data_source *source, double *v, int i)
{
    const struct estimate *e = find_estimate(source, i);
    char text[WS_MEASURED_VALUE_BYTES];
    if (e && isnan(v[e->from]))
        return false;
    v[i] = e ? e->share * v[e->from] : source->missing[i];
    if (e)
        snprintf(text, sizeof(text), "%g x %s", e->share, source->names[e->from]);
    else if (v[i] == ALL_SMS)
        snprintf(text, sizeof(text), "as many SMs as blocks");
    else if (v[i] == UNKNOWN_BLOCKS)
        snprintf(text, sizeof(text), "enough for all SMs");
    else
        snprintf(text, sizeof(text), "%g", v[i]);
    if (!isnan(v[i]))
        assume(s, source->names[i], text);
    return !isnan(v[i]);
}

/* Fills what was not measured; estimates may need one another, so until nothing changes. Return:
 * whether all is known. */
static bool fill_all(struct ws_measured_set *s, const struct data_source *source, double *v)
{
    bool changed = true, complete = false;
    while (changed && !complete) {
        changed = false;
        complete = true;
        for (int i = 0; i < source->n; i++) {
            if (!isnan(v[i]))
                continue;
            bool filled = fill(s, source, v, i);
            changed |= filled;
            complete = complete && filled;
        }
    }
    return complete;
}

/* The fields of @l that all sources have, and its events. */
static int read_launch(struct ws_measured_set *s, const struct measured_table *t,
                       const struct ws_event_gpu *gpu, struct ws_measured_launch *l,
                       bool *ret_complete, struct ws_diags *diags)
{
    enum { LIMITS_MAX = 3, TIME_MAX_S = 10000 };
    const int *at = t->common;
    double v[COLUMNS_MAX], power_max = gpu->limit_w > 0 ? LIMITS_MAX * gpu->limit_w : HUGE_VAL;
    size_t before = ws_diags_count(diags);
    l->clocks.core_mhz = clock_mhz(t, CORE, gpu->reference.core_mhz, &s->has_core_clock, diags);
    l->clocks.memory_mhz =
        clock_mhz(t, MEMORY, gpu->reference.memory_mhz, &s->has_memory_clock, diags);
    l->time_s = l->rate_time_s = quantity(t, TIME, 1e-9, TIME_MAX_S, diags);
    l->power_w = quantity(t, POWER, 0.1, power_max, diags);
    if (isnan(l->power_w))
        l->power_w = quantity(t, ENERGY, 1e-9, HUGE_VAL, diags) / l->time_s;
    bool untimed = isnan(l->time_s) && !t->source->has_time;
    double texture = number(t, at[TEXTURES], 0, 0, HUGE_VAL, diags);
    *ret_complete = !isnan(l->time_s) || !isnan(l->power_w);
    if (untimed && t->source->is_rates)
        l->rate_time_s = 1; /* any: what happens in it goes with it */
    else if (untimed && !s->keeps_untimed)
        *ret_complete = false;
    for (int i = 0; i < t->source->n; i++)
        v[i] = is_share(t->source->names[i]) ? share(t, t->at[i], diags)
                                             : number(t, t->at[i], NAN, 0, HUGE_VAL, diags);
    if (ws_diags_count(diags) != before)
        return 0;
    *ret_complete = *ret_complete && fill_all(s, t->source, v);
    if (!*ret_complete)
        return 0;
    t->source->events(v, texture, gpu, l);
    return 0;
}

static int add_row(struct ws_measured_set *s, const struct measured_table *t,
                   const struct ws_event_gpu *gpu, struct ws_diags *diags)
{
    size_t before = ws_diags_count(diags);
    bool complete;
    struct ws_measured_launch l = {.line = t->csv.number};
    int r = is_of_gpu(s, t);
    if (r <= 0) {
        s->n_others += !r;
        return r;
    }
    r = read_launch(s, t, gpu, &l, &complete, diags);
    if (r || ws_diags_count(diags) != before)
        return r;
    if (!complete) {
        s->n_left_out++;
        return 0;
    }
    if (!is_slow_enough(t, gpu, &l, diags))
        return 0;
    const char *app = t->csv.cells[t->common[APP]];
    if (!*app) {
        ws_diags_add(diags, t->csv.file, t->csv.number, 0, "%s is empty; expected a name",
                     t->csv.names[t->common[APP]]);
        return 0;
    }
    l.app = find_app(s, app);
    if (l.app < 0)
        return l.app;
    l.family = s->apps[l.app].family;
    int input = t->common[INPUT];
    l.input =
        input < 0 ? -1 : find_name(&s->inputs, &s->n_inputs, &s->inputs_cap, t->csv.cells[input]);
    if (input >= 0 && l.input < 0)
        return l.input;
    void *p = s->v;
    if (ws_grow(&p, &s->cap, s->n + 1, sizeof(*s->v)) < 0)
        return ws_raise(-ENOMEM);
    s->v = p;
    s->v[s->n++] = l;
    return 0;
}

/* Calls @row for each row of the table. */
static int each_row(struct ws_csv *csv, struct ws_diags *diags, int (*row)(void *arg), void *arg)
{
    for (;;) {
        int r = ws_csv_next(csv, diags);
        if (r == WS_CSV_END)
            return 0;
        if (!r)
            r = row(arg);
        if (r < 0)
            return ws_forward(r);
    }
}

struct reading {
    struct ws_measured_set *set;
    struct measured_table table;
    const struct ws_event_gpu *gpu;
    struct ws_diags *diags;
    int app, family;
};

static int read_row(void *arg)
{
    struct reading *x = arg;
    return add_row(x->set, &x->table, x->gpu, x->diags);
}

int ws_measured_read(struct ws_measured_set *s, FILE *f, const char *name,
                     const struct ws_event_gpu *gpu, struct ws_diags *diags)
{
    struct reading x = {.set = s, .gpu = gpu, .diags = diags};
    size_t before = ws_diags_count(diags);
    int r = ws_csv_open(&x.table.csv, f, name, diags);
    if (!r && find_columns(&x.table, diags))
        r = each_row(&x.table.csv, diags, read_row, &x);
    ws_csv_deinit(&x.table.csv);
    return r < 0 ? ws_forward(r) : ws_diags_count(diags) != before ? -EINVAL : 0;
}

static int read_family(void *arg)
{
    struct reading *x = arg;
    struct ws_measured_set *s = x->set;
    int app = find_name(&s->apps, &s->n_apps, &s->apps_cap, x->table.csv.cells[x->app]);
    int family = app < 0 ? app : find_family(s, x->table.csv.cells[x->family]);
    if (family >= 0)
        s->apps[app].family = family;
    return family < 0 ? family : 0;
}

int ws_measured_families(struct ws_measured_set *s, FILE *f, const char *name,
                         struct ws_diags *diags)
{
    struct reading x = {.set = s, .diags = diags};
    size_t before = ws_diags_count(diags);
    int r = ws_csv_open(&x.table.csv, f, name, diags);
    if (!r) {
        x.app = column(&x.table.csv, "app");
        x.family = column(&x.table.csv, "family");
        if (x.app < 0 || x.family < 0)
            ws_diags_add(diags, name, 1, 0, "columns app and family are needed");
        else
            r = each_row(&x.table.csv, diags, read_family, &x);
    }
    ws_csv_deinit(&x.table.csv);
    return r < 0 ? ws_forward(r) : ws_diags_count(diags) != before ? -EINVAL : 0;
}

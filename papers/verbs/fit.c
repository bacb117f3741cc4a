// SPDX-License-Identifier: Apache-2.0
/* wattshare fit: estimates applications' DVFS parameters from measured times and powers. What
 * --gpu and --check ask for is in fit_events.c. */
#include "config.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/common/options.h"
#include "cli/common/table.h"
#include "papers/fit/fit.h"
#include "papers/sets/csv.h"
#include "papers/verbs/fit_events.h"
#include "papers/verbs/input.h"

enum { NAME_MAX_BYTES = 64 };
struct app {
    char gpu[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
    struct ws_fit_sample *s;
    size_t n, cap;
};

struct fit_verb {
    enum ws_fit_method method;
    double core_mhz, mem_mhz;
    bool json, failed;
    struct app *apps;
    size_t n, cap;
    struct ws_fit_events events;
};

enum { GPU, APP, FC, FM, V, TIME, POWER, N_COLUMNS };
struct columns {
    int at[N_COLUMNS];
    double fc_unit, fm_unit;
};

static struct app *find_app(struct fit_verb *x, const char *gpu, const char *name)
{
    for (size_t i = x->n; i--;) /* an application's rows usually follow each other */
        if (!strncmp(x->apps[i].gpu, gpu, NAME_MAX_BYTES - 1) &&
            !strncmp(x->apps[i].name, name, NAME_MAX_BYTES - 1))
            return &x->apps[i];
    void *v = x->apps;
    if (ws_grow(&v, &x->cap, x->n + 1, sizeof(*x->apps)) < 0)
        return NULL;
    x->apps = v;
    struct app *a = &x->apps[x->n++];
    *a = (struct app){0};
    snprintf(a->gpu, sizeof(a->gpu), "%s", gpu);
    snprintf(a->name, sizeof(a->name), "%s", name);
    for (char *s = a->gpu; s != a->name + NAME_MAX_BYTES; s++)
        if (*s && ((unsigned char)*s < 0x20 || *s == 0x7f))
            *s = '?';
    return a;
}

static bool find_columns(const struct fit_verb *x, const struct ws_csv *t, struct columns *ret,
                         struct ws_diags *diags)
{
    static const char *const names[N_COLUMNS][4] = {
        {"gpu"},         {"app", "name", "kernel"}, {"fc", "fc_norm"},   {"fm", "fm_norm"},
        {"v", "v_norm"}, {"time", "time_ms"},       {"power", "power_W"}};
    *ret = (struct columns){.fc_unit = 1, .fm_unit = 1};
    for (int i = 0; i < N_COLUMNS; i++)
        ret->at[i] = ws_csv_column(t, names[i]);
    static const char *const core[] = {"core_mhz", NULL}, *const mem[] = {"mem_mhz", NULL};
    if (x->core_mhz > 0) {
        ret->at[FC] = ws_csv_column(t, core);
        ret->fc_unit = x->core_mhz;
    }
    if (x->mem_mhz > 0) {
        ret->at[FM] = ws_csv_column(t, mem);
        ret->fm_unit = x->mem_mhz;
    }
    static const char *const wanted[N_COLUMNS] = {
        [FC] = "fc (or fc_norm, or core_mhz with --core-mhz)",
        [FM] = "fm (or fm_norm, or mem_mhz with --mem-mhz)",
        [TIME] = "time (or time_ms)",
        [POWER] = "power (or power_W)"};
    bool all = true;
    for (int i = 0; i < N_COLUMNS; i++)
        if (wanted[i] && ret->at[i] < 0) {
            ws_diags_add(diags, t->file, 1, 0, "column %s is missing", wanted[i]);
            all = false;
        }
    return all;
}

static int add_row(struct fit_verb *x, const struct ws_csv *t, const struct columns *c,
                   struct ws_diags *diags)
{
    size_t before = ws_diags_count(diags);
    struct ws_fit_sample s = {
        .fc = ws_csv_number(t, c->at[FC], -HUGE_VAL, HUGE_VAL, diags) / c->fc_unit,
        .fm = ws_csv_number(t, c->at[FM], -HUGE_VAL, HUGE_VAL, diags) / c->fm_unit,
        .v = c->at[V] < 0 ? NAN : ws_csv_number(t, c->at[V], -HUGE_VAL, HUGE_VAL, diags),
        .time = ws_csv_number(t, c->at[TIME], -HUGE_VAL, HUGE_VAL, diags),
        .power = ws_csv_number(t, c->at[POWER], -HUGE_VAL, HUGE_VAL, diags)};
    char error[120];
    if (ws_diags_count(diags) != before)
        return 0;
    if (ws_fit_sample_check(&s, error, sizeof(error))) {
        ws_diags_add(diags, t->file, t->number, 0, "%s", error);
        return 0;
    }
    struct app *a = find_app(x, c->at[GPU] < 0 ? "" : t->cells[c->at[GPU]],
                             c->at[APP] < 0 ? "" : t->cells[c->at[APP]]);
    void *v = a ? a->s : NULL;
    if (!a || ws_grow(&v, &a->cap, a->n + 1, sizeof(*a->s)) < 0)
        return -ENOMEM;
    a->s = v;
    a->s[a->n++] = s;
    return 0;
}

static void report(struct fit_verb *x, struct ws_diags *d)
{
    x->failed = x->failed || d->n;
    for (size_t i = 0; i < d->n; i++)
        ws_cli_error("%s:%u: %s", d->v[i].file, d->v[i].line, d->v[i].text);
    ws_diags_deinit(d);
    *d = WS_DIAGS_NULL;
}

static int read_input(void *arg, FILE *f, const char *name)
{
    struct fit_verb *x = arg;
    struct ws_csv t;
    struct ws_diags d = WS_DIAGS_NULL;
    struct columns c;
    int r = ws_csv_open(&t, f, name, &d);
    if (!r && !find_columns(x, &t, &c, &d))
        r = WS_CSV_E_ROW;
    report(x, &d);
    while (!r) {
        r = ws_csv_next(&t, &d);
        if (!r)
            r = add_row(x, &t, &c, &d);
        else if (r == WS_CSV_E_ROW)
            r = 0;
        report(x, &d);
    }
    ws_csv_deinit(&t);
    return r < 0 ? r : 0;
}

/* ---- out ---- */

static void put_text(const char *key, const char *text)
{
    struct json_object *o = json_object_new_string(text);
    printf("\"%s\": %s, ", key, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
    json_object_put(o);
}

static void put_json(const struct app *a, const struct ws_dvfs_task *t,
                     const struct ws_fit_error e[3], const int left_out[3])
{
    static const char *const names[] = {"fit", "without_core_clock", "without_memory_clock"};
    struct ws_dvfs_point d = ws_dvfs_default(t);
    putchar('{');
    put_text("gpu", a->gpu);
    put_text("app", a->name);
    printf(
        "\"n\": %zu, \"P0\": %.10g, \"gamma\": %.10g, \"c\": %.10g, \"t0\": %.10g, \"D\": %.10g, "
        "\"delta\": %.10g, \"t_star\": %.10g, \"P_star\": %.10g, \"mape_pct\": {",
        a->n, t->p0, t->gamma, t->c, t->t0, t->d, t->delta, d.t, d.p);
    for (int i = 0; i < 3; i++) {
        printf("%s\"%s\": ", i ? ", " : "", names[i]);
        if (left_out[i])
            printf("null");
        else
            printf("{\"time\": %.6g, \"power\": %.6g, \"energy\": %.6g}", e[i].mape_time,
                   e[i].mape_power, e[i].mape_energy);
    }
    puts("}}");
}

static void put_row(struct ws_table *table, const struct app *a, const struct ws_dvfs_task *t,
                    const struct ws_fit_error e[3], const int left_out[3])
{
    ws_table_add(table, "%s", a->gpu);
    ws_table_add(table, "%s", a->name);
    ws_table_add(table, "%zu", a->n);
    const double v[] = {t->p0, t->gamma, t->c, t->t0, t->d, t->delta};
    for (size_t i = 0; i < WS_ARRAY_SIZE(v); i++)
        ws_table_add(table, "%.4f", v[i]);
    ws_table_add(table, "%.2f", e[0].mape_time);
    ws_table_add(table, "%.2f", e[0].mape_power);
    ws_table_add(table, "%.2f", e[0].mape_energy);
    for (int i = 1; i < 3; i++)
        if (left_out[i])
            ws_table_add(table, "-");
        else
            ws_table_add(table, "%.2f", e[i].mape_energy);
}

/* Weighted by samples: over all points of all applications. */
struct error_total {
    double sum[3][3], n[3];
};

static void add_total(struct error_total *t, const struct ws_fit_error e[3], const int left_out[3])
{
    for (int i = 0; i < 3; i++) {
        if (left_out[i])
            continue;
        t->n[i] += e[i].n;
        t->sum[i][0] += e[i].mape_time * e[i].n;
        t->sum[i][1] += e[i].mape_power * e[i].n;
        t->sum[i][2] += e[i].mape_energy * e[i].n;
    }
}

static void fit_app(struct fit_verb *x, const struct app *a, struct ws_table *table,
                    struct error_total *total)
{
    struct ws_dvfs_task t;
    struct ws_fit_error e[3];
    int left_out[3] = {0};
    char error[200];
    if (ws_fit(a->s, (int)a->n, x->method, &t, error, sizeof(error))) {
        ws_cli_error("%s%s%s: %s", a->gpu, *a->gpu ? " " : "", *a->name ? a->name : "samples",
                     error);
        x->failed = true;
        return;
    }
    struct ws_fit_sample *scratch = ws_alloc_array(a->n, sizeof(*scratch));
    e[0] = ws_fit_error(&t, a->s, (int)a->n);
    for (int i = 1; i < 3; i++)
        left_out[i] = !scratch || ws_fit_leave_out(a->s, (int)a->n, x->method,
                                                   i == 1 ? WS_FIT_CORE_CLOCK : WS_FIT_MEMORY_CLOCK,
                                                   scratch, &e[i], error, sizeof(error));
    free(scratch);
    add_total(total, e, left_out);
    if (x->json)
        put_json(a, &t, e, left_out);
    else
        put_row(table, a, &t, e, left_out);
}

static void put_total(const struct error_total *t)
{
    static const char *const names[] = {"fit", "a core clock left out", "a memory clock left out"};
    for (int i = 0; i < 3; i++)
        if (t->n[i] > 0)
            printf("mean error over %g points, %s: time %.3f %%, power %.3f %%, energy %.3f %%\n",
                   t->n[i], names[i], t->sum[i][0] / t->n[i], t->sum[i][1] / t->n[i],
                   t->sum[i][2] / t->n[i]);
}

static int fit_all(struct fit_verb *x)
{
    static const char *const heads[] = {"gpu",     "app",      "n",       "P0",     "gamma",
                                        "c",       "t0",       "D",       "delta",  "time %",
                                        "power %", "energy %", "no core", "no mem", NULL};
    struct ws_table table;
    struct error_total total = {0};
    ws_table_init(&table, heads);
    for (size_t i = 0; i < x->n; i++)
        fit_app(x, &x->apps[i], &table, &total);
    int r = 0;
    if (!x->json) {
        r = ws_table_print(&table, stdout);
        put_total(&total);
    }
    ws_table_deinit(&table);
    return r;
}

static int parse_method(void *values, char *text)
{
    struct fit_verb *x = values;
    int method = ws_fit_method_parse(text);
    if (method < 0) {
        ws_cli_error("--method %s: expected nnls, nnls_rel, ols or lasso_pos", text);
        return -EINVAL;
    }
    x->method = (enum ws_fit_method)method;
    return 0;
}

static const struct ws_option options[] = {
    {"method", NULL, "How the parameters are estimated (nnls).",
     .more = "nnls: least squares with parameters of 0 and more; nnls_rel: the same of relative "
             "residuals; ols: least squares without that limit; lasso_pos: what the authors "
             "released.",
     .words = "nnls|nnls_rel|ols|lasso_pos", WS_PARSE(parse_method)},
    {"core-mhz", "F", "The default core clock, for samples with a column core_mhz.",
     WS_NUMBER(struct fit_verb, core_mhz, 1, 1e6)},
    {"mem-mhz", "F", "The default memory clock, for samples with a column mem_mhz.",
     WS_NUMBER(struct fit_verb, mem_mhz, 1, 1e6)},
    {"json", NULL, "Print one JSON object a line, which wattshare optimum reads.",
     WS_FLAG(struct fit_verb, json)},
    {"gpu", "NAME", "Fit the models of power and time of this GPU of the catalog.",
     .group = "A model of a GPU",
     .more =
         "Prints the errors for the launches of each family of applications by models that were "
         "fitted without it, those of the fit itself, what each event costs, and what of that "
         "the data can tell.",
     WS_TEXT(struct fit_verb, events.gpu)},
    {"check", NULL,
     "Predict with the entry of the catalog and print how far off it is; fit nothing.",
     .more = "Without --gpu, the entry is that of the column gpu, in small letters.",
     WS_FLAG(struct fit_verb, events.check)},
    {"families", "FILE",
     "CSV with columns app and family: the programs that are variants of one another.",
     WS_TEXT(struct fit_verb, events.families)},
    {"also", "FILE", "Fit to the launches of this file too, but do not count their errors.",
     .more = "For micro-benchmarks.", WS_TEXT(struct fit_verb, events.more)},
    {"idle", "W", "The power at the reference clocks with nothing running, measured elsewhere.",
     .more = "Without it, 0.3 of the board's limit, 0.2 with HBM.",
     WS_NUMBER(struct fit_verb, events.idle_w, 0, 1e4)},
    {"entry", "FILE",
     "Write the fitted numbers into this file of the catalog, which describes the GPU.",
     WS_TEXT(struct fit_verb, events.entry)},
    {"source", "TEXT", "Where the measurements are from, for the entry (the first file's name).",
     WS_TEXT(struct fit_verb, events.source)},
    {0}};
static const char *const arguments[] = {"[FILE...]", NULL};
static const char *const examples[] = {
    "wattshare fit --core-mhz 1800 --mem-mhz 5000 --json samples.csv | wattshare optimum "
    "--interval narrow",
    "wattshare fit --gpu v100 --families split.csv v100.csv",
    "wattshare fit --check --gpu v100 others.csv", NULL};

static int fit(int argc, char **argv);

const struct ws_verb ws_verb_fit = {
    .name = "fit",
    .purpose = "estimate how applications' time and power follow the clocks",
    .about =
        "Samples are CSV with a head. Its columns are fc or fc_norm, the core clock as a share "
        "of the default, or core_mhz; fm or fm_norm, the memory clock, or mem_mhz; v or v_norm, "
        "the voltage as a share of the default (missing: the lowest stable one for fc); time or "
        "time_ms; power or power_W; and gpu and app, which may be missing.\nErrors are in % of "
        "the measured values; \"no core\" and \"no mem\" are those for a clock that was left "
        "out of the fit.\nWith --gpu or --check the rows are launches of kernels with what they "
        "did: the "
        "counters of nvprof, the activity of DCGM, or AccelWattch's tables, with the columns app, "
        "time_s (or time_ms, time_us, time_ns), power_w (or power_mw, or energy_j beside a time), "
        "core_mhz and mem_mhz (or in ghz, khz or hz), in any order; shares are 0 to 1, or have a "
        "sign of percent. Between cells are commas, semicolons or tabs. Time or power may be "
        "missing, and so may some counters and the clocks, for which a usual value is assumed and "
        "told then. Of a file with several GPUs, the launches of the one that --gpu names are "
        "read.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .max_arguments = WS_ARGUMENTS_ANY,
    .run = fit,
};

static int fit(int argc, char **argv)
{
    struct fit_verb x = {.method = WS_FIT_NNLS};
    char **files;
    int r = ws_verb_parse(&ws_verb_fit, argc, argv, &x, &files);
    if (r >= 0)
        return r;
    if (x.events.gpu || x.events.check)
        return ws_fit_events(&x.events, files);
    r = ws_cli_each_input(files, read_input, &x);
    if (r >= 0 && fit_all(&x))
        r = -ENOMEM;
    for (size_t i = 0; i < x.n; i++)
        free(x.apps[i].s);
    free(x.apps);
    return r || x.failed || fflush(stdout) ? 1 : 0;
}

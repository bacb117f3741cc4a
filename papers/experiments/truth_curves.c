// SPDX-License-Identifier: Apache-2.0
/* How time follows the number of SMs and the clocks, as others measured it and as it is predicted.
 *
 * SMs: the eight kernels of sBEET-mg on the RTX 3070 and the T400. A kernel's own times on one SM
 * and on all give a line in 1/SMs; or its time on all SMs gives a curve of the shape that the other
 * kernels have (truth_sms.h).
 *
 * Clocks: six GPUs. The curve of an application is its time at each setting by its time at the one
 * next to the catalog's clocks. It is predicted by the model of time from events, fitted without
 * the application's family, where there are counters; and by the mean curve of the other
 * families. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/experiments/truth.h"
#include "papers/experiments/truth_sms.h"
#include "papers/live/live.h"
#include "papers/sets/csv.h"

#define TIME_WANTED  18
#define POWER_WANTED 10

/* ---- the number of SMs ---- */

/* Errors in percent: their mean, and the application with the largest mean. */
struct curve_errors {
    double sum, worst;
    int n;
    char worst_app[64];
};

static double error_of(double predicted, double measured)
{
    return 100 * fabs(predicted / measured - 1);
}

/* The errors of one application. */
static void add_app(struct curve_errors *e, const char *app, double sum, int n)
{
    e->sum += sum;
    e->n += n;
    if (!n || sum / n <= e->worst)
        return;
    e->worst = sum / n;
    snprintf(e->worst_app, sizeof(e->worst_app), "%s", app);
}

/* @simple: errors of a simpler prediction, for the note; may be NULL. */
static void put_errors(struct ws_experiment_run *x, const char *title, const char *what,
                       double wanted, const struct curve_errors *e,
                       const struct curve_errors *simple, const char *simple_is)
{
    char text[128], note[192], more[80] = "";
    snprintf(text, sizeof(text), "%s: %s (%%)", title, what);
    if (simple && simple->n)
        snprintf(more, sizeof(more), "; %s: %.1f", simple_is, simple->sum / simple->n);
    snprintf(note, sizeof(note), "%d values; worst: %s, %.1f%s", e->n, e->worst_app, e->worst,
             more);
    ws_experiment_at_most(x, text, wanted, e->sum / e->n, note);
}

enum { TIME_LINE, TIME_SHAPE, POWER_OWN, POWER_OTHERS, N_WAYS };
static const struct {
    double (*predicted)(const struct ws_measured_kernel *k, int m);
    double (*measured)(const struct ws_measured_kernel *k, int m);
} ways[N_WAYS] = {[TIME_LINE] = {ws_truth_sms_line_s, ws_truth_sms_time_s},
                  [TIME_SHAPE] = {ws_truth_sms_predict_s, ws_truth_sms_time_s},
                  [POWER_OWN] = {ws_truth_sms_own_w, ws_truth_sms_power_w},
                  [POWER_OTHERS] = {ws_truth_sms_predict_w, ws_truth_sms_power_w}};

static void sms_of_gpu(struct ws_experiment_run *x, FILE *csv, const char *gpu, const char *title)
{
    struct curve_errors errors[N_WAYS] = {0};
    for (int app = 0; app < WS_MEASURED_APPS; app++) {
        const struct ws_measured_kernel *k = ws_measured_app(gpu, app);
        double sums[N_WAYS] = {0};
        for (int m = 1; m <= k->cost.n_sm; m++) {
            fprintf(csv, "%s,%s,%d,%.6g,%.6g", title, k->name, m, ws_truth_sms_time_s(k, m),
                    ws_truth_sms_power_w(k, m));
            for (int i = 0; i < N_WAYS; i++) {
                double predicted = ways[i].predicted(k, m);
                fprintf(csv, ",%.6g", predicted);
                sums[i] += error_of(predicted, ways[i].measured(k, m));
            }
            fputc('\n', csv);
        }
        for (int i = 0; i < N_WAYS; i++)
            add_app(&errors[i], k->name, sums[i], k->cost.n_sm);
    }
    put_errors(x, title, "time by SMs, line through 1 and all", TIME_WANTED, &errors[TIME_LINE],
               &errors[TIME_SHAPE], "shape of the other kernels");
    put_errors(x, title, "power by SMs, from that on all", POWER_WANTED, &errors[POWER_OWN],
               &errors[POWER_OTHERS], "W per SM of the other kernels");
}

static int run_sms(struct ws_experiment_run *x)
{
    FILE *csv = ws_experiment_csv(x, "truth-curves-sms");
    if (!csv)
        return -EIO;
    fprintf(csv,
            "gpu,app,sms,time_s,power_w,time_line_s,time_shape_s,power_own_w,power_others_w\n");
    sms_of_gpu(x, csv, "rtx3070", "RTX 3070");
    sms_of_gpu(x, csv, "t400", "T400");
    return fclose(csv) ? -EIO : 0;
}

/* ---- clocks ---- */

static const struct {
    const char *gpu, *title, *file;
} clocked[] = {{"v100", "V100", "nvdvfs-nvprof/v100.csv"},
               {"p100", "P100", "nvdvfs-nvprof/p100.csv"},
               {"gtx980", "GTX 980", "nvdvfs-nvprof/gtx980.csv"},
               {"gtx1080ti", "GTX 1080 Ti", "nvdvfs-nvprof/gtx1080ti.csv"},
               {"rtx8000", "RTX 8000", "nvdvfs-dcgm/rtx8000-real.csv"},
               {"rtx2070s", "RTX 2070 SUPER", "nvdvfs-nvprof/rtx2070s.csv"}};

/* A time at a setting; the predictions are of the same application at its reference. */
struct curve_point {
    int app, family;
    struct ws_event_clocks clocks;
    double time_s, model_s; /* model_s NAN: there are no counters */
    size_t reference;       /* which point is its application's */
};

struct curve_set {
    struct ws_experiment_run *x;
    const char *title;
    struct ws_truth_data d; /* with launches only where there are counters */
    struct curve_point *v;
    size_t n, cap;
};

static int add_point(struct curve_set *c, int app, const struct ws_event_clocks *clocks,
                     double time_s)
{
    void *p = c->v;
    if (ws_grow(&p, &c->cap, c->n + 1, sizeof(*c->v)) < 0)
        return -ENOMEM;
    c->v = p;
    c->v[c->n++] = (struct curve_point){app, c->d.set.apps[app].family, *clocks, time_s, NAN, 0};
    return 0;
}

static int find_app(const struct curve_set *c, const char *name)
{
    for (int i = 0; i < c->d.set.n_apps; i++)
        if (!strcmp(c->d.set.apps[i].name, name))
            return i;
    return -1;
}

/* Times from a file that need not have counters; all its applications are in split.csv. */
static int read_times(struct curve_set *c, const char *name)
{
    static const char *const columns[][2] = {{"app"}, {"core_mhz"}, {"mem_mhz"}, {"time_s"}};
    char path[4096];
    struct ws_csv t = {0};
    int at[4], r;
    snprintf(path, sizeof(path), "%s/%s", c->x->data, name);
    FILE *f = fopen(path, "re");
    r = f ? ws_csv_open(&t, f, name, NULL) : -ENOENT;
    for (int i = 0; !r && i < 4; i++)
        if ((at[i] = ws_csv_column(&t, columns[i])) < 0)
            r = -EINVAL;
    while (!r && !(r = ws_csv_next(&t, NULL))) {
        struct ws_event_clocks clocks = {ws_csv_number(&t, at[1], 1, HUGE_VAL, NULL),
                                         ws_csv_number(&t, at[2], 1, HUGE_VAL, NULL)};
        double time_s = ws_csv_number(&t, at[3], 1e-9, HUGE_VAL, NULL);
        int app = find_app(c, t.cells[at[0]]);
        if (app >= 0 && !isnan(time_s + clocks.core_mhz + clocks.memory_mhz))
            r = add_point(c, app, &clocks, time_s);
    }
    if (r && r != WS_CSV_END)
        ws_cli_error("%s: cannot be read as times of launches", path);
    if (f) {
        ws_csv_deinit(&t);
        fclose(f);
    }
    return r == WS_CSV_END ? 0 : r < 0 ? r : -EINVAL;
}

/* Predicts each launch from its events, by models that were fitted without its family. */
static int predict_times(struct curve_set *c)
{
    struct ws_calibrate k = ws_truth_calibrate(&c->d);
    int *count = ws_alloc_array((size_t)k.n_families + 1, sizeof(*count)), r = count ? 0 : -ENOMEM;
    for (int f = 0; !r && f < k.n_families; f++) {
        struct ws_event_time time;
        for (int i = 0; i < k.n_families; i++)
            count[i] = i != f;
        r = ws_calibrate_time(&k, count, &time);
        for (size_t i = 0; !r && i < c->n; i++)
            if (c->v[i].family == f && k.v[i].e.counted)
                c->v[i].model_s = ws_event_time_s(&time, k.gpu, &k.v[i].e, &k.v[i].clocks);
    }
    free(count);
    return r;
}

static int read_curves(struct curve_set *c, const char *gpu, const char *file)
{
    struct ws_truth_source source = {gpu, c->title, NULL, NULL, false, NULL};
    const struct ws_truth_source *counted = NULL;
    for (int i = 0; i < WS_TRUTH_SOURCES; i++)
        if (!strcmp(ws_truth_sources[i].gpu, gpu) && ws_truth_sources[i].has_choices)
            counted = &ws_truth_sources[i];
    int r = ws_truth_read(c->x, counted ? counted : &source, &c->d);
    if (r || !counted)
        return r ? r : read_times(c, file);
    for (size_t i = 0; !r && i < c->d.set.n; i++) {
        const struct ws_measured_launch *l = &c->d.set.v[i];
        r = add_point(c, l->app, &l->clocks, l->time_s);
    }
    return r ? r : predict_times(c);
}

static double distance(const struct curve_set *c, const struct curve_point *p)
{
    return fabs(log(p->clocks.core_mhz / c->d.gpu.reference.core_mhz)) +
           fabs(log(p->clocks.memory_mhz / c->d.gpu.reference.memory_mhz));
}

static void find_references(struct curve_set *c)
{
    for (size_t i = 0; i < c->n; i++) {
        c->v[i].reference = i;
        for (size_t k = 0; k < c->n; k++)
            if (c->v[k].app == c->v[i].app &&
                distance(c, &c->v[k]) < distance(c, &c->v[c->v[i].reference]))
                c->v[i].reference = k;
    }
}

static double slower(const struct curve_set *c, const struct curve_point *p)
{
    return p->time_s / c->v[p->reference].time_s;
}

/* The mean curve of the other families at the setting of @p. */
static double slower_of_others(const struct curve_set *c, const struct curve_point *p)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct curve_point *o = &c->v[i];
        if (o->family == p->family || o->clocks.core_mhz != p->clocks.core_mhz ||
            o->clocks.memory_mhz != p->clocks.memory_mhz)
            continue;
        sum += log(slower(c, o));
        n++;
    }
    return n > 0 ? exp(sum / n) : NAN;
}

static void put_curves(const struct curve_set *c, FILE *csv)
{
    struct curve_errors model = {0}, others = {0};
    for (int app = 0; app < c->d.set.n_apps; app++) {
        double sums[2] = {0};
        int n[2] = {0};
        for (size_t i = 0; i < c->n; i++) {
            const struct curve_point *p = &c->v[i];
            double predicted[2] = {p->model_s / c->v[p->reference].model_s, slower_of_others(c, p)};
            if (p->app != app || p->reference == i)
                continue;
            fprintf(csv, "%s,%s,%g,%g,%.6g", c->title, c->d.set.apps[app].name, p->clocks.core_mhz,
                    p->clocks.memory_mhz, slower(c, p));
            for (int k = 0; k < 2; k++) {
                isnan(predicted[k]) ? fputc(',', csv) : fprintf(csv, ",%.6g", predicted[k]);
                if (isnan(predicted[k]))
                    continue;
                sums[k] += error_of(predicted[k], slower(c, p));
                n[k]++;
            }
            fputc('\n', csv);
        }
        add_app(&model, c->d.set.apps[app].name, sums[0], n[0]);
        add_app(&others, c->d.set.apps[app].name, sums[1], n[1]);
    }
    if (model.n)
        put_errors(c->x, c->title, "time by clocks, from events", TIME_WANTED, &model, &others,
                   "mean of other families");
    else
        put_errors(c->x, c->title, "time by clocks, mean of other families", TIME_WANTED, &others,
                   NULL, NULL);
}

static int run_clocks(struct ws_experiment_run *x)
{
    FILE *csv = ws_experiment_csv(x, "truth-curves-clocks");
    int r = csv ? 0 : -EIO;
    if (csv)
        fprintf(csv, "gpu,app,core_mhz,mem_mhz,slower,slower_events,slower_others\n");
    for (size_t i = 0; !r && i < WS_ARRAY_SIZE(clocked); i++) {
        struct curve_set c = {.x = x, .title = clocked[i].title};
        r = read_curves(&c, clocked[i].gpu, clocked[i].file);
        if (!r) {
            find_references(&c);
            put_curves(&c, csv);
        }
        free(c.v);
        ws_truth_deinit(&c.d);
    }
    return csv && fclose(csv) && !r ? -EIO : r;
}

/* ---- both ---- */

static void plot_sms(struct ws_experiment_run *x, const char *name, const char *title)
{
    char text[4096];
    size_t n =
        (size_t)snprintf(text, sizeof(text),
                         "set logscale xy\nset xlabel 'SMs'\nset ylabel 's'\n"
                         "set title '%s: points measured, lines through 1 and all SMs'\nplot ",
                         title);
    for (int app = 0; app < WS_MEASURED_APPS && n < sizeof(text); app++) {
        const char *kernel = ws_measured_app("rtx3070", app)->name;
        const char *file = app ? ", ''" : "'truth-curves-sms.csv'";
        n += (size_t)snprintf(
            text + n, sizeof(text) - n,
            "%s using (strcol(1) eq '%s' && strcol(2) eq '%s' ? $3 : 1/0):4 with points pt 7 ps "
            "0.5 lc %d title '%s', '' using (strcol(1) eq '%s' && strcol(2) eq '%s' ? $3 : 1/0):6 "
            "with lines lc %d notitle",
            file, title, kernel, app + 1, kernel, title, kernel, app + 1);
    }
    if (n < sizeof(text))
        ws_experiment_plot(x, name, text);
}

static int run_curves(struct ws_experiment_run *x)
{
    int r = ws_truth_check(x);
    if (!r)
        r = run_sms(x);
    if (!r)
        r = run_clocks(x);
    if (r)
        return r;
    plot_sms(x, "truth-curves-rtx3070", "RTX 3070");
    plot_sms(x, "truth-curves-t400", "T400");
    ws_experiment_plot(
        x, "truth-curves-clocks",
        "set logscale xy\nset xlabel 'measured: time by that at the reference clocks'\n"
        "set ylabel 'predicted'\nset style fill transparent solid 0.15 noborder\n"
        "stats 'truth-curves-clocks.csv' using 5 name 'M' nooutput\n"
        "set xrange [M_min * 0.9:M_max * 1.1]\nset yrange [M_min * 0.7:M_max * 1.4]\n"
        "plot '+' using 1:($1 * 0.9):($1 * 1.1) with filledcurves title '±10 %', x notitle, "
        "'truth-curves-clocks.csv' using 5:7 with points pt 6 ps 0.3 title 'mean of others', "
        "'' using 5:6 with points pt 7 ps 0.3 title 'from events', "
        "'' using 5:(abs($6 / $5 - 1) > 0.25 ? $6 : 1/0):2 every 5 with labels font ',7' notitle");
    return 0;
}

const struct ws_experiment ws_experiment_truth_curves = {
    "truth-curves", "measurements of others (--data)",
    "time against the number of SMs on two GPUs and against clocks on six", run_curves};

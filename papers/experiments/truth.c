// SPDX-License-Identifier: Apache-2.0
/* The models of power and time from events against GPUs that others measured: each family of
 * applications is predicted by models that were fitted without it. Beside the errors stand those of
 * two simple predictions: the mean power of the other families, and non-negative least squares on
 * the same events with nothing expected. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/experiments/truth.h"
#include "papers/fit/score.h"

#define POWER_WANTED  10
#define TIME_WANTED   18
#define ENERGY_WANTED 15
#define POWER_ASIDE   12
#define TIME_ASIDE    20
#define ENERGY_ASIDE  18
#define POWER_WORST   35
#define TIME_WORST    60
enum { SHUFFLES = 4 };

struct truth {
    struct ws_experiment_run *x;
    struct ws_truth_data d;
    struct ws_predicted *ours, *mean, *squares; /* [d.set.n] */
    struct ws_predicted *third[SHUFFLES];       /* a third of the families left out at a time */
    struct ws_score_app *apps;
    FILE *csv;
};

/* ---- predictions ---- */

static void predict_means(struct truth *t)
{
    for (size_t i = 0; i < t->d.n_judged; i++) {
        double sum = 0, n = 0;
        for (size_t k = 0; k < t->d.n_judged; k++) {
            const struct ws_measured_launch *l = &t->d.set.v[k];
            if (l->family == t->d.set.v[i].family || isnan(l->power_w))
                continue;
            sum += l->power_w;
            n++;
        }
        t->mean[i] = (struct ws_predicted){n > 0 ? sum / n : NAN, NAN, NAN};
    }
}

static int predict(struct truth *t)
{
    struct ws_calibrate c = ws_truth_calibrate(&t->d);
    /* The voltage falls with the clock to the half of it. */
    struct ws_calibrate plain = {.gpu = c.gpu,
                                 .v = c.v,
                                 .n = c.n,
                                 .n_families = c.n_families,
                                 .plain = true,
                                 .one_curve = true,
                                 .slope = 0.5};
    int r = ws_calibrate_leave_out(&c, t->ours);
    if (!r)
        r = ws_calibrate_leave_out(&plain, t->squares);
    for (uint32_t i = 0; !r && i < SHUFFLES; i++)
        r = ws_calibrate_leave_third_out(&c, i + 1, t->third[i]);
    predict_means(t);
    return r;
}

/* ---- out ---- */

static void put_row(const struct truth *t, size_t i)
{
    const struct ws_measured_launch *l = &t->d.set.v[i];
    fprintf(t->csv, "%s,%s,%s,%g,%g", t->d.source->title, t->d.set.apps[l->app].name,
            t->d.set.families[l->family].name, l->clocks.core_mhz, l->clocks.memory_mhz);
    for (int of = 0; of < WS_SCORE_N; of++) {
        double v[] = {ws_score_measured(l, of), ws_score_predicted(&t->ours[i], of)};
        for (int k = 0; k < 2; k++)
            isnan(v[k]) ? fputc(',', t->csv) : fprintf(t->csv, ",%.6g", v[k]);
    }
    fputc('\n', t->csv);
}

static int score(struct truth *t, const struct ws_predicted *p, enum ws_score_of of,
                 struct ws_score *ret)
{
    return ws_score(t->d.set.v, p, t->d.n_judged, of, t->d.set.n_apps, ret, t->apps);
}

/* As if nobody had looked at a third of the applications. */
static int put_third(struct truth *t, enum ws_score_of of, const char *name, double wanted)
{
    double mean = 0, worst = 0;
    char what[80], note[80];
    for (int i = 0; i < SHUFFLES; i++) {
        struct ws_score s;
        int r = score(t, t->third[i], of, &s);
        if (r)
            return r;
        mean += s.mean / SHUFFLES;
        worst = fmax(worst, s.mean);
    }
    snprintf(what, sizeof(what), "%s: %s, a third left out (%%)", t->d.source->title, name);
    snprintf(note, sizeof(note), "mean of %d ways to choose it; the worst way %.1f", SHUFFLES,
             worst);
    ws_experiment_at_most(t->x, what, wanted, mean, note);
    return 0;
}

static int put_scores(struct truth *t)
{
    static const struct {
        const char *name;
        double wanted, aside; /* aside: where more is left out */
        double worst;         /* INFINITY: nothing is wanted of single applications */
    } rows[WS_SCORE_N] = {{"power", POWER_WANTED, POWER_ASIDE, POWER_WORST},
                          {"time", TIME_WANTED, TIME_ASIDE, TIME_WORST},
                          {"energy", ENERGY_WANTED, ENERGY_ASIDE, INFINITY}};
    for (int of = 0; of < WS_SCORE_N; of++) {
        struct ws_score s, mean, squares;
        char what[80], note[160] = "";
        int r = score(t, t->ours, of, &s);
        if (!r && of == WS_SCORE_POWER)
            r = score(t, t->mean, of, &mean);
        if (!r && of == WS_SCORE_POWER)
            r = score(t, t->squares, of, &squares);
        if (r)
            return r;
        if (!s.n)
            continue;
        snprintf(what, sizeof(what), "%s: %s, mean error (%%)", t->d.source->title, rows[of].name);
        if (of == WS_SCORE_POWER)
            snprintf(note, sizeof(note), "median %.1f; mean power %.1f, least squares %.1f",
                     s.median, mean.mean, squares.mean);
        else
            snprintf(note, sizeof(note), "median %.1f", s.median);
        ws_experiment_at_most(t->x, what, rows[of].wanted, s.mean, note);
        r = put_third(t, (enum ws_score_of)of, rows[of].name, rows[of].aside);
        if (r)
            return r;
        if (isinf(rows[of].worst))
            continue;
        snprintf(what, sizeof(what), "%s: %s, worst application (%%)", t->d.source->title,
                 rows[of].name);
        snprintf(note, sizeof(note), "%s", t->d.set.apps[s.worst_app].name);
        ws_experiment_at_most(t->x, what, rows[of].worst, s.worst_app_mean, note);
    }
    return 0;
}

/* What the regression of 2011 makes of the same launches. */
static int put_2011(struct truth *t)
{
    struct ws_truth_2011 e;
    char what[80], note[80];
    int r = ws_truth_2011(&t->d, t->ours, &e);
    if (r)
        return r;
    snprintf(what, sizeof(what), "%s: power by the regression of 2011 (%%)", t->d.source->title);
    snprintf(note, sizeof(note), "at the highest clocks; by events %.1f there", e.events);
    ws_experiment_compare(t->x, what, NAN, e.regression, 0, 0, note);
    return 0;
}

static int run_source(struct truth *t, const struct ws_truth_source *source)
{
    int r = ws_truth_read(t->x, source, &t->d);
    if (!r) {
        t->ours = ws_alloc_array(t->d.set.n, sizeof(*t->ours));
        t->mean = ws_alloc_array(t->d.set.n, sizeof(*t->mean));
        t->squares = ws_alloc_array(t->d.set.n, sizeof(*t->squares));
        t->apps = ws_alloc_array((size_t)t->d.set.n_apps, sizeof(*t->apps));
        bool all = t->ours && t->mean && t->squares && t->apps;
        for (int i = 0; i < SHUFFLES; i++)
            all &= !!(t->third[i] = ws_alloc_array(t->d.set.n, sizeof(*t->third[i])));
        r = all ? predict(t) : -ENOMEM;
    }
    for (size_t i = 0; !r && i < t->d.n_judged; i++)
        put_row(t, i);
    if (!r)
        r = put_scores(t);
    if (!r)
        r = put_2011(t);
    free(t->ours);
    free(t->mean);
    free(t->squares);
    free(t->apps);
    for (int i = 0; i < SHUFFLES; i++)
        free(t->third[i]);
    ws_truth_deinit(&t->d);
    return r;
}

/* Points by GPU, the band of ±10 %, and the names of those that are off by more than @apart. */
static void plot(struct ws_experiment_run *x, const char *name, int column, const char *unit,
                 const char *apart)
{
    char text[2600];
    size_t n = (size_t)snprintf(
        text, sizeof(text),
        "set logscale xy\nset xlabel 'measured (%s)'\nset ylabel 'predicted (%s)'\n"
        "set title 'truth-fit: %s, each family of applications left out of the fit'\n"
        "off(m, p) = abs(p / m - 1) > %s\n"
        "set style fill transparent solid 0.15 noborder\n"
        "stats 'truth-fit.csv' using %d name 'M' nooutput\n"
        "set xrange [M_min * 0.8:M_max * 1.25]\nset yrange [M_min * 0.5:M_max * 2]\n"
        "plot '+' using 1:($1 * 0.9):($1 * 1.1) with filledcurves title '±10 %%', x notitle "
        "lc 'gray'",
        unit, unit, name, apart, column);
    for (int i = 0; i < WS_TRUTH_SOURCES; i++)
        n += (size_t)snprintf(
            text + n, sizeof(text) - n,
            ", \\\n 'truth-fit.csv' using (strcol(1) eq '%s' && "
            "strlen(strcol(%d)) ? $%d : 1/0):%d with points pt 7 ps 0.4 title '%s'",
            ws_truth_sources[i].title, column + 1, column, column + 1, ws_truth_sources[i].title);
    snprintf(text + n, sizeof(text) - n,
             ", \\\n 'truth-fit.csv' using (strlen(strcol(%d)) && off($%d, $%d) ? $%d : "
             "1/0):%d:2 every 7 with labels font ',7' offset 0,0.5 notitle",
             column + 1, column, column + 1, column, column + 1);
    char file[64];
    snprintf(file, sizeof(file), "truth-fit-%s", name);
    ws_experiment_plot(x, file, text);
}

static int run_fit(struct ws_experiment_run *x)
{
    int r = ws_truth_check(x);
    FILE *csv = r ? NULL : ws_experiment_csv(x, "truth-fit");
    if (!csv)
        return r ? r : -EIO;
    fprintf(csv, "gpu,app,family,core_mhz,mem_mhz,power_w,power_predicted_w,time_s,"
                 "time_predicted_s,energy_j,energy_predicted_j\n");
    for (int i = 0; !r && i < WS_TRUTH_SOURCES; i++) {
        struct truth t = {.x = x, .csv = csv};
        r = run_source(&t, &ws_truth_sources[i]);
    }
    if (fclose(csv) && !r)
        r = -EIO;
    if (r)
        return r;
    plot(x, "power", 6, "W", "0.3");
    plot(x, "time", 8, "s", "0.5");
    plot(x, "energy", 10, "J", "0.4");
    return 0;
}

const struct ws_experiment ws_experiment_truth_fit = {
    "truth-fit", "measurements of others (--data)",
    "power, time and energy of applications left out of the fit, on six GPUs", run_fit};

// SPDX-License-Identifier: Apache-2.0
/* Does the decision survive? For each application that others measured in several ways (on two
 * GPUs, at several clocks, on several numbers of SMs) the model chooses the way that it thinks
 * takes the fewest joules, and what it chose is judged by the joules that were measured. The same
 * is done with the constant that software GPUs without a model have: static power and one number
 * for each SM in use, at the same predicted time.
 *
 * The models of an application are fitted without its family; of those that were measured on each
 * number of SMs there are no counters, so two times of their own stand for these (truth_sms.h).
 * An application's events are those that were counted at the catalog's clocks, at all clocks. Since
 * a curve of the voltage with two numbers is too coarse for a choice between clocks, what the other
 * families show of each setting corrects it: measured over predicted time, and the factor of all
 * power that goes with the voltage, each beside the family's mean over all settings. Of
 * the families the mean counts, without the fifth at either end. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/stat.h"
#include "papers/experiments/truth.h"
#include "papers/experiments/truth_sms.h"

#define REGRET_MEAN  3
#define REGRET_WORST 15
enum { CHOICE_GPUS = 4, SETTINGS_MAX = 128, OPTIONS_MAX = 512 };

struct choice {
    char text[48];
    double measured_j, ours_j, constant_j;
    double line_j; /* ours without the corrections of the settings */
};

/* One question: what came out of all its applications. */
struct choice_question {
    struct ws_experiment_run *x;
    struct choice_question *all; /* to which its answers are added; NULL: to none */
    FILE *csv;
    char title[96];
    int n, n_wrong;
    double sum, worst, constant_sum, constant_worst, line_sum;
    char worst_app[64];
};

/* ---- choosing ---- */

static double ours_of(const struct choice *o)
{
    return o->ours_j;
}
static double constant_of(const struct choice *o)
{
    return o->constant_j;
}
static double measured_of(const struct choice *o)
{
    return o->measured_j;
}

static double line_of(const struct choice *o)
{
    return o->line_j;
}

static const struct choice *least(const struct choice *v, size_t n,
                                  double (*of)(const struct choice *o))
{
    const struct choice *best = v;
    for (size_t i = 1; i < n; i++)
        if (of(&v[i]) < of(best))
            best = &v[i];
    return best;
}

static void ask(struct choice_question *q, const char *app, const struct choice *v, size_t n)
{
    const struct choice *best = least(v, n, measured_of), *ours = least(v, n, ours_of),
                        *constant = least(v, n, constant_of);
    double regret = 100 * (ours->measured_j / best->measured_j - 1);
    double other = 100 * (constant->measured_j / best->measured_j - 1);
    fprintf(q->csv, "\"%s\",%s,%s,%s,%s,%.3f,%.3f\n", q->title, app, best->text, ours->text,
            constant->text, regret, other);
    q->n++;
    q->n_wrong += ours != best;
    q->sum += regret;
    q->constant_sum += other;
    q->constant_worst = fmax(q->constant_worst, other);
    q->line_sum += 100 * (least(v, n, line_of)->measured_j / best->measured_j - 1);
    if (regret >= q->worst) {
        q->worst = regret;
        snprintf(q->worst_app, sizeof(q->worst_app), "%s", app);
    }
}

static void add_up(struct choice_question *all, const struct choice_question *q)
{
    all->n += q->n;
    all->n_wrong += q->n_wrong;
    all->sum += q->sum;
    all->constant_sum += q->constant_sum;
    all->line_sum += q->line_sum;
    all->constant_worst = fmax(all->constant_worst, q->constant_worst);
    if (q->worst < all->worst)
        return;
    all->worst = q->worst;
    memcpy(all->worst_app, q->worst_app, sizeof(all->worst_app));
}

static void answer(struct choice_question *q)
{
    char what[128], note[160];
    if (!q->n)
        return;
    if (q->all)
        add_up(q->all, q);
    snprintf(what, sizeof(what), "%s: mean regret (%%)", q->title);
    snprintf(note, sizeof(note),
             "%d of %d not the cheapest; by the constant: %.1f; uncorrected: %.1f", q->n_wrong,
             q->n, q->constant_sum / q->n, q->line_sum / q->n);
    ws_experiment_at_most(q->x, what, REGRET_MEAN, q->sum / q->n, note);
    snprintf(what, sizeof(what), "%s: worst regret (%%)", q->title);
    snprintf(note, sizeof(note), "%s; by the constant: %.1f", q->worst_app, q->constant_worst);
    ws_experiment_at_most(q->x, what, REGRET_WORST, q->worst, note);
}

/* ---- GPUs with counters ---- */

struct choice_gpu {
    struct ws_truth_data d;
    struct ws_event_clocks settings[SETTINGS_MAX];
    int n_settings;
    int *setting;                   /* [n]: of each launch */
    double *ours, *line, *constant; /* [n]: joules */
};

static int find_settings(struct choice_gpu *g)
{
    for (size_t i = 0; i < g->d.set.n; i++) {
        const struct ws_event_clocks *c = &g->d.set.v[i].clocks;
        int k = 0;
        while (k < g->n_settings && (g->settings[k].core_mhz != c->core_mhz ||
                                     g->settings[k].memory_mhz != c->memory_mhz))
            k++;
        if (k == SETTINGS_MAX)
            return -E2BIG;
        if (k == g->n_settings)
            g->settings[g->n_settings++] = *c;
        g->setting[i] = k;
    }
    return 0;
}

struct choice_models {
    struct ws_event_power power;
    struct ws_event_time time;
    /* natural logarithms of the corrections of each setting */
    double slower[SETTINGS_MAX], more[SETTINGS_MAX];
};

/* The power that goes with the core's voltage, and the rest. */
static void split_power(const struct choice_gpu *g, const struct choice_models *m,
                        const struct ws_measured_launch *l, double time_s, double *ret_core_w,
                        double *ret_rest_w)
{
    double x[WS_EVENT_POWER_N];
    ws_event_power_terms(&g->d.gpu, m->power.knee, m->power.slope, &l->e, &l->clocks, time_s, x);
    *ret_core_w = *ret_rest_w = 0;
    for (int i = 0; i < WS_EVENT_POWER_N; i++) {
        bool rest = i == WS_EVENT_POWER_STATIC || i == WS_EVENT_POWER_MEMORY_CLOCK ||
                    i == WS_EVENT_POWER_DRAM;
        *(rest ? ret_rest_w : ret_core_w) += x[i] * m->power.w[i];
    }
}

/* The mean without the fifth of the values at either end. */
static double middle_mean(double *v, int n)
{
    enum { PART = 5 };
    double sum = 0;
    int cut = n / PART;
    qsort(v, (size_t)n, sizeof(*v), ws_stat_by_size);
    for (int i = cut; i < n - cut; i++)
        sum += v[i];
    return n ? sum / (n - 2 * cut) : 0;
}

/* How far the launches of one family are off at each setting, as natural logarithms. */
struct family_off {
    double slower[SETTINGS_MAX], more[SETTINGS_MAX];
    int n[SETTINGS_MAX]; /* launches */
};

static void add_family(const struct choice_gpu *g, const struct choice_models *m, int family,
                       struct family_off *ret)
{
    *ret = (struct family_off){.n = {0}};
    for (size_t i = 0; i < g->d.set.n; i++) {
        const struct ws_measured_launch *l = &g->d.set.v[i];
        int s = g->setting[i];
        double core_w, rest_w;
        if (l->family != family || isnan(l->power_w))
            continue;
        split_power(g, m, l, l->time_s, &core_w, &rest_w);
        ret->slower[s] += log(l->time_s / ws_event_time_s(&m->time, &g->d.gpu, &l->e, &l->clocks));
        ret->more[s] += log(fmax(l->power_w - rest_w, core_w / 4) / core_w);
        ret->n[s]++;
    }
}

/* Makes of the sums at each setting how far their mean is from that of all settings: how far the
 * model is off for a family as a whole says nothing of a setting. */
static void compare_settings(double *v, const int *count, int n_settings)
{
    double sum = 0, n = 0;
    for (int s = 0; s < n_settings; s++)
        if (count[s]) {
            v[s] /= count[s];
            sum += v[s];
            n++;
        }
    for (int s = 0; s < n_settings; s++)
        v[s] -= sum / fmax(n, 1);
}

/* What the families show of the settings that @count has. @off: [n_families]. */
static void correct(const struct choice_gpu *g, const int *count, struct choice_models *m,
                    struct family_off *off, double *scratch)
{
    for (int f = 0; f < g->d.set.n_families; f++) {
        add_family(g, m, f, &off[f]);
        compare_settings(off[f].slower, off[f].n, g->n_settings);
        compare_settings(off[f].more, off[f].n, g->n_settings);
    }
    for (int s = 0; s < g->n_settings; s++) {
        int n = 0;
        for (int f = 0; f < g->d.set.n_families; f++)
            if (count[f] && off[f].n[s])
                scratch[n++] = off[f].slower[s];
        m->slower[s] = middle_mean(scratch, n);
        n = 0;
        for (int f = 0; f < g->d.set.n_families; f++)
            if (count[f] && off[f].n[s])
                scratch[n++] = off[f].more[s];
        m->more[s] = middle_mean(scratch, n);
    }
}

static double constant_w(const struct choice_gpu *g, const struct choice_models *m,
                         const struct ws_measured_launch *l)
{
    const struct ws_gpu_spec *spec = &g->d.spec;
    double f = l->clocks.core_mhz / g->d.gpu.reference.core_mhz;
    double v = ws_event_voltage(m->power.knee, m->power.slope, f);
    double n = fmin(spec->n_sms, l->e.blocks);
    return (spec->static_mw + n * spec->dynamic_mw_per_sm * v * v * f +
            (spec->n_sms - n) * spec->idle_mw_per_sm) /
           1e3;
}

/* Room for predict_group(): [n_families]. */
struct family_scratch {
    int *count;
    struct family_off *off;
    double *values;
};

/* Predicts the launches of the families of @group for which it is @out, by models of the others. */
static int predict_group(struct choice_gpu *g, const int *group, int out,
                         const struct family_scratch *scratch)
{
    struct ws_calibrate c = ws_truth_calibrate(&g->d);
    struct choice_models m;
    bool any = false;
    for (size_t i = 0; i < g->d.set.n; i++)
        any |= group[g->d.set.v[i].family] == out;
    if (!any)
        return 0;
    for (int i = 0; i < g->d.set.n_families; i++)
        scratch->count[i] = group[i] != out;
    int r = ws_calibrate_power(&c, scratch->count, &m.power);
    if (!r)
        r = ws_calibrate_time(&c, scratch->count, &m.time);
    if (!r)
        correct(g, scratch->count, &m, scratch->off, scratch->values);
    for (size_t i = 0; !r && i < g->d.set.n; i++) {
        const struct ws_measured_launch *l = &g->d.set.v[i];
        double core_w, rest_w;
        if (group[l->family] != out)
            continue;
        double time_s =
            ws_event_time_s(&m.time, &g->d.gpu, &l->e, &l->clocks) * exp(m.slower[g->setting[i]]);
        split_power(g, &m, l, time_s, &core_w, &rest_w);
        g->ours[i] = time_s * (rest_w + core_w * exp(m.more[g->setting[i]]));
        g->line[i] = ws_calibrate_predict(&g->d.gpu, &m.power, &m.time, l).energy_j;
        g->constant[i] = time_s * constant_w(g, &m, l);
    }
    return r;
}

static double reference_distance(const struct choice_gpu *g, size_t i)
{
    const struct ws_event_clocks *c = &g->d.set.v[i].clocks, *r = &g->d.gpu.reference;
    return fabs(log(c->core_mhz / r->core_mhz)) + fabs(log(c->memory_mhz / r->memory_mhz));
}

/* Who chooses the clocks of an application has counted its events once, at clocks near the
 * catalog's. So all launches of an application get the events of that one. */
static void count_once(struct choice_gpu *g)
{
    struct ws_measured_launch *v = g->d.set.v;
    for (size_t i = 0; i < g->d.set.n; i++) {
        size_t nearest = i;
        for (size_t k = 0; k < g->d.set.n; k++)
            if (v[k].app == v[i].app && reference_distance(g, k) < reference_distance(g, nearest))
                nearest = k;
        v[i].e = v[nearest].e;
    }
}

/* Predicts all launches, by models that were fitted without the group of families that each is of
 * (ws_calibrate_groups()). */
static int predict_all(struct choice_gpu *g, int n_groups, uint32_t shuffle)
{
    size_t n_families = (size_t)g->d.set.n_families + 1;
    int *group = ws_calibrate_groups(g->d.set.n_families, n_groups, shuffle);
    struct family_scratch scratch = {.count = ws_alloc_array(n_families, sizeof(*scratch.count)),
                                     .off = ws_alloc_array(n_families, sizeof(*scratch.off)),
                                     .values = ws_alloc_array(n_families, sizeof(*scratch.values))};
    int r = group && scratch.count && scratch.off && scratch.values ? 0 : -ENOMEM;
    for (int out = 0; !r && out < n_groups; out++)
        r = predict_group(g, group, out, &scratch);
    free(group);
    free(scratch.count);
    free(scratch.off);
    free(scratch.values);
    return r;
}

static int read_gpu(struct ws_experiment_run *x, const struct ws_truth_source *source,
                    struct choice_gpu *g)
{
    int r = ws_truth_read(x, source, &g->d);
    g->setting = ws_alloc_array(g->d.set.n + 1, sizeof(*g->setting));
    g->ours = ws_alloc_array(g->d.set.n + 1, sizeof(*g->ours));
    g->line = ws_alloc_array(g->d.set.n + 1, sizeof(*g->line));
    g->constant = ws_alloc_array(g->d.set.n + 1, sizeof(*g->constant));
    if (!r && (!g->setting || !g->ours || !g->line || !g->constant))
        r = -ENOMEM;
    if (!r)
        r = find_settings(g);
    if (!r)
        count_once(g);
    return r ? r : predict_all(g, g->d.set.n_families, 0);
}

static void choice_gpu_deinit(struct choice_gpu *g)
{
    free(g->setting);
    free(g->ours);
    free(g->line);
    free(g->constant);
    ws_truth_deinit(&g->d);
}

/* The ways of running an application on @g: at all clocks, or at those next to the catalog's. */
static size_t add_options(const struct choice_gpu *g, const char *app, bool all_clocks,
                          struct choice *v, size_t n)
{
    size_t begin = n;
    double nearest = INFINITY;
    for (size_t i = 0; i < g->d.set.n && n < OPTIONS_MAX; i++) {
        const struct ws_measured_launch *l = &g->d.set.v[i];
        if (strcmp(g->d.set.apps[l->app].name, app) != 0 || isnan(l->power_w))
            continue;
        double distance = reference_distance(g, i);
        if (!all_clocks && distance >= nearest)
            continue;
        nearest = distance;
        if (!all_clocks)
            n = begin;
        struct choice *o = &v[n++];
        *o = (struct choice){.measured_j = l->power_w * l->time_s,
                             .ours_j = g->ours[i],
                             .line_j = g->line[i],
                             .constant_j = g->constant[i]};
        snprintf(o->text, sizeof(o->text), "%s %g/%g", g->d.source->gpu, l->clocks.core_mhz,
                 l->clocks.memory_mhz);
    }
    return n;
}

/* What @app worked on; NULL: it was not measured. */
static const struct ws_measured_launch *launch_of(const struct choice_gpu *g, const char *app,
                                                  const char **ret_input)
{
    for (size_t i = 0; i < g->d.set.n; i++) {
        const struct ws_measured_launch *l = &g->d.set.v[i];
        if (!strcmp(g->d.set.apps[l->app].name, app)) {
            *ret_input = l->input < 0 ? "" : g->d.set.inputs[l->input].name;
            return l;
        }
    }
    return NULL;
}

static bool same_work(const struct choice_gpu *a, const struct choice_gpu *b, const char *app)
{
    const char *input[2];
    const struct ws_measured_launch *l = launch_of(a, app, &input[0]),
                                    *k = launch_of(b, app, &input[1]);
    return l && k && !strcmp(input[0], input[1]) && l->e.blocks == k->e.blocks;
}

static struct choice_question question_of(struct choice_question *all, const char *a, const char *b)
{
    struct choice_question q = {.x = all->x, .csv = all->csv, .all = all};
    snprintf(q.title, sizeof(q.title), "%s: %s", a, b);
    return q;
}

static void ask_clocks(struct choice_question *q, const struct choice_gpu *g)
{
    struct choice v[OPTIONS_MAX];
    const char *input;
    for (int i = 0; i < g->d.set.n_apps; i++)
        if (launch_of(g, g->d.set.apps[i].name, &input))
            ask(q, g->d.set.apps[i].name, v, add_options(g, g->d.set.apps[i].name, true, v, 0));
}

/* As if nobody had looked at a third of the families, chosen in SHUFFLES ways. The predictions are
 * then those of the last way. */
static int ask_clocks_of_thirds(struct choice_question *all, struct choice_gpu *g)
{
    enum { THIRDS = 3, SHUFFLES = 4 };
    struct choice_question q = question_of(all, g->d.source->title, "clocks with a third left out");
    int r = 0;
    q.all = NULL; /* the same questions once more */
    for (uint32_t i = 0; !r && i < SHUFFLES; i++) {
        r = predict_all(g, THIRDS, i + 1);
        if (!r)
            ask_clocks(&q, g);
    }
    if (!r)
        answer(&q);
    return r;
}

static void ask_pair(struct choice_question *all, const struct choice_gpu *a,
                     const struct choice_gpu *b, bool all_clocks)
{
    struct choice v[OPTIONS_MAX];
    char title[64];
    snprintf(title, sizeof(title), "%s or %s", a->d.source->title, b->d.source->title);
    struct choice_question q = question_of(all, title, all_clocks ? "GPU and clocks" : "GPU");
    for (int i = 0; i < a->d.set.n_apps; i++) {
        const char *app = a->d.set.apps[i].name;
        if (same_work(a, b, app))
            ask(&q, app, v,
                add_options(b, app, all_clocks, v, add_options(a, app, all_clocks, v, 0)));
    }
    answer(&q);
}

static int ask_gpus(struct choice_question *all)
{
    struct choice_gpu g[CHOICE_GPUS] = {0};
    int r = 0, n = 0;
    for (int i = 0; i < WS_TRUTH_SOURCES && !r && n < CHOICE_GPUS; i++)
        if (ws_truth_sources[i].has_choices)
            r = read_gpu(all->x, &ws_truth_sources[i], &g[n++]);
    for (int i = 0; i < n && !r; i++) {
        struct choice_question q = question_of(all, g[i].d.source->title, "clocks");
        ask_clocks(&q, &g[i]);
        answer(&q);
    }
    for (int i = 0; i < n && !r; i++)
        for (int k = i + 1; k < n; k++) {
            ask_pair(all, &g[i], &g[k], false);
            ask_pair(all, &g[i], &g[k], true);
        }
    for (int i = 0; i < n && !r; i++)
        r = ask_clocks_of_thirds(all, &g[i]);
    for (int i = 0; i < n; i++)
        choice_gpu_deinit(&g[i]);
    return r;
}

/* ---- GPUs measured on each number of SMs ---- */

static size_t add_sms(const char *gpu, int app, struct choice *v, size_t n)
{
    const struct ws_measured_kernel *k = ws_measured_app(gpu, app);
    double idle_w = ws_measured_gpu_find(gpu)->power.idle_w_per_sm, dyn_w = 0;
    for (int i = 0; i < WS_MEASURED_APPS; i++)
        dyn_w += ws_measured_app(gpu, i)->cost.dyn_w_per_sm / WS_MEASURED_APPS;
    for (int m = 1; m <= k->cost.n_sm; m++, n++) {
        double time_s = ws_truth_sms_line_s(k, m);
        v[n] = (struct choice){.measured_j = ws_truth_sms_time_s(k, m) * ws_truth_sms_power_w(k, m),
                               .ours_j = time_s * ws_truth_sms_predict_w(k, m),
                               .line_j = time_s * ws_truth_sms_predict_w(k, m),
                               .constant_j = time_s * (ws_measured_gpu_find(gpu)->power.static_w +
                                                       m * dyn_w + (k->cost.n_sm - m) * idle_w)};
        snprintf(v[n].text, sizeof(v[n].text), "%s %d SMs", gpu, m);
    }
    return n;
}

static void ask_sms(struct choice_question *all)
{
    static const char *const gpus[] = {"rtx3070", "t400"}, *const titles[] = {"RTX 3070", "T400"};
    struct choice v[OPTIONS_MAX];
    for (int g = 0; g < 2; g++) {
        struct choice_question q = question_of(all, titles[g], "number of SMs");
        for (int i = 0; i < WS_MEASURED_APPS; i++)
            ask(&q, ws_measured_app(gpus[g], i)->name, v, add_sms(gpus[g], i, v, 0));
        answer(&q);
    }
    struct choice_question q = question_of(all, "RTX 3070 or T400", "GPU and number of SMs");
    for (int i = 0; i < WS_MEASURED_APPS; i++)
        ask(&q, ws_measured_app(gpus[0], i)->name, v,
            add_sms(gpus[1], i, v, add_sms(gpus[0], i, v, 0)));
    answer(&q);
}

static int run_choice(struct ws_experiment_run *x)
{
    int r = ws_truth_check(x);
    FILE *csv = r ? NULL : ws_experiment_csv(x, "truth-choice");
    if (!csv)
        return r ? r : -EIO;
    fprintf(csv, "question,app,cheapest,model chose,constant chose,regret of the model (%%),regret "
                 "of the constant (%%)\n");
    struct choice_question all = {.x = x, .csv = csv, .title = "all choices"};
    r = ask_gpus(&all);
    if (!r) {
        ask_sms(&all);
        answer(&all);
    }
    if (fclose(csv) && !r)
        r = -EIO;
    if (!r)
        ws_experiment_plot(
            x, "truth-choice",
            "set xlabel 'regret of choosing by the constant (% of joules)'\n"
            "set ylabel 'regret of choosing by the model (% of joules)'\n"
            "plot 'truth-choice.csv' using 7:6 with points pt 7 ps 0.5 title 'applications', x "
            "title 'as good', 15 title 'wanted', '' using 7:($6 > 10 ? $6 : 1/0):2 with labels "
            "font ',7' offset 0,0.5 notitle");
    return r;
}

const struct ws_experiment ws_experiment_truth_choice = {
    "truth-choice", "measurements of others (--data)",
    "which GPU, clocks and number of SMs take the fewest joules: what wrong choices cost",
    run_choice};

// SPDX-License-Identifier: Apache-2.0
/* Does the decision survive? For each application that others measured in several ways (on two
 * GPUs, at several clocks, on several numbers of SMs) the model chooses the way that it thinks
 * takes the fewest joules, and what it chose is judged by the joules that were measured. The same
 * is done with the constant that software GPUs without a model have: static power and one number
 * for each SM in use, at the same predicted time.
 *
 * The models of an application are fitted without its family (truth_settings.h); of those that were
 * measured on each number of SMs there are no counters, so two times of their own stand for these
 * (truth_sms.h).
 *
 * Where a choice costs much, the notes say which model is to blame: what choosing costs if the time
 * or the power were known from the measurement. How much of it is the measurement's own doing is
 * seen on the V100, of which the same group measured some of the programs twice: the first
 * measurement's choices are judged by the second, and the other way round. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "papers/experiments/truth_settings.h"
#include "papers/experiments/truth_sms.h"

#define REGRET_MEAN  3
#define REGRET_WORST 15
enum { CHOICE_GPUS = 4, OPTIONS_MAX = 512 };

struct choice {
    char text[48];
    double measured_j, ours_j, constant_j;
    double line_j;                      /* ours without the corrections of the settings */
    double known_time_j, known_power_j; /* ours if one of the two were known */
};

/* One question: what came out of all its applications. */
struct choice_question {
    struct ws_experiment_run *x;
    struct choice_question *all; /* to which its answers are added; NULL: to none */
    FILE *csv;
    char title[96];
    int n, n_wrong;
    double sum, worst, constant_sum, constant_worst, line_sum, known_time_sum, known_power_sum;
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

static double known_time_of(const struct choice *o)
{
    return o->known_time_j;
}
static double known_power_of(const struct choice *o)
{
    return o->known_power_j;
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

/* How many % more joules were measured for the choice by @of than for the cheapest. */
static double regret_of(const struct choice *v, size_t n, double (*of)(const struct choice *o))
{
    return 100 * (least(v, n, of)->measured_j / least(v, n, measured_of)->measured_j - 1);
}

static void ask(struct choice_question *q, const char *app, const struct choice *v, size_t n)
{
    const struct choice *best = least(v, n, measured_of), *ours = least(v, n, ours_of),
                        *constant = least(v, n, constant_of);
    double regret = regret_of(v, n, ours_of), other = regret_of(v, n, constant_of);
    fprintf(q->csv, "\"%s\",%s,%s,%s,%s,%.3f,%.3f\n", q->title, app, best->text, ours->text,
            constant->text, regret, other);
    q->n++;
    q->n_wrong += ours != best;
    q->sum += regret;
    q->constant_sum += other;
    q->constant_worst = fmax(q->constant_worst, other);
    q->line_sum += regret_of(v, n, line_of);
    q->known_time_sum += regret_of(v, n, known_time_of);
    q->known_power_sum += regret_of(v, n, known_power_of);
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
    all->known_time_sum += q->known_time_sum;
    all->known_power_sum += q->known_power_sum;
    all->constant_worst = fmax(all->constant_worst, q->constant_worst);
    if (q->worst < all->worst)
        return;
    all->worst = q->worst;
    memcpy(all->worst_app, q->worst_app, sizeof(all->worst_app));
}

static void answer(struct choice_question *q)
{
    char what[128], note[200];
    if (!q->n)
        return;
    if (q->all)
        add_up(q->all, q);
    snprintf(what, sizeof(what), "%s: mean regret (%%)", q->title);
    snprintf(note, sizeof(note),
             "%d of %d not the cheapest; by the constant: %.1f; uncorrected: %.1f; time known: "
             "%.1f; power known: %.1f",
             q->n_wrong, q->n, q->constant_sum / q->n, q->line_sum / q->n, q->known_time_sum / q->n,
             q->known_power_sum / q->n);
    ws_experiment_at_most(q->x, what, REGRET_MEAN, q->sum / q->n, note);
    snprintf(what, sizeof(what), "%s: worst regret (%%)", q->title);
    snprintf(note, sizeof(note), "%s; by the constant: %.1f", q->worst_app, q->constant_worst);
    ws_experiment_at_most(q->x, what, REGRET_WORST, q->worst, note);
}

/* ---- GPUs with counters ---- */

static struct choice choice_of(const struct ws_measured_launch *l,
                               const struct ws_truth_predicted *p)
{
    return (struct choice){.measured_j = l->power_w * l->time_s,
                           .ours_j = p->time_s * p->power_w,
                           .line_j = p->line_j,
                           .known_time_j = l->time_s * p->known_time_w,
                           .known_power_j = p->time_s * l->power_w,
                           .constant_j = p->constant_j};
}

/* The ways of running an application on @g: at all clocks, or at those next to the catalog's. */
static size_t add_options(const struct ws_truth_gpu *g, const char *app, bool all_clocks,
                          struct choice *v, size_t n)
{
    size_t begin = n;
    double nearest = INFINITY;
    for (size_t i = 0; i < g->d.set.n && n < OPTIONS_MAX; i++) {
        const struct ws_measured_launch *l = &g->d.set.v[i];
        if (strcmp(g->d.set.apps[l->app].name, app) != 0 || isnan(l->power_w))
            continue;
        double distance = ws_truth_gpu_distance(g, i);
        if (!all_clocks && distance >= nearest)
            continue;
        nearest = distance;
        if (!all_clocks)
            n = begin;
        struct choice *o = &v[n++];
        *o = choice_of(l, &g->predicted[i]);
        snprintf(o->text, sizeof(o->text), "%s %g/%g", g->d.source->gpu, l->clocks.core_mhz,
                 l->clocks.memory_mhz);
    }
    return n;
}

/* What @app worked on; NULL: it was not measured. */
static const struct ws_measured_launch *launch_of(const struct ws_truth_gpu *g, const char *app,
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

static bool same_work(const struct ws_truth_gpu *a, const struct ws_truth_gpu *b, const char *app)
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

static void ask_clocks(struct choice_question *q, const struct ws_truth_gpu *g)
{
    struct choice v[OPTIONS_MAX];
    const char *input;
    for (int i = 0; i < g->d.set.n_apps; i++)
        if (launch_of(g, g->d.set.apps[i].name, &input))
            ask(q, g->d.set.apps[i].name, v, add_options(g, g->d.set.apps[i].name, true, v, 0));
}

/* As if nobody had looked at a third of the families, chosen in SHUFFLES ways. The predictions are
 * then those of the last way. */
static int ask_clocks_of_thirds(struct choice_question *all, struct ws_truth_gpu *g)
{
    enum { THIRDS = 3, SHUFFLES = 4 };
    struct choice_question q = question_of(all, g->d.source->title, "clocks with a third left out");
    int r = 0;
    q.all = NULL; /* the same questions once more */
    for (uint32_t i = 0; !r && i < SHUFFLES; i++) {
        r = ws_truth_gpu_predict(g, THIRDS, i + 1);
        if (!r)
            ask_clocks(&q, g);
    }
    if (!r)
        answer(&q);
    return r;
}

/* The launch of @app at @core_mhz; NULL: it was not measured. */
static const struct ws_measured_launch *launch_at(const struct ws_measured_set *s, const char *app,
                                                  double core_mhz)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].clocks.core_mhz == core_mhz && !isnan(s->v[i].power_w) &&
            !strcmp(s->apps[s->v[i].app].name, app))
            return &s->v[i];
    return NULL;
}

/* The clocks at which @app was measured both times: in @v judged by the second time, in @ret_first
 * judged by the first. "Ours" is the model in @v, and the second time in @ret_first. */
static size_t add_again(const struct ws_truth_gpu *g, const struct ws_measured_set *again,
                        const char *app, struct choice *v, struct choice *ret_first)
{
    size_t n = 0;
    for (size_t i = 0; i < g->d.set.n && n < OPTIONS_MAX; i++) {
        const struct ws_measured_launch *l = &g->d.set.v[i];
        const struct ws_measured_launch *k =
            strcmp(g->d.set.apps[l->app].name, app) != 0 || isnan(l->power_w)
                ? NULL
                : launch_at(again, app, l->clocks.core_mhz);
        if (!k)
            continue;
        double again_j = k->power_w * k->time_s;
        v[n] = choice_of(l, &g->predicted[i]);
        snprintf(v[n].text, sizeof(v[n].text), "%s %g", g->d.source->gpu, l->clocks.core_mhz);
        ret_first[n] = v[n];
        ret_first[n].ours_j = again_j;
        ret_first[n].known_time_j = l->time_s * k->power_w;
        ret_first[n].known_power_j = l->power_w * k->time_s;
        v[n].measured_j = again_j;
        n++;
    }
    return n;
}

/* What of the regret is the measurement's own: programs that were measured twice. */
static int ask_again(struct choice_question *all, const struct ws_truth_gpu *g)
{
    const struct ws_truth_source again = {
        .gpu = g->d.source->gpu, .title = g->d.source->title, .judged = g->d.source->again};
    struct ws_truth_data d;
    struct choice second[OPTIONS_MAX], first[OPTIONS_MAX];
    struct choice_question by_second =
        question_of(all, g->d.source->title, "clocks judged by a second measurement");
    struct choice_question by_first =
        question_of(all, g->d.source->title, "clocks that the second measurement chooses");
    by_second.all = by_first.all = NULL; /* the same questions once more */
    int r = ws_truth_read(all->x, &again, &d);
    for (int i = 0; !r && i < g->d.set.n_apps; i++) {
        const char *app = g->d.set.apps[i].name;
        size_t n = add_again(g, &d.set, app, second, first);
        if (n) {
            ask(&by_second, app, second, n);
            ask(&by_first, app, first, n);
        }
    }
    if (!r) {
        answer(&by_second);
        answer(&by_first);
    }
    ws_truth_deinit(&d);
    return r;
}

static void ask_pair(struct choice_question *all, const struct ws_truth_gpu *a,
                     const struct ws_truth_gpu *b, bool all_clocks)
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
    struct ws_truth_gpu g[CHOICE_GPUS] = {0};
    int r = 0, n = 0;
    for (int i = 0; i < WS_TRUTH_SOURCES && !r && n < CHOICE_GPUS; i++)
        if (ws_truth_sources[i].has_choices)
            r = ws_truth_gpu_read(all->x, &ws_truth_sources[i], &g[n++]);
    for (int i = 0; i < n && !r; i++) {
        struct choice_question q = question_of(all, g[i].d.source->title, "clocks");
        ask_clocks(&q, &g[i]);
        answer(&q);
        if (g[i].d.source->again)
            r = ask_again(all, &g[i]);
    }
    for (int i = 0; i < n && !r; i++)
        for (int k = i + 1; k < n; k++) {
            ask_pair(all, &g[i], &g[k], false);
            ask_pair(all, &g[i], &g[k], true);
        }
    for (int i = 0; i < n && !r; i++)
        r = ask_clocks_of_thirds(all, &g[i]);
    for (int i = 0; i < n; i++)
        ws_truth_gpu_deinit(&g[i]);
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
        double time_s = ws_truth_sms_line_s(k, m), power_w = ws_truth_sms_predict_w(k, m);
        double known_s = ws_truth_sms_time_s(k, m), known_w = ws_truth_sms_power_w(k, m);
        v[n] = (struct choice){.measured_j = known_s * known_w,
                               .ours_j = time_s * power_w,
                               .line_j = time_s * power_w,
                               .known_time_j = known_s * power_w,
                               .known_power_j = time_s * known_w,
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

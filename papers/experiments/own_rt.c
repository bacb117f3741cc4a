// SPDX-License-Identifier: Apache-2.0
/* own-gcaps, own-stgm: our own policy on the task sets of GCAPS and of STGM (papers/sets/gen_*.h),
 * in the real-time simulator, against the policy of the paper and those that it compares it with.
 *
 * Each set is run several times, under every policy with the same releases and the same shares of
 * the longest times: once as it stands, with full times, and then with other offsets and parts that
 * may end early. Jobs that wait for the GPU sleep. Counted are real-time tasks alone.
 *
 * On GCAPS's sets a change of what the GPU was given costs wattshare what it costs gcaps: an update
 * of the run list. On STGM's sets it has STGM's order of copies and its boost of threads; when a
 * kernel begins, and on how many SMs, is its own choice, and it takes no job off. STGM takes only
 * sets for which it finds SMs and cores with which its bounds are met. The others have the whole
 * GPU for each kernel. All but stgm have the same cores, which are found by worst fit. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/common/parallel.h"
#include "papers/experiments/experiment.h"
#include "papers/sets/gen_gcaps.h"
#include "papers/sets/gen_stgm.h"
#include "papers/sets/rtsim_set.h"

enum { SETS = 100, QUICK_SETS = 4, RUNS = 4, PERIODS = 4, EARLY_PERMILLE = 700 };
enum { POINTS_MAX = 8, CONTENDERS = 6 };

enum { OWN }; /* the first contender */
struct rival {
    const char *name;
    enum ws_rtsim_policy rules; /* of the simulator */
    const char *places;         /* the method that gives tasks what the set does not; or NULL */
};
struct design {
    const char *experiment;
    const char *axis, *x_label;
    int (*draw)(struct ws_random *random, double x, struct ws_rt_set *ret);
    double xs[POINTS_MAX];
    int n_xs, n_contenders;
    struct rival contenders[CONTENDERS];
};

static int draw_gcaps(struct ws_random *random, double x, struct ws_rt_set *ret)
{
    struct ws_gen_gcaps g = ws_gen_gcaps_default;
    g.util_min = g.util_max = x;
    return ws_gen_gcaps(&g, random, ret);
}

static int draw_stgm(struct ws_random *random, double x, struct ws_rt_set *ret)
{
    struct ws_gen_stgm g = ws_gen_stgm_default;
    int r = ws_gen_stgm_axis(&g, "num_tasks", x);
    return r ? r : ws_gen_stgm(&g, random, ret);
}

static const struct design gcaps = {.experiment = "own-gcaps",
                                    .axis = "U",
                                    .x_label = "utilisation of each core",
                                    .draw = draw_gcaps,
                                    .xs = {0.4, 0.5, 0.6, 0.7, 0.8},
                                    .n_xs = 5,
                                    .n_contenders = 5,
                                    .contenders = {{"wattshare", WS_RTSIM_GCAPS, NULL},
                                                   {"gcaps", WS_RTSIM_GCAPS, NULL},
                                                   {"tsg-rr", WS_RTSIM_RR, NULL},
                                                   {"mpcp", WS_RTSIM_MPCP, NULL},
                                                   {"fmlp+", WS_RTSIM_FMLP, NULL}}};
static const struct design stgm = {.experiment = "own-stgm",
                                   .axis = "tasks",
                                   .x_label = "tasks on four cores",
                                   .draw = draw_stgm,
                                   .xs = {8, 10, 12, 14, 16},
                                   .n_xs = 5,
                                   .n_contenders = 6,
                                   .contenders = {{"wattshare", WS_RTSIM_STGM, NULL},
                                                  {"stgm", WS_RTSIM_STGM, "stgm_suspend"},
                                                  {"gcaps", WS_RTSIM_GCAPS, "gcaps_suspend"},
                                                  {"tsg-rr", WS_RTSIM_RR, "tsg_rr_suspend"},
                                                  {"mpcp", WS_RTSIM_MPCP, "mpcp_suspend"},
                                                  {"fmlp+", WS_RTSIM_FMLP, "fmlp_suspend"}}};

/* Of a set under one policy. */
struct sum {
    bool taken; /* its tasks have cores, and SMs where they need them */
    uint64_t n_jobs, n_missed;
    double worst; /* the longest response of any task, by its deadline */
};
struct study {
    const struct design *design;
    uint64_t seed;
    int n_sets; /* for each point */
    struct sum (*sums)[CONTENDERS];
    _Atomic int failed;
};

static void add(struct sum *s, const struct ws_rtsim_set *set, const struct ws_rtsim_result *r)
{
    for (int i = 0; i < set->n_tasks; i++) {
        if (set->tasks[i].best_effort)
            continue;
        s->n_jobs += r->tasks[i].n_jobs;
        s->n_missed += r->tasks[i].n_missed;
        s->worst = fmax(s->worst, (double)r->tasks[i].worst / (double)set->tasks[i].deadline);
    }
}

static int run_set(struct sum *s, const struct ws_rtsim_set *set,
                   const struct ws_rtsim_config *config, int64_t *offsets, uint64_t seed)
{
    struct ws_rtsim *rt = NULL;
    int r = ws_rtsim_new(&rt, set, config);
    int64_t longest = 0;
    for (int i = 0; i < set->n_tasks; i++)
        longest = WS_MAX(longest, set->tasks[i].period);
    for (int k = 0; k < RUNS && !r; k++) {
        struct ws_random random;
        struct ws_rtsim_result result;
        struct ws_rtsim_scenario run = {
            .horizon = PERIODS * longest, .exec_permille = 1000, .seed = seed + (uint64_t)k};
        ws_random_init(&random, run.seed);
        for (int i = 0; i < set->n_tasks; i++)
            offsets[i] = ws_random_integer(&random, 0, set->tasks[i].period - 1);
        if (k) {
            run.offsets = offsets;
            run.exec_permille = EARLY_PERMILLE;
        }
        r = ws_rtsim_run(rt, &run, NULL, &result);
        if (!r)
            add(s, set, &result);
    }
    ws_rtsim_free(rt);
    return r;
}

static int run_contender(struct sum *s, const struct ws_rt_set *from, const struct rival *c,
                         struct ws_rtsim_space *space, uint64_t seed)
{
    const struct ws_rtsim_config config = {
        .policy = c->rules, .policy_name = strcmp(c->name, "wattshare") ? NULL : c->name};
    struct ws_rtsim_set set = WS_RTSIM_SET_NULL;
    struct ws_rtsim_verdict v = {0};
    const struct ws_rta_method *m = c->places ? ws_rta_method_find(c->places) : NULL;
    int r = ws_rtsim_set_make(from, m, space, &set, &v);
    int64_t *offsets = r ? NULL : ws_alloc_array((size_t)set.n_tasks + 1, sizeof(*offsets));
    if (!r && !offsets)
        r = -ENOMEM;
    s->taken = v.placed;
    if (!r && s->taken)
        r = run_set(s, &set, &config, offsets, seed);
    free(offsets);
    free(v.bounds);
    ws_rtsim_set_deinit(&set);
    return r;
}

static void one_set(void *arg, size_t index)
{
    struct study *t = arg;
    const struct design *d = t->design;
    struct ws_random random;
    struct ws_rt_set from;
    struct ws_rtsim_space space = WS_RTSIM_SPACE_NULL;
    ws_random_init_part(&random, t->seed, index);
    int r = d->draw(&random, d->xs[index / (size_t)t->n_sets], &from);
    for (int p = 0; p < d->n_contenders && !r; p++)
        r = run_contender(&t->sums[index][p], &from, &d->contenders[p], &space,
                          t->seed * 1000003 + index);
    if (r)
        t->failed = r;
    ws_rt_set_deinit(&from);
    ws_rtsim_space_deinit(&space);
}

/* ---- what came out ---- */

/* Of the sets that a policy takes. */
struct summary {
    int n;
    double missed, missed_ci; /* %, and half of its 95 % confidence interval */
    double worst, worst_ci;   /* mean of the sets' worst */
    /* The same sets under our own: missed; sets with more and with fewer misses than theirs. */
    double own;
    int n_more, n_less;
};

static struct summary summarize(const struct study *t, int point, int contender)
{
    struct summary m = {0};
    const struct sum(*sets)[CONTENDERS] = &t->sums[point * t->n_sets];
    double jobs = 0, missed = 0, own_jobs = 0, own_missed = 0, off_missed = 0, off_worst = 0;
    for (int i = 0; i < t->n_sets; i++) {
        const struct sum *s = &sets[i][contender], *own = &sets[i][OWN];
        if (!s->taken)
            continue;
        m.n++;
        jobs += (double)s->n_jobs;
        missed += (double)s->n_missed;
        own_jobs += (double)own->n_jobs;
        own_missed += (double)own->n_missed;
        m.worst += s->worst;
        m.n_more += own->n_missed > s->n_missed;
        m.n_less += own->n_missed < s->n_missed;
    }
    const double share = missed / fmax(jobs, 1);
    m.worst /= WS_MAX(m.n, 1);
    for (int i = 0; i < t->n_sets; i++) { /* a share of all jobs, of which sets have more or less */
        const struct sum *s = &sets[i][contender];
        off_missed += s->taken ? pow((double)s->n_missed - share * (double)s->n_jobs, 2) : 0;
        off_worst += s->taken ? pow(s->worst - m.worst, 2) : 0;
    }
    m.missed = 100 * share;
    m.missed_ci =
        100 * ws_experiment_half_interval(off_missed, m.n) / fmax(jobs / WS_MAX(m.n, 1), 1);
    m.worst_ci = ws_experiment_half_interval(off_worst, m.n);
    m.own = 100 * own_missed / fmax(own_jobs, 1);
    return m;
}

static int print(const struct study *t, FILE *csv)
{
    const struct design *d = t->design;
    const char *heads[POINTS_MAX + 2] = {"policy"};
    char text[POINTS_MAX][24];
    struct ws_table table;
    for (int u = 0; u < d->n_xs; u++) {
        snprintf(text[u], sizeof(text[u]), "%s = %g", d->axis, d->xs[u]);
        heads[u + 1] = text[u];
    }
    printf("\nmissed deadlines, %% ± half of the 95 %% interval / longest response by deadline, "
           "mean of the sets that the policy takes, of %d\n",
           t->n_sets);
    ws_table_init(&table, heads);
    fprintf(csv,
            "%s,policy,sets,missed,missed_ci95,worst,worst_ci95,own_missed,own_more,own_fewer\n",
            d->axis);
    for (int p = 0; p < d->n_contenders; p++) {
        ws_table_add(&table, "%s", d->contenders[p].name);
        for (int u = 0; u < d->n_xs; u++) {
            struct summary m = summarize(t, u, p);
            if (!m.n) {
                ws_table_add(&table, "–");
                continue;
            }
            ws_table_add(&table, "%.3f ± %.3f / %.2f, %d", m.missed, m.missed_ci, m.worst, m.n);
            fprintf(csv, "%g,%s,%d,%.5f,%.5f,%.5f,%.5f,%.5f,%d,%d\n", d->xs[u],
                    d->contenders[p].name, m.n, m.missed, m.missed_ci, m.worst, m.worst_ci, m.own,
                    m.n_more, m.n_less);
        }
    }
    int r = ws_table_print(&table, stdout);
    ws_table_deinit(&table);
    putchar('\n');
    return r;
}

static void compare(struct ws_experiment_run *x, const struct study *t)
{
    const struct design *d = t->design;
    for (int p = OWN + 1; p < d->n_contenders; p++)
        for (int u = 0; u < d->n_xs; u++) {
            struct summary m = summarize(t, u, p);
            char what[120], note[120];
            snprintf(what, sizeof(what), "%s = %g: missed deadlines (%%), %s and ours", d->axis,
                     d->xs[u], d->contenders[p].name);
            snprintf(note, sizeof(note), "we miss more in %d and fewer in %d of %d sets", m.n_more,
                     m.n_less, m.n);
            if (m.n)
                ws_experiment_at_most(x, what, m.missed, m.own, note);
        }
}

static void draw(struct ws_experiment_run *x, const struct design *d)
{
    char commands[600], names[80] = "";
    for (int p = 0; p < d->n_contenders; p++) {
        size_t n = strlen(names);
        snprintf(names + n, sizeof(names) - n, "%s%s", p ? " " : "", d->contenders[p].name);
    }
    snprintf(commands, sizeof(commands),
             "set xlabel '%s'\nset ylabel 'missed deadlines, %%'\n"
             "plot for [p in '%s'] '%s.csv' using (strcol(2) eq p ? $1 : NaN):4:5 with "
             "yerrorlines title p",
             d->x_label, names, d->experiment);
    ws_experiment_plot(x, d->experiment, commands);
}

static int run_study(struct ws_experiment_run *x, const struct design *d)
{
    struct study t = {.design = d,
                      .seed = x->seed,
                      .n_sets = x->quick ? QUICK_SETS : WS_MAX((int)lround(SETS * x->scale), 1)};
    size_t n = (size_t)d->n_xs * (size_t)t.n_sets;
    t.sums = ws_alloc_array(n, sizeof(*t.sums));
    FILE *csv = t.sums ? ws_experiment_csv(x, d->experiment) : NULL;
    if (!csv) {
        int r = t.sums ? -EIO : -ENOMEM;
        free(t.sums);
        return r;
    }
    struct ws_progress_bar bar;
    ws_progress_bar_start(&bar, d->experiment, n);
    ws_parallel_for(n, x->n_jobs, one_set, &t, &bar);
    ws_progress_bar_end(&bar);
    int r = t.failed ? t.failed : print(&t, csv);
    if (fclose(csv) && !r)
        r = -EIO;
    if (!r) {
        compare(x, &t);
        draw(x, d);
    } else {
        ws_cli_error("%s: %s", d->experiment, strerror(-r));
    }
    free(t.sums);
    return r;
}

static int run_own_gcaps(struct ws_experiment_run *x)
{
    return run_study(x, &gcaps);
}

const struct ws_experiment ws_experiment_own_gcaps = {
    "own-gcaps", "our own, on GCAPS's task sets",
    "misses and longest responses of wattshare, of gcaps and of its baselines", run_own_gcaps};

static int run_own_stgm(struct ws_experiment_run *x)
{
    return run_study(x, &stgm);
}

const struct ws_experiment ws_experiment_own_stgm = {
    "own-stgm", "our own, on STGM's task sets",
    "misses and longest responses of wattshare, of stgm and of its baselines", run_own_stgm};

// SPDX-License-Identifier: Apache-2.0
/* own-gcaps: our own policy on the task sets of GCAPS (papers/sets/gen_gcaps.h), in the real-time
 * simulator, against GCAPS and the policies that its paper compares it with.
 *
 * Each set is run several times, under every policy with the same releases and the same times: once
 * as it stands, with full times, and then with other offsets and kernels that may end early. Jobs
 * that wait for the GPU sleep. Counted are real-time tasks alone. A change of what the GPU was
 * given costs wattshare what it costs gcaps: an update of the run list. */
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
#include "papers/sets/rtsim_set.h"

enum { SETS = 100, QUICK_SETS = 4, RUNS = 4, PERIODS = 4, EARLY_PERMILLE = 700 };
static const double utils[] = {0.4, 0.5, 0.6, 0.7, 0.8};
static const struct {
    const char *name, *object;
    enum ws_rtsim_policy rules; /* of the simulator */
} policies[] = {{"wattshare", "wattshare", WS_RTSIM_GCAPS},
                {"gcaps", NULL, WS_RTSIM_GCAPS},
                {"tsg-rr", NULL, WS_RTSIM_RR},
                {"mpcp", NULL, WS_RTSIM_MPCP},
                {"fmlp+", NULL, WS_RTSIM_FMLP}};
enum { OWN, GCAPS, N_POLICIES = WS_ARRAY_SIZE(policies), N_UTILS = WS_ARRAY_SIZE(utils) };

/* Of a set under one policy. */
struct sum {
    uint64_t n_jobs, n_missed;
    double worst; /* the longest response of any task, by its deadline */
};
struct study {
    uint64_t seed;
    int n_sets; /* for each utilisation */
    struct sum (*sums)[N_POLICIES];
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

static int run_policy(struct sum *s, const struct ws_rtsim_set *set, size_t policy,
                      int64_t *offsets, uint64_t seed)
{
    const struct ws_rtsim_config config = {.policy = policies[policy].rules,
                                           .policy_name = policies[policy].object};
    struct ws_rtsim *rt = NULL;
    int r = ws_rtsim_new(&rt, set, &config);
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

static void one_set(void *arg, size_t index)
{
    struct study *t = arg;
    struct ws_random random;
    struct ws_rt_set from;
    struct ws_rtsim_space space = WS_RTSIM_SPACE_NULL;
    struct ws_rtsim_set set = WS_RTSIM_SET_NULL;
    struct ws_rtsim_verdict v = {0};
    struct ws_gen_gcaps g = ws_gen_gcaps_default;
    g.util_min = g.util_max = utils[index / (size_t)t->n_sets];
    ws_random_init_part(&random, t->seed, index);
    int r = ws_gen_gcaps(&g, &random, &from);
    if (!r)
        r = ws_rtsim_set_make(&from, NULL, &space, &set, &v);
    int64_t *offsets = r ? NULL : ws_alloc_array((size_t)set.n_tasks + 1, sizeof(*offsets));
    if (!r && !offsets)
        r = -ENOMEM;
    for (size_t p = 0; p < N_POLICIES && !r; p++)
        r = run_policy(&t->sums[index][p], &set, p, offsets, t->seed * 1000003 + index);
    if (r)
        t->failed = r;
    free(offsets);
    free(v.bounds);
    ws_rtsim_set_deinit(&set);
    ws_rtsim_space_deinit(&space);
    ws_rt_set_deinit(&from);
}

/* ---- what came out ---- */

struct summary {
    double missed, worst; /* %; mean of the sets' worst */
    int n_more, n_less;   /* sets with more and with fewer misses than gcaps */
};

static struct summary summarize(const struct study *t, size_t util, size_t policy)
{
    struct summary m = {0};
    uint64_t n_jobs = 0, n_missed = 0;
    for (int i = 0; i < t->n_sets; i++) {
        const struct sum *s = t->sums[util * (size_t)t->n_sets + (size_t)i];
        n_jobs += s[policy].n_jobs;
        n_missed += s[policy].n_missed;
        m.worst += s[policy].worst / t->n_sets;
        m.n_more += s[policy].n_missed > s[GCAPS].n_missed;
        m.n_less += s[policy].n_missed < s[GCAPS].n_missed;
    }
    m.missed = n_jobs ? 100 * (double)n_missed / (double)n_jobs : NAN;
    return m;
}

static int print(const struct study *t, FILE *csv)
{
    static const char *const heads[] = {"policy",  "U = 0.4", "U = 0.5", "U = 0.6",
                                        "U = 0.7", "U = 0.8", NULL};
    struct ws_table table;
    printf(
        "\nmissed deadlines, %% / longest response by deadline, mean of %d sets / sets with more "
        "and with fewer misses than gcaps\n",
        t->n_sets);
    ws_table_init(&table, heads);
    fprintf(csv, "u,policy,missed,worst,more_than_gcaps,fewer_than_gcaps\n");
    for (size_t p = 0; p < N_POLICIES; p++) {
        ws_table_add(&table, "%s", policies[p].name);
        for (size_t u = 0; u < N_UTILS; u++) {
            struct summary m = summarize(t, u, p);
            ws_table_add(&table, "%.3f / %.3f / %d, %d", m.missed, m.worst, m.n_more, m.n_less);
            fprintf(csv, "%g,%s,%.5f,%.5f,%d,%d\n", utils[u], policies[p].name, m.missed, m.worst,
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
    for (size_t u = 0; u < N_UTILS; u++) {
        struct summary own = summarize(t, u, OWN), gcaps = summarize(t, u, GCAPS);
        char what[120], note[120];
        snprintf(what, sizeof(what), "U = %g: missed deadlines (%%), gcaps and ours", utils[u]);
        snprintf(note, sizeof(note), "more misses in %d and fewer in %d of %d sets", own.n_more,
                 own.n_less, t->n_sets);
        ws_experiment_at_most(x, what, gcaps.missed, own.missed, note);
    }
}

static int run_own_gcaps(struct ws_experiment_run *x)
{
    struct study t = {.seed = x->seed,
                      .n_sets = x->quick ? QUICK_SETS : WS_MAX((int)lround(SETS * x->scale), 1)};
    size_t n = N_UTILS * (size_t)t.n_sets;
    t.sums = ws_alloc_array(n, sizeof(*t.sums));
    FILE *csv = t.sums ? ws_experiment_csv(x, "own-gcaps") : NULL;
    if (!csv) {
        int r = t.sums ? -EIO : -ENOMEM;
        free(t.sums);
        return r;
    }
    struct ws_progress_bar bar;
    ws_progress_bar_start(&bar, "own-gcaps", n);
    ws_parallel_for(n, x->n_jobs, one_set, &t, &bar);
    ws_progress_bar_end(&bar);
    int r = t.failed ? t.failed : print(&t, csv);
    if (fclose(csv) && !r)
        r = -EIO;
    if (!r) {
        compare(x, &t);
        ws_experiment_plot(
            x, "own-gcaps",
            "set xlabel 'utilisation of each core'\nset ylabel 'missed deadlines, %'\n"
            "plot for [p in 'wattshare gcaps tsg-rr mpcp fmlp+'] 'own-gcaps.csv' using "
            "(strcol(2) eq p ? $1 : NaN):3 with linespoints title p");
    } else {
        ws_cli_error("own-gcaps: %s", strerror(-r));
    }
    free(t.sums);
    return r;
}

const struct ws_experiment ws_experiment_own_gcaps = {
    "own-gcaps", "our own, on GCAPS's task sets",
    "misses and longest responses of wattshare, of gcaps and of its baselines", run_own_gcaps};

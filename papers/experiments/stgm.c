// SPDX-License-Identifier: Apache-2.0
/* Experiments of STGM (Saha, Xiang, Kim, RTCSA 2019): Figs. 4 and 5, the schedulable shares over
 * the number of tasks and of SMs.
 *
 * The paper prints neither the figures' numbers nor those of Fig. 3a, from which its task sets
 * were made; the curves of our kernels keep what the text says of them (papers/sets/rt_sets.h).
 * So the comparison is with what the text claims. The server-based method is missing, since none
 * of our sources has its equations. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/experiments/experiment.h"
#include "papers/common/parallel.h"
#include "papers/sets/gen_stgm.h"

enum { CURVES = 8, POINTS_MAX = 16, SETS_PER_POINT = 1000 };

static const char *const names[CURVES] = {
    "stgm_suspend_paper", "stgm_busy_paper", "stgm_suspend_safe", "stgm_busy_safe",
    "mpcp_suspend_ref",   "mpcp_busy_ref",   "fmlp_suspend_ref",  "fmlp_busy_ref"};
enum { STGM_SUSPEND, STGM_BUSY, SAFE_SUSPEND, SAFE_BUSY, MPCP_SUSPEND, MPCP_BUSY, FMLP_SUSPEND };

struct stgm_shares {
    int n_points, n_sets;
    double xs[POINTS_MAX];
    struct ws_gen_stgm gen[POINTS_MAX];
    uint64_t seed;
    _Atomic int n_ok[POINTS_MAX][CURVES];
    _Atomic int failed;
};

static int judge(const struct ws_stgm_set *set, struct stgm_shares *s, size_t point)
{
    struct ws_stgm_work w = WS_STGM_WORK_NULL;
    struct ws_stgm_whole whole = {0};
    bool fits = false;
    int e = ws_stgm_work_reserve(&w, set->n_tasks);
    if (!e)
        e = ws_rta_work_reserve(&w.rta, set->n_tasks, set->n_segments);
    for (int k = 0; !e && k < CURVES; k++) {
        const struct ws_rta_method *m = ws_rta_method_find(names[k]);
        struct ws_rta_result r = {0};
        struct ws_stgm_result stgm = {0};
        if (m->stgm)
            ws_stgm_allocate(set, m->variant, &w, &stgm);
        else if (!(e = ws_stgm_whole_gpu(set, &w, &whole, &fits)) && fits)
            e = m->run(&whole.set, &w.rta, &r);
        if (stgm.ok || r.ok)
            s->n_ok[point][k]++;
    }
    ws_stgm_work_deinit(&w);
    ws_stgm_whole_deinit(&whole);
    return e;
}

static void one_set(void *arg, size_t index)
{
    struct stgm_shares *s = arg;
    size_t point = index / (size_t)s->n_sets, i = index % (size_t)s->n_sets;
    struct ws_random r;
    struct ws_rt_set set;
    ws_random_init_part(&r, s->seed + point, i);
    int e = ws_gen_stgm(&s->gen[point], &r, &set);
    if (!e)
        e = judge(&set.stgm, s, point);
    if (e)
        s->failed = e;
    ws_rt_set_deinit(&set);
}

static double percent(const struct stgm_shares *s, int point, int curve)
{
    return 100.0 * s->n_ok[point][curve] / s->n_sets;
}

/* Runs the points @xs of @axis, writes NAME.csv and its plot. @ret: free(). */
static int run_axis(struct ws_experiment_run *x, const char *name, const char *axis,
                    const char *label, const double *xs, int n, struct stgm_shares **ret)
{
    struct stgm_shares *s = ws_alloc(sizeof(*s));
    char commands[1024];
    if (!s)
        return -ENOMEM;
    memset(s, 0, sizeof(*s));
    s->n_points = n;
    s->n_sets = WS_MAX((int)lround(SETS_PER_POINT * x->scale), 10);
    s->seed = x->seed * 1000;
    int r = 0;
    for (int i = 0; i < n; i++) {
        s->xs[i] = xs[i];
        s->gen[i] = ws_gen_stgm_default;
        if (ws_gen_stgm_axis(&s->gen[i], axis, xs[i]))
            r = -EINVAL;
    }
    struct ws_progress_bar p;
    ws_progress_bar_start(&p, name, (uint64_t)s->n_points * (uint64_t)s->n_sets);
    ws_parallel_for((size_t)s->n_points * (size_t)s->n_sets, x->n_jobs, one_set, s, &p);
    ws_progress_bar_end(&p);
    if (!r)
        r = s->failed;
    FILE *f = r ? NULL : ws_experiment_csv(x, name);
    if (!f) {
        free(s);
        return r ? r : -EIO;
    }
    fprintf(f, "x");
    for (int k = 0; k < CURVES; k++)
        fprintf(f, ",%s", names[k]);
    fprintf(f, "\n");
    for (int i = 0; i < n; i++) {
        fprintf(f, "%g", xs[i]);
        for (int k = 0; k < CURVES; k++)
            fprintf(f, ",%.2f", percent(s, i, k));
        fprintf(f, "\n");
    }
    r = fclose(f) ? -EIO : 0;
    snprintf(commands, sizeof(commands),
             "set title '%s'\nset xlabel '%s'\nset ylabel 'schedulable sets (%%)'\nset yrange "
             "[0:105]\nplot for [i=2:%d] '%s.csv' using 1:i with linespoints noenhanced",
             x->name, label, CURVES + 1, name);
    ws_experiment_plot(x, name, commands);
    *ret = s;
    return r;
}

/* Three standard deviations of a difference of two shares of our sets. */
static double noise(const struct stgm_shares *s)
{
    return 3 * 50 * sqrt(2.0 / s->n_sets);
}

static int run_fig4(struct ws_experiment_run *x)
{
    static const double xs[] = {8, 9, 10, 11, 12, 13, 14, 15, 16};
    enum { N = WS_ARRAY_SIZE(xs) };
    struct stgm_shares *s;
    int r = run_axis(x, "stgm-fig4", "num_tasks", "tasks (4 cores, 13 SMs)", xs, N, &s);
    if (r)
        return r;
    double most = 0;
    bool best = true, sleeps = true, falls = true;
    for (int i = 0; i < N; i++) {
        double ours = percent(s, i, STGM_SUSPEND);
        most = fmax(most, ours - percent(s, i, MPCP_SUSPEND));
        for (int k = 0; k < CURVES; k++)
            best &= k == SAFE_SUSPEND || ours + noise(s) >= percent(s, i, k);
        sleeps &= ours + noise(s) >= percent(s, i, STGM_BUSY);
        falls &= !i || ours <= percent(s, i - 1, STGM_SUSPEND) + noise(s);
    }
    ws_experiment_claim(x, "STGM_suspend is the best everywhere", best, "");
    ws_experiment_claim(x, "suspending is no worse than busy-waiting", sleeps, "");
    ws_experiment_claim(x, "shares fall as tasks are added", falls, "");
    ws_experiment_compare(x, "STGM_suspend above MPCP_suspend, most (points)", 73, most, 12,
                          WS_SPREAD_ABSOLUTE,
                          "Fig. 3a's numbers aren't printed: other kernels, other gap");
    free(s);
    return 0;
}

const struct ws_experiment ws_experiment_stgm_fig4 = {
    "stgm-fig4", "STGM, Fig. 4", "schedulable shares over the number of tasks", run_fig4};

static int run_fig5(struct ws_experiment_run *x)
{
    static const double xs[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
    enum { N = WS_ARRAY_SIZE(xs) };
    struct stgm_shares *s;
    int r = run_axis(x, "stgm-fig5", "num_sm", "SMs", xs, N, &s);
    if (r)
        return r;
    double low = 100, high = 0;
    for (int i = 0; i < N; i++) {
        low = fmin(low, percent(s, i, FMLP_SUSPEND));
        high = fmax(high, percent(s, i, FMLP_SUSPEND));
    }
    double first = percent(s, 0, STGM_SUSPEND), last = percent(s, N - 1, STGM_SUSPEND);
    ws_experiment_claim(x, "one kernel at a time stays flat over the number of SMs",
                        high - low <= 2 * noise(s), "kernel times are drawn on all SMs");
    ws_experiment_claim(x, "STGM_suspend rises with the number of SMs", last > first + 2 * noise(s),
                        "");
    ws_experiment_claim(x, "with 13 SMs STGM_suspend is far above one kernel at a time",
                        last > percent(s, N - 1, FMLP_SUSPEND) + 20, "");
    ws_experiment_claim(x, "with 1 SM STGM_suspend isn't the best",
                        first < percent(s, 0, FMLP_SUSPEND) + noise(s),
                        "the paper says so of the server-based method, which we lack; FMLP+ here");
    ws_experiment_compare(x, "STGM_suspend with 1 SM (%)", NAN, first, 0, WS_SPREAD_ABSOLUTE,
                          "no number printed");
    ws_experiment_compare(x, "STGM_suspend with 13 SMs (%)", NAN, last, 0, WS_SPREAD_ABSOLUTE,
                          "no number printed");
    free(s);
    return 0;
}

const struct ws_experiment ws_experiment_stgm_fig5 = {
    "stgm-fig5", "STGM, Fig. 5", "schedulable shares over the number of SMs", run_fig5};

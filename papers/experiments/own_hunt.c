// SPDX-License-Identifier: Apache-2.0
/* own-hunt: does our own policy with guarantee=1 miss a deadline in task sets of sBEET-mg's
 * generator that pass the test of wattshare_safe? Each set that passes is run several times with
 * other releases, and with kernels that end early. own-safe does the same with sets of made-up
 * kernels, which are smaller and fit more tightly; here are the measured ones.
 *
 * Sets have two to eight tasks and a utilisation of 0.03 to 0.25 for each. In every fourth set the
 * releases have jitter. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>

#include "base/error.h"
#include "cli/cli.h"
#include "papers/common/parallel.h"
#include "papers/experiments/experiment.h"
#include "papers/sets/gen_sbeet.h"
#include "papers/sets/random.h"
#include "papers/sets/sbeet_hunt.h"
#include "policy/lookahead/fallback.h"

enum { SETS = 100000, QUICK_SETS = 60, RUNS = 3, PERIODS = 4, TASKS = 8, REF_SM = 24 };

static const char *const machines[] = {"rtx3070@24,t400", "rtx3070@12,t400", "rtx3070@6,t400",
                                       "rtx3070@12,rtx3070@12,t400", "t400"};

/* Sums over all sets that pass. */
struct hunt_tally {
    uint64_t seed;
    struct ws_gpus machines[WS_ARRAY_SIZE(machines)];
    _Atomic uint64_t n_passed, n_jobs, n_missed;
    _Atomic int failed;
};

static int draw_tasks(struct ws_random *r, struct ws_sbeet_task tasks[TASKS])
{
    struct ws_gen_sbeet g = {.seed = ws_random_next(r),
                             .n_tasks = (int)ws_random_integer(r, 2, TASKS),
                             .ref_sm = REF_SM,
                             .random_offsets = ws_random_integer(r, 0, 1)};
    g.util = g.n_tasks * ws_random_uniform(r, 0.03, 0.25);
    bool jitter = !ws_random_integer(r, 0, 3);
    if (ws_gen_sbeet(&g, tasks))
        return -EINVAL;
    for (int i = 0; i < g.n_tasks && jitter; i++)
        tasks[i].jitter = tasks[i].period * ws_random_uniform(r, 0, 0.3);
    return g.n_tasks;
}

static int hunt(struct hunt_tally *t, struct ws_sbeet_set *s, uint64_t seed)
{
    static const char *const options[] = {"guarantee=1", NULL};
    const struct ws_policy_ops *ops = ws_policy_find("wattshare");
    const struct ws_machine_options mo = {.duration = PERIODS * ws_sbeet_hunt_period(s)};
    struct ws_sbeet_outcome o;
    int r = ws_sbeet_set_run(&o, s, ops, options, &mo);
    if (!r)
        r = ws_sbeet_hunt(&o, s, ops, options, &mo, seed, RUNS - 1);
    if (!r) {
        t->n_jobs += o.r.n_released;
        t->n_missed += o.r.n_late + o.r.n_skipped;
    }
    ws_sbeet_outcome_deinit(&o);
    return r;
}

static int test_and_hunt(struct hunt_tally *t, struct ws_sbeet_set *s, uint64_t seed)
{
    struct ws_fallback plan = {0};
    int r = ws_fallback_prepare(&plan, &s->system);
    bool passes = plan.holds;
    ws_fallback_deinit(&plan);
    if (r || !passes)
        return r;
    t->n_passed++;
    return hunt(t, s, seed);
}

static void one_set(void *arg, size_t i)
{
    struct hunt_tally *t = arg;
    struct ws_random random;
    struct ws_sbeet_task tasks[WS_GEN_SBEET_MAX];
    struct ws_sbeet_set s = {0};
    char error[160];
    ws_random_init_part(&random, t->seed, i);
    int n = draw_tasks(&random, tasks);
    const struct ws_gpus *gpus = &t->machines[i % WS_ARRAY_SIZE(machines)];
    int r = n < 0 ? n : ws_sbeet_set_make(&s, gpus, tasks, n, false, error, sizeof(error));
    if (!r)
        r = test_and_hunt(t, &s, ws_random_next(&random));
    if (r)
        t->failed = 1;
    ws_sbeet_set_deinit(&s);
}

static int run_all(struct ws_experiment_run *x, struct hunt_tally *t, size_t n)
{
    struct ws_progress_bar progress;
    char error[160];
    for (size_t k = 0; k < WS_ARRAY_SIZE(machines); k++)
        if (ws_gpus_parse(&t->machines[k], machines[k], error, sizeof(error)))
            return ws_raise(-EINVAL);
    ws_progress_bar_start(&progress, "task sets", n);
    ws_parallel_for(n, x->n_jobs, one_set, t, &progress);
    ws_progress_bar_end(&progress);
    return t->failed ? ws_raise(-EINVAL) : 0;
}

static int run_own_hunt(struct ws_experiment_run *x)
{
    struct hunt_tally t = {.seed = x->seed};
    char note[160];
    size_t n = x->quick ? QUICK_SETS : (size_t)fmax(1, SETS * x->scale);
    int r = run_all(x, &t, n);
    for (size_t k = 0; k < WS_ARRAY_SIZE(machines); k++)
        ws_gpus_deinit(&t.machines[k]);
    if (r)
        return r;
    snprintf(note, sizeof(note), "%llu of %zu sets pass the test, %d runs each; %llu jobs",
             (unsigned long long)t.n_passed, n, RUNS, (unsigned long long)t.n_jobs);
    ws_experiment_at_most(x, "guarantee=1: jobs missed in sets that pass", 0, (double)t.n_missed,
                          note);
    return 0;
}

const struct ws_experiment ws_experiment_own_hunt = {
    "own-hunt", "our own, with its guarantee",
    "sets of measured kernels that pass the test miss no deadline, whatever is released when",
    run_own_hunt};

// SPDX-License-Identifier: Apache-2.0
/* own-safe: do sets of tasks that pass the test of wattshare_safe miss no deadline under our own
 * policy with guarantee=1, and would they without it?
 *
 * The sets are small and drawn at random: one to six tasks on one to three GPUs of one or two types
 * with one to eight SMs and one to three slots. In half of them all times are whole numbers, so
 * that releases, ends and deadlines often fall together. Some tasks have jitter, some have no
 * deadline. In half of the runs kernels end early, in half releases are sporadic, in half the
 * policy may choose clocks, and in half jobs can be taken off their GPUs. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "models/dvfs.h"
#include "papers/common/parallel.h"
#include "papers/experiments/experiment.h"
#include "papers/sets/random.h"
#include "papers/sim/machine.h"
#include "policy/lookahead/fallback.h"

enum {
    SETS = 100000,
    QUICK_SETS = 400,
    SMS = 8,
    GPUS = 3,
    TYPES = 2,
    TASKS = 6,
    DURATION_MS = 600
};

struct small_set {
    struct ws_policy_gpu_type types[TYPES];
    struct ws_policy_gpu gpus[GPUS];
    double wcet[TASKS][TYPES][SMS];
    struct ws_policy_cost costs[TASKS][TYPES];
    struct ws_dvfs_task dvfs[TASKS][TYPES];
    struct ws_policy_task tasks[TASKS];
    struct ws_policy_system sys;
    struct ws_machine_options run;
    bool clocked; /* the policy may choose clocks */
};
/* Sums over all sets that pass. */
struct safe_tally {
    uint64_t seed;
    _Atomic uint64_t n_passed, n_jobs, n_missed[2], n_sets_missed[2];
    _Atomic uint64_t mj[2];
    _Atomic int failed;
};
enum { SAFE, FREE };

static double maybe_whole(bool whole, double v)
{
    return whole ? ceil(v) : v;
}

static void draw_task(struct ws_random *r, struct small_set *s, int i, bool whole)
{
    double period = (double)ws_random_integer(r, 4, 60);
    double work = maybe_whole(whole, period * ws_random_uniform(r, 0.05, 0.8));
    for (int k = 0; k < TYPES; k++) {
        double slower = k ? (double)ws_random_integer(r, 1, 3) : 1;
        for (int m = 1; m <= SMS; m++)
            s->wcet[i][k][m - 1] = maybe_whole(whole, work * slower / pow(m, 0.8));
        s->dvfs[i][k] = (struct ws_dvfs_task){
            .gamma = 6, .c = 3 * SMS - 6, .d = s->wcet[i][k][SMS - 1], .delta = ws_random_unit(r)};
        s->costs[i][k] = (struct ws_policy_cost){.n_sm = SMS,
                                                 .wcet = s->wcet[i][k],
                                                 .dyn_w_per_sm = 3,
                                                 .dvfs = &s->dvfs[i][k],
                                                 .h2d = 0.25 * (double)ws_random_integer(r, 0, 1),
                                                 .d2h = 0.25};
    }
    bool timed = ws_random_integer(r, 0, 7) > 0, jitter = !ws_random_integer(r, 0, 3);
    s->tasks[i] = (struct ws_policy_task){
        .id = i,
        .name = "k",
        .period = period,
        .deadline = timed ? maybe_whole(whole, period * ws_random_uniform(r, 0.4, 1.2)) : 0,
        .offset = (double)ws_random_integer(r, 0, (int64_t)period),
        .jitter = jitter ? period * ws_random_uniform(r, 0, 0.3) : 0,
        .weight = 1,
        .cost = s->costs[i]};
}

static void draw_set(struct ws_random *r, struct small_set *s)
{
    int n_gpus = (int)ws_random_integer(r, 1, GPUS), n_tasks = (int)ws_random_integer(r, 1, TASKS);
    int n_types = (int)ws_random_integer(r, 1, WS_MIN(TYPES, n_gpus));
    bool whole = ws_random_integer(r, 0, 1), together = !ws_random_integer(r, 0, 2);
    *s = (struct small_set){0};
    for (int k = 0; k < TYPES; k++)
        s->types[k] = (struct ws_policy_gpu_type){
            .name = k ? "y" : "x", .n_sm = SMS, .static_w = 10, .idle_w_per_sm = 0.5};
    for (int k = 0; k < n_gpus; k++)
        s->gpus[k] = (struct ws_policy_gpu){.type = k % n_types,
                                            .sm_limit = (int)ws_random_integer(r, 1, SMS),
                                            .n_slots = (int)ws_random_integer(r, 1, 3),
                                            .server = -1};
    for (int i = 0; i < n_tasks; i++) {
        draw_task(r, s, i, whole);
        if (together)
            s->tasks[i].offset = 0;
    }
    s->sys = (struct ws_policy_system){.types = s->types,
                                       .gpus = s->gpus,
                                       .tasks = s->tasks,
                                       .n_types = n_types,
                                       .n_gpus = n_gpus,
                                       .n_tasks = n_tasks};
    s->run = (struct ws_machine_options){.duration = DURATION_MS,
                                         .early = 0.9 * (double)ws_random_integer(r, 0, 1),
                                         .late = 0.7 * (double)ws_random_integer(r, 0, 1),
                                         .seed = ws_random_next(r)};
    s->clocked = ws_random_integer(r, 0, 1);
    bool preempts = ws_random_integer(r, 0, 1);
    double update_ms = 0.25 * (double)ws_random_integer(r, 0, 2);
    for (int k = 0; k < TYPES; k++) {
        s->types[k].preempts = preempts;
        s->types[k].switch_ms = s->types[k].update_ms = update_ms;
    }
}

static int run(struct safe_tally *t, const struct small_set *s, int which)
{
    const char *const options[] = {which == SAFE ? "guarantee=1" : "guarantee=0",
                                   s->clocked ? "dvfs=yes" : NULL, NULL};
    const struct ws_policy_ops *ops = ws_policy_find("wattshare");
    struct ws_machine_result result = {0};
    struct ws_policy *p = NULL;
    char error[160];
    int r = ops->make(&p, options, error, sizeof(error));
    if (!r)
        r = ops->prepare(p, &s->sys, error, sizeof(error));
    if (!r)
        r = ws_machine_run(&result, &s->sys, ops, p, &s->run);
    uint64_t missed = result.n_late + result.n_skipped;
    t->n_missed[which] += missed;
    t->n_sets_missed[which] += missed > 0;
    t->mj[which] += (uint64_t)result.energy;
    if (which == SAFE)
        t->n_jobs += result.n_released;
    ws_machine_result_deinit(&result);
    ops->free(p);
    return r;
}

static void run_set(void *arg, size_t i)
{
    struct safe_tally *t = arg;
    struct ws_random random;
    struct small_set s;
    struct ws_fallback plan = {0};
    ws_random_init_part(&random, t->seed, i);
    draw_set(&random, &s);
    int r = ws_fallback_prepare(&plan, &s.sys);
    bool passes = plan.holds;
    ws_fallback_deinit(&plan);
    if (!r && passes) {
        t->n_passed++;
        r = run(t, &s, SAFE);
        if (!r)
            r = run(t, &s, FREE);
    }
    if (r)
        t->failed = 1;
}

static int run_own_safe(struct ws_experiment_run *x)
{
    struct safe_tally t = {.seed = x->seed};
    struct ws_progress_bar progress;
    char note[160];
    size_t n = x->quick ? QUICK_SETS : (size_t)fmax(1, SETS * x->scale);
    ws_progress_bar_start(&progress, "task sets", n);
    ws_parallel_for(n, x->n_jobs, run_set, &t, &progress);
    ws_progress_bar_end(&progress);
    if (t.failed)
        return ws_raise(-EINVAL);
    snprintf(note, sizeof(note), "%llu of %zu sets pass the test; %llu jobs",
             (unsigned long long)t.n_passed, n, (unsigned long long)t.n_jobs);
    ws_experiment_at_most(x, "guarantee=1: jobs missed in sets that pass", 0,
                          (double)t.n_missed[SAFE], note);
    snprintf(note, sizeof(note), "in %llu sets", (unsigned long long)t.n_sets_missed[FREE]);
    ws_experiment_compare(x, "guarantee=0: jobs missed in the same sets", NAN,
                          (double)t.n_missed[FREE], 0, WS_SPREAD_ABSOLUTE, note);
    ws_experiment_compare(x, "energy with guarantee=1, % of that without", NAN,
                          100.0 * (double)t.mj[SAFE] / fmax((double)t.mj[FREE], 1), 0,
                          WS_SPREAD_ABSOLUTE, "");
    return 0;
}

const struct ws_experiment ws_experiment_own_safe = {
    "own-safe", "our own, with its guarantee",
    "sets that pass the test miss no deadline, with ties, jitter and sporadic releases",
    run_own_safe};

// SPDX-License-Identifier: Apache-2.0
/* Measures the real-time simulator: jobs, events and decisions per second on one core, for each
 * policy and mode, over sets as the GCAPS and STGM experiments draw them. Every decision is one of
 * the policy object that the daemon runs. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "papers/sets/gen_gcaps.h"
#include "papers/sets/gen_stgm.h"
#include "papers/sim/rtsim_hunt.h"
#include "papers/sets/rtsim_set.h"

enum { SETS = 40, PERIODS = 50 };

static void stop(const char *what)
{
    fprintf(stderr, "bench_rtsim: %s\n", what);
    exit(1);
}

struct sums {
    uint64_t ns, n_jobs, n_events, n_decisions;
};

static void measure(const struct ws_rtsim_set *set, const struct ws_rtsim_config *config,
                    struct sums *sums)
{
    struct ws_rtsim *rt;
    struct ws_rtsim_result r;
    int64_t longest = 0;
    for (int i = 0; i < set->n_tasks; i++)
        longest = WS_MAX(longest, set->tasks[i].period);
    struct ws_rtsim_scenario x = {.horizon = PERIODS * longest, .exec_permille = 1000};
    if (ws_rtsim_new(&rt, set, config))
        stop("no simulator");
    uint64_t begin = ws_clock_ns();
    if (ws_rtsim_run(rt, &x, NULL, &r))
        stop("the simulation failed");
    sums->ns += ws_clock_ns() - begin;
    sums->n_jobs += r.n_jobs;
    sums->n_events += r.n_events;
    sums->n_decisions += r.n_decisions;
    ws_rtsim_free(rt);
}

int main(void)
{
    printf("%-8s %-8s %10s %12s %14s %14s\n", "policy", "mode", "jobs", "jobs/s", "events/s",
           "decisions/s");
    for (int k = 0; k < 2 * _WS_RTSIM_POLICY_N; k++) {
        struct ws_rtsim_config config = {.policy = (enum ws_rtsim_policy)(k / 2), .busy = k % 2};
        bool stgm = config.policy == WS_RTSIM_STGM;
        const struct ws_rta_method *m =
            stgm ? ws_rta_method_find(config.busy ? "stgm_busy" : "stgm_suspend") : NULL;
        struct sums sums = {0};
        for (uint64_t i = 0; i < SETS; i++) {
            struct ws_random r;
            struct ws_rt_set from;
            struct ws_rtsim_space space = WS_RTSIM_SPACE_NULL;
            struct ws_rtsim_set set;
            struct ws_rtsim_verdict v;
            ws_random_init_part(&r, 1, i);
            if (stgm ? ws_gen_stgm(&ws_gen_stgm_default, &r, &from)
                     : ws_gen_gcaps(&ws_gen_gcaps_default, &r, &from))
                stop("no sets");
            if (ws_rtsim_set_make(&from, m, &space, &set, &v))
                stop("no set to simulate");
            if (v.placed)
                measure(&set, &config, &sums);
            free(v.bounds);
            ws_rtsim_set_deinit(&set);
            ws_rtsim_space_deinit(&space);
            ws_rt_set_deinit(&from);
        }
        double s = (double)sums.ns / 1e9;
        printf("%-8s %-8s %10" PRIu64 " %12.0f %14.0f %14.0f\n",
               ws_rtsim_policy_name(config.policy), config.busy ? "busy" : "suspend", sums.n_jobs,
               (double)sums.n_jobs / s, (double)sums.n_events / s, (double)sums.n_decisions / s);
    }
    return 0;
}

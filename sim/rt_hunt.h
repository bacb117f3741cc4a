// SPDX-License-Identifier: Apache-2.0
/* sim/rt_hunt.h - looks for long response times: many runs of one task set with other releases and execution times.
 * Deterministic for a seed. Threads: one for each simulator. Errors: base/error.h. */
#ifndef WS_SIM_RT_HUNT_H
#define WS_SIM_RT_HUNT_H

#include "sim/rt.h"

struct ws_rt_hunt {
    int n_runs; /* at least 1; the first releases everything at once, at full length */
    uint64_t seed;
    int n_periods;    /* each run lasts this many of the longest period */
    bool full_length; /* never shorten execution times */
};
struct ws_rt_prey {
    struct ws_rt_task_result
        *tasks; /* [n_tasks] given by the caller: worst over all runs, sums of the rest */
    int64_t *
        offsets; /* [n_tasks] given by the caller: of the run with the highest response by bound; NULL ok */
    struct ws_rt_scenario scenario; /* of that run (its offsets are @offsets) */
    double ratio; /* highest response / bound (deadline where there is no bound) */
    int task;     /* whose */
    uint64_t n_jobs, n_events;
    uint64_t n_scanned; /* runs made */
};
/**
 * ws_rt_hunt() - search
 * @bounds: [n_tasks] in units; 0: none for this task; NULL: none at all (deadlines then steer the search)
 * Return: 0 or negative.
 */
WS_MUST_CHECK int ws_rt_hunt(struct ws_rt *rt, const struct ws_rt_set *set, const int64_t *bounds,
                             const struct ws_rt_hunt *h, struct ws_rt_prey *ret);

#endif

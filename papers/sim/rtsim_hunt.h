// SPDX-License-Identifier: Apache-2.0
/* papers/sim/rtsim_hunt.h - looks for long response times by many runs of one task set with
 * varied releases and execution times. Deterministic for a seed. Threads: one for each
 * simulator. Errors: base/error.h. */
#ifndef WS_PAPERS_SIM_RTSIM_HUNT_H
#define WS_PAPERS_SIM_RTSIM_HUNT_H

#include "papers/sim/rtsim.h"

struct ws_rtsim_hunt {
    int n_runs; /* at least 1; the first has the tasks' own offsets and full execution times */
    uint64_t seed;
    int n_periods;    /* each run lasts this many of the longest period */
    int64_t horizon;  /* if above 0: each run lasts this long instead */
    bool full_length; /* never shorten execution times */
};
struct ws_rtsim_prey {
    /* [n_tasks] given by the caller: worst over all runs, sums of the rest */
    struct ws_rtsim_task_result *tasks;
    /* [n_tasks] given by the caller: of the run with the highest response by bound; NULL ok */
    int64_t *offsets;
    struct ws_rtsim_scenario scenario; /* of that run (its offsets are @offsets) */
    double ratio; /* highest response / bound (deadline where there is no bound) */
    int task;     /* whose */
    uint64_t n_jobs, n_events;
    uint64_t n_scanned; /* runs made */
};
/**
 * ws_rtsim_hunt() - search
 * @bounds: [n_tasks] in units; 0: none for this task; NULL: none at all (deadlines then steer
 * the search)
 * Return: 0 or negative.
 */
WS_MUST_CHECK int ws_rtsim_hunt(struct ws_rtsim *rt, const struct ws_rtsim_set *set,
                                const int64_t *bounds, const struct ws_rtsim_hunt *h,
                                struct ws_rtsim_prey *ret);

#endif

// SPDX-License-Identifier: Apache-2.0
/* papers/verbs/sim_rt.h - the options of `wattshare sim` for real-time task sets on CPU cores
 * with one GPU (GCAPS and STGM).
 * Threads: read only once parsed. */
#ifndef WS_PAPERS_VERBS_SIM_RT_H
#define WS_PAPERS_VERBS_SIM_RT_H

#include "papers/analysis/rta.h"
#include "papers/sim/rtsim.h"
#include "papers/sim/rtsim_hunt.h"

struct ws_sim_rt_options {
    int busy; /* how a job waits for the GPU: 0: asleep, 1: spinning */
    int hold; /* enum ws_rtsim_hold */
    const char *bounds_name, *allocation_name;       /* as given; NULL: not given */
    const struct ws_rta_method *bounds, *allocation; /* what they name */
    struct ws_rtsim_hunt hunt;
};
#define WS_SIM_RT_OPTIONS_DEFAULT                                                                  \
    ((struct ws_sim_rt_options){.hunt = {.n_runs = 1, .seed = 1, .n_periods = 4}})

/* Finds the methods that the options name. Return: 0, or negative with the error printed. */
WS_MUST_CHECK int ws_sim_rt_find_methods(struct ws_sim_rt_options *o);

#endif

// SPDX-License-Identifier: Apache-2.0
/* papers/sets/gen_stgm.h - makes task sets as Table I of STGM (Saha, Xiang, Kim, RTCSA 2019).
 * The paper does not say for how many SMs a kernel's length is drawn. Its Fig. 5 suggests all of
 * them, since the methods that run one kernel at a time do not depend on the number of SMs
 * there. Threads: any; pure. */
#ifndef WS_PAPERS_SETS_GEN_STGM_H
#define WS_PAPERS_SETS_GEN_STGM_H

#include "papers/sets/random.h"
#include "papers/sets/rt_sets.h"

struct ws_gen_stgm {
    int cpus_min, cpus_max;
    int n_tasks; /* 0: 2 to 4 for each core */
    int n_sm;
    double gpu_to_cpu_min, gpu_to_cpu_max; /* tasks with GPU work to tasks without */
    double util_min, util_max;             /* of a task */
    int segments_min, segments_max;
    bool drawn_on_one_sm; /* a kernel's length is drawn for one SM; else for all */
};
/* Table I on 13 SMs. */
extern const struct ws_gen_stgm ws_gen_stgm_default;

/* num_tasks (on 4 cores), num_tasks_2cpu (on 2), num_sm, ratio_gpu, num_gpu_segs, util. Return:
 * as ws_gen_gcaps_axis(). */
WS_MUST_CHECK int ws_gen_stgm_axis(struct ws_gen_stgm *g, const char *axis, double x);
/* Makes one set. @ret: deinit with ws_rt_set_deinit(). Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_gen_stgm(const struct ws_gen_stgm *g, struct ws_random *r,
                              struct ws_rt_set *ret);

#endif

// SPDX-License-Identifier: Apache-2.0
/* papers/analysis/stgm.h - STGM allocates SMs and cores to tasks and bounds each task's
 * response. Tasks have static sets of SMs, kernels that share an SM run in order of arrival, and
 * there is one copy engine.
 * Source: Saha, Xiang, Kim, "STGM: Spatio-Temporal GPU Management for Real-Time Tasks", RTCSA
 * 2019: Eqs. 1 to 12 and Algorithm 1, with slips repaired (doc/analysis.md lists them).
 *
 * Forms: `paper` has the equations with slips repaired. `safe` (the plain name) adds what the
 * printed bounds leave out: chains of waiting in the kernel queue (the whole connected component
 * of tasks that share SMs), both copies of a boosted task of the same core, and the waiting of a
 * boosted task that spins.
 *
 * Units: any one unit of time, whole numbers (the readers use 1 us). Threads: one for each work.
 * Errors: base/error.h. */
#ifndef WS_PAPERS_ANALYSIS_STGM_H
#define WS_PAPERS_ANALYSIS_STGM_H

#include "base/sm_set.h"
#include "papers/analysis/rta.h"

struct ws_stgm_segment {
    int64_t hd, dh; /* copies in and out, with what the CPU does around them */
    int kernel;     /* row of ws_stgm_set.kernels */
    int profile;    /* of the caller; analyses don't look */
};

/* Its place in the set is its priority: the first is highest. */
struct ws_stgm_task {
    int64_t period, deadline;
    int64_t c;          /* CPU segments, sum */
    int n_cpu_segments; /* theta_i */
    int n_segments, first_segment;
};

struct ws_stgm_set {
    struct ws_stgm_task *tasks;
    struct ws_stgm_segment *segments;
    int64_t *kernels; /* [row * n_sm + k - 1]: time on k SMs, never longer on more */
    int n_tasks, n_segments, n_cpus, n_sm;
};
const char *ws_stgm_set_check(const struct ws_stgm_set *s, int *ret_task);

/* How many steps an allocation may take, as WS_RTA_STEPS_MAX: some seconds. Dozens of tasks on a
 * hundred SMs need far fewer. */
#define WS_STGM_STEPS_MAX (INT64_C(1) << 31)

enum { WS_STGM_BUSY = 1, WS_STGM_SAFE = 2 }; /* bits of a variant */

struct ws_stgm_result {
    bool ok, gave_up;
    int rounds;                  /* of Algorithm 1 */
    const int *n_sms;            /* [n_tasks], 0 for tasks without GPU work */
    const struct ws_sm_set *sms; /* [n_tasks] */
    const int *cpu;              /* [n_tasks], -1: fits on no core */
    const int64_t *bound;        /* [n_tasks], of the last test of its core; 0: not placed */
};

struct ws_stgm_work {
    struct ws_stgm_load *loads;
    int *n_sms, *cpu, *order;
    struct ws_sm_set *sms;
    int64_t *bound, *trial, *core_load;
    int *core_order;
    struct ws_rta_work rta;
    int n_tasks;
};
#define WS_STGM_WORK_NULL ((struct ws_stgm_work){0})
WS_MUST_CHECK int ws_stgm_work_reserve(struct ws_stgm_work *w, int n_tasks);
void ws_stgm_work_deinit(struct ws_stgm_work *w);

/* Allocation (Algorithm 1, repaired) and bounds. @s has passed ws_stgm_set_check(); @w is
 * reserved. Results lie in @w until its next use. */
void ws_stgm_allocate(const struct ws_stgm_set *s, int variant, struct ws_stgm_work *w,
                      struct ws_stgm_result *ret);

/* The same tasks for the analyses of rta.h: kernels one at a time on all SMs, cores by worst fit
 * decreasing with utilisation (C + Gm) / T. */
struct ws_stgm_whole {
    struct ws_rta_set set;
    int n_tasks, n_segments; /* reserved */
};
/* Return: 0 or -ENOMEM. @w is reserved for @s. *ret_fits: whether each core's utilisation is at
 * most 1 (where not, no method passes). */
WS_MUST_CHECK int ws_stgm_whole_gpu(const struct ws_stgm_set *s, struct ws_stgm_work *w,
                                    struct ws_stgm_whole *ret, bool *ret_fits);
void ws_stgm_whole_deinit(struct ws_stgm_whole *whole);

#endif

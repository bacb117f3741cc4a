/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/planner/plan.h - on which node a job with a deadline is to run, and at which clocks: EDL
 * (policy/edl.h), the same code as that of `wattshare cluster`. A plan is made from what Slurm has
 * at the moment, so nothing has to be kept from one plan to the next. Times are seconds on any one
 * clock, powers W. Threads: one for each call; inputs may be shared. */
#ifndef WS_SLURM_PLANNER_PLAN_H
#define WS_SLURM_PLANNER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include "base/macros.h"
#include "models/dvfs.h"
#include "policy/edl.h"

enum { WS_PLAN_KINDS = 8 };

enum ws_plan_power {
    WS_PLAN_ON,
    WS_PLAN_STARTING, /* is being switched on */
    WS_PLAN_OFF       /* must be switched on first */
};

struct ws_plan_node {
    int kind;   /* of its GPUs, 0…n_kinds - 1 */
    int n_gpus; /* each of them is a pair of the policy */
    enum ws_plan_power power;
};

/* A job that holds a GPU, or waits for one. */
struct ws_plan_job {
    int node;
    double start;  /* when it began; INFINITY: it has not */
    double length; /* as planned */
};

struct ws_plan_cluster {
    int n_kinds;
    const struct ws_plan_node *nodes;
    size_t n_nodes;
    const struct ws_plan_job *jobs; /* those that wait: in the order in which they will start */
    size_t n_jobs;
    double theta;                       /* of EDL */
    const struct ws_policy_ops *policy; /* one of policy/edl.h; NULL: EDL */
    /* From the order to switch a node on until it can run a job. A node that is being switched on
     * is counted as if that had begun now. */
    double turn_on_s;
    struct ws_dvfs_interval interval;
    const char *interval_text; /* the same, as the policy's option has it */
};

/* A job that is to be placed. */
struct ws_plan_wish {
    double deadline;                              /* INFINITY: none */
    const struct ws_dvfs_task *on[WS_PLAN_KINDS]; /* its model; NULL: it can't run on that kind */
};

struct ws_plan_place {
    int node; /* -1: no plan meets the deadline, and then `end` is the earliest end there is */
    double start, end;
    struct ws_dvfs_point point;
};

/**
 * ws_plan_make() - places jobs that arrive at @now, and come after all that Slurm has
 * @places: [n], by wish
 *
 * Each job goes to the kind of GPU on which it takes the least energy, and to the next kind where
 * the policy drops it. What all kinds drop is tried once more by EDL with theta 0: a job may be as
 * short as the clocks allow before it is refused.
 *
 * Return: 0 or a negative errno.
 */
WS_MUST_CHECK int ws_plan_make(const struct ws_plan_cluster *cluster, double now,
                               const struct ws_plan_wish *wishes, size_t n,
                               struct ws_plan_place *places);

#endif

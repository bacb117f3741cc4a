/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/planner/jobs.h - the nodes and jobs that slurmctld has, as far as plans need them. While a
 * job is being submitted, slurmctld answers nobody and waits for the planner; so a thread of its
 * own asks slurmctld, and plans use what it last heard. Threads: any, but for start and stop. */
#ifndef WS_SLURM_PLANNER_JOBS_H
#define WS_SLURM_PLANNER_JOBS_H

#include <pthread.h>
#include <stdbool.h>
#include "slurm/planner/settings.h"
#include "slurm/planner/plan.h"

struct ws_planner_jobs {
    const struct ws_planner_config *config;
    pthread_mutex_t mutex;
    bool known; /* slurmctld has answered */
    struct ws_plan_node *nodes;
    char (*names)[64]; /* of the nodes */
    size_t n_nodes;
    struct held_gpu *held;
    size_t n_held, cap_held;
};

/* Seconds since 1970. */
double ws_planner_now(void);
/* Starts to ask slurmctld, again and again. @j lives until the process ends. Return: 0 or a
 * negative errno. */
WS_MUST_CHECK int ws_planner_jobs_start(struct ws_planner_jobs *j,
                                        const struct ws_planner_config *config);
/**
 * ws_planner_jobs_place() - plans a job, and counts it as one that Slurm has
 * @made: the number of the plan, as in its note
 * @ret_node: the name of the node; "": no plan meets the deadline
 * @ret_waits: whether the node must come up first; then the job is to be submitted with a time
 * before which it does not begin, and a note that says so, and begins when the node is up
 *
 * Return: 0; 1: slurmctld has not answered yet, or no node has a GPU for it; or a negative errno.
 */
WS_MUST_CHECK int ws_planner_jobs_place(struct ws_planner_jobs *j, double made,
                                        const struct ws_plan_wish *wish, struct ws_plan_place *ret,
                                        char ret_node[64], bool *ret_waits);

#endif

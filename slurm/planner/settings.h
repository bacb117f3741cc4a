/* SPDX-License-Identifier: Apache-2.0 */
/* slurm/planner/settings.h - planner.conf: the kinds of GPU, and what is known of tasks. Threads:
 * reading in one at a time; what was read may be shared. */
#ifndef WS_SLURM_PLANNER_SETTINGS_H
#define WS_SLURM_PLANNER_SETTINGS_H

#include "models/dvfs.h"
#include "slurm/planner/plan.h"

struct ws_planner_kind {
    char name[64]; /* a feature of the nodes that have it */
    /* Of a job that nothing is known of but its length: watts, and the share of the time that goes
     * with the core clock. */
    double static_w, memory_w, core_w, core_share;
    double idle_w; /* of a GPU without work, with its share of the node */
};

struct ws_planner_model { /* a task on a kind of GPU */
    char task[64];
    int kind;
    struct ws_dvfs_task dvfs;
};

struct ws_planner_config {
    double theta, margin_s;
    const struct ws_policy_ops *policy;
    double turn_on_s, turn_on_j; /* of switching a node on: time, energy for each GPU */
    char interval_text[80];
    struct ws_dvfs_interval interval;
    struct ws_planner_kind kinds[WS_PLAN_KINDS];
    int n_kinds;
    struct ws_planner_model *models;
    size_t n_models;
};

/* Return: 0; 1: it is wrong, and standard error says where; or a negative errno. */
WS_MUST_CHECK int ws_planner_config_read(struct ws_planner_config *ret, const char *path);
/* The model of a job of @task (which may be "") that takes @length seconds at the default clocks
 * (0: as the task's model says), with the margin. Return: false: there is none. */
bool ws_planner_model_of(const struct ws_planner_config *c, int kind, const char *task,
                         double length, struct ws_dvfs_task *ret);

/* For how long a node of the kind must have been without jobs before it is worth switching it off:
 * until the idle GPUs have taken what switching on again costs (Mei et al., dynamic resource sleep:
 * rho = Delta / P_idle). Return: seconds; INFINITY: never, or the costs are not known. */
double ws_planner_break_even(const struct ws_planner_config *c, int kind);
/* After how many seconds Slurm is to take a node that is being switched on for down
 * (ResumeTimeout). */
double ws_planner_resume_timeout(const struct ws_planner_config *c);

#endif

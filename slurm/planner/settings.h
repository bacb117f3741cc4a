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
};

struct ws_planner_model { /* a task on a kind of GPU */
    char task[64];
    int kind;
    struct ws_dvfs_task dvfs;
};

struct ws_planner_config {
    double theta, margin_s;
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

#endif

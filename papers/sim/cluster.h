// SPDX-License-Identifier: Apache-2.0
/* papers/sim/cluster.h - simulates servers of CPU-GPU pairs that run tasks with deadlines under
 * a policy of policy/edl.h.
 * Source: Mei et al. (models/dvfs.h), Sections 3.3 and 4.
 *
 * A pair is busy, idle (then it takes idle_w) or off (it takes nothing). A server is switched on
 * and off as a whole, and each of its pairs costs turn_on_j when it is switched on. Time is in
 * slots or any one unit; energy in W times that unit (the paper calls W·slot "J"). The simulator
 * does not trust the policy: it checks each decision, and computes time and power from the model
 * at the clocks decided.
 * Threads: one for each call; inputs may be shared. */
#ifndef WS_PAPERS_SIM_CLUSTER_H
#define WS_PAPERS_SIM_CLUSTER_H

#include <stdint.h>
#include <stdio.h>
#include "models/dvfs.h"
#include "policy/edl.h"
#include "papers/sets/jsonl.h"

struct ws_cluster_task {
    int64_t id; /* ties of deadlines go to the smaller one */
    double arrival, deadline;
    struct ws_dvfs_task dvfs;
};

struct ws_cluster {
    int n_pairs; /* at most; made up to whole servers */
    int pairs_per_server;
    double idle_w;
    double turn_on_j; /* for each pair */
};
/* The paper's: 37 W, 90 "J", 2048 pairs, one a server. */
extern const struct ws_cluster ws_cluster_paper;
/* The number of pairs with which every task finds a free one: one server for each of @n_tasks. */
int ws_cluster_pairs_for(size_t n_tasks, int pairs_per_server);

struct ws_cluster_result {
    double e_run, e_idle, e_turn_on, e_total;
    double e_idle_used; /* of pairs that had work while their server was on */
    uint64_t n_jobs, n_done, n_dropped, n_missed; /* missed: ended late, or dropped */
    uint64_t n_pairs_on, n_servers_on;            /* times switched on */
    int max_servers_on, n_pairs_used;
    double end; /* of the last task */
    uint64_t n_events, n_decisions;
    struct ws_edl_counts counts;
};

/* Where a task ran. */
struct ws_cluster_job {
    int pair; /* server · pairs_per_server + index; -1: dropped */
    double start;
    struct ws_dvfs_point point;
};

enum { _WS_CLUSTER_OK, WS_CLUSTER_E_POLICY, WS_CLUSTER_E_OPTION };
/**
 * ws_cluster_run() - simulate all tasks from their arrival to their end
 * @options: of the policy, as ws_policy_ops.make() takes them
 * @ret_jobs: [n], by task; may be NULL
 *
 * Return: 0; WS_CLUSTER_E_OPTION (an option of the policy is wrong), WS_CLUSTER_E_POLICY (the
 * policy made an impossible decision): both with the reason in @ret_error; or negative.
 */
WS_MUST_CHECK int ws_cluster_run(const struct ws_cluster *cluster,
                                 const struct ws_cluster_task *tasks, size_t n,
                                 const struct ws_policy_ops *ops, const char *const *options,
                                 struct ws_cluster_job *ret_jobs, struct ws_cluster_result *ret,
                                 char *ret_error, size_t error_bytes);

/* ---- tasks as JSON lines:
 * {"id":0,"a":0,"d":417,"P0":50,"gamma":29,"c":96,"D":147,"delta":0.26,"t0":11.3} ---- */

/* What a task must be able to meet. */
struct ws_cluster_limits {
    struct ws_dvfs_interval interval;
    bool dvfs; /* else at the default clocks only */
};
/* Reads the six parameters at @at and checks them; a wrong one marks the line as bad. */
struct ws_dvfs_task ws_dvfs_task_read(const struct ws_json_at *at);
/* Reads a task. Marks @line as bad if a field is missing or out of range, or if the deadline
 * cannot be met. */
struct ws_cluster_task ws_cluster_task_read(struct ws_json_line *line,
                                            const struct ws_cluster_limits *limits);
/* Writes one line for ws_cluster_task_read(), with the additional fields u, t_star and P_star. */
void ws_cluster_task_write(FILE *f, const struct ws_cluster_task *task);

#endif

// SPDX-License-Identifier: Apache-2.0
/* papers/sets/edl_study.h - computes means over many generated task sets, as the tables and
 * figures of Mei et al. do. Threads: sets may be run on several threads at once; all else
 * belongs to one thread. */
#ifndef WS_PAPERS_SETS_EDL_STUDY_H
#define WS_PAPERS_SETS_EDL_STUDY_H

#include <stdatomic.h>
#include "papers/sets/gen_edl.h"

/* One way to run a set. */
struct ws_edl_cell {
    const char *policy; /* of policy/edl.h */
    bool dvfs;
    double theta; /* of edl with DVFS */
    int l;        /* pairs in a server */
    bool whole;   /* servers=whole: as the released program opens them */
};

/**
 * ws_edl_cell_run() - run a task set on the paper's cluster (37 W, rho = 2 slots, as many pairs
 * as it needs)
 * @offline: servers go off when their last task ends, and turning on costs nothing; else 90 J a
 * pair
 *
 * Return: 0, -EINVAL (no such policy), or what ws_cluster_run() returns.
 */
WS_MUST_CHECK int ws_edl_cell_run(const struct ws_edl_cell *cell, bool offline,
                                  const struct ws_cluster_task *tasks, size_t n,
                                  struct ws_cluster_result *ret);

/* A study of many sets, each of which is run in every cell. */
struct ws_edl_study {
    struct ws_gen_edl gen; /* u_online 0: offline */
    int n_sets, n_cells;
    const struct ws_edl_cell *cells;
    struct ws_cluster_result *results; /* [set · n_cells + cell] */
    _Atomic int error;                 /* the first that a set met */
};
/* @s: the caller has set gen, n_sets, cells and n_cells. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_edl_study_init(struct ws_edl_study *s);
/* Generates set @i < n_sets and runs it. For ws_parallel_for(): @study is a struct ws_edl_study. */
void ws_edl_study_set(void *study, size_t i);
void ws_edl_study_deinit(struct ws_edl_study *s);

struct ws_edl_means {
    double n_tasks, e_run, e_idle, e_turn_on, e_total;
    double ci95_total; /* half of the 95 % interval of the mean */
    double n_pairs, n_servers_on, max_servers_on, n_deadline_prior, n_readjusted, n_missed;
};
struct ws_edl_means ws_edl_study_means(const struct ws_edl_study *s, int cell);

#endif

// SPDX-License-Identifier: Apache-2.0
/* papers/sets/sbeet_set.h - reads task sets of sBEET-mg (periodic kernels on several GPUs) from
 * a line, makes them into a policy's system, and runs them. Threads: one for each set. Errors:
 * base/error.h. */
#ifndef WS_PAPERS_SETS_SBEET_SET_H
#define WS_PAPERS_SETS_SBEET_SET_H

#include "papers/sets/gpus.h"
#include "papers/sim/machine.h"

struct ws_sbeet_set {
    struct ws_policy_system system; /* its tasks in rate-monotonic order */
    struct ws_policy_task *tasks;
    struct ws_policy_cost *costs; /* [n_tasks][n_types] */
    char id[64];
    double util;     /* of the line; NAN: not there */
    double duration; /* of the line; 0: not there */
};
/* Period, deadline, offset and jitter in ms; the kernel by name, or by the authors' number where
 * that is NULL. */
struct ws_sbeet_task {
    const char *kernel;
    int app;
    double period, deadline, offset, jitter, utilization;
};
void ws_sbeet_set_deinit(struct ws_sbeet_set *s);
/**
 * ws_sbeet_set_make() - a set of these tasks on these GPUs
 * @g: borrowed, as are the tasks' kernel names
 * @copies_asis: copies out of the T400 take as long as copies in, the slip of the authors'
 * simulator Tasks are sorted by period, and equal ones stay in order; ids are the ranks. Return:
 * 0, -EINVAL with @ret_error (a kernel that is known on none of the GPUs), -ENOMEM.
 */
WS_MUST_CHECK int ws_sbeet_set_make(struct ws_sbeet_set *ret, const struct ws_gpus *g,
                                    const struct ws_sbeet_task *tasks, int n, bool copies_asis,
                                    char *ret_error, size_t error_bytes);
/* Whether a line is of this kind: its tasks have "app" or "benchmark". */
bool ws_sbeet_set_is(struct ws_json_line *l);
/* From a line: "tasks": [{"benchmark" or "app", "period_ms", "deadline_ms" (period ·
 * "deadline_factor", 0.5), "phi_ms" (0), "jitter_ms" (0), "ref_util"}], "id", "util",
 * "duration_ms". Problems are in the line. Return: 0, -EINVAL, -ENOMEM. */
WS_MUST_CHECK int ws_sbeet_set_read(struct ws_sbeet_set *ret, const struct ws_gpus *g,
                                    bool copies_asis, struct ws_json_line *l);

/* Whether a policy shares out SMs of several GPUs, so that it can run these sets. Run lists and
 * clusters have simulators of their own. */
bool ws_sbeet_set_knows(const struct ws_policy_ops *ops);

struct ws_sbeet_outcome {
    struct ws_machine_result r;
    int *home;  /* [n_tasks]: the GPU on which the offline part placed the task; -1: none */
    int *m_opt; /* [n_tasks]: the SM count of least energy there */
    uint64_t n_migrated; /* starts elsewhere; 0 without an offline part */
    int n_unfit;         /* 1: the offline part found a task that fits nowhere; .note names it */
    char note[160];
};
void ws_sbeet_outcome_deinit(struct ws_sbeet_outcome *o);
/* Makes the policy, prepares it and runs. Return: 0, WS_POLICY_E_OPTION or WS_MACHINE_E_POLICY
 * with ret->note, negative. */
WS_MUST_CHECK int ws_sbeet_set_run(struct ws_sbeet_outcome *ret, const struct ws_sbeet_set *s,
                                   const struct ws_policy_ops *ops,
                                   const char *const *policy_options,
                                   const struct ws_machine_options *options);

#endif

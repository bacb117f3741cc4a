// SPDX-License-Identifier: Apache-2.0
/* papers/sim/machine.h - simulates jobs of periodic tasks on GPUs under a policy.
 *
 * There are two clocks. With events (the default) times are exact, and the policy is asked after
 * each arrival, completion and timer. A job copies in, computes on its SMs, and copies out. Its
 * GPU draws dynamic power for the SMs that compute, idle power for the others while any job is
 * on the GPU (even if it only copies), and static power alone otherwise. With ticks (for
 * comparison) the rules are those of the sBEET-mg authors' simulator. The policy is asked at
 * each tick while jobs are ready. A job ends at the first tick that is not before its end. Power
 * is summed once a tick, as if all SMs of a job worked from its start until that tick. Ticks at
 * which nothing can happen are skipped.
 *
 * A GPU's voltage and clocks are those of the last start there. As on a software GPU, what a job
 * takes follows those with which it was started (policy/clocks.h); copies and idle SMs do not
 * depend on them. A start that would lower them while another job runs there is an error of the
 * policy.
 *
 * With both clocks a task releases a job at offset + n·period (with ticks: at the first tick
 * that is a period after its last release). A ready job whose deadline has passed is dropped
 * ("skipped"). A running job is never aborted; it is late if it ends after its deadline.
 * Units: as policy.h; energy in W·unit. Deterministic. Threads: one for each machine. Errors:
 * base/error.h. */
#ifndef WS_PAPERS_SIM_MACHINE_H
#define WS_PAPERS_SIM_MACHINE_H

#include "models/energy.h"
#include "policy/policy.h"

enum ws_machine_event_kind {
    WS_MACHINE_RELEASE,
    WS_MACHINE_START, /* .run says where and until when; .why is the reason (with `explain`) */
    WS_MACHINE_DONE,  /* .run as it was */
    WS_MACHINE_LATE,
    WS_MACHINE_SKIP,
    WS_MACHINE_PREEMPT,
    WS_MACHINE_RESUME,
    WS_MACHINE_CPU,   /* runs on the host's processor until .run->end */
    WS_MACHINE_POWER, /* .power_w of .gpu from now on */
    _WS_MACHINE_EVENT_N
};
struct ws_machine_event {
    enum ws_machine_event_kind kind;
    double t;
    int task, gpu, slot; /* -1: none */
    uint64_t job;        /* counts all jobs, from 0 */
    double release, deadline;
    const struct ws_policy_run *run; /* NULL: none */
    const char *why;
    double power_w;
};
const char *ws_machine_event_name(enum ws_machine_event_kind k);

/* The jobs of a task one by one, instead of one in each period. */
struct ws_machine_job {
    double after; /* from the end of the task's job before, or from 0 */
    double share; /* of the time that the task's cost says, which is what the policy predicts */
};
struct ws_machine_script {
    const struct ws_machine_job *jobs;
    size_t n;
    bool timed; /* `after` counts from the release of the job before, not from its end */
};

struct ws_machine_options {
    double duration; /* > 0 */
    /* [n_tasks]; NULL: tasks have periods. The run ends when the last job has. Events only. */
    const struct ws_machine_script *scripts;
    double tick; /* > 0: the compatibility clock; 0: events */
    /* Kernels take a share of their time that is drawn anew for each job, from [1 - early, 1 +
     * over], and that the policy does not know: it goes on predicting the whole. 0: they take the
     * whole. The draws depend on the seed and on the order of releases, not on the policy. Events
     * only. */
    double early, over;
    /* Sporadic releases: each comes later than a period after the last, by a share of the period
     * that is drawn from [0, late]. Independently of it, the jitter of a task is drawn for each
     * release. Events only. */
    double late;
    uint64_t seed;
    enum ws_energy_form form;
    bool explain;
    void (*event)(void *arg, const struct ws_machine_event *e); /* NULL: not called */
    void *arg;
};

struct ws_machine_result {
    uint64_t n_released, n_on_time, n_late, n_skipped, n_started, n_preempted, n_asked;
    uint64_t n_ignored; /* decisions that a machine does not carry out (power, clocks alone) */
    uint64_t sum_sm;    /* over all starts */
    double end;         /* of the run */
    double energy;      /* of all GPUs, and of the processor where jobs ran there */
    /* end - deadline, the largest; -INFINITY: no job with a deadline ended */
    double worst_lateness;
    /* per task, and per task and GPU: [n_tasks], [n_tasks][n_gpus] */
    uint64_t *released, *missed, *started;
    double *worst_response; /* [n_tasks], release to end; 0: none ended */
    int n_tasks, n_gpus;
    char error[160]; /* WS_MACHINE_E_POLICY: what the policy did */
};
void ws_machine_result_deinit(struct ws_machine_result *r);

enum { _WS_MACHINE_OK, WS_MACHINE_E_POLICY /* a decision that can't be carried out */ };
/**
 * ws_machine_run() - run @policy, already prepared for @system, from 0 to the end of the
 * duration All that happens at one time is one event for the policy. Policies that need each
 * event by itself (ops->once) are refused.
 * @ret: deinit with ws_machine_result_deinit(), whatever is returned
 * Return: 0, WS_MACHINE_E_POLICY with ret->error, or negative.
 */
WS_MUST_CHECK int ws_machine_run(struct ws_machine_result *ret,
                                 const struct ws_policy_system *system,
                                 const struct ws_policy_ops *ops, struct ws_policy *policy,
                                 const struct ws_machine_options *options);

#endif

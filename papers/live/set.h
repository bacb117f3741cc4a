// SPDX-License-Identifier: Apache-2.0
/* papers/live/set.h - a set of periodic tasks that is run live and by the simulators, to compare
 * the results.
 *
 * A task's job waits for the time of its CPU part, and then launches one kernel of n_blocks
 * blocks. Each block has an SM to itself for block_ms on the set's first GPU (kernel "steps" of
 * bench/live/program), so that the kernel's time on n SMs is known: ceil(n_blocks / n) ·
 * block_ms. In the simulation every program has a core of its own, since a live program does not
 * compute in its CPU part. Times are in ms. Threads: one. Functions that fail print why. */
#ifndef WS_PAPERS_LIVE_SET_H
#define WS_PAPERS_LIVE_SET_H

#include "papers/experiments/experiment.h"
#include "papers/live/live.h"
#include "papers/sim/rtsim.h"

enum { WS_LIVE_TASKS = 16, WS_LIVE_SET_GPUS = 2 };

struct ws_live_task {
    char name[32];
    int n_blocks;
    double block_ms; /* on the first GPU; what it really is after ws_live_set_measure() */
    double period_ms, deadline_ms, offset_ms, cpu_ms;
    int priority;        /* larger is higher; 0: best effort */
    int first_sm, n_sms; /* of a fixed set; n_sms 0: none */
    /* The kernel of sBEET-mg (models/measured.h) whose times and powers its kernel follows; NULL:
     * block_ms says how long it takes. */
    const char *as;
    /* "70,100,130": each job's kernel takes one of these shares of the time, in percent, drawn
     * anew, of those in the store; NULL: 100 */
    const char *percents;
};
struct ws_live_set {
    const char *gpus;
    struct ws_live_task tasks[WS_LIVE_TASKS];
    int n_tasks;
    double duration_ms;
    double time_scale;
    const char *follow; /* a store of the kernels that tasks follow; NULL: none does */
    int n_slots;        /* of each GPU; 0: the daemon's own */
    bool first_dies;    /* the program of the first task is killed when half of the time is over */
    /* A run in which the host was late for more than a tenth of this process's wake-ups is made
     * again, so many times at most; 0: none is */
    int n_again;
    /* after ws_live_set_measure() */
    int n_gpus;
    struct ws_gpu_spec specs[WS_LIVE_SET_GPUS];
    double step_ms[WS_LIVE_SET_GPUS], start_ms[WS_LIVE_SET_GPUS];
    int length[WS_LIVE_TASKS]; /* steps of a block */
};
/* Measures by two short runs how long a block takes on each of the set's GPUs, and sets the
 * lengths that give the wanted block_ms.
 * Return: 0 or -1. */
WS_MUST_CHECK int ws_live_set_measure(struct ws_live_set *s);

struct ws_live_task_result {
    int released, missed;
    double worst_ms, mean_ms; /* responses */
    /* live: from when the program went on, to its end; the longest, and what 95 % do not exceed */
    double worst_run_ms, most_run_ms;
};
struct ws_live_set_result {
    struct ws_live_task_result tasks[WS_LIVE_TASKS];
    int released, missed; /* of tasks with deadlines */
    double energy_mj;     /* over the duration; NAN: not known */
    /* live: wake-ups for which the host was late, in percent; and runs that were left out because
     * it was late for more of them */
    double late_percent;
    int n_left_out;
};
/* Runs the set live under @policy. Return: 0 or -1. */
WS_MUST_CHECK int ws_live_set_run(struct ws_experiment_run *x, const struct ws_live_set *s,
                                  const char *policy, const char *options,
                                  struct ws_live_set_result *ret);
/* Simulates the set by papers/sim/machine.h, for policies that decide from snapshots alone.
 * Return: 0 or -1. */
WS_MUST_CHECK int ws_live_set_machine(const struct ws_live_set *s, const char *policy,
                                      const char *const *options, struct ws_live_set_result *ret);
/* Simulates the set by papers/sim/rtsim.h. @slice_ms: of rr. Return: 0 or -1. */
WS_MUST_CHECK int ws_live_set_rtsim(const struct ws_live_set *s, enum ws_rtsim_policy policy,
                                    double slice_ms, struct ws_live_set_result *ret);

#endif

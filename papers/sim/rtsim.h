// SPDX-License-Identifier: Apache-2.0
/* papers/sim/rtsim.h - simulates real-time tasks on CPU cores that share one GPU, by discrete
 * events in exact integers.
 *
 * Cores: partitioned fixed priority, preemptive. A job runs its CPU parts and GPU segments in
 * turn (CPU part 0, segment 0, CPU part 1, …). A segment is (before, kernel, after): GCAPS's Gm
 * and Ge are before and kernel; STGM's hd, e, dh all three. While a segment waits for the GPU
 * the job sleeps (suspend) or spins on its core (busy). doc/rtsim.md has the rules of each
 * policy, the order of simultaneous events, and what is assumed.
 *
 * The policy objects of policy/, the same that the daemon runs, decide which task runs on the
 * GPU.
 *
 * Units: time in whole units of the set's choice (0.1 µs for the GCAPS data, 1 µs for STGM's);
 * ws_rtsim_set.per_ms says how many make a millisecond. Threads: one for each simulator. Errors:
 * base/error.h. */
#ifndef WS_PAPERS_SIM_RTSIM_H
#define WS_PAPERS_SIM_RTSIM_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"
#include "base/sm_set.h"

enum { WS_RTSIM_CORES_MAX = 256, WS_RTSIM_TASKS_MAX = 4096, WS_RTSIM_SEGMENTS_MAX = 256 };
#define WS_RTSIM_TIME_MAX (INT64_C(1) << 50)

struct ws_rtsim_segment {
    int64_t before, kernel, after;
    /* stgm: [n_sms], what the kernel takes on so many SMs; borrowed. NULL: `kernel` on any */
    const int64_t *by_sms;
};
struct ws_rtsim_task {
    int id;
    int core;
    int priority;     /* larger is higher; best effort: ignored */
    int gpu_priority; /* 0: = priority */
    bool best_effort;
    int64_t period, deadline, offset; /* offset of the first release */
    /* a job is ready this much at most after its release, from which its response counts */
    int64_t jitter;
    int64_t *cpu; /* [n_segments + 1], 0 allowed */
    struct ws_rtsim_segment *segments;
    int n_segments;
    struct ws_sm_set sms; /* stgm: those on which `kernel` is what its kernels take */
};
/* Tasks are ordered by decreasing priority; best-effort tasks are last. */
struct ws_rtsim_set {
    struct ws_rtsim_task *tasks;
    int n_tasks, n_cores, n_sms;
    int64_t per_ms;
    int64_t slice, theta, epsilon; /* TSG slice L, context switch, run-list update */
};
#define WS_RTSIM_SET_NULL ((struct ws_rtsim_set){0})
/* Owns its tasks and their arrays. */
WS_MUST_CHECK int ws_rtsim_set_init(struct ws_rtsim_set *s, int n_tasks);
/* Gives task @i room for @n segments (all zero). */
WS_MUST_CHECK int ws_rtsim_set_segments(struct ws_rtsim_set *s, int i, int n);
void ws_rtsim_set_deinit(struct ws_rtsim_set *s);

enum ws_rtsim_policy {
    WS_RTSIM_RR,    /* default driver: contexts in slices */
    WS_RTSIM_GCAPS, /* run list, preempting */
    WS_RTSIM_STGM,  /* SM sets, copy engine */
    WS_RTSIM_MPCP,  /* one lock; waiters by priority */
    WS_RTSIM_FMLP,  /* one lock; waiters in order of arrival */
    _WS_RTSIM_POLICY_N
};
/* GCAPS: when a segment is open. The bounds assume the first. */
enum ws_rtsim_hold {
    WS_RTSIM_HOLD_WORK, /* from the first GPU command until its work is done, seen by the daemon */
    WS_RTSIM_HOLD_COMMAND, /* from the first GPU command until the program calls end */
    WS_RTSIM_HOLD_CALLS,   /* from begin, before the CPU-side part, until end: as published */
    _WS_RTSIM_HOLD_N
};
struct ws_rtsim_config {
    enum ws_rtsim_policy policy;
    enum ws_rtsim_hold hold;
    bool busy; /* a job that waits for the GPU spins; else it sleeps */
    /* another policy object for the GPU ("gcaps-driver"); NULL: the usual one */
    const char *policy_name;
    const char *const *policy_options;
};

/* What one run varies. */
struct ws_rtsim_scenario {
    const int64_t *offsets; /* [n_tasks]; NULL: the tasks' own */
    int64_t horizon;        /* when it ends */
    int exec_permille;      /* every part takes a random share of its time, from this to 1000 */
    int slack_permille;     /* releases come up to this share of the period late (sporadic) */
    uint64_t seed;
};

struct ws_rtsim_task_result {
    uint64_t n_jobs, n_missed; /* finished, or unfinished past the deadline */
    int64_t worst;             /* longest response; of an unfinished one: so far */
    int64_t worst_release;
    int64_t sum; /* of the responses of finished ones */
    uint64_t n_finished;
};
struct ws_rtsim_result {
    /* [n_tasks], borrowed from the simulator until its next run */
    struct ws_rtsim_task_result *tasks;
    const int64_t *core_busy; /* [n_cores] spinning included */
    int64_t gpu_busy, gpu_switching, gpu_updating, copying;
    int64_t end;
    uint64_t n_jobs, n_events, n_decisions;
};

enum ws_rtsim_span {
    WS_RTSIM_SPAN_CPU,
    WS_RTSIM_SPAN_SPIN,
    WS_RTSIM_SPAN_UPDATE,
    WS_RTSIM_SPAN_COPY,
    WS_RTSIM_SPAN_GPU,
    WS_RTSIM_SPAN_SWITCH
};
/* What happened, for traces and tests. Any of the functions may be NULL. */
struct ws_rtsim_observer {
    void *arg;
    /* Task @task had core @core (GPU spans: -1) from @start to @end. Updates by the daemon
     * itself have core -1. */
    void (*span)(void *arg, enum ws_rtsim_span what, int core, int task, int64_t start,
                 int64_t end);
    /* A job is finished. */
    void (*job)(void *arg, int task, int64_t release, int64_t end);
    /* What the GPU was given now: @listed[i] for each task. */
    void (*list)(void *arg, int64_t now, const bool *listed);
    /* Something was decided, and why. */
    void (*why)(void *arg, int64_t now, const char *decision, const char *why);
    /* A request of @task (part 0 kernel, 1 copy in, 2 copy out) of segment @segment came, began,
     * was done. */
    void (*request)(void *arg, int task, int segment, int part, int64_t come, int64_t start,
                    int64_t end);
};

struct ws_rtsim;
/**
 * ws_rtsim_new() - a simulator of @set
 * @set: borrowed until ws_rtsim_free(); checked: -EINVAL where something is out of range
 * (ws_rtsim_check() says what)
 */
WS_MUST_CHECK int ws_rtsim_new(struct ws_rtsim **ret, const struct ws_rtsim_set *set,
                               const struct ws_rtsim_config *config);
struct ws_rtsim *ws_rtsim_free(struct ws_rtsim *rt);
/* Runs once. Same set, config and scenario: same result. @observer may be NULL. Return: 0 or
 * negative. */
WS_MUST_CHECK int ws_rtsim_run(struct ws_rtsim *rt, const struct ws_rtsim_scenario *scenario,
                               const struct ws_rtsim_observer *observer,
                               struct ws_rtsim_result *ret);
/* What is wrong with @set: NULL, or a text ("tasks[3]: core 7, but there are 4 cores") in @buf. */
const char *ws_rtsim_check(const struct ws_rtsim_set *set, char *buf, size_t bytes);

const char *ws_rtsim_policy_name(enum ws_rtsim_policy p); /* "fmlp+" */
/* By name; -1: there is none. */
int ws_rtsim_policy_find(const char *name);
const char *ws_rtsim_hold_name(enum ws_rtsim_hold h); /* "work", "command", "calls" */

#endif

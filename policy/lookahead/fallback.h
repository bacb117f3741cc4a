/* SPDX-License-Identifier: Apache-2.0 */
/* policy/lookahead/fallback.h - a plan that meets all deadlines, and to which a policy can always
 * return.
 *
 * The plan divides the SMs and slots of each GPU into homes. Each task has one home, on which its
 * jobs run one at a time, without preemption, by earliest deadline. ws_fallback_prepare() looks for
 * such a plan with which no job misses its deadline, whatever the releases are: two of a task are a
 * period less its jitter apart, or more, and jobs take their longest times, or less.
 *
 * A policy that starts jobs elsewhere stays safe if the plan could still be followed afterwards:
 * for each home and each deadline d, what is released there and due by d, and what may yet be
 * released and due by d, fits between the time from which the home is free and d. What remains is
 * the slack of the home. A policy that asks ws_fallback_allows() before each start, and makes the
 * starts of ws_fallback_next() in time, never misses a deadline. doc/policy-wattshare.md has the
 * argument.
 *
 * Units: as policy.h. Threads: one at a time for each object. Only for files of policy/. */
#ifndef WS_POLICY_FALLBACK_H
#define WS_POLICY_FALLBACK_H

#include "policy/policy.h"

struct ws_fallback_home {
    int gpu, n_sm;
    int first, n_tasks; /* into order */
    double load;        /* share of the time that its tasks take at most */
    uint64_t job_id;    /* of the job that runs there, if taken */
    bool taken;
    bool blocked;   /* a job runs on the GPU that is on no home */
    double free_at; /* from when on it can be used */
};
struct ws_fallback_task {
    int home, n_sm;
    double length;     /* there */
    double separation; /* of releases, at least; INFINITY: it has no deadline */
    double deadline;   /* INFINITY: none */
    double earliest;   /* next release */
    double next;       /* while slack is computed: the next deadline */
};
struct ws_fallback_job {
    double deadline;
    int task, job;
};
struct ws_fallback {
    const struct ws_policy_system *sys;
    struct ws_fallback_home *homes;
    struct ws_fallback_task *tasks; /* [n_tasks] */
    int *order;                     /* [n_tasks]: by home */
    struct ws_fallback_job *ready;  /* by earliest deadline */
    int n_homes, n_ready;
    size_t cap_homes, cap_ready;
    double now;
    bool holds; /* there is a plan */
    uint64_t n_steps;
};

/* For @s, which is borrowed: looks for a plan; f->holds says whether there is one. All is zero
 * before the first call. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_fallback_prepare(struct ws_fallback *f, const struct ws_policy_system *s);
void ws_fallback_deinit(struct ws_fallback *f);

/* The rest is for plans that hold. */

/* What is the case now. @last: [n_tasks], when the last release of each was; -INFINITY: not known.
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_fallback_load(struct ws_fallback *f, const struct ws_policy_snapshot *snap,
                                   const double *last);
/* Whether the plan can be followed after job @job was started on @n_sm SMs of @gpu, until @end. */
bool ws_fallback_allows(struct ws_fallback *f, int job, int gpu, int n_sm, double end);
/* Notes that it was started. */
void ws_fallback_started(struct ws_fallback *f, const struct ws_policy_snapshot *snap, int job,
                         int gpu, int n_sm, double end);
/* The next start of the plan on a home that is free: its ready job with the earliest deadline, as
 * an index into the snapshot's jobs, on *@ret_n_sm SMs of *@ret_gpu. *@ret_by: when it must be
 * made at the latest; INFINITY: never, for jobs without deadlines. -1: the home is not free, or no
 * job of it is ready. */
int ws_fallback_next(struct ws_fallback *f, int home, int *ret_gpu, int *ret_n_sm, double *ret_by);

#endif

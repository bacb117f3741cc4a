// SPDX-License-Identifier: Apache-2.0
/* STGM (RTCSA 2019): spatio-temporal GPU management. Each task has a fixed set of SMs; kernels on
 * disjoint sets run side by side, kernels that share an SM strictly in order of arrival; copies go
 * one at a time for each copy engine, in order of arrival.
 *
 * One pass over the requests in order of arrival keeps the union of the SMs of all earlier
 * requests, running or waiting; a kernel starts if its set does not meet that union. So nobody
 * overtakes an earlier request that shares an SM with it, also where that one waits itself (letting
 * it overtake would make the other's wait unbounded). The price are chains: a kernel may wait for
 * one with which it shares nothing. The paper's Lemma 2 does not count them; the safe form of the
 * analysis does, and where sharing is transitive (equal or disjoint sets) there are none.
 *
 * A job is one request (ws_policy_job.part says which: copy in, kernel, copy out), .seq its order
 * of receipt. The lemmas need at most one open request of a task, and that the client's thread runs
 * at the top CPU priority while its GPU segment is open. The simulator does that; the daemon leaves
 * CPU priorities to whoever starts the program. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "policy/move.h"
#include "policy/policy.h"

static int make_stgm(struct ws_policy **ret, const char *const *options, char *ret_error,
                     size_t error_bytes)
{
    int r = ws_policy_options_check(NULL, options, ret_error, error_bytes);
    if (r)
        return r;
    *ret = ws_alloc(1); /* nothing to remember */
    return *ret ? 0 : -ENOMEM;
}

static void free_stgm(struct ws_policy *p)
{
    free(p);
}

static void all_sms(struct ws_sm_set *ret, int n)
{
    for (int sm = 0; sm < n && sm < WS_SM_MAX; sm++)
        ws_sm_set_add(ret, (unsigned)sm);
}

/* A task with no set of its own uses the whole GPU. */
static void sms_of(const struct ws_policy_snapshot *s, const struct ws_policy_job *j, int gpu,
                   struct ws_sm_set *ret)
{
    *ret = s->system->tasks[j->task].sms;
    if (!ret->n)
        all_sms(ret, s->system->gpus[gpu].sm_limit);
}

static bool is_kernel(const struct ws_policy_job *j)
{
    return j->part == WS_PART_KERNEL;
}

/* A task has one GPU for good, as it has one SM set, except that it stays where its data is if that
 * GPU is equivalent and no busier. */
static int gpu_of(const struct ws_policy_snapshot *s, int job)
{
    int g = s->jobs[job].gpu, n = s->system->n_gpus;
    return g >= 0 && g < n ? g : ws_policy_stay(s, &s->jobs[job], s->jobs[job].task % n);
}

static int start(const struct ws_policy_snapshot *s, int job, int gpu, const struct ws_sm_set *sms,
                 struct ws_policy_decisions *ret)
{
    struct ws_policy_decision *d = ws_policy_decide(
        ret, s->jobs[job].state == WS_JOB_PREEMPTED ? WS_DECIDE_RESUME : WS_DECIDE_START, job, gpu);
    if (!d)
        return -ENOMEM;
    d->at = s->now;
    int id = s->system->tasks[s->jobs[job].task].id;
    if (is_kernel(&s->jobs[job])) {
        d->sms = *sms;
        d->n_sm = (int)sms->n;
        ws_policy_explain(s, d, "kernel of task %d: no earlier request uses any of its %d SMs", id,
                          d->n_sm);
    } else {
        ws_policy_explain(s, d, "copy of task %d: first in line and an engine is free", id);
    }
    return 0;
}

static int wait(const struct ws_policy_snapshot *s, int job, int gpu, int behind,
                struct ws_policy_decisions *ret)
{
    if (!s->explain)
        return 0;
    struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_WAIT, job, gpu);
    if (!d)
        return -ENOMEM;
    const struct ws_policy_task *tasks = s->system->tasks;
    int id = tasks[s->jobs[job].task].id, before = tasks[s->jobs[behind].task].id;
    if (!is_kernel(&s->jobs[job]))
        ws_policy_explain(s, d, "copy of task %d waits behind that of {task %d}", id, before);
    else
        ws_policy_explain(s, d,
                          "kernel of task %d shares SMs with {task %d}, which was first and %s", id,
                          before, s->jobs[behind].state == WS_JOB_RUNNING ? "runs" : "waits too");
    return 0;
}

/* The first kernel before @job that shares an SM with it. */
static int sharer(const struct ws_policy_snapshot *s, int job, int gpu, const struct ws_sm_set *sms)
{
    for (int k = 0; k < job; k++) {
        struct ws_sm_set other;
        if (!is_kernel(&s->jobs[k]) || gpu_of(s, k) != gpu)
            continue;
        sms_of(s, &s->jobs[k], gpu, &other);
        if (ws_sm_set_meet(sms, &other))
            return k;
    }
    return job;
}

static int decide_gpu(const struct ws_policy_snapshot *s, int gpu, struct ws_policy_decisions *ret)
{
    struct ws_sm_set taken = {0};
    int n_copies = 0, last_copy = 0, r = 0;
    int n_engines = WS_MAX(s->system->gpus[gpu].n_copy_engines, 1);
    for (int j = 0; j < s->n_jobs && !r; j++) {
        const struct ws_policy_job *job = &s->jobs[j];
        bool runs = job->state == WS_JOB_RUNNING;
        if (gpu_of(s, j) != gpu)
            continue;
        if (!is_kernel(job)) {
            struct ws_sm_set none = {0};
            if (!runs && n_copies < n_engines)
                r = start(s, j, gpu, &none, ret);
            else if (!runs)
                r = wait(s, j, gpu, last_copy, ret);
            last_copy = j;
            n_copies++;
            continue;
        }
        struct ws_sm_set sms;
        sms_of(s, job, gpu, &sms);
        if (!runs && !ws_sm_set_meet(&sms, &taken))
            r = start(s, j, gpu, &sms, ret);
        else if (!runs && s->explain)
            r = wait(s, j, gpu, sharer(s, j, gpu, &sms), ret);
        ws_sm_set_join(&taken, &sms);
    }
    return r;
}

static int decide(struct ws_policy *p, const struct ws_policy_snapshot *s,
                  const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    (void)p, (void)event;
    int r = 0;
    for (int g = 0; g < s->system->n_gpus && !r; g++)
        r = decide_gpu(s, g, ret);
    return r;
}

const struct ws_policy_ops ws_policy_stgm = {
    .name = "stgm",
    .summary =
        "fixed SM sets; disjoint kernels side by side, sharing ones in order (STGM, RTCSA 2019)",
    .make = make_stgm,
    .free = free_stgm,
    .decide = decide,
    .parts = true,
};

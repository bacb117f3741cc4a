// SPDX-License-Identifier: Apache-2.0
/* fifo: one job at a time has a whole GPU and keeps it until it is done. With order=arrival (the
 * default), the job that arrived first is next, as in FMLP+ with one GPU as the resource. With
 * order=priority, the job of the highest priority is next, and of equal priorities the one that
 * arrived first, as in MPCP. Of equivalent GPUs that are free, a job gets the one that is nearest
 * to its data.
 *
 * This is the simplest policy. Copy it to begin another one. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "policy/move.h"
#include "policy/policy.h"

struct fifo {
    bool by_priority;
};

static const struct ws_policy_option options_fifo[] = {
    {"order", "arrival", "who is next: arrival, or priority (of equals the earliest)"},
    {NULL, NULL, NULL}};

static int make_fifo(struct ws_policy **ret, const char *const *options, char *ret_error,
                     size_t error_bytes)
{
    int r = ws_policy_options_check(options_fifo, options, ret_error, error_bytes);
    if (r)
        return r;
    const char *order = ws_policy_option_text(options_fifo, options, "order");
    if (strcmp(order, "arrival") && strcmp(order, "priority")) {
        snprintf(ret_error, error_bytes, "order=%s: arrival or priority is wanted", order);
        return WS_POLICY_E_OPTION;
    }
    struct fifo *p = ws_alloc(sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->by_priority = !strcmp(order, "priority");
    *ret = (struct ws_policy *)p;
    return 0;
}

static void free_fifo(struct ws_policy *policy)
{
    struct fifo *p = (struct fifo *)policy;
    free(p);
}

static int priority_of(const struct ws_policy_snapshot *s, int job)
{
    const struct ws_policy_task *t = &s->system->tasks[s->jobs[job].task];
    return t->best_effort ? 0 : t->priority;
}

/* The waiting job that is next on @gpu (-1: on any), leaving out those that @ret has started since
 * index @begin. */
static int next(const struct fifo *p, const struct ws_policy_snapshot *s, int gpu,
                const struct ws_policy_decisions *ret, size_t begin)
{
    int best = -1;
    for (int j = 0; j < s->n_jobs; j++) {
        bool taken = s->jobs[j].state == WS_JOB_RUNNING ||
                     (gpu >= 0 && !ws_policy_can_run(&s->jobs[j], gpu));
        for (size_t i = begin; i < ret->n && !taken; i++)
            taken = ret->v[i].job == j;
        if (taken)
            continue;
        if (best < 0 || (p->by_priority && priority_of(s, j) > priority_of(s, best)))
            best = j;
    }
    return best;
}

/* Whether no job runs on @gpu, and @ret has started none there since index @begin. */
static bool is_free(const struct ws_policy_snapshot *s, int gpu,
                    const struct ws_policy_decisions *ret, size_t begin)
{
    for (int j = 0; j < s->n_jobs; j++)
        if (s->jobs[j].state == WS_JOB_RUNNING && s->jobs[j].gpu == gpu)
            return false;
    for (size_t i = begin; i < ret->n; i++)
        if (ret->v[i].gpu == gpu)
            return false;
    return true;
}

static int decide(struct ws_policy *policy, const struct ws_policy_snapshot *s,
                  const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    struct fifo *p = (struct fifo *)policy;
    (void)event;
    size_t begin = ret->n;
    for (int first = 0; first < s->system->n_gpus;) {
        int job = is_free(s, first, ret, begin) ? next(p, s, first, ret, begin) : -1, g = first;
        if (job < 0) {
            first++;
            continue;
        }
        for (int k = first + 1; k < s->system->n_gpus; k++)
            if (ws_policy_nearer(&s->jobs[job], k, g) && ws_policy_alike(s->system, k, first) &&
                is_free(s, k, ret, begin))
                g = k;
        struct ws_policy_decision *d = ws_policy_decide(
            ret, s->jobs[job].state == WS_JOB_PREEMPTED ? WS_DECIDE_RESUME : WS_DECIDE_START, job,
            g);
        if (!d)
            return -ENOMEM;
        d->at = s->now;
        d->n_sm = s->system->gpus[g].sm_limit;
        for (int sm = 0; sm < d->n_sm && sm < WS_SM_MAX; sm++)
            ws_sm_set_add(&d->sms, (unsigned)sm);
        ws_policy_explain(s, d, "task %d: GPU %d is free and it %s of those that wait",
                          s->system->tasks[s->jobs[job].task].id, g,
                          p->by_priority ? "has the highest priority" : "came first");
    }
    if (s->explain)
        for (int j; (j = next(p, s, -1, ret, begin)) >= 0;) {
            struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_WAIT, j, -1);
            if (!d)
                return -ENOMEM;
            ws_policy_explain(s, d, "task %d waits: every GPU that it can use has a job",
                              s->system->tasks[s->jobs[j].task].id);
        }
    return 0;
}

const struct ws_policy_ops ws_policy_fifo = {
    .name = "fifo",
    .summary = "one job at a time on a whole GPU, in order of arrival or of priority",
    .options = options_fifo,
    .make = make_fifo,
    .free = free_fifo,
    .decide = decide,
};

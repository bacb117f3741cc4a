// SPDX-License-Identifier: Apache-2.0
/* rr: time-sliced round robin, as GPUs do between contexts when nothing schedules them.
 *
 * slice=0 leaves the slicing to the GPU: every job is started at once, and the GPU cycles through
 * them with slices of its own. This is what the default driver does, and what the analyses tsg_rr_*
 * bound. With slice=S > 0, the policy slices: one job of each GPU runs for S, is preempted, and
 * goes to the end of the line. A job that is alone keeps running. The end of a turn is stored with
 * the turn, so that a timer which fires early for another reason does not shorten a slice. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "policy/move.h"
#include "policy/policy.h"

struct rr_turn {
    bool any;
    uint64_t job; /* who has the GPU */
    double until;
};
struct rr {
    double slice;
    struct rr_turn *turns; /* of each GPU */
    int n_turns;
    /* Who had a turn last stands last: id → number of the last turn. Grows with the jobs open at
     * once. */
    struct rr_seen {
        uint64_t job, turn;
    } * seen;
    size_t n_seen, cap_seen;
    uint64_t turn;
};

static const struct ws_policy_option options_rr[] = {
    {"slice", "1", "length of a turn in ms; 0: the GPU slices by itself"}, {NULL, NULL, NULL}};

static int make_rr(struct ws_policy **ret, const char *const *options, char *ret_error,
                   size_t error_bytes)
{
    double slice;
    int r = ws_policy_options_check(options_rr, options, ret_error, error_bytes);
    if (!r)
        r = ws_policy_option_number(options_rr, options, "slice", 0, 1e9, &slice, ret_error,
                                    error_bytes);
    if (r)
        return r;
    struct rr *p = ws_alloc(sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->slice = slice;
    *ret = (struct ws_policy *)p;
    return 0;
}

static void free_rr(struct ws_policy *policy)
{
    struct rr *p = (struct rr *)policy;
    if (!p)
        return;
    free(p->turns);
    free(p->seen);
    free(p);
}

static int prepare_rr(struct ws_policy *policy, const struct ws_policy_system *system,
                      char *ret_error, size_t error_bytes)
{
    struct rr *p = (struct rr *)policy;
    (void)ret_error, (void)error_bytes;
    free(p->turns);
    p->turns = ws_alloc_array(system->n_gpus > 0 ? (size_t)system->n_gpus : 1, sizeof(*p->turns));
    p->n_turns = p->turns ? system->n_gpus : 0;
    return p->turns ? 0 : -ENOMEM;
}

static struct rr_seen *seen_of(struct rr *p, uint64_t job)
{
    for (size_t i = 0; i < p->n_seen; i++)
        if (p->seen[i].job == job)
            return &p->seen[i];
    return NULL;
}

/* Forgets jobs that are gone, and makes room for all that are there. */
static int tidy(struct rr *p, const struct ws_policy_snapshot *s)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n_seen; i++)
        for (int j = 0; j < s->n_jobs; j++)
            if (s->jobs[j].id == p->seen[i].job) {
                p->seen[n++] = p->seen[i];
                break;
            }
    p->n_seen = n;
    void *v = p->seen;
    int r = ws_grow(&v, &p->cap_seen, (size_t)s->n_jobs, sizeof(*p->seen));
    p->seen = r < 0 ? p->seen : v;
    return r;
}

static int put_on(const struct ws_policy_snapshot *s, int job, int gpu,
                  struct ws_policy_decisions *ret)
{
    struct ws_policy_decision *d = ws_policy_decide(
        ret, s->jobs[job].state == WS_JOB_PREEMPTED ? WS_DECIDE_RESUME : WS_DECIDE_START, job, gpu);
    if (!d)
        return -ENOMEM;
    d->at = s->now;
    d->n_sm = s->system->gpus[gpu].sm_limit;
    for (int sm = 0; sm < d->n_sm && sm < WS_SM_MAX; sm++)
        ws_sm_set_add(&d->sms, (unsigned)sm);
    return 0;
}

/* The GPU of a job. New jobs are dealt out in turn, except that a job stays where its data is if
 * that GPU is equivalent and no busier. */
static int gpu_of(const struct ws_policy_snapshot *s, int job)
{
    int g = s->jobs[job].gpu, n = s->system->n_gpus;
    if (g >= 0 && g < n)
        return g;
    return ws_policy_stay(s, &s->jobs[job], (int)(s->jobs[job].seq % (uint64_t)n));
}

static int decide_gpu(struct rr *p, const struct ws_policy_snapshot *s, int gpu,
                      struct ws_policy_decisions *ret)
{
    struct rr_turn *t = &p->turns[gpu];
    int current = -1, next = -1;
    uint64_t next_turn = UINT64_MAX;
    for (int j = 0; j < s->n_jobs; j++) {
        if (gpu_of(s, j) != gpu)
            continue;
        if (s->jobs[j].state == WS_JOB_RUNNING) {
            current = j;
            continue;
        }
        struct rr_seen *seen = seen_of(p, s->jobs[j].id);
        uint64_t turn = seen ? seen->turn : 0; /* new ones first, of those the earliest */
        if (turn < next_turn) {
            next = j;
            next_turn = turn;
        }
    }
    bool same = t->any && current >= 0 && t->job == s->jobs[current].id;
    if (current >= 0 && same && (next < 0 || s->now < t->until)) {
        if (next < 0)
            t->until = s->now; /* alone: gives way as soon as another comes */
        return 0;
    }
    t->any = next >= 0;
    if (next < 0)
        return 0;
    struct ws_policy_decision *d;
    int r;
    if (current >= 0) {
        if (!(d = ws_policy_decide(ret, WS_DECIDE_PREEMPT, current, gpu)))
            return -ENOMEM;
        d->at = s->now;
        ws_policy_explain(s, d, "task %d: its turn is over",
                          s->system->tasks[s->jobs[current].task].id);
    }
    if ((r = put_on(s, next, gpu, ret)))
        return r;
    ws_policy_explain(s, &ret->v[ret->n - 1], "task %d: its turn of %g ms begins",
                      s->system->tasks[s->jobs[next].task].id, p->slice);
    struct rr_seen *seen = seen_of(p, s->jobs[next].id);
    if (!seen) {
        seen = &p->seen[p->n_seen++];
        seen->job = s->jobs[next].id;
    }
    seen->turn = ++p->turn;
    *t = (struct rr_turn){.any = true, .job = s->jobs[next].id, .until = s->now + p->slice};
    if (!(d = ws_policy_decide(ret, WS_DECIDE_TIMER, -1, gpu)))
        return -ENOMEM;
    d->at = t->until;
    return 0;
}

static int decide(struct ws_policy *policy, const struct ws_policy_snapshot *s,
                  const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    struct rr *p = (struct rr *)policy;
    (void)event;
    int r = 0;
    if (p->slice > 0) {
        r = tidy(p, s);
        for (int g = 0; g < p->n_turns && g < s->system->n_gpus && !r; g++)
            r = decide_gpu(p, s, g, ret);
        return r;
    }
    for (int j = 0; j < s->n_jobs && !r; j++)
        if (s->jobs[j].state != WS_JOB_RUNNING) {
            r = put_on(s, j, gpu_of(s, j), ret);
            if (!r)
                ws_policy_explain(s, &ret->v[ret->n - 1], "task %d: the GPU slices by itself",
                                  s->system->tasks[s->jobs[j].task].id);
        }
    return r;
}

const struct ws_policy_ops ws_policy_rr = {
    .name = "rr",
    .summary = "time-sliced round robin, as GPUs do between contexts",
    .options = options_rr,
    .make = make_rr,
    .free = free_rr,
    .prepare = prepare_rr,
    .decide = decide,
    .once = true,
};

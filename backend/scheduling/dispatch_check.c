// SPDX-License-Identifier: Apache-2.0
/* What a policy may ask for. A policy is code that anybody may add, and its snapshot is made of
 * what programs do: so each decision is looked at before it is carried out, and one that makes
 * no sense is refused, reported and counted; the job waits on.
 *
 * Two jobs may have SMs in common only where both have the whole GPU (time-sliced best effort; a
 * preempted one whose last blocks still run): a policy that deals parts of a GPU out must deal
 * disjoint ones. */
#include <math.h>

#include "backend/scheduling/dispatch_private.h"

static bool within(const struct ws_sm_set *s, int n_sm)
{
    unsigned n = 0;
    for (int w = 0; w < WS_SM_MAX / 64; w++) {
        int left = n_sm - 64 * w;
        uint64_t may = left >= 64 ? UINT64_MAX : left <= 0 ? 0 : (UINT64_C(1) << left) - 1;
        if (s->bits[w] & ~may)
            return false;
        n += (unsigned)__builtin_popcountll(s->bits[w]);
    }
    return n == s->n;
}

static const char *place(const struct ws_policy_snapshot *snap, const struct ws_policy_decision *p,
                         struct ws_sm_set *taken)
{
    const struct ws_policy_system *sys = snap->system;
    if (p->gpu < 0 || p->gpu >= sys->n_gpus)
        return "there is no such GPU";
    int limit = sys->gpus[p->gpu].sm_limit;
    if (p->n_sm < 1 || p->n_sm > limit)
        return "more SMs than the GPU may give out, or none";
    if (!p->sms.n)
        return NULL;
    if (!within(&p->sms, sys->types[sys->gpus[p->gpu].type].n_sm))
        return "its SM set is not of this GPU, or is counted wrong";
    if ((int)p->sms.n > limit)
        return "its SM set is larger than the GPU may give out";
    if (p->kind == WS_DECIDE_FUSE) /* the members of one launch have the same */
        return NULL;
    bool whole = (int)p->sms.n == limit, all_taken = (int)taken[p->gpu].n == limit;
    if (ws_sm_set_meet(&p->sms, &taken[p->gpu]) && !(whole && all_taken))
        return "its SMs are another one's";
    ws_sm_set_join(&taken[p->gpu], &p->sms);
    return NULL;
}

static const char *of_job(const struct ws_policy_snapshot *snap, const struct ws_policy_decision *p,
                          struct ws_sm_set *taken)
{
    if (p->job < 0 || p->job >= snap->n_jobs)
        return "there is no such job";
    enum ws_job_state state = snap->jobs[p->job].state;
    switch (p->kind) {
    case WS_DECIDE_START:
    case WS_DECIDE_FUSE:
        return state == WS_JOB_WAITING ? place(snap, p, taken) : "the job has begun already";
    case WS_DECIDE_RESUME:
        return state == WS_JOB_PREEMPTED ? place(snap, p, taken) : "the job was not preempted";
    case WS_DECIDE_PREEMPT:
        return state == WS_JOB_RUNNING ? NULL : "the job does not run";
    case WS_DECIDE_RUN_CPU:
        return state != WS_JOB_WAITING ? "the job has begun already"
               : snap->system->tasks[snap->jobs[p->job].task].cpu_ms > 0
                   ? NULL
                   : "the job can't run on the host's processor";
    case WS_DECIDE_DROP:
        return state == WS_JOB_WAITING ? NULL : "the job has begun already";
    default:
        return NULL;
    }
}

const char *ws_dispatch_nonsense(const struct ws_policy_snapshot *snap,
                                 const struct ws_policy_decision *p, struct ws_sm_set *taken)
{
    switch (p->kind) {
    case WS_DECIDE_TIMER:
        return isnan(p->at) ? "its time is no number" : NULL;
    case WS_DECIDE_CLOCKS:
        if (p->gpu < 0 || p->gpu >= snap->system->n_gpus)
            return "there is no such GPU";
        return p->volt > 0 && p->f_core > 0 && p->f_mem > 0 ? NULL : "clocks are above 0";
    case WS_DECIDE_POWER:
        return p->server >= 0 ? NULL : "there is no such server";
    default:
        if ((unsigned)p->kind >= _WS_DECISION_KIND_N)
            return "there is no such decision";
        return isnan(p->at) ? "its time is no number" : of_job(snap, p, taken);
    }
}

// SPDX-License-Identifier: Apache-2.0
/* GCAPS (ECRTS 2024): preemptive priorities on the GPU, by means of its run list.
 *
 * A job of the snapshot is an open GPU segment. The rule is written as a function of the open
 * segments, not as steps on two sets:
 *
 *     if a real-time one is open: the run list is the one of highest GPU priority, of equals the
 *                                 one opened first;
 *     else:                       all best-effort ones, which the hardware time-slices.
 *
 * This equals the paper's Algorithm 1 wherever that is well behaved, and has none of its three
 * slips (policy/runlist.h keeps Algorithm 1 and the authors' driver patch as they are, for
 * comparison). As nothing is remembered, a lost event heals with the next one.
 *
 * Several GPUs are our extension; the paper has one. Each GPU has a run list of its own. A segment
 * stays on the GPU to which it was first given. A new segment goes to the GPU where the fewest
 * segments are before it; of equal ones to the one with the quickest move, then to the lowest
 * number. If it is known where the program's data is, times replace numbers: the predicted
 * remaining time of the segments before it, plus the time of the move.
 *
 * What the response-time analysis assumes: a task is open exactly while it has work for the GPU,
 * from its first command to the completion of its last (ARRIVAL and COMPLETION events say so).
 * Whoever opens it earlier or closes it later - at calls in the program, as published - gives away
 * the bound: doc/rtsim.md. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "policy/move.h"
#include "policy/policy.h"
#include "policy/runlist.h"

struct gcaps {
    enum ws_runlist_form form; /* of the two that follow events */
    struct ws_runlist list;
    int *placed; /* GPU of each job of the snapshot: scratch */
    size_t cap_placed;
};

/* The priority of a task's work on the GPU: the task's own unless it has one for the GPU. Best
 * effort: 0. */
static int gpu_priority(const struct ws_policy_task *t)
{
    if (t->best_effort || t->priority <= 0)
        return 0;
    return t->gpu_priority > 0 ? t->gpu_priority : t->priority;
}

static int priority_of(const struct ws_policy_snapshot *s, int job)
{
    return gpu_priority(&s->system->tasks[s->jobs[job].task]);
}

static struct ws_policy_decision *decide_all_sms(const struct ws_policy_snapshot *s,
                                                 struct ws_policy_decisions *ret,
                                                 enum ws_decision_kind kind, int job, int gpu)
{
    struct ws_policy_decision *d = ws_policy_decide(ret, kind, job, gpu);
    if (d) {
        d->at = s->now;
        d->n_sm = s->system->gpus[gpu].sm_limit;
        for (int sm = 0; sm < d->n_sm && sm < WS_SM_MAX; sm++)
            ws_sm_set_add(&d->sms, (unsigned)sm);
    }
    return d;
}

/* The number of a task as people know it. */
static int id_of(const struct ws_policy_snapshot *s, int job)
{
    return s->system->tasks[s->jobs[job].task].id;
}

/* ---- gcaps ---- */

/* Whether @a goes before @b. */
static bool before(const struct ws_policy_snapshot *s, int a, int b)
{
    int pa = priority_of(s, a), pb = priority_of(s, b);
    return pa != pb ? pa > pb : s->jobs[a].seq < s->jobs[b].seq;
}

/* What @job still needs on all of @gpu, as predicted. 0: not known. */
static double left_ms(const struct ws_policy_snapshot *s, int job, int gpu)
{
    const struct ws_policy_job *j = &s->jobs[job];
    const struct ws_policy_gpu *g = &s->system->gpus[gpu];
    const struct ws_policy_cost *costs = s->system->tasks[j->task].cost, *c = NULL;
    for (int i = 0; j->state == WS_JOB_RUNNING && i < s->gpus[gpu].n_slots; i++)
        if (s->gpus[gpu].slots[i].job == job)
            return fmax(s->gpus[gpu].slots[i].end - s->now, 0);
    if (costs)
        c = &costs[g->type];
    return c && c->n_sm > 0 ? (1 - j->done) * c->wcet[WS_MIN(c->n_sm, g->sm_limit) - 1] : 0;
}

struct gcaps_wait { /* of a new segment, for a GPU */
    double ms;
    int n;
};

static struct gcaps_wait wait_for(const struct gcaps *p, const struct ws_policy_snapshot *s,
                                  int job, int gpu)
{
    bool timed = s->jobs[job].moves;
    struct gcaps_wait w = {.ms = ws_policy_move(&s->jobs[job], gpu).ms};
    for (int k = 0; k < s->n_jobs; k++)
        if (k != job && p->placed[k] == gpu && before(s, k, job)) {
            w.n++;
            w.ms += timed ? left_ms(s, k, gpu) : 0;
        }
    return w;
}

/* Gives every job a GPU. */
static int place(struct gcaps *p, const struct ws_policy_snapshot *s)
{
    void *v = p->placed;
    int r = ws_grow(&v, &p->cap_placed, (size_t)s->n_jobs, sizeof(*p->placed));
    if (r < 0)
        return r;
    p->placed = v;
    int n_gpus = s->system->n_gpus;
    for (int j = 0; j < s->n_jobs; j++)
        p->placed[j] = n_gpus == 1 ? 0 : s->jobs[j].gpu;
    for (int j = 0; j < s->n_jobs && n_gpus > 1; j++) {
        if (p->placed[j] >= 0 && p->placed[j] < n_gpus)
            continue;
        int best = 0;
        struct gcaps_wait least = wait_for(p, s, j, 0);
        for (int g = 1; g < n_gpus; g++) {
            struct gcaps_wait w = wait_for(p, s, j, g);
            if (w.ms != least.ms ? w.ms < least.ms
                : w.n != least.n ? w.n < least.n
                                 : ws_policy_nearer(&s->jobs[j], g, best)) {
                best = g;
                least = w;
            }
        }
        p->placed[j] = best;
    }
    return 0;
}

static int decide_gpu(const struct gcaps *p, const struct ws_policy_snapshot *s, int gpu,
                      struct ws_policy_decisions *ret)
{
    int first = -1; /* the real-time one that has the list */
    for (int j = 0; j < s->n_jobs; j++)
        if (p->placed[j] == gpu && priority_of(s, j) > 0 && (first < 0 || before(s, j, first)))
            first = j;
    /* Off before on: the hardware list never holds two real-time ones. */
    for (int j = 0; j < s->n_jobs; j++) {
        if (p->placed[j] != gpu || first < 0 || j == first || s->jobs[j].state != WS_JOB_RUNNING)
            continue;
        struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_PREEMPT, j, gpu);
        if (!d)
            return -ENOMEM;
        d->at = s->now;
        ws_policy_explain(s, d, "task %d (priority %d) leaves the run list: {task %d (%d)} is open",
                          id_of(s, j), priority_of(s, j), id_of(s, first), priority_of(s, first));
    }
    for (int j = 0; j < s->n_jobs; j++) {
        if (p->placed[j] != gpu || s->jobs[j].state == WS_JOB_RUNNING)
            continue;
        if (first < 0 || j == first) {
            enum ws_decision_kind kind =
                s->jobs[j].state == WS_JOB_PREEMPTED ? WS_DECIDE_RESUME : WS_DECIDE_START;
            struct ws_policy_decision *d = decide_all_sms(s, ret, kind, j, gpu);
            if (!d)
                return -ENOMEM;
            if (first < 0)
                ws_policy_explain(s, d, "task %d: no real-time work is open, best effort shares",
                                  id_of(s, j));
            else
                ws_policy_explain(s, d, "task %d has the highest priority (%d) of the open work",
                                  id_of(s, j), priority_of(s, j));
        } else if (s->explain) {
            struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_WAIT, j, gpu);
            if (!d)
                return -ENOMEM;
            ws_policy_explain(s, d, "task %d (priority %d) waits: {task %d (%d)} %s", id_of(s, j),
                              priority_of(s, j), id_of(s, first), priority_of(s, first),
                              priority_of(s, first) > priority_of(s, j) ? "is higher"
                                                                        : "was first");
        }
    }
    return 0;
}

static int decide(struct ws_policy *policy, const struct ws_policy_snapshot *s,
                  const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    struct gcaps *p = (struct gcaps *)policy;
    (void)event;
    int r = place(p, s);
    for (int g = 0; g < s->system->n_gpus && !r; g++)
        r = decide_gpu(p, s, g, ret);
    return r;
}

/* ---- the printed forms: sets that follow begin and end ---- */
static int prepare_form(struct ws_policy *policy, const struct ws_policy_system *system,
                        char *ret_error, size_t error_bytes)
{
    struct gcaps *p = (struct gcaps *)policy;
    (void)ret_error, (void)error_bytes;
    ws_runlist_deinit(&p->list);
    int r = ws_runlist_init(&p->list, p->form, system->n_tasks);
    for (int i = 0; i < system->n_tasks && !r; i++)
        p->list.tasks[i].priority = gpu_priority(&system->tasks[i]);
    return r;
}

static int decide_form(struct ws_policy *policy, const struct ws_policy_snapshot *s,
                       const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    struct gcaps *p = (struct gcaps *)policy;
    if (event->kind == WS_EVENT_ARRIVAL && event->job >= 0)
        ws_runlist_begin(&p->list, s->jobs[event->job].task);
    else if (event->kind == WS_EVENT_COMPLETION && event->task >= 0)
        ws_runlist_end(&p->list, event->task);
    for (int on = 0; on < 2; on++)
        for (int j = 0; j < s->n_jobs; j++) {
            bool runs = s->jobs[j].state == WS_JOB_RUNNING;
            bool listed = p->list.tasks[s->jobs[j].task].running;
            if (runs == listed || listed != on)
                continue;
            struct ws_policy_decision *d =
                !on ? ws_policy_decide(ret, WS_DECIDE_PREEMPT, j, 0)
                    : decide_all_sms(s, ret,
                                     s->jobs[j].state == WS_JOB_PREEMPTED ? WS_DECIDE_RESUME
                                                                          : WS_DECIDE_START,
                                     j, 0);
            if (!d)
                return -ENOMEM;
            d->at = s->now;
            ws_policy_explain(s, d, "task %d: %s", id_of(s, j), ws_runlist_form_name(p->form));
        }
    return 0;
}

/* ---- objects ---- */
static int make(struct ws_policy **ret, enum ws_runlist_form form, const char *const *options,
                char *ret_error, size_t error_bytes)
{
    int r = ws_policy_options_check(NULL, options, ret_error, error_bytes);
    if (r)
        return r;
    struct gcaps *p = ws_alloc(sizeof(*p));
    if (!p)
        return -ENOMEM;
    p->form = form;
    *ret = (struct ws_policy *)p;
    return 0;
}

static int make_gcaps(struct ws_policy **ret, const char *const *options, char *ret_error,
                      size_t error_bytes)
{
    return make(ret, WS_RUNLIST_ALG1, options, ret_error, error_bytes);
}

static int make_alg1(struct ws_policy **ret, const char *const *options, char *ret_error,
                     size_t error_bytes)
{
    return make(ret, WS_RUNLIST_ALG1, options, ret_error, error_bytes);
}

static int make_driver(struct ws_policy **ret, const char *const *options, char *ret_error,
                       size_t error_bytes)
{
    return make(ret, WS_RUNLIST_DRIVER, options, ret_error, error_bytes);
}

static void free_gcaps(struct ws_policy *policy)
{
    struct gcaps *p = (struct gcaps *)policy;
    if (!p)
        return;
    ws_runlist_deinit(&p->list);
    free(p->placed);
    free(p);
}

const struct ws_policy_ops ws_policy_gcaps = {
    .name = "gcaps",
    .summary = "highest priority has the GPU, preempting; best effort shares (GCAPS, ECRTS 2024)",
    .make = make_gcaps,
    .free = free_gcaps,
    .decide = decide,
};

const struct ws_policy_ops ws_policy_gcaps_alg1 = {
    .name = "gcaps-alg1",
    .summary = "GCAPS by Algorithm 1 as printed, errors included (for comparison; one GPU)",
    .make = make_alg1,
    .free = free_gcaps,
    .prepare = prepare_form,
    .decide = decide_form,
    .once = true,
};

const struct ws_policy_ops ws_policy_gcaps_driver = {
    .name = "gcaps-driver",
    .summary = "GCAPS as the authors' driver patch does it (for comparison; one GPU)",
    .make = make_driver,
    .free = free_gcaps,
    .prepare = prepare_form,
    .decide = decide_form,
    .once = true,
};

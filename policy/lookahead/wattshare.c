// SPDX-License-Identifier: Apache-2.0
/* wattshare: our own policy. Each ready job goes where a greedy rule puts it, unless a simulation
 * of the next moments (rollout.h) shows that another place, or waiting, makes fewer jobs miss their
 * deadlines, or takes less energy and makes no more jobs miss. doc/policy-wattshare.md explains it.
 *
 * decide() takes ready jobs by earliest deadline. For each it rolls out the greedy place, and then
 * other numbers of SMs on each GPU, waiting for the next event, and holding the job until one of
 * the next releases or ends, or for good, if jobs would be late. Each alternative is rolled out
 * several times, with other bases for the jobs after it. The outcome with the fewest misses is
 * taken, and of those the one with the least energy. A job without a deadline waits only where a
 * deadline is at stake. A job that would be late everywhere waits until its deadline has passed,
 * and is then a job without a deadline. A job of unknown cost runs alone, on a GPU that is idle.
 *
 * Rollouts cost time. Each decision may evaluate so many places (option `budget`), and only a part
 * of them where nothing but energy is at stake. When that is spent, the best so far is taken; the
 * greedy place always has been found by then. The count, not the clock, ends the search, so that
 * the same snapshots give the same decisions.
 *
 * With the option `guarantee`, and tasks for which there is a plan that meets all deadlines
 * (fallback.h), only places are considered that leave room for the plan, and its starts are made
 * when they cannot wait any longer.
 *
 * With the option `dvfs`, voltage and clocks are chosen with the place: low ones where that takes
 * less energy and the job is in time, high ones where it would be late (rollout.h).
 *
 * What is to come: a task's next release is a period after the last one that was seen, or later by
 * the mean lateness of those before. Where they come irregularly, it is foreseen early in the time
 * in which it may come. One that is overdue may come at any moment; after another period it is not
 * expected any more.
 *
 * What jobs take: their predicted times, or more by the margin of their task, if its kernels have
 * taken longer than predicted (margin.c). */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/minmax.h"
#include "models/dvfs.h"
#include "policy/clocks.h"
#include "policy/lookahead/fallback.h"
#include "policy/policy.h"
#include "policy/lookahead/rollout.h"

enum {
    WAITING_TASKS = 16, /* with more, rollouts in which jobs wait take too long */
    HOLDS_MAX = 6,      /* releases until which holding a job is tried */
    VICTIMS_MAX = 4,    /* runs that are tried to be taken off for a job */
    STEP = 2            /* to neighbours of the greedy place, in numbers of SMs */
};
/* Of the budget, what may be spent where no job would miss: so much divided by the number of tasks,
 * since more tasks ask more often, within these limits. */
#define ENERGY_SHARE       5.0
#define ENERGY_SHARE_LEAST 0.1
#define ENERGY_SHARE_MOST  0.4
/* By what share another outcome's energy must be less, to be taken: more than rounding. */
#define LESS 1e-6
/* Weights of jobs to come fall to 1/e within this share of the horizon. */
#define FADE 0.4
/* What a release counts in the mean lateness of its task. */
#define LEARN 0.1
/* Lateness that is rounding. */
#define PUNCTUAL 1e-6
/* Releases are taken to come within so many mean deviations of their mean lateness: all do that are
 * spread evenly. */
#define DEVIATIONS 2
/* Of the time in which a release may come, the part after which it is foreseen. To foresee it too
 * early costs a little energy, too late a missed deadline. */
#define EARLY 0.2
/* By how much earlier than at the last moment room is made for a job, in ms. */
#define HASTE 0.25
/* With dvfs the horizon is longer, since jobs at low clocks are, and there are more places. */
#define DVFS_HORIZON 2
#define DVFS_BUDGET  3
/* By what the jobs after the first are placed: the ways that are tried for each alternative. */
static const struct ws_rollout_base bases[] = {
    {0},
    {.share = WS_ROLLOUT_ALL_SMS},
    {.share = 0.9},
    {.waits = true},
    /* From here on only where a deadline would be missed. */
    {.share = 10},
    {.share = 0.01},
    {.share = WS_ROLLOUT_ALL_SMS, .n_given_up = 1},
    {.share = WS_ROLLOUT_ALL_SMS, .at_home = true},
    {.share = WS_ROLLOUT_ALL_SMS, .n_given_up = 2},
    {.share = WS_ROLLOUT_ALL_SMS, .at_home = true, .n_given_up = 1},
    {.share = WS_ROLLOUT_ALL_SMS, .n_given_up = 3},
    {.share = WS_ROLLOUT_ALL_SMS, .at_home = true, .n_given_up = 2},
    {.share = WS_ROLLOUT_ALL_SMS, .by_size = true},
    {.share = WS_ROLLOUT_ALL_SMS, .by_size = true, .n_given_up = 1},
};
enum { N_BASES = WS_ARRAY_SIZE(bases), BASES_IN_TIME = 4 /* those that are for all cases */ };

/* After which to look again at a job that waits for what may come at any moment, in ms. */
#define SOON 1.0

struct awaited {
    int id;
    double due;       /* its next release; INFINITY: not known */
    double last;      /* release that was seen; -INFINITY: none */
    double late;      /* by how much releases come later than a period after the last, on average */
    double deviation; /* of it, the mean */
};
/* A job that runs: what it should take. */
struct watched {
    uint64_t id;
    int task;
    double gpu_start, kernel, out;
};
struct lookahead {
    const struct ws_policy_system *sys;
    struct ws_rollout roll;
    struct ws_fallback plan;
    bool guarded; /* the plan can be followed now */
    struct awaited *tasks;
    int n_tasks;
    struct watched *watched;
    size_t n_watched, cap_watched;
    double *due, *last; /* [n_tasks]: of tasks */
    double *every;      /* [n_tasks]: the mean time between releases */
    double horizon, budget, guarantee, preempt;
    bool dvfs;
    struct ws_dvfs_interval interval;
};

static const struct ws_policy_option options_table[] = {
    {"horizon", "5", "time for which releases are foreseen, in mean lengths of a job"},
    {"budget", "25000", "places that one decision may evaluate; fewer where no job would miss"},
    {"guarantee", "0",
     "1: choices leave room for a plan that meets all deadlines, if there is one"},
    {"preempt", "1", "0: jobs are not taken off GPUs that could give them back later"},
    {"dvfs", "no", "yes: choose voltage and clocks, too, with three times the budget"},
    {"interval", "wide", "with dvfs: wide, narrow, or V_MIN:V_MAX,FC_MIN,FM_MIN:FM_MAX"},
    {NULL, NULL, NULL}};

static struct lookahead *lookahead_of(struct ws_policy *p)
{
    return (struct lookahead *)p;
}

static int make_own(struct ws_policy **ret, const char *const *options, char *ret_error,
                    size_t error_bytes)
{
    struct lookahead o = {0};
    int r = ws_policy_options_check(options_table, options, ret_error, error_bytes);
    if (!r)
        r = ws_policy_option_number(options_table, options, "horizon", 0, 1e9, &o.horizon,
                                    ret_error, error_bytes);
    if (!r)
        r = ws_policy_option_number(options_table, options, "budget", 0, 1e9, &o.budget, ret_error,
                                    error_bytes);
    if (!r)
        r = ws_policy_option_number(options_table, options, "guarantee", 0, 1, &o.guarantee,
                                    ret_error, error_bytes);
    if (!r)
        r = ws_policy_option_number(options_table, options, "preempt", 0, 1, &o.preempt, ret_error,
                                    error_bytes);
    if (!r)
        r = ws_policy_clocks_options(options_table, options, &o.dvfs, &o.interval, ret_error,
                                     error_bytes);
    if (r)
        return r;
    struct lookahead *p = ws_alloc(sizeof(*p));
    if (!p)
        return ws_raise(-ENOMEM);
    *p = o;
    *ret = (struct ws_policy *)p;
    return 0;
}

static void free_own(struct ws_policy *policy)
{
    struct lookahead *p = lookahead_of(policy);
    if (!p)
        return;
    ws_rollout_deinit(&p->roll);
    ws_fallback_deinit(&p->plan);
    free(p->tasks);
    free(p->watched);
    free(p->due);
    free(p->last);
    free(p->every);
    free(p);
}

/* Tasks come and go, but stay in order: the search for the next one begins behind the last. NULL:
 * there was none. */
static const struct awaited *find_awaited(const struct lookahead *p, int id, int *at)
{
    for (int i = 0; i < p->n_tasks; i++) {
        const struct awaited *t = &p->tasks[(*at + i) % p->n_tasks];
        if (t->id == id) {
            *at = (*at + i + 1) % p->n_tasks;
            return t;
        }
    }
    return NULL;
}

/* What was seen of the tasks of @s that were there before. */
static void remember(const struct lookahead *p, const struct ws_policy_system *s,
                     struct awaited *tasks, struct ws_rollout_margin *margins)
{
    for (int i = 0, at = 0; i < s->n_tasks; i++) {
        const struct ws_policy_task *t = &s->tasks[i];
        const struct awaited *known = find_awaited(p, t->id, &at);
        tasks[i] = (struct awaited){t->id, t->period > 0 ? t->offset : INFINITY,
                                    known ? known->last : -INFINITY, known ? known->late : 0,
                                    known ? known->deviation : 0};
        margins[i] = known ? p->roll.margin[known - p->tasks] : WS_ROLLOUT_MARGIN_NONE;
        if (known && t->period > 0)
            tasks[i].due = known->due;
    }
}

static int prepare_own(struct ws_policy *policy, const struct ws_policy_system *s, char *ret_error,
                       size_t error_bytes)
{
    struct lookahead *p = lookahead_of(policy);
    size_t n = (size_t)WS_MAX(s->n_tasks, 1);
    struct awaited *tasks = ws_alloc_array(n, sizeof(*tasks));
    struct ws_rollout_margin *margins = ws_alloc_array(n, sizeof(*margins));
    double *due = ws_alloc_array(n, sizeof(*due)), *last = ws_alloc_array(n, sizeof(*last)),
           *every = ws_alloc_array(n, sizeof(*every));
    int r = tasks && margins && due && last && every ? 0 : ws_raise(-ENOMEM);
    if (!r)
        remember(p, s, tasks, margins);
    p->roll.interval = p->dvfs ? &p->interval : NULL;
    p->roll.preempts = p->preempt > 0 && s->n_gpus > 0;
    for (int k = 0; k < s->n_gpus; k++)
        p->roll.preempts &= s->types[s->gpus[k].type].preempts;
    if (!r)
        r = ws_rollout_prepare(&p->roll, s);
    if (!r && p->guarantee > 0)
        r = ws_fallback_prepare(&p->plan, s);
    if (r < 0) {
        free(tasks);
        free(margins);
        free(due);
        free(last);
        free(every);
        p->n_tasks = 0; /* nothing is remembered of them */
        return r;
    }
    memcpy(p->roll.margin, margins, n * sizeof(*margins));
    for (int i = 0; i < s->n_tasks; i++)
        if (isinf(p->roll.shortest[i])) {
            snprintf(ret_error, error_bytes, "task %d (%s): its time is known on no GPU",
                     s->tasks[i].id, s->tasks[i].name ? s->tasks[i].name : "");
            r = WS_POLICY_E_COST;
        }
    free(margins);
    free(p->tasks);
    free(p->due);
    free(p->last);
    free(p->every);
    p->sys = s;
    p->tasks = tasks;
    p->due = due;
    p->last = last;
    p->every = every;
    p->n_tasks = s->n_tasks;
    p->n_watched = 0;
    return r;
}

/* ---- what jobs really take ---- */

static bool is_there(const struct ws_policy_snapshot *snap, uint64_t id)
{
    for (int i = 0; i < snap->n_jobs; i++)
        if (snap->jobs[i].id == id)
            return true;
    return false;
}

/* How many times its predicted time the kernel of @w took, if its job has just ended. */
static double took(const struct watched *w, double now)
{
    return (now - w->out - w->gpu_start) / w->kernel;
}

/* A job that does not begin at its beginning is not watched, nor is one without a kernel. */
static int watch(struct lookahead *p, const struct ws_policy_job *j, double gpu_start,
                 double gpu_end, double end)
{
    if (j->done > 0 || !(gpu_end > gpu_start))
        return 0;
    void *v = p->watched;
    int e = ws_grow(&v, &p->cap_watched, p->n_watched + 1, sizeof(*p->watched));
    p->watched = v;
    if (e)
        return ws_raise(-ENOMEM);
    p->watched[p->n_watched++] =
        (struct watched){j->id, j->task, gpu_start, gpu_end - gpu_start, end - gpu_end};
    return 0;
}

/* Jobs that are gone have ended now. Those that run are watched from now on. */
static int note_runs(struct lookahead *p, const struct ws_policy_snapshot *snap)
{
    int r = 0;
    for (size_t i = 0; i < p->n_watched; i++)
        if (!is_there(snap, p->watched[i].id))
            ws_rollout_learn(&p->roll, p->watched[i].task, took(&p->watched[i], snap->now));
    p->n_watched = 0;
    for (int k = 0; k < p->sys->n_gpus && !r; k++)
        for (int i = 0; i < snap->gpus[k].n_slots && !r; i++) {
            const struct ws_policy_run *run = &snap->gpus[k].slots[i];
            if (run->job >= 0)
                r = watch(p, &snap->jobs[run->job], run->gpu_start, run->gpu_end, run->end);
        }
    return r;
}

/* ---- what is to come ---- */

static void note_releases(struct lookahead *p, const struct ws_policy_snapshot *snap)
{
    for (int i = 0; i < snap->n_jobs; i++) {
        const struct ws_policy_job *j = &snap->jobs[i];
        struct awaited *t = &p->tasks[j->task];
        double period = p->sys->tasks[j->task].period;
        if (j->release > t->last && !isinf(t->last) && period > 0) {
            double late = ws_lesser(j->release - t->last - period, period);
            double deviation = late - t->late;
            if (fabs(deviation) < PUNCTUAL)
                deviation = 0;
            t->late += deviation * LEARN;
            t->deviation += (fabs(deviation) - t->deviation) * LEARN;
        }
        t->last = ws_greater(t->last, j->release);
        if (period > 0 && (isinf(t->due) || j->release + period > t->due))
            t->due = j->release + period;
    }
}

/* When the next release is foreseen. */
static double expected(const struct awaited *t, double now)
{
    double mean = t->due + t->late, most = DEVIATIONS * t->deviation;
    double from = ws_greater(mean - most, now);
    return ws_greater(from, from + EARLY * (mean + most - from));
}

static void foresee(struct lookahead *p, double now)
{
    for (int i = 0; i < p->n_tasks; i++) {
        const struct awaited *t = &p->tasks[i];
        double overdue = now - t->due;
        p->every[i] = p->sys->tasks[i].period + ws_greater(t->late, 0);
        p->due[i] = overdue > p->sys->tasks[i].period ? INFINITY : expected(t, now);
    }
    double horizon = p->horizon * p->roll.mean_shortest;
    ws_rollout_foresee(&p->roll, p->due, p->every, p->dvfs ? DVFS_HORIZON * horizon : horizon,
                       FADE * horizon);
}

/* ---- the search for one job ---- */

struct alternatives {
    struct lookahead *p;
    const struct ws_policy_snapshot *snap;
    int i; /* among the ready jobs; those before it wait */
    struct ws_rollout_place best;
    struct ws_rollout_outcome outcome; /* of it */
    uint64_t until;                    /* roll.n_evaluated at which the search ends */
    int n_tries;
    char tried[WS_POLICY_WHY]; /* for explanations */
    size_t n_tried;
};

static WS_PRINTF(2, 3) void tell(struct alternatives *q, const char *fmt, ...)
{
    size_t room = sizeof(q->tried) - q->n_tried;
    va_list ap;
    if (!q->snap->explain)
        return;
    va_start(ap, fmt);
    int n = vsnprintf(q->tried + q->n_tried, room, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < room)
        q->n_tried += (size_t)n;
    else
        q->tried[q->n_tried] = 0; /* what does not fit is left out whole */
}

/* The number of a task as people know it. */
static int id_of(const struct ws_policy_snapshot *snap, int job)
{
    return snap->system->tasks[snap->jobs[job].task].id;
}

static void tell_try(struct alternatives *q, const struct ws_rollout_place *p,
                     const struct ws_rollout_outcome *o)
{
    char where[80], off[40] = "", what[40] = "worse";
    const struct ws_policy_clocks *c = &p->clocks;
    if (!q->snap->explain)
        return;
    if (p->gpu < 0)
        snprintf(where, sizeof(where), "hold till %.6g", p->hold);
    else if (ws_policy_clocks_same(c, &WS_POLICY_CLOCKS_DEFAULT))
        snprintf(where, sizeof(where), "GPU %d x %d", p->gpu, p->n_sm);
    else
        snprintf(where, sizeof(where), "GPU %d x %d at %.2g/%.2g/%.2g", p->gpu, p->n_sm, c->volt,
                 c->core, c->memory);
    if (p->off)
        snprintf(off, sizeof(off), " without {task %d}",
                 id_of(q->snap, q->p->roll.state.kernels[p->off - 1].job.job));
    if (o)
        snprintf(what, sizeof(what), "%.3g late, %.5g mJ", o->missed, o->energy);
    tell(q, "%s%s%s: %s", q->n_tried ? "; " : "", where, off, what);
}

static bool allowed(const struct alternatives *q, const struct ws_rollout_place *place)
{
    return place->gpu < 0 || !q->p->guarded ||
           ws_fallback_allows(&q->p->plan, q->p->roll.state.ready[q->i].job, place->gpu,
                              place->n_sm, place->end);
}

static void try_bases(struct alternatives *q, const struct ws_rollout_place *place, size_t n_bases)
{
    struct ws_rollout_outcome o, found = {INFINITY, 0, false};
    if (!allowed(q, place))
        return;
    for (size_t i = 0; i < n_bases; i++) {
        if (i >= BASES_IN_TIME && q->outcome.missed <= 0)
            break;
        if (bases[i].waits && q->p->n_tasks > WAITING_TASKS)
            continue;
        struct ws_rollout_outcome bound = {q->outcome.missed, q->outcome.energy * (1 - LESS),
                                           false};
        if (q->p->roll.n_evaluated >= q->until)
            break;
        q->n_tries++;
        if (ws_rollout_try(&q->p->roll, q->i, place, &bases[i], &bound, q->until, &o)) {
            q->outcome = found = o;
            q->best = *place;
        }
    }
    tell_try(q, place, isinf(found.missed) ? NULL : &found);
}

static void try(struct alternatives *q, const struct ws_rollout_place *place)
{
    try_bases(q, place, N_BASES);
}

/* Tries to wait for the next event. Return: when that is. */
static double try_next(struct alternatives *q)
{
    const struct ws_rollout *r = &q->p->roll;
    struct ws_rollout_place hold = {.gpu = -1,
                                    .hold = r->n_releases ? r->releases[0].at : INFINITY};
    for (int k = 0; k < r->state.n_runs; k++)
        hold.hold = ws_lesser(hold.hold, r->state.runs[k].end);
    if (!isinf(hold.hold))
        try(q, &hold);
    return hold.hold;
}

static void try_holds(struct alternatives *q)
{
    const struct ws_rollout *r = &q->p->roll;
    const struct ws_rollout_state *s = &r->state;
    const struct ws_rollout_job *j = &s->ready[q->i];
    double latest = j->deadline - r->shortest[j->task] * j->left, next = try_next(q);
    struct ws_rollout_place hold = {.gpu = -1, .hold = next};
    for (int k = 0, n = 0; k < r->n_releases && n < HOLDS_MAX && r->releases[k].at <= latest; k++)
        if (r->releases[k].at > ws_greater(next, hold.hold)) {
            hold.hold = r->releases[k].at;
            try(q, &hold);
            n++;
        }
    for (int k = 0; k < s->n_runs; k++)
        if (s->runs[k].end > next && s->runs[k].end <= latest) {
            hold.hold = s->runs[k].end;
            try(q, &hold);
        }
    if (q->outcome.missed > 0 && j->deadline < INFINITY) {
        hold.hold = j->deadline;
        try(q, &hold);
    }
}

/* Other numbers of SMs on @gpu: all that are free, the fewest that are in time, and some between.
 * @greedy_sms: tried before; 0: it has another GPU or other clocks. */
static void try_counts(struct alternatives *q, int gpu, const struct ws_policy_clocks *clocks,
                       int greedy_sms)
{
    struct ws_rollout *r = &q->p->roll;
    const struct ws_rollout_job *j = &r->state.ready[q->i];
    const struct ws_rollout_item *it = ws_rollout_item(r, j->task, gpu);
    int most = ws_rollout_most(r, &r->state, j, gpu), least = most, greedy = -1;
    struct ws_rollout_place p;
    uint32_t tried = 0;
    if (most < 0 || ws_rollout_is_double(r, &r->state, j, gpu) ||
        !ws_rollout_place(r, &r->state, j, gpu, clocks, most, &p))
        return;
    while (least > 0 && ws_rollout_place(r, &r->state, j, gpu, clocks, least - 1, &p))
        least--;
    for (int i = least; i <= most; i++)
        if (it->counts[i].n_sm == greedy_sms) {
            greedy = i;
            tried |= UINT32_C(1) << i;
        }
    int n = it->n_counts;
    const int counts[] = {most,          least,
                          n / 2 - 1,     3 * n / 4 - 1,
                          n / 4 - 1,     (least + most) / 2,
                          greedy - STEP, greedy < 0 ? -1 : greedy + STEP};
    for (size_t k = 0; k < WS_ARRAY_SIZE(counts); k++) {
        int i = counts[k];
        if (i < least || i > most || tried & UINT32_C(1) << i)
            continue;
        tried |= UINT32_C(1) << i;
        if (ws_rollout_place(r, &r->state, j, gpu, clocks, i, &p))
            try(q, &p);
    }
}

static void try_gpu(struct alternatives *q, int gpu, const struct ws_rollout_place *greedy)
{
    const struct ws_rollout *r = &q->p->roll;
    const struct ws_rollout_job *j = &r->state.ready[q->i];
    struct ws_policy_clocks clocks;
    for (int c = 0; c <= ws_rollout_item(r, j->task, gpu)->n_clocks; c++)
        if (ws_rollout_clocks(r, &r->state, j, gpu, c, &clocks)) {
            bool same = gpu == greedy->gpu && ws_policy_clocks_same(&clocks, &greedy->clocks);
            try_counts(q, gpu, &clocks, same ? greedy->n_sm : 0);
        }
}

/* What the plan starts next in @home, and where. *@ret_by: when it must start at the latest. Its
 * times are those at the default clocks, so that clocks may be higher, but not lower.
 * Return: which ready job; -1: none. */
static int planned_place(struct lookahead *p, const struct ws_policy_job *jobs, int home,
                         struct ws_rollout_place *ret, double *ret_by)
{
    *ret = (struct ws_rollout_place){.gpu = -1};
    int job = ws_fallback_next(&p->plan, home, &ret->gpu, &ret->n_sm, ret_by);
    if (job < 0)
        return -1;
    const struct ws_policy_gpu *g = &p->sys->gpus[ret->gpu];
    const struct ws_rollout_gpu *there = &p->roll.state.gpus[ret->gpu];
    ret->clocks = WS_POLICY_CLOCKS_DEFAULT;
    if (p->dvfs && there->n_running)
        ret->clocks = ws_policy_clocks_join(&ret->clocks, &there->clocks);
    const struct ws_policy_cost *c = &p->sys->tasks[jobs[job].task].cost[g->type];
    double kernel = c->wcet[ret->n_sm - 1], now = p->roll.state.now;
    double awake_until = ws_greater(there->awake_until, now);
    ret->gpu_start = now + c->h2d;
    ret->gpu_end = ret->gpu_start + kernel;
    ret->end = ret->gpu_end + c->d2h;
    ret->energy = kernel * ret->n_sm * (c->dyn_w_per_sm - p->sys->types[g->type].idle_w_per_sm) +
                  ws_greater(0, ret->end - awake_until) * p->roll.awake_w[g->type];
    for (int i = 0; i < p->roll.state.n_ready; i++)
        if (p->roll.state.ready[i].job == job)
            return i;
    return -1;
}

/* The place of the plan, which is always allowed. Where nothing is known of any other, it is
 * taken by a job without a deadline; others have time until the plan needs it. */
static void try_planned(struct alternatives *q)
{
    struct ws_rollout_place place;
    double by;
    for (int h = 0; h < q->p->plan.n_homes; h++)
        if (planned_place(q->p, q->snap->jobs, h, &place, &by) == q->i) {
            try(q, &place);
            if (isinf(q->outcome.missed) && isinf(by))
                q->best = place;
        }
}

/* Others that make room for the job. Only where fewer deadlines are missed then: what is taken off
 * has begun for a reason. */
static void try_instead(struct alternatives *q)
{
    struct ws_rollout *r = &q->p->roll;
    const struct ws_rollout_job *j = &r->state.ready[q->i];
    if (!r->preempts || q->p->guarded || isinf(j->deadline))
        return;
    q->outcome.energy = -INFINITY;
    for (int n = 0, run = -1; n < VICTIMS_MAX && q->outcome.missed > 0; n++) {
        struct ws_rollout_place place;
        run = ws_rollout_victim(r, &r->state, j, run, false);
        if (run < 0)
            return;
        ws_rollout_place_instead(r, q->i, run, &place);
        if (place.gpu >= 0)
            try(q, &place);
    }
}

/* When @j must be started at the latest. Room may have to be made for it then. */
static double latest_start(const struct ws_rollout *r, const struct ws_rollout_job *j)
{
    double latest = j->deadline - r->shortest[j->task] * j->left;
    if (r->preempts)
        latest -= HASTE + (j->preempted ? 2 : 1) * r->put_back_ms;
    return latest;
}

/* Where the job finds no place now, it waits; if it would be late then, it takes the place of the
 * run of the latest deadline that can still be met afterwards. If there is none, rollouts say
 * whether that of another one. */
static void search_full(struct alternatives *q)
{
    struct ws_rollout *r = &q->p->roll;
    const struct ws_rollout_job *j = &r->state.ready[q->i];
    if (!r->preempts || q->p->guarded || isinf(j->deadline))
        return;
    const double latest = latest_start(r, j);
    struct ws_rollout_place place, wait = {.gpu = -1, .hold = INFINITY};
    for (int k = 0; k < r->state.n_runs; k++)
        wait.hold = ws_lesser(wait.hold, r->state.runs[k].end);
    q->outcome = (struct ws_rollout_outcome){INFINITY, INFINITY, false};
    try_bases(q, &wait, 1);
    bool late = q->outcome.own || latest <= q->snap->now;
    int run = late ? ws_rollout_victim(r, &r->state, j, -1, true) : -1;
    if (run >= 0)
        ws_rollout_place_instead(r, q->i, run, &place);
    if (run < 0 || place.gpu < 0) {
        try_instead(q);
        return;
    }
    q->best = place;
    tell_try(q, &place, NULL);
}

/* @until: roll.n_evaluated at which the budget is spent. */
static void search(struct alternatives *q, const uint64_t until[2])
{
    struct ws_rollout *r = &q->p->roll;
    struct ws_rollout_job *j = &r->state.ready[q->i];
    ws_rollout_greedy(r, &r->state, j, &q->best);
    if (q->best.gpu < 0 && ws_rollout_cut_margin(r, &r->state, j))
        ws_rollout_greedy(r, &r->state, j, &q->best);
    q->until = until[1];
    if (q->best.gpu < 0) { /* nowhere in time now */
        search_full(q);
        return;
    }
    const struct ws_rollout_place greedy = q->best;
    q->outcome = (struct ws_rollout_outcome){INFINITY, INFINITY, false};
    if (!allowed(q, &greedy))
        q->best = (struct ws_rollout_place){.gpu = -1, .hold = -INFINITY};
    try(q, &greedy);
    if (q->p->guarded)
        try_planned(q);
    if (isinf(q->outcome.missed) && (q->best.gpu >= 0 || r->n_evaluated >= q->until))
        return; /* no budget */
    bool missed = q->outcome.missed > 0;
    q->until = until[missed];
    /* A start that can be undone at once makes no other job late, but it may still be cheaper to
     * wait. */
    bool at_once = r->preempts && !r->stops;
    if (missed ? !at_once : j->deadline < INFINITY)
        try_holds(q);
    for (int k = 0; k < q->p->sys->n_gpus; k++)
        try_gpu(q, k, &greedy);
    try_instead(q);
}

/* ---- decisions ---- */

static bool is_taken_off(const struct ws_policy_decisions *all, size_t begin, int job)
{
    for (size_t i = begin; i < all->n; i++)
        if (all->v[i].kind == WS_DECIDE_PREEMPT && all->v[i].job == job)
            return true;
    return false;
}

static struct ws_sm_set taken_sms(const struct ws_policy_snapshot *snap,
                                  const struct ws_policy_decisions *all, size_t begin, int gpu)
{
    struct ws_sm_set taken = {0};
    for (int i = 0; i < snap->gpus[gpu].n_slots; i++)
        if (snap->gpus[gpu].slots[i].job >= 0 &&
            !is_taken_off(all, begin, snap->gpus[gpu].slots[i].job))
            ws_sm_set_join(&taken, &snap->gpus[gpu].slots[i].sms);
    for (size_t i = begin; i < all->n; i++)
        if (all->v[i].gpu == gpu)
            ws_sm_set_join(&taken, &all->v[i].sms);
    return taken;
}

/* On @n_sm SMs of @gpu that are free, also after the decisions from @begin on. */
static struct ws_policy_decision *start(const struct lookahead *p,
                                        const struct ws_policy_snapshot *snap,
                                        struct ws_policy_decisions *ret, size_t begin, int job,
                                        int gpu, int n_sm)
{
    struct ws_sm_set taken = taken_sms(snap, ret, begin, gpu), sms = {0};
    ws_sm_set_take(&sms, &taken, (unsigned)p->sys->gpus[gpu].sm_limit, (unsigned)n_sm);
    bool resume = snap->jobs[job].state == WS_JOB_PREEMPTED;
    struct ws_policy_decision *d =
        ws_policy_decide(ret, resume ? WS_DECIDE_RESUME : WS_DECIDE_START, job, gpu);
    if (!d)
        return NULL;
    d->sms = sms;
    d->n_sm = n_sm;
    d->at = snap->now;
    return d;
}

static struct ws_policy_decision *start_at(const struct lookahead *p,
                                           const struct ws_policy_snapshot *snap,
                                           struct ws_policy_decisions *ret, size_t begin, int job,
                                           const struct ws_rollout_place *place)
{
    struct ws_policy_decision *d = start(p, snap, ret, begin, job, place->gpu, place->n_sm);
    if (!d)
        return NULL;
    d->gpu_start = place->gpu_start;
    d->gpu_end = place->gpu_end;
    d->end = place->end;
    d->energy = place->energy;
    d->volt = place->clocks.volt;
    d->f_core = place->clocks.core;
    d->f_mem = place->clocks.memory;
    return d;
}

/* Takes the run off that makes room. */
static int take_off(const struct alternatives *q, struct ws_policy_decisions *ret)
{
    const struct ws_rollout_state *s = &q->p->roll.state;
    const int job = s->kernels[q->best.off - 1].job.job;
    struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_PREEMPT, job, q->best.gpu);
    if (!d)
        return ws_raise(-ENOMEM);
    d->at = q->snap->now;
    ws_policy_explain(q->snap, d, "{task %d} would be late otherwise, and this has more time",
                      id_of(q->snap, s->ready[q->i].job));
    return 0;
}

/* When the GPU of @p is open to another job, where one is taken off. */
static double open_at(const struct alternatives *q, const struct ws_rollout_place *p)
{
    const struct ws_rollout *r = &q->p->roll;
    return p->off ? ws_rollout_open_at(r, &r->state, p->off - 1) : r->state.gpus[p->gpu].open_at;
}

static int start_best(const struct alternatives *q, struct ws_policy_decisions *ret, size_t begin)
{
    const struct ws_rollout_job *j = &q->p->roll.state.ready[q->i];
    const struct ws_rollout_place *p = &q->best;
    int e = p->off ? take_off(q, ret) : 0;
    struct ws_policy_decision *d = e ? NULL : start_at(q->p, q->snap, ret, begin, j->job, p);
    if (!d)
        return e ? e : ws_raise(-ENOMEM);
    d->at = ws_greater(d->at, open_at(q, p));
    double kernel = (p->gpu_end - p->gpu_start) / j->margin, out = p->end - p->gpu_end;
    int r = watch(q->p, &q->snap->jobs[j->job], p->gpu_start, p->gpu_start + kernel,
                  p->gpu_start + kernel + out);
    if (r)
        return r;
    ws_policy_explain(q->snap, d, "best of %d rollouts: %s", q->n_tries, q->tried);
    return 0;
}

/* When to look at a job again that is not started now, if nothing happens before. */
static double wake_time(const struct alternatives *q)
{
    const struct ws_rollout *r = &q->p->roll;
    const struct ws_rollout_job *j = &r->state.ready[q->i];
    double now = q->snap->now, latest = latest_start(r, j);
    if (!q->n_tries) /* it could not be started: it is late then, or something ends before */
        return j->deadline;
    if (q->best.hold > now)
        return ws_lesser(q->best.hold, latest > now ? latest : INFINITY);
    return latest > now && !isinf(latest) ? latest : now + SOON;
}

static int wait(const struct alternatives *q, struct ws_policy_decisions *ret)
{
    if (!q->snap->explain)
        return 0;
    struct ws_policy_decision *d =
        ws_policy_decide(ret, WS_DECIDE_WAIT, q->p->roll.state.ready[q->i].job, -1);
    if (!d)
        return ws_raise(-ENOMEM);
    if (q->n_tries)
        ws_policy_explain(q->snap, d, "best of %d rollouts: %s", q->n_tries, q->tried);
    else
        ws_policy_explain(q->snap, d, "no GPU has room for it now with which it is in time");
    return 0;
}

static bool may_start(const struct ws_rollout *r)
{
    bool may = r->preempts;
    for (int k = 0; k < r->sys->n_gpus && !may; k++)
        may = r->state.gpus[k].n_slots > 0 && r->state.gpus[k].n_sm > 0;
    return may;
}

/* Notes in the rollouts and in the plan what was decided about ready job @i. */
static void commit(struct lookahead *p, const struct ws_policy_snapshot *snap, int i,
                   const struct ws_rollout_place *place)
{
    if (p->guarded && place->gpu >= 0)
        ws_fallback_started(&p->plan, snap, p->roll.state.ready[i].job, place->gpu, place->n_sm,
                            place->end);
    ws_rollout_commit(&p->roll, i, place);
}

/* Makes the starts of the plan that cannot wait. */
static int start_planned(struct lookahead *p, const struct ws_policy_snapshot *snap,
                         struct ws_policy_decisions *ret, size_t begin)
{
    for (int h = 0; h < p->plan.n_homes; h++) {
        struct ws_rollout_place place;
        double by = INFINITY;
        int i = planned_place(p, snap->jobs, h, &place, &by);
        if (i < 0 || by > snap->now)
            continue;
        struct ws_policy_decision *d =
            start_at(p, snap, ret, begin, p->roll.state.ready[i].job, &place);
        if (!d)
            return ws_raise(-ENOMEM);
        ws_policy_explain(snap, d, "the plan that meets all deadlines starts it now");
        commit(p, snap, i, &place);
    }
    return 0;
}

static double next_planned(struct lookahead *p, const struct ws_policy_snapshot *snap)
{
    double by, least = INFINITY;
    struct ws_rollout_place place;
    for (int h = 0; h < p->plan.n_homes; h++)
        if (planned_place(p, snap->jobs, h, &place, &by) >= 0)
            least = ws_lesser(least, by);
    return least;
}

static int decide_known(struct lookahead *p, const struct ws_policy_snapshot *snap,
                        struct ws_policy_decisions *ret, size_t begin)
{
    struct ws_rollout *roll = &p->roll;
    const double budget = p->dvfs ? DVFS_BUDGET * p->budget : p->budget;
    const double share = ws_lesser(
        ws_greater(ENERGY_SHARE / WS_MAX(p->n_tasks, 1), ENERGY_SHARE_LEAST), ENERGY_SHARE_MOST);
    const uint64_t until[2] = {roll->n_evaluated + (uint64_t)(budget * share),
                               roll->n_evaluated + (uint64_t)budget};
    double wake = INFINITY;
    int r = p->guarded ? start_planned(p, snap, ret, begin) : 0;
    for (int i = 0; !r && i < roll->state.n_ready && may_start(roll);) {
        if (roll->state.ready[i].hold >= snap->now) { /* it was taken off just now */
            i++;
            continue;
        }
        struct alternatives q = {.p = p, .snap = snap, .i = i};
        search(&q, until);
        if (q.best.gpu < 0) {
            wake = ws_lesser(wake, wake_time(&q));
            r = wait(&q, ret);
            i++;
        } else {
            r = start_best(&q, ret, begin);
        }
        commit(p, snap, q.i, &q.best);
    }
    if (p->guarded)
        wake = ws_lesser(wake, next_planned(p, snap));
    if (r || !(wake < INFINITY))
        return r;
    struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_TIMER, -1, -1);
    if (!d)
        return ws_raise(-ENOMEM);
    d->at = wake;
    return 0;
}

static bool is_idle(const struct lookahead *p, const struct ws_policy_snapshot *snap,
                    const struct ws_policy_decisions *all, size_t begin, int gpu)
{
    bool idle = snap->gpus[gpu].power == WS_GPU_ON && p->sys->gpus[gpu].sm_limit > 0 &&
                !snap->gpus[gpu].n_running;
    for (size_t i = begin; i < all->n; i++)
        idle &= all->v[i].gpu != gpu;
    return idle;
}

static int decide_unknown(struct lookahead *p, const struct ws_policy_snapshot *snap,
                          struct ws_policy_decisions *ret, size_t begin)
{
    for (int i = 0, k = 0; i < snap->n_jobs && k < p->sys->n_gpus; i++) {
        const struct ws_policy_job *j = &snap->jobs[i];
        if (j->state == WS_JOB_RUNNING || !isinf(p->roll.shortest[j->task]))
            continue;
        while (k < p->sys->n_gpus && !is_idle(p, snap, ret, begin, k))
            k++;
        if (k == p->sys->n_gpus)
            break;
        struct ws_policy_decision *d = start(p, snap, ret, begin, i, k, p->sys->gpus[k].sm_limit);
        if (!d)
            return ws_raise(-ENOMEM);
        ws_policy_explain(snap, d, "its time is known on no GPU: alone on one that is idle");
    }
    return 0;
}

/* The plan knows jobs that begin at the beginning, with their data in place, on GPUs that are on. A
 * job that is late shows that its times are not those of the plan. */
static int guard(struct lookahead *p, const struct ws_policy_snapshot *snap)
{
    p->guarded = true;
    for (int k = 0; k < p->sys->n_gpus; k++)
        p->guarded &= snap->gpus[k].power == WS_GPU_ON;
    for (int i = 0; i < snap->n_jobs; i++) {
        const struct ws_policy_job *j = &snap->jobs[i];
        p->guarded &=
            j->state == WS_JOB_RUNNING ||
            (j->state == WS_JOB_WAITING && j->deadline > snap->now && !j->moves && !(j->after > 0));
    }
    for (int i = 0; i < p->n_tasks; i++)
        p->last[i] = p->tasks[i].last;
    return ws_fallback_load(&p->plan, snap, p->last);
}

static int decide_own(struct ws_policy *policy, const struct ws_policy_snapshot *snap,
                      const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    struct lookahead *p = lookahead_of(policy);
    size_t begin = ret->n;
    (void)event;
    note_releases(p, snap);
    int r = note_runs(p, snap);
    if (!r)
        r = ws_rollout_load(&p->roll, snap);
    p->guarded = false;
    if (!r && p->plan.holds)
        r = guard(p, snap);
    if (!r && p->roll.state.n_ready && may_start(&p->roll)) {
        foresee(p, snap->now);
        r = decide_known(p, snap, ret, begin);
    }
    return r ? r : decide_unknown(p, snap, ret, begin);
}

const struct ws_policy_ops ws_policy_wattshare = {
    .name = "wattshare",
    .summary = "looks ahead: the fewest missed deadlines, then the least energy (our own)",
    .options = options_table,
    .make = make_own,
    .free = free_own,
    .prepare = prepare_own,
    .decide = decide_own,
};

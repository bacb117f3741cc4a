// SPDX-License-Identifier: Apache-2.0
/* Algorithms 1-6 of Mei et al., with what differs between the policies left to a rule (edl_core.h).
 *
 * One decide() does, in the paper's order for a slot: read again the pair whose job ended, switch
 * off the servers that have been idle for long enough, then place what has arrived.
 *
 * Invariants.
 * 1. A job is given to a pair once, at the setting it keeps. pairs.mu is when a pair is done with
 *    all it was given; a job starts at max(now, mu) (the paper starts at the next slot, which
 *    breaks the test of Algorithm 5 by up to a slot).
 * 2. room = deadline - max(now, mu), also on the first test of Algorithm 5 where the paper forgets
 *    max().
 * 3. A deadline-prior job takes exactly the time it has, so "does it fit" needs a tolerance, or
 *    each would turn on a server.
 * 4. While the first batch is placed, places are pairs as opened; Algorithm 3 then says which GPUs
 *    they are. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "policy/clocks.h"
#include "policy/edl_core.h"
#include "policy/move.h"

static const double tolerance_share = 1e-9, rounding_share = 1e-14;

/* The object behind a policy that ws_edl_make() made. */
static struct ws_edl *edl_of(struct ws_policy *policy)
{
    return (struct ws_edl *)policy;
}

struct ws_edl_counts ws_edl_counts(const struct ws_policy *policy)
{
    return ((const struct ws_edl *)policy)->counts;
}

bool ws_edl_is(const struct ws_policy_ops *ops)
{
    return ops->free == ws_edl_free;
}

int ws_edl_make(struct ws_policy **ret, const struct ws_edl_rule *rule,
                const struct ws_policy_option *table, const char *const *options, char *ret_error,
                size_t bytes)
{
    struct ws_edl made = {.rule = rule, .theta = 1};
    int r = ws_policy_options_check(table, options, ret_error, bytes);
    if (!r && rule->may_readjust)
        r = ws_policy_option_number(table, options, "theta", 0, 1, &made.theta, ret_error, bytes);
    if (!r)
        r = ws_policy_option_number(table, options, "rho", 0, 1e12, &made.pairs.rho, ret_error,
                                    bytes);
    if (!r)
        r = ws_policy_option_number(table, options, "slot", 0, 1e12, &made.pairs.slot, ret_error,
                                    bytes);
    if (!r)
        r = ws_policy_clocks_options(table, options, &made.dvfs, &made.interval, ret_error, bytes);
    if (r)
        return r;
    const char *servers = ws_policy_option_text(table, options, "servers");
    made.whole_servers = !strcmp(servers, "whole");
    if (!made.whole_servers && strcmp(servers, "grouped")) {
        snprintf(ret_error, bytes, "servers=%s: grouped or whole is wanted", servers);
        return WS_POLICY_E_OPTION;
    }
    struct ws_edl *p = ws_alloc(sizeof(*p));
    if (!p)
        return ws_raise(-ENOMEM);
    *p = made;
    *ret = (struct ws_policy *)p;
    return 0;
}

void ws_edl_free(struct ws_policy *policy)
{
    struct ws_edl *p = edl_of(policy);
    if (!p)
        return;
    ws_edl_pairs_deinit(&p->pairs);
    free(p->jobs);
    free(p->order);
    free(p);
}

int ws_edl_prepare(struct ws_policy *policy, const struct ws_policy_system *system, char *ret_error,
                   size_t bytes)
{
    struct ws_edl *p = edl_of(policy);
    double rho = p->pairs.rho, slot = p->pairs.slot;
    ws_edl_pairs_deinit(&p->pairs);
    free(p->order);
    p->prepared = p->started = false;
    p->system = system;
    int r = ws_edl_pairs_init(&p->pairs, system);
    p->pairs.rho = rho;
    p->pairs.slot = slot;
    p->order = r ? NULL : ws_alloc_array((size_t)system->n_gpus + 1, sizeof(*p->order));
    if (!r && !p->order)
        r = ws_raise(-ENOMEM);
    if (r)
        return ws_forward(r);
    p->prepared = true;
    for (int i = 1; i < system->n_gpus; i++)
        if (system->gpus[i].type != system->gpus[0].type) {
            snprintf(ret_error, bytes,
                     "GPU %d is of another type than GPU 0; pairs of one type are wanted", i);
            return WS_POLICY_E_UNFIT;
        }
    return 0;
}

/* ---- Algorithm 1: each job's own best setting ---- */

/* A job without DVFS parameters: as long as its cost says, at the default clocks. */
static bool fixed_point(const struct ws_edl *p, const struct ws_policy_job *job,
                        struct ws_dvfs_point *ret)
{
    const struct ws_policy_task *task =
        job->task >= 0 && job->task < p->system->n_tasks ? &p->system->tasks[job->task] : NULL;
    const struct ws_policy_cost *cost =
        task && task->cost && p->system->n_gpus ? &task->cost[p->system->gpus[0].type] : NULL;
    if (!cost || cost->n_sm < 1)
        return false;
    *ret = (struct ws_dvfs_point){.v = 1, .fc = 1, .fm = 1};
    ret->t = cost->h2d + cost->wcet[cost->n_sm - 1] + cost->d2h;
    ret->p = cost->power_w ? cost->power_w[cost->n_sm - 1] : cost->dyn_w_per_sm * cost->n_sm;
    ret->e = ret->t * ret->p;
    return true;
}

static const struct ws_dvfs_task *dvfs_of(const struct ws_edl *p, const struct ws_policy_job *job)
{
    if (job->dvfs || job->task < 0 || job->task >= p->system->n_tasks || !p->system->n_gpus)
        return job->dvfs;
    const struct ws_policy_cost *cost = p->system->tasks[job->task].cost;
    return cost ? cost[p->system->gpus[0].type].dvfs : NULL;
}

/* False: no setting is quick enough. */
static bool configure(struct ws_edl *p, const struct ws_policy_job *job, struct ws_edl_job *j)
{
    j->task = dvfs_of(p, job);
    j->deadline = job->deadline;
    j->room = job->deadline - p->now;
    j->tolerance =
        tolerance_share * fabs(job->deadline - job->release) + rounding_share * fabs(job->deadline);
    if (!(j->tolerance < INFINITY)) /* no deadline */
        j->tolerance = 0;
    if (!j->task) {
        if (!fixed_point(p, job, &j->best))
            return false;
    } else if (!p->dvfs) {
        j->best = ws_dvfs_default(j->task);
        j->task = NULL;
    } else {
        if (ws_dvfs_optimum(j->task, &p->interval, INFINITY, &j->best))
            return false;
        if (j->best.t > j->room) {
            j->prior = true;
            double limit = fmax(j->room, ws_dvfs_t_min(j->task, &p->interval));
            if (ws_dvfs_optimum(j->task, &p->interval, limit, &j->best))
                return false;
        }
    }
    return j->best.t <= j->room + j->tolerance;
}

/* ---- placing ---- */

double ws_edl_latest(const struct ws_edl *p, const struct ws_edl_job *j)
{
    double latest = j->deadline - j->best.t + j->tolerance;
    return latest >= p->now ? latest : -INFINITY;
}

/* Whether @j, at its best setting, meets its deadline at @place. */
static bool fits(const struct ws_edl *p, const struct ws_edl_job *j, int place)
{
    return ws_min_tree_get(&p->pairs.mu, place) <= ws_edl_latest(p, j);
}

static void put(struct ws_edl *p, struct ws_edl_job *j, int place,
                const struct ws_dvfs_point *point)
{
    struct ws_edl_pairs *c = &p->pairs;
    j->place = place;
    j->point = *point;
    j->at = fmax(p->now, ws_min_tree_get(&c->mu, place));
    double end = j->at + point->t;
    c->load[place] = fmax(c->load[place], end / j->deadline);
    if (p->opening)
        ws_min_tree_set(&c->mu, place, end);
    else
        ws_edl_pairs_set(c, place, end);
    if (p->first)
        ws_min_tree_set(&c->sum, place, ws_min_tree_get(&c->sum, place) + point->t / j->room);
}

/* A pair that has nothing to do yet, -1: there is none. Turns a server on. */
static int open_pair(struct ws_edl *p, struct ws_policy_decisions *ret, int *ret_fatal)
{
    struct ws_edl_pairs *c = &p->pairs;
    if (p->opening) {
        if (p->n_opened == c->n)
            return -1;
        c->load[p->n_opened] = 0;
        ws_min_tree_set(&c->mu, p->n_opened, p->now);
        ws_min_tree_set(&c->sum, p->n_opened, 0);
        return p->n_opened++;
    }
    int i = ws_min_tree_argmin(&c->off);
    if (i < 0)
        return -1;
    ws_edl_pairs_on(c, i, p->now);
    struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_POWER, -1, -1);
    if (!d) {
        *ret_fatal = ws_raise(-ENOMEM);
        return -1;
    }
    d->server = c->servers[i].id;
    d->on = true;
    d->at = p->now;
    for (int k = 0; p->first && k < c->servers[i].n; k++)
        ws_min_tree_set(&c->sum, c->servers[i].first + k, 0);
    return c->servers[i].first;
}

/* The middle branch of Algorithms 2 and 5: shorten @j to the room at @place, if that is not below
 * theta of its best length. */
static bool readjust(struct ws_edl *p, struct ws_edl_job *j, int place)
{
    if (!j->task || p->theta >= 1)
        return false;
    double room = j->deadline - fmax(p->now, ws_min_tree_get(&p->pairs.mu, place));
    double t_min = ws_dvfs_t_min(j->task, &p->interval);
    if (room + j->tolerance < fmax(p->theta * j->best.t, t_min))
        return false;
    struct ws_dvfs_point point;
    if (ws_dvfs_optimum(j->task, &p->interval, fmax(room, t_min), &point))
        return false;
    j->readjusted = true;
    p->counts.n_readjusted++;
    put(p, j, place, &point);
    return true;
}

/* Of the pairs that are free by now, as @place is, the one nearest to @job's data. */
static int nearest_free(const struct ws_edl *p, const struct ws_policy_job *job, int place)
{
    const struct ws_edl_pairs *c = &p->pairs;
    if (!job->moves || ws_min_tree_get(&c->mu, place) > p->now)
        return place;
    int best = place;
    for (int i = 0; i < c->n; i++)
        if (ws_min_tree_get(&c->mu, i) <= p->now &&
            ws_policy_nearer(job, c->gpu_of[i], c->gpu_of[best]))
            best = i;
    return best;
}

static int place_job(struct ws_edl *p, const struct ws_policy_job *job, struct ws_edl_job *j,
                     struct ws_policy_decisions *ret)
{
    int fatal = 0, place = -1;
    if (!j->alone)
        place = p->rule->choose(p, j);
    if (place >= 0 && p->rule->free_are_equal && !p->opening)
        place = nearest_free(p, job, place);
    if (place >= 0 && p->rule->may_readjust && !fits(p, j, place)) {
        if (readjust(p, j, place))
            return 0;
        place = -1;
    }
    if (place < 0)
        place = open_pair(p, ret, &fatal);
    if (place >= 0)
        put(p, j, place, &j->best);
    return fatal;
}

/* ---- order ---- */

/* Jobs with pairs of their own go first, so that others find those pairs, and in order of deadline,
 * whatever the others' order is. */
static int alone_first(const struct ws_edl_job *x, const struct ws_edl_job *y)
{
    return (int)y->alone - (int)x->alone;
}

static int by_id(const struct ws_edl_job *x, const struct ws_edl_job *y)
{
    return x->id < y->id ? -1 : x->id > y->id;
}

static int earliest_first(const void *a, const void *b)
{
    const struct ws_edl_job *x = a, *y = b;
    if (x->alone != y->alone)
        return alone_first(x, y);
    if (x->deadline != y->deadline)
        return x->deadline < y->deadline ? -1 : 1;
    return by_id(x, y);
}

static int longest_first(const void *a, const void *b)
{
    const struct ws_edl_job *x = a, *y = b;
    if (x->alone != y->alone)
        return alone_first(x, y);
    if (x->alone)
        return earliest_first(a, b);
    if (x->best.t != y->best.t)
        return x->best.t > y->best.t ? -1 : 1;
    return by_id(x, y);
}

/* Jobs that wait for a pair, configured and in order. Those too late for any setting have place -1
 * and room NAN. */
static int collect(struct ws_edl *p, const struct ws_policy_snapshot *snap)
{
    p->n_jobs = 0;
    for (int i = 0; i < snap->n_jobs; i++) {
        const struct ws_policy_job *job = &snap->jobs[i];
        if (job->state != WS_JOB_WAITING || job->gpu >= 0)
            continue;
        void *v = p->jobs;
        int r = ws_grow(&v, &p->cap_jobs, p->n_jobs + 1, sizeof(*p->jobs));
        if (r < 0)
            return ws_forward(r);
        p->jobs = v;
        struct ws_edl_job *j = &p->jobs[p->n_jobs++];
        *j = (struct ws_edl_job){.job = i, .id = job->id, .place = -1};
        if (!configure(p, job, j))
            j->room = NAN;
        j->alone = p->first && j->prior && p->rule->prior_alone && !p->whole_servers;
        p->counts.n_deadline_prior += j->prior;
    }
    if (p->n_jobs)
        qsort(p->jobs, p->n_jobs, sizeof(*p->jobs),
              p->rule->longest_first ? longest_first : earliest_first);
    return 0;
}

/* ---- Algorithm 3 ---- */

struct opened_pair {
    double mu;
    int pair;
};

static int latest_first(const void *a, const void *b)
{
    const struct opened_pair *x = a, *y = b;
    if (x->mu != y->mu)
        return x->mu > y->mu ? -1 : 1;
    return x->pair < y->pair ? -1 : x->pair > y->pair;
}

/* Gives the opened pairs their places: by decreasing finish, so that pairs of one server end about
 * the same time. Then turns on the servers these places are in. */
static int group(struct ws_edl *p, struct ws_policy_decisions *ret)
{
    struct ws_edl_pairs *c = &p->pairs;
    size_t n = (size_t)p->n_opened;
    struct opened_pair *v = ws_alloc_array(n + 1, sizeof(*v));
    if (!v)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < p->n_opened; i++)
        v[i] = (struct opened_pair){ws_min_tree_get(&c->mu, i), i};
    qsort(v, n, sizeof(*v), latest_first);
    for (int i = 0; i < p->n_opened; i++)
        p->order[v[i].pair] = i;
    ws_edl_pairs_clear(c, p->now);
    int r = 0;
    for (int i = 0; !r && i < c->n_servers && c->servers[i].first < p->n_opened; i++) {
        struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_POWER, -1, -1);
        if (!d) {
            r = ws_raise(-ENOMEM);
            break;
        }
        d->server = c->servers[i].id;
        d->on = true;
        d->at = p->now;
        ws_edl_pairs_on(c, i, p->now);
    }
    for (size_t i = 0; i < n; i++)
        ws_edl_pairs_set(c, (int)i, v[i].mu);
    for (size_t i = 0; i < p->n_jobs; i++) {
        struct ws_edl_job *j = &p->jobs[i];
        if (j->place >= 0) {
            j->place = p->order[j->place];
            c->load[j->place] = fmax(c->load[j->place], (j->at + j->point.t) / j->deadline);
        }
    }
    free(v);
    return r;
}

/* ---- decide ---- */

static int emit(struct ws_edl *p, const struct ws_policy_snapshot *snap, const struct ws_edl_job *j,
                struct ws_policy_decisions *ret)
{
    bool dropped = j->place < 0;
    struct ws_policy_decision *d =
        ws_policy_decide(ret, dropped ? WS_DECIDE_DROP : WS_DECIDE_START, j->job,
                         dropped ? -1 : p->pairs.gpu_of[j->place]);
    if (!d)
        return ws_raise(-ENOMEM);
    if (dropped) {
        p->counts.n_dropped++;
        if (isnan(j->room))
            ws_policy_explain(snap, d, "no setting meets deadline %g: shortest length %g",
                              j->deadline,
                              j->task ? ws_dvfs_t_min(j->task, &p->interval) : j->best.t);
        else
            ws_policy_explain(snap, d, "no pair meets deadline %g and all %d are on", j->deadline,
                              p->pairs.n);
        return 0;
    }
    int server = p->pairs.server_of[j->place];
    d->server = server >= 0 ? p->pairs.servers[server].id : -1;
    d->at = d->gpu_start = j->at;
    d->gpu_end = d->end = j->at + j->point.t;
    d->volt = j->point.v;
    d->f_core = j->point.fc;
    d->f_mem = j->point.fm;
    d->energy = j->point.e;
    ws_policy_explain(snap, d, "best length %g%s; from %g to %g, deadline %g%s", j->best.t,
                      j->prior ? " (hurried by its deadline)" : "", d->at, d->end, j->deadline,
                      j->readjusted ? ", shortened to the room left" : "");
    return 0;
}

static int sleep_due(struct ws_edl *p, struct ws_policy_decisions *ret)
{
    struct ws_edl_pairs *c = &p->pairs;
    int i;
    while ((i = ws_min_tree_first(&c->sleep, p->now)) >= 0) {
        struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_POWER, -1, -1);
        if (!d)
            return ws_raise(-ENOMEM);
        d->server = c->servers[i].id;
        d->at = p->now;
        ws_edl_pairs_off(c, i);
    }
    return 0;
}

/* Nothing was ever given to a GPU: the first batch may choose its pairs freely. */
static void start(struct ws_edl *p, const struct ws_policy_snapshot *snap)
{
    struct ws_edl_pairs *c = &p->pairs;
    p->started = true;
    p->timer = INFINITY;
    p->first = true;
    ws_edl_pairs_clear(c, p->now);
    for (int i = 0; i < c->n_always; i++) {
        double free_at = fmax(p->now, snap->gpus[c->gpu_of[i]].free_at);
        p->first = p->first && free_at <= p->now;
        ws_min_tree_set(&c->mu, i, free_at);
    }
    for (int i = 0; i < c->n_servers; i++)
        if (snap->gpus[c->gpu_of[c->servers[i].first]].power == WS_GPU_ON) {
            p->first = false;
            ws_edl_pairs_on(c, i, p->now);
            for (int k = c->servers[i].first; k < c->servers[i].first + c->servers[i].n; k++)
                ws_edl_pairs_set(c, k, fmax(p->now, snap->gpus[c->gpu_of[k]].free_at));
        }
    p->opening = p->first && p->rule->grouped && !p->whole_servers;
    if (p->opening)
        ws_min_tree_clear(&c->mu);
    for (int i = 0; i < c->n_always; i++)
        ws_min_tree_set(&c->sum, i, p->opening ? INFINITY : 0);
    p->n_opened = 0;
}

static int place_all(struct ws_edl *p, const struct ws_policy_snapshot *snap,
                     struct ws_policy_decisions *ret)
{
    if (!p->started && snap->n_jobs)
        start(p, snap);
    int r = collect(p, snap);
    for (size_t i = 0; i < p->n_jobs && !r; i++)
        if (!isnan(p->jobs[i].room))
            r = place_job(p, &snap->jobs[p->jobs[i].job], &p->jobs[i], ret);
    if (!r && p->opening)
        r = group(p, ret);
    p->first = p->opening = false;
    for (size_t i = 0; i < p->n_jobs && !r; i++)
        r = emit(p, snap, &p->jobs[i], ret);
    return r;
}

int ws_edl_decide(struct ws_policy *policy, const struct ws_policy_snapshot *snap,
                  const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    struct ws_edl *p = edl_of(policy);
    if (!p->prepared)
        return ws_raise(-EINVAL);
    struct ws_edl_pairs *c = &p->pairs;
    p->now = snap->now;
    if (event->kind == WS_EVENT_COMPLETION && p->started && event->gpu >= 0 && event->gpu < c->n) {
        int place = c->place_of[event->gpu];
        if (!isinf(ws_min_tree_get(&c->mu, place)))
            ws_edl_pairs_set(c, place, snap->gpus[event->gpu].free_at);
    }
    /* At a completion others may end at the same instant, so sleeping waits for the timer. */
    int r = 0;
    if (event->kind != WS_EVENT_COMPLETION) {
        r = sleep_due(p, ret);
        r = r ? r : place_all(p, snap, ret);
    }
    double next = p->started ? ws_min_tree_min(&c->sleep) : INFINITY;
    if (!r && next < INFINITY && next != p->timer) {
        struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_TIMER, -1, -1);
        if (!d)
            return ws_raise(-ENOMEM);
        d->at = p->timer = next;
    }
    return r;
}

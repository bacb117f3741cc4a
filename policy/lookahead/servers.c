// SPDX-License-Identifier: Apache-2.0
/* wattshare-servers: our own policy's greedy rule, for clusters of policy/edl.h.
 *
 * A job is compared on all pairs that are on, and on a server that would have to be switched on.
 * The place and the setting that add the least energy are taken:
 *
 *     E = P·t + pi·(max(0, asleep with the job - asleep without it) - t)
 *
 * P and t are its power and its time, pi is what an idle pair takes, and a server falls asleep when
 * its pairs have been idle for long enough. So a job pays for the time that its pair is awake for
 * it and idle. A server that is off costs the energy of switching a pair on more, and is awake from
 * now on.
 *
 * The other pairs of a server that is kept awake, or switched on, are not charged to the job: jobs
 * that are yet to come will use them. Charged to it, they would be paid for twice, and jobs would
 * rather be shortened or go to another server than keep a server awake that has work anyway.
 *
 * The setting of least energy is the one to begin with. Where it would be late, or would keep its
 * server awake, the job may also be shortened to the room until its deadline, or until the server's
 * last job ends. That is done where it takes less than the alternatives, so that no share of the
 * length (theta of EDL) need be chosen.
 *
 * Of places that add the same, the one whose pair is busy longest is taken, so that those that are
 * free early stay free for urgent jobs. A job without a deadline takes the one that is free
 * first. */
#include "config.h"

#include <math.h>

#include "policy/edl_core.h"

/* By what share of its energy one place must be cheaper: more than rounding. */
static const double less = 1e-9;

/* A place that was found, and what it adds. */
struct offer {
    int place;          /* -1: a server that is off */
    double added, rank; /* of places that add the same, the highest rank is taken */
    struct ws_dvfs_point point;
};
/* What is the same for all pairs of a server. */
struct awake {
    double until; /* when it falls asleep; INFINITY: never */
    double busy;  /* when its last job ends */
};

static const struct ws_policy_gpu_type *type_of(const struct ws_edl *p)
{
    return &p->system->types[p->system->gpus[0].type];
}

static double start_at(const struct ws_edl *p, int place)
{
    return fmax(p->now, ws_min_tree_get(&p->pairs.mu, place));
}

static void consider(const struct ws_edl *p, const struct ws_edl_job *j, int place,
                     const struct awake *a, const struct ws_dvfs_point *point, struct offer *best)
{
    const struct ws_edl_pairs *c = &p->pairs;
    double mu = ws_min_tree_get(&c->mu, place), rank = isinf(j->deadline) ? -mu : mu;
    double end = start_at(p, place) + point->t;
    double longer = fmax(0, ws_edl_pairs_sleep_at(c, end) - a->until);
    double added = point->e + type_of(p)->static_w * (longer - point->t);
    double rounding = less * point->e;
    if (added < best->added - rounding || (added <= best->added + rounding && rank > best->rank))
        *best = (struct offer){place, added, rank, *point};
}

/* The job at @place, so short that it ends by @end, unless even the least that this can add is more
 * than the best offer so far. */
static void consider_short(const struct ws_edl *p, const struct ws_edl_job *j, int place,
                           const struct awake *a, double end, struct offer *best)
{
    double room = end - start_at(p, place), least = j->best.e - type_of(p)->static_w * j->best.t;
    struct ws_dvfs_point point;
    if (!j->task || least >= best->added || room >= j->best.t)
        return;
    double t_min = ws_dvfs_t_min(j->task, &p->interval);
    if (room + j->tolerance < t_min ||
        ws_dvfs_optimum(j->task, &p->interval, fmax(room, t_min), &point))
        return;
    consider(p, j, place, a, &point, best);
}

static void try_pair(const struct ws_edl *p, const struct ws_edl_job *j, int place,
                     const struct awake *a, struct offer *best)
{
    double mu = ws_min_tree_get(&p->pairs.mu, place);
    if (mu <= ws_edl_latest(p, j)) {
        consider(p, j, place, a, &j->best, best);
        if (start_at(p, place) + j->best.t > a->busy)
            consider_short(p, j, place, a, a->busy, best);
    } else {
        consider_short(p, j, place, a, j->deadline, best);
    }
}

static void try_server(const struct ws_edl *p, const struct ws_edl_job *j, int i,
                       struct offer *best)
{
    const struct ws_edl_pairs *c = &p->pairs;
    const struct ws_edl_server *s = &c->servers[i];
    struct awake a = {.until = ws_min_tree_get(&c->sleep, i)};
    for (int k = s->first; k < s->first + s->n; k++)
        a.busy = fmax(a.busy, ws_min_tree_get(&c->mu, k));
    for (int k = s->first; k < s->first + s->n; k++)
        try_pair(p, j, k, &a, best);
}

/* What it adds to switch on a server for @j. */
static double new_server(const struct ws_edl *p, const struct ws_edl_job *j)
{
    const struct ws_edl_pairs *c = &p->pairs;
    if (ws_min_tree_argmin(&c->off) < 0)
        return INFINITY;
    const struct ws_policy_gpu_type *t = type_of(p);
    double awake = ws_edl_pairs_sleep_at(c, p->now + j->best.t) - p->now;
    return j->best.e + t->turn_on + t->static_w * (awake - j->best.t);
}

static int choose(const struct ws_edl *p, struct ws_edl_job *j)
{
    const struct ws_edl_pairs *c = &p->pairs;
    struct offer best = {.place = -1, .added = new_server(p, j), .rank = -INFINITY};
    const struct awake always = {.until = INFINITY, .busy = INFINITY};
    for (int k = 0; k < c->n_always; k++)
        try_pair(p, j, k, &always, &best);
    for (int i = 0; i < c->n_servers && c->servers[i].first < c->n_seen; i++)
        if (c->servers[i].on)
            try_server(p, j, i, &best);
    if (best.place >= 0 && best.point.t < j->best.t) {
        j->best = best.point;
        j->readjusted = true;
    }
    return best.place;
}

static const struct ws_edl_rule rule = {.choose = choose};

static const struct ws_policy_option options[] = {WS_EDL_OPTIONS};

WS_EDL_POLICY(wattshare_servers, rule, "wattshare-servers",
              "deadlines on a DVFS cluster: what adds the least energy (our own)");

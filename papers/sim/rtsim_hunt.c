// SPDX-License-Identifier: Apache-2.0
/* The hunt has three kinds of runs: releases at random; releases shortly before a common moment,
 * where interference is largest; and small changes of the run with the highest response over
 * bound so far. Execution times are full or random shares of it, because a task that finishes
 * early may let others come at a worse moment. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "papers/sets/random.h"
#include "papers/sim/rtsim_hunt.h"

static int64_t longest_period(const struct ws_rtsim_set *s)
{
    int64_t longest = 0;
    for (int i = 0; i < s->n_tasks; i++)
        longest = WS_MAX(longest, s->tasks[i].period);
    return longest;
}

static void anywhere(struct ws_random *r, const struct ws_rtsim_set *s, int64_t *offsets)
{
    for (int i = 0; i < s->n_tasks; i++)
        offsets[i] = ws_random_integer(r, 0, s->tasks[i].period - 1);
}

static void crowded(struct ws_random *r, const struct ws_rtsim_set *s, int64_t *offsets,
                    int64_t moment)
{
    int64_t spread = (int64_t)(ws_random_unit(r) * ws_random_unit(r) * 20.0 * (double)s->per_ms);
    for (int i = 0; i < s->n_tasks; i++) {
        int64_t before = ws_random_integer(r, 0, spread);
        offsets[i] =
            ((moment - before) % s->tasks[i].period + s->tasks[i].period) % s->tasks[i].period;
    }
}

static void nudged(struct ws_random *r, const struct ws_rtsim_set *s, int64_t *offsets,
                   const int64_t *best)
{
    memcpy(offsets, best, (size_t)s->n_tasks * sizeof(*offsets));
    int n = (int)ws_random_integer(r, 1, 3);
    for (int k = 0; k < n; k++) {
        int i = (int)ws_random_integer(r, 0, s->n_tasks - 1);
        int64_t t = s->tasks[i].period;
        int64_t reach = ws_random_integer(r, 0, 3) ? WS_MIN(t, 3 * s->per_ms) : t;
        offsets[i] = ((offsets[i] + ws_random_integer(r, -reach, reach)) % t + t) % t;
    }
}

static void take(const struct ws_rtsim_set *s, const int64_t *bounds,
                 const struct ws_rtsim_result *one, struct ws_rtsim_prey *ret, double *ret_ratio,
                 int *ret_task)
{
    *ret_ratio = 0;
    *ret_task = -1;
    for (int i = 0; i < s->n_tasks; i++) {
        const struct ws_rtsim_task_result *t = &one->tasks[i];
        struct ws_rtsim_task_result *all = &ret->tasks[i];
        all->n_jobs += t->n_jobs;
        all->n_missed += t->n_missed;
        all->n_finished += t->n_finished;
        all->sum += t->sum;
        if (t->worst > all->worst) {
            all->worst = t->worst;
            all->worst_release = t->worst_release;
        }
        int64_t deadline = s->tasks[i].best_effort ? 0 : s->tasks[i].deadline;
        int64_t bound = bounds ? bounds[i] : deadline;
        if (bound <= 0)
            continue;
        double ratio = (double)t->worst / (double)bound;
        if (ratio > *ret_ratio) {
            *ret_ratio = ratio;
            *ret_task = i;
        }
    }
    ret->n_jobs += one->n_jobs;
    ret->n_events += one->n_events;
    ret->n_scanned++;
}

int ws_rtsim_hunt(struct ws_rtsim *rt, const struct ws_rtsim_set *set, const int64_t *bounds,
                  const struct ws_rtsim_hunt *h, struct ws_rtsim_prey *ret)
{
    static const int shares[] = {1000, 1000, 1000, 800, 500, 100};
    static const int slacks[] = {0, 0, 0, 50, 300};
    size_t n = (size_t)set->n_tasks;
    int64_t *offsets = ws_alloc_array(2 * n, sizeof(*offsets)),
            *best = offsets ? offsets + n : NULL;
    if (!offsets)
        return -ENOMEM;
    int64_t longest = longest_period(set);
    struct ws_random r;
    ws_random_init(&r, h->seed);
    memset(ret->tasks, 0, n * sizeof(*ret->tasks));
    ret->ratio = 0;
    ret->task = -1;
    ret->n_jobs = ret->n_events = ret->n_scanned = 0;
    int e = 0;
    for (int k = 0; k < h->n_runs && !e; k++) {
        struct ws_rtsim_scenario s = {.offsets = offsets,
                                      .horizon =
                                          h->horizon > 0 ? h->horizon : longest * h->n_periods,
                                      .exec_permille = 1000,
                                      .seed = ws_random_next(&r)};
        if (k == 0) { /* as the set has it */
            for (size_t i = 0; i < n; i++)
                offsets[i] = set->tasks[i].offset;
        } else {
            int64_t kind = ws_random_integer(&r, 0, 3);
            s.exec_permille = shares[ws_random_integer(&r, 0, WS_ARRAY_SIZE(shares) - 1)];
            s.slack_permille = slacks[ws_random_integer(&r, 0, WS_ARRAY_SIZE(slacks) - 1)];
            if (kind >= 2 && ret->task >= 0) {
                nudged(&r, set, offsets, best);
                if (ws_random_integer(&r, 0, 3)) {
                    s.exec_permille = ret->scenario.exec_permille;
                    s.slack_permille = ret->scenario.slack_permille;
                    s.seed = ret->scenario.seed;
                }
            } else if (kind == 0) {
                anywhere(&r, set, offsets);
            } else {
                crowded(&r, set, offsets, longest);
            }
            if (h->full_length)
                s.exec_permille = 1000;
        }
        struct ws_rtsim_result one;
        if ((e = ws_rtsim_run(rt, &s, NULL, &one)))
            break;
        double ratio;
        int task;
        take(set, bounds, &one, ret, &ratio, &task);
        if (task >= 0 && ratio > ret->ratio) {
            ret->ratio = ratio;
            ret->task = task;
            ret->scenario = s;
            memcpy(best, offsets, n * sizeof(*best));
        }
    }
    if (ret->offsets)
        memcpy(ret->offsets, best, n * sizeof(*best));
    ret->scenario.offsets = ret->offsets;
    free(offsets);
    return e;
}

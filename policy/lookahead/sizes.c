// SPDX-License-Identifier: Apache-2.0
/* How much of the GPUs a job of each task takes, which tasks are given up first where not all jobs
 * can be in time, and a GPU for each task such that the load of the GPUs is even (rollout.h). */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/minmax.h"
#include "policy/lookahead/rollout.h"

struct ranked {
    double key;
    int task;
};

static int falling(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    int order = (x->key < y->key) - (x->key > y->key);
    return order ? order : x->task - y->task;
}

/* SMs, and a share of all SMs of the GPU, times the time for which a job of @task takes them on
 * @gpu, where that is least and the job is in time. INFINITY: it never is. */
static double area(const struct ws_rollout *r, int task, int gpu)
{
    const struct ws_rollout_item *it = ws_rollout_item(r, task, gpu);
    double deadline = r->sys->tasks[task].deadline, least = INFINITY;
    int limit = r->sys->gpus[gpu].sm_limit;
    for (int i = 0; i < it->n_counts && it->counts[i].n_sm <= limit; i++) {
        double ms = it->in + it->counts[i].kernel * it->shrink + it->out;
        if (!(deadline > 0) || ms <= deadline)
            least = ws_lesser(least, ms * (it->counts[i].n_sm + WS_ROLLOUT_ALL_SMS * limit));
    }
    return least;
}

/* Of the time and the SMs of @gpu, the part that @task takes there. */
static double load(const struct ws_rollout *r, int task, int gpu)
{
    double period = r->sys->tasks[task].period, all = area(r, task, gpu);
    if (isinf(all))
        return all;
    return period > 0 ? all / (period * (1 + WS_ROLLOUT_ALL_SMS) * r->sys->gpus[gpu].sm_limit) : 0;
}

static void find_sizes(struct ws_rollout *r, struct ranked *order)
{
    const int n = r->sys->n_tasks;
    for (int i = 0; i < n; i++) {
        r->size[i] = INFINITY;
        for (int k = 0; k < r->sys->n_gpus; k++)
            if (r->twin[k] < 0)
                r->size[i] = ws_lesser(r->size[i], area(r, i, k));
        r->size[i] /= ws_rollout_importance(r, i);
        bool timed = r->sys->tasks[i].deadline > 0;
        order[i] = (struct ranked){timed ? r->size[i] : -1, i};
    }
    qsort(order, (size_t)n, sizeof(*order), falling);
    for (int i = 0; i < n; i++)
        r->rank[order[i].task] = i;
}

/* The task with the largest load first: each goes where the load is least with it. */
static void find_homes(struct ws_rollout *r, struct ranked *order, double *loads)
{
    const int n = r->sys->n_tasks;
    for (int i = 0; i < n; i++) {
        order[i] = (struct ranked){INFINITY, i};
        for (int k = 0; k < r->sys->n_gpus; k++)
            if (r->twin[k] < 0)
                order[i].key = ws_lesser(order[i].key, load(r, i, k));
    }
    qsort(order, (size_t)n, sizeof(*order), falling);
    for (int i = 0; i < n; i++) {
        double least = INFINITY;
        int task = order[i].task, home = -1;
        for (int k = 0; k < r->sys->n_gpus; k++) {
            double with = loads[k] + load(r, task, k);
            if (with < least) {
                least = with;
                home = k;
            }
        }
        r->home[task] = home;
        if (home >= 0)
            loads[home] = least;
    }
}

int ws_rollout_measure(struct ws_rollout *r)
{
    size_t n = (size_t)WS_MAX(r->sys->n_tasks, 1), k = (size_t)WS_MAX(r->sys->n_gpus, 1);
    struct ranked *order = ws_alloc_array(n, sizeof(*order));
    double *loads = ws_alloc_array(k, sizeof(*loads));
    if (order && loads) {
        find_sizes(r, order);
        find_homes(r, order, loads);
    }
    int e = order && loads ? 0 : ws_raise(-ENOMEM);
    free(order);
    free(loads);
    return e;
}

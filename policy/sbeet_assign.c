// SPDX-License-Identifier: Apache-2.0
/* The offline part of the sBEET family: to which GPU a task belongs.
 *
 * Alg. 1 of sBEET-mg, as its authors' program runs it, takes the tasks in order of priority. A task
 * goes to the GPU that costs it the least energy among those where its mean utilisation over
 * 1…limit SMs still fits. If it fits on none, it goes to the GPU whose sum of utilisations is
 * least, and counts there with its energy-optimal number of SMs. (The paper prints the GPUs in the
 * opposite order, and tests the utilisation at that number.)
 *
 * The bin packers take the tasks by decreasing stated utilisation. Each GPU is a bin of capacity
 * 1. */
#include "config.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "policy/sbeet_core.h"

static struct ws_energy_kernel kernel_of(const struct ws_policy_cost *c)
{
    return (struct ws_energy_kernel){
        .n_sm = c->n_sm, .wcet = c->wcet, .h2d = c->h2d, .d2h = c->d2h};
}

/* Work that comes at no known rate loads nothing. */
static double mean_utilization(const struct ws_sbeet *p, int task, int gpu)
{
    double period = p->sys->tasks[task].period;
    struct ws_energy_kernel k = kernel_of(ws_sbeet_item(p, task, gpu)->cost);
    return period > 0 ? ws_energy_mean_utilization(&k, p->gpus[gpu].limit, period) : 0;
}

static double optimal_utilization(const struct ws_sbeet *p, int task, int gpu)
{
    const struct ws_sbeet_item *it = ws_sbeet_item(p, task, gpu);
    double period = p->sys->tasks[task].period;
    struct ws_energy_kernel k = kernel_of(it->cost);
    return period > 0 ? ws_energy_utilization(&k, it->m_opt, period) : 0;
}

static void assign_alg1(struct ws_sbeet *p, double *load)
{
    for (int i = 0; i < p->sys->n_tasks; i++) {
        const int *rank = &p->rank[(size_t)i * (size_t)p->sys->n_gpus];
        double least = INFINITY;
        int least_at = -1;
        p->home[i] = -1;
        for (int r = 0; r < p->n_rank[i] && p->home[i] < 0; r++) {
            double u = mean_utilization(p, i, rank[r]);
            if (load[rank[r]] + u <= 1) {
                p->home[i] = rank[r];
                load[rank[r]] += u;
            }
        }
        if (p->home[i] >= 0)
            continue;
        for (int k = 0; k < p->sys->n_gpus; k++) { /* by index, not by rank: the first of equals */
            if (!ws_sbeet_item(p, i, k)->cost)
                continue;
            double u = load[k] + mean_utilization(p, i, k);
            if (u < least) {
                least = u;
                least_at = k;
            }
        }
        p->home[i] = least_at;
        if (least_at >= 0)
            load[least_at] += optimal_utilization(p, i, least_at);
    }
}

/* What the user states; else the mean utilisation on the largest GPU where the cost is known. */
static double stated_utilization(const struct ws_sbeet *p, int task)
{
    const struct ws_policy_task *t = &p->sys->tasks[task];
    if (t->utilization > 0)
        return t->utilization;
    for (int i = 0; i < p->sys->n_gpus; i++)
        if (ws_sbeet_item(p, task, p->by_size[i])->cost)
            return mean_utilization(p, task, p->by_size[i]);
    return 0;
}

static int choose_bin(const struct ws_sbeet *p, int task, double u, const double *load)
{
    int best = -1;
    for (int k = 0; k < p->sys->n_gpus; k++) {
        if (!ws_sbeet_item(p, task, k)->cost)
            continue;
        bool fits = load[k] + u <= 1;
        switch (p->rule->assign) {
        case WS_SBEET_ASSIGN_WFD:
            if (best < 0 || load[k] < load[best])
                best = k;
            break;
        case WS_SBEET_ASSIGN_BFD:
            if (fits && (best < 0 || load[k] > load[best]))
                best = k;
            break;
        default: /* first fit */
            if (fits && best < 0)
                best = k;
        }
    }
    return best;
}

static int assign_bins(struct ws_sbeet *p, double *load, char *ret_error, size_t error_bytes)
{
    int n = p->sys->n_tasks, r = 0;
    double *u = ws_alloc_array((size_t)WS_MAX(n, 1), sizeof(*u));
    int *order = ws_alloc_array((size_t)WS_MAX(n, 1), sizeof(*order));
    if (!u || !order) {
        free(u);
        free(order);
        return ws_raise(-ENOMEM);
    }
    for (int i = 0; i < n; i++)
        u[i] = -stated_utilization(p, i);
    ws_energy_rank(u, n, order);
    for (int i = 0; i < n; i++) {
        int task = order[i], k = choose_bin(p, task, -u[task], load);
        if (k < 0 && p->n_rank[task]) { /* in none: the emptiest, and it is said */
            for (int b = 0; b < p->sys->n_gpus; b++)
                if (ws_sbeet_item(p, task, b)->cost && (k < 0 || load[b] < load[k]))
                    k = b;
            if (!r)
                snprintf(ret_error, error_bytes, "task %d (%s): utilisation %.3g fits on no GPU",
                         p->sys->tasks[task].id,
                         p->sys->tasks[task].name ? p->sys->tasks[task].name : "", -u[task]);
            r = WS_POLICY_E_UNFIT;
        }
        p->home[task] = k;
        if (k >= 0)
            load[k] += -u[task];
    }
    free(u);
    free(order);
    return r;
}

int ws_sbeet_assign(struct ws_sbeet *p, char *ret_error, size_t error_bytes)
{
    double *load = ws_alloc_array((size_t)WS_MAX(p->sys->n_gpus, 1), sizeof(*load));
    int r = 0;
    if (!load)
        return ws_raise(-ENOMEM);
    if (p->rule->assign == WS_SBEET_ASSIGN_NONE)
        for (int i = 0; i < p->sys->n_tasks; i++)
            p->home[i] = -1;
    else if (p->rule->assign == WS_SBEET_ASSIGN_ALG1)
        assign_alg1(p, load);
    else
        r = assign_bins(p, load, ret_error, error_bytes);
    free(load);
    return r;
}

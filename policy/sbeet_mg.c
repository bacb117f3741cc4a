// SPDX-License-Identifier: Apache-2.0
/* sBEET-mg schedules several GPUs, and moves jobs between them if that saves energy. Source: RTSS
 * 2022, Alg. 1 (sbeet_assign.c) and Alg. 2, in the form that its authors' program runs, with the
 * errors of the printed algorithm corrected: line 40 calls sBEET for the GPU in question; the
 * configuration of the minimum is kept; no configuration costs infinity.
 *
 * x is the GPU to which the task belongs. If x is idle, it competes by predicted energy with the
 * GPUs that are at work and where the job would fit beside what runs. If x is partly used, sBEET
 * for x alone decides. If x is full, the job waits if it would still be in time, and else goes to
 * the cheapest other GPU where sBEET finds a configuration that is in time.
 *
 * Our extension: if the job's data is on a GPU that serves the rule as well as x, that GPU takes
 * the place of x (ws_sbeet_own_gpu()). The time of a move counts in the job's response, and its
 * energy in the price of a placement. The authors' jobs copy in all they need wherever they run.
 *
 * Costs that come from meters have errors. A job leaves its idle GPU only for one that is cheaper
 * by more than one standard error of what the two predictions differ by [ours]; with exact costs
 * that is the authors' rule.
 *
 * forms.shared_objects reproduces an error of the released program: all candidates are one object,
 * so the cheapest candidate runs with the configuration of the GPU that was looked at last. This
 * shows with three GPUs and more, and takes more energy. */
#include "config.h"

#include <math.h>

#include "policy/sbeet_core.h"

struct best {
    struct ws_sbeet_choice choice;
    double energy, second;
    bool own;
    int n;
};

static void offer(const struct ws_sbeet *p, struct best *b, const struct ws_sbeet_choice *c,
                  double energy, bool own)
{
    b->n++;
    bool nearer = energy == b->energy && ws_policy_nearer(p->job, c->c.gpu, b->choice.c.gpu);
    if (b->n > 1 && !(energy < b->energy) && !nearer) {
        b->second = fmin(b->second, energy);
        return;
    }
    if (b->n > 1)
        b->second = b->energy;
    b->choice = *c;
    b->energy = energy;
    b->own = own;
}

static bool take(struct ws_sbeet *p, const struct best *b, struct ws_sbeet_choice *ret)
{
    const char *reason = ret->reason;
    if (!b->n)
        return false;
    *ret = b->choice;
    if (p->forms.shared_objects && b->own)
        ret->c = p->object;
    ret->reason = reason;
    ret->energy = b->energy;
    ret->other_energy = b->n > 1 ? b->second : NAN;
    ret->n_candidates = b->n;
    return true;
}

/* The square of the error of what @c is predicted to cost. */
static double doubt(const struct ws_sbeet *p, int task, const struct ws_sbeet_config *c)
{
    const struct ws_policy_cost *cost = ws_sbeet_item(p, task, c->gpu)->cost;
    struct ws_energy_kernel k = {.n_sm = cost->n_sm,
                                 .wcet = cost->wcet,
                                 .power_w = cost->power_w,
                                 .dyn_w_per_sm = cost->dyn_w_per_sm};
    int m = WS_MIN(c->n_sm, cost->n_sm);
    double e = cost->energy_error > 0
                   ? cost->energy_error * ws_energy_active_mj(&p->gpus[c->gpu].power, &k, m)
                   : 0;
    return e * e;
}

static bool own_gpu_idle(struct ws_sbeet *p, int task, double deadline, int x,
                         struct ws_sbeet_choice *ret)
{
    struct best b = {.second = INFINITY};
    struct ws_sbeet_choice c = {.energy = NAN};
    c.c = ws_sbeet_configure(p, task, deadline, x, ws_sbeet_item(p, task, x)->m_opt, p->now);
    if (!ws_sbeet_feasible(p, &c.c))
        c.c = ws_sbeet_configure(p, task, deadline, x, p->gpus[x].limit, p->now);
    double here = ws_sbeet_price(p, p->now, c.c.ge, &c.c), here_doubt = doubt(p, task, &c.c);
    bool unsure = false;
    offer(p, &b, &c, here, false);
    for (int i = 0; i < p->n_rank[task]; i++) {
        int k = p->rank[(size_t)task * (size_t)p->sys->n_gpus + (size_t)i];
        bool found, own;
        if (k == x || ws_sbeet_full(&p->gpus[k]) || ws_sbeet_idle(&p->gpus[k]))
            continue;
        ws_sbeet_on_gpu(p, task, deadline, k, &c, &found, &own);
        if (!found || c.c.fin > deadline)
            continue;
        double there = ws_sbeet_price(p, p->now, c.c.fin, &c.c),
               error = sqrt(here_doubt + doubt(p, task, &c.c));
        if (there < here && there >= here - error) {
            unsure = true;
            b.n++;
            b.second = fmin(b.second, there);
        } else {
            offer(p, &b, &c, there, own);
        }
    }
    ret->reason = "its GPU is idle";
    if (b.choice.c.gpu != x)
        ret->reason = "cheaper beside what runs than on its own GPU";
    else if (unsure)
        ret->reason =
            "its GPU is idle, and no other is cheaper by more than the predictions' error";
    return take(p, &b, ret);
}

static bool own_gpu_full(struct ws_sbeet *p, int task, double deadline, int x,
                         struct ws_sbeet_choice *ret)
{
    const struct ws_sbeet_item *it = ws_sbeet_item(p, task, x);
    double at = ws_sbeet_free_again(p, x, it->m_opt);
    struct ws_sbeet_config wait = ws_sbeet_configure(p, task, deadline, x, it->m_opt, at);
    bool in_time = p->gpus[x].usable && wait.fin <= deadline;
    ret->reason = "waiting for its own GPU is in time";
    if (in_time && !p->forms.compare_waiting)
        return false;
    struct best b = {.second = INFINITY};
    for (int k = 0; k < p->sys->n_gpus; k++) {
        struct ws_sbeet_choice c;
        bool found, own;
        if (k == x || ws_sbeet_full(&p->gpus[k]))
            continue;
        if (ws_sbeet_on_gpu(p, task, deadline, k, &c, &found, &own))
            offer(p, &b, &c, ws_sbeet_price(p, p->now, c.c.fin, &c.c), own);
    }
    if (in_time) {
        double e = ws_sbeet_price(p, p->now, at, NULL) + ws_sbeet_price(p, at, wait.fin, &wait);
        if (!b.n || e <= b.energy)
            return false;
    }
    ret->reason =
        b.n ? "its own GPU is full" : "its own GPU is full, and it would be late everywhere";
    return take(p, &b, ret);
}

static bool choose(struct ws_sbeet *p, int task, double deadline, struct ws_sbeet_choice *ret)
{
    int x = ws_sbeet_own_gpu(p, task, deadline);
    bool found, own;
    if (ws_sbeet_full(&p->gpus[x]))
        return own_gpu_full(p, task, deadline, x, ret);
    if (ws_sbeet_idle(&p->gpus[x]))
        return own_gpu_idle(p, task, deadline, x, ret);
    ws_sbeet_on_gpu(p, task, deadline, x, ret, &found, &own);
    ret->reason = found ? "beside what runs on its GPU"
                        : "beside what runs it would be late, or leave the GPU partly idle";
    return found;
}

static const struct ws_sbeet_rule rule = {WS_SBEET_ASSIGN_ALG1, choose};
WS_SBEET_OPS(sbeet_mg, "sbeet-mg",
             "energy-preferred GPUs, migration by predicted energy (RTSS 2022)", ws_sbeet_options,
             rule);

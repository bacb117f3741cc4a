// SPDX-License-Identifier: Apache-2.0
/* Preemption in rollouts: which job is taken off a GPU for another one, and what that changes.
 *
 * A run is taken off between its blocks: those that run end first. Then its GPU is open to others
 * after update_ms, and the job is ready again, with what is left of its kernel. To put it back
 * takes switch_ms and update_ms (ws_rollout_site()), and the copies in are not made again. What
 * else is free on that GPU is left alone meanwhile. */
#include "config.h"

#include <math.h>

#include "base/minmax.h"
#include "policy/lookahead/rollout.h"
#include "policy/stop.h"

static const struct ws_policy_gpu_type *type_of(const struct ws_rollout *r, int gpu)
{
    return &r->sys->types[r->sys->gpus[gpu].type];
}

/* When the blocks of @run have ended, if it is taken off now. */
static double stop_at(const struct ws_rollout *r, const struct ws_rollout_state *s, int run)
{
    const struct ws_rollout_kernel *k = &s->kernels[run];
    const struct ws_policy_cost *c = ws_rollout_item(r, k->job.task, s->runs[run].gpu)->cost;
    double n_stops = c ? c->n_stops * k->job.left : 0;
    return ws_policy_stop_at(n_stops, s->runs[run].n_sm, k->start, k->end, s->now);
}

double ws_rollout_open_at(const struct ws_rollout *r, const struct ws_rollout_state *s, int run)
{
    return stop_at(r, s, run) + type_of(r, s->runs[run].gpu)->update_ms;
}

/* What is left of the kernel of @run after @stop, in ms. */
static double left_ms(const struct ws_rollout_state *s, int run, double stop)
{
    return ws_greater(0, s->kernels[run].end - ws_greater(s->kernels[run].start, stop));
}

/* When @j would end if it took the place of @run, and all else that is free there. INFINITY: it
 * has no time known for that. */
static double end_instead(const struct ws_rollout *r, const struct ws_rollout_state *s,
                          const struct ws_rollout_job *j, int run)
{
    const int gpu = s->runs[run].gpu;
    const struct ws_rollout_item *it = ws_rollout_item(r, j->task, gpu);
    int n_sm = WS_MIN(WS_MAX(s->gpus[gpu].n_sm, 0) + s->runs[run].n_sm, WS_SM_MAX);
    if (s->gpus[gpu].n_slots < 0 || !it->n_counts || it->most[n_sm] < 0)
        return INFINITY;
    struct ws_rollout_site x = ws_rollout_site(r, s, j, gpu, &s->gpus[gpu].clocks);
    return x.from + ws_rollout_open_at(r, s, run) - s->now +
           it->counts[it->most[n_sm]].kernel * x.stretch * j->left + x.out;
}

/* Whether @run is in time if it goes on at @from. */
static bool in_time_after(const struct ws_rollout *r, const struct ws_rollout_state *s, int run,
                          double from)
{
    const struct ws_policy_gpu_type *t = type_of(r, s->runs[run].gpu);
    const struct ws_rollout_kernel *k = &s->kernels[run];
    double out = s->runs[run].end - k->end;
    return from + t->switch_ms + t->update_ms + left_ms(s, run, stop_at(r, s, run)) + out <=
           k->job.deadline + WS_ROLLOUT_SLIP;
}

int ws_rollout_victim(struct ws_rollout *r, const struct ws_rollout_state *s,
                      const struct ws_rollout_job *j, int last, bool spared)
{
    const double most = last < 0 ? INFINITY : s->kernels[last].job.deadline;
    int best = -1;
    r->n_evaluated += (uint64_t)s->n_runs;
    for (int i = 0; i < s->n_runs; i++) {
        double deadline = s->kernels[i].job.deadline;
        bool away = s->base.at_home && r->home[j->task] >= 0 && r->home[j->task] != s->runs[i].gpu;
        if (away || !(deadline > j->deadline + WS_ROLLOUT_SLIP) ||
            left_ms(s, i, stop_at(r, s, i)) <= 0 || (last >= 0 && deadline >= most) ||
            (best >= 0 && deadline <= s->kernels[best].job.deadline))
            continue;
        double end = end_instead(r, s, j, i);
        if (end <= j->deadline + WS_ROLLOUT_SLIP && (!spared || in_time_after(r, s, i, end)))
            best = i;
    }
    return best;
}

/* The share of the work of @run's job that is left after @stop. */
static double share_left(const struct ws_rollout *r, const struct ws_rollout_state *s, int run,
                         double stop)
{
    const struct ws_rollout_run *x = &s->runs[run];
    const struct ws_rollout_job *j = &s->kernels[run].job;
    const struct ws_policy_cost *c = ws_rollout_item(r, j->task, x->gpu)->cost;
    if (!c || c->n_sm < 1)
        return j->left;
    double ms = c->wcet[WS_MIN(WS_MAX(x->n_sm, 1), c->n_sm) - 1] * j->margin;
    if (r->interval)
        ms *= ws_policy_clocks_stretch(c, &s->gpus[x->gpu].clocks);
    return ms > 0 ? ws_lesser(j->left, left_ms(s, run, stop) / ms) : j->left;
}

/* What it will not take any more after @stop: energy of its kernel, and of a GPU that it keeps
 * awake. */
static double energy_left(const struct ws_rollout *r, const struct ws_rollout_state *s, int run,
                          double stop, double awake_until)
{
    const struct ws_rollout_run *x = &s->runs[run];
    const struct ws_policy_gpu_type *t = type_of(r, x->gpu);
    const struct ws_policy_cost *c = ws_rollout_item(r, s->kernels[run].job.task, x->gpu)->cost;
    double w = c ? c->dyn_w_per_sm - t->idle_w_per_sm : 0;
    if (c && r->interval)
        w += ws_policy_clocks_extra_w(c, t->n_sm, &s->gpus[x->gpu].clocks);
    return w * x->n_sm * left_ms(s, run, stop) +
           ws_greater(0, s->gpus[x->gpu].awake_until - awake_until) *
               r->awake_w[r->sys->gpus[x->gpu].type];
}

int ws_rollout_take_off(struct ws_rollout *r, struct ws_rollout_state *s, int run)
{
    const struct ws_rollout_run x = s->runs[run];
    struct ws_rollout_gpu *g = &s->gpus[x.gpu];
    struct ws_rollout_job j = s->kernels[run].job;
    const double stop = stop_at(r, s, run), open_at = ws_rollout_open_at(r, s, run);
    double awake_until = open_at;
    for (int i = 0; i < s->n_runs; i++)
        if (i != run && s->runs[i].gpu == x.gpu)
            awake_until = ws_greater(awake_until, s->runs[i].end);
    r->n_evaluated += (uint64_t)s->n_runs;
    s->outcome.energy -= energy_left(r, s, run, stop, awake_until) * j.weight;
    j.left = share_left(r, s, run, stop);
    j.preempted = true;
    j.blocked = false;
    j.hold = stop;
    g->n_slots++;
    g->n_running--;
    g->n_sm += x.n_sm;
    g->awake_until = awake_until;
    g->open_at = open_at;
    s->runs[run] = s->runs[--s->n_runs];
    s->kernels[run] = s->kernels[s->n_runs];
    return ws_rollout_insert(s, &j);
}

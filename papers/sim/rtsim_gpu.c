// SPDX-License-Identifier: Apache-2.0
/* The GPU, in its two forms: a run list whose contexts take turns (rr, gcaps, locks: struct
 * ws_rtsim_gpu), and SM sets, where every started kernel runs at its own speed (stgm). */
#include "config.h"

#include "papers/sim/rtsim_private.h"

static bool has_work(const struct ws_rtsim *rt, int i)
{
    return rt->actors[i].on_gpu && rt->actors[i].gpu_left > 0 && is_listed(rt, i);
}

static int n_working(const struct ws_rtsim *rt)
{
    int n = 0;
    for (int j = 0; j < rt->n_requests; j++)
        n += rt->jobs[j].state == WS_JOB_RUNNING && rt->actors[rt->jobs[j].task].on_gpu &&
             rt->actors[rt->jobs[j].task].gpu_left > 0;
    return n;
}

static int64_t switch_cost(struct ws_rtsim *rt, int to)
{
    bool free_switch = rt->gpu.free_switch;
    rt->gpu.free_switch = false;
    if (to == rt->gpu.last || rt->gpu.last < 0 || free_switch) /* the first context is there */
        return 0;
    return rt->config.policy == WS_RTSIM_RR || rt->config.policy == WS_RTSIM_GCAPS ? rt->set->theta
                                                                                   : 0;
}

/* Whose turn it is. */
void ws_rtsim_gpu_choose(struct ws_rtsim *rt)
{
    struct ws_rtsim_gpu *g = &rt->gpu;
    if (rt->config.policy == WS_RTSIM_STGM || rt->now < g->stalled_until)
        return;
    int n = n_working(rt);
    if (g->current >= 0 && has_work(rt, g->current)) {
        if (g->slice_left <= 0 && n == 1)
            g->slice_left = rt->set->slice;
        if (g->slice_left > 0)
            return;
    }
    int from = g->current >= 0 ? g->current : g->last;
    g->current = -1;
    g->switch_left = 0;
    for (int k = 1; n && k <= rt->set->n_tasks; k++) {
        int i = (from + k + rt->set->n_tasks) % rt->set->n_tasks;
        if (!has_work(rt, i))
            continue;
        g->current = i;
        g->switch_left = switch_cost(rt, i);
        g->slice_left = rt->set->slice;
        g->last = i;
        return;
    }
}

int64_t ws_rtsim_gpu_next(const struct ws_rtsim *rt)
{
    const struct ws_rtsim_gpu *g = &rt->gpu;
    int64_t next = INT64_MAX;
    if (rt->config.policy == WS_RTSIM_STGM) {
        for (int j = 0; j < rt->n_requests; j++) {
            int i = rt->jobs[j].task;
            if (has_work(rt, i))
                next = WS_MIN(next, rt->now + rt->actors[i].gpu_left);
        }
        return next;
    }
    if (rt->now < g->stalled_until)
        return g->stalled_until;
    if (g->current < 0)
        return next;
    if (g->switch_left > 0)
        return rt->now + g->switch_left;
    next = rt->now + rt->actors[g->current].gpu_left;
    return n_working(rt) > 1 ? WS_MIN(next, rt->now + g->slice_left) : next;
}

static void gpu_span(struct ws_rtsim *rt, enum ws_rtsim_span what, int i, int64_t dt)
{
    if (rt->observer && rt->observer->span)
        rt->observer->span(rt->observer->arg, what, -1, i, rt->now, rt->now + dt);
}

void ws_rtsim_gpu_advance(struct ws_rtsim *rt, int64_t dt)
{
    struct ws_rtsim_gpu *g = &rt->gpu;
    if (rt->config.policy == WS_RTSIM_STGM) {
        bool any = false;
        for (int j = 0; j < rt->n_requests; j++)
            if (has_work(rt, rt->jobs[j].task)) {
                rt->actors[rt->jobs[j].task].gpu_left -= dt;
                gpu_span(rt, WS_RTSIM_SPAN_GPU, rt->jobs[j].task, dt);
                any = true;
            }
        rt->total.gpu_busy += any ? dt : 0;
        return;
    }
    if (rt->now < g->stalled_until) {
        rt->total.gpu_updating += dt;
    } else if (g->current >= 0 && g->switch_left > 0) {
        g->switch_left -= dt;
        rt->total.gpu_switching += dt;
        gpu_span(rt, WS_RTSIM_SPAN_SWITCH, g->current, dt);
    } else if (g->current >= 0) {
        rt->actors[g->current].gpu_left -= dt;
        rt->total.gpu_busy += dt;
        gpu_span(rt, WS_RTSIM_SPAN_GPU, g->current, dt);
        g->slice_left -= dt;
        if (g->slice_left <= 0 && n_working(rt) <= 1) /* alone, its slices follow each other */
            g->slice_left += (-g->slice_left / rt->set->slice + 1) * rt->set->slice;
    }
}

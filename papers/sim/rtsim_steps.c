// SPDX-License-Identifier: Apache-2.0
/* What a job does: its program of steps, which is made once for each task, and the steps that
 * take no time (calls, locks, requests). A job is at a step, in the state READY, ASLEEP, SPIN or
 * UPDATE. ws_rtsim_act() and ws_rtsim_grant() each do one step of one job. */
#include "config.h"

#include <errno.h>

#include "base/alloc.h"
#include "papers/sim/rtsim_private.h"

static void add(struct ws_rtsim_actor *a, enum ws_rtsim_step_kind kind, int segment, int64_t length)
{
    a->steps[a->n_steps++] = (struct ws_rtsim_step){kind, segment, length};
}

/* A copy of nothing, or a kernel that takes no time, is no request. */
static void add_request(struct ws_rtsim_actor *a, enum ws_rtsim_step_kind kind, int segment,
                        int64_t length)
{
    if (length > 0)
        add(a, kind, segment, length);
}

static void add_segment(const struct ws_rtsim *rt, struct ws_rtsim_actor *a, int k,
                        const struct ws_rtsim_segment *g)
{
    switch (rt->config.policy) {
    case WS_RTSIM_STGM:
        add(a, STEP_BOOST, k, 0);
        add_request(a, STEP_COPY_IN, k, g->before);
        add_request(a, STEP_GPU, k, g->kernel);
        add_request(a, STEP_COPY_OUT, k, g->after);
        add(a, STEP_UNBOOST, k, 0);
        return;
    case WS_RTSIM_MPCP:
    case WS_RTSIM_FMLP:
        add(a, STEP_LOCK, k, 0);
        add(a, STEP_CPU, k, g->before);
        add(a, STEP_GPU, k, g->kernel);
        add(a, STEP_CPU, k, g->after);
        add(a, STEP_UNLOCK, k, 0);
        return;
    case WS_RTSIM_GCAPS:
        if (rt->config.hold == WS_RTSIM_HOLD_CALLS)
            add(a, STEP_BEGIN, k, 0);
        add(a, STEP_CPU, k, g->before);
        if (rt->config.hold != WS_RTSIM_HOLD_CALLS)
            add(a, STEP_BEGIN, k, 0);
        add(a, STEP_GPU, k, g->kernel);
        if (rt->config.hold ==
            WS_RTSIM_HOLD_WORK) /* the daemon closes; the call itself costs as much */
            add(a, STEP_CPU, k, rt->set->epsilon);
        else
            add(a, STEP_END, k, 0);
        add(a, STEP_CPU, k, g->after);
        return;
    default:
        add(a, STEP_CPU, k, g->before);
        add(a, STEP_GPU, k, g->kernel);
        add(a, STEP_CPU, k, g->after);
    }
}

int ws_rtsim_program(struct ws_rtsim *rt, int i)
{
    const struct ws_rtsim_task *t = &rt->set->tasks[i];
    struct ws_rtsim_actor *a = &rt->actors[i];
    a->steps = ws_alloc_array((size_t)t->n_segments * 6 + 2, sizeof(*a->steps));
    if (!a->steps)
        return -ENOMEM;
    for (int k = 0; k <= t->n_segments; k++) {
        if (t->cpu[k] > 0)
            add(a, STEP_CPU, -1, t->cpu[k]);
        if (k < t->n_segments)
            add_segment(rt, a, k, &t->segments[k]);
    }
    return 0;
}

static int64_t drawn(struct ws_rtsim *rt, int64_t length)
{
    int low = rt->scenario->exec_permille;
    if (low >= 1000 || length == 0)
        return length;
    int64_t share = ws_random_integer(&rt->random, low, 1000);
    return (length * share + 999) / 1000;
}

/* Comes to its step: wants the core, unless it is one that needs none. */
static void enter(struct ws_rtsim *rt, int i)
{
    struct ws_rtsim_actor *a = &rt->actors[i];
    const struct ws_rtsim_step *s = step_of(rt, i);
    a->entered = false;
    a->state = READY;
    a->left = s->kind == STEP_CPU || s->kind == STEP_COPY_IN || s->kind == STEP_COPY_OUT
                  ? drawn(rt, s->length)
                  : 0;
    a->gpu_most = s->length;
    a->gpu_drawn = a->gpu_left = s->kind == STEP_GPU ? drawn(rt, s->length) : 0;
}

void ws_rtsim_job_start(struct ws_rtsim *rt, int i)
{
    struct ws_rtsim_actor *a = &rt->actors[i];
    const struct ws_rtsim_task *t = &rt->set->tasks[i];
    a->release = a->next_release;
    int64_t late =
        rt->scenario->slack_permille
            ? ws_random_integer(&rt->random, 0, t->period * rt->scenario->slack_permille / 1000)
            : 0;
    a->next_release += t->period + late;
    a->next_ready =
        a->next_release + (t->jitter ? ws_random_integer(&rt->random, 0, t->jitter) : 0);
    a->step = 0;
    enter(rt, i);
}

void ws_rtsim_step_next(struct ws_rtsim *rt, int i)
{
    struct ws_rtsim_actor *a = &rt->actors[i];
    if (++a->step < a->n_steps) {
        enter(rt, i);
        return;
    }
    a->state = IDLE;
    ws_rtsim_count(rt, i, rt->now - a->release, true);
    if (rt->observer && rt->observer->job)
        rt->observer->job(rt->observer->arg, i, a->release, rt->now);
    if (a->next_ready <= rt->now)
        ws_rtsim_job_start(rt, i);
}

static void wait_off_core(struct ws_rtsim *rt, int i)
{
    rt->actors[i].state = rt->config.busy ? SPIN : ASLEEP;
}

/* The GPU work of @i is done. */
void ws_rtsim_gpu_done(struct ws_rtsim *rt, int i)
{
    struct ws_rtsim_actor *a = &rt->actors[i];
    a->on_gpu = false;
    if (rt->config.policy == WS_RTSIM_GCAPS)
        a->closing = rt->config.hold == WS_RTSIM_HOLD_WORK;
    else if (rt->config.policy == WS_RTSIM_RR || rt->config.policy == WS_RTSIM_STGM)
        ws_rtsim_request_close(rt, i);
    ws_rtsim_step_next(rt, i);
}

/* Whether @i has something to do now that takes no time of its own; @on_core: it has its core. */
bool ws_rtsim_can_act(const struct ws_rtsim *rt, int i, bool on_core)
{
    const struct ws_rtsim_actor *a = &rt->actors[i];
    if (a->state != READY || a->entered)
        return false;
    switch (step_of(rt, i)->kind) {
    case STEP_CPU:
        return a->left == 0;
    case STEP_GPU:
    case STEP_COPY_IN:
    case STEP_COPY_OUT:
        return true;
    default:
        return on_core;
    }
}

void ws_rtsim_act(struct ws_rtsim *rt, int i)
{
    struct ws_rtsim_actor *a = &rt->actors[i];
    const struct ws_rtsim_step *s = step_of(rt, i);
    switch (s->kind) {
    case STEP_CPU:
        ws_rtsim_step_next(rt, i);
        return;
    case STEP_BEGIN:
    case STEP_END:
        if (rt->lock_holder != LOCK_FREE) {
            a->wants_lock = true;
            a->state = ASLEEP;
            return;
        }
        ws_rtsim_list_update(rt, i,
                             s->kind == STEP_BEGIN ? ws_rtsim_request_open(rt, i, WS_PART_KERNEL)
                                                   : ws_rtsim_request_close(rt, i));
        return;
    case STEP_LOCK:
        a->entered = true;
        a->state = ASLEEP;
        ws_rtsim_request_open(rt, i, WS_PART_KERNEL);
        return;
    case STEP_UNLOCK:
        a->boosted = false;
        ws_rtsim_request_close(rt, i);
        ws_rtsim_step_next(rt, i);
        return;
    case STEP_BOOST:
        a->boosted = true;
        a->boost_seq = ++rt->seq;
        ws_rtsim_step_next(rt, i);
        return;
    case STEP_UNBOOST:
        a->boosted = false;
        ws_rtsim_step_next(rt, i);
        return;
    case STEP_COPY_IN:
    case STEP_COPY_OUT:
        a->entered = true;
        wait_off_core(rt, i);
        ws_rtsim_copy_open(rt, i, s->kind == STEP_COPY_IN ? WS_PART_COPY_IN : WS_PART_COPY_OUT);
        return;
    case STEP_GPU:
        a->entered = true;
        a->on_gpu = true;
        wait_off_core(rt, i);
        if (rt->config.policy == WS_RTSIM_RR || rt->config.policy == WS_RTSIM_STGM)
            ws_rtsim_request_open(rt, i, WS_PART_KERNEL);
        return;
    }
}

/* Requests that were granted: the lock, the copy engine; and kernels of no length. */
bool ws_rtsim_grant(struct ws_rtsim *rt, int i)
{
    struct ws_rtsim_actor *a = &rt->actors[i];
    if ((a->state != ASLEEP && a->state != SPIN) || !a->entered || a->wants_lock)
        return false;
    const struct ws_rtsim_step *s = step_of(rt, i);
    switch (s->kind) {
    case STEP_LOCK:
        if (!is_listed(rt, i))
            return false;
        a->boosted = true;
        a->boost_seq = ++rt->seq;
        ws_rtsim_step_next(rt, i);
        return true;
    case STEP_COPY_IN:
    case STEP_COPY_OUT:
        if (!ws_rtsim_may_copy(rt, i))
            return false;
        if (a->left == 0) {
            ws_rtsim_copy_close(rt, i);
            ws_rtsim_step_next(rt, i);
            return true;
        }
        a->state = READY;
        return true;
    case STEP_GPU:
        if (a->gpu_left > 0 || (rt->config.policy != WS_RTSIM_GCAPS && !is_listed(rt, i)))
            return false;
        ws_rtsim_gpu_done(rt, i);
        return true;
    default:
        return false;
    }
}

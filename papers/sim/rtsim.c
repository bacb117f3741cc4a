// SPDX-License-Identifier: Apache-2.0
/* The real-time simulator.
 *
 * A task's job is a program of steps (struct ws_rtsim_step); all jobs of a task have the same
 * steps with different lengths. The state of a job is the step that it is at, and whether it
 * wants its core (READY), waits without it (ASLEEP), waits on it (SPIN), or is inside a run-list
 * update (UPDATE), which is not preempted. Time advances from event to event:
 *
 *   1. advance() subtracts the time that passed from the running steps of cores and GPU.
 *   2. complete() ends the steps, GPU work and copies that are done, and releases jobs.
 *   3. settle_one() gives cores to the jobs of highest priority, and does steps that take no time
 *      (calls, locks, requests) one at a time, the lowest task number first (which for the
 *      run-list lock is the highest priority), until nothing changes.
 *
 * Invariants: a core has at most one job; a boosted job has priority over all that are not; the
 * run-list lock has at most one holder; the GPU does nothing while its run list is being
 * changed; `jobs` has the requests in order of arrival, as the policy object sees them. The GPU
 * has two forms: a run list whose contexts take turns (rr, gcaps, locks: struct ws_rtsim_gpu),
 * and SM sets, where every started kernel runs at its own speed (stgm). */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "papers/sim/rtsim_private.h"

int ws_rtsim_new(struct ws_rtsim **ret, const struct ws_rtsim_set *set,
                 const struct ws_rtsim_config *config)
{
    char why[128];
    if (ws_rtsim_check(set, why, sizeof(why)))
        return -EINVAL;
    struct ws_rtsim *rt = ws_alloc(sizeof(*rt));
    if (!rt)
        return -ENOMEM;
    size_t n = (size_t)set->n_tasks;
    rt->set = set;
    rt->config = *config;
    rt->actors = ws_alloc_array(n, sizeof(*rt->actors));
    rt->cores = ws_alloc_array((size_t)set->n_cores, sizeof(*rt->cores));
    rt->chosen = ws_alloc_array((size_t)set->n_cores, sizeof(*rt->chosen));
    rt->core_busy = ws_alloc_array((size_t)set->n_cores, sizeof(*rt->core_busy));
    rt->results = ws_alloc_array(n, sizeof(*rt->results));
    rt->listed = ws_alloc_array(n, sizeof(*rt->listed));
    rt->jobs = ws_alloc_array(n, sizeof(*rt->jobs));
    rt->slots = ws_alloc_array(n, sizeof(*rt->slots));
    rt->policy_tasks = ws_alloc_array(n, sizeof(*rt->policy_tasks));
    rt->costs = ws_alloc_array(n, sizeof(*rt->costs));
    rt->wcet = ws_alloc_array(n * (size_t)set->n_sms, sizeof(*rt->wcet));
    int r = rt->actors && rt->cores && rt->chosen && rt->core_busy && rt->results && rt->listed &&
                    rt->jobs && rt->slots && rt->policy_tasks && rt->costs && rt->wcet
                ? 0
                : -ENOMEM;
    for (size_t i = 0; i < n && !r; i++)
        r = ws_rtsim_program(rt, (int)i);
    if (!r)
        r = ws_rtsim_policy_make(rt);
    if (r) {
        ws_rtsim_free(rt);
        return r;
    }
    ws_rtsim_policy_describe(rt);
    *ret = rt;
    return 0;
}

struct ws_rtsim *ws_rtsim_free(struct ws_rtsim *rt)
{
    if (!rt)
        return NULL;
    for (int i = 0; rt->actors && i < rt->set->n_tasks; i++)
        free(rt->actors[i].steps);
    if (rt->policy)
        rt->ops->free(rt->policy);
    ws_policy_decisions_deinit(&rt->decisions);
    free(rt->actors);
    free(rt->cores);
    free(rt->chosen);
    free(rt->core_busy);
    free(rt->results);
    free(rt->listed);
    free(rt->jobs);
    free(rt->slots);
    free(rt->policy_tasks);
    free(rt->costs);
    free(rt->wcet);
    free(rt);
    return NULL;
}

void ws_rtsim_count(struct ws_rtsim *rt, int i, int64_t response, bool finished)
{
    struct ws_rtsim_task_result *r = &rt->results[i];
    int64_t deadline = rt->set->tasks[i].deadline;
    bool missed = deadline > 0 && response > deadline;
    if (!finished && !missed)
        return;
    r->n_jobs++;
    rt->total.n_jobs++;
    r->n_missed += missed;
    if (finished) {
        r->n_finished++;
        r->sum += response;
    }
    if (response > r->worst) {
        r->worst = response;
        r->worst_release = rt->actors[i].release;
    }
}

/* Does one thing that takes no time. Return: false if there is none. */
static bool settle_one(struct ws_rtsim *rt)
{
    ws_rtsim_cores_choose(rt);
    for (int i = 0; i < rt->set->n_tasks; i++) {
        if (rt->actors[i].closing && rt->lock_holder == LOCK_FREE) {
            ws_rtsim_list_hand_on(rt, i);
            return true;
        }
        if (rt->actors[i].state == IDLE)
            continue;
        if (ws_rtsim_grant(rt, i))
            return true;
        if (ws_rtsim_can_act(rt, i, rt->chosen[rt->set->tasks[i].core] == i)) {
            ws_rtsim_act(rt, i);
            return true;
        }
    }
    return false;
}

static int64_t next_event(const struct ws_rtsim *rt)
{
    int64_t next = ws_rtsim_gpu_next(rt);
    for (int c = 0; c < rt->set->n_cores; c++) {
        int i = rt->cores[c].task;
        if (i < 0 || rt->actors[i].state == SPIN)
            continue;
        if (rt->actors[i].left > 0)
            next = WS_MIN(next, rt->now + rt->actors[i].left);
    }
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].state == IDLE)
            next = WS_MIN(next, WS_MAX(rt->actors[i].next_ready, rt->now));
    if (rt->lock_holder == LOCK_DAEMON)
        next = WS_MIN(next, rt->daemon_until);
    return WS_MIN(next, rt->timer);
}

static void advance(struct ws_rtsim *rt, int64_t dt)
{
    ws_rtsim_gpu_advance(rt, dt);
    for (int c = 0; c < rt->set->n_cores; c++) {
        int i = rt->cores[c].task;
        if (i < 0)
            continue;
        rt->core_busy[c] += dt;
        if (rt->actors[i].state != SPIN)
            rt->actors[i].left -= dt;
        if (rt->cores[c].what == WS_RTSIM_SPAN_COPY)
            rt->total.copying += dt;
    }
    rt->now += dt;
}

/* Ends what is done at this moment: first what frees a lock or an engine, then what continues
 * because of it. */
static void complete(struct ws_rtsim *rt)
{
    if (rt->lock_holder == LOCK_DAEMON && rt->daemon_until <= rt->now)
        ws_rtsim_list_unlock(rt);
    for (int c = 0; c < rt->set->n_cores; c++) {
        int i = rt->cores[c].task;
        if (i < 0 || rt->actors[i].state == SPIN || rt->actors[i].left > 0)
            continue;
        struct ws_rtsim_actor *a = &rt->actors[i];
        if (a->state == UPDATE) {
            ws_rtsim_list_unlock(rt);
            ws_rtsim_step_next(rt, i);
        } else if (a->state == READY) {
            enum ws_rtsim_step_kind k = step_of(rt, i)->kind;
            if (k == STEP_COPY_IN || k == STEP_COPY_OUT) {
                if (!a->entered) /* it has only just come to this step */
                    continue;
                ws_rtsim_copy_close(rt, i);
            }
            if (k == STEP_CPU || k == STEP_COPY_IN || k == STEP_COPY_OUT)
                ws_rtsim_step_next(rt, i);
        }
    }
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].on_gpu && rt->actors[i].gpu_left == 0 && is_listed(rt, i) &&
            rt->actors[i].entered)
            ws_rtsim_gpu_done(rt, i);
    if (rt->timer <= rt->now) {
        rt->timer = INT64_MAX;
        struct ws_policy_event e = {.kind = WS_EVENT_TIMER, .job = -1, .task = -1, .gpu = -1};
        ws_rtsim_ask(rt, &e);
    }
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].state == IDLE && rt->actors[i].next_ready <= rt->now)
            ws_rtsim_job_start(rt, i);
}

static int reset(struct ws_rtsim *rt, const struct ws_rtsim_scenario *scenario,
                 const struct ws_rtsim_observer *observer)
{
    const struct ws_rtsim_set *s = rt->set;
    rt->scenario = scenario;
    rt->observer = observer;
    rt->now = 0;
    rt->timer = INT64_MAX;
    rt->n_requests = 0;
    rt->seq = 0;
    rt->error = 0;
    rt->lock_holder = LOCK_FREE;
    rt->gpu = (struct ws_rtsim_gpu){.current = -1, .last = -1};
    rt->total = (struct ws_rtsim_result){.tasks = rt->results, .core_busy = rt->core_busy};
    memset(rt->results, 0, (size_t)s->n_tasks * sizeof(*rt->results));
    memset(rt->core_busy, 0, (size_t)s->n_cores * sizeof(*rt->core_busy));
    ws_random_init(&rt->random, scenario->seed);
    for (int c = 0; c < s->n_cores; c++)
        rt->cores[c] = (struct ws_rtsim_core){.task = -1};
    for (int i = 0; i < s->n_tasks; i++) {
        struct ws_rtsim_actor *a = &rt->actors[i];
        *a = (struct ws_rtsim_actor){.steps = a->steps, .n_steps = a->n_steps};
        a->next_release = scenario->offsets ? scenario->offsets[i] : s->tasks[i].offset;
        rt->policy_tasks[i].offset = (double)a->next_release / (double)s->per_ms;
        a->next_ready =
            a->next_release +
            (s->tasks[i].jitter ? ws_random_integer(&rt->random, 0, s->tasks[i].jitter) : 0);
    }
    /* A new object, so that nothing is remembered of the run before. */
    rt->ops->free(rt->policy);
    rt->policy = NULL;
    int r = ws_rtsim_policy_make(rt);
    char why[160];
    if (!r && rt->ops->prepare)
        r = rt->ops->prepare(rt->policy, &rt->system, why, sizeof(why));
    if (r == WS_POLICY_E_COST) /* of a task that never asks for the GPU */
        r = 0;
    return r > 0 ? -EINVAL : r;
}

int ws_rtsim_run(struct ws_rtsim *rt, const struct ws_rtsim_scenario *scenario,
                 const struct ws_rtsim_observer *observer, struct ws_rtsim_result *ret)
{
    int r = reset(rt, scenario, observer);
    if (r)
        return r;
    while (!rt->error) {
        complete(rt);
        while (!rt->error && settle_one(rt))
            ;
        ws_rtsim_cores_dispatch(rt);
        ws_rtsim_gpu_choose(rt);
        int64_t next = next_event(rt);
        if (next > scenario->horizon) {
            if (rt->now < scenario->horizon)
                advance(rt, scenario->horizon - rt->now);
            break;
        }
        rt->total.n_events++;
        advance(rt, next - rt->now);
    }
    for (int c = 0; c < rt->set->n_cores; c++)
        ws_rtsim_core_flush(rt, c);
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].state != IDLE)
            ws_rtsim_count(rt, i, rt->now - rt->actors[i].release, false);
    rt->total.end = rt->now;
    *ret = rt->total;
    return rt->error;
}

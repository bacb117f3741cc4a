// SPDX-License-Identifier: Apache-2.0
/* The fixed point that every analysis computes, the memory they work in, and the check of their
 * input.
 *
 * Almost every bound here is R = own + sum of up((R + J) / T) · cost. The terms of a task are
 * collected once, and then the sum is iterated; the loop reads three numbers per term and has no
 * other branch than its end. Starting from 0 gives the least fixed point, since the right side
 * never falls when R grows. (In the released analysis a stale response time of -1 can make a
 * jitter negative; the sum still never falls when R grows.)
 *
 * Overflow: times are at most 2^44 and a task fails once R exceeds its deadline, so R + J stays
 * below 2^46; each product is capped at 2^56 and the sum is compared with the deadline after
 * every term. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/analysis/rta_private.h"

int64_t ws_rta_fixed_point(struct ws_rta_work *w, int64_t own, const struct ws_rta_term *terms,
                           int n, int64_t deadline)
{
    for (int64_t r = 0;;) {
        int64_t next = own;
        w->steps -= n + 1;
        if (w->steps < 0)
            return -1;
        for (int i = 0; i < n; i++)
            next += ws_rta_mul(ws_rta_up(r + terms[i].jitter, terms[i].period), terms[i].cost);
        if (next > deadline)
            return -1;
        if (next == r)
            return r;
        r = next;
    }
}

void ws_rta_begin(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret)
{
    w->steps = WS_RTA_STEPS_MAX;
    memset(w->bound, 0, (size_t)s->n_tasks * sizeof(*w->bound));
    *ret = (struct ws_rta_result){.ok = true, .bound = w->bound};
}

void ws_rta_work_deinit(struct ws_rta_work *w)
{
    free(w->terms);
    free(w->bound);
    free(w->second);
    free(w->gpu_priority);
    free(w->order);
    free(w->requests);
    free(w->values);
    *w = WS_RTA_WORK_NULL;
}

int ws_rta_work_reserve(struct ws_rta_work *w, int n_tasks, int n_segments)
{
    if (n_tasks <= w->n_tasks && n_segments <= w->n_segments)
        return 0;
    struct ws_rta_work grown = WS_RTA_WORK_NULL;
    size_t n = (size_t)WS_MAX(n_tasks, w->n_tasks), m = (size_t)WS_MAX(n_segments, w->n_segments);
    grown.n_tasks = (int)n;
    grown.n_segments = (int)m;
    grown.terms = ws_alloc_array(3 * n + 1, sizeof(*grown.terms));
    grown.bound = ws_alloc_array(n + 1, sizeof(*grown.bound));
    grown.second = ws_alloc_array(n + 1, sizeof(*grown.second));
    grown.gpu_priority = ws_alloc_array(n + 1, sizeof(*grown.gpu_priority));
    grown.order = ws_alloc_array(2 * n + 2, sizeof(*grown.order));
    grown.requests = ws_alloc_array(2 * m + 1, sizeof(*grown.requests));
    grown.values = ws_alloc_array(4 * n + 2 * m + WS_RTA_CPUS_MAX + 1, sizeof(*grown.values));
    if (!grown.terms || !grown.bound || !grown.second || !grown.gpu_priority || !grown.order ||
        !grown.requests || !grown.values) {
        ws_rta_work_deinit(&grown);
        return ws_raise(-ENOMEM);
    }
    ws_rta_work_deinit(w);
    *w = grown;
    return 0;
}

static bool time_ok(int64_t t)
{
    return t >= 0 && t <= WS_RTA_TIME_MAX;
}

static const char *task_check(const struct ws_rta_set *s, const struct ws_rta_task *t)
{
    if (t->period <= 0 || t->period > WS_RTA_TIME_MAX)
        return "the period must be above 0 and below 2^44 units";
    if (t->deadline <= 0 || t->deadline > t->period)
        return "the deadline must be above 0 and no later than the period";
    if (!time_ok(t->c) || !time_ok(t->g) || !time_ok(t->gm) || !time_ok(t->ge))
        return "times must be 0 or more and below 2^44 units";
    if (t->cpu < 0 || t->cpu >= s->n_cpus)
        return "there is no such core";
    if (t->n_segments < 0 || t->n_segments > WS_RTA_SEGMENTS_MAX || t->first_segment < 0 ||
        t->first_segment > s->n_segments - t->n_segments)
        return "its GPU segments are out of bounds";
    for (int k = 0; k < t->n_segments; k++) {
        const struct ws_rta_segment *seg = &s->segments[t->first_segment + k];
        if (!time_ok(seg->g) || !time_ok(seg->gm) || !time_ok(seg->ge))
            return "times of GPU segments must be 0 or more and below 2^44 units";
    }
    return NULL;
}

const char *ws_rta_set_check(const struct ws_rta_set *s, int *ret_task)
{
    *ret_task = -1;
    if (s->n_tasks < 1 || s->n_tasks > WS_RTA_TASKS_MAX)
        return "a set has 1 to 4096 tasks";
    if (s->n_cpus < 1 || s->n_cpus > WS_RTA_CPUS_MAX)
        return "there must be 1 to 1024 cores";
    if (s->slice <= 0 || !time_ok(s->slice) || !time_ok(s->theta) || !time_ok(s->epsilon) ||
        s->unit_per_ms <= 0)
        return "the slice must be above 0, overheads 0 or more";
    for (int i = 0; i < s->n_tasks; i++) {
        *ret_task = i;
        const char *wrong = task_check(s, &s->tasks[i]);
        if (wrong)
            return wrong;
        if (i && s->tasks[i - 1].best_effort && !s->tasks[i].best_effort)
            return "best-effort tasks must stand after the real-time ones";
    }
    *ret_task = -1;
    return NULL;
}

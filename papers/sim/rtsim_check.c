// SPDX-License-Identifier: Apache-2.0
/* Task sets of the real-time simulator: their memory, the check that they are consistent, and
 * the names of policies. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "papers/sim/rtsim.h"

int ws_rtsim_set_init(struct ws_rtsim_set *s, int n_tasks)
{
    *s = (struct ws_rtsim_set){.n_tasks = n_tasks, .n_cores = 1, .n_sms = 1, .per_ms = 1000};
    s->tasks = ws_alloc_array(n_tasks > 0 ? (size_t)n_tasks : 1, sizeof(*s->tasks));
    if (!s->tasks) {
        s->n_tasks = 0;
        return -ENOMEM;
    }
    return 0;
}

int ws_rtsim_set_segments(struct ws_rtsim_set *s, int i, int n)
{
    struct ws_rtsim_task *t = &s->tasks[i];
    free(t->cpu);
    free(t->segments);
    t->n_segments = 0;
    t->cpu = ws_alloc_array((size_t)n + 1, sizeof(*t->cpu));
    t->segments = ws_alloc_array((size_t)n + 1, sizeof(*t->segments));
    if (!t->cpu || !t->segments)
        return -ENOMEM;
    t->n_segments = n;
    return 0;
}

void ws_rtsim_set_deinit(struct ws_rtsim_set *s)
{
    for (int i = 0; i < s->n_tasks; i++) {
        free(s->tasks[i].cpu);
        free(s->tasks[i].segments);
    }
    free(s->tasks);
    *s = WS_RTSIM_SET_NULL;
}

static bool in_time(int64_t t)
{
    return t >= 0 && t <= WS_RTSIM_TIME_MAX;
}

static const char *check_task(const struct ws_rtsim_set *s, int i, char *buf, size_t bytes)
{
    const struct ws_rtsim_task *t = &s->tasks[i];
    const char *what = NULL;
    if (t->core < 0 || t->core >= s->n_cores) {
        snprintf(buf, bytes, "tasks[%d]: core %d, but there are %d cores", i, t->core, s->n_cores);
        return buf;
    }
    if (t->period <= 0 || !in_time(t->period))
        what = "the period must be above 0";
    else if (!in_time(t->deadline) || !in_time(t->offset) || !in_time(t->jitter))
        what = "deadline, offset and jitter must not be negative";
    else if (t->n_segments < 0 || t->n_segments > WS_RTSIM_SEGMENTS_MAX || !t->cpu)
        what = "too many GPU segments";
    else if (t->best_effort < (i > 0 && s->tasks[i - 1].best_effort))
        what = "real-time after best effort: tasks must stand in decreasing priority";
    else if (i > 0 && !t->best_effort && !s->tasks[i - 1].best_effort &&
             t->priority > s->tasks[i - 1].priority)
        what = "tasks must stand in decreasing priority";
    int64_t total = 0;
    for (int k = 0; !what && k <= t->n_segments; k++) {
        struct ws_rtsim_segment none = {0};
        const struct ws_rtsim_segment *g = k < t->n_segments ? &t->segments[k] : &none;
        if (!in_time(t->cpu[k]) || !in_time(g->before) || !in_time(g->kernel) || !in_time(g->after))
            what = "times must not be negative";
        else
            total += t->cpu[k] + g->before + g->kernel + g->after;
        if (total > WS_RTSIM_TIME_MAX)
            what = "its times are too long";
    }
    if (!what && total == 0)
        what = "it has nothing to do";
    if (what)
        snprintf(buf, bytes, "tasks[%d]: %s", i, what);
    return what ? buf : NULL;
}

const char *ws_rtsim_check(const struct ws_rtsim_set *s, char *buf, size_t bytes)
{
    const char *what = NULL;
    if (s->n_tasks < 1 || s->n_tasks > WS_RTSIM_TASKS_MAX)
        what = "no tasks, or too many";
    else if (s->n_cores < 1 || s->n_cores > WS_RTSIM_CORES_MAX)
        what = "cores: from 1 to 256 are wanted";
    else if (s->n_sms < 1 || s->n_sms > WS_SM_MAX)
        what = "SMs: from 1 to 256 are wanted";
    else if (s->per_ms < 1)
        what = "units per ms must be above 0";
    else if (s->slice <= 0 || !in_time(s->slice))
        what = "the slice must be above 0";
    else if (!in_time(s->theta) || !in_time(s->epsilon))
        what = "overheads must not be negative";
    if (what) {
        snprintf(buf, bytes, "%s", what);
        return buf;
    }
    for (int i = 0; i < s->n_tasks; i++)
        if (check_task(s, i, buf, bytes))
            return buf;
    return NULL;
}

static const char *const policy_names[_WS_RTSIM_POLICY_N] = {[WS_RTSIM_RR] = "rr",
                                                             [WS_RTSIM_GCAPS] = "gcaps",
                                                             [WS_RTSIM_STGM] = "stgm",
                                                             [WS_RTSIM_MPCP] = "mpcp",
                                                             [WS_RTSIM_FMLP] = "fmlp+"};
static const char *const hold_names[_WS_RTSIM_HOLD_N] = {[WS_RTSIM_HOLD_WORK] = "work",
                                                         [WS_RTSIM_HOLD_COMMAND] = "command",
                                                         [WS_RTSIM_HOLD_CALLS] = "calls"};

const char *ws_rtsim_policy_name(enum ws_rtsim_policy p)
{
    return policy_names[p];
}

const char *ws_rtsim_hold_name(enum ws_rtsim_hold h)
{
    return hold_names[h];
}

int ws_rtsim_policy_find(const char *name)
{
    for (int i = 0; i < _WS_RTSIM_POLICY_N; i++)
        if (!strcmp(policy_names[i], name))
            return i;
    return -1;
}

// SPDX-License-Identifier: Apache-2.0
/* What Table I leaves open is chosen as follows: periods are whole milliseconds; a task's
 * segments have weights of .5 to 1.5; .3 to .7 of a segment's copies go in; all kernels of a
 * task have the same profile. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "papers/sets/axis.h"
#include "papers/sets/gen_stgm.h"

enum { TASKS_MAX = 1024, SEGMENTS_MAX = 16 };

const struct ws_gen_stgm ws_gen_stgm_default = {
    .cpus_min = 2,
    .cpus_max = 4,
    .n_sm = 13,
    .gpu_to_cpu_min = 0.2,
    .gpu_to_cpu_max = 2,
    .util_min = 0.05,
    .util_max = 0.3,
    .segments_min = 1,
    .segments_max = 3,
};

int ws_gen_stgm_axis(struct ws_gen_stgm *g, const char *axis, double x)
{
    int same;
    if (!strcmp(axis, "num_tasks") || !strcmp(axis, "num_tasks_2cpu")) {
        g->cpus_min = g->cpus_max = strcmp(axis, "num_tasks") ? 2 : 4;
        return ws_axis_count(x, TASKS_MAX, &g->n_tasks, &same);
    }
    if (!strcmp(axis, "num_sm"))
        return ws_axis_count(x, WS_SM_MAX, &g->n_sm, &same);
    if (!strcmp(axis, "ratio_gpu"))
        return ws_axis_share(x, 1000, &g->gpu_to_cpu_min, &g->gpu_to_cpu_max);
    if (!strcmp(axis, "num_gpu_segs"))
        return ws_axis_count(x, SEGMENTS_MAX, &g->segments_min, &g->segments_max);
    if (!strcmp(axis, "util"))
        return ws_axis_share(x, 1, &g->util_min, &g->util_max);
    return -ENOENT;
}

struct stgm_draft {
    int64_t period_ms;
    bool gpu;
};

static int by_period(const void *a, const void *b)
{
    const struct stgm_draft *x = a, *y = b;
    return (x->period_ms > y->period_ms) - (x->period_ms < y->period_ms);
}

static void draw_segments(const struct ws_gen_stgm *g, struct ws_random *r, struct ws_rt_set *set,
                          struct ws_stgm_task *t, double demand)
{
    struct ws_stgm_set *s = &set->stgm;
    double weights[SEGMENTS_MAX], sum = 0;
    int profile = (int)ws_random_integer(r, 0, WS_STGM_PROFILES - 1);
    double gpu = demand / (1 + ws_random_uniform(r, 0.3, 0.7));
    t->c = llround(demand - gpu);
    t->n_segments = (int)ws_random_integer(r, g->segments_min, g->segments_max);
    t->n_cpu_segments = t->n_segments + 1;
    for (int k = 0; k < t->n_segments; k++)
        sum += weights[k] = ws_random_uniform(r, 0.5, 1.5);
    for (int k = 0; k < t->n_segments; k++) {
        struct ws_stgm_segment *seg = &s->segments[s->n_segments];
        double whole = gpu * weights[k] / sum, e = whole * ws_random_uniform(r, 0.7, 0.9);
        double in = (whole - e) * ws_random_uniform(r, 0.3, 0.7);
        double all_sms =
            g->drawn_on_one_sm ? e * (double)ws_stgm_profile_share(profile, g->n_sm) / 10000 : e;
        *seg = (struct ws_stgm_segment){.hd = llround(in),
                                        .dh = llround(whole - e - in),
                                        .kernel = s->n_segments,
                                        .profile = profile};
        ws_stgm_profile_fill(s, s->n_segments, profile, llround(all_sms));
        s->n_segments++;
    }
}

int ws_gen_stgm(const struct ws_gen_stgm *g, struct ws_random *r, struct ws_rt_set *ret)
{
    struct stgm_draft tasks[TASKS_MAX] = {{0}};
    int n_cpus = (int)ws_random_integer(r, g->cpus_min, g->cpus_max);
    int n = g->n_tasks ? g->n_tasks : (int)ws_random_integer(r, 2 * n_cpus, 4 * n_cpus);
    double ratio = ws_random_uniform(r, g->gpu_to_cpu_min, g->gpu_to_cpu_max);
    int n_gpu = (int)lround(n * ratio / (1 + ratio));
    for (int i = 0; i < n; i++)
        tasks[i] = (struct stgm_draft){ws_random_integer(r, 100, 500), i < n_gpu};
    qsort(tasks, (size_t)n, sizeof(*tasks), by_period);
    int e = ws_rt_set_init_stgm(ret, n, n_gpu * g->segments_max, g->n_sm);
    if (e)
        return e;
    ret->stgm.n_cpus = n_cpus;
    ret->stgm.n_segments = 0;
    for (int i = 0; i < n; i++) {
        struct ws_stgm_task *t = &ret->stgm.tasks[i];
        double demand =
            ws_random_uniform(r, g->util_min, g->util_max) * 1000 * (double)tasks[i].period_ms;
        *t = (struct ws_stgm_task){.period = tasks[i].period_ms * 1000,
                                   .deadline = tasks[i].period_ms * 1000,
                                   .c = llround(demand),
                                   .n_cpu_segments = 1,
                                   .first_segment = ret->stgm.n_segments};
        if (tasks[i].gpu)
            draw_segments(g, r, ret, t, demand);
    }
    return 0;
}

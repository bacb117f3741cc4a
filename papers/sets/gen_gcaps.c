// SPDX-License-Identifier: Apache-2.0
/* Everything is drawn in hundredths, utilisations of 0.01 and times of 0.01 ms, so that a task's
 * demand U · T is exact. Gm is the segment times a share in hundredths, which gives the 4
 * decimals of the reference sets. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "papers/sets/axis.h"
#include "papers/sets/gen_gcaps.h"

enum {
    PERIOD_MIN = 30,
    PERIOD_MAX = 500,
    GM_PERCENT_MIN = 10,
    GM_PERCENT_MAX = 30,
    UNITS = WS_GCAPS_UNITS_PER_MS / 100, /* in 0.01 ms */
    TASKS_MAX = 1024,
    SEGMENTS_MAX = 16,
};

const struct ws_gen_gcaps ws_gen_gcaps_default = {
    .reading = WS_GEN_CODE,
    .n_cpus = 4,
    .tasks_min = 3,
    .tasks_max = 6,
    .util_min = 0.4,
    .util_max = 0.6,
    .gpu_min = 0.4,
    .gpu_max = 0.6,
    .segments_min = 1,
    .segments_max = 3,
    .g_to_c_min = 0.2,
    .g_to_c_max = 2,
    .epsilon_ms = 1,
    .theta_ms = 0.2,
};

int ws_gen_gcaps_axis(struct ws_gen_gcaps *g, const char *axis, double x)
{
    int same;
    double same_share;
    if (!strcmp(axis, "num_tasks"))
        return ws_axis_count(x, TASKS_MAX, &g->n_tasks, &same);
    if (!strcmp(axis, "util_per_cpu"))
        return ws_axis_share(x, 1, &g->util_min, &g->util_max);
    if (!strcmp(axis, "num_cpus"))
        return ws_axis_count(x, TASKS_MAX / 64, &g->n_cpus, &same);
    if (!strcmp(axis, "ratio_gpu_tasks"))
        return ws_axis_share(x, 1, &g->gpu_min, &g->gpu_max);
    if (!strcmp(axis, "ratio_g_to_c"))
        return ws_axis_share(x, 100, &g->g_to_c_min, &g->g_to_c_max);
    if (!strcmp(axis, "ratio_be")) {
        g->tasks_min = g->tasks_max = 6;
        return ws_axis_share(x, 1, &g->be_ratio, &same_share);
    }
    if (!strcmp(axis, "num_gpu_segs"))
        return ws_axis_count(x, SEGMENTS_MAX, &g->segments_min, &g->segments_max);
    if (!strcmp(axis, "tasks_per_cpu"))
        return ws_axis_count(x, 64, &g->tasks_min, &g->tasks_max);
    if (!strcmp(axis, "epsilon"))
        return ws_axis_share(x, 1000, &g->epsilon_ms, &same_share);
    if (!strcmp(axis, "theta"))
        return ws_axis_share(x, 1000, &g->theta_ms, &same_share);
    return -ENOENT;
}

/* ---- one task ---- */

struct gcaps_draft {
    int64_t period_ms, util; /* hundredths */
    int64_t c, g;            /* 0.01 ms */
    int n_segments, cpu;
    int64_t gpu[SEGMENTS_MAX], gm_percent[SEGMENTS_MAX], cpu_part[SEGMENTS_MAX + 1];
    bool best_effort;
};

static double unit(void *arg)
{
    return ws_random_unit(arg);
}

/* @total in @n parts, in hundredths. As printed by UUniFast, rounded so that they sum up. As
 * released each part, not what is left of the total, is the root of a random number times what
 * is left: the first takes most, the more so the more parts there are; then they are shuffled.
 * That skews utilisations (of 6 tasks on a core one has four fifths) and moves Fig. 8 by up to
 * 30 points. */
static void split(struct ws_random *r, enum ws_gen_reading reading, double total, int n,
                  double *ret)
{
    if (reading == WS_GEN_PAPER) {
        ws_uunifast(total, n, ret, unit, r);
        return;
    }
    for (int i = 0; i < n - 1; i++) {
        ret[i] = total * pow(ws_random_unit(r), 1.0 / (n - 1 - i));
        total -= ret[i];
    }
    ret[n - 1] = total;
    for (int i = n - 1; i > 0; i--) {
        int k = (int)ws_random_integer(r, 0, i);
        double v = ret[i];
        ret[i] = ret[k];
        ret[k] = v;
    }
}

/* Rounding each alone may lose or add one or two, as released; as printed the last takes the
 * rest. */
static void split_time(struct ws_random *r, enum ws_gen_reading reading, int64_t total, int n,
                       int64_t *ret)
{
    double parts[SEGMENTS_MAX + 1];
    int64_t sum = 0;
    split(r, reading, (double)total, n, parts);
    for (int i = 0; i < n; i++) {
        ret[i] = llround(parts[i]);
        if (reading == WS_GEN_PAPER && (i == n - 1 || sum + ret[i] > total))
            ret[i] = total - sum;
        sum += ret[i];
    }
}

/* In whole hundredths, all equally likely. */
static int64_t hundredths(struct ws_random *r, double min, double max)
{
    return ws_random_integer(r, llround(100 * min), llround(100 * max));
}

static void draw_task(const struct ws_gen_gcaps *g, struct ws_random *r, int64_t util,
                      struct gcaps_draft *ret)
{
    *ret = (struct gcaps_draft){.util = util, .cpu = -1};
    ret->period_ms = g->reading == WS_GEN_PAPER
                         ? 10 * ws_random_integer(r, PERIOD_MIN / 10, PERIOD_MAX / 10)
                         : ws_random_integer(r, PERIOD_MIN, PERIOD_MAX);
    ret->c = util * ret->period_ms;
    if (ws_random_unit(r) < (double)hundredths(r, g->gpu_min, g->gpu_max) / 100) {
        double ratio = (double)hundredths(r, g->g_to_c_min, g->g_to_c_max) / 100;
        int64_t all = ret->c;
        ret->c = llround((double)all / (1 + ratio));
        ret->g = all - ret->c;
        ret->n_segments = (int)ws_random_integer(r, g->segments_min, g->segments_max);
        split_time(r, g->reading, ret->g, ret->n_segments, ret->gpu);
        for (int k = 0; k < ret->n_segments; k++)
            ret->gm_percent[k] = ws_random_integer(r, GM_PERCENT_MIN, GM_PERCENT_MAX);
    }
    split_time(r, g->reading, ret->c, ret->n_segments + 1, ret->cpu_part);
}

/* ---- a set ---- */

static int draw_cores(const struct ws_gen_gcaps *g, struct ws_random *r, struct gcaps_draft *tasks)
{
    int n = 0;
    for (int cpu = 0; cpu < g->n_cpus; cpu++) {
        double parts[64];
        int count = (int)ws_random_integer(r, g->tasks_min, g->tasks_max);
        split(r, g->reading, (double)hundredths(r, g->util_min, g->util_max), count, parts);
        for (int i = 0; i < count; i++) {
            draw_task(g, r, WS_MAX(llround(parts[i]), 1), &tasks[n]);
            tasks[n++].cpu = cpu;
        }
    }
    return n;
}

static int least_loaded(const int64_t *load, int n)
{
    int best = 0;
    for (int c = 1; c < n; c++)
        if (load[c] < load[best])
            best = c;
    return best;
}

static int by_util(const void *a, const void *b)
{
    const struct gcaps_draft *x = a, *y = b;
    return (x->util < y->util) - (x->util > y->util);
}

static int by_period(const void *a, const void *b)
{
    const struct gcaps_draft *const *x = a, *const *y = b;
    if ((*x)->best_effort != (*y)->best_effort)
        return (*x)->best_effort - (*y)->best_effort;
    if (!(*x)->best_effort && (*x)->period_ms != (*y)->period_ms)
        return (*x)->period_ms < (*y)->period_ms ? -1 : 1;
    return (*x > *y) - (*x < *y); /* as drawn */
}

static void worst_fit(const struct ws_gen_gcaps *g, struct gcaps_draft *tasks, int n)
{
    int64_t load[TASKS_MAX] = {0};
    if (g->reading == WS_GEN_PAPER)
        qsort(tasks, (size_t)n, sizeof(*tasks), by_util);
    for (int i = 0; i < n; i++) {
        tasks[i].cpu = least_loaded(load, g->n_cpus);
        load[tasks[i].cpu] += tasks[i].util;
    }
}

static void choose_best_effort(struct ws_random *r, double ratio, struct gcaps_draft *tasks, int n)
{
    for (int left = (int)floor(ratio * n + 1e-9); left > 0;) {
        int i = (int)ws_random_integer(r, 0, n - 1);
        left -= !tasks[i].best_effort;
        tasks[i].best_effort = true;
    }
}

static void fill_task(struct ws_rta_set *s, struct ws_rta_task *t, const struct gcaps_draft *d,
                      int *n_segments, int *n_cpu_segments)
{
    *t = (struct ws_rta_task){.period = d->period_ms * WS_GCAPS_UNITS_PER_MS,
                              .deadline = d->period_ms * WS_GCAPS_UNITS_PER_MS,
                              .c = d->c * UNITS,
                              .g = d->g * UNITS,
                              .cpu = d->cpu,
                              .best_effort = d->best_effort,
                              .n_segments = d->n_segments,
                              .first_segment = *n_segments,
                              .n_cpu_segments = d->n_segments + 1,
                              .first_cpu_segment = *n_cpu_segments};
    for (int k = 0; k < d->n_segments; k++) {
        int64_t whole = d->gpu[k] * UNITS, gm = d->gpu[k] * d->gm_percent[k];
        s->segments[(*n_segments)++] = (struct ws_rta_segment){whole, gm, whole - gm};
        t->gm += gm;
        t->ge += whole - gm;
    }
    for (int k = 0; k <= d->n_segments; k++)
        s->cpu_segments[(*n_cpu_segments)++] = d->cpu_part[k] * UNITS;
}

static int fill(const struct ws_gen_gcaps *g, const struct gcaps_draft *tasks, int n,
                struct ws_rt_set *ret)
{
    const struct gcaps_draft *order[TASKS_MAX] = {NULL};
    int segments = 0, n_segments = 0, n_cpu_segments = 0;
    for (int i = 0; i < n; i++) {
        order[i] = &tasks[i];
        segments += tasks[i].n_segments;
    }
    qsort(order, (size_t)n, sizeof(*order), by_period);
    int e = ws_rt_set_init_gcaps(ret, n, segments, segments + n);
    if (e)
        return e;
    ret->gcaps.n_cpus = g->n_cpus;
    ret->gcaps.epsilon = llround(g->epsilon_ms * WS_GCAPS_UNITS_PER_MS);
    ret->gcaps.theta = llround(g->theta_ms * WS_GCAPS_UNITS_PER_MS);
    for (int i = 0; i < n; i++)
        fill_task(&ret->gcaps, &ret->gcaps.tasks[i], order[i], &n_segments, &n_cpu_segments);
    return 0;
}

int ws_gen_gcaps(const struct ws_gen_gcaps *g, struct ws_random *r, struct ws_rt_set *ret)
{
    *ret = (struct ws_rt_set){0};
    struct gcaps_draft *tasks = calloc(TASKS_MAX, sizeof(*tasks));
    int n = 0;
    if (!tasks)
        return -ENOMEM;
    if (g->n_tasks) {
        for (; n < g->n_tasks; n++)
            draw_task(g, r, 5 * ws_random_integer(r, 1, 5), &tasks[n]);
        worst_fit(g, tasks, n);
    } else {
        n = draw_cores(g, r, tasks);
        if (g->reading == WS_GEN_PAPER)
            worst_fit(g, tasks, n);
    }
    choose_best_effort(r, g->be_ratio, tasks, n);
    int e = fill(g, tasks, n, ret);
    free(tasks);
    return e;
}

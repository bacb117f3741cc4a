// SPDX-License-Identifier: Apache-2.0
/* Makes sets for the simulator from analysed ones. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "papers/sets/rtsim_set.h"

enum { STGM_PER_MS = 1000 };

void ws_rtsim_space_deinit(struct ws_rtsim_space *x)
{
    ws_rta_work_deinit(&x->rta);
    ws_stgm_work_deinit(&x->stgm);
    ws_stgm_whole_deinit(&x->whole);
    *x = WS_RTSIM_SPACE_NULL;
}

/* Subtracts what the @n numbers have above @total from the longest of them. They are @stride bytes
 * apart. */
static void trim(int64_t *v, int n, size_t stride, int64_t total)
{
    int64_t sum = 0, *longest = NULL;
    for (int i = 0; i < n; i++) {
        int64_t *p = (int64_t *)((char *)v + (size_t)i * stride);
        sum += *p;
        if (!longest || *p > *longest)
            longest = p;
    }
    if (longest && sum > total)
        *longest -= WS_MIN(sum - total, *longest);
}

/* @total over @n equal parts, what is left to the first. */
static void deal(int64_t *v, int n, int64_t total)
{
    for (int i = 0; i < n; i++)
        v[i] = total / n + (i == 0 ? total % n : 0);
}

/* The CPU parts around a segment with nothing in it follow each other. */
static void drop_empty(struct ws_rtsim_task *t)
{
    int n = 0;
    for (int k = 0; k < t->n_segments; k++) {
        struct ws_rtsim_segment *g = &t->segments[k];
        if (g->before || g->kernel || g->after) {
            t->segments[n] = *g;
            t->cpu[++n] = t->cpu[k + 1];
        } else {
            t->cpu[n] += t->cpu[k + 1];
        }
    }
    t->n_segments = n;
}

static void fill_cpu(struct ws_rtsim_task *t, const int64_t *parts, int n_parts, int64_t c)
{
    int n = t->n_segments;
    if (n_parts == n + 1)
        memcpy(t->cpu, parts, (size_t)n_parts * sizeof(*parts));
    else
        deal(t->cpu, n + 1, c);
    trim(t->cpu, n + 1, sizeof(*t->cpu), c);
}

static int make_rta(const struct ws_rta_set *s, const int *gpu_priority, struct ws_rtsim_set *ret)
{
    int r = ws_rtsim_set_init(ret, s->n_tasks);
    ret->n_cores = s->n_cpus;
    ret->per_ms = s->unit_per_ms > 0 ? s->unit_per_ms : 1;
    ret->slice = s->slice > 0 ? s->slice : ret->per_ms;
    ret->theta = s->theta;
    ret->epsilon = s->epsilon;
    for (int i = 0; i < s->n_tasks && !r; i++) {
        const struct ws_rta_task *from = &s->tasks[i];
        struct ws_rtsim_task *t = &ret->tasks[i];
        *t = (struct ws_rtsim_task){.id = i,
                                    .core = from->cpu,
                                    .priority = s->n_tasks - i,
                                    .gpu_priority = gpu_priority ? gpu_priority[i] : 0,
                                    .best_effort = from->best_effort,
                                    .period = from->period,
                                    .deadline = from->deadline};
        if ((r = ws_rtsim_set_segments(ret, i, from->n_segments)))
            break;
        int64_t before = 0;
        for (int k = 0; k < from->n_segments; k++) {
            const struct ws_rta_segment *g = &s->segments[from->first_segment + k];
            t->segments[k].before = g->gm;
            t->segments[k].kernel = g->ge;
            before += g->gm;
        }
        const int64_t *parts = s->cpu_segments ? &s->cpu_segments[from->first_cpu_segment] : NULL;
        fill_cpu(t, parts, parts ? from->n_cpu_segments : 0, from->c);
        if (t->n_segments && from->g >= before)
            trim(&t->segments[0].kernel, t->n_segments, sizeof(*t->segments), from->g - before);
        drop_empty(t);
    }
    return r;
}

/* @a: NULL: cores are those of @whole, which else is not looked at, and no task has SMs of its
 * own. */
static int make_stgm(const struct ws_stgm_set *s, const struct ws_stgm_result *a,
                     const struct ws_rta_set *whole, struct ws_rtsim_set *ret)
{
    int r = ws_rtsim_set_init(ret, s->n_tasks);
    ret->n_cores = s->n_cpus;
    ret->n_sms = s->n_sm;
    ret->per_ms = STGM_PER_MS;
    ret->slice = STGM_PER_MS;
    for (int i = 0; i < s->n_tasks && !r; i++) {
        const struct ws_stgm_task *from = &s->tasks[i];
        struct ws_rtsim_task *t = &ret->tasks[i];
        *t = (struct ws_rtsim_task){.id = i,
                                    .core = a ? WS_MAX(a->cpu[i], 0) : whole->tasks[i].cpu,
                                    .priority = s->n_tasks - i,
                                    .period = from->period,
                                    .deadline = from->deadline};
        if (a)
            t->sms = a->sms[i];
        if ((r = ws_rtsim_set_segments(ret, i, from->n_segments)))
            break;
        for (int k = 0; k < from->n_segments; k++) {
            const struct ws_stgm_segment *g = &s->segments[from->first_segment + k];
            const int64_t *kernel = &s->kernels[(size_t)g->kernel * (size_t)s->n_sm];
            t->segments[k] = (struct ws_rtsim_segment){
                .before = g->hd,
                .kernel = kernel[a ? WS_MAX(a->n_sms[i], 1) - 1 : s->n_sm - 1],
                .after = g->dh,
                .by_sms = kernel};
        }
        fill_cpu(t, NULL, 0, from->c);
        drop_empty(t);
    }
    return r;
}

static int take_bounds(const int64_t *bound, int n, struct ws_rtsim_verdict *v)
{
    v->bounds = ws_alloc_array(n > 0 ? (size_t)n : 1, sizeof(*v->bounds));
    if (!v->bounds)
        return -ENOMEM;
    for (int i = 0; i < n; i++)
        v->bounds[i] = bound && v->accepted && bound[i] > 0 ? bound[i] : 0;
    return 0;
}

static int analyse_rta(const struct ws_rta_set *s, const struct ws_rta_method *m,
                       struct ws_rtsim_space *x, struct ws_rtsim_set *ret,
                       struct ws_rtsim_verdict *v)
{
    struct ws_rta_result a = {0};
    int r = 0;
    if (m) {
        r = ws_rta_work_reserve(&x->rta, s->n_tasks, s->n_segments);
        if (!r)
            r = m->run(s, &x->rta, &a);
        v->accepted = v->placed && !r && a.ok;
    }
    if (!r)
        r = make_rta(s, a.gpu_priority, ret);
    return r ? r : take_bounds(a.bound, s->n_tasks, v);
}

int ws_rtsim_set_make(const struct ws_rt_set *from, const struct ws_rta_method *m,
                      struct ws_rtsim_space *x, struct ws_rtsim_set *ret,
                      struct ws_rtsim_verdict *ret_verdict)
{
    *ret = WS_RTSIM_SET_NULL;
    *ret_verdict = (struct ws_rtsim_verdict){.placed = true};
    if (from->kind == WS_RT_GCAPS)
        return m && m->stgm ? -EINVAL : analyse_rta(&from->gcaps, m, x, ret, ret_verdict);
    const struct ws_stgm_set *s = &from->stgm;
    int r = ws_stgm_work_reserve(&x->stgm, s->n_tasks);
    if (r)
        return r;
    if (!m || !m->stgm)
        r = ws_stgm_whole_gpu(s, &x->stgm, &x->whole, &ret_verdict->placed);
    if (r)
        return r;
    if (!m) {
        r = make_stgm(s, NULL, &x->whole.set, ret);
        return r ? r : take_bounds(NULL, s->n_tasks, ret_verdict);
    }
    if (!m->stgm)
        return analyse_rta(&x->whole.set, m, x, ret, ret_verdict);
    struct ws_stgm_result a;
    ws_stgm_allocate(s, m->variant, &x->stgm, &a);
    ret_verdict->accepted = a.ok;
    for (int i = 0; i < s->n_tasks; i++)
        ret_verdict->placed &= a.cpu[i] >= 0;
    r = make_stgm(s, &a, &x->whole.set, ret);
    return r ? r : take_bounds(a.bound, s->n_tasks, ret_verdict);
}

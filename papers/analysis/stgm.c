// SPDX-License-Identifier: Apache-2.0
/* STGM's allocation and bounds.
 *
 * Each round gives out SMs and then places tasks on cores by worst fit decreasing. A core
 * accepts a task if its load stays at most 1 and all its tasks still pass the test, which is
 * tried from the highest priority down (the new task preempts those below it and blocks those
 * above it). If a task fits on no core, the GPU task that gains most from one more SM, (G(N) -
 * G(N + 1)) / T, gets one, and the next round begins. There are at most sum of (N_SM - 1)
 * rounds; the last one, in which all tasks have all SMs, decides.
 *
 * Blocking of task i with n segments; M longest copy, E longest kernel, A longest segment of a
 * task:
 *   copies   2n · sum of M over all other GPU tasks (one copy engine, in order of arrival, two
 *            copies a segment)
 *   kernels  n · sum of E over the tasks that share an SM with it; safe: over all that are
 *            connected with it by sharing, since one ahead in the queue may itself wait for a third
 *            that shares nothing with i
 *   core     suspending: for each of the theta CPU segments, over core-mates below: M; safe: their
 *            longest hd + dh, since the second copy runs boosted too. Busy: once, sum of A over
 *            core-mates below; safe: the longest boosted region of one of them, its own waiting for
 *            copies and SMs included (only one region can be open on a core)
 * Bounds: suspending, Eq. 1 with jitter W_h - (C_h + Gm_h); busy, Eq. 9 with C_h + G_h + B_h a
 * job (safe: without B_h's core part, which is other tasks' execution, counted where it
 * belongs). */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/analysis/rta_private.h"
#include "papers/analysis/stgm.h"

/* Of one task, for its present number of SMs. */
struct ws_stgm_load {
    int64_t g, gm;               /* sums over segments */
    int64_t copy, kernel, whole; /* M, E, A */
    int64_t both;                /* longest hd + dh */
    int64_t wait_copy;           /* for one copy: sum of others' M */
    int64_t wait_kernel;         /* for one kernel */
    int64_t on_cpu;              /* utilisation's numerator */
};

/* Loads of cores are shares of 2^60: rounded down, the same for the same tasks in any order. */
#define LOAD_ONE (INT64_C(1) << 60)

static int64_t share(int64_t time, int64_t period)
{
    __int128 v = ((__int128)time << 60) / period;
    return v > 2 * LOAD_ONE ? 2 * LOAD_ONE : (int64_t)v;
}

static const struct ws_stgm_segment *segment(const struct ws_stgm_set *s, int i, int k)
{
    return &s->segments[s->tasks[i].first_segment + k];
}

static int64_t kernel_time(const struct ws_stgm_set *s, int i, int k, int n_sms)
{
    return s->kernels[(int64_t)segment(s, i, k)->kernel * s->n_sm + n_sms - 1];
}

static int64_t kernels_time(const struct ws_stgm_set *s, int i, int n_sms)
{
    int64_t sum = 0;
    for (int k = 0; k < s->tasks[i].n_segments; k++)
        sum += kernel_time(s, i, k, n_sms);
    return sum;
}

static void measure(const struct ws_stgm_set *s, int i, int n_sms, bool busy,
                    struct ws_stgm_load *ret)
{
    *ret = (struct ws_stgm_load){0};
    for (int k = 0; k < s->tasks[i].n_segments; k++) {
        const struct ws_stgm_segment *g = segment(s, i, k);
        int64_t e = kernel_time(s, i, k, n_sms), gm = g->hd + g->dh;
        ret->g += gm + e;
        ret->gm += gm;
        ret->copy = WS_MAX(ret->copy, WS_MAX(g->hd, g->dh));
        ret->kernel = WS_MAX(ret->kernel, e);
        ret->whole = WS_MAX(ret->whole, gm + e);
        ret->both = WS_MAX(ret->both, gm);
    }
    ret->on_cpu = s->tasks[i].c + (busy ? ret->g : ret->gm);
}

/* ---- SMs ---- */

static void hand_out(const struct ws_stgm_set *s, struct ws_stgm_work *w)
{
    unsigned next = 0;
    for (int i = 0; i < s->n_tasks; i++) {
        w->sms[i] = (struct ws_sm_set){0};
        for (int k = 0; k < w->n_sms[i]; k++) {
            ws_sm_set_add(&w->sms[i], next);
            next = (next + 1) % (unsigned)s->n_sm;
        }
    }
}

static int root(const int *parent, int sm)
{
    while (parent[sm] != sm)
        sm = parent[sm];
    return sm;
}

/* Joins the SMs that tasks tie together; @ret_root[sm]. */
static void tie(const struct ws_stgm_set *s, const struct ws_stgm_work *w, int *ret_root)
{
    for (int sm = 0; sm < s->n_sm; sm++)
        ret_root[sm] = sm;
    for (int i = 0; i < s->n_tasks; i++)
        for (int sm = 0, first = -1; sm < s->n_sm; sm++)
            if (ws_sm_set_has(&w->sms[i], (unsigned)sm)) {
                if (first < 0)
                    first = sm;
                int a = root(ret_root, first), b = root(ret_root, sm);
                ret_root[WS_MAX(a, b)] = WS_MIN(a, b);
            }
    for (int sm = 0; sm < s->n_sm; sm++)
        ret_root[sm] = root(ret_root, sm);
}

static int first_sm(const struct ws_sm_set *set)
{
    for (int sm = 0; sm < WS_SM_MAX; sm++)
        if (ws_sm_set_has(set, (unsigned)sm))
            return sm;
    return 0;
}

static void waits(const struct ws_stgm_set *s, struct ws_stgm_work *w, int variant)
{
    int roots[WS_SM_MAX];
    int64_t tied[WS_SM_MAX] = {0}, copies = 0;
    tie(s, w, roots);
    for (int i = 0; i < s->n_tasks; i++) {
        copies += w->loads[i].copy;
        if (w->n_sms[i])
            tied[roots[first_sm(&w->sms[i])]] += w->loads[i].kernel;
    }
    for (int i = 0; i < s->n_tasks; i++) {
        struct ws_stgm_load *l = &w->loads[i];
        if (!w->n_sms[i])
            continue;
        l->wait_copy = copies - l->copy;
        if (variant & WS_STGM_SAFE) {
            l->wait_kernel = tied[roots[first_sm(&w->sms[i])]] - l->kernel;
            continue;
        }
        for (int u = 0; u < s->n_tasks; u++)
            if (u != i && ws_sm_set_meet(&w->sms[u], &w->sms[i]))
                l->wait_kernel += w->loads[u].kernel;
    }
}

/* ---- the test of one core ---- */

struct core {
    const struct ws_stgm_set *s;
    struct ws_stgm_work *w;
    int variant;
    int cpu, extra; /* the core's tasks and one more */
};

static bool on_core(const struct core *c, int i)
{
    return c->w->cpu[i] == c->cpu || i == c->extra;
}

/* What core-mates below @i may take of the core while boosted. */
static int64_t core_blocking(const struct core *c, int i)
{
    int64_t sum = 0, longest = 0;
    for (int u = i + 1; u < c->s->n_tasks; u++) {
        const struct ws_stgm_load *l = &c->w->loads[u];
        if (!c->w->n_sms[u] || !on_core(c, u))
            continue;
        if (!(c->variant & WS_STGM_BUSY))
            sum += c->variant & WS_STGM_SAFE ? l->both : l->copy;
        else if (c->variant & WS_STGM_SAFE)
            longest = WS_MAX(longest, l->whole + 2 * l->wait_copy + l->wait_kernel);
        else
            sum += l->whole;
    }
    if (!(c->variant & WS_STGM_BUSY))
        return ws_rta_mul(c->s->tasks[i].n_cpu_segments, sum);
    return sum + longest;
}

static int64_t gpu_blocking(const struct core *c, int i)
{
    const struct ws_stgm_load *l = &c->w->loads[i];
    return ws_rta_mul(c->s->tasks[i].n_segments, 2 * l->wait_copy + l->wait_kernel);
}

static bool core_passes(const struct core *c)
{
    struct ws_stgm_work *w = c->w;
    for (int i = 0; i < c->s->n_tasks; i++) {
        if (!on_core(c, i))
            continue;
        w->rta.steps -= c->s->n_tasks;
        int n = 0;
        for (int h = 0; h < i; h++) {
            if (!on_core(c, h))
                continue;
            const struct ws_stgm_task *t = &c->s->tasks[h];
            int64_t x = t->c + w->loads[h].gm;
            if (!(c->variant & WS_STGM_BUSY)) {
                ws_rta_add(w->rta.terms, &n, t->period, w->trial[h] - x, x);
                continue;
            }
            x = t->c + w->loads[h].g + gpu_blocking(c, h);
            if (!(c->variant & WS_STGM_SAFE))
                x += core_blocking(c, h);
            ws_rta_add(w->rta.terms, &n, t->period, 0, x);
        }
        int64_t own = c->s->tasks[i].c + w->loads[i].g + gpu_blocking(c, i) + core_blocking(c, i);
        w->trial[i] = ws_rta_fixed_point(&w->rta, own, w->rta.terms, n, c->s->tasks[i].deadline);
        if (w->trial[i] < 0)
            return false;
    }
    return true;
}

/* ---- worst fit decreasing ---- */

struct by_use {
    const struct ws_stgm_set *s;
    const struct ws_stgm_load *loads;
};

/* Whether @a goes before @b: more utilisation, then the smaller index. */
static bool before(const struct by_use *o, int a, int b)
{
    __int128 x = (__int128)o->loads[a].on_cpu * o->s->tasks[b].period;
    __int128 y = (__int128)o->loads[b].on_cpu * o->s->tasks[a].period;
    return x != y ? x > y : a < b;
}

static void sort_by_use(const struct ws_stgm_set *s, struct ws_stgm_work *w)
{
    const struct by_use o = {s, w->loads};
    for (int k = 0; k < s->n_tasks; k++) {
        int at = k;
        for (; at > 0 && before(&o, k, w->order[at - 1]); at--)
            w->order[at] = w->order[at - 1];
        w->order[at] = k;
    }
}

static void sort_cores(const struct ws_stgm_set *s, struct ws_stgm_work *w)
{
    for (int c = 0; c < s->n_cpus; c++) {
        int at = c;
        for (; at > 0 && w->core_load[c] < w->core_load[w->core_order[at - 1]]; at--)
            w->core_order[at] = w->core_order[at - 1];
        w->core_order[at] = c;
    }
}

static bool place(const struct ws_stgm_set *s, struct ws_stgm_work *w, int variant, int i)
{
    int64_t use = share(w->loads[i].on_cpu, s->tasks[i].period);
    sort_cores(s, w);
    for (int k = 0; k < s->n_cpus; k++) {
        struct core c = {s, w, variant, w->core_order[k], i};
        if (w->core_load[c.cpu] + use > LOAD_ONE || !core_passes(&c))
            continue;
        w->cpu[i] = c.cpu;
        w->core_load[c.cpu] += use;
        for (int t = 0; t < s->n_tasks; t++)
            if (w->cpu[t] == c.cpu)
                w->bound[t] = w->trial[t];
        return true;
    }
    return false;
}

static void reset_cores(const struct ws_stgm_set *s, struct ws_stgm_work *w)
{
    memset(w->core_load, 0, (size_t)s->n_cpus * sizeof(*w->core_load));
    for (int i = 0; i < s->n_tasks; i++) {
        w->cpu[i] = -1;
        w->bound[i] = 0;
    }
}

static bool round_passes(const struct ws_stgm_set *s, struct ws_stgm_work *w, int variant)
{
    bool all = true;
    w->rta.steps -= (int64_t)s->n_tasks * (s->n_tasks + s->n_sm);
    reset_cores(s, w);
    hand_out(s, w);
    for (int i = 0; i < s->n_tasks; i++)
        measure(s, i, WS_MAX(w->n_sms[i], 1), variant & WS_STGM_BUSY, &w->loads[i]);
    waits(s, w, variant);
    sort_by_use(s, w);
    for (int k = 0; k < s->n_tasks && w->rta.steps >= 0; k++)
        all &= place(s, w, variant, w->order[k]);
    return all && w->rta.steps >= 0;
}

/* One more SM for the task that profits most. Return: whether anybody can have more. */
static bool widen(const struct ws_stgm_set *s, struct ws_stgm_work *w)
{
    int best = -1;
    int64_t best_gain = 0;
    for (int i = 0; i < s->n_tasks; i++) {
        if (!w->n_sms[i] || w->n_sms[i] >= s->n_sm)
            continue;
        int64_t gain = kernels_time(s, i, w->n_sms[i]) - kernels_time(s, i, w->n_sms[i] + 1);
        if (best < 0 ||
            (__int128)gain * s->tasks[best].period > (__int128)best_gain * s->tasks[i].period) {
            best = i;
            best_gain = gain;
        }
    }
    if (best < 0)
        return false;
    w->n_sms[best]++;
    return true;
}

void ws_stgm_allocate(const struct ws_stgm_set *s, int variant, struct ws_stgm_work *w,
                      struct ws_stgm_result *ret)
{
    for (int i = 0; i < s->n_tasks; i++)
        w->n_sms[i] = s->tasks[i].n_segments > 0;
    *ret =
        (struct ws_stgm_result){.n_sms = w->n_sms, .sms = w->sms, .cpu = w->cpu, .bound = w->bound};
    w->rta.steps = WS_STGM_STEPS_MAX;
    do {
        ret->rounds++;
        ret->ok = round_passes(s, w, variant);
    } while (!ret->ok && w->rta.steps >= 0 && widen(s, w));
    ret->gave_up = !ret->ok && w->rta.steps < 0;
}

/* ---- the whole GPU for one kernel at a time ---- */

int ws_stgm_whole_gpu(const struct ws_stgm_set *s, struct ws_stgm_work *w,
                      struct ws_stgm_whole *ret, bool *ret_fits)
{
    if (s->n_tasks > ret->n_tasks || s->n_segments > ret->n_segments) {
        ws_stgm_whole_deinit(ret);
        ret->set.tasks = ws_alloc_array((size_t)s->n_tasks, sizeof(*ret->set.tasks));
        ret->set.segments = ws_alloc_array((size_t)s->n_segments + 1, sizeof(*ret->set.segments));
        if (!ret->set.tasks || !ret->set.segments)
            return ws_raise(-ENOMEM);
        ret->n_tasks = s->n_tasks;
        ret->n_segments = s->n_segments;
    }
    struct ws_rta_set *set = &ret->set;
    set->n_tasks = s->n_tasks;
    set->n_segments = s->n_segments;
    set->n_cpus = s->n_cpus;
    set->slice = 1000;
    set->theta = 200;
    set->epsilon = 1000;
    set->unit_per_ms = 1000;
    reset_cores(s, w);
    for (int i = 0; i < s->n_tasks; i++) {
        const struct ws_stgm_task *t = &s->tasks[i];
        measure(s, i, s->n_sm, false, &w->loads[i]);
        set->tasks[i] = (struct ws_rta_task){.period = t->period,
                                             .deadline = t->deadline,
                                             .c = t->c,
                                             .g = w->loads[i].g,
                                             .gm = w->loads[i].gm,
                                             .ge = w->loads[i].g - w->loads[i].gm,
                                             .n_segments = t->n_segments,
                                             .first_segment = t->first_segment};
        for (int k = 0; k < t->n_segments; k++) {
            int64_t gm = segment(s, i, k)->hd + segment(s, i, k)->dh;
            int64_t ge = kernel_time(s, i, k, s->n_sm);
            set->segments[t->first_segment + k] = (struct ws_rta_segment){gm + ge, gm, ge};
        }
    }
    sort_by_use(s, w);
    *ret_fits = true;
    for (int k = 0; k < s->n_tasks; k++) {
        int i = w->order[k];
        sort_cores(s, w);
        set->tasks[i].cpu = w->core_order[0];
        w->core_load[w->core_order[0]] += share(w->loads[i].on_cpu, s->tasks[i].period);
        *ret_fits &= w->core_load[w->core_order[0]] <= LOAD_ONE;
    }
    return 0;
}

void ws_stgm_whole_deinit(struct ws_stgm_whole *whole)
{
    free(whole->set.tasks);
    free(whole->set.segments);
    *whole = (struct ws_stgm_whole){0};
}

/* ---- space and input ---- */

void ws_stgm_work_deinit(struct ws_stgm_work *w)
{
    free(w->loads);
    free(w->n_sms);
    free(w->cpu);
    free(w->order);
    free(w->sms);
    free(w->bound);
    free(w->trial);
    free(w->core_load);
    free(w->core_order);
    ws_rta_work_deinit(&w->rta);
    *w = WS_STGM_WORK_NULL;
}

int ws_stgm_work_reserve(struct ws_stgm_work *w, int n_tasks)
{
    if (n_tasks <= w->n_tasks)
        return 0;
    ws_stgm_work_deinit(w);
    size_t n = (size_t)n_tasks;
    w->loads = ws_alloc_array(n, sizeof(*w->loads));
    w->n_sms = ws_alloc_array(n, sizeof(*w->n_sms));
    w->cpu = ws_alloc_array(n, sizeof(*w->cpu));
    w->order = ws_alloc_array(n, sizeof(*w->order));
    w->sms = ws_alloc_array(n, sizeof(*w->sms));
    w->bound = ws_alloc_array(n, sizeof(*w->bound));
    w->trial = ws_alloc_array(n, sizeof(*w->trial));
    w->core_load = ws_alloc_array(WS_RTA_CPUS_MAX, sizeof(*w->core_load));
    w->core_order = ws_alloc_array(WS_RTA_CPUS_MAX, sizeof(*w->core_order));
    if (!w->loads || !w->n_sms || !w->cpu || !w->order || !w->sms || !w->bound || !w->trial ||
        !w->core_load || !w->core_order || ws_rta_work_reserve(&w->rta, n_tasks, 1)) {
        ws_stgm_work_deinit(w);
        return ws_raise(-ENOMEM);
    }
    w->n_tasks = n_tasks;
    return 0;
}

static const char *segment_check(const struct ws_stgm_set *s, const struct ws_stgm_segment *g)
{
    if (g->hd < 0 || g->hd > WS_RTA_TIME_MAX || g->dh < 0 || g->dh > WS_RTA_TIME_MAX)
        return "copy times must be 0 or more and below 2^44 units";
    const int64_t *e = &s->kernels[(int64_t)g->kernel * s->n_sm];
    for (int k = 0; k < s->n_sm; k++) {
        if (e[k] < 0 || e[k] > WS_RTA_TIME_MAX)
            return "kernel times must be 0 or more and below 2^44 units";
        if (k && e[k] > e[k - 1])
            return "a kernel may not take longer on more SMs";
    }
    return NULL;
}

const char *ws_stgm_set_check(const struct ws_stgm_set *s, int *ret_task)
{
    *ret_task = -1;
    if (s->n_tasks < 1 || s->n_tasks > WS_RTA_TASKS_MAX)
        return "a set has 1 to 4096 tasks";
    if (s->n_cpus < 1 || s->n_cpus > WS_RTA_CPUS_MAX)
        return "there must be 1 to 1024 cores";
    if (s->n_sm < 1 || s->n_sm > WS_SM_MAX)
        return "there must be 1 to 256 SMs";
    for (int i = 0; i < s->n_tasks; i++) {
        const struct ws_stgm_task *t = &s->tasks[i];
        *ret_task = i;
        if (t->period <= 0 || t->period > WS_RTA_TIME_MAX)
            return "the period must be above 0 and below 2^44 units";
        if (t->deadline <= 0 || t->deadline > t->period)
            return "the deadline must be above 0 and no later than the period";
        if (t->c < 0 || t->c > WS_RTA_TIME_MAX || t->n_cpu_segments < 0 ||
            t->n_cpu_segments > WS_RTA_SEGMENTS_MAX)
            return "CPU time or segments are out of range";
        if (t->n_segments < 0 || t->n_segments > WS_RTA_SEGMENTS_MAX || t->first_segment < 0 ||
            t->first_segment > s->n_segments - t->n_segments)
            return "its GPU segments are out of bounds";
        for (int k = 0; k < t->n_segments; k++) {
            const char *wrong = segment_check(s, segment(s, i, k));
            if (wrong)
                return wrong;
        }
    }
    *ret_task = -1;
    return NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* Tests the real-time simulator. It fails if it differs from schedules made by hand or, on random
 * sets, from a second and much simpler simulator, if a run lacks a property that every run must
 * have, or if two runs of the same input differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "papers/sets/random.h"
#include "papers/sim/rtsim.h"
#include "papers/sim/rtsim_hunt.h"

enum { N = 8 };
struct row {
    int core;
    int64_t offset, cpu0, before, kernel, after, cpu1;
    unsigned sms;
    bool best_effort;
};

/* Tasks with one segment each (none where it has no time), in decreasing priority, far apart
 * releases. */
static void make_set(struct ws_rtsim_set *s, const struct row *rows, int n, int64_t epsilon)
{
    assert_int_equal(ws_rtsim_set_init(s, n), 0);
    s->per_ms = 1;
    s->slice = 10;
    s->theta = 2;
    s->epsilon = epsilon;
    s->n_cores = 4;
    s->n_sms = 8;
    for (int i = 0; i < n; i++) {
        struct ws_rtsim_task *t = &s->tasks[i];
        bool gpu = rows[i].before + rows[i].kernel + rows[i].after > 0;
        assert_int_equal(ws_rtsim_set_segments(s, i, gpu), 0);
        t->id = i;
        t->core = rows[i].core;
        t->priority = n - i;
        t->best_effort = rows[i].best_effort;
        t->period = t->deadline = 1000000;
        t->offset = rows[i].offset;
        t->cpu[0] = rows[i].cpu0;
        t->cpu[gpu] += gpu ? rows[i].cpu1 : 0;
        if (gpu)
            t->segments[0] = (struct ws_rtsim_segment){
                .before = rows[i].before, .kernel = rows[i].kernel, .after = rows[i].after};
        for (unsigned k = 0; k < 8; k++)
            if (rows[i].sms >> k & 1)
                ws_sm_set_add(&t->sms, k);
    }
}

static void run_set(const struct ws_rtsim_set *s, struct ws_rtsim_config config, int64_t horizon,
                    int64_t *worst)
{
    struct ws_rtsim *rt;
    struct ws_rtsim_result r;
    struct ws_rtsim_scenario once = {.horizon = horizon, .exec_permille = 1000};
    assert_int_equal(ws_rtsim_new(&rt, s, &config), 0);
    assert_int_equal(ws_rtsim_run(rt, &once, NULL, &r), 0);
    for (int i = 0; i < s->n_tasks; i++)
        worst[i] = r.tasks[i].worst;
    ws_rtsim_free(rt);
}

struct schedule {
    const char *description;
    struct ws_rtsim_config config;
    int64_t epsilon;
    struct row rows[N];
    int n;
    int64_t worst[N];
};

static const struct schedule schedules[] = {
    {"gcaps: begin, work, end of one task alone: 1+1+1+4+1+1",
     {.policy = WS_RTSIM_GCAPS},
     1,
     {{.cpu0 = 1, .before = 1, .kernel = 4, .cpu1 = 1}},
     1,
     {9}},
    {"gcaps: the same with the calls around all of the segment",
     {.policy = WS_RTSIM_GCAPS, .hold = WS_RTSIM_HOLD_CALLS},
     1,
     {{.cpu0 = 1, .before = 1, .kernel = 4, .cpu1 = 1}},
     1,
     {9}},
    {"gcaps: 0 preempts 1 at 4 and hands back at 7; two updates in which the GPU stands still",
     {.policy = WS_RTSIM_GCAPS},
     1,
     {{.offset = 4, .kernel = 2}, {.core = 1, .kernel = 5}},
     2,
     {4, 11}},
    {"gcaps: 1 is done at 7, but 0 has its core until 16: the daemon hands the GPU on",
     {.policy = WS_RTSIM_GCAPS},
     1,
     {{.offset = 6, .cpu0 = 10}, {.offset = 4, .kernel = 2}, {.core = 1, .kernel = 5}},
     3,
     {10, 13, 11}},
    {"gcaps: the same with end called by the program: the GPU is kept, idle, until 17",
     {.policy = WS_RTSIM_GCAPS, .hold = WS_RTSIM_HOLD_CALLS},
     1,
     {{.offset = 6, .cpu0 = 10}, {.offset = 4, .kernel = 2}, {.core = 1, .kernel = 5}},
     3,
     {10, 13, 20}},
    {"gcaps: busy: 1 waits while 0 spins",
     {.policy = WS_RTSIM_GCAPS, .busy = true},
     1,
     {{.kernel = 6}, {.offset = 1, .cpu0 = 2}},
     2,
     {8, 9}},
    {"gcaps: suspend: 1 runs in the kernel's time, but not in the update's",
     {.policy = WS_RTSIM_GCAPS},
     1,
     {{.kernel = 6}, {.cpu0 = 2}},
     2,
     {8, 3}},
    {"gcaps: an update is not preempted on its core",
     {.policy = WS_RTSIM_GCAPS},
     5,
     {{.offset = 1, .cpu0 = 2}, {.kernel = 1}},
     2,
     {6, 12}},
    {"gcaps: best effort shares the GPU in slices, with switches",
     {.policy = WS_RTSIM_GCAPS},
     0,
     {{.kernel = 20, .best_effort = true}, {.core = 1, .kernel = 20, .best_effort = true}},
     2,
     {34, 46}},
    {"rr: two kernels of two slices, a switch before each turn but the first",
     {.policy = WS_RTSIM_RR},
     0,
     {{.kernel = 20}, {.core = 1, .kernel = 20}},
     2,
     {34, 46}},
    {"rr: who comes in the middle of a slice waits for its end",
     {.policy = WS_RTSIM_RR},
     0,
     {{.kernel = 25}, {.core = 1, .offset = 13, .kernel = 5}},
     2,
     {34, 14}},
    {"rr: suspend: the core is free in the kernel's time",
     {.policy = WS_RTSIM_RR},
     0,
     {{.kernel = 10}, {.cpu0 = 4}},
     2,
     {10, 4}},
    {"rr: busy: it is not",
     {.policy = WS_RTSIM_RR, .busy = true},
     0,
     {{.kernel = 10}, {.cpu0 = 4}},
     2,
     {10, 14}},
    {"mpcp: the highest waiter is next",
     {.policy = WS_RTSIM_MPCP},
     0,
     {{.offset = 2, .kernel = 3}, {.core = 1, .offset = 1, .kernel = 5}, {.core = 2, .kernel = 10}},
     3,
     {11, 17, 10}},
    {"fmlp+: the first waiter is next",
     {.policy = WS_RTSIM_FMLP},
     0,
     {{.offset = 2, .kernel = 3}, {.core = 1, .offset = 1, .kernel = 5}, {.core = 2, .kernel = 10}},
     3,
     {16, 14, 10}},
    {"mpcp: the holder runs above its core-mate",
     {.policy = WS_RTSIM_MPCP},
     0,
     {{.offset = 1, .cpu0 = 2}, {.before = 4, .kernel = 1}},
     2,
     {5, 5}},
    {"mpcp: busy: the holder spins above its core-mate",
     {.policy = WS_RTSIM_MPCP, .busy = true},
     0,
     {{.offset = 1, .cpu0 = 2}, {.before = 4, .kernel = 3}},
     2,
     {8, 7}},
    {"stgm: the copy in is boosted, the kernel's time is free",
     {.policy = WS_RTSIM_STGM},
     0,
     {{.offset = 1, .cpu0 = 3}, {.before = 2, .kernel = 5, .after = 2, .sms = 1}},
     2,
     {4, 9}},
    {"stgm: the copy out comes back boosted",
     {.policy = WS_RTSIM_STGM},
     0,
     {{.offset = 6, .cpu0 = 3}, {.before = 2, .kernel = 5, .after = 2, .sms = 1}},
     2,
     {5, 9}},
    {"stgm: busy: boosted from the copy in to the copy out",
     {.policy = WS_RTSIM_STGM, .busy = true},
     0,
     {{.offset = 1, .cpu0 = 3}, {.before = 2, .kernel = 5, .after = 2, .sms = 1}},
     2,
     {11, 9}},
    {"stgm: disjoint kernels at once, sharing ones in order: a chain",
     {.policy = WS_RTSIM_STGM},
     0,
     {{.before = 1, .kernel = 50, .after = 1, .sms = 0x06},
      {.core = 1, .offset = 2, .before = 1, .kernel = 10, .after = 1, .sms = 0x03},
      {.core = 2, .offset = 4, .before = 1, .kernel = 5, .after = 1, .sms = 0x01},
      {.core = 3, .offset = 6, .before = 1, .kernel = 7, .after = 1, .sms = 0x18}},
     4,
     {52, 60, 63, 9}},
    {"stgm: one copy at a time",
     {.policy = WS_RTSIM_STGM},
     0,
     {{.before = 3, .kernel = 1, .sms = 1},
      {.core = 1, .before = 3, .kernel = 1, .sms = 2},
      {.core = 2, .offset = 1, .before = 3, .kernel = 1, .sms = 4}},
     3,
     {4, 7, 9}},
    {"best effort has the core when no real-time job wants it, in order of release",
     {.policy = WS_RTSIM_RR},
     0,
     {{.offset = 3, .cpu0 = 2},
      {.offset = 1, .cpu0 = 4, .best_effort = true},
      {.cpu0 = 4, .best_effort = true}},
     3,
     {2, 9, 6}},
};

static void test_schedules(void **state)
{
    (void)state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(schedules); k++) {
        const struct schedule *x = &schedules[k];
        struct ws_rtsim_set s;
        int64_t worst[N];
        make_set(&s, x->rows, x->n, x->epsilon);
        run_set(&s, x->config, 100000, worst);
        for (int i = 0; i < x->n; i++)
            if (worst[i] != x->worst[i])
                fail_msg("%s: task %d: %d, not %d", x->description, i, (int)worst[i],
                         (int)x->worst[i]);
        ws_rtsim_set_deinit(&s);
    }
}

/* Liu and Layland: (1,4), (2,6), (3,12) on one core. */
static void test_rate_monotonic(void **state)
{
    (void)state;
    static const struct row rows[] = {{.cpu0 = 1}, {.cpu0 = 2}, {.cpu0 = 3}};
    static const int64_t periods[] = {4, 6, 12}, want[] = {1, 3, 10};
    struct ws_rtsim_set s;
    int64_t worst[N];
    make_set(&s, rows, 3, 0);
    for (int i = 0; i < 3; i++)
        s.tasks[i].period = s.tasks[i].deadline = periods[i];
    run_set(&s, (struct ws_rtsim_config){.policy = WS_RTSIM_RR}, 48, worst);
    for (int i = 0; i < 3; i++)
        assert_int_equal(worst[i], want[i]);
    /* Overload: the lowest falls behind; its unfinished job counts as missed. */
    s.tasks[2].cpu[0] = 6;
    struct ws_rtsim *rt;
    struct ws_rtsim_result r;
    struct ws_rtsim_config config = {.policy = WS_RTSIM_RR};
    struct ws_rtsim_scenario once = {.horizon = 120, .exec_permille = 1000};
    assert_int_equal(ws_rtsim_new(&rt, &s, &config), 0);
    assert_int_equal(ws_rtsim_run(rt, &once, NULL, &r), 0);
    assert_int_equal(r.core_busy[0], 120);
    assert_true(r.tasks[2].n_missed > 0);
    assert_true(r.tasks[2].worst > 12);
    assert_int_equal(r.tasks[0].n_missed + r.tasks[1].n_missed, 0);
    ws_rtsim_free(rt);
    ws_rtsim_set_deinit(&s);
}

/* ---- random sets ---- */
static void random_set(struct ws_random *r, struct ws_rtsim_set *s, bool plain)
{
    int n = (int)ws_random_integer(r, 2, N);
    assert_int_equal(ws_rtsim_set_init(s, n), 0);
    s->per_ms = 10;
    s->n_cores = (int)ws_random_integer(r, 1, 3);
    s->n_sms = 6;
    s->slice = ws_random_integer(r, 1, 12);
    s->theta = plain ? 0 : ws_random_integer(r, 0, 3);
    s->epsilon = plain ? 0 : ws_random_integer(r, 0, 4);
    int n_rt = plain ? n : (int)ws_random_integer(r, 1, n);
    for (int i = 0; i < n; i++) {
        struct ws_rtsim_task *t = &s->tasks[i];
        assert_int_equal(ws_rtsim_set_segments(s, i, (int)ws_random_integer(r, 0, 2)), 0);
        t->id = i;
        t->core = (int)ws_random_integer(r, 0, s->n_cores - 1);
        t->priority = n - i;
        t->best_effort = i >= n_rt;
        t->period = t->deadline = ws_random_integer(r, 20, 200);
        t->offset = ws_random_integer(r, 0, 50);
        t->jitter = plain ? 0 : ws_random_integer(r, 0, 5);
        for (int k = 0; k <= t->n_segments; k++)
            t->cpu[k] = ws_random_integer(r, plain ? 1 : k == 0, 6);
        for (int k = 0; k < t->n_segments; k++) {
            t->segments[k].before = ws_random_integer(r, 0, 4);
            t->segments[k].kernel = ws_random_integer(r, plain ? 1 : 0, 15);
            t->segments[k].after = plain ? 0 : ws_random_integer(r, 0, 3);
        }
        for (unsigned k = 0; k < 6; k++)
            if (ws_random_integer(r, 0, 2) == 0 || k == (unsigned)i % 6)
                ws_sm_set_add(&t->sms, k);
    }
}

/* The plainest simulator: unit by unit, preemptive priorities on cores and GPU, no overheads. */
enum { CPU, CALL, GPU };
struct naive {
    bool active;
    /* 3 for each segment (CPU with its CPU-side work, call, GPU), then the last CPU part */
    int step;
    int64_t left, release, next, worst;
};

static int naive_kind(const struct ws_rtsim_task *t, const struct naive *j)
{
    return j->step >= 3 * t->n_segments ? CPU : j->step % 3;
}

static void naive_enter(const struct ws_rtsim_task *t, struct naive *j)
{
    int k = j->step / 3, kind = naive_kind(t, j);
    j->left = 0;
    if (kind == CPU)
        j->left = t->cpu[k] + (k < t->n_segments ? t->segments[k].before : 0);
    else if (kind == GPU)
        j->left = t->segments[k].kernel;
}

static int naive_highest(const struct ws_rtsim_set *s, const struct naive *jobs, int core)
{
    for (int i = 0; i < s->n_tasks; i++) {
        int kind = naive_kind(&s->tasks[i], &jobs[i]);
        if (jobs[i].active && (core < 0 ? kind == GPU : kind != GPU && s->tasks[i].core == core))
            return i;
    }
    return -1;
}

static void naive_run(const struct ws_rtsim_set *s, int64_t horizon, int64_t *worst)
{
    struct naive jobs[N] = {0};
    for (int i = 0; i < s->n_tasks; i++)
        jobs[i].next = s->tasks[i].offset;
    for (int64_t now = 0; now < horizon; now++) {
        for (int i = 0; i < s->n_tasks; i++)
            if (!jobs[i].active && jobs[i].next <= now) {
                jobs[i].active = true;
                jobs[i].step = 0;
                jobs[i].release = jobs[i].next;
                jobs[i].next += s->tasks[i].period;
                naive_enter(&s->tasks[i], &jobs[i]);
            }
        for (int c = 0, i; c < s->n_cores; c++)
            while ((i = naive_highest(s, jobs, c)) >= 0 &&
                   naive_kind(&s->tasks[i], &jobs[i]) == CALL) {
                jobs[i].step++;
                naive_enter(&s->tasks[i], &jobs[i]);
            }
        int runs[N], n = 0;
        for (int c = -1; c < s->n_cores; c++) {
            int i = naive_highest(s, jobs, c);
            if (i >= 0)
                runs[n++] = i;
        }
        for (int k = 0; k < n; k++) {
            struct naive *j = &jobs[runs[k]];
            const struct ws_rtsim_task *t = &s->tasks[runs[k]];
            if (--j->left > 0)
                continue;
            if (j->step < 3 * t->n_segments) {
                j->step++;
                naive_enter(t, j);
                continue;
            }
            j->active = false;
            j->worst = WS_MAX(j->worst, now + 1 - j->release);
        }
    }
    for (int i = 0; i < s->n_tasks; i++) {
        int64_t so_far = jobs[i].active ? horizon - jobs[i].release : 0;
        worst[i] = WS_MAX(jobs[i].worst, so_far > s->tasks[i].deadline ? so_far : 0);
    }
}

static void test_against_naive(void **state)
{
    (void)state;
    struct ws_random r;
    ws_random_init(&r, 4711);
    for (int k = 0; k < 400; k++) {
        struct ws_rtsim_set s;
        int64_t ours[N], naive[N];
        random_set(&r, &s, true);
        run_set(&s, (struct ws_rtsim_config){.policy = WS_RTSIM_GCAPS}, 1500, ours);
        naive_run(&s, 1500, naive);
        for (int i = 0; i < s.n_tasks; i++)
            if (ours[i] != naive[i])
                fail_msg("set %d task %d: %d, naively %d", k, i, (int)ours[i], (int)naive[i]);
        ws_rtsim_set_deinit(&s);
    }
}

/* ---- properties ---- */
struct watch {
    const struct ws_rtsim_set *s;
    struct ws_rtsim_config config;
    int64_t core_until[4], gpu_until, copy_until, core_busy[4];
    int64_t kernel_until[6], come_last[6]; /* stgm, by SM */
    uint64_t n_jobs, n_lists;
    uint64_t hash;
};

static void mix(struct watch *w, int64_t x)
{
    w->hash = (w->hash ^ (uint64_t)x) * UINT64_C(0x100000001b3);
}

static void on_span(void *arg, enum ws_rtsim_span what, int core, int task, int64_t start,
                    int64_t end)
{
    struct watch *w = arg;
    mix(w, what + 16 * core + 256 * task);
    mix(w, start);
    mix(w, end);
    assert_true(start < end);
    if (core >= 0) {
        assert_int_equal(w->s->tasks[task].core, core);
        assert_true(start >= w->core_until[core]); /* one job at a time */
        w->core_until[core] = end;
        w->core_busy[core] += end - start;
        assert_true(what != WS_RTSIM_SPAN_SPIN || w->config.busy);
    } else if (what != WS_RTSIM_SPAN_UPDATE && w->config.policy != WS_RTSIM_STGM) {
        assert_true(start >= w->gpu_until); /* one context at a time */
        w->gpu_until = end;
    }
    if (what == WS_RTSIM_SPAN_COPY) {
        assert_true(start >= w->copy_until);
        w->copy_until = end;
    }
}

/* At most one real-time task in a run list, alone, and none of higher priority waits with it
 * (checked by list against open). */
static void on_list(void *arg, int64_t now, const bool *listed)
{
    struct watch *w = arg;
    int n = 0, n_rt = 0;
    (void)now;
    w->n_lists++;
    for (int i = 0; i < w->s->n_tasks; i++) {
        n += listed[i];
        n_rt += listed[i] && !w->s->tasks[i].best_effort;
    }
    if (w->config.policy == WS_RTSIM_GCAPS)
        assert_true(n_rt == 0 || n == 1);
    if (w->config.policy == WS_RTSIM_MPCP || w->config.policy == WS_RTSIM_FMLP)
        assert_true(n <= 1);
}

static void on_request(void *arg, int task, int segment, int part, int64_t come, int64_t start,
                       int64_t end)
{
    struct watch *w = arg;
    (void)segment;
    assert_true(come <= start && start <= end);
    if (w->config.policy != WS_RTSIM_STGM || part != 0)
        return;
    for (unsigned k = 0; k < 6; k++) {
        if (!ws_sm_set_has(&w->s->tasks[task].sms, k))
            continue;
        assert_true(start >= w->kernel_until[k]); /* an SM has one kernel */
        assert_true(come >= w->come_last[k]);     /* and they come in order */
        w->kernel_until[k] = end;
        w->come_last[k] = come;
    }
}

static void on_job(void *arg, int task, int64_t release, int64_t end)
{
    struct watch *w = arg;
    const struct ws_rtsim_task *t = &w->s->tasks[task];
    int64_t least = 0;
    for (int k = 0; k <= t->n_segments; k++)
        least += t->cpu[k];
    for (int k = 0; k < t->n_segments; k++)
        least += t->segments[k].before + t->segments[k].kernel + t->segments[k].after;
    assert_true(end - release >= least);
    mix(w, release);
    mix(w, end);
    w->n_jobs++;
}

static uint64_t watched(const struct ws_rtsim_set *s, struct ws_rtsim_config config, uint64_t seed)
{
    struct watch w = {.s = s, .config = config};
    struct ws_rtsim_observer o = {
        .arg = &w, .span = on_span, .list = on_list, .request = on_request, .job = on_job};
    struct ws_rtsim *rt;
    struct ws_rtsim_result r;
    struct ws_rtsim_scenario x = {
        .horizon = 3000, .exec_permille = 1000, .slack_permille = 200, .seed = seed};
    assert_int_equal(ws_rtsim_new(&rt, s, &config), 0);
    assert_int_equal(ws_rtsim_run(rt, &x, &o, &r), 0);
    uint64_t finished = 0;
    for (int i = 0; i < s->n_tasks; i++)
        finished += r.tasks[i].n_finished;
    assert_int_equal(finished, w.n_jobs);
    assert_int_equal(r.end, 3000);
    for (int c = 0; c < s->n_cores; c++) {
        assert_int_equal(r.core_busy[c], w.core_busy[c]);
        assert_true(r.core_busy[c] <= r.end);
    }
    assert_true(r.gpu_busy + r.gpu_switching + r.gpu_updating <= r.end);
    /* The same again, and with other observers, is the same. */
    struct ws_rtsim_result again;
    struct ws_rtsim_task_result first[N];
    memcpy(first, r.tasks, sizeof(*first) * (size_t)s->n_tasks);
    assert_int_equal(ws_rtsim_run(rt, &x, NULL, &again), 0);
    assert_memory_equal(first, again.tasks, sizeof(*first) * (size_t)s->n_tasks);
    assert_int_equal(r.n_events, again.n_events);
    ws_rtsim_free(rt);
    return w.hash;
}

static void test_properties(void **state)
{
    (void)state;
    struct ws_random r;
    ws_random_init(&r, 99);
    int n_other = 0;
    for (int k = 0; k < 150; k++) {
        struct ws_rtsim_set s;
        random_set(&r, &s, false);
        for (int p = 0; p < _WS_RTSIM_POLICY_N; p++)
            for (int m = 0; m < 2 * (p == WS_RTSIM_GCAPS ? _WS_RTSIM_HOLD_N : 1); m++) {
                struct ws_rtsim_config c = {.policy = (enum ws_rtsim_policy)p,
                                            .busy = m % 2,
                                            .hold = (enum ws_rtsim_hold)(m / 2)};
                uint64_t h = watched(&s, c, 5);
                assert_true(h == watched(&s, c, 5));
                n_other += h != watched(&s, c, 6);
            }
        ws_rtsim_set_deinit(&s);
    }
    assert_true(n_other > 1000); /* of 1800: the seed matters */
}

/* Policy-made slices: the same work gets done, in turns of the policy. */
static void test_other_policy_object(void **state)
{
    (void)state;
    static const struct row rows[] = {{.kernel = 20}, {.core = 1, .kernel = 20}};
    struct ws_rtsim_set s;
    int64_t worst[N];
    make_set(&s, rows, 2, 0);
    s.theta = 0;
    const char *const options[] = {"slice=5", NULL};
    run_set(&s, (struct ws_rtsim_config){.policy = WS_RTSIM_RR, .policy_options = options}, 1000,
            worst);
    assert_int_equal(worst[0], 35);
    assert_int_equal(worst[1], 40);
    ws_rtsim_set_deinit(&s);
    /* GCAPS by the driver patch: a best-effort task that ends throws the other off, which then
     * never ends. */
    static const struct row be[] = {{.kernel = 10, .best_effort = true},
                                    {.core = 1, .kernel = 500, .best_effort = true}};
    make_set(&s, be, 2, 0);
    s.tasks[1].deadline = 2000;
    run_set(&s, (struct ws_rtsim_config){.policy = WS_RTSIM_GCAPS, .policy_name = "gcaps-driver"},
            90000, worst);
    assert_int_equal(worst[1], 90000);
    run_set(&s, (struct ws_rtsim_config){.policy = WS_RTSIM_GCAPS}, 90000, worst);
    assert_int_equal(worst[1], 512);
    ws_rtsim_set_deinit(&s);
}

static void count_listed(void *arg, int64_t now, const bool *listed)
{
    int *most = arg, n = 0;
    (void)now;
    for (int i = 0; i < 3; i++)
        n += listed[i];
    *most = n > *most ? n : *most;
}

static void run_own(const struct row *rows, int n, const char *option, const int64_t *worst)
{
    const char *const options[] = {option, NULL};
    struct ws_rtsim_config config = {
        .policy = WS_RTSIM_GCAPS, .policy_name = "wattshare", .policy_options = options};
    struct ws_rtsim_scenario once = {.horizon = 900, .exec_permille = 1000};
    struct ws_rtsim_set s;
    struct ws_rtsim *rt;
    struct ws_rtsim_result r;
    int most = 0;
    const struct ws_rtsim_observer observer = {.arg = &most, .list = count_listed};
    make_set(&s, rows, n, 0);
    s.tasks[n - 1].deadline = 20;
    assert_int_equal(ws_rtsim_new(&rt, &s, &config), 0);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(ws_rtsim_run(rt, &once, &observer, &r), 0);
        for (int i = 0; i < n; i++)
            assert_int_equal(r.tasks[i].worst, worst[i]);
    }
    assert_int_equal(most, 1);
    ws_rtsim_free(rt);
    ws_rtsim_set_deinit(&s);
}

/* Our own policy is told what kernels take, what runs, and when tasks are first released, and
 * remembers nothing of another run. A switch takes 2. */
static void test_own_policy(void **state)
{
    static const struct row three[] = {{.kernel = 10},
                                       {.core = 1, .offset = 2, .kernel = 30},
                                       {.core = 2, .offset = 3, .kernel = 5}},
                            foreseen[] = {{.kernel = 30},
                                          {.core = 1, .kernel = 1, .offset = 800},
                                          {.core = 2, .offset = 3, .kernel = 5}},
                            more[] = {{.kernel = 15},
                                      {.core = 1, .kernel = 1, .offset = 800},
                                      {.core = 2, .offset = 3, .kernel = 5, .cpu1 = 8}};
    (void)state;
    /* 0 has the GPU until 10. Then 2, which has a deadline, comes before 1. If costs were missing,
     * the order of arrival would decide; if what runs were, two would run at once. */
    run_own(three, 3, NULL, (const int64_t[]){10, 47, 14});
    /* 0 is there first, but waits, since 2 would be late after it. */
    run_own(foreseen, 3, "preempt=0", (const int64_t[]){40, 3, 5});
    /* It is taken off for 2. */
    run_own(foreseen, 3, NULL, (const int64_t[]){39, 3, 7});
    /* 2 could wait until 0 ends, but its program has more to do then. */
    run_own(more, 3, NULL, (const int64_t[]){24, 3, 15});
}

/* Where kernels have sets of SMs, our own policy gives each as many as it likes, and a kernel takes
 * what it takes on so many. Copies are done one at a time without being asked about. */
static void test_own_policy_sms(void **state)
{
    static const int64_t falling[8] = {50, 40, 30, 25, 22, 20, 18, 16},
                         even[8] = {12, 12, 12, 12, 12, 12, 12, 12};
    static const struct row rows[] = {{.kernel = 16},
                                      {.core = 1, .kernel = 12, .offset = 1},
                                      {.core = 2, .before = 5, .after = 4},
                                      {.core = 3, .before = 5}};
    const struct ws_rtsim_config config = {.policy = WS_RTSIM_STGM, .policy_name = "wattshare"};
    struct ws_rtsim_set s;
    int64_t worst[4];
    (void)state;
    make_set(&s, rows, 4, 0);
    s.tasks[0].segments[0].by_sms = falling;
    s.tasks[1].segments[0].by_sms = even;
    run_set(&s, config, 900, worst);
    assert_int_equal(worst[0], 16); /* on all 8; 1 has time to wait */
    assert_int_equal(worst[1], 15 + 12);
    assert_int_equal(worst[2], 5 + 5 + 4); /* behind the copy of 3, which had asked before */
    assert_int_equal(worst[3], 10);
    s.tasks[1].deadline = 20;
    run_set(&s, config, 900, worst);
    assert_int_equal(worst[0], 1 + 18); /* it waits for 1, which has one of them */
    assert_int_equal(worst[1], 12);
    ws_rtsim_set_deinit(&s);
}

static void test_hunt(void **state)
{
    (void)state;
    /* Two core-mates and a remote one: the bound of GCAPS for 2 holds where the daemon hands on,
     * not where programs call end. */
    static const struct row rows[] = {{.cpu0 = 30},
                                      {.cpu0 = 2, .before = 3, .kernel = 10, .cpu1 = 2},
                                      {.core = 1, .cpu0 = 2, .before = 2, .kernel = 20, .cpu1 = 2}};
    struct ws_rtsim_set s;
    struct ws_rtsim *rt;
    make_set(&s, rows, 3, 1);
    for (int i = 0; i < 3; i++)
        s.tasks[i].period = s.tasks[i].deadline = 100 + 50 * i;
    s.per_ms = 10;
    /* GCAPS, suspend, by hand. 2: own 2+2+2+20 + 2e + 2e = 30; remote 1: ceil((R + R1 - 10)/150)
     * (10 + 2e), R1 = 17+4+30 = 51: ceil((42 + 41)/150) = 1, so 30 + 12 = 42. */
    const int64_t bounds[] = {31, 51, 42};
    bool over[2];
    for (int h = 0; h < 2; h++) {
        struct ws_rtsim_config config = {.policy = WS_RTSIM_GCAPS,
                                         .hold = h ? WS_RTSIM_HOLD_CALLS : WS_RTSIM_HOLD_WORK};
        struct ws_rtsim_task_result worst[3], again[3];
        int64_t offsets[3], offsets2[3];
        struct ws_rtsim_hunt hunt = {.n_runs = 400, .seed = 3, .n_periods = 4};
        struct ws_rtsim_prey prey = {.tasks = worst, .offsets = offsets},
                             p2 = {.tasks = again, .offsets = offsets2};
        assert_int_equal(ws_rtsim_new(&rt, &s, &config), 0);
        assert_int_equal(ws_rtsim_hunt(rt, &s, bounds, &hunt, &prey), 0);
        assert_int_equal(ws_rtsim_hunt(rt, &s, bounds, &hunt, &p2), 0);
        assert_memory_equal(worst, again, sizeof(worst));
        assert_memory_equal(offsets, offsets2, sizeof(offsets));
        over[h] = prey.ratio > 1;
        /* The run that it names shows what it says. */
        struct ws_rtsim_result r;
        assert_int_equal(ws_rtsim_run(rt, &prey.scenario, NULL, &r), 0);
        assert_true((double)r.tasks[prey.task].worst / (double)bounds[prey.task] == prey.ratio);
        ws_rtsim_free(rt);
    }
    assert_false(over[0]);
    assert_true(over[1]);
    ws_rtsim_set_deinit(&s);
}

/* ---- what is refused ---- */
static void test_checks(void **state)
{
    (void)state;
    static const struct row rows[] = {{.cpu0 = 1, .before = 1, .kernel = 4, .cpu1 = 1},
                                      {.cpu0 = 1}};
    struct ws_rtsim_set s;
    char why[128];
    struct ws_rtsim *rt = NULL;
    struct ws_rtsim_config config = {.policy = WS_RTSIM_GCAPS};
    make_set(&s, rows, 2, 1);
    assert_null(ws_rtsim_check(&s, why, sizeof(why)));
#define REFUSED(field, value, says)                                                                \
    do {                                                                                           \
        __typeof__(field) old = field;                                                             \
        field = value;                                                                             \
        assert_non_null(ws_rtsim_check(&s, why, sizeof(why)));                                     \
        if (!strstr(why, says))                                                                    \
            fail_msg("%s: '%s'", #field, why);                                                     \
        assert_int_equal(ws_rtsim_new(&rt, &s, &config), -EINVAL);                                 \
        assert_null(rt);                                                                           \
        field = old;                                                                               \
    } while (0)
    REFUSED(s.tasks[1].core, 4, "tasks[1]: core 4, but there are 4 cores");
    REFUSED(s.tasks[0].core, -1, "core -1");
    REFUSED(s.tasks[0].period, 0, "period");
    REFUSED(s.tasks[0].deadline, -1, "deadline");
    REFUSED(s.tasks[0].jitter, -5, "jitter");
    REFUSED(s.tasks[0].cpu[1], -1, "negative");
    REFUSED(s.tasks[0].segments[0].kernel, INT64_MAX, "negative");
    REFUSED(s.tasks[1].cpu[0], 0, "nothing to do");
    REFUSED(s.tasks[1].priority, 9, "decreasing priority");
    REFUSED(s.tasks[0].best_effort, true, "decreasing priority");
    REFUSED(s.slice, 0, "slice");
    REFUSED(s.epsilon, -1, "overheads");
    REFUSED(s.n_cores, 0, "cores");
    REFUSED(s.n_sms, 1000, "SMs");
    REFUSED(s.n_tasks, 0, "tasks");
    config.policy_name = "nobody";
    assert_int_equal(ws_rtsim_new(&rt, &s, &config), -ENOENT);
    config.policy_name = NULL;
    for (uint64_t k = 1;; k++) {
        ws_alloc_fail_after(k);
        int r = ws_rtsim_new(&rt, &s, &config);
        ws_alloc_fail_after(0);
        if (!r)
            break;
        assert_int_equal(r, -ENOMEM);
        assert_true(k < 100);
    }
    ws_rtsim_free(rt);
    ws_rtsim_free(NULL);
    ws_rtsim_set_deinit(&s);
    assert_int_equal(ws_rtsim_policy_find("fmlp+"), WS_RTSIM_FMLP);
    assert_int_equal(ws_rtsim_policy_find("lottery"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_rate_monotonic),
        cmocka_unit_test(test_against_naive),
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_other_policy_object),
        cmocka_unit_test(test_own_policy),
        cmocka_unit_test(test_own_policy_sms),
        cmocka_unit_test(test_hunt),
        cmocka_unit_test(test_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

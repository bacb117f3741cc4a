// SPDX-License-Identifier: Apache-2.0
/* Policy wattshare: what the greedy rule takes, what looking ahead changes about it, when a job
 * waits and until when, what is known of releases, and that every decision can be carried out.
 * Numbers by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/dvfs.h"
#include "policy/policy.h"
#include "policy/lookahead/rollout.h"

enum { SMS = 8, GPUS = 3, TASKS = 6, JOBS = 24, SLOTS = 3 };
#define NOW 100.0
/* A busy SM takes 3 W, an idle one 0.5 W, so that a GPU with 8 idle SMs takes 4 W. */
struct world {
    struct ws_policy_gpu_type types[2];
    struct ws_policy_gpu gpus[GPUS];
    double wcet[TASKS][SMS];
    struct ws_policy_cost costs[TASKS][2];
    struct ws_dvfs_task dvfs[TASKS];
    struct ws_policy_task tasks[TASKS];
    struct ws_policy_system sys;
    struct ws_policy_run runs[GPUS * SLOTS];
    struct ws_policy_gpu_state states[GPUS];
    struct ws_policy_job jobs[JOBS];
    struct ws_policy_snapshot snap;
    struct ws_policy_decisions d;
    const struct ws_policy_ops *ops;
    struct ws_policy *p;
    char error[200];
};

/* A kernel that takes @ms on all SMs of a GPU, and longer in proportion on fewer. */
static void set_task(struct world *w, int i, double ms, double period, double deadline)
{
    for (int m = 1; m <= SMS; m++)
        w->wcet[i][m - 1] = ms * SMS / m;
    for (int t = 0; t < 2; t++)
        w->costs[i][t] =
            (struct ws_policy_cost){.n_sm = SMS, .wcet = w->wcet[i], .dyn_w_per_sm = 3};
    w->tasks[i] = (struct ws_policy_task){.id = 10 + i,
                                          .name = "k",
                                          .period = period,
                                          .deadline = deadline,
                                          .weight = 1,
                                          .cost = w->costs[i]};
}

static void add_job(struct world *w, int task, enum ws_job_state state, double deadline)
{
    int n = w->snap.n_jobs++;
    w->jobs[n] = (struct ws_policy_job){.id = (uint64_t)n + 1,
                                        .seq = (uint64_t)n + 1,
                                        .task = task,
                                        .state = state,
                                        .release = w->snap.now,
                                        .deadline = deadline,
                                        .gpu = -1};
}

/* A job of @task runs on @n_sm SMs of @gpu from @first on for @ms more. */
static void add_run(struct world *w, int task, int gpu, int slot, unsigned first, int n_sm,
                    double ms)
{
    add_job(w, task, WS_JOB_RUNNING, INFINITY);
    w->jobs[w->snap.n_jobs - 1].gpu = gpu;
    struct ws_policy_run *r = &w->runs[gpu * SLOTS + slot];
    *r = (struct ws_policy_run){.job = w->snap.n_jobs - 1,
                                .task = task,
                                .n_sm = n_sm,
                                .gpu_end = w->snap.now + ms,
                                .end = w->snap.now + ms};
    for (int i = 0; i < n_sm; i++)
        ws_sm_set_add(&r->sms, first + (unsigned)i);
    w->states[gpu].n_running++;
}

static void make_world(struct world *w, int n_gpus)
{
    memset(w, 0, sizeof(*w));
    for (int t = 0; t < 2; t++)
        w->types[t] = (struct ws_policy_gpu_type){.name = t ? "y" : "x",
                                                  .n_sm = SMS,
                                                  .static_w = 10,
                                                  .idle_w_per_sm = 0.5,
                                                  .switch_ms = 0.125,
                                                  .update_ms = 0.125};
    for (int k = 0; k < GPUS; k++) {
        w->gpus[k] = (struct ws_policy_gpu){.sm_limit = SMS, .n_slots = 2, .server = -1};
        w->states[k] = (struct ws_policy_gpu_state){
            .slots = &w->runs[k * SLOTS], .n_slots = 2, .volt = 1, .f_core = 1, .f_mem = 1};
    }
    for (int i = 0; i < GPUS * SLOTS; i++)
        w->runs[i] = (struct ws_policy_run){.job = -1, .task = -1};
    for (int i = 0; i < TASKS; i++)
        set_task(w, i, 1, 0, 0);
    w->sys = (struct ws_policy_system){.types = w->types,
                                       .gpus = w->gpus,
                                       .tasks = w->tasks,
                                       .n_types = 1,
                                       .n_gpus = n_gpus,
                                       .n_tasks = 2};
    w->snap = (struct ws_policy_snapshot){
        .system = &w->sys, .now = NOW, .gpus = w->states, .jobs = w->jobs};
    w->ops = ws_policy_find("wattshare");
}

static int prepare(struct world *w)
{
    return w->ops->prepare(w->p, &w->sys, w->error, sizeof(w->error));
}

static void make_policy(struct world *w, const char *option)
{
    const char *const options[] = {option, NULL};
    assert_int_equal(w->ops->make(&w->p, options, w->error, sizeof(w->error)), 0);
    assert_int_equal(prepare(w), 0);
}

static void decide(struct world *w)
{
    struct ws_policy_event e = {.kind = WS_EVENT_ARRIVAL, .job = -1, .task = -1, .gpu = -1};
    w->d.n = 0;
    assert_int_equal(w->ops->decide(w->p, &w->snap, &e, &w->d), 0);
}

static const struct ws_policy_decision *find(const struct world *w, enum ws_decision_kind kind,
                                             int job)
{
    for (size_t i = 0; i < w->d.n; i++)
        if (w->d.v[i].kind == kind && (job < 0 || w->d.v[i].job == job))
            return &w->d.v[i];
    return NULL;
}

static void assert_starts(const struct world *w, int job, int gpu, int n_sm)
{
    const struct ws_policy_decision *d = find(w, WS_DECIDE_START, job);
    assert_non_null(d);
    assert_int_equal(d->gpu, gpu);
    assert_int_equal(d->n_sm, n_sm);
}

static void assert_timer(const struct world *w, double at)
{
    const struct ws_policy_decision *d = find(w, WS_DECIDE_TIMER, -1);
    assert_non_null(d);
    assert_float_equal(d->at, at, 1e-9);
}

static void unmake(struct world *w)
{
    w->ops->free(w->p);
    ws_policy_decisions_deinit(&w->d);
}

/* ---- the greedy rule ---- */

static void test_fewest_joules(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 2);
    make_policy(&w, NULL);
    add_job(&w, 0, WS_JOB_WAITING, INFINITY);
    decide(&w); /* 20 mJ by its SMs whatever their number, and 4 W until its end */
    assert_starts(&w, 0, 0, SMS);
    assert_float_equal(find(&w, WS_DECIDE_START, 0)->energy, 24, 1e-9);
    assert_float_equal(find(&w, WS_DECIDE_START, 0)->end, NOW + 1, 1e-9);
    /* GPU 1 is awake for longer than the job takes there. */
    add_run(&w, 1, 1, 0, 0, 4, 5);
    decide(&w);
    assert_starts(&w, 0, 1, 4);
    assert_float_equal(find(&w, WS_DECIDE_START, 0)->energy, 20, 1e-9);
    /* A deadline that only more SMs keep. */
    w.jobs[0].deadline = NOW + 1.5;
    decide(&w);
    assert_starts(&w, 0, 0, SMS);
    unmake(&w);
}

static void test_earliest_deadline_first(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    make_policy(&w, NULL);
    add_job(&w, 0, WS_JOB_WAITING, NOW + 50);
    add_job(&w, 1, WS_JOB_WAITING, NOW + 1);
    decide(&w);
    assert_starts(&w, 1, 0, SMS);
    assert_null(find(&w, WS_DECIDE_START, 0));
    unmake(&w);
}

/* ---- looking ahead ---- */

/* Job 0 takes 10 ms on all SMs of the only GPU. A job of task 1 is to come in 1 ms, which needs 4
 * SMs to be in time. */
static void make_threat(struct world *w, double deadline, double threat, const char *option)
{
    make_world(w, 1);
    set_task(w, 0, 10, 0, 100);
    set_task(w, 1, 1, 50, threat);
    w->tasks[1].offset = NOW + 1;
    make_policy(w, option);
    add_job(w, 0, WS_JOB_WAITING, deadline);
}

static void test_waits_for_one_that_would_miss(void **state)
{
    (void)state;
    struct world w;
    make_threat(&w, NOW + 100, 2, NULL);
    decide(&w); /* 264 mJ; 300 mJ if it starts on 4 SMs now */
    assert_null(find(&w, WS_DECIDE_START, 0));
    assert_timer(&w, NOW + 1);
    unmake(&w);
    make_threat(&w, NOW + 100, 2, "budget=0");
    decide(&w); /* the greedy place is there without any budget */
    assert_starts(&w, 0, 0, SMS);
    unmake(&w);
    make_threat(&w, NOW + 100, 2, "horizon=0");
    decide(&w);
    assert_starts(&w, 0, 0, SMS);
    unmake(&w);
}

static void test_makes_room_where_it_cannot_wait(void **state)
{
    (void)state;
    struct world w;
    make_threat(&w, NOW + 13, 2, NULL);
    w.tasks[1].offset = NOW + 5;
    for (int m = 4; m < SMS; m++)
        w.wcet[0][m - 1] = 12;
    w.costs[0][0].dyn_w_per_sm = 0.6; /* so that all SMs take the least energy */
    w.ops->free(w.p);
    make_policy(&w, NULL);
    decide(&w); /* behind the other one it would end at NOW + 16 */
    assert_starts(&w, 0, 0, 4);
    unmake(&w);
}

static void test_waits_without_deadline_only_for_one_that_would_miss(void **state)
{
    (void)state;
    struct world w;
    make_threat(&w, INFINITY, 40, NULL);
    decide(&w);
    assert_starts(&w, 0, 0, SMS);
    unmake(&w);
    make_threat(&w, INFINITY, 2, NULL);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_START, 0));
    assert_timer(&w, NOW + 1);
    unmake(&w);
}

/* On the two SMs that are free it takes 32 mJ, and 24 mJ on all of them in 1 ms. */
static void test_waits_for_energy_only_with_a_deadline(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    make_policy(&w, NULL);
    add_job(&w, 0, WS_JOB_WAITING, NOW + 50);
    add_run(&w, 1, 0, 0, 0, 6, 1);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_START, 0));
    assert_timer(&w, NOW + 1);
    w.jobs[0].deadline = INFINITY;
    decide(&w);
    assert_starts(&w, 0, 0, 2);
    unmake(&w);
}

/* It would be late everywhere. After its deadline it is one without. */
/* There is time for one of two jobs. The one with the earlier deadline goes first, but not if its
 * miss counts less. */
static void test_weights_count_misses(void **state)
{
    (void)state;
    for (int heavy = 0; heavy < 2; heavy++) {
        struct world w;
        make_world(&w, 1);
        set_task(&w, 0, 4, 0, 0);
        set_task(&w, 1, 4, 0, 0);
        w.tasks[1].weight = heavy ? 3 : 1;
        make_policy(&w, NULL);
        add_job(&w, 0, WS_JOB_WAITING, NOW + 5);
        add_job(&w, 1, WS_JOB_WAITING, NOW + 6);
        decide(&w);
        assert_starts(&w, heavy, 0, SMS);
        assert_null(find(&w, WS_DECIDE_START, 1 - heavy));
        unmake(&w);
    }
}

static void test_late_everywhere(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 2);
    make_policy(&w, NULL);
    add_job(&w, 0, WS_JOB_WAITING, NOW + 0.5);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_START, 0));
    assert_timer(&w, NOW + 0.5);
    w.snap.now = NOW + 0.5;
    decide(&w);
    assert_starts(&w, 0, 0, SMS);
    unmake(&w);
}

/* ---- the guarantee ---- */

/* A job of task 1 has 40 ms of time, and takes 8 ms on all SMs. One of task 0 may come at any
 * moment, and takes 2 of the 10 ms until its deadline. It was last seen long ago, so that nobody
 * foresees it. */
static void make_safe(struct world *w, const char *option)
{
    make_world(w, 1);
    w->gpus[0].n_slots = w->states[0].n_slots = 1;
    set_task(w, 0, 2, 30, 10);
    set_task(w, 1, 7, 80, 40);
    for (int m = 1; m < SMS; m++)
        w->wcet[1][m - 1] = 9; /* it takes the least energy on one SM, with which it is too long */
    make_policy(w, option);
    w->snap.explain = true;
    add_job(w, 1, WS_JOB_WAITING, NOW + 40);
}

static void test_guarantee(void **state)
{
    (void)state;
    struct world w;
    make_safe(&w, NULL);
    decide(&w);
    assert_starts(&w, 0, 0, 1);
    unmake(&w);
    make_safe(&w, "guarantee=1");
    decide(&w);
    assert_true(!find(&w, WS_DECIDE_START, 0) || find(&w, WS_DECIDE_START, 0)->n_sm == SMS);
    unmake(&w);
    make_safe(&w, "guarantee=1"); /* the last moment */
    w.snap.now = NOW + 33;
    decide(&w);
    assert_starts(&w, 0, 0, SMS);
    assert_float_equal(find(&w, WS_DECIDE_START, 0)->energy, 7 * SMS * 2.5 + 7 * 4, 1e-9);
    assert_non_null(strstr(find(&w, WS_DECIDE_START, 0)->why, "the plan that meets all deadlines"));
    unmake(&w);
}

/* ---- what is to come ---- */

/* The release that was seen says when the next one comes, also after the tasks have changed. */
static void test_releases_are_remembered(void **state)
{
    (void)state;
    struct world w;
    make_threat(&w, NOW + 100, 2, NULL);
    w.tasks[1].offset = 0;
    w.ops->free(w.p);
    make_policy(&w, NULL);
    decide(&w); /* the first release was due long ago */
    assert_starts(&w, 0, 0, SMS);
    w.snap.n_jobs = 0;
    w.snap.now = NOW + 1;
    add_job(&w, 1, WS_JOB_WAITING, NOW + 3);
    decide(&w);
    struct ws_policy_task moved = w.tasks[1];
    w.tasks[1] = w.tasks[0];
    w.tasks[0] = moved;
    w.tasks[2].id = 77;
    w.sys.n_tasks = 3;
    prepare(&w);
    w.snap.n_jobs = 0;
    w.snap.now = NOW + 50;
    add_job(&w, 1, WS_JOB_WAITING, NOW + 150);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_START, 0));
    assert_timer(&w, NOW + 51);
    unmake(&w);
}

static void test_overdue_releases(void **state)
{
    (void)state;
    struct world w;
    make_threat(&w, NOW + 100, 2, NULL);
    w.snap.now = NOW + 11; /* it may come at any moment; job 0 can wait until its latest start */
    decide(&w);
    assert_null(find(&w, WS_DECIDE_START, 0));
    assert_timer(&w, NOW + 90);
    w.jobs[0].deadline = INFINITY;
    decide(&w);
    assert_null(find(&w, WS_DECIDE_START, 0));
    assert_timer(&w, NOW + 12);
    w.snap.now = NOW + 52; /* a period later it is not expected any more */
    decide(&w);
    assert_starts(&w, 0, 0, SMS);
    unmake(&w);
}

/* Task 1 has a period of 10 ms. Its releases come by turns @even and @odd ms later than a period
 * after the last, 200 times. It is 3 ms before the next one is due, and a job of 8 ms is ready,
 * which can wait until then. If it starts at once, it makes the other one late. */
static void teach_lateness(struct world *w, double even, double odd)
{
    make_world(w, 1);
    set_task(w, 0, 8, 0, 50);
    set_task(w, 1, 0.5, 10, 0.6);
    make_policy(w, NULL);
    for (int i = 0; i < 200; i++) {
        w->snap.n_jobs = 0;
        w->snap.now += 10 + (i % 2 ? odd : even);
        add_job(w, 1, WS_JOB_WAITING, w->snap.now + 0.6);
        decide(w);
    }
    w->snap.n_jobs = 0;
    w->snap.now += 7;
    add_job(w, 0, WS_JOB_WAITING, w->snap.now + 50);
}

/* It waits for a release that is foreseen @ms from now. */
static void assert_foreseen(struct world *w, double ms)
{
    decide(w);
    assert_null(find(w, WS_DECIDE_START, 0));
    assert_non_null(find(w, WS_DECIDE_TIMER, -1));
    assert_float_equal(find(w, WS_DECIDE_TIMER, -1)->at, w->snap.now + ms, 0.01);
}

static void test_lateness_is_learned(void **state)
{
    (void)state;
    struct world w;
    teach_lateness(&w, 0, 0);
    assert_foreseen(&w, 3);
    unmake(&w);
    teach_lateness(&w, 9, 9); /* it has ended when the next one comes */
    decide(&w);
    assert_starts(&w, 0, 0, SMS);
    w.snap.now += 5;
    assert_foreseen(&w, 7);
    w.sys.n_tasks = 3; /* it is remembered when the tasks change */
    prepare(&w);
    assert_foreseen(&w, 7);
    unmake(&w);
}

/* After the last one, which was late by 9 ms, the mean is 6 + 3·0.1/1.9 = 6.16 ms, and the mean
 * deviation 3.16 ms. */
static void test_irregular_releases_are_foreseen_early(void **state)
{
    (void)state;
    struct world w;
    double mean = 6 + 0.3 / 1.9, most = 2 * (mean - 3);
    teach_lateness(&w, 3, 9);
    assert_foreseen(&w, 3 + mean - most + 0.2 * 2 * most);
    w.snap.now += 4; /* it is overdue by 1 ms */
    w.sys.n_tasks = 3;
    prepare(&w);
    assert_foreseen(&w, 0.2 * (mean + most - 1));
    unmake(&w);
}

/* A job of task 0 was predicted to run on all SMs from NOW to NOW + 2, and ends when @took of that
 * time have passed. */
static void end_job(struct world *w, double took)
{
    w->snap.n_jobs = 0;
    w->states[0].n_running = 0;
    add_run(w, 0, 0, 0, 0, SMS, 2);
    w->runs[0].gpu_start = w->snap.now;
    decide(w);
    w->runs[0] = (struct ws_policy_run){.job = -1, .task = -1};
    w->states[0].n_running = 0;
    w->snap.n_jobs = 0;
    w->snap.now += 2 * took;
    decide(w);
}

/* On 4 SMs it takes 4 ms and the least energy, on all SMs 2 ms. */
static void make_margin(struct world *w)
{
    make_world(w, 1);
    set_task(w, 0, 2, 0, 50);
    for (int m = 5; m < SMS; m++)
        w->wcet[0][m - 1] = 4;
    w->wcet[0][SMS - 1] = 2.5;
    make_policy(w, NULL);
}

static void assert_starts_in(struct world *w, double ms, int n_sm, double end)
{
    w->snap.n_jobs = 0;
    add_job(w, 0, WS_JOB_WAITING, w->snap.now + ms);
    w->jobs[0].id = 77;
    decide(w);
    assert_starts(w, 0, 0, n_sm);
    assert_float_equal(find(w, WS_DECIDE_START, 0)->end, w->snap.now + end, 1e-6);
    prepare(w); /* it is not seen running, and must not count as one that has ended */
}

static void test_margin_is_learned(void **state)
{
    (void)state;
    struct world w;
    make_margin(&w);
    end_job(&w, 0.5);
    assert_starts_in(&w, 4.5, 4, 4);
    end_job(&w, 1.5);
    assert_starts_in(&w, 4.5, SMS, 2.5 * 1.5);
    w.sys.n_tasks = 3; /* it is remembered when the tasks change */
    prepare(&w);
    assert_starts_in(&w, 4.5, SMS, 2.5 * 1.5);
    /* It falls slowly, and never below what was predicted. */
    end_job(&w, 0.5);
    assert_starts_in(&w, 4.5, SMS, 2.5 * (1.5 - 0.003));
    for (int i = 0; i < 500; i++)
        end_job(&w, 0.5);
    assert_starts_in(&w, 4.5, 4, 4);
    unmake(&w);
}

/* One that could not be in time with it, or not any more, is started with less. */
static void test_margin_keeps_no_job_from_starting(void **state)
{
    (void)state;
    struct world w;
    make_margin(&w);
    end_job(&w, 100);
    assert_starts_in(&w, 2.6, SMS, 2.6);
    assert_starts_in(&w, 10.1, SMS, 10);
    w.snap.n_jobs = 0;
    add_run(&w, 1, 0, 0, 0, 4, 60); /* on the other SMs it would be in time with it */
    add_job(&w, 0, WS_JOB_WAITING, w.snap.now + 11);
    decide(&w);
    assert_starts(&w, w.snap.n_jobs - 1, 0, 4);
    unmake(&w);
}

/* On the SMs that are free it has less than its margin; when the other job has ended, all of it. */
static void test_margin_is_waited_for(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct world w;
        make_margin(&w);
        end_job(&w, known ? 1.25 : 1);
        w.snap.explain = true;
        add_run(&w, 1, 0, 0, 0, 4, 1);
        w.runs[0].gpu_start = w.snap.now;
        add_job(&w, 0, WS_JOB_WAITING, w.snap.now + 4.5);
        decide(&w);
        assert_int_equal(!!find(&w, WS_DECIDE_WAIT, w.snap.n_jobs - 1), known);
        unmake(&w);
    }
}

static void test_shares_of_long_kernels(void **state)
{
    (void)state;
    struct world w;
    struct ws_rollout r = {0};
    struct ws_rollout_job j = {.deadline = NOW + 9, .margin = 1.25};
    make_world(&w, 1);
    assert_int_equal(ws_rollout_prepare(&r, &w.sys), 0);
    for (int i = 0; i < 20; i++)
        ws_rollout_learn(&r, 0, i % 4 ? 0.9 : i % 8 ? 1.2 : 1.5);
    assert_float_equal(ws_rollout_risk(&r, &j), 3 / 21.0, 1e-6); /* of those and one */
    j.margin = 1.15;                                             /* 3, and half of 2 */
    assert_float_equal(ws_rollout_risk(&r, &j), 4 / 21.0, 1e-6);
    j.margin = 1.5;
    assert_float_equal(ws_rollout_risk(&r, &j), 0, 1e-6);
    j.margin = 1;
    j.deadline = INFINITY;
    assert_float_equal(ws_rollout_risk(&r, &j), 0, 1e-6);
    /* Of others nothing is known yet. */
    assert_float_equal(r.margin[1].most, r.margin[0].most, 0.01);
    ws_rollout_learn(&r, 1, 4);
    assert_float_equal(r.margin[1].most, 4, 1e-6);
    assert_true(r.margin[0].most < 1.6); /* many were seen of it */
    ws_rollout_deinit(&r);
}

/* What runs is taken to end later: the other job waits for it on the SMs that are free. */
static void test_margin_of_what_runs(void **state)
{
    (void)state;
    struct world w;
    make_margin(&w);
    end_job(&w, 2);
    w.snap.explain = true;
    add_run(&w, 0, 0, 0, 0, 4, 3);
    w.runs[0].gpu_start = w.snap.now;
    add_job(&w, 1, WS_JOB_WAITING, w.snap.now + 50);
    decide(&w);
    const struct ws_policy_decision *d = find(&w, WS_DECIDE_START, 1);
    if (!d)
        d = find(&w, WS_DECIDE_WAIT, 1);
    char hold[40];
    snprintf(hold, sizeof(hold), "hold till %.6g", w.snap.now + 6);
    assert_non_null(d);
    assert_non_null(strstr(d->why, hold));
    unmake(&w);
}

static void test_releases_are_capped(void **state)
{
    (void)state;
    struct world w;
    struct ws_rollout r = {0};
    make_world(&w, 1);
    set_task(&w, 0, 1, 0.25, 1);
    set_task(&w, 1, 1, 10, 10);
    assert_int_equal(ws_rollout_prepare(&r, &w.sys), 0);
    assert_int_equal(ws_rollout_load(&r, &w.snap), 0);
    ws_rollout_foresee(&r, (const double[]){NOW + 0.125, NOW + 5}, NULL, 1000, 10);
    assert_int_equal(r.n_releases, WS_ROLLOUT_RELEASES_MAX);
    assert_int_equal(r.releases[20].task, 1);
    for (int i = 1; i < r.n_releases; i++)
        assert_true(r.releases[i].at > r.releases[i - 1].at);
    assert_float_equal(r.releases[20].weight, exp(-0.5), 1e-9);
    /* Two that come later than their periods say. */
    ws_rollout_foresee(&r, (const double[]){INFINITY, NOW + 5}, (const double[]){0, 20}, 30, 10);
    assert_int_equal(r.n_releases, 2);
    assert_float_equal(r.releases[1].at, NOW + 25, 1e-9);
    ws_rollout_foresee(&r, (const double[]){INFINITY, NOW + 5}, NULL, 11, 10);
    assert_int_equal(r.n_releases, 2 - 1);
    ws_rollout_deinit(&r);
}

/* ---- a rollout ---- */

static const struct ws_rollout_base by_energy = {0};

static void test_outcome(void **state)
{
    (void)state;
    struct world w;
    struct ws_rollout r = {0};
    struct ws_rollout_place p;
    struct ws_rollout_outcome o, all = {.missed = INFINITY, .energy = INFINITY};
    make_world(&w, 1);
    set_task(&w, 0, 10, 0, 100);
    set_task(&w, 1, 1, 50, 2);
    add_job(&w, 0, WS_JOB_WAITING, NOW + 100);
    assert_int_equal(ws_rollout_prepare(&r, &w.sys), 0);
    assert_int_equal(ws_rollout_load(&r, &w.snap), 0);
    ws_rollout_foresee(&r, (const double[]){INFINITY, NOW + 1}, NULL, 20, 1e12);
    assert_true(
        ws_rollout_place(&r, &r.state, r.state.ready, 0, &WS_POLICY_CLOCKS_DEFAULT, SMS - 1, &p));
    assert_true(ws_rollout_try(&r, 0, &p, &by_energy, &all, UINT64_MAX, &o));
    assert_float_equal(o.missed, 1, 1e-6); /* the one that is to come; it takes nothing then */
    assert_float_equal(o.energy, 240, 1e-6);
    struct ws_rollout_place hold = {.gpu = -1, .hold = NOW + 1};
    assert_true(ws_rollout_try(&r, 0, &hold, &by_energy, &all, UINT64_MAX, &o));
    assert_float_equal(o.missed, 0, 1e-6);
    assert_float_equal(o.energy, 264, 1e-6);
    struct ws_rollout_outcome bound = o;
    assert_false(ws_rollout_try(&r, 0, &hold, &by_energy, &bound, UINT64_MAX, &o));
    assert_false(ws_rollout_try(&r, 0, &hold, &by_energy, &all, r.n_evaluated + 3, &o));
    /* Never started: it has missed. */
    hold.hold = INFINITY;
    assert_true(ws_rollout_try(&r, 0, &hold, &by_energy, &all, UINT64_MAX, &o));
    assert_float_equal(o.missed, 1, 1e-6);
    assert_float_equal(o.energy, 24, 1e-6);
    ws_rollout_deinit(&r);
}

/* ---- taking jobs off ---- */

/* A job of task 1 that has @ms left runs on all SMs; one of task 0 has come, which takes 4 ms. */
static void make_full(struct world *w, double ms, double run_due, double due, const char *option)
{
    make_world(w, 1);
    w->types[0].preempts = true;
    w->sys.n_tasks = 3;
    set_task(w, 0, 4, 0, 0);
    set_task(w, 1, 40, 0, 0);
    set_task(w, 2, 40, 0, 0);
    w->snap.explain = true;
    make_policy(w, option);
    add_run(w, 1, 0, 0, 0, SMS, ms);
    w->jobs[0].deadline = run_due;
    add_job(w, 0, WS_JOB_WAITING, due);
}

static void test_takes_off_what_has_more_time(void **state)
{
    (void)state;
    struct world w;
    make_full(&w, 20, NOW + 100, NOW + 10, NULL);
    decide(&w);
    assert_int_equal(w.d.v[0].kind, WS_DECIDE_PREEMPT);
    assert_int_equal(w.d.v[0].job, 0);
    assert_int_equal(w.d.v[0].gpu, 0);
    assert_non_null(strstr(w.d.v[0].why, "task 10 would be late otherwise"));
    assert_int_equal(w.d.v[1].kind, WS_DECIDE_START);
    assert_starts(&w, 1, 0, SMS);
    assert_non_null(strstr(w.d.v[1].why, "GPU 0 x 8 without task 11"));
    assert_float_equal(w.d.v[1].at, NOW + 0.125, 1e-9);
    assert_float_equal(w.d.v[1].end, NOW + 4.125, 1e-9);
    unmake(&w);
    /* Not where it can wait for the end; then the end is awaited. */
    make_full(&w, 20, NOW + 100, NOW + 30, NULL);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_PREEMPT, -1));
    assert_timer(&w, NOW + 20);
    /* But if the program has to do more after it. */
    w.jobs[1].after = 7;
    decide(&w);
    assert_non_null(find(&w, WS_DECIDE_PREEMPT, 0));
    unmake(&w);
}

static void test_takes_off_only_what_can_be(void **state)
{
    (void)state;
    struct world w;
    make_full(&w, 20, NOW + 100, NOW + 10, "preempt=0");
    decide(&w);
    assert_null(find(&w, WS_DECIDE_PREEMPT, -1));
    unmake(&w);
    make_full(&w, 20, NOW + 100, NOW + 10, NULL);
    w.types[0].preempts = false;
    assert_int_equal(prepare(&w), 0);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_PREEMPT, -1));
    /* Its kernel is over, and it copies. */
    w.types[0].preempts = true;
    w.runs[0].gpu_end = NOW;
    assert_int_equal(prepare(&w), 0);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_PREEMPT, -1));
    unmake(&w);
    /* There is a plan that meets all deadlines. */
    for (int safe = 0; safe < 2; safe++) {
        make_full(&w, 20, NOW + 100, NOW + 10, safe ? "guarantee=1" : NULL);
        w.tasks[0].period = w.tasks[1].period = w.tasks[2].period = 1000;
        w.tasks[0].deadline = 10;
        w.tasks[1].deadline = w.tasks[2].deadline = 500;
        assert_int_equal(prepare(&w), 0);
        decide(&w);
        assert_int_equal(!find(&w, WS_DECIDE_PREEMPT, -1), safe);
        unmake(&w);
    }
}

/* The run is of 20 ms, 3 of which have gone by, in five rounds of blocks. */
static void make_full_of_blocks(struct world *w, double due)
{
    make_full(w, 17, NOW + 100, due, NULL);
    w->runs[0].gpu_start = NOW - 3;
    w->costs[1][0].n_stops = 5 * SMS;
    assert_int_equal(prepare(w), 0);
    decide(w);
}

static void test_taking_off_waits_for_blocks(void **state)
{
    (void)state;
    struct world w;
    make_full_of_blocks(&w, NOW + 10);
    assert_non_null(find(&w, WS_DECIDE_PREEMPT, 0));
    assert_starts(&w, 1, 0, SMS);
    assert_float_equal(find(&w, WS_DECIDE_START, 1)->at, NOW + 1.125, 1e-9);
    assert_float_equal(find(&w, WS_DECIDE_START, 1)->end, NOW + 5.125, 1e-9);
    /* It is asked again while the blocks end: for nothing more, but to look again then. */
    w.runs[0].leaves = true;
    w.runs[0].end = NOW + 1;
    decide(&w);
    assert_null(find(&w, WS_DECIDE_PREEMPT, -1));
    assert_null(find(&w, WS_DECIDE_START, -1));
    assert_timer(&w, NOW + 1);
    unmake(&w);
    make_full_of_blocks(&w, NOW + 5); /* too late for the new one */
    assert_null(find(&w, WS_DECIDE_PREEMPT, -1));
    unmake(&w);
    make_full_of_blocks(&w, NOW + 10); /* the last blocks run */
    w.costs[1][0].n_stops = SMS;
    decide(&w);
    assert_null(find(&w, WS_DECIDE_PREEMPT, -1));
    unmake(&w);
}

/* A job that is to come needs the SMs before one of long blocks could be taken off. Idle SMs take
 * nothing, so that nobody waits to save energy. */
static void test_long_blocks_wait_for_one_that_would_miss(void **state)
{
    (void)state;
    for (int rounds = 0; rounds < 2; rounds++) { /* 0: it can be taken off at once */
        struct world w;
        make_threat(&w, NOW + 100, 2, NULL);
        w.types[0].preempts = true;
        w.types[0].idle_w_per_sm = 0;
        w.costs[0][0].n_stops = rounds * SMS;
        assert_int_equal(prepare(&w), 0);
        decide(&w);
        assert_int_equal(!find(&w, WS_DECIDE_START, 0), rounds == 1);
        unmake(&w);
    }
}

/* What is left of a job that is being taken off is ready when its blocks have ended. */
static void test_outcome_with_a_job_that_leaves(void **state)
{
    (void)state;
    struct world w;
    struct ws_rollout r = {.preempts = true};
    make_world(&w, 1);
    set_task(&w, 0, 10, 0, 100);
    add_run(&w, 0, 0, 0, 0, SMS, 6);
    w.runs[0].gpu_start = NOW - 4;
    w.runs[0].end = NOW + 1;
    w.runs[0].leaves = true;
    assert_int_equal(ws_rollout_prepare(&r, &w.sys), 0);
    assert_int_equal(ws_rollout_load(&r, &w.snap), 0);
    assert_int_equal(r.state.n_ready, 1);
    assert_float_equal(r.state.ready[0].left, 0.5, 1e-9);
    assert_float_equal(r.state.ready[0].hold, NOW + 1, 1e-9);
    assert_true(r.state.ready[0].preempted);
    ws_rollout_deinit(&r);
}

/* Two jobs run on half of the SMs each. The new one takes 8 ms there. */
static void make_halves(struct world *w, double ms, double due_1, double due_2)
{
    make_full(w, 20, due_1, NOW + 10, NULL);
    w->runs[0].n_sm = 4;
    w->runs[0].sms = (struct ws_sm_set){0};
    for (unsigned i = 0; i < 4; i++)
        ws_sm_set_add(&w->runs[0].sms, i);
    add_run(w, 2, 0, 1, 4, 4, ms);
    w->jobs[2].deadline = due_2;
    decide(w);
}

static void test_takes_off_the_latest_that_is_in_time_afterwards(void **state)
{
    (void)state;
    struct world w;
    make_halves(&w, 20, NOW + 41, NOW + 40);
    assert_non_null(find(&w, WS_DECIDE_PREEMPT, 0));
    assert_starts(&w, 1, 0, 4);
    assert_int_equal(find(&w, WS_DECIDE_START, 1)->sms.bits[0], 0x0f);
    unmake(&w);
    make_halves(&w, 20, NOW + 40, NOW + 41);
    assert_non_null(find(&w, WS_DECIDE_PREEMPT, 2));
    assert_int_equal(find(&w, WS_DECIDE_START, 1)->sms.bits[0], 0xf0);
    unmake(&w);
    make_halves(&w, 10, NOW + 28, NOW + 25); /* the first could go on at NOW + 8.375 */
    assert_non_null(find(&w, WS_DECIDE_PREEMPT, 2));
    unmake(&w);
    make_halves(&w, 20, NOW + 24, NOW + 23); /* a miss for a miss */
    assert_null(find(&w, WS_DECIDE_PREEMPT, -1));
    unmake(&w);
}

/* Where it can be taken off again, a job that is late anyway keeps nothing from others, and nor
 * does one that starts before another comes. Idle SMs take nothing here. */
static void test_starts_what_can_be_taken_off_again(void **state)
{
    (void)state;
    struct world w;
    for (int preempts = 0; preempts < 2; preempts++) {
        make_world(&w, 1);
        w.types[0].preempts = preempts;
        make_policy(&w, NULL);
        add_job(&w, 0, WS_JOB_WAITING, NOW + 0.5);
        decide(&w);
        assert_int_equal(!find(&w, WS_DECIDE_START, 0), !preempts);
        unmake(&w);
        make_threat(&w, NOW + 100, 2, NULL);
        w.types[0].preempts = preempts;
        w.types[0].idle_w_per_sm = 0;
        assert_int_equal(prepare(&w), 0);
        decide(&w);
        assert_int_equal(!find(&w, WS_DECIDE_START, 0), !preempts);
        unmake(&w);
    }
}

/* 264 mJ; 265.5 mJ if it starts now and is taken off for the other. */
static void test_waits_for_less_energy_where_it_could_be_taken_off(void **state)
{
    (void)state;
    struct world w;
    make_threat(&w, NOW + 100, 2, NULL);
    w.types[0].preempts = true;
    assert_int_equal(prepare(&w), 0);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_START, 0));
    assert_timer(&w, NOW + 1);
    unmake(&w);
}

/* Two GPUs, of which the first takes less: by the rule that jobs wait, they do so for it, one
 * behind the other, and do not wake the second. */
static void test_outcome_where_jobs_wait(void **state)
{
    (void)state;
    static const struct ws_rollout_base waits = {.waits = true};
    struct world w;
    struct ws_rollout r = {0};
    struct ws_rollout_place p;
    struct ws_rollout_outcome o, all = {.missed = INFINITY, .energy = INFINITY};
    make_world(&w, 2);
    w.sys.n_types = 2;
    w.gpus[1].type = 1;
    w.types[1].idle_w_per_sm = 1.5; /* 12 W */
    w.sys.n_tasks = 3;
    set_task(&w, 0, 10, 0, 100);
    set_task(&w, 1, 10, 0, 25);
    set_task(&w, 2, 10, 0, 28);
    for (int i = 0; i < 3; i++)
        w.costs[i][1].dyn_w_per_sm = 4; /* 320 mJ for a job; 240 mJ on the first */
    add_job(&w, 1, WS_JOB_WAITING, NOW + 25);
    add_job(&w, 2, WS_JOB_WAITING, NOW + 28);
    add_job(&w, 0, WS_JOB_WAITING, NOW + 100);
    assert_int_equal(ws_rollout_prepare(&r, &w.sys), 0);
    assert_int_equal(ws_rollout_load(&r, &w.snap), 0);
    assert_true(
        ws_rollout_place(&r, &r.state, r.state.ready, 0, &WS_POLICY_CLOCKS_DEFAULT, SMS - 1, &p));
    assert_true(ws_rollout_try(&r, 0, &p, &by_energy, &all, UINT64_MAX, &o));
    assert_float_equal(o.missed, 0, 1e-6);
    assert_float_equal(o.energy, 240 + 320 + 240, 1e-6);
    assert_true(ws_rollout_try(&r, 0, &p, &waits, &all, UINT64_MAX, &o));
    assert_float_equal(o.missed, 0, 1e-6);
    assert_float_equal(o.energy, 3 * 240, 1e-6);
    ws_rollout_deinit(&r);
}

static void test_outcome_with_a_job_taken_off(void **state)
{
    (void)state;
    struct world w;
    struct ws_rollout r = {.preempts = true};
    struct ws_rollout_place p;
    struct ws_rollout_outcome o, all = {.missed = INFINITY, .energy = INFINITY};
    make_world(&w, 1);
    set_task(&w, 0, 10, 0, 100);
    set_task(&w, 1, 1, 50, 2);
    add_job(&w, 0, WS_JOB_WAITING, NOW + 100);
    assert_int_equal(ws_rollout_prepare(&r, &w.sys), 0);
    assert_int_equal(ws_rollout_load(&r, &w.snap), 0);
    ws_rollout_foresee(&r, (const double[]){INFINITY, NOW + 1}, NULL, 20, 1e12);
    assert_true(
        ws_rollout_place(&r, &r.state, r.state.ready, 0, &WS_POLICY_CLOCKS_DEFAULT, SMS - 1, &p));
    assert_true(ws_rollout_try(&r, 0, &p, &by_energy, &all, UINT64_MAX, &o));
    assert_float_equal(o.missed, 0, 1e-6);
    /* Both kernels, and a GPU that is awake for 1 + 0.125 + 1 + 0.25 + 9 ms. */
    assert_float_equal(o.energy, 220 + 4 * 11.375, 1e-6);
    ws_rollout_deinit(&r);
}

/* ---- other jobs ---- */

/* One job of 10 ms and two of 4 ms, all on all SMs, and one of 0.25 ms that starts first. */
static void make_crowd(struct world *w, struct ws_rollout *r, int n_gpus)
{
    make_world(w, n_gpus);
    w->sys.n_tasks = 3;
    set_task(w, 0, 10, 50, 10.5);
    set_task(w, 1, 4, 50, 11);
    set_task(w, 2, 0.25, 50, 0.3);
    add_job(w, 2, WS_JOB_WAITING, NOW + 0.3);
    add_job(w, 0, WS_JOB_WAITING, NOW + 10.5);
    add_job(w, 1, WS_JOB_WAITING, NOW + 11);
    add_job(w, 1, WS_JOB_WAITING, NOW + 11);
    assert_int_equal(ws_rollout_prepare(r, &w->sys), 0);
}

static double missed_by(struct world *w, struct ws_rollout *r, const struct ws_rollout_base *base)
{
    struct ws_rollout_outcome o, all = {.missed = INFINITY, .energy = INFINITY};
    struct ws_rollout_place p;
    assert_int_equal(ws_rollout_load(r, &w->snap), 0);
    r->n_releases = 0;
    assert_true(
        ws_rollout_place(r, &r->state, r->state.ready, 0, &WS_POLICY_CLOCKS_DEFAULT, SMS - 1, &p));
    assert_true(ws_rollout_try(r, 0, &p, base, &all, UINT64_MAX, &o));
    return o.missed;
}

static void test_gives_up_the_largest(void **state)
{
    (void)state;
    struct world w;
    struct ws_rollout r = {0};
    make_crowd(&w, &r, 1);
    assert_int_equal(r.rank[0], 0);
    assert_int_equal(r.rank[1], 1);
    assert_float_equal(missed_by(&w, &r, &by_energy), 2, 1e-6); /* both of 4 ms */
    const struct ws_rollout_base bases[] = {{.n_given_up = 1}, {.by_size = true}};
    for (int i = 0; i < 2; i++)
        assert_float_equal(missed_by(&w, &r, &bases[i]), 1, 1e-6);
    /* One that has no deadline is never given up. */
    w.tasks[0].deadline = 0;
    w.jobs[1].deadline = INFINITY;
    assert_int_equal(ws_rollout_prepare(&r, &w.sys), 0);
    assert_int_equal(r.rank[0], 2);
    /* A large job that is important is small. */
    w.tasks[0].deadline = 10.5;
    w.tasks[0].weight = 3;
    assert_int_equal(ws_rollout_prepare(&r, &w.sys), 0);
    assert_int_equal(r.rank[1], 0);
    ws_rollout_deinit(&r);
}

static void test_keeps_to_homes(void **state)
{
    (void)state;
    struct world w;
    struct ws_rollout r = {0};
    const struct ws_rollout_base at_home = {.at_home = true};
    make_crowd(&w, &r, 2);
    assert_int_equal(r.home[0], 0);
    assert_int_equal(r.home[1], 1);
    assert_float_equal(missed_by(&w, &r, &at_home), 0, 1e-6);
    r.home[0] = 1; /* nothing may go to the other GPU then */
    assert_float_equal(missed_by(&w, &r, &at_home), 2, 1e-6);
    assert_float_equal(missed_by(&w, &r, &by_energy), 0, 1e-6);
    ws_rollout_deinit(&r);
}

/* A job that could not be in time with its margin is placed with less in rollouts, too. */
static void test_margin_of_jobs_to_come(void **state)
{
    (void)state;
    struct world w;
    struct ws_rollout r = {0};
    make_crowd(&w, &r, 2);
    r.margin[1].most = 2; /* 8 of 11 ms */
    assert_float_equal(missed_by(&w, &r, &by_energy), 1, 1e-6);
    r.margin[1].most = 3; /* with it, none would be in time */
    assert_float_equal(missed_by(&w, &r, &by_energy), 1, 1e-6);
    ws_rollout_deinit(&r);
}

static void test_unknown_cost_runs_alone(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 2);
    make_policy(&w, NULL);
    w.costs[1][0].n_sm = 0;
    assert_int_equal(prepare(&w), WS_POLICY_E_COST);
    assert_non_null(strstr(w.error, "task 11"));
    add_run(&w, 0, 0, 0, 0, 2, 5);
    add_job(&w, 1, WS_JOB_WAITING, NOW + 9);
    add_job(&w, 1, WS_JOB_WAITING, NOW + 9);
    decide(&w);
    assert_starts(&w, 1, 1, SMS);
    assert_int_equal(find(&w, WS_DECIDE_START, 1)->sms.n, SMS);
    assert_null(find(&w, WS_DECIDE_START, 2)); /* no other GPU is idle */
    unmake(&w);
}

static void test_preempted_job_resumes(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    make_policy(&w, NULL);
    add_job(&w, 0, WS_JOB_PREEMPTED, NOW + 9);
    w.jobs[0].done = 0.5;
    decide(&w);
    const struct ws_policy_decision *d = find(&w, WS_DECIDE_RESUME, 0);
    assert_non_null(d);
    assert_float_equal(d->end, NOW + 0.25 + 0.5, 1e-9);
    unmake(&w);
}

static void test_explains(void **state)
{
    (void)state;
    struct world w;
    make_threat(&w, NOW + 100, 2, NULL);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_WAIT, 0));
    w.snap.explain = true;
    decide(&w);
    const struct ws_policy_decision *d = find(&w, WS_DECIDE_WAIT, 0);
    assert_non_null(d);
    assert_non_null(strstr(d->why, "rollouts: GPU 0 x 8: 0.913 late, 240 mJ; "));
    assert_non_null(strstr(d->why, "; hold till 101: 0 late, 26"));
    unmake(&w);
}

/* The greedy place has 5 SMs. Beside the numbers that are always tried, 8, 4, 2, 6 and 1, those two
 * steps from it are. */
static void test_tries_neighbours_of_the_greedy_place(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    w.wcet[0][4] = 1.5; /* 18.75 mJ; any other number of SMs takes 20 mJ */
    w.gpus[0].n_slots = w.states[0].n_slots = 3;
    make_policy(&w, NULL);
    w.snap.explain = true;
    add_job(&w, 0, WS_JOB_WAITING, NOW + 100);
    add_job(&w, 1, WS_JOB_RUNNING, INFINITY);
    w.jobs[1].gpu = 0;
    w.runs[0] = (struct ws_policy_run){.job = 1, .task = 1, .n_sm = 0, .end = NOW + 50};
    w.states[0].n_running = 1; /* a copy: it keeps the GPU awake, and no SM */
    decide(&w);
    assert_starts(&w, 0, 0, 5);
    const char *why = find(&w, WS_DECIDE_START, 0)->why;
    assert_non_null(strstr(why, "GPU 0 x 3:"));
    assert_non_null(strstr(why, "GPU 0 x 7:"));
    unmake(&w);
}

static void test_options(void **state)
{
    (void)state;
    struct world w;
    const char *const wrong[][2] = {
        {"horizon=-1", NULL}, {"budget=x", NULL},      {"depth=3", NULL},  {"guarantee=2", NULL},
        {"dvfs=1", NULL},     {"interval=tall", NULL}, {"preempt=2", NULL}};
    make_world(&w, 1);
    for (size_t i = 0; i < WS_ARRAY_SIZE(wrong); i++)
        assert_int_equal(w.ops->make(&w.p, wrong[i], w.error, sizeof(w.error)), WS_POLICY_E_OPTION);
}

static void test_without_memory(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    make_policy(&w, "guarantee=1");
    for (uint64_t n = 1; n <= 14; n++) {
        ws_alloc_fail_after(n);
        assert_int_equal(prepare(&w), -ENOMEM);
    }
    ws_alloc_fail_after(0);
    assert_int_equal(prepare(&w), 0);
    unmake(&w);
}

/* ---- clocks ---- */

/* A tenth of the time follows the memory clock, and a tenth of a busy SM's power. */
static void set_dvfs(struct world *w, int task)
{
    double busy_w = SMS * 3, ms = w->wcet[task][SMS - 1];
    w->dvfs[task] =
        (struct ws_dvfs_task){.gamma = 0.1 * busy_w, .c = 0.9 * busy_w, .d = ms, .delta = 0.9};
    for (int t = 0; t < 2; t++)
        w->costs[task][t].dvfs = &w->dvfs[task];
}

static void make_clocked(struct world *w, double deadline, const char *option)
{
    make_world(w, 1);
    set_task(w, 0, 4, 0, 0);
    set_dvfs(w, 0);
    make_policy(w, option);
    add_job(w, 0, WS_JOB_WAITING, deadline);
}

static void test_slack_is_spent_on_clocks(void **state)
{
    (void)state;
    struct world w;
    make_clocked(&w, NOW + 50, "dvfs=yes");
    decide(&w);
    const struct ws_policy_decision *d = find(&w, WS_DECIDE_START, 0);
    assert_non_null(d);
    assert_true(d->volt < 0.9 && d->f_core < 0.9);
    assert_true(d->end <= NOW + 50);
    double at_chosen = d->energy;
    unmake(&w);
    make_clocked(&w, NOW + 50, NULL);
    decide(&w);
    d = find(&w, WS_DECIDE_START, 0);
    assert_float_equal(d->f_core, 1, 0);
    assert_true(d->energy > 1.2 * at_chosen);
    unmake(&w);
}

/* On all SMs it takes 4 ms at the default clocks, and 3.64 at the highest. */
static void test_clocks_are_raised_to_be_in_time(void **state)
{
    (void)state;
    struct world w;
    make_clocked(&w, NOW + 3.7, NULL);
    decide(&w);
    assert_null(find(&w, WS_DECIDE_START, 0));
    unmake(&w);
    make_clocked(&w, NOW + 3.7, "dvfs=yes");
    decide(&w);
    assert_starts(&w, 0, 0, SMS);
    const struct ws_policy_decision *d = find(&w, WS_DECIDE_START, 0);
    assert_true(d->f_core > 1 && d->end <= NOW + 3.7);
    unmake(&w);
}

static void test_clocks_are_not_lowered_where_a_job_runs(void **state)
{
    (void)state;
    struct world w;
    make_clocked(&w, NOW + 8, "dvfs=yes"); /* not so late that it could wait for the other */
    w.snap.explain = true;
    add_run(&w, 1, 0, 0, 0, 2, 5);
    w.states[0].volt = w.states[0].f_core = w.states[0].f_mem = 0.9;
    decide(&w);
    const struct ws_policy_decision *d = find(&w, WS_DECIDE_START, 0);
    assert_non_null(d);
    assert_true(d->volt >= 0.9 && d->f_core >= 0.9 && d->f_mem >= 0.9);
    assert_non_null(strstr(d->why, " at 0.9/0.9/0.9: "));
    unmake(&w);
}

/* ---- any state ---- */

static unsigned draw(uint64_t *seed, unsigned n)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*seed >> 33) % n;
}

static void make_any(struct world *w, uint64_t *seed)
{
    make_world(w, 1 + (int)draw(seed, GPUS));
    w->sys.n_types = 2;
    w->sys.n_tasks = 1 + (int)draw(seed, TASKS);
    for (int i = 0; i < w->sys.n_tasks; i++) {
        set_task(w, i, 1 + draw(seed, 10), draw(seed, 4) ? 5 + draw(seed, 30) : 0,
                 draw(seed, 4) ? 2 + draw(seed, 40) : 0);
        set_dvfs(w, i);
        w->tasks[i].offset = draw(seed, 120);
        for (int t = 0; t < 2; t++)
            w->costs[i][t].n_sm = draw(seed, 8) ? 1 + (int)draw(seed, SMS) : 0;
    }
    for (int k = 0; k < w->sys.n_gpus; k++) {
        w->gpus[k].type = (int)draw(seed, 2);
        w->gpus[k].sm_limit = 1 + (int)draw(seed, SMS);
        w->gpus[k].n_slots = w->states[k].n_slots = 1 + (int)draw(seed, SLOTS);
        w->states[k].power = draw(seed, 8) ? WS_GPU_ON : WS_GPU_OFF;
        w->states[k].volt = w->states[k].f_core = w->states[k].f_mem = 0.5 + 0.1 * draw(seed, 6);
        for (int s = 0, first = 0; s < w->gpus[k].n_slots; s++) {
            int m = 1 + (int)draw(seed, 4);
            if (draw(seed, 2) || first + m > w->gpus[k].sm_limit)
                continue;
            add_run(w, (int)draw(seed, (unsigned)w->sys.n_tasks), k, s, (unsigned)first, m,
                    draw(seed, 9));
            first += m;
        }
    }
    bool preempts = draw(seed, 2);
    for (int t = 0; t < 2; t++)
        w->types[t].preempts = preempts;
    for (int i = 0; i < w->snap.n_jobs; i++)
        if (draw(seed, 3))
            w->jobs[i].deadline = NOW + draw(seed, 60);
    for (unsigned n = draw(seed, 9); n > 0; n--)
        add_job(w, (int)draw(seed, (unsigned)w->sys.n_tasks),
                draw(seed, 6) ? WS_JOB_WAITING : WS_JOB_PREEMPTED,
                draw(seed, 4) ? NOW - 1 + draw(seed, 40) : INFINITY);
}

/* What the job that @d takes off gives back. */
static void leave(const struct world *w, const struct ws_policy_decision *d,
                  struct ws_sm_set *taken)
{
    for (int i = 0; i < SLOTS; i++)
        if (w->runs[d->gpu * SLOTS + i].job == d->job)
            ws_sm_set_leave(taken, &w->runs[d->gpu * SLOTS + i].sms);
}

static void check_starts(const struct world *w, bool dvfs)
{
    bool begun[JOBS] = {0};
    double volt[GPUS], open_at[GPUS];
    for (int k = 0; k < GPUS; k++) {
        volt[k] = w->states[k].volt;
        open_at[k] = NOW;
    }
    int n[GPUS] = {0};
    struct ws_sm_set taken[GPUS] = {0};
    for (int i = 0; i < GPUS * SLOTS; i++)
        if (w->runs[i].job >= 0) {
            ws_sm_set_join(&taken[i / SLOTS], &w->runs[i].sms);
            n[i / SLOTS]++;
        }
    for (size_t i = 0; i < w->d.n; i++) {
        const struct ws_policy_decision *d = &w->d.v[i];
        if (d->kind == WS_DECIDE_TIMER)
            assert_true(d->at > w->snap.now && d->at < INFINITY);
        if (d->kind == WS_DECIDE_PREEMPT) {
            assert_true(w->types[0].preempts && w->jobs[d->job].state == WS_JOB_RUNNING);
            assert_int_equal(w->jobs[d->job].gpu, d->gpu);
            leave(w, d, &taken[d->gpu]);
            n[d->gpu]--;
            open_at[d->gpu] = NOW + w->types[w->gpus[d->gpu].type].update_ms;
        }
        if (d->kind != WS_DECIDE_START && d->kind != WS_DECIDE_RESUME)
            continue;
        assert_in_range(d->gpu, 0, w->sys.n_gpus - 1);
        assert_true(d->at >= open_at[d->gpu]);
        assert_false(begun[d->job]);
        begun[d->job] = true;
        assert_int_equal(w->jobs[d->job].state,
                         d->kind == WS_DECIDE_START ? WS_JOB_WAITING : WS_JOB_PREEMPTED);
        assert_int_equal(d->sms.n, d->n_sm);
        assert_false(ws_sm_set_meet(&d->sms, &taken[d->gpu]));
        ws_sm_set_join(&taken[d->gpu], &d->sms);
        assert_true((int)taken[d->gpu].n <= w->gpus[d->gpu].sm_limit);
        assert_true(++n[d->gpu] <= w->gpus[d->gpu].n_slots);
        assert_int_equal(w->states[d->gpu].power, WS_GPU_ON);
        if (dvfs && n[d->gpu] > 1) /* not the first there */
            assert_true(d->volt >= volt[d->gpu]);
        volt[d->gpu] = d->volt;
    }
}

/* Where nothing runs, a job that waits must be looked at again at some time. */
static void check_nobody_is_forgotten(const struct world *w)
{
    bool waits = false;
    for (int i = 0; i < w->snap.n_jobs; i++) {
        waits |= w->jobs[i].state != WS_JOB_RUNNING;
        if (w->jobs[i].state == WS_JOB_RUNNING)
            return;
    }
    for (int k = 0; k < w->sys.n_gpus; k++)
        if (w->states[k].power == WS_GPU_OFF)
            return;
    if (waits)
        assert_true(find(w, WS_DECIDE_START, -1) || find(w, WS_DECIDE_RESUME, -1) ||
                    find(w, WS_DECIDE_TIMER, -1));
}

static void test_any_state(void **state)
{
    (void)state;
    static struct world w;
    static const char *const options[][3] = {
        {NULL}, {"guarantee=1", NULL}, {"dvfs=yes", NULL}, {"dvfs=yes", "guarantee=1", NULL}};
    for (uint64_t i = 1; i <= 8000; i++) {
        uint64_t seed = i;
        make_any(&w, &seed);
        assert_int_equal(w.ops->make(&w.p, options[i % 4], w.error, sizeof(w.error)), 0);
        assert_true(prepare(&w) >= 0);
        decide(&w);
        check_starts(&w, i % 4 >= 2);
        check_nobody_is_forgotten(&w);
        struct ws_policy_decisions first = w.d;
        w.d = WS_POLICY_DECISIONS_NULL;
        decide(&w);
        assert_int_equal(w.d.n, first.n);
        for (size_t k = 0; k < first.n; k++) {
            assert_int_equal(w.d.v[k].kind, first.v[k].kind);
            assert_int_equal(w.d.v[k].job, first.v[k].job);
            assert_int_equal(w.d.v[k].gpu, first.v[k].gpu);
            assert_int_equal(w.d.v[k].n_sm, first.v[k].n_sm);
            assert_true(w.d.v[k].volt <= first.v[k].volt && w.d.v[k].volt >= first.v[k].volt);
        }
        ws_policy_decisions_deinit(&first);
        unmake(&w);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fewest_joules),
        cmocka_unit_test(test_earliest_deadline_first),
        cmocka_unit_test(test_waits_for_one_that_would_miss),
        cmocka_unit_test(test_makes_room_where_it_cannot_wait),
        cmocka_unit_test(test_waits_without_deadline_only_for_one_that_would_miss),
        cmocka_unit_test(test_waits_for_energy_only_with_a_deadline),
        cmocka_unit_test(test_weights_count_misses),
        cmocka_unit_test(test_late_everywhere),
        cmocka_unit_test(test_guarantee),
        cmocka_unit_test(test_releases_are_remembered),
        cmocka_unit_test(test_overdue_releases),
        cmocka_unit_test(test_lateness_is_learned),
        cmocka_unit_test(test_irregular_releases_are_foreseen_early),
        cmocka_unit_test(test_margin_is_learned),
        cmocka_unit_test(test_margin_keeps_no_job_from_starting),
        cmocka_unit_test(test_margin_of_jobs_to_come),
        cmocka_unit_test(test_margin_is_waited_for),
        cmocka_unit_test(test_shares_of_long_kernels),
        cmocka_unit_test(test_margin_of_what_runs),
        cmocka_unit_test(test_releases_are_capped),
        cmocka_unit_test(test_outcome),
        cmocka_unit_test(test_takes_off_what_has_more_time),
        cmocka_unit_test(test_takes_off_only_what_can_be),
        cmocka_unit_test(test_taking_off_waits_for_blocks),
        cmocka_unit_test(test_long_blocks_wait_for_one_that_would_miss),
        cmocka_unit_test(test_outcome_with_a_job_that_leaves),
        cmocka_unit_test(test_takes_off_the_latest_that_is_in_time_afterwards),
        cmocka_unit_test(test_starts_what_can_be_taken_off_again),
        cmocka_unit_test(test_outcome_with_a_job_taken_off),
        cmocka_unit_test(test_gives_up_the_largest),
        cmocka_unit_test(test_keeps_to_homes),
        cmocka_unit_test(test_unknown_cost_runs_alone),
        cmocka_unit_test(test_preempted_job_resumes),
        cmocka_unit_test(test_waits_for_less_energy_where_it_could_be_taken_off),
        cmocka_unit_test(test_outcome_where_jobs_wait),
        cmocka_unit_test(test_explains),
        cmocka_unit_test(test_tries_neighbours_of_the_greedy_place),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_slack_is_spent_on_clocks),
        cmocka_unit_test(test_clocks_are_raised_to_be_in_time),
        cmocka_unit_test(test_clocks_are_not_lowered_where_a_job_runs),
        cmocka_unit_test(test_any_state),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

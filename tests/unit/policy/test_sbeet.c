// SPDX-License-Identifier: Apache-2.0
/* The sBEET family: energy-optimal SM counts and rankings of the facts, Alg. 1, each branch of the
 * migration with numbers worked out by hand, forms, explanations, costs that are unknown, what
 * decisions must never do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/measured.h"
#include "policy/policy.h"
#include "policy/sbeet.h"

enum { MAX = 4, SMS = 46 };
/* Two GPUs: "big" with 12 SMs, all to be had, "small" with 4. Kernels scale perfectly up to 8 SMs;
 * power by Eq. 2. */
struct world {
    struct ws_policy_gpu_type types[2];
    struct ws_policy_gpu gpus[3];
    struct ws_policy_task tasks[MAX];
    struct ws_policy_cost costs[MAX][2];
    double wcet[MAX][2][SMS];
    struct ws_policy_system sys;
    struct ws_policy_run runs[6];
    struct ws_policy_gpu_state states[3];
    struct ws_policy_job jobs[8];
    struct ws_policy_snapshot snap;
    struct ws_policy_decisions d;
    const struct ws_policy_ops *ops;
    struct ws_policy *p;
    char error[200];
};

static void add_task(struct world *w, double period, double work_ms)
{
    int i = w->sys.n_tasks++;
    for (int t = 0; t < 2; t++) {
        int n = w->types[t].n_sm;
        for (int m = 1; m <= n; m++)
            w->wcet[i][t][m - 1] = work_ms * (t ? 1.5 : 1) / (m < 8 ? m : 8);
        w->costs[i][t] = (struct ws_policy_cost){
            .n_sm = n, .wcet = w->wcet[i][t], .h2d = 1, .d2h = 1, .dyn_w_per_sm = t ? 1 : 3};
    }
    w->tasks[i] = (struct ws_policy_task){.id = i,
                                          .name = "k",
                                          .period = period,
                                          .deadline = period / 2,
                                          .priority = MAX - i,
                                          .cost = w->costs[i]};
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    w->types[0] = (struct ws_policy_gpu_type){
        .name = "big", .n_sm = 12, .static_w = 20, .idle_w_per_sm = 0.5};
    w->types[1] = (struct ws_policy_gpu_type){
        .name = "small", .n_sm = 4, .static_w = 5, .idle_w_per_sm = 0.5};
    for (int k = 0; k < 3; k++) {
        w->gpus[k] = (struct ws_policy_gpu){
            .type = k == 1, .sm_limit = k == 1 ? 4 : 12, .n_slots = 2, .server = -1};
        w->states[k] = (struct ws_policy_gpu_state){
            .slots = &w->runs[2 * k], .n_slots = 2, .power = WS_GPU_ON};
    }
    for (int i = 0; i < 6; i++)
        w->runs[i] = (struct ws_policy_run){.job = -1, .task = -1};
    w->sys = (struct ws_policy_system){
        .types = w->types, .gpus = w->gpus, .tasks = w->tasks, .n_types = 2, .n_gpus = 2};
    w->snap = (struct ws_policy_snapshot){
        .system = &w->sys, .gpus = w->states, .jobs = w->jobs, .explain = true};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    if (w->p)
        w->ops->free(w->p);
    ws_policy_decisions_deinit(&w->d);
    free(w);
    return 0;
}

static void make(struct world *w, const char *name, const char *option)
{
    const char *const options[] = {option, NULL};
    if (w->p)
        w->ops->free(w->p);
    w->ops = ws_policy_find(name);
    assert_non_null(w->ops);
    assert_int_equal(w->ops->make(&w->p, option ? options : NULL, w->error, sizeof(w->error)), 0);
    assert_true(w->ops->prepare(w->p, &w->sys, w->error, sizeof(w->error)) >= 0);
}

static void add_job(struct world *w, int task, double deadline)
{
    int i = w->snap.n_jobs++;
    w->jobs[i] = (struct ws_policy_job){.id = (uint64_t)i,
                                        .seq = (uint64_t)i,
                                        .task = task,
                                        .state = WS_JOB_WAITING,
                                        .deadline = deadline,
                                        .gpu = -1};
}

/* The last job runs. */
static void runs(struct world *w, int gpu, int slot, int n_sm, double gpu_end, double end)
{
    int i = w->snap.n_jobs - 1;
    w->jobs[i].state = WS_JOB_RUNNING;
    w->jobs[i].gpu = gpu;
    struct ws_policy_run *r = &w->runs[2 * gpu + slot];
    *r = (struct ws_policy_run){
        .job = i, .task = w->jobs[i].task, .n_sm = n_sm, .gpu_end = gpu_end, .end = end};
    for (unsigned sm = 0; sm < (unsigned)n_sm; sm++)
        ws_sm_set_add(&r->sms, sm + (slot ? 12u - (unsigned)n_sm : 0));
    w->states[gpu].n_running++;
}

static const struct ws_policy_decision *decide(struct world *w, double now)
{
    struct ws_policy_event e = {.kind = WS_EVENT_ARRIVAL, .job = -1, .task = -1, .gpu = -1};
    w->snap.now = now;
    w->d.n = 0;
    assert_int_equal(w->ops->decide(w->p, &w->snap, &e, &w->d), 0);
    assert_true(w->d.n > 0);
    return &w->d.v[0];
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * fmax(1, fabs(b)))) {
        print_error("%.12g is not %.12g\n", a, b);
        fail();
    }
}

/* Values of the paper's system, as the facts give them. */
static void optimal_sms(void **state)
{
    static const struct {
        const char *kernel;
        int limit, m;
    } rows[] = {{"mmul", 6, 4},
                {"mmul", 12, 12},
                {"mmul", 46, 46},
                {"dxtc", 24, 22},
                {"bfs", 24, 16},
                {"bfs", 46, 16},
                {"hist", 46, 30},
                {"mmul2", 6, 4},
                {"mmul2", 12, 8},
                {"mmul2", 24, 8},
                {"mmul2", 46, 44},
                {"hist2", 46, 30},
                {"stereodisparity", 24, 24},
                {"hotspot", 46, 46}};
    (void)state;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        const struct ws_measured_kernel *k = ws_measured_find("rtx3070", rows[i].kernel);
        assert_int_equal(
            ws_energy_optimal_sms(&ws_measured_gpu_find("rtx3070")->power, &k->cost, rows[i].limit),
            rows[i].m);
    }
    for (int app = 0; app < WS_MEASURED_APPS; app++)
        assert_int_equal(ws_energy_optimal_sms(&ws_measured_gpu_find("t400")->power,
                                               &ws_measured_app("t400", app)->cost, 6),
                         6);
}

/* Task of 48 ms of work. On big, above static: m SMs for 48/m ms (6 ms from 8 on) at 3 m + 0.5
 * (12 - m) W: 6·(24 + 2) = 156 at 8, 48·8.5 = 408 at 1. On small: 18 ms at 4 W = 72 with 4. So
 * small is preferred, at 4 SMs. */
static void alg1(void **state)
{
    struct world *w = *state;
    const int *rank;
    add_task(w, 400, 48);
    make(w, "sbeet-mg", NULL);
    assert_int_equal(ws_sbeet_optimal_sms(w->p, 0, 0), 8);
    assert_int_equal(ws_sbeet_optimal_sms(w->p, 0, 1), 4);
    assert_int_equal(ws_sbeet_ranking(w->p, 0, &rank), 2);
    assert_int_equal(rank[0], 1);
    assert_int_equal(ws_sbeet_home(w->p, 0), 1);
    /* Its mean utilisation on small: 72·(1 + 1/2 + 1/3 + 1/4)/4 + 2 = 39.5 of the period; two of 70
     * ms don't fit. */
    w->tasks[0].period = 70;
    add_task(w, 70, 48);
    make(w, "sbeet-mg", NULL);
    assert_int_equal(ws_sbeet_home(w->p, 0), 1);
    assert_int_equal(ws_sbeet_home(w->p, 1), 0);
    assert_true(ws_sbeet_is(w->ops));
    assert_false(ws_sbeet_is(ws_policy_find("consolidate")));
}

/* Own GPU idle, nothing else at work: there, with its optimal SMs. */
static void idle(void **state)
{
    struct world *w = *state;
    add_task(w, 400, 48);
    make(w, "sbeet-mg", NULL);
    add_job(w, 0, 200);
    const struct ws_policy_decision *d = decide(w, 10);
    assert_int_equal(d->kind, WS_DECIDE_START);
    assert_int_equal(d->gpu, 1);
    assert_int_equal(d->n_sm, 4);
    assert_int_equal(d->sms.n, 4);
    assert_near(d->gpu_start, 11);
    assert_near(d->gpu_end, 29);
    assert_near(d->end, 30);
    /* Sampled at 10…29: small is at work until 29 (19 samples at 5 + 4 W), gated in one; big is
     * gated in 20. */
    assert_near(d->energy, 19 * 9 + 5 + 20 * 20);
    assert_non_null(strstr(d->why, "its GPU is idle"));
}

/* Own GPU idle, but beside a job on big it is over in time for big, and the window is shorter. */
static void migrates_beside(void **state)
{
    struct world *w = *state;
    add_task(w, 400, 48);
    add_task(w, 1000, 480);
    make(w, "sbeet-mg", NULL);
    add_job(w, 1, 1000);
    runs(w, 0, 0, 4, 18, 19);
    add_job(w, 0, 200);
    /* On big: 8 SMs left, 10 + 1 + 6 + 1 = 18, and 17 ≤ 19 + 5: sampled 10…18 in place of 10…29. */
    const struct ws_policy_decision *d = decide(w, 10);
    assert_int_equal(d->gpu, 0);
    assert_int_equal(d->n_sm, 8);
    assert_near(d->end, 18);
    for (unsigned sm = 0; sm < 12; sm++)
        assert_int_equal(ws_sm_set_has(&d->sms, sm), sm >= 4);
    assert_non_null(strstr(d->why, "next best of 2"));
    /* It would outlast the running job by more than 5. */
    w->runs[0].gpu_end = 10.5;
    w->runs[0].end = 11;
    assert_int_equal(decide(w, 10)->gpu, 1);
}

/* The same, with costs that are known to an error only: it leaves its GPU if that is small against
 * what it saves, and stays if it is not. */
static void stays_if_unsure(void **state)
{
    struct world *w = *state;
    add_task(w, 400, 48);
    add_task(w, 1000, 480);
    w->costs[0][0].energy_error = w->costs[0][1].energy_error = 0.1;
    make(w, "sbeet-mg", NULL);
    add_job(w, 1, 1000);
    runs(w, 0, 0, 4, 18, 19);
    add_job(w, 0, 200);
    const struct ws_policy_decision *d = decide(w, 10);
    assert_int_equal(d->gpu, 0);
    assert_null(strstr(d->why, "error"));
    /* 72 mJ on its own GPU and 156 mJ on the other one, each give or take three times that */
    w->costs[0][0].energy_error = w->costs[0][1].energy_error = 3;
    d = decide(w, 10);
    assert_int_equal(d->gpu, 1);
    assert_non_null(strstr(d->why, "predictions' error"));
    assert_non_null(strstr(d->why, "next best of 2"));
}

/* Own GPU partly used: what is left of it, if in time and over soon after; else the job waits,
 * whatever is free elsewhere. */
static void partly_used(void **state)
{
    struct world *w = *state;
    add_task(w, 400, 48);
    add_task(w, 2000, 48);
    make(w, "sbeet-mg", NULL);
    add_job(w, 1, 2000);
    runs(w, 1, 0, 2, 50, 51);
    add_job(w, 0, 200);
    const struct ws_policy_decision *d = decide(w, 10); /* 2 SMs: 36 ms, until 48 */
    assert_int_equal(d->kind, WS_DECIDE_START);
    assert_int_equal(d->gpu, 1);
    assert_int_equal(d->n_sm, 2);
    assert_near(d->end, 48);
    w->jobs[1].deadline = 47.9;
    d = decide(w, 10);
    assert_int_equal(d->kind, WS_DECIDE_WAIT);
    assert_true(strlen(d->why) > 10);
}

/* Own GPU full: it waits where that is in time; else another GPU, where sBEET finds it in time;
 * else it waits. */
static void full(void **state)
{
    struct world *w = *state;
    add_task(w, 400, 48);
    add_task(w, 2000, 48);
    make(w, "sbeet-mg", NULL);
    add_job(w, 1, 2000);
    runs(w, 1, 0, 4, 50, 51);
    add_job(w, 0, 71); /* from 51: 1 + 18 + 1 = 71 */
    assert_int_equal(decide(w, 10)->kind, WS_DECIDE_WAIT);
    w->jobs[1].deadline = 70.9;
    const struct ws_policy_decision *d = decide(w, 10);
    assert_int_equal(d->kind, WS_DECIDE_START);
    assert_int_equal(d->gpu, 0);
    assert_int_equal(d->n_sm, 12); /* the shortest window, priced as if big stayed idle */
    assert_non_null(strstr(d->why, "its own GPU is full"));
    make(w, "sbeet", NULL);
    assert_int_equal(decide(w, 10)->kind, WS_DECIDE_WAIT);
    make(w, "sbeet-mg", NULL);
    /* On big it would end at 18 (8 or 12 SMs); sBEET's candidate with all SMs does not ask for its
     * own deadline, the others do. */
    w->jobs[1].deadline = 17;
    assert_int_equal(decide(w, 10)->kind, WS_DECIDE_START);
    make(w, "sbeet-mg", "own-deadline=yes");
    assert_int_equal(decide(w, 10)->kind, WS_DECIDE_WAIT);
}

/* A coming job of a task of the same GPU forbids a candidate that would make it late. */
static void coming_jobs(void **state)
{
    struct world *w = *state;
    add_task(w, 20, 16);   /* 2 ms on big; small: 6 ms. Deadline 10 after release */
    add_task(w, 4000, 96); /* 12 ms on all of big */
    make(w, "sbeet", NULL);
    w->sys.n_gpus = 1;
    make(w, "sbeet", NULL);
    add_job(w, 1, 2000);
    /* Released at 0 + 20·n, input there from 1 on: from 4 on, the job of 20 is outside the window
     * (4, 17). */
    const struct ws_policy_decision *d = decide(w, 4);
    assert_int_equal(d->n_sm, 12);
    /* At 12 the window is (12, 25): the one of 20 would run 25…29, its deadline is 30. */
    assert_int_equal(decide(w, 12)->n_sm, 12);
    /* At 14: 27…31. Infeasible; 8 SMs, as fast, only asks for its own deadline. */
    assert_int_equal(decide(w, 14)->n_sm, 8);
}

static void priorities_and_slots(void **state)
{
    struct world *w = *state;
    add_task(w, 100, 8);
    add_task(w, 200, 8);
    add_task(w, 300, 8);
    make(w, "bcf", NULL);
    add_job(w, 2, INFINITY);
    add_job(w, 1, INFINITY);
    add_job(w, 0, INFINITY);
    add_job(w, 0, INFINITY);
    w->snap.explain = false;
    decide(w, 0);
    /* By priority: task 0 with its 8 optimal SMs of big, task 1 with the 4 left, task 2 on small;
     * task 0's second job waits. */
    assert_int_equal(w->d.n, 3);
    assert_int_equal(w->d.v[0].job, 2);
    assert_int_equal(w->d.v[0].n_sm, 8);
    assert_int_equal(w->d.v[1].job, 1);
    assert_int_equal(w->d.v[1].n_sm, 4);
    assert_false(ws_sm_set_meet(&w->d.v[0].sms, &w->d.v[1].sms));
    assert_int_equal(w->d.v[2].gpu, 1);
    assert_string_equal(w->d.v[0].why, "");
    make(w, "lcf", NULL);
    decide(w, 0);
    assert_int_equal(w->d.v[0].gpu, 1);
    make(w, "load-dist", NULL);
    decide(w, 0);
    assert_int_equal(w->d.v[0].gpu, 0);
    assert_int_equal(w->d.v[1].gpu, 1);
    assert_int_equal(w->d.v[2].gpu, 0);
    /* The same snapshot, the same answer. */
    struct ws_policy_decision first = w->d.v[0];
    decide(w, 0);
    assert_memory_equal(&first, &w->d.v[0], sizeof(first));
    /* A GPU that is off takes nothing. */
    w->states[0].power = WS_GPU_OFF;
    decide(w, 0);
    assert_int_equal(w->d.n, 1);
    assert_int_equal(w->d.v[0].gpu, 1);
}

static void bins(void **state)
{
    struct world *w = *state;
    static const double u[] = {0.5, 0.7, 0.45, 0.9};
    for (int i = 0; i < 4; i++) {
        add_task(w, 1000, 8);
        w->tasks[i].utilization = u[i];
    }
    static const struct {
        const char *policy;
        int home[4];
    } rows[] = {
        /* by size: 0.9, 0.7, 0.5, 0.45; none of the last two fits anywhere but beside nothing */
        {"ffd-sbeet", {1, 1, 0, 0}},
        {"bfd-sbeet", {1, 1, 0, 0}},
        {"wfd-sbeet", {1, 1, 0, 0}},
    };
    for (size_t r = 0; r < WS_ARRAY_SIZE(rows); r++) {
        make(w, rows[r].policy, NULL);
        for (int i = 0; i < 4; i++)
            assert_int_equal(ws_sbeet_home(w->p, i), rows[r].home[i]);
        if (r < 2) {
            assert_int_equal(w->ops->prepare(w->p, &w->sys, w->error, sizeof(w->error)),
                             WS_POLICY_E_UNFIT);
            assert_non_null(strstr(w->error, "task 0"));
        }
    }
    /* 0.6, 0.5, 0.4, 0.3: first and best fit put 0.4 beside 0.6, worst fit beside 0.5. */
    static const double v[] = {0.6, 0.5, 0.4, 0.3};
    for (int i = 0; i < 4; i++)
        w->tasks[i].utilization = v[i];
    make(w, "ffd-sbeet", NULL);
    assert_int_equal(ws_sbeet_home(w->p, 2), 0);
    assert_int_equal(ws_sbeet_home(w->p, 3), 1);
    make(w, "wfd-sbeet", NULL);
    assert_int_equal(ws_sbeet_home(w->p, 2), 1);
    assert_int_equal(ws_sbeet_home(w->p, 3), 0);
}

static void unknown_costs(void **state)
{
    struct world *w = *state;
    add_task(w, 100, 8);
    add_task(w, 0, 8); /* no period: nothing is known of when it comes */
    w->costs[0][0].n_sm = 0;
    w->tasks[1].cost = NULL;
    w->ops = ws_policy_find("sbeet-mg");
    assert_int_equal(w->ops->make(&w->p, NULL, w->error, sizeof(w->error)), 0);
    assert_int_equal(w->ops->prepare(w->p, &w->sys, w->error, sizeof(w->error)), WS_POLICY_E_COST);
    assert_non_null(strstr(w->error, "known on no GPU"));
    add_job(w, 0, INFINITY);
    add_job(w, 1, INFINITY);
    decide(w, 0);
    assert_int_equal(w->d.n, 2);
    assert_int_equal(w->d.v[0].gpu, 1); /* known there only */
    assert_int_equal(w->d.v[1].gpu, 0); /* alone on the idle one */
    assert_int_equal(w->d.v[1].n_sm, 12);
}

static void options(void **state)
{
    static const char *const bad[] = {"variant=best",      "sample=-1", "sample=x",
                                      "lookahead=perhaps", "step=0",    "nothing=1",
                                      "tolerance=nan"};
    struct world *w = *state;
    const struct ws_policy_ops *ops = ws_policy_find("sbeet-mg");
    struct ws_policy *p = NULL;
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++) {
        const char *const o[] = {bad[i], NULL};
        w->error[0] = 0;
        assert_int_equal(ops->make(&p, o, w->error, sizeof(w->error)), WS_POLICY_E_OPTION);
        assert_true(strlen(w->error) > 10);
    }
    const char *const o[] = {"variant=asis", NULL};
    assert_int_equal(ws_policy_find("lcf")->make(&p, o, w->error, sizeof(w->error)),
                     WS_POLICY_E_OPTION);
    static const char *const good[] = {"variant=paper", "variant=asis", "sample=0", "lookahead=yes",
                                       "future=by-task"};
    add_task(w, 400, 48);
    add_task(w, 1000, 480);
    add_job(w, 1, 1000);
    runs(w, 0, 0, 4, 100, 101);
    add_job(w, 0, 200);
    for (size_t i = 0; i < WS_ARRAY_SIZE(good); i++) {
        make(w, "sbeet-mg", good[i]);
        assert_int_equal(decide(w, 10)->kind, WS_DECIDE_START);
    }
    /* Integrated: from 10 to 29.5 or what the window is, without the sample at its right end. */
    make(w, "sbeet-mg", "sample=0");
    w->runs[0] = (struct ws_policy_run){.job = -1, .task = -1};
    w->states[0].n_running = 0;
    w->jobs[0].state = WS_JOB_PREEMPTED;
    assert_near(decide(w, 10.25)->energy, 19 * 9 + 19 * 20);
}

/* Random states: a decision never takes SMs that aren't free, nor more than the limit, nor a slot
 * that isn't there. */
static void never_oversubscribes(void **state)
{
    static const char *const names[] = {"sbeet-mg",         "sbeet",    "lcf", "bcf", "load-dist",
                                        "sbeet-mg-offline", "ffd-sbeet"};
    struct world *w = *state;
    w->sys.n_gpus = 3;
    for (int i = 0; i < MAX; i++)
        add_task(w, 60 + 40 * i, 30 + 20 * i);
    srand(3);
    for (int round = 0; round < 2000; round++) {
        make(w, names[(size_t)round % WS_ARRAY_SIZE(names)], round % 3 ? NULL : NULL);
        w->snap.n_jobs = 0;
        int used[3] = {0}, slots[3] = {0};
        for (int s = 0; s < 6; s++) {
            w->runs[s] = (struct ws_policy_run){.job = -1, .task = -1};
            w->states[s / 2].n_running = 0;
        }
        for (int k = 0; k < 3; k++)
            for (int s = 0; s < 2 && w->snap.n_jobs < 3; s++)
                if (rand() % 3 == 0) {
                    int n_sm = 1 + rand() % (k == 1 ? 2 : 6);
                    add_job(w, w->snap.n_jobs, INFINITY);
                    double end = 100 + rand() % 60;
                    runs(w, k, s, n_sm, end, end + 1);
                    if (k == 1 && s) /* the helper counts from 12 SMs down */
                        w->runs[2 * k + s].sms = (struct ws_sm_set){2, {0xc}};
                    if (k == 1 && s)
                        w->runs[2 * k + s].n_sm = n_sm = 2;
                    used[k] += n_sm;
                    slots[k]++;
                }
        for (int i = 0; i < MAX; i++)
            add_job(w, i, 100 + rand() % 100);
        decide(w, 100);
        for (size_t i = 0; i < w->d.n; i++) {
            const struct ws_policy_decision *d = &w->d.v[i];
            if (d->kind != WS_DECIDE_START)
                continue;
            used[d->gpu] += d->n_sm;
            slots[d->gpu]++;
            assert_int_equal(d->sms.n, d->n_sm);
            assert_true(used[d->gpu] <= w->gpus[d->gpu].sm_limit);
            assert_true(slots[d->gpu] <= 2);
            for (int s = 0; s < 2; s++)
                assert_false(ws_sm_set_meet(&d->sms, &w->runs[2 * d->gpu + s].sms));
            for (size_t k = 0; k < i; k++)
                assert_false(w->d.v[k].gpu == d->gpu && ws_sm_set_meet(&d->sms, &w->d.v[k].sms));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(optimal_sms),
        cmocka_unit_test_setup_teardown(alg1, setup, teardown),
        cmocka_unit_test_setup_teardown(idle, setup, teardown),
        cmocka_unit_test_setup_teardown(migrates_beside, setup, teardown),
        cmocka_unit_test_setup_teardown(stays_if_unsure, setup, teardown),
        cmocka_unit_test_setup_teardown(partly_used, setup, teardown),
        cmocka_unit_test_setup_teardown(full, setup, teardown),
        cmocka_unit_test_setup_teardown(coming_jobs, setup, teardown),
        cmocka_unit_test_setup_teardown(priorities_and_slots, setup, teardown),
        cmocka_unit_test_setup_teardown(bins, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_costs, setup, teardown),
        cmocka_unit_test_setup_teardown(options, setup, teardown),
        cmocka_unit_test_setup_teardown(never_oversubscribes, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

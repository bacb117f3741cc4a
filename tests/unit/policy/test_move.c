// SPDX-License-Identifier: Apache-2.0
/* Where policies place a job whose data lies on one of two equal GPUs: there, while that is not
 * worse; elsewhere where waiting takes longer than the move. Without data, as their rules have it.
 * Numbers by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"

enum { SMS = 8, TASKS = 2 };
#define MOVE_MS 1.0
#define MOVE_MJ 5.0
/* Two GPUs of 8 SMs; kernels take 8 ms divided by the SMs they have. */
struct world {
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu gpus[2];
    double wcet[SMS];
    struct ws_policy_cost cost;
    struct ws_policy_task tasks[TASKS];
    struct ws_policy_system sys;
    struct ws_policy_run runs[4];
    struct ws_policy_gpu_state states[2];
    struct ws_policy_move moves[2];
    struct ws_policy_job jobs[2];
    struct ws_policy_snapshot snap;
    struct ws_policy_decisions d;
    const struct ws_policy_ops *ops;
    struct ws_policy *p;
};

static const struct {
    const char *name, *option;
} policies[] = {{"gcaps", NULL},     {"fifo", NULL},        {"rr", NULL},
                {"rr", "slice=0"},   {"stgm", NULL},        {"sbeet", NULL},
                {"wfd-sbeet", NULL}, {"sbeet-mg", NULL},    {"sbeet-mg-offline", NULL},
                {"lcf", NULL},       {"bcf", NULL},         {"load-dist", NULL},
                {"edl", "dvfs=no"},  {"consolidate", NULL}, {"consolidate", "threshold=0"},
                {"wattshare", NULL}};

/* The job that is to be placed is the only one, of task 1. */
static void make(struct world *w, int i)
{
    char error[200] = "";
    const char *const options[] = {policies[i].option, NULL};
    memset(w, 0, sizeof(*w));
    w->type =
        (struct ws_policy_gpu_type){.name = "x", .n_sm = SMS, .static_w = 10, .idle_w_per_sm = 0.5};
    for (int m = 1; m <= SMS; m++)
        w->wcet[m - 1] = 8.0 / m;
    w->cost =
        (struct ws_policy_cost){.n_sm = SMS, .wcet = w->wcet, .dyn_w_per_sm = 3, .n_blocks = SMS};
    for (int g = 0; g < 2; g++) {
        w->gpus[g] = (struct ws_policy_gpu){.sm_limit = SMS, .n_slots = 2, .server = g};
        w->states[g] = (struct ws_policy_gpu_state){
            .slots = &w->runs[2 * g], .n_slots = 2, .volt = 1, .f_core = 1, .f_mem = 1};
    }
    for (int r = 0; r < 4; r++)
        w->runs[r] = (struct ws_policy_run){.job = -1, .task = -1};
    for (int t = 0; t < TASKS; t++)
        w->tasks[t] = (struct ws_policy_task){
            .id = t, .name = "k", .priority = TASKS - t, .weight = 1, .cost = &w->cost};
    w->sys = (struct ws_policy_system){.types = &w->type,
                                       .gpus = w->gpus,
                                       .tasks = w->tasks,
                                       .n_types = 1,
                                       .n_gpus = 2,
                                       .n_tasks = TASKS};
    /* by the numbers, rr and stgm deal job 4 of task 0 to GPU 0 */
    w->jobs[0] =
        (struct ws_policy_job){.id = 4, .seq = 4, .task = 0, .gpu = -1, .deadline = INFINITY};
    w->snap = (struct ws_policy_snapshot){.system = &w->sys,
                                          .now = 100,
                                          .gpus = w->states,
                                          .jobs = w->jobs,
                                          .n_jobs = 1,
                                          .explain = true};
    w->ops = ws_policy_find(policies[i].name);
    assert_non_null(w->ops);
    assert_int_equal(w->ops->make(&w->p, options, error, sizeof(error)), 0);
    if (w->ops->prepare)
        assert_int_equal(w->ops->prepare(w->p, &w->sys, error, sizeof(error)), 0);
}

static void unmake(struct world *w)
{
    w->ops->free(w->p);
    ws_policy_decisions_deinit(&w->d);
}

/* The data of the job to be placed, the last one, is on @gpu. */
static void data_on(struct world *w, int gpu, double ms)
{
    w->moves[gpu] = (struct ws_policy_move){.here = true};
    w->moves[!gpu] = (struct ws_policy_move){.bytes = 1e6, .ms = ms, .mj = MOVE_MJ};
    w->jobs[w->snap.n_jobs - 1].moves = w->moves;
}

/* A job of a higher priority has all of @gpu for @ms more. */
static void busy(struct world *w, int gpu, double ms)
{
    w->jobs[1] = w->jobs[0];
    w->jobs[1].task = 1;
    w->jobs[0] = (struct ws_policy_job){
        .id = 1, .seq = 1, .task = 0, .state = WS_JOB_RUNNING, .gpu = gpu, .deadline = INFINITY};
    w->snap.n_jobs = 2;
    struct ws_policy_run *r = &w->runs[2 * gpu];
    *r = (struct ws_policy_run){.job = 0,
                                .n_sm = SMS,
                                .start = 90,
                                .gpu_start = 90,
                                .gpu_end = w->snap.now + ms,
                                .end = w->snap.now + ms};
    for (unsigned sm = 0; sm < SMS; sm++)
        ws_sm_set_add(&r->sms, sm);
    w->states[gpu].n_running = 1;
    w->states[gpu].free_at = r->end;
}

/* Where the last job starts now; -1: it does not. */
static const struct ws_policy_decision *placed(struct world *w)
{
    struct ws_policy_event e = {
        .kind = WS_EVENT_ARRIVAL, .job = w->snap.n_jobs - 1, .task = -1, .gpu = -1};
    w->d.n = 0;
    assert_int_equal(w->ops->decide(w->p, &w->snap, &e, &w->d), 0);
    for (size_t i = 0; i < w->d.n; i++)
        if (w->d.v[i].job == w->snap.n_jobs - 1 && w->d.v[i].kind == WS_DECIDE_START)
            return w->d.v[i].at <= w->snap.now ? &w->d.v[i] : NULL;
    return NULL;
}

static int place(struct world *w)
{
    const struct ws_policy_decision *d = placed(w);
    return d ? d->gpu : -1;
}

#define EXPECT(i, is, wanted)                                                                      \
    do {                                                                                           \
        int is_ = (is);                                                                            \
        if (is_ != (wanted))                                                                       \
            fail_msg("%s: GPU %d, not %d", policies[i].name, is_, wanted);                         \
    } while (0)

static void test_stays_where_its_data_is(void **state)
{
    (void)state;
    struct world w;
    for (size_t i = 0; i < WS_ARRAY_SIZE(policies); i++) {
        make(&w, (int)i);
        EXPECT(i, place(&w), !strcmp(policies[i].name, "lcf")); /* nothing known: by the numbers */
        unmake(&w);
        for (int g = 0; g < 2; g++) {
            make(&w, (int)i);
            data_on(&w, g, MOVE_MS);
            EXPECT(i, place(&w), g);
            unmake(&w);
            make(&w, (int)i);
            data_on(&w, g, 0); /* it has no data yet, but a GPU */
            EXPECT(i, place(&w), g);
            unmake(&w);
        }
    }
}

/* Its GPU is taken for longer than the move takes: the other one. Those that know times wait where
 * that is shorter. */
static void test_moves_when_waiting_takes_longer(void **state)
{
    (void)state;
    struct world w;
    for (size_t i = 0; i < WS_ARRAY_SIZE(policies); i++) {
        bool timed = !strcmp(policies[i].name, "gcaps") || strstr(policies[i].name, "sbeet");
        if (!strcmp(policies[i].name, "consolidate") && policies[i].option)
            continue; /* draws what it runs; one job alone is no draw */
        make(&w, (int)i);
        busy(&w, 1, 5 * MOVE_MS);
        data_on(&w, 1, MOVE_MS);
        w.jobs[1].seq = 2; /* by the numbers on GPU 0 */
        w.tasks[1].sms.n = 0;
        if (!strcmp(policies[i].name, "stgm"))
            w.jobs[1].task = 0;
        EXPECT(i, place(&w), 0);
        unmake(&w);
        make(&w, (int)i);
        busy(&w, 1, MOVE_MS / 2);
        data_on(&w, 1, MOVE_MS);
        w.jobs[1].seq = 2;
        if (!strcmp(policies[i].name, "stgm"))
            w.jobs[1].task = 0;
        EXPECT(i, place(&w), timed ? -1 : 0);
        unmake(&w);
    }
}

/* sBEET-mg counts the move in the response, and its energy in that of the placement. */
static void test_sbeet_mg_prices_the_move(void **state)
{
    (void)state;
    struct world w;
    double end[2], energy[2];
    for (int moved = 0; moved < 2; moved++) {
        make(&w, 7);
        assert_string_equal(w.ops->name, "sbeet-mg");
        busy(&w, 1, 50);
        data_on(&w, moved, MOVE_MS);
        const struct ws_policy_decision *d = placed(&w);
        assert_non_null(d);
        assert_int_equal(d->gpu, 0);
        end[moved] = d->end;
        energy[moved] = d->energy;
        unmake(&w);
    }
    assert_true(fabs(end[1] - end[0] - MOVE_MS) < 1e-9);
    assert_true(fabs(energy[1] - energy[0] - MOVE_MJ) < 1e-9);
    /* A deadline that only the place without a move meets. */
    make(&w, 7);
    busy(&w, 1, 0.5);
    data_on(&w, 1, 3);
    w.jobs[1].deadline = 100 + 0.5 + 8.0 / SMS + 1;
    EXPECT(7, place(&w), -1); /* it waits for GPU 1 */
    unmake(&w);
}

/* Where it can't be moved to, nobody sends it who can help it. */
static void test_what_can_not_move_stays(void **state)
{
    (void)state;
    static const char *const able[] = {"gcaps", "sbeet",     "sbeet-mg", "sbeet-mg-offline",
                                       "lcf",   "load-dist", "bcf"};
    struct world w;
    for (size_t i = 0; i < WS_ARRAY_SIZE(policies); i++)
        for (size_t k = 0; k < WS_ARRAY_SIZE(able); k++) {
            if (strcmp(able[k], policies[i].name))
                continue;
            make(&w, (int)i);
            busy(&w, 1, 50);
            data_on(&w, 1, INFINITY);
            EXPECT(i, place(&w), -1);
            unmake(&w);
        }
}

/* GPUs of two kinds are not equal: the rule decides, whatever the move. */
static void test_a_rule_goes_before_a_move(void **state)
{
    (void)state;
    struct world w;
    for (size_t i = 0; i < WS_ARRAY_SIZE(policies); i++) {
        if (strcmp(policies[i].name, "fifo") && strcmp(policies[i].name, "bcf"))
            continue;
        make(&w, (int)i);
        struct ws_policy_gpu_type types[2] = {w.type, w.type};
        struct ws_policy_cost costs[2] = {w.cost, w.cost};
        char error[200];
        types[1].n_sm = 4;
        costs[1].n_sm = 4;
        w.gpus[1].type = 1;
        w.gpus[1].sm_limit = 4;
        w.sys.types = types;
        w.sys.n_types = 2;
        w.tasks[0].cost = w.tasks[1].cost = costs;
        if (w.ops->prepare)
            assert_int_equal(w.ops->prepare(w.p, &w.sys, error, sizeof(error)), 0);
        data_on(&w, 1, MOVE_MS);
        EXPECT(i, place(&w), 0);
        unmake(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stays_where_its_data_is),
        cmocka_unit_test(test_moves_when_waiting_takes_longer),
        cmocka_unit_test(test_sbeet_mg_prices_the_move),
        cmocka_unit_test(test_what_can_not_move_stays),
        cmocka_unit_test(test_a_rule_goes_before_a_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

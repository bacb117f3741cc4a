// SPDX-License-Identifier: Apache-2.0
/* The plan to which policy wattshare can return: which sets have one, which starts leave room for
 * it, and when it must be followed. Numbers by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "policy/lookahead/fallback.h"

enum { SMS = 8, TASKS = 4, JOBS = 8, SLOTS = 2 };
#define NOW 100.0
/* One GPU. A job takes its time on any number of SMs from 4 on, and four times that on fewer. */
struct world {
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu gpu;
    double wcet[TASKS][SMS];
    struct ws_policy_cost costs[TASKS];
    struct ws_policy_task tasks[TASKS];
    struct ws_policy_system sys;
    struct ws_policy_run runs[SLOTS];
    struct ws_policy_gpu_state state;
    struct ws_policy_job jobs[JOBS];
    struct ws_policy_snapshot snap;
    double last[TASKS];
    struct ws_fallback f;
};

static void set_task(struct world *w, int i, double ms, double period, double deadline)
{
    for (int m = 1; m <= SMS; m++)
        w->wcet[i][m - 1] = m < SMS / 2 ? 4 * ms : ms;
    w->costs[i] = (struct ws_policy_cost){.n_sm = SMS, .wcet = w->wcet[i], .dyn_w_per_sm = 3};
    w->tasks[i] = (struct ws_policy_task){
        .id = i, .period = period, .deadline = deadline, .weight = 1, .cost = &w->costs[i]};
    w->last[i] = -INFINITY;
    w->sys.n_tasks = i + 1;
}

static void make_world(struct world *w, int n_slots)
{
    memset(w, 0, sizeof(*w));
    w->type = (struct ws_policy_gpu_type){.name = "x", .n_sm = SMS};
    w->gpu = (struct ws_policy_gpu){.sm_limit = SMS, .n_slots = n_slots, .server = -1};
    w->state = (struct ws_policy_gpu_state){.slots = w->runs, .n_slots = n_slots};
    for (int i = 0; i < SLOTS; i++)
        w->runs[i] = (struct ws_policy_run){.job = -1, .task = -1};
    w->sys = (struct ws_policy_system){
        .types = &w->type, .gpus = &w->gpu, .tasks = w->tasks, .n_types = 1, .n_gpus = 1};
    w->snap = (struct ws_policy_snapshot){
        .system = &w->sys, .now = NOW, .gpus = &w->state, .jobs = w->jobs};
}

static bool has_plan(struct world *w)
{
    assert_int_equal(ws_fallback_prepare(&w->f, &w->sys), 0);
    return w->f.holds;
}

static int add_job(struct world *w, int task, double deadline)
{
    int n = w->snap.n_jobs++;
    w->jobs[n] = (struct ws_policy_job){.id = (uint64_t)n + 1,
                                        .task = task,
                                        .state = WS_JOB_WAITING,
                                        .release = NOW,
                                        .deadline = deadline,
                                        .gpu = -1};
    w->last[task] = NOW;
    return n;
}

static void load(struct world *w)
{
    assert_int_equal(ws_fallback_load(&w->f, &w->snap, w->last), 0);
}

static void test_which_sets_have_a_plan(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    set_task(&w, 0, 4, 10, 10);
    set_task(&w, 1, 4, 20, 9); /* each in time behind the other */
    assert_true(has_plan(&w));
    set_task(&w, 1, 4, 20, 7.5); /* not behind one that has just begun */
    assert_false(has_plan(&w));
    w.gpu.n_slots = w.state.n_slots = 2; /* side by side */
    assert_true(has_plan(&w));
    assert_int_not_equal(w.f.tasks[0].home, w.f.tasks[1].home);
    assert_int_equal(w.f.tasks[0].n_sm, 4);
    set_task(&w, 2, 4, 20, 7.5); /* a third */
    assert_false(has_plan(&w));
    ws_fallback_deinit(&w.f);
    make_world(&w, 1);
    set_task(&w, 0, 6, 10, 10); /* alone it is in time; both are too much */
    set_task(&w, 1, 10, 20, 200);
    assert_false(has_plan(&w));
    ws_fallback_deinit(&w.f);
}

static void test_jitter_and_tasks_without_deadlines(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    set_task(&w, 0, 6, 8, 8);
    assert_true(has_plan(&w));
    w.tasks[0].jitter = 2; /* two releases may be 6 ms apart */
    assert_false(has_plan(&w));
    w.tasks[0].jitter = 0;
    set_task(&w, 1, 1.5, 0, 0);
    assert_true(has_plan(&w));
    set_task(&w, 1, 2.5, 0, 0); /* it would be in the way */
    assert_false(has_plan(&w));
    set_task(&w, 1, 1, 0, 8); /* any number at once */
    assert_false(has_plan(&w));
    set_task(&w, 1, 1, 80, 80);
    w.gpu.n_slots = 2;
    w.gpu.n_copy_engines = 1; /* copies may wait */
    assert_false(has_plan(&w));
    ws_fallback_deinit(&w.f);
}

/* Task 0: 2 of 10 ms; task 1: 4 of 40 ms. One home, all SMs. */
static void make_pair(struct world *w)
{
    make_world(w, 1);
    set_task(w, 0, 2, 10, 10);
    set_task(w, 1, 4, 40, 40);
    assert_true(has_plan(w));
}

static void test_what_is_allowed(void **state)
{
    (void)state;
    struct world w;
    int gpu, n_sm;
    double by;
    make_pair(&w);
    load(&w);
    assert_int_equal(ws_fallback_next(&w.f, 0, &gpu, &n_sm, &by), -1); /* nobody is ready */
    int job = add_job(&w, 1, NOW + 40);
    load(&w);
    /* A job of task 0 may come now, and needs 2 of the 10 ms until its deadline. */
    assert_true(ws_fallback_allows(&w.f, job, 0, 2, NOW + 7.9));
    assert_false(ws_fallback_allows(&w.f, job, 0, 2, NOW + 8.1));
    w.last[0] = NOW - 5; /* not before NOW + 5 */
    load(&w);
    assert_true(ws_fallback_allows(&w.f, job, 0, 2, NOW + 12.9));
    assert_false(ws_fallback_allows(&w.f, job, 0, 2, NOW + 13.1));
    /* When one that is ready must start: 14 ms are taken until NOW + 40 by others. */
    w.last[0] = NOW;
    load(&w);
    assert_int_equal(ws_fallback_next(&w.f, 0, &gpu, &n_sm, &by), job);
    assert_int_equal(gpu, 0);
    assert_int_equal(n_sm, 4);
    assert_float_equal(by, NOW + 18, 1e-3); /* then task 0 at NOW + 18, for its deadline NOW + 20 */
    int urgent = add_job(&w, 0, NOW + 3);
    load(&w);
    assert_int_equal(ws_fallback_next(&w.f, 0, &gpu, &n_sm, &by), urgent);
    assert_float_equal(by, NOW + 1, 1e-3);
    ws_fallback_deinit(&w.f);
}

static void test_what_was_started(void **state)
{
    (void)state;
    struct world w;
    int gpu, n_sm;
    double by;
    make_world(&w, 2);
    set_task(&w, 0, 4, 10, 10);
    set_task(&w, 1, 4, 20, 7.5);
    assert_true(has_plan(&w)); /* two homes of 4 SMs */
    int a = add_job(&w, 0, NOW + 10), b = add_job(&w, 1, NOW + 7.5);
    load(&w);
    /* More SMs than a home's: both homes wait for its end. */
    assert_true(ws_fallback_allows(&w.f, a, 0, 6, NOW + 3.4));
    assert_false(ws_fallback_allows(&w.f, a, 0, 6, NOW + 3.6));
    assert_true(ws_fallback_allows(&w.f, a, 0, 4, NOW + 4));
    ws_fallback_started(&w.f, &w.snap, a, 0, 4, NOW + 4);
    int home = w.f.tasks[1].home;
    assert_int_equal(ws_fallback_next(&w.f, 1 - home, &gpu, &n_sm, &by), -1);
    assert_int_equal(ws_fallback_next(&w.f, home, &gpu, &n_sm, &by), b);
    assert_float_equal(by, NOW + 3.5, 1e-3);
    /* The same, after a while: the job that runs is known. */
    w.jobs[a].state = WS_JOB_RUNNING;
    w.runs[0] = (struct ws_policy_run){.job = a, .task = 0, .n_sm = 4, .end = NOW + 4};
    w.snap.now = NOW + 1;
    load(&w);
    assert_int_equal(ws_fallback_next(&w.f, home, &gpu, &n_sm, &by), b);
    w.jobs[a].id = 99; /* one that no home knows takes the whole GPU */
    load(&w);
    assert_int_equal(ws_fallback_next(&w.f, home, &gpu, &n_sm, &by), -1);
    ws_fallback_deinit(&w.f);
}

static void test_without_memory(void **state)
{
    (void)state;
    struct world w;
    make_pair(&w);
    add_job(&w, 1, NOW + 40);
    for (uint64_t n = 1; n <= 4; n++) {
        ws_alloc_fail_after(n);
        assert_int_equal(ws_fallback_prepare(&w.f, &w.sys), -ENOMEM);
    }
    ws_alloc_fail_after(0);
    assert_true(has_plan(&w));
    ws_alloc_fail_after(1);
    assert_int_equal(ws_fallback_load(&w.f, &w.snap, w.last), -ENOMEM);
    ws_alloc_fail_after(0);
    ws_fallback_deinit(&w.f);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_which_sets_have_a_plan),
        cmocka_unit_test(test_jitter_and_tasks_without_deadlines),
        cmocka_unit_test(test_what_is_allowed),
        cmocka_unit_test(test_what_was_started),
        cmocka_unit_test(test_without_memory),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

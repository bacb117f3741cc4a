// SPDX-License-Identifier: Apache-2.0
/* Lower bounds on misses and energy: values by hand where they are tight, and that no policy falls
 * below them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "papers/analysis/least.h"
#include "papers/sets/gen_sbeet.h"

enum { SMS = 4, TASKS = 3 };
/* A GPU of 4 SMs: 10 W static, 1 W for an idle SM, 3 W for a busy one. Kernels take 10 ms on all
 * SMs, and longer in proportion on fewer. */
struct world {
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu gpu;
    double wcet[SMS];
    struct ws_policy_cost cost;
    struct ws_policy_task tasks[TASKS];
    struct ws_policy_system sys;
};

static void make_world(struct world *w, int n_tasks, double deadline)
{
    memset(w, 0, sizeof(*w));
    w->type =
        (struct ws_policy_gpu_type){.name = "x", .n_sm = SMS, .static_w = 10, .idle_w_per_sm = 1};
    w->gpu = (struct ws_policy_gpu){.sm_limit = SMS, .n_slots = 2, .server = -1};
    for (int m = 1; m <= SMS; m++)
        w->wcet[m - 1] = 10.0 * SMS / m;
    w->cost = (struct ws_policy_cost){.n_sm = SMS, .wcet = w->wcet, .dyn_w_per_sm = 3};
    for (int i = 0; i < TASKS; i++)
        w->tasks[i] = (struct ws_policy_task){
            .id = i, .period = 100, .deadline = deadline, .weight = 1, .cost = &w->cost};
    w->sys = (struct ws_policy_system){.types = &w->type,
                                       .gpus = &w->gpu,
                                       .tasks = w->tasks,
                                       .n_types = 1,
                                       .n_gpus = 1,
                                       .n_tasks = n_tasks};
}

static double least_missed(const struct world *w, double duration, double reached)
{
    struct ws_least l = {duration, 1, 200, reached};
    double missed = -1;
    assert_int_equal(ws_least_missed(&missed, &w->sys, &l), 0);
    return missed;
}

static double least_energy(const struct world *w, double duration, double share, int n_rounds,
                           double reached)
{
    struct ws_least l = {duration, share, n_rounds, reached};
    double energy = -1;
    assert_int_equal(ws_least_energy(&energy, &w->sys, &l), 0);
    return energy;
}

static void test_missed(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 3, 10); /* one at a time is in time, and only on all SMs */
    assert_float_equal(least_missed(&w, 50, 2), 2, 0.02);
    assert_float_equal(least_missed(&w, 150, 4), 4, 0.04);
    make_world(&w, 3, 30); /* one after another */
    assert_float_equal(least_missed(&w, 50, 3), 0, 1e-6);
    make_world(&w, 2, 9); /* on no number of SMs */
    assert_float_equal(least_missed(&w, 50, 2), 2, 1e-6);
    make_world(&w, 3, 10); /* deadlines after the end do not count */
    assert_float_equal(least_missed(&w, 10, 2), 0, 1e-6);
}

/* Jobs that take @ms on @n_sm SMs or more, and do not end in time on fewer. */
static void make_stiff(struct world *w, double ms, int n_sm, double deadline)
{
    make_world(w, 3, deadline);
    for (int m = 1; m <= SMS; m++)
        w->wcet[m - 1] = m < n_sm ? 1000 : ms;
}

/* What the sum of all SMs and of all moments does not say. */
static void test_missed_by_room(void **state)
{
    (void)state;
    struct world w;
    make_stiff(&w, 12, 3, 12); /* two on 3 of 4 SMs do not fit beside each other */
    assert_float_equal(least_missed(&w, 50, 2), 2, 0.02);
    make_stiff(&w, 12, 2, 12); /* two on 2 of 4 do */
    assert_float_equal(least_missed(&w, 50, 1), 1, 0.02);
    make_stiff(&w, 10, 4, 14); /* whatever their starts, all run between 4 and 10 ms */
    assert_float_equal(least_missed(&w, 50, 2), 2, 0.05);
    make_stiff(&w, 10, 1, 10); /* three beside each other, where there are slots for them */
    w.gpu.n_slots = 4;
    assert_float_equal(least_missed(&w, 50, 1), 0, 1e-6);
    w.gpu.n_slots = 2;
    assert_float_equal(least_missed(&w, 50, 1), 1, 0.02);
}

/* The dynamic power of one job is 80 mJ on any number of SMs. An awake GPU takes 4 W. */
static void test_energy(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1, 50);
    assert_float_equal(least_energy(&w, 90, 1, 1, 0), 900 + 80 + 20, 1e-6); /* half of its slots */
    assert_float_equal(least_energy(&w, 90, 1, 300, 1020), 900 + 80 + 40, 0.5);
    assert_float_equal(least_energy(&w, 90, 0.5, 1, 0), 900 + 40 + 10, 1e-6);
    make_world(&w, 2, 50); /* that they need not share the GPU costs nothing */
    assert_true(least_energy(&w, 90, 1, 300, 1140) <= 900 + 160 + 80 + 1e-6);
    make_world(&w, 1, 9); /* in time nowhere */
    assert_float_equal(least_energy(&w, 90, 1, 5, 0), 900, 1e-6);
}

static void run_sets(const char *gpus_text, double util)
{
    static const char *const policies[] = {"wattshare", "sbeet-mg", "fifo"};
    for (int i = 0; i < 3; i++) {
        struct ws_gen_sbeet g = ws_gen_sbeet_reference(util, i);
        struct ws_sbeet_task tasks[WS_GEN_SBEET_MAX];
        struct ws_sbeet_set s;
        struct ws_gpus gpus;
        char error[160];
        double missed, energy;
        assert_int_equal(ws_gpus_parse(&gpus, gpus_text, error, sizeof(error)), 0);
        assert_int_equal(ws_gen_sbeet(&g, tasks), 0);
        assert_int_equal(
            ws_sbeet_set_make(&s, &gpus, tasks, g.n_tasks, false, error, sizeof(error)), 0);
        for (size_t p = 0; p < WS_ARRAY_SIZE(policies); p++) {
            struct ws_machine_options o = {.duration = 2000};
            struct ws_sbeet_outcome r;
            assert_int_equal(ws_sbeet_set_run(&r, &s, ws_policy_find(policies[p]), NULL, &o), 0);
            double theirs = (double)(r.r.n_late + r.r.n_skipped);
            struct ws_least l = {o.duration, 1, 40, theirs};
            assert_int_equal(ws_least_missed(&missed, &s.system, &l), 0);
            assert_true(missed <= theirs + 1e-6);
            l.reached = r.r.energy;
            assert_int_equal(ws_least_energy(&energy, &s.system, &l), 0);
            if (theirs < 1)
                assert_true(energy <= r.r.energy + 1e-6);
            ws_sbeet_outcome_deinit(&r);
        }
        ws_sbeet_set_deinit(&s);
        ws_gpus_deinit(&gpus);
    }
}

static void test_no_policy_falls_below(void **state)
{
    (void)state;
    run_sets("rtx3070@24,t400", 0.6);
    run_sets("rtx3070@6,t400", 1.4);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missed),
        cmocka_unit_test(test_missed_by_room),
        cmocka_unit_test(test_energy),
        cmocka_unit_test(test_no_policy_falls_below),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

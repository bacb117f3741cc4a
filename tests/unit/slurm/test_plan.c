// SPDX-License-Identifier: Apache-2.0
/* Tests the plans that are made for Slurm. It fails if they differ from the simulator's on the same
 * tasks, if a job gets the wrong kind of GPU, if a refusal names an end that is not the earliest,
 * or if a plan changes on its way through the AdminComment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "papers/sets/gen_edl.h"
#include "slurm/planner/note.h"
#include "slurm/planner/plan.h"

/* 100 W, 10 s at the default clocks; the frugal kind takes half the power and three times as long.
 * */
static const struct ws_dvfs_task quick = {20, 10, 70, 0, 10, 0.8}, frugal = {5, 2, 9, 0, 30, 0.8};

static struct ws_plan_cluster cluster_of(const struct ws_plan_node *nodes, size_t n, int n_kinds)
{
    return (struct ws_plan_cluster){.n_kinds = n_kinds,
                                    .nodes = nodes,
                                    .n_nodes = n,
                                    .theta = 0.9,
                                    .interval = ws_dvfs_wide,
                                    .interval_text = "wide"};
}

static struct ws_plan_place place(const struct ws_plan_cluster *c, double now,
                                  const struct ws_plan_wish *w)
{
    struct ws_plan_place p;
    assert_int_equal(ws_plan_make(c, now, w, 1, &p), 0);
    return p;
}

static void simulated_with(const struct ws_policy_ops *ops)
{
    struct ws_gen_edl g = ws_gen_edl_offline;
    struct ws_cluster_task *tasks;
    size_t n;
    g.base = 40;
    assert_int_equal(ws_gen_edl(&g, &tasks, &n), 0);
    struct ws_plan_node *nodes = calloc(n, sizeof(*nodes));
    struct ws_plan_wish *wishes = calloc(n, sizeof(*wishes));
    struct ws_plan_place *places = calloc(n, sizeof(*places));
    struct ws_cluster_job *jobs = calloc(n, sizeof(*jobs));
    const struct ws_cluster sim = {.n_pairs = 4 * (int)n, .pairs_per_server = 4, .idle_w = 37};
    const char *options[] = {"slot=0", "rho=1e12", ops == &ws_policy_edl ? "theta=0.9" : NULL,
                             NULL};
    struct ws_cluster_result r;
    char error[200];
    for (size_t i = 0; i < n; i++) {
        nodes[i] = (struct ws_plan_node){.n_gpus = 4, .power = WS_PLAN_OFF};
        wishes[i] = (struct ws_plan_wish){.deadline = tasks[i].deadline, .on = {&tasks[i].dvfs}};
        tasks[i].id = (int64_t)i;
    }
    assert_int_equal(ws_cluster_run(&sim, tasks, n, ops, options, jobs, &r, error, sizeof(error)),
                     0);
    struct ws_plan_cluster c = cluster_of(nodes, n, 1);
    c.policy = ops;
    assert_int_equal(ws_plan_make(&c, 0, wishes, n, places), 0);
    assert_true(n > 40);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(places[i].node, jobs[i].pair / 4);
        assert_float_equal(places[i].start, jobs[i].start, 1e-9);
        assert_float_equal(places[i].point.e, jobs[i].point.e, 1e-6);
    }
    free(nodes);
    free(wishes);
    free(places);
    free(jobs);
    free(tasks);
}

static void same_as_simulator(void **state)
{
    simulated_with(&ws_policy_edl);
}

static void same_with_another_policy(void **state)
{
    simulated_with(&ws_policy_edf_bf);
}

static void preferred_kind(void **state)
{
    const struct ws_plan_node nodes[] = {{.kind = 0, .n_gpus = 1}, {.kind = 1, .n_gpus = 1}};
    const struct ws_plan_cluster c = cluster_of(nodes, 2, 2);
    struct ws_plan_wish w[2] = {{.deadline = 200, .on = {&quick, &frugal}},
                                {.deadline = 15, .on = {&quick, &frugal}}};
    struct ws_plan_place p[2];
    assert_int_equal(ws_plan_make(&c, 0, w, 2, p), 0);
    assert_int_equal(p[0].node, 1); /* less energy there */
    assert_int_equal(p[1].node, 0); /* no clock of the frugal one is quick enough */
    assert_true(p[1].end <= 15 + 1e-9 && p[0].point.e < p[1].point.e);
    w[0].on[1] = NULL;
    assert_int_equal(place(&c, 0, &w[0]).node, 0);
}

static void what_slurm_has(void **state)
{
    const struct ws_plan_node nodes[] = {{.n_gpus = 2}, {.n_gpus = 1, .power = WS_PLAN_OFF}};
    const struct ws_plan_job jobs[] = {
        {0, INFINITY, 12}, {0, -5, 20}, {0, -30, 20}, /* a waiting one, one in time, one late */
    };
    struct ws_plan_cluster c = cluster_of(nodes, 2, 1);
    struct ws_plan_wish w = {.deadline = 1000, .on = {&quick}};
    c.jobs = jobs;
    c.n_jobs = 3;
    /* GPU 0 is free at 15. GPU 1 has a late job, until 2, and then the one that waits, until 14. */
    struct ws_plan_place p = place(&c, 0, &w);
    assert_int_equal(p.node, 0);
    assert_float_equal(p.start, 14, 1e-9);
    /* Too early for that: the other node is switched on. */
    w.deadline = 16;
    p = place(&c, 0, &w);
    assert_int_equal(p.node, 1);
    assert_float_equal(p.start, 0, 1e-9);
}

static void refused(void **state)
{
    const struct ws_plan_node node = {.n_gpus = 1};
    const struct ws_plan_job job = {0, 0, 20};
    struct ws_plan_cluster c = cluster_of(&node, 1, 1);
    struct ws_plan_wish w = {.deadline = 21, .on = {&quick}};
    c.jobs = &job;
    c.n_jobs = 1;
    struct ws_plan_place p = place(&c, 0, &w);
    assert_int_equal(p.node, -1);
    assert_float_equal(p.end, 20 + ws_dvfs_t_min(&quick, &ws_dvfs_wide), 1e-9);
    w.deadline = p.end + 1e-6;
    p = place(&c, 0, &w);
    assert_int_equal(p.node, 0);
    assert_true(p.end <= w.deadline + 1e-6);
    w.on[0] = NULL;
    p = place(&c, 0, &w);
    assert_int_equal(p.node, -1);
    assert_true(isinf(p.end));
}

/* A job starts on a node that is off only when that has been switched on. */
static void switched_on(void **state)
{
    struct ws_plan_node nodes[] = {{.n_gpus = 1}, {.n_gpus = 1, .power = WS_PLAN_OFF}};
    struct ws_plan_job jobs[] = {{0, 0, 100}, {1, INFINITY, 10}};
    struct ws_plan_cluster c = cluster_of(nodes, 2, 1);
    struct ws_plan_wish w = {.deadline = 60, .on = {&quick}};
    c.turn_on_s = 30;
    c.jobs = jobs;
    c.n_jobs = 1;
    struct ws_plan_place p = place(&c, 0, &w);
    assert_int_equal(p.node, 1);
    assert_float_equal(p.start, 30, 1e-9);
    /* Too late for any clock, and the refusal counts the time of switching on, too. */
    w.deadline = 31;
    p = place(&c, 0, &w);
    assert_int_equal(p.node, -1);
    assert_float_equal(p.end, 30 + ws_dvfs_t_min(&quick, &ws_dvfs_wide), 1e-9);
    /* A job waits for the node already; so with one that is being switched on. */
    w.deadline = 90;
    c.n_jobs = 2;
    p = place(&c, 0, &w);
    assert_int_equal(p.node, 1);
    assert_float_equal(p.start, 40, 1e-9);
    nodes[1].power = WS_PLAN_STARTING;
    c.n_jobs = 1;
    assert_float_equal(place(&c, 0, &w).start, 30, 1e-9);
    /* What is on comes first. */
    nodes[1].power = WS_PLAN_OFF;
    w.deadline = 1000;
    p = place(&c, 0, &w);
    assert_int_equal(p.node, 0);
    assert_float_equal(p.start, 100, 1e-9);
}

static void through_a_comment(const struct ws_plan_note *a, const char *before, const char *behind)
{
    struct ws_plan_note b;
    char text[512], comment[600];
    memset(&b, 0, sizeof(b));
    assert_true(ws_plan_note_write(text, sizeof(text), a));
    snprintf(comment, sizeof(comment), "%s%s%s", before, text, behind);
    assert_true(ws_plan_note_read(comment, &b));
    assert_memory_equal(a, &b, sizeof(b));
}

static void note(void **state)
{
    static struct ws_plan_note a = {1732404000.25, 12.5, 1732404020, 1732404030, 0.9,
                                    0.8,           1.1,  7.5,        false};
    struct ws_plan_note b;
    char text[512];
    through_a_comment(&a, "n1: 3 J; ", "");
    a.waits = true;
    through_a_comment(&a, "", "");
    through_a_comment(&a, "", "; n1: 3 J");
    assert_false(ws_plan_note_write(text, 20, &a));
    assert_false(ws_plan_note_read(NULL, &b));
    assert_false(ws_plan_note_read("", &b));
    assert_false(ws_plan_note_read("n1: 3 J; replan: made 1", &b));
    assert_false(ws_plan_note_read("plan: made 1, 2 s, until 3", &b));
    assert_false(
        ws_plan_note_read("plan: made 1, -2 s, until 3, deadline 4, clocks 1 1 1, 5 J", &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_as_simulator),
                                       cmocka_unit_test(same_with_another_policy),
                                       cmocka_unit_test(preferred_kind),
                                       cmocka_unit_test(what_slurm_has),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(switched_on),
                                       cmocka_unit_test(note)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: Apache-2.0
/* Tests the simulator of clusters and the policies that it runs. It fails if the paper's worked
 * example comes out differently, if a decision of a simulated day breaks a rule, or if a policy
 * that misbehaves or a wrong task is not reported. */
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

#include "policy/min_tree.h"
#include "papers/sets/edl_study.h"
#include "tests/unit/papers/json_text.h"

/* ---- the worked example (Mei et al., Table 3 and Section 4.2) ----
 *
 * P0 100, gamma 0, c 200, t0 5, D 25, 30 W idle, 2 pairs a server. */

static const struct ws_cluster_task table3[] = {
    {1, 0, 50, {100, 0, 200, 5, 25, 0}},    {2, 0, 36, {100, 0, 200, 5, 25, 1}},
    {3, 0, 60, {100, 0, 200, 5, 25, 0.5}},  {4, 0, 100, {100, 0, 200, 5, 25, 0.8}},
    {5, 0, 300, {100, 0, 200, 5, 25, 0.2}},
};
enum { TABLE3_N = WS_ARRAY_SIZE(table3) };

static void run_table3(const char *theta, struct ws_cluster_job *jobs, struct ws_cluster_result *r)
{
    const struct ws_cluster cluster = {.n_pairs = 10, .pairs_per_server = 2, .idle_w = 30};
    const char *options[] = {theta, "rho=0", "slot=0", NULL};
    char error[200] = "";
    assert_int_equal(ws_cluster_run(&cluster, table3, TABLE3_N, &ws_policy_edl, options, jobs, r,
                                    error, sizeof(error)),
                     0);
}

static void worked_example(void **state)
{
    struct ws_cluster_job j[TABLE3_N];
    struct ws_cluster_result r;
    run_table3("theta=0.9", j, &r);
    /* S11(J2, J4), S12(J1, J3 shortened to the room of 34.1667, J5) */
    assert_true(j[1].pair == j[3].pair && j[0].pair == j[2].pair && j[0].pair == j[4].pair);
    assert_true(fabs(j[2].start - 25.8333) < 1e-4 && fabs(j[2].point.t - 34.1667) < 1e-4);
    assert_true(fabs(j[4].start - 60) < 1e-9);
    assert_true(fabs(r.e_run - 23865.5) < 0.05);
    assert_true(fabs(r.e_idle - 472.9) < 0.05);
    assert_true(fabs(r.e_total - 24338.4) < 0.05);
    assert_int_equal(r.counts.n_readjusted, 1);
    assert_int_equal(r.counts.n_deadline_prior, 1);
    run_table3("theta=1", j, &r);
    /* S11(J2) S12(J1, J4) S21(J3, J5); Algorithm 3 puts the two long ones together */
    assert_true(j[0].pair == j[3].pair && j[2].pair == j[4].pair && j[1].pair == 2);
    assert_true(fabs(r.e_run - 23833.9) < 0.05);
    assert_true(fabs(r.e_idle - 1121.0) < 0.05);    /* the empty slot counts */
    assert_true(fabs(r.e_idle_used - 41.0) < 0.05); /* it doesn't */
    assert_true(r.e_total > 24338.4);               /* the paper's point: theta = 0.9 is better */
    assert_int_equal(r.counts.n_readjusted, 0);
    assert_int_equal(r.n_missed, 0);
}

/* ---- what must hold on any day ---- */

static void check_day(const struct ws_cluster_task *tasks, size_t n,
                      const struct ws_cluster_job *jobs, const struct ws_cluster_result *r, int l,
                      bool dvfs)
{
    double e_run = 0, *free_at = calloc(n * (size_t)l + 1, sizeof(*free_at));
    size_t *order = calloc(n + 1, sizeof(*order));
    assert_true(free_at && order);
    for (size_t i = 0; i < n; i++) {
        const struct ws_cluster_job *j = &jobs[i];
        const struct ws_dvfs_task *t = &tasks[i].dvfs;
        assert_true(j->pair >= 0 && j->pair < (int)n * l);
        assert_true(j->start >= tasks[i].arrival);
        assert_true(j->start + j->point.t <= tasks[i].deadline * (1 + 1e-9));
        assert_true(fabs(j->point.t - ws_dvfs_time(t, j->point.fc, j->point.fm)) <
                    1e-8 * j->point.t);
        assert_true(fabs(j->point.e - j->point.t * j->point.p) < 1e-8 * j->point.e);
        assert_true(dvfs || (j->point.fc == 1 && j->point.fm == 1));
        assert_true(j->point.fc <= ws_dvfs_g1(j->point.v) + 1e-9);
        e_run += j->point.e;
    }
    /* No two on one pair at one time: n is small enough to look at all. */
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++)
            if (jobs[i].pair == jobs[k].pair)
                assert_true(jobs[i].start + jobs[i].point.t <= jobs[k].start + 1e-6 ||
                            jobs[k].start + jobs[k].point.t <= jobs[i].start + 1e-6);
    assert_true(fabs(e_run - r->e_run) < 1e-9 * e_run);
    assert_true(r->n_done == n && r->n_missed == 0 && r->n_dropped == 0);
    assert_true(r->e_idle >= -1e-9 * e_run && r->e_idle_used <= r->e_idle * (1 + 1e-9) + 1e-6);
    assert_int_equal(r->n_pairs_on, r->n_servers_on * (uint64_t)l);
    assert_true(fabs(r->e_total - r->e_run - r->e_idle - r->e_turn_on) < 1e-9 * r->e_total);
    free(order);
    free(free_at);
}

static void days(void **state)
{
    static const char *const names[] = {"edl",    "edf-bf",      "edf-wf",
                                        "lpt-ff", "bin-packing", "wattshare-servers"};
    struct ws_gen_edl g = ws_gen_edl_online;
    g.base = 24;
    struct ws_cluster_task *tasks;
    size_t n;
    for (g.seed = 1; g.seed <= 3; g.seed++) {
        assert_int_equal(ws_gen_edl(&g, &tasks, &n), 0);
        struct ws_cluster_job *jobs = calloc(n, sizeof(*jobs));
        assert_non_null(jobs);
        for (size_t p = 0; p < WS_ARRAY_SIZE(names); p++)
            for (int variant = 0; variant < 6; variant++) {
                const int l = variant % 3 == 0 ? 1 : variant % 3 == 1 ? 3 : 16;
                const struct ws_cluster c = {.n_pairs = ws_cluster_pairs_for(n, l),
                                             .pairs_per_server = l,
                                             .idle_w = 37,
                                             .turn_on_j = 90};
                const char *options[] = {variant < 3 ? "dvfs=yes" : "dvfs=no",
                                         p ? NULL : "theta=0.85", NULL};
                struct ws_cluster_result r, again;
                char error[200] = "";
                assert_int_equal(ws_cluster_run(&c, tasks, n, ws_policy_find(names[p]), options,
                                                jobs, &r, error, sizeof(error)),
                                 0);
                check_day(tasks, n, jobs, &r, l, variant < 3);
                assert_int_equal(ws_cluster_run(&c, tasks, n, ws_policy_find(names[p]), options,
                                                NULL, &again, error, sizeof(error)),
                                 0);
                assert_memory_equal(&r, &again, sizeof(r));
            }
        free(jobs);
        free(tasks);
    }
}

static double energy_of_day(const char *policy, int l, const struct ws_cluster_task *tasks,
                            size_t n)
{
    const struct ws_edl_cell cell = {.policy = policy, .dvfs = true, .theta = 0.9, .l = l};
    struct ws_cluster_result r;
    assert_int_equal(ws_edl_cell_run(&cell, false, tasks, n, &r), 0);
    assert_int_equal(r.n_missed, 0);
    return r.e_total;
}

/* On the days for which lpt-ff and edl are made, our own policy takes less than either. */
static void ours_takes_least(void **state)
{
    static const char *const others[] = {"edl", "lpt-ff", "bin-packing"};
    for (int k = 0; k < 4; k++) {
        const int l = k % 2 ? 16 : 4;
        struct ws_gen_edl g = ws_gen_edl_online;
        struct ws_cluster_task *tasks;
        size_t n;
        g.base = 256;
        g.seed = 1;
        if (k < 2)
            ws_gen_edl_release_u(&g);
        assert_int_equal(ws_gen_edl(&g, &tasks, &n), 0);
        double ours = energy_of_day("wattshare-servers", l, tasks, n);
        for (size_t p = 0; p < WS_ARRAY_SIZE(others); p++)
            if (energy_of_day(others[p], l, tasks, n) <= ours)
                fail_msg("%s takes less, l = %d, %s", others[p], l, k < 2 ? "release" : "u01");
        free(tasks);
    }
}

/* With fewer pairs than needed tasks are dropped, counted, and the rest runs. */
static void too_few_pairs(void **state)
{
    struct ws_gen_edl g = ws_gen_edl_offline;
    struct ws_cluster_task *tasks;
    size_t n;
    g.base = 24;
    assert_int_equal(ws_gen_edl(&g, &tasks, &n), 0);
    static const char *const names[] = {"edl",    "edf-bf",      "edf-wf",
                                        "lpt-ff", "bin-packing", "wattshare-servers"};
    for (size_t p = 0; p < WS_ARRAY_SIZE(names); p++) {
        const struct ws_cluster c = {.n_pairs = 5, .pairs_per_server = 2, .idle_w = 37};
        struct ws_cluster_result r;
        char error[200] = "";
        assert_int_equal(ws_cluster_run(&c, tasks, n, ws_policy_find(names[p]), NULL, NULL, &r,
                                        error, sizeof(error)),
                         0);
        assert_true(r.n_dropped > 0 && r.n_done > 0);
        assert_int_equal(r.n_done + r.n_dropped, n);
        assert_int_equal(r.n_missed, r.n_dropped);
        assert_true(r.n_pairs_used <= 6);
    }
    free(tasks);
}

/* A deadline that no setting meets: dropped and counted, by the policy itself. */
static void impossible_deadline(void **state)
{
    const struct ws_cluster_task tasks[] = {{0, 0, 20, {100, 10, 100, 5, 25, 0.5}},
                                            {1, 0, 60, {100, 10, 100, 5, 25, 0.5}},
                                            {2, 3, 4, {100, 10, 100, 5, 25, 0.5}}};
    struct ws_cluster_job jobs[3];
    struct ws_cluster_result r;
    char error[200] = "";
    assert_int_equal(ws_cluster_run(&ws_cluster_paper, tasks, 3, &ws_policy_edl, NULL, jobs, &r,
                                    error, sizeof(error)),
                     0);
    assert_true(jobs[0].pair == -1 && jobs[1].pair == 0 && jobs[2].pair == -1);
    assert_int_equal(r.n_dropped, 2);
    assert_int_equal(r.n_done, 1);
    assert_int_equal(ws_cluster_run(&ws_cluster_paper, tasks, 0, &ws_policy_edl, NULL, NULL, &r,
                                    error, sizeof(error)),
                     0);
    assert_true(r.e_total == 0);
}

static void options(void **state)
{
    static const struct {
        const char *policy, *option, *want;
    } rows[] = {{"edl", "theta=1.5", "theta"},
                {"edl", "theta=x", "theta"},
                {"edf-bf", "theta=1", "no option"},
                {"edl", "dvfs=maybe", "yes or no"},
                {"edl", "interval=0.4:1,1,1:1", "V_MIN"},
                {"lpt-ff", "rho=-1", "rho"},
                {"bin-packing", "slot=nan", "slot"}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        const char *o[] = {rows[i].option, NULL};
        struct ws_cluster_result r;
        char error[200] = "";
        assert_int_equal(ws_cluster_run(&ws_cluster_paper, table3, TABLE3_N,
                                        ws_policy_find(rows[i].policy), o, NULL, &r, error,
                                        sizeof(error)),
                         WS_CLUSTER_E_OPTION);
        if (!strstr(error, rows[i].want))
            fail_msg("%s: %s", rows[i].option, error);
    }
}

/* ---- dynamic resource sleep ----
 *
 * By hand: one pair a server, one task of t = 30 at 0 (default clocks), rho 2, slots of 1. */

static void sleep_by_hand(void **state)
{
    struct ws_cluster_task tasks[] = {{0, 0, 40.5, {100, 0, 0, 30.25, 0, 0}},
                                      {1, 33, 90, {100, 0, 0, 30.25, 0, 0}},
                                      {2, 100, 140, {100, 0, 0, 30.25, 0, 0}}};
    const char *o[] = {"dvfs=no", NULL};
    struct ws_cluster_result r;
    struct ws_cluster_job j[3];
    char error[200];
    /* Ends at 30.25, may sleep at 31 + 2 = 33, and does before the arrival of slot 33 is placed: it
     * turns a server on again (0-33, 33-66, 100-133; 63.25 → 64 + 2 = 66, 130.25 →
     * 131 + 2 = 133). */
    assert_int_equal(
        ws_cluster_run(&ws_cluster_paper, tasks, 3, &ws_policy_edl, o, j, &r, error, 200), 0);
    assert_int_equal(r.n_servers_on, 3);
    assert_true(fabs(r.e_idle - 37 * (33 + 33 + 33 - 3 * 30.25)) < 1e-9);
    assert_true(fabs(r.e_turn_on - 270) < 1e-9);
    /* At 32 the server is still on and takes it: on 0-65 and 100-133. */
    tasks[1].arrival = 32;
    assert_int_equal(
        ws_cluster_run(&ws_cluster_paper, tasks, 3, &ws_policy_edl, o, j, &r, error, 200), 0);
    assert_int_equal(r.n_servers_on, 2);
    assert_true(j[1].start == 32);
    assert_true(fabs(r.e_idle - 37 * (65 + 33 - 3 * 30.25)) < 1e-9);
    /* Two pairs a server: the idle one counts wholly. */
    struct ws_cluster c = ws_cluster_paper;
    c.pairs_per_server = 2;
    assert_int_equal(ws_cluster_run(&c, tasks, 1, &ws_policy_edl, o, j, &r, error, 200), 0);
    assert_true(fabs(r.e_idle - 37 * (2 * 33 - 30.25)) < 1e-9);
    assert_true(fabs(r.e_idle_used - 37 * (33 - 30.25)) < 1e-9);
    assert_true(fabs(r.e_turn_on - 180) < 1e-9);
}

/* ---- the live daemon's use ----
 *
 * There GPUs are never off, jobs go by their cost, and a GPU may end late. */

static void live_snapshot(void **state)
{
    const double wcet[] = {10}, power[] = {100};
    const struct ws_policy_cost cost = {
        .n_sm = 1, .wcet = wcet, .power_w = power, .h2d = 1, .d2h = 1};
    const struct ws_policy_task task = {.cost = &cost};
    const struct ws_policy_gpu_type type = {.name = "x", .n_sm = 1};
    const struct ws_policy_gpu gpus[] = {{.sm_limit = 1, .n_slots = 1, .server = -1},
                                         {.sm_limit = 1, .n_slots = 1, .server = -1}};
    const struct ws_policy_system system = {
        .types = &type, .gpus = gpus, .tasks = &task, .n_types = 1, .n_gpus = 2, .n_tasks = 1};
    struct ws_policy_gpu_state states[] = {{.power = WS_GPU_ON, .free_at = 1e9 + 5},
                                           {.power = WS_GPU_ON}};
    struct ws_policy_job jobs[] = {
        {.id = 1, .seq = 1, .gpu = -1, .release = 1e9, .deadline = 1e9 + 13},
        {.id = 2, .seq = 2, .gpu = -1, .release = 1e9, .deadline = 1e9 + 20},
        {.id = 3, .seq = 3, .gpu = -1, .release = 1e9, .deadline = 1e9 + 21}};
    struct ws_policy_snapshot snap = {
        .system = &system, .now = 1e9, .gpus = states, .jobs = jobs, .n_jobs = 3, .explain = true};
    struct ws_policy_event event = {.kind = WS_EVENT_ARRIVAL, .job = -1, .task = -1, .gpu = -1};
    struct ws_policy_decisions d = WS_POLICY_DECISIONS_NULL;
    struct ws_policy *p;
    char error[200] = "";
    assert_int_equal(ws_policy_edl.make(&p, NULL, error, sizeof(error)), 0);
    assert_int_equal(ws_policy_edl.prepare(p, &system, error, sizeof(error)), 0);
    assert_int_equal(ws_policy_edl.decide(p, &snap, &event, &d), 0);
    assert_int_equal(d.n, 3);
    assert_true(d.v[0].kind == WS_DECIDE_START && d.v[0].gpu == 1 && d.v[0].end == 1e9 + 12);
    assert_true(d.v[1].kind == WS_DECIDE_START && d.v[1].gpu == 0 && d.v[1].at == 1e9 + 5);
    assert_true(d.v[2].kind == WS_DECIDE_DROP); /* both are busy too long, and there is no third */
    assert_non_null(strstr(d.v[2].why, "no pair"));
    assert_true(d.v[0].energy == 1200 && strlen(d.v[0].why) > 10);
    /* GPU 1 is done early: the next arrival finds it free. */
    states[1].free_at = 1e9 + 8;
    snap.now = 1e9 + 8;
    snap.n_jobs = 0;
    event = (struct ws_policy_event){.kind = WS_EVENT_COMPLETION, .job = -1, .gpu = 1};
    d.n = 0;
    assert_int_equal(ws_policy_edl.decide(p, &snap, &event, &d), 0);
    assert_int_equal(d.n, 0);
    snap.n_jobs = 1;
    jobs[0] = (struct ws_policy_job){.id = 4, .gpu = -1, .release = 1e9 + 8, .deadline = 1e9 + 21};
    event = (struct ws_policy_event){.kind = WS_EVENT_ARRIVAL, .job = 0, .gpu = -1};
    assert_int_equal(ws_policy_edl.decide(p, &snap, &event, &d), 0);
    assert_true(d.n == 1 && d.v[0].kind == WS_DECIDE_START && d.v[0].gpu == 1);
    ws_policy_edl.free(p);
    ws_policy_decisions_deinit(&d);
}

/* ---- a policy that decides what can't be ---- */

enum { SWITCH_TWICE, START_OFF, UNSTABLE, NO_SUCH_JOB, NO_SUCH_SERVER };
static int mischief;

static int decide_badly(struct ws_policy *p, const struct ws_policy_snapshot *snap,
                        const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    if (event->kind != WS_EVENT_ARRIVAL)
        return ws_policy_edl.decide(p, snap, event, ret);
    struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_POWER, -1, -1);
    d->server = mischief == NO_SUCH_SERVER ? 1 << 20 : 0;
    d->on = true;
    d = ws_policy_decide(ret, mischief == SWITCH_TWICE ? WS_DECIDE_POWER : WS_DECIDE_START,
                         mischief == NO_SUCH_JOB ? 77 : 0, mischief == START_OFF ? 1 : 0);
    d->server = 0;
    d->on = true;
    if (mischief == UNSTABLE)
        d->f_core = 1.2;
    return 0;
}

static void bad_policy(void **state)
{
    static const char *const wants[] = {"so already", "pair is off", "not stable", "no such job",
                                        "no such server"};
    struct ws_policy_ops ops = ws_policy_edl;
    ops.decide = decide_badly;
    for (size_t i = 0; i < WS_ARRAY_SIZE(wants); i++) {
        struct ws_cluster_result r = {.e_total = -1};
        char error[200] = "";
        mischief = (int)i;
        assert_int_equal(ws_cluster_run(&ws_cluster_paper, table3, 1, &ops, NULL, NULL, &r, error,
                                        sizeof(error)),
                         WS_CLUSTER_E_POLICY);
        if (!strstr(error, wants[i]))
            fail_msg("%s: %s", wants[i], error);
        assert_true(r.e_total == -1);
    }
    /* One of another kind isn't even asked. */
    struct ws_cluster_result r;
    char error[200] = "";
    ops.free = NULL;
    assert_int_equal(
        ws_cluster_run(&ws_cluster_paper, table3, 1, &ops, NULL, NULL, &r, error, sizeof(error)),
        -EINVAL);
}

/* ---- tasks as lines ---- */

static void task_lines(void **state)
{
    static const char good[] = "{\"id\":7,\"a\":3,\"d\":60,\"P0\":100,\"gamma\":50,\"c\":150,\"D\":"
                               "25,\"delta\":0.5,\"t0\":5}";
    static const struct {
        const char *from, *to, *want;
    } rows[] = {{"\"d\":60", "\"d\":20", "d: 20 leaves 17"},
                {"\"d\":60", "\"d\":2", "d: 2 is not after the arrival"},
                {"\"d\":60", "\"e\":60", "d: missing"},
                {"\"P0\":100", "\"P0\":-1", "P0: -1 is negative"},
                {"\"gamma\":50", "\"gamma\":\"x\"", "gamma: \"x\" is not a number"},
                {"\"delta\":0.5", "\"delta\":1.5", "delta: 1.5 is out of range"},
                {"\"D\":25,", "", "D: missing"},
                {"\"D\":25", "\"D\":1e999", "D: "},
                {"\"id\":7", "\"id\":7.5", "id: 7.5 is not a whole number"},
                {"\"a\":3", "\"a\":-3", "a: -3 is negative"}};
    const struct ws_cluster_limits limits = {.interval = {0.5, 1.2, 0.5, 0.5, 1.2}, .dvfs = true};
    for (size_t i = 0; i <= WS_ARRAY_SIZE(rows); i++) {
        char text[256];
        strcpy(text, good);
        if (i < WS_ARRAY_SIZE(rows)) {
            const char *at = strstr(good, rows[i].from);
            assert_non_null(at);
            snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, rows[i].to,
                     at + strlen(rows[i].from));
        }
        struct ws_json_line l = json_text(text);
        struct ws_cluster_task t = ws_cluster_task_read(&l, &limits);
        if (i < WS_ARRAY_SIZE(rows)) {
            assert_true(l.bad);
            if (!strstr(l.diags.v[0].text, rows[i].want))
                fail_msg("%s: %s", rows[i].want, l.diags.v[0].text);
        } else {
            assert_false(l.bad);
            assert_true(t.id == 7 && t.arrival == 3 && t.deadline == 60 && t.dvfs.c == 150);
        }
        ws_json_line_deinit(&l);
    }
}

/* ---- generator ---- */

static void generator(void **state)
{
    struct ws_gen_edl g = ws_gen_edl_online;
    struct ws_cluster_task *a, *b;
    size_t n, m;
    g.seed = 5;
    assert_int_equal(ws_gen_edl(&g, &a, &n), 0);
    assert_int_equal(ws_gen_edl(&g, &b, &m), 0);
    assert_true(n == m && !memcmp(a, b, n * sizeof(*a)));
    free(b);
    double u0 = 0, u1 = 0, arrivals = 0, n_online = 0;
    for (size_t i = 0; i < n; i++) {
        struct ws_dvfs_point p = ws_dvfs_default(&a[i].dvfs);
        double u = p.t / (a[i].deadline - a[i].arrival);
        assert_true(u > 0 && u <= 1 + 1e-12);
        assert_true(a[i].id == (int64_t)i && (!i || a[i].arrival >= a[i - 1].arrival));
        assert_true(a[i].arrival == floor(a[i].arrival) && a[i].arrival <= 1440);
        assert_true(p.p > 174.999 && p.p < 206.001);
        assert_true(a[i].dvfs.gamma / p.p >= 0.1 && a[i].dvfs.gamma / p.p <= 0.2);
        assert_true(a[i].dvfs.p0 / p.p >= 0.2 && a[i].dvfs.p0 / p.p <= 0.41);
        assert_true(p.t > 10 * 1.76 && p.t < 50 * 8.56);
        *(a[i].arrival > 0 ? &u1 : &u0) += u;
        arrivals += a[i].arrival;
        n_online += a[i].arrival > 0;
    }
    assert_true(fabs(u0 - 0.4 * 1024) < 1e-6 && fabs(u1 - 1.6 * 1024) < 1e-6);
    assert_true(fabs(n_online - 2 * 1.6 * 1024) < 5 * 35); /* E[u] = 1/2 */
    assert_true(fabs(arrivals / n_online - 720.5) < 5 * 1440 / sqrt(12 * n_online));
    free(a);
    const struct ws_dvfs_task library[] = {{1, 2, 3, 4, 5, 0.5}};
    g.library = library;
    g.n_library = 1;
    assert_int_equal(ws_gen_edl(&g, &a, &n), 0);
    assert_true(a[0].dvfs.p0 == 1 && fmod(a[0].dvfs.t0, 4) == 0 && a[0].dvfs.t0 >= 40);
    free(a);
    struct ws_gen_edl bad = ws_gen_edl_offline;
    bad.u_high = 2;
    assert_int_equal(ws_gen_edl(&bad, &a, &n), -EINVAL);
    bad = ws_gen_edl_offline;
    bad.base = 0;
    assert_int_equal(ws_gen_edl(&bad, &a, &n), -EINVAL);
}

/* ---- min_tree against a plain array ---- */

static void min_tree(void **state)
{
    enum { N = 37 };
    struct ws_min_tree t;
    double plain[N];
    unsigned s = 1;
    assert_int_equal(ws_min_tree_init(&t, N), 0);
    for (int i = 0; i < N; i++)
        plain[i] = INFINITY;
    assert_int_equal(ws_min_tree_argmin(&t), -1);
    for (int step = 0; step < 5000; step++) {
        s = s * 1103515245 + 12345;
        int at = (int)(s >> 16) % N;
        plain[at] = (s >> 8) % 5 ? (double)((s >> 9) % 50) : INFINITY;
        ws_min_tree_set(&t, at, plain[at]);
        double most = (s >> 5) % 60;
        int first = -1, least = -1;
        for (int i = N - 1; i >= 0; i--) {
            first = plain[i] <= most ? i : first;
            least = !isinf(plain[i]) && (least < 0 || plain[i] <= plain[least]) ? i : least;
        }
        assert_int_equal(ws_min_tree_first(&t, most), first);
        assert_int_equal(ws_min_tree_argmin(&t), least);
        assert_true(ws_min_tree_get(&t, at) == plain[at]);
    }
    ws_min_tree_deinit(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(worked_example), cmocka_unit_test(days),
        cmocka_unit_test(too_few_pairs),  cmocka_unit_test(impossible_deadline),
        cmocka_unit_test(options),        cmocka_unit_test(sleep_by_hand),
        cmocka_unit_test(live_snapshot),  cmocka_unit_test(bad_policy),
        cmocka_unit_test(task_lines),     cmocka_unit_test(generator),
        cmocka_unit_test(min_tree),       cmocka_unit_test(ours_takes_least),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(all, NULL, NULL);
}

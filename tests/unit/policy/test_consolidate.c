// SPDX-License-Identifier: Apache-2.0
/* policy: consolidate. A C1060 whose kernels are those of the paper's tables (times measured alone,
 * energies from its average powers), and one with instruction counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/mwp_cwp.h"
#include "models/power.h"
#include "policy/policy.h"

enum { N_SM = 30, MAX_JOBS = 64, MAX_TASKS = 4, MAX_GPUS = 2 };

struct world {
    struct ws_policy *p;
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu gpus[MAX_GPUS];
    struct ws_policy_task tasks[MAX_TASKS];
    struct ws_policy_cost costs[MAX_TASKS];
    double wcet[MAX_TASKS][N_SM], power[MAX_TASKS][N_SM];
    struct ws_policy_system system;
    struct ws_policy_run slots[MAX_GPUS];
    struct ws_policy_gpu_state states[MAX_GPUS];
    struct ws_policy_job jobs[MAX_JOBS];
    struct ws_policy_snapshot snap;
    struct ws_policy_decisions d;
    int template_tasks[MAX_TASKS], template_max[MAX_TASKS];
    struct ws_policy_template template;
    char error[256];
};

static const struct ws_policy_ops *ops(void)
{
    return ws_policy_find("consolidate");
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    w->type = (struct ws_policy_gpu_type){.name = "c1060", .n_sm = N_SM, .static_w = 280};
    for (int g = 0; g < MAX_GPUS; g++) {
        w->gpus[g] = (struct ws_policy_gpu){.sm_limit = N_SM, .n_slots = 1, .server = -1};
        w->slots[g] = (struct ws_policy_run){.job = -1};
        w->states[g] = (struct ws_policy_gpu_state){.slots = &w->slots[g],
                                                    .n_slots = 1,
                                                    .power = WS_GPU_ON,
                                                    .volt = 1,
                                                    .f_core = 1,
                                                    .f_mem = 1};
    }
    w->system = (struct ws_policy_system){.types = &w->type,
                                          .gpus = w->gpus,
                                          .tasks = w->tasks,
                                          .templates = &w->template,
                                          .n_types = 1,
                                          .n_gpus = 1,
                                          .n_templates = 1};
    w->template = (struct ws_policy_template){w->template_tasks, w->template_max, 0};
    w->snap = (struct ws_policy_snapshot){
        .system = &w->system, .gpus = w->states, .jobs = w->jobs, .explain = true};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    ops()->free(w->p);
    ws_policy_decisions_deinit(&w->d);
    free(w);
    return 0;
}

/* A kernel measured alone: its time and average power of the whole machine. */
static int add_task(struct world *w, const char *name, int blocks, double ms, double watts,
                    int n_max)
{
    int i = w->system.n_tasks++;
    for (int m = 0; m < N_SM; m++) {
        w->wcet[i][m] = ms;
        w->power[i][m] = watts;
    }
    w->costs[i] = (struct ws_policy_cost){
        .n_sm = N_SM, .wcet = w->wcet[i], .power_w = w->power[i], .n_blocks = blocks};
    w->tasks[i] = (struct ws_policy_task){.id = i, .name = name, .cost = &w->costs[i], .weight = 1};
    w->template_tasks[i] = i;
    w->template_max[i] = n_max;
    w->template.n_tasks++;
    return i;
}

static void add_jobs(struct world *w, int task, int n)
{
    for (int i = 0; i < n; i++) {
        int k = w->snap.n_jobs++;
        w->jobs[k] = (struct ws_policy_job){.id = 100 + (uint64_t)k,
                                            .seq = (uint64_t)k,
                                            .task = task,
                                            .deadline = INFINITY,
                                            .gpu = -1};
    }
}

static void make(struct world *w, const char *const *options)
{
    ops()->free(w->p);
    w->p = NULL;
    if (ops()->make(&w->p, options, w->error, sizeof(w->error)))
        fail_msg("%s", w->error);
    assert_int_equal(ops()->prepare(w->p, &w->system, w->error, sizeof(w->error)), 0);
}

static void decide(struct world *w)
{
    const struct ws_policy_event e = {.kind = WS_EVENT_ARRIVAL, .job = -1, .task = -1, .gpu = -1};
    w->d.n = 0;
    assert_int_equal(ops()->decide(w->p, &w->snap, &e, &w->d), 0);
}

static int n_of(const struct world *w, enum ws_decision_kind kind)
{
    int n = 0;
    for (size_t i = 0; i < w->d.n; i++)
        n += w->d.v[i].kind == kind;
    return n;
}

static const char *const threshold_1[] = {"threshold=1", NULL};

/* 1. below the threshold the oldest goes as it is */
static void below_threshold(void **state)
{
    struct world *w = *state;
    int e = add_task(w, "enc", 3, 45700, 360, 20);
    add_jobs(w, e, 9);
    make(w, NULL);
    decide(w);
    assert_int_equal(w->d.n, 1);
    assert_int_equal(w->d.v[0].kind, WS_DECIDE_START);
    assert_int_equal(w->d.v[0].job, 0);
    assert_int_equal(w->d.v[0].n_sm, 30);
    assert_true(fabs(w->d.v[0].end - 45700) < 1e-6);
    assert_non_null(strstr(w->d.v[0].why, "9 wait, fewer than 10"));
    add_jobs(w, e, 1); /* ten of them are enough */
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 10);
    w->states[0].n_running = 1; /* nothing to give while the GPU works */
    decide(w);
    assert_int_equal(w->d.n, 0);
    w->states[0].n_running = 0;
    w->states[0].power = WS_GPU_OFF;
    decide(w);
    assert_int_equal(w->d.n, 0);
}

static void window_holds(void **state)
{
    struct world *w = *state;
    add_jobs(w, add_task(w, "enc", 3, 45700, 360, 20), 2);
    w->jobs[1].release = 5;
    w->snap.now = 6;
    make(w, (const char *const[]){"window=20", NULL});
    decide(w);
    assert_int_equal(w->d.n, 1);
    assert_int_equal(w->d.v[0].kind, WS_DECIDE_TIMER);
    assert_true(w->d.v[0].at == 20);
    w->snap.now = 20;
    decide(w);
    assert_int_equal(w->d.v[0].kind, WS_DECIDE_START);
}

/* 5 encryption and 15 Monte Carlo instances, Table 7 and 8: 30 blocks, one on each SM. */
static void table7_mix_is_merged(void **state)
{
    struct world *w = *state;
    int e = add_task(w, "enc", 3, 45700, 360, 5), m = add_task(w, "mc", 1, 43200, 345, 15);
    add_jobs(w, e, 5);
    add_jobs(w, m, 15);
    make(w, NULL);
    decide(w);
    assert_int_equal(w->d.n, 20);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 20);
    double mj = 0;
    for (size_t i = 0; i < w->d.n; i++) {
        assert_int_equal(w->d.v[i].group, 0);
        assert_true(fabs(w->d.v[i].end - 45700) < 1e-6); /* the longest alone */
        mj += w->d.v[i].energy;
    }
    /* idle for as long as it lasts, and what each instance adds alone */
    assert_true(fabs(mj - (280 * 45700.0 + 5 * 80 * 45700.0 + 15 * 65 * 43200.0)) < 1);
    assert_non_null(strstr(w->d.v[0].why, "merged"));
    assert_non_null(strstr(w->d.v[0].why, "20 together"));
}

/* The template's limits hold; what doesn't fit waits for the next turn. */
static void template_limits(void **state)
{
    struct world *w = *state;
    int e = add_task(w, "enc", 3, 45700, 360, 4);
    add_jobs(w, e, 12);
    make(w, NULL);
    decide(w);
    assert_int_equal(w->d.n, 4);
    bool seen[12] = {0};
    for (size_t i = 0; i < w->d.n; i++) {
        assert_false(seen[w->d.v[i].job]);
        seen[w->d.v[i].job] = true;
    }
    w->system.n_gpus = 2; /* another GPU takes four of the others */
    make(w, threshold_1);
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 8);
    assert_int_equal(w->d.v[0].gpu, 0);
    assert_int_equal(w->d.v[7].gpu, 1);
    assert_int_equal(w->d.v[7].group, 1);
}

/* Table 2 (reject) and Table 3 (accept), with the paper's energies and its reading of the
 * placement. */
static void scenarios(void **state)
{
    struct world *w = *state;
    /* Alone 7.03 kJ in 19.5 s and 25.6 kJ in 62.4 s. Together 81.9 s: no time won, and by the
     * dynamic energies that each brings the energy is the same to a rounding: the rest (33.5
     * measured) is what no model of the paper's sees. A tie rejects. */
    int e = add_task(w, "enc", 15, 19500, 7.03e6 / 19500, 1),
        m = add_task(w, "mc", 45, 62400, 25.6e6 / 62400, 1);
    add_jobs(w, e, 1);
    add_jobs(w, m, 1);
    make(w, threshold_1);
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 0);
    assert_int_equal(n_of(w, WS_DECIDE_START), 1);
    assert_int_equal(n_of(w, WS_DECIDE_WAIT), 1);
    assert_non_null(strstr(w->d.v[0].why, "alone on the GPU: GPU 7.03e+06 mJ"));
    assert_non_null(strstr(w->d.v[0].why, "2 together"));
    assert_non_null(strstr(w->d.v[1].why, "alone on the GPU when it is free"));
}

static void scenario2_is_merged(void **state)
{
    struct world *w = *state;
    static const struct ws_mwp_kernel two_resident = {.active_blocks_per_sm = 2};
    int s = add_task(w, "search", 15, 49200, 19.2e6 / 49200, 1),
        b = add_task(w, "bs", 45, 26400, 12.2e6 / 26400, 1);
    w->costs[s].model = w->costs[b].model = &two_resident;
    add_jobs(w, s, 1);
    add_jobs(w, b, 1);
    make(w, (const char *const[]){"threshold=1", "source=profile", NULL});
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 2);
    assert_true(fabs(w->d.v[0].end - 62400) < 1e-6);
}

static void cpu_when_it_is_cheaper(void **state)
{
    struct world *w = *state;
    int e = add_task(w, "enc", 3, 45700, 360, 20), m = add_task(w, "mc", 1, 43200, 345, 20);
    add_jobs(w, e, 1);
    add_jobs(w, m, 1);
    w->tasks[e].cpu_ms = 7200; /* encryption alone: 7.2 s on the CPU, 45.7 s on the GPU */
    w->tasks[e].cpu_mj = 7200 * 419.0;
    w->tasks[m].cpu_ms = 306000;
    w->tasks[m].cpu_mj = 306000 * 419.0;
    make(w, threshold_1);
    decide(w); /* together on the CPU: 131 kJ; merged: 21 kJ */
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 2);
    w->template.n_tasks = 1; /* encryption has no partner now */
    decide(w);
    assert_int_equal(w->d.n, 2);
    assert_int_equal(w->d.v[0].kind, WS_DECIDE_RUN_CPU);
    assert_int_equal(w->d.v[0].job, 0);
    assert_true(w->d.v[0].energy == 7200 * 419.0);
    assert_int_equal(w->d.v[1].kind, WS_DECIDE_START);
    assert_non_null(strstr(w->d.v[0].why, "no template"));
    assert_int_equal(w->d.v[0].gpu, -1);
    /* the CPU takes less than any launch: rejected, both leave, and the GPU stays free */
    w->template.n_tasks = 2;
    w->tasks[m].cpu_mj = w->tasks[e].cpu_mj = 1;
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_RUN_CPU), 2);
}

/* Copies count where something is copied: with a slow link nothing is won over the CPU. */
static void transfers_count(void **state)
{
    struct world *w = *state;
    int e = add_task(w, "enc", 3, 1000, 360, 20);
    w->tasks[e].cpu_ms = 1000;
    w->tasks[e].cpu_mj = 150e3;
    add_jobs(w, e, 10);
    make(w, NULL);
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 10);
    w->type.link_bytes_per_ms = 1000;
    w->tasks[e].in_bytes = w->tasks[e].out_bytes = 5e5; /* 1 s for each */
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 0);
    assert_int_equal(n_of(w, WS_DECIDE_RUN_CPU), 10);
    w->costs[e].h2d = 1; /* measured copies replace the estimate */
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 10);
}

/* By instruction counts: the C1060, with a power model. */
static void model_path(void **state)
{
    struct world *w = *state;
    static const struct ws_mwp_kernel enc = {256, 3, 2, 400, 10, 6, 16, 4};
    const struct ws_power_model power = {.a_comp_w = 40, .a_gmem_w = 500, .lambda_w = 14};
    w->type.mwp = ws_mwp_gpu_find("TeslaC1060");
    w->type.power = &power;
    int e = add_task(w, "enc", 3, 1, 1, 20);
    w->costs[e] = (struct ws_policy_cost){.model = &enc};
    add_jobs(w, e, 10);
    make(w, NULL);
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 10);
    struct ws_mwp_kernel all = enc;
    all.n_blocks = 30;
    all.active_blocks_per_sm = 1;
    struct ws_mwp_result r;
    assert_int_equal(ws_mwp_predict(&r, w->type.mwp, &all, 0, NULL), 0);
    double ms = r.time_us / 1e3, comp = 8 * 400 / r.total_cycles, gmem = 8 * 16 / r.total_cycles;
    assert_true(fabs(w->d.v[0].end - ms) < 1e-9);
    double mj = (280 + 14 + 40 * comp + 500 * gmem) * ms;
    assert_true(fabs(w->d.v[0].energy * 10 - mj) < 1e-9 * mj);
    /* a measured time alone corrects the model */
    all.n_blocks = 3;
    assert_int_equal(ws_mwp_predict(&r, w->type.mwp, &all, 0, NULL), 0);
    w->costs[e] =
        (struct ws_policy_cost){.model = &enc, .n_sm = N_SM, .wcet = w->wcet[e], .n_blocks = 3};
    for (int m = 0; m < N_SM; m++)
        w->wcet[e][m] = 2 * r.time_us / 1e3;
    decide(w);
    assert_true(fabs(w->d.v[0].end - 2 * ms) < 1e-9);
}

static void same_snapshot_same_answer(void **state)
{
    struct world *w = *state;
    int e = add_task(w, "enc", 3, 45700, 360, 3);
    add_jobs(w, e, 40);
    make(w, threshold_1);
    int first[8], others = 0;
    decide(w);
    assert_int_equal(w->d.n, 3);
    for (int i = 0; i < 3; i++)
        first[i] = w->d.v[i].job;
    for (int round = 0; round < 3; round++) {
        decide(w);
        for (int i = 0; i < 3; i++)
            assert_int_equal(w->d.v[i].job, first[i]);
    }
    for (int seed = 2; seed < 12; seed++) { /* other seeds choose others */
        char text[32];
        snprintf(text, sizeof(text), "seed=%d", seed);
        make(w, (const char *const[]){"threshold=1", text, NULL});
        decide(w);
        others += w->d.v[0].job != first[0];
    }
    assert_true(others > 0);
}

/* A job whose move to a GPU takes for ever is not launched there, alone or with others; and a GPU
 * on which none can run does not keep the policy from answering. */
static void what_cannot_run_there(void **state)
{
    struct world *w = *state;
    struct ws_policy_move on[MAX_GPUS][MAX_GPUS] = {
        {{.here = true}, {.ms = INFINITY, .mj = INFINITY}},
        {{.ms = INFINITY, .mj = INFINITY}, {.here = true}}};
    int e = add_task(w, "enc", 3, 45700, 360, 9);
    w->system.n_gpus = 2;
    add_jobs(w, e, 8);
    for (int i = 0; i < 8; i++)
        w->jobs[i].moves = on[i % 2];
    make(w, threshold_1);
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_FUSE), 8);
    for (size_t i = 0; i < w->d.n; i++)
        assert_int_equal(w->d.v[i].gpu, w->d.v[i].job % 2);
    w->snap.n_jobs = 1;
    decide(w);
    assert_int_equal(w->d.n, 1);
    assert_int_equal(w->d.v[0].gpu, 0);
    w->jobs[0].moves = on[1];
    w->states[1].n_running = 1;
    w->slots[1].job = 0;
    decide(w);
    assert_int_equal(w->d.n, 0);
    make(w, (const char *const[]){"threshold=2", NULL});
    decide(w);
    assert_int_equal(w->d.n, 0);
}

static void unknown_costs_run_alone(void **state)
{
    struct world *w = *state;
    int e = add_task(w, "enc", 0, 1000, 360, 5);
    add_jobs(w, e, 3);
    ops()->free(w->p);
    w->p = NULL;
    assert_int_equal(ops()->make(&w->p, threshold_1, w->error, sizeof(w->error)), 0);
    assert_int_equal(ops()->prepare(w->p, &w->system, w->error, sizeof(w->error)),
                     WS_POLICY_E_COST);
    assert_non_null(strstr(w->error, "task enc"));
    decide(w);
    assert_int_equal(n_of(w, WS_DECIDE_START), 1);
    assert_int_equal(n_of(w, WS_DECIDE_WAIT), 2);
    assert_true(isnan(w->d.v[0].energy));
}

static void options_refused(void **state)
{
    struct world *w = *state;
    static const char *const bad[] = {"threshold=-1", "threshold=x", "dispatch=fair",
                                      "sharing=yes",  "rule=none",   "source=guess",
                                      "seed=-2",      "colour=red"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++) {
        const char *const given[] = {bad[i], NULL};
        struct ws_policy *p = NULL;
        assert_int_equal(ops()->make(&p, given, w->error, sizeof(w->error)), WS_POLICY_E_OPTION);
        assert_null(p);
        assert_true(strlen(w->error) > 10);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(below_threshold),
        T(window_holds),
        T(table7_mix_is_merged),
        T(template_limits),
        T(scenarios),
        T(scenario2_is_merged),
        T(cpu_when_it_is_cheaper),
        T(transfers_count),
        T(model_path),
        T(same_snapshot_same_answer),
        T(what_cannot_run_there),
        T(unknown_costs_run_alone),
        T(options_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

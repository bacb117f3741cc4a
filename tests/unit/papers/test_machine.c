// SPDX-License-Identifier: Apache-2.0
/* Tests the simulated machine of several GPUs. It fails if the energy of sBEET-mg's Examples 1 to 4
 * or times computed by hand differ on either clock, with copies or preemption; if a policy that
 * breaks rules or wrong input is not reported; or if the generator, traces or shipped profiles
 * change. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/measured.h"
#include "models/store.h"
#include "papers/sets/gen_sbeet.h"
#include "papers/sets/sbeet_set.h"
#include "papers/sim/machine_trace.h"
#include "tests/unit/papers/json_text.h"

static void assert_near(double a, double b, double apart)
{
    if (!(fabs(a - b) <= apart)) {
        print_error("%.12g is not %.12g\n", a, b);
        fail();
    }
}

/* ---- energy ---- */

/* Example 1 by hand: 3 SMs of a T400 at 1.19 W, 3 idle at 0.652 W, 63.724 ms of 100; both GPUs' 8 W
 * throughout. */
static void energy_by_hand(void **state)
{
    (void)state;
    const struct ws_energy_gpu t400[] = {{6, 8, 0.652}, {6, 8, 0.652}};
    const struct ws_energy_run apart[] = {{0, 3, 1.19, 0, 63.724}, {1, 3, 1.19, 0, 63.724}};
    const struct ws_energy_run together[] = {{0, 3, 1.19, 0, 63.724}, {0, 3, 1.19, 0, 63.724}};
    double work = 63.724 * 3 * 1.19, idle = 63.724 * 3 * 0.652;
    assert_near(ws_energy_window_mj(WS_ENERGY_CORRECTED, t400, 2, apart, 2, 0, 100),
                1600 + 2 * work + 2 * idle, 1e-9);
    assert_near(ws_energy_window_mj(WS_ENERGY_CORRECTED, t400, 2, together, 2, 0, 100),
                1600 + 2 * work, 1e-9);
    assert_near(ws_energy_window_mj(WS_ENERGY_EQ3_PRINTED, t400, 2, together, 2, 0, 100),
                1600 + 2 * work + (1200 - 6 * 63.724) * 0.652, 1e-9);
    assert_near(ws_energy_window_mj(WS_ENERGY_EQ2_PRINTED, t400, 2, apart, 2, 0, 100),
                1600 + 2 * (100 - 63.724) * 6 * 0.652, 1e-9);
    assert_near(ws_energy_window_mj(WS_ENERGY_CORRECTED, t400, 2, NULL, 0, 10, 10), 0, 0);
}

static void ranking(void **state)
{
    (void)state;
    const double cost[] = {3, 1, INFINITY, 1, 2};
    int order[5];
    ws_energy_rank(cost, 5, order);
    const int want[] = {1, 3, 4, 0, 2}; /* equal ones in order */
    assert_memory_equal(order, want, sizeof(want));
}

/* ---- runs ---- */

struct log {
    char text[4096];
    size_t n;
};

static void note(void *arg, const struct ws_machine_event *e)
{
    struct log *l = arg;
    if (e->kind != WS_MACHINE_POWER)
        l->n += (size_t)snprintf(l->text + l->n, sizeof(l->text) - l->n, "%.6g %s %d;", e->t,
                                 ws_machine_event_name(e->kind), e->task);
}

/* One GPU of 4 SMs: 10 ms on 2 SMs and more, 20 on one; copies of 1 and 2 ms; 2 W per SM, idle 0.5,
 * static 5. */
struct world {
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu gpu;
    struct ws_policy_cost cost;
    double wcet[4];
    struct ws_policy_task tasks[3];
    struct ws_policy_system sys;
    struct log log;
    struct ws_machine_result r;
    double early, over;
    uint64_t seed;
    const struct ws_machine_script *scripts;
};

static void make_world(struct world *w, int n_tasks)
{
    *w = (struct world){
        .type = {"g", 4, 5, 0.5, 0.25, 0.5}, .gpu = {0, 4, 2, 0, -1}, .wcet = {20, 10, 10, 10}};
    w->cost =
        (struct ws_policy_cost){.n_sm = 4, .wcet = w->wcet, .h2d = 1, .d2h = 2, .dyn_w_per_sm = 2};
    for (int i = 0; i < n_tasks; i++)
        w->tasks[i] = (struct ws_policy_task){
            .id = i, .period = 1000, .deadline = 500, .priority = 9 - i, .cost = &w->cost};
    w->sys = (struct ws_policy_system){.types = &w->type,
                                       .gpus = &w->gpu,
                                       .tasks = w->tasks,
                                       .n_types = 1,
                                       .n_gpus = 1,
                                       .n_tasks = n_tasks};
}

static int run(struct world *w, const struct ws_policy_ops *ops, double duration, double tick)
{
    struct ws_machine_options o = {.duration = duration,
                                   .tick = tick,
                                   .early = w->early,
                                   .over = w->over,
                                   .seed = w->seed,
                                   .scripts = w->scripts,
                                   .event = note,
                                   .arg = &w->log};
    struct ws_policy *p = NULL;
    char error[160];
    w->log = (struct log){0};
    ws_machine_result_deinit(&w->r);
    assert_int_equal(ops->make(&p, NULL, error, sizeof(error)), 0);
    if (ops->prepare)
        assert_true(ops->prepare(p, &w->sys, error, sizeof(error)) >= 0);
    int r = ws_machine_run(&w->r, &w->sys, ops, p, &o);
    ops->free(p);
    return r;
}

static void both_clocks(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    w.tasks[0].offset = 0.5;
    const struct ws_policy_ops *bcf = ws_policy_find("bcf");
    /* Exact: 0.5 in, 1.5…11.5 on 2 SMs (its optimum), out until 13.5. While it copies the GPU is
     * awake, all SMs idle: 2 W. */
    assert_int_equal(run(&w, bcf, 100, 0), 0);
    assert_string_equal(w.log.text, "0.5 release 0;0.5 start 0;13.5 done 0;");
    assert_near(w.r.energy, 100 * 5 + 10 * (2 * 2 + 2 * 0.5) + 3 * 2, 1e-9);
    assert_near(w.r.worst_response[0], 13, 1e-12);
    assert_near(w.r.worst_lateness, 13.5 - 500.5, 1e-9);
    /* Ticks: released at 1, over at 14 and so noticed at 14; 13 samples at work. */
    assert_int_equal(run(&w, bcf, 100, 1), 0);
    assert_string_equal(w.log.text, "1 release 0;1 start 0;14 done 0;");
    assert_near(w.r.energy, 100 * 5 + 13 * (2 * 2 + 2 * 0.5), 1e-9);
    assert_int_equal(w.r.started[0], 1);
    assert_int_equal(w.r.sum_sm, 2);
    ws_machine_result_deinit(&w.r);
}

static void misses(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 3);
    for (int i = 0; i < 3; i++)
        w.tasks[i].deadline = 13; /* just in time where it starts at once */
    /* Two slots of 2 SMs: the third job waits until 13, and is dropped then. */
    assert_int_equal(run(&w, ws_policy_find("bcf"), 100, 0), 0);
    assert_string_equal(w.log.text,
                        "0 release 0;0 release 1;0 release 2;0 start 0;0 start 1;13 done 0;"
                        "13 done 1;13 skip 2;");
    assert_int_equal(w.r.n_skipped, 1);
    assert_int_equal(w.r.missed[2], 1);
    w.tasks[2].deadline = 20; /* starts at 13, ends at 26 */
    assert_int_equal(run(&w, ws_policy_find("bcf"), 100, 0), 0);
    assert_int_equal(w.r.n_late, 1);
    assert_near(w.r.worst_lateness, 6, 1e-9);
    assert_int_equal(run(&w, ws_policy_find("bcf"), 100, 1), 0);
    assert_int_equal(w.r.n_late, 1);
    /* In flight at the end: released, neither on time nor missed. */
    assert_int_equal(run(&w, ws_policy_find("bcf"), 10, 0), 0);
    assert_int_equal(w.r.n_released, 3);
    assert_int_equal(w.r.n_on_time + w.r.n_late + w.r.n_skipped, 0);
    ws_machine_result_deinit(&w.r);
}

static void periods(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    w.tasks[0].period = 20.5;
    w.tasks[0].deadline = 20.5;
    assert_int_equal(run(&w, ws_policy_find("bcf"), 205, 0), 0);
    assert_int_equal(w.r.n_released, 10); /* at 0, 20.5, …, 184.5 */
    assert_int_equal(run(&w, ws_policy_find("bcf"), 205, 1), 0);
    assert_int_equal(w.r.n_released, 10); /* drifts: every 21 */
    assert_int_equal(run(&w, ws_policy_find("bcf"), 190, 0), 0);
    assert_int_equal(w.r.n_released, 10);
    assert_int_equal(run(&w, ws_policy_find("bcf"), 189, 1), 0);
    assert_int_equal(w.r.n_released, 9);
    ws_machine_result_deinit(&w.r);
}

/* What a policy sees of a job that runs is what was predicted. */
static int decide_watched(struct ws_policy *p, const struct ws_policy_snapshot *snap,
                          const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    for (int s = 0; s < snap->gpus[0].n_slots; s++) {
        const struct ws_policy_run *r = &snap->gpus[0].slots[s];
        if (r->job >= 0 && snap->now < r->start + 6) /* its kernel is not over yet */
            assert_near(r->end - r->start, 13, 1e-9);
    }
    return ws_policy_find("bcf")->decide(p, snap, event, ret);
}

static void early_ends(void **state)
{
    (void)state;
    struct world w;
    struct ws_policy_ops watched = *ws_policy_find("bcf");
    struct log first;
    make_world(&w, 2);
    w.early = 0.5;
    w.tasks[0].period = w.tasks[1].period = 20;
    w.tasks[1].offset = 5;
    watched.decide = decide_watched;
    assert_int_equal(run(&w, &watched, 400, 0), 0);
    first = w.log;
    assert_int_equal(w.r.n_on_time, 40);
    assert_true(w.r.worst_response[0] > 11 && w.r.worst_response[0] <= 13);
    double least = 400 * 5 + 40 * (5 * (2 * 2) + 3 * 2 * 0.5);
    assert_true(w.r.energy > least && w.r.energy < least + 40 * 5 * (2 * 2 + 1));
    /* The draws are the same under another policy, and others with another seed. */
    assert_int_equal(run(&w, ws_policy_find("lcf"), 400, 0), 0);
    assert_string_equal(w.log.text, first.text);
    w.seed = 1;
    assert_int_equal(run(&w, ws_policy_find("lcf"), 400, 0), 0);
    assert_string_not_equal(w.log.text, first.text);
    ws_machine_result_deinit(&w.r);
}

/* Of a kernel of 10 ms and copies of 3 ms. It is over after at most 15 + 3 ms. */
static void late_ends(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 2);
    w.early = w.over = 0.5;
    w.tasks[0].period = w.tasks[1].period = 40;
    w.tasks[1].offset = 20;
    assert_int_equal(run(&w, ws_policy_find("bcf"), 400, 0), 0);
    assert_true(w.r.worst_response[0] > 15 && w.r.worst_response[0] <= 18);
    w.early = 0;
    assert_int_equal(run(&w, ws_policy_find("bcf"), 400, 0), 0);
    assert_true(w.r.worst_response[0] > 15 && w.r.worst_response[0] <= 18);
    ws_machine_result_deinit(&w.r);
}

/* One copy engine: the second job's copies wait for the first's. */
static void copies(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 2);
    w.gpu.n_copy_engines = 1;
    assert_int_equal(run(&w, ws_policy_find("bcf"), 100, 0), 0);
    /* In: 0…1, 1…2. Kernels until 11, 12. Out: 11…13, 13…15. */
    assert_string_equal(w.log.text,
                        "0 release 0;0 release 1;0 start 0;0 start 1;13 done 0;15 done 1;");
    w.gpu.n_copy_engines = 2;
    assert_int_equal(run(&w, ws_policy_find("bcf"), 100, 0), 0);
    assert_string_equal(w.log.text,
                        "0 release 0;0 release 1;0 start 0;0 start 1;13 done 0;13 done 1;");
    ws_machine_result_deinit(&w.r);
}

/* ---- a policy that does what a script says ---- */

static const struct ws_policy_decision *script;
static size_t n_script;
static int script_calls;
static int script_make(struct ws_policy **ret, const char *const *options, char *e, size_t n)
{
    *ret = NULL;
    script_calls = 0;
    return 0;
}
static void script_free(struct ws_policy *p)
{
}
/* The i-th call carries out the i-th decision; those with `at` wait for a timer. */
static int script_decide(struct ws_policy *p, const struct ws_policy_snapshot *snap,
                         const struct ws_policy_event *e, struct ws_policy_decisions *ret)
{
    if ((size_t)script_calls >= n_script)
        return 0;
    struct ws_policy_decision d = script[script_calls++], *out;
    double again = d.at;
    out = ws_policy_decide(ret, d.kind, d.job, d.gpu);
    out->n_sm = d.n_sm;
    if (d.volt > 0) {
        out->volt = d.volt;
        out->f_core = d.f_core;
        out->f_mem = d.f_mem;
    }
    for (unsigned i = 0; i < (unsigned)d.n_sm && d.n_sm < 256; i++)
        ws_sm_set_add(&out->sms, i + (unsigned)d.group);
    if (again > 0) {
        out = ws_policy_decide(ret, WS_DECIDE_TIMER, -1, -1);
        out->at = again;
    }
    return 0;
}
static const struct ws_policy_ops scripted = {
    .name = "scripted", .make = script_make, .free = script_free, .decide = script_decide};

#define SCRIPT(...)                                                                                \
    static const struct ws_policy_decision s[] = {__VA_ARGS__};                                    \
    script = s;                                                                                    \
    n_script = WS_ARRAY_SIZE(s)

static void preemption(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    /* Asked again at 5, 4 ms into the kernel: taken off (0.5), put back at 20 on one SM:
     * 0.25 + 0.5, then 6/10 of 20 ms, and 2 out. */
    SCRIPT({.kind = WS_DECIDE_START, .n_sm = 2, .at = 5}, {.kind = WS_DECIDE_PREEMPT},
           {.kind = WS_DECIDE_WAIT, .at = 20}, {.kind = WS_DECIDE_RESUME, .n_sm = 1});
    (void)s;
    assert_int_equal(run(&w, &scripted, 100, 0), 0);
    assert_string_equal(w.log.text, "0 release 0;0 start 0;5 preempt 0;20 resume 0;34.75 done 0;");
    assert_int_equal(w.r.n_preempted, 1);
    assert_int_equal(w.r.n_started, 1);
    /* Awake and idle while it copies, is taken off and put on: 1 + 0.5 + 0.75 + 2 ms at 2 W. */
    assert_near(w.r.energy, 500 + 4 * (4 + 1) + 12 * (2 + 1.5) + (1 + 0.5 + 0.75 + 2) * 2, 1e-9);
    ws_machine_result_deinit(&w.r);
}

/* As above, but the kernel has two rounds of blocks of 5 ms, and the first ends at 6. */
static void preemption_waits_for_blocks(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 1);
    w.cost.n_stops = 4;
    SCRIPT({.kind = WS_DECIDE_START, .n_sm = 2, .at = 5}, {.kind = WS_DECIDE_PREEMPT},
           {.kind = WS_DECIDE_WAIT, .at = 20}, {.kind = WS_DECIDE_RESUME, .n_sm = 1});
    (void)s;
    assert_int_equal(run(&w, &scripted, 100, 0), 0);
    assert_string_equal(w.log.text, "0 release 0;0 start 0;5 preempt 0;20 resume 0;32.75 done 0;");
    assert_near(w.r.energy, 500 + 5 * (4 + 1) + 10 * (2 + 1.5) + (1 + 0.5 + 0.75 + 2) * 2, 1e-9);
    ws_machine_result_deinit(&w.r);
    /* Nothing is taken off whose last blocks run. */
    n_script = 2;
    make_world(&w, 1);
    w.cost.n_stops = 2;
    assert_int_equal(run(&w, &scripted, 100, 0), 0);
    assert_string_equal(w.log.text, "0 release 0;0 start 0;13 done 0;");
    assert_int_equal(w.r.n_preempted, 0);
    ws_machine_result_deinit(&w.r);
}

static void clocks(void **state)
{
    (void)state;
    /* All of the time follows the core clock. All SMs take 8 W, 7 of which follow V²·fc. */
    static const struct ws_dvfs_task dvfs = {.gamma = 1, .c = 7, .d = 10, .delta = 1};
    struct world w;
    make_world(&w, 1);
    w.cost.dvfs = &dvfs;
    SCRIPT({.kind = WS_DECIDE_START, .n_sm = 2, .volt = 0.5, .f_core = 0.5, .f_mem = 1});
    (void)s;
    assert_int_equal(run(&w, &scripted, 100, 0), 0);
    assert_string_equal(w.log.text, "0 release 0;0 start 0;23 done 0;");
    assert_near(w.r.energy, 500 + 20 * (2 * (2 - 7 * 0.875 / 4) + 2 * 0.5) + 3 * 2, 1e-9);
    ws_machine_result_deinit(&w.r);
}

static void clocks_are_not_lowered(void **state)
{
    (void)state;
    static const struct ws_dvfs_task dvfs = {.gamma = 1, .c = 7, .d = 10, .delta = 1};
    struct world w;
    make_world(&w, 2);
    w.cost.dvfs = &dvfs;
    {
        SCRIPT({.kind = WS_DECIDE_START, .n_sm = 2, .at = 5}, {.kind = WS_DECIDE_START,
                                                               .job = 1,
                                                               .n_sm = 2,
                                                               .group = 2,
                                                               .volt = 1,
                                                               .f_core = 2,
                                                               .f_mem = 1});
        (void)s;
        assert_int_equal(run(&w, &scripted, 100, 0), 0);
        assert_string_equal(w.log.text,
                            "0 release 0;0 release 1;0 start 0;5 start 1;13 done 0;13 done 1;");
    }
    SCRIPT({.kind = WS_DECIDE_START, .n_sm = 2, .at = 5}, {.kind = WS_DECIDE_START,
                                                           .job = 1,
                                                           .n_sm = 2,
                                                           .group = 2,
                                                           .volt = 1,
                                                           .f_core = 0.9,
                                                           .f_mem = 1});
    (void)s;
    assert_int_equal(run(&w, &scripted, 100, 0), WS_MACHINE_E_POLICY);
    assert_non_null(strstr(w.r.error, "not lowered"));
    ws_machine_result_deinit(&w.r);
}

static void rule_breakers(void **state)
{
    (void)state;
    static const struct {
        struct ws_policy_decision d;
        const char *want;
    } rows[] = {
        {{.kind = WS_DECIDE_START, .job = 7, .n_sm = 1}, "no such job"},
        {{.kind = WS_DECIDE_START, .gpu = 3, .n_sm = 1}, "no such GPU"},
        {{.kind = WS_DECIDE_START, .n_sm = 0}, "or none"},
        {{.kind = WS_DECIDE_START, .n_sm = 5}, "more SMs"},
        {{.kind = WS_DECIDE_RESUME, .n_sm = 1}, "not in a state"},
        {{.kind = WS_DECIDE_PREEMPT}, "no kernel"},
        {{.kind = WS_DECIDE_RUN_CPU}, "can't run there"},
        {{.kind = WS_DECIDE_DROP, .job = -1}, "no such job"},
    };
    struct world w;
    make_world(&w, 1);
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        script = &rows[i].d;
        n_script = 1;
        assert_int_equal(run(&w, &scripted, 100, 0), WS_MACHINE_E_POLICY);
        if (!strstr(w.r.error, rows[i].want))
            print_error("%s\n", w.r.error);
        assert_non_null(strstr(w.r.error, rows[i].want));
    }
    ws_machine_result_deinit(&w.r);
    make_world(&w, 2);
    w.tasks[1].offset = 1;
    SCRIPT({.kind = WS_DECIDE_START, .n_sm = 2},
           {.kind = WS_DECIDE_START, .job = 1, .n_sm = 2, .group = 1});
    (void)s;
    assert_int_equal(run(&w, &scripted, 100, 0), WS_MACHINE_E_POLICY);
    assert_non_null(strstr(w.r.error, "another job's"));
    ws_machine_result_deinit(&w.r);
}

/* A job dropped, one on the processor. */
static void other_ways(void **state)
{
    (void)state;
    struct world w;
    make_world(&w, 2);
    w.tasks[0].cpu_ms = 30;
    w.tasks[0].cpu_mj = 100;
    w.tasks[1].offset = 1;
    SCRIPT({.kind = WS_DECIDE_RUN_CPU}, {.kind = WS_DECIDE_DROP});
    (void)s;
    assert_int_equal(run(&w, &scripted, 100, 0), 0);
    assert_int_equal(w.r.n_on_time, 1);
    assert_int_equal(w.r.n_skipped, 1);
    assert_near(w.r.energy, 100 * 5 + 100, 1e-9);
    assert_near(w.r.worst_response[0], 30, 1e-9);
    ws_machine_result_deinit(&w.r);
}

/* ---- input ---- */

static void gpus_as_text(void **state)
{
    (void)state;
    struct ws_gpus g;
    char error[160];
    assert_int_equal(ws_gpus_parse(&g, "rtx3070@24,t400,rtx3070", error, sizeof(error)), 0);
    assert_int_equal(g.n_gpus, 3);
    assert_int_equal(g.n_types, 2);
    assert_int_equal(g.gpus[0].sm_limit, 24);
    assert_int_equal(g.gpus[2].sm_limit, 46);
    ws_gpus_deinit(&g);
    static const char *const bad[] = {"",        "rtx3071", "t400@7",  "t400@0",
                                      "t400@-1", "t400,",   "t400@3x", ",t400",
                                      "t400@",   "@3",      "T400",    "t400@1e9"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++) {
        error[0] = 0;
        assert_int_equal(ws_gpus_parse(&g, bad[i], error, sizeof(error)), -EINVAL);
        assert_true(strlen(error) > 10);
        ws_gpus_deinit(&g);
    }
}

static void gpus_as_file(void **state)
{
    (void)state;
    struct ws_gpus g;
    struct ws_json_line l =
        json_text("{\"types\":[{\"name\":\"x\",\"n_sm\":3,\"static_w\":5,\"idle_"
                  "w_per_sm\":0.5}],\"gpus\":[{\"type\":"
                  "\"x\",\"slots\":4},{\"type\":\"t400\",\"sm_limit\":2}],"
                  "\"kernels\":[{\"gpu\":\"x\",\"name\":\"k\","
                  "\"wcet_ms\":[3,2,1],\"dyn_w_per_sm\":1}]}");
    struct ws_policy_cost cost;
    assert_int_equal(ws_gpus_read(&g, &l), 0);
    assert_int_equal(g.n_gpus, 2);
    assert_int_equal(g.gpus[0].n_slots, 4);
    assert_int_equal(g.gpus[0].sm_limit, 3);
    assert_int_equal(g.gpus[1].sm_limit, 2);
    assert_true(ws_gpus_cost(&g, 0, "k", 0, &cost));
    assert_near(cost.wcet[2], 1, 0);
    assert_false(ws_gpus_cost(&g, 1, "k", 0, &cost));
    assert_true(ws_gpus_cost(&g, 1, NULL, 7, &cost));
    ws_gpus_deinit(&g);
    ws_json_line_deinit(&l);
    static const struct {
        const char *text, *want;
    } bad[] = {
        {"{}", "gpus: missing"},
        {"{\"gpus\":[]}", "at least one"},
        {"{\"gpus\":[{\"type\":\"x\"}]}", "neither under"},
        {"{\"gpus\":[{\"type\":\"t400\",\"sm_limit\":0}]}", "sm_limit: 0"},
        {"{\"gpus\":[{\"type\":\"t400\",\"slots\":0}]}", "slots: 0"},
        {"{\"types\":[{\"name\":\"x\",\"n_sm\":0,\"static_w\":1,\"idle_w_per_sm\":1}],\"gpus\":[]}",
         "n_sm: 0"},
        {"{\"types\":[{\"name\":\"x\",\"n_sm\":1,\"static_w\":-1,\"idle_w_per_sm\":1}],\"gpus\":[]"
         "}",
         "negative"},
        {"{\"gpus\":[{\"type\":\"t400\"}],\"kernels\":[{\"gpu\":\"t400\",\"name\":\"k\",\"wcet_"
         "ms\":[0],"
         "\"dyn_w_per_sm\":1}]}",
         "above 0"},
        {"{\"gpus\":[{\"type\":\"t400\"}],\"kernels\":[{\"gpu\":\"t400\",\"name\":\"k\",\"wcet_"
         "ms\":[1,2],"
         "\"power_w\":[1],\"dyn_w_per_sm\":1}]}",
         "power_w has 1"},
        {"{\"gpus\":[{\"type\":\"t400\"}],\"kernels\":[{\"gpu\":\"t400\",\"name\":\"k\",\"wcet_"
         "ms\":[]}]}",
         "each SM count"},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++) {
        l = json_text(bad[i].text);
        assert_int_equal(ws_gpus_read(&g, &l), -EINVAL);
        assert_true(l.bad && l.diags.n > 0);
        char *text = ws_diags_text(&l.diags);
        if (!strstr(text, bad[i].want))
            print_error("%s not in %s\n", bad[i].want, text);
        assert_non_null(strstr(text, bad[i].want));
        free(text);
        ws_gpus_deinit(&g);
        ws_json_line_deinit(&l);
    }
}

static void bad_sets(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{\"tasks\":[{\"app\":0,\"period_ms\":-3}]}", "tasks[0].period_ms: -3"},
        {"{\"tasks\":[{\"app\":0}]}", "tasks[0].period_ms: missing"},
        {"{\"tasks\":[{\"app\":0,\"period_ms\":0}]}", "period_ms: 0"},
        {"{\"tasks\":[{\"app\":8,\"period_ms\":10}]}", "app 8"},
        {"{\"tasks\":[{\"app\":-1,\"period_ms\":10}]}", "app: -1"},
        {"{\"tasks\":[{\"app\":0,\"period_ms\":10,\"phi_ms\":-1}]}", "phi_ms: -1"},
        {"{\"tasks\":[{\"app\":0,\"period_ms\":10,\"deadline_ms\":0}]}", "deadline_ms: 0"},
        {"{\"tasks\":[{\"benchmark\":\"sort\",\"period_ms\":10}]}", "'sort'"},
        {"{\"tasks\":[{\"benchmark\":3,\"period_ms\":10}]}", "benchmark"},
        {"{\"tasks\":[]}", "at least one"},
        {"{\"tasks\":4}", "tasks: expected an array"},
        {"{\"tasks\":[{\"app\":0,\"period_ms\":1e400}]}", "period_ms"},
        {"{\"tasks\":[{\"app\":0,\"period_ms\":10}],\"duration_ms\":-1}", "duration_ms: -1"},
    };
    struct ws_gpus g;
    char error[160];
    assert_int_equal(ws_gpus_parse(&g, "t400", error, sizeof(error)), 0);
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        struct ws_json_line l = json_text(rows[i].text);
        struct ws_sbeet_set s;
        assert_int_equal(ws_sbeet_set_read(&s, &g, false, &l), -EINVAL);
        assert_true(l.bad);
        char *text = ws_diags_text(&l.diags);
        if (!strstr(text, rows[i].want))
            print_error("%s not in %s\n", rows[i].want, text);
        assert_non_null(strstr(text, rows[i].want));
        free(text);
        ws_sbeet_set_deinit(&s);
        ws_json_line_deinit(&l);
    }
    ws_gpus_deinit(&g);
}

/* u04_002 of the reference, whose results are known. */
static void known_set(void **state)
{
    (void)state;
    static const struct {
        int app;
        double period;
    } want[] = {{7, 94}, {6, 128}, {6, 250}, {4, 419}, {0, 521}, {2, 4297}};
    static const struct {
        const char *policy;
        uint64_t missed;
        double energy_j;
    } results[] = {{"lcf", 2, 1032.2234},
                   {"bcf", 3, 1055.6715},
                   {"load-dist", 4, 1055.3305},
                   {"sbeet-mg-offline", 16, 996.3056},
                   {"sbeet-mg", 1, 995.5243}};
    struct ws_gen_sbeet gen = ws_gen_sbeet_reference(0.4, 2);
    struct ws_sbeet_task t[WS_GEN_SBEET_MAX];
    struct ws_gpus g;
    struct ws_sbeet_set s;
    char error[160];
    assert_int_equal(ws_gen_sbeet(&gen, t), 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(t[i].app, want[i].app);
        assert_near(t[i].period, want[i].period, 0);
        assert_near(t[i].offset, 10 - 2 * i, 0);
    }
    assert_int_equal(ws_gpus_parse(&g, "rtx3070@6,t400", error, sizeof(error)), 0);
    assert_int_equal(ws_sbeet_set_make(&s, &g, t, 6, false, error, sizeof(error)), 0);
    for (size_t i = 0; i < WS_ARRAY_SIZE(results); i++) {
        struct ws_machine_options o = {.duration = 15000, .tick = 1};
        struct ws_sbeet_outcome r;
        assert_int_equal(ws_sbeet_set_run(&r, &s, ws_policy_find(results[i].policy), NULL, &o), 0);
        assert_int_equal(r.r.n_released, 407);
        assert_int_equal(r.r.n_late + r.r.n_skipped, results[i].missed);
        assert_near(r.r.energy / 1000, results[i].energy_j, 6e-5);
        ws_sbeet_outcome_deinit(&r);
    }
    ws_sbeet_set_deinit(&s);
    ws_gpus_deinit(&g);
    gen.util = 2.9;
    assert_int_equal(ws_gen_sbeet(&gen, t), -EINVAL);
    gen.util = NAN;
    assert_int_equal(ws_gen_sbeet(&gen, t), -EINVAL);
    gen = ws_gen_sbeet_reference(1, 0);
    gen.ref_sm = 47;
    assert_int_equal(ws_gen_sbeet(&gen, t), -EINVAL);
}

/* Task 0 releases its second job 3 ms after the end of its first, which takes half of the time that
 * is predicted; task 1 its second 5 ms after the release of its first. The run ends with the last
 * job. While any job is there the idle SMs take 2 W, and each kernel 3 W more. */
static void scripts(void **state)
{
    (void)state;
    static const struct ws_machine_job after_end[] = {{1, 1}, {3, 0.5}}, timed[] = {{0, 1}, {5, 1}};
    static const struct ws_machine_script all[] = {{after_end, 2, false}, {timed, 2, true}};
    struct world w;
    make_world(&w, 2);
    w.scripts = all;
    assert_int_equal(run(&w, ws_policy_find("bcf"), 1e9, 0), 0);
    assert_string_equal(w.log.text, "0 release 1;0 start 1;1 release 0;1 start 0;5 release 1;"
                                    "13 done 1;13 start 1;14 done 0;17 release 0;17 start 0;"
                                    "25 done 0;26 done 1;");
    assert_near(w.r.end, 26, 1e-9);
    assert_near(w.r.energy, 26 * (5 + 2) + 3 * (10 + 10 + 10 + 5), 1e-9);
    /* A job that is dropped is followed by the next one, too; a task may have none. */
    static const struct ws_machine_script one[] = {{after_end, 2, false}, {0}};
    w.scripts = one;
    SCRIPT({.kind = WS_DECIDE_DROP}, {.kind = WS_DECIDE_START, .n_sm = 2});
    (void)s;
    assert_int_equal(run(&w, &scripted, 1e9, 0), 0);
    assert_string_equal(w.log.text, "1 release 0;1 skip 0;4 release 0;4 start 0;12 done 0;");
    assert_near(w.r.end, 12, 1e-9);
    ws_machine_result_deinit(&w.r);
}

/* ---- traces ---- */

static void trace(void **state)
{
    (void)state;
    struct world w;
    char *text = NULL;
    size_t n;
    struct ws_trace t;
    struct ws_machine_trace mt;
    struct ws_policy *p = NULL;
    const struct ws_policy_ops *ops = ws_policy_find("bcf");
    FILE *f = open_memstream(&text, &n);
    make_world(&w, 3);
    for (int i = 0; i < 3; i++)
        w.tasks[i].deadline = 13;
    w.tasks[0].name = "quoted \"k\"\n";
    ws_trace_begin(&t, f);
    assert_int_equal(ws_machine_trace_init(&mt, &t, &w.sys), 0);
    struct ws_machine_options o = {
        .duration = 1005, .explain = true, .event = ws_machine_trace_event, .arg = &mt};
    assert_int_equal(ops->make(&p, NULL, w.log.text, 100), 0);
    assert_int_equal(ops->prepare(p, &w.sys, w.log.text, 100), 0);
    assert_int_equal(ws_machine_run(&w.r, &w.sys, ops, p, &o), 0);
    ws_machine_trace_deinit(&mt, 1005);
    assert_int_equal(ws_trace_end(&t), 0);
    fclose(f);
    ops->free(p);
    /* It is JSON; kernels run from 1 to 11 ms on the slots and on two SMs each; job 2 missed; the
     * two of 1000 are cut at 1005. */
    struct json_object *root = json_tokener_parse(text), *events, *e, *v;
    assert_non_null(root);
    assert_true(json_object_object_get_ex(root, "traceEvents", &events));
    int kernels = 0, on_sms = 0, missed = 0, power = 0, cut = 0, begin = 0, end = 0;
    for (size_t i = 0; i < json_object_array_length(events); i++) {
        e = json_object_array_get_idx(events, i);
        json_object_object_get_ex(e, "ph", &v);
        const char *ph = json_object_get_string(v);
        json_object_object_get_ex(e, "name", &v);
        const char *name = json_object_get_string(v);
        double ts = json_object_object_get_ex(e, "ts", &v) ? json_object_get_double(v) : -1;
        double dur = json_object_object_get_ex(e, "dur", &v) ? json_object_get_double(v) : -1;
        int pid = json_object_object_get_ex(e, "pid", &v) ? json_object_get_int(v) : -1;
        if (*ph == 'X' && !strcmp(name, "kernel") && ts < 1000000) {
            assert_near(ts, 1000, 1e-9);
            assert_near(dur, 10000, 1e-9);
            kernels++;
        }
        cut += *ph == 'X' && !strcmp(name, "kernel") && ts > 1000000 && fabs(dur - 4000) < 1e-6;
        on_sms += *ph == 'X' && pid == 3 && ts < 1000000;
        missed += *ph == 'i' && !strncmp(name, "MISS", 4);
        power += *ph == 'C';
        begin += *ph == 's';
        end += *ph == 'f';
    }
    assert_int_equal(kernels, 2);
    assert_int_equal(on_sms, 4);
    assert_int_equal(cut, 2);
    assert_int_equal(missed, 1);
    assert_true(power >= 4);
    assert_int_equal(begin, 6);
    assert_int_equal(end, 4);
    json_object_put(root);
    free(text);
    ws_machine_result_deinit(&w.r);
}

/* ---- shipped profiles ---- */

static void shipped_profiles(void **state)
{
    (void)state;
    const char *top = getenv("srcdir");
    char path[512], db[] = "/tmp/test_sim_machine.XXXXXX";
    int fd = mkstemp(db), n = 0;
    assert_true(fd >= 0);
    close(fd);
    unlink(db);
    struct ws_store *s;
    struct ws_diags diags = WS_DIAGS_NULL;
    assert_int_equal(ws_store_open(&s, db, WS_STORE_WRITE, &diags), 0);
    for (int g = 0; ws_measured_gpu(g); g++) {
        const char *gpu = ws_measured_gpu(g)->name;
        struct ws_store_import in;
        snprintf(path, sizeof(path), "%s/conf/profiles/%s.csv", top ? top : WS_SRCDIR, gpu);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(ws_store_import(s, f, path, &in, &diags), 0);
        assert_int_equal(in.n_bad_lines, 0);
        fclose(f);
        for (int app = 0; app < WS_MEASURED_APPS; app++) {
            const struct ws_measured_kernel *k = ws_measured_app(gpu, app);
            struct ws_profile_key key;
            struct ws_profile p = WS_PROFILE_NULL;
            char hash[64];
            snprintf(hash, sizeof(hash), "sbeet-mg:%s", k->name);
            assert_int_equal(ws_profile_key_set(&key, hash, gpu, ""), 0);
            assert_int_equal(ws_store_get(s, &key, &p), 0);
            assert_near(p.h2d_ms, k->cost.h2d, 0);
            assert_near(p.d2h_ms, k->cost.d2h, 0);
            assert_int_equal(p.n_points, k->cost.n_sm);
            for (int m = 1; m <= k->cost.n_sm; m++, n++) {
                const struct ws_profile_point *point = ws_profile_at(&p, (uint32_t)m);
                assert_non_null(point);
                assert_near(point->time_max_ms, k->cost.wcet[m - 1], 0);
                assert_near(point->time_mean_ms, k->mean_ms[m - 1], 0);
                assert_near(point->time_min_ms, k->min_ms[m - 1], 0);
                assert_near(point->power_w, k->cost.power_w[m - 1], 0);
            }
            ws_profile_deinit(&p);
        }
    }
    assert_int_equal(n, 416);
    ws_store_close(s);
    ws_diags_deinit(&diags);
    unlink(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(energy_by_hand),
        cmocka_unit_test(ranking),
        cmocka_unit_test(both_clocks),
        cmocka_unit_test(misses),
        cmocka_unit_test(periods),
        cmocka_unit_test(copies),
        cmocka_unit_test(early_ends),
        cmocka_unit_test(preemption),
        cmocka_unit_test(preemption_waits_for_blocks),
        cmocka_unit_test(late_ends),
        cmocka_unit_test(clocks),
        cmocka_unit_test(clocks_are_not_lowered),
        cmocka_unit_test(rule_breakers),
        cmocka_unit_test(other_ways),
        cmocka_unit_test(gpus_as_text),
        cmocka_unit_test(gpus_as_file),
        cmocka_unit_test(bad_sets),
        cmocka_unit_test(known_set),
        cmocka_unit_test(scripts),
        cmocka_unit_test(trace),
        cmocka_unit_test(shipped_profiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

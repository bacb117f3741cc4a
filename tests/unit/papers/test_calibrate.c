// SPDX-License-Identifier: Apache-2.0
/* The models of power and time from events, and their fits: launches are made with known numbers by
 * formulas that are written out here a second time, and the fits have to find the numbers again. */
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
#include <unistd.h>

#include "device/catalog.h"
#include "papers/fit/calibrate.h"
#include "papers/fit/effects.h"
#include "papers/fit/entry.h"
#include "papers/fit/measured.h"
#include "papers/fit/score.h"

enum { FAMILIES = 40, CORE_CLOCKS = 4, MEMORY_CLOCKS = 2 };
enum { LAUNCHES = FAMILIES * CORE_CLOCKS * MEMORY_CLOCKS };

static const struct ws_event_gpu gpu = {.n_sms = 20,
                                        .schedulers = 4,
                                        .fp32_lanes = 128,
                                        .int_lanes = 64,
                                        .fp64_lanes = 4,
                                        .sfu_lanes = 16,
                                        .flow_units = 4,
                                        .texture_units = 8,
                                        .l2_slices = 24,
                                        .warps_per_sm = 64,
                                        .reference = {1500, 5000},
                                        .memory_bytes_per_s = 400e9,
                                        .limit_w = 200};

static uint32_t random_state;
static double draw(double low, double high)
{
    random_state = random_state * 1664525 + 1013904223;
    return low + (high - low) * (random_state >> 8) / (double)(1 << 24);
}

/* The numbers that the launches are made with, none of which is the one expected. */
static const double joules[] = {0.4e-9, 0.03e-9, 0.01e-9, 0.4e-9, 0.3e-9,
                                0.6e-9, 0.5e-9,  1.1e-9,  4e-9};
enum { STATIC_W = 30, MEMORY_W = 15, CLOCK_W = 12, ACTIVE_W = 25, BUSY_W = 14 };

static double made_power(const struct ws_measured_launch *l)
{
    const struct ws_events *e = &l->e;
    double f = l->clocks.core_mhz / 1500, m = l->clocks.memory_mhz / 5000;
    double volt = f < 0.8 ? 0.88 : 0.4 + 0.6 * f;
    double ipc = e->warp_instructions / l->time_s / (20 * l->clocks.core_mhz * 1e6);
    double busy = e->active * (1 - exp(-2 * ipc / e->active));
    double core = joules[0] * e->warp_instructions + joules[1] * e->int_ops +
                  joules[2] * e->fp32_ops + joules[3] * e->fp64_ops + joules[4] * e->sfu_ops +
                  joules[5] * e->shared_transactions + joules[6] * e->l1_sectors +
                  joules[7] * e->l2_sectors;
    return STATIC_W + MEMORY_W * m +
           volt * volt * f * (CLOCK_W + ACTIVE_W * e->active + BUSY_W * busy) +
           volt * volt * core / l->time_s + joules[8] * e->dram_sectors / l->time_s;
}

static double made_time(const struct ws_measured_launch *l)
{
    const struct ws_events *e = &l->e;
    double hz = l->clocks.core_mhz * 1e6, sms = e->blocks < 20 ? e->blocks : 20;
    double units[] = {
        e->warp_instructions / (4 * 0.7 * sms * hz),
        (e->fp32_ops / 128 + e->int_ops / 64) / (0.9 * sms * hz),
        e->fp64_ops / (4 * 0.6 * sms * hz),
        e->sfu_ops / (16 * 0.8 * sms * hz),
        e->shared_transactions / (0.9 * sms * hz),
        e->l1_sectors / (4 * 0.8 * sms * hz),
        e->l2_sectors / (2 * 0.5 * sms * hz),
        4 * e->texture_quads / (8 * 0.6 * sms * hz),
        e->atomic_sectors / (0.5 * (e->atomic_places < 24 ? e->atomic_places : 24) * hz),
        fmax(e->dram_sectors * 32 / (0.75 * 400e9 * l->clocks.memory_mhz / 5000),
             e->dram_sectors / (0.4 * 24 * hz)),
        e->flow_instructions * 7 / (4 * sms * hz),
        fmax(e->blocks * 90 / (sms * hz), e->blocks * 5 / hz),
        (e->warp_instructions * 9 +
         e->load_requests * 0.4 *
             (100 + e->l2_share * 150 +
              e->l2_share * e->dram_share * 250 * l->clocks.core_mhz / 1500) +
         e->shared_requests * 30) /
            (sms * hz * e->warps_per_sm),
    };
    double sum = 0;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        sum += pow(units[i], 5);
    return 4e-6 + pow(sum, 1 / 5.0);
}

/* Kernels with different limits: each has much of one or two things and little of the others. */
static struct ws_events made_events(int family)
{
    double n = exp(draw(log(1e6), log(1e9)));
    struct ws_events e = {.warp_instructions = n,
                          .int_ops = n * draw(2, 20),
                          .fp32_ops = n * draw(0, 20),
                          .fp64_ops = family % 5 ? 0 : n * draw(0.2, 2),
                          .sfu_ops = family % 7 ? 0 : n * draw(0.5, 6),
                          .shared_transactions = family % 3 ? n * draw(0, 0.1) : n * draw(0.2, 0.5),
                          .l1_sectors = n * draw(0.05, family % 4 ? 0.5 : 1.5),
                          .blocks = family % 9 ? floor(draw(20, 5000)) : 3,
                          .active = draw(0.7, 1),
                          .warps_per_sm = draw(4, 60),
                          .counted = true};
    e.flow_instructions = n * draw(0, family % 10 ? 0.1 : 0.6);
    e.l2_sectors = e.l1_sectors * draw(0.1, 1);
    e.dram_sectors = e.l2_sectors * draw(0.05, 1);
    e.load_requests = e.l1_sectors / draw(1, 8);
    e.shared_requests = e.shared_transactions / 2;
    e.l2_share = draw(0, 1);
    e.dram_share = draw(0, 1);
    e.atomic_sectors = family % 8 ? 0 : n * draw(0.01, 0.1);
    e.atomic_places = floor(draw(1, 64));
    e.texture_quads = family % 6 ? 0 : n * draw(0.5, 2);
    return e;
}

static struct ws_measured_launch *made(void)
{
    struct ws_measured_launch *v = calloc(LAUNCHES, sizeof(*v));
    assert_non_null(v);
    random_state = 7;
    for (int family = 0; family < FAMILIES; family++) {
        struct ws_events e = made_events(family);
        for (int i = 0; i < CORE_CLOCKS * MEMORY_CLOCKS; i++) {
            struct ws_measured_launch *l = &v[family * CORE_CLOCKS * MEMORY_CLOCKS + i];
            *l = (struct ws_measured_launch){
                .e = e,
                .clocks = {750 + 300 * (i % CORE_CLOCKS), 3000 + 2000 * (i / CORE_CLOCKS)},
                .app = family,
                .family = family};
            l->time_s = l->rate_time_s = made_time(l);
            l->power_w = made_power(l);
        }
    }
    return v;
}

static void near(double got, double wanted, double share)
{
    if (!(fabs(got - wanted) <= share * fabs(wanted)))
        fail_msg("%g, not %g to %g", got, wanted, share);
}

static void power_is_the_formula(void **state)
{
    struct ws_measured_launch *v = made();
    struct ws_event_power p = {
        .knee = 0.8, .slope = 0.6, .w = {STATIC_W, MEMORY_W, CLOCK_W, ACTIVE_W, BUSY_W}};
    for (int i = 0; i < 9; i++)
        p.w[WS_EVENT_POWER_ISSUE + i] = joules[i] * 1e9;
    for (int i = 0; i < LAUNCHES; i++)
        near(ws_event_power_w(&p, &gpu, &v[i].e, &v[i].clocks, v[i].time_s), v[i].power_w, 1e-9);
    free(v);
    /* A knee above the reference clock: the voltage there is 1 and begins to grow later. */
    near(ws_event_voltage(1.1, 2, 1), 1, 1e-12);
    near(ws_event_voltage(1.1, 2, 1.1), 1, 1e-12);
    near(ws_event_voltage(1.1, 2, 1.2), 1.2, 1e-12);
}

/* Nobody knows at which clock a launch ran that drew what the board may. */
static void launches_at_the_limit_take_no_part(void **state)
{
    struct ws_measured_launch *v = made();
    struct ws_event_gpu limited = gpu;
    struct ws_calibrate c = {.gpu = &limited,
                             .v = v,
                             .n = LAUNCHES,
                             .n_families = FAMILIES,
                             .prior = WS_CALIBRATE_PRIOR};
    struct ws_event_power without, p;
    struct ws_event_time without_time, t;
    limited.limit_w = 1e4; /* more than any draws */
    double power_w = v[0].power_w, time_s = v[0].time_s;
    v[0].power_w = v[0].time_s = NAN;
    assert_int_equal(ws_calibrate_power(&c, NULL, &without), 0);
    assert_int_equal(ws_calibrate_time(&c, NULL, &without_time), 0);
    v[0].power_w = limited.limit_w;
    v[0].time_s = 3 * time_s;
    assert_int_equal(ws_calibrate_power(&c, NULL, &p), 0);
    assert_int_equal(ws_calibrate_time(&c, NULL, &t), 0);
    assert_memory_equal(&p, &without, sizeof(p));
    assert_memory_equal(&t, &without_time, sizeof(t));
    v[0].power_w = power_w / 2; /* below it, it does */
    assert_int_equal(ws_calibrate_time(&c, NULL, &t), 0);
    assert_memory_not_equal(&t, &without_time, sizeof(t));
    assert_int_equal(ws_calibrate_power(&c, NULL, &p), 0);
    assert_memory_not_equal(&p, &without, sizeof(p));
    free(v);
}

/* Of the launches from @first on. */
static double mean_error(const struct ws_event_power *p, const struct ws_measured_launch *v,
                         int first)
{
    double sum = 0;
    for (int i = first; i < LAUNCHES; i++)
        sum +=
            fabs(ws_event_power_w(p, &gpu, &v[i].e, &v[i].clocks, v[i].time_s) / v[i].power_w - 1);
    return sum / (LAUNCHES - first);
}

static void power_is_found_again(void **state)
{
    struct ws_measured_launch *v = made();
    struct ws_calibrate c = {.gpu = &gpu, .v = v, .n = LAUNCHES, .n_families = FAMILIES};
    struct ws_event_power p;
    assert_int_equal(ws_calibrate_power(&c, NULL, &p), 0);
    assert_true(p.knee == 0.8 && p.slope == 0.6);
    near(p.w[WS_EVENT_POWER_STATIC], STATIC_W, 0.02);
    near(p.w[WS_EVENT_POWER_MEMORY_CLOCK], MEMORY_W, 0.02);
    near(p.w[WS_EVENT_POWER_CLOCK] + p.w[WS_EVENT_POWER_ACTIVE], CLOCK_W + ACTIVE_W, 0.02);
    for (int i = 0; i < 9; i++)
        near(p.w[WS_EVENT_POWER_ISSUE + i], joules[i] * 1e9, 0.05);
    /* A tenth of the families with twice the power changes little: they are far off. */
    for (int i = 0; i < LAUNCHES / 10; i++)
        v[i].power_w *= 2;
    assert_int_equal(ws_calibrate_power(&c, NULL, &p), 0);
    double limited = mean_error(&p, v, LAUNCHES / 10);
    c.plain = true;
    assert_int_equal(ws_calibrate_power(&c, NULL, &p), 0);
    double plain = mean_error(&p, v, LAUNCHES / 10);
    print_message("  %.4f, by squares alone %.4f\n", limited, plain);
    assert_true(limited < 0.03 && limited < 0.5 * plain);
    free(v);
}

/* What the data say nothing about stays where it is expected, and only that. */
static void expectations_fill_gaps(void **state)
{
    struct ws_measured_launch *v = made();
    for (int i = 0; i < LAUNCHES; i++) {
        v[i].e.fp64_ops = 0;
        v[i].power_w = made_power(&v[i]);
    }
    struct ws_calibrate c = {
        .gpu = &gpu, .v = v, .n = LAUNCHES, .n_families = FAMILIES, .prior = WS_CALIBRATE_PRIOR};
    struct ws_event_power p;
    assert_int_equal(ws_calibrate_power(&c, NULL, &p), 0);
    near(p.w[WS_EVENT_POWER_FP64], ws_event_power_prior(&gpu, WS_EVENT_POWER_FP64).expected, 1e-6);
    assert_true(mean_error(&p, v, 0) < 0.03);
    /* An expected idle power is kept where no launch shows one. */
    int none[FAMILIES] = {0};
    c.idle_w = 77;
    assert_int_equal(ws_calibrate_power(&c, none, &p), 0);
    near(p.w[WS_EVENT_POWER_STATIC] + p.w[WS_EVENT_POWER_MEMORY_CLOCK] + p.w[WS_EVENT_POWER_CLOCK],
         77, 1e-6);
    near(p.w[WS_EVENT_POWER_CLOCK], 0.06 * gpu.limit_w, 1e-6); /* and its part with the clock */
    free(v);
}

static void time_is_the_formula(void **state)
{
    struct ws_measured_launch *v = made();
    struct ws_event_time t = {
        .v = {0.7, 0.9, 0.6, 0.8, 0.9, 0.8, 0.5, 0.6, 0.5, 0.75, 0.4, 7, 90, 5, 9, 0.4, 30, 5, 4}};
    for (int i = 0; i < LAUNCHES; i++) {
        struct ws_event_need need;
        double gradient[WS_EVENT_TIME_N];
        near(ws_event_time_s(&t, &gpu, &v[i].e, &v[i].clocks), v[i].time_s, 1e-9);
        ws_event_time_need(&gpu, &v[i].e, &v[i].clocks, &need);
        double time = ws_event_time_of_need(&t, &need, gradient);
        for (int k = 0; k < WS_EVENT_TIME_N; k++) {
            struct ws_event_time up = t, down = t;
            up.v[k] *= exp(1e-4);
            down.v[k] *= exp(-1e-4);
            double slope = (ws_event_time_of_need(&up, &need, NULL) -
                            ws_event_time_of_need(&down, &need, NULL)) /
                           2e-4;
            assert_true(fabs(slope - gradient[k]) < 1e-5 * time);
        }
    }
    free(v);
}

static void time_is_found_again(void **state)
{
    struct ws_measured_launch *v = made();
    struct ws_calibrate c = {
        .gpu = &gpu, .v = v, .n = LAUNCHES, .n_families = FAMILIES, .prior = 0.01};
    struct ws_event_time t;
    assert_int_equal(ws_calibrate_time(&c, NULL, &t), 0);
    for (int i = 0; i < LAUNCHES; i++)
        near(ws_event_time_s(&t, &gpu, &v[i].e, &v[i].clocks), v[i].time_s, 0.03);
    near(t.v[WS_EVENT_TIME_DRAM], 0.75, 0.05);
    near(t.v[WS_EVENT_TIME_ALU], 0.9, 0.05);
    free(v);
}

static void left_out_families_are_predicted(void **state)
{
    struct ws_measured_launch *v = made();
    static struct ws_predicted p[LAUNCHES];
    static struct ws_score_app apps[FAMILIES];
    struct ws_score s;
    for (int i = 0; i < CORE_CLOCKS * MEMORY_CLOCKS; i++)
        v[i].power_w *= 3; /* nothing that the first family could say about itself is used */
    struct ws_calibrate c = {
        .gpu = &gpu, .v = v, .n = LAUNCHES, .n_families = FAMILIES, .prior = 0.02};
    assert_int_equal(ws_calibrate_leave_out(&c, p), 0);
    /* The predictions for a family are those of a fit to the others alone. */
    struct ws_event_power power;
    struct ws_event_time time;
    c.v = v + CORE_CLOCKS * MEMORY_CLOCKS;
    c.n = LAUNCHES - CORE_CLOCKS * MEMORY_CLOCKS;
    assert_int_equal(ws_calibrate_power(&c, NULL, &power), 0);
    assert_int_equal(ws_calibrate_time(&c, NULL, &time), 0);
    struct ws_predicted first = ws_calibrate_predict(&gpu, &power, &time, &v[0]);
    near(p[0].power_w, first.power_w, 1e-9);
    near(p[0].time_s, first.time_s, 1e-9);
    assert_int_equal(ws_score(v, p, LAUNCHES, WS_SCORE_POWER, FAMILIES, &s, apps), 0);
    assert_int_equal(s.worst_app, 0);
    near(apps[0].bias, -66.7, 0.05);
    for (int i = 1; i < FAMILIES; i++)
        assert_true(apps[i].mean < 12);
    assert_int_equal(ws_score(v, p, LAUNCHES, WS_SCORE_TIME, FAMILIES, &s, apps), 0);
    assert_true(s.n == LAUNCHES && s.mean < 6);
    free(v);
}

static void scores_by_hand(void **state)
{
    const struct ws_measured_launch v[] = {{.power_w = 100, .time_s = 2, .app = 0},
                                           {.power_w = 200, .time_s = NAN, .app = 0},
                                           {.power_w = 50, .time_s = 1, .app = 1}};
    const struct ws_predicted p[] = {{110, 1, 150}, {180, 3, NAN}, {80, NAN, NAN}};
    struct ws_score s;
    struct ws_score_app apps[2];
    assert_int_equal(ws_score(v, p, 3, WS_SCORE_POWER, 2, &s, apps), 0);
    near(s.mean, (10 + 10 + 60) / 3.0, 1e-9);
    near(s.median, 10, 1e-9);
    near(s.worst, 60, 1e-9);
    assert_int_equal(s.worst_app, 1);
    assert_true(fabs(apps[0].bias) < 1e-9 && fabs(apps[0].mean - 10) < 1e-9);
    assert_int_equal(ws_score(v, p, 3, WS_SCORE_TIME, 2, &s, apps), 0);
    assert_int_equal(s.n, 1);
    near(s.mean, 50, 1e-9);
    assert_int_equal(ws_score(v, p, 3, WS_SCORE_ENERGY, 2, &s, apps), 0);
    near(s.mean, 25, 1e-9);
}

/* ---- files ---- */

static int read_text(struct ws_measured_set *s, char *text, struct ws_diags *d)
{
    FILE *f = fmemopen(text, strlen(text), "r");
    assert_non_null(f);
    int r = ws_measured_read(s, f, "in.csv", &gpu, d);
    fclose(f);
    return r;
}

static void launches_are_read(void **state)
{
    struct ws_measured_set s = {0};
    struct ws_diags d = WS_DIAGS_NULL;
    char families[] = "source,app,family\nx,a1,a\nx,a2,a\n";
    FILE *f = fmemopen(families, strlen(families), "r");
    assert_int_equal(ws_measured_families(&s, f, "families", &d), 0);
    fclose(f);
    char activity[] = "app,core_mhz,mem_mhz,time_s,power_w,sm_active,fp32_active,fp64_active,"
                      "dram_active,input\n"
                      "a1,1500,5000,0.5,120,0.9,0.25,0,0.5,-n 1\n"
                      "a2,1500,2500,0.5,,0.9,0.25,0,0.5,-n 2\n"
                      "b,1500,2500,0.5,100,,0.25,0,0.5,-n 1\n";
    assert_int_equal(read_text(&s, activity, &d), 0);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.n_left_out, 1);
    assert_int_equal(s.v[0].family, s.v[1].family);
    assert_string_equal(s.inputs[s.v[0].input].name, "-n 1");
    assert_string_equal(s.inputs[s.v[1].input].name, "-n 2");
    assert_true(isnan(s.v[1].power_w));
    /* an SM at work does some things that activity does not show, the less its lanes are free */
    near(s.v[0].e.int_ops, 9 * 0.75 * 0.9 * 20 * 1500e6 * 0.5, 1e-12);
    near(s.v[0].e.fp32_ops, 0.25 * 128 * 20 * 1500e6 * 0.5, 1e-12);
    near(s.v[0].e.dram_sectors, 0.5 * 400e9 * 0.5 / 32, 1e-12);
    near(s.v[1].e.dram_sectors, 0.5 * 200e9 * 0.5 / 32, 1e-12);
    assert_false(s.v[0].e.counted);
    assert_true(isnan(
        ws_calibrate_predict(&gpu, &(struct ws_event_power){.knee = 1}, NULL, &s.v[0]).time_s));
    ws_measured_deinit(&s);
}

/* Counters of a GPU whose loads go through the texture units: what these did beyond is of textures.
 * */
static void textures_are_what_is_left(void **state)
{
    static const char *const columns =
        "app,time_s,inst_executed,inst_integer,inst_fp_32,inst_fp_64,flop_count_sp_special,"
        "shared_load_transactions,shared_store_transactions,shared_load_transactions_per_request,"
        "gld_transactions,gld_transactions_per_request,gst_transactions,l2_read_transactions,"
        "l2_write_transactions,dram_read_transactions,dram_write_transactions,grid_blocks,"
        "sm_efficiency,achieved_occupancy";
    char text[1000];
    struct ws_measured_set s = {0};
    struct ws_diags d = WS_DIAGS_NULL;
    snprintf(text, sizeof(text),
             "%s,tex_cache_transactions\n"
             "plain,1,1e6,0,0,0,0,10,20,1,4000,4,500,2000,0,0,0,40,1,0.5,3000\n"
             "tex,1,1e6,0,0,0,0,10,20,1,4000,4,500,2000,0,0,0,40,1,0.5,20530\n",
             columns);
    assert_int_equal(read_text(&s, text, &d), 0);
    near(s.v[0].e.texture_quads, 0, 0);
    near(s.v[1].e.texture_quads, 16000, 1e-12);
    near(s.v[1].e.l1_sectors, 4000 + 500 + 16000, 1e-12);
    near(s.v[1].e.load_requests, 1000 + 16000 / 8., 1e-12);
    near(s.v[1].e.l2_share, 0.1, 1e-12);
    struct ws_event_need need;
    ws_event_time_need(&gpu, &s.v[1].e, &s.v[1].clocks,
                       &need); /* a texel for each unit and clock */
    near(need.x[WS_EVENT_TIME_TEXTURE], 4 * 16000 / (8 * 20 * 1500e6), 1e-12);
    snprintf(text, sizeof(text), "%s\nfast,1e-8,1e6,0,0,0,0,0,0,1,0,1,0,0,0,0,0,40,1,0.5\n",
             columns);
    assert_int_equal(read_text(&s, text, &d), -EINVAL);
    assert_non_null(strstr(d.v[0].text, "1e-08 s are too short for 1e+06 warp instructions"));
    ws_diags_deinit(&d);
    ws_measured_deinit(&s);
}

/* Other units, other names, another order; cells of which nothing is known; other GPUs' rows. */
static void other_forms_are_read(void **state)
{
    struct ws_measured_set s = {0};
    struct ws_diags d = WS_DIAGS_NULL;
    static char ms[] = "time_ms,dram_active,power_mw,application,fp64_active,gpu,"
                       "sm_active,fp32_active,core_mhz\n"
                       "500,0.5,120000,a,0,X,0.9,0.25,auto\n"
                       "500,0.5,120000,a,0,Y,0.9,0.25,1500\n"
                       "NA,0.5,120000,a,0,X,0.9,0.25,1500\n"
                       "500,0.5,,a,0,X,0.9,<OVERFLOW>,1500\n"
                       "nan,0.5,-,a,0,X,0.9,0.25,1500\n";
    assert_int_equal(read_text(&s, ms, &d), 0);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.n_others, 1);
    assert_int_equal(s.n_left_out, 2);
    assert_string_equal(s.gpu, "X");
    near(s.v[0].time_s, 0.5, 1e-12);
    near(s.v[0].power_w, 120, 1e-12);
    near(s.v[0].clocks.core_mhz, 1500, 0);
    /* shares of units say as much of any time */
    assert_true(isnan(s.v[1].time_s));
    near(s.v[1].e.fp32_ops / s.v[1].rate_time_s, s.v[0].e.fp32_ops / 0.5, 1e-9);
    ws_measured_deinit(&s);
    static char spreadsheet[] =
        "Name; Core_GHz ;\tTIME_NS;power_kW;sm_active;fp32_active;fp64_active;"
        "\"dram_active\";GPU\r\n"
        "\" a;b \"; 1.4 ;5e8;0.12; 90% ;25%;0;0.5;X \r\n";
    assert_int_equal(read_text(&s, spreadsheet, &d), 0);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.apps[0].name, " a;b ");
    assert_string_equal(s.gpu, "X");
    assert_true(s.has_core_clock && !s.has_memory_clock);
    near(s.v[0].clocks.core_mhz, 1400, 1e-12);
    near(s.v[0].time_s, 0.5, 1e-12);
    near(s.v[0].power_w, 120, 1e-12);
    near(s.v[0].e.active, 0.9, 1e-12);
    ws_measured_deinit(&s);
    static char energy[] = "app,time_us,energy_mj,sm_active,fp32_active,fp64_active,"
                           "dram_active\na,2000,180,0.9,0.25,0,0.5\n";
    assert_int_equal(read_text(&s, energy, &d), 0);
    near(s.v[0].power_w, 90, 1e-12);
    ws_measured_deinit(&s);
}

/* Counters that most kernels do not need, and times, may be missing. */
static void missing_counters_are_assumed(void **state)
{
    static char text[] =
        "app,time_s,power_w,inst_executed,inst_integer,inst_fp_32,gld_transactions,"
        "gst_transactions,l2_read_transactions,l2_write_transactions,dram_read_transactions,"
        "dram_write_transactions,grid_blocks\n"
        "a,1e-3,90,1e6,1e7,1e7,4000,500,2000,0,1000,0,10\n"
        "b,,90,1e6,1e7,1e7,4000,500,2000,0,1000,0,40\n";
    struct ws_measured_set s = {.keeps_untimed = true};
    struct ws_diags d = WS_DIAGS_NULL;
    assert_int_equal(read_text(&s, text, &d), 0);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.n_assumed, 9);
    for (size_t i = 0; i < s.n_assumed; i++)
        assert_int_equal(s.assumed[i].n, 2);
    assert_string_equal(s.assumed[0].column, "cf_executed");
    assert_string_equal(s.assumed[0].value, "0");
    assert_false(s.has_core_clock);
    near(s.v[0].e.active, 0.5, 1e-12); /* 10 blocks, 20 SMs */
    near(s.v[1].e.active, 1, 1e-12);
    near(s.v[0].e.load_requests, 1000, 1e-12);
    struct ws_event_time time;
    ws_event_time_init(&time);
    struct ws_event_power power = {.knee = 1, .w[WS_EVENT_POWER_ISSUE] = 1};
    struct ws_predicted p = ws_calibrate_predict(&gpu, &power, &time, &s.v[1]);
    near(p.power_w, p.energy_j / p.time_s, 1e-12);
    ws_measured_deinit(&s);
    assert_int_equal(read_text(&s, text, &d), 0); /* a fit has no use for it */
    assert_int_equal(s.n, 1);
    assert_int_equal(s.n_left_out, 1);
    ws_measured_deinit(&s);
}

/* What nearly every kernel does is a share of what was counted; estimates may need each other. */
static void missing_counters_are_estimated(void **state)
{
    static char text[] =
        "app,time_s,inst_executed,gld_transactions,gst_transactions,sm_efficiency\n"
        "a,1e-3,1e6,4000,500,0.1\n"
        "b,1e-3,1e6,4000,500,0.9\n";
    static char neither[] = "app,time_s,inst_executed,gld_transactions,dram_read_transactions\n";
    struct ws_measured_set s = {0};
    struct ws_diags d = WS_DIAGS_NULL;
    assert_int_equal(read_text(&s, text, &d), 0);
    assert_int_equal(s.n, 2);
    near(s.v[0].e.int_ops, 11e6, 1e-12);
    near(s.v[0].e.fp32_ops, 1.5e6, 1e-12);
    near(s.v[0].e.l2_sectors, 0.6 * 4000 + 500, 1e-12);
    near(s.v[0].e.dram_sectors, 0.45 * 0.6 * 4000 + 0.75 * 500, 1e-12);
    near(s.v[0].e.blocks, 2, 1e-12); /* a tenth of 20 SMs */
    near(s.v[1].e.blocks, 0, 1e-12); /* not known, and no SM is without one */
    bool told = false;
    for (size_t i = 0; i < s.n_assumed; i++)
        told |= !strcmp(s.assumed[i].column, "dram_read_transactions") &&
                !strcmp(s.assumed[i].value, "0.45 x l2_read_transactions");
    assert_true(told);
    ws_measured_deinit(&s);
    assert_int_equal(read_text(&s, neither, &d), -EINVAL); /* stores: neither of the two counts */
    assert_int_equal(d.n, 3);                              /* what is written to DRAM needs them */
    assert_non_null(strstr(d.v[0].text, "gst_transactions is missing"));
    assert_non_null(strstr(d.v[1].text, "l2_write_transactions is missing"));
    ws_diags_deinit(&d);
    ws_measured_deinit(&s);
}

static void wrong_rows_are_named(void **state)
{
    static const struct {
        const char *text;
        uint32_t line;
        const char *want;
    } rows[] = {
        {"app,time_s\na,1\n", 1, "no counters"},
        {"app,time_s,sm_active,fp32_active,dram_active\n", 1, "fp64_active is missing"},
        {"time_s,sm_active,fp32_active,fp64_active,dram_active\n", 1,
         "column app (or application, benchmark, program, name, kernel) is missing"},
        {"app,sm_active,fp32_active,fp64_active,dram_active\n", 1, "no time (time_s"},
        {"app,time_s,inst_executed,inst_integer\n", 1, "gld_transactions is missing"},
        {"app,time_s,sm_active,fp32_active,fp64_active,dram_active\na,1,1,1,1,1\n"
         "b,quick,1,1,1,1\n",
         3, "quick"},
        {"app,time_s,sm_active,fp32_active,fp64_active,dram_active\na,1,1,1,1,-1\n", 2, "-1"},
        {"app,time_s,sm_active,fp32_active,fp64_active,dram_active\na,0,1,1,1,1\n", 2, "0"},
        {"app,time_s,sm_active,fp32_active,fp64_active,dram_active\na,1,1\n", 2, "cells"},
        {"app,time_s,sm_active,fp32_active,fp64_active,dram_active\na,1,90,1,1,1\n", 2,
         "sm_active: 90 is out of range; expected 0 to 1"},
        {"app,core_mhz,time_s,sm_active,fp32_active,fp64_active,dram_active\na,1.4,1,1,1,1,1\n", 2,
         "core_mhz: 1.4"},
        {"app,power_w,time_s,sm_active,fp32_active,fp64_active,dram_active\na,95000,1,1,1,1,1\n", 2,
         "power_w: 95000"},
        {"app,time_us,sm_active,fp32_active,fp64_active,dram_active\na,-3,1,1,1,1\n", 2,
         "time_us: -3 is out of range"},
        {"app,time,sm_active,fp32_active,fp64_active,dram_active\n", 1,
         "column time does not say its unit; expected one of time_s, time_ms"},
        {"app,core_clock,time_s,sm_active,fp32_active,fp64_active,dram_active\n", 1,
         "expected one of core_clock_mhz"},
        {"app,time_s,app,sm_active,fp32_active,fp64_active,dram_active\n", 1,
         "two columns have the name app"},
        {"app,time_s,sm_active,fp32_active,fp64_active,dram_active\n,1,1,1,1,1\n", 2,
         "app is empty"},
        {"app,time_s,sm_active,fp32_active,fp64_active,dram_active\n\"a,1,1,1,1,1\n", 2,
         "a quote (\") is not closed"},
        {"app,time_s\ra,1\r", 1, "lines end with CR alone"},
        {"\xff\xfe", 1, "UTF-16"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ws_measured_set s = {0};
        struct ws_diags d = WS_DIAGS_NULL;
        char text[300];
        snprintf(text, sizeof(text), "%s", rows[i].text);
        assert_int_equal(read_text(&s, text, &d), -EINVAL);
        print_message("  %s:%u: %s\n", d.v[0].file, d.v[0].line, d.v[0].text);
        assert_int_equal(d.v[0].line, rows[i].line);
        assert_non_null(strstr(d.v[0].text, rows[i].want));
        ws_diags_deinit(&d);
        ws_measured_deinit(&s);
    }
}

/* However many rows are wrong, none of them is taken for a good one. */
static void many_wrong_rows_are_all_wrong(void **state)
{
    enum { N = 2 * WS_DIAGS_MAX };
    struct ws_measured_set s = {0};
    struct ws_diags d = WS_DIAGS_NULL;
    char text[100 + 30 * N] = "app,time_s,power_w,sm_active,fp32_active,fp64_active,dram_active\n";
    for (int i = 0; i < N; i++)
        strcat(text, "a,1,much,0.5,0.5,0.5,0.5\n");
    assert_int_equal(read_text(&s, text, &d), -EINVAL);
    assert_int_equal(ws_diags_count(&d), N);
    assert_int_equal(s.n, 0);
    ws_diags_deinit(&d);
    ws_measured_deinit(&s);
}

static char *text_of(const char *path)
{
    static char text[2][8192];
    static int at;
    at = !at;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[at][fread(text[at], 1, sizeof(text[at]) - 1, f)] = 0;
    fclose(f);
    return text[at];
}

/* What an entry says without looking at kernels: made_power() without kernels, and what SMs add. */
static void plain_powers_are_those_of_the_fit(void **state)
{
    struct ws_event_power p = {.knee = 1, .w = {10, 20, 30, 40}};
    struct ws_measured_launch v[] = {
        {.e = {.active = 1}, .clocks = {1500, 5000}, .rate_time_s = 1, .power_w = 160},
        {.e = {.active = 0.5}, .clocks = {750, 2500}, .rate_time_s = 1, .power_w = 60},
        {.e = {.active = 1}, .clocks = {1500, 5000}, .rate_time_s = 1, .power_w = NAN},
    };
    struct ws_fit_plain plain = ws_fit_entry_plain(&gpu, &p, v, 3);
    near(plain.static_w, 10 + 20 + 30, 1e-12);
    near(plain.dynamic_w_per_sm, (100 + 60 - (10 + 10 + 15)) / (20 + 0.25 * 20), 1e-12);
}

static void entry_is_written(void **state)
{
    static const char before[] =
        "# a comment\ngpu other {\n    power_static_mw = 1\n}\n"
        "gpu mine {\n    sms = 3\n    static_mw = 9\n    uncalibrated = \"x\"\n"
        "    power_static_mw = 2\n    # kept\n}\n";
    char path[] = "/tmp/ws_entry_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, before, strlen(before)) == (ssize_t)strlen(before));
    close(fd);
    struct ws_event_power p = {.knee = 0.8, .slope = 0.6, .w = {10.5}};
    p.w[WS_EVENT_POWER_DRAM] = 1.25;
    const struct ws_fit_plain plain = {12.5, 1.5};
    struct ws_event_time t;
    ws_event_time_init(&t);
    assert_int_equal(ws_fit_entry_write(path, "none", &plain, &p, &t, "x"), -ENOENT);
    assert_string_equal(text_of(path), before);
    assert_int_equal(ws_fit_entry_write(path, "mine", &plain, &p, &t, "power 1 %"), 0);
    char *after = text_of(path);
    assert_memory_equal(after, before, strstr(before, "gpu mine") - before);
    const char *mine = strstr(after, "gpu mine");
    static const char *const lines[] = {"    sms = 3\n",
                                        "    # kept\n",
                                        "    calibrated = \"power 1 %\"\n",
                                        "    voltage_slope_milli = 600\n",
                                        "    power_static_mw = 10500\n",
                                        "    energy_dram_fj = 1250000\n",
                                        "    static_mw = 12500\n",
                                        "    idle_mw_per_sm = 0\n",
                                        "    dynamic_mw_per_sm = 1500\n",
                                        "    time_dram_milli = 880\n"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_non_null(strstr(mine, lines[i]));
    assert_null(strstr(mine, "power_static_mw = 2\n"));
    assert_null(strstr(mine, "static_mw = 9\n"));
    assert_null(strstr(mine, "uncalibrated"));
    assert_int_equal(ws_fit_entry_write(path, "mine", &plain, &p, &t, "power 1 %"), 0);
    assert_string_equal(text_of(path), after);
    unlink(path);

    const struct ws_gpu_spec spec = {.voltage_knee_milli = 800,
                                     .voltage_slope_milli = 600,
                                     .power_static_mw = 10500,
                                     .energy_dram_fj = 1250000,
                                     .time_dram_milli = 700};
    struct ws_event_power q;
    assert_true(ws_fit_entry_models(&spec, &q, &t));
    assert_memory_equal(&q, &p, sizeof(q));
    near(t.v[WS_EVENT_TIME_DRAM], 0.7, 1e-12);
    assert_false(ws_fit_entry_models(&(struct ws_gpu_spec){0}, &q, &t));
}

/* Whatever a launch does, what the catalog's entries predict is possible: a power between that of
 * nothing running and the board's limit, and no unit faster than its peak. */
static void predictions_are_possible(void **state)
{
    const char *src = getenv("srcdir");
    char path[512];
    struct ws_catalog c = WS_CATALOG_NULL;
    snprintf(path, sizeof(path), "%s/conf/gpu.d", src ? src : ".");
    assert_int_equal(ws_catalog_load(&c, path, NULL), 0);
    int n_fitted = 0, n_capped = 0;
    for (size_t g = 0; g < c.n; g++) {
        struct ws_event_power power;
        struct ws_event_time time;
        struct ws_event_gpu is = ws_fit_entry_gpu(&c.v[g]);
        if (!ws_fit_entry_models(&c.v[g], &power, &time))
            continue;
        n_fitted++;
        for (int i = 0; i < 5000; i++) {
            struct ws_measured_launch l = {
                .clocks = {is.reference.core_mhz * draw(0.3, 1.5),
                           is.reference.memory_mhz * draw(0.3, 1.5)},
                .e = {.counted = true, .active = draw(0, 1), .warps_per_sm = draw(0, 64)}};
            double *events[] = {&l.e.warp_instructions,
                                &l.e.flow_instructions,
                                &l.e.int_ops,
                                &l.e.fp32_ops,
                                &l.e.fp64_ops,
                                &l.e.sfu_ops,
                                &l.e.shared_transactions,
                                &l.e.l1_sectors,
                                &l.e.l2_sectors,
                                &l.e.dram_sectors,
                                &l.e.load_requests,
                                &l.e.blocks};
            for (size_t k = 0; k < sizeof(events) / sizeof(events[0]); k++)
                *events[k] = draw(0, 1) < 0.3 ? 0 : exp(draw(0, 30));
            l.rate_time_s = exp(draw(-14, 0)); /* need not be possible */
            struct ws_predicted p = ws_calibrate_predict(&is, &power, &time, &l);
            double f = l.clocks.core_mhz / is.reference.core_mhz,
                   m = l.clocks.memory_mhz / is.reference.memory_mhz,
                   volt = ws_event_voltage(power.knee, power.slope, f),
                   idle = power.w[WS_EVENT_POWER_STATIC] +
                          m * power.w[WS_EVENT_POWER_MEMORY_CLOCK] +
                          f * volt * volt * power.w[WS_EVENT_POWER_CLOCK];
            double most_w = fmax(is.limit_w, is.raised_w), mean_w = p.energy_j / p.time_s;
            bool lowered = mean_w > 0.999 * most_w;
            assert_true(p.power_w >= fmin(idle, most_w) * (1 - 1e-9));
            assert_true(p.power_w <= most_w * (1 + 1e-9) && mean_w <= most_w * (1 + 1e-9));
            assert_true(lowered || mean_w >= idle * (1 - 1e-9));
            n_capped += lowered;
            double sms = l.e.blocks > 0 ? fmin(is.n_sms, l.e.blocks) : is.n_sms,
                   hz = sms * l.clocks.core_mhz * 1e6;
            double least[] = {l.e.warp_instructions / (is.schedulers * hz),
                              l.e.fp32_ops / (is.fp32_lanes * hz),
                              l.e.int_ops / (is.int_lanes * hz),
                              l.e.fp64_ops / (is.fp64_lanes * hz),
                              l.e.sfu_ops / (is.sfu_lanes * hz),
                              l.e.shared_transactions / hz,
                              l.e.dram_sectors * 32 / (is.memory_bytes_per_s * m)};
            for (size_t k = 0; k < sizeof(least) / sizeof(least[0]); k++)
                assert_true(p.time_s >= least[k] * (1 - 1e-9));
        }
    }
    assert_true(n_fitted >= 6);
    assert_true(n_capped > 0); /* the limit was tried */
    ws_catalog_deinit(&c);
}

/* Launches at settings that slow down the core by one share and the memory by another; families are
 * off by numbers of their own, and one of them is far off at one setting. */
static void effects_are_told_apart(void **state)
{
    enum { SETTINGS = 4, N = FAMILIES * SETTINGS };
    static const double made[WS_EFFECTS][SETTINGS] = {{0.1, -0.1, 0, 0}, {-0.2, 0.1, 0.1, 0}};
    struct ws_effects_launch v[N];
    double core[SETTINGS + 1], memory[SETTINGS + 1];
    random_state = 5;
    for (int family = 0; family < FAMILIES; family++) {
        double own = draw(-0.5, 0.5), share = draw(0, 1);
        for (int s = 0; s < SETTINGS; s++)
            v[family * SETTINGS + s] = (struct ws_effects_launch){
                .off = own + (1 - share) * made[0][s] + share * made[1][s],
                .x = {1 - share, share},
                .weight = 10,
                .family = family,
                .setting = s};
    }
    v[N - 1].off += 3;
    /* A setting that nobody was measured at does nothing. */
    assert_int_equal(
        ws_effects_find(v, N, FAMILIES, SETTINGS + 1, 0.05, (double *const[]){core, memory}), 0);
    for (int s = 0; s < SETTINGS; s++) {
        assert_true(fabs(core[s] - made[0][s]) < 0.02);
        assert_true(fabs(memory[s] - made[1][s]) < 0.02);
    }
    assert_true(core[SETTINGS] == 0 && memory[SETTINGS] == 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_is_the_formula),
        cmocka_unit_test(launches_at_the_limit_take_no_part),
        cmocka_unit_test(power_is_found_again),
        cmocka_unit_test(expectations_fill_gaps),
        cmocka_unit_test(time_is_the_formula),
        cmocka_unit_test(time_is_found_again),
        cmocka_unit_test(left_out_families_are_predicted),
        cmocka_unit_test(scores_by_hand),
        cmocka_unit_test(launches_are_read),
        cmocka_unit_test(other_forms_are_read),
        cmocka_unit_test(missing_counters_are_assumed),
        cmocka_unit_test(missing_counters_are_estimated),
        cmocka_unit_test(wrong_rows_are_named),
        cmocka_unit_test(many_wrong_rows_are_all_wrong),
        cmocka_unit_test(textures_are_what_is_left),
        cmocka_unit_test(plain_powers_are_those_of_the_fit),
        cmocka_unit_test(entry_is_written),
        cmocka_unit_test(predictions_are_possible),
        cmocka_unit_test(effects_are_told_apart),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

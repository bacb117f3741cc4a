// SPDX-License-Identifier: Apache-2.0
/* models: DVFS optima against an exhaustive search that uses no theorem, the paper's worked
 * numbers, fits of samples made from known parameters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "papers/fit/fit.h"
#include "papers/fit/nnls.h"

/* Small and ours: xorshift, so that cases are the same everywhere. */
static double unit(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return (double)(*s >> 11) * 0x1p-53;
}

/* ---- optimum ---- */

static void curve(void **state)
{
    const double v[] = {0.5, 0.8, 1, 1.2, 1.24, 1.25};
    const double f[] = {0.5, 0.887298, 1, 1.091608, 1.108276, 1.112372};
    for (size_t i = 0; i < WS_ARRAY_SIZE(v); i++) {
        assert_true(fabs(ws_dvfs_g1(v[i]) - f[i]) < 1e-6);
        assert_true(fabs(ws_dvfs_g1_inverse(ws_dvfs_g1(v[i])) - v[i]) < 1e-12);
    }
}

/* Mei et al., Table 3 (P0 100, gamma 0, c 200, t0 5, D 25; J1's printed 125.23 W is a solver that
 * stopped short of the corner) and the constants of Fig. 3. */
static void worked_numbers(void **state)
{
    static const struct {
        double gamma, c, delta, limit;
        double v, fc, p, t, t_min;
    } rows[] = {{0, 200, 0, 50, 0.5, 0.5, 125.0, 25.8333, 25.833},
                {0, 200, 1, 36, 0.68783, 0.80645, 176.307, 36, 27.902},
                {0, 200, 0.5, 60, 0.53093, 0.62436, 135.200, 35.4372, 26.868},
                {0, 200, 0.8, 100, 0.55656, 0.66816, 141.393, 39.0996, 27.488},
                {0, 200, 0.2, 300, 0.50382, 0.54372, 127.603, 30.8626, 26.247},
                {50, 150, 0.5, INFINITY, 0.581347, 0.701677, 195.571237, 33.231141, 26.868}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        struct ws_dvfs_task task = {100, rows[i].gamma, rows[i].c, 5, 25, rows[i].delta};
        struct ws_dvfs_point p;
        assert_int_equal(ws_dvfs_optimum(&task, &ws_dvfs_wide, rows[i].limit, &p), 0);
        assert_true(fabs(p.v - rows[i].v) < 1e-5);
        assert_true(fabs(p.fc - rows[i].fc) < 1e-5);
        assert_true(fabs(p.fm - 1.2) < 1e-12);
        assert_true(fabs(p.p - rows[i].p) < 1e-3);
        assert_true(fabs(p.t - rows[i].t) < 1e-4);
        assert_true(fabs(ws_dvfs_t_min(&task, &ws_dvfs_wide) - rows[i].t_min) < 1e-3);
    }
    struct ws_dvfs_task task = {100, 50, 150, 5, 25, 0.5};
    struct ws_dvfs_point p, d = ws_dvfs_default(&task);
    assert_int_equal(ws_dvfs_optimum(&task, &ws_dvfs_wide, INFINITY, &p), 0);
    assert_true(fabs(p.e - 6499.0554) < 1e-4);
    assert_true(fabs(d.e - 9000) < 1e-9);
}

struct box {
    double lo[3], hi[3];
};

/* The least energy over voltage, core and memory clock within the limit: a grid over all three,
 * again and again around the best. */
static double brute(const struct ws_dvfs_task *task, const struct ws_dvfs_interval *iv,
                    double limit)
{
    enum { N = 24, LEVELS = 14 };
    const struct box all = {{iv->v_min, iv->fc_min, iv->fm_min},
                            {iv->v_max, ws_dvfs_g1(iv->v_max), iv->fm_max}};
    struct box b = all;
    double best = INFINITY, at[3] = {0};
    for (int level = 0; level < LEVELS; level++) {
        for (int i = 0; i < (N + 1) * (N + 1) * (N + 1); i++) {
            const int k[] = {i % (N + 1), i / (N + 1) % (N + 1), i / (N + 1) / (N + 1)};
            double x[3];
            for (int a = 0; a < 3; a++)
                x[a] = b.lo[a] + (b.hi[a] - b.lo[a]) * k[a] / N;
            if (x[1] > ws_dvfs_g1(x[0]))
                x[1] = fmax(ws_dvfs_g1(x[0]), iv->fc_min); /* the edge itself, too */
            if (x[1] > ws_dvfs_g1(x[0]) + 1e-12 || ws_dvfs_time(task, x[1], x[2]) > limit)
                continue;
            double e = ws_dvfs_time(task, x[1], x[2]) * ws_dvfs_power(task, x[0], x[1], x[2]);
            if (e < best) {
                best = e;
                memcpy(at, x, sizeof(at));
            }
        }
        if (isinf(best))
            return best;
        for (int a = 0; a < 3; a++) {
            double reach = (b.hi[a] - b.lo[a]) * 5 / N;
            b.lo[a] = fmax(all.lo[a], at[a] - reach);
            b.hi[a] = fmin(all.hi[a], at[a] + reach);
        }
    }
    return best;
}

/* No setting found by search beats ours, and ours keeps the interval and the limit. */
static void beats_search(void **state)
{
    const struct ws_dvfs_interval floor = {0.7, 1.3, 0.55, 0.4, 1.3}, slow = {0.5, 0.9, 0.3, 1, 1};
    const struct ws_dvfs_interval *const ivs[] = {&ws_dvfs_wide, &ws_dvfs_narrow, &floor, &slow};
    uint64_t s = 88172645463325252U;
    for (int i = 0; i < 60; i++) {
        const struct ws_dvfs_interval *iv = ivs[i % 4];
        struct ws_dvfs_task task = {
            100 * unit(&s), i % 7 ? 60 * unit(&s) : 0, 150 * unit(&s), i % 5 ? 5 * unit(&s) : 0, 25,
            unit(&s)};
        task.delta = i % 11 == 3 ? 0 : i % 13 == 5 ? 1 : task.delta;
        double limit = i % 3 ? ws_dvfs_t_min(&task, iv) * (1 + 0.5 * unit(&s)) : INFINITY;
        struct ws_dvfs_point p;
        assert_int_equal(ws_dvfs_optimum(&task, iv, limit, &p), 0);
        assert_true(p.v >= iv->v_min && p.v <= iv->v_max + 1e-12);
        assert_true(p.fc >= iv->fc_min && p.fc <= ws_dvfs_g1(p.v) + 1e-12);
        assert_true(p.fm >= iv->fm_min && p.fm <= iv->fm_max);
        assert_true(p.t <= limit);
        assert_true(fabs(p.e - p.p * p.t) <= 1e-12 * p.e);
        double found = brute(&task, iv, limit);
        if (!(p.e <= found * (1 + 1e-9)))
            fail_msg("case %d: ours %.12g, search %.12g", i, p.e, found);
        if (isinf(limit) && !(found <= p.e * (1 + 1e-6)))
            fail_msg("case %d: the search (%.12g) is no check of %.12g", i, found, p.e);
    }
}

/* A limit below the unconstrained length is used up wholly; one below the shortest length is
 * refused. */
static void limits(void **state)
{
    uint64_t s = 42;
    for (int i = 0; i < 2000; i++) {
        const struct ws_dvfs_interval *iv = i & 1 ? &ws_dvfs_wide : &ws_dvfs_narrow;
        struct ws_dvfs_task task = {
            1 + 100 * unit(&s), 60 * unit(&s), 1 + 150 * unit(&s), 5 * unit(&s), 25, unit(&s)};
        struct ws_dvfs_point best, p;
        double t_min = ws_dvfs_t_min(&task, iv);
        assert_int_equal(ws_dvfs_optimum(&task, iv, INFINITY, &best), 0);
        double limit = t_min + (best.t - t_min) * unit(&s);
        assert_int_equal(ws_dvfs_optimum(&task, iv, limit, &p), 0);
        assert_true(fabs(p.t - limit) < 1e-9 * limit);
        assert_true(p.e >= best.e * (1 - 1e-12));
        assert_int_equal(ws_dvfs_optimum(&task, iv, best.t * (1 + unit(&s)), &p), 0);
        assert_true(fabs(p.e - best.e) <= 1e-13 * best.e);
        p.e = -1;
        assert_int_equal(ws_dvfs_optimum(&task, iv, t_min * 0.999, &p), WS_DVFS_E_LIMIT);
        assert_true(p.e == -1);
        assert_int_equal(ws_dvfs_optimum(&task, iv, NAN, &p), WS_DVFS_E_LIMIT);
    }
}

static void intervals(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {{"wide", NULL},
                {"Narrow", NULL},
                {"0.5:1.2,0.5,0.5:1.2", NULL},
                {"0.9:0.9,0.2,1:1", NULL},
                {"", "wide, narrow"},
                {"0.5:1.2,0.5", "wide, narrow"},
                {"0.5:1.2,0.5,0.5:1.2x", "wide, narrow"},
                {"0.4:1.2,0.5,0.5:1.2", "V_MIN"},
                {"0.5:6,0.5,0.5:1.2", "V_MAX"},
                {"1.3:1.2,0.5,0.5:1.2", "V_MIN: 1.3 is above V_MAX"},
                {"0.5:1.2,1.2,0.5:1.2", "FC_MIN: 1.2 is above g1(V_MAX)"},
                {"0.5:1.2,0,0.5:1.2", "FC_MIN"},
                {"0.5:1.2,0.5,-1:1.2", "FM_MIN"},
                {"0.5:1.2,0.5,1.3:1.2", "FM_MIN: 1.3 is above FM_MAX"},
                {"nan:1.2,0.5,0.5:1.2", "V_MIN"},
                {"0.5:nan,0.5,0.5:1.2", "V_MAX"},
                {"0.5:1.2,nan,0.5:1.2", "FC_MIN"},
                {"0.5:1.2,0.5,0.5:inf", "FM_M"}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        struct ws_dvfs_interval iv = {0};
        char error[200] = "";
        int r = ws_dvfs_interval_parse(rows[i].text, &iv, error, sizeof(error));
        assert_int_equal(r, rows[i].want ? WS_DVFS_E_INTERVAL : 0);
        if (rows[i].want && !strstr(error, rows[i].want))
            fail_msg("'%s': %s", rows[i].text, error);
        if (rows[i].want)
            assert_true(iv.v_max == 0);
        assert_int_equal(ws_dvfs_interval_parse(rows[i].text, &iv, NULL, 0), r);
    }
}

static void tasks(void **state)
{
    const struct ws_dvfs_task good = {1, 1, 1, 1, 1, 1};
    char error[100];
    assert_int_equal(ws_dvfs_task_check(&good, error, sizeof(error)), 0);
    static const char *const names[] = {"P0", "gamma", "c", "t0", "D", "delta"};
    const double bad[] = {-1, NAN, INFINITY};
    for (size_t i = 0; i < WS_ARRAY_SIZE(names); i++)
        for (size_t k = 0; k < WS_ARRAY_SIZE(bad); k++) {
            struct ws_dvfs_task t = good;
            memcpy((char *)&t + i * sizeof(double), &bad[k], sizeof(double));
            assert_int_equal(ws_dvfs_task_check(&t, error, sizeof(error)), WS_DVFS_E_TASK);
            assert_true(!strncmp(error, names[i], strlen(names[i])));
        }
    struct ws_dvfs_task none = {.p0 = 1};
    assert_int_equal(ws_dvfs_task_check(&none, error, sizeof(error)), WS_DVFS_E_TASK);
}

/* ---- least squares and fits ---- */

static double residual(const double x[][3], const double *y, int n, const double w[3])
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double d = y[i];
        for (int k = 0; k < 3; k++)
            d -= x[i][k] * w[k];
        sum += d * d;
    }
    return sum;
}

/* The solution meets the conditions of optimality: no gradient where w > 0, none downhill where
 * w = 0. */
static void nnls_conditions(void **state)
{
    enum { N = 8 };
    uint64_t s = 7;
    int n_bound = 0;
    for (int trial = 0; trial < 300; trial++) {
        double x[N][3], y[N], w[3], penalty = trial % 3 ? 0 : unit(&s);
        struct ws_nnls q = {0};
        for (int i = 0; i < N; i++) {
            for (int k = 0; k < 3; k++)
                x[i][k] = unit(&s) - 0.3;
            y[i] = unit(&s) - 0.4;
            ws_nnls_add(&q, x[i], y[i], 1);
        }
        assert_int_equal(ws_nnls_solve(&q, true, penalty, w), 0);
        for (int k = 0; k < 3; k++) {
            double gradient = penalty;
            for (int i = 0; i < N; i++)
                gradient -= x[i][k] * (y[i] - x[i][0] * w[0] - x[i][1] * w[1] - x[i][2] * w[2]);
            assert_true(w[k] >= 0);
            n_bound += w[k] == 0;
            assert_true(w[k] > 0 ? fabs(gradient) < 1e-10 : gradient > -1e-10);
        }
        double free_w[3];
        assert_int_equal(ws_nnls_solve(&q, false, 0, free_w), 0);
        assert_true(residual(x, y, N, free_w) <= residual(x, y, N, w) + 1e-12);
    }
    assert_true(n_bound > 50); /* bounds were met at all */
}

static int make_samples(const struct ws_dvfs_task *t, struct ws_fit_sample *s)
{
    int n = 0;
    for (int c = 0; c < 5; c++)
        for (int m = 0; m < 4; m++) {
            double fc = 0.88 + 0.05 * c, fm = 0.8 + 0.1 * m, v = ws_dvfs_g1_inverse(fc);
            s[n++] = (struct ws_fit_sample){.fc = fc,
                                            .fm = fm,
                                            .v = c & 1 ? v : NAN,
                                            .time = ws_dvfs_time(t, fc, fm),
                                            .power = ws_dvfs_power(t, v, fc, fm)};
        }
    return n;
}

static void fit_finds_parameters(void **state)
{
    uint64_t r = 99;
    for (int i = 0; i < 100; i++) {
        struct ws_dvfs_task t = {10 + 100 * unit(&r), 5 + 50 * unit(&r), 5 + 50 * unit(&r),
                                 0.1 + unit(&r),      1 + 9 * unit(&r),  unit(&r)},
                            f;
        struct ws_fit_sample s[20], scratch[20];
        char error[200];
        int n = make_samples(&t, s);
        for (int m = WS_FIT_NNLS; m <= WS_FIT_OLS; m++) {
            assert_int_equal(ws_fit(s, n, (enum ws_fit_method)m, &f, error, sizeof(error)), 0);
            assert_true(fabs(f.p0 - t.p0) < 1e-7 && fabs(f.gamma - t.gamma) < 1e-7);
            assert_true(fabs(f.c - t.c) < 1e-7 && fabs(f.t0 - t.t0) < 1e-8);
            assert_true(fabs(f.d - t.d) < 1e-8 && fabs(f.delta - t.delta) < 1e-7);
        }
        struct ws_fit_error e = ws_fit_error(&t, s, n);
        assert_int_equal(e.n, 20);
        assert_true(e.max_energy < 1e-10 && e.rmse_power < 1e-10);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(ws_fit_leave_out(s, n, WS_FIT_NNLS, (enum ws_fit_clock)k, scratch, &e,
                                              error, sizeof(error)),
                             0);
            assert_int_equal(e.n, 20);
            assert_true(e.mape_energy < 1e-6);
        }
        /* The released estimator is drawn towards 0. */
        assert_int_equal(ws_fit(s, n, WS_FIT_LASSO_POS, &f, error, sizeof(error)), 0);
        assert_true(f.t0 + f.d < t.t0 + t.d);
    }
    /* One of twenty times 20 % off shows in the error as it must: 100·(1 - 1/1.2) % there. */
    struct ws_dvfs_task t = {100, 50, 20, 1, 10, 0.5};
    struct ws_fit_sample s[20];
    int n = make_samples(&t, s);
    s[3].time *= 1.2;
    struct ws_fit_error e = ws_fit_error(&t, s, n);
    assert_true(fabs(e.max_time - 100 * (1 - 1 / 1.2)) < 1e-9);
    assert_true(fabs(e.mape_time - e.max_time / 20) < 1e-9);
    assert_true(e.max_power < 1e-9);
}

static void fit_refuses(void **state)
{
    struct ws_dvfs_task t = {100, 50, 20, 1, 10, 0.5}, f = {0};
    struct ws_fit_sample s[20], few[20], scratch[20];
    char error[200];
    int n = make_samples(&t, s), m = 0;
    assert_int_equal(ws_fit(s, 0, WS_FIT_NNLS, &f, error, sizeof(error)), WS_FIT_E_SINGULAR);
    assert_int_equal(ws_fit(s, 2, WS_FIT_NNLS, &f, error, sizeof(error)), WS_FIT_E_SINGULAR);
    assert_non_null(strstr(error, "2 samples; expected at least 3"));
    assert_int_equal(ws_fit(s, 4, WS_FIT_OLS, &f, error, sizeof(error)), WS_FIT_E_SINGULAR);
    assert_non_null(strstr(error, "core clock 0.88"));
    for (int i = 0; i < n; i += 4)
        few[m++] = s[i];
    assert_int_equal(ws_fit(few, m, WS_FIT_NNLS, &f, error, sizeof(error)), WS_FIT_E_SINGULAR);
    assert_non_null(strstr(error, "memory clock 0.8"));
    for (int i = 0; i < n; i++) {
        few[i] = s[i];
        few[i].fm = few[i].fc;
    }
    assert_int_equal(ws_fit(few, n, WS_FIT_NNLS, &f, error, sizeof(error)), WS_FIT_E_SINGULAR);
    assert_non_null(strstr(error, "independently"));
    assert_true(f.d == 0); /* untouched */
    struct ws_fit_error e;
    assert_int_equal(
        ws_fit_leave_out(s, 8, WS_FIT_NNLS, WS_FIT_CORE_CLOCK, scratch, &e, error, sizeof(error)),
        WS_FIT_E_SINGULAR); /* without one of two core clocks one is left */
    s[0].power = -1;
    assert_int_equal(ws_fit_sample_check(&s[0], error, sizeof(error)), WS_FIT_E_SAMPLE);
    assert_true(!strncmp(error, "power", 5));
    s[1].fc = NAN;
    assert_int_equal(ws_fit_sample_check(&s[1], error, sizeof(error)), WS_FIT_E_SAMPLE);
    assert_true(!strncmp(error, "fc", 2));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(curve),           cmocka_unit_test(worked_numbers),
        cmocka_unit_test(beats_search),    cmocka_unit_test(limits),
        cmocka_unit_test(intervals),       cmocka_unit_test(tasks),
        cmocka_unit_test(nnls_conditions), cmocka_unit_test(fit_finds_parameters),
        cmocka_unit_test(fit_refuses),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(all, NULL, NULL);
}

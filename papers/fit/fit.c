// SPDX-License-Identifier: Apache-2.0
/* The fit solves two linear problems with three unknowns each: time over (1, 1/fc, 1/fm) and
 * power over (1, fm, V²·fc). */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "papers/fit/fit.h"
#include "papers/fit/nnls.h"

static const char *const names[_WS_FIT_METHOD_N] = {[WS_FIT_NNLS] = "nnls",
                                                    [WS_FIT_NNLS_REL] = "nnls_rel",
                                                    [WS_FIT_OLS] = "ols",
                                                    [WS_FIT_LASSO_POS] = "lasso_pos"};

int ws_fit_method_parse(const char *text)
{
    for (int i = 0; i < _WS_FIT_METHOD_N; i++)
        if (!strcmp(text, names[i]))
            return i;
    return -1;
}

int ws_fit_sample_check(const struct ws_fit_sample *s, char *ret_error, size_t bytes)
{
    const struct {
        const char *name;
        double v;
    } rows[] = {{"fc", s->fc}, {"fm", s->fm}, {"time", s->time}, {"power", s->power}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
        if (!(rows[i].v > 0 && rows[i].v < HUGE_VAL)) {
            snprintf(ret_error, bytes, "%s: %g; expected a number above 0", rows[i].name,
                     rows[i].v);
            return WS_FIT_E_SAMPLE;
        }
    if (!isnan(s->v) && !(s->v > 0 && s->v < HUGE_VAL)) {
        snprintf(ret_error, bytes, "v: %g; expected a voltage above 0", s->v);
        return WS_FIT_E_SAMPLE;
    }
    return 0;
}

static double voltage(const struct ws_fit_sample *s)
{
    return isnan(s->v) ? ws_dvfs_g1_inverse(s->fc) : s->v;
}

/* Why the samples don't determine the parameters. */
static void say_singular(const struct ws_fit_sample *s, int n, const char *what, char *ret_error,
                         size_t bytes)
{
    bool core = true, memory = true;
    for (int i = 1; i < n; i++) {
        core = core && s[i].fc == s[0].fc;
        memory = memory && s[i].fm == s[0].fm;
    }
    if (n < WS_NNLS_N)
        snprintf(ret_error, bytes, "%d samples; expected at least %d", n, WS_NNLS_N);
    else if (core || memory)
        snprintf(ret_error, bytes,
                 "all %d samples are at %s clock %g; expected at least two clocks", n,
                 core ? "core" : "memory", core ? s[0].fc : s[0].fm);
    else
        snprintf(ret_error, bytes,
                 "the clocks of the %d samples do not separate the parts of %s: core and memory "
                 "clocks must vary independently",
                 n, what);
}

static int solve(const struct ws_nnls *q, enum ws_fit_method method, double w[WS_NNLS_N])
{
    double penalty = method == WS_FIT_LASSO_POS ? WS_FIT_LASSO_ALPHA * q->n : 0;
    return ws_nnls_solve(q, method != WS_FIT_OLS, penalty, w);
}

int ws_fit(const struct ws_fit_sample *s, int n, enum ws_fit_method method,
           struct ws_dvfs_task *ret, char *ret_error, size_t bytes)
{
    struct ws_nnls time = {0}, power = {0};
    double w[WS_NNLS_N], p[WS_NNLS_N];
    for (int i = 0; i < n; i++) {
        double v = voltage(&s[i]);
        const double xt[] = {1, 1 / s[i].fc, 1 / s[i].fm}, xp[] = {1, s[i].fm, v * v * s[i].fc};
        bool relative = method == WS_FIT_NNLS_REL;
        ws_nnls_add(&time, xt, s[i].time, relative ? 1 / (s[i].time * s[i].time) : 1);
        ws_nnls_add(&power, xp, s[i].power, relative ? 1 / (s[i].power * s[i].power) : 1);
    }
    if (solve(&time, method, w)) {
        say_singular(s, n, "time", ret_error, bytes);
        return WS_FIT_E_SINGULAR;
    }
    if (solve(&power, method, p)) {
        say_singular(s, n, "power", ret_error, bytes);
        return WS_FIT_E_SINGULAR;
    }
    double d = w[1] + w[2];
    *ret = (struct ws_dvfs_task){
        .p0 = p[0], .gamma = p[1], .c = p[2], .t0 = w[0], .d = d, .delta = d != 0 ? w[1] / d : 0};
    return 0;
}

/* Sums of absolute and squared errors, so that parts can be put together. */
struct error_sums {
    double time, power, energy, time2, power2;
    struct ws_fit_error e;
};

static void add_sample(struct error_sums *a, const struct ws_dvfs_task *task,
                       const struct ws_fit_sample *s)
{
    double t = ws_dvfs_time(task, s->fc, s->fm), p = ws_dvfs_power(task, voltage(s), s->fc, s->fm);
    double et = 100 * fabs(t / s->time - 1), ep = 100 * fabs(p / s->power - 1),
           ee = 100 * fabs(t * p / (s->time * s->power) - 1);
    a->time += et;
    a->power += ep;
    a->energy += ee;
    a->time2 += (t - s->time) * (t - s->time);
    a->power2 += (p - s->power) * (p - s->power);
    a->e.max_time = fmax(a->e.max_time, et);
    a->e.max_power = fmax(a->e.max_power, ep);
    a->e.max_energy = fmax(a->e.max_energy, ee);
    a->e.n++;
}

static struct ws_fit_error finish(const struct error_sums *a)
{
    struct ws_fit_error e = a->e;
    e.mape_time = a->time / e.n;
    e.mape_power = a->power / e.n;
    e.mape_energy = a->energy / e.n;
    e.rmse_time = sqrt(a->time2 / e.n);
    e.rmse_power = sqrt(a->power2 / e.n);
    return e;
}

struct ws_fit_error ws_fit_error(const struct ws_dvfs_task *task, const struct ws_fit_sample *s,
                                 int n)
{
    struct error_sums a = {0};
    for (int i = 0; i < n; i++)
        add_sample(&a, task, &s[i]);
    return finish(&a);
}

int ws_fit_leave_out(const struct ws_fit_sample *s, int n, enum ws_fit_method method,
                     enum ws_fit_clock which, struct ws_fit_sample *scratch,
                     struct ws_fit_error *ret, char *ret_error, size_t bytes)
{
    struct error_sums a = {0};
    bool core = which == WS_FIT_CORE_CLOCK;
    for (int i = 0; i < n; i++) {
        double out = core ? s[i].fc : s[i].fm;
        bool seen = false;
        int m = 0;
        for (int k = 0; k < n; k++) {
            bool same = (core ? s[k].fc : s[k].fm) == out;
            seen = seen || (same && k < i);
            if (!same)
                scratch[m++] = s[k];
        }
        if (seen)
            continue;
        struct ws_dvfs_task task;
        int r = ws_fit(scratch, m, method, &task, ret_error, bytes);
        if (r)
            return r;
        for (int k = 0; k < n; k++)
            if ((core ? s[k].fc : s[k].fm) == out)
                add_sample(&a, &task, &s[k]);
    }
    if (!a.e.n) {
        say_singular(s, n, "time", ret_error, bytes);
        return WS_FIT_E_SINGULAR;
    }
    *ret = finish(&a);
    return 0;
}

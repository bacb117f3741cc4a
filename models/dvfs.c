// SPDX-License-Identifier: Apache-2.0
/* The setting of least energy, by a search in one variable.
 *
 * Idea. Energy rises with V at fixed clocks, so V is as low as the core clock allows: V(fc) =
 * max(v_min, g1⁻¹(fc)). For a core clock the memory clock of least energy is known in closed form,
 * sqrt(a·k / (gamma·b)) with a = p0 + c·V²·fc, b = t0 + d·delta/fc, k = d·(1 - delta); a time limit
 * only raises it to k / (limit - b). What is left is one variable, fc.
 *
 * Invariants.
 * 1. In (log fc, log fm) the logarithm of the energy is convex: time is a sum of exponentials, and
 *    V²·fc is log-convex in log fc because d log V / d log fc = fc·(4fc - 2) / (2fc² - 2fc + 1)
 *    grows up to fc ≈ 2 (V = 5). Sums, products and maxima of log-convex functions are log-convex,
 *    and the time limit cuts out a convex set. So the energy over fc has one minimum: the sign of
 *    its slope changes once, and a bracketing root search finds it. No grid is needed.
 * 2. The search is over fc, never V: g1 has infinite slope at V = 0.5, and a search over V stops
 *    short of that corner.
 * 3. The slope is that of the energy with the best memory clock: where that is free or at a bound
 *    of the interval, the partial derivative at fixed fm (the other part vanishes); where the limit
 *    sets it, time is the limit and only power changes. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "models/dvfs.h"

const struct ws_dvfs_interval ws_dvfs_wide = {
    .v_min = 0.5, .v_max = 1.2, .fc_min = 0.5, .fm_min = 0.5, .fm_max = 1.2};
const struct ws_dvfs_interval ws_dvfs_narrow = {
    .v_min = 0.8, .v_max = 1.24, .fc_min = 0.89, .fm_min = 0.8, .fm_max = 1.1};

#define V_FLOOR   0.5
#define V_CEILING 5.0

double ws_dvfs_g1(double v)
{
    return v <= V_FLOOR ? 0.5 : 0.5 + sqrt((v - 0.5) / 2);
}

double ws_dvfs_g1_inverse(double fc)
{
    return fc <= 0.5 ? V_FLOOR : 0.5 + 2 * (fc - 0.5) * (fc - 0.5);
}

static int refuse(int r, char *ret_error, size_t bytes, const char *fmt, double a, double b)
{
    if (bytes)
        snprintf(ret_error, bytes, fmt, a, b);
    return r;
}

static int check_interval(const struct ws_dvfs_interval *iv, char *ret_error, size_t n)
{
    enum { BAD = WS_DVFS_E_INTERVAL };
    /* Written so that NAN fails. */
    if (!(iv->v_min >= V_FLOOR))
        return refuse(BAD, ret_error, n, "V_MIN: %g; the model begins at V = %g", iv->v_min,
                      V_FLOOR);
    if (!(iv->v_max <= V_CEILING))
        return refuse(BAD, ret_error, n, "V_MAX: %g; the model ends at V = %g", iv->v_max,
                      V_CEILING);
    if (!(iv->v_min <= iv->v_max))
        return refuse(BAD, ret_error, n, "V_MIN: %g is above V_MAX, %g", iv->v_min, iv->v_max);
    if (!(iv->fc_min > 0))
        return refuse(BAD, ret_error, n, "FC_MIN: %g; a core clock above %g is wanted", iv->fc_min,
                      0);
    if (!(iv->fc_min <= ws_dvfs_g1(iv->v_max)))
        return refuse(
            BAD, ret_error, n,
            "FC_MIN: %g is above g1(V_MAX) = %.6g, the highest stable core clock of the interval",
            iv->fc_min, ws_dvfs_g1(iv->v_max));
    if (!(iv->fm_min > 0))
        return refuse(BAD, ret_error, n, "FM_MIN: %g; a memory clock above 0 is wanted", iv->fm_min,
                      0);
    if (!(iv->fm_min <= iv->fm_max && iv->fm_max < INFINITY))
        return refuse(BAD, ret_error, n, "FM_MIN: %g is above FM_MAX, %g", iv->fm_min, iv->fm_max);
    return 0;
}

int ws_dvfs_interval_parse(const char *text, struct ws_dvfs_interval *ret, char *ret_error,
                           size_t n)
{
    if (!strcasecmp(text, "wide") || !strcasecmp(text, "narrow")) {
        *ret = *text == 'w' || *text == 'W' ? ws_dvfs_wide : ws_dvfs_narrow;
        return 0;
    }
    static const char separators[] = ":,,:";
    double v[5];
    const char *s = text;
    for (int i = 0; i < 5; i++) {
        char *end;
        v[i] = strtod(s, &end);
        if (end == s || *end != separators[i]) {
            if (n)
                snprintf(ret_error, n,
                         "interval '%.60s': wide, narrow, or V_MIN:V_MAX,FC_MIN,FM_MIN:FM_MAX is "
                         "wanted (wide is 0.5:1.2,0.5,0.5:1.2)",
                         text);
            return WS_DVFS_E_INTERVAL;
        }
        s = end + 1;
    }
    struct ws_dvfs_interval iv = {v[0], v[1], v[2], v[3], v[4]};
    int r = check_interval(&iv, ret_error, n);
    if (!r)
        *ret = iv;
    return r;
}

int ws_dvfs_task_check(const struct ws_dvfs_task *task, char *ret_error, size_t n)
{
    const struct {
        const char *name;
        double v, max;
    } rows[] = {{"P0", task->p0, HUGE_VAL}, {"gamma", task->gamma, HUGE_VAL},
                {"c", task->c, HUGE_VAL},   {"t0", task->t0, HUGE_VAL},
                {"D", task->d, HUGE_VAL},   {"delta", task->delta, 1}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
        if (!(rows[i].v >= 0 && rows[i].v <= rows[i].max) || isinf(rows[i].v)) {
            if (n)
                snprintf(ret_error, n, "%s: %g; a number from 0%s is wanted", rows[i].name,
                         rows[i].v, rows[i].max == 1 ? " to 1" : "");
            return WS_DVFS_E_TASK;
        }
    if (!(task->t0 + task->d > 0)) {
        if (n)
            snprintf(ret_error, n, "t0 + D: the task takes no time");
        return WS_DVFS_E_TASK;
    }
    return 0;
}

double ws_dvfs_time(const struct ws_dvfs_task *task, double fc, double fm)
{
    return task->t0 + task->d * (task->delta / fc + (1 - task->delta) / fm);
}

double ws_dvfs_power(const struct ws_dvfs_task *task, double v, double fc, double fm)
{
    return task->p0 + task->gamma * fm + task->c * v * v * fc;
}

struct ws_dvfs_point ws_dvfs_at(const struct ws_dvfs_task *task, double v, double fc, double fm)
{
    struct ws_dvfs_point p = {.v = v, .fc = fc, .fm = fm};
    p.t = ws_dvfs_time(task, fc, fm);
    p.p = ws_dvfs_power(task, v, fc, fm);
    p.e = p.p * p.t;
    return p;
}

struct ws_dvfs_point ws_dvfs_default(const struct ws_dvfs_task *task)
{
    return ws_dvfs_at(task, 1, 1, 1);
}

double ws_dvfs_t_min(const struct ws_dvfs_task *task, const struct ws_dvfs_interval *iv)
{
    return ws_dvfs_time(task, ws_dvfs_g1(iv->v_max), iv->fm_max);
}

/* The search's view of one task: the parts that don't change with fc. */
struct search {
    const struct ws_dvfs_task *task;
    const struct ws_dvfs_interval *iv;
    double limit;
    double core, memory; /* d·delta, d·(1 - delta): k of the essay */
};

static double voltage(const struct search *s, double fc)
{
    return fmax(s->iv->v_min, ws_dvfs_g1_inverse(fc));
}

static double memory_clock(const struct search *s, double fc, double v, bool *ret_limited)
{
    const struct ws_dvfs_interval *iv = s->iv;
    double a = s->task->p0 + s->task->c * v * v * fc, b = s->task->t0 + s->core / fc;
    double fm;
    if (s->task->gamma <= 0)
        fm = iv->fm_max; /* costs nothing */
    else if (s->memory <= 0)
        fm = iv->fm_min; /* brings nothing */
    else if (b <= 0)
        fm = iv->fm_max; /* time is all memory: energy falls towards gamma·k */
    else
        fm = sqrt(a * s->memory / (s->task->gamma * b));
    fm = fmin(fmax(fm, iv->fm_min), iv->fm_max);
    *ret_limited = false;
    if (s->memory > 0 && s->limit < INFINITY) {
        double room = s->limit - b, need = room > 0 ? s->memory / room : INFINITY;
        if (need > fm) {
            /* fm_max itself doesn't count: there the limit sets fc (the lowest one searched), and
             * from it on fm is fm_max anyway. */
            *ret_limited = fm < iv->fm_max;
            fm = fmin(need, iv->fm_max);
        }
    }
    return fm;
}

/* The slope of the energy over the core clock, with the best memory clock for each. */
static double slope(const struct search *s, double fc)
{
    const struct ws_dvfs_task *k = s->task;
    bool limited;
    double v = voltage(s, fc), fm = memory_clock(s, fc, v, &limited);
    double v_slope = v > s->iv->v_min ? 4 * (fc - 0.5) : 0;
    double w_slope = v * v + 2 * v * v_slope * fc; /* of V²·fc */
    double t_slope = -s->core / (fc * fc);
    if (limited) {
        double room = s->limit - k->t0 - s->core / fc;
        return k->c * w_slope + k->gamma * s->memory / (room * room) * t_slope;
    }
    return k->c * w_slope * ws_dvfs_time(k, fc, fm) + ws_dvfs_power(k, v, fc, fm) * t_slope;
}

/* Where slope() changes from below to above 0 in [@lo, @hi]: Chandrupatla's method ("A new hybrid
 * quadratic/bisection algorithm", 1997), which halves where the slope isn't smooth (it may jump
 * where V leaves its lower bound). */
static double root(const struct search *s, double lo, double hi)
{
    const double apart = 1e-14;
    double x1 = hi, x2 = lo, f2 = slope(s, lo), f1, t = 0.5;
    if (f2 >= 0)
        return lo;
    f1 = slope(s, hi);
    if (f1 <= 0)
        return hi;
    for (;;) {
        /* x1 is the newest point, x2 the other end of the bracket, x3 the one before. */
        double x = x1 + t * (x2 - x1), f = slope(s, x), x3, f3;
        if ((f > 0) == (f1 > 0)) {
            x3 = x1;
            f3 = f1;
        } else {
            x3 = x2;
            f3 = f2;
            x2 = x1;
            f2 = f1;
        }
        x1 = x;
        f1 = f;
        double least = apart * hi / fabs(x2 - x1);
        if (!(least < 0.5) || f == 0)
            return fmax(x1, f == 0 ? x1
                                   : x2); /* the end surely within a time limit: the higher clock */
        double xi = (x1 - x2) / (x3 - x2), phi = (f1 - f2) / (f3 - f2);
        t = 0.5;
        if (phi * phi < xi && (1 - phi) * (1 - phi) < 1 - xi)
            t = f1 / (f2 - f1) * f3 / (f2 - f3) +
                (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2);
        t = fmin(fmax(t, least), 1 - least);
    }
}

int ws_dvfs_optimum(const struct ws_dvfs_task *task, const struct ws_dvfs_interval *iv,
                    double limit, struct ws_dvfs_point *ret)
{
    struct search s = {.task = task,
                       .iv = iv,
                       .limit = limit,
                       .core = task->d * task->delta,
                       .memory = task->d * (1 - task->delta)};
    double lo = iv->fc_min, hi = ws_dvfs_g1(iv->v_max);
    if (!(ws_dvfs_t_min(task, iv) <= limit))
        return WS_DVFS_E_LIMIT;
    if (limit < INFINITY && s.core > 0) {
        double room = limit - task->t0 - s.memory / iv->fm_max;
        lo = room > 0 ? fmin(fmax(lo, s.core / room), hi) : hi;
    }
    double fc = root(&s, lo, hi);
    bool limited;
    double v = voltage(&s, fc);
    *ret = ws_dvfs_at(task, v, fc, memory_clock(&s, fc, v, &limited));
    if (ret->t > limit) { /* by rounding only */
        ret->t = limit;
        ret->e = ret->p * limit;
    }
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* The power is linear in its numbers once the voltage's curve is given: least squares with numbers
 * of 0 and more, solved by going down each axis in turn, for each curve of a small grid. The time
 * is not linear: Gauss-Newton on the logarithms of its numbers, with steps that are damped until
 * they improve. In both, errors beyond the limit get a smaller weight and the fit is repeated. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/stat.h"
#include "models/event_limit.h"
#include "papers/fit/calibrate.h"

enum { POWER_ROUNDS = 6, TIME_ROUNDS = 4, TIME_STEPS = 40, DESCENT_SWEEPS = 4000 };
#define POWER_LIMIT 0.12 /* relative errors beyond these count by their size */
#define TIME_LIMIT  0.2
#define VOLTAGE_MIN 0.4
#define AT_LIMIT    0.98
/* The voltage of a GPU whose power was measured at one core clock: about the middle of the curves
 * of those that were measured at several. */
#define EXPECTED_KNEE  0.7
#define EXPECTED_SLOPE 0.6

/* ---- weights ---- */

/* Where the board drew what it may, it had lowered its clock, nobody knows to what. */
static bool at_limit(const struct ws_event_gpu *gpu, const struct ws_measured_launch *l)
{
    return l->power_w > AT_LIMIT * ws_event_power_most_w(gpu);
}

/* The weight of each launch; 0 for those that do not take part. */
static int launch_weights(const struct ws_calibrate *c, const int *count, bool for_time,
                          double *ret)
{
    int n_apps = 0;
    for (size_t i = 0; i < c->n; i++)
        n_apps = c->v[i].app >= n_apps ? c->v[i].app + 1 : n_apps;
    double *rows = ws_alloc_array((size_t)c->n_families + 1, sizeof(*rows));
    double *apps = ws_alloc_array((size_t)c->n_families + 1, sizeof(*apps));
    char *seen = ws_alloc_array((size_t)n_apps + 1, 1);
    int r = rows && apps && seen ? 0 : ws_raise(-ENOMEM);
    for (int pass = 0; !r && pass < 2; pass++)
        for (size_t i = 0; i < c->n; i++) {
            const struct ws_measured_launch *l = &c->v[i];
            bool takes_part = !at_limit(c->gpu, l) &&
                              (for_time ? !isnan(l->time_s) && l->e.counted : !isnan(l->power_w));
            if (pass) {
                ret[i] = !takes_part ? 0
                                     : (count ? count[l->family] : 1) * sqrt(apps[l->family]) /
                                           rows[l->family];
                continue;
            }
            rows[l->family] += takes_part;
            apps[l->family] += takes_part && !seen[l->app];
            seen[l->app] |= takes_part;
        }
    free(rows);
    free(apps);
    free(seen);
    return r;
}

/* What is left of a weight where the error is beyond the limit. */
static double robust(double error, double limit)
{
    return fabs(error) > limit ? limit / fabs(error) : 1;
}
static double robust_loss(double error, double limit)
{
    double e = fabs(error);
    return e < limit ? e * e : 2 * limit * e - limit * limit;
}

/* ---- power ---- */

struct normal {
    double xx[WS_EVENT_POWER_N][WS_EVENT_POWER_N], xy[WS_EVENT_POWER_N];
};

static void normal_add(struct normal *q, const double x[WS_EVENT_POWER_N], double y, double weight)
{
    for (int i = 0; i < WS_EVENT_POWER_N; i++) {
        if (x[i] == 0)
            continue;
        for (int k = 0; k < WS_EVENT_POWER_N; k++)
            q->xx[i][k] += weight * x[i] * x[k];
        q->xy[i] += weight * x[i] * y;
    }
}

/* The numbers of 0 and more that are best: the problem is convex, and each sweep is the exact
 * minimum along each axis in turn. */
static void descend(const struct normal *q, double w[WS_EVENT_POWER_N])
{
    for (int sweep = 0; sweep < DESCENT_SWEEPS; sweep++) {
        double moved = 0;
        for (int i = 0; i < WS_EVENT_POWER_N; i++) {
            if (q->xx[i][i] <= 0) {
                w[i] = 0;
                continue;
            }
            double gradient = -q->xy[i];
            for (int k = 0; k < WS_EVENT_POWER_N; k++)
                gradient += q->xx[i][k] * w[k];
            double next = fmax(0, w[i] - gradient / q->xx[i][i]);
            moved = fmax(moved, fabs(next - w[i]) * sqrt(q->xx[i][i]));
            w[i] = next;
        }
        if (moved < 1e-9)
            return;
    }
}

/* Where integer operations are not counted, the SMs at work stand for them. */
static bool counts_integers(const struct ws_calibrate *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].e.int_ops > 0)
            return true;
    return false;
}

/* What is expected, as further rows of the least squares. */
static void expect(const struct ws_calibrate *c, bool memory_clock_varies, struct normal *q)
{
    double x[WS_EVENT_POWER_N];
    for (int i = 0; i < WS_EVENT_POWER_N; i++) {
        struct ws_event_power_prior prior =
            ws_event_power_prior(c->gpu, (enum ws_event_power_term)i);
        bool stands_for_others =
            (i == WS_EVENT_POWER_ACTIVE || i == WS_EVENT_POWER_BUSY) && !counts_integers(c);
        if (prior.expected <= 0 || c->prior <= 0 || stands_for_others)
            continue;
        memset(x, 0, sizeof(x));
        x[i] = 1 / prior.expected;
        normal_add(q, x, 1, c->prior * c->prior / (prior.spread * prior.spread));
    }
    if (c->idle_w <= 0)
        return;
    memset(x, 0, sizeof(x));
    x[WS_EVENT_POWER_STATIC] = x[WS_EVENT_POWER_CLOCK] = 1 / c->idle_w;
    x[WS_EVENT_POWER_MEMORY_CLOCK] = memory_clock_varies ? 1 / c->idle_w : 0;
    normal_add(q, x, 1, 1);
}

/* With one memory clock, its power cannot be told from the static one. */
static bool memory_clock_varies(const struct ws_calibrate *c)
{
    for (size_t i = 1; i < c->n; i++)
        if (c->v[i].clocks.memory_mhz != c->v[0].clocks.memory_mhz)
            return true;
    return false;
}
static bool core_clock_varies(const struct ws_calibrate *c)
{
    for (size_t i = 1; i < c->n; i++)
        if (c->v[i].clocks.core_mhz != c->v[0].clocks.core_mhz)
            return true;
    return false;
}

struct power_scratch {
    double (*x)[WS_EVENT_POWER_N]; /* [n], as shares of the measured power */
    double *weight, *robust;
};

static double power_of_row(const double x[WS_EVENT_POWER_N], const double w[WS_EVENT_POWER_N])
{
    double p = 0;
    for (int i = 0; i < WS_EVENT_POWER_N; i++)
        p += x[i] * w[i];
    return p;
}

/* Fits the numbers for the curve of @ret. Return: how far off the fit is. */
static double fit_curve(const struct ws_calibrate *c, struct power_scratch *s, bool memory_varies,
                        struct ws_event_power *ret)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct ws_measured_launch *l = &c->v[i];
        s->robust[i] = 1;
        if (s->weight[i] <= 0)
            continue;
        double v = ws_event_power_voltage(ret, c->gpu, &l->clocks);
        ws_event_power_terms(c->gpu, v, &l->e, &l->clocks, l->rate_time_s, s->x[i]);
        if (!memory_varies)
            s->x[i][WS_EVENT_POWER_MEMORY_CLOCK] = 0;
        for (int k = 0; k < WS_EVENT_POWER_N; k++)
            s->x[i][k] /= l->power_w;
    }
    memset(ret->w, 0, sizeof(ret->w));
    double loss = 0;
    for (int round = 0; round < (c->plain ? 1 : POWER_ROUNDS); round++) {
        struct normal q = {0};
        for (size_t i = 0; i < c->n; i++)
            if (s->weight[i] > 0)
                normal_add(&q, s->x[i], 1, s->weight[i] * s->robust[i]);
        expect(c, memory_varies, &q);
        descend(&q, ret->w);
        loss = 0;
        for (size_t i = 0; i < c->n; i++) {
            if (s->weight[i] <= 0)
                continue;
            double error = power_of_row(s->x[i], ret->w) - 1;
            s->robust[i] = robust(error, POWER_LIMIT);
            loss += s->weight[i] * robust_loss(error, POWER_LIMIT);
        }
    }
    return loss;
}

/* Fits the numbers for a curve, whose knee is in twentieths and whose slope in tenths, and keeps
 * them if they are better than *ret, which are *best off. */
static void try_curve(const struct ws_calibrate *c, struct power_scratch *s, bool memory_varies,
                      int knee, int slope, double *best, struct ws_event_power *ret)
{
    struct ws_event_power p = {.knee = knee / 20.0, .slope = slope / 10.0};
    if (ws_event_voltage(p.knee, p.slope, 0) < VOLTAGE_MIN)
        return;
    double loss = fit_curve(c, s, memory_varies, &p);
    if (loss < *best) {
        *best = loss;
        *ret = p;
    }
}

/* The curve that fits best: of a coarse grid, and then beside the best one of that. */
static void fit_voltage(const struct ws_calibrate *c, struct power_scratch *s, bool memory_varies,
                        struct ws_event_power *ret)
{
    double best = INFINITY;
    try_curve(c, s, memory_varies, 20, 0, &best, ret);
    for (int knee = 10; knee <= 24; knee += 2)
        for (int slope = 4; slope <= 28; slope += 4)
            try_curve(c, s, memory_varies, knee, slope, &best, ret);
    int knee = (int)lround(20 * ret->knee), slope = (int)lround(10 * ret->slope);
    for (int i = -1; slope && i <= 1; i++)
        for (int k = -2; k <= 2; k += 2)
            if (i || k)
                try_curve(c, s, memory_varies, knee + i, slope + k, &best, ret);
}

int ws_calibrate_power(const struct ws_calibrate *c, const int *count, struct ws_event_power *ret)
{
    struct power_scratch s = {.x = ws_alloc_array(c->n + 1, sizeof(*s.x)),
                              .weight = ws_alloc_array(c->n + 1, sizeof(double)),
                              .robust = ws_alloc_array(c->n + 1, sizeof(double))};
    int r =
        s.x && s.weight && s.robust ? launch_weights(c, count, false, s.weight) : ws_raise(-ENOMEM);
    bool memory_varies = memory_clock_varies(c);
    if (!r && (c->one_curve || !core_clock_varies(c))) {
        ret->knee = c->one_curve ? c->knee : EXPECTED_KNEE;
        ret->slope = c->one_curve ? c->slope : EXPECTED_SLOPE;
        (void)fit_curve(c, &s, memory_varies, ret);
    } else if (!r) {
        fit_voltage(c, &s, memory_varies, ret);
    }
    free(s.x);
    free(s.weight);
    free(s.robust);
    return r;
}

/* ---- time ---- */

struct time_scratch {
    struct ws_event_need *need;
    double *weight, *robust;
};

/* Sum of squares of what is to be made small, and its linear form around @t. */
static double time_equations(const struct ws_calibrate *c, const struct time_scratch *s,
                             const struct ws_event_time *t, double jj[][WS_EVENT_TIME_N],
                             double *je)
{
    double sum = 0;
    if (jj) {
        memset(jj, 0, sizeof(double[WS_EVENT_TIME_N][WS_EVENT_TIME_N]));
        memset(je, 0, sizeof(double[WS_EVENT_TIME_N]));
    }
    for (size_t i = 0; i < c->n; i++) {
        if (s->weight[i] <= 0)
            continue;
        double g[WS_EVENT_TIME_N];
        double time = ws_event_time_of_need(t, &s->need[i], jj ? g : NULL);
        double error = log(time / c->v[i].time_s), weight = s->weight[i] * s->robust[i];
        sum += weight * error * error;
        for (int k = 0; jj && k < WS_EVENT_TIME_N; k++) {
            for (int m = 0; m < WS_EVENT_TIME_N; m++)
                jj[k][m] += weight * g[k] * g[m] / (time * time);
            je[k] += weight * g[k] / time * error;
        }
    }
    for (int k = 0; k < WS_EVENT_TIME_N; k++) {
        struct ws_event_time_prior prior = ws_event_time_prior((enum ws_event_time_number)k);
        double error = log(t->v[k] / prior.expected);
        double weight = c->prior * c->prior / (prior.spread * prior.spread);
        sum += weight * error * error;
        if (jj) {
            jj[k][k] += weight;
            je[k] += weight * error;
        }
    }
    return sum;
}

/* Solves (@a + @damping·diagonal)·x = @b by Cholesky. Return: false: it is singular. */
static bool solve(double a[][WS_EVENT_TIME_N], const double *b, double damping, double *ret)
{
    enum { N = WS_EVENT_TIME_N };
    double l[N][N] = {{0}}, z[N];
    for (int i = 0; i < N; i++) {
        for (int k = 0; k <= i; k++) {
            double sum = a[i][k] * (i == k ? 1 + damping : 1);
            for (int m = 0; m < k; m++)
                sum -= l[i][m] * l[k][m];
            if (k < i)
                l[i][k] = sum / l[k][k];
            else if (sum > 0)
                l[i][i] = sqrt(sum);
            else
                return false;
        }
        z[i] = b[i];
        for (int m = 0; m < i; m++)
            z[i] -= l[i][m] * z[m];
        z[i] /= l[i][i];
    }
    for (int i = N - 1; i >= 0; i--) {
        ret[i] = z[i];
        for (int m = i + 1; m < N; m++)
            ret[i] -= l[m][i] * ret[m];
        ret[i] /= l[i][i];
    }
    return true;
}

static void time_minimise(const struct ws_calibrate *c, const struct time_scratch *s,
                          struct ws_event_time *t)
{
    double jj[WS_EVENT_TIME_N][WS_EVENT_TIME_N], je[WS_EVENT_TIME_N], step[WS_EVENT_TIME_N];
    double sum = time_equations(c, s, t, jj, je), damping = 1e-3;
    for (int i = 0; i < TIME_STEPS && damping < 1e6; i++) {
        struct ws_event_time next = *t;
        if (!solve(jj, je, damping, step))
            return;
        for (int k = 0; k < WS_EVENT_TIME_N; k++)
            next.v[k] *= exp(fmax(-1, fmin(1, -step[k])));
        double reached = time_equations(c, s, &next, NULL, NULL);
        if (!(reached < sum)) {
            damping *= 10;
            continue;
        }
        bool done = sum - reached < 1e-9 * sum;
        *t = next;
        if (done)
            return;
        sum = time_equations(c, s, t, jj, je);
        damping = fmax(1e-6, damping / 10);
    }
}

int ws_calibrate_time(const struct ws_calibrate *c, const int *count, struct ws_event_time *ret)
{
    struct time_scratch s = {.need = ws_alloc_array(c->n + 1, sizeof(*s.need)),
                             .weight = ws_alloc_array(c->n + 1, sizeof(double)),
                             .robust = ws_alloc_array(c->n + 1, sizeof(double))};
    int r = s.need && s.weight && s.robust ? launch_weights(c, count, true, s.weight)
                                           : ws_raise(-ENOMEM);
    ws_event_time_init(ret);
    for (size_t i = 0; !r && i < c->n; i++) {
        s.robust[i] = 1;
        if (s.weight[i] > 0)
            ws_event_time_need(c->gpu, &c->v[i].e, &c->v[i].clocks, &s.need[i]);
    }
    for (int round = 0; !r && round < TIME_ROUNDS; round++) {
        time_minimise(c, &s, ret);
        for (size_t i = 0; i < c->n; i++)
            if (s.weight[i] > 0)
                s.robust[i] = robust(
                    log(ws_event_time_of_need(ret, &s.need[i], NULL) / c->v[i].time_s), TIME_LIMIT);
    }
    free(s.need);
    free(s.weight);
    free(s.robust);
    return r;
}

/* ---- predictions ---- */

static uint32_t next_random(uint32_t last) /* Numerical Recipes' generator */
{
    return last * 1664525 + 1013904223;
}

struct ws_predicted ws_calibrate_predict(const struct ws_event_gpu *gpu,
                                         const struct ws_event_power *power,
                                         const struct ws_event_time *time,
                                         const struct ws_measured_launch *l)
{
    struct ws_predicted p = {.power_w = NAN, .time_s = NAN, .energy_j = NAN};
    if (l->e.counted) {
        struct ws_event_run run;
        ws_event_run(power, time, gpu, &l->e, &l->clocks,
                     ws_event_power_voltage(power, gpu, &l->clocks), &run);
        p.time_s = run.time_s;
        p.power_w = run.power_w;
        p.energy_j = p.time_s * p.power_w;
    }
    if (!isnan(l->rate_time_s))
        p.power_w = fmin(ws_event_power_w(power, gpu, &l->e, &l->clocks, l->rate_time_s),
                         ws_event_power_most_w(gpu));
    return p;
}

/* Predicts the families of each group without it. @group: [n_families], less than @n_groups. */
static int leave_groups_out(const struct ws_calibrate *c, const int *group, int n_groups,
                            struct ws_predicted *ret)
{
    int *count = ws_alloc_array((size_t)c->n_families + 1, sizeof(*count));
    int r = count ? 0 : ws_raise(-ENOMEM);
    for (int g = 0; !r && g < n_groups; g++) {
        for (int i = 0; i < c->n_families; i++)
            count[i] = group[i] != g;
        struct ws_event_power power;
        struct ws_event_time time;
        r = ws_calibrate_power(c, count, &power);
        if (!r)
            r = ws_calibrate_time(c, count, &time);
        for (size_t i = 0; !r && i < c->n; i++)
            if (group[c->v[i].family] == g)
                ret[i] = ws_calibrate_predict(c->gpu, &power, &time, &c->v[i]);
    }
    free(count);
    return r;
}

int *ws_calibrate_groups(int n_families, int n_groups, uint32_t shuffle)
{
    int *v = ws_alloc_array((size_t)n_families + 1, sizeof(*v));
    for (int i = 0; v && i < n_families; i++)
        v[i] = i;
    for (int i = n_families - 1; v && shuffle && i > 0; i--) {
        shuffle = next_random(shuffle);
        int k = (int)((shuffle >> 16) % (uint32_t)(i + 1)), was = v[i];
        v[i] = v[k];
        v[k] = was;
    }
    for (int i = 0; v && i < n_families; i++)
        v[i] %= n_groups;
    return v;
}

static int leave_out(const struct ws_calibrate *c, int n_groups, uint32_t shuffle,
                     struct ws_predicted *ret)
{
    int *group = ws_calibrate_groups(c->n_families, n_groups, shuffle);
    int r = group ? leave_groups_out(c, group, n_groups, ret) : ws_raise(-ENOMEM);
    free(group);
    return r;
}

int ws_calibrate_leave_out(const struct ws_calibrate *c, struct ws_predicted *ret)
{
    return leave_out(c, c->n_families, 0, ret);
}

int ws_calibrate_leave_third_out(const struct ws_calibrate *c, uint32_t shuffle,
                                 struct ws_predicted *ret)
{
    enum { THIRDS = 3 };
    return leave_out(c, THIRDS, shuffle, ret);
}

/* ---- what the data can tell ---- */

/* The share of each term of the mean power of the launches; families count alike. */
static int shares_of(const struct ws_calibrate *c, const struct ws_event_power *p, double *weight,
                     double ret[WS_EVENT_POWER_N])
{
    int r = launch_weights(c, NULL, false, weight);
    double sum = 0, x[WS_EVENT_POWER_N];
    memset(ret, 0, WS_EVENT_POWER_N * sizeof(*ret));
    for (size_t i = 0; !r && i < c->n; i++) {
        const struct ws_measured_launch *l = &c->v[i];
        if (weight[i] <= 0)
            continue;
        double v = ws_event_power_voltage(p, c->gpu, &l->clocks);
        ws_event_power_terms(c->gpu, v, &l->e, &l->clocks, l->rate_time_s, x);
        for (int k = 0; k < WS_EVENT_POWER_N; k++) {
            ret[k] += weight[i] * x[k] * p->w[k];
            sum += weight[i] * x[k] * p->w[k];
        }
    }
    for (int k = 0; k < WS_EVENT_POWER_N; k++)
        ret[k] = sum > 0 ? ret[k] / sum : 0;
    return r;
}

int ws_calibrate_shares(const struct ws_calibrate *c, const struct ws_event_power *power,
                        struct ws_power_share ret[WS_EVENT_POWER_N])
{
    struct ws_calibrate fixed = *c;
    fixed.one_curve = true;
    fixed.knee = power->knee;
    fixed.slope = power->slope;
    fixed.prior = fixed.idle_w = 0;
    int *count = ws_alloc_array((size_t)c->n_families + 1, sizeof(*count));
    double *weight = ws_alloc_array(c->n + 1, sizeof(*weight));
    double(*drawn)[WS_CALIBRATE_DRAWS] = ws_alloc_array(WS_EVENT_POWER_N, sizeof(*drawn));
    double shares[WS_EVENT_POWER_N] = {0};
    int r = count && weight && drawn ? shares_of(c, power, weight, shares) : ws_raise(-ENOMEM);
    for (int k = 0; !r && k < WS_EVENT_POWER_N; k++)
        ret[k].share = shares[k];
    uint32_t random = 1;
    for (int draw = 0; !r && draw < WS_CALIBRATE_DRAWS; draw++) {
        memset(count, 0, (size_t)c->n_families * sizeof(*count));
        for (int i = 0; i < c->n_families; i++) {
            random = next_random(random);
            count[(random >> 16) % (uint32_t)c->n_families]++;
        }
        struct ws_event_power p;
        r = ws_calibrate_power(&fixed, count, &p);
        if (!r)
            r = shares_of(c, &p, weight, shares);
        for (int k = 0; !r && k < WS_EVENT_POWER_N; k++)
            drawn[k][draw] = shares[k];
    }
    for (int k = 0; !r && k < WS_EVENT_POWER_N; k++) {
        qsort(drawn[k], WS_CALIBRATE_DRAWS, sizeof(double), ws_stat_by_size);
        ret[k].low = drawn[k][WS_CALIBRATE_DRAWS / 10];
        ret[k].high = drawn[k][WS_CALIBRATE_DRAWS - 1 - WS_CALIBRATE_DRAWS / 10];
    }
    free(count);
    free(weight);
    free(drawn);
    return r;
}

// SPDX-License-Identifier: Apache-2.0
/* models/dvfs.h - time, power and energy of a GPU task under core voltage, core clock and memory
 * clock, and the setting that takes the least energy.
 *
 * Source: Mei et al., "Energy-aware Task Scheduling with Deadline Constraint in DVFS-enabled
 * Heterogeneous Clusters", Section 3 and 4.1, in the corrected form (the closing parenthesis of Eq.
 * 4 and 9, the memory clock of least energy with c·V²·fc, the lower bound that a deadline puts on
 * the memory clock).
 *
 * Units: V, fc and fm are shares of the factory default, so the default is (1, 1, 1). Powers in W,
 * times in any one unit, energies in the product of both.
 * Threads: any; all functions are pure. */
#ifndef WS_MODELS_DVFS_H
#define WS_MODELS_DVFS_H

#include <stdbool.h>
#include <stddef.h>
#include "base/macros.h"

/* P = p0 + gamma·fm + c·V²·fc;  t = t0 + d·(delta/fc + (1 - delta)/fm). All ≥ 0, delta ≤ 1. */
struct ws_dvfs_task {
    double p0, gamma, c;
    double t0, d, delta;
};

/* What the GPU can be set to: V in [v_min, v_max], fc in [fc_min, g1(V)], fm in [fm_min,
 * fm_max]. */
struct ws_dvfs_interval {
    double v_min, v_max;
    double fc_min;
    double fm_min, fm_max;
};
/* The paper's two: analytic (Wide), measured on a GTX 1080 Ti (Narrow). */
extern const struct ws_dvfs_interval ws_dvfs_wide, ws_dvfs_narrow;

/* A setting and what a task does there. */
struct ws_dvfs_point {
    double v, fc, fm;
    double t, p, e;
};

enum {
    _WS_DVFS_OK,
    WS_DVFS_E_INTERVAL, /* no setting satisfies the interval, or a bound is out of the model */
    WS_DVFS_E_TASK,     /* a parameter is negative, not finite, or delta > 1 */
    WS_DVFS_E_LIMIT     /* no setting is quick enough */
};

/* Highest stable core clock at voltage @v ≥ 0.5 (0.5 below that), and the lowest voltage for core
 * clock @fc (0.5 up to fc = 0.5). */
double ws_dvfs_g1(double v);
double ws_dvfs_g1_inverse(double fc);

/**
 * ws_dvfs_interval_parse() - "wide", "narrow", or "V_MIN:V_MAX,FC_MIN,FM_MIN:FM_MAX"
 * @ret_error: names the bound that is wrong; may be NULL where @error_bytes is 0
 *
 * V goes from 0.5 (where g1 begins) to 5 (up to there the search is known to have one minimum).
 *
 * Return: 0, or WS_DVFS_E_INTERVAL.
 */
WS_MUST_CHECK int ws_dvfs_interval_parse(const char *text, struct ws_dvfs_interval *ret,
                                         char *ret_error, size_t error_bytes);
/* Return: 0, or WS_DVFS_E_TASK with the parameter's name in @ret_error. */
WS_MUST_CHECK int ws_dvfs_task_check(const struct ws_dvfs_task *task, char *ret_error,
                                     size_t error_bytes);

double ws_dvfs_time(const struct ws_dvfs_task *task, double fc, double fm);
double ws_dvfs_power(const struct ws_dvfs_task *task, double v, double fc, double fm);
/* At the factory default: t*, P*, E*. */
struct ws_dvfs_point ws_dvfs_default(const struct ws_dvfs_task *task);
struct ws_dvfs_point ws_dvfs_at(const struct ws_dvfs_task *task, double v, double fc, double fm);

/* The shortest time in @iv: both clocks as high as they go. */
double ws_dvfs_t_min(const struct ws_dvfs_task *task, const struct ws_dvfs_interval *iv);

/**
 * ws_dvfs_optimum() - the setting of least energy among those that take no longer than @limit
 * @task, @iv: checked by the caller
 * @limit: INFINITY: no limit ("energy-prior"). Where the least energy without a limit takes longer,
 *         the limited one takes exactly
 * @limit ("deadline-prior").
 * @ret: with t ≤ @limit; the least energy is met to about 1e-13 of it
 *
 * Return: 0, or WS_DVFS_E_LIMIT (@limit < t_min; @ret is untouched).
 */
WS_MUST_CHECK int ws_dvfs_optimum(const struct ws_dvfs_task *task,
                                  const struct ws_dvfs_interval *iv, double limit,
                                  struct ws_dvfs_point *ret);

#endif

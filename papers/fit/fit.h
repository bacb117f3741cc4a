// SPDX-License-Identifier: Apache-2.0
/* papers/fit/fit.h - estimates the six parameters of models/dvfs.h from times and powers that
 * were measured at several clocks.
 * Source: Mei et al., Section 5.1.3 (5 core clocks by 4 memory clocks for each application).
 * Threads: any; pure. */
#ifndef WS_PAPERS_FIT_FIT_H
#define WS_PAPERS_FIT_FIT_H

#include <stddef.h>
#include "base/macros.h"
#include "models/dvfs.h"

/* One measurement. @v NAN: the voltage was not measured; the lowest stable one for @fc is used,
 * as by the paper's authors. */
struct ws_fit_sample {
    double fc, fm, v;
    double time, power;
};

enum ws_fit_method {
    WS_FIT_NNLS,     /* least squares, parameters ≥ 0: the default */
    WS_FIT_NNLS_REL, /* the same, with relative residuals */
    WS_FIT_OLS,      /* least squares; t0, delta and others may leave their range */
    /* the authors' released estimator: parameters ≥ 0, with a penalty on their sum, which includes
     * the constant */
    WS_FIT_LASSO_POS,
    _WS_FIT_METHOD_N
};
/* "nnls", "nnls_rel", "ols", "lasso_pos"; -1: unknown. */
int ws_fit_method_parse(const char *text);
/* Weight of the penalty of WS_FIT_LASSO_POS, as in (1/2n)·|residual|² + alpha·sum. */
#define WS_FIT_LASSO_ALPHA 0.01

/* In percent of each measured value. */
struct ws_fit_error {
    double mape_time, mape_power, mape_energy;
    double max_time, max_power, max_energy;
    double rmse_time, rmse_power; /* in the units of the samples */
    int n;
};

enum { _WS_FIT_OK, WS_FIT_E_SAMPLE, WS_FIT_E_SINGULAR };

/* Return: 0, or WS_FIT_E_SAMPLE: @ret_error names the field and what was wrong. */
WS_MUST_CHECK int ws_fit_sample_check(const struct ws_fit_sample *s, char *ret_error, size_t bytes);

/**
 * ws_fit() - parameters from @n good samples
 * @ret_error: says which clocks are missing
 *
 * Return: 0; WS_FIT_E_SINGULAR: too few samples, or all at one core or memory clock (or
 * otherwise dependent).
 */
WS_MUST_CHECK int ws_fit(const struct ws_fit_sample *s, int n, enum ws_fit_method method,
                         struct ws_dvfs_task *ret, char *ret_error, size_t bytes);
/* How far @task is from @n samples. */
struct ws_fit_error ws_fit_error(const struct ws_dvfs_task *task, const struct ws_fit_sample *s,
                                 int n);

enum ws_fit_clock { WS_FIT_CORE_CLOCK, WS_FIT_MEMORY_CLOCK };
/**
 * ws_fit_leave_out() - how far predictions are off for a clock that no sample of the fit had
 * @which: each value of this clock is left out in turn and predicted from a fit of the others
 * @scratch: room for @n samples
 *
 * Return: 0; WS_FIT_E_SINGULAR: without one of the clocks the rest is not enough.
 */
WS_MUST_CHECK int ws_fit_leave_out(const struct ws_fit_sample *s, int n, enum ws_fit_method method,
                                   enum ws_fit_clock which, struct ws_fit_sample *scratch,
                                   struct ws_fit_error *ret, char *ret_error, size_t bytes);

#endif

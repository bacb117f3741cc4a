// SPDX-License-Identifier: Apache-2.0
/* papers/fit/score.h - how far predictions are from what was measured. Threads: any; pure. */
#ifndef WS_PAPERS_FIT_SCORE_H
#define WS_PAPERS_FIT_SCORE_H

#include "base/macros.h"
#include "papers/fit/calibrate.h"

enum ws_score_of { WS_SCORE_POWER, WS_SCORE_TIME, WS_SCORE_ENERGY, WS_SCORE_N };

/* Errors in percent of what was measured. */
struct ws_score {
    size_t n;                   /* launches for which there is both; 0: the rest is 0 */
    double mean, median, worst; /* of the sizes of the errors */
    int worst_app;              /* that with the largest mean; -1: none */
    double worst_app_mean;
};
/* One application: the mean of the sizes, and of the errors themselves (which way they go). */
struct ws_score_app {
    size_t n;
    double mean, bias;
};

/* What was measured and predicted of a launch; NAN: it was not. */
double ws_score_measured(const struct ws_measured_launch *l, enum ws_score_of of);
double ws_score_predicted(const struct ws_predicted *p, enum ws_score_of of);
/**
 * ws_score() - of @n launches
 * @ret_apps: [n_apps]
 *
 * Return: 0 or -ENOMEM.
 */
WS_MUST_CHECK int ws_score(const struct ws_measured_launch *v, const struct ws_predicted *p,
                           size_t n, enum ws_score_of of, int n_apps, struct ws_score *ret,
                           struct ws_score_app *ret_apps);

#endif

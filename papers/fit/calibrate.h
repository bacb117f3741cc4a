// SPDX-License-Identifier: Apache-2.0
/* papers/fit/calibrate.h - fits the models of models/event_power.h and models/event_time.h to
 * measured launches of one GPU, and says how far predictions for applications that a fit has not
 * seen are off.
 *
 * Both fits minimise relative errors. Errors beyond a limit count by their size, not its square; a
 * family of applications counts as the square root of its number of applications, however many
 * rows it has; and each number is pulled towards what models/event_terms.def expects of it, so that
 * one which the data cannot tell stays there. Powers and energies are 0 or more.
 * Launches whose power is the board's limit take no part: their clock was lowered.
 * Threads: any; pure. Errors: -ENOMEM. */
#ifndef WS_PAPERS_FIT_CALIBRATE_H
#define WS_PAPERS_FIT_CALIBRATE_H

#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"
#include "models/event_power.h"
#include "models/event_time.h"

/* One measured launch. */
struct ws_measured_launch {
    struct ws_events e;
    struct ws_event_clocks clocks;
    /* The time in which the events happened, measured or not; more than 0. NAN: not known, so that
     * the launch can be predicted only (ws_calibrate_predict()) */
    double rate_time_s;
    double time_s, power_w; /* NAN: not measured */
    int app, family;        /* numbers from 0 */
    int input;              /* what it worked on: a number from 0; -1: not said */
    uint32_t line;
};

struct ws_calibrate {
    const struct ws_event_gpu *gpu;
    const struct ws_measured_launch *v;
    size_t n;
    int n_families;
    double prior;   /* weight of what is expected: WS_CALIBRATE_PRIOR, or 0: nothing is */
    double idle_w;  /* expected at the reference clocks with nothing running; 0: nothing is */
    bool plain;     /* large errors count by their squares too */
    bool one_curve; /* the voltage's curve is known: that of @knee and @slope */
    double knee, slope;
};
/* Chosen by hand, once, by the errors with a family left out over five GPUs. */
#define WS_CALIBRATE_PRIOR 0.2

/**
 * ws_calibrate_power() - the model that fits the launches whose power was measured
 * @count: [n_families]: how often each family counts; 0: it is left out. NULL: each once
 *
 * Return: 0 or -ENOMEM. Without any launch it is what is expected.
 */
WS_MUST_CHECK int ws_calibrate_power(const struct ws_calibrate *c, const int *count,
                                     struct ws_event_power *ret);
/* The same for time, of launches whose time was measured and whose events were counted. */
WS_MUST_CHECK int ws_calibrate_time(const struct ws_calibrate *c, const int *count,
                                    struct ws_event_time *ret);

/* Predictions; NAN where there is nothing to predict from. A power is at least that of nothing
 * running and at most the board's limit, at which the clock is lowered (models/event_limit.h), and
 * a time is at least the roofline's. */
struct ws_predicted {
    double power_w;  /* from the measured time */
    double time_s;   /* from the events alone */
    double energy_j; /* from both models, nothing measured but the events */
};
struct ws_predicted ws_calibrate_predict(const struct ws_event_gpu *gpu,
                                         const struct ws_event_power *power,
                                         const struct ws_event_time *time,
                                         const struct ws_measured_launch *launch);
/* Which of @n_groups groups each family is of: they are dealt out in an order that @shuffle gives
 * (0: their own). Freed with free(); NULL: no memory. */
int *ws_calibrate_groups(int n_families, int n_groups, uint32_t shuffle);
/* Each launch predicted by models that were fitted without its family. @ret: [n]. */
WS_MUST_CHECK int ws_calibrate_leave_out(const struct ws_calibrate *c, struct ws_predicted *ret);
/* The same by models that were fitted without a third of all families, its own among them: the
 * families are shuffled by @shuffle, and each third is left out once. */
WS_MUST_CHECK int ws_calibrate_leave_third_out(const struct ws_calibrate *c, uint32_t shuffle,
                                               struct ws_predicted *ret);

/* The share of each term of the mean power; and whether the data can tell it: fits to families that
 * are redrawn, with nothing expected, give shares of which 80 % lie in a range. */
struct ws_power_share {
    double share, low, high;
};
enum { WS_CALIBRATE_DRAWS = 100 };
WS_MUST_CHECK int ws_calibrate_shares(const struct ws_calibrate *c,
                                      const struct ws_event_power *power,
                                      struct ws_power_share ret[WS_EVENT_POWER_N]);

#endif

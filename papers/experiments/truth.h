// SPDX-License-Identifier: Apache-2.0
/* papers/experiments/truth.h - measurements of real GPUs that others published, in a folder
 * (--data), for the experiments that hold the models against them. Threads: one. Functions that
 * fail print why. */
#ifndef WS_PAPERS_EXPERIMENTS_TRUTH_H
#define WS_PAPERS_EXPERIMENTS_TRUTH_H

#include "device/spec.h"
#include "papers/experiments/experiment.h"
#include "papers/fit/calibrate.h"
#include "papers/fit/measured.h"

struct ws_truth_source {
    const char *gpu, *title;   /* "v100", "V100" */
    const char *judged, *also; /* files; those of @also are fitted to only; NULL: none */
    bool has_choices;          /* time, power and counters at several clocks */
    const char *again;         /* file: some of its programs, measured once more; NULL: none */
};
enum { WS_TRUTH_SOURCES = 6 };
extern const struct ws_truth_source ws_truth_sources[WS_TRUTH_SOURCES];

struct ws_truth_data {
    const struct ws_truth_source *source;
    struct ws_gpu_spec spec;
    struct ws_event_gpu gpu;
    struct ws_measured_set set;
    size_t n_judged; /* those after them are fitted to only */
};

/* Return: 0; -EINVAL: --data is missing. */
WS_MUST_CHECK int ws_truth_check(const struct ws_experiment_run *x);
/* Reads what was measured of a GPU. @ret: to be given to ws_truth_deinit(), also after an error.
 * Return: 0 or negative. */
WS_MUST_CHECK int ws_truth_read(const struct ws_experiment_run *x,
                                const struct ws_truth_source *source, struct ws_truth_data *ret);
void ws_truth_deinit(struct ws_truth_data *t);

/* Mean errors in % of power at one setting of the clocks, family left out. */
struct ws_truth_2011 {
    double regression; /* of 2011 */
    double events;     /* of the model by events, at the same launches */
};
/* Predictions of all launches are given. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_truth_2011(const struct ws_truth_data *t, const struct ws_predicted *ours,
                                struct ws_truth_2011 *ret);

/* A fit of the launches of @t. */
struct ws_calibrate ws_truth_calibrate(const struct ws_truth_data *t);

#endif

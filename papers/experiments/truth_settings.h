/* SPDX-License-Identifier: Apache-2.0 */
/* papers/experiments/truth_settings.h - what applications take on one GPU at each setting of its
 * clocks, predicted by models that were fitted without the application's family.
 *
 * An application's events are those that were counted at the catalog's clocks, at all clocks. Since
 * a curve of the voltage with two numbers is too coarse for a choice between clocks, what the other
 * families show of each setting corrects it. A program shows what it depends on: of the memory's
 * time as far as it waits for the memory, of the core's time as far as it does not, and the same of
 * the power that goes with the core's voltage and of the rest. So each setting has four numbers,
 * found together by least squares from all families, and they count in a prediction as far as the
 * program depends on them. Threads: one. */
#ifndef WS_PAPERS_EXPERIMENTS_TRUTH_SETTINGS_H
#define WS_PAPERS_EXPERIMENTS_TRUTH_SETTINGS_H

#include "papers/experiments/truth.h"

enum { WS_TRUTH_SETTINGS_MAX = 128 };

/* Of one launch. */
struct ws_truth_predicted {
    double time_s, power_w;
    double known_time_w; /* the power if the time is known: that at the measured time */
    double line_j;       /* joules without the corrections of the settings */
    double constant_j;   /* joules by static power and one number for each SM in use */
};

struct ws_truth_gpu {
    struct ws_truth_data d;
    struct ws_event_clocks settings[WS_TRUTH_SETTINGS_MAX];
    int n_settings;
    int *setting;                         /* [d.set.n]: of each launch */
    struct ws_truth_predicted *predicted; /* [d.set.n] */
};

/* Reads a GPU with counters and predicts all its launches, each family by the others. @ret: to be
 * given to ws_truth_gpu_deinit(), also after an error. Return: 0 or negative. */
WS_MUST_CHECK int ws_truth_gpu_read(struct ws_experiment_run *x,
                                    const struct ws_truth_source *source, struct ws_truth_gpu *ret);
void ws_truth_gpu_deinit(struct ws_truth_gpu *g);
/* Predicts all launches anew, by models that were fitted without the group of families that each is
 * of (ws_calibrate_groups()). Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_truth_gpu_predict(struct ws_truth_gpu *g, int n_groups, uint32_t shuffle);
/* How far the clocks of launch @i are from the catalog's; 0: they are the same. */
double ws_truth_gpu_distance(const struct ws_truth_gpu *g, size_t i);

#endif

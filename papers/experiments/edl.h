// SPDX-License-Identifier: Apache-2.0
/* papers/experiments/edl.h - what the experiments of Mei et al. share: studies of many task sets
 * on clusters, in two forms ("grouped" and "whole"; see edl.c). Threads: the caller's. */
#ifndef WS_PAPERS_EXPERIMENTS_EDL_H
#define WS_PAPERS_EXPERIMENTS_EDL_H

#include <stdio.h>
#include "papers/experiments/experiment.h"
#include "papers/sets/edl_study.h"

enum { WS_EXP_EDL_THETA_N = 5, WS_EXP_EDL_L_N = 5, WS_EXP_EDL_CELLS_MAX = 80 };
extern const double ws_exp_edl_thetas[WS_EXP_EDL_THETA_N];
extern const int ws_exp_edl_ls[WS_EXP_EDL_L_N];
extern const char *const ws_exp_edl_dists[2], *const ws_exp_edl_forms[2],
                                                  *const ws_exp_edl_form_notes[2];

struct ws_exp_edl_grid {
    struct ws_edl_study s;
    struct ws_edl_cell cells[WS_EXP_EDL_CELLS_MAX];
};

/* Adds a cell to @g. @whole: servers=whole, as the paper's program opens servers. */
void ws_exp_edl_cell(struct ws_exp_edl_grid *g, const char *policy, bool dvfs, double theta, int l,
                     bool whole);
/* The means of the cell with these parameters; NAN if there is none. */
struct ws_edl_means ws_exp_edl_means(const struct ws_exp_edl_grid *g, const char *policy, bool dvfs,
                                     double theta, int l, bool whole);
/* Runs @g's cells over the sets. @u: the utilisation; 0: a day online. @release: utilisations as
 * the released program draws them. Return: 0, or negative with the error printed. The caller
 * deinits @g->s. */
int ws_exp_edl_run(struct ws_experiment_run *x, struct ws_exp_edl_grid *g, double u, bool release);
/* Closes @f. Return: 0, or -EIO with the error printed. */
int ws_exp_edl_close(struct ws_experiment_run *x, FILE *f);
/* How much less @e is than @base, in percent. */
double ws_exp_edl_saving(double e, double base);

#endif

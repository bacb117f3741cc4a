// SPDX-License-Identifier: Apache-2.0
/* papers/experiments/edl.h - what the experiments of Mei et al. share: studies of many task sets on clusters, and their two forms ("grouped",
 * "whole"; see exp_edl.c). Threads: the command's. */
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

/* @whole: servers=whole, the way the paper's program opens servers. */
void ws_exp_edl_cell(struct ws_exp_edl_grid *g, const char *policy, bool dvfs, double theta, int l,
                     bool whole);
/* Of the cell with these; NAN where there is none. */
struct ws_edl_means ws_exp_edl_means(const struct ws_exp_edl_grid *g, const char *policy, bool dvfs,
                                     double theta, int l, bool whole);
/* Runs @g's cells over the sets. @u: 0: a day online. @release: u as the released program draws it. Negative: said. The caller deinits @g->s. */
int ws_exp_edl_run(struct ws_experiment_run *x, struct ws_exp_edl_grid *g, double u, bool release);
/* Return: 0, or -EIO: said. */
int ws_exp_edl_close(struct ws_experiment_run *x, FILE *f);
/* In percent. */
double ws_exp_edl_saving(double e, double base);

#endif

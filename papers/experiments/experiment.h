// SPDX-License-Identifier: Apache-2.0
/* papers/experiments/experiment.h - a figure or table of a paper, run again from a seed: CSV, plots, and the paper's values beside ours.
 * One file for each paper's experiments (cli/exp_NAME.c) with rows in papers/experiments/experiments.def. Threads: ws_parallel_for() inside. */
#ifndef WS_PAPERS_EXPERIMENTS_EXPERIMENT_H
#define WS_PAPERS_EXPERIMENTS_EXPERIMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/macros.h"
#include "cli/common/table.h"

struct ws_experiment_run {
    const char *name;   /* of the experiment */
    const char *folder; /* where its files go */
    uint64_t seed;
    int n_jobs; /* 0: all cores */
    /* share of the paper's number of task sets and the like: 1 as printed; smaller is quicker
     * and noisier */
    double scale;
    bool quick;            /* live experiments: short versions */
    bool plot;             /* gnuplot is wanted and there */
    struct ws_table table; /* paper beside ours; filled by ws_experiment_compare() */
    FILE *summary;         /* the same as CSV */
    int n_compared, n_apart;
};

struct ws_experiment {
    const char *name;  /* "sbeet-fig7" */
    const char *paper; /* "sBEET-mg, Fig. 7" */
    const char *shows; /* one line */
    /* Return: 0, or negative with a message printed. */
    int (*run)(struct ws_experiment_run *x);
};

/* FOLDER/NAME.csv for writing (NAME: file name without ending); NULL with a message. Closed by the caller with fclose(). */
FILE *ws_experiment_csv(struct ws_experiment_run *x, const char *name);

/* What counts as reproduced: |ours - paper| ≤ the spread, given as an absolute (same unit) or a share of the paper's value. */
enum ws_spread { WS_SPREAD_ABSOLUTE, WS_SPREAD_RELATIVE };
/**
 * ws_experiment_compare() - one line of the table of what reproduces
 * @paper: NAN: the paper gives no number (then the line only states ours)
 * @spread: says where the line counts as "reproduces"; honest reasons for it belong into @note
 * @note: why it differs, or where the number stands; "" is fine
 */
void ws_experiment_compare(struct ws_experiment_run *x, const char *quantity, double paper,
                           double ours, double spread, enum ws_spread kind, const char *note);
/* A claim in words: holds or not. */
void ws_experiment_claim(struct ws_experiment_run *x, const char *claim, bool holds,
                         const char *note);

/**
 * ws_experiment_plot() - FOLDER/NAME.png and NAME.svg by gnuplot
 * @commands: gnuplot's, after terminal and output are set; runs in FOLDER, so that a CSV is 'NAME.csv' (separator is a comma, first
 * row names columns: datafile separator ',' and key autotitle columnhead are set). Kept as FOLDER/NAME.gp.
 */
void ws_experiment_plot(struct ws_experiment_run *x, const char *name, const char *commands);

#endif

// SPDX-License-Identifier: Apache-2.0
/* papers/experiments/experiment.h - an experiment runs a figure or table of a paper again from a
 * seed. It writes CSV and plots, and compares the paper's values with ours. Each paper's
 * experiments are in a file of this folder or of papers/live, with rows in experiments.def.
 * Threads: the caller's; experiments may use ws_parallel_for(). */
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
    bool quick; /* live experiments and our own: short versions */
    /* live-own, live-sbeet: by how many percent the time of each job may differ from what is usual;
     * whether some jobs of a task take four times as long; whether a program is killed */
    int mispredict;
    bool overrun, death;
    const char *data;      /* folder of measurements of real GPUs; NULL: not given */
    bool plot;             /* gnuplot is wanted and there */
    struct ws_table table; /* the paper's values and ours, from ws_experiment_compare() */
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

/* Prints what the catalog entries of the software GPUs @names, separated by commas, were held
 * against: how far their modelled times and joules can be trusted. */
void ws_experiment_gpus(const char *names);

/* Opens FOLDER/NAME.csv for writing; @name is without ending. The caller closes it with
 * fclose(). Return: NULL with a message. */
FILE *ws_experiment_csv(struct ws_experiment_run *x, const char *name);

/* A value counts as reproduced if |ours - paper| ≤ the spread, which is absolute (in the same
 * unit) or a share of the paper's value. */
enum ws_spread { WS_SPREAD_ABSOLUTE, WS_SPREAD_RELATIVE };
/**
 * ws_experiment_compare() - one line of the table of what reproduces
 * @paper: NAN: the paper gives no number; then the line only has ours
 * @spread: how far apart the values may be to count as reproduced
 * @note: why the values differ or why the spread is what it is, or where the number is found;
 * may be ""
 */
void ws_experiment_compare(struct ws_experiment_run *x, const char *quantity, double paper,
                           double ours, double spread, enum ws_spread kind, const char *note);
/* One line for a value that is wanted to be @wanted or less. */
void ws_experiment_at_most(struct ws_experiment_run *x, const char *quantity, double wanted,
                           double ours, const char *note);
/* Half of the 95 % confidence interval of the mean of @n values, whose squared differences from it
 * add up to @sum_of_squares. NAN: there are fewer than two. */
double ws_experiment_half_interval(double sum_of_squares, int n);
/* One line for a claim that the paper makes in words, which holds or not. */
void ws_experiment_claim(struct ws_experiment_run *x, const char *claim, bool holds,
                         const char *note);

/**
 * ws_experiment_plot() - draw FOLDER/NAME.png and NAME.svg with gnuplot
 * @commands: for gnuplot, after terminal and output are set. They run in FOLDER, so that a CSV
 * is 'NAME.csv'; its separator is a comma, and its first row names the columns (datafile
 * separator and key autotitle columnhead are set). They are kept as FOLDER/NAME.gp.
 */
void ws_experiment_plot(struct ws_experiment_run *x, const char *name, const char *commands);

#endif

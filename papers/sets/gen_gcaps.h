// SPDX-License-Identifier: Apache-2.0
/* papers/sets/gen_gcaps.h - makes task sets as the GCAPS experiments draw them (Wang et al.,
 * ECRTS 2024, Sec. 7.2 and Table 3, and the released generator). Threads: any; pure. */
#ifndef WS_PAPERS_SETS_GEN_GCAPS_H
#define WS_PAPERS_SETS_GEN_GCAPS_H

#include "papers/sets/random.h"
#include "papers/sets/rt_sets.h"

enum ws_gen_reading {
    /* As released: each core is drawn by itself (with n_tasks: worst fit in order of drawing),
     * periods are any whole number, parts are rounded, and a slip in UUniFast gives most of a
     * core to one task. */
    WS_GEN_CODE,
    /* As printed: cores by worst fit decreasing, periods in steps of 10 ms, UUniFast, parts that
     * add up exactly. */
    WS_GEN_PAPER
};

struct ws_gen_gcaps {
    enum ws_gen_reading reading;
    int n_cpus;
    int tasks_min, tasks_max;       /* on each core */
    double util_min, util_max;      /* of each core */
    double gpu_min, gpu_max;        /* probability that a task uses the GPU */
    int segments_min, segments_max; /* of a GPU task */
    double g_to_c_min, g_to_c_max;  /* G / C */
    double be_ratio;                /* share of best-effort tasks */
    /* > 0: so many tasks in all, with utilisations of .05, .10, … .25; the limits for a core are
     * not used then */
    int n_tasks;
    double epsilon_ms, theta_ms;
};
/* Table 3: 4 cores, 3 to 6 tasks and utilisation .4 to .6 on each, GPU probability .4 to .6, 1
 * to 3 segments, G/C .2 to 2. */
extern const struct ws_gen_gcaps ws_gen_gcaps_default;

/* Sets what an experiment varies: num_tasks, util_per_cpu, num_cpus, ratio_gpu_tasks,
 * ratio_g_to_c, ratio_be (then with 6 tasks on each core), num_gpu_segs, tasks_per_cpu, epsilon,
 * theta. Return: 0; -ENOENT: no such axis; -ERANGE: @x is out of its range. */
WS_MUST_CHECK int ws_gen_gcaps_axis(struct ws_gen_gcaps *g, const char *axis, double x);
/* Makes one set. @ret: deinit with ws_rt_set_deinit(). Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_gen_gcaps(const struct ws_gen_gcaps *g, struct ws_random *r,
                               struct ws_rt_set *ret);

#endif

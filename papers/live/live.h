// SPDX-License-Identifier: Apache-2.0
/* papers/live/live.h - a live experiment: a daemon of its own with some policy, programs that run under it (bench/live/program, which says
 * when its jobs were released, began and ended by the device's clock), and the GPUs' counters before and after.
 *
 *     ws_live_start(); ws_live_add() for each program; ws_live_run(); results; ws_live_stop()
 *
 * Nothing is left behind, however this process ends: the programs die with it, the daemon and its directory by their guard
 * (cli/common/private_daemon.h). Threads: one. Times are the device's, in ms. Functions that fail have printed why. */
#ifndef WS_PAPERS_LIVE_LIVE_H
#define WS_PAPERS_LIVE_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/sm_set.h"
#include "cli/common/private_daemon.h"
#include "device/device.h"

enum { WS_LIVE_PROGRAMS = 32, WS_LIVE_GPUS = 4, WS_LIVE_ARGS = 32 };

struct ws_live_job {
    double release_ms, start_ms, end_ms;
};
struct ws_live_program {
    char task[32];
    pid_t pid;
    int to_fd, from_fd; /* its standard input and output */
    char *said;         /* what it printed so far */
    size_t n_said, cap_said;
    bool ready, failed;
    /* results */
    struct ws_live_job *jobs;
    int n_jobs, released, missed, skipped, wrong;
};
struct ws_live_counters { /* of one GPU */
    double now_ms, busy_ms, sm_busy_ms, energy_mj;
    double idle_mj;               /* of energy_mj: while no work ran */
    uint64_t n_kernels, n_merged; /* merged: of all GPUs */
};
struct ws_live {
    struct ws_private daemon;
    char *program; /* path */
    /* the clock, else functional: its time does not pass by itself, so nobody can wait for it */
    bool scaled;
    int n_gpus, n_programs;
    struct ws_live_program programs[WS_LIVE_PROGRAMS];
    struct ws_live_counters before[WS_LIVE_GPUS], after[WS_LIVE_GPUS];
    double settle_s;
    double base_ms;           /* from which the programs' offsets count */
    double first_ms, last_ms; /* release of the first job, end of the last; of all programs */
};

/* How a daemon is wanted. */
struct ws_live_wish {
    const char *gpus;    /* "rtx3070,t400" */
    const char *policy;  /* NULL: none */
    const char *options; /* of it: "\"a=1\", \"b=2\""; NULL */
    const char *tasks;   /* sections for wattshared.conf; NULL */
    double time_scale;   /* host time for a unit of device time; 0: the functional clock */
    const char *log;     /* NULL: standard error */
    double settle_s;     /* host time between the last program's "ready" and the word to go */
};
/* @ret: ws_live_stop() also after an error. Return: 0 or -1. */
WS_MUST_CHECK int ws_live_start(struct ws_live *ret, const struct ws_live_wish *wish);
/* One more program, as task @task; @args as for bench/live/program, after which "--wait" is added. Return: its number, or -1. */
WS_MUST_CHECK int ws_live_add(struct ws_live *l, const char *task, const char *const *args);
/* The same with the arguments as one text, separated by blanks. */
WS_MUST_CHECK int ws_live_addf(struct ws_live *l, const char *task, const char *fmt, ...)
    WS_PRINTF(3, 4);
/* Waits until all are ready, then lets them go. Return: 0 or -1. */
WS_MUST_CHECK int ws_live_go(struct ws_live *l, double timeout_s);
/* Waits for all to end and takes their results. Return: 0, or -1 where one failed, was wrong, or was not done in time. */
WS_MUST_CHECK int ws_live_collect(struct ws_live *l, double timeout_s);
/* go and collect. */
WS_MUST_CHECK int ws_live_run(struct ws_live *l, double timeout_s);
WS_MUST_CHECK int ws_live_counters(struct ws_live *l, struct ws_live_counters ret[WS_LIVE_GPUS]);
/* Ends programs and daemon. May be called twice. */
void ws_live_stop(struct ws_live *l);

/* A GPU of the catalog that the daemon uses. Return: 0 or -1. */
WS_MUST_CHECK int ws_live_gpu(const char *name, struct ws_gpu_spec *ret);

/* mJ that all GPUs took in a window of @ms that holds all their work since the word to go: their counters go on until they are
 * read, in static power (of @specs, [n_gpus]), which is taken off. */
double ws_live_energy_mj(const struct ws_live *l, const struct ws_gpu_spec *specs, double ms);

#endif

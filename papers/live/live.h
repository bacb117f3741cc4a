// SPDX-License-Identifier: Apache-2.0
/* papers/live/live.h - a live experiment: a private daemon with a policy, programs that run
 * under it (bench/live/program, which reports when its jobs were released, began and ended by
 * the device's clock), and the GPUs' counters before and after.
 *
 *     ws_live_start(); ws_live_addf() for each program; ws_live_run(); results; ws_live_stop()
 *
 * However this process ends, nothing is left behind: the programs die with it, and the guard
 * removes the daemon and its directory (cli/common/private_daemon.h). Threads: one. Times are
 * the device's, in ms. Functions that fail print why. */
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
    bool killed; /* it has no results */
    /* results */
    struct ws_live_job *jobs;
    int n_jobs, released, missed, skipped, wrong;
};
struct ws_live_counters { /* of one GPU */
    double now_ms, busy_ms, sm_busy_ms, energy_mj;
    double idle_mj;               /* of energy_mj: while no work ran */
    double power_w;               /* as the meter shows it now */
    uint64_t n_kernels, n_merged; /* merged: of all GPUs */
};
struct ws_live {
    struct ws_private daemon;
    char *program; /* path */
    /* the clock is "scaled"; else "functional", whose time does not pass by itself, so that nobody
     * can wait for it */
    bool scaled;
    int n_gpus, n_programs;
    struct ws_live_program programs[WS_LIVE_PROGRAMS];
    struct ws_live_counters before[WS_LIVE_GPUS], after[WS_LIVE_GPUS];
    double settle_s;
    /* Set between ws_live_start() and ws_live_run(): which program is killed, after so much of the
     * host's time. dies_after_s 0: none. */
    int victim;
    double dies_after_s;
    /* How often this process wanted to wake up while the programs ran, and how often the host let
     * it wait for more than 5 ms: then it was late for everybody. */
    int n_wakes, n_late;
    double base_ms;           /* from which the programs' offsets count */
    double first_ms, last_ms; /* release of the first job, end of the last; of all programs */
};

/* What daemon to start. */
struct ws_live_wish {
    const char *gpus;    /* "rtx3070,t400" */
    const char *policy;  /* NULL: none */
    const char *options; /* of the policy: "\"a=1\", \"b=2\""; NULL: none */
    const char *tasks;   /* sections for wattshared.conf; NULL: none */
    double time_scale;   /* host time for a unit of device time; 0: the functional clock */
    const char *log;     /* NULL: standard error */
    const char *follow;  /* a store of profiles that kernels follow; NULL: none */
    double settle_s;     /* host time between the last program's "ready" and the start of all */
};
/* Starts the daemon. @ret: must be given to ws_live_stop(), also after an error. Return: 0 or
 * -1. */
WS_MUST_CHECK int ws_live_start(struct ws_live *ret, const struct ws_live_wish *wish);
/* Adds a program, as the task @task. The text: the arguments of bench/live/program, separated by
 * blanks; "--wait" is added to them. Return: its number, or -1. */
WS_MUST_CHECK int ws_live_addf(struct ws_live *l, const char *task, const char *fmt, ...)
    WS_PRINTF(3, 4);
/* Waits until all programs are ready, starts them together, waits for all to end and reads their
 * results. Return: 0, or -1 if one failed, had wrong results, or was not done in time. */
WS_MUST_CHECK int ws_live_run(struct ws_live *l, double timeout_s);
WS_MUST_CHECK int ws_live_counters(struct ws_live *l, struct ws_live_counters ret[WS_LIVE_GPUS]);
/* Ends programs and daemon. May be called twice. */
void ws_live_stop(struct ws_live *l);

/* The path of @name in the nearest folder above this program that has it: of a file of the source
 * tree, for a program in a build tree inside it. malloc'ed; NULL: there is none. */
char *ws_live_above(const char *name);
/* A GPU of the catalog that the daemon uses. Return: 0 or -1. */
WS_MUST_CHECK int ws_live_gpu(const char *name, struct ws_gpu_spec *ret);
/* The same from the file @path (NULL: the daemon's catalog), quietly. Return: false: it has no such
 * GPU. */
bool ws_live_gpu_in(const char *path, const char *name, struct ws_gpu_spec *ret);

/* Makes @path a store of the kernels that the authors of sBEET-mg measured (models/measured.h), and
 * of some that are like them, but take other shares of their time: NAME_70 takes 70 percent.
 * @percents: [n_percents], the shares beside 100. Return: 0 or -1. */
WS_MUST_CHECK int ws_live_measured_store(const char *path, const int *percents, int n_percents);
/* Runs each of them alone on 1, 2, 4, … all SMs of each GPU, as `wattshare profile` does, under
 * daemons that keep in @path what they learn: so much is known to a scheduler that plans. Return: 0
 * or -1. */
WS_MUST_CHECK int ws_live_measured_profile(const char *path);

/* The energy of all GPUs in a window of @ms since the start that holds all their work, in mJ.
 * The counters run until they are read; what comes after the window is subtracted, at the power
 * that the meters showed before the programs began, when nothing ran. */
double ws_live_energy_mj(const struct ws_live *l, double ms);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* bench/truth/run.h - runs kernels of bench/truth on a software GPU whose clock passes with the
 * work alone, one launch after the other. Whatever fails ends the program. Threads: one for each
 * runner. */
#ifndef WS_BENCH_TRUTH_RUN_H
#define WS_BENCH_TRUTH_RUN_H

#include <pthread.h>
#include "device/device.h"
#include "models/events.h"
#include "papers/sets/csv.h"

enum { TRUTH_BUFFERS = 8, TRUTH_NUMBERS = 5 };

enum truth_contents { ZERO, SMALL_FLOATS, RANDOM };
struct truth_program {
    const char *app, *kernel;
    uint32_t grid[3], block[3];
    double part; /* of the whole that this is */
    struct {
        uint64_t mib;
        enum truth_contents contents;
    } buffers[TRUTH_BUFFERS];
    /* one letter each: p the next buffer's address, i a 32-bit number, f a float */
    const char *layout;
    double numbers[TRUTH_NUMBERS];
};

struct truth_runner {
    struct ws_gpu_spec spec;
    struct ws_device *device;
    struct ws_ptx_module *ptx;
    struct ws_dmodule *module;
    struct ws_device_clocks clocks; /* that it runs at, as shares of the catalog's */
    struct ws_events events;        /* of the last launch */
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    char *text;
};
/* @spec: copied; @name: of a PTX file in bench/truth. Close with truth_close(). */
void truth_open(struct truth_runner *r, const struct ws_gpu_spec *spec, const char *name);
void truth_close(struct truth_runner *r);

/* Of one launch of the whole program. */
struct truth_result {
    double time_s, power_w;
    struct ws_events events;
};
struct truth_result truth_run(struct truth_runner *r, const struct truth_program *p);

/* A number of the row; 0: it has none, or no such column. */
double truth_number(const struct ws_csv *t, const char *name);

/* Ends the program unless @r is 0. */
void truth_must(int r, const char *what);

#endif

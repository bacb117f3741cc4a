// SPDX-License-Identifier: Apache-2.0
/* backend/learn/learn.h - what the daemon learns of kernels from running them: how long a launch
 * takes on a number of SMs, and how much energy it uses.
 *
 * Before a launch runs, ws_learn_predict() says what it will take. When it has ended,
 * ws_learn_ran() compares what it took with that, and the next prediction is better. What is
 * known is read from a store of profiles (models/store.h) when the daemon starts, and written
 * there as it grows, by a thread of its own, so that nobody waits for the disk.
 *
 * Units: device time in ns, energy in uJ. Threads: as each function says. Errors: base/error.h. */
#ifndef WS_BACKEND_LEARN_LEARN_H
#define WS_BACKEND_LEARN_LEARN_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "device/device.h"
#include "models/stat.h"
#include "models/store.h"

struct ws_learn;
struct ws_learn_kernel;

/* ---- what is told by the code alone; made once for each module, never changed ---- */
struct ws_learn_code {
    uint32_t n_kernels;
    struct ws_learn_kernel *kernels;
};
/* Of the first @n_kernels of @info, which stand for kernels of @m. Any thread. Return: 0 or
 * -ENOMEM. */
WS_MUST_CHECK int ws_learn_code_new(struct ws_learn_code **ret, const struct ws_ptx_module *m,
                                    const struct ws_dmodule_info *info, uint32_t n_kernels);
struct ws_learn_code *ws_learn_code_free(struct ws_learn_code *c); /* NULL ok; returns NULL */
/* NULL if @c is NULL or nothing can be said of the kernel. Valid as long as @c. Any thread. */
const struct ws_learn_kernel *ws_learn_code_kernel(const struct ws_learn_code *c, uint32_t index);

/* ---- predictions ---- */
struct ws_learn_key { /* a launch, as far as it matters */
    const struct ws_learn_kernel *kernel;
    uint32_t grid[3], block[3],
        shared_bytes; /* shared_bytes: dynamic; only occupancy depends on it */
};
enum ws_learn_basis {
    WS_LEARN_COLD, /* from the PTX alone: instructions counted in the text */
    /* the kernel ran with other shapes: its instruction mix and the model's error are known */
    WS_LEARN_KERNEL,
    WS_LEARN_SCALED,   /* this shape ran on other numbers of SMs */
    WS_LEARN_MEASURED, /* it ran on as many SMs: the mean */
    _WS_LEARN_BASIS_N
};
struct ws_prediction {
    uint64_t time_ns;   /* from start to end on the device, alone; > 0 */
    uint64_t energy_uj; /* of the whole GPU meanwhile, nothing else running */
    uint64_t n;         /* runs that it rests on; 0: cold */
    enum ws_learn_basis basis;
    uint32_t blocks_per_sm; /* that an SM runs side by side */
    /* relative, root mean square, of predictions on this basis so far: of this kernel, else of
     * all; 1: none was tested */
    double error;
    /* Relative standard error of the energy: that of the time and that of the power together. */
    double energy_error;
};
/**
 * ws_learn_predict() - how long a launch would take on @n_sm SMs of a GPU, and at what energy
 * @n_sm: 0: all
 * Any thread; O(1), no disk, some hundred ns (a few thousand where nothing is known of the shape).
 * Return: 0, -ENOENT (nothing can be said: no kernel, or its text can't be counted and it never
 * ran), -EINVAL (a size is 0).
 */
WS_MUST_CHECK int ws_learn_predict(struct ws_learn *l, const struct ws_learn_key *key,
                                   const struct ws_gpu_spec *gpu, int n_sm,
                                   struct ws_prediction *ret);

/* ---- learning ---- */
/* @path: of the profile store, made if it isn't there; NULL: what is learned is forgotten at the
 *   end. A store that can't be used is logged, and done without. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_learn_new(struct ws_learn **ret, const char *path);
struct ws_learn *ws_learn_free(struct ws_learn *l); /* writes what is left. NULL ok; returns NULL */

struct ws_learn_run {
    uint32_t gpu; /* ws_device.index: launches of one GPU that overlap disturb each other */
    uint32_t uid; /* whose it was: a user may add so many shapes that others can, too */
    uint64_t start_ns, end_ns;
    uint64_t alone_uj;          /* of the whole GPU meanwhile; 0: others ran, or not measured */
    struct ws_sm_set sms;       /* n == 0: all */
    struct ws_op_counts counts; /* what it executed */
    /* only a part of the launch, or not at the default clocks, or not this kernel alone: others
     * ran beside it, but nothing is learned from it */
    bool other;
};
/* A launch has ended. Ignored where others ran on its SMs meanwhile (its time is not its own);
 * its power counts only if nothing else ran. O(1). One thread at a time. */
void ws_learn_ran(struct ws_learn *l, const struct ws_learn_key *key, const struct ws_gpu_spec *gpu,
                  const struct ws_learn_run *run);

/* ---- what a meter shows ---- */

/* Of a kind of GPU, from readings, or as the catalog declares it. */
struct ws_learn_gpu_power {
    double idle_w;        /* nothing runs */
    double idle_error;    /* its relative standard error */
    double idle_w_per_sm; /* of an SM that is idle while others work */
};
/* Any thread. */
void ws_learn_gpu_power(struct ws_learn *l, const struct ws_gpu_spec *gpu,
                        struct ws_learn_gpu_power *ret);

/* An operation was given to GPU @gpu (ws_device.index); and it has ended, after ws_learn_ran() if
 * that is called. Return: a mark to be given back then. One thread at a time. */
uint32_t ws_learn_submitted(struct ws_learn *l, uint32_t gpu);
void ws_learn_ended(struct ws_learn *l, uint32_t gpu, uint32_t mark);

struct ws_learn_reading {
    uint64_t at_ns, energy_uj; /* device time; the GPU's counter then */
    uint64_t update_ns;        /* the counter moves no more often; 0: it is always up to date */
    bool other;                /* clocks or power were changed: what lies before tells nothing */
};
/* Somebody has looked at the counter. Launches that no device measures (ws_learn_run.alone_uj) are
 * learned from what it gained. One thread at a time. Return: a window between two movements has
 * ended. */
bool ws_learn_read(struct ws_learn *l, uint32_t gpu, const struct ws_gpu_spec *spec,
                   const struct ws_learn_reading *r);

/* ---- to be shown ---- */
struct ws_learn_shown {
    const char *name, *gpu, *shape;
    uint64_t n_runs;
    uint32_t n_points, n_sm; /* SM counts seen; the largest */
    double time_ms, power_w; /* means on the largest; power NAN: not known */
    struct ws_stat error; /* (predicted - measured) / measured, of predictions that rest on runs */
    double cold_error;    /* of the first, cold one; NAN: there was none */
};
/* The latest @max launches' shapes, in @a. Return: how many. Loop thread. */
uint32_t ws_learn_show(struct ws_learn *l, struct ws_arena *a, uint32_t max,
                       struct ws_learn_shown **ret);

#endif

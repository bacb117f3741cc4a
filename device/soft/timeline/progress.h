/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/progress.h - a launch's work in units, and how far a preempted launch had
 * come.
 *
 * Blocks are executed in order, so what was executed is the first n_executed of them. Where device
 * time passes, execution is ahead of time: the units that were executed, but for which the time was
 * not yet, are owed and take their time when the launch goes on; they are kept as counted work, so
 * that any device can price them. Threads: none of its own. */
#ifndef WS_DEVICE_SOFT_TIMELINE_PROGRESS_H
#define WS_DEVICE_SOFT_TIMELINE_PROGRESS_H

#include "device/payer.h"
#include "device/progress.h"
#include "device/soft/timeline/timing.h"

/* Neighbouring blocks that are priced as one. */
struct ws_unit {
    uint32_t n_blocks; /* that were executed */
    struct ws_exec_work work;
};

struct ws_soft_progress {
    struct ws_progress base;
    /* whose it was: a resumed launch must have the same */
    uint32_t kernel, grid[3], block[3];
    uint64_t n_blocks, n_executed;
    struct ws_unit *owed;
    uint32_t n_owed;
    struct ws_bill bill;      /* for what is owed */
    double paid, unpaid;      /* work, weighted, of what was executed */
    uint64_t stalled_host_ns; /* for so long it has made the clock stand (vclock.h) */
};

struct ws_soft_progress *
ws_soft_progress_new(const struct ws_op *op); /* nothing done yet. NULL: no memory */
struct ws_soft_progress *
ws_soft_progress_free(struct ws_soft_progress *p); /* NULL ok; returns NULL */
/* That of a launch, taken out of it; NULL: it has none. *ret_ok: false if it has one of another
 * kind of device, which is freed. */
struct ws_soft_progress *ws_soft_progress_take(struct ws_op *op, bool *ret_ok);
/* The same, left in it. */
struct ws_soft_progress *ws_soft_progress_of(const struct ws_op *op);
bool ws_soft_progress_fits(const struct ws_soft_progress *p, const struct ws_op *op);
/* Takes over @units (allocated), of which @left[i] (0…1; NULL: nothing) was not paid. */
void ws_soft_progress_set(struct ws_soft_progress *p, uint64_t n_executed, struct ws_unit *units,
                          uint32_t n_units, const double *left);
/* Nothing is owed any more. */
void ws_soft_progress_pay(struct ws_soft_progress *p);

/* Prices units on a device. Return: bytes of all. */
double ws_units_cost(const struct ws_gpu_spec *spec, uint32_t block_warps,
                     const struct ws_unit *units, uint32_t n_units, struct ws_cost *ret);

#endif

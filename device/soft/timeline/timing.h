/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/timing.h - when operations would have run on the modelled GPU, and what
 * energy they took.
 *
 * Operations are entered one after another (in the order in which they completed); each is placed
 * into what the ones entered before left free and never moves again. Where device time passes
 * (WS_CLOCK_SCALED) it is reserved instead: it may be cut short until its end has come, and its
 * energy is the meter's (meter.h). Threads: any; a timing object has a lock of its own. */
#ifndef WS_DEVICE_SOFT_TIMELINE_TIMING_H
#define WS_DEVICE_SOFT_TIMELINE_TIMING_H

#include "device/soft/exec/exec.h"
#include "device/soft/timeline/occupancy.h"
#include "device/soft/timeline/power.h"

/* What a block asks of the machine. Formulas: cost.c. */
struct ws_cost {
    double issue_ns;   /* the SM's whole issue and lane capacity */
    double latency_ns; /* at the least, however empty the SM */
    double bytes;      /* to and from memory */
};
/* @work: of @n_blocks together, one after another. */
struct ws_cost ws_cost_of(const struct ws_gpu_spec *spec, uint32_t block_warps, uint64_t n_blocks,
                          const struct ws_exec_work *work);
/* The part of a kernel's memory traffic that gets past the L2 cache, in (0, 1]. @footprint_bytes:
 * what it can reach. */
double ws_cost_dram_share(const struct ws_gpu_spec *spec, double traffic_bytes,
                          double footprint_bytes);

struct ws_timing;
WS_MUST_CHECK int ws_timing_new(struct ws_timing **ret, const struct ws_gpu_spec *spec);
struct ws_timing *ws_timing_free(struct ws_timing *t);

struct ws_timed {
    uint64_t start_ns, end_ns, energy_uj;
    uint64_t alone_uj; /* as ws_op.alone_uj */
};

struct ws_timing_kernel {
    uint64_t owner; /* whose account is charged: ws_space_id() */
    uint64_t ready_ns;
    struct ws_need need;
    uint32_t blocks_per_sm;
    struct ws_sm_set sms; /* n == 0: all */
    uint64_t n_blocks;
    const struct ws_cost *blocks; /* [n_blocks], in the order of dealing */
    double dram_share;
    const struct ws_draw *draw; /* what it adds to the power; NULL: own_mw, whatever the limit */
    uint32_t own_mw;
    /* for those that may be cut: */
    const uint32_t *merged; /* [n_blocks]: how many each stands for, one after another; NULL: 1 */
    uint64_t memory_bytes_per_s; /* as it was when it was reserved; 0: as it is */
};
void ws_timing_kernel(struct ws_timing *t, const struct ws_timing_kernel *k, struct ws_timed *ret);

enum ws_engine { WS_ENGINE_TO_DEVICE, WS_ENGINE_FROM_DEVICE, WS_ENGINE_INSIDE, _WS_ENGINE_N };
void ws_timing_copy(struct ws_timing *t, enum ws_engine e, uint64_t owner, uint64_t ready_ns,
                    uint64_t bytes, struct ws_timed *ret);

/* ---- reservations ---- */
struct ws_reserved {
    uint64_t id; /* 0: took no time, nothing is kept of it */
    uint64_t start_ns, end_ns;
    struct ws_sm_set sms; /* used; empty for a copy */
    uint32_t own_mw;      /* that a kernel adds whatever its SMs add, at its full clock */
    struct ws_issue issue;
};
/* Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_timing_reserve_kernel(struct ws_timing *t, const struct ws_timing_kernel *k,
                                           struct ws_reserved *ret);
WS_MUST_CHECK int ws_timing_reserve_copy(struct ws_timing *t, enum ws_engine e, uint64_t ready_ns,
                                         uint64_t bytes, struct ws_reserved *ret);
/* Deals no more of @k's blocks from @at_ns on; those that run then are finished, where one stands
 * for several, to the end of the one of them. @k: as it was reserved. @ret_left[n_blocks]: the part
 * of each that is left, 0…1. Changes *r; its end is not before @at_ns. What was placed beside it
 * since stays. */
void ws_timing_cut(struct ws_timing *t, const struct ws_timing_kernel *k, uint64_t at_ns,
                   struct ws_reserved *r, double *ret_left);
/* Ends it at @at_ns if it would not have ended before. */
void ws_timing_break(struct ws_timing *t, uint64_t at_ns, struct ws_reserved *r);
/* It is over: from now on it may be forgotten. */
void ws_timing_release(struct ws_timing *t, const struct ws_reserved *r);

/* What is entered from now on finds these clocks, bandwidth and power; the rest of @spec is as it
 * was. */
void ws_timing_set_spec(struct ws_timing *t, const struct ws_gpu_spec *spec);
void ws_timing_spec(struct ws_timing *t, struct ws_gpu_spec *ret);

struct ws_timing_totals {
    uint64_t now_ns, busy_ns, sm_busy_ns, energy_uj;
    /* Charged to operations beyond energy_uj, to be given back with later ones (timing.c, Energy).
     */
    int64_t stored_uj;
    uint32_t power_mw;
};
void ws_timing_totals(struct ws_timing *t, struct ws_timing_totals *ret);
/* Latest end of anything entered. Lock-free. */
uint64_t ws_timing_now_ns(struct ws_timing *t);
/* Enters work that takes no resources and no energy: now is at least @end_ns afterwards. Lock-free.
 */
void ws_timing_touch(struct ws_timing *t, uint64_t end_ns);

#endif

// SPDX-License-Identifier: Apache-2.0
/* models/event_time.h - the time of a launch from what it does.
 *
 * Each unit of the machine needs a time of its own for the launch, at the share of its peak that
 * kernels reach; so do the starts of the blocks, and the latencies that the warps of an SM cannot
 * hide from each other. The longest counts, and others that are nearly as long add to it:
 *
 *     T = T_launch + (Σ q_k^p)^(1/p)
 *
 *     issue   warp instructions / (S·f·schedulers)      fp64, special functions: ops / (S·f·lanes)
 *     flow    control-flow instructions·clocks / (S·f·schedulers), before Volta
 *     ALU     (fp32 ops / fp32 lanes + integer ops / integer lanes) / (S·f)
 *     shared  transactions / (S·f)                      L1: sectors / (4·S·f)   L2: / (2·S·f)
 *     texture 4·quads / (S·f·texture units)
 *     atomics sectors / (f·slices of L2 that have any of them)
 *     DRAM    bytes / bandwidth, which follows the memory clock; or, if that is longer, what the
 *             slices of L2 can pass on: sectors / (f·slices)
 *     block   blocks·clocks / (S·f), of the SM that starts it; or, if that is longer, blocks·clocks
 *             / f, of the one unit that deals out the blocks to all SMs
 *     latency (instructions·clocks + loads·(100 + l·(150 + 250·d·f/r))·share + shared loads·clocks)
 *             / (S·f·W), where r is the reference clock: the memory waits for no clock of the core
 *
 * A unit that is said to reach more than its peak is taken to reach its peak: no time is below the
 * roofline of the machine.
 *
 * S the number of SMs or of blocks, whichever is less; f the core clock; W the mean number of warps
 * on an SM; l, d the shares of loads that go to L2 and on to DRAM. The machine's sizes are
 * NVIDIA's, the latencies in clocks are round numbers of published micro-benchmarks. The form is
 * ours; its parts are those of the roofline and of MWP-CWP (mwp_cwp.h).
 * Units: s. Pure. Threads: any. */
#ifndef WS_MODELS_EVENT_TIME_H
#define WS_MODELS_EVENT_TIME_H

#include "models/events.h"

#define EVENT_POWER(...)
#define EVENT_TIME(name, key, title, sense, expected, spread) WS_EVENT_TIME_##name,
enum ws_event_time_number {
#include "models/event_terms.def"
    WS_EVENT_TIME_N
};

struct ws_event_time {
    double v[WS_EVENT_TIME_N]; /* all more than 0 */
};

struct ws_event_time_prior {
    const char *title, *key;
    double expected;
    double spread; /* of the natural logarithm */
};
struct ws_event_time_prior ws_event_time_prior(enum ws_event_time_number number);
/* The model with the expected numbers. */
void ws_event_time_init(struct ws_event_time *ret);

/* What a launch needs of each unit, before the numbers of the model are applied: seconds, seconds
 * for each clock of latency, and so on. */
struct ws_event_need {
    double x[WS_EVENT_TIME_N];
};
/* @e must have been counted. */
void ws_event_time_need(const struct ws_event_gpu *gpu, const struct ws_events *e,
                        const struct ws_event_clocks *clocks, struct ws_event_need *ret);
/* The time; @ret_gradient, if not NULL: of the time by the natural logarithm of each number. */
double ws_event_time_of_need(const struct ws_event_time *t, const struct ws_event_need *need,
                             double *ret_gradient);
double ws_event_time_s(const struct ws_event_time *t, const struct ws_event_gpu *gpu,
                       const struct ws_events *e, const struct ws_event_clocks *clocks);

#endif

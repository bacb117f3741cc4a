/* SPDX-License-Identifier: Apache-2.0 */
/* models/event_limit.h - what a board does that would draw more than its power limit: it lowers
 * the core clock, and with it the core's voltage, to where the limit holds. NVIDIA documents that
 * as the reason "SW power cap" of lowered clocks (NVML, nvmlDeviceGetCurrentClocksEventReasons).
 * Measured launches show it: on the GTX 1080 Ti, `matrixMulGlobal` takes 66.4 million of the clocks
 * that were set at 267 and 280 W, and up to 68.2 million at 299 W, where it stays. So a launch at
 * the limit takes longer. Units: MHz, s, W. Pure. Threads: any. */
#ifndef WS_MODELS_EVENT_LIMIT_H
#define WS_MODELS_EVENT_LIMIT_H

#include <stdbool.h>

#include "models/event_power.h"
#include "models/event_time.h"

/* The highest share of a core clock, from @lowest to 1, at which @exceeds says false, or @lowest.
 * @exceeds: whether the board draws too much at this share; it does at 1, and above any share at
 * which it does. */
double ws_event_highest_share(double lowest, bool (*exceeds)(void *arg, double share), void *arg);

/* How a launch runs. */
struct ws_event_run {
    struct ws_event_clocks clocks;
    double voltage; /* of the core, as a share of that at the reference clock */
    double time_s, power_w;
};
/**
 * ws_event_run() - how a launch runs that has the GPU to itself
 * @set: the clocks that were set
 * @voltage: that goes with @set; at lower clocks it falls as the model's curve does
 * @ret: with the core clock of @set, or the highest at which the board draws no more than its
 *       limit; not below a fifth of @set, where the power counts as the limit
 */
void ws_event_run(const struct ws_event_power *power, const struct ws_event_time *time,
                  const struct ws_event_gpu *gpu, const struct ws_events *e,
                  const struct ws_event_clocks *set, double voltage, struct ws_event_run *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/power.h - what a GPU draws. It is a sum of three parts:
 *
 *   - what it draws while nothing runs,
 *   - what each SM adds, one at work and one that is idle beside others at work: Eq. 2 of the
 *     sBEET-mg paper (RTSS 2022), with its two cases the right way round,
 *   - what each launch adds of its own, evenly over its time, for what its kernel does.
 *
 * Where the catalog has the fitted numbers, all three are those of models/event_power.h: the first
 * is its static power and clocks, the second the SMs that have a warp, the third the events. So
 * launches that share an SM draw the second part once, and each its own third. The SMs that issue
 * are a fourth part, of which launches that share an SM draw less than their sum (crowd.h).
 * Other GPUs draw what the catalog's three keys say, and the third part is nothing. */
#ifndef WS_DEVICE_SOFT_TIMELINE_POWER_H
#define WS_DEVICE_SOFT_TIMELINE_POWER_H

#include "device/device.h"
#include "device/fitted.h"
#include "device/soft/timeline/crowd.h"

/* P = P_s while no SM is active, else P_s + sum over active SMs of p_dyn + sum over idle SMs of
 * p_idle. */
static inline uint64_t ws_power_mw(const struct ws_gpu_spec *s, uint32_t n_active_sms)
{
    if (!n_active_sms)
        return s->static_mw;
    return s->static_mw + (uint64_t)n_active_sms * s->dynamic_mw_per_sm +
           (uint64_t)(s->n_sms - n_active_sms) * s->idle_mw_per_sm;
}

/* Clocks and voltage as shares of those of the catalog. */
struct ws_power_clocks {
    double core, memory, volt;
};
/* Sets the three powers of @spec, which has those of the catalog, to what the GPU draws. */
void ws_power_at(const struct ws_fitted *f, const struct ws_power_clocks *clocks,
                 struct ws_gpu_spec *spec);

/* What a launch does, and at which clocks of the device. */
struct ws_draw {
    const struct ws_fitted *fitted;
    struct ws_power_clocks clocks;
    struct ws_events events;
};
/* What the board draws at most, whatever runs; UINT64_MAX: that, or how launches get slower, is not
 * known. */
uint64_t ws_power_most_mw(const struct ws_gpu_spec *spec);
/* How fast a launch is, as a share of the pace at which it takes @ns on @n_sms SMs, where its core
 * clock, and with it the voltage, is as much lower as makes the board draw @less_mw less. That is
 * models/event_limit.h for launches that may have others beside them. The clock is not below a
 * fiftieth. */
double ws_draw_pace(const struct ws_draw *d, uint64_t ns, uint32_t n_sms, uint64_t less_mw);
/* What the launch adds of its own if it takes @ns on @n_sms SMs; 0 where nothing was fitted, and of
 * NULL. @ret_issue: what it issues on each, which is not in the sum. */
uint32_t ws_draw_mw(const struct ws_draw *d, uint64_t ns, uint32_t n_sms,
                    struct ws_issue *ret_issue);

#endif

// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>

#include "models/event_limit.h"

#define LOWEST 0.2 /* of the core clock that was set */
enum { HALVINGS = 24 };

struct launch {
    const struct ws_event_power *power;
    const struct ws_event_time *time;
    const struct ws_event_gpu *gpu;
    const struct ws_events *e;
    const struct ws_event_clocks *set;
    double voltage;
};

/* How it would run at @share of the core clock, whatever the limit. */
static void run_at(const struct launch *l, double share, struct ws_event_run *ret)
{
    ret->clocks = *l->set;
    ret->clocks.core_mhz *= share;
    ret->voltage = l->voltage * ws_event_power_voltage(l->power, l->gpu, &ret->clocks) /
                   ws_event_power_voltage(l->power, l->gpu, l->set);
    ret->time_s = ws_event_time_s(l->time, l->gpu, l->e, &ret->clocks);
    ret->power_w =
        ws_event_power_at_w(l->power, l->gpu, ret->voltage, l->e, &ret->clocks, ret->time_s);
}

void ws_event_run(const struct ws_event_power *power, const struct ws_event_time *time,
                  const struct ws_event_gpu *gpu, const struct ws_events *e,
                  const struct ws_event_clocks *set, double voltage, struct ws_event_run *ret)
{
    struct launch l = {power, time, gpu, e, set, voltage};
    double most_w = ws_event_power_most_w(gpu), low = LOWEST, high = 1;
    run_at(&l, 1, ret);
    if (ret->power_w <= most_w)
        return;
    for (int i = 0; i < HALVINGS; i++) {
        double share = (low + high) / 2;
        run_at(&l, share, ret);
        *(ret->power_w > most_w ? &high : &low) = share;
    }
    run_at(&l, low, ret);
    ret->power_w = fmin(ret->power_w, most_w);
}

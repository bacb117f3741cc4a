// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>

#include "models/event_limit.h"

#define LOWEST 0.2 /* of the core clock that was set */
enum { HALVINGS = 24 };

double ws_event_highest_share(double lowest, bool (*exceeds)(void *arg, double share), void *arg)
{
    double low = lowest, high = 1;
    for (int i = 0; i < HALVINGS; i++) {
        double share = (low + high) / 2;
        *(exceeds(arg, share) ? &high : &low) = share;
    }
    return low;
}

struct launch {
    const struct ws_event_power *power;
    const struct ws_event_time *time;
    const struct ws_event_gpu *gpu;
    const struct ws_events *e;
    const struct ws_event_clocks *set;
    double voltage, most_w;
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

static bool exceeds(void *arg, double share)
{
    const struct launch *l = arg;
    struct ws_event_run run;
    run_at(l, share, &run);
    return run.power_w > l->most_w;
}

void ws_event_run(const struct ws_event_power *power, const struct ws_event_time *time,
                  const struct ws_event_gpu *gpu, const struct ws_events *e,
                  const struct ws_event_clocks *set, double voltage, struct ws_event_run *ret)
{
    struct launch l = {power, time, gpu, e, set, voltage, ws_event_power_most_w(gpu)};
    run_at(&l, 1, ret);
    if (ret->power_w <= l.most_w)
        return;
    run_at(&l, ws_event_highest_share(LOWEST, exceeds, &l), ret);
    ret->power_w = fmin(ret->power_w, l.most_w);
}

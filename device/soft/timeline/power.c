// SPDX-License-Identifier: Apache-2.0
#include "device/soft/timeline/power.h"

#include <math.h>

#include "base/macros.h"
#include "models/event_limit.h"

static struct ws_event_clocks mhz(const struct ws_fitted *f, const struct ws_power_clocks *c)
{
    return (struct ws_event_clocks){f->gpu.reference.core_mhz * c->core,
                                    f->gpu.reference.memory_mhz * c->memory};
}

/* The factors of the model's terms. The voltage is the one that was set, not the model's line over
 * the clock. */
static void terms(const struct ws_fitted *f, const struct ws_power_clocks *c,
                  const struct ws_events *e, double time_s, double ret[WS_EVENT_POWER_N])
{
    struct ws_event_clocks clocks = mhz(f, c);
    ws_event_power_terms(&f->gpu, c->volt, e, &clocks, time_s, ret);
}

static uint32_t round_mw(double w)
{
    return (uint32_t)WS_MIN(llround(w * 1e3), (long long)INT32_MAX);
}

void ws_power_at(const struct ws_fitted *f, const struct ws_power_clocks *clocks,
                 struct ws_gpu_spec *spec)
{
    if (!f->has_power) {
        spec->dynamic_mw_per_sm =
            (uint32_t)lround(spec->dynamic_mw_per_sm * clocks->volt * clocks->volt * clocks->core);
        return;
    }
    double x[WS_EVENT_POWER_N];
    const double *w = f->power.w;
    terms(f, clocks, &(struct ws_events){.active = 1}, 1, x);
    spec->static_mw = round_mw(w[WS_EVENT_POWER_STATIC] * x[WS_EVENT_POWER_STATIC] +
                               w[WS_EVENT_POWER_MEMORY_CLOCK] * x[WS_EVENT_POWER_MEMORY_CLOCK] +
                               w[WS_EVENT_POWER_CLOCK] * x[WS_EVENT_POWER_CLOCK]);
    spec->idle_mw_per_sm = 0;
    spec->dynamic_mw_per_sm =
        round_mw(w[WS_EVENT_POWER_ACTIVE] * x[WS_EVENT_POWER_ACTIVE] / spec->n_sms);
}

/* Of a launch that issues in the share @x of its clocks; the power is that at the set clocks. */
static void issue_of(const struct ws_draw *d, double x, double n_sms, struct ws_issue *ret)
{
    const struct ws_power_clocks *set = &d->set;
    double full = set->core * set->volt * set->volt * d->fitted->power.w[WS_EVENT_POWER_BUSY];
    double factor = d->clocks.core * d->clocks.volt * d->clocks.volt;
    double n = d->fitted->gpu.n_sms;
    *ret = (struct ws_issue){.mw_per_sm = 1e3 * full / n,
                             .quiet = fmin(fmax(1 - x / factor * n / n_sms, 0), 1)};
}

uint32_t ws_draw_mw(const struct ws_draw *d, uint64_t ns, uint32_t n_sms,
                    struct ws_issue *ret_issue)
{
    *ret_issue = (struct ws_issue){0};
    if (!d || !d->fitted->has_power || !ns || !n_sms)
        return 0;
    struct ws_events e = d->events;
    double x[WS_EVENT_POWER_N], set[WS_EVENT_POWER_N], own = 0;
    e.active = n_sms / d->fitted->gpu.n_sms;
    terms(d->fitted, &d->clocks, &e, (double)ns / 1e9, x);
    terms(d->fitted, &d->set, &e, (double)ns / 1e9, set);
    issue_of(d, x[WS_EVENT_POWER_BUSY], n_sms, ret_issue);
    for (int i = 0; i < WS_EVENT_POWER_N; i++) /* the first are the device's, at the set clocks */
        own += (x[i] - (i < WS_EVENT_POWER_BUSY ? set[i] : 0)) * d->fitted->power.w[i];
    return round_mw(fmax(own - ws_issue_mw(ret_issue, n_sms) / 1e3, 0));
}

void ws_draw_limit(struct ws_draw *d)
{
    const struct ws_fitted *f = d->fitted;
    struct ws_event_clocks set = mhz(f, &d->set);
    struct ws_event_run run;
    struct ws_event_time time = f->time;
    time.v[WS_EVENT_TIME_LAUNCH] = 0; /* draws nothing here: it is the catalog's overhead */
    ws_event_run(&f->power, &time, &f->gpu, &d->events, &set, d->set.volt, &run);
    d->clocks.core = d->set.core * run.clocks.core_mhz / set.core_mhz;
    d->clocks.volt = run.voltage;
}

// SPDX-License-Identifier: Apache-2.0
#include "device/soft/timeline/power.h"

#include <math.h>

#include "base/macros.h"
#include "models/event_limit.h"

#define LOWEST 0.02 /* of the core clock, of launches beside each other */

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

/* Of a launch that issues in the share @x of its clocks. */
static void issue_of(const struct ws_draw *d, double x, double n_sms, struct ws_issue *ret)
{
    double factor = d->clocks.core * d->clocks.volt * d->clocks.volt, n = d->fitted->gpu.n_sms;
    *ret =
        (struct ws_issue){.mw_per_sm = 1e3 * factor * d->fitted->power.w[WS_EVENT_POWER_BUSY] / n,
                          .quiet = fmin(fmax(1 - x / factor * n / n_sms, 0), 1)};
}

/* What the launch adds, at clocks of its own, to what the device and its SMs with a warp draw at
 * theirs: in W, with what it issues. Less than 0 if the lower clocks save more. @ret_busy: the
 * factor of the SMs that issue. */
static double added_w(const struct ws_draw *d, const struct ws_power_clocks *own, double s,
                      uint32_t n_sms, double *ret_busy)
{
    struct ws_events e = d->events;
    double x[WS_EVENT_POWER_N], device[WS_EVENT_POWER_N], sum = 0;
    e.active = n_sms / d->fitted->gpu.n_sms;
    terms(d->fitted, own, &e, s, x);
    terms(d->fitted, &d->clocks, &e, s, device);
    for (int i = 0; i < WS_EVENT_POWER_N; i++)
        sum += (x[i] - (i < WS_EVENT_POWER_BUSY ? device[i] : 0)) * d->fitted->power.w[i];
    *ret_busy = x[WS_EVENT_POWER_BUSY];
    return sum;
}

uint32_t ws_draw_mw(const struct ws_draw *d, uint64_t ns, uint32_t n_sms,
                    struct ws_issue *ret_issue)
{
    *ret_issue = (struct ws_issue){0};
    if (!d || !d->fitted->has_power || !ns || !n_sms)
        return 0;
    double busy, added = added_w(d, &d->clocks, (double)ns / 1e9, n_sms, &busy);
    issue_of(d, busy, n_sms, ret_issue);
    return round_mw(fmax(added - ws_issue_mw(ret_issue, n_sms) / 1e3, 0));
}

uint64_t ws_power_most_mw(const struct ws_gpu_spec *spec)
{
    struct ws_fitted f;
    ws_fitted_of(spec, &f);
    double most_w = ws_event_power_most_w(&f.gpu);
    bool known = f.has_power && f.has_time && isfinite(most_w);
    return known ? (uint64_t)llround(most_w * 1e3) : UINT64_MAX;
}

struct slowed {
    const struct ws_draw *d;
    struct ws_event_gpu gpu;
    struct ws_event_time time;
    uint32_t n_sms;
    double s, full_s, full_volt, most_w; /* s: as it takes here at its full clock */
    double pace;                         /* what exceeds() saw last */
};

static bool exceeds(void *arg, double share)
{
    struct slowed *x = arg;
    const struct ws_fitted *f = x->d->fitted;
    struct ws_power_clocks own = x->d->clocks;
    double busy;
    own.core *= share;
    struct ws_event_clocks clocks = mhz(f, &own);
    own.volt *= ws_event_power_voltage(&f->power, &f->gpu, &clocks) / x->full_volt;
    x->pace = x->full_s / ws_event_time_s(&x->time, &x->gpu, &x->d->events, &clocks);
    return added_w(x->d, &own, x->s / x->pace, x->n_sms, &busy) > x->most_w;
}

double ws_draw_pace(const struct ws_draw *d, uint64_t ns, uint32_t n_sms, uint64_t less_mw)
{
    const struct ws_fitted *f = d->fitted;
    const struct ws_event_clocks clocks = mhz(f, &d->clocks);
    struct slowed x = {
        .d = d, .gpu = f->gpu, .time = f->time, .n_sms = n_sms, .s = (double)ns / 1e9};
    double busy;
    x.gpu.n_sms = n_sms;
    x.time.v[WS_EVENT_TIME_LAUNCH] = 0; /* draws nothing here: it is the catalog's overhead */
    x.most_w = added_w(d, &d->clocks, x.s, n_sms, &busy) - (double)less_mw / 1e3;
    x.full_s = ws_event_time_s(&x.time, &x.gpu, &d->events, &clocks);
    x.full_volt = ws_event_power_voltage(&f->power, &f->gpu, &clocks);
    (void)exceeds(&x, ws_event_highest_share(LOWEST, exceeds, &x));
    return x.pace;
}

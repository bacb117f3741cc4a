// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <string.h>

#include "models/event_power.h"

enum unit { WS_WATT, WS_NANOJOULE };
static const struct {
    const char *title, *key;
    enum unit unit;
    double narrow, wide, spread;
} terms[WS_EVENT_POWER_N] = {
#define EVENT_POWER(name, key, title, unit, narrow, wide, spread)                                  \
    [WS_EVENT_POWER_##name] = {title, #key, unit, narrow, wide, spread},
#define EVENT_TIME(...)
#include "models/event_terms.def"
};

struct ws_event_power_prior ws_event_power_prior(const struct ws_event_gpu *gpu,
                                                 enum ws_event_power_term term)
{
    bool is_energy = terms[term].unit == WS_NANOJOULE;
    double v = gpu->wide_memory ? terms[term].wide : terms[term].narrow;
    return (struct ws_event_power_prior){.title = terms[term].title,
                                         .key = terms[term].key,
                                         .is_energy = is_energy,
                                         .expected = is_energy ? v : v * gpu->limit_w,
                                         .spread = terms[term].spread};
}

double ws_event_power_idle_w(const struct ws_event_gpu *gpu)
{
    return gpu->limit_w * (gpu->wide_memory ? 0.2 : 0.3);
}

double ws_event_voltage(double knee, double slope, double f)
{
    return 1 + slope * (fmax(f, knee) - fmax(1, knee));
}

void ws_event_power_terms(const struct ws_event_gpu *gpu, double voltage, const struct ws_events *e,
                          const struct ws_event_clocks *clocks, double time_s,
                          double ret[WS_EVENT_POWER_N])
{
    double f = clocks->core_mhz / gpu->reference.core_mhz, v2 = voltage * voltage;
    double per_clock = e->warp_instructions / (time_s * clocks->core_mhz * 1e6 * gpu->n_sms);
    double event = 1e-9 * v2 / time_s;
    double active = fmax(e->active, 1e-6);
    ret[WS_EVENT_POWER_STATIC] = 1;
    ret[WS_EVENT_POWER_MEMORY_CLOCK] = clocks->memory_mhz / gpu->reference.memory_mhz;
    ret[WS_EVENT_POWER_CLOCK] = f * v2;
    ret[WS_EVENT_POWER_ACTIVE] = f * v2 * active;
    ret[WS_EVENT_POWER_BUSY] = f * v2 * active * -expm1(-2 * per_clock / active);
    ret[WS_EVENT_POWER_ISSUE] = e->warp_instructions * event;
    ret[WS_EVENT_POWER_INT] = e->int_ops * event;
    ret[WS_EVENT_POWER_FP32] = e->fp32_ops * event;
    ret[WS_EVENT_POWER_FP64] = e->fp64_ops * event;
    ret[WS_EVENT_POWER_SFU] = e->sfu_ops * event;
    ret[WS_EVENT_POWER_SHARED] = e->shared_transactions * event;
    ret[WS_EVENT_POWER_L1] = e->l1_sectors * event;
    ret[WS_EVENT_POWER_L2] = e->l2_sectors * event;
    ret[WS_EVENT_POWER_DRAM] = e->dram_sectors * 1e-9 / time_s;
}

double ws_event_power_voltage(const struct ws_event_power *p, const struct ws_event_gpu *gpu,
                              const struct ws_event_clocks *clocks)
{
    return ws_event_voltage(p->knee, p->slope, clocks->core_mhz / gpu->reference.core_mhz);
}

double ws_event_power_at_w(const struct ws_event_power *p, const struct ws_event_gpu *gpu,
                           double voltage, const struct ws_events *e,
                           const struct ws_event_clocks *clocks, double time_s)
{
    double x[WS_EVENT_POWER_N], w = 0;
    ws_event_power_terms(gpu, voltage, e, clocks, time_s, x);
    for (int i = 0; i < WS_EVENT_POWER_N; i++)
        w += x[i] * p->w[i];
    return w;
}

double ws_event_power_w(const struct ws_event_power *p, const struct ws_event_gpu *gpu,
                        const struct ws_events *e, const struct ws_event_clocks *clocks,
                        double time_s)
{
    return ws_event_power_at_w(p, gpu, ws_event_power_voltage(p, gpu, clocks), e, clocks, time_s);
}

double ws_event_power_most_w(const struct ws_event_gpu *gpu)
{
    double most_w = fmax(gpu->limit_w, gpu->raised_w);
    return most_w > 0 ? most_w : INFINITY;
}

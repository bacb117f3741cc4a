// SPDX-License-Identifier: Apache-2.0
#include "device/fitted.h"

/* NVIDIA's SMs from Maxwell to Ampere have a texture unit for every four lanes of special
 * functions. */
enum { WIDE_BUS_BITS = 1024, WARP = 32, SFU_LANES_PER_TEXTURE_UNIT = 4 };
/* On Maxwell and Pascal, programs stop at one control-flow instruction in 8 clocks for each
 * scheduler; on Volta they are seen to do several times as many. [ours] */
enum { VOLTA = 70 };

#define WS_WATT_FIELD(key)      power_##key##_mw
#define WS_NANOJOULE_FIELD(key) energy_##key##_fj
#define TIME_FIELD(key)         time_##key##_milli
#define STRING_OF(x)            #x
#define STRING(x)               STRING_OF(x)
#define FIELD(field, units)                                                                        \
    {                                                                                              \
        STRING(field), offsetof(struct ws_gpu_spec, field), units                                  \
    }
#define WS_WATT_UNITS      1e3
#define WS_NANOJOULE_UNITS 1e6
const struct ws_fitted_key ws_fitted_power_keys[WS_EVENT_POWER_N] = {
#define EVENT_POWER(NAME, key, title, unit, narrow, wide, spread)                                  \
    [WS_EVENT_POWER_##NAME] = FIELD(unit##_FIELD(key), unit##_UNITS),
#define EVENT_TIME(...)
#include "models/event_terms.def"
};
const struct ws_fitted_key ws_fitted_time_keys[WS_EVENT_TIME_N] = {
#define EVENT_POWER(...)
#define EVENT_TIME(NAME, key, title, sense, expected, spread)                                      \
    [WS_EVENT_TIME_##NAME] = FIELD(TIME_FIELD(key), 1e3),
#include "models/event_terms.def"
};
const struct ws_fitted_key ws_fitted_knee_key = FIELD(voltage_knee_milli, 1e3);
const struct ws_fitted_key ws_fitted_slope_key = FIELD(voltage_slope_milli, 1e3);

static double get(const struct ws_gpu_spec *spec, const struct ws_fitted_key *k)
{
    return *(const uint32_t *)(const void *)((const char *)spec + k->at) / k->units;
}

static struct ws_event_gpu gpu_of(const struct ws_gpu_spec *s)
{
    return (struct ws_event_gpu){
        .n_sms = s->n_sms,
        .schedulers = s->schedulers_per_sm,
        .flow_units = s->hardware_cc && s->hardware_cc < VOLTA ? s->schedulers_per_sm : 0,
        .fp32_lanes = s->fp32_lanes_per_sm,
        .int_lanes = s->int_lanes_per_sm,
        .fp64_lanes = s->fp64_lanes_per_sm,
        .sfu_lanes = s->sfu_lanes_per_sm,
        .l2_slices = s->memory_bus_bits / (s->memory_bus_bits >= WIDE_BUS_BITS ? 64.0 : 16.0),
        .texture_units = (double)s->sfu_lanes_per_sm / SFU_LANES_PER_TEXTURE_UNIT,
        .warps_per_sm = (int)(s->max_threads_per_sm / WARP),
        .reference = {s->core_mhz, s->memory_mhz},
        .memory_bytes_per_s = (double)s->memory_bytes_per_s,
        .limit_w = s->limit_mw / 1e3,
        .raised_w = s->raised_limit_mw / 1e3,
        .wide_memory = s->memory_bus_bits >= WIDE_BUS_BITS};
}

void ws_fitted_of(const struct ws_gpu_spec *spec, struct ws_fitted *ret)
{
    *ret = (struct ws_fitted){.gpu = gpu_of(spec),
                              .power = {.knee = get(spec, &ws_fitted_knee_key),
                                        .slope = get(spec, &ws_fitted_slope_key)}};
    for (int i = 0; i < WS_EVENT_POWER_N; i++) {
        ret->power.w[i] = get(spec, &ws_fitted_power_keys[i]);
        ret->has_power |= ret->power.w[i] > 0;
    }
    ws_event_time_init(&ret->time);
    for (int i = 0; i < WS_EVENT_TIME_N; i++) {
        double v = get(spec, &ws_fitted_time_keys[i]);
        ret->has_time |= v > 0;
        if (v > 0)
            ret->time.v[i] = v;
    }
}

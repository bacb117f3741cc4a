/* SPDX-License-Identifier: Apache-2.0 */
/* device/fitted.h - the models of power and time (models/event_power.h, models/event_time.h) in an
 * entry of the catalog (device/spec.h): the keys that `wattshare fit` writes. Threads: any. */
#ifndef WS_DEVICE_FITTED_H
#define WS_DEVICE_FITTED_H

#include <stdbool.h>
#include <stddef.h>

#include "device/spec.h"
#include "models/event_power.h"
#include "models/event_time.h"

/* A key of the catalog: its field in struct ws_gpu_spec, a uint32_t, and how many of its units make
 * one of the model's. */
struct ws_fitted_key {
    const char *name;
    size_t at;
    double units;
};
extern const struct ws_fitted_key ws_fitted_power_keys[WS_EVENT_POWER_N];
extern const struct ws_fitted_key ws_fitted_time_keys[WS_EVENT_TIME_N];
extern const struct ws_fitted_key ws_fitted_knee_key, ws_fitted_slope_key;

struct ws_fitted {
    bool has_power, has_time; /* the entry has the numbers; else time is what is expected */
    struct ws_event_gpu gpu;
    struct ws_event_power power;
    struct ws_event_time time;
};
void ws_fitted_of(const struct ws_gpu_spec *spec, struct ws_fitted *ret);

#endif

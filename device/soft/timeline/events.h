/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/events.h - what was executed, as the models of power and time want it. Pure.
 */
#ifndef WS_DEVICE_SOFT_TIMELINE_EVENTS_H
#define WS_DEVICE_SOFT_TIMELINE_EVENTS_H

#include "device/soft/timeline/progress.h"
#include "models/events.h"

/* Of a launch's units together. @need, @blocks_per_sm: of its blocks. */
void ws_units_events(const struct ws_gpu_spec *spec, const struct ws_need *need,
                     uint32_t blocks_per_sm, const struct ws_unit *units, uint32_t n_units,
                     struct ws_events *ret);

/* Prices units as models/event_time.h has it; the bytes are those that get past L2. @spec: the
 * catalog's; @shares: of its clocks. */
void ws_units_fitted_cost(const struct ws_fitted *f, const struct ws_power_clocks *shares,
                          const struct ws_gpu_spec *spec, const struct ws_need *block,
                          uint32_t blocks_per_sm, const struct ws_unit *units, uint32_t n_units,
                          struct ws_cost *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/follow.h - a launch takes the time and the power that were measured for its
 * kernel on so many SMs (struct ws_followed), with WS_CLOCK_SCALED and at the catalog's clocks.
 *
 * The time is shared equally among the waves of the launch's blocks, and no block keeps another
 * from its SM or from memory: kernels that share SMs would each take the measured time. Threads:
 * any; pure. */
#ifndef WS_DEVICE_SOFT_TIMELINE_FOLLOW_H
#define WS_DEVICE_SOFT_TIMELINE_FOLLOW_H

#include "device/follow.h"
#include "device/soft/timeline/progress.h"

/* The entry of @name; NULL: its launches are modelled. */
const struct ws_followed *ws_follow_find(const struct ws_followed *v, uint32_t n, const char *name);
/* Prices the units of a launch of @n_blocks blocks, of which @blocks_per_sm fit on each of @n_sms
 * SMs. Return: false: nothing was measured for so many SMs; then @costs are as before. */
bool ws_follow_price(const struct ws_followed *k, const struct ws_gpu_spec *spec, uint32_t n_sms,
                     uint64_t n_blocks, uint32_t blocks_per_sm, const struct ws_unit *units,
                     uint32_t n_units, struct ws_cost *costs);
/* *ret_mw: what it adds to the power of Eq. 2 with @n_sms SMs; may be negative. @spec: with the
 * three powers that the meter knows, which are not the catalog's where events were fitted
 * (ws_power_at()). Return: false: no power was measured for so many SMs; then *ret_mw is as before.
 */
bool ws_follow_own_mw(const struct ws_followed *k, const struct ws_gpu_spec *spec, uint32_t n_sms,
                      int32_t *ret_mw);

#endif

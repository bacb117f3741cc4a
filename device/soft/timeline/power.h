/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/power.h - Eq. 2 of the sBEET-mg paper (RTSS 2022), with its two cases the
 * right way round. */
#ifndef WS_DEVICE_SOFT_TIMELINE_POWER_H
#define WS_DEVICE_SOFT_TIMELINE_POWER_H

#include "device/device.h"

/* P = P_s while no SM is active, else P_s + sum over active SMs of p_dyn + sum over idle SMs of
 * p_idle. */
static inline uint64_t ws_power_mw(const struct ws_gpu_spec *s, uint32_t n_active_sms)
{
    if (!n_active_sms)
        return s->static_mw;
    return s->static_mw + (uint64_t)n_active_sms * s->dynamic_mw_per_sm +
           (uint64_t)(s->n_sms - n_active_sms) * s->idle_mw_per_sm;
}

#endif

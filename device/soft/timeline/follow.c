// SPDX-License-Identifier: Apache-2.0
#include "device/soft/timeline/follow.h"

#include <math.h>
#include <string.h>

#include "device/soft/timeline/power.h"

const struct ws_followed *ws_follow_find(const struct ws_followed *v, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(v[i].kernel, name))
            return &v[i];
    return NULL;
}

static double n_waves(uint64_t n, uint64_t wave)
{
    uint64_t waves = (n + wave - 1) / wave;
    return (double)waves;
}

bool ws_follow_price(const struct ws_followed *k, const struct ws_gpu_spec *spec, uint32_t n_sms,
                     uint64_t n_blocks, uint32_t blocks_per_sm, const struct ws_unit *units,
                     uint32_t n_units, struct ws_cost *costs)
{
    if (!n_sms || n_sms > k->n_sms || k->time_ns[n_sms - 1] <= 0)
        return false;
    double all_ns = fmax(k->time_ns[n_sms - 1] - spec->launch_overhead_ns, 1);
    uint64_t wave = (uint64_t)n_sms * WS_MAX(blocks_per_sm, 1u), left = 0;
    for (uint32_t i = 0; i < n_units; i++)
        left += WS_MAX(units[i].n_blocks, 1u);
    /* Units of one block each keep the waves of the whole launch, also of what a preempted one
     * has left. Larger ones have waves of their own. */
    double unit_ns = left == n_units
                         ? all_ns / n_waves(n_blocks, wave)
                         : all_ns * ((double)left / (double)n_blocks) / n_waves(n_units, wave);
    for (uint32_t i = 0; i < n_units; i++)
        costs[i] = (struct ws_cost){.latency_ns = unit_ns};
    return true;
}

bool ws_follow_own_mw(const struct ws_followed *k, const struct ws_gpu_spec *spec, uint32_t n_sms,
                      int32_t *ret_mw)
{
    if (!n_sms || n_sms > k->n_sms || k->power_mw[n_sms - 1] <= 0)
        return false;
    *ret_mw = (int32_t)lround(k->power_mw[n_sms - 1] - (double)ws_power_mw(spec, n_sms));
    return true;
}

// SPDX-License-Identifier: Apache-2.0
/* The regression of the consolidation paper (2011, models/power.h) on the same measurements: a
 * constant and the rates of warp instructions and of accesses to global memory, each per SM and
 * clock, with a family of applications left out. It knows no clocks, so it is fitted and judged at
 * one setting: the highest core clock, and the highest memory clock with it. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "models/power.h"
#include "papers/experiments/truth.h"

static bool is_above(const struct ws_event_clocks *a, const struct ws_event_clocks *b)
{
    return a->core_mhz > b->core_mhz ||
           (a->core_mhz == b->core_mhz && a->memory_mhz > b->memory_mhz);
}

static bool is_at(const struct ws_measured_launch *l, const struct ws_event_clocks *c)
{
    return l->clocks.core_mhz == c->core_mhz && l->clocks.memory_mhz == c->memory_mhz &&
           !isnan(l->power_w);
}

static struct ws_power_sample sample_of(const struct ws_truth_data *t,
                                        const struct ws_measured_launch *l)
{
    double clocks = t->gpu.n_sms * l->clocks.core_mhz * 1e6 * l->rate_time_s;
    return (struct ws_power_sample){.rate_comp = l->e.warp_instructions / clocks,
                                    .rate_gmem = l->e.l1_sectors / clocks,
                                    .power_w = l->power_w};
}

/* The power of launch @i from those of other families. NAN: they do not determine it. */
static double predict(const struct ws_truth_data *t, size_t i, const struct ws_event_clocks *at,
                      struct ws_power_sample *scratch)
{
    const struct ws_measured_launch *v = t->set.v;
    struct ws_power_model model;
    size_t n = 0;
    for (size_t k = 0; k < t->n_judged; k++)
        if (v[k].family != v[i].family && is_at(&v[k], at))
            scratch[n++] = sample_of(t, &v[k]);
    if (ws_power_fit(&model, scratch, n, false, NULL))
        return NAN;
    struct ws_power_sample s = sample_of(t, &v[i]);
    return ws_power_above_idle_w(&model, s.rate_comp, s.rate_gmem, 0);
}

int ws_truth_2011(const struct ws_truth_data *t, const struct ws_predicted *ours,
                  struct ws_truth_2011 *ret)
{
    const struct ws_measured_launch *v = t->set.v;
    struct ws_power_sample *scratch = ws_alloc_array(t->n_judged + 1, sizeof(*scratch));
    struct ws_event_clocks at = {0, 0};
    double n = 0;
    *ret = (struct ws_truth_2011){0, 0};
    if (!scratch)
        return -ENOMEM;
    for (size_t i = 0; i < t->n_judged; i++)
        if (is_above(&v[i].clocks, &at))
            at = v[i].clocks;
    for (size_t i = 0; i < t->n_judged; i++) {
        double w = is_at(&v[i], &at) ? predict(t, i, &at, scratch) : NAN;
        if (isnan(w))
            continue;
        n++;
        ret->regression += 100 * fabs(w / v[i].power_w - 1);
        ret->events += 100 * fabs(ours[i].power_w / v[i].power_w - 1);
    }
    free(scratch);
    ret->regression /= fmax(n, 1);
    ret->events /= fmax(n, 1);
    return 0;
}

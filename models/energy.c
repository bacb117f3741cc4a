// SPDX-License-Identifier: Apache-2.0
/* The active-idle model. One kernel's energy above the gated GPU's, W(m)·(P(m) - Ps), decides both
 * how many SMs are best and which GPU is: the static power of all GPUs through a common window is
 * the same whatever is chosen. (Def. 2 taken literally compares only the GPU's own static power and
 * would always choose the smallest GPU.) */
#include "config.h"

#include <math.h>

#include "base/macros.h"
#include "models/energy.h"

double ws_energy_power_w(enum ws_energy_form form, const struct ws_energy_gpu *g, double dyn_w,
                         int n_busy_sm)
{
    bool awake = n_busy_sm > 0;
    if (form == WS_ENERGY_EQ2_PRINTED)
        awake = !awake;
    if (form == WS_ENERGY_EQ3_PRINTED)
        awake = true;
    if (!awake)
        return g->static_w;
    return g->static_w + dyn_w + (g->n_sm - n_busy_sm) * g->idle_w_per_sm;
}

double ws_energy_window_mj(enum ws_energy_form form, const struct ws_energy_gpu *gpus, int n_gpus,
                           const struct ws_energy_run *runs, size_t n_runs, double from, double to)
{
    double sum = 0;
    for (int k = 0; k < n_gpus; k++) {
        double t = from;
        while (t < to) {
            double next = to, dyn_w = 0;
            int busy = 0;
            for (size_t i = 0; i < n_runs; i++) {
                const struct ws_energy_run *r = &runs[i];
                if (r->gpu != k)
                    continue;
                if (r->start <= t && t < r->end) {
                    dyn_w += r->n_sm * r->dyn_w_per_sm;
                    busy += r->n_sm;
                }
                if (r->start > t)
                    next = fmin(next, r->start);
                if (r->end > t)
                    next = fmin(next, r->end);
            }
            sum += (next - t) * ws_energy_power_w(form, &gpus[k], dyn_w, busy);
            t = next;
        }
    }
    return sum;
}

static double power_of(const struct ws_energy_gpu *g, const struct ws_energy_kernel *k, int m)
{
    return k->power_w ? k->power_w[m - 1]
                      : ws_energy_power_w(WS_ENERGY_CORRECTED, g, m * k->dyn_w_per_sm, m);
}

double ws_energy_active_mj(const struct ws_energy_gpu *g, const struct ws_energy_kernel *k, int m)
{
    return k->wcet[m - 1] * (power_of(g, k, m) - g->static_w);
}

double ws_energy_in_window_mj(const struct ws_energy_gpu *g, const struct ws_energy_kernel *k,
                              int m, double window, double other_static_w)
{
    return ws_energy_active_mj(g, k, m) + window * (g->static_w + other_static_w);
}

int ws_energy_optimal_sms(const struct ws_energy_gpu *g, const struct ws_energy_kernel *k,
                          int limit)
{
    int best = 0;
    double least = INFINITY;
    for (int m = 1; m <= WS_MIN(limit, k->n_sm); m++) {
        double e = ws_energy_active_mj(g, k, m);
        if (e < least) {
            least = e;
            best = m;
        }
    }
    return best;
}

double ws_energy_mean_utilization(const struct ws_energy_kernel *k, int limit, double period)
{
    double sum = 0;
    int n = WS_MIN(limit, k->n_sm);
    for (int m = 0; m < n; m++)
        sum += k->wcet[m];
    return (sum / n + k->h2d + k->d2h) / period;
}

double ws_energy_utilization(const struct ws_energy_kernel *k, int m, double period)
{
    return (k->wcet[m - 1] + k->h2d + k->d2h) / period;
}

void ws_energy_rank(const double *cost, int n, int *ret)
{
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at && cost[ret[at - 1]] > cost[i]; at--)
            ret[at] = ret[at - 1];
        ret[at] = i;
    }
}

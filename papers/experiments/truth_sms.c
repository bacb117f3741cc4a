// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <string.h>

#include "papers/experiments/truth_sms.h"

double ws_truth_sms_time_s(const struct ws_measured_kernel *k, int m)
{
    return k->mean_ms[m - 1] / 1e3;
}

double ws_truth_sms_power_w(const struct ws_measured_kernel *k, int m)
{
    return k->cost.power_w[m - 1];
}

/* The two matrix products are one family. */
static bool same_family(const struct ws_measured_kernel *a, const struct ws_measured_kernel *b)
{
    return !strcmp(a->name, b->name) ||
           (!strncmp(a->name, "mmul", 4) && !strncmp(b->name, "mmul", 4));
}

/* The power of a board with @m SMs in use, without what those draw. */
static double rest_w(const char *gpu, int m)
{
    const struct ws_energy_gpu *g = &ws_measured_gpu_find(gpu)->power;
    return g->static_w + (g->n_sm - m) * g->idle_w_per_sm;
}

/* What an SM in use draws when all are. */
static double own_w_per_sm(const struct ws_measured_kernel *k)
{
    int n = k->cost.n_sm;
    return (ws_truth_sms_power_w(k, n) - rest_w(k->gpu, n)) / n;
}

double ws_truth_sms_predict_s(const struct ws_measured_kernel *k, int m)
{
    int n = k->cost.n_sm;
    double sum = 0, count = 0;
    for (int app = 0; app < WS_MEASURED_APPS; app++) {
        const struct ws_measured_kernel *other = ws_measured_app(k->gpu, app);
        if (same_family(k, other))
            continue;
        sum += log(ws_truth_sms_time_s(other, m) / ws_truth_sms_time_s(other, n));
        count++;
    }
    return ws_truth_sms_time_s(k, n) * exp(sum / count);
}

double ws_truth_sms_predict_w(const struct ws_measured_kernel *k, int m)
{
    double sum = 0, count = 0;
    for (int app = 0; app < WS_MEASURED_APPS; app++) {
        const struct ws_measured_kernel *other = ws_measured_app(k->gpu, app);
        if (same_family(k, other))
            continue;
        sum += own_w_per_sm(other);
        count++;
    }
    return rest_w(k->gpu, m) + m * sum / count;
}

double ws_truth_sms_own_w(const struct ws_measured_kernel *k, int m)
{
    return rest_w(k->gpu, m) + m * own_w_per_sm(k);
}

double ws_truth_sms_line_s(const struct ws_measured_kernel *k, int m)
{
    int n = k->cost.n_sm;
    double one = ws_truth_sms_time_s(k, 1), all = ws_truth_sms_time_s(k, n);
    double slope = (one - all) / (1 - 1.0 / n);
    return all + slope * (1.0 / m - 1.0 / n);
}

// SPDX-License-Identifier: Apache-2.0
/* models/power.c - event-rate power model: fit and use. The fit is lsq.c's. */
#include "models/power.h"

#include <math.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "base/error.h"
#include "models/lsq.h"

int ws_power_fit(struct ws_power_model *ret, const struct ws_power_sample *samples, size_t n,
                 bool with_temperature, struct ws_diags *diags)
{
    static const char *const names[] = {"constant", "rate_comp", "rate_gmem", "deltaT_K"};
    uint32_t n_columns = with_temperature ? 4 : 3;
    double *rows = ws_alloc_array(n, n_columns * sizeof(*rows));
    double *y = ws_alloc_array(n, sizeof(*y));
    struct ws_power_model p = {.with_temperature = with_temperature, .n_samples = n};
    double x[4] = {0};
    int r = -ENOMEM;
    if (n && (!rows || !y))
        goto out;
    for (size_t i = 0; i < n; i++) {
        double *row = rows + i * n_columns;
        row[0] = 1;
        row[1] = samples[i].rate_comp;
        row[2] = samples[i].rate_gmem;
        if (with_temperature)
            row[3] = samples[i].delta_t_k;
        y[i] = samples[i].power_w;
    }
    r = ws_lsq_solve(rows, y, n, n_columns, names, "power fit", x, &p.rss, diags);
    if (r)
        goto out;
    p.lambda_w = x[0];
    p.a_comp_w = x[1];
    p.a_gmem_w = x[2];
    p.k_t_w_per_k = x[3];
    p.rms_w = sqrt(p.rss / (double)n);
    *ret = p;
out:
    free(rows);
    free(y);
    return r ? ws_forward(r) : 0;
}

double ws_power_above_idle_w(const struct ws_power_model *p, double rate_comp, double rate_gmem,
                             double delta_t_k)
{
    double thermal = p->with_temperature ? p->k_t_w_per_k * delta_t_k : 0;
    return p->lambda_w + p->a_comp_w * rate_comp + p->a_gmem_w * rate_gmem + thermal;
}

double ws_power_mix_j(const struct ws_power_alone *parts, size_t n_parts, double lambda_w,
                      double mix_time_s)
{
    double j = lambda_w * mix_time_s;
    for (size_t i = 0; i < n_parts; i++)
        j += parts[i].n * (parts[i].above_idle_w - lambda_w) * parts[i].time_s;
    return j;
}

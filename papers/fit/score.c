// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/stat.h"
#include "papers/fit/score.h"

double ws_score_measured(const struct ws_measured_launch *l, enum ws_score_of of)
{
    return of == WS_SCORE_POWER  ? l->power_w
           : of == WS_SCORE_TIME ? l->time_s
                                 : l->power_w * l->time_s;
}

double ws_score_predicted(const struct ws_predicted *p, enum ws_score_of of)
{
    return of == WS_SCORE_POWER ? p->power_w : of == WS_SCORE_TIME ? p->time_s : p->energy_j;
}

int ws_score(const struct ws_measured_launch *v, const struct ws_predicted *p, size_t n,
             enum ws_score_of of, int n_apps, struct ws_score *ret, struct ws_score_app *ret_apps)
{
    double *errors = ws_alloc_array(n + 1, sizeof(*errors));
    if (!errors)
        return ws_raise(-ENOMEM);
    *ret = (struct ws_score){.worst_app = -1};
    memset(ret_apps, 0, (size_t)n_apps * sizeof(*ret_apps));
    for (size_t i = 0; i < n; i++) {
        double measured = ws_score_measured(&v[i], of);
        double error = 100 * (ws_score_predicted(&p[i], of) / measured - 1);
        if (isnan(error))
            continue;
        struct ws_score_app *a = &ret_apps[v[i].app];
        a->n++;
        a->mean += fabs(error);
        a->bias += error;
        errors[ret->n++] = fabs(error);
        ret->mean += fabs(error);
    }
    if (ret->n) {
        qsort(errors, ret->n, sizeof(*errors), ws_stat_by_size);
        ret->mean /= (double)ret->n;
        ret->median = (errors[(ret->n - 1) / 2] + errors[ret->n / 2]) / 2;
        ret->worst = errors[ret->n - 1];
    }
    for (int i = 0; i < n_apps; i++) {
        struct ws_score_app *a = &ret_apps[i];
        if (!a->n)
            continue;
        a->mean /= (double)a->n;
        a->bias /= (double)a->n;
        if (ret->worst_app < 0 || a->mean > ret->worst_app_mean) {
            ret->worst_app = i;
            ret->worst_app_mean = a->mean;
        }
    }
    free(errors);
    return 0;
}

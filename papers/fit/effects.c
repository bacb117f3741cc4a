// SPDX-License-Identifier: Apache-2.0
/* Least squares by turns: each kind of unknowns in turn is the best beside the others as they are.
 * An unknown of one kind is in no equation with another of its kind, so each is a quotient. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/fit/effects.h"

enum { ROUNDS = 100, OWN = WS_EFFECTS, KINDS };
#define PRIOR 1 /* weight of an effect of 0 */

struct effects {
    const struct ws_effects_launch *v;
    size_t n;
    double limit;
    double *of[KINDS];    /* [settings], and [families] of OWN */
    double *sum, *weight; /* [settings or families] */
};

static int at(const struct ws_effects_launch *l, int kind)
{
    return kind == OWN ? l->family : l->setting;
}
static double share(const struct ws_effects_launch *l, int kind)
{
    return kind == OWN ? 1 : l->x[kind];
}

static void improve(struct effects *e, int kind, size_t n_unknowns)
{
    for (size_t i = 0; i < n_unknowns; i++) {
        e->sum[i] = 0;
        e->weight[i] = kind == OWN ? 0 : PRIOR;
    }
    for (size_t i = 0; i < e->n; i++) {
        const struct ws_effects_launch *l = &e->v[i];
        double error = l->off, x = share(l, kind);
        for (int k = 0; k < KINDS; k++)
            error -= share(l, k) * e->of[k][at(l, k)];
        double weight = l->weight * (fabs(error) > e->limit ? e->limit / fabs(error) : 1);
        e->sum[at(l, kind)] += weight * x * (error + x * e->of[kind][at(l, kind)]);
        e->weight[at(l, kind)] += weight * x * x;
    }
    for (size_t i = 0; i < n_unknowns; i++)
        e->of[kind][i] = e->weight[i] > 0 ? e->sum[i] / e->weight[i] : 0;
}

int ws_effects_find(const struct ws_effects_launch *v, size_t n, int n_families, int n_settings,
                    double limit, double *const ret[WS_EFFECTS])
{
    size_t families = (size_t)n_families, settings = (size_t)n_settings, most = families + settings;
    double *scratch = ws_alloc_array(families + 2 * most + 1, sizeof(*scratch));
    if (!scratch)
        return ws_raise(-ENOMEM);
    struct effects e = {.v = v,
                        .n = n,
                        .limit = limit,
                        .of = {ret[0], ret[1], scratch},
                        .sum = scratch + families,
                        .weight = scratch + families + most};
    for (int k = 0; k < WS_EFFECTS; k++)
        memset(ret[k], 0, settings * sizeof(*ret[k]));
    for (int round = 0; round < ROUNDS; round++) {
        improve(&e, OWN, families);
        for (int k = 0; k < WS_EFFECTS; k++)
            improve(&e, k, settings);
    }
    free(scratch);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* The draws come in this order: utilisations (all again if one is out of range), kernels,
 * offsets in rate-monotonic order. */
#include "config.h"

#include <errno.h>
#include <math.h>

#include "base/error.h"
#include "models/measured.h"
#include "papers/sets/gen_sbeet.h"
#include "papers/sets/random.h"

#define LEAST 0.01
#define MOST  0.5

static double draw(void *arg)
{
    return ws_pyrandom_random(arg);
}

static bool in_range(const double *u, int n)
{
    for (int i = 0; i < n; i++)
        if (u[i] < LEAST || u[i] > MOST)
            return false;
    return true;
}

static void sort_by_period(struct ws_sbeet_task *t, int n)
{
    for (int i = 1; i < n; i++)
        for (int k = i; k && t[k].period < t[k - 1].period; k--) {
            struct ws_sbeet_task x = t[k];
            t[k] = t[k - 1];
            t[k - 1] = x;
        }
}

int ws_gen_sbeet(const struct ws_gen_sbeet *g, struct ws_sbeet_task *ret)
{
    double u[WS_GEN_SBEET_MAX];
    int n = g->n_tasks;
    if (n < 1 || n > WS_GEN_SBEET_MAX || g->ref_sm < 1 ||
        g->ref_sm > ws_measured_gpu_find("rtx3070")->power.n_sm)
        return ws_raise(-EINVAL);
    /* Near both ends of what is possible, nearly every vector is out of range. */
    if (!(g->util >= 1.5 * n * LEAST && g->util <= 0.95 * n * MOST) && n > 1)
        return ws_raise(-EINVAL);
    if (n == 1 && !(g->util >= LEAST && g->util <= MOST))
        return ws_raise(-EINVAL);
    struct ws_pyrandom r;
    ws_pyrandom_init(&r, g->seed);
    do
        ws_uunifast(g->util, n, u, draw, &r);
    while (!in_range(u, n));
    for (int i = 0; i < n; i++) {
        int app = (int)ws_pyrandom_below(&r, WS_MEASURED_APPS);
        const struct ws_measured_kernel *k = ws_measured_app("rtx3070", app);
        ret[i] = (struct ws_sbeet_task){.kernel = k->name, .app = app, .utilization = u[i]};
        ret[i].period = fmax(1, rint(ws_energy_mean_utilization(&k->cost, g->ref_sm, 1) / u[i]));
        ret[i].deadline = ret[i].period / 2;
    }
    sort_by_period(ret, n);
    for (int i = 0; i < n; i++)
        ret[i].offset = g->random_offsets ? (double)ws_pyrandom_below(&r, (uint64_t)ret[i].period)
                                          : 2.0 * (n - 1 - i);
    return 0;
}

struct ws_gen_sbeet ws_gen_sbeet_reference(double util, int i)
{
    return (struct ws_gen_sbeet){.seed = (uint64_t)llround(util * 1e6) + (uint64_t)i,
                                 .n_tasks = 6,
                                 .util = util,
                                 .ref_sm = 24,
                                 .random_offsets = i % 2 == 1};
}

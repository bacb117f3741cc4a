// SPDX-License-Identifier: Apache-2.0
/* For some parameters (P0/P*, gamma/P*, delta; see doc/edl.md) the paper prints ranges that do
 * not fit its own data. The ranges are used as printed, since the paper's simulations ran on
 * them. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/sets/gen_edl.h"
#include "papers/sets/random.h"

const struct ws_gen_edl ws_gen_edl_offline = {
    .seed = 1, .u_initial = 1, .base = 1024, .n_slots = 1440, .u_low = 0, .u_high = 1};
const struct ws_gen_edl ws_gen_edl_online = {.seed = 1,
                                             .u_initial = 0.4,
                                             .u_online = 1.6,
                                             .base = 1024,
                                             .n_slots = 1440,
                                             .u_low = 0,
                                             .u_high = 1};

void ws_gen_edl_release_u(struct ws_gen_edl *g)
{
    g->u_low = g->u_online > 0 ? 0.15 : 0.25;
    g->u_high = 1 - g->u_low;
}

struct edl_task_list {
    struct ws_cluster_task *v;
    size_t n, cap;
};

struct ws_dvfs_task ws_gen_edl_task(const struct ws_gen_edl *g, struct ws_random *r)
{
    struct ws_dvfs_task t;
    if (g->library) {
        t = g->library[ws_random_integer(r, 0, g->n_library - 1)];
    } else {
        double p_star = (double)ws_random_integer(r, 175, 206);
        t.p0 = p_star * ws_random_uniform(r, 0.20, 0.41);
        t.gamma = p_star * ws_random_uniform(r, 0.1, 0.2);
        t.c = p_star - t.p0 - t.gamma;
        t.d = ws_random_uniform(r, 1.66, 7.61);
        t.t0 = ws_random_uniform(r, 0.1, 0.95);
        t.delta = ws_random_uniform(r, 0.07, 0.91);
    }
    double times = (double)ws_random_integer(r, 10, 50);
    t.d *= times;
    t.t0 *= times;
    return t;
}

/* Tasks that arrive at 0, until their utilisations sum to @total. */
static int fill(const struct ws_gen_edl *g, struct ws_random *r, double total,
                struct edl_task_list *l)
{
    for (double sum = 0; sum < total;) {
        struct ws_cluster_task t = {.dvfs = ws_gen_edl_task(g, r)};
        double u = ws_random_uniform(r, g->u_low, g->u_high);
        if (!(u > 1e-9))
            continue;
        u = fmin(u, total - sum);
        sum += u;
        t.id = (int64_t)l->n;
        t.deadline = ws_dvfs_default(&t.dvfs).t / u;
        void *v = l->v;
        int e = ws_grow(&v, &l->cap, l->n + 1, sizeof(*l->v));
        if (e < 0)
            return ws_forward(e);
        l->v = v;
        l->v[l->n++] = t;
        if (total - sum < 1e-9) /* what is left is rounding */
            break;
    }
    return 0;
}

/* Poisson counts for each slot, refined one by one in slots drawn at random until they sum to
 * the number of tasks. */
static int spread(const struct ws_gen_edl *g, struct ws_random *r, struct ws_cluster_task *v,
                  size_t n)
{
    int64_t *count = ws_alloc_array((size_t)g->n_slots, sizeof(*count)), sum = 0;
    if (!count)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < g->n_slots; i++)
        sum += count[i] = ws_random_poisson(r, (double)n / g->n_slots);
    while (sum != (int64_t)n) {
        int64_t i = ws_random_integer(r, 0, g->n_slots - 1);
        if (sum < (int64_t)n) {
            count[i]++;
            sum++;
        } else if (count[i]) {
            count[i]--;
            sum--;
        }
    }
    size_t k = 0;
    for (int i = 0; i < g->n_slots; i++)
        for (int64_t c = 0; c < count[i]; c++, k++) {
            v[k].arrival = i + 1;
            v[k].deadline += i + 1;
        }
    free(count);
    return 0;
}

int ws_gen_edl(const struct ws_gen_edl *g, struct ws_cluster_task **ret, size_t *ret_n)
{
    if (!(g->u_initial >= 0 && g->u_initial <= 1e6 && g->u_online >= 0 && g->u_online <= 1e6) ||
        g->base < 1 || g->n_slots < 1 ||
        !(g->u_low >= 0 && g->u_high <= 1 && g->u_low < g->u_high) ||
        (g->library && g->n_library < 1))
        return ws_raise(-EINVAL);
    struct edl_task_list l = {0};
    struct ws_random r;
    ws_random_init(&r, g->seed);
    int e = fill(g, &r, g->u_initial * g->base, &l);
    size_t n_initial = l.n;
    if (!e)
        e = fill(g, &r, g->u_online * g->base, &l);
    if (!e && l.n > n_initial)
        e = spread(g, &r, l.v + n_initial, l.n - n_initial);
    if (e) {
        free(l.v);
        return ws_forward(e);
    }
    *ret = l.v;
    *ret_n = l.n;
    return 0;
}

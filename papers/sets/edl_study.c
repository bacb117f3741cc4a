// SPDX-License-Identifier: Apache-2.0
/* Runs generated sets in every cell of a study, and takes means. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/sets/edl_study.h"

int ws_edl_cell_run(const struct ws_edl_cell *cell, bool offline,
                    const struct ws_cluster_task *tasks, size_t n, struct ws_cluster_result *ret)
{
    const struct ws_policy_ops *ops = ws_policy_find(cell->policy);
    struct ws_cluster c = ws_cluster_paper;
    char theta[48], error[200];
    const char *options[6] = {cell->dvfs ? "dvfs=yes" : "dvfs=no", offline ? "rho=0" : "rho=2",
                              offline ? "slot=0" : "slot=1",
                              cell->whole ? "servers=whole" : "servers=grouped"};
    if (!ops || !ws_edl_is(ops))
        return ws_raise(-EINVAL);
    if (ops == &ws_policy_edl) {
        snprintf(theta, sizeof(theta), "theta=%.17g", cell->theta);
        options[4] = theta;
    }
    c.pairs_per_server = cell->l;
    c.turn_on_j = offline ? 0 : c.turn_on_j;
    /* As many pairs as it takes: the paper's twice over nearly always do. */
    c.n_pairs *= 2;
    int r = ws_cluster_run(&c, tasks, n, ops, options, NULL, ret, error, sizeof(error));
    if (!r && ret->n_dropped) {
        c.n_pairs = ws_cluster_pairs_for(n, cell->l);
        r = ws_cluster_run(&c, tasks, n, ops, options, NULL, ret, error, sizeof(error));
    }
    return r;
}

int ws_edl_study_init(struct ws_edl_study *s)
{
    s->results = ws_alloc_array((size_t)s->n_sets * (size_t)s->n_cells + 1, sizeof(*s->results));
    s->error = 0;
    return s->results ? 0 : ws_raise(-ENOMEM);
}

void ws_edl_study_set(void *study, size_t i)
{
    struct ws_edl_study *s = study;
    struct ws_gen_edl g = s->gen;
    struct ws_cluster_task *tasks = NULL;
    size_t n = 0;
    g.seed = g.seed * UINT64_C(1000003) + i;
    int r = ws_gen_edl(&g, &tasks, &n);
    for (int k = 0; k < s->n_cells && !r; k++)
        r = ws_edl_cell_run(&s->cells[k], g.u_online <= 0, tasks, n,
                            &s->results[i * (size_t)s->n_cells + (size_t)k]);
    free(tasks);
    int none = 0;
    if (r)
        atomic_compare_exchange_strong(&s->error, &none, r);
}

void ws_edl_study_deinit(struct ws_edl_study *s)
{
    free(s->results);
    s->results = NULL;
}

struct ws_edl_means ws_edl_study_means(const struct ws_edl_study *s, int cell)
{
    struct ws_edl_means m = {0};
    double n = s->n_sets, square = 0;
    for (int i = 0; i < s->n_sets; i++) {
        const struct ws_cluster_result *r = &s->results[i * s->n_cells + cell];
        m.n_tasks += (double)r->n_jobs / n;
        m.e_run += r->e_run / n;
        m.e_idle += r->e_idle / n;
        m.e_turn_on += r->e_turn_on / n;
        m.e_total += r->e_total / n;
        m.n_pairs += r->n_pairs_used / n;
        m.n_servers_on += (double)r->n_servers_on / n;
        m.max_servers_on += r->max_servers_on / n;
        m.n_deadline_prior += (double)r->counts.n_deadline_prior / n;
        m.n_readjusted += (double)r->counts.n_readjusted / n;
        m.n_missed += (double)r->n_missed / n;
    }
    for (int i = 0; i < s->n_sets; i++) {
        double d = s->results[i * s->n_cells + cell].e_total - m.e_total;
        square += d * d;
    }
    m.ci95_total = n > 1 ? 1.96 * sqrt(square / (n - 1)) / sqrt(n) : NAN;
    return m;
}

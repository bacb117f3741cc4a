// SPDX-License-Identifier: Apache-2.0
/* The state of a cluster as the policies of policy/edl.h see it. Each question they ask (which pair
 * is free first, which is the first that is free early enough, which server is the lowest one off,
 * which may sleep next) is one look into a ws_min_tree. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "policy/edl_pairs.h"

struct by_server {
    int server, gpu;
};

static int compare(const void *a, const void *b)
{
    const struct by_server *x = a, *y = b;
    if (x->server != y->server)
        return x->server < y->server ? -1 : 1;
    return x->gpu < y->gpu ? -1 : x->gpu > y->gpu;
}

/* Lays the pairs out server by server; those of server -1 come first by themselves. */
static void lay_out(struct ws_edl_pairs *c, const struct by_server *order)
{
    for (int i = 0; i < c->n; i++) {
        c->gpu_of[i] = order[i].gpu;
        c->place_of[order[i].gpu] = i;
        c->server_of[i] = -1;
        if (order[i].server < 0) {
            c->n_always++;
            continue;
        }
        if (!c->n_servers || c->servers[c->n_servers - 1].id != order[i].server)
            c->servers[c->n_servers++] = (struct ws_edl_server){.id = order[i].server, .first = i};
        c->servers[c->n_servers - 1].n++;
        c->server_of[i] = c->n_servers - 1;
    }
}

int ws_edl_pairs_init(struct ws_edl_pairs *c, const struct ws_policy_system *system)
{
    size_t n = (size_t)system->n_gpus;
    *c = (struct ws_edl_pairs){.n = system->n_gpus};
    struct by_server *order = ws_alloc_array(n + 1, sizeof(*order));
    c->gpu_of = ws_alloc_array(n + 1, sizeof(*c->gpu_of));
    c->place_of = ws_alloc_array(n + 1, sizeof(*c->place_of));
    c->server_of = ws_alloc_array(n + 1, sizeof(*c->server_of));
    c->servers = ws_alloc_array(n + 1, sizeof(*c->servers));
    c->load = ws_alloc_array(n + 1, sizeof(*c->load));
    int r = order && c->gpu_of && c->place_of && c->server_of && c->servers && c->load
                ? 0
                : ws_raise(-ENOMEM);
    if (!r) {
        for (int i = 0; i < c->n; i++)
            order[i] = (struct by_server){WS_MAX(system->gpus[i].server, -1), i};
        qsort(order, n, sizeof(*order), compare);
        lay_out(c, order);
        r = ws_min_tree_init(&c->mu, c->n);
    }
    if (!r)
        r = ws_min_tree_init(&c->sum, c->n);
    if (!r)
        r = ws_min_tree_init(&c->off, c->n_servers);
    if (!r)
        r = ws_min_tree_init(&c->sleep, c->n_servers);
    free(order);
    if (r) {
        ws_edl_pairs_deinit(c);
        return ws_forward(r);
    }
    ws_edl_pairs_clear(c, 0);
    return 0;
}

void ws_edl_pairs_deinit(struct ws_edl_pairs *c)
{
    free(c->gpu_of);
    free(c->place_of);
    free(c->server_of);
    free(c->servers);
    free(c->load);
    ws_min_tree_deinit(&c->mu);
    ws_min_tree_deinit(&c->sum);
    ws_min_tree_deinit(&c->off);
    ws_min_tree_deinit(&c->sleep);
    *c = (struct ws_edl_pairs){0};
}

void ws_edl_pairs_clear(struct ws_edl_pairs *c, double now)
{
    ws_min_tree_clear(&c->mu);
    ws_min_tree_clear(&c->sum);
    ws_min_tree_clear(&c->sleep);
    for (int i = 0; i < c->n_servers; i++) {
        c->servers[i].on = false;
        ws_min_tree_set(&c->off, i, i);
    }
    for (int i = 0; i < c->n_always; i++)
        ws_min_tree_set(&c->mu, i, now);
    for (int i = 0; i < c->n; i++)
        c->load[i] = 0;
    c->n_seen = c->n_always;
}

double ws_edl_pairs_sleep_at(const struct ws_edl_pairs *c, double free_at)
{
    return c->slot > 0 ? (ceil(free_at / c->slot - 1e-9) + c->rho) * c->slot : free_at + c->rho;
}

static void update_sleep(struct ws_edl_pairs *c, int i)
{
    double free_at = 0;
    for (int k = 0; k < c->servers[i].n; k++)
        free_at = fmax(free_at, ws_min_tree_get(&c->mu, c->servers[i].first + k));
    ws_min_tree_set(&c->sleep, i, ws_edl_pairs_sleep_at(c, free_at));
}

void ws_edl_pairs_on(struct ws_edl_pairs *c, int i, double now)
{
    struct ws_edl_server *s = &c->servers[i];
    s->on = true;
    ws_min_tree_set(&c->off, i, INFINITY);
    for (int k = s->first; k < s->first + s->n; k++) {
        ws_min_tree_set(&c->mu, k, now);
        c->load[k] = 0;
    }
    c->n_seen = WS_MAX(c->n_seen, s->first + s->n);
    update_sleep(c, i);
}

void ws_edl_pairs_off(struct ws_edl_pairs *c, int i)
{
    struct ws_edl_server *s = &c->servers[i];
    s->on = false;
    ws_min_tree_set(&c->off, i, i);
    ws_min_tree_set(&c->sleep, i, INFINITY);
    for (int k = s->first; k < s->first + s->n; k++)
        ws_min_tree_set(&c->mu, k, INFINITY);
}

void ws_edl_pairs_set(struct ws_edl_pairs *c, int place, double mu)
{
    ws_min_tree_set(&c->mu, place, mu);
    if (c->server_of[place] >= 0)
        update_sleep(c, c->server_of[place]);
}

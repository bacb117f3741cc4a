// SPDX-License-Identifier: Apache-2.0
/* Slurm starts the jobs of a node in the order in which they came, on whichever of its GPUs is free
 * first. So it is enough to say on which node a job runs: the GPU that is free first is the one
 * that the policy was told of, and a job that ends early only lets the others start earlier.
 *
 * There is a policy object for each kind of GPU, as EDL wants pairs of one kind. */
#include "config.h"

#include "slurm/planner/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "policy/edl.h"

/* A job that has run for longer than it should is expected to go on for this part of its length. */
static const double late_share = 0.1;

/* The pairs of one kind, and their policy while jobs are being placed. */
struct kind {
    struct ws_policy_gpu *gpus;
    struct ws_policy_gpu_state *states; /* free_at is kept up to date */
    int *node;                          /* of a pair */
    int n;
    struct ws_policy_system system;
    struct ws_policy *policy; /* NULL: not made yet */
};

struct planning {
    const struct ws_plan_cluster *cluster;
    double now;
    const struct ws_plan_wish *wishes;
    size_t n;
    struct ws_plan_place *places;
    struct kind kinds[WS_PLAN_KINDS];
    struct ws_policy_job *jobs; /* those that are given to a policy */
    size_t *wish_of;            /* of these */
    int *order;                 /* [n][n_kinds]: by energy; -1: no more */
    struct ws_policy_decisions decisions;
};

/* ---- what there is ---- */

static struct kind *kind_of(struct planning *p, size_t node)
{
    return &p->kinds[p->cluster->nodes[node].kind];
}

static void add_node(struct planning *p, size_t node, int *first)
{
    struct kind *k = kind_of(p, node);
    const struct ws_plan_node *v = &p->cluster->nodes[node];
    first[node] = k->n;
    for (int i = 0; i < v->n_gpus; i++, k->n++) {
        k->gpus[k->n] = (struct ws_policy_gpu){.sm_limit = 1, .n_slots = 1, .server = (int)node};
        k->states[k->n] = (struct ws_policy_gpu_state){.power = v->off ? WS_GPU_OFF : WS_GPU_ON,
                                                       .free_at = p->now,
                                                       .volt = 1,
                                                       .f_core = 1,
                                                       .f_mem = 1};
        k->node[k->n] = (int)node;
    }
}

/* The job takes the GPU of its node that is free first. */
static void add_job(struct planning *p, const struct ws_plan_job *j, const int *first)
{
    struct kind *k = kind_of(p, (size_t)j->node);
    int n = p->cluster->nodes[j->node].n_gpus, best = first[j->node];
    if (n < 1)
        return;
    for (int i = best; i < first[j->node] + n; i++) {
        k->states[i].power = WS_GPU_ON;
        best = k->states[i].free_at < k->states[best].free_at ? i : best;
    }
    double *free_at = &k->states[best].free_at;
    if (isinf(j->start))
        *free_at += j->length;
    else if (j->start + j->length > p->now)
        *free_at = j->start + j->length;
    else
        *free_at = p->now + late_share * j->length;
}

static int build(struct planning *p)
{
    static const struct ws_policy_gpu_type type = {.name = "pair", .n_sm = 1};
    const struct ws_plan_cluster *c = p->cluster;
    size_t n_gpus = 0;
    for (size_t i = 0; i < c->n_nodes; i++)
        n_gpus += (size_t)c->nodes[i].n_gpus;
    int *first = ws_alloc_array(c->n_nodes + 1, sizeof(*first));
    p->jobs = ws_alloc_array(p->n + 1, sizeof(*p->jobs));
    p->wish_of = ws_alloc_array(p->n + 1, sizeof(*p->wish_of));
    p->order = ws_alloc_array(p->n * (size_t)c->n_kinds + 1, sizeof(*p->order));
    bool ok = first && p->jobs && p->wish_of && p->order;
    for (int i = 0; i < c->n_kinds && ok; i++) {
        struct kind *k = &p->kinds[i];
        k->gpus = ws_alloc_array(n_gpus + 1, sizeof(*k->gpus));
        k->states = ws_alloc_array(n_gpus + 1, sizeof(*k->states));
        k->node = ws_alloc_array(n_gpus + 1, sizeof(*k->node));
        ok = k->gpus && k->states && k->node;
    }
    for (size_t i = 0; i < c->n_nodes && ok; i++)
        add_node(p, i, first);
    for (size_t i = 0; i < 2 * c->n_jobs && ok; i++) { /* running ones first */
        const struct ws_plan_job *j = &c->jobs[i % c->n_jobs];
        if (isinf(j->start) == (i >= c->n_jobs))
            add_job(p, j, first);
    }
    for (int i = 0; i < c->n_kinds; i++) {
        struct kind *k = &p->kinds[i];
        k->system = (struct ws_policy_system){
            .types = &type, .n_types = 1, .gpus = k->gpus, .n_gpus = k->n};
    }
    free(first);
    return ok ? 0 : ws_raise(-ENOMEM);
}

/* ---- placing ---- */

static int make_policy(struct planning *p, struct kind *k, double theta)
{
    char text[3][96], error[256];
    const char *options[] = {text[0], text[1], text[2], "slot=0", NULL};
    snprintf(text[0], sizeof(text[0]), "theta=%.17g", theta);
    snprintf(text[1], sizeof(text[1]), "interval=%.80s", p->cluster->interval_text);
    /* Slurm says when a node is switched off. */
    snprintf(text[2], sizeof(text[2]), "rho=1e12");
    int r = ws_fold(ws_policy_edl.make(&k->policy, options, error, sizeof(error)));
    if (!r)
        r = ws_fold(ws_policy_edl.prepare(k->policy, &k->system, error, sizeof(error)));
    return r;
}

static void drop_policies(struct planning *p)
{
    for (int i = 0; i < WS_PLAN_KINDS; i++) {
        ws_policy_edl.free(p->kinds[i].policy);
        p->kinds[i].policy = NULL;
    }
}

/* Kinds by the energy that the job takes there at its best. */
static void put_in_order(const struct planning *p, size_t wish, int *order)
{
    double energy[WS_PLAN_KINDS];
    int n = 0;
    for (int i = 0; i < p->cluster->n_kinds; i++) {
        struct ws_dvfs_point best;
        const struct ws_dvfs_task *t = p->wishes[wish].on[i];
        order[i] = -1;
        if (!t || ws_dvfs_optimum(t, &p->cluster->interval, INFINITY, &best))
            continue;
        int at = n++;
        for (; at && energy[at - 1] > best.e; at--) {
            energy[at] = energy[at - 1];
            order[at] = order[at - 1];
        }
        energy[at] = best.e;
        order[at] = i;
    }
}

/* What the policy has decided for one kind of GPU. */
static void take(struct planning *p, struct kind *k)
{
    for (size_t i = 0; i < p->decisions.n; i++) {
        const struct ws_policy_decision *d = &p->decisions.v[i];
        if (d->kind == WS_DECIDE_POWER && d->on)
            for (int g = 0; g < k->n; g++)
                if (k->gpus[g].server == d->server)
                    k->states[g].power = WS_GPU_ON;
        if (d->kind != WS_DECIDE_START)
            continue;
        size_t wish = p->wish_of[d->job];
        k->states[d->gpu].free_at = d->end;
        p->places[wish] = (struct ws_plan_place){
            .node = k->node[d->gpu],
            .start = d->at,
            .end = d->end,
            .point = ws_dvfs_at(p->wishes[wish].on[k - p->kinds], d->volt, d->f_core, d->f_mem)};
    }
}

/* Gives the policy of kind @index the jobs that have no place and for which it is number @rank. */
static int place_on(struct planning *p, int index, int rank, double theta)
{
    struct kind *k = &p->kinds[index];
    int n = 0, r = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (p->places[i].node >= 0 ||
            p->order[i * (size_t)p->cluster->n_kinds + (size_t)rank] != index)
            continue;
        p->wish_of[n] = i;
        p->jobs[n++] = (struct ws_policy_job){.id = i,
                                              .seq = i,
                                              .task = -1,
                                              .gpu = -1,
                                              .release = p->now,
                                              .deadline = p->wishes[i].deadline,
                                              .dvfs = p->wishes[i].on[index]};
    }
    if (!n || !k->n)
        return 0;
    if (!k->policy)
        r = make_policy(p, k, theta);
    const struct ws_policy_snapshot snap = {
        .system = &k->system, .now = p->now, .gpus = k->states, .jobs = p->jobs, .n_jobs = n};
    const struct ws_policy_event event = {
        .kind = WS_EVENT_ARRIVAL, .job = -1, .task = -1, .gpu = -1};
    p->decisions.n = 0;
    if (!r)
        r = ws_policy_edl.decide(k->policy, &snap, &event, &p->decisions);
    if (!r)
        take(p, k);
    return ws_forward(r);
}

static int place_all(struct planning *p, double theta)
{
    int r = 0;
    for (int rank = 0; rank < p->cluster->n_kinds && !r; rank++)
        for (int i = 0; i < p->cluster->n_kinds && !r; i++)
            r = place_on(p, i, rank, theta);
    drop_policies(p);
    return r;
}

/* The earliest end that the job could have, for the words of its refusal. */
static double earliest_end(const struct planning *p, const struct ws_plan_wish *w)
{
    double best = INFINITY;
    for (int i = 0; i < p->cluster->n_kinds; i++) {
        const struct kind *k = &p->kinds[i];
        for (int g = 0; g < k->n && w->on[i]; g++)
            best = fmin(best, fmax(p->now, k->states[g].free_at) +
                                  ws_dvfs_t_min(w->on[i], &p->cluster->interval));
    }
    return best;
}

int ws_plan_make(const struct ws_plan_cluster *cluster, double now,
                 const struct ws_plan_wish *wishes, size_t n, struct ws_plan_place *places)
{
    struct planning p = {
        .cluster = cluster, .now = now, .wishes = wishes, .n = n, .places = places};
    bool refused = false;
    int r = cluster->n_kinds <= WS_PLAN_KINDS ? build(&p) : ws_raise(-EINVAL);
    for (size_t i = 0; i < n && !r; i++) {
        places[i] = (struct ws_plan_place){.node = -1};
        put_in_order(&p, i, &p.order[i * (size_t)cluster->n_kinds]);
    }
    if (!r)
        r = place_all(&p, cluster->theta);
    for (size_t i = 0; i < n; i++)
        refused |= places[i].node < 0;
    if (!r && refused)
        r = place_all(&p, 0);
    for (size_t i = 0; i < n && !r; i++)
        if (places[i].node < 0)
            places[i].end = earliest_end(&p, &wishes[i]);
    for (int i = 0; i < WS_PLAN_KINDS; i++) {
        free(p.kinds[i].gpus);
        free(p.kinds[i].states);
        free(p.kinds[i].node);
    }
    ws_policy_decisions_deinit(&p.decisions);
    free(p.jobs);
    free(p.wish_of);
    free(p.order);
    return r;
}

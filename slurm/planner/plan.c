// SPDX-License-Identifier: Apache-2.0
/* Slurm starts the jobs of a node in the order in which they came, on whichever of its GPUs is free
 * first. So it is enough to say on which node a job runs: the GPU that is free first is the one
 * that the policy was told of, and a job that ends early only lets the others start earlier.
 *
 * There is a policy object for each kind of GPU, as EDL wants pairs of one kind, and one more for
 * the nodes of that kind that are off. EDL switches a node on only for a job that it cannot place
 * on those that are on, so what is off is tried second; a job starts there only when the node can
 * run it, which the paper does not consider. */
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

/* The pairs of one kind, on the nodes that are on or on those that are off, and their policy while
 * jobs are being placed. */
struct plan_group {
    bool off;
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
    struct plan_group groups[WS_PLAN_KINDS][2]; /* [kind][off] */
    struct ws_policy_job *jobs;                 /* those that are given to a policy */
    size_t *wish_of;                            /* of these */
    int *order;                                 /* [n][n_kinds]: by energy; -1: no more */
    struct ws_policy_decisions decisions;
};

/* ---- what there is ---- */

/* Where the pairs of a node are. */
struct location {
    bool has_jobs; /* then the node is on, or will be switched on without this plan */
    struct plan_group *group;
    int first;
};

static void add_node(struct planning *p, size_t node, struct location *at)
{
    const struct ws_plan_node *v = &p->cluster->nodes[node];
    bool off = v->power == WS_PLAN_OFF && !at->has_jobs;
    struct plan_group *k = &p->groups[v->kind][off];
    double ready = p->now + (v->power == WS_PLAN_ON ? 0 : p->cluster->turn_on_s);
    at->group = k;
    at->first = k->n;
    for (int i = 0; i < v->n_gpus; i++, k->n++) {
        k->gpus[k->n] = (struct ws_policy_gpu){.sm_limit = 1, .n_slots = 1, .server = (int)node};
        k->states[k->n] = (struct ws_policy_gpu_state){.power = off ? WS_GPU_OFF : WS_GPU_ON,
                                                       .free_at = ready,
                                                       .volt = 1,
                                                       .f_core = 1,
                                                       .f_mem = 1};
        k->node[k->n] = (int)node;
    }
}

/* The job takes the GPU of its node that is free first. */
static void add_job(struct planning *p, const struct ws_plan_job *j, const struct location *at)
{
    struct plan_group *k = at->group;
    int n = p->cluster->nodes[j->node].n_gpus, best = at->first;
    if (n < 1)
        return;
    for (int i = best; i < at->first + n; i++)
        best = k->states[i].free_at < k->states[best].free_at ? i : best;
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
    struct location *at = ws_alloc_array(c->n_nodes + 1, sizeof(*at));
    p->jobs = ws_alloc_array(p->n + 1, sizeof(*p->jobs));
    p->wish_of = ws_alloc_array(p->n + 1, sizeof(*p->wish_of));
    p->order = ws_alloc_array(p->n * (size_t)c->n_kinds + 1, sizeof(*p->order));
    bool ok = at && p->jobs && p->wish_of && p->order;
    for (int i = 0; i < 2 * c->n_kinds && ok; i++) {
        struct plan_group *k = &p->groups[i / 2][i % 2];
        k->off = i % 2;
        k->gpus = ws_alloc_array(n_gpus + 1, sizeof(*k->gpus));
        k->states = ws_alloc_array(n_gpus + 1, sizeof(*k->states));
        k->node = ws_alloc_array(n_gpus + 1, sizeof(*k->node));
        ok = k->gpus && k->states && k->node;
    }
    for (size_t i = 0; i < c->n_jobs && ok; i++)
        at[c->jobs[i].node].has_jobs = true;
    for (size_t i = 0; i < c->n_nodes && ok; i++)
        add_node(p, i, &at[i]);
    for (size_t i = 0; i < 2 * c->n_jobs && ok; i++) { /* running ones first */
        const struct ws_plan_job *j = &c->jobs[i % c->n_jobs];
        if (isinf(j->start) == (i >= c->n_jobs))
            add_job(p, j, &at[j->node]);
    }
    for (int i = 0; i < 2 * c->n_kinds; i++) {
        struct plan_group *k = &p->groups[i / 2][i % 2];
        k->system = (struct ws_policy_system){
            .types = &type, .n_types = 1, .gpus = k->gpus, .n_gpus = k->n};
    }
    free(at);
    return ok ? 0 : ws_raise(-ENOMEM);
}

/* ---- placing ---- */

static const struct ws_policy_ops *policy_of(const struct planning *p)
{
    return p->cluster->policy ? p->cluster->policy : &ws_policy_edl;
}

static int make_policy(struct planning *p, struct plan_group *k, double theta)
{
    char text[3][96], error[256];
    const struct ws_policy_ops *ops = policy_of(p);
    const char *options[] = {text[1], text[2], "slot=0", ops == &ws_policy_edl ? text[0] : NULL,
                             NULL};
    snprintf(text[0], sizeof(text[0]), "theta=%.17g", theta);
    snprintf(text[1], sizeof(text[1]), "interval=%.80s", p->cluster->interval_text);
    /* Slurm says when a node is switched off. */
    snprintf(text[2], sizeof(text[2]), "rho=1e12");
    int r = ws_fold(ops->make(&k->policy, options, error, sizeof(error)));
    if (!r)
        r = ws_fold(ops->prepare(k->policy, &k->system, error, sizeof(error)));
    return r;
}

static void drop_policies(struct planning *p)
{
    for (int i = 0; i < 2 * WS_PLAN_KINDS; i++) {
        struct plan_group *k = &p->groups[i / 2][i % 2];
        policy_of(p)->free(k->policy);
        k->policy = NULL;
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

/* What the policy has decided for one group of pairs of kind @index. */
static void take(struct planning *p, int index, struct plan_group *k)
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
            .point = ws_dvfs_at(p->wishes[wish].on[index], d->volt, d->f_core, d->f_mem)};
    }
}

/* Gives the policy of a group of kind @index the jobs that have no place and for which this kind is
 * number @rank. */
static int place_in(struct planning *p, int index, struct plan_group *k, int rank, double theta)
{
    double now = p->now + (k->off ? p->cluster->turn_on_s : 0);
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
                                              .release = now,
                                              .deadline = p->wishes[i].deadline,
                                              .dvfs = p->wishes[i].on[index]};
    }
    if (!n || !k->n)
        return 0;
    if (!k->policy)
        r = make_policy(p, k, theta);
    const struct ws_policy_snapshot snap = {
        .system = &k->system, .now = now, .gpus = k->states, .jobs = p->jobs, .n_jobs = n};
    const struct ws_policy_event event = {
        .kind = WS_EVENT_ARRIVAL, .job = -1, .task = -1, .gpu = -1};
    p->decisions.n = 0;
    if (!r)
        r = policy_of(p)->decide(k->policy, &snap, &event, &p->decisions);
    if (!r)
        take(p, index, k);
    return ws_forward(r);
}

static int place_all(struct planning *p, double theta)
{
    int r = 0;
    for (int rank = 0; rank < p->cluster->n_kinds && !r; rank++)
        for (int i = 0; i < p->cluster->n_kinds && !r; i++)
            for (int off = 0; off < 2 && !r; off++)
                r = place_in(p, i, &p->groups[i][off], rank, theta);
    drop_policies(p);
    return r;
}

/* The earliest end that the job could have, for the words of its refusal. */
static double earliest_end(const struct planning *p, const struct ws_plan_wish *w)
{
    double best = INFINITY;
    for (int i = 0; i < 2 * p->cluster->n_kinds; i++) {
        const struct plan_group *k = &p->groups[i / 2][i % 2];
        const struct ws_dvfs_task *t = w->on[i / 2];
        for (int g = 0; g < k->n && t; g++)
            best = fmin(best, fmax(p->now, k->states[g].free_at) +
                                  ws_dvfs_t_min(t, &p->cluster->interval));
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
    if (!r && refused && policy_of(&p) == &ws_policy_edl)
        r = place_all(&p, 0);
    for (size_t i = 0; i < n && !r; i++)
        if (places[i].node < 0)
            places[i].end = earliest_end(&p, &wishes[i]);
    for (int i = 0; i < 2 * WS_PLAN_KINDS; i++) {
        struct plan_group *k = &p.groups[i / 2][i % 2];
        free(k->gpus);
        free(k->states);
        free(k->node);
    }
    ws_policy_decisions_deinit(&p.decisions);
    free(p.jobs);
    free(p.wish_of);
    free(p.order);
    return r;
}

// SPDX-License-Identifier: Apache-2.0
/* Events are handled in order of time; at one time ends of tasks come first, then timers, then
 * arrivals (the paper's order within a slot). All tasks that arrive at one time are one event
 * for the policy. A task that was given to a pair leaves the snapshot, and free_at of the pair
 * stands for it. So a snapshot holds only what is still to be decided, and a long queue costs
 * nothing.
 *
 * Idle energy is computed when a server goes off: idle_w · (the time that its pairs were on -
 * the time that they were busy). */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/sim/cluster.h"

const struct ws_cluster ws_cluster_paper = {
    .n_pairs = 2048, .pairs_per_server = 1, .idle_w = 37, .turn_on_j = 90};

static const double late_share = 1e-9, model_share = 1e-9;

int ws_cluster_pairs_for(size_t n_tasks, int pairs_per_server)
{
    size_t n = WS_MAX(n_tasks, 1) * (size_t)pairs_per_server;
    return n > INT32_MAX / 2 ? INT32_MAX / 2 : (int)n;
}

enum event_kind { END, TIMER };
struct cluster_event {
    double at;
    enum event_kind kind;
    int pair;
    size_t task;
};

struct pair {
    double busy; /* since its server is on */
    bool worked, ever;
};

struct server {
    bool on;
    double since;
    int n_queued; /* tasks given and not ended */
    double last_end;
};

struct cluster_sim {
    const struct ws_cluster *cluster;
    const struct ws_cluster_task *tasks;
    size_t n;
    struct ws_policy *policy;
    const struct ws_policy_ops *ops;
    struct cluster_event *heap;
    size_t n_heap, cap_heap;
    size_t *order; /* of arrival */
    size_t next;   /* in order */
    int n_pairs, n_servers, n_on;
    struct pair *pairs;
    struct server *servers;
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu *gpus;
    struct ws_policy_gpu_state *states;
    struct ws_policy_job *waiting;
    size_t *waiting_task;
    size_t n_waiting;
    struct ws_policy_system system;
    struct ws_policy_snapshot snap;
    struct ws_policy_decisions decisions;
    struct ws_cluster_job *jobs;
    struct ws_cluster_result r;
    char *error;
    size_t error_bytes;
};

static bool earlier(const struct cluster_event *a, const struct cluster_event *b)
{
    if (a->at != b->at)
        return a->at < b->at;
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->task < b->task;
}

static int push(struct cluster_sim *s, struct cluster_event e)
{
    void *v = s->heap;
    int r = ws_grow(&v, &s->cap_heap, s->n_heap + 1, sizeof(*s->heap));
    if (r < 0)
        return ws_forward(r);
    s->heap = v;
    size_t i = s->n_heap++;
    for (; i && earlier(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
    return 0;
}

static struct cluster_event pop(struct cluster_sim *s)
{
    struct cluster_event top = s->heap[0], last = s->heap[--s->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->n_heap; i = child) {
        if (child + 1 < s->n_heap && earlier(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!earlier(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return top;
}

static int refuse(struct cluster_sim *s, const char *what, const struct ws_policy_decision *d)
{
    snprintf(s->error, s->error_bytes, "%s decided '%s' at %g: %s (GPU %d, server %d)",
             s->ops->name, ws_decision_name(d->kind), s->snap.now, what, d->gpu, d->server);
    return WS_CLUSTER_E_POLICY;
}

/* ---- what a decision does ---- */

static void switch_off(struct cluster_sim *s, int server, double at)
{
    struct server *v = &s->servers[server];
    int l = s->cluster->pairs_per_server;
    for (int i = server * l; i < (server + 1) * l; i++) {
        double idle = s->cluster->idle_w * fmax(at - v->since - s->pairs[i].busy, 0); /* rounding */
        s->r.e_idle += idle;
        s->r.e_idle_used += s->pairs[i].worked ? idle : 0;
        s->states[i].power = WS_GPU_OFF;
    }
    v->on = false;
    s->n_on--;
}

static int power(struct cluster_sim *s, const struct ws_policy_decision *d)
{
    int l = s->cluster->pairs_per_server;
    if (d->server < 0 || d->server >= s->n_servers)
        return refuse(s, "there is no such server", d);
    struct server *v = &s->servers[d->server];
    if (v->on == d->on)
        return refuse(s, "it is so already", d);
    if (!d->on) {
        if (v->n_queued)
            return refuse(s, "it has work", d);
        switch_off(s, d->server, s->snap.now);
        return 0;
    }
    *v = (struct server){.on = true, .since = s->snap.now, .last_end = s->snap.now};
    for (int i = d->server * l; i < (d->server + 1) * l; i++) {
        s->pairs[i].busy = 0;
        s->pairs[i].worked = false;
        s->states[i].power = WS_GPU_ON;
        s->states[i].free_at = s->snap.now;
    }
    s->r.n_servers_on++;
    s->r.n_pairs_on += (uint64_t)l;
    s->n_on++;
    s->r.max_servers_on = WS_MAX(s->r.max_servers_on, s->n_on);
    return 0;
}

static int begin(struct cluster_sim *s, const struct ws_policy_decision *d)
{
    if (d->job < 0 || (size_t)d->job >= s->n_waiting || s->waiting[d->job].state != WS_JOB_WAITING)
        return refuse(s, "there is no such job waiting", d);
    if (d->gpu < 0 || d->gpu >= s->n_pairs || s->states[d->gpu].power != WS_GPU_ON)
        return refuse(s, "the pair is off", d);
    if (!(d->f_core > 0 && d->f_mem > 0 && d->volt >= ws_dvfs_g1_inverse(d->f_core) - 1e-9))
        return refuse(s, "the clocks are not stable", d);
    size_t task = s->waiting_task[d->job];
    const struct ws_cluster_task *t = &s->tasks[task];
    struct server *v = &s->servers[d->gpu / s->cluster->pairs_per_server];
    struct ws_policy_gpu_state *g = &s->states[d->gpu];
    struct ws_cluster_job job = {.pair = d->gpu,
                                 .start = fmax(d->at, fmax(s->snap.now, g->free_at))};
    job.point = ws_dvfs_at(&t->dvfs, d->volt, d->f_core, d->f_mem);
    double end = job.start + job.point.t;
    /* The same but for rounding: then to the bit what the policy reckons with. */
    if (job.start == d->at && fabs(end - d->end) <= model_share * job.point.t)
        end = d->end;
    g->free_at = end;
    v->n_queued++;
    v->last_end = fmax(v->last_end, end);
    s->pairs[d->gpu].busy += job.point.t;
    s->pairs[d->gpu].worked = true;
    s->r.n_pairs_used += !s->pairs[d->gpu].ever;
    s->pairs[d->gpu].ever = true;
    s->r.e_run += job.point.e;
    s->r.n_missed += end > t->deadline + late_share * fabs(t->deadline);
    s->waiting[d->job].state = WS_JOB_RUNNING;
    if (s->jobs)
        s->jobs[task] = job;
    return push(s, (struct cluster_event){.at = end, .kind = END, .pair = d->gpu, .task = task});
}

static int drop(struct cluster_sim *s, const struct ws_policy_decision *d)
{
    if (d->job < 0 || (size_t)d->job >= s->n_waiting || s->waiting[d->job].state != WS_JOB_WAITING)
        return refuse(s, "there is no such job waiting", d);
    s->waiting[d->job].state = WS_JOB_RUNNING;
    s->r.n_dropped++;
    s->r.n_missed++;
    return 0;
}

static int apply(struct cluster_sim *s, const struct ws_policy_decision *d)
{
    switch (d->kind) {
    case WS_DECIDE_POWER:
        return power(s, d);
    case WS_DECIDE_START:
        return begin(s, d);
    case WS_DECIDE_DROP:
        return drop(s, d);
    case WS_DECIDE_WAIT:
        return 0;
    case WS_DECIDE_TIMER:
        return d->at >= s->snap.now ? push(s, (struct cluster_event){.at = d->at, .kind = TIMER})
                                    : refuse(s, "that time is over", d);
    default:
        return refuse(s, "a pair can't do that", d);
    }
}

static int ask(struct cluster_sim *s, const struct ws_policy_event *event)
{
    s->decisions.n = 0;
    s->snap.jobs = s->waiting;
    s->snap.n_jobs = (int)s->n_waiting;
    int r = s->ops->decide(s->policy, &s->snap, event, &s->decisions);
    s->r.n_events++;
    s->r.n_decisions += s->decisions.n;
    for (size_t i = 0; i < s->decisions.n && !r; i++)
        r = apply(s, &s->decisions.v[i]);
    size_t kept = 0;
    for (size_t i = 0; i < s->n_waiting; i++)
        if (s->waiting[i].state == WS_JOB_WAITING) {
            s->waiting[kept] = s->waiting[i];
            s->waiting_task[kept++] = s->waiting_task[i];
        }
    s->n_waiting = kept;
    return r;
}

/* ---- events ---- */

static int end_task(struct cluster_sim *s, const struct cluster_event *e)
{
    s->servers[e->pair / s->cluster->pairs_per_server].n_queued--;
    s->r.n_done++;
    s->r.end = fmax(s->r.end, e->at);
    struct ws_policy_event event = {.kind = WS_EVENT_COMPLETION,
                                    .job = -1,
                                    .task = -1,
                                    .gpu = e->pair,
                                    .job_id = (uint64_t)e->task};
    return ask(s, &event);
}

static int arrive(struct cluster_sim *s)
{
    size_t first = s->n_waiting;
    while (s->next < s->n && s->tasks[s->order[s->next]].arrival <= s->snap.now) {
        size_t task = s->order[s->next];
        s->waiting_task[s->n_waiting] = task;
        s->waiting[s->n_waiting++] =
            (struct ws_policy_job){.id = (uint64_t)s->tasks[task].id ^ UINT64_C(1) << 63,
                                   .seq = s->next++,
                                   .task = -1,
                                   .gpu = -1,
                                   .release = s->tasks[task].arrival,
                                   .deadline = s->tasks[task].deadline,
                                   .dvfs = &s->tasks[task].dvfs};
    }
    struct ws_policy_event event = {.kind = WS_EVENT_ARRIVAL,
                                    .job = s->n_waiting - first == 1 ? (int)first : -1,
                                    .task = -1,
                                    .gpu = -1};
    return ask(s, &event);
}

static int step(struct cluster_sim *s)
{
    double arrival = s->next < s->n ? s->tasks[s->order[s->next]].arrival : INFINITY;
    if (s->n_heap && s->heap[0].at <= arrival) {
        struct cluster_event e = pop(s);
        s->snap.now = e.at;
        if (e.kind == END)
            return end_task(s, &e);
        struct ws_policy_event event = {.kind = WS_EVENT_TIMER, .job = -1, .task = -1, .gpu = -1};
        return ask(s, &event);
    }
    s->snap.now = arrival;
    return arrive(s);
}

/* ---- beginning and end ---- */

struct arrival_key {
    double arrival;
    size_t task;
};

static int by_arrival(const void *a, const void *b)
{
    const struct arrival_key *x = a, *y = b;
    if (x->arrival != y->arrival)
        return x->arrival < y->arrival ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

static int sort(struct cluster_sim *s)
{
    struct arrival_key *keys = ws_alloc_array(s->n + 1, sizeof(*keys));
    if (!keys)
        return ws_raise(-ENOMEM);
    for (size_t i = 0; i < s->n; i++)
        keys[i] = (struct arrival_key){s->tasks[i].arrival, i};
    qsort(keys, s->n, sizeof(*keys), by_arrival);
    for (size_t i = 0; i < s->n; i++)
        s->order[i] = keys[i].task;
    free(keys);
    return 0;
}

static int build(struct cluster_sim *s)
{
    s->type = (struct ws_policy_gpu_type){.name = "pair",
                                          .n_sm = 1,
                                          .static_w = s->cluster->idle_w,
                                          .turn_on = s->cluster->turn_on_j};
    int l = s->cluster->pairs_per_server;
    s->n_servers = (s->cluster->n_pairs + l - 1) / l;
    s->n_pairs = s->n_servers * l;
    s->order = ws_alloc_array(s->n + 1, sizeof(*s->order));
    s->pairs = ws_alloc_array((size_t)s->n_pairs + 1, sizeof(*s->pairs));
    s->servers = ws_alloc_array((size_t)s->n_servers + 1, sizeof(*s->servers));
    s->gpus = ws_alloc_array((size_t)s->n_pairs + 1, sizeof(*s->gpus));
    s->states = ws_alloc_array((size_t)s->n_pairs + 1, sizeof(*s->states));
    s->waiting = ws_alloc_array(s->n + 1, sizeof(*s->waiting));
    s->waiting_task = ws_alloc_array(s->n + 1, sizeof(*s->waiting_task));
    if (!s->order || !s->pairs || !s->servers || !s->gpus || !s->states || !s->waiting ||
        !s->waiting_task)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < s->n_pairs; i++) {
        s->gpus[i] = (struct ws_policy_gpu){.sm_limit = 1, .n_slots = 1, .server = i / l};
        s->states[i] =
            (struct ws_policy_gpu_state){.power = WS_GPU_OFF, .volt = 1, .f_core = 1, .f_mem = 1};
    }
    s->system = (struct ws_policy_system){
        .types = &s->type, .n_types = 1, .gpus = s->gpus, .n_gpus = s->n_pairs};
    s->snap = (struct ws_policy_snapshot){.system = &s->system, .gpus = s->states};
    return sort(s);
}

static void finish(struct cluster_sim *s)
{
    for (int i = 0; i < s->n_servers; i++)
        if (s->servers[i].on)
            switch_off(s, i, s->servers[i].last_end);
    s->r.n_jobs = s->n;
    s->r.n_dropped += s->n_waiting; /* the policy never decided */
    s->r.n_missed += s->n_waiting;
    s->r.e_turn_on = s->cluster->turn_on_j * (double)s->r.n_pairs_on;
    s->r.e_total = s->r.e_run + s->r.e_idle + s->r.e_turn_on;
    s->r.counts = ws_edl_counts(s->policy);
}

int ws_cluster_run(const struct ws_cluster *cluster, const struct ws_cluster_task *tasks, size_t n,
                   const struct ws_policy_ops *ops, const char *const *options,
                   struct ws_cluster_job *ret_jobs, struct ws_cluster_result *ret, char *ret_error,
                   size_t error_bytes)
{
    struct cluster_sim s = {.cluster = cluster,
                            .tasks = tasks,
                            .n = n,
                            .ops = ops,
                            .jobs = ret_jobs,
                            .error = ret_error,
                            .error_bytes = error_bytes};
    if (cluster->pairs_per_server < 1 || cluster->n_pairs < 1 || n > INT32_MAX ||
        cluster->n_pairs > INT32_MAX / 2 || !ws_edl_is(ops))
        return ws_raise(-EINVAL);
    for (size_t i = 0; ret_jobs && i < n; i++)
        ret_jobs[i] = (struct ws_cluster_job){.pair = -1};
    int r = ops->make(&s.policy, options, ret_error, error_bytes);
    if (r > 0)
        r = WS_CLUSTER_E_OPTION;
    if (!r)
        r = build(&s);
    if (!r)
        r = ws_fold(ops->prepare(s.policy, &s.system, ret_error, error_bytes));
    while (!r && (s.n_heap || s.next < s.n))
        r = step(&s);
    if (!r) {
        finish(&s);
        *ret = s.r;
    }
    ops->free(s.policy);
    ws_policy_decisions_deinit(&s.decisions);
    free(s.heap);
    free(s.order);
    free(s.pairs);
    free(s.servers);
    free(s.gpus);
    free(s.states);
    free(s.waiting);
    free(s.waiting_task);
    return r;
}

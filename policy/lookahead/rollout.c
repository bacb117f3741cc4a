// SPDX-License-Identifier: Apache-2.0
/* How a rollout is made fast. Of all numbers of SMs on which a task could run, those are kept that
 * shorten its kernel, and at most WS_ROLLOUT_COUNTS_MAX of them, in even steps; their times and
 * energies are computed once, for each task and type of GPU. Of several equivalent GPUs that are
 * empty only the first is looked at. A job for which no place was found is not looked at again
 * until one has ended: starts take room, and time brings deadlines nearer. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/minmax.h"
#include "policy/move.h"
#include "policy/lookahead/rollout.h"

/* ---- before the first decision ---- */

static void keep_counts(struct ws_rollout_item *it, const struct ws_policy_cost *c, int n_sm,
                        double idle_w_per_sm)
{
    int kept[WS_SM_MAX], n = 0;
    double least = INFINITY;
    for (int m = 1; m <= WS_MIN(WS_MIN(n_sm, c->n_sm), WS_SM_MAX); m++)
        if (c->wcet[m - 1] < least) {
            least = c->wcet[m - 1];
            kept[n++] = m;
        }
    it->n_counts = WS_MIN(n, WS_ROLLOUT_COUNTS_MAX);
    for (int i = 0; i < it->n_counts; i++) {
        /* The first and the last always. */
        int m = kept[it->n_counts < n ? i * (n - 1) / (it->n_counts - 1) : i];
        double kernel = c->wcet[m - 1];
        it->counts[i] = (struct ws_rollout_count){
            .kernel = kernel, .dyn = kernel * m * (c->dyn_w_per_sm - idle_w_per_sm), .n_sm = m};
    }
    for (int m = 0, i = -1; m <= WS_SM_MAX; m++) {
        if (i + 1 < it->n_counts && it->counts[i + 1].n_sm <= m)
            i++;
        it->most[m] = (int8_t)i;
    }
}

/* The least factor by which other clocks change the time of a kernel. */
static double fastest(const struct ws_rollout_item *it)
{
    double least = 1;
    for (int i = 0; i < it->n_clocks; i++)
        least = ws_lesser(least, ws_policy_clocks_stretch(it->cost, &it->clocks[i]));
    return least;
}

static void prepare_task(struct ws_rollout *r, int task)
{
    const struct ws_policy_system *s = r->sys;
    r->shortest[task] = INFINITY;
    for (int k = 0; k < s->n_gpus; k++) {
        int type = s->gpus[k].type, limit = s->gpus[k].sm_limit;
        const struct ws_policy_cost *c = s->tasks[task].cost ? &s->tasks[task].cost[type] : NULL;
        struct ws_rollout_item *it = &r->items[task * s->n_types + type];
        if (!c || c->n_sm < 1 || limit < 1 || r->twin[k] >= 0)
            continue;
        r->stops |= c->n_stops > 0;
        it->in = c->h2d;
        it->out = c->d2h;
        it->cost = c;
        if (r->interval && !it->n_clocks)
            it->n_clocks = ws_policy_clocks_choose(it->clocks, c, s->types[type].n_sm, r->interval);
        it->shrink = fastest(it);
        /* Of the GPUs of this type, the one that may give out most SMs says what is worth it. */
        if (!it->n_counts || limit > it->counts[it->n_counts - 1].n_sm)
            keep_counts(it, c, limit, s->types[type].idle_w_per_sm);
        for (int m = 1; m <= WS_MIN(limit, c->n_sm); m++)
            r->shortest[task] =
                ws_lesser(r->shortest[task], c->h2d + c->wcet[m - 1] * it->shrink + c->d2h);
    }
}

static int find_twin(const struct ws_policy_system *s, int gpu)
{
    int k = gpu - 1;
    while (k >= 0 && !(ws_policy_alike(s, k, gpu) && s->gpus[k].n_slots == s->gpus[gpu].n_slots))
        k--;
    return k;
}

int ws_rollout_prepare(struct ws_rollout *r, const struct ws_policy_system *s)
{
    const struct ws_dvfs_interval *interval = r->interval;
    const bool preempts = r->preempts;
    ws_rollout_deinit(r);
    r->interval = interval;
    r->preempts = preempts;
    size_t n = (size_t)WS_MAX(s->n_tasks, 1), k = (size_t)WS_MAX(s->n_gpus, 1),
           t = (size_t)WS_MAX(s->n_types, 1);
    r->sys = s;
    r->items = ws_alloc_array(n * t, sizeof(*r->items));
    r->awake_w = ws_alloc_array(t, sizeof(*r->awake_w));
    r->shortest = ws_alloc_array(n, sizeof(*r->shortest));
    r->margin = ws_alloc_array(n, sizeof(*r->margin));
    r->size = ws_alloc_array(n, sizeof(*r->size));
    r->rank = ws_alloc_array(n, sizeof(*r->rank));
    r->home = ws_alloc_array(n, sizeof(*r->home));
    r->coming = ws_alloc_array(n, sizeof(*r->coming));
    r->twin = ws_alloc_array(k, sizeof(*r->twin));
    r->state.gpus = ws_alloc_array(k, sizeof(*r->state.gpus));
    r->scratch.gpus = ws_alloc_array(k, sizeof(*r->scratch.gpus));
    if (!r->items || !r->awake_w || !r->shortest || !r->margin || !r->size || !r->rank ||
        !r->home || !r->coming || !r->twin || !r->state.gpus || !r->scratch.gpus)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < s->n_types; i++)
        r->awake_w[i] = s->types[i].n_sm * s->types[i].idle_w_per_sm;
    r->put_back_ms = INFINITY;
    for (int i = 0; i < s->n_gpus; i++) {
        const struct ws_policy_gpu_type *type = &s->types[s->gpus[i].type];
        r->put_back_ms = ws_lesser(r->put_back_ms, type->switch_ms + type->update_ms);
        r->twin[i] = find_twin(s, i);
    }
    int n_timed = 0;
    for (int i = 0; i < s->n_tasks; i++) {
        prepare_task(r, i);
        r->margin[i] = WS_ROLLOUT_MARGIN_NONE;
        if (s->tasks[i].deadline > 0 && !isinf(r->shortest[i])) {
            r->mean_shortest += r->shortest[i];
            n_timed++;
        }
    }
    r->mean_shortest /= WS_MAX(n_timed, 1);
    return ws_rollout_measure(r);
}

static void deinit_state(struct ws_rollout_state *s)
{
    free(s->gpus);
    free(s->runs);
    free(s->kernels);
    free(s->ready);
}

void ws_rollout_deinit(struct ws_rollout *r)
{
    free(r->items);
    free(r->awake_w);
    free(r->shortest);
    free(r->margin);
    free(r->size);
    free(r->rank);
    free(r->home);
    free(r->coming);
    free(r->twin);
    deinit_state(&r->state);
    deinit_state(&r->scratch);
    *r = (struct ws_rollout){0};
}

/* ---- the snapshot ---- */

/* With room for jobs that are taken off. */
static int reserve(const struct ws_rollout *r, struct ws_rollout_state *s, size_t n_runs,
                   size_t n_ready)
{
    void *runs = s->runs, *ready = s->ready, *kernels = s->kernels;
    int e = ws_grow(&runs, &s->cap_runs, n_runs + 1, sizeof(*s->runs));
    s->runs = runs;
    if (!e)
        e = ws_grow(&ready, &s->cap_ready, n_ready + n_runs + 1, sizeof(*s->ready));
    s->ready = ready;
    if (!e && r->preempts)
        e = ws_grow(&kernels, &s->cap_kernels, n_runs + 1, sizeof(*s->kernels));
    s->kernels = kernels;
    return e ? ws_raise(-ENOMEM) : 0;
}

/* Whether the work that @j has left could end by its deadline on an empty GPU. */
static bool is_hopeful(const struct ws_rollout *r, const struct ws_rollout_state *s,
                       const struct ws_rollout_job *j)
{
    double back = j->preempted ? r->put_back_ms : 0;
    return s->now + back + r->shortest[j->task] * j->left <= j->deadline + WS_ROLLOUT_SLIP;
}

/* A job of the snapshot, as one that is ready now. Its kernel must end in time for what its program
 * does after it. What cannot be in time any more has no deadline where jobs can be taken off: it
 * keeps nothing from others there. */
static struct ws_rollout_job job_of(const struct ws_rollout *r,
                                    const struct ws_policy_snapshot *snap, int i)
{
    const struct ws_policy_job *j = &snap->jobs[i];
    double due = j->deadline - j->after, deadline = due > snap->now ? due : INFINITY;
    struct ws_rollout_job job = {.moves = j->moves,
                                 .deadline = deadline,
                                 .order = deadline,
                                 .left = 1 - j->done,
                                 .weight = 1,
                                 .importance = ws_rollout_importance(r, j->task),
                                 .hold = -INFINITY,
                                 .margin =
                                     ws_rollout_margin_within(r, j->task, deadline - snap->now),
                                 .task = j->task,
                                 .job = i,
                                 .preempted = j->state == WS_JOB_PREEMPTED};
    if (r->preempts && j->state != WS_JOB_RUNNING && !is_hopeful(r, &r->state, &job))
        job.deadline = job.order = INFINITY;
    return job;
}

/* The job of a run that is being taken off until @end is ready then, with what is left. */
static void load_leaving(struct ws_rollout_state *s, const struct ws_policy_run *run,
                         const struct ws_rollout_job *job, double end)
{
    double kernel = run->gpu_end - run->gpu_start;
    struct ws_rollout_job *j = &s->ready[s->n_ready++];
    *j = *job;
    j->preempted = true;
    j->hold = end;
    j->left *= kernel > 0 ? ws_lesser(1, ws_greater(0, run->gpu_end - end) / kernel) : 1;
}

static void load_gpu(struct ws_rollout *r, const struct ws_policy_snapshot *snap, int k)
{
    const struct ws_policy_gpu_state *from = &snap->gpus[k];
    struct ws_rollout_state *s = &r->state;
    struct ws_rollout_gpu *g = &s->gpus[k];
    *g = (struct ws_rollout_gpu){.n_slots = from->power == WS_GPU_OFF ? 0 : from->n_slots,
                                 .n_sm = snap->system->gpus[k].sm_limit,
                                 .awake_until = snap->now,
                                 .clocks = {from->volt, from->f_core, from->f_mem}};
    for (int i = 0; i < from->n_slots; i++) {
        const struct ws_policy_run *run = &from->slots[i];
        if (run->job < 0)
            continue;
        double more =
            run->leaves ? 0 : (r->margin[run->task].most - 1) * (run->gpu_end - run->gpu_start);
        /* A prediction may have been too short. */
        double end = ws_greater(run->end + more, snap->now);
        g->n_slots--;
        g->n_running++;
        g->n_sm -= run->n_sm;
        g->awake_until = ws_greater(g->awake_until, end);
        if (r->preempts) {
            struct ws_rollout_job job = job_of(r, snap, run->job);
            if (run->leaves)
                load_leaving(s, run, &job, end);
            if (end > job.deadline + WS_ROLLOUT_SLIP)
                job.deadline = job.order = INFINITY;
            s->kernels[s->n_runs] = (struct ws_rollout_kernel){
                job, run->gpu_start, run->leaves ? snap->now : run->gpu_end + more};
        }
        s->runs[s->n_runs++] = (struct ws_rollout_run){end, k, run->n_sm};
    }
}

static int by_deadline(const void *a, const void *b)
{
    const struct ws_rollout_job *x = a, *y = b;
    int order = (x->deadline > y->deadline) - (x->deadline < y->deadline);
    return order ? order : x->job - y->job;
}

static void load_job(struct ws_rollout *r, const struct ws_policy_snapshot *snap, int i)
{
    const struct ws_policy_job *j = &snap->jobs[i];
    if (j->state != WS_JOB_RUNNING && !isinf(r->shortest[j->task]))
        r->state.ready[r->state.n_ready++] = job_of(r, snap, i);
}

int ws_rollout_load(struct ws_rollout *r, const struct ws_policy_snapshot *snap)
{
    struct ws_rollout_state *s = &r->state;
    size_t n_slots = 0;
    for (int k = 0; k < snap->system->n_gpus; k++)
        n_slots += (size_t)snap->gpus[k].n_slots;
    int e = reserve(r, s, n_slots, (size_t)snap->n_jobs);
    if (e)
        return e;
    s->now = snap->now;
    s->n_runs = s->n_ready = 0;
    s->base = (struct ws_rollout_base){0};
    s->outcome = (struct ws_rollout_outcome){0};
    for (int k = 0; k < snap->system->n_gpus; k++)
        load_gpu(r, snap, k);
    for (int i = 0; i < snap->n_jobs; i++)
        load_job(r, snap, i);
    qsort(s->ready, (size_t)s->n_ready, sizeof(*s->ready), by_deadline);
    return 0;
}

/* ---- what is to come ---- */

static bool sooner(const void *arg, const struct ws_rollout_release *a,
                   const struct ws_rollout_release *b)
{
    (void)arg;
    return a->at < b->at || (a->at <= b->at && a->task < b->task);
}

WS_HEAP(release_heap, struct ws_rollout_release, const void *, sooner)

void ws_rollout_foresee(struct ws_rollout *r, const double *next, const double *every,
                        double horizon, double fade)
{
    struct ws_rollout_release *heap = r->coming;
    const double now = r->state.now, until = now + horizon;
    int n = 0;
    r->n_releases = 0;
    for (int i = 0; i < r->sys->n_tasks; i++)
        if (next[i] < until && !isinf(r->shortest[i]))
            heap[n++] = (struct ws_rollout_release){next[i], 1, i};
    release_heap_make(NULL, heap, n);
    while (n && r->n_releases < WS_ROLLOUT_RELEASES_MAX) {
        double period = every ? every[heap->task] : r->sys->tasks[heap->task].period;
        struct ws_rollout_release *x = &r->releases[r->n_releases++];
        *x = *heap;
        x->weight = exp((now - x->at) / fade);
        heap->at += period;
        if (!(period > 0) || !(heap->at < until))
            *heap = heap[--n];
        release_heap_sift(NULL, heap, n, 0);
    }
}

/* ---- places ---- */

bool ws_rollout_is_double(const struct ws_rollout *r, const struct ws_rollout_state *s,
                          const struct ws_rollout_job *j, int gpu)
{
    if (j->moves || s->gpus[gpu].n_running)
        return false;
    for (int k = r->twin[gpu]; k >= 0; k = r->twin[k])
        if (!s->gpus[k].n_running && s->gpus[k].n_slots)
            return true;
    return false;
}

int ws_rollout_most(const struct ws_rollout *r, const struct ws_rollout_state *s,
                    const struct ws_rollout_job *j, int gpu)
{
    const struct ws_rollout_item *it = ws_rollout_item(r, j->task, gpu);
    if (s->gpus[gpu].n_slots < 1)
        return -1;
    return it->n_counts ? it->most[WS_MIN(WS_MAX(s->gpus[gpu].n_sm, 0), WS_SM_MAX)] : -1;
}

bool ws_rollout_clocks(const struct ws_rollout *r, const struct ws_rollout_state *s,
                       const struct ws_rollout_job *j, int gpu, int which,
                       struct ws_policy_clocks *ret)
{
    const struct ws_rollout_item *it = ws_rollout_item(r, j->task, gpu);
    const struct ws_rollout_gpu *g = &s->gpus[gpu];
    *ret = g->n_running && r->interval ? g->clocks : WS_POLICY_CLOCKS_DEFAULT;
    if (!which)
        return true;
    const struct ws_policy_clocks there = *ret;
    *ret = it->clocks[which - 1];
    if (g->n_running)
        *ret = ws_policy_clocks_join(&there, ret);
    return !ws_policy_clocks_same(&there, ret);
}

static double end_at(const struct ws_rollout_site *x, const struct ws_rollout_job *j, int count)
{
    return x->from + x->counts[count].kernel * x->stretch * j->left + x->out;
}

/* Energy above that of idle SMs. */
static double dyn_at(const struct ws_rollout_site *x, const struct ws_rollout_job *j, int count)
{
    const struct ws_rollout_count *c = &x->counts[count];
    return (c->dyn + c->kernel * c->n_sm * x->extra_w_per_sm) * x->stretch * j->left;
}

static double energy_at(const struct ws_rollout_site *x, const struct ws_rollout_job *j, int count,
                        double end)
{
    return dyn_at(x, j, count) + ws_greater(0, end - x->awake_until) * x->awake_w + x->move_mj;
}

static bool in_time(const struct ws_rollout_job *j, double end)
{
    return end <= j->deadline + WS_ROLLOUT_SLIP && !isinf(end);
}

static struct ws_rollout_place place_at(const struct ws_rollout_site *x,
                                        const struct ws_rollout_job *j, int gpu, int count)
{
    double end = end_at(x, j, count);
    return (struct ws_rollout_place){.gpu = gpu,
                                     .n_sm = x->counts[count].n_sm,
                                     .gpu_start = x->from,
                                     .gpu_end = end - x->out,
                                     .end = end,
                                     .energy = energy_at(x, j, count, end),
                                     .clocks = x->clocks};
}

bool ws_rollout_place(struct ws_rollout *r, const struct ws_rollout_state *s,
                      const struct ws_rollout_job *j, int gpu,
                      const struct ws_policy_clocks *clocks, int count,
                      struct ws_rollout_place *ret)
{
    struct ws_rollout_site x = ws_rollout_site(r, s, j, gpu, clocks);
    r->n_evaluated++;
    if (!in_time(j, end_at(&x, j, count)))
        return false;
    *ret = place_at(&x, j, gpu, count);
    return true;
}

/* What the rules call cheap, all in one form, so that a loop over numbers of SMs need not ask for
 * the rule:
 *     dyn·(energy above that of idle SMs) + (per_ms + per_sm_ms·SMs)·max(0, end - from) + flat */
struct tariff {
    double dyn, per_ms, per_sm_ms, from, flat;
};

static struct tariff tariff_of(const struct ws_rollout_state *s, const struct ws_rollout_site *x)
{
    if (s->base.share > 0)
        return (struct tariff){.per_ms = s->base.share * x->n_sm, .per_sm_ms = 1, .from = s->now};
    return (struct tariff){
        .dyn = 1, .per_ms = x->awake_w, .from = x->awake_until, .flat = x->move_mj};
}

/* The best place on @gpu at @clocks, from counts[@most] down, if it is cheaper than *@least. */
static void try_site(struct ws_rollout *r, const struct ws_rollout_state *s,
                     const struct ws_rollout_job *j, int gpu, const struct ws_policy_clocks *clocks,
                     int most, double *least, struct ws_rollout_place *ret)
{
    const struct ws_rollout_site x = ws_rollout_site(r, s, j, gpu, clocks);
    const struct tariff t = tariff_of(s, &x);
    const double latest = j->deadline + WS_ROLLOUT_SLIP, stretch = x.stretch * j->left;
    const bool here = j->moves && j->moves[gpu].here;
    int best = -1, i = most;
    for (; i >= 0; i--) {
        const struct ws_rollout_count *c = &x.counts[i];
        double end = x.from + c->kernel * stretch + x.out;
        if (!(end <= latest) || isinf(end))
            break; /* fewer SMs take longer still */
        double dyn = (c->dyn + c->kernel * c->n_sm * x.extra_w_per_sm) * stretch;
        double p =
            t.dyn * dyn + t.flat + (t.per_ms + t.per_sm_ms * c->n_sm) * ws_greater(0, end - t.from);
        if (p < *least || (here && p <= *least)) {
            *least = p;
            best = i;
        }
    }
    r->n_evaluated += (uint64_t)(most - WS_MAX(i, 0) + 1);
    if (best >= 0)
        *ret = place_at(&x, j, gpu, best);
}

/* Waits for @gpu if @j takes less than *@least there when the first of its runs has ended, and the
 * jobs that wait for it have, too. */
static void try_later(struct ws_rollout *r, const struct ws_rollout_state *s,
                      const struct ws_rollout_job *j, int gpu, double *least,
                      struct ws_rollout_place *ret)
{
    const struct ws_rollout_item *it = ws_rollout_item(r, j->task, gpu);
    const struct ws_rollout_gpu *g = &s->gpus[gpu];
    const double at = ws_greater(g->first_end, g->kept_until);
    const int n_sm = WS_MAX(g->n_sm, 0) + g->n_sm_back;
    if (isinf(at) || !it->n_counts)
        return;
    struct ws_rollout_site x = ws_rollout_site(r, s, j, gpu, &g->clocks);
    x.from += at - s->now;
    x.awake_until = ws_greater(x.awake_until, at);
    for (int i = (int)it->most[WS_MIN(n_sm, WS_SM_MAX)]; i >= 0; i--) {
        const double end = end_at(&x, j, i), energy = energy_at(&x, j, i, end);
        r->n_evaluated++;
        if (!in_time(j, end))
            break;
        if (energy < *least) {
            *least = energy;
            *ret = (struct ws_rollout_place){
                .gpu = -1, .hold = -INFINITY, .awaited = gpu + 1, .end = end};
        }
    }
}

void ws_rollout_greedy(struct ws_rollout *r, const struct ws_rollout_state *s,
                       const struct ws_rollout_job *j, struct ws_rollout_place *ret)
{
    double least = INFINITY;
    *ret = (struct ws_rollout_place){.gpu = -1, .hold = -INFINITY};
    r->n_evaluated += (uint64_t)r->sys->n_gpus;
    for (int k = 0; k < r->sys->n_gpus; k++) {
        struct ws_policy_clocks clocks;
        if (s->gpus[k].n_slots < 1 || s->gpus[k].n_sm < 1)
            continue;
        int most = ws_rollout_most(r, s, j, k);
        if (s->base.at_home && r->home[j->task] >= 0 && r->home[j->task] != k)
            continue;
        if (most < 0 || ws_rollout_is_double(r, s, j, k))
            continue;
        for (int c = 0; c <= ws_rollout_item(r, j->task, k)->n_clocks; c++)
            if (ws_rollout_clocks(r, s, j, k, c, &clocks))
                try_site(r, s, j, k, &clocks, most, &least, ret);
    }
    if (!s->base.waits || ret->gpu < 0 || isinf(j->deadline))
        return;
    r->n_evaluated += (uint64_t)r->sys->n_gpus;
    for (int k = 0; k < r->sys->n_gpus; k++)
        try_later(r, s, j, k, &least, ret);
}

bool ws_rollout_cut_margin(struct ws_rollout *r, const struct ws_rollout_state *s,
                           struct ws_rollout_job *j)
{
    struct ws_policy_clocks clocks;
    double most = 0;
    if (!(j->margin > 1))
        return false;
    for (int k = 0; k < r->sys->n_gpus; k++) {
        int count = ws_rollout_most(r, s, j, k);
        r->n_evaluated++;
        if (count < 0 || ws_rollout_is_double(r, s, j, k))
            continue;
        for (int c = 0; c <= ws_rollout_item(r, j->task, k)->n_clocks; c++)
            if (ws_rollout_clocks(r, s, j, k, c, &clocks)) {
                struct ws_rollout_site x = ws_rollout_site(r, s, j, k, &clocks);
                double kernel = x.counts[count].kernel * x.stretch / j->margin * j->left;
                most = ws_greater(most, (j->deadline - x.from - x.out) / kernel);
            }
    }
    j->margin = ws_greater(1, ws_lesser(j->margin, most));
    return most >= 1;
}

/* ---- going on ---- */

static double order_of(const struct ws_rollout *r, const struct ws_rollout_state *s,
                       const struct ws_rollout_job *j)
{
    return s->base.by_size && j->deadline < INFINITY ? r->size[j->task] : j->deadline;
}

/* Puts the ready jobs, which stand by deadline, into the order of s->base. */
static void put_in_order(struct ws_rollout *r, struct ws_rollout_state *s)
{
    int n = s->n_ready;
    if (!s->base.by_size)
        return;
    s->n_ready = 0;
    for (int i = 0; i < n; i++) {
        struct ws_rollout_job j = s->ready[i];
        j.order = order_of(r, s, &j);
        ws_rollout_insert(s, &j);
        r->n_evaluated++;
    }
}

static void withdraw(struct ws_rollout_state *s, int i)
{
    s->n_ready--;
    memmove(&s->ready[i], &s->ready[i + 1], (size_t)(s->n_ready - i) * sizeof(*s->ready));
}

/* Starts ready job @i at @p, or holds it. */
static void enter(struct ws_rollout *r, struct ws_rollout_state *s, int i,
                  const struct ws_rollout_place *p)
{
    if (p->gpu < 0) {
        struct ws_rollout_job *j = &s->ready[i];
        j->hold = p->hold;
        j->margin = ws_rollout_margin_within(r, j->task, (j->deadline - s->now) / j->left);
        return;
    }
    if (p->off) /* of a later deadline, so that it stands behind @i */
        ws_rollout_take_off(r, s, p->off - 1);
    if (r->preempts)
        s->kernels[s->n_runs] = (struct ws_rollout_kernel){s->ready[i], p->gpu_start, p->gpu_end};
    struct ws_rollout_gpu *g = &s->gpus[p->gpu];
    g->n_slots--;
    g->n_running++;
    g->n_sm -= p->n_sm;
    g->awake_until = ws_greater(g->awake_until, p->end);
    g->clocks = p->clocks;
    s->outcome.missed +=
        s->ready[i].weight * s->ready[i].importance * ws_rollout_risk(r, &s->ready[i]);
    s->runs[s->n_runs++] = (struct ws_rollout_run){p->end, p->gpu, p->n_sm};
    s->outcome.energy += p->energy * s->ready[i].weight;
    withdraw(s, i);
}

void ws_rollout_commit(struct ws_rollout *r, int i, const struct ws_rollout_place *p)
{
    enter(r, &r->state, i, p);
}

static void copy_state(struct ws_rollout *r)
{
    const struct ws_rollout_state *from = &r->state;
    struct ws_rollout_state *to = &r->scratch;
    to->now = from->now;
    to->outcome = from->outcome;
    to->n_runs = from->n_runs;
    to->n_ready = from->n_ready;
    memcpy(to->gpus, from->gpus, (size_t)r->sys->n_gpus * sizeof(*to->gpus));
    memcpy(to->runs, from->runs, (size_t)from->n_runs * sizeof(*to->runs));
    if (r->preempts)
        memcpy(to->kernels, from->kernels, (size_t)from->n_runs * sizeof(*to->kernels));
    memcpy(to->ready, from->ready, (size_t)from->n_ready * sizeof(*to->ready));
    r->n_evaluated += (uint64_t)from->n_ready;
}

/* Whether it may be started now, by its hold and by s->base. */
static bool is_eligible(const struct ws_rollout *r, const struct ws_rollout_state *s,
                        const struct ws_rollout_job *j, bool first)
{
    bool held = first ? j->hold >= s->now : j->hold > s->now,
         given_up = j->deadline < INFINITY && r->rank[j->task] < s->base.n_given_up;
    return !held && !given_up;
}

/* No place was found for ready job *@i: makes room for it, if a job that runs has more time. */
static void take_one_off(struct ws_rollout *r, struct ws_rollout_state *s, int *i,
                         struct ws_rollout_place *ret)
{
    int run = r->preempts ? ws_rollout_victim(r, s, &s->ready[*i], -1, true) : -1;
    if (run < 0)
        return;
    if (ws_rollout_take_off(r, s, run) <= *i)
        ++*i;
    ws_rollout_greedy(r, s, &s->ready[*i], ret);
}

static void count_missed(struct ws_rollout_state *s, const struct ws_rollout_job *j)
{
    s->outcome.missed += j->weight * j->importance;
    s->outcome.own |= j->own;
}

/* With less than the wanted margin only where to wait cannot give it any more. */
static void place_one(struct ws_rollout *r, struct ws_rollout_state *s, struct ws_rollout_job *j,
                      struct ws_rollout_place *ret)
{
    ws_rollout_greedy(r, s, j, ret);
    if (ret->gpu >= 0 || ret->awaited ||
        s->now + r->shortest[j->task] * j->left * j->margin <= j->deadline)
        return;
    double margin = j->margin;
    if (ws_rollout_cut_margin(r, s, j))
        ws_rollout_greedy(r, s, j, ret);
    if (ret->gpu < 0)
        j->margin = margin;
}

/* Jobs with later deadlines find no place: INFINITY where a GPU has room; else, if jobs can be
 * taken off, the latest deadline of those that run. */
static double open_to(const struct ws_rollout *r, const struct ws_rollout_state *s)
{
    double latest = -INFINITY;
    for (int k = 0; k < r->sys->n_gpus; k++)
        if (s->gpus[k].n_slots > 0 && s->gpus[k].n_sm > 0)
            return INFINITY;
    for (int i = 0; r->preempts && i < s->n_runs; i++)
        latest = ws_greater(latest, s->kernels[i].job.deadline);
    return latest;
}

static void note_end(struct ws_rollout_state *s, const struct ws_rollout_run *run)
{
    struct ws_rollout_gpu *g = &s->gpus[run->gpu];
    if (run->end < g->first_end) {
        g->first_end = run->end;
        g->n_sm_back = run->n_sm;
    } else if (run->end <= g->first_end) {
        g->n_sm_back += run->n_sm;
    }
}

/* Nobody waits for a GPU; and when the first of its runs ends. */
static void note_ends(struct ws_rollout *r, struct ws_rollout_state *s)
{
    r->n_evaluated += (uint64_t)(r->sys->n_gpus + s->n_runs);
    for (int k = 0; k < r->sys->n_gpus; k++) {
        s->gpus[k].kept_until = -INFINITY;
        s->gpus[k].first_end = INFINITY;
        s->gpus[k].n_sm_back = 0;
    }
    for (int i = 0; i < s->n_runs; i++)
        note_end(s, &s->runs[i]);
}

/* Those that can't be in time any more are missed, and out of the way, when they could find a place
 * if they were. @first: the jobs that are held until now are held still. */
static void place_ready(struct ws_rollout *r, struct ws_rollout_state *s, bool first)
{
    struct ws_rollout_place p;
    double latest = open_to(r, s);
    if (s->base.waits)
        note_ends(r, s);
    for (int i = 0; i < s->n_ready;) {
        struct ws_rollout_job *j = &s->ready[i];
        if (j->deadline > latest) {
            if (!s->base.by_size)
                return; /* they stand by deadline */
            i++;
            continue;
        }
        r->n_evaluated++;
        if (!j->preempted && !is_hopeful(r, s, j)) {
            count_missed(s, j);
            withdraw(s, i);
            continue;
        }
        if (!j->blocked && is_eligible(r, s, j, first)) {
            place_one(r, s, j, &p);
            if (p.awaited)
                s->gpus[p.awaited - 1].kept_until = p.end;
            else if (p.gpu < 0)
                take_one_off(r, s, &i, &p);
            if (p.gpu >= 0) {
                enter(r, s, i, &p);
                if (s->base.waits)
                    note_end(s, &s->runs[s->n_runs - 1]);
                latest = open_to(r, s);
                continue;
            }
            s->ready[i].blocked = true;
        }
        i++;
    }
}

static double next_event(const struct ws_rollout *r, const struct ws_rollout_state *s, int release)
{
    double t = release < r->n_releases ? r->releases[release].at : INFINITY;
    for (int i = 0; i < s->n_runs; i++)
        t = ws_lesser(t, s->runs[i].end);
    for (int i = 0; i < s->n_ready; i++)
        if (s->ready[i].hold > s->now)
            t = ws_lesser(t, s->ready[i].hold);
    return t;
}

static void end_runs(const struct ws_rollout *r, struct ws_rollout_state *s)
{
    for (int i = 0; i < s->n_runs;) {
        const struct ws_rollout_run *run = &s->runs[i];
        if (run->end > s->now) {
            i++;
            continue;
        }
        s->gpus[run->gpu].n_slots++;
        s->gpus[run->gpu].n_running--;
        s->gpus[run->gpu].n_sm += run->n_sm;
        s->runs[i] = s->runs[--s->n_runs];
        if (r->preempts)
            s->kernels[i] = s->kernels[s->n_runs];
        for (int k = 0; k < s->n_ready; k++)
            s->ready[k].blocked = false;
    }
}

static void release_due(const struct ws_rollout *r, struct ws_rollout_state *s, int *release)
{
    for (; *release < r->n_releases && r->releases[*release].at <= s->now; ++*release) {
        const struct ws_rollout_release *x = &r->releases[*release];
        double deadline = r->sys->tasks[x->task].deadline;
        struct ws_rollout_job j = {
            .deadline = deadline > 0 ? x->at + deadline : INFINITY,
            .left = 1,
            .weight = x->weight,
            .importance = ws_rollout_importance(r, x->task),
            .hold = -INFINITY,
            .margin = ws_rollout_margin_within(r, x->task, deadline > 0 ? deadline : INFINITY),
            .task = x->task,
            .job = -1};
        j.order = order_of(r, s, &j);
        ws_rollout_insert(s, &j);
    }
}

static bool worse(const struct ws_rollout_outcome *a, const struct ws_rollout_outcome *bound)
{
    return fabs(a->missed - bound->missed) > WS_ROLLOUT_SLIP ? a->missed > bound->missed
                                                             : a->energy >= bound->energy;
}

void ws_rollout_place_instead(struct ws_rollout *r, int i, int run, struct ws_rollout_place *ret)
{
    struct ws_rollout_state *s = &r->scratch;
    *ret = (struct ws_rollout_place){.gpu = -1, .hold = -INFINITY};
    if (reserve(r, s, r->state.cap_runs, (size_t)r->state.n_ready))
        return;
    copy_state(r);
    s->base = r->state.base;
    const int gpu = s->runs[run].gpu;
    ws_rollout_take_off(r, s, run); /* of a later deadline, so that it stands behind @i */
    for (int k = 0; k < r->sys->n_gpus; k++)
        if (k != gpu)
            s->gpus[k].n_slots = 0;
    ws_rollout_greedy(r, s, &s->ready[i], ret);
    ret->off = run + 1;
}

bool ws_rollout_try(struct ws_rollout *r, int i, const struct ws_rollout_place *p,
                    const struct ws_rollout_base *base, const struct ws_rollout_outcome *bound,
                    uint64_t limit, struct ws_rollout_outcome *ret)
{
    struct ws_rollout_state *s = &r->scratch;
    int release = 0;
    if (reserve(r, s, r->state.cap_runs, (size_t)(r->state.n_ready + r->n_releases)))
        return false;
    copy_state(r);
    s->base = *base;
    s->ready[i].own = true;
    enter(r, s, i, p);
    put_in_order(r, s);
    place_ready(r, s, true);
    for (double next; !isinf(next = next_event(r, s, release));) {
        if (r->n_evaluated >= limit || worse(&s->outcome, bound))
            return false;
        s->now = next;
        end_runs(r, s);
        release_due(r, s, &release);
        place_ready(r, s, false);
    }
    for (int k = 0; k < s->n_ready; k++)
        if (s->ready[k].deadline < INFINITY)
            count_missed(s, &s->ready[k]);
    *ret = s->outcome;
    return !worse(ret, bound);
}

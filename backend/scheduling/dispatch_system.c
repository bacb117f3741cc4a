// SPDX-License-Identifier: Apache-2.0
/* What policies see of the machine: GPUs, tasks, what a job of each costs, what runs and waits.
 *
 * Tasks. Each client that has launched something is a task: so two processes of one program are
 * two tasks of a policy, which may run side by side, but what their jobs take is learned
 * together, by the task's name.
 *
 * Costs. A job's kernel time on n SMs is, in this order: the longest seen there lately (each new
 * one that is shorter takes a quarter of the way down; what was seen at other clocks than the
 * default is brought to the default as the cost's dvfs says); that of the nearest SM count seen,
 * times waves(n) / waves(seen), waves(n) = ceil(blocks / n) as blocks are dealt to SMs one by one;
 * that seen on another type of GPU, times the ratio of SMs' clocks; the configuration's wcet_ms;
 * FIRST_GUESS_MS. Where the job's first launch has a profile (learned before, or by `wattshare
 * profile`), the profile says how these times go with n and with the type of GPU. So a policy never
 * meets a job of unknown cost, and the guess is replaced after the first job.
 *
 * Powers are what the learner has from the meters (learn/learn.h): the idle power of a type of GPU,
 * and for each task how much its launches take above it, as a multiple of the catalog's. Both come
 * with their errors. Only where nothing is learned (learn = off) the catalog's numbers stand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/client/module.h"
#include "backend/scheduling/dispatch_private.h"
#include "base/alloc.h"
#include "policy/stop.h"

#define FIRST_GUESS_MS 1.0
#define HISTORIES_MAX  4096
#define FORGET         0.25
#define FORESEEN       64 /* predictions for the first job of a task */
/* delta of EDL, where nobody has measured it: the part of a job's time that goes with the core
 * clock */
#define CORE_BOUND   0.8
#define MEMORY_WATTS 0.1 /* gamma: the memory clock's part of the power of a busy GPU, likewise */
#define NEWS         0.1 /* a cost that changes by less does not make the policy prepare again */

static struct ws_learn_gpu_power power_of(const struct ws_dispatch *d,
                                          const struct ws_gpu_spec *spec)
{
    struct ws_learn_gpu_power r = {.idle_w = spec->static_mw / 1e3,
                                   .idle_w_per_sm = spec->idle_mw_per_sm / 1e3};
    if (d->server->learn)
        ws_learn_gpu_power(d->server->learn, spec, &r);
    return r;
}

static void types_measure(struct ws_dispatch *d)
{
    for (uint32_t i = 0; i < d->server->n_gpus; i++) {
        struct ws_learn_gpu_power p = power_of(d, &d->server->gpus[i].device->spec);
        d->types[d->gpus[i].type].static_w = p.idle_w;
        d->types[d->gpus[i].type].idle_w_per_sm = p.idle_w_per_sm;
    }
}

int ws_dispatch_system_init(struct ws_dispatch *d)
{
    struct ws_server *s = d->server;
    for (uint32_t i = 0; i < s->n_gpus; i++) {
        const struct ws_gpu_spec *spec = &s->gpus[i].device->spec;
        int type = 0;
        while (type < d->system.n_types && strcmp(d->types[type].name, spec->name))
            type++;
        if (type == d->system.n_types)
            d->types[d->system.n_types++] = (struct ws_policy_gpu_type){
                .name = spec->name,
                .n_sm = (int)spec->n_sms,
                .preempts = true,
                .link_bytes_per_ms = (double)spec->copy_bytes_per_s / 1e3,
            };
        d->gpus[i] = (struct ws_policy_gpu){.type = type,
                                            .sm_limit = (int)spec->n_sms,
                                            .n_slots = (int)s->config->n_slots,
                                            .server = (int)i};
        d->gpu_states[i] =
            (struct ws_policy_gpu_state){.power = WS_GPU_ON, .volt = 1, .f_core = 1, .f_mem = 1};
    }
    types_measure(d);
    d->cpu_type = -1;
    if (s->n_visible < s->n_gpus) /* not among those that policies deal out */
        d->cpu_type = --d->system.n_types;
    d->system.types = d->types;
    d->system.gpus = d->gpus;
    d->system.n_gpus = (int)s->n_visible;
    d->stale = true;
    return 0;
}

static void history_free(struct ws_task_history *h)
{
    for (int t = 0; t < WS_GPU_MAX_TYPES; t++) {
        free(h->seen_ms[t]);
        free(h->cold_ms[t]);
        free(h->wcet_ms[t]);
    }
    free(h);
}

void ws_dispatch_system_deinit(struct ws_dispatch *d)
{
    struct ws_task_history *h, *next;
    while (!ws_list_empty(&d->tasks))
        ws_gpu_task_free(d, ws_list_entry(d->tasks.next, struct ws_gpu_task, node));
    HASH_ITER (hh, d->histories, h, next) {
        HASH_DEL(d->histories, h);
        history_free(h);
    }
    free(d->policy_tasks);
    free(d->template_tasks);
    free(d->template_max);
    free(d->runs);
    free(d->jobs);
    free(d->by_job);
    free(d->named);
    ws_policy_decisions_deinit(&d->decisions);
}

/* ---- costs ---- */

static double waves(const struct ws_task_history *h, int n_sm)
{
    return h->n_blocks ? ceil((double)h->n_blocks / n_sm) : 1.0 / n_sm;
}

/* The SM count nearest to @n_sm in @seen. 0: there is none. */
static int nearest(const double *seen, int n_sm, int n_max)
{
    for (int off = 0; seen && off < n_max; off++)
        for (int sign = -1; sign <= 1; sign += 2) {
            int n = n_sm + sign * off;
            if (n >= 1 && n <= n_max && seen[n] > 0)
                return n;
        }
    return 0;
}

/* Kernel time on the SM count nearest to @n_sm in @seen, brought to @n_sm. 0: there is none. */
static double from_seen(const struct ws_task_history *h, const double *seen, int n_sm, int n_max)
{
    int n = nearest(seen, n_sm, n_max);
    return n ? seen[n] * waves(h, n_sm) / waves(h, n) : 0;
}

/* What a job was seen to take on @type, near @n_sm SMs, in times of its first launch by its profile
 * there. 0: not seen, or there is no profile. */
static double jobs_per_launch(const struct ws_task_history *h, int type, int n_sm, int n_max)
{
    int n = h->is_profiled[type] ? nearest(h->seen_ms[type], n_sm, n_max) : 0;
    return n ? h->seen_ms[type][n] / from_seen(h, h->cold_ms[type], n, n_max) : 0;
}

static double from_profile(const struct ws_dispatch *d, const struct ws_task_history *h,
                           double wcet_ms, int type, int n_sm)
{
    const int first = d->gpus[0].type, all = d->types[first].n_sm;
    double times = jobs_per_launch(h, type, n_sm, d->types[type].n_sm);
    for (int t = 0; t < d->system.n_types && !(times > 0); t++)
        times = jobs_per_launch(h, t, n_sm, d->types[t].n_sm);
    if (!(times > 0) && wcet_ms > 0 && h->is_profiled[first])
        times = wcet_ms / from_seen(h, h->cold_ms[first], all, all);
    return (times > 0 ? times : 1) * from_seen(h, h->cold_ms[type], n_sm, d->types[type].n_sm);
}

static double clock_of(const struct ws_dispatch *d, int type)
{
    for (uint32_t i = 0; i < d->server->n_gpus; i++)
        if (d->gpus[i].type == type)
            return d->server->gpus[i].device->spec.core_mhz;
    return 1;
}

static double guess(const struct ws_dispatch *d, const struct ws_task_history *h,
                    const struct ws_task *work, int type, int n_sm)
{
    if (h->is_profiled[type])
        return from_profile(d, h, work->wcet_ms, type, n_sm);
    double ms = from_seen(h, h->seen_ms[type], n_sm, d->types[type].n_sm);
    for (int t = 0; t < d->system.n_types && !(ms > 0); t++)
        ms = from_seen(h, h->seen_ms[t], WS_MIN(n_sm, d->types[t].n_sm), d->types[t].n_sm) *
             clock_of(d, t) / clock_of(d, type);
    if (!(ms > 0) && !(work->wcet_ms > 0))
        ms = from_seen(h, h->cold_ms[type], n_sm, d->types[type].n_sm);
    if (ms > 0)
        return ms;
    double whole = work->wcet_ms > 0 ? work->wcet_ms : FIRST_GUESS_MS;
    int n_first = d->types[d->gpus[0].type].n_sm;
    return whole * (h->n_blocks ? waves(h, n_sm) / waves(h, n_first) : (double)n_first / n_sm) *
           clock_of(d, d->gpus[0].type) / clock_of(d, type);
}

/* EDL's models, Eq. 1 and 2: from what a busy GPU takes and the time on all its SMs. */
static struct ws_dvfs_task dvfs_of(const struct ws_policy_gpu_type *t, double whole_ms,
                                   double dyn_w_per_sm)
{
    double busy_w = t->n_sm * dyn_w_per_sm;
    return (struct ws_dvfs_task){.p0 = t->static_w,
                                 .gamma = MEMORY_WATTS * busy_w,
                                 .c = (1 - MEMORY_WATTS) * busy_w,
                                 .d = whole_ms,
                                 .delta = CORE_BOUND};
}

/* Time and energy of a job on the host's processor, from what it took there, or its code. 0: not
 * known. */
static void cpu_cost(struct ws_dispatch *d, struct ws_task_history *h)
{
    if (d->cpu_type < 0)
        return;
    const struct ws_policy_gpu_type *t = &d->types[d->cpu_type];
    const struct ws_gpu_spec *spec = &d->server->gpus[d->server->n_visible].device->spec;
    h->cpu_ms = from_seen(h, h->seen_ms[d->cpu_type], t->n_sm, t->n_sm);
    if (!(h->cpu_ms > 0))
        h->cpu_ms = from_seen(h, h->cold_ms[d->cpu_type], t->n_sm, t->n_sm);
    if (!(h->cpu_mj > 0) || !h->cpu_measured)
        h->cpu_mj = h->cpu_ms * (t->static_w + t->n_sm * spec->dynamic_mw_per_sm / 1e3);
}

/* The kernels of a job, as rounds of blocks on one SM. */
static int stops(const struct ws_task_history *h, int type)
{
    uint32_t side_by_side = WS_MAX(h->side_by_side[type], 1u);
    return (int)WS_MIN((h->n_all_blocks + side_by_side - 1) / side_by_side, (uint64_t)INT32_MAX);
}

static int costs_make(struct ws_dispatch *d, struct ws_gpu_task *t)
{
    struct ws_task_history *h = t->history;
    const struct ws_task *work = &t->client->work;
    if (h->costs_made)
        return 0;
    cpu_cost(d, h);
    for (int type = 0; type < d->system.n_types; type++) {
        int n = d->types[type].n_sm;
        if (!h->wcet_ms[type] && !(h->wcet_ms[type] = ws_alloc_array((size_t)n, sizeof(double))))
            return ws_raise(-ENOMEM);
        for (int i = 1; i <= n; i++)
            h->wcet_ms[type][i - 1] = guess(d, h, work, type, i);
        double dyn_w = 0;
        for (uint32_t g = 0; g < d->server->n_gpus; g++)
            if (d->gpus[g].type == type)
                dyn_w = d->server->gpus[g].device->spec.dynamic_mw_per_sm / 1e3;
        dyn_w *= h->power_factor[type] > 0 ? h->power_factor[type] : 1;
        h->dvfs[type] = dvfs_of(&d->types[type], h->wcet_ms[type][n - 1], dyn_w);
        bool elsewhere = work->gpu[0] && strcmp(work->gpu, d->types[type].name);
        h->cost[type] =
            (struct ws_policy_cost){.n_sm = elsewhere            ? 0
                                            : work->n_sm_max > 0 ? WS_MIN(n, (int)work->n_sm_max)
                                                                 : n,
                                    .wcet = h->wcet_ms[type],
                                    .dyn_w_per_sm = dyn_w,
                                    .energy_error = h->energy_error[type],
                                    .dvfs = &h->dvfs[type],
                                    .n_blocks = (int)h->n_blocks,
                                    .n_stops = stops(h, type)};
    }
    h->costs_made = true;
    return 0;
}

/* What the power of a launch on @n_sm SMs is of the catalog's, above idle. */
static double factor_of(const struct ws_dispatch *d, const struct ws_gpu_spec *spec, double w,
                        uint64_t n_blocks, int n_sm)
{
    double active = (double)WS_MIN(n_blocks, (uint64_t)n_sm),
           model =
               (active * spec->dynamic_mw_per_sm + (spec->n_sms - active) * spec->idle_mw_per_sm) /
               1e3;
    return model > 0 ? fmax(w - power_of(d, spec).idle_w, 0) / model : 0;
}

void ws_dispatch_learn_launch(struct ws_dispatch *d, struct ws_gpu_job *g,
                              const struct ws_command *j)
{
    const struct ws_op *op = &j->op;
    struct ws_prediction p;
    struct ws_learn_key key = {.kernel = j->learn, .shared_bytes = op->launch.shared_bytes};
    if (!j->learn || !d->server->learn)
        return;
    memcpy(key.grid, op->launch.grid, sizeof(key.grid));
    memcpy(key.block, op->launch.block, sizeof(key.block));
    if (ws_learn_predict(d->server->learn, &key, &d->server->gpus[g->gpu].device->spec,
                         (int)op->launch.sms.n, &p))
        return;
    g->learned_ns += (double)p.time_ns;
    g->learned_uj += (double)p.energy_uj;
    g->learned_error_uj += (double)p.energy_uj * p.energy_error;
}

/* Predictions for SM counts in equal proportions from 1 to all, FORESEEN in all kinds of GPUs
 * together: the loop waits for them, each takes up to half a us. from_seen() brings them to the
 * counts between. */
static void foresee_on(struct ws_dispatch *d, struct ws_task_history *h, int type,
                       const struct ws_learn_key *key, const struct ws_gpu_spec *spec)
{
    bool known = true;
    int n_max = (int)spec->n_sms, n_points = WS_MAX(FORESEEN / WS_MAX(d->system.n_types, 1), 2);
    for (int k = 0, before = 0; k < n_points; k++) {
        int n = (int)lround(pow(n_max, (double)k / (n_points - 1)));
        struct ws_prediction p;
        if (n <= before)
            continue;
        if (ws_learn_predict(d->server->learn, key, spec, n, &p)) {
            known = false;
        } else {
            h->cold_ms[type][n] = (double)p.time_ns / 1e6;
            known &= p.basis >= WS_LEARN_SCALED;
            h->side_by_side[type] = p.blocks_per_sm;
            h->power_factor[type] =
                factor_of(d, spec, (double)p.energy_uj * 1e3 / (double)p.time_ns,
                          (uint64_t)key->grid[0] * key->grid[1] * key->grid[2], n);
            h->energy_error[type] = p.energy_error;
        }
        before = n;
    }
    h->is_profiled[type] = known;
}

void ws_dispatch_foresee(struct ws_dispatch *d, struct ws_gpu_job *g, const struct ws_command *j)
{
    struct ws_task_history *h = g->task->history;
    if (h->n_jobs || h->n_blocks || !j->learn || !d->server->learn)
        return;
    const uint32_t *grid = j->op.launch.grid, *block = j->op.launch.block;
    struct ws_learn_key key = {.kernel = j->learn,
                               .grid = {grid[0], grid[1], grid[2]},
                               .block = {block[0], block[1], block[2]},
                               .shared_bytes = j->op.launch.shared_bytes};
    for (uint32_t gpu = 0; gpu < d->server->n_gpus; gpu++) {
        const struct ws_gpu_spec *spec = &d->server->gpus[gpu].device->spec;
        int type = d->gpus[gpu].type;
        double **ms = &h->cold_ms[type];
        if (!*ms && (*ms = ws_alloc_array((size_t)spec->n_sms + 1, sizeof(**ms))))
            foresee_on(d, h, type, &key, spec);
    }
    uint64_t n_blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    h->n_blocks = (uint32_t)WS_MIN(n_blocks, INT32_MAX);
    h->n_all_blocks = n_blocks;
    h->costs_made = false;
    d->stale = true;
}

void ws_dispatch_learn(struct ws_dispatch *d, const struct ws_gpu_job *g)
{
    struct ws_task_history *h = g->task->history;
    if (!g->n_launches || g->last_end_ns <= g->first_start_ns)
        return;
    int type = d->gpus[g->gpu].type, n_max = d->types[type].n_sm;
    if (!h->seen_ms[type] &&
        !(h->seen_ms[type] = ws_alloc_array((size_t)n_max + 1, sizeof(double))))
        return; /* learned another time */
    /* Launches of several streams run side by side: then the span counts; gaps between them are
     * the host's time. */
    double ms = (double)WS_MIN(g->busy_ns, g->last_end_ns - g->first_start_ns) / 1e6 / g->stretch;
    int n = g->sms.n ? (int)g->sms.n : n_max;
    double *seen = &h->seen_ms[type][n];
    double before = *seen;
    *seen = ms > before ? ms : before + FORGET * (ms - before);
    if (fabs(*seen - before) > NEWS * before || h->n_blocks != g->n_blocks)
        d->stale = true;
    if (g->learned_ns > 0) {
        double w = g->learned_uj * 1e3 / g->learned_ns, old = h->power_factor[type];
        h->power_factor[type] =
            factor_of(d, &d->server->gpus[g->gpu].device->spec, w, g->n_blocks, n);
        h->energy_error[type] = g->learned_error_uj / g->learned_uj;
        d->stale |= fabs(h->power_factor[type] - old) > NEWS * old;
    }
    h->n_blocks = g->n_blocks;
    h->n_all_blocks = g->n_all_blocks;
    h->n_jobs++;
    h->costs_made = false;
}

/* ---- tasks ---- */

static bool in_use(const struct ws_dispatch *d, const struct ws_task_history *h)
{
    ws_list_for_each (n, &d->tasks)
        if (ws_list_entry(n, struct ws_gpu_task, node)->history == h)
            return true;
    return false;
}

/* Programs choose the names of their tasks, and there are always more: the oldest history that no
 * client has is forgotten. */
static void forget_oldest(struct ws_dispatch *d)
{
    struct ws_task_history *h, *next;
    if (HASH_COUNT(d->histories) < HISTORIES_MAX)
        return;
    HASH_ITER (hh, d->histories, h, next)
        if (!in_use(d, h)) {
            HASH_DEL(d->histories, h);
            history_free(h);
            return;
        }
}

static struct ws_task_history *history_of(struct ws_dispatch *d, const char *name)
{
    struct ws_task_history *h;
    HASH_FIND_STR(d->histories, name, h);
    if (h)
        return h;
    forget_oldest(d);
    h = ws_alloc(sizeof(*h));
    if (!h)
        return NULL;
    snprintf(h->name, sizeof(h->name), "%s", name);
    HASH_ADD_STR(d->histories, name, h);
    return h;
}

struct ws_gpu_task *ws_gpu_task_of(struct ws_dispatch *d, struct ws_client *c)
{
    if (c->jobs.task)
        return c->jobs.task;
    struct ws_task_history *h = history_of(d, c->work.name);
    struct ws_gpu_task *t = h ? ws_alloc(sizeof(*t)) : NULL;
    if (!t)
        return NULL;
    t->client = c;
    t->history = h;
    h->costs_made = false; /* its configuration may say other things */
    t->priority = c->work.priority;
    t->id = c->id;
    t->index = -1;
    /* by decreasing priority, of equals by arrival */
    struct ws_list *before = &d->tasks;
    ws_list_for_each (n, &d->tasks)
        if (ws_list_entry(n, struct ws_gpu_task, node)->priority < t->priority) {
            before = n;
            break;
        }
    ws_list_append(before, &t->node);
    d->stale = true;
    return c->jobs.task = t;
}

void ws_gpu_task_free(struct ws_dispatch *d, struct ws_gpu_task *t)
{
    t->client->jobs.task = NULL;
    ws_list_remove(&t->node);
    d->stale = true;
    free(t);
}

/* ---- the system ---- */

static void task_describe(const struct ws_gpu_task *t, struct ws_policy_task *ret)
{
    const struct ws_task *w = &t->client->work;
    *ret = (struct ws_policy_task){
        .id = (int)t->id,
        .name = t->history->name,
        .period = w->period_ms,
        .deadline = w->deadline_ms,
        .priority = w->priority,
        .gpu_priority = w->priority,
        .best_effort = w->priority <= 0,
        .busy_wait = w->busy_wait,
        .weight = w->weight,
        .sms = w->sms,
        .cost = t->history->cost,
        .cpu_ms = t->history->cpu_ms,
        .cpu_mj = t->history->cpu_mj,
    };
}

static int grow_tasks(struct ws_dispatch *d, size_t n)
{
    if (n <= d->cap_tasks)
        return 0;
    size_t cap = WS_MAX(2 * d->cap_tasks, n);
    struct ws_policy_task *tasks = ws_alloc_array(cap, sizeof(*tasks));
    int *of = ws_alloc_array(cap, sizeof(*of)), *max = ws_alloc_array(cap, sizeof(*max));
    if (!tasks || !of || !max) {
        free(tasks);
        free(of);
        free(max);
        return ws_raise(-ENOMEM);
    }
    free(d->policy_tasks);
    free(d->template_tasks);
    free(d->template_max);
    d->policy_tasks = tasks;
    d->template_tasks = of;
    d->template_max = max;
    d->cap_tasks = cap;
    return 0;
}

int ws_dispatch_refresh(struct ws_dispatch *d)
{
    if (WS_LIKELY(!d->stale))
        return 0;
    size_t n = 0;
    ws_list_for_each (l, &d->tasks)
        n++;
    int r = grow_tasks(d, WS_MAX(n, 1));
    if (r)
        return r;
    int i = 0;
    types_measure(d);
    d->template = (struct ws_policy_template){.tasks = d->template_tasks, .n_max = d->template_max};
    ws_list_for_each (l, &d->tasks) {
        struct ws_gpu_task *t = ws_list_entry(l, struct ws_gpu_task, node);
        if ((r = costs_make(d, t)))
            return r;
        task_describe(t, &d->policy_tasks[i]);
        d->template_tasks[d->template.n_tasks] = i;
        d->template_max[d->template.n_tasks++] = 1;
        t->index = i++;
    }
    ws_list_for_each (l, &d->open) {
        struct ws_gpu_job *g = ws_list_entry(l, struct ws_gpu_job, node);
        g->index = g->task->index;
    }
    d->system.tasks = d->policy_tasks;
    d->system.n_tasks = i;
    d->system.templates = &d->template;
    d->system.n_templates = d->template.n_tasks > 1;
    d->stale = false;
    char error[256] = "";
    r = d->ops->prepare ? d->ops->prepare(d->policy, &d->system, error, sizeof(error)) : 0;
    if (r > 0 && strcmp(error, d->unprepared))
        ws_log(WS_WARN, "dispatch: %s: %s", d->ops->name, error);
    snprintf(d->unprepared, sizeof(d->unprepared), "%s", error);
    return r < 0 ? r : 0;
}

/* ---- the snapshot ---- */

static struct ws_policy_job job_of(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    if (!g->is_priced && g->state != WS_JOB_RUNNING)
        ws_dispatch_price(d, g);
    return (struct ws_policy_job){.id = g->id,
                                  .seq = g->seq,
                                  .part = g->part,
                                  .task = g->index,
                                  .state = g->state,
                                  .release = g->release_ms,
                                  .deadline = g->deadline_ms,
                                  .gpu = g->state == WS_JOB_WAITING ? -1 : (int)g->gpu,
                                  .done = g->part_done,
                                  .moves = g->is_priced ? g->moves : NULL};
}

static int grow(void **v, size_t *cap, size_t n, size_t bytes)
{
    return n > *cap ? ws_grow(v, cap, n, bytes) : 0;
}

static struct ws_policy_run run_of(const struct ws_gpu_job *g, int job, int type, double now)
{
    /* Late ones end any time now. */
    double gpu_end = WS_MAX(g->predicted_ms, now), end = gpu_end;
    if (g->stopping)
        end = ws_policy_stop_at(stops(g->task->history, type) * (1 - g->part_done), g->n_sm,
                                g->start_ms, gpu_end, now);
    return (struct ws_policy_run){.job = job,
                                  .task = g->index,
                                  .sms = g->sms,
                                  .n_sm = g->n_sm,
                                  .start = g->start_ms,
                                  .gpu_start = g->start_ms,
                                  .gpu_end = gpu_end,
                                  .end = end,
                                  .leaves = g->stopping};
}

static int make_room(struct ws_dispatch *d)
{
    size_t n_slots = 0;
    for (uint32_t i = 0; i < d->server->n_visible; i++)
        n_slots += (size_t)d->gpus[i].n_slots;
    void *jobs = d->jobs, *by_job = d->by_job, *runs = d->runs;
    int r = grow(&jobs, &d->cap_jobs, d->n_open, sizeof(*d->jobs));
    d->jobs = jobs;
    if (!r)
        r = grow(&by_job, &d->cap_by_job, d->n_open, sizeof(*d->by_job));
    d->by_job = by_job;
    if (!r)
        r = grow(&runs, &d->cap_runs, d->n_open + n_slots, sizeof(*d->runs));
    d->runs = runs;
    return r;
}

struct on_gpu { /* what runs on one GPU, by number of job */
    int first, last;
};

/* Jobs, in one walk; runs of each GPU are linked by job. */
static int jobs_fill(struct ws_dispatch *d, struct on_gpu *on)
{
    int n = 0;
    ws_list_for_each (l, &d->open) {
        struct ws_gpu_job *g = ws_list_entry(l, struct ws_gpu_job, node);
        bool runs = g->state == WS_JOB_RUNNING;
        if (g->booked) {
            struct ws_policy_gpu_state *st = &d->gpu_states[g->booking.gpu];
            st->free_at = WS_MAX(st->free_at, g->booking.end);
        }
        if (((g->given_up || g->booked || g->due) && g->state == WS_JOB_WAITING) || g->aside)
            continue;
        if (runs && g->gpu >= d->server->n_visible)
            continue; /* on the host's processor: no GPU's business */
        d->by_job[n] = g;
        d->jobs[n] = job_of(d, g);
        if (runs) {
            struct on_gpu *o = &on[g->gpu];
            g->next_on_gpu = -1;
            if (o->first < 0)
                o->first = n;
            else
                d->by_job[o->last]->next_on_gpu = n;
            o->last = n;
        }
        n++;
    }
    return n;
}

int ws_dispatch_snapshot(struct ws_dispatch *d, struct ws_policy_snapshot *ret)
{
    struct on_gpu on[WS_MAX_GPUS_CONFIGURED];
    double now = ws_dispatch_now_ms(d);
    int r = make_room(d);
    if (r)
        return r;
    for (uint32_t i = 0; i < WS_ARRAY_SIZE(on); i++) {
        on[i].first = on[i].last = -1;
        d->gpu_states[i].free_at = now;
    }
    int n_jobs = jobs_fill(d, on);
    struct ws_policy_run *run = d->runs;
    for (uint32_t i = 0; i < d->server->n_visible; i++) {
        struct ws_policy_gpu_state *st = &d->gpu_states[i];
        st->slots = run;
        for (int j = on[i].first; j >= 0; j = d->by_job[j]->next_on_gpu) {
            *run = run_of(d->by_job[j], j, d->gpus[i].type, now);
            st->free_at = WS_MAX(st->free_at, run->end);
            run++;
        }
        st->n_running = (int)(run - st->slots);
        while (run - st->slots < d->gpus[i].n_slots)
            *run++ = (struct ws_policy_run){.job = -1, .task = -1};
        st->n_slots = (int)(run - st->slots);
    }
    *ret = (struct ws_policy_snapshot){
        .system = &d->system, .now = now, .gpus = d->gpu_states, .jobs = d->jobs, .n_jobs = n_jobs};
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* The dispatcher: segments begin and end, the policy is asked, what it says is done.
 *
 * Asking. An arrival, a completion, a timer: each is put on a list of events, and the policy is asked about one after another. Carrying
 * out a decision may end things and so make new events; they wait on the list, nothing recurses. Streams that may go on are only
 * woken here (ws_stream_wake()); they run from ws_server_run_ready().
 *
 * A segment of a context: WAITING until it is started, then RUNNING. PREEMPT stops its launches between two blocks: from then on it is
 * `stopping`, nothing of it starts, and when the last operation has come back it is PREEMPTED. What was stopped stands at the head of
 * its stream again, with its progress in the launch; RESUME lets the streams go on.
 *
 * The end. A segment is over when the device has nothing of it and nothing of it is held, and its client waits (any answer it gets
 * counts), or asks no more, which is seen when the next decision is due. With JobBegin it is over when that is so and
 * JobEnd has come.
 *
 * Parts. Where the policy takes copies one by one (ops.parts: STGM) and the task's copies count, a segment is the client's operations of one
 * part, in the order in which they become ready: it is over when one of another part wants to go and the device has nothing of it. A
 * program that marks its jobs itself gives them as they are.
 *
 * A client that goes: its held work is gone with its streams; the segment stays as long as the device has something of it, for until
 * then its SMs are taken. */
#include "backend/client/sms.h"
#include "backend/client/stream.h"
#include "backend/scheduling/gated.h"
#include "backend/scheduling/dispatch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/scheduling/dispatch_private.h"
#include "base/alloc.h"
#include "base/clock.h"

enum { EXPLAIN_JOBS_MAX = 64, JOBS_OF_BLOCK = 64 };

/* ---- the policy ---- */

static int policy_make(const char *name, const char *const *options,
                       const struct ws_policy_ops **ret_ops, struct ws_policy **ret, char *error,
                       size_t bytes)
{
    const struct ws_policy_ops *ops = ws_policy_find(name);
    if (!ops) {
        snprintf(error, bytes, "there is no policy %s", name);
        return WS_CONFIG_E_INVALID;
    }
    int r = ops->make(ret, options, error, bytes);
    if (r)
        return r < 0 ? r : WS_CONFIG_E_INVALID;
    *ret_ops = ops;
    return 0;
}

static void options_note(struct ws_dispatch *d, const char *const *options)
{
    size_t n = 0;
    d->options[0] = 0;
    for (; options && *options && n < sizeof d->options; options++)
        n += (size_t)snprintf(d->options + n, sizeof d->options - n, n ? " %s" : "%s", *options);
}

static int dispatch_make(struct ws_dispatch **ret, struct ws_server *s, const char *name,
                         const char *const *options, char *error, size_t bytes)
{
    struct ws_dispatch *d = ws_alloc(sizeof *d);
    if (!d)
        return ws_raise(-ENOMEM);
    d->server = s;
    d->timer_ms = NAN;
    ws_list_init(&d->open);
    ws_list_init(&d->idle);
    ws_list_init(&d->unused);
    ws_list_init(&d->tasks);
    int r = policy_make(name, options, &d->ops, &d->policy, error, bytes);
    if (!r)
        r = ws_dispatch_system_init(d);
    if (!r)
        r = ws_alarms_new(&d->timer, s->commands.wake_fd);
    if (!r && !(d->explained = ws_alloc_array(WS_EXPLAINED_MAX, sizeof *d->explained)))
        r = ws_raise(-ENOMEM);
    if (r) {
        ws_dispatch_free(d);
        return r;
    }
    options_note(d, options);
    *ret = d;
    return 0;
}

int ws_dispatch_new(struct ws_dispatch **ret, struct ws_server *s, char *error, size_t bytes)
{
    const char *name = s->config->policy;
    *ret = NULL;
    if (!name || !strcmp(name, "none") || !s->n_gpus)
        return 0;
    return dispatch_make(ret, s, name, (const char *const *)s->config->policy_options, error,
                         bytes);
}

const char *ws_dispatch_policy(const struct ws_server *s, const char **ret_options)
{
    const struct ws_dispatch *d = s->dispatch && !s->dispatch->off ? s->dispatch : NULL;
    *ret_options = d ? d->options : "";
    return d ? d->ops->name : "none";
}

static void wake_held(struct ws_gpu_job *g)
{
    while (!ws_list_empty(&g->held))
        ws_stream_wake(ws_list_entry(g->held.next, struct ws_stream, blocked));
}

static void state_set(struct ws_dispatch *d, struct ws_gpu_job *g, enum ws_job_state state)
{
    d->n_running += (state == WS_JOB_RUNNING) - (size_t)(g->state == WS_JOB_RUNNING);
    g->state = state;
}

static void job_free(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    struct ws_gpu_task *t = g->task;
    ws_list_remove(&g->node);
    ws_list_remove(&g->idle_node);
    d->n_open--;
    state_set(d, g, WS_JOB_WAITING);
    g->context->job = NULL;
    wake_held(g);
    t->client->jobs.n_open--;
    ws_list_append(d->unused.next, &g->node); /* the next one to be used */
}

struct ws_dispatch_counts ws_dispatch_counts(const struct ws_server *s)
{
    const struct ws_dispatch *d = s->dispatch;
    return d ? (struct ws_dispatch_counts){.n_jobs = d->n_jobs,
                                           .n_preemptions = d->n_preemptions,
                                           .n_merged = d->n_fused,
                                           .n_moves = d->n_migrations}
             : (struct ws_dispatch_counts){0};
}

struct ws_dispatch *ws_dispatch_free(struct ws_dispatch *d)
{
    if (!d)
        return NULL;
    if (d->n_asked)
        ws_log(
            WS_INFO,
            "dispatch: policy=%s jobs=%llu asked=%llu starts=%llu preemptions=%llu fused=%llu "
            "moves=%llu cpu=%llu refused=%llu rescued=%llu decide_ns_mean=%llu decide_ns_max=%llu "
            "foresee_ns_max=%llu",
            d->ops->name, (unsigned long long)d->n_jobs, (unsigned long long)d->n_asked,
            (unsigned long long)d->n_starts, (unsigned long long)d->n_preemptions,
            (unsigned long long)d->n_fused, (unsigned long long)d->n_migrations,
            (unsigned long long)d->n_cpu, (unsigned long long)d->n_refused,
            (unsigned long long)d->n_rescued, (unsigned long long)(d->decide_ns_sum / d->n_asked),
            (unsigned long long)d->decide_ns_max, (unsigned long long)d->foresee_ns_max);
    while (!ws_list_empty(&d->open))
        job_free(d, ws_list_entry(d->open.next, struct ws_gpu_job, node));
    ws_dispatch_system_deinit(d);
    ws_alarms_leave(d->timer);
    if (d->policy)
        d->ops->free(d->policy);
    for (size_t i = 0; i < d->n_blocks; i++) {
        for (int k = 0; k < JOBS_OF_BLOCK; k++)
            free(((struct ws_gpu_job *)d->blocks[i])[k].moves);
        free(d->blocks[i]);
    }
    free(d->blocks);
    free(d->explained);
    free(d->events);
    free(d);
    return NULL;
}

/* ---- events ---- */

static void event_add(struct ws_dispatch *d, enum ws_policy_event_kind kind, uint64_t segment,
                      int task, int gpu)
{
    void *v = d->events;
    if (ws_grow(&v, &d->cap_events, d->n_events + 1, sizeof *d->events))
        return; /* policies are functions of the snapshot; the next event heals what this one would have done */
    d->events = v;
    d->events[d->n_events++] = (struct ws_pending_event){kind, segment, task, gpu};
}

static bool idle(const struct ws_gpu_job *g)
{
    return !g->n_in_flight && !g->context->n_moving && ws_list_empty(&g->held);
}

/* All it was given is done, and the program has not said itself that more belongs to it. */
static bool over(const struct ws_gpu_job *g)
{
    return g->state == WS_JOB_RUNNING && !g->stopping && idle(g) &&
           (g->n_launches || g->part != WS_PART_KERNEL) && !g->context->client->jobs.own.open;
}

static void job_end(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    struct ws_gpu_task *t = g->task;
    double now = ws_dispatch_now_ms(d);
    struct ws_client_stats *st = &t->client->stats;
    struct ws_rapl rapl;
    if (g->rapl.n && ws_rapl_read(&rapl, NULL)) {
        g->energy_uj = ws_rapl_used_uj(&g->rapl, &rapl);
        t->history->cpu_mj = (double)g->energy_uj / 1e3;
        t->history->cpu_measured = true;
    }
    ws_dispatch_learn(d, g);
    st->n_jobs += g->part == WS_PART_KERNEL;
    st->n_missed += g->part == WS_PART_KERNEL && now > g->deadline_ms;
    st->last_job = g->id;
    st->last_response_ns = (uint64_t)WS_MAX((now - g->release_ms) * 1e6, 0);
    st->last_job_uj = g->energy_uj;
    st->last_missed = now > g->deadline_ms;
    event_add(d, WS_EVENT_COMPLETION, g->id, t->index, (int)g->gpu);
    job_free(d, g);
}

/* Ends what its client has left lying: nobody else need wait for that. One that isn't over gets into the list again when the device has
 * done more of it, or ends when its program says so. */
static void end_abandoned(struct ws_dispatch *d)
{
    while (!ws_list_empty(&d->idle)) {
        struct ws_gpu_job *g = ws_list_entry(d->idle.next, struct ws_gpu_job, idle_node);
        ws_list_remove(&g->idle_node);
        if (over(g))
            job_end(d, g);
    }
}

/* Whether somebody waits for what others have. */
static bool wanted(const struct ws_dispatch *d)
{
    return d->n_running < d->n_open;
}

/* ---- carrying out ---- */

static void run_on(struct ws_dispatch *d, struct ws_gpu_job *g, uint32_t gpu,
                   const struct ws_sm_set *sms, int n_sm, double predicted_ms)
{
    g->gpu = gpu;
    g->sms = *sms;
    g->n_sm = n_sm;
    state_set(d, g, WS_JOB_RUNNING);
    g->booked = false;
    g->start_ms = ws_dispatch_now_ms(d);
    g->predicted_ms = predicted_ms;
    g->due = false;
    d->n_starts++;
    wake_held(g);
    if (g->gated) {
        g->n_in_flight = 1; /* until it says that it is through */
        ws_list_append(&d->server->queues.gated_go, &g->context->gated_job.go);
    }
}

/* On its own GPU, all SMs. */
static void run_at_home(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    uint32_t gpu = g->context->gpu->device->index;
    run_on(d, g, gpu, &(struct ws_sm_set){0}, d->gpus[gpu].sm_limit, 0);
}

/* When it will be done, where the policy doesn't say. */
static double predict(const struct ws_dispatch *d, const struct ws_gpu_job *g, int gpu, int n_sm)
{
    if (gpu >= d->system.n_gpus)
        return ws_dispatch_now_ms(d) + g->task->history->cpu_ms;
    const struct ws_policy_cost *c = &g->task->history->cost[d->gpus[gpu].type];
    double ms = c->n_sm > 0 ? c->wcet[WS_MIN(WS_MAX(n_sm, 1), c->n_sm) - 1] : 0;
    return ws_dispatch_now_ms(d) + (1 - g->part_done) * ms;
}

static bool same(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void clocks_set(struct ws_dispatch *d, const struct ws_policy_decision *p)
{
    struct ws_policy_gpu_state *st = &d->gpu_states[p->gpu];
    struct ws_device_clocks want = {p->volt, p->f_core, p->f_mem}, is = want;
    if (same(st->volt, want.volt) && same(st->f_core, want.core) && same(st->f_mem, want.memory))
        return;
    int r = ws_device_set_clocks(d->server->gpus[p->gpu].device, &want, &is);
    if (r) {
        ws_log(WS_DEBUG, "dispatch: GPU %d: clocks can't be set (%d)", p->gpu, r);
        return;
    }
    st->volt = is.volt;
    st->f_core = is.core;
    st->f_mem = is.memory;
}

static void start(struct ws_dispatch *d, struct ws_gpu_job *g, const struct ws_policy_decision *p)
{
    struct ws_sm_set sms = p->sms;
    if (g->gated) {
        run_at_home(d, g);
        return;
    }
    if (p->volt > 0 && p->f_core > 0 && p->f_mem > 0)
        clocks_set(d, p);
    if (!sms.n && p->n_sm < d->gpus[p->gpu].sm_limit)
        ws_sm_set_take(&sms, &(struct ws_sm_set){0}, (unsigned)d->gpus[p->gpu].sm_limit,
                       (unsigned)p->n_sm);
    if (!ws_context_move(g->context, (uint32_t)p->gpu)) {
        ws_log(WS_DEBUG, "dispatch: job %llu can't be moved to GPU %d; it stays on GPU %u",
               (unsigned long long)g->id, p->gpu, g->context->gpu->device->index);
        run_at_home(d, g);
        return;
    }
    run_on(d, g, (uint32_t)p->gpu, &sms, p->n_sm,
           p->end > 0 ? p->end : predict(d, g, p->gpu, p->n_sm));
}

static void start_on_cpu(struct ws_dispatch *d, struct ws_gpu_job *g,
                         const struct ws_policy_decision *p)
{
    struct ws_policy_decision on = *p;
    on.gpu = (int)d->server->n_visible;
    on.n_sm = d->gpus[on.gpu].sm_limit;
    on.sms = (struct ws_sm_set){0};
    on.volt = on.f_core = on.f_mem = 0;
    if (!ws_rapl_read(&g->rapl, NULL))
        g->rapl.n = 0;
    d->n_cpu++;
    start(d, g, &on);
}

static void preempt(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    if (g->stopping)
        return;
    d->n_preemptions++;
    g->stopping = true;
    ws_list_for_each (n, &g->context->streams) {
        struct ws_stream *s = ws_list_entry(n, struct ws_stream, node);
        struct ws_command *j = s->running;
        if (j && j->in_job && j->op.kind == WS_OPK_LAUNCH && !j->fused && !j->relaunch) {
            int r = ws_device_preempt(g->context->gpu->device, &j->op);
            (void)
                r; /* where it can't be stopped it goes on to its end: until then the segment is stopping */
        }
    }
    if (!g->n_in_flight) {
        g->stopping = false;
        state_set(d, g, WS_JOB_PREEMPTED);
    }
}

static void power_set(struct ws_dispatch *d, const struct ws_policy_decision *p)
{
    for (int g = 0; g < d->system.n_gpus; g++)
        if (d->gpus[g].server == p->server &&
            !ws_device_set_power(d->server->gpus[g].device, p->on))
            d->gpu_states[g].power = p->on ? WS_GPU_ON : WS_GPU_OFF;
}

static void timer_want(struct ws_dispatch *d, double at_ms)
{
    if (same(at_ms, d->timer_ms))
        return;
    d->timer_ms = at_ms;
    int r = ws_alarms_set(d->timer, d->server->gpus[0].device,
                          at_ms > 0 ? (uint64_t)ceil(at_ms * 1e6) : 0, 0, 0);
    if (r)
        ws_log(WS_WARN, "dispatch: no timer (%d)", r);
}

/* All members of the group that begins at decision @first. */
static void fuse(struct ws_dispatch *d, size_t first)
{
    struct ws_policy_decision *p = &d->decisions.v[first];
    struct ws_gpu_job *members[WS_FUSE_MAX];
    uint32_t n = 0;
    for (size_t i = first; i < d->decisions.n; i++) {
        struct ws_policy_decision *q = &d->decisions.v[i];
        if (q->kind != WS_DECIDE_FUSE || q->group != p->group || q->gpu != p->gpu)
            continue;
        struct ws_gpu_job *g = d->by_job[q->job];
        if (n < WS_FUSE_MAX && g->state == WS_JOB_WAITING)
            members[n++] = g;
        if (i > first)
            q->kind = WS_DECIDE_WAIT; /* dealt with here */
    }
    if (n > 1 && ws_dispatch_fuse(d, members, n, p))
        d->n_fused++;
    for (uint32_t i = 0; i < n; i++)
        start(d, members[i], p);
}

static void carry_out(struct ws_dispatch *d, size_t i)
{
    struct ws_policy_decision *p = &d->decisions.v[i];
    switch (p->kind) {
    case WS_DECIDE_START:
    case WS_DECIDE_RESUME:
        if (d->ops->books) {
            d->by_job[p->job]->booked = true;
            d->by_job[p->job]->booking = *p;
        } else if (p->at > ws_dispatch_now_ms(d) + 1e-6) {
            timer_want(d, p->at); /* asked again then; nothing is held until then */
        } else {
            start(d, d->by_job[p->job], p);
        }
        break;
    case WS_DECIDE_FUSE:
        if (p->at > ws_dispatch_now_ms(d) + 1e-6)
            timer_want(d, p->at);
        else
            fuse(d, i);
        break;
    case WS_DECIDE_PREEMPT:
        preempt(d, d->by_job[p->job]);
        break;
    case WS_DECIDE_RUN_CPU:
        start_on_cpu(d, d->by_job[p->job], p);
        break;
    case WS_DECIDE_DROP:
        d->by_job[p->job]->given_up = true;
        break;
    case WS_DECIDE_CLOCKS:
        clocks_set(d, p);
        break;
    case WS_DECIDE_POWER:
        power_set(d, p);
        break;
    case WS_DECIDE_TIMER:
        timer_want(d, p->at);
        break;
    default:
        break;
    }
}

static void refuse(struct ws_dispatch *d, const struct ws_policy_decision *p, const char *why)
{
    if (!d->n_refused++)
        ws_log(WS_ERROR, "dispatch: %s wants to %s job %d on GPU %d: %s; not done (said once)",
               d->ops->name, ws_decision_name(p->kind), p->job, p->gpu, why);
}

static void ask(struct ws_dispatch *d, const struct ws_pending_event *e)
{
    struct ws_policy_snapshot snap;
    if (ws_dispatch_refresh(d) || ws_dispatch_snapshot(d, &snap)) {
        ws_log(WS_ERROR, "dispatch: out of memory");
        return;
    }
    struct ws_policy_event event = {
        .kind = e->kind, .job = -1, .task = -1, .gpu = e->gpu, .job_id = e->job};
    if (e->kind == WS_EVENT_COMPLETION)
        event.task = e->task < d->system.n_tasks ? e->task : -1;
    for (int j = snap.n_jobs; e->kind == WS_EVENT_ARRIVAL && event.job < 0 && j-- > 0;)
        if (snap.jobs[j].id == e->job) {
            event.job = j;
            event.task = snap.jobs[j].task;
        }
    if (e->kind == WS_EVENT_ARRIVAL && event.job < 0)
        return; /* gone before anybody was asked */
    snap.explain = snap.n_jobs <= EXPLAIN_JOBS_MAX;
    d->decisions.n = 0;
    d->decisions.steady = false;
    d->n_asked++;
    int r = d->ops->decide(d->policy, &snap, &event, &d->decisions);
    if (r < 0) {
        if (!d->n_failed++)
            ws_log(WS_ERROR, "dispatch: %s can't decide: %s (said once)", d->ops->name,
                   strerror(-r));
        return;
    }
    struct ws_sm_set taken[WS_MAX_GPUS_CONFIGURED] = {0};
    for (int j = 0; j < snap.n_jobs; j++) {
        const struct ws_gpu_job *g = d->by_job[j];
        if (g->state == WS_JOB_RUNNING && (int)taken[g->gpu].n < d->gpus[g->gpu].sm_limit)
            ws_sm_set_join(&taken[g->gpu], &g->sms);
    }
    for (size_t i = 0; i < d->decisions.n; i++) {
        struct ws_policy_decision *p = &d->decisions.v[i];
        if (p->kind == WS_DECIDE_PREEMPT && p->job >= 0 && p->job < snap.n_jobs &&
            d->by_job[p->job]->state == WS_JOB_RUNNING) /* what it had may be given out again */
            taken[d->by_job[p->job]->gpu] = (struct ws_sm_set){0};
        bool starts =
            p->kind == WS_DECIDE_START || p->kind == WS_DECIDE_FUSE || p->kind == WS_DECIDE_RESUME;
        if (starts && !p->n_sm && p->gpu >= 0 && p->gpu < d->system.n_gpus)
            p->n_sm = d->gpus[p->gpu].sm_limit; /* policies that know no SMs mean all */
        const char *why = ws_dispatch_nonsense(&snap, p, taken);
        if (why) {
            refuse(d, p, why);
            if (starts && p->job >= 0 && p->job < snap.n_jobs)
                d->by_job[p->job]->refused = true;
            p->kind = WS_DECIDE_WAIT;
            continue;
        }
        if (d->server->gated.n && ws_dispatch_gate_holds(d, p))
            continue;
        bool of_job =
            p->kind != WS_DECIDE_TIMER && p->kind != WS_DECIDE_CLOCKS && p->kind != WS_DECIDE_POWER;
        if (of_job)
            ws_dispatch_note(d, d->by_job[p->job], p);
        carry_out(d, i);
    }
}

/* Starts what was given to a GPU that is free now, in the order of the times it was given for. */
static void run_booked(struct ws_dispatch *d)
{
    for (uint32_t i = 0; i < d->server->n_gpus; i++) {
        struct ws_gpu_job *first = NULL;
        bool busy = false;
        ws_list_for_each (n, &d->open) {
            struct ws_gpu_job *g = ws_list_entry(n, struct ws_gpu_job, node);
            busy |= g->state == WS_JOB_RUNNING && g->gpu == i;
            if (g->booked && g->booking.gpu == (int)i &&
                (!first || g->booking.at < first->booking.at))
                first = g;
        }
        if (!first || busy)
            continue;
        if (first->booking.at > ws_dispatch_now_ms(d) + 1e-6)
            timer_want(d, first->booking.at);
        else
            start(d, first, &first->booking);
    }
}

/* Nobody may wait for ever, whatever a policy does: where nothing runs and nothing is due, the oldest goes. Those that were given up
 * run when nothing else wants to. */
static void run_forgotten(struct ws_dispatch *d)
{
    struct ws_gpu_job *oldest = NULL, *given_up = NULL;
    if (d->n_running)
        return;
    ws_list_for_each (n, &d->open) {
        struct ws_gpu_job *g = ws_list_entry(n, struct ws_gpu_job, node);
        if (g->booked)
            return;
        if (g->given_up && !given_up)
            given_up = g;
        else if (!g->given_up && !oldest)
            oldest = g;
    }
    if (!oldest && given_up)
        run_at_home(d, given_up);
    if (!oldest || (ws_alarms_pending(d->timer) && !oldest->refused))
        return;
    if (!d->n_rescued++)
        ws_log(WS_WARN,
               "dispatch: %s leaves job %llu (%s) waiting with nothing running; it runs "
               "on GPU %u (said once)",
               d->ops->name, (unsigned long long)oldest->id, oldest->task->history->name,
               oldest->context->gpu->device->index);
    run_at_home(d, oldest);
}

/* No policy any more: what waits or was stopped goes on. */
static void run_all(struct ws_dispatch *d)
{
    ws_list_for_each (n, &d->open) {
        struct ws_gpu_job *g = ws_list_entry(n, struct ws_gpu_job, node);
        if (g->state != WS_JOB_RUNNING && !g->stopping)
            run_at_home(d, g);
    }
}

static void run_due(struct ws_dispatch *d)
{
    struct ws_gpu_job *g;
    while (d->server->gated.n && (g = ws_dispatch_gate_next(d)))
        run_at_home(d, g);
}

static void work_off(struct ws_dispatch *d)
{
    if (d->asking)
        return;
    if (d->off) {
        d->n_events = 0;
        run_all(d);
        return;
    }
    d->asking = true;
    run_due(d); /* promised before: the policy is asked about the rest */
    for (size_t i = 0; i < d->n_events; i++) {
        struct ws_pending_event e = d->events[i]; /* the list may move */
        uint64_t before = ws_clock_ns();
        ask(d, &e);
        uint64_t took = ws_clock_ns() - before;
        d->decide_ns_sum += took;
        d->decide_ns_max = WS_MAX(d->decide_ns_max, took);
    }
    d->n_events = 0;
    if (d->ops->books)
        run_booked(d);
    run_due(d);
    run_forgotten(d);
    d->asking = false;
}

/* ---- what streams and clients tell ---- */

/* One to be filled; what it has in moves is memory to be used again. */
static struct ws_gpu_job *job_new(struct ws_dispatch *d)
{
    if (ws_list_empty(&d->unused)) {
        void *v = d->blocks;
        struct ws_gpu_job *g = ws_alloc_array(JOBS_OF_BLOCK, sizeof *g);
        if (!g || ws_grow(&v, &d->cap_blocks, d->n_blocks + 1, sizeof *d->blocks)) {
            free(g);
            return NULL;
        }
        d->blocks = v;
        d->blocks[d->n_blocks++] = g;
        for (int i = 0; i < JOBS_OF_BLOCK; i++)
            ws_list_append(&d->unused, &g[i].node);
    }
    return ws_list_entry(ws_list_pop(&d->unused), struct ws_gpu_job, node);
}

static struct ws_gpu_job *job_open(struct ws_dispatch *d, struct ws_context *x)
{
    struct ws_client *c = x->client;
    struct ws_gpu_task *t = ws_gpu_task_of(d, c);
    struct ws_gpu_job *g = t ? job_new(d) : NULL;
    if (!g) {
        ws_client_drop(c, WS__ERROR__INTERNAL, "the daemon is out of memory");
        return NULL;
    }
    double now = ws_dispatch_now_ms(d), deadline = c->work.deadline_ms;
    *g = (struct ws_gpu_job){.task = t,
                             .index = t->index,
                             .moves = g->moves,
                             .context = x,
                             .id = ++d->n_jobs,
                             .seq = d->n_jobs,
                             .state = WS_JOB_WAITING,
                             .gpu = x->gpu->device->index,
                             .first_start_ns = UINT64_MAX,
                             .release_ms = now};
    if (c->jobs.own.open) {
        uint64_t clock = ws_device_now_ns(c->contexts[0].gpu->device); /* that its times are of */
        g->release_ms -= ((double)clock - (double)c->jobs.own.release_ns) / 1e6;
        deadline = (double)c->jobs.own.deadline_ns / 1e6;
    }
    g->deadline_ms = deadline > 0 ? g->release_ms + deadline : INFINITY;
    ws_list_init(&g->held);
    ws_list_init(&g->idle_node);
    ws_list_append(&d->open, &g->node);
    d->n_open++;
    x->job = g;
    c->jobs.n_open++;
    return g;
}

/* Whether the policy has a say in when @j goes. Where launches may become one, a job is held at its first launch: at a copy before it
 * there is nothing to merge yet. */
static bool concerns(const struct ws_dispatch *d, const struct ws_command *j)
{
    const struct ws_client *c = j->client;
    return j->op.kind == WS_OPK_LAUNCH || (!d->ops->fuses && (c->work.copies || c->jobs.own.open));
}

static bool is_on_host(const struct ws_command *j, const void *host, uint64_t va)
{
    struct ws_mapping m;
    return host || (ws_space_find(j->client->memory.space, va, 1, &m) && !m.device);
}

static enum ws_job_part part_of(const struct ws_dispatch *d, const struct ws_command *j)
{
    const struct ws_client *c = j->client;
    const struct ws_op *op = &j->op;
    if (!d->ops->parts || !c->work.copies || c->jobs.own.open || op->kind != WS_OPK_COPY)
        return WS_PART_KERNEL;
    bool from = is_on_host(j, op->copy.src_host, op->copy.src_va),
         to = is_on_host(j, op->copy.dst_host, op->copy.dst_va);
    return from == to ? WS_PART_KERNEL : from ? WS_PART_COPY_IN : WS_PART_COPY_OUT;
}

static void hold(struct ws_gpu_job *g, struct ws_stream *s)
{
    ws_list_append(&g->held, &s->blocked);
    g->is_priced = false; /* its head may name more */
}

bool ws_dispatch_pass(struct ws_stream *s, struct ws_command *j)
{
    struct ws_context *x = s->context;
    struct ws_dispatch *d = x->client->server->dispatch;
    if (WS_UNLIKELY(!ws_list_empty(&x->client->jobs.waiting)))
        ws_dispatch_waits(x->client); /* what it waited for ends the job that was open */
    struct ws_gpu_job *g = x->job;
    j->in_job = false;
    if (j->moved_from || x->client->errors.sticky)
        return true;
    if (x->n_moving) {
        hold(g, s);
        return false;
    }
    if (!concerns(d, j))
        return true;
    enum ws_job_part part = part_of(d, j);
    bool other = g && g->part != part && g->state == WS_JOB_RUNNING && !g->stopping;
    if (other && g->n_in_flight) { /* it ends with the last of them, and wakes us */
        hold(g, s);
        return false;
    }
    if (other) {
        job_end(d, g);
        g = NULL;
    }
    if (!g && d->off) {
        if (j->op.kind == WS_OPK_LAUNCH)
            ws_context_choose_sms(x, &(struct ws_sm_set){0}, &j->op.launch.sms);
        return true;
    }
    if (!g) {
        end_abandoned(d);
        g = job_open(d, x);
        if (!g)
            return false;
        g->part = part;
        uint64_t before = ws_clock_ns();
        ws_dispatch_foresee(d, g, j);
        d->foresee_ns_max = WS_MAX(d->foresee_ns_max, ws_clock_ns() - before);
        hold(g, s); /* so that it is not idle while we ask */
        event_add(d, WS_EVENT_ARRIVAL, g->id, -1, -1);
        work_off(d);
        return false; /* if it has started, the stream was woken and asks again */
    }
    if (g->state != WS_JOB_RUNNING || g->stopping) {
        hold(g, s);
        return false;
    }
    j->in_job = true;
    g->n_in_flight++;
    if (j->op.kind == WS_OPK_LAUNCH)
        ws_context_choose_sms(x, &g->sms, &j->op.launch.sms);
    return true;
}

void ws_dispatch_op_ended(struct ws_command *j)
{
    struct ws_context *x = j->stream->context;
    if (WS_UNLIKELY(!ws_list_empty(&j->client->jobs.waiting)))
        ws_dispatch_waits(j->client); /* it began to wait before this */
    if (j->moved_va && ws_space_unmap(j->client->memory.space, j->moved_va))
        ws_log(WS_ERROR, "dispatch: moved memory is still mapped client=%u", j->client->id);
    if (j->moved_from && !--x->n_moving && x->job)
        wake_held(x->job);
    if (!j->in_job)
        return;
    struct ws_gpu_job *g = x->job;
    struct ws_dispatch *d = j->client->server->dispatch;
    const struct ws_op *op = &j->op;
    j->in_job = false;
    g->n_in_flight--;
    if (op->kind == WS_OPK_LAUNCH) {
        uint64_t n = (uint64_t)op->launch.grid[0] * op->launch.grid[1] * op->launch.grid[2];
        g->n_blocks = (uint32_t)WS_MAX(g->n_blocks, WS_MIN(n, INT32_MAX));
        g->n_launches++;
        g->busy_ns += op->end_ns - op->start_ns;
        g->first_start_ns = WS_MIN(g->first_start_ns, op->start_ns);
        g->last_end_ns = WS_MAX(g->last_end_ns, op->end_ns);
        if (op->preempted)
            g->part_done = ws_progress_part(op->launch.progress);
        else
            g->part_done = 0;
    }
    g->energy_uj += op->energy_uj;
    if (g->n_in_flight)
        return;
    if (ws_list_empty(&g->idle_node))
        ws_list_append(&d->idle, &g->idle_node);
    if (j->client->dropped) {
        job_end(d, g);
        if (!j->client->jobs.n_open)
            ws_gpu_task_free(d, j->client->jobs.task);
        work_off(d);
    } else if (g->stopping) {
        g->stopping = false;
        state_set(d, g, WS_JOB_PREEMPTED);
        event_add(d, WS_EVENT_TIMER, g->id, -1, (int)g->gpu);
        work_off(d);
    } else if (d->ops->parts && !x->n_moving && !ws_list_empty(&g->held)) {
        job_end(d, g); /* what is held is of another part */
        work_off(d);
    }
}

void ws_dispatch_waits(struct ws_client *c)
{
    struct ws_dispatch *d = c->server->dispatch;
    ws_list_remove(&c->jobs.waiting);
    if (!c->jobs.n_open || c->jobs.own.open)
        return;
    for (uint32_t i = 0; i < c->n_contexts; i++) {
        struct ws_gpu_job *g = c->contexts[i].job;
        if (g && over(g))
            job_end(d, g);
    }
    work_off(d);
}

void ws_dispatch_waiting(struct ws_server *s)
{
    while (!ws_list_empty(&s->queues.waiting))
        ws_dispatch_waits(ws_list_entry(s->queues.waiting.next, struct ws_client, jobs.waiting));
}

void ws_dispatch_forget(struct ws_client *c)
{
    struct ws_dispatch *d = c->server->dispatch;
    if (!c->jobs.task)
        return;
    for (uint32_t i = 0; i < c->n_contexts; i++) {
        struct ws_gpu_job *g = c->contexts[i].job;
        if (!g)
            continue;
        while (!ws_list_empty(&g->held))
            ws_list_remove(g->held.next); /* they go with their client */
        if (g->n_in_flight && !g->gated)
            g->stopping = true; /* ends with the last of them */
        else
            job_end(d, g);
    }
    if (!c->jobs.n_open)
        ws_gpu_task_free(d, c->jobs.task);
    work_off(d);
}

static int policy_end(struct ws_dispatch *d, const char *const *options, char *error, size_t bytes)
{
    if (options && *options) {
        snprintf(error, bytes, "policy none has no options");
        return WS_CONFIG_E_INVALID;
    }
    if (!d || d->off)
        return 0;
    d->off = true;
    for (int g = 0; g < d->system.n_gpus; g++) {
        struct ws_policy_decision p = {.gpu = g, .volt = 1, .f_core = 1, .f_mem = 1};
        clocks_set(d, &p);
    }
    ws_log(WS_INFO, "dispatch: policy=none");
    work_off(d);
    return 0;
}

int ws_dispatch_set_policy(struct ws_server *s, const char *name, const char *const *options,
                           char *error, size_t bytes)
{
    struct ws_dispatch *d = s->dispatch;
    struct ws_policy *policy;
    const struct ws_policy_ops *ops;
    if (!strcmp(name, "none"))
        return policy_end(d, options, error, bytes);
    if (!s->n_gpus) {
        snprintf(error, bytes, "the daemon has no GPU");
        return WS_CONFIG_E_INVALID;
    }
    if (!d)
        return dispatch_make(&s->dispatch, s, name, options, error, bytes);
    int r = policy_make(name, options, &ops, &policy, error, bytes);
    if (r)
        return r;
    d->ops->free(d->policy);
    d->ops = ops;
    d->policy = policy;
    d->stale = true;
    d->off = false;
    options_note(d, options);
    ws_log(WS_INFO, "dispatch: policy=%s", ops->name);
    event_add(d, WS_EVENT_CHANGED, 0, -1, -1);
    work_off(d);
    return 0;
}

/* ---- gated clients ---- */

bool ws_dispatch_is_on(const struct ws_server *s)
{
    return s->dispatch && !s->dispatch->off;
}

bool ws_dispatch_gate_begin(struct ws_context *x)
{
    struct ws_dispatch *d = x->client->server->dispatch;
    if (!d || d->off || x->job)
        return false;
    end_abandoned(d);
    struct ws_gpu_job *g = job_open(d, x);
    if (!g)
        return true; /* the client is gone */
    g->gated = true;
    g->n_blocks = 1; /* no more SMs than it takes make it faster: it has them all */
    event_add(d, WS_EVENT_ARRIVAL, g->id, -1, -1);
    work_off(d);
    return true;
}

void ws_dispatch_gate_end(struct ws_context *x, uint64_t n_launches, uint64_t device_ns,
                          uint64_t energy_uj)
{
    struct ws_dispatch *d = x->client->server->dispatch;
    struct ws_gpu_job *g = x->job;
    if (!g || !g->gated)
        return;
    g->n_in_flight = 0;
    g->n_launches = device_ns ? WS_MAX(n_launches, 1) : 0; /* 0: nothing is learned from it */
    g->busy_ns = device_ns;
    g->first_start_ns = (uint64_t)(g->start_ms * 1e6);
    g->last_end_ns = g->first_start_ns + device_ns;
    g->energy_uj = energy_uj;
    job_end(d, g);
    work_off(d);
}

static bool timer_rang(struct ws_dispatch *d)
{
    struct ws_rung *r = ws_alarms_take(d->timer), *next;
    bool any = r;
    for (; r; r = next) {
        next = r->next;
        free(r);
    }
    return any;
}

void ws_dispatch_turn(struct ws_server *s)
{
    struct ws_dispatch *d = s->dispatch;
    if (timer_rang(d)) {
        d->timer_ms = NAN;
        end_abandoned(d);
        event_add(d, WS_EVENT_TIMER, 0, -1, -1);
    }
    if (wanted(d))
        end_abandoned(d);
    if (d->n_events)
        work_off(d);
}

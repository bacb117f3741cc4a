// SPDX-License-Identifier: Apache-2.0
/* Asking the policy, and carrying out what it decides.
 *
 * An arrival, a completion, a timer: each is put on a list of events, and the policy is asked
 * about one after another. Carrying out a decision may end jobs and so make new events; they
 * wait on the list, nothing recurses. Streams that may go on are only woken here
 * (ws_stream_wake()), and gated jobs that start are only listed (server->queues.gated_go);
 * ws_server_run_ready() does the rest. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/client/stream.h"
#include "backend/scheduling/dispatch_private.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "policy/clocks.h"

enum { EXPLAIN_JOBS_MAX = 64 };

void ws_dispatch_wake_held(struct ws_gpu_job *g)
{
    while (!ws_list_empty(&g->held))
        ws_stream_wake(ws_list_entry(g->held.next, struct ws_stream, blocked));
}

void ws_dispatch_set_state(struct ws_dispatch *d, struct ws_gpu_job *g, enum ws_job_state state)
{
    d->n_running += (state == WS_JOB_RUNNING) - (size_t)(g->state == WS_JOB_RUNNING);
    g->state = state;
}

void ws_dispatch_event(struct ws_dispatch *d, enum ws_policy_event_kind kind, uint64_t job,
                       int task, int gpu)
{
    void *v = d->events;
    /* Without memory the event is dropped. Policies decide from the snapshot alone, so the next
     * event makes up for it. */
    if (ws_grow(&v, &d->cap_events, d->n_events + 1, sizeof(*d->events)))
        return;
    d->events = v;
    d->events[d->n_events++] = (struct ws_pending_event){kind, job, task, gpu};
}

/* The host's processor has no clocks of ours. */
static double stretch(const struct ws_dispatch *d, const struct ws_gpu_job *g, uint32_t gpu)
{
    if ((int)gpu >= d->system.n_gpus)
        return 1;
    const struct ws_policy_gpu_state *st = &d->gpu_states[gpu];
    const struct ws_policy_clocks clocks = {st->volt, st->f_core, st->f_mem};
    return ws_policy_clocks_stretch(&g->task->history->cost[d->gpus[gpu].type], &clocks);
}

static void run_on(struct ws_dispatch *d, struct ws_gpu_job *g, uint32_t gpu,
                   const struct ws_sm_set *sms, int n_sm, double predicted_ms)
{
    g->gpu = gpu;
    g->sms = *sms;
    g->n_sm = n_sm;
    ws_dispatch_set_state(d, g, WS_JOB_RUNNING);
    g->booked = false;
    g->start_ms = ws_dispatch_now_ms(d);
    g->predicted_ms = predicted_ms;
    g->stretch = stretch(d, g, gpu);
    g->due = g->aside = false;
    g->waited_ns = 0;
    d->n_starts++;
    ws_dispatch_wake_held(g);
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

static void set_clocks(struct ws_dispatch *d, int gpu, struct ws_device_clocks want)
{
    struct ws_policy_gpu_state *st = &d->gpu_states[gpu];
    struct ws_device_clocks is = want;
    if (same(st->volt, want.volt) && same(st->f_core, want.core) && same(st->f_mem, want.memory))
        return;
    int r = ws_device_set_clocks(d->server->gpus[gpu].device, &want, &is);
    if (r) {
        ws_log(WS_DEBUG, "dispatch: GPU %d: clocks can't be set (%d)", gpu, r);
        return;
    }
    st->volt = is.volt;
    st->f_core = is.core;
    st->f_mem = is.memory;
}

void ws_dispatch_set_clocks(struct ws_dispatch *d, const struct ws_policy_decision *p)
{
    set_clocks(d, p->gpu, (struct ws_device_clocks){p->volt, p->f_core, p->f_mem});
}

/* The clocks for a job. What a batch scheduler has planned for its step goes before what the policy
 * decides: the step has the GPU to itself, and its deadline was promised at those clocks. */
static struct ws_device_clocks clocks_for(const struct ws_gpu_job *g,
                                          const struct ws_policy_decision *p)
{
    const struct ws_batch_step *step = g->context->client->step;
    if (step && step->wishes.volt > 0)
        return (struct ws_device_clocks){step->wishes.volt, step->wishes.core, step->wishes.memory};
    return (struct ws_device_clocks){p->volt, p->f_core, p->f_mem};
}

/* How many SMs of its GPU a job's task may use. */
static int n_sm_of_task(const struct ws_dispatch *d, const struct ws_gpu_job *g)
{
    const struct ws_context *x = g->context;
    return x->task_sms.n ? (int)x->task_sms.n : d->gpus[x->gpu->device->index].sm_limit;
}

/* What the policy has decided for a job with launches whose blocks must be there together, on all
 * SMs. */
static void widen(struct ws_dispatch *d, struct ws_gpu_job *g, struct ws_policy_decision *p)
{
    int n_sm = n_sm_of_task(d, g);
    p->sms = g->context->task_sms;
    if (p->n_sm == n_sm)
        return;
    p->n_sm = n_sm;
    p->end = predict(d, g, p->gpu, n_sm);
    p->energy = NAN; /* of another number of SMs */
    size_t n = strlen(p->why);
    snprintf(p->why + n, sizeof(p->why) - n,
             "%sa launch, cooperative or of clusters, needs all its SMs", n ? "; " : "");
}

void ws_dispatch_widen(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    struct ws_policy_decision p = {.kind = WS_DECIDE_START, .gpu = (int)g->gpu, .n_sm = g->n_sm};
    widen(d, g, &p);
    g->cooperative = true;
    if (p.n_sm == g->n_sm)
        return;
    g->sms = p.sms;
    g->n_sm = p.n_sm;
    g->predicted_ms = p.end;
    ws_dispatch_note(d, g, &p);
}

static void start(struct ws_dispatch *d, struct ws_gpu_job *g, const struct ws_policy_decision *p)
{
    struct ws_sm_set sms = p->sms;
    if (g->gated) {
        run_at_home(d, g);
        return;
    }
    if (p->volt > 0 && p->f_core > 0 && p->f_mem > 0)
        set_clocks(d, p->gpu, clocks_for(g, p));
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

void ws_dispatch_preempt(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    if (g->stopping)
        return;
    d->n_preemptions++;
    g->stopping = d->urging = true;
    ws_list_for_each (n, &g->context->streams) {
        struct ws_stream *s = ws_list_entry(n, struct ws_stream, node);
        struct ws_command *j = s->running;
        if (j && j->in_job && j->op.kind == WS_OPK_LAUNCH && !j->fused && !j->relaunch) {
            int r = ws_device_preempt(g->context->gpu->device, &j->op);
            /* A launch that can't be stopped runs to its end; until then the job is stopping. */
            (void)r;
        }
    }
    if (!g->n_in_flight) {
        g->stopping = false;
        ws_dispatch_set_state(d, g, WS_JOB_PREEMPTED);
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
        ws_dispatch_preempt(d, d->by_job[p->job]);
        break;
    case WS_DECIDE_RUN_CPU:
        start_on_cpu(d, d->by_job[p->job], p);
        break;
    case WS_DECIDE_DROP:
        d->by_job[p->job]->given_up = true;
        break;
    case WS_DECIDE_CLOCKS:
        ws_dispatch_set_clocks(d, p);
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
    snap.explain = snap.mark_others = snap.n_jobs <= EXPLAIN_JOBS_MAX;
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
            ws_sm_set_leave(&taken[d->by_job[p->job]->gpu], &d->by_job[p->job]->sms);
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
        if (starts && d->by_job[p->job]->cooperative)
            widen(d, d->by_job[p->job], p);
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

/* Nobody may wait for ever, whatever a policy does: where nothing runs and nothing is due, the
 * oldest goes. Those that were given up run when nothing else wants to. */
static void run_forgotten(struct ws_dispatch *d)
{
    struct ws_gpu_job *oldest = NULL, *given_up = NULL;
    if (d->n_running)
        return;
    ws_list_for_each (n, &d->open) {
        struct ws_gpu_job *g = ws_list_entry(n, struct ws_gpu_job, node);
        if (g->booked)
            return;
        if (g->aside) /* it runs, or has nothing to run */
            continue;
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

void ws_dispatch_work_off(struct ws_dispatch *d)
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

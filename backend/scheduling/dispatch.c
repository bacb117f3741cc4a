// SPDX-License-Identifier: Apache-2.0
/* The dispatcher's jobs: how they begin and end.
 *
 * A job of a context is WAITING until it is started, then RUNNING. PREEMPT stops its launches at
 * a block boundary: from then on it is `stopping`, nothing of it starts, and when its last
 * operation has come back it is PREEMPTED. What was stopped stands at the head of its stream
 * again, with its progress in the launch; RESUME lets the streams go on.
 *
 * A job that others have waited for too long is put aside (dispatch_urge.c): policies do not see
 * it. If it stops and has more to do, it is WAITING again.
 *
 * The end. A job is over when the device has nothing of it, nothing of it is held, and its
 * client waits (any answer that it gets counts). A client that gives nothing more and does not
 * wait either is noticed when the next decision is due. A job that began with JobBegin ends only
 * after JobEnd.
 *
 * Parts. Where the policy decides on copies one by one (ops.parts: STGM) and the task's copies
 * count, a job here is a run of the client's operations of one part, in the order in which they
 * become ready: it is over when an operation of another part wants to go and the device has
 * nothing of it. A program that marks its jobs itself gives them whole.
 *
 * A client that goes: its held work is gone with its streams; the job stays as long as the
 * device has something of it, for until then its SMs are taken. */
#include "backend/scheduling/dispatch.h"

#include <math.h>
#include <stdlib.h>

#include "backend/client/sms.h"
#include "backend/client/stream.h"
#include "backend/scheduling/dispatch_private.h"
#include "base/alloc.h"
#include "base/clock.h"

enum { JOBS_OF_BLOCK = 64 };

static void job_free(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    struct ws_gpu_task *t = g->task;
    ws_list_remove(&g->node);
    ws_list_remove(&g->idle_node);
    d->n_open--;
    ws_dispatch_set_state(d, g, WS_JOB_WAITING);
    g->context->job = NULL;
    ws_dispatch_wake_held(g);
    t->client->jobs.n_open--;
    ws_list_append(d->unused.next, &g->node); /* the next one to be used */
}

void ws_dispatch_jobs_free(struct ws_dispatch *d)
{
    while (!ws_list_empty(&d->open))
        job_free(d, ws_list_entry(d->open.next, struct ws_gpu_job, node));
    for (size_t i = 0; i < d->n_blocks; i++) {
        for (int k = 0; k < JOBS_OF_BLOCK; k++)
            free(((struct ws_gpu_job *)d->blocks[i])[k].moves);
        free(d->blocks[i]);
    }
    free(d->blocks);
}

static bool idle(const struct ws_gpu_job *g)
{
    return !g->n_in_flight && !g->context->n_moving && ws_list_empty(&g->held);
}

/* All it was given is done, and the program has not said itself that more belongs to it. */
static bool over(const struct ws_gpu_job *g)
{
    return ((g->state == WS_JOB_RUNNING && !g->stopping) || g->aside) && idle(g) &&
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
    ws_dispatch_event(d, WS_EVENT_COMPLETION, g->id, t->index, (int)g->gpu);
    job_free(d, g);
}

/* Ends what its client has left lying: nobody else need wait for that. One that isn't over gets
 * into the list again when the device has done more of it, or ends when its program says so. */
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

/* ---- what streams and clients tell ---- */

/* One to be filled; what it has in moves is memory to be used again. */
static struct ws_gpu_job *job_new(struct ws_dispatch *d)
{
    if (ws_list_empty(&d->unused)) {
        void *v = d->blocks;
        struct ws_gpu_job *g = ws_alloc_array(JOBS_OF_BLOCK, sizeof(*g));
        if (!g || ws_grow(&v, &d->cap_blocks, d->n_blocks + 1, sizeof(*d->blocks))) {
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
                             .seq = ++d->last_seq,
                             .state = WS_JOB_WAITING,
                             .gpu = x->gpu->device->index,
                             .stretch = 1,
                             .first_start_ns = UINT64_MAX,
                             .release_ms = now};
    if (c->jobs.own.open) {
        uint64_t clock = ws_device_now_ns(c->contexts[0].gpu->device); /* that its times are of */
        g->release_ms -= ((double)clock - (double)c->jobs.own.release_ns) / 1e6;
        deadline = (double)c->jobs.own.deadline_ns / 1e6;
    }
    t->newest_job = g->id;
    g->deadline_ms = deadline > 0 ? g->release_ms + deadline : INFINITY;
    ws_list_init(&g->held);
    ws_list_init(&g->idle_node);
    ws_list_append(&d->open, &g->node);
    d->n_open++;
    x->job = g;
    c->jobs.n_open++;
    return g;
}

/* Whether the policy has a say in when @j goes. Where launches may become one, a job is held at
 * its first launch: at a copy before it there is nothing to merge yet. */
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

/* The command at the head of @s waits for its job's turn; traces say from when on. */
static void hold(struct ws_gpu_job *g, struct ws_stream *s)
{
    struct ws_command *j = s->head;
    if (s->context->client->server->tracing && j->held_ns <= j->op.end_ns)
        j->held_ns = ws_device_now_ns(s->context->gpu->device);
    ws_list_append(&g->held, &s->blocked);
    g->is_priced = false; /* its head may name more */
}

static bool is_together(const struct ws_command *j)
{
    return j->op.kind == WS_OPK_LAUNCH && ws_op_is_together(&j->op);
}

/* @sms: of its job, n == 0: all. Blocks of a cooperative launch, or of a cluster, must all be there
 * at once, and the program has counted all SMs of its task. */
static void choose_sms(struct ws_command *j, const struct ws_sm_set *sms)
{
    struct ws_context *x = j->stream->context;
    if (j->op.kind != WS_OPK_LAUNCH)
        return;
    ws_context_choose_sms(x, sms, &j->op.launch.sms);
    if (is_together(j))
        j->op.launch.sms = x->task_sms;
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
        choose_sms(j, &(struct ws_sm_set){0});
        return true;
    }
    if (!g) {
        end_abandoned(d);
        g = job_open(d, x);
        if (!g)
            return false;
        g->part = part;
        g->cooperative = is_together(j);
        uint64_t before = ws_clock_ns();
        ws_dispatch_foresee(d, g, j);
        d->foresee_ns_max = WS_MAX(d->foresee_ns_max, ws_clock_ns() - before);
        hold(g, s); /* so that it is not idle while we ask */
        ws_dispatch_event(d, WS_EVENT_ARRIVAL, g->id, -1, -1);
        ws_dispatch_work_off(d);
        return false; /* if it has started, the stream was woken and asks again */
    }
    if (g->state != WS_JOB_RUNNING || g->stopping) {
        g->cooperative |= is_together(j);
        hold(g, s);
        if (g->aside && !g->n_in_flight) {
            ws_dispatch_come_back(d, g);
            ws_dispatch_work_off(d);
        }
        return false;
    }
    j->in_job = true;
    g->n_in_flight++;
    if (is_together(j) && !g->cooperative)
        ws_dispatch_widen(d, g);
    choose_sms(j, &g->sms);
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
        ws_dispatch_wake_held(x->job);
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
        g->part_done = op->preempted ? ws_progress_part(op->launch.progress) : 0;
        g->n_all_blocks += op->preempted ? 0 : n;
        ws_dispatch_learn_launch(d, g, j);
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
        ws_dispatch_work_off(d);
    } else if (g->aside) {
        g->stopping = false;
        if (!ws_list_empty(&g->held))
            ws_dispatch_come_back(d, g);
        ws_dispatch_work_off(d);
    } else if (g->stopping) {
        g->stopping = false;
        ws_dispatch_set_state(d, g, WS_JOB_PREEMPTED);
        ws_dispatch_event(d, WS_EVENT_TIMER, g->id, -1, (int)g->gpu);
        ws_dispatch_work_off(d);
    } else if (d->ops->parts && !x->n_moving && !ws_list_empty(&g->held)) {
        job_end(d, g); /* what is held is of another part */
        ws_dispatch_work_off(d);
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
    ws_dispatch_work_off(d);
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
    ws_dispatch_work_off(d);
}

/* ---- gated clients ---- */

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
    ws_dispatch_event(d, WS_EVENT_ARRIVAL, g->id, -1, -1);
    ws_dispatch_work_off(d);
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
    ws_dispatch_work_off(d);
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
        ws_dispatch_event(d, WS_EVENT_TIMER, 0, -1, -1);
    }
    if (wanted(d))
        end_abandoned(d);
    if (d->n_events)
        ws_dispatch_work_off(d);
    ws_dispatch_urge_turn(d);
}

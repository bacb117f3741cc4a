// SPDX-License-Identifier: Apache-2.0
/* Jobs that others wait for: max_kernel_ms, whatever the policy.
 *
 * While a client waits for the GPU that another client's job has, the job's time is counted. From
 * then on its launches are urged (ws_device_urge()): the device ends one whose block has no end. A
 * job that has had the GPU for max_kernel_ms is put aside: it is asked to stop at a block's end,
 * and for the policy it is not there, so that others start. If it has stopped and wants to go on,
 * it comes back as a job that waits, behind all others. Each time its next turn is half as long,
 * HALVES_MAX times. So a client that does not wait for its work, or whose grid is endless, gets
 * its share and no more, and what it computes is right in any case.
 *
 * What counts is the host's time, while a launch is executed. A launch that a software GPU has
 * executed, and whose modelled time has to pass, counts by that time.
 *
 * Jobs are looked at every LOOKS_PER_LIMIT'th part of max_kernel_ms, and only while somebody
 * waits. */
#include <math.h>

#include "backend/client/stream.h"
#include "backend/scheduling/dispatch_private.h"
#include "backend/scheduling/fused.h"
#include "base/clock.h"

enum { HALVES_MAX = 5, LOOKS_PER_LIMIT = 8 };
/* A client whose last job began no longer ago is at work. */
#define COMPANY_NS WS_NS_PER_S

/* Whether the job has work that its policy has not let go. */
static bool waits(const struct ws_gpu_job *g)
{
    return g->state != WS_JOB_RUNNING && !g->aside && (!ws_list_empty(&g->held) || g->gated);
}

static uint32_t gpu_wanted(const struct ws_gpu_job *g)
{
    return g->booked ? (uint32_t)g->booking.gpu : g->context->gpu->device->index;
}

static bool is_busy(const struct ws_dispatch *d, uint32_t gpu)
{
    ws_list_for_each (n, &d->open) {
        const struct ws_gpu_job *g = ws_list_entry(n, struct ws_gpu_job, node);
        if (g->state == WS_JOB_RUNNING && g->gpu == gpu)
            return true;
    }
    return false;
}

/* Whether @h, of another client, waits for what @g has. One whose own GPU is free waits for what
 * its policy has in mind, which may be any GPU. */
static bool waits_for(const struct ws_dispatch *d, const struct ws_gpu_job *h,
                      const struct ws_gpu_job *g)
{
    return h->task != g->task && waits(h) &&
           (gpu_wanted(h) == g->gpu || !is_busy(d, gpu_wanted(h)));
}

static bool is_waited_for(const struct ws_dispatch *d, const struct ws_gpu_job *g)
{
    ws_list_for_each (n, &d->open)
        if (waits_for(d, ws_list_entry(n, struct ws_gpu_job, node), g))
            return true;
    return false;
}

/* Whether a client whose home is the job's GPU has begun a job since the last look or has one
 * open. */
static bool has_company(const struct ws_dispatch *d, const struct ws_gpu_job *g)
{
    ws_list_for_each (n, &d->tasks) {
        const struct ws_gpu_task *t = ws_list_entry(n, struct ws_gpu_task, node);
        if (t != g->task && t->client->contexts[0].gpu->device->index == g->gpu &&
            (t->client->jobs.n_open || t->newest_job > d->urge_seen))
            return true;
    }
    return false;
}

/* A job that was asked to stop for others slows them down as long as it runs, until none of them
 * has been there for a while. */
static bool is_in_the_way(const struct ws_dispatch *d, struct ws_gpu_job *g, uint64_t now_ns)
{
    if (has_company(d, g))
        g->company_ns = now_ns;
    return g->stopping && now_ns - g->company_ns < COMPANY_NS;
}

static bool is_merged(const struct ws_gpu_job *g)
{
    ws_list_for_each (n, &g->context->streams) {
        const struct ws_command *j = ws_list_entry(n, struct ws_stream, node)->running;
        if (j && j->in_job && j->fused)
            return true; /* its other members wait for it */
    }
    return false;
}

/* Urges what the device has of it. Return: whether that is being executed. */
static bool urge(const struct ws_gpu_job *g, uint64_t limit_ns)
{
    bool executed = false, any = false;
    ws_list_for_each (n, &g->context->streams) {
        struct ws_command *j = ws_list_entry(n, struct ws_stream, node)->running;
        if (!j || !j->in_job || j->op.kind != WS_OPK_LAUNCH)
            continue;
        struct ws_op *op = j->fused ? ws_fused_op(j->fused) : &j->op;
        any = true;
        executed |= ws_device_urge(g->context->gpu->device, op, limit_ns) == WS_DEVICE_EXECUTED;
    }
    return !any || !executed;
}

static void put_aside(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    if (!g->n_yields++)
        ws_log(WS_INFO,
               "dispatch: job %llu (%s) has had GPU %u for %u ms while others waited; it goes "
               "behind them",
               (unsigned long long)g->id, g->task->history->name, g->gpu,
               d->server->config->max_kernel_ms);
    ws_dispatch_preempt(d, g);
    g->waited_ns = 0;
    g->aside = true;
    ws_dispatch_set_state(d, g, WS_JOB_PREEMPTED);
    ws_dispatch_event(d, WS_EVENT_TIMER, g->id, -1, (int)g->gpu);
}

void ws_dispatch_come_back(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    g->aside = g->stopping = false;
    g->seq = ++d->last_seq;
    ws_dispatch_set_state(d, g, WS_JOB_WAITING);
    ws_list_remove(&g->node);
    ws_list_append(&d->open, &g->node);
    ws_dispatch_event(d, WS_EVENT_ARRIVAL, g->id, -1, -1);
}

/* Return: whether it has to be looked at again soon: others wait for it, or it is to stop. */
static bool look_at(struct ws_dispatch *d, struct ws_gpu_job *g, uint64_t limit_ns, uint64_t now_ns)
{
    bool has = g->state == WS_JOB_RUNNING || g->aside, wanted = has && is_waited_for(d, g);
    if (!limit_ns || !has || g->gated || !(wanted || is_in_the_way(d, g, now_ns) || is_merged(g))) {
        if (g->waited_from_ns)
            (void)urge(g, 0);
        g->waited_from_ns = 0;
        return g->stopping;
    }
    uint64_t device_ns = ws_device_now_ns(g->context->gpu->device);
    if (g->waited_from_ns)
        g->waited_ns +=
            urge(g, limit_ns) ? now_ns - g->waited_from_ns : device_ns - g->waited_device_ns;
    g->waited_from_ns = now_ns;
    g->waited_device_ns = device_ns;
    if (wanted && !g->aside &&
        g->waited_ns >= limit_ns >> WS_MIN(g->n_yields, (uint32_t)HALVES_MAX))
        put_aside(d, g);
    return true;
}

/* Whether there may be somebody who waits. */
static bool is_needed(const struct ws_dispatch *d)
{
    const struct ws_server *s = d->server;
    return d->urging ||
           (s->config->max_kernel_ms && (d->n_running < d->n_open || s->fused.n_running));
}

void ws_dispatch_urge_turn(struct ws_dispatch *d)
{
    uint64_t limit_ns = d->server->config->max_kernel_ms * WS_NS_PER_MS, now;
    if (WS_LIKELY(!is_needed(d)) || (now = ws_clock_ns()) < d->urge_next_ns)
        return;
    d->urging = false;
    ws_list_for_each (n, &d->open)
        d->urging |= look_at(d, ws_list_entry(n, struct ws_gpu_job, node), limit_ns, now);
    d->urge_seen = d->n_jobs;
    d->urge_next_ns = now + WS_MAX(limit_ns / LOOKS_PER_LIMIT, WS_NS_PER_MS);
    ws_dispatch_work_off(d);
}

int ws_dispatch_left_ms(const struct ws_server *s)
{
    const struct ws_dispatch *d = s->dispatch;
    if (WS_LIKELY(!is_needed(d)))
        return -1;
    return ws_timeout_until(d->urge_next_ns);
}

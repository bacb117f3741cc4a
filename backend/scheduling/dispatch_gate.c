// SPDX-License-Identifier: Apache-2.0
/* Jobs of gated clients: such a job has a GPU as a whole and alone. It can't be preempted, migrated
 * or merged.
 *
 * Policies do not know that. What a policy says about a gated job is read as follows. To start it,
 * wherever and on however many SMs, means on its own GPU, on all of it. To preempt it means to wait
 * for its end. If its GPU is not free yet, the job is *due*: it starts as soon as the GPU is free,
 * without asking again, and until then nothing else starts there. So it can't starve behind jobs
 * that overlap one another, nor behind a policy that counts its turn as taken. Only a start of
 * higher priority takes that promise back.
 *
 * Whatever is held here waits for the end of a job, after which the policy is asked again. */
#include <stdio.h>

#include "backend/scheduling/dispatch_private.h"

static bool busy(const struct ws_dispatch *d, uint32_t gpu, const struct ws_gpu_job *but,
                 bool gated_only)
{
    ws_list_for_each (n, &d->open) {
        const struct ws_gpu_job *g = ws_list_entry(n, struct ws_gpu_job, node);
        if (g != but && g->state == WS_JOB_RUNNING && g->gpu == gpu && (g->gated || !gated_only))
            return true;
    }
    return false;
}

static uint32_t home_of(const struct ws_gpu_job *g)
{
    return g->context->gpu->device->index;
}

/* Who is due on @gpu and goes next: by priority, then in the order in which the policy chose
 * them. */
static struct ws_gpu_job *due_on(const struct ws_dispatch *d, uint32_t gpu)
{
    struct ws_gpu_job *best = NULL;
    ws_list_for_each (n, &d->open) {
        struct ws_gpu_job *g = ws_list_entry(n, struct ws_gpu_job, node);
        if (!g->due || home_of(g) != gpu)
            continue;
        if (!best || g->task->priority > best->task->priority ||
            (g->task->priority == best->task->priority && g->due_seq < best->due_seq))
            best = g;
    }
    return best;
}

static void take_back(struct ws_dispatch *d, uint32_t gpu, int priority)
{
    ws_list_for_each (n, &d->open) {
        struct ws_gpu_job *g = ws_list_entry(n, struct ws_gpu_job, node);
        if (g->due && home_of(g) == gpu && g->task->priority < priority)
            g->due = false;
    }
}

static void hold(struct ws_dispatch *d, struct ws_gpu_job *g, struct ws_policy_decision *p,
                 const char *why)
{
    p->kind = WS_DECIDE_WAIT;
    snprintf(p->why, sizeof(p->why), "%s", why);
    ws_dispatch_note(d, g, p);
}

/* The policy wants @g to start. Return: it has to wait. */
static bool gated_start(struct ws_dispatch *d, struct ws_gpu_job *g, struct ws_policy_decision *p)
{
    uint32_t gpu = home_of(g);
    take_back(d, gpu, g->task->priority);
    p->kind = WS_DECIDE_START;
    p->gpu = (int)gpu;
    p->n_sm = d->gpus[gpu].sm_limit;
    p->sms = (struct ws_sm_set){0};
    if (!busy(d, gpu, g, false) && !due_on(d, gpu))
        return false;
    if (!g->due)
        g->due_seq = ++d->n_due;
    g->due = true;
    hold(d, g, p, "gated: it has its GPU as soon as that is free");
    return true;
}

bool ws_dispatch_gate_holds(struct ws_dispatch *d, struct ws_policy_decision *p)
{
    bool starts = p->kind == WS_DECIDE_START || p->kind == WS_DECIDE_RESUME ||
                  p->kind == WS_DECIDE_FUSE || p->kind == WS_DECIDE_RUN_CPU;
    if (!starts && p->kind != WS_DECIDE_PREEMPT)
        return false;
    struct ws_gpu_job *g = d->by_job[p->job];
    if (p->kind == WS_DECIDE_PREEMPT) {
        if (g->gated)
            hold(d, g, p, "gated: it can't be stopped");
        return g->gated;
    }
    if (!d->ops->books && p->at > ws_dispatch_now_ms(d) + 1e-6)
        return false; /* asked again then */
    if (g->gated)
        return gated_start(d, g, p);
    if (p->kind == WS_DECIDE_RUN_CPU || d->ops->books) /* bookings wait for a free GPU anyway */
        return false;
    take_back(d, (uint32_t)p->gpu, g->task->priority);
    if (!busy(d, (uint32_t)p->gpu, g, true) && !due_on(d, (uint32_t)p->gpu))
        return false;
    hold(d, g, p, "a gated job has this GPU, or has it next");
    return true;
}

struct ws_gpu_job *ws_dispatch_gate_next(struct ws_dispatch *d)
{
    for (uint32_t gpu = 0; gpu < d->server->n_gpus; gpu++) {
        struct ws_gpu_job *g = due_on(d, gpu);
        if (g && !busy(d, gpu, g, false))
            return g;
    }
    return NULL;
}

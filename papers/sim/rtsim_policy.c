// SPDX-License-Identifier: Apache-2.0
/* Requests for the GPU, and the policy object that answers them. It is the same object that the
 * daemon runs, and gets the snapshot that the daemon would give it. rt->jobs has the requests in
 * order of arrival, as the policy sees them. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "papers/sim/rtsim_private.h"

static const char *policy_object(const struct ws_rtsim_config *c)
{
    static const char *const names[_WS_RTSIM_POLICY_N] = {[WS_RTSIM_RR] = "rr",
                                                          [WS_RTSIM_GCAPS] = "gcaps",
                                                          [WS_RTSIM_STGM] = "stgm",
                                                          [WS_RTSIM_MPCP] = "fifo",
                                                          [WS_RTSIM_FMLP] = "fifo"};
    return c->policy_name ? c->policy_name : names[c->policy];
}

int ws_rtsim_policy_make(struct ws_rtsim *rt)
{
    static const char *const rr[] = {"slice=0", NULL}, *const mpcp[] = {"order=priority", NULL};
    static const char *const *const usual[_WS_RTSIM_POLICY_N] = {
        [WS_RTSIM_RR] = rr, [WS_RTSIM_MPCP] = mpcp};
    const char *const *options = rt->config.policy_options;
    if (!options && !rt->config.policy_name)
        options = usual[rt->config.policy];
    char error[200];
    rt->ops = ws_policy_find(policy_object(&rt->config));
    if (!rt->ops)
        return -ENOENT;
    int r = rt->ops->make(&rt->policy, options, error, sizeof(error));
    return r > 0 ? -EINVAL : r;
}

/* What it takes to put a job on the GPU. */
static double update_ms(const struct ws_rtsim *rt)
{
    return rt->config.policy == WS_RTSIM_GCAPS ? (double)rt->set->epsilon / (double)rt->set->per_ms
                                               : 0;
}

/* What all kernels of a job of @task take on @n_sm SMs, in ms; 0: on its own. */
static double kernels_ms(const struct ws_rtsim *rt, int task, int n_sm)
{
    const struct ws_rtsim_task *t = &rt->set->tasks[task];
    int64_t sum = 0;
    for (int k = 0; k < t->n_segments; k++) {
        const struct ws_rtsim_segment *g = &t->segments[k];
        sum += n_sm && g->by_sms ? g->by_sms[n_sm - 1] : g->kernel;
    }
    return (double)sum / (double)rt->set->per_ms;
}

/* Where kernels have no times by SMs, theirs is known on the SMs of the task, and on all where it
 * has none of its own. A task that never asks for the GPU has no cost. */
static void describe_cost(struct ws_rtsim *rt, int i)
{
    const struct ws_rtsim_task *t = &rt->set->tasks[i];
    double *wcet = &rt->wcet[(size_t)i * (size_t)rt->set->n_sms];
    bool by_sms = t->n_segments && t->segments[0].by_sms;
    int own = (int)ws_sm_set_count(&t->sms);
    if (!own)
        own = rt->set->n_sms;
    for (int m = 1; m <= rt->set->n_sms; m++)
        wcet[m - 1] = m < own && !by_sms ? INFINITY : kernels_ms(rt, i, m);
    rt->costs[i] = (struct ws_policy_cost){
        .n_sm = kernels_ms(rt, i, 0) > 0 ? rt->set->n_sms : 0, .wcet = wcet, .h2d = update_ms(rt)};
}

void ws_rtsim_policy_describe(struct ws_rtsim *rt)
{
    const struct ws_rtsim_set *s = rt->set;
    double per_ms = (double)s->per_ms;
    rt->type = (struct ws_policy_gpu_type){.name = "gpu",
                                           .n_sm = s->n_sms,
                                           .switch_ms = (double)s->theta / per_ms,
                                           .update_ms = (double)s->epsilon / per_ms,
                                           .preempts = rt->config.policy == WS_RTSIM_GCAPS};
    rt->policy_gpu = (struct ws_policy_gpu){
        .sm_limit = s->n_sms, .n_slots = s->n_tasks, .n_copy_engines = 1, .server = -1};
    int lowest = 0;
    for (int i = 0; i < s->n_tasks; i++)
        if (!s->tasks[i].best_effort)
            lowest = s->tasks[i].priority;
    for (int i = 0; i < s->n_tasks; i++) {
        const struct ws_rtsim_task *t = &s->tasks[i];
        rt->policy_tasks[i] = (struct ws_policy_task){
            .id = t->id,
            .name = "",
            .period = (double)t->period / per_ms,
            .deadline = (double)t->deadline / per_ms,
            .offset = (double)t->offset / per_ms,
            .priority = t->best_effort ? 0 : t->priority - lowest + 1,
            .gpu_priority = t->gpu_priority,
            .best_effort = t->best_effort,
            .busy_wait = rt->config.busy,
            .weight = 1,
            .sms = t->sms,
            .cost = &rt->costs[i],
        };
        describe_cost(rt, i);
    }
    rt->gpu_state = (struct ws_policy_gpu_state){
        .slots = rt->slots, .n_slots = s->n_tasks, .volt = 1, .f_core = 1, .f_mem = 1};
    rt->system = (struct ws_policy_system){.types = &rt->type,
                                           .gpus = &rt->policy_gpu,
                                           .tasks = rt->policy_tasks,
                                           .n_types = 1,
                                           .n_gpus = 1,
                                           .n_tasks = s->n_tasks};
}

/* Reports a change of what the GPU was given. */
static void show_list(struct ws_rtsim *rt)
{
    if (!rt->observer || !rt->observer->list)
        return;
    memset(rt->listed, 0, (size_t)rt->set->n_tasks * sizeof(*rt->listed));
    for (int j = 0; j < rt->n_requests; j++)
        rt->listed[rt->jobs[j].task] = rt->jobs[j].state == WS_JOB_RUNNING;
    rt->observer->list(rt->observer->arg, rt->now, rt->listed);
}

static bool has_sms(const struct ws_rtsim *rt, int job)
{
    return rt->config.policy == WS_RTSIM_STGM && rt->jobs[job].part == WS_PART_KERNEL;
}

/* Its kernel is as long as it is on the SMs that it is given. Nobody else has them. */
static void give_sms(struct ws_rtsim *rt, int task, const struct ws_policy_decision *d)
{
    struct ws_rtsim_actor *a = &rt->actors[task];
    const struct ws_rtsim_step *s = step_of(rt, task);
    const int n_sm = (int)ws_sm_set_count(&d->sms);
    bool taken = n_sm < 1 || n_sm > rt->set->n_sms;
    for (int j = 0; j < rt->n_requests && !taken; j++)
        taken = j != d->job && has_sms(rt, j) && rt->jobs[j].state == WS_JOB_RUNNING &&
                ws_sm_set_meet(&rt->actors[rt->jobs[j].task].sms, &d->sms);
    if (taken) {
        rt->error = -EPROTO;
        return;
    }
    const int64_t *by_sms = rt->set->tasks[task].segments[s->segment].by_sms;
    a->sms = d->sms;
    if (!by_sms)
        return;
    a->gpu_most = by_sms[n_sm - 1];
    a->gpu_drawn = a->gpu_left = (a->gpu_drawn * a->gpu_most + s->length - 1) / s->length;
}

static bool carry_out(struct ws_rtsim *rt, const struct ws_policy_decision *d)
{
    if (d->kind == WS_DECIDE_TIMER) {
        int64_t at = (int64_t)(d->at * (double)rt->set->per_ms + 0.5);
        rt->timer = at > rt->now ? at : rt->now + 1;
        return false;
    }
    if (d->kind != WS_DECIDE_START && d->kind != WS_DECIDE_RESUME && d->kind != WS_DECIDE_PREEMPT)
        return false;
    if (d->job < 0 || d->job >= rt->n_requests) {
        rt->error = -EPROTO;
        return false;
    }
    struct ws_policy_job *job = &rt->jobs[d->job];
    job->gpu = 0;
    if (d->kind != WS_DECIDE_PREEMPT) {
        if (job->state == WS_JOB_WAITING)
            rt->actors[job->task].start = rt->now;
        if (has_sms(rt, d->job))
            give_sms(rt, job->task, d);
        job->state = WS_JOB_RUNNING;
    } else {
        job->state = WS_JOB_PREEMPTED;
    }
    return true;
}

/* What the kernel of the segment at which @task is still needs at most, in ms, on the SMs that it
 * has. *@ret_on_own: what that would be on those of its task. */
static double kernel_left_ms(const struct ws_rtsim *rt, int task, double *ret_on_own)
{
    const struct ws_rtsim_actor *a = &rt->actors[task];
    const int segment = a->steps[a->step].segment;
    *ret_on_own = 0;
    for (int k = a->step; k < a->n_steps && a->steps[k].segment == segment; k++)
        if (a->steps[k].kind == STEP_GPU) {
            double most = (double)(k == a->step ? a->gpu_most : a->steps[k].length);
            double left = k == a->step ? most - (double)(a->gpu_drawn - a->gpu_left) : most;
            *ret_on_own = left / most * (double)a->steps[k].length / (double)rt->set->per_ms;
            return left / (double)rt->set->per_ms;
        }
    return 0;
}

/* What @task is still to do on its core and on the GPU once the kernel at which it is has ended, in
 * ms. Calls that change the run list take an update each. */
static double after_kernel_ms(const struct ws_rtsim *rt, int task)
{
    const struct ws_rtsim_actor *a = &rt->actors[task];
    const int segment = a->steps[a->step].segment;
    int64_t sum = 0;
    for (int k = a->n_steps - 1; k > a->step; k--) {
        const struct ws_rtsim_step *s = &a->steps[k];
        if (s->kind == STEP_GPU && s->segment == segment)
            break;
        sum += s->kind == STEP_BEGIN || s->kind == STEP_END ? rt->set->epsilon : s->length;
    }
    return (double)sum / (double)rt->set->per_ms;
}

/* Brings what the policy sees of requests and slots up to date. Of a job's kernels, those of its
 * other segments are not asked for now, so that they count as done. */
static void look(struct ws_rtsim *rt, double now)
{
    int n = 0;
    for (int j = 0; j < rt->n_requests; j++) {
        struct ws_policy_job *job = &rt->jobs[j];
        double on_own, left = kernel_left_ms(rt, job->task, &on_own);
        job->done = on_own > 0 ? 1 - on_own / kernels_ms(rt, job->task, 0) : 1;
        job->after = after_kernel_ms(rt, job->task);
        if (job->state != WS_JOB_RUNNING || job->part != WS_PART_KERNEL)
            continue;
        const struct ws_sm_set *sms = &rt->actors[job->task].sms;
        rt->slots[n++] = (struct ws_policy_run){.job = j,
                                                .task = job->task,
                                                .sms = *sms,
                                                .n_sm = has_sms(rt, j) ? (int)ws_sm_set_count(sms)
                                                                       : rt->set->n_sms,
                                                .start = now,
                                                .gpu_start = now,
                                                .gpu_end = now + left,
                                                .end = now + left};
    }
    rt->gpu_state.n_running = n;
    for (int i = n; i < rt->set->n_tasks; i++)
        rt->slots[i] = (struct ws_policy_run){.job = -1};
}

/* Asks the policy. Return: whether something changed. */
bool ws_rtsim_ask(struct ws_rtsim *rt, const struct ws_policy_event *event)
{
    struct ws_policy_snapshot s = {.system = &rt->system,
                                   .now = (double)rt->now / (double)rt->set->per_ms,
                                   .gpus = &rt->gpu_state,
                                   .jobs = rt->jobs,
                                   .n_jobs = rt->n_requests,
                                   .explain = rt->observer && rt->observer->why};
    look(rt, s.now);
    rt->decisions.n = 0;
    rt->total.n_decisions++;
    int r = rt->ops->decide(rt->policy, &s, event, &rt->decisions);
    if (r < 0) {
        rt->error = r;
        return false;
    }
    bool changed = false;
    for (size_t i = 0; i < rt->decisions.n; i++) {
        const struct ws_policy_decision *d = &rt->decisions.v[i];
        changed |= carry_out(rt, d);
        if (s.explain && d->why[0])
            rt->observer->why(rt->observer->arg, rt->now, ws_decision_name(d->kind), d->why);
    }
    if (changed)
        show_list(rt);
    return changed;
}

bool ws_rtsim_request_open(struct ws_rtsim *rt, int task, enum ws_job_part part)
{
    uint64_t seq = ++rt->seq;
    rt->actors[task].come = rt->now;
    rt->actors[task].start = -1;
    rt->jobs[rt->n_requests++] = (struct ws_policy_job){
        .id = seq,
        .seq = seq,
        .part = part,
        .task = task,
        .state = WS_JOB_WAITING,
        .release = (double)rt->actors[task].release / (double)rt->set->per_ms,
        .deadline = rt->set->tasks[task].deadline > 0
                        ? (double)(rt->actors[task].release + rt->set->tasks[task].deadline) /
                              (double)rt->set->per_ms
                        : INFINITY,
        .gpu = -1};
    struct ws_policy_event e = {.kind = WS_EVENT_ARRIVAL,
                                .job = rt->n_requests - 1,
                                .task = task,
                                .gpu = -1,
                                .job_id = seq};
    return ws_rtsim_ask(rt, &e);
}

bool ws_rtsim_request_close(struct ws_rtsim *rt, int task)
{
    int j = request_of(rt, task);
    if (j < 0)
        return false;
    struct ws_policy_event e = {.kind = WS_EVENT_COMPLETION,
                                .job = -1,
                                .task = task,
                                .gpu = rt->jobs[j].gpu,
                                .job_id = rt->jobs[j].id};
    bool was_listed = rt->jobs[j].state == WS_JOB_RUNNING;
    if (rt->observer && rt->observer->request) {
        const struct ws_rtsim_actor *a = &rt->actors[task];
        rt->observer->request(rt->observer->arg, task, a->steps[a->step].segment,
                              (int)rt->jobs[j].part, a->come, a->start < 0 ? rt->now : a->start,
                              rt->now);
    }
    memmove(&rt->jobs[j], &rt->jobs[j + 1], sizeof(*rt->jobs) * (size_t)(rt->n_requests - j - 1));
    rt->n_requests--;
    if (was_listed)
        show_list(rt);
    return ws_rtsim_ask(rt, &e) || was_listed;
}

/* ---- copies ---- */

static bool gives_out_copies(const struct ws_rtsim *rt)
{
    return !strcmp(rt->ops->name, "stgm");
}

void ws_rtsim_copy_open(struct ws_rtsim *rt, int task, enum ws_job_part part)
{
    if (gives_out_copies(rt))
        ws_rtsim_request_open(rt, task, part);
    else
        rt->actors[task].copy_seq = ++rt->seq;
}

void ws_rtsim_copy_close(struct ws_rtsim *rt, int task)
{
    if (gives_out_copies(rt))
        ws_rtsim_request_close(rt, task);
    else
        rt->actors[task].copy_seq = 0;
}

bool ws_rtsim_may_copy(const struct ws_rtsim *rt, int task)
{
    bool first = true;
    if (gives_out_copies(rt))
        return is_listed(rt, task);
    for (int i = 0; i < rt->set->n_tasks && first; i++)
        first = !rt->actors[i].copy_seq || rt->actors[i].copy_seq >= rt->actors[task].copy_seq;
    return first;
}

// SPDX-License-Identifier: Apache-2.0
/* The real-time simulator.
 *
 * A task's job is a program of steps (struct step), the same for every job but for their lengths. The state of a job is the step
 * it is at and how it stands: it wants its core (READY), waits off it (ASLEEP), waits on it (SPIN), or is inside a run-list update
 * (UPDATE), which is not preempted. Time jumps from event to event:
 *
 *   1. advance() takes what passed off the running steps of cores and GPU;
 *   2. complete(): steps that came to their end, GPU work, copies; then releases;
 *   3. settle(): cores are given to the highest; steps that take no time (calls, locks, requests) are done one at a time, the
 *      lowest task number first - of those that want the run-list lock that is the highest priority - until nothing changes.
 *
 * Invariants: a core has at most one job; a boosted job is above all that are not; the run-list lock has one holder; the GPU does
 * nothing while its run list is being changed; requests stand in order of arrival in `jobs`, as the policy object sees them.
 * The GPU has two forms: a run list whose contexts take turns (rr, gcaps, locks: struct gpu), and SM sets, where every started
 * kernel runs at its own speed (stgm). */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "policy/policy.h"
#include "sim/random.h"
#include "sim/rtsim.h"

enum step_kind {
    STEP_CPU,
    STEP_BEGIN, /* gcaps: open the segment */
    STEP_END,   /* gcaps: close it */
    STEP_LOCK,
    STEP_UNLOCK,
    STEP_BOOST,
    STEP_UNBOOST,
    STEP_COPY_IN, /* the copy engine and the core, both for its length */
    STEP_COPY_OUT,
    STEP_GPU
};
struct step {
    enum step_kind kind;
    int segment;
    int64_t length;
};

enum state { IDLE, READY, ASLEEP, SPIN, UPDATE };
struct actor {
    struct step *steps;
    int n_steps;

    enum state state;
    int step;
    bool entered; /* the step's effect has been had (requests sent, lock asked for) */
    bool boosted;
    uint64_t boost_seq;
    int64_t left; /* of the step, on the core */
    int64_t gpu_left;
    bool on_gpu;  /* has work for the GPU */
    bool closing; /* gcaps, hold work: done, but the run list does not know yet */
    bool wants_lock;
    int64_t release;      /* of the current job */
    int64_t next_release; /* nominal */
    int64_t next_ready;   /* with jitter */
    int64_t come, start;  /* of its open request */
};

struct core {
    int task; /* -1: idle */
    int64_t since;
    enum ws_rtsim_span what;
};

struct gpu {
    int current, last; /* whose context is on it; was last */
    int64_t slice_left, switch_left;
    int64_t stalled_until;
    bool free_switch; /* the next switch is part of the update that was just paid */
};

struct ws_rtsim {
    const struct ws_rtsim_set *set;
    struct ws_rtsim_config config;
    const struct ws_policy_ops *ops;
    struct ws_policy *policy;
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu policy_gpu;
    struct ws_policy_system system;
    struct ws_policy_task *policy_tasks;
    struct ws_policy_job *jobs; /* open requests */
    int n_requests;
    uint64_t seq;
    struct ws_policy_run *slots;
    struct ws_policy_gpu_state gpu_state;
    struct ws_policy_decisions decisions;

    struct actor *actors;
    struct core *cores;
    int *chosen; /* of each core, in settle() */
    struct gpu gpu;
    int lock_holder; /* of the run list: task, -1 free, DAEMON */
    int64_t daemon_until;
    int64_t timer; /* of the policy; INT64_MAX: none */
    int64_t now, horizon;
    struct ws_random random;
    const struct ws_rtsim_scenario *scenario;
    const struct ws_rtsim_observer *observer;
    struct ws_rtsim_task_result *results;
    int64_t *core_busy;
    bool *listed;
    struct ws_rtsim_result total;
    int error;
};
enum { LOCK_FREE = -1, LOCK_DAEMON = -2 };

/* ---- sets ---- */
int ws_rtsim_set_init(struct ws_rtsim_set *s, int n_tasks)
{
    *s = (struct ws_rtsim_set){.n_tasks = n_tasks, .n_cores = 1, .n_sms = 1, .per_ms = 1000};
    s->tasks = ws_alloc_array(n_tasks > 0 ? (size_t)n_tasks : 1, sizeof(*s->tasks));
    if (!s->tasks) {
        s->n_tasks = 0;
        return -ENOMEM;
    }
    return 0;
}

int ws_rtsim_set_segments(struct ws_rtsim_set *s, int i, int n)
{
    struct ws_rtsim_task *t = &s->tasks[i];
    free(t->cpu);
    free(t->segments);
    t->n_segments = 0;
    t->cpu = ws_alloc_array((size_t)n + 1, sizeof(*t->cpu));
    t->segments = ws_alloc_array((size_t)n + 1, sizeof(*t->segments));
    if (!t->cpu || !t->segments)
        return -ENOMEM;
    t->n_segments = n;
    return 0;
}

void ws_rtsim_set_deinit(struct ws_rtsim_set *s)
{
    for (int i = 0; i < s->n_tasks; i++) {
        free(s->tasks[i].cpu);
        free(s->tasks[i].segments);
    }
    free(s->tasks);
    *s = WS_RTSIM_SET_NULL;
}

static bool in_time(int64_t t)
{
    return t >= 0 && t <= WS_RTSIM_TIME_MAX;
}

static const char *check_task(const struct ws_rtsim_set *s, int i, char *buf, size_t bytes)
{
    const struct ws_rtsim_task *t = &s->tasks[i];
    const char *what = NULL;
    if (t->core < 0 || t->core >= s->n_cores) {
        snprintf(buf, bytes, "tasks[%d]: core %d, but there are %d cores", i, t->core, s->n_cores);
        return buf;
    }
    if (t->period <= 0 || !in_time(t->period))
        what = "the period must be above 0";
    else if (!in_time(t->deadline) || !in_time(t->offset) || !in_time(t->jitter))
        what = "deadline, offset and jitter must not be negative";
    else if (t->n_segments < 0 || t->n_segments > WS_RTSIM_SEGMENTS_MAX || !t->cpu)
        what = "too many GPU segments";
    else if (t->best_effort < (i > 0 && s->tasks[i - 1].best_effort))
        what = "real-time after best effort: tasks must stand in decreasing priority";
    else if (i > 0 && !t->best_effort && !s->tasks[i - 1].best_effort &&
             t->priority > s->tasks[i - 1].priority)
        what = "tasks must stand in decreasing priority";
    int64_t total = 0;
    for (int k = 0; !what && k <= t->n_segments; k++) {
        struct ws_rtsim_segment none = {0};
        const struct ws_rtsim_segment *g = k < t->n_segments ? &t->segments[k] : &none;
        if (!in_time(t->cpu[k]) || !in_time(g->before) || !in_time(g->kernel) || !in_time(g->after))
            what = "times must not be negative";
        else
            total += t->cpu[k] + g->before + g->kernel + g->after;
        if (total > WS_RTSIM_TIME_MAX)
            what = "its times are too long";
    }
    if (!what && total == 0)
        what = "it has nothing to do";
    if (what)
        snprintf(buf, bytes, "tasks[%d]: %s", i, what);
    return what ? buf : NULL;
}

const char *ws_rtsim_check(const struct ws_rtsim_set *s, char *buf, size_t bytes)
{
    const char *what = NULL;
    if (s->n_tasks < 1 || s->n_tasks > WS_RTSIM_TASKS_MAX)
        what = "no tasks, or too many";
    else if (s->n_cores < 1 || s->n_cores > WS_RTSIM_CORES_MAX)
        what = "cores: from 1 to 256 are wanted";
    else if (s->n_sms < 1 || s->n_sms > WS_SM_MAX)
        what = "SMs: from 1 to 256 are wanted";
    else if (s->per_ms < 1)
        what = "units per ms must be above 0";
    else if (s->slice <= 0 || !in_time(s->slice))
        what = "the slice must be above 0";
    else if (!in_time(s->theta) || !in_time(s->epsilon))
        what = "overheads must not be negative";
    if (what) {
        snprintf(buf, bytes, "%s", what);
        return buf;
    }
    for (int i = 0; i < s->n_tasks; i++)
        if (check_task(s, i, buf, bytes))
            return buf;
    return NULL;
}

static const char *const policy_names[_WS_RTSIM_POLICY_N] = {[WS_RTSIM_RR] = "rr",
                                                             [WS_RTSIM_GCAPS] = "gcaps",
                                                             [WS_RTSIM_STGM] = "stgm",
                                                             [WS_RTSIM_MPCP] = "mpcp",
                                                             [WS_RTSIM_FMLP] = "fmlp+"};
static const char *const hold_names[_WS_RTSIM_HOLD_N] = {[WS_RTSIM_HOLD_WORK] = "work",
                                                         [WS_RTSIM_HOLD_COMMAND] = "command",
                                                         [WS_RTSIM_HOLD_CALLS] = "calls"};

const char *ws_rtsim_policy_name(enum ws_rtsim_policy p)
{
    return policy_names[p];
}

const char *ws_rtsim_hold_name(enum ws_rtsim_hold h)
{
    return hold_names[h];
}

static int find(const char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return i;
    return -1;
}

int ws_rtsim_policy_find(const char *name)
{
    return find(policy_names, _WS_RTSIM_POLICY_N, name);
}

int ws_rtsim_hold_find(const char *name)
{
    return find(hold_names, _WS_RTSIM_HOLD_N, name);
}

/* ---- the program of a task ---- */
static void add(struct actor *a, enum step_kind kind, int segment, int64_t length)
{
    a->steps[a->n_steps++] = (struct step){kind, segment, length};
}

/* A copy of nothing, or a kernel that takes no time, is no request. */
static void add_request(struct actor *a, enum step_kind kind, int segment, int64_t length)
{
    if (length > 0)
        add(a, kind, segment, length);
}

static void add_segment(const struct ws_rtsim *rt, struct actor *a, int k,
                        const struct ws_rtsim_segment *g)
{
    switch (rt->config.policy) {
    case WS_RTSIM_STGM:
        add(a, STEP_BOOST, k, 0);
        add_request(a, STEP_COPY_IN, k, g->before);
        add_request(a, STEP_GPU, k, g->kernel);
        add_request(a, STEP_COPY_OUT, k, g->after);
        add(a, STEP_UNBOOST, k, 0);
        return;
    case WS_RTSIM_MPCP:
    case WS_RTSIM_FMLP:
        add(a, STEP_LOCK, k, 0);
        add(a, STEP_CPU, k, g->before);
        add(a, STEP_GPU, k, g->kernel);
        add(a, STEP_CPU, k, g->after);
        add(a, STEP_UNLOCK, k, 0);
        return;
    case WS_RTSIM_GCAPS:
        if (rt->config.hold == WS_RTSIM_HOLD_CALLS)
            add(a, STEP_BEGIN, k, 0);
        add(a, STEP_CPU, k, g->before);
        if (rt->config.hold != WS_RTSIM_HOLD_CALLS)
            add(a, STEP_BEGIN, k, 0);
        add(a, STEP_GPU, k, g->kernel);
        if (rt->config.hold ==
            WS_RTSIM_HOLD_WORK) /* the daemon closes; the call itself costs as much */
            add(a, STEP_CPU, k, rt->set->epsilon);
        else
            add(a, STEP_END, k, 0);
        add(a, STEP_CPU, k, g->after);
        return;
    default:
        add(a, STEP_CPU, k, g->before);
        add(a, STEP_GPU, k, g->kernel);
        add(a, STEP_CPU, k, g->after);
    }
}

static int make_program(struct ws_rtsim *rt, int i)
{
    const struct ws_rtsim_task *t = &rt->set->tasks[i];
    struct actor *a = &rt->actors[i];
    a->steps = ws_alloc_array((size_t)t->n_segments * 6 + 2, sizeof(*a->steps));
    if (!a->steps)
        return -ENOMEM;
    for (int k = 0; k <= t->n_segments; k++) {
        if (t->cpu[k] > 0)
            add(a, STEP_CPU, -1, t->cpu[k]);
        if (k < t->n_segments)
            add_segment(rt, a, k, &t->segments[k]);
    }
    return 0;
}

/* ---- the policy object ---- */
static const char *policy_object(const struct ws_rtsim_config *c)
{
    static const char *const names[_WS_RTSIM_POLICY_N] = {[WS_RTSIM_RR] = "rr",
                                                          [WS_RTSIM_GCAPS] = "gcaps",
                                                          [WS_RTSIM_STGM] = "stgm",
                                                          [WS_RTSIM_MPCP] = "fifo",
                                                          [WS_RTSIM_FMLP] = "fifo"};
    return c->policy_name ? c->policy_name : names[c->policy];
}

static int make_policy(struct ws_rtsim *rt)
{
    static const char *const rr[] = {"slice=0", NULL}, *const mpcp[] = {"order=priority", NULL};
    const char *const *options = rt->config.policy_options;
    if (!options && !rt->config.policy_name)
        options = rt->config.policy == WS_RTSIM_RR     ? rr
                  : rt->config.policy == WS_RTSIM_MPCP ? mpcp
                                                       : NULL;
    char error[200];
    rt->ops = ws_policy_find(policy_object(&rt->config));
    if (!rt->ops)
        return -ENOENT;
    int r = rt->ops->make(&rt->policy, options, error, sizeof(error));
    return r > 0 ? -EINVAL : r;
}

static void describe(struct ws_rtsim *rt)
{
    const struct ws_rtsim_set *s = rt->set;
    double per_ms = (double)s->per_ms;
    rt->type = (struct ws_policy_gpu_type){.name = "gpu",
                                           .n_sm = s->n_sms,
                                           .switch_ms = (double)s->theta / per_ms,
                                           .update_ms = (double)s->epsilon / per_ms};
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
        };
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

int ws_rtsim_new(struct ws_rtsim **ret, const struct ws_rtsim_set *set,
                 const struct ws_rtsim_config *config)
{
    char why[128];
    if (ws_rtsim_check(set, why, sizeof(why)))
        return -EINVAL;
    struct ws_rtsim *rt = ws_alloc(sizeof(*rt));
    if (!rt)
        return -ENOMEM;
    size_t n = (size_t)set->n_tasks;
    rt->set = set;
    rt->config = *config;
    rt->actors = ws_alloc_array(n, sizeof(*rt->actors));
    rt->cores = ws_alloc_array((size_t)set->n_cores, sizeof(*rt->cores));
    rt->chosen = ws_alloc_array((size_t)set->n_cores, sizeof(*rt->chosen));
    rt->core_busy = ws_alloc_array((size_t)set->n_cores, sizeof(*rt->core_busy));
    rt->results = ws_alloc_array(n, sizeof(*rt->results));
    rt->listed = ws_alloc_array(n, sizeof(*rt->listed));
    rt->jobs = ws_alloc_array(n, sizeof(*rt->jobs));
    rt->slots = ws_alloc_array(n, sizeof(*rt->slots));
    rt->policy_tasks = ws_alloc_array(n, sizeof(*rt->policy_tasks));
    int r = rt->actors && rt->cores && rt->chosen && rt->core_busy && rt->results && rt->listed &&
                    rt->jobs && rt->slots && rt->policy_tasks
                ? 0
                : -ENOMEM;
    for (size_t i = 0; i < n && !r; i++)
        r = make_program(rt, (int)i);
    if (!r)
        r = make_policy(rt);
    if (r) {
        ws_rtsim_free(rt);
        return r;
    }
    describe(rt);
    *ret = rt;
    return 0;
}

struct ws_rtsim *ws_rtsim_free(struct ws_rtsim *rt)
{
    if (!rt)
        return NULL;
    for (int i = 0; rt->actors && i < rt->set->n_tasks; i++)
        free(rt->actors[i].steps);
    if (rt->policy)
        rt->ops->free(rt->policy);
    ws_policy_decisions_deinit(&rt->decisions);
    free(rt->actors);
    free(rt->cores);
    free(rt->chosen);
    free(rt->core_busy);
    free(rt->results);
    free(rt->listed);
    free(rt->jobs);
    free(rt->slots);
    free(rt->policy_tasks);
    free(rt);
    return NULL;
}

/* ---- requests ---- */
static int request_of(const struct ws_rtsim *rt, int task)
{
    for (int j = 0; j < rt->n_requests; j++)
        if (rt->jobs[j].task == task)
            return j;
    return -1;
}

static bool is_listed(const struct ws_rtsim *rt, int task)
{
    int j = request_of(rt, task);
    return j >= 0 && rt->jobs[j].state == WS_JOB_RUNNING;
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
        job->state = WS_JOB_RUNNING;
    } else {
        job->state = WS_JOB_PREEMPTED;
    }
    return true;
}

/* Asks the policy. Return: whether something changed. */
static bool ask(struct ws_rtsim *rt, const struct ws_policy_event *event)
{
    struct ws_policy_snapshot s = {.system = &rt->system,
                                   .now = (double)rt->now / (double)rt->set->per_ms,
                                   .gpus = &rt->gpu_state,
                                   .jobs = rt->jobs,
                                   .n_jobs = rt->n_requests,
                                   .explain = rt->observer && rt->observer->why};
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

static bool open_request(struct ws_rtsim *rt, int task, enum ws_job_part part)
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
        .deadline = (double)(rt->actors[task].release + rt->set->tasks[task].deadline) /
                    (double)rt->set->per_ms,
        .gpu = -1};
    struct ws_policy_event e = {.kind = WS_EVENT_ARRIVAL,
                                .job = rt->n_requests - 1,
                                .task = task,
                                .gpu = -1,
                                .job_id = seq};
    return ask(rt, &e);
}

static bool close_request(struct ws_rtsim *rt, int task)
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
        const struct actor *a = &rt->actors[task];
        rt->observer->request(rt->observer->arg, task, a->steps[a->step].segment,
                              (int)rt->jobs[j].part, a->come, a->start < 0 ? rt->now : a->start,
                              rt->now);
    }
    memmove(&rt->jobs[j], &rt->jobs[j + 1], sizeof(*rt->jobs) * (size_t)(rt->n_requests - j - 1));
    rt->n_requests--;
    if (was_listed)
        show_list(rt);
    return ask(rt, &e) || was_listed;
}

/* ---- steps ---- */
static const struct step *step_of(const struct ws_rtsim *rt, int i)
{
    return &rt->actors[i].steps[rt->actors[i].step];
}

static int64_t drawn(struct ws_rtsim *rt, int64_t length)
{
    int low = rt->scenario->exec_permille;
    if (low >= 1000 || length == 0)
        return length;
    int64_t share = ws_random_integer(&rt->random, low, 1000);
    return (length * share + 999) / 1000;
}

/* Comes to its step: wants the core, unless it is one that needs none. */
static void enter(struct ws_rtsim *rt, int i)
{
    struct actor *a = &rt->actors[i];
    const struct step *s = step_of(rt, i);
    a->entered = false;
    a->state = READY;
    a->left = s->kind == STEP_CPU || s->kind == STEP_COPY_IN || s->kind == STEP_COPY_OUT
                  ? drawn(rt, s->length)
                  : 0;
    a->gpu_left = s->kind == STEP_GPU ? drawn(rt, s->length) : 0;
}

static void start_job(struct ws_rtsim *rt, int i)
{
    struct actor *a = &rt->actors[i];
    const struct ws_rtsim_task *t = &rt->set->tasks[i];
    a->release = a->next_release;
    int64_t late =
        rt->scenario->slack_permille
            ? ws_random_integer(&rt->random, 0, t->period * rt->scenario->slack_permille / 1000)
            : 0;
    a->next_release += t->period + late;
    a->next_ready =
        a->next_release + (t->jitter ? ws_random_integer(&rt->random, 0, t->jitter) : 0);
    a->step = 0;
    enter(rt, i);
}

static void count_response(struct ws_rtsim *rt, int i, int64_t response, bool finished)
{
    struct ws_rtsim_task_result *r = &rt->results[i];
    int64_t deadline = rt->set->tasks[i].deadline;
    bool missed = deadline > 0 && response > deadline;
    if (!finished && !missed)
        return;
    r->n_jobs++;
    rt->total.n_jobs++;
    r->n_missed += missed;
    if (finished) {
        r->n_finished++;
        r->sum += response;
    }
    if (response > r->worst) {
        r->worst = response;
        r->worst_release = rt->actors[i].release;
    }
}

static void next_step(struct ws_rtsim *rt, int i)
{
    struct actor *a = &rt->actors[i];
    if (++a->step < a->n_steps) {
        enter(rt, i);
        return;
    }
    a->state = IDLE;
    count_response(rt, i, rt->now - a->release, true);
    if (rt->observer && rt->observer->job)
        rt->observer->job(rt->observer->arg, i, a->release, rt->now);
    if (a->next_ready <= rt->now)
        start_job(rt, i);
}

static void wait_off_core(struct ws_rtsim *rt, int i)
{
    rt->actors[i].state = rt->config.busy ? SPIN : ASLEEP;
}

/* The run list changed, or not, by a call of task @i, which holds its lock. */
static void update(struct ws_rtsim *rt, int i, bool changed)
{
    struct actor *a = &rt->actors[i];
    if (!changed || rt->set->epsilon == 0) {
        next_step(rt, i);
        return;
    }
    a->state = UPDATE;
    a->left = rt->set->epsilon;
    a->entered = true;
    rt->lock_holder = i;
    rt->gpu.stalled_until = rt->now + rt->set->epsilon;
    rt->gpu.current = -1;
    rt->gpu.switch_left = 0;
    rt->gpu.free_switch = true;
}

static void wake_lock_waiters(struct ws_rtsim *rt)
{
    rt->lock_holder = LOCK_FREE;
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].wants_lock) {
            rt->actors[i].wants_lock = false;
            rt->actors[i].state = READY;
        }
}

/* gcaps, hold work: the daemon sees that the work of task @i is done. */
static void hand_on(struct ws_rtsim *rt, int i)
{
    rt->actors[i].closing = false;
    if (!close_request(rt, i) || rt->set->epsilon == 0)
        return;
    rt->lock_holder = LOCK_DAEMON;
    rt->daemon_until = rt->now + rt->set->epsilon;
    rt->gpu.stalled_until = rt->daemon_until;
    rt->gpu.current = -1;
    rt->gpu.switch_left = 0;
    rt->gpu.free_switch = true;
    if (rt->observer && rt->observer->span)
        rt->observer->span(rt->observer->arg, WS_RTSIM_SPAN_UPDATE, -1, i, rt->now,
                           rt->daemon_until);
}

/* The GPU work of @i is done. */
static void gpu_done(struct ws_rtsim *rt, int i)
{
    struct actor *a = &rt->actors[i];
    a->on_gpu = false;
    if (rt->config.policy == WS_RTSIM_GCAPS)
        a->closing = rt->config.hold == WS_RTSIM_HOLD_WORK;
    else if (rt->config.policy == WS_RTSIM_RR || rt->config.policy == WS_RTSIM_STGM)
        close_request(rt, i);
    next_step(rt, i);
}

/* Whether @i has something to do now that takes no time of its own; @on_core: it has its core. */
static bool can_act(const struct ws_rtsim *rt, int i, bool on_core)
{
    const struct actor *a = &rt->actors[i];
    if (a->state != READY || a->entered)
        return false;
    switch (step_of(rt, i)->kind) {
    case STEP_CPU:
        return a->left == 0;
    case STEP_GPU:
    case STEP_COPY_IN:
    case STEP_COPY_OUT:
        return true;
    default:
        return on_core;
    }
}

static void act(struct ws_rtsim *rt, int i)
{
    struct actor *a = &rt->actors[i];
    const struct step *s = step_of(rt, i);
    switch (s->kind) {
    case STEP_CPU:
        next_step(rt, i);
        return;
    case STEP_BEGIN:
    case STEP_END:
        if (rt->lock_holder != LOCK_FREE) {
            a->wants_lock = true;
            a->state = ASLEEP;
            return;
        }
        update(rt, i,
               s->kind == STEP_BEGIN ? open_request(rt, i, WS_PART_KERNEL) : close_request(rt, i));
        return;
    case STEP_LOCK:
        a->entered = true;
        a->state = ASLEEP;
        open_request(rt, i, WS_PART_KERNEL);
        return;
    case STEP_UNLOCK:
        a->boosted = false;
        close_request(rt, i);
        next_step(rt, i);
        return;
    case STEP_BOOST:
        a->boosted = rt->ops->boost;
        a->boost_seq = ++rt->seq;
        next_step(rt, i);
        return;
    case STEP_UNBOOST:
        a->boosted = false;
        next_step(rt, i);
        return;
    case STEP_COPY_IN:
    case STEP_COPY_OUT:
        a->entered = true;
        wait_off_core(rt, i);
        open_request(rt, i, s->kind == STEP_COPY_IN ? WS_PART_COPY_IN : WS_PART_COPY_OUT);
        return;
    case STEP_GPU:
        a->entered = true;
        a->on_gpu = true;
        wait_off_core(rt, i);
        if (rt->config.policy == WS_RTSIM_RR || rt->config.policy == WS_RTSIM_STGM)
            open_request(rt, i, WS_PART_KERNEL);
        return;
    }
}

/* Requests that were granted: the lock, the copy engine; and kernels of no length. */
static bool grant(struct ws_rtsim *rt, int i)
{
    struct actor *a = &rt->actors[i];
    if ((a->state != ASLEEP && a->state != SPIN) || !a->entered || a->wants_lock)
        return false;
    const struct step *s = step_of(rt, i);
    switch (s->kind) {
    case STEP_LOCK:
        if (!is_listed(rt, i))
            return false;
        a->boosted = true;
        a->boost_seq = ++rt->seq;
        next_step(rt, i);
        return true;
    case STEP_COPY_IN:
    case STEP_COPY_OUT:
        if (!is_listed(rt, i))
            return false;
        if (a->left == 0) {
            close_request(rt, i);
            next_step(rt, i);
            return true;
        }
        a->state = READY;
        return true;
    case STEP_GPU:
        if (a->gpu_left > 0 || (rt->config.policy != WS_RTSIM_GCAPS && !is_listed(rt, i)))
            return false;
        gpu_done(rt, i);
        return true;
    default:
        return false;
    }
}

/* ---- cores ---- */
static bool wants_core(const struct actor *a)
{
    return a->state == READY || a->state == SPIN || a->state == UPDATE;
}

/* Whether @a goes before @b on their core; @b has it now or comes first in the set. */
static bool goes_before(const struct ws_rtsim *rt, int a, int b)
{
    const struct actor *x = &rt->actors[a], *y = &rt->actors[b];
    if ((x->state == UPDATE) != (y->state == UPDATE))
        return x->state == UPDATE;
    if (x->boosted != y->boosted)
        return x->boosted;
    if (x->boosted)
        return x->boost_seq < y->boost_seq;
    const struct ws_rtsim_task *t = &rt->set->tasks[a], *u = &rt->set->tasks[b];
    if (t->best_effort != u->best_effort)
        return u->best_effort;
    if (t->best_effort)
        return x->release < y->release;
    return t->priority != u->priority ? t->priority > u->priority : x->release < y->release;
}

static void choose(struct ws_rtsim *rt)
{
    for (int c = 0; c < rt->set->n_cores; c++) {
        int t = rt->cores[c].task;
        rt->chosen[c] = t >= 0 && wants_core(&rt->actors[t]) ? t : -1;
    }
    for (int i = 0; i < rt->set->n_tasks; i++) {
        int c = rt->set->tasks[i].core;
        if (wants_core(&rt->actors[i]) && rt->chosen[c] != i &&
            (rt->chosen[c] < 0 || goes_before(rt, i, rt->chosen[c])))
            rt->chosen[c] = i;
    }
}

static enum ws_rtsim_span span_of(const struct ws_rtsim *rt, int i)
{
    const struct actor *a = &rt->actors[i];
    if (a->state == SPIN)
        return WS_RTSIM_SPAN_SPIN;
    if (a->state == UPDATE)
        return WS_RTSIM_SPAN_UPDATE;
    enum step_kind k = step_of(rt, i)->kind;
    return k == STEP_COPY_IN || k == STEP_COPY_OUT ? WS_RTSIM_SPAN_COPY : WS_RTSIM_SPAN_CPU;
}

static void flush_core(struct ws_rtsim *rt, int c)
{
    struct core *core = &rt->cores[c];
    if (core->task >= 0 && core->since < rt->now && rt->observer && rt->observer->span)
        rt->observer->span(rt->observer->arg, core->what, c, core->task, core->since, rt->now);
    core->since = rt->now;
}

/* The cores are the chosen ones' from now on. */
static void dispatch(struct ws_rtsim *rt)
{
    for (int c = 0; c < rt->set->n_cores; c++) {
        int i = rt->chosen[c];
        enum ws_rtsim_span what = i >= 0 ? span_of(rt, i) : WS_RTSIM_SPAN_CPU;
        if (i == rt->cores[c].task && what == rt->cores[c].what)
            continue;
        flush_core(rt, c);
        rt->cores[c].task = i;
        rt->cores[c].what = what;
    }
}

/* Does one thing that takes no time. Return: false if there is none. */
static bool settle_one(struct ws_rtsim *rt)
{
    choose(rt);
    for (int i = 0; i < rt->set->n_tasks; i++) {
        if (rt->actors[i].closing && rt->lock_holder == LOCK_FREE) {
            hand_on(rt, i);
            return true;
        }
        if (rt->actors[i].state == IDLE)
            continue;
        if (grant(rt, i))
            return true;
        if (can_act(rt, i, rt->chosen[rt->set->tasks[i].core] == i)) {
            act(rt, i);
            return true;
        }
    }
    return false;
}

/* ---- the GPU ---- */
static bool has_work(const struct ws_rtsim *rt, int i)
{
    return rt->actors[i].on_gpu && rt->actors[i].gpu_left > 0 && is_listed(rt, i);
}

static int n_working(const struct ws_rtsim *rt)
{
    int n = 0;
    for (int j = 0; j < rt->n_requests; j++)
        n += rt->jobs[j].state == WS_JOB_RUNNING && rt->actors[rt->jobs[j].task].on_gpu &&
             rt->actors[rt->jobs[j].task].gpu_left > 0;
    return n;
}

static int64_t switch_cost(struct ws_rtsim *rt, int to)
{
    bool free_switch = rt->gpu.free_switch;
    rt->gpu.free_switch = false;
    if (to == rt->gpu.last || rt->gpu.last < 0 || free_switch) /* the first context is there */
        return 0;
    return rt->config.policy == WS_RTSIM_RR || rt->config.policy == WS_RTSIM_GCAPS ? rt->set->theta
                                                                                   : 0;
}

/* Whose turn it is. */
static void choose_context(struct ws_rtsim *rt)
{
    struct gpu *g = &rt->gpu;
    if (rt->config.policy == WS_RTSIM_STGM || rt->now < g->stalled_until)
        return;
    int n = n_working(rt);
    if (g->current >= 0 && has_work(rt, g->current)) {
        if (g->slice_left <= 0 && n == 1)
            g->slice_left = rt->set->slice;
        if (g->slice_left > 0)
            return;
    }
    int from = g->current >= 0 ? g->current : g->last;
    g->current = -1;
    g->switch_left = 0;
    for (int k = 1; n && k <= rt->set->n_tasks; k++) {
        int i = (from + k + rt->set->n_tasks) % rt->set->n_tasks;
        if (!has_work(rt, i))
            continue;
        g->current = i;
        g->switch_left = switch_cost(rt, i);
        g->slice_left = rt->set->slice;
        g->last = i;
        return;
    }
}

static int64_t next_gpu_event(const struct ws_rtsim *rt)
{
    const struct gpu *g = &rt->gpu;
    int64_t next = INT64_MAX;
    if (rt->config.policy == WS_RTSIM_STGM) {
        for (int j = 0; j < rt->n_requests; j++) {
            int i = rt->jobs[j].task;
            if (has_work(rt, i))
                next = WS_MIN(next, rt->now + rt->actors[i].gpu_left);
        }
        return next;
    }
    if (rt->now < g->stalled_until)
        return g->stalled_until;
    if (g->current < 0)
        return next;
    if (g->switch_left > 0)
        return rt->now + g->switch_left;
    next = rt->now + rt->actors[g->current].gpu_left;
    return n_working(rt) > 1 ? WS_MIN(next, rt->now + g->slice_left) : next;
}

static void gpu_span(struct ws_rtsim *rt, enum ws_rtsim_span what, int i, int64_t dt)
{
    if (rt->observer && rt->observer->span)
        rt->observer->span(rt->observer->arg, what, -1, i, rt->now, rt->now + dt);
}

static void advance_gpu(struct ws_rtsim *rt, int64_t dt)
{
    struct gpu *g = &rt->gpu;
    if (rt->config.policy == WS_RTSIM_STGM) {
        bool any = false;
        for (int j = 0; j < rt->n_requests; j++)
            if (has_work(rt, rt->jobs[j].task)) {
                rt->actors[rt->jobs[j].task].gpu_left -= dt;
                gpu_span(rt, WS_RTSIM_SPAN_GPU, rt->jobs[j].task, dt);
                any = true;
            }
        rt->total.gpu_busy += any ? dt : 0;
        return;
    }
    if (rt->now < g->stalled_until) {
        rt->total.gpu_updating += dt;
    } else if (g->current >= 0 && g->switch_left > 0) {
        g->switch_left -= dt;
        rt->total.gpu_switching += dt;
        gpu_span(rt, WS_RTSIM_SPAN_SWITCH, g->current, dt);
    } else if (g->current >= 0) {
        rt->actors[g->current].gpu_left -= dt;
        rt->total.gpu_busy += dt;
        gpu_span(rt, WS_RTSIM_SPAN_GPU, g->current, dt);
        g->slice_left -= dt;
        if (g->slice_left <= 0 && n_working(rt) <= 1) /* alone, its slices follow each other */
            g->slice_left += (-g->slice_left / rt->set->slice + 1) * rt->set->slice;
    }
}

/* ---- time ---- */
static int64_t next_event(const struct ws_rtsim *rt)
{
    int64_t next = next_gpu_event(rt);
    for (int c = 0; c < rt->set->n_cores; c++) {
        int i = rt->cores[c].task;
        if (i < 0 || rt->actors[i].state == SPIN)
            continue;
        if (rt->actors[i].left > 0)
            next = WS_MIN(next, rt->now + rt->actors[i].left);
    }
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].state == IDLE)
            next = WS_MIN(next, WS_MAX(rt->actors[i].next_ready, rt->now));
    if (rt->lock_holder == LOCK_DAEMON)
        next = WS_MIN(next, rt->daemon_until);
    return WS_MIN(next, rt->timer);
}

static void advance(struct ws_rtsim *rt, int64_t dt)
{
    advance_gpu(rt, dt);
    for (int c = 0; c < rt->set->n_cores; c++) {
        int i = rt->cores[c].task;
        if (i < 0)
            continue;
        rt->core_busy[c] += dt;
        if (rt->actors[i].state != SPIN)
            rt->actors[i].left -= dt;
        if (rt->cores[c].what == WS_RTSIM_SPAN_COPY)
            rt->total.copying += dt;
    }
    rt->now += dt;
}

/* What came to its end at this moment. First all that gives something back, then who goes on. */
static void complete(struct ws_rtsim *rt)
{
    if (rt->lock_holder == LOCK_DAEMON && rt->daemon_until <= rt->now)
        wake_lock_waiters(rt);
    for (int c = 0; c < rt->set->n_cores; c++) {
        int i = rt->cores[c].task;
        if (i < 0 || rt->actors[i].state == SPIN || rt->actors[i].left > 0)
            continue;
        struct actor *a = &rt->actors[i];
        if (a->state == UPDATE) {
            wake_lock_waiters(rt);
            next_step(rt, i);
        } else if (a->state == READY) {
            enum step_kind k = step_of(rt, i)->kind;
            if (k == STEP_COPY_IN || k == STEP_COPY_OUT) {
                if (!a->entered) /* it has only just come to this step */
                    continue;
                close_request(rt, i);
            }
            if (k == STEP_CPU || k == STEP_COPY_IN || k == STEP_COPY_OUT)
                next_step(rt, i);
        }
    }
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].on_gpu && rt->actors[i].gpu_left == 0 && is_listed(rt, i) &&
            rt->actors[i].entered)
            gpu_done(rt, i);
    if (rt->timer <= rt->now) {
        rt->timer = INT64_MAX;
        struct ws_policy_event e = {.kind = WS_EVENT_TIMER, .job = -1, .task = -1, .gpu = -1};
        ask(rt, &e);
    }
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].state == IDLE && rt->actors[i].next_ready <= rt->now)
            start_job(rt, i);
}

static int reset(struct ws_rtsim *rt, const struct ws_rtsim_scenario *scenario,
                 const struct ws_rtsim_observer *observer)
{
    const struct ws_rtsim_set *s = rt->set;
    rt->scenario = scenario;
    rt->observer = observer;
    rt->now = 0;
    rt->timer = INT64_MAX;
    rt->n_requests = 0;
    rt->seq = 0;
    rt->error = 0;
    rt->lock_holder = LOCK_FREE;
    rt->gpu = (struct gpu){.current = -1, .last = -1};
    rt->total = (struct ws_rtsim_result){.tasks = rt->results, .core_busy = rt->core_busy};
    memset(rt->results, 0, (size_t)s->n_tasks * sizeof(*rt->results));
    memset(rt->core_busy, 0, (size_t)s->n_cores * sizeof(*rt->core_busy));
    ws_random_init(&rt->random, scenario->seed);
    for (int c = 0; c < s->n_cores; c++)
        rt->cores[c] = (struct core){.task = -1};
    for (int i = 0; i < s->n_tasks; i++) {
        struct actor *a = &rt->actors[i];
        *a = (struct actor){.steps = a->steps, .n_steps = a->n_steps};
        a->next_release = scenario->offsets ? scenario->offsets[i] : s->tasks[i].offset;
        a->next_ready =
            a->next_release +
            (s->tasks[i].jitter ? ws_random_integer(&rt->random, 0, s->tasks[i].jitter) : 0);
    }
    char why[160];
    int r = rt->ops->prepare ? rt->ops->prepare(rt->policy, &rt->system, why, sizeof(why)) : 0;
    return r > 0 ? -EINVAL : r;
}

int ws_rtsim_run(struct ws_rtsim *rt, const struct ws_rtsim_scenario *scenario,
                 const struct ws_rtsim_observer *observer, struct ws_rtsim_result *ret)
{
    int r = reset(rt, scenario, observer);
    if (r)
        return r;
    while (!rt->error) {
        complete(rt);
        while (!rt->error && settle_one(rt))
            ;
        dispatch(rt);
        choose_context(rt);
        int64_t next = next_event(rt);
        if (next > scenario->horizon) {
            if (rt->now < scenario->horizon)
                advance(rt, scenario->horizon - rt->now);
            break;
        }
        rt->total.n_events++;
        advance(rt, next - rt->now);
    }
    for (int c = 0; c < rt->set->n_cores; c++)
        flush_core(rt, c);
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].state != IDLE)
            count_response(rt, i, rt->now - rt->actors[i].release, false);
    rt->total.end = rt->now;
    *ret = rt->total;
    return rt->error;
}

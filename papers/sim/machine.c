// SPDX-License-Identifier: Apache-2.0
/* The machine: jobs, slots of GPUs, and the two clocks.
 *
 * One turn of either clock ends the jobs that end now, drops those that are too late, releases
 * those that are due, asks the policy, carries out its decisions, and accounts power until the
 * next turn. The clocks differ in when the next turn is (run_events(), run_ticks()), in what
 * "ends now" means, and in how power is summed.
 *
 * m->jobs is what policies see: all jobs that are released and not over, by arrival. A slot
 * names its job by its place there, which changes when an earlier job leaves; remove_job() then
 * adjusts the slots. m->stages has what policies do not see of a slot.
 *
 * If a GPU has copy engines (n_copy_engines > 0), each copy takes the engine that is free first;
 * otherwise copies do not wait for one another. To preempt a job holds its slot until the
 * blocks that run have ended (policy/stop.h), and for update_ms; to resume it costs switch_ms +
 * update_ms before its kernel continues. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/minmax.h"
#include "papers/sim/machine.h"
#include "policy/clocks.h"
#include "policy/stop.h"

enum stage { FREE, COPY_IN, KERNEL, COPY_OUT, TAKING_OFF };
struct stage_state {
    enum stage stage;
    double until;        /* end of the stage */
    double kernel_ms;    /* of the whole kernel, at this SM count */
    double longest_ms;   /* the same as predicted */
    double kernel_from;  /* when this part of it began */
    double dyn_w_per_sm; /* at the clocks with which it was started */
    bool leaves;         /* it is taken off at the end of this stage, a kernel's */
    uint64_t order;      /* of its start among all */
};
struct release {
    double at, nominal; /* nominal: without its jitter */
    int task;
};
struct cpu_run {
    uint64_t job;
    double end;
};

struct machine {
    const struct ws_policy_system *sys;
    const struct ws_policy_ops *ops;
    struct ws_policy *policy;
    const struct ws_machine_options *o;
    struct ws_machine_result *res;
    double now;
    struct ws_policy_job *jobs;
    size_t n_jobs, cap_jobs;
    uint64_t n_seq, n_starts;
    struct ws_policy_gpu_state *gpus;
    struct ws_policy_run *runs;
    struct stage_state *stages;
    int *first; /* [n_gpus + 1] into runs and stages */
    double *engine_free, *power_w;
    int *first_engine;
    double *shares;           /* of all jobs of scripts, by seq */
    struct release *releases; /* heap, one for each task that releases again */
    int n_releases;
    struct ws_policy_decisions decisions;
    double timer;         /* INFINITY: none */
    double cpu_free_at;   /* the host's processor takes one job after another */
    double next_deadline; /* no ready job's is earlier */
    int n_waiting;
    bool power_changed;
};

const char *ws_machine_event_name(enum ws_machine_event_kind k)
{
    static const char *const names[_WS_MACHINE_EVENT_N] = {
        [WS_MACHINE_RELEASE] = "release", [WS_MACHINE_START] = "start",
        [WS_MACHINE_DONE] = "done",       [WS_MACHINE_LATE] = "late",
        [WS_MACHINE_SKIP] = "skip",       [WS_MACHINE_PREEMPT] = "preempt",
        [WS_MACHINE_RESUME] = "resume",   [WS_MACHINE_CPU] = "cpu",
        [WS_MACHINE_POWER] = "power"};
    return (unsigned)k < _WS_MACHINE_EVENT_N ? names[k] : "?";
}

void ws_machine_result_deinit(struct ws_machine_result *r)
{
    free(r->released);
    free(r->missed);
    free(r->started);
    free(r->worst_response);
    *r = (struct ws_machine_result){0};
}

static bool ticks(const struct machine *m)
{
    return m->o->tick > 0;
}

static void tell(struct machine *m, enum ws_machine_event_kind kind, const struct ws_policy_job *j,
                 int gpu, int slot, const struct ws_policy_run *run, const char *why)
{
    if (!m->o->event)
        return;
    struct ws_machine_event e = {.kind = kind,
                                 .t = m->now,
                                 .task = j->task,
                                 .gpu = gpu,
                                 .slot = slot,
                                 .job = j->id,
                                 .release = j->release,
                                 .deadline = j->deadline,
                                 .run = run,
                                 .why = why};
    m->o->event(m->o->arg, &e);
}

/* In [0, 1), the same for the same numbers. */
static double drawn(uint64_t seed, uint64_t i)
{
    uint64_t x = seed + (i + 1) * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return ldexp((double)((x ^ x >> 31) >> 11), -53);
}

/* ---- releases: a heap by time and task ---- */

static bool sooner(const void *arg, const struct release *a, const struct release *b)
{
    (void)arg;
    return a->at < b->at || (a->at <= b->at && a->task < b->task);
}

WS_HEAP(release_heap, struct release, const void *, sooner)

/* ---- jobs ---- */

static double absolute_deadline(const struct ws_policy_task *t, double release)
{
    return t->deadline > 0 ? release + t->deadline : INFINITY;
}

static int add_job(struct machine *m, int task)
{
    void *v = m->jobs;
    if (ws_grow(&v, &m->cap_jobs, m->n_jobs + 1, sizeof(*m->jobs)))
        return ws_raise(-ENOMEM);
    m->jobs = v;
    struct ws_policy_job *j = &m->jobs[m->n_jobs++];
    *j = (struct ws_policy_job){.id = m->n_seq,
                                .seq = m->n_seq,
                                .task = task,
                                .state = WS_JOB_WAITING,
                                .release = m->now,
                                .deadline = absolute_deadline(&m->sys->tasks[task], m->now),
                                .gpu = -1};
    if (m->o->scripts)
        m->shares[m->n_seq] = m->o->scripts[task].jobs[m->res->released[task]].share;
    m->n_seq++;
    m->n_waiting++;
    m->next_deadline = ws_lesser(m->next_deadline, j->deadline);
    m->res->n_released++;
    m->res->released[task]++;
    tell(m, WS_MACHINE_RELEASE, j, -1, -1, NULL, NULL);
    return 0;
}

static void remove_job(struct machine *m, int job)
{
    m->n_jobs--;
    memmove(&m->jobs[job], &m->jobs[job + 1], (m->n_jobs - (size_t)job) * sizeof(*m->jobs));
    for (int s = 0; s < m->first[m->sys->n_gpus]; s++)
        m->runs[s].job -= m->runs[s].job > job;
}

/* The script's next job of a task of which one ends now. */
static void release_after_end(struct machine *m, int task)
{
    const struct ws_machine_script *s = m->o->scripts ? &m->o->scripts[task] : NULL;
    if (!s || s->timed || m->res->released[task] >= s->n)
        return;
    double at = m->now + s->jobs[m->res->released[task]].after;
    m->releases[m->n_releases++] = (struct release){at, at, task};
    release_heap_make(NULL, m->releases, m->n_releases);
}

/* Counts a job that has ended at m->now. */
static void finish_job(struct machine *m, int job, int gpu, int slot,
                       const struct ws_policy_run *run)
{
    const struct ws_policy_job *j = &m->jobs[job];
    struct ws_machine_result *r = m->res;
    bool late = m->now > j->deadline;
    double end = run->end;
    r->n_late += late;
    r->n_on_time += !late;
    r->missed[j->task] += late;
    r->worst_response[j->task] = ws_greater(r->worst_response[j->task], end - j->release);
    if (j->deadline < INFINITY)
        r->worst_lateness = ws_greater(r->worst_lateness, end - j->deadline);
    tell(m, late ? WS_MACHINE_LATE : WS_MACHINE_DONE, j, gpu, slot, run, NULL);
    release_after_end(m, j->task);
    remove_job(m, job);
}

static void skip_job(struct machine *m, int job)
{
    m->res->n_skipped++;
    m->res->missed[m->jobs[job].task]++;
    tell(m, WS_MACHINE_SKIP, &m->jobs[job], -1, -1, NULL, NULL);
    release_after_end(m, m->jobs[job].task);
    m->n_waiting--;
    remove_job(m, job);
}

/* Drops ready jobs whose deadline has come, by priority and arrival. */
static bool skip_late(struct machine *m)
{
    bool any = false;
    while (m->next_deadline <= m->now) {
        int worst = -1;
        m->next_deadline = INFINITY;
        for (size_t i = 0; i < m->n_jobs; i++) {
            const struct ws_policy_job *j = &m->jobs[i];
            if (j->state != WS_JOB_WAITING)
                continue;
            m->next_deadline = ws_lesser(m->next_deadline, j->deadline);
            if (j->deadline <= m->now &&
                (worst < 0 ||
                 m->sys->tasks[j->task].priority > m->sys->tasks[m->jobs[worst].task].priority))
                worst = (int)i;
        }
        if (worst >= 0) {
            skip_job(m, worst);
            any = true;
        }
    }
    return any;
}

static double jitter(const struct machine *m, const struct ws_policy_task *t)
{
    return t->jitter > 0 && !ticks(m) ? t->jitter * drawn(~m->o->seed, 2 * m->n_seq) : 0;
}

/* Return: false: what comes next in this task is not known yet, or there is nothing. */
static bool schedule_next(const struct machine *m, struct release *r)
{
    const struct ws_policy_task *t = &m->sys->tasks[r->task];
    if (m->o->scripts) {
        const struct ws_machine_script *s = &m->o->scripts[r->task];
        uint64_t next = m->res->released[r->task];
        if (!s->timed || next >= s->n)
            return false;
        r->at = r->nominal += s->jobs[next].after;
        return true;
    }
    if (!(t->period > 0))
        return false;
    if (ticks(m)) /* this clock drifts with periods that are no whole number of ticks */
        r->nominal = m->now;
    else if (m->o->late > 0)
        r->nominal += m->o->late * t->period * drawn(~m->o->seed, 2 * m->n_seq + 1);
    r->nominal += t->period;
    r->at = r->nominal + jitter(m, t);
    return true;
}

static int release_due(struct machine *m, bool *ret_any)
{
    while (m->n_releases && m->releases[0].at <= m->now) {
        struct release *r = &m->releases[0];
        int e = add_job(m, r->task);
        if (e)
            return e;
        *ret_any = true;
        if (!schedule_next(m, r))
            *r = m->releases[--m->n_releases];
        release_heap_sift(NULL, m->releases, m->n_releases, 0);
    }
    return 0;
}

/* ---- slots ---- */

static void free_slot(struct machine *m, int gpu, int s)
{
    m->runs[s] = (struct ws_policy_run){.job = -1, .task = -1};
    m->stages[s] = (struct stage_state){.stage = FREE, .until = INFINITY};
    m->gpus[gpu].n_running--;
    m->power_changed = true;
}

static double copy_end(struct machine *m, int gpu, double from, double length)
{
    int n = m->sys->gpus[gpu].n_copy_engines, least = m->first_engine[gpu];
    if (n <= 0 || ticks(m))
        return from + length;
    for (int i = least; i < m->first_engine[gpu] + n; i++)
        if (m->engine_free[i] < m->engine_free[least])
            least = i;
    double end = ws_greater(from, m->engine_free[least]) + length;
    if (length > 0)
        m->engine_free[least] = end;
    return end;
}

/* The job of slot @s does nothing more there from @from on. */
static void begin_taking_off(struct machine *m, int gpu, int s, double from)
{
    struct stage_state *st = &m->stages[s];
    struct ws_policy_job *j = &m->jobs[m->runs[s].job];
    if (st->stage == KERNEL && st->kernel_ms > 0)
        j->done = ws_lesser(1, j->done + (from - st->kernel_from) / st->kernel_ms);
    st->stage = TAKING_OFF;
    st->until = from + m->sys->types[m->sys->gpus[gpu].type].update_ms;
    m->power_changed = true;
}

/* Goes on to the next stage of slot @s, whose present one is over. Return: whether the slot is
 * free now. */
static bool next_stage(struct machine *m, int gpu, int s)
{
    struct stage_state *st = &m->stages[s];
    struct ws_policy_run *r = &m->runs[s];
    struct ws_policy_job *j = &m->jobs[r->job];
    const struct ws_policy_cost *cost = &m->sys->tasks[r->task].cost[m->sys->gpus[gpu].type];
    m->power_changed = true;
    switch (st->stage) {
    case COPY_IN:
        st->stage = KERNEL;
        st->kernel_from = st->until;
        r->gpu_start = st->until;
        r->gpu_end = st->until + (1 - j->done) * st->longest_ms;
        st->until += (1 - j->done) * st->kernel_ms;
        r->end = r->gpu_end + cost->d2h;
        return false;
    case KERNEL:
        if (st->leaves) {
            begin_taking_off(m, gpu, s, st->until);
            return false;
        }
        st->stage = COPY_OUT;
        r->gpu_end = st->until;
        j->done = 1;
        r->end = st->until = copy_end(m, gpu, st->until, cost->d2h);
        return false;
    case COPY_OUT: {
        struct ws_policy_run over = *r;
        free_slot(m, gpu, s);
        finish_job(m, over.job, gpu, s - m->first[gpu], &over);
        return true;
    }
    default:
        j->state = WS_JOB_PREEMPTED;
        free_slot(m, gpu, s);
        return true;
    }
}

/* Ticks: the tick, not the end of the job, is when its slot is free; what ends at one tick does
 * so in the order of the starts. */
static bool end_at_tick(struct machine *m)
{
    for (bool any = false;; any = true) {
        int k_first = -1, s_first = -1;
        for (int k = 0; k < m->sys->n_gpus; k++)
            for (int s = m->first[k]; s < m->first[k + 1]; s++)
                if (m->runs[s].job >= 0 && m->runs[s].end <= m->now &&
                    (s_first < 0 || m->stages[s].order < m->stages[s_first].order)) {
                    k_first = k;
                    s_first = s;
                }
        if (s_first < 0)
            return any;
        struct ws_policy_run over = m->runs[s_first];
        free_slot(m, k_first, s_first);
        finish_job(m, over.job, k_first, s_first - m->first[k_first], &over);
    }
}

/* Ends what ends by now. Return: whether a slot became free. */
static bool end_due(struct machine *m)
{
    bool any = false;
    if (ticks(m))
        return end_at_tick(m);
    for (int k = 0; k < m->sys->n_gpus; k++)
        for (int s = m->first[k]; s < m->first[k + 1]; s++)
            while (m->stages[s].stage != FREE && m->stages[s].until <= m->now)
                any |= next_stage(m, k, s);
    return any;
}

/* ---- carrying out decisions ---- */

static int refuse(struct machine *m, const struct ws_policy_decision *d, const char *why)
{
    snprintf(m->res->error, sizeof(m->res->error), "at %.6g %s of job %d on GPU %d: %s", m->now,
             ws_decision_name(d->kind), d->job, d->gpu, why);
    return WS_MACHINE_E_POLICY;
}

static int find_slot(const struct machine *m, int gpu, int job)
{
    for (int s = m->first[gpu]; s < m->first[gpu + 1]; s++)
        if (m->runs[s].job == job)
            return s;
    return -1;
}

static int check_place(struct machine *m, const struct ws_policy_decision *d, int *ret_slot)
{
    const struct ws_policy_job *j = &m->jobs[d->job];
    if (d->gpu < 0 || d->gpu >= m->sys->n_gpus)
        return refuse(m, d, "there is no such GPU");
    const struct ws_policy_gpu *g = &m->sys->gpus[d->gpu];
    const struct ws_policy_cost *c = m->sys->tasks[j->task].cost;
    if (!c || c[g->type].n_sm < 1)
        return refuse(m, d, "what it costs there is unknown");
    if (d->n_sm < 1 || d->n_sm > g->sm_limit)
        return refuse(m, d, "more SMs than may be given out, or none");
    int used = 0;
    for (int s = m->first[d->gpu]; s < m->first[d->gpu + 1]; s++)
        if (m->runs[s].job >= 0) {
            used += m->runs[s].n_sm;
            if (d->sms.n && ws_sm_set_meet(&d->sms, &m->runs[s].sms))
                return refuse(m, d, "its SMs are another job's");
        }
    if (used + d->n_sm > g->sm_limit)
        return refuse(m, d, "not so many SMs are free");
    *ret_slot = find_slot(m, d->gpu, -1);
    return *ret_slot < 0 ? refuse(m, d, "no slot is free") : 0;
}

/* The share of its time that a kernel of @j takes. */
static double share_of(const struct machine *m, const struct ws_policy_job *j)
{
    double range = m->o->early + m->o->over;
    if (m->o->scripts)
        return m->shares[j->seq];
    if (!(range > 0) || ticks(m))
        return 1;
    return 1 + m->o->over - range * drawn(m->o->seed, j->seq);
}

/* Those of jobs that run would have to be lowered with them. */
static int set_clocks(struct machine *m, const struct ws_policy_decision *d,
                      const struct ws_policy_clocks *want)
{
    struct ws_policy_gpu_state *g = &m->gpus[d->gpu];
    const struct ws_policy_clocks now = {g->volt, g->f_core, g->f_mem},
                                  both = ws_policy_clocks_join(&now, want);
    if (g->n_running && !ws_policy_clocks_same(&both, want))
        return refuse(m, d, "clocks are not lowered where jobs run");
    g->volt = want->volt;
    g->f_core = want->core;
    g->f_mem = want->memory;
    return 0;
}

static int start(struct machine *m, const struct ws_policy_decision *d)
{
    const struct ws_policy_clocks clocks = {d->volt, d->f_core, d->f_mem};
    int s = 0, r = check_place(m, d, &s);
    if (!r)
        r = set_clocks(m, d, &clocks);
    if (r)
        return r;
    struct ws_policy_job *j = &m->jobs[d->job];
    bool resume = d->kind == WS_DECIDE_RESUME;
    if (j->state != (resume ? WS_JOB_PREEMPTED : WS_JOB_WAITING))
        return refuse(m, d, "the job is not in a state for that");
    const struct ws_policy_gpu_type *type = &m->sys->types[m->sys->gpus[d->gpu].type];
    const struct ws_policy_cost *c = &m->sys->tasks[j->task].cost[m->sys->gpus[d->gpu].type];
    double wcet = c->wcet[WS_MIN(d->n_sm, c->n_sm) - 1] * ws_policy_clocks_stretch(c, &clocks);
    double in =
        resume ? m->now + type->switch_ms + type->update_ms : copy_end(m, d->gpu, m->now, c->h2d);
    struct ws_policy_run *run = &m->runs[s];
    *run = (struct ws_policy_run){.job = d->job,
                                  .task = j->task,
                                  .sms = d->sms,
                                  .n_sm = d->n_sm,
                                  .start = m->now,
                                  .gpu_start = in};
    run->gpu_end = in + (1 - j->done) * wcet;
    if (!resume)
        run->gpu_end = in + wcet;
    run->end = run->gpu_end + c->d2h;
    m->stages[s] = (struct stage_state){
        .stage = COPY_IN,
        .until = in,
        .kernel_ms = wcet * share_of(m, j),
        .longest_ms = wcet,
        .dyn_w_per_sm = c->dyn_w_per_sm + ws_policy_clocks_extra_w(c, type->n_sm, &clocks),
        .order = m->n_starts++};
    m->n_waiting -= !resume;
    j->state = WS_JOB_RUNNING;
    j->gpu = d->gpu;
    m->gpus[d->gpu].n_running++;
    m->power_changed = true;
    m->res->n_started += !resume;
    m->res->sum_sm += resume ? 0 : (uint64_t)d->n_sm;
    if (!resume)
        m->res->started[(size_t)j->task * (size_t)m->sys->n_gpus + (size_t)d->gpu]++;
    tell(m, resume ? WS_MACHINE_RESUME : WS_MACHINE_START, j, d->gpu, s - m->first[d->gpu], run,
         d->why);
    return 0;
}

static int preempt(struct machine *m, const struct ws_policy_decision *d)
{
    struct ws_policy_job *j = &m->jobs[d->job];
    int s = j->state == WS_JOB_RUNNING && j->gpu >= 0 ? find_slot(m, j->gpu, d->job) : -1;
    if (ticks(m))
        return refuse(m, d, "the compatibility clock has no preemption");
    if (s < 0 || m->stages[s].stage == COPY_OUT || m->stages[s].stage == TAKING_OFF)
        return refuse(m, d, "the job has no kernel on a GPU");
    struct stage_state *st = &m->stages[s];
    const int type = m->sys->gpus[j->gpu].type;
    const struct ws_policy_cost *c = &m->sys->tasks[j->task].cost[type];
    double stop = m->now;
    if (st->stage == KERNEL)
        stop = ws_policy_stop_at(c->n_stops * (1 - j->done), m->runs[s].n_sm, st->kernel_from,
                                 st->until, m->now);
    if (st->leaves || (stop > m->now && stop >= st->until))
        return 0; /* already, or its last blocks run */
    st->leaves = stop > m->now;
    if (st->leaves)
        st->until = stop;
    else
        begin_taking_off(m, j->gpu, s, m->now);
    m->runs[s].leaves = true;
    m->runs[s].end = stop + m->sys->types[type].update_ms;
    m->res->n_preempted++;
    tell(m, WS_MACHINE_PREEMPT, j, j->gpu, s - m->first[j->gpu], &m->runs[s], d->why);
    if (st->until <= m->now) /* what is started by the next decision finds the slot free */
        next_stage(m, j->gpu, s);
    return 0;
}

static int run_on_cpu(struct machine *m, const struct ws_policy_decision *d)
{
    struct ws_policy_job *j = &m->jobs[d->job];
    const struct ws_policy_task *t = &m->sys->tasks[j->task];
    if (j->state != WS_JOB_WAITING || !(t->cpu_ms > 0))
        return refuse(m, d, "the job can't run there");
    m->cpu_free_at = ws_greater(m->cpu_free_at, m->now) + t->cpu_ms;
    struct ws_policy_run run = {.job = d->job,
                                .task = j->task,
                                .start = m->now,
                                .gpu_start = m->cpu_free_at - t->cpu_ms,
                                .gpu_end = m->cpu_free_at,
                                .end = m->cpu_free_at};
    m->res->energy += t->cpu_mj;
    tell(m, WS_MACHINE_CPU, j, -1, -1, &run, d->why);
    /* Its end is known, and nothing here depends on it: it is counted at once. */
    double now = m->now;
    m->n_waiting--;
    m->now = run.end;
    if (run.end <= m->o->duration)
        finish_job(m, d->job, -1, -1, &run);
    else
        remove_job(m, d->job);
    m->now = now;
    return 0;
}

static int carry_out(struct machine *m, const struct ws_policy_decision *d)
{
    bool of_job =
        d->kind != WS_DECIDE_TIMER && d->kind != WS_DECIDE_CLOCKS && d->kind != WS_DECIDE_POWER;
    if (of_job && (d->job < 0 || (size_t)d->job >= m->n_jobs))
        return refuse(m, d, "there is no such job");
    switch (d->kind) {
    case WS_DECIDE_START:
    case WS_DECIDE_FUSE:
    case WS_DECIDE_RESUME:
        return start(m, d);
    case WS_DECIDE_PREEMPT:
        return preempt(m, d);
    case WS_DECIDE_RUN_CPU:
        return run_on_cpu(m, d);
    case WS_DECIDE_DROP:
        if (m->jobs[d->job].state != WS_JOB_WAITING)
            return refuse(m, d, "the job runs");
        skip_job(m, d->job);
        return 0;
    case WS_DECIDE_TIMER:
        m->timer = ws_lesser(m->timer, d->at);
        return 0;
    case WS_DECIDE_WAIT:
        return 0;
    default:
        m->res->n_ignored++;
        return 0;
    }
}

/* Decisions name jobs by where they stood in the snapshot; those that leave the list move the
 * later ones up. */
static void renumber(struct ws_policy_decisions *all, size_t from, int gone)
{
    for (size_t i = from; i < all->n; i++)
        all->v[i].job -= all->v[i].job > gone;
}

static int ask(struct machine *m, const struct ws_policy_event *event)
{
    struct ws_policy_snapshot snap = {.system = m->sys,
                                      .now = m->now,
                                      .gpus = m->gpus,
                                      .jobs = m->jobs,
                                      .n_jobs = (int)m->n_jobs,
                                      .explain = m->o->explain};
    m->decisions.n = 0;
    m->decisions.steady = false;
    m->res->n_asked++;
    int r = m->ops->decide(m->policy, &snap, event, &m->decisions);
    for (size_t i = 0; i < m->decisions.n && !r; i++) {
        struct ws_policy_decision *d = &m->decisions.v[i];
        size_t before = m->n_jobs;
        int job = d->job;
        if (d->at > m->now && (d->kind == WS_DECIDE_START || d->kind == WS_DECIDE_RESUME ||
                               d->kind == WS_DECIDE_FUSE)) {
            m->timer =
                ws_lesser(m->timer, d->at); /* asked again then; nothing is held until then */
            continue;
        }
        r = carry_out(m, d);
        if (!r && m->n_jobs < before)
            renumber(&m->decisions, i + 1, job);
    }
    return r > 0 ? r : ws_forward(r);
}

/* ---- power ---- */

static double gpu_power(const struct machine *m, int k)
{
    const struct ws_policy_gpu_type *t = &m->sys->types[m->sys->gpus[k].type];
    struct ws_energy_gpu g = {t->n_sm, t->static_w, t->idle_w_per_sm};
    double dyn_w = 0;
    int busy = 0;
    for (int s = m->first[k]; s < m->first[k + 1]; s++) {
        const struct ws_policy_run *r = &m->runs[s];
        if (r->job < 0 || (!ticks(m) && m->stages[s].stage != KERNEL))
            continue;
        busy += r->n_sm;
        dyn_w += r->n_sm * m->stages[s].dyn_w_per_sm;
    }
    if (!busy && m->gpus[k].n_running && m->o->form != WS_ENERGY_EQ2_PRINTED)
        return t->static_w + t->n_sm * t->idle_w_per_sm; /* copies keep it awake */
    return ws_energy_power_w(m->o->form, &g, dyn_w, busy);
}

static void account(struct machine *m, double until)
{
    double sum = 0;
    if (m->power_changed)
        for (int k = 0; k < m->sys->n_gpus; k++) {
            double w = gpu_power(m, k);
            bool same = w >= m->power_w[k] && w <= m->power_w[k];
            m->power_w[k] = w;
            if (!same && m->o->event) {
                struct ws_machine_event e = {.kind = WS_MACHINE_POWER,
                                             .t = m->now,
                                             .task = -1,
                                             .gpu = k,
                                             .slot = -1,
                                             .power_w = w};
                m->o->event(m->o->arg, &e);
            }
        }
    m->power_changed = false;
    for (int k = 0; k < m->sys->n_gpus; k++)
        sum += m->power_w[k];
    m->res->energy += sum * (until - m->now);
}

/* ---- the clocks ---- */

static bool has_room(const struct machine *m)
{
    for (int k = 0; k < m->sys->n_gpus; k++) {
        int used = 0;
        for (int s = m->first[k]; s < m->first[k + 1]; s++)
            used += m->runs[s].n_sm;
        if (m->gpus[k].n_running < m->gpus[k].n_slots && used < m->sys->gpus[k].sm_limit)
            return true;
    }
    return false;
}

static double next_change(const struct machine *m)
{
    double t = m->n_releases ? m->releases[0].at : INFINITY;
    t = ws_lesser(t, m->next_deadline);
    for (int s = 0; s < m->first[m->sys->n_gpus]; s++)
        if (m->runs[s].job >= 0)
            t = ws_lesser(t, ticks(m) ? m->runs[s].end : m->stages[s].until);
    return ws_lesser(t, m->timer);
}

static int run_ticks(struct machine *m)
{
    const double tick = m->o->tick;
    struct ws_policy_event event = {.kind = WS_EVENT_TIMER, .job = -1, .task = -1, .gpu = -1};
    while (m->now < m->o->duration) {
        bool any = false;
        end_due(m);
        skip_late(m);
        int r = release_due(m, &any);
        m->decisions.steady = true;
        if (!r && m->n_waiting && has_room(m))
            r = ask(m, &event);
        if (r)
            return r;
        double next =
            m->n_waiting && has_room(m) ? m->now + tick : ceil(next_change(m) / tick) * tick;
        next = ws_lesser(ws_greater(next, m->now + tick), ceil(m->o->duration / tick) * tick);
        account(m, next);
        m->now = next;
    }
    return 0;
}

static int run_events(struct machine *m)
{
    while (m->now < m->o->duration) {
        struct ws_policy_event event = {.kind = WS_EVENT_TIMER, .job = -1, .task = -1, .gpu = -1};
        bool timer = m->timer <= m->now, released = false;
        if (timer)
            m->timer = INFINITY;
        bool ended = end_due(m);
        bool skipped = skip_late(m);
        int r = release_due(m, &released);
        if (!r && (ended || released || skipped || timer)) {
            if (ended)
                event.kind = WS_EVENT_COMPLETION;
            else if (released)
                event.kind = WS_EVENT_ARRIVAL;
            r = ask(m, &event);
        }
        if (r || (m->o->scripts && !m->n_jobs && !m->n_releases))
            return r;
        double next = ws_lesser(next_change(m), m->o->duration);
        account(m, ws_greater(next, m->now));
        m->now = ws_greater(next, m->now);
    }
    return 0;
}

static size_t n_scripted(const struct machine *m)
{
    size_t n = 0;
    for (int i = 0; m->o->scripts && i < m->sys->n_tasks; i++)
        n += m->o->scripts[i].n;
    return n;
}

static void first_release(struct machine *m, int task)
{
    const struct ws_machine_script *s = m->o->scripts ? &m->o->scripts[task] : NULL;
    if (s && !s->n)
        return;
    double at = s ? s->jobs[0].after : m->sys->tasks[task].offset;
    m->releases[m->n_releases++] = (struct release){at, at, task};
}

static int init(struct machine *m)
{
    const struct ws_policy_system *s = m->sys;
    size_t k = (size_t)WS_MAX(s->n_gpus, 1), n = (size_t)WS_MAX(s->n_tasks, 1), slots = 1,
           engines = 1;
    m->res->n_tasks = s->n_tasks;
    m->res->n_gpus = s->n_gpus;
    m->res->worst_lateness = -INFINITY;
    m->timer = m->next_deadline = INFINITY;
    m->power_changed = true;
    for (int i = 0; i < s->n_gpus; i++) {
        slots += (size_t)s->gpus[i].n_slots;
        engines += (size_t)WS_MAX(s->gpus[i].n_copy_engines, 0);
    }
    m->gpus = ws_alloc_array(k, sizeof(*m->gpus));
    m->runs = ws_alloc_array(slots, sizeof(*m->runs));
    m->stages = ws_alloc_array(slots, sizeof(*m->stages));
    m->first = ws_alloc_array(k + 1, sizeof(*m->first));
    m->first_engine = ws_alloc_array(k + 1, sizeof(*m->first_engine));
    m->engine_free = ws_alloc_array(engines, sizeof(*m->engine_free));
    m->power_w = ws_alloc_array(k, sizeof(*m->power_w));
    m->releases = ws_alloc_array(n, sizeof(*m->releases));
    m->shares = ws_alloc_array(n_scripted(m) + 1, sizeof(*m->shares));
    m->res->released = ws_alloc_array(n, sizeof(uint64_t));
    m->res->missed = ws_alloc_array(n, sizeof(uint64_t));
    m->res->started = ws_alloc_array(n * k, sizeof(uint64_t));
    m->res->worst_response = ws_alloc_array(n, sizeof(double));
    if (!m->gpus || !m->runs || !m->stages || !m->first || !m->first_engine || !m->engine_free ||
        !m->power_w || !m->releases || !m->shares || !m->res->released || !m->res->missed ||
        !m->res->started || !m->res->worst_response)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < s->n_gpus; i++) {
        m->first[i + 1] = m->first[i] + s->gpus[i].n_slots;
        m->first_engine[i + 1] = m->first_engine[i] + WS_MAX(s->gpus[i].n_copy_engines, 0);
        m->gpus[i] = (struct ws_policy_gpu_state){.slots = &m->runs[m->first[i]],
                                                  .n_slots = s->gpus[i].n_slots,
                                                  .power = WS_GPU_ON,
                                                  .volt = 1,
                                                  .f_core = 1,
                                                  .f_mem = 1};
        m->power_w[i] = -1;
    }
    for (int i = 0; i < m->first[s->n_gpus]; i++) {
        m->runs[i] = (struct ws_policy_run){.job = -1, .task = -1};
        m->stages[i].until = INFINITY;
    }
    for (int i = 0; i < s->n_tasks; i++)
        first_release(m, i);
    release_heap_make(NULL, m->releases, m->n_releases);
    return 0;
}

int ws_machine_run(struct ws_machine_result *ret, const struct ws_policy_system *system,
                   const struct ws_policy_ops *ops, struct ws_policy *policy,
                   const struct ws_machine_options *options)
{
    *ret = (struct ws_machine_result){0};
    struct machine m = {.sys = system, .ops = ops, .policy = policy, .o = options, .res = ret};
    int r = init(&m);
    if (!r && ops->once) {
        snprintf(ret->error, sizeof(ret->error), "%s must be told each event by itself", ops->name);
        r = WS_MACHINE_E_POLICY;
    }
    if (!r)
        r = ticks(&m) ? run_ticks(&m) : run_events(&m);
    ret->end = m.now;
    free(m.jobs);
    free(m.gpus);
    free(m.runs);
    free(m.stages);
    free(m.first);
    free(m.first_engine);
    free(m.engine_free);
    free(m.power_w);
    free(m.releases);
    free(m.shares);
    ws_policy_decisions_deinit(&m.decisions);
    return r;
}

// SPDX-License-Identifier: Apache-2.0
/* Makes jobs of a trace's kernels and gives them to the simulator, once for each policy.
 *
 * A job is what the daemon's policy took for one, where the trace says so. Otherwise it is all that
 * a client does from a kernel on until everything that it has given is done, and only then
 * something new can start. Its release is when its first kernel could have started. The next job of
 * a client comes as long after the end of this one as it did in the trace (after its release, if
 * the task has a period): so a client whose jobs end sooner gives the next one sooner.
 *
 * A client is a task. A job's time on n SMs follows from what its kernels took on those that they
 * had: as many times as blocks go to n SMs one by one (waves(), as the daemon assumes it). Tasks
 * have the mean over their jobs, which is what a policy predicts from, and a job a share of it.
 * What a kernel took in joules, it takes for each SM and millisecond anywhere. Copies are left out,
 * and so is what kernels that run side by side do to each other. */
#include "config.h"

#include "cli/report/replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/minmax.h"
#include "papers/sets/sbeet_set.h"

#define SAME_US 1e-3 /* times in a trace are whole nanoseconds */
enum {
    SLOTS = 4
}; /* jobs side by side on a GPU, as the daemon has it where nobody says otherwise */

struct traced_job {
    uint32_t client;
    double release_us, start_us, end_us; /* of its kernels */
    double sum_us, busy_us; /* what they took, one by one; with at least one of them at work */
    double work;            /* what they would take on the largest GPU, in cycles */
    double energy_uj;
    size_t first, last; /* of `order` */
};
struct building {
    const struct ws_report *r;
    struct ws_replay *ret;
    const struct ws_report_slice **order; /* by client, and by when they were ready */
    struct traced_job *jobs;              /* by client, and by release */
    size_t n_jobs;
    double begin_us;
    int n_sm_max;
    int type_of[WS_REPORT_GPUS]; /* of the trace's GPUs */
    double mhz[WS_REPORT_GPUS];  /* of types */
    struct ws_policy_gpu_type types[WS_REPORT_GPUS];
    struct ws_policy_gpu gpus[WS_REPORT_GPUS];
    struct ws_policy_task *tasks;
    struct ws_policy_cost *costs; /* [tasks][types] */
    double *wcet;                 /* [tasks][types][n_sm_max] */
    struct ws_machine_script *scripts;
    struct ws_machine_job *script_jobs; /* [n_jobs] */
    struct ws_sbeet_set set;
};

static double ready_us(const struct ws_report_slice *p)
{
    return p->start_us - p->waited_us;
}

static int by_ready(const void *a, const void *b)
{
    const struct ws_report_slice *x = *(const struct ws_report_slice *const *)a,
                                 *y = *(const struct ws_report_slice *const *)b;
    if (x->client != y->client)
        return x->client < y->client ? -1 : 1;
    double t = ready_us(x) - ready_us(y);
    if (t < 0 || t > 0)
        return t < 0 ? -1 : 1;
    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

/* ---- GPUs ---- */

/* "t400" of "GPU 1 t400" */
static const char *type_name(const char *gpu)
{
    const char *blank = strrchr(gpu, ' ');
    return blank ? blank + 1 : gpu;
}

static int type_of(struct building *b, const struct ws_report_gpu *g)
{
    struct ws_policy_system *s = &b->set.system;
    for (int t = 0; t < s->n_types; t++)
        if (!strcmp(b->types[t].name, type_name(g->name)) && b->types[t].n_sm == g->n_sms)
            return t;
    b->types[s->n_types] = (struct ws_policy_gpu_type){
        .name = type_name(g->name), .n_sm = g->n_sms, .static_w = g->idle_w};
    b->mhz[s->n_types] = g->core_mhz;
    b->n_sm_max = WS_MAX(b->n_sm_max, g->n_sms);
    return s->n_types++;
}

/* Return: whether the trace says of all GPUs what has to be known. */
static bool make_gpus(struct building *b)
{
    struct ws_policy_system *s = &b->set.system;
    b->ret->has_idle = true;
    for (int i = 0; i < WS_REPORT_GPUS; i++) {
        const struct ws_report_gpu *g = &b->r->gpus[i];
        if (!*g->name)
            continue;
        if (g->n_sms < 1 || g->n_sms > WS_SM_MAX || !(g->core_mhz > 0))
            return false;
        b->ret->has_idle &= g->idle_w > 0;
        b->type_of[i] = type_of(b, g);
        b->gpus[s->n_gpus++] = (struct ws_policy_gpu){
            .type = b->type_of[i], .sm_limit = g->n_sms, .n_slots = SLOTS, .server = -1};
    }
    s->types = b->types;
    s->gpus = b->gpus;
    return s->n_gpus > 0;
}

/* ---- jobs ---- */

static double waves(const struct ws_report_slice *p, int n_sm)
{
    return p->n_blocks ? ceil((double)p->n_blocks / n_sm) : 1.0 / n_sm;
}

/* What kernel @p would take on @n_sm SMs, in cycles. */
static double cycles(const struct building *b, const struct ws_report_slice *p, int n_sm)
{
    double cycles = (p->end_us - p->start_us) * b->mhz[b->type_of[p->gpu]];
    return cycles * waves(p, n_sm) / waves(p, WS_MAX((int)p->n_sms, 1));
}

static void add_kernel(const struct building *b, struct traced_job *j, size_t at)
{
    const struct ws_report_slice *p = b->order[at];
    double from = ws_greater(p->start_us, j->end_us);
    j->last = at;
    j->release_us = ws_lesser(j->release_us, ready_us(p));
    j->start_us = ws_lesser(j->start_us, p->start_us);
    j->sum_us += p->end_us - p->start_us;
    j->busy_us += ws_greater(p->end_us - from, 0);
    j->end_us = ws_greater(j->end_us, p->end_us);
    j->work += cycles(b, p, b->n_sm_max);
    j->energy_uj += (double)p->energy_uj;
}

/* Whether kernel @p is of another job than @before, the kernel of the same client before it.
 * @done_us: when all that came before it was done. */
static bool begins_job(const struct ws_report_slice *before, const struct ws_report_slice *p,
                       double done_us)
{
    if (before->job || p->job)
        return before->job != p->job;
    return ready_us(p) > done_us + SAME_US;
}

static void make_jobs(struct building *b)
{
    const struct ws_report_slice *before = NULL;
    double done_us = 0;
    b->begin_us = INFINITY;
    for (size_t i = 0; i < b->r->n; i++) {
        const struct ws_report_slice *p = b->order[i];
        bool new = !before || before->client != p->client || begins_job(before, p, done_us);
        bool same_client = i && b->order[i - 1]->client == p->client;
        done_us = same_client ? ws_greater(done_us, p->end_us) : p->end_us;
        if (!p->is_kernel)
            continue;
        if (new)
            b->jobs[b->n_jobs++] = (struct traced_job){.client = p->client,
                                                       .release_us = INFINITY,
                                                       .start_us = INFINITY,
                                                       .end_us = -INFINITY,
                                                       .first = i};
        add_kernel(b, &b->jobs[b->n_jobs - 1], i);
        b->begin_us = ws_lesser(b->begin_us, b->jobs[b->n_jobs - 1].release_us);
        before = p;
    }
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Leaves out the jobs that were released last, where there are too many. Return: 0 or -ENOMEM. */
static int cut_jobs(struct building *b)
{
    size_t n = 0;
    if (b->n_jobs <= WS_REPLAY_JOBS_MAX)
        return 0;
    double *releases = ws_alloc_array(b->n_jobs, sizeof(*releases));
    if (!releases)
        return -ENOMEM;
    for (size_t i = 0; i < b->n_jobs; i++)
        releases[i] = b->jobs[i].release_us;
    qsort(releases, b->n_jobs, sizeof(*releases), by_value);
    double last = releases[WS_REPLAY_JOBS_MAX - 1];
    free(releases);
    for (size_t i = 0; i < b->n_jobs; i++)
        if (b->jobs[i].release_us <= last)
            b->jobs[n++] = b->jobs[i];
    b->ret->n_left_out = b->n_jobs - n;
    b->n_jobs = n;
    return 0;
}

/* ---- tasks ---- */

/* The time of the mean job on each number of SMs of type @t, in ms. */
static void make_wcet(const struct building *b, const struct traced_job *jobs, size_t n, int t,
                      double *wcet)
{
    for (size_t i = 0; i < n; i++) {
        const struct traced_job *j = &jobs[i];
        double overlap = j->sum_us > 0 ? j->busy_us / j->sum_us : 1;
        for (size_t k = j->first; k <= j->last; k++)
            for (int m = 0; b->order[k]->is_kernel && m < b->types[t].n_sm; m++)
                wcet[m] += overlap * cycles(b, b->order[k], m + 1) / b->mhz[t] / 1e3 / (double)n;
    }
}

/* What kernels of @jobs took for each SM that they had, those on type @t if there are any; in W. */
static double dynamic_w(const struct building *b, const struct traced_job *jobs, size_t n, int t)
{
    double uj[2] = {0}, sm_us[2] = {0}; /* of all, of those on this type */
    for (size_t i = 0; i < n; i++)
        for (size_t k = jobs[i].first; k <= jobs[i].last; k++) {
            const struct ws_report_slice *p = b->order[k];
            int n_sums = !p->is_kernel ? 0 : b->type_of[p->gpu] == t ? 2 : 1;
            for (int of = 0; of < n_sums; of++) {
                uj[of] += (double)p->energy_uj;
                sm_us[of] += (p->end_us - p->start_us) * WS_MAX((int)p->n_sms, 1);
            }
        }
    int of = sm_us[1] > 0;
    return sm_us[of] > 0 ? uj[of] / sm_us[of] : 0;
}

/* The jobs of a task as the simulator gives them out. */
static void make_script(const struct building *b, const struct traced_job *jobs, size_t n,
                        bool timed, struct ws_machine_job *ret)
{
    double work = 0;
    for (size_t i = 0; i < n; i++)
        work += jobs[i].work * (jobs[i].sum_us > 0 ? jobs[i].busy_us / jobs[i].sum_us : 1);
    for (size_t i = 0; i < n; i++) {
        const struct traced_job *j = &jobs[i];
        double since = !i      ? b->begin_us
                       : timed ? j[-1].release_us
                               : j[-1].end_us,
               overlap = j->sum_us > 0 ? j->busy_us / j->sum_us : 1;
        ret[i] =
            (struct ws_machine_job){.after = ws_greater(j->release_us - since, 0) / 1e3,
                                    .share = work > 0 ? j->work * overlap * (double)n / work : 1};
    }
}

static void make_task(struct building *b, const struct traced_job *jobs, size_t n)
{
    struct ws_policy_system *s = &b->set.system;
    size_t i = (size_t)s->n_tasks++, n_types = (size_t)s->n_types;
    const struct ws_report_sum *client = &b->r->clients.v[jobs->client];
    struct ws_policy_task *t = &b->tasks[i];
    *t = (struct ws_policy_task){.id = (int)i,
                                 .name = client->name,
                                 .weight = 1,
                                 .best_effort = true,
                                 .cost = &b->costs[i * n_types]};
    for (size_t k = 0; k < b->r->n_promises; k++)
        if (b->r->promises[k].client == client->key) {
            const struct ws_report_promise *p = &b->r->promises[k];
            t->priority = t->gpu_priority = p->priority;
            t->best_effort = p->priority <= 0;
            t->period = p->period_ms;
            t->deadline = p->deadline_ms;
        }
    b->ret->has_deadlines |= t->deadline > 0;
    for (int k = 0; k < s->n_types; k++) {
        double *wcet = &b->wcet[(i * n_types + (size_t)k) * (size_t)b->n_sm_max];
        make_wcet(b, jobs, n, k, wcet);
        b->costs[i * n_types + (size_t)k] = (struct ws_policy_cost){
            .n_sm = b->types[k].n_sm, .wcet = wcet, .dyn_w_per_sm = dynamic_w(b, jobs, n, k)};
    }
    struct ws_machine_job *script = &b->script_jobs[jobs - b->jobs];
    make_script(b, jobs, n, t->period > 0, script);
    b->scripts[i] = (struct ws_machine_script){script, n, t->period > 0};
}

static int by_priority(const void *a, const void *b)
{
    const struct ws_policy_task *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Policies want tasks by decreasing priority. Return: 0 or -ENOMEM. */
static int sort_tasks(struct building *b)
{
    size_t n = (size_t)b->set.system.n_tasks;
    struct ws_machine_script *old = ws_alloc_array(n + 1, sizeof(*old));
    if (!old)
        return -ENOMEM;
    memcpy(old, b->scripts, n * sizeof(*old));
    qsort(b->tasks, n, sizeof(*b->tasks), by_priority);
    for (size_t i = 0; i < n; i++) {
        b->scripts[i] = old[b->tasks[i].id];
        b->tasks[i].id = (int)i;
    }
    free(old);
    return 0;
}

static int make_tasks(struct building *b)
{
    size_t n = b->r->clients.n + 1, n_types = (size_t)b->set.system.n_types;
    b->tasks = ws_alloc_array(n, sizeof(*b->tasks));
    b->costs = ws_alloc_array(n * n_types, sizeof(*b->costs));
    b->wcet = ws_alloc_array(n * n_types * (size_t)b->n_sm_max, sizeof(*b->wcet));
    b->scripts = ws_alloc_array(n, sizeof(*b->scripts));
    b->script_jobs = ws_alloc_array(b->n_jobs + 1, sizeof(*b->script_jobs));
    if (!b->tasks || !b->costs || !b->wcet || !b->scripts || !b->script_jobs)
        return -ENOMEM;
    for (size_t i = 0, k; i < b->n_jobs; i = k) {
        for (k = i + 1; k < b->n_jobs && b->jobs[k].client == b->jobs[i].client; k++)
            ;
        make_task(b, &b->jobs[i], k - i);
    }
    b->set.system.tasks = b->tasks;
    return sort_tasks(b);
}

/* ---- figures ---- */

static void count(struct ws_replay_row *row, double wait_ms, double response_ms, bool late)
{
    row->n_done++;
    row->n_late += late;
    row->wait_ms += wait_ms;
    row->longest_wait_ms = ws_greater(row->longest_wait_ms, wait_ms);
    row->response_ms += response_ms;
}

static void divide(struct ws_replay_row *row)
{
    if (row->n_done) {
        row->wait_ms /= (double)row->n_done;
        row->response_ms /= (double)row->n_done;
    }
}

static double deadline_of(const struct building *b, uint32_t client)
{
    for (size_t k = 0; k < b->r->n_promises; k++)
        if (b->r->promises[k].client == b->r->clients.v[client].key)
            return b->r->promises[k].deadline_ms;
    return 0;
}

static void count_traced(struct building *b)
{
    struct ws_replay_row *row = &b->ret->traced;
    row->name = "as it was";
    for (size_t i = 0; i < b->n_jobs; i++) {
        const struct traced_job *j = &b->jobs[i];
        double ms = (j->end_us - j->release_us) / 1e3, deadline = deadline_of(b, j->client);
        count(row, (j->start_us - j->release_us) / 1e3, ms, deadline > 0 && ms > deadline);
        row->joules += j->energy_uj / 1e6;
        row->end_ms = ws_greater(row->end_ms, (j->end_us - b->begin_us) / 1e3);
    }
    for (int i = 0; i < b->set.system.n_gpus; i++)
        row->joules += b->types[b->gpus[i].type].static_w * row->end_ms / 1e3;
    divide(row);
}

struct simulated {
    struct ws_replay_row *row;
    uint64_t n_dropped;
    double *waited_ms; /* [jobs], by number */
};

static void on_event(void *arg, const struct ws_machine_event *e)
{
    struct simulated *s = arg;
    switch (e->kind) {
    case WS_MACHINE_START:
        s->waited_ms[e->job] = e->t - e->release;
        break;
    case WS_MACHINE_DONE:
    case WS_MACHINE_LATE:
        count(s->row, s->waited_ms[e->job], e->t - e->release, e->kind == WS_MACHINE_LATE);
        break;
    case WS_MACHINE_SKIP:
        s->n_dropped++;
        s->row->n_late++;
        break;
    default:
        break;
    }
}

/* Return: 0 or -ENOMEM. */
static int simulate(struct building *b, const struct ws_policy_ops *ops)
{
    struct ws_replay_row *row = &b->ret->rows[b->ret->n_rows++];
    struct ws_sbeet_outcome o;
    struct simulated s = {.row = row, .waited_ms = ws_alloc_array(b->n_jobs + 1, sizeof(double))};
    const struct ws_machine_options mo = {.duration = 1000 + 100 * b->ret->traced.end_ms,
                                          .scripts = b->scripts,
                                          .event = on_event,
                                          .arg = &s};
    row->name = ops->name;
    if (!s.waited_ms)
        return -ENOMEM;
    int e = ws_sbeet_set_run(&o, &b->set, ops, NULL, &mo);
    if (e)
        snprintf(row->note, sizeof(row->note), "%s", *o.note ? o.note : "it could not be run");
    else if (row->n_done + s.n_dropped < b->n_jobs)
        snprintf(row->note, sizeof(row->note), "it left %zu jobs waiting for ever",
                 (size_t)(b->n_jobs - row->n_done - s.n_dropped));
    row->end_ms = o.r.end;
    row->joules = o.r.energy / 1e3;
    divide(row);
    ws_sbeet_outcome_deinit(&o);
    free(s.waited_ms);
    return e == -ENOMEM ? e : 0;
}

static int simulate_all(struct building *b)
{
    size_t n;
    const struct ws_policy_ops *const *all = ws_policy_all(&n);
    int e = 0;
    for (size_t i = 0; !e && i < n && b->ret->n_rows < WS_REPLAY_ROWS; i++)
        if (ws_sbeet_set_knows(all[i]) && !all[i]->fuses)
            e = simulate(b, all[i]);
    return e;
}

static int replay(struct building *b)
{
    b->order = ws_alloc_array(b->r->n + 1, sizeof(*b->order));
    b->jobs = ws_alloc_array(b->r->n + 1, sizeof(*b->jobs));
    if (!b->order || !b->jobs)
        return -ENOMEM;
    for (size_t i = 0; i < b->r->n; i++)
        b->order[i] = &b->r->slices[i];
    qsort(b->order, b->r->n, sizeof(*b->order), by_ready);
    make_jobs(b);
    int e = cut_jobs(b);
    b->ret->n_jobs = b->n_jobs;
    if (!e && !b->n_jobs)
        b->ret->impossible = "No kernel ran.";
    else if (!e && !(e = make_tasks(b))) {
        count_traced(b);
        e = simulate_all(b);
    }
    return e;
}

int ws_replay(const struct ws_report *r, struct ws_replay *ret)
{
    struct building b = {.r = r, .ret = ret};
    int e = 0;
    *ret = (struct ws_replay){0};
    if (make_gpus(&b))
        e = replay(&b);
    else
        ret->impossible = "The trace does not say how many SMs the GPUs have, and at which clocks "
                          "they run: an older wattshare wrote it.";
    free(b.order);
    free(b.jobs);
    free(b.tasks);
    free(b.costs);
    free(b.wcet);
    free(b.scripts);
    free(b.script_jobs);
    return e;
}

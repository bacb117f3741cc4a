// SPDX-License-Identifier: Apache-2.0
/* The sBEET family: each call of decide() is one pass over the ready jobs.
 *
 * How a pass works. load() copies the state of all GPUs from the snapshot: which slots and SMs are
 * taken, and until when. gather_ready() puts the ready jobs into a heap, ordered by priority and
 * then by arrival. For each job in that order, the policy's rule (struct ws_sbeet_rule) chooses a
 * configuration: a GPU, a number of SMs and a start. place() enters the chosen configuration into
 * the copied state, so that the next job of the pass sees it. The pass ends when the heap is empty
 * or when every GPU is full. A GPU is full when all its slots or all its SMs are taken.
 *
 * Rules that hold for the whole family:
 * 1. A job never runs beside an earlier job of the same task.
 * 2. A job that waits reserves nothing. Jobs of lower priority are still offered the GPUs.
 * 3. A job has two ends. For prices, and for the schedule of jobs to come, it ends when its kernel
 *    ends (`ge`). Its slot and its SMs are taken until its results have been copied to the host
 *    (`fin`).
 *
 * The file follows the pass: options; prepare(), which allocates all buffers except the heap of
 * ready jobs; configurations and their prices; the schedule of jobs to come, which decides whether
 * a configuration is feasible; choosing SMs on one GPU; choosing the GPU for a task that has one;
 * the pass itself. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/minmax.h"
#include "policy/sbeet.h"
#include "policy/sbeet_core.h"

/* ---- options ---- */

const struct ws_policy_option ws_sbeet_options[] = {
    {"variant", "clean",
     "clean: the released rules, errors corrected; asis: as released; paper: as printed, "
     "corrected"},
    {"objects", "",
     "cloned or shared: whether candidates of one decision are objects of their own"},
    {"own-deadline", "",
     "yes or no: a job alone on a GPU must meet its own deadline to be feasible"},
    {"price-whole", "", "yes or no: a job on all SMs is priced like any other"},
    {"compare-waiting", "", "yes or no: waiting for a full GPU competes by energy"},
    {"lookahead", "", "yes or no: schedule coming jobs beside a job on some of the SMs"},
    {"future", "", "by-release or by-task: the order of coming jobs"},
    {"sample", "", "period at which power is summed; 0: integrated"},
    {"step", "4", "difference between the SM counts tried on an idle GPU"},
    {"tolerance", "5", "time by which a job beside another may outlast it"},
    {NULL, NULL, NULL}};

static const struct ws_sbeet_forms variant_clean = {.sample = 1, .step = 4, .tolerance = 5};

static int choice(const struct ws_policy_option *table, const char *const *options,
                  const char *name, const char *off, const char *on, bool *io, char *ret_error,
                  size_t error_bytes)
{
    const char *v = ws_policy_option_text(table, options, name);
    if (!v || !*v)
        return 0;
    if (strcmp(v, on) && strcmp(v, off)) {
        snprintf(ret_error, error_bytes, "%s=%s: %s or %s is wanted", name, v, off, on);
        return WS_POLICY_E_OPTION;
    }
    *io = !strcmp(v, on);
    return 0;
}

static int read_options(struct ws_sbeet_forms *f, const struct ws_policy_option *table,
                        const char *const *options, char *ret_error, size_t error_bytes)
{
    int r = ws_policy_options_check(table, options, ret_error, error_bytes);
    if (r || !table)
        return r;
    const char *v = ws_policy_option_text(table, options, "variant");
    if (!strcmp(v, "asis")) {
        f->shared_objects = true;
    } else if (!strcmp(v, "paper")) {
        f->own_deadline = f->price_whole = f->compare_waiting = f->lookahead = true;
        f->sample = 0;
    } else if (strcmp(v, "clean")) {
        snprintf(ret_error, error_bytes, "variant=%s: clean, asis or paper is wanted", v);
        return WS_POLICY_E_OPTION;
    }
    const struct {
        const char *name, *off, *on;
        bool *io;
    } rows[] = {
        {"objects", "cloned", "shared", &f->shared_objects},
        {"own-deadline", "no", "yes", &f->own_deadline},
        {"price-whole", "no", "yes", &f->price_whole},
        {"compare-waiting", "no", "yes", &f->compare_waiting},
        {"lookahead", "no", "yes", &f->lookahead},
        {"future", "by-release", "by-task", &f->by_task},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
        if ((r = choice(table, options, rows[i].name, rows[i].off, rows[i].on, rows[i].io,
                        ret_error, error_bytes)))
            return r;
    v = ws_policy_option_text(table, options, "sample");
    if (*v && (r = ws_policy_option_number(table, options, "sample", 0, 1e9, &f->sample, ret_error,
                                           error_bytes)))
        return r;
    r = ws_policy_option_number(table, options, "step", 1, WS_SM_MAX, &f->step, ret_error,
                                error_bytes);
    if (!r)
        r = ws_policy_option_number(table, options, "tolerance", 0, 1e12, &f->tolerance, ret_error,
                                    error_bytes);
    return r;
}

int ws_sbeet_make(struct ws_policy **ret, const struct ws_sbeet_rule *rule,
                  const struct ws_policy_option *table, const char *const *options, char *ret_error,
                  size_t error_bytes)
{
    struct ws_sbeet_forms f = variant_clean;
    int r = read_options(&f, table, options, ret_error, error_bytes);
    if (r)
        return r;
    struct ws_sbeet *p = ws_alloc(sizeof(*p));
    if (!p)
        return ws_raise(-ENOMEM);
    p->rule = rule;
    p->forms = f;
    *ret = (struct ws_policy *)p;
    return 0;
}

/* The object behind a policy that ws_sbeet_make() made. */
static struct ws_sbeet *sbeet_of(struct ws_policy *policy)
{
    return (struct ws_sbeet *)policy;
}

static void release(struct ws_sbeet *p)
{
    free(p->gpus);
    free(p->slots);
    free(p->items);
    free(p->rank);
    free(p->n_rank);
    free(p->home);
    free(p->at);
    free(p->at_first);
    free(p->by_size);
    free(p->running);
    free(p->future);
    free(p->ready);
    *p = (struct ws_sbeet){.rule = p->rule, .forms = p->forms};
}

void ws_sbeet_free(struct ws_policy *policy)
{
    struct ws_sbeet *p = sbeet_of(policy);
    if (!p)
        return;
    release(p);
    free(p);
}

/* ---- prepare ---- */

static struct ws_energy_kernel kernel_of(const struct ws_policy_cost *c)
{
    return (struct ws_energy_kernel){.n_sm = c->n_sm,
                                     .wcet = c->wcet,
                                     .power_w = c->power_w,
                                     .h2d = c->h2d,
                                     .d2h = c->d2h,
                                     .dyn_w_per_sm = c->dyn_w_per_sm};
}

static int allocate(struct ws_sbeet *p, const struct ws_policy_system *s)
{
    size_t n = (size_t)WS_MAX(s->n_tasks, 1), k = (size_t)WS_MAX(s->n_gpus, 1);
    p->gpus = ws_alloc_array(k, sizeof(*p->gpus));
    p->items = ws_alloc_array(n * k, sizeof(*p->items));
    p->rank = ws_alloc_array(n * k, sizeof(*p->rank));
    p->n_rank = ws_alloc_array(n, sizeof(*p->n_rank));
    p->home = ws_alloc_array(n, sizeof(*p->home));
    p->at = ws_alloc_array(n, sizeof(*p->at));
    p->at_first = ws_alloc_array(k + 1, sizeof(*p->at_first));
    p->by_size = ws_alloc_array(k, sizeof(*p->by_size));
    p->running = ws_alloc_array(n, sizeof(*p->running));
    p->future = ws_alloc_array(n, sizeof(*p->future));
    return p->gpus && p->items && p->rank && p->n_rank && p->home && p->at && p->at_first &&
                   p->by_size && p->running && p->future
               ? 0
               : ws_raise(-ENOMEM);
}

/* Costs, energy-optimal SM counts and the ranking of GPUs for one task. Return: whether any cost is
 * known. */
static bool prepare_task(struct ws_sbeet *p, int task, double *energy, int *order)
{
    const struct ws_policy_system *s = p->sys;
    int n = 0;
    for (int k = 0; k < s->n_gpus; k++) {
        struct ws_sbeet_item *it = &p->items[(size_t)task * (size_t)s->n_gpus + (size_t)k];
        const struct ws_policy_cost *c =
            s->tasks[task].cost ? &s->tasks[task].cost[s->gpus[k].type] : NULL;
        energy[k] = INFINITY;
        if (!c || c->n_sm < 1)
            continue;
        struct ws_energy_kernel kernel = kernel_of(c);
        it->cost = c;
        it->m_opt = ws_energy_optimal_sms(&p->gpus[k].power, &kernel, p->gpus[k].limit);
        energy[k] = ws_energy_active_mj(&p->gpus[k].power, &kernel, it->m_opt);
    }
    ws_energy_rank(energy, s->n_gpus, order);
    for (int i = 0; i < s->n_gpus; i++)
        if (energy[order[i]] < INFINITY)
            p->rank[(size_t)task * (size_t)s->n_gpus + (size_t)n++] = order[i];
    p->n_rank[task] = n;
    return n > 0;
}

static void list_homes(struct ws_sbeet *p)
{
    int n = 0;
    for (int k = 0; k < p->sys->n_gpus; k++) {
        p->at_first[k] = n;
        for (int i = 0; i < p->sys->n_tasks; i++)
            if (p->home[i] == k)
                p->at[n++] = i;
    }
    p->at_first[p->sys->n_gpus] = n;
}

int ws_sbeet_prepare(struct ws_policy *policy, const struct ws_policy_system *s, char *ret_error,
                     size_t error_bytes)
{
    struct ws_sbeet *p = sbeet_of(policy);
    release(p);
    int r = allocate(p, s);
    if (r)
        return r;
    p->sys = s;
    double *energy = ws_alloc_array((size_t)WS_MAX(s->n_gpus, 1), sizeof(*energy));
    if (!energy)
        return ws_raise(-ENOMEM);
    for (int k = 0; k < s->n_gpus; k++) {
        const struct ws_policy_gpu_type *t = &s->types[s->gpus[k].type];
        p->gpus[k] = (struct ws_sbeet_gpu){
            .power = {.n_sm = t->n_sm, .static_w = t->static_w, .idle_w_per_sm = t->idle_w_per_sm},
            .type = s->gpus[k].type,
            .limit = s->gpus[k].sm_limit,
        };
        energy[k] = -t->n_sm;
    }
    ws_energy_rank(energy, s->n_gpus, p->by_size);
    int unknown = -1;
    for (int i = 0; i < s->n_tasks; i++)
        if (!prepare_task(p, i, energy, p->at_first) && unknown < 0)
            unknown = i;
    free(energy);
    r = ws_sbeet_assign(p, ret_error, error_bytes);
    list_homes(p);
    if (unknown >= 0 && r >= 0) {
        snprintf(ret_error, error_bytes, "task %d (%s): its time is known on no GPU",
                 s->tasks[unknown].id, s->tasks[unknown].name ? s->tasks[unknown].name : "");
        r = WS_POLICY_E_COST;
    }
    return r;
}

/* ---- configurations and prices ---- */

struct ws_sbeet_config ws_sbeet_configure(const struct ws_sbeet *p, int task, double deadline,
                                          int gpu, int n_sm, double start)
{
    const struct ws_policy_cost *cost = ws_sbeet_item(p, task, gpu)->cost;
    struct ws_sbeet_config c = {
        .task = task, .gpu = gpu, .n_sm = n_sm, .start = start, .deadline = deadline};
    if (p->job && p->job->task == task && p->job->moves) {
        c.move_ms = p->job->moves[gpu].ms;
        c.move_mj = p->job->moves[gpu].mj;
    }
    c.gs = start + c.move_ms + cost->h2d;
    c.ge = c.gs + cost->wcet[WS_MIN(n_sm, cost->n_sm) - 1];
    c.fin = c.ge + cost->d2h;
    return c;
}

/* How much of the window of @length that begins at @from a kernel takes that ends at @ge. In
 * samples where power is sampled, otherwise in time. */
static double span(const struct ws_sbeet *p, double ge, double from, double length)
{
    double end = p->forms.sample > 0 ? ceil(ge / p->forms.sample) : ge;
    return ws_lesser(ws_greater(end - from, 0), length);
}

/* The energy of GPU @k in the window, with what runs there and @c, unless NULL, beside it. Kernels
 * end one after another, and between two ends the power is constant, so the sum goes from end to
 * end. */
static double price_gpu(const struct ws_sbeet *p, int k, double from, double length,
                        const struct ws_sbeet_config *c)
{
    const struct ws_sbeet_gpu *g = &p->gpus[k];
    const struct ws_sbeet_slot *slots = &p->slots[g->first];
    bool extra = c && c->gpu == k;
    double extra_w = extra ? c->n_sm * ws_sbeet_item(p, c->task, k)->cost->dyn_w_per_sm : 0;
    double extra_end = extra ? span(p, c->ge, from, length) : 0;
    double sum = 0, done = 0;
    while (done < length) {
        double next = length, w = 0;
        int busy = 0;
        if (extra_end > done) {
            next = extra_end;
            w = extra_w;
            busy = c->n_sm;
        }
        for (int i = 0; i < g->n_slots && g->n_running; i++) {
            double end = slots[i].task < 0 ? 0 : span(p, slots[i].ge, from, length);
            if (end <= done)
                continue;
            next = ws_lesser(next, end);
            w += slots[i].dyn_w;
            busy += slots[i].n_sm;
        }
        sum += (next - done) * ws_energy_power_w(WS_ENERGY_CORRECTED, &g->power, w, busy);
        done = next;
    }
    return sum;
}

double ws_sbeet_price(const struct ws_sbeet *p, double from, double to,
                      const struct ws_sbeet_config *c)
{
    struct ws_sbeet_config there;
    if (c && c->move_ms > 0) {
        there = *c;
        there.ge -= c->move_ms;
        to -= c->move_ms;
        c = &there;
    }
    double sum = 0, length = to - from, scale = 1;
    if (p->forms.sample > 0) { /* times become numbers of samples, half to even as rint() does */
        from = rint(from / p->forms.sample);
        length = rint(to / p->forms.sample) - from + 1;
        scale = p->forms.sample;
    }
    for (int k = 0; k < p->sys->n_gpus; k++)
        sum += price_gpu(p, k, from, length, c);
    return sum * scale + (c ? c->move_mj : 0);
}

/* ---- the schedule of jobs to come ----
 *
 * A configuration is feasible only if the jobs that are released while it runs still meet their
 * deadlines. Their releases follow from offset and period of the tasks that belong to the GPU. */

static bool sooner(const void *arg, const struct ws_sbeet_future *a,
                   const struct ws_sbeet_future *b)
{
    (void)arg;
    return a->release < b->release || (a->release <= b->release && a->task < b->task);
}

WS_HEAP(future_heap, struct ws_sbeet_future, const void *, sooner)

/* The first release of @task whose input has been copied at p->now or later. Releases are at offset
 * + n·period, n ≥ 0. Returns false if the input of that release has not been copied before @end. */
static bool first_release(const struct ws_sbeet *p, int task, double h2d, double end,
                          struct ws_sbeet_future *ret)
{
    const struct ws_policy_task *t = &p->sys->tasks[task];
    if (!(t->period > 0))
        return false;
    double n = ws_greater(0, floor((p->now - h2d - t->offset) / t->period));
    while (t->offset + n * t->period + h2d < p->now)
        n++;
    *ret = (struct ws_sbeet_future){t->offset + n * t->period, task};
    return ret->release + h2d < end;
}

/* Appends @q to the queue of jobs behind one that has the whole GPU until @t. Each job in the queue
 * gets the whole GPU in its turn. Moves
 * @t to the end of the kernel. Returns whether the job meets its deadline. */
static bool queue_in_time(const struct ws_sbeet *p, const struct ws_sbeet_future *q, double *t,
                          int gpu)
{
    double deadline = p->sys->tasks[q->task].deadline;
    struct ws_sbeet_config c =
        ws_sbeet_configure(p, q->task, INFINITY, gpu, p->gpus[gpu].limit, *t);
    *t = c.ge;
    return !(deadline > 0) || !(c.fin > q->release + deadline);
}

/* The released C++ program's order: all coming jobs of one task, then those of the next. */
static bool in_time_by_task(const struct ws_sbeet *p, const struct ws_sbeet_config *c)
{
    double t = c->ge;
    for (int i = p->at_first[c->gpu]; i < p->at_first[c->gpu + 1]; i++) {
        int task = p->at[i];
        double h2d = ws_sbeet_item(p, task, c->gpu)->cost->h2d;
        struct ws_sbeet_future q;
        if (task == c->task || !first_release(p, task, h2d, c->ge, &q))
            continue;
        for (; q.release + h2d < c->ge; q.release += p->sys->tasks[task].period)
            if (!queue_in_time(p, &q, &t, c->gpu))
                return false;
    }
    return true;
}

/* Fills the heap p->future with the next release of each task of the GPU that comes while @c runs.
 * Returns their number. */
static int gather(const struct ws_sbeet *p, const struct ws_sbeet_config *c)
{
    int n = 0;
    for (int i = p->at_first[c->gpu]; i < p->at_first[c->gpu + 1]; i++) {
        int task = p->at[i];
        const struct ws_policy_cost *cost = ws_sbeet_item(p, task, c->gpu)->cost;
        if (task != c->task && cost && first_release(p, task, cost->h2d, c->ge, &p->future[n]))
            n++;
    }
    future_heap_make(NULL, p->future, n);
    return n;
}

/* Takes the earliest job from the heap of @n jobs and inserts the task's next release. Returns the
 * number of jobs in the heap. */
static int next_future(const struct ws_sbeet *p, const struct ws_sbeet_config *c, int n,
                       struct ws_sbeet_future *ret)
{
    const struct ws_sbeet_future q = p->future[0];
    double h2d = ws_sbeet_item(p, q.task, c->gpu)->cost->h2d;
    const struct ws_policy_task *t = &p->sys->tasks[q.task];
    double next = t->offset + (rint((q.release - t->offset) / t->period) + 1) * t->period;
    *ret = q;
    if (next + h2d < c->ge)
        p->future[0].release = next;
    else
        p->future[0] = p->future[--n];
    future_heap_sift(NULL, p->future, n, 0);
    return n;
}

/* Whether the jobs that come while @c has the whole GPU meet their deadlines when they run after
 * it. */
static bool in_time_behind(const struct ws_sbeet *p, const struct ws_sbeet_config *c)
{
    if (p->forms.by_task)
        return in_time_by_task(p, c);
    double t = c->ge;
    struct ws_sbeet_future q;
    for (int n = gather(p, c); n;) {
        n = next_future(p, c, n, &q);
        if (!queue_in_time(p, &q, &t, c->gpu))
            return false;
    }
    return true;
}

enum { MAX_PARTITIONS = 8 };

/* The SMs of a GPU as Alg. 2 divides them: each partition is busy with n_sm SMs until ge. */
struct partitions {
    struct {
        double ge;
        int n_sm;
    } v[MAX_PARTITIONS];
    int n;
};

/* What runs on @c's GPU, and @c, each in a partition; slots that are free are partitions without
 * SMs. */
static struct partitions divide(const struct ws_sbeet *p, const struct ws_sbeet_config *c)
{
    const struct ws_sbeet_gpu *g = &p->gpus[c->gpu];
    struct partitions x = {.v = {{c->ge, c->n_sm}}, .n = 1};
    for (int i = 0; i < g->n_slots && x.n < MAX_PARTITIONS; i++)
        if (p->slots[g->first + i].task >= 0) {
            x.v[x.n].ge = p->slots[g->first + i].ge;
            x.v[x.n++].n_sm = p->slots[g->first + i].n_sm;
        }
    for (; x.n < WS_MIN(g->n_slots, MAX_PARTITIONS); x.n++) {
        x.v[x.n].ge = p->now;
        x.v[x.n].n_sm = 0;
    }
    return x;
}

/* The partition that becomes free first and then finds at least one SM free; if another kernel has
 * all SMs at that time, the next partition is looked at. @most: SMs wanted; @ret_n_sm: SMs to be
 * had. Returns -1 if there is none. */
static int first_free(const struct partitions *x, int limit, int most, int *ret_n_sm)
{
    double after = -INFINITY;
    for (;;) {
        int at = -1, taken = 0;
        for (int i = 0; i < x->n; i++)
            if (x->v[i].ge > after && (at < 0 || x->v[i].ge < x->v[at].ge))
                at = i;
        if (at < 0)
            return -1;
        after = x->v[at].ge;
        for (int i = 0; i < x->n; i++)
            taken += x->v[i].ge > after ? x->v[i].n_sm : 0;
        *ret_n_sm = WS_MAX(WS_MIN(limit - taken, most), 0);
        if (*ret_n_sm)
            return at;
    }
}

/* Whether the jobs that come while @c runs on a part of its GPU meet their deadlines beside it.
 * This is Alg. 2 of RTSS 2021 as it is evidently meant: each coming job goes into the partition
 * that becomes free first, with the SMs that are free then, but with no more than are best for its
 * energy, until @c's kernel has ended. */
static bool in_time_beside(const struct ws_sbeet *p, const struct ws_sbeet_config *c)
{
    struct partitions x = divide(p, c);
    struct ws_sbeet_future q;
    for (int n = gather(p, c); n;) {
        n = next_future(p, c, n, &q);
        const struct ws_sbeet_item *it = ws_sbeet_item(p, q.task, c->gpu);
        int m = 0, at = first_free(&x, p->gpus[c->gpu].limit, it->m_opt, &m);
        if (at < 0 || x.v[at].ge >= c->ge)
            return true;
        double start = ws_greater(x.v[at].ge - it->cost->h2d, q.release);
        struct ws_sbeet_config cq = ws_sbeet_configure(p, q.task, INFINITY, c->gpu, m, start);
        double deadline = p->sys->tasks[q.task].deadline;
        if (deadline > 0 && cq.fin > q.release + deadline)
            return false;
        x.v[at].ge = cq.ge;
        x.v[at].n_sm = m;
    }
    return true;
}

bool ws_sbeet_feasible(const struct ws_sbeet *p, const struct ws_sbeet_config *c)
{
    const struct ws_sbeet_gpu *g = &p->gpus[c->gpu];
    bool in_time = c->fin <= c->deadline;
    if (c->n_sm == g->limit && !g->n_running)
        return (in_time || !p->forms.own_deadline) && in_time_behind(p, c);
    return in_time && (!p->forms.lookahead || in_time_beside(p, c));
}

/* ---- sBEET on one GPU ---- */

/* Chooses the number of SMs on an idle GPU: of the feasible ones the one that takes the least
 * energy; if none is feasible, the one that takes the least energy of all. Returns whether the
 * choice is feasible. */
static bool on_idle_gpu(struct ws_sbeet *p, int task, double deadline, int gpu,
                        struct ws_sbeet_choice *ret)
{
    struct ws_sbeet_gpu *g = &p->gpus[gpu];
    bool ok = false;
    ret->energy = INFINITY;
    for (int m = g->limit; m > 0; m -= (int)p->forms.step) {
        struct ws_sbeet_config c = ws_sbeet_configure(p, task, deadline, gpu, m, p->now);
        bool feasible = ws_sbeet_feasible(p, &c);
        if (ok && !feasible)
            continue;
        bool whole = m == g->limit && !p->forms.price_whole;
        double e = whole ? ws_sbeet_price(p, p->now, c.ge - c.move_ms, NULL) + c.move_mj
                         : ws_sbeet_price(p, p->now, c.ge, &c);
        if ((feasible && !ok) || e < ret->energy) {
            ret->energy = e;
            ret->c = c;
        }
        ok |= feasible;
    }
    return ok;
}

bool ws_sbeet_on_gpu(struct ws_sbeet *p, int task, double deadline, int gpu,
                     struct ws_sbeet_choice *ret, bool *ret_found, bool *ret_own)
{
    enum { SMALL_GPU_SMS = 6 }; /* up to here the released scheduler does not divide a GPU */
    const struct ws_sbeet_gpu *g = &p->gpus[gpu];
    *ret_found = *ret_own = false;
    if (!ws_sbeet_item(p, task, gpu)->cost || ws_sbeet_barred(p, gpu))
        return false;
    *ret = (struct ws_sbeet_choice){.energy = NAN, .other_energy = NAN};
    if (ws_sbeet_idle(g) && g->limit > SMALL_GPU_SMS) {
        *ret_found = true;
        p->steady = false; /* which jobs come during the window depends on the time */
        return on_idle_gpu(p, task, deadline, gpu, ret);
    }
    /* A small idle GPU is given to the job whole. On a GPU at work, the job gets the SMs that are
     * left, provided that its kernel ends no later than the last job there, give or take the
     * tolerance. */
    ret->c = ws_sbeet_configure(p, task, deadline, gpu, g->limit - g->used, p->now);
    p->object = ret->c;
    *ret_own = true;
    bool ok = ret->c.fin <= deadline;
    if (ws_sbeet_idle(g)) {
        *ret_found = true;
        return ok;
    }
    double last = p->now;
    for (int i = 0; i < g->n_slots; i++)
        if (p->slots[g->first + i].task >= 0)
            last = ws_greater(last, p->slots[g->first + i].fin);
    ok &= ret->c.ge <= last + p->forms.tolerance;
    *ret_found = ok;
    return ok;
}

bool ws_sbeet_choose_there(struct ws_sbeet *p, int task, double deadline, int gpu,
                           struct ws_sbeet_choice *ret)
{
    const struct ws_sbeet_item *it = ws_sbeet_item(p, task, gpu);
    const struct ws_sbeet_gpu *g = &p->gpus[gpu];
    if (!it->cost || ws_sbeet_barred(p, gpu))
        return false;
    ret->c =
        ws_sbeet_configure(p, task, deadline, gpu, WS_MIN(it->m_opt, g->limit - g->used), p->now);
    return true;
}

bool ws_sbeet_choose_near(struct ws_sbeet *p, int task, double deadline, int gpu,
                          struct ws_sbeet_choice *ret)
{
    int best = gpu;
    if (ws_sbeet_full(&p->gpus[gpu]))
        return false;
    for (int k = 0; k < p->sys->n_gpus; k++)
        if (ws_policy_nearer(p->job, k, best) && ws_policy_alike(p->sys, k, gpu) &&
            !ws_sbeet_full(&p->gpus[k]) && p->gpus[k].used <= p->gpus[gpu].used)
            best = k;
    return ws_sbeet_choose_there(p, task, deadline, best, ret);
}

/* ---- the job's own GPU ---- */

double ws_sbeet_free_again(const struct ws_sbeet *p, int x, int m_opt)
{
    const struct ws_sbeet_gpu *g = &p->gpus[x];
    const struct ws_sbeet_slot *slots = &p->slots[g->first];
    double after = -INFINITY, t = p->now;
    for (int n = 0; n < g->n_running; n++) {
        int at = -1, busy = 0;
        for (int i = 0; i < g->n_slots;
             i++) /* of kernels that end together, the last in the list */
            if (slots[i].task >= 0 && slots[i].ge > after &&
                (at < 0 || slots[i].ge <= slots[at].ge))
                at = i;
        if (at < 0) /* all that are left end together with the one before */
            break;
        t = slots[at].fin;
        after = slots[at].ge;
        for (int i = 0; i < g->n_slots; i++)
            if (slots[i].task >= 0 && t < slots[i].ge)
                busy += slots[i].n_sm;
        if (g->limit - busy >= m_opt)
            return t;
    }
    return t;
}

/* How busy a GPU is. 0: idle, 1: at work, 2: full. */
static int business(const struct ws_sbeet_gpu *g)
{
    return ws_sbeet_full(g) ? 2 : !ws_sbeet_idle(g);
}

/* Whether GPU @k, where the job's data is nearer, serves the job as well as @x: it is no busier, or
 * the job ends there no later, although it may wait there while it would have to move its data to
 * @x. */
static bool as_good(const struct ws_sbeet *p, int task, double deadline, int k, int x)
{
    const struct ws_sbeet_gpu *a = &p->gpus[k], *b = &p->gpus[x];
    const struct ws_sbeet_item *it = ws_sbeet_item(p, task, k);
    if (!it->cost || !a->usable)
        return false;
    if (ws_sbeet_barred(p, x))
        return true;
    if (!ws_policy_alike(p->sys, k, x))
        return false;
    if (business(a) <= business(b))
        return true;
    struct ws_sbeet_config there = ws_sbeet_configure(p, task, deadline, k, it->m_opt,
                                                      ws_sbeet_free_again(p, k, it->m_opt)),
                           here = ws_sbeet_configure(p, task, deadline, x, it->m_opt, p->now);
    return there.fin <= here.fin;
}

int ws_sbeet_own_gpu(const struct ws_sbeet *p, int task, double deadline)
{
    int x = p->home[task];
    for (int k = 0; x >= 0 && p->job && p->job->moves && k < p->sys->n_gpus; k++)
        if (ws_policy_nearer(p->job, k, x) && as_good(p, task, deadline, k, x))
            x = k;
    return x;
}

/* A job whose cost is known nowhere runs alone on the first idle GPU. */
static bool choose_unknown(struct ws_sbeet *p, int task, double deadline,
                           struct ws_sbeet_choice *ret)
{
    for (int k = 0; k < p->sys->n_gpus; k++)
        if (ws_sbeet_idle(&p->gpus[k])) {
            ret->c = (struct ws_sbeet_config){.task = task,
                                              .gpu = k,
                                              .n_sm = p->gpus[k].limit,
                                              .start = p->now,
                                              .gs = p->now,
                                              .ge = p->now,
                                              .fin = p->now,
                                              .deadline = deadline};
            ret->reason = "its cost is unknown: alone on the first idle GPU";
            return true;
        }
    ret->reason = "its cost is unknown: it waits for an idle GPU";
    return false;
}

/* ---- the pass ---- */

/* Copies the state of all GPUs from the snapshot. */
static int load(struct ws_sbeet *p, const struct ws_policy_snapshot *snap)
{
    const struct ws_policy_system *s = p->sys;
    size_t n = 0;
    for (int k = 0; k < s->n_gpus; k++)
        n += (size_t)snap->gpus[k].n_slots;
    void *v = p->slots;
    if (n > p->cap_slots && ws_grow(&v, &p->cap_slots, n, sizeof(*p->slots)))
        return ws_raise(-ENOMEM);
    p->slots = v;
    p->now = snap->now;
    int first = 0;
    for (int k = 0; k < s->n_gpus; k++) {
        const struct ws_policy_gpu_state *from = &snap->gpus[k];
        struct ws_sbeet_gpu *g = &p->gpus[k];
        g->first = first;
        g->n_slots = from->n_slots;
        g->n_running = g->used = 0;
        g->usable = from->power == WS_GPU_ON;
        g->taken = (struct ws_sm_set){0};
        first += from->n_slots;
        for (int i = 0; i < from->n_slots; i++) {
            const struct ws_policy_run *r = &from->slots[i];
            struct ws_sbeet_slot *slot = &p->slots[g->first + i];
            slot->task = -1;
            if (r->job < 0)
                continue;
            const struct ws_policy_cost *cost = ws_sbeet_item(p, r->task, k)->cost;
            *slot = (struct ws_sbeet_slot){.task = r->task,
                                           .n_sm = r->n_sm,
                                           .ge = r->gpu_end,
                                           .fin = r->end,
                                           .dyn_w = cost ? r->n_sm * cost->dyn_w_per_sm : 0};
            g->n_running++;
            g->used += r->n_sm;
            for (size_t b = 0; b < WS_ARRAY_SIZE(g->taken.bits); b++)
                g->taken.bits[b] |= r->sms.bits[b];
        }
    }
    return 0;
}

static bool all_full(const struct ws_sbeet *p)
{
    for (int k = 0; k < p->sys->n_gpus; k++)
        if (!ws_sbeet_full(&p->gpus[k]))
            return false;
    return true;
}

/* Priority, then arrival. */
static bool before(const struct ws_policy_snapshot *s, const int *a, const int *b)
{
    const struct ws_policy_job *x = &s->jobs[*a], *y = &s->jobs[*b];
    int px = s->system->tasks[x->task].priority, py = s->system->tasks[y->task].priority;
    return px != py ? px > py : x->seq < y->seq;
}

WS_HEAP(ready_heap, int, const struct ws_policy_snapshot *, before)

/* Fills p->ready; marks the tasks of all other jobs as running. Return: how many are ready, or
 * negative. */
static int gather_ready(struct ws_sbeet *p, const struct ws_policy_snapshot *snap)
{
    void *v = p->ready;
    if ((size_t)snap->n_jobs > p->cap_ready &&
        ws_grow(&v, &p->cap_ready, (size_t)snap->n_jobs, sizeof(*p->ready)))
        return ws_raise(-ENOMEM);
    p->ready = v;
    int n = 0;
    for (int i = 0; i < snap->n_jobs; i++) {
        if (snap->jobs[i].state == WS_JOB_WAITING)
            p->ready[n++] = i;
        else
            p->running[snap->jobs[i].task] = true;
    }
    ready_heap_make(snap, p->ready, n);
    return n;
}

/* Enters a chosen configuration into the copied state, and chooses which SMs it gets. */
static void place(struct ws_sbeet *p, const struct ws_sbeet_config *c, struct ws_sm_set *ret_sms)
{
    struct ws_sbeet_gpu *g = &p->gpus[c->gpu];
    const struct ws_policy_cost *cost = ws_sbeet_item(p, c->task, c->gpu)->cost;
    int i = g->first;
    while (i < g->first + g->n_slots - 1 && p->slots[i].task >= 0)
        i++;
    p->slots[i] = (struct ws_sbeet_slot){.task = c->task,
                                         .n_sm = c->n_sm,
                                         .ge = c->ge,
                                         .fin = c->fin,
                                         .dyn_w = cost ? c->n_sm * cost->dyn_w_per_sm : 0};
    g->n_running++;
    g->used += c->n_sm;
    p->running[c->task] = true;
    *ret_sms = (struct ws_sm_set){0};
    ws_sm_set_take(ret_sms, &g->taken, (unsigned)g->limit, (unsigned)c->n_sm);
    for (size_t b = 0; b < WS_ARRAY_SIZE(g->taken.bits); b++)
        g->taken.bits[b] |= ret_sms->bits[b];
}

static int say_wait(const struct ws_policy_snapshot *snap, int job,
                    const struct ws_sbeet_choice *choice, struct ws_policy_decisions *ret)
{
    if (!snap->explain)
        return 0;
    struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_WAIT, job, -1);
    if (!d)
        return ws_raise(-ENOMEM);
    ws_policy_explain(snap, d, "%s", choice->reason ? choice->reason : "no GPU takes it now");
    return 0;
}

static int start(struct ws_sbeet *p, const struct ws_policy_snapshot *snap, int job,
                 const struct ws_sbeet_choice *choice, struct ws_policy_decisions *ret)
{
    const struct ws_sbeet_config *c = &choice->c;
    struct ws_policy_decision *d = ws_policy_decide(ret, WS_DECIDE_START, job, c->gpu);
    if (!d)
        return ws_raise(-ENOMEM);
    place(p, c, &d->sms);
    d->n_sm = c->n_sm;
    d->at = snap->now;
    d->gpu_start = c->gs;
    d->gpu_end = c->ge;
    d->end = c->fin;
    d->energy = choice->energy;
    if (!snap->explain)
        return 0;
    if (isnan(choice->other_energy))
        ws_policy_explain(snap, d, "%s: %d SMs of GPU %d until %.6g, deadline %.6g", choice->reason,
                          c->n_sm, c->gpu, c->fin, c->deadline);
    else
        ws_policy_explain(
            snap, d,
            "%s: %d SMs of GPU %d until %.6g, deadline %.6g; %.6g mJ, next best of %d %.6g mJ",
            choice->reason, c->n_sm, c->gpu, c->fin, c->deadline, choice->energy,
            choice->n_candidates, choice->other_energy);
    return 0;
}

int ws_sbeet_decide(struct ws_policy *policy, const struct ws_policy_snapshot *snap,
                    const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    struct ws_sbeet *p = sbeet_of(policy);
    (void)event; /* whatever happened, the pass is the same */
    int r = load(p, snap);
    ret->steady = !r;
    if (r || all_full(p))
        return r;
    bool waits = false;
    p->steady = true;
    int n = gather_ready(p, snap);
    r = WS_MIN(n, 0);
    while (n > 0 && !r && !all_full(p)) {
        int job = p->ready[0];
        const struct ws_policy_job *j = &snap->jobs[job];
        p->ready[0] = p->ready[--n];
        ready_heap_sift(snap, p->ready, n, 0);
        struct ws_sbeet_choice choice = {.energy = NAN, .other_energy = NAN};
        p->job = j;
        if (p->running[j->task]) {
            choice.reason = "an earlier job of its task still runs";
            r = say_wait(snap, job, &choice, ret);
        } else if (p->n_rank[j->task] ? p->rule->choose(p, j->task, j->deadline, &choice)
                                      : choose_unknown(p, j->task, j->deadline, &choice)) {
            r = start(p, snap, job, &choice, ret);
            p->steady &= !waits; /* jobs that wait were asked before this job was placed */
        } else {
            r = say_wait(snap, job, &choice, ret);
            waits = true;
        }
    }
    p->job = NULL;
    ret->steady = p->steady && !r;
    memset(p->running, 0, (size_t)p->sys->n_tasks * sizeof(*p->running));
    return r;
}

/* ---- reports ---- */

bool ws_sbeet_is(const struct ws_policy_ops *ops)
{
    return ops->decide == ws_sbeet_decide;
}

int ws_sbeet_home(const struct ws_policy *policy, int task)
{
    return ((const struct ws_sbeet *)policy)->home[task];
}

int ws_sbeet_optimal_sms(const struct ws_policy *policy, int task, int gpu)
{
    return ws_sbeet_item((const struct ws_sbeet *)policy, task, gpu)->m_opt;
}

int ws_sbeet_ranking(const struct ws_policy *policy, int task, const int **ret)
{
    const struct ws_sbeet *p = (const struct ws_sbeet *)policy;
    *ret = &p->rank[(size_t)task * (size_t)p->sys->n_gpus];
    return p->n_rank[task];
}

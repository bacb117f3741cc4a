// SPDX-License-Identifier: Apache-2.0
/* Finding a plan. The SMs of a GPU are one home, or two if it has two slots. How they are divided
 * is the same for all GPUs of a type. For each such choice, tasks get homes by rising deadlines,
 * each the one where it takes the least of SMs times time of those that then pass the test of
 * Jeffay, Stanat and Martel (RTSS 1991) for earliest deadline first without preemption: for each
 * time L at which a deadline may come after the release of all tasks at once,
 *     max {C_i : D_i > L} + Σ_i C_i·(floor((L - D_i) / T_i) + 1) ≤ L,
 * where C is the length of a job, and T the least separation of releases. Tasks without deadlines
 * are in the first term only. Of the plans that pass, the one whose fullest home is the least full
 * is taken. The search is bounded by a count of steps. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/minmax.h"
#include "policy/lookahead/fallback.h"

enum {
    SPLITS = 4,          /* ways to divide the SMs of a GPU */
    SPLIT_TYPES_MAX = 3, /* types of GPUs that are divided in ways of their own */
    STEPS_MAX = 3000000, /* looks at a task, in the search for a plan */
    SLACK_STEPS_MAX = 4096
};
/* Jobs count as longer by this, more than what rounding makes of a sum of times. */
#define LONGER 1e-6
/* Of slack, that counts as none. */
#define NONE 1e-7
/* The largest load of a home: nearer to 1, tests would take too long. */
#define LOAD_MAX 0.98

void ws_fallback_deinit(struct ws_fallback *f)
{
    free(f->homes);
    free(f->tasks);
    free(f->order);
    free(f->ready);
    *f = (struct ws_fallback){0};
}

/* ---- a plan ---- */

/* The length of a job on at most @n_sm SMs of @gpu; INFINITY: unknown. */
static double length_on(const struct ws_policy_system *s, int task, int gpu, int n_sm,
                        int *ret_n_sm)
{
    const struct ws_policy_cost *c = s->tasks[task].cost;
    double least = INFINITY;
    if (!c)
        return INFINITY;
    c += s->gpus[gpu].type;
    for (int m = 1; m <= WS_MIN(n_sm, c->n_sm); m++)
        if (c->wcet[m - 1] < least) {
            least = c->wcet[m - 1];
            *ret_n_sm = m;
        }
    return c->h2d + least + c->d2h + LONGER;
}

static double blocking(const struct ws_fallback *f, int home, double within)
{
    double most = 0;
    for (int i = 0; i < f->sys->n_tasks; i++)
        if (f->tasks[i].home == home && f->tasks[i].deadline > within)
            most = ws_greater(most, f->tasks[i].length);
    return most;
}

/* Of @tasks, the one whose next deadline is the earliest; -1: none has one. */
static int next_deadline(const struct ws_fallback *f, const int *tasks, int n)
{
    int first = -1;
    for (int i = 0; i < n; i++)
        if (f->tasks[tasks[i]].next < INFINITY &&
            (first < 0 || f->tasks[tasks[i]].next < f->tasks[first].next))
            first = tasks[i];
    return first;
}

/* Jeffay's test of @tasks, which are those of @home. */
static bool passes(struct ws_fallback *f, int home, const int *tasks, int n)
{
    double load = 0, all = 0, demand = 0;
    for (int i = 0; i < n; i++) {
        struct ws_fallback_task *t = &f->tasks[tasks[i]];
        if (t->length > t->deadline)
            return false;
        load += t->deadline < INFINITY ? t->length / t->separation : 0;
        all += t->deadline < INFINITY ? t->length : 0;
        t->next = t->deadline;
    }
    all += blocking(f, home, 0);
    if (load > LOAD_MAX)
        return false;
    for (int i; (i = next_deadline(f, tasks, n)) >= 0;) {
        struct ws_fallback_task *t = &f->tasks[i];
        double within = t->next;
        if (within * (1 - load) >= all)
            break; /* from here on the test is passed */
        f->n_steps += (uint64_t)(n + f->sys->n_tasks);
        if (f->n_steps > STEPS_MAX)
            return false;
        demand += t->length;
        t->next += t->separation;
        if (demand + blocking(f, home, within) > within)
            return false;
    }
    return true;
}

/* Puts @task to the best home that takes it. f->order is used for the tasks of a home. */
static bool place(struct ws_fallback *f, int task)
{
    struct ws_fallback_task *t = &f->tasks[task];
    struct ws_fallback_task best = {.home = -1};
    double least = INFINITY;
    for (int h = 0; h < f->n_homes; h++) {
        const struct ws_fallback_home *home = &f->homes[h];
        t->length = length_on(f->sys, task, home->gpu, home->n_sm, &t->n_sm);
        double area = t->length * t->n_sm / f->sys->gpus[home->gpu].sm_limit;
        if (isinf(t->length) || area >= least)
            continue;
        t->home = h;
        int n = 0;
        for (int i = 0; i < f->sys->n_tasks; i++)
            if (f->tasks[i].home == h)
                f->order[n++] = i;
        if (passes(f, h, f->order, n)) {
            best = *t;
            least = area;
        }
    }
    *t = (struct ws_fallback_task){.home = best.home,
                                   .n_sm = best.n_sm,
                                   .length = best.length,
                                   .separation = t->separation,
                                   .deadline = t->deadline};
    return best.home >= 0;
}

/* A GPU's SMs are divided into two homes of these quarters, or are one. */
static int first_part(int n_sm, int split)
{
    return split ? n_sm * split / SPLITS : n_sm;
}

static int split_of(const struct ws_policy_gpu *g, int choice)
{
    for (int i = WS_MIN(g->type, SPLIT_TYPES_MAX - 1); i > 0; i--)
        choice /= SPLITS;
    return choice % SPLITS;
}

static void make_homes(struct ws_fallback *f, int choice)
{
    f->n_homes = 0;
    for (int k = 0; k < f->sys->n_gpus; k++) {
        const struct ws_policy_gpu *g = &f->sys->gpus[k];
        int split = g->n_slots < 2 ? 0 : split_of(g, choice), n = first_part(g->sm_limit, split);
        if (n > 0)
            f->homes[f->n_homes++] = (struct ws_fallback_home){.gpu = k, .n_sm = n};
        if (g->sm_limit > n)
            f->homes[f->n_homes++] = (struct ws_fallback_home){.gpu = k, .n_sm = g->sm_limit - n};
    }
}

/* Return: whether all tasks have homes. @by_deadline: the tasks. */
static bool plan(struct ws_fallback *f, int choice, const int *by_deadline)
{
    make_homes(f, choice);
    for (int i = 0; i < f->sys->n_tasks; i++)
        f->tasks[i].home = -1;
    for (int i = 0; i < f->sys->n_tasks; i++)
        if (!place(f, by_deadline[i]))
            return false;
    for (int h = 0, n = 0; h < f->n_homes; h++) {
        struct ws_fallback_home *home = &f->homes[h];
        home->first = n;
        for (int i = 0; i < f->sys->n_tasks; i++)
            if (f->tasks[i].home == h) {
                f->order[n++] = i;
                home->load += f->tasks[i].length / f->tasks[i].separation;
            }
        home->n_tasks = n - home->first;
    }
    return true;
}

static double fullest(const struct ws_fallback *f)
{
    double most = 0;
    for (int h = 0; h < f->n_homes; h++)
        most = ws_greater(most, f->homes[h].load);
    return most;
}

static int search(struct ws_fallback *f)
{
    int n = f->sys->n_tasks, n_choices = 1, best = -1;
    int *by_deadline = ws_alloc_array((size_t)n, sizeof(int));
    double least = INFINITY;
    if (!by_deadline)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < n; i++) {
        int k = i;
        for (; k > 0 && f->tasks[by_deadline[k - 1]].deadline > f->tasks[i].deadline; k--)
            by_deadline[k] = by_deadline[k - 1];
        by_deadline[k] = i;
    }
    for (int i = 0; i < WS_MIN(f->sys->n_types, SPLIT_TYPES_MAX); i++)
        n_choices *= SPLITS;
    for (int choice = 0; choice < n_choices; choice++)
        if (plan(f, choice, by_deadline) && fullest(f) < least) {
            least = fullest(f);
            best = choice;
        }
    f->n_steps = 0;
    f->holds = best >= 0 && plan(f, best, by_deadline);
    free(by_deadline);
    return 0;
}

/* Where copies may wait for one another, lengths are not known. */
static bool is_predictable(const struct ws_policy_system *s)
{
    for (int k = 0; k < s->n_gpus; k++)
        if (s->gpus[k].n_copy_engines > 0 && s->gpus[k].n_copy_engines < s->gpus[k].n_slots)
            return false;
    return s->n_tasks > 0;
}

int ws_fallback_prepare(struct ws_fallback *f, const struct ws_policy_system *s)
{
    ws_fallback_deinit(f);
    f->sys = s;
    f->tasks = ws_alloc_array((size_t)WS_MAX(s->n_tasks, 1), sizeof(*f->tasks));
    f->order = ws_alloc_array((size_t)WS_MAX(s->n_tasks, 1), sizeof(*f->order));
    f->homes = ws_alloc_array(2 * (size_t)WS_MAX(s->n_gpus, 1), sizeof(*f->homes));
    if (!f->tasks || !f->order || !f->homes)
        return ws_raise(-ENOMEM);
    if (!is_predictable(s))
        return 0;
    for (int i = 0; i < s->n_tasks; i++) {
        const struct ws_policy_task *t = &s->tasks[i];
        bool timed = t->deadline > 0;
        if (timed && !(t->period - t->jitter > 0))
            return 0; /* any number of jobs at once */
        f->tasks[i].deadline = timed ? t->deadline : INFINITY;
        f->tasks[i].separation = timed ? t->period - t->jitter : INFINITY;
    }
    return search(f);
}

/* ---- what is the case ---- */

static int ready_by_deadline(const void *a, const void *b)
{
    const struct ws_fallback_job *x = a, *y = b;
    int order = (x->deadline > y->deadline) - (x->deadline < y->deadline);
    return order ? order : x->job - y->job;
}

static const struct ws_policy_job *running(const struct ws_policy_snapshot *snap,
                                           const struct ws_policy_run *run)
{
    return run->job >= 0 ? &snap->jobs[run->job] : NULL;
}

/* Where the job of a run was put when it was started; NULL: on no home. */
static struct ws_fallback_home *home_of(struct ws_fallback *f, int gpu, uint64_t job_id)
{
    for (int h = 0; h < f->n_homes; h++)
        if (f->homes[h].taken && f->homes[h].gpu == gpu && f->homes[h].job_id == job_id)
            return &f->homes[h];
    return NULL;
}

static void load_gpu(struct ws_fallback *f, const struct ws_policy_snapshot *snap, int gpu)
{
    double whole = snap->now; /* from when on no run is on no home */
    bool blocked = false;
    for (int i = 0; i < snap->gpus[gpu].n_slots; i++) {
        const struct ws_policy_run *run = &snap->gpus[gpu].slots[i];
        const struct ws_policy_job *j = running(snap, run);
        struct ws_fallback_home *home = j ? home_of(f, gpu, j->id) : NULL;
        if (home)
            home->free_at = ws_greater(run->end, snap->now);
        else if (j)
            whole = ws_greater(whole, run->end);
        blocked |= j && !home;
    }
    for (int h = 0; h < f->n_homes; h++) {
        struct ws_fallback_home *home = &f->homes[h];
        if (home->gpu != gpu)
            continue;
        home->taken &= home->free_at > -INFINITY;
        home->blocked = blocked;
        home->free_at = ws_greater(home->free_at, whole);
    }
}

int ws_fallback_load(struct ws_fallback *f, const struct ws_policy_snapshot *snap,
                     const double *last)
{
    void *v = f->ready;
    if (ws_grow(&v, &f->cap_ready, (size_t)snap->n_jobs + 1, sizeof(*f->ready)))
        return ws_raise(-ENOMEM);
    f->ready = v;
    f->now = snap->now;
    f->n_ready = 0;
    for (int h = 0; h < f->n_homes; h++)
        f->homes[h].free_at = -INFINITY;
    for (int k = 0; k < f->sys->n_gpus; k++)
        load_gpu(f, snap, k);
    for (int i = 0; i < f->sys->n_tasks; i++)
        f->tasks[i].earliest = ws_greater(snap->now, last[i] + f->tasks[i].separation);
    for (int i = 0; i < snap->n_jobs; i++) {
        const struct ws_policy_job *j = &snap->jobs[i];
        if (j->state != WS_JOB_RUNNING)
            f->ready[f->n_ready++] = (struct ws_fallback_job){
                j->deadline > snap->now ? j->deadline : INFINITY, j->task, i};
    }
    qsort(f->ready, (size_t)f->n_ready, sizeof(*f->ready), ready_by_deadline);
    return 0;
}

/* ---- slack ---- */

/* The first job of @home from the @from-th ready one on, that is not @without. */
static int next_ready(const struct ws_fallback *f, int home, int from, int without)
{
    while (from < f->n_ready &&
           (f->tasks[f->ready[from].task].home != home || f->ready[from].job == without))
        from++;
    return from;
}

/* The time that is left at the deadline where least is left, if @home is free from @free_at on and
 * job @without has gone. */
static double slack(struct ws_fallback *f, int home, double free_at, int without)
{
    const struct ws_fallback_home *h = &f->homes[home];
    const int *tasks = &f->order[h->first];
    double all = 0, demand = 0, least = INFINITY;
    for (int i = 0; i < h->n_tasks; i++) {
        struct ws_fallback_task *t = &f->tasks[tasks[i]];
        t->next = t->earliest + t->deadline;
        all += t->deadline < INFINITY ? t->length : 0;
    }
    for (int i = next_ready(f, home, 0, without); i < f->n_ready;
         i = next_ready(f, home, i + 1, without))
        all += f->ready[i].deadline < INFINITY ? f->tasks[f->ready[i].task].length : 0;
    for (int n = 0, r = next_ready(f, home, 0, without);; n++) {
        int task = next_deadline(f, tasks, h->n_tasks);
        double released = r < f->n_ready ? f->ready[r].deadline : INFINITY;
        double coming = task >= 0 ? f->tasks[task].next : INFINITY;
        double d = ws_lesser(released, coming);
        /* Demand grows by no more than this from here on. */
        if (isinf(d) || d - free_at - all - h->load * (d - f->now) >= least)
            return least;
        if (n == SLACK_STEPS_MAX)
            return -INFINITY;
        if (released <= coming) {
            demand += f->tasks[f->ready[r].task].length;
            r = next_ready(f, home, r + 1, without);
        } else {
            demand += f->tasks[task].length;
            f->tasks[task].next += f->tasks[task].separation;
        }
        least = ws_lesser(least, d - free_at - demand);
    }
}

static bool is_free(const struct ws_fallback *f, int home)
{
    return !f->homes[home].taken && !f->homes[home].blocked;
}

/* On which home a start is to be counted, so that the plan can be followed. */
enum { NOWHERE = -2, WHOLE = -1 };
static int find_home(struct ws_fallback *f, int job, int gpu, int n_sm, double end)
{
    bool whole = true;
    for (int h = 0; h < f->n_homes; h++) {
        if (f->homes[h].gpu != gpu)
            continue;
        if (is_free(f, h) && n_sm <= f->homes[h].n_sm && slack(f, h, end, job) >= 0)
            return h;
        whole = whole && slack(f, h, ws_greater(end, f->homes[h].free_at), job) >= 0;
    }
    return whole ? WHOLE : NOWHERE;
}

bool ws_fallback_allows(struct ws_fallback *f, int job, int gpu, int n_sm, double end)
{
    return find_home(f, job, gpu, n_sm, end) != NOWHERE;
}

static int home_of_job(const struct ws_fallback *f, int job)
{
    for (int i = 0; i < f->n_ready; i++)
        if (f->ready[i].job == job)
            return f->tasks[f->ready[i].task].home;
    return -1;
}

void ws_fallback_started(struct ws_fallback *f, const struct ws_policy_snapshot *snap, int job,
                         int gpu, int n_sm, double end)
{
    int own = home_of_job(f, job), home = find_home(f, job, gpu, n_sm, end), n = 0;
    /* A start of the plan itself, which rounding has made late, is counted where it belongs. */
    if (home < 0 && own >= 0 && f->homes[own].gpu == gpu && is_free(f, own) &&
        n_sm <= f->homes[own].n_sm)
        home = own;
    for (int h = 0; h < f->n_homes; h++)
        if (f->homes[h].gpu == gpu && (h == home || home < 0)) {
            f->homes[h].free_at = ws_greater(f->homes[h].free_at, end);
            f->homes[h].blocked |= home < 0;
        }
    if (home >= 0) {
        f->homes[home].taken = true;
        f->homes[home].job_id = snap->jobs[job].id;
    }
    for (int i = 0; i < f->n_ready; i++)
        if (f->ready[i].job != job)
            f->ready[n++] = f->ready[i];
    f->n_ready = n;
}

int ws_fallback_next(struct ws_fallback *f, int home, int *ret_gpu, int *ret_n_sm, double *ret_by)
{
    int i = next_ready(f, home, 0, -1);
    if (!is_free(f, home) || i == f->n_ready)
        return -1;
    *ret_gpu = f->homes[home].gpu;
    *ret_n_sm = f->tasks[f->ready[i].task].n_sm;
    *ret_by = INFINITY;
    if (f->ready[i].deadline < INFINITY)
        *ret_by = f->now + ws_greater(0, slack(f, home, f->now, -1) - NONE);
    return f->ready[i].job;
}

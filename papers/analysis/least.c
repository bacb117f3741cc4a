// SPDX-License-Identifier: Apache-2.0
/* The search for prices.
 *
 * Releases and deadlines divide time into intervals. A schedule satisfies, in each interval i of
 * length l(i) on each GPU k:
 *   slots:  Σ_j x(j) ≤ slots(k)·y          price mu(k, i)
 *   SMs:    Σ_j m(j)·x(j) ≤ SMs(k)·y       price lambda(k, i)
 *   awake:  x(j) ≤ y for each job j        price pi(j, k, i), only where energy is counted
 * where x(j) is the time for which job j is on the GPU, and y ≤ l(i) the time for which it is awake
 * (l(i), where misses are counted). With prices ≥ 0,
 *   L = Σ_j min over places of j (own cost + ∫ mu + m·lambda + pi) + Σ_ki min over y of y·c(k, i)
 * is at most the cost of every schedule, where c = awake power - slots·mu - SMs·lambda - Σ_j pi. A
 * place is a GPU, a number of SMs, and a start from which the job ends by its deadline. Prices are
 * constant in an interval, so that the best start is one where the job starts or ends at a border
 * of intervals. To miss is one more place where misses are counted; it costs 1.
 *
 * What a place uses above or below what there is says in which direction a price goes (a
 * subgradient), the gap to what a policy reached says how far (Polyak's rule). */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/minmax.h"
#include "papers/analysis/least.h"

enum { PATIENCE = 10 }; /* rounds without gain after which the step is halved */
/* What rounding in sums may amount to. */
#define SLIP 1e-9
/* Of the direction of the last round, in the next one: prices swing less. */
#define KEPT 0.9

struct job {
    int task, first, last; /* it is released at border first, and its deadline is border last */
    size_t pi;             /* of its first interval on GPU 0; those on GPU k follow */
};
/* An interval of a GPU. */
struct least_cell {
    double mu, lambda, pi;     /* prices; pi is the sum of the jobs' */
    double slots, sms, most;   /* used; by the job that uses most */
    double way_mu, way_lambda; /* in which the prices go */
    double awake;
};
/* The price pi of one job, in an interval of a GPU. */
struct presence {
    double pi, used, way;
};
struct price_search {
    const struct ws_policy_system *sys;
    const struct ws_least *l;
    bool energy;
    double *borders;
    struct job *jobs;
    struct least_cell *cells;        /* [n_gpus][n_cells] */
    struct presence *presences;      /* only where energy is counted */
    double *sum_slot, *sum_sm, *sum; /* of prices until a border; [n_borders] */
    size_t n_jobs, n_presences;
    int n_borders;
};
struct least_place {
    double cost, start, end;
    int gpu, n_sm; /* gpu -1: none */
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int border(const struct price_search *q, double t)
{
    int low = 0, high = q->n_borders - 1;
    while (low < high) {
        int mid = (low + high) / 2;
        if (q->borders[mid] < t)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static size_t releases_of(const struct price_search *q, int task)
{
    const struct ws_policy_task *t = &q->sys->tasks[task];
    double last = q->l->duration - t->deadline - t->offset;
    if (!(t->deadline > 0) || last <= 0)
        return 0;
    return t->period > 0 ? (size_t)ceil(last / t->period) : 1;
}

static int make(struct price_search *q)
{
    size_t n = 0, n_borders = 0;
    for (int i = 0; i < q->sys->n_tasks; i++)
        q->n_jobs += releases_of(q, i);
    q->jobs = ws_alloc_array(q->n_jobs + 1, sizeof(*q->jobs));
    q->borders = ws_alloc_array(2 * q->n_jobs + 1, sizeof(*q->borders));
    if (!q->jobs || !q->borders)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < q->sys->n_tasks; i++)
        for (size_t k = 0; k < releases_of(q, i); k++) {
            const struct ws_policy_task *t = &q->sys->tasks[i];
            double at = t->offset + (double)k * t->period;
            q->borders[n_borders++] = at;
            q->borders[n_borders++] = at + t->deadline;
        }
    qsort(q->borders, n_borders, sizeof(*q->borders), ascending);
    for (size_t i = 0; i < n_borders; i++)
        if (!q->n_borders || q->borders[i] > q->borders[q->n_borders - 1])
            q->borders[q->n_borders++] = q->borders[i];
    for (int i = 0; i < q->sys->n_tasks; i++)
        for (size_t k = 0; k < releases_of(q, i); k++) {
            const struct ws_policy_task *t = &q->sys->tasks[i];
            double at = t->offset + (double)k * t->period;
            struct job *j = &q->jobs[n++];
            *j = (struct job){i, border(q, at), border(q, at + t->deadline), q->n_presences};
            q->n_presences += (size_t)(j->last - j->first) * (size_t)q->sys->n_gpus;
        }
    size_t width = (size_t)WS_MAX(q->n_borders, 1);
    q->cells = ws_alloc_array(width * (size_t)WS_MAX(q->sys->n_gpus, 1), sizeof(*q->cells));
    q->sum_slot = ws_alloc_array(width, sizeof(double));
    q->sum_sm = ws_alloc_array(width, sizeof(double));
    q->sum = ws_alloc_array(width, sizeof(double));
    q->presences = q->energy ? ws_alloc_array(q->n_presences + 1, sizeof(*q->presences)) : NULL;
    return q->cells && q->sum_slot && q->sum_sm && q->sum && (q->presences || !q->energy)
               ? 0
               : ws_raise(-ENOMEM);
}

static void unmake(struct price_search *q)
{
    free(q->jobs);
    free(q->borders);
    free(q->cells);
    free(q->sum_slot);
    free(q->sum_sm);
    free(q->sum);
    free(q->presences);
}

static struct least_cell *cell(const struct price_search *q, int gpu, int i)
{
    return &q->cells[(size_t)gpu * (size_t)q->n_borders + (size_t)i];
}

static struct presence *presence(const struct price_search *q, const struct job *j, int gpu, int i)
{
    return &q->presences[j->pi + (size_t)gpu * (size_t)(j->last - j->first) +
                         (size_t)(i - j->first)];
}

static double awake_w(const struct price_search *q, int gpu)
{
    const struct ws_policy_gpu_type *t = &q->sys->types[q->sys->gpus[gpu].type];
    return q->energy ? t->n_sm * t->idle_w_per_sm : 0;
}

/* ---- the cheapest place of a job ---- */

static double slope(const struct price_search *q, int i)
{
    return (q->sum[i + 1] - q->sum[i]) / (q->borders[i + 1] - q->borders[i]);
}

/* On @n_sm SMs, for @length. q->sum has the prices until each border. */
static void consider(const struct price_search *q, const struct job *j, int gpu, int n_sm,
                     double length, double own, struct least_place *best)
{
    const double *b = q->borders;
    for (int i = j->first, e = j->first; i < j->last && b[i] + length <= b[j->last] + SLIP; i++) {
        double end = ws_lesser(b[i] + length, b[j->last]);
        while (e < j->last - 1 && b[e + 1] < end)
            e++;
        double cost = own + q->sum[e] + (end - b[e]) * slope(q, e) - q->sum[i];
        if (cost < best->cost)
            *best = (struct least_place){cost, b[i], end, gpu, n_sm};
    }
    for (int i = j->last, s = j->last - 1; i > j->first && b[i] - length >= b[j->first] - SLIP;
         i--) {
        double start = ws_greater(b[i] - length, b[j->first]);
        while (s > j->first && b[s] > start)
            s--;
        double cost = own + q->sum[i] - q->sum[s] - (start - b[s]) * slope(q, s);
        if (cost < best->cost)
            *best = (struct least_place){cost, start, b[i], gpu, n_sm};
    }
}

static void add_prices(const struct price_search *q, const struct job *j, int gpu)
{
    q->sum_slot[j->first] = q->sum_sm[j->first] = 0;
    for (int i = j->first; i < j->last; i++) {
        double length = q->borders[i + 1] - q->borders[i];
        const struct least_cell *c = cell(q, gpu, i);
        double pi = q->energy ? presence(q, j, gpu, i)->pi : 0;
        q->sum_slot[i + 1] = q->sum_slot[i] + (c->mu + pi) * length;
        q->sum_sm[i + 1] = q->sum_sm[i] + c->lambda * length;
    }
}

static struct least_place cheapest(const struct price_search *q, const struct job *j)
{
    const struct ws_policy_system *s = q->sys;
    struct least_place best = {q->energy ? INFINITY : 1, 0, 0, -1, 0};
    for (int k = 0; k < s->n_gpus; k++) {
        const struct ws_policy_gpu_type *type = &s->types[s->gpus[k].type];
        const struct ws_policy_cost *c = &s->tasks[j->task].cost[s->gpus[k].type];
        double shortest = INFINITY;
        add_prices(q, j, k);
        for (int m = 1; m <= WS_MIN(s->gpus[k].sm_limit, c->n_sm); m++) {
            double w = c->wcet[m - 1] * q->l->share;
            if (w >= shortest)
                continue; /* fewer SMs are as quick */
            shortest = w;
            double own = q->energy ? w * m * (c->dyn_w_per_sm - type->idle_w_per_sm) : 0;
            if (own >= best.cost)
                continue;
            for (int i = j->first; i <= j->last; i++)
                q->sum[i] = q->sum_slot[i] + m * q->sum_sm[i];
            consider(q, j, k, m, c->h2d + w + c->d2h, own, &best);
        }
    }
    return best;
}

/* ---- prices ---- */

static void use(const struct price_search *q, const struct job *j, const struct least_place *p)
{
    for (int i = j->first; i < j->last && p->gpu >= 0; i++) {
        double o = ws_lesser(p->end, q->borders[i + 1]) - ws_greater(p->start, q->borders[i]);
        struct least_cell *c = cell(q, p->gpu, i);
        if (o <= 0)
            continue;
        c->slots += o;
        c->sms += p->n_sm * o;
        c->most = ws_greater(c->most, o);
        if (q->energy)
            presence(q, j, p->gpu, i)->used = o;
    }
}

/* The value of L, and what the cheapest places use. */
static double evaluate(struct price_search *q)
{
    double sum = 0;
    for (int k = 0; k < q->sys->n_gpus; k++)
        for (int i = 0; i < q->n_borders; i++) {
            struct least_cell *c = cell(q, k, i);
            c->slots = c->sms = c->most = c->pi = 0;
        }
    for (size_t n = 0; q->energy && n < q->n_presences; n++)
        q->presences[n].used = 0;
    for (size_t n = 0; n < q->n_jobs; n++) {
        const struct job *j = &q->jobs[n];
        struct least_place best = cheapest(q, j);
        sum += isinf(best.cost) ? 0 : best.cost; /* it is left out */
        use(q, j, &best);
        for (int k = 0; q->energy && k < q->sys->n_gpus; k++)
            for (int i = j->first; i < j->last; i++)
                cell(q, k, i)->pi += presence(q, j, k, i)->pi;
    }
    return sum;
}

/* How long the GPU is awake, of the interval's @length, at the least of L; where that leaves it
 * open, as long as it is used. Adds the term of L. */
static double awake(const struct price_search *q, int gpu, const struct least_cell *c,
                    double length, double *ret_l)
{
    const struct ws_policy_gpu *g = &q->sys->gpus[gpu];
    double rest = awake_w(q, gpu) - g->n_slots * c->mu - g->sm_limit * c->lambda - c->pi;
    *ret_l += length * ws_lesser(rest, 0);
    if (!q->energy || rest < -SLIP)
        return length;
    if (rest > SLIP)
        return 0;
    double y = ws_greater(c->most, c->slots / g->n_slots);
    return ws_lesser(length, ws_greater(y, c->sms / g->sm_limit));
}

/* Turns @way of a price towards what the last round says. Return: its part of the square. */
static double turn(double *way, double price, double surplus, double length)
{
    *way = surplus / length + KEPT * *way;
    if (price <= 0 && *way < 0)
        *way = 0; /* it cannot fall */
    return *way * *way * length;
}

static double turn_all(struct price_search *q, double *ret_l)
{
    const struct ws_policy_system *s = q->sys;
    double square = 0;
    for (int k = 0; k < s->n_gpus; k++)
        for (int i = 0; i + 1 < q->n_borders; i++) {
            struct least_cell *c = cell(q, k, i);
            double length = q->borders[i + 1] - q->borders[i];
            c->awake = awake(q, k, c, length, ret_l);
            square +=
                turn(&c->way_mu, c->mu, c->slots - s->gpus[k].n_slots * c->awake, length) +
                turn(&c->way_lambda, c->lambda, c->sms - s->gpus[k].sm_limit * c->awake, length);
        }
    for (size_t n = 0; q->energy && n < q->n_jobs; n++)
        for (int k = 0; k < s->n_gpus; k++)
            for (int i = q->jobs[n].first; i < q->jobs[n].last; i++) {
                struct presence *p = presence(q, &q->jobs[n], k, i);
                square += turn(&p->way, p->pi, p->used - cell(q, k, i)->awake,
                               q->borders[i + 1] - q->borders[i]);
            }
    return square;
}

static void go(struct price_search *q, double step)
{
    for (size_t n = 0; n < q->n_presences && q->energy; n++)
        q->presences[n].pi = ws_greater(0, q->presences[n].pi + step * q->presences[n].way);
    for (int i = 0; i < q->sys->n_gpus * q->n_borders; i++) {
        struct least_cell *c = &q->cells[i];
        c->mu = ws_greater(0, c->mu + step * c->way_mu);
        c->lambda = ws_greater(0, c->lambda + step * c->way_lambda);
    }
}

/* One round. @reach: how much of Polyak's step. Return: L with the prices before it. */
static double search_round(struct price_search *q, double reach)
{
    double value = evaluate(q), square = turn_all(q, &value);
    if (square > 0)
        go(q, reach * ws_greater(q->l->reached - value, 0) / square);
    return value;
}

static int run(double *ret, struct price_search *q)
{
    int r = make(q);
    double best = 0, reach = 1;
    int since = 0;
    if (!r) /* with which L is the simple bound: each job pays for one slot of an awake GPU */
        for (int k = 0; k < q->sys->n_gpus; k++)
            for (int i = 0; i < q->n_borders; i++)
                cell(q, k, i)->mu = awake_w(q, k) / q->sys->gpus[k].n_slots;
    for (int n = 0; n < q->l->n_rounds && !r; n++) {
        double value = search_round(q, reach);
        if (value > best + 1e-4 * fabs(best)) {
            since = 0;
        } else if (++since >= PATIENCE) {
            reach /= 2;
            since = 0;
        }
        best = ws_greater(best, value);
    }
    *ret = best;
    unmake(q);
    return r;
}

int ws_least_missed(double *ret, const struct ws_policy_system *s, const struct ws_least *l)
{
    return run(ret, &(struct price_search){.sys = s, .l = l});
}

int ws_least_energy(double *ret, const struct ws_policy_system *s, const struct ws_least *l)
{
    double idle = 0;
    struct ws_least above = *l;
    for (int k = 0; k < s->n_gpus; k++)
        idle += s->types[s->gpus[k].type].static_w * l->duration;
    above.reached -= idle;
    int r = run(ret, &(struct price_search){.sys = s, .l = &above, .energy = true});
    *ret += idle;
    return r;
}

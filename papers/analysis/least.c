// SPDX-License-Identifier: Apache-2.0
/* The search for prices.
 *
 * Releases and deadlines divide time into intervals. A schedule satisfies, in each interval i of
 * length l(i) on each GPU k:
 *   goods:  Σ_j s(g, m(j))·x(j) ≤ y for each good g    price p(g, k, i)
 *   awake:  x(j) ≤ y for each job j                    price pi(j, k, i), only where energy counts
 * where x(j) is the time for which job j is on the GPU, and y ≤ l(i) the time for which it is awake
 * (l(i), where misses are counted). A good is what jobs divide among them at each moment: s(g, m)
 * is the share of it that a job on m SMs takes, and no jobs that fit on the GPU take more than 1
 * together. Goods are
 *   - the slots: s = 1 / slots;
 *   - the SMs: s = m / M, where M is the number of SMs;
 *   - for each t ≤ (M + 1) / 2, if two jobs on t SMs leave room for no third: s = 1 for m > M - t,
 *     1/2 for t ≤ m ≤ M - t, and 0 for less. By these, two jobs on 7 of 12 SMs exclude each other,
 *     which by the second takes 14/12 only. If there are two slots, a price for each of these goods
 *     makes every price for m SMs that is right for pairs.
 * With prices ≥ 0,
 *   L = Σ_j min over places of j (own cost + ∫ Σ_g s(g, m)·p(g) + pi)
 *       + Σ_ki min over y of y·c(k, i)
 * is at most the cost of every schedule, where c = awake power - Σ_g p(g) - Σ_j pi. A place is a
 * GPU, a number of SMs, and a start from which the job ends by its deadline. Prices are constant in
 * an interval, so that the best start is one where the job starts or ends at a border of intervals.
 * To miss is one more place where misses are counted; it costs 1.
 *
 * Where misses are counted, long intervals are divided into shorter ones.
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
/* No interval is longer, where misses are counted, in ms: prices that change more often find better
 * bounds. On energy they find none that are better, in as many rounds. */
#define FINEST 2.0

struct job {
    int task, first, last; /* it is released at border first, and its deadline is border last */
    size_t pi;             /* of its first interval on GPU 0; those on GPU k follow */
};
/* An interval of a GPU. */
struct least_cell {
    double pi;   /* the sum of the jobs' prices */
    double most; /* used by the job that uses most */
    double awake;
};
/* A good in an interval of a GPU. */
struct good {
    double price, used;
    double way; /* in which the price goes */
};
/* The goods of a GPU. */
struct market {
    int n_goods, n_sm;
    double *share;      /* [n_goods][n_sm]: of the good, for a job on 1… SMs */
    struct good *goods; /* [n_borders][n_goods] */
    double *price;      /* [n_borders][n_sm]: of all goods, for a job on 1… SMs */
};
/* The price pi of one job, in an interval of a GPU. */
struct presence {
    double pi, used, way;
};
struct price_search {
    const struct ws_policy_system *sys;
    const struct ws_least *l;
    bool energy;
    double *borders; /* rising */
    struct job *jobs;
    struct market *markets;     /* [n_gpus] */
    struct least_cell *cells;   /* [n_gpus][n_borders] */
    struct presence *presences; /* only where energy is counted */
    double *sum_pi, *sum;       /* of prices until a border; [n_borders] */
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

/* Of the good for @t SMs, for a job on @m of @n_sm. */
static double threshold_share(int t, int m, int n_sm)
{
    if (m > n_sm - t)
        return 1;
    return m < t ? 0 : 0.5;
}

static int make_market(struct market *x, const struct ws_policy_gpu *g, int n_borders)
{
    int first = g->n_slots > 2 ? g->sm_limit / 3 + 1 : 1, last = (g->sm_limit + 1) / 2;
    size_t n_sm = (size_t)WS_MAX(g->sm_limit, 0), width = (size_t)WS_MAX(n_borders, 1);
    x->n_sm = (int)n_sm;
    x->n_goods = 2 + WS_MAX(last - first + 1, 0);
    x->share = ws_alloc_array((size_t)x->n_goods * (n_sm + 1), sizeof(*x->share));
    x->goods = ws_alloc_array((size_t)x->n_goods * width, sizeof(*x->goods));
    x->price = ws_alloc_array((n_sm + 1) * width, sizeof(*x->price));
    if (!x->share || !x->goods || !x->price)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < x->n_goods; i++)
        for (int m = 1; m <= x->n_sm; m++) {
            double *share = &x->share[i * x->n_sm + m - 1];
            if (i == 0)
                *share = 1.0 / WS_MAX(g->n_slots, 1);
            else if (i == 1)
                *share = (double)m / x->n_sm;
            else
                *share = threshold_share(first + i - 2, m, x->n_sm);
        }
    return 0;
}

static int make_markets(struct price_search *q)
{
    int r = 0;
    q->markets = ws_alloc_array((size_t)WS_MAX(q->sys->n_gpus, 1), sizeof(*q->markets));
    if (!q->markets)
        return ws_raise(-ENOMEM);
    for (int k = 0; k < q->sys->n_gpus && !r; k++)
        r = make_market(&q->markets[k], &q->sys->gpus[k], q->n_borders);
    return r;
}

/* Where misses are counted, intervals that are longer than FINEST are divided evenly. */
static int parts(const struct price_search *q, double from, double to)
{
    return q->energy ? 1 : WS_MAX((int)ceil((to - from) / FINEST), 1);
}

/* Makes q->borders of @moments, which are sorted. */
static int make_borders(struct price_search *q, const double *moments, size_t n)
{
    size_t n_all = 1;
    for (size_t i = 1; i < n; i++)
        n_all += (size_t)parts(q, moments[i - 1], moments[i]);
    q->borders = ws_alloc_array(n_all, sizeof(*q->borders));
    if (!q->borders)
        return ws_raise(-ENOMEM);
    if (n)
        q->borders[q->n_borders++] = moments[0];
    for (size_t i = 1; i < n; i++) {
        double from = moments[i - 1], to = moments[i];
        int n_parts = parts(q, from, to);
        for (int k = 1; k < n_parts; k++)
            q->borders[q->n_borders++] = from + (to - from) * k / n_parts;
        if (to > from)
            q->borders[q->n_borders++] = to;
    }
    return 0;
}

static int divide_time(struct price_search *q)
{
    size_t n = 0;
    double *moments = ws_alloc_array(2 * q->n_jobs + 1, sizeof(*moments));
    if (!moments)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < q->sys->n_tasks; i++)
        for (size_t k = 0; k < releases_of(q, i); k++) {
            const struct ws_policy_task *t = &q->sys->tasks[i];
            double at = t->offset + (double)k * t->period;
            moments[n++] = at;
            moments[n++] = at + t->deadline;
        }
    qsort(moments, n, sizeof(*moments), ascending);
    int r = make_borders(q, moments, n);
    free(moments);
    return r;
}

static int make(struct price_search *q)
{
    size_t n = 0;
    for (int i = 0; i < q->sys->n_tasks; i++)
        q->n_jobs += releases_of(q, i);
    q->jobs = ws_alloc_array(q->n_jobs + 1, sizeof(*q->jobs));
    int r = q->jobs ? divide_time(q) : ws_raise(-ENOMEM);
    if (r)
        return r;
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
    q->sum_pi = ws_alloc_array(width, sizeof(double));
    q->sum = ws_alloc_array(width, sizeof(double));
    q->presences = q->energy ? ws_alloc_array(q->n_presences + 1, sizeof(*q->presences)) : NULL;
    if (!q->cells || !q->sum_pi || !q->sum || (q->energy && !q->presences))
        return ws_raise(-ENOMEM);
    return make_markets(q);
}

static void unmake(struct price_search *q)
{
    for (int k = 0; q->markets && k < q->sys->n_gpus; k++) {
        free(q->markets[k].share);
        free(q->markets[k].goods);
        free(q->markets[k].price);
    }
    free(q->markets);
    free(q->jobs);
    free(q->borders);
    free(q->cells);
    free(q->sum_pi);
    free(q->sum);
    free(q->presences);
}

static struct least_cell *cell(const struct price_search *q, int gpu, int i)
{
    return &q->cells[(size_t)gpu * (size_t)q->n_borders + (size_t)i];
}

/* The goods of an interval. */
static struct good *goods(const struct price_search *q, int gpu, int i)
{
    const struct market *x = &q->markets[gpu];
    return &x->goods[(size_t)i * (size_t)x->n_goods];
}

/* Of an interval, for a job on @n_sm SMs. */
static double *price_of(const struct price_search *q, int gpu, int i, int n_sm)
{
    const struct market *x = &q->markets[gpu];
    return &x->price[(size_t)i * (size_t)x->n_sm + (size_t)(n_sm - 1)];
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

static void add_presences(const struct price_search *q, const struct job *j, int gpu)
{
    q->sum_pi[j->first] = 0;
    for (int i = j->first; i < j->last; i++) {
        double pi = q->energy ? presence(q, j, gpu, i)->pi : 0;
        q->sum_pi[i + 1] = q->sum_pi[i] + pi * (q->borders[i + 1] - q->borders[i]);
    }
}

/* Of the places on @n_sm SMs. */
static void add_prices(const struct price_search *q, const struct job *j, int gpu, int n_sm)
{
    double goods_until = 0;
    q->sum[j->first] = 0;
    for (int i = j->first; i < j->last; i++) {
        goods_until += *price_of(q, gpu, i, n_sm) * (q->borders[i + 1] - q->borders[i]);
        q->sum[i + 1] = goods_until + q->sum_pi[i + 1];
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
        add_presences(q, j, k);
        for (int m = 1; m <= WS_MIN(s->gpus[k].sm_limit, c->n_sm); m++) {
            double w = c->wcet[m - 1] * q->l->share;
            if (w >= shortest)
                continue; /* fewer SMs are as quick */
            shortest = w;
            double own = q->energy ? w * m * (c->dyn_w_per_sm - type->idle_w_per_sm) : 0;
            if (own >= best.cost)
                continue;
            add_prices(q, j, k, m);
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
        const struct market *x = &q->markets[p->gpu];
        for (int n = 0; n < x->n_goods; n++)
            goods(q, p->gpu, i)[n].used += x->share[n * x->n_sm + p->n_sm - 1] * o;
        c->most = ws_greater(c->most, o);
        if (q->energy)
            presence(q, j, p->gpu, i)->used = o;
    }
}

/* Nothing is used; and what a job pays on each number of SMs. */
static void begin_cell(const struct price_search *q, int gpu, int i)
{
    const struct market *x = &q->markets[gpu];
    struct good *g = goods(q, gpu, i);
    *cell(q, gpu, i) = (struct least_cell){0};
    for (int m = 1; m <= x->n_sm; m++)
        *price_of(q, gpu, i, m) = 0;
    for (int n = 0; n < x->n_goods; n++) {
        g[n].used = 0;
        for (int m = 1; m <= x->n_sm && g[n].price > 0; m++)
            *price_of(q, gpu, i, m) += g[n].price * x->share[n * x->n_sm + m - 1];
    }
}

/* The value of L, and what the cheapest places use. */
static double evaluate(struct price_search *q)
{
    double sum = 0;
    for (int k = 0; k < q->sys->n_gpus; k++)
        for (int i = 0; i < q->n_borders; i++)
            begin_cell(q, k, i);
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
static double awake(const struct price_search *q, int gpu, int i, double length, double *ret_l)
{
    const struct least_cell *c = cell(q, gpu, i);
    const struct good *g = goods(q, gpu, i);
    double rest = awake_w(q, gpu) - c->pi, y = c->most;
    for (int n = 0; n < q->markets[gpu].n_goods; n++) {
        rest -= g[n].price;
        y = ws_greater(y, g[n].used);
    }
    *ret_l += length * ws_lesser(rest, 0);
    if (!q->energy || rest < -SLIP)
        return length;
    if (rest > SLIP)
        return 0;
    return ws_lesser(length, y);
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
            struct good *g = goods(q, k, i);
            c->awake = awake(q, k, i, length, ret_l);
            for (int n_good = 0; n_good < q->markets[k].n_goods; n_good++, g++)
                square += turn(&g->way, g->price, g->used - c->awake, length);
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
    for (int k = 0; k < q->sys->n_gpus; k++)
        for (int i = 0; i < q->n_borders * q->markets[k].n_goods; i++) {
            struct good *g = &q->markets[k].goods[i];
            g->price = ws_greater(0, g->price + step * g->way);
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
                goods(q, k, i)->price = awake_w(q, k);
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

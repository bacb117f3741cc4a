// SPDX-License-Identifier: Apache-2.0
/* The GPU as one lock under MPCP: a GPU segment is a critical section that runs at the highest
 * CPU priority. Waiting tasks queue by priority and sleep. "Busy" means that a task spins while
 * its GPU work runs; it still sleeps while it waits for the lock. There are no overheads.
 *
 * ref   the released program ("hybrid" analysis). Slips kept: the task itself among those that
 *       block it on its core; a duration in whole milliseconds where a count of jobs belongs;
 *       boosted core-mates count with Gm also where they spin; the time a lock is held includes
 *       segments of everybody above. It leaves out nothing for suspending tasks, but busy bounds
 *       are exceeded.
 * safe  of our own. With one lock only its holder is boosted, so nothing delays it and a segment
 *       holds the lock for its length.
 *       R = C + G
 *         + core-mates above: up((R + R_h - X_h) / T_h) · X_h, X_h = C_h + Gm_h (busy C_h + G_h)
 *         + lock, from above: all GPU time of each task above, up((R + R_h - G_h) / T_h) · G_h,
 *           if the task uses the GPU
 *         + lock, from below: for each of its n requests one segment in progress:
 *           n · the longest of any task below
 *         + boosted core-mates below: before each of the n + 1 stretches between its segments each
 *           of them may have one request queued that is granted during the stretch:
 *           min(n + 1, its requests in R) · its longest Gm (busy: G)
 *       Requests of a task below in R: n_l · up((R + T_l) / T_l), and for best effort, which has no
 *       deadline, n + 1. */
#include "config.h"

#include <stdlib.h>

#include "papers/analysis/rta_private.h"

static int64_t longest(const struct ws_rta_set *s, int x, bool gm_only)
{
    int64_t m = 0;
    for (int k = 0; k < s->tasks[x].n_segments; k++) {
        const struct ws_rta_segment *seg = &s->segments[s->tasks[x].first_segment + k];
        int64_t v = gm_only ? seg->gm : seg->g;
        m = WS_MAX(m, v);
    }
    return m;
}

/* Common to both forms and to FMLP+. */
int ws_rta_lock_preemption(const struct ws_rta_set *s, struct ws_rta_work *w, int i, bool busy)
{
    int n = 0;
    for (int h = 0; h < i; h++)
        if (ws_rta_local(s, h, i)) {
            const struct ws_rta_task *t = &s->tasks[h];
            int64_t x = t->c + (busy ? t->g : t->gm);
            ws_rta_add(w->terms, &n, t->period, w->bound[h] - x, x);
        }
    return n;
}

/* ---- safe ---- */

static int64_t safe_bound(const struct ws_rta_set *s, struct ws_rta_work *w, int i, bool busy)
{
    const struct ws_rta_task *t = &s->tasks[i];
    int n = ws_rta_lock_preemption(s, w, i, busy);
    int64_t own = t->c + t->g, below = 0;
    for (int h = 0; h < i && t->n_segments; h++)
        if (s->tasks[h].n_segments)
            ws_rta_add(w->terms, &n, s->tasks[h].period, w->bound[h] - s->tasks[h].g,
                       s->tasks[h].g);
    for (int l = i + 1; l < s->n_tasks; l++)
        below = WS_MAX(below, longest(s, l, false));
    own += ws_rta_mul(t->n_segments, below);
    for (int l = i + 1; l < s->n_tasks; l++)
        if (ws_rta_local(s, l, i)) {
            /* Counted over the longest R there may be: cheaper than in the loop, and seldom
             * more. */
            const struct ws_rta_task *low = &s->tasks[l];
            int64_t jobs = ws_rta_up(t->deadline + low->period, low->period);
            int64_t times = t->n_segments + 1;
            if (!low->best_effort)
                times = WS_MIN(times, ws_rta_mul(jobs, low->n_segments));
            own += ws_rta_mul(times, longest(s, l, !busy));
        }
    return ws_rta_fixed_point(w, own, w->terms, n, t->deadline);
}

static int safe(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret,
                bool busy)
{
    ws_rta_begin(s, w, ret);
    for (int i = 0; i < s->n_tasks && !s->tasks[i].best_effort; i++)
        if (!ws_rta_note(w, ret, i, safe_bound(s, w, i, busy)))
            break;
    return 0;
}

/* ---- ref ---- */

struct ref {
    const struct ws_rta_set *s;
    struct ws_rta_work *w;
    int i;
    const int64_t *above;    /* [i]: sum of the longest segments of all tasks above it */
    const int64_t *lock_sum; /* [h]: sum over its segments of how long each holds the lock */
    /* segments of lower tasks by how long they hold the lock, longest first */
    struct ws_rta_request *below;
    int n_below;
    /* Gm of core-mates not above the task, longest first within each */
    struct ws_rta_request *mates;
    int n_mates;
    int64_t wait; /* b_i */
};

static int by_cost(const void *a, const void *b)
{
    const struct ws_rta_request *x = a, *y = b;
    return (x->cost < y->cost) - (x->cost > y->cost);
}

static int by_task_and_cost(const void *a, const void *b)
{
    const struct ws_rta_request *x = a, *y = b;
    return x->task != y->task ? x->task - y->task : by_cost(a, b);
}

static int64_t jobs_above(const struct ref *r, int64_t t, int h)
{
    const struct ws_rta_task *x = &r->s->tasks[h];
    return ws_rta_up(t + r->w->bound[h] - x->c - x->gm, x->period);
}

static int64_t jobs_below(const struct ref *r, int64_t t, int l)
{
    const struct ws_rta_task *x = &r->s->tasks[l];
    return WS_MAX(ws_rta_up(t + x->period - x->c - x->gm, x->period), 0);
}

/* b_i, in whole ms times the task's segments: the first limit on jobs of those above. Grows
 * without end where the lock is asked for all the time; from @enough on the other limit decides,
 * so it stops there. */
static int64_t wait_limit(struct ref *r, int64_t longest_below, int64_t enough)
{
    int64_t n = r->s->tasks[r->i].n_segments, unit = r->s->unit_per_ms;
    for (int64_t b = 0;;) {
        int64_t next = longest_below;
        for (int h = 0; h < r->i; h++)
            next += ws_rta_mul(jobs_above(r, b, h) + 1, r->lock_sum[h]);
        int64_t limit = ws_rta_mul(n, ws_rta_up(next, unit));
        r->w->steps -= r->i + 1;
        if (next == b || limit >= enough || r->w->steps < 0)
            return limit;
        b = next;
    }
}

static int64_t ref_next(struct ref *r, const struct ws_rta_term *terms, int n_terms, int64_t now)
{
    const struct ws_rta_task *t = &r->s->tasks[r->i];
    int64_t next = t->c + t->g;
    for (int k = 0; k < n_terms; k++)
        next += ws_rta_mul(ws_rta_up(now + terms[k].jitter, terms[k].period), terms[k].cost);
    int64_t left = 0;
    for (int k = 0, task = -1; k < r->n_mates; k++) {
        if (r->mates[k].task != task) {
            task = r->mates[k].task;
            left = t->n_segments + 1;
        }
        int64_t times = WS_MIN(left, jobs_below(r, now, task));
        next += ws_rta_mul(times, r->mates[k].cost);
        left -= times;
    }
    for (int h = 0; h < r->i && t->n_segments; h++)
        next += ws_rta_mul(WS_MIN(r->wait, jobs_above(r, now, h)), r->lock_sum[h]);
    left = t->n_segments;
    for (int k = 0; k < r->n_below && left > 0; k++) {
        int64_t times = WS_MIN(left, jobs_below(r, now, r->below[k].task));
        next += ws_rta_mul(times, r->below[k].cost);
        left -= times;
    }
    return next;
}

static int64_t ref_bound(struct ref *r, bool busy)
{
    const struct ws_rta_set *s = r->s;
    const struct ws_rta_task *t = &s->tasks[r->i];
    int n = ws_rta_lock_preemption(s, r->w, r->i, busy);
    r->n_below = r->n_mates = 0;
    int64_t longest_below = 0;
    for (int l = r->i; l < s->n_tasks; l++)
        for (int k = 0; k < s->tasks[l].n_segments; k++) {
            const struct ws_rta_segment *seg = &s->segments[s->tasks[l].first_segment + k];
            int64_t held = seg->g + r->above[l];
            longest_below = WS_MAX(longest_below, held);
            if (l > r->i)
                r->below[r->n_below++] = (struct ws_rta_request){held, l};
            if (ws_rta_local(s, l, r->i))
                r->mates[r->n_mates++] = (struct ws_rta_request){seg->gm, l};
        }
    qsort(r->below, (size_t)r->n_below, sizeof(*r->below), by_cost);
    qsort(r->mates, (size_t)r->n_mates, sizeof(*r->mates), by_task_and_cost);
    int64_t enough = 0;
    for (int h = 0; h < r->i; h++)
        enough = WS_MAX(enough, jobs_above(r, t->period, h));
    r->wait = t->n_segments ? wait_limit(r, longest_below, enough) : 0;
    for (int64_t now = 0;;) {
        int64_t next = ref_next(r, r->w->terms, n, now);
        r->w->steps -= n + r->i + r->n_mates + 1;
        if (next > t->period || r->w->steps < 0)
            return -1;
        if (next == now)
            return now;
        now = next;
    }
}

static int ref(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret,
               bool busy)
{
    ws_rta_begin(s, w, ret);
    int64_t *above = w->values, *lock_sum = w->values + s->n_tasks, sum = 0;
    int n_real_time = 0;
    for (int i = 0; i < s->n_tasks; i++) {
        above[i] = sum; /* best-effort tasks are all at one level */
        lock_sum[i] = 0;
        for (int k = 0; k < s->tasks[i].n_segments; k++)
            lock_sum[i] += s->segments[s->tasks[i].first_segment + k].g + above[i];
        if (!s->tasks[i].best_effort) {
            sum += longest(s, i, false);
            n_real_time++;
        }
    }
    for (int i = 0; i < n_real_time; i++) {
        struct ref r = {s, w, i, above, lock_sum, w->requests, 0, w->requests + s->n_segments,
                        0, 0};
        if (!ws_rta_note(w, ret, i, ref_bound(&r, busy)))
            break;
    }
    return 0;
}

#define FORM(name, run, busy)                                                                      \
    int ws_rta_mpcp_##name(const struct ws_rta_set *s, struct ws_rta_work *w,                      \
                           struct ws_rta_result *ret)                                              \
    {                                                                                              \
        return run(s, w, ret, busy);                                                               \
    }
FORM(suspend_ref, ref, false)
FORM(suspend_safe, safe, false)
FORM(busy_ref, ref, true)
FORM(busy_safe, safe, true)

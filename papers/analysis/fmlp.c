// SPDX-License-Identifier: Apache-2.0
/* The GPU as one lock under FMLP+: as in mpcp.c, but waiting tasks queue in order of arrival.
 * There are no overheads.
 *
 * q_x(R) = n_x · up((R + T_x) / T_x) requests of x in R; g_x its longest segment; n the task's
 * own segments.
 * ref   the released program. Other cores: for each core c, d_c = sum over x on c of min(n, q_x),
 *       then min(n, d_c, q_x) · g_x for each x on it. Own core, below:
 *       z = min(n, sum over other cores of min(n, q_x)), then min(1 + z, q_x) · g_x. Slip: waiting
 *       for requests of core-mates above is left out; suspending, their GPU time is lost.
 * safe  of our own. Each of the n requests waits for at most one request of everybody else, on any
 *       core: min(n, q_x) · g_x (best effort: n · g_x); and boosted core-mates below take the core
 *       as in mpcp.c: min(n + 1, q_x) · longest Gm (busy: G). */
#include "config.h"

#include "papers/analysis/rta_private.h"

struct lock {
    const struct ws_rta_set *s;
    int i;
    bool busy;
    int64_t *longest, *longest_gm; /* [n_tasks] */
    int64_t *per_core;             /* [n_cpus] */
};

static int64_t requests(const struct lock *k, int x, int64_t now)
{
    const struct ws_rta_task *t = &k->s->tasks[x];
    return ws_rta_mul(t->n_segments, ws_rta_up(now + t->period, t->period));
}

static int64_t ref_wait(const struct lock *k, int64_t now)
{
    const struct ws_rta_set *s = k->s;
    int64_t n = s->tasks[k->i].n_segments, total = 0, all = 0;
    for (int c = 0; c < s->n_cpus; c++)
        k->per_core[c] = 0;
    for (int x = 0; x < s->n_tasks; x++)
        if (!ws_rta_local(s, x, k->i)) {
            int64_t q = WS_MIN(n, requests(k, x, now));
            k->per_core[s->tasks[x].cpu] += q;
            all += q;
        }
    int64_t z = WS_MIN(n, all);
    for (int x = 0; x < s->n_tasks; x++) {
        int64_t q = requests(k, x, now), times = 0;
        if (!ws_rta_local(s, x, k->i))
            times = WS_MIN(WS_MIN(n, k->per_core[s->tasks[x].cpu]), q);
        else if (x > k->i)
            times = WS_MIN(1 + z, q);
        total += ws_rta_mul(times, k->longest[x]);
    }
    return total;
}

static int64_t safe_wait(const struct lock *k, int64_t now)
{
    const struct ws_rta_set *s = k->s;
    int64_t n = s->tasks[k->i].n_segments, total = 0;
    for (int x = 0; x < s->n_tasks; x++) {
        if (x == k->i || !s->tasks[x].n_segments)
            continue;
        int64_t q = s->tasks[x].best_effort ? n + 1 : requests(k, x, now);
        total += ws_rta_mul(WS_MIN(n, q), k->longest[x]);
        if (x > k->i && ws_rta_local(s, x, k->i))
            total += ws_rta_mul(WS_MIN(n + 1, q), k->busy ? k->longest[x] : k->longest_gm[x]);
    }
    return total;
}

static int64_t bound(const struct lock *k, struct ws_rta_work *w, bool ref)
{
    const struct ws_rta_task *t = &k->s->tasks[k->i];
    int64_t deadline = ref ? t->period : t->deadline;
    int n = ws_rta_lock_preemption(k->s, w, k->i, k->busy);
    for (int64_t now = 0;;) {
        int64_t next = t->c + t->g + (ref ? ref_wait(k, now) : safe_wait(k, now));
        for (int h = 0; h < n; h++)
            next += ws_rta_mul(ws_rta_up(now + w->terms[h].jitter, w->terms[h].period),
                               w->terms[h].cost);
        w->steps -= n + k->s->n_tasks;
        if (next > deadline || w->steps < 0)
            return -1;
        if (next == now)
            return now;
        now = next;
    }
}

static int run(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret,
               bool busy, bool ref)
{
    ws_rta_begin(s, w, ret);
    struct lock k = {s, 0, busy, w->values, w->values + s->n_tasks, w->values + 2 * s->n_tasks};
    for (int x = 0; x < s->n_tasks; x++) {
        k.longest[x] = k.longest_gm[x] = 0;
        for (int j = 0; j < s->tasks[x].n_segments; j++) {
            const struct ws_rta_segment *seg = &s->segments[s->tasks[x].first_segment + j];
            k.longest[x] = WS_MAX(k.longest[x], seg->g);
            k.longest_gm[x] = WS_MAX(k.longest_gm[x], seg->gm);
        }
    }
    for (k.i = 0; k.i < s->n_tasks && !s->tasks[k.i].best_effort; k.i++)
        if (!ws_rta_note(w, ret, k.i, bound(&k, w, ref)))
            break;
    return 0;
}

#define FORM(name, busy, ref)                                                                      \
    int ws_rta_fmlp_##name(const struct ws_rta_set *s, struct ws_rta_work *w,                      \
                           struct ws_rta_result *ret)                                              \
    {                                                                                              \
        return run(s, w, ret, busy, ref);                                                          \
    }
FORM(suspend_ref, false, true)
FORM(suspend_safe, false, false)
FORM(busy_ref, true, true)
FORM(busy_safe, true, false)

// SPDX-License-Identifier: Apache-2.0
/* papers/analysis/rta_private.h - what the analyses share: rounding up, terms, the fixed point. */
#ifndef WS_PAPERS_ANALYSIS_RTA_PRIVATE_H
#define WS_PAPERS_ANALYSIS_RTA_PRIVATE_H

#include "papers/analysis/rta.h"

/* up((R + jitter) / period) * cost */
struct ws_rta_term {
    int64_t period, jitter, cost;
};

/* A lock request that may delay another task: `task` makes it, and it takes `cost`. */
struct ws_rta_request {
    int64_t cost;
    int task;
};

/* Rounds up, also below zero. */
static inline int64_t ws_rta_up(int64_t a, int64_t b)
{
    return a > 0 ? (a - 1) / b + 1 : -(-a / b);
}

/* A product, limited to 2^56. That is far above any deadline, and a sum of many such products
 * still fits. */
static inline int64_t ws_rta_mul(int64_t a, int64_t b)
{
    const int64_t limit = INT64_C(1) << 56;
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return (a < 0) == (b < 0) ? limit : -limit;
    if (r > limit)
        return limit;
    return WS_MAX(r, -limit);
}

static inline void ws_rta_add(struct ws_rta_term *terms, int *n, int64_t period, int64_t jitter,
                              int64_t cost)
{
    if (cost)
        terms[(*n)++] = (struct ws_rta_term){period, jitter, cost};
}

/* The least fixed point of @own plus the terms, from 0. Return: -1 if it exceeds @deadline or
 * @w's steps are used up. */
int64_t ws_rta_fixed_point(struct ws_rta_work *w, int64_t own, const struct ws_rta_term *terms,
                           int n, int64_t deadline);

/* Zeroes bounds and steps; @ret is the answer "all meet". */
void ws_rta_begin(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret);
/* Notes task @i's bound (or -1). Return: whether to continue. */
static inline bool ws_rta_note(struct ws_rta_work *w, struct ws_rta_result *ret, int i,
                               int64_t bound)
{
    ret->bound[i] = bound;
    if (bound >= 0)
        return true;
    ret->ok = false;
    ret->gave_up = w->steps < 0;
    return false;
}

/* Whether task @h is on the same core as @i. */
static inline bool ws_rta_local(const struct ws_rta_set *s, int h, int i)
{
    return s->tasks[h].cpu == s->tasks[i].cpu;
}

/* Terms of the core-mates above task @i under a lock protocol (mpcp.c). Return: how many. */
int ws_rta_lock_preemption(const struct ws_rta_set *s, struct ws_rta_work *w, int i, bool busy);

typedef int ws_rta_run(const struct ws_rta_set *s, struct ws_rta_work *w,
                       struct ws_rta_result *ret);
ws_rta_run ws_rta_rr_suspend_ref, ws_rta_rr_suspend_fix, ws_rta_rr_suspend_safe;
ws_rta_run ws_rta_rr_busy_ref, ws_rta_rr_busy_fix, ws_rta_rr_busy_safe;
ws_rta_run ws_rta_gcaps_suspend_ref, ws_rta_gcaps_suspend_fix, ws_rta_gcaps_suspend_safe;
ws_rta_run ws_rta_gcaps_busy_ref, ws_rta_gcaps_busy_lit, ws_rta_gcaps_busy_fix,
    ws_rta_gcaps_busy_safe;
ws_rta_run ws_rta_gprio_suspend_ref, ws_rta_gprio_suspend_fix, ws_rta_gprio_suspend_safe;
ws_rta_run ws_rta_gprio_busy_ref, ws_rta_gprio_busy_fix, ws_rta_gprio_busy_safe;
ws_rta_run ws_rta_mpcp_suspend_ref, ws_rta_mpcp_suspend_safe, ws_rta_mpcp_busy_ref,
    ws_rta_mpcp_busy_safe;
ws_rta_run ws_rta_fmlp_suspend_ref, ws_rta_fmlp_suspend_safe, ws_rta_fmlp_busy_ref,
    ws_rta_fmlp_busy_safe;

#endif

// SPDX-License-Identifier: Apache-2.0
/* GCAPS with separate priorities on the GPU, assigned by Audsley's method (GCAPS paper, Sec.
 * 6.4): from the lowest level up, a level is given to a task that passes the test even if all
 * tasks without a level are above it on the GPU. This is tried only if the plain test fails.
 * Jitters come from deadlines, since the order above is not known yet. Tasks without GPU work
 * take part.
 *
 * Tasks of one core must have the same order on the GPU as on the CPU. Otherwise a task that
 * spins on the core for the GPU could be kept off the GPU by a task that waits for that core,
 * which is a deadlock.
 *
 * ref        the release: any task may take the level (lowest CPU priority first); the order on
 *            cores is checked at the end, with no second try; one jitter is a stale bound of the
 *            failed plain run, which may be 0 or -1.
 * fix, safe  only the lowest task of each core without a level may take it, so the order holds by
 *            construction. This loses no solution: the test does not depend on the order above, so
 *            giving the lowest level to any task that passes never harms another. safe uses the
 *            safe form of the test. */
#include "config.h"

#include <string.h>

#include "papers/analysis/gcaps.h"

struct assign {
    const struct ws_rta_set *s;
    struct ws_rta_work *w;
    int *left; /* tasks without a level, by CPU priority */
    int n_left;
    int *given; /* tasks in the order in which they took levels */
    int n_given;
    struct ws_gcaps_test test;
};

static bool lowest_of_core(const struct assign *a, int k)
{
    for (int l = k + 1; l < a->n_left; l++) {
        a->w->steps--;
        if (ws_rta_local(a->s, a->left[l], a->left[k]))
            return false;
    }
    return true;
}

/* Gives the next level to the lowest task that passes. Return: whether there was one. */
static bool give_level(struct assign *a)
{
    for (int k = a->n_left - 1; k >= 0; k--) {
        if (a->test.form != WS_GCAPS_REF && !lowest_of_core(a, k))
            continue;
        a->test.above = a->left;
        a->test.n_above = a->n_left;
        int i = a->left[k];
        int64_t bound = ws_gcaps_bound(a->s, a->w, &a->test, i);
        if (a->w->steps < 0)
            return false;
        if (bound < 0)
            continue;
        a->w->second[i] = bound;
        a->w->gpu_priority[i] = ++a->n_given;
        a->given[a->n_given - 1] = i;
        memmove(&a->left[k], &a->left[k + 1], (size_t)(a->n_left - k - 1) * sizeof(*a->left));
        a->n_left--;
        return true;
    }
    return false;
}

/* Whether tasks of one core took levels from the lowest up. */
static bool cores_in_order(const struct assign *a)
{
    for (int k = 0; k < a->n_given; k++)
        for (int l = k + 1; l < a->n_given; l++)
            if (a->given[l] > a->given[k] && ws_rta_local(a->s, a->given[l], a->given[k]))
                return false;
    return true;
}

static int run(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret,
               ws_rta_run *plain, enum ws_gcaps_form form, bool busy)
{
    int r = plain(s, w, ret);
    if (r || ret->ok || ret->gave_up)
        return r;
    bool ref = form == WS_GCAPS_REF;
    struct assign a = {.s = s, .w = w, .left = w->order, .given = w->order + s->n_tasks};
    a.test = (struct ws_gcaps_test){form,     busy, ref ? WS_GCAPS_STALE : WS_GCAPS_DEADLINES,
                                    w->bound, NULL, 0};
    while (a.n_left < s->n_tasks && !s->tasks[a.n_left].best_effort) {
        a.left[a.n_left] = a.n_left;
        a.n_left++;
    }
    memset(w->gpu_priority, 0, (size_t)s->n_tasks * sizeof(*w->gpu_priority));
    memset(w->second, 0, (size_t)s->n_tasks * sizeof(*w->second));
    while (a.n_left && give_level(&a))
        ;
    ret->gave_up = w->steps < 0;
    if (a.n_left || (ref && !cores_in_order(&a)))
        return 0; /* the bounds of the plain test remain */
    ret->ok = true;
    ret->gpu_priority = w->gpu_priority;
    ret->bound = w->second;
    return 0;
}

#define FORM(name, plain, form, busy)                                                              \
    int ws_rta_gprio_##name(const struct ws_rta_set *s, struct ws_rta_work *w,                     \
                            struct ws_rta_result *ret)                                             \
    {                                                                                              \
        return run(s, w, ret, plain, form, busy);                                                  \
    }
FORM(suspend_ref, ws_rta_gcaps_suspend_ref, WS_GCAPS_REF, false)
FORM(suspend_fix, ws_rta_gcaps_suspend_fix, WS_GCAPS_FIX, false)
FORM(suspend_safe, ws_rta_gcaps_suspend_safe, WS_GCAPS_SAFE, false)
FORM(busy_ref, ws_rta_gcaps_busy_ref, WS_GCAPS_REF, true)
FORM(busy_fix, ws_rta_gcaps_busy_fix, WS_GCAPS_FIX, true)
FORM(busy_safe, ws_rta_gcaps_busy_safe, WS_GCAPS_SAFE, true)

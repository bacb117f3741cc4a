// SPDX-License-Identifier: Apache-2.0
/* The default driver: contexts that have work take turns of length L on the GPU, a switch costs
 * theta, and there are no priorities.
 *
 * A GPU segment of pure length g is delayed by v others by (L + theta) · v · up(g / L) (GCAPS
 * paper, Eq. 3). Suspending, a task above on the same core takes C + Gm of the core in each job;
 * busy-waiting, it also spins through its own GPU time and through the turns of others.
 *
 * ref   the released program. Suspending: jitter T_h - (C_h + Gm_h). Busy: tasks without GPU work
 *       are left out (RR1: a task of 60 in every 100 on the core counts for nothing), K is the GPU
 *       users above on other cores plus those at positions 0…N-2-i (an index slip), and Gm counts
 *       twice.
 * fix   the paper's Eqs. 5 to 8.
 * safe  fix, and the switch back into the task's own context, which Eq. 5 leaves out though Eq. 15,
 *       by which theta was measured, has it: theta · up(g / L) for each own segment (RR2). A
 *       spinning core-mate's own switches are in K_h already. */
#include "config.h"

#include "papers/analysis/rta_private.h"

enum analysis_form { REF, FIX, SAFE };

/* Sum over @t's segments of up(ge / L). */
static int64_t slices(const struct ws_rta_set *s, const struct ws_rta_task *t)
{
    int64_t n = 0;
    for (int k = 0; k < t->n_segments; k++)
        n += ws_rta_up(s->segments[t->first_segment + k].ge, s->slice);
    return n;
}

static int64_t delay(const struct ws_rta_set *s, int64_t n_others, int64_t n_slices)
{
    return ws_rta_mul(ws_rta_mul(s->slice + s->theta, n_others), n_slices);
}

static int64_t own(const struct ws_rta_set *s, enum analysis_form form, int i, int n_users)
{
    const struct ws_rta_task *t = &s->tasks[i];
    int others = n_users - (t->n_segments > 0);
    int64_t n = slices(s, t), r = t->c + t->g + delay(s, others, n);
    if (form == SAFE && others > 0)
        r += ws_rta_mul(s->theta, n);
    return r;
}

static int count_users(const struct ws_rta_set *s)
{
    int n = 0;
    for (int i = 0; i < s->n_tasks; i++)
        n += s->tasks[i].n_segments > 0;
    return n;
}

static int suspend(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret,
                   enum analysis_form form)
{
    ws_rta_begin(s, w, ret);
    int n_users = count_users(s);
    for (int i = 0; i < s->n_tasks && !s->tasks[i].best_effort; i++) {
        int n = 0;
        for (int h = 0; h < i; h++)
            if (ws_rta_local(s, h, i)) {
                const struct ws_rta_task *t = &s->tasks[h];
                int64_t x = t->c + t->gm;
                ws_rta_add(w->terms, &n, t->period, (form == REF ? t->period : w->bound[h]) - x, x);
            }
        if (!ws_rta_note(
                w, ret, i,
                ws_rta_fixed_point(w, own(s, form, i, n_users), w->terms, n,
                                   form == REF ? s->tasks[i].period : s->tasks[i].deadline)))
            break;
    }
    return 0;
}

/* How many tasks take turns with a spinning core-mate of @i, as the release counts them. */
static int interleaving_ref(const struct ws_rta_set *s, int i)
{
    int n = 0;
    for (int h = 0; h < i; h++)
        n += !ws_rta_local(s, h, i) && s->tasks[h].n_segments > 0;
    for (int l = 0; l < s->n_tasks - 1 - i; l++)
        n += s->tasks[l].n_segments > 0;
    return n;
}

/* K_h of the paper: users of the GPU that are not above @i on its core, and the core-mate
 * itself. */
static int interleaving(const struct ws_rta_set *s, int i, int n_users)
{
    int n = n_users + 1;
    for (int h = 0; h < i; h++)
        n -= ws_rta_local(s, h, i) && s->tasks[h].n_segments > 0;
    return n;
}

static int busy(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret,
                enum analysis_form form)
{
    ws_rta_begin(s, w, ret);
    int n_users = count_users(s);
    for (int i = 0; i < s->n_tasks && !s->tasks[i].best_effort; i++) {
        int n = 0;
        int k = form == REF ? interleaving_ref(s, i) : interleaving(s, i, n_users);
        for (int h = 0; h < i; h++) {
            const struct ws_rta_task *t = &s->tasks[h];
            if (!ws_rta_local(s, h, i) || (form == REF && !t->n_segments))
                continue;
            int64_t cost = t->c + t->gm + delay(s, k, slices(s, t));
            if (form == REF)
                cost += t->g;
            ws_rta_add(w->terms, &n, t->period, 0, cost);
        }
        if (!ws_rta_note(
                w, ret, i,
                ws_rta_fixed_point(w, own(s, form, i, n_users), w->terms, n,
                                   form == REF ? s->tasks[i].period : s->tasks[i].deadline)))
            break;
    }
    return 0;
}

#define FORM(name, kind, form)                                                                     \
    int ws_rta_rr_##name(const struct ws_rta_set *s, struct ws_rta_work *w,                        \
                         struct ws_rta_result *ret)                                                \
    {                                                                                              \
        return kind(s, w, ret, form);                                                              \
    }
FORM(suspend_ref, suspend, REF)
FORM(suspend_fix, suspend, FIX)
FORM(suspend_safe, suspend, SAFE)
FORM(busy_ref, busy, REF)
FORM(busy_fix, busy, FIX)
FORM(busy_safe, busy, SAFE)

// SPDX-License-Identifier: Apache-2.0
/* GCAPS: GPU work is preempted by priority. A call at the beginning and at the end of each GPU
 * segment updates the run list and costs epsilon. A task's own demand is C + G, two updates for
 * each segment, and the wait for one update in progress, at its release and at each segment: (3n
 * + 1) · epsilon in all.
 *
 * Interference, with e = epsilon and n_h segments:
 *   suspend  a core-mate above: the core for C_h + Gm_h + 2e·n_h, jitter R_h - (C_h + Gm_h); and,
 *            if the task uses the GPU, the GPU for Ge_h, jitter R_h - Ge_h. A task above elsewhere:
 *            Ge_h + 2e·n_h, same jitter, if the task uses the GPU.
 *   busy     a core-mate above: C_h + G_h + 2e·n_h, no jitter. A task above elsewhere:
 *            Ge_h + 2e·n_h, jitter R_h - Ge_h, also where the task has no GPU work (a core-mate
 *            spins longer because of it).
 * Core-mates without GPU work: C_h, no jitter. Best-effort tasks never appear.
 *
 * The bounds assume that a task occupies the GPU exactly while it has pure GPU work. With the
 * calls placed as published, a task stays in the list from the begin call to the end call,
 * through CPU work and preemptions, and simulations exceed the bounds by up to 2 times. The
 * daemon opens a segment at the first command that reaches the GPU, and closes it when it sees
 * the completion.
 *
 * ref   the released program: these formulas. Whether a task uses the GPU is asked by its time
 *       where tasks on other cores are concerned, by its segments otherwise, so segments of length
 *       0 cost their own task, and interfere with nobody elsewhere.
 * lit   busy, Lemmas 10 to 12 to the letter: the spin of core-mates is lost for tasks without GPU
 *       work. Not a bound.
 * fix   ref with deadlines of their own.
 * safe  asks by segments everywhere, and each update may wait for one other update in progress, the
 *       closing ones too: (5n + 1)e own, and busy 4e·n_h for a core-mate. */
#include "config.h"

#include "papers/analysis/gcaps.h"

struct gather {
    const struct ws_rta_set *s;
    const struct ws_gcaps_test *test;
    struct ws_rta_term *terms;
    int n;
    bool uses_gpu; /* the task analysed */
};

static int64_t reach(const struct gather *g, int h, bool core_mate_gpu)
{
    if (g->test->jitter == WS_GCAPS_BOUNDS || (g->test->jitter == WS_GCAPS_STALE && core_mate_gpu))
        return g->test->bound[h];
    return g->test->form == WS_GCAPS_REF ? g->s->tasks[h].period : g->s->tasks[h].deadline;
}

static void core_mate(struct gather *g, int h)
{
    const struct ws_rta_task *t = &g->s->tasks[h];
    int64_t updates = 2 * g->s->epsilon * t->n_segments;
    if (!t->n_segments)
        ws_rta_add(g->terms, &g->n, t->period, 0, t->c);
    else if (!g->test->busy) {
        int64_t x = t->c + t->gm;
        ws_rta_add(g->terms, &g->n, t->period, reach(g, h, false) - x, x + updates);
        if (g->uses_gpu)
            ws_rta_add(g->terms, &g->n, t->period, reach(g, h, true) - t->ge, t->ge);
    } else if (g->test->form == WS_GCAPS_LIT && !g->uses_gpu)
        ws_rta_add(g->terms, &g->n, t->period, 0, t->c + t->gm);
    else
        ws_rta_add(g->terms, &g->n, t->period, 0,
                   t->c + t->g + (g->test->form == WS_GCAPS_SAFE ? 2 * updates : updates));
}

static void elsewhere(struct gather *g, int h)
{
    const struct ws_rta_task *t = &g->s->tasks[h];
    bool uses = g->test->form == WS_GCAPS_SAFE ? t->n_segments > 0 : t->g > 0;
    if (uses && (g->uses_gpu || g->test->busy))
        ws_rta_add(g->terms, &g->n, t->period, reach(g, h, false) - t->ge,
                   t->ge + 2 * g->s->epsilon * t->n_segments);
}

int64_t ws_gcaps_bound(const struct ws_rta_set *s, struct ws_rta_work *w,
                       const struct ws_gcaps_test *test, int i)
{
    const struct ws_rta_task *t = &s->tasks[i];
    bool ref = test->form == WS_GCAPS_REF;
    struct gather g = {s, test, w->terms, 0, t->n_segments > 0};
    for (int h = 0; h < i; h++)
        if (ws_rta_local(s, h, i))
            core_mate(&g, h);
    if (test->form != WS_GCAPS_SAFE)
        g.uses_gpu = t->g > 0;
    for (int k = 0; k < (test->above ? test->n_above : i); k++) {
        int h = test->above ? test->above[k] : k;
        if (h != i && !(h < i && ws_rta_local(s, h, i)))
            elsewhere(&g, h);
    }
    int64_t own =
        t->c + t->g + s->epsilon * ((test->form == WS_GCAPS_SAFE ? 5 : 3) * t->n_segments + 1);
    return ws_rta_fixed_point(w, own, g.terms, g.n, ref ? t->period : t->deadline);
}

static int run(const struct ws_rta_set *s, struct ws_rta_work *w, struct ws_rta_result *ret,
               enum ws_gcaps_form form, bool busy)
{
    ws_rta_begin(s, w, ret);
    const struct ws_gcaps_test test = {form, busy, WS_GCAPS_BOUNDS, w->bound, NULL, 0};
    for (int i = 0; i < s->n_tasks && !s->tasks[i].best_effort; i++)
        if (!ws_rta_note(w, ret, i, ws_gcaps_bound(s, w, &test, i)))
            break;
    return 0;
}

#define FORM(name, form, busy)                                                                     \
    int ws_rta_gcaps_##name(const struct ws_rta_set *s, struct ws_rta_work *w,                     \
                            struct ws_rta_result *ret)                                             \
    {                                                                                              \
        return run(s, w, ret, form, busy);                                                         \
    }
FORM(suspend_ref, WS_GCAPS_REF, false)
FORM(suspend_fix, WS_GCAPS_FIX, false)
FORM(suspend_safe, WS_GCAPS_SAFE, false)
FORM(busy_ref, WS_GCAPS_REF, true)
FORM(busy_lit, WS_GCAPS_LIT, true)
FORM(busy_fix, WS_GCAPS_FIX, true)
FORM(busy_safe, WS_GCAPS_SAFE, true)

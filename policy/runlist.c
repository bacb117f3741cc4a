// SPDX-License-Identifier: Apache-2.0
/* Two forms of GCAPS's run-list update, slips and all. Where they go wrong:
 *
 *   a newcomer of real-time priority that finds only best effort moves just one of them away (Algorithm 1);
 *   the end of a task with no real-time one pending makes running := pending, so best-effort tasks still running are thrown off
 *   for good (both; the driver only where no real-time task stays);
 *   the end of a task that is not the listed one promotes a pending one, which joins (Algorithm 1) or replaces (driver) the
 *   listed one; replaced, that one stands in neither set and never goes on;
 *   an end does not take its own task out of pending (Algorithm 1), or only where no real-time one is pending (driver);
 *   a task that begins while it still stands in running by such a slip leaves running for pending (driver), so that the list may
 *   be empty while tasks wait;
 *   equal priorities go by number, not by arrival. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "policy/runlist.h"

int ws_runlist_init(struct ws_runlist *l, enum ws_runlist_form form, int n_tasks)
{
    *l = (struct ws_runlist){.form = form, .n_tasks = n_tasks};
    l->tasks = ws_alloc_array(n_tasks > 0 ? (size_t)n_tasks : 1, sizeof(*l->tasks));
    return l->tasks ? 0 : -ENOMEM;
}

void ws_runlist_deinit(struct ws_runlist *l)
{
    free(l->tasks);
    *l = WS_RUNLIST_NULL;
}

const char *ws_runlist_form_name(enum ws_runlist_form form)
{
    return form == WS_RUNLIST_ALG1 ? "Algorithm 1 as printed" : "the driver patch";
}

/* The first of highest priority in running (@pending: in pending, real-time ones only); -1: none. */
static int highest(const struct ws_runlist *l, bool pending)
{
    int best = -1;
    for (int i = 0; i < l->n_tasks; i++) {
        const struct ws_runlist_task *t = &l->tasks[i];
        if (pending ? t->pending && t->priority > 0 : t->running)
            if (best < 0 || t->priority > l->tasks[best].priority)
                best = i;
    }
    return best;
}

/* running := pending, pending := {}; the driver leaves @t out. */
static void swap_sets(struct ws_runlist *l, int t)
{
    for (int i = 0; i < l->n_tasks; i++) {
        l->tasks[i].running = l->tasks[i].pending && !(l->form == WS_RUNLIST_DRIVER && i == t);
        l->tasks[i].pending = false;
    }
}

void ws_runlist_begin(struct ws_runlist *l, int t)
{
    struct ws_runlist_task *new = &l->tasks[t];
    int top = highest(l, false);
    if (top < 0 && l->form == WS_RUNLIST_DRIVER)
        top = highest(
            l,
            true); /* running is empty and pending is not after a slip: nobody gets in that way */
    if (top < 0) {
        new->running = true;
    } else if (new->priority > 0 && new->priority > l->tasks[top].priority) {
        for (int i = 0; i < l->n_tasks; i++)
            if (l->tasks[i].running && (l->form == WS_RUNLIST_DRIVER || i == top)) {
                l->tasks[i].running = false;
                l->tasks[i].pending = true;
            }
        new->running = true;
    } else if (new->priority > 0 || l->tasks[top].priority > 0) {
        new->pending = true;
        if (l->form == WS_RUNLIST_DRIVER)
            new->running = false;
    } else {
        new->running = true;
    }
}

void ws_runlist_end(struct ws_runlist *l, int t)
{
    l->tasks[t].running = false;
    int next = highest(l, true);
    if (next >= 0) {
        l->tasks[next].pending = false;
        if (next == t)
            return;
        for (int i = 0; i < l->n_tasks && l->form == WS_RUNLIST_DRIVER; i++)
            l->tasks[i].running = false;
        l->tasks[next].running = true;
        return;
    }
    int top = highest(l, false);
    if (l->form == WS_RUNLIST_DRIVER && top >= 0 && l->tasks[top].priority > 0)
        l->tasks[t].pending = false;
    else
        swap_sets(l, t);
}

// SPDX-License-Identifier: Apache-2.0
/* Two published forms of GCAPS's run-list update, with their errors:
 *
 * - A new real-time task that finds only best-effort tasks running removes just one of them
 *   (Algorithm 1).
 * - If a task ends and no real-time task is pending, running := pending, so that best-effort tasks
 *   which still run are removed for good (both forms; the driver only if no real-time task
 *   remains).
 * - If a task ends that is not the listed one, a pending task is promoted. It joins the listed one
 *   (Algorithm 1) or replaces it (driver). A task that was replaced is in neither set and never
 *   runs again.
 * - A task that ends stays in pending (Algorithm 1; the driver removes it only if no real-time task
 *   is pending). If a task begins while it is still in running by such an error, it moves from
 *   running to pending (driver), so that the list may be empty while tasks wait.
 * - Equal priorities are served by number, not by arrival. */
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

/* The first of highest priority in running (@pending: in pending, real-time ones only); -1:
 * none. */
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

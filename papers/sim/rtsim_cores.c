// SPDX-License-Identifier: Apache-2.0
/* Cores have partitioned, preemptive fixed priorities. A run-list update is not preempted; a
 * boosted job has priority over all that are not boosted. */
#include "config.h"

#include "papers/sim/rtsim_private.h"

static bool wants_core(const struct ws_rtsim_actor *a)
{
    return a->state == READY || a->state == SPIN || a->state == UPDATE;
}

/* Whether @a goes before @b on their core; @b has it now or comes first in the set. */
static bool goes_before(const struct ws_rtsim *rt, int a, int b)
{
    const struct ws_rtsim_actor *x = &rt->actors[a], *y = &rt->actors[b];
    if ((x->state == UPDATE) != (y->state == UPDATE))
        return x->state == UPDATE;
    if (x->boosted != y->boosted)
        return x->boosted;
    if (x->boosted)
        return x->boost_seq < y->boost_seq;
    const struct ws_rtsim_task *t = &rt->set->tasks[a], *u = &rt->set->tasks[b];
    if (t->best_effort != u->best_effort)
        return u->best_effort;
    if (t->best_effort)
        return x->release < y->release;
    return t->priority != u->priority ? t->priority > u->priority : x->release < y->release;
}

void ws_rtsim_cores_choose(struct ws_rtsim *rt)
{
    for (int c = 0; c < rt->set->n_cores; c++) {
        int t = rt->cores[c].task;
        rt->chosen[c] = t >= 0 && wants_core(&rt->actors[t]) ? t : -1;
    }
    for (int i = 0; i < rt->set->n_tasks; i++) {
        int c = rt->set->tasks[i].core;
        if (wants_core(&rt->actors[i]) && rt->chosen[c] != i &&
            (rt->chosen[c] < 0 || goes_before(rt, i, rt->chosen[c])))
            rt->chosen[c] = i;
    }
}

static enum ws_rtsim_span span_of(const struct ws_rtsim *rt, int i)
{
    const struct ws_rtsim_actor *a = &rt->actors[i];
    if (a->state == SPIN)
        return WS_RTSIM_SPAN_SPIN;
    if (a->state == UPDATE)
        return WS_RTSIM_SPAN_UPDATE;
    enum ws_rtsim_step_kind k = step_of(rt, i)->kind;
    return k == STEP_COPY_IN || k == STEP_COPY_OUT ? WS_RTSIM_SPAN_COPY : WS_RTSIM_SPAN_CPU;
}

void ws_rtsim_core_flush(struct ws_rtsim *rt, int c)
{
    struct ws_rtsim_core *core = &rt->cores[c];
    if (core->task >= 0 && core->since < rt->now && rt->observer && rt->observer->span)
        rt->observer->span(rt->observer->arg, core->what, c, core->task, core->since, rt->now);
    core->since = rt->now;
}

/* The cores are the chosen ones' from now on. */
void ws_rtsim_cores_dispatch(struct ws_rtsim *rt)
{
    for (int c = 0; c < rt->set->n_cores; c++) {
        int i = rt->chosen[c];
        enum ws_rtsim_span what = i >= 0 ? span_of(rt, i) : WS_RTSIM_SPAN_CPU;
        if (i == rt->cores[c].task && what == rt->cores[c].what)
            continue;
        ws_rtsim_core_flush(rt, c);
        rt->cores[c].task = i;
        rt->cores[c].what = what;
    }
}

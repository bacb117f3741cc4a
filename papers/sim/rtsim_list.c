// SPDX-License-Identifier: Apache-2.0
/* The run list of gcaps. Its lock has one holder at a time, a task or the daemon. An update
 * takes epsilon, during which the GPU does nothing. */
#include "config.h"

#include "papers/sim/rtsim_private.h"

/* @holder begins an update. The GPU does nothing until the update is done, and then continues
 * without a further context switch. */
static void stall(struct ws_rtsim *rt, int holder)
{
    rt->lock_holder = holder;
    rt->gpu.stalled_until = rt->now + rt->set->epsilon;
    rt->gpu.current = -1;
    rt->gpu.switch_left = 0;
    rt->gpu.free_switch = true;
}

/* The run list changed, or not, by a call of task @i, which holds its lock. */
void ws_rtsim_list_update(struct ws_rtsim *rt, int i, bool changed)
{
    struct ws_rtsim_actor *a = &rt->actors[i];
    if (!changed || rt->set->epsilon == 0) {
        ws_rtsim_step_next(rt, i);
        return;
    }
    a->state = UPDATE;
    a->left = rt->set->epsilon;
    a->entered = true;
    stall(rt, i);
}

void ws_rtsim_list_unlock(struct ws_rtsim *rt)
{
    rt->lock_holder = LOCK_FREE;
    for (int i = 0; i < rt->set->n_tasks; i++)
        if (rt->actors[i].wants_lock) {
            rt->actors[i].wants_lock = false;
            rt->actors[i].state = READY;
        }
}

/* gcaps, hold work: the daemon sees that the work of task @i is done. */
void ws_rtsim_list_hand_on(struct ws_rtsim *rt, int i)
{
    rt->actors[i].closing = false;
    if (!ws_rtsim_request_close(rt, i) || rt->set->epsilon == 0)
        return;
    stall(rt, LOCK_DAEMON);
    rt->daemon_until = rt->gpu.stalled_until;
    if (rt->observer && rt->observer->span)
        rt->observer->span(rt->observer->arg, WS_RTSIM_SPAN_UPDATE, -1, i, rt->now,
                           rt->daemon_until);
}

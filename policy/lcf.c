// SPDX-License-Identifier: Apache-2.0
/* LCF, largest capacity last: fills the smallest GPU first. Source: sBEET-mg (RTSS 2022), VI.
 * The paper also names "largest task first"; neither of its authors' programs does that, nor
 * does this. */
#include "config.h"

#include "policy/sbeet_core.h"

static bool choose(struct ws_sbeet *p, int task, double deadline, struct ws_sbeet_choice *ret)
{
    ret->reason = "smallest GPU with room";
    for (int i = p->sys->n_gpus - 1; i >= 0; i--)
        if (ws_sbeet_choose_near(p, task, deadline, p->by_size[i], ret))
            return true;
    return false;
}

static const struct ws_sbeet_rule rule = {WS_SBEET_ASSIGN_NONE, choose};
WS_SBEET_OPS(lcf, "lcf", "load concentration, the smallest GPU first (RTSS 2022, baseline)", NULL,
             rule);

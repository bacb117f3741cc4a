// SPDX-License-Identifier: Apache-2.0
/* BCF: fills the largest GPU first. Source: sBEET-mg (RTSS 2022), VI. */
#include "config.h"

#include "policy/sbeet_core.h"

static bool choose(struct ws_sbeet *p, int task, double deadline, struct ws_sbeet_choice *ret)
{
    ret->reason = "largest GPU with room";
    for (int i = 0; i < p->sys->n_gpus; i++)
        if (ws_sbeet_choose_near(p, task, deadline, p->by_size[i], ret))
            return true;
    return false;
}

static const struct ws_sbeet_rule rule = {WS_SBEET_ASSIGN_NONE, choose};
WS_SBEET_OPS(bcf, "bcf", "load concentration, the largest GPU first (RTSS 2022, baseline)", NULL,
             rule);

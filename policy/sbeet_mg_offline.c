// SPDX-License-Identifier: Apache-2.0
/* sBEET-mg's offline distribution alone: each job on its own GPU with its energy-optimal SM count,
 * or it waits. Source: RTSS 2022, Alg. 1 and VI ("sBEET-mg Offline Only"). */
#include "config.h"

#include "policy/sbeet_core.h"

static bool choose(struct ws_sbeet *p, int task, double deadline, struct ws_sbeet_choice *ret)
{
    int k = ws_sbeet_own_gpu(p, task, deadline);
    if (k < 0 || ws_sbeet_full(&p->gpus[k]) ||
        p->gpus[k].limit - p->gpus[k].used < ws_sbeet_item(p, task, k)->m_opt) {
        ret->reason = "its GPU has fewer SMs left than are best for energy";
        return false;
    }
    ret->reason = "its GPU, energy-optimal SMs";
    return ws_sbeet_choose_there(p, task, deadline, k, ret);
}

static const struct ws_sbeet_rule rule = {WS_SBEET_ASSIGN_ALG1, choose};
WS_SBEET_OPS(sbeet_mg_offline, "sbeet-mg-offline",
             "each task on its energy-preferred GPU, no migration (RTSS 2022, Alg. 1)", NULL, rule);

// SPDX-License-Identifier: Apache-2.0
/* Load distribution: a job goes to the first idle GPU, or else to the GPU with the most SMs left.
 * Source: sBEET-mg (RTSS 2022), VI. */
#include "config.h"

#include "policy/sbeet_core.h"

static bool choose(struct ws_sbeet *p, int task, double deadline, struct ws_sbeet_choice *ret)
{
    ret->reason = "first idle GPU";
    for (int k = 0; k < p->sys->n_gpus; k++)
        if (ws_sbeet_idle(&p->gpus[k]) && ws_sbeet_choose_near(p, task, deadline, k, ret))
            return true;
    int best = -1, most = 0;
    for (int k = 0; k < p->sys->n_gpus; k++) {
        const struct ws_sbeet_gpu *g = &p->gpus[k];
        int left = g->limit - g->used;
        if (ws_sbeet_full(g) || !ws_sbeet_item(p, task, k)->cost || ws_sbeet_barred(p, k))
            continue;
        if (left > most || (left == most && ws_policy_nearer(p->job, k, best))) {
            most = left;
            best = k;
        }
    }
    ret->reason = "most SMs left";
    return best >= 0 && ws_sbeet_choose_there(p, task, deadline, best, ret);
}

static const struct ws_sbeet_rule rule = {WS_SBEET_ASSIGN_NONE, choose};
WS_SBEET_OPS(load_dist, "load-dist", "load distribution, idle GPUs first (RTSS 2022, baseline)",
             NULL, rule);

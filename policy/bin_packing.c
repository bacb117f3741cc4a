// SPDX-License-Identifier: Apache-2.0
/* Bin packing (Algorithm 6). The first batch: earliest deadline first, worst fit on utilisation =
 * best length / time to the deadline, at most 1 a pair. That alone keeps the deadlines, since jobs
 * of one pair are released together and run in order of deadline. Later: first fit. */
#include "config.h"

#include "policy/edl_core.h"

static const double rounding = 1e-9;

static int choose(const struct ws_edl *p, struct ws_edl_job *j)
{
    if (!p->first)
        return ws_min_tree_first(&p->pairs.mu, ws_edl_latest(p, j));
    int place = ws_min_tree_argmin(&p->pairs.sum);
    bool full = ws_min_tree_min(&p->pairs.sum) + j->best.t / j->room > 1 + rounding;
    return full ? -1 : place;
}

static const struct ws_edl_rule rule = {.choose = choose};

static const struct ws_policy_option options[] = {WS_EDL_OPTIONS};

WS_EDL_POLICY(bin_packing, rule, "bin-packing",
              "deadlines on a DVFS cluster: worst fit by utilisation, then first fit (Mei et al.)");

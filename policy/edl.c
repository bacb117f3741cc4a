// SPDX-License-Identifier: Apache-2.0
/* EDL tries only the pair that is free first. If the job does not fit there, it is shortened
 * (theta), or a new pair is turned on. Pairs that are free already would all start the job now; of
 * those, the one that is nearest to the job's data is tried. */
#include "config.h"

#include "policy/edl_core.h"

static int choose(const struct ws_edl *p, struct ws_edl_job *j)
{
    (void)j;
    return ws_min_tree_argmin(&p->pairs.mu);
}

static const struct ws_edl_rule rule = {.prior_alone = true,
                                        .grouped = true,
                                        .choose = choose,
                                        .may_readjust = true,
                                        .free_are_equal = true};

static const struct ws_policy_option options[] = {
    {"theta", "1", "shortest length after readjustment, as a share of the best; 1: none"},
    WS_EDL_OPTIONS};

WS_EDL_POLICY(edl, rule, "edl",
              "deadlines on a DVFS cluster: earliest first, pair free first, theta (Mei et al.)");

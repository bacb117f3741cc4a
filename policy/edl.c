// SPDX-License-Identifier: Apache-2.0
/* EDL: only the pair that is free first is ever tried; there the job fits, or is shortened (theta), or a new pair is opened. Pairs that are
 * free already all start the job now: of those, the one that its data is nearest to is tried. */
#include "config.h"

#include "policy/edl_core.h"

static int choose(const struct ws_policy *p, const struct ws_edl_job *j)
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

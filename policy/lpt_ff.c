// SPDX-License-Identifier: Apache-2.0
/* LPT-FF: longest first, on the first pair that meets the deadline. */
#include "config.h"

#include "policy/edl_core.h"

static int choose(const struct ws_edl *p, struct ws_edl_job *j)
{
    return ws_min_tree_first(&p->pairs.mu, ws_edl_latest(p, j));
}

static const struct ws_edl_rule rule = {
    .longest_first = true, .prior_alone = true, .grouped = true, .choose = choose};

static const struct ws_policy_option options[] = {WS_EDL_OPTIONS};

WS_EDL_POLICY(lpt_ff, rule, "lpt-ff",
              "deadlines on a DVFS cluster: longest first, first pair that fits (Mei et al.)");

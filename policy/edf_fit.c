// SPDX-License-Identifier: Apache-2.0
/* EDF-BF and EDF-WF: earliest deadline first, on the pair with the largest (BF) or smallest (WF)
 * load among those that meet the deadline. Loads that differ by less than 1e-9 count as equal,
 * since the pairs of all deadline-prior jobs have load 1 except for rounding; the lowest place wins
 * then. Each pair that was ever on is looked at, which takes n·m steps, as in the paper. */
#include "config.h"

#include <math.h>

#include "policy/edl_core.h"

static const double same_load = 1e-9;

/* @sign: 1 for the largest load, -1 for the smallest. */
static int choose(const struct ws_edl *p, const struct ws_edl_job *j, double sign)
{
    const struct ws_edl_pairs *c = &p->pairs;
    int n = p->opening ? p->n_opened : c->n_seen, found = -1;
    double best = -INFINITY, latest = ws_edl_latest(p, j);
    for (int i = 0; i < n; i++) {
        double mu = ws_min_tree_get(&c->mu, i), load = sign * c->load[i];
        if (mu <= latest && mu < INFINITY && load > best + same_load) {
            best = load;
            found = i;
        }
    }
    return found;
}

static int choose_largest(const struct ws_edl *p, struct ws_edl_job *j)
{
    return choose(p, j, 1);
}

static int choose_smallest(const struct ws_edl *p, struct ws_edl_job *j)
{
    return choose(p, j, -1);
}

static const struct ws_edl_rule best_fit = {
    .prior_alone = true, .grouped = true, .choose = choose_largest};
static const struct ws_edl_rule worst_fit = {
    .prior_alone = true, .grouped = true, .choose = choose_smallest};

static const struct ws_policy_option options[] = {WS_EDL_OPTIONS};

WS_EDL_POLICY(edf_bf, best_fit, "edf-bf",
              "deadlines on a DVFS cluster: earliest first, best fit by load (Mei et al.)");
WS_EDL_POLICY(edf_wf, worst_fit, "edf-wf",
              "deadlines on a DVFS cluster: earliest first, worst fit by load (Mei et al.)");

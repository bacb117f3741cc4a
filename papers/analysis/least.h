/* SPDX-License-Identifier: Apache-2.0 */
/* papers/analysis/least.h - what no policy can fall below: misses, and energy, of periodic tasks
 * on GPUs whose jobs keep their SMs until they end (papers/sim/machine.h, clock of events).
 *
 * Both are lower bounds by Lagrange multipliers: SMs and slots get prices by time and GPU, each job
 * goes where it is cheapest, and what that costs less the value of all SMs and slots is a bound,
 * whatever the prices are. doc/policy-wattshare.md explains it. More rounds find better prices.
 * Bounds are not tight: a set whose bound is 0 misses may well have to miss.
 *
 * Units: as policy/policy.h. Threads: any. Errors: base/error.h. */
#ifndef WS_PAPERS_ANALYSIS_LEAST_H
#define WS_PAPERS_ANALYSIS_LEAST_H

#include "policy/policy.h"

struct ws_least {
    double duration; /* jobs whose deadlines come before it are counted */
    double share;    /* (0, 1]: the part of its time that a kernel takes at least */
    int n_rounds;    /* of the search for prices; ≥ 1 */
    /* What some policy reached, which says how far to go in each round; a wrong figure makes the
     * search slower, and the bound no less true. */
    double reached;
};
/* The fewest jobs that miss their deadlines. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_least_missed(double *ret, const struct ws_policy_system *s,
                                  const struct ws_least *l);
/* The least energy, with static power, if no job misses its deadline but those that are in time on
 * no GPU and no number of SMs: these are not started. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_least_energy(double *ret, const struct ws_policy_system *s,
                                  const struct ws_least *l);

#endif

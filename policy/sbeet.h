// SPDX-License-Identifier: Apache-2.0
/* policy/sbeet.h - what the offline part of a policy of the sBEET family decided, for reports and
 * checks. Threads: as the policy. */
#ifndef WS_POLICY_SBEET_H
#define WS_POLICY_SBEET_H

#include "policy/policy.h"

/* Whether @ops belongs to the family; the two below are for those only, after prepare(). */
bool ws_sbeet_is(const struct ws_policy_ops *ops);
/* The GPU that @task belongs to; -1: to none (baselines). */
int ws_sbeet_home(const struct ws_policy *p, int task);
/* Energy-optimal SM count of @task on @gpu; 0: its cost there is unknown. */
int ws_sbeet_optimal_sms(const struct ws_policy *p, int task, int gpu);
/* GPUs by increasing energy of @task, ret[0…n-1]. Return: n. */
int ws_sbeet_ranking(const struct ws_policy *p, int task, const int **ret);

#endif

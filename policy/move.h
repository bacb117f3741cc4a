// SPDX-License-Identifier: Apache-2.0
/* policy/move.h - where a job's data is, for rules that do not distinguish between some GPUs. Pure.
 * Threads: any. */
#ifndef WS_POLICY_MOVE_H
#define WS_POLICY_MOVE_H

#include "policy/policy.h"

/* The move of @j to @gpu; all 0 if nothing is known of its data. */
struct ws_policy_move ws_policy_move(const struct ws_policy_job *j, int gpu);
/* Whether @j may be started on @gpu at all. */
bool ws_policy_can_run(const struct ws_policy_job *j, int gpu);
/* For two GPUs between which a rule does not distinguish: whether @a is better than @b, since the
 * move there takes less time, or since the job's program uses @a now. False if nothing is known, so
 * that the rule's own order holds. */
bool ws_policy_nearer(const struct ws_policy_job *j, int a, int b);
/* Whether two GPUs are equivalent: of one type, and with the same number of SMs to give out. */
bool ws_policy_alike(const struct ws_policy_system *s, int a, int b);
/* For rules that distribute jobs by counting: @gpu is the one whose turn it is. Return: the GPU
 * that the job's program uses now, if it is equivalent to @gpu and no busier; else @gpu. */
int ws_policy_stay(const struct ws_policy_snapshot *s, const struct ws_policy_job *j, int gpu);

#endif

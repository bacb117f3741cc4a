// SPDX-License-Identifier: Apache-2.0
/* sim/rt_input.h - task-set lines of the GCAPS kind (tasks with ces and ges, in ms) and of the STGM kind (tasks with segs, in µs)
 * as sets for the real-time simulator, and the bounds that such a line may carry. What is wrong with a line is added to it
 * (sim/jsonl.h). Threads: any, one for each line. */
#ifndef WS_SIM_RT_INPUT_H
#define WS_SIM_RT_INPUT_H

#include "sim/jsonl.h"
#include "sim/rt.h"

enum ws_rt_kind { WS_RT_NEITHER, WS_RT_GCAPS_LINE, WS_RT_STGM_LINE };
/* By the fields of its first task. */
enum ws_rt_kind ws_rt_kind(struct ws_json_line *l);
/**
 * ws_rt_read() - the set of a line
 * @variant: STGM: which of the line's allocations ("stgm_suspend_safe") says cores and SMs; not used where tasks have "cpu" and
 * "sms" of their own; GCAPS: which of the line's results gives GPU priorities ("gcaps_busy_gprio"); NULL: none
 * @ret: deinit it whatever is returned
 * Return: 0, WS_RT_BAD with the reason in the line, WS_RT_UNPLACED (the variant found no allocation), or negative.
 */
enum { _WS_RT_OK, WS_RT_BAD, WS_RT_UNPLACED };
WS_MUST_CHECK int ws_rt_read(struct ws_json_line *l, const char *variant, struct ws_rt_set *ret);
/**
 * ws_rt_read_bounds() - the bounds that the line records for @method (in its ref, fix or res)
 * @ret: [n_tasks] units, 0 where there is none
 * Return: whether the line has @method and says that the set is schedulable.
 */
bool ws_rt_read_bounds(struct ws_json_line *l, const char *method, const struct ws_rt_set *set,
                       int64_t *ret);

#endif

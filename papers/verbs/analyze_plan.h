/* SPDX-License-Identifier: Apache-2.0 */
/* papers/verbs/analyze_plan.h - the method wattshare_safe of `wattshare analyze`: whether policy
 * wattshare misses no deadline with guarantee=1 (doc/policy-wattshare.md). It is for task sets of
 * sBEET-mg. Threads: any. */
#ifndef WS_PAPERS_VERBS_ANALYZE_PLAN_H
#define WS_PAPERS_VERBS_ANALYZE_PLAN_H

#include "base/macros.h"
#include "papers/sets/gpus.h"
#include "papers/sets/jsonl.h"

#define WS_ANALYZE_PLAN      "wattshare_safe"
#define WS_ANALYZE_PLAN_GPUS "rtx3070@24,t400" /* where no others are given */

/* The answer for one line: {"ok", "homes": [[GPU, SMs], ...], "home": [of each task]}. Return: 0;
 * negative, or an error in the line, with @ret NULL. */
WS_MUST_CHECK int ws_analyze_plan(struct json_object **ret, const struct ws_gpus *gpus,
                                  struct ws_json_line *l);

#endif

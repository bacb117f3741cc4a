/* SPDX-License-Identifier: Apache-2.0 */
/* papers/sets/sbeet_hunt.h - looks for missed deadlines by several runs of one task set of
 * sBEET-mg, with other releases, and kernels that end early. Deterministic for a seed. Threads: one
 * for each set. Errors: base/error.h. */
#ifndef WS_PAPERS_SETS_SBEET_HUNT_H
#define WS_PAPERS_SETS_SBEET_HUNT_H

#include "papers/sets/sbeet_set.h"

/* The longest period of the set's tasks, in ms. Runs of a hunt last a few of it. */
double ws_sbeet_hunt_period(const struct ws_sbeet_set *s);
/**
 * ws_sbeet_hunt() - run @s @n times and add what happened to @sum
 * @s: its offsets are drawn anew for each run, and stay as in the last
 * @base: the options that all runs have; `early`, `late` and `seed` are drawn for each
 * @sum: of a run of the same set before; added up, but for the longest responses
 * In every second run, first releases are whole numbers, so that events fall together.
 * Return: as ws_sbeet_set_run(), with the reason in sum->note.
 */
WS_MUST_CHECK int ws_sbeet_hunt(struct ws_sbeet_outcome *sum, struct ws_sbeet_set *s,
                                const struct ws_policy_ops *ops, const char *const *policy_options,
                                const struct ws_machine_options *base, uint64_t seed, int n);

#endif

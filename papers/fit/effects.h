// SPDX-License-Identifier: Apache-2.0
/* papers/fit/effects.h - what each setting of a GPU does to launches that differ in what they
 * depend on: of which a setting has two effects, and each launch shows a share of either.
 *
 *     off = own(family) + x[0]·effect[0](setting) + x[1]·effect[1](setting) + noise
 *
 * The own number of a family is how far predictions are off for it as a whole, which says nothing
 * of a setting. Each effect is pulled towards 0 as by one launch of weight 1 that shows it whole,
 * so that one that no launch shows is 0. Errors beyond a limit count by their size instead of its
 * square.
 * Threads: any; pure. Errors: -ENOMEM. */
#ifndef WS_PAPERS_FIT_EFFECTS_H
#define WS_PAPERS_FIT_EFFECTS_H

#include <stddef.h>
#include "base/macros.h"

enum { WS_EFFECTS = 2 };
struct ws_effects_launch {
    double off, x[WS_EFFECTS], weight;
    int family, setting; /* numbers from 0 */
};

/* @ret: each [n_settings]. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_effects_find(const struct ws_effects_launch *v, size_t n, int n_families,
                                  int n_settings, double limit, double *const ret[WS_EFFECTS]);

#endif

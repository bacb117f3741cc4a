// SPDX-License-Identifier: Apache-2.0
/* papers/analysis/gcaps.h - computes one task's bound under GCAPS, for the plain test and for
 * the assignment of GPU priorities.
 * Threads: one for each ws_rta_work. */
#ifndef WS_PAPERS_ANALYSIS_GCAPS_H
#define WS_PAPERS_ANALYSIS_GCAPS_H

#include "papers/analysis/rta_private.h"

enum ws_gcaps_form { WS_GCAPS_REF, WS_GCAPS_LIT, WS_GCAPS_FIX, WS_GCAPS_SAFE };

/* What the jitter of an interfering task is computed from. */
enum ws_gcaps_jitter {
    WS_GCAPS_BOUNDS,    /* R_h, as found */
    WS_GCAPS_DEADLINES, /* D_h, where R_h isn't known yet */
    /* D_h, but R_h of an earlier run for the GPU time of core-mates: the release's slip */
    WS_GCAPS_STALE
};

struct ws_gcaps_test {
    enum ws_gcaps_form form;
    bool busy;
    enum ws_gcaps_jitter jitter;
    const int64_t *bound; /* R_h for BOUNDS and STALE */
    /* [n_above] tasks with a higher GPU priority; NULL: all above by CPU priority. */
    const int *above;
    int n_above;
};

/* Return: the bound of task @i, -1 where it exceeds its deadline. */
int64_t ws_gcaps_bound(const struct ws_rta_set *s, struct ws_rta_work *w,
                       const struct ws_gcaps_test *test, int i);

#endif

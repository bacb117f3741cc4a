// SPDX-License-Identifier: Apache-2.0
/* papers/sets/rtsim_set.h - turns sets that were read or generated (papers/sets/rt_sets.h) into
 * sets for the real-time simulator, with the cores, SMs, GPU priorities and bounds that an
 * analysis gives them. Threads: one for each space. Errors: base/error.h. */
#ifndef WS_PAPERS_SETS_RTSIM_SET_H
#define WS_PAPERS_SETS_RTSIM_SET_H

#include "papers/analysis/rta.h"
#include "papers/sets/rt_sets.h"
#include "papers/sim/rtsim.h"

/* Memory for the analyses; it grows to what the largest set needs. */
struct ws_rtsim_space {
    struct ws_rta_work rta;
    struct ws_stgm_work stgm;
    struct ws_stgm_whole whole;
};
#define WS_RTSIM_SPACE_NULL ((struct ws_rtsim_space){0})
void ws_rtsim_space_deinit(struct ws_rtsim_space *x);

/* What an analysis says of a set. */
struct ws_rtsim_verdict {
    bool placed;     /* every task has a core (STGM; others bring theirs) */
    bool accepted;   /* every bound is within its deadline */
    int64_t *bounds; /* [n_tasks] in the set's units, 0: none; malloc'ed */
};

/**
 * ws_rtsim_set_make() - the set to simulate
 * @m: NULL: no analysis (a GCAPS set then is as it stands; the tasks of an STGM set go to cores by
 * worst fit, and have no SMs of their own). A method of stgm.h on an STGM set gives cores and SMs;
 * another one puts each kernel on the whole GPU. A method with GPU priorities gives those. If the
 * parts of C or G add up to more than the sum that is analysed (since they are rounded), the
 * longest part is shortened, so that the simulated task never needs more. Empty segments are left
 * out.
 * @ret: borrows from @from what kernels take by SMs; deinit whatever is returned
 * @ret_verdict: free its bounds
 * Return: 0, -EINVAL (the method is not for sets of this kind), or another negative.
 */
WS_MUST_CHECK int ws_rtsim_set_make(const struct ws_rt_set *from, const struct ws_rta_method *m,
                                    struct ws_rtsim_space *x, struct ws_rtsim_set *ret,
                                    struct ws_rtsim_verdict *ret_verdict);

#endif

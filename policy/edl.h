// SPDX-License-Identifier: Apache-2.0
/* policy/edl.h - tasks with deadlines on clusters of CPU-GPU pairs that are switched off server by
 * server, with a voltage and clock setting for each task: EDL and the heuristics it is compared
 * with.
 *
 * Source: Mei et al. (models/dvfs.h), Algorithms 1-6. A GPU of policy.h is a pair,
 * ws_policy_gpu.server its server (-1: never off). Jobs give their parameters in
 * ws_policy_job.dvfs; without them a job runs as its task's cost says, at the default clocks.
 *
 *   wattshare-servers  ours: lookahead/servers.c
 *   edl          energy-prior tasks in EDF order on the pair that is free first. A task that would
 *                be late there is shortened to the room, but not below theta times its best length
 *                (theta-readjustment); else it gets a new pair
 *   edf-bf       EDF order, the pair with the largest load that meets the deadline
 *   edf-wf       EDF order, the pair with the smallest load that meets the deadline
 *   lpt-ff       longest first, the first pair that meets the deadline
 *   bin-packing  EDF order; at the start the pair with the smallest sum of utilisations (at most
 *                1), later the first that fits
 *
 * Forms. The default is the paper's text. servers=whole follows the authors' released program in
 * what matters most for its figures of more than one pair a server: Algorithm 3 is never run,
 * servers are opened whole (so idle energy is far higher, and theta pays).
 *
 * In all of them: each job gets its setting of least energy within its deadline (Algorithm 1;
 * option dvfs=no: the default one). The first batch is placed on as many pairs as it takes and
 * these are grouped into servers by decreasing finish (Algorithm 3), with a pair of its own for
 * each job that must be hurried to meet its deadline (not in bin-packing). Later arrivals turn on
 * the lowest-numbered server that is off where no pair fits. A server is switched off once all its
 * pairs have been idle for rho slots (dynamic resource sleep). "Load" is not defined in the paper:
 * here the largest finish / deadline of the pair's jobs. A job that no setting can finish in time,
 * or that finds no pair, is dropped.
 * Each event must be given once (ops.once); a GPU that frees earlier or later than predicted is
 * read again at its completion. */
#ifndef WS_POLICY_EDL_H
#define WS_POLICY_EDL_H

#include "policy/policy.h"

/* All of them, for messages. */
#define WS_EDL_POLICIES "wattshare-servers, edl, edf-bf, edf-wf, lpt-ff or bin-packing"

extern const struct ws_policy_ops ws_policy_edl, ws_policy_edf_bf, ws_policy_edf_wf,
    ws_policy_lpt_ff, ws_policy_bin_packing, ws_policy_wattshare_servers;

/* What one such policy has done since make(). */
struct ws_edl_counts {
    uint64_t n_deadline_prior; /* their least energy alone would be too late */
    uint64_t n_readjusted;     /* shortened to the room left on a pair */
    uint64_t n_dropped;
};
/* Whether @ops is one of the above; their objects may be given to ws_edl_counts(). */
bool ws_edl_is(const struct ws_policy_ops *ops);
struct ws_edl_counts ws_edl_counts(const struct ws_policy *p);

#endif

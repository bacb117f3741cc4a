// SPDX-License-Identifier: Apache-2.0
/* papers/sets/gen_edl.h - makes task sets as Mei et al. (models/dvfs.h), Section 5.1.3. Threads:
 * any; pure. */
#ifndef WS_PAPERS_SETS_GEN_EDL_H
#define WS_PAPERS_SETS_GEN_EDL_H

#include "papers/sets/random.h"
#include "papers/sim/cluster.h"

struct ws_gen_edl {
    uint64_t seed;
    double u_initial; /* utilisation of the tasks that are there at 0, as a share of `base` pairs */
    double u_online;  /* of those that arrive in slots 1…n_slots; 0: none (offline) */
    int base, n_slots;
    /* a task's utilisation is uniform in between; the last one's is trimmed so that the sum is
     * exact */
    double u_low, u_high;
    /* Applications to draw from; NULL: uniform in the ranges the paper prints. Times in slots;
     * each task is 10 to 50 times as long. */
    const struct ws_dvfs_task *library;
    int n_library;
};
/* Offline with U = 1, and online with 0.4 at 0 and 1.6 over a day of 1440 minutes; u in (0, 1)
 * as the paper says. */
extern const struct ws_gen_edl ws_gen_edl_offline, ws_gen_edl_online;
/* The utilisations the authors' release draws: U(0.25, 0.75) offline, U(0.15, 0.85) online. */
void ws_gen_edl_release_u(struct ws_gen_edl *g);

/* The parameters of one task of @g, at least ten times as long as its application. */
struct ws_dvfs_task ws_gen_edl_task(const struct ws_gen_edl *g, struct ws_random *r);
/* Return: 0 with @ret (free()) of @ret_n tasks by arrival; -EINVAL: a parameter is out of range;
 * -ENOMEM. */
WS_MUST_CHECK int ws_gen_edl(const struct ws_gen_edl *g, struct ws_cluster_task **ret,
                             size_t *ret_n);

#endif

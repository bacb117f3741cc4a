// SPDX-License-Identifier: Apache-2.0
/* policy/edl_pairs.h - pairs, servers and their indexes, for the policies of policy/edl.h. Threads:
 * as policies. */
#ifndef WS_POLICY_EDL_PAIRS_H
#define WS_POLICY_EDL_PAIRS_H

#include "policy/min_tree.h"
#include "policy/policy.h"

struct ws_edl_server {
    int id;       /* as in ws_policy_gpu.server */
    int first, n; /* its pairs: places first…first + n - 1 */
    bool on;
};

/* Places number the pairs: those that are never off first, then server by server. While the first
 * batch is placed, a place is a pair "as opened", which has no server yet. */
struct ws_edl_pairs {
    int n, n_servers, n_always;
    int *gpu_of, *place_of,
        *server_of; /* place → GPU, GPU → place, place → index of servers (-1: never off) */
    struct ws_edl_server *servers;
    struct ws_min_tree mu;    /* by place: when the pair is free; INFINITY: off */
    struct ws_min_tree off;   /* by server: its index where it is off */
    struct ws_min_tree sleep; /* by server: when it may be switched off */
    /* By place: sum of utilisations; only while the first batch is placed */
    struct ws_min_tree sum;
    double *load;     /* by place: largest finish / deadline of its jobs */
    int n_seen;       /* no place from here on has been on since ws_edl_pairs_clear() */
    double slot, rho; /* of the dynamic resource sleep; set by the owner */
};

/* Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_edl_pairs_init(struct ws_edl_pairs *c, const struct ws_policy_system *system);
void ws_edl_pairs_deinit(struct ws_edl_pairs *c);
/* All servers off; pairs that are never off are free at @now. */
void ws_edl_pairs_clear(struct ws_edl_pairs *c, double now);
/* The pairs of server @i are on, and free at @now. */
void ws_edl_pairs_on(struct ws_edl_pairs *c, int i, double now);
void ws_edl_pairs_off(struct ws_edl_pairs *c, int i);
/* The pair at @place, which is on, is free at @mu. */
void ws_edl_pairs_set(struct ws_edl_pairs *c, int place, double mu);
/* Dynamic resource sleep: when a server is switched off whose pairs are all free at @free_at: at
 * the slot by which they have been idle for rho slots; without slots, just so long after. */
double ws_edl_pairs_sleep_at(const struct ws_edl_pairs *c, double free_at);

#endif

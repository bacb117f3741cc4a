/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/cluster.h - blocks that run together, and their barrier (cluster.c). Where their
 * shared memory is, is at the end of priv.h. Private to the interpreter. */
#ifndef WS_DEVICE_SOFT_EXEC_CLUSTER_H
#define WS_DEVICE_SOFT_EXEC_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/launch_check.h"

struct ws_blockrun;
struct ws_split;
struct ws_warp;

/* The number of its barrier, behind those of a block; what splits that wait have as bar_id. */
enum { WS_CLUSTER_BARRIER = 16 };
/* A block alone is a cluster, too. */
struct ws_block_cluster {
    uint32_t n, n_arrived;                      /* n_arrived: threads, at its barrier */
    uint32_t phase;                             /* how often the barrier has opened */
    uint64_t n_opened;                          /* the same with all mbarriers of its blocks */
    struct ws_blockrun *blocks[WS_CLUSTER_MAX]; /* by rank */
};

/* As ws_exec_bar_arrive(), at barrier.cluster.arrive or .wait. */
bool ws_exec_cluster_bar(struct ws_blockrun *b, struct ws_split *s);
/* Lanes of the warp have ended. */
void ws_exec_cluster_exit(struct ws_blockrun *b, struct ws_warp *w, uint32_t lanes);
/* Whether what the block waits for may come from another one of its cluster. */
bool ws_exec_waits_for_cluster(const struct ws_blockrun *b);

#endif

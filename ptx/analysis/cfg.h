/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/analysis/cfg.h - basic blocks of a function, and where its branches meet again. */
#ifndef WS_PTX_ANALYSIS_CFG_H
#define WS_PTX_ANALYSIS_CFG_H

#include "base/macros.h"
#include "ptx/ir.h"

struct ws_ptx_block {
    uint32_t first, n; /* instructions */
    int32_t succ[2];   /* -1: none; [0] fall-through or uniform target, [1] taken */
    int32_t ipdom;     /* immediate post-dominator, or -1: exit */
};
struct ws_ptx_cfg {
    uint32_t n_blocks;
    struct ws_ptx_block *blocks;
    uint32_t *block_of; /* [n_insns] */
};
/* All edges, also those of brx.idx beyond the first two. Block n_blocks is the end of the thread.
 */
struct ws_ptx_edges {
    uint32_t *succ_at,
        *succ; /* successors of block b: succ[succ_at[b]] to succ[succ_at[b + 1] - 1] */
    uint32_t *pred_at, *pred; /* predecessors likewise, by rising number */
};
/* Allocates from @a. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_edges_build(struct ws_ptx_edges *ret, const struct ws_ptx_cfg *c,
                                     const struct ws_ptx_func *f, struct ws_arena *a);

/* Allocates from @a. Return: 0 or -ENOMEM. The point where lanes that diverged at a branch meet
 * again is the first instruction of its block's ipdom. */
WS_MUST_CHECK int ws_ptx_cfg_build(struct ws_ptx_cfg *ret, const struct ws_ptx_func *f,
                                   struct ws_arena *a);

#endif

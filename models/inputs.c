// SPDX-License-Identifier: Apache-2.0
/* models/inputs.c - instruction counts as the models want them. */
#include "models/inputs.h"

#include <math.h>
#include "base/error.h"

enum { WARP = 32, SECTORS_COALESCED = 4, SECTORS_WORST = 32 };

int ws_mwp_kernel_from_counts(struct ws_mwp_kernel *ret, const struct ws_ptx_counts *c,
                              uint32_t threads_per_block, uint64_t n_blocks, uint32_t blocks_per_sm)
{
    struct ws_mwp_kernel k = {
        .threads_per_block = threads_per_block,
        .n_blocks = n_blocks,
        .active_blocks_per_sm = blocks_per_sm,
        .comp_insts = c->comp + c->synch,
        .coal_insts = c->coal,
        .uncoal_insts = c->uncoal,
        .uncoal_per_mw = c->uncoal_per_mw,
        .synch_insts = c->synch,
    };
    int r = ws_mwp_check_kernel(&k, NULL);
    if (r)
        return ws_forward(r);
    *ret = k;
    return 0;
}

int ws_mwp_kernel_from_run(struct ws_mwp_kernel *ret, const struct ws_run_counts *e,
                           uint32_t threads_per_block, uint64_t n_blocks, uint32_t blocks_per_sm)
{
    if (!threads_per_block || !n_blocks || e->global_accesses > e->warp_insns)
        return ws_raise(-EINVAL);
    uint32_t block_warps = (threads_per_block + WARP - 1) / WARP;
    double warps = block_warps * (double)n_blocks;
    double memory = (double)e->global_accesses / warps;
    double mean = e->global_accesses ? (double)e->sectors / (double)e->global_accesses : 0;
    double uncoal = (mean - SECTORS_COALESCED) / (SECTORS_WORST - SECTORS_COALESCED);
    uncoal = fmin(fmax(uncoal, 0), 1) * memory;
    struct ws_mwp_kernel k = {
        .threads_per_block = threads_per_block,
        .n_blocks = n_blocks,
        .active_blocks_per_sm = blocks_per_sm,
        .comp_insts = (double)(e->warp_insns - e->global_accesses) / warps,
        .coal_insts = memory - uncoal,
        .uncoal_insts = uncoal,
        .uncoal_per_mw = uncoal > 0 ? SECTORS_WORST : 1,
        .synch_insts = (double)e->barriers / warps,
    };
    int r = ws_mwp_check_kernel(&k, NULL);
    if (r)
        return ws_forward(r);
    *ret = k;
    return 0;
}

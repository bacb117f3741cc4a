// SPDX-License-Identifier: Apache-2.0
/* The launch of a fused kernel: how its blocks are dealt to the members, and what stands in its
 * parameters. */
#include <string.h>

#include "base/error.h"
#include "base/launch_check.h"
#include "ptx/passes/pass.h"

/* Rounds until the slowest is through. */
static uint64_t set_shares(struct ws_ptx_fuse *f, uint32_t n_members, uint32_t unit)
{
    uint64_t rounds = 0, round = 0;
    for (uint32_t k = 0; k < n_members; k++) {
        struct ws_ptx_fuse_member *w = &f->member[k];
        uint64_t share = w->total ? WS_MAX(((uint64_t)w->total + unit / 2) / unit, UINT64_C(1)) : 0;
        w->share = (uint32_t)share;
        w->first = (uint32_t)round;
        round += share;
        if (share)
            rounds = WS_MAX(rounds, (w->total + share - 1) / share);
    }
    f->round = round <= INT32_MAX ? (uint32_t)round : 0;
    return rounds;
}

uint32_t ws_ptx_fuse_deal(struct ws_ptx_fuse *f, uint32_t n_members)
{
    uint32_t unit = UINT32_MAX;
    for (uint32_t k = 0; k < n_members; k++) {
        struct ws_ptx_fuse_member *w = &f->member[k];
        w->total = w->grid.total;
        w->threads = w->block.total;
        if (w->total)
            unit = WS_MIN(unit, w->total);
    }
    /* To the nearest whole multiple of the smallest member; of a part of it where the rounds would
     * be too many for a grid. */
    uint64_t rounds = set_shares(f, n_members, unit);
    while (rounds > WS_GRID_YZ_MAX && unit > 1) {
        unit = (unit + 1) / 2;
        rounds = set_shares(f, n_members, unit);
    }
    return f->round && rounds * f->round <= INT32_MAX ? (uint32_t)(rounds * f->round) : 0;
}

/* Whether the fused kernel does for this launch of its member @n. */
static bool goes(const struct ws_ptx_fused *k, uint32_t n, const struct ws_ptx_fuse_work *w,
                 const struct ws_ptx_fuse_launch *l)
{
    if (k->member[n].flat_grid && (w->grid[1] > 1 || w->grid[2] > 1))
        return false;
    if (k->member[n].flat_block && (w->block[1] > 1 || w->block[2] > 1))
        return false;
    return !k->same_block || !l->block[0] || !memcmp(l->block, w->block, sizeof(w->block));
}

int ws_ptx_fuse_launch(const struct ws_ptx_fused *k, const struct ws_ptx_fuse_work *work,
                       uint8_t *params, struct ws_ptx_fuse_launch *ret)
{
    struct ws_ptx_fuse_launch l = {0};
    memset(params, 0, k->param_bytes);
    struct ws_ptx_fuse *f = (struct ws_ptx_fuse *)(void *)(params + k->header);
    for (uint32_t n = 0; n < k->n; n++) {
        struct ws_ptx_fuse_member *m = &f->member[n];
        const struct ws_ptx_fuse_work *w = &work[n];
        if (!w->params)
            continue;
        if (!goes(k, n, w, &l) || !ws_ptx_shape_set(&m->grid, w->grid) ||
            !ws_ptx_shape_set(&m->block, w->block))
            return WS_PTX_E_UNSUPPORTED;
        memcpy(params + k->member[n].param, w->params, k->member[n].param_bytes);
        if (k->same_block)
            memcpy(l.block, w->block, sizeof(l.block));
        else
            l.block[0] = WS_MAX(l.block[0], m->block.total);
        l.shared_bytes = WS_MAX(l.shared_bytes, w->shared_bytes);
    }
    uint32_t blocks = ws_ptx_fuse_deal(f, k->n);
    if (!blocks)
        return WS_PTX_E_UNSUPPORTED;
    l.grid[0] = f->round;
    l.grid[1] = blocks / f->round;
    l.grid[2] = 1;
    for (int d = 1; d < 3; d++)
        l.block[d] = WS_MAX(l.block[d], 1u);
    *ret = l;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/shared.h - where an address in shared memory is: in the block's own, or in that
 * of another block of its cluster (cluster.c). Private to the interpreter. */
#ifndef WS_DEVICE_SOFT_EXEC_SHARED_H
#define WS_DEVICE_SOFT_EXEC_SHARED_H

#include "device/soft/exec/priv.h"

/* An address in shared memory, without its window: an offset of WS_CLUSTER_SHIFT bits in the
 * block's own memory, or, with 1 + r above it, in that of the cluster's block of rank r. */
enum { WS_CLUSTER_SHIFT = 24, WS_CLUSTER_RANKS = 0xff };
static inline uint32_t ws_exec_rank_of(const struct ws_core_ctx *c, uint64_t va)
{
    uint32_t tag = va >> WS_CLUSTER_SHIFT & WS_CLUSTER_RANKS;
    return tag ? tag - 1 : c->b->rank;
}
/* The same place in the block of rank @rank. In a cluster of one block addresses stay as they
 * are. */
static inline uint64_t ws_exec_to_rank(const struct ws_core_ctx *c, uint64_t va, uint32_t rank)
{
    uint64_t tag = WS_MIN(rank + UINT64_C(1), (uint64_t)WS_CLUSTER_RANKS);
    return c->b->cluster->n == 1 && rank == 0
               ? va
               : (va & ~((uint64_t)WS_CLUSTER_RANKS << WS_CLUSTER_SHIFT)) | tag << WS_CLUSTER_SHIFT;
}
/* The block whose shared memory has @bytes there, and *ret_at: from where on. NULL: none has. */
struct ws_blockrun *ws_exec_shared_block(const struct ws_core_ctx *c, uint64_t off, uint64_t bytes,
                                         uint64_t *ret_at);
static inline uint8_t *ws_exec_shared(const struct ws_core_ctx *c, uint64_t off, uint64_t bytes)
{
    if (WS_LIKELY(off < c->shared_bytes && c->shared_bytes - off >= bytes))
        return c->shared + off;
    uint64_t at;
    const struct ws_blockrun *of = ws_exec_shared_block(c, off, bytes, &at);
    return of ? of->ctx.shared + at : NULL;
}

#endif

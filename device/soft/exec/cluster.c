// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/cluster.c - blocks of a cluster: each may use the shared memory of the others,
 * and they have a barrier.
 *
 * Whoever runs blocks (../sched) has one host thread at a time run all blocks of a cluster, so
 * nothing here is atomic. A block alone is a cluster of one, and its barrier the same.
 *
 * Barrier: a thread arrives (barrier.cluster.arrive), and later waits for all others to have
 * arrived; threads that have ended count as arrived. Who has arrived stands in each warp
 * (ws_warp.at_cluster). These bits are cleared when the barrier opens, so a thread that waits may
 * go on when its bit is clear: the barrier cannot open a second time before the thread has arrived
 * again. */
#include "device/soft/exec/shared.h"
#include "device/soft/inspect/inspect.h"

enum { USED = 1 << WS_CLUSTER_BARRIER }; /* of bars_used */
_Static_assert((int)WS_CLUSTER_BARRIER == (int)WS_N_BARRIERS, "it has a number of its own");

/* ---- the barrier ---- */

/* Its number for those who inspect. A warp may pass it when others have come to the next phase. */
static uint32_t gathered_at(uint32_t phase)
{
    return WS_CLUSTER_BARRIER + phase % 2;
}

static void open_for(struct ws_blockrun *b)
{
    for (uint32_t k = 0; k < b->n_warps; k++) {
        struct ws_warp *w = &b->warps[k];
        w->at_cluster = 0;
        for (uint32_t n = 0; n < w->n_splits; n++) {
            struct ws_split *s = &w->splits[n];
            if (s->state != WS_SPLIT_BAR || s->bar_id != WS_CLUSTER_BARRIER)
                continue;
            if (b->inspect)
                ws_inspect_pass(b, k, gathered_at(b->cluster->phase));
            s->state = WS_SPLIT_RUN;
            s->u++;
            s->spent = 0;
        }
    }
    b->bars_used &= ~(uint32_t)USED;
    if (b->inspect)
        ws_inspect_open(b, gathered_at(b->cluster->phase + 1));
}

static void open_if_complete(struct ws_block_cluster *c)
{
    uint32_t n_live = 0;
    for (uint32_t k = 0; k < c->n; k++)
        n_live += c->blocks[k]->n_live;
    if (c->n_arrived < n_live)
        return;
    for (uint32_t k = 0; k < c->n; k++)
        open_for(c->blocks[k]);
    c->n_arrived = 0;
    c->phase++;
    c->n_opened++;
}

void ws_exec_cluster_exit(struct ws_blockrun *b, struct ws_warp *w, uint32_t lanes)
{
    b->cluster->n_arrived -= (uint32_t)__builtin_popcount(w->at_cluster & lanes);
    w->at_cluster &= ~lanes;
    open_if_complete(b->cluster);
}

static bool arrive(struct ws_blockrun *b, struct ws_split *s)
{
    struct ws_warp *w = b->ctx.w;
    uint32_t again = s->mask & w->at_cluster;
    if (again) {
        ws_exec_fault(&b->ctx, s->u, WS_DEV_E_ILLEGAL_INSTRUCTION, (unsigned)__builtin_ctz(again),
                      0, "arrives at the cluster's barrier again without having waited there");
        return false;
    }
    w->at_cluster |= s->mask;
    b->cluster->n_arrived += (uint32_t)__builtin_popcount(s->mask);
    b->bars_used |= USED;
    b->ctx.work->n_barriers++;
    if (b->inspect)
        ws_inspect_arrive(b, w->index, gathered_at(b->cluster->phase));
    s->u++;
    w->n_splits++;
    open_if_complete(b->cluster);
    return true;
}

bool ws_exec_cluster_bar(struct ws_blockrun *b, struct ws_split *s)
{
    struct ws_warp *w = b->ctx.w;
    uint32_t wait = s->mask & w->at_cluster;
    if (s->u->x >> 8 & 1)
        return arrive(b, s);
    if (b->inspect && wait != s->mask)
        ws_inspect_pass(b, w->index, gathered_at(b->cluster->phase - 1));
    if (wait && wait != s->mask) { /* the others go on */
        s[1] = *s;
        s->mask &= ~wait;
        s->u++;
        w->n_splits++;
        (++s)->mask = wait;
    }
    if (wait) {
        s->state = WS_SPLIT_BAR;
        s->bar_id = WS_CLUSTER_BARRIER;
    } else {
        s->u++;
    }
    w->n_splits++;
    return true;
}

bool ws_exec_waits_for_cluster(const struct ws_blockrun *b)
{
    for (uint32_t k = 0; b->cluster->n > 1 && k < b->n_warps; k++)
        for (uint32_t n = 0; n < b->warps[k].n_splits; n++)
            if (b->warps[k].splits[n].state == WS_SPLIT_BAR &&
                b->warps[k].splits[n].bar_id == WS_CLUSTER_BARRIER)
                return true;
    return false;
}

/* ---- shared memory ---- */

struct ws_blockrun *ws_exec_shared_block(const struct ws_core_ctx *c, uint64_t off, uint64_t bytes,
                                         uint64_t *ret_at)
{
    const struct ws_block_cluster *all = c->b->cluster;
    uint32_t rank = ws_exec_rank_of(c, off);
    bool own = rank == c->b->rank;
    if (off >> WS_CLUSTER_SHIFT > WS_CLUSTER_RANKS || (!own && rank >= all->n))
        return NULL;
    struct ws_blockrun *of = own ? c->b : all->blocks[rank];
    *ret_at = off & ((UINT64_C(1) << WS_CLUSTER_SHIFT) - 1);
    bool has = *ret_at < of->ctx.shared_bytes && of->ctx.shared_bytes - *ret_at >= bytes;
    return has ? of : NULL;
}

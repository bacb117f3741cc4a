// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/asks.c - blocks that run one after another (ws_blockrun_run()).
 *
 * Whoever runs the core goes from one block to the next: block.c, or compiled code, which is not
 * left for that. What such a block did has to be told apart from what the next one does. */
#include <string.h>

#include "device/soft/exec/priv.h"
#include "device/soft/exec/reuse.h"

void ws_exec_flush_work(struct ws_core_ctx *c)
{
    if (!c->n_thread_insns && !c->cls[WS_SEG_MACHINE])
        return;
    for (int k = 0; k < _WS_WORK_N; k++)
        c->work->n_warp_insns[k] += c->cls[k];
    c->work->n_machine_insns += c->cls[WS_SEG_MACHINE];
    memset(c->cls, 0, sizeof(c->cls));
    for (int k = 0; k < _WS_UNIT_N; k++)
        c->work->n_unit_ops[k] += c->unit[k];
    memset(c->unit, 0, sizeof(c->unit));
    c->work->n_thread_insns += c->n_thread_insns;
    c->n_thread_insns = 0;
}

/* Whether all that a block begins with is as the block before has left it, but for what
 * ws_exec_begin_alike() and compiled code (../jit/blocks.c) set. */
static bool leaves_all(const struct ws_blockrun *b)
{
    const struct ws_exec_image *img = b->img;
    if (!b->settled || !b->compiled || b->l1 || b->inspect || img->uses_reserved_shared ||
        img->depth_max > WS_DEPTH_ALONE || img->recursive || img->sp_off)
        return false;
    for (uint32_t n = 0; n < b->n_block_fills; n++)
        if (img->fills[b->block_fills[n]].sreg == WS_SR_SMID)
            return false;
    return true;
}

static uint32_t count_alike(const struct ws_blockrun *b)
{
    uint32_t n = 0, most = WS_MIN(b->n_asks, b->g->grid[0] - 1 - b->ctaid[0]);
    if (!most || !leaves_all(b))
        return 0;
    while (n < most && b->ask[n + 1].linear == b->linear + n + 1)
        n++;
    return (uint32_t)ws_reuse_n_alike(b, b->linear, n);
}

void ws_exec_begin_asked(struct ws_blockrun *b)
{
    ws_blockrun_start(b, b->ask->linear, b->ask->smid, b->ask->slot);
    b->n_asks--;
    b->n_alike = count_alike(b);
}

bool ws_exec_end_asked(struct ws_blockrun *b)
{
    int64_t left = b->asks_left - (int64_t)b->n_insns;
    b->ask->step = b->round.step;
    if (b->round.step != WS_STEP_DONE || !b->n_asks || left < 0 ||
        atomic_load_explicit(&b->g->stop, memory_order_relaxed))
        return false;
    b->asks_left = left;
    b->ask++;
    return true;
}

bool ws_exec_next_block(struct ws_blockrun *b)
{
    struct ws_core_ctx *c = &b->ctx;
    if (!b->n_asks || !b->settled || !ws_exec_end_asked(b))
        return false;
    ws_exec_flush_work(c);
    ws_exec_begin_asked(b);
    c->work = b->ask->work;
    ws_exec_begin_step(b, (int64_t)b->ask_insns);
    return ws_exec_next(b);
}

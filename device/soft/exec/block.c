// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/block.c - blocks from their start to their end.
 *
 * A block's memory (register files, shared and local memory) is made once and used for one block
 * after another. What differs between blocks is written when a block starts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/soft/decode/priv.h"
#include "device/soft/exec/reuse.h"
#include "device/soft/exec/tex.h"
#include "device/soft/inspect/inspect.h"
#include "device/soft/jit/jit.h"
#include "device/space.h"

enum {
    /* Of kernels that recurse without saying how deep. */
    RECURSION_MAX = 8192,
    RECURSION_LOCAL_BYTES = 65536,
    /* What a block has once its loads are watched and it reads textures: about 38 KiB. */
    LATER_BYTES = 40 << 10,
};

uint64_t ws_blockrun_n_looked(const struct ws_blockrun *b)
{
    return b->ctx.n_looked;
}

/* ---- blocks ---- */
static uint64_t sreg_value(const struct ws_blockrun *b, const struct ws_fill *f, uint32_t warp,
                           uint32_t lane)
{
    const struct ws_grid *g = b->g;
    uint32_t t = warp * 32 + lane, dim = f->dim > 2 ? 0 : f->dim;
    switch (f->sreg) {
    case WS_SR_TID:
        return dim == 0   ? t % g->block[0]
               : dim == 1 ? t / g->block[0] % g->block[1]
                          : t / g->block[0] / g->block[1];
    case WS_SR_NTID:
        return g->block[dim];
    case WS_SR_CTAID:
        return b->ctaid[dim];
    case WS_SR_NCTAID:
        return g->grid[dim];
    case WS_SR_LANEID:
        return lane;
    case WS_SR_WARPID:
        return warp;
    case WS_SR_NWARPID:
        return 32;
    case WS_SR_SMID:
        return b->smid;
    case WS_SR_NSMID:
        return g->n_sms;
    case WS_SR_GRIDID:
        return g->grid_id;
    case WS_SR_LANEMASK_EQ:
        return 1u << lane;
    case WS_SR_LANEMASK_LE:
        return (2u << lane) - 1;
    case WS_SR_LANEMASK_LT:
        return (1u << lane) - 1;
    case WS_SR_LANEMASK_GE:
        return ~((1u << lane) - 1);
    case WS_SR_LANEMASK_GT:
        return ~((2u << lane) - 1);
    case WS_SR_ENVREG:
        return f->dim == 1   ? (uint32_t)(g->envreg12 >> 32)
               : f->dim == 2 ? (uint32_t)g->envreg12
                             : 0;
    case WS_SR_DYNAMIC_SMEM_SIZE:
        return g->dyn_shared_bytes;
    case WS_SR_TOTAL_SMEM_SIZE:
        return b->user_shared_bytes;
    case WS_SR_AGGR_SMEM_SIZE:
        return b->ctx.shared_bytes;
    case WS_SR_RESERVED_SMEM_OFFSET: {
        uint64_t begin = b->ctx.shared_bytes - WS_RESERVED_SHARED_BYTES;
        const uint64_t values[] = {begin, begin + WS_RESERVED_SHARED_BYTES / 4, begin,
                                   begin + WS_RESERVED_SHARED_BYTES, WS_RESERVED_SHARED_BYTES};
        return f->dim < WS_ARRAY_SIZE(values) ? values[f->dim] : 0;
    }
    case WS_SR_WARPSZ:
        return 32;
    case WS_SR_CLUSTERID:
        return b->ctaid[dim] / ws_grid_cluster(g, dim);
    case WS_SR_NCLUSTERID:
        return g->grid[dim] / ws_grid_cluster(g, dim);
    case WS_SR_CLUSTER_CTAID:
        return b->ctaid[dim] % ws_grid_cluster(g, dim);
    case WS_SR_CLUSTER_CTARANK:
        return b->rank;
    case WS_SR_CLUSTER_NCTAID:
        return ws_grid_cluster(g, dim);
    case WS_SR_CLUSTER_NCTARANK:
        return ws_grid_cluster_blocks(g);
    case WS_SR_IS_EXPLICIT_CLUSTER:
        return g->explicit_cluster;
    default:
        return 0;
    }
}

static bool sreg_is_lanewise(uint32_t sreg)
{
    return sreg == WS_SR_TID || sreg == WS_SR_LANEID ||
           (sreg >= WS_SR_LANEMASK_EQ && sreg <= WS_SR_LANEMASK_GT);
}

/* A row whose lanes are all the same. */
static void fill_lanes(uint8_t *row, uint8_t width, uint64_t v)
{
    if (width == 4)
        for (uint32_t i = 0; i < 32; i++)
            ((uint32_t *)(void *)row)[i] = (uint32_t)v;
    else
        for (uint32_t i = 0; i < 32; i++)
            memcpy(row + i * width, &v, width);
}

static void fill_row(struct ws_blockrun *b, struct ws_warp *w, const struct ws_fill *f)
{
    uint8_t *row = w->regs + f->off;
    uint64_t v = f->kind == WS_FILL_VAR ? b->g->var_va[f->var] + f->value : f->value;
    if (f->width == 0) {
        memcpy(row, &v, 4);
        return;
    }
    if (f->kind == WS_FILL_SREG && sreg_is_lanewise(f->sreg)) {
        for (uint32_t i = 0; i < 32; i++) {
            v = sreg_value(b, f, w->index, i);
            memcpy(row + i * f->width, &v, f->width);
        }
        return;
    }
    if (f->kind == WS_FILL_SREG)
        v = sreg_value(b, f, w->index, 0);
    fill_lanes(row, f->width, v);
}

/* What a block takes of this process's memory, in its parts. */
struct sizes {
    uint32_t n_warps, depth_max;
    uint64_t thread_local_bytes, user_shared_bytes, shared_bytes;
    uint64_t warps, fills, regs, local, shared, rets, saves; /* of the allocations */
};

static struct sizes sizes_of(const struct ws_exec_image *img, uint32_t n_threads,
                             uint64_t dyn_shared_bytes, uint32_t sm, uint32_t local_bytes_max)
{
    uint64_t stack = local_bytes_max ? local_bytes_max : RECURSION_LOCAL_BYTES;
    struct sizes s = {.n_warps = (n_threads + 31) / 32,
                      .depth_max = img->depth_max,
                      .thread_local_bytes = img->local_bytes};
    if (img->recursive) {
        s.thread_local_bytes = WS_MAX((uint64_t)img->frame_bytes, stack);
        s.depth_max = (uint32_t)WS_MIN((uint64_t)RECURSION_MAX,
                                       WS_MAX(UINT64_C(64), s.thread_local_bytes / 32));
    } else if (img->sp_off) {
        s.thread_local_bytes += stack;
    }
    s.thread_local_bytes = WS_ALIGN_UP(s.thread_local_bytes, UINT64_C(16));
    /* programs rely on the rest of the last unit */
    s.user_shared_bytes =
        WS_ALIGN_UP(WS_ALIGN_UP((uint64_t)img->shared_bytes, UINT64_C(16)) + dyn_shared_bytes,
                    (uint64_t)ws_exec_shared_unit(sm));
    s.shared_bytes =
        s.user_shared_bytes + (img->uses_reserved_shared ? WS_RESERVED_SHARED_BYTES : 0);
    s.warps = s.n_warps * sizeof(struct ws_warp);
    s.fills = ((uint64_t)img->n_fills + 1) * 3 * sizeof(uint32_t);
    s.regs = (uint64_t)s.n_warps * img->regs_bytes + 64;
    s.local = s.thread_local_bytes * 32 * s.n_warps + 64;
    s.shared = s.shared_bytes + 128;
    s.rets = ((uint64_t)s.depth_max * 32 * s.n_warps + 1) * sizeof(struct ws_retaddr);
    s.saves = (uint64_t)(img->recursive ? s.depth_max : 0) * img->save_bytes * s.n_warps + 64;
    return s;
}

uint64_t ws_code_block_bytes(const struct ws_code *c, uint32_t kernel, uint32_t n_threads,
                             uint32_t dyn_shared_bytes, uint32_t sm, uint32_t local_bytes_max)
{
    if (!c->images[kernel]) /* it cannot run */
        return 0;
    struct sizes s = sizes_of(c->images[kernel], n_threads, dyn_shared_bytes, sm, local_bytes_max);
    return sizeof(struct ws_blockrun) + LATER_BYTES + s.warps + s.fills + s.regs + s.local +
           s.shared + s.rets + s.saves;
}

int ws_blockrun_new(struct ws_blockrun **ret, struct ws_grid *g)
{
    const struct ws_exec_image *img = g->code->images[g->kernel];
    uint64_t threads = (uint64_t)g->block[0] * g->block[1] * g->block[2];
    if (threads == 0 || threads > 1024)
        return ws_raise(-EINVAL);
    struct ws_blockrun *b = ws_alloc(sizeof(*b));
    if (!b)
        return ws_raise(-ENOMEM);
    struct sizes s =
        sizes_of(img, (uint32_t)threads, g->dyn_shared_bytes, g->sm, g->local_bytes_max);
    b->g = g;
    b->img = img;
    if (ws_grid_cluster_blocks(g) == 1) /* compiled code knows no other block's memory */
        b->jit = ws_jit_of(g->code, g->kernel, g->block, ws_space_payer(g->space));
    b->n_threads = (uint32_t)threads;
    b->n_warps = s.n_warps;
    b->local_bytes = s.thread_local_bytes;
    b->depth_max = s.depth_max;
    b->user_shared_bytes = s.user_shared_bytes;
    struct ws_core_ctx *c = &b->ctx;
    c->b = b;
    c->mx = 0x1f80;
    c->shared_bytes = s.shared_bytes;
    c->local_stride = b->local_bytes;
    c->params = g->params;
    c->param_bytes = g->code->m->funcs[img->func].param_bytes;
    b->bars_used = (1u << WS_N_BARRIERS) - 1;
    b->warps = ws_alloc(s.warps);
    b->block_fills = ws_alloc(s.fills);
    b->regs = ws_alloc(s.regs);
    b->local = ws_alloc(s.local);
    b->shared_alloc = ws_alloc(s.shared);
    b->rets = ws_alloc(s.rets);
    b->saves = ws_alloc(s.saves);
    if (!b->block_fills || !b->warps || !b->regs || !b->local || !b->shared_alloc || !b->rets ||
        !b->saves || (g->inspect && ws_inspect_block_new(b))) {
        ws_blockrun_free(b);
        return ws_raise(-ENOMEM);
    }
    for (uint32_t n = 0; n < img->n_fills; n++)
        if (ws_exec_is_blocks_own(&img->fills[n]))
            b->block_fills[b->n_block_fills++] = n;
    b->filled = b->block_fills + img->n_fills + 1;
    b->in_rows = b->filled + img->n_fills + 1; /* rows are zero, too */
    c->shared = b->shared_alloc + (-(uintptr_t)b->shared_alloc & 127);
    uint8_t *regs = b->regs + (-(uintptr_t)b->regs & 63);
    for (uint32_t k = 0; k < b->n_warps; k++) {
        struct ws_warp *w = &b->warps[k];
        w->index = k;
        w->regs = regs + (size_t)k * img->regs_bytes;
        w->rets = b->rets + (size_t)k * b->depth_max * 32;
        w->saves = b->saves + (img->recursive ? (size_t)k * b->depth_max * img->save_bytes : 0);
        w->exists = b->n_threads - k * 32 >= 32 ? ~0u : (1u << (b->n_threads - k * 32)) - 1;
        for (uint32_t n = 0; n < img->n_fills; n++)
            if (!ws_exec_is_blocks_own(&img->fills[n]))
                fill_row(b, w, &img->fills[n]);
    }
    *ret = b;
    return 0;
}

struct ws_blockrun *ws_blockrun_free(struct ws_blockrun *b)
{
    if (b) {
        free(b->warps);
        free(b->block_fills);
        free(b->regs);
        free(b->local);
        free(b->shared_alloc);
        free(b->rets);
        free(b->saves);
        free(b->ctx.tex);
        free(b->l1_alloc);
        ws_inspect_block_free(b);
        free(b);
    }
    return NULL;
}

/* What PTX leaves undefined may be what the block before has left, but not if it was another
 * client's. Registers and local variables are each member's own in a fused kernel; shared memory
 * and the stack are not. */
static void wipe(struct ws_blockrun *b)
{
    memset(b->ctx.shared, 0, b->ctx.shared_bytes);
    if (b->img->sp_off || b->img->recursive)
        memset(b->local, 0, (size_t)b->local_bytes * 32 * b->n_warps);
}

/* Mostly the one behind the last: divisions cost more than a small block may. */
static void place(struct ws_blockrun *b, uint64_t linear)
{
    const uint32_t *n = b->g->grid;
    bool next = linear == b->linear + 1 && b->ctaid[0] + 1 < n[0];
    b->linear = linear;
    b->ctaid[0] = next ? b->ctaid[0] + 1 : (uint32_t)(linear % n[0]);
    if (next)
        return;
    b->ctaid[1] = (uint32_t)(linear / n[0] % n[1]);
    b->ctaid[2] = (uint32_t)(linear / n[0] / n[1]);
}

/* Until it joins others, a block is a cluster alone. */
static void be_alone(struct ws_blockrun *b)
{
    const struct ws_grid *g = b->g;
    uint32_t x = ws_grid_cluster(g, 0), y = ws_grid_cluster(g, 1), z = ws_grid_cluster(g, 2);
    b->cluster = &b->own_cluster;
    b->cluster->n = 1;
    b->cluster->n_arrived = 0;
    b->cluster->blocks[0] = b;
    b->stuck_at = 0;
    b->rank = 0;
    if (x * y * z > 1)
        b->rank = b->ctaid[0] % x + x * (b->ctaid[1] % y + y * (b->ctaid[2] % z));
}

/* What rows hold that differ from block to block. */
static void fill(struct ws_blockrun *b)
{
    for (uint32_t n = 0; n < b->n_block_fills; n++)
        b->filled[n] = (uint32_t)sreg_value(b, &b->img->fills[b->block_fills[n]], 0, 0);
}

void ws_exec_forget_rows(struct ws_blockrun *b)
{
    for (uint32_t n = 0; n < b->n_block_fills; n++)
        b->in_rows[n] = UINT32_MAX; /* no block and no SM has this number */
}

void ws_exec_fill_rows(struct ws_blockrun *b)
{
    for (uint32_t n = 0; n < b->n_block_fills; n++) {
        const struct ws_fill *f = &b->img->fills[b->block_fills[n]];
        if (b->filled[n] == b->in_rows[n])
            continue;
        b->in_rows[n] = b->filled[n];
        for (uint32_t k = 0; k < b->n_warps; k++)
            fill_lanes(b->warps[k].regs + f->off, f->width, b->filled[n]);
    }
}

/* Whether the block is to run as machine code. */
static void choose_way(struct ws_blockrun *b, uint64_t linear)
{
    if (b->settled)
        return;
    b->settled = !b->jit || ws_jit_is_settled(b->jit);
    b->compiled = b->jit && ws_jit_choose(b->jit, linear);
    b->timed = b->jit && ws_jit_is_open(b->jit);
}

/* What a block has counted. */
static void reset(struct ws_blockrun *b)
{
    b->n_live = b->n_threads;
    b->n_done_warps = 0;
    b->next_warp = 0;
    b->n_insns = 0;
    b->n_clock_reads = 0;
    b->start_error = 0;
    b->ctx.n_patterns = 0;
}

static void begin_warps(struct ws_blockrun *b)
{
    const struct ws_exec_image *img = b->img;
    const struct ws_split first = {.u = img->entry->first, .enter = img->entry};
    bool has_frames = img->depth_max > WS_DEPTH_ALONE || img->recursive;
    for (struct ws_warp *w = b->warps, *end = w + b->n_warps; w < end; w++) {
        w->live = w->exists;
        w->shaped = w->waits = false;
        w->spin = w->stamp = w->at_cluster = 0;
        w->n_splits = 1;
        w->splits[0] = first;
        w->splits[0].mask = w->exists;
        if (has_frames)
            memset(w->regs + img->fp_off, 0, 128);
        for (uint32_t n = 0; img->sp_off && n < 32; n++)
            ((uint32_t *)(void *)(w->regs + img->sp_off))[n] = (uint32_t)b->local_bytes;
    }
}

void ws_blockrun_start(struct ws_blockrun *b, uint64_t linear, uint32_t smid, uint32_t slot)
{
    const struct ws_grid *g = b->g;
    const struct ws_exec_image *img = b->img;
    const struct ws_grid_part *before = b->part;
    choose_way(b, linear);
    b->ticks = 0;
    b->part = ws_grid_part_of(g, linear, &b->number);
    if (before && before->space != b->part->space)
        wipe(b);
    b->smid = smid;
    b->slot = slot;
    place(b, linear);
    be_alone(b);
    reset(b);
    if (b->ctx.n_looked)
        memset(b->ctx.looked, 0, sizeof(b->ctx.looked));
    b->ctx.n_looked = 0;
    ws_reuse_block(b, linear);
    if (b->inspect)
        ws_inspect_block_start(b);
    for (uint32_t k = b->bars_used & ((1u << WS_N_BARRIERS) - 1); k; k &= k - 1)
        b->bars[__builtin_ctz(k)] = (struct ws_barrier){.red_and = true};
    b->bars_used = 0;
    if (img->uses_reserved_shared)
        memset(b->ctx.shared + b->ctx.shared_bytes - WS_RESERVED_SHARED_BYTES, 0,
               WS_RESERVED_SHARED_BYTES);
    begin_warps(b);
    fill(b);
}

/* ---- clusters (cluster.c) ---- */
uint64_t ws_grid_in_clusters(const struct ws_grid *g, uint64_t k)
{
    uint32_t n = ws_grid_cluster_blocks(g);
    if (n == 1)
        return k;
    uint64_t at = k / n, rank = k % n, place[3];
    for (unsigned i = 0; i < 3; i++) {
        uint32_t size = ws_grid_cluster(g, i), n_clusters = g->grid[i] / size;
        place[i] = (i < 2 ? at % n_clusters : at) * size + rank % size;
        at /= n_clusters;
        rank /= size;
    }
    return place[0] + g->grid[0] * (place[1] + g->grid[1] * place[2]);
}

void ws_blockrun_join(struct ws_blockrun *const *blocks, uint32_t n)
{
    struct ws_block_cluster *c = &blocks[0]->own_cluster;
    *c = (struct ws_block_cluster){.n = n};
    for (uint32_t k = 0; k < n; k++) {
        c->blocks[k] = blocks[k];
        blocks[k]->cluster = c;
    }
}

bool ws_blockrun_is_stuck(const struct ws_blockrun *b)
{
    return b->stuck_at == b->cluster->phase + 1;
}

uint64_t ws_blockrun_n_opened(const struct ws_blockrun *b)
{
    return b->cluster->n_opened;
}

void ws_blockrun_deadlock(struct ws_blockrun *b)
{
    ws_exec_deadlock(b);
}

bool ws_exec_begin_alike(struct ws_blockrun *b, int64_t budget)
{
    struct ws_core_ctx *c = &b->ctx;
    int64_t left = b->asks_left - (int64_t)b->n_insns - (b->quantum_start - budget);
    if (!b->n_alike || left < 0 || b->n_done_warps + 1 != b->n_warps || b->start_error ||
        c->n_looked || c->penalty || atomic_load_explicit(&b->g->stop, memory_order_relaxed))
        return false;
    c->work_before = c->work;
    ws_exec_flush_work(c);
    b->ask->step = WS_STEP_DONE;
    b->ask++;
    b->asks_left = left;
    b->n_asks--;
    b->n_alike--;
    b->smid = b->ask->smid;
    b->slot = b->ask->slot;
    c->work = b->ask->work;
    place(b, b->ask->linear);
    reset(b);
    begin_warps(b);
    fill(b);
    ws_exec_begin_step(b, (int64_t)b->ask_insns);
    return ws_exec_next(b);
}

/* Mappings may have changed between steps. While none has, those that were found are there still:
 * the space was entered anew (ws_space_enter()) before its version is asked. */
static void forget_maps(struct ws_blockrun *b)
{
    uint32_t version = b->part ? 1 : ws_space_version(b->g->space);
    if (version % 2 == 0 && version == b->maps_version)
        return;
    b->maps_version = version;
    b->ctx.n_maps = 0;
    memset(b->ctx.maps, 0, sizeof(b->ctx.maps));
}

static enum ws_step step(struct ws_blockrun *b, uint64_t max_warp_insns, struct ws_exec_work *work)
{
    struct ws_core_ctx *c = &b->ctx;
    c->work = work;
    forget_maps(b);
    ws_exec_tex_forget(c);
    ws_exec_begin_step(b, (int64_t)WS_MIN(max_warp_insns, (uint64_t)INT64_MAX / 2));
    if (!b->compiled)
        ws_exec_fill_rows(b);
    while (ws_exec_next(b))
        if (b->compiled)
            ws_jit_run(b->jit, c);
        else
            b->g->code->isa->run(c, c->u, c->enter);
    ws_exec_flush_work(c);
    return b->round.step;
}

enum ws_step ws_blockrun_step(struct ws_blockrun *b, uint64_t max_warp_insns,
                              struct ws_exec_work *work)
{
    if (!b->timed)
        return step(b, max_warp_insns, work);
    uint64_t start = __builtin_ia32_rdtsc();
    enum ws_step r = step(b, max_warp_insns, work);
    b->ticks += __builtin_ia32_rdtsc() - start;
    if (r == WS_STEP_DONE)
        ws_jit_ran(b->jit, ws_space_payer(b->part ? b->part->space : b->g->space), b->compiled,
                   b->n_insns, b->ticks);
    return r;
}

uint32_t ws_blockrun_run(struct ws_blockrun *b, struct ws_block_ask *asks, uint32_t n,
                         uint64_t max_warp_insns, uint64_t max_all)
{
    b->ask = asks;
    b->n_asks = n;
    b->ask_insns = WS_MIN(max_warp_insns, (uint64_t)INT64_MAX / 2);
    b->asks_left = (int64_t)WS_MIN(max_all, (uint64_t)INT64_MAX / 2);
    if (n && !atomic_load(&b->g->stop))
        do {
            ws_exec_begin_asked(b);
            (void)ws_blockrun_step(b, max_warp_insns, b->ask->work);
        } while (ws_exec_end_asked(b));
    n -= b->n_asks;
    b->n_asks = b->n_alike = 0;
    return n;
}

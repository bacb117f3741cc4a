// SPDX-License-Identifier: Apache-2.0
/* Progress of launches. What part of a launch was done is said in work rather than in time, which
 * differs between devices: warp instructions, and a quarter of one for each sector of memory. */
#include "device/soft/timeline/progress.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

static void base_free(struct ws_progress *p)
{
    ws_soft_progress_free(WS_CONTAINER_OF(p, struct ws_soft_progress, base));
}

struct ws_soft_progress *ws_soft_progress_of(const struct ws_op *op)
{
    struct ws_progress *p = op->kind == WS_OPK_LAUNCH ? op->launch.progress : NULL;
    return p && p->free == base_free ? WS_CONTAINER_OF(p, struct ws_soft_progress, base) : NULL;
}

struct ws_soft_progress *ws_soft_progress_take(struct ws_op *op, bool *ret_ok)
{
    struct ws_progress *p = op->launch.progress;
    op->launch.progress = NULL;
    *ret_ok = !p || p->free == base_free;
    if (!*ret_ok)
        p->free(p);
    return p && *ret_ok ? WS_CONTAINER_OF(p, struct ws_soft_progress, base) : NULL;
}

struct ws_soft_progress *ws_soft_progress_new(const struct ws_op *op)
{
    struct ws_soft_progress *p = ws_alloc(sizeof(*p));
    if (!p)
        return NULL;
    p->base.free = base_free;
    p->kernel = op->launch.kernel;
    memcpy(p->grid, op->launch.grid, sizeof(p->grid));
    memcpy(p->block, op->launch.block, sizeof(p->block));
    p->n_blocks = (uint64_t)p->grid[0] * p->grid[1] * p->grid[2];
    return p;
}

struct ws_soft_progress *ws_soft_progress_free(struct ws_soft_progress *p)
{
    if (p)
        ws_soft_progress_pay(p);
    free(p);
    return NULL;
}

void ws_soft_progress_pay(struct ws_soft_progress *p)
{
    free(p->owed);
    p->owed = NULL;
    p->n_owed = 0;
    ws_bill_give(&p->bill);
}

bool ws_soft_progress_fits(const struct ws_soft_progress *p, const struct ws_op *op)
{
    return p->kernel == op->launch.kernel && !memcmp(p->grid, op->launch.grid, sizeof(p->grid)) &&
           !memcmp(p->block, op->launch.block, sizeof(p->block)) &&
           !(op->launch.flags & WS_LAUNCH_COOPERATIVE);
}

static double weight(const struct ws_exec_work *w)
{
    double n = 0.25 * (double)(w->n_load_sectors + w->n_store_sectors);
    for (int c = 0; c < _WS_WORK_N; c++)
        n += (double)w->n_warp_insns[c];
    return n;
}

static uint64_t part_of(uint64_t n, double part)
{
    return (uint64_t)llround((double)n * part);
}

static void work_scale(struct ws_exec_work *w, double part)
{
    for (int c = 0; c < _WS_WORK_N; c++)
        w->n_warp_insns[c] = part_of(w->n_warp_insns[c], part);
    for (int k = 0; k < _WS_UNIT_N; k++)
        w->n_unit_ops[k] = part_of(w->n_unit_ops[k], part);
    uint64_t *counts[] = {&w->n_machine_insns,   &w->n_shared_loads,   &w->n_shared_transactions,
                          &w->n_watched_sectors, &w->n_missed_sectors, &w->n_l2_sectors,
                          &w->n_dram_sectors,    &w->n_thread_insns,   &w->n_global_loads,
                          &w->n_global_stores,   &w->n_load_sectors,   &w->n_store_sectors,
                          &w->n_shared_accesses, &w->n_atomics,        &w->n_barriers,
                          &w->n_texture_quads,   &w->n_atomic_sectors};
    for (unsigned i = 0; i < WS_ARRAY_SIZE(counts); i++)
        *counts[i] = part_of(*counts[i], part);
}

void ws_soft_progress_set(struct ws_soft_progress *p, uint64_t n_executed, struct ws_unit *units,
                          uint32_t n_units, const double *left)
{
    double unpaid = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_units; i++) {
        double w = weight(&units[i].work), l = left ? left[i] : 0;
        p->paid += w * (1 - l);
        if (l <= 0)
            continue;
        unpaid += w * l;
        units[n] = units[i];
        if (l < 1) {
            work_scale(&units[n].work, l);
            units[n].n_blocks = (uint32_t)WS_MAX(part_of(units[n].n_blocks, l), UINT64_C(1));
        }
        n++;
    }
    ws_soft_progress_pay(p);
    p->owed = units;
    p->n_owed = n;
    p->n_executed = n_executed;
    p->unpaid = unpaid;
    double executed = p->paid + unpaid, all = executed * (double)p->n_blocks;
    p->base.part = all > 0 ? p->paid * (double)n_executed / all : 0;
}

double ws_units_cost(const struct ws_gpu_spec *spec, uint32_t block_warps,
                     const struct ws_unit *units, uint32_t n_units, struct ws_cost *ret)
{
    double bytes = 0;
    for (uint32_t i = 0; i < n_units; i++) {
        ret[i] = ws_cost_of(spec, block_warps, units[i].n_blocks, &units[i].work);
        bytes += ret[i].bytes;
    }
    return bytes;
}

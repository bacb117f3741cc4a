// SPDX-License-Identifier: Apache-2.0
#include "device/soft/timeline/events.h"

#include <math.h>

/* Before Volta, loads go through the texture units, which nvprof counts by parts of a warp: 4
 * transactions for one sector that all lanes read, 8 for 4 sectors as for 8, 16 for 16. The numbers
 * of such GPUs were fitted to its counts. */
static double l1_sectors(const struct ws_gpu_spec *spec, const struct ws_exec_work *w)
{
    enum { VOLTA = 70, LEAST = 4, PARTS = 8 };
    double loaded = (double)w->n_load_sectors, stored = (double)w->n_store_sectors;
    double loads = (double)w->n_global_loads;
    if (spec->hardware_cc < VOLTA)
        loaded = fmax(loaded, fmin(fmax(2 * loaded, LEAST * loads), PARTS * loads));
    return loaded + stored;
}

static double share(double part, double whole)
{
    return whole > 0 ? fmin(fmax(part / whole, 0), 1) : 0;
}

void ws_units_events(const struct ws_gpu_spec *spec, const struct ws_need *need,
                     uint32_t blocks_per_sm, const struct ws_unit *units, uint32_t n_units,
                     struct ws_events *ret)
{
    struct ws_events e = {.counted = true};
    double loaded = 0, stored = 0;
    uint64_t places = 0;
    for (uint32_t i = 0; i < n_units; i++) {
        const struct ws_exec_work *w = &units[i].work;
        e.warp_instructions += (double)w->n_machine_insns;
        e.flow_instructions += (double)w->n_warp_insns[WS_WORK_CTRL];
        e.int_ops += (double)w->n_unit_ops[WS_UNIT_INT];
        e.fp32_ops += (double)w->n_unit_ops[WS_UNIT_FP32];
        e.fp64_ops += (double)w->n_unit_ops[WS_UNIT_FP64];
        e.sfu_ops += (double)w->n_unit_ops[WS_UNIT_SFU];
        e.shared_transactions += (double)w->n_shared_transactions;
        e.shared_requests += (double)w->n_shared_loads;
        e.load_requests += (double)w->n_global_loads;
        e.l1_sectors += l1_sectors(spec, w);
        e.texture_quads += (double)w->n_texture_quads;
        e.atomic_sectors += (double)w->n_atomic_sectors;
        places |= w->atomic_places;
        e.l2_sectors += (double)w->n_l2_sectors;
        e.dram_sectors += (double)w->n_dram_sectors;
        e.blocks += units[i].n_blocks;
        loaded += (double)w->n_load_sectors;
        stored += (double)w->n_store_sectors;
    }
    e.atomic_places = __builtin_popcountll(places);
    e.l2_share = share(e.l2_sectors - stored, loaded);
    e.dram_share = share(e.dram_sectors, e.l2_sectors);
    double beside = fmax(fmin(ceil(e.blocks / spec->n_sms), blocks_per_sm), 1);
    e.warps_per_sm = beside * need->warps;
    e.active = share(e.blocks, spec->n_sms);
    *ret = e;
}

// SPDX-License-Identifier: Apache-2.0
/* CUDA's occupancy calculation: registers are given to warps in units of 256, from the quarter of
 * them that the warp's scheduler has, shared memory in units of 128 bytes (256 before compute
 * capability 8.0) with 1 KiB for the system per block (8.0 and later).
 *
 * The number of registers is estimated from PTX, where it is known only after ptxas; an estimate
 * must not refuse a block that the program knows to fit, so it is cut to what lets one block of
 * this size in. */
#include "device/soft/timeline/occupancy.h"

#include "device/soft/exec/exec.h"

enum { REGS_UNIT = 256, WARPS_UNIT = 4, REGS_MAX_PER_THREAD = 255 };

void ws_occupancy_fit(const struct ws_gpu_spec *spec, uint32_t block_threads, uint32_t n_regs,
                      uint32_t shared_bytes, struct ws_fit *ret)
{
    uint32_t warps = (block_threads + 31) / 32, warps4 = WS_ALIGN_UP(warps, WARPS_UNIT);
    uint32_t regs = WS_MIN(WS_MAX(n_regs, 16), REGS_MAX_PER_THREAD);
    uint32_t regs_per_warp = WS_ALIGN_UP(regs * 32, REGS_UNIT);
    uint32_t most = spec->regs_per_sm / warps4 / REGS_UNIT * REGS_UNIT;
    regs_per_warp = WS_MAX(WS_MIN(regs_per_warp, most), 1);

    uint32_t unit = ws_exec_shared_unit(10 * spec->cc_major),
             system_bytes = spec->cc_major >= 8 ? 1024 : 0;
    uint32_t shared = WS_ALIGN_UP(shared_bytes + system_bytes, unit);
    shared = WS_MIN(shared, spec->shared_bytes_per_sm);

    struct {
        uint32_t n;
        const char *name;
    } by[] = {
        {spec->max_threads_per_sm / 32 / warps, "threads"},
        {spec->max_blocks_per_sm, "blocks"},
        {spec->regs_per_sm / WARPS_UNIT / regs_per_warp * WARPS_UNIT / warps, "regs"},
        {shared ? spec->shared_bytes_per_sm / shared : spec->max_blocks_per_sm, "shared"},
    };
    unsigned least = 0;
    for (unsigned i = 1; i < WS_ARRAY_SIZE(by); i++)
        if (by[i].n < by[least].n)
            least = i;
    *ret = (struct ws_fit){
        {warps, regs_per_warp * warps, shared}, WS_MAX(by[least].n, 1), by[least].name};
}

// SPDX-License-Identifier: Apache-2.0
/* From counted work to time on an SM. A first model in the spirit of MWP-CWP (Hong & Kim, ISCA
 * 2009): a block is bounded by throughput, by latency and by memory bandwidth; timing.c shares
 * these among blocks. With W warps in the block, f core cycles per ns, n_c warp instructions of
 * class c:
 *
 *   issue_ns   = max( sum n_c / schedulers, one instruction per scheduler and cycle
 *                     n_fp32+half * 32 / fp32 lanes, n_int * 32 / int lanes, … fp64, sfu, ldst,
 *                     sectors / 4 ) / f      (a level-1 cache moves 4 sectors, 128 bytes, per
 *                                            cycle)
 *   latency_ns = ( sum n_c / W * DEP + barriers / W * BAR ) / f
 *                + loads / W * memory latency / LOADS
 *   bytes      = 32 * sectors
 *
 * DEP = 4 cycles from an instruction to one that depends on it; BAR = 20 cycles; LOADS = 2 loads of
 * a warp in flight. A warp's own latencies add up; other warps of the block, and other blocks, hide
 * them, which is why they bound a block's time but take no capacity from others. The constants are
 * estimates, fit for comparing shapes, not for predicting a particular board: that is
 * fitted_cost.c. */
#include "device/soft/timeline/timing.h"

enum {
    DEP_CYCLES = 4,
    BARRIER_CYCLES = 20,
    LOADS_IN_FLIGHT = 2,
    SECTORS_PER_CYCLE = 4,
    SECTOR_BYTES = 32,
    START_CYCLES = 50
};

struct ws_cost ws_cost_of(const struct ws_gpu_spec *spec, uint32_t block_warps, uint64_t n_blocks,
                          const struct ws_exec_work *w)
{
    double cycles_per_ns = spec->core_mhz / 1000.0, n_insns = 0;
    for (int c = 0; c < _WS_WORK_N; c++)
        n_insns += (double)w->n_warp_insns[c];
    double sectors = (double)(w->n_load_sectors + w->n_store_sectors);
    double bound[] = {
        n_insns / spec->schedulers_per_sm,
        (double)(w->n_warp_insns[WS_WORK_FP32] + w->n_warp_insns[WS_WORK_HALF]) * 32 /
            spec->fp32_lanes_per_sm,
        (double)w->n_warp_insns[WS_WORK_INT] * 32 / spec->int_lanes_per_sm,
        (double)w->n_warp_insns[WS_WORK_FP64] * 32 / spec->fp64_lanes_per_sm,
        (double)w->n_warp_insns[WS_WORK_SFU] * 32 / spec->sfu_lanes_per_sm,
        (double)w->n_warp_insns[WS_WORK_LDST] * 32 / spec->ldst_lanes_per_sm,
        sectors / SECTORS_PER_CYCLE,
    };
    double issue = 0;
    for (unsigned i = 0; i < WS_ARRAY_SIZE(bound); i++)
        issue = WS_MAX(issue, bound[i]);
    double warps = WS_MAX(block_warps, 1);
    double latency = (double)n_blocks * START_CYCLES +
                     (n_insns * DEP_CYCLES + (double)w->n_barriers * BARRIER_CYCLES) / warps;
    return (struct ws_cost){
        .issue_ns = issue / cycles_per_ns,
        .latency_ns = latency / cycles_per_ns +
                      (double)w->n_global_loads / warps * spec->memory_latency_ns / LOADS_IN_FLIGHT,
        .bytes = sectors * SECTOR_BYTES,
    };
}

/* Nothing is known of which bytes are touched twice. First touches (at most the footprint) miss;
 * the rest hits with the probability that a byte of the footprint is in the cache. */
double ws_cost_dram_share(const struct ws_gpu_spec *spec, double traffic_bytes,
                          double footprint_bytes)
{
    if (traffic_bytes <= 0)
        return 1;
    double first = WS_MIN(traffic_bytes, WS_MAX(footprint_bytes, SECTOR_BYTES));
    double miss = first > spec->l2_bytes ? 1 - spec->l2_bytes / first : 0;
    return (first + (traffic_bytes - first) * miss) / traffic_bytes;
}

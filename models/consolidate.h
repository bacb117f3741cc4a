// SPDX-License-Identifier: Apache-2.0
/* models/consolidate.h - how long several kernels take when they are merged into one launch.
 *
 * Source: Li, Byna, Chakradhar, "Energy-Aware Workload Consolidation on GPU" (2011), V. The paper
 * gives the idea and leaves the formulas to a technical report; those marked [ours] are our reading
 * (doc/models.md), checked against its Tables 2 and 3.
 *  - Type 1: no SM gets more than one block. Each kernel as alone, but the bandwidth is shared by
 *    the blocks of all:
 *      MWP_peak_BW = bandwidth / sum over kernels of (blocks · BW_per_warp)
 *      [ours]
 *    The whole takes as long as the slowest.
 *  - Type 2: several blocks on an SM. All blocks of an SM are one big workload: per-thread counts
 *    are means weighted by warps, barriers add up, blocks beyond the occupancy are repetitions
 *    [ours]. The SMs that take longest are critical.
 * Two sources of a kernel's time: its instruction counts (ws_mix_predict) or its measured time
 * alone (ws_mix_measured). Threads: one at a time per workspace. Errors: base/error.h. */
#ifndef WS_MODELS_CONSOLIDATE_H
#define WS_MODELS_CONSOLIDATE_H

#include "models/dispatch.h"
#include "models/mwp_cwp.h"

/* One kernel of the mix, all its instances together (they differ in their data only). */
struct ws_mix_part {
    /* n_blocks: of all instances; active_blocks_per_sm: not used, see occupancy */
    struct ws_mwp_kernel kernel;
    /* Measured / modelled time of this kernel before; 0: none known, the same as 1 */
    double correction;
};
struct ws_mix_options {
    enum ws_mwp_rule rule;
    enum ws_dispatch_policy policy; /* type 2: where blocks go */
    enum ws_dispatch_model model;
    uint32_t occupancy; /* of the merged kernel: blocks resident on an SM; 0: all that come */
};
/* SMs with the same blocks. */
struct ws_mix_group {
    uint32_t n_sms, first_sm, last_sm;
    double total_cycles;
    bool critical;
    struct ws_mwp_result load; /* of the big workload, before correction */
    const uint32_t *n_blocks;  /* [n_parts] on each of these SMs */
};
/* Result and workspace; reused from call to call. */
struct ws_mix {
    int type; /* 1 or 2 */
    uint32_t n_sms, n_parts, active_sms;
    double total_cycles, time_us;
    double rate_comp,
        rate_gmem; /* virtual SM: warp instructions per SM and cycle; idle SMs count as 0 */
    /* type 1 */
    double bw_demand;     /* GB/s of one warp on each active SM */
    double *cycles;       /* [n_parts] in the mix, corrected */
    double *alone_cycles; /* [n_parts] each alone (both types), corrected */
    /* type 2 */
    uint32_t n_groups;
    struct ws_mix_group *groups; /* by first SM */
    uint32_t *group_of;          /* [n_sms] index, UINT32_MAX: idle */
    /* private */
    struct ws_block_schedule dispatch;
    uint32_t *counts; /* [n_sms][n_parts] */
    struct ws_dispatch_kernel *kernels;
    size_t cap_parts, cap_sms, cap_counts;
};
#define WS_MIX_NULL ((struct ws_mix){0})
void ws_mix_deinit(struct ws_mix *m);

enum { WS_MIX_MAX_PARTS = 64 };
/* Return: 0, -EINVAL (with a diagnostic naming part and field; @diags may be NULL), -ENOMEM. */
WS_MUST_CHECK int ws_mix_predict(struct ws_mix *m, const struct ws_mwp_gpu *gpu,
                                 const struct ws_mix_part *parts, uint32_t n_parts,
                                 const struct ws_mix_options *o, struct ws_diags *diags);

/* How long one block keeps its SM's issue slots busy, and the whole memory, in cycles (for the
 * bounded model). Coalesced accesses move a word for each lane, transactions of uncoalesced ones 32
 * bytes; caches are not considered. */
double ws_mix_issue_cycles(const struct ws_mwp_gpu *gpu, const struct ws_mwp_kernel *k);
double ws_mix_memory_cycles(const struct ws_mwp_gpu *gpu, const struct ws_mwp_kernel *k);

/* A kernel measured alone with @alone_blocks blocks; the mix has @n_blocks of them. */
struct ws_mix_measured {
    double alone_time; /* any unit; > 0 */
    uint32_t alone_blocks, n_blocks;
    double issue_time,
        memory_time; /* of one block, for the bounded model (dispatch.h); 0: not known */
};
/* The time of one of its blocks alone on an SM: the time divided by the blocks of the fullest SM
 * (additive), or by how often its slots were filled (overlap, bounded). Bounded: if issue slots or
 * memory were the limit then, that is only the most it can be; the least is its issue time, and the
 * geometric mean of both is taken. @k, @n_sms, @o->occupancy: none is 0. */
double ws_mix_block_time(const struct ws_mix_measured *k, uint32_t n_sms,
                         const struct ws_mix_options *o);
/* Deals the mix by measured times; the result is m->dispatch (makespan, lists, critical SMs).
 * @o->occupancy: > 0. Return: as ws_dispatch_run(). */
WS_MUST_CHECK int ws_mix_measured(struct ws_mix *m, uint32_t n_sms,
                                  const struct ws_mix_measured *parts, uint32_t n_parts,
                                  const struct ws_mix_options *o, struct ws_diags *diags);

/* Whether merging pays: less energy than the same kernels launched one after another on the GPU,
 * and than on the CPU (INFINITY: they can't run there). Ties reject [ours: the paper leaves it
 * open]. */
bool ws_mix_saves(double mix_j, double gpu_j, double cpu_j);

#endif

// SPDX-License-Identifier: Apache-2.0
/* models/mwp_cwp.h - how long a kernel runs, from its instruction counts: memory-warp and
 * computation-warp parallelism.
 *
 * Source: S. Hong and H. Kim, "An Analytical Model for a GPU Architecture with Memory-level and
 * Thread-level Parallelism", ISCA 2009, on which the consolidation paper (Li, Byna, Chakradhar,
 * "Energy-Aware Workload Consolidation on GPU", 2011, V) builds. The equations are recalled from
 * the literature. All counts are per thread, all times in cycles of the SM clock. Threads: any;
 * nothing is shared. Errors: -EINVAL for a machine or kernel that can't be, with a diagnostic. */
#ifndef WS_MODELS_MWP_CWP_H
#define WS_MODELS_MWP_CWP_H

#include <stdbool.h>
#include "base/diag.h"
#include "base/macros.h"

/* What the model must know of a GPU. */
struct ws_mwp_gpu {
    const char *name;
    uint32_t n_sms, threads_per_warp;
    double freq_ghz;             /* SM clock */
    double bandwidth_gb_per_s;   /* DRAM, 10^9 bytes */
    double mem_latency_cycles;   /* Mem_LD */
    double depart_uncoal_cycles; /* between two transactions of an uncoalesced warp access */
    double depart_coal_cycles;   /* between two coalesced warp accesses */
    double issue_cycles;         /* to issue one warp instruction */
};
/* GeForce8800GTX, QuadroFX5600, GTX280 (ISCA 2009), TeslaC1060 (GTX280's latencies: the same chip
 * family) and the GPU of that paper's worked example (ISCA09_example). A row without a name ends
 * the table. */
extern const struct ws_mwp_gpu ws_mwp_gpus[];
/* NULL: no such row. */
const struct ws_mwp_gpu *ws_mwp_gpu_find(const char *name);

/* A GPU described by a catalog entry. Latency and bandwidth are the catalog's. The issue time is a
 * warp over @fp32_lanes_per_sm, a departure is the time in which an SM's load/store lanes, or its
 * share of the bandwidth if that is less, take one warp's 128 bytes (coalesced) or one 32-byte
 * sector (uncoalesced): estimates where no microbenchmark has measured them.
 * @name: borrowed. Return: 0 or -EINVAL (a zero). */
WS_MUST_CHECK int ws_mwp_gpu_derive(struct ws_mwp_gpu *ret, const char *name, uint32_t n_sms,
                                    uint32_t core_mhz, uint64_t memory_bytes_per_s,
                                    uint32_t memory_latency_ns, uint32_t fp32_lanes_per_sm,
                                    uint32_t ldst_lanes_per_sm);

struct ws_mwp_kernel {
    uint32_t threads_per_block;
    uint64_t n_blocks;
    uint32_t active_blocks_per_sm;   /* occupancy; fewer are used where there are fewer blocks */
    double comp_insts;               /* per thread: all but accesses to global memory */
    double coal_insts, uncoal_insts; /* per thread: accesses to global memory */
    double uncoal_per_mw;            /* transactions of one uncoalesced warp access, 1..32 */
    double synch_insts;              /* per thread: barriers */
};
enum ws_mwp_rule {
    /* Without "or Comp_cycles > Mem_cycles" in case 2, MWP at least 1, never less than the issue
     * time of all warps. */
    WS_MWP_RECOMMENDED,
    /* With that disjunct, as we recall the paper: gives 8,128 cycles where issuing alone takes
     * 28,928 (facts, B2). */
    WS_MWP_RECALLED
};
enum ws_mwp_case {
    WS_MWP_NO_MEMORY,    /* no access to global memory: issue time only */
    WS_MWP_CASE1_N,      /* MWP = N = CWP: not enough warps to hide anything */
    WS_MWP_CASE2_MEMORY, /* memory limits */
    WS_MWP_CASE2_FLOOR,  /* the same, raised to the issue time of all warps */
    WS_MWP_CASE3_COMPUTE /* computation hides memory */
};
const char *ws_mwp_case_name(enum ws_mwp_case c); /* "case2_memory" */

/* One SM's load: what the equations themselves work on. ws_mwp_predict() makes it of a kernel;
 * ws_consolidate of a mix. */
struct ws_mwp_load {
    double n_warps;                              /* N: resident together */
    double comp_insts, coal_insts, uncoal_insts; /* per thread, mean over the warps */
    double uncoal_per_mw;
    double synch_insts; /* summed over the SM's blocks, all repetitions */
    double rep;         /* #Rep: how often N warps run one after another */
    double active_sms;  /* that share the bandwidth */
    /* GB/s that one warp on each active SM would draw, all kernels together; 0: this load on all
     * active SMs */
    double bw_demand;
};
struct ws_mwp_result {
    double mem_insts, total_insts, mem_l_uncoal, mem_l_coal, weight_uncoal, weight_coal, mem_l;
    double departure_delay, mem_cycles, comp_cycles, load_bytes_per_warp;
    double n, active_sms, active_blocks_per_sm, rep; /* active_blocks_per_sm: by ws_mwp_predict() */
    /* 0 where nothing accesses memory: */
    double mwp_without_bw_full, mwp_without_bw, bw_per_warp, bw_demand, mwp_peak_bw, mwp, cwp_full,
        cwp;
    enum ws_mwp_case c;
    double one_rep_cycles, exec_cycles, synch_cycles, total_cycles, time_us;
    double cpi; /* by ws_mwp_predict() */
};

/* The equations for one load; nothing is checked. */
void ws_mwp_evaluate(struct ws_mwp_result *ret, const struct ws_mwp_gpu *gpu,
                     const struct ws_mwp_load *load, enum ws_mwp_rule rule);
/* GB/s that one warp of a load draws: bw_per_warp alone. 0: it accesses no memory. */
double ws_mwp_bw_per_warp(const struct ws_mwp_gpu *gpu, const struct ws_mwp_load *load);
/* -EINVAL with a diagnostic for each field that can't be. @diags: may be NULL. */
WS_MUST_CHECK int ws_mwp_check_gpu(const struct ws_mwp_gpu *gpu, struct ws_diags *diags);
WS_MUST_CHECK int ws_mwp_check_kernel(const struct ws_mwp_kernel *k, struct ws_diags *diags);
/* Warps of a block. */
double ws_mwp_warps(const struct ws_mwp_gpu *gpu, const struct ws_mwp_kernel *k);
/* A kernel alone on the GPU, with every intermediate of the paper. Return: 0 or -EINVAL. */
WS_MUST_CHECK int ws_mwp_predict(struct ws_mwp_result *ret, const struct ws_mwp_gpu *gpu,
                                 const struct ws_mwp_kernel *k, enum ws_mwp_rule rule,
                                 struct ws_diags *diags);

#endif

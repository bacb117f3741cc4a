/* SPDX-License-Identifier: Apache-2.0 */
/* device/spec.h - what a GPU is: an entry of the catalog (conf/gpu.d, *.conf). */
#ifndef WS_DEVICE_SPEC_H
#define WS_DEVICE_SPEC_H

#include <stdint.h>

/* All fields are set. */
struct ws_gpu_spec {
    char name[32];    /* "rtx3070" */
    char product[64]; /* "NVIDIA GeForce RTX 3070", reported to programs */
    uint32_t cc_major, cc_minor;
    uint32_t hardware_cc; /* what the real GPU has, times 10; programs may be told another one */
    uint32_t n_sms, max_threads_per_sm, max_blocks_per_sm, regs_per_sm, max_threads_per_block;
    uint32_t shared_bytes_per_sm, shared_bytes_per_block, shared_bytes_per_block_optin;
    uint32_t core_mhz, memory_mhz, memory_bus_bits, l2_bytes;
    uint32_t l1_bytes; /* of an SM, for loads of global memory; 0: they go past it */
    uint64_t memory_bytes, memory_bytes_per_s;
    uint64_t copy_bytes_per_s; /* host link, one direction */
    uint32_t copy_latency_ns, launch_overhead_ns, memory_latency_ns;
    uint32_t schedulers_per_sm; /* warp instructions issued per SM and clock */
    uint32_t fp32_lanes_per_sm, int_lanes_per_sm, fp64_lanes_per_sm, sfu_lanes_per_sm,
        ldst_lanes_per_sm;
    uint32_t static_mw;      /* P^s: powered, nothing running */
    uint32_t idle_mw_per_sm; /* p^idle: per idle SM while any SM is active */
    /* 1: the host's own processor, described like a GPU: for policies, programs don't see it. */
    uint32_t host;
    /* p^dyn: per active SM (sBEET-mg Eq. 2; per-application values come with profiles). */
    uint32_t dynamic_mw_per_sm;
    /* How the models below were held against measurements, or "uncalibrated: " and where the
     * numbers come from; "": the entry does not say. To be shown: ws_gpu_spec_calibrated(). */
    char calibrated[256];
    uint32_t limit_mw;                    /* of the board; 0: not known */
    uint32_t pcie_generation, pcie_lanes; /* 0: it has no such link, or it is not known */
    uint32_t raised_limit_mw;             /* that it runs with, if that is higher */
    /* Numbers of models/event_power.h and models/event_time.h, in mW, fJ and thousandths; all 0:
     * never fitted. */
    uint32_t voltage_knee_milli, voltage_slope_milli;
    uint32_t power_static_mw, power_memory_clock_mw, power_clock_mw, power_active_mw, power_busy_mw;
    uint32_t energy_issue_fj, energy_int_fj, energy_fp32_fj, energy_fp64_fj, energy_sfu_fj,
        energy_shared_fj, energy_l1_fj, energy_l2_fj, energy_dram_fj;
    uint32_t time_issue_milli, time_alu_milli, time_fp64_milli, time_sfu_milli, time_shared_milli,
        time_l1_milli, time_l2_milli, time_texture_milli, time_atomic_milli, time_dram_milli,
        time_path_milli, time_flow_clocks_milli, time_block_clocks_milli,
        time_dispatch_clocks_milli, time_latency_clocks_milli, time_load_share_milli,
        time_shared_clocks_milli, time_norm_milli, time_launch_us_milli;
};

/* What people are told of the entry's numbers; "uncalibrated" if it does not say. */
static inline const char *ws_gpu_spec_calibrated(const struct ws_gpu_spec *spec)
{
    return *spec->calibrated ? spec->calibrated : "uncalibrated";
}

#endif

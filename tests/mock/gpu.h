// SPDX-License-Identifier: Apache-2.0
/* tests/mock/gpu.h - the GPU that the mock driver plays, which is also the software GPU that the
 * device tests run beside it, so that the same suite sees the same limits. It has every field of
 * struct ws_gpu_spec except the names. */
#ifndef WS_TESTS_MOCK_GPU_H
#define WS_TESTS_MOCK_GPU_H

#include "device/device.h"

#define MOCK_GPU_NUMBERS                                                                           \
    .cc_major = 8, .cc_minor = 6, .n_sms = 8, .max_threads_per_sm = 1536, .max_blocks_per_sm = 16, \
    .regs_per_sm = 65536, .max_threads_per_block = 1024, .shared_bytes_per_sm = 102400,            \
    .shared_bytes_per_block = 49152, .shared_bytes_per_block_optin = 101376, .core_mhz = 1500,     \
    .memory_mhz = 7001, .memory_bus_bits = 128, .l2_bytes = 4 << 20,                               \
    .memory_bytes = UINT64_C(2) << 30, .memory_bytes_per_s = UINT64_C(224000000000),               \
    .copy_bytes_per_s = UINT64_C(12000000000), .copy_latency_ns = 8000,                            \
    .launch_overhead_ns = 3000, .memory_latency_ns = 330, .schedulers_per_sm = 4,                  \
    .fp32_lanes_per_sm = 128, .int_lanes_per_sm = 64, .fp64_lanes_per_sm = 2,                      \
    .sfu_lanes_per_sm = 16, .ldst_lanes_per_sm = 16, .static_mw = 20000, .idle_mw_per_sm = 300,    \
    .dynamic_mw_per_sm = 1800

#endif

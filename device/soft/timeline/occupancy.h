/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/occupancy.h - how much of an SM a block takes, as CUDA's occupancy
 * calculator counts it. */
#ifndef WS_DEVICE_SOFT_TIMELINE_OCCUPANCY_H
#define WS_DEVICE_SOFT_TIMELINE_OCCUPANCY_H

#include "device/device.h"

/* Of one block. */
struct ws_need {
    uint32_t warps, regs, shared_bytes;
};
/* Blocks per SM by each limit, and the smallest. */
struct ws_fit {
    struct ws_need need;
    uint32_t blocks_per_sm;
    const char *limit; /* "threads", "blocks", "regs", "shared" */
};
/* @n_regs: per thread; @shared_bytes: static and dynamic together. */
void ws_occupancy_fit(const struct ws_gpu_spec *spec, uint32_t block_threads, uint32_t n_regs,
                      uint32_t shared_bytes, struct ws_fit *ret);

#endif

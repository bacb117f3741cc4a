// SPDX-License-Identifier: Apache-2.0
/* device/cuda/clocks.h - a real GPU's clocks, set by another process: wattshare-clocks, which has
 * the rights that NVML demands and the daemon does not have. It restores a GPU's own clocks when
 * the connection ends for whatever reason.
 *
 * A message is one packet of a SOCK_SEQPACKET socket; each ask has one answer. Threads: one at a
 * time. */
#ifndef WS_DEVICE_CUDA_CLOCKS_H
#define WS_DEVICE_CUDA_CLOCKS_H

#include "device/device.h"

enum { WS_CLOCKS_VERSION = 0x77634b31 };
struct ws_clocks_ask {
    uint32_t version;
    uint32_t core_mhz, memory_mhz; /* wanted; 0: the GPU's own */
    uint8_t uuid[16];
};
struct ws_clocks_answer {
    uint32_t version;
    /* 0, -EBUSY (another connection set them), -EPERM, -ENOTSUP, -ENODEV, -EIO, -EPROTO */
    int32_t error;
    uint32_t core_mhz, memory_mhz; /* what they are locked to; 0: the GPU's own */
    char text[112];                /* of an error */
};

struct ws_clocks;
/* Has ws_device_set_clocks() of @d, a real GPU, ask wattshare-clocks at @socket from now on. A
 * clock between two of the GPU's steps becomes the higher one, so that rounding makes no job miss
 * its deadline. The voltage follows the core clock by the GPU's own curve. Return: 0, -ENOMEM,
 * -EINVAL (not a real GPU, a path too long). */
WS_MUST_CHECK int ws_clocks_manage(struct ws_device *d, const char *socket);
/* As ws_device_set_clocks(). While wattshare-clocks cannot be reached the GPU has its own clocks,
 * and *ret is 1, 1, 1. */
WS_MUST_CHECK int ws_clocks_set(struct ws_clocks *c, const struct ws_device_clocks *want,
                                struct ws_device_clocks *ret);
/* The state of the clocks for status: "set by wattshare-clocks", or why they are not. */
const char *ws_clocks_text(const struct ws_clocks *c);
struct ws_clocks *ws_clocks_close(struct ws_clocks *c); /* NULL ok; returns NULL */

#endif

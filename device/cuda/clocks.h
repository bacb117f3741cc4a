// SPDX-License-Identifier: Apache-2.0
/* device/cuda/clocks.h - a real GPU's clocks, set by another process: wattshare-clocks, which has the rights that NVML wants for it and
 * the daemon does not have. It gives a GPU its own clocks back as soon as the connection ends, however that comes about.
 * A message is one packet of a SOCK_SEQPACKET socket; each ask has one answer. Threads: one at a time. */
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
    int32_t
        error; /* 0, -EBUSY (another connection set them), -EPERM, -ENOTSUP, -ENODEV, -EIO, -EPROTO */
    uint32_t core_mhz, memory_mhz; /* what they are locked to; 0: the GPU's own */
    char text[112];                /* of an error */
};

struct ws_clocks;
/* @socket: of the helper, asked when clocks are first set. @d: a real GPU. From then on ws_device_set_clocks() of @d asks it: for the next
 * higher step that the GPU has, so that no deadline is missed by rounding. The voltage goes with the core clock, by the GPU's own curve.
 * Return: 0, -ENOMEM, -EINVAL (no real GPU, a path too long). */
WS_MUST_CHECK int ws_clocks_manage(struct ws_device *d, const char *socket);
/* As ws_device_set_clocks(). A helper that can't be reached, or went away, has left the GPU its own clocks: *ret is 1, 1, 1 then. */
WS_MUST_CHECK int ws_clocks_set(struct ws_clocks *c, const struct ws_device_clocks *want,
                                struct ws_device_clocks *ret);
/* How it stands: "set by wattshare-clocks", or why not. */
const char *ws_clocks_text(const struct ws_clocks *c);
struct ws_clocks *ws_clocks_close(struct ws_clocks *c); /* NULL ok; returns NULL */

#endif

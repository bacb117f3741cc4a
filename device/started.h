/* SPDX-License-Identifier: Apache-2.0 */
/* device/started.h - work that kernels start (CUDA C++ Programming Guide, "CUDA Dynamic
 * Parallelism").
 *
 * A launch has a list, into which the threads of its kernel put launches, copies and fills. Who
 * gave the launch to the device carries them out after it, one by one: nothing that a kernel starts
 * has to begin before the kernel's end, as no kernel can wait for what it started. When one of them
 * begins, all before it are done, with all that they started themselves; so streams and events of
 * device code need nothing more than the list.
 * Threads: any for ws_started_add(); the rest belongs to one thread. */
#ifndef WS_DEVICE_STARTED_H
#define WS_DEVICE_STARTED_H

#include "device/op.h"

/* What waits in the lists of one space, together; how deep kernels may nest that start kernels. */
enum { WS_STARTED_BYTES_MAX = 4 << 20, WS_STARTED_DEPTH_MAX = 24 };
enum ws_started_added {
    WS_STARTED_OK,
    WS_STARTED_MANY, /* no memory, or the space has as much as it may have */
    WS_STARTED_DEEP,
};

struct ws_start {
    struct ws_start *next;
    enum ws_op_kind kind;
    bool tail;      /* begins after all others that the launch starts (cudaStreamTailLaunch) */
    uint32_t depth; /* the list's: from 1; as deep as who started it, if it is a tail */
    union {
        struct {
            uint32_t kernel, grid[3], block[3], shared_bytes;
        } launch; /* of the same module */
        struct {
            uint64_t dst_va, src_va, bytes, height, depth; /* as ws_op.copy */
            struct ws_pitches dst, src;
        } copy;
        struct {
            uint64_t va, width_bytes, height, pitch_bytes; /* as ws_op.fill */
            uint32_t value;                                /* of each byte */
        } fill;
    };
    uint32_t param_bytes;
    _Alignas(16) uint8_t params[];
};

struct ws_started;
/* An empty list of a launch in @s, which outlives it. NULL: no memory. */
struct ws_started *ws_started_new(struct ws_space *s);
struct ws_started *ws_started_free(struct ws_started *l); /* NULL ok; returns NULL */
/* Adds a copy of @what, whose next, depth and params are not looked at, with parameters of
 * what->param_bytes. */
WS_MUST_CHECK enum ws_started_added ws_started_add(struct ws_started *l,
                                                   const struct ws_start *what, const void *params);
/* Whether there is a next one. @l: NULL ok. */
bool ws_started_any(const struct ws_started *l);
/* What is to be done next, after a launch that used the list has ended: what that one started comes
 * before what was there already. Valid until the next call. NULL: nothing is left. @l: NULL ok. */
const struct ws_start *ws_started_next(struct ws_started *l);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* base/launch_check.h - whether a GPU can run a launch of this shape: the rules that CUDA checks
 * before a kernel runs.
 *
 * The libraries that programs use, the daemon and all devices ask here, each with the limits it
 * knows, and answer with their own error codes. Threads: any; the function keeps no state. Source:
 * CUDA C++ Programming Guide, "Compute Capabilities". */
#ifndef WS_BASE_LAUNCH_CHECK_H
#define WS_BASE_LAUNCH_CHECK_H

#include <stdbool.h>
#include <stdint.h>

/* The same on all GPUs. */
enum {
    WS_GRID_X_MAX = INT32_MAX,
    WS_GRID_YZ_MAX = 65535,
    WS_BLOCK_XY_MAX = 1024,
    WS_BLOCK_Z_MAX = 64,
    WS_CLUSTER_MAX = 16,         /* blocks of a cluster, on any GPU */
    WS_CLUSTER_PORTABLE_MAX = 8, /* on all that have clusters */
};

/* A launch, the GPU that is to run it, and what the kernel was compiled for. */
struct ws_launch_shape {
    uint32_t grid[3], block[3];
    uint32_t static_shared_bytes, dynamic_shared_bytes; /* per block */
    uint32_t max_threads_per_block;                     /* of the GPU */
    uint32_t max_shared_bytes;                          /* per block, of the GPU */
    /* per block, as .maxntid or .reqntid of the kernel say; 0: no limit */
    uint32_t kernel_max_threads;
    uint32_t cluster[3]; /* blocks of a cluster, as the launch says; all 0: it says nothing */
    uint32_t kernel_cluster[3];  /* as .reqnctapercluster of the kernel says; all 0: nothing */
    bool kernel_must_cluster;    /* one of them has to say something (.explicitcluster) */
    uint32_t kernel_max_cluster; /* as its .maxclusterrank says; 0: no limit */
    uint32_t max_cluster;        /* blocks, as ws_launch_max_cluster() says */
};

/* The first rule that a launch breaks. */
enum ws_launch_rule {
    WS_LAUNCH_VALID,
    WS_LAUNCH_BAD_GRID, /* an extent of the grid is 0 or too large */
    /* an extent of the block is 0 or too large, or it has too many threads for the GPU */
    WS_LAUNCH_BAD_BLOCK,
    WS_LAUNCH_TOO_MANY_THREADS, /* more threads in a block than the kernel was compiled for */
    WS_LAUNCH_TOO_MUCH_SHARED,  /* more shared memory than a block of this GPU can have */
    /* larger clusters than GPU or kernel allow, others than the kernel was compiled for, or a grid
     * that is not made of whole ones */
    WS_LAUNCH_BAD_CLUSTER,
};

/* The numbers that a message names. */
uint64_t ws_launch_threads(const struct ws_launch_shape *l); /* of a block */
uint64_t
ws_launch_shared_bytes(const struct ws_launch_shape *l); /* of a block: static and dynamic */

/* The largest cluster on a GPU of that compute capability, in blocks; 1: it has no clusters.
 * @non_portable: the program has asked for more than all GPUs with clusters have. */
uint32_t ws_launch_max_cluster(uint32_t cc_major, bool non_portable);

enum ws_launch_rule ws_launch_check(const struct ws_launch_shape *l);

#endif

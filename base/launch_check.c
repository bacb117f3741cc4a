// SPDX-License-Identifier: Apache-2.0
/* The rules stand in the order in which CUDA reports them if a launch breaks several. Registers are
 * not checked: where PTX was not compiled, their number is an estimate, by which blocks that fit
 * would be refused. */
#include "base/launch_check.h"

#include "base/macros.h"

static bool within(const uint32_t extent[3], uint32_t x_max, uint32_t y_max, uint32_t z_max)
{
    return extent[0] && extent[1] && extent[2] && extent[0] <= x_max && extent[1] <= y_max &&
           extent[2] <= z_max;
}

uint64_t ws_launch_threads(const struct ws_launch_shape *l)
{
    return (uint64_t)l->block[0] * l->block[1] * l->block[2];
}

uint64_t ws_launch_shared_bytes(const struct ws_launch_shape *l)
{
    return (uint64_t)l->static_shared_bytes + l->dynamic_shared_bytes;
}

uint32_t ws_launch_max_cluster(uint32_t cc_major, bool non_portable)
{
    enum { FIRST_WITH_CLUSTERS = 9, LAST_OF_DATA_CENTRES = 10 };
    if (cc_major < FIRST_WITH_CLUSTERS)
        return 1;
    return non_portable && cc_major <= LAST_OF_DATA_CENTRES ? WS_CLUSTER_MAX
                                                            : WS_CLUSTER_PORTABLE_MAX;
}

static bool is_any(const uint32_t extent[3])
{
    return extent[0] || extent[1] || extent[2];
}

static bool cluster_ok(const struct ws_launch_shape *l)
{
    const uint32_t *c = is_any(l->cluster) ? l->cluster : l->kernel_cluster;
    uint64_t most =
        l->kernel_max_cluster ? WS_MIN(l->kernel_max_cluster, l->max_cluster) : l->max_cluster;
    if (!is_any(c))
        return !l->kernel_must_cluster;
    for (int i = 0; i < 3; i++)
        if (!c[i] || l->grid[i] % c[i] ||
            (is_any(l->kernel_cluster) && c[i] != l->kernel_cluster[i]))
            return false;
    return (uint64_t)c[0] * c[1] * c[2] <= WS_MAX(most, 1);
}

enum ws_launch_rule ws_launch_check(const struct ws_launch_shape *l)
{
    if (!within(l->grid, WS_GRID_X_MAX, WS_GRID_YZ_MAX, WS_GRID_YZ_MAX))
        return WS_LAUNCH_BAD_GRID;
    if (!within(l->block, WS_BLOCK_XY_MAX, WS_BLOCK_XY_MAX, WS_BLOCK_Z_MAX) ||
        ws_launch_threads(l) > l->max_threads_per_block)
        return WS_LAUNCH_BAD_BLOCK;
    if (l->kernel_max_threads && ws_launch_threads(l) > l->kernel_max_threads)
        return WS_LAUNCH_TOO_MANY_THREADS;
    if (ws_launch_shared_bytes(l) > l->max_shared_bytes)
        return WS_LAUNCH_TOO_MUCH_SHARED;
    return cluster_ok(l) ? WS_LAUNCH_VALID : WS_LAUNCH_BAD_CLUSTER;
}

// SPDX-License-Identifier: Apache-2.0
/* The rules stand in the order in which CUDA reports them if a launch breaks several. Registers are
 * not checked: where PTX was not compiled, their number is an estimate, by which blocks that fit
 * would be refused. */
#include "base/launch_check.h"

#include <stdbool.h>

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
    return WS_LAUNCH_VALID;
}

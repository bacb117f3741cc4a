// SPDX-License-Identifier: Apache-2.0
/* Chapters "Execution Control" (what is known of a kernel) and "Occupancy". */
#include "frontend/both/function.h"

/* ---- what is known of a kernel ---- */

WS_BOTH_API(cudaFuncSetAttribute, cuFuncSetAttribute,
            (const void *function, int attribute, int value), (function, attribute, value))
{
    WS_BOTH_ENTER_FUNCTION(f, function);
    return ws_fn_set_attribute(f, attribute, value);
}

WS_BOTH_API(cudaFuncSetCacheConfig, cuFuncSetCacheConfig, (const void *function, int config),
            (function, config))
{
    WS_BOTH_ENTER_FUNCTION(f, function);
    if (config < 0 || config > WS_CUDA_CACHE_CONFIG_LAST)
        return CUDA_INVALID_VALUE;
    f->cache_config = config;
    return CUDA_OK;
}

WS_BOTH_API(cudaFuncSetSharedMemConfig, cuFuncSetSharedMemConfig,
            (const void *function, int config), (function, config))
{
    WS_BOTH_ENTER_FUNCTION(f, function);
    return config < 0 || config > WS_CUDA_SHARED_CONFIG_LAST ? CUDA_INVALID_VALUE : CUDA_OK;
}

WS_BOTH_API(cudaFuncGetName, cuFuncGetName, (const char **ret, const void *function),
            (ret, function))
{
    WS_BOTH_ENTER_FUNCTION(f, function);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = ws_function_info(f->function)->name;
    return CUDA_OK;
}

WS_BOTH_API(cudaFuncGetParamInfo, cuFuncGetParamInfo,
            (const void *function, size_t i, size_t *offset, size_t *bytes),
            (function, i, offset, bytes))
{
    WS_BOTH_ENTER_FUNCTION(f, function);
    return ws_fn_param(f, i, offset, bytes);
}

WS_BOTH_API(cudaFuncGetParamCount, cuFuncGetParamCount, (const void *function, size_t *n),
            (function, n))
{
    WS_BOTH_ENTER_FUNCTION(f, function);
    return ws_fn_n_params(f, n);
}

/* ---- occupancy ---- */

WS_BOTH_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
            cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
            (int *ret, const void *function, int block_threads, size_t shared_bytes,
             unsigned flags),
            (ret, function, block_threads, shared_bytes, flags))
{
    WS_BOTH_ENTER_FUNCTION(f, function);
    if (!ret || flags > 1)
        return CUDA_INVALID_VALUE;
    return ws_fn_max_blocks(f, block_threads, shared_bytes, ret);
}
WS_BOTH_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
            cuOccupancyMaxActiveBlocksPerMultiprocessor,
            (int *ret, const void *function, int block_threads, size_t shared_bytes),
            (ret, function, block_threads, shared_bytes))
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_both(
        api, ret, function, block_threads, shared_bytes, 0);
}

WS_BOTH_API(cudaOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock,
            (size_t * ret, const void *function, int n_blocks, int block_threads),
            (ret, function, n_blocks, block_threads))
{
    WS_BOTH_ENTER_FUNCTION(f, function);
    return ret ? ws_fn_available_shared(f, n_blocks, block_threads, ret) : CUDA_INVALID_VALUE;
}

/* The runtime and the driver lay out a launch configuration differently. */
static struct ws_launch_config shape_of(enum ws_api api, const void *config)
{
    if (api == WS_RUNTIME) {
        const struct cuda_launch_config *c = config;
        return (struct ws_launch_config){.grid = {c->gridDim.x, c->gridDim.y, c->gridDim.z},
                                         .block = {c->blockDim.x, c->blockDim.y, c->blockDim.z},
                                         .shared_bytes = c->dynamicSmemBytes,
                                         .attributes = c->attrs,
                                         .n_attributes = c->numAttrs};
    }
    const struct cu_launch_config *c = config;
    return (struct ws_launch_config){.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                                     .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                                     .shared_bytes = c->sharedMemBytes,
                                     .attributes = c->attrs,
                                     .n_attributes = c->numAttrs};
}

static int max_clusters(enum ws_api api, const void *function, const void *config, int *ret_size,
                        int *ret_clusters)
{
    WS_BOTH_ENTER_FUNCTION(f, function);
    if (!config)
        return CUDA_INVALID_VALUE;
    struct ws_launch_config s = shape_of(api, config);
    int code = ws_fn_max_clusters(f, &s, ret_size, ret_clusters);
    return api == WS_DRIVER && code == CUDA_INVALID_CONFIGURATION ? CUDA_INVALID_VALUE : code;
}

WS_BOTH_API(cudaOccupancyMaxPotentialClusterSize, cuOccupancyMaxPotentialClusterSize,
            (int *size, const void *function, const void *config), (size, function, config))
{
    return size ? max_clusters(api, function, config, size, NULL) : CUDA_INVALID_VALUE;
}

WS_BOTH_API(cudaOccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters,
            (int *clusters, const void *function, const void *config), (clusters, function, config))
{
    return clusters ? max_clusters(api, function, config, NULL, clusters) : CUDA_INVALID_VALUE;
}

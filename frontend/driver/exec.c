// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API: "Execution Control", "Occupancy". A CUkernel is taken where a CUfunction is, as CUDA does since 12. */
#include <string.h>

#include "base/alloc.h"
#include "frontend/facade.h"
#include "frontend/module/module.h"

static int function_of(void *handle, int device, struct ws_fn **ret)
{
    *ret = handle;
    if (ws_fn_valid(handle))
        return CUDA_OK;
    return ws_kernel_valid(handle) ? ws_kernel_fn(handle, device, ret) : CUDA_INVALID_HANDLE;
}

/* Body of a function about a kernel: @f is it on the current device. */
#define ENTER_FN(f, handle)                                                                        \
    struct ws_fn *f;                                                                               \
    do {                                                                                           \
        WS_DRV_ENTER(c_);                                                                          \
        int code_ = function_of(handle, c_->device, &f);                                           \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)

/* ---- launch ---- */

static int launch(void *function, struct ws_launch_request *r, void **args, void **extra)
{
    ENTER_FN(f, function);
    for (int i = 0; i < 3; i++)
        if (!r->grid[i] || !r->block[i])
            return CUDA_INVALID_VALUE;
    ws_err e = ws_launch_set_args(r, args, extra);
    return ws_drv_error(e ? e : ws_fn_launch(f, r));
}

WS_DRV_STREAM_API(cuLaunchKernel, _ptsz,
                  (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **args, void **extra),
                  (function, gx, gy, gz, bx, by, bz, shared, stream, args, extra))
{
    struct ws_launch_request r = {.grid = {gx, gy, gz},
                                  .block = {bx, by, bz},
                                  .shared_bytes = shared,
                                  .stream = stream,
                                  .per_thread = per_thread};
    return launch(function, &r, args, extra);
}

WS_DRV_STREAM_API(cuLaunchCooperativeKernel, _ptsz,
                  (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void *stream, void **args),
                  (function, gx, gy, gz, bx, by, bz, shared, stream, args))
{
    struct ws_launch_request r = {.grid = {gx, gy, gz},
                                  .block = {bx, by, bz},
                                  .shared_bytes = shared,
                                  .stream = stream,
                                  .per_thread = per_thread,
                                  .cooperative = true};
    return launch(function, &r, args, NULL);
}

WS_DRV_STREAM_API(cuLaunchKernelEx, _ptsz,
                  (const struct cu_launch_config *c, void *function, void **args, void **extra),
                  (c, function, args, extra))
{
    if (!c || (c->numAttrs && !c->attrs))
        return CUDA_INVALID_VALUE;
    struct ws_launch_request r = {.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                                  .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                                  .shared_bytes = c->sharedMemBytes,
                                  .stream = c->hStream,
                                  .per_thread = per_thread};
    int code = ws_launch_attributes(c->attrs, c->numAttrs, &r.cooperative);
    return code ? code : launch(function, &r, args, extra);
}

/* ---- launches as before CUDA 4: shape and parameters are set on the function first ---- */

enum { OLD_PARAM_BYTES = 4096 };
struct ws_old_launch {
    unsigned block[3], shared_bytes, n_param_bytes;
    uint8_t params[OLD_PARAM_BYTES];
};

static int old_launch_of(void *function, struct ws_fn **ret_fn, struct ws_old_launch **ret)
{
    ENTER_FN(f, function);
    if (!f->old && !(f->old = ws_alloc(sizeof *f->old)))
        return CUDA_OUT_OF_MEMORY;
    *ret_fn = f;
    *ret = f->old;
    return CUDA_OK;
}

WS_DRV_API(cuFuncSetBlockShape, (void *function, int x, int y, int z))
{
    struct ws_fn *f;
    struct ws_old_launch *o;
    int code = old_launch_of(function, &f, &o);
    if (code || x <= 0 || y <= 0 || z <= 0)
        return code ? code : CUDA_INVALID_VALUE;
    o->block[0] = (unsigned)x;
    o->block[1] = (unsigned)y;
    o->block[2] = (unsigned)z;
    return CUDA_OK;
}

WS_DRV_API(cuFuncSetSharedSize, (void *function, unsigned bytes))
{
    struct ws_fn *f;
    struct ws_old_launch *o;
    int code = old_launch_of(function, &f, &o);
    if (!code)
        o->shared_bytes = bytes;
    return code;
}

WS_DRV_API(cuParamSetSize, (void *function, unsigned bytes))
{
    struct ws_fn *f;
    struct ws_old_launch *o;
    int code = old_launch_of(function, &f, &o);
    if (code || bytes > OLD_PARAM_BYTES)
        return code ? code : CUDA_INVALID_VALUE;
    o->n_param_bytes = bytes;
    return CUDA_OK;
}

WS_DRV_API(cuParamSetv, (void *function, int offset, const void *p, unsigned bytes))
{
    struct ws_fn *f;
    struct ws_old_launch *o;
    int code = old_launch_of(function, &f, &o);
    if (code || !p || offset < 0 || offset > OLD_PARAM_BYTES ||
        bytes > OLD_PARAM_BYTES - (unsigned)offset)
        return code ? code : CUDA_INVALID_VALUE;
    memcpy(o->params + offset, p, bytes);
    return CUDA_OK;
}
WS_DRV_API(cuParamSeti, (void *function, int offset, unsigned value))
{
    return cuParamSetv(function, offset, &value, sizeof value);
}
WS_DRV_API(cuParamSetf, (void *function, int offset, float value))
{
    return cuParamSetv(function, offset, &value, sizeof value);
}

static int old_launch(void *function, int width, int height, void *stream)
{
    struct ws_fn *f;
    struct ws_old_launch *o;
    int code = old_launch_of(function, &f, &o);
    if (code || width <= 0 || height <= 0 || !o->block[0])
        return code ? code : CUDA_INVALID_VALUE;
    struct ws_launch_request r = {.grid = {(unsigned)width, (unsigned)height, 1},
                                  .block = {o->block[0], o->block[1], o->block[2]},
                                  .shared_bytes = o->shared_bytes,
                                  .stream = stream,
                                  .packed = o->params,
                                  .packed_bytes = o->n_param_bytes};
    return ws_drv_error(ws_fn_launch(f, &r));
}
WS_DRV_API(cuLaunch, (void *function))
{
    return old_launch(function, 1, 1, NULL);
}
WS_DRV_API(cuLaunchGrid, (void *function, int width, int height))
{
    return old_launch(function, width, height, NULL);
}
WS_DRV_API(cuLaunchGridAsync, (void *function, int width, int height, void *stream))
{
    return old_launch(function, width, height, stream);
}

/* ---- what is known of a kernel ---- */

WS_DRV_API(cuFuncGetAttribute, (int *ret, int attribute, void *function))
{
    ENTER_FN(f, function);
    return ret ? ws_fn_attribute(f, attribute, ret) : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuFuncSetAttribute, (void *function, int attribute, int value))
{
    ENTER_FN(f, function);
    return ws_fn_set_attribute(f, attribute, value);
}

WS_DRV_API(cuFuncSetCacheConfig, (void *function, int config))
{
    ENTER_FN(f, function);
    if (config < 0 || config > 3)
        return CUDA_INVALID_VALUE;
    f->cache_config = config;
    return CUDA_OK;
}

WS_DRV_API(cuFuncSetSharedMemConfig, (void *function, int config))
{
    ENTER_FN(f, function);
    (void)f;
    return config < 0 || config > 2 ? CUDA_INVALID_VALUE : CUDA_OK;
}

WS_DRV_API(cuFuncGetModule, (struct ws_mod * *ret, void *function))
{
    ENTER_FN(f, function);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = f->mod;
    return CUDA_OK;
}

WS_DRV_API(cuFuncGetName, (const char **ret, void *function))
{
    ENTER_FN(f, function);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = ws_function_info(f->function)->name;
    return CUDA_OK;
}

WS_DRV_API(cuFuncGetParamInfo, (void *function, size_t i, size_t *offset, size_t *bytes))
{
    ENTER_FN(f, function);
    return ws_fn_param(f, i, offset, bytes);
}

WS_DRV_API(cuFuncIsLoaded, (int *state, void *function))
{
    enum { LOADED = 1 };
    ENTER_FN(f, function);
    (void)f;
    if (!state)
        return CUDA_INVALID_VALUE;
    *state = LOADED;
    return CUDA_OK;
}

WS_DRV_API(cuFuncLoad, (void *function))
{
    ENTER_FN(f, function);
    (void)f;
    return CUDA_OK;
}

/* ---- occupancy ---- */

WS_DRV_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
           (int *ret, void *function, int threads, size_t shared, unsigned flags))
{
    ENTER_FN(f, function);
    if (!ret || flags > 1)
        return CUDA_INVALID_VALUE;
    return ws_fn_max_blocks(f, threads, shared, ret);
}

WS_DRV_API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
           (int *ret, void *function, int threads, size_t shared))
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(ret, function, threads, shared, 0);
}

/* The block size, a multiple of a warp, that keeps most threads on an SM; the largest of equals. */
WS_DRV_API(cuOccupancyMaxPotentialBlockSizeWithFlags,
           (int *ret_grid, int *ret_block, void *function, size_t (*shared_of)(int), size_t shared,
            int limit, unsigned flags))
{
    ENTER_FN(f, function);
    int max, best = 0, best_blocks = 0;
    if (!ret_grid || !ret_block || limit < 0 || flags > 1)
        return CUDA_INVALID_VALUE;
    int code = ws_fn_attribute(f, 0, &max);
    if (code)
        return code;
    const Ws__Device *d = ws_session_device(f->mod->device);
    if (limit && limit < max)
        max = limit;
    for (int threads = (max + 31) / 32 * 32; threads > 0; threads -= 32) {
        int n = WS_MIN(threads, max), blocks = 0;
        code = ws_fn_max_blocks(f, n, shared_of ? shared_of(n) : shared, &blocks);
        if (code)
            return code;
        if (blocks * n > best * best_blocks) {
            best = n;
            best_blocks = blocks;
        }
        if (best * best_blocks == (int)d->max_threads_per_sm)
            break;
    }
    *ret_block = best;
    *ret_grid = best_blocks * (int)d->n_sms;
    return CUDA_OK;
}

WS_DRV_API(cuOccupancyMaxPotentialBlockSize, (int *ret_grid, int *ret_block, void *function,
                                              size_t (*shared_of)(int), size_t shared, int limit))
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(ret_grid, ret_block, function, shared_of,
                                                     shared, limit, 0);
}

WS_DRV_API(cuOccupancyAvailableDynamicSMemPerBlock,
           (size_t * ret, void *function, int n_blocks, int threads))
{
    ENTER_FN(f, function);
    return ret ? ws_fn_available_shared(f, n_blocks, threads, ret) : CUDA_INVALID_VALUE;
}

static int max_clusters(void *function, const struct cu_launch_config *c, int *ret_size,
                        int *ret_clusters)
{
    ENTER_FN(f, function);
    if (!c)
        return CUDA_INVALID_VALUE;
    struct ws_launch_shape s = {.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                                .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                                .shared_bytes = c->sharedMemBytes,
                                .attributes = c->attrs,
                                .n_attributes = c->numAttrs};
    int code = ws_fn_max_clusters(f, &s, ret_size, ret_clusters);
    return code == CUDA_INVALID_CONFIGURATION ? CUDA_INVALID_VALUE : code;
}

WS_DRV_API(cuOccupancyMaxPotentialClusterSize,
           (int *size, void *function, const struct cu_launch_config *config))
{
    int clusters;
    return size ? max_clusters(function, config, size, &clusters) : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuOccupancyMaxActiveClusters,
           (int *clusters, void *function, const struct cu_launch_config *config))
{
    int size;
    return clusters ? max_clusters(function, config, &size, clusters) : CUDA_INVALID_VALUE;
}

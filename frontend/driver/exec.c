// SPDX-License-Identifier: Apache-2.0
/* Chapters "Execution Control" and "Occupancy": what the runtime lacks or has in another form. A
 * CUkernel may stand for a CUfunction, as in CUDA since version 12. */
#include <string.h>

#include "base/alloc.h"
#include "frontend/both/function.h"

/* Body of a function about a kernel: @f is it on the current device. */
#define ENTER_FN(f, handle)                                                                        \
    struct ws_fn *f;                                                                               \
    do {                                                                                           \
        WS_DRV_ENTER(c_);                                                                          \
        int code_ = ws_api_function(WS_DRIVER, handle, c_->device, &f);                            \
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
                                  .means.cooperative = true};
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
    int code = ws_launch_attributes(c->attrs, c->numAttrs, &r.means);
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
    if (!f->old && !(f->old = ws_alloc(sizeof(*f->old))))
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
    return cuParamSetv(function, offset, &value, sizeof(value));
}
WS_DRV_API(cuParamSetf, (void *function, int offset, float value))
{
    return cuParamSetv(function, offset, &value, sizeof(value));
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

WS_DRV_API(cuFuncGetModule, (struct ws_mod * *ret, void *function))
{
    ENTER_FN(f, function);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = f->mod;
    return CUDA_OK;
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

/* The block size, a multiple of a warp, that keeps most threads on an SM; the largest of equals. */
WS_DRV_API(cuOccupancyMaxPotentialBlockSizeWithFlags,
           (int *ret_grid, int *ret_block, void *function, size_t (*shared_of)(int), size_t shared,
            int limit, unsigned flags))
{
    ENTER_FN(f, function);
    int max, best = 0, best_blocks = 0;
    if (!ret_grid || !ret_block || limit < 0 || flags > 1)
        return CUDA_INVALID_VALUE;
    int code = ws_fn_attribute(f, WS_FUNC_MAX_THREADS_PER_BLOCK, &max);
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

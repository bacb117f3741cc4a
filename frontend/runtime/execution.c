// SPDX-License-Identifier: Apache-2.0
/* Chapter "Execution Control": launches, attributes of functions, and copies by symbol. */
#include <string.h>

#include "frontend/facade.h"
#include "frontend/runtime/before13.h"
#include "frontend/memory/copy_params.h"
#include "frontend/module/registry.h"
#include "frontend/stream/work.h"

/* ---- launch ---- */

static int launch(const void *function, struct cuda_dim3 grid, struct cuda_dim3 block, void **args,
                  size_t shared_bytes, void *stream, bool per_thread, struct ws_launch_means means)
{
    struct ws_fn *f;
    struct ws_launch_request r = {
        .grid = {grid.x, grid.y, grid.z},
        .block = {block.x, block.y, block.z},
        .shared_bytes = shared_bytes,
        .stream = stream,
        .per_thread = per_thread,
        .means = means,
        .args = args,
    };
    WS_RT_ENTER(device);
    int code = ws_registry_fn(function, device, &f);
    if (WS_UNLIKELY(code)) {
        ws_thread.n_refused += code == CUDA_NOT_SUPPORTED;
        return ws_rt_record(code);
    }
    return WS_RT_DONE(ws_fn_launch(f, &r));
}

WS_RT_STREAM_API(cudaLaunchKernel, _ptsz,
                 (const void *function, struct cuda_dim3 grid, struct cuda_dim3 block, void **args,
                  size_t shared_bytes, void *stream),
                 (function, grid, block, args, shared_bytes, stream))
{
    return launch(function, grid, block, args, shared_bytes, stream, per_thread,
                  (struct ws_launch_means){.cooperative = false});
}
WS_RT_ALIAS(__cudaLaunchKernel, cudaLaunchKernel)
WS_RT_ALIAS(__cudaLaunchKernel_ptsz, cudaLaunchKernel_ptsz)

WS_RT_STREAM_API(cudaLaunchCooperativeKernel, _ptsz,
                 (const void *function, struct cuda_dim3 grid, struct cuda_dim3 block, void **args,
                  size_t shared_bytes, void *stream),
                 (function, grid, block, args, shared_bytes, stream))
{
    return launch(function, grid, block, args, shared_bytes, stream, per_thread,
                  (struct ws_launch_means){.cooperative = true});
}

WS_RT_STREAM_API(cudaLaunchKernelExC, _ptsz,
                 (const struct cuda_launch_config *c, const void *function, void **args),
                 (c, function, args))
{
    struct ws_launch_means means = {.cooperative = false};
    if (!c || (c->numAttrs && !c->attrs))
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = ws_launch_attributes(c->attrs, c->numAttrs, &means);
    if (code)
        return ws_rt_record(code);
    return launch(function, c->gridDim, c->blockDim, args, c->dynamicSmemBytes, c->stream,
                  per_thread, means);
}

/* ---- functions ---- */

/* A function on the current device. Return: recorded code. */
static int function_of(const void *function, struct ws_fn **ret)
{
    WS_RT_ENTER(device);
    return ws_rt_record(ws_registry_fn(function, device, ret));
}

static int attribute(const struct ws_fn *f, int which)
{
    int v = 0;
    ws_fn_attribute(f, which, &v);
    return v;
}

WS_RT_API(cudaFuncGetAttributes, (struct cuda_func_attributes * a, const void *function))
{
    size_t bytes = WS_RT_SIZEOF_12(*a, WS_RT_11_FUNC_ATTRIBUTES);
    struct ws_fn *f;
    if (!a)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = function_of(function, &f);
    if (code)
        return code;
    memset(a, 0, bytes);
    a->maxThreadsPerBlock = attribute(f, WS_FUNC_MAX_THREADS_PER_BLOCK);
    a->sharedSizeBytes = (size_t)attribute(f, WS_FUNC_SHARED_SIZE_BYTES);
    a->constSizeBytes = (size_t)attribute(f, WS_FUNC_CONST_SIZE_BYTES);
    a->localSizeBytes = (size_t)attribute(f, WS_FUNC_LOCAL_SIZE_BYTES);
    a->numRegs = attribute(f, WS_FUNC_NUM_REGS);
    a->ptxVersion = attribute(f, WS_FUNC_PTX_VERSION);
    a->binaryVersion = attribute(f, WS_FUNC_BINARY_VERSION);
    a->maxDynamicSharedSizeBytes = attribute(f, WS_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    a->preferredShmemCarveout = attribute(f, WS_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT);
    if (bytes < sizeof(*a))
        return CUDA_OK;
    a->clusterDimMustBeSet = attribute(f, WS_FUNC_CLUSTER_SIZE_MUST_BE_SET);
    a->requiredClusterWidth = attribute(f, WS_FUNC_REQUIRED_CLUSTER_WIDTH);
    a->requiredClusterHeight = attribute(f, WS_FUNC_REQUIRED_CLUSTER_HEIGHT);
    a->requiredClusterDepth = attribute(f, WS_FUNC_REQUIRED_CLUSTER_DEPTH);
    a->clusterSchedulingPolicyPreference =
        attribute(f, WS_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
    a->nonPortableClusterSizeAllowed = attribute(f, WS_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
    return CUDA_OK;
}

WS_RT_API(cudaKernelSetAttributeForDevice, (const void *kernel, int which, int value, int device))
{
    struct ws_fn *f;
    WS_RT_ENTER(current);
    if (!ws_session_device(device))
        return ws_rt_record(CUDA_INVALID_DEVICE);
    int code = ws_registry_fn(kernel, device, &f);
    return ws_rt_record(code ? code : ws_fn_set_attribute(f, which, value));
}

WS_RT_API(cudaGetKernel, (void **kernel, const void *function))
{
    struct ws_kernel *k = ws_registry_kernel(function);
    if (!kernel)
        return ws_rt_record(CUDA_INVALID_VALUE);
    if (!k)
        return ws_rt_record(CUDA_INVALID_DEVICE_FUNCTION);
    *kernel = k;
    return CUDA_OK;
}

WS_RT_API(cudaGetFuncBySymbol, (void **function, const void *symbol))
{
    struct ws_fn *f;
    if (!function)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = function_of(symbol, &f);
    if (!code)
        *function = f;
    return code;
}

/* ---- symbols ---- */

static int variable(const void *symbol, uint64_t *ret_address, uint64_t *ret_bytes)
{
    WS_RT_ENTER(device);
    return ws_rt_record(ws_registry_variable(symbol, device, ret_address, ret_bytes));
}

WS_RT_API(cudaGetSymbolAddress, (void **p, const void *symbol))
{
    uint64_t address, bytes;
    if (!p)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = variable(symbol, &address, &bytes);
    if (!code)
        *p = (void *)(uintptr_t)address;
    return code;
}

WS_RT_API(cudaGetSymbolSize, (size_t * ret_bytes, const void *symbol))
{
    uint64_t address, bytes;
    if (!ret_bytes)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = variable(symbol, &address, &bytes);
    if (!code)
        *ret_bytes = bytes;
    return code;
}

/* @buffer: the side that is not the symbol. */
static int copy_symbol(const void *symbol, void *buffer, size_t bytes, size_t offset, int kind,
                       bool to_symbol, void *stream, bool per_thread, bool async)
{
    uint64_t address, room;
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    if (kind != WS_CUDA_COPY_DEFAULT && kind != WS_CUDA_COPY_D2D &&
        kind != (to_symbol ? WS_CUDA_COPY_H2D : WS_CUDA_COPY_D2H))
        return ws_rt_record(CUDA_INVALID_DIRECTION);
    int code = ws_registry_variable(symbol, device, &address, &room);
    if (!code && (offset > room || bytes > room - offset))
        code = CUDA_INVALID_VALUE;
    if (code)
        return ws_rt_record(code);
    void *at = (void *)(uintptr_t)(address + offset);
    enum ws_copy_dir dir;
    code = ws_copy_direction(kind, &dir);
    if (code)
        return ws_rt_record(code);
    return WS_RT_DONE(
        ws_work_copy(id, to_symbol ? at : buffer, to_symbol ? buffer : at, bytes, dir, async));
}

WS_RT_STREAM_API(cudaMemcpyToSymbol, _ptds,
                 (const void *symbol, const void *src, size_t bytes, size_t offset, int kind),
                 (symbol, src, bytes, offset, kind))
{
    return copy_symbol(symbol, (void *)src, bytes, offset, kind, true, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpyFromSymbol, _ptds,
                 (void *dst, const void *symbol, size_t bytes, size_t offset, int kind),
                 (dst, symbol, bytes, offset, kind))
{
    return copy_symbol(symbol, dst, bytes, offset, kind, false, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpyToSymbolAsync, _ptsz,
                 (const void *symbol, const void *src, size_t bytes, size_t offset, int kind,
                  void *stream),
                 (symbol, src, bytes, offset, kind, stream))
{
    return copy_symbol(symbol, (void *)src, bytes, offset, kind, true, stream, per_thread, true);
}
WS_RT_STREAM_API(cudaMemcpyFromSymbolAsync, _ptsz,
                 (void *dst, const void *symbol, size_t bytes, size_t offset, int kind,
                  void *stream),
                 (dst, symbol, bytes, offset, kind, stream))
{
    return copy_symbol(symbol, dst, bytes, offset, kind, false, stream, per_thread, true);
}

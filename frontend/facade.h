// SPDX-License-Identifier: Apache-2.0
/* frontend/facade.h - how the façades' files define entry points. tools/entrypoints.py finds them by these macros, which stand at
 * the start of a line: a name defined with one is DONE in entrypoints.def.
 *
 * WS_RT_API(cudaX, (parameters))                 defines cudaX; body follows. Runtime functions return WS_RT(code), which
 *                                                 remembers it as the thread's last error.
 * WS_RT_STREAM_API(cudaX, _ptsz, (parameters), (arguments))
 *                                                 defines cudaX and cudaX_ptsz; in the body per_thread says which.
 * WS_RT_ALIAS(cudaY, cudaX)                      cudaY is cudaX.
 * WS_RT_TYPED_API(cudaX, type, (parameters))     as WS_RT_API, returning type. */
#ifndef WS_FRONTEND_FACADE_H
#define WS_FRONTEND_FACADE_H

#include "frontend/context/context.h"
#include "frontend/cuda_types.h"
#include "frontend/errors.h"

static inline int ws_rt_record(int code)
{
    if (WS_UNLIKELY(code))
        ws_thread.last_error = code;
    return code;
}

/* Functions that return another type than an error code. */
#define WS_TYPED_API(name, type, params)                                                           \
    WS_EXPORT type name params;                                                                    \
    type name params
#define WS_UNPACK(...) __VA_ARGS__
#define WS_API(name, params)                                                                       \
    WS_EXPORT int name params;                                                                     \
    int name params
#define WS_STREAM_API(name, suffix, params, args)                                                  \
    static int name##_of(bool per_thread, WS_UNPACK params);                                       \
    WS_API(name, params)                                                                           \
    {                                                                                              \
        return name##_of(false, WS_UNPACK args);                                                   \
    }                                                                                              \
    WS_API(name##suffix, params)                                                                   \
    {                                                                                              \
        return name##_of(true, WS_UNPACK args);                                                    \
    }                                                                                              \
    static int name##_of(bool per_thread, WS_UNPACK params)
#define WS_ALIAS(name, target) WS_EXPORT __typeof__(target) name __attribute__((alias(#target)));

#define WS_RT_API         WS_API
#define WS_RT_TYPED_API   WS_TYPED_API
#define WS_RT_STREAM_API  WS_STREAM_API
#define WS_RT_ALIAS       WS_ALIAS
#define WS_DRV_API        WS_API
#define WS_DRV_STREAM_API WS_STREAM_API
#define WS_DRV_ALIAS      WS_ALIAS
#define WS_NVRTC_API      WS_API

/* Body of a runtime function: enters the current device's context, or returns. */
#define WS_RT_ENTER(device)                                                                        \
    int device;                                                                                    \
    do {                                                                                           \
        int code_ = ws_rt_enter(&device);                                                          \
        if (WS_UNLIKELY(code_))                                                                    \
            return ws_rt_record(code_);                                                            \
    } while (0)
/* The session's id of a stream's handle, or returns INVALID_HANDLE. */
#define WS_RT_STREAM(id, handle, per_thread, device)                                               \
    uint64_t id;                                                                                   \
    if (ws_stream_of(handle, per_thread, device, &id))                                             \
    return ws_rt_record(CUDA_INVALID_HANDLE)
#define WS_RT_DONE(session_call) ws_rt_record(ws_rt_error(session_call))

#define WS_DRV_ENTER(ctx)                                                                          \
    struct ws_ctx *ctx;                                                                            \
    do {                                                                                           \
        int code_ = ws_drv_enter(&ctx);                                                            \
        if (WS_UNLIKELY(code_))                                                                    \
            return code_;                                                                          \
    } while (0)
#define WS_DRV_STREAM(id, handle, per_thread, device)                                              \
    uint64_t id;                                                                                   \
    if (ws_stream_of(handle, per_thread, device, &id))                                             \
    return CUDA_INVALID_HANDLE

#endif

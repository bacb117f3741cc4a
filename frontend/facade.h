// SPDX-License-Identifier: Apache-2.0
/* frontend/facade.h - how entry points of CUDA are defined. tools/entrypoints.py finds them by
 * these macros, which stand at the start of a line: a name that is defined with one of them is DONE
 * in entrypoints.def. The body follows the macro.
 *
 * Calls that the runtime and the driver both have (folder both/):
 *
 * WS_BOTH_API(cudaX, cuX, (parameters), (arguments))
 *     defines both. The body returns a CUDA code; cudaX also remembers it as the thread's last
 *     error. In the body `api` says which of the two was called, for the few lines in which they
 *     differ. WS_BOTH_ENTER(c) enters the context, and WS_BOTH_STREAM finds a stream. A device
 *     address is a uint64_t here: the runtime's void * is passed in the same way. Where the
 *     runtime has a parameter of 32 bits and the driver one of 64, the body must cut the
 *     runtime's: its upper half is undefined.
 * WS_BOTH_STREAM_API(cudaX, cuX, _ptsz, (parameters), (arguments))
 *     defines cudaX_ptsz and cuX_ptsz too; in the body `per_thread` says whether stream 0 is the
 *     thread's own default stream.
 *
 * Calls that only one of them has (folders runtime/ and driver/):
 *
 * WS_RT_API(cudaX, (parameters))
 *     defines cudaX. Every path returns ws_rt_record(code), which remembers the thread's last
 *     error.
 * WS_RT_STREAM_API(cudaX, _ptsz, (parameters), (arguments))
 *     defines cudaX and cudaX_ptsz; in the body `per_thread` says which.
 * WS_RT_TYPED_API(cudaX, type, (parameters))
 *     is like WS_RT_API, and cudaX returns the type.
 * WS_RT_ALIAS(cudaY, cudaX)
 *     makes cudaY another name of cudaX.
 * WS_DRV_API, WS_DRV_STREAM_API, WS_DRV_ALIAS
 *     are the same for the driver, whose functions return their code and remember none. */
#ifndef WS_FRONTEND_FACADE_H
#define WS_FRONTEND_FACADE_H

#include "frontend/context/context.h"
#include "frontend/cuda_types.h"
#include "frontend/errors.h"

/* That something isn't ready yet is no error, and is not remembered: work takes longer here than on
 * a GPU, and programs that ask and go on take what is left behind for an error of a later call. */
static inline int ws_rt_record(int code)
{
    if (WS_UNLIKELY(code) && code != CUDA_NOT_READY)
        ws_rt_failed(code);
    return code;
}

static inline int ws_api_record(enum ws_api api, int code)
{
    return api == WS_RUNTIME ? ws_rt_record(code) : code;
}
static inline int ws_api_error(enum ws_api api, ws_err e)
{
    return api == WS_RUNTIME ? ws_rt_error(e) : ws_drv_error(e);
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

#define WS_BOTH_API(rt, drv, params, args)                                                         \
    static int rt##_both(enum ws_api api, WS_UNPACK params);                                       \
    WS_API(rt, params)                                                                             \
    {                                                                                              \
        return ws_rt_record(rt##_both(WS_RUNTIME, WS_UNPACK args));                                \
    }                                                                                              \
    WS_API(drv, params)                                                                            \
    {                                                                                              \
        return rt##_both(WS_DRIVER, WS_UNPACK args);                                               \
    }                                                                                              \
    static inline int rt##_both(enum ws_api api, WS_UNPACK params)
#define WS_BOTH_STREAM_API(rt, drv, suffix, params, args)                                          \
    static int rt##_both(enum ws_api api, bool per_thread, WS_UNPACK params);                      \
    WS_API(rt, params)                                                                             \
    {                                                                                              \
        return ws_rt_record(rt##_both(WS_RUNTIME, false, WS_UNPACK args));                         \
    }                                                                                              \
    WS_API(rt##suffix, params)                                                                     \
    {                                                                                              \
        return ws_rt_record(rt##_both(WS_RUNTIME, true, WS_UNPACK args));                          \
    }                                                                                              \
    WS_API(drv, params)                                                                            \
    {                                                                                              \
        return rt##_both(WS_DRIVER, false, WS_UNPACK args);                                        \
    }                                                                                              \
    WS_API(drv##suffix, params)                                                                    \
    {                                                                                              \
        return rt##_both(WS_DRIVER, true, WS_UNPACK args);                                         \
    }                                                                                              \
    static inline int rt##_both(enum ws_api api, bool per_thread, WS_UNPACK params)

#define WS_RT_API         WS_API
#define WS_RT_TYPED_API   WS_TYPED_API
#define WS_RT_STREAM_API  WS_STREAM_API
#define WS_RT_ALIAS       WS_ALIAS
#define WS_DRV_API        WS_API
#define WS_DRV_STREAM_API WS_STREAM_API
#define WS_DRV_ALIAS      WS_ALIAS
#define WS_NVRTC_API      WS_API

/* For the body of a runtime function: enters the current device's context, or returns. */
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

/* For the body of a driver function: the current context, or returns. */
#define WS_DRV_ENTER(ctx)                                                                          \
    struct ws_cuda_context *ctx;                                                                   \
    do {                                                                                           \
        int code_ = ws_drv_enter(&ctx);                                                            \
        if (WS_UNLIKELY(code_))                                                                    \
            return code_;                                                                          \
    } while (0)
/* The session's id of a stream's handle, or returns INVALID_HANDLE. */
#define WS_DRV_STREAM(id, handle, per_thread, device)                                              \
    uint64_t id;                                                                                   \
    if (ws_stream_of(handle, per_thread, device, &id))                                             \
    return CUDA_INVALID_HANDLE

/* For the body of a WS_BOTH_… function, or of a function that it calls with its `api`: enters the
 * context as the runtime or as the driver does it, or returns. */
#define WS_BOTH_ENTER(ctx)                                                                         \
    struct ws_cuda_context *ctx;                                                                   \
    do {                                                                                           \
        int code_ = ws_api_enter(api, &ctx);                                                       \
        if (WS_UNLIKELY(code_))                                                                    \
            return code_;                                                                          \
    } while (0)
#define WS_BOTH_STREAM WS_DRV_STREAM

#endif

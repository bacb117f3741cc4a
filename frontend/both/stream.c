// SPDX-License-Identifier: Apache-2.0
/* Chapter "Stream Management". A stream's handle is the session's id: whether it lives is for the
 * session to say. */
#include "frontend/context/attributes.h"
#include "frontend/facade.h"
#include "frontend/memory/hostmem.h"
#include "frontend/stream/work.h"

enum { STREAM_NON_BLOCKING = 1 }; /* flag of cudaStreamCreateWithFlags */
enum { ATTACH_GLOBAL = 1, ATTACH_HOST = 2, ATTACH_SINGLE = 4 }; /* of cudaStreamAttachMemAsync */

static int create(enum ws_api api, void **stream, unsigned flags, int priority)
{
    uint64_t id;
    WS_BOTH_ENTER(c);
    if (!stream || flags & ~(unsigned)STREAM_NON_BLOCKING)
        return CUDA_INVALID_VALUE;
    priority = WS_MAX(WS_MIN(priority, (int)WS_PRIORITY_LEAST), (int)WS_PRIORITY_GREATEST);
    ws_err e = ws_session_stream_create(c->device, flags & STREAM_NON_BLOCKING, priority, &id);
    if (e)
        return ws_api_error(api, e);
    ws_ctx_own(c, WS_OWNED_STREAM, id);
    *stream = (void *)(uintptr_t)id;
    return CUDA_OK;
}

WS_BOTH_API(cudaStreamCreateWithPriority, cuStreamCreateWithPriority,
            (void **stream, unsigned flags, int priority), (stream, flags, priority))
{
    return create(api, stream, flags, priority);
}
WS_BOTH_API(cudaStreamCreateWithFlags, cuStreamCreate, (void **stream, unsigned flags),
            (stream, flags))
{
    return create(api, stream, flags, WS_PRIORITY_LEAST);
}
WS_RT_API(cudaStreamCreate, (void **stream))
{
    return cudaStreamCreateWithFlags(stream, 0);
}

WS_BOTH_API(cudaStreamDestroy, cuStreamDestroy_v2, (void *stream), (stream))
{
    uint64_t id = (uintptr_t)stream;
    WS_BOTH_ENTER(c);
    if (id < WS_STREAM_FIRST) /* default streams can't be destroyed */
        return CUDA_INVALID_HANDLE;
    ws_work_forget_stream(id);
    ws_ctx_disown(WS_OWNED_STREAM, id);
    return ws_api_error(api, ws_session_stream_destroy(id));
}
WS_DRV_ALIAS(cuStreamDestroy, cuStreamDestroy_v2)

WS_BOTH_STREAM_API(cudaStreamSynchronize, cuStreamSynchronize, _ptsz, (void *stream), (stream))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    int code = ws_work_wait_stream(id);
    return code ? code : ws_api_error(api, ws_session_stream_sync(id));
}

WS_BOTH_STREAM_API(cudaStreamQuery, cuStreamQuery, _ptsz, (void *stream), (stream))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    int code = ws_work_wait_stream(id);
    return code ? code : ws_api_error(api, ws_session_stream_query(id));
}

WS_BOTH_STREAM_API(cudaStreamWaitEvent, cuStreamWaitEvent, _ptsz,
                   (void *stream, void *event, unsigned flags), (stream, event, flags))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    if (flags > 1)
        return CUDA_INVALID_VALUE;
    return ws_api_error(api, ws_work_wait(id, (uintptr_t)event, flags));
}

/* ---- what a stream is ---- */

struct stream_info {
    uint64_t id;
    int device, priority;
    bool non_blocking;
};

static int info_of(enum ws_api api, void *stream, bool per_thread, struct stream_info *ret)
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    ret->id = id;
    return ws_api_error(
        api, ws_session_stream_info(id, &ret->device, &ret->non_blocking, &ret->priority));
}

/* Defines a question about a stream. @answer: it, made of @i. */
#define WS_BOTH_STREAM_QUESTION(rt, drv, suffix, type, answer)                                     \
    WS_BOTH_STREAM_API(rt, drv, suffix, (void *stream, type *ret), (stream, ret))                  \
    {                                                                                              \
        struct stream_info i;                                                                      \
        int code = info_of(api, stream, per_thread, &i);                                           \
        if (code || !ret)                                                                          \
            return code ? code : CUDA_INVALID_VALUE;                                               \
        *ret = answer;                                                                             \
        return CUDA_OK;                                                                            \
    }
WS_BOTH_STREAM_QUESTION(cudaStreamGetPriority, cuStreamGetPriority, _ptsz, int, i.priority)
WS_BOTH_STREAM_QUESTION(cudaStreamGetFlags, cuStreamGetFlags, _ptsz, unsigned, i.non_blocking)
WS_BOTH_STREAM_QUESTION(cudaStreamGetId, cuStreamGetId, _ptsz, unsigned long long, i.id)
WS_BOTH_STREAM_QUESTION(cudaStreamGetDevice, cuStreamGetDevice, _ptsz, int, i.device)

/* ---- host functions ---- */

WS_BOTH_STREAM_API(cudaStreamAddCallback, cuStreamAddCallback, _ptsz,
                   (void *stream, void (*fn)(void *, int, void *), void *data, unsigned flags),
                   (stream, fn, data, flags))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    if (!fn || flags)
        return CUDA_INVALID_VALUE;
    struct ws_stream_work w = {
        .kind = WS_WORK_CALLBACK,
        .host = {.callback = fn, .data = data, .stream = stream, .runtime = api == WS_RUNTIME}};
    return ws_api_error(api, ws_work_put(id, &w, true));
}

/* @mode: whether a GPU waits for the function by blocking or by spinning; here it always blocks. */
WS_BOTH_STREAM_API(cudaLaunchHostFunc_v2, cuLaunchHostFunc_v2, _ptsz,
                   (void *stream, void (*fn)(void *), void *data, unsigned mode),
                   (stream, fn, data, mode))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    if (!fn || mode > 1)
        return CUDA_INVALID_VALUE;
    struct ws_stream_work w = {.kind = WS_WORK_HOST, .host = {.fn = fn, .data = data}};
    return ws_api_error(api, ws_work_put(id, &w, true));
}

WS_BOTH_STREAM_API(cudaLaunchHostFunc, cuLaunchHostFunc, _ptsz,
                   (void *stream, void (*fn)(void *), void *data), (stream, fn, data))
{
    return cudaLaunchHostFunc_v2_both(api, per_thread, stream, fn, data, 0);
}

/* ---- hints: checked, and of no further effect ---- */

WS_BOTH_STREAM_API(cudaStreamAttachMemAsync, cuStreamAttachMemAsync, _ptsz,
                   (void *stream, uint64_t address, size_t bytes, unsigned flags),
                   (stream, address, bytes, flags))
{
    struct ws_hostmem m;
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    (void)id;
    ws_hostmem_find(address, &m);
    bool ok = m.kind == WS_HOSTMEM_MANAGED && (!bytes || bytes <= m.bytes - (address - m.base)) &&
              (flags == ATTACH_GLOBAL || flags == ATTACH_HOST || flags == ATTACH_SINGLE);
    return ok ? CUDA_OK : CUDA_INVALID_VALUE;
}

WS_BOTH_STREAM_API(cudaStreamSetAttribute, cuStreamSetAttribute, _ptsz,
                   (void *stream, int attribute, const union cuda_launch_attribute_value *value),
                   (stream, attribute, value))
{
    struct stream_info i;
    int code = info_of(api, stream, per_thread, &i);
    if (!code && (!value || !ws_stream_attribute_known(attribute)))
        code = CUDA_INVALID_VALUE;
    return code;
}

WS_BOTH_STREAM_API(cudaStreamGetAttribute, cuStreamGetAttribute, _ptsz,
                   (void *stream, int attribute, union cuda_launch_attribute_value *value),
                   (stream, attribute, value))
{
    struct stream_info i;
    int code = info_of(api, stream, per_thread, &i);
    if (!code && (!value || !ws_stream_attribute_known(attribute)))
        code = CUDA_INVALID_VALUE;
    if (!code)
        ws_stream_attribute(attribute, i.priority, value);
    return code;
}

WS_BOTH_STREAM_API(cudaStreamCopyAttributes, cuStreamCopyAttributes, _ptsz, (void *dst, void *src),
                   (dst, src))
{
    struct stream_info i;
    int code = info_of(api, dst, per_thread, &i);
    return code ? code : info_of(api, src, per_thread, &i);
}

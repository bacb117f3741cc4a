// SPDX-License-Identifier: Apache-2.0
/* Chapters "Stream Management" and "Event Management". A handle is the session's id: whether it lives is for the session to say. */
#include "frontend/context/attributes.h"
#include "frontend/facade.h"
#include "frontend/memory/ipc.h"
#include "frontend/stream/work.h"

enum { STREAM_NON_BLOCKING = 1 };
enum { EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4, EVENT_FLAGS = 7 };

static void *handle_of(uint64_t id)
{
    return (void *)(uintptr_t)id;
}
static uint64_t id_of(const void *event)
{
    return (uintptr_t)event;
}

/* ---- streams ---- */

static int create(void **stream, unsigned flags, int priority)
{
    uint64_t id;
    WS_RT_ENTER(device);
    if (!stream || flags > STREAM_NON_BLOCKING)
        return ws_rt_record(CUDA_INVALID_VALUE);
    priority = WS_MAX(WS_MIN(priority, (int)WS_PRIORITY_LEAST), (int)WS_PRIORITY_GREATEST);
    ws_err r = ws_session_stream_create(device, flags == STREAM_NON_BLOCKING, priority, &id);
    if (r)
        return WS_RT_DONE(r);
    ws_ctx_own(ws_ctx_current(), WS_OWNED_STREAM, id);
    *stream = handle_of(id);
    return CUDA_OK;
}

WS_RT_API(cudaStreamCreate, (void **stream))
{
    return create(stream, 0, 0);
}
WS_RT_API(cudaStreamCreateWithFlags, (void **stream, unsigned flags))
{
    return create(stream, flags, 0);
}
WS_RT_API(cudaStreamCreateWithPriority, (void **stream, unsigned flags, int priority))
{
    return create(stream, flags, priority);
}

WS_RT_API(cudaStreamDestroy, (void *stream))
{
    WS_RT_ENTER(device);
    uint64_t id = (uintptr_t)stream;
    (void)device;
    if (id < WS_STREAM_FIRST) /* default streams can't be destroyed */
        return ws_rt_record(CUDA_INVALID_HANDLE);
    ws_work_forget_stream(id);
    ws_ctx_disown(WS_OWNED_STREAM, id);
    return WS_RT_DONE(ws_session_stream_destroy(id));
}

WS_RT_STREAM_API(cudaStreamSynchronize, _ptsz, (void *stream), (stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int code = ws_work_wait_stream(id);
    return code ? ws_rt_record(code) : WS_RT_DONE(ws_session_stream_sync(id));
}

WS_RT_STREAM_API(cudaStreamQuery, _ptsz, (void *stream), (stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int code = ws_work_wait_stream(id);
    return code ? ws_rt_record(code) : WS_RT_DONE(ws_session_stream_query(id));
}

WS_RT_STREAM_API(cudaStreamWaitEvent, _ptsz, (void *stream, void *event, unsigned flags),
                 (stream, event, flags))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    if (flags > 1)
        return ws_rt_record(CUDA_INVALID_VALUE);
    return WS_RT_DONE(ws_work_wait(id, id_of(event), flags));
}

/* What a stream is. Return: recorded code. */
static int info(void *stream, bool per_thread, int *ret_device, bool *ret_non_blocking,
                int *ret_priority, uint64_t *ret_id)
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    *ret_id = id;
    return WS_RT_DONE(ws_session_stream_info(id, ret_device, ret_non_blocking, ret_priority));
}

WS_RT_STREAM_API(cudaStreamGetFlags, _ptsz, (void *stream, unsigned *flags), (stream, flags))
{
    int device, priority;
    bool non_blocking;
    uint64_t id;
    if (!flags)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = info(stream, per_thread, &device, &non_blocking, &priority, &id);
    if (!code)
        *flags = non_blocking ? STREAM_NON_BLOCKING : 0;
    return code;
}

WS_RT_STREAM_API(cudaStreamGetPriority, _ptsz, (void *stream, int *ret_priority),
                 (stream, ret_priority))
{
    int device, priority;
    bool non_blocking;
    uint64_t id;
    if (!ret_priority)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = info(stream, per_thread, &device, &non_blocking, &priority, &id);
    if (!code)
        *ret_priority = priority;
    return code;
}

WS_RT_STREAM_API(cudaStreamGetDevice, _ptsz, (void *stream, int *ret_device), (stream, ret_device))
{
    int device, priority;
    bool non_blocking;
    uint64_t id;
    if (!ret_device)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = info(stream, per_thread, &device, &non_blocking, &priority, &id);
    if (!code)
        *ret_device = device;
    return code;
}

WS_RT_STREAM_API(cudaStreamGetId, _ptsz, (void *stream, unsigned long long *ret_id),
                 (stream, ret_id))
{
    int device, priority;
    bool non_blocking;
    uint64_t id;
    if (!ret_id)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = info(stream, per_thread, &device, &non_blocking, &priority, &id);
    if (!code)
        *ret_id = id;
    return code;
}

WS_RT_STREAM_API(cudaStreamAddCallback, _ptsz,
                 (void *stream, void (*fn)(void *, int, void *), void *data, unsigned flags),
                 (stream, fn, data, flags))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    if (!fn || flags)
        return ws_rt_record(CUDA_INVALID_VALUE);
    struct ws_work w = {.kind = WS_WORK_CALLBACK,
                        .host = {.callback = fn, .data = data, .stream = stream, .runtime = true}};
    return WS_RT_DONE(ws_work_put(id, &w, true));
}

WS_RT_STREAM_API(cudaLaunchHostFunc, _ptsz, (void *stream, void (*fn)(void *), void *data),
                 (stream, fn, data))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    if (!fn)
        return ws_rt_record(CUDA_INVALID_VALUE);
    struct ws_work w = {.kind = WS_WORK_HOST, .host = {.fn = fn, .data = data}};
    return WS_RT_DONE(ws_work_put(id, &w, true));
}

/* ---- attributes: hints that a software device doesn't need ---- */

WS_RT_STREAM_API(cudaStreamSetAttribute, _ptsz,
                 (void *stream, int attribute, const union cuda_launch_attribute_value *value),
                 (stream, attribute, value))
{
    int device, priority;
    bool non_blocking;
    uint64_t id;
    int code = info(stream, per_thread, &device, &non_blocking, &priority, &id);
    if (!code && (!value || !ws_stream_attribute_known(attribute)))
        code = ws_rt_record(CUDA_INVALID_VALUE);
    return code;
}

WS_RT_STREAM_API(cudaStreamGetAttribute, _ptsz,
                 (void *stream, int attribute, union cuda_launch_attribute_value *value),
                 (stream, attribute, value))
{
    int device, priority;
    bool non_blocking;
    uint64_t id;
    int code = info(stream, per_thread, &device, &non_blocking, &priority, &id);
    if (!code && (!value || !ws_stream_attribute_known(attribute)))
        code = ws_rt_record(CUDA_INVALID_VALUE);
    if (!code)
        ws_stream_attribute(attribute, priority, value);
    return code;
}

WS_RT_STREAM_API(cudaStreamCopyAttributes, _ptsz, (void *dst, void *src), (dst, src))
{
    int device, priority;
    bool non_blocking;
    uint64_t id;
    int code = info(dst, per_thread, &device, &non_blocking, &priority, &id);
    return code ? code : info(src, per_thread, &device, &non_blocking, &priority, &id);
}

/* ---- events ---- */

static int event_create(void **event, unsigned flags)
{
    uint64_t id;
    WS_RT_ENTER(device);
    if (!event || flags > EVENT_FLAGS ||
        ((flags & EVENT_INTERPROCESS) && !(flags & EVENT_DISABLE_TIMING)))
        return ws_rt_record(CUDA_INVALID_VALUE);
    bool timing = !(flags & EVENT_DISABLE_TIMING), interprocess = flags & EVENT_INTERPROCESS;
    int code = interprocess ? ws_ipc_event_check(timing) : CUDA_OK;
    if (code)
        return ws_rt_record(code);
    ws_err r = ws_session_event_create(device, timing, &id);
    if (r)
        return WS_RT_DONE(r);
    if (interprocess)
        ws_ipc_event_note(id);
    ws_ctx_own(ws_ctx_current(), WS_OWNED_EVENT, id);
    *event = handle_of(id);
    return CUDA_OK;
}

WS_RT_API(cudaEventCreate, (void **event))
{
    return event_create(event, 0);
}
WS_RT_API(cudaEventCreateWithFlags, (void **event, unsigned flags))
{
    return event_create(event, flags);
}

WS_RT_API(cudaEventDestroy, (void *event))
{
    WS_RT_ENTER(device);
    (void)device;
    ws_work_forget_event(id_of(event));
    ws_ipc_event_forget(id_of(event));
    ws_ctx_disown(WS_OWNED_EVENT, id_of(event));
    return WS_RT_DONE(ws_session_event_destroy(id_of(event)));
}

WS_RT_STREAM_API(cudaEventRecord, _ptsz, (void *event, void *stream), (event, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return WS_RT_DONE(ws_work_record(id_of(event), id, false));
}

WS_RT_STREAM_API(cudaEventRecordWithFlags, _ptsz, (void *event, void *stream, unsigned flags),
                 (event, stream, flags))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    if (flags > 1)
        return ws_rt_record(CUDA_INVALID_VALUE);
    return WS_RT_DONE(ws_work_record(id_of(event), id, flags));
}

WS_RT_API(cudaEventSynchronize, (void *event))
{
    WS_RT_ENTER(device);
    (void)device;
    int code = ws_work_wait_event(id_of(event));
    return code ? ws_rt_record(code) : WS_RT_DONE(ws_session_event_sync(id_of(event)));
}

WS_RT_API(cudaEventQuery, (void *event))
{
    WS_RT_ENTER(device);
    (void)device;
    int code = ws_work_wait_event(id_of(event));
    return code ? ws_rt_record(code) : WS_RT_DONE(ws_session_event_query(id_of(event)));
}

WS_RT_API(cudaEventElapsedTime, (float *ms, void *start, void *end))
{
    WS_RT_ENTER(device);
    (void)device;
    if (!ms)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = ws_work_wait_event(id_of(start));
    if (!code)
        code = ws_work_wait_event(id_of(end));
    return code ? ws_rt_record(code)
                : WS_RT_DONE(ws_session_event_elapsed(id_of(start), id_of(end), ms));
}
WS_RT_ALIAS(cudaEventElapsedTime_v2, cudaEventElapsedTime)

// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API: "Stream Management", "Event Management". */
#include "frontend/context/attributes.h"
#include "frontend/facade.h"
#include "frontend/memory/ipc.h"
#include "frontend/memory/hostmem.h"
#include "frontend/stream/work.h"

/* ---- streams ---- */

enum { STREAM_NON_BLOCKING = 1 };

static int create(void **ret, unsigned flags, int priority)
{
    uint64_t id;
    WS_DRV_ENTER(c);
    if (!ret || flags & ~(unsigned)STREAM_NON_BLOCKING)
        return CUDA_INVALID_VALUE;
    priority = WS_MAX(WS_MIN(priority, (int)WS_PRIORITY_LEAST), (int)WS_PRIORITY_GREATEST);
    ws_err e = ws_session_stream_create(c->device, flags & STREAM_NON_BLOCKING, priority, &id);
    if (e)
        return ws_drv_error(e);
    ws_ctx_own(c, WS_OWNED_STREAM, id);
    *ret = (void *)(uintptr_t)id;
    return CUDA_OK;
}

WS_DRV_API(cuStreamCreate, (void **ret, unsigned flags))
{
    return create(ret, flags, WS_PRIORITY_LEAST);
}

WS_DRV_API(cuStreamCreateWithPriority, (void **ret, unsigned flags, int priority))
{
    return create(ret, flags, priority);
}

WS_DRV_API(cuStreamDestroy_v2, (void *stream))
{
    WS_DRV_ENTER(c);
    (void)c;
    if ((uintptr_t)stream < WS_STREAM_FIRST) /* default streams can't be destroyed */
        return CUDA_INVALID_HANDLE;
    ws_work_forget_stream((uintptr_t)stream);
    ws_ctx_disown(WS_OWNED_STREAM, (uintptr_t)stream);
    return ws_drv_error(ws_session_stream_destroy((uintptr_t)stream));
}
WS_DRV_ALIAS(cuStreamDestroy, cuStreamDestroy_v2)

WS_DRV_STREAM_API(cuStreamSynchronize, _ptsz, (void *stream), (stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    int code = ws_work_wait_stream(id);
    return code ? code : ws_drv_error(ws_session_stream_sync(id));
}

WS_DRV_STREAM_API(cuStreamQuery, _ptsz, (void *stream), (stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    int code = ws_work_wait_stream(id);
    return code ? code : ws_drv_error(ws_session_stream_query(id));
}

WS_DRV_STREAM_API(cuStreamWaitEvent, _ptsz, (void *stream, void *event, unsigned flags),
                  (stream, event, flags))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    if (flags > 1)
        return CUDA_INVALID_VALUE;
    return ws_drv_error(ws_work_wait(id, (uintptr_t)event, flags));
}

/* What a stream is. Return: a CUDA code. */
static int stream_info(void *stream, bool per_thread, uint64_t *ret_id, int *ret_device,
                       bool *ret_non_blocking, int *ret_priority)
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    *ret_id = id;
    return ws_drv_error(ws_session_stream_info(id, ret_device, ret_non_blocking, ret_priority));
}

#define WS_DRV_STREAM_QUESTION(name, suffix, type, answer)                                         \
    WS_DRV_STREAM_API(name, suffix, (void *stream, type *ret), (stream, ret))                      \
    {                                                                                              \
        uint64_t id;                                                                               \
        int device, priority;                                                                      \
        bool non_blocking;                                                                         \
        int code = stream_info(stream, per_thread, &id, &device, &non_blocking, &priority);        \
        if (code || !ret)                                                                          \
            return code ? code : CUDA_INVALID_VALUE;                                               \
        *ret = answer;                                                                             \
        return CUDA_OK;                                                                            \
    }
WS_DRV_STREAM_QUESTION(cuStreamGetPriority, _ptsz, int, priority)
WS_DRV_STREAM_QUESTION(cuStreamGetFlags, _ptsz, unsigned, non_blocking)
WS_DRV_STREAM_QUESTION(cuStreamGetId, _ptsz, unsigned long long, id)
WS_DRV_STREAM_QUESTION(cuStreamGetDevice, _ptsz, int, device)
WS_DRV_STREAM_QUESTION(cuStreamGetCtx, _ptsz, struct ws_ctx *,
                       ws_ctx_owner(WS_OWNED_STREAM, id, device))

/* With green contexts the second answer would be one of those. */
WS_DRV_STREAM_API(cuStreamGetCtx_v2, _ptsz, (void *stream, struct ws_ctx **ret, void **ret_green),
                  (stream, ret, ret_green))
{
    int code = per_thread ? cuStreamGetCtx_ptsz(stream, ret) : cuStreamGetCtx(stream, ret);
    if (!code && ret_green)
        *ret_green = NULL;
    return code;
}

WS_DRV_STREAM_API(cuStreamAddCallback, _ptsz,
                  (void *stream, void (*fn)(void *, int, void *), void *data, unsigned flags),
                  (stream, fn, data, flags))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    if (!fn || flags)
        return CUDA_INVALID_VALUE;
    struct ws_work w = {.kind = WS_WORK_CALLBACK,
                        .host = {.callback = fn, .data = data, .stream = stream}};
    return ws_drv_error(ws_work_put(id, &w, true));
}

WS_DRV_STREAM_API(cuLaunchHostFunc, _ptsz, (void *stream, void (*fn)(void *), void *data),
                  (stream, fn, data))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    if (!fn)
        return CUDA_INVALID_VALUE;
    struct ws_work w = {.kind = WS_WORK_HOST, .host = {.fn = fn, .data = data}};
    return ws_drv_error(ws_work_put(id, &w, true));
}

WS_DRV_STREAM_API(cuStreamAttachMemAsync, _ptsz,
                  (void *stream, uint64_t address, size_t bytes, unsigned flags),
                  (stream, address, bytes, flags))
{
    struct ws_hostmem m;
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    (void)id;
    ws_hostmem_find(address, &m);
    bool ok = m.kind == WS_HOSTMEM_MANAGED && (!bytes || bytes <= m.bytes - (address - m.base)) &&
              (flags == 1 || flags == 2 || flags == 4);
    return ok ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* Attributes: hints that a software device doesn't need. */
static int check_attribute(void *stream, bool per_thread, int attribute, const void *value,
                           int *ret_priority)
{
    uint64_t id;
    int device;
    bool non_blocking;
    int code = stream_info(stream, per_thread, &id, &device, &non_blocking, ret_priority);
    return code                                            ? code
           : value && ws_stream_attribute_known(attribute) ? CUDA_OK
                                                           : CUDA_INVALID_VALUE;
}

WS_DRV_STREAM_API(cuStreamSetAttribute, _ptsz,
                  (void *stream, int attribute, const union cuda_launch_attribute_value *value),
                  (stream, attribute, value))
{
    int priority;
    return check_attribute(stream, per_thread, attribute, value, &priority);
}

WS_DRV_STREAM_API(cuStreamGetAttribute, _ptsz,
                  (void *stream, int attribute, union cuda_launch_attribute_value *value),
                  (stream, attribute, value))
{
    int priority;
    int code = check_attribute(stream, per_thread, attribute, value, &priority);
    if (!code)
        ws_stream_attribute(attribute, priority, value);
    return code;
}

WS_DRV_STREAM_API(cuStreamCopyAttributes, _ptsz, (void *dst, void *src), (dst, src))
{
    uint64_t id;
    int device, priority;
    bool non_blocking;
    int code = stream_info(dst, per_thread, &id, &device, &non_blocking, &priority);
    return code ? code : stream_info(src, per_thread, &id, &device, &non_blocking, &priority);
}

/* ---- events ---- */

enum { EVENT_BLOCKING_SYNC = 1, EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4 };

WS_DRV_API(cuEventCreate, (void **ret, unsigned flags))
{
    uint64_t id;
    WS_DRV_ENTER(c);
    if (!ret || flags & ~7u)
        return CUDA_INVALID_VALUE;
    bool timing = !(flags & EVENT_DISABLE_TIMING), interprocess = flags & EVENT_INTERPROCESS;
    int code = interprocess ? ws_ipc_event_check(timing) : CUDA_OK;
    if (code)
        return code;
    ws_err e = ws_session_event_create(c->device, timing, &id);
    if (e)
        return ws_drv_error(e);
    if (interprocess)
        ws_ipc_event_note(id);
    ws_ctx_own(c, WS_OWNED_EVENT, id);
    *ret = (void *)(uintptr_t)id;
    return CUDA_OK;
}

WS_DRV_API(cuEventDestroy_v2, (void *event))
{
    WS_DRV_ENTER(c);
    (void)c;
    ws_work_forget_event((uintptr_t)event);
    ws_ipc_event_forget((uintptr_t)event);
    ws_ctx_disown(WS_OWNED_EVENT, (uintptr_t)event);
    return ws_drv_error(ws_session_event_destroy((uintptr_t)event));
}
WS_DRV_ALIAS(cuEventDestroy, cuEventDestroy_v2)

WS_DRV_STREAM_API(cuEventRecord, _ptsz, (void *event, void *stream), (event, stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    return ws_drv_error(ws_work_record((uintptr_t)event, id, false));
}

WS_DRV_STREAM_API(cuEventRecordWithFlags, _ptsz, (void *event, void *stream, unsigned flags),
                  (event, stream, flags))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    if (flags > 1)
        return CUDA_INVALID_VALUE;
    return ws_drv_error(ws_work_record((uintptr_t)event, id, flags));
}

WS_DRV_API(cuEventSynchronize, (void *event))
{
    WS_DRV_ENTER(c);
    (void)c;
    int code = ws_work_wait_event((uintptr_t)event);
    return code ? code : ws_drv_error(ws_session_event_sync((uintptr_t)event));
}

WS_DRV_API(cuEventQuery, (void *event))
{
    WS_DRV_ENTER(c);
    (void)c;
    int code = ws_work_wait_event((uintptr_t)event);
    return code ? code : ws_drv_error(ws_session_event_query((uintptr_t)event));
}

WS_DRV_API(cuEventElapsedTime_v2, (float *ret, void *start, void *end))
{
    WS_DRV_ENTER(c);
    (void)c;
    if (!ret)
        return CUDA_INVALID_VALUE;
    int code = ws_work_wait_event((uintptr_t)start);
    if (!code)
        code = ws_work_wait_event((uintptr_t)end);
    return code ? code
                : ws_drv_error(ws_session_event_elapsed((uintptr_t)start, (uintptr_t)end, ret));
}
WS_DRV_ALIAS(cuEventElapsedTime, cuEventElapsedTime_v2)

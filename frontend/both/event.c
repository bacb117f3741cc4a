// SPDX-License-Identifier: Apache-2.0
/* Chapter "Event Management". An event's handle is the session's id: whether it lives is for the
 * session to say. */
#include "frontend/facade.h"
#include "frontend/memory/ipc.h"
#include "frontend/stream/work.h"

enum { EVENT_BLOCKING_SYNC = 1, EVENT_DISABLE_TIMING = 2, EVENT_INTERPROCESS = 4 };
enum { EVENT_FLAGS = EVENT_BLOCKING_SYNC | EVENT_DISABLE_TIMING | EVENT_INTERPROCESS };

WS_BOTH_API(cudaEventCreateWithFlags, cuEventCreate, (void **event, unsigned flags), (event, flags))
{
    uint64_t id;
    WS_BOTH_ENTER(c);
    if (!event || flags & ~(unsigned)EVENT_FLAGS)
        return CUDA_INVALID_VALUE;
    bool timing = !(flags & EVENT_DISABLE_TIMING), interprocess = flags & EVENT_INTERPROCESS;
    int code = interprocess ? ws_ipc_event_check(timing) : CUDA_OK;
    if (code)
        return code;
    ws_err e = ws_session_event_create(c->device, timing, &id);
    if (e)
        return ws_api_error(api, e);
    if (interprocess)
        ws_ipc_event_note(id);
    ws_ctx_own(c, WS_OWNED_EVENT, id);
    *event = (void *)(uintptr_t)id;
    return CUDA_OK;
}
WS_RT_API(cudaEventCreate, (void **event))
{
    return cudaEventCreateWithFlags(event, 0);
}

WS_BOTH_API(cudaEventDestroy, cuEventDestroy_v2, (void *event), (event))
{
    uint64_t id = (uintptr_t)event;
    WS_BOTH_ENTER(c);
    ws_work_forget_event(id);
    ws_ipc_event_forget(id);
    ws_ctx_disown(WS_OWNED_EVENT, id);
    return ws_api_error(api, ws_session_event_destroy(id));
}
WS_DRV_ALIAS(cuEventDestroy, cuEventDestroy_v2)

WS_BOTH_STREAM_API(cudaEventRecord, cuEventRecord, _ptsz, (void *event, void *stream),
                   (event, stream))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return ws_api_error(api, ws_work_record((uintptr_t)event, id, false));
}

WS_BOTH_STREAM_API(cudaEventRecordWithFlags, cuEventRecordWithFlags, _ptsz,
                   (void *event, void *stream, unsigned flags), (event, stream, flags))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    if (flags > 1)
        return CUDA_INVALID_VALUE;
    return ws_api_error(api, ws_work_record((uintptr_t)event, id, flags));
}

WS_BOTH_API(cudaEventSynchronize, cuEventSynchronize, (void *event), (event))
{
    WS_BOTH_ENTER(c);
    int code = ws_work_wait_event((uintptr_t)event);
    return code ? code : ws_api_error(api, ws_session_event_sync((uintptr_t)event));
}

WS_BOTH_API(cudaEventQuery, cuEventQuery, (void *event), (event))
{
    WS_BOTH_ENTER(c);
    int code = ws_work_wait_event((uintptr_t)event);
    return code ? code : ws_api_error(api, ws_session_event_query((uintptr_t)event));
}

WS_BOTH_API(cudaEventElapsedTime, cuEventElapsedTime_v2, (float *ms, void *start, void *end),
            (ms, start, end))
{
    WS_BOTH_ENTER(c);
    if (!ms)
        return CUDA_INVALID_VALUE;
    int code = ws_work_wait_event((uintptr_t)start);
    if (!code)
        code = ws_work_wait_event((uintptr_t)end);
    return code ? code
                : ws_api_error(api, ws_session_event_elapsed((uintptr_t)start, (uintptr_t)end, ms));
}
WS_RT_ALIAS(cudaEventElapsedTime_v2, cudaEventElapsedTime)
WS_DRV_ALIAS(cuEventElapsedTime, cuEventElapsedTime_v2)

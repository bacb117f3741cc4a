// SPDX-License-Identifier: Apache-2.0
/* Work, issued: one case for each kind. */
#include "frontend/work.h"

_Atomic unsigned ws_work_watch;

static ws_err issue_copy(uint64_t stream, const struct ws_work *w, bool async)
{
    const struct ws_copy_box *b = &w->copy.box;
    if (b->height == 1 && b->depth == 1)
        return ws_session_copy(stream, (void *)(uintptr_t)w->copy.dst.address,
                               (const void *)(uintptr_t)w->copy.src.address, b->width_bytes,
                               w->copy.dir, async);
    return ws_copy_box(stream, &w->copy.dst, &w->copy.src, b, w->copy.dir, async);
}

ws_err ws_work_issue(uint64_t stream, const struct ws_work *w, bool async)
{
    struct ws_launch l;
    switch (w->kind) {
    case WS_WORK_LAUNCH:
        l = w->launch.l;
        l.stream = stream;
        return ws_session_launch(&l);
    case WS_WORK_COPY:
        return issue_copy(stream, w, async);
    case WS_WORK_FILL:
        return ws_fill_box(stream, &w->fill.dst, w->fill.value, w->fill.value_bytes, &w->fill.box,
                           async);
    case WS_WORK_RECORD:
        return ws_session_event_record(w->event.event, stream);
    case WS_WORK_WAIT:
        return ws_session_stream_wait(stream, w->event.event);
    default:
        return WS__ERROR__NOT_SUPPORTED;
    }
}

ws_err ws_work_put(uint64_t stream, const struct ws_work *w, bool async)
{
    return ws_work_issue(stream, w, async);
}

int ws_work_unsafe_slow(void)
{
    return CUDA_OK;
}
int ws_work_wait_stream_slow(uint64_t stream)
{
    return CUDA_OK;
}
int ws_work_wait_event_slow(uint64_t event)
{
    return CUDA_OK;
}
bool ws_work_capturing_slow(uint64_t stream)
{
    return false;
}

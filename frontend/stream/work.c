// SPDX-License-Identifier: Apache-2.0
/* Issues a piece of work, by its kind. */
#include "frontend/stream/work.h"

#include "frontend/stream/host.h"

static ws_err issue_copy(uint64_t stream, const struct ws_stream_work *w, bool async)
{
    const struct ws_copy_box *b = &w->copy.box;
    if (b->height == 1 && b->depth == 1)
        return ws_session_copy(stream, (void *)(uintptr_t)w->copy.dst.address,
                               (const void *)(uintptr_t)w->copy.src.address, b->width_bytes,
                               w->copy.dir, async);
    return ws_copy_box(stream, &w->copy.dst, &w->copy.src, b, w->copy.dir, async);
}

static ws_err issue_values(uint64_t stream, const struct ws_stream_work *w)
{
    ws_err r = WS__ERROR__OK;
    for (size_t i = 0; !r && i < w->values.n; i++) {
        const struct ws_value_op *o = &w->values.ops[i];
        if (o->bytes)
            r = ws_session_value(stream, o->address, o->value, o->bytes, !o->is_wait, o->flags);
    }
    return r;
}

ws_err ws_work_issue(uint64_t stream, const struct ws_stream_work *w, bool async)
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
    case WS_WORK_HOST:
    case WS_WORK_CALLBACK:
        return ws_host_put(stream, w);
    case WS_WORK_VALUES:
        return issue_values(stream, w);
    case WS_WORK_EMPTY:
        return WS__ERROR__OK;
    default: /* what only graphs and pools do */
        return WS__ERROR__NOT_SUPPORTED;
    }
}

ws_err ws_work_put(uint64_t stream, const struct ws_stream_work *w, bool async)
{
    bool taken = false;
    ws_err r = ws_work_capture(stream, w, async, &taken);
    return r || taken ? r : ws_work_issue(stream, w, async);
}

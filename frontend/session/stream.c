// SPDX-License-Identifier: Apache-2.0
/* Streams and events. The client chooses the ids: creating an event is a local matter, and creating
 * a stream only posts a command. An event that was never recorded is unknown to the daemon, and
 * waiting for it returns at once, as in CUDA. */
#include <stdatomic.h>
#include <pthread.h>
#include <string.h>

#include "frontend/session/idtab.h"
#include "frontend/session/private.h"

struct session_stream {
    struct ws_id id;
    int device, priority;
    bool non_blocking;
    uint32_t epoch;
};
struct session_event {
    struct ws_id id;
    int device;
    bool timing;
    _Atomic bool shared; /* with other clients, who may record it too: only the daemon knows */
    uint32_t epoch;
    _Atomic uint32_t n_records;     /* 0: never recorded */
    _Atomic uint32_t known_records; /* the n_records that known_ns belongs to */
    _Atomic uint64_t known_ns;
};
static struct ws_idtab streams = WS_IDTAB(struct session_stream);
static struct ws_idtab events = WS_IDTAB(struct session_event);

/* ---- streams ---- */

static struct session_stream *find_stream(uint64_t stream)
{
    struct session_stream *s = ws_idtab_find(&streams, stream);
    return s && s->epoch == ws_session_epoch(s->device) ? s : NULL;
}

static bool is_legacy(uint64_t stream)
{
    return stream >= WS_STREAM_DEFAULT_0 &&
           stream < WS_STREAM_DEFAULT_0 + (uint64_t)ws_session_n_devices();
}

int ws_stream_device(uint64_t stream)
{
    if (WS_LIKELY(is_legacy(stream)))
        return (int)(stream - WS_STREAM_DEFAULT_0);
    struct session_stream *s = find_stream(stream);
    return s ? s->device : -1;
}

static _Atomic bool any_non_blocking;

bool ws_session_any_non_blocking(void)
{
    return atomic_load_explicit(&any_non_blocking, memory_order_relaxed);
}

static struct session_event *find_event(uint64_t event)
{
    struct session_event *e = ws_idtab_find(&events, event);
    return e && e->epoch == ws_session_epoch(e->device) ? e : NULL;
}

/* By device: an event behind the last copy in the legacy stream that returned early; 0: none. */
static _Atomic uint64_t last_copy[WS_MAX_DEVICES];

/* The event for the copies of @device, made anew if it went with a reset. */
static ws_err copies_event(int device, uint64_t *ret)
{
    uint64_t old = last_copy[device];
    if (find_event(old)) {
        *ret = old;
        return WS__ERROR__OK;
    }
    ws_err r = ws_session_event_create(device, false, ret);
    if (r || atomic_compare_exchange_strong(&last_copy[device], &old, *ret))
        return r;
    r = ws_session_event_destroy(*ret); /* another thread was faster */
    *ret = old;
    return r;
}

ws_err ws_session_note_copy(uint64_t stream)
{
    uint64_t event;
    ws_err r = copies_event(ws_stream_device(stream), &event);
    return r ? r : ws_session_event_record(event, stream);
}

ws_err ws_session_stream_create(int device, bool non_blocking, int priority, uint64_t *ret)
{
    struct ws_channel *c;
    Ws__StreamCreate m = WS__STREAM_CREATE__INIT;
    ws_err r = ws_session_enter(&c);
    if (!r && (device < 0 || device >= ws_session_n_devices()))
        r = WS__ERROR__INVALID_DEVICE;
    if (r)
        return r;
    struct session_stream *s =
        (struct session_stream *)ws_idtab_take(&streams, ws_session_limits()->max_streams);
    if (!s)
        return WS__ERROR__OUT_OF_MEMORY;
    s->device = device;
    s->priority = priority;
    s->non_blocking = non_blocking;
    if (non_blocking)
        atomic_store_explicit(&any_non_blocking, true, memory_order_relaxed);
    s->epoch = ws_session_epoch(device);
    m.stream = ws_idtab_publish(&s->id);
    m.device = device;
    m.non_blocking = non_blocking;
    m.priority = priority;
    r = ws_channel_post(c, WS_COMMAND(STREAM_CREATE, stream_create, &m));
    if (!r && non_blocking && find_event(last_copy[device]))
        r = ws_session_stream_wait(m.stream, last_copy[device]);
    if (r)
        ws_idtab_give_back(&streams, m.stream);
    else
        *ret = m.stream;
    return r;
}

ws_err ws_session_stream_destroy(uint64_t stream)
{
    struct ws_channel *c;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    bool known = find_stream(stream) != NULL;
    if (!ws_idtab_give_back(&streams, stream))
        return WS__ERROR__INVALID_HANDLE;
    if (!known) /* gone with a reset */
        return WS__ERROR__OK;
    return ws_channel_post(c, WS_COMMAND(STREAM_DESTROY, stream_destroy, stream));
}

ws_err ws_session_stream_info(uint64_t stream, int *ret_device, bool *ret_non_blocking,
                              int *ret_priority)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter_anyway(&c);
    if (r)
        return r;
    bool legacy = is_legacy(stream);
    struct session_stream *s = legacy ? NULL : find_stream(stream);
    if (!legacy && !s)
        return WS__ERROR__INVALID_HANDLE;
    if (ret_device)
        *ret_device = legacy ? (int)(stream - WS_STREAM_DEFAULT_0) : s->device;
    if (ret_non_blocking)
        *ret_non_blocking = !legacy && s->non_blocking;
    if (ret_priority)
        *ret_priority = legacy ? 0 : s->priority;
    return WS__ERROR__OK;
}

ws_err ws_session_stream_sync(uint64_t stream)
{
    struct ws_channel *c;
    Ws__Sync sync = WS__SYNC__INIT;
    ws_err r = ws_session_enter(&c);
    if (!r && ws_stream_device(stream) < 0)
        return WS__ERROR__INVALID_HANDLE;
    sync.what_case = WS__SYNC__WHAT_STREAM;
    sync.stream = stream;
    if (!r)
        r = ws_channel_call(c, WS_COMMAND(SYNC, sync, &sync), NULL);
    ws_session_output();
    ws_session_note_synced(r);
    return r;
}

ws_err ws_session_stream_query(uint64_t stream)
{
    struct ws_channel *c;
    Ws__Query q = WS__QUERY__INIT;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (ws_stream_device(stream) < 0)
        return WS__ERROR__INVALID_HANDLE;
    q.what_case = WS__QUERY__WHAT_STREAM;
    q.stream = stream;
    return ws_channel_call(c, WS_COMMAND(QUERY, query, &q), NULL);
}

/* The per-thread default streams of this thread, by device. */
static __thread struct {
    uint64_t stream[WS_MAX_DEVICES];
    bool at_exit;
} mine;
static pthread_key_t mine_key;
static pthread_once_t mine_once = PTHREAD_ONCE_INIT;

static void mine_end(void *unused)
{
    for (int d = 0; d < WS_MAX_DEVICES; d++)
        if (mine.stream[d])
            ws_session_stream_destroy(mine.stream[d]);
    memset(&mine, 0, sizeof(mine));
}
static void mine_init(void)
{
    pthread_key_create(&mine_key, mine_end);
}

uint64_t ws_stream_per_thread(int device)
{
    if (device < 0 || device >= WS_MAX_DEVICES)
        return ws_stream_legacy(0);
    if (!mine.stream[device] || (!find_stream(mine.stream[device]) && !ws_session_ended())) {
        uint64_t s;
        if (ws_session_stream_create(device, false, 0, &s))
            return ws_stream_legacy(device); /* the call that uses it meets the same error */
        mine.stream[device] = s;
        if (!mine.at_exit) {
            pthread_once(&mine_once, mine_init);
            mine.at_exit = pthread_setspecific(mine_key, &mine) == 0;
        }
    }
    return mine.stream[device];
}

/* ---- events ---- */

ws_err ws_session_event_create(int device, bool timing, uint64_t *ret)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter(&c);
    if (!r && (device < 0 || device >= ws_session_n_devices()))
        r = WS__ERROR__INVALID_DEVICE;
    if (r)
        return r;
    struct session_event *e =
        (struct session_event *)ws_idtab_take(&events, ws_session_limits()->max_events);
    if (!e)
        return WS__ERROR__OUT_OF_MEMORY;
    e->device = device;
    e->timing = timing;
    e->epoch = ws_session_epoch(device);
    *ret = ws_idtab_publish(&e->id);
    return WS__ERROR__OK;
}

ws_err ws_session_event_share(uint64_t event, uint8_t *ret_handle)
{
    struct ws_channel *c;
    Ws__Share m = WS__SHARE__INIT;
    Ws__Reply *reply = NULL;
    ws_err r = ws_session_enter(&c);
    struct session_event *e = r ? NULL : find_event(event);
    if (r || !e)
        return r ? r : WS__ERROR__INVALID_HANDLE;
    m.what = WS__SHARE__WHAT__EVENT_EXPORT;
    m.event = event;
    e->shared = true;
    r = ws_channel_call(c, WS_COMMAND(SHARE, share, &m), &reply);
    if (!r && reply->data.len != WS_SHARE_BYTES)
        r = WS__ERROR__INTERNAL;
    if (!r)
        memcpy(ret_handle, reply->data.data, WS_SHARE_BYTES);
    ws_channel_reply_free(reply);
    return r;
}

ws_err ws_session_event_open(const uint8_t *handle, int device, uint64_t *ret_event)
{
    struct ws_channel *c;
    Ws__Share m = WS__SHARE__INIT;
    ws_err r = ws_session_enter(&c);
    if (!r)
        r = ws_session_event_create(device, false, &m.event);
    if (r)
        return r;
    m.what = WS__SHARE__WHAT__EVENT_IMPORT;
    m.handle = (ProtobufCBinaryData){WS_SHARE_BYTES, (uint8_t *)handle};
    r = ws_channel_call(c, WS_COMMAND(SHARE, share, &m), NULL);
    if (r) {
        ws_idtab_give_back(&events, m.event);
        return r;
    }
    find_event(m.event)->shared = true;
    *ret_event = m.event;
    return r;
}

ws_err ws_session_event_destroy(uint64_t event)
{
    struct ws_channel *c;
    if (ws_session_ended())
        return WS__ERROR__OK;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    struct session_event *e = find_event(event);
    bool known = e && (e->n_records || e->shared);
    if (!ws_idtab_give_back(&events, event))
        return WS__ERROR__INVALID_HANDLE;
    return known ? ws_channel_post(c, WS_COMMAND(EVENT_DESTROY, event_destroy, event))
                 : WS__ERROR__OK;
}

int ws_session_event_device(uint64_t event)
{
    struct session_event *e = find_event(event);
    return e ? e->device : -1;
}

ws_err ws_session_event_record(uint64_t event, uint64_t stream)
{
    struct ws_channel *c;
    Ws__EventRecord m = WS__EVENT_RECORD__INIT;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    struct session_event *e = find_event(event);
    if (!e || ws_stream_device(stream) != e->device)
        return WS__ERROR__INVALID_HANDLE;
    m.event = event;
    m.stream = stream;
    m.timing = e->timing;
    r = ws_channel_post(c, WS_COMMAND(EVENT_RECORD, event_record, &m));
    if (!r)
        e->n_records++;
    return r;
}

ws_err ws_session_stream_wait(uint64_t stream, uint64_t event)
{
    struct ws_channel *c;
    Ws__StreamWait m = WS__STREAM_WAIT__INIT;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    struct session_event *e = find_event(event);
    if (!e || ws_stream_device(stream) < 0)
        return WS__ERROR__INVALID_HANDLE;
    if (!e->n_records && !e->shared)
        return WS__ERROR__OK;
    m.stream = stream;
    m.event = event;
    return ws_channel_post(c, WS_COMMAND(STREAM_WAIT, stream_wait, &m));
}

ws_err ws_session_event_sync(uint64_t event)
{
    struct ws_channel *c;
    Ws__Sync sync = WS__SYNC__INIT;
    ws_err r = ws_session_enter(&c);
    struct session_event *e = r ? NULL : find_event(event);
    if (!r && !e)
        return WS__ERROR__INVALID_HANDLE;
    sync.what_case = WS__SYNC__WHAT_EVENT;
    sync.event = event;
    if (!r && (e->n_records || e->shared))
        r = ws_channel_call(c, WS_COMMAND(SYNC, sync, &sync), NULL);
    ws_session_output();
    ws_session_note_synced(r);
    return r;
}

/* Asks the daemon unless the answer is known. @ret_ns may be NULL. */
static ws_err query(struct ws_channel *c, struct session_event *e, uint64_t event, uint64_t *ret_ns)
{
    Ws__Query q = WS__QUERY__INIT;
    Ws__Reply *reply = NULL;
    uint32_t n = e->n_records;
    if (e->known_records == n && !e->shared) {
        if (ret_ns)
            *ret_ns = e->known_ns;
        return WS__ERROR__OK;
    }
    q.what_case = WS__QUERY__WHAT_EVENT;
    q.event = event;
    ws_err r = ws_channel_call(c, WS_COMMAND(QUERY, query, &q), &reply);
    if (!r) {
        e->known_ns = reply->value;
        e->known_records = n;
        if (ret_ns)
            *ret_ns = reply->value;
    }
    ws_channel_reply_free(reply);
    return r;
}

ws_err ws_session_event_query(uint64_t event)
{
    struct ws_channel *c;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    struct session_event *e = find_event(event);
    if (!e)
        return WS__ERROR__INVALID_HANDLE;
    return e->n_records || e->shared ? query(c, e, event, NULL) : WS__ERROR__OK;
}

ws_err ws_session_event_elapsed(uint64_t start, uint64_t end, float *ret_ms)
{
    struct ws_channel *c;
    uint64_t a_ns, b_ns;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    struct session_event *a = find_event(start), *b = find_event(end);
    if (!a || !b || a->device != b->device || !a->timing || !b->timing || !a->n_records ||
        !b->n_records)
        return WS__ERROR__INVALID_HANDLE;
    r = query(c, a, start, &a_ns);
    if (!r)
        r = query(c, b, end, &b_ns);
    if (!r)
        *ret_ms = (float)((double)(int64_t)(b_ns - a_ns) / 1e6);
    return r;
}

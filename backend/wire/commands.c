// SPDX-License-Identifier: Apache-2.0
/* Commands of a client: each either is done here, or is queued as a command of a stream
 * (client/stream.h) or as a join (client/join.h), which retires it later. Nothing in a message
 * is believed before it is checked; what can't be read ends its client and nobody else. After
 * each command, what it has made able to start is started. */
#include "backend/wire/commands.h"

#include "backend/backend.h"
#include "backend/client/event.h"
#include "backend/client/memory.h"
#include "backend/client/module.h"
#include "backend/client/object.h"
#include "backend/client/segment.h"
#include "backend/client/stream.h"
#include "backend/client/vmm.h"
#include "backend/scheduling/period.h"
#include "backend/scheduling/recognise.h"
#include "backend/client/host_function.h"
#include "backend/client/join.h"
#include "backend/client/reply.h"
#include "backend/client/reset.h"
#include "backend/client/submit.h"
#include "backend/client/upload.h"
#include "backend/client/value.h"
#include "backend/scheduling/gated.h"
#include "backend/scheduling/run.h"
#include "backend/wire/decode.h"
#include "backend/wire/out.h"
#include "base/clock.h"

enum { ARENA_KEEP_BYTES = 256 << 10 };
/* The clock is read when the commands since together have CLOCK_WEIGHT: a launch takes less time
 * than another one, and those that may concern many things of the client take the most. */
enum { LAUNCH_WEIGHT = 1, OTHER_WEIGHT = 4, CLOCK_WEIGHT = 16 };

static const char *const error_texts[] = {
    /* for refusals that no other text explains */
    [WS__ERROR__INVALID_VALUE] = "an argument is out of range",
    [WS__ERROR__INVALID_HANDLE] =
        "no such stream, event, module, function, segment or address of this client",
    [WS__ERROR__OUT_OF_MEMORY] = "out of memory",
    [WS__ERROR__INVALID_IMAGE] = "image is damaged, or its parts came out of order",
    [WS__ERROR__INVALID_DEVICE] = "no such device",
};

static const char *error_text(Ws__Error e)
{
    return (size_t)e < WS_ARRAY_SIZE(error_texts) && error_texts[e] ? error_texts[e] : "";
}

struct call { /* one command being handled */
    struct ws_client *c;
    const struct ws_message *msg;
    uint64_t seq, until_ns;
};

static void done(const struct call *k, Ws__Error e) /* command without a reply */
{
    if (WS_UNLIKELY(e))
        ws_client_async_error(k->c, NULL, e, "%s", error_text(e));
    ws_client_retire(k->c, 1);
}

static void reply(const struct call *k, Ws__Error e)
{
    ws_client_reply_error(k->c, k->seq, e, e ? error_text(e) : "");
    ws_client_retire(k->c, 1);
}

static void reply_values(const struct call *k, uint64_t value, uint64_t value2)
{
    Ws__Reply r = WS__REPLY__INIT;
    r.seq = k->seq;
    r.value = value;
    r.value2 = value2;
    ws_client_reply(k->c, &r);
    ws_client_retire(k->c, 1);
}

static struct ws_context *context(const struct call *k, uint32_t device)
{
    return device < k->c->n_contexts ? &k->c->contexts[device] : NULL;
}

static void join(const struct call *k, enum ws_join_kind kind, struct ws_context *x)
{
    struct ws_join *j = ws_join_new(k->c, kind, k->seq, true);
    if (!j)
        return;
    j->context = x;
    ws_join_start(j, x);
}

static void do_reset(const struct call *k, uint32_t device)
{
    struct ws_context *x = context(k, device);
    struct ws_join *j = x ? ws_join_new(k->c, WS_JOIN_RESET, k->seq, true) : NULL;
    if (!x)
        reply(k, WS__ERROR__INVALID_DEVICE);
    if (!j)
        return;
    j->context = x;
    ws_context_reset_begin(j);
}

static void do_sync_stream(const struct call *k, uint64_t id)
{
    struct ws_stream *s = ws_stream_find(k->c, id);
    if (!s) {
        reply(k, WS__ERROR__INVALID_HANDLE);
        return;
    }
    struct ws_command *j = ws_command_new(k->c, WS_COMMAND_SYNC);
    if (!j)
        return;
    j->seq = k->seq;
    ws_stream_push(s, j);
}

/* The client knows now that @e was done at @end_ns. */
static void note_seen(const struct call *k, const struct ws_event *e, uint64_t end_ns)
{
    struct ws_context *x = e ? e->state->context : NULL;
    if (x && x->client == k->c)
        x->seen_ns = WS_MAX(x->seen_ns, end_ns);
}

static void do_sync_event(const struct call *k, uint64_t id)
{
    struct ws_event *e = ws_event_find(k->c, id);
    uint64_t end_ns = 0;
    if (!e || ws_event_done(e, &end_ns)) {
        note_seen(k, e, end_ns);
        Ws__Error err = ws_client_take_error(k->c);
        ws_client_reply_error(k->c, k->seq, err, k->c->errors.text);
        ws_client_retire(k->c, 1);
        return;
    }
    ws_record_sync(e->state->latest, k->c, k->seq);
}

static void do_sync(const struct call *k, const Ws__Sync *m)
{
    struct ws_context *x;
    switch (m->what_case) {
    case WS__SYNC__WHAT_STREAM:
        do_sync_stream(k, m->stream);
        return;
    case WS__SYNC__WHAT_EVENT:
        do_sync_event(k, m->event);
        return;
    case WS__SYNC__WHAT_DEVICE:
        x = context(k, m->device);
        if (x)
            join(k, WS_JOIN_SYNC, x);
        else
            reply(k, WS__ERROR__INVALID_DEVICE);
        return;
    default:
        reply(k, WS__ERROR__INVALID_VALUE);
    }
}

static void do_query(const struct call *k, const Ws__Query *m)
{
    uint64_t end_ns = 0;
    if (m->what_case == WS__QUERY__WHAT_STREAM) {
        struct ws_stream *s = ws_stream_find(k->c, m->stream);
        reply(k, !s                        ? WS__ERROR__INVALID_HANDLE
                 : ws_stream_query_busy(s) ? WS__ERROR__NOT_READY
                                           : WS__ERROR__OK);
    } else if (m->what_case == WS__QUERY__WHAT_EVENT) {
        struct ws_event *e = ws_event_find(k->c, m->event);
        if (e && !ws_event_done(e, &end_ns)) {
            reply(k, WS__ERROR__NOT_READY);
            return;
        }
        note_seen(k, e, end_ns);
        reply_values(k, end_ns, e && e->state->latest);
    } else {
        reply(k, WS__ERROR__INVALID_VALUE);
    }
}

static void do_mem_alloc(const struct call *k, const Ws__MemAlloc *m)
{
    struct ws_context *x = context(k, m->device);
    struct ws_allocation *a;
    Ws__Error e = x ? ws_memory_alloc(x, m->bytes, m->own_access ? WS_MEMORY_OWN_ACCESS : 0, &a)
                    : WS__ERROR__INVALID_DEVICE;
    if (e)
        reply(k, e);
    else
        reply_values(k, a->va, 0);
}

static void do_mem_free(const struct call *k, uint64_t va, bool replies)
{
    struct ws_allocation *a = ws_memory_find(k->c, va);
    if (!a || a->internal || a->freeing) {
        (replies ? reply : done)(k, WS__ERROR__INVALID_HANDLE);
        return;
    }
    struct ws_join *j = ws_join_new(k->c, WS_JOIN_FREE, k->seq, replies);
    if (!j)
        return;
    ws_join_take_allocation(j, a);
    ws_join_start(j, NULL); /* other devices' kernels may use it too */
}

/* ---- commands about ranges of mappings ---- */

/* One that concerns a range of mappings: first all of it is checked. */
struct range_command {
    struct ws_chore chore;
    struct ws_vmm_range range;
    uint64_t seq;
    bool checked;
    uint32_t bit; /* of MemAccess; 0: MemUnmap */
    bool read, write;
};

static void unmap_later(struct ws_client *c, const struct range_command *w)
{
    struct ws_join *j = ws_join_new(c, WS_JOIN_UNMAP, w->seq, true);
    if (!j)
        return;
    j->address = w->range.va;
    j->bytes = w->range.bytes;
    ws_join_start(j, NULL);
}

static bool range_go_on(struct ws_client *c, struct ws_chore *h, uint64_t until_ns)
{
    struct range_command *w = WS_CONTAINER_OF(h, struct range_command, chore);
    struct call k = {.c = c, .seq = w->seq};
    Ws__Error e = WS__ERROR__OK;
    if (!w->checked) {
        if (!ws_vmm_check(c, &w->range, until_ns, &e))
            return false;
        w->checked = true;
        w->range.at = w->range.va;
    }
    if (!e && !(w->bit ? ws_vmm_access(c, &w->range, w->bit, w->read, w->write, until_ns, &e)
                       : ws_vmm_unmap_begin(c, &w->range, until_ns)))
        return false;
    if (e || w->bit)
        reply(&k, e);
    else
        unmap_later(c, w);
    return true;
}

static void range_begin(const struct call *k, const struct range_command *model)
{
    struct range_command *w = ws_chore_new(k->c, sizeof(*w), range_go_on);
    if (!w)
        return;
    w->range = model->range;
    w->range.at = w->range.va;
    w->seq = k->seq;
    w->bit = model->bit;
    w->read = model->read;
    w->write = model->write;
    ws_chore_begin(k->c, &w->chore);
}

static void do_mem_unmap(const struct call *k, const Ws__MemUnmap *m)
{
    range_begin(k, &(struct range_command){.range = {.va = m->address, .bytes = m->bytes}});
}

static void do_mem_access(const struct call *k, const Ws__MemAccess *m)
{
    struct ws_context *x = context(k, m->device);
    struct ws_allocation *a = ws_memory_find(k->c, m->address);
    if (!x)
        reply(k, WS__ERROR__INVALID_DEVICE);
    else if (m->write && !m->read)
        reply(k, WS__ERROR__INVALID_VALUE);
    else if (a)
        reply(k, ws_memory_access(a, m));
    else
        range_begin(k, &(struct range_command){.range = {.va = m->address, .bytes = m->bytes},
                                               .bit = UINT32_C(1) << x->gpu->device->index,
                                               .read = m->read,
                                               .write = m->write});
}

/* ---- peers ---- */

struct peer_command {
    struct ws_chore chore;
    uint32_t peer;
    uint64_t seq;
    bool begun;
};

static bool peer_go_on(struct ws_client *c, struct ws_chore *h, uint64_t until_ns)
{
    struct peer_command *w = WS_CONTAINER_OF(h, struct peer_command, chore);
    if (!w->begun)
        ws_memory_walk_begin(c);
    w->begun = true;
    if (!ws_memory_walk_access(c, &c->contexts[w->peer], until_ns))
        return false;
    reply(&(struct call){.c = c, .seq = w->seq}, WS__ERROR__OK);
    return true;
}

static void do_peer_access(const struct call *k, const Ws__PeerAccess *m)
{
    Ws__Error e = ws_peer_access(k->c, m);
    if (e) {
        reply(k, e);
        return;
    }
    struct peer_command *w = ws_chore_new(k->c, sizeof(*w), peer_go_on);
    if (!w)
        return;
    w->peer = m->peer;
    w->seq = k->seq;
    ws_chore_begin(k->c, &w->chore);
}

static void do_va_reserve(const struct call *k, const Ws__VaReserve *m)
{
    uint64_t va;
    Ws__Error e = ws_va_reserve(k->c, m, &va);
    if (e)
        reply(k, e);
    else
        reply_values(k, va,
                     m->wanted && va != m->wanted && ws_va_goes(k->c->server, m->wanted, m->bytes));
}

static void do_share(const struct call *k, const Ws__Share *m)
{
    Ws__Reply r = WS__REPLY__INIT;
    r.seq = k->seq;
    r.error = ws_share(k->c, m, &r);
    if (r.error)
        r.text = (char *)error_text(r.error);
    ws_client_reply(k->c, &r);
    ws_client_retire(k->c, 1);
}

/* Commands about physical memory and addresses. */
static bool memory_command(const struct call *k, const Ws__Command *m)
{
    switch (m->c_case) {
    case WS__COMMAND__C_MEM_CREATE:
        reply(k, ws_handle_create(k->c, m->mem_create));
        return true;
    case WS__COMMAND__C_VA_RESERVE:
        do_va_reserve(k, m->va_reserve);
        return true;
    case WS__COMMAND__C_VA_FREE:
        reply(k, ws_va_unreserve(k->c, m->va_free));
        return true;
    case WS__COMMAND__C_MEM_MAP:
        reply(k, ws_vmm_map(k->c, m->mem_map));
        return true;
    case WS__COMMAND__C_MEM_UNMAP:
        do_mem_unmap(k, m->mem_unmap);
        return true;
    case WS__COMMAND__C_MEM_ACCESS:
        do_mem_access(k, m->mem_access);
        return true;
    case WS__COMMAND__C_SHARE:
        do_share(k, m->share);
        return true;
    case WS__COMMAND__C_PEER_ACCESS:
        do_peer_access(k, m->peer_access);
        return true;
    default:
        return false;
    }
}

static void do_mem_info(const struct call *k, uint32_t device)
{
    struct ws_context *x = context(k, device);
    uint64_t n_free, total;
    if (!x) {
        reply(k, WS__ERROR__INVALID_DEVICE);
        return;
    }
    ws_memory_info(x, &n_free, &total);
    reply_values(k, n_free, total);
}

static void do_host_map(const struct call *k, const Ws__HostMap *m)
{
    if (!k->c->segments.n_unmapping || !m->address) { /* else it may be that of an older one */
        Ws__Error e = ws_segment_host_map(k->c, k->seq, m->segment, m->address);
        if (e)
            reply(k, e);
        return;
    }
    struct ws_join *j = ws_join_new(k->c, WS_JOIN_HOST_MAP, k->seq, true);
    if (!j)
        return;
    j->segment_id = m->segment;
    j->address = m->address;
    ws_join_start(j, NULL);
}

static void do_host_unmap(const struct call *k, uint64_t id)
{
    struct ws_segment *g = id <= UINT32_MAX ? ws_segment_find(k->c, (uint32_t)id) : NULL;
    if (!g || g->unmapping || g->mapping) {
        done(k, WS__ERROR__INVALID_HANDLE);
        return;
    }
    if (!g->mapped_at) {
        ws_segment_release(g, k->c);
        done(k, WS__ERROR__OK);
        return;
    }
    struct ws_join *j = ws_join_new(k->c, WS_JOIN_HOST_UNMAP, k->seq, false);
    if (!j)
        return;
    g->unmapping = true;
    k->c->segments.n_unmapping++;
    j->segment = g;
    ws_join_start(j, NULL);
}

static void do_module_unload(const struct call *k, uint64_t id)
{
    struct ws_module *m = ws_module_find(k->c, id);
    if (!m) {
        done(k, WS__ERROR__INVALID_HANDLE);
        return;
    }
    struct ws_join *j = ws_join_new(k->c, WS_JOIN_UNLOAD, k->seq, false);
    if (!j)
        return;
    ws_join_take_module(j, m);
    ws_join_start(j, m->context);
}

static void do_occupancy(const struct call *k, const Ws__Occupancy *m)
{
    uint32_t blocks = 0;
    Ws__Error e = ws_module_occupancy(k->c, m, &blocks);
    if (e)
        reply(k, e);
    else
        reply_values(k, blocks, 0);
}

static void do_not_supported(const struct call *k, const Ws__NotSupported *m)
{
    ws_ledger_add(&k->c->not_supported, WS_LEDGER_CLIENT_MAX, m->name, m->count);
    ws_ledger_add(&k->c->server->stats.not_supported, WS_LEDGER_SERVER_MAX, m->name, m->count);
    done(k, WS__ERROR__OK);
}

static void do_output(const struct call *k, uint32_t max_bytes)
{
    enum { REPLY_BYTES = 128 << 10 };
    size_t max = max_bytes ? WS_MIN(max_bytes, (uint32_t)REPLY_BYTES) : REPLY_BYTES;
    uint64_t left, lost;
    uint8_t *data = ws_arena_alloc(&k->c->server->arena, max);
    if (!data) {
        reply(k, WS__ERROR__OUT_OF_MEMORY);
        return;
    }
    Ws__Reply r = WS__REPLY__INIT;
    r.seq = k->seq;
    r.data = (ProtobufCBinaryData){ws_output_take(&k->c->output, data, max, &left, &lost), data};
    r.value = left;
    r.value2 = lost;
    ws_client_reply(k->c, &r);
    ws_client_retire(k->c, 1);
}

static void do_limit(const struct call *k, const Ws__Limit *m)
{
    if (!context(k, m->device)) {
        reply(k, WS__ERROR__INVALID_DEVICE);
        return;
    }
    switch (m->what) {
    case WS__LIMIT__WHAT__PRINTF_FIFO_BYTES:
        reply(k, ws_memory_set_printed(k->c, m->value));
        return;
    case WS__LIMIT__WHAT__MALLOC_HEAP_BYTES:
        reply(k, ws_memory_set_heap(k->c, m->value));
        return;
    case WS__LIMIT__WHAT__STACK_BYTES:
        ws_space_set_stack_bytes(k->c->memory.space, m->value);
        reply(k, WS__ERROR__OK);
        return;
    default:
        reply(k, WS__ERROR__INVALID_VALUE);
    }
}

static void do_launch(const struct call *k, const Ws__Launch *m)
{
    bool queued = false;
    Ws__Error e = WS_UNLIKELY(k->c->errors.sticky) ? WS__ERROR__OK
                                                   : ws_launch_submit(k->c, m, k->seq, &queued);
    if (WS_UNLIKELY(!queued))
        done(k, e);
}

static void do_copy(const struct call *k, const Ws__Copy *m, bool replies)
{
    bool queued = false;
    Ws__Error e = k->c->errors.sticky ? k->c->errors.sticky
                                      : ws_copy_submit(k->c, m, k->seq, replies, k->msg, &queued);
    if (queued)
        return;
    if (e)
        ws_copy_refuse(k->c, m);
    if (replies)
        reply(k, e);
    else
        done(k, k->c->errors.sticky ? WS__ERROR__OK : e);
}

/* Commands without a reply that only a living context runs. Return: false if it is none of
 * these. */
static bool work_command(const struct call *k, const Ws__Command *m)
{
    bool queued = false, lost = k->c->errors.sticky != WS__ERROR__OK;
    Ws__Error e = WS__ERROR__OK;
    switch (m->c_case) {
    case WS__COMMAND__C_LAUNCH:
        do_launch(k, m->launch);
        return true;
    case WS__COMMAND__C_COPY:
        do_copy(k, m->copy, false);
        return true;
    case WS__COMMAND__C_FILL:
        e = lost ? e : ws_fill_submit(k->c, m->fill, k->seq, &queued);
        break;
    case WS__COMMAND__C_EVENT_RECORD:
        e = lost ? e : ws_event_record(k->c, m->event_record, k->seq, &queued);
        break;
    case WS__COMMAND__C_STREAM_WAIT:
        e = lost ? e : ws_event_wait(k->c, m->stream_wait, k->seq, &queued);
        break;
    case WS__COMMAND__C_HOST_FUNCTION: /* in a lost context too: the client counts on being told */
        e = ws_host_function_submit(k->c, m->host_function, k->seq, &queued);
        break;
    case WS__COMMAND__C_STREAM_VALUE:
        e = lost ? e : ws_value_submit(k->c, m->stream_value, k->seq, &queued);
        break;
    default:
        return false;
    }
    if (!queued)
        done(k, e);
    return true;
}

static bool object_command(const struct call *k, const Ws__Command *m)
{
    switch (m->c_case) {
    case WS__COMMAND__C_STREAM_CREATE:
        done(k, ws_stream_create(k->c, m->stream_create));
        return true;
    case WS__COMMAND__C_STREAM_DESTROY:
        done(k, ws_stream_destroy(k->c, m->stream_destroy));
        return true;
    case WS__COMMAND__C_EVENT_DESTROY:
        ws_event_destroy(k->c, m->event_destroy);
        done(k, WS__ERROR__OK);
        return true;
    case WS__COMMAND__C_MODULE_IMAGE: /* in a form that ws_decode_image() does not know */
        done(k, WS__ERROR__INVALID_IMAGE);
        return true;
    case WS__COMMAND__C_MODULE_UNLOAD:
        do_module_unload(k, m->module_unload);
        return true;
    case WS__COMMAND__C_HOST_FUNCTION_DONE:
        done(k, ws_host_function_done(k->c, m->host_function_done));
        return true;
    case WS__COMMAND__C_HOST_UNMAP:
        do_host_unmap(k, m->host_unmap);
        return true;
    case WS__COMMAND__C_MEM_RELEASE:
        done(k, ws_handle_release(k->c, m->mem_release));
        return true;
    case WS__COMMAND__C_MEM_FREE_ASYNC:
        do_mem_free(k, m->mem_free_async, false);
        return true;
    case WS__COMMAND__C_NOT_SUPPORTED:
        do_not_supported(k, m->not_supported);
        return true;
    default:
        return false;
    }
}

static void do_now(const struct call *k, uint32_t device)
{
    struct ws_context *x = context(k, device);
    if (x)
        reply_values(k, ws_device_now_ns(x->gpu->device), 0);
    else
        reply(k, WS__ERROR__INVALID_DEVICE);
}

/* What programs say of themselves (wattshare.h); in a lost context too. */
static bool own_command(const struct call *k, const Ws__Command *m)
{
    char text[256] = "";
    bool later = false;
    Ws__Error e;
    switch (m->c_case) {
    case WS__COMMAND__C_JOB_BEGIN:
        e = ws_own_begin(k->c, m->job_begin->deadline_ns, text, sizeof(text));
        break;
    case WS__COMMAND__C_JOB_END:
        e = ws_own_end(k->c, k->seq, text, sizeof(text));
        later = true;
        break;
    case WS__COMMAND__C_WAIT_PERIOD:
        e = ws_own_wait(k->c, k->seq, text, sizeof(text));
        later = true;
        break;
    case WS__COMMAND__C_SET_TASK:
        e = ws_client_set_task(k->c, m->set_task, text, sizeof(text));
        break;
    case WS__COMMAND__C_NOW:
        do_now(k, m->now);
        return true;
    default:
        return false;
    }
    if (later && !e)
        return true;
    ws_client_reply_error(k->c, k->seq, e, text[0] || !e ? text : error_text(e));
    ws_client_retire(k->c, 1);
    return true;
}

static bool reply_command(const struct call *k, const Ws__Command *m)
{
    if (own_command(k, m))
        return true;
    if (m->c_case == WS__COMMAND__C_RESET) {
        do_reset(k, m->reset->device);
        return true;
    }
    if (m->c_case == WS__COMMAND__C_COPY_SYNC) {
        do_copy(k, m->copy_sync, true);
        return true;
    }
    if (m->c_case == WS__COMMAND__C_OUTPUT) {
        do_output(k, m->output);
        return true;
    }
    if (k->c->errors.sticky && m->c_case >= WS__COMMAND__C_SYNC) {
        ws_client_reply_error(k->c, k->seq, k->c->errors.sticky, k->c->errors.text);
        ws_client_retire(k->c, 1);
        return true;
    }
    switch (m->c_case) {
    case WS__COMMAND__C_SYNC:
        do_sync(k, m->sync);
        return true;
    case WS__COMMAND__C_QUERY:
        do_query(k, m->query);
        return true;
    case WS__COMMAND__C_MEM_ALLOC:
        do_mem_alloc(k, m->mem_alloc);
        return true;
    case WS__COMMAND__C_MEM_FREE:
        do_mem_free(k, m->mem_free->address, true);
        return true;
    case WS__COMMAND__C_MODULE_LOAD:
        ws_module_load(k->c, m->module_load, k->seq);
        return true;
    case WS__COMMAND__C_MEM_INFO:
        do_mem_info(k, m->mem_info);
        return true;
    case WS__COMMAND__C_HOST_MAP:
        do_host_map(k, m->host_map);
        return true;
    case WS__COMMAND__C_OCCUPANCY:
        do_occupancy(k, m->occupancy);
        return true;
    case WS__COMMAND__C_MODULE_PLACE:
        ws_module_place(k->c, m->module_place, k->seq);
        return true;
    case WS__COMMAND__C_LIMIT:
        do_limit(k, m->limit);
        return true;
    default:
        return memory_command(k, m);
    }
}

/* Of a gated client nothing runs here. */
static bool gated_command(const struct call *k, const Ws__Command *m)
{
    switch (m->c_case) {
    case WS__COMMAND__C_GATE_BEGIN:
        done(k, ws_gated_begin(k->c, m->gate_begin));
        return true;
    case WS__COMMAND__C_GATE_END:
        done(k, ws_gated_end(k->c, m->gate_end));
        return true;
    default:
        return false;
    }
}

static bool any_command(const struct call *k, const Ws__Command *m)
{
    if (WS_UNLIKELY(k->c->jobs.gated))
        return gated_command(k, m);
    return work_command(k, m) || object_command(k, m) || reply_command(k, m);
}

/* Return: whether all of it is done. */
static bool do_image(const struct call *k, const Ws__ModuleImage *m)
{
    bool left;
    Ws__Error e = ws_upload_piece(k->c, m, k->until_ns, &left);
    if (!left)
        done(k, e);
    return !left;
}

/* All streams, or tables of which a client can make large ones. */
static bool may_concern_many(const Ws__Command *m)
{
    switch (m->c_case) {
    case WS__COMMAND__C_SYNC:
        return m->sync->what_case == WS__SYNC__WHAT_DEVICE;
    case WS__COMMAND__C_MEM_ALLOC:
    case WS__COMMAND__C_MEM_FREE:
    case WS__COMMAND__C_MEM_FREE_ASYNC:
    case WS__COMMAND__C_HOST_UNMAP:
    case WS__COMMAND__C_MODULE_LOAD:
    case WS__COMMAND__C_MODULE_UNLOAD:
    case WS__COMMAND__C_MEM_MAP:
    case WS__COMMAND__C_MEM_UNMAP:
    case WS__COMMAND__C_MEM_ACCESS:
    case WS__COMMAND__C_MEM_RELEASE:
    case WS__COMMAND__C_VA_RESERVE:
    case WS__COMMAND__C_VA_FREE:
    case WS__COMMAND__C_SHARE:
    case WS__COMMAND__C_JOB_END:
        return true;
    default:
        return false;
    }
}

/* Return: its weight; 0: it is to be carried on. */
static unsigned command(const struct call *k, struct ws_bytes bytes)
{
    struct ws_server *s = k->c->server;
    Ws__Launch l;
    Ws__ModuleImage image;
    unsigned weight = OTHER_WEIGHT;
    if (WS_LIKELY(!k->c->jobs.gated && ws_decode_launch(bytes, &l))) {
        do_launch(k, &l);
        weight = LAUNCH_WEIGHT;
    } else if (!k->c->jobs.gated && ws_decode_image(bytes, &image)) {
        weight = do_image(k, &image) ? CLOCK_WEIGHT : 0;
    } else {
        Ws__Command *m = ws_decode_command(bytes, &s->arena);
        if (m && may_concern_many(m))
            weight = CLOCK_WEIGHT;
        if (!m || !any_command(k, m))
            ws_client_drop(k->c, WS__ERROR__MALFORMED, "command %llu can't be read",
                           (unsigned long long)k->seq);
        if (s->arena.cap > ARENA_KEEP_BYTES)
            ws_arena_deinit(&s->arena), s->arena.limit_bytes = WS_MESSAGE_ARENA_BYTES;
        else
            ws_arena_reset(&s->arena);
    }
    (void)ws_server_run_ready(s); /* a part: the next command need not wait for all of it */
    (void)ws_server_flush_full(s);
    return weight;
}

bool ws_commands_begin(struct ws_client *c, const struct ws_client_message *m,
                       struct ws_commands_place *ret)
{
    const struct ws_limits *l = &c->limits;
    uint64_t outstanding = c->stats.n_commands - c->stats.n_retired;
    if (m->n_commands > l->max_commands) {
        ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED, "%u commands in one message, %u are allowed",
                       m->n_commands, l->max_commands);
        return false;
    }
    if (outstanding + m->n_commands > l->max_outstanding) {
        ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED, "%llu commands outstanding, %u are allowed",
                       (unsigned long long)(outstanding + m->n_commands), l->max_outstanding);
        return false;
    }
    if (c->wire.seq_known && m->first_seq != c->wire.next_seq) {
        ws_client_drop(c, WS__ERROR__MALFORMED, "sequence number %llu where %llu was due",
                       (unsigned long long)m->first_seq, (unsigned long long)c->wire.next_seq);
        return false;
    }
    c->wire.seq_known = true;
    c->wire.next_seq = m->first_seq + m->n_commands;
    c->stats.n_commands += m->n_commands;
    c->server->stats.n_commands += m->n_commands;
    *ret = (struct ws_commands_place){0, m->first_seq};
    return true;
}

bool ws_commands_go_on(struct ws_client *c, const struct ws_client_message *m,
                       struct ws_commands_place *place, const struct ws_message *msg,
                       uint64_t until_ns)
{
    struct call k = {c, msg, place->seq, until_ns};
    struct ws_bytes bytes;
    unsigned weight = 0;
    size_t pos = place->pos;
    while (!c->dropped && ws_decode_next(m, &pos, &bytes)) {
        unsigned more = command(&k, bytes);
        if (!more)
            return c->dropped;
        weight += more;
        place->pos = pos;
        place->seq = ++k.seq;
        if (WS_UNLIKELY(!ws_list_empty(&c->chores.list)))
            return c->dropped || k.seq - m->first_seq == m->n_commands;
        if (weight < CLOCK_WEIGHT || k.seq - m->first_seq == m->n_commands)
            continue;
        if (ws_clock_ns() >= until_ns)
            return c->dropped;
        weight = 0;
    }
    return true;
}

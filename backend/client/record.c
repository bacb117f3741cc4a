// SPDX-License-Identifier: Apache-2.0
/* Records of events: who waits for one, and what happens when it is done. A reply that is due
 * when a record is done is in two lists, that of the record and that of its client, so that
 * either may go first. Very many of many clients may wait for one record, so they are told in
 * parts, between other work (scheduling/run.c). Meanwhile the client that made the record may have
 * gone. */
#include "backend/backend.h"
#include "backend/client/event.h"
#include "backend/client/reply.h"
#include "backend/client/stream.h"
#include "base/alloc.h"

enum { TELL_MOST = 64 };

struct event_sync {
    struct ws_list of_record, of_client;
    struct ws_client *client;
    struct ws_context *own; /* where its client recorded the event; NULL: another client did */
    uint64_t seq;
};

static void sync_free(struct event_sync *y)
{
    ws_list_remove(&y->of_record);
    ws_list_remove(&y->of_client);
    free(y);
}

void ws_record_init(struct ws_record *r, struct ws_context *x, uint32_t n_refs)
{
    *r = (struct ws_record){.n_refs = n_refs, .context = x};
    ws_list_init(&r->streams);
    ws_list_init(&r->syncs);
    ws_list_init(&r->telling);
}

void ws_record_sync(struct ws_record *r, struct ws_client *c, uint64_t seq)
{
    struct event_sync *y = ws_alloc(sizeof(*y));
    if (!y) {
        ws_client_drop_no_memory(c);
        return;
    }
    y->client = c;
    y->own = r->context->client == c ? r->context : NULL;
    y->seq = seq;
    ws_list_append(&r->syncs, &y->of_record);
    ws_list_append(&c->events.syncs, &y->of_client);
}

bool ws_record_syncs_free_one(struct ws_client *c)
{
    if (ws_list_empty(&c->events.syncs))
        return false;
    sync_free(ws_list_entry(c->events.syncs.next, struct event_sync, of_client));
    return true;
}

void ws_record_unref(struct ws_record *r)
{
    if (--r->n_refs)
        return;
    while (!ws_list_empty(&r->syncs))
        sync_free(ws_list_entry(r->syncs.next, struct event_sync, of_record));
    free(r);
}

void ws_record_finish(struct ws_record *r, uint64_t end_ns)
{
    r->done = true;
    r->end_ns = end_ns;
    if (ws_list_empty(&r->streams) && ws_list_empty(&r->syncs))
        return;
    r->n_refs++;
    ws_list_append(&r->context->client->server->queues.records, &r->telling);
}

static void tell_sync(struct event_sync *y, uint64_t end_ns)
{
    struct ws_client *c = y->client;
    struct ws_context *own = y->own;
    uint64_t seq = y->seq;
    sync_free(y);
    if (own)
        own->seen_ns = WS_MAX(own->seen_ns, end_ns);
    ws_client_reply_error(c, seq, ws_client_take_error(c), c->errors.text);
    ws_client_retire(c, 1);
}

unsigned ws_record_tell(struct ws_server *s)
{
    struct ws_record *r = ws_list_entry(s->queues.records.next, struct ws_record, telling);
    unsigned n = 0;
    for (; n < TELL_MOST; n++)
        if (!ws_list_empty(&r->streams))
            ws_stream_wake(ws_list_entry(r->streams.next, struct ws_stream, blocked));
        else if (!ws_list_empty(&r->syncs))
            tell_sync(ws_list_entry(r->syncs.next, struct event_sync, of_record), r->end_ns);
        else
            break;
    if (!ws_list_empty(&r->streams) || !ws_list_empty(&r->syncs))
        return n;
    ws_list_remove(&r->telling);
    ws_record_unref(r);
    return n;
}

void ws_records_forget(struct ws_server *s)
{
    struct ws_list *n;
    while ((n = ws_list_pop(&s->queues.records)))
        ws_record_unref(ws_list_entry(n, struct ws_record, telling));
}

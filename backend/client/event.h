/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/event.h - events, and what was recorded in them. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_EVENT_H
#define WS_BACKEND_CLIENT_EVENT_H

#include "backend/client/client.h"
#include "base/table.h"

/* One EventRecord. Whoever waits for it holds a reference. */
struct ws_record {
    uint32_t n_refs;
    bool done;
    uint64_t end_ns;
    struct ws_context *context;
    struct ws_list streams; /* blocked in a WAIT for this: ws_stream.blocked */
    struct ws_list syncs;   /* replies due: record.c */
    struct ws_list telling; /* server->queues.records: done, and not all who wait know */
};
void ws_record_init(struct ws_record *r, struct ws_context *x, uint32_t n_refs);
/* It is done from now on. Those who wait for it are told by ws_record_tell(). */
void ws_record_finish(struct ws_record *r, uint64_t end_ns);
/* Tells some of those who wait for the first record of server->queues.records, and takes it off the
 * queue if they were the last. Return: how many. */
unsigned ws_record_tell(struct ws_server *s);
void ws_record_unref(struct ws_record *r);
/* The server ends: forgets what is on server->queues.records. */
void ws_records_forget(struct ws_server *s);
/* The client is told with a reply when the record is done. */
void ws_record_sync(struct ws_record *r, struct ws_client *c, uint64_t seq);
/* Of a client that is gone: one of those replies. Return: false: none is due. */
bool ws_record_syncs_free_one(struct ws_client *c);

struct ws_event_state { /* what an event remembers; more than one client may have it as an event */
    uint32_t n_refs;
    struct ws_record *latest;       /* NULL: never recorded */
    struct ws_context *context;     /* NULL: of a client that is gone, or never recorded */
    struct ws_list of_context;      /* if is_shared: context->shared_states */
    uint8_t handle[WS_SHARE_BYTES]; /* if is_shared: in server->shared_events */
    bool is_shared;
    UT_hash_handle hh;
};
struct ws_event {
    uint64_t id;
    struct ws_event_state *state;
    UT_hash_handle hh;
};

struct ws_client_events {
    struct ws_event *by_id;
    uint32_t n;
    struct ws_list syncs; /* replies due when events are done (record.c) */
};

/* *ret_queued: the command retires later; else the caller retires it. */
Ws__Error ws_event_record(struct ws_client *c, const Ws__EventRecord *m, uint64_t seq,
                          bool *ret_queued);
Ws__Error ws_event_wait(struct ws_client *c, const Ws__StreamWait *m, uint64_t seq,
                        bool *ret_queued);
void ws_event_destroy(struct ws_client *c, uint64_t id);
struct ws_event *ws_event_find(struct ws_client *c, uint64_t id);
bool ws_event_done(const struct ws_event *e, uint64_t *ret_end_ns);
/* The event at *@at, which then goes on: frees it if it was recorded in the context last. Return:
 * false: that was the end. */
bool ws_event_reset_one(struct ws_context *x, struct ws_event **at);
/* Others keep what was recorded in the context, but it is nobody's any more: forgets one event.
 * Return: false: there is none. */
bool ws_event_forget_one_shared(struct ws_context *x);
/* Of a client that is gone: one of its events. Return: false: it has none. */
bool ws_events_free_one(struct ws_client *c);
/* Others may find it by its handle from now on. */
void ws_event_share(struct ws_server *s, struct ws_event_state *t);
/* An event of the client's, made if need be. */
Ws__Error ws_event_get(struct ws_client *c, uint64_t id, struct ws_event **ret);
/* Makes the event of id @id stand for @state as well. */
Ws__Error ws_event_import(struct ws_client *c, uint64_t id, struct ws_event_state *state);

#endif

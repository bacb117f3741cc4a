// SPDX-License-Identifier: Apache-2.0
/* Events. Recording makes a record; a stream that waits holds the record that was the most
 * recent when the wait was given, so recording again, in whatever stream, changes nothing for
 * it. An event that was never recorded counts as done (CUDA Runtime API, cudaStreamWaitEvent). */
#include "backend/client/event.h"

#include "backend/backend.h"
#include "backend/client/stream.h"
#include "backend/client/user.h"

#include "base/alloc.h"

struct ws_event *ws_event_find(struct ws_client *c, uint64_t id)
{
    struct ws_event *e;
    HASH_FIND(hh, c->events.by_id, &id, sizeof(id), e);
    return e;
}

bool ws_event_done(const struct ws_event *e, uint64_t *ret_end_ns)
{
    const struct ws_event_state *t = e->state;
    if (t->latest && !t->latest->done)
        return false;
    *ret_end_ns = t->latest ? t->latest->end_ns : 0;
    return true;
}

static void state_unref(struct ws_server *s, struct ws_event_state *t)
{
    if (--t->n_refs)
        return;
    if (t->is_shared)
        HASH_DEL(s->shared_events, t);
    ws_list_remove(&t->of_context);
    if (t->latest)
        ws_record_unref(t->latest);
    free(t);
}

/* Adds an event; @state: gets a reference, NULL: a new one. */
static Ws__Error event_add(struct ws_client *c, uint64_t id, struct ws_event_state *state,
                           struct ws_event **ret)
{
    if (c->events.n >= c->limits.max_events) {
        ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED, "more than %u events", c->limits.max_events);
        return WS__ERROR__LIMIT_EXCEEDED;
    }
    Ws__Error error = ws_client_object(c);
    if (error)
        return error;
    struct ws_event *e = ws_alloc(sizeof(*e));
    if (e && !state && (state = ws_alloc(sizeof(*state))))
        ws_list_init(&state->of_context);
    if (!e || !state) {
        ws_client_object_gone(c);
        free(e);
        return ws_client_drop_no_memory(c);
    }
    state->n_refs++;
    e->id = id;
    e->state = state;
    HASH_ADD(hh, c->events.by_id, id, sizeof(e->id), e);
    c->events.n++;
    *ret = e;
    return WS__ERROR__OK;
}

static void list_shared(struct ws_event_state *t)
{
    ws_list_remove(&t->of_context);
    if (t->context)
        ws_list_append(&t->context->shared_states, &t->of_context);
}

void ws_event_share(struct ws_server *s, struct ws_event_state *t)
{
    t->is_shared = true;
    HASH_ADD(hh, s->shared_events, handle, sizeof(t->handle), t);
    list_shared(t);
}

Ws__Error ws_event_get(struct ws_client *c, uint64_t id, struct ws_event **ret)
{
    struct ws_event *e = ws_event_find(c, id);
    if (!e)
        return event_add(c, id, NULL, ret);
    *ret = e;
    return WS__ERROR__OK;
}

Ws__Error ws_event_import(struct ws_client *c, uint64_t id, struct ws_event_state *state)
{
    struct ws_event *e;
    return ws_event_find(c, id) ? WS__ERROR__INVALID_HANDLE : event_add(c, id, state, &e);
}

Ws__Error ws_event_record(struct ws_client *c, const Ws__EventRecord *m, uint64_t seq,
                          bool *ret_queued)
{
    struct ws_stream *s = ws_stream_find(c, m->stream);
    struct ws_event *e;
    if (!s)
        return WS__ERROR__INVALID_HANDLE;
    Ws__Error err = ws_event_get(c, m->event, &e);
    if (err)
        return err;
    struct ws_record *r = ws_alloc(sizeof(*r));
    struct ws_command *j = r ? ws_command_new(c, WS_COMMAND_RECORD) : NULL;
    if (!j) {
        free(r);
        return ws_client_drop_no_memory(c);
    }
    ws_record_init(r, s->context, 2); /* the command, the event */
    j->record = r;
    j->seq = seq;
    struct ws_event_state *t = e->state;
    if (t->latest)
        ws_record_unref(t->latest);
    t->latest = r;
    t->context = s->context;
    if (WS_UNLIKELY(t->is_shared))
        list_shared(t);
    *ret_queued = true;
    ws_stream_push(s, j);
    return WS__ERROR__OK;
}

Ws__Error ws_event_wait(struct ws_client *c, const Ws__StreamWait *m, uint64_t seq,
                        bool *ret_queued)
{
    struct ws_stream *s = ws_stream_find(c, m->stream);
    struct ws_event *e = ws_event_find(c, m->event);
    if (!s)
        return WS__ERROR__INVALID_HANDLE;
    if (!e || !e->state->latest)
        return WS__ERROR__OK;
    struct ws_command *j = ws_command_new(c, WS_COMMAND_WAIT);
    if (!j)
        return WS__ERROR__INTERNAL;
    j->record = e->state->latest;
    j->record->n_refs++;
    j->seq = seq;
    *ret_queued = true;
    ws_stream_push(s, j);
    return WS__ERROR__OK;
}

static void event_free(struct ws_client *c, struct ws_event *e)
{
    HASH_DEL(c->events.by_id, e);
    c->events.n--;
    state_unref(c->server, e->state);
    ws_client_object_gone(c);
    free(e);
}

void ws_event_destroy(struct ws_client *c, uint64_t id)
{
    struct ws_event *e = ws_event_find(c, id);
    if (e)
        event_free(c, e);
}

bool ws_event_reset_one(struct ws_context *x, struct ws_event **at)
{
    struct ws_event *e = *at;
    if (!e)
        return false;
    *at = e->hh.next;
    if (e->state->context == x)
        event_free(x->client, e);
    return true;
}

bool ws_event_forget_one_shared(struct ws_context *x)
{
    struct ws_list *n = ws_list_pop(&x->shared_states);
    if (n)
        ws_list_entry(n, struct ws_event_state, of_context)->context = NULL;
    return n != NULL;
}

bool ws_events_free_one(struct ws_client *c)
{
    if (c->events.by_id) {
        event_free(c, c->events.by_id);
        return true;
    }
    for (uint32_t i = 0; i < c->n_contexts; i++)
        if (ws_event_forget_one_shared(&c->contexts[i]))
            return true;
    return false;
}

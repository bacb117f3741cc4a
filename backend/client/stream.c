// SPDX-License-Identifier: Apache-2.0
/* Streams as queues.
 *
 * A stream is a queue of commands of which at most one, the running one, is with the device.
 * Three things hold its head back:
 *   1. the running command;
 *   2. a WAIT for a record that is not done (the stream is in record->streams), a host function
 *      or a value;
 *   3. the legacy default stream's rule: its work starts after all earlier work of the context's
 *      blocking streams, and theirs after all earlier work of it (CUDA C++ Programming Guide,
 *      "Default Stream").
 *
 * The third is kept by epochs. The context's blocking streams, the legacy one included, share a
 * list of epochs; each command belongs to the newest at its time, and a new one begins when work
 * changes from the legacy stream to the others or back. Only commands of the oldest epoch with
 * unfinished commands may start. Of two neighbouring epochs one is the legacy stream's and one the
 * others', so within an epoch nothing but stream order counts, and waiting for the whole of the
 * epoch before is just what the rule asks. Non-blocking streams are in no epoch. A join's marks
 * take the epoch of the command before them, so waiting for a device never holds back anything.
 *
 * Device time: a command is ready at the latest end of what it waited for: its stream, closed
 * epochs, records, and what its client had seen finished when it gave the command. Times of
 * different devices are not compared. */
#include "backend/client/stream.h"

#include <string.h>

#include "backend/backend.h"
#include "backend/client/module.h"
#include "backend/client/user.h"
#include "backend/learn/learn.h"
#include "base/alloc.h"
#include "base/error.h"

static void stream_init(struct ws_stream *s, struct ws_context *x, uint64_t id)
{
    s->id = id;
    s->context = x;
    ws_list_init(&s->blocked);
    ws_list_init(&s->ready);
    ws_list_append(&x->streams, &s->node);
}

int ws_context_init(struct ws_context *x, struct ws_client *c, struct ws_gpu *gpu, uint32_t index)
{
    *x = (struct ws_context){.client = c, .gpu = gpu, .home = gpu, .index = index};
    ws_list_init(&x->streams);
    ws_list_init(&x->modules);
    ws_list_init(&x->epoch_waiters);
    ws_list_init(&x->shared_states);
    ws_list_init(&x->gated_job.go);
    ws_va_init(&x->va, &c->server->memory.va_pool, c);
    ws_va_init(&x->move_va, &c->server->memory.va_pool, c);
    x->open = x->last = ws_alloc(sizeof(*x->open));
    if (!x->open)
        return ws_raise(-ENOMEM);
    x->seen_ns = ws_device_now_ns(gpu->device);
    x->legacy.legacy = true;
    stream_init(&x->legacy, x, WS_STREAM_DEFAULT_0 + index);
    return 0;
}

void ws_context_deinit(struct ws_context *x)
{
    ws_va_deinit(&x->va);
    ws_va_deinit(&x->move_va);
    while (x->open) {
        struct ws_epoch *next = x->open->next;
        free(x->open);
        x->open = next;
    }
}

static struct ws_context *context_of(struct ws_client *c, uint64_t id)
{
    uint64_t i = id - WS_STREAM_DEFAULT_0;
    return i < c->n_contexts ? &c->contexts[i] : NULL;
}

struct ws_stream *ws_stream_find(struct ws_client *c, uint64_t id)
{
    if (WS_LIKELY(c->streams.last && c->streams.last->id == id))
        return c->streams.last;
    struct ws_stream *s = NULL;
    if (id < WS_STREAM_FIRST) {
        struct ws_context *x = context_of(c, id);
        s = x ? &x->legacy : NULL;
    } else {
        HASH_FIND(hh, c->streams.by_id, &id, sizeof(id), s);
    }
    if (s)
        c->streams.last = s;
    return s;
}

Ws__Error ws_stream_create(struct ws_client *c, const Ws__StreamCreate *m)
{
    if (m->device >= c->n_contexts)
        return WS__ERROR__INVALID_DEVICE;
    if (m->stream < WS_STREAM_FIRST || ws_stream_find(c, m->stream))
        return WS__ERROR__INVALID_HANDLE;
    if (c->streams.n >= c->limits.max_streams) {
        ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED, "more than %u streams", c->limits.max_streams);
        return WS__ERROR__LIMIT_EXCEEDED;
    }
    Ws__Error e = ws_client_object(c);
    if (e)
        return e;
    struct ws_stream *s = ws_alloc(sizeof(*s));
    if (!s) {
        ws_client_object_gone(c);
        return ws_client_drop_no_memory(c);
    }
    s->non_blocking = m->non_blocking;
    stream_init(s, &c->contexts[m->device], m->stream);
    HASH_ADD(hh, c->streams.by_id, id, sizeof(s->id), s);
    c->streams.n++;
    return WS__ERROR__OK;
}

void ws_stream_free(struct ws_stream *s)
{
    s->context->client->streams.n--;
    ws_client_object_gone(s->context->client);
    ws_list_remove(&s->blocked);
    ws_list_remove(&s->ready);
    ws_list_remove(&s->node);
    free(s);
}

Ws__Error ws_stream_destroy(struct ws_client *c, uint64_t id)
{
    struct ws_stream *s = id < WS_STREAM_FIRST ? NULL : ws_stream_find(c, id);
    if (!s)
        return WS__ERROR__INVALID_HANDLE;
    ws_stream_let_go(s);
    return WS__ERROR__OK;
}

void ws_stream_let_go(struct ws_stream *s)
{
    struct ws_client *c = s->context->client;
    if (!s->destroyed)
        HASH_DEL(c->streams.by_id, s);
    c->streams.last = NULL;
    s->destroyed = true;
    if (!ws_stream_busy(s))
        ws_stream_free(s);
}

bool ws_stream_query_busy(const struct ws_stream *s)
{
    return s->legacy ? s->context->n_epoch_commands > 0 : ws_stream_busy(s);
}

void ws_stream_wake(struct ws_stream *s)
{
    struct ws_client *c = s->context->client;
    ws_list_remove(&s->blocked);
    if (!ws_list_empty(&s->ready))
        return;
    ws_list_append(&c->streams.ready, &s->ready);
    ws_client_runs(c);
}

static void epoch_close(struct ws_context *x)
{
    bool advanced = false;
    while (!x->open->n_commands && x->open->next) {
        struct ws_epoch *closed = x->open;
        x->open = closed->next;
        free(closed);
        advanced = true;
    }
    if (!advanced)
        return;
    x->closed_end_ns = x->blocking_end_ns;
    while (!ws_list_empty(&x->epoch_waiters))
        ws_stream_wake(ws_list_entry(x->epoch_waiters.next, struct ws_stream, blocked));
}

/* The epoch for new work of @s. NULL: no memory. */
static struct ws_epoch *epoch_for(struct ws_stream *s)
{
    struct ws_context *x = s->context;
    if (x->last_is_legacy == s->legacy)
        return x->last;
    if (x->n_epoch_commands) {
        struct ws_epoch *e = ws_alloc(sizeof(*e));
        if (!e)
            return NULL;
        x->last->next = e;
        x->last = e;
    } else { /* nobody waits: the same one serves the other side, after what was there */
        x->closed_end_ns = x->blocking_end_ns;
    }
    x->last_is_legacy = s->legacy;
    return x->last;
}

void ws_stream_leave(struct ws_command *j)
{
    struct ws_stream *s = j->stream;
    struct ws_context *x = s->context;
    if (j->epoch) {
        x->blocking_end_ns = WS_MAX(x->blocking_end_ns, s->end_ns);
        x->n_epoch_commands--;
        j->epoch->n_commands--;
        epoch_close(x);
    }
    if (j->is_command)
        ws_client_retire(j->client, 1);
    ws_command_free(j);
}

uint64_t ws_stream_ready_ns(const struct ws_command *j)
{
    const struct ws_stream *s = j->stream;
    uint64_t t = WS_MAX(s->end_ns, j->floor_ns);
    return j->epoch ? WS_MAX(t, s->context->closed_end_ns) : t;
}

static void append(struct ws_stream *s, struct ws_command *j)
{
    j->stream = s;
    j->next = NULL;
    j->floor_ns = s->context->seen_ns;
    j->n_resets = s->context->n_resets;
    if (j->epoch) {
        j->epoch->n_commands++;
        s->context->n_epoch_commands++;
    }
    s->tail_epoch = j->epoch;
    if (s->tail)
        s->tail->next = j;
    else
        s->head = j;
    s->tail = j;
}

void ws_stream_push(struct ws_stream *s, struct ws_command *j)
{
    if (!s->non_blocking) {
        j->epoch = epoch_for(s);
        if (!j->epoch) {
            ws_client_drop_no_memory(j->client);
            ws_command_free(j);
            return;
        }
    }
    append(s, j);
    if (s->head == j && !s->running)
        ws_stream_wake(s);
}

void ws_stream_push_mark(struct ws_stream *s, struct ws_command *j)
{
    j->epoch = s->tail_epoch;
    append(s, j);
}

void ws_client_op_ended(struct ws_command *j)
{
    struct ws_client_streams *t = &j->client->streams;
    j->next = NULL;
    if (t->ended)
        t->last_ended->next = j;
    else
        t->ended = j;
    t->last_ended = j;
    ws_client_runs(j->client);
}

struct ws_command *ws_client_take_ended(struct ws_client *c)
{
    struct ws_command *j = c->streams.ended;
    if (j)
        c->streams.ended = j->next;
    return j;
}

void ws_stream_stop(struct ws_stream *s)
{
    ws_list_remove(&s->blocked);
    ws_list_remove(&s->ready);
}

/* The context's own stream is the first of the list, and stays. */
static struct ws_stream *stream_to_free(struct ws_context *x)
{
    if (x->legacy.head)
        return &x->legacy;
    struct ws_list *last = x->streams.prev;
    return last == &x->streams || last == &x->legacy.node
               ? NULL
               : ws_list_entry(last, struct ws_stream, node);
}

bool ws_streams_free_one(struct ws_client *c)
{
    for (uint32_t i = 0; i < c->n_contexts; i++) {
        struct ws_stream *s = stream_to_free(&c->contexts[i]);
        if (!s)
            continue;
        struct ws_command *j = s->head;
        ws_stream_stop(s); /* a WAIT may hold the last reference to its record */
        if (j) {
            s->head = j->next;
            s->tail = s->head ? s->tail : NULL;
            ws_command_free(j);
        } else {
            ws_stream_let_go(s);
        }
        return true;
    }
    return false;
}

void ws_stream_push_front(struct ws_stream *s, struct ws_command *j)
{
    j->next = s->head;
    s->head = j;
    if (!s->tail)
        s->tail = j;
}

struct ws_command *ws_stream_pop(struct ws_stream *s)
{
    struct ws_command *j = s->head;
    ws_list_remove(&s->blocked);
    s->head = j->next;
    if (!s->head)
        s->tail = NULL;
    return j;
}

void ws_stream_run(struct ws_stream *s, struct ws_command *j)
{
    struct ws_client *c = s->context->client;
    j->op.space = c->memory.space;
    j->op.ready_ns = ws_stream_ready_ns(j);
    if (j->op.kind == WS_OPK_LAUNCH &&
        j->module) /* the instance of the GPU that the context is on now */
        j->op.launch.instance = j->module->instance;
    s->running = j;
    j->begun = ++s->context->gpu->n_begun;
    c->n_in_flight++;
    if (c->server->learn)
        j->meter_mark = ws_learn_submitted(c->server->learn, s->context->gpu->device->index);
}

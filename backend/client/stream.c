// SPDX-License-Identifier: Apache-2.0
/* Streams: who may start when.
 *
 * A stream is a queue of jobs of which at most one, the running one, is with the device. Three things hold its head back:
 *   1. the running job;
 *   2. a WAIT for a record that is not done (stream is in record->streams), a gate or a value (gate.c);
 *   3. the legacy default stream's rule: its work starts after all earlier work of the context's blocking streams, and theirs
 *      after all earlier work of it (CUDA C++ Programming Guide, "Default Stream").
 * The third is kept by epochs. The context's blocking streams, the legacy one included, share a list of epochs; each job
 * belongs to the newest at its time, and a new one begins when work changes from the legacy stream to the others or back. Only
 * jobs of the oldest epoch with unfinished jobs may start. Two neighbouring epochs are of different sides, so within an epoch
 * nothing but stream order counts, and waiting for the whole of the epoch before is just what the rule asks.
 * Non-blocking streams are in no epoch. A join's marks take the epoch of the job before them, so waiting for a device never
 * holds back anything.
 *
 * Device time: a job is ready at the latest end of what it waited for: its stream, closed epochs, records, and what its client
 * had seen finished when it gave the job. Times of different devices are not compared.
 *
 * Nothing here recurses over streams: whoever makes a stream able to go on puts it on server->ready, and
 * ws_server_run_ready() pumps until that list is empty. */
#include "backend/backend.h"
#include "backend/process/tracing.h"

#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/space.h"

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
    ws_list_init(&x->epoch_waiters);
    ws_va_init(&x->va, &c->server->va_pool);
    ws_va_init(&x->move_va, &c->server->va_pool);
    x->open = x->last = ws_alloc(sizeof *x->open);
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
    if (WS_LIKELY(c->last_stream && c->last_stream->id == id))
        return c->last_stream;
    struct ws_stream *s = NULL;
    if (id < WS_STREAM_FIRST) {
        struct ws_context *x = context_of(c, id);
        s = x ? &x->legacy : NULL;
    } else {
        HASH_FIND(hh, c->streams, &id, sizeof id, s);
    }
    if (s)
        c->last_stream = s;
    return s;
}

Ws__Error ws_stream_create(struct ws_client *c, const Ws__StreamCreate *m)
{
    if (m->device >= c->n_contexts)
        return WS__ERROR__INVALID_DEVICE;
    if (m->stream < WS_STREAM_FIRST || ws_stream_find(c, m->stream))
        return WS__ERROR__INVALID_HANDLE;
    if (c->n_streams >= c->limits.max_streams) {
        ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED, "more than %u streams", c->limits.max_streams);
        return WS__ERROR__LIMIT_EXCEEDED;
    }
    struct ws_stream *s = ws_alloc(sizeof *s);
    if (!s) {
        ws_client_drop(c, WS__ERROR__INTERNAL, "the daemon is out of memory");
        return WS__ERROR__INTERNAL;
    }
    s->non_blocking = m->non_blocking;
    stream_init(s, &c->contexts[m->device], m->stream);
    HASH_ADD(hh, c->streams, id, sizeof s->id, s);
    c->n_streams++;
    return WS__ERROR__OK;
}

static void stream_free(struct ws_stream *s)
{
    s->context->client->n_streams--;
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
        HASH_DEL(c->streams, s);
    c->last_stream = NULL;
    s->destroyed = true;
    if (!ws_stream_busy(s))
        stream_free(s);
}

bool ws_stream_query_busy(const struct ws_stream *s)
{
    return s->legacy ? s->context->n_epoch_commands > 0 : ws_stream_busy(s);
}

void ws_stream_wake(struct ws_stream *s)
{
    ws_list_remove(&s->blocked);
    if (!s->ready_linked) {
        s->ready_linked = true;
        ws_list_append(&s->context->client->server->ready, &s->ready);
    }
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
        struct ws_epoch *e = ws_alloc(sizeof *e);
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

/* The job is through: stream time, epoch, retirement. */
static void command_leave(struct ws_command *j)
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

static uint64_t ready_ns(const struct ws_command *j)
{
    const struct ws_stream *s = j->stream;
    uint64_t t = WS_MAX(s->end_ns, j->floor_ns);
    return j->epoch ? WS_MAX(t, s->context->closed_end_ns) : t;
}

/* For bench/passes.sh and tests/process/differential.sh. */
static void log_launch(const struct ws_command *j)
{
    const struct ws_op *op = &j->op;
    uint64_t threads = 1;
    for (int d = 0; d < 3; d++)
        threads *= (uint64_t)op->launch.grid[d] * op->launch.block[d];
    char memory[24] = "-"; /* of all the client's memory, where nothing else is changing it */
    if (ws_debug_on("launch.memory") && !j->client->n_in_flight)
        snprintf(memory, sizeof memory, "%016llx",
                 (unsigned long long)ws_space_digest(j->client->space, WS_VA_FIRST, WS_VA_LAST));
    ws_log(WS_DEBUG,
           "launch: client=%u insns=%llu warp_insns=%llu threads=%llu memory=%s kernel=%s",
           j->client->id, (unsigned long long)op->n_thread_insns,
           (unsigned long long)op->counts.n_warp_insns, (unsigned long long)threads, memory,
           j->kernel_name);
}

static void account(struct ws_command *j)
{
    struct ws_client *c = j->client;
    struct ws_client_stats *t = &c->stats;
    const struct ws_op *op = &j->op;
    if (op->kind == WS_OPK_LAUNCH) {
        t->n_kernels += !op->preempted;
        if (j->learn)
            ws_launch_learn(j);
        if (WS_UNLIKELY(c->server->log_launches))
            log_launch(j);
    } else {
        t->n_copies++;
        if (op->kind == WS_OPK_COPY && op->copy.src_host)
            t->bytes_in += ws_op_copy_bytes(op);
        else if (op->kind == WS_OPK_COPY && op->copy.dst_host)
            t->bytes_out += ws_op_copy_bytes(op);
        else if (op->kind == WS_OPK_COPY) {
            t->bytes_in += op->copy.src_va < WS_VA_FIRST || op->copy.src_va >= WS_VA_LAST
                               ? ws_op_copy_bytes(op)
                               : 0;
            t->bytes_out += op->copy.dst_va < WS_VA_FIRST || op->copy.dst_va >= WS_VA_LAST
                                ? ws_op_copy_bytes(op)
                                : 0;
        }
    }
    t->device_ns += op->end_ns - op->start_ns;
    t->energy_uj += op->energy_uj;
    t->first_start_ns = WS_MIN(t->first_start_ns, op->start_ns);
    t->last_end_ns = WS_MAX(t->last_end_ns, op->end_ns);
    t->used_gpus |= 1u << j->stream->context->gpu->device->index;
    if (WS_UNLIKELY(c->server->tracing != NULL))
        ws_tracing_add(j);
}

static void reply_op(struct ws_command *j, Ws__Error e)
{
    Ws__Reply r = WS__REPLY__INIT;
    r.seq = j->seq;
    r.error = e;
    if (e)
        r.text = j->op.text;
    else if (j->bulk == WS__COPY__BULK__REPLY_DST)
        r.data = (ProtobufCBinaryData){ws_op_copy_bytes(&j->op), j->buffer};
    ws_client_reply(j->client, &r);
}

/* What an operation's end means for its client. */
static void op_end(struct ws_command *j)
{
    struct ws_client *c = j->client;
    struct ws_stream *s = j->stream;
    Ws__Error e = ws_error_of_device(j->op.error);
    s->end_ns = WS_MAX(s->end_ns, j->op.end_ns);
    if (j->bulk == WS__COPY__BULK__STAGED_SRC)
        ws_segment_chunk_done(j->segment, j->chunk, WS_CHUNK_FREE);
    else if (j->bulk == WS__COPY__BULK__STAGED_DST)
        ws_segment_chunk_done(j->segment, j->chunk, e ? WS_CHUNK_FAILED : WS_CHUNK_READY);
    if (ws_error_is_sticky(e) || (e && !j->replies && !c->sticky))
        ws_client_async_error(c, s->context, e, "%s",
                              j->op.text[0] ? j->op.text : ws_dev_error_name(j->op.error));
    if (j->replies) {
        s->context->seen_ns = WS_MAX(s->context->seen_ns, s->end_ns);
        reply_op(j, e);
    }
}

/* Gives the device the operation, part by part where it is done in parts. Return: it is done already. */
static bool submit(struct ws_stream *s, struct ws_command *j)
{
    do {
        j->finished_inline = false;
        j->submitting = true;
        ws_device_submit(s->context->gpu->device, &j->op);
        j->submitting =
            false; /* ours to write even if a device thread has finished it: only the loop takes it off that list */
        if (!j->finished_inline)
            return false;
    } while (j->relaunch && ws_relaunch_next(j));
    return true;
}

/* Back to the head of its stream, where it waits for its turn. */
static void put_back(struct ws_stream *s, struct ws_command *j)
{
    s->end_ns = WS_MAX(s->end_ns, j->op.end_ns);
    j->learn = NULL; /* its parts tell nothing of the whole */
    j->next = s->head;
    s->head = j;
    if (!s->tail)
        s->tail = j;
}

/* What follows on the end of an operation, or of the part of it that ran before it was preempted. */
static void op_ended(struct ws_command *j)
{
    account(j);
    if (j->op.preempted && !j->client->sticky) {
        put_back(j->stream, j);
        ws_dispatch_op_ended(j);
        return;
    }
    ws_dispatch_op_ended(j);
    op_end(j);
    command_leave(j);
}

static void op_prepare(struct ws_stream *s, struct ws_command *j)
{
    j->op.space = s->context->client->space;
    j->op.ready_ns = ready_ns(j);
    j->op.done = ws_command_done;
    s->running = j;
    s->context->client->n_in_flight++;
}

static void op_start(struct ws_stream *s, struct ws_command *j)
{
    struct ws_client *c = j->client;
    if (WS_UNLIKELY(c->sticky)) {
        j->op.error = WS_DEV_E_CANCELLED;
        j->op.text[0] = 0;
        j->op.end_ns = 0;
        op_end(j);
        command_leave(j);
        return;
    }
    op_prepare(s, j);
    if (submit(s, j)) {
        s->running = NULL;
        c->n_in_flight--;
        op_ended(j);
    }
}

struct ws_command *ws_stream_take(struct ws_stream *s)
{
    struct ws_command *j = s->head;
    ws_list_remove(&s->blocked);
    s->head = j->next;
    if (!s->head)
        s->tail = NULL;
    op_prepare(s, j);
    return j;
}

static void mark_reached(struct ws_command *j)
{
    struct ws_join *join = j->join;
    join->end_ns = WS_MAX(join->end_ns, j->stream->end_ns);
    j->join = NULL;
    if (--join->n_left)
        return;
    ws_list_remove(
        &join->node); /* its action runs later, from ws_server_run_ready(): it may free this stream */
    ws_list_append(&j->client->server->reached, &join->node);
}

static void command_start(struct ws_stream *s, struct ws_command *j)
{
    switch (j->kind) {
    case WS_COMMAND_OP:
        op_start(s, j);
        return;
    case WS_COMMAND_RECORD:
        s->end_ns = WS_MAX(s->end_ns, j->epoch ? s->context->closed_end_ns : 0);
        ws_record_finish(j->record, ready_ns(j));
        break;
    case WS_COMMAND_WAIT:
        if (j->record->context == s->context)
            s->end_ns = WS_MAX(s->end_ns, j->record->end_ns);
        break;
    case WS_COMMAND_SYNC:
        s->context->seen_ns = WS_MAX(s->context->seen_ns, ready_ns(j));
        ws_client_reply_error(j->client, j->seq, ws_client_take_error(j->client),
                              j->client->error_text);
        break;
    case WS_COMMAND_MARK:
        mark_reached(j);
        break;
    case WS_COMMAND_HOST_FUNCTION: /* the client has seen that all before it was done */
        s->context->seen_ns = WS_MAX(s->context->seen_ns, ready_ns(j));
        break;
    case WS_COMMAND_VALUE:
        break;
    }
    command_leave(j);
}

/* Starts what may start. The stream may be gone on return. */
static void pump(struct ws_stream *s)
{
    struct ws_client *c = s->context->client;
    ws_list_remove(&s->blocked);
    while (s->head && !s->running && !c->dropped) {
        struct ws_command *j = s->head;
        if (j->epoch && j->epoch != s->context->open) {
            ws_list_append(&s->context->epoch_waiters, &s->blocked);
            return;
        }
        if (j->kind == WS_COMMAND_WAIT && !j->record->done) {
            ws_list_append(&j->record->streams, &s->blocked);
            return;
        }
        if (j->kind == WS_COMMAND_HOST_FUNCTION && !ws_host_function_pass(j))
            return;
        if (j->kind == WS_COMMAND_VALUE && !ws_value_pass(j)) {
            ws_list_append(&c->server->polling, &s->blocked);
            return;
        }
        if (WS_UNLIKELY(!ws_list_empty(&c->quiescing)) && j->kind == WS_COMMAND_OP) {
            ws_list_append(&c->held, &s->blocked);
            return;
        }
        if (c->server->dispatch && j->kind == WS_COMMAND_OP && !ws_dispatch_pass(s, j))
            return;
        s->head = j->next;
        if (!s->head)
            s->tail = NULL;
        command_start(s, j);
    }
    if (s->destroyed && !ws_stream_busy(s))
        stream_free(s);
}

void ws_server_run_ready(struct ws_server *s)
{
    struct ws_list *n;
    for (;;) {
        if ((n = ws_list_pop(&s->ready))) {
            struct ws_stream *st = ws_list_entry(n, struct ws_stream, ready);
            st->ready_linked = false;
            pump(st);
        } else if ((n = ws_list_pop(&s->reached))) {
            struct ws_join *join = ws_list_entry(n, struct ws_join, node);
            ws_join_finish(join);
        } else {
            return;
        }
    }
}

static void append(struct ws_stream *s, struct ws_command *j)
{
    j->stream = s;
    j->next = NULL;
    j->floor_ns = s->context->seen_ns;
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
            struct ws_client *c = j->client;
            ws_command_free(j);
            ws_client_drop(c, WS__ERROR__INTERNAL, "the daemon is out of memory");
            return;
        }
    }
    append(s, j);
    if (s->head == j && !s->running)
        pump(s);
}

void ws_stream_push_mark(struct ws_stream *s, struct ws_command *j)
{
    j->epoch = s->tail_epoch;
    append(s, j);
}

void ws_stream_finished(struct ws_command *j)
{
    struct ws_stream *s = j->stream;
    struct ws_client *c = j->client;
    if (j->relaunch && !c->dropped && ws_relaunch_next(j) && !submit(s, j))
        return;
    s->running = NULL;
    c->n_in_flight--;
    if (c->dropped) {
        ws_dispatch_op_ended(j);
        ws_command_free(j);
        return;
    }
    op_ended(j);
    pump(s);
    if (!ws_list_empty(&c->quiescing)) /* last: it may free the stream */
        ws_client_quiesce(c);
}

void ws_stream_clear(struct ws_stream *s)
{
    ws_list_remove(
        &s->blocked); /* before the jobs: a WAIT may hold the last reference to its record */
    ws_list_remove(&s->ready);
    while (s->head) {
        struct ws_command *j = s->head;
        s->head = j->next;
        ws_command_free(j);
    }
    s->tail = NULL;
}

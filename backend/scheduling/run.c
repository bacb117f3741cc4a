// SPDX-License-Identifier: Apache-2.0
/* What starts when. ws_server_run_ready() looks at the streams that were woken and starts what
 * stands at their heads, as far as it may start (client/stream.c says what holds a head back;
 * with a policy, the dispatcher has a say as well).
 *
 * Nothing here recurses over streams: whoever makes a stream able to go on puts it on its client's
 * list, and the client on server->queues.ready (ws_stream_wake()). The loop in
 * ws_server_run_ready() lets users take turns, and the clients of each, and takes an operation that
 * has ended and a stream of one client after the other. A turn of the server has so much time for
 * that; what is left then waits for the next one. */
#include "backend/scheduling/run.h"

#include "backend/backend.h"
#include "backend/client/event.h"
#include "backend/client/host_function.h"
#include "backend/client/join.h"
#include "backend/client/relaunch.h"
#include "backend/client/reply.h"
#include "backend/client/reset.h"
#include "backend/client/segment.h"
#include "backend/client/stream.h"
#include "backend/client/submit.h"
#include "backend/client/value.h"
#include "backend/scheduling/account.h"
#include "backend/scheduling/dispatch.h"
#include "backend/scheduling/finished.h"
#include "backend/scheduling/fused.h"
#include "backend/scheduling/gated.h"
#include "backend/scheduling/join_act.h"
#include "device/started.h"
#include "ptx/passes/pass.h"

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
    if (ws_error_is_sticky(e) || (e && !j->replies && !c->errors.sticky))
        ws_client_async_error(c, s->context, e, "%s",
                              j->op.text[0] ? j->op.text : ws_dev_error_name(j->op.error));
    if (j->replies) {
        s->context->seen_ns = WS_MAX(s->context->seen_ns, s->end_ns);
        reply_op(j, e);
    }
}

/* The device has the stream's operation no more. */
static void take_back(struct ws_stream *s)
{
    s->running = NULL;
    s->context->n_ended++;
    s->context->gpu->n_ended++;
    s->context->client->n_in_flight--;
}

/* Gives the device the operation, part by part where it is done in parts. Return: it is done
 * already. */
static bool submit(struct ws_stream *s, struct ws_command *j)
{
    do {
        j->finished_inline = false;
        j->submitting = true;
        ws_device_submit(s->context->gpu->device, &j->op);
        /* The loop may write here even if a device thread has finished the operation: only the
         * loop takes it off the list of finished ones. */
        j->submitting = false;
        if (!j->finished_inline)
            return false;
    } while (j->relaunch && ws_relaunch_next(j));
    return true;
}

/* What follows on the end of an operation, or of the part of it that ran before it was
 * preempted. */
static void op_ended(struct ws_command *j)
{
    ws_account_op(j);
    bool starts = !j->op.preempted && !j->op.error && ws_started_any(j->started);
    if ((j->op.preempted || starts) && !j->client->errors.sticky) {
        j->stream->end_ns = WS_MAX(j->stream->end_ns, j->op.end_ns);
        j->learn = NULL; /* its parts tell nothing of the whole */
        ws_stream_push_front(j->stream, j);
        ws_dispatch_op_ended(j);
        if (starts)
            ws_launch_next(j);
        return;
    }
    ws_dispatch_op_ended(j);
    op_end(j);
    ws_stream_leave(j);
}

/* Commands of a stream until it is another's turn; how many take so long that the clock is read;
 * how many of them take as long as a reply, as what follows on an operation's end, or as a small
 * kernel that is executed while it is submitted, or a policy's decision. */
enum {
    PUMP_MOST = 64,
    CLOCK_COMMANDS = 16,
    REPLY_COMMANDS = 4,
    ENDED_COMMANDS = 4,
    EXECUTED_COMMANDS = CLOCK_COMMANDS,
    DECISION_COMMANDS = CLOCK_COMMANDS
};

/* Return: how many commands it is worth. */
static unsigned op_start(struct ws_stream *s, struct ws_command *j)
{
    struct ws_client *c = j->client;
    if (WS_UNLIKELY(c->errors.sticky)) {
        j->op.error = WS_DEV_E_CANCELLED;
        j->op.text[0] = 0;
        j->op.end_ns = 0;
        op_end(j);
        ws_stream_leave(j);
        return 1;
    }
    j->op.done = ws_command_done;
    ws_stream_run(s, j);
    if (!submit(s, j))
        return 1;
    bool executed = j->op.n_thread_insns > 0; /* by this thread */
    take_back(s);
    op_ended(j);
    return executed ? EXECUTED_COMMANDS : 1;
}

/* Return: how many commands it is worth. */
static unsigned command_start(struct ws_stream *s, struct ws_command *j)
{
    switch (j->kind) {
    case WS_COMMAND_OP:
        return op_start(s, j);
    case WS_COMMAND_RECORD:
        s->end_ns = WS_MAX(s->end_ns, j->epoch ? s->context->closed_end_ns : 0);
        ws_record_finish(j->record, ws_stream_ready_ns(j));
        break;
    case WS_COMMAND_WAIT:
        if (j->record->context == s->context)
            s->end_ns = WS_MAX(s->end_ns, j->record->end_ns);
        break;
    case WS_COMMAND_SYNC:
        s->context->seen_ns = WS_MAX(s->context->seen_ns, ws_stream_ready_ns(j));
        ws_client_reply_error(j->client, j->seq, ws_client_take_error(j->client),
                              j->client->errors.text);
        break;
    case WS_COMMAND_MARK:
        ws_join_mark_reached(j->join, s->end_ns);
        j->join = NULL;
        break;
    case WS_COMMAND_HOST_FUNCTION: /* the client has seen that all before it was done */
        s->context->seen_ns = WS_MAX(s->context->seen_ns, ws_stream_ready_ns(j));
        break;
    case WS_COMMAND_VALUE:
        break;
    }
    ws_stream_leave(j);
    return 1;
}

/* Starts what may start. The stream may be gone on return. Return: how many commands. */
static unsigned pump(struct ws_stream *s)
{
    struct ws_client *c = s->context->client;
    unsigned n = 0;
    ws_list_remove(&s->blocked);
    while (s->head && !s->running && !c->dropped) {
        struct ws_command *j = s->head;
        if (n >= PUMP_MOST) {
            ws_stream_wake(s);
            return n;
        }
        if (j->epoch && j->epoch != s->context->open) {
            ws_list_append(&s->context->epoch_waiters, &s->blocked);
            return n;
        }
        if (j->kind == WS_COMMAND_WAIT && !j->record->done) {
            ws_list_append(&j->record->streams, &s->blocked);
            return n;
        }
        if (j->kind == WS_COMMAND_HOST_FUNCTION && !ws_host_function_pass(j))
            return n;
        if (j->kind == WS_COMMAND_VALUE && !ws_value_pass(j)) {
            ws_value_wait(s);
            return n;
        }
        if (j->kind == WS_COMMAND_OP &&
            WS_UNLIKELY(!ws_list_empty(&c->joins.quiescing) || ws_context_resetting(j))) {
            ws_list_append(&c->joins.held, &s->blocked);
            return n;
        }
        if (c->server->dispatch && j->kind == WS_COMMAND_OP && !ws_dispatch_pass(s, j))
            return n;
        ws_stream_pop(s);
        n += command_start(s, j);
    }
    if (s->destroyed && !ws_stream_busy(s))
        ws_stream_free(s);
    return n;
}

/* ---- what has ended ---- */

static void finished(struct ws_command *j)
{
    struct ws_stream *s = j->stream;
    struct ws_client *c = j->client;
    if (j->relaunch && !c->dropped && ws_relaunch_next(j) && !submit(s, j))
        return;
    take_back(s);
    if (c->dropped) {
        ws_account_learn(j);
        ws_dispatch_op_ended(j);
        ws_command_free(j);
        return;
    }
    op_ended(j);
    ws_stream_wake(s);
    if (!ws_list_empty(&c->joins.quiescing)) /* last: it may free the stream */
        ws_client_quiesce(c);
}

/* What follows on the end of the client's oldest operation that has ended, or of the part of it
 * that was submitted. A merged launch is dealt with as its members. Return: how many commands take
 * as long. */
static unsigned end_one(struct ws_client *c)
{
    struct ws_command *members[WS_FUSE_MAX], *j = ws_client_take_ended(c);
    if (!j)
        return 0;
    uint32_t n = 1;
    bool tells = j->bulk == WS__COPY__BULK__REPLY_DST; /* packs, and perhaps encrypts, much data */
    if (WS_LIKELY(!j->carries))
        members[0] = j;
    else
        n = ws_fused_ended(j->carries, members);
    for (uint32_t k = 0; k < n; k++)
        finished(members[k]);
    return tells ? CLOCK_COMMANDS : n * ENDED_COMMANDS;
}

/* ---- the turn ---- */

/* An operation that has ended, a stream and a join of a client. Return: how many commands that
 * were, or would be by the time it takes. */
static unsigned run_some(struct ws_client *c)
{
    unsigned n = 1 + end_one(c);
    struct ws_list *st = c->dropped ? NULL : ws_list_pop(&c->streams.ready);
    if (st)
        n += pump(ws_list_entry(st, struct ws_stream, ready));
    struct ws_list *join = c->dropped ? NULL : ws_list_pop(&c->joins.reached);
    if (join)
        ws_join_finish(ws_list_entry(join, struct ws_join, node));
    bool goes_on = !ws_list_empty(&c->streams.ready) || !ws_list_empty(&c->joins.reached);
    if (c->streams.ended || (goes_on && !c->dropped))
        ws_client_runs(c);
    return n;
}

/* Return: the same, of what is next of all that there is; 0: nothing. */
static unsigned run_next(struct ws_server *s)
{
    struct ws_list *n;
    unsigned n_run = 0;
    if (WS_UNLIKELY(!ws_list_empty(&s->queues.records))) /* beside those who may go on */
        n_run += 1 + REPLY_COMMANDS * ws_record_tell(s);
    if (WS_UNLIKELY(!ws_list_empty(&s->queues.waiting))) {
        ws_dispatch_waits(ws_list_entry(s->queues.waiting.next, struct ws_client, jobs.waiting));
        n_run += DECISION_COMMANDS;
    } else if ((n = ws_account_queue_pop(&s->queues.ready))) {
        n_run += run_some(ws_list_entry(n, struct ws_client, streams.runs));
    } else if ((n = ws_list_pop(&s->queues.gated_go))) {
        ws_gated_go(ws_list_entry(n, struct ws_context, gated_job.go));
        n_run++;
    }
    return n_run;
}

/* Looks at the clock. Return: whether this turn has time for more. */
static bool has_time(struct ws_server *s)
{
    struct ws_server_queues *q = &s->queues;
    uint64_t now = ws_clock_ns();
    q->n_run = 0;
    q->begun_ns = q->begun_ns ? q->begun_ns : now;
    q->over = now - q->begun_ns >= s->messages.slice_ns;
    return !q->over;
}

bool ws_server_run_ready(struct ws_server *s)
{
    struct ws_server_queues *q = &s->queues;
    unsigned n;
    while (ws_list_empty(&s->out.full) && !q->over && (n = run_next(s))) {
        q->n_run += n;
        if (q->n_run >= CLOCK_COMMANDS)
            return has_time(s);
    }
    return false;
}

void ws_server_run_turn_ends(struct ws_server *s)
{
    s->queues.begun_ns = 0;
    s->queues.over = false;
    s->queues.n_run = 0;
}

bool ws_server_has_ready(const struct ws_server *s)
{
    const struct ws_server_queues *q = &s->queues;
    return !ws_list_empty(&q->ready) || !ws_list_empty(&q->records) ||
           !ws_list_empty(&q->waiting) || !ws_list_empty(&q->gated_go);
}

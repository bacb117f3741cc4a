// SPDX-License-Identifier: Apache-2.0
/* Answers to `wattshare trace`. The spans are in a ring of fixed size (scheduling/spans.h). A
 * request says which span was the last one that the asker has seen, and is answered with those
 * after it that he may see (client/viewer.h) and the number of those that have been overwritten.
 * There is no subscription: the ring exists while somebody asks at least once in KEEP_NS. So a
 * trace that nobody ends ends by itself, several may read one, and it costs nothing while there is
 * none. The policy's decisions are those that `wattshare explain` has, and go along. */
#include "backend/process/tracing.h"

#include "backend/backend.h"
#include "backend/client/viewer.h"
#include "backend/scheduling/dispatch.h"
#include "backend/scheduling/spans.h"
#include "backend/wire/out.h"
#include "base/alloc.h"
#include "base/clock.h"

#define KEEP_NS (60 * WS_NS_PER_S) /* whoever traces may be stopped for a while */
enum { SPANS_PER_REPLY = 512 };

static Ws__TraceSpan *span_message(struct ws_arena *a, struct ws_span *p)
{
    Ws__TraceSpan *m = ws_arena_alloc(a, sizeof(*m));
    if (!m)
        return NULL;
    ws__trace_span__init(m);
    m->serial = p->serial;
    m->gpu = p->gpu;
    m->client = p->client;
    m->pid = p->pid;
    m->stream = p->stream;
    m->kind = p->kind;
    m->name = p->name;
    m->task = p->task;
    m->ready_ns = p->ready_ns;
    m->start_ns = p->start_ns;
    m->end_ns = p->end_ns;
    m->energy_uj = p->energy_uj;
    m->n_sms = p->n_sms;
    if (p->some_sms)
        m->sms = (ProtobufCBinaryData){sizeof(p->sms), (uint8_t *)p->sms};
    m->bytes = p->bytes;
    m->n_blocks = p->n_blocks;
    m->job = p->job;
    m->stopped = p->stopped;
    m->error = p->error;
    return m;
}

static bool fill_reply(struct ws_server *s, struct ws_tracing *t, uint64_t after,
                       const struct ws_viewer *viewer, Ws__TraceReply *ret)
{
    uint64_t oldest = t->last > WS_SPANS ? t->last - WS_SPANS + 1 : 1,
             from = WS_MAX(after + 1, oldest);
    if (after >= t->last) /* or of a trace before this one */
        return true;
    uint64_t n = WS_MIN(t->last - from + 1, (uint64_t)SPANS_PER_REPLY);
    ret->lost = from - after - 1;
    ret->seen = from + n - 1;
    ret->spans = ws_arena_array(&s->arena, n, sizeof(*ret->spans));
    if (!ret->spans)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        struct ws_span *p = &t->ring[(from + i) % WS_SPANS];
        if (!ws_viewer_sees(viewer, p->uid))
            continue;
        if (!(ret->spans[ret->n_spans++] = span_message(&s->arena, p)))
            return false;
    }
    return true;
}

void ws_tracing_reply(struct ws_server *s, const struct ws_message *msg, const Ws__TraceRequest *q)
{
    struct ws_viewer viewer;
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__TraceReply r = WS__TRACE_REPLY__INIT;
    struct ws_traced_decisions decisions;
    if (!q || (!s->tracing && !(s->tracing = ws_alloc(sizeof(*s->tracing)))))
        return;
    s->tracing->asked_ns = ws_clock_ns();
    r.version = WS_PROTOCOL_VERSION;
    r.last = s->tracing->last;
    ws_viewer_of(s, msg, &viewer);
    if (!fill_reply(s, s->tracing, q->after, &viewer, &r) ||
        ws_dispatch_traced(s, q->decisions_after, &viewer, &decisions))
        return;
    r.decisions = decisions.v;
    r.n_decisions = decisions.n;
    r.decisions_seen = decisions.seen;
    r.decisions_last = decisions.last;
    m.trace = &r;
    (void)ws_server_send(s, msg->peer, &m); /* a peer that does not fetch its answer has none */
}

int ws_tracing_turn(struct ws_server *s)
{
    if (!s->tracing)
        return -1;
    uint64_t since_ns = ws_clock_ns() - s->tracing->asked_ns;
    if (since_ns <= KEEP_NS)
        return (int)((KEEP_NS - since_ns) / WS_NS_PER_MS) + 1;
    ws_tracing_free(s);
    return -1;
}

void ws_tracing_free(struct ws_server *s)
{
    free(s->tracing);
    s->tracing = NULL;
}

// SPDX-License-Identifier: Apache-2.0
/* The spans are in a ring of fixed size, numbered; who asks says after which number, and learns how many of those have been
 * overwritten meanwhile. There is no subscription: the ring is there while somebody asks at least once in KEEP_NS. So a trace
 * that nobody ends ends by itself, several may read one, and none costs anything when there is none. */
#include "backend/process/tracing.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

#define KEEP_NS (10 * WS_NS_PER_S)
enum { SPANS = 16384, SPANS_PER_REPLY = 512, NAME_BYTES = 128 };

struct span {
    uint64_t serial, stream, start_ns, end_ns, energy_uj, bytes;
    uint32_t gpu, client, pid, n_sms;
    Ws__TraceSpan__Kind kind;
    Ws__Error error;
    bool stopped, some_sms;
    uint64_t sms[WS_SM_MAX / 64];
    char name[NAME_BYTES], task[64];
};
struct ws_tracing {
    uint64_t last, asked_ns; /* serial numbers begin with 1 */
    struct span ring[SPANS];
};

static void copy_text(char *to, size_t size, const char *from)
{
    size_t n = strnlen(from, size - 1);
    memcpy(to, from, n);
    to[n] = 0;
}

static uint64_t fill_bytes(const struct ws_op *op)
{
    return op->fill.width_bytes * (op->fill.height ? op->fill.height : 1);
}

static void launch_span(struct span *p, const struct ws_command *j, uint32_t n_sm)
{
    const struct ws_op *op = &j->op;
    uint64_t blocks = (uint64_t)op->launch.grid[0] * op->launch.grid[1] * op->launch.grid[2];
    uint32_t n = op->launch.sms.n ? op->launch.sms.n : n_sm;
    p->kind = WS__TRACE_SPAN__KIND__KERNEL;
    p->n_sms = (uint32_t)WS_MIN((uint64_t)n, blocks);
    p->some_sms = op->launch.sms.n != 0;
    memcpy(p->sms, op->launch.sms.bits, sizeof p->sms);
    copy_text(p->name, sizeof p->name, j->kernel_name ? j->kernel_name : "");
    p->stopped = op->preempted;
}

void ws_tracing_add(const struct ws_command *j)
{
    const struct ws_op *op = &j->op;
    struct ws_client *c = j->client;
    struct ws_tracing *t = c->server->tracing;
    const struct ws_device *d = j->stream->context->gpu->device;
    struct span *p = &t->ring[++t->last % SPANS];
    *p = (struct span){.serial = t->last,
                       .stream = j->stream->id,
                       .start_ns = op->start_ns,
                       .end_ns = op->end_ns,
                       .energy_uj = op->energy_uj,
                       .gpu = d->index,
                       .client = c->id,
                       .pid = c->pid,
                       .error = ws_error_of_device(op->error)};
    copy_text(p->task, sizeof p->task, c->task[0] ? c->task : c->work.name);
    if (op->kind == WS_OPK_LAUNCH) {
        launch_span(p, j, d->spec.n_sms);
    } else {
        bool copy = op->kind == WS_OPK_COPY;
        p->kind = copy ? WS__TRACE_SPAN__KIND__COPY : WS__TRACE_SPAN__KIND__FILL;
        p->bytes = copy ? ws_op_copy_bytes(op) : fill_bytes(op);
    }
}

void ws_tracing_add_gated(const struct ws_context *x, uint64_t start_ns, uint64_t end_ns,
                          uint64_t energy_uj, uint64_t n_launches)
{
    const struct ws_client *c = x->client;
    struct ws_tracing *t = c->server->tracing;
    struct span *p = &t->ring[++t->last % SPANS];
    *p = (struct span){.serial = t->last,
                       .start_ns = start_ns,
                       .end_ns = end_ns,
                       .energy_uj = energy_uj,
                       .gpu = x->gpu->device->index,
                       .client = c->id,
                       .pid = c->pid,
                       .n_sms = x->gpu->device->spec.n_sms,
                       .kind = WS__TRACE_SPAN__KIND__KERNEL};
    copy_text(p->task, sizeof p->task, c->task[0] ? c->task : c->work.name);
    snprintf(p->name, sizeof p->name, "gated: %llu launches", (unsigned long long)n_launches);
}

static Ws__TraceSpan *span_message(struct ws_arena *a, struct span *p)
{
    Ws__TraceSpan *m = ws_arena_alloc(a, sizeof *m);
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
    m->start_ns = p->start_ns;
    m->end_ns = p->end_ns;
    m->energy_uj = p->energy_uj;
    m->n_sms = p->n_sms;
    if (p->some_sms)
        m->sms = (ProtobufCBinaryData){sizeof p->sms, (uint8_t *)p->sms};
    m->bytes = p->bytes;
    m->stopped = p->stopped;
    m->error = p->error;
    return m;
}

static bool fill_reply(struct ws_server *s, struct ws_tracing *t, uint64_t after,
                       Ws__TraceReply *ret)
{
    uint64_t oldest = t->last > SPANS ? t->last - SPANS + 1 : 1, from = WS_MAX(after + 1, oldest);
    if (after >= t->last) /* or of a trace before this one */
        return true;
    uint64_t n = WS_MIN(t->last - from + 1, (uint64_t)SPANS_PER_REPLY);
    ret->lost = from - after - 1;
    ret->spans = ws_arena_array(&s->arena, n, sizeof *ret->spans);
    if (!ret->spans)
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (!(ret->spans[ret->n_spans++] = span_message(&s->arena, &t->ring[(from + i) % SPANS])))
            return false;
    return true;
}

void ws_tracing_reply(struct ws_server *s, const struct ws_peer *to, const Ws__TraceRequest *q)
{
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__TraceReply r = WS__TRACE_REPLY__INIT;
    if (!q || (!s->tracing && !(s->tracing = ws_alloc(sizeof *s->tracing))))
        return;
    s->tracing->asked_ns = ws_clock_ns();
    r.version = WS_PROTOCOL_VERSION;
    r.last = s->tracing->last;
    if (!fill_reply(s, s->tracing, q->after, &r))
        return;
    m.trace = &r;
    (void)ws_server_send(s, to, &m); /* a peer that does not fetch its answer has none */
}

void ws_tracing_turn(struct ws_server *s)
{
    if (ws_clock_ns() - s->tracing->asked_ns > KEEP_NS)
        ws_tracing_free(s);
}

void ws_tracing_free(struct ws_server *s)
{
    free(s->tracing);
    s->tracing = NULL;
}

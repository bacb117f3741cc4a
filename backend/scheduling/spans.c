// SPDX-License-Identifier: Apache-2.0
/* Spans of operations that have ended, in a ring of fixed size, numbered from 1. */
#include "backend/scheduling/spans.h"

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/client/stream.h"
#include "backend/scheduling/dispatch.h"

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

static void launch_span(struct ws_span *p, const struct ws_command *j, uint32_t n_sm)
{
    const struct ws_op *op = &j->op;
    uint64_t blocks = (uint64_t)op->launch.grid[0] * op->launch.grid[1] * op->launch.grid[2];
    uint32_t n = op->launch.sms.n ? op->launch.sms.n : n_sm;
    p->kind = WS__TRACE_SPAN__KIND__KERNEL;
    p->n_blocks = blocks;
    p->n_sms = (uint32_t)WS_MIN((uint64_t)n, blocks);
    p->some_sms = op->launch.sms.n != 0;
    memcpy(p->sms, op->launch.sms.bits, sizeof(p->sms));
    copy_text(p->name, sizeof(p->name), j->kernel_name ? j->kernel_name : "");
    p->stopped = op->preempted;
}

void ws_spans_add(const struct ws_command *j)
{
    const struct ws_op *op = &j->op;
    struct ws_client *c = j->client;
    struct ws_tracing *t = c->server->tracing;
    const struct ws_device *d = j->stream->context->gpu->device;
    struct ws_span *p = &t->ring[++t->last % WS_SPANS];
    bool held = j->held_ns > 0; /* by the policy, before a device knew it */
    *p = (struct ws_span){.serial = t->last,
                          .stream = j->stream->id,
                          .ready_ns = held ? WS_MIN(j->held_ns, op->ready_ns) : op->ready_ns,
                          .start_ns = op->start_ns,
                          .end_ns = op->end_ns,
                          .energy_uj = op->energy_uj,
                          .gpu = d->index,
                          .client = c->id,
                          .pid = c->who.pid,
                          .uid = c->who.uid,
                          .job = ws_dispatch_job_of(j->stream->context),
                          .error = ws_error_of_device(op->error)};
    copy_text(p->task, sizeof(p->task), c->who.task[0] ? c->who.task : c->work.name);
    if (op->kind == WS_OPK_LAUNCH) {
        launch_span(p, j, d->spec.n_sms);
    } else {
        bool copy = op->kind == WS_OPK_COPY;
        p->kind = copy ? WS__TRACE_SPAN__KIND__COPY : WS__TRACE_SPAN__KIND__FILL;
        p->bytes = copy ? ws_op_copy_bytes(op) : fill_bytes(op);
    }
}

void ws_spans_add_gated(const struct ws_context *x, uint64_t start_ns, uint64_t end_ns,
                        uint64_t energy_uj, uint64_t n_launches)
{
    const struct ws_client *c = x->client;
    struct ws_tracing *t = c->server->tracing;
    struct ws_span *p = &t->ring[++t->last % WS_SPANS];
    *p = (struct ws_span){.serial = t->last,
                          .ready_ns = start_ns,
                          .start_ns = start_ns,
                          .end_ns = end_ns,
                          .energy_uj = energy_uj,
                          .gpu = x->gpu->device->index,
                          .client = c->id,
                          .pid = c->who.pid,
                          .uid = c->who.uid,
                          .job = ws_dispatch_job_of(x),
                          .n_sms = x->gpu->device->spec.n_sms,
                          .kind = WS__TRACE_SPAN__KIND__KERNEL};
    copy_text(p->task, sizeof(p->task), c->who.task[0] ? c->who.task : c->work.name);
    snprintf(p->name, sizeof(p->name), "gated: %llu launches", (unsigned long long)n_launches);
}

// SPDX-License-Identifier: Apache-2.0
/* What an operation that has ended adds to its client's account, to what is learned of its
 * kernel, and to the trace. */
#include "backend/scheduling/account.h"

#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/client/stream.h"
#include "backend/learn/learn.h"
#include "backend/scheduling/spans.h"
#include "device/space.h"

/* For bench/passes.sh and tests/process/differential.sh. */
static void log_launch(const struct ws_command *j)
{
    const struct ws_op *op = &j->op;
    uint64_t threads = 1;
    for (int d = 0; d < 3; d++)
        threads *= (uint64_t)op->launch.grid[d] * op->launch.block[d];
    char memory[24] = "-"; /* of all the client's memory, where nothing else is changing it */
    if (ws_debug_on("launch.memory") && !j->client->n_in_flight)
        snprintf(
            memory, sizeof(memory), "%016llx",
            (unsigned long long)ws_space_digest(j->client->memory.space, WS_VA_FIRST, WS_VA_LAST));
    ws_log(WS_DEBUG,
           "launch: client=%u insns=%llu warp_insns=%llu threads=%llu memory=%s kernel=%s",
           j->client->id, (unsigned long long)op->n_thread_insns,
           (unsigned long long)op->counts.n_warp_insns, (unsigned long long)threads, memory,
           j->kernel_name);
}

void ws_account_learn(struct ws_command *j)
{
    const struct ws_op *op = &j->op;
    const struct ws_device *d = j->stream->context->gpu->device;
    struct ws_learn *l = j->client->server->learn;
    if (!l)
        return;
    if (op->kind == WS_OPK_LAUNCH) {
        struct ws_learn_key key = {.kernel = j->learn, .shared_bytes = op->launch.shared_bytes};
        memcpy(key.grid, op->launch.grid, sizeof(key.grid));
        memcpy(key.block, op->launch.block, sizeof(key.block));
        struct ws_learn_run run = {.gpu = d->index,
                                   .uid = j->client->who.uid,
                                   .start_ns = op->start_ns,
                                   .end_ns = op->end_ns,
                                   .alone_uj = op->alone_uj,
                                   .sms = op->launch.sms,
                                   .counts = op->counts,
                                   .other = op->error || op->preempted || j->relaunch || j->fused ||
                                            d->clocked};
        ws_learn_ran(l, &key, &d->spec, &run);
    }
    ws_learn_ended(l, d->index, j->meter_mark);
    if (op->preempted)
        j->learn = NULL; /* what is left of it is no measure either */
}

static bool is_of_host(uint64_t va)
{
    return va < WS_VA_FIRST || va >= WS_VA_LAST;
}

/* What a copy takes over the link to the host. */
static void account_copy(struct ws_command *j)
{
    const struct ws_op *op = &j->op;
    struct ws_gpu *g = j->stream->context->gpu;
    uint64_t bytes = ws_op_copy_bytes(op);
    bool in = op->copy.src_host, out = !in && op->copy.dst_host;
    if (!in && !out) {
        in = is_of_host(op->copy.src_va);
        out = is_of_host(op->copy.dst_va);
    }
    j->client->stats.bytes_in += in ? bytes : 0;
    j->client->stats.bytes_out += out ? bytes : 0;
    g->bytes_in += in ? bytes : 0;
    g->bytes_out += out ? bytes : 0;
}

void ws_account_op(struct ws_command *j)
{
    struct ws_client *c = j->client;
    struct ws_client_stats *t = &c->stats;
    const struct ws_op *op = &j->op;
    ws_account_learn(j);
    if (op->kind == WS_OPK_LAUNCH) {
        t->n_kernels += !op->preempted;
        if (WS_UNLIKELY(c->server->log_launches))
            log_launch(j);
    } else {
        t->n_copies++;
        if (op->kind == WS_OPK_COPY)
            account_copy(j);
    }
    t->device_ns += op->end_ns - op->start_ns;
    t->energy_uj += op->energy_uj;
    t->first_start_ns = WS_MIN(t->first_start_ns, op->start_ns);
    t->last_end_ns = WS_MAX(t->last_end_ns, op->end_ns);
    t->used_gpus |= 1u << j->stream->context->gpu->device->index;
    if (WS_UNLIKELY(c->server->tracing != NULL))
        ws_spans_add(j);
}

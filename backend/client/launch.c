// SPDX-License-Identifier: Apache-2.0
/* Launches: the hot path. The device checks grid, block and resources; here is checked only what
 * the client names: its streams, modules and functions. */
#include "backend/client/submit.h"

#include <string.h>

#include "backend/backend.h"
#include "backend/client/memory.h"
#include "backend/client/module.h"
#include "backend/code/kernels.h"
#include "backend/client/relaunch.h"
#include "backend/client/sms.h"
#include "backend/client/stream.h"
#include "backend/config/task.h"
#include "backend/learn/learn.h"
#include "device/started.h"

/* The task's SMs are not on this GPU: says so, since the error alone would puzzle. */
static Ws__Error no_sms(struct ws_context *x)
{
    char sms[256];
    const struct ws_task *t = &x->client->work;
    ws_client_async_error(x->client, x, WS__ERROR__OUT_OF_RESOURCES,
                          "task %s may use the SMs %s only, and GPU %u (%s) has 0 to %u: give it "
                          "others, or gpu = \"…\", in wattshared.conf",
                          t->name, ws_sm_set_text(&t->sms, sms, sizeof(sms)), x->gpu->device->index,
                          x->gpu->device->spec.name, x->gpu->device->spec.n_sms - 1);
    return WS__ERROR__OUT_OF_RESOURCES;
}

/* Whether kernels like that may be launched there now; makes ready what they need. */
static Ws__Error prepare(struct ws_context *x, const struct ws_kernel_info *info)
{
    if (WS_UNLIKELY(info->unsupported))
        return ws_error_of_kernel(info);
    ws_context_sms(x);
    if (WS_UNLIKELY(x->no_sms))
        return no_sms(x);
    if (WS_UNLIKELY(info->uses_heap)) {
        Ws__Error e = ws_memory_place_heap(x);
        if (e)
            return e;
    }
    if (WS_UNLIKELY(info->prints || info->starts)) /* what it starts may print */
        return ws_memory_place_printed(x->client);
    return WS__ERROR__OK;
}

static void set_shape(struct ws_op *op, const uint32_t grid[3], const uint32_t block[3],
                      uint32_t shared_bytes)
{
    memcpy(op->launch.grid, grid, sizeof(op->launch.grid));
    memcpy(op->launch.block, block, sizeof(op->launch.block));
    op->launch.shared_bytes = shared_bytes;
}

static void set_cluster(struct ws_op *op, const uint32_t cluster[3],
                        const struct ws_kernel_info *info)
{
    memcpy(op->launch.cluster, cluster, sizeof(op->launch.cluster));
    ws_op_take_cluster(op, info);
}

Ws__Error ws_launch_submit(struct ws_client *c, const Ws__Launch *m, uint64_t seq, bool *ret_queued)
{
    struct ws_stream *s = ws_stream_find(c, m->stream);
    struct ws_module *mod = ws_module_find(c, m->function >> WS_FUNCTION_INDEX_BITS);
    uint32_t index = m->function & ((1u << WS_FUNCTION_INDEX_BITS) - 1);
    if (!s || !mod || index >= mod->code->n_kernels || mod->context != s->context)
        return WS__ERROR__INVALID_HANDLE;
    const struct ws_kernel_info *info = &mod->code->info->kernels[index];
    Ws__Error e = prepare(s->context, info);
    if (e)
        return e;
    uint32_t n = info->param_bytes;
    if (m->params.len < n || n > c->limits.max_param_bytes)
        return WS__ERROR__INVALID_VALUE;
    struct ws_command *j = ws_command_new(c, WS_COMMAND_OP);
    if (!j)
        return WS__ERROR__INTERNAL;
    uint8_t *params = ws_command_bytes(j, n);
    if (!params) {
        ws_command_free(j);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    if (n)
        memcpy(params, m->params.data, n);
    j->seq = seq;
    j->module = ws_module_ref(mod);
    j->kernel_name = info->name;
    j->op.kind = WS_OPK_LAUNCH;
    mod->launched = true;
    j->op.launch.kernel = index;
    set_shape(&j->op, (const uint32_t[]){m->grid_x, m->grid_y, m->grid_z},
              (const uint32_t[]){m->block_x, m->block_y, m->block_z}, m->shared_bytes);
    j->op.launch.flags = m->flags & 1 ? WS_LAUNCH_COOPERATIVE : 0;
    j->op.launch.params = params;
    j->op.launch.param_bytes = n;
    set_cluster(&j->op, (const uint32_t[]){m->cluster_x, m->cluster_y, m->cluster_z}, info);
    /* Blocks of a cooperative launch, or of a cluster, must all be there at once, and the program
     * has counted the device's SMs. */
    j->op.launch.sms = ws_op_is_together(&j->op) ? s->context->task_sms : s->context->sms;
    j->learn = ws_learn_code_kernel(mod->code->learn, index);
    j->op.launch.progress = NULL;
    j->op.launch.parts = NULL;
    j->op.launch.started = NULL;
    if (WS_UNLIKELY(info->starts))
        j->op.launch.started = j->started = ws_started_new(c->memory.space);
    const struct ws_rewritten *rewritten = info->starts ? NULL : mod->code->rewritten;
    j->stream = s;
    if (WS_UNLIKELY(rewritten != NULL) && rewritten[index].kernel >= 0)
        ws_relaunch_begin(j, &rewritten[index], &mod->code->info->kernels[rewritten[index].kernel]);
    *ret_queued = true;
    ws_stream_push(s, j);
    return WS__ERROR__OK;
}

static void next_launch(struct ws_command *j, const struct ws_start *w)
{
    struct ws_context *x = j->stream->context;
    const struct ws_kernel_info *info = &j->module->code->info->kernels[w->launch.kernel];
    struct ws_op *op = &j->op;
    ws_context_sms(x);
    op->launch.kernel = w->launch.kernel;
    set_shape(op, w->launch.grid, w->launch.block, w->launch.shared_bytes);
    set_cluster(op, (const uint32_t[3]){0}, info);
    op->launch.sms = ws_op_is_together(op) ? x->task_sms : x->sms;
    op->launch.params = w->params;
    op->launch.param_bytes = w->param_bytes;
    op->launch.started = j->started;
    j->kernel_name = info->name;
    j->learn = ws_learn_code_kernel(j->module->code->learn, w->launch.kernel);
}

void ws_launch_next(struct ws_command *j)
{
    const struct ws_start *w = ws_started_next(j->started);
    j->op = (struct ws_op){.kind = w->kind};
    switch (w->kind) {
    case WS_OPK_LAUNCH:
        next_launch(j, w);
        break;
    case WS_OPK_COPY:
        j->op.copy.dst_va = w->copy.dst_va;
        j->op.copy.src_va = w->copy.src_va;
        j->op.copy.bytes = w->copy.bytes;
        j->op.copy.height = w->copy.height;
        j->op.copy.depth = w->copy.depth;
        j->op.copy.dst = w->copy.dst;
        j->op.copy.src = w->copy.src;
        break;
    case WS_OPK_FILL:
        j->op.fill.va = w->fill.va;
        j->op.fill.width_bytes = w->fill.width_bytes;
        j->op.fill.height = w->fill.height;
        j->op.fill.pitch_bytes = w->fill.pitch_bytes;
        j->op.fill.value = w->fill.value;
        j->op.fill.value_bytes = 1;
        break;
    }
}

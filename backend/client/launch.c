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

#include <string.h>

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

Ws__Error ws_launch_submit(struct ws_client *c, const Ws__Launch *m, uint64_t seq, bool *ret_queued)
{
    struct ws_stream *s = ws_stream_find(c, m->stream);
    struct ws_module *mod = ws_module_find(c, m->function >> WS_FUNCTION_INDEX_BITS);
    uint32_t index = m->function & ((1u << WS_FUNCTION_INDEX_BITS) - 1);
    if (!s || !mod || index >= mod->code->n_kernels || mod->context != s->context)
        return WS__ERROR__INVALID_HANDLE;
    const struct ws_kernel_info *info = &mod->code->info->kernels[index];
    if (WS_UNLIKELY(info->unsupported))
        return ws_error_of_kernel(info);
    ws_context_sms(s->context);
    if (WS_UNLIKELY(s->context->no_sms))
        return no_sms(s->context);
    if (WS_UNLIKELY(info->uses_heap)) {
        Ws__Error e = ws_memory_place_heap(s->context);
        if (e)
            return e;
    }
    if (WS_UNLIKELY(info->prints)) {
        Ws__Error e = ws_memory_place_printed(c);
        if (e)
            return e;
    }
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
    j->op.launch.grid[0] = m->grid_x;
    j->op.launch.grid[1] = m->grid_y;
    j->op.launch.grid[2] = m->grid_z;
    j->op.launch.block[0] = m->block_x;
    j->op.launch.block[1] = m->block_y;
    j->op.launch.block[2] = m->block_z;
    j->op.launch.shared_bytes = m->shared_bytes;
    j->op.launch.flags = m->flags & 1 ? WS_LAUNCH_COOPERATIVE : 0;
    j->op.launch.params = params;
    j->op.launch.param_bytes = n;
    /* Blocks of a cooperative launch must all be there at once, and the program has counted the
     * device's SMs. */
    j->op.launch.sms =
        j->op.launch.flags & WS_LAUNCH_COOPERATIVE ? s->context->task_sms : s->context->sms;
    j->learn = ws_learn_code_kernel(mod->code->learn, index);
    j->op.launch.progress = NULL;
    j->op.launch.parts = NULL;
    const struct ws_rewritten *rewritten = mod->code->rewritten;
    j->stream = s;
    if (WS_UNLIKELY(rewritten != NULL) && rewritten[index].kernel >= 0)
        ws_relaunch_begin(j, &rewritten[index], &mod->code->info->kernels[rewritten[index].kernel]);
    *ret_queued = true;
    ws_stream_push(s, j);
    return WS__ERROR__OK;
}

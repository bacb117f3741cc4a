// SPDX-License-Identifier: Apache-2.0
/* The pool of commands. A command owns what it refers to: freeing it gives all of that back. */
#include "backend/client/command.h"

#include "backend/backend.h"
#include "backend/client/event.h"
#include "backend/client/host_function.h"
#include "backend/client/module.h"
#include "backend/client/relaunch.h"
#include "backend/client/segment.h"
#include "backend/client/user.h"
#include "base/alloc.h"
#include "device/started.h"

enum { POOL_KEEP = 4096 };
/* What the commands of a client take is charged in steps, so that few of them cost no time. */
enum { FREE_BYTES = 256 << 10, CHARGE_BYTES = 64 << 10 };

static size_t bytes_of(enum ws_command_kind kind)
{
    return kind == WS_COMMAND_MARK
               ? offsetof(struct ws_command, op) + sizeof(enum ws_op_kind) + sizeof(uint64_t)
               : sizeof(struct ws_command);
}

/* Return: false: the client has been dropped. */
static bool charge_step(struct ws_client *c)
{
    if (ws_client_charge(c, WS_RESOURCE_QUEUED_BYTES, CHARGE_BYTES)) {
        ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED,
                       "too many commands that wait: its user may have no more");
        return false;
    }
    c->commands.charged_bytes += CHARGE_BYTES;
    return true;
}

static void uncharge(struct ws_client *c, size_t bytes)
{
    c->commands.bytes -= bytes;
    if (WS_LIKELY(c->commands.bytes + CHARGE_BYTES > c->commands.charged_bytes))
        return;
    ws_client_release(c, WS_RESOURCE_QUEUED_BYTES, CHARGE_BYTES);
    c->commands.charged_bytes -= CHARGE_BYTES;
}

static struct ws_command *command_alloc(struct ws_server *s, enum ws_command_kind kind)
{
    struct ws_command *j = s->commands.pool;
    if (kind == WS_COMMAND_MARK || !j)
        return malloc(bytes_of(kind));
    s->commands.pool = j->next;
    s->commands.n_pool--;
    return j;
}

struct ws_command *ws_command_new(struct ws_client *c, enum ws_command_kind kind)
{
    c->commands.bytes += bytes_of(kind);
    if (WS_UNLIKELY(c->commands.bytes > c->commands.charged_bytes + FREE_BYTES) &&
        !charge_step(c)) {
        c->commands.bytes -= bytes_of(kind);
        return NULL;
    }
    struct ws_command *j = command_alloc(c->server, kind);
    if (WS_UNLIKELY(!j)) {
        uncharge(c, bytes_of(kind));
        ws_client_drop_no_memory(c);
        return NULL;
    }
    j->client = c;
    j->kind = kind;
    j->next = NULL;
    j->stream = NULL;
    j->epoch = NULL;
    j->seq = 0;
    j->floor_ns = j->held_ns = 0;
    j->n_resets = 0;
    j->module = NULL;
    j->replies = false;
    j->is_command = true;
    j->submitting = j->finished_inline = false;
    j->bulk = WS__COPY__BULK__NONE;
    j->segment = NULL;
    j->record = NULL;
    j->join = NULL;
    j->host_function = NULL;
    j->relaunch = NULL;
    j->started = NULL;
    j->in_job = false;
    j->fused = NULL;
    j->carries = NULL;
    j->moved_from = NULL;
    j->moved_va = 0;
    j->op.kind = WS_OPK_FILL;
    j->learn = NULL;
    j->buffer = NULL;
    j->frame = NULL;
    j->charged_bytes = 0;
    return j;
}

Ws__Error ws_command_charge(struct ws_command *j, uint64_t n)
{
    Ws__Error e = ws_client_charge(j->client, WS_RESOURCE_QUEUED_BYTES, n);
    j->charged_bytes += e ? 0 : n;
    return e;
}

uint8_t *ws_command_bytes(struct ws_command *j, uint64_t n)
{
    if (WS_LIKELY(n <= sizeof(j->inline_bytes)))
        return j->inline_bytes;
    return j->buffer = ws_command_charge(j, n) ? NULL : malloc(n);
}

void ws_command_free(struct ws_command *j)
{
    struct ws_server *s = j->client->server;
    if (j->segment)
        ws_segment_put(j->segment, j->client);
    if (j->record && j->kind == WS_COMMAND_RECORD && !j->record->done)
        ws_record_finish(j->record, 0); /* its client goes: nobody need wait for it */
    if (j->record)
        ws_record_unref(j->record);
    if (j->host_function) {
        HASH_DEL(j->client->host_functions, j->host_function);
        free(j->host_function);
    }
    ws_relaunch_free(j->relaunch);
    ws_started_free(j->started);
    ws_memory_unref(j->moved_from);
    if (j->module)
        ws_module_unref(j->module);
    if (j->kind == WS_COMMAND_OP && j->op.kind == WS_OPK_LAUNCH)
        ws_progress_free(j->op.launch.progress);
    ws_buffer_unref(j->frame);
    if (j->join)
        ws_client_object_gone(j->client);
    if (j->charged_bytes)
        ws_client_release(j->client, WS_RESOURCE_QUEUED_BYTES, j->charged_bytes);
    free(j->buffer);
    uncharge(j->client, bytes_of(j->kind));
    if (j->kind == WS_COMMAND_MARK || s->commands.n_pool >= POOL_KEEP) {
        free(j);
        return;
    }
    j->next = s->commands.pool;
    s->commands.pool = j;
    s->commands.n_pool++;
}

void ws_command_pool_free(struct ws_server *s)
{
    while (s->commands.pool) {
        struct ws_command *next = s->commands.pool->next;
        free(s->commands.pool);
        s->commands.pool = next;
    }
}

Ws__Error ws_error_of_device(enum ws_dev_error e)
{
    static const Ws__Error map[_WS_DEV_E_N] = {
        [WS_DEV_OK] = WS__ERROR__OK,
        [WS_DEV_E_ILLEGAL_ADDRESS] = WS__ERROR__ILLEGAL_ADDRESS,
        [WS_DEV_E_MISALIGNED] = WS__ERROR__MISALIGNED_ADDRESS,
        [WS_DEV_E_TRAP] = WS__ERROR__TRAP,
        [WS_DEV_E_ASSERT] = WS__ERROR__ASSERT,
        [WS_DEV_E_TIMEOUT] = WS__ERROR__LAUNCH_TIMEOUT,
        [WS_DEV_E_ILLEGAL_INSTRUCTION] = WS__ERROR__ILLEGAL_INSTRUCTION,
        [WS_DEV_E_STACK_OVERFLOW] = WS__ERROR__STACK_OVERFLOW,
        [WS_DEV_E_LAUNCH_FAILURE] = WS__ERROR__LAUNCH_FAILURE,
        [WS_DEV_E_INVALID_VALUE] = WS__ERROR__INVALID_VALUE,
        [WS_DEV_E_RESOURCES] = WS__ERROR__OUT_OF_RESOURCES,
        [WS_DEV_E_NO_MEMORY] = WS__ERROR__OUT_OF_MEMORY,
        [WS_DEV_E_INVALID_CONFIGURATION] = WS__ERROR__INVALID_CONFIGURATION,
        [WS_DEV_E_COOPERATIVE_TOO_LARGE] = WS__ERROR__COOPERATIVE_TOO_LARGE,
        [WS_DEV_E_INVALID_CLUSTER] = WS__ERROR__INVALID_CLUSTER,
        [WS_DEV_E_CANCELLED] = WS__ERROR__CANCELLED,
    };
    return (unsigned)e < _WS_DEV_E_N ? map[e] : WS__ERROR__INTERNAL;
}

// SPDX-License-Identifier: Apache-2.0
/* The memory that a thread writes to stays: who frees variables of a module frees the module, and
 * host memory is unmapped when nothing of the client is in flight. Nor do the module's present
 * addresses change, since it has one instance made at a time. */
#include "backend/client/instance.h"

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/alloc.h"
#include "device/space.h"

/* Written on the loop: what takes less than 0.2 ms, where the host sees the device's memory. Else a
 * driver does it, which may wait for kernels. */
enum { QUICK_BYTES = 256 << 10 };

struct making {
    struct ws_loader_work work;
    struct ws_device *device;
    struct ws_space *space;
    uint64_t first_va;      /* of the module's memory */
    const uint64_t *old_va; /* NULL: it has none yet */
    bool keep;
    Ws__Error (*tell)(struct ws_instance_made *made);
    void (*done)(struct ws_instance_made *made);
    struct ws_instance_made made;
    size_t n_addresses;
    uint64_t addresses[];
};

/* Whether host memory of the client is mapped there, to which it may write. */
static bool has_host_memory(const struct making *w, uint64_t va, uint64_t bytes)
{
    struct ws_mapping at;
    return va % 16 == 0 && ws_space_find(w->space, va, bytes, &at) && !at.device &&
           !(at.flags & WS_MAP_READONLY);
}

static Ws__Error move_variables(struct making *w)
{
    const struct ws_dmodule_info *info = w->made.module->code->info;
    size_t n = 0;
    for (uint32_t i = 0; i < info->n_vars; i++) {
        const struct ws_ptx_var *v = &info->vars[i];
        w->made.var_va[i] = w->old_va[i];
        if (!v->managed || !w->old_va[i])
            continue;
        if (n >= w->n_addresses || !has_host_memory(w, w->addresses[n], v->size_bytes))
            return WS__ERROR__INVALID_VALUE;
        w->made.var_va[i] = w->addresses[n++];
    }
    return n == w->n_addresses ? WS__ERROR__OK : WS__ERROR__INVALID_VALUE;
}

static Ws__Error place(struct making *w)
{
    const struct ws_code_entry *code = w->made.module->code;
    w->made.var_va = ws_alloc_array(code->info->n_vars + 1, sizeof(*w->made.var_va));
    if (!w->made.var_va)
        return WS__ERROR__OUT_OF_MEMORY;
    if (w->old_va) {
        unsigned epoch = ws_space_enter(w->space);
        Ws__Error e = move_variables(w);
        ws_space_leave(w->space, epoch);
        return e;
    }
    for (uint32_t i = 0; i < code->info->n_vars; i++)
        if (code->places.at[i] != WS_NO_PLACE)
            w->made.var_va[i] = w->first_va + code->places.at[i];
    return WS__ERROR__OK;
}

static Ws__Error make(struct making *w)
{
    const struct ws_code_entry *code = w->made.module->code;
    Ws__Error e = place(w);
    if (e)
        return e;
    int r = (w->keep ? ws_device_instance_again : ws_device_instance_new)(
        w->device, code->dmodule, w->space, w->made.var_va, &w->made.instance);
    if (r) {
        w->made.instance = NULL;
        return r == -ENOMEM ? WS__ERROR__OUT_OF_MEMORY : WS__ERROR__INVALID_IMAGE;
    }
    if (code->info->own_vars)
        ws_device_instance_vars(w->device, w->made.instance, w->made.var_va);
    return w->tell ? w->tell(&w->made) : WS__ERROR__OK;
}

static void finish(struct making *w)
{
    if (w->made.error && w->made.instance) {
        ws_device_instance_free(w->device, w->made.instance);
        w->made.instance = NULL;
    }
    w->done(&w->made);
    free(w->made.var_va);
    free(w->made.told);
    free(w);
}

static void work(struct ws_loader_work *work)
{
    struct making *w = WS_CONTAINER_OF(work, struct making, work);
    w->made.error = make(w);
}

static void worked(struct ws_loader_work *work)
{
    struct making *w = WS_CONTAINER_OF(work, struct making, work);
    ws_client_landed(w->made.module->context->client);
    finish(w);
}

void ws_instance_make(const struct ws_instance_want *want)
{
    struct ws_module *m = want->module;
    struct ws_client *c = m->context->client;
    const struct ws_variable_places *p = &m->code->places;
    size_t n = want->n_addresses * sizeof(want->addresses[0]);
    struct making *w = ws_alloc(sizeof(*w) + n);
    if (!w) {
        want->done(&(struct ws_instance_made){
            .module = m, .seq = want->seq, .error = WS__ERROR__OUT_OF_MEMORY});
        return;
    }
    *w = (struct making){
        .work = {.work = work, .done = worked, .account = c->who.account},
        .device = m->context->gpu->device,
        .space = c->memory.space,
        .first_va = m->variables ? m->variables->va : 0,
        .old_va = m->var_va,
        .keep = want->keep,
        .tell = want->tell,
        .done = want->done,
        .made = {.module = m,
                 .seq = want->seq,
                 .error = WS__ERROR__OUT_OF_MEMORY /* unless it is taken up */},
        .n_addresses = want->n_addresses,
    };
    if (n)
        memcpy(w->addresses, want->addresses, n);
    if (!w->device->ops->map &&
        (want->keep ? p->written_keeping_bytes : p->written_bytes) < QUICK_BYTES) {
        w->made.error = make(w);
        finish(w);
        return;
    }
    c->n_in_flight++;
    ws_loader_run(c->server->loader, &w->work);
}

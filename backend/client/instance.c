// SPDX-License-Identifier: Apache-2.0
/* The memory that a thread writes to stays: who frees variables of a module frees the module, and
 * host memory is unmapped when nothing of the client is in flight. */
#include "backend/client/instance.h"

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/alloc.h"

/* Written on the loop: what takes less than 0.2 ms, where the host sees the device's memory. Else a
 * driver does it, which may wait for kernels. */
enum { QUICK_BYTES = 256 << 10, VARIABLE_BYTES = 256 };

struct making {
    struct ws_loader_work work;
    struct ws_device *device;
    struct ws_dmodule *dmodule;
    struct ws_space *space;
    bool keep;
    void (*done)(const struct ws_instance_made *made);
    struct ws_instance_made made;
    int r;
    uint64_t var_va[];
};

/* About what is written. A variable that has no initial value is cleared, which costs as much as
 * its pages: new memory has none yet, but memory that the client maps may. */
static uint64_t written_bytes(const struct ws_module *m, bool keep)
{
    const struct ws_dmodule_info *info = m->code->info;
    uint64_t n = (uint64_t)info->n_vars * VARIABLE_BYTES;
    for (uint32_t i = 0; i < info->n_vars; i++) {
        const struct ws_ptx_var *v = &info->vars[i];
        if (!keep || !v->managed)
            n += v->managed ? v->size_bytes : v->init_bytes;
    }
    return n;
}

static void make(struct making *w)
{
    w->r = (w->keep ? ws_device_instance_again : ws_device_instance_new)(
        w->device, w->dmodule, w->space, w->var_va, &w->made.instance);
}

static void finish(struct making *w)
{
    if (w->r) {
        w->made.instance = NULL;
        w->made.error = w->r == -ENOMEM ? WS__ERROR__OUT_OF_MEMORY : WS__ERROR__INVALID_IMAGE;
    }
    w->done(&w->made);
    free(w);
}

static void work(struct ws_loader_work *w)
{
    make(WS_CONTAINER_OF(w, struct making, work));
}

static void worked(struct ws_loader_work *work)
{
    struct making *w = WS_CONTAINER_OF(work, struct making, work);
    struct ws_client *c = w->made.module->context->client;
    struct ws_list *last = c->joins.quiescing.prev;
    c->n_in_flight--;
    if (!c->n_in_flight && !c->dropped && last != &c->joins.quiescing) {
        ws_list_remove(last); /* it looks again */
        ws_list_append(&c->joins.reached, last);
        ws_client_runs(c);
    }
    finish(w);
}

void ws_instance_make(struct ws_module *m, const uint64_t *var_va, bool keep, uint64_t seq,
                      void (*done)(const struct ws_instance_made *made))
{
    struct ws_client *c = m->context->client;
    size_t n = m->code->info->n_vars * sizeof(*var_va);
    struct making *w = ws_alloc(sizeof(*w) + n);
    if (!w) {
        done(&(struct ws_instance_made){m, seq, var_va, NULL, WS__ERROR__OUT_OF_MEMORY});
        return;
    }
    *w = (struct making){
        .work = {.work = work, .done = worked, .account = c->who.account},
        .device = m->context->gpu->device,
        .dmodule = m->code->dmodule,
        .space = c->memory.space,
        .keep = keep,
        .done = done,
        .made = {.module = m, .seq = seq, .var_va = w->var_va},
        .r = -ENOMEM, /* unless it is taken up */
    };
    memcpy(w->var_va, var_va, n);
    if (!w->device->ops->map && written_bytes(m, keep) < QUICK_BYTES) {
        make(w);
        finish(w);
        return;
    }
    c->n_in_flight++;
    ws_loader_run(c->server->loader, &w->work);
}

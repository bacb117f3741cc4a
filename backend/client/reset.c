// SPDX-License-Identifier: Apache-2.0
/* Resetting a context. What its kernels may use while they run or wait (modules, allocations,
 * mappings) is only renamed in the first step, and freed in the second. What nothing uses while it
 * runs (events, handles, idle streams) goes in the first. */
#include "backend/client/reset.h"

#include "backend/backend.h"
#include "backend/client/event.h"
#include "backend/client/join.h"
#include "backend/client/memory.h"
#include "backend/client/module.h"
#include "backend/client/vmm.h"

static void streams_let_go(struct ws_context *x)
{
    ws_list_for_each_safe (n, &x->streams) {
        struct ws_stream *s = ws_list_entry(n, struct ws_stream, node);
        if (!s->legacy)
            ws_stream_let_go(s);
    }
}

void ws_context_reset_begin(struct ws_context *x, struct ws_join *join)
{
    struct ws_client *c = x->client;
    struct ws_module *m, *m_next;
    struct ws_allocation *a, *a_next;
    x->n_resets++;
    ws_module_loads_forget(c, x);
    HASH_ITER (hh, c->modules.by_id, m, m_next)
        if (m->context == x)
            ws_join_take_module(join, m);
    HASH_ITER (hh, c->memory.allocations, a, a_next)
        if (a->context == x && !a->freeing && !a->internal)
            ws_join_take_allocation(join, a);
    ws_vmm_reset_begin(x);
    ws_events_forget_context(c, x);
    streams_let_go(x);
}

void ws_context_reset_end(struct ws_context *x, struct ws_join *join)
{
    struct ws_client *c = x->client;
    x->n_resets_done++;
    ws_join_free_taken(join);
    ws_vmm_reset_end(x);
    ws_peers_forget(x);
    ws_memory_drop_heap(x);
    if (c->errors.sticky && c->errors.sticky_context == x) {
        c->errors.sticky = WS__ERROR__OK;
        c->errors.sticky_context = NULL;
    }
    c->errors.async = WS__ERROR__OK;
}

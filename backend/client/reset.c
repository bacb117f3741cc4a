// SPDX-License-Identifier: Apache-2.0
/* Resetting a context. What its kernels may use while they run or wait (modules, allocations,
 * mappings) is only renamed in the first step, and freed in the second. What nothing uses while it
 * runs (events, handles, idle streams) goes in the first. Both steps are chores, for a client may
 * have very many things. */
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

struct reset_begin {
    struct ws_chore chore;
    struct ws_join *join;
    bool begun;
    /* The next ones to look at. Only commands take these away, which wait; allocations are walked
     * by memory.h. */
    struct ws_module *module;
    struct ws_event *event;
    struct ws_vmm_place at;
};

static bool take_module(struct reset_begin *w)
{
    struct ws_module *m = w->module;
    if (!m)
        return false;
    w->module = m->hh.next;
    if (m->context == w->join->context)
        ws_join_take_module(w->join, m);
    return true;
}

static bool take_allocation(struct reset_begin *w)
{
    struct ws_allocation *a = ws_memory_walk_next(w->join->client);
    if (a && a->context == w->join->context && !a->freeing && !a->internal)
        ws_join_take_allocation(w->join, a);
    return a != NULL;
}

static bool begin_go_on(struct ws_client *c, struct ws_chore *h, uint64_t until_ns)
{
    struct reset_begin *w = WS_CONTAINER_OF(h, struct reset_begin, chore);
    struct ws_context *x = w->join->context;
    unsigned n = 0;
    if (!w->begun) {
        w->begun = true;
        x->n_resets++;
        ws_module_loads_forget(c, x);
        w->module = c->modules.by_id;
        w->event = c->events.by_id;
        ws_memory_walk_begin(c);
    }
    while (take_module(w) || take_allocation(w) || ws_vmm_reset_begin(x, &w->at) ||
           ws_event_reset_one(x, &w->event) || ws_event_forget_one_shared(x))
        if (ws_chore_stops(&n, until_ns))
            return false;
    streams_let_go(x);
    ws_join_start(w->join, NULL); /* other devices' kernels may use its memory */
    return true;
}

void ws_context_reset_begin(struct ws_join *join)
{
    struct reset_begin *w = ws_chore_new(join->client, sizeof(*w), begin_go_on);
    if (!w)
        return;
    w->join = join;
    ws_chore_begin(join->client, &w->chore);
}

bool ws_context_reset_end(struct ws_join *join, struct ws_reset_end *w, uint64_t until_ns)
{
    struct ws_context *x = join->context;
    struct ws_client *c = x->client;
    unsigned n = 0;
    while (ws_join_free_one_taken(join) || ws_vmm_reset_end(x, &w->at))
        if (ws_chore_stops(&n, until_ns))
            return false;
    if (ws_peers_forget(x)) {
        ws_memory_walk_begin(c);
        w->walks = true;
    }
    if (w->walks && !ws_memory_walk_access(c, NULL, until_ns))
        return false;
    x->n_resets_done++;
    ws_memory_drop_heap(x);
    if (c->errors.sticky && c->errors.sticky_context == x) {
        c->errors.sticky = WS__ERROR__OK;
        c->errors.sticky_context = NULL;
    }
    c->errors.async = WS__ERROR__OK;
    return true;
}

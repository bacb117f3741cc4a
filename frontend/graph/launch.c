// SPDX-License-Identifier: Apache-2.0
/* Launching: the steps of a plan are issued one after another, without waiting for anything; the
 * daemon's streams and events do the rest. An exec runs after its last launch: on another stream it
 * waits for the event that was recorded then.
 *
 * Some nodes need the host when they are reached: functions of the program, copies from or to
 * pageable memory (which must see what earlier nodes wrote there) and conditional nodes. Each of
 * them holds its stream until the host is done (stream/host.h). A conditional node holds its stream
 * while the host starts the body that its value asks for; behind that body, the host is called back
 * to look at the value again. */
#include <pthread.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "frontend/graph/graph.h"
#include "frontend/stream/host.h"
#include "frontend/module/module.h"

static ws_err plan_issue(struct ws_exec *e, struct ws_plan *p, uint64_t stream);

/* ---- copies by the host ---- */

struct copy_task {
    struct ws_stream_work work;
    int device;
};

static void copy_run(void *arg, uint64_t gate)
{
    struct copy_task *t = arg;
    uint64_t stream = gate && !ws_session_lost() ? ws_host_stream(t->device) : 0;
    if (stream && !ws_work_issue(stream, &t->work, false))
        (void)ws_session_stream_sync(stream); /* its error is the context's, and told there */
    ws_host_open(gate);
    free(t);
}

static bool is_pageable(uint64_t address)
{
    struct ws_mem_info m;
    ws_session_mem_find(address, &m);
    return m.kind == WS_MEM_NONE || (m.kind == WS_MEM_PINNED && !ws_session_maps_host());
}

static ws_err issue_copy(uint64_t stream, int device, const struct ws_stream_work *w)
{
    if (!is_pageable(w->copy.dst.address) && !is_pageable(w->copy.src.address))
        return ws_work_issue(stream, w, true);
    struct copy_task *t = ws_alloc(sizeof(*t));
    if (!t)
        return WS__ERROR__OUT_OF_MEMORY;
    *t = (struct copy_task){*w, device};
    ws_err r = ws_host_put_internal(stream, copy_run, t);
    if (r)
        free(t);
    return r;
}

/* ---- conditional nodes ---- */

struct condition_task {
    struct ws_exec *exec; /* reference */
    struct ws_graph_step *step;
    uint64_t gate; /* the node's */
};

static void condition_end(struct condition_task *t)
{
    ws_host_open(t->gate);
    ws_exec_unref(t->exec);
    free(t);
}

static struct ws_plan *body_for(const struct ws_graph_step *s, uint32_t value)
{
    const struct ws_condition *c = &s->node->cond;
    if (c->type == WS_COND_SWITCH)
        return value < c->size ? s->bodies[value] : NULL;
    if (value)
        return s->bodies[0];
    return c->type == WS_COND_IF && c->size > 1 ? s->bodies[1] : NULL;
}

static void condition_again(void *arg, uint64_t gate);

static uint64_t branch_stream(struct ws_plan *p, uint32_t branch)
{
    struct ws_branch *l = &p->branches[branch];
    int device = branch < p->n_branches ? l->device : p->device;
    if (ws_session_stream_info(l->stream, NULL, NULL, NULL) &&
        ws_session_stream_create(device, true, 0, &l->stream))
        return 0;
    if (branch >= p->n_branches) { /* a plan without steps */
        l->device = device;
        p->n_branches = branch + 1;
    }
    return l->stream;
}

static void condition_look(struct condition_task *t)
{
    struct ws_plan *body =
        ws_session_lost() ? NULL : body_for(t->step, ws_handle_read(t->step->node->cond.handle));
    uint64_t stream = body ? branch_stream(body, 0) : 0;
    if (!stream || plan_issue(t->exec, body, stream) ||
        ws_host_put_internal(stream, condition_again, t))
        condition_end(t);
}

static void condition_again(void *arg, uint64_t gate)
{
    struct condition_task *t = arg;
    ws_host_open(gate);
    if (!gate)
        t->gate = 0;
    if (gate && t->step->node->cond.type == WS_COND_WHILE)
        condition_look(t);
    else
        condition_end(t);
}

static void condition_run(void *arg, uint64_t gate)
{
    struct condition_task *t = arg;
    t->gate = gate;
    if (gate)
        condition_look(t);
    else
        condition_end(t);
}

static ws_err issue_condition(struct ws_exec *e, struct ws_graph_step *s, uint64_t stream)
{
    struct condition_task *t = ws_alloc(sizeof(*t));
    if (!t)
        return WS__ERROR__OUT_OF_MEMORY;
    t->exec = e;
    t->step = s;
    e->n_refs++;
    ws_err r = ws_host_put_internal(stream, condition_run, t);
    if (r) {
        ws_exec_unref(e);
        free(t);
    }
    return r;
}

/* ---- plans ---- */

static ws_err issue_node(struct ws_exec *e, struct ws_plan *p, struct ws_graph_step *s,
                         uint64_t stream)
{
    struct ws_node *n = s->node;
    if (!n || n->disabled)
        return WS__ERROR__OK;
    switch (n->type) {
    case WS_NODE_KERNEL:
        if (WS_UNLIKELY(!ws_fn_valid(n->work.launch.fn))) /* its module was unloaded */
            return WS__ERROR__INVALID_HANDLE;
        return ws_work_issue(stream, &n->work, true);
    case WS_NODE_MEMCPY:
        return issue_copy(stream, p->branches[s->branch].device, &n->work);
    case WS_NODE_EMPTY:
    case WS_NODE_MEM_ALLOC:
    case WS_NODE_MEM_FREE:
        return WS__ERROR__OK;
    case WS_NODE_CONDITIONAL:
        return issue_condition(e, s, stream);
    default:
        return ws_work_issue(stream, &n->work, true);
    }
}

static ws_err record(uint64_t *event, int device, uint64_t stream)
{
    ws_err r = WS__ERROR__OK;
    if (WS_UNLIKELY(ws_session_event_device(*event) != device))
        r = ws_session_event_create(device, false, event);
    return r ? r : ws_session_event_record(*event, stream);
}

/* Orders all of @p after what is on @stream, and what comes on @stream later after all of @p. */
static ws_err plan_issue(struct ws_exec *e, struct ws_plan *p, uint64_t stream)
{
    int device = -1;
    ws_err r = ws_session_stream_info(stream, &device, NULL, NULL);
    bool direct =
        !p->n_branches || p->branches[0].device == device; /* branch 0 is @stream itself */
    if (!r && (p->n_branches > 1 || !direct))
        r = record(&p->start, device, stream);
    for (uint32_t i = 0; !r && i < p->n_steps; i++) {
        struct ws_graph_step *s = &p->steps[i];
        bool here = direct && s->branch == 0;
        uint64_t on = here ? stream : branch_stream(p, s->branch);
        if (WS_UNLIKELY(!on))
            return WS__ERROR__OUT_OF_MEMORY;
        if (s->first && !here)
            r = ws_session_stream_wait(on, p->start);
        for (uint32_t k = 0; !r && k < s->n_waits; k++)
            r = ws_session_stream_wait(on, p->steps[s->waits[k]].event);
        if (!r)
            r = issue_node(e, p, s, on);
        if (!r && (s->signals || (s->last && !here)))
            r = record(&s->event, p->branches[s->branch].device, on);
    }
    for (uint32_t i = 0; !r && i < p->n_steps; i++)
        if (p->steps[i].last && !(direct && p->steps[i].branch == 0))
            r = ws_session_stream_wait(stream, p->steps[i].event);
    return r;
}

/* ---- memory ---- */

/* Return: INVALID_VALUE if memory that this graph allocates is still allocated. */
static ws_err check_memory(const struct ws_exec *e)
{
    for (size_t i = 0; i < e->n_by_origin; i++) {
        const struct ws_node *n = e->by_origin[i];
        if (n->type == WS_NODE_MEM_ALLOC && ws_block_live(n->block) &&
            !(e->flags & WS_GRAPH_AUTO_FREE))
            return WS__ERROR__INVALID_VALUE;
    }
    return WS__ERROR__OK;
}

static void note_memory(const struct ws_plan *p)
{
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct ws_node *n = p->steps[i].node;
        if (n && (n->type == WS_NODE_MEM_ALLOC || n->type == WS_NODE_MEM_FREE))
            ws_block_set_live(n->block, n->type == WS_NODE_MEM_ALLOC);
    }
}

/* ---- execs ---- */

static ws_err launch(struct ws_exec *e, uint64_t stream)
{
    int device;
    ws_err r = ws_session_stream_info(stream, &device, NULL, NULL);
    if (!r && e->graph->has_memory)
        r = check_memory(e);
    if (!r && e->last_stream && e->last_stream != stream)
        r = ws_session_stream_wait(stream, e->done);
    for (size_t i = 0; !r && i < e->n_handles; i++)
        r = ws_session_value(stream, e->handles[i].handle, e->handles[i].value, sizeof(uint32_t),
                             true, 0);
    if (!r)
        r = plan_issue(e, e->plan, stream);
    if (!r && e->graph->has_memory)
        note_memory(e->plan);
    if (!r)
        r = record(&e->done, device, stream);
    e->last_stream = stream;
    return r;
}

ws_err ws_exec_launch(struct ws_exec *e, uint64_t stream)
{
    bool taken = false;
    ws_err r = WS__ERROR__OK;
    if (ws_work_watched())
        r = ws_work_capture(stream,
                            &(struct ws_stream_work){.kind = WS_WORK_CHILD, .graph = e->graph},
                            true, &taken);
    if (r || taken)
        return r;
    pthread_mutex_lock(&e->launching);
    r = launch(e, stream);
    pthread_mutex_unlock(&e->launching);
    return r;
}

// SPDX-License-Identifier: Apache-2.0
/* Joins: one action after all work given before it. A mark goes into each busy stream; when the
 * last mark is reached the join is put on client->joins.reached, from where its action runs
 * (scheduling/join_act.c). */
#include "backend/client/join.h"

#include "backend/backend.h"
#include "backend/client/memory.h"
#include "backend/client/module.h"
#include "backend/client/stream.h"
#include "backend/client/user.h"
#include "base/alloc.h"

struct ws_join *ws_join_new(struct ws_client *c, enum ws_join_kind kind, uint64_t seq, bool replies)
{
    struct ws_join *join = ws_alloc(sizeof(*join));
    if (!join) {
        ws_client_drop_no_memory(c);
        return NULL;
    }
    join->client = c;
    join->kind = kind;
    join->seq = seq;
    join->replies = replies;
    ws_list_init(&join->modules);
    ws_list_init(&join->allocations);
    ws_list_append(&c->joins.open, &join->node);
    return join;
}

static bool mark_context(struct ws_join *join, struct ws_context *x)
{
    ws_list_for_each (n, &x->streams) {
        struct ws_stream *s = ws_list_entry(n, struct ws_stream, node);
        if (!ws_stream_busy(s)) {
            join->end_ns = WS_MAX(join->end_ns, s->end_ns);
            continue;
        }
        if (ws_client_object(join->client)) {
            ws_client_drop(join->client, WS__ERROR__LIMIT_EXCEEDED,
                           "too many streams to wait for: its user may have no more objects");
            return false;
        }
        struct ws_command *j = ws_command_new(join->client, WS_COMMAND_MARK);
        if (!j) {
            ws_client_object_gone(join->client);
            return false;
        }
        j->is_command = false;
        j->join = join;
        join->n_left++;
        ws_stream_push_mark(s, j);
    }
    return true;
}

/* Its action runs later: it may free a stream that is being looked at. */
static void reached(struct ws_join *join)
{
    ws_list_remove(&join->node);
    ws_list_append(&join->client->joins.reached, &join->node);
    ws_client_runs(join->client);
}

void ws_join_start(struct ws_join *join, struct ws_context *x)
{
    struct ws_client *c = join->client;
    for (uint32_t i = 0; i < c->n_contexts; i++)
        if (!x || x == &c->contexts[i])
            if (!mark_context(join, &c->contexts[i]))
                return; /* the client is dropped; the join goes with it */
    if (!join->n_left)
        reached(join);
}

void ws_join_mark_reached(struct ws_join *join, uint64_t end_ns)
{
    join->end_ns = WS_MAX(join->end_ns, end_ns);
    if (!--join->n_left)
        reached(join);
}

void ws_join_take_module(struct ws_join *join, struct ws_module *m)
{
    ws_module_unlink(join->client, m);
    ws_list_append(&join->modules, &m->taken);
}

void ws_join_take_allocation(struct ws_join *join, struct ws_allocation *a)
{
    a->freeing = true;
    ws_list_append(&join->allocations, &a->taken);
}

static bool module_let_go(struct ws_join *join)
{
    struct ws_list *n = ws_list_pop(&join->modules);
    if (n)
        ws_module_unref(ws_list_entry(n, struct ws_module, taken));
    return n != NULL;
}

bool ws_join_free_one_taken(struct ws_join *join)
{
    if (module_let_go(join))
        return true;
    struct ws_list *n = ws_list_pop(&join->allocations);
    if (n)
        ws_memory_free(ws_list_entry(n, struct ws_allocation, taken));
    return n != NULL;
}

bool ws_joins_free_one(struct ws_client *c)
{
    struct ws_list *const lists[] = {&c->joins.open, &c->joins.reached, &c->joins.quiescing};
    struct ws_list *from = NULL;
    for (size_t i = 0; i < WS_ARRAY_SIZE(lists) && !from; i++)
        from = ws_list_empty(lists[i]) ? NULL : lists[i];
    if (!from)
        return false;
    struct ws_join *join = ws_list_entry(from->next, struct ws_join, node);
    if (module_let_go(join)) /* allocations go with the client's memory */
        return true;
    ws_list_remove(&join->node);
    free(join);
    return true;
}

// SPDX-License-Identifier: Apache-2.0
#include "backend/client/chore.h"

#include "backend/backend.h"
#include "base/alloc.h"

/* What a chore may take before it makes its client wait. */
#define AT_ONCE_NS 50000

void ws_chores_init(struct ws_client *c)
{
    ws_list_init(&c->chores.list);
    ws_list_init(&c->chores.waiting);
}

void *ws_chore_new(struct ws_client *c, size_t bytes,
                   bool (*go_on)(struct ws_client *c, struct ws_chore *h, uint64_t until_ns))
{
    struct ws_chore *h = ws_alloc(bytes);
    if (!h) {
        ws_client_drop_no_memory(c);
        return NULL;
    }
    ws_list_init(&h->node);
    h->go_on = go_on;
    return h;
}

void ws_chore_begin(struct ws_client *c, struct ws_chore *h)
{
    bool first = ws_list_empty(&c->chores.list);
    ws_list_append(&c->chores.list, &h->node);
    if (first && !ws_chores_go_on(c, ws_clock_ns() + AT_ONCE_NS) &&
        ws_list_empty(&c->chores.waiting))
        ws_list_append(&c->server->queues.chores, &c->chores.waiting);
}

bool ws_chores_go_on(struct ws_client *c, uint64_t until_ns)
{
    while (!ws_list_empty(&c->chores.list)) {
        struct ws_chore *h = ws_list_entry(c->chores.list.next, struct ws_chore, node);
        if (c->dropped || !h->go_on(c, h, until_ns))
            return false;
        ws_list_remove(&h->node);
        free(h);
    }
    return true;
}

struct ws_client *ws_chores_next(struct ws_server *s)
{
    struct ws_list *n = ws_list_pop(&s->queues.chores);
    return n ? ws_list_entry(n, struct ws_client, chores.waiting) : NULL;
}

void ws_chores_forget(struct ws_client *c)
{
    struct ws_list *n;
    while ((n = ws_list_pop(&c->chores.list)))
        free(ws_list_entry(n, struct ws_chore, node));
    ws_list_remove(&c->chores.waiting);
}

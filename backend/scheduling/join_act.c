// SPDX-License-Identifier: Apache-2.0
/* What joins do.
 *
 * Two actions take away what a later operation could still use while it runs: unmapping host
 * memory, and reset (the heap of kernels). They also need that no device works for this client at
 * all: from the join's end until then no operation of the client starts
 * (client->joins.quiescing, client->joins.held). The others need no such thing: each launch has a
 * reference to its module, and device memory lives on until the last kernel that could see it has
 * ended (device/space.c). Mapping host memory is a join of this second kind while an
 * unmapping is under way, since the new mapping may lie where the old one still is. */
#include "backend/scheduling/join_act.h"

#include "backend/backend.h"
#include "backend/client/join.h"
#include "backend/client/reply.h"
#include "backend/client/reset.h"
#include "backend/client/segment.h"
#include "backend/client/stream.h"
#include "backend/client/vmm.h"
#include "backend/scheduling/period.h"

static void join_end(struct ws_join *join, Ws__Error e)
{
    struct ws_client *c = join->client;
    if (join->replies)
        ws_client_reply_error(c, join->seq, e, e ? c->errors.text : "");
    ws_client_retire(c, 1);
    ws_list_remove(&join->node);
    free(join);
}

/* ---- actions that may be long ---- */

struct act_chore {
    struct ws_chore chore;
    struct ws_join *join;
    struct ws_reset_end reset;
};

static bool reset_go_on(struct ws_client *c, struct ws_chore *h, uint64_t until_ns)
{
    struct act_chore *w = WS_CONTAINER_OF(h, struct act_chore, chore);
    if (!ws_context_reset_end(w->join, &w->reset, until_ns))
        return false;
    join_end(w->join, c->errors.sticky);
    ws_client_quiesce(c);
    return true;
}

static bool unmap_go_on(struct ws_client *c, struct ws_chore *h, uint64_t until_ns)
{
    struct ws_join *join = WS_CONTAINER_OF(h, struct act_chore, chore)->join;
    struct ws_vmm_range range = {.va = join->address, .bytes = join->bytes};
    if (!ws_vmm_unmap(c, &range, until_ns))
        return false;
    join_end(join, c->errors.sticky);
    return true;
}

/* @join: on one of the client's lists, from which its end takes it if the client goes first. */
static void act_in_parts(struct ws_join *join,
                         bool (*go_on)(struct ws_client *c, struct ws_chore *h, uint64_t until_ns))
{
    struct act_chore *w = ws_chore_new(join->client, sizeof(*w), go_on);
    join->acting = true;
    if (!w)
        return;
    w->join = join;
    ws_chore_begin(join->client, &w->chore);
}

/* ---- all actions ---- */

static void host_map(struct ws_join *join)
{
    struct ws_client *c = join->client;
    Ws__Error e = c->errors.sticky;
    if (!e)
        e = ws_segment_host_map(c, join->seq, join->segment_id, join->address);
    if (e) {
        join_end(join, e);
        return;
    }
    ws_list_remove(&join->node); /* it has replied, or will */
    free(join);
}

static void act(struct ws_join *join)
{
    struct ws_client *c = join->client;
    switch (join->kind) {
    case WS_JOIN_SYNC:
        join->context->seen_ns = WS_MAX(join->context->seen_ns, join->end_ns);
        join_end(join, ws_client_take_error(c));
        return;
    case WS_JOIN_FREE:
    case WS_JOIN_UNLOAD:
        while (ws_join_free_one_taken(join))
            ;
        break;
    case WS_JOIN_HOST_UNMAP:
        c->segments.n_unmapping--;
        ws_segment_unmapped(join->segment, c);
        break;
    case WS_JOIN_HOST_MAP:
        host_map(join);
        return;
    case WS_JOIN_JOB:
        ws_own_ended(join);
        join->replies = false; /* done */
        break;
    case WS_JOIN_UNMAP:
        ws_list_append(&c->joins.open, &join->node);
        act_in_parts(join, unmap_go_on);
        return;
    case WS_JOIN_RESET:
        act_in_parts(join, reset_go_on);
        return;
    }
    join_end(join, c->errors.sticky);
}

void ws_client_quiesce(struct ws_client *c)
{
    while (!ws_list_empty(&c->joins.quiescing)) {
        struct ws_join *join = ws_list_entry(c->joins.quiescing.next, struct ws_join, node);
        if (c->n_in_flight || join->acting)
            return; /* their end comes here again */
        if (join->kind == WS_JOIN_RESET) {
            act(join);
            return;
        }
        ws_list_remove(&join->node);
        act(join);
    }
    while (!ws_list_empty(&c->joins.held))
        ws_stream_wake(ws_list_entry(c->joins.held.next, struct ws_stream, blocked));
}

void ws_join_finish(struct ws_join *join)
{
    struct ws_client *c = join->client;
    if (join->kind != WS_JOIN_HOST_UNMAP && join->kind != WS_JOIN_HOST_MAP &&
        join->kind != WS_JOIN_RESET) {
        act(join);
        return;
    }
    ws_list_remove(&join->node);
    ws_list_append(&c->joins.quiescing, &join->node);
    ws_client_quiesce(c);
}

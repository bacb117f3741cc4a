// SPDX-License-Identifier: Apache-2.0
/* Messages of clients, from the transport and from the rings. What one asks for is carried out by
 * the part that it concerns: commands by wire/commands.c, the rest by this room. */
#include "backend/process/messages.h"

#include "backend/backend.h"
#include "backend/process/clients.h"
#include "backend/process/control.h"
#include "backend/process/server.h"
#include "backend/process/status.h"
#include "backend/process/tracing.h"
#include "backend/wire/commands.h"
#include "backend/wire/decode.h"
#include "backend/wire/handoff.h"
#include "backend/wire/ring.h"

bool ws_server_knows(struct ws_server *s, const struct ws_peer *peer)
{
    return ws_client_find(s, peer) != NULL;
}

static void handle_one(struct ws_server *s, const struct ws_message *msg)
{
    struct ws_client_message m;
    struct ws_client *c = ws_client_find(s, msg->peer);
    s->stats.n_messages++;
    if (msg->oversized) {
        if (c)
            ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED,
                           "a message of more than %u bytes or %d frames",
                           c->limits.max_message_bytes, WS_MAX_FRAMES);
        else
            ws_peer_refuse(s, msg->peer, "message too large");
        return;
    }
    if (!msg->n_frames || !ws_decode_message(msg->frames[0].data, msg->frames[0].n, &m)) {
        if (c)
            ws_client_drop(c, WS__ERROR__MALFORMED, "a message that can't be read");
        else
            ws_peer_refuse(s, msg->peer, "a message that can't be read");
        return;
    }
    if (m.has_status)
        ws_status_reply(s, msg->peer);
    if (WS_UNLIKELY(m.has_policy)) {
        ws_control_policy(s, msg, m.policy);
        ws_clients_settle(s);
        c = ws_client_find(s, msg->peer);
    }
    if (WS_UNLIKELY(m.has_explain))
        ws_control_explain(s, msg, m.explain);
    if (m.has_trace)
        ws_tracing_reply(s, msg->peer, ws_decode_trace(m.trace, &s->arena));
    if (m.has_hello) {
        Ws__Hello *h = ws_decode_hello(m.hello, &s->arena);
        if (h)
            ws_client_hello(s, msg, h);
        else
            ws_peer_refuse(s, msg->peer, "a hello that can't be read");
        c = ws_client_find(s, msg->peer);
    }
    ws_arena_reset(&s->arena);
    if (!c) {
        if (m.n_commands && !m.has_hello)
            ws_peer_refuse(
                s, msg->peer,
                "unknown here: say hello first (the daemon was restarted, or has dropped this "
                "client)");
        return;
    }
    if (m.n_commands)
        ws_commands_handle(c, &m, msg);
    if (m.goodbye && !c->dropped)
        ws_client_drop(c, WS__ERROR__OK, "goodbye");
}

void ws_messages_of_ring(struct ws_client *c)
{
    struct ws_server *s = c->server;
    size_t n;
    for (unsigned i = 0; i < WS_RING_SLOTS && !c->dropped && (n = ws_client_ring_next(c)); i++) {
        struct ws_frame frame = {.data = s->handoff.ring_message, .n = n};
        struct ws_message m = {.peer = &c->peer,
                               .frames = &frame,
                               .n_frames = 1,
                               .oversized = n > s->config->limits.max_message_bytes};
        handle_one(s, &m);
    }
}

void ws_server_handle(struct ws_server *s, const struct ws_message *msg)
{
    struct ws_client *c = ws_client_find(s, msg->peer);
    if (c)
        ws_messages_of_ring(c);
    handle_one(s, msg);
    if (c && !c->dropped) {
        ws_client_ring_other_came(c);
        ws_messages_of_ring(c);
    }
    ws_clients_settle(s);
}

void ws_server_handoff_turn(struct ws_server *s)
{
    struct ws_client *c;
    bool there;
    ws_handoff_turn(s);
    while ((c = ws_server_next_rung(s, &there))) {
        ws_messages_of_ring(c);
        if (!there)
            ws_client_leave(c, "end of its ring");
    }
    ws_clients_settle(s);
}

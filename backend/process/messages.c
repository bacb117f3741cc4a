// SPDX-License-Identifier: Apache-2.0
/* Messages of clients, from the transport and from the rings. What one asks for is carried out by
 * the part that it concerns: commands by wire/commands.c, the rest by this room.
 *
 * The clock is read once when a piece of work ends, which is where the next one begins. So each
 * message costs one look at the clock, and a long one a few more. */
#include "backend/process/messages.h"

#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/process/announce.h"
#include "backend/process/clients.h"
#include "backend/process/control.h"
#include "backend/process/server.h"
#include "backend/process/status.h"
#include "backend/process/tracing.h"
#include "backend/wire/commands.h"
#include "backend/wire/decode.h"
#include "backend/wire/handoff.h"
#include "backend/wire/ring.h"
#include "base/alloc.h"
#include "base/clock.h"

enum { SLICE_NS = 250000, SLICES_A_TURN = 2 };

/* A message, and how far it has been handled. */
struct handling {
    const struct ws_message *msg;
    bool begun;
    struct ws_client_message content; /* once begun, as is: */
    struct ws_commands_place place;
};

struct held_message {
    struct ws_list node; /* ws_sender.held */
    bool of_ring;
    struct handling h;
    struct ws_message msg;
    struct ws_peer peer;
    struct ws_frame frames[]; /* with references */
};

/* ---- one message ---- */

bool ws_server_knows(struct ws_server *s, const struct ws_peer *peer)
{
    return ws_client_find(s, peer) != NULL;
}

static void answer(struct ws_server *s, const struct ws_message *msg,
                   const struct ws_client_message *m)
{
    if (m->has_status)
        ws_status_reply(s, msg);
    if (WS_UNLIKELY(m->has_policy)) {
        ws_control_policy(s, msg, m->policy);
        ws_clients_settle(s);
    }
    if (WS_UNLIKELY(m->has_explain))
        ws_control_explain(s, msg, m->explain);
    if (WS_UNLIKELY(m->has_step))
        ws_announce_step(s, msg, m->step);
    if (m->has_trace)
        ws_tracing_reply(s, msg, ws_decode_trace(m->trace, &s->arena));
    if (m->has_hello) {
        Ws__Hello *h = ws_decode_hello(m->hello, &s->arena);
        if (h)
            ws_client_hello(s, msg, h);
        else
            ws_peer_refuse(s, msg->peer, "a hello that can't be read");
    }
    ws_arena_reset(&s->arena);
}

/* Reads the message, and does all that it asks for but the commands. Return: whether it has
 * commands to carry out, or its sender says goodbye. */
static bool begin(struct ws_server *s, struct handling *h)
{
    const struct ws_message *msg = h->msg;
    struct ws_client_message *m = &h->content;
    struct ws_client *c = ws_client_find(s, msg->peer);
    s->stats.n_messages++;
    if (msg->oversized) {
        if (c)
            ws_client_drop(c, WS__ERROR__LIMIT_EXCEEDED,
                           "a message of more than %u bytes or %d frames",
                           c->limits.max_message_bytes, WS_MAX_FRAMES);
        else
            ws_peer_refuse(s, msg->peer, "message too large");
        return false;
    }
    uint32_t max_commands = c ? c->limits.max_commands : s->config->limits.max_commands;
    if (!msg->n_frames ||
        !ws_decode_message(msg->frames[0].data, msg->frames[0].n, max_commands, m)) {
        if (c)
            ws_client_drop(c, WS__ERROR__MALFORMED, "a message that can't be read");
        else
            ws_peer_refuse(s, msg->peer, "a message that can't be read");
        return false;
    }
    answer(s, msg, m);
    c = ws_client_find(s, msg->peer);
    if (!c) {
        if (m->n_commands && !m->has_hello)
            ws_peer_refuse(
                s, msg->peer,
                "unknown here: say hello first (the daemon was restarted, or has dropped this "
                "client)");
        return false;
    }
    h->begun = true;
    return !m->n_commands || ws_commands_begin(c, m, &h->place);
}

/* Continues a message until @until_ns or a little longer. Return: whether it is handled to the
 * end. */
static bool handle(struct ws_server *s, struct handling *h, uint64_t until_ns)
{
    if (!h->begun && !begin(s, h))
        return true;
    struct ws_client *c = ws_client_find(s, h->msg->peer);
    if (!c)
        return true;
    if (h->content.n_commands && !ws_commands_go_on(c, &h->content, &h->place, h->msg, until_ns))
        return false;
    if (h->content.goodbye && !c->dropped)
        ws_client_drop(c, WS__ERROR__OK, "goodbye");
    return true;
}

/* ---- held messages ---- */

static void held_free(struct held_message *g)
{
    ws_list_remove(&g->node);
    for (unsigned i = 0; i < g->msg.n_frames; i++)
        ws_buffer_unref(g->frames[i].buffer);
    free(g);
}

static struct held_message *held_new(const struct handling *h)
{
    const struct ws_message *msg = h->msg;
    struct held_message *g = ws_alloc(sizeof(*g) + msg->n_frames * sizeof(g->frames[0]));
    if (!g)
        return NULL;
    ws_list_init(&g->node);
    g->h = *h;
    g->h.msg = &g->msg;
    g->msg =
        (struct ws_message){.peer = &g->peer, .frames = g->frames, .oversized = msg->oversized};
    g->peer = *msg->peer;
    for (; g->msg.n_frames < msg->n_frames; g->msg.n_frames++) {
        g->frames[g->msg.n_frames] = msg->frames[g->msg.n_frames];
        if (ws_frame_keep(&g->frames[g->msg.n_frames])) {
            held_free(g);
            return NULL;
        }
    }
    if (h->begun)
        g->h.content.all.p = g->frames[0].data;
    return g;
}

/* The sender has something that is to be handled later. */
static void wait_for_turn(struct ws_server *s, struct ws_sender *v)
{
    if (!ws_sender_waits(v))
        ws_list_append(&s->messages.waiting, &v->waiting);
}

/* Keeps a message. One that has begun comes before all others that are held. */
static void hold(struct ws_server *s, struct ws_sender *v, const struct handling *h, bool of_ring)
{
    struct held_message *g = held_new(h);
    if (!g) {
        if (v->client)
            ws_client_drop_no_memory(v->client);
        return;
    }
    g->of_ring = of_ring;
    ws_list_append(h->begun ? v->held.next : &v->held, &g->node);
    wait_for_turn(s, v);
}

static struct held_message *first_held(const struct ws_sender *v)
{
    return ws_list_empty(&v->held) ? NULL : ws_list_entry(v->held.next, struct held_message, node);
}

/* What a peer had sent before it became a client is the client's now. */
static void adopt(struct ws_server *s, struct ws_client *c)
{
    ws_list_for_each_safe (n, &s->messages.strangers.held) {
        struct held_message *g = ws_list_entry(n, struct held_message, node);
        if (ws_client_find(s, &g->peer) != c)
            continue;
        ws_list_remove(&g->node);
        ws_list_append(&c->sender.held, &g->node);
        wait_for_turn(s, &c->sender);
    }
}

/* ---- time ---- */

/* The first piece of work begins. */
static void clock_starts(struct ws_server *s)
{
    if (!s->messages.now_ns)
        s->messages.now_ns = ws_clock_ns();
}

/* A piece of work has ended: the time since the one before it was used by @v. */
static void charge(struct ws_server *s, struct ws_sender *v)
{
    struct ws_server_messages *t = &s->messages;
    uint64_t now = ws_clock_ns(), ns = now - t->now_ns;
    if (v->turn != t->turn) {
        v->turn = t->turn;
        v->turn_ns = 0;
    }
    v->turn_ns += ns;
    t->turn_ns += ns;
    t->now_ns = now;
    ws_recent_add(&v->use, now, ns);
    if (v->client)
        ws_account_add_time(v->client->who.account, WS_ACCOUNT_LOOP, ns, now);
}

/* Those who are no clients are one user. */
static uint64_t used_by_user(const struct ws_sender *v, uint64_t now_ns)
{
    return v->client ? ws_account_recent_ns(v->client->who.account, WS_ACCOUNT_LOOP, now_ns)
                     : ws_recent_ns(&v->use, now_ns);
}

static uint64_t turn_left_ns(const struct ws_server *s, const struct ws_sender *v)
{
    uint64_t slice = s->messages.slice_ns, used = v->turn == s->messages.turn ? v->turn_ns : 0;
    return used < slice ? slice - used : 0;
}

static bool has_chores(const struct ws_client *c)
{
    return c && !ws_list_empty(&c->chores.list);
}

/* How long a message that comes now may be handled at once; 0: not at all. */
static uint64_t fresh_ns(const struct ws_server *s, const struct ws_sender *v)
{
    const struct ws_server_messages *t = &s->messages;
    if (ws_sender_waits(v) || has_chores(v->client) || t->turn_ns / SLICES_A_TURN >= t->slice_ns)
        return 0;
    return turn_left_ns(s, v);
}

/* ---- one sender ---- */

/* The next message of its ring. Return: false: none is due. */
static bool ring_message(struct ws_client *c, uint64_t until_ns)
{
    struct ws_server *s = c->server;
    size_t n = ws_client_ring_next(c);
    if (!n)
        return false;
    struct ws_frame frame = {.data = s->handoff.ring_message, .n = n};
    struct ws_message m = {.peer = &c->peer,
                           .frames = &frame,
                           .n_frames = 1,
                           .oversized = n > s->config->limits.max_message_bytes};
    struct handling h = {.msg = &m};
    if (!handle(s, &h, until_ns))
        hold(s, &c->sender, &h, true);
    return true;
}

/* Continues the oldest message that is held. Meanwhile it is in no list, for its sender may be
 * dropped, which forgets those in the list. */
static void held_message(struct ws_server *s, struct ws_sender *v, struct held_message *g,
                         uint64_t until_ns)
{
    struct ws_client *c = v->client;
    ws_list_remove(&g->node);
    if (!handle(s, &g->h, until_ns)) {
        ws_list_append(v->held.next, &g->node);
        return;
    }
    if (c && !c->dropped && !g->of_ring)
        ws_client_ring_other_came(c);
    if (!c && (c = ws_client_find(s, &g->peer)))
        adopt(s, c);
    held_free(g);
}

/* Handles what @v has sent, in its order, until nothing is left or @until_ns. */
static void go_on(struct ws_server *s, struct ws_sender *v, uint64_t until_ns)
{
    struct ws_client *c = v->client;
    while (!c || !c->dropped) {
        if (c && !ws_chores_go_on(c, until_ns)) {
            charge(s, v);
            wait_for_turn(s, v);
            return;
        }
        struct held_message *g = first_held(v);
        if (!c || (g && g->h.begun) || !ring_message(c, until_ns)) {
            if (!g)
                break;
            held_message(s, v, g, until_ns);
        }
        charge(s, v);
        if (s->messages.now_ns >= until_ns) {
            wait_for_turn(s, v); /* there may be more in the ring */
            return;
        }
    }
    ws_list_remove(&v->waiting);
}

/* ---- for the server and the loop ---- */

void ws_messages_init(struct ws_server *s)
{
    s->messages.slice_ns = SLICE_NS;
    s->messages.turn = 1; /* who was sent nothing was in none */
    ws_list_init(&s->messages.waiting);
    ws_sender_init(&s->messages.strangers, NULL);
}

static void forget(struct ws_sender *v)
{
    struct held_message *g;
    while ((g = first_held(v)))
        held_free(g);
    ws_list_remove(&v->waiting);
}

void ws_messages_deinit(struct ws_server *s)
{
    forget(&s->messages.strangers);
}

void ws_messages_forget(struct ws_client *c)
{
    ws_chores_forget(c);
    forget(&c->sender);
}

void ws_messages_forget_stranger(struct ws_server *s, const struct ws_peer *peer)
{
    ws_list_for_each_safe (n, &s->messages.strangers.held) {
        struct held_message *g = ws_list_entry(n, struct held_message, node);
        if (g->peer.id == peer->id)
            held_free(g);
    }
}

/* Of strangers no more than one message is held, so that what many of them ask for waits where
 * their users take turns, in front of the door, and not here before somebody's hello. */
bool ws_server_wants(struct ws_server *s, const struct ws_peer *peer)
{
    const struct ws_client *c = peer ? ws_client_find(s, peer) : NULL;
    if (c)
        return !ws_sender_waits(&c->sender) && !has_chores(c) && turn_left_ns(s, &c->sender);
    return ws_list_empty(&s->messages.strangers.held);
}

void ws_server_handle(struct ws_server *s, const struct ws_message *msg)
{
    struct ws_client *c = ws_client_find(s, msg->peer);
    struct ws_sender *v = c ? &c->sender : &s->messages.strangers;
    struct handling h = {.msg = msg};
    clock_starts(s);
    uint64_t ns = fresh_ns(s, v), until = s->messages.now_ns + ns;
    if (ns && c)
        go_on(s, v, until); /* its ring */
    if (!ns || ws_sender_waits(v)) {
        hold(s, v, &h, false);
        return;
    }
    if (!handle(s, &h, until)) {
        hold(s, v, &h, false);
    } else if (c && !c->dropped) {
        ws_client_ring_other_came(c);
        go_on(s, v, until);
    }
    ws_clients_settle(s);
    charge(s, v);
}

void ws_server_handoff_turn(struct ws_server *s)
{
    struct ws_client *c;
    bool there;
    ws_handoff_turn(s);
    clock_starts(s);
    while ((c = ws_server_next_rung(s, &there))) {
        uint64_t ns = fresh_ns(s, &c->sender);
        if (ns)
            go_on(s, &c->sender, s->messages.now_ns + ns);
        else
            wait_for_turn(s, &c->sender);
        if (!there)
            ws_client_leave(c, "end of its ring");
    }
    ws_clients_settle(s);
}

bool ws_messages_left(struct ws_client *c)
{
    struct ws_server *s = c->server;
    clock_starts(s);
    if (!ws_sender_waits(&c->sender))
        go_on(s, &c->sender, s->messages.now_ns + s->messages.slice_ns);
    return ws_sender_waits(&c->sender);
}

/* Whether @a has used less than @b. */
static bool used_less(const struct ws_sender *a, const struct ws_sender *b, uint64_t now_ns)
{
    uint64_t of_a = used_by_user(a, now_ns), of_b = used_by_user(b, now_ns);
    return of_a != of_b ? of_a < of_b
                        : ws_recent_ns(&a->use, now_ns) < ws_recent_ns(&b->use, now_ns);
}

/* Who is the next of those who wait. NULL: nobody waits. */
static struct ws_sender *next_waiting(struct ws_server *s)
{
    struct ws_sender *next = NULL;
    ws_list_for_each (n, &s->messages.waiting) {
        struct ws_sender *v = ws_list_entry(n, struct ws_sender, waiting);
        if (!next || used_less(v, next, s->messages.now_ns))
            next = v;
    }
    return next;
}

bool ws_messages_turn(struct ws_server *s)
{
    struct ws_server_messages *t = &s->messages;
    struct ws_sender *v;
    struct ws_client *c;
    while ((c = ws_chores_next(s)))
        wait_for_turn(s, &c->sender);
    if (WS_LIKELY(ws_list_empty(&t->waiting)))
        return false;
    t->now_ns = ws_clock_ns();
    uint64_t begun_ns = t->now_ns;
    do {
        v = next_waiting(s);
        go_on(s, v, t->now_ns + t->slice_ns);
        ws_clients_settle(s);
    } while (!ws_list_empty(&t->waiting) && (t->now_ns - begun_ns) / SLICES_A_TURN < t->slice_ns);
    return !ws_list_empty(&t->waiting) || !ws_list_empty(&s->queues.chores);
}

void ws_messages_turn_ends(struct ws_server *s)
{
    s->messages.now_ns = 0;
    s->messages.turn_ns = 0;
    s->messages.turn++;
}

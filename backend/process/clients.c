// SPDX-License-Identifier: Apache-2.0
/* Clients come by Hello, and go when they were dropped (ws_client_drop()), whatever the cause:
 * goodbye, the end of the peer's connections when its last messages are handled, a broken limit.
 * ws_clients_settle() takes a dropped client out of every part; what it has is freed by
 * ws_clients_reap(), when no device works for it any more, a part in each turn if it is much. */
#include "backend/process/clients.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backend/backend.h"
#include "backend/client/upload.h"
#include "backend/client/event.h"
#include "backend/client/join.h"
#include "backend/client/memory.h"
#include "backend/client/module.h"
#include "backend/client/object.h"
#include "backend/client/segment.h"
#include "backend/client/vmm.h"
#include "backend/scheduling/recognise.h"
#include "backend/client/gpus.h"
#include "backend/client/sms.h"
#include "backend/client/step.h"
#include "backend/client/user.h"
#include "backend/process/messages.h"
#include "backend/process/status.h"
#include "backend/scheduling/gated.h"
#include "backend/scheduling/run.h"
#include "backend/wire/handoff.h"
#include "backend/wire/out.h"
#include "backend/wire/ring.h"
#include "device/cuda/cuda.h"
#include "base/alloc.h"
#include "base/clock.h"

/* Text from outside, made fit for a log line. */
static void clean_copy(char *to, size_t size, const char *from)
{
    size_t n = 0;
    for (; *from && n + 1 < size; from++)
        to[n++] = isprint((unsigned char)*from) ? *from : '?';
    to[n] = 0;
}

static void refuse(struct ws_server *s, const struct ws_peer *peer, Ws__Error e, const char *text)
{
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__HelloReply r = WS__HELLO_REPLY__INIT;
    r.error = e;
    r.text = (char *)text;
    r.version = WS_PROTOCOL_VERSION;
    m.hello = &r;
    ws_log(WS_WARN, "client: refused: %s", text);
    (void)ws_server_send(s, peer, &m); /* gone already: nothing to tell */
}

/* One of the things of which a client may have very many, those first that use others. Return:
 * false: none is left. */
static bool free_one(struct ws_client *c)
{
    struct ws_allocation *a = c->memory.allocations;
    if (ws_joins_free_one(c) || ws_modules_free_one(c) || ws_streams_free_one(c) ||
        ws_record_syncs_free_one(c))
        return true;
    if (ws_events_free_one(c) || ws_segments_free_one(c))
        return true;
    if (c->memory.space && ws_space_unmap_last(c->memory.space))
        return true;
    if (!a)
        return ws_vmm_free_one(c);
    HASH_DEL(c->memory.allocations, a);
    ws_object_ref_drop(&a->ref);
    free(a);
    return true;
}

static void client_free(struct ws_client *c)
{
    ws_status_forget(c);
    ws_list_remove(&c->node);
    ws_list_remove(&c->out.dirty);
    ws_list_remove(&c->out.full);
    ws_list_remove(&c->jobs.waiting);
    ws_list_remove(&c->streams.runs);
    ws_list_remove(&c->streams.polls);
    if (c->out.stuck_since_ns)
        c->server->out.n_congested--;
    ws_module_loads_forget(c, NULL);
    ws_uploads_free(c);
    while (free_one(c))
        ;
    free(c->memory.reservations.v);
    free(c->out.reached);
    ws_space_free(c->memory.space);
    ws_client_release(c, WS_RESOURCE_DEVICE_BYTES, c->memory.heap_charged);
    ws_exports_forget(c);
    ws_client_ring_free(c);
    for (uint32_t i = 0; i < c->n_contexts; i++)
        ws_context_deinit(&c->contexts[i]);
    ws_va_deinit(&c->memory.va);
    ws_va_deinit(&c->memory.host_va);
    free(c->contexts);
    ws_client_out_free(c);
    ws_output_deinit(&c->output);
    ws_client_release(c, WS_RESOURCE_HOST_BYTES, c->memory.printed_charged);
    ws_ledger_deinit(&c->not_supported);
    ws_client_release(c, WS_RESOURCE_OBJECTS, c->n_objects);
    ws_account_unref(c->who.account);
    free(c);
}

/* Everything but its place among the clients. @account: taken, and charged with one client.
 * NULL: no memory. */
static struct ws_client *client_new(struct ws_server *s, const struct ws_peer *peer,
                                    struct ws_account *account, const uint32_t *order, uint32_t n)
{
    struct ws_client *c = ws_alloc(sizeof(*c));
    if (!c) {
        ws_account_release(account, WS_RESOURCE_CLIENTS, 1);
        ws_account_unref(account);
        return NULL;
    }
    c->who.account = account;
    c->server = s;
    c->peer = *peer;
    c->limits = s->config->limits;
    c->who.start_ns = ws_clock_ns();
    c->stats.first_start_ns = UINT64_MAX;
    ws_sender_init(&c->sender, c);
    ws_list_init(&c->node);
    ws_list_init(&c->leaving.node);
    ws_list_init(&c->out.dirty);
    ws_list_init(&c->out.full);
    ws_list_init(&c->out.messages);
    ws_chores_init(c);
    ws_list_init(&c->memory.exports);
    ws_list_init(&c->streams.ready);
    ws_list_init(&c->streams.runs);
    ws_list_init(&c->streams.polling);
    ws_list_init(&c->streams.polls);
    ws_list_init(&c->joins.open);
    ws_list_init(&c->joins.reached);
    ws_list_init(&c->joins.quiescing);
    ws_list_init(&c->joins.held);
    ws_list_init(&c->jobs.waiting);
    ws_list_init(&c->events.syncs);
    ws_list_init(&c->modules.uploads);
    ws_list_init(&c->modules.loads);
    ws_list_init(&c->modules.making);
    ws_output_init(&c->output);
    ws_va_init(&c->memory.va, &s->memory.va_pool, c);
    ws_va_init(&c->memory.host_va, &s->memory.host_va_pool, c);
    c->contexts = ws_alloc_array(n, sizeof(*c->contexts));
    bool ok = c->contexts && !ws_space_new(&c->memory.space) &&
              getrandom(c->wire.token, sizeof(c->wire.token), 0) == sizeof(c->wire.token);
    for (; ok && c->n_contexts < n; c->n_contexts++)
        ok = !ws_context_init(&c->contexts[c->n_contexts], c, &s->gpus[order[c->n_contexts]],
                              c->n_contexts);
    if (ok) {
        ws_space_set_payer(c->memory.space, ws_account_payer(account));
        ws_space_set_print(c->memory.space, ws_output_add, &c->output);
        ws_space_set_margin(c->memory.space,
                            s->config->strict_bounds || s->config->check ? 0 : WS_VA_GAP_BYTES / 2);
        return c;
    }
    ws_user_leave(c);
    client_free(c);
    return NULL;
}

static Ws__Device *device_message(struct ws_arena *a, const struct ws_gpu *g, uint32_t n_sms,
                                  bool gated)
{
    const struct ws_gpu_spec *p = &g->device->spec;
    Ws__Device *d = ws_arena_alloc(a, sizeof(*d));
    if (!d)
        return NULL;
    ws__device__init(d);
    d->name = (char *)p->name;
    d->product = (char *)p->product;
    d->gpu = g->device->index;
    d->cc_major = p->cc_major;
    d->cc_minor = p->cc_minor;
    d->n_sms = n_sms; /* of its task: programs make grids by it */
    d->max_threads_per_sm = p->max_threads_per_sm;
    d->max_blocks_per_sm = p->max_blocks_per_sm;
    d->regs_per_sm = p->regs_per_sm;
    d->max_threads_per_block = p->max_threads_per_block;
    d->shared_bytes_per_sm = p->shared_bytes_per_sm;
    d->shared_bytes_per_block = p->shared_bytes_per_block;
    d->shared_bytes_per_block_optin = p->shared_bytes_per_block_optin;
    d->core_mhz = p->core_mhz;
    d->memory_mhz = p->memory_mhz;
    d->memory_bus_bits = p->memory_bus_bits;
    d->l2_bytes = p->l2_bytes;
    d->memory_bytes = p->memory_bytes;
    d->memory_bytes_per_s = p->memory_bytes_per_s;
    d->fp32_lanes_per_sm = p->fp32_lanes_per_sm;
    uint8_t *uuid = (uint8_t *)g->uuid;
    if (gated) { /* it knows the GPU by the driver's name for it */
        uuid = ws_arena_alloc(a, sizeof(g->uuid));
        if (!uuid)
            return NULL;
        if (!ws_device_cuda_uuid(g->device, uuid))
            memcpy(uuid, g->uuid, sizeof(g->uuid));
    }
    d->uuid = (ProtobufCBinaryData){sizeof(g->uuid), uuid};
    return d;
}

/* The devices whose memory kernels of the @index'th can't use. */
static uint32_t unreachable(const struct ws_client *c, uint32_t index)
{
    uint32_t mask = 0, own = UINT32_C(1) << c->contexts[index].gpu->device->index;
    for (uint32_t i = 0; i < c->n_contexts; i++)
        if (!(ws_device_peers(c->contexts[i].gpu->device) & own))
            mask |= UINT32_C(1) << i;
    return mask;
}

static int send_hello_reply(struct ws_client *c)
{
    struct ws_server *s = c->server;
    const struct ws_limits *l = &c->limits;
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__HelloReply r = WS__HELLO_REPLY__INIT;
    Ws__Limits limits = WS__LIMITS__INIT;
    limits.max_message_bytes = l->max_message_bytes;
    limits.max_commands = l->max_commands;
    limits.max_outstanding = l->max_outstanding;
    limits.max_inline_bytes = l->max_inline_bytes;
    limits.max_param_bytes = l->max_param_bytes;
    limits.max_image_bytes = l->max_image_bytes;
    limits.memory_quota_bytes = ws_memory_quota(c);
    limits.max_streams = l->max_streams;
    limits.max_events = l->max_events;
    limits.max_segment_bytes = l->max_segment_bytes;
    r.version = WS_PROTOCOL_VERSION;
    r.client = c->id;
    r.token = (ProtobufCBinaryData){sizeof(c->wire.token), c->wire.token};
    r.handoff_socket = c->who.local ? s->handoff.path : (char *)"";
    r.limits = &limits;
    r.gate_policy = c->jobs.gated && ws_dispatch_is_on(s);
    r.gate_lease_ms = s->config->gate_lease_ms;
    r.devices = ws_arena_array(&s->arena, c->n_contexts, sizeof(*r.devices));
    if (!r.devices)
        return -ENOMEM;
    for (uint32_t i = 0; i < c->n_contexts; i++) {
        const struct ws_context *x = &c->contexts[i];
        Ws__Device *d = device_message(&s->arena, x->gpu,
                                       x->task_sms.n ? x->task_sms.n : x->gpu->device->spec.n_sms,
                                       c->jobs.gated);
        if (!d)
            return -ENOMEM;
        d->unreachable = unreachable(c, i);
        r.devices[r.n_devices++] = d;
    }
    m.hello = &r;
    return ws_server_send(s, &c->peer, &m);
}

static void ask_env(struct ws_server *s, const struct ws_peer *peer, Ws__HelloReply *r)
{
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    r->version = WS_PROTOCOL_VERSION;
    m.hello = r;
    (void)ws_server_send(s, peer, &m); /* gone already: says hello no more */
}

/* Who says hello. */
static void meet(struct ws_server *s, const struct ws_message *msg, const Ws__Hello *h,
                 struct ws_newcomer *ret)
{
    struct ws_peer_info info = {.fd = -1};
    s->transport.info(s->transport.arg, msg, &info);
    *ret = (struct ws_newcomer){.fd = info.fd,
                                .has_cred = info.has_uid && info.pid,
                                .pid = info.pid ? info.pid : h->pid,
                                .uid = info.has_uid ? info.uid : UINT32_MAX,
                                .local = h->local && info.ipc && s->handoff.epoll_fd >= 0};
    clean_copy(ret->exe, sizeof(ret->exe), h->exe[0] ? h->exe : h->comm);
    clean_copy(ret->name, sizeof(ret->name), h->task);
    ws_newcomer_recognise(s, h, ret);
}

static void end_dropped(struct ws_server *s);

/* Ends the clients that have closed their connections, though they may have messages that are not
 * handled yet: a dead client's last work is worth less than a living one's seat. Return: there
 * were any. */
static bool end_lost(struct ws_server *s)
{
    bool any = false;
    ws_list_for_each_safe (n, &s->clients.all) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        if (!s->transport.hung_up(s->transport.arg, &c->peer))
            continue;
        ws_client_drop(c, WS__ERROR__OK, "connection lost; its seat is needed");
        any = true;
    }
    end_dropped(s);
    return any;
}

void ws_client_hello(struct ws_server *s, const struct ws_message *msg, const Ws__Hello *h)
{
    char text[256];
    struct ws_client *c = ws_client_find(s, msg->peer);
    if (c) {
        ws_client_drop(c, WS__ERROR__MALFORMED, "said hello twice");
        return;
    }
    if (h->version != WS_PROTOCOL_VERSION) {
        snprintf(text, sizeof(text),
                 "protocol version %u, but this daemon speaks %d: install the same wattshare on "
                 "both sides",
                 h->version, WS_PROTOCOL_VERSION);
        refuse(s, msg->peer, WS__ERROR__VERSION_MISMATCH, text);
        return;
    }
    if (s->clients.draining) {
        refuse(s, msg->peer, WS__ERROR__DRAINING, "the daemon is going down");
        return;
    }
    Ws__HelloReply ask = WS__HELLO_REPLY__INIT;
    if (ws_hello_needs_env(s, h, &ask)) {
        ask_env(s, msg->peer, &ask);
        return;
    }
    struct ws_newcomer who;
    ws_energy_settle(s); /* until now it was the others' */
    meet(s, msg, h, &who);
    if (!who.step && s->config->only_steps && !ws_is_trusted(who.uid)) {
        refuse(s, msg->peer, WS__ERROR__DENIED,
               "this daemon serves the jobs of a batch scheduler only (only_steps = yes): start "
               "the program in one, with srun --wattshare");
        return;
    }
    struct ws_account *user = ws_user_enter(s, who.uid, text, sizeof(text));
    if (!user && end_lost(s))
        user = ws_user_enter(s, who.uid, text, sizeof(text));
    if (!user) {
        refuse(s, msg->peer, WS__ERROR__LIMIT_EXCEEDED, text);
        return;
    }
    uint32_t order[WS_MAX_DEVICES], n = ws_gpus_order(s, h, who.step != NULL, order);
    n = ws_task_gpus(s, &who.work, order, n);
    if (who.step)
        n = ws_step_gpus(s, who.step, order, n);
    c = client_new(s, msg->peer, user, order, n);
    if (!c) {
        refuse(s, msg->peer, WS__ERROR__INTERNAL, "the daemon is out of memory");
        return;
    }
    c->who.pid = who.pid;
    c->who.uid = who.uid;
    c->who.local = who.local;
    if (!who.local)
        c->limits.max_message_bytes =
            WS_MIN(c->limits.max_message_bytes, (uint32_t)WS_FAR_MESSAGE_BYTES);
    c->who.has_cred = who.has_cred;
    memcpy(c->who.exe, who.exe, sizeof(c->who.exe));
    memcpy(c->who.task, who.name, sizeof(c->who.task));
    c->work = who.work;
    c->work.weight *= ws_user_share(c) / (double)WS_SHARE_DEFAULT;
    c->who.work_known = who.work_known;
    c->step = who.step;
    if (c->step)
        ws_step_enter(c->step);
    c->who.sm_limit = h->sms;
    c->jobs.gated = h->gate;
    if (c->jobs.gated && !s->gated.n++)
        s->gated.told = ws_dispatch_is_on(s);
    c->id = ++s->clients.next_id;
    HASH_ADD(hh, s->clients.by_peer, peer.id, sizeof(c->peer.id), c);
    ws_list_append(&s->clients.all, &c->node);
    s->clients.n++;
    s->clients.had_any = true;
    if (n)
        c->contexts[0].gpu->n_home++;
    for (uint32_t i = 0; i < n; i++)
        ws_context_limit_sms(&c->contexts[i]);
    ws_log(WS_INFO, "client: hello client=%u pid=%u uid=%d gpus=%u first=%s task=%s exe=%s", c->id,
           c->who.pid, (int)c->who.uid, n, n ? c->contexts[0].gpu->device->spec.name : "none",
           c->work.name, c->who.exe);
    if (send_hello_reply(c))
        ws_client_drop(c, WS__ERROR__OK, "peer gone before hello was answered");
}

static void send_dropped(struct ws_client *c, Ws__Error e, const char *text)
{
    struct ws_server *s = c->server;
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__Notice n = WS__NOTICE__INIT;
    n.retired = c->stats.n_retired;
    n.error = e;
    n.text = (char *)text;
    n.dropped = true;
    m.notice = &n;
    (void)ws_server_send(s, &c->peer, &m); /* who does not read is not told */
}

/* Whatever this peer still sends is not answered any more. */
static void forget(struct ws_server *s, const struct ws_peer *peer)
{
    s->clients.forgotten[s->clients.n_forgotten++ % WS_FORGOTTEN_MAX] = peer->id;
}

/* Takes @c out of every part but the devices. */
static void end(struct ws_client *c)
{
    struct ws_server *s = c->server;
    if (c->errors.drop) {
        ws_log(WS_WARN, "client: dropped client=%u pid=%u exe=%s error=%d: %s", c->id, c->who.pid,
               c->who.exe, c->errors.drop, c->errors.drop_text);
        send_dropped(c, c->errors.drop, c->errors.drop_text);
        forget(s, &c->peer);
    } else {
        ws_log(
            WS_INFO,
            "client: ended client=%u (%s) kernels=%llu copies=%llu device_us=%llu energy_uj=%llu",
            c->id, c->errors.drop_text, (unsigned long long)c->stats.n_kernels,
            (unsigned long long)c->stats.n_copies, (unsigned long long)(c->stats.device_ns / 1000),
            (unsigned long long)c->stats.energy_uj);
    }
    ws_messages_forget(c);
    ws_energy_settle(s);
    ws_module_loads_forget(c, NULL);
    ws_user_leave(c);
    if (c->n_contexts)
        c->contexts[0].gpu->n_home--;
    ws_client_ring_close(c);
    if (c->wire.handoff)
        ws_handoff_close(s, c->wire.handoff);
    ws_list_remove(&c->jobs.waiting);
    ws_list_remove(&c->streams.polls);
    ws_gated_forget(c);
    ws_dispatch_forget(c);
    ws_status_ended(c);
    for (uint32_t i = 0; i < c->n_contexts; i++) {
        struct ws_context *x = &c->contexts[i];
        if (c->n_in_flight)
            ws_device_cancel(x->gpu->device, c->memory.space);
        ws_list_for_each (n, &x->streams)
            ws_stream_stop(ws_list_entry(n, struct ws_stream, node));
    }
}

static void end_dropped(struct ws_server *s)
{
    struct ws_list *n;
    while ((n = ws_list_pop(&s->clients.dropped))) {
        ws_list_append(&s->clients.dying, n);
        end(ws_list_entry(n, struct ws_client, node));
    }
}

void ws_clients_settle(struct ws_server *s)
{
    bool more;
    do {
        end_dropped(s);
        more = ws_server_run_ready(s);
        if (WS_UNLIKELY(more)) /* who has an answer need not wait for what others run */
            ws_server_flush(s);
    } while (more || ws_server_flush_full(s) || !ws_list_empty(&s->clients.dropped));
}

/* Return: whether @c was freed before @until_ns. */
static bool free_until(struct ws_client *c, uint64_t until_ns)
{
    enum { CLOCK_EVERY = 16 };
    c->freeing = true;
    for (unsigned n = 1; free_one(c); n++)
        if (n % CLOCK_EVERY == 0 && ws_clock_ns() >= until_ns)
            return false;
    client_free(c);
    return true;
}

bool ws_clients_reap(struct ws_server *s, uint64_t ns)
{
    if (WS_LIKELY(ws_list_empty(&s->clients.dying)))
        return false;
    uint64_t until = ws_clock_ns() + ns;
    ws_list_for_each_safe (n, &s->clients.dying) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        if (!c->n_in_flight && !free_until(c, until))
            return true;
    }
    return false;
}

/* ---- peers that are no clients ---- */

void ws_peer_refuse(struct ws_server *s, const struct ws_peer *peer, const char *text)
{
    for (uint32_t i = 0; i < WS_FORGOTTEN_MAX; i++)
        if (s->clients.forgotten[i] == peer->id)
            return;
    forget(s, peer);
    Ws__ServerMessage m = WS__SERVER_MESSAGE__INIT;
    Ws__Notice n = WS__NOTICE__INIT;
    n.error = WS__ERROR__MALFORMED;
    n.text = (char *)text;
    n.dropped = true;
    m.notice = &n;
    (void)ws_server_send(s, peer, &m);
}

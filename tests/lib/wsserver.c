// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/wsserver.h"

#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

static struct wss_peer *peer_of(struct wss *w, const struct ws_peer *p)
{
    return &w->peers[p->id % WSS_PEERS];
}

static void keep_seen(struct wss_peer *p, const Ws__ServerMessage *m)
{
    if (m->status) {
        const Ws__StatusReply *r = m->status;
        p->saw.n_clients = (unsigned)r->n_clients;
        p->saw.uid = r->n_clients ? r->clients[0]->uid : 0;
        p->saw.has_others = r->others;
        p->saw.n_others = r->others ? r->others->n_clients : 0;
        p->saw.n_accounts = 0;
        for (size_t i = 0; i < r->n_accounts; i++)
            p->saw.n_accounts += !strcmp(r->accounts[i]->resource, "clients");
        p->saw.n_learned = (unsigned)r->n_learned;
        p->saw.sm_client = r->gpus[0]->n_sm_clients ? r->gpus[0]->sm_clients[0] : 0;
    }
    if (m->trace) {
        p->saw.n_spans = (unsigned)m->trace->n_spans;
        p->saw.seen = m->trace->seen;
    }
    if (m->policy)
        p->saw.policy_error = m->policy->error;
    if (m->explain)
        snprintf(p->saw.explain, sizeof(p->saw.explain), "%s", m->explain->text);
}

static void keep(struct wss_peer *p, const Ws__ServerMessage *m)
{
    for (size_t i = 0; i < m->n_replies; i++) {
        const Ws__Reply *r = m->replies[i];
        if (!p->replies && !(p->replies = ws_alloc_array(WSS_REPLIES, sizeof(*p->replies))))
            abort();
        if (p->n_replies == WSS_REPLIES)
            abort();
        struct wss_reply *k = &p->replies[p->n_replies++];
        k->seq = r->seq;
        k->error = r->error;
        k->value = r->value;
        k->value2 = r->value2;
        k->n_kernels = r->module ? (unsigned)r->module->n_kernels : 0;
        k->n_data = WS_MIN(r->data.len, sizeof(k->data));
        if (k->n_data)
            memcpy(k->data, r->data.data, k->n_data);
        snprintf(k->text, sizeof(k->text), "%s", r->text);
    }
    if (m->hello) {
        p->said_hello = true;
        p->hello_error = m->hello->error;
        p->n_devices = (uint32_t)m->hello->n_devices;
        for (uint32_t i = 0; i < p->n_devices && i < 8; i++)
            p->gpus[i] = m->hello->devices[i]->gpu;
        snprintf(p->text, sizeof(p->text), "%s", m->hello->text);
    }
    if (m->notice) {
        p->retired = WS_MAX(p->retired, m->notice->retired);
        for (size_t i = 0; i < m->notice->n_reached && p->n_gates < WSS_GATES; i++)
            p->gates[p->n_gates++] = m->notice->reached[i];
        if (m->notice->error && !m->notice->dropped) {
            p->n_notices++;
            p->notice_error = m->notice->error;
            snprintf(p->text, sizeof(p->text), "%s", m->notice->text);
        }
        if (m->notice->dropped) {
            p->dropped = true;
            p->dropped_error = m->notice->error;
            snprintf(p->text, sizeof(p->text), "%s", m->notice->text);
        }
    }
    p->n_status += m->status != NULL;
    keep_seen(p, m);
}

static int transport_send(void *arg, const struct ws_peer *to, const void *data, size_t n)
{
    struct wss *w = arg;
    struct wss_peer *p = peer_of(w, to);
    if (p->stuck)
        return -EAGAIN;
    if (p->gone)
        return -EHOSTUNREACH;
    Ws__ServerMessage *m = ws__server_message__unpack(NULL, n, data);
    if (!m)
        abort();
    p->n_messages++;
    keep(p, m);
    ws__server_message__free_unpacked(m, NULL);
    return 0;
}

static void transport_info(void *arg, const struct ws_message *m, struct ws_peer_info *ret)
{
    const struct wss *w = arg;
    *ret = (struct ws_peer_info){.fd = -1,
                                 .ipc = true,
                                 .has_uid = true,
                                 .uid = w->peers[m->peer->id % WSS_PEERS].uid,
                                 .pid = w->peers[m->peer->id % WSS_PEERS].pid};
}

static bool transport_hung_up(void *arg, const struct ws_peer *p)
{
    return peer_of(arg, p)->ended;
}

/* Read once: a fuzz target makes a server for each input. */
static const struct ws_limits *default_limits(void)
{
    static struct ws_limits limits;
    static bool known;
    if (!known && ws_config_limits(&limits))
        abort();
    known = true;
    return &limits;
}

struct wss *wss_new(uint32_t n_devices)
{
    return wss_new_with_policy(n_devices, NULL, NULL);
}

struct wss *wss_new_with_policy(uint32_t n_devices, const char *policy, const char *const *options)
{
    struct wss *w = ws_alloc(sizeof(*w));
    struct ws_device *devices[3];
    struct ws_transport t = {w, transport_send, transport_info, transport_hung_up};
    for (uint32_t i = 0; i < 3; i++) {
        fakedev_init(&w->dev[i], i, i == 1 ? "small" : "big", UINT64_C(64) << 20);
        devices[i] = &w->dev[i].base;
    }
    for (unsigned i = 0; i < WSS_PEERS; i++) {
        w->peers[i].peer = (struct ws_peer){WSS_PEERS + i};
        w->peers[i].next_seq = 1;
        w->peers[i].uid = 1000;
        w->peers[i].pid = (uint32_t)getpid();
    }
    w->config.limits = *default_limits();
    w->config.n_slots = 4;
    w->config.policy = (char *)policy; /* nobody frees it: there is no deinit here */
    for (unsigned i = 0; options && options[i] && i < WS_CONFIG_MAX_LIST; i++)
        w->config.policy_options[i] = (char *)options[i];
    ws_log_set_level(WS_ERROR);
    if (ws_server_new(&w->server, &w->config, devices, n_devices, &t))
        abort();
    w->server->messages.slice_ns = WS_SLICE_UNLIMITED;
    return w;
}

void wss_free(struct wss *w)
{
    ws_server_free(w->server);
    for (int i = 0; i < 3; i++) {
        if (w->dev[i].alarm)
            w->dev[i].alarm->ring(w->dev[i].alarm);
        if (w->dev[i].free_progresses) {
            fprintf(stderr, "device %d: progress of preempted launches was not freed\n", i);
            abort();
        }
    }
    for (int i = 0; i < 3; i++)
        if (w->dev[i].n_ops || w->dev[i].used_bytes || w->dev[i].n_instances ||
            w->dev[i].n_modules) {
            fprintf(stderr, "device %d: left %u ops, %llu bytes, %u instances, %u modules\n", i,
                    w->dev[i].n_ops, (unsigned long long)w->dev[i].used_bytes,
                    w->dev[i].n_instances, w->dev[i].n_modules);
            abort();
        }
    for (unsigned i = 0; i < WSS_PEERS; i++)
        free(w->peers[i].replies);
    free(w);
}

void wss_turn(struct wss *w)
{
    for (unsigned i = 0; i < WSS_PEERS; i++)
        if (w->peers[i].ended && !w->queued)
            ws_server_disconnected(w->server, &w->peers[i].peer);
    (void)ws_server_turn(w->server);
}

/* With WSS_RECORD=FILE in the environment the messages are appended to FILE, as
 * tests/fuzz/fuzz_protocol.c reads them: that is how its corpus is made. */
static void record(unsigned peer, const void *p, size_t n)
{
    const char *path = getenv("WSS_RECORD");
    FILE *f = path && n < 65536 ? fopen(path, "ab") : NULL;
    if (!f)
        return;
    fwrite((uint8_t[]){(uint8_t)peer, (uint8_t)n, (uint8_t)(n >> 8)}, 1, 3, f);
    fwrite(p, 1, n, f);
    fclose(f);
}

void wss_raw(struct wss *w, unsigned peer, const void *p, size_t n)
{
    record(peer, p, n);
    struct ws_frame frame = {.data = p, .n = n};
    struct ws_message m = {.peer = &w->peers[peer].peer, .frames = &frame, .n_frames = 1};
    ws_server_handle(w->server, &m);
    wss_turn(w);
}

void wss_message(struct wss *w, unsigned peer, Ws__ClientMessage *m)
{
    size_t n = ws__client_message__get_packed_size(m);
    uint8_t *p = malloc(n ? n : 1);
    ws__client_message__pack(m, p);
    wss_raw(w, peer, p, n);
    free(p);
}

void wss_hello(struct wss *w, unsigned peer, const char *visible)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.exe = (char *)"/bin/x\ny";
    h.has_visible_devices = visible != NULL;
    h.visible_devices = (char *)(visible ? visible : "");
    m.hello = &h;
    wss_message(w, peer, &m);
}

uint64_t wss_do(struct wss *w, unsigned peer, Ws__Command__CCase which, void *sub)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Command c = WS__COMMAND__INIT, *list[] = {&c};
    c.c_case = which;
    switch (which) {
    case WS__COMMAND__C_STREAM_DESTROY:
    case WS__COMMAND__C_EVENT_DESTROY:
    case WS__COMMAND__C_MODULE_UNLOAD:
    case WS__COMMAND__C_HOST_UNMAP:
    case WS__COMMAND__C_HOST_FUNCTION_DONE:
    case WS__COMMAND__C_MEM_RELEASE:
    case WS__COMMAND__C_MEM_FREE_ASYNC:
    case WS__COMMAND__C_VA_FREE:
        c.stream_destroy = *(uint64_t *)sub;
        break;
    case WS__COMMAND__C_MEM_INFO:
        c.mem_info = *(uint32_t *)sub;
        break;
    case WS__COMMAND__C_OUTPUT:
        c.output = 0;
        break;
    default:
        c.launch = sub;
    }
    m.commands = list;
    m.n_commands = 1;
    m.first_seq = w->peers[peer].next_seq++;
    wss_message(w, peer, &m);
    return m.first_seq;
}

static int reply_index(struct wss *w, unsigned peer, uint64_t seq)
{
    int found = -1;
    for (unsigned i = 0; i < w->peers[peer].n_replies; i++)
        if (w->peers[peer].replies[i].seq == seq) {
            if (found >= 0) {
                fprintf(stderr, "two replies for %llu\n", (unsigned long long)seq);
                abort();
            }
            found = (int)i;
        }
    return found;
}

bool wss_replied(struct wss *w, unsigned peer, uint64_t seq)
{
    return reply_index(w, peer, seq) >= 0;
}

Ws__Error wss_error(struct wss *w, unsigned peer, uint64_t seq)
{
    int i = reply_index(w, peer, seq);
    if (i < 0) {
        fprintf(stderr, "no reply for %llu\n", (unsigned long long)seq);
        abort();
    }
    return w->peers[peer].replies[i].error;
}

uint64_t wss_value(struct wss *w, unsigned peer, uint64_t seq)
{
    return wss_error(w, peer, seq) ? 0 : w->peers[peer].replies[reply_index(w, peer, seq)].value;
}

uint64_t wss_alloc(struct wss *w, unsigned peer, uint32_t device, uint64_t bytes)
{
    Ws__MemAlloc m = WS__MEM_ALLOC__INIT;
    m.device = device;
    m.bytes = bytes;
    return wss_value(w, peer, wss_do(w, peer, WS__COMMAND__C_MEM_ALLOC, &m));
}

uint64_t wss_free_mem(struct wss *w, unsigned peer, uint64_t va)
{
    Ws__MemFree m = WS__MEM_FREE__INIT;
    m.address = va;
    return wss_do(w, peer, WS__COMMAND__C_MEM_FREE, &m);
}

void wss_stream(struct wss *w, unsigned peer, uint64_t id, uint32_t device, bool non_blocking)
{
    Ws__StreamCreate m = WS__STREAM_CREATE__INIT;
    m.stream = id;
    m.device = device;
    m.non_blocking = non_blocking;
    wss_do(w, peer, WS__COMMAND__C_STREAM_CREATE, &m);
}

uint64_t wss_fill(struct wss *w, unsigned peer, uint64_t stream, uint64_t va, uint64_t bytes,
                  uint8_t value)
{
    Ws__Fill m = WS__FILL__INIT;
    m.stream = stream;
    m.dst = va;
    m.value = value;
    m.value_bytes = 1;
    m.width_bytes = bytes;
    return wss_do(w, peer, WS__COMMAND__C_FILL, &m);
}

uint64_t wss_record(struct wss *w, unsigned peer, uint64_t event, uint64_t stream)
{
    Ws__EventRecord m = WS__EVENT_RECORD__INIT;
    m.event = event;
    m.stream = stream;
    m.timing = true;
    return wss_do(w, peer, WS__COMMAND__C_EVENT_RECORD, &m);
}

uint64_t wss_wait(struct wss *w, unsigned peer, uint64_t stream, uint64_t event)
{
    Ws__StreamWait m = WS__STREAM_WAIT__INIT;
    m.stream = stream;
    m.event = event;
    return wss_do(w, peer, WS__COMMAND__C_STREAM_WAIT, &m);
}

static uint64_t sync_any(struct wss *w, unsigned peer, Ws__Sync__WhatCase which, uint64_t id)
{
    Ws__Sync m = WS__SYNC__INIT;
    m.what_case = which;
    if (which == WS__SYNC__WHAT_DEVICE)
        m.device = (uint32_t)id;
    else
        m.stream = id;
    return wss_do(w, peer, WS__COMMAND__C_SYNC, &m);
}

uint64_t wss_sync_stream(struct wss *w, unsigned peer, uint64_t stream)
{
    return sync_any(w, peer, WS__SYNC__WHAT_STREAM, stream);
}

uint64_t wss_sync_event(struct wss *w, unsigned peer, uint64_t event)
{
    return sync_any(w, peer, WS__SYNC__WHAT_EVENT, event);
}

uint64_t wss_sync_device(struct wss *w, unsigned peer, uint32_t device)
{
    return sync_any(w, peer, WS__SYNC__WHAT_DEVICE, device);
}

static uint64_t query(struct wss *w, unsigned peer, Ws__Query__WhatCase which, uint64_t id)
{
    Ws__Query m = WS__QUERY__INIT;
    m.what_case = which;
    m.event = id;
    return wss_do(w, peer, WS__COMMAND__C_QUERY, &m);
}

uint64_t wss_query_event(struct wss *w, unsigned peer, uint64_t event)
{
    return query(w, peer, WS__QUERY__WHAT_EVENT, event);
}

uint64_t wss_query_stream(struct wss *w, unsigned peer, uint64_t stream)
{
    return query(w, peer, WS__QUERY__WHAT_STREAM, stream);
}

void wss_sha256(const void *p, size_t n, uint8_t *ret)
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, p, n);
    SHA256Final(ret, &sha);
}

uint64_t wss_load_try(struct wss *w, unsigned peer, uint64_t module, uint32_t device,
                      const void *image, size_t n)
{
    uint8_t sha256[WS_SHA256_BYTES];
    wss_sha256(image, n, sha256);
    Ws__ModuleLoad m = WS__MODULE_LOAD__INIT;
    m.module = module;
    m.device = device;
    m.sha256 = (ProtobufCBinaryData){sizeof(sha256), sha256};
    m.image_bytes = n;
    m.name = (char *)"t.ptx";
    return wss_do(w, peer, WS__COMMAND__C_MODULE_LOAD, &m);
}

uint64_t wss_load(struct wss *w, unsigned peer, uint64_t module, uint32_t device, const void *image,
                  size_t n)
{
    uint64_t seq = wss_load_try(w, peer, module, device, image, n);
    if (wss_error(w, peer, seq) != WS__ERROR__NEED_IMAGE)
        return seq;
    uint8_t sha256[WS_SHA256_BYTES];
    wss_sha256(image, n, sha256);
    Ws__ModuleImage i = WS__MODULE_IMAGE__INIT;
    i.sha256 = (ProtobufCBinaryData){sizeof(sha256), sha256};
    i.image_bytes = n;
    i.data = (ProtobufCBinaryData){n, (uint8_t *)image};
    wss_do(w, peer, WS__COMMAND__C_MODULE_IMAGE, &i);
    return wss_load_try(w, peer, module, device, image, n);
}

uint64_t wss_launch(struct wss *w, unsigned peer, uint64_t stream, uint64_t function,
                    const void *params, size_t n)
{
    Ws__Launch l = WS__LAUNCH__INIT;
    l.stream = stream;
    l.function = function;
    l.grid_x = l.grid_y = l.grid_z = l.block_x = l.block_y = l.block_z = 1;
    l.params = (ProtobufCBinaryData){n, (uint8_t *)params};
    return wss_do(w, peer, WS__COMMAND__C_LAUNCH, &l);
}

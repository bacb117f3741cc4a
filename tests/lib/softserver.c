// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/softserver.h"

#include <poll.h>
#include <sha256.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

const char *softs_templates, *softs_policy;
enum ws_device_clock softs_clock;

static int transport_send(void *arg, const struct ws_peer *to, const void *data, size_t n)
{
    struct softs *s = arg;
    struct softs_client *c = &s->clients[to->id - 1];
    Ws__ServerMessage *m = ws__server_message__unpack(NULL, n, data);
    if (!m)
        abort();
    for (size_t i = 0; i < m->n_replies; i++) {
        __typeof__(&c->replies[0]) r = &c->replies[c->n_replies++ % SOFTS_REPLIES];
        r->seq = m->replies[i]->seq;
        r->value = m->replies[i]->value;
        r->error = m->replies[i]->error;
        snprintf(r->text, sizeof(r->text), "%s", m->replies[i]->text);
    }
    if (m->notice && m->notice->error) {
        c->notice_error = m->notice->error;
        snprintf(c->text, sizeof(c->text), "%s", m->notice->text);
    }
    ws__server_message__free_unpacked(m, NULL);
    return 0;
}

static void transport_info(void *arg, const struct ws_message *m, struct ws_peer_info *ret)
{
    *ret = (struct ws_peer_info){.fd = -1, .ipc = true};
}

static bool transport_hung_up(void *arg, const struct ws_peer *p)
{
    return false;
}

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "softserver: %s\n", what);
    abort();
}

struct softs *softs_new(const char *gpu, uint32_t n_loaders, uint64_t max_kernel_insns)
{
    struct softs *s = ws_alloc(sizeof(*s));
    struct ws_transport t = {s, transport_send, transport_info, transport_hung_up};
    struct ws_device_options o = {
        .clock = softs_clock, .n_workers = 2, .max_kernel_insns = max_kernel_insns};
    const char *dir = getenv("srcdir");
    char path[512];
    snprintf(path, sizeof(path), "%s/conf/gpu.d", dir ? dir : ".");
    must(!ws_catalog_load(&s->catalog, path, NULL), path);
    must(!ws_device_open_soft(&s->device, ws_catalog_find(&s->catalog, gpu), 0, &o, NULL), gpu);
    must(!ws_config_limits(&s->config.limits), "limits");
    s->config.n_loaders = n_loaders;
    s->config.templates = (char *)softs_templates;
    s->config.policy = (char *)softs_policy;
    s->config.clock = softs_clock;
    ws_log_set_level(WS_ERROR);
    for (unsigned c = 0; c < SOFTS_CLIENTS; c++)
        ws_list_init(&s->hold[c]);
    must(!ws_server_new(&s->server, &s->config, &s->device, 1, &t), "no server");
    s->server->messages.slice_ns = WS_SLICE_UNLIMITED;
    return s;
}

void softs_free(struct softs *s)
{
    for (unsigned c = 0; c < SOFTS_CLIENTS; c++)
        ws_list_remove(&s->hold[c]);
    ws_server_free(s->server);
    ws_device_close(s->device);
    ws_catalog_deinit(&s->catalog);
    free(s);
}

void softs_turn(struct softs *s)
{
    struct pollfd p = {ws_server_wake_fd(s->server), POLLIN, 0};
    (void)poll(&p, 1, 1);
    uint64_t n;
    if (p.revents & POLLIN && read(p.fd, &n, sizeof(n)) < 0)
        abort();
    (void)ws_server_turn(s->server);
}

static void message(struct softs *s, unsigned c, Ws__ClientMessage *m)
{
    struct ws_peer peer = {c + 1};
    uint8_t *bytes = malloc(ws__client_message__get_packed_size(m) + 1);
    must(bytes != NULL, "no memory");
    struct ws_frame frame = {.data = bytes, .n = ws__client_message__pack(m, bytes)};
    struct ws_message msg = {.peer = &peer, .frames = &frame, .n_frames = 1};
    ws_server_handle(s->server, &msg);
    free(bytes);
    (void)ws_server_turn(s->server);
}

uint64_t softs_send(struct softs *s, unsigned c, Ws__Command **commands, size_t n)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    m.commands = commands;
    m.n_commands = n;
    m.first_seq = s->clients[c].next_seq;
    s->clients[c].next_seq += n;
    message(s, c, &m);
    return m.first_seq;
}

static uint64_t command(struct softs *s, unsigned c, Ws__Command *cmd)
{
    return softs_send(s, c, &cmd, 1);
}

/* Turns until it is there. */
static __typeof__(&((struct softs_client *)0)->replies[0]) reply(struct softs *s, unsigned c,
                                                                 uint64_t seq)
{
    for (int turns = 0; turns < 60000; turns++) {
        for (unsigned i = 0; i < SOFTS_REPLIES; i++)
            if (s->clients[c].replies[i].seq == seq)
                return &s->clients[c].replies[i];
        softs_turn(s);
    }
    must(false, "no reply");
    return NULL;
}

Ws__Error softs_answer(struct softs *s, unsigned c, uint64_t seq)
{
    return reply(s, c, seq)->error;
}

void softs_hello(struct softs *s, unsigned c)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.exe = (char *)"test";
    m.hello = &h;
    s->clients[c] = (struct softs_client){.next_seq = 1};
    message(s, c, &m);
    struct ws_peer peer = {c + 1};
    s->clients[c].client = ws_client_find(s->server, &peer);
    must(s->clients[c].client != NULL, "no client");
}

void softs_drop(struct softs *s, unsigned c)
{
    ws_list_remove(&s->hold[c]);
    ws_client_drop(s->clients[c].client, WS__ERROR__OK, "killed");
    s->clients[c].client = NULL;
    (void)ws_server_turn(s->server);
}

uint64_t softs_alloc(struct softs *s, unsigned c, uint64_t bytes)
{
    Ws__Command cmd = WS__COMMAND__INIT;
    Ws__MemAlloc m = WS__MEM_ALLOC__INIT;
    m.bytes = bytes;
    cmd.c_case = WS__COMMAND__C_MEM_ALLOC;
    cmd.mem_alloc = &m;
    return reply(s, c, command(s, c, &cmd))->value;
}

static void sha_of(const char *ptx, uint8_t *ret)
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)ptx, strlen(ptx));
    SHA256Final(ret, &sha);
}

uint64_t softs_load_begin(struct softs *s, unsigned c, uint64_t module, const char *ptx)
{
    uint8_t sha256[WS_SHA256_BYTES];
    Ws__Command cmd = WS__COMMAND__INIT;
    Ws__ModuleLoad m = WS__MODULE_LOAD__INIT;
    sha_of(ptx, sha256);
    m.module = module;
    m.sha256 = (ProtobufCBinaryData){WS_SHA256_BYTES, sha256};
    m.image_bytes = strlen(ptx);
    m.name = (char *)"t.ptx";
    cmd.c_case = WS__COMMAND__C_MODULE_LOAD;
    cmd.module_load = &m;
    return command(s, c, &cmd);
}

static Ws__Error load_once(struct softs *s, unsigned c, uint64_t module, const char *ptx)
{
    __typeof__(&s->clients[0].replies[0]) r = reply(s, c, softs_load_begin(s, c, module, ptx));
    if (r->error && r->error != WS__ERROR__NEED_IMAGE)
        fprintf(stderr, "softserver: %s\n", r->text);
    return r->error;
}

Ws__Error softs_load(struct softs *s, unsigned c, uint64_t module, const char *ptx)
{
    uint8_t sha256[WS_SHA256_BYTES];
    Ws__Error e = load_once(s, c, module, ptx);
    if (e != WS__ERROR__NEED_IMAGE)
        return e;
    sha_of(ptx, sha256);
    Ws__Command cmd = WS__COMMAND__INIT;
    Ws__ModuleImage i = WS__MODULE_IMAGE__INIT;
    i.sha256 = (ProtobufCBinaryData){WS_SHA256_BYTES, sha256};
    i.image_bytes = strlen(ptx);
    i.data = (ProtobufCBinaryData){strlen(ptx), (uint8_t *)ptx};
    cmd.c_case = WS__COMMAND__C_MODULE_IMAGE;
    cmd.module_image = &i;
    command(s, c, &cmd);
    return load_once(s, c, module, ptx);
}

void softs_launch(struct softs *s, unsigned c, const struct softs_launch *l)
{
    Ws__Command cmd = WS__COMMAND__INIT;
    Ws__Launch m = WS__LAUNCH__INIT;
    m.stream = l->stream ? l->stream : WS_STREAM_DEFAULT_0;
    m.function = l->module << WS_FUNCTION_INDEX_BITS | l->kernel;
    m.grid_x = WS_MAX(l->grid[0], 1u);
    m.grid_y = WS_MAX(l->grid[1], 1u);
    m.grid_z = WS_MAX(l->grid[2], 1u);
    m.block_x = WS_MAX(l->block[0], 1u);
    m.block_y = WS_MAX(l->block[1], 1u);
    m.block_z = WS_MAX(l->block[2], 1u);
    m.shared_bytes = l->shared_bytes;
    m.params = (ProtobufCBinaryData){l->param_bytes, (uint8_t *)l->params};
    cmd.c_case = WS__COMMAND__C_LAUNCH;
    cmd.launch = &m;
    command(s, c, &cmd);
}

Ws__Error softs_sync(struct softs *s, unsigned c)
{
    Ws__Command cmd = WS__COMMAND__INIT;
    Ws__Sync m = WS__SYNC__INIT;
    m.what_case = WS__SYNC__WHAT_DEVICE;
    cmd.c_case = WS__COMMAND__C_SYNC;
    cmd.sync = &m;
    return reply(s, c, command(s, c, &cmd))->error;
}

/* A join that nobody carries out: while it is there, no operation of the client starts. */
void softs_hold(struct softs *s, unsigned c)
{
    ws_list_append(&s->clients[c].client->joins.quiescing, &s->hold[c]);
}

void softs_let_go(struct softs *s, unsigned c)
{
    struct ws_client *k = s->clients[c].client;
    ws_list_remove(&s->hold[c]);
    while (!ws_list_empty(&k->joins.held))
        ws_stream_wake(ws_list_entry(k->joins.held.next, struct ws_stream, blocked));
}

struct ws_command *softs_head(struct softs *s, unsigned c, uint64_t stream)
{
    return ws_stream_find(s->clients[c].client, stream ? stream : WS_STREAM_DEFAULT_0)->head;
}

void *softs_host(struct softs *s, unsigned c, uint64_t va, uint64_t bytes)
{
    struct ws_mapping m;
    must(ws_space_find(s->clients[c].client->memory.space, va, bytes, &m), "no such memory");
    return m.host + (va - m.va);
}

// SPDX-License-Identifier: Apache-2.0
/* Sequences of commands that are well formed, of up to three clients, to the server core with real
 * software GPUs: launches of a few small kernels, copies, events, modules, memory, resets, rings,
 * clients that end at any point.
 *
 * The input is a list of steps, a byte each, followed by what the step asks for (bytes.h).
 * Commands gather in a batch until a step sends it, as one message or through the client's ring.
 * Server and GPUs stay from one input to the next, one server for each of a few policies; after
 * each input all clients end, and then the GPUs must hold as much memory as they did without any
 * client, and run nothing. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/process/server.h"
#include "base/clock.h"
#include "device/catalog.h"
#include "tests/fuzz/session_commands.h"
#include "tests/fuzz/side.h"

enum { N_GPUS = 2, N_PEERS = 3, MAX_STEPS = 200 };
#define END_MAX_NS (10 * WS_NS_PER_S)

struct rig;
struct client {
    struct rig *rig;
    struct ws_peer peer;
    uint64_t next_seq;
    struct side side;
    uint32_t asked; /* what the handoff socket was asked for last */
};
struct rig {
    struct ws_config config;
    struct ws_catalog catalog;
    struct ws_device *gpus[N_GPUS];
    uint64_t idle_bytes[N_GPUS]; /* of their memory, without clients */
    struct ws_server *server;
    char path[64]; /* of the handoff socket */
    struct client clients[N_PEERS];
    struct session_told told;
    bool need_image, policy_changed;
};

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_session: %s\n", what);
    abort();
}

/* ---- the server and its GPUs ---- */

static int transport_send(void *arg, const struct ws_peer *to, const void *data, size_t n)
{
    struct rig *w = arg;
    Ws__ServerMessage *m = ws__server_message__unpack(NULL, n, data);
    must(m, "a message that can't be read");
    for (size_t i = 0; i < m->n_replies; i++) {
        const Ws__Reply *r = m->replies[i];
        if (r->value >= WS_VA_FIRST && r->value < WS_VA_LAST)
            w->told.addresses[w->told.n_addresses++ % SESSION_ADDRESSES] = r->value;
        if (r->data.len == WS_SHARE_BYTES)
            memcpy(w->told.handle, r->data.data, WS_SHARE_BYTES);
        w->need_image |= r->error == WS__ERROR__NEED_IMAGE;
    }
    ws__server_message__free_unpacked(m, NULL);
    return 0;
}

static void transport_info(void *arg, const struct ws_message *m, struct ws_peer_info *ret)
{
    *ret = (struct ws_peer_info){
        .fd = -1, .ipc = true, .has_uid = true, .uid = getuid(), .pid = (uint32_t)getpid()};
}

static bool transport_hung_up(void *arg, const struct ws_peer *p)
{
    return false;
}

static void turn(struct rig *w, int wait_ms)
{
    struct pollfd p = {ws_server_wake_fd(w->server), POLLIN, 0};
    uint64_t n;
    (void)poll(&p, 1, wait_ms);
    if (p.revents & POLLIN && read(p.fd, &n, sizeof(n)) < 0)
        abort();
    ws_server_handoff_turn(w->server);
    (void)ws_server_turn(w->server);
}

static bool gpus_idle(struct rig *w)
{
    for (unsigned i = 0; i < N_GPUS; i++) {
        struct ws_device_telemetry t;
        ws_device_telemetry(w->gpus[i], &t);
        if (t.n_running || t.memory_used_bytes > w->idle_bytes[i])
            return false;
    }
    return true;
}

static bool empty(struct rig *w)
{
    const struct ws_server_clients *c = &w->server->clients;
    return ws_list_empty(&c->all) && ws_list_empty(&c->dying) && ws_list_empty(&c->dropped) &&
           ws_list_empty(&c->leaving) && ws_list_empty(&w->server->handoff.conns);
}

/* Lets the clients' work end before they do, unless it waits for something that does not come. */
static void wait_idle(struct rig *w)
{
    for (int i = 0; i < 20 && !ws_server_idle(w->server); i++)
        turn(w, 1);
}

/* No two connections have the same number. */
static struct ws_peer new_peer(void)
{
    static uint64_t id;
    return (struct ws_peer){++id};
}

static void disconnect(struct client *c)
{
    ws_server_disconnected(c->rig->server, &c->peer);
    c->peer = new_peer();
}

static void end_clients(struct rig *w)
{
    uint64_t begin = ws_clock_ns();
    for (unsigned i = 0; i < N_PEERS; i++) {
        side_end(&w->clients[i].side);
        disconnect(&w->clients[i]);
    }
    for (;;) {
        turn(w, empty(w) ? 0 : 1);
        if (empty(w) && gpus_idle(w))
            break;
        must(ws_clock_ns() - begin < END_MAX_NS,
             "clients have ended, and something of them is left");
    }
}

static struct rig *rig_new(const char *policy, uint32_t n_loaders)
{
    static unsigned n_rigs;
    struct rig *w = calloc(1, sizeof(*w));
    struct ws_transport t = {w, transport_send, transport_info, transport_hung_up};
    struct ws_device_options o = {.n_workers = 2, .max_kernel_insns = 300000};
    const char *dir = getenv("srcdir");
    char path[512];
    must(w, "out of memory");
    snprintf(path, sizeof(path), "%s/conf/gpu.d", dir ? dir : ".");
    must(!ws_catalog_load(&w->catalog, path, NULL), path);
    struct ws_gpu_spec spec = *ws_catalog_find(&w->catalog, "t400");
    spec.memory_bytes = 32 << 20;
    for (uint32_t i = 0; i < N_GPUS; i++)
        must(!ws_device_open_soft(&w->gpus[i], &spec, i, &o, NULL), "no GPU");
    must(!ws_config_limits(&w->config.limits), "no limits");
    w->config.limits.cache_bytes = 1 << 20;
    w->config.limits.max_image_bytes = 1 << 16;
    w->config.limits.max_segment_bytes = 1 << 20;
    w->config.n_loaders = n_loaders;
    w->config.n_slots = 4;
    w->config.policy = (char *)policy; /* nobody frees it: there is no deinit here */
    must(!ws_server_new(&w->server, &w->config, w->gpus, N_GPUS, &t), "no server");
    snprintf(w->path, sizeof(w->path), "/tmp/fuzz_session.%d.%u", (int)getpid(), n_rigs++);
    must(!ws_server_handoff_listen(w->server, w->path, 0600), "no handoff socket");
    for (unsigned i = 0; i < N_PEERS; i++) {
        w->clients[i].rig = w;
        w->clients[i].peer = new_peer();
        side_init(&w->clients[i].side);
    }
    for (unsigned i = 0; i < N_GPUS; i++) {
        struct ws_device_telemetry used;
        ws_device_telemetry(w->gpus[i], &used);
        w->idle_bytes[i] = used.memory_used_bytes;
    }
    return w;
}

static struct rig *rigs[4];
static void end_rigs(void)
{
    for (unsigned i = 0; i < WS_ARRAY_SIZE(rigs); i++) {
        if (!rigs[i])
            continue;
        ws_server_free(rigs[i]->server);
        for (unsigned k = 0; k < N_GPUS; k++)
            ws_device_close(rigs[i]->gpus[k]);
        ws_catalog_deinit(&rigs[i]->catalog);
        free(rigs[i]);
    }
}

static struct rig *rig(unsigned which)
{
    static const struct {
        const char *policy;
        uint32_t n_loaders;
    } kinds[] = {{NULL, 0}, {"rr", 1}, {"consolidate", 1}, {"fifo", 0}};
    _Static_assert(WS_ARRAY_SIZE(kinds) == WS_ARRAY_SIZE(rigs), "one for each");
    if (!rigs[0] && !rigs[1] && !rigs[2] && !rigs[3]) {
        ws_log_set_output(open("/dev/null", O_WRONLY | O_CLOEXEC), "");
        session_commands_init();
        atexit(end_rigs);
    }
    which %= WS_ARRAY_SIZE(kinds);
    if (!rigs[which])
        rigs[which] = rig_new(kinds[which].policy, kinds[which].n_loaders);
    return rigs[which];
}

/* ---- messages ---- */

static void give(struct client *c, const Ws__ClientMessage *m, bool by_ring)
{
    for (int i = 0; i < 1000 && !ws_server_wants(c->rig->server, &c->peer); i++)
        turn(c->rig, 1);
    if (!ws_server_wants(c->rig->server, &c->peer))
        return;
    size_t n = ws__client_message__get_packed_size(m);
    uint8_t *p = malloc(n ? n : 1); /* of that size, so that reading beyond it is noticed */
    must(p, "out of memory");
    ws__client_message__pack(m, p);
    if (by_ring && ws_ring_put(&c->side.ring, p, n)) {
        ws_ring_signal(&c->side.ring);
        ws_server_handoff_turn(c->rig->server);
    } else {
        struct ws_frame frame = {.data = p, .n = n};
        struct ws_message msg = {.peer = &c->peer, .frames = &frame, .n_frames = 1};
        c->side.ring.n_sent += m->n_commands != 0;
        ws_server_handle(c->rig->server, &msg);
    }
    free(p);
}

static void send_batch(struct client *c, struct session_batch *b, bool by_ring)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    if (!b->n)
        return;
    m.commands = b->list;
    m.n_commands = b->n;
    m.first_seq = c->next_seq;
    c->next_seq += b->n;
    give(c, &m, by_ring);
    b->n = 0;
}

static void hello(struct client *c, uint8_t how)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.exe = (char *)"/bin/x";
    h.comm = (char *)"x";
    h.local = true;
    h.gate = (how & 7) == 7;
    h.sms = how & 8 ? 2 : 0;
    h.has_visible_devices = how & 16;
    h.visible_devices = (char *)(how & 32 ? "1,0" : "0");
    m.hello = &h;
    c->next_seq = 1;
    give(c, &m, false);
}

/* ---- what is no command ---- */

static void ask_side(struct client *c, struct bytes *in)
{
    struct ws_client *k = ws_client_find(c->rig->server, &c->peer);
    struct ws_handoff_request q = {.kind = take8(in) % 10};
    if (q.kind > WS_HANDOFF_IMPORT)
        q.kind = WS_HANDOFF_RING + q.kind % 2;
    if (!k)
        return;
    if (c->side.fd < 0) {
        side_connect(&c->side, c->rig->path);
        q.kind = WS_HANDOFF_HELLO;
    }
    memcpy(q.token, k->wire.token, sizeof(q.token));
    uint8_t how = take8(in);
    q.segment = how & 3;
    q.chunk_bytes = how & 4 ? 4096 : (uint32_t)take_size(in);
    q.bytes = how & 8 ? 8192 : q.kind >= WS_HANDOFF_EXPORT ? how & 3 : take_size(in);
    side_ask(&c->side, &q);
    c->asked = q.kind;
    ws_server_handoff_turn(c->rig->server);
    side_answers(&c->side, c->asked);
}

/* Writes to memory that it shares with the daemon what no honest client writes. */
static void lie(struct client *c, struct bytes *in)
{
    uint8_t what = take8(in);
    if (what & 1 && c->side.staging) {
        atomic_store(&c->side.staging->state[what >> 1 & 7], take8(in) & 7);
    } else if (c->side.ring.memory) {
        struct ws_ring_slot *s = &c->side.ring.memory->to_daemon[what >> 1 & 7];
        const uint8_t *data;
        size_t n = take_bytes(in, take8(in), &data);
        memcpy(s->data, data, n);
        atomic_store(&s->bytes, what & 0x10 ? (uint32_t)n : (uint32_t)take_size(in));
        atomic_store(&s->after, what & 0x20 ? take_size(in) : c->side.ring.n_sent);
        atomic_store(&s->state, what & 0x40 ? take8(in) : WS_RING_FULL);
        ws_ring_signal(&c->side.ring);
    }
}

static void set_policy(struct client *c, const char *name)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__PolicyRequest policy = WS__POLICY_REQUEST__INIT;
    policy.version = WS_PROTOCOL_VERSION;
    policy.set = true;
    policy.name = (char *)name;
    m.policy = &policy;
    give(c, &m, false);
}

static void ask_status(struct client *c, struct bytes *in)
{
    static const char *const policies[] = {"none", "rr", "fifo", "consolidate"};
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest status = WS__STATUS_REQUEST__INIT;
    Ws__TraceRequest trace = WS__TRACE_REQUEST__INIT;
    Ws__ExplainRequest explain = WS__EXPLAIN_REQUEST__INIT;
    uint8_t what = take8(in);
    if (what & 8) {
        c->rig->policy_changed = true;
        set_policy(c, policies[what >> 5 & 3]);
        return;
    }
    status.version = trace.version = explain.version = WS_PROTOCOL_VERSION;
    m.status = what & 1 ? &status : NULL;
    m.trace = what & 2 ? &trace : NULL;
    m.explain = what & 4 ? &explain : NULL;
    m.goodbye = (what & 0x80) && !(what & 7);
    give(c, &m, false);
}

/* A step is a command if it is less than COMMANDS, else a repetition if it is less than REPEATS. */
enum { COMMANDS = 160, REPEATS = 208 };
static void step(struct rig *w, struct client **io_c, struct session_batch *b, struct bytes *in)
{
    uint8_t what = take8(in);
    struct client *c = *io_c;
    if (what < COMMANDS && b->n < SESSION_BATCH) {
        session_command(&w->told, b, what, in);
        return;
    }
    if (what < REPEATS && b->n) {
        session_repeat(b, (what & 31) + 1);
        return;
    }
    send_batch(c, b, what & 16);
    switch (what % 16) {
    default:
        break;
    case 4:
    case 5:
        *io_c = &w->clients[take8(in) % N_PEERS];
        break;
    case 6:
        hello(c, take8(in));
        break;
    case 7:
        disconnect(c);
        break;
    case 8:
    case 9:
        turn(w, what & 1);
        break;
    case 10:
    case 11:
        ask_side(c, in);
        break;
    case 12:
        lie(c, in);
        break;
    case 13:
        ask_status(c, in);
        break;
    case 14:
        side_end(&c->side);
    }
}

/* One client with a module and some memory, so that most inputs come to something. */
static void prepare(struct rig *w, struct client *c, struct session_batch *b)
{
    hello(c, 0);
    do {
        w->need_image = false;
        session_load(b, 0, 0, 0);
        send_batch(c, b, false);
        while (!w->need_image && !ws_server_idle(w->server))
            turn(w, 1);
        if (w->need_image)
            session_upload(b, 0, 0, strlen(session_images[0]));
    } while (w->need_image);
    session_alloc(b, 0, 4096);
    send_batch(c, b, false);
    turn(w, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static struct session_batch b;
    struct bytes in = {p, n};
    uint8_t first = take8(&in);
    struct rig *w = rig(first);
    struct client *c = &w->clients[0];
    memset(&w->told, 0, sizeof(w->told));
    b.n = 0;
    prepare(w, c, &b);
    for (int i = 0; in.n && i < MAX_STEPS; i++)
        step(w, &c, &b, &in);
    send_batch(c, &b, false);
    turn(w, 0);
    if (first & 0x80)
        wait_idle(w);
    if (w->policy_changed)
        set_policy(c, w->config.policy ? w->config.policy : "none");
    w->policy_changed = false;
    end_clients(w);
    return 0;
}

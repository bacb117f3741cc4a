// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/wsclient.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sha256.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

#include "base/clock.h"
#include "protocol/curve.h"

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "wsclient: %s: %s\n", what, strerror(errno));
    abort();
}

/* ---- keys for tcp: one pair for the daemons, one for the clients ---- */

static struct ws_curve_keys daemon_keys, client_keys;

static void make_keys(void)
{
    if (!daemon_keys.public_key[0] &&
        (zmq_curve_keypair(daemon_keys.public_key, daemon_keys.secret_key) ||
         zmq_curve_keypair(client_keys.public_key, client_keys.secret_key)))
        die("zmq_curve_keypair");
}

static void write_text(const char *dir, const char *name, const char *key, const char *value)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f || fchmod(fileno(f), 0600))
        die(path);
    fprintf(f, "%s %s\n", key, value);
    fclose(f);
}

static void use_keys(void *socket, const char *endpoint)
{
    make_keys();
    if (!strncmp(endpoint, "tcp://", 6) &&
        (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, daemon_keys.public_key, WS_CURVE_TEXT_BYTES) ||
         zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, client_keys.public_key, WS_CURVE_TEXT_BYTES) ||
         zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, client_keys.secret_key, WS_CURVE_TEXT_BYTES)))
        die("keys");
}

/* ---- daemon ---- */

static void write_conf(const struct wst_daemon *d, const char *path, const char *conf)
{
    FILE *f = fopen(path, "w");
    if (!f)
        die(path);
    for (const char *p = conf; *p; p++) {
        if (!strncmp(p, "%IPC%", 5)) {
            fputs(d->ipc, f);
            p += 4;
        } else if (!strncmp(p, "%TCP%", 5)) {
            fputs(d->tcp, f);
            p += 4;
        } else {
            fputc(*p, f);
        }
    }
    if (strstr(conf, "%TCP%")) {
        char user[16];
        make_keys();
        snprintf(user, sizeof(user), "%u", getuid());
        write_text(d->dir, "key", "secret", daemon_keys.secret_key);
        write_text(d->dir, "clients", user, client_keys.public_key);
        fprintf(f, "\ncurve_key = \"%s/key\"\ncurve_clients = \"%s/clients\"\n", d->dir, d->dir);
    }
    fclose(f);
}

static void launch(struct wst_daemon *d)
{
    const char *argv[WS_ARRAY_SIZE(d->args) + 4];
    char byte, fd_text[16];
    int ready[2], n = 0;
    if (pipe(ready))
        die("pipe");
    snprintf(fd_text, sizeof(fd_text), "%d", ready[1]);
    while (d->args[n][0]) {
        argv[n] = d->args[n];
        n++;
    }
    argv[n++] = "--ready-fd";
    argv[n++] = fd_text;
    argv[n] = NULL;
    d->pid = fork();
    if (d->pid < 0)
        die("fork");
    if (!d->pid) {
        int log = open(d->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(log, 2);
        close(ready[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    close(ready[1]);
    struct pollfd p = {.fd = ready[0], .events = POLLIN};
    if (poll(&p, 1, 60000) != 1 || read(ready[0], &byte, 1) != 1) {
        char command[160];
        snprintf(command, sizeof(command), "cat %s >&2", d->log);
        if (system(command))
            fputs("(no log)\n", stderr);
        die("the daemon did not start");
    }
    close(ready[0]);
}

void wst_daemon_start(struct wst_daemon *d, const char *conf, const char *const *extra)
{
    static int n_started;
    const char *program = getenv("WATTSHARED");
    int n = 0;
    *d = (struct wst_daemon){0};
    snprintf(d->dir, sizeof(d->dir), "/tmp/wst-%d-%d", (int)getpid(), n_started++);
    if (mkdir(d->dir, 0700))
        die(d->dir);
    snprintf(d->ipc, sizeof(d->ipc), "ipc://%s/sock", d->dir);
    snprintf(d->tcp, sizeof(d->tcp), "tcp://127.0.0.1:%d",
             20000 + (int)getpid() % 20000 + n_started);
    snprintf(d->log, sizeof(d->log), "%s.log", d->dir);
    snprintf(d->args[n++], sizeof(d->args[0]), "%s", program ? program : "backend/wattshared");
    if (conf) {
        snprintf(d->args[n++], sizeof(d->args[0]), "--config");
        snprintf(d->args[n], sizeof(d->args[0]), "%s/conf", d->dir);
        write_conf(d, d->args[n++], conf);
    } else {
        snprintf(d->args[n++], sizeof(d->args[0]), "--socket");
        snprintf(d->args[n++], sizeof(d->args[0]), "%s", d->ipc);
    }
    for (; extra && *extra; extra++)
        snprintf(d->args[n++], sizeof(d->args[0]), "%s", *extra);
    launch(d);
}

void wst_daemon_restart(struct wst_daemon *d)
{
    launch(d);
}

int wst_daemon_stop(struct wst_daemon *d)
{
    int status = 0;
    char path[128];
    kill(d->pid, SIGTERM);
    for (int i = 0; i < 3000 && waitpid(d->pid, &status, WNOHANG) == 0; i++) {
        if (i == 2999) {
            kill(d->pid, SIGKILL);
            waitpid(d->pid, &status, 0);
        }
        usleep(10000);
    }
    static const char *const files[] = {"conf", "key", "clients"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", d->dir, files[i]);
        unlink(path);
    }
    if (rmdir(d->dir))
        fprintf(stderr, "wsclient: the daemon left files in %s\n", d->dir);
    int r = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
    if (r) {
        snprintf(path, sizeof(path), "cat %s >&2", d->log);
        if (system(path))
            fputs("(no log)\n", stderr);
    }
    unlink(d->log);
    return r;
}

static long status_kib(const struct wst_daemon *d, const char *key)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)d->pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        if (!strncmp(line, key, strlen(key)))
            kib = atol(line + strlen(key));
    if (f)
        fclose(f);
    return kib;
}

long wst_daemon_rss_kib(const struct wst_daemon *d)
{
    return status_kib(d, "VmRSS:");
}

long wst_daemon_rss_anon_kib(const struct wst_daemon *d)
{
    return status_kib(d, "RssAnon:");
}

int wst_daemon_n_fds(const struct wst_daemon *d)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)d->pid);
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

bool wst_daemon_log_has(const struct wst_daemon *d, const char *text)
{
    char line[2048];
    bool found = false;
    FILE *f = fopen(d->log, "r");
    while (f && fgets(line, sizeof(line), f))
        found |= strstr(line, text) != NULL;
    if (f)
        fclose(f);
    return found;
}

/* ---- client ---- */

void wst_connect(struct wst_client *c, void *ctx, const char *endpoint)
{
    int linger = 200;
    memset(c, 0, offsetof(struct wst_client, batch));
    c->n_batch = c->n_batch_commands = 0;
    c->n_held = 0;
    c->next_seq = 1;
    c->side = c->ring.doorbell = -1;
    c->ctx = ctx ? NULL : zmq_ctx_new();
    c->sock = zmq_socket(ctx ? ctx : c->ctx, ZMQ_DEALER);
    if (!c->sock || zmq_setsockopt(c->sock, ZMQ_LINGER, &linger, sizeof(linger)))
        die("socket");
    use_keys(c->sock, endpoint);
    if (zmq_connect(c->sock, endpoint))
        die("connect");
}

void wst_send_raw(struct wst_client *c, const void *p, size_t n, bool more)
{
    if (zmq_send(c->sock, p, n, more ? ZMQ_SNDMORE : 0) < 0)
        die("zmq_send");
}

void wst_send_message(struct wst_client *c, Ws__ClientMessage *m)
{
    size_t n = ws__client_message__get_packed_size(m);
    uint8_t *p = malloc(n ? n : 1);
    ws__client_message__pack(m, p);
    wst_send_raw(c, p, n, false);
    free(p);
}

/* The next message by the rules of ring.h, if one is there. */
static Ws__ServerMessage *next_message(struct wst_client *c)
{
    uint8_t message[WS_RING_MESSAGE_BYTES];
    Ws__ServerMessage *s;
    if (!c->has_come) {
        zmq_msg_init(&c->came);
        c->has_come = zmq_msg_recv(&c->came, c->sock, ZMQ_DONTWAIT) >= 0;
    }
    ssize_t n = ws_ring_take(&c->ring, message);
    if (n >= 0) {
        s = ws__server_message__unpack(NULL, (size_t)n, message);
    } else if (c->has_come) {
        s = ws__server_message__unpack(NULL, zmq_msg_size(&c->came), zmq_msg_data(&c->came));
        zmq_msg_close(&c->came);
        c->has_come = false;
        c->ring.n_received++;
    } else {
        return NULL;
    }
    if (!s)
        die("the daemon sent what is no ServerMessage");
    return s;
}

static Ws__ServerMessage *receive(struct wst_client *c, int timeout_ms)
{
    zmq_pollitem_t items[] = {{.socket = c->sock, .events = ZMQ_POLLIN},
                              {.fd = c->ring.doorbell, .events = ZMQ_POLLIN}};
    Ws__ServerMessage *s;
    for (;;) {
        ws_ring_wait(&c->ring, true);
        s = next_message(c);
        if (s || zmq_poll(items, c->ring.memory ? 2 : 1, timeout_ms) < 1)
            break;
        if (items[1].revents && !ws_ring_hear(&c->ring, NULL))
            break;
    }
    ws_ring_wait(&c->ring, false);
    if (!s && !(s = next_message(c)))
        return NULL;
    if (s->notice) {
        if (s->notice->retired > c->retired)
            c->retired = s->notice->retired;
        if (s->notice->error || s->notice->dropped) {
            snprintf(c->notice_text, sizeof(c->notice_text), "%s", s->notice->text);
            c->last_notice = *s->notice;
            c->last_notice.text = c->notice_text;
        }
        c->dropped |= s->notice->dropped;
    }
    return s;
}

const char *wst_task = "";

int wst_hello(struct wst_client *c, bool local, const char *visible)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.pid = (uint32_t)getpid();
    h.exe = (char *)"/test/raw";
    h.comm = (char *)"raw";
    h.local = local;
    h.task = (char *)wst_task;
    h.has_visible_devices = visible != NULL;
    h.visible_devices = (char *)(visible ? visible : "");
    m.hello = &h;
    wst_send_message(c, &m);
    c->hello_message = receive(c, 60000);
    if (!c->hello_message || !c->hello_message->hello)
        die("no answer to hello");
    c->hello = c->hello_message->hello;
    if (!c->hello->error && local && c->hello->handoff_socket[0]) {
        struct ws_handoff_request q = {.kind = WS_HANDOFF_HELLO};
        struct ws_handoff_reply a;
        memcpy(q.token, c->hello->token.data, sizeof(q.token));
        c->side = ws_handoff_connect(c->hello->handoff_socket);
        if (c->side < 0 || ws_packet_send(c->side, &q, sizeof(q), -1, 0) ||
            ws_packet_recv(c->side, &a, sizeof(a), NULL, 0) != sizeof(a))
            die("side socket");
        if (a.error)
            return (int)a.error;
    }
    return c->hello->error;
}

void wst_open(struct wst_client *c, void *ctx, const char *endpoint, bool local)
{
    wst_connect(c, ctx, endpoint);
    if (wst_hello(c, local, NULL))
        die("hello refused");
}

static void drop_held(struct wst_client *c)
{
    for (unsigned i = 0; i < c->n_held; i++)
        ws__server_message__free_unpacked(c->held[i], NULL);
    c->n_held = 0;
}

void wst_close(struct wst_client *c, bool goodbye)
{
    if (goodbye && !c->dropped) {
        Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
        m.goodbye = true;
        wst_send_message(c, &m);
    }
    drop_held(c);
    if (c->hello_message)
        ws__server_message__free_unpacked(c->hello_message, NULL);
    if (c->has_come)
        zmq_msg_close(&c->came);
    ws_ring_end(&c->ring);
    if (c->side >= 0)
        close(c->side);
    zmq_close(c->sock);
    if (c->ctx)
        zmq_ctx_term(c->ctx);
}

static size_t put_varint(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

uint64_t wst_post(struct wst_client *c, Ws__Command__CCase which, void *sub)
{
    Ws__Command cmd = WS__COMMAND__INIT;
    cmd.c_case = which;
    switch (which) { /* scalars are given by address */
    case WS__COMMAND__C_STREAM_DESTROY:
    case WS__COMMAND__C_EVENT_DESTROY:
    case WS__COMMAND__C_MODULE_UNLOAD:
    case WS__COMMAND__C_HOST_UNMAP:
        cmd.stream_destroy = *(uint64_t *)sub;
        break;
    case WS__COMMAND__C_MEM_INFO:
        cmd.mem_info = *(uint32_t *)sub;
        break;
    default:
        cmd.launch = sub;
    }
    size_t n = ws__command__get_packed_size(&cmd);
    if (c->n_batch + n + 32 > sizeof(c->batch))
        wst_flush(c);
    if (!c->n_batch) {
        c->batch[0] = 0x10;
        c->n_batch = 1 + put_varint(c->batch + 1, c->next_seq);
    }
    if (n + 32 > sizeof(c->batch))
        die("command too large for the batch");
    c->batch[c->n_batch++] = 0x1a;
    c->n_batch += put_varint(c->batch + c->n_batch, n);
    c->n_batch += ws__command__pack(&cmd, c->batch + c->n_batch);
    c->n_batch_commands++;
    return c->next_seq++;
}

void wst_flush(struct wst_client *c)
{
    bool ring = c->ring_use == WST_RING_ALWAYS || (c->ring_use == WST_RING_SOMETIMES && rand() & 1);
    if (c->n_batch && ring && ws_ring_put(&c->ring, c->batch, c->n_batch)) {
        ws_ring_signal(&c->ring);
    } else if (c->n_batch) {
        wst_send_raw(c, c->batch, c->n_batch, false);
        c->ring.n_sent++;
    }
    c->n_batch = c->n_batch_commands = 0;
}

static const Ws__Reply *find(struct wst_client *c, uint64_t seq)
{
    for (unsigned i = 0; i < c->n_held; i++)
        for (size_t k = 0; k < c->held[i]->n_replies; k++)
            if (c->held[i]->replies[k]->seq == seq)
                return c->held[i]->replies[k];
    return NULL;
}

static bool pump_one(struct wst_client *c, int timeout_ms)
{
    Ws__ServerMessage *m = receive(c, timeout_ms);
    if (!m)
        return false;
    if (!m->n_replies) {
        ws__server_message__free_unpacked(m, NULL);
        return true;
    }
    if (c->n_held == 64) {
        ws__server_message__free_unpacked(c->held[0], NULL);
        memmove(c->held, c->held + 1, 63 * sizeof(c->held[0]));
        c->n_held--;
    }
    c->held[c->n_held++] = m;
    return true;
}

const Ws__Reply *wst_wait(struct wst_client *c, uint64_t seq, int timeout_ms)
{
    uint64_t end = ws_clock_ns() + (uint64_t)timeout_ms * 1000000;
    const Ws__Reply *r;
    while (!(r = find(c, seq)) && !c->dropped) {
        uint64_t now = ws_clock_ns();
        if (now >= end || !pump_one(c, (int)((end - now) / 1000000) + 1))
            return find(c, seq);
    }
    return r;
}

const Ws__Reply *wst_call(struct wst_client *c, Ws__Command__CCase which, void *sub)
{
    drop_held(c);
    uint64_t seq = wst_post(c, which, sub);
    wst_flush(c);
    return wst_wait(c, seq, 60000);
}

void wst_pump(struct wst_client *c, int timeout_ms)
{
    uint64_t end = ws_clock_ns() + (uint64_t)timeout_ms * 1000000;
    for (uint64_t now; !c->dropped && (now = ws_clock_ns()) < end;)
        pump_one(c, (int)((end - now) / 1000000) + 1);
}

void wst_pump_some(struct wst_client *c)
{
    drop_held(c);
    if (pump_one(c, 60000))
        while (pump_one(c, 0))
            ;
}

bool wst_wait_dropped(struct wst_client *c, int timeout_ms)
{
    wst_pump(c, timeout_ms);
    return c->dropped;
}

Ws__StatusReply *wst_status(const char *endpoint)
{
    struct wst_client *c = malloc(sizeof(*c));
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    q.version = WS_PROTOCOL_VERSION;
    m.status = &q;
    wst_connect(c, NULL, endpoint);
    wst_send_message(c, &m);
    Ws__ServerMessage *a = receive(c, 60000);
    if (!a || !a->status)
        die("no status");
    Ws__StatusReply *s = a->status;
    a->status = NULL;
    ws__server_message__free_unpacked(a, NULL);
    wst_close(c, false);
    free(c);
    return s;
}

void wst_status_free(Ws__StatusReply *s)
{
    ws__status_reply__free_unpacked(s, NULL);
}

/* ---- shorthands ---- */

int wst_alloc(struct wst_client *c, uint32_t device, uint64_t bytes, uint64_t *ret)
{
    Ws__MemAlloc m = WS__MEM_ALLOC__INIT;
    m.device = device;
    m.bytes = bytes;
    const Ws__Reply *r = wst_call(c, WS__COMMAND__C_MEM_ALLOC, &m);
    if (r && !r->error)
        *ret = r->value;
    return r ? (int)r->error : -1;
}

int wst_free(struct wst_client *c, uint64_t va)
{
    Ws__MemFree m = WS__MEM_FREE__INIT;
    m.address = va;
    const Ws__Reply *r = wst_call(c, WS__COMMAND__C_MEM_FREE, &m);
    return r ? (int)r->error : -1;
}

int wst_sync_device(struct wst_client *c, uint32_t device)
{
    Ws__Sync m = WS__SYNC__INIT;
    m.what_case = WS__SYNC__WHAT_DEVICE;
    m.device = device;
    const Ws__Reply *r = wst_call(c, WS__COMMAND__C_SYNC, &m);
    return r ? (int)r->error : -1;
}

int wst_sync_stream(struct wst_client *c, uint64_t stream)
{
    Ws__Sync m = WS__SYNC__INIT;
    m.what_case = WS__SYNC__WHAT_STREAM;
    m.stream = stream;
    const Ws__Reply *r = wst_call(c, WS__COMMAND__C_SYNC, &m);
    return r ? (int)r->error : -1;
}

uint64_t wst_load_begin(struct wst_client *c, uint64_t module, uint32_t device, const char *ptx)
{
    uint8_t sha256[WS_SHA256_BYTES];
    SHA2_CTX sha;
    size_t n = strlen(ptx);
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)ptx, n);
    SHA256Final(sha256, &sha);
    Ws__ModuleLoad m = WS__MODULE_LOAD__INIT;
    m.module = module;
    m.device = device;
    m.sha256 = (ProtobufCBinaryData){sizeof(sha256), sha256};
    m.image_bytes = n;
    m.name = (char *)"test.ptx";
    drop_held(c);
    uint64_t seq = wst_post(c, WS__COMMAND__C_MODULE_LOAD, &m);
    wst_flush(c);
    const Ws__Reply *r = wst_wait(c, seq, 60000);
    if (r && r->error == WS__ERROR__NEED_IMAGE) {
        Ws__ModuleImage i = WS__MODULE_IMAGE__INIT;
        i.sha256 = m.sha256;
        i.image_bytes = n;
        for (size_t at = 0; at < n;
             at += i.data.len) { /* in two or more parts, so that parts are tested too */
            i.offset = at;
            i.data =
                (ProtobufCBinaryData){n - at > n / 2 + 1 ? n / 2 + 1 : n - at, (uint8_t *)ptx + at};
            wst_post(c, WS__COMMAND__C_MODULE_IMAGE, &i);
        }
        drop_held(c);
        seq = wst_post(c, WS__COMMAND__C_MODULE_LOAD, &m);
        wst_flush(c);
    }
    return seq;
}

int wst_load_ptx(struct wst_client *c, uint64_t module, uint32_t device, const char *ptx)
{
    const Ws__Reply *r = wst_wait(c, wst_load_begin(c, module, device, ptx), 60000);
    return r ? (int)r->error : -1;
}

static const Ws__ModuleInfo *last_module(struct wst_client *c)
{
    for (unsigned i = c->n_held; i-- > 0;)
        for (size_t k = 0; k < c->held[i]->n_replies; k++)
            if (c->held[i]->replies[k]->module)
                return c->held[i]->replies[k]->module;
    return NULL;
}

int wst_kernel_index(struct wst_client *c, const char *name)
{
    const Ws__ModuleInfo *m = last_module(c);
    for (size_t i = 0; m && i < m->n_kernels; i++)
        if (!strcmp(m->kernels[i]->name, name))
            return (int)i;
    return -1;
}

uint64_t wst_variable(struct wst_client *c, const char *name)
{
    const Ws__ModuleInfo *m = last_module(c);
    for (size_t i = 0; m && i < m->n_variables; i++)
        if (!strcmp(m->variables[i]->name, name))
            return m->variables[i]->address;
    return 0;
}

void wst_launch(struct wst_client *c, uint64_t stream, uint64_t module, uint32_t kernel,
                uint32_t grid, uint32_t block, const void *params, size_t n)
{
    Ws__Launch l = WS__LAUNCH__INIT;
    l.stream = stream;
    l.function = module << WS_FUNCTION_INDEX_BITS | kernel;
    l.grid_x = grid;
    l.grid_y = l.grid_z = 1;
    l.block_x = block;
    l.block_y = l.block_z = 1;
    l.params = (ProtobufCBinaryData){n, (uint8_t *)params};
    wst_post(c, WS__COMMAND__C_LAUNCH, &l);
}

int wst_write(struct wst_client *c, uint64_t stream, uint64_t va, const void *p, size_t n)
{
    Ws__Copy m = WS__COPY__INIT;
    m.stream = stream;
    m.dst = va;
    m.bytes = n;
    m.bulk = WS__COPY__BULK__INLINE;
    m.data = (ProtobufCBinaryData){n, (uint8_t *)p};
    const Ws__Reply *r = wst_call(c, WS__COMMAND__C_COPY_SYNC, &m);
    return r ? (int)r->error : -1;
}

int wst_read(struct wst_client *c, uint64_t stream, uint64_t va, void *p, size_t n)
{
    Ws__Copy m = WS__COPY__INIT;
    m.stream = stream;
    m.src = va;
    m.bytes = n;
    m.bulk = WS__COPY__BULK__REPLY_DST;
    const Ws__Reply *r = wst_call(c, WS__COMMAND__C_COPY_SYNC, &m);
    if (r && !r->error && r->data.len == n)
        memcpy(p, r->data.data, n);
    return r ? (int)r->error : -1;
}

int wst_side_request(struct wst_client *c, uint32_t kind, int *ret_fd)
{
    struct ws_handoff_request q = {.kind = kind};
    struct ws_handoff_reply a;
    memcpy(q.token, c->hello->token.data, sizeof(q.token));
    if (ws_packet_send(c->side, &q, sizeof(q), -1, 0) ||
        ws_packet_recv(c->side, &a, sizeof(a), ret_fd, 0) != sizeof(a))
        die("side socket");
    return (int)a.error;
}

int wst_ring_open(struct wst_client *c)
{
    int fd = -1, r = wst_side_request(c, WS_HANDOFF_RING, &fd);
    if (r)
        return r;
    if (!ws_packet_memfd_ok(fd, sizeof(struct ws_ring_memory)) || ws_ring_map(&c->ring, fd, true))
        die("the ring's memory");
    close(fd);
    return wst_side_request(c, WS_HANDOFF_DOORBELL, &c->ring.doorbell);
}

int wst_segment(struct wst_client *c, uint32_t kind, uint64_t bytes, uint32_t chunk_bytes,
                uint32_t *ret_id, uint8_t **ret_map, uint64_t *ret_data_offset)
{
    struct ws_handoff_request q = {.kind = kind, .bytes = bytes, .chunk_bytes = chunk_bytes};
    struct ws_handoff_reply a;
    int fd;
    memcpy(q.token, c->hello->token.data, sizeof(q.token));
    if (ws_packet_send(c->side, &q, sizeof(q), -1, 0) ||
        ws_packet_recv(c->side, &a, sizeof(a), &fd, 0) != sizeof(a))
        die("side request");
    if (a.error)
        return (int)a.error;
    uint64_t n = a.data_offset + a.bytes;
    if (!ws_packet_memfd_ok(fd, n))
        die("the segment is not as large as the daemon says, or can shrink");
    *ret_map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (*ret_map == MAP_FAILED)
        die("mmap");
    close(fd);
    *ret_id = a.segment;
    *ret_data_offset = a.data_offset;
    return 0;
}

const char wst_ptx[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 7;\n"
    ".visible .entry fill(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .u64 %rd<4>;\n.reg .u32 %r<6>;\n"
    "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [v];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r5, %r2, %r3, %r4;\nmul.wide.u32 %rd2, %r5, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "add.u32 %r1, %r1, %r5;\nst.global.u32 [%rd3], %r1;\nret;\n}\n"
    ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .u64 %rd<4>;\n.reg .u32 %r<7>;\n"
    "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [v];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r5, %r2, %r3, %r4;\nmul.wide.u32 %rd2, %r5, 4;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r6, [%rd3];\nadd.u32 %r6, %r6, %r1;\nst.global.u32 [%rd3], %r6;\nret;\n}\n"
    ".visible .entry spin()\n{\nL:\nbra L;\n}\n"
    ".visible .entry oob(.param .u64 p)\n{\n.reg .u64 %rd<2>;\n.reg .u32 %r<2>;\n"
    "ld.param.u64 %rd1, [p];\nmov.u32 %r1, 1;\nst.global.u32 [%rd1], %r1;\nret;\n}\n"
    ".visible .entry empty()\n{\nret;\n}\n";

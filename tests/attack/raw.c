/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/attack/raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sha256.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/macros.h"
#include "protocol/handoff.h"

/* ---- connections ---- */

/* @from: an address of this machine; NULL: any. */
static int dial(int family, const struct sockaddr *to, socklen_t n, const struct sockaddr *from)
{
    struct timeval patience = {.tv_sec = 2};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if ((!from || !bind(fd, from, n)) && !connect(fd, to, n))
        return fd;
    close(fd);
    return -1;
}

int raw_dial(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strncpy(to.sun_path, path, sizeof(to.sun_path) - 1);
    return dial(AF_UNIX, (const struct sockaddr *)&to, sizeof(to), NULL);
}

static struct sockaddr_in loopback(unsigned port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

int raw_dial_tcp(unsigned port)
{
    struct sockaddr_in to = loopback(port);
    return dial(AF_INET, (const struct sockaddr *)&to, sizeof(to), NULL);
}

int raw_dial_tcp_from(const char *address, unsigned port)
{
    struct sockaddr_in to = loopback(port), from = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, address, &from.sin_addr) != 1)
        return -1;
    return dial(AF_INET, (const struct sockaddr *)&to, sizeof(to), (const struct sockaddr *)&from);
}

int raw_bytes(int fd, const void *p, size_t n)
{
    const uint8_t *from = p;
    while (n) {
        ssize_t sent = send(fd, from, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        from += sent;
        n -= (size_t)sent;
    }
    return 0;
}

static int read_all(int fd, void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = recv(fd, (uint8_t *)p + at, n - at, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        at += (size_t)got;
    }
    return 0;
}

/* ---- ZMTP ---- */

enum { MORE = 1, LONG = 2, COMMAND = 4 };

size_t raw_greeting(uint8_t *to)
{
    memset(to, 0, RAW_GREETING_BYTES);
    to[0] = 0xff;
    to[9] = 0x7f;
    to[10] = 3;
    memcpy(to + 12, "NULL", 4);
    return RAW_GREETING_BYTES;
}

static size_t property(uint8_t *to, const char *name, const void *value, size_t n)
{
    size_t n_name = strlen(name);
    uint32_t length = htonl((uint32_t)n);
    to[0] = (uint8_t)n_name;
    memcpy(to + 1, name, n_name);
    memcpy(to + 1 + n_name, &length, 4);
    memcpy(to + 5 + n_name, value, n);
    return 5 + n_name + n;
}

size_t raw_ready(uint8_t *to, const void *id, size_t n_id)
{
    size_t n = 8;
    memcpy(to + 2, "\5READY", 6);
    n += property(to + n, "Socket-Type", "DEALER", 6);
    if (n_id)
        n += property(to + n, "Identity", id, n_id);
    to[0] = COMMAND;
    to[1] = (uint8_t)(n - 2); /* routing ids of the attacks are short enough for this form */
    return n;
}

size_t raw_head(uint8_t to[9], uint64_t n, bool more)
{
    to[0] = more ? MORE : 0;
    if (n < 256) {
        to[1] = (uint8_t)n;
        return 2;
    }
    to[0] |= LONG;
    for (int i = 0; i < 8; i++)
        to[1 + i] = (uint8_t)(n >> (56 - 8 * i));
    return 9;
}

int raw_frame(int fd, const void *p, size_t n, bool more)
{
    uint8_t head[9];
    return raw_bytes(fd, head, raw_head(head, n, more)) || raw_bytes(fd, p, n) ? -1 : 0;
}

/* One frame, to be freed. */
static uint8_t *read_frame(int fd, uint8_t *ret_flags, size_t *ret_n)
{
    uint8_t head[9];
    uint64_t n;
    if (read_all(fd, head, 2))
        return NULL;
    n = head[1];
    if (head[0] & LONG) {
        if (read_all(fd, head + 2, 7))
            return NULL;
        n = 0;
        for (int i = 0; i < 8; i++)
            n = n << 8 | head[1 + i];
    }
    uint8_t *p = n < (64u << 20) ? malloc(n + 1) : NULL;
    if (!p || read_all(fd, p, n)) {
        free(p);
        return NULL;
    }
    *ret_flags = head[0];
    *ret_n = n;
    return p;
}

int raw_greet(int fd, const void *id, size_t n_id)
{
    uint8_t p[RAW_GREETING_BYTES + RAW_READY_BYTES], flags = 0;
    size_t n = raw_greeting(p);
    if (raw_bytes(fd, p, n + raw_ready(p + n, id, n_id)) || read_all(fd, p, RAW_GREETING_BYTES))
        return -1;
    free(read_frame(fd, &flags, &n));
    return flags & COMMAND ? 0 : -1;
}

int raw_message(int fd, const Ws__ClientMessage *m)
{
    size_t n = ws__client_message__get_packed_size(m);
    uint8_t *p = malloc(n + 1);
    if (!p)
        return -1;
    ws__client_message__pack(m, p);
    int r = raw_frame(fd, p, n, false);
    free(p);
    return r;
}

Ws__ServerMessage *raw_receive(int fd)
{
    uint8_t flags, *p;
    size_t n;
    while ((p = read_frame(fd, &flags, &n)) && (flags & COMMAND))
        free(p); /* a heartbeat; the daemon sends none to local clients */
    Ws__ServerMessage *m = p ? ws__server_message__unpack(NULL, n, p) : NULL;
    free(p);
    return m;
}

Ws__ServerMessage *raw_status(int fd)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    Ws__ServerMessage *a;
    q.version = WS_PROTOCOL_VERSION;
    m.status = &q;
    if (raw_message(fd, &m))
        return NULL;
    while ((a = raw_receive(fd)) && !a->status)
        ws__server_message__free_unpacked(a, NULL);
    return a;
}

/* ---- a client ---- */

static int hello(struct raw *r, const char *exe)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    h.version = WS_PROTOCOL_VERSION;
    h.pid = (uint32_t)getpid();
    h.exe = (char *)(exe ? exe : "/test/attacker");
    h.comm = (char *)"attacker";
    h.local = true;
    h.env_told = true;
    m.hello = &h;
    Ws__ServerMessage *a = raw_message(r->fd, &m) ? NULL : raw_receive(r->fd);
    int e = a && a->hello ? (int)a->hello->error : -1;
    if (!e) {
        r->client = a->hello->client;
        memcpy(r->token, a->hello->token.data, WS_MIN(a->hello->token.len, sizeof(r->token)));
    }
    if (a)
        ws__server_message__free_unpacked(a, NULL);
    return e;
}

int raw_open(struct raw *r, const char *path, const char *exe)
{
    *r = (struct raw){.fd = raw_dial(path), .side = -1, .next_seq = 1, .ring.doorbell = -1};
    int e = r->fd < 0 || raw_greet(r->fd, "", 0) ? -1 : hello(r, exe);
    if (e)
        raw_close(r);
    return e;
}

void raw_close(struct raw *r)
{
    ws_ring_end(&r->ring);
    if (r->side >= 0)
        close(r->side);
    if (r->fd >= 0)
        close(r->fd);
    free(r->batch);
    *r = (struct raw){.fd = -1, .side = -1, .ring.doorbell = -1};
}

int raw_side(struct raw *r, uint32_t kind, uint64_t bytes, int *ret_fd)
{
    struct ws_handoff_request q = {.kind = kind, .bytes = bytes};
    struct ws_handoff_reply a;
    memcpy(q.token, r->token, sizeof(q.token));
    if (r->side < 0 || ws_packet_send(r->side, &q, sizeof(q), -1, 0) ||
        ws_packet_recv(r->side, &a, sizeof(a), ret_fd, 0) != sizeof(a))
        return -1;
    return (int)a.error;
}

int raw_open_side(struct raw *r, const char *side)
{
    struct timeval patience = {.tv_sec = 2};
    r->side = ws_handoff_connect(side);
    if (r->side < 0)
        return -1;
    setsockopt(r->side, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(r->side, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    return raw_side(r, WS_HANDOFF_HELLO, 0, NULL) ? -1 : 0;
}

int raw_open_ring(struct raw *r)
{
    int fd = -1;
    if (raw_side(r, WS_HANDOFF_RING, 0, &fd) || fd < 0)
        return -1;
    int e = ws_ring_map(&r->ring, fd, true);
    close(fd);
    return e || raw_side(r, WS_HANDOFF_DOORBELL, 0, &r->ring.doorbell) ? -1 : 0;
}

/* ---- commands ---- */

static size_t varint(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        p[n++] = (uint8_t)(v | 0x80);
    p[n++] = (uint8_t)v;
    return n;
}

static Ws__Command command(Ws__Command__CCase which, const void *sub)
{
    Ws__Command c = WS__COMMAND__INIT;
    c.c_case = which;
    switch (which) {
    case WS__COMMAND__C_STREAM_DESTROY:
    case WS__COMMAND__C_EVENT_DESTROY:
    case WS__COMMAND__C_MODULE_UNLOAD:
    case WS__COMMAND__C_MEM_RELEASE:
    case WS__COMMAND__C_MEM_FREE_ASYNC:
    case WS__COMMAND__C_HOST_FUNCTION_DONE:
    case WS__COMMAND__C_HOST_UNMAP:
    case WS__COMMAND__C_VA_FREE:
        c.stream_destroy = *(const uint64_t *)sub;
        break;
    case WS__COMMAND__C_OUTPUT:
    case WS__COMMAND__C_MEM_INFO:
        c.mem_info = *(const uint32_t *)sub;
        break;
    default:
        c.launch = (Ws__Launch *)sub;
    }
    return c;
}

uint64_t raw_put(struct raw *r, Ws__Command__CCase which, const void *sub)
{
    Ws__Command c = command(which, sub);
    size_t n = ws__command__get_packed_size(&c);
    if (r->n_batch + n + 32 > r->size) {
        r->size = 2 * (r->n_batch + n + 32);
        r->batch = realloc(r->batch, r->size);
        if (!r->batch)
            abort();
    }
    if (!r->n_batch) { /* ClientMessage.first_seq */
        r->batch[0] = 0x10;
        r->n_batch = 1 + varint(r->batch + 1, r->next_seq);
    }
    r->batch[r->n_batch++] = 0x1a; /* ClientMessage.commands */
    r->n_batch += varint(r->batch + r->n_batch, n);
    r->n_batch += ws__command__pack(&c, r->batch + r->n_batch);
    return r->next_seq++;
}

int raw_send(struct raw *r)
{
    int e = raw_frame(r->fd, r->batch, r->n_batch, false);
    r->n_batch = 0;
    r->ring.n_sent++;
    return e;
}

/* Calls @take with the reply. Return: its error, or -1. */
static int wait_for(struct raw *r, uint64_t seq, void (*take)(void *arg, const Ws__Reply *a),
                    void *arg)
{
    Ws__ServerMessage *a;
    int e = -2;
    while (e == -2 && (a = raw_receive(r->fd))) {
        if (a->notice && a->notice->dropped)
            e = -1;
        for (size_t i = 0; i < a->n_replies; i++) {
            if (a->replies[i]->seq != seq)
                continue;
            e = (int)a->replies[i]->error;
            take(arg, a->replies[i]);
        }
        ws__server_message__free_unpacked(a, NULL);
    }
    return e == -2 ? -1 : e;
}

static void take_value(void *arg, const Ws__Reply *a)
{
    if (arg)
        *(uint64_t *)arg = a->value;
}

int raw_wait(struct raw *r, uint64_t seq, uint64_t *ret_value)
{
    return wait_for(r, seq, take_value, ret_value);
}

static void take_data(void *arg, const Ws__Reply *a)
{
    ProtobufCBinaryData *d = arg;
    if (a->data.len == d->len)
        memcpy(d->data, a->data.data, d->len);
    else
        d->len = 0;
}

bool raw_wait_data(struct raw *r, uint64_t seq, uint8_t *ret, size_t n)
{
    ProtobufCBinaryData d = {n, ret};
    return !wait_for(r, seq, take_data, &d) && d.len == n;
}

int raw_call(struct raw *r, Ws__Command__CCase which, const void *sub, uint64_t *ret_value)
{
    uint64_t seq = raw_put(r, which, sub);
    return raw_send(r) ? -1 : raw_wait(r, seq, ret_value);
}

/* ---- modules ---- */

enum { PART_BYTES = 1 << 20 };

static int upload(struct raw *r, const Ws__ModuleLoad *l, const void *image, size_t n)
{
    Ws__ModuleImage i = WS__MODULE_IMAGE__INIT;
    i.sha256 = l->sha256;
    i.image_bytes = n;
    for (size_t at = 0; at < n; at += i.data.len) {
        i.offset = at;
        i.data = (ProtobufCBinaryData){WS_MIN(n - at, (size_t)PART_BYTES), (uint8_t *)image + at};
        raw_put(r, WS__COMMAND__C_MODULE_IMAGE, &i);
        if (raw_send(r))
            return -1;
    }
    return 0;
}

static int load(struct raw *r, uint64_t module, const uint8_t *sha256, const void *image, size_t n,
                bool wait)
{
    Ws__ModuleLoad l = WS__MODULE_LOAD__INIT;
    l.module = module;
    l.sha256 = (ProtobufCBinaryData){WS_SHA256_BYTES, (uint8_t *)sha256};
    l.image_bytes = n;
    l.name = (char *)"attack.ptx";
    int e = raw_call(r, WS__COMMAND__C_MODULE_LOAD, &l, NULL);
    if (e != WS__ERROR__NEED_IMAGE)
        return e;
    if (upload(r, &l, image, n))
        return -1;
    uint64_t seq = raw_put(r, WS__COMMAND__C_MODULE_LOAD, &l);
    e = raw_send(r);
    return e || !wait ? e : raw_wait(r, seq, NULL);
}

static void hash(uint8_t *to, const void *image, size_t n)
{
    SHA2_CTX sha;
    SHA256Init(&sha);
    SHA256Update(&sha, image, n);
    SHA256Final(to, &sha);
}

int raw_load(struct raw *r, uint64_t module, const void *image, size_t n)
{
    uint8_t sha256[WS_SHA256_BYTES];
    hash(sha256, image, n);
    return load(r, module, sha256, image, n, true);
}

int raw_load_begin(struct raw *r, uint64_t module, const void *image, size_t n)
{
    uint8_t sha256[WS_SHA256_BYTES];
    hash(sha256, image, n);
    return load(r, module, sha256, image, n, false);
}

int raw_load_hashed(struct raw *r, uint64_t module, const uint8_t *sha256, const void *image,
                    size_t n)
{
    return load(r, module, sha256, image, n, true);
}

Ws__Launch raw_launch(uint64_t module, uint32_t kernel)
{
    Ws__Launch l = WS__LAUNCH__INIT;
    l.stream = WS_STREAM_DEFAULT_0;
    l.function = module << WS_FUNCTION_INDEX_BITS | kernel;
    l.grid_x = l.grid_y = l.grid_z = 1;
    l.block_x = l.block_y = l.block_z = 1;
    return l;
}

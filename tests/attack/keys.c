/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/keys.c - attacks over tcp by somebody who speaks CURVE, mostly with a key that the
 * daemon does not allow: rows 2 and 5. Each connection costs the daemon some arithmetic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "base/macros.h"
#include "tests/attack/attack.h"
#include "tests/lib/curve_client.h"

enum { COMMAND = 4, LONG = 2 };
static const uint8_t metadata[] = "\13Socket-Type\0\0\0\6DEALER";
enum {
    METADATA_BYTES = sizeof(metadata) - 1,
    HELLO_BYTES = 2 + CURVE_CLIENT_HELLO_BYTES,
    INITIATE_BYTES = 9 + CURVE_CLIENT_INITIATE_BYTES + METADATA_BYTES,
    WELCOME_BYTES = 2 + WS_CURVE_WELCOME_BYTES,
};

static size_t greeting(uint8_t *to)
{
    size_t n = raw_greeting(to);
    memcpy(to + 12, "CURVE", 5);
    return n;
}

/* Somebody whom nobody knows, but who knows the daemon. */
static void stranger(struct curve_client *c, const struct target *t)
{
    char public[41], secret[41];
    *c = (struct curve_client){0};
    if (zmq_curve_keypair(public, secret) || !zmq_z85_decode(c->own_public, public) ||
        !zmq_z85_decode(c->own_secret, secret) || !zmq_z85_decode(c->server_key, t->public_key))
        abort();
}

/* Somebody whom the daemon allows. */
static void friend_of(struct curve_client *c, const struct target *t)
{
    *c = (struct curve_client){0};
    if (!zmq_z85_decode(c->own_public, t->friend_public) ||
        !zmq_z85_decode(c->own_secret, t->friend_secret) ||
        !zmq_z85_decode(c->server_key, t->public_key))
        abort();
}

/* Greeting and HELLO, and later INITIATE: what such a client says until it is refused. */
struct introduction {
    struct curve_client c;
    int fd; /* -1: none */
    size_t n;
    uint8_t p[RAW_GREETING_BYTES + HELLO_BYTES + INITIATE_BYTES];
};

static void say_hello(struct introduction *i)
{
    i->n = greeting(i->p);
    i->p[i->n++] = COMMAND;
    i->p[i->n++] = CURVE_CLIENT_HELLO_BYTES;
    curve_client_hello(&i->c, i->p + i->n);
    i->n += CURVE_CLIENT_HELLO_BYTES;
}

/* Reads the daemon's greeting and WELCOME, and answers. Return: false: it was something else. */
static bool say_initiate(struct introduction *i)
{
    uint8_t heard[RAW_GREETING_BYTES + WELCOME_BYTES],
        head[9] = {COMMAND | LONG, [7] = (INITIATE_BYTES - 9) >> 8, (INITIATE_BYTES - 9) & 0xff};
    if (recv(i->fd, heard, sizeof(heard), MSG_WAITALL) != sizeof(heard) ||
        !curve_client_welcome(&i->c, heard + RAW_GREETING_BYTES + 2))
        return false;
    memcpy(i->p, head, sizeof(head));
    curve_client_initiate(&i->c, i->c.short_public, metadata, METADATA_BYTES, i->p + sizeof(head));
    i->n = INITIATE_BYTES;
    return true;
}

/* Proves on very many connections at once who it is, and is refused each time. What is sent is made
 * before, so that the daemon has all of it to do at a time. */
static const char *wrong_keys(const struct target *t, unsigned copy)
{
    enum { AT_ONCE = 256 };
    static struct introduction v[AT_ONCE];
    unsigned n_welcome = 0;
    (void)copy;
    for (unsigned i = 0; i < AT_ONCE; i++)
        stranger(&v[i].c, t);
    while (attack_goes_on(t)) {
        for (unsigned i = 0; i < AT_ONCE; i++)
            say_hello(&v[i]);
        for (unsigned i = 0; i < AT_ONCE; i++) {
            v[i].fd = raw_dial_tcp(t->port);
            if (v[i].fd >= 0)
                raw_bytes(v[i].fd, v[i].p, v[i].n);
        }
        for (unsigned i = 0; i < AT_ONCE; i++) {
            bool welcome = v[i].fd >= 0 && say_initiate(&v[i]);
            n_welcome += welcome;
            v[i].n = welcome ? v[i].n : 0;
        }
        for (unsigned i = 0; i < AT_ONCE; i++)
            raw_bytes(v[i].fd, v[i].p, v[i].n);
        for (unsigned i = 0; i < AT_ONCE; i++)
            if (v[i].fd >= 0)
                close(v[i].fd);
    }
    return n_welcome ? NULL : "the harness speaks no CURVE";
}

/* Connections that stop at each byte of that, and stay. */
static const char *half_keys(const struct target *t, unsigned copy)
{
    enum { HELLO_END = RAW_GREETING_BYTES + HELLO_BYTES };
    static struct introduction v;
    (void)copy;
    stranger(&v.c, t);
    for (size_t i = 0; attack_goes_on(t); i++) {
        size_t bytes = i % (HELLO_END + INITIATE_BYTES);
        v.fd = i < 2000 ? raw_dial_tcp(t->port) : -1;
        if (v.fd < 0) {
            attack_sleep_ms(5);
            continue;
        }
        if (!i || bytes >= HELLO_END)
            say_hello(&v);
        raw_bytes(v.fd, v.p, WS_MIN(bytes, (size_t)HELLO_END));
        if (bytes >= HELLO_END && say_initiate(&v))
            raw_bytes(v.fd, v.p, bytes - HELLO_END);
        if (bytes >= HELLO_END)
            say_hello(&v);
    }
    return NULL;
}

/* Introductions of 16 MiB, all but the end, and such as are longer than there is memory. */
static const char *long_keys(const struct target *t, unsigned copy)
{
    enum { HELD = 32, PIECE = 1 << 20, PIECES = 15 };
    uint8_t p[RAW_GREETING_BYTES + 9];
    char *body = calloc(1, PIECE);
    int fd[HELD] = {0};
    size_t n = greeting(p);
    p[n++] = COMMAND | LONG;
    memset(p + n, copy % 2 ? 0x7f : 0, 8);
    p[n + 4] = 1;
    for (unsigned i = 0; body && attack_goes_on(t); i = (i + 1) % HELD) {
        if (fd[i] > 0)
            close(fd[i]);
        fd[i] = raw_dial_tcp(t->port);
        if (fd[i] < 0 || raw_bytes(fd[i], p, sizeof(p)))
            attack_sleep_ms(1);
        for (unsigned k = 0; fd[i] >= 0 && k < PIECES && !raw_bytes(fd[i], body, PIECE); k++)
            ;
    }
    free(body);
    return NULL;
}

/* A frame of a message that has more. Return: 0, or -1: the daemon has had enough. */
static int send_sealed(struct introduction *i, const uint8_t *data, size_t n, uint8_t *frame)
{
    size_t body = n + CURVE_CLIENT_SEAL_BYTES;
    frame[0] = LONG;
    for (int b = 0; b < 8; b++)
        frame[8 - b] = (uint8_t)((uint64_t)body >> 8 * b);
    curve_client_seal(&i->c, WS_CURVE_MORE, data, n, frame + 9);
    return raw_bytes(i->fd, frame, 9 + body);
}

/* Somebody with a key that is allowed, whose messages never end. */
static const char *endless_key(const struct target *t, unsigned copy)
{
    enum { PIECE = 1 << 20, SMALL = 1000 };
    static struct introduction v;
    static uint8_t piece[PIECE], frame[PIECE + 9 + CURVE_CLIENT_SEAL_BYTES];
    unsigned n_let_in = 0;
    friend_of(&v.c, t);
    while (attack_goes_on(t)) {
        v.fd = raw_dial_tcp(t->port);
        if (v.fd < 0)
            continue;
        say_hello(&v);
        if (!raw_bytes(v.fd, v.p, v.n) && say_initiate(&v) && !raw_bytes(v.fd, v.p, v.n))
            while (attack_goes_on(t) && !send_sealed(&v, piece, copy % 2 ? PIECE : SMALL, frame))
                n_let_in++;
        close(v.fd);
    }
    return n_let_in ? NULL : "a key that is allowed was refused";
}

/* ---- a client with a key ---- */

/* Sends what was put, and @frames of data behind it. */
static int zmq_batch(void *socket, struct raw *r, const void *data, size_t n, unsigned frames)
{
    int flags = ZMQ_DONTWAIT,
        e = zmq_send(socket, r->batch, r->n_batch, flags | (frames ? ZMQ_SNDMORE : 0));
    r->n_batch = 0;
    for (unsigned i = 0; e >= 0 && i < frames; i++)
        e = zmq_send(socket, data, n, flags | (i + 1 < frames ? ZMQ_SNDMORE : 0));
    return e < 0 ? -1 : 0;
}

static Ws__ServerMessage *zmq_answer(void *socket)
{
    zmq_msg_t m;
    Ws__ServerMessage *a = NULL;
    zmq_msg_init(&m);
    if (zmq_msg_recv(&m, socket, 0) >= 0)
        a = ws__server_message__unpack(NULL, zmq_msg_size(&m), zmq_msg_data(&m));
    zmq_msg_close(&m);
    return a;
}

static void *zmq_friend(void *context, const struct target *t)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__Hello h = WS__HELLO__INIT;
    uint8_t bytes[256];
    char address[64];
    int ms = 2000, none = 0;
    void *s = zmq_socket(context, ZMQ_DEALER);
    snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", t->port);
    zmq_setsockopt(s, ZMQ_CURVE_SERVERKEY, t->public_key, 41);
    zmq_setsockopt(s, ZMQ_CURVE_PUBLICKEY, t->friend_public, 41);
    zmq_setsockopt(s, ZMQ_CURVE_SECRETKEY, t->friend_secret, 41);
    zmq_setsockopt(s, ZMQ_RCVTIMEO, &ms, sizeof(ms));
    zmq_setsockopt(s, ZMQ_LINGER, &none, sizeof(none));
    h.version = WS_PROTOCOL_VERSION;
    h.exe = h.comm = (char *)"friend";
    m.hello = &h;
    zmq_connect(s, address);
    zmq_send(s, bytes, ws__client_message__pack(&m, bytes), 0);
    Ws__ServerMessage *a = zmq_answer(s);
    bool in = a && a->hello && !a->hello->error;
    if (a)
        ws__server_message__free_unpacked(a, NULL);
    if (in)
        return s;
    zmq_close(s);
    return NULL;
}

/* Copies from frames of 60 KiB and to replies of 0.25 or 4 MB, which nobody reads. */
static const char *far_copies(const struct target *t, unsigned copy)
{
    enum { FRAMES = 64, BYTES = 60 << 10, LARGE = 4000000, FAR_FRAMES = 4, FAR = 250000 };
    static uint8_t data[BYTES];
    void *context = zmq_ctx_new();
    unsigned n_in = 0, frames = copy % 2 ? FRAMES : FAR_FRAMES;
    while (attack_goes_on(t)) {
        Ws__MemAlloc alloc = WS__MEM_ALLOC__INIT;
        Ws__Copy c = WS__COPY__INIT;
        struct raw r = {.fd = -1, .side = -1, .next_seq = 1};
        void *s = zmq_friend(context, t);
        if (!s)
            continue;
        n_in++;
        alloc.bytes = 64 << 20;
        raw_put(&r, WS__COMMAND__C_MEM_ALLOC, &alloc);
        (void)zmq_batch(s, &r, NULL, 0, 0);
        Ws__ServerMessage *a = zmq_answer(s);
        uint64_t at = a && a->n_replies ? a->replies[0]->value : 0;
        if (a)
            ws__server_message__free_unpacked(a, NULL);
        c.stream = WS_STREAM_DEFAULT_0;
        for (unsigned k = 0, e = 0; !e && k < 50 && attack_goes_on(t); k++) {
            for (unsigned i = 0; i < frames; i++) {
                c.dst = at + (uint64_t)i * BYTES;
                c.src = 0;
                c.bytes = BYTES;
                c.bulk = WS__COPY__BULK__FRAME_SRC;
                c.frame = i + 1;
                raw_put(&r, WS__COMMAND__C_COPY, &c);
            }
            c.src = at;
            c.dst = 0;
            c.bytes = copy % 2 ? LARGE : FAR;
            c.bulk = WS__COPY__BULK__REPLY_DST;
            for (unsigned i = 0; i < 100; i++)
                raw_put(&r, WS__COMMAND__C_COPY_SYNC, &c);
            e = zmq_batch(s, &r, data, BYTES, frames) != 0;
        }
        zmq_close(s);
        free(r.batch);
    }
    return n_in ? NULL : "a client with a key was refused";
}

const struct attack attacks_keys[] = {
    {"5", "far-copies", "a client over tcp that copies and reads nothing", far_copies, .copies = 2,
     .ms = 3000, .tcp = true},
    {"2", "wrong-keys", "proves over tcp that it has a key that is not allowed", wrong_keys,
     .copies = 2, .tcp = true},
    {"2", "half-keys", "introductions over tcp that stop at each byte", half_keys, .copies = 2,
     .ms = 3000, .n_files = 512, .tcp = true},
    {"5", "long-keys", "introductions over tcp that never end", long_keys, .copies = 2, .tcp = true,
     .max_mib = 128},
    {"5", "endless-key", "messages over tcp that never end, with a key that is allowed",
     endless_key, .copies = 4, .tcp = true, .max_mib = 128},
    {0}};

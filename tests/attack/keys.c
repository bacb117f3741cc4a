/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/keys.c - attacks over tcp by somebody who speaks CURVE, mostly with a key that the
 * daemon does not allow: rows 2 and 5. Each connection costs the daemon some arithmetic. */
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

const struct attack attacks_keys[] = {
    {"2", "wrong-keys", "proves over tcp that it has a key that is not allowed", wrong_keys,
     .copies = 2, .tcp = true},
    {"2", "half-keys", "introductions over tcp that stop at each byte", half_keys, .copies = 2,
     .ms = 3000, .n_files = 512, .tcp = true},
    {"5", "long-keys", "introductions over tcp that never end", long_keys, .copies = 2, .tcp = true,
     .max_mib = 128},
    {"5", "endless-key", "messages over tcp that never end, with a key that is allowed",
     endless_key, .copies = 4, .tcp = true, .max_mib = 128},
    {0}};

// SPDX-License-Identifier: Apache-2.0
/* CurveZMQ's commands, and what each of them proves:
 *
 *   HELLO     the client knows our public key
 *   WELCOME   we have the secret one; our short-term key comes with it
 *   INITIATE  the client has the secret key of a long-term public key, and made its short-term
 *             key itself (the vouch)
 *   READY     the connection is open; from then on MESSAGE both ways
 *
 * A cookie lets a server forget a client between WELCOME and INITIATE. Here each connection is
 * kept and counted anyway, so the cookie is a random number that has to come back, and a recorded
 * INITIATE is of no use on another connection. */
#include "backend/wire/curve.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/error.h"

enum {
    NONCE_BYTES = crypto_box_NONCEBYTES, /* 24: a prefix, and a number of 8 or 16 bytes */
    SHORT_NONCE_BYTES = 8,
    LONG_NONCE_BYTES = 16,
    MAC_BYTES = crypto_box_MACBYTES,
    KEY_BYTES = WS_CURVE_KEY_BYTES
};
enum { /* HELLO */
       HELLO_CLIENT = 80,
       HELLO_NONCE = HELLO_CLIENT + KEY_BYTES,
       HELLO_BOX = HELLO_NONCE + SHORT_NONCE_BYTES,
       HELLO_ZEROS = 64,
       HELLO_BYTES = HELLO_BOX + HELLO_ZEROS + MAC_BYTES
};
enum { /* WELCOME */
       WELCOME_NONCE = 8,
       WELCOME_BOX = WELCOME_NONCE + LONG_NONCE_BYTES,
       WELCOME_PLAIN = KEY_BYTES + WS_CURVE_COOKIE_BYTES
};
enum { /* INITIATE, and what its box holds */
       INITIATE_COOKIE = 9,
       INITIATE_NONCE = INITIATE_COOKIE + WS_CURVE_COOKIE_BYTES,
       INITIATE_BOX = INITIATE_NONCE + SHORT_NONCE_BYTES,
       INITIATE_PLAIN = INITIATE_BOX + MAC_BYTES,
       VOUCH_NONCE = KEY_BYTES,
       VOUCH_BOX = VOUCH_NONCE + LONG_NONCE_BYTES,
       VOUCH_PLAIN = 2 * KEY_BYTES,
       METADATA = VOUCH_BOX + VOUCH_PLAIN + MAC_BYTES
};
enum { /* MESSAGE */
       MESSAGE_NONCE = 8,
       MESSAGE_BOX = MESSAGE_NONCE + SHORT_NONCE_BYTES,
       MESSAGE_PLAIN = MESSAGE_BOX + MAC_BYTES
};
_Static_assert(WELCOME_BOX + WELCOME_PLAIN + MAC_BYTES == WS_CURVE_WELCOME_BYTES, "as specified");
_Static_assert(MESSAGE_PLAIN + 1 == WS_CURVE_SEAL_BYTES, "as specified");

static void short_nonce(uint8_t nonce[NONCE_BYTES], const char *prefix, const uint8_t *number)
{
    memcpy(nonce, prefix, NONCE_BYTES - SHORT_NONCE_BYTES);
    memcpy(nonce + NONCE_BYTES - SHORT_NONCE_BYTES, number, SHORT_NONCE_BYTES);
}

static void long_nonce(uint8_t nonce[NONCE_BYTES], const char *prefix, const uint8_t *number)
{
    memcpy(nonce, prefix, NONCE_BYTES - LONG_NONCE_BYTES);
    memcpy(nonce + NONCE_BYTES - LONG_NONCE_BYTES, number, LONG_NONCE_BYTES);
}

static void put_number(uint8_t *p, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        p[i] = (uint8_t)v;
}

/* Whether the client's number is higher than any before; it is then the last one. */
static bool number_rises(struct ws_curve *c, const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    if (v <= c->n_received)
        return false;
    c->n_received = v;
    return true;
}

int ws_curve_init(void)
{
    return sodium_init() < 0 ? ws_raise(-ENOTRECOVERABLE) : 0;
}

int ws_curve_server_init(struct ws_curve_server *ret, const char *secret)
{
    if (!ws_curve_decode(ret->secret_key, secret) ||
        crypto_scalarmult_base(ret->public_key, ret->secret_key))
        return ws_raise(-EINVAL);
    return 0;
}

void ws_curve_server_deinit(struct ws_curve_server *s)
{
    sodium_memzero(s, sizeof(*s));
}

void ws_curve_deinit(struct ws_curve *c)
{
    sodium_memzero(c, sizeof(*c));
}

bool ws_curve_hello(struct ws_curve *c, const uint8_t *command, size_t n,
                    uint8_t welcome[WS_CURVE_WELCOME_BYTES])
{
    static const uint8_t start[] = "\5HELLO\1"; /* its name, and the version: 1.0 */
    uint8_t nonce[NONCE_BYTES], plain[WELCOME_PLAIN], zeros[HELLO_ZEROS];
    if (n != HELLO_BYTES || memcmp(command, start, sizeof(start)) ||
        !number_rises(c, command + HELLO_NONCE))
        return false;
    memcpy(c->client, command + HELLO_CLIENT, KEY_BYTES);
    short_nonce(nonce, "CurveZMQHELLO---", command + HELLO_NONCE);
    if (crypto_box_open_easy(zeros, command + HELLO_BOX, HELLO_ZEROS + MAC_BYTES, nonce, c->client,
                             c->server->secret_key) ||
        !sodium_is_zero(zeros, sizeof(zeros)))
        return false;
    crypto_box_keypair(plain, c->secret);
    randombytes_buf(c->cookie, sizeof(c->cookie));
    memcpy(plain + KEY_BYTES, c->cookie, sizeof(c->cookie));
    memcpy(welcome, "\7WELCOME", WELCOME_NONCE);
    randombytes_buf(welcome + WELCOME_NONCE, LONG_NONCE_BYTES);
    long_nonce(nonce, "WELCOME-", welcome + WELCOME_NONCE);
    return !crypto_box_easy(welcome + WELCOME_BOX, plain, sizeof(plain), nonce, c->client,
                            c->server->secret_key) &&
           !crypto_box_beforenm(c->shared, c->client, c->secret);
}

/* @plain: key, vouch: the client's short-term key and our long-term one, boxed by its long-term
 * key for our short-term one. */
static bool vouch_holds(struct ws_curve *c, const uint8_t *plain)
{
    uint8_t nonce[NONCE_BYTES], vouch[VOUCH_PLAIN];
    long_nonce(nonce, "VOUCH---", plain + VOUCH_NONCE);
    return !crypto_box_open_easy(vouch, plain + VOUCH_BOX, VOUCH_PLAIN + MAC_BYTES, nonce, plain,
                                 c->secret) &&
           !sodium_memcmp(vouch, c->client, KEY_BYTES) &&
           !sodium_memcmp(vouch + KEY_BYTES, c->server->public_key, KEY_BYTES);
}

bool ws_curve_initiate(struct ws_curve *c, uint8_t *command, size_t n,
                       uint8_t ret_key[WS_CURVE_KEY_BYTES], const uint8_t **ret, size_t *ret_n)
{
    uint8_t nonce[NONCE_BYTES], *plain = command + INITIATE_PLAIN;
    if (n < INITIATE_PLAIN + METADATA || memcmp(command, "\10INITIATE", INITIATE_COOKIE) ||
        sodium_memcmp(command + INITIATE_COOKIE, c->cookie, sizeof(c->cookie)) ||
        !number_rises(c, command + INITIATE_NONCE))
        return false;
    short_nonce(nonce, "CurveZMQINITIATE", command + INITIATE_NONCE);
    if (crypto_box_open_detached_afternm(plain, plain, command + INITIATE_BOX, n - INITIATE_PLAIN,
                                         nonce, c->shared) ||
        !vouch_holds(c, plain))
        return false;
    sodium_memzero(c->secret, sizeof(c->secret)); /* the shared key is all that is needed now */
    memcpy(ret_key, plain, KEY_BYTES);
    *ret = plain + METADATA;
    *ret_n = n - INITIATE_PLAIN - METADATA;
    return true;
}

void ws_curve_ready(struct ws_curve *c, const uint8_t *metadata, size_t n, uint8_t *to)
{
    uint8_t nonce[NONCE_BYTES];
    memcpy(to, "\5READY", 6);
    put_number(to + 6, ++c->n_sent);
    short_nonce(nonce, "CurveZMQREADY---", to + 6);
    crypto_box_easy_afternm(to + 6 + SHORT_NONCE_BYTES, metadata, n, nonce, c->shared);
}

bool ws_curve_open(struct ws_curve *c, uint8_t *message, size_t n, uint8_t *ret_flags,
                   uint8_t **ret, size_t *ret_n)
{
    uint8_t nonce[NONCE_BYTES], *plain = message + MESSAGE_PLAIN;
    if (n < WS_CURVE_SEAL_BYTES || memcmp(message, "\7MESSAGE", MESSAGE_NONCE) ||
        !number_rises(c, message + MESSAGE_NONCE))
        return false;
    short_nonce(nonce, "CurveZMQMESSAGEC", message + MESSAGE_NONCE);
    if (crypto_box_open_detached_afternm(plain, plain, message + MESSAGE_BOX, n - MESSAGE_PLAIN,
                                         nonce, c->shared))
        return false;
    *ret_flags = plain[0];
    *ret = plain + 1;
    *ret_n = n - WS_CURVE_SEAL_BYTES;
    return true;
}

void ws_curve_seal(struct ws_curve *c, uint8_t flags, const uint8_t *data, size_t n, uint8_t *to)
{
    uint8_t nonce[NONCE_BYTES], *plain = to + MESSAGE_PLAIN;
    memcpy(to, "\7MESSAGE", MESSAGE_NONCE);
    put_number(to + MESSAGE_NONCE, ++c->n_sent);
    short_nonce(nonce, "CurveZMQMESSAGES", to + MESSAGE_NONCE);
    plain[0] = flags;
    memcpy(plain + 1, data, n);
    crypto_box_detached_afternm(plain, to + MESSAGE_BOX, plain, n + 1, nonce, c->shared);
}

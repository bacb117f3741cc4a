// SPDX-License-Identifier: Apache-2.0
#include "tests/lib/curve_client.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static void must(int r)
{
    if (r)
        abort();
}

static void number_to(struct curve_client *c, uint8_t *to, uint8_t nonce[24], const char *prefix)
{
    uint64_t v = ++c->number;
    for (int i = 7; i >= 0; i--, v >>= 8)
        to[i] = (uint8_t)v;
    memcpy(nonce, prefix, 16);
    memcpy(nonce + 16, to, 8);
}

void curve_client_hello(struct curve_client *c, uint8_t to[CURVE_CLIENT_HELLO_BYTES])
{
    uint8_t zeros[64] = {0}, nonce[24];
    memset(to, 0, CURVE_CLIENT_HELLO_BYTES);
    memcpy(to, "\5HELLO\1", 7);
    crypto_box_keypair(c->short_public, c->short_secret);
    c->number = 0;
    memcpy(to + 80, c->short_public, 32);
    number_to(c, to + 112, nonce, "CurveZMQHELLO---");
    must(crypto_box_easy(to + 120, zeros, sizeof(zeros), nonce, c->server_key, c->short_secret));
}

bool curve_client_welcome(struct curve_client *c, const uint8_t welcome[WS_CURVE_WELCOME_BYTES])
{
    uint8_t nonce[24] = "WELCOME-", plain[128];
    memcpy(nonce + 8, welcome + 8, 16);
    if (memcmp(welcome, "\7WELCOME", 8) ||
        crypto_box_open_easy(plain, welcome + 24, 144, nonce, c->server_key, c->short_secret))
        return false;
    memcpy(c->server_short, plain, 32);
    memcpy(c->cookie, plain + 32, sizeof(c->cookie));
    return !crypto_box_beforenm(c->shared, c->server_short, c->short_secret);
}

void curve_client_initiate(struct curve_client *c, const uint8_t *vouched, const uint8_t *metadata,
                           size_t n, uint8_t *to)
{
    uint8_t plain[512], both[64], nonce[24] = "VOUCH---";
    if (n > sizeof(plain) - 128)
        abort();
    memcpy(to, "\10INITIATE", 9);
    memcpy(to + 9, c->cookie, sizeof(c->cookie));
    memcpy(plain, c->own_public, 32);
    randombytes_buf(plain + 32, 16);
    memcpy(nonce + 8, plain + 32, 16);
    memcpy(both, vouched, 32);
    memcpy(both + 32, c->server_key, 32);
    must(crypto_box_easy(plain + 48, both, sizeof(both), nonce, c->server_short, c->own_secret));
    memcpy(plain + 128, metadata, n);
    number_to(c, to + 105, nonce, "CurveZMQINITIATE");
    must(crypto_box_easy_afternm(to + 113, plain, 128 + n, nonce, c->shared));
}

void curve_client_seal(struct curve_client *c, uint8_t flags, const void *data, size_t n,
                       uint8_t *to)
{
    uint8_t nonce[24], *plain = malloc(1 + n);
    if (!plain)
        abort();
    plain[0] = flags;
    memcpy(plain + 1, data, n);
    memcpy(to, "\7MESSAGE", 8);
    number_to(c, to + 8, nonce, "CurveZMQMESSAGEC");
    must(crypto_box_easy_afternm(to + 16, plain, 1 + n, nonce, c->shared));
    free(plain);
}

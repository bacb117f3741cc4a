/* SPDX-License-Identifier: Apache-2.0 */
/* tests/lib/curve_client.h - the client's side of CurveZMQ as the specification says
 * (rfc.zeromq.org/spec/26): what goes into the frames. Threads: none. */
#ifndef WS_TESTS_CURVE_CLIENT_H
#define WS_TESTS_CURVE_CLIENT_H

#include <stdbool.h>

#include "backend/wire/curve.h"

struct curve_client { /* its long-term keys and the server's key are given, the rest is made */
    uint8_t own_public[32], own_secret[32], server_key[32];
    uint8_t short_public[32], short_secret[32], server_short[32], shared[32];
    uint8_t cookie[WS_CURVE_COOKIE_BYTES];
    uint64_t number; /* of nonces */
};
enum {
    CURVE_CLIENT_HELLO_BYTES = 200,
    CURVE_CLIENT_INITIATE_BYTES = 257, /* and those of the metadata */
    CURVE_CLIENT_SEAL_BYTES = 33       /* and those of the data */
};

/* Makes new short-term keys. */
void curve_client_hello(struct curve_client *c, uint8_t to[CURVE_CLIENT_HELLO_BYTES]);
/* Return: false: it is no WELCOME of that server. */
bool curve_client_welcome(struct curve_client *c, const uint8_t welcome[WS_CURVE_WELCOME_BYTES]);
/* @vouched: the key that the long-term key speaks for. */
void curve_client_initiate(struct curve_client *c, const uint8_t *vouched, const uint8_t *metadata,
                           size_t n, uint8_t *to);
void curve_client_seal(struct curve_client *c, uint8_t flags, const void *data, size_t n,
                       uint8_t *to);

#endif

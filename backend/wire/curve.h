// SPDX-License-Identifier: Apache-2.0
/* backend/wire/curve.h - the server's side of CurveZMQ (rfc.zeromq.org/spec/26), by which clients
 * over tcp are known and what they send is encrypted. No I/O: commands go in as bytes and come out
 * as bytes; what a command holds is found behind its name. Threads: none. */
#ifndef WS_BACKEND_WIRE_CURVE_H
#define WS_BACKEND_WIRE_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"
#include "protocol/curve.h"

enum {
    WS_CURVE_WELCOME_BYTES = 168,
    WS_CURVE_COOKIE_BYTES = 96,
    WS_CURVE_SEAL_BYTES = 33, /* that a sealed frame is longer than its data */
    WS_CURVE_READY_SEAL_BYTES = 30
};
enum { WS_CURVE_MORE = 1, WS_CURVE_COMMAND = 2 }; /* flags of a sealed frame */

struct ws_curve_server { /* the daemon's keys */
    uint8_t public_key[WS_CURVE_KEY_BYTES], secret_key[WS_CURVE_KEY_BYTES];
};
/* One connection's; zeroed at first. */
struct ws_curve {
    const struct ws_curve_server *server; /* borrowed */
    uint8_t client[WS_CURVE_KEY_BYTES];   /* its short-term public key */
    uint8_t secret[WS_CURVE_KEY_BYTES];   /* ours, for this connection */
    uint8_t cookie[WS_CURVE_COOKIE_BYTES];
    uint8_t shared[WS_CURVE_KEY_BYTES]; /* of both short-term keys */
    uint64_t n_sent, n_received;        /* nonces: the last ones */
};

/* Prepares the library. Return: 0 or -ENOTRECOVERABLE. */
WS_MUST_CHECK int ws_curve_init(void);
/* @secret: as in a key file. Return: 0 or -EINVAL. */
WS_MUST_CHECK int ws_curve_server_init(struct ws_curve_server *ret, const char *secret);
void ws_curve_server_deinit(struct ws_curve_server *s); /* wipes the keys */
void ws_curve_deinit(struct ws_curve *c);               /* the same */

/* Answers HELLO. Return: false: it is no HELLO of a client that knows the server's key. */
WS_MUST_CHECK bool ws_curve_hello(struct ws_curve *c, const uint8_t *command, size_t n,
                                  uint8_t welcome[WS_CURVE_WELCOME_BYTES]);
/**
 * ws_curve_initiate() - reads INITIATE, which proves who the client is
 * @command: decrypted in place
 * @ret_key: the client's long-term public key
 * @ret:     the metadata, inside @command
 *
 * Return: false: it does not prove that, or is an answer to another WELCOME.
 */
WS_MUST_CHECK bool ws_curve_initiate(struct ws_curve *c, uint8_t *command, size_t n,
                                     uint8_t ret_key[WS_CURVE_KEY_BYTES], const uint8_t **ret,
                                     size_t *ret_n);
/* Writes READY with @metadata to @to, WS_CURVE_READY_SEAL_BYTES longer. */
void ws_curve_ready(struct ws_curve *c, const uint8_t *metadata, size_t n, uint8_t *to);

/* Opens a MESSAGE in place. Return: false: it was changed, repeated or is not from the client. */
WS_MUST_CHECK bool ws_curve_open(struct ws_curve *c, uint8_t *message, size_t n, uint8_t *ret_flags,
                                 uint8_t **ret, size_t *ret_n);
/* Writes a MESSAGE with @data to @to, WS_CURVE_SEAL_BYTES longer. */
void ws_curve_seal(struct ws_curve *c, uint8_t flags, const uint8_t *data, size_t n, uint8_t *to);

#endif

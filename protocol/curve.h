// SPDX-License-Identifier: Apache-2.0
/* protocol/curve.h - keys of ZeroMQ's CURVE (z85 text, 40 characters), as both ends of tcp:// keep
 * them in files. A key file has lines "public KEY" and "secret KEY"; '#' begins a comment. One
 * without a secret line is for others to have. Threads: any. */
#ifndef WS_PROTOCOL_CURVE_H
#define WS_PROTOCOL_CURVE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"

enum { WS_CURVE_TEXT_BYTES = 41, WS_CURVE_KEY_BYTES = 32 };
/* In a client's environment: its key file; the daemon's public key, as text or as the path of a key
 * file. */
#define WS_ENV_KEY        "WATTSHARE_KEY"
#define WS_ENV_SERVER_KEY "WATTSHARE_SERVER_KEY"

struct ws_curve_keys { /* "": not in the file */
    char public_key[WS_CURVE_TEXT_BYTES], secret_key[WS_CURVE_TEXT_BYTES];
};

/* A key's bytes, and its text. Return: false: @text is no key. */
WS_MUST_CHECK bool ws_curve_decode(uint8_t ret[WS_CURVE_KEY_BYTES], const char *text);
void ws_curve_encode(char ret[WS_CURVE_TEXT_BYTES], const uint8_t key[WS_CURVE_KEY_BYTES]);
/**
 * ws_curve_read() - a key file
 * Return: 0; negative errno of the file; -EPERM: others may read its secret key; -EINVAL: line
 * *ret_line is no line of a key file.
 */
WS_MUST_CHECK int ws_curve_read(const char *path, struct ws_curve_keys *ret, unsigned *ret_line);

/* What a client needs to connect to tcp://. */
struct ws_curve_client {
    struct ws_curve_keys own;
    char server[WS_CURVE_TEXT_BYTES];
};
/* From the environment. Return: NULL, or what is wrong, with what would be right (in @buf). */
const char *ws_curve_client(struct ws_curve_client *ret, char *buf, size_t size);

#endif

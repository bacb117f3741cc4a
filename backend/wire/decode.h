// SPDX-License-Identifier: Apache-2.0
/* backend/wire/decode.h - reading a ClientMessage a command at a time. Protobuf-c reads most of
 * them, into an arena. Read in place, without allocating, are launches, nearly all of what a busy
 * client sends, and pieces of images, which are large. Threads: none. */
#ifndef WS_BACKEND_WIRE_DECODE_H
#define WS_BACKEND_WIRE_DECODE_H

#include <stdbool.h>
#include "base/arena.h"
#include "protocol/protocol.h"

struct ws_bytes {
    const uint8_t *p;
    size_t n;
};

struct ws_client_message { /* all point into the message */
    struct ws_bytes all;
    struct ws_bytes hello, trace, policy, explain, step;
    bool has_hello, has_status, has_trace, has_policy, has_explain, has_step, goodbye;
    uint64_t first_seq;
    uint32_t n_commands;
};

/* Checks the frame of the message (not yet what is inside). It stops at the first command after
 * @max_commands: then ret->n_commands is larger. Return: false: not a ClientMessage, or one with
 * more fields beside its commands than any has. */
bool ws_decode_message(const void *data, size_t n, uint32_t max_commands,
                       struct ws_client_message *ret);
/* The next command at or after *pos (0 at first). Return: false when there is none. */
bool ws_decode_next(const struct ws_client_message *m, size_t *pos, struct ws_bytes *ret);
/* True if the command is a launch, now in *ret, whose params point into the message. */
bool ws_decode_launch(struct ws_bytes command, Ws__Launch *ret);
/* The same for a piece of an image. */
bool ws_decode_image(struct ws_bytes command, Ws__ModuleImage *ret);
/* Any other: NULL if it can't be read, or has so many fields that reading them would hold up
 * others. Lives in the arena. */
Ws__Command *ws_decode_command(struct ws_bytes command, struct ws_arena *arena);
Ws__PolicyRequest *ws_decode_policy(struct ws_bytes request, struct ws_arena *arena);
Ws__ExplainRequest *ws_decode_explain(struct ws_bytes request, struct ws_arena *arena);
Ws__TraceRequest *ws_decode_trace(struct ws_bytes trace, struct ws_arena *arena);
Ws__StepRequest *ws_decode_step(struct ws_bytes request, struct ws_arena *arena);
Ws__Hello *ws_decode_hello(struct ws_bytes hello, struct ws_arena *arena);

#endif

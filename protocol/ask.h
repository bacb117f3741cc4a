/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/ask.h - asks a daemon of this machine and gets its answers, without being its client and
 * without libzmq. Who answers is not believed: how long the answer takes, how many bytes it has and
 * how much memory it becomes are bounded. libzmq would keep the parts of a message until the last
 * one has come, however many there are.
 * Threads: one for each connection. Errors: negative errno. */
#ifndef WS_PROTOCOL_ASK_H
#define WS_PROTOCOL_ASK_H

#include <stdbool.h>
#include "base/macros.h"
#include "protocol/protocol.h"

/* An answer has at most so many bytes, and takes at most so much memory: a daemon with 100,000
 * clients, the most that it may have, needs less. */
enum { WS_ASK_ANSWER_BYTES = 64 << 20, WS_ASK_MEMORY_BYTES = 192 << 20 };

/* What both ends of a connection begin with, for a client that says all that it has to say at once:
 * greeting, and READY as a DEALER without an identity. The daemon's own are as long. */
enum { WS_ASK_GREETING_BYTES = 64, WS_ASK_READY_BYTES = 43 };
#define WS_ASK_INTRODUCTION_BYTES (WS_ASK_GREETING_BYTES + WS_ASK_READY_BYTES)
extern const uint8_t ws_ask_introduction[WS_ASK_INTRODUCTION_BYTES];

struct ws_asker {
    int fd; /* -1: none */
    bool greeted;
};
#define WS_ASKER_NULL ((struct ws_asker){.fd = -1})

/* Return: 0, -EAFNOSUPPORT (@endpoint is not ipc://), -ENAMETOOLONG, or that of connect(2). */
WS_MUST_CHECK int ws_asker_open(struct ws_asker *a, const char *endpoint);
/* Again ok, and of WS_ASKER_NULL. */
void ws_asker_close(struct ws_asker *a);

/**
 * ws_asker_ask() - one question and its answer
 * @accept: says which message is the answer; others are skipped
 * @end_ns: of the host's clock: give up then
 * @ret: freed with ws__server_message__free_unpacked(…, NULL)
 *
 * Return: 0; -ETIMEDOUT; -ECONNRESET or -EPIPE (the other end closed; asking it again may help);
 * -EPROTO (it speaks another protocol); -EMSGSIZE (more than any daemon answers). The connection is
 * only good for another question after 0.
 */
WS_MUST_CHECK int ws_asker_ask(struct ws_asker *a, const Ws__ClientMessage *question,
                               bool (*accept)(const Ws__ServerMessage *m), uint64_t end_ns,
                               Ws__ServerMessage **ret);

/* Unpacks an answer that came another way. Return: 0, -EPROTO, or -EMSGSIZE. */
WS_MUST_CHECK int ws_ask_unpack(const void *data, size_t n, Ws__ServerMessage **ret);

#endif

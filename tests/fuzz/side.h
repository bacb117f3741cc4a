/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/side.h - a client's end of the handoff socket and of its ring (protocol/ring.h), for
 * fuzz targets: what it sends may be right or wrong, and nothing of it ever waits. Server and
 * client are in one thread: after a request the server has its turn, then the answer is taken. */
#ifndef WS_TESTS_FUZZ_SIDE_H
#define WS_TESTS_FUZZ_SIDE_H

#include "protocol/protocol.h"
#include "protocol/ring.h"

struct side {
    int fd;       /* -1: not connected */
    int exported; /* a descriptor that stands for an object's memory; -1: none */
    struct ws_ring ring;
    struct ws_staging_control *staging; /* NULL: none; the newest */
    size_t staging_bytes;
};

void side_init(struct side *s);
/* Closes and unmaps all. */
void side_end(struct side *s);
void side_connect(struct side *s, const char *path);
/* Sends @n bytes with @n_fds descriptors (at most 8) of a memory file. */
void side_send(struct side *s, const void *p, size_t n, unsigned n_fds);
/* The same for a request: an IMPORT with s->exported, a SHARED with the memory file. */
void side_ask(struct side *s, const struct ws_handoff_request *q);
/* Takes all answers that have come; a descriptor that belongs to the answer of @kind is kept,
 * others are closed. */
void side_answers(struct side *s, uint32_t kind);

#endif

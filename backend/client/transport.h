/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/transport.h - messages as they come and go: who sent one, what it holds, and
 * the functions that the daemon's core calls to send one. The door (wire/door.h) stands behind
 * them; in tests, arrays do. */
#ifndef WS_BACKEND_CLIENT_TRANSPORT_H
#define WS_BACKEND_CLIENT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/client/buffer.h"

struct ws_peer { /* a connection, by the number that it was given; no other has it, ever */
    uint64_t id;
};
struct ws_peer_info {
    int fd; /* of the connection; -1: it has none */
    bool ipc;
    bool has_uid;
    uint32_t uid, pid; /* pid 0: unknown */
};
enum { WS_MAX_FRAMES = 65 };
struct ws_message {
    const struct ws_peer *peer;
    struct ws_frame *frames; /* borrowed; who keeps one calls ws_frame_keep() on a copy of it */
    unsigned n_frames;
    bool oversized; /* more frames or bytes than allowed; frames holds the first ones */
};
struct ws_transport {
    void *arg;
    /* Sends one message of one frame; the data is copied. Return: 0, -EAGAIN (the peer does not
     * fetch), -EHOSTUNREACH (gone). */
    int (*send)(void *arg, const struct ws_peer *to, const void *data, size_t n);
    /* Tells who is behind a message. */
    void (*info)(void *arg, const struct ws_message *m, struct ws_peer_info *ret);
    /* Whether the other end has closed the connection. Messages of it may be left. */
    bool (*hung_up)(void *arg, const struct ws_peer *p);
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/transport.h - messages as they come and go: who sent one, what it holds, and
 * the functions that the daemon's core calls to send one. The loop (process/loop.c) stands
 * behind them, a test with arrays. */
#ifndef WS_BACKEND_CLIENT_TRANSPORT_H
#define WS_BACKEND_CLIENT_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include "backend/client/buffer.h"

struct ws_peer { /* the sender: a socket and the routing id there; compared as n + 2 bytes */
    uint8_t socket;
    uint8_t n;
    uint8_t id[255];
};
struct ws_peer_info {
    int srcfd; /* descriptor of the connection; -1: unknown */
    bool ipc;
    bool has_uid;
    uint32_t uid, pid; /* pid 0: unknown */
    bool gone; /* the connection has ended already, and nothing will tell of that any more */
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
};

#endif

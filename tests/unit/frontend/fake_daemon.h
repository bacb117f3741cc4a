// SPDX-License-Identifier: Apache-2.0
/* A daemon in miniature for the frontend's tests: a thread that speaks the protocol, keeps "device
 * memory" in this process and does every command at once. What it does wrong is chosen by its
 * options. */
#ifndef WS_TESTS_UNIT_FRONTEND_FAKE_DAEMON_H
#define WS_TESTS_UNIT_FRONTEND_FAKE_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "protocol/ring.h"
#include "protocol/protocol.h"

enum { FAKE_ALLOCS = 64, FAKE_SEGMENTS = 64 };
struct fake_daemon {
    /* options, before start */
    const char *endpoint; /* NULL: an ipc socket in dir */
    uint32_t version, outstanding, inline_bytes;
    int hello_error;
    const char *hello_text;
    bool silent;  /* answers nothing */
    bool no_side; /* no shared memory */
    bool ring; /* offers one; what goes through ZeroMQ, like notices of errors, then comes late */
    bool garbage; /* answers with what is no message */
    /* while it runs */
    _Atomic bool paused; /* reads nothing; see fake_daemon_pause() */
    _Atomic uint64_t n_turns;
    _Atomic bool stop;
    _Atomic bool drop; /* sends "dropped" with the next message */
    _Atomic int
        fail_next; /* Ws__Error of the next Sync; also told by a Notice with the next launch */
    _Atomic uint64_t n_messages, n_commands, n_launches, n_syncs, n_images, n_goodbyes, bad_seq;
    /* the event that was recorded last, what a stream waits for, and which one does */
    _Atomic uint64_t recorded, waited_for, waiting;
    uint8_t last_params[256];
    uint32_t last_params_bytes;
    /* its own */
    char dir[64], ipc[96], side[96];
    struct ws_ring way; /* its end of the ring */
    uint8_t peer[64];
    int peer_bytes;
    Ws__Notice late; /* counted as sent, but still on its way */
    bool is_late;
    pthread_t thread;
    void *ctx, *router;
    int side_listen, side_fds[8], n_side;
    uint64_t next_seq, n_retired;
    uint8_t have_sha256[WS_SHA256_BYTES];
    struct {
        uint64_t va, bytes;
        uint8_t *p;
    } allocs[FAKE_ALLOCS];
    struct {
        uint32_t kind;
        int fd;
        uint8_t *map;
        uint64_t bytes, address;
    } segments[FAKE_SEGMENTS];
    uint32_t n_segments;
};

/* Starts it; the options are set by the caller in a zeroed struct. */
void fake_daemon_start(struct fake_daemon *d);
/* On return it has stopped to read. */
void fake_daemon_pause(struct fake_daemon *d);
/* Closes all its sockets, as death would. */
void fake_daemon_stop(struct fake_daemon *d);

#endif

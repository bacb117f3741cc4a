// SPDX-License-Identifier: Apache-2.0
/* backend/wire/server.h - the daemon without its sockets: messages go in, messages come out through a table of functions. The loop
 * (loop.c) feeds it from ZeroMQ; tests and the fuzz target feed it directly.
 *
 * One turn: ws_server_handle() for each message at hand, then ws_server_turn(). Threads: one, the loop's; devices hand over
 * finished work themselves. */
#ifndef WS_BACKEND_WIRE_SERVER_H
#define WS_BACKEND_WIRE_SERVER_H

#include <stdbool.h>
#include <zmq.h>
#include "backend/process/config.h"

struct ws_server;

struct ws_peer { /* who sent it: a socket and the routing id there; compared as n + 2 bytes */
    uint8_t socket;
    uint8_t n;
    uint8_t id[255];
};
struct ws_peer_info {
    int srcfd; /* -1: unknown */
    bool ipc;
    bool has_uid;
    uint32_t uid, pid; /* pid 0: unknown */
    bool gone;         /* it has ended already: nothing will tell of that any more */
};
enum { WS_MAX_FRAMES = 65 };
struct ws_message {
    const struct ws_peer *peer;
    zmq_msg_t *frames; /* borrowed; the callee may zmq_msg_copy() them */
    unsigned n_frames;
    bool oversized; /* more frames or bytes than allowed; frames holds the first ones */
};
struct ws_transport {
    void *arg;
    /* One message of one frame; the data is copied. Return: 0, -EAGAIN (the peer does not fetch), -EHOSTUNREACH (gone). */
    int (*send)(void *arg, const struct ws_peer *to, const void *data, size_t n);
    /* Who is behind a message; called for hello only. */
    void (*info)(void *arg, const struct ws_message *m, struct ws_peer_info *ret);
};

/* @devices: borrowed, open until ws_server_free(); @config: borrowed. Return: 0, -ENOMEM, -EMFILE and the like. */
WS_MUST_CHECK int ws_server_new(struct ws_server **ret, const struct ws_config *config,
                                struct ws_device **devices, uint32_t n_devices,
                                const struct ws_transport *transport);
/* Cancels and forgets all clients, waiting until the devices have let go of their work. NULL ok. */
struct ws_server *ws_server_free(struct ws_server *s);

/* Whether a client speaks from there. */
bool ws_server_knows(struct ws_server *s, const struct ws_peer *peer);
void ws_server_handle(struct ws_server *s, const struct ws_message *m);
/* Takes finished work, lets streams go on, sends what is to be sent, frees what is dead. Return: ms after which to turn again
 * even if nothing happens, or -1. */
int ws_server_turn(struct ws_server *s);
/* Readable when a device has finished work. */
int ws_server_wake_fd(const struct ws_server *s);
/* The connection behind this descriptor is gone (monitor). To be told before a message of a later connection with that number is
 * handled: so all clients that came by it have ended. Return: a client was ended. */
bool ws_server_disconnected(struct ws_server *s, uint8_t socket, int srcfd);

/* The side socket. Listens at @path with @mode; ws_server_handoff_fd() becomes readable when ws_server_handoff_turn() has work. */
WS_MUST_CHECK int ws_server_handoff_listen(struct ws_server *s, const char *path, uint32_t mode);
/* The same on a listener that was passed, whose file is left alone; @fd is taken. */
WS_MUST_CHECK int ws_server_handoff_adopt(struct ws_server *s, const char *path, int fd);
int ws_server_handoff_fd(const struct ws_server *s);
void ws_server_handoff_turn(struct ws_server *s);

/* The configuration names another policy, or other options. */
void ws_server_policy_changed(struct ws_server *s);
void ws_server_drain(struct ws_server *s);      /* no new clients */
bool ws_server_idle(const struct ws_server *s); /* no command under way and nothing to send */
uint32_t ws_server_n_clients(const struct ws_server *s);
bool ws_server_had_client(const struct ws_server *s);
/* Tells every client that the daemon goes down. */
void ws_server_say_goodbye(struct ws_server *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/raw.h - a client of the daemon that speaks for itself: ZMTP 3 on a plain socket,
 * messages of the protocol, the handoff socket and the ring. It keeps to no rule that the caller
 * does not keep to. Threads: none. Functions that send or receive give up after two seconds. */
#ifndef WS_TESTS_ATTACK_RAW_H
#define WS_TESTS_ATTACK_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/protocol.h"
#include "protocol/ring.h"

/* ---- connections and frames; -1: the daemon closed, refused or did not answer ---- */

/* A new connection. Return: a descriptor, or -1. */
int raw_dial(const char *path);
int raw_dial_tcp(unsigned port);
/* The same from another address of this machine. */
int raw_dial_tcp_from(const char *address, unsigned port);
/* Sends @n bytes as they are. */
int raw_bytes(int fd, const void *p, size_t n);
/* Greeting and READY for a DEALER without encryption, with @n_id bytes of routing id; reads the
 * daemon's. @size: what raw_greeting() wrote. */
int raw_greet(int fd, const void *id, size_t n_id);
enum { RAW_GREETING_BYTES = 64, RAW_READY_BYTES = 320 };
size_t raw_greeting(uint8_t *to);                           /* RAW_GREETING_BYTES */
size_t raw_ready(uint8_t *to, const void *id, size_t n_id); /* up to RAW_READY_BYTES */
/* The head of a frame of @n bytes. Return: its length, 2 or 9. */
size_t raw_head(uint8_t to[9], uint64_t n, bool more);
int raw_frame(int fd, const void *p, size_t n, bool more);
int raw_message(int fd, const Ws__ClientMessage *m);
/* The next message, to be freed by ws__server_message__free_unpacked(); NULL: none came. */
Ws__ServerMessage *raw_receive(int fd);
/* Asks for the status. Return: the message, which has a status, or NULL. */
Ws__ServerMessage *raw_status(int fd);

/* ---- a client that has said hello ---- */

struct raw {
    int fd, side; /* -1: none */
    uint64_t next_seq;
    uint32_t client;
    uint8_t token[WS_TOKEN_BYTES];
    struct ws_ring ring;
    uint8_t *batch; /* of raw_put() */
    size_t n_batch, size;
};
/* Connects and says hello; @exe: what it says its program is, NULL: its own name.
 * Return: Ws__Error, or -1. */
int raw_open(struct raw *r, const char *path, const char *exe);
void raw_close(struct raw *r);
/* Connects to the handoff socket, and opens the ring. Return: 0 or -1. */
int raw_open_side(struct raw *r, const char *side);
int raw_open_ring(struct raw *r);
/* A request on the handoff socket. Return: Ws__Error, or -1. */
int raw_side(struct raw *r, uint32_t kind, uint64_t bytes, int *ret_fd);

/* Appends a command to the batch. @sub: the part of the oneof; numbers by address. Return: its
 * sequence number. */
uint64_t raw_put(struct raw *r, Ws__Command__CCase which, const void *sub);
/* Sends the batch as one message, which is a whole frame, and forgets it. */
int raw_send(struct raw *r);
/* Waits for the reply. Return: its error, or -1. @ret_value may be NULL. */
int raw_wait(struct raw *r, uint64_t seq, uint64_t *ret_value);
/* The same for a reply with @n bytes of data. Return: whether there were so many. */
bool raw_wait_data(struct raw *r, uint64_t seq, uint8_t *ret, size_t n);
int raw_call(struct raw *r, Ws__Command__CCase which, const void *sub, uint64_t *ret_value);
/* Loads an image as @module of device 0, uploading it if need be. raw_load_begin() does not wait.
 * Return: Ws__Error, or -1. */
int raw_load(struct raw *r, uint64_t module, const void *image, size_t n);
int raw_load_begin(struct raw *r, uint64_t module, const void *image, size_t n);
/* The same for an image whose hash is known. */
int raw_load_hashed(struct raw *r, uint64_t module, const uint8_t *sha256, const void *image,
                    size_t n);
/* A command for raw_put() on the default stream of device 0. */
Ws__Launch raw_launch(uint64_t module, uint32_t kernel);

#endif

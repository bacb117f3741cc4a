// SPDX-License-Identifier: Apache-2.0
/* backend/wire/zmtp.h - the daemon's end of one connection in ZeroMQ's wire protocol (ZMTP 3,
 * rfc.zeromq.org/spec/37): bytes go in, messages come out. No I/O and no clock. A length that the
 * other end names is checked before memory is taken for it, and memory for what is yet to come is
 * taken from the owner, who counts it. What the other end calls itself is ignored. Threads: none.
 *
 * The other end is a DEALER. With NULL (on this machine) anybody may talk; with CURVE (over tcp)
 * whose key the owner allows. */
#ifndef WS_BACKEND_WIRE_ZMTP_H
#define WS_BACKEND_WIRE_ZMTP_H

#include "backend/client/transport.h"
#include "backend/wire/curve.h"

enum ws_zmtp_result {
    WS_ZMTP_MORE,    /* all bytes are taken; no message is complete */
    WS_ZMTP_MESSAGE, /* one is in ws_zmtp_message() */
    WS_ZMTP_NO_ROOM, /* the owner gave no memory; to be tried again with the bytes that are left */
    WS_ZMTP_TOO_LARGE, /* a message that is larger than allowed begins: the connection is to end */
    WS_ZMTP_WRONG      /* what comes is not the protocol: the connection is to end */
};

struct ws_zmtp_owner {
    void *arg;
    /* Memory for @n bytes that are to come; counted until its last reference is gone. */
    struct ws_buffer *(*buffer)(void *arg, size_t n, uint8_t **ret_data);
    /* How many bytes a message may have at the moment. */
    size_t (*max_bytes)(void *arg);
    /* Whether the holder of that key may talk. CURVE only. */
    bool (*allows)(void *arg, const uint8_t key[WS_CURVE_KEY_BYTES]);
};

enum { WS_ZMTP_HEAD_MAX = 9, WS_ZMTP_OUT_MAX = 512, WS_ZMTP_CONTEXT_MAX = 16 };
enum ws_zmtp_stage {
    WS_ZMTP_GREETING,
    WS_ZMTP_HELLO,    /* CURVE */
    WS_ZMTP_INITIATE, /* CURVE */
    WS_ZMTP_READY,    /* NULL */
    WS_ZMTP_OPEN
};

struct ws_zmtp {
    struct ws_zmtp_owner owner;
    enum ws_zmtp_stage stage;
    bool refused; /* its key was not allowed */
    struct ws_curve *curve;

    uint8_t head[64]; /* the greeting, or the head of a frame, as far as it came */
    size_t n_head;
    bool has_head; /* a frame's: its body is awaited */
    uint8_t flags;
    uint8_t *body; /* NULL: no memory was taken yet */
    size_t body_bytes, body_came;
    struct ws_buffer *body_buffer;

    struct ws_frame frames[WS_MAX_FRAMES]; /* of the message that comes in or is being handled */
    unsigned n_frames;
    size_t message_bytes;

    uint8_t out[WS_ZMTP_OUT_MAX]; /* to be sent before anything else */
    size_t n_out;
    const char *why; /* of WRONG */
};

/* @curve: the connection's, with its server set, borrowed; NULL: NULL. Our greeting is in
 * ->out at once. */
void ws_zmtp_init(struct ws_zmtp *z, const struct ws_zmtp_owner *owner, struct ws_curve *curve);
void ws_zmtp_deinit(struct ws_zmtp *z);

/**
 * ws_zmtp_take() - takes bytes that came, up to the end of a message
 * @p, @n: in/out: what is left. Bytes of encrypted frames are decrypted in place
 *
 * The frames of a message may point into the bytes that were handed in (their buffer is NULL), so
 * it is to be handled before those are gone, and then forgotten before the next call.
 */
enum ws_zmtp_result ws_zmtp_take(struct ws_zmtp *z, uint8_t **p, size_t *n);
/* Where the next bytes would be read without copying them: room of *ret_n bytes (0: nowhere), of
 * which the owner fills the first, then says how many with ws_zmtp_put(). Then ws_zmtp_take(). */
uint8_t *ws_zmtp_room(struct ws_zmtp *z, size_t *ret_n);
void ws_zmtp_put(struct ws_zmtp *z, size_t n);
/* The frames that came of a message, without its sender. */
void ws_zmtp_message(struct ws_zmtp *z, struct ws_message *ret);
void ws_zmtp_forget(struct ws_zmtp *z);

/* How many bytes a message of one frame of @n bytes has on the wire. Only while the connection is
 * open, here and below. */
size_t ws_zmtp_wire_bytes(const struct ws_zmtp *z, size_t n);
/* What goes before the bytes of a frame. Only without CURVE. Return: its length. */
size_t ws_zmtp_frame_head(uint8_t head[WS_ZMTP_HEAD_MAX], size_t n);
/* The whole of it. @to: ws_zmtp_wire_bytes() long. */
void ws_zmtp_write(struct ws_zmtp *z, const uint8_t *data, size_t n, uint8_t *to);
/* Asks the other end whether it is there: to ->out, if there is room. */
void ws_zmtp_ping(struct ws_zmtp *z);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/reply.h - what a client is told. Replies are packed into client->out.bytes as they
 * come up (fields of a protobuf message may be concatenated); wire/out.c sends them. Threads:
 * the loop. */
#ifndef WS_BACKEND_CLIENT_REPLY_H
#define WS_BACKEND_CLIENT_REPLY_H

#include "backend/client/client.h"

/* A ServerMessage, packed. */
struct ws_out_message {
    struct ws_list node;
    uint8_t *bytes;
    size_t n, charged_bytes;
};
struct ws_client_out {
    uint8_t *bytes;               /* ServerMessage so far, packed */
    size_t n, cap, charged_bytes; /* charged: of cap, to its user */
    struct ws_list messages;      /* what goes before that, in messages of no great length */
    size_t n_messages;            /* bytes */
    uint64_t turn;                /* the last one in which one of these was sent */
    uint64_t n_retired_told;
    Ws__Error notice_error;
    char notice_text[256];
    uint32_t notice_device;
    uint64_t *reached; /* ws_client_tell_reached() */
    size_t n_reached, cap_reached;
    uint64_t stuck_since_ns; /* 0: the peer takes what we send */
    struct ws_list dirty;    /* server->out.dirty: there is something to send */
    struct ws_list full;     /* server->out.full */
};
struct ws_server_out {
    struct ws_list dirty;
    struct ws_list full;  /* clients to which so much is to be sent that it is not to become more */
    uint32_t n_congested; /* clients that do not take what we send */
    bool more;            /* a client takes what we send, and there was more than goes in a turn */
};

void ws_client_reply(struct ws_client *c, const Ws__Reply *r);
/* A reply that another thread may pack; malloc'ed. NULL: no memory. Any thread. */
uint8_t *ws_reply_pack(const Ws__Reply *r, size_t *ret_n);
/* @*io_bytes: what ws_reply_pack() has returned; NULL afterwards if it was taken. */
void ws_client_reply_packed(struct ws_client *c, uint8_t **io_bytes, size_t n);
/* @text is sent only with an error. */
void ws_client_reply_error(struct ws_client *c, uint64_t seq, Ws__Error e, const char *text);
/* Adds the id of something that the client waits for to the next notice: a host function that a
 * stream has reached, or WS_GATE_… (protocol.h). Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_client_tell_reached(struct ws_client *c, uint64_t id);
/* Adds a field of a ServerMessage to what waits to be sent. */
void ws_client_out_append(struct ws_client *c, uint8_t tag, const ProtobufCMessage *m);
/* How many bytes wait to be sent. */
size_t ws_client_out_bytes(const struct ws_client *c);
/* Gives the first message and its room back. */
void ws_client_out_pop(struct ws_client *c);
/* Gives all room back, and forgets what waits in it. */
void ws_client_out_free(struct ws_client *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/reply.h - what a client is told. Replies are packed into client->out as they come up (fields of a protobuf
 * message may be concatenated); wire/out.c sends them. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_REPLY_H
#define WS_BACKEND_CLIENT_REPLY_H

#include "backend/client/client.h"

void ws_client_reply(struct ws_client *c, const Ws__Reply *r);
/* @text is sent only with an error. */
void ws_client_reply_error(struct ws_client *c, uint64_t seq, Ws__Error e, const char *text);
/* Adds the id of something that the client waits for to the next notice: a host function that a stream has reached, or
 * WS_GATE_… (protocol.h). Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_client_tell_reached(struct ws_client *c, uint64_t id);
/* Adds a field of a ServerMessage to what waits to be sent. */
void ws_client_out_append(struct ws_client *c, uint8_t tag, const ProtobufCMessage *m);

#endif

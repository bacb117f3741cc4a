/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/value.h - streams that write a word in memory, or wait until it has a value.
 * Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_VALUE_H
#define WS_BACKEND_CLIENT_VALUE_H

#include "backend/client/client.h"

struct ws_command;
struct ws_stream;

enum { WS_VALUE_GEQ, WS_VALUE_EQ, WS_VALUE_AND, WS_VALUE_NOR };
Ws__Error ws_value_submit(struct ws_client *c, const Ws__StreamValue *m, uint64_t seq,
                          bool *ret_queued);
/* Whether the command at the head of its stream may leave; one that writes has then written. */
bool ws_value_pass(struct ws_command *j);
/* @s, whose head waits for a value, is to be looked at. */
void ws_value_wait(struct ws_stream *s);
/* Looks at words that streams wait for, at all of them if they are not very many, and wakes those
 * streams whose word has come. Return: ms after which to look again; -1: nobody waits. */
int ws_server_poll_values(struct ws_server *s);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/process/messages.h - what the server itself needs of the handling of messages; what the
 * loop needs is in process/server.h. Threads: the loop.
 *
 * Nobody's messages hold the loop up for long. A message is handled when it comes, but for a slice
 * of time at most. What is left then is held, with all that its sender sends after it, and is
 * continued in later turns, again a slice at a time. In each turn two slices of time are for all
 * messages that come, and two for all that are held; what comes after that is held too. Of those
 * who wait, the one is served first whose user has used the least of the loop's time of late, and
 * among the clients of one user the one who has used the least. So somebody who asks for little
 * does not wait for those who ask for much, and many clients of one user get no more than one.
 * Each sender's messages are handled in their order. */
#ifndef WS_BACKEND_PROCESS_MESSAGES_H
#define WS_BACKEND_PROCESS_MESSAGES_H

#include <stdbool.h>
#include "backend/client/client.h"

void ws_messages_init(struct ws_server *s);
void ws_messages_deinit(struct ws_server *s);
/* Continues what is held. Return: whether something is left. */
bool ws_messages_turn(struct ws_server *s);
/* Messages as they come have their time again. */
void ws_messages_turn_ends(struct ws_server *s);
/* Handles what lies in the ring of @c, as far as its time goes. Return: whether something that it
 * has sent is not handled yet. The client may be dropped on return. */
bool ws_messages_left(struct ws_client *c);
/* Nothing that @c has sent is handled any more. */
void ws_messages_forget(struct ws_client *c);
/* The same for a peer that is no client: its hello would make one that nobody ends. */
void ws_messages_forget_stranger(struct ws_server *s, const struct ws_peer *peer);

#endif

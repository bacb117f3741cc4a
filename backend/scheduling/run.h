/* SPDX-License-Identifier: Apache-2.0 */
/* backend/scheduling/run.h - what starts when: takes commands from the heads of streams as soon
 * as they may start, and deals with operations that have ended. Threads: the loop. */
#ifndef WS_BACKEND_SCHEDULING_RUN_H
#define WS_BACKEND_SCHEDULING_RUN_H

#include "backend/client/command.h"

/* Does what follows on operations that have ended, looks at all streams that may go on, finishes
 * the joins that are reached, and tells those who wait for records that are done, and the
 * dispatcher of clients that wait. All of it has so much time in a turn of the server. The rest is
 * left on server->queues for the next turn, and users take turns. Everything that wakes a stream
 * relies on ws_clients_settle() before the loop waits, which calls this until it has ended. If
 * server->out.full is to be emptied first, the call ends sooner.
 * Return: false: all is done for this turn. True: this was a part of it, so that the caller can do
 * in between what others wait for. */
bool ws_server_run_ready(struct ws_server *s);
/* Whether that left something for the next turn. */
bool ws_server_has_ready(const struct ws_server *s);
/* It has its time again. */
void ws_server_run_turn_ends(struct ws_server *s);

#endif

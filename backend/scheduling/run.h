/* SPDX-License-Identifier: Apache-2.0 */
/* backend/scheduling/run.h - what starts when: takes commands from the heads of streams as soon
 * as they may start, and deals with operations that have ended. Threads: the loop. */
#ifndef WS_BACKEND_SCHEDULING_RUN_H
#define WS_BACKEND_SCHEDULING_RUN_H

#include "backend/client/command.h"

/* Looks at all streams that may go on, finishes the joins that are reached, and tells those who
 * wait for records that are done, and the dispatcher of clients that wait. If that is very much,
 * the rest is left on server->queues for the next call, and clients take turns. Everything that
 * wakes a stream relies on this being called before the loop waits. */
void ws_server_run_ready(struct ws_server *s);
/* Whether that left something for the next call. */
bool ws_server_has_ready(const struct ws_server *s);
/* The device is done with the operation, or with the part of it that was submitted: what follows
 * from that. A merged launch is dealt with as its members. @j may be gone on return. */
void ws_operation_ended(struct ws_command *j);

#endif

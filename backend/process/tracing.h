// SPDX-License-Identifier: Apache-2.0
/* backend/process/tracing.h - what ran on each GPU, kept for who asks (`wattshare trace`).
 * Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_TRACING_H
#define WS_BACKEND_PROCESS_TRACING_H

#include "backend/client/client.h"

/* Answers with the spans of clients that the sender may see; the first request begins the trace.
 * @q: NULL: it can't be read. */
void ws_tracing_reply(struct ws_server *s, const struct ws_message *msg, const Ws__TraceRequest *q);
/* Ends the trace when nobody has asked for a while. Return: ms after which to look again; -1:
 * there is no trace. */
int ws_tracing_turn(struct ws_server *s);
void ws_tracing_free(struct ws_server *s);

#endif

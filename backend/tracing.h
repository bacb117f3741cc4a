// SPDX-License-Identifier: Apache-2.0
/* backend/tracing.h - what ran on each GPU, kept for who asks (`wattshare trace`). Threads: the loop. */
#ifndef WS_BACKEND_TRACING_H
#define WS_BACKEND_TRACING_H

#include "backend/backend.h"

/* Answers; the first asking begins the trace. @q: NULL: can't be read. */
void ws_tracing_reply(struct ws_server *s, const struct ws_peer *to, const Ws__TraceRequest *q);
/* An operation has been done. Only while s->tracing is set. */
void ws_tracing_add(const struct ws_job *j);
void ws_tracing_turn(struct ws_server *s); /* ends it when nobody has asked for a while */
void ws_tracing_free(struct ws_server *s);

#endif

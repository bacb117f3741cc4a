// SPDX-License-Identifier: Apache-2.0
/* backend/process/tracing.h - what ran on each GPU, kept for who asks (`wattshare trace`). Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_TRACING_H
#define WS_BACKEND_PROCESS_TRACING_H

#include "backend/backend.h"

/* Answers; the first asking begins the trace. @q: NULL: can't be read. */
void ws_tracing_reply(struct ws_server *s, const struct ws_peer *to, const Ws__TraceRequest *q);
/* An operation has been done. Only while s->tracing is set. */
void ws_tracing_add(const struct ws_command *j);
/* A gated client's job on the GPU of @x, of @n_launches, has ended: it began when it was let go. The same. */
void ws_tracing_add_gated(const struct ws_context *x, uint64_t start_ns, uint64_t end_ns,
                          uint64_t energy_uj, uint64_t n_launches);
void ws_tracing_turn(struct ws_server *s); /* ends it when nobody has asked for a while */
void ws_tracing_free(struct ws_server *s);

#endif

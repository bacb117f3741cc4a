/* SPDX-License-Identifier: Apache-2.0 */
/* backend/process/announce.h - what a batch scheduler tells of its steps, and asks of its jobs.
 * Like requests of people, these need no Hello. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_ANNOUNCE_H
#define WS_BACKEND_PROCESS_ANNOUNCE_H

#include "backend/client/transport.h"
#include "backend/wire/decode.h"

struct ws_server;
/* Answers a StepRequest. */
void ws_announce_step(struct ws_server *s, const struct ws_message *msg, struct ws_bytes request);

#endif

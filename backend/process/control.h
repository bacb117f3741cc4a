/* SPDX-License-Identifier: Apache-2.0 */
/* backend/process/control.h - requests of people: which policy there is, another one, why a job
 * ran as it did. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_CONTROL_H
#define WS_BACKEND_PROCESS_CONTROL_H

#include "backend/client/transport.h"
#include "backend/wire/decode.h"

struct ws_server;
void ws_control_policy(struct ws_server *s, const struct ws_message *msg, struct ws_bytes request);
void ws_control_explain(struct ws_server *s, const struct ws_message *msg, struct ws_bytes request);

#endif

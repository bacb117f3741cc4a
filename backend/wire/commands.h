/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/commands.h - a client's commands. Threads: the loop. */
#ifndef WS_BACKEND_WIRE_COMMANDS_H
#define WS_BACKEND_WIRE_COMMANDS_H

#include "backend/client/client.h"

struct ws_client_message;
enum { WS_MESSAGE_ARENA_BYTES = 512 << 20 }; /* server->arena's limit */
/* Carries out the commands of @m, or queues them. The client may be dropped on return. */
void ws_commands_handle(struct ws_client *c, const struct ws_client_message *m,
                        const struct ws_message *msg);

#endif

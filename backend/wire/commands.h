/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/commands.h - a client's commands. Threads: the loop. */
#ifndef WS_BACKEND_WIRE_COMMANDS_H
#define WS_BACKEND_WIRE_COMMANDS_H

#include "backend/client/client.h"

struct ws_client_message;
enum { WS_MESSAGE_ARENA_BYTES = 512 << 20 }; /* server->arena's limit */
struct ws_commands_place { /* the command of a message that is the next to be carried out */
    size_t pos;
    uint64_t seq;
};

/* Checks the number of commands of @m, and their numbers. Return: false: the client is dropped. */
bool ws_commands_begin(struct ws_client *c, const struct ws_client_message *m,
                       struct ws_commands_place *ret);
/* Carries out the commands of @m from *place on, or queues them, until @until_ns or a little
 * longer: some are carried out in any case. The client may be dropped on return.
 * Return: false: some are left. */
bool ws_commands_go_on(struct ws_client *c, const struct ws_client_message *m,
                       struct ws_commands_place *place, const struct ws_message *msg,
                       uint64_t until_ns);

#endif

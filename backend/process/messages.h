/* SPDX-License-Identifier: Apache-2.0 */
/* backend/process/messages.h - what the server itself needs of the handling of messages; what the
 * loop needs is in process/server.h. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_MESSAGES_H
#define WS_BACKEND_PROCESS_MESSAGES_H

#include "backend/client/client.h"

/* Handles the messages that are due in the client's ring. The client may be dropped on return. */
void ws_messages_of_ring(struct ws_client *c);

#endif

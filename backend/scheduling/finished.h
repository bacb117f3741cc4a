/* SPDX-License-Identifier: Apache-2.0 */
/* backend/scheduling/finished.h - finished operations on their way from the devices' threads to
 * the loop. */
#ifndef WS_BACKEND_SCHEDULING_FINISHED_H
#define WS_BACKEND_SCHEDULING_FINISHED_H

#include "backend/client/command.h"

/* ws_op.done. Any thread. */
void ws_command_done(struct ws_op *op);
/* Gives all that were finished since to their clients, in their order. Loop thread. */
void ws_finished_deal(struct ws_server *s);

#endif

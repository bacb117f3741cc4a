/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/submit.h - copies, fills and launches, checked and put into their streams.
 * *ret_queued: the command retires (and replies) by itself; else the caller sees to that.
 * Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_SUBMIT_H
#define WS_BACKEND_CLIENT_SUBMIT_H

#include "backend/client/command.h"

Ws__Error ws_copy_submit(struct ws_client *c, const Ws__Copy *m, uint64_t seq, bool replies,
                         const struct ws_message *msg, bool *ret_queued);
Ws__Error ws_fill_submit(struct ws_client *c, const Ws__Fill *m, uint64_t seq, bool *ret_queued);
Ws__Error ws_launch_submit(struct ws_client *c, const Ws__Launch *m, uint64_t seq,
                           bool *ret_queued);
/* An operation of a launch's has ended, and something that its kernels have started is left
 * (ws_started_any()): makes the command's operation the next of that. */
void ws_launch_next(struct ws_command *j);
/* A staged copy that will not run: tells the chunk. */
void ws_copy_refuse(struct ws_client *c, const Ws__Copy *m);

#endif

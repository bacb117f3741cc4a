/* SPDX-License-Identifier: Apache-2.0 */
/* backend/scheduling/account.h - what an operation that has ended adds to its client's account.
 * Threads: the loop. */
#ifndef WS_BACKEND_SCHEDULING_ACCOUNT_H
#define WS_BACKEND_SCHEDULING_ACCOUNT_H

struct ws_command;
void ws_account_op(struct ws_command *j);
/* What its end tells the learner: a part of that; alone, for a client that has been dropped. */
void ws_account_learn(struct ws_command *j);

#endif

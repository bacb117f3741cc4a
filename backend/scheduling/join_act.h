/* SPDX-License-Identifier: Apache-2.0 */
/* backend/scheduling/join_act.h - the ends of joins: what was to happen after the work before
 * them. Threads: the loop. */
#ifndef WS_BACKEND_SCHEDULING_JOIN_ACT_H
#define WS_BACKEND_SCHEDULING_JOIN_ACT_H

struct ws_client;
struct ws_join;
/* All marks of @join (taken) are reached: acts, or puts it on client->joins.quiescing until no
 * device works for the client. */
void ws_join_finish(struct ws_join *join);
/* Runs the joins in client->joins.quiescing if no device works for the client; until then none
 * of its operations starts. */
void ws_client_quiesce(struct ws_client *c);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/sms.h - which SMs of a GPU a client's kernels may use. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_SMS_H
#define WS_BACKEND_CLIENT_SMS_H

#include "base/sm_set.h"

struct ws_batch_job;
struct ws_context;
struct ws_server;
/* Sets x->sms and x->no_sms from the client's task: with max_sms, those SMs that the fewest
 * others have. */
void ws_context_limit_sms(struct ws_context *x);
/* The same, where the context has come to another GPU since. */
void ws_context_sms(struct ws_context *x);
/* Chooses the SMs of a new batch job, on each GPU that was allotted to it: those that the fewest
 * others have. */
void ws_batch_job_choose_sms(struct ws_server *s, struct ws_batch_job *b);
/* Of the SMs @wanted (n == 0: all) those that the task may use. */
void ws_context_choose_sms(struct ws_context *x, const struct ws_sm_set *wanted,
                           struct ws_sm_set *ret);

#endif

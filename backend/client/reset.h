/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/reset.h - resetting a context (cudaDeviceReset()).
 *
 * A reset has two steps. When the command is accepted, the context's modules, streams, events,
 * handles and allocations lose their names: what the client sends afterwards does not find them.
 * When all work that was given before has ended, they go. An operation that the client gives
 * in between waits for the second step (ws_context_resetting()). Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_RESET_H
#define WS_BACKEND_CLIENT_RESET_H

#include "backend/client/stream.h"
#include "backend/client/vmm.h"

struct ws_join;

/* The first step, in parts (chore.h). @join (taken): the reset's own, of one context; it takes what
 * is to go, and starts then. */
void ws_context_reset_begin(struct ws_join *join);

/* The second step: @join has been reached, and no device works for the client. */
struct ws_reset_end { /* how far it has come; at first all 0 */
    struct ws_vmm_place at;
    bool walks;
};
/* Goes on until @until_ns or a little longer. Return: whether all has gone. */
bool ws_context_reset_end(struct ws_join *join, struct ws_reset_end *w, uint64_t until_ns);
/* Whether @j was given after a reset of its context that has not acted yet. */
static inline bool ws_context_resetting(const struct ws_command *j)
{
    return j->n_resets > j->stream->context->n_resets_done;
}

#endif

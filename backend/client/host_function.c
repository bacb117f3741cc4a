// SPDX-License-Identifier: Apache-2.0
/* A host function is one of the program's own functions that stands in a stream. When the stream
 * gets there the client is told (Notice.reached), and the stream waits until the client says
 * that the function has returned. Nothing else waits: it is at the head of one stream. One that
 * never returned goes with its client. */
#include "backend/client/host_function.h"

#include "backend/backend.h"
#include "backend/client/reply.h"
#include "backend/client/stream.h"
#include "base/alloc.h"

static struct ws_host_function *find(struct ws_client *c, uint64_t id)
{
    struct ws_host_function *g;
    HASH_FIND(hh, c->host_functions, &id, sizeof(id), g);
    return g;
}

Ws__Error ws_host_function_submit(struct ws_client *c, const Ws__HostFunction *m, uint64_t seq,
                                  bool *ret_queued)
{
    struct ws_stream *s = ws_stream_find(c, m->stream);
    if (!s || find(c, m->function))
        return WS__ERROR__INVALID_HANDLE;
    struct ws_host_function *g = ws_alloc(sizeof(*g));
    struct ws_command *j = g ? ws_command_new(c, WS_COMMAND_HOST_FUNCTION) : NULL;
    if (!j) {
        free(g);
        return ws_client_drop_no_memory(c);
    }
    g->id = m->function;
    g->stream = s;
    HASH_ADD(hh, c->host_functions, id, sizeof(g->id), g);
    j->host_function = g;
    j->seq = seq;
    *ret_queued = true;
    ws_stream_push(s, j);
    return WS__ERROR__OK;
}

bool ws_host_function_pass(struct ws_command *j)
{
    struct ws_client *c = j->client;
    struct ws_host_function *g = j->host_function;
    if (g->done || g->reached)
        return g->done;
    g->reached = true;
    if (ws_client_tell_reached(c, g->id))
        ws_client_drop_no_memory(c);
    return false;
}

Ws__Error ws_host_function_done(struct ws_client *c, uint64_t id)
{
    struct ws_host_function *g = find(c, id);
    if (!g || !g->reached || g->done)
        return WS__ERROR__INVALID_HANDLE;
    g->done = true;
    ws_stream_wake(g->stream);
    return WS__ERROR__OK;
}

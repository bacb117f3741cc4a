/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/host_function.h - places of host functions in streams. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_HOST_FUNCTION_H
#define WS_BACKEND_CLIENT_HOST_FUNCTION_H

#include "backend/client/client.h"
#include "base/table.h"

struct ws_command;
struct ws_stream;

struct ws_host_function { /* its place in a stream */
    uint64_t id;
    struct ws_stream *stream;
    bool reached, done; /* the client was told; the function has returned */
    UT_hash_handle hh;
};

Ws__Error ws_host_function_submit(struct ws_client *c, const Ws__HostFunction *m, uint64_t seq,
                                  bool *ret_queued);
/* Whether the command at the head of its stream may leave. The first time, the client is told
 * that the stream is there. */
bool ws_host_function_pass(struct ws_command *j);
/* The client says that the function has returned. */
Ws__Error ws_host_function_done(struct ws_client *c, uint64_t id);

#endif

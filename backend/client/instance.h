/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/instance.h - making the instance of a module, which writes the initial values of
 * its variables: where that is much, a thread of the loader does it. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_INSTANCE_H
#define WS_BACKEND_CLIENT_INSTANCE_H

#include "backend/client/client.h"

struct ws_dinstance;
struct ws_module;

struct ws_instance_made {
    struct ws_module *module;
    uint64_t seq;                  /* of the command that wants it */
    const uint64_t *var_va;        /* where its variables are */
    struct ws_dinstance *instance; /* the callee's; NULL: there is none, for @error */
    Ws__Error error;
};
/* Makes an instance of @m with its variables at @var_va. @keep: managed variables keep what is
 * there. @done is called once, perhaps before this returns, and perhaps when the client has been
 * dropped. Until then the client counts an operation in flight, and the caller's reference to @m
 * holds. */
void ws_instance_make(struct ws_module *m, const uint64_t *var_va, bool keep, uint64_t seq,
                      void (*done)(const struct ws_instance_made *made));

#endif

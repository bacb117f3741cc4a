/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/instance.h - making the instance of a module: its variables get their addresses
 * and their initial values. Where that is much, a thread of the loader does it. Threads: the
 * loop. */
#ifndef WS_BACKEND_CLIENT_INSTANCE_H
#define WS_BACKEND_CLIENT_INSTANCE_H

#include "backend/client/client.h"

struct ws_dinstance;
struct ws_module;

struct ws_instance_made {
    struct ws_module *module;
    uint64_t seq;                  /* of the command that wants it */
    struct ws_dinstance *instance; /* the callee's; NULL: there is none, for @error */
    Ws__Error error;
    /* Where its variables are, and what the client is told. Both are malloc'ed, and freed
     * afterwards: who keeps one puts NULL there. */
    uint64_t *var_va;
    uint8_t *told;
    size_t told_bytes;
};

struct ws_instance_want {
    struct ws_module *module;
    uint64_t seq;
    /* Of a module that has an instance: addresses in the client's mapped host memory for its
     * managed variables, in their order. NULL: all are where the module's memory has them. */
    const uint64_t *addresses;
    size_t n_addresses;
    bool keep; /* managed variables keep what is there */
    /* Makes told[] where the instance is made: on the loop, or on a thread that looks at nothing
     * but the module's code and its argument. Return: 0 or an error. NULL: nothing is told. */
    Ws__Error (*tell)(struct ws_instance_made *made);
    /* Called once, perhaps before ws_instance_make() returns, and perhaps when the client has been
     * dropped. Until then the client counts an operation in flight, and the caller's reference to
     * the module holds. */
    void (*done)(struct ws_instance_made *made);
};
void ws_instance_make(const struct ws_instance_want *want);

#endif

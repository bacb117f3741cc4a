/* SPDX-License-Identifier: Apache-2.0 */
/* backend/code/discard.h - gives back what takes long to give back, because it is large: a thread
 * of the loader does it, and the loop goes on. Threads: the loop. */
#ifndef WS_BACKEND_CODE_DISCARD_H
#define WS_BACKEND_CODE_DISCARD_H

#include "backend/code/loader.h"

struct ws_discards {
    struct ws_loader *loader;
    uint64_t waiting_bytes; /* that are not given back yet */
};

/* What was charged for something, released when it is given back. @account NULL: nothing was. */
struct ws_discard_charge {
    struct ws_account *account;
    enum ws_resource resource;
    uint64_t n;
};
/* Has the function called that gives @p back: on a thread, or here if @bytes are few. While not
 * much waits, @charge is released at once, so that who frees something and takes as much again
 * gets it. */
void ws_discard(struct ws_discards *d, void (*give_back)(void *p, uint64_t bytes), void *p,
                uint64_t bytes, const struct ws_discard_charge *charge);
/* Such a function for memory of malloc(). */
void ws_discard_free(void *p, uint64_t bytes);

#endif

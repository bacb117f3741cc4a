/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/memory.h - allocations: an object and its one mapping. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_MEMORY_H
#define WS_BACKEND_CLIENT_MEMORY_H

#include "backend/client/object.h"
#include "backend/client/va.h"
#include "base/table.h"

struct ws_handle;
struct ws_reservation;
struct ws_space;

struct ws_allocation { /* an object mapped whole */
    uint64_t va, bytes, raw_va, raw_bytes;
    struct ws_context *context;
    struct ws_object_ref ref;
    uint32_t more_readers, more_writers; /* own_access: besides its GPU */
    bool own_access;
    bool internal; /* a module's variables: MemFree does not know it */
    bool freeing;
    struct ws_list taken; /* a join's allocations, while freeing */
    uint64_t noted;       /* the dispatcher's number for the last time it looked */
    UT_hash_handle hh;
};

struct ws_client_memory {
    struct ws_space *space;
    struct ws_va va;
    /* of kernels' malloc(), on GPUs with real addresses; bytes 0: not placed */
    struct ws_va_extent heap;
    struct ws_allocation *allocations;
    struct ws_handle *handles;           /* vmm.h */
    struct ws_reservation *reservations; /* vmm.h */
    uint64_t reserved_bytes;
    uint32_t n_exports;
};

enum { WS_MEMORY_INTERNAL = 1, WS_MEMORY_OWN_ACCESS = 2 };
Ws__Error ws_memory_alloc(struct ws_context *x, uint64_t bytes, unsigned flags,
                          struct ws_allocation **ret);
/* Maps an object of another client. @more: a mask of GPUs that may use it, besides its own. */
Ws__Error ws_memory_import(struct ws_context *x, struct ws_object *o, uint32_t more,
                           struct ws_allocation **ret);
/* Who may use it now. */
void ws_memory_set_access(struct ws_allocation *a);
struct ws_allocation *ws_memory_find(struct ws_client *c, uint64_t va);
void ws_memory_free(struct ws_allocation *a);
void ws_memory_info(struct ws_context *x, uint64_t *ret_free, uint64_t *ret_total);

/* Gives the client's heap of kernels a place, where the GPU needs one that no other client has:
 * before a kernel that uses it. */
Ws__Error ws_memory_place_heap(struct ws_context *x);
/* Gives it back, with what it holds, if it is in memory of the context's GPU. */
void ws_memory_drop_heap(struct ws_context *x);

/* share.c: what clients share by handles */
Ws__Error ws_share(struct ws_client *c, const Ws__Share *m, Ws__Reply *ret);
Ws__Error ws_peer_access(struct ws_client *c, const Ws__PeerAccess *m);
void ws_peers_forget(struct ws_context *x); /* in both directions */

#endif

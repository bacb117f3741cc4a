/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/memory.h - allocations: an object and its one mapping. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_MEMORY_H
#define WS_BACKEND_CLIENT_MEMORY_H

#include "backend/client/object.h"
#include "backend/client/va.h"
#include "base/table.h"

struct ws_handle;
struct ws_reservation;
struct ws_reservations { /* by address */
    struct ws_reservation **v;
    size_t n, cap;
};
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
    struct ws_va host_va; /* of pinned host memory, where the daemon chooses */
    /* of kernels' malloc(), on GPUs with real addresses; bytes 0: not placed */
    struct ws_va_extent heap;
    uint64_t heap_charged;    /* bytes of it on the user's account, until the client has ended */
    uint64_t printed_charged; /* host bytes for what device code prints, as long */
    struct ws_allocation *allocations;
    struct ws_allocation *walk;          /* the next one of ws_memory_walk_next() */
    struct ws_handle *handles;           /* vmm.h */
    struct ws_reservations reservations; /* vmm.h */
    uint64_t reserved_bytes;
    uint32_t n_exports;
    struct ws_list exports; /* ws_export.of_client */
};

enum { WS_MEMORY_INTERNAL = 1, WS_MEMORY_OWN_ACCESS = 2 };
Ws__Error ws_memory_alloc(struct ws_context *x, uint64_t bytes, unsigned flags,
                          struct ws_allocation **ret);
/* Maps an object of another client. @more: a mask of GPUs that may use it, besides its own. */
Ws__Error ws_memory_import(struct ws_context *x, struct ws_object *o, uint32_t more,
                           struct ws_allocation **ret);
/* A MemAccess that names an allocation. */
Ws__Error ws_memory_access(struct ws_allocation *a, const Ws__MemAccess *m);
/* A walk over all allocations of a client, in parts. Allocations that come after its begin may be
 * missed; there is one such walk at a time. */
void ws_memory_walk_begin(struct ws_client *c);
struct ws_allocation *ws_memory_walk_next(struct ws_client *c); /* NULL: that was the last */
/* Sets the access of those of context @x, NULL: of all. Return: whether the walk has ended. */
bool ws_memory_walk_access(struct ws_client *c, const struct ws_context *x, uint64_t until_ns);
struct ws_allocation *ws_memory_find(struct ws_client *c, uint64_t va);
void ws_memory_free(struct ws_allocation *a);
void ws_memory_info(struct ws_context *x, uint64_t *ret_free, uint64_t *ret_total);

/* Before a kernel that uses the client's heap of kernels: charges the user with it, and gives it a
 * place, where the GPU needs one that no other client has. Return: OK or OUT_OF_MEMORY. */
Ws__Error ws_memory_place_heap(struct ws_context *x);
/* How large it will be (cudaLimitMallocHeapSize). Return: OK, INVALID_VALUE (a kernel has used it)
 * or OUT_OF_MEMORY. */
Ws__Error ws_memory_set_heap(struct ws_client *c, uint64_t bytes);
/* Gives it back, with what it holds, if it is in memory of the context's GPU. */
void ws_memory_drop_heap(struct ws_context *x);

/* Before a kernel that prints: charges the user with what is held of that until the client has
 * fetched it. Return: OK or OUT_OF_MEMORY. */
Ws__Error ws_memory_place_printed(struct ws_client *c);
/* How much this is (cudaLimitPrintfFifoSize). Return: OK or OUT_OF_MEMORY. */
Ws__Error ws_memory_set_printed(struct ws_client *c, uint64_t bytes);

/* share.c: what clients share by handles */
Ws__Error ws_share(struct ws_client *c, const Ws__Share *m, Ws__Reply *ret);
/* Notes it; then ws_memory_walk_access() for the context of @m->peer does it. */
Ws__Error ws_peer_access(struct ws_client *c, const Ws__PeerAccess *m);
/* In both directions. Return: whether allocations are to be told, of all contexts. */
bool ws_peers_forget(struct ws_context *x);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/vmm.h - virtual memory management: handles of objects, reserved addresses, and
 * mappings there. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_VMM_H
#define WS_BACKEND_CLIENT_VMM_H

#include "backend/client/object.h"
#include "base/table.h"

struct ws_handle { /* an object that the client has an id for */
    uint64_t id;
    struct ws_object_ref ref;
    UT_hash_handle hh;
};
struct ws_vmapping { /* in a reservation */
    uint64_t va, bytes, offset;
    struct ws_object_ref ref;
    uint32_t readers, writers; /* 0, 0: not in the client's space */
    bool unmapping;
};
struct ws_reservation {
    uint64_t va, bytes, raw_va, raw_bytes; /* raw: as taken, and for ws_va_give() */
    struct ws_vmapping **v;                /* by address */
    size_t n, cap;
};
enum { WS_MAX_RESERVATIONS = 65536 };
#define WS_MAX_RESERVED_BYTES (UINT64_C(4) << 40) /* of one client */

Ws__Error ws_handle_create(struct ws_client *c, const Ws__MemCreate *m);
Ws__Error ws_handle_add(struct ws_client *c, uint64_t id, struct ws_object *o);
struct ws_handle *ws_handle_find(struct ws_client *c, uint64_t id);
Ws__Error ws_handle_release(struct ws_client *c, uint64_t id);
Ws__Error ws_va_reserve(struct ws_client *c, const Ws__VaReserve *m, uint64_t *ret_va);
/* Whether a client that goes, but has not gone, has one of the addresses. */
bool ws_va_goes(const struct ws_server *s, uint64_t va, uint64_t bytes);
Ws__Error ws_va_unreserve(struct ws_client *c, uint64_t va);
Ws__Error ws_vmm_map(struct ws_client *c, const Ws__MemMap *m);

/* A range that a command names, which must be a run of whole mappings, one behind the other, in one
 * reservation. These functions walk it in parts: each call goes on until @until_ns or a little
 * longer, and returns whether the walk has ended. *ret_error counts then. */
struct ws_vmm_range {
    uint64_t va, bytes;
    uint64_t at; /* how far it has been walked; at first @va */
};
/* Whether it is such a run. The others ask for one. */
bool ws_vmm_check(struct ws_client *c, struct ws_vmm_range *range, uint64_t until_ns,
                  Ws__Error *ret_error);
/* Marks the mappings, which the client can no longer name; then ws_vmm_unmap() takes them away. */
bool ws_vmm_unmap_begin(struct ws_client *c, struct ws_vmm_range *range, uint64_t until_ns);
bool ws_vmm_unmap(struct ws_client *c, const struct ws_vmm_range *range, uint64_t until_ns);
/* @bit: of the GPU whose access changes. */
bool ws_vmm_access(struct ws_client *c, struct ws_vmm_range *range, uint32_t bit, bool read,
                   bool write, uint64_t until_ns, Ws__Error *ret_error);

/* How far a walk over all mappings and handles has come; at first all 0. */
struct ws_vmm_place {
    size_t reservation, mapping;
    bool in_handles;
    struct ws_handle *handle;
};
/* The client can no longer name handles and mappings of the context's GPU; mappings go at the end.
 * Each call does one step. Return: false: there was nothing left to do. */
bool ws_vmm_reset_begin(struct ws_context *x, struct ws_vmm_place *at);
bool ws_vmm_reset_end(struct ws_context *x, struct ws_vmm_place *at);
/* Of a client that is gone: one of its mappings, reservations or handles, when its space is empty.
 * Return: false: it has none. */
bool ws_vmm_free_one(struct ws_client *c);

#endif

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
    UT_hash_handle hh;
};
enum { WS_MAX_RESERVATIONS = 65536 };
#define WS_MAX_RESERVED_BYTES (UINT64_C(4) << 40) /* of one client */

Ws__Error ws_handle_create(struct ws_client *c, const Ws__MemCreate *m);
Ws__Error ws_handle_add(struct ws_client *c, uint64_t id, struct ws_object *o);
struct ws_handle *ws_handle_find(struct ws_client *c, uint64_t id);
Ws__Error ws_handle_release(struct ws_client *c, uint64_t id);
Ws__Error ws_va_reserve(struct ws_client *c, const Ws__VaReserve *m, uint64_t *ret_va);
Ws__Error ws_va_unreserve(struct ws_client *c, uint64_t va);
Ws__Error ws_vmm_map(struct ws_client *c, const Ws__MemMap *m);
/* Checks, and marks what is to go; then ws_vmm_unmap() does it. */
Ws__Error ws_vmm_unmap_begin(struct ws_client *c, uint64_t va, uint64_t bytes);
void ws_vmm_unmap(struct ws_client *c, uint64_t va, uint64_t bytes);
Ws__Error ws_vmm_access(struct ws_client *c, const Ws__MemAccess *m);
/* The client can no longer name handles and mappings of the context's GPU; mappings go at the
 * end. */
void ws_vmm_reset_begin(struct ws_context *x);
void ws_vmm_reset_end(struct ws_context *x);
/* Of a client that is gone: one of its mappings, reservations or handles, when its space is empty.
 * Return: false: it has none. */
bool ws_vmm_free_one(struct ws_client *c);

#endif

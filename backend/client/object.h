/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/object.h - physical memory, which clients may share. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_OBJECT_H
#define WS_BACKEND_CLIENT_OBJECT_H

#include "backend/client/client.h"
#include "backend/client/va.h"
#include "base/table.h"

struct ws_account;
struct ws_gpu;
struct ws_memory;

struct ws_object { /* shared by those that have a reference to it */
    struct ws_memory *memory;
    struct ws_gpu *gpu;
    uint64_t bytes;
    struct ws_client *charged;  /* one of those that refer to it; NULL: only descriptors do */
    struct ws_account *account; /* charged with its bytes */
    struct ws_list refs;
    struct ws_list exports;         /* descriptors given out (export.c) */
    uint8_t handle[WS_SHARE_BYTES]; /* if is_shared: in server->memory.shared */
    bool is_shared;
    UT_hash_handle hh;
};
struct ws_object_ref { /* inside what has it */
    struct ws_object *object;
    struct ws_client *client;
    struct ws_list node; /* object->refs */
};

struct ws_server_memory {
    struct ws_va_pool va_pool, host_va_pool;
    struct ws_object *shared; /* by handle */
    struct ws_export *exports;
};

/* Device memory that the client may have; 0: no limit but the GPU's. */
uint64_t ws_memory_quota(const struct ws_client *c);
/* What of it is left: also of what was allotted to its batch job. UINT64_MAX: no limit. */
uint64_t ws_memory_left(const struct ws_client *c);
/* Charges the client's user with device memory that is about to be made. Return: OK, or
 * OUT_OF_MEMORY: it would be more than the client's quota, its batch job's allotment or the user's
 * share, as the log says once, and nothing is charged. */
Ws__Error ws_memory_take(struct ws_client *c, uint64_t bytes);
/* A new object of @bytes (a multiple of WS_DEVICE_PAGE_BYTES) on the context's GPU, charged to
 * its client. @ret: a first reference. */
Ws__Error ws_object_new(struct ws_context *x, uint64_t bytes, struct ws_object_ref *ret);
void ws_object_ref_take(struct ws_object_ref *h, struct ws_object *o, struct ws_client *c);
void ws_object_ref_drop(struct ws_object_ref *h); /* one that refers to nothing: does nothing */
/* Frees it if nothing refers to it any more; else decides whose memory it counts as. */
void ws_object_settle(struct ws_object *o);
/* Makes @handle, the first time. Return: false: no random numbers. */
bool ws_object_share(struct ws_server *s, struct ws_object *o);
struct ws_object *ws_object_find(struct ws_server *s, ProtobufCBinaryData handle);
/* The client's context on the object's GPU, or NULL. */
struct ws_context *ws_object_context(struct ws_client *c, const struct ws_object *o);

/* export.c: descriptors that stand for objects */
enum { WS_MAX_EXPORTS = 1024 };
struct ws_export;
Ws__Error ws_export_new(struct ws_client *c, uint64_t handle, int *ret_fd);
Ws__Error ws_export_import(struct ws_client *c, int fd, uint64_t handle,
                           struct ws_handoff_reply *ret);
void ws_export_closed(struct ws_export *e); /* no process has the descriptor any more */
void ws_exports_forget(struct ws_client *c);
void ws_exports_free(struct ws_server *s);
/* What the data of an event of server->handoff.epoll_fd points at begins with this. */
enum ws_handoff_source {
    WS_HANDOFF_SOURCE_CONNS,
    WS_HANDOFF_SOURCE_EXPORT,
    WS_HANDOFF_SOURCE_RING
};

#endif
